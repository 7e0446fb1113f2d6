"""A file is checked before it is used, as its published schema says: an error names its place, nothing is written."""

import json
import runpy
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.base.matching import Mention
from agent_core.context import History, Summary, resume
from agent_core.context.folds import messages_of
from agent_core.context.history import of_agent, of_function
from agent_core.runtime.event_fold import EventFold
from agent_core.storage import AGENT, WholeAgent
from agent_core.storage.forget_store import Redaction
from agent_core.workspace.portable import AgentFileError, ImportOptions, Moves
from agent_core.workspace.portable.child import MOST
from agent_core.workspace.portable.document import Summed, document_of
from tests.portable.support import agents, moving

USER = {"kind": "user", "payload": {"text": "hi"}, "at": 1.0}
REPLY = {
    "kind": "assistant",
    "payload": {"text": "", "calls": [{"id": "c", "name": "f", "arguments": "{}"}]},
    "at": 1.0,
}
ANSWER = {"kind": "result", "payload": {"call_id": "c", "name": "f", "text": "ok"}, "at": 1.0}
SUMMARY: dict[str, Any] = {
    "kind": "summary",
    "payload": {"text": "", "covers": 1, "upto": 1},
    "at": 1.0,
}
TURN = {
    "id": "t",
    "state": "done",
    "started": 1.0,
    "ended": 2.0,
    "events": [{"kind": "message", "payload": {"text": "hi"}, "at": 1.0}],
    "entries": [USER, REPLY, ANSWER, SUMMARY],
}
LINE = {
    "version": 1,
    "value": "x",
    "what": "begun",
    "by": "human",
    "agent": "a",
    "turn": "",
    "at": 1.0,
}
BLOCK = {
    "id": "b",
    "label": "human",
    "value": "x",
    "limit": 10,
    "version": 1,
    "edited": 1.0,
    "history": [LINE],
}
GOOD = {
    "format": "knapper-agent",
    "version": 1,
    "agent": {"name": "a", "settings": {}},
    "blocks": [BLOCK],
    "turns": [TURN],
    "passages": [{"id": "p", "text": "a passage", "at": 1.0}],
}
LOGIN = {"kind": "login", "payload": {"last": "x"}, "at": 1.0}
ENTRIES = "turns.0.entries"
SIZE = f"a section of a file has at most {MOST:,} characters"


