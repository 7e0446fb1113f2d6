"""The host of an address or the path of a file that a text names, as far as the tree alone shows it.

Pure, and advice: what cannot be followed is unsaid. Names that are bound once are followed to what they hold.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from agent_core.access.grants.items import UNSAID, written

from .tree import nodes_of

Held = Mapping[str, ast.expr]
_DEPTH = 12
_ADDRESS = re.compile(r"(https?)://([^/?#\s]+)([/?#]|$)")
_WILD = re.compile(r"[*?\[]")
_SAME = frozenset({"str", "sorted", "list", "iter", "Path", "PurePath", "Request", "enumerate", "reversed", "fspath"})
_BELOW = frozenset({"iterdir", "glob", "rglob", "joinpath", "walk"})
_SIDE = frozenset({"resolve", "absolute", "expanduser", "rstrip", "strip", "lstrip"})


def name_bindings(tree: ast.AST) -> Held:
    """Return the names that a text binds exactly once, each with its value; a parameter with its default."""
    bindings: dict[str, list[ast.expr | None]] = {}
    for node in nodes_of(tree):
        for name, value in _bindings(node):
            bindings.setdefault(name, []).append(value)
    return {name: values[0] for name, values in bindings.items() if len(values) == 1 and values[0] is not None}


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield name, value
        case ast.For(target=ast.Name(id=name), iter=value) | ast.comprehension(target=ast.Name(id=name), iter=value):
            yield name, value
        case ast.For(target=ast.Tuple(elts=[_, ast.Name(id=name)]), iter=value):
            yield name, value
        case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name, None
        case ast.arguments():
            yield from _defaults(node)
        case _:
            pass


def _defaults(node: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the parameters, each with its default if that is a text, which the user can be asked about."""
    plain = [*node.posonlyargs, *node.args]
    defaults = dict(zip([parameter.arg for parameter in reversed(plain)], reversed(node.defaults), strict=False))
    defaults |= {
        parameter.arg: value for parameter, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value
    }
    for parameter in [*plain, *node.kwonlyargs]:
        default = defaults.get(parameter.arg)
        yield parameter.arg, default if isinstance(default, ast.Constant) and default.value else None


def text_prefix(node: ast.expr, names: Held, depth: int = _DEPTH) -> tuple[str, bool]:
    """Return the beginning of the text that an expression gives, and whether that is all of it."""
    match node:
        case ast.Constant(value=str(text)):
            return text, True
        case ast.Name(id=name) if name in names and depth:
            return text_prefix(names[name], names, depth - 1)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None) if depth:
            return text_prefix(value, names, depth - 1)
        case ast.JoinedStr() | ast.BinOp() if depth:
            return _composed(node, names, depth)
        case ast.Call() if depth:
            return _called(node, names, depth)
        case _:
            return "", False


def _composed(node: ast.JoinedStr | ast.BinOp, names: Held, depth: int) -> tuple[str, bool]:
    match node:
        case ast.JoinedStr(values=parts):
            return _one_after_another(parts, names, depth)
        case ast.BinOp(left=left_operand, op=ast.Add(), right=right):
            return _one_after_another((left_operand, right), names, depth)
        case ast.BinOp(left=left_operand, op=ast.Div(), right=right):
            return _below((left_operand, right), names, depth)
        case ast.BinOp(left=left_operand, op=ast.Mod()):
            return text_prefix(left_operand, names, depth - 1)[0].partition("%")[0], False
        case _:
            return "", False


def _called(node: ast.Call, names: Held, depth: int) -> tuple[str, bool]:
    match node.func:
        case ast.Attribute(attr="join", value=ast.Attribute(attr="path") | ast.Name(id="path")):
            return _below(node.args, names, depth)
        case ast.Attribute(attr="listdir" | "scandir" | "glob" | "iglob" as how, value=ast.Name(id="os" | "glob")):
            text = text_prefix(node.args[0], names, depth - 1)[0] if node.args else ""
            return _folder(text if "glob" in how else f"{text}/"), False
        case ast.Attribute(attr=method, value=value):
            return _of_method(method, (value, *node.args), names, depth)
        case ast.Name(id=name) if name in _SAME and node.args:
            return _below(node.args if name in ("Path", "PurePath") else node.args[:1], names, depth)
        case _:
            return "", False


def _of_method(method: str, parts: tuple[ast.expr, ...], names: Held, depth: int) -> tuple[str, bool]:
    if method == "joinpath":
        return _below(parts, names, depth)
    if method in _SAME and len(parts) > 1:  # `pathlib.Path(…)`
        return _below(parts[1:], names, depth)
    text, is_all = text_prefix(parts[0], names, depth - 1)
    if method == "format":
        return text.partition("{")[0], False
    if method in _BELOW:
        return _folder(f"{text}/"), False
    return (text, is_all) if method in _SIDE else ("", False)


def _one_after_another(parts: Iterable[ast.expr], names: Held, depth: int) -> tuple[str, bool]:
    text = ""
    for part in parts:
        more, is_all = text_prefix(part, names, depth - 1)
        text += more
        if not is_all:
            return text, False
    return text, True


def _below(parts: Iterable[ast.expr], names: Held, depth: int) -> tuple[str, bool]:
    text = ""
    for part in parts:
        more, is_all = text_prefix(part, names, depth - 1)
        if text and not is_all and not isinstance(part, ast.JoinedStr | ast.BinOp):
            return f"{text}/", False
        text = more if not text or more.startswith("/") else f"{text.rstrip('/')}/{more}"
        if not is_all:
            return text, False
    return text, bool(text)


def _folder(text: str) -> str:
    head, slash, _ = _WILD.split(text)[0].rpartition("/")
    return head + slash


def host_of(node: ast.expr | None, names: Held) -> str | None:
    """Return the host that an address names; None if it names one that cannot be granted."""
    text, is_all = text_prefix(node, names) if node is not None else ("", False)
    match = _ADDRESS.match(text)
    if match is None or not (match[3] or is_all):
        return UNSAID
    port = {"http": ":80", "https": ":443"}[match[1]]
    return written("network", match[2].removesuffix(port))


def hosts_in(nodes: Iterable[ast.AST], names: Held) -> list[str]:
    """Return the hosts of all addresses in a text."""
    texts = [node for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp)]
    hosts = {host_of(node, names) for node in texts} | {_connected(node, names) for node in nodes}
    return sorted(host for host in hosts if host not in (None, UNSAID))


def _connected(node: ast.AST, names: Held) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[first, *others]) if name in (
            "HTTPConnection",
            "HTTPSConnection",
        ):
            text, is_all = text_prefix(first, names)
            port = f":{ast.unparse(others[0])}" if others and isinstance(others[0], ast.Constant) else ""
            return written("network", f"{text}{port}") if is_all else None
        case _:
            return None


def path_of(node: ast.expr | None, names: Held) -> str | None:
    """Return the file or folder that an expression names; None if it names one that cannot be granted."""
    text, is_all = text_prefix(node, names) if node is not None else ("", False)
    if not text:
        return UNSAID
    if not is_all or _WILD.search(text):
        text = _folder(text)
    return written("read", text) if text else UNSAID
