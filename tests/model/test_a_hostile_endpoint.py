"""A misbehaving endpoint: the turn continues or ends with a message, and nothing grows without limit."""

import gzip
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.messages import User
from agent_core.base.settings import ModelSettings
from agent_core.memory.embedding import EmbeddingUnavailable, embedder
from agent_core.model.client import open_model
from agent_core.model.connection import Connection
from agent_core.model.discover import DiscoveredModel
from agent_core.model.fragments import MAX_CALLS
from agent_core.model.reply import Model, Reply, RetryPiece, TextPiece, TokenUsage
from agent_core.model.request import Request as ModelRequest
from agent_core.model.splitter import Splitter
from agent_core.model.stream import Assembly
from agent_core.model.tokens import listed_window
from agent_core.model.wire import read_usage
from agent_core.registry.validation import NotJson, read_object
from knapper_ext.local.constrained import GrowingStep
from knapper_ext.local.conversation import read_step
from tests.kit import Fail, Raw, Repeat, Say, ScriptedModel
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.kit.http import Answer, Request, Server
from tests.kit.pace import least_s, time_of
from tests.model.asking import ask, ask_reply, chunks

KEY = "sk-notarealkey-0123456789"
Handler = Callable[[Request, Answer], Awaitable[None]]


@pytest.fixture
def serve() -> Iterator[Callable[[Handler], str]]:
    """Start servers with one fixed answer each; yields a function that returns the address."""
    servers: list[Server] = []

    def start(handler: Handler) -> str:
        servers.append(Server(handler))
        return f"http://127.0.0.1:{servers[-1].port}/v1"

    yield start
    for server in servers:
        server.close()


def sends(status: int, body: bytes, **headers: str) -> Handler:
    async def answer(_request: Request, to: Answer) -> None:
        await to.send(
            status, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )

    return answer


async def told(url: str, key: str = KEY) -> str:
    """Return the error of one request."""
    connection = Connection(url, key=key)
    try:
        with pytest.raises(ModelError) as caught:
            async for _chunk in connection.stream("/chat/completions", b"{}", streamed=True):
                pass
    finally:
        await connection.aclose()
    return str(caught.value)


def assembled(chunks: list[dict[str, Any]]) -> Reply:  # Any: JSON
    assembly = Assembly(known={}, used_ids=(), new_id=iter(map(str, range(10**6))).__next__)
    for chunk in chunks:
        assembly.add(chunk)
    last = assembly.close(read_usage({"usage": {"prompt_tokens": 1}}))  # type: ignore[arg-type]
    reply = last[-1]
    assert isinstance(reply, Reply)
    return reply


def calling(index: int, name: str = "count", id: str = "") -> dict[str, Any]:  # Any: JSON
    call = {"index": index, "id": id or f"c{index}", "function": {"name": name, "arguments": "{}"}}
    return {"choices": [{"delta": {"tool_calls": [call]}}]}


async def test_a_packed_answer_is_not_unpacked(serve: Callable[[Handler], str]) -> None:
    body = gzip.compress(bytes(10**6))
    for status, coding in itertools.product((200, 500), ("gzip", "br", "deflate")):
        assert "packed its answer" in await told(
            serve(sends(status, body, Content_Encoding=coding))
        ), coding


async def test_an_answer_that_is_larger_than_an_answer_is_not_read_to_its_end(
    serve: Callable[[Handler], str],
) -> None:
    async def endless(_request: Request, to: Answer) -> None:
        to.begin("text/event-stream")
        while True:
            await to.write(b": alive\n" * 10_000)

    assert "sent more than 8 MiB" in await told(serve(endless))


async def test_what_is_nested_too_deep_ends_in_a_sentence(serve: Callable[[Handler], str]) -> None:
    body = b"data: " + b"[" * 20_000 + b"\n\n"
    assert "expected at most 256 levels" in await told(
        serve(sends(200, body, Content_Type="text/event-stream"))
    )


def lists(count: int) -> str:
    """Return arguments with an empty list for each."""
    return '{"a": [' + ",".join(["[]"] * count) + "]}"


