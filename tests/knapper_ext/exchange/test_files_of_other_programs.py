"""Files from MemGPT and Letta become agents, and omissions are reported."""

import json
from typing import Any

import pytest

from agent_core.memory.recall import lines
from agent_core.storage import Entry, Store
from agent_core.workspace.portable import AgentFileError, AgentReport, ImportOptions
from agent_core.workspace.portable.text import unpacked
from tests.portable.support import moving


def packed(kind: str, time: str, **said: str) -> str:
    return json.dumps({"type": kind, **said, "time": f"2023-10-30 08:{time}:00 PM PDT-0700"})


def old_call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": "I think.",
        "function_call": {"name": name, "arguments": json.dumps(arguments)},
    }


USUAL = "You are MemGPT, the latest version of Limnal Corporation's digital companion, developed in 2023."
MEMGPT: dict[str, Any] = {
    "model": "gpt-4",
    "system": f"{USUAL}\n",
    "functions": [{"name": "send_message", "description": "…", "parameters": {}}],
    "messages": [
        {"role": "system", "content": "all of it"},
        old_call("send_message", message="More human than human is our motto."),
        {
            "role": "function",
            "name": "send_message",
            "content": '{"status": "OK", "message": "None"}',
        },
        {"role": "user", "content": packed("login", "46", last_login="Never")},
        {"role": "user", "content": packed("user_message", "47", message="I am Ada")},
        old_call("core_memory_append", name="human", content="Ada", request_heartbeat=True),
        {
            "role": "function",
            "name": "core_memory_append",
            "content": '{"status": "Failed", "message": "full"}',
        },
        {"role": "user", "content": packed("heartbeat", "47", reason="Function call failed")},
        old_call("send_message", message="Hello Ada"),
        {"role": "user", "content": packed("user_message", "48", message="and?")},
    ],
    "messages_total": 40,
    "memory": {"persona": "I am kind.", "human": "Name: Ada"},
}


async def taken(
    store_and: tuple[Store, Any], file: Any, **given: Any
) -> tuple[list[AgentReport], list[Entry]]:
    store, moves = store_and
    reports = await moves.take_in(json.dumps(file), ImportOptions(file_name="my agent", **given))
    return reports, await store.history(reports[0].name)


async def test_what_memgpt_saved_becomes_turns_blocks_and_a_report() -> None:
    async with moving() as opened:
        (report,), entries = await taken(opened, MEMGPT)
        blocks = {block.label: block.value for block in await opened[0].blocks("my-agent")}
    assert (report.name, report.kind) == ("my-agent", "memgpt")
    assert [entry.kind for entry in entries] == [
        *("assistant", "result", "notice"),
        *("user", "assistant", "result", "notice", "assistant", "result"),
        "user",
    ]
    assert [line.text for line in lines(entries)][1:] == [
        "I am Ada",
        "I think.",
        "Hello Ada",
        "and?",
    ]
    assert blocks == {"persona": "I am kind.", "human": "Name: Ada"}
    left = {one["what"]: one["count"] for one in report.to_json()["unmapped"]}
    assert left == {
        "system messages": 1,
        "model": 1,
        "functions": 1,
        "messages before these": 31,
        "system prompt": 1,
    }
    results = [entry.payload for entry in entries if entry.kind == "result"]
    assert [(result["name"], result["outcome"]) for result in results] == [
        ("send_message", "returned"),
        ("core_memory_append", "raised"),
        ("send_message", "unknown"),
    ]
    asked = [
        call["id"]
        for entry in entries
        if entry.kind == "assistant"
        for call in entry.payload["calls"]
    ]
    assert [result["call_id"] for result in results] == asked
    assert entries[3].payload["packed"] == MEMGPT["messages"][4]["content"]
    assert entries[-1].at - entries[3].at == 60


@pytest.mark.parametrize(
    ("system", "kept"),
    [
        (
            f"{USUAL}\n\nCUSTOM: speak Polish.\n\nControl flow:\nNever sell.",
            ["CUSTOM: speak Polish.\n\nNever sell."],
        ),
        (f"Be brief.\n{USUAL}", ["Be brief."]),
        (USUAL.replace("2023", "2026"), [USUAL.replace("2023", "2026")]),
        ("Basic functions:\nControl flow:", ["Basic functions:\nControl flow:"]),
        (f"  {USUAL}  ", []),
        ("", []),
    ],
    ids=["added below", "added above", "changed", "by chance", "nothing of their own", "empty"],
)
async def test_what_a_user_added_to_the_usual_prompt_of_memgpt_is_kept(
    system: str, kept: list[str]
) -> None:
    async with moving() as opened:
        await taken(opened, {**MEMGPT, "system": system})
        whole = await opened[1].whole("my-agent")
    assert [section.text for section in whole.sections] == kept


