"""The abilities of a candidate's code: its means, its use of chance, and what its comments admit.

Pure, from the tree. A means is a grant, a part of the call's context, or a function of the workspace.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from sandbox.wire.lines import bare_lines

from ..capability import uses_context
from ..draft import Draft
from ..tree import FunctionNode, calls_of, literal, nodes_of, parameters
from .lexicon import lexicon

_MEANS = frozenset({"call", "fetch", "secret", "memory", "scratch"})
_CHANCE = frozenset({"random", "secrets"})
_ADMITS = re.compile(
    r"(?i)\bin (?:a |the )?(?:real|actual|production)\b[^.\n]{0,40}"
    r"\b(?:would|should|you|this|we|implementation|system|app)"
    r"|\b(?:real|actual) (?:implementation|api|call|service|system) (?:would|goes|should|here|needs)"
    r"|\b(?:mock|dummy|fake|placeholder|hard-?coded|stub(?:bed)?) "
    r"(?:data|response|value|result|implementation|api|reply|answer|for now)"
    r"|\bsimulat(?:e|es|ed|ing) (?:the |an? )?"
    r"(?:api|call|request|response|sending|delay|network|upload|download|work|saving|process)"
    r"|\bpretend(?:s|ing)?\b|\bwould (?:normally|actually|really) (?:call|send|query|connect|fetch|use|be)\b"
    r"|\bfor (?:demo|demonstration) purposes\b|\bnot (?:really|actually) (?:send|save|call|do|perform)"
)


def has_means(draft: Draft) -> bool:
    """Check whether a candidate can reach beyond its arguments: a package may write a file, or know something."""
    if draft.tree is None:
        return True
    if draft.needs.is_outward or draft.needs.packages:
        return True
    if any(problem.code.startswith("needs-") for problem in draft.problems):
        return True
    if draft.loaded and draft.loaded.takes_self and uses_context(draft.tree) & _MEANS:
        return True
    return any(_is_from_workspace(node) for node in nodes_of(draft.tree))


def _is_from_workspace(node: ast.AST) -> bool:
    match node:
        case ast.ImportFrom(module=module, level=level):
            return level > 0 or (module or "").partition(".")[0] == "functions"
        case ast.Import(names=names):
            return any(alias.name.partition(".")[0] == "functions" for alias in names)
        case _:
            return False


def words_of_code(key: str) -> frozenset[str]:
    """Return the names of functions that draw, or that hash."""
    return lexicon().sections["code"][key]


@lru_cache(maxsize=32)
def by_chance(tree: ast.Module) -> bool:
    """Check whether the code draws from chance."""
    return any(_draws(node) for node in nodes_of(tree))


def _draws(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module))) if module in _CHANCE:
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in words_of_code("drawn"):
            return True
        case _:
            return False


@lru_cache(maxsize=32)
def by_hash(tree: ast.Module) -> bool:
    """Check whether a result may come of a hash: of one by name, or of lengths and codes of letters cut to a range."""
    nodes = nodes_of(tree)
    names = _names_called(tree)
    if calls_hash(tree):
        return True
    if names & _CLOCK and any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in nodes):
        return True
    if "chr" in names:
        return False
    handed_on = {node.id for node in nodes if isinstance(node, ast.Name)}  # as in `map(ord, text)`
    measures = (names | handed_on) & {"ord", "from_bytes"}
    adds = "sum" in names or any(isinstance(node, ast.AugAssign) for node in nodes)
    guards = {
        id(child)
        for node in nodes
        if isinstance(node, ast.If | ast.IfExp | ast.Assert) and _is_guard(node)
        for child in nodes_of(node.test)
    }
    return bool(measures and adds) or any(_is_cut(node) and id(node) not in guards for node in nodes)


def calls_hash(tree: ast.Module) -> bool:
    """Check whether a hash is called by its name: nobody works out what it gives."""
    return not _names_called(tree).isdisjoint(words_of_code("hashes"))


def uses_library(tree: ast.Module) -> bool:
    """Check whether code uses a library for what is hashed, signed, encrypted or compressed."""
    modules = words_of_code("libraries")
    return any(
        isinstance(node, ast.Import | ast.ImportFrom)
        and not {
            (getattr(node, "module", "") or "").partition(".")[0],
            *(alias.name.partition(".")[0] for alias in node.names),
        }.isdisjoint(modules)
        for node in nodes_of(tree)
    )


def _names_called(tree: ast.Module) -> set[str]:
    return {name for node in nodes_of(tree) if isinstance(node, ast.Call) and (name := _called(node))}


def _is_guard(node: ast.If | ast.IfExp | ast.Assert) -> bool:
    """Check whether a branch only refuses something, or adds to it: it chooses no answer."""
    if isinstance(node, ast.IfExp):  # a pad, a list with one more or without: neither is an answer
        return not (literal(node.body)[0] or literal(node.orelse)[0])
    return isinstance(node, ast.Assert) or all(
        isinstance(step, ast.Raise | ast.Expr | ast.AugAssign) for step in node.body
    )


def by_place(tree: ast.Module) -> bool:
    """Check whether no more than the codes of single letters are reckoned with, as of the name of a square."""
    calls = [node for node in nodes_of(tree) if isinstance(node, ast.Call)]
    names = {_called(node) for node in calls}
    letters = [node for node in calls if _called(node) == "ord"]
    is_single = all(isinstance(argument, ast.Subscript) for node in letters for argument in node.args)
    hashes = words_of_code("hashes") | {"sum", "from_bytes"}
    return bool(letters) and is_single and not names & hashes and len(letters) + len(_read(tree)) > 1


@lru_cache(maxsize=32)
def draws_result(tree: ast.Module) -> bool:
    """Check whether what is returned is picked from a row by chance, or by lengths, codes of letters, a hash or the
    clock cut to its length, whatever names that goes through.
    """
    given: dict[str, list[ast.expr]] = {}
    for node in nodes_of(tree):
        for name, value in _assigned(node):
            given.setdefault(name, []).append(value)
    answers = [node.value for node in nodes_of(tree) if isinstance(node, ast.Return) and node.value is not None]
    return any(_is_pick(part, given) for answer in answers for part in _resolved(answer, given, _STEPS))


_STEPS = 3  # from name to name


def _resolved(value: ast.expr, given: Mapping[str, Sequence[ast.expr]], steps: int) -> Iterator[ast.expr]:
    """Yield an expression, or those that a name was bound to."""
    yield value
    for other in given.get(value.id, ()) if isinstance(value, ast.Name) and steps else ():
        yield from _resolved(other, given, steps - 1)


def _is_pick(value: ast.expr, given: Mapping[str, Sequence[ast.expr]]) -> bool:
    match value:
        case ast.Call() if _called(value) in _PICKING:
            return True
        case ast.Subscript(value=ast.Call() as drawn) if _called(drawn) in _PICKING:
            return True
        case ast.Subscript(slice=index):
            return any(_is_measured(part, given) for part in _resolved(index, given, _STEPS))
        case _:
            return False


def _is_measured(index: ast.expr, given: Mapping[str, Sequence[ast.expr]]) -> bool:
    """Check whether a place is drawn, or the remainder of a number that is measured from letters."""
    inner = [node for node in nodes_of(index) if isinstance(node, ast.Name)]
    reached = [index, *(part for name in inner for part in _resolved(name, given, _STEPS))]
    nodes = [node for part in reached for node in nodes_of(part)]
    cuts = [node.left for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)]
    names = [name for cut in cuts for name in nodes_of(cut) if isinstance(name, ast.Name)]
    measured = [node for cut in cuts for node in nodes_of(cut)]
    measured += [node for name in names for part in _resolved(name, given, _STEPS) for node in nodes_of(part)]
    called = {_called(node) for node in measured if isinstance(node, ast.Call)}
    called |= {node.id for node in measured if isinstance(node, ast.Name) and node.id == "ord"}
    return any(map(_draws, nodes)) or bool(called & (_MEASURES | _CLOCK | words_of_code("hashes")))


_PICKING = frozenset({"choice", "choices", "sample"})


def _read(tree: ast.Module) -> list[ast.Call]:
    """Return the calls that read a number out of a text."""
    return [node for node in nodes_of(tree) if isinstance(node, ast.Call) and _called(node) == "int"]


def picks_words(tree: ast.Module) -> bool:
    """Check whether a number that is reckoned, cut to a range, picks one of the texts in the code."""
    nodes = nodes_of(tree)
    texts = {name for node in nodes for name, value in _assigned(node) if _is_texts(value)}
    cut = {name for node in nodes for name, value in _assigned(node) if _is_reckoned(value)}
    return any(
        (_is_texts(node.value) or (isinstance(node.value, ast.Name) and node.value.id in texts))
        and (
            _is_reckoned(node.slice)
            or any(isinstance(part, ast.Name) and part.id in cut for part in nodes_of(node.slice))
        )
        for node in nodes
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
    )


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
            yield name, ast.BinOp(target, op, value)


def _is_texts(node: ast.expr) -> bool:
    """Check for several texts: a list of them, or one that is split."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return len(parts) > 1 and all(isinstance(literal(part)[1], str) for part in parts)
        case ast.Call(func=ast.Attribute(value=value, attr="split")):
            return isinstance(literal(value)[1], str)
        case _:
            return False


