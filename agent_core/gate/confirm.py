"""Accepting what came back: the results of disagreeing examples are rewritten in the docstring, a lacking one is added.

Pure text. A confirmed value is weaker evidence than a predicted one, so who asks has to know which is which.
"""

import ast

from sandbox.lines import bare_lines, lines_of

from ..problem import Problem
from .candidate import Candidate, GivenExample
from .examples.example_text import with_example
from .tree import find, parse
from .verdict import Disagreement, Verdict


def with_returned_values(candidate: Candidate, verdict: Verdict) -> Candidate:
    """The candidate with the results that came back in place of those that were written, or of one that lacked."""
    text = verdict.source
    if not verdict.disagreements:
        for one in verdict.to_confirm:
            added = with_example(text, candidate.name, one.call, one.returned)
            text = text if isinstance(added, Problem) else added
    raw = _is_raw(text, candidate.name)
    for one in sorted(verdict.disagreements, key=lambda disagreement: -disagreement.line):
        if one.line:
            text = _rewrite(text, one, raw=raw)
    returned = {one.call: one.returned for one in verdict.disagreements if not one.line}
    examples = tuple(
        GivenExample(given.call, returned.get(given.call, given.expected), given.approx) for given in candidate.examples
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


def _rewrite(text: str, one: Disagreement, *, raw: bool) -> str:
    """The text with the lines under one prompt replaced."""
    lines = lines_of(text)
    if one.line > len(lines):
        return text
    prompt = lines[one.line - 1]
    indent = prompt[: len(prompt) - len(prompt.lstrip())]
    start = one.line
    while start < len(lines) and lines[start].strip().startswith("..."):
        start += 1
    end = start
    while end < len(lines) and lines[end].strip() and not _ends_example(lines[end]):
        end += 1
    new = [
        f"{indent}{_escaped(line, raw=raw)}\n" if line else f"{indent}<BLANKLINE>\n"
        for line in bare_lines(one.returned)
    ]
    tail = lines[end:]
    if tail and tail[0].strip() and not tail[0].strip().startswith((">>>", '"""', "'''")):
        closing = tail[0].rstrip("\n")[-3:]
        tail = [f"{indent}{closing}\n", *tail[1:]]
    return "".join([*lines[:start], *([] if one.returned == "None" else new), *tail])


def _ends_example(line: str) -> bool:
    """The next prompt, or a line that closes the docstring."""
    return line.strip().startswith(">>>") or '"""' in line or "'''" in line


def _escaped(line: str, *, raw: bool) -> str:
    if raw:
        return line
    return line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
