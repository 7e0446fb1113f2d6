"""Opens the chosen model in the mode that its profile indicates; contains the client for native calls.

The window's size comes from the settings, the endpoint, the table, or a default. A step costs only its new messages:
messages that were serialized before are not serialized again.
"""

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import httpx2

from agent_core.base.clock import Clock
from agent_core.base.errors import ModelError
from agent_core.base.messages import Assistant, System, User, pictures_of
from agent_core.base.plain_files import add_to, read_end
from agent_core.base.records import dataclass, replace
from agent_core.base.settings import ModelSettings
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .beside import NATIVE, ModeBeside, mode_beside, mode_named, models_of
from .connection import Endpoint, FunctionsRefused, NotTaken, read_aside
from .dialect import Loading, changed, dialects, is_loopback, quirks
from .discover import DiscoveredModel
from .forms import NoneHeld, ReplyFormState
from .reading import KnownFunctions
from .reply import (
    CallPiece,
    Mode,
    ModeChanged,
    Model,
    Piece,
    ReadingPiece,
    Reply,
    RetryPiece,
    TokenUsage,
)
from .request import FunctionShown, Request
from .stream import Assembly
from .tokens import (
    BYTES_PER_TOKEN,
    Estimator,
    Window,
    count,
    known_window,
    listed_window,
    tells_windows,
    told_at,
    told_window,
    window,
)
from .tour import SERVED, streamed
from .wire import RequestWriter, bulk_of, loosened

SMALL: Final = 4e9
"""A model with fewer parameters counts as too small to call functions natively."""

_SIZE_NAMED: Final = re.compile(
    r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])", re.IGNORECASE
)
_LEAST: Final = 20_000_000  # parameters: a smaller number is a window, as in `14b-instruct-1m`
_MOST_PARAMETERS: Final = 10**15
_UNITS: Final = {"b": 1e9, "m": 1e6}
_SIZES: Final = (
    "meta.n_params",
    "model_info.general.parameter_count",
    "details.parameter_size",
    "params_string",
    "parameter_size",
)
"""The fields in which servers report how many parameters a model has."""
_CALLING: Final = frozenset({"tools", "tool_use", "tool_calls", "function_calling"})

