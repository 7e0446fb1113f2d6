"""`knapper init`, `doctor`, `schema`, `state`, `storage` and `secrets`: a workspace, its surroundings and its state."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from agent_core.base.clock import Clock
from agent_core.base.errors import NoWorkspace, UsageError, WorkspaceError
from agent_core.base.records import to_json
from agent_core.base.untrusted import visible
from agent_core.operations.command_context import CliContext, workspace_command
from agent_core.operations.operation import Opens
from agent_core.operations.verb import Door, verb
from agent_core.views.faults import fault_lines
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, Span, columns, indented, line, warned
from agent_core.views.verdicts import problem_lines
from knapper.terminal.dialog import ask_hidden
from sandbox.wire.lines import bare_lines

_LATE_S = 60.0  # an event that is overdue for longer means that there are too few workers
_BAD: Span = ("bad", "✗ ")
_AT_LEVEL = {
    "apart": "at apart a worker's root alone confines its files, and each call imports its packages: docs/platforms.md",
    "core": "at core scratch has no total size, and whether a path is there can be seen: docs/platforms.md",
}


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@partial(workspace_command, searches=False)
def init(context: CliContext, folder: Path | None) -> None:
    """Create a workspace. It gets functions/ with six files of starters, and knapper.toml; nothing is overwritten."""
    from agent_core.workspace.scaffold import create

    root = folder or context.root
    names = create(root)
    lines = [line(("ok", "+ "), name) for name in names] or [
        line(("dim", "Everything exists already."))
    ]
    enter = "" if root.resolve() == Path.cwd() else f"cd {root} && "
    context.result({"workspace": str(root), "made": names}, lines)
    context.hint(f"Next: {enter}knapper run")


@verb(opens=Opens.MACHINE)
async def doctor(door: Door) -> Result:
    """Say what works here and what is missing. The exit code is 1 if anything of it is marked with ✗."""
    report = await door.workspace.doctor()
    lines = _doctor_lines(report)
    is_well = not any(span == _BAD for row in lines for span in row)
    return Result(report, lines, code=0 if is_well else 1)


@click.command()
@click.argument(
    "folders",
    metavar="[FOLDER…]",
    nargs=-1,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@workspace_command
def uninstall(context: CliContext, folders: tuple[Path, ...]) -> None:
    """List what Knapper keeps on this machine, and the commands that would remove it. Nothing is deleted.

    Workspaces are found in your home folder and in each FOLDER.
    """
    from agent_core.workspace.footprint import footprint

    found = footprint(context.root, folders)
    rows = [(f"{place.size / 1e6:,.1f} MB", place.path, place.holds) for place in found.places]
    lines = columns(rows, ("dim", "name", "")) or [
        line("Nothing is kept here but the program itself.")
    ]
    lines += [line(("bad", "! "), problem) for problem in found.problems]
    lines.append(
        line("End what runs, then type what you want to remove; the functions of a workspace stay:")
    )
    lines += [line("  ", ("name", visible(command))) for command in found.commands]
    context.result({**to_json(found), "commands": found.commands}, lines)
    context.hint("Nothing was deleted.")


def _doctor_lines(report: dict[str, Any]) -> list[Line]:  # Any: the published shape of `doctor`
    sandbox = report["sandbox"]
    absent: Span = (
        _BAD if sandbox["level"] == "none" else ("bad", "! ")
    )  # the other layers still confine workers
    lines = [
        line(
            ("strong", "knapper "),
            f"{report['version']}, Python {report['python']}, {report['platform']}",
        ),
        line(_mark(sandbox["level"] != "none"), f"sandbox: {sandbox['level']}"),
        *(
            line("  ", ("ok", "✓ ") if is_present else absent, layer)
            for layer, is_present in sandbox["layers"].items()
        ),
        *(line("  ", ("bad", f"missing: {layer}")) for layer in sandbox["missing"]),
        *(
            line(("dim", f"  {note}"))
            for level, note in _AT_LEVEL.items()
            if level == sandbox["level"]
        ),
        *(
            line(("dim", f"  {name}: {value}"))
            for name, value in sandbox.get("resources", {}).items()
        ),
    ]
    if report["grants"]["unattended"] == "file":
        lines.append(
            line(
                (
                    "bad",
                    "! grants: if nobody can be asked, functions/grants.toml is in force without an approval",
                )
            )
        )
    for room in ("model", "embedding", "packages", "storage"):
        status = report.get(room) or {}
        facts = [
            status[key]
            for key in ("why", "database", "problem", "recovered", "vectors", "fix")
            if status.get(key)
        ]
        first, *ways = bare_lines(" ".join(facts) or "whole")
        lines += [
            line(_mark(bool(status.get("ok"))), f"{room}: {first}"),
            *(line("  ", text) for text in ways),
        ]
        if window := status.get("window"):
            told = [line(f"window: {window['tokens']:,} tokens, {window['source']}")]
            lines += indented(warned(window["warning"] or "") or told)
        if loosened := status.get("loosened"):
            listed = ", ".join(f"{name} ({why})" for name, why in loosened.items())
            lines.append(
                line(f"  sent without a strict schema, which cannot express them: {listed}")
            )
    lines += [
        line(_BAD, f"network: {row['problem']} {row['fix']}")
        for row in report["network"]["problems"]
    ]
    return [*lines, *_database_lines(report["storage"], report["version"])]


def _database_lines(storage: dict[str, Any], version: str) -> list[Line]:  # Any: JSON
    """Return lines about a shared database: its health, its waiting events, and its processes."""
    if (health := storage.get("health")) is None:
        return []
    waiting, oldest_s = storage["backlog"]["waiting"], storage["backlog"]["oldest_s"]
    waits = "no due event waits"
    if waiting:
        said = (
            "1 due event waits, for"
            if waiting == 1
            else f"{waiting:,} due events wait, the oldest for"
        )
        waits = f"{said} {oldest_s:,.0f} s"
    lines = [
        line(
            f"  {health['engine']}, schema {health['schema']}, answered in {health['answer_ms']:g} ms"
        ),
        line("  ", _mark(oldest_s < _LATE_S), waits),
    ]
    for process in storage["processes"]:
        facts = [process["name"]]
        if process["slots"]:
            facts.append(f"{process['slots']} agents at once")
        if process["agents"]:
            facts.append(f"has {', '.join(process['agents'])}")
        if not process["is_alive"]:
            facts.append(f"not heard for {process['silent_s']:.0f} s")
        if process["version"] != version:
            facts.append(f"is version {process['version'] or 'unknown'}, and this is {version}")
        if skew_s := process["skew_s"]:
            facts.append(
                f"its clock is {abs(skew_s):.1f} s {'behind' if skew_s > 0 else 'ahead of'} the database's"
            )
        is_well = process["is_alive"] and process["version"] == version and not skew_s
        lines.append(line("  ", _mark(is_well), ", ".join(facts)))
    return lines


def _mark(good: bool) -> Span:  # noqa: FBT001  (its only argument)
    return ("ok", "✓ ") if good else _BAD


@click.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@workspace_command
def schema(context: CliContext, files: tuple[Path, ...]) -> int:
    """Show the schemas of the functions in FILES. Nothing is run, so types that need an import are left open."""
    from agent_core.base.problem import Place, Problem
    from agent_core.registry.function import Function
    from agent_core.registry.schema import read_module
    from agent_core.registry.source import ModuleSource, hash_of

    functions, problems, lines = list[Function](), list[Problem](), list[Line]()
    for path in files:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(
                Problem("unreadable", f"{path} cannot be read: {error}", Place(path.as_posix()))
            )
            continue
        reading = read_module(ModuleSource(path.stem, path.as_posix(), text, hash_of(text)))
        functions += reading.functions
        problems += reading.problems
    for function in functions:
        lines.append(line(("name", function.name), ("dim", f"  {function.path}:{function.line}")))
        lines += (line("  ", text) for text in bare_lines(function.description))
        required = function.parameters.get("required", ())
        for name, parameter in function.parameters.get("properties", {}).items():
            kind = parameter.get("type") or ("any of" if "anyOf" in parameter else "value")
            word = kind if name in required else f"{kind}, optional"
            lines.append(
                line("    ", ("strong", name), f" ({word}): {parameter.get('description', '')}")
            )
    context.result({"functions": functions, "problems": problems}, lines + problem_lines(problems))
    return 1 if any(problem.severity != "warns" for problem in problems) else 0


@click.group(hidden=True)  # error messages name it when it is needed
def state() -> None:
    """Set aside a state file that does not carry your seal, or adopt one that was set aside."""


@state.command("set-aside")
@workspace_command
def set_aside(context: CliContext) -> None:
    """Set a state file that does not carry your seal aside in .knapper/, unopened. A new one is begun with the next
    command.
    """
    from agent_core.base.errors import StorageError
    from agent_core.storage import STATE_FILE, prepare_state_dir
    from agent_core.storage import set_aside as put_aside

    folder = prepare_state_dir(context.folder)
    if not (name := put_aside(folder / STATE_FILE, Clock())):
        raise StorageError(f"There is no state file in {folder} that does not carry your seal.")
    context.result({"set_aside": name}, [line(("ok", "✓ "), f"set aside unopened as {name}")])
    context.hint(f"If you trust whoever made it: knapper state adopt {name}")


@state.command()
@click.argument("file")
@workspace_command
def adopt(context: CliContext, file: str) -> None:
    """Adopt FILE, which was set aside in .knapper/ because it did not carry your seal. No process may have the state
    open.

    Only do so if you trust whoever made it: its conversations, memory and recorded calls become yours.
    """
    from agent_core.storage import STATE_FILE, prepare_state_dir
    from agent_core.storage import adopt as take_over

    folder = prepare_state_dir(context.folder)
    replaced = take_over(folder / STATE_FILE, file, Clock())
    note = f"; the previous one is kept as {replaced}" if replaced else ""
    context.result(
        {"adopted": file, "replaced": replaced},
        [line(("ok", "✓ "), f"{file} is your state now{note}")],
    )


@click.group()
def storage() -> None:
    """Check, measure, clean and move the state of a workspace."""


@verb(storage, opens=Opens.NOTHING)
async def check(door: Door) -> Result:
    """Read the whole state, and say what is wrong with it. The exit code is 1 if anything is."""
    async with door.state() as state:
        problem = await state.store.check()
        journal = await state.store.check_journal()
    problems = [*([problem] if problem else []), *journal.faults]
    read = f"{journal.turns:,} turns with {journal.entries:,} entries"
    shown = [line(("bad", f"✗ {one}")) for one in problems] or [
        line(("ok", "✓ whole"), f": {read}")
    ]
    document = {"ok": not problems, "problem": problem, "journal": journal}
    return Result(document, shown, code=1 if problems else 0)


@verb(storage, opens=Opens.NOTHING)
async def stats(door: Door) -> Result:
    """Show where the state is, and how many rows each of its tables has."""
    from agent_core.storage import row_counts

    async with door.state() as state:
        counts, place = await row_counts(state.store), state.store.place
    lines = [line(f"  {count:>10,}  ", ("name", name)) for name, count in counts.items() if count]
    return Result({"place": place, "rows": counts}, [line(("strong", place)), *lines])


@verb(storage, opens=Opens.NOTHING)
async def vacuum(door: Door) -> Result:
    """Give back the room of what was deleted. Others wait meanwhile."""
    async with door.state() as state:
        await state.store.vacuum()
    return Result({"vacuumed": True}, [line(("ok", "✓ "), "vacuumed")])


@storage.command()
@click.option(
    "--from", "source", required=True, metavar="URL", help="sqlite:///PATH or a database's address."
)
@click.option(
    "--to", "target", required=True, metavar="URL", help="An empty state; a file is created."
)
@click.option("--resume", is_flag=True, help="Resume an interrupted copy.")
@workspace_command
def copy(context: CliContext, source: str, target: str, resume: bool) -> None:  # noqa: FBT001  (click passes it)
    """Copy a whole state, and compare the two row by row. No other program may write meanwhile."""
    if source == target:
        raise UsageError(
            "A state cannot be copied to itself.", fix="Name another place after --to."
        )
    from agent_core.storage import copy_store, open_store

    async def run() -> dict[str, int]:
        clock = Clock()
        async with (
            open_store(source, clock=clock, must_exist=True) as first,
            open_store(target, clock=clock) as second,
        ):
            return await copy_store(first, second, resume=resume)

    counts = asyncio.run(run())
    context.result(
        {"copied": counts},
        [line(("ok", "✓ "), f"{sum(counts.values()):,} rows, compared by their hashes")],
    )
    if "://" in target and not target.startswith("sqlite:"):
        context.hint("To use it in a workspace: export KNAPPER_STORAGE_URL=… with this address")


@storage.command()
@workspace_command
def claim(context: CliContext) -> None:
    """Give the database to this folder alone: its functions are the ones that count from now on."""
    asyncio.run(_settle(context, joins=False))
    context.result(
        {"claimed": True}, [line(("ok", "✓ "), "the database belongs to this workspace now")]
    )


@storage.command()
@workspace_command
def join(context: CliContext) -> None:
    """Let this folder share the database: it becomes a copy of the functions there, and both follow each other."""
    asyncio.run(_settle(context, joins=True))
    context.result({"joined": True}, [line(("ok", "✓ "), "this workspace shares the database now")])


async def _settle(context: CliContext, *, joins: bool) -> None:
    from agent_core.base.settings import load
    from agent_core.functions.service.change_executor import FolderCopy
    from agent_core.storage import open_store, prepare_state_dir, workspace_id

    root = context.folder
    url = load(root).storage.url
    if url is None:
        raise UsageError(
            "This workspace keeps its state in a file.", fix="Next: knapper storage copy --help"
        )
    workspace = workspace_id(prepare_state_dir(root))
    async with open_store(url, clock=Clock()) as store:
        await (store.join(workspace) if joins else store.claim(workspace))
        FolderCopy(root, store).overrule({} if joins else await store.manifest())


@storage.command()
@workspace_command
def confirm(context: CliContext) -> None:
    """Allow the database that knapper.toml names: conversations and memory are kept there from now on."""
    from agent_core.access.grants.record import confirm as keep
    from agent_core.base.settings import load, storage_of_file

    named = storage_of_file(load(context.root))
    if named is None:
        raise UsageError("knapper.toml names no database.", fix='Write: [storage] url = "ADDRESS"')
    keep(*named)
    context.result({"confirmed": True}, [line(("ok", "✓ "), "confirmed")])


@click.group()
def secrets() -> None:
    """Set, list and remove the secrets that functions may be given."""


@secrets.command("set")
@click.argument("name")
@workspace_command
def set_(context: CliContext, name: str) -> None:
    """Store a secret in a file that only you can read. Its value is asked for, or read from standard input."""
    from agent_core.access.secrets import Secrets
    from agent_core.access.secrets.source import check_name, shown

    check_name(name)
    store = Secrets(_workspace(context))
    if sys.stdin.isatty():
        if not sys.stderr.isatty():
            raise UsageError(
                "There is no terminal for the question.", fix="Give the value on standard input."
            )
        typed = ask_hidden(f"The value of {name} (not shown as you type):")
    else:
        try:
            typed = sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise UsageError("Standard input is not text.") from error
    if not typed:
        raise UsageError(
            "No value was given, so nothing was set.", fix=f"Next: knapper secrets set {name}"
        )
    store.put(name, typed)
    by = store.variables().get(name)
    lines = [line(("ok", "✓ "), ("name", name), f" is set, in {shown(store.path)}.")]
    lines += (
        [line(("warn", "! "), f"The variable {by} takes precedence while it is set.")] if by else []
    )
    context.result({"name": name, "from": store.places()[name]}, lines)
    context.hint(f"A function gets it with: knapper functions grant NAME --secret {name}")


@secrets.command("list")
@workspace_command
def list_(context: CliContext) -> int:
    """List the names: where each comes from, and which functions may read it. Values are never shown."""
    from agent_core.access.secrets import Secrets

    root = _workspace(context)
    readers: dict[str, list[str]] = {}
    if root:
        from ..shell_door import with_workspace

        for row in with_workspace(
            context, lambda workspace: workspace.functions.grants.listing()
        ).grants:
            for secret in row.in_force.secrets:
                readers.setdefault(secret, []).append(row.name)
    store = Secrets(root)
    places, problem = store.variables(), None
    try:
        places = store.places()
    except WorkspaceError as error:
        problem = error
    names = sorted({*places, *readers})
    rows: list[dict[str, Any]] = [  # Any: JSON
        {"name": name, "from": places.get(name), "functions": readers.get(name, [])}
        for name in names
    ]
    problem_data = (
        {"code": problem.code, "message": problem.message, "fix": problem.fix} if problem else None
    )
    cells = [
        (
            shown["name"],
            shown["from"] or "not set",
            ", ".join(shown["functions"]) or "not granted to any function yet",
        )
        for shown in rows
    ]
    lines = columns(cells, ("name", "", "dim"))
    lines += fault_lines(problem.message, problem.fix) if problem else []
    context.result({"secrets": rows, "problem": problem_data}, lines)
    if not rows and not problem:
        context.hint("No secret is set. Next: knapper secrets set NAME")
    return 1 if problem else 0


@secrets.command()
@click.argument("name")
@workspace_command
def remove(context: CliContext, name: str) -> None:
    """Remove a secret from your file."""
    from agent_core.access.secrets import Secrets

    store = Secrets(_workspace(context))
    store.remove(name)
    still = store.variables().get(name)
    lines = [line(("ok", "✓ "), ("name", name), " is removed.")]
    lines += [line(("warn", "! "), f"The variable {still} still sets it.")] if still else []
    context.result({"name": name, "from": still}, lines)


def _workspace(context: CliContext) -> Path | None:
    """Return the workspace folder, or None if there is none, because secrets do not need one."""

    try:
        return context.folder
    except NoWorkspace:
        return None
