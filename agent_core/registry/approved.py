"""The code that runs with a function: what an approval covers, what its hash is of, and all that its worker is served.

The three are one list of top-level statements: those of the function, of what it names, and those that run at import. A
statement that is not in the list does not exist in the worker, so nothing there can find it. Docstrings, comments and
layout are no part of it.

An import whose name something in its module uses is in the list of what uses it. Code of the workspace or of a package
runs with it, so it must not run anywhere else. One that nothing uses may be there for what it does: it always runs.
"""

import ast
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.records import dataclass, replace
from sandbox.wire.lines import bare_lines, lines_of
from sandbox.wire.statements import (
    WHOLE,
    Importing,
    StatementPart,
    is_text,
    with_one_name,
    without_docstrings,
)

from .depends import NOT_PYTHON, Names, Part, Statement, packages_around, statements_of
from .source import (
    FOLDER,
    ModuleSource,
    bound_names,
    callee,
    first_line,
    is_bare_value,
    is_literal,
    written,
)
from .tree import imported_module

_ITS_IMPORT: Final = (
    "."  # a name that nothing binds: selects only what runs at the import of a module
)
_FALLBACK: Final = "__getattr__"  # Python calls it for a name that a module does not bind
_UNREADABLE: Final = -1, WHOLE  # the position of a text that is not Python

Texts: TypeAlias = tuple[tuple[str, str], ...]
"""Modules and their texts, sorted."""


@dataclass(frozen=True, slots=True)
class ApprovedStatement:
    """A top-level statement at a position of its module; an inert one only matters if a name that it binds is used.

    Of a statement that imports several names, it is the import of one.
    """

    at: StatementPart
    text: str
    code: str  # its meaning: the tree without docstrings, as text
    whole: str  # the meaning of the statement as it is written
    binds: Names
    names: Names
    imports: tuple[
        Part, ...
    ]  # from the workspace: module, and name in it or "" for the whole module
    strings: Names
    shows: Names  # the names in its examples
    takes: Names  # those that its examples do not bind before
    calls: bool  # whether it may call functions by name, with `self.call`
    is_inert: bool
    is_loose: bool = False  # an import that is left out of a module wherever its name is not used


@dataclass(frozen=True, slots=True)
class ApprovedParts:
    """The statements that run with a function, by part and in text order.

    `statements` are their positions in each module, `strings` the texts that may be names of functions that they call
    by `self.call`, and `digest` is the hash of all that runs.
    """

    parts: Mapping[Part, tuple[ApprovedStatement, ...]]
    statements: Mapping[str, tuple[StatementPart, ...]]
    strings: Names
    digest: str

    @classmethod
    def of(
        cls, parts: Mapping[Part, Mapping[StatementPart, ApprovedStatement]], modules: Iterable[str]
    ) -> "ApprovedParts":
        """Return the statements of these parts and modules; a module may be there with none."""
        found: dict[str, dict[StatementPart, ApprovedStatement]] = {
            module: {} for module in sorted(modules)
        }
        for (module, _), own in parts.items():
            found[module] |= own
        ordered = {module: [own[at] for at in sorted(own)] for module, own in found.items()}
        every = [each for own in ordered.values() for each in own]
        strings = [each.strings for each in every] if any(each.calls for each in every) else []
        code = json.dumps(
            [(module, [each.code for each in own]) for module, own in ordered.items()]
        )
        return cls(
            {part: tuple(own[at] for at in sorted(own)) for part, own in sorted(parts.items())},
            {
                module: tuple(each.at for each in own if each.at != _UNREADABLE)
                for module, own in ordered.items()
            },
            frozenset().union(*strings),
            hashlib.sha256(code.encode()).hexdigest(),
        )

    @property
    def texts(self) -> Mapping[Part, str]:
        """The text of each part."""
        return {
            part: "\n".join(dict.fromkeys(each.text for each in found))
            for part, found in self.parts.items()
        }


