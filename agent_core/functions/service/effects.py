"""The worth of each grown function, from turns in which it was masked at random (`growth.mask`).

What changes a turn besides are its request and the other functions that it was shown. Both are fitted together with the
effects: functions that come up together are told apart, because each is masked by a draw of its own. Pure.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from agent_core.storage import ExposedTurn

Worth: TypeAlias = Literal["helps", "harms", "unknown"]
Version: TypeAlias = tuple[str, str]
"""A function's name and the hash of its body."""

FEWEST_MASKED: Final = 4  # turns without a function, before anything is said of it
_LEAST_SHARE: Final = 0.05  # of the tokens of a turn: each line of an index costs a few
_SWEEPS: Final = 12
_Z: Final = 2.576  # of a normal distribution, for 99 of 100 intervals


@dataclass(frozen=True, slots=True)
class EffectInterval:
    """The change that showing a function makes, with an interval of 99 %."""

    change: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or −1 if zero is outside of the interval, else 0."""
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True, slots=True)
class FunctionEffect:
    """The measured worth of one version of a function, and the models that it was measured with.

    `tokens` is a share (−0.2: a fifth less), `requests` and `right` are per turn; a turn that was sent again is not
    right. Right turns count before tokens.
    """

    worth: Worth
    shown: int  # turns
    masked: int  # turns
    tokens: EffectInterval
    requests: EffectInterval
    right: EffectInterval
    models: tuple[str, ...]


def effects(turns: Sequence["ExposedTurn"]) -> dict[Version, FunctionEffect]:
    """Return the effect of each version of a function that was both shown and masked often enough."""
    # Tokens are fitted as logarithms: a long turn is not ten times as informative as a short one.
    tokens = _fit_effects(turns, lambda turn: math.log1p(turn.tokens))
    requests = _fit_effects(turns, lambda turn: float(turn.requests))
    right = _fit_effects(turns, lambda turn: 0.0 if turn.is_retried else 1.0)
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
    """One function in a fit: the places of its turns, its effect, and what its requests are beside the others."""

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
    """Return the effects on one outcome, by least squares of all functions together, one after another."""
    fits = _measurable(turns)
    spare = len(turns) - len(fits) - 1
    if spare < 1:
        return {}
    values = [outcome(turn) for turn in turns]
    mean = sum(values) / len(values)
    rest = [value - mean for value in values]
    for _ in range(_SWEEPS):
        for fit in fits.values():
            _refit(fit, rest)
    return {version: _interval(fit, rest, len(turns) / spare) for version, fit in fits.items()}


def _measurable(turns: Sequence["ExposedTurn"]) -> dict[Version, _Fit]:
    fits: dict[Version, _Fit] = {}
    for at, turn in enumerate(turns):
        for version in turn.shown | turn.masked:
            fit = fits.setdefault(version, _Fit([], []))
            (fit.masked if version in turn.masked else fit.shown).append(at)
    return {
        version: fit for version, fit in sorted(fits.items()) if min(len(fit.shown), len(fit.masked)) >= FEWEST_MASKED
    }


def _refit(fit: _Fit, rest: list[float]) -> None:
    """Fit one function anew to what the others leave, and take the difference out of the rest."""
    without, with_it = _mean(rest, fit.masked), _mean(rest, fit.shown)
    change, level = with_it - without, fit.share * with_it + (1 - fit.share) * without
    fit.change += change
    fit.level += level
    for at in fit.shown:
        rest[at] -= level + change * (1 - fit.share)
    for at in fit.masked:
        rest[at] -= level - change * fit.share


def _interval(fit: _Fit, rest: Sequence[float], inflation: float) -> EffectInterval:
    """Return the interval of an effect; `inflation` makes up for what was fitted besides."""
    places = [*fit.shown, *fit.masked]
    variance = sum(rest[at] ** 2 for at in places) / len(places) * inflation
    error = math.sqrt(variance * (1 / len(fit.shown) + 1 / len(fit.masked)))
    freedom = len(places) - 2
    width = (_Z + (_Z**3 + _Z) / (4 * freedom)) * error  # Student's t, to the first order
    return EffectInterval(fit.change, fit.change - width, fit.change + width)


def _mean(values: Sequence[float], places: Iterable[int]) -> float:
    chosen = [values[at] for at in places]
    return sum(chosen) / len(chosen)
