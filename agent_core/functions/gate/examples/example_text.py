"""Examples in a function's docstring, where all examples are kept: adding one, and accepting a returned result.

Pure text → text; nothing else is changed. A new example is added below the last one, or at the docstring's end; a
function without a docstring gets one. A result that is confirmed as returned is weaker evidence than a predicted one,
so callers must distinguish the two.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import Final

from agent_core.base.problem import Place, Problem
from agent_core.registry.source_lines import first_line
from sandbox.wire.lines import bare_lines, lines_of

from ..draft import Candidate, GivenExample
from ..tree import FunctionNode, expression, function_in
from ..verdict import Disagreement, Verdict
from .agreement import TRACEBACK, error_of, literal_value

_LITERAL = re.compile(r"""(?P<prefix>[rRuU]?)(?P<quotes>\"{3}|'{3}|"|')(?P<inner>.*)(?P=quotes)""", re.DOTALL)
_BREAK = re.compile(r"(?<!\\)((?:\\\\)*)\\n")  # an escaped line break
_QUOTES: Final = '"""'


def with_example(code: str, name: str, call: str, expected: str) -> str | Problem:
    """Return the function's text with one more example in its docstring, or why it cannot be added."""
    code = code.replace("\r\n", "\n")
    call = call.strip().removeprefix(">>>").strip()
    call_node = expression(call)
    if call_node is None or name not in {inner.id for inner in ast.walk(call_node) if isinstance(inner, ast.Name)}:
        wrong = f"`{call[:120]}` does not call `{name}`"
        wrong = wrong if call_node else f"the call of an example is an expression, and `{call[:120]}` is none"
        fix = f"give a call such as `{name}(…)`, and its result as Python writes it"
        return Problem("bad-example", wrong, Place(name), fix)
    node = function_in(code, name)
    if node is None:
        return Problem(
            "no-docstring", f"`{name}` is not at the top level of its text", Place(name), "edit its file manually"
        )
    call = ast.unparse(call_node) if "\n" in call else call
    if expected.strip() == "None":  # doctest shows nothing for None, and an example needs a result
        call, expected = f"{call} is None", "True"
    shown = [f">>> {call}", *_result_lines(expected)]
    if ast.get_docstring(node, clean=False) is None:
        code = with_empty_docstring(code, node)
    docstring = DocstringText.of(code, function_in(code, name) or node)
    if docstring is None:
        message = "its docstring is not one plain text between quotes"
        return Problem("no-docstring", message, Place(name, node.body[0].lineno), "write it between three quotes")
    return docstring.replaced(code, _insert_example(docstring.inner, docstring.escaped(shown), docstring.indent))


def with_words(code: str, name: str, other: str) -> str | None:
    """Return a function's text with its docstring from another text; None if either has no plain docstring."""
    nodes = [(text, function_in(text, name)) for text in (code, other)]
    own, new = (DocstringText.of(text, node) if node else None for text, node in nodes)
    return f"{code[: own.start]}{other[new.start : new.end]}{code[own.end :]}" if own and new else None


def _result_lines(expected: str) -> list[str]:
    """Return the lines below the prompt: a literal in Python's form, an error as a traceback, other text unchanged."""
    text = expected.strip("\n").rstrip()
    if error := error_of(text):
        return [TRACEBACK, "    ...", error]
    value = literal_value(text)
    lines = lines_of(text) if type(value) is object else [repr(value)]
    return [line.rstrip("\r\n") or "<BLANKLINE>" for line in lines]


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
        if match is None or not (is_triple or ('"""' not in match["inner"] and not match["inner"].endswith('"'))):
            return None
        quotes = match["quotes"] if is_triple else _QUOTES
        return cls(start, end, match["prefix"], quotes, match["inner"], text[:start].rpartition("\n")[2])

    @property
    def is_raw(self) -> bool:
        """True if it is a raw string."""
        return "r" in self.prefix.lower()

    @property
    def indent(self) -> str:
        """The indentation of its continuation lines."""
        return "    " if self.margin.strip() else self.margin

    @property
    def lines(self) -> list[str]:
        """Its lines without their indentation; an escaped line break in a one-line docstring ends a line."""
        is_plain = "\n" not in self.inner and not self.is_raw
        first, *others = bare_lines(_BREAK.sub("\\1\n", self.inner) if is_plain else self.inner) or [""]
        return [first.strip(), *(line.rstrip() for line in bare_lines(dedent("\n".join(others).expandtabs())))]

    def escaped(self, lines: Iterable[str]) -> list[str]:
        """Return lines escaped for this docstring."""
        marks = "".join(f"\\{quote}" for quote in self.quotes)
        return [line if self.is_raw else line.replace("\\", "\\\\").replace(self.quotes, marks) for line in lines]

    def replaced(self, text: str, inner: str) -> str:
        """Return the text with another content between the quotes."""
        return f"{text[: self.start]}{self.prefix}{self.quotes}{inner}{self.quotes}{text[self.end :]}"

    def with_lines(self, text: str, lines: Sequence[str]) -> str:
        """Return the text with other lines between the quotes."""
        first, *others = "\n".join(lines).rstrip().split("\n")
        inner = "\n".join([first, *(f"{self.margin}{line}" if line else "" for line in others)])
        return self.replaced(text, f"{inner}\n{self.margin}" if others or inner.endswith('"') else inner)


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


def _insert_example(inner: str, shown: list[str], indent: str) -> str:
    """Return a docstring's content with an example added below the last one, or at its end."""
    lines = inner.split("\n")
    prompts = [at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")]
    if not prompts:
        return "\n".join([f"{inner.rstrip()}\n" if inner.strip() else "", *(indent + line for line in shown), indent])
    last = prompts[-1]
    pad = lines[last][: len(lines[last]) - len(lines[last].lstrip())] if last else indent
    after = next((at for at in range(last, len(lines)) if not lines[at].strip()), len(lines))
    return "\n".join([*lines[:after], *(pad + line for line in shown), *(lines[after:] or [indent])])


def with_returned_values(candidate: Candidate, verdict: Verdict) -> Candidate:
    """Return the candidate with the returned results instead of the written or missing ones."""
    text = verdict.source
    for mismatch in sorted(verdict.disagreements, key=lambda disagreement: -disagreement.line):
        text = _rewrite(text, candidate.name, mismatch) if mismatch.line else text
    for missing in verdict.to_confirm[len(verdict.disagreements) :]:
        added = with_example(text, candidate.name, missing.call, missing.returned)
        text = text if isinstance(added, Problem) else added
    returned = {
        disagreement.call: disagreement.returned for disagreement in verdict.disagreements if not disagreement.line
    }
    examples = tuple(
        GivenExample(example.call, returned.get(example.call, example.expected), example.approx)
        for example in candidate.examples
    )
    return replace(candidate, code=text, examples=examples)


def _rewrite(text: str, name: str, disagreement: Disagreement) -> str:
    """Return the text with the result under one prompt replaced."""
    node = function_in(text, name)
    docstring = DocstringText.of(text, node) if node else None
    lines = docstring.inner.split("\n") if docstring else []
    at = disagreement.line - node.body[0].lineno if node else 0
    if docstring is None or not 0 <= at < len(lines):
        return text
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())] if at else docstring.indent
    start = next((n for n in range(at + 1, len(lines)) if not lines[n].strip().startswith("...")), len(lines))
    is_end = (n for n in range(start, len(lines)) if not lines[n].strip() or lines[n].lstrip().startswith(">>>"))
    end = next(is_end, len(lines))
    shown = [] if disagreement.returned == "None" else bare_lines(disagreement.returned)
    new = [f"{indent}{line}" for line in docstring.escaped(line or "<BLANKLINE>" for line in shown)]
    return docstring.replaced(text, "\n".join([*lines[:start], *new, *(lines[end:] or [indent])]))
