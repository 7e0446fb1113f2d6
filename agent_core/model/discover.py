"""The choice of the model: from the settings, the environment, servers on this machine, or the models of extensions.

Secrets come from the environment only. Servers on this machine are asked concurrently and get no key. Any user may
listen on a port above 1023, so the owner of the listening socket is checked; a server that may be another user's gets
nothing until this user confirms it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from agent_core.base import machine
from agent_core.base.errors import ModelError, NoModel, Unavailable
from agent_core.base.extensions import what_else
from agent_core.base.matching import nearest
from agent_core.base.network_variables import UnusableVariable, checked_address, masked_address
from agent_core.base.own_installation import extras
from agent_core.base.records import dataclass, field, replace
from agent_core.base.settings import ModelSettings

from .beside import ModelsBeside, models_beside, models_of
from .dialect import AZURE, AzureTerms, ServerKind, base_url_hint, dialect_of, quirks
from .tokens import listed_window
from .tour import LABEL as TOUR_LABEL
from .tour import NAME as TOUR

Kind: TypeAlias = Literal["endpoint", "beside", "tour"]
_Entries: TypeAlias = list[dict[str, Any]]  # Any: foreign JSON

AZURE_VARIABLE: Final = "AZURE_OPENAI_ENDPOINT"
PROBE_S: Final = 1.0  # a closed port fails at once; this is for a busy server
_LISTING_S: Final = 5.0
_NAMES_S: Final = 2.0  # for the names only: a user is waiting at the prompt
_SHOWN: Final = 3
_LIKE: Final = 0.4
_ANOTHER: Final = "the settings `model.base_url` and `model.name`"


@dataclass(frozen=True, slots=True)
class DiscoveredModel:
    """The model to open; `why` is one line with the reason for the choice."""

    endpoint_url: str
    model_name: str
    key: str = field(repr=False)
    why: str
    kind: Kind = "endpoint"
    context_tokens: int | None = None
    azure: AzureTerms | None = None
    """For Azure's own client."""


class UnconfirmedServer(NoModel):
    """A server on this machine may be another user's, so nothing is sent to it."""

    code = "unconfirmed-server"

    def __init__(self, url: str) -> None:
        self.url = url
        what = f"A server answers at {url}, and it may not be yours: its port belongs neither to you nor to root."
        fix = "If you trust it: knapper configure --confirm-address"
        super().__init__(
            f"{what} Nothing is sent to it.", fix=f"{fix} (or export KNAPPER_MODEL_BASE_URL={url})"
        )


async def choose(
    settings: ModelSettings,
    environment: Mapping[str, str],
    *,
    servers: Sequence[ServerKind] | None = None,
    beside: Sequence[ModelsBeside] | None = None,
    confirmed: Callable[[str], bool] = lambda url: False,
) -> DiscoveredModel:
    """Choose the model.

    `beside` are the models of extensions to take where nothing else is found, by default all that are here. `confirmed`
    tells whether this user confirmed an address: a server that may be another user's is used only if so.

    Raises:
        UnconfirmedServer: the only server found may be another user's.
        NoModel: nothing is set and nothing was found; the message names the ways to a model.
        ModelError: the configured model cannot be used.
    """
    name = settings.name or ""
    if name == TOUR:
        return DiscoveredModel(
            "", TOUR, "", f"{TOUR_LABEL}: its words are scripted, its actions are real", kind="tour"
        )
    if (models := models_of(name)) is not None:
        if "/" in name:
            return _beside(name, "named in the settings")
        return _beside(models.best(), "the best of its kind")
    if named := await _at_set_address(settings, environment):
        return named
    chosen: list[
        DiscoveredModel
    ] = []  # of every server that answers and has the model, no matter who owns it
    kinds = quirks().servers if servers is None else servers
    urls = [f"http://127.0.0.1:{kind.port}/v1" for kind in kinds]
    answers = await asyncio.gather(*(_list_or_none(url, timeout_s=PROBE_S) for url in urls))
    for kind, url, entries in zip(kinds, urls, answers, strict=True):
        if entry := _pick(entries, name):
            why = f"{entry['id']} at {url}: {kind.name} runs on this machine"
            chosen.append(
                DiscoveredModel(url, entry["id"], "", why, context_tokens=listed_window(entry))
            )
    for server in chosen:
        if machine.is_own_port(urlsplit(server.endpoint_url).port or 0) or confirmed(
            server.endpoint_url
        ):
            return server
    kept = models_beside() if beside is None else beside
    own, unusable = ("", []) if name else _usable(kept)
    if own:
        return _beside(own, "it is on this machine, and nothing else was found")
    if chosen:
        raise UnconfirmedServer(chosen[0].endpoint_url)
    raise _nothing(name, [models.offer().way for models in kept], unusable)


