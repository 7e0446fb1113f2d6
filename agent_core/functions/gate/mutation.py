"""The stage "mutation": checks that the examples would detect wrong behavior.

Examples run against stubs and small mutants of the body, many in one worker; their results are advice, and are compared
as in the stage "examples". A stub that passes every example causes a refusal. Surviving mutants are reported with the
kind of example that would detect them, because some changes make no difference.

A mutant is the module's text with one small change, or with a stub as the body; everything else stays the same, byte
for byte. Places that examples can hardly detect are left out: the signature, docstrings, what is raised, asserted or
reported, and f-strings, whose inner positions Python does not give.
"""

import ast
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product, zip_longest
from typing import Final, TypeAlias, TypeVar

from agent_core.base.offload import aside
from agent_core.base.problem import Evidence
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import fence, from_difference
from agent_core.registry.examples import Example
from agent_core.registry.function import Function
from agent_core.registry.source import first_line
from sandbox import Attempt, Attempts, Evaluation, Outcome, Refused

from .call_arguments import read_cases
from .capability import may_open
from .draft import (
    NOT_IMPORTED,
    NOTHING_YET,
    OUTSIDE,
    Draft,
    Finding,
    GivenExample,
    Mutant,
    TrialSubject,
)
from .examples import agrees, expectation, literal_value, promises_floats, same, unprovable
from .proof import MOST
from .substance import HOLLOW
from .tree import FunctionNode, body, find, parameters, parse
from .trial import TrialTools
from .verdict import TOO_FEW, WEAK_EXAMPLES

_WORD: Final = re.compile(rb"\w")
_MOST_IN_A_TABLE: Final = 4
_QUOTED: Final = 300  # bytes of a node that are looked at to show it
_UNSEEN = (
    ast.Raise,
    ast.Assert,
    ast.JoinedStr,
    ast.arguments,
    ast.expr_context,
    ast.operator,
    ast.pattern,
)
Condition: TypeAlias = tuple[ast.expr, bool]


@dataclass(frozen=True, slots=True)
class TextChange:
    """A replacement for the bytes of a text from `start` to `end`."""

    start: int
    end: int
    new: str
    notices: str


class SplicedText:
    """A text with the byte positions of its tree's nodes."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", self._bytes))]

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Return the start of a node, including decorators."""
        line = first_line(node) if isinstance(node, ast.stmt) else node.lineno
        return self._starts[line - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return the end of a node."""
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def piece(self, start: int, end: int) -> str:
        """Return the text between two positions."""
        return self._bytes[start:end].decode()

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Return the source of a node, in one line."""
        start = self.start(node)
        shown = " ".join(
            self._bytes[start : min(self.end(node), start + _QUOTED)]
            .decode("utf-8", "ignore")
            .split()
        )
        return shown if len(shown) <= 60 else f"{shown[:59]}…"

    def line_start(self, place: int) -> int:
        """Return the start of the line at a position."""
        return self._bytes.rfind(b"\n", 0, place) + 1

    def line_end(self, place: int) -> int:
        """Return the end of the line at a position, before the line break."""
        position = self._bytes.find(b"\n", place)
        return len(self._bytes) if position < 0 else position

    def mutant(self, operator: str, change: TextChange, node: FunctionNode) -> Mutant:
        """Return the mutant with this change."""
        ahead, behind = self._bytes[: change.start], self._bytes[change.end :]
        glue = (
            b" " if _WORD.match(ahead[-1:]) and _WORD.match(change.new.encode()) else b""
        )  # `return[1]`, `if(a)`
        new = ahead + glue + change.new.encode() + behind
        first, last = self.line_start(change.start), self.line_end(change.end)
        before = self.piece(first, last)
        after = new[first : last + len(new) - len(self._bytes)].decode()
        if after.startswith(f"{before}\n"):  # the change added a line
            before, after = "", after[len(before) + 1 :]
        elif after.endswith(f"\n{before}"):
            before, after = "", after[: -len(before) - 1]
        line = self._bytes.count(b"\n", 0, change.start) + 1 - node.lineno
        return Mutant(operator, new.decode(), line, before, after, change.notices)


@dataclass(frozen=True, slots=True)
class Site:
    """A node and its context: its parent and statement, and the condition under which it is reached."""

    node: ast.AST
    parent: ast.AST
    statement: ast.stmt
    condition: Condition | None = None
    in_while: bool = False
    in_table: bool = False
    returns: int = 0

    @property
    def is_table(self) -> bool:
        """True for a large collection or a `match` with many simple cases, which count as tables."""
        match self.parent, self.node:
            case _, ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items) | ast.Dict(
                values=items
            ):
                return len(items) > _MOST_IN_A_TABLE
            case ast.Match(cases=cases), ast.match_case(body=[ast.Assign() | ast.Return()]):
                return len(cases) > _MOST_IN_A_TABLE
        return False

    def missing_example(self, text: SplicedText) -> str:
        """Return the kind of example that reaches the place."""
        if self.condition is None:
            return f"an example that reaches `{text.of(self.statement)}`"
        test, holds = self.condition
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)) if holds:
                return f"an example where `{name}` is empty"
            case ast.Compare(left=left_operand, ops=[ast.Eq()], comparators=[right]) if holds:
                return f"an example where `{text.of(left_operand)}` is `{text.of(right)}`"
            case _:
                return f"an example where `{text.of(test)}` {'holds' if holds else 'does not hold'}"


