"""Examples: whether a result agrees, whether they can prove a function, and how they are written in its docstring.

Pure, decided on data alone. Literal results are compared by value and type, other results by text under doctest's
options, and errors by type and message. A worker's text is only compared, never trusted. A proof takes two examples
with different results, or both answers of a boolean function. If examples cannot show its results (effects, chance, the
time of day), it becomes a draft.

A new example is added below the last one, or at the docstring's end; nothing else is changed, and a function without a
docstring gets one. A result that is confirmed as returned is weaker evidence than a predicted one, so callers must
distinguish the two.
"""

import ast
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, replace
from agent_core.registry.source import first_line
from sandbox.outcome import Outcome, Raised, Returned
from sandbox.wire.lines import bare_lines, lines_of
from sandbox.wire.strict_json import LOOSE, Malformed, read_json
from sandbox.wire.values import Members, Pairs, by_text

from .draft import Candidate, Finding, GivenExample, TrialSubject
from .running import EFFECTS, is_by_chance, text_reaching, uses_context
from .tree import FunctionNode, expression, function_in, given_self, literal, parameters, parse
from .verdict import Verdict

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function


_MISSING = object()
TRACEBACK: Final = "Traceback (most recent call last):"
_ERROR: Final = re.compile(
    r"(?:raises? )?(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration|Warning)(?::.*)?)"
)
_TRUTHS: Final = frozenset(
    {("1\n", "True\n"), ("0\n", "False\n")}
)  # which doctest takes for the same
_BLANK_MARK: Final = re.compile(r"^[^\S\n]*<BLANKLINE>[^\S\n]*$", re.MULTILINE)
_BLANK_LINE: Final = re.compile(r"^[^\S\n]+$", re.MULTILINE)
_NUMBERS: Final = frozenset({int, float, Decimal, Fraction})
_LAST_DIGITS: Final = 1e-9  # difference between two ways to compute the same float


def doctest_form(returned: Returned) -> str:
    """Return a returned value as doctest shows it: the printed output, then the value unless it is None."""
    shown = ""
    if (
        returned.value is not None
    ):  # of plain values, the host's text counts, otherwise the worker's
        ours = repr(returned.value)
        is_plain = literal_value(ours) is not _MISSING or not returned.shown
        is_ours = is_plain and literal_value(returned.shown) is not _MISSING
        shown = f"{ours if is_ours else returned.shown or ours}\n"
    printed = (
        returned.output
        if not returned.output or returned.output.endswith("\n")
        else returned.output + "\n"
    )
    return printed + shown


def agrees(example: "Example | GivenExample", outcome: Outcome, *, is_float: bool = False) -> bool:
    """Check whether an outcome meets the example's expectation; with `is_float`, 2 equals 2.0."""
    if isinstance(example, GivenExample):
        return given_agrees(example, outcome)
    options = {name for name, on in example.options if on}
    if isinstance(outcome, Raised):
        kind, _, message = example.raises.partition(":")
        is_kind = (
            bool(example.raises)
            and kind.strip().rpartition(".")[2] == outcome.failure.type.rpartition(".")[2]
        )
        is_any = "IGNORE_EXCEPTION_DETAIL" in options
        got = outcome.failure.message.lstrip()
        return is_kind and (
            is_any or same_text(message.strip(), f"{got}\n" if got else "", options)
        )
    if not isinstance(outcome, Returned) or example.raises:
        return False
    expected, is_alone = literal_value(expectation(example)), not outcome.output
    if is_alone and expected is not _MISSING and same(expected, outcome.value, is_float=is_float):
        return True
    ours = f"{outcome.value!r}\n" if is_alone and outcome.value is not None else ""
    texts = {doctest_form(outcome), ours} - {""} or {""}
    return any(same_text(expectation(example), text, options) for text in texts)


def expectation(example: "Example | GivenExample") -> str:
    """Return what an example promises; a comparison without a written result must be true."""
    is_meant = not (example.expected.strip() or example.raises) and isinstance(
        expression(example.call), ast.Compare
    )
    return "True" if is_meant else example.expected


