"""`knapper init`, `doctor`, `schema` and `state`: create a workspace and check its surroundings."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from sandbox.wire.lines import bare_lines

from ..cli_context import CliContext, workspace_command
from ..render.verdicts import problem_lines
from ..styled_lines import Line, Span, indented, line, warned
from .verb import Door, Opens, Result, verb

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
    """Create a workspace. It gets functions/ with five files of starters, and knapper.toml; nothing is overwritten."""
    from agent_core.workspace.workspace import Workspace

    root = folder or context.root
    names = Workspace.create(root)
    lines = [line(("ok", "+ "), name) for name in names] or [line(("dim", "Everything exists already."))]
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


def _doctor_lines(report: dict[str, Any]) -> list[Line]:  # Any: the published shape of `doctor`
    sandbox = report["sandbox"]
    absent: Span = _BAD if sandbox["level"] == "none" else ("bad", "! ")  # the other layers still confine workers
    lines = [
        line(("strong", "knapper "), f"{report['version']}, Python {report['python']}, {report['platform']}"),
        line(_mark(sandbox["level"] != "none"), f"sandbox: {sandbox['level']}"),
        *(line("  ", ("ok", "✓ ") if is_present else absent, layer) for layer, is_present in sandbox["layers"].items()),
        *(line("  ", ("bad", f"missing: {layer}")) for layer in sandbox["missing"]),
        *(line(("dim", f"  {note}")) for level, note in _AT_LEVEL.items() if level == sandbox["level"]),
        *(line(("dim", f"  {name}: {value}")) for name, value in sandbox.get("resources", {}).items()),
    ]
    if report["grants"]["unattended"] == "file":
        lines.append(
            line(("bad", "! grants: if nobody can be asked, functions/grants.toml is in force without an approval"))
        )
    for room in ("model", "embedding", "packages", "storage"):
        status = report.get(room) or {}
        facts = [
            status[key] for key in ("why", "database", "problem", "recovered", "vectors", "fix") if status.get(key)
        ]
        first, *ways = bare_lines(" ".join(facts) or "whole")
        lines += [line(_mark(bool(status.get("ok"))), f"{room}: {first}"), *(line("  ", text) for text in ways)]
        if window := status.get("window"):
            told = [line(f"window: {window['tokens']:,} tokens, {window['source']}")]
            lines += indented(warned(window["warning"] or "") or told)
        if loosened := status.get("loosened"):
            listed = ", ".join(f"{name} ({why})" for name, why in loosened.items())
            lines.append(line(f"  sent without a strict schema, which cannot express them: {listed}"))
    return [*lines, *_database_lines(report["storage"], report["version"])]


def _database_lines(storage: dict[str, Any], version: str) -> list[Line]:  # Any: JSON
    """Return lines about a shared database: its health, its waiting events, and its processes."""
    if (health := storage.get("health")) is None:
        return []
    waiting, oldest_s = storage["backlog"]["waiting"], storage["backlog"]["oldest_s"]
    waits = "no due event waits"
    if waiting:
        said = "1 due event waits, for" if waiting == 1 else f"{waiting:,} due events wait, the oldest for"
        waits = f"{said} {oldest_s:,.0f} s"
    return [
        line(f"  {health['engine']}, schema {health['schema']}, answered in {health['answer_ms']:g} ms"),
        line("  ", _mark(oldest_s < _LATE_S), waits),
        *(_process_line(process, version) for process in storage["processes"]),
    ]


def _process_line(process: dict[str, Any], version: str) -> Line:  # Any: JSON
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
        facts.append(f"its clock is {abs(skew_s):.1f} s {'behind' if skew_s > 0 else 'ahead of'} the database's")
    is_well = process["is_alive"] and process["version"] == version and not skew_s
    return line("  ", _mark(is_well), ", ".join(facts))


def _mark(good: bool) -> Span:  # noqa: FBT001  (its only argument)
    return ("ok", "✓ ") if good else _BAD


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@workspace_command
def schema(context: CliContext, files: tuple[Path, ...]) -> int:
    """Show the schemas of the functions in FILES. Nothing is run, so types that need an import are left open."""
    from agent_core.workspace.local_models import schema_of

    result = schema_of(files)
    lines: list[Line] = []
    for function in result.functions:
        lines.append(line(("name", function.name), ("dim", f"  {function.path}:{function.line}")))
        lines += (line("  ", text) for text in bare_lines(function.description))
        required = function.parameters.get("required", ())
        for name, parameter in function.parameters.get("properties", {}).items():
            kind = parameter.get("type") or ("any of" if "anyOf" in parameter else "value")
            word = kind if name in required else f"{kind}, optional"
            lines.append(line("    ", ("strong", name), f" ({word}): {parameter.get('description', '')}"))
    context.result(result, lines + problem_lines(result.problems))
    return 1 if any(problem.severity != "warns" for problem in result.problems) else 0


@click.group(hidden=True)  # error messages name it when it is needed
def state() -> None:
    """Set aside a state file that does not carry your seal, or adopt one that was set aside."""


@state.command("set-aside")
@workspace_command
def set_aside(context: CliContext) -> None:
    """Set a state file that does not carry your seal aside in .knapper/, unopened. A new one is begun with the next
    command.
    """
    from agent_core.base.clock import Clock
    from agent_core.base.errors import StorageError
    from agent_core.storage import STATE_FILE, prepare_state_dir
    from agent_core.storage import set_aside as put_aside
    from agent_core.workspace.workspace import Workspace

    folder = prepare_state_dir(Workspace.find(context.root))
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
    from agent_core.base.clock import Clock
    from agent_core.storage import STATE_FILE, prepare_state_dir
    from agent_core.storage import adopt as take_over
    from agent_core.workspace.workspace import Workspace

    folder = prepare_state_dir(Workspace.find(context.root))
    replaced = take_over(folder / STATE_FILE, file, Clock())
    note = f"; the previous one is kept as {replaced}" if replaced else ""
    context.result({"adopted": file, "replaced": replaced}, [line(("ok", "✓ "), f"{file} is your state now{note}")])