def changed(path: str, value: Any) -> str:
    """Return the good file with one value changed; `...` removes it."""
    document: Any = deepcopy(GOOD)
    holder, parts = document, [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parts[:-1]:
        holder = holder[part]
    if value is ...:
        del holder[parts[-1]]
    else:
        holder[parts[-1]] = value
    return json.dumps(document)


async def refusal(moves: Moves, text: str) -> str:
    """Return why a file is refused; nothing of it is taken in."""
    with pytest.raises(AgentFileError) as told:
        await moves.take_in(text, ImportOptions())
    assert await moves.names() == []
    return told.value.message


async def test_what_is_wrong_is_told_with_its_place() -> None:
    summary, said = f"{ENTRIES}.3.payload", SUMMARY["payload"]
    posing = {"by": "user: x", "text": "x"}
    async with moving() as (_, moves):
        for path, value, told in (
            ("version", 2, "version: expected 1, got 2"),
            ("agent.name", "../x", "agent.name: expected a text of the form"),
            ("agent.extra", 1, "agent.extra: expected no such field"),
            ("blocks.0.limit", "ten", "blocks[0].limit: expected a whole number, got the text"),
            ("blocks.0.limit", 10**30, "blocks[0].limit: expected at most"),
            ("blocks.0.value", "long" * 9, "blocks[0].value: expected at most 10 characters"),
            ("blocks.0.label", "a\n", "blocks[0].label: expected a text of the form"),
            ("blocks.0.version", 2, "blocks[0].history: expected its last line to be version 2"),
            ("blocks", [BLOCK, BLOCK], "blocks: expected each id once, got `b` twice"),
            ("turns.0.state", "open", "turns[0].ended: expected a time for a turn that ended"),
            (f"{ENTRIES}.0.payload", {}, "turns[0].entries[0].payload.text: expected it"),
            (f"{ENTRIES}.0.payload.packed", "[]", "packed: expected the JSON of an object"),
            (f"{ENTRIES}.2", USER, "expected an answer of the call `c` before entry 4"),
            (f"{ENTRIES}.1", USER, "entries[2].payload.call_id: expected a call that waits"),
            ("inbox", [LOGIN], "inbox[0].payload.last: expected a number"),
            ("texts", {"0" * 64: "x"}, f"texts.{'0' * 64}: expected the text that has"),
            (summary, said | {"said": [{"text": "x"}]}, "payload.said[0].by: expected it"),
            (summary, said | {"said": [posing]}, "payload.said[0].by: expected a text of the form"),
        ):
            assert told in await refusal(moves, changed(path, value)), (path, value)


STARTED = {"kind": "call", "payload": {"id": "c", "name": "f"}, "at": 1.0}
EVERY_KIND = [USER, REPLY, STARTED, ANSWER, SUMMARY]
FIELDS = {
    0: ("text", "packed", "chars", "whole", "speaker"),
    1: ("thought", "reasoning", "source", "calls.0.extra"),
    2: ("version", "client"),
    3: ("outcome", "whole", "chars", "seconds", "detail"),
    4: ("covers", "upto", "said", "asked", "style"),
}
WRONG: list[Any] = [1, True, {}, [1], "x", 0.5, None]


async def test_what_is_taken_in_can_be_read_whatever_its_entries_say_beyond_what_the_program_needs() -> (
    None
):
    """A field in a form that the store does not read would be damage there, and cost all that is in it."""
    taken_in, refused = 0, dict[tuple[str, str], str]()
    async with moving() as (store, moves):
        await moves.take_in(json.dumps(GOOD), ImportOptions(name="mine"))
        for n, names in FIELDS.items():
            for name, value in product(names, WRONG):
                document = json.loads(changed(ENTRIES, EVERY_KIND))
                *way, last = name.split(".")
                holder = document["turns"][0]["entries"][n]["payload"]
                for part in way:
                    holder = holder[int(part) if part.isdigit() else part]
                holder[last] = value
                try:
                    await moves.take_in(json.dumps(document), ImportOptions(name="guest"))
                except AgentFileError as error:
                    refused[name, str(value)] = error.message
                    continue
                taken_in += 1
                await resume(store, "guest", History())
                entries = await store.history("guest")
                assert messages_of(entries)
                fold = EventFold.at("guest", entries[0])
                assert [event for entry in entries for event in fold.of(entry, entry.seq)]
                assert await moves.export("guest")
                await moves.delete("guest")
        assert await store.history("mine")
    assert {name for name, _ in refused} == {name for names in FIELDS.values() for name in names}
    assert taken_in > 20


async def test_the_answer_of_a_client_is_in_a_later_turn_also_in_one_that_was_taken_back() -> None:
    def turn(number: int, entries: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        return TURN | {"id": f"t{number}", "entries": entries} | fields

    summed, said = (
        turn(2, [SUMMARY]),
        {"kind": "assistant", "payload": {"text": "x", "calls": []}, "at": 1.0},
    )
    handed, answered = turn(1, [USER, REPLY], state="client_calls"), turn(4, [ANSWER, said])
    taken_back = turn(3, [ANSWER, said], hidden=True)
    async with moving() as (_, moves):
        for number, turns in enumerate(
            (
                [handed, summed, answered],
                [handed],
                [handed, taken_back, answered],
                [handed | {"hidden": True}, taken_back],
            )
        ):
            await moves.take_in(changed("turns", turns), ImportOptions(name=f"a{number}"))
            await moves.take_in(
                await moves.export(f"a{number}"), ImportOptions(name=f"again{number}")
            )
    async with moving() as (_, moves):
        for turns, told in (
            (
                [handed, turn(2, [said])],
                "turns[1].entries: expected an answer of the call `c` before entry 0",
            ),
            (
                [handed | {"state": "done"}],
                "turns[0].entries: expected an answer of the call `c` before entry 2",
            ),
            (
                [handed | {"hidden": True}, answered],
                "turns[1].entries[0].payload.call_id: expected a call that waits",
            ),
            (
                [handed, answered, turn(5, [ANSWER])],
                "turns[2].entries[0].payload.call_id: expected a call that waits",
            ),
        ):
            assert told in await refusal(moves, changed("turns", turns)), told


NAMES = st.text() | st.lists(st.from_regex(AGENT, fullmatch=True)).map(", ".join)


@given(
    name=NAMES,
    sought=st.sampled_from(("agent", "a function", "user", "the", "another", "ann", "x²")),
)
def test_the_author_of_a_sentence_in_a_summary_can_be_imported_also_when_a_text_is_forgotten(
    name: str, sought: str
) -> None:
    authors = [
        "",
        "user",
        *(of(text) for of in (of_function, of_agent) for text in (name, "ann", "x²", "x\n")),
    ]
    payload = Summary("", 1, 0, quotes=tuple((by, "x") for by in authors)).entry().payload
    assert [quote.by for quote in Summed.model_validate(payload).said] == authors
    after = Summed.model_validate(Redaction(Mention(sought)).summary(payload))
    assert sought != "ann" or "the agent forgotten" in str(after)


async def test_what_is_no_file_of_an_agent_is_refused_with_a_reason() -> None:
    async with moving() as (_, moves):
        for text, told in {
            "": "line 1, column 1: expected JSON",
            '{"a": 1, "a": 2}': "expected each key once, got `a` twice",
            '{"a": NaN}': "expected a finite number, got NaN",
            '{"a": ' * 150 + "1" + "}" * 150: "expected at most 100 levels",
            '{"a":' + "[" * 200_000 + "]" * 200_000 + "}": "expected at most 100 levels",
            '{"format": "other"}': "`format` is knapper-agent, or one of MemGPT's",
        }.items():
            assert told in await refusal(moves, text), text[:40]


async def test_a_memory_class_of_a_file_is_not_imported_unless_the_settings_name_it() -> None:
    async with moving() as (store, moves):
        for name, named in (("evil", "os:system"), ("mine", "mine:Notes"), ("usual", "chat")):
            text = changed(
                "agent.settings",
                {"memory_class": named, "preset": "memgpt" if named == "chat" else "gone"},
            )
            await moves.take_in(text, ImportOptions(name=name))
        kept = [await store.agent_settings(name) for name in ("evil", "mine", "usual")]
    assert kept == [
        {},
        {"memory_class": "mine:Notes"},
        {"memory_class": "chat", "preset": "memgpt"},
    ]


async def test_a_file_says_nothing_that_this_program_notes_for_itself_of_an_agent() -> None:
    async with moving() as (store, moves):
        text = changed(
            "agent.settings",
            {"preset": "memgpt", "chat_of": "main", "chat_asks": [["d", "k", 9e10]]},
        )
        (report,) = await moves.take_in(text, ImportOptions(name="guest"))
        assert await store.agent_settings("guest") == {"preset": "memgpt"}
    assert {"setting `chat_of`", "setting `chat_asks`"} <= {
        left["what"] for left in report.to_json()["unmapped"]
    }


async def test_sections_of_a_file_get_names_beside_the_programs_own_and_keep_to_their_size() -> (
    None
):
    texts = {
        "instructions": "You obey.",
        "own_instructions": "Be kind.",
        "long": "word " * 100_000,
        "fits": "Be brief.",
    }
    rows = [
        {"name": name, "position": -9, "text": text, "limit": 0, "edited": 1.0}
        for name, text in texts.items()
    ]
    async with moving() as (store, moves):
        (report,) = await moves.take_in(json.dumps(GOOD | {"sections": rows}), ImportOptions())
        kept = {row.name: row.text for row in await store.sections("a")}
        again = await moves.take_in(await moves.export("a"), ImportOptions(name="again"))
    assert kept.keys() == {"own_instructions_", "own_instructions", "long", "fits"}
    assert kept["own_instructions_"] == "You obey."
    assert len(kept["long"]) <= MOST
    told = report.to_json()
    assert "section `own_instructions_`, for the program has one of that name" in str(
        told["mapped"]
    )
    assert told["unmapped"] == [{"what": "the middle of section `long`", "why": SIZE, "count": 1}]
    assert again[0].to_json()["unmapped"] == []


PUBLISHED = Path(__file__).parents[2] / "docs" / "agent-file.schema.json"
SCHEMA = jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_text("utf-8")))


def test_the_published_schema_is_that_of_the_program() -> None:
    made = runpy.run_path(str(PUBLISHED.with_name("generate.py")))["agent_file"]()
    assert PUBLISHED.read_text("utf-8") == made, "run: python docs/generate.py"
    jsonschema.Draft202012Validator.check_schema(SCHEMA.schema)


@settings(max_examples=20)
@given(whole=agents())
def test_every_exported_agent_is_valid_by_the_published_schema(whole: WholeAgent) -> None:
    SCHEMA.validate(document_of(whole))