def given_agrees(example: GivenExample, outcome: Outcome) -> bool:
    """Check whether a given example holds: equal in Python within its tolerance, but a bool is not a number.

    Errors are compared by type.
    """
    if isinstance(outcome, Raised):
        kind = error_of(example.expected).partition(":")[0].strip()
        return bool(kind) and kind.rpartition(".")[2] == outcome.failure.type.rpartition(".")[2]
    if not isinstance(outcome, Returned):
        return False
    expected = literal_value(example.expected)
    if expected is _MISSING:
        return example.expected.strip() in (repr(outcome.value), outcome.shown)
    return same(expected, outcome.value, is_float=True, approx=example.approx)


def may_be_value(example: GivenExample) -> bool:
    """Check whether the expected result of an example is made of values such as `Decimal("1.5")`, and of nothing else.

    It must not contain code of the candidate, which would return whatever its function does.
    """
    node = expression(example.expected)
    if (
        node is None
        or error_of(example.expected)
        or literal_value(example.expected) is not _MISSING
    ):
        return False
    return all(inner.id in _VALUES for inner in ast.walk(node) if isinstance(inner, ast.Name))


def value_imports(expressions: Sequence[str], known_names: Collection[str]) -> tuple[str, ...]:
    """Return the imports of values that expressions name and a module does not know, such as `Decimal`."""
    names, modules = set[str](), set[str]()
    for node in chain.from_iterable(
        ast.walk(expression(text) or ast.Pass()) for text in expressions
    ):
        match node:
            case ast.Attribute(value=ast.Name(id=name)):
                modules.add(name)
            case ast.Name(id=name):
                names.add(name)
    unknown = (names | modules) - {*known_names}
    lines = [
        f"from {module} import {name}"
        for name, module in _VALUES.items()
        if name in unknown - modules
    ]
    return (*lines, *(["import datetime"] if "datetime" in modules & unknown else []))


def error_of(text: str) -> str:
    """Return the error that a text names as an expected outcome, with its message if any; otherwise an empty text."""
    last = text.strip().rpartition("\n")[2].strip()
    match = _ERROR.fullmatch(last)
    return (
        match["error"]
        if match and (last == text.strip() or text.strip().startswith(TRACEBACK))
        else ""
    )


def literal_value(text: str) -> Any:  # any literal
    """Return the value of a Python literal in text; a marker that equals nothing if it is not a literal."""
    node = expression(text)
    is_literal, value = literal(node)
    return value if node is not None and is_literal else _MISSING


def promises_floats(returns: str) -> bool:
    """Check whether a return type mentions floats and no integers."""
    return {"float", "int"} & {*_WORD.findall(returns)} == {"float"}


def same(expected: Any, got: Any, *, is_float: bool = False, approx: float | None = None) -> bool:
    """Check whether two values are equal in value and type at all levels.

    Floats may differ in their last digits, and NaN equals NaN. With `is_float`, a number may be of another type;
    `approx` is the tolerance for integers and floats.
    """
    are_numbers = {type(expected), type(got)} <= {int, float} and (
        is_float or type(expected) is type(got)
    )
    if are_numbers and (float in (type(expected), type(got)) or approx):
        return _is_close(expected, got, approx or _LAST_DIGITS, approx or 0.0)
    if is_float and {type(expected), type(got)} <= _NUMBERS:
        return bool(expected == got)
    if _kind(expected) != _kind(got):
        return False
    inner = partial(same, is_float=is_float, approx=approx)
    if isinstance(expected, list | tuple):
        return len(expected) == len(got) and all(map(inner, expected, got))
    if isinstance(expected, dict | Pairs):
        old, new = by_text(expected), by_text(got)
        same_keys = len(expected) == len(got) and old.keys() == new.keys()
        return same_keys and all(inner(value, new[key]) for key, value in old.items())
    return bool(expected == got)


def _kind(value: Any) -> str:
    if isinstance(value, Members):
        return value.kind
    return "dict" if isinstance(value, Pairs) else type(value).__name__


