"""Mutants of one function: its module's text with one small change, or with a stub as the body.

Pure: text in, texts out, nothing runs. Everything but the change stays the same, byte for byte, and each mutant knows
the kind of example that would detect it. Places that an example can hardly see are left out: the signature,
docstrings, what is raised, asserted or reported, and f-strings, because Python does not give their inner positions.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, TypeAlias

from .tree import FunctionNode, body, find, first_line, parameters, parse

_WORD: Final = re.compile(rb"\w")
_MOST_IN_A_TABLE: Final = 4
_UNSEEN = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments, ast.expr_context, ast.operator, ast.pattern)
Condition: TypeAlias = tuple[ast.expr, bool]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed text; `line` counts from the function's first, `notices` is the kind of example that would notice.

    `old` is the piece that was replaced, as it is written.
    """

    operator: str
    text: str
    line: int
    before: str
    after: str
    notices: str
    old: str

    @property
    def diff(self) -> str:
        """The change as the lines of a diff."""
        removed = [f"-{line}" for line in self.before.split("\n")] if self.before else []
        return "\n".join([*removed, *(f"+{line}" for line in self.after.split("\n"))])


@dataclass(frozen=True, slots=True)
class TextChange:
    """A piece of a text, as bytes from `start` to `end`, and its replacement."""

    start: int
    end: int
    new: str
    notices: str


class SplicedText:
    """A text in which the positions of its tree's nodes can be found and changed."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", self._bytes))]

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Return where a node begins, decorators included."""
        line = first_line(node) if isinstance(node, ast.stmt) else node.lineno
        return self._starts[line - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return where a node ends."""
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def piece(self, start: int, end: int) -> str:
        """Return the text between two positions."""
        return self._bytes[start:end].decode()

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Return a node as it is written, in one line."""
        shown = " ".join(self.piece(self.start(node), self.end(node)).split())
        return shown if len(shown) <= 60 else f"{shown[:59]}…"

    def line_start(self, place: int) -> int:
        """Return where the line of a position begins."""
        return self._bytes.rfind(b"\n", 0, place) + 1

    def line_end(self, place: int) -> int:
        """Return where the line of a position ends, before the line break."""
        position = self._bytes.find(b"\n", place)
        return len(self._bytes) if position < 0 else position

    def mutant(self, operator: str, change: TextChange, node: FunctionNode) -> Mutant:
        """Return the text with a change."""
        ahead, behind = self._bytes[: change.start], self._bytes[change.end :]
        glue = b" " if _WORD.match(ahead[-1:]) and _WORD.match(change.new.encode()) else b""  # `return[1]`, `if(a)`
        new = ahead + glue + change.new.encode() + behind
        first, last = self.line_start(change.start), self.line_end(change.end)
        before = self.piece(first, last)
        after = new[first : last + len(new) - len(self._bytes)].decode()
        if after.startswith(f"{before}\n"):  # a line was added
            before, after = "", after[len(before) + 1 :]
        elif after.endswith(f"\n{before}"):
            before, after = "", after[: -len(before) - 1]
        line = self._bytes.count(b"\n", 0, change.start) + 1 - node.lineno
        old = self.piece(change.start, change.end)
        return Mutant(operator, new.decode(), line, before, after, change.notices, old)


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


def sites(function: FunctionNode) -> Iterator[Site]:
    """Yield every place of a function's body, in the order of its text."""
    statements = body(function)
    returns = sum(isinstance(node, ast.Return) for statement in statements for node in ast.walk(statement))
    waiting = [Site(node, function, node, returns=returns) for node in reversed(statements)]
    while waiting:
        site = waiting.pop()
        if (
            isinstance(site.node, _UNSEEN)
            or (isinstance(site.node, ast.Constant) and isinstance(site.parent, ast.Expr))
            or _tells_progress(site.node)
        ):
            continue
        yield site
        waiting += reversed([_inside(site, field, child) for field, child in _children(site.node)])


def _tells_progress(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="progress"))):
            return True
        case _:
            return False


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def _inside(site: Site, field: str, child: ast.AST) -> Site:
    node = site.node
    return replace(
        site,
        node=child,
        parent=node,
        statement=child if isinstance(child, ast.stmt) else site.statement,
        condition=_condition(site, field),
        in_while=site.in_while or isinstance(node, ast.While),
        in_table=site.in_table or _is_table(node) or _is_row(site),
    )


