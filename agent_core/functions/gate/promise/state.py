"""State that begins and ends with a call: a store that the body makes itself, changes, and only looks at. Pure.

What comes in and goes out changed is work; so is a result that is built up and returned. A store that begins anew
each time keeps nothing, whatever the result says of it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..tree import FunctionNode, literal, nodes_of, parameters

StoreKind: TypeAlias = Literal["filled", "empty", "counter", "object", "returned", "temporary", "copied"]
_MAKERS = frozenset({"list", "dict", "set", "defaultdict", "deque", "OrderedDict", "Counter", "StringIO", "BytesIO"})
_TEMPORARY = frozenset({"TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "SpooledTemporaryFile", "mkdtemp"})
_ARRANGED = frozenset({"heappush", "heapify", "heapreplace", "heappushpop", "insort", "insort_left", "insort_right"})
_CACHES = frozenset({"lru_cache", "cache"})
_COPIES = frozenset({"copy", "deepcopy", "dict", "list", "set"})
_DEEP = 2  # a copy whose members are copies, too
_CHANGES = frozenset(
    {"append", "add", "insert", "update", "extend", "setdefault", "appendleft", "pop", "popitem", "remove", "discard"}
    | {"clear", "put", "push", "write", "popleft", "extendleft", "difference_update"}
)
# What only reads what it is given.
_READERS = frozenset(
    {"len", "list", "tuple", "set", "dict", "frozenset", "sorted", "sum", "min", "max", "enumerate", "zip", "reversed"}
    | {"any", "all", "range", "str", "repr", "print", "iter", "isinstance", "map", "filter", "int", "float", "bool"}
)
_READS = frozenset({*dir(str), *dir(tuple), *dir(frozenset), "get", "items", "keys", "values"})
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.AsyncFor)


@dataclass(frozen=True, slots=True)
class VanishingStore:
    """A local store that is changed: how it begins, or that it is all that is returned."""

    name: str
    kind: StoreKind
    line: int


def vanishing_stores(tree: ast.Module, node: FunctionNode) -> list[VanishingStore]:
    """Return the stores that a function makes of nothing that came in, and changes outside of any loop."""
    classes = {child.name for child in nodes_of(tree) if isinstance(child, ast.ClassDef)}
    nodes = nodes_of(node)
    repeated = {
        id(child) for loop in nodes if isinstance(loop, _LOOPS) for child in nodes_of(loop) if child is not loop
    }
    inputs = _inputs(node)
    stores: dict[str, VanishingStore] = {}
    for child in nodes:
        for name, value in _bound(child) if id(child) not in repeated else ():
            kind = _kind(value, inputs, classes, stores)
            if kind and name not in stores:
                stores[name] = VanishingStore(name, kind, getattr(child, "lineno", 0))
    begun = {name: store for name, store in stores.items() if not _is_copy(store, nodes, inputs)}
    vanishing = [judged for store in begun.values() if (judged := _judged(store, nodes, repeated))]
    return [*vanishing, *_copies(nodes, inputs), *_caches(nodes)]


def leaves_alone(node: FunctionNode) -> bool:
    """Check whether nothing of what comes in is changed: no part of an argument, and by nobody who is given one."""
    nodes, inputs = nodes_of(node), _inputs(node)
    copies = {name for child in nodes for name, value in _bound(child) if _is_new(value, inputs)}
    owners = [owner for child in nodes for owner in _touched(child)]
    return not any(_root(owner) in (inputs if _is_deep(owner) else inputs - copies) for owner in owners)


def _is_new(value: ast.expr, inputs: set[str]) -> bool:
    """Check whether a value is a list or mapping of its own, whatever its members are."""
    return isinstance(value, ast.ListComp | ast.DictComp | ast.SetComp) or _depth_of_copy(value, inputs) > 0


def _is_deep(owner: ast.expr) -> bool:
    return not isinstance(owner, ast.Name)


def _touched(node: ast.AST) -> list[ast.expr]:
    """Return the values of which a part may be changed here."""
    match node:
        case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()) | ast.Attribute(value=owner, ctx=ast.Store()):
            return [owner]
        case ast.AugAssign(target=ast.Name() as name):
            return [name]
        case ast.Call(func=ast.Name(id=called)) if called in _READERS:
            return []
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _CHANGES:
            return [owner]
        case ast.Call(func=func, args=arguments, keywords=keywords):
            given = [func.value] if isinstance(func, ast.Attribute) and func.attr not in _READS else []
            return [*given, *arguments, *(keyword.value for keyword in keywords)]
        case _:
            return []


def _copies(nodes: tuple[ast.AST, ...], inputs: set[str]) -> Iterator[VanishingStore]:
    """Yield the copies of what came in of which a part is changed, and which nobody looks at any more."""
    statements = [child for child in nodes if isinstance(child, ast.stmt)]
    bindings = [(child, *bound) for child in statements for bound in _bound(child)]
    for statement, name, value in bindings:
        depth = _depth_of_copy(value, inputs)
        own = [other for _statement, bound, other in bindings if bound == name and other is not value]
        if not depth or not all(name in _names(other) for other in own):
            continue
        names = {name} | {member for loop in nodes if depth > 1 and (member := _member(loop, name))}
        changing = [child for child in statements if _changed(child, depth) in names]
        if changing and not _is_looked_at(nodes, names, changing):
            yield VanishingStore(name, "copied", statement.lineno)


def _depth_of_copy(value: ast.expr, inputs: set[str]) -> int:
    """Return how deep a value is a copy of what came in: 1 for `list(rows)`, whose members are those that came in."""
    match value:
        case ast.ListComp(elt=element, generators=[ast.comprehension(iter=rows, target=ast.Name(id=row))]):
            return _DEEP if _names(rows) & inputs and _depth_of_copy(element, {row}) else 0
        case ast.Call(func=ast.Name(id=maker) | ast.Attribute(attr=maker)):
            is_copy = maker in _COPIES and _names(value) & inputs
            return (_DEEP if maker == "deepcopy" else 1) if is_copy else 0
        case (
            ast.Subscript(value=ast.Name(id=name), slice=ast.Slice(lower=None, upper=None))
            | ast.List(elts=[ast.Starred(value=ast.Name(id=name)), *_])
            | ast.Dict(keys=[None, *_], values=[ast.Name(id=name), *_])
        ):
            return 1 if name in inputs else 0
        case _:
            return 0


def _member(loop: ast.AST, name: str) -> str:
    """Return the name under which a loop goes through a list."""
    match loop:
        case ast.For(target=ast.Name(id=member), iter=ast.Name(id=rows)) if rows == name:
            return member
        case _:
            return ""


def _changed(statement: ast.stmt, depth: int) -> str:
    """Return the name of which a statement changes a part, so deep at most, and does nothing else."""
    match statement:
        case (
            ast.Assign(targets=[ast.Subscript(value=owner)])
            | ast.AugAssign(target=ast.Subscript(value=owner))
            | ast.Delete(targets=[ast.Subscript(value=owner)])
        ):
            return _root(owner) if depth > 1 or isinstance(owner, ast.Name) else ""
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=method))) if method in _CHANGES:
            return _root(owner) if depth > 1 or isinstance(owner, ast.Name) else ""
        case _:
            return ""


def _is_looked_at(nodes: tuple[ast.AST, ...], names: set[str], changing: list[ast.stmt]) -> bool:
    """Check whether what was changed is read further down, or in the next round of a loop that is not through it."""
    changes = {id(part) for change in changing for part in nodes_of(change)}
    first = min(change.lineno for change in changing)
    rounds = [loop for loop in nodes if isinstance(loop, _LOOPS) and not any(_member(loop, name) for name in names)]
    again = {
        id(part) for loop in rounds if any(id(part) in changes for part in nodes_of(loop)) for part in nodes_of(loop)
    }
    return any(
        isinstance(part, ast.Name)
        and part.id in names
        and isinstance(part.ctx, ast.Load)
        and id(part) not in changes
        and (part.lineno > first or id(part) in again)
        for part in nodes
    )


def _caches(nodes: tuple[ast.AST, ...]) -> Iterator[VanishingStore]:
    """Yield the inner functions that remember their answers until the call ends."""
    for child in nodes[1:]:
        if isinstance(child, ast.FunctionDef) and any(_names(mark) & _CACHES for mark in child.decorator_list):
            yield VanishingStore(child.name, "object", child.lineno)


def _inputs(node: FunctionNode) -> set[str]:
    """Return the parameters, and the names that are bound to something made of them."""
    inputs = {parameter.arg for parameter in parameters(node)}
    for child in nodes_of(node):
        match child:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _names(value) & inputs:
                inputs.add(name)
            case ast.For(target=target, iter=rows) if _names(rows) & inputs:
                inputs |= _names(target)
    return inputs


def _names(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.With(items=items):
            for item in items:
                if isinstance(item.optional_vars, ast.Name):
                    yield item.optional_vars.id, item.context_expr


def _kind(
    value: ast.expr, inputs: set[str], classes: set[str], stores: dict[str, VanishingStore]
) -> StoreKind | Literal[""]:
    """Return how a store begins; nothing if the value is none, or made of what came in."""
    if _names(value) & inputs:
        return ""
    is_literal, content = literal(value)
    if is_literal and isinstance(content, list | dict | set):
        return "filled" if any(isinstance(part, str | dict | tuple | list) for part in content) else "empty"
    if is_literal and isinstance(content, int) and not isinstance(content, bool):
        return "counter"
    if isinstance(value, ast.Call):
        return _made(value, classes, stores)
    return ""


def _made(call: ast.Call, classes: set[str], stores: dict[str, VanishingStore]) -> StoreKind | Literal[""]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    attribute = call.func.attr if isinstance(call.func, ast.Attribute) else name
    copied = [argument.id for argument in call.args if isinstance(argument, ast.Name)]
    copied += (
        [call.func.value.id] if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else []
    )
    origin = next((stores[original] for original in copied if original in stores), None)
    if attribute in _COPIES and origin:
        return origin.kind
    if name in classes:
        return "object"
    if attribute in _TEMPORARY or (attribute == "connect" and [*map(literal, call.args)] == [(True, ":memory:")]):
        return "temporary"
    return "empty" if attribute in _MAKERS and not (call.keywords or _has_text(call)) else ""


def _has_text(call: ast.Call) -> bool:
    return any(isinstance(argument, ast.Constant) and isinstance(argument.value, str) for argument in call.args)


def _judged(store: VanishingStore, nodes: tuple[ast.AST, ...], repeated: set[int]) -> VanishingStore | None:
    """Return the store with how it ends; None if nothing outside of a loop changes it, or it is a plain result."""
    changing = [child for child in nodes if _changes(child, store.name, store.kind)]
    lasting = [child for child in changing if id(child) not in repeated]
    if store.kind in ("object", "temporary"):
        return store if changing or store.kind == "temporary" else None
    if store.kind == "counter":
        return store if lasting and len(lasting) == len(changing) and not _is_conditional(nodes, lasting) else None
    if not lasting or len(lasting) < len(changing):
        return None  # what a loop changes is what the result is made of
    if any(isinstance(child, ast.Return) and _is_name(child.value, store.name) for child in nodes):
        return VanishingStore(store.name, "returned", store.line)
    return store if store.kind == "filled" or not _is_handed_on(nodes, store.name) else None


def _is_copy(store: VanishingStore, nodes: tuple[ast.AST, ...], inputs: set[str]) -> bool:
    """Check whether an empty store takes in rows that came in, and is returned, or a slice of it."""
    if store.kind != "empty":
        return False
    takes_rows = any(
        isinstance(child, ast.Call | ast.AugAssign) and _taken(child, store.name) & inputs for child in nodes
    )
    answers = [child.value for child in nodes if isinstance(child, ast.Return)]
    is_returned = any(
        _is_name(answer.value if _is_slice(answer) else answer, store.name)  # type: ignore[union-attr] # a subscript
        for answer in answers
    )
    return takes_rows and is_returned


def _taken(node: ast.Call | ast.AugAssign, name: str) -> set[str]:
    """Return the names of which a store takes in all members."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="extend" | "update"), args=[ast.Name(id=rows)]):
            return {rows} if _is_name(owner, name) else set()
        case ast.AugAssign(target=target, value=ast.Name(id=rows)):
            return {rows} if _is_name(target, name) else set()
        case _:
            return set()


