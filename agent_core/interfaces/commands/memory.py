"""`knapper memory` and `knapper log`: an agent's memory, and a conversation as Markdown."""

import asyncio
from contextlib import AsyncExitStack
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule

from ..styled_lines import line
from .verb import BlockLabel, Door, OfAgent, Opens, Result, slash, verb

if TYPE_CHECKING:
    from .. import manual_edits
    from ..render import memory_view
else:
    manual_edits = LateModule("agent_core.interfaces.manual_edits")
    memory_view = LateModule("agent_core.interfaces.render.memory_view")


@click.group()
def memory() -> None:
    """Show, edit and search what an agent remembers."""


@slash(
    "memory [LABEL | edit LABEL [TEXT] | history [LABEL] | undo [LABEL] | tidy [LABEL] | search TEXT | section …]",
    "Show what the agent remembers; `/memory section [NAME [POSITION TEXT | drop]]` edits the system message.",
    takes="<label> edit history undo tidy search section",
    after={**dict.fromkeys(("edit", "history", "undo", "tidy"), "<label>"), "section": "<section>"},
    shows=r"(?!(?:edit|undo|tidy)(?: |$))\S*|history(?: .*)?|search .*|section(?: \S+)?",
    needs_user=r"edit \S+",
    page="the room Memory",
)
@verb(memory, opens=Opens.NOTHING, scopes=("read",))
async def show(door: Door, label: BlockLabel = "", *, agent: OfAgent) -> Result:
    """Show the blocks and sections. All, or the one called LABEL, with the size of recall and archival."""
    async with door.state() as state:
        if agent:
            await state.moves.whole(agent)
        data = await memory_view.memory_document(state.store, agent or door.agent_name or state.agent, label)
    none = f"{data['agent']} has no block yet. Next: knapper run --agent {data['agent']}"
    lines = [*memory_view.memory_lines(data), *([] if label else [memory_view.total_line(data)])]
    return Result(data, lines, "" if data["blocks"] or label else none)


@slash("memory history")
@verb(memory, opens=Opens.NOTHING, scopes=("read",))
async def history(door: Door, label: BlockLabel = "", *, agent: OfAgent) -> Result:
    """Show the changes of blocks. Of LABEL, or of all: when, by whom, in which turn, and what was changed.

    With --json also what each made of the block.
    """
    async with door.state() as state:
        data = await memory_view.history_document(state.store, agent or door.agent_name or state.agent, label)
    return Result(data, memory_view.history_lines(data), "" if data["changes"] else "Nothing was ever changed.")


@slash("memory edit", last="value")
@verb(memory, scopes=("edit",))
@click.option("--value", metavar="TEXT", help="The new text.")
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Read the value from a file; - reads standard input.",
)
@click.option("--section", is_flag=True, help="LABEL is a section of the system message; an empty text removes it.")
@click.option("--position", type=int, default=0, help="The position of the section, lowest first.")
@click.option("--limit", type=click.IntRange(1), help="The new limit of the block, in characters.")
@click.option("--description", metavar="TEXT", help="What belongs in the block, as the agent reads it.")
@click.option("--version", type=click.IntRange(1), help="Only if the block is still at this version.")
async def edit(door: Door, label: BlockLabel, *, agent: OfAgent, **options: Any) -> Result:  # Any: the options above
    """Change a block or a section. Give --value or --file, or use your editor; --limit and --description alone change
    only these.
    """
    value = options["value"] if options["file"] is None else door.read(options["file"]).removesuffix("\n")
    about = {name: options[name] for name in ("limit", "description") if options[name] is not None}
    if about and options["section"]:
        raise UsageError("A section has no limit and no description of its own.", fix="Omit --section.")
    owner = await door.agent(agent)
    if options["section"]:
        had = next((row for row in await owner.memory.sections.list() if row.name == label), None)
        text = value if value is not None else await _text_from_editor(door, label, had.text if had else "")
        position = options["position"] or (had.position if had else 0)
        outcome = (
            None if text is None else await manual_edits.write_section(owner.memory.sections, label, position, text)
        )
        return Result({"section": label, "text": outcome}, [line(("ok", "✓ "), outcome or "Nothing was changed.")])
    blocks = owner.memory.blocks
    if about:
        planned = await manual_edits.set_up_block(blocks, label, **about)
        if planned.outcome != "returned" or value is None:
            return memory_view.edit_shown(label, planned)
    text = value if value is not None else await _text_from_editor(door, label, blocks.memory[label].text)
    return memory_view.edit_shown(
        label, None if text is None else await manual_edits.write_block(blocks, label, text, options["version"])
    )


@slash("memory undo")
@verb(memory, scopes=("edit",))
async def undo(door: Door, label: BlockLabel = "", *, agent: OfAgent) -> Result:
    """Undo the last change of a block. LABEL, or the block that was changed last; repeat to go back further."""
    return memory_view.edit_shown(label, await manual_edits.undo_block((await door.agent(agent)).memory.blocks, label))