def argument(text: str, **more: str) -> dict[str, Any]:  # Any: JSON
    return {"tool_calls": [{"index": 0, "function": {"arguments": text, **more}}]}


LONG = lists(900_000)
COSTLY = [
    pytest.param([argument(lists(100_000), name="add")], id="arguments-of-many-values"),
    pytest.param([argument(LONG, name="add")], id="arguments-longer-than-a-call-may-have"),
    pytest.param(
        [
            argument("", name="add"),
            *(argument(LONG[at : at + 16_384]) for at in range(0, len(LONG), 16_384)),
        ],
        id="long-arguments-in-pieces",
    ),
    pytest.param(
        [argument(lists(100_000), name="add"), argument(f" {lists(100_000)}")], id="arguments-twice"
    ),
    pytest.param([{"unknown": [[]] * 1_900_000}], id="an-ignored-field"),
    pytest.param(
        [{"tool_calls": [{"function": {"name": "add", "arguments": "{}"}}] * 60_000}],
        id="many-calls",
    ),
    pytest.param(
        [{"reasoning_details": [{"type": "x", "text": "a"}] * 60_000}], id="many-parts-of-reasoning"
    ),
    pytest.param(
        [{"content": '{"name": "add", "arguments": {}}' * 60_000}], id="text-of-many-calls"
    ),
]


@pytest.mark.parametrize("deltas", COSTLY)
async def test_no_event_of_a_reply_blocks_the_event_loop(
    scripted: Callable[..., ScriptedModel], deltas: list[dict[str, Any]]
) -> None:
    server = scripted([Repeat(chunks(*deltas, finish="tool_calls"))])

    async def request() -> None:
        with suppress(ModelError):
            await ask(server)

    assert (await stall_of(request)).cpu_ms < MOST_MS


async def test_an_event_that_is_more_than_an_endpoint_sends_ends_in_a_sentence(
    scripted: Callable[..., ScriptedModel],
) -> None:
    part: dict[str, Any] = {"text": "x"}
    for _ in range(150):
        part = {"text": [part]}
    call = {"function": {"name": "add", "arguments": "{}"}}
    rows: list[tuple[dict[str, Any], str]] = [
        ({"reasoning_details": [part]}, "expected at most 256 levels"),
        ({"unknown": [[]] * 60_000}, "expected at most 50,000 values"),
        (
            {"tool_calls": [call] * 1_001},
            "expected at most 1,000 parts of calls at once, got 1,001",
        ),
    ]
    for delta, says in rows:
        with pytest.raises(ModelError, match=says) as caught:
            await ask(scripted([chunks(delta)]))
        assert caught.value.fix


async def test_an_odd_number_of_a_part_of_a_response_is_ignored(
    scripted: Callable[..., ScriptedModel],
) -> None:
    events = [
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": [0],
            "delta": "hello",
        },
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    assert (await ask_reply(scripted([Raw(body)]), api="responses")).text == "hello"


async def test_arguments_longer_than_a_call_may_have_are_kept_only_so_far_that_they_are_refused(
    scripted: Callable[..., ScriptedModel],
) -> None:
    reply = await ask_reply(scripted([chunks(argument(LONG, name="add"), finish="tool_calls")]))
    arguments = reply.calls[0].arguments
    assert len(arguments) < 1_100_000
    with pytest.raises(NotJson, match="expected at most 1000000 characters"):
        read_object(arguments)


def test_a_text_of_many_marks_takes_no_quadratic_time() -> None:
    text = '<invoke name="add">' * 12_000
    assembly = Assembly(known={"add": ("a", "b")}, used_ids=(), new_id=str)
    assembly.add({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]})
    usage = TokenUsage(1, 1)
    assert least_s(0.5, lambda: time_of(lambda: assembly.close(usage))) < 0.5


async def test_of_an_error_only_the_beginning_is_read(serve: Callable[[Handler], str]) -> None:
    body = json.dumps({"error": {"message": "no", "code": "x" * 20_000_000}}).encode()
    assert len(await told(serve(sends(400, body)))) < 2_000


