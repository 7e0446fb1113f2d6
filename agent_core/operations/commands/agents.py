"""`knapper agents`, `helpers` and `worker`: agents as files, agents that work together, and those that others call."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_core.base import machine
from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.operations.operation import Opens
from agent_core.views.faults import turn_fault
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, Span, counted, line
from agent_core.views.verdicts import problem_lines

from ..verb import SECONDS, AgentName, Door, Reason, slash, verb

if TYPE_CHECKING:  # slow to import
    from agent_core.base.events import Event
    from agent_core.views import agent_view
    from agent_core.workspace.helper_changes import HelperVerdict
else:
    agent_view = LateModule("agent_core.views.agent_view")

_WATCH_S = 1.0


@click.group()
def agents() -> None:
    """List, show and delete agents; export or import one as a file; run those that work together, and steer them.

    To make one, talk to it: knapper run --agent NAME
    """


@slash(
    "agents [tree | watch | pause NAME | resume NAME | stop NAME | answer NAME TEXT | route NAME TO]",
    "List the agents of this workspace, * marks the current one; `tree` (or `watch`, live) shows what they do; or"
    " steer one. /switch NAME makes one.",
    takes="tree watch pause resume stop answer route, <agent>",
    in_turn=True,
    shows="(?:tree|watch)?",
    page="the room Agents",
)
@verb(agents, opens=Opens.NOTHING, scopes=("read", "chat"))
async def list_(door: Door) -> Result:
    """List the agents. Shows how much each has said and remembers."""
    async with door.state() as state:
        data = await agent_view.agents_listing(state)
    hint = "" if data["agents"] else "Nobody has talked to an agent here yet. Next: knapper run"
    return Result(data, agent_view.listing_lines(data, door.agent_name), hint)


@verb(agents, opens=Opens.NOTHING, scopes=("read",))
async def show(door: Door, name: AgentName) -> Result:
    """Show one agent. Includes its settings, blocks, sections and sources, with counts of each."""
    async with door.state() as state:
        data = await agent_view.agent_facts(state, name, door.token)
    return Result(data, agent_view.facts_lines(data))


@verb(agents, opens=Opens.NOTHING, scopes=("admin",))
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
async def delete(door: Door, name: AgentName, *, is_sure: bool) -> Result:
    """Delete an agent: its conversation, memory and recorded calls. What it shares with others stays."""
    async with door.state() as state:
        if not await state.store.has_agent(name):  # one that cannot be read can be deleted, too
            await state.moves.missing(name)
        question = f"Delete {name} with all that it remembers?"
        if not is_sure and not await door.agrees(
            question, "Give -y to delete without asking.", is_final=True
        ):
            return Result(None, aside=[line(("dim", "Nothing was deleted."))], code=1)
        await door.make_free(name)
        async with state.alone(name):
            await state.moves.delete(name)
    return Result({"deleted": name}, [line(("ok", "✓ "), "deleted ", ("name", name))])


@slash("save [FILE]", "Write this agent to FILE, as one JSON document.", takes="<path>")
@verb(agents, opens=Opens.NOTHING)
@click.argument("file", default="-", metavar="[FILE]")
async def export(door: Door, name: AgentName, file: str) -> Result:
    """Export an agent as one JSON document. Writes to FILE, which must not exist, or to standard output."""
    from agent_core.workspace.portable import write_file

    async with door.state() as state:
        text = await state.moves.export(name)
    if file == "-":
        sys.stdout.write(text)
        return Result(None)
    await asyncio.to_thread(write_file, file, text)
    summary = line(("ok", "✓ "), ("name", name), f" is in {file}")
    return Result({"agent": name, "file": file, "bytes": len(text.encode())}, [summary])


@verb(agents, opens=Opens.NOTHING)
@click.argument("file", metavar="FILE")
@click.option("--as", "name", default="", metavar="NAME", help="The name of the imported agent.")
@click.option(
    "--only", default="", metavar="NAME", help="Import only this agent, if the file has several."
)
@click.option(
    "--share",
    is_flag=True,
    help="Share the blocks that already exist here, instead of copying them.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be imported, and write nothing.")
async def import_(door: Door, file: str, **options: Any) -> Result:  # Any: the options above
    """Create an agent from a file. Accepts files from `agents export`, MemGPT's save_to_json_file, or Letta (.af).

    Nothing in the file is run, and no agent is overwritten. Use - for standard input. The report says how each part was
    imported, and what was left out.
    """
    from agent_core.workspace.portable import ImportOptions, read_file

    text = read_file(file)
    request = ImportOptions(file_name=Path(file).stem, **options)
    async with door.state() as state:
        reports = await state.moves.take_in(text, request)
    lines = [
        row
        for report in reports
        for row in agent_view.report_lines(report, is_tried=request.dry_run)
    ]
    hint = f"Next: knapper run --agent {reports[0].name}" if reports and not request.dry_run else ""
    return Result(
        {"agents": [report.to_json() for report in reports], "dry_run": request.dry_run},
        lines,
        hint,
    )


@verb(agents, opens=Opens.ASKING)
@click.option("--until-idle", is_flag=True, help="End when nothing is due and no turn runs.")
async def run(door: Door, *, until_idle: bool) -> Result:
    """Run agents without a prompt: what others sent them, until Ctrl-C. Shows one line for each turn."""
    counts = {"turns": 0}

    def hear(event: "Event") -> None:
        counts["turns"] += event.type == "turn_ended"
        door.show(agent_view.behind_lines(event))

    async with door.workspace.runner(
        hear, on_fault=lambda *fault: door.show([turn_fault(*fault)])
    ) as runner:
        ended = asyncio.Event()
        work = asyncio.create_task(runner.run(until_idle=until_idle))
        work.add_done_callback(lambda _: ended.set())
        with suppress(RuntimeError, ValueError):  # not in the main thread
            machine.on_signal(signal.SIGINT, ended.set)
        if not until_idle:
            door.show([line(("dim", "Waiting for what agents are sent. Ctrl-C ends it."))])
        await ended.wait()
        if work.done():
            work.result()
    return Result({"turns": counts["turns"]})


@slash("agents tree")
@verb(agents, opens=Opens.NOTHING, scopes=("read",))
async def tree(door: Door) -> Result:
    """Show what all agents do: state, who waits for whom since when, what was spent, and why."""
    from agent_core.workspace.agent_files import file_problems

    async with _open_supervision(door) as (supervision, state, files):
        states = await supervision.tree()
        problems = file_problems(state.root, files)
    hint = "" if states else "There is none yet. An agent is a file: agents/NAME.toml"
    document = {
        "agents": [state.to_json() for state in states],
        "problems": [one.to_json() for one in problems],
    }
    return Result(
        document,
        agent_view.tree_lines(states),
        hint,
        aside=[line(("bad", str(problem))) for problem in problems],
    )


@slash("agents watch")
@verb(agents, opens=Opens.NOTHING)
@click.option(
    "--seconds",
    type=SECONDS,
    metavar="S",
    default=None,
    help="End after so long; by default, with Ctrl-C.",
)
async def watch(door: Door, seconds: float | None) -> Result:
    """Show the tree again whenever it changes."""
    shown: list[Line] = []
    async with _open_supervision(door) as (supervision, *_):
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    lines = agent_view.tree_lines(await supervision.tree())
                    if lines != shown:
                        door.show([*([line("")] if shown else []), *lines])
                        shown = lines
                    await asyncio.sleep(_WATCH_S)
    return Result(None)


@slash("agents pause", last="why")
@verb(agents, opens=Opens.NOTHING, scopes=("edit",))
@click.option("--why", default="", help="The reason, for who waits for it.")
async def pause(door: Door, name: AgentName, *, why: str) -> Result:
    """Pause an agent: its turns wait, its inbox goes on filling."""
    from agent_core.storage import PauseAgent

    async with _open_supervision(door) as (supervision, state, _):
        supervision.check(name)
        await state.store.apply([PauseAgent(name, why)])
    return _success({"paused": name}, f"{name} is paused", f"knapper agents resume {name}")


@slash("agents resume")
@verb(agents, opens=Opens.NOTHING, scopes=("edit",))
async def resume(door: Door, name: AgentName) -> Result:
    """Resume a paused agent, or open a thread again that is stuck."""
    async with _open_supervision(door) as (supervision, *_):
        threads = await supervision.resume(name)
    say = f'tell it how: knapper run --agent {name} --message "…"' if threads else ""
    return _success(
        {"resumed": name, "threads": threads},
        f"{name} {'may go on' if threads else 'goes on'}",
        say,
    )


@slash("agents stop", last="why")
@verb(agents, opens=Opens.NOTHING, scopes=("edit",))
@click.option("--why", default="A person stopped it.", help="The reason.")
async def stop(door: Door, name: AgentName, *, why: str) -> Result:
    """Stop the threads that an agent works in: nobody waits any more, and what waits in them is dropped."""
    async with _open_supervision(door) as (supervision, *_):
        threads = await supervision.stop(name, why)
    return _success({"stopped": threads}, f"stopped {counted(len(threads), 'thread')}")


@slash("agents answer")
@verb(agents, opens=Opens.NOTHING)
async def answer(door: Door, name: AgentName, text: str) -> Result:
    """Answer in place of an agent what others ask it."""
    async with _open_supervision(door) as (supervision, *_):
        count = await supervision.answer(name, text)
    return _success({"answered": count}, f"answered {count} in place of {name}")


@slash("agents route")
@verb(agents, opens=Opens.NOTHING)
async def route(door: Door, name: AgentName, to: AgentName) -> Result:
    """Put what others ask an agent to another one."""
    async with _open_supervision(door) as (supervision, *_):
        count = await supervision.route(name, to)
    return _success({"routed": count, "to": to}, f"{count} of {name} went to {to}")


@asynccontextmanager
async def _open_supervision(
    door: Door,
) -> AsyncIterator[Any]:  # Any: view, state, files: slow to import
    from agent_core.storage.agent_store import PASSING
    from agent_core.storage.folder import ring
    from agent_core.workspace.agent_files import AgentFiles, group_names
    from agent_core.workspace.supervision import Supervision

    async with door.state() as state:
        groups = group_names(state.root)
        files = AgentFiles(state.root, state.agent, lambda: groups)
        stored = [name for name in await state.store.agent_names() if not name.startswith(PASSING)]
        names = dict.fromkeys([*files.names(), *groups, *stored])
        yield Supervision(state.store, names, groups, files.folder.must_hold), state, files
        ring(state.folder)


def _success(document: dict[str, Any], text: str, hint: str = "") -> Result:  # Any: JSON
    return Result(document, [line(("ok", "✓ "), text)], f"Next: {hint}" if hint else "")


# `knapper helpers`: narrow agents that other agents call as functions.

_file = click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="The file; - reads standard input.",
)


@click.group()
def helpers() -> None:
    """List, show, check, create, edit and delete helpers; propose new ones."""


@verb(helpers, "list", opens=Opens.READABLE, scopes=("read",))
async def list_helpers(door: Door) -> Result:
    """List the helpers, and the files that were rejected."""
    data, problems = (
        await agent_view.helpers_document(door.workspace),
        door.workspace.helpers.problems,
    )
    is_empty = not data["helpers"] and not problems
    hint = (
        "There is no helper yet. Next: knapper helpers create NAME --file FILE" if is_empty else ""
    )
    return Result(data, [*agent_view.list_lines(data["helpers"]), *problem_lines(problems)], hint)


@verb(helpers, "show", opens=Opens.READABLE, scopes=("read",))
async def show_helper(door: Door, name: str) -> Result:
    """Show a helper: its schema, functions, budget, file, and its last runs."""
    data = await agent_view.helper_document(door.workspace, name)
    return Result(
        data, [*agent_view.helper_facts_lines(data), *agent_view.source_lines(data["text"])]
    )


@verb(helpers)
@click.argument("name", default="", metavar="[NAME|FILE]")
async def check(door: Door, name: str) -> Result:
    """Judge a helper, or the file of one, without changing anything. Without NAME, judge all."""
    library = door.workspace.helpers
    await library.refresh(is_told=False)
    if not name:
        problems = [problem.to_json() for problem in library.problems]
        count = len(library.helpers)
        mark: Span = ("dim", "  ") if problems else ("ok", "✓ ")
        good = [
            line(mark, "1 helper is in force" if count == 1 else f"{count} helpers are in force")
        ]
        return Result(
            {"problems": problems},
            [*problem_lines(library.problems), *good],
            code=1 if problems else 0,
        )
    is_file = name.endswith(".toml") or name == "-"
    text = door.read(name) if is_file else library.text(name)
    verdict = await door.workspace.helper_changes.check(Path(name).stem if is_file else name, text)
    return _verdict_result(verdict, "is a good helper")


@verb(helpers, opens=Opens.ASKING, scopes=("edit",))
@_file
async def create(door: Door, name: str, *, file: str | None, reason: Reason) -> Result:
    """Create a helper from a file, if it passes its gate."""
    if file is None:
        raise UsageError(
            "A helper is made from a file.", fix=f"Next: knapper helpers create {name} --file FILE"
        )
    verdict = await door.workspace.helper_changes.create(
        name, door.read(file), door.workspace.by_user(reason)
    )
    return _verdict_result(verdict, "was created")


@verb(helpers, opens=Opens.ASKING, scopes=("edit",))
@_file
async def edit(door: Door, name: str, *, file: str | None, reason: Reason) -> Result:
    """Replace the file of a helper, if the new one passes its gate."""
    if file is None:
        path = f"helpers/{name}.toml"
        raise UsageError(
            "The new text comes from a file.",
            fix=f"Give it with --file FILE, or edit {path} itself.",
        )
    verdict = await door.workspace.helper_changes.replace(
        name, door.read(file), door.workspace.by_user(reason)
    )
    return _verdict_result(verdict, "was changed")


@verb(helpers, "delete", opens=Opens.ASKING, scopes=("edit",))
async def delete_helper(door: Door, name: str, *, reason: Reason) -> Result:
    """Delete a helper that no other helper names. Its history is kept."""
    verdict = await door.workspace.helper_changes.delete(name, door.workspace.by_user(reason))
    return _verdict_result(verdict, "was deleted", f"To undo: knapper helpers rollback {name}")


@verb(helpers, opens=Opens.READABLE, scopes=("read",))
async def history(door: Door, name: str) -> Result:
    """Show the versions of a helper: when, by whom and why, those of a deleted one too."""
    await door.workspace.helpers.refresh(is_told=False)
    versions = await door.workspace.helpers.history(name)
    return Result({"name": name, "versions": versions}, agent_view.history_lines(versions))


@verb(helpers, opens=Opens.ASKING, scopes=("edit",))
async def rollback(door: Door, name: str, version: str = "", *, reason: Reason) -> Result:
    """Restore an earlier version of a helper, or a deleted one; by default, one version further back each time."""
    verdict = await door.workspace.helper_changes.rollback(
        name, version, door.workspace.by_user(reason)
    )
    return _verdict_result(verdict, "was restored")


@verb(helpers, scopes=("read",))
async def propose(door: Door) -> Result:
    """Draft a helper for each set of functions that recorded turns used together, with the figures why."""
    data = await door.workspace.helper_proposals()
    least = "in three turns, and in half of the turns of the less used one"
    hint = "" if data else f"No functions were used together often enough: {least}."
    return Result({"proposals": data}, agent_view.proposal_lines(data), hint)


def _verdict_result(verdict: "HelperVerdict", done: str, hint: str = "") -> Result:
    return Result(
        verdict,
        agent_view.verdict_lines(verdict, done),
        hint if verdict.admitted else "",
        0 if verdict.admitted else 1,
    )
