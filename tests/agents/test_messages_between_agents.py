"""Messages between agents: notes, questions that park the turn, handoffs, and messages that are not allowed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_core.base.events import CallAnswered, TurnEnded, TurnStarted
from agent_core.storage import Amounts, Post, SendMessage
from agent_core.storage.folder import lock_agent
from tests.kit import Ask, Say, Seen, Step, Wanted
from tests.kit.desk import answers, ended
from tests.kit.program import knapper

from .team import Part, said_last, team

TYPO = "`teh` is wrong."
LIMITS: Amounts = {"hops": 12, "messages": 100}


def calling(name: str, then: str = "Done.", **arguments: Any) -> Part:
    """Return an agent that makes one call for each message from another, and then says something."""

    def play(seen: Seen) -> Step:
        if seen.messages[-1]["role"] == "tool" or " answer" in said_last(seen).replace(
            "the answer", ""
        ):
            return Say(then)
        return Ask(Wanted(name, arguments))

    return play


def repeating(seen: Seen) -> Step:
    """Repeat the answer."""
    return Say(f"They say: {said_last(seen)}")


def asking(seen: Seen) -> Step:
    """Ask the editor and repeat its answer."""
    if said_last(seen).startswith("[from: "):
        return repeating(seen)
    return Ask(Wanted("ask_agent", {"agent": "editor", "question": "Which word is wrong?"}))


async def test_an_answer_wakes_the_turn_that_was_parked_for_it_also_after_a_restart_and_a_day(
    tmp_path: Path,
) -> None:
    def main(seen: Seen) -> Step:
        return Say("It is noon.") if said_last(seen) == "What time is it?" else asking(seen)

    parts: dict[str, Part] = {"main": main, "editor": lambda _: Say(TYPO)}
    async with team(tmp_path, parts) as agents:
        assert ended(await agents.say("Ask the editor.")).reason == "parked"
        assert ended(await agents.say("What time is it?")).reply == "It is noon."
    with apsw.Connection(str(tmp_path / ".knapper" / "state.db")) as db:
        for column in (
            "message.at",
            "message.due",
            "thread.started",
            "event.at",
            "event.due",
            "turn.started",
        ):
            table, _, name = column.partition(".")
            db.execute(f"update {table} set {name} = {name} - 86400")
    async with team(tmp_path, parts) as agents:
        await agents.work()
        assert agents.replies("editor") == [TYPO]
        assert agents.replies("main") == [f"They say: [from: editor] answers:\n{TYPO}"]
        words = await agents.words("editor")
        assert words[0] == "[from: main] asks you; your reply is the answer:\nWhich word is wrong?"


@pytest.mark.slow
async def test_work_of_an_agent_that_another_process_held_for_a_moment_is_not_left(
    tmp_path: Path,
) -> None:
    parts: dict[str, Part] = {"main": asking, "editor": lambda _: Say(TYPO)}
    async with team(tmp_path, parts) as agents:
        await agents.say("Ask the editor.")
        lock = lock_agent(
            tmp_path / ".knapper", "editor"
        )  # as a killed process does until its children are gone
        asyncio.get_running_loop().call_later(1.5, lock.close)
        await agents.work()
        assert agents.replies("main") == [f"They say: [from: editor] answers:\n{TYPO}"]


async def test_several_are_asked_at_the_same_time_and_answer_together(tmp_path: Path) -> None:
    names = ["ada", "bob", "cy"]
    parts: dict[str, Part] = {name: lambda seen: Say("mine") for name in names}
    main = calling("ask_agents", agents=names, question="Your view?")
    async with team(tmp_path, {"main": main, **parts}) as agents:
        await agents.say("Ask all.")
        await agents.work()
        kinds = [type(event) for event in agents.heard if event.agent in names]
        kinds = [kind for kind in kinds if kind in (TurnStarted, TurnEnded)]
        assert kinds[:3] == [TurnStarted] * 3
        answer = (await agents.words("main"))[-2]
        assert [f"[from: {name}] answers:\nmine" in answer for name in names] == [True] * 3
        assert agents.replies("main") == ["Done."]


async def test_who_asked_hears_that_the_user_removed_the_turn(tmp_path: Path) -> None:
    async with team(tmp_path, {"main": asking, "editor": lambda _: Say(TYPO)}) as agents:
        await agents.say("Ask the editor.")
        async with await agents.workspace.agent("editor") as editor:
            async for event in editor.turn(None):
                if isinstance(event, TurnStarted):
                    await editor.interrupt(resumes=True)
            await editor.pop()
        await agents.work()
        told = "[from: editor] gave no answer:\nThe turn was removed by the user."
        assert (agents.replies("editor"), agents.replies("main")) == ([], [f"They say: {told}"])


async def test_who_asked_hears_that_an_agent_was_deleted(tmp_path: Path) -> None:
    parts: dict[str, Part] = {"main": asking, "editor": lambda _: Say(TYPO)}
    async with team(tmp_path, parts) as agents:
        await agents.say("Ask the editor.")
    assert knapper("agents", "delete", "editor", "--yes", cwd=tmp_path).returncode == 0
    async with team(tmp_path, parts) as agents:
        await agents.work()
        told = "[from: editor] gave no answer:\n`editor` was deleted."
        assert (agents.replies("editor"), agents.replies("main")) == ([], [f"They say: {told}"])


async def test_a_note_arrives_once_and_needs_no_answer(tmp_path: Path) -> None:
    ready: dict[str, Any] = {"agent": "editor", "message": "The text is ready."}
    parts: dict[str, Part] = {
        "main": calling("message_agent", **ready, key="ready"),
        "ada": calling("message_agent", **ready, stop=True),
        "editor": lambda _: Say("Noted."),
    }
    async with team(tmp_path, parts) as agents:
        for name in ("main", "main", "ada"):
            assert ended(await agents.say("Tell the editor.", to=name)).reply == "Done."
            await agents.work()
        heads = ("[from: main]", "[from: ada] asks you to stop:")
        said = [[f"{head}\nThe text is ready.", "Noted."] for head in heads]
        assert await agents.words("editor") == [text for pair in said for text in pair]


async def test_no_note_overtakes_what_its_sender_said_before_it(tmp_path: Path) -> None:
    said = ["note: one", "note: two", "ask: three?", "note: four", "ask: five?", "note: six"]
    async with team(tmp_path, {"editor": lambda _: Say("Read.")}) as agents:
        store = agents.workspace._store
        for number, (kind, _, text) in enumerate(line.partition(": ") for line in said):
            id = f"m{number}"
            await store.apply(
                [SendMessage(id, kind, "main", "editor", text, "t", f"turn{number}", limits=LIMITS)]
            )
        await agents.work()
        heard = [
            words.splitlines()[-1]
            for words in await agents.words("editor")
            if words.startswith("[from: main]")
        ]
        assert heard == ["one", "two", "three?", "four", "five?", "six"]


async def test_a_handoff_carries_its_brief_and_nothing_else(tmp_path: Path) -> None:
    brief: dict[str, Any] = {
        "goal": "Fix the text.",
        "facts": ["It is short."],
        "open_questions": ["Which tone?"],
    }
    main = calling("hand_off", to="editor", **brief)
    async with team(tmp_path, {"main": main, "editor": lambda _: Say("Fixed.")}) as agents:
        events = await agents.say("The secret is 42. Let the editor do it.")
        assert ended(events).reason == "handed_off"
        (call,) = [event for event in events if isinstance(event, CallAnswered)]
        assert call.detail["handoff"]["to"] == "editor"
        await agents.work()
        words = await agents.words("editor")
        assert words[0] == (
            "[from: main] hands this over to you:\nGoal: Fix the text.\nFacts:\n- It is short.\n"
            "Open questions:\n- Which tone?"
        )


async def test_who_is_handed_a_task_answers_who_asked_for_it(tmp_path: Path) -> None:
    parts = {
        "main": asking,
        "editor": calling("hand_off", to="critic", goal="Find it."),
        "critic": lambda _: Say(TYPO),
    }
    async with team(tmp_path, parts) as agents:
        await agents.say("Ask the editor.")
        await agents.work()
        assert agents.replies("main") == [f"They say: [from: editor] answers:\n{TYPO}"]


async def test_a_wait_that_would_close_a_circle_is_refused_at_once_and_named(
    tmp_path: Path,
) -> None:
    parts = {
        "ada": calling("ask_agent", agent="bob", question="Well?"),
        "bob": calling("ask_agent", agent="cy", question="Well?"),
        "cy": calling("ask_agent", agent="ada", question="Well?", then="I do not know."),
    }
    async with team(tmp_path, parts) as agents:
        await agents.say("Go.", to="ada")
        await agents.work()
        (refusal,) = [
            event
            for event in agents.heard
            if isinstance(event, CallAnswered) and event.outcome == "refused"
        ]
        assert "`cy` → `ada` → `bob` → `cy`" in refusal.text
        assert agents.replies("ada") == ["Done."]


async def test_what_cannot_be_sent_is_refused_with_the_way_out(tmp_path: Path) -> None:
    ask, note, more = (
        {"agent": "editor", "question": "?"},
        {"agent": "editor", "message": "?"},
        "One more.",
    )
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("ask_agent", {**ask, "agent": "editr"}, "Did you mean `editor`?"),
        ("ask_agent", {**ask, "agent": "main"}, "That is you"),
        ("message_agent", {**note, "message": " "}, "is empty"),
        ("message_agent", {**note, "message": "x" * 20_001}, "20,001 characters"),
        ("message_agent", {**note, "agent": "../x"}, "no agent `../x`"),
        ("ask_agent", {**ask, "minutes": -1}, "no time to wait"),
        ("ask_agents", {"agents": [], "question": "?"}, "Nobody was asked"),
        ("hand_off", {"to": "nobody", "goal": "x"}, "no agent `nobody`"),
        ("hand_off", {"to": "editor", "goal": ""}, "the goal is empty"),
    ]

    def main(seen: Seen) -> Step:
        calls = [Wanted(call, arguments) for call, arguments, _ in refused]
        return Say("Done.") if seen.messages[-1]["role"] == "tool" else Ask(*calls)

    parts: dict[str, Part] = {
        "main": main,
        "ada": calling("message_agent", **{**note, "message": more}),
    }
    async with team(tmp_path, {**parts, "editor": lambda _: Say("!")}) as agents:
        events = await agents.say("Go.")
        told = answers(events)
        assert [
            text for text, (*_, part) in zip(told, refused, strict=True) if part not in text
        ] == []
        assert ended(events).reply == "Done."
        await agents.work()
        assert agents.heard == []
        await agents.workspace._store.post(Post("editor", "system", {"text": "x"}))
        with apsw.Connection(str(tmp_path / ".knapper" / "state.db")) as db:
            numbers = (
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < 999)"
            )
            columns = "line, kind, payload, due, timed, at"
            copied = f"select id || i, {columns} from event, n where agent = 'editor'"
            db.execute(f"insert into event (id, {columns}) {numbers} {copied}")
        assert "1000 events waiting" in answers(await agents.say("Go.", to="ada"))[0]


async def test_an_ask_whose_time_is_over_is_answered_with_the_reason(tmp_path: Path) -> None:
    async with team(tmp_path, {"main": asking, "editor": lambda _: Say(TYPO)}) as agents:
        await agents.say("Ask the editor.")
        with apsw.Connection(str(tmp_path / ".knapper" / "state.db")) as db:
            db.execute("insert into paused (agent, why, at) values ('editor', 'at lunch', 0)")
            db.execute("update message set due = at - 1, at = at - 601")
        await agents.work()
        (reply,) = agents.replies("main")
        assert (
            "[from: editor] gave no answer:\n`editor` has not answered within 10 minutes" in reply
        )
        assert "it is paused (at lunch)" in reply


async def test_an_agent_alone_is_shown_nothing_of_others(tmp_path: Path) -> None:
    async with team(tmp_path, {}) as agents:
        agents.model._left[:] = [Say("Hello.")]
        await agents.say("Hi.")
        (seen,) = agents.model.requests
        assert not {"ask_agent", "list_agents", "hand_off"} & {*seen.functions}
        assert not [name for name in seen.functions if "helper" in name]
        assert [text in seen.text for text in ("You are the agent", "helper")] == [False, False]


async def test_under_a_schema_another_agent_can_be_asked(tmp_path: Path) -> None:
    def main(seen: Seen) -> Step:
        if "answers:" in said_last(seen):
            return Say(json.dumps({"thought": "So.", "reply": "It is `teh`."}))
        assert '"ask_agent"' in json.dumps(seen.body["response_format"])
        call = {
            "name": "ask_agent",
            "arguments": {"agent": "editor", "question": "Which word is wrong?"},
        }
        return Say(json.dumps({"thought": "So.", "call": call}))

    editor = Say(json.dumps({"thought": "So.", "reply": TYPO}))
    async with team(
        tmp_path, {"main": main, "editor": lambda _: editor}, model__mode="constrained"
    ) as agents:
        assert ended(await agents.say("Ask the editor which word is wrong.")).reason == "parked"
        await agents.work()
        assert (agents.replies("editor"), agents.replies("main")) == ([TYPO], ["It is `teh`."])
