"""Answers to a model about operations on functions: what happened, what it means, what to do next."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent_core.base.errors import UsageError
from agent_core.base.events import FunctionsChanged
from agent_core.base.problem import MORE, Place, Problem
from agent_core.base.records import replace
from agent_core.base.untrusted import block, fence, one_line, shorten
from agent_core.model.request import REPLY
from agent_core.registry.function import signature
from agent_core.registry.source import UNREADABLE_FOLDER
from sandbox.wire.lines import bare_lines

from ..gate.verdict import GRANTABLE, REACHES_NOTHING, WEAK_EXAMPLES

if TYPE_CHECKING:
    from agent_core.access.grants import Grants
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function
    from agent_core.registry.registry import RegistryChange

    from ..gate import Breakage, Disagreement, ExampleResult, Verdict

MAX_PROBLEMS = 12
MOST_NOTES = 2
_MOST_SEEN = 3


def admitted(
    verdict: "Verdict",
    function: "Function",
    done: str,
    left_over: Sequence[str] = (),
    told: Collection["Problem"] = (),
    *,
    is_called: bool = False,
) -> str:
    """Return the answer that the function was admitted: its signature, its examples, the fixes, and doubts about it.

    `left_over` are functions that the version before used, and that nothing uses now. Notes that were `told` about the
    version before are not told again. What its examples leave open is told by introspect_function. The same reply may
    call it already.
    """
    lines = [
        f"`{verdict.name}` {done} in {function.path} and can be called now. It is: {signature(function)}"
    ]
    ran = [
        stage.note
        for stage in verdict.stages
        if stage.stage == "examples" and stage.note.endswith("agree")
    ]
    lines += [f"{note}." for note in ran]
    lines += [f"Fixed: {fix.message}" for fix in verdict.fixes]
    notes = [
        problem
        for problem in verdict.problems
        if problem.severity == "warns" and problem.code != WEAK_EXAMPLES and problem not in told
    ]
    lines += [f"Note: {problem}" for problem in notes[:MOST_NOTES]]
    if left_over:
        names = ", ".join(f"`{name}`" for name in left_over)
        lines.append(f"Nothing uses {names} now: delete_function, unless the user calls it.")
    if verdict.confirmed:
        # Without the calls: a small model confuses the last values that it reads with the user's.
        lines.append(
            f"Taken as they came back, not as predicted: {len(verdict.confirmed)} of its examples."
        )
    if verdict.standing == "draft":
        lines.append("It is a draft: no example could prove its results.")
    lines += [broken_until_changed(breakage) for breakage in verdict.breakages]
    if not is_called:
        lines.append(f"Next: call `{verdict.name}` with the user's data.")
    return "\n".join(lines)


def granted(grants: "Grants") -> list[str]:
    """Return the lines about what the user granted the function."""
    return [f"A human lets it: {'; '.join(grants.sentences())}."] if grants else []


def refused(
    verdict: "Verdict", *, is_repeat: bool, replaces: bool, waits_for: Sequence[str] = ()
) -> str:
    """Return the answer that the function was rejected: every problem, and the shortest way to fix it.

    The texts are those that a small model was shown in its demonstration and reacts to:
    change both together.
    """
    if waits_for:
        return _waiting(verdict, waits_for)
    lines = ["You sent the same code again."] if is_repeat else []
    edit = f"edit_function(function_name={verdict.name!r}, changes=…)"
    send = f"call {edit}" if replaces else "call create_function again"
    if verdict.challenges:
        return "\n".join(
            [*lines, ask_for_results(verdict.name, verdict.challenges, replaces=replaces)]
        )
    if verdict.can_be_confirmed:
        done = "not changed yet" if replaces else "not made yet"
        refusal = "" if verdict.disagreements else verdict.refusals[0].message
        lines.append(
            f"`{verdict.name}` is {done}: {refusal or 'its code and its examples do not agree'}."
        )
        for row in verdict.to_confirm[:MAX_PROBLEMS]:
            returned, expected = one_line(row.returned, 400), one_line(row.expected, 400)
            says = f"the example says {expected}" if expected else "that can be the example"
            lines.append(f"- {one_line(row.call, 200)} returned {returned}, and {says}.")
        confirm = f"confirm_function(function_name={verdict.name!r})"
        how = f"change one place: {edit}" if is_repeat else f"fix the code and {send}"
        fix = f"If {'it is wrong' if refusal else 'the example is right'}, {how}."
        return "\n".join([*lines, f"If what it returned is right, call {confirm}. {fix}"])
    problems = verdict.refusals
    if _is_small_alarm(verdict):
        lines.append(
            f"`{verdict.name}` is {'not changed yet' if replaces else 'not made yet'}: {problems[0].message}."
        )
        confirm = f"If it only computes, call confirm_function(function_name={verdict.name!r})."
        return "\n".join([*lines, f"{confirm} If it has to do more, fix the code and {send}."])
    count = (
        "One thing is in the way"
        if len(problems) == 1
        else f"{len(problems)} things are in the way"
    )
    if any(problem.code == MORE for problem in verdict.problems):
        count = f"More than {len(problems)} things are in the way"
    lines.append(f"{not_done(verdict, replaces=replaces)} {count}:")
    lines += [_line(problem) for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"- and {len(problems) - MAX_PROBLEMS} more.")
    lines += [f"Fixed already: {fix.message}" for fix in verdict.fixes]
    but = (
        " but what needs a grant"
        if {p.code in GRANTABLE for p in problems} == {True, False}
        else ""
    )
    if is_repeat:
        how = f"change each place{but}: {edit}"
    elif replaces:
        how = f"fix all of it{but} and {send}; its `old_text` may be of this candidate, or of the function as it stands"
    else:
        how = f"fix all of it{but} and {send} with the whole code"
    if _is_beyond(verdict):
        how += f". If it does what it says all the same: confirm_function(function_name={verdict.name!r}, reason=…)"
    return "\n".join([*lines, f"Next: {how}."])


def _waiting(verdict: "Verdict", waits_for: Sequence[str]) -> str:
    """Return that a candidate waits for others that were not made, and what else is in its way, if anything.

    What it needs a grant for is not: the user is asked.
    """
    names = [f"`{name}`" for name in waits_for]
    others = [
        row
        for row in verdict.refusals
        if row.code not in GRANTABLE and not any(_mentions(row, name) for name in waits_for)
    ]
    that = f"{' and '.join(names)}, which {'was' if len(names) == 1 else 'were'} not made"
    lines = [f"`{verdict.name}` waits for {that}: send it again after that."]
    return "\n".join(
        [*lines, *(["Also in the way:"] if others else []), *map(_line, others[:MAX_PROBLEMS])]
    )


def _mentions(problem: "Problem", name: str) -> bool:
    return f"`{name}`" in problem.message or f"'{name}'" in problem.message


def ask_for_results(
    name: str, calls: Sequence[str], *, replaces: bool = False, given: int | None = None
) -> str:
    """Return the question for the results of calls; `given` is the number of results if it was wrong."""
    many = "its result" if len(calls) == 1 else f"their {len(calls)} results, in this order"
    wrong = f" ({given} came)" if given else ""
    answer = f"confirm_function(function_name={name!r}, expected=[{', '.join('…' for _ in calls)}])"
    lines = [
        f"`{name}` is not {'changed' if replaces else 'made'} yet: its examples leave open what it does otherwise.",
        "What must be returned here, by what it is for?",
        *(f"- {one_line(call, 200)}" for call in calls),
        f"Work out {many}{wrong}, and call {answer}.",
    ]
    return "\n".join(lines)


def _is_beyond(verdict: "Verdict") -> bool:
    """Check whether the only obstacle is that a reader expects more than computing from the description."""
    return {problem.code for problem in verdict.refusals} == {REACHES_NOTHING}


def _is_small_alarm(verdict: "Verdict") -> bool:
    """Check whether the only obstacle is a small reader, which is often wrong; the author is then as small."""
    return _is_beyond(verdict) and verdict.answer is not None and verdict.answer.is_small


def not_done(verdict: "Verdict", *, replaces: bool) -> str:
    """Return the sentence that nothing was changed."""
    return f"`{verdict.name}` was not {'changed' if replaces else 'made'}."


def promised(changed: Sequence["Disagreement"]) -> str:
    """Return the addition to a refusal if confirming would change an earlier example."""
    if not changed:
        return ""
    was = "was there before" if len(changed) == 1 else "were there before"
    calls = "; ".join(one_line(disagreement.call, 120) for disagreement in changed)
    return f"{calls} {was}: to change it, confirm with a `reason`, and a person decides."


def unconfirmed(verdict: "Verdict", replaces: bool) -> str:  # noqa: FBT001 - a fact, not a mode
    """Return why a candidate cannot be confirmed as it is."""
    if _is_small_alarm(verdict):
        return refused(verdict, is_repeat=False, replaces=replaces)
    lines = [
        f"`{verdict.name}` cannot be confirmed: more than its examples' results is in the way."
    ]
    lines.append(refused(verdict, is_repeat=False, replaces=replaces))
    if all(problem.code.endswith("-dropped") for problem in verdict.refusals):
        call = f"confirm_function(function_name={verdict.name!r}, reason=…)"
        lines.append(f"If the new result is right: {call}, and a person decides.")
    return "\n".join(lines)


def known_example(name: str, example: "Example", expected: str) -> str:
    """Return the answer that a call already has an example, with its promise."""
    says = example.raises or example.expected.strip()
    has = f"{one_line(example.call, 200)} gives {fence(says, 200)}"
    text = f"`{name}` has that example already, on line {example.line}: {has}. Nothing was changed."
    return (
        text
        if says == expected.strip()
        else f"{text} To change it, call edit_function with a reason: a person decides."
    )


def failed_example(name: str, result: "ExampleResult") -> str:
    """Return the answer that an example failed and was not kept, with both values; neither is assumed to be right."""
    wrote, back = fence(result.expected, 200), fence(result.returned, 200)
    return (
        f"`{name}` was not changed: {fence(result.call, 200)} returned {back}; the example says {wrote}.\n"
        f"If {back} is right, call add_example with it. If {wrote} is right, fix the function first (edit_function)."
    )


def excluded(verdict: "Verdict", *, is_repeat: bool) -> frozenset[str]:
    """Return the functions that a schema-constrained model is not offered next, because they would lead nowhere.

    At first it must act instead of replying. If it sends the same candidate again, the function that it used is
    excluded.
    """
    if verdict.can_be_confirmed or verdict.challenges or _is_beyond(verdict):
        return frozenset({"create_function"} if is_repeat else {REPLY})
    return frozenset({"confirm_function"} if is_repeat else {"confirm_function", REPLY})


def read_edits(changes: Iterable[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Return the old and the new text of each change.

    Raises:
        UsageError: a change has other keys.
    """
    edits: list[tuple[str, str]] = []
    for change in changes:
        if change.keys() != {"old_text", "new_text"}:
            has = one_line(", ".join(change) or "nothing", 200)
            fix = 'Give {"old_text": …, "new_text": …} for each place.'
            raise UsageError(f"A change has `old_text` and `new_text`, and one has {has}.", fix=fix)
        edits.append((change["old_text"], change["new_text"]))
    return edits


