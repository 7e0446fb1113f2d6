"""The dependencies of a workspace's code: one graph for hashes, users, approvals, imports and rollbacks.

It is built from syntax trees; nothing runs. A module is a list of top-level statements. Each is analyzed once and
reused in every version of its module. Names that are computed at run time are not seen, and any equal name counts as a
use.
"""

import ast
import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.base.records import dataclass
from agent_core.base.syntax import tree_of
from sandbox.wire.lines import lines_of

from . import examples
from .module_edits import remove_from_all
from .source import (
    ModuleSource,
    ParsedText,
    blocks,
    bound_names,
    callee,
    first_line,
    is_bare_value,
    is_blank,
    is_helper,
    last_line,
    parse,
    parse_accepted,
)
from .tree import Definition, survey

if TYPE_CHECKING:
    from .function import Function
    from .registry import Snapshot

Names: TypeAlias = frozenset[str]
_NO_NAMES: Final[Names] = Names()
Part: TypeAlias = tuple[str, str]
"""A module and a name in it; an empty name stands for what runs at the module's import."""
_GROUND: Final = ""  # the name of statements that do not bind names
_WORD: Final = re.compile(r"\w+")
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Statement:
    """The names that a top-level statement of a module binds and mentions.

    `names` are all names in it. `words` also include attributes and the functions in `called`, which it calls by
    `self.call`. `reads` excludes a function's local names and includes those in quoted annotations. `shows` are the
    names in its examples, `takes` those that these do not bind before. `imports` are tuples of level, module and name.
    """

    binds: Names
    names: Names
    words: Names
    called: Names
    reads: Names
    shows: Names
    takes: Names
    modifies: Names  # values of the module, judged by the text alone
    runs: Names  # functions called for their effects
    shared: Names  # names declared `global`
    imports: tuple[tuple[int, str, str], ...]

    @classmethod
    def of(cls, node: ast.stmt) -> "Statement":
        """Return the facts about a statement."""
        inner = [*ast.walk(node)]
        names, shared = _names(inner), _shared(inner)
        calls = [
            part
            for part in inner
            if isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "call"
        ]
        first = [
            argument.value
            for call in calls
            for argument in call.args[:1]
            if isinstance(argument, ast.Constant)
        ]
        called = _set_of(word for word in first if isinstance(word, str))
        reads, own = _names_read(node), set[str]()
        roots, runs = _modifications(node)
        shows, takes = _names_in_examples(node)
        if isinstance(node, Definition):
            head = _in_text(node.returns).union(
                *map(_names_read, [*node.decorator_list, node.args])
            )
            head |= _names_read(node.returns) if node.returns else set()
            # A function's local names hide names of the module.
            body = [part for statement in node.body for part in ast.walk(statement)]
            loops = [part.target for part in body if isinstance(part, ast.comprehension)]
            targets = {
                name.id
                for target in loops
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            }
            arguments = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
            own = arguments.union(*map(bound_names, node.body)) - targets - shared
            reads = head.union(*map(_names_read, node.body)) - (own - head)
            roots = (roots - own) | shared
        elif isinstance(node, ast.AnnAssign) or isinstance(
            getattr(node, "value", None), ast.Subscript
        ):
            reads |= _in_text(
                getattr(node, "value", None)
            )  # an alias may have the name of a class in quotes
        return cls(
            binds=frozenset(bound_names(node)),
            names=names,
            words=called.union(
                names, (part.attr for part in inner if isinstance(part, ast.Attribute))
            ),
            called=called,
            reads=frozenset(reads),
            shows=shows,
            takes=takes,
            modifies=_set_of(roots),
            runs=_set_of(runs),
            shared=shared,
            imports=tuple(
                (part.level, part.module or "", alias.name)
                if isinstance(part, ast.ImportFrom)
                else (-1, alias.name, "")
                for part in inner
                if isinstance(part, ast.Import | ast.ImportFrom)
                for alias in part.names
            ),
        )


def _set_of(names: Iterable[str]) -> Names:
    """Return the names, and always the same object if there are none.

    The facts about a statement are mostly empty sets, and each collection of garbage would look at all of them.
    """
    return frozenset(names) or _NO_NAMES


