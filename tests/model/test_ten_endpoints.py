"""Ten endpoints, each with its own wire format: text, calls, parallel and malformed ones, streams, overflow, 429.

The files in `shapes/` were written for these tests; each names the source for its endpoint's behavior.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest

from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.messages import Answer, Assistant, Call, Message, System, User
from agent_core.base.settings import ModelSettings
from agent_core.memory.embedding import EmbeddingUnavailable, embedder
from agent_core.model import Piece, Reply, Request, TextPiece
from agent_core.model.client import NativeModel, open_model
from agent_core.model.connection import Connection, Endpoint
from agent_core.model.dialect import dialect_of
from agent_core.model.discover import choose, listed
from agent_core.model.tokens import Window
from tests.kit import Fail, Raw, Say, ScriptedModel, http
from tests.kit.drawing import crossed
from tests.model.asking import ADD

Shape: TypeAlias = dict[str, Any]
Scripted: TypeAlias = Callable[..., ScriptedModel]

SHAPES: dict[str, Shape] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted(Path(__file__).parent.joinpath("shapes").glob("*"))
}
ANSWERED = ["text", "one_call", "parallel_calls", "malformed_call", "streaming"]
OLD = Assistant("", (Call("an older id, of another endpoint", "add", "{}"),))
EARLIER: tuple[Message, ...] = (
    System("Be brief."),
    User("Hello."),
    OLD,
    Answer(OLD.calls[0].id, "add", "1"),
)


def played(row: Shape) -> Raw | Fail:
    """Return what the endpoint sends, byte for byte."""
    if "events" in row:
        lines = [
            event if str(event).startswith(":") else f"data: {_text(event)}"
            for event in row["events"]
        ]
        return Raw("".join(f"{line}\n\n" for line in lines).encode())
    if row["status"] == 200:
        return Raw(json.dumps(row["body"]).encode(), "application/json")
    return Fail(row["status"], json.dumps(row["body"]).encode(), row["headers"])


def _text(event: object) -> str:
    return event if isinstance(event, str) else json.dumps(event)


class Asked:
    """A model at an endpoint of one kind, simulated by the scripted server."""

    def __init__(self, server: ScriptedModel, shape: Shape) -> None:
        settings = ModelSettings(max_tokens=500, timeout_s=5, api="chat")
        endpoint = Endpoint(server.base_url, "scripted", settings=settings)
        endpoint.speak(dialect_of(shape["url"]))
        self.server, self.shape = server, shape
        self.model = NativeModel(endpoint, window=Window(32_000, "scripted"))

    async def __aenter__(self) -> "Asked":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.model.aclose()

    async def ask(self, *messages: Message) -> list[Piece]:
        pieces = [piece async for piece in self.model.stream(Request(messages, (ADD,)))]
        self.check(self.server.requests[-1].body)
        return pieces

    def check(self, body: Shape) -> None:
        """Check that this kind of endpoint accepts the request."""
        assert not body.keys() & set(self.shape["refuses"])
        ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
        pattern = self.shape.get("id_pattern", "[a-zA-Z0-9_-]{1,40}")
        assert all(re.fullmatch(pattern, each) for each in ids)


async def test_every_reply_of_every_endpoint_is_understood(scripted: Scripted) -> None:
    for name in SHAPES:
        for row in ANSWERED:
            expected: Shape = SHAPES[name][row]["expect"]
            async with Asked(
                scripted([played(SHAPES[name][row]), Say("Done.")]), SHAPES[name]
            ) as asked:
                *pieces, reply = await asked.ask(*EARLIER, User("Add."))
                assert isinstance(reply, Reply), name
                calls = [[call.name, json.loads(call.arguments)] for call in reply.calls]
                assert (reply.text, reply.thought) == (
                    expected.get("text", ""),
                    expected.get("thought", ""),
                ), name
                assert calls == expected.get("calls", []), name
                assert reply.finish == ("calls" if calls else "stop"), name
                assert (reply.usage.prompt, reply.usage.cached) == (
                    82,
                    SHAPES[name].get("cached", 0),
                ), name
                assert (
                    "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).strip()
                    == reply.text
                ), name
                answers = [Answer(call.id, call.name, "3") for call in reply.calls]
                await asked.ask(
                    *EARLIER,
                    User("Add."),
                    Assistant(reply.text, reply.calls),
                    *answers,
                    User("So?"),
                )


async def test_every_endpoint_says_overflow_in_its_own_words(scripted: Scripted) -> None:
    for name in SHAPES:
        async with Asked(scripted([played(SHAPES[name]["overflow"])]), SHAPES[name]) as asked:
            with pytest.raises(ContextOverflow):
                await asked.ask(*EARLIER, User("Add."))


async def test_what_gemini_signs_goes_back_to_it_as_it_came(scripted: Scripted) -> None:
    shape = SHAPES["gemini"]
    async with Asked(scripted([played(shape["streaming"]), Say("Done.")]), shape) as asked:
        reply = (await asked.ask(User("Add.")))[-1]
        assert isinstance(reply, Reply)
        answers = [Answer(call.id, call.name, "3") for call in reply.calls]
        await asked.ask(User("Add."), Assistant("", reply.calls, source=reply.source), *answers)
        first = asked.server.requests[1].body["messages"][1]["tool_calls"][0]
        assert first["extra_content"]["google"]["thought_signature"] == "EjQKMgEMOdbHJChLX75Q"


URL = "https://model.example/v1"
PATH = "/chat/completions"


def connection(sent: list[httpx2.Request], to: str, status: int) -> Connection:
    """Return a connection to a server that redirects its first request."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        if len(sent) == 1:
            return httpx2.Response(status, headers={"Location": to})
        return httpx2.Response(200, json=DONE)

    return Connection(URL, key="sk-mine", transport=httpx2.MockTransport(answer))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("to", "status"),
    crossed(
        [
            "https://collector.example/v1/chat/completions",
            "http://model.example/v1/chat/completions",
            "https://model.example:8443/v1/chat/completions",
            "//collector.example/x",
            "https://model.example@collector.example/v1",
        ],
        [pytest.param(status, id=str(status)) for status in (301, 302, 303, 307, 308)],
    ),
)
async def test_another_origin_is_sent_nothing(to: str, status: int) -> None:
    sent: list[httpx2.Request] = []
    with pytest.raises(ModelError, match=r"redirects to .*, which is not followed"):
        async for _chunk in connection(sent, to, status).stream(
            PATH, b'{"secret": 1}', streamed=False
        ):
            pass
    assert [str(request.url.host) for request in sent] == ["model.example"]


