"""`knapper functions`: the commands with which people and scripts manage functions and their packages."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from agent_core.base.errors import UsageError
from agent_core.base.matching import did_you_mean
from agent_core.base.untrusted import one_line
from sandbox.wire.foreign import LOOSE, Malformed, read_json

from ..editor import open_editor
from ..progress import StatusLine
from ..render.function_view import brief_lines, facts_lines, list_lines, match_lines
from ..render.statistics import COMMAND, quarantine_lines, released_lines, unused_hint, unused_lines
from ..render.verdicts import (
    changes_line,
    compact_call,
    examples_lines,
    outcome_lines,
    problem_lines,
    save_lines,
    value_lines,
)
from ..spans import Line, Span, line, plain
from . import granting, history
from .checking import audit, check, export, import_, tend
from .history import judged
from .verb import Door, Opens, Result, verb

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.answers import CallReport
    from agent_core.functions.service.change_texts import ReloadReport
    from agent_core.functions.service.function_facts import FunctionListing
    from agent_core.functions.service.judgment import Judgment
    from agent_core.functions.service.package_grants import PackageListing
    from agent_core.functions.service.ratings import Rated

_MOST = 12
_ARGUMENTS = "The arguments, as one JSON object; - is standard input."


@verb()
@click.option("--clean", "is_clean", is_flag=True, help="Remove packages without a grant from disk and lock.")
async def packages(door: Door, is_clean: bool) -> Result:  # noqa: FBT001  (click hands it in)
    """List the packages that functions were granted, as functions/requirements.lock pins them."""
    packing = door.shop.granting.packages
    if is_clean:
        result = await packing.clean()
        return Result(result, [line(("ok", "✓ "), f"removed {len(result.removed)} folders of packages")])
    data = await packing.listing()
    none = "No function has a package. Next: knapper functions grant NAME --package REQ"
    return Result(data, [*package_lines(data)], "" if data.packages else none, 1 if data.problem else 0)


def package_lines(listing: "PackageListing") -> Iterator[Line]:
    """Yield each set of requirements: its functions, its pinned packages, and whether it is installed."""
    if listing.problem:
        yield line(("bad", "✗ "), listing.problem)
    for row in listing.packages:
        users = ", ".join(row.functions) or "no function"
        state = f"{row.bytes / 1e6:.1f} MB" if row.installed else "not installed: you will be asked when it is called"
        yield line(("name", ", ".join(row.requirements)), ("dim", f"  for {users}  "), state)
        pins = row.pins[:_MOST] + ((f"and {len(row.pins) - _MOST} more",) if len(row.pins) > _MOST else ())
        if pins:
            yield line("  ", one_line(", ".join(pins), 1_000))


STANDINGS = ("draft", "trial", "trusted", "quarantined")

_code_file = click.option(
    "--file", "file", metavar="FILE", type=click.Path(allow_dash=True), help="The source file; - reads standard input."
)


@click.group()
def functions() -> None:
    """List, show, check, create, edit, test and call functions."""


@verb("list", opens=Opens.READABLE)
@click.argument("pattern", default="")
@click.option("--module", default="", help="Only functions of one module.")
@click.option("--standing", type=click.Choice(STANDINGS), help="Only functions with this standing.")
@click.option(
    "--unused",
    is_flag=True,
    help="Only functions that nobody has called for a long time, with the command to delete them.",
)
async def list_(door: Door, pattern: str, module: str, standing: str | None, unused: bool) -> Result:  # noqa: FBT001  (click)
    """List what can be called, and what was rejected. PATTERN is part of a name or description, or a wildcard like
    count_*.
    """
    filters = (pattern, module, standing or "")
    if unused:
        data = await door.shop.unused(*filters)
        return Result(
            data,
            unused_lines(data, door.typed),
            "" if data.functions else "Every function has been called recently.",
        )
    data = await door.shop.list(*filters)
    if door.at_prompt:
        return _listed_at_prompt(door, data, pattern)
    modules = {function.module for function in door.shop.registry.snapshot().functions.values()}
    known = modules if module else door.shop.names()
    none = f"No function matches. {did_you_mean(module or pattern, known, 'Next: knapper run, and ask for one.')}"
    hint = plain(unused_hint(data, "knapper functions list --unused")).strip() if data.functions else none
    return Result(data, list_lines(data, heads=sys.stdout.isatty()), hint, 0 if data.is_whole else 1)


def _listed_at_prompt(door: Door, listing: "FunctionListing", pattern: str) -> Result:
    """Return the list with a head, or all functions as a table to look through."""
    from ..render.function_tables import functions_table

    if not pattern and listing.functions:
        below = (*list_lines(replace(listing, functions=())), *unused_hint(listing, "/functions unused"))
        return Result(listing, table=functions_table(listing, door.shop.source, below))
    why = (
        f"No function has “{one_line(pattern)}” in its name, module or description."
        if pattern
        else "No functions. Ask for one."
    )
    lines = list_lines(listing, heads=True)
    return Result(listing, lines, "" if lines else why)


@verb(opens=Opens.READABLE)
@click.argument("need")
@click.option("--count", type=click.IntRange(1), help="How many at most; 5 if not given.")
async def search(door: Door, need: str, count: int | None) -> Result:
    """Find functions by what they are needed for: why each matches, how it differs from similar ones, what it needs."""
    report = await door.shop.search(need, *([count] if count else ()), owners=door.owners)
    trouble = [line(("warn", "~ "), f"Only words were compared: {report.trouble}")] if report.trouble else []
    none = "No function serves this. Next: knapper run, and ask for one."
    return Result(report, [*trouble, *match_lines(report)], "" if report.results else none)


@verb()
@click.argument("name")
async def release(door: Door, name: str) -> Result:
    """Release a function from quarantine. The model sees it again, and its failures are counted from zero."""
    released = await door.shop.release(name)
    return Result(released, released_lines(released))


@verb()
@click.argument("name")
async def good(door: Door, name: str) -> Result:
    """Say that a function's results are right. What was unproven of it counts as proven, until it is changed."""
    return _rated(await door.shop.rate(name, is_good=True))


