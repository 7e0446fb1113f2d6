"""What a statement asks of its reader, for `make check`: today's breaches are listed, and the list may only shrink.

Run: `python -m tests.kit.house`. With `--renew` the list is written anew, which is refused where it would grow;
with `--list RULE` each place is printed.

Forbidden are conditional expressions inside others (`nested`), several values assigned to several names at once
(`unpacked`), a literal that is spread at once (`starred`), a second block of constants below a definition (`seam`), and
constants whose name is no noun (`constant`). Conditional expressions, comprehensions, lambdas and heavy statements are
counted for 1,000 statements of a room: each has its place, and too many of them are a text that nobody can read aloud.
"""

import argparse
import ast
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

PACKAGES: Final = ("agent_core", "functions", "knapper", "knapper_ext", "meta_functions", "sandbox")
ROOMY: Final = (
    "agent_core",
    "knapper",
    "knapper_ext",
)  # packages whose folders are rooms of their own
BREACHES_FILE: Final = "tests/kit/house_breaches.txt"
LIMITS: Final = {"conditional": 30.0, "comprehension": 40.0, "lambda": 4.0, "heavy": 20.0}
HEAVY_OPERATIONS: Final = 5
LEAST_STATEMENTS: Final = 150  # a smaller room has no rate that says anything

Breaches: TypeAlias = dict[
    tuple[str, str], float
]  # by file and rule, or by room and rule for the rates

_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OPERATIONS: Final = (
    ast.Await,
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.IfExp,
    ast.Lambda,
    ast.NamedExpr,
    ast.Subscript,
    *_COMPREHENSIONS,
)
_COMPOUND: Final = (
    ast.AsyncFor,
    ast.AsyncFunctionDef,
    ast.AsyncWith,
    ast.ClassDef,
    ast.For,
    ast.FunctionDef,
    ast.If,
    ast.Match,
    ast.Try,
    ast.While,
    ast.With,
)
_PREPOSITION_NAME: Final = re.compile(
    r"_*(AFTER|ALL|AS|AT|BEFORE|BESIDE|BY|EACH|FOR|FROM|IN|KEPT|LARGEST|LONGEST|MOST|OF|ON|OTHERS|PER|REST|SHOWN|TO"
    r"|WITH|WITHOUT)(_|$)"
)


