"""The secrets of one call: given by name to the function with the grant, masked in everything that leaves it.

Each secret that the function may have is masked, even if it did not ask for it, because it may remember one from an
earlier call; so are those of the functions that it called. In an outcome, every field that comes from a worker is
masked, including future fields.

Masking happens at the one place where the host receives a worker's output, so its readers (progress, other functions,
memory, the debugger, replay records, the outcome) never see a secret's value; only the vault and the broker do. Printed
output is masked as it arrives, at a limited rate; the end of a text that may be the beginning of a secret waits for the
rest. Secrets that this process has handed out are also masked in its log and in the crash file.
"""

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from agent_core.base.errors import KnapperError
from agent_core.base.offload import aside, bulk
from sandbox import CalleeFailed, Outcome, Patient, RequestHandler, RequestRefused
from sandbox.wire.large import Large, LargeValues, LargeWriter

from .masks import JsonStream, Masks, Pair
from .source import Secrets, is_name

Want: TypeAlias = Callable[[str], Awaitable[bool]]  # asks a human for one more secret by its name
T = TypeVar("T")
_MOST_ASKED = 8


async def never(_name: str) -> bool:
    """Refuse, without asking anyone."""
    return False


class CallSecrets:
    """The secrets of one call; `around` is the session of the calling function, if any."""

    def __init__(
        self,
        secrets: Secrets,
        function: str,
        granted: tuple[str, ...] = (),
        want: Want = never,
        around: "CallSecrets | None" = None,
    ) -> None:
        self._secrets = secrets
        self._function = function
        self._granted = set(granted)
        self._want = want
        self._around = around
        self._asked: set[str] = set()
        self._known: frozenset[Pair] = frozenset()
        self.lacks_value = False  # whether a secret was asked for that is granted, but not set
        if pairs := (
            secrets.pairs(granted) | REVEALED.of(granted) if granted else frozenset()
        ) | REVEALED.to(function):
            self._know(pairs)

    async def answer(self, name: object) -> str:
        """Return a secret's value.

        Raises:
            RequestRefused: it is not granted, or granted but not set.
        """
        if not isinstance(name, str) or not is_name(name):
            raise RequestRefused(
                "a secret's name is made of letters, digits and _, and begins with no digit"
            )
        if name not in self._granted and not await self._ask_for_secret(name):
            how = f"knapper functions grant {self._function} --secret {name}"
            raise RequestRefused(
                f"`{self._function}` may not use the secret `{name}`. Grant it at a terminal: {how}"
            )
        try:
            value = self._secrets.value(name)
        except KnapperError as error:
            self.lacks_value = True
            raise RequestRefused(str(error)) from error
        self._know({(name, value)})
        REVEALED.hand(self._function, (name, value))
        return value

    def over(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the call, masked."""
        return masked(outcome, _masks(self._known))

    def value(self, value: T) -> T:
        """Return a value for another function, masked for this call and all calls around it."""
        return self._outermost.clean_value(value)  # type: ignore[no-any-return]  # of the same shape

    def words(self, value: T) -> T:
        """Return a value to show, store or ask about, masked as text that may have been cut or split."""
        return self._outermost.clean_words(value)  # type: ignore[no-any-return]  # of the same shape

    @property
    def has_any(self) -> bool:
        """True if this call, or one around it, may know a secret."""
        return bool(self._outermost)

    @property
    def _outermost(self) -> Masks:
        return self._around._outermost if self._around else _masks(self._known)

    def settled(self, text: str) -> int:
        """Return how much of a growing text can be reported already."""
        return _masks(self._known).settled(text)

    def json_stream(self) -> JsonStream:
        """Return the masking of a large value for other functions, for this call and all calls around it."""
        return JsonStream(self._outermost)

    def _know(self, pairs: Iterable[Pair]) -> None:
        REVEALED.note(pairs)
        self._known |= frozenset(pairs)
        if self._around:
            self._around._know(pairs)

    async def _ask_for_secret(self, name: str) -> bool:
        """Ask the user, once per name, whether a secret may be used."""
        if name in self._asked or len(self._asked) >= _MOST_ASKED:
            return False
        self._asked.add(name)
        if await self._want(name):
            self._granted.add(name)
        return name in self._granted


@lru_cache(maxsize=16)
def _masks(pairs: frozenset[Pair]) -> Masks:
    return Masks(pairs)


MEASURED: Final = frozenset({"seconds", "memory", "cpu_s", "limit_s"})  # by the host, so not masked
VALUE: Final = "value"


def masked(outcome: Outcome, masks: Masks) -> Outcome:
    """Return the outcome without any of the secrets."""
    return _masked_part(outcome, masks) if masks else outcome


def _masked_part(part: T, masks: Masks) -> T:
    names = [field.name for field in fields(part) if field.name not in MEASURED]  # type: ignore[arg-type]  # a dataclass
    return replace(
        part, **{name: _masked_field(name, getattr(part, name), masks) for name in names}
    )  # type: ignore[type-var]


def _masked_field(
    name: str, value: Any, masks: Masks
) -> Any:  # Any: what a field of an outcome holds
    if name == VALUE:
        return masks.clean_value(value)
    if isinstance(value, Large):  # masked when it arrived
        return value
    if is_dataclass(value):
        return _masked_part(value, masks)
    match value:
        case tuple():
            return tuple(_masked_field("", item, masks) for item in value)
        case int() | float() if masks.hides(value):
            return 0
        case _:
            return masks.clean_words(value)


EVERY_S: Final = 0.05  # at most 20 pieces a second, each with all new output


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
        """Receive a piece of any size."""
        self._held += text
        if self._waiting is None:
            self._waiting = self._loop.call_at(max(self._next, self._loop.time()), self._pass_on)

    def close(self) -> None:
        """Report the rest, because nothing more will arrive."""
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


class MaskedValues:
    """Keeps the large values of one call, masked before any of it is written."""

    def __init__(self, values: LargeValues, secrets: CallSecrets) -> None:
        self._values = values
        self._secrets = secrets

    def receive(self) -> LargeWriter:
        """Return a writer for one value. What the call knows now is masked: it learns nothing while it sends."""
        writer = self._values.receive()
        return (
            MaskedWriter(writer, self._secrets.json_stream()) if self._secrets.has_any else writer
        )

    def pieces(self, digest: str) -> AsyncGenerator[str, None]:
        """Return the pieces of a kept value."""
        return self._values.pieces(digest)


class MaskedWriter:
    """Receives one large value and masks it."""

    def __init__(self, writer: LargeWriter, stream: JsonStream) -> None:
        self._writer = writer
        self._stream = stream

    async def write(self, text: str) -> None:
        """Add a piece of its JSON."""
        await self._writer.write(await asyncio.to_thread(self._stream.add, text))

    async def finish(self, kind: str, count: int | None) -> Large:
        """Keep the value, and return it."""
        await self._writer.write(self._stream.end())
        return await self._writer.finish(kind, count)

    async def drop(self) -> None:
        """Keep nothing."""
        await self._writer.drop()


FETCHES: Final = frozenset({"fetch", "fetch_send", "fetch_read", "fetch_close"})
FILES: Final = frozenset(
    {"file_open", "file_stat", "file_list", "file_change", "file_places"}
    | {"file_read", "file_write", "file_size", "file_truncate"}
)
_OF_VALUES: Final = frozenset(
    {"call"}
)  # its arguments go to another function, which gets them complete
Tell: TypeAlias = Callable[[str], None]


class RequestSender(Protocol):
    """The handlers that receive a worker's words unmasked, because these leave the sandbox or go to a file."""

    async def answer(
        self, name: str, arguments: dict[str, Any], /
    ) -> Any:  # Any: values that cross the sandbox
        """Return the answer to one request."""


class Keep(Protocol):
    """Records answers for a replay."""

    def __call__(
        self,
        name: str,
        arguments: Any,
        value: Callable[[], Any],
        *,
        refused: str = "",
        raised: dict[str, Any] | None = None,
    ) -> None:
        """Record an answer; everything is masked, the value only when it is needed."""


class MaskedChannel:
    """A handler between the worker of one call and the rest of the host, for the worker's requests.

    Without a broker, as in a replay, nothing outside is reached, and the handler also answers for the broker and the
    vault.
    """

    def __init__(
        self,
        secrets: CallSecrets,
        handler: RequestHandler,
        broker: RequestSender | None = None,
        keep: Keep | None = None,
        tell: Tell | None = None,
        files: RequestSender | None = None,
    ) -> None:
        self._secrets = secrets
        self._files = files
        self._handler = handler
        self._broker = broker
        self._keep = keep
        self._tell = tell

    async def __call__(
        self, name: str, arguments: dict[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
        """Answer one request of the worker.

        Raises:
            RequestRefused: it is not possible; the message is for the function's author.
        """
        call_name, masked = (
            self._secrets.words(name),
            await aside(bulk(arguments), self._mask, name, arguments),
        )
        try:
            value = await self._answer(name, call_name, masked, arguments)
        except RequestRefused as refusal:
            raised = (
                self._secrets.words(refusal.to_json())
                if isinstance(refusal, CalleeFailed)
                else None
            )
            await self._note(
                call_name, masked, lambda: None, self._secrets.words(str(refusal)), raised
            )
            raise
        if not isinstance(value, Patient):
            await self._note(call_name, masked, lambda: self._mask(name, value), size=bulk(value))
        return value

    async def _answer(
        self, name: str, call_name: str, masked: dict[str, Any], arguments: dict[str, Any]
    ) -> Any:
        if self._broker is not None and name in FETCHES:
            return await self._broker.answer(name, arguments)
        if self._files is not None and name in FILES:
            return await self._files.answer(name, arguments)
        if self._broker is not None and name == "secret":
            return await self._secrets.answer(masked.get("name"))
        return await self._handler(call_name, masked)

    def _mask(self, name: str, value: Any) -> Any:
        return self._secrets.value(value) if name in _OF_VALUES else self._secrets.words(value)

    async def _note(
        self,
        name: str,
        arguments: dict[str, Any],
        value: Callable[[], Any],
        refused: str = "",
        raised: dict[str, Any] | None = None,
        size: int = 0,
    ) -> None:
        if self._keep is not None:
            size = max(size, bulk(arguments))
            await aside(size, self._keep, name, arguments, value, refused=refused, raised=raised)

    def over(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the call, masked."""
        return self._secrets.over(outcome)

    def keeping(self, values: LargeValues) -> LargeValues:
        """Return where large values of the call are kept, masked."""
        return MaskedValues(values, self._secrets)

    @contextmanager
    def heard(self) -> Iterator[Tell | None]:
        """Yield the listener for the worker's printed output; all of it arrives before the call is answered."""
        if self._tell is None:
            yield None
            return
        with closing(Printing(self._tell, self._secrets)) as printing:
            yield printing.hear


LOGGERS = (
    "knapper.broker",
    "knapper.grants",
    "knapper.packages",
    "knapper.turns",
    "agent_core",
    "agent_core.api.agent_host",
    "agent_core.wire",
    "agent_core.runtime.host_functions",
    "agent_core.workspace.runner",
    "sandbox.processes.calls",
)


class RevealedSecrets:
    """Every secret that was given to a function since the process began."""

    def __init__(self) -> None:
        self._pairs: frozenset[Pair] = frozenset()
        self._by_function: dict[str, frozenset[Pair]] = {}
        self._masks = Masks(())

    def note(self, pairs: Iterable[Pair]) -> None:
        """Mask these secrets from now on."""
        if not self._pairs.issuperset(pairs := frozenset(pairs)):
            self._pairs |= pairs
            self._masks = Masks(self._pairs)

    def hand(self, function: str, pair: Pair) -> None:
        """Record that a function received this secret, and may remember it."""
        self._by_function[function] = self.to(function) | {pair}

    def to(self, function: str) -> frozenset[Pair]:
        """Return the secrets that a function ever received."""
        return self._by_function.get(function, frozenset())

    def of(self, names: Iterable[str]) -> frozenset[Pair]:
        """Return the pairs with these names, with every value that each has had."""
        wanted_names = frozenset(names)
        return frozenset(pair for pair in self._pairs if pair[0] in wanted_names)

    def clean(self, text: str) -> str:
        """Return the text without any of them, or long pieces of them."""
        return self._masks.clean_said(text)

    def are_in(self, data: bytes) -> bool:
        """Return whether bytes hold one of them, in any form that is masked."""
        return self._masks.clean_bytes(data) != data

    def __bool__(self) -> bool:
        return bool(self._masks)


REVEALED = RevealedSecrets()


class _MaskingFilter(logging.Filter):
    """Masks a record before any handler sees it; an error becomes text, because its frames contain values."""

    def filter(self, record: logging.LogRecord) -> bool:
        if REVEALED:
            record.msg, record.args = REVEALED.clean(record.getMessage()), ()
            if record.exc_info and record.exc_info[1] is not None:
                text = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n")
                record.exc_text, record.exc_info = REVEALED.clean(text), None
            record.stack_info = REVEALED.clean(record.stack_info) if record.stack_info else None
        return True


_MASKING_FILTER = _MaskingFilter()


def mask_logs() -> None:
    """Mask the records of every logger of this program."""
    for name in LOGGERS:
        masked_logger(name)


def masked_logger(name: str) -> logging.Logger:
    """Return a logger whose records are masked."""
    logger = logging.getLogger(name)
    logger.addFilter(_MASKING_FILTER)
    return logger
