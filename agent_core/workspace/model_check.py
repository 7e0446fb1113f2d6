"""Checks that a model answers: it is selected as for a turn and gets one request, before settings are saved."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from agent_core.access.grants.record import confirm, is_confirmed
from agent_core.base.errors import ModelError, UsageError
from agent_core.base.messages import System, User
from agent_core.base.network_variables import masked_address, whole_address
from agent_core.base.own_environment import environment
from agent_core.base.records import asdict, dataclass, replace
from agent_core.base.settings import ModelSettings, Settings, load, write_values
from agent_core.model.dialect import base_url_hint, likely_base
from agent_core.model.discover import DiscoveredModel, UnconfirmedServer, choose, listed
from agent_core.model.reply import Reply
from agent_core.model.request import Request
from agent_core.model.tokens import Window
from agent_core.model.tour import NAME as TOUR

KEY: Final = "OPENAI_API_KEY"
_WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of one real request."""

    ok: bool
    model: str = ""
    address: str = ""
    why: str = ""
    seconds: float = 0.0
    problem: str = ""
    fix: str = ""
    context_tokens: int = 0
    window_warning: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the `tested` shape of `knapper configure`."""
        return asdict(self)


async def choose_model(
    settings: ModelSettings, environment: Mapping[str, str], root: Path
) -> DiscoveredModel:
    """Choose a model by these settings, as a turn would.

    Raises:
        ModelError: there is no model, or the configured one cannot be used.
    """
    confirmed = partial(is_confirmed, root, key_variable=settings.key_variable)
    return await choose(settings, environment, confirmed=confirmed)


async def try_model(settings: ModelSettings, environment: Mapping[str, str], root: Path) -> Tested:
    """Choose a model by these settings and send it one request; errors of the model are in the result."""
    patient = settings.model_copy(
        update={"retries": 0, "timeout_s": min(settings.timeout_s, _WAIT_S)}
    )
    chosen: DiscoveredModel | None = None
    began = time.monotonic()
    try:
        chosen = await choose_model(patient, environment, root)
        if settings.name:
            await listed(chosen)
        window = await _ask(chosen, patient)
    except ModelError as error:
        name, address = (
            (chosen.model_name, masked_address(chosen.endpoint_url))
            if chosen
            else (settings.name or "", "")
        )
        return Tested(False, name, address, "", time.monotonic() - began, error.message, error.fix)
    name = chosen.model_name
    tested = Tested(
        True, name, masked_address(chosen.endpoint_url), chosen.why, time.monotonic() - began
    )
    return replace(tested, context_tokens=window.tokens, window_warning=window.warning(name))


async def try_address(
    settings: ModelSettings, environment: Mapping[str, str], root: Path
) -> Tested:
    """Do the same at the set address, and, if that is not the base of an endpoint, at the one that it may have."""
    url = (settings.base_url or "").rstrip("/")
    likely = likely_base(url)
    order = [url, likely] if urlsplit(url).path else [likely, url]
    results: list[Tested] = []
    for each in dict.fromkeys(order):
        tested = await try_model(settings.model_copy(update={"base_url": each}), environment, root)
        if tested.ok:
            return replace(tested, address=each)
        results.append(tested)
        if base_url_hint(each) not in tested.fix:  # as where no server answers
            break
    return results[0]


def in_force(
    root: Path, flags: Mapping[str, Any] | None = None
) -> tuple[Settings, Mapping[str, str]]:
    """Return the settings of a folder and the environment."""
    return load(root, flags), environment()


def keep_address(root: Path, values: Mapping[str, Any]) -> None:  # Any: values of settings
    """Write values into the settings file, and confirm an address among them.

    Raises:
        KnapperError: the values or the confirmation cannot be written.
    """
    write_values(root, values)
    if url := values.get("model.base_url"):
        confirm(root, url, load(root).model.key_variable)


def check_new_address(url: str) -> str:
    """Return the address in the form for the settings file.

    Raises:
        UsageError: it is not an address, or may contain a secret.
    """
    url = (whole_address(url) or url.strip()).rstrip("/")
    try:
        parts = urlsplit(url)
        is_valid = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        )
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError(
            "That is not an address of an endpoint.", fix="It looks like http://127.0.0.1:8080/v1."
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        message = (
            "An address in the settings file has no user, password or query: they may be secrets."
        )
        raise UsageError(message, fix=f"Leave them out, and: export {KEY}=…")
    return url


def check_new_name(name: str) -> str:
    """Check that a model's name may be written to the settings file, and return it.

    Raises:
        UsageError: it looks like a key, or is the tour, which cannot be a setting.
    """
    if name == TOUR:
        raise UsageError(
            "The tour cannot be set as the model.", fix="Next: knapper run --model tour"
        )
    if name.startswith("sk-") or any(char.isspace() or not char.isprintable() for char in name):
        raise UsageError(
            "That is not the name of a model.",
            fix=f"A key goes into the environment: export {KEY}=…",
        )
    return name


def exports(settings: Settings) -> list[str]:
    """Return the shell commands that these settings need, because a settings file never has a key."""
    url = settings.model.base_url
    if not url or urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1"):
        return []
    return [f"export {KEY}=…"]


def unconfirmed_server(
    root: Path, settings: ModelSettings, environment: Mapping[str, str]
) -> str | None:
    """Return the address of a discovered server that may be another user's, if no other model is chosen; else None."""
    try:
        confirmed = partial(is_confirmed, root, key_variable=settings.key_variable)
        asyncio.run(choose(settings, environment, confirmed=confirmed))
    except UnconfirmedServer as error:
        return error.url
    except ModelError:
        return None
    return None


async def _ask(discovered: DiscoveredModel, settings: ModelSettings) -> Window:
    """Send a model one request, and return its context window."""
    from agent_core.model.client import open_model  # noqa: PLC0415 - the HTTP client is slow to import

    model = await open_model(discovered, settings)
    try:
        request = Request(
            (System("You are being tested."), User("Reply with the word: ready")), is_apart=True
        )
        async with aclosing(model.stream(request)) as pieces:  # type: ignore[type-var]  # streams are generators
            async for piece in pieces:
                if isinstance(piece, Reply):
                    break
        return model.window
    finally:
        await model.aclose()