@lru_cache(maxsize=512)
def approved_parts(part: Part, texts: Texts, *, with_examples: bool = False) -> ApprovedParts:
    """Return the statements, in these modules, that run with a function; with its examples, also what they name."""
    around = {package for module, _ in texts for package in packages_around(module)}
    modules = {
        module: ApprovedModule.of(text, module, is_package=module in around)
        for module, text in texts
    }
    parts = dict[Part, dict[StatementPart, ApprovedStatement]]()
    reached, seen = set[str](), set[Part]()
    waiting: list[Part] = [part, *((package, _ITS_IMPORT) for package in packages_around(part[0]))]
    if with_examples and part[0] in modules:
        waiting += [
            (part[0], shown)
            for each in modules[part[0]].binding.get(part[1], ())
            for shown in each.takes
        ]
    while waiting:
        target = module, name = waiting.pop()
        if target in seen or module not in modules:
            continue
        seen.add(target)
        reached.add(module)
        for statement in modules[module].needed(name):
            own = parts.setdefault((module, min(statement.binds) if statement.is_inert else ""), {})
            if statement.at in own:
                continue
            own[statement.at] = statement
            waiting += [(module, used) for used in statement.names]
            for base, imported in statement.imports:
                waiting += _targets(base, imported, modules)
    return ApprovedParts.of(parts, reached)


def _targets(base: str, imported: str, modules: Mapping[str, "ApprovedModule"]) -> Iterator[Part]:
    """Yield the parts that an import may mean: a name in a module, a module in a package, or what a module makes up."""
    inner = f"{base}.{imported}".strip(".")
    for module, name in ((base, imported), (inner, "")):
        yield from ((package, _ITS_IMPORT) for package in packages_around(module))
        yield module, name
    if base in modules and imported not in modules[base].binding and inner not in modules:
        yield base, _FALLBACK


@dataclass(frozen=True, slots=True)
class ApprovedModule:
    """The statements of one module: those that bind each name, and those that always run."""

    statements: tuple[ApprovedStatement, ...]
    binding: Mapping[str, Sequence[ApprovedStatement]]
    running: tuple[ApprovedStatement, ...]
    is_reducible: bool  # whether it has imports that only some of it needs
    imports: frozenset[tuple[str, str]]  # of all statements

    @classmethod
    @lru_cache(maxsize=512)
    def of(cls, text: str, module: str, *, is_package: bool = False) -> "ApprovedModule":
        """Read a module."""
        statements = tuple(_approved_statements(text, module, is_package=is_package))
        binding = dict[str, list[ApprovedStatement]]()
        for statement in statements:
            for name in statement.binds:
                binding.setdefault(name, []).append(statement)
        running = tuple(each for each in statements if not each.is_inert)
        imports = frozenset(one for each in statements for one in each.imports)
        return cls(statements, binding, running, any(each.is_loose for each in statements), imports)

    def needed(self, name: str) -> Iterator[ApprovedStatement]:
        """Yield the statements that run if a name is used, or the whole module for an empty name."""
        yield from (*self.running, *self.binding.get(name, ())) if name else self.statements


def _approved_statements(
    text: str, module: str, *, is_package: bool
) -> Iterator[ApprovedStatement]:
    """Yield the statements of a module; if it is not valid Python, its whole text as one, which is never served."""
    lines = bare_lines(text)
    try:
        found = statements_of(text)
    except NOT_PYTHON:
        none = frozenset[str]()
        yield ApprovedStatement(
            _UNREADABLE,
            text,
            text,
            text,
            none,
            none,
            (),
            none,
            none,
            none,
            calls=False,
            is_inert=False,
        )
        return
    known = _known_names([(node, facts) for node, facts, _ in found])
    used = _used_names([(node, facts) for node, facts, _ in found])
    home = f"{FOLDER}.{module}"
    for at, (node, facts, own) in enumerate(found):
        if is_text(node):
            continue
        code, strings = _meaning_of(own) if own else _meaning(node)
        binds = frozenset({"__doc__"}) if is_bare_value(node) else facts.binds
        imports = tuple(_imports(facts, home, is_package=is_package))
        whole = ApprovedStatement(
            (at, WHOLE),
            "\n".join(lines[first_line(node) - 1 : node.end_lineno])
            if own
            else written(node, lines),
            code,
            code,
            binds,
            facts.names | facts.reads,
            (*imports, *_chains(node)),
            strings,
            facts.shows,
            facts.takes,
            calls="call" in facts.words | strings,
            is_inert=bool(binds) and _is_inert(node, known),
        )
        if not isinstance(node, Importing) or not _is_loose(node):
            yield whole
        elif len(node.names) == 1:
            is_used = binds <= used
            yield replace(whole, is_inert=is_used, is_loose=is_used)
        else:
            yield from _one_by_one(whole, node, used, home, is_package=is_package)