def edited(code: str, edits: Sequence[tuple[str, str]]) -> "str | Problem":
    """Return a text with each old passage replaced by its new one, or why one of them has no single place in it."""
    places: list[tuple[int, int, str]] = []
    for number, (old, new) in enumerate(edits, 1):
        which = "`old_text`" if len(edits) == 1 else f"the `old_text` of change {number}"
        count = code.count(old) if old else 0
        if count != 1:
            how = (
                f"is in it {count} times: give more of the lines around it"
                if count
                else "is not in it"
            )
            return Problem("no-place", f"{which} {how}", Place(""))
        start = code.index(old)
        places.append((start, start + len(old), new))
    places.sort()
    parts: list[str] = []
    end = 0
    for start, stop, new in places:
        if start < end:
            return Problem("overlap", "two of the changes overlap: make one of them", Place(""))
        parts += [code[end:start], new]
        end = stop
    if not places:
        return Problem("no-change", "there are no `changes`", Place(""))
    return "".join([*parts, code[end:]])


def source_of_pending(verdict: "Verdict") -> str:
    """Return the text that edit_function works on, if fixes changed what was sent."""
    return (
        "The candidate now reads:\n" + block(verdict.source, 6_000)
        if verdict.fixes and verdict.source
        else ""
    )


def changes(
    change_events: Iterable[FunctionsChanged],
    functions: Mapping[str, "Function"],
    hidden: Collection[str] = (),
) -> str:
    """Return one notice about functions that someone else changed, without hidden ones; it may be empty."""
    told = list(change_events)
    by_user = [change for change in told if change.by == "user"]
    others = _sentences([change for change in told if change.by != "user"], functions, hidden)
    own = _sentences(by_user, functions, hidden)
    is_change = any(change.loaded or change.changed or change.removed for change in by_user)
    parts = (
        f"Functions changed by someone else. {others}" if others else "",
        f"The user changed functions. {own}" if own and is_change else own,
    )
    return shorten(" ".join(filter(None, parts)), 4_000)


