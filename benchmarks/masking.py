"""`python -m benchmarks.masking [--turns N] [--seeds N] [--json]`: does masking reveal which functions help or harm?

Planted: of 40 functions, 10 reduce the tokens of a turn that shows them, 10 increase them, 20 do nothing. Each turn has
a request of one of five kinds, from short to long, probably needs eight of the functions, and varies by a third. The
masked share and the size of the effect vary; a row reports how many of the 40 were classified wrongly.
"""

import argparse
import math
import random
import sys
from collections.abc import Sequence

from agent_core.functions.service.function_facts import effects
from agent_core.storage import ExposedTurn

from .measure import Row, show

FUNCTIONS, HELPING, HARMING, NEEDED = 40, 10, 10, 8
_SHARES, _EFFECTS = (0.1, 0.2, 0.3, 0.5), (0.25, 0.4, 0.5)
_NOISE, _KIND = 0.35, 0.3


def main() -> None:
    given = options(sys.argv[1:])
    rows = []
    for share in _SHARES:
        for effect in _EFFECTS:
            wrong = [named_wrongly(planted(seed, share, effect, given.turns)) for seed in range(given.seeds)]
            name = f"{share:.0%} masked, effect {effect:.0%}, {given.turns} turns: named wrongly, of {FUNCTIONS}"
            rows.append(Row(f"{name} ({min(wrong)} to {max(wrong)})", sum(wrong) / len(wrong), unit=""))
    show(rows, as_json=given.json)


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command-line options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.masking", description=__doc__)
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def worth_of(number: int) -> str:
    """Return the effect of a planted function."""
    return "helps" if number < HELPING else "harms" if number < HELPING + HARMING else "unknown"


def planted(seed: int, share: float, effect: float, turns: int) -> list[ExposedTurn]:
    """Return turns of a simulated model.

    A helpful function reduces the tokens by the share `effect`; a harmful one increases them by the same factor.
    """
    chance = random.Random(seed)
    step = -math.log(1 - effect)
    rows = []
    for turn in range(turns):
        needed = chance.sample(range(FUNCTIONS), NEEDED)
        masked = {number for number in needed if chance.random() < share}
        shown = {*needed} - masked
        worths = [worth_of(number) for number in shown]
        log = math.log(6_000) + _KIND * chance.randrange(5) + chance.gauss(0, _NOISE)
        log += step * (worths.count("harms") - worths.count("helps"))
        with_it, without = (frozenset((f"f{number}", "") for number in side) for side in (shown, masked))
        tokens = round(math.exp(log))
        rows.append(ExposedTurn(f"t{turn}", "simulated", with_it, without, max(1, tokens // 2_000), tokens))
    return rows


def named_wrongly(turns: Sequence[ExposedTurn]) -> int:
    """Return how many of the planted functions are classified wrongly."""
    found = effects(turns)
    named = [found[f"f{number}", ""].worth if (f"f{number}", "") in found else "unknown" for number in range(FUNCTIONS)]
    return sum(worth != worth_of(number) for number, worth in enumerate(named))


if __name__ == "__main__":
    main()