async def test_the_same_origin_is_followed() -> None:
    sent: list[httpx2.Request] = []
    server = connection(sent, "https://model.example/v2/chat/completions", 307)
    chunks = [chunk async for chunk in server.stream(PATH, b'{"secret": 1}', streamed=False)]
    assert (len(chunks), sent[1].url.path) == (1, "/v2/chat/completions")


async def test_texts_to_be_embedded_follow_no_redirect() -> None:
    heard: list[bytes] = []

    async def answer(request: http.Request, reply: http.Answer) -> None:
        heard.append(request.body)
        port = request.headers["host"].rpartition(":")[2]
        await reply.send(307, b"", {"Location": f"http://localhost:{port}/elsewhere"})

    server = http.Server(answer)
    model = embedder("endpoint", model="m", url=f"http://127.0.0.1:{server.port}/v1", key="k")
    assert model is not None
    with pytest.raises(EmbeddingUnavailable):
        await model.embed(["my diary"])
    server.close()
    assert len(heard) == 1


DONE = {
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Here."}}
    ]
}
WHOLE = {
    "object": "response",
    "status": "completed",
    "output": [{"type": "message", "content": [{"text": "Here."}]}],
}


@dataclass
class Azure:
    """A resource and its requests."""

    url: str = ""
    heard: list[http.Request] = field(default_factory=list)

    async def answer(self, request: http.Request, answer: http.Answer) -> None:
        self.heard.append(request)
        place = request.path.partition("?")[0]
        if place == "/openai/v1/responses" or place.endswith("/openai/responses"):
            await answer.send(200, json.dumps(WHOLE).encode())
        elif place.endswith("/chat/completions") and "/gone/" not in place:
            await answer.send(200, json.dumps(DONE).encode())
        else:
            error = {
                "error": {
                    "code": "DeploymentNotFound",
                    "message": "The API deployment does not exist.",
                }
            }
            await answer.send(404, json.dumps(error).encode())