def _names(nodes: Iterable[ast.AST]) -> Names:
    return _set_of(node.id for node in nodes if isinstance(node, ast.Name))


def _shared(nodes: Iterable[ast.AST]) -> Names:
    return _set_of(name for node in nodes if isinstance(node, ast.Global) for name in node.names)


@lru_cache(maxsize=4096)
def _statement(text: str) -> Statement | None:
    """Return the facts about a statement by its text, cached across versions of its module."""
    try:
        body = syntax.parse(text).body
    except NOT_PYTHON:
        return None
    return Statement.of(body[0]) if len(body) == 1 else None


def used_imports(function: "Function", snapshot: "Snapshot") -> tuple[str, ...]:
    """Return the imports of a function's module that bind a name which it uses."""
    text = snapshot.modules[function.module].text
    words, _ = _defined_words(text)
    used = words.get(function.name, frozenset())
    return tuple(
        ast.unparse(node)
        for node, facts, _ in statements_of(text)
        if isinstance(node, ast.Import | ast.ImportFrom) and facts.binds & used
    )


@syntax.tree_room.kept(64)
def statements_of(text: str) -> tuple[tuple[ast.stmt, Statement, str], ...]:
    """Return the top-level statements of a text with their facts, and their text if they share no line.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the text is not valid Python, or too deep.
    """
    body, lines, above = tree_of(text).body, lines_of(text), 0
    statements = []
    for node, following in zip(body, [*body[1:], None], strict=False):
        first, last = first_line(node), last_line(node)
        is_alone = above < first and (following is None or last < following.lineno)
        own = "".join(lines[first - 1 : last]) if is_alone else ""
        facts = _statement(own)
        statements.append((node, facts or Statement.of(node), own if facts else ""))
        above = last
    return tuple(statements)


def _names_read(node: ast.AST) -> set[str]:
    """Return every name in a node, including names in quoted annotations."""
    names = set[str]()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.add(inner.id)
        elif isinstance(inner, ast.arg | ast.AnnAssign | Definition):
            names |= _in_text(inner.returns if isinstance(inner, Definition) else inner.annotation)
    return names


def _in_text(hint: ast.expr | None) -> set[str]:
    texts = (part.value for part in ast.walk(hint or ast.Pass()) if isinstance(part, ast.Constant))
    return set().union(*(_names_in(text, "eval") for text in texts if isinstance(text, str)))


def _names_in(text: str, mode: str) -> set[str]:
    try:
        return {
            node.id for node in ast.walk(syntax.parse(text, "", mode)) if isinstance(node, ast.Name)
        }
    except NOT_PYTHON:
        return set()


def _names_in_examples(node: ast.stmt) -> tuple[Names, Names]:
    """Return the names in the examples of a function's docstring, and those that the examples do not bind before."""
    words = ast.get_docstring(node) if isinstance(node, Definition) else None
    try:
        entries = list(examples.find(words)) if words and ">>>" in words else []
    except ValueError:
        return _NO_NAMES, _NO_NAMES
    shown, taken, bound = set[str](), set[str](), set[str]()
    for entry in entries:
        names = _names_in(entry.source, "exec")
        shown |= names
        taken |= names - bound
        bound |= _bound_in(entry.source)
    return _set_of(shown), _set_of(taken)


def _bound_in(text: str) -> set[str]:
    try:
        return set().union(*map(bound_names, syntax.parse(text).body))
    except NOT_PYTHON:
        return set()


def _modifications(node: ast.stmt) -> tuple[set[str], set[str]]:
    """Return the names of the values that a statement modifies, and the functions that it calls for their effects.

    Examples are `TABLE["a"] = 1`, `TABLE.update(…)` and `fill(TABLE)`, also in nested blocks. For a function, these are
    the names that its calls modify.
    """
    roots, runs = set[str](), set[str]()
    waiting = [node]
    while waiting:
        match waiting.pop():
            case ast.For() | ast.While() | ast.If() | ast.With() | ast.Try() as block:
                waiting += blocks(block)
            case ast.FunctionDef() | ast.AsyncFunctionDef() as function if function is node:
                waiting += (
                    part
                    for part in ast.walk(node)
                    if isinstance(part, ast.stmt) and part is not node
                )
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                runs.add(name)
            case ast.Assign(targets=targets):
                roots |= {
                    *filter(
                        None, (_root(each) for each in targets if not isinstance(each, ast.Name))
                    )
                }
            case (
                ast.AugAssign(target=target)
                | ast.Expr(value=ast.Call(func=ast.Attribute(value=target)))
            ):
                roots |= {*filter(None, [_root(target)])}
    return roots, runs


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# A module by its statements, and what its functions need of it.


