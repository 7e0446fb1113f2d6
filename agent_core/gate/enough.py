"""How many examples prove a function: two with different results, both answers of a yes-or-no.

Pure. What cannot be shown by an example at all (effects, chance, the time of day) leaves a draft.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Literal

from ..registry.examples import Example
from ..registry.function import Function
from .agreement import literal_value
from .candidate import GivenExample
from .capability import EFFECTS, uses_context
from .draft import Finding
from .tree import FunctionNode, parameters

Unproven = Literal["", "effects", "chance", "no-parameters", "no-result"]
_CHANCE = frozenset(
    [
        "random",
        "secrets",
        "uuid4",
        "uuid1",
        "now",
        "today",
        "utcnow",
        "time",
        "monotonic",
        "perf_counter",
        "urandom",
        "localtime",
        "gmtime",
    ]
)


def is_unproven(tree: ast.Module, node: FunctionNode | None, function: Function) -> Unproven:
    """Why examples cannot prove a function; empty if they can."""
    if node is None:
        return ""
    if uses_context(tree) & EFFECTS:
        return "effects"
    if function.returns == "None":
        return "no-result"
    if not parameters(node):
        return "no-parameters"
    return "chance" if _is_by_chance(tree) else ""


def _is_by_chance(tree: ast.Module) -> bool:
    """A call of what differs each time: chance, or the clock."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in _CHANCE:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in ("random", "secrets"):
                return True
    return False


def too_few(function: Function, examples: Sequence[Example | GivenExample], unproven: Unproven) -> Iterator[Finding]:
    """What is missing among the examples."""
    name = function.name
    results = {_result(example) for example in examples}
    calls = {example.call.strip() for example in examples}
    if unproven:
        if not examples:
            yield Finding("unproven", f"`{name}` has no example that could show what it does, so it joins as a draft")
        return
    call = f">>> {name}({', '.join(function.parameters['properties'])})"
    if len(calls) < 2:
        times = f"the same example {len(examples)} times" if len(examples) > 1 else "only one example"
        seen = times if calls else "no example"
        mend = f"add under `Examples:` a line `{call}` with real values, and its result on the line below"
        yield Finding(
            "too-few-examples", f"`{name}` has {seen}; two with different results are needed", mend, function.line
        )
    elif results in ({"True"}, {"False"}):
        other = "False" if results == {"True"} else "True"
        what = f"every example of `{name}` gives {results.copy().pop()}; one that gives {other} is needed too"
        mend = f"add a line `{call}` with values for which the result is {other}, and `{other}` on the line below"
        yield Finding("one-sided-examples", what, mend, function.line)
    elif len(results) < 2:
        what = (
            f"every example of `{name}` gives the same result, which a body that ignores its arguments would give too"
        )
        mend = f"add a line `{call}` with values for which the result is another, and that result on the line below"
        yield Finding("same-results", what, mend, function.line)


def _result(example: Example | GivenExample) -> str:
    """What an example promises, such that equal promises are equal texts."""
    if isinstance(example, Example) and example.raises:
        return f"raises {example.raises}"
    text = example.expected.strip()
    value = literal_value(text)
    return text if isinstance(value, object) and type(value) is object else repr(value)
