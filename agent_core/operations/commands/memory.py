"""`knapper memory`, `sources` and `log`: an agent's memory, its documents, and a conversation as Markdown."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from agent_core.base.clock import shown_time
from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.operations.operation import Opens
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, columns, counted, line

from ..verb import BlockLabel, Door, OfAgent, OfConversation, SourcePlace, at_most_one, slash, verb

if TYPE_CHECKING:
    from agent_core.memory.source_catalog import SourceReport, Sources
    from agent_core.storage import DocumentRow
    from agent_core.views import memory_view

    from .. import manual_edits
else:
    manual_edits = LateModule("agent_core.operations.manual_edits")
    memory_view = LateModule("agent_core.views.memory_view")


@click.group()
def memory() -> None:
    """Show, edit and search what an agent remembers."""


@slash(
    "memory [LABEL | edit LABEL [TEXT] | history [LABEL] | undo [LABEL] | search TEXT | section …]",
    "Show what the agent remembers; `/memory section [NAME [POSITION TEXT | drop]]` edits the system message.",
    takes="<label> edit history undo search section",
    after={**dict.fromkeys(("edit", "history", "undo"), "<label>"), "section": "<section>"},
    shows=r"(?!(?:edit|undo)(?: |$))\S*|history(?: .*)?|search .*|section(?: \S+)?",
    needs_user=r"edit \S+",
    page="the room Memory",
)
@verb(memory, opens=Opens.NOTHING, scopes=("read",))
async def show(door: Door, label: BlockLabel = "", *, agent: OfAgent) -> Result:
    """Show the blocks and sections. All, or the one called LABEL, with the size of recall and archival."""
    async with door.state() as state:
        if agent:
            await state.moves.whole(agent, has_contents=False)
        data = await memory_view.memory_document(
            state.store, agent or door.agent_name or state.agent, label
        )
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
        data = await memory_view.history_document(
            state.store, agent or door.agent_name or state.agent, label
        )
    return Result(
        data,
        memory_view.history_lines(data),
        "" if data["changes"] else "Nothing was ever changed.",
    )


@slash("memory edit", last="value")
@verb(memory, scopes=("edit",))
@click.option("--value", metavar="TEXT", help="The new text.")
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Read the value from a file; - reads standard input.",
)
@click.option(
    "--section",
    is_flag=True,
    help="LABEL is a section of the system message; an empty text removes it.",
)
@click.option("--position", type=int, help="The position of the section, lowest first.")
@click.option("--limit", type=click.IntRange(1), help="The new limit of the block, in characters.")
@click.option(
    "--description", metavar="TEXT", help="What belongs in the block, as the agent reads it."
)
@click.option(
    "--version", type=click.IntRange(1), help="Only if the block is still at this version."
)
async def edit(
    door: Door, label: BlockLabel, *, agent: OfAgent, **options: Any
) -> Result:  # Any: the options above
    """Change a block or a section. Give --value or --file, or use your editor; --limit and --description alone change
    only these.
    """
    at_most_one({"--value": options["value"] is not None, "--file": options["file"] is not None})
    value = (
        options["value"]
        if options["file"] is None
        else door.read(options["file"]).removesuffix("\n")
    )
    about = {name: options[name] for name in ("limit", "description") if options[name] is not None}
    if options["section"] and (about or options["version"] is not None):
        raise UsageError(
            "A section has no limit, description and version of its own.", fix="Omit --section."
        )
    if options["position"] is not None and not options["section"]:
        raise UsageError("Only a section has a position.", fix="Omit --position, or add --section.")
    owner = await door.agent(agent)
    if options["section"]:
        had = next((row for row in await owner.memory.sections.list() if row.name == label), None)
        if value is None:
            value = await _text_from_editor(door, label, had.text if had else "")
        position = options["position"]
        if position is None:
            position = had.position if had else 0
        outcome = None
        if value is not None:
            sections = owner.memory.sections
            outcome = await manual_edits.write_section(sections, label, position, value)
        return Result(
            {"section": label, "text": outcome},
            [line(("ok", "✓ "), outcome or "Nothing was changed.")],
        )
    blocks = owner.memory.blocks
    if value is None and not about:
        value = await _text_from_editor(door, label, blocks.memory[label].text)
        if value is None:
            return memory_view.edit_shown(label, None)
    return memory_view.edit_shown(
        label,
        await manual_edits.set_up_block(blocks, label, options["version"], value=value, **about),
    )


@slash("memory undo")
@verb(memory, scopes=("edit",))
async def undo(door: Door, label: BlockLabel = "", *, agent: OfAgent) -> Result:
    """Undo the last change of a block. LABEL, or the block that was changed last; repeat to go back further."""
    return memory_view.edit_shown(
        label, await manual_edits.undo_block((await door.agent(agent)).memory.blocks, label)
    )


@verb(memory, scopes=("edit",))
@click.option("--value", default="", metavar="TEXT", help="The initial value.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    help="The limit, in characters.",
)
@click.option(
    "--description",
    default="",
    metavar="TEXT",
    help="What belongs in the block, as the agent reads it.",
)
async def add(
    door: Door, label: BlockLabel, *, agent: OfAgent, **fields: Any
) -> Result:  # Any: the block's fields
    """Add a block to an agent. The agent edits it like its other blocks."""
    return memory_view.edit_shown(
        label,
        await manual_edits.add_block((await door.agent(agent)).memory.blocks, label, **fields),
    )


@verb(memory)
@click.option("--readers", metavar="NAMES", help="The agents that may have it, as a,b; * for all.")
@click.option(
    "--writers", metavar="NAMES", help="The agents that may also change it, as a,b; * for all."
)
async def share(
    door: Door, label: BlockLabel, *, agent: OfAgent, readers: str | None, writers: str | None
) -> Result:
    """Share a block with other agents. They get it by `memory attach`, and see each other's changes.

    --readers and --writers say which agents; without them, all. With --readers alone, of the agents only its
    owner and writers named before change it.
    """
    blocks = (await door.agent(agent)).memory.blocks
    plan = blocks.share(label, manual_edits.HUMAN, _names(readers), _names(writers))
    return memory_view.edit_shown(label, await manual_edits.done(blocks, plan))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@verb(memory)
async def attach(door: Door, label: BlockLabel, *, agent: OfAgent) -> Result:
    """Give an agent a block that another shares. It replaces the agent's own block of this label."""
    blocks = (await door.agent(agent)).memory.blocks
    return memory_view.edit_shown(
        label, await manual_edits.done(blocks, blocks.attach(label, manual_edits.HUMAN))
    )