def _one_by_one(
    statement: ApprovedStatement, node: Importing, used: Names, home: str, *, is_package: bool
) -> Iterator[ApprovedStatement]:
    """Yield the imports of a statement's names, each as a statement of its own."""
    for number in range(len(node.names)):
        one = with_one_name(node, number)
        text, facts = ast.unparse(one), Statement.of(one)
        is_used = facts.binds <= used
        yield replace(
            statement,
            at=(statement.at[0], number),
            text=text,
            code=_meaning(one)[0],
            binds=facts.binds,
            imports=tuple(_imports(facts, home, is_package=is_package)),
            is_inert=is_used,
            is_loose=is_used,
        )


def _used_names(pairs: Iterable[tuple[ast.stmt, Statement]]) -> Names:
    """Return the names that anything in a module uses, without its imports: its code, its examples and `__all__`."""
    used = set[str]()
    for node, facts in pairs:
        if not isinstance(node, Importing):
            used |= facts.names | facts.reads | facts.shows
        if "__all__" in facts.binds:
            used |= {
                each.value
                for each in ast.walk(node)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
    return frozenset(used)


def _is_loose(node: Importing) -> bool:
    """Check whether an import of the workspace or of a package binds names that its module can do without."""
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level
    return not (is_future or _is_standard(node) or any(alias.name == "*" for alias in node.names))


def _imports(statement: Statement, home: str, *, is_package: bool) -> Iterator[Part]:
    for level, base, name in statement.imports:
        module = base if level <= 0 else imported_module(base, level, home, is_package=is_package)
        if module.startswith(f"{FOLDER}.") or (module == FOLDER and name):
            yield module.removeprefix(FOLDER).lstrip("."), "" if name == "*" else name


def _chains(node: ast.stmt) -> Iterator[Part]:
    """Yield what a statement reads as an attribute of the workspace: `functions.notes.clean`."""
    attributes = [inner for inner in ast.walk(node) if isinstance(inner, ast.Attribute)]
    within = {id(attribute.value) for attribute in attributes}
    for outermost in (attribute for attribute in attributes if id(attribute) not in within):
        names = list[str]()
        inner: ast.expr = outermost
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id == FOLDER:
            path = [*reversed(names), ""]
            yield from ((".".join(path[:size]), path[size]) for size in range(1, len(path)))


@lru_cache(maxsize=4096)
def _meaning_of(own: str) -> tuple[str, Names]:
    return _meaning(syntax.parse(own).body[0])


def _meaning(statement: ast.stmt) -> tuple[str, Names]:
    """Return the tree of a statement without docstrings and places, as text, and its strings.

    Each class of node has a fixed number of fields, and each list says its length, so no two trees have the same text.
    """
    pieces, strings = list[str](), set[str]()
    waiting: list[object] = [statement]
    while waiting:
        match waiting.pop():
            case ast.AST() as node:
                pieces.append(type(node).__name__)
                waiting += reversed([getattr(node, name, None) for name in node._fields])
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    strings.add(node.value)
            case list() as items:
                items = without_docstrings(items)
                pieces.append(f"[{len(items)}]")
                waiting += reversed(items)
            case int() as value if not isinstance(value, bool):
                pieces.append(hex(value))  # `repr` refuses large ones
            case value:
                pieces.append(repr(value))
    return " ".join(pieces), frozenset(strings)


def without_unused_imports(text: str, module: ApprovedModule, needed: Set[StatementPart]) -> str:
    """Return a module's text without the loose imports that are not among these, with all else on its lines.

    What uses a name of theirs goes with them: an annotation would miss it when the module is imported.
    """
    spare = [each for each in module.statements if each.is_inert and each.at not in needed]
    gone, names, size = {each.at for each in spare if each.is_loose}, set[str](), -1
    while size < len(gone):
        size = len(gone)
        names = {name for each in spare if each.at in gone for name in each.binds}
        gone |= {each.at for each in spare if each.names & names}
    return _without(text, tuple(sorted(gone))) if gone else text


def without_stale_imports(
    before: str, after: str, module: str, others: Iterable[ModuleSource]
) -> str:
    """Return a module's text after an edit without the loose imports of before that only the old text used.

    They ran for nothing else, and would now run for all. What `others` take from the module stays.
    """
    was = {each.code for each in ApprovedModule.of(before, module).statements if each.is_loose}
    now = ApprovedModule.of(after, module).statements
    stale = [each for each in now if each.code in was and not each.is_inert]
    names = frozenset().union(*(each.binds for each in stale))
    near = (
        source
        for source in others
        if source.module != module and any(name in source.text for name in names)
    )
    reads = [
        each for source in near for each in ApprovedModule.of(source.text, source.module).statements
    ]
    passed_on = {name for each in reads for base, name in each.imports if base == module}
    gone = {each.at for each in stale if "" not in passed_on and not each.binds & passed_on}
    return _without(after, tuple(sorted(gone)), is_shorter=True) if gone else after


@lru_cache(maxsize=256)
def _without(text: str, gone: tuple[StatementPart, ...], *, is_shorter: bool = False) -> str:
    """Return a text without these parts of its statements, in as many lines as before unless it `is_shorter`."""
    lines = [line.encode("utf-8", "surrogatepass") for line in lines_of(text)]
    nodes = statements_of(text)
    for at in sorted(
        {at for at, _ in gone}, reverse=True
    ):  # from the end, so that all columns above still count
        node, left = nodes[at][0], "pass"
        numbers = {number for place, number in gone if place == at}
        if isinstance(node, Importing) and WHOLE not in numbers and len(numbers) < len(node.names):
            kept = [
                with_one_name(node, number)
                for number in range(len(node.names))
                if number not in numbers
            ]
            left = "; ".join(map(ast.unparse, kept))
        first, last = first_line(node) - 1, (node.end_lineno or node.lineno) - 1
        before = lines[first][: node.col_offset] if first == node.lineno - 1 else b""
        after, end = lines[last][node.end_col_offset :], b"\\\n" if before else b"\n"
        more = b"" if is_shorter else end * (last - first)
        is_alone = is_shorter and not (before or after.strip()) and left == "pass"
        lines[first : last + 1] = [] if is_alone else [before + more + left.encode() + after]
    return b"".join(lines).decode("utf-8", "surrogatepass")


# Statements that only bind names: they run no code of the workspace. Anything unknown counts as running code.

_Decorated: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Calls that run no code of the workspace if their arguments are values.
_VALUES: Final = frozenset(
    {
        "re.compile",
        "frozenset",
        "set",
        "dict",
        "list",
        "tuple",
        "decimal.Decimal",
        "fractions.Fraction",
    }
    | {"datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "pathlib.Path"}
)
_DECORATORS: Final = frozenset(
    {"functools.cache", "functools.lru_cache", "contextlib.contextmanager", "dataclasses.dataclass"}
    | {"staticmethod", "classmethod", "property"}
)
_BASES: Final = frozenset(
    {"object", "typing.NamedTuple", "typing.TypedDict", "enum.Enum", "enum.IntEnum", "enum.StrEnum"}
    | {
        "Exception",
        "ValueError",
        "RuntimeError",
        "LookupError",
        "KeyError",
        "html.parser.HTMLParser",
    }
)
# Methods that run when an instance is created or used, but not when its class is defined or named.
_METHODS: Final = frozenset(
    {
        "__init__",
        "__post_init__",
        "__enter__",
        "__exit__",
        "__iter__",
        "__next__",
        "__len__",
        "__repr__",
        "__str__",
    }
    | {"__eq__", "__hash__", "__call__", "__contains__", "__getitem__"}
)
_HINTS: Final = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.BinOp,
    ast.BitOr,
)


def _known_names(pairs: Sequence[tuple[ast.stmt, Statement]]) -> Mapping[str, str]:
    """Return the meanings of the names that a module binds.

    A name that is only bound by one standard library import has its origin; any other has an empty text.
    """
    times = Counter(name for _, facts in pairs for name in facts.binds)
    imported = dict[str, str]()
    for node, _ in pairs:
        match node:
            case ast.Import(names=names) if _is_standard(node):
                imported |= {
                    one.asname or one.name: one.name
                    for one in names
                    if one.asname or "." not in one.name
                }
            case ast.ImportFrom(module=module, names=names) if _is_standard(node):
                imported |= {one.asname or one.name: f"{module}.{one.name}" for one in names}
    return {name: imported.get(name, "") if count == 1 else "" for name, count in times.items()}


def _is_inert(node: ast.stmt, known: Mapping[str, str]) -> bool:
    """Check whether a statement only binds names."""
    match node:
        case (
            ast.FunctionDef(args=args, returns=returns)
            | ast.AsyncFunctionDef(args=args, returns=returns)
        ):
            every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            hints = [*(argument.annotation for argument in every if argument is not None), returns]
            values = [*args.defaults, *args.kw_defaults]
            return _are_plain(hints, values, known) and _is_plainly_decorated(node, known)
        case ast.ClassDef(bases=bases, body=body, keywords=[]):
            origins = {_origin(base, known) for base in bases}
            names = {name for inner in body for name in bound_names(inner)}
            # Defining an enumeration runs its methods.
            hooks = {
                name
                for name in names - {"__slots__"}
                if name.startswith("_") and name.endswith("_")
            }
            within = {**known, **dict.fromkeys(names, "")}
            return (
                _BASES.issuperset(origins)
                and not (hooks if bases else hooks - _METHODS)
                and _is_plainly_decorated(node, known)
                and all(_is_inert(inner, within) for inner in body)
            )
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name) for target in targets) and _is_value(
                value, known
            )
        case ast.AnnAssign(target=ast.Name(), value=value, annotation=hint):
            return _are_plain([hint], [value], known)
        case ast.Import() | ast.ImportFrom():
            return _is_standard(node) and all(alias.name != "*" for alias in node.names)
        case _:
            return isinstance(node, ast.Pass) or is_bare_value(node)