@dataclass(frozen=True)
class ModuleParts:
    """A module as statements, with the names that each binds and changes, and the public functions.

    `binds` contains "*" for statements that are always needed; `changes` are the module's values that a statement
    changes.
    """

    text: ParsedText
    statements: tuple[Statement, ...]
    binds: tuple[Names, ...]
    changes: tuple[Names, ...]
    public: tuple[str, ...]

    @classmethod
    def of(cls, text: str, path: str = "module", module: str = "") -> "ModuleParts | Problem":
        """Return the parts of a text, or why it cannot be parsed; a helper module has no public functions."""
        return _parts(text, path, is_helper(module))

    def definition(self, name: str) -> Definition:
        """Return the last definition of a public function."""
        return [
            node for node in self.text.body if isinstance(node, Definition) and node.name == name
        ][-1]

    def holder(self, names: Set[str]) -> int | None:
        """Return the index of the only statement that binds any of these names, if it binds exactly these."""
        holders = [at for at, bound in enumerate(self.binds) if bound & names]
        return holders[0] if len(holders) == 1 and self.binds[holders[0]] == names else None

    def exported(self) -> frozenset[str]:
        """Return the strings in the module's `__all__`."""
        listed = [
            node
            for node, bound in zip(self.text.body, self.binds, strict=True)
            if "__all__" in bound
        ]
        constants = (
            part.value
            for node in listed
            for part in ast.walk(node)
            if isinstance(part, ast.Constant)
        )
        return frozenset(value for value in constants if isinstance(value, str))

    def needed(self, names: Iterable[str], stop: Set[str] = frozenset()) -> set[int]:
        """Return the statements that these functions and their examples need, including their own.

        Functions in `stop`, and what only they need, are left out.
        """
        wanted, known = {*names}, {name for bound in self.binds for name in bound}
        pairs = zip(self.binds, self.statements, strict=True)
        shown = {name for bound, facts in pairs if bound & wanted for name in facts.shows & known}
        always = {at for at, bound in enumerate(self.binds) if "*" in bound}
        return always | _reach(wanted | shown, *self._needs, stop, always)

    @cached_property
    def _needs(self) -> tuple[Mapping[str, Sequence[int]], Sequence[Names]]:
        changing = [
            bound | changed for bound, changed in zip(self.binds, self.changes, strict=True)
        ]
        reading = [
            facts.reads | changed
            for facts, changed in zip(self.statements, self.changes, strict=True)
        ]
        return _places(changing), reading

    def referred(self, at: int) -> set[int]:
        """Return the imports and private statements that a statement refers to, without public functions."""
        functions = {
            other for other, node in enumerate(self.text.body) if isinstance(node, Definition)
        }
        public = {
            other
            for other in functions
            if not any(name.startswith("_") for name in self.binds[other])
        }
        words = [facts.names | facts.reads for facts in self.statements]
        return _reach({*words[at], "*"}, _places(self.binds), words, passed={at, *public})

    def lines(self, statements: Set[int]) -> set[int]:
        """Return the lines of these statements, including their comments, and of all that share a line with them."""
        rows = {self._rows[at] for at in statements}
        spans = [
            self.text.span(node)
            for node, row in zip(self.text.body, self._rows, strict=True)
            if row in rows
        ]
        return {line for first, last in spans for line in range(first, last + 1)}

    @cached_property
    def _rows(self) -> list[int]:
        """The number of each statement's lines, which it has in common with the statements that share one of them."""
        ends = [0, *map(last_line, self.text.body)]
        return [
            *accumulate(
                int(first_line(node) > end) for node, end in zip(self.text.body, ends, strict=False)
            )
        ]

    def part(self, statements: Set[int]) -> str:
        """Return the text of these statements only, each on its original lines."""
        shown = self.lines(statements)
        kept = (line if at in shown else "\n" for at, line in enumerate(self.text.lines, 1))
        return "".join(kept).rstrip() + "\n"