@verb(memory)
async def detach(door: Door, label: BlockLabel, *, agent: OfAgent) -> Result:
    """Remove a block from an agent's memory. Its history is kept, and other agents keep the block."""
    blocks = (await door.agent(agent)).memory.blocks
    return memory_view.edit_shown(
        label, await manual_edits.done(blocks, blocks.detach(label, manual_edits.HUMAN))
    )


@slash("memory search")
@verb(memory, opens=Opens.READABLE, scopes=("read",))
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--in",
    "where",
    type=click.Choice(("both", "recall", "archival")),
    default="both",
    show_default=True,
)
@click.option("--page", type=click.IntRange(0), default=0, help="Pages begin at 0.")
@click.option(
    "--count", type=click.IntRange(1, 100), default=10, show_default=True, help="Results of a page."
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only passages with this tag.")
async def search(
    door: Door, text: tuple[str, ...], *, agent: OfAgent, **options: Any
) -> Result:  # Any: the options above
    """Search what was said, and what was archived. By words and by meaning, the best first.

    The lines of blocks that have a word of TEXT are shown before.
    """
    query = " ".join(text)
    searches, blocks = await memory_view.search_all(
        await door.memory(agent), query, **options, is_owner=door.token is None
    )
    document = {where: memory_view.found_document(results) for where, results in searches.items()}
    name = f" --agent {quote(owner)}" if (owner := agent or door.agent_name) else ""
    return Result(
        document, memory_view.found_lines([*searches.values()], f"{quote(query)}{name}", blocks)
    )


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
    "--message",
    default="",
    metavar="N.M|last",
    help="A message of the agent; `memory search` has its number.",
)
@click.option(
    "--turn",
    default="",
    metavar="N|last",
    help="A turn of the agent, with all that happened in it.",
)
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
    if words and agent:
        raise UsageError(
            "TEXT is forgotten in all agents.",
            fix="Omit --agent, or name a message, a turn or a date.",
        )
    if not words and (options["word"] or options["exact"]):
        raise UsageError(
            "--word and --exact say how TEXT is meant, and there is none.", fix="Omit them."
        )
    async with door.state() as state:
        forgetting = Forgetting(state.root, state.folder, state.store)
        order = await forgetting.order(
            ForgetRequest(words, **options), agent or door.agent_name or state.agent
        )
        async with AsyncExitStack() as locks:
            others = [] if is_dry else [name for name in order.agents if name != door.agent_name]
            for name in others:
                await locks.enter_async_context(state.alone(name))
            report = await forgetting.preview(order)
            if is_dry or not report.places:
                return Result(
                    report.to_json("previewed" if report.places else "nothing"),
                    memory_view.forget_lines(report),
                )
            question, fix = f"Forget {report.subject}?", "Give -y to forget, or --dry-run to look."
            if not is_sure and not await door.agrees(
                question, fix, memory_view.forget_lines(report), is_final=True
            ):
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
    "Show this conversation as Markdown, or write it to FILE; `--all`: with what /pop removed.",
    takes="--last --since --all -o",
    in_turn=True,
    shows=r"(?:--all|--last \d+|--since [\w:.+-]+| )*",
)
@verb(opens=Opens.NOTHING)
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N turns.")
@click.option(
    "--since",
    default="",
    metavar="DATE",
    help="Only turns since then: 2026-11-20, yesterday, two hours ago.",
)
@click.option(
    "--all", "with_removed", is_flag=True, help="Also what /pop removed from the context."
)
@click.option(
    "--output",
    "-o",
    "file",
    default="",
    metavar="FILE",
    help="Write it to FILE, which must not exist.",
)
async def log(
    door: Door, *, agent: OfAgent, conversation: OfConversation, file: str, **options: Any
) -> Result:  # Any: the options above
    """Show a conversation as Markdown, each turn with its number and its receipt. What was summarized for the model is
    there in full, and so is what came of a reply that is cut off. Needs no lock.
    """
    from agent_core.memory import dates
    from agent_core.storage import agent_named
    from agent_core.storage.journal import ReceiptEntry
    from agent_core.storage.turn_store import SAID
    from agent_core.views.memory_view import transcript, transcript_document, turns_of
    from agent_core.workspace.conversations import Conversations
    from agent_core.workspace.portable import write_file

    async with door.state() as state:
        name, names = agent or door.agent_name or state.agent, await state.moves.names()
        if agent and agent not in names:
            await state.moves.missing(agent)
        since = (
            dates.read(options["since"], await state.store.now())[0] if options["since"] else 0.0
        )
        store = state.store
        key = door.line if door.line and not (agent or conversation) else name
        if conversation:
            key = (
                await Conversations(store, agent_named(name), door.token).find(conversation)
            ).line
        row = await store.conversation(key)
        title = "" if row is None or key == name else row.name or row.id
        said = await store.history(
            key, kinds=(*SAID, ReceiptEntry.kind), with_removed=options["with_removed"]
        )
        entries = [*said, *await store.streamed(key)]
    turns = turns_of(entries, since, options["last"])
    if not turns:
        others, hint = [other for other in names if other != name], "Nothing was said."
        if others:
            there = f"Other agents: {', '.join(others[:20])}. " if len(others) > 1 else ""
            hint = f"Nothing was said to {name}. {there}Next: knapper log --agent {others[0]}"
        return Result({"agent": name, "turns": []}, hint=hint)
    text = transcript(name, turns, title)
    document = transcript_document(name, turns)
    if file:
        await asyncio.to_thread(write_file, file, text)
        return Result(
            {"agent": name, "file": file, "turns": len(turns)},
            [line(("ok", "✓ "), f"{counted(len(turns), 'turn')} in {file}")],
        )
    return Result(document, [line(row) for row in text.removesuffix("\n").split("\n")])


