"""Unwraps a candidate: code fences, pasted prompts, common indentation.

Pure text to text. Each unwrapping is tried only where the text as it stands is not Python, so that a
docstring which shows a fence or a prompt is never touched.
"""

import ast
import re
import textwrap
from collections.abc import Callable
from itertools import starmap

from sandbox.wire.lines import bare_lines

from ..tree import literal, parse

_FENCE = re.compile(
    r"^[ \t]*(?P<mark>```|~~~)[ \t]*[\w+-]*[ \t]*\n(?P<code>.*?)(?:^[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")

Unwrapping = tuple[str, str, Callable[[str], str]]


def strip_fence(text: str) -> str:
    """Return the code between the first pair of fences that holds a function; an unclosed one ends with the text."""
    fenced = [match["code"] for match in _FENCE.finditer(text)] if "```" in text or "~~~" in text else []
    if not fenced or _is_python(text):
        return text
    return next((code for code in fenced if "def " in code), fenced[0])


def strip_prompts(text: str) -> str:
    """Return the code without the interpreter's prompts; the result of a call is written as an assert below it."""
    if not text.lstrip().startswith((">>>", "...")) or _is_python(text):
        return text
    code: list[list[str]] = []
    printed: list[list[str]] = []
    for line in bare_lines(text):
        bare = line.strip()
        if bare.startswith(">>>") or not code:
            code.append([])
            printed.append([])
        if _PROMPT.match(bare) or not bare:
            code[-1].append(_PROMPT.sub("", bare))
        else:
            printed[-1].append(bare)
    typed = (
        "\n".join(starmap(_session_statement, zip(map("\n".join, code), map("\n".join, printed), strict=True))) + "\n"
    )
    return typed if not any(printed) or _is_python(typed) else text


def _session_statement(code: str, printed: str) -> str:
    """Return one statement of a session: dropped if it raised, with an assert if it returned a literal."""
    if printed.startswith("Traceback"):
        return ""
    try:
        ast.parse(code, mode="eval")
        is_literal = literal(ast.parse(printed, mode="eval").body)[0]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return code
    return f"assert ({code.strip()}) == {printed}" if is_literal else code


def strip_indentation(text: str) -> str:
    """Return the code without the indentation that all of its lines share."""
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
