"""Peculiarities of endpoints and models: the data of `quirks.toml`, read once."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

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
class WindowPlace:
    """A path next to an endpoint where some servers report the window of their model, and its names there."""

    path: str
    names: tuple[str, ...]
    entries: str = ""
    model: str = "id"
    own: tuple[str, ...] = ()


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
    listed_names: tuple[str, ...]
    own_names: tuple[str, ...]
    beside: tuple[WindowPlace, ...]


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
        listed_names=tuple(windows["listed"]),
        own_names=tuple(windows["own"]),
        beside=tuple(
            WindowPlace(**{**place, "names": tuple(place["names"]), "own": tuple(place.get("own", ()))})
            for place in data["beside"]
        ),
    )