def sites(function: FunctionNode) -> Iterator[Site]:
    """Yield every place in a function's body, in text order."""
    statements = body(function)
    returns = sum(
        isinstance(node, ast.Return) for statement in statements for node in ast.walk(statement)
    )
    waiting = [Site(node, function, node, returns=returns) for node in reversed(statements)]
    while waiting:
        site = waiting.pop()
        if (
            isinstance(site.node, _UNSEEN)
            or (isinstance(site.node, ast.Constant) and isinstance(site.parent, ast.Expr))
            or _is_progress(site.node)
        ):
            continue
        yield site
        node, inner = site.node, list[Site]()
        in_while, in_table = (
            site.in_while or isinstance(node, ast.While),
            site.in_table or site.is_table,
        )
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list"):
                continue
            condition = site.condition
            if isinstance(node, ast.If | ast.IfExp) and field != "test":
                condition = node.test, field == "body"
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    statement = child if isinstance(child, ast.stmt) else site.statement
                    inner.append(
                        Site(child, node, statement, condition, in_while, in_table, site.returns)
                    )
        waiting += reversed(inner)


def _is_progress(node: ast.AST) -> bool:
    match node:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="progress"))
        ):
            return True
        case _:
            return False


MOST_ARGUMENTS: Final = 3  # arguments that stubs return