def _sentences(
    change_events: Iterable[FunctionsChanged],
    functions: Mapping[str, "Function"],
    hidden: Collection[str],
) -> str:
    sentences: list[str] = []
    seen = {name: function for name, function in functions.items() if name not in hidden}
    for change in change_events:
        sentences += [
            f"`{name}` appeared: {signature(seen[name])}." for name in change.loaded if name in seen
        ]
        sentences += [
            f"`{name}` changed: it is now {signature(seen[name])}."
            for name in change.changed
            if name in seen
        ]
        drafts = {name: how for name, how in change.disagreeing.items() if name not in hidden}
        sentences += [f"`{name}` is a draft now: {how}." for name, how in drafts.items()]
        noted = {name: notes for name, notes in change.noted.items() if name not in hidden}
        sentences += [
            f"Of `{name}`: {note}." for name, notes in noted.items() for note in bare_lines(notes)
        ]
        sentences += [f"`{name}` is gone." for name in change.removed]
        sentences += [f"`{path}`, which was rejected, loads again." for path in change.fixed]
        sentences += [
            (
                f"{problem}."
                if f" {UNREADABLE_FOLDER}: " in problem
                else f"A saved file was rejected, and its last good version, if it had one, stays in use: {problem}."
            )
            + (
                f" That line reads {fence(change.lines[problem], 200)}."
                if problem in change.lines
                else ""
            )
            for problem in change.rejected
        ]
    return " ".join(dict.fromkeys(sentences))


