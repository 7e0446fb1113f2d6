"""What a person is shown of each kind of result, wherever it was asked for."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from agent_core.base.records import from_json
from agent_core.functions.service.function_facts import FunctionDetails, Rated, Released
from agent_core.functions.service.history import FunctionHistory, VersionDiff
from agent_core.functions.service.judgment import Judgment
from agent_core.functions.service.pins import Pinned
from agent_core.functions.service.plan import Deletion, Joined, Relocated
from agent_core.views import function_view, verdicts
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, Span, line
from sandbox.wire.lines import bare_lines

from .verb import Door


@singledispatch
def view(result: object, door: Door, look: str = "") -> Result:
    """Return what is shown of a result, or of a part of it (`look`)."""
    raise TypeError(f"There is no view of {type(result).__name__}.")


def read(kind: str, document: Mapping[str, Any]) -> object:  # Any: JSON
    """Return the result of a document that came from elsewhere.

    Raises:
        KeyError, TypeError: it is no document of this kind.
    """
    return from_json(next(one for one in view.registry if one.__name__ == kind), document)


@view.register
def _details(details: FunctionDetails, door: Door, look: str = "") -> Result:
    if look:
        hint = f"??{details.function.name} shows its source." if door.at_prompt else ""
        return Result(details, function_view.brief_lines(details), hint)
    source = details.source, details.function.line, details.coverage.missed
    return Result(details, function_view.facts_lines(details, door.typed), source=source)


@view.register
def _history(history: FunctionHistory, door: Door) -> Result:
    if door.at_prompt:
        return Result(history, table=function_view.versions_table(history))
    next_command = f"It is deleted. Next: knapper functions rollback {history.name}"
    lines = function_view.history_lines(history.versions)
    return Result(history, lines, next_command if history.deleted else "")


@view.register
def _diff(diff: VersionDiff, _: Door) -> Result:
    return Result(diff, function_view.diff_lines(diff))


@view.register
def _released(released: Released, _: Door) -> Result:
    told = " is released: the model sees it again, and its failures are counted from zero"
    return Result(released, [line(("ok", "✓ "), ("name", released.released), told)])


@view.register
def _rated(rated: Rated, _: Door) -> Result:
    mark: Span = ("ok", "✓ ")
    told = ""
    if rated.thumb == "bad":
        mark = ("warn", "~ ")
        told = "; the agent is notified"
    said = f" is rated {rated.thumb}; its standing is {rated.standing}{told}"
    return Result(rated, [line(mark, ("name", rated.name), said)])


@view.register
def _pinned(pinned: Pinned, door: Door) -> Result:
    names = ", ".join(pinned.functions) or "nothing that is there now"
    told = (
        " is pinned: only you change "
        if pinned.holds
        else " is not pinned any more: agents may change "
    )
    lines = [line(("ok", "✓ "), ("name", pinned.pattern), told, names)]
    hint = f"To let it go: {door.typed}unpin {pinned.pattern}" if pinned.holds else ""
    return Result(pinned, lines, hint)


@view.register
def _joined(joined: Joined, door: Door) -> Result:
    lines: list[Line] = []
    code = 0
    for judgment in joined.joined:
        result = judged(judgment, door)
        lines += result.lines
        code = max(code, result.code)
    return Result(joined, lines, code=code)


@view.register
def _deleted(deletion: Deletion, _: Door) -> Result:
    lines = [line(("ok", "✓ "), f"deleted {deletion.name} from {deletion.module}")]
    if users := ", ".join(deletion.needed_by):
        lines.append(line(("dim", f"Its text stays there, private: {users} uses it.")))
    return Result(deletion, lines)


@view.register
def _relocated(relocated: Relocated, door: Door) -> Result:
    went = f"{relocated.was} is {relocated.name} now"
    if relocated.was_in:
        went = f"{relocated.name} is in {relocated.module} now"
    lines = [line(("ok", "✓ "), went, ("dim", f"  {', '.join(relocated.files)}"))]
    if relocated.asks_again:
        names = ", ".join(relocated.asks_again)
        lines.append(line(("warn", f"  asks again for what it was allowed: {names}")))
    lines += [line(("dim", f"  not looked at: {place}")) for place in relocated.unread]
    if relocated.name != relocated.was:
        kept = f"its versions and calls until now: {door.typed}history {relocated.was}"
        lines.append(line(("dim", f"  {kept}")))
    return Result(relocated, lines, f"To take it back: {door.typed}rollback {relocated.name}")


@view.register
def judged(judgment: Judgment, door: Door, hint: str = "") -> Result:
    """Return the verdict on a new or changed function. At the prompt, an admitted function's hints are folded.

    What is asked of its author comes before another hint.
    """
    lines = (
        verdicts.folded_lines(judgment, f"??{judgment.name}")
        if door.at_prompt
        else verdicts.verdict_lines(judgment)
    )
    # Where a standing is first read, its meaning stands below; a pipe gets the verdict alone.
    aside = function_view.standing_words({judgment.standing} if judgment.admitted else set())
    *above, last = bare_lines(_challenge_hint(door, judgment) or hint) or [""]
    aside += [line(("dim", text)) for text in above]
    return Result(judgment, lines, last, 0 if judgment.admitted else 1, aside)


def _challenge_hint(door: Door, judgment: Judgment) -> str:
    """Return the command for giving the predicted results, if they are what a candidate lacks."""
    if judgment.admitted or not judgment.challenges:
        return ""
    at_prompt = f"= {', '.join('RESULT' for _ in judgment.challenges)}"
    given = (
        at_prompt if door.at_prompt else " ".join("--expected RESULT" for _ in judgment.challenges)
    )
    return f"Next: {door.typed}confirm {judgment.name} {given}"
