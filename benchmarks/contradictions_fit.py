"""`python -m benchmarks.contradictions_fit PATH`: the weights of `memory/doubt.toml`, and what they find.

PATH is letta-evals' core memory tasks, a JSON line each: ten facts, and for a part of them a new fact and which of the
ten it supersedes. Notes are fitted on `tests/data/contradictions.fit.jsonl` and the open English pairs, sentences on
half of the sets of PATH; each fact of a set is also a plain addition to the nine others. A logistic regression; a
margin is added to the bias, for which false advice is rare. The other half is measured as the program is installed.
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.memory.doubt import kind_of, signals

from .contradictions import DATA, Pair, measured, pairs

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers

_MARGINS: Final = {"notes": 1.75, "sentences": 0.2}
_DECAYS: Final = {"notes": 2.0, "sentences": 1.0}
_SEED: Final = 7
_STEPS: Final = 30
_SMALL: Final = 0.05


def main() -> None:
    """Print the weights and the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contradictions_fit", description=__doc__)
    parser.add_argument("path", type=Path)
    path = parser.parse_args().path
    rows = (json.loads(line) for line in (DATA / "contradictions.fit.jsonl").read_text("utf-8").splitlines())
    notes = [Pair(tuple(row["block"]), row["fact"], frozenset(row["untrue"])) for row in rows]
    training = {"notes": [*notes, *pairs("en", "open")], "sentences": [pair for half in read(path, 0) for pair in half]}
    for kind, chosen in training.items():
        print(f"[{kind}]")
        print("".join(f"{name} = {weight}\n" for name, weight in fitted(chosen, kind).items()))
    for number, half in enumerate(("fitted on", "left out")):
        updates, additions = read(path, number)
        misled = measured(additions).misled
        print(f"# {half}: updates {measured(updates)}; additions: {misled} false of {len(additions)}")


def read(path: Path, half: int) -> tuple[list[Pair], list[Pair]]:
    """Return the updates, and the plain additions, of half of the sets of facts."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    sets = sorted({tuple(row["facts"]) for row in rows})
    random.Random(_SEED).shuffle(sets)
    chosen = {*sets[half::2]}
    updates = [
        Pair(tuple(row["facts"]), row["update"], frozenset(number + 1 for number in row["superseded_facts"]))
        for row in rows
        if "update" in row and tuple(row["facts"]) in chosen
    ]
    plain = sorted({tuple(row["facts"]) for row in rows if "update" not in row} & chosen)
    additions = [
        Pair(facts[:number] + facts[number + 1 :], fact, frozenset())
        for facts in plain
        for number, fact in enumerate(facts)
    ]
    return updates, additions


def fitted(chosen: Sequence[Pair], kind: str) -> dict[str, float]:
    """Return the weights of a kind, rounded, the margin taken off the bias."""
    rows, untrue = [], []
    for pair in chosen:
        for number, row in enumerate(signals(pair.block, pair.fact)):
            if kind_of(pair.block[number], pair.fact) == kind:
                rows.append(row)
                untrue.append(float(number + 1 in pair.untrue))
    names = [*rows[0]]
    weights = _regression(np.array([[float(row[name]) for name in names] for row in rows]), np.array(untrue), kind)
    named = dict(zip(names, weights, strict=True))
    named["bias"] -= _MARGINS[kind]
    return {name: round(float(weight), 1) for name, weight in named.items() if abs(weight) >= _SMALL}


def _regression(rows: Array, untrue: Array, kind: str) -> Array:
    """Return the weights of a logistic regression, found by Newton's method."""
    weights = np.zeros(rows.shape[1])
    decay = _DECAYS[kind] * np.eye(len(weights))
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (likely - untrue) + decay @ weights
        weights -= np.linalg.solve((rows * (likely * (1 - likely))[:, None]).T @ rows + decay, slope)
    return weights


if __name__ == "__main__":
    main()