def _places(binds: Iterable[Names]) -> Mapping[str, Sequence[int]]:
    """Return the statements that bind each name."""
    places: dict[str, list[int]] = {}
    for at, bound in enumerate(binds):
        for name in bound:
            places.setdefault(name, []).append(at)
    return places


def _reach(
    names: Set[str],
    places: Mapping[str, Sequence[int]],
    words: Sequence[Names],
    stop: Set[str] = frozenset(),
    passed: Set[int] = frozenset(),
) -> set[int]:
    """Return the statements that can be reached from names through the words of each statement.

    The search stops at names in `stop` and skips statements in `passed`.
    """
    found, seen = set[int](), names | stop
    waiting = [*(names - stop)]
    while waiting:
        new = {at for at in places.get(waiting.pop(), ()) if at not in found and at not in passed}
        found |= new
        more = set().union(*(words[at] for at in new)) - seen
        seen |= more
        waiting += more
    return found


@syntax.tree_room.kept(64)
def _parts(text: str, path: str, is_private: bool) -> ModuleParts | Problem:  # noqa: FBT001 - a fact about the module
    tree = parse(ModuleSource(path, path, text, ""))
    if isinstance(tree, Problem):
        return tree
    public = (
        ()
        if is_private
        else tuple(node.name for node in survey(tree).public() if node in tree.body)
    )
    pairs = [(node, facts) for node, facts, _ in statements_of(text)]
    body = tuple(node for node, *_ in pairs)
    values = {
        name
        for node, facts in pairs
        if not isinstance(node, ast.Import | ast.ImportFrom)
        for name in _names_needed(node, facts)
    }
    # The values that a call of each function modifies, directly or through other functions.
    functions = {node.name: facts for node, facts in pairs if isinstance(node, Definition)}
    setters = dict[str, Names]()
    wider: dict[str, Names] = {name: facts.modifies & values for name, facts in functions.items()}
    while wider != setters:
        setters = wider
        wider = {
            name: own.union(*(setters[other] for other in functions[name].names & setters.keys()))
            for name, own in setters.items()
        }

    def changed(node: ast.stmt, statement: Statement) -> Names:
        if not isinstance(node, Definition | ast.ClassDef):
            return statement.modifies.union(*(setters.get(name, ()) for name in statement.runs))
        if node.name in public:
            return frozenset()
        # A private function or a class may be registered: `@register("a")`, `@shown.register`.
        marks = [callee(mark) for mark in node.decorator_list]
        called = set().union(
            *(setters.get(mark.id, ()) for mark in marks if isinstance(mark, ast.Name))
        )
        return frozenset(
            called | {_root(mark) for mark in marks if isinstance(mark, ast.Attribute)} & values
        )

    return ModuleParts(
        ParsedText(tuple(lines_of(text)), body),
        tuple(facts for _, facts in pairs),
        tuple(_names_needed(*pair) for pair in pairs),
        tuple(changed(*pair) for pair in pairs),
        public,
    )


def _names_needed(node: ast.stmt, statement: Statement) -> Names:
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return frozenset({"*"}) if is_future else statement.binds


def only(text: str, names: Set[str]) -> str | Problem:
    """Return a module's text reduced to some of its public functions and what they need."""
    parts = ModuleParts.of(text)
    if isinstance(parts, Problem):
        return parts
    stays = parts.needed(names)
    for at, (node, bound) in enumerate(zip(parts.text.body, parts.binds, strict=True)):
        stays |= {at} if (at == 0 and is_bare_value(node)) or "__all__" in bound else set()
    shown = parts.lines(stays)
    gone = parts.lines(set(range(len(parts.binds))) - stays) - shown
    lines: list[str] = []
    for at, line in enumerate(parts.text.lines, 1):
        is_spare = is_blank(line) and at not in shown and all(map(is_blank, lines[-2:]))
        lines += [] if at in gone or is_spare else [line]
    dropped = {name for at, bound in enumerate(parts.binds) if at not in stays for name in bound}
    dropped -= {name for at in stays for name in parts.binds[at]}
    return remove_from_all(
        "".join(lines).rstrip("\r\n") + parts.text.newline, dropped & parts.exported()
    )


