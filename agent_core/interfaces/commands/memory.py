"""`toolwright memory`: look at and change what an agent remembers."""

import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_named_text

from ..scene import CliContext, scene
from ..spans import line

T = TypeVar("T")

_agent = click.option("--agent", default="", metavar="NAME", help="The agent; by default, the workspace's.")


@click.group()
def memory() -> None:
    """Show, edit and search what an agent remembers."""


@memory.command()
@click.argument("label", default="")
@_agent
@scene
def show(scene: CliContext, label: str, agent: str) -> None:
    """Show the blocks and sections. All, or the one called LABEL, with the size of recall and archival."""
    from ..memories import memory_document, memory_lines, total_line
    from ..state import with_state

    data = with_state(scene, lambda state: memory_document(state.store, agent or state.agent, label))
    scene.result(data, [*memory_lines(data), *([] if label else [total_line(data)])])
    if not (data["blocks"] or label):
        scene.hint(f"{data['agent']} has no block yet. Next: toolwright run --agent {data['agent']}")


@memory.command()
@click.argument("label", default="")
@_agent
@scene
def history(scene: CliContext, label: str, agent: str) -> None:
    """Show the changes of blocks. Of LABEL, or of all: when, by whom, in which turn, and what was changed.

    With --json also what each made of the block.
    """
    from ..memories import history_document, history_lines
    from ..state import with_state

    data = with_state(scene, lambda state: history_document(state.store, agent or state.agent, label))
    scene.result(data, history_lines(data))


@memory.command()
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
@scene
def edit(scene: CliContext, label: str, agent: str, **options: Any) -> int:  # Any: the options above
    """Change a block or a section. Give --value or --file, or use your editor."""
    from ..by_hand import write_block

    value = options["value"] if options["file"] is None else _read(options["file"])
    if options["section"]:
        return _edit_section(scene, agent, (label, options["position"]), value)

    async def changed(owner: Any) -> Any:
        text = value if value is not None else await _edited(label, owner.memory.blocks.memory[label].text)
        return None if text is None else await write_block(owner.memory.blocks, label, text)

    return _report_edit(scene, label, _with_agent(scene, agent, changed))


@memory.command()
@click.argument("label", default="")
@_agent
@scene
def undo(scene: CliContext, label: str, agent: str) -> int:
    """Undo the last change of a block. LABEL, or the block that was changed last; repeat to go back further."""
    from ..by_hand import undo_block

    return _report_edit(scene, label, _with_agent(scene, agent, lambda owner: undo_block(owner.memory.blocks, label)))


@memory.command()
@click.argument("label")
@click.option("--value", default="", metavar="TEXT", help="The initial value.")
@click.option("--limit", type=click.IntRange(1), default=2000, show_default=True, help="The limit, in characters.")
@click.option("--description", default="", metavar="TEXT", help="What belongs in the block, as the agent reads it.")
@_agent
@scene
def add(scene: CliContext, label: str, agent: str, **fields: Any) -> int:  # Any: the block's fields
    """Add a block to an agent. The agent edits it like its other blocks."""
    from ..by_hand import add_block

    return _report_edit(
        scene, label, _with_agent(scene, agent, lambda owner: add_block(owner.memory.blocks, label, **fields))
    )


_HANDED = {  # verb of `Blocks` → what it says of itself
    "share": "Share a block with other agents. They get it by `memory attach`, and see each other's changes.",
    "attach": "Give an agent a block that another shares. It replaces the agent's own block of this label.",
    "detach": "Remove a block from an agent's memory. Its history is kept, and other agents keep the block.",
}


def _handed(verb: str, about: str) -> None:
    @memory.command(verb, help=about)
    @click.argument("label")
    @_agent
    @scene
    def hand(scene: CliContext, label: str, agent: str) -> int:
        from ..by_hand import HUMAN, done

        async def edit_blocks(one: Any) -> Any:
            return await done(one.memory.blocks, getattr(one.memory.blocks, verb)(label, HUMAN))

        return _report_edit(scene, label, _with_agent(scene, agent, edit_blocks))


for _verb, _about in _HANDED.items():
    _handed(_verb, _about)


@memory.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--in", "where", type=click.Choice(("both", "recall", "archival")), default="both", show_default=True)
@click.option("--page", type=click.IntRange(0), default=0, help="Pages begin at 0.")
@click.option("--count", type=click.IntRange(1, 100), default=10, show_default=True, help="Results of a page.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only passages with this tag.")
@_agent
@scene
def search(scene: CliContext, text: tuple[str, ...], agent: str, **options: Any) -> None:  # Any: the options above
    """Search what was said, and what was archived. By words and by meaning, the best first."""
    from ..memories import found_document, found_lines

    async def searched(owner: Any) -> dict[str, Any]:
        query, page, count, by_place = " ".join(text), options["page"], options["count"], {}
        if options["where"] != "archival":
            by_place["recall"] = await owner.memory.recall.search(query, page, count)
        if options["where"] != "recall":
            by_place["archival"] = await owner.memory.archival.search(query, options["tags"], page, count)
        return by_place

    searches = _with_agent(scene, agent, searched)
    document = {where: found_document(results) for where, results in searches.items()}
    scene.result(document, [row for results in searches.values() for row in found_lines(results)])


def _with_agent(scene: CliContext, name: str, use: Callable[[Any], Awaitable[T]]) -> T:
    """Open an existing agent of the workspace and use it. A command that only looks creates nothing."""
    from ..opened import with_workspace
    from ..state import with_state

    async def find_name(state: Any) -> str:
        await state.moves.whole(name or state.agent)
        return name or str(state.agent)

    agent_name = with_state(scene, find_name)

    async def used(workspace: Any) -> T:
        return await use(await workspace.agent(agent_name))

    return with_workspace(scene, used)


def _edit_section(scene: CliContext, agent: str, place: tuple[str, int], value: str | None) -> int:
    async def changed(owner: Any) -> str | None:
        name, position = place
        had = next((row for row in await owner.memory.sections.list() if row.name == name), None)
        text = value if value is not None else await _edited(name, had.text if had else "")
        if text is None:
            return None
        if not text.strip():
            await owner.memory.sections.drop(name)
            return f"The section `{name}` is taken away."
        await owner.memory.sections.set(name, position or (had.position if had else 0), text)
        return f"The section `{name}` is kept."

    new_text = _with_agent(scene, agent, changed)
    scene.result({"section": place[0], "text": new_text}, [line(("ok", "✓ "), new_text or "Nothing was changed.")])
    return 0


def _report_edit(scene: CliContext, label: str, edit: Any) -> int:
    """Print the result of an edit, or nothing if the editor was left without one (None)."""
    if edit is None:
        scene.result({"label": label, "outcome": "unchanged", "text": "Nothing was changed."}, [])
        scene.hint("Nothing was changed.")
        return 0
    is_done = edit.outcome == "returned"
    mark = line(("ok", "✓ ") if is_done else ("bad", "✗ "), edit.text)
    scene.result({"label": label, "outcome": edit.outcome, "text": edit.text}, [mark])
    return 0 if is_done else 1


async def _edited(name: str, text: str) -> str | None:
    from ..by_hand import text_from_editor

    if not sys.stdin.isatty():
        raise UsageError("There is no terminal for an editor.", fix="Give --value TEXT, or --file FILE.")
    return await text_from_editor(name, text)


def _read(file: str) -> str:
    try:
        text = read_named_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    return text.removesuffix("\n")
