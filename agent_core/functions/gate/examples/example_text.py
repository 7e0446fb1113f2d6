"""Examples as text in a function's docstring, their one store: a new one is added, a returned result is accepted.

Pure text → text; nothing else is touched. A new example stands below the last one, or at the docstring's end; a
function without a docstring gets one. A result that is confirmed as it came back is weaker evidence than a predicted
one, so who asks has to know which is which.
"""

import ast
import re
from dataclasses import replace
from typing import Final

from agent_core.base.problem import Place, Problem
from agent_core.registry.source import ModuleSource
from agent_core.registry.source import parse as parse_source
from agent_core.registry.tree import Definition, survey
from sandbox.wire.lines import bare_lines, lines_of

from ..autofix import offset
from ..candidate import Candidate, GivenExample
from ..tree import expression, find, parse
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
    tree = parse_source(ModuleSource(name, name, code, ""))
    node = survey(tree).definitions.get(name) if isinstance(tree, ast.Module) else None
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
    return _written(code, node, shown)


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


def _written(code: str, node: Definition, shown: list[str]) -> str | Problem:
    """Return the text with an example inside the existing docstring."""
    literal = node.body[0]
    start = offset(code, literal.lineno, literal.col_offset)
    end = offset(code, literal.end_lineno or 0, literal.end_col_offset or 0)
    match = _LITERAL.fullmatch(code[start:end])
    if match is None or (len(match["quotes"]) == 1 and '"' in match["inner"]):
        message = "its docstring is not one plain text between quotes"
        return Problem("no-docstring", message, Place(node.name, node.body[0].lineno), "write it between three quotes")
    quotes = match["quotes"] if len(match["quotes"]) == 3 else '"""'
    escaped = [_escaped(line, quotes, is_raw=bool(match["raw"])) for line in shown]
    before = code[code.rfind("\n", 0, start) + 1 : start]
    inner = _inserted(match["inner"], escaped, before if not before.strip() else "    ")
    return f"{code[:start]}{match['raw']}{quotes}{inner}{quotes}{code[end:]}"


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


def _with_docstring(code: str, node: Definition, shown: list[str]) -> str | Problem:
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
    raw = _is_raw(text, candidate.name)
    for mismatch in sorted(verdict.disagreements, key=lambda disagreement: -disagreement.line):
        if mismatch.line:
            text = _rewrite(text, mismatch, raw=raw)
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


def _is_raw(text: str, name: str) -> bool:
    tree = parse(text)
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    if node is None:
        return False
    start = lines_of(text)[node.body[0].lineno - 1][node.body[0].col_offset :]
    return start[:1] in "rR"


def _rewrite(text: str, disagreement: Disagreement, *, raw: bool) -> str:
    """Return the text with the lines under one prompt replaced."""
    lines = lines_of(text)
    if disagreement.line > len(lines):
        return text
    prompt = lines[disagreement.line - 1]
    indent = prompt[: len(prompt) - len(prompt.lstrip())]
    start = disagreement.line
    while start < len(lines) and lines[start].strip().startswith("..."):
        start += 1
    end = start
    while end < len(lines) and lines[end].strip() and not _ends_example(lines[end]):
        end += 1
    new = [
        f"{indent}{_escaped(line, _QUOTES, is_raw=raw)}\n" if line else f"{indent}<BLANKLINE>\n"
        for line in bare_lines(disagreement.returned)
    ]
    tail = lines[end:]
    if tail and tail[0].strip() and not tail[0].strip().startswith((">>>", '"""', "'''")):
        closing = tail[0].rstrip("\n")[-3:]
        tail = [f"{indent}{closing}\n", *tail[1:]]
    return "".join([*lines[:start], *([] if disagreement.returned == "None" else new), *tail])


def _ends_example(line: str) -> bool:
    """Check whether a line is the next prompt or closes the docstring."""
    return line.strip().startswith(">>>") or '"""' in line or "'''" in line
