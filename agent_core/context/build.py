"""History + snapshot → prompt: as many of the newest whole turns as the window holds.

Nothing is lost when a turn leaves the window: it stays in storage.
"""

from dataclasses import dataclass

from ..messages import Message, System
from ..model.request import FunctionShown
from .history import Exchange, History

# Measured on mixed text, code and JSON; corrected by what the endpoint reports.
BYTES_PER_TOKEN = 3.4


@dataclass(frozen=True, slots=True)
class Budget:
    """What a request may hold: the window and what the reply needs of it, both in tokens.

    `overhead` is what the model in use writes beside instructions and messages, in bytes: the functions above all.
    `correction` is how many tokens the endpoint reported for each that was estimated.
    """

    window: int
    reply: int
    overhead: int
    correction: float = 1.0

    @property
    def prompt_bytes(self) -> int:
        """About how many bytes of prompt fit."""
        return int(max(self.window - self.reply, self.window // 4) * BYTES_PER_TOKEN / self.correction)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request's content; `tokens` is an estimate."""

    messages: tuple[Message, ...]
    functions: tuple[FunctionShown, ...]
    tokens: int


def build(instructions: str, history: History, functions: tuple[FunctionShown, ...], budget: Budget) -> Prompt:
    """The instructions, the functions and the newest turns that fit beside them.

    The last turn is always there: a window too small for it is the endpoint's to refuse.
    """
    fixed = len(instructions.encode()) + budget.overhead
    kept = _newest(history.exchanges, budget.prompt_bytes - fixed)
    size = fixed + sum(exchange.size for exchange in kept)
    messages = [message for exchange in kept for message in exchange.messages]
    return Prompt(
        (System(instructions), *messages),
        functions,
        int(size / BYTES_PER_TOKEN * budget.correction),
    )


def _newest(exchanges: list[Exchange], room: int) -> list[Exchange]:
    kept: list[Exchange] = []
    for exchange in reversed(exchanges):
        room -= exchange.size
        if kept and room < 0:
            break
        kept.append(exchange)
    return kept[::-1]