async def test_the_users_key_is_in_no_error(serve: Callable[[Handler], str]) -> None:
    for body in [
        f'{{"error": {{"message": "bad key {KEY}"}}}}',
        f'{{"error": {{"message": "bad key \\u0073{KEY[1:]}"}}}}',
        f'data: {{"error": {{"message": "bad key {KEY}"}}}}\n\n',
        f"data: {{bad {KEY}\n\n",
        f'data: ["{KEY}"]\n\n',
    ]:
        status, kind = (
            (200, "text/event-stream") if body.startswith("data") else (401, "application/json")
        )
        error = await told(serve(sends(status, body.encode(), Content_Type=kind)))
        assert KEY not in error, body
        assert "…" in error, body


async def test_the_users_key_is_in_no_report_of_another_try(
    scripted: Callable[..., ScriptedModel],
) -> None:
    busy = Fail(429, "busy with key-12345", {"retry-after-ms": "1"})
    retry, *_ = await ask(scripted([busy, Say("Here.")]))
    assert isinstance(retry, RetryPiece)
    assert retry.reason.endswith("says (429): busy with ….")


async def test_a_key_that_is_no_secret_takes_nothing_out_of_an_error(
    serve: Callable[[Handler], str],
) -> None:
    for key in ["x", "none", "EMPTY", "dummy"]:
        words = "This model's maximum context length is 8192 tokens, none of which may be EMPTY or dummy"
        url = serve(sends(400, json.dumps({"error": {"message": words}}).encode()))
        assert words in await told(url, key), key


STREAM, JSON = "text/event-stream", "application/json"
HALF = {
    "chat": b'data: {"choices": [{"index": 0, "delta": {"content": "Once"}}]}\n\n',
    "responses": b'data: {"type": "response.output_text.delta", "output_index": 0, "delta": "Once"}\n\n',
}


async def test_what_is_broken_is_told_with_its_address_and_what_to_do(
    serve: Callable[[Handler], str],
) -> None:
    rows: list[tuple[str, int, str, tuple[bytes | str, ...], str]] = [
        ("page-as-json", 200, JSON, (b"<html>",), "a web page instead of JSON"),
        (
            "page-as-error",
            501,
            "text/html",
            (b"<html>",),
            r"\(501\): a web page.*endpoint's base URL",
        ),
        ("half-a-stream", 200, STREAM, ("half",), "broke off in the middle.*Try again"),
        (
            "no-end",
            200,
            STREAM,
            ("half", b": alive\n" * 2_000_000),
            "more than 8 MiB.*choose another",
        ),
        ("too-large", 200, JSON, (bytes(9 << 20),), "more than 8 MiB.*choose another"),
        (
            "no-time",
            429,
            JSON,
            (b'{"error": {"message": "slow"}}',),
            r"\(429\): slow.*wait a little",
        ),
        (
            "error-within",
            200,
            STREAM,
            ("half", b'data: {"error": {"message": "boom"}}\n\n'),
            "boom.*later",
        ),
        (
            "no-choices",
            200,
            STREAM,
            (b'data: {"choices": []}\n\n', b"data: [DONE]\n\n"),
            "not with a",
        ),
        ("empty", 200, JSON, (b"",), "sent an empty answer"),
        (
            "no-credit",
            400,
            JSON,
            (b'{"error": {"message": "Your credit balance is too low"}}',),
            "no credit left",
        ),
        (
            "no-model",
            400,
            JSON,
            (b'{"error": {"message": "Invalid model: m"}}',),
            "Check that this is the endpoint's base",
        ),
        ("elsewhere", 307, "Location", (b"http://127.0.0.1:9/v1",), "redirects to http.*set it as"),
        ("odd-status", 418, "text/plain", (b"teapot",), r"\(418\): teapot.*choose another"),
    ]
    for case, status, kind, parts, says in rows:
        for api in ["chat", "responses"]:
            body = b"".join(HALF[api] if isinstance(part, str) else part for part in parts)
            url = serve(
                sends(status, b"", Location=body.decode())
                if kind == "Location"
                else sends(status, body, Content_Type=kind)
            )
            settings = ModelSettings(mode="native", context_tokens=9_000, api=api, retries=0)
            model = await open_model(DiscoveredModel(url, "m", "", ""), settings)
            shown: list[object] = []
            try:
                with pytest.raises(ModelError, match=f"(?s){says}") as caught:
                    await watch(model, shown.append)
            finally:
                await model.aclose()
            assert url in caught.value.message, case
            assert caught.value.fix, case
            assert shown == ([TextPiece("Once")] if "half" in parts else []), case


