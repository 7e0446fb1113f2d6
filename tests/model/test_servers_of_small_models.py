"""Models behind Ollama, LM Studio, llama.cpp and vLLM: the detected mode, which is stored; progress; no repetition.

The scripted server imitates each: its model information, its stream, and a small model's calls as text.
"""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_core.base import events
from agent_core.base.events import CallStarted, Warned
from agent_core.runtime import model_session
from knapper.terminal.progress import reading_text
from tests.conftest import OpenDesk
from tests.kit import Ask, Fail, Raw, Say, ScriptedModel, Seen, Wanted
from tests.kit.desk import Desk, desk, ended, of
from tests.kit.drawing import crossed

HELLO = Say('{"thought": "I greet.", "reply": "Hello."}')
UNKNOWN = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
KNOWN = '{"name": "list_functions", "arguments": {}}'
NATIVE = Ask(Wanted("add", {"a": 17, "b": 25}))


def is_constrained(seen: Seen) -> bool:
    return "tools" not in seen.body and "response_format" in seen.body


def offered(seen: Seen) -> set[str]:
    """Return the functions that can be called at a step, in either mode."""
    return set(seen.functions) | {
        name
        for name in NAMES
        if f'"const": "{name}"' in json.dumps(seen.body.get("response_format"))
    }


NAMES = (
    "create_function",
    "confirm_function",
    "core_memory_append",
    "core_memory_replace",
    "conversation_search",
)


async def test_the_text_of_a_call_is_no_answer_and_switches_the_mode_from_then_on(
    tmp_path: Path, scripted: Any
) -> None:
    model = scripted([Say(UNKNOWN), HELLO, HELLO, Say("Sunny.")])
    async with opened(tmp_path, model) as place:
        happened = await place.say("How is the weather in Paris?")
        assert ended(happened).reply == "Hello."
        assert "wrote a call of `get_weather` as text" in of(Warned, happened)[0].message
        assert "get_weather" not in "".join(event.text for event in of(events.Text, happened))
    for mode, says in (
        ("auto", "Hello."),
        ("native", "Sunny."),
    ):  # what is set is stronger than what is remembered
        async with opened(tmp_path, model, model__mode=mode) as place:
            assert ended(await place.say("How is the weather?")).reply == says
    assert [is_constrained(seen) for seen in model.requests] == [False, True, True, False]


FENCED = {
    f"So sieht ein Aufruf aus:\n```json\n{KNOWN}\n```": "list_functions",
    f"For example, a call looks like this:\n```json\n{UNKNOWN}\n```": "get_weather",
    f"I'll look it up:\n\n```json\n{UNKNOWN}\n```\nDone.": "get_weather",
}


async def test_a_call_in_a_fence_after_words_is_asked_about_and_may_be_an_example(
    at_desk: OpenDesk,
) -> None:
    place = await at_desk(
        [Say(text) for text in FENCED for _ in range(2)], model__context_tokens=32_000
    )
    for text, name in FENCED.items():
        happened = await place.say("Zeig mir einen Aufruf.")
        assert ended(happened).reply == text
        assert not of(CallStarted, happened)
        assert not any(map(is_constrained, place.model.requests))
        assert f"the text of a call of `{name}`" in place.model.requests[-1].text
        await place.begin()


async def test_a_model_that_makes_calls_is_not_switched_by_one_as_text_but_told(
    at_desk: OpenDesk,
) -> None:
    script = [Ask(Wanted("list_functions")), Say(UNKNOWN), Say("I cannot look that up.")]
    place = await at_desk(script, model__context_tokens=32_000)
    happened = await place.say("How is the weather?")
    assert ended(happened).reply == "I cannot look that up."
    assert not any(map(is_constrained, place.model.requests))
    assert "only the text of a call of `get_weather`" in place.model.requests[-1].text


@pytest.mark.parametrize("mode", ["native", "constrained"])
async def test_in_a_mode_that_is_set_a_call_as_text_is_no_final_answer_either(
    at_desk: OpenDesk, mode: str
) -> None:
    step = Say(UNKNOWN if mode == "native" else json.dumps({"thought": "t", "reply": UNKNOWN}))
    place = await at_desk([step, step], model__mode=mode, model__context_tokens=32_000)
    last = ended(await place.say("How is the weather?"))
    assert (last.reason, last.reply) == ("failed", "")


async def test_where_no_schema_holds_a_reply_calls_go_back_to_being_native(
    at_desk: OpenDesk,
) -> None:
    script = [Say(UNKNOWN), *[Say("No JSON at all.")] * 5, Say("It is sunny.")]
    place = await at_desk(script, model__context_tokens=32_000)
    assert ended(await place.say("How is the weather?")).reply == "It is sunny."
    assert "tools" in place.model.requests[-1].body