_Answer: TypeAlias = dict[str, Any]  # Any: foreign JSON


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The known facts about a model; `calls` tells whether its template supports functions, None if unknown.

    `mode` is the initial mode, None if only a probe or a reply can determine it.
    """

    parameters: float | None = None
    calls: bool | None = None
    key: str = ""
    mode: Mode | None = None


class KnownModes:
    """The modes and windows that were found by model, one line each in a file of the workspace; the last line counts.

    Without a path, or if the file cannot be written, they are kept in this process. A window of 0 means assumed.
    """

    _MOST_BYTES: Final = 1 << 16

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._facts: dict[tuple[object, str], Any] = {}  # Any: JSON of a file
        with suppress(OSError):
            for line in read_end(path, self._MOST_BYTES).splitlines() if path else ():
                with suppress(Malformed):
                    row = read_json(line, LOOSE)
                    if isinstance(row, dict) and isinstance(key := row.get("model"), str):
                        self._facts |= {(key, kind): value for kind, value in row.items()}

    def get(self, key: str, kind: Literal["mode", "window"]) -> Any:
        """Return the fact that was found about a model; None if there is none."""
        return self._facts.get((key, kind))

    def put(self, key: str, kind: Literal["mode", "window"], value: str | int) -> None:
        """Record a fact about a model."""
        if key and self.get(key, kind) != value:
            self._facts[key, kind] = value
            if self._path is not None:
                with suppress(OSError):
                    add_to(self._path, json.dumps({"model": key, kind: value}).encode() + b"\n")


async def find_profile(endpoint: Endpoint, known: KnownModes) -> ModelProfile:
    """Return the known facts about the endpoint's model; if its server names itself, use that server's dialect.

    No requests go to a remote address unless it is a known server of such models.
    """
    key = f"{endpoint.url} {endpoint.model}"
    if not (endpoint.dialect.told or is_loopback(endpoint.url)):
        return _with_mode(ModelProfile(key=key), known)
    entry, answer = await endpoint.entry(), _Answer()
    owned = next(
        (
            dialect
            for dialect in dialects()
            if dialect.owner and dialect.owner == entry.get("owned_by")
        ),
        None,
    )
    if owned is not None and not endpoint.dialect.told:
        endpoint.speak(owned)
    if (dialect := endpoint.dialect).told:
        answer = await endpoint.fetch(
            dialect.told, None if dialect.loading is None else {"model": endpoint.model}
        )
    profile = read_profile([entry, *_rows_of_model(answer, endpoint.model)], endpoint.model)
    facts = json.dumps([profile.parameters, profile.calls, dialect.name])
    return _with_mode(
        replace(profile, key=f"{key} {hashlib.sha256(facts.encode()).hexdigest()[:12]}"), known
    )


def read_profile(answers: Sequence[_Answer], name: str) -> ModelProfile:
    """Return the facts about a model in the answers of servers; if none has its size, its name may."""
    sizes: list[float] = []
    for value in [
        *(told_at(answer, place) for answer in answers for place in _SIZES),
        name.rpartition("/")[2],
    ]:
        if isinstance(value, str):  # such as `1.5B`
            named = [
                float(number) * _UNITS[unit.lower()] for number, unit in _SIZE_NAMED.findall(value)
            ]
            sizes += [size for size in named if size >= _LEAST]
        elif (size := count(value, _LEAST, _MOST_PARAMETERS)) is not None:
            sizes.append(size)
    calls: list[bool] = []
    for answer in answers:
        capabilities, template = answer.get("capabilities"), answer.get("chat_template")
        listed = (
            [each for each in capabilities if isinstance(each, str)]
            if isinstance(capabilities, list)
            else []
        )
        if not _CALLING.isdisjoint(listed) or (listed and "model_info" in answer):
            calls.append(not _CALLING.isdisjoint(listed))
        elif isinstance(template, str) and template:
            calls.append("tools" in template)
    return ModelProfile(next(iter(sizes), None), next(iter(calls), None))


def _with_mode(profile: ModelProfile, known: KnownModes) -> ModelProfile:
    """Return the profile with the mode that follows from it, if one does."""
    other = mode_beside()
    if (mode := known.get(profile.key, "mode")) in (NATIVE, other):
        return replace(profile, mode=mode)
    is_small = profile.parameters is not None and profile.parameters < SMALL
    return replace(profile, mode=other) if is_small or profile.calls is False else profile


def _rows_of_model(
    answer: _Answer, model: str, entries: str = "data", name: str = "id"
) -> list[_Answer]:
    """Return an answer's rows about a model: the entries of its list with the model's name, or the answer itself."""
    rows = answer.get(entries)
    if not isinstance(rows, list):
        return [answer]
    return [row for row in rows if isinstance(row, dict) and row.get(name) == model]


SLOW: Final = 40.0
"""Tokens per second in a probe, including its answer; below this, reading a long prompt takes minutes."""

_PROBE_TOKENS: Final = 256
_ADD: Final = FunctionShown(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)


async def probe(
    stream: Callable[[Request], AsyncIterator[Piece]], profile: ModelProfile
) -> ModelProfile:
    """Return the profile with the mode that a tiny request shows, if it shows one: a call, a call as text, or slowness.

    The first answer may be slow because the model is loading, so only a second slow answer counts.
    """
    for number in range(2):
        began = time.monotonic()
        reply = await _answer(stream, number)
        if reply is None or reply.finish == "length":
            return profile
        if reply.written or not reply.calls:
            return replace(profile, mode=mode_beside())
        if reply.usage.estimated or reply.usage.prompt - reply.usage.cached >= SLOW * (
            time.monotonic() - began
        ):
            return replace(profile, mode=NATIVE)
    return replace(profile, mode=mode_beside())


async def _answer(stream: Callable[[Request], AsyncIterator[Piece]], number: int) -> Reply | None:
    """Return the reply to a request for a call; None if it failed, which the turn will report."""
    start = System(
        f"Request {number + 1}. You call functions."
    )  # at the start, so that a cached prompt does not match
    request = Request((start, User("Call add with a=17 and b=25.")), (_ADD,), _PROBE_TOKENS)
    try:
        async with aclosing(stream(request)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, Reply):
                    return piece
    except FunctionsRefused:
        return Reply("", "", (), "stop", TokenUsage(0, 0, estimated=True))
    except ModelError:
        return None
    return None


_LOAD_S: Final = 60.0
_SET: Final = re.compile(r"^num_ctx[ \t]+(\d{1,9})\b", re.MULTILINE)


async def find_window(
    endpoint: Endpoint,
    model: DiscoveredModel,
    known: KnownModes | None = None,
    *,
    loads: bool = True,
) -> Window:
    """Return the window of the endpoint's model: as set, reported now or earlier, known by its name, or assumed.

    With `loads`, a server that chooses the window when it loads a model may be made to load it.
    """
    if endpoint.settings.context_tokens:
        return Window(endpoint.settings.context_tokens, "set in model.context_tokens")
    if endpoint.dialect.loading and (
        loaded := await loaded_window(endpoint, endpoint.dialect.loading, loads=loads)
    ):
        return loaded
    known, key = known or KnownModes(), f"{endpoint.url} {endpoint.model}"
    if tokens := model.context_tokens or await _reported_window(endpoint, loads=loads):
        known.put(key, "window", tokens)
        return Window(tokens, "told by the endpoint")
    before = known.get(key, "window")
    if tokens := window(before):
        return Window(tokens, "told by the endpoint earlier")
    if tokens := known_window(endpoint.model):
        return Window(tokens, "known for models of this name")
    known.put(key, "window", 0)
    return Window(quirks().assumed_window, "assumed", is_assumed=True, is_news=before is None)


async def _reported_window(endpoint: Endpoint, *, loads: bool) -> int | None:
    """Return the window that the model is served with, or else its own, as the listing or a path next to it reports.

    Only servers of the user's own are asked at those paths, not known services.
    """
    if not tells_windows(endpoint.url):
        return None
    entry = await endpoint.entry()
    if tokens := listed_window(entry):
        return tokens
    own = told_window(entry, quirks().own_names)
    is_known = bool(endpoint.dialect.address)
    if is_known and not endpoint.dialect.told:
        return own
    places = quirks().beside
    owns = [own] if own else []
    for place, answer in zip(
        places, await asyncio.gather(*(endpoint.fetch(each.path) for each in places)), strict=True
    ):
        rows = _rows_of_model(answer, endpoint.model, place.entries, place.model)
        if sizes := [size for row in rows if (size := told_window(row, place.names))]:
            return min(sizes)
        owns += [size for row in rows if (size := told_window(row, place.own))]
    loading = next((dialect.loading for dialect in dialects() if dialect.loading), None)
    loaded = (
        await loaded_window(endpoint, loading, loads=loads) if loading and not is_known else None
    )
    return loaded.tokens if loaded else next(iter(owns), None)


async def window_of(model: DiscoveredModel, settings: ModelSettings) -> Window | None:
    """Return the window of a model without opening it; None if it is not at an endpoint."""
    if model.kind != "endpoint":
        return None
    async with aclosing(_endpoint(model, settings)) as endpoint:
        return await find_window(endpoint, model, loads=False)


def _endpoint(discovered: DiscoveredModel, settings: ModelSettings) -> Endpoint:
    url, model = discovered.endpoint_url, discovered.model_name
    return Endpoint(url, model, key=discovered.key, settings=settings, azure=discovered.azure)


async def loaded_window(
    endpoint: Endpoint, loading: Loading, *, loads: bool = True
) -> Window | None:
    """Return the window with which a server loads its model, which may be far smaller than the model's own.

    Only a running model shows the actual window, so with `loads` the model is loaded, as its first request would do.
    """
    named = {"model": endpoint.model}
    shown = await endpoint.fetch(loading.shown, named)
    info = shown.get("model_info")
    made_for = (
        [value for name, value in info.items() if name.endswith(".context_length")]
        if isinstance(info, dict)
        else []
    )
    own = next((size for value in made_for if (size := window(value))), 0)  # the model's own window
    if shown.get("remote_host") or urlsplit(endpoint.url).hostname in loading.remote:
        return Window(own, "told by the endpoint") if own else None
    running = await _running(endpoint, loading)
    if not running and shown and loads:
        await endpoint.fetch(loading.load, {**named, "stream": False}, timeout_s=_LOAD_S)
        running = await _running(endpoint, loading)
    match = _SET.search(str(shown.get("parameters") or ""))
    set_tokens = (window(int(match[1])) or 0) if match else 0
    tokens = running or set_tokens or min(own, loading.unset)
    if not tokens:
        return None
    is_cut = tokens < own
    return Window(tokens, "as its server loads it", loading.fix if is_cut else "")


async def _running(endpoint: Endpoint, loading: Loading) -> int:
    answer, name = await endpoint.fetch(loading.running), endpoint.model
    rows = [
        *_rows_of_model(answer, name, "models", "model"),
        *_rows_of_model(answer, f"{name}:latest", "models", "model"),
    ]
    return next((size for row in rows if (size := window(row.get("context_length")))), 0)


_NAMED: Final = 6
_NAME_CHARS: Final = 80
_MOST: Final = 0.5  # maximum share of the window for functions
_TOUR_TOKENS: Final = 1 << 17


class NativeModel:
    """A model behind an endpoint that accepts functions and answers with calls."""

    def __init__(self, endpoint: Endpoint, *, window: Window, clock: Clock | None = None) -> None:
        self.name = endpoint.model
        self.context_limit = window.tokens
        self.window = window
        self.estimator = Estimator()
        self._endpoint = endpoint
        self._settings = endpoint.settings
        self.clock = clock or Clock()
        self._writer = RequestWriter(endpoint.dialect, endpoint.source)
        self._shown: tuple[FunctionShown, ...] = ()
        self._is_loosened_said = False
        self._shape_forms = ReplyFormState(endpoint.dialect.constraints)
        self._is_shape_refused = False
        self._refused_pictures: set[str] = set()

    @property
    def mode(self) -> Mode:
        """The mode in which calls are currently transmitted."""
        return "native"

    @property
    def loosened(self) -> dict[str, str]:
        """The functions of the last request that this endpoint's strict mode cannot express, each with the reason."""
        if not self._writer.dialect.strict:
            return {}
        reasons = {function.name: loosened(function.parameters) for function in self._shown}
        return {name: why for name, why in reasons.items() if why}

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the size of the functions in bytes as they are sent."""
        return len(self._writer.functions(functions)) if functions else 0

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply, in order; the last piece is the one `Reply`."""
        self._shown = request.functions
        begun = False
        request = self._with_taken_pictures(request)
        suspected: set[str] = set()
        refusal: NotTaken | None = None
        while True:
            try:
                async with aclosing(self._once(request)) as pieces:
                    async for piece in pieces:
                        begun = begun or not isinstance(
                            piece, RetryPiece | ReadingPiece | CallPiece
                        )
                        if isinstance(piece, Reply):
                            piece = self._with_loosened(piece)
                            piece = _with_refusal(piece, request, refusal)
                        yield piece
            except ModelError as error:
                if isinstance(error, NotTaken) and not begun and self._shape(request):
                    self._refused_shape(error)
                    continue
                if isinstance(error, NotTaken) and not begun and request.pictures:
                    # Whatever the refusal says: if the same request is taken without pictures, they were the reason.
                    refusal = error
                    suspected = {*request.pictures}
                    self._refused_pictures |= suspected
                    self._writer.speak(self._writer.dialect)
                    request = self._with_taken_pictures(request)
                    continue
                self._refused_pictures -= suspected
                dialect = None if begun else changed(self._writer.dialect, error.message)
                if dialect is None:
                    raise
                self._writer.speak(dialect)
            else:
                return

    def _with_taken_pictures(self, request: Request) -> Request:
        """Return a request without the pictures that the endpoint refused."""
        if self._refused_pictures.isdisjoint(request.pictures):
            return request
        taken = dict(request.pictures)
        for digest in self._refused_pictures:
            taken.pop(digest, None)
        return replace(request, pictures=taken)

    def _refused_shape(self, error: NotTaken) -> None:
        """Switch to the next way of enforcing a shape; after the last one, only the prompt asks for it."""
        try:
            self._shape_forms.next(error)
        except ModelError:
            self._is_shape_refused = True

    def _shape(self, request: Request) -> dict[str, Any]:  # Any: JSON
        """Return the parameters that enforce the reply's shape; with functions, only where calls are still made."""
        dialect = self._endpoint.dialect
        if request.shape is None or self._is_shape_refused or not dialect.constraints:
            return {}
        if request.functions and not dialect.shape_beside_calls:
            return {}
        schema = (request.shape.get("json_schema") or {}).get("schema") or {"type": "object"}
        constraint = self._shape_forms.constrain(schema)
        form = constraint.get("response_format")
        if form is None:
            return constraint
        is_same = form["type"] == "json_schema" or request.shape["type"] == "json_object"
        return {"response_format": request.shape} if is_same else constraint

    def _with_loosened(self, reply: Reply) -> Reply:
        """Add to the first reply a note that names the functions sent without strict schemas."""
        names = {} if self._is_loosened_said else self.loosened
        if not names:
            return reply
        self._is_loosened_said = True
        listed = ", ".join([*names][:_NAMED]) + (
            f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        )
        note = f"Sent without a strict schema, which cannot express them (`knapper doctor` says why): {listed}."
        return replace(reply, note=f"{reply.note} {note}".strip())

    async def _once(self, request: Request) -> AsyncGenerator[Piece, None]:
        body = self._body(request)
        size = len(body["messages"]) + len(body.get("tools", b"")) - _extra_size(request)
        assembly = Assembly(
            known=KnownFunctions(
                {function.name: function for function in request.functions}, request.callable
            ),
            used_ids={
                call.id
                for each in request.messages
                if type(each) is Assistant
                for call in each.calls
            },
            new_id=lambda: f"call_{self.clock.entropy(12).hex()}",
        )
        received = 0
        async with aclosing(self._endpoint.complete(body)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, RetryPiece):
                    yield chunk
                    continue
                bulk = bulk_of(chunk)
                received += bulk
                for piece in await read_aside(
                    bulk, partial(assembly.add, chunk), self._endpoint.url
                ):
                    yield piece
        usage = assembly.usage or self._estimate(size, assembly.text)
        for piece in await read_aside(received, partial(assembly.close, usage), self._endpoint.url):
            yield (
                replace(piece, source=self._endpoint.source) if isinstance(piece, Reply) else piece
            )
        if assembly.usage:
            self.estimator.learn(size, assembly.usage.prompt)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _body(self, request: Request) -> dict[str, Any]:  # Any: JSON values, and JSON text as bytes
        messages = self._writer.messages(request.messages, request.pictures)
        body: dict[str, Any] = {"messages": messages}
        if request.functions:
            body["tools"] = self._writer.functions(request.functions)
        if self._settings.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        if max_tokens := request.max_tokens or self._settings.max_tokens:
            body["max_tokens"] = max_tokens
        if self._settings.temperature is not None:
            body["temperature"] = self._settings.temperature
        return body | self._shape(request) | dict(request.parameters)

    def _estimate(self, prompt_bytes: int, text: str) -> TokenUsage:
        return TokenUsage(
            self.estimator.tokens(prompt_bytes), self.estimator.tokens_of(text), estimated=True
        )


