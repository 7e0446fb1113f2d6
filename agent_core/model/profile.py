"""The profile of a model behind a server: how small it is and how its calls travel, by evidence. Decided here alone.

Evidence is what the server tells of the model, what an earlier turn found out, or a tiny probe. Only servers that run
models on a machine of the user's are asked; what `dialects.toml` calls `told` is where they answer.
"""

import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from agent_core.base.errors import ModelError
from agent_core.base.messages import System, User
from agent_core.base.plain_files import add_to, read_end
from sandbox.wire.foreign import LOOSE, Malformed, read_json

from .dialect import dialects, is_loopback
from .endpoint import Endpoint
from .failures import FunctionsRefused
from .reply import Mode, Piece, Reply, TokenUsage
from .request import FunctionShown, Request
from .tokens import told_window, window

SMALL: Final = 4e9
"""Parameters below which a model is taken for too small to call functions by itself."""

TINY: Final = 2e9
"""Parameters below which a model edits its memory only where a message is about that."""

_NAMED: Final = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])", re.IGNORECASE)
_LEAST_NAMED: Final = 2e7  # what is smaller is a window, as in `14b-instruct-1m`
_UNITS: Final = {"b": 1e9, "m": 1e6, "k": 1e3, "": 1.0}
_WRITTEN: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([bmk]?)\s*", re.IGNORECASE)
_CALLING: Final = frozenset({"tools", "tool_use", "tool_calls", "function_calling"})

_Told: TypeAlias = Mapping[str, Any]  # Any: foreign JSON


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The facts known of a model; `calls` tells whether its template takes functions, None where nobody says.

    `mode` is the one to begin with, None where only a probe or a reply can tell.
    """

    parameters: float | None = None
    calls: bool | None = None
    context_tokens: int | None = None
    key: str = ""
    mode: Mode | None = None

    @property
    def is_tiny(self) -> bool:
        """True if the model edits its memory only where a message is about that."""
        return self.parameters is not None and self.parameters < TINY


class KnownModes:
    """The modes and windows that were found out, by model: lines of a file in the workspace, the last one counts.

    Without a path they are kept for this process.
    """

    _MOST_BYTES: Final = 1 << 16

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._facts: dict[tuple[str, str], Any] = {}

    def get(self, key: str) -> Mode | None:
        """Return the mode that was found out, if any."""
        mode = self._fact(key, "mode")
        return mode if mode in ("native", "constrained") else None

    def put(self, key: str, mode: Mode) -> None:
        """Keep a mode; where the file cannot be written, for this process only."""
        self._keep(key, "mode", mode)

    def window(self, key: str) -> int | None:
        """Return the window that was told once; 0 if none ever was and it was assumed, None if this is the first."""
        size = self._fact(key, "window")
        return 0 if size == 0 else window(size)

    def put_window(self, key: str, tokens: int) -> None:
        """Keep a window that was told, or 0 for one that was assumed."""
        self._keep(key, "window", tokens)

    def _keep(self, key: str, kind: str, value: str | int) -> None:
        if not key or self._fact(key, kind) == value:
            return
        self._facts[key, kind] = value
        if self._path is not None:
            with suppress(OSError):
                add_to(self._path, json.dumps({"model": key, kind: value}).encode() + b"\n")

    def _fact(self, key: str, kind: str) -> Any:  # Any: JSON of a file
        if (key, kind) in self._facts:
            return self._facts[key, kind]
        try:
            lines = read_end(self._path, self._MOST_BYTES).splitlines() if self._path else []
        except OSError:
            return None
        for line in reversed(lines):
            with suppress(Malformed):
                row = read_json(line, LOOSE)
                if isinstance(row, dict) and row.get("model") == key and kind in row:
                    return row[kind]
        return None


async def find_profile(endpoint: Endpoint, known: KnownModes) -> ModelProfile:
    """Return what is known of the endpoint's model. An endpoint that turns out to be a known server speaks its dialect.

    An address elsewhere that is no known server of such models is asked nothing.
    """
    key = f"{endpoint.url} {endpoint.model}"
    if not (endpoint.dialect.told or is_loopback(endpoint.url)):
        return _decided(ModelProfile(key=key), known)
    listed = await endpoint.listing()
    entry = next((entry for entry in listed if entry["id"] == endpoint.model), {})
    owned = next((dialect for dialect in dialects() if dialect.owner and dialect.owner == entry.get("owned_by")), None)
    if owned is not None and not endpoint.dialect.told:
        endpoint.speak(owned)
    answer = await _told(endpoint) if endpoint.dialect.told else {}
    profile = replace(read_profile([entry, answer], endpoint.model), key=key)
    facts = json.dumps([profile.parameters, profile.calls, endpoint.dialect.name])
    return _decided(replace(profile, key=f"{key} {hashlib.sha256(facts.encode()).hexdigest()[:12]}"), known)


def read_profile(answers: Sequence[_Told], name: str) -> ModelProfile:
    """Return what answers of servers tell of a model, under the names in use; if none tells its size, its name may."""
    sizes = [size for answer in answers for value in _sizes(answer) if (size := _size(value)) is not None]
    calls = [does for answer in answers if (does := _takes_functions(answer)) is not None]
    served = ("default_generation_settings.n_ctx", "loaded_context_length")  # the window for one request
    windows = [size for answer in answers if (size := told_window(answer, served)) is not None]
    named = [float(number) * _UNITS[unit.lower()] for number, unit in _NAMED.findall(name.rpartition("/")[2])]
    size = next((size for size in [*sizes, *named] if size >= _LEAST_NAMED), None)
    return ModelProfile(size, calls[0] if calls else None, next(iter(windows), None))


def _decided(profile: ModelProfile, known: KnownModes) -> ModelProfile:
    """Return the profile with the mode that follows from it, if one does."""
    if (mode := known.get(profile.key)) is not None:
        return replace(profile, mode=mode)
    is_small = profile.parameters is not None and profile.parameters < SMALL
    return replace(profile, mode="constrained") if is_small or profile.calls is False else profile


async def _told(endpoint: Endpoint) -> _Told:
    """Return what a server of this kind tells of the model; empty if it is none, or tells nothing."""
    dialect = endpoint.dialect
    answer = await endpoint.beside(dialect.told, None if dialect.loading is None else {"model": endpoint.model})
    entries = answer.get("data")
    if not isinstance(entries, list):
        return answer
    return next((entry for entry in entries if isinstance(entry, dict) and entry.get("id") == endpoint.model), {})


def _sizes(answer: _Told) -> list[object]:
    meta, details, info = (_object(answer.get(name)) for name in ("meta", "details", "model_info"))
    numbers = [meta.get("n_params"), info.get("general.parameter_count"), details.get("parameter_size")]
    return [*numbers, answer.get("params_string"), answer.get("parameter_size")]


def _size(value: object) -> float | None:
    """Return a number of parameters, told as a number or as `1.5B`."""
    match = _WRITTEN.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    size = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    return size if size >= 1e6 else None


def _takes_functions(answer: _Told) -> bool | None:
    """Return whether a model's template takes functions; a list of capabilities that is not there says nothing."""
    capabilities = answer.get("capabilities")
    if isinstance(capabilities, list) and capabilities and "model_info" in answer:
        return bool(_CALLING & {name for name in capabilities if isinstance(name, str)})
    if isinstance(capabilities, list) and _CALLING & {name for name in capabilities if isinstance(name, str)}:
        return True
    template = answer.get("chat_template")
    return "tools" in template if isinstance(template, str) and template else None


