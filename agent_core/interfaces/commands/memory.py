"""`toolwright memory`: look at and change what an agent remembers."""

from shlex import quote
from typing import Any

import click

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_named_text

from ..spans import line
from .verb import Door, Opens, Result, Verb, verb

_agent = click.option("--agent", default="", metavar="NAME", help="The agent; by default, the workspace's.")


@click.group()
def memory() -> None:
    """Show, edit and search what an agent remembers."""


@verb(opens=Opens.NOTHING)
@click.argument("label", default="")
@_agent
async def show(door: Door, label: str, agent: str) -> Result:
    """Show the blocks and sections. All, or the one called LABEL, with the size of recall and archival."""
    from ..render.memory_view import memory_document, memory_lines, total_line

    async with door.state() as state:
        data = await memory_document(state.store, agent or door.agent_name or state.agent, label)
    none = f"{data['agent']} has no block yet. Next: toolwright run --agent {data['agent']}"
    lines = [*memory_lines(data), *([] if label else [total_line(data)])]
    return Result(data, lines, "" if data["blocks"] or label else none)


@verb(opens=Opens.NOTHING)
@click.argument("label", default="")
@_agent
async def history(door: Door, label: str, agent: str) -> Result:
    """Show the changes of blocks. Of LABEL, or of all: when, by whom, in which turn, and what was changed.

    With --json also what each made of the block.
    """
    from ..render.memory_view import history_document, history_lines

    async with door.state() as state:
        data = await history_document(state.store, agent or door.agent_name or state.agent, label)
    return Result(data, history_lines(data), "" if data["changes"] else "Nothing was ever changed.")


@verb()
@click.argument("label")
@click.option("--value", metavar="TEXT", help="The new text.")
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Read the value from a file; - reads standard input.",
)
@click.option("--section", is_flag=True, help="LABEL is a section of the system message; an empty text removes it.")
@click.option("--position", type=int, default=0, help="The position of the section, lowest first.")
@_agent
async def edit(door: Door, label: str, agent: str, **options: Any) -> Result:  # Any: the options above
    """Change a block or a section. Give --value or --file, or use your editor."""
    from ..manual_edits import write_block, write_section
    from ..render.memory_view import edit_shown

    value = options["value"] if options["file"] is None else _read(options["file"])
    owner = await door.agent(agent)
    if options["section"]:
        had = next((row for row in await owner.memory.sections.list() if row.name == label), None)
        text = value if value is not None else await _edited(door, label, had.text if had else "")
        position = options["position"] or (had.position if had else 0)
        outcome = None if text is None else await write_section(owner.memory.sections, label, position, text)
        return Result({"section": label, "text": outcome}, [line(("ok", "✓ "), outcome or "Nothing was changed.")])
    blocks = owner.memory.blocks
    text = value if value is not None else await _edited(door, label, blocks.memory[label].text)
    return edit_shown(label, None if text is None else await write_block(blocks, label, text))


@verb()
@click.argument("label", default="")
@_agent
async def undo(door: Door, label: str, agent: str) -> Result:
    """Undo the last change of a block. LABEL, or the block that was changed last; repeat to go back further."""
    from ..manual_edits import undo_block
    from ..render.memory_view import edit_shown

    return edit_shown(label, await undo_block((await door.agent(agent)).memory.blocks, label))


@verb()
@click.argument("label")
@click.option("--value", default="", metavar="TEXT", help="The initial value.")
@click.option("--limit", type=click.IntRange(1), default=2000, show_default=True, help="The limit, in characters.")
@click.option("--description", default="", metavar="TEXT", help="What belongs in the block, as the agent reads it.")
@_agent
async def add(door: Door, label: str, agent: str, **fields: Any) -> Result:  # Any: the block's fields
    """Add a block to an agent. The agent edits it like its other blocks."""
    from ..manual_edits import add_block
    from ..render.memory_view import edit_shown

    return edit_shown(label, await add_block((await door.agent(agent)).memory.blocks, label, **fields))


_HANDED = {  # verb of `Blocks` → what it says of itself
    "share": "Share a block with other agents. They get it by `memory attach`, and see each other's changes.",
    "attach": "Give an agent a block that another shares. It replaces the agent's own block of this label.",
    "detach": "Remove a block from an agent's memory. Its history is kept, and other agents keep the block.",
}


def _handed(action: str) -> Verb:
    @click.argument("label")
    @_agent
    async def hand(door: Door, label: str, agent: str) -> Result:
        from ..manual_edits import HUMAN, done
        from ..render.memory_view import edit_shown

        blocks = (await door.agent(agent)).memory.blocks
        return edit_shown(label, await done(blocks, getattr(blocks, action)(label, HUMAN)))

    hand.__doc__ = _HANDED[action]
    return verb(action)(hand)


@verb()
@click.argument("text", nargs=-1, required=True)
@click.option("--in", "where", type=click.Choice(("both", "recall", "archival")), default="both", show_default=True)
@click.option("--page", type=click.IntRange(0), default=0, help="Pages begin at 0.")
@click.option("--count", type=click.IntRange(1, 100), default=10, show_default=True, help="Results of a page.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only passages with this tag.")
@_agent
async def search(door: Door, text: tuple[str, ...], agent: str, **options: Any) -> Result:  # Any: the options above
    """Search what was said, and what was archived. By words and by meaning, the best first."""
    from ..render.memory_view import found_document, found_lines

    memory = (await door.agent(agent)).memory
    query, page, count, searches = " ".join(text), options["page"], options["count"], {}
    if options["where"] != "archival":
        searches["recall"] = await memory.recall.search(query, page, count)
    if options["where"] != "recall":
        searches["archival"] = await memory.archival.search(query, options["tags"], page, count)
    document = {where: found_document(results) for where, results in searches.items()}
    again = (f"{quote(query)} --agent {quote(door.agent_name)}", ", once you have left") if door.at_prompt else ()
    return Result(document, [row for results in searches.values() for row in found_lines(results, *again)])


async def _edited(door: Door, name: str, text: str) -> str | None:
    from ..manual_edits import text_from_editor

    async with door.editor("Give --value TEXT, or --file FILE."):
        return await text_from_editor(name, text)


def _read(file: str) -> str:
    try:
        text = read_named_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    return text.removesuffix("\n")


for _command in (show, history, edit, undo, add, *map(_handed, _HANDED), search):
    memory.add_command(_command)
