"""Caps on what may be spent on models, and who pays for a request.

A cap is named by its scope and its kind, such as `day_tokens`. Each is the lower of what the user says (a flag, a
variable, or `knapper cap`) and of what the workspace's file says: a file travels, so it can only narrow.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

from .records import dataclass, field

SCOPES: Final = ("turn", "conversation", "agent", "day", "unattended")
"""What is added up. `unattended` is the day's part that nobody watches."""
KINDS: Final = ("tokens", "requests", "money")
CAPS: Final = tuple(f"{scope}_{kind}" for scope in SCOPES for kind in KINDS)
AMOUNT_LIMIT: Final = 1e15
"""Of anything that is counted: a larger one is a slip, or meant to break something."""
WARNED_AT: Final = 0.8  # share of a cap
_WHOSE: Final = {
    "turn": "this turn",
    "conversation": "this conversation",
    "agent": "this agent",
    "day": "today",
    "unattended": "turns that nobody watches today",
}


@dataclass(frozen=True, slots=True)
class Cap:
    """The most of a kind that may be spent in a scope."""

    scope: str
    kind: str
    most: float
    is_set: bool = True
    """False for the program's own, which nobody has set."""
    wanted: float | None = None
    """What the workspace's file would widen it to, in vain."""

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return f"{self.scope}_{self.kind}"

    @property
    def whose(self) -> str:
        """What it is a cap of, in words."""
        return _WHOSE[self.scope]

    def share(self, amount: float) -> str:
        """Return an amount with the most of its kind: `1,200 of 5,000 tokens`."""
        part = self.amount(amount) if self.kind == "money" else f"{amount:,.0f}"
        return f"{part} of {self.amount(self.most)}"

    def amount(self, amount: float) -> str:
        """Return an amount of its kind, in words."""
        if self.kind == "money":
            return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"
        one = self.kind[:-1] if amount == 1 else self.kind
        return f"{amount:,.0f} {one}"


def caps_in_force(
    own: Mapping[str, float],
    kept: Mapping[str, float | None],
    of_file: Mapping[str, float],
    usual: Mapping[str, float],
) -> tuple[Cap, ...]:
    """Return the caps that hold.

    `own` come from a flag or a variable, `kept` are this user's from `knapper cap` (None lifts one), `usual` are the
    program's. Those `of_file` hold where they are lower.
    """
    caps = []
    for scope in SCOPES:
        for kind in KINDS:
            name = f"{scope}_{kind}"
            given = own.get(name, kept.get(name, usual.get(name)))
            asked = of_file.get(name)
            amounts = [amount for amount in (given, asked) if amount is not None]
            if amounts:
                most = min(amounts)
                is_set = most != usual.get(name) or name in own or name in kept
                wanted = asked if asked is not None and asked > most else None
                caps.append(Cap(scope, kind, most, is_set, wanted))
    return tuple(caps)


class Paying(Protocol):
    """A turn as its spending sees it."""

    async def warn(self, message: str, fix: str = "") -> None:
        """Show the user a warning."""

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Show the user what is waited for while the block runs."""


@dataclass(slots=True)
class Payer:
    """What a request is counted to: a turn and its conversation, and whether nobody watches it.

    A request that no turn makes has neither; `told` is the turn as long as it runs, if there is one.
    """

    turn: str = ""
    line: str = ""
    is_unattended: bool = False
    told: Paying | None = field(default=None, repr=False)
    said: set[str] = field(default_factory=set, compare=False, repr=False)
    """The models whose unknown price the turn was told of."""


_PAYER: ContextVar[Payer | None] = ContextVar("payer", default=None)


def payer() -> Payer:
    """Return what a request that is made now is counted to."""
    return _PAYER.get() or Payer()


@contextmanager
def paid_by(payer: Payer) -> Iterator[None]:
    """Count the requests of a block to this payer, unless it is a part of what another one pays for."""
    if _PAYER.get() is not None:  # a helper, or a member of a group: its caller's turn pays
        yield
        return
    token = _PAYER.set(payer)
    try:
        yield
    finally:
        _PAYER.reset(token)
        payer.told = (
            None  # what began in the block may outlive it, and must not hold the turn and its agent
        )
