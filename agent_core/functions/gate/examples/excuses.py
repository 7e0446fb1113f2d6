"""A library's examples that do not hold here through no fault of its code, and the doctest directive that says so.

Its author ran them with options, on another Python, or wrote down what chance, the clock or a set's order gave. Where
an example agrees under one of doctest's options, the option is written there; where nothing can be said of it, SKIP.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox import Outcome, Raised, Returned, TimedOut
from sandbox.wire.lines import lines_of

from ..tree import nodes_of, parse
from ..trial import placed
from .agreement import agrees, doctest_form
from .sufficiency import is_by_chance

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import ModuleReading

    from ..draft import Draft

SKIP = "SKIP"
_ELSEWHERE = frozenset({"NameError", "ImportError", "ModuleNotFoundError"})
_ADDRESS = re.compile(r"\b0x(?:[0-9a-fA-F]{4,}\b|\.{3})")  # also where an ellipsis stands for it
_PART = re.compile(r"\w+|[^\w\s]")
_UNORDERED = frozenset({"set", "frozenset", "dict", "Counter", "defaultdict", "items", "keys", "values"})
_OPEN = re.compile(r"""\"\"\"|\'\'\'""")


def option_for(example: "Example", outcome: Outcome, *, is_float: bool) -> str:
    """Return the doctest options under which an example agrees; an empty text if there are none."""
    options = _text_options(example) if isinstance(outcome, Returned) else _error_options(outcome)
    for names in options:
        loose = replace(example, options=(*example.options, *((name, True) for name in names)))
        if agrees(loose, outcome, is_float=is_float):
            return ", ".join(f"+{name}" for name in names)
    return ""


def _text_options(example: "Example") -> Iterator[tuple[str, ...]]:
    """Yield options for a text that is no literal: of a literal, each character counts."""
    try:
        nodes = list(ast.walk(syntax.parse(example.expected.strip(), mode="eval")))
        is_plain = not any(isinstance(node, ast.Constant) and node.value is ... for node in nodes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        is_plain = False
    if not is_plain:
        yield from (("NORMALIZE_WHITESPACE",), ("ELLIPSIS",), ("ELLIPSIS", "NORMALIZE_WHITESPACE"))


def _error_options(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Yield options for an error, which another Python, or another version of the library, words differently."""
    if isinstance(outcome, Raised):
        yield ("IGNORE_EXCEPTION_DETAIL",)


def excuse(example: "Example", outcome: Outcome, again: Outcome, code: ast.Module) -> str:
    """Return why nothing can be said of an example that does not agree; an empty text if it is simply wrong.

    `again` is how it went when it ran once more, `code` the text with its function.
    """
    match outcome:
        case Raised(failure=failure) if failure.type == "Unsendable":
            return "its result is nothing that can be sent"
        case Raised():
            return _missing(outcome)
        case TimedOut():
            return "it takes too long"
        case Returned() if not example.raises:
            return next(_uncertain(example, doctest_form(outcome).text, again, code), "")
    return ""


def _uncertain(example: "Example", returned: str, again: Outcome, code: ast.Module) -> Iterator[str]:
    """Yield the reasons why what came back need not be what is written."""
    if not example.expected.strip():
        yield "no result is written"
    if _ADDRESS.search(example.expected):
        yield "its result shows an address"
    if not isinstance(again, Returned) or doctest_form(again).text != returned:
        yield "its result differs from one run to the next"
    own = parse("\n".join((*example.setup, example.call)))
    if is_by_chance(code) or (isinstance(own, ast.Module) and is_by_chance(own)):
        yield "chance or the clock decides its result"
    if _is_unordered(code, own) and sorted(_PART.findall(example.expected)) == sorted(_PART.findall(returned)):
        yield "its result has no certain order"


def _missing(raised: Raised) -> str:
    """Return what an example names in vain, or a package that its function does without elsewhere."""
    frames, kind = raised.failure.frames, raised.failure.type.rpartition(".")[2]
    is_package = kind in ("ImportError", "ModuleNotFoundError")  # also where the function says so itself
    is_own = is_package or (bool(frames) and frames[-1].path.startswith(("<example", "<setup")))
    is_module = kind == "AttributeError" and raised.failure.message.startswith("module ")
    return "it uses what is not here" if is_own and (kind in _ELSEWHERE or is_module) else ""


def _is_unordered(*trees: object) -> bool:
    for tree in trees:
        for node in nodes_of(tree) if isinstance(tree, ast.Module) else ():
            if isinstance(node, ast.Set | ast.SetComp | ast.Dict | ast.DictComp):
                return True
            name = getattr(node, "id", None) or getattr(node, "attr", None)
            if name in _UNORDERED:
                return True
    return False


def with_directives(text: str, directives: Mapping[int, str]) -> str:
    """Return the text with a doctest directive at the end of each example that begins on one of these lines."""
    lines = lines_of(text)
    for number, options in directives.items():
        last = _last_line(lines, number)
        if last is not None:
            bare = lines[last].rstrip("\r\n")
            lines[last] = f"{bare}  # doctest: {options}{lines[last][len(bare) :]}"
    return "".join(lines)


def _last_line(lines: Sequence[str], number: int) -> int | None:
    """Return the index of the last line of an example's source; None where nothing can be added."""
    at = number - 1
    if not 0 <= at < len(lines) or not lines[at].lstrip().startswith(">>>"):
        return None
    while at + 1 < len(lines) and re.match(r"\s*\.\.\.(?: |$)", lines[at + 1]):
        at += 1
    source = "".join(lines[number - 1 : at + 1])
    return None if _OPEN.search(source) or lines[at].rstrip().endswith("\\") else at


def with_docstring(draft: "Draft", text: str) -> "Draft | None":
    """Return the draft with a text of which only the docstring is another one; None where that is not so."""
    fixed = draft.with_fix("example-directives", "", text)
    reading = _placed(fixed) if text != draft.text and _bare(fixed) == _bare(draft) else None
    if reading is None:
        return None
    own = read_module(ModuleSource.of(draft.candidate.module, text, draft.candidate.path), tree=fixed.tree)
    return replace(fixed, own=own, reading=reading, trial=draft.snapshot.with_module(reading))


def _bare(draft: "Draft") -> str:
    """Return the draft's tree as text, without the docstring of its function."""
    tree, own = draft.tree, draft.function
    nodes = tree.body if tree else []
    return "".join(ast.dump(part) for node in nodes for part in (own.body[1:] if own and node is own else [node]))


def _placed(draft: "Draft") -> "ModuleReading | None":
    """Return the module with the new text; what a worker reported of its types stays."""
    around, draft_reading = draft.snapshot.modules.get(draft.candidate.module), draft.reading
    text = placed(draft, around)
    if isinstance(text, Problem) or draft_reading is None:
        return None
    reading = read_module(ModuleSource.of(draft.candidate.module, text, around.path if around else ""))
    before = {function.name: function for function in draft_reading.functions}
    if {function.name for function in reading.functions} - before.keys():
        return None
    functions = tuple(
        replace(function, parameters=before[function.name].parameters, unresolved=before[function.name].unresolved)
        for function in reading.functions
    )
    return replace(reading, functions=functions) if reading.parsed else None