@pytest.fixture
def azure() -> Iterator[Azure]:
    found = Azure()
    server = http.Server(found.answer)
    found.url = f"http://127.0.0.1:{server.port}"
    yield found
    server.close()


async def reply(azure: Azure, environment: dict[str, str], settings: ModelSettings) -> str:
    chosen = await listed(
        await choose(settings, {"AZURE_OPENAI_ENDPOINT": azure.url, **environment})
    )
    assert f"at {azure.url}: AZURE_OPENAI_ENDPOINT is set" in chosen.why
    model = await open_model(chosen, settings)
    try:
        *_, last = [piece async for piece in model.stream(Request((User("Hello."),)))]
    finally:
        await model.aclose()
    assert isinstance(last, Reply)
    return last.text


SET = ModelSettings(name="mine", mode="native", context_tokens=9_000, stream=False)


async def test_a_deployment_is_asked_by_the_version_that_is_set(azure: Azure) -> None:
    rows: list[tuple[str, dict[str, str], str, str]] = [
        ("key", {"AZURE_OPENAI_API_KEY": "a-key"}, "api-key", "a-key"),
        ("token", {"AZURE_OPENAI_AD_TOKEN": "a-token"}, "authorization", "Bearer a-token"),
    ]
    for number, (case, environment, header, value) in enumerate(rows, 1):
        assert (
            await reply(azure, {**environment, "OPENAI_API_VERSION": "2024-10-21"}, SET) == "Here."
        ), case
        assert len(azure.heard) == number, case
        request = azure.heard[-1]
        assert request.path == "/openai/deployments/mine/chat/completions?api-version=2024-10-21", (
            case
        )
        assert request.headers[header] == value, case
        assert request.headers["user-agent"].startswith("AsyncAzureOpenAI/Python "), case


async def test_the_newer_surface_needs_no_version(azure: Azure) -> None:
    for api in ["chat", "responses"]:
        settings = SET.model_copy(update={"api": api})
        assert await reply(azure, {"AZURE_OPENAI_API_KEY": "a-key"}, settings) == "Here.", api
        request = azure.heard[-1]
        assert (
            request.path == f"/openai/v1/{'chat/completions' if api == 'chat' else 'responses'}"
        ), api
        assert request.headers["authorization"] == "Bearer a-key", api
        assert json.loads(request.body)["model"] == "mine", api


async def test_a_deployment_that_is_not_there_is_said_to_be_none(azure: Azure) -> None:
    environment = {"AZURE_OPENAI_API_KEY": "a-key", "OPENAI_API_VERSION": "2024-10-21"}
    with pytest.raises(ModelError, match=r"deployment does not exist.*Name a deployment"):
        await reply(azure, environment, SET.model_copy(update={"name": "gone"}))


async def test_what_is_missing_is_named(azure: Azure) -> None:
    rows: list[tuple[dict[str, str], str | None, str]] = [
        ({}, "mine", r"AZURE_OPENAI_ENDPOINT is set to .*, and no key.*AZURE_OPENAI_API_KEY"),
        ({"AZURE_OPENAI_API_KEY": "k"}, None, r"no deployment is named.*--model NAME"),
    ]
    for environment, name, says in rows:
        with pytest.raises(ModelError, match=says):
            await choose(
                ModelSettings(name=name), {"AZURE_OPENAI_ENDPOINT": azure.url, **environment}
            )


async def test_a_key_of_openai_comes_first() -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com", "OPENAI_API_KEY": "k"}
    assert (
        await choose(ModelSettings(name="m"), environment)
    ).endpoint_url == "https://api.openai.com/v1"
