"""One model at one endpoint: sends a body, yields chunks, and retries temporary failures.

It retries only before the first chunk, after a wait that is a pure function of time and randomness. It works around
parameters that an endpoint refuses by name, and lists the available models if the named one does not exist.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias

from agent_core.base.clock import Clock
from agent_core.base.errors import ModelError
from agent_core.base.settings import ModelSettings

from .dialect import Dialect, dialect_of
from .failures import ModelMissing, ParameterRefused, Unavailable
from .probe import base_url_hint
from .quirks import Instead, quirks
from .reply import RetryPiece
from .transport import Chunk, Transport
from .wire import dumps


@dataclass(frozen=True, slots=True)
class Backoff:
    """A policy of doubling waits with jitter, never longer than `longest_s`, whatever the endpoint asks for."""

    first_s: float = 0.5
    longest_s: float = 60.0

    def wait_s(self, tries: int, chance: random.Random, asked_s: float | None = None) -> float:
        """Return the seconds to wait after so many failed tries; a wait that the endpoint asked for takes
        precedence.
        """
        if asked_s is not None:
            return min(max(asked_s, 0.0), self.longest_s)
        doubled = self.first_s * 2.0 ** min(tries - 1, 30)
        return min(doubled, self.longest_s) * chance.uniform(0.5, 1.0)


def read_retry_after(text: str, now: float) -> float | None:
    """Return the seconds from a `Retry-After` header, which holds seconds or an HTTP date; None if it holds neither."""
    try:
        seconds = float(text)
    except ValueError:
        return _seconds_until(text, now)
    return seconds if 0 <= seconds < float("inf") else None


def _seconds_until(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)
    except (ValueError, OverflowError):  # a year, an hour or a zone that no calendar has
        return None


Body: TypeAlias = Mapping[str, Any]  # Any: JSON values; a value of type `bytes` is JSON text already

_LISTED: Final = 12


class Endpoint:
    """A client of one model at one address."""

    def __init__(
        self, url: str, model: str, *, key: str = "", settings: ModelSettings | None = None, clock: Clock | None = None
    ) -> None:
        self.settings = settings or ModelSettings()
        self.url = url.rstrip("/")
        self.model = model
        self._clock = clock or Clock()
        self._backoff = Backoff()
        self.speak(dialect_of(self.url))
        self._transport = Transport(self.url, key=key, timeout_s=self.settings.timeout_s)

    def speak(self, dialect: Dialect) -> None:
        """Use this dialect from now on."""
        self.dialect = dialect
        self._instead: dict[str, Instead] = dict(dialect.instead)

    async def complete(self, body: Body) -> AsyncGenerator[Chunk | RetryPiece, None]:
        """Yield the chunks of one completion, or the one whole response if the body does not say `"stream": True`.

        The model's name is filled in. Every wait before another try is reported by a `RetryPiece`.

        Raises:
            ContextOverflow: the endpoint says that the request is too long.
            ModelError: it cannot be used or broke off; says why and what to do.
        """
        failed = 0
        while True:
            begun = False
            try:
                async with aclosing(self._attempt(body)) as chunks:
                    async for chunk in chunks:
                        begun = True
                        yield chunk
            except ParameterRefused as error:
                self._go_round(error)
            except ModelMissing as error:
                raise await self._missing(error) from error
            except Unavailable as error:
                failed += 1
                if begun or failed > self.settings.retries:
                    raise
                yield (retry := self._retry(error, failed))
                await asyncio.sleep(retry.wait_s)
            else:
                return

    async def listing(self) -> list[Chunk]:
        """Return the entries of GET /models, each with an `id`; empty if the endpoint does not answer it."""
        return await self._transport.listing()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    def _attempt(self, body: Body) -> AsyncGenerator[Chunk, None]:
        values = {"model": self.model, **self.dialect.beside, **body}
        for name, instead in self._instead.items():
            value = values.pop(name, None)
            if instead.value:
                values[name] = instead.value
            elif instead.name and value is not None:
                values[instead.name] = value
        return self._transport.complete(write_body(values), streamed=bool(values.get("stream")))

    def _go_round(self, error: ParameterRefused) -> None:
        if error.parameter in self._instead:
            raise ModelError(error.message) from error
        self._instead[error.parameter] = quirks().refused[error.parameter]

    def _retry(self, error: Unavailable, failed: int) -> RetryPiece:
        """Return the wait before another try; raise the error if the endpoint asks for an unreasonably long wait."""
        asked_s = read_retry_after(error.retry_after, self._clock.now())
        if asked_s is not None and asked_s > self._backoff.longest_s:
            error.fix = f"It says to wait {asked_s:.0f} s: try again then, or choose another model."
            raise error
        return RetryPiece(error.message, self._backoff.wait_s(failed, self._clock.random, asked_s))

    async def _missing(self, error: ModelMissing) -> ModelError:
        names = [entry["id"] for entry in await self.listing()]
        if not names:
            return ModelError(error.message, fix=f"{base_url_hint(self.url)} Or name another model.")
        if self.model in names:
            return ModelError(error.message, fix=base_url_hint(self.url))
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        listed = ", ".join(names[:_LISTED]) + more
        return ModelError(f"There is no model `{self.model}` at {self.url}.", fix=f"There are: {listed}.")


def write_body(body: Body) -> bytes:
    """Return the body as JSON text; values of type `bytes` are inserted unchanged."""
    written = (
        dumps(name) + b":" + (value if isinstance(value, bytes) else dumps(value)) for name, value in body.items()
    )
    return b"{" + b",".join(written) + b"}"
