"""Lines of memory that a new fact makes untrue: how many are found, and how many are pointed at wrongly.

Reads the pairs in `tests/data`: a block, a new fact, and the numbers of the lines that it makes untrue. A seed
draws the half on which no rule was made. A pair counts as right if the lines named are those, and no other.

    python -m benchmarks.contradictions [--language de] [--half open|held] [--errors]
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_core.memory.contradictions import contradicted

DATA: Final = Path(__file__).parents[1] / "tests" / "data"
LANGUAGES: Final = ("en", "de", "fr", "es")
_SEED: Final = 20261121


@dataclass(frozen=True, slots=True)
class Pair:
    """A block, a new fact, and the lines, from 1, that it makes untrue."""

    block: tuple[str, ...]
    fact: str
    untrue: frozenset[int]


@dataclass(frozen=True, slots=True)
class Figures:
    """The contradictions that were found, and the pairs that got false advice."""

    contradictions: int
    found: int
    pairs: int
    misled: int

    def __str__(self) -> str:
        return (
            f"found {self.found} of {self.contradictions} ({self.found / max(self.contradictions, 1):.1%}), "
            f"false advice in {self.misled} of {self.pairs} pairs ({self.misled / self.pairs:.1%})"
        )


def pairs(language: str, half: str) -> list[Pair]:
    """Return the pairs of a language in a half: `open`, or `held` back while the rules were made."""
    rows = [json.loads(line) for line in (DATA / f"contradictions.{language}.jsonl").read_text("utf-8").splitlines()]
    order = random.Random(_SEED).sample(range(len(rows)), len(rows))
    chosen = order[: len(rows) // 2] if half == "open" else order[len(rows) // 2 :]
    return [Pair(tuple(rows[n]["block"]), rows[n]["fact"], frozenset(rows[n]["untrue"])) for n in sorted(chosen)]


def measured(rows: Sequence[Pair], *, show: bool = False) -> Figures:
    """Return the figures of some pairs."""
    found = misled = 0
    for row in rows:
        named = {place.line + 1 for place in contradicted(row.block, row.fact)}
        found += bool(row.untrue) and row.untrue <= named
        misled += bool(named - row.untrue)
        if show and named != row.untrue:
            print(f"  {sorted(named)} instead of {sorted(row.untrue)}: {row.fact} <- {' | '.join(row.block)}")
    return Figures(sum(bool(row.untrue) for row in rows), found, len(rows), misled)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=LANGUAGES)
    parser.add_argument("--half", choices=("open", "held"))
    parser.add_argument("--errors", action="store_true", help="show the errors of the open half")
    given = parser.parse_args(arguments)
    for language in [given.language] if given.language else LANGUAGES:
        for half in [given.half] if given.half else ("open", "held"):
            rows = pairs(language, half)
            print(f"{language}, {half}: {measured(rows, show=given.errors and half == 'open')}")


if __name__ == "__main__":
    main()
