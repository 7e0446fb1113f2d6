"""Peculiarities of endpoints and models, which are the data of `quirks.toml`, read once; tokens and windows.

The number of tokens in a text and the size of a window are estimates: an endpoint's report takes precedence.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final
from urllib.parse import urlsplit

from sandbox.wire.foreign import read_toml


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of server to look for on this machine."""

    name: str
    port: int


@dataclass(frozen=True, slots=True)
class Instead:
    """The replacement for a refused parameter: the same value under another name, a fixed value, or nothing."""

    name: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Quirks:
    """All data of `quirks.toml`."""

    servers: tuple[ServerKind, ...]
    mute: re.Pattern[str]
    openai_url: str
    openai_model: str
    overflow: re.Pattern[str]
    no_credit: re.Pattern[str]
    filtered: re.Pattern[str]
    no_model: re.Pattern[str]
    fixes: dict[str, str]
    refused: dict[str, Instead]
    windows: tuple[tuple[re.Pattern[str], int], ...]
    assumed_window: int
    silent_hosts: frozenset[str]


@cache
def quirks() -> Quirks:
    """Return the quirks that this version knows."""
    data = read_toml(resources.files(__package__).joinpath("quirks.toml").read_text(encoding="utf-8"))
    windows = data["windows"]
    return Quirks(
        servers=tuple(ServerKind(**server) for server in data["servers"]),
        mute=re.compile(data["listed"]["mute"], re.IGNORECASE),
        openai_url=data["openai"]["base_url"],
        openai_model=data["openai"]["model"],
        overflow=re.compile("|".join(data["overflow"]["wordings"]), re.IGNORECASE | re.DOTALL),
        no_credit=re.compile(data["wordings"]["no_credit"], re.IGNORECASE),
        filtered=re.compile(data["wordings"]["filtered"], re.IGNORECASE),
        no_model=re.compile(data["wordings"]["no_model"], re.IGNORECASE | re.DOTALL),
        fixes=data["fixes"],
        refused={
            name: Instead(instead.get("as", ""), instead.get("value", "")) for name, instead in data["refused"].items()
        },
        windows=tuple((re.compile(pattern, re.IGNORECASE), size) for pattern, size in windows["known"]),
        assumed_window=windows["assumed"],
        silent_hosts=frozenset(windows["silent"]),
    )


MOST_TOKENS: Final = 10**9  # of one reply: more is a lie, or a mistake
LEAST_WINDOW, MOST_WINDOW = 512, 10**8
_BYTES_PER_TOKEN: Final = 4
_SMALLEST_LESSON: Final = 400  # below, the server's template counts for more than the text
_LIMITS: Final = (0.4, 4.0)


def count(value: object, least: int = 0, most: int = MOST_TOKENS) -> int | None:
    """Return a number of tokens that an endpoint reports; None if it is no number, or is out of range."""
    return value if type(value) is int and least <= value <= most else None


class Estimator:
    """A converter from bytes to tokens, corrected by what the model's endpoint reports; it starts on the safe side."""

    def __init__(self, factor: float = 1.2) -> None:
        self.factor = factor

    def tokens(self, size_bytes: int) -> int:
        """Return the estimate for a text of so many UTF-8 bytes."""
        return round(size_bytes / _BYTES_PER_TOKEN * self.factor)

    def tokens_of(self, text: str) -> int:
        """Return the estimate for a text."""
        return self.tokens(len(text.encode("utf-8", "replace")))

    def learn(self, size_bytes: int, reported: int) -> None:
        """Learn from a report: one higher than the estimate counts half, a lower one counts a tenth."""
        if size_bytes < _SMALLEST_LESSON or reported <= 0:
            return
        seen = reported * _BYTES_PER_TOKEN / size_bytes
        weight = 0.5 if seen > self.factor else 0.1
        self.factor = min(max(self.factor + weight * (seen - self.factor), _LIMITS[0]), _LIMITS[1])


def listed_window(entry: dict[str, Any]) -> int | None:  # Any: foreign JSON
    """Return the window in an entry of GET /models, under one of the names in use."""
    meta = entry.get("meta")
    inner = meta if isinstance(meta, dict) else {}
    candidates = (
        entry.get("loaded_context_length"),
        entry.get("max_model_len"),
        entry.get("context_length"),
        entry.get("context_window"),
        entry.get("max_context_length"),
        inner.get("n_ctx"),
        inner.get("n_ctx_train"),
    )
    return next((size for value in candidates if (size := window(value)) is not None), None)


def window(value: object) -> int | None:
    """Return the size of a window that an endpoint reports; None for an impossible value."""
    return count(value, LEAST_WINDOW, MOST_WINDOW)


def known_window(model: str) -> int | None:
    """Return the window of a model by its name, if the table has it."""
    return next((size for pattern, size in quirks().windows if pattern.search(model)), None)


def tells_windows(url: str) -> bool:
    """Check whether it is worth asking this endpoint for its windows."""
    return urlsplit(url).hostname not in quirks().silent_hosts