def _is_reckoned(node: ast.expr) -> bool:
    """Check for a number that is cut to a range by its remainder, or by its bits."""
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod | ast.BitAnd | ast.BitXor)
        for part in nodes_of(node)
    )


def by_letters(tree: ast.Module) -> bool:
    """Check whether something is reckoned from the length of a text, or from the codes of its letters."""
    operations = [node for node in nodes_of(tree) if isinstance(node, ast.BinOp)]
    calls = [part for node in operations for part in (node.left, node.right) if isinstance(part, ast.Call)]
    return any(_called(call) in ("len", "ord") for call in calls)


def _is_cut(node: ast.AST) -> bool:
    """Check for a length or the code of a letter, divided for its remainder."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)) or isinstance(
        node.left, ast.Constant | ast.JoinedStr
    ):
        return False
    return any(isinstance(child, ast.Call) and _called(child) in _MEASURES for child in ast.walk(node.left))


_TIDYING = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "capitalize"})
_MEASURES = frozenset({"len", "ord", "from_bytes"})
_CLOCK = frozenset({"toordinal", "time", "time_ns", "timestamp", "monotonic", "perf_counter", "getpid"})


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def by_length_only(node: FunctionNode) -> tuple[str, ...]:
    """Return the parameters of which nothing but the length is read."""
    measured, read = set[str](), set[str]()
    nodes = nodes_of(node)
    inside = {id(name) for child in nodes if (name := _measured(child))}
    tested = {id(part) for child in nodes for part in _tested(child)}
    names = {parameter.arg for parameter in parameters(node)}
    for child in nodes:
        if isinstance(child, ast.Name) and child.id in names and id(child) not in tested:
            (measured if id(child) in inside else read).add(child.id)
    return tuple(sorted(measured - read))


def _tested(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is only compared with another name, or only asked whether it is empty."""
    match node:
        case ast.Compare(left=ast.Name(), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Name()]):
            yield from (node.left, *node.comparators)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.If(test=ast.Name()) | ast.IfExp(test=ast.Name()):
            yield node.test