def _is_close(expected: float, got: float, relative: float, absolute: float) -> bool:
    if expected == got or (expected != expected and got != got):
        return True
    try:
        return math.isclose(expected, got, rel_tol=relative, abs_tol=absolute)
    except OverflowError:
        return False


def same_text(expected: str, got: str, options: set[str]) -> bool:
    """Check whether texts are equal as in doctest, under its options ELLIPSIS and NORMALIZE_WHITESPACE."""
    expected, got = (
        text if text.endswith("\n") or not text else f"{text}\n" for text in (expected, got)
    )
    if expected == got or (expected, got) in _TRUTHS:
        return True
    expected = _BLANK_MARK.sub("", expected)
    got = _BLANK_LINE.sub("", got)
    if not expected.endswith(
        "\n\n"
    ):  # an example that does not show blank lines at the end leaves them open
        got = f"{got.rstrip(chr(10))}\n" if got.strip() else got
    if "NORMALIZE_WHITESPACE" in options:
        expected, got = " ".join(expected.split()), " ".join(got.split())
    return expected == got or ("ELLIPSIS" in options and _fits(expected, got))


def _fits(expected: str, got: str) -> bool:
    """Check whether a text matches a pattern in which `...` matches any text. Avoids regular expressions."""
    first, *pieces = expected.split("...")
    if not pieces or not got.startswith(first):
        return False
    *middle, last = pieces
    position, end = len(first), len(got) - len(last)
    if end < position or not got.endswith(last):
        return False
    for piece in middle:
        index = got.find(piece, position, end)
        if index < 0:
            return False
        position = index + len(piece)
    return True


_VALUES: Final = {
    "Decimal": "decimal",
    "Fraction": "fractions",
    "UUID": "uuid",
    "Path": "pathlib",
    "date": "datetime",
    "datetime": "datetime",
    "time": "datetime",
    "timedelta": "datetime",
}
_WORD: Final = re.compile(r"\w+")
_DECIMALS: Final = re.compile(r"\d\.(\d+)(?!\d)")
_FEWEST: Final = 2  # decimals that indicate a rounded number


def is_blank(text: str, returns: str) -> bool:
    """Check whether a text is missing as a result; an empty text is a result if the function returns text."""
    return not text.strip() and "str" not in _WORD.findall(returns)


def predictions(
    calls: Sequence[str], texts: Sequence[str], returns: str
) -> tuple[GivenExample, ...]:
    """Return the calls as examples with the expected results; `returns` is the promised type."""
    examples: list[GivenExample] = []
    for call, text in zip(calls, texts, strict=False):
        approx = None
        if promises_floats(returns):  # half of the last written decimal, if there are two or more
            decimals = min(map(len, _DECIMALS.findall(text)), default=0)
            approx = 0.5 * 10.0**-decimals if decimals >= _FEWEST else _LAST_DIGITS
        examples.append(GivenExample(call, _expected_text(text.strip(), returns), approx))
    return tuple(examples)


def _expected_text(text: str, returns: str) -> str:
    """Return the result as a Python literal."""
    if error := error_of(text):
        return error
    value = literal_value(text)
    is_literal = type(value) is not object
    if returns == "str":
        return text if isinstance(value, str) else repr(text)
    if is_literal:
        return (
            repr(tuple(value))
            if isinstance(value, list) and returns.startswith(("tuple", "Tuple"))
            else text
        )
    try:
        return repr(read_json(text, LOOSE))
    except Malformed:
        return repr(text) if "str" in re.findall(r"\w+", returns) else text


Unproven = Literal["", "effects", "calls", "chance", "no-parameters", "no-result"]
ALIKE = ("one-sided-examples", "same-results", "contradictory-examples")
"""Findings that one more call with another result would resolve."""

# With an argument, these only convert a time.


def unprovable(subject: TrialSubject) -> Unproven:
    """Return why examples cannot prove a function, or an empty text."""
    if _has_effects(subject):
        return "effects"
    if subject.function.returns == "None":
        return "no-result"
    if not parameters(subject.node):
        return "no-parameters"
    return "chance" if is_by_chance(subject.tree) else ""