def _with_refusal(reply: Reply, request: Request, refusal: NotTaken | None) -> Reply:
    """Return a reply with the pictures that were sent, and a note on those that the endpoint refused."""
    if request.pictures:
        reply = replace(reply, seen=frozenset(request.pictures))
    if refusal is None:
        return reply
    why = refusal.message.rstrip(".")
    note = f"The endpoint did not take the pictures, so the model was told of them in words: {why}."
    return replace(reply, note=f"{reply.note} {note}".strip())


def _extra_size(request: Request) -> int:
    """Return how many bytes the pictures of a request take beyond a text of as many tokens."""
    pictures = {
        picture.digest: picture
        for message in request.messages
        for picture in pictures_of(message)
        if request.pictures
    }
    extra = 0.0
    for digest, url in request.pictures.items():
        tokens = pictures[digest].tokens if digest in pictures else 0
        extra += len(url) - tokens * BYTES_PER_TOKEN
    return int(extra)


_TOUR_URL: Final = "http://127.0.0.1/v1"  # nothing is sent there


class _TourTransport(httpx2.AsyncBaseTransport):
    """The replacement for the network: the script of the tour answers in this process, by chat completions."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request."""
        if request.method == "GET":
            return httpx2.Response(
                200, json={"object": "list", "data": [{"id": SERVED, "object": "model"}]}
            )
        events = streamed(read_json(await request.aread(), LOOSE))
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, content=events)