@slash("memory tidy")
@verb(memory)
async def tidy(door: Door, label: BlockLabel = "", *, agent: OfAgent) -> Result:
    """Have the model tidy a block. LABEL, or every block: lines that are repeated or untrue go, others are joined.

    A line that became untrue is kept in archival memory; undo takes it all back.
    """
    owner = await door.agent(agent)
    blocks = owner.memory.blocks.memory
    labels = [blocks[label].label] if label else [row.label for row in owner.memory.blocks.rows if row.value]
    results = [memory_view.edit_shown(name, await owner.tidy(name, manual_edits.HUMAN)) for name in labels]
    document = {"blocks": [result.document for result in results]}
    lines = [shown for result in results for shown in result.lines]
    code = max((result.code for result in results), default=0)
    return Result(document, lines, "" if results else "There is nothing to tidy.", code)


@verb(memory, scopes=("edit",))
@click.option("--value", default="", metavar="TEXT", help="The initial value.")
@click.option("--limit", type=click.IntRange(1), default=2000, show_default=True, help="The limit, in characters.")
@click.option("--description", default="", metavar="TEXT", help="What belongs in the block, as the agent reads it.")
async def add(door: Door, label: BlockLabel, *, agent: OfAgent, **fields: Any) -> Result:  # Any: the block's fields
    """Add a block to an agent. The agent edits it like its other blocks."""
    return memory_view.edit_shown(
        label, await manual_edits.add_block((await door.agent(agent)).memory.blocks, label, **fields)
    )


@verb(memory)
@click.option("--readers", metavar="NAMES", help="The agents that may have it, as a,b; * for all.")
@click.option("--writers", metavar="NAMES", help="The agents that may also change it, as a,b; * for all.")
async def share(door: Door, label: BlockLabel, *, agent: OfAgent, readers: str | None, writers: str | None) -> Result:
    """Share a block with other agents. They get it by `memory attach`, and see each other's changes.

    --readers and --writers say which agents; without them, all.
    """
    blocks = (await door.agent(agent)).memory.blocks
    edit = await manual_edits.done(blocks, blocks.share(label, manual_edits.HUMAN))
    if edit.outcome == "returned" and not (readers is None and writers is None):
        edit = await manual_edits.done(
            blocks, blocks.allow(label, _names(readers), _names(writers), manual_edits.HUMAN)
        )
    return memory_view.edit_shown(label, edit)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@verb(memory)
async def attach(door: Door, label: BlockLabel, *, agent: OfAgent) -> Result:
    """Give an agent a block that another shares. It replaces the agent's own block of this label."""
    blocks = (await door.agent(agent)).memory.blocks
    return memory_view.edit_shown(label, await manual_edits.done(blocks, blocks.attach(label, manual_edits.HUMAN)))


@verb(memory)
async def detach(door: Door, label: BlockLabel, *, agent: OfAgent) -> Result:
    """Remove a block from an agent's memory. Its history is kept, and other agents keep the block."""
    blocks = (await door.agent(agent)).memory.blocks
    return memory_view.edit_shown(label, await manual_edits.done(blocks, blocks.detach(label, manual_edits.HUMAN)))


@slash("memory search")
@verb(memory, opens=Opens.READABLE, scopes=("read",))
@click.argument("text", nargs=-1, required=True)
@click.option("--in", "where", type=click.Choice(("both", "recall", "archival")), default="both", show_default=True)
@click.option("--page", type=click.IntRange(0), default=0, help="Pages begin at 0.")
@click.option("--count", type=click.IntRange(1, 100), default=10, show_default=True, help="Results of a page.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only passages with this tag.")
async def search(
    door: Door, text: tuple[str, ...], *, agent: OfAgent, **options: Any
) -> Result:  # Any: the options above
    """Search what was said, and what was archived. By words and by meaning, the best first.

    The lines of blocks that have a word of TEXT are shown before.
    """
    query = " ".join(text)
    searches, blocks = await memory_view.search_all(await door.memory(agent), query, **options)
    document = {where: memory_view.found_document(results) for where, results in searches.items()}
    name = f" --agent {quote(owner)}" if (owner := agent or door.agent_name) else ""
    return Result(document, memory_view.found_lines([*searches.values()], f"{quote(query)}{name}", blocks))


async def _text_from_editor(door: Door, name: str, text: str) -> str | None:
    async with door.editor("Give --value TEXT, or --file FILE. --file - reads standard input."):
        return await manual_edits.text_from_editor(name, text)