def summed(change: "RegistryChange", change_events: Iterable[FunctionsChanged]) -> "RegistryChange":
    """Return a reload with all events added, but only those standings and failing examples that still hold."""
    names: dict[str, set[str]] = {
        "loaded": set(),
        "changed": set(),
        "removed": set(),
        "fixed": set(),
    }
    still: dict[str, dict[str, str]] = {"standings": {}, "disagreeing": {}}
    noted: dict[str, str] = {}
    for event in change_events:
        for key, name_set in names.items():
            name_set.update(getattr(event, key))
        settled = {*event.changed, *event.removed}
        for key, texts in still.items():
            still[key] = {
                name: how for name, how in texts.items() if name not in settled
            } | getattr(event, key)
        noted |= event.noted
    sorted_names = {key: tuple(sorted(members)) for key, members in names.items()}
    return replace(change, **sorted_names, **still, noted=noted)  # type: ignore[arg-type]  # keys are field names


def difference(disagreements: Sequence["Disagreement"]) -> str:
    """Return how a function differs from its examples, with the first of them."""
    first, more = disagreements[0], len(disagreements) - 1
    back, wrote = (
        one_line(first.returned, 80) or "nothing",
        one_line(first.expected, 80) or "nothing",
    )
    also = f", and {more} more" if more else ""
    return f"{one_line(first.call, 80)} gave {back}, its example on line {first.line} says {wrote}{also}"


def breakage(breakage: "Breakage") -> tuple[str, str]:
    """Return the changed function and a sentence about the function that it breaks."""
    user = breakage.user
    back = (
        f"; roll back with rollback_function or /rollback {breakage.name}" if breakage.name else ""
    )
    broken = f"breaks `{user.name}` ({user.path}:{user.line}), a draft now"
    return breakage.name, f"{broken}: {one_line(breakage.description, 400)}{back}"


def broken_until_changed(breakage: "Breakage") -> str:
    """Return the sentence about a function that the same reply changes next, or that uses one of these."""
    return f"Until its own code fits, `{breakage.user.name}` is a draft: {breakage.description}."


def still_broken(breakage: "Breakage") -> str:
    """Return the sentence that a function was left broken, because the change that should fit it was refused."""
    return (
        f"`{breakage.user.name}` stands as it was, and is a draft now; with the new `{breakage.name}`:"
        f" {breakage.description}."
    )


def seen_later(problems: Sequence["Problem"]) -> str:
    """Return the findings of the background review, one per line with place and fix, the doubtful ones last.

    Findings about confusable functions are always included.
    """
    confusions = [problem for problem in problems if problem.code == "confusable"]
    ordered = [problem for problem in problems if problem not in confusions]
    ordered.sort(key=lambda problem: problem.code == WEAK_EXAMPLES)
    shown = [
        f"{problem.message} ({problem.where})" + (f": {problem.fix}" if problem.fix else "")
        for problem in [*ordered[:_MOST_SEEN], *confusions]
    ]
    return "\n".join(
        [*shown, *([f"{len(ordered) - _MOST_SEEN} more"] if len(ordered) > _MOST_SEEN else [])]
    )


def problems_of(problems: Sequence["Problem"]) -> str:
    """Return a line for each problem."""
    return "\n".join(map(_line, problems))


def _line(problem: "Problem") -> str:
    line = f"line {problem.where.line}: " if problem.where.line else ""
    fix = f" Fix: {problem.fix}." if problem.fix else ""
    return f"- {line}{problem.message}.{fix} [{problem.code}]".replace("..", ".")
