"""`toolwright functions`: the commands with which people and scripts manage functions and their packages."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_named_text
from agent_core.base.untrusted import one_line

from ..scene import CliContext, scene
from ..spans import Line, line, plain
from ..standings import quarantine_lines, released_lines, unused_hint, unused_lines
from ..status_line import StatusLine
from ..verdicts import (
    changes_line,
    examples_lines,
    outcome_lines,
    problem_lines,
    save_lines,
    value_lines,
    verdict_lines,
)
from ..views import introspection_lines, list_lines
from ..wrap import write
from . import granting, history
from .checking import check
from .library import export, import_

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.change_texts import ReloadReport
    from agent_core.functions.service.judgment import Judgment
    from agent_core.functions.service.package_grants import PackageListing

_MOST = 12


@click.command()
@click.option("--clean", "is_clean", is_flag=True, help="Remove packages without a grant from disk and lock.")
@scene
def packages(scene: CliContext, is_clean: bool) -> int:  # noqa: FBT001  (click hands it in)
    """List the packages that functions were granted, as functions/requirements.lock pins them."""
    from ..opened import with_workshop

    if is_clean:
        result = with_workshop(scene, lambda shop: shop.granting.packing.clean())
        scene.result(result, [line(("ok", "✓ "), f"removed {len(result.removed)} folders of packages")])
        return 0
    data = with_workshop(scene, lambda shop: shop.granting.packing.listing())
    scene.result(data, list(package_lines(data)))
    if not data.packages:
        scene.hint("No function has a package. Next: toolwright functions grant NAME --package REQ")
    return 1 if data.problem else 0


def package_lines(listing: "PackageListing") -> Iterator[Line]:
    """Yield each set of requirements: its functions, its pinned packages, and whether it is installed."""
    if listing.problem:
        yield line(("bad", "✗ "), listing.problem)
    for each in listing.packages:
        users = ", ".join(each.functions) or "no function"
        state = f"{each.bytes / 1e6:.1f} MB" if each.installed else "not installed: you are asked when it is called"
        yield line(("name", ", ".join(each.requirements)), ("dim", f"  for {users}  "), state)
        pins = each.pins[:_MOST] + ((f"and {len(each.pins) - _MOST} more",) if len(each.pins) > _MOST else ())
        if pins:
            yield line("  ", one_line(", ".join(pins), 1_000))


STANDINGS = ("draft", "trial", "trusted", "quarantined")

_code_file = click.option(
    "--file", "file", metavar="FILE", type=click.Path(allow_dash=True), help="The source file; - reads standard input."
)


@click.group()
def functions() -> None:
    """List, show, check, create, edit, test and call functions."""


for _command in history.COMMANDS:
    functions.add_command(_command)


@functions.command("list")
@click.argument("pattern", default="")
@click.option("--module", default="", help="Only functions of one module.")
@click.option("--standing", type=click.Choice(STANDINGS), help="Only functions with this standing.")
@click.option(
    "--unused",
    is_flag=True,
    help="Only functions that nobody has called for a long time, with the command to delete them.",
)
@scene
def list_(scene: CliContext, pattern: str, module: str, standing: str | None, unused: bool) -> None:  # noqa: FBT001  (click)
    """List what can be called, and what was rejected. PATTERN is part of a name or description, or a wildcard like
    count_*.
    """
    from ..opened import with_workshop

    filters = (pattern, module, standing or "")
    data = with_workshop(scene, lambda shop: shop.unused(*filters) if unused else shop.list(*filters))
    scene.result(data, unused_lines(data) if unused else list_lines(data))
    if unused and not data.functions:
        scene.hint("Every function has been called recently.")
    elif not data.functions:
        scene.hint("No function matches. Next: toolwright run, and ask for one.")
    elif data.unused and not unused:
        scene.hint(plain(unused_hint(data, "toolwright functions list --unused")).strip())


@functions.command()
@click.argument("name")
@scene
def release(scene: CliContext, name: str) -> None:
    """Release a function from quarantine. The model sees it again, and its failures are counted from zero."""
    from ..opened import with_workshop

    released = with_workshop(scene, lambda shop: shop.release(name))
    scene.result(released, released_lines(released))


@functions.command()
@click.argument("name")
@scene
def show(scene: CliContext, name: str) -> None:
    """Show everything about a function. Source, standing, calls, verdict, callers, callees; with --json schema and
    versions.
    """
    from ..opened import with_workshop

    data = with_workshop(scene, lambda shop: shop.introspect(name))
    scene.result(data, introspection_lines(data))


@functions.command()
@click.argument("name")
@click.argument("source", metavar="[FILE]", required=False, type=click.Path(allow_dash=True))
@_code_file
@click.option("--module", default="grown", show_default=True, help="The module to join; created if it does not exist.")
@click.option("--reason", default="", help="The reason, for the history.")
@scene
def create(  # noqa: PLR0913, PLR0917  (click hands them in)
    scene: CliContext, name: str, source: str | None, file: str | None, module: str, reason: str
) -> int:
    """Create the function in FILE. It goes through the gate; without FILE, it is read from standard input."""
    from ..opened import with_asking_workshop

    if name.endswith(".py"):
        fix = f"Next: toolwright functions create NAME {name}"
        raise UsageError(f"{name} is a file: the function's name comes first.", fix=fix)
    code = _read(file or source)
    verdict = with_asking_workshop(scene, lambda shop: shop.create(name, code, module, reason=reason))
    return _judged(scene, verdict)


@functions.command()
@click.argument("name")
@_code_file
@click.option("--old", help="The text to replace; it must occur exactly once.")
@click.option("--new", help="The replacement.")
@click.option("--reason", default="", help="The reason, for the history.")
@scene
def edit(  # noqa: PLR0913, PLR0917  (click hands them in)
    scene: CliContext, name: str, file: str | None, old: str | None, new: str | None, reason: str
) -> int:
    """Change a function through the gate. Give --old and --new, a new source with --file, or use your editor."""
    from ..opened import edit_function, with_asking_workshop, with_workshop

    if old is not None and new is not None:
        return _judged(scene, with_asking_workshop(scene, lambda shop: shop.edit(name, old, new, reason=reason)))
    if file is not None:
        code = _read(file)
        return _judged(scene, with_asking_workshop(scene, lambda shop: shop.replace(name, code, reason=reason)))
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal for an editor.", fix="Give --old and --new, or --file FILE.")
    change = with_workshop(scene, lambda shop: edit_function(shop, name))
    return _changed(scene, change)


@functions.command()
@click.argument("name")
@scene
def delete(scene: CliContext, name: str) -> None:
    """Delete a function from its module. This is refused while other functions call it."""
    from ..opened import with_workshop

    result = with_workshop(scene, lambda shop: shop.delete(name))
    scene.result(result, [line(("ok", "✓ "), f"deleted {result.name} from {result.module}")])


@functions.command()
@click.argument("name")
@click.option("--args", "arguments", metavar="JSON", help="Run one call with these arguments instead of the examples.")
@scene
def test(scene: CliContext, name: str, arguments: str | None) -> int:
    """Run a function's examples in a worker, or one call."""
    from ..opened import with_workshop

    if arguments is not None:
        return _ended(scene, with_workshop(scene, lambda shop: shop.test(name, arguments)).outcome or {})
    tested = with_workshop(scene, lambda shop: shop.test(name))
    scene.result(tested, examples_lines(tested))
    return 0 if all(example.agreed for example in tested.examples) else 1