@slash(
    "forget TEXT | message N.M | turn N | before DATE",
    "Take it out of the record for good, after a preview, such as: /forget green tea. `last` is the last message or"
    " turn; --word TEXT: only the whole word; text TEXT: a text that begins with one of these words.",
    takes="message turn before text",
)
@verb(memory, opens=Opens.NOTHING)
@click.argument("text", nargs=-1)
@click.option(
    "--message", default="", metavar="N.M|last", help="A message of the agent; `memory search` has its number."
)
@click.option("--turn", default="", metavar="N|last", help="A turn of the agent, with all that happened in it.")
@click.option("--before", default="", metavar="DATE", help="All of the agent before a date.")
@click.option("--word", is_flag=True, help="TEXT only as a whole word, not within longer ones.")
@click.option("--exact", is_flag=True, help="TEXT only in this case.")
@click.option("--dry-run", is_flag=True, help="Show what would be forgotten, and change nothing.")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
async def forget(
    door: Door, text: tuple[str, ...], *, agent: OfAgent, **options: Any
) -> Result:  # Any: the options above
    """Take out of the record what must not stay: TEXT in all agents, or a message, a turn, or all before a date.

    Shows what and how much in which place, then asks. It cannot be undone: the state file is written anew, so that
    nothing is left of it there. Use - to read TEXT from standard input, which keeps it out of your shell's history.
    """
    from agent_core.workspace.forgetting import ForgetRequest, Forgetting

    is_dry, is_sure = options.pop("dry_run"), options.pop("is_sure")
    words = door.read("-").strip() if text == ("-",) else " ".join(text)
    async with door.state() as state:
        forgetting = Forgetting(state.root, state.folder, state.store)
        order = await forgetting.order(ForgetRequest(words, **options), agent or door.agent_name or state.agent)
        async with AsyncExitStack() as locks:
            others = [] if is_dry else [name for name in order.agents if name != door.agent_name]
            for name in others:
                await locks.enter_async_context(state.alone(name))
            report = await forgetting.preview(order)
            if is_dry or not report.places:
                return Result(
                    report.to_json("previewed" if report.places else "nothing"), memory_view.forget_lines(report)
                )
            question, fix = f"Forget {report.subject}?", "Give -y to forget, or --dry-run to look."
            if not is_sure and not await door.agrees(question, fix, memory_view.forget_lines(report), is_final=True):
                return Result(None, aside=[line(("dim", "Nothing was forgotten."))], code=1)
            async with door.resting():
                if door.agent_name in order.agents:
                    await locks.enter_async_context(state.alone(door.agent_name))
                report = await forgetting.carry_out(order)
                await locks.aclose()
    return Result(report.to_json("forgotten"), memory_view.forget_lines(report, is_done=True))


# `knapper log`: a conversation as Markdown, to read or to keep.


@slash(
    "log [--last N] [--since DATE] [--all] [-o FILE]",
    "Show this conversation as Markdown, or write it to FILE; `--all`: with what /new and /pop removed.",
    takes="--last --since --all -o",
    in_turn=True,
    shows=r"(?:--all|--last \d+|--since [\w:.+-]+| )*",
)
@verb(opens=Opens.NOTHING)
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N turns.")
@click.option(
    "--since", default="", metavar="DATE", help="Only turns since then: 2026-11-20, yesterday, two hours ago."
)
@click.option("--all", "with_removed", is_flag=True, help="Also what /new and /pop removed from the context.")
@click.option("--output", "-o", "file", default="", metavar="FILE", help="Write it to FILE, which must not exist.")
async def log(door: Door, *, agent: OfAgent, file: str, **options: Any) -> Result:  # Any: the options above
    """Show a conversation as Markdown, each turn with its receipt. What was summarized for the model is there in
    full, and so is what came of a reply that is cut off. Needs no lock.
    """
    from agent_core.memory import dates
    from agent_core.runtime.entries import RECEIPT
    from agent_core.storage.turn_store import SAID
    from agent_core.workspace.portable import NoAgent, write_file

    from ..render.memory_view import transcript, transcript_document, turns_of

    async with door.state() as state:
        name, names = agent or door.agent_name or state.agent, await state.moves.names()
        if agent and agent not in names:
            raise NoAgent(agent, names)
        since = dates.read(options["since"], await state.store.now())[0] if options["since"] else 0.0
        store = state.store
        said = await store.history(name, kinds=(*SAID, RECEIPT), with_removed=options["with_removed"])
        entries = [*said, *await store.streamed(name)]
    turns = turns_of(entries, since, options["last"])
    if not turns:
        others, hint = [other for other in names if other != name], "Nothing was said."
        if others:
            there = f"Other agents: {', '.join(others[:20])}. " if len(others) > 1 else ""
            hint = f"Nothing was said to {name}. {there}Next: knapper log --agent {others[0]}"
        return Result({"agent": name, "turns": []}, hint=hint)
    text, document = transcript(name, turns), transcript_document(name, turns)
    if file:
        await asyncio.to_thread(write_file, file, text)
        count = f"{len(turns)} turn{'' if len(turns) == 1 else 's'}"
        return Result({"agent": name, "file": file, "turns": len(turns)}, [line(("ok", "✓ "), f"{count} in {file}")])
    return Result(document, [line(row) for row in text.removesuffix("\n").split("\n")])