async def watch(model: Model, show: Callable[[object], None]) -> None:
    """Show the pieces of a reply as they arrive."""
    async for piece in model.stream(ModelRequest((User("Hello."),))):
        show(piece)


def test_a_number_that_is_none_is_not_believed() -> None:
    for number in [-1, True, 10**400, 1.5, "7", None]:
        assert read_usage({"usage": {"prompt_tokens": number}}) is None, number
        assert (
            read_usage({"usage": {"prompt_tokens": 7, "completion_tokens": number}}).completion == 0  # type: ignore[union-attr]
        ), number
        assert listed_window({"context_length": number}) is None, number


async def test_a_wait_beyond_all_calendars_ends_in_a_sentence(
    serve: Callable[[Handler], str],
) -> None:
    for text in ["Fri, 31 Dec 99999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -9999", "9" * 5_000]:
        url = serve(sends(429, b'{"error": {"message": "slow"}}', Retry_After=text))
        assert f"{url} says (429): slow." in await told(url), text


def test_an_escape_that_json_does_not_have_is_understood() -> None:
    for escape in ["\\d", "\\q", "\\'", "\\x41"]:
        text = f'{{"thought": "a {escape} b", "reply": "{escape}+"}}'
        growing, step = GrowingStep(), read_step(text)
        growing.feed(text)
        assert growing.thought == f"a {escape} b", escape
        assert step is not None, escape
        assert step.reply == f"{escape}+", escape
        assert read_object(f'{{"pattern": "{escape}+"}}') == {"pattern": f"{escape}+"}, escape


def test_what_is_one_call_too_many_is_left_out_and_said_once() -> None:
    reply = assembled([calling(number) for number in range(10_000)])
    assert len(reply.calls) == MAX_CALLS
    assert reply.note == f"The reply asked for 10000 calls; the first {MAX_CALLS} were taken."


def test_names_and_ids_without_end_are_cut_when_they_are_read() -> None:
    call = assembled([calling(0, "n" * 1_000_000, "i" * 1_000_000)]).calls[0]
    assert len(call.name) == 64
    assert len(call.id) < 10


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda: _refused('{"' + '\\"' * 400_000), id="a-text-that-is-never-closed"),
        pytest.param(
            lambda: _fed(Splitter().feed, " " * 1_000, 3_000), id="blanks-before-the-text"
        ),
        pytest.param(lambda: _fed(GrowingStep().feed, " ", 20_000), id="blanks-before-a-step"),
        pytest.param(
            lambda: assembled([calling(number) for number in range(8_000)]), id="thousands-of-calls"
        ),
    ],
)
def test_what_comes_is_read_in_time_that_grows_with_it(work: Callable[[], object]) -> None:
    assert (
        least_s(1.5, lambda: time_of(work)) <= 1.5
    )  # each took from 3 s to hours, growing quadratically


def _refused(text: str) -> None:
    with pytest.raises(NotJson):
        read_object(text)


def _fed(feed: Callable[[str], object], part: str, times: int) -> None:
    for _ in range(times):
        feed(part)


async def test_vectors_that_are_none_are_not_taken(serve: Callable[[Handler], str]) -> None:
    for body in [
        b"[" * 100_000,
        b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}",
        b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}',
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": {"1": 2}}]}',
    ]:
        url = serve(sends(200, body))
        model = embedder("endpoint", model="m", url=url)
        assert model is not None, body
        with pytest.raises(EmbeddingUnavailable):
            await model.embed(["text"])
