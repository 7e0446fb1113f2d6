"""One model at one endpoint: sends a body, yields chunks, and works around what the endpoint refuses by name.

If the model that is named does not exist, the available ones are listed.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from httpx2 import AsyncBaseTransport

from agent_core.base.errors import ModelError
from agent_core.base.settings import ModelSettings

from .connection import Chunk, Connection
from .dialect import AZURE, AzureTerms, Dialect, Instead, dialect_of, quirks
from .failures import ModelMissing, ParameterRefused, base_url_hint
from .reply import RetryPiece
from .responses import ResponseReader, to_responses
from .wire import dumps

Body: TypeAlias = Mapping[str, Any]  # Any: JSON values; a value of type `bytes` is JSON text already

_LISTED: Final = 12
_LISTING_S: Final = 3.0
_BESIDE_S: Final = 3.0


class Endpoint:
    """A client of one model at one address."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        settings: ModelSettings | None = None,
        azure: AzureTerms | None = None,
        transport: AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client; `azure` and `transport` are as those of a `Connection`."""
        self.settings = settings or ModelSettings()
        self.url = url.rstrip("/")
        self.model = model
        self._path = f"/deployments/{quote(model, safe='')}/chat/completions" if azure else "/chat/completions"
        self.speak(dialect_of(self.url))
        self._connection = Connection(
            self.url,
            key=key,
            timeout_s=self.settings.timeout_s,
            retries=self.settings.retries,
            azure=azure,
            transport=transport,
        )

    def speak(self, dialect: Dialect) -> None:
        """Use this dialect from now on, over the API that is set."""
        api = self.settings.api
        self.dialect = dialect if api == "auto" else replace(dialect, api=api)
        self._instead: dict[str, Instead] = dict(dialect.instead)

    async def complete(self, body: Body) -> AsyncGenerator[Chunk | RetryPiece, None]:
        """Yield the chunks of one completion, or the one whole response if the body does not say `"stream": True`.

        The model's name is filled in. Every wait before another try is reported by a `RetryPiece`.

        Raises:
            ContextOverflow: the endpoint says that the request is too long.
            ModelError: it cannot be used or broke off; says why and what to do.
        """
        while True:
            try:
                async with aclosing(self._attempt(body)) as chunks:
                    reader = ResponseReader() if self.dialect.api == "responses" else None
                    async for chunk in chunks:
                        for piece in reader.read(chunk) if reader and isinstance(chunk, dict) else (chunk,):
                            yield piece
            except ParameterRefused as error:
                self._go_round(error)
            except ModelMissing as error:
                raise await self._missing(error) from error
            else:
                return

    async def listing(self) -> list[Chunk]:
        """Return the entries of GET /models, each with an `id`; empty if the endpoint does not answer it."""
        try:
            return await self._connection.listing(timeout_s=_LISTING_S)
        except ModelError:
            return []

    async def beside(self, path: str, body: Chunk | None = None, *, timeout_s: float = _BESIDE_S) -> Chunk:
        """Return the object that the endpoint's server answers at a path; an empty one if none arrives in time."""
        try:
            answer = await self._connection.ask(f"/{path}", body, timeout_s=timeout_s)
        except ModelError:
            return {}
        return answer if isinstance(answer, dict) else {}

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    def _attempt(self, body: Body) -> AsyncGenerator[Chunk | RetryPiece, None]:
        values: dict[str, Any] = {"model": self.model, **self.dialect.beside, **body}
        is_chat = self.dialect.api == "chat"
        path, values = (self._path, values) if is_chat else ("/responses", to_responses(values))
        for name, instead in self._instead.items():
            value = values.pop(name, None)
            if instead.value:
                values[name] = instead.value
            elif instead.name and value is not None:
                values[instead.name] = value
        return self._connection.stream(path, write_body(values), streamed=bool(values.get("stream")))

    def _go_round(self, error: ParameterRefused) -> None:
        if error.parameter in self._instead:
            raise ModelError(error.message) from error
        self._instead[error.parameter] = quirks().refused[error.parameter]

    async def _missing(self, error: ModelMissing) -> ModelError:
        if (
            self._path != "/chat/completions" or self.dialect.name == AZURE
        ):  # it lists models, and a request names a deployment
            fix = "Name a deployment of the resource as the model: --model NAME."
            return ModelError(error.message, fix=fix)
        names = [entry["id"] for entry in await self.listing()]
        if not names:
            return ModelError(error.message, fix=f"{base_url_hint(self.url)} Or name another model.")
        if self.model in names:
            chat = " Or set `model.api` to chat: not every endpoint has the Responses API."
            return ModelError(error.message, fix=base_url_hint(self.url) + chat * (self.dialect.api == "responses"))
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        listed = ", ".join(names[:_LISTED]) + more
        return ModelError(f"There is no model `{self.model}` at {self.url}.", fix=f"There are: {listed}.")


def write_body(body: Body) -> bytes:
    """Return the body as JSON text; values of type `bytes` are inserted unchanged."""
    written = (
        dumps(name) + b":" + (value if isinstance(value, bytes) else dumps(value)) for name, value in body.items()
    )
    return b"{" + b",".join(written) + b"}"