@asynccontextmanager
async def opened(root: Path, model: ScriptedModel, **flags: Any) -> AsyncIterator[Desk]:
    async with desk(root, model, model__context_tokens=32_000, **flags) as place:
        yield place


async def test_a_damaged_memory_of_modes_is_as_none(tmp_path: Path, scripted: Any) -> None:
    (tmp_path / ".knapper").mkdir(mode=0o700)
    lines = ["", "nonsense", "[]", '{"model": 1}', '{"model": "x", "mode": "sideways"}', "\x00"]
    (tmp_path / ".knapper" / "models.jsonl").write_text("\n".join(lines))
    async with opened(tmp_path, scripted([Say(UNKNOWN), HELLO])) as place:
        assert ended(await place.say("How is the weather?")).reply == "Hello."


TEMPLATE = "{%- if tools %}{{ tools }}{%- endif %}{{ messages }}"
ENTRY: dict[str, Any] = {"id": "scripted", "object": "model"}
LLAMA = {
    **ENTRY,
    "owned_by": "llamacpp",
    "meta": {"n_ctx": 32768, "n_ctx_train": 32768, "n_params": 1_777_088_000},
}
PROPS = {
    "default_generation_settings": {"n_ctx": 8192},
    "total_slots": 4,
    "chat_template": TEMPLATE,
}
OLLAMA = {**ENTRY, "owned_by": "library"}
STUDIO = {**ENTRY, "owned_by": "organization_owner"}


def of_llama_cpp(parameters: int, template: str = TEMPLATE) -> dict[str, Any]:
    entry = {**LLAMA, "meta": {**LLAMA["meta"], "n_params": parameters}}
    return {"models": [entry], "beside": {"GET /props": [{**PROPS, "chat_template": template}]}}


def of_ollama(size: str, *capabilities: str) -> dict[str, Any]:
    shown = {
        "details": {"parameter_size": size},
        "model_info": {"qwen2.context_length": 32768},
        "capabilities": ["completion", *capabilities],
    }
    running = {"models": [{"model": "scripted", "context_length": 16384}]}
    beside = {"POST /api/show": [shown], "GET /api/ps": [running], "POST /api/generate": [{}]}
    return {"models": [OLLAMA], "beside": beside}


def of_lm_studio(**more: Any) -> dict[str, Any]:
    told = {
        "data": [{**ENTRY, "type": "llm", "state": "loaded", "loaded_context_length": 8192, **more}]
    }
    return {"models": [STUDIO], "beside": {"GET /api/v0/models": [told]}}


KEPT = ("POST /api/generate", {"model": "scripted", "keep_alive": "30m", "stream": False})
PROMPT_CACHE = {"cache_prompt": True, "return_progress": True}


@pytest.mark.parametrize(
    ("server", "window", "sent"),
    [
        pytest.param(of_llama_cpp(1_777_088_000), 8192, PROMPT_CACHE, id="llama.cpp"),
        pytest.param(
            of_llama_cpp(8_000_000_000, "{{ messages }}"),
            8192,
            {},
            id="no-functions-in-its-template",
        ),
        pytest.param(of_ollama("1.5B", "tools"), 16384, {}, id="ollama"),
        pytest.param(of_lm_studio(params_string="3B"), 8192, {"ttl": 1800}, id="lm-studio"),
    ],
)
async def test_a_model_that_its_server_tells_is_small_gets_what_the_built_in_one_gets(
    tmp_path: Path,
    scripted: Callable[..., ScriptedModel],
    server: dict[str, Any],
    window: int,
    sent: dict[str, Any],
) -> None:
    model = scripted([HELLO], **server)
    async with desk(
        tmp_path, model, model__context_tokens=None, model__name=server["models"][0]["id"]
    ) as place:
        assert of(events.Usage, await place.say("Hi."))[0].context_limit == window
    (seen,) = model.requests
    assert is_constrained(seen)
    assert (seen.body["temperature"], len(seen.text) < 9_000) == (0, True)
    assert "swap_ends" in seen.text
    assert sent.items() <= seen.body.items()
    assert (KEPT in model.asked_beside) == (server["models"] == [OLLAMA])


PROBES = [
    pytest.param(of_llama_cpp(8_000_000_000), id="llama.cpp"),
    pytest.param(of_ollama("7.6B", "tools"), id="ollama"),
    pytest.param(of_lm_studio(capabilities=["tool_use"]), id="lm-studio"),
]