@dataclass(frozen=True, slots=True)
class SpareFunctions:
    """Functions of a module that need not be read with all others that run them.

    The `silent` ones are left out, and of each group all but the first that runs.
    """

    silent: Names = frozenset()
    groups: tuple[Names, ...] = ()


_NONE_TO_SPARE: Final = SpareFunctions()


def running_with(
    text: str, name: str, spare: SpareFunctions = _NONE_TO_SPARE, *, keeps_own: bool = False
) -> list[ast.stmt]:
    """Return the statements of a module that run with one of its functions, in text order.

    These are the statements that it depends on and those that bind nothing, without `if __name__ == "__main__"` blocks.
    Functions to spare are left out; with `keeps_own`, the function itself is not.
    """
    running = _without(_running_bits(text, name), text, spare)
    if keeps_own:
        _, places, _ = _running(text)
        for at in places.get(name, ()):
            running |= 1 << at
    return statements_at(text, running)


def statements_at(text: str, bits: int, spare: SpareFunctions = _NONE_TO_SPARE) -> list[ast.stmt]:
    """Return the statements of a module that may run, by their bits; functions to spare are left out."""
    nodes, _, _ = _running(text)
    return [nodes[at] for at in positions(_without(bits, text, spare))]


def _running_bits(text: str, name: str) -> int:
    _, places, reached = _running(text)
    running = 0
    for start in (name, _GROUND):
        for at in places.get(start, ()):
            running |= reached[at]
    return running


def _without(bits: int, text: str, spare: SpareFunctions) -> int:
    if spare == _NONE_TO_SPARE:
        return bits
    silent, *groups = _bits_of(text, spare)
    bits &= ~silent
    for group in groups:
        inside = bits & group
        bits ^= inside & (inside - 1)  # all but the first
    return bits


@lru_cache(maxsize=64)
def _bits_of(text: str, spare: SpareFunctions) -> tuple[int, ...]:
    """Return the bits of the statements that define these functions: the silent ones, then each group."""
    nodes, places, _ = _running(text)
    found = list[int]()
    for names in (spare.silent, *spare.groups):
        at_names = {at for name in names for at in places.get(name, ())}
        found.append(sum(1 << at for at in at_names if isinstance(nodes[at], Definition)))
    return tuple(found)


