"""Taking a candidate out of its wrapping: code fences, pasted prompts, common indentation.

Pure text to text. Each unwrapping is tried only where the text as it stands is not Python, so that a
docstring which shows a fence or a prompt is never touched.
"""

import ast
import re
import textwrap
from collections.abc import Callable

from ..tree import parse

_FENCE = re.compile(r"^[ \t]*```[ \t]*[\w+-]*[ \t]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")

Unwrapping = tuple[str, str, Callable[[str], str]]


def strip_fence(text: str) -> str:
    """The code between the first pair of fences; an unclosed one ends with the text."""
    found = _FENCE.search(text) if "```" in text else None
    return found[1] if found and not _is_python(text) else text


def strip_prompts(text: str) -> str:
    """The code without the interpreter's prompts, where every line of code has one."""
    if not text.lstrip().startswith((">>>", "...")):
        return text
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


def _is_python(text: str) -> bool:
    return isinstance(parse(text), ast.Module)
