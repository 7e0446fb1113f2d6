"""What a verb on functions says to a model: what happened, what it means, what to do next."""

from collections.abc import Iterable, Sequence

from ..events import FunctionsChanged
from ..gate import Verdict
from ..problem import Problem
from ..registry.function import Function
from ..untrusted import block, shorten

MAX_PROBLEMS = 12


def signature(function: Function) -> str:
    """A function on one line: names, types and defaults as its schema has them."""
    properties = function.parameters.get("properties", {})
    required = function.parameters.get("required", ())
    parts = [name if name in required else f"{name}?" for name in properties]
    typed = [f"{part}: {_type(properties[name])}" for part, name in zip(parts, properties, strict=True)]
    gives = f" -> {function.returns}" if function.returns else ""
    return f"{function.name}({', '.join(typed)}){gives}"


def admitted(verdict: Verdict, function: Function, done: str) -> str:
    """The function joined: what it is called with, what was mended, and what is weak about it."""
    lines = [f"`{verdict.name}` {done} in {function.path} and can be called now. It is: {signature(function)}"]
    lines += [f"Mended: {mend.message}" for mend in verdict.mends]
    lines += [f"Note: {problem}" for problem in verdict.problems if problem.severity == "warns"][:MAX_PROBLEMS]
    if verdict.standing == "draft":
        lines.append("It is a draft: its examples could not prove it, so its answers are unproven. Say so to the user.")
    if verdict.confirmed:
        lines.append(f"Taken as they came back, not as predicted: {'; '.join(verdict.confirmed)}.")
    lines.append(f"Next: call `{verdict.name}` with the user's data.")
    return "\n".join(lines)


def refused(verdict: Verdict, *, again: bool) -> str:
    """The function did not join: every problem, and the shortest ways out."""
    problems = verdict.refusals
    lines = [f"`{verdict.name}` was not made. {_count(problems)}:"]
    if again:
        lines.insert(0, "You sent the same code again, and it was refused for the same reasons.")
    lines += [_line(problem) for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"- and {len(problems) - MAX_PROBLEMS} more.")
    lines += [f"Mended already: {mend.message}" for mend in verdict.mends]
    lines.append(_way_out(verdict))
    return "\n".join(lines)


def source_of_pending(verdict: Verdict) -> str:
    """The text that edit_function works on, where mends made it differ from what was sent."""
    return "The candidate now reads:\n" + block(verdict.source, 6_000) if verdict.mends and verdict.source else ""


def changes(found: Iterable[FunctionsChanged], functions: dict[str, Function]) -> str:
    """One notice about functions that changed by another hand."""
    sentences: list[str] = []
    for change in found:
        sentences += [
            f"`{name}` appeared: {signature(functions[name])}." for name in change.loaded if name in functions
        ]
        sentences += [
            f"`{name}` changed: it is now {signature(functions[name])}." for name in change.changed if name in functions
        ]
        sentences += [f"`{name}` is gone." for name in change.removed]
        sentences += [
            f"A saved file was rejected, and its last good version, if it had one, goes on: {what}."
            for what in change.rejected
        ]
    return shorten("Functions changed by another hand. " + " ".join(dict.fromkeys(sentences)), 4_000)


def _way_out(verdict: Verdict) -> str:
    name = verdict.name
    if verdict.can_be_confirmed:
        return (
            "Which is wrong, the function or the example? "
            f"If what came back is right, call confirm_function(function_name={name!r}). "
            f"If the function is wrong, mend it: edit_function(function_name={name!r}, old_text=…, new_text=…)."
        )
    return (
        f"Next: mend all of it and call create_function again with the whole code, or change a part with "
        f"edit_function(function_name={name!r}, old_text=…, new_text=…)."
    )


def _count(problems: Sequence[Problem]) -> str:
    return "One thing is in the way" if len(problems) == 1 else f"{len(problems)} things are in the way"


def _line(problem: Problem) -> str:
    line = f"line {problem.where.line}: " if problem.where.line else ""
    mend = f" Mend: {problem.mend}." if problem.mend else ""
    return f"- {line}{problem.what}.{mend} [{problem.code}]".replace("..", ".")


def _type(schema: object) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return " | ".join(repr(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {_type(schema.get('items', {}))}"
    text = " | ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{text} = {schema['default']!r}" if "default" in schema else text