def _has_effects(subject: TrialSubject) -> bool:
    """Check whether a function, or one that it passes its context on to, asks the host for what examples lack."""
    waiting: list[ast.Module] = [subject.tree]
    seen = set[str]()
    while waiting:
        tree = waiting.pop()
        if uses_context(tree) & EFFECTS:
            return True
        for name in given_self(tree):
            if name in seen or name not in subject.snapshot.functions:
                continue
            seen.add(name)
            module = subject.snapshot.functions[name].module
            running = parse(text_reaching(subject.snapshot.modules[module].text, name) or "")
            waiting += [running] if isinstance(running, ast.Module) else []
    return False


def too_few(
    function: "Function", examples: Sequence["Example | GivenExample"], unproven: Unproven
) -> Iterator[Finding]:
    """Yield the findings about missing examples."""
    name, line = function.name, function.line
    if unproven:
        if not examples:
            message = (
                f"`{name}` has no example that could show what it does, so it is added as a draft"
            )
            yield Finding("unproven", message, line=line)
        return
    results = {promise(example) for example in examples}
    calls = {(*example.setup, example.call.strip()) for example in examples}
    call = f">>> {name}({', '.join(function.parameters['properties'])})"
    if twice := contradictions(examples):
        message = f"the example `{sorted(twice)[0]}` is there twice, with different results"
        fix = f"take one of the two out; add a line `{call}` with other values and their result"
        yield Finding("contradictory-examples", message, fix, line)
    elif len(calls) < 2:
        times = (
            f"the same example {len(examples)} times" if len(examples) > 1 else "only one example"
        )
        message = f"`{name}` has {times if calls else 'no example'}; two with different results are needed"
        fix = f"add under `Examples:` a line `{call}` with real values, and its result on the line below"
        yield Finding("too-few-examples", message, fix, line)
    # Comparisons always show `True`, so equal results say little about them.
    elif len(results) < 2 and not all(
        isinstance(expression(example.call), ast.Compare) for example in examples
    ):
        result = next(iter(results))
        if opposite := {"True": "False", "False": "True"}.get(result):
            code, message = (
                "one-sided-examples",
                f"gives {result}; one that gives {opposite} is needed too",
            )
        else:
            code, message = (
                "same-results",
                "gives the same result, as a body that ignores its arguments would",
            )
        below = f"{opposite}, and `{opposite}`" if opposite else "another, and that result"
        fix = f"add a line `{call}` with values for which the result is {below} on the line below"
        yield Finding(code, f"every example of `{name}` {message}", fix, line)


def contradictions(examples: Sequence["Example | GivenExample"]) -> set[str]:
    """Return the calls that have several examples with different results after the same setup."""
    promised: dict[tuple[str, ...], set[str]] = {}
    for example in examples:
        promised.setdefault((*example.setup, example.call.strip()), set()).add(promise(example))
    return {call for (*_, call), results in promised.items() if len(results) > 1}


def promise(example: "Example | GivenExample") -> str:
    """Return a normalized text of what an example promises, so that equal promises have equal texts."""
    if example.raises:
        return f"raises {example.raises}"
    value = literal_value(example.expected)
    return example.expected.strip() if type(value) is object else repr(value)


_LITERAL = re.compile(
    r"""(?P<prefix>[rRuU]?)(?P<quotes>\"{3}|'{3}|"|')(?P<inner>.*)(?P=quotes)""", re.DOTALL
)
_BREAK = re.compile(r"(?<!\\)((?:\\\\)*)\\n")  # an escaped line break
_QUOTES: Final = '"""'


