"""The bar below the prompt: agent, model, how full the context is, functions, and how safe it is here."""

from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.formatted_text import StyleAndTextTuples

from agent_core.untrusted import one_line

_CELLS = 8
_FULL, _NEAR = 0.9, 0.7


class Status(Protocol):
    """What the bar shows of an agent."""

    @property
    def agent(self) -> str: ...  # noqa: D102  (the names say it)
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def context_tokens(self) -> int: ...  # noqa: D102
    @property
    def context_limit(self) -> int: ...  # noqa: D102
    @property
    def functions_shown(self) -> int: ...  # noqa: D102
    @property
    def functions_known(self) -> int: ...  # noqa: D102


class Bar:
    """Draws the bar anew from the status of the moment."""

    def __init__(self) -> None:
        self.status: Callable[[], Status] | None = None
        self.unsafe = False
        self.hint = ""
        self.sandbox = "…"

    def clear_hint(self) -> None:
        """Show the facts again."""
        self.hint = ""

    def draw(self) -> StyleAndTextTuples:
        """The bar's text with its styles."""
        if self.hint:
            return [("class:bar.hint", f" {one_line(self.hint)}")]
        if self.status is None:
            return [("class:bar", " getting ready… type ahead, Enter waits")]
        sandbox = ("class:bar", f" · sandbox {one_line(self.sandbox, 16)}")
        return [*self._alarm(), *_facts(self.status()), sandbox]

    def _alarm(self) -> StyleAndTextTuples:
        return [("class:bar.alarm", " SANDBOX OFF: functions run unprotected "), ("", " ")] if self.unsafe else []


def gauge(used: int, limit: int) -> StyleAndTextTuples:
    """How full the context is: cells and a share, coloured when it gets tight."""
    if limit <= 0:
        return [("class:bar", f"{used:,} tokens")]
    share = min(used / limit, 1.0)
    style = "class:bar.full" if share >= _FULL else "class:bar.near" if share >= _NEAR else "class:bar"
    filled = round(share * _CELLS)
    return [(style, "▰" * filled + "▱" * (_CELLS - filled) + f" {share:.0%}")]


def _facts(status: Status) -> StyleAndTextTuples:
    known = status.functions_known
    shown = f"{status.functions_shown}/{known}" if status.functions_shown else f"{known}"  # before the first step
    return [
        ("class:bar.name", f" {one_line(status.agent, 24)}"),
        ("class:bar", f" · {one_line(status.model or 'no model yet', 32)} · "),
        *gauge(status.context_tokens, status.context_limit),
        ("class:bar", f" · functions {shown}"),
    ]