async def listed(model: DiscoveredModel) -> DiscoveredModel:
    """Return a model requested by name if its endpoint has it; if the endpoint lists no models, `why` says so.

    Raises:
        ModelError: the endpoint lists its models, and none has this name; the message has similar ones.
    """
    name, url = model.model_name, model.endpoint_url
    if (
        model.kind != "endpoint" or model.azure or dialect_of(url).name == AZURE
    ):  # it lists models, not deployments
        return model
    entries = await _list_or_none(url, key=model.key, timeout_s=_NAMES_S)
    if not entries:
        return replace(
            model, why=f"{model.why}; it does not list its models, so the name was not checked"
        )
    names = [entry["id"] for entry in entries]
    if _pick(entries, name) or name.rpartition(":")[0] in names:
        return model
    near = nearest(name, names, most=_SHOWN, likeness=_LIKE) or names[:_SHOWN]
    shown = ", ".join(f"`{each}`" for each in near)
    fix = (
        f"It has {shown}."
        if len(near) == len(names)
        else f"The nearest of its {len(names)}: {shown}."
    )
    if name.partition("/")[0] in extras():  # it may be meant for what is not installed
        fix = f"{fix} {what_else()}".rstrip()
    raise ModelError(f"{masked_address(url)} has no model `{name}`.", fix=fix)


async def endpoint_names(model: DiscoveredModel) -> list[str]:
    """Return the names of the models that a model's endpoint lists; empty if it does not answer in time."""
    return [
        entry["id"]
        for entry in await _list_or_none(model.endpoint_url, key=model.key, timeout_s=_NAMES_S)
    ]


def asks_endpoint(name: str | None) -> bool:
    """Check whether a model of this name is at an address; the tour and those of extensions are on this machine."""
    return name != TOUR and models_of(name) is None


async def _at_set_address(
    settings: ModelSettings, environment: Mapping[str, str]
) -> DiscoveredModel | None:
    """Return the model at the address from the settings or the environment, if there is one."""
    name, key = settings.name or "", environment.get(settings.key_variable, "")
    if settings.base_url:
        return await _at_address(settings.base_url, name, key, "its address is set")
    url, variable = address_of(environment)
    if variable != AZURE_VARIABLE:
        return await _at_address(url, name, key, f"{variable} is set") if url else None
    # At Azure the deployment of that name, over the v1 API unless `OPENAI_API_VERSION` is set.
    found = f"{AZURE_VARIABLE} is set to {masked_address(url)}"
    token = environment.get("AZURE_OPENAI_AD_TOKEN", "")
    key, version = (
        token or environment.get("AZURE_OPENAI_API_KEY", ""),
        environment.get("OPENAI_API_VERSION", ""),
    )
    if not key:
        raise NoModel(
            f"{found}, and no key.", fix="export AZURE_OPENAI_API_KEY=… (or AZURE_OPENAI_AD_TOKEN)"
        )
    if not name:
        raise NoModel(
            f"{found}, and no deployment is named.", fix="Name one as the model: --model NAME."
        )
    why = f"{name} at {masked_address(url)}: {AZURE_VARIABLE} is set, API version {version or 'v1'}"
    azure = AzureTerms(version, bool(token)) if version else None
    return DiscoveredModel(url if version else f"{url}/openai/v1", name, key, why, azure=azure)


