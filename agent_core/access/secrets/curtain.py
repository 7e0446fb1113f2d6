"""The mask over all output of one call's worker, applied at the one place where the host receives it.

Whatever reads the output (progress, other functions, memory, the debugger, replay records, the outcome) never sees a
secret's value; only the vault and the broker have it. Printed output is masked as it arrives, at a limited rate; the
end of a text that may be the beginning of a secret waits for what follows.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, Protocol, TypeAlias

from sandbox import Outcome, Patient, RequestHandler, RequestRefused

from .session import CallSecrets

EVERY_S: Final = 0.05  # at most 20 pieces a second, each with all that came meanwhile


class Printing:
    """The printed output of one call, from its start to its end."""

    def __init__(self, tell: Callable[[str], None], secrets: CallSecrets) -> None:
        self._tell = tell
        self._secrets = secrets
        self._loop = asyncio.get_running_loop()
        self._held = ""
        self._next = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    def hear(self, text: str) -> None:
        """Take a piece, of any size."""
        self._held += text
        if self._waiting is None:
            self._waiting = self._loop.call_at(max(self._next, self._loop.time()), self._pass_on)

    def close(self) -> None:
        """Report the rest, as nothing more will arrive."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._say(len(self._held))

    def _pass_on(self) -> None:
        self._waiting = None
        self._next = self._loop.time() + EVERY_S
        self._say(self._secrets.settled(self._held))

    def _say(self, size: int) -> None:
        text, self._held = self._held[:size], self._held[size:]
        if text:
            self._tell(self._secrets.words(text))


FETCHES: Final = frozenset({"fetch", "fetch_send", "fetch_read", "fetch_close"})
_OF_VALUES: Final = frozenset({"call"})  # its arguments are another function's, which gets them whole
Tell: TypeAlias = Callable[[str], None]


class RequestSender(Protocol):
    """A sender of fetches; the one handler that receives a worker's words unmasked."""

    async def answer(self, name: str, arguments: dict[str, Any], /) -> Any:  # Any: values that cross the sandbox
        """Return the answer to a fetch."""


class Keep(Protocol):
    """A recorder of answers for a replay."""

    def __call__(self, name: str, arguments: Any, value: Callable[[], Any], *, refused: str = "") -> None:
        """Record an answer; everything is masked, the value only when it is needed."""


class Curtain:
    """A handler between the worker of one call and the rest of the host, for the worker's requests.

    Without a broker nothing is reached, as in a replay: then the handler answers for the broker and the vault.
    """

    def __init__(
        self,
        secrets: CallSecrets,
        handler: RequestHandler,
        broker: RequestSender | None = None,
        keep: Keep | None = None,
        tell: Tell | None = None,
    ) -> None:
        self._secrets = secrets
        self._handler = handler
        self._broker = broker
        self._keep = keep
        self._tell = tell

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Any:  # Any: values that cross the sandbox
        """Answer one request of the worker.

        Raises:
            RequestRefused: it cannot be; the message is for the function's author.
        """
        call_name, masked = self._secrets.words(name), self._masked(name, arguments)
        try:
            value = await self._answer(name, call_name, masked, arguments)
        except RequestRefused as refusal:
            self._note(call_name, masked, lambda: None, self._secrets.words(str(refusal)))
            raise
        if not isinstance(value, Patient):
            self._note(call_name, masked, lambda: self._masked(name, value))
        return value

    async def _answer(self, name: str, call_name: str, masked: dict[str, Any], arguments: dict[str, Any]) -> Any:
        if self._broker is not None and name in FETCHES:
            return await self._broker.answer(name, arguments)
        if self._broker is not None and name == "secret":
            return await self._secrets.answer(masked.get("name"))
        return await self._handler(call_name, masked)

    def _masked(self, name: str, value: Any) -> Any:
        return self._secrets.value(value) if name in _OF_VALUES else self._secrets.words(value)

    def _note(self, name: str, arguments: dict[str, Any], value: Callable[[], Any], refused: str = "") -> None:
        if self._keep is not None:
            self._keep(name, arguments, value, refused=refused)

    def over(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the call, masked."""
        return self._secrets.over(outcome)

    @contextmanager
    def heard(self) -> Iterator[Tell | None]:
        """Yield the listener for the worker's prints; all of them arrive before the call is answered."""
        if self._tell is None:
            yield None
            return
        with closing(Printing(self._tell, self._secrets)) as printing:
            yield printing.hear
