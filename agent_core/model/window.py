"""The size of a model's window: from the settings, the endpoint, the table, or a default."""

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from .dialect import Loading
from .discover import DiscoveredModel
from .endpoint import Endpoint
from .probe import ask
from .quirks import quirks
from .tokens import known_window, listed_window, tells_windows, window

_Told: TypeAlias = dict[str, Any]  # Any: foreign JSON

_ASK_S: Final = 3.0
_LOAD_S: Final = 60.0
_SET: Final = re.compile(r"^num_ctx[ \t]+(\d{1,9})\b", re.MULTILINE)
_SET_IT: Final = "Set `model.context_tokens` if its window is larger."


@dataclass(frozen=True, slots=True)
class Window:
    """The size of a model's window, the origin of the number, and how to get a larger one."""

    tokens: int
    source: str
    fix: str = _SET_IT


async def find_window(endpoint: Endpoint, chosen: DiscoveredModel) -> Window:
    """Return the window of the endpoint's model."""
    if endpoint.settings.context_tokens:
        return Window(endpoint.settings.context_tokens, "set in model.context_tokens")
    if endpoint.dialect.loading and (loaded := await loaded_window(chosen, endpoint.dialect.loading)):
        return loaded
    tokens = chosen.context_tokens
    if tokens is None and tells_windows(endpoint.url):
        entries = await endpoint.listing()
        tokens = next((listed_window(entry) for entry in entries if entry["id"] == endpoint.model), None)
    if tokens:
        return Window(tokens, "told by the endpoint")
    if size := known_window(endpoint.model):
        return Window(size, "known for models of this name")
    return Window(quirks().assumed_window, "assumed: set model.context_tokens if it is not so")


async def loaded_window(chosen: DiscoveredModel, loading: Loading) -> Window | None:
    """Return the window with which a server loads its model, which may be far smaller than the model's own.

    What is running is the truth. So the model is loaded, as its first request would do; a model of before is asked.
    """
    address = urlsplit(chosen.endpoint_url)
    root = f"{address.scheme}://{address.netloc}"
    named = {"model": chosen.model_name}
    shown = await ask(root + loading.shown, named, key=chosen.key, timeout_s=_ASK_S)
    own = _own(shown)
    if shown.get("remote_host") or address.hostname in loading.remote:
        return Window(own, "told by the endpoint") if own else None
    running = await _running(root + loading.running, chosen)
    if not running and shown:
        await ask(root + loading.load, {**named, "stream": False}, key=chosen.key, timeout_s=_LOAD_S)
        running = await _running(root + loading.running, chosen)
    tokens = running or _set(shown) or (min(own, loading.unset) if own else 0)
    return Window(tokens, "as its server loads it", loading.fix if tokens < own else _SET_IT) if tokens else None


async def _running(url: str, chosen: DiscoveredModel) -> int:
    models = (await ask(url, key=chosen.key, timeout_s=_ASK_S)).get("models")
    names = {chosen.model_name, f"{chosen.model_name}:latest"}
    for entry in models if isinstance(models, list) else ():
        if isinstance(entry, dict) and entry.get("model") in names and (size := window(entry.get("context_length"))):
            return size
    return 0


def _set(shown: _Told) -> int:
    match = _SET.search(str(shown.get("parameters") or ""))
    return (window(int(match[1])) or 0) if match else 0


def _own(shown: _Told) -> int:
    """Return the window that the model itself is made for."""
    info = shown.get("model_info")
    sizes = (
        [value for name, value in info.items() if name.endswith(".context_length")] if isinstance(info, dict) else []
    )
    return next((size for value in sizes if (size := window(value)) is not None), 0)
