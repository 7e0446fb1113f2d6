"""The numbers that a description states as its rules, against those that the code knows in any form.

Pure. A rate, a limit or a price that is told and stands nowhere in the code is work that is not done. What names a
standard, a unit, a year or a form is no rule, and neither is a range that only bounds what comes in or goes out.
"""

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent_core.registry.typenames import Schema

from ..arguments.generation import Arguments
from ..arguments.schema_fit import fits
from ..tree import literal, nodes_of
from .code import literals
from .lexicon import relation_words
from .probes import Probe

_NUMBER = re.compile(
    r"(?<![\w.,:/#^*<>=+\[{-])(?<!\d )(?<![=<>≤≥] )(?P<number>\d{1,3}(?:[,_]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<share> ?%| per ?cent\b)?(?![\w/:^*=\]}]|-\w|[.,]\d| ?[x×*=<>+/]| \d)"
)
_SHOWN = re.compile(  # what is no rule, but shown
    r"`[^`]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|\[[^\]]*\]|\{[^}]*\}|\(\s*-?\d[\d.]*(?:,\s*-?\d[\d.]*)*\s*\)"
    r"|\bexamples?\b(?:[^\n]|\n(?!\s*\n))*|(?:\be\.g\.|\bi\.e\.|\bfor instance|\bsuch as|\blike\b)[^.;)\n]*"
    r"|[^.;\n]*(?:->|→|➞|=>|⇒|≈|==)[^.;\n]*",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"[-−]?\d[\d.,_]*\s?%?\s*(?:\(\w+\)\s*)?(?:\bto\b|\bthrough\b|-|–|—|\.{2,3}|…)\s*[-−]?\d[\d.,_]*\s?%?(?!\w)"
    r"|\bbetween\s+\d[\d.,_]*\s?%?\s*and\s*[-−]?\d[\d.,_]*"
)
_WORD_BEFORE = re.compile(r"([A-Za-z]+)[\s-]*$")
_WORD_BEHIND = re.compile(r"[\s-]*([A-Za-z]+)")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_TRIVIAL, _YEARS, _MOST_CALLS = frozenset({0.0, 1.0, 2.0}), range(1500, 2200), 3
_LARGEST, _MOST = 1e300, 400
_ABOVE = 1.5  # times a number that is stated
_WHOLE, _THOUSAND = 100, 1000


@dataclass(frozen=True, slots=True)
class Stated:
    """A number in a description; of a share, the percents."""

    value: float
    is_share: bool
    is_bound: bool  # of a range, which may bound what comes in or goes out
    shown: str


@lru_cache(maxsize=32)
def stated_numbers(description: str) -> tuple[Stated, ...]:
    """Return the numbers that a description states, without those that only name something."""
    prose = _SHOWN.sub(" ", description)
    bounds = [match.span() for match in _RANGE.finditer(prose)]
    found = []
    for match in _NUMBER.finditer(prose):
        value, is_share = float(re.sub(r"[,_]", "", match["number"])), bool(match["share"])
        if value not in _TRIVIAL and (is_share or not _is_name(prose, match, value)):
            is_bound = any(start <= match.start() < end for start, end in bounds)
            found.append(Stated(value, is_share, is_bound, match[0].strip()))
    return tuple(found)


def _is_name(prose: str, match: re.Match[str], value: float) -> bool:
    """Check whether a number names a standard, a form, a unit or a year."""
    words = relation_words()["stated"]
    before, behind = _WORD_BEFORE.search(prose[: match.start()]), _WORD_BEHIND.match(prose[match.end("number") :])
    first, then = before[1] if before else "", behind[1].casefold() if behind else ""
    is_named = (len(first) > 1 and first.isupper()) or first.casefold() in words["naming"]
    return is_named or then in words["forms"] or (value.is_integer() and int(value) in _YEARS)


@lru_cache(maxsize=32)
def unknown_numbers(tree: ast.Module, description: str) -> tuple[Stated, ...]:
    """Return the numbers that a description states and the code has in no form."""
    stated = [one for one in stated_numbers(description) if not one.is_bound]
    known, sizes = (_known(tree), _sizes(tree)) if stated else (frozenset[float](), frozenset[float]())
    return tuple(
        one
        for one in stated
        if not any(_is_in(form, known) for form in _forms(one)) and (one.is_share or one.value not in sizes)
    )


def _is_in(value: float, known: frozenset[float]) -> bool:
    return any(math.isclose(value, other, rel_tol=1e-9) for other in known)


def _forms(one: Stated) -> Iterator[float]:
    """Yield the numbers that may stand for one: a share as a part, the rest, or a divisor, a limit by one off."""
    value = one.value
    yield from (value, value / _WHOLE)
    if one.is_share:
        yield from (1 - value / _WHOLE, _WHOLE - value, 1 + value / _WHOLE, _WHOLE + value, _WHOLE / value)
        return
    yield from (value - 1, value + 1, value * _WHOLE, value * _THOUSAND, value / _THOUSAND, 1 / value)
    yield from (math.log10(value), math.log2(value), value / 2, value * 2, math.sqrt(value))


@lru_cache(maxsize=32)
def _known(tree: ast.Module) -> frozenset[float]:
    """Return the numbers of the code, also in its texts and names."""
    prose = {
        id(node.value) for node in nodes_of(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return frozenset(number for node in nodes_of(tree) if id(node) not in prose for number in _numbers_of(node))


def _numbers_of(node: ast.AST) -> Iterator[float]:
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() | float() as value):
            yield from [abs(float(value))] if abs(value) < _LARGEST else []
        case ast.Constant(value=str() | bytes() as value):
            text = value if isinstance(value, str) else value.decode("latin-1")
            yield from map(float, _DIGITS.findall(text)[:_MOST])
        case ast.BinOp() | ast.UnaryOp():
            is_literal, folded = literal(node)
            yield from (
                [abs(float(folded))]
                if is_literal and isinstance(folded, int | float) and abs(folded) < _LARGEST
                else []
            )
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            yield from map(float, (*_DIGITS.findall(name), *relation_words()["library"].get(name, ())))


def _sizes(tree: ast.Module) -> frozenset[float]:
    """Return the sizes of the texts and rows in the code, and of what two of them make together."""
    texts = [str(ast.literal_eval(text)) for text in literals(tree) if text[:1] in "\"'"]
    rows = [node.elts for node in nodes_of(tree) if isinstance(node, ast.List | ast.Tuple | ast.Set)]
    tables = [node.keys for node in nodes_of(tree) if isinstance(node, ast.Dict)]
    sizes = {float(len(one)) for one in (*texts, *(text.split() for text in texts), *rows, *tables)}
    return frozenset(sizes | {size * other for size in sizes for other in sizes})


def stated_calls(schema: Schema, examples: Sequence[Arguments], description: str) -> list[Probe]:
    """Return the first example with numbers above those that a description states, for each number that comes in."""
    limits = {one.value for one in stated_numbers(description) if not one.is_share}
    calls = [
        Probe(base | {name: type(base[name])(value * _ABOVE)}, "stated", -1, name)
        for base in examples[:1]
        for name in base
        if type(base[name]) in (int, float)
        for value in sorted(limits, reverse=True)
    ]
    return [probe for probe in calls if fits(probe.arguments, schema, schema)][:_MOST_CALLS]