# `knapper sources`: documents that the user gives to an agent.

_name = click.option(
    "--name",
    metavar="NAME",
    help="The name to cite it by; by default, its path or URL. An existing source of that name is replaced.",
)


@click.group()
def sources() -> None:
    """Give an agent files, folders and pages to know; answers can cite them."""


@slash(
    "attach PATH|URL|NAME",
    "Read it into archival memory, or take a loaded source. Ctrl-C stops; the same command continues.",
    page="the room Memory",
)
@verb(sources, "add")
@_name
async def add_source(door: Door, place: SourcePlace, *, name: str | None, agent: OfAgent) -> Result:
    """Read a source into archival memory. A file, a folder's files, a page, or - for standard input.

    Text, Markdown, HTML, PDF, source code, CSV and JSON are split along their structure. A text that is already stored
    is not stored again; an interrupted source is resumed. A URL is fetched from public addresses, and from this machine
    only if the URL itself names it (localhost, 127.0.0.1). The name of a source that was loaded for all agents, where
    no file has it, attaches that one.
    """
    sources = await door.sources(agent)
    if name is None and await sources.is_only_loaded(place):
        return await _attach_loaded(sources, place)
    return await _add_source(door, sources, place, name)


@verb(sources)
@_name
async def load(door: Door, place: SourcePlace, *, name: str | None) -> Result:
    """Load a source for all agents of the workspace. It is read and embedded once; `sources attach` gives it to one."""
    shown = await _add_source(door, door.workspace.loaded_sources(), place, name)
    names = [report.name for report in shown.document["sources"] if report.outcome != "refused"]
    folder = (name or place).rstrip("/")
    is_whole = len(names) > 1 and all(one.startswith(f"{folder}/") for one in names)
    source = quote(folder if is_whole else names[0]) if names else ""
    more = "" if is_whole or len(names) < 2 else ", and so on (all: knapper sources list --loaded)"
    return replace(
        shown, hint=f"Next: knapper sources attach {source}{more}" if names else shown.hint
    )