def with_example(code: str, name: str, call: str, expected: str) -> str | Problem:
    """Return the function's text with one more example in its docstring, or why it cannot be added."""
    code = code.replace("\r\n", "\n")
    call = call.strip().removeprefix(">>>").strip()
    call_node = expression(call)
    if call_node is None or name not in {
        inner.id for inner in ast.walk(call_node) if isinstance(inner, ast.Name)
    }:
        wrong = f"`{call[:120]}` does not call `{name}`"
        wrong = (
            wrong
            if call_node
            else f"the call of an example is an expression, and `{call[:120]}` is none"
        )
        fix = f"give a call such as `{name}(…)`, and its result as Python writes it"
        return Problem("bad-example", wrong, Place(name), fix)
    node = function_in(code, name)
    if node is None:
        return Problem(
            "no-docstring",
            f"`{name}` is not at the top level of its text",
            Place(name),
            "edit its file manually",
        )
    call = ast.unparse(call_node) if "\n" in call else call
    if expected.strip() == "None":  # doctest shows nothing for None, and an example needs a result
        call, expected = f"{call} is None", "True"
    value, error = literal_value(expected), error_of(expected)
    result = shown_lines(expected) if type(value) is object else [repr(value)]
    shown = [f">>> {call}", *([TRACEBACK, "    ...", error] if error else result)]
    if ast.get_docstring(node, clean=False) is None:
        code = with_empty_docstring(code, node)
    docstring = DocstringText.of(code, function_in(code, name) or node)
    if docstring is None:
        message = "its docstring is not one plain text between quotes"
        return Problem(
            "no-docstring",
            message,
            Place(name, node.body[0].lineno),
            "write it between three quotes",
        )
    return docstring.with_example(code, shown)


def shown_lines(output: str) -> list[str]:
    """Return the lines of a result, given without its last line break, as doctest shows them."""
    lines = output.replace("\r\n", "\n").split("\n")
    return [line if line.strip() else "<BLANKLINE>" for line in lines]


def with_words(code: str, name: str, other: str) -> str | None:
    """Return a function's text with its docstring from another text; None if either has no plain docstring."""
    nodes = [(text, function_in(text, name)) for text in (code, other)]
    own, new = (DocstringText.of(text, node) if node else None for text, node in nodes)
    return (
        f"{code[: own.start]}{other[new.start : new.end]}{code[own.end :]}" if own and new else None
    )