def _condition(site: Site, field: str) -> Condition | None:
    if isinstance(site.node, ast.If | ast.IfExp) and field != "test":
        return site.node.test, field == "body"
    return site.condition


def _is_row(site: Site) -> bool:
    """Check for a case of many that only gives its value another name: a table, written as branches."""
    match site.parent, site.node:
        case ast.Match(cases=cases), ast.match_case(body=[ast.Assign() | ast.Return()]):
            return len(cases) > _MOST_IN_A_TABLE
        case _:
            return False


def _is_table(node: ast.AST) -> bool:
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items) | ast.Dict(values=items):
            return len(items) > _MOST_IN_A_TABLE
        case _:
            return False


MOST_ARGUMENTS: Final = 3  # that a stub hands back


def stubs(text: str, name: str, constants: Sequence[str]) -> dict[str, Mutant]:
    """Return stubs of the function that return a constant, or an argument unchanged, by what they return."""
    tree = parse(_normal(text))
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    if node is None or not body(node):
        return {}
    first, whole = body(node)[0], SplicedText(_normal(text))
    names = [parameter.arg for parameter in parameters(node)[:MOST_ARGUMENTS]]
    start = whole.start(first)
    lead = whole.piece(whole.line_start(start), start)
    by_value = {}
    for value in dict.fromkeys([*names, *constants]):
        new = f"return {value}; " if lead.strip() else f"return {value}\n{lead}"
        notices = f"an example with a result other than {f'`{value}` itself' if value in names else value}"
        by_value[value] = whole.mutant("stub", TextChange(start, start, new, notices), node)
    return by_value


def mutants(text: str, name: str, most: int) -> tuple[Mutant, ...]:
    """Return up to `most` mutants, the most telling first: one per operator in turn, those in a `while` at the end."""
    tree = parse(_normal(text))
    node = find(tree, name) if isinstance(tree, ast.Module) else None
    if node is None:
        return ()
    whole, places = SplicedText(_normal(text)), list(sites(node))
    by_operator: list[list[tuple[bool, Mutant]]] = []
    for operator, act in OPERATORS.items():
        changes = [(site, change) for site in places for change in _changes(act, site, whole)]
        by_operator.append([(site.in_while, whole.mutant(operator, change, node)) for site, change in changes])
    in_turn = [entry for row in zip_longest(*by_operator) for entry in row if entry is not None]
    ordered = [mutant for late in (False, True) for in_while, mutant in in_turn if in_while is late]
    unlike = {mutant.text: mutant for mutant in reversed(ordered)}
    return tuple(mutant for mutant in ordered if unlike[mutant.text] is mutant)[:most]


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


Operator: TypeAlias = Callable[[Site, SplicedText], Iterator[TextChange]]


def _changes(act: Operator, site: Site, text: SplicedText) -> list[TextChange]:
    try:
        return list(act(site, text))
    except RecursionError:
        return []


def _give_else(site: Site, text: SplicedText) -> Iterator[TextChange]:
    """Yield a change of one of several results to None, or to the other truth value."""
    value = site.node.value if isinstance(site.node, ast.Return) and site.returns > 1 else None
    if value is not None:
        answer = value.value if isinstance(value, ast.Constant) else ...
        if answer is not None:
            new = repr(not answer) if isinstance(answer, bool) else "None"
            yield TextChange(text.start(value), text.end(value), new, _reaching(site, text))


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
        place, place, new, f"an example in which a second round of `for … in {text.of(site.node.iter)}` matters"
    )


