"""The code that runs with a function, as the gate reads it: its uses of `self`, and whether it shows all it reaches.

If each function of a file calls the one above, all that are above run with it. Reading them again for each would take
the square, so each function is read once, by itself (`Traits`). What runs with a function is then read without those
that have nothing to show, and with one alone of those that show the same.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Final

from agent_core.access.grants.value import UNSAID
from agent_core.base.records import dataclass, replace
from agent_core.base.syntax import tree_room
from agent_core.registry.depends import SpareFunctions, mentions_in, running_with, statements_at
from agent_core.registry.source import first_line, is_literal
from agent_core.registry.tree import survey
from sandbox.wire.lines import kept_lines

from .tree import (
    FunctionNode,
    bound_names,
    context_nodes,
    function_in,
    given_self,
    is_given_self,
    is_self,
    missing_names,
    nodes_of,
    parse,
)
from .uses import CONTEXT, Shown, is_in, local_names, shown_by, uses

EFFECTS = frozenset({"ask", "call", "confirm", "fetch", "secret", "memory", "now"})
_HARMLESS = frozenset(
    {"ask", "confirm", "progress", "scratch", "state", "now", "call", "call_key", *CONTEXT}
)  # attributes of `self`; the last ones are reported as uses
_PLAIN_DUNDERS = frozenset(
    {"__name__", "__qualname__", "__doc__", "__class__", "__init__", "__post_init__", "__len__"}
)
_COMPUTING = """__future__ abc array ast base64 binascii bisect calendar cmath collections colorsys copy csv dataclasses
datetime decimal difflib enum fractions functools graphlib hashlib heapq hmac html io.BytesIO io.StringIO itertools json
keyword math numbers operator random re secrets statistics string struct textwrap time typing unicodedata urllib.parse
uuid.UUID uuid.uuid3 uuid.uuid4 uuid.uuid5 zlib zoneinfo"""
_OTHER_WAYS = """open eval exec compile input breakpoint globals locals vars getattr __import__ __builtins__ attrgetter
methodcaller get_type_hints Formatter singledispatch singledispatchmethod gi_frame cr_frame ag_frame tb_frame f_back
f_globals f_builtins f_locals"""
COMPUTING: Final = frozenset(_COMPUTING.split())
"""Modules, and names in modules, that open, start and evaluate nothing, except through one of the `OTHER_WAYS`."""
OTHER_WAYS: Final = frozenset(_OTHER_WAYS.split())
"""Names by which code can access more than its imports show."""
_CHANCE = frozenset(
    (
        "uuid4",
        "uuid1",
        "now",
        "today",
        "utcnow",
        "urandom",
        "monotonic",
        "perf_counter",
        "time_ns",
        "getrandbits",
    )
)
_CLOCK = frozenset(("time", "localtime", "gmtime", "ctime", "asctime"))
_GENERATORS = frozenset(("random", "secrets"))
_FEW: Final = 16
"""Functions of a module: with fewer, reading all that run with each takes no time."""
_ADDRESS: Final = "http"


@tree_room.kept(64)
def uses_context(tree: ast.AST) -> frozenset[str]:
    """Return the attributes of `self` that a function uses: `call`, `progress`, `scratch`, …"""
    if isinstance(
        tree, ast.Module
    ):  # each statement is read once, however many functions it runs with
        return frozenset[str]().union(*map(_uses_of_statement, tree.body))
    return _uses_of_statement(tree)


@tree_room.kept(4096)
def _uses_of_statement(tree: ast.AST) -> frozenset[str]:
    attributes = [node for node in context_nodes(tree) if isinstance(node, ast.Attribute)]
    return frozenset(
        node.attr
        for node in attributes
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    )


def called_by_self(tree: ast.Module) -> set[str]:
    """Return the functions that are called by `self.call`; UNSAID represents one that the text does not name."""
    return set[str]().union(*map(_called_by_statement, tree.body))


@tree_room.kept(4096)  # a statement is read once, however many functions it runs with
def _called_by_statement(statement: ast.stmt) -> frozenset[str]:
    called = set[str]()
    for node in nodes_of(statement):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="call", value=ast.Name(id="self")), args=arguments
            ):
                name = getattr(arguments[0], "value", None) if arguments else None
                called.add(name if isinstance(name, str) else UNSAID)
    return frozenset(called)


def is_plain(tree: ast.Module, handed: frozenset[int] = frozenset()) -> bool:
    """Check whether a text shows everything that it accesses: it only imports computing modules, and passes none on.

    The nodes in `handed`, by ID, may pass the context on: the functions that get it are read as well.
    """
    nodes = nodes_of(tree)
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    whole = [alias for node in imports if isinstance(node, ast.Import) for alias in node.names]
    modules = {alias.asname or alias.name.partition(".")[0] for alias in whole}
    scope = survey(ast.Module([*imports], []))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    looked_into = {id(node.value) for node in attributes}
    origins = {
        *map(scope.origin, attributes),
        *(scope.imports[name] for name in scope.imports.keys() - modules),
    }
    stars = [
        node for node in imports if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    origins |= {f"{node.module}.*" for node in stars}
    imports_builtins = any(
        is_in(origin, frozenset({"builtins"})) for origin in scope.imports.values()
    )
    own = [
        origin
        for origin in origins
        if origin and (imports_builtins or not origin.startswith("builtins."))
    ]
    # Modules also expose their own imports, as in `json.codecs.open`.
    parts = {part for origin in own for part in origin.split(".")[1:]}
    doors = {
        part
        for part in parts
        if part in OTHER_WAYS or part.lstrip("_") in sys.stdlib_module_names - COMPUTING
    }
    read = [node for node in nodes if isinstance(node, ast.Name)]
    # `self` gives access to the host: only its known attributes are used, and it is not passed on.
    in_context = context_nodes(tree)
    known = {
        id(node.value)
        for node in in_context
        if isinstance(node, ast.Attribute) and node.attr in _HARMLESS
    }
    known |= handed
    return (
        all(id(node) in known for node in in_context if is_self(node))
        and not doors
        and all(is_in(origin, COMPUTING) for origin in own)
        and not any(
            node.attr in OTHER_WAYS
            or (node.attr.startswith("__") and node.attr not in _PLAIN_DUNDERS)
            for node in attributes
        )
        and not any(
            node.id in OTHER_WAYS or (node.id in modules and id(node) not in looked_into)
            for node in read
        )
    )


def is_by_chance(tree: ast.Module) -> bool:
    """Check whether code calls something that differs each time, such as random numbers or the clock."""
    drawn = set(_CHANCE)
    called = set[str]()
    for statement in tree.body:
        imported, names, is_certain = _chance_in(statement)
        if is_certain:
            return True
        drawn |= imported
        called |= names
    return not drawn.isdisjoint(called)


@tree_room.kept(4096)
def _chance_in(statement: ast.stmt) -> tuple[frozenset[str], frozenset[str], bool]:
    """Return the random generators that a statement imports, the names that it calls, and whether one is by chance."""
    nodes = nodes_of(statement)
    imports = [
        node for node in nodes if isinstance(node, ast.ImportFrom) and node.module in _GENERATORS
    ]
    called = set[str]()
    is_certain = False
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in _GENERATORS:
                is_certain = True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr=name), args=[]) if (
                name in _CLOCK
            ):
                is_certain = True
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                called.add(name)
    drawn = frozenset(alias.asname or alias.name for node in imports for alias in node.names)
    return drawn, frozenset(called), is_certain


@lru_cache(maxsize=64)
def quiet_functions(text: str) -> frozenset[str]:
    """Return the functions of a module that reach nothing by themselves, so nobody needs to read them again for others.

    Each shows it by its own text: it does nothing with its `self` but hand it to other functions of its module, which
    are read for themselves; it shares nothing, and all that it reads of its module are other functions, imports that
    only compute, and literals.
    """
    tree = parse(text)
    if not isinstance(tree, ast.Module):
        return frozenset()
    functions = [node for node in tree.body if isinstance(node, FunctionNode)]
    imports = dict[str, ast.stmt]()
    others = {
        name for node in nodes_of(tree) if isinstance(node, ast.Global) for name in node.names
    }
    for node in tree.body:
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                bound = {alias.asname or alias.name.partition(".")[0] for alias in names}
                others |= bound & imports.keys()
                imports |= dict.fromkeys(bound, node)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if is_literal(
                value
            ):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case _:
                others |= bound_names(ast.Module([node], []))
    others |= {
        name
        for name, count in Counter(node.name for node in functions).items()
        if count > 1 or name in imports
    }
    if "*" in imports:
        return frozenset()
    known = frozenset(node.name for node in functions) - others
    return frozenset(node.name for node in functions if _is_quiet(node, imports, others, known))


def _is_quiet(
    node: FunctionNode, imports: Mapping[str, ast.stmt], others: Set[str], known: Set[str]
) -> bool:
    nodes = nodes_of(node)
    names = {each.id for each in nodes if isinstance(each, ast.Name)}
    shares = any(isinstance(each, ast.Global) for each in nodes)
    if names & others or node.name in others or shares:
        return False
    handed = _handed_selves(node, known)
    if any(is_self(each) and id(each) not in handed for each in nodes):
        return False
    alone = ast.Module(
        [*dict.fromkeys(imports[name] for name in names if name in imports), node], []
    )
    return is_plain(alone, handed) and not uses(alone, ())


def _handed_selves(node: FunctionNode, known: Set[str]) -> frozenset[int]:
    """Return the nodes, by ID, by which a function hands its `self` to one of these functions, by its plain name."""
    names = known - local_names(node)
    handed = set[int]()
    for call in nodes_of(node):
        if (
            isinstance(call, ast.Call)
            and is_given_self(call)
            and getattr(call.func, "id", "") in names
        ):
            handed.add(id(call.args[0]))
    return frozenset(handed)


@dataclass(frozen=True, slots=True)
class Traits:
    """All that the text of a function shows, with the imports and values of its module that it uses.

    Whether something else differs does not matter to anybody who asks what a function reaches.
    """

    shown: Shown
    imports: frozenset[str]
    missing: frozenset[str]
    context: frozenset[str]
    called: frozenset[str]
    given: frozenset[str]
    """The functions that get its `self`."""
    drawn: frozenset[str]
    """The random generators that it imports, and the names that it calls."""
    draws: bool
    is_plain: bool

    @classmethod
    def of(cls, text: str, name: str) -> "Traits | None":
        """Return what a function shows by a text that has it, and what it uses of its module but functions."""
        tree = parse(text)
        node = function_in(text, name)
        if not isinstance(tree, ast.Module) or node is None:
            return None
        imported, called, draws = _chance_in(node)
        imports = (each for each in nodes_of(node) if isinstance(each, ast.Import | ast.ImportFrom))
        return cls(
            shown=shown_by(tree),
            imports=frozenset(map(ast.unparse, imports)),
            missing=frozenset(missing_names(text, tree)),
            context=uses_context(tree),
            called=frozenset(called_by_self(tree)),
            given=frozenset(given_self(tree)),
            drawn=imported | called,
            draws=draws,
            is_plain=is_plain(tree),
        )


_traits = lru_cache(maxsize=4096)(Traits.of)  # of a file that is saved again, most are the same


@lru_cache(maxsize=64)
def spare_functions(text: str) -> SpareFunctions:
    """Return the functions of a module that need not be read with each that runs them."""
    tree = parse(text)
    functions = (
        [node for node in tree.body if isinstance(node, FunctionNode)]
        if isinstance(tree, ast.Module)
        else []
    )
    if not isinstance(tree, ast.Module) or len(functions) < _FEW:
        return SpareFunctions()
    names = frozenset(node.name for node in functions)
    generators = _CHANCE.union(*(_chance_in(node)[0] for node in tree.body))
    quiet = frozenset[str]() if _ADDRESS in text else quiet_functions(text)
    silent = set[str]()
    others = list[str]()
    for node in _running_with_others(tree, functions):
        imported, called, draws = _chance_in(node)
        is_certain = not (imported or draws or called & generators)
        if node.name in quiet and is_certain and not any(map(is_self, nodes_of(node))):
            silent.add(node.name)
        else:
            others.append(node.name)
    alike = dict[Traits, set[str]]()
    bound = bound_names(tree)
    for name in others:
        alone = text_running(text, name, SpareFunctions(silent=names), keeps_own=True)
        if alone is None or (traits := _traits(alone, name)) is None:
            continue
        # What it finds in its module is read there.
        traits = replace(
            traits,
            missing=traits.missing - bound,
            given=traits.given - names,
            drawn=traits.drawn & generators,
        )
        alike.setdefault(traits, set()).add(name)
    groups = (frozenset(each) for each in alike.values() if len(each) > 1)
    return SpareFunctions(frozenset(silent), tuple(groups))


def _running_with_others(
    tree: ast.Module, functions: Sequence[FunctionNode]
) -> Iterator[FunctionNode]:
    """Yield the functions of a module that others name, if nothing else binds their names."""
    used = set[str]()
    shared = set[str]()
    for node in functions:
        names = {each.id for each in nodes_of(node) if isinstance(each, ast.Name)}
        used |= names - {node.name}
        shared |= {
            name for each in nodes_of(node) if isinstance(each, ast.Global) for name in each.names
        }
    rest = [node for node in tree.body if not isinstance(node, FunctionNode)]
    shared |= bound_names(ast.Module(rest, []))
    times = Counter(node.name for node in functions)
    for node in functions:
        shares = any(isinstance(each, ast.Global) for each in nodes_of(node))
        if node.name in used - shared and times[node.name] == 1 and not shares:
            yield node


def text_reaching(module_text: str, name: str) -> str | None:
    """Return the text of what runs with a function, without what shows nothing more; None if it cannot be parsed.

    Nearly all functions of a chain have the same, so what is found in it is kept by this text.
    """
    return text_running(module_text, name, spare_functions(module_text))


def text_led_to(module_text: str, name: str) -> tuple[str | None, frozenset[str]]:
    """Return the text of what a function leads to in its module, as `text_reaching` does, and the other words there."""
    if not isinstance(parse(module_text), ast.Module):
        return None, frozenset()
    bits, words = mentions_in(module_text).get(name, (0, frozenset[str]()))
    statements = statements_at(module_text, bits, spare_functions(module_text))
    return _text_of(statements, module_text), words


@lru_cache(maxsize=2048)
def text_running(
    module_text: str, name: str, spare: SpareFunctions, *, keeps_own: bool = False
) -> str | None:
    """Return the text of what runs with a function but those to spare; None if it cannot be parsed."""
    if not isinstance(parse(module_text), ast.Module):
        return None
    try:
        statements = running_with(module_text, name, spare, keeps_own=keeps_own)
    except RecursionError:  # nested too deeply to be parsed
        return None
    return _text_of(statements, module_text)


def _text_of(statements: Iterable[ast.stmt], module_text: str) -> str:
    lines = kept_lines(module_text)
    # Statements that share a line count once.
    spans = dict.fromkeys(
        (first_line(statement) - 1, statement.end_lineno) for statement in statements
    )
    return "".join("".join(lines[start:end]).rstrip("\n") + "\n" for start, end in spans)
