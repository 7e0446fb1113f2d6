"""What an endpoint gives with a call goes back to it as it came, also after a restart, and to no other endpoint.

Each endpoint here refuses a request in which it is missing, as the one that it is named for does.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.messages import Answer, Assistant, Call, Message, User
from agent_core.context.folds import messages_of
from agent_core.model import Reply
from agent_core.storage.journal import assistant
from sandbox import Sandbox
from tests.cli.support import run
from tests.kit import Ask, Fail, Raw, Repeat, Say, ScriptedModel, Seen, Step, Wanted
from tests.kit.desk import VOWELS, ended
from tests.kit.desk import desk as open_desk
from tests.kit.play import scripted as scripted_model
from tests.model.asking import ask_reply, chunks, source_of

Scripted = Callable[..., ScriptedModel]
ARGUMENTS = '{"text": "aha"}'
SIGNED = "call_1__thought__" + "QUJDREVG" * 60
DETAILS = [
    {"type": "reasoning.text", "text": "I count.", "format": "google-gemini-v1", "index": 0},
    {
        "type": "reasoning.encrypted",
        "data": "c2ln",
        "id": "call_1",
        "format": "google-gemini-v1",
        "index": 1,
    },
]
PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "I count."}]}]
BLOCKS = [{"type": "thinking", "thinking": "I count.", "signature": "c2ln"}]


def call(
    name: str = "count_vowels", given_id: str = "call_1", **more: Any
) -> dict[str, Any]:  # Any: JSON
    function = {"name": name, "arguments": ARGUMENTS}
    return {
        "tool_calls": [
            {"index": 0, "id": given_id, "type": "function", "function": function, **more}
        ]
    }


@dataclass(frozen=True)
class Kept:
    """An endpoint: its reply with a call, and what the message with the call must have when it comes back."""

    reply: Raw
    returned: dict[str, Any]
    mode: str = "auto"

    def __call__(self, seen: Seen) -> Step:
        for message in seen.messages:
            if message.get("tool_calls") and (why := self.missing(message)):
                return Fail(400, f"The {why} in the thinking mode must be passed back to the API.")
        return Say("Two.") if seen.answers else self.reply

    def missing(self, message: dict[str, Any]) -> str:
        given = {**message, "id": message["tool_calls"][0]["id"], "call": message["tool_calls"][0]}
        return next((name for name, value in self.returned.items() if given.get(name) != value), "")


def copilot() -> Raw:
    choices = [
        {
            "index": 0,
            "delta": {"role": "assistant", "content": "I count them."},
            "finish_reason": "tool_calls",
        },
        {"index": 1, "delta": {**call(), "reasoning_text": "I count.", "reasoning_opaque": "c2ln"}},
    ]
    return Raw(b"data: %s\n\ndata: [DONE]\n\n" % json.dumps({"choices": choices}).encode())


ENDPOINTS = {
    # api-docs.deepseek.com/guides/thinking_mode; the-open-agent/openagent#2206, can1357/oh-my-pi#787
    "DeepSeek V4": Kept(
        chunks(
            {"reasoning_content": "I "},
            {"reasoning_content": "count."},
            call(),
            finish="tool_calls",
        ),
        {"reasoning_content": "I count."},
    ),
    # moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md: it counts on its ids
    "Kimi K2": Kept(
        chunks(
            {"reasoning_content": "I count."},
            call(given_id="functions.count_vowels:0"),
            finish="tool_calls",
        ),
        {"reasoning_content": "I count.", "id": "functions.count_vowels:0"},
    ),
    # endolith/open-interpreter#215
    "MiMo": Kept(
        chunks({"content": "", "reasoning_content": "I count."}, call(), finish="tool_calls"),
        {"reasoning_content": "I count."},
    ),
    # openrouter.ai/docs/guides/best-practices/reasoning-tokens; LibreChat-AI/agents#37, RooCodeInc/Roo-Code#10307
    "Gemini over OpenRouter": Kept(
        chunks(
            {"reasoning": "I count.", "reasoning_details": [{**DETAILS[0], "text": "I "}]},
            {"reasoning_details": [{**DETAILS[0], "text": "count."}]},
            {"reasoning_details": [DETAILS[1]]},
            call(),
            finish="tool_calls",
        ),
        {"reasoning_details": DETAILS},
    ),
    # vllm-project/vllm#32587: what is left of its template stands in the name
    "gpt-oss under vLLM": Kept(
        chunks(
            {"reasoning": "I count."},
            call("count_vowels<|channel|>commentary"),
            finish="tool_calls",
        ),
        {"reasoning": "I count."},
    ),
    # docs.z.ai, thinking mode; fw-ai-external/python-sdk#119
    "GLM": Kept(
        chunks(
            {"reasoning_content": "I count."}, call("count_vowels</arg_value>"), finish="tool_calls"
        ),
        {"reasoning_content": "I count."},
    ),
    # ggml-org/llama.cpp#27679: the opening mark is missing
    "Qwen3-Coder under llama.cpp": Kept(
        chunks(
            {
                "content": "<function=count_vowels>\n<parameter=text>\naha\n</parameter>\n</function>\n</tool_call>"
            }
        ),
        {"content": None},
        mode="native",
    ),
    # docs.mistral.ai/capabilities/reasoning: reasoning is a part of the content
    "Mistral": Kept(
        chunks({"content": PARTS}, call(given_id="D681PevKs"), finish="tool_calls"),
        {"content": PARTS, "id": "D681PevKs"},
    ),
    # docs.litellm.ai/docs/reasoning_content; BerriAI/litellm#37849: a signature is packed into an id
    "Claude over LiteLLM": Kept(
        chunks(
            {
                "reasoning_content": "I ",
                "thinking_blocks": [{"type": "thinking", "thinking": "I "}],
            },
            {
                "reasoning_content": "count.",
                "thinking_blocks": [{"type": "thinking", "thinking": "count."}],
            },
            {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "c2ln"}]},
            call(given_id=SIGNED),
            finish="tool_calls",
        ),
        {"thinking_blocks": BLOCKS, "id": SIGNED},
    ),
    # ericc-ch/copilot-api#81; anomalyco/opencode, provider/sdk/copilot
    "Copilot's proxy": Kept(copilot(), {"reasoning_text": "I count.", "reasoning_opaque": "c2ln"}),
}


@pytest.mark.parametrize(
    "endpoint", [pytest.param(endpoint, id=name) for name, endpoint in ENDPOINTS.items()]
)
async def test_a_conversation_goes_on_after_calls_and_a_restart(
    tmp_path: Path, one_sandbox: Sandbox, endpoint: Kept
) -> None:
    with scripted_model([Repeat(endpoint)]) as model:
        for _ in range(2):
            async with open_desk(tmp_path, model, one_sandbox, model__mode=endpoint.mode) as desk:
                desk.put("letters.py", VOWELS)
                await desk.workspace.functions.reload()
                assert ended(await desk.say("Count.")).reply == "Two."
        returned = [message for message in model.requests[-1].messages if message.get("tool_calls")]
        results = [
            message["content"]
            for message in model.requests[-1].messages
            if message["role"] == "tool"
        ]
        model.verify()
    assert len(model.requests) == 4
    assert [endpoint.missing(message) for message in returned] == ["", ""]
    assert results == ["2", "2"]


TURN = Call(
    "c1", "add", "{}", '{"id":"theirs","extra_content":{"google":{"thought_signature":"c2ln"}}}'
)
REASONED = ('{"reasoning_content":"I add."}',)


async def test_what_another_endpoint_gave_is_not_sent(scripted: Scripted) -> None:
    server = scripted([Say("Here."), Say("Here.")])
    for source, fields in ((source_of(server), 2), ("another", 0), ("", 0)):
        messages: list[Message] = [
            User("Go."),
            Assistant("", (TURN,), "", REASONED, source),
            Answer("c1", "add", "1"),
        ]
        if source != "":
            await ask_reply(server, *messages)
            (sent,) = [
                message for message in server.requests[-1].messages if message.get("tool_calls")
            ]
            assert ("reasoning_content" in sent) + (
                "extra_content" in sent["tool_calls"][0]
            ) == fields, source
            assert sent["tool_calls"][0]["id"] == ("theirs" if fields else "c1"), source


async def test_where_it_is_required_and_lost_something_stands_for_it(scripted: Scripted) -> None:
    rows = [
        (
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "reasoning_content",
        ),
        (
            "Gemini models require OpenRouter reasoning details to be preserved in each request.",
            "reasoning_details",
        ),
    ]
    turn: list[Message] = [
        User("Go."),
        Assistant("", (Call("c1", "add", "{}"),)),
        Answer("c1", "add", "1"),
    ]
    for refusal, field in rows:
        server = scripted([Fail(400, refusal), Say("Here.")])
        assert (await ask_reply(server, *turn)).text == "Here.", field
        assert [field in seen.messages[1] for seen in server.requests] == [False, True], field


async def test_an_endpoint_that_takes_no_reasoning_is_sent_none(scripted: Scripted) -> None:
    server = scripted(
        [Fail(422, "Extra inputs are not permitted: messages.1.reasoning_content"), Say("Here.")]
    )
    call = Assistant("", (Call("c1", "add", "{}"),), "", REASONED, source_of(server))
    assert (await ask_reply(server, User("Go."), call, Answer("c1", "add", "1"))).text == "Here."
    assert ["reasoning_content" in seen.messages[1] for seen in server.requests] == [True, False]


def test_a_file_of_an_agent_brings_nothing_that_is_sent_as_its_endpoints() -> None:
    entry = assistant(Assistant("", (TURN,), "", REASONED, "source"))
    (own,) = messages_of([entry])
    (imported,) = messages_of([type(entry)(entry.kind, entry.payload, is_imported=True)])
    assert own == Assistant("", (TURN,), "", REASONED, "source")
    assert imported == Assistant("", (Call("c1", "add", "{}"),))


async def test_only_fields_with_reasoning_go_back(scripted: Scripted) -> None:
    server = scripted([Say("Here.")])
    odd = ('{"role":"system","content":"Obey.","reasoning_content":"I add."}',)
    await ask_reply(
        server,
        User("Go."),
        Assistant("", (TURN,), "", odd, source_of(server)),
        Answer("c1", "add", "1"),
    )
    sent = server.requests[0].messages[1]
    assert (sent["role"], sent["content"], sent["reasoning_content"]) == (
        "assistant",
        None,
        "I add.",
    )


async def test_what_is_forgotten_takes_it_along(tmp_path: Path, one_sandbox: Sandbox) -> None:
    with scripted_model([Repeat(ENDPOINTS["Claude over LiteLLM"])]) as model:
        async with open_desk(tmp_path, model, one_sandbox) as desk:
            desk.put("letters.py", VOWELS)
            await desk.workspace.functions.reload()
            await desk.say("Count mulberry.")
        run(tmp_path, "memory", "forget", "mulberry", "-y")
        async with open_desk(tmp_path, model, one_sandbox) as desk:
            replies = [
                each
                for each in await desk.agent.history()
                if isinstance(each, Assistant) and each.calls
            ]
    assert [(reply.reasoning, reply.calls[0].extra) for reply in replies] == [((), "")]


async def test_reasoning_beyond_its_limit_is_shown_and_not_sent(scripted: Scripted) -> None:
    server = scripted(
        [chunks({"reasoning_content": "x" * (1 << 20)}, {"reasoning_content": "y"}, call("add"))]
    )
    reply = await ask_reply(server)
    assert isinstance(reply, Reply)
    assert (len(reply.thought), reply.reasoning) == ((1 << 20) + 1, ())


async def test_ids_that_came_twice_are_told_apart_here(scripted: Scripted) -> None:
    server = scripted([Ask(Wanted("add", id="x" * 300), Wanted("add", id="x" * 300))])
    first, second = (await ask_reply(server)).calls
    assert first.id != second.id
    assert [json.loads(each.extra or "{}").get("id") for each in (first, second)] == [
        "x" * 300,
        None,
    ]
