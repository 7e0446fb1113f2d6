"""Examples as text in a function's docstring, their one store: a new one is added, a returned result is accepted.

Pure text → text; nothing else is touched. A new example stands below the last one, or at the docstring's end; a
function without a docstring gets one. A result that is confirmed as it came back is weaker evidence than a predicted
one, so who asks has to know which is which.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from agent_core.base.problem import Place, Problem
from sandbox.wire.lines import bare_lines, lines_of

from ..autofix import offset
from ..candidate import Candidate, GivenExample
from ..tree import FunctionNode, expression, find, parse
from ..verdict import Disagreement, Verdict
from .agreement import literal_value

_ERROR = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Iteration|Warning)(?::.*)?$")
_TRACEBACK: Final = "Traceback (most recent call last):"
_LITERAL = re.compile(r"""(?P<raw>[rR]?)(?P<quotes>\"{3}|'{3}|"|')(?P<inner>.*)(?P=quotes)""", re.DOTALL)
_QUOTES: Final = '"""'


def with_example(code: str, name: str, call: str, expected: str) -> str | Problem:
    """Return the function's text with one more example in its docstring, or why it cannot be written there."""
    code = code.replace("\r\n", "\n")
    call = call.strip().removeprefix(">>>").strip()
    wrong = _wrong_call(name, call)
    if wrong:
        return Problem(
            "bad-example", wrong, Place(name), f"give a call such as `{name}(…)`, and its result as Python writes it"
        )
    tree = parse(code)
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    if node is None:
        return Problem(
            "no-docstring", f"`{name}` is not at the top level of its text", Place(name), "edit its file manually"
        )
    call = ast.unparse(expression(call) or node) if "\n" in call else call
    if expected.strip() == "None":  # nothing is shown of it, and what has nothing below it is no example
        call, expected = f"{call} is None", "True"
    shown = [f">>> {call}", *_shown(expected)]
    if ast.get_docstring(node, clean=False) is None:
        return _with_docstring(code, node, shown)
    docstring = _Docstring.of(code, node)
    if docstring is None:
        message = "its docstring is not one plain text between quotes"
        return Problem("no-docstring", message, Place(name, node.body[0].lineno), "write it between three quotes")
    return docstring.rewritten(code, _inserted(docstring.inner, docstring.escaped(shown), docstring.indent))


def with_words(code: str, name: str, other: str) -> str | None:
    """Return a function's text with the docstring that it has in another text; None if one of them has no plain one."""
    trees = [parse(text) for text in (code, other)]
    nodes = [find(tree, name) if isinstance(tree, ast.Module) else None for tree in trees]
    docstrings = [
        _Docstring.of(text, node) if node and ast.get_docstring(node, clean=False) is not None else None
        for text, node in zip((code, other), nodes, strict=True)
    ]
    own, new = docstrings
    return f"{code[: own.start]}{other[new.start : new.end]}{code[own.end :]}" if own and new else None


def _wrong_call(name: str, call: str) -> str:
    node = expression(call)
    if node is None:
        return f"the call of an example is an expression, and `{call[:120]}` is none"
    words = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return "" if name in words else f"`{call[:120]}` does not call `{name}`"


def _shown(expected: str) -> list[str]:
    """Return the lines below the prompt: a literal as Python shows it, an error as its traceback, all else as it is."""
    text = expected.strip("\n").rstrip()
    if _ERROR.match(text.strip()):
        return [_TRACEBACK, "    ...", text.strip()]
    value = literal_value(text)
    lines = lines_of(text) if type(value) is object else [repr(value)]
    return [line.rstrip("\r\n") or "<BLANKLINE>" for line in lines]


@dataclass(frozen=True, slots=True)
class _Docstring:
    """The docstring of a function as it is written: what is between its quotes, from `start` to `end` in the text."""

    start: int
    end: int
    raw: str
    quotes: str
    inner: str
    indent: str

    @classmethod
    def of(cls, text: str, node: FunctionNode) -> "_Docstring | None":
        """Return it; None if it is not one plain text between quotes."""
        literal = node.body[0]
        start = offset(text, literal.lineno, literal.col_offset)
        end = offset(text, literal.end_lineno or 0, literal.end_col_offset or 0)
        match = _LITERAL.fullmatch(text[start:end])
        if match is None or (len(match["quotes"]) == 1 and '"' in match["inner"]):
            return None
        quotes = match["quotes"] if len(match["quotes"]) == 3 else _QUOTES
        margin = text[text.rfind("\n", 0, start) + 1 : start]
        return cls(start, end, match["raw"], quotes, match["inner"], "    " if margin.strip() else margin)

    def escaped(self, lines: Iterable[str]) -> list[str]:
        """Return lines as they are written in it."""
        return [_escaped(line, self.quotes, is_raw=bool(self.raw)) for line in lines]

    def rewritten(self, text: str, inner: str) -> str:
        """Return the text with something else between the quotes."""
        return f"{text[: self.start]}{self.raw}{self.quotes}{inner}{self.quotes}{text[self.end :]}"


def _inserted(inner: str, shown: list[str], indent: str) -> str:
    """Return a docstring's content with an example below its last one, or at its end."""
    lines = inner.split("\n")
    prompts = [at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")]
    if not prompts:
        return "\n".join([f"{inner.rstrip()}\n" if inner.strip() else "", *(indent + line for line in shown), indent])
    last = prompts[-1]
    pad = lines[last][: len(lines[last]) - len(lines[last].lstrip())] if last else indent
    after = next((at for at in range(last, len(lines)) if not lines[at].strip()), len(lines))
    return "\n".join([*lines[:after], *(pad + line for line in shown), *(lines[after:] or [indent])])


def _with_docstring(code: str, node: FunctionNode, shown: list[str]) -> str | Problem:
    """Return the text with a docstring that holds the example alone."""
    start = offset(code, node.body[0].lineno, node.body[0].col_offset)
    line = code.rfind("\n", 0, start) + 1
    indent = code[line:start]
    if indent.strip():
        message = f"the body of `{node.name}` stands on the line of its `def`"
        return Problem("no-docstring", message, Place(node.name, node.lineno), "write it on lines of its own")
    text = "".join(f"{indent}{_escaped(line, _QUOTES, is_raw=False)}\n" for line in shown)
    return f"{code[:line]}{indent}{_QUOTES}\n{text}{indent}{_QUOTES}\n{code[line:]}"


def _escaped(line: str, quotes: str, *, is_raw: bool) -> str:
    return line if is_raw else line.replace("\\", "\\\\").replace(quotes, "".join(f"\\{quote}" for quote in quotes))


def with_returned_values(candidate: Candidate, verdict: Verdict) -> Candidate:
    """Return the candidate with the returned results in place of the written or missing ones."""
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
    """Return the text with the lines under one prompt replaced."""
    tree = parse(text)
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    docstring = _Docstring.of(text, node) if node else None
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
    return docstring.rewritten(text, "\n".join([*lines[:start], *new, *(lines[end:] or [indent])]))