def _arithmetic(site: Site, text: SplicedText) -> Iterator[TextChange]:
    match site.node:
        case ast.BinOp(left=left_operand, op=op, right=right) if not (_is_text(left_operand) or _is_text(right)):
            operands, suffix = (left_operand, right), ""
        case ast.AugAssign(target=left_operand, op=op, value=right) if not _is_text(right):
            operands, suffix = (left_operand, right), "="
        case _:
            return
    if type(op) in ARITHMETIC:
        old, new = ARITHMETIC[type(op)]
        notices = f"an example in which `{text.of(left_operand)} {old} {text.of(right)}` is not the same with `{new}`"
        yield from _between(*operands, (old + suffix, new + suffix), notices, text)


def _connective(site: Site, text: SplicedText) -> Iterator[TextChange]:
    if isinstance(site.node, ast.BoolOp):
        swap = ("and", "or") if isinstance(site.node.op, ast.And) else ("or", "and")
        left_operand, right = site.node.values[:2]
        notices = f"an example in which only one of `{text.of(left_operand)}` and `{text.of(right)}` holds"
        yield from _between(left_operand, right, swap, notices, text)


def _boundary(site: Site, text: SplicedText) -> Iterator[TextChange]:
    if isinstance(site.node, ast.Compare):
        for left_operand, op, right in _compared(site.node):
            if type(op) in BOUNDARIES:
                notices = f"an example where `{text.of(left_operand)}` equals `{text.of(right)}`"
                yield from _between(left_operand, right, BOUNDARIES[type(op)], notices, text)


def _constant(site: Site, text: SplicedText) -> Iterator[TextChange]:
    if not isinstance(site.node, ast.Constant) or site.in_table or _is_answer(site):
        return
    value = site.node.value
    new = _replacement(value)
    if new is not None:
        around = site.parent if isinstance(site.parent, ast.expr | ast.stmt) else site.node
        notices = f"an example in which the {value!r} of `{text.of(around)}` matters"
        yield TextChange(text.start(site.node), text.end(site.node), new, notices)


def _is_answer(site: Site) -> bool:
    """Check whether `_give_else` already changes this place."""
    return site.returns > 1 and isinstance(site.parent, ast.Return) and isinstance(getattr(site.node, "value", 0), bool)


def _replacement(value: object) -> str | None:
    match value:
        case bool():
            return repr(not value)
        case int() | float():
            return repr(value + 1) if value + 1 != value else None
        case str():
            return '""' if value else '"?"'
        case _:
            return None


def _between(
    left_operand: ast.expr, right: ast.expr, swap: tuple[str, str], notices: str, text: SplicedText
) -> Iterator[TextChange]:
    """Yield the change that swaps the operator between two operands."""
    start, end = text.end(left_operand), text.start(right)
    gap = text.piece(start, end)
    match = re.search(r"\s+".join(map(re.escape, swap[0].split())), gap)
    if match and "#" not in gap:
        yield TextChange(start + match.start(), start + match.end(), swap[1], notices)


def _compared(node: ast.Compare) -> Iterator[tuple[ast.expr, ast.cmpop, ast.expr]]:
    return zip([node.left, *node.comparators[:-1]], node.ops, node.comparators, strict=True)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _reaching(site: Site, text: SplicedText) -> str:
    """Return the kind of example that reaches a place."""
    if site.condition is None:
        return f"an example that reaches `{text.of(site.statement)}`"
    test, holds = site.condition
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)) if holds:
            return f"an example where `{name}` is empty"
        case ast.Compare(left=left_operand, ops=[ast.Eq()], comparators=[right]) if holds:
            return f"an example where `{text.of(left_operand)}` is `{text.of(right)}`"
        case _:
            return f"an example where `{text.of(test)}` {'holds' if holds else 'does not hold'}"


ARITHMETIC: Final[dict[type[ast.operator], tuple[str, str]]] = {
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
BOUNDARIES: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
# Most telling first, as measured on 565 published functions: how many survivors another call tells apart
# (80 % of the negated conditions, 73 % of the returns, about half of the sums and constants).
OPERATORS: Final[dict[str, Operator]] = {
    "negated-condition": _negate,
    "other-return": _give_else,
    "arithmetic": _arithmetic,
    "constant": _constant,
    "early-return": _stop_early,
    "and-or": _connective,
    "boundary": _boundary,
}
