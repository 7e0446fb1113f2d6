"""`knapper functions` and `calls`: commands to manage functions and their packages, and to look at recorded calls."""

import ast
import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import click

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.base.matching import did_you_mean
from agent_core.base.offload import PER_ENTRY, aside
from agent_core.base.untrusted import one_line
from agent_core.operations.functions import CandidateName, FunctionName
from agent_core.operations.operation import Opens
from agent_core.operations.words import Word
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, line, plain
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from ..verb import ALWAYS, CallNumber, Door, Reason, at_most_one, gone_flag, slash, verb
from .operated import add_operations

if TYPE_CHECKING:  # the commands start without the service
    from agent_core.access.grants import Grants
    from agent_core.functions.answers import CallReport
    from agent_core.functions.service import FunctionService
    from agent_core.functions.service.grant_service import PackageListing
    from agent_core.functions.service.judgment import Judgment
    from agent_core.registry.registry import RegistryChange
    from agent_core.storage import CallOwners
    from agent_core.views import function_view, grant_question, verdicts

    from .. import views
else:
    function_view = LateModule("agent_core.views.function_view")
    grant_question = LateModule("agent_core.views.grant_question")
    verdicts = LateModule("agent_core.views.verdicts")
    views = LateModule("agent_core.operations.views")

_MOST = 12
_ARGUMENTS = "The arguments, as one JSON object; - is standard input."
CallArguments = Annotated[
    str, click.option("--args", "arguments", metavar="JSON", default="{}", help=_ARGUMENTS)
]
IN_FUNCTIONS, IN_FUNCTION = "the room Functions", "the function in the room Functions"
IN_FORM = "the function's form in the room Functions"


STANDINGS = ("draft", "trial", "trusted", "quarantined")

_code_file = click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="The source file; - reads standard input.",
)


@click.group()
def functions() -> None:
    """List, show, check, create, edit, test and call functions."""


@verb(functions, opens=Opens.READABLE, scopes=("read",))
@click.option("--module", default="", help="Only functions of one module.")
@click.option("--standing", type=click.Choice(STANDINGS), help="Only functions with this standing.")
@click.option(
    "--unused",
    is_flag=True,
    help="Only functions not called for a long time, with the command to delete them.",
)
async def list_(
    door: Door, pattern: str = "", *, module: str, standing: str | None, unused: bool
) -> Result:
    """List what can be called, and what was rejected. PATTERN is part of a name or description, or a wildcard like
    count_*.
    """
    filters = (pattern, module, standing or "")
    if unused:
        data = await door.functions.unused(*filters)
        none = "" if data.functions else "Every function has been called recently."
        return Result(data, function_view.unused_lines(data, door.typed), none)
    data = await door.functions.list(*filters)
    if door.at_prompt:
        if not pattern and data.functions:
            rejected = function_view.list_lines(replace(data, functions=()))
            standings = function_view.standing_words({row.standing for row in data.functions})
            below = (*standings, *rejected, *function_view.unused_hint(data, "/functions unused"))
            return Result(
                data, table=function_view.functions_table(data, door.functions.source, below)
            )
        why = f"No function has “{one_line(pattern)}” in its name, module or description."
        lines = function_view.list_lines(data, heads=True)
        return Result(
            data, lines, "" if lines else why if pattern else "No functions. Ask for one."
        )
    modules = {
        function.module for function in door.functions.registry.snapshot().functions.values()
    }
    known = modules if module else door.functions.names()
    following = "" if data.rejected else "Next: knapper run, and ask for one."
    none = f"No function matches. {did_you_mean(module or pattern, known, following)}".rstrip()
    hint = (
        plain(function_view.unused_hint(data, "knapper functions list --unused")).strip()
        if data.functions
        else none
    )
    size = len(data.functions) * PER_ENTRY
    lines = await aside(size, function_view.list_lines, data, heads=door.is_on_screen)
    return Result(data, lines, hint, 0 if data.is_whole else 1)


@verb(functions, opens=Opens.READABLE, scopes=("read",))
@click.option("--count", type=click.IntRange(1), help="How many at most; 5 if not given.")
async def search(door: Door, need: str, count: int | None) -> Result:
    """Find functions by what they are needed for: why each matches, how it differs from similar ones, what it needs."""
    report = await door.functions.search(need, *([count] if count else ()), owners=door.owners)
    trouble = (
        [line(("warn", "~ "), f"Only words were compared: {report.trouble}")]
        if report.trouble
        else []
    )
    none = "No function serves this. Next: knapper run, and ask for one."
    return Result(
        report, [*trouble, *function_view.match_lines(report)], "" if report.results else none
    )


