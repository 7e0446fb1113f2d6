"""Taking a candidate out of its wrapping: code fences, pasted prompts, common indentation, calls at the end.

Pure text to text. Each unwrapping is tried only where the text as it stands is not Python, so that a
docstring which shows a fence or a prompt is never touched; trailing calls go only from the very end.
"""

import ast
import re
import textwrap
from collections.abc import Callable

from .tree import calls_of, lines_of, parse

_FENCE = re.compile(r"^[ \t]*```[ \t]*[\w+-]*[ \t]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")

Unwrapping = tuple[str, str, Callable[[str], str]]


def strip_fence(text: str) -> str:
    """The code between the first pair of fences; an unclosed one ends with the text."""
    found = _FENCE.search(text)
    return found[1] if found and not _is_python(text) else text


def strip_prompts(text: str) -> str:
    """The code without the interpreter's prompts, where every line of code has one."""
    lines = text.splitlines()
    prompted = [line for line in lines if line.strip()]
    if not prompted or _is_python(text) or not all(_PROMPT.match(line.strip()) for line in prompted):
        return text
    return "\n".join(_PROMPT.sub("", line.strip()) for line in lines) + "\n"


def strip_indentation(text: str) -> str:
    """The code without the indentation that all of its lines share."""
    if _is_python(text):
        return text
    flat = text.replace("\r\n", "\n")
    unindented = textwrap.dedent(flat)
    if unindented != flat and (_is_python(unindented) or not _is_python(text.strip())):
        return unindented.lstrip("\n")
    return text.strip() + "\n" if _is_python(text.strip()) else text


UNWRAPPINGS: tuple[Unwrapping, ...] = (
    ("code-fence", "took the code out of its Markdown fence", strip_fence),
    ("prompts", "removed the prompts `>>>` and `...` in front of the code", strip_prompts),
    ("indentation", "removed the indentation that all lines share", strip_indentation),
)


def strip_trailing_code(text: str, name: str) -> str:
    """The code without what only tries it out at the end: calls, asserts, an `if __name__` block."""
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return text
    kept = list(tree.body)
    while kept and _tries_out(kept[-1], name):
        kept.pop()
    if len(kept) == len(tree.body) or not kept:
        return text
    lines = lines_of(text)
    return "".join(lines[: kept[-1].end_lineno]).rstrip("\n") + "\n"


def _tries_out(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Assert():
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Assign() | ast.AnnAssign() | ast.For():
            return bool(calls_of(node, {name}))
        case _:
            return False


def _is_python(text: str) -> bool:
    return isinstance(parse(text), ast.Module)