def message(role: str, text: str, id: str, minute: int, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {
        "role": role,
        "content": content,
        "id": id,
        "created_at": f"2025-08-21T23:{minute}:00+00:00",
        **more,
    }


def new_call(id: str, name: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


AGENT: dict[str, Any] = {
    "id": "agent-0",
    "name": "Disk agent!",
    "agent_type": "letta_v1_agent",
    "system": "You read files.",
    "block_ids": ["block-1", "block-0"],
    "tool_ids": ["tool-0", "tool-1"],
    "tool_exec_environment_variables": {"API_KEY": "do-not-tell"},
    "llm_config": {"model": "gpt-4o-mini"},
    "messages": [
        message("system", "You read files.", "m0", 10),
        message("user", "the first", "m1", 11),
        message("assistant", "one", "m2", 12),
        message("user", "two at once", "m3", 20),
        message(
            "approval", "", "m4", 21, tool_calls=[new_call("x", "look"), new_call("y", "look")]
        ),
        message("approval", "", "m5", 22, approvals=[{"tool_call_id": "x", "approve": True}]),
        message(
            "tool",
            "",
            "m6",
            22,
            tool_call_id="x",
            tool_returns=[{"tool_call_id": id, "func_response": f"saw {id}"} for id in ("y", "x")],
        ),
        message("assistant", "done", "m7", 23),
    ],
    "in_context_message_ids": ["m0", "m3", "m4", "m5", "m6", "m7"],
    "files_agents": [{"file_id": "file-0"}, {"file_id": "file-1"}],
}
LETTA: dict[str, Any] = {
    "agents": [AGENT],
    "blocks": [
        {
            "id": "block-0",
            "label": "human",
            "value": "likes tea",
            "limit": 5,
            "description": "who",
            "read_only": True,
        },
        {"id": "block-1", "label": "human", "value": "another", "limit": 2000},
    ],
    "tools": [
        {"id": "tool-0", "name": "look", "source_code": "import os; os.abort()"},
        {"id": "tool-1", "name": "send_message", "source_code": None},
    ],
    "files": [
        {
            "id": "file-0",
            "file_name": "notes.md",
            "content": "# Tea\n\nGreen tea steeps for two minutes.\n",
        },
        {"id": "file-1", "file_name": "gone.pdf", "content": None},
    ],
}


async def test_an_agent_of_letta_comes_with_blocks_files_and_what_is_out_of_its_context_and_no_secret() -> (
    None
):
    async with moving() as opened:
        (report,), _ = await taken(opened, LETTA)
        assert report.name == "Disk-agent"
        whole = await opened[1].whole("Disk-agent")
        assert await opened[0].search_words("archival", "Disk-agent", ["steeps"], 5)
    assert [(one.source, one.n, one.document) for one in whole.passages] == [
        ("notes.md", 0, whole.documents[0].hash)
    ]
    said = [entry for turn in whole.turns for entry in turn.entries]
    assert [entry.payload["text"] for entry in said if entry.kind == "result"] == ["saw y", "saw x"]
    assert said[-1].payload | {"text": ""} == {
        "text": "",
        "covers": 2,
        "upto": 2,
        "style": "summary",
    }
    assert [(one.row.label, one.row.limit, one.row.read_only) for one in whole.blocks] == [
        ("human", 2000, False),
        ("human_2", 9, True),
    ]
    assert [(one.name, one.text) for one in whole.sections] == [("system", "You read files.")]
    assert "do-not-tell" not in json.dumps(report.to_json())
    left = {one["what"]: one["why"] for one in report.to_json()["unmapped"]}
    assert {
        "function `look`",
        "functions",
        "environment variables",
        "file `gone.pdf`",
        "approvals",
        "model",
    } <= {*left}
    assert "functions create" in left["function `look`"]


async def test_one_of_several_agents_is_chosen_and_all_come_without_a_choice() -> None:
    two = {**LETTA, "agents": [AGENT, {**AGENT, "name": "second"}]}
    async with moving() as opened:
        assert [one.name for one in (await taken(opened, two, only="second", name="mine"))[0]] == [
            "mine"
        ]
        assert [one.name for one in (await taken(opened, two))[0]] == ["Disk-agent", "second"]
        with pytest.raises(
            AgentFileError,
            match="expected one agent to give a name to; there are Disk-agent, second",
        ):
            await taken(opened, two, name="both")


async def test_what_is_wrong_in_a_file_of_letta_is_told_with_its_place() -> None:
    async with moving() as opened:
        for key, value, told in (
            ("messages", ["hi"], "agents[0].messages[0]: expected an object"),
            ("block_ids", ["nowhere"], "agents[0].block_ids: expected the id of a block"),
        ):
            with pytest.raises(AgentFileError) as refused:
                await taken(opened, {**LETTA, "agents": [{**AGENT, key: value}]})
            assert told in refused.value.message, (key, value)


def test_a_packed_message_says_its_kind_text_and_time() -> None:
    for text, *expected in (
        ("plain words", "user_message", "plain words", 0),
        (packed("user_message", "47", message="hi"), "user_message", "hi", 1698724020),
        ('{"type": ["x"]}', "user_message", '{"type": ["x"]}', 0),
        ("{" * 100_000, "user_message", "{" * 100_000, 0),
    ):
        found = unpacked(text)
        assert [found.kind, found.text, found.at] == expected, text[:40]


async def test_the_older_shape_of_letta_with_one_agent_a_file_is_read_too() -> None:
    old = {
        "agent_type": "memgpt_agent",
        "name": "old",
        "core_memory": [{"label": "persona", "value": "kind", "limit": 5000}],
        "messages": [
            message("user", packed("user_message", "47", message="hi"), "", 10),
            message("system", "s", "", 11),
        ],
        "in_context_message_indices": [0],
    }
    async with moving() as opened:
        (report,), entries = await taken(opened, old)
        settings = await opened[0].agent_settings("old")
    assert (report.name, [entry.payload["text"] for entry in entries], settings) == (
        "old",
        ["hi"],
        {"preset": "memgpt"},
    )