@verb(functions, opens=Opens.ASKING, scopes=("edit",))
@click.argument("source", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@_code_file
@click.option(
    "--module",
    default="grown",
    show_default=True,
    help="The module to add it to; created if it does not exist.",
)
async def create(
    door: Door,
    name: FunctionName,
    source: str | None,
    *,
    file: str | None,
    module: str,
    reason: Reason,
) -> Result:
    """Create the function in FILE. It goes through the gate; without FILE, it is read from standard input."""
    if name.endswith(".py"):
        fix = f"Next: knapper functions create NAME {name}"
        raise UsageError(f"{name} is a file: the function's name comes first.", fix=fix)
    at_most_one({"FILE": source is not None, "--file": file is not None})
    verdict = await door.functions.create(name, door.read(file or source), module, reason=reason)
    return _with_next(door, await predicted(door, verdict))


@slash(
    "edit",
    "Open a function in $VISUAL or $EDITOR, at its line.",
    needs_user=ALWAYS,
    page="the function in the room Functions",
)
@verb(functions, opens=Opens.ASKING, scopes=("edit",))
@_code_file
@click.option("--old", help="The text to replace; it must occur exactly once.")
@click.option("--new", help="The replacement.")
async def edit(
    door: Door,
    name: FunctionName,
    *,
    file: str | None,
    old: str | None,
    new: str | None,
    reason: Reason,
) -> Result:
    """Change a function through the gate. Give --old and --new, a new source with --file, or use your editor."""
    at_most_one({"--old": old is not None, "--file": file is not None})
    if (old is None) != (new is None):
        raise UsageError(
            "--old and --new belong together.", fix="Give both of them, or --file FILE."
        )
    if reason and old is None and file is None:
        raise UsageError(
            "The editor takes no --reason.",
            fix="Leave it out, or give --old and --new, or --file FILE.",
        )
    service = door.functions
    if old is not None and new is not None:
        return _with_next(
            door, await predicted(door, await service.edit(name, old, new, reason=reason))
        )
    if file is not None:
        return _with_next(
            door, await predicted(door, await service.replace(name, door.read(file), reason=reason))
        )
    from ..manual_edits import open_editor

    async with door.editor("Give --old and --new, or --file FILE."):
        change = await service.reload_after(open_editor(*service.path_of(name)))
    return (
        Result(None) if door.at_prompt else _reload_result(change)
    )  # the prompt announces it, like any manual change


@slash(
    "test",
    "Run a function's examples, or one call with arguments.",
    page=IN_FUNCTION,
    last="arguments",
)
@verb(functions, opens=Opens.CALLING, scopes=("edit",))
@click.option(
    "--args",
    "arguments",
    metavar="JSON",
    help=f"Run one call instead of the examples. {_ARGUMENTS}",
)
async def test(door: Door, name: FunctionName, *, arguments: str | None) -> Result:
    """Run a function's examples in a worker, or one call."""
    arguments = None if arguments is None else _read(door, arguments)
    tested = await door.functions.test(name, arguments)
    if arguments is not None and tested.outcome is not None:
        return await ended(door, (name, arguments), tested.outcome)
    passed = all(example.agreed or example.unrun for example in tested.examples)
    return Result(tested, verdicts.examples_lines(tested), code=0 if passed else 1)


@verb(functions, opens=Opens.CALLING, scopes=("chat", "edit"))
async def call(door: Door, name: FunctionName, *, arguments: CallArguments) -> Result:
    """Call a function in a worker and print what it returned."""
    arguments = _read(door, arguments)
    with door.call_progress(name) as hear:
        report = await door.functions.call(name, arguments, hear, owners=door.owners)
    return await ended(door, (name, arguments), report)


@slash(
    "trace",
    "Show the lines that a call runs, and the locals that they change.",
    page=IN_FORM,
    last="arguments",
)
@verb(functions, opens=Opens.CALLING, scopes=("edit",))
async def trace(door: Door, name: FunctionName, *, arguments: CallArguments) -> Result:
    """Call a function and show each line that ran, with the locals that it changed."""
    arguments = _read(door, arguments)
    data = await door.functions.trace(name, arguments)
    code = 0 if data.outcome.outcome == "returned" else 1
    return Result(data, [*_head(door, (name, arguments)), *verdicts.trace_lines(data)], code=code)


@slash("reload", "Read the functions folder again.")
@verb(functions, scopes=("edit",))
async def reload(door: Door) -> Result:
    """Read the folder again. Says what was loaded, changed, removed or rejected, and why."""
    change, many = await door.functions.reload(), len(door.functions.names())
    await door.workspace.helpers.refresh()
    if door.at_prompt:  # the prompt announces the rest, like any manual change
        is_announced = change.loaded or change.changed or change.removed or change.fixed
        problems = (*change.rejected, *door.workspace.helpers.problems)
        return Result(
            change,
            [
                *([] if is_announced else [verdicts.changes_line(change)]),
                *verdicts.problem_lines(problems),
            ],
        )
    used = "1 function is" if many == 1 else f"{many} functions are"
    return _reload_result(
        change, f"{used} in use. Any command picks up earlier saves when it starts."
    )


def _read(door: Door, arguments: str) -> str:
    """Return the arguments of a call; `-` means standard input.

    Raises:
        UsageError: the arguments are not a JSON object. Unlike a model's arguments, a user's are not repaired.
    """
    if door.at_prompt:
        if arguments == "-":
            raise UsageError(
                "`-` is standard input, which the prompt reads itself.",
                fix="Give the arguments as JSON.",
            )
        return arguments
    text = door.read("-") if arguments == "-" else arguments
    if not text.strip():
        return text
    try:
        problem = (
            ""
            if isinstance(read_json(text, LOOSE), dict)
            else "expected an object, got another value"
        )
    except Malformed as error:
        problem = str(error)
    if not problem:
        return text
    example = '{"name": 1}'
    from agent_core.registry.validation import NotJson, read_object

    with suppress(NotJson):
        example = json.dumps(read_object(text), ensure_ascii=False)
    raise UsageError(
        f"The arguments are no JSON object: {problem}.", fix=f"Write: --args {shlex.quote(example)}"
    )


async def ended(door: Door, called: tuple[str, str], report: "CallReport") -> Result:
    """Return the result of one call: what it printed, then its value, or how it failed."""
    printed, aside = (
        verdicts.printed_lines(report.output),
        verdicts.failed_lines(report, report.seconds),
    )
    aside += [line(("dim", text)) for text in bare_lines(report.debugged)]
    if report.outcome == "timed_out":
        name, arguments = called
        given = arguments if door.at_prompt else f"--args {shlex.quote(arguments)}"
        aside += [
            line(("dim", "  where it was: "), ("strong", f"{door.typed}trace {name} {given}")),
            line(
                ("dim", "  more time: "),
                ("strong", f"knapper functions grant {name} --seconds S"),
                ("dim", ", in your shell"),
            ),
        ]
    aside += [line(("dim", text)) for text in bare_lines(report.lacks)]
    from agent_core.functions.answers import UNPROVEN

    # Who wrote a function without examples knows that nothing proves it.
    if report.unproven and not (
        report.unproven == UNPROVEN and await door.functions.is_by_hand(called[0])
    ):
        aside.append(line(("warn", report.unproven)))
    if report.quarantined:
        aside += function_view.quarantine_lines(report.quarantined, door.typed)
    values = verdicts.value_lines(
        report, as_it_is=not door.at_prompt
    )  # in the shell, output may go into a file
    if door.at_prompt and door.is_attended:
        values = verdicts.in_short(values, "=_ shows all of it.")
    code = 0 if report.outcome == "returned" else 1
    if door.at_prompt:
        return Result(report, [*_head(door, called), *printed, *values], code=code, aside=aside)
    return Result(report, values, before=printed, code=code, aside=aside)


def _head(door: Door, called: tuple[str, str]) -> list[Line]:
    return [line(("name", verdicts.compact_call(*called)))] if door.at_prompt else []


def _with_next(door: Door, judgment: "Judgment") -> Result:
    if judgment.admitted:
        return views.judged(
            judgment, door, f"Next: knapper functions call {judgment.name} --args '{{…}}'"
        )
    return views.judged(judgment, door, "" if door.is_attended else judgment.denied)


def _reload_result(change: "RegistryChange", hint: str = "") -> Result:
    lines = [
        verdicts.changes_line(change),
        *verdicts.save_lines(change),
        *verdicts.problem_lines(change.rejected),
    ]
    return Result(change, lines, hint, 1 if change.rejected else 0)


@slash(
    "pending [NAME [drop]]",
    "Show the rejected candidates, and why; `drop` discards one.",
    takes="<candidate>, drop",
    shows=r"\S*",
    in_turn=True,
)
@verb(functions, scopes=("edit",))
@click.option("--drop", is_flag=True, help="Discard the candidate NAME.")
async def pending(door: Door, name: CandidateName = "", *, drop: bool) -> Result:
    """Show the rejected candidates. With NAME that one, with its source."""
    service = door.functions
    if drop:
        dropped = await service.drop(name)
        return Result(dropped, [line(("ok", "✓ "), f"The candidate for {name} was discarded.")])
    confirming, listing = f"{door.typed}confirm", f"{door.typed}pending"
    candidates = await service.all_pending()
    if name and name not in candidates:
        raise UsageError(
            f"No candidate named `{name}` was rejected.",
            fix=did_you_mean(name, candidates, f"Next: {listing}"),
        )
    shown = {name: candidates[name]} if name else candidates
    source = shown[name].text if name else ""
    dropping = f"{listing} NAME {'' if door.at_prompt else '--'}drop"
    hint = (
        function_view.pending_hint(shown, confirming, dropping, door.typed)
        if shown
        else "There are no rejected candidates."
    )
    lines = await aside(PER_ENTRY * len(shown), function_view.pending_lines, shown)
    return Result(shown, [*lines, *(line(text) for text in bare_lines(source))], hint)


async def predicted(door: Door, judgment: "Judgment") -> "Judgment":
    """Ask a user at a terminal to predict the results of the gate's open calls. Return the new verdict."""
    results: list[str] = []
    if judgment.challenges:
        door.show(
            [
                line(
                    f"The examples of {judgment.name} leave these calls open. Each result that you give is compared."
                )
            ]
        )
    for call in judgment.challenges:
        question = f"What must {one_line(call, 400)} return? "
        typed = await door.ask(question)
        if typed is not None and not typed.strip():
            door.show(
                [
                    line(
                        "Type it as Python prints it, such as 3 or 'text'. Enter alone leaves the function waiting."
                    )
                ]
            )
            typed = (await door.ask(question) or "").strip()
        if not typed:
            return judgment
        results.append(typed)
    return await door.functions.confirm(judgment.name, expected=results) if results else judgment


def results_of(text: str) -> list[str]:
    """Return the results in a comma-separated text, each as Python source."""
    try:
        tree = syntax.parse(f"({text},)", mode="eval").body
    except SyntaxError:
        return [text.strip()]
    return (
        [ast.unparse(element) for element in tree.elts]
        if isinstance(tree, ast.Tuple)
        else [text.strip()]
    )


_ITEMS = (
    ("--network", "network", "HOST", "A host: api.example.org, localhost:8000 or *.example.org."),
    ("--read", "read", "PATH", "A file or folder to read: in the workspace, or absolute."),
    ("--write", "write", "PATH", "A file or folder to read and write."),
    ("--secret", "secrets", "NAME", "A secret, by name."),
    ("--package", "packages", "REQ", "A package: requests or requests>=2.31."),
    ("--block", "memory", "LABEL", "A block of memory."),
    ("--call", "functions", "NAME", "Another function that has grants of its own."),
)


def add_kinds(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for what is granted."""
    command = gone_flag("--stateful")(command)
    command = click.option(
        "--memory", "memory_mib", type=int, metavar="MIB", help="More memory than the default."
    )(command)
    command = click.option(
        "--seconds", type=float, metavar="S", help="More time than the default."
    )(command)
    for flag, kind, shown, text in reversed(_ITEMS):
        command = click.option(flag, kind, multiple=True, metavar=shown, help=text)(command)
    return command


@verb(functions, scopes=("approve",))
@add_kinds
@click.option("--all", "is_all", is_flag=True, help="All grants of the function.")
async def revoke(door: Door, name: FunctionName, *, is_all: bool, **options: Any) -> Result:
    """Revoke grants of a function: those that are named, or --all."""
    selection = door.functions.grants.wanted(options)
    if is_all == bool(selection):
        raise UsageError(
            "Name the grants to revoke, or use --all.",
            fix=f"Such as: knapper functions revoke {name} --all",
        )
    return await revoked(door.functions, name, None if is_all else selection, door.owners)


@slash(
    "grants [NAME [revoke [WHAT]]]",
    "Show the grants of functions; `revoke` removes all, a kind or one item.",
    takes="<function>, revoke",
    shows=r"\S*",
    in_turn=True,
)
@verb(functions, opens=Opens.READABLE, scopes=("read", "approve"))
async def grants(door: Door, name: FunctionName = "") -> Result:
    """Show what functions may reach. Also shows how much of functions/grants.toml is in force for you."""
    from agent_core.functions.service.function_facts import unknown_function

    data = await door.functions.grants.listing(name, door.owners)
    if name and not data.grants and name not in (names := door.functions.names()):
        raise unknown_function(name, names)
    none = f"{name or 'No function'} has {'no' if name else 'a'} grant. "
    none += (
        "You are asked when one is needed."
        if door.at_prompt
        else "Next: knapper functions grant NAME"
    )
    return Result(
        data,
        grant_question.grants_lines(data),
        "" if data.grants or data.problems else none,
        1 if data.problems else 0,
    )


@slash(
    "approvals [NAME]",
    "Show who allowed what, when and on which text, what used it, what is still open, and how to take each back.",
    takes="<function>",
    in_turn=True,
)
@verb(functions, opens=Opens.READABLE, scopes=("read", "approve"))
@click.option(
    "--last",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="At most so many.",
)
async def approvals(door: Door, name: FunctionName = "", *, last: int) -> Result:
    """Show who allowed what, when and on which text, what used it, and what is still open.

    Each row that holds has the command that takes it back; an open question has the one that answers it.
    """
    rows = await door.functions.approvals_log.rows(name, last, door.owners)
    none = "Nothing was asked or allowed yet. You are asked when it is needed."
    return Result({"approvals": rows}, grant_question.log_lines(rows), "" if rows else none)


@slash(
    "answer ID ANSWER",
    "Answer the question that a function asks in its call, by its id.",
    in_turn=True,
)
@verb(functions, scopes=("approve",))
async def answer(
    door: Door,
    question: Annotated[str, Word(metavar="ID")],
    answer: Annotated[str, Word(metavar="ANSWER")],
) -> Result:
    """Answer a question that waits, by its id: a function's, or with no one about a grant.

    A yes to a grant is given where the whole question is shown: at the prompt, or on the page. The first answer counts.
    """
    from agent_core.access.grants import Decision
    from agent_core.functions.asking import ID_LEAST, FunctionQuestion
    from agent_core.storage import is_history

    for row in await door.workspace.store.pending_questions(door.token):
        own = FunctionQuestion.from_row(row)
        is_seen = door.owners is None or row.agent in door.owners
        if door.token is not None and is_history(row.agent):
            continue  # whose it is, POST /approvals/ID knows
        if (
            own is not None
            and own.id.startswith(question)
            and len(question) >= ID_LEAST
            and is_seen
        ):
            said = own.read(answer)
            await door.workspace.answer(own.id, Decision("yes", said))
            shown = line(
                ("ok", "✓ "), f"{own.function} has its answer: ", ("strong", one_line(said, 80))
            )
            return Result({"question": own.id, "answer": said}, [shown])
    pending = {row.id: row for row in await door.workspace.questions()}
    asked = pending.get(question)
    if asked is None or (door.owners is not None and asked.agent not in door.owners):
        raise UsageError(
            f"No question `{one_line(question, 80)}` is open: it was answered, or its turn has ended.",
            fix="See them: knapper functions approvals",
        )
    if answer != "no":
        raise UsageError(
            f"A yes to `{asked.question.function}` needs the whole question in sight.",
            fix="Answer it at the prompt that asks, or on the page: knapper serve",
        )
    await door.workspace.answer(question, Decision("no"))
    said = f"no: `{asked.question.function}` may not"
    return Result({"question": question, "answer": "no"}, [line(("ok", "✓ "), said)])


async def revoked(
    functions: "FunctionService", name: str, selection: "Grants | None", owners: "CallOwners" = None
) -> Result:
    """Revoke the selected grants of a function, or all with None."""
    result = await functions.grants.revoke(name, selection, owners)
    return Result(result, grant_question.revoked_lines(result))


@verb(functions)
@click.option(
    "--clean", "is_clean", is_flag=True, help="Remove packages without a grant from disk and lock."
)
async def packages(door: Door, *, is_clean: bool) -> Result:
    """List the packages that functions were granted, as functions/requirements.lock pins them."""
    packages = door.functions.granting.packages
    if is_clean:
        result = await packages.clean()
        return Result(
            result, [line(("ok", "✓ "), f"removed {len(result.removed)} folders of packages")]
        )
    data = await packages.listing()
    none = "No function has a package. Next: knapper functions grant NAME --package REQ"
    return Result(
        data, [*package_lines(data)], "" if data.packages else none, 1 if data.problem else 0
    )


def package_lines(listing: "PackageListing") -> Iterator[Line]:
    """Yield lines for each set of requirements: its functions, its pinned packages, and whether it is installed."""
    if listing.problem:
        yield line(("bad", "✗ "), listing.problem)
    for row in listing.packages:
        users = ", ".join(row.functions) or "no function"
        state = (
            f"{row.bytes / 1e6:.1f} MB"
            if row.installed
            else "not installed: you will be asked when it is called"
        )
        yield line(("name", ", ".join(row.requirements)), ("dim", f"  for {users}  "), state)
        pins = row.pins[:_MOST] + (
            (f"and {len(row.pins) - _MOST} more",) if len(row.pins) > _MOST else ()
        )
        if pins:
            yield line("  ", one_line(", ".join(pins), 1_000))


add_operations(functions)


# `knapper calls`: recorded calls, and replays of them.


@click.group()
def calls() -> None:
    """List, show and replay recorded calls of functions."""


@verb(calls, "list", opens=Opens.READABLE, scopes=("read",))
@click.option("--failed", is_flag=True, help="Only calls that raised an error or were stopped.")
async def list_calls(door: Door, function: FunctionName = "", *, failed: bool) -> Result:
    """List the calls that can be replayed, newest first."""
    records = await door.functions.replays.of(door.owners).calls(function, failed=failed)
    return Result(
        records, verdicts.calls_lines(records), "" if records else "No such call is recorded."
    )


@verb(calls, "show", opens=Opens.READABLE, scopes=("read",))
async def show_call(door: Door, call: CallNumber) -> Result:
    """Show a call: its arguments, what it got through `self`, and its outcome."""
    record = await door.functions.replays.of(door.owners).show(call)
    return Result(record, verdicts.call_lines(record))


@verb(calls, scopes=("edit",))
@click.option(
    "--version",
    metavar="V",
    default="",
    help="The version to run: `now`, or one from `functions history`. By default, that of the recorded call.",
)
@click.option(
    "--debug", "is_debugged", is_flag=True, help="Stop where it raised, or at its first line."
)
async def replay(door: Door, call: CallNumber, *, version: str, is_debugged: bool) -> Result:
    """Replay a call with the original arguments, time zone, random seed and fetches.

    The exit code is 1 if the outcome differs.
    """
    replays = door.functions.replays.of(door.owners)
    if not is_debugged:
        result = await replays.replay(call, version)
    else:
        debugger, then = door.debugger(), await replays.show(call)
        if then.outcome.outcome == "raised":
            result = await replays.replay(call, version, looks_back=True, debugger=debugger)
        else:
            with stopping_first(door, then.call.function):
                result = await replays.replay(call, version, debugger=debugger)
    return Result(
        result, verdicts.replay_lines(result), code=0 if result.same or result.quit else 1
    )


@contextmanager
def stopping_first(door: Door, function: str) -> Iterator[None]:
    """Make a function stop at its first line while the block runs. Keep a breakpoint that the user has there.

    Raises:
        UsageError: there is no such function.
    """
    from agent_core.functions.debug import Breakpoint

    breakpoints, snapshot = door.workspace.debugging.breakpoints, door.functions.registry.snapshot()
    before = {entry.breakpoint.id for entry in breakpoints.placed(snapshot)}
    placed = breakpoints.arm(Breakpoint(0, function, "", 0, once=True, by="human"), 0, snapshot)
    try:
        yield
    finally:
        if placed.breakpoint.id not in before:
            breakpoints.clear(id=placed.breakpoint.id)
