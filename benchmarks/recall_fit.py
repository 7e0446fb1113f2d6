"""`python -m benchmarks.recall_fit PATH [--embedding …]`: fit weights for the signals of `Recall`, and score them.

Fitted on the first two conversations of the file, rounded, and scored on all and on the others; a second score leaves
each conversation out in turn. The model is a softmax over the rows of a question, linear in the signals; it needs only
numpy.
"""

import argparse
import pickle
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from agent_core.memory.embedding import embedder
from agent_core.memory.search import weights

from .measure import ran_with
from .recall_data import MODELS, checked, load, model_named, reading

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers

FITTED_ON: Final = (0, 1)
_STEPS: Final = 200
_RATE: Final = 0.05
_DECAY: Final = 2e-3
_HARD: Final = 60
_CHANCE: Final = 30


@dataclass(frozen=True, slots=True)
class Case:
    """A question: its conversation, the signals of its rows, which rows answer it, and how many rows should."""

    talk: int
    category: int
    signals: dict[str, Array]
    answers: Array
    wanted: int


def main() -> None:
    given = options()
    cases = _cases(given)
    model = embedder(given.embedding)
    recipe = model.recipe if model is not None else "none"
    names = given.signals.split(",") if given.signals else [*weights("recall", recipe)]
    fitted = rounded(fit(cases, names, FITTED_ON))
    print("".join(f"{name} = {weight}\n" for name, weight in fitted.items()))
    every = sorted({case.talk for case in cases})
    print("first two, rounded:", told(cases, [(fitted, every)], every))
    print(
        "… read on the others:",
        told(cases, [(fitted, every)], [talk for talk in every if talk not in FITTED_ON]),
    )
    left_out = [(fit(cases, names, {*every} - {talk}), [talk]) for talk in every]
    print("leave one out:", told(cases, left_out, every))


def options() -> argparse.Namespace:
    """Return the file, the model and the signals; `--cache` keeps the signals between runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_fit", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--embedding", choices=MODELS, default="wordllama")
    parser.add_argument(
        "--signals", default="", help="names with commas; those of weights.toml if unset"
    )
    parser.add_argument(
        "--cache", type=Path, help="a file of this program's own, outside of the project"
    )
    return parser.parse_args()


def _cases(given: argparse.Namespace) -> list[Case]:
    """Return the measured cases, from the cache if its file and model match."""
    of = (str(given.path.resolve()), given.path.stat().st_mtime, given.embedding)
    if given.cache is not None and given.cache.exists():
        measured_of, cases = pickle.loads(given.cache.read_bytes())
        if measured_of != of:
            sys.exit(
                f"{given.cache} holds what was measured of {measured_of}, not of {of}. Name another file."
            )
        return list(cases)
    cases = ran_with(f"--embedding {given.embedding}", measured(given.path, given.embedding))
    if given.cache is not None:
        given.cache.write_bytes(pickle.dumps((of, cases)))
    return cases


async def measured(path: Path, embedding: Any) -> list[Case]:  # Any: a model's name
    """Return the signals of every question."""
    model = await model_named(embedding)
    cases = []
    for number, one in enumerate(load(path)):
        async with reading(one, model) as read:
            for question in read.questions:
                evidence, _ = await read.memory.gather(question.text)
                signals = await read.memory.signals(evidence)
                answers = np.array([row.utterance.seq in question.gold for row in evidence.rows])
                cases.append(Case(number, question.category, signals, answers, len(question.gold)))
            checked(read.memory.vectors)
    return cases


def fit(cases: Sequence[Case], names: Sequence[str], talks: Collection[int]) -> dict[str, float]:
    """Return the weights that make the answering rows most likely, against the hardest other rows and a random few."""
    chosen = [case for case in cases if case.talk in talks and case.answers.any()]
    few = [_some(case) for case in chosen]
    rows = np.vstack([_matrix(case, names)[some] for case, some in zip(chosen, few, strict=True)])
    scale = rows.std(0) + 1e-6
    rows = (rows - rows.mean(0)) / scale
    sizes = np.array([len(some) for some in few])
    starts = np.cumsum(sizes) - sizes
    goal = np.concatenate(
        [case.answers[some] / case.answers.sum() for case, some in zip(chosen, few, strict=True)]
    )
    weight, mean, square = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
    for step in range(1, _STEPS + 1):
        scores = rows @ weight
        likely = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
        likely /= np.repeat(np.add.reduceat(likely, starts), sizes)
        slope = rows.T @ (likely - goal) / len(chosen) + _DECAY * weight
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weight -= _RATE * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
    return dict(zip(names, (weight / scale).tolist(), strict=True))


def _some(case: Case) -> Array:
    """Return the rows that answer, those that a plain sum ranks first, and a few random ones (always the same)."""
    plain = sum(
        case.signals[name] for name in ("own", "window", "session_best", "length", "speaker")
    )
    plain = plain + case.signals.get("meaning", 0) - case.signals["asks"] / 2
    chance = np.random.default_rng(len(case.answers)).integers(0, len(case.answers), _CHANCE)
    return np.unique(np.r_[np.flatnonzero(case.answers), np.argsort(-plain)[:_HARD], chance])


def _matrix(case: Case, names: Sequence[str]) -> Array:
    return np.array([case.signals[name] for name in names]).T


def rounded(fitted: dict[str, float]) -> dict[str, float]:
    """Return the weights scaled to a maximum of 3, with one decimal; weights that become 0 are left out."""
    unit = max(abs(weight) for weight in fitted.values()) / 3
    return {name: value for name, weight in fitted.items() if (value := round(weight / unit, 1))}


def told(
    cases: Sequence[Case],
    used: Sequence[tuple[dict[str, float], Sequence[int]]],
    talks: Sequence[int],
) -> str:
    """Return the shares found at 5 and 10, of all questions and by category."""
    found: dict[int, list[tuple[float, float]]] = {}
    for weight, read in used:
        for case in cases:
            if case.talk in read and case.talk in talks:
                found.setdefault(case.category, []).append(_found(case, weight))
    every = _mean([pair for pairs in found.values() for pair in pairs])
    return " · ".join(
        [every, *(f"{category}: {_mean(pairs)}" for category, pairs in sorted(found.items()))]
    )


def _found(case: Case, weight: dict[str, float]) -> tuple[float, float]:
    order = np.argsort(-(_matrix(case, [*weight]) @ np.array([*weight.values()])), kind="stable")
    five, ten = (float(case.answers[order[:depth]].sum()) / case.wanted for depth in (5, 10))
    return five, ten


def _mean(pairs: Sequence[tuple[float, float]]) -> str:
    five, ten = np.mean(pairs, axis=0) * 100
    return f"{five:.1f} / {ten:.1f}"


if __name__ == "__main__":
    main()