def positions(bits: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, in order."""
    digits = bin(bits)[:1:-1]  # taking bits off one by one would copy all that are left each time
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


def reachable(edges: Sequence[Iterable[int]], marks: Sequence[int] | None = None) -> list[int]:
    """Return what each node of a graph reaches, itself included, as bits: those of its place, or its marks.

    The nodes of a circle share their bits, and each circle is left after all that it leads to (Tarjan), so that a chain
    of any length costs one step for each node and edge.
    """
    found, order, lowest = [0] * len(edges), dict[int, int](), dict[int, int]()
    path, on_path = list[int](), set[int]()
    for start in range(len(edges)):
        waiting = [] if start in order else [(start, iter(edges[start]))]
        while waiting:
            node, following = waiting[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                path.append(node)
                on_path.add(node)
            for other in following:
                if other not in order:
                    waiting.append((other, iter(edges[other])))
                    break
                found[node] |= found[other]
                if other in on_path:
                    lowest[node] = min(lowest[node], order[other])
            else:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == order[node]:
                    circle = path[path.index(node) :] if path[-1] != node else [node]
                    del path[-len(circle) :]
                    on_path.difference_update(circle)
                    bits = 0
                    for each in circle:
                        bits |= found[each] | (1 << each if marks is None else marks[each])
                    for each in circle:
                        found[each] = bits
                if waiting:
                    found[waiting[-1][0]] |= found[node]
    return found


@syntax.tree_room.kept(64)
def _running(text: str) -> tuple[Sequence[ast.stmt], Mapping[str, Sequence[int]], Sequence[int]]:
    """Return the statements of a module that may run, where each name is bound, and what runs with each statement."""
    nodes = [node for node in tree_of(text).body if not (is_bare_value(node) or is_program(node))]
    binds, names = list[Names](), list[Names]()
    for node in (
        nodes
    ):  # only these facts of a `Statement`: all of them would take most of a listing's time
        inner = [*ast.walk(node)]
        own = {node.name} if isinstance(node, Definition | ast.ClassDef) else bound_names(node)
        binds.append(_shared(inner).union(own) or frozenset({_GROUND}))
        names.append(_names(inner))
    places = _places(binds)
    return (
        nodes,
        places,
        reachable([[at for word in words for at in places.get(word, ())] for words in names]),
    )


@lru_cache(maxsize=64)
def mentions_in(text: str) -> Mapping[str, tuple[int, Names]]:
    """Return what each function of a module leads to, directly or indirectly, by mentioning it.

    These are the statements of the module that run with any of it, as bits for `statements_at`, and other words.
    """
    words, imported = _defined_words(text)
    order = {name: at for at, name in enumerate(words)}
    # The same few other words stand in most functions, so each set of them is a node of the graph, too.
    places = dict[Names, int]()
    edges = list[list[int]]()
    for name in words:
        # Without what its helpers mention, which have edges of their own: for a chain, that is the square.
        mentioned = frozenset(imported.get(word, word) for word in words[name])
        others = mentioned.difference(order)
        place = places.setdefault(others, len(order) + len(places))
        inner = mentioned & order.keys()
        edges.append([place, *map(order.__getitem__, inner)])
    edges += [[] for _ in places]
    nodes, _, _ = _running(text)
    marks = [_running_bits(text, name) for name in order]
    marks += [1 << len(nodes) + at for at in range(len(places))]
    bits = reachable(edges, marks)
    sets = [*places]
    found = dict[str, tuple[int, Names]]()
    for name, at in order.items():
        led_to = map(sets.__getitem__, positions(bits[at] >> len(nodes)))
        found[name] = bits[at] & (1 << len(nodes)) - 1, frozenset[str]().union(*led_to)
    return found


def is_program(node: ast.stmt) -> bool:
    """Check whether a statement only runs when its module is the program: `if __name__ == "__main__": …`."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and ast.unparse(node.test) == "__name__ == '__main__'"
    )


# Functions by name, and their callers.