def _object(value: object) -> _Told:
    return value if isinstance(value, dict) else {}


SLOW: Final = 40.0
"""Tokens of a probe a second, its answer included, below which reading a long prompt takes minutes."""

_PROBE_TOKENS: Final = 256
_ADD: Final = FunctionShown(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)


async def probed(stream: Callable[[Request], AsyncIterator[Piece]], profile: ModelProfile) -> ModelProfile:
    """Return the profile with the mode that a tiny request shows, if it shows one: a call, its text, or slowness.

    Loading the model may be what takes long at first, so only the second slow answer counts.
    """
    for number in range(2):
        began = time.monotonic()
        reply = await _answer(stream, number)
        if reply is None or reply.finish == "length":
            return profile
        if reply.written or not reply.calls:
            return replace(profile, mode="constrained")
        if reply.usage.estimated or reply.usage.prompt - reply.usage.cached >= SLOW * (time.monotonic() - began):
            return replace(profile, mode="native")
    return replace(profile, mode="constrained")


async def _answer(stream: Callable[[Request], AsyncIterator[Piece]], number: int) -> Reply | None:
    """Return the reply to a request for a call; None if it failed, which the turn will tell."""
    start = System(f"Request {number + 1}. You call functions.")  # at the beginning, where caches compare
    request = Request((start, User("Call add with a=17 and b=25.")), (_ADD,), _PROBE_TOKENS)
    try:
        async with aclosing(stream(request)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, Reply):
                    return piece
    except FunctionsRefused:
        return Reply("", "", (), "stop", TokenUsage(0, 0, estimated=True))
    except ModelError:
        return None
    return None
