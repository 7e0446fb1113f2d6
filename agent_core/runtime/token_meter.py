"""Counts what the requests of one agent took, and learns how far the estimate of tokens is off for its model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from agent_core.base import events

if TYPE_CHECKING:
    from agent_core.base.settings import NamedModel
    from agent_core.model.reply import Model, TokenUsage

    from .turn import Turn

_CORRECTIONS: Final = (0.5, 4.0)


class TokenMeter:
    """The tokens and the dollars of one agent's requests; `correction` is by how much an estimate was too small."""

    def __init__(self, prices: Mapping[str, "NamedModel"]) -> None:
        """Create the meter; `prices` are those of the `[models.NAME]`."""
        self.context_tokens = 0
        self.correction = 1.0
        self._prices = prices

    def correct(self, factor: float) -> None:
        """Take an estimate as too small by this factor."""
        least, most = _CORRECTIONS
        self.correction = min(max(self.correction * factor, least), most)

    def charge(self, turn: "Turn", usage: "TokenUsage", model: "Model") -> None:
        """Count what a request of a turn took."""
        turn.count(usage, model.name)
        if turn.origin.account is not None:
            turn.origin.account.spend(cost=self._cost(usage, model.name))

    def count(self, turn: "Turn", usage: "TokenUsage", estimated: int, model: "Model") -> None:
        """Count a step, whose prompt was estimated at so many tokens, and report it."""
        self.context_tokens = usage.prompt + usage.completion
        if not usage.estimated and estimated > 0 and usage.prompt > 0:
            # Half of the way at a time: odd reports do not throw the estimate off.
            self.correct((1 + usage.prompt / estimated) / 2)
        self.charge(turn, usage, model)
        turn.tell(
            events.Usage(
                prompt_tokens=usage.prompt,
                completion_tokens=usage.completion,
                cached_tokens=usage.cached,
                estimated=usage.estimated,
                context_tokens=self.context_tokens,
                context_limit=model.context_limit,
            )
        )

    def _cost(self, usage: "TokenUsage", model: str) -> float:
        """Return what a request cost in dollars; 0 where no `[models.NAME]` gives the price of the model."""
        for table, named in self._prices.items():
            if named.price is not None and (named.name or table) == model:
                price = named.price
                cached = price.input if price.cached is None else price.cached
                fresh = usage.prompt - usage.cached
                return (fresh * price.input + usage.cached * cached + usage.completion * price.output) / 1e6
        return 0.0
