"""OpenAI's official client at a server, messages as it sends them, and what a model must have seen of them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai

from tests.kit import Seen

from .conftest import Served


@asynccontextmanager
async def client(server: Served, token: str = "") -> AsyncIterator[openai.AsyncOpenAI]:
    """Yield the official client, with a token that may chat."""
    key = token or await server.token("openai", "chat")
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key=key, max_retries=0
    ) as opened:
        yield opened


def user(text: str) -> Any:  # Any: a message, whose type is the client's
    """Return a message of the user."""
    return {"role": "user", "content": text}


def reply(text: str) -> Any:  # Any: the same
    """Return a message of the assistant."""
    return {"role": "assistant", "content": text}


def has_once(text: str) -> Callable[[Seen], str | None]:
    """Expect the request to contain a text exactly once."""
    return lambda seen: (
        None if seen.text.count(text) == 1 else f"{seen.text.count(text)} times {text!r}"
    )


def has_no(text: str) -> Callable[[Seen], str | None]:
    """Expect the request not to contain a text."""
    return lambda seen: f"it has {text!r}" if text in seen.text else None
