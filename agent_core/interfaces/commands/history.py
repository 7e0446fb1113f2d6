"""`knapper functions history`, `diff`, `blame` and `rollback`, and the problems that keep a candidate out."""

import ast
from typing import TYPE_CHECKING

import click

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.matching import did_you_mean
from agent_core.base.untrusted import one_line
from sandbox.wire.lines import bare_lines

from ..render.verdicts import folded_lines, verdict_lines
from ..render.versions import blame_lines, diff_lines, history_lines, pending_hint, pending_lines
from ..spans import line
from .verb import Door, Opens, Result, verb

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.judgment import Judgment


@verb(opens=Opens.READABLE)
@click.argument("name")
async def history(door: Door, name: str) -> Result:
    """Show the versions of a function. Even of a deleted one: when, who, what changed and why; * marks the current
    one.
    """
    data = await door.shop.past.history(name)
    if door.at_prompt:
        from ..render.function_tables import versions_table

        return Result(data, table=versions_table(data))
    hint = f"It is deleted. Next: knapper functions rollback {name}" if data.deleted else ""
    return Result(data, history_lines(data.versions), hint)


@verb(opens=Opens.READABLE)
@click.argument("name")
@click.argument("version", default="")
async def diff(door: Door, name: str, version: str) -> Result:
    """Show what changed since VERSION. A number or the beginning of a hash; by default, the one before the current."""
    data = await door.shop.past.diff(name, version)
    return Result(data, diff_lines(data))


@verb(opens=Opens.READABLE)
@click.argument("name")
@click.argument("version", default="")
async def blame(door: Door, name: str, version: str) -> Result:
    """Show who wrote each line, when and why. Uses the current source, or that of VERSION."""
    data = await door.shop.past.blame(name, version)
    return Result(data, blame_lines(data.lines))


@verb(opens=Opens.ASKING)
@click.argument("name")
@click.argument("version", default="")
async def rollback(door: Door, name: str, version: str) -> Result:
    """Restore VERSION of a function. By default the one before the current, and again the one before that; a
    deleted function is restored, too.
    """
    return judged(door, await door.shop.rollback(name, version))


@verb(opens=Opens.ASKING)
@click.argument("name")
@click.option("--call", required=True, help="The call, such as 'add_up([1, 2])'.")
@click.option("--expected", required=True, help="What it must return, as Python prints it.")
async def add_example(door: Door, name: str, call: str, expected: str) -> Result:
    """Add an example to a function. It is written into its docstring if it passes."""
    return judged(door, await door.shop.add_example(name, call, expected))


@verb()
@click.argument("name")
@click.option("--expected", multiple=True, help="The result of a call that was asked about, one for each.")
@click.option("--reason", default="", help="The reason, for the history.")
async def confirm(door: Door, name: str, expected: tuple[str, ...], reason: str) -> Result:
    """Admit a rejected candidate with the results that came back. Only possible if its examples expected other
    results, or if you were asked for results: then give each with --expected.
    """
    candidate = (await door.shop.all_pending()).get(name)
    if expected and candidate and candidate.asked and len(candidate.asked) != len(expected):
        calls = ", ".join(one_line(call, 200) for call in candidate.asked)
        given = f"{len(candidate.asked)} results are asked for, and {len(expected)} came"
        raise UsageError(f"{given}.", fix=f"Give those of {calls}, in this order.")
    verdict = await door.shop.confirm(name, expected=expected, reason=reason)
    return judged(door, verdict, "" if verdict.admitted else challenge_hint(door, verdict))


@verb()
@click.argument("name", default="")
@click.option("--drop", is_flag=True, help="Discard the candidate NAME.")
async def pending(door: Door, name: str, drop: bool) -> Result:  # noqa: FBT001  (click)
    """Show the rejected candidates. With NAME that one, with its source."""
    shop = door.shop
    if drop:
        dropped = await shop.drop(name)
        return Result(dropped, [line(("ok", "✓ "), f"The candidate for {name} was discarded.")])
    confirming, listing = f"{door.typed}confirm", f"{door.typed}pending"
    candidates = await shop.all_pending()
    if name and name not in candidates:
        raise UsageError(
            f"No candidate named `{name}` was rejected.", fix=did_you_mean(name, candidates, f"Next: {listing}")
        )
    shown = {name: candidates[name]} if name else candidates
    source = shown[name].text if name else ""
    dropping = f"{listing} NAME {'' if door.at_prompt else '--'}drop"
    hint = pending_hint(shown, confirming, dropping) if shown else "There are no rejected candidates."
    return Result(shown, [*pending_lines(shown), *(line(text) for text in bare_lines(source))], hint)


async def predicted(door: Door, judgment: "Judgment") -> "Judgment":
    """Ask a user at a terminal for the results that are to be predicted. Return the verdict after that."""
    results: list[str] = []
    if judgment.challenges:
        door.show(
            [line(f"The examples of {judgment.name} leave these calls open. Each result that you give is compared.")]
        )
    for call in judgment.challenges:
        typed = await _typed_result(door, f"What must {one_line(call, 400)} return? ")
        if not typed:
            return judgment
        results.append(typed)
    return await door.shop.confirm(judgment.name, expected=results) if results else judgment


async def _typed_result(door: Door, question: str) -> str | None:
    """Return what a user types. Enter alone is no result: it is asked once more, with what else can be done."""
    typed = await door.ask(question)
    if typed is None or typed.strip():
        return typed
    door.show([line("Type it as Python prints it, such as 3 or 'text'. Enter alone leaves the function waiting.")])
    typed = await door.ask(question)
    return typed and typed.strip()


def challenge_hint(door: Door, judgment: "Judgment") -> str:
    """Return the command that gives the results that are to be predicted."""
    if not judgment.challenges:
        return ""
    at_prompt = f"= {', '.join('RESULT' for _ in judgment.challenges)}"
    given = at_prompt if door.at_prompt else " ".join("--expected RESULT" for _ in judgment.challenges)
    return f"Next: {door.typed}confirm {judgment.name} {given}"


def results_of(text: str) -> list[str]:
    """Return the results in a text in which they follow each other, each as Python writes it."""
    try:
        tree = syntax.parse(f"({text},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [text.strip()]
    return [ast.unparse(element) for element in tree.elts] if isinstance(tree, ast.Tuple) else [text.strip()]


def judged(door: Door, judgment: "Judgment", hint: str = "") -> Result:
    """Return the verdict on a function that was to join. At the prompt its hints fold into one line if it did."""
    lines = folded_lines(judgment, f"??{judgment.name}") if door.at_prompt else verdict_lines(judgment)
    return Result(judgment, lines, hint, 0 if judgment.admitted else 1)


COMMANDS = (history, diff, blame, rollback, add_example, confirm, pending)
