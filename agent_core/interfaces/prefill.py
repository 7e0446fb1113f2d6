"""A local model made ready: its weights are fetched, and its prompt cache is prefilled with the fixed prefix of every
request.
"""

import asyncio
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import agent_core
from agent_core.base.errors import KnapperError
from agent_core.base.settings import ModelSettings, Settings
from agent_core.workspace.local_models import fetch_model

from .progress import Download, StatusLine
from .question import say
from .spans import line

_NOTE = "reading the fixed part of the prompt"


def fetch(name: str, source: str | None = None) -> dict[str, Any]:
    """Fetch the weights, show the progress, and prefill the cache; return what was fetched.

    Raises:
        ModelError: the weights cannot be fetched; the message says why, and what is kept.
    """
    try:
        with Download() as download:
            fetched = asyncio.run(fetch_model(name, source, download.hear))
    except KeyboardInterrupt:
        say([line(("dim", "The partial download is kept; the same command resumes it."))])
        raise
    prepare(str(fetched["name"]))
    return fetched


def prepare(name: str) -> None:
    """Prefill the cache and show the progress. An obstacle is reported but is no failure: the first request does the
    same.
    """
    if find_spec("xllamacpp") is None:
        return
    say([line(("dim", "The model reads the fixed part of its prompt, and stores it: up to a minute, once."))])
    try:
        with StatusLine() as bar:
            asyncio.run(_prepare(name, bar))
    except KnapperError as error:
        say([line(("warn", "! "), f"The first request will do that: {error.message}")])
    except KeyboardInterrupt:
        say([line(), line(("warn", "Interrupted: the first request will do that."))])


async def _prepare(name: str, status: StatusLine) -> None:
    settings = Settings(model=ModelSettings(name=f"local/{name.removeprefix('local/')}"))
    with TemporaryDirectory(prefix="knapper-") as folder:
        async with agent_core.Workspace.open(folder, settings=settings) as workspace:
            agent = await workspace.agent()
            status.count(0, 1, "loading the model")
            await agent.prepare(lambda done, total: status.count(done, total, _NOTE))
