"""The worth of each grown function, measured in turns in which it was masked at random (`growth.mask`).

A turn also depends on its request and on the other functions that it was shown. Both are fitted together with the
effects. Functions that appear together can be distinguished because each is masked independently. What is masked is
drawn once for a conversation, and its turns may be alike for other reasons: they count for less than as many turns of
different conversations. Pure.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from agent_core.storage import ExposedTurn

Worth: TypeAlias = Literal["helps", "harms", "unknown"]
Version: TypeAlias = tuple[str, str]
"""A function's name and the hash of its body."""

FEWEST_MASKED: Final = 4  # conversations without a function, before it is assessed
_LEAST_SHARE: Final = 0.05  # of the tokens of a turn: each line of an index costs a few
_SWEEPS: Final = 12
_Z: Final = 2.576  # quantile of the normal distribution for 99 % intervals


@dataclass(frozen=True, slots=True)
class EffectInterval:
    """The change in an outcome when a function is shown, with a 99 % interval."""

    change: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or −1 if the interval excludes zero, else 0."""
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True, slots=True)
class FunctionEffect:
    """The measured worth of one version of a function, and the models with which it was measured.

    `tokens` is a relative change (−0.2: a fifth less); `requests` and `right` are changes per turn. Whether a turn is
    right is the user's verdict on it; without one, a turn that was sent again is not right. Right turns count before
    tokens. `kinds` are the same figures for each kind of request, named by the function that it needs most.
    """

    worth: Worth
    shown: int  # turns
    masked: int  # turns
    tokens: EffectInterval
    requests: EffectInterval
    right: EffectInterval
    models: tuple[str, ...]
    kinds: Mapping[str, "FunctionEffect"] = field(default_factory=dict)


def effects(turns: Sequence["ExposedTurn"]) -> dict[Version, FunctionEffect]:
    """Return the effect of each version of a function that was shown and masked often enough, also by kind."""
    by_kind: dict[str, list[ExposedTurn]] = {}
    for turn in turns:
        by_kind.setdefault(turn.kind, []).append(turn)
    measured = {kind: _effects(of_kind) for kind, of_kind in sorted(by_kind.items()) if kind}
    return {
        version: replace(effect, kinds={kind: found[version] for kind, found in measured.items() if version in found})
        for version, effect in _effects(turns).items()
    }


def _effects(turns: Sequence["ExposedTurn"]) -> dict[Version, FunctionEffect]:
    # Tokens are fitted as logarithms, so that long turns do not dominate.
    tokens = _fit_effects(turns, lambda turn: math.log1p(turn.tokens))
    requests = _fit_effects(turns, lambda turn: float(turn.requests))
    right = _fit_effects(turns, lambda turn: float(not turn.is_retried if turn.is_right is None else turn.is_right))
    found = {}
    for version, interval in tokens.items():
        shares = EffectInterval(*(math.expm1(value) for value in (interval.change, interval.low, interval.high)))
        sign = right[version].sign or (-shares.sign if abs(shares.change) >= _LEAST_SHARE else 0)
        worth: Worth = "helps" if sign > 0 else "harms" if sign < 0 else "unknown"
        shown = [turn for turn in turns if version in turn.shown]
        masked = [turn for turn in turns if version in turn.masked]
        models = tuple(sorted({turn.model for turn in (*shown, *masked) if turn.model}))
        found[version] = FunctionEffect(
            worth, len(shown), len(masked), shares, requests[version], right[version], models
        )
    return found


@dataclass(slots=True)
class _Fit:
    """One function in a fit: the indexes of its turns, its effect, and the level of its own requests."""

    shown: list[int]
    masked: list[int]
    change: float = 0.0
    level: float = 0.0

    @property
    def share(self) -> float:
        """The share of its turns in which it was shown."""
        return len(self.shown) / (len(self.shown) + len(self.masked))


def _fit_effects(
    turns: Sequence["ExposedTurn"], outcome: Callable[["ExposedTurn"], float]
) -> dict[Version, EffectInterval]:
    """Return the effects on one outcome, by least squares over all functions, fitted in turn."""
    all_fits: dict[Version, _Fit] = {}
    for at, turn in enumerate(turns):
        for version in turn.shown | turn.masked:
            fit = all_fits.setdefault(version, _Fit([], []))
            (fit.masked if version in turn.masked else fit.shown).append(at)
    draws = [turn.draw or turn.turn for turn in turns]
    often = {
        version
        for version, fit in all_fits.items()
        if min(len({draws[at] for at in side}) for side in (fit.shown, fit.masked)) >= FEWEST_MASKED
    }
    fits = {version: all_fits[version] for version in sorted(often)}
    spare = len({*draws}) - len(fits) - 1
    if spare < 1:
        return {}
    values = [outcome(turn) for turn in turns]
    mean = sum(values) / len(values)
    rest = [value - mean for value in values]
    for _ in range(_SWEEPS):
        for fit in fits.values():  # fit the residuals, and subtract the change from them
            without, with_it = _mean(rest, fit.masked), _mean(rest, fit.shown)
            change, level = with_it - without, fit.share * with_it + (1 - fit.share) * without
            fit.change += change
            fit.level += level
            for at in fit.shown:
                rest[at] -= level + change * (1 - fit.share)
            for at in fit.masked:
                rest[at] -= level - change * fit.share
    intervals: dict[Version, EffectInterval] = {}
    correlation, loss = _dependence(rest, draws, spare)
    for version, fit in fits.items():
        places = [*fit.shown, *fit.masked]
        variance = sum(rest[at] ** 2 for at in places) / len(places) * loss
        sides = [Counter(draws[at] for at in side) for side in (fit.shown, fit.masked)]
        shares = [sum(n * (1 + (n - 1) * correlation) for n in side.values()) / side.total() ** 2 for side in sides]
        error = math.sqrt(variance * sum(shares))
        freedom = len({draws[at] for at in places}) - 2
        width = (_Z + (_Z**3 + _Z) / (4 * freedom)) * error  # Student's t, to first order
        intervals[version] = EffectInterval(fit.change, fit.change - width, fit.change + width)
    return intervals


def _dependence(rest: Sequence[float], draws: Sequence[str], spare: int) -> tuple[float, float]:
    """Return the correlation of two turns of one conversation, and the factor that undoes what the fit took away.

    Both by the analysis of variance: what a fit has explained was between conversations, where `spare` are left.
    """
    groups: dict[str, list[float]] = {}
    for value, draw in zip(rest, draws, strict=True):
        groups.setdefault(draw, []).append(value)
    total = sum(value**2 for value in rest)
    between = sum(sum(group) ** 2 / len(group) for group in groups.values())
    if len(groups) == len(rest) or not total:
        return 0.0, len(rest) / spare
    within = (total - between) / (len(rest) - len(groups))
    usual_size = (len(rest) - sum(len(group) ** 2 for group in groups.values()) / len(rest)) / (len(groups) - 1)
    apart = max(between / spare - within, 0.0) / usual_size
    return apart / (apart + within), (apart + within) / (total / len(rest))


def _mean(values: Sequence[float], places: Iterable[int]) -> float:
    chosen = [values[at] for at in places]
    return sum(chosen) / len(chosen)