def _is_slice(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _is_name(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _changes(node: ast.AST, name: str, kind: StoreKind) -> bool:
    """Check whether a node changes a store: by a method, by an item, or a counter by a constant."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if _root(owner) == name:
            return kind == "object" or method in _CHANGES
        case ast.Call(func=ast.Attribute(attr=arrange) | ast.Name(id=arrange), args=[row, *_]) if arrange in _ARRANGED:
            return _is_name(row, name)
        case ast.Subscript(value=ast.Name(id=owner), ctx=ast.Store() | ast.Del()) if owner == name:
            return True
        case ast.AugAssign(target=ast.Name(id=owner), value=operand) if owner == name:
            return kind != "counter" or literal(operand)[0]
        case _:
            return False


def _root(node: ast.expr) -> str:
    """Return the name that items and attributes are taken of."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_conditional(nodes: tuple[ast.AST, ...], changing: list[ast.AST]) -> bool:
    inside = {id(child) for node in nodes if isinstance(node, ast.If | ast.Try | ast.Match) for child in nodes_of(node)}
    return any(id(child) in inside for child in changing)


def _is_handed_on(nodes: tuple[ast.AST, ...], name: str) -> bool:
    """Check whether a store is used whole: joined, sorted, gone through; its length or an item is only a look at it."""
    looks = {id(part) for node in nodes for part in _looks(node)}
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and id(node) not in looks
        for node in nodes
    )


def _looks(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[argument]):
            yield argument
        case ast.Subscript(value=value):
            yield value
        case ast.Attribute(value=value):
            yield value
        case ast.Call(func=ast.Attribute(attr=arrange) | ast.Name(id=arrange), args=[row, *_]) if arrange in _ARRANGED:
            yield row
        case ast.Compare(ops=operators, comparators=operands):
            yield from (
                part
                for operator, part in zip(operators, operands, strict=True)
                if isinstance(operator, ast.In | ast.NotIn)
            )
