"""Limits of a thread, a helper or a group, and the remaining amounts.

They fail closed: 0 means 0, the remainder is checked before each request, and a child also spends from its parents.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from .caps import AMOUNT_LIMIT
from .errors import ConfigError
from .matching import did_you_mean
from .records import dataclass, field, replace
from .untrusted import one_line

Amount: TypeAlias = int | float | None

NAMES: Final = ("hops", "messages", "steps", "tokens", "cost", "seconds", "helpers", "depth")
FOR_A_REQUEST: Final = ("steps", "tokens", "cost", "seconds")
"""The amounts that another request to a model needs."""
OF_MESSAGES: Final = frozenset({"hops", "messages"})
"""The amounts that only messages between agents spend."""
_WHOLE: Final = frozenset(NAMES) - {"cost", "seconds"}


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """The maximum of each amount; None means no limit here. `where` is the file that sets them."""

    hops: Amount = None
    messages: Amount = None
    steps: Amount = None
    tokens: Amount = None
    cost: Amount = None
    seconds: Amount = None
    helpers: Amount = None
    depth: Amount = None
    where: str = field(default="", compare=False)

    @classmethod
    def read(cls, table: object, where: str) -> "SpendingLimits":
        """Return the limits in a table of a TOML file; `where` names the file and the table in it.

        Raises:
            ConfigError: it is not a table, a key is unknown, or a value is negative or no number.
        """
        if not isinstance(table, Mapping):
            raise ConfigError(
                f"{where}: limits are a table.", fix="Write them as { steps = 20, tokens = 50000 }."
            )
        for name, value in table.items():
            key = str(name)
            if key not in NAMES:
                hint = did_you_mean(key, NAMES, f"Known are: {', '.join(NAMES)}.")
                raise ConfigError(f"{where}: `{one_line(key, 80)}` is not a limit.", fix=hint)
            if not (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and 0 <= value <= AMOUNT_LIMIT
                and (key not in _WHOLE or value == int(value))
            ):
                kind = "a whole number" if key in _WHOLE else "a number"
                shown = one_line(str(value), 80)
                fix = "Write 0 for none at all, or leave it out for no limit of its own."
                raise ConfigError(
                    f"{where}: the limit `{key}` cannot be {shown}: it is {kind} from 0 to 10^15.",
                    fix=fix,
                )
        return cls(**table, where=where)

    def within(self, limits: "SpendingLimits") -> "SpendingLimits":
        """Return the lower limit of each amount; None counts as no limit."""
        pairs = {name: (getattr(self, name), getattr(limits, name)) for name in NAMES}
        smaller = {
            name: min((amount for amount in pair if amount is not None), default=None)
            for name, pair in pairs.items()
        }
        return SpendingLimits(**smaller, where=self.where or limits.where)

    def amounts(self) -> dict[str, int | float]:
        """Return the limits that are set, by name."""
        return {name: amount for name in NAMES if (amount := getattr(self, name)) is not None}


class Allowance:
    """The remainder of some limits. Amounts spent here are also spent in every parent."""

    def __init__(
        self,
        limits: SpendingLimits,
        parent: "Allowance | None" = None,
        spent: Mapping[str, int | float] | None = None,
    ) -> None:
        """Create the allowance; `spent` is the amount that an earlier process spent."""
        self.limits = limits
        self.parent = parent
        self.spent: dict[str, int | float] = dict.fromkeys(NAMES, 0) | dict(spent or {})

    def spend(self, **amounts: int | float) -> None:
        """Add to the spent amounts, here and in every parent: `spend(steps=1, tokens=1200)`."""
        for allowance in self._line():
            for name, amount in amounts.items():
                allowance.spent[name] += max(amount, 0)

    def left(self) -> SpendingLimits:
        """Return the remainder of each limit, across this allowance and its parents; never below 0."""
        rest = SpendingLimits(where=self.limits.where)
        for allowance in self._line():
            most = allowance.limits.amounts()
            left: dict[str, Any] = {  # Any: the fields that are numbers
                name: max(amount - allowance.spent[name], 0) for name, amount in most.items()
            }
            rest = rest.within(replace(allowance.limits, **left))
        return rest

    def broken(self, *names: str) -> str | None:
        """Return a sentence about an exhausted limit, or None; called before each request.

        Without names, check the limits of a request to a model.
        """
        for allowance in self._line():
            for name, most in allowance.limits.amounts().items():
                if name in (names or FOR_A_REQUEST) and allowance.spent[name] >= most:
                    place = allowance.limits.where
                    raised = f"Raise `{name}` in {place}" if place else f"Raise the limit `{name}`"
                    spent = f"{allowance.spent[name]:g} spent"
                    return f"The limit of {most:g} {name} is reached ({spent}). {raised} to go on."
        return None

    def _line(self) -> "Iterator[Allowance]":
        allowance: Allowance | None = self
        while allowance is not None:
            yield allowance
            allowance = allowance.parent