def has_silence(node: FunctionNode) -> bool:
    """Check whether a function may answer with a constant or an argument in some cases: by a branch, or a default."""
    nodes = nodes_of(node)
    names = {parameter.arg for parameter in parameters(node)}
    answers = [child.value for child in nodes if isinstance(child, ast.Return) and child.value is not None]
    if any(isinstance(child, ast.Call) and _called(child) == "get" and len(child.args) > 1 for child in nodes):
        return True
    if any(isinstance(child, ast.If | ast.Try | ast.IfExp | ast.Match) for child in nodes):
        return any(_is_silent(answer, names) for answer in answers) or len(answers) == 1
    return any(isinstance(child, ast.In | ast.NotIn) for child in nodes)


def _is_silent(answer: ast.expr, names: set[str]) -> bool:
    match answer:
        case ast.IfExp(body=first, orelse=second):
            return _is_silent(first, names) or _is_silent(second, names)
        case ast.Name(id=name):
            return name in names
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return not parts
        case ast.Dict(keys=keys):
            return not keys
        case _:
            return literal(answer)[0]


def keeps_in_vain(tree: ast.Module, node: FunctionNode) -> bool:
    """Check whether a function, or one that it names, changes a container of its module, which is new at every call."""
    containers = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and isinstance(node.value, ast.List | ast.Dict | ast.Set | ast.Call)
    }
    return any(_changes(child, containers) for part in _named_parts(tree, node) for child in nodes_of(part))


def _named_parts(tree: ast.Module, node: FunctionNode) -> list[ast.AST]:
    """Return a function with the functions and classes of its module that it names, and those that these name."""
    defined = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
    parts: list[ast.AST] = [node]
    for part in parts:
        parts += [defined.pop(name) for name in calls_of(part, {*defined})]
    return parts


def _changes(node: ast.AST, containers: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if name in containers:
            return method in _CHANGING
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()) if name in containers:
            return True
        case _:
            return False


_CHANGING = frozenset({"append", "add", "insert", "update", "extend", "setdefault", "appendleft", "pop", "remove"})


def _measured(node: ast.AST) -> ast.Name | None:
    """Return the name of what is measured: `len(text)`, `len(text.strip().lower())`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args):
        return None
    measured = node.args[0]
    while isinstance(measured, ast.Call) and isinstance(measured.func, ast.Attribute):
        if measured.func.attr not in _TIDYING or measured.args:
            return None
        measured = measured.func.value
    return measured if isinstance(measured, ast.Name) else None


def admission(draft: Draft) -> tuple[str, int]:
    """Return what a comment or a text admits, that the work is not done, and its line; nothing if none does."""
    for number, line in enumerate(bare_lines(draft.text), start=1):
        match = _ADMITS.search(line)
        if match:
            return line.strip(), number
    return "", 0


@lru_cache(maxsize=32)
def literals(tree: ast.Module) -> frozenset[str]:
    """Return the texts and numbers that stand in the code, as `repr` writes them."""
    return frozenset(_literals(tree)) - {repr(text) for text in _prose(tree)}


@lru_cache(maxsize=32)
def code_words(tree: ast.Module) -> frozenset[str]:
    """Return the words in the texts of the code, in small letters."""
    return frozenset(
        word.lower() for text in literals(tree) if text[:1] in "\"'" for word in re.findall(r"[^\W\d_]+", text)
    )


def docstring_of(node: FunctionNode | None) -> str:
    """Return the docstring of a function, or nothing."""
    return (ast.get_docstring(node) or "") if node is not None else ""


def _prose(tree: ast.Module) -> Iterator[object]:
    for node in nodes_of(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value.value


def _literals(tree: ast.Module) -> Iterator[str]:
    for node in nodes_of(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            yield repr(node.value)
        elif isinstance(node, ast.UnaryOp | ast.BinOp):
            is_literal, value = literal(node)
            if is_literal:
                yield repr(value)
