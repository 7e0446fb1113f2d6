"""Compilation of a module, in a worker that does nothing else: text in, code and imported names out.

No line of the module runs here, so what this says of it can be kept for later workers.
"""

import ast
import marshal
from binascii import b2a_base64

from ..caps import MOST_IMPORTS, MOST_MESSAGE
from ..protocol import Frame


def compile_module(text: str, path: str, module: str) -> Frame:
    """Return the reply with the code, or with the syntax error and its place."""
    try:
        tree = ast.parse(text, path)
        names = sorted(_imports(tree, module))[:MOST_IMPORTS]
        code = compile(tree, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 0
        message = getattr(error, "msg", None) or str(error) or "nested too deep to be compiled"
        return {"kind": "broken", "path": path, "line": line, "message": message[:MOST_MESSAGE]}
    return {"kind": "code", "path": path, "code": b2a_base64(marshal.dumps(code)).decode(), "imports": names}


def _imports(tree: ast.Module, module: str) -> set[str]:
    """Return every imported name (asyncio for `async def`), with relative ones resolved below `functions`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef):
            names.add("asyncio")  # whoever calls it runs a loop
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module)
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names if base.startswith("functions"))
    return names


def _base(node: ast.ImportFrom, module: str) -> str:
    if not node.level:
        return node.module or ""
    package = ["functions", *module.split(".")][: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])
