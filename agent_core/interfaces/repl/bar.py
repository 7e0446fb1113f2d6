"""The bar below the prompt: agent, model, context usage, functions, and safety.

On a screen too narrow for all of it the bar takes a shorter form; what it says of safety stays longest.
"""

from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.formatted_text import StyleAndTextTuples

from agent_core.base.untrusted import one_line

from ..columns import cut, cut_middle, width

_CELLS = 8
_FULL, _NEAR = 0.9, 0.7
_MODEL_LEAST = 16
_BETWEEN = " · "
# What is shown, from all to least: the first form that leaves the model's name enough room is taken.
_FORMS = (
    ("agent", "model", "gauge", "spent", "functions", "rejected", "sandbox", "running"),
    ("agent", "model", "gauge", "functions", "rejected", "sandbox", "running"),
    ("model", "gauge", "functions", "rejected", "sandbox", "running"),
    ("model", "gauge", "functions", "rejected", "sandbox"),
    ("model", "gauge", "rejected", "sandbox"),
    ("model", "share", "sandbox"),
    ("share", "sandbox"),
    ("sandbox",),
)
_ALARMS = (" SANDBOX OFF: functions run unprotected ", " SANDBOX OFF ")


class BarStatus(Protocol):
    """The status of an agent that the bar shows."""

    @property
    def agent(self) -> str: ...  # noqa: D102  (the names say it)
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def context_tokens(self) -> int: ...  # noqa: D102
    @property
    def context_limit(self) -> int: ...  # noqa: D102
    @property
    def functions_known(self) -> int: ...  # noqa: D102


class StatusBar:
    """The bar, redrawn from the current status."""

    def __init__(self) -> None:
        self.status: Callable[[], BarStatus] | None = None
        self.unsafe = False
        self.hint = ""
        self.sandbox = "…"
        self.spent: Callable[[], str] = str
        self.running: Callable[[], int] = int
        self.rejected: Callable[[], int] = int

    def clear_hint(self) -> None:
        """Show the facts again."""
        self.hint = ""

    def draw(self, columns: int) -> StyleAndTextTuples:
        """Return the bar's text with its styles, no wider than the screen."""
        if self.hint:
            return [("class:bar.hint", cut(f" {one_line(self.hint)}", columns))]
        if self.status is None:
            return [("class:bar", cut(" getting ready… type ahead, Enter waits", columns))]
        if not self.unsafe:
            return self._facts(self.status(), columns)
        alarm = next((text for text in _ALARMS if width(text) <= columns // 2), _ALARMS[-1])
        facts = self._facts(self.status(), columns - width(alarm) - 1)
        return [("class:bar.alarm", cut(alarm, columns)), *([("", " "), *facts] if facts else [])]

    def _facts(self, status: BarStatus, columns: int) -> StyleAndTextTuples:
        parts = _parts(status, "" if self.unsafe else one_line(self.sandbox, 16))
        if spent := self.spent():
            parts["spent"] = [("class:bar", one_line(spent, 40))]
        if rejected := self.rejected():
            parts["rejected"] = [("class:bar.near", f"{rejected} file{'s' * (rejected > 1)} rejected")]
        if running := self.running():
            parts["running"] = [("class:bar.running", f"{running} running")]
        model = one_line(status.model or "no model yet", 80)
        for form in _FORMS:
            shown = [parts[name] for name in form if parts.get(name)]
            room = columns - _width(shown)
            if "model" not in form and room >= 0:
                return _joined(shown)
            if room >= min(width(model), _MODEL_LEAST):
                parts["model"][0] = ("class:bar", cut_middle(model, room))
                return _joined(shown)
        return []


def gauge(used: int, limit: int) -> StyleAndTextTuples:
    """Draw the context usage: cells and a percentage, colored when it gets tight."""
    if limit <= 0:
        return [("class:bar", f"{used:,} tokens")]
    share = min(used / limit, 1.0)
    style = "class:bar.full" if share >= _FULL else "class:bar.near" if share >= _NEAR else "class:bar"
    filled = round(share * _CELLS)
    return [(style, "▰" * filled + "▱" * (_CELLS - filled)), (style, f" {share:.0%}")]


def _parts(status: BarStatus, sandbox: str) -> dict[str, StyleAndTextTuples]:
    full = gauge(status.context_tokens, status.context_limit)
    style, share = full[-1][:2]
    return {
        "agent": [("class:bar.name", one_line(status.agent, 24))],
        "model": [("class:bar", "")],
        "gauge": full,
        "share": [(style, share.strip())],
        "functions": [("class:bar", f"functions {status.functions_known}")],
        "sandbox": [("class:bar", f"sandbox {sandbox}")] if sandbox else [],
    }


def _width(parts: list[StyleAndTextTuples]) -> int:
    texts = sum(width(fragment[1]) for part in parts for fragment in part)
    return 1 + texts + len(_BETWEEN) * max(len(parts) - 1, 0)


def _joined(parts: list[StyleAndTextTuples]) -> StyleAndTextTuples:
    joined: StyleAndTextTuples = []
    for number, part in enumerate(parts):
        joined += [("class:bar", _BETWEEN if number else " "), *part]
    return joined