class TourModel(NativeModel):
    """The model of the tour. It is not a language model: it reads and writes no tokens."""

    def _estimate(self, prompt_bytes: int, text: str) -> TokenUsage:
        return TokenUsage(0, 0)


class EitherModel(NativeModel):
    """A native model that can switch to the mode of an extension.

    It switches if the endpoint rejects functions, if they fill too much of the window, or if the model writes a call as
    text before its first native call. It starts as `profile` says and records the result in `known`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        window: Window,
        clock: Clock | None,
        profile: ModelProfile,
        known: KnownModes,
        other_name: str,
        other_mode: ModeBeside,
    ) -> None:
        super().__init__(endpoint, window=window, clock=clock)
        self._profile = profile
        self._known = known
        self._other_name = other_name
        self._other_mode = other_mode
        self._is_settled = False  # no text of the model changes the mode any longer
        self._other: Model | None = None

    @property
    def mode(self) -> Mode:
        """The mode in which calls are currently transmitted."""
        return self._other_name if self._other else NATIVE

    async def begin(self) -> None:
        """Start in the mode that the profile or a probe indicates."""
        profile = self._profile
        if profile.mode is None and self._endpoint.dialect.told:
            profile = await probe(super().stream, profile)
            if profile.mode is not None:
                self._known.put(profile.key, "mode", profile.mode)
        self._is_settled = profile.mode == NATIVE
        if profile.mode == self._other_name:
            await keep_loaded(self._endpoint)
            self._change("")

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the size of the functions in bytes as they are currently shown."""
        return self._other.overhead(functions) if self._other else super().overhead(functions)

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply, in order; the last piece is the one `Reply`."""
        is_native = self._other is None
        tokens = int(self.overhead(request.functions) / BYTES_PER_TOKEN)
        if is_native and tokens > self.context_limit * _MOST:
            message = f"The functions need about {tokens:,} tokens of {self.name}'s {self.context_limit:,}"
            self._is_settled = True
            raise self._change(f"{message}, so", self.window.fix)
        stream = self._other.stream(request) if self._other else super().stream(request)
        try:
            async with aclosing(stream) as pieces:  # type: ignore[type-var]  # a generator
                async for piece in pieces:
                    yield (
                        self._check_native(piece)
                        if is_native and isinstance(piece, Reply)
                        else piece
                    )
        except FunctionsRefused as error:
            if self._other is not None:
                raise
            self._is_settled = True
            raise self._change(f"{error.message} So") from error
        except NoneHeld as error:
            if self._is_settled:
                raise
            self._other = None
            self._is_settled = True
            self._known.put(self._profile.key, "mode", NATIVE)
            raise ModeChanged(f"{error.message} So its calls are sent natively again.") from error

    def _check_native(self, reply: Reply) -> Reply:
        """Return a native reply. If it is a call as text and the model has made no native call yet, the mode changes,
        and the caller requests a reply without calls again.
        """
        if self._is_settled or not (reply.calls or reply.written):
            return reply
        self._known.put(self._profile.key, "mode", self._other_name if reply.written else NATIVE)
        if not reply.written:
            self._is_settled = True
            return reply
        name = reply.written[0][:_NAME_CHARS]
        change = self._change(f"{self.name} wrote a call of `{name}` as text:")
        return replace(reply, note=f"{reply.note} {change.message}".strip())

    def _change(self, why: str, fix: str = "") -> ModeChanged:
        self._other = self._other_mode.open(self._endpoint, self.window, self.clock)
        what = "from now on, its calls are written under a schema"
        return ModeChanged(f"{why} {what} (`model.mode` = {self._other_name}). {fix}".rstrip())


async def open_model(
    discovered: DiscoveredModel,
    settings: ModelSettings,
    *,
    clock: Clock | None = None,
    found_out: Path | None = None,
) -> Model:
    """Return the chosen model, ready for requests; the file `found_out` has the modes found earlier."""
    if (models := models_of(discovered.model_name)) is not None:
        return await models.open(discovered.model_name, settings)
    if discovered.kind == "tour":
        endpoint = Endpoint(_TOUR_URL, SERVED, settings=settings, transport=_TourTransport())
        return TourModel(endpoint, window=Window(_TOUR_TOKENS, "the tour's"), clock=clock)
    endpoint = _endpoint(discovered, settings)
    known = KnownModes(found_out)
    name = mode_beside() if settings.mode == "auto" else settings.mode
    mode = mode_named(name)
    if mode is None:
        return NativeModel(
            endpoint, window=await find_window(endpoint, discovered, known), clock=clock
        )
    profile = await find_profile(endpoint, known)
    window = await find_window(endpoint, discovered, known)
    if not endpoint.dialect.constraints and settings.mode == name:
        await endpoint.aclose()
        raise ModelError(
            f"{endpoint.dialect.name} does not enforce a schema on replies, which the mode `{name}` needs.",
            fix="Set `model.mode` to native: its models call functions by themselves.",
        )
    if settings.mode == name:
        return mode.open(endpoint, window, clock)
    if not endpoint.dialect.constraints:
        return NativeModel(endpoint, window=window, clock=clock)
    model = EitherModel(
        endpoint,
        window=window,
        clock=clock,
        profile=profile,
        known=known,
        other_name=name,
        other_mode=mode,
    )
    await model.begin()
    return model


async def keep_loaded(endpoint: Endpoint) -> None:
    """Ask a server that unloads models early to keep this one, with its prompt cache, while the user thinks."""
    loading = endpoint.dialect.loading
    if loading is None or urlsplit(endpoint.url).hostname in loading.remote:
        return
    body = {"model": endpoint.model, "keep_alive": loading.keep_alive, "stream": False}
    await endpoint.fetch(loading.load, body, timeout_s=_LOAD_S)
