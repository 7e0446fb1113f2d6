"""`toolwright functions history, diff, blame, rollback`, and the problems that keep a candidate out."""

from typing import TYPE_CHECKING

import click

from agent_core.base.errors import UsageError
from sandbox.wire.lines import bare_lines

from ..scene import CliContext, scene
from ..spans import line
from ..verdicts import verdict_lines
from ..versions import blame_lines, diff_lines, history_lines, pending_hint, pending_lines

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.judgment import Judgment

_reason = click.option("--reason", default="", help="The reason, for the history.")


@click.command()
@click.argument("name")
@scene
def history(scene: CliContext, name: str) -> None:
    """Show the versions of a function. Even of a deleted one: when, who, what changed and why; * marks the current
    one.
    """
    from ..opened import with_workshop

    data = with_workshop(scene, lambda shop: shop.past.history(name))
    scene.result(data, history_lines(data.versions))
    if data.deleted:
        scene.hint(f"It is deleted. Next: toolwright functions rollback {name}")


@click.command()
@click.argument("name")
@click.argument("version", default="")
@scene
def diff(scene: CliContext, name: str, version: str) -> None:
    """Show what changed since VERSION. A number or the beginning of a hash; by default, the one before the current."""
    from ..opened import with_workshop

    data = with_workshop(scene, lambda shop: shop.past.diff(name, version))
    scene.result(data, diff_lines(data))


@click.command()
@click.argument("name")
@click.argument("version", default="")
@scene
def blame(scene: CliContext, name: str, version: str) -> None:
    """Show who wrote each line, when and why. Uses the current source, or that of VERSION."""
    from ..opened import with_workshop

    data = with_workshop(scene, lambda shop: shop.past.blame(name, version))
    scene.result(data, blame_lines(data.lines))


@click.command()
@click.argument("name")
@click.argument("version", default="")
@scene
def rollback(scene: CliContext, name: str, version: str) -> int:
    """Restore VERSION of a function. By default the one before the current; a deleted function is restored, too."""
    from ..opened import with_asking_workshop

    return _judged(scene, with_asking_workshop(scene, lambda shop: shop.rollback(name, version)))


@click.command()
@click.argument("name")
@click.option("--call", required=True, help="The call, such as 'add_up([1, 2])'.")
@click.option("--expected", required=True, help="What it must return, as Python prints it.")
@scene
def add_example(scene: CliContext, name: str, call: str, expected: str) -> int:
    """Add an example to a function. It is written into its docstring if it passes."""
    from ..opened import with_asking_workshop

    return _judged(scene, with_asking_workshop(scene, lambda shop: shop.add_example(name, call, expected)))


@click.command()
@click.argument("name")
@_reason
@scene
def confirm(scene: CliContext, name: str, reason: str) -> int:
    """Admit a rejected candidate with the results that came back. Only possible if its examples expected other
    results.
    """
    from ..opened import with_workshop

    return _judged(scene, with_workshop(scene, lambda shop: shop.confirm(name, reason=reason)))


@click.command()
@click.argument("name", default="")
@click.option("--drop", is_flag=True, help="Discard the candidate NAME.")
@scene
def pending(scene: CliContext, name: str, drop: bool) -> None:  # noqa: FBT001  (click)
    """Show the rejected candidates. With NAME that one, with its source."""
    from ..opened import with_workshop

    if drop:
        dropped = with_workshop(scene, lambda shop: shop.drop(name))
        scene.result(dropped, [line(("ok", "✓ "), f"{name} is given up")])
        return
    candidates = with_workshop(scene, lambda shop: shop.all_pending())
    if name and name not in candidates:
        raise UsageError(f"No candidate named `{name}` was rejected.", fix="Next: toolwright functions pending")
    shown = {name: candidates[name]} if name else candidates
    source = shown[name].text if name else ""
    scene.result(shown, [*pending_lines(shown), *(line(text) for text in bare_lines(source))])
    confirm, drop_it = "toolwright functions confirm", "toolwright functions pending NAME --drop"
    scene.hint(pending_hint(shown, confirm, drop_it) if shown else "There are no rejected candidates.")


def _judged(scene: CliContext, verdict: "Judgment") -> int:
    scene.result(verdict, verdict_lines(verdict))
    return 0 if verdict.admitted else 1


COMMANDS = (history, diff, blame, rollback, add_example, confirm, pending)