@functions.command()
@click.argument("name")
@click.option("--args", "arguments", metavar="JSON", default="{}", help="The arguments, as one JSON object.")
@scene
def call(scene: CliContext, name: str, arguments: str) -> int:
    """Call a function in a worker and print what it returned."""
    from ..opened import with_workshop

    with StatusLine() as status:
        outcome = with_workshop(scene, lambda shop: shop.call(name, arguments, status.count))
    return _ended(scene, outcome)


@functions.command()
@click.argument("name")
@click.option("--args", "arguments", metavar="JSON", default="{}", help="The arguments, as one JSON object.")
@scene
def trace(scene: CliContext, name: str, arguments: str) -> int:
    """Call a function and show each line that ran, with the locals that it changed."""
    from ..opened import with_workshop
    from ..replayed import trace_lines

    data = with_workshop(scene, lambda shop: shop.trace(name, arguments))
    scene.result(data, trace_lines(data))
    return 0 if data.outcome["outcome"] == "returned" else 1


@functions.command()
@scene
def reload(scene: CliContext) -> int:
    """Read the folder again. Says what was loaded, changed, removed or rejected, and why."""
    from agent_core.functions.service import FunctionService
    from agent_core.functions.service.change_texts import ReloadReport

    from ..opened import with_workshop

    async def read(shop: FunctionService) -> tuple[ReloadReport, int]:
        return await shop.reload(), len(shop.names())

    change, many = with_workshop(scene, read)
    code = _changed(scene, change)
    used = "1 function is" if many == 1 else f"{many} functions are"
    scene.hint(f"{used} in use. Any command picks up earlier saves when it starts.")
    return code


def _read(file: str | None) -> str:
    if file is None and sys.stdin.isatty():
        raise UsageError("There is no source.", fix="Give --file FILE, or --file - and the source on standard input.")
    try:
        return read_named_text(file or "-")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error


def _judged(scene: CliContext, verdict: "Judgment") -> int:
    from ..question_of_grants import is_attended

    scene.result(verdict, verdict_lines(verdict))
    if verdict.admitted:
        scene.hint(f"Next: toolwright functions call {verdict.name} --args '{{…}}'")
        return 0
    if verdict.denied and not is_attended():
        scene.hint(verdict.denied)
    return 1


def _ended(scene: CliContext, outcome: Mapping[str, Any]) -> int:
    returned = outcome["outcome"] == "returned"
    scene.result(outcome, value_lines(outcome, as_it_is=True))  # it may go into a file
    if not scene.as_json:
        write(outcome_lines(outcome), sys.stderr)
        if lacks := outcome.get("lacks"):
            scene.talk(lacks)
        if case := outcome.get("quarantined"):
            write(quarantine_lines(case), sys.stderr)
    return 0 if returned else 1


def _changed(scene: CliContext, change: "ReloadReport") -> int:
    scene.result(change, [changes_line(change), *save_lines(change), *problem_lines(change.rejected)])
    return 1 if change.rejected else 0


for _command in (check, import_, export, packages, *granting.COMMANDS):
    functions.add_command(_command)