@pytest.mark.parametrize("server", PROBES)
async def test_a_larger_model_is_asked_for_one_call_once_and_stays_native(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], server: dict[str, Any]
) -> None:
    model = scripted([NATIVE, Say("Hello."), Say("Hello.")], **server)
    for _ in range(2):
        async with opened(tmp_path, model) as place:
            assert ended(await place.say("Hi.")).reply == "Hello."
    assert [len(seen.functions) > 1 for seen in model.requests] == [False, True, True]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("server", "text"),
    crossed(PROBES, ['{"name": "add", "arguments": {"a": 17, "b": 25}}', "That makes 42."]),
)
async def test_a_larger_model_that_writes_text_when_asked_for_a_call_is_put_under_a_schema(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], server: dict[str, Any], text: str
) -> None:
    model = scripted([Say(text), HELLO, HELLO], **server)
    for _ in range(2):
        async with opened(tmp_path, model) as place:
            assert ended(await place.say("Hi.")).reply == "Hello."
    assert [is_constrained(seen) for seen in model.requests] == [False, True, True]


async def test_what_another_server_behind_the_port_refuses_is_left_out(
    tmp_path: Path, scripted: Any
) -> None:
    def refuse(seen: Seen) -> Any:
        name = next((name for name in ("cache_prompt", "return_progress") if name in seen.body), "")
        body = {
            "error": {"message": f"Unrecognized request argument supplied: '{name}'", "param": name}
        }
        return Fail(400, body) if name else HELLO

    model = scripted([refuse] * 3, **of_llama_cpp(1_000_000_000))
    async with opened(tmp_path, model) as place:
        assert ended(await place.say("Hi.")).reply == "Hello."
    assert "cache_prompt" not in model.requests[-1].body


async def test_how_far_a_server_has_read_is_told_with_the_time_left(
    tmp_path: Path, scripted: Any
) -> None:
    progress = {"total": 1000, "cache": 200, "processed": 600, "time_ms": 4000}
    chunks = [
        {
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}],
            "prompt_progress": progress,
        },
        {"choices": [{"index": 0, "delta": {"content": HELLO.text}, "finish_reason": "stop"}]},
    ]
    body = (
        b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
        + b"data: [DONE]\n\n"
    )
    model = scripted([Raw(body)], **of_llama_cpp(1_000_000_000))
    async with opened(tmp_path, model, model__stream=True) as place:
        happened = await place.say("Hi.")
    (reading,) = of(events.Reading, happened)
    assert (reading.done, reading.total, reading.left_s) == (600, 1000, 4.0)


async def test_a_small_model_can_keep_what_is_said_in_any_language(
    tmp_path: Path, scripted: Any
) -> None:
    kept = {
        "name": "core_memory_append",
        "arguments": {"name": "human", "content": "Mia wohnt in Ulm."},
    }
    keep = Say(json.dumps({"thought": "I keep it.", "call": kept}))
    model = scripted([keep, HELLO], **of_llama_cpp(1_000_000_000))
    async with opened(tmp_path, model) as place:
        await place.say("Mia wohnt jetzt in Ulm.")
        assert place.agent.memory.blocks.memory["human"].lines[-1] == "Mia wohnt in Ulm."
    assert {"core_memory_append", "core_memory_replace", "conversation_search"} <= offered(
        model.requests[0]
    )
    said = {"role": "user", "content": "Mia wohnt jetzt in Ulm."}  # apart from what is remembered
    assert model.requests[0].messages[-1] == said


async def test_the_same_refusal_again_and_again_between_others_ends_the_turn(
    at_desk: OpenDesk,
) -> None:
    rounds = [
        Ask(Wanted("confirm_function", {"function_name": "nothing"})),
        Ask(Wanted("list_functions")),
    ]
    place = await at_desk(
        rounds * 2 + rounds[:1], model__mode="native", model__context_tokens=32_000
    )
    happened = await place.say("Go on.")
    assert ended(happened).reason == "repeated"
    assert len(place.model.requests) == 5


async def test_where_a_server_tells_nothing_it_is_told_how_much_is_being_read(
    at_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_session, "_QUIET_S", 0.1)

    def slow(seen: Seen) -> Say:
        time.sleep(0.4)
        return Say("Hello.")

    place = await at_desk([slow], model__context_tokens=32_000)
    (reading,) = of(events.Reading, await place.say("Hi."))
    assert reading.done is None
    assert reading.total > 1_000


def test_progress_is_one_line() -> None:
    def line(**reading: Any) -> str:
        return reading_text(events.Reading(turn="1", **reading))

    assert line(total=7276) == "the model is reading about 7,276 tokens…"
    assert line(total=1000, done=0) == "the model is reading: 0 of 1,000 tokens…"
    left = "the model is reading: 600 of 1,000 tokens, about 1 min 4 s left…"
    assert line(total=1000, done=600, left_s=64.0) == left
    assert line(total=1000, done=1000, left_s=0.0) == "thinking…"
