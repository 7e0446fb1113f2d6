"""Azure through the SDK's own client, when the variables that its users know are set."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.messages import User
from agent_core.base.settings import ModelSettings
from agent_core.model import Reply, Request
from agent_core.model.client import open_model
from agent_core.model.discover import choose, listed
from tests.kit import http

DONE = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Here."}}]}
WHOLE = {"object": "response", "status": "completed", "output": [{"type": "message", "content": [{"text": "Here."}]}]}


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
            error = {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}
            await answer.send(404, json.dumps(error).encode())


@pytest.fixture
def azure() -> Iterator[Azure]:
    found = Azure()
    server = http.Server(found.answer)
    found.url = f"http://127.0.0.1:{server.port}"
    yield found
    server.close()


async def reply(azure: Azure, environment: dict[str, str], settings: ModelSettings) -> str:
    chosen = await listed(await choose(settings, {"AZURE_OPENAI_ENDPOINT": azure.url, **environment}))
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
        assert await reply(azure, {**environment, "OPENAI_API_VERSION": "2024-10-21"}, SET) == "Here.", case
        assert len(azure.heard) == number, case
        request = azure.heard[-1]
        assert request.path == "/openai/deployments/mine/chat/completions?api-version=2024-10-21", case
        assert request.headers[header] == value, case
        assert request.headers["user-agent"].startswith("AsyncAzureOpenAI/Python "), case


async def test_the_newer_surface_needs_no_version(azure: Azure) -> None:
    for api in ["chat", "responses"]:
        settings = SET.model_copy(update={"api": api})
        assert await reply(azure, {"AZURE_OPENAI_API_KEY": "a-key"}, settings) == "Here.", api
        request = azure.heard[-1]
        assert request.path == f"/openai/v1/{'chat/completions' if api == 'chat' else 'responses'}", api
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
            await choose(ModelSettings(name=name), {"AZURE_OPENAI_ENDPOINT": azure.url, **environment})


async def test_a_key_of_openai_comes_first() -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com", "OPENAI_API_KEY": "k"}
    assert (await choose(ModelSettings(name="m"), environment)).endpoint_url == "https://api.openai.com/v1"
