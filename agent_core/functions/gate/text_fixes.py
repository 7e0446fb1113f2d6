"""Fixes of the read stage to the text as sent: fences and indentation, hidden characters, trial calls, public helpers.

Pure text to text. Each unwrapping is tried only where the text as it stands is not Python, so that a docstring which
shows a fence is never touched. Characters that a source cannot contain become escapes in its strings, which
keep their values. A public helper becomes private where no other use of its name could be meant.
"""

import ast
import re
import textwrap
import tokenize
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from agent_core.base.characters import escaped, stray_characters
from sandbox.wire.lines import lines_of, reader_of

from .tree import FunctionNode, bound_names, calls_of, find, functions, nodes_of, parse
from .uses import is_program

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


def strip_tryouts(text: str, name: str) -> str:
    """Return the code without what stands at its end only to try the function out: prints, asserts, `if __name__ …`,
    and the values that only these read.
    """
    tree = parse(text)
    kept = [*tree.body] if isinstance(tree, ast.Module) and find(tree, name) else []
    while len(kept) > 1 and _tries_out(kept[-1], kept[:-1], is_last=isinstance(tree, ast.Module) and kept == tree.body):
        removed = kept.pop()
        if (kept[-1].end_lineno or 0) >= removed.lineno:
            return text  # two statements on one line
    lines = lines_of(text)[: kept[-1].end_lineno] if kept else []
    is_whole = not isinstance(tree, ast.Module) or len(kept) in (0, len(tree.body))
    return text if is_whole else "".join(lines).rstrip("\n") + "\n"


def _tries_out(node: ast.stmt, before: Sequence[ast.stmt], *, is_last: bool) -> bool:
    match node:
        case ast.Assert() | ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if not is_last:
            return not any(calls_of(other, {name}) for other in before)
        case _:
            return is_program(node)


_MOST = 50  # helpers; with more, one asks for them rather than rename them


def make_private(text: str, name: str) -> str:
    """Return the text with the promised function's helpers renamed to `_helper`; unchanged if that is not safe.

    It is safe if each word of the code with such a name is a use of the helper: no parameter, keyword or attribute.
    """
    tree = parse(text)
    if not isinstance(tree, ast.Module) or not 1 < len(functions(tree)) <= _MOST:
        return text
    helpers, nodes = _helpers(tree, name), nodes_of(tree)
    uses = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    uses = [
        name for name in (*uses, *(node.name for node in nodes if isinstance(node, FunctionNode))) if name in helpers
    ]
    # Before Python 3.12 a text with places in it is one word.
    is_in_text = any(isinstance(node, ast.JoinedStr) and calls_of(node, helpers) for node in nodes)
    words = [word for word in tokenize.generate_tokens(reader_of(text)) if word.string in helpers] if helpers else []
    is_safe = not is_in_text and not bound_names(tree) & {f"_{helper}" for helper in helpers}
    if not is_safe or sorted(word.string for word in words) != sorted(uses):
        return text
    lines = lines_of(text)
    for word in reversed(words):
        line, column = word.start
        lines[line - 1] = f"{lines[line - 1][:column]}_{lines[line - 1][column:]}"
    return "".join(lines)


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


_FENCE = re.compile(
    r"^[ \t]*(?P<mark>```|~~~)[ \t]*[\w+-]*[ \t]*\n(?P<code>.*?)(?:^[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)

Unwrapping = tuple[str, str, Callable[[str], str]]


def strip_fence(text: str) -> str:
    """Return the code between the first pair of fences that holds a function; an unclosed one ends with the text."""
    fenced = [match["code"] for match in _FENCE.finditer(text)] if "```" in text or "~~~" in text else []
    if not fenced or _is_python(text):
        return text
    return next((code for code in fenced if "def " in code), fenced[0])


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
    ("indentation", "removed the indentation that all lines share", strip_indentation),
)


def _is_python(text: str) -> bool:
    return isinstance(parse(text), ast.Module)