def _read(text: str, name: str) -> tuple[SplicedText, FunctionNode | None]:
    """Return a text with plain line endings, and the function in it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    tree = parse(text)
    return SplicedText(text), find(tree, name) if isinstance(tree, ast.Module) else None


def stubs(text: str, name: str, constants: Sequence[str]) -> dict[str, Mutant]:
    """Return stubs of the function that return a constant or an unchanged argument, by returned value."""
    whole, node = _read(text, name)
    if node is None or not body(node):
        return {}
    names = [parameter.arg for parameter in parameters(node)[:MOST_ARGUMENTS]]
    start = whole.start(body(node)[0])
    lead = whole.piece(whole.line_start(start), start)
    by_value = {}
    for value in dict.fromkeys([*names, *constants]):
        new = f"return {value}; " if lead.strip() else f"return {value}\n{lead}"
        notices = f"an example with a result other than {f'`{value}` itself' if value in names else value}"
        by_value[value] = whole.mutant("stub", TextChange(start, start, new, notices), node)
    return by_value


def mutants(text: str, name: str, most: int) -> tuple[Mutant, ...]:
    """Return up to `most` mutants: one per operator in turn, the most revealing first, those in a `while` last.

    Each is a whole text, so only those that are returned are made.
    """
    whole, node = _read(text, name)
    if node is None:
        return ()
    places = list(sites(node))
    early = _in_turn([site for site in places if not site.in_while], whole)
    late = _in_turn([site for site in places if site.in_while], whole)
    unlike: dict[str, Mutant] = {}
    for operator, change in chain(early, late):
        if len(unlike) == most:
            break
        mutant = whole.mutant(operator, change, node)
        unlike.setdefault(mutant.text, mutant)
    return tuple(unlike.values())


def _in_turn(places: Sequence[Site], text: SplicedText) -> Iterator[tuple[str, TextChange]]:
    """Yield the changes of these places, one per operator in turn."""
    by_operator = [_changes(operator, places, text) for operator in OPERATORS]
    for row in zip_longest(*by_operator):
        yield from (entry for entry in row if entry is not None)


def _changes(
    operator: str, places: Sequence[Site], text: SplicedText
) -> Iterator[tuple[str, TextChange]]:
    for site in places:
        for change in OPERATORS[operator](site, text):
            yield operator, change


def literal_mutants(text: str, name: str, literals: Collection[str]) -> Iterator[str]:
    """Yield the text with one literal of the function changed, once for each place of these (given as `repr`)."""
    whole, node = _read(text, name)
    if node is None:
        return
    for site in sites(node):
        if isinstance(site.node, ast.Constant) and repr(site.node.value) in literals:
            for change in _constant(replace(site, in_table=False), whole):
                yield whole.mutant("constant", change, node).text


Operator: TypeAlias = Callable[[Site, SplicedText], Iterator[TextChange]]


def _give_else(site: Site, text: SplicedText) -> Iterator[TextChange]:
    """Yield a change of one of several results to None, or to the opposite truth value."""
    value = site.node.value if isinstance(site.node, ast.Return) and site.returns > 1 else None
    if value is not None:
        answer = value.value if isinstance(value, ast.Constant) else ...
        if answer is not None:
            new = repr(not answer) if isinstance(answer, bool) else "None"
            yield TextChange(text.start(value), text.end(value), new, site.missing_example(text))


def _negate(site: Site, text: SplicedText) -> Iterator[TextChange]:
    match site.node:
        case ast.If(test=test) | ast.IfExp(test=test):
            tests = [test]
        case ast.comprehension(ifs=ifs):
            tests = ifs
        case _:
            return
    for test in tests:
        start, end = text.start(test), text.end(test)
        notices = f"an example in which it matters whether `{text.of(test)}`"
        yield TextChange(start, end, f"not ({text.piece(start, end)})", notices)


def _stop_early(site: Site, text: SplicedText) -> Iterator[TextChange]:
    """Yield a change that runs a loop only once."""
    if not isinstance(site.node, ast.For | ast.AsyncFor):
        return
    first, last = site.node.body[0], site.node.body[-1]
    if isinstance(last, ast.Return | ast.Break | ast.Raise | ast.Continue):
        return
    start = text.start(first)
    lead = text.piece(text.line_start(start), start)
    place = text.end(last) if lead.strip() else text.line_end(text.end(last))
    new = "; break" if lead.strip() else f"\n{lead}break"
    yield TextChange(
        place,
        place,
        new,
        f"an example in which a second round of `for … in {text.of(site.node.iter)}` matters",
    )


def _swap(swaps: Mapping[type[ast.AST], tuple[str, str]], notices: str) -> Operator:
    """Return the change that replaces an operator between two operands; `notices` is a template for its description."""

    def act(site: Site, text: SplicedText) -> Iterator[TextChange]:
        operators: Iterable[tuple[ast.expr, ast.AST, ast.expr]]
        match site.node:
            case ast.BinOp(left=left_operand, op=op, right=right) if not (
                _is_text(left_operand) or _is_text(right)
            ):
                operators = [(left_operand, op, right)]
            case ast.AugAssign(target=left_operand, op=op, value=right) if not _is_text(right):
                operators = [(left_operand, op, right)]
            case ast.BoolOp(op=op, values=[left_operand, right, *_]):
                operators = [(left_operand, op, right)]
            case ast.Compare(left=left_operand, ops=ops, comparators=others):
                operators = zip([left_operand, *others[:-1]], ops, others, strict=True)
            case _:
                return
        for first, operator, second in operators:
            old, new = swaps.get(type(operator), ("", ""))
            start, end = text.end(first), text.start(second)
            gap = text.piece(start, end)
            match = re.search(r"\s+".join(map(re.escape, old.split())), gap)
            if old and match and "#" not in gap:
                place, told = start + match.start(), (text.of(first), old, text.of(second), new)
                yield TextChange(place, start + match.end(), new, notices.format(*told))

    return act


def _constant(site: Site, text: SplicedText) -> Iterator[TextChange]:
    if not isinstance(site.node, ast.Constant) or site.in_table:
        return
    match value := site.node.value:
        case bool() if not (
            site.returns > 1 and isinstance(site.parent, ast.Return)
        ):  # which `_give_else` changes
            new = repr(not value)
        case int() | float() if not isinstance(value, bool) and value + 1 != value:
            new = repr(value + 1)
        case str():
            new = '""' if value else '"?"'
        case _:
            return
    around = site.parent if isinstance(site.parent, ast.expr | ast.stmt) else site.node
    notices = f"an example in which the {value!r} of `{text.of(around)}` matters"
    yield TextChange(text.start(site.node), text.end(site.node), new, notices)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


_ARITHMETIC: Final[Mapping[type[ast.AST], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
_EDGES: Final[Mapping[type[ast.AST], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
_CONNECTIVES: Final[Mapping[type[ast.AST], tuple[str, str]]] = {
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
# Most revealing first, as measured on 565 published functions by how many survivors another call detects (80 % of the
# negated conditions, 73 % of the returns, about half of the sums and constants).
OPERATORS: Final[dict[str, Operator]] = {
    "negated-condition": _negate,
    "other-return": _give_else,
    "arithmetic": _swap(
        _ARITHMETIC, "an example in which `{0} {1} {2}` is not the same with `{3}`"
    ),
    "constant": _constant,
    "early-return": _stop_early,
    "and-or": _swap(_CONNECTIVES, "an example in which only one of `{0}` and `{2}` holds"),
    "boundary": _swap(_EDGES, "an example where `{0}` equals `{2}`"),
}


T = TypeVar("T")
_Steps: TypeAlias = Generator[list[Attempt], Sequence[Outcome | None], T]
STAGE: Final = "mutation"
MOST_EXAMPLES: Final = 12
MOST_SHOWN: Final = 2
# Of an attempt: the bounds of its time limit in seconds, and its factor on the function's own time.
_AT_LEAST_S, _AT_MOST_S, _TIMES = 0.05, 0.25, 20
_EMPTY: Final = ("None", "0", "0.0", '""', "[]", "{}")
_NOTHINGS: Final = {
    bool: ("True", "False"),
    int: ("0",),
    float: ("0.0",),
    str: ('""',),
    list: ("[]",),
    dict: ("{}",),
}


@dataclass(frozen=True, slots=True)
class MutationResult:
    """The mutants that the examples detected; `usable` counts the examples that also agree in a shared worker.

    A stub that returns one of `stubs` passes every example. If the examples that one of `weak_stubs` passes are
    ignored, no two different results remain.
    """

    stubs: tuple[str, ...] = ()
    weak_stubs: tuple[str, ...] = ()
    survivors: tuple[Mutant, ...] = ()
    tried: int = 0
    mutant_count: int = 0
    usable: int = 0
    late: bool = False

    @property
    def is_whole(self) -> bool:
        """True if everything was tried."""
        return self.usable > 0 and self.tried == self.mutant_count

    @property
    def note(self) -> str:
        """A note on what was tried and what was not reached."""
        if not self.usable:
            return (
                "nothing tried: time was up"
                if self.late
                else "nothing tried: its examples take too long"
            )
        if not self.mutant_count:
            return "there is nothing in it to change"
        late = f"{self.tried} of {self.mutant_count} wrong bodies tried: time was up; "
        late = "" if self.tried == self.mutant_count else late
        bodies, noticed = (
            "wrong body" if self.tried == 1 else "wrong bodies",
            self.tried - len(self.survivors),
        )
        return f"{late}{noticed} of {self.tried} {bodies} noticed"


async def check_mutants(draft: Draft, trial: TrialTools) -> Draft:
    """Return the draft with findings about changes that its examples would not detect."""
    own, line = draft.loaded, draft.line
    if (reason := _unfit(draft, own)) or own is None:
        certain = findings(MutationResult(_echoed_parameters(draft)), draft.candidate.name, line)
        return draft.with_findings(STAGE, certain).skip(reason)
    outcome = await run_mutants(draft, own, trial)
    # What opens a file or reaches a host needs no examples, so those that it has cannot be too weak to join.
    opens = draft.policy == "agent" and await aside(draft.size, may_open, draft)
    is_weak = bool(outcome.stubs) and opens
    if draft.policy == "import":
        is_weak = bool(outcome.stubs or outcome.weak_stubs)
    trials = replace(draft.trials, is_unproven=draft.trials.is_unproven or is_weak)
    draft = replace(draft, unnoticed=outcome.survivors, mutants_tried=outcome.tried, trials=trials)
    draft = replace(draft, note=outcome.note, late=not outcome.is_whole)
    found = findings(outcome, own.function.name, line)
    return draft.with_findings(STAGE, found, is_mild=opens)


def _echoed_parameters(draft: Draft) -> tuple[str, ...]:
    """Return the parameters that every example returns, for a draft that waits for a package and cannot run."""
    function, examples = draft.own_function, draft.examples
    if function is None or not examples or not draft.has("needs-packages") or draft.shows(*TOO_FEW):
        return ()
    cases = read_cases(
        ((example.call, literal_value(example.expected)) for example in examples), function
    )
    names, is_float = function.parameters["properties"], promises_floats(function.returns)
    if len(cases) < len(examples):
        return ()
    return tuple(
        name
        for name in names
        if all(name in row and same(result, row[name], is_float=is_float) for row, result in cases)
    )


def _unfit(draft: Draft, own: TrialSubject | None) -> str:
    """Return why its examples cannot be tried on other bodies, or an empty text."""
    if own is None:
        return NOT_IMPORTED
    count, unproven = len(draft.examples), unprovable(own)
    if unproven or not count:
        return _NO_PROOF[unproven]
    if draft.shows(*HOLLOW):
        return NOTHING_YET
    if draft.shows(*TOO_FEW):
        return "its examples are too few"
    are_wrong = draft.trials.disagreements or draft.trials.agreed < min(count, MOST)
    return "its examples do not agree yet" if are_wrong else ""


_NO_PROOF: Final = {
    "": "there are no examples",
    "effects": OUTSIDE,
    "chance": "chance or the clock decides its result",
    "no-parameters": "it takes nothing that an example could vary",
    "no-result": "it gives no result",
}


async def run_mutants(draft: Draft, subject: TrialSubject, trial: TrialTools) -> MutationResult:
    """Return what the examples detect, tried in one worker within a time limit."""
    function, text = subject.function, subject.modules[subject.function.module].text
    hollow, changed = await aside(len(text), _other_bodies, draft, function, text)
    steps, found, known = _try_bodies(draft, function, hollow, changed), list[MutationResult](), 0

    def more(outcomes: Sequence[Outcome | None]) -> Sequence[Attempt]:
        """Return the next attempts, given the outcomes of all previous ones; empty at the end."""
        nonlocal known
        new, known = outcomes[known:], len(outcomes)
        try:
            return () if found else steps.send(new)
        except StopIteration as end:
            found.append(end.value)
            return ()

    work = Attempts(function.name, next(steps), _AT_MOST_S, more)
    outcomes = [*await trial.attempt(function, subject.modules, work, draft.rules.mutation_s)]
    while not found:  # attempts that were not reached have no outcome
        outcomes += [None] * len(more(outcomes))
    return found[0]


def _other_bodies(
    draft: Draft, function: Function, text: str
) -> tuple[dict[str, Mutant], tuple[Mutant, ...]]:
    """Return the stubs by what they return, and the mutants.

    Stubs return None, the first expected result, and empty values of the expected types.
    """
    expected = map(literal_value, map(expectation, draft.examples[:MOST_EXAMPLES]))
    values = [value for value in expected if type(value) in _NOTHINGS]
    nothings = [nothing for value in values for nothing in _NOTHINGS[type(value)]]
    hollow = stubs(text, function.name, ["None", *map(repr, values[:1]), *nothings])
    return hollow, mutants(text, function.name, draft.rules.max_mutants)


def _try_bodies(
    draft: Draft, function: Function, hollow: Mapping[str, Mutant], all_mutants: Sequence[Mutant]
) -> _Steps[MutationResult]:
    """Try stubs on every example, then mutants on the first example, then the survivors on the others.

    If an example takes longer than the limit, no mutants are tried: a mutant would survive examples that did not run.
    """
    examples = draft.examples[:MOST_EXAMPLES]
    is_float, each_s = promises_floats(function.returns), _AT_MOST_S

    def agreement(
        texts: Sequence[Mutant | None], examples: Sequence[Example | GivenExample]
    ) -> _Steps[list[list[bool | None]]]:
        """Return one row per text: whether each example agrees; None if it was not reached."""
        nonlocal each_s
        pairs, width = list(product(texts, examples)), len(examples)
        asked = [
            Attempt(Evaluation(one.setup, one.call), text.text if text else None, each_s)
            for text, one in pairs
        ]
        outcomes = (yield asked) if asked else ()
        first = outcomes[0] if outcomes else None
        spent_s = 0.0 if first is None or isinstance(first, Refused) else first.seconds
        each_s = min(each_s, max(_AT_LEAST_S, _TIMES * spent_s))
        agreed = [
            None if outcome is None else agrees(example, outcome, is_float=is_float)
            for (_text, example), outcome in zip(pairs, outcomes, strict=True)
        ]
        return [agreed[at * width : (at + 1) * width] for at in range(len(texts))]

    own, *others = yield from agreement([None, *hollow.values()], examples)
    usable = [at for at, agreed in enumerate(own) if agreed]
    if not usable:
        return MutationResult(late=None in own)
    passed = dict(zip(hollow, others, strict=True))
    passing = tuple(value for value, row in passed.items() if all(row))
    weak_stubs = tuple(
        value
        for value, row in passed.items()
        if value not in passing and _spoils(value, row, examples)
    )
    if len(usable) < len(examples):  # it is unknown which changes the slow examples would detect
        return MutationResult(
            passing, weak_stubs, mutant_count=len(all_mutants), usable=len(usable)
        )
    verdicts = [row[0] for row in (yield from agreement(all_mutants, examples[:1]))]
    alive = [mutant for mutant, agreed in zip(all_mutants, verdicts, strict=True) if agreed]
    rows = yield from agreement(alive, examples[1:])
    survivors = [mutant for mutant, row in zip(alive, rows, strict=True) if all(row)]
    missed = verdicts.count(None) + sum(None in row and False not in row for row in rows)
    survivors.sort(key=lambda mutant: (list(OPERATORS).index(mutant.operator), mutant.line))
    return MutationResult(
        passing,
        weak_stubs,
        tuple(survivors),
        len(all_mutants) - missed,
        len(all_mutants),
        len(usable),
    )


def _spoils(
    value: str, passed: Sequence[bool | None], examples: Sequence[Example | GivenExample]
) -> bool:
    """Check whether the examples that this stub fails have fewer than two results; boolean stubs do not count."""
    failed = [example for example, agreed in zip(examples, passed, strict=True) if not agreed]
    promises = {one.raises or one.expected.strip() for one in failed}
    is_meant = (value.isidentifier() or value in _EMPTY) and value not in ("True", "False")
    return is_meant and any(passed) and len(promises) < 2


def findings(result: MutationResult, name: str, line: int) -> Iterator[Finding]:
    """Yield the findings about surviving stubs and mutants."""
    for value in result.stubs[:1]:
        message = f"a `{name}` with a body of only {fence(f'return {value}', 120)} would pass every example"
        fix = f"add an example with a result other than {fence(value, 80)}"
        if value.isidentifier() and value not in _EMPTY:
            fix += ", or one that looks at what else the function did, such as a file that it wrote"
        yield Finding("stub-passes", message, fix, line, evidence=(Evidence(f"return {value}"),))
    for value in result.weak_stubs[: 0 if result.stubs else 1]:
        message = f"all examples of `{name}` but those of one result would also pass if its body were only"
        fix = f"add an example with another result, which is not {fence(value, 80)}"
        stub = Evidence(f"return {value}")
        yield Finding(
            WEAK_EXAMPLES, f"{message} {fence(f'return {value}', 120)}", fix, line, evidence=(stub,)
        )
    for survivor in result.survivors[:MOST_SHOWN]:
        before, after = survivor.before.strip(), survivor.after.strip()
        was = (
            f" in place of {fence(from_difference(before, after, 120), 120)}"
            if before
            else " added"
        )
        shown = fence(from_difference(after, before, 120), 120)
        message = f"with {shown}{was}, every example of `{name}` still agrees"
        fix, change = f"add {survivor.notices}", Evidence(survivor.diff)
        yield Finding(WEAK_EXAMPLES, message, fix, line + survivor.line, evidence=(change,))
