"""`toolwright memory`: what an agent remembers, looked at and changed by a human."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from agent_core.errors import UsageError

from ..scene import Scene, scene
from ..spans import line

T = TypeVar("T")

_agent = click.option("--agent", default="", metavar="NAME", help="Whose memory, if not the workspace's usual agent's.")


@click.group()
def memory() -> None:
    """Show, edit and search what an agent remembers."""


@memory.command()
@click.argument("label", default="")
@_agent
@scene
def show(scene: Scene, label: str, agent: str) -> None:
    """Show the blocks and sections. All, or the one called LABEL; and how much is in recall and archival."""
    from ..memories import memory_document, memory_lines, total_line
    from ..state import with_state

    found = with_state(scene, lambda state: memory_document(state.store, agent or state.agent, label))
    scene.result(found, [*memory_lines(found), *([] if label else [total_line(found)])])
    if not (found["blocks"] or label):
        scene.hint(f"{found['agent']} has no block yet. Next: toolwright run --agent {found['agent']}")


@memory.command()
@click.argument("label", default="")
@_agent
@scene
def history(scene: Scene, label: str, agent: str) -> None:
    """Show the changes of blocks. Of LABEL, or of all: when, by whom, in which turn, what was done.

    With --json also what each made of the block.
    """
    from ..memories import history_document, history_lines
    from ..state import with_state

    found = with_state(scene, lambda state: history_document(state.store.memory, agent or state.agent, label))
    scene.result(found, history_lines(found))


@memory.command()
@click.argument("label")
@click.option("--value", metavar="TEXT", help="The new text.")
@click.option("--file", metavar="FILE", type=click.Path(allow_dash=True), help="A file with it; - is standard input.")
@click.option("--section", is_flag=True, help="LABEL is a section of the system message; an empty text takes it away.")
@click.option("--position", type=int, default=0, help="Where a section stands among them, lowest first.")
@_agent
@scene
def edit(scene: Scene, label: str, agent: str, **given: Any) -> int:  # Any: the options above
    """Change a block, or a section. Give --value or --file, or use your editor."""
    from ..by_hand import write_block

    value = given["value"] if given["file"] is None else _read(given["file"])
    if given["section"]:
        return _edit_section(scene, agent, (label, given["position"]), value)

    async def changed(one: Any) -> Any:
        text = value if value is not None else await _edited(label, one.memory.blocks.memory[label].text)
        return None if text is None else await write_block(one.memory.blocks, label, text)

    return _told(scene, label, _with_agent(scene, agent, changed))


@memory.command()
@click.argument("label", default="")
@_agent
@scene
def undo(scene: Scene, label: str, agent: str) -> int:
    """Take the last change of a block back. Of LABEL, or of the one changed last; again for the one before."""
    from ..by_hand import undo_block

    return _told(scene, label, _with_agent(scene, agent, lambda one: undo_block(one.memory.blocks, label)))


@memory.command()
@click.argument("label")
@click.option("--value", default="", metavar="TEXT", help="What it holds at first.")
@click.option("--limit", type=click.IntRange(1), default=2000, show_default=True, help="Characters that it may have.")
@click.option("--description", default="", metavar="TEXT", help="What belongs into it, as the agent reads it.")
@_agent
@scene
def add(scene: Scene, label: str, agent: str, **fields: Any) -> int:  # Any: the block's fields
    """Give an agent one more block. It edits it as it does the others."""
    from ..by_hand import add_block

    return _told(scene, label, _with_agent(scene, agent, lambda one: add_block(one.memory.blocks, label, **fields)))


_HANDED = {  # verb of `Blocks` → what it says of itself
    "share": "Let other agents have a block. They get it by `memory attach`, and what one changes the others see.",
    "attach": "Give an agent a block that another shares. Its own of this label makes way for it.",
    "detach": "Take a block out of an agent's memory. Its history stays, and others keep it.",
}


def _handed(verb: str, about: str) -> None:
    @memory.command(verb, help=about)
    @click.argument("label")
    @_agent
    @scene
    def hand(scene: Scene, label: str, agent: str) -> int:
        from ..by_hand import HUMAN, done

        async def made(one: Any) -> Any:
            return await done(one.memory.blocks, getattr(one.memory.blocks, verb)(label, HUMAN))

        return _told(scene, label, _with_agent(scene, agent, made))


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
def search(scene: Scene, text: tuple[str, ...], agent: str, **given: Any) -> None:  # Any: the options above
    """Search what was said, and what was put aside. By words and by meaning, the best first."""
    from ..memories import found_document, found_lines

    async def searched(one: Any) -> dict[str, Any]:
        query, page, count, found = " ".join(text), given["page"], given["count"], {}
        if given["where"] != "archival":
            found["recall"] = await one.memory.recall.search(query, page, count)
        if given["where"] != "recall":
            found["archival"] = await one.memory.archival.search(query, given["tags"], page, count)
        return found

    found = _with_agent(scene, agent, searched)
    document = {where: found_document(one) for where, one in found.items()}
    scene.result(document, [each for one in found.values() for each in found_lines(one)])


def _with_agent(scene: Scene, name: str, use: Callable[[Any], Awaitable[T]]) -> T:
    """An agent of the workspace, opened; it must be there: a command that looks makes nothing."""
    from ..opened import with_workspace
    from ..state import with_state

    async def known(state: Any) -> str:
        await state.moves.whole(name or state.agent)
        return name or str(state.agent)

    wanted = with_state(scene, known)

    async def used(workspace: Any) -> T:
        return await use(await workspace.agent(wanted))

    return with_workspace(scene, used)


def _edit_section(scene: Scene, agent: str, place: tuple[str, int], value: str | None) -> int:
    async def changed(one: Any) -> str | None:
        name, position = place
        had = next((row for row in await one.memory.sections.list() if row.name == name), None)
        text = value if value is not None else await _edited(name, had.text if had else "")
        if text is None:
            return None
        if not text.strip():
            await one.memory.sections.drop(name)
            return f"The section `{name}` is taken away."
        await one.memory.sections.set(name, position or (had.position if had else 0), text)
        return f"The section `{name}` is kept."

    said = _with_agent(scene, agent, changed)
    scene.result({"section": place[0], "text": said}, [line(("ok", "✓ "), said or "Nothing was changed.")])
    return 0


def _told(scene: Scene, label: str, edit: Any) -> int:
    """What came of an edit; None: the editor was left without one."""
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
        raise UsageError("There is no terminal for an editor.", mend="Give --value TEXT, or --file FILE.")
    return await text_from_editor(name, text)


def _read(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    return text.removesuffix("\n")