def address_of(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the address from the environment, and the variable that has it; both empty if there is none."""
    if url := environment.get("OPENAI_BASE_URL"):
        return url, "OPENAI_BASE_URL"
    if environment.get("OPENAI_API_KEY"):
        return quirks().openai_url, "OPENAI_API_KEY"
    url = environment.get(AZURE_VARIABLE, "").rstrip("/")
    return url, AZURE_VARIABLE if url else ""


async def _at_address(url: str, name: str, key: str, why: str) -> DiscoveredModel:
    try:
        url = checked_address(url)
    except UnusableVariable as error:
        raise ModelError(error.message, fix=error.fix) from error
    place = masked_address(url)
    if not name and url.rstrip("/") == quirks().openai_url:
        name = quirks().openai_model
    if name:
        return DiscoveredModel(url, name, key, f"{name} at {place}: {why}")
    name_one = "Or name a model: --model NAME."
    try:
        entries = await _list_models(url, key=key, timeout_s=_LISTING_S)
    except ModelError as error:
        kind = Unavailable if isinstance(error, Unavailable) else ModelError
        if " cannot be reached" in error.message:
            raise kind(error.message, fix="Is it running? Check the address.") from error
        raise kind(error.message, fix=f"{error.fix or base_url_hint(url)} {name_one}") from error
    entry = _pick(entries, "")
    if entry is None:
        raise ModelError(
            f"{place} lists no models, and no model is named.",
            fix=f"{base_url_hint(url)} {name_one}",
        )
    return DiscoveredModel(
        url,
        entry["id"],
        key,
        f"{entry['id']} at {place}: {why}, first of its models",
        context_tokens=listed_window(entry),
    )


async def _list_models(url: str, *, key: str = "", timeout_s: float) -> _Entries:
    from .connection import Connection  # noqa: PLC0415 - the package is slow to import and rarely needed here

    async with aclosing(Connection(url, key=key)) as connection:
        return await connection.listing(timeout_s=timeout_s)


async def _list_or_none(url: str, *, key: str = "", timeout_s: float) -> _Entries:
    """Return the entries of GET `url`/models, each with an `id`; empty if there is no usable answer in time."""
    with suppress(ModelError):
        return await _list_models(url, key=key, timeout_s=timeout_s)
    return []


def _pick(entries: _Entries, name: str) -> dict[str, Any] | None:
    """Return the entry of that name (Ollama's `:latest` is optional), or the first entry that can chat."""
    if name:
        return next(
            (entry for entry in entries if name in {entry["id"], entry["id"].split(":")[0]}), None
        )
    return next((entry for entry in entries if not quirks().mute.search(entry["id"])), None)


def _beside(name: str, why: str) -> DiscoveredModel:
    return DiscoveredModel("", name, "", f"{name}: {why}", kind="beside")


def _usable(kept: Sequence[ModelsBeside]) -> tuple[str, list[str]]:
    """Return the best model of extensions that can be opened, "" if there is none, and why those before it cannot."""
    unusable: list[str] = []
    for models in kept:
        for name in models.here()[:1]:
            obstacle = models.obstacle(name)
            if obstacle is None:
                return name, unusable
            why = f"{obstacle.message} {obstacle.fix}"
            unusable.append(f"{name} is here, but cannot be used. {why}")
    return "", unusable


def _nothing(name: str, own_ways: Sequence[str], unusable: Sequence[str]) -> NoModel:
    """Return the error that there is no model, with the ways to one."""
    none = (
        f"No server on this machine has the model `{name}`"
        if name
        else "No model is set and none was found"
    )
    message = "\n".join([f"{none}.", *unusable])
    servers = ", ".join(server.name for server in quirks().servers)
    ways = (
        f"a key:           export OPENAI_API_KEY=…   (another endpoint: {_ANOTHER};\n"
        "                    Azure: AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY)",
        f"a local server:  start {servers}; it is found automatically",
        *own_ways,
    )
    fix = [
        f"{len(ways)} ways to get one:",
        *(f"{number}. {way}" for number, way in enumerate(ways, start=1)),
        "Then: knapper configure   (it asks, tries the model, and keeps it). Without any, the model `tour` shows it.",
        what_else() if name else "",
    ]
    return NoModel(message, fix="\n".join(filter(None, fix)))
