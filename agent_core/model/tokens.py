"""The number of tokens in a text, and the size of the window. An endpoint's report takes precedence."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from agent_core.base.records import dataclass

from .dialect import quirks

SET_WINDOW: Final = "knapper configure --context-tokens N"
MOST_TOKENS: Final = 10**9  # per reply: a higher number is wrong
LEAST_WINDOW, MOST_WINDOW = 512, 10**8
BYTES_PER_TOKEN: Final = 3.4  # of prompts with schemas
_BYTES_PER_TOKEN: Final = 4
_SMALLEST_LESSON: Final = 400  # in smaller texts, the server's template outweighs the text
_LIMITS: Final = (0.4, 4.0)


def count(value: object, least: int = 0, most: int = MOST_TOKENS) -> int | None:
    """Return a number of tokens that an endpoint reports; None if it is not a number or out of range."""
    return value if type(value) is int and least <= value <= most else None


class Estimator:
    """Converts bytes to tokens, corrected by the endpoint's reports; the initial factor is cautious."""

    def __init__(self, factor: float = 1.2) -> None:
        self.factor = factor

    def tokens(self, size_bytes: int) -> int:
        """Return the estimate for a text of this many UTF-8 bytes."""
        return round(size_bytes / _BYTES_PER_TOKEN * self.factor)

    def tokens_of(self, text: str) -> int:
        """Return the estimate for a text."""
        return self.tokens(len(text.encode("utf-8", "replace")))

    def learn(self, size_bytes: int, reported: int) -> None:
        """Adjust the factor to a report: with weight 0.5 if it is higher than the estimate, else 0.1."""
        if size_bytes < _SMALLEST_LESSON or reported <= 0:
            return
        seen = reported * _BYTES_PER_TOKEN / size_bytes
        weight = 0.5 if seen > self.factor else 0.1
        self.factor = min(max(self.factor + weight * (seen - self.factor), _LIMITS[0]), _LIMITS[1])


@dataclass(frozen=True, slots=True)
class Window:
    """The size of a model's window, the origin of the number, and how to get a larger one.

    `is_assumed`: the size is unknown; `is_news`: this workspace assumes it for the first time.
    """

    tokens: int
    source: str
    fix: str = "Set `model.context_tokens` if its window is larger."
    is_assumed: bool = False
    is_news: bool = False

    def warning(self, model: str, table: str = "") -> str:
        """Return two lines that say that this model's window is assumed and how to set it; "" if it is known.

        `table` is the model's name in the settings, if it is not the default model.
        """
        if not self.is_assumed:
            return ""
        name = json.dumps(table, ensure_ascii=False)
        how = (
            f"in knapper.toml, `context_tokens = N` below `[models.{name}]`"
            if table
            else SET_WINDOW
        )
        unknown = f"The window of {model} is unknown: {self.tokens:,} tokens are assumed, so summaries begin early."
        return f"{unknown}\nSet it: {how}"


def listed_window(entry: dict[str, Any]) -> int | None:  # Any: foreign JSON
    """Return the window in an entry of GET /models, under one of the usual names."""
    return told_window(entry, quirks().told_names)


def told_window(answer: Mapping[str, Any], names: Iterable[str]) -> int | None:  # Any: foreign JSON
    """Return the window under the first of these names in an answer; dots separate nested keys."""
    return next(
        (size for name in names if (size := window(told_at(answer, name))) is not None), None
    )


def told_at(answer: object, name: str) -> object:
    """Return the value under a name in an answer; None if it is missing. Dots separate nested keys."""
    if not isinstance(answer, dict) or name in answer:
        return answer[name] if isinstance(answer, dict) else None
    first, _, rest = name.partition(".")
    return told_at(answer.get(first), rest) if rest else None


def window(value: object) -> int | None:
    """Return the size of a window that an endpoint reports; None for an impossible value."""
    return count(value, LEAST_WINDOW, MOST_WINDOW)


def known_window(model: str) -> int | None:
    """Return the window of a model by its name, if the table has it."""
    return next((size for pattern, size in quirks().known if pattern.search(model)), None)


def tells_windows(url: str) -> bool:
    """Check whether this endpoint may report its windows."""
    return urlsplit(url).hostname not in quirks().silent_hosts