def _is_standard(node: ast.Import | ast.ImportFrom) -> bool:
    """Check whether an import is from the standard library; `__future__` does not count: it affects later code."""
    names = syntax.imported_names(node)
    is_listed = all(name.partition(".")[0] in sys.stdlib_module_names for name in names)
    return is_listed and not getattr(node, "level", 0) and names != ["__future__"]


def _is_plainly_decorated(node: _Decorated, known: Mapping[str, str]) -> bool:
    calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    values = [
        argument
        for call in calls
        for argument in (*call.args, *(word.value for word in call.keywords))
    ]
    heads = (_origin(callee(each), known) for each in node.decorator_list)
    return _DECORATORS.issuperset(heads) and all(map(is_literal, values))


def _are_plain(
    hints: Iterable[ast.expr | None], values: Iterable[ast.expr | None], known: Mapping[str, str]
) -> bool:
    inner = [child for hint in hints if hint is not None for child in ast.walk(hint)]
    is_plain = all(isinstance(child, (*_HINTS, ast.expr_context)) for child in inner)
    return is_plain and all(value is None or _is_value(value, known) for value in values)


def _origin(node: ast.expr, known: Mapping[str, str]) -> str:
    """Return the origin of a dotted name: the standard library, or a builtin that is not rebound; otherwise ""."""
    match node:
        case ast.Name(id=name):
            return known.get(name, "" if "*" in known else name)
        case ast.Attribute(value=value, attr=attribute) if origin := _origin(value, known):
            return f"{origin}.{attribute}"
        case _:
            return ""


def _is_value(node: ast.expr, known: Mapping[str, str]) -> bool:
    """Check whether an expression runs no code of the workspace: a literal, or calls that make values of literals."""
    match node:
        case ast.Call(func=function, args=arguments, keywords=keywords):
            inner = [*arguments, *(word.value for word in keywords)]
            return _origin(function, known) in _VALUES and all(
                _is_value(each, known) for each in inner
            )
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(_is_value(part, known) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_value(key, known) for key in keys) and _are_plain(
                [], values, known
            )
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_value(left, known) and _is_value(right, known)
        case ast.Attribute(value=ast.Name(id=name)):
            return known.get(name) == "re"
        case _:
            return is_literal(node)
