"""Accepts returned results: rewrites those of disagreeing examples in the docstring, and adds a missing one.

Pure text. A confirmed value is weaker evidence than a predicted one, so who asks has to know which is which.
"""

import ast

from sandbox.wire.lines import bare_lines, lines_of

from agent_core.base.problem import Problem
from .candidate import Candidate, GivenExample
from .examples.example_text import with_example
from .tree import find, parse
from .verdict import Disagreement, Verdict


def with_returned_values(candidate: Candidate, verdict: Verdict) -> Candidate:
    """Return the candidate with the returned results in place of the written or missing ones."""
    text = verdict.source
    if not verdict.disagreements:
        for mismatch in verdict.to_confirm:
            added = with_example(text, candidate.name, mismatch.call, mismatch.returned)
            text = text if isinstance(added, Problem) else added
    raw = _is_raw(text, candidate.name)
    for mismatch in sorted(verdict.disagreements, key=lambda disagreement: -disagreement.line):
        if mismatch.line:
            text = _rewrite(text, mismatch, raw=raw)
    returned = {
        disagreement.call: disagreement.returned for disagreement in verdict.disagreements if not disagreement.line
    }
    examples = tuple(
        GivenExample(example.call, returned.get(example.call, example.expected), example.approx)
        for example in candidate.examples
    )
    return Candidate(
        candidate.name,
        text,
        candidate.module,
        candidate.reason,
        examples,
        replaces=candidate.replaces,
        description=candidate.description,
    )


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
        f"{indent}{_escaped(line, raw=raw)}\n" if line else f"{indent}<BLANKLINE>\n"
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


def _escaped(line: str, *, raw: bool) -> str:
    if raw:
        return line
    return line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