def read_places(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the rule and the line of each place of a module that a rule is about."""
    yield from _constant_places(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            yield "conditional", node.lineno
            if any(isinstance(part, ast.IfExp) for part in ast.iter_child_nodes(node)):
                yield "nested", node.lineno
        elif isinstance(node, _COMPREHENSIONS):
            yield "comprehension", node.lineno
        elif isinstance(node, ast.Lambda):
            yield "lambda", node.lineno
        elif isinstance(node, ast.Starred):
            if isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Tuple | ast.List):
                yield "starred", node.lineno
        elif isinstance(node, ast.stmt) and not isinstance(node, _COMPOUND):
            yield from _statement_places(node)


def _statement_places(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    if sum(isinstance(part, _OPERATIONS) for part in ast.walk(statement)) >= HEAVY_OPERATIONS:
        yield "heavy", statement.lineno
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple | ast.List):
        values = {ast.unparse(value) for value in statement.value.elts}
        for target in statement.targets:
            if isinstance(target, ast.Tuple | ast.List):
                names = {ast.unparse(name) for name in target.elts}
                if names.isdisjoint(values):  # `a, b = b, a` is what such an assignment is for
                    yield "unpacked", statement.lineno


def _constant_places(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield constants without a noun, and where a second block of constants stands below a definition."""
    is_below = False
    constants = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_below = True
            constants = 0
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            if is_below:
                constants += 1
            if constants == 2:
                yield "seam", node.lineno
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and _is_without_noun(target.id):
                    yield "constant", node.lineno


def _is_without_noun(name: str) -> bool:
    return name.isupper() and _PREPOSITION_NAME.match(name) is not None


def find_room(path: Path) -> str:
    """Return the room of a file: a folder of a large package, else the package."""
    if path.parts[0] in ROOMY and len(path.parts) > 2:
        return "/".join(path.parts[:2])
    return path.parts[0]


def measure(root: Path) -> tuple[Breaches, dict[str, list[str]]]:
    """Return the breaches of the packages below a folder, and for each rule where it is met."""
    broken: Counter[tuple[str, str]] = Counter()
    places: dict[str, list[str]] = {}
    statements: Counter[str] = Counter()
    rated: Counter[tuple[str, str]] = Counter()
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            path = file.relative_to(root)
            room = find_room(path)
            tree = ast.parse(file.read_bytes())
            statements[room] += sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
            for rule, line in read_places(tree):
                places.setdefault(rule, []).append(f"{path.as_posix()}:{line}")
                if rule in LIMITS:
                    rated[room, rule] += 1
                else:
                    broken[path.as_posix(), rule] += 1
    breaches: Breaches = dict(broken)
    for (room, rule), count in rated.items():
        rate = 1_000 * count / statements[room]
        if statements[room] >= LEAST_STATEMENTS and rate > LIMITS[rule]:
            breaches[room, rule] = math.ceil(rate)  # or a statement that goes would be a breach
    return breaches, places


def read_list(file: Path) -> Breaches:
    """Return the listed breaches: lines of a place, a rule and a figure."""
    listed: Breaches = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        place, rule, figure = line.split()
        listed[place, rule] = float(figure)
    return listed


def write_list(file: Path, breaches: Breaches) -> None:
    """Write breaches, sorted, a line each."""
    lines = [f"{place} {rule} {figure:g}\n" for (place, rule), figure in sorted(breaches.items())]
    file.write_text("".join(lines), encoding="utf-8")


def find_growth(listed: Breaches, found: Breaches) -> dict[str, float]:
    """Return by how much each rule is broken more often than the list has it, all places together.

    A file that moves takes its breaches along, so places are not compared; a rate counts by its room.
    """
    totals: dict[str, float] = defaultdict(float)
    for (_place, rule), figure in found.items():
        totals[rule] += figure if rule not in LIMITS else 0
    for (_place, rule), figure in listed.items():
        totals[rule] -= figure if rule not in LIMITS else 0
    for (room, rule), figure in found.items():
        if rule in LIMITS and figure > listed.get((room, rule), 0):
            totals[rule] += figure - listed.get((room, rule), 0)
    return {rule: growth for rule, growth in totals.items() if growth > 0}


def compare(listed: Breaches, found: Breaches, places: Mapping[str, list[str]]) -> list[str]:
    """Return a line for each difference between the list and what is here."""
    lines: list[str] = []
    for place, rule in sorted(listed.keys() | found.keys()):
        had = listed.get((place, rule), 0)
        has = found.get((place, rule), 0)
        if has > had:
            limit = f", above {LIMITS[rule]:g} for 1,000 statements" if rule in LIMITS else ""
            lines.append(f"{place}: {rule} {has:g}, and {had:g} stand in {BREACHES_FILE}{limit}")
            lines += [f"  {each}" for each in places[rule] if each.startswith(f"{place}:")]
        elif has < had:
            lines.append(f"{place}: {rule} {has:g} instead of {had:g}: the list can shrink")
    return lines


def main(root: Path) -> int:
    """Print what is broken more often than the list says, or write the list; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.kit.house", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="write the list, if it shrinks")
    parser.add_argument("--list", metavar="RULE", help="print where a rule is met")
    given = parser.parse_args()
    file = root / BREACHES_FILE
    found, places = measure(root)
    if given.list:
        print("\n".join(places.get(given.list, [])))
        return 0
    listed = read_list(file)
    if given.renew:
        growth = find_growth(listed, found)
        for rule, more in growth.items():
            print(
                f"{rule}: {more:g} more than listed, and the list may only shrink. Nothing was written."
            )
        if not growth:
            write_list(file, found)
        return 1 if growth else 0
    lines = compare(listed, found, places)
    if lines:
        print(*lines, "To write what shrank or moved: python -m tests.kit.house --renew", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
