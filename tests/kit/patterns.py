"""Every regular expression of the program, and how the time of one grows with the text that it works on.

`collect` reads the syntax trees: the pattern of each call of `re` is evaluated in its module, or the collection fails.
`attack` measures one: the texts come from its own parse tree, so that each repeat gets what it repeats on.
"""

import ast
import copy
import importlib
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]  # the parse tree has no public door
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("agent_core", "knapper", "knapper_ext", "meta_functions", "sandbox", "functions")

METHODS: Final = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
USES: Final = ("compile", *METHODS)
_UNKNOWN_USE: Final = ("search", "match", "fullmatch", "finditer")
_NAMES_RE: Final = re.compile(r"\b(?:re|regex|fnmatch)\b")
_NAME: Final = "name_1"
"""Stands for a text that the program escapes into a pattern: what it looks for."""

Compiled: TypeAlias = re.Pattern[str] | re.Pattern[bytes]


@dataclass(frozen=True)
class Expression:
    """One regular expression at one place, with the methods that the program uses it with."""

    module: str
    line: int
    name: str
    pattern: Compiled
    methods: Sequence[str]


class Unresolved(AssertionError):
    """A pattern that the collection would miss."""


Pattern: TypeAlias = str | bytes | Compiled
Assembled: TypeAlias = Mapping[str, Sequence[Callable[[], Iterable[Pattern]]]]
"""By module and function: the patterns of each call whose pattern only the running program knows, in order."""


def modules() -> list[Path]:
    """Return the modules of the program that name `re`; whether one uses it is seen when it is collected."""
    return [file for file, text in _texts().items() if _NAMES_RE.search(text)]


def module_name(file: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def collect(
    file: Path, assembled: Assembled, held: Mapping[str, Sequence[str]], source: str = ""
) -> list[Expression]:
    """Return every expression of a module.

    `held` has the methods of those that are parts of a value, by its name. `source` is the module's text, if it is not
    that of the file.

    Raises:
        Unresolved: the text does not say a pattern, and `assembled` does not, either.
    """
    tree = ast.parse(source or file.read_text())
    _uses_re(tree)
    module = module_name(file)
    here = _names_used(tree)
    targets, functions = _targets(tree), _functions(tree)
    found = []
    rows = {key: [*row] for key, row in assembled.items() if key.rpartition(".")[0] == module}
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_of_re(node.func, USES)
    ]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        assert isinstance(call.func, ast.Attribute)
        target = targets.get(call, "")
        methods: Sequence[str] = (call.func.attr,)
        if call.func.attr == "compile":
            methods = held.get(f"{module}.{target}") or _methods(target, file, here)
        function = functions.get(call)
        patterns: list[Pattern]
        try:
            patterns = [_evaluated(call.args[0], module, _variables(function))]
        except NameError as error:
            key = f"{module}.{getattr(function, 'name', '')}"
            if not rows.get(key):
                place = f"{file}:{call.lineno}: `{ast.unparse(call.args[0])}`"
                raise Unresolved(
                    f"{place} is assembled ({error}): add what it can be under {key!r}"
                ) from error
            patterns = [*rows[key].pop(0)()]
        flags = _flags(call, module)
        for pattern in patterns:
            compile_ = importlib.import_module(ast.unparse(call.func.value)).compile
            compiled = pattern if isinstance(pattern, re.Pattern) else compile_(pattern, flags)
            found.append(
                Expression(module, call.lineno, target or str(compiled.pattern), compiled, methods)
            )
    if any(rows.values()):
        raise Unresolved(f"{[*rows]} has more patterns than there are: remove them")
    read = {call.func for call in calls}
    modules = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        is_passed_on = (
            isinstance(node, ast.Attribute) and node not in read and _is_of_re(node, USES)
        )
        if is_passed_on or (isinstance(node, ast.Name) and node.id == "re" and node not in modules):
            raise Unresolved(f"{file}:{node.lineno}: use `re` where its pattern can be read")  # type: ignore[attr-defined]
    return found


@cache
def _texts() -> Mapping[Path, str]:
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    return {file: file.read_text() for file in files}


def _uses_re(tree: ast.Module) -> bool:
    is_used = False
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=[ast.alias(name="re" | "regex", asname=None)]):
                is_used = True
            case ast.ImportFrom(module="fnmatch", names=[ast.alias(name="translate")]):
                pass  # its pattern is compiled by `re`
            case ast.ImportFrom(module="re" | "regex" | "fnmatch"):
                raise Unresolved(f"`{ast.unparse(node)}` hides patterns: write `import re`")
            case ast.Import(names=names) if any(
                alias.name in ("re", "regex", "fnmatch") for alias in names
            ):
                raise Unresolved(f"`{ast.unparse(node)}` hides patterns: write `import re`")
    return is_used


