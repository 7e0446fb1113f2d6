"""Fixes of the read stage to the text as sent: fences, prompts and indentation, hidden characters, public helpers.

Pure text to text. Each unwrapping is tried only where the text as it stands is not Python, so that a docstring which
shows a fence or a prompt is never touched. Characters that a source cannot contain become escapes in its strings, which
keep their values. A public helper becomes private where no other use of its name could be meant.
"""

import ast
import re
import textwrap
import tokenize
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import starmap

from agent_core.base import syntax
from agent_core.base.characters import escaped, stray_characters
from sandbox.wire.lines import bare_lines, lines_of, reader_of

from .tree import FunctionNode, bound_names, calls_of, functions, literal, parse

_STRINGS = frozenset({tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)})
_RAW = re.compile(r"[A-Za-z]*[rR]")


def write_escapes(text: str) -> str:
    """Return the text with escapes in its strings; unchanged if it would compute anything else."""
    strays = stray_characters(text)
    before = parse(text) if strays else None
    if not isinstance(before, ast.Module):
        return text
    pieces = list(text)
    for start, end in _strings(text):
        for at in strays[bisect_left(strays, start) : bisect_left(strays, end)]:
            pieces[at] = escaped(text[at])
    written = "".join(pieces)
    after = parse(written)
    return written if isinstance(after, ast.Module) and ast.dump(after) == ast.dump(before) else text


def _strings(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the strings that take escapes begin and end."""
    starts = [0]
    for line in lines_of(text):
        starts.append(starts[-1] + len(line))
    try:
        for token in tokenize.generate_tokens(reader_of(text)):
            if token.type in _STRINGS and not _RAW.match(token.string):
                yield starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]
    except (tokenize.TokenError, SyntaxError):
        return


_MOST = 50  # helpers; with more, one asks for them rather than rename them


def make_private(text: str, name: str) -> str:
    """Return the text with the promised function's helpers renamed to `_helper`; unchanged if that is not safe."""
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return text
    helpers = _helpers(tree, name) if 1 < len(functions(tree)) <= _MOST else set()
    if not helpers:
        return text
    used_names = bound_names(tree)
    if any(f"_{helper}" in used_names or _is_ambiguous(tree, helper) for helper in helpers):
        return text
    lines = [line.encode("utf-8") for line in lines_of(text)]
    for line, column, helper in sorted(_places(tree, lines, helpers), reverse=True):
        before = lines[line - 1]
        lines[line - 1] = before[:column] + b"_" + before[column:]
        assert before[column:].startswith(helper.encode("ascii"))
    return b"".join(lines).decode("utf-8")


def _helpers(tree: ast.Module, name: str) -> set[str]:
    """Return the public functions other than the promised one, if it reaches each of them."""
    nodes: dict[str, FunctionNode] = {node.name: node for node in functions(tree)}
    if name not in nodes:
        return set()
    reached, front = {name}, [name]
    while front:
        for callee in calls_of(nodes[front.pop()], set(nodes)) - reached:
            reached.add(callee)
            front.append(callee)
    public = {helper for helper in nodes if not helper.startswith("_")}
    return public - {name} if public <= reached and len(nodes) == len(functions(tree)) else set()


def _is_ambiguous(tree: ast.Module, helper: str) -> bool:
    """Check whether the name is also a parameter, a local or a keyword, appears in a text, or is not plain ASCII."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) | ast.keyword(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                if name == helper:
                    return True
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                if helper in names:
                    return True
            case ast.JoinedStr():
                # Before Python 3.12 the places of names inside f-strings are not those of the text.
                if calls_of(node, {helper}):
                    return True
    return not helper.isascii()


def _places(tree: ast.Module, lines: list[bytes], helpers: set[str]) -> list[tuple[int, int, str]]:
    places = [
        (node.lineno, node.col_offset, node.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in helpers
    ]
    for node in functions(tree):
        if node.name in helpers:
            column = lines[node.lineno - 1].find(node.name.encode("ascii"), node.col_offset + len("def"))
            places.append((node.lineno, column, node.name))
    return places


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
        syntax.parse(code, mode="eval")
        is_literal = literal(syntax.parse(printed, mode="eval").body)[0]
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
