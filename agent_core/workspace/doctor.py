"""Reports on this installation: Python, sandbox layers, endpoint, storage."""

import platform
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_core import __version__
from agent_core.access.grants.record import UnconfirmedAddress, unconfirmed
from agent_core.base.errors import KnapperError
from agent_core.base.network_variables import masked_address, unusable_variables
from agent_core.base.settings import ModelSettings, Settings
from agent_core.model.beside import models_of
from agent_core.model.dialect import dialect_of
from agent_core.model.discover import DiscoveredModel, asks_endpoint
from agent_core.model.wire import loosened
from sandbox import SandboxUnavailable

if TYPE_CHECKING:
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.memory.embedding import Embedder
    from agent_core.registry.function import Function
    from agent_core.storage import CallOwners, Store
    from sandbox import Sandbox

Choose: TypeAlias = Callable[[ModelSettings], Awaitable[DiscoveredModel]]


async def examine(
    settings: Settings,
    client: "SandboxClient",
    store: "Store",
    choose: Choose,
    functions: Iterable["Function"],
    owners: "CallOwners" = None,
) -> dict[str, Any]:  # Any: JSON
    """Return the `doctor` document; `choose` selects a turn's model, `functions` are those shown to a model.

    If `owners` is given, only these agents are named. `ok` means that functions can be created here: sandbox and
    storage work.
    """
    ready = await client.ready()
    if isinstance(ready, SandboxUnavailable):
        sandbox = {
            "level": "none",
            "layers": {},
            "missing": list(ready.missing),
            "problem": str(ready),
        }
    else:
        sandbox = {
            "level": ready.level,
            "layers": dict(ready.layers),
            "missing": list(ready.missing),
            "resources": ready.resources,
        }
    damage = await store.check()
    workers = await store.workers()
    if owners is not None:
        workers = [
            replace(row, agents=tuple(name for name in row.agents if name in owners))
            for row in workers
        ]
    return {
        "version": __version__,
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "sandbox": sandbox,
        "model": await _model(settings, choose, functions),
        "network": _network(),
        "grants": {"unattended": settings.grants.unattended},
        "storage": {
            "ok": damage is None,
            "problem": damage,
            "database": store.place if settings.storage.url else None,
            "recovered": store.recovered,
            "vectors": await store.vector_trouble() or None,
            "processes": [asdict(row) for row in workers if row.is_alive or row.agents],
            "health": (health := await store.health()) and asdict(health),
            "backlog": asdict(await store.backlog(owners)),
        },
        "ok": sandbox["level"] != "none" and damage is None,
    }


def _network() -> dict[str, Any]:  # Any: JSON
    """Check the variables of this machine for proxies and certificates."""
    problems = [{"problem": error.message, "fix": error.fix} for error in unusable_variables()]
    return {"ok": not problems, "problems": problems}


async def embedding(
    name: str, factory: Callable[[], "Embedder | None"]
) -> dict[str, Any]:  # Any: JSON
    """Test the embedder, which finds texts by meaning, with one word."""
    try:
        embedder = factory()
        if embedder is not None:
            await embedder.embed(["word"])
    except KnapperError as error:
        return {"ok": False, "name": name, "problem": f"{name}: {error.message}", "fix": error.fix}
    return {
        "ok": True,
        "name": name,
        "why": embedder.space if embedder else "none: texts are found only by their words",
    }


def check_address(
    settings: Settings, name: str | None = None, around: Mapping[str, str] | None = None
) -> None:
    """Raise if the model's address comes only from the workspace's file and the user has not confirmed it.

    `name` is the model in question, by default the configured one: the tour and models of extensions need no address.

    Raises:
        UnconfirmedAddress: the message says how to confirm the address.
    """
    if (url := unconfirmed(settings, around)) and asks_endpoint(name or settings.model.name):
        raise UnconfirmedAddress(url)


def check_texts(settings: Settings, around: Mapping[str, str] | None = None) -> None:
    """Raise if the address for embedding texts is unconfirmed, whatever model is used.

    Raises:
        UnconfirmedAddress: the message says how to confirm the address.
    """
    if url := unconfirmed(settings, around):
        raise UnconfirmedAddress(url)


def level(sandbox: "Sandbox | SandboxUnavailable") -> str:
    """Return the sandbox level as one word."""
    return sandbox.level if not isinstance(sandbox, SandboxUnavailable) else "none"


async def _model(
    settings: Settings, choose: Choose, functions: Iterable["Function"]
) -> dict[str, Any]:  # Any: JSON
    try:
        check_address(settings)
        chosen = await choose(settings.model)
        models = models_of(chosen.model_name)
        if models is not None and (obstacle := models.obstacle(chosen.model_name)) is not None:
            raise obstacle
    except KnapperError as error:
        return {"ok": False, "problem": error.message, "fix": error.fix}
    from agent_core.model.client import window_of  # noqa: PLC0415 - the HTTP client is slow to import

    try:
        window = await window_of(chosen, settings.model)
    except KnapperError as error:
        return {"ok": False, "problem": error.message, "fix": error.fix}
    told = window and {
        "tokens": window.tokens,
        "source": window.source,
        "assumed": window.is_assumed,
        "warning": window.warning(chosen.model_name) or None,
    }
    place = masked_address(chosen.endpoint_url)
    report = {"ok": True, "name": chosen.model_name, "endpoint": place, "why": chosen.why}
    # The functions that the endpoint's strict mode cannot express, each with the reason.
    strict = dialect_of(chosen.endpoint_url).strict
    reasons = (
        {function.name: loosened(function.parameters) for function in functions} if strict else {}
    )
    return {
        **report,
        "window": told,
        "loosened": {name: why for name, why in reasons.items() if why},
    }