def _is_of_re(node: ast.expr, names: Sequence[str]) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in names
        and ast.unparse(node.value) in ("re", "regex")
    )


class _Known(ast.NodeTransformer):
    """Replaces what a pattern escapes by names, and a local variable by what was assigned to it."""

    def __init__(self, variables: Mapping[str, ast.expr]) -> None:
        self._variables = variables

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if ast.unparse(node.func) == "re.escape":
            return ast.Constant(_NAME)
        if ast.unparse(node).startswith("map(re.escape, "):
            return ast.Constant((_NAME, f"{_NAME}2"))  # type: ignore[arg-type]  # any constant will do
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._variables.get(node.id, node)


def _evaluated(node: ast.expr, module: str, variables: Mapping[str, ast.expr]) -> Any:
    """Return the value of an expression of a module; raise NameError if only the running program knows it."""
    for _ in range(3):  # a variable may be assembled from others
        node = _Known(variables).visit(copy.deepcopy(node))
    tree = ast.fix_missing_locations(ast.Expression(node))
    return eval(compile(tree, module, "eval"), {**vars(importlib.import_module(module))})


def _flags(call: ast.Call, module: str) -> int:
    assert isinstance(call.func, ast.Attribute)
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)
    given = [keyword.value for keyword in call.keywords if keyword.arg == "flags"] or call.args[
        place : place + 1
    ]
    try:
        return int(_evaluated(given[0], module, {})) if given else 0
    except NameError:
        return re.MULTILINE  # more places where a line can begin


def _functions(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Return the innermost function of each node that is in one."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node: function
        for function in ast.walk(tree)
        if isinstance(function, kinds)
        for node in ast.walk(function)
    }


def _variables(function: ast.AST | None) -> dict[str, ast.expr]:
    """Return what is assigned to each variable of a function."""
    own: dict[str, ast.expr] = {}
    for node in ast.walk(function) if function else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            own[node.targets[0].id] = node.value
    return own


def _targets(tree: ast.Module) -> dict[ast.Call, str]:
    """Return the name to which each call's value is assigned, also as a part of another value."""
    targets: dict[ast.Call, str] = {}
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None:
            name = getattr(target, "id", getattr(target, "attr", ""))
            targets.update(
                dict.fromkeys(
                    (each for each in ast.walk(value) if isinstance(each, ast.Call)), name
                )
            )
    return targets


def _methods(name: str, file: Path, here: Mapping[str, Set[str]]) -> tuple[str, ...]:
    """Return the methods that are called on a name; all, where it is passed on or has none."""
    is_public = bool(name) and not name.startswith("_")
    used = {*here.get(name, ())}
    word = re.compile(rf"\b{re.escape(name)}\b")
    for each, text in _texts().items():
        if is_public and each != file and name in text and word.search(text):
            used |= _names_used_in(each).get(name, set())
    return tuple(sorted(used)) or _UNKNOWN_USE


@cache  # not of the tree: many trees are slow to keep
def _names_used_in(file: Path) -> Mapping[str, Set[str]]:
    return _names_used(ast.parse(_texts()[file]))


def _names_used(tree: ast.Module) -> Mapping[str, Set[str]]:
    """Return the methods that may be called on each name that is read in a module."""
    used: dict[str, set[str]] = {}
    for parent in ast.walk(tree):
        for node in ast.iter_child_nodes(parent):
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            methods = used.setdefault(node.id if isinstance(node, ast.Name) else node.attr, set())
            if isinstance(parent, ast.Attribute):
                methods |= {parent.attr} & set(METHODS)
            elif not isinstance(parent, ast.Compare):  # `pattern is None`
                methods |= set(_UNKNOWN_USE)
    return used


# Texts that one pattern may take long on.

_REPEATS: Final = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_FEW: Final = 100
_POOL: Final = "aZ_0 \t\n\r.,:;!?-+*/\\|'\"`()[]{}<>=#@$%&~^…’“：？éß\xa0\x00\u2028\u200b"
_MOST_KINDS: Final = 14
"""Of the characters that a pattern tells apart."""


