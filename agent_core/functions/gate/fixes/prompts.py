"""Turns examples that a docstring writes in another form (`f(2) -> 4`, `f(2) == 4`, `f(2)  # 4`) into doctests.

Only a call of the promised function next to a literal counts as an example; both stay as they are written.
"""

import ast
import re

from agent_core.base import syntax
from sandbox.wire.lines import bare_lines

from ..tree import literal
from .prose import prose
from .view import View

_ARROW = re.compile(
    r"^(?P<indent>\s*)(?:[-*•]\s+)?(?:>>> ?)?`?(?P<call>[A-Za-z_]\w*\(.*\))`?"
    r"\s*(?P<mark>->|=>|→|==|#|returns?\b|gives\b)\s*`?(?P<result>.+?)(?:`\.?)?$"
)
_TIGHT = re.compile(r"^(\s*>>>)(?=[^\s>])")


def has_other_examples(view: View) -> bool:
    """Check whether a line may hold an example in another form than a prompt with its result below."""
    if "```" in view.words and ">>>" in view.words:
        return True
    call, marks = f"{view.name}(", ("->", "=>", "→", "==", "#", "return", "gives")
    for line in bare_lines(view.words):
        if call in line and (not line.lstrip().startswith(">>> ") or any(mark in line for mark in marks)):
            return True
    return False


def write_prompts(view: View) -> str:
    """Return the text with its examples in doctest's form."""
    text, name = view.text, view.name
    written = prose(text, view.node)
    if written is None:
        return text
    lines: list[str] = []
    after_result = False
    bare = _without_fences(list(written.lines))
    for line, following in zip(bare, [*bare[1:], ""], strict=True):
        example = _example(_TIGHT.sub(r"\1 ", line), name, following)
        if after_result and len(example) == 1 and example[0].strip() and not example[0].lstrip().startswith(">>>"):
            lines.append("")  # text right below a result would be read as a part of it
        after_result = len(example) > 1
        lines += example
    return text if lines == list(written.lines) else written.rewritten(text, lines)


def _without_fences(lines: list[str]) -> list[str]:
    """Return the lines without Markdown fences around prompts: the closing one would be read as a result."""
    fences = [at for at, line in enumerate(lines) if line.lstrip().startswith("```")]
    pairs = zip(fences[::2], fences[1::2], strict=False)
    fence_lines = {at for pair in pairs if any(">>>" in line for line in lines[slice(*pair)]) for at in pair}
    return [line for at, line in enumerate(lines) if at not in fence_lines]


def _example(line: str, name: str, following: str) -> list[str]:
    match = _ARROW.match(line)
    if not match or not _is_call(match["call"], name):
        return [line]
    is_prompt = line.lstrip().startswith(">>>")
    # A comparison is true or not by itself, and a prompt with its result below is an example already.
    has_result = following.strip() not in ("", '"""') and not following.lstrip().startswith(">>>")
    if is_prompt and (match["mark"] == "==" or has_result):
        return [line]
    result = re.sub(
        r"^(?:returns?|gives|outputs?|results?|prints|->|=>)\s*:?\s*", "", match["result"].strip(), flags=re.IGNORECASE
    )
    if match["mark"] not in ("->", "=>", "→", "=="):
        result = result.rstrip(".;")  # the end of a sentence
    if not _is_literal(result):
        return [line]
    indent = match["indent"]
    return [f"{indent}>>> {match['call']}", f"{indent}{result}"]


def _is_call(text: str, name: str) -> bool:
    try:
        tree = syntax.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.func.id != name:
        return False
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    # `f(a)` speaks of any argument: an example has values.
    return all(id(node) in called for node in ast.walk(tree) if isinstance(node, ast.Name))


def _is_literal(text: str) -> bool:
    try:
        return literal(syntax.parse(text.strip(), mode="eval").body)[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