async def _add_source(door: Door, sources: "Sources", place: str, name: str | None) -> Result:
    with door.source_progress() as hear:
        reports = await sources.add(place, hear, name)
    code = 0 if any(report.outcome != "refused" for report in reports) else 1
    return Result({"sources": reports}, report_lines(reports), code=code)


@verb(sources, "attach", scopes=("edit",))
async def attach_source(door: Door, source: str, *, agent: OfAgent) -> Result:
    """Give an agent a loaded source. By its name, the beginning of its hash, or the folder it came with."""
    return await _attach_loaded(await door.sources(agent), source)


async def _attach_loaded(sources: "Sources", source: str) -> Result:
    new, there = await sources.attach(source)
    lines = [
        *(line(("ok", "✓ "), "attached ", ("name", row.name), f" ({row.done:,})") for row in new),
        *(
            line(("ok", "✓ "), ("name", row.name), f": there already ({row.done:,})")
            for row in there
        ),
    ]
    return Result(
        {
            "attached": [source_json(row) for row in new],
            "there": [source_json(row) for row in there],
        },
        lines,
    )


@verb(sources, "detach", scopes=("edit",))
async def detach_source(door: Door, source: str, *, agent: OfAgent) -> Result:
    """Take a source from an agent. What is loaded stays loaded; other agents keep it."""
    rows = await (await door.sources(agent)).remove(source)
    lines = [
        line(("ok", "✓ "), "detached ", ("name", row.name), f" ({row.done:,})") for row in rows
    ]
    return Result({"detached": [source_json(row) for row in rows]}, lines)