@dataclass(frozen=True)
class Attack:
    """A text that can be made longer."""

    prefix: str
    pump: str
    suffix: str

    def of(self, size: int) -> str:
        """Return the text of about that many characters."""
        return self.prefix + self.pump * max(1, size // len(self.pump)) + self.suffix


def attacks(pattern: Compiled) -> list[Attack]:
    """Return texts that follow the pattern's repeats."""
    text = (
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    )
    if r"\p{" in text:  # of the package `regex`: a property of characters is a kind of them
        text = re.sub(r"\\p\{[^}]*\}", lambda _: r"\w", text)
    tree = parser.parse(
        text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    if not any(kind in _REPEATS and value[1] > _FEW for kind, value in _items(tree)):
        return []  # each place of a text costs the same
    kinds = _kinds(tree, bool(pattern.flags & re.IGNORECASE))
    pumps = dict.fromkeys([("", pump) for pump in (*kinds, *map("".join, combinations(kinds, 2)))])
    for number in range(4):
        sampler = _Sampler(kinds, number)
        pumps.update(dict.fromkeys(("", beginning) for beginning in sampler.prefixes(tree)))
        for prefix, body in sampler.repeats(tree, ""):
            bodies = (body, *kinds) if number < 2 else (body,)
            pumps.update(dict.fromkeys((prefix, pump) for pump in bodies))
    return [
        Attack(prefix, pump, suffix)
        for prefix, pump in pumps
        if pump
        for suffix in ("", "\0", "\n")
    ]


def _kinds(tree: Any, any_case: bool) -> list[str]:
    """Return one character for each kind that the pattern tells apart."""
    atoms = [
        item for item in _items(tree) if item[0] in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY)
    ]
    own = [
        chr(number)
        for kind, value in atoms
        if kind in (op.LITERAL, op.NOT_LITERAL)
        for number in (value,)
    ]
    own += [chr(number) for kind, value in atoms if kind is op.IN for number in _named(value)]
    kinds: dict[tuple[bool, ...], str] = {}
    for char in dict.fromkeys([*_POOL, *own]):
        kinds.setdefault(tuple(_takes(atom, char, any_case) for atom in atoms), char)
    return [*kinds.values()][:_MOST_KINDS]


def _named(members: Any) -> Iterator[int]:
    for kind, value in members:
        if kind is op.LITERAL:
            yield value
        elif kind is op.RANGE:
            yield value[0]


def _items(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all items of a tree."""
    for kind, value in tree:
        yield kind, value
        for part in _parts(kind, value):
            yield from _items(part)


def _parts(kind: Any, value: Any) -> list[Any]:
    """Return the sequences within an item."""
    if kind in _REPEATS:
        return [value[2]]
    inner: dict[Any, Callable[[], list[Any]]] = {
        op.SUBPATTERN: lambda: [value[3]],
        op.ATOMIC_GROUP: lambda: [value],
        op.BRANCH: lambda: list(value[1]),
        op.ASSERT: lambda: [value[1]],
        op.ASSERT_NOT: lambda: [value[1]],
        op.GROUPREF_EXISTS: lambda: [part for part in value[1:] if part is not None],
    }
    return inner[kind]() if kind in inner else []


_CATEGORIES: Final = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _takes(atom: tuple[Any, Any], char: str, any_case: bool) -> bool:
    kind, value = atom
    chars = {char, char.lower(), char.upper()} if any_case else {char}
    numbers = {ord(each) for each in chars if len(each) == 1}
    match kind:
        case op.LITERAL:
            return value in numbers
        case op.NOT_LITERAL:
            return value not in numbers
        case op.ANY:
            return char != "\n"
        case _:
            negated = value[0][0] is op.NEGATE
            return negated is not any(_is_member(member, char, numbers) for member in value)


def _is_member(member: tuple[Any, Any], char: str, numbers: set[int]) -> bool:
    kind, value = member
    match kind:
        case op.LITERAL:
            return value in numbers
        case op.RANGE:
            return any(value[0] <= number <= value[1] for number in numbers)
        case op.CATEGORY:
            return re.match(_CATEGORIES[value], char) is not None
        case _:
            return False


class _Sampler:
    """Texts that a pattern matches: of each choice the one with a number, of each repeat a few."""

    def __init__(self, kinds: Sequence[str], number: int) -> None:
        self._kinds, self._number = kinds, number

    def text(self, tree: Any) -> str:
        """Return a text that a sequence takes, leaving conditions out."""
        return "".join(self._item(kind, value) for kind, value in tree)

    def prefixes(self, tree: Any) -> list[str]:
        """Return a text for each beginning of a sequence."""
        items = [*tree]
        return [self.text(items[:end]) for end in range(1, len(items) + 1)]

    def repeats(self, tree: Any, before: str) -> Iterator[tuple[str, str]]:
        """Yield for each repeat what stands before it, and what it repeats."""
        for kind, value in tree:
            if kind in _REPEATS:
                yield before, self.text(value[2])
            for part in _parts(kind, value):
                yield from self.repeats(part, before)
            before += self._item(kind, value)

    def _item(self, kind: Any, value: Any) -> str:
        match kind:
            case op.LITERAL:
                return chr(int(value))
            case op.NOT_LITERAL | op.ANY | op.IN:
                fitting = [char for char in self._kinds if _takes((kind, value), char, False)]
                return fitting[self._number % len(fitting)] if fitting else ""
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                least, most, body = value
                return self.text(body) * int(min(max(least, self._number % 3), 70, most))
            case op.BRANCH:
                return self.text(value[1][self._number % len(value[1])])
            case op.ASSERT | op.ASSERT_NOT:
                return ""
            case _:
                return "".join(self.text(part) for part in _parts(kind, value)[:1])


# Growth.

_SIZES: Final = (16, 250, 3_000)
_LINEAR_S: Final = 150e-9
"""For each character: no pattern that is linear needs more here."""
_LEAST_S: Final = 0.004
_MOST_S: Final = 0.05
"""A time is measured well between these."""
_BRIEF_S: Final = 0.0005
"""A jump to less is where a bound begins: even a growth without any takes but seconds at twice the size."""
_MOST_CHARS: Final = 256_000
MOST_EXPONENT: Final = 1.5


@dataclass(frozen=True)
class Growth:
    """The growth of the time of one pattern, with one method, on one attack: up to this size."""

    exponent: float
    method: str
    attack: Attack
    size: int
    seconds: float

    def __str__(self) -> str:
        return f"n^{self.exponent:.2f} by `{self.method}` on {self.attack}: {self.seconds:.3f} s at {self.size:,}"


@dataclass(frozen=True)
class Trial:
    """The number of attacks on a pattern, each with a method, and its largest growth where it was slow at all."""

    count: int
    worst: Growth | None = None

    @property
    def is_linear(self) -> bool:
        """True unless the time grows faster than the text to the power of `MOST_EXPONENT`."""
        return self.worst is None or self.worst.exponent <= MOST_EXPONENT


def attack(pattern: Compiled, methods: Iterable[str]) -> Trial:
    """Return how the pattern fares; the first attack under which it clearly grows ends the trial."""
    worst, count, linear_s = None, 0, _LINEAR_S
    for text in attacks(pattern):
        for method in methods:
            count += 1
            size = _suspicious_size(pattern, method, text, linear_s)
            if not size:
                continue
            growth = _growth(pattern, method, text, size)
            if worst is None or growth.exponent > worst.exponent:
                worst = growth
            if growth.exponent > MOST_EXPONENT:
                return Trial(count, worst)
            linear_s = max(linear_s, 2 * growth.seconds / growth.size)  # slow, and yet linear
    return Trial(count, worst)


def is_quick(expression: Expression, size: int) -> bool:
    """Check whether a pattern takes at most 0.1 s for every attack of this size, the most that the program gives it."""
    texts = [text.of(size) for text in attacks(expression.pattern)] if size else ()
    times = (
        seconds(expression.pattern, method, text) for text in texts for method in expression.methods
    )
    return bool(size) and max(times, default=0.0) < 0.1


def seconds(pattern: Compiled, method: str, text: str) -> float:
    """Return the processor time of one use of the pattern."""
    given: Any = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    use = getattr(pattern, method)
    began = time.thread_time()
    if method in ("sub", "subn"):
        use(given[:0], given)
    elif method == "finditer":
        for _ in use(given):
            pass
    else:
        use(given)
    return time.thread_time() - began


def _suspicious_size(pattern: Compiled, method: str, text: Attack, linear_s: float) -> int:
    """Return the size at which the pattern takes longer than a linear one would; 0 if at none."""
    for size in _SIZES:
        whole = text.of(size)
        limit = linear_s * len(whole) + 20e-6
        if all(seconds(pattern, method, whole) > limit for _ in range(3)):
            return size
    return 0


def _growth(pattern: Compiled, method: str, text: Attack, size: int) -> Growth:
    """Return the growth at the last two doublings that can be waited for.

    The last ones, since a repeat with a bound is linear only beyond it. Noise makes a time longer, never shorter.
    """

    def least(size: int, tries: int) -> float:
        whole = text.of(size)
        return max(1e-7, min(seconds(pattern, method, whole) for _ in range(tries)))

    times = [least(size >> halvings, 3) for halvings in (2, 1, 0)]
    if times[-1] > max(16 * times[-2], _BRIEF_S):  # a longer text would take for ever
        return Growth(math.log2(times[-1] / times[-2]), method, text, size, times[-1])
    while times[-1] < _MOST_S and size < _MOST_CHARS:
        size *= 2
        times.append(least(size, 3 if times[-1] < _LEAST_S else 1))
        if times[-1] > 1:
            break
    exponent = math.log2(times[-1] / times[-3]) / 2
    if (
        exponent > MOST_EXPONENT and times[-1] < 1
    ):  # noise in one of two measurements looks like growth
        exponent = min(exponent, math.log2(least(size, 4) / least(size >> 2, 4)) / 2)
    return Growth(exponent, method, text, size, times[-1])