@dataclass(frozen=True, slots=True)
class DocstringText:
    """The docstring of a function in its source: the text between its quotes, from `start` to `end`.

    `margin` is the text before it on its first line.
    """

    start: int
    end: int
    prefix: str
    quotes: str
    inner: str
    margin: str

    @classmethod
    def of(cls, text: str, node: FunctionNode) -> "DocstringText | None":
        """Return the docstring; None if there is none, or if it is not a single string literal."""
        if ast.get_docstring(node, clean=False) is None:
            return None
        literal = node.body[0]
        start = offset(text, literal.lineno, literal.col_offset)
        end = offset(text, literal.end_lineno or 0, literal.end_col_offset or 0)
        match = _LITERAL.fullmatch(text[start:end])
        is_triple = match is not None and len(match["quotes"]) == 3
        if match is None or not (
            is_triple or ('"""' not in match["inner"] and not match["inner"].endswith('"'))
        ):
            return None
        quotes = match["quotes"] if is_triple else _QUOTES
        return cls(
            start, end, match["prefix"], quotes, match["inner"], text[:start].rpartition("\n")[2]
        )

    @property
    def is_raw(self) -> bool:
        """True if it is a raw string."""
        return "r" in self.prefix.lower()

    @property
    def is_escaped_once(self) -> bool:
        """True if it has escapes, and none of a backslash or a line break: its author may take it for a raw string."""
        return (
            not self.is_raw
            and "\\" in self.inner
            and "\\\\" not in self.inner
            and "\\\n" not in self.inner
        )

    @property
    def indent(self) -> str:
        """The indentation of its continuation lines."""
        return "    " if self.margin.strip() else self.margin

    @property
    def lines(self) -> list[str]:
        """Its lines without their indentation; an escaped line break in a one-line docstring ends a line."""
        is_plain = "\n" not in self.inner and not self.is_raw
        first, *others = bare_lines(
            _BREAK.sub("\\1\n", self.inner) if is_plain else self.inner
        ) or [""]
        return [
            first.strip(),
            *(line.rstrip() for line in bare_lines(dedent("\n".join(others).expandtabs()))),
        ]

    def escaped(self, lines: Iterable[str]) -> list[str]:
        """Return lines escaped for this docstring."""
        marks = "".join(f"\\{quote}" for quote in self.quotes)
        return [
            line if self.is_raw else line.replace("\\", "\\\\").replace(self.quotes, marks)
            for line in lines
        ]

    def replaced(self, text: str, inner: str) -> str:
        """Return the text with another content between the quotes."""
        return (
            f"{text[: self.start]}{self.prefix}{self.quotes}{inner}{self.quotes}{text[self.end :]}"
        )

    def with_lines(self, text: str, lines: Sequence[str]) -> str:
        """Return the text with other lines between the quotes."""
        first, *others = "\n".join(lines).rstrip().split("\n")
        inner = "\n".join([first, *(f"{self.margin}{line}" if line else "" for line in others)])
        return self.replaced(
            text, f"{inner}\n{self.margin}" if others or inner.endswith('"') else inner
        )

    def with_example(self, text: str, shown: Sequence[str]) -> str:
        """Return the text with an example added below the last one, or at the end of the docstring."""
        shown, lines = self.escaped(shown), self.inner.split("\n")
        prompts = [at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")]
        if not prompts:
            before = f"{self.inner.rstrip()}\n" if self.inner.strip() else ""
            return self.replaced(
                text, "\n".join([before, *(self.indent + line for line in shown), self.indent])
            )
        last = prompts[-1]
        pad = lines[last][: len(lines[last]) - len(lines[last].lstrip())] if last else self.indent
        after = next((at for at in range(last, len(lines)) if not lines[at].strip()), len(lines))
        inner = [*lines[:after], *(pad + line for line in shown), *(lines[after:] or [self.indent])]
        return self.replaced(text, "\n".join(inner))


def offset(text: str, line: int, column: int) -> int:
    """Return the offset in a text of an AST position, whose column counts bytes."""
    lines = lines_of(text)
    before = lines[line - 1].encode("utf-8")[:column].decode("utf-8")
    return sum(map(len, lines[: line - 1])) + len(before)


def with_empty_docstring(text: str, node: FunctionNode) -> str:
    """Return the text with an empty docstring; unchanged if the body is on the line of its `def`."""
    start = offset(text, first_line(node.body[0]), node.body[0].col_offset)
    margin = text[:start].rpartition("\n")[2]
    return text if margin.strip() else f'{text[:start]}""""""\n{margin}{text[start:]}'


def with_returned_values(candidate: Candidate, verdict: Verdict) -> Candidate:
    """Return the candidate with the returned results instead of the written or missing ones."""
    text = verdict.source
    for mismatch in sorted(verdict.disagreements, key=lambda disagreement: -disagreement.line):
        node = function_in(text, candidate.name) if mismatch.line else None
        docstring = DocstringText.of(text, node) if node else None
        lines = docstring.inner.split("\n") if docstring else []
        at = mismatch.line - node.body[0].lineno if node else 0
        if docstring is None or not 0 <= at < len(lines):
            continue
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())] if at else docstring.indent
        start = next(
            (n for n in range(at + 1, len(lines)) if not lines[n].strip().startswith("...")),
            len(lines),
        )
        is_end = (
            n
            for n in range(start, len(lines))
            if not lines[n].strip() or lines[n].lstrip().startswith(">>>")
        )
        end = next(is_end, len(lines))
        shown = [] if mismatch.returned == "None" else shown_lines(mismatch.returned)
        new = [f"{indent}{line}" for line in docstring.escaped(shown)]
        text = docstring.replaced(
            text, "\n".join([*lines[:start], *new, *(lines[end:] or [indent])])
        )
    for missing in verdict.to_confirm[len(verdict.disagreements) :]:
        added = with_example(text, candidate.name, missing.call, missing.returned)
        text = text if isinstance(added, Problem) else added
    returned = {
        disagreement.call: disagreement.returned
        for disagreement in verdict.disagreements
        if not disagreement.line
    }
    examples = tuple(
        GivenExample(example.call, returned.get(example.call, example.expected), example.approx)
        for example in candidate.examples
    )
    return replace(candidate, code=text, examples=examples)
