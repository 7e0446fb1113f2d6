"""A line that the user types at the debugger: an expression, an assignment, or a breakpoint.

A breakpoint is `[FUNCTION:]LINE [if CONDITION] [after N] [every N] [once]`. Commands of `pdb` that do not exist here
are answered with the replacement.
"""

import ast
import re
import warnings
from collections.abc import Container
from typing import Any, Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.errors import UsageError
from agent_core.base.untrusted import visible

from .breakpoints import Breakpoint

Order: TypeAlias = dict[str, Any]  # Any: JSON for the worker
_LISTS: Final = "`help` lists what it has."
_ANEW: Final = "q ends this call; /debug NAME JSON starts one that stops."
_SILENT: Final = "condition NUMBER False passes one over, clear NUMBER removes it."
_ABSENT: Final = {  # commands of `pdb`, each with the replacement
    **dict.fromkeys(("j", "jump"), "No line can be skipped here; until LINE runs on to a later one."),
    **dict.fromkeys(("run", "restart", "debug"), _ANEW),
    **dict.fromkeys(("enable", "disable"), _SILENT),
    **dict.fromkeys(("alias", "unalias", "exceptions"), _LISTS),
    "commands": "display EXPRESSION shows one at each stop.",
    "interact": "Any expression can be typed as it is.",
    "source": "longlist shows the function that is paused; /introspect NAME any other.",
    "rv": "It is retval.",
}


def order_of(text: str, names: Container[str] = ()) -> Order:
    """Return the order for an expression or an assignment.

    Raises:
        UsageError: it is neither, or it is a missing command of `pdb` that is not among the `names` in scope.
    """
    word = text.split(" ", 1)[0].strip()
    if word in _ABSENT and (_parse(text, "eval") is None or (text.strip() == word and word not in names)):
        raise UsageError(f"The debugger has no `{word}`.", fix=_ABSENT[word])
    module = _parse(text, "exec") if _parse(text, "eval") is None else None
    return _statement(text, module) if module is not None else {"do": "evaluate", "expression": expression_of(text)}


def expression_of(text: str) -> str:
    """Return the text if it is an expression that can be evaluated while the function is stopped.

    Raises:
        UsageError: it is not.
    """
    try:
        tree = _read(text, "eval")
    except SyntaxError as error:
        raise UsageError(f"*** SyntaxError: {error.msg}: `{visible(text[:200])}`") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"*** {type(error).__name__}: {error}") from error
    if any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) for node in ast.walk(tree)):
        raise UsageError("Nothing can be awaited or yielded here: the function's own loop is paused, too.")
    return text


def _statement(text: str, module: ast.AST) -> Order:
    match module:
        case ast.Module(body=[ast.Assign(targets=[ast.Name(id=name)], value=value)]):
            return _set(name, value)
        case ast.Module(body=[ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)]):
            return _set(name, value)
        case ast.Module(body=[ast.AugAssign(target=ast.Name(id=name), op=op, value=value)]):
            return _set(name, ast.BinOp(ast.Name(name, ast.Load()), op, value))
        case ast.Module(body=[ast.Assign(targets=targets) | ast.Delete(targets=targets)]) if all(
            map(_is_part, targets)
        ):
            return {"do": "act", "statement": text.strip()}
        case ast.Module(body=[ast.AugAssign(target=target)]) if _is_part(target):
            return {"do": "act", "statement": text.strip()}
        case ast.Module(body=[ast.Import() | ast.ImportFrom(), *_]):
            raise UsageError(
                "The debugger runs no `import`.", fix="Within an expression: __import__('math').sqrt(total)"
            )
        case _:
            raise UsageError(
                "The debugger takes expressions, and assignments to one name, item or attribute.",
                fix="For example: total = 0, or numbers[0] = 5, or [one * 2 for one in numbers]",
            )


def _set(name: str, value: ast.expr) -> Order:
    return {"do": "set", "name": name, "expression": expression_of(ast.unparse(value))}


def _is_part(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript | ast.Attribute)


def _parse(text: str, mode: str) -> ast.AST | None:
    try:
        return _read(text, mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read(text: str, mode: str) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # typed code needs no warnings
        return syntax.parse(text.strip(), "<debug>", mode)


USAGE: Final = "[if CONDITION] [after N] [every N] [once]"
_COUNT = re.compile(r"(.*?)\b(?:(after|every) +(\d{1,9})|(once))\s*", re.DOTALL)
_IF = re.compile(r"\s+if\b\s*")


def typed_breakpoint(text: str, *, once: bool = False) -> tuple[Breakpoint, int]:
    """Return the breakpoint and its line; line 0 is the function's first, an empty function the stopped one.

    Raises:
        UsageError: a word is not understood.
    """
    head, *conditions = _IF.split(text.strip(), maxsplit=1)
    # A comma before the condition is as in `pdb`.
    head, has_if, condition = (head.rstrip(", "), "if", conditions[0]) if conditions else head.partition(",")
    place, _, words = head.strip().partition(" ")
    remainder, before = _counts(words.strip())
    condition, behind = _counts(condition.strip(), is_condition=True)
    if remainder or (has_if and not condition):
        message = f"`{remainder[:40]}` is nothing that a breakpoint knows." if remainder else "`if` needs a condition."
        raise UsageError(message, fix=f"Type it as FUNCTION:LINE {USAGE}.")
    counts = before | behind
    name, colon, line = place.rpartition(":")
    if not colon and not line.isdecimal():
        name, line = line, "0"
    if not line.isdecimal():
        raise UsageError(f"{line!r} is no line.", fix=f"Type it as FUNCTION:LINE {USAGE}.")
    return Breakpoint(
        0, name, "", 0, condition, (), counts.get("after", 0), counts.get("every", 1), once or "once" in counts
    ), int(line)


def _counts(text: str, *, is_condition: bool = False) -> tuple[str, dict[str, int]]:
    """Return the text before the counts at its end, and the counts; they never split a condition."""
    counts: dict[str, int] = {}
    best = text, counts
    while (match := _COUNT.fullmatch(text)) is not None:
        text, counts = match[1].strip(), {match[2] or "once": int(match[3] or 1), **counts}
        if not is_condition or _parse(text, "eval") is not None:
            best = text, counts
    return best