@verb()
@click.argument("name")
@click.argument("note", default="")
async def bad(door: Door, name: str, note: str) -> Result:
    """Say that a function's result was wrong, with a NOTE for the agent. It is a draft until it is changed, or called
    good.
    """
    return _rated(await door.shop.rate(name, is_good=False, note=note))


def _rated(rated: "Rated") -> Result:
    told = "" if rated.thumb == "good" else "; the agent is told"
    mark: Span = ("ok", "✓ ") if rated.thumb == "good" else ("warn", "~ ")
    return Result(
        rated, [line(mark, ("name", rated.name), f" is rated {rated.thumb}; its standing is {rated.standing}{told}")]
    )


@verb(opens=Opens.READABLE)
@click.argument("name")
@click.option("--brief", "is_brief", is_flag=True, help="Only its signature, its docstring and its standing.")
async def show(door: Door, name: str, is_brief: bool) -> Result:  # noqa: FBT001  (click hands it in)
    """Show everything about a function. Source, standing, calls, verdict, callers, callees; with --json schema and
    versions.
    """
    data = await door.shop.introspect(name, door.owners)
    if is_brief:
        return Result(data, brief_lines(data), f"??{name} shows its source." if door.at_prompt else "")
    source = (data.source, data.function.line, data.coverage.missed)
    return Result(data, facts_lines(data, door.typed), source=source)