@verb(sources, opens=Opens.READABLE, scopes=("read",))
@click.option("--loaded", is_flag=True, help="Those that were loaded for all agents.")
async def list_(door: Door, *, agent: OfAgent, loaded: bool) -> Result:
    """List the sources. Shows their kind, their hash, and how much of each is stored."""
    rows = await (door.workspace.loaded_sources() if loaded else await door.sources(agent)).list()
    hint = "" if rows else "There is none yet. Next: knapper sources add PATH"
    has = {row.hash for row in rows}
    others = (
        []
        if loaded
        else [row for row in await door.workspace.loaded_sources().list() if row.hash not in has]
    )
    if others:
        hint = f"{len(others):,} more can be attached: knapper sources list --loaded"
    return Result({"sources": [source_json(row) for row in rows]}, source_lines(rows), hint)


@verb(sources, scopes=("edit",))
@click.option(
    "--loaded",
    is_flag=True,
    help="Of those that were loaded for all agents; agents that have it keep it.",
)
async def remove(door: Door, source: str, *, agent: OfAgent, loaded: bool) -> Result:
    """Remove a source with its passages. By its name, the beginning of its hash, or the folder it came with."""
    rows = await (door.workspace.loaded_sources() if loaded else await door.sources(agent)).remove(
        source
    )
    lines = [line(("ok", "✓ "), "forgot ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"removed": [source_json(row) for row in rows]}, lines)


# Sources as JSON and as lines: the results of adding them, and the list of an agent's sources.

_FILES = {"added": "added", "replaced": "replaced", "resumed": "resumed", "there": "there already"}
_NAMED = 5
Json = dict[str, Any]  # Any: JSON


def report_lines(reports: Sequence["SourceReport"]) -> list[Line]:
    """Return a line with the result for each source, or one line for a whole folder."""
    if len(reports) > 1 and reports[0].folder:
        folder, files = reports[0].folder, Counter(str(report.outcome) for report in reports)
        parts = [
            f"{files[outcome]:,} {words}" for outcome, words in _FILES.items() if files[outcome]
        ]
        passages = sum(report.passages for report in reports if report.outcome != "there")
        refused = [
            report.name.removeprefix(f"{folder.rstrip('/')}/")
            for report in reports
            if report.outcome == "refused"
        ]
        names = ", ".join(refused[:_NAMED]) + (", …" if len(refused) > _NAMED else "")
        left_out = f"; left out {len(refused):,} without text to read: {names}" if refused else ""
        added = ", ".join(parts) or "none added"
        told = f": {len(reports):,} files, {added}; {counted(passages, 'passage')}{left_out}."
        is_any = len(refused) < len(reports)
        return [line(("ok", "✓ ") if is_any else ("bad", "✗ "), ("name", folder), told)]
    return [
        line(
            ("bad", "✗ ") if report.outcome == "refused" else ("ok", "✓ "),
            ("name", report.name),
            str(report)[len(report.name) :],
        )
        for report in reports
    ]


def source_json(row: "DocumentRow") -> Json:
    """Return a source as JSON, with the number of stored `passages` and their `total`."""
    facts: Json = {"name": row.name, "kind": row.kind, "hash": row.hash, "at": row.at}
    return {**facts, "passages": row.done, "total": row.total, "complete": row.complete}


def source_lines(rows: Sequence["DocumentRow"]) -> list[Line]:
    """Return the sources as a table."""
    cells = []
    for row in rows:
        many = counted(row.done, "passage")
        if not row.complete:
            many = f"{row.done:,} of {row.total:,} passages; add it again to continue"
        cells.append((row.name, row.kind, row.hash[:8], shown_time(row.at), many))
    return columns(cells, ["name", "", "dim", "dim", "dim"])
