"""The examples that are required to prove a function: two with different results, both answers of a boolean one.

Pure. If examples cannot show a function's results (effects, chance, the time of day), it becomes a draft.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from ..capability import EFFECTS, uses_context
from ..draft import Finding, TrialSubject
from ..tree import expression, nodes_of, parameters
from .agreement import literal_value

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function

    from ..candidate import GivenExample

Unproven = Literal["", "effects", "calls", "chance", "no-parameters", "no-result"]
ALIKE = ("one-sided-examples", "same-results", "contradictory-examples")
"""Findings that one more call with another result would resolve."""

_CHANCE = frozenset(
    ("uuid4", "uuid1", "now", "today", "utcnow", "urandom", "monotonic", "perf_counter", "time_ns", "getrandbits")
)
# With an argument, these only convert a time.
_CLOCK = frozenset(("time", "localtime", "gmtime", "ctime", "asctime"))
_GENERATORS = frozenset(("random", "secrets"))


def unprovable(subject: TrialSubject) -> Unproven:
    """Return why examples cannot prove a function, or an empty text."""
    if uses_context(subject.tree) & EFFECTS:
        return "effects"
    if subject.function.returns == "None":
        return "no-result"
    if not parameters(subject.node):
        return "no-parameters"
    return "chance" if is_by_chance(subject.tree) else ""


def is_by_chance(tree: ast.Module) -> bool:
    """Check whether code calls something that differs each time, such as random numbers or the clock."""
    nodes = nodes_of(tree)
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module in _GENERATORS]
    drawn = _CHANCE.union(alias.asname or alias.name for node in imports for alias in node.names)
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in drawn:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in _GENERATORS:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr=name), args=[]) if name in _CLOCK:
                return True
    return False


def too_few(
    function: "Function", examples: Sequence["Example | GivenExample"], unproven: Unproven
) -> Iterator[Finding]:
    """Yield the findings about missing examples."""
    if not unproven:
        yield from _missing(function, examples)
    elif not examples:
        message = f"`{function.name}` has no example that could show what it does, so it is added as a draft"
        yield Finding("unproven", message, line=function.line)


def _missing(function: "Function", examples: Sequence["Example | GivenExample"]) -> Iterator[Finding]:
    name, line = function.name, function.line
    results = {promise(example) for example in examples}
    calls = {example.call.strip() for example in examples}
    call = f">>> {name}({', '.join(function.parameters['properties'])})"
    if twice := contradictions(examples):
        message = f"the example `{sorted(twice)[0]}` is there twice, with different results"
        fix = f"take one of the two out; add a line `{call}` with other values and their result"
        yield Finding("contradictory-examples", message, fix, line)
    elif len(calls) < 2:
        times = f"the same example {len(examples)} times" if len(examples) > 1 else "only one example"
        message = f"`{name}` has {times if calls else 'no example'}; two with different results are needed"
        fix = f"add under `Examples:` a line `{call}` with real values, and its result on the line below"
        yield Finding("too-few-examples", message, fix, line)
    # Comparisons always show `True`, so equal results say little about them.
    elif len(results) < 2 and not all(isinstance(expression(example), ast.Compare) for example in calls):
        result = next(iter(results))
        if opposite := {"True": "False", "False": "True"}.get(result):
            code, message = "one-sided-examples", f"gives {result}; one that gives {opposite} is needed too"
        else:
            code, message = "same-results", "gives the same result, as a body that ignores its arguments would"
        below = f"{opposite}, and `{opposite}`" if opposite else "another, and that result"
        fix = f"add a line `{call}` with values for which the result is {below} on the line below"
        yield Finding(code, f"every example of `{name}` {message}", fix, line)


def contradictions(examples: Sequence["Example | GivenExample"]) -> set[str]:
    """Return the calls that have several examples with different results."""
    promised: dict[str, set[str]] = {}
    for example in examples:
        if not example.setup:
            promised.setdefault(example.call.strip(), set()).add(promise(example))
    return {call for call, results in promised.items() if len(results) > 1}


def promise(example: "Example | GivenExample") -> str:
    """Return a normalized text of what an example promises, so that equal promises have equal texts."""
    if example.raises:
        return f"raises {example.raises}"
    value = literal_value(example.expected)
    return example.expected.strip() if type(value) is object else repr(value)