def callers(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the functions that mention another function by name, sorted."""
    modules = {module for module, source in snapshot.modules.items() if name in source.text}
    return sorted(
        caller
        for caller, function in snapshot.functions.items()
        if function.module in modules and caller != name and name in uses(function, snapshot)
    )


def dependents(names: Iterable[str], snapshot: "Snapshot") -> list[str]:
    """Return the functions that use any of these functions, directly or indirectly; the nearest first."""
    start = [*names]
    reached = dict.fromkeys(start)
    waiting = deque(start)
    callers_of = dict[str, list[str]]()
    read = set[str]()
    within = dict[str, list[str]]()
    for caller, function in snapshot.functions.items():
        within.setdefault(function.module, []).append(caller)
    while waiting:
        name = waiting.popleft()
        # Each module is read once, when a name in it is reached.
        for module, source in snapshot.modules.items():
            if module in read or name not in source.text:
                continue
            read.add(module)
            for caller in within.get(module, ()):
                for used in callees(caller, snapshot):
                    callers_of.setdefault(used, []).append(caller)
        new = [caller for caller in sorted(callers_of.get(name, ())) if caller not in reached]
        reached |= dict.fromkeys(new)
        waiting += new
    return [name for name in reached if name not in start]


def private_users(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules, its own included, in which code other than the function mentions it by name, sorted."""
    own = snapshot.functions[name].module
    near = [
        own,
        *(module for module, reading in snapshot.readings.items() if own in reading.imports),
    ]
    texts = {module: snapshot.modules[module].text for module in near}
    return sorted(
        module
        for module, text in texts.items()
        if name in text
        and any(
            name in piece.words
            for key, piece in _pieces(text).items()
            if (module, key) != (own, name)
        )
    )


def importers(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules that import a function by name."""
    return [
        module
        for module, source in snapshot.modules.items()
        if name in source.text
        and any(
            level >= 0 and imported == name
            for _, facts, _ in statements_of(source.text)
            for level, _, imported in facts.imports
        )
    ]


def callees(name: str, snapshot: "Snapshot") -> list[str]:
    """Return the functions that a function mentions, sorted."""
    functions = snapshot.functions  # not as a set, which would be made of all of them for each
    module = functions[name].module
    words = _words(snapshot.modules[module].text)
    if words is not None and _is_alone(name, words, functions):
        return []
    return sorted(
        word for word in uses(functions[name], snapshot) if word in functions and word != name
    )


@lru_cache(maxsize=64)  # functions of one module are processed together
def _words(text: str) -> Names | None:
    """Return all words of a text in which every name stands letter by letter; None of another text.

    Other letters are normalized, a backslash may stand for one, and `self.call` takes a name that is put together.
    """
    words = frozenset(_WORD.findall(text))
    if not text.isascii() or "\\" in text or "call" in words:
        return None
    return words


def _is_alone(name: str, words: Names, functions: Mapping[str, "Function"]) -> bool:
    for word in words:  # not as sets, which would be made for each of many functions
        if word == name:
            continue
        if word in functions:
            return False
    return True


def uses(function: "Function", snapshot: "Snapshot") -> frozenset[str]:
    """Return every name that the source of a function mentions, including its module's private helpers."""
    return _mentions(snapshot.modules[function.module].text, function.name)


@lru_cache(maxsize=2048)  # a text has at most 1,500 functions
def _mentions(text: str, name: str) -> frozenset[str]:
    words, imported = _defined_words(text)
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for word in words[waiting.pop()]:
            real = imported.get(word, word)
            if real not in seen:
                seen.add(real)
                if real in words and real.startswith("_"):
                    waiting.append(real)
    return frozenset(seen)


@lru_cache(maxsize=64)  # functions of one module are processed together
def _defined_words(text: str) -> tuple[Mapping[str, Names], Mapping[str, str]]:
    """Return the words of each definition in a module, and the original names of renamed imports."""
    tree = tree_of(text)
    known = {id(node): facts for node, facts, _ in statements_of(text)}
    found = survey(tree).definitions
    words = {
        name: (known.get(id(node)) or Statement.of(node)).words for name, node in found.items()
    }
    renamed = [
        alias
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    ]
    return words, {alias.asname: alias.name for alias in renamed if alias.asname}


@lru_cache(maxsize=256)  # all versions of a module are read for each of its functions
def offered_sources(text: str) -> Mapping[str, str]:
    """Return the source of each function that a module offers, from its first decorator on."""
    tree, lines = parse_accepted(ModuleSource("", "", text, "")), lines_of(text)
    nodes = survey(tree).public() if isinstance(tree, ast.Module) else []
    return {node.name: "".join(lines[first_line(node) - 1 : node.end_lineno]) for node in nodes}


def using_modules(module: str, snapshot: "Snapshot") -> list[str]:
    """Return the modules that import a module or call its functions by name, directly or indirectly."""
    calling = {
        name: source.text.replace("'", '"')
        for name, source in snapshot.modules.items()
        if ".call(" in source.text
    }
    reached = {module: None}
    waiting = [module]
    while waiting:
        used = waiting.pop()
        own = snapshot.readings[used].functions if used in snapshot.readings else ()
        called = [f'"{function.name}"' for function in own]
        near = [name for name, reading in snapshot.readings.items() if used in reading.imports]
        near += [name for name, text in calling.items() if any(word in text for word in called)]
        new = dict.fromkeys(name for name in near if name not in reached)
        reached |= new
        waiting += new
    return [*reached][1:]


def modules_of(module: str, snapshot: "Snapshot") -> Mapping[str, ModuleSource]:
    """Return a module with its enclosing packages and all their imports, recursively."""
    modules: dict[str, ModuleSource] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        for around in (*packages_around(name), name):
            source = snapshot.modules.get(around)
            if source is not None and around not in modules:
                modules[around] = source
                waiting += snapshot.readings[around].imports
    return modules


def packages_around(module: str) -> Iterator[str]:
    """Yield the packages that contain a module, the outermost first."""
    pieces = module.split(".")
    yield from (".".join(pieces[:size]) for size in range(1, len(pieces)))


# The code that determines a function's results: its hash is stored with the findings about them.


@dataclass(frozen=True, slots=True)
class _Piece:
    """The statements that bind a name at the top of a module: their hash without docstrings, and what they mention."""

    digest: str
    words: Names
    called: Names


def code_hash(function: "Function", snapshot: "Snapshot") -> str:
    """Return the hash of a function's own text and of all workspace code that it may use.

    This includes helpers, constants and classes of its module, and functions of other modules, recursively.
    """
    digests = {part: digest for part, (digest, _) in _code_of([function], snapshot).items()}
    digests[function.module, function.name] = function.body_hash
    return hashlib.sha256(
        repr(sorted(digests.items())).encode("utf-8", "surrogatepass")
    ).hexdigest()


def changed_functions(
    names: Iterable[str], snapshot: "Snapshot", new_snapshot: "Snapshot"
) -> set[str]:
    """Return the functions that have changed, themselves or in code that they may use, or are in one snapshot only.

    What all of them use is compared once: each alone would read all that it uses again.
    """
    pairs = {
        name: (snapshot.functions.get(name), new_snapshot.functions.get(name)) for name in names
    }
    same = [new for old, new in pairs.values() if old and new and old.body_hash == new.body_hash]
    now = _code_of(same, new_snapshot)
    then = _code_of([snapshot.functions[function.name] for function in same], snapshot)
    order = {part: at for at, part in enumerate(now)}
    reached = reachable(
        [[order[part] for part in leads_to if part in order] for _, leads_to in now.values()]
    )
    differing = sum(1 << at for at, part in enumerate(now) if now[part] != then.get(part))
    starts = {
        function.name: [(function.module, function.name), (function.module, _GROUND)]
        for function in same
    }
    unchanged = {
        name
        for name, parts in starts.items()
        if not any(reached[order[part]] & differing for part in parts if part in order)
    }
    return pairs.keys() - unchanged


def _code_of(
    functions: Iterable["Function"], snapshot: "Snapshot"
) -> dict[Part, tuple[str, frozenset[Part]]]:
    """Return the parts of the workspace's code that functions may use: the hash of each, and the parts it leads to."""
    found: dict[Part, tuple[str, frozenset[Part]]] = {}
    waiting = [
        (function.module, name) for function in functions for name in (function.name, _GROUND)
    ]
    while waiting:
        part = module, name = waiting.pop()
        piece = _pieces(snapshot.modules[module].text).get(name)
        if piece is None or part in found:
            continue
        reading = snapshot.readings.get(module)
        leads_to = {
            (snapshot.functions[name].module, name)
            for name in piece.called & snapshot.functions.keys()
        }
        for related in (module, *(reading.imports if reading else ())):
            if (source := snapshot.modules.get(related)) is not None:
                leads_to |= {
                    (related, word)
                    for word in piece.words & _pieces(source.text).keys() | {_GROUND}
                }
        found[part] = piece.digest, frozenset(leads_to)
        waiting += leads_to
    return found


@lru_cache(maxsize=256)
def _pieces(text: str) -> Mapping[str, _Piece]:
    pieces: dict[str, list[tuple[ast.stmt, Statement]]] = {_GROUND: []}
    for node, facts, _ in statements_of(text):
        # A decorator may store its function or class anywhere in the module.
        is_ground = not facts.binds or getattr(node, "decorator_list", None)
        for name in facts.binds | ({_GROUND} if is_ground else set()):
            pieces.setdefault(name, []).append((node, facts))
    lines = lines_of(text)
    found = dict[str, _Piece]()
    for name, pairs in pieces.items():
        words = {name or module for _, facts in pairs for _, module, name in facts.imports}
        words |= {word for _, facts in pairs for word in facts.words | facts.reads}
        called = {word for _, facts in pairs for word in facts.called}
        shown = "\n".join(_tree_text(node, lines) for node, _ in pairs)
        digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
        found[name] = _Piece(digest, frozenset(words), frozenset(called))
    return found


def _tree_text(node: ast.stmt, lines: list[str]) -> str:
    """Return the dump of a statement's tree without its docstring."""
    bare: ast.AST = node
    if isinstance(node, Definition) and ast.get_docstring(node, clean=False) is not None:
        bare = type(node)(**{**dict(ast.iter_fields(node)), "body": node.body[1:]})
    elif (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        bare = ast.Pass()
    try:
        return ast.dump(bare)
    except RecursionError:
        return "".join(lines[node.lineno - 1 : last_line(node)])
