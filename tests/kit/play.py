"""The scripted model: real HTTP and streaming, a script as data. Any departure from the script is an error."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, assert_never

from . import responses
from .http import Answer, Request, Server
from .params import unfit
from .render import events, text_events, whole
from .rules import fault
from .steps import (
    Ask,
    Choose,
    Cut,
    Expect,
    Fail,
    Raw,
    Repeat,
    Say,
    Script,
    Seen,
    Stall,
    Step,
    Wanted,
)

SUMMING_UP = "You keep the memory of an assistant"
SUMMARY = Say("What happened:\nThey talked.")
READING = "You are shown the name, the signature"
NO_RETRY = {"x-should-retry": "false"}


def reading(
    reach: str = "nothing",
    calls: Mapping[str, str] | None = None,
    results: Sequence[str] = (),
    *,
    basis: str = "docstring",
) -> Choose:
    """Return the answer of a description reader in the mode in which it is asked."""
    rows = [
        {"call": call, "result": result, "basis": basis} for call, result in (calls or {}).items()
    ]
    settled = [{"result": result, "basis": basis} for result in results]
    answer = {"thought": "So it says.", "reach": reach, "calls": rows, "results": settled}

    def answered(seen: Seen) -> Step:
        if "tools" in seen.body:
            return Ask(Wanted("describe_body", answer))
        return Say(json.dumps({"thought": answer["thought"], "reply": {"reach": reach}}))

    return answered


class ScriptError(AssertionError):
    """The requests did not follow the script."""


class ScriptedModel:
    """A server that plays a script and records every request."""

    def __init__(
        self,
        script: Script,
        *,
        limit_tokens: int | None = None,
        models: Sequence[str | dict[str, Any]] = ("scripted",),
        key: str | None = None,
        port: int = 0,
        beside: Mapping[str, Sequence[dict[str, Any]]] | None = None,
        summary: Step | Choose = SUMMARY,
        reader: Step | Choose | None = None,
        reserves: bool = False,
        embeds: Callable[[str], list[float]] | None = None,
    ) -> None:
        """`beside` maps other requests, such as "GET /api/ps", to their answers: one per request, the last one repeats.

        Outside of the script, `summary` answers every request to summarize the conversation and `reader` every request
        to read a function's description. With `reserves`, the limit applies to the prompt plus the longest reply that
        is requested. `embeds` returns the vector of a text.
        """
        self._embeds = embeds
        self.summaries: list[Seen] = []
        self.readings: list[Seen] = []
        self._summary = summary
        self._reader = reader or reading()
        self._reserves = reserves
        self.asked_beside: list[tuple[str, dict[str, Any]]] = []
        self._beside = {what: list(answers) for what, answers in (beside or {}).items()}
        self.requests: list[Seen] = []
        self.refusals: list[str] = []
        self.agents: list[str] = []  # the user agent of every request
        self.errors: list[str] = []
        self._left = list(script)
        self._repeated = 0
        self._limit_tokens = limit_tokens
        self._models = [
            entry if isinstance(entry, dict) else {"id": entry, "object": "model"}
            for entry in models
        ]
        self._key = key
        self._server = Server(self._handle, port=port)
        self.base_url = f"http://127.0.0.1:{self._server.port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that point a process to this server."""
        return {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": self._key or "scripted"}

    @property
    def connections(self) -> int:
        """The number of connections that clients opened."""
        return self._server.connections

    @property
    def active(self) -> int:
        """The number of open connections."""
        return self._server.active

    @property
    def left(self) -> list[object]:
        """The steps not requested yet."""
        return [
            step for step in self._left if not (isinstance(step, Repeat) and step.times is None)
        ]

    def verify(self, *, refusals_expected: bool = False) -> None:
        """Raise ScriptError if anything departed from the script."""
        faults = [*self.errors, *(f"never asked for: {step}" for step in self.left)]
        if not refusals_expected:
            faults += [f"refused: {text}" for text in self.refusals]
        if faults:
            raise ScriptError("\n".join(faults))

    def close(self) -> None:
        self._server.close()

    async def _handle(self, request: Request, answer: Answer) -> None:
        self.agents.append(request.headers.get("user-agent", ""))
        request = replace(
            request, path=request.path.removeprefix("/openai")
        )  # the path of Azure's newer API
        if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
            await answer.send(401, _error("Incorrect API key provided.", "invalid_api_key"))
        elif left := self._beside.get(what := f"{request.method} {request.path}"):
            self.asked_beside.append((what, json.loads(request.body or b"{}")))
            await answer.send(200, json.dumps(left.pop(0) if len(left) > 1 else left[0]).encode())
        elif request.method == "GET" and request.path == "/v1/models":
            await answer.send(200, json.dumps({"object": "list", "data": self._models}).encode())
        elif request.method == "POST" and request.path in ("/v1/chat/completions", "/v1/responses"):
            await self._complete(request, answer)
        elif self._embeds and request.method == "POST" and request.path == "/v1/embeddings":
            asked = json.loads(request.body)
            self.refusals += filter(None, [unfit(asked, request.path)])
            self.asked_beside.append(("POST /v1/embeddings", asked))
            rows = [
                {"index": place, "embedding": self._embeds(text)}
                for place, text in enumerate(asked["input"])
            ]
            await answer.send(200, json.dumps({"object": "list", "data": rows}).encode())
        else:
            await answer.send(
                404, _error(f"Unknown request URL: {request.method} {request.path}.", None)
            )

    async def _complete(self, request: Request, answer: Answer) -> None:
        body = json.loads(request.body)
        is_chat = request.path == "/v1/chat/completions"
        seen = (
            Seen(body, request.headers)
            if is_chat
            else Seen(responses.as_chat(body), request.headers, body)
        )
        is_summary = seen.text.startswith(SUMMING_UP)
        is_reading = seen.text.startswith(READING)
        (self.summaries if is_summary else self.readings if is_reading else self.requests).append(
            seen
        )
        if seen.body.get("model") not in [entry["id"] for entry in self._models]:
            await answer.send(
                404,
                _error(f"The model `{seen.body.get('model')}` does not exist", "model_not_found"),
            )
        elif found := fault(seen.body, self._limit_tokens, reserves=self._reserves):
            self.refusals.append(found[0])
            await answer.send(400, _error(*found))
        elif misfit := unfit(body, request.path):
            self.errors.append(misfit)
            await answer.send(400, _error(misfit, "script_error"))
        elif is_summary:
            summary = self._summary(seen) if callable(self._summary) else self._summary
            await _play(summary, seen, answer, -len(self.summaries))
        elif is_reading:
            said = self._reader(seen) if callable(self._reader) else self._reader
            await _play(said, seen, answer, -len(self.readings))
        elif isinstance(step := self._next(seen), str):
            self.errors.append(step)
            await answer.send(500, _error(step, "script_error"), NO_RETRY)
        else:
            await _play(step, seen, answer, len(self.requests))

    def _next(self, seen: Seen) -> Step | str:
        """Return the step for a request, or what is wrong with the request."""
        if not self._left:
            return f"the script is over, but request {len(self.requests)} came; it ends in {seen.messages[-1]}"
        step = self._left[0]
        if not isinstance(step, Repeat):
            del self._left[0]
        else:
            self._repeated += 1
            if step.times is not None and self._repeated >= step.times:
                del self._left[0]
                self._repeated = 0
            step = step.step
        if isinstance(step, Expect):
            for predicate in step.predicates:
                if missing := predicate(seen):
                    return f"request {len(self.requests)}: {missing}"
            step = step.step
        return step(seen) if callable(step) else step


async def _play(step: Step, seen: Seen, answer: Answer, n: int) -> None:
    match step:
        case Say() | Ask():
            await _speak(step, seen, answer, n)
        case Fail():
            body = step.body if isinstance(step.body, bytes) else _error(step.body, step.code)
            await answer.send(step.status, body, step.headers)
        case Raw():
            answer.begin(step.content_type)
            await answer.write(step.body)
            await answer.end()
        case Cut() | Stall():
            answer.begin("text/event-stream")
            for event in (
                responses.text_events(step.after) if seen.raw else text_events(step.after, seen, n)
            ):
                await answer.write(event)
            await asyncio.sleep(step.seconds if isinstance(step, Stall) else 0)
            answer.cut()
        case _:
            assert_never(step)


async def _speak(step: Say | Ask, seen: Seen, answer: Answer, n: int) -> None:
    if not seen.body.get("stream"):
        await asyncio.sleep(step.pause_s)
        await answer.send(200, responses.whole(step, seen, n) if seen.raw else whole(step, seen, n))
        return
    answer.begin("text/event-stream; charset=utf-8")
    for event in responses.events(step, seen, n) if seen.raw else events(step, seen, n):
        await answer.write(event)
        if step.pause_s:
            await asyncio.sleep(step.pause_s)
    await answer.end()


def _error(said: str | dict[str, Any], code: str | None) -> bytes:
    if isinstance(said, dict):
        return json.dumps(said).encode()
    return json.dumps(
        {"error": {"message": said, "type": "invalid_request_error", "param": None, "code": code}}
    ).encode()


@contextmanager
def scripted(
    script: Script,
    *,
    refusals_expected: bool = False,
    **options: Any,  # Any: what ScriptedModel takes
) -> Iterator[ScriptedModel]:
    """Run a scripted model and verify on exit that everything followed the script."""
    server = ScriptedModel(script, **options)
    try:
        yield server
    finally:
        server.close()
    server.verify(refusals_expected=refusals_expected)