@verb(opens=Opens.ASKING)
@click.argument("name")
@click.argument("source", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@_code_file
@click.option(
    "--module", default="grown", show_default=True, help="The module to add it to; created if it does not exist."
)
@click.option("--reason", default="", help="The reason, for the history.")
async def create(door: Door, name: str, source: str | None, file: str | None, module: str, reason: str) -> Result:
    """Create the function in FILE. It goes through the gate; without FILE, it is read from standard input."""
    if name.endswith(".py"):
        fix = f"Next: knapper functions create NAME {name}"
        raise UsageError(f"{name} is a file: the function's name comes first.", fix=fix)
    verdict = await door.shop.create(name, door.read(file or source), module, reason=reason)
    return _with_next(door, await history.predicted(door, verdict))


@verb(opens=Opens.ASKING)
@click.argument("name")
@_code_file
@click.option("--old", help="The text to replace; it must occur exactly once.")
@click.option("--new", help="The replacement.")
@click.option("--reason", default="", help="The reason, for the history.")
async def edit(door: Door, name: str, file: str | None, old: str | None, new: str | None, reason: str) -> Result:
    """Change a function through the gate. Give --old and --new, a new source with --file, or use your editor."""
    shop = door.shop
    if old is not None and new is not None:
        return _with_next(door, await history.predicted(door, await shop.edit(name, old, new, reason=reason)))
    if file is not None:
        return _with_next(door, await history.predicted(door, await shop.replace(name, door.read(file), reason=reason)))
    async with door.editor("Give --old and --new, or --file FILE."):
        change = await shop.reload_after(open_editor(*shop.path_of(name)))
    return Result(None) if door.at_prompt else _changed(change)  # the prompt announces it, like any manual change


@verb()
@click.argument("name")
async def delete(door: Door, name: str) -> Result:
    """Delete a function from its module. This is refused while other functions call it."""
    if name not in door.shop.names():
        fix = did_you_mean(name, door.shop.names(), f"Type {_list_of(door)} for the list.")
        raise UsageError(f"There is no function {name}.", fix=fix)
    if not await door.confirm(f"Delete {name}?"):
        return Result(None, hint="Nothing was deleted.")
    result = await door.shop.delete(name)
    lines = [line(("ok", "✓ "), f"deleted {result.name} from {result.module}")]
    if result.needed_by:
        lines.append(line(("dim", f"Its text stays there, private: {', '.join(result.needed_by)} uses it.")))
    return Result(result, lines)


@verb(opens=Opens.ASKING)
@click.argument("name")
@click.option("--args", "arguments", metavar="JSON", help=f"Run one call instead of the examples. {_ARGUMENTS}")
async def test(door: Door, name: str, arguments: str | None) -> Result:
    """Run a function's examples in a worker, or one call."""
    arguments = None if arguments is None else _read(door, arguments)
    tested = await door.shop.test(name, arguments)
    if arguments is not None and tested.outcome is not None:
        return ended(door, (name, arguments), tested.outcome)
    passed = all(example.agreed or example.unrun for example in tested.examples)
    return Result(tested, examples_lines(tested), code=0 if passed else 1)


@verb(opens=Opens.ASKING)
@click.argument("name")
@click.option("--args", "arguments", metavar="JSON", default="{}", help=_ARGUMENTS)
async def call(door: Door, name: str, arguments: str) -> Result:
    """Call a function in a worker and print what it returned."""
    arguments = _read(door, arguments)
    if door.at_prompt:  # which has a line of its own for what runs
        return ended(door, (name, arguments), await door.shop.call(name, arguments, owners=door.owners))
    with StatusLine() as status:
        status.show(f"{name} runs; Ctrl-C ends it")
        return ended(door, (name, arguments), await door.shop.call(name, arguments, status.count, owners=door.owners))


@verb(opens=Opens.ASKING)
@click.argument("name")
@click.option("--args", "arguments", metavar="JSON", default="{}", help=_ARGUMENTS)
async def trace(door: Door, name: str, arguments: str) -> Result:
    """Call a function and show each line that ran, with the locals that it changed."""
    from ..render.replays import trace_lines

    arguments = _read(door, arguments)
    data = await door.shop.trace(name, arguments)
    code = 0 if data.outcome.outcome == "returned" else 1
    return Result(data, [*_head(door, (name, arguments)), *trace_lines(data)], code=code)


@verb()
async def reload(door: Door) -> Result:
    """Read the folder again. Says what was loaded, changed, removed or rejected, and why."""
    change, many = await door.shop.reload(), len(door.shop.names())
    await door.workspace.helpers.refresh()
    if door.at_prompt:  # which announces the rest, like any manual change
        is_announced = change.loaded or change.changed or change.removed or change.fixed
        problems = (*change.rejected, *door.workspace.helpers.problems)
        return Result(change, [*([] if is_announced else [changes_line(change)]), *problem_lines(problems)])
    used = "1 function is" if many == 1 else f"{many} functions are"
    return _changed(change, f"{used} in use. Any command picks up earlier saves when it starts.")


def _read(door: Door, arguments: str) -> str:
    """Return the arguments of a call; `-` stands for what comes on standard input.

    Raises:
        UsageError: they are no JSON object. What a model meant is guessed at; whoever types is asked.
    """
    if door.at_prompt:
        if arguments == "-":
            raise UsageError("`-` is standard input, which the prompt reads itself.", fix="Give the arguments as JSON.")
        return arguments
    text = door.read("-") if arguments == "-" else arguments
    if not text.strip():
        return text
    try:
        problem = "" if isinstance(read_json(text, LOOSE), dict) else "expected an object, got another value"
    except Malformed as error:
        problem = str(error)
    if not problem:
        return text
    example = '{"name": 1}'
    from agent_core.registry.validation import NotJson, read_object

    with suppress(NotJson):
        example = json.dumps(read_object(text), ensure_ascii=False)
    raise UsageError(f"The arguments are no JSON object: {problem}.", fix=f"Write: --args {shlex.quote(example)}")


def ended(door: Door, called: tuple[str, str], report: "CallReport") -> Result:
    """Return the result of one call: its value, and next to it what was printed, or how it failed."""
    aside = outcome_lines(report, report.seconds)
    if report.outcome == "timed_out":
        aside += _after_time_out(door, *called)
    if report.lacks:
        aside.append(line(("dim", report.lacks)))
    if report.unproven:
        aside.append(line(("warn", report.unproven)))
    if report.quarantined:
        aside += quarantine_lines(report.quarantined, door.typed)
    values = value_lines(report, as_it_is=not door.at_prompt)  # from the shell, it may go into a file
    code = 0 if report.outcome == "returned" else 1
    return Result(report, [*_head(door, called), *values], code=code, aside=aside)


def _after_time_out(door: Door, name: str, arguments: str) -> list[Line]:
    given = arguments if door.at_prompt else f"--args {shlex.quote(arguments)}"
    return [
        line(("dim", "  where it was: "), ("strong", f"{door.typed}trace {name} {given}")),
        line(("dim", "  more time: "), ("strong", f"{COMMAND}grant {name} --seconds S"), ("dim", ", in your shell")),
    ]


def _head(door: Door, called: tuple[str, str]) -> list[Line]:
    return [line(("name", compact_call(*called)))] if door.at_prompt else []


def _list_of(door: Door) -> str:
    return "/functions" if door.at_prompt else "knapper functions list"


def _with_next(door: Door, judgment: "Judgment") -> Result:
    from ..shell_door import is_attended

    if judgment.admitted:
        return judged(door, judgment, f"Next: knapper functions call {judgment.name} --args '{{…}}'")
    unasked = judgment.denied or "" if not is_attended() else ""
    return judged(door, judgment, history.challenge_hint(door, judgment) or unasked)


def _changed(report: "ReloadReport", hint: str = "") -> Result:
    lines = [changes_line(report), *save_lines(report), *problem_lines(report.rejected)]
    return Result(report, lines, hint, 1 if report.rejected else 0)


for _command in (list_, search, release, good, bad, show, create, edit, delete, test, call, trace, reload, packages):
    functions.add_command(_command)
for _shell_command in (*history.COMMANDS, audit, tend, check, import_, export, *granting.COMMANDS):
    functions.add_command(_shell_command)
