"""`make bench-compare BASE=rev`, or `python -m benchmarks.compare BASE [NAME …]`: compare two commits.

Each round runs every benchmark once for the base and once for the working tree, in changing order, so both meet the
same machine; `BASE` is checked out into a temporary folder. A difference is reported only if chance is an unlikely
explanation: if the interval that holds the median ratio in 95 of 100 cases excludes 1. Everything else is noise.
"""

import argparse
import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeAlias

from .__main__ import BENCHES, LAST_LINES

HERE: Final = Path(__file__).resolve().parents[1]
LEAST_ROUNDS: Final = 6  # with fewer, no interval holds the median in 95 of 100 cases
_CHANCE: Final = 0.05
_NAMES: Final = ("turn", "reload", "sandbox", "startup")

Figures: TypeAlias = dict[str, float]  # by the text of the row
Rounds: TypeAlias = list[tuple[Figures, Figures]]  # of the base and of the working tree


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure here compared with the base: the median ratio and the interval that holds it."""

    what: str
    base: float
    here: float
    ratio: float
    lowest: float
    highest: float

    @property
    def verdict(self) -> str:
        """True if it is a difference."""
        if self.lowest <= 1 <= self.highest:
            return "noise"
        return "faster" if self.ratio < 1 else "SLOWER"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", default=[*_NAMES], help=", ".join(BENCHES)
    )
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in BENCHES]:
        parser.error(f"there is no bench {unknown[0]!r}; there are {', '.join(BENCHES)}")
    if given.rounds < LEAST_ROUNDS:
        parser.error(f"fewer than {LEAST_ROUNDS} rounds do not tell a difference from noise")
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("Stopped.")
    )  # like Ctrl-C, so that the checkout is removed
    with _checked_out(given.base) as base:
        differences = [
            row
            for name in given.names
            for row in differing(list(_rounds(name, base, given.rounds)))
        ]
    if given.json:
        print(
            json.dumps(
                [asdict(row) | {"verdict": row.verdict} for row in differences], ensure_ascii=False
            )
        )
        return
    for row in differences:
        spread = f"{row.ratio:5.2f} ({row.lowest:.2f} to {row.highest:.2f})"
        print(f"{row.what:52} {row.base:10.3f} → {row.here:10.3f}   {spread:24} {row.verdict}")


def differing(rounds: Rounds) -> list[Difference]:
    """Return each figure that both have with its ratio; the interval comes from order statistics."""
    return [
        _difference(what, rounds)
        for what in rounds[0][1]
        if all(what in base for base, _here in rounds)
    ]


def _difference(what: str, rounds: Rounds) -> Difference:
    bases, heres = [base[what] for base, _here in rounds], [here[what] for _base, here in rounds]
    ratios = sorted(here / base for base, here in zip(bases, heres, strict=True))
    left_out = _left_out(len(ratios))
    base, here, ratio = (statistics.median(figures) for figures in (bases, heres, ratios))
    return Difference(what, base, here, ratio, ratios[left_out], ratios[-1 - left_out])


def _left_out(count: int) -> int:
    """Return how many ratios can be dropped at each end while the rest still hold the median often enough."""
    outside, out = 0.0, 0
    while True:
        outside += 2 * math.comb(count, out) / 2**count
        if outside > _CHANCE:
            return max(0, out - 1)
        out += 1


@contextmanager
def _checked_out(revision: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-base-") as folder:
        tree = Path(folder, "tree")
        _git("worktree", "add", "--detach", "--quiet", str(tree), revision)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> None:
    done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip())


def _rounds(name: str, base: Path, rounds: int) -> Iterator[tuple[Figures, Figures]]:
    for number in range(rounds):
        print(f"{name}, round {number + 1} of {rounds} …", file=sys.stderr, flush=True)
        order = (base, HERE) if number % 2 else (HERE, base)
        taken = {tree: _figures(name, tree) for tree in order}
        yield taken[base], taken[HERE]


def _figures(name: str, tree: Path) -> Figures:
    """Return the figures of one run of a benchmark: the ratio to its reference if there is one, else the time."""
    command: Sequence[str] = [sys.executable, "-m", "benchmarks", name, "--json"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if done.returncode:
        sys.exit("\n  ".join([f"{name} broke in {tree}:", *done.stderr.splitlines()[-LAST_LINES:]]))
    rows: Sequence[Mapping[str, float | str | None]] = json.loads(done.stdout)["rows"]
    return {str(row["what"]): float(row["ratio"] or row["ms"] or 0) for row in rows}


if __name__ == "__main__":
    main()
