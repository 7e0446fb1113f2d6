"""Parses Python, one text at a time.

CPython 3.11 counts the depth of a tree for all threads together: two concurrent parses can raise
`SystemError: AST constructor recursion depth mismatch` (python/cpython#106905).
"""

import ast
import threading
import warnings
from typing import Literal, overload

_ONE_AT_A_TIME = threading.Lock()


@overload
def parse(text: str, filename: str = ..., mode: Literal["exec"] = ...) -> ast.Module: ...
@overload
def parse(text: str, filename: str = ..., *, mode: Literal["eval"]) -> ast.Expression: ...
@overload
def parse(text: str, filename: str, mode: str) -> ast.Module | ast.Expression: ...
def parse(text: str, filename: str = "<unknown>", mode: str = "exec") -> ast.AST:
    """Return the tree of a text, as `ast.parse` does, without printing warnings about bad escapes.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is not Python, or nested too deep.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, filename, mode)
