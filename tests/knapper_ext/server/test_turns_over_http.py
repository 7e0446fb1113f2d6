"""Messages and events over HTTP: a client receives each once and in order, even after a disconnect."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.api.agent_host import JournalTail, Listening, event_stream, opened_rooms
from agent_core.base import events
from agent_core.client.client import Client, HttpWire
from agent_core.storage import prepare_state_dir
from agent_core.storage.folder import ring
from agent_core.workspace.state_store import opened_state
from sandbox import Sandbox
from tests.kit import Ask, Fail, Repeat, Say, ScriptedModel, Wanted
from tests.kit.desk import VOWELS

from .conftest import Frames, Serve, end_of, ends

MESSAGES = "/api/v1/agents/main/messages"


async def test_a_repeat_of_a_key_is_told_where_its_events_begin_and_another_text_is_refused(
    served: Serve,
) -> None:
    server = await served([Say("One."), Say("Two.")])
    await server.said("first")
    message = {"text": "second", "key": "k-2"}
    heard = asyncio.create_task(server.frames(ends(1), after=await server.last()))
    first = (await server.client.post(MESSAGES, json=message)).json()
    assert (await server.client.post(MESSAGES, json=message)).json()["event"] == first["event"]
    await heard
    again = await server.client.post(MESSAGES, json=message)
    assert again.json() == first
    shown = (await server.client.get(MESSAGES)).json()["messages"]
    assert [row["kind"] for row in shown] == ["user", "assistant"] * 2
    assert end_of(await server.frames(ends(1), after=again.json()["after"]))["reply"] == "Two."
    other = await server.client.post(MESSAGES, json={**message, "text": "something else"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key")
    assert other.json()["error"]["problems"][0]["event"] == first["event"]
    whole = await server.frames(ends(2))
    numbers = [number for number, _ in whole if number is not None]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == len(whole)
    again_from = await server.frames(ends(2), last=numbers[0])  # the header goes before the address
    assert again_from == whole[1:]


async def test_a_key_of_a_client_is_none_that_the_program_gives(served: Serve) -> None:
    server = await served([Say("One."), Say("Two."), Repeat(Say("Mine."))])
    await server.said("first")
    (first,) = (await server.client.get(MESSAGES)).json()["messages"][:1]
    event = (await server.client.post(MESSAGES, json={"text": "second", "key": "k"})).json()[
        "event"
    ]
    await server.frames(ends(2))
    turn = (await server.client.get(f"{MESSAGES}/{event}")).json()["turn"]
    for key in (f"again:{turn}", f"answers:{turn}", f"again:{first['turn']}"):
        posted = await server.client.post(MESSAGES, json={"text": "mine", "key": key})
        assert posted.status_code == 202
        await server.frames(ends(1), after=posted.json()["after"])
    assert (await server.client.get(f"{MESSAGES}/{event}")).json()["turn"] == turn


async def test_of_two_retries_at_once_one_takes_the_last_turn_back(served: Serve) -> None:
    server = await served([Say("One."), Say("Two."), Say("Again.", pause_s=0.2)])
    for text in ("first", "second"):
        await server.said(text)
    retry = "/api/v1/agents/main/retry"
    both = await asyncio.gather(server.client.post(retry), server.client.post(retry))
    assert sorted(answer.status_code for answer in both) == [202, 409]
    await server.frames(ends(3))
    shown = (await server.client.get(MESSAGES)).json()["messages"]
    assert [row["text"] for row in shown] == ["first", "One.", "second", "Again."]


async def test_a_message_that_waited_is_answered_when_the_server_opens_its_agent(
    served: Serve,
) -> None:
    server = await served([Say("Here I am.")])
    agent = await server.workspace.agent("other")
    await agent.say_during_turn("Are you there?")
    await agent.aclose()
    await server.client.get("/api/v1/agents/other/memory")
    frames = await server.frames(ends(1), agent="other")
    assert end_of(frames)["reply"] == "Here I am."


async def test_whoever_comes_while_a_call_is_written_reads_it_from_its_beginning(
    served: Serve,
) -> None:
    server = await served(
        [Ask(Wanted("count_vowels", {"text": "queueing " * 20}), pause_s=0.05), Say("Many.")]
    )
    await server.save("letters.py", VOWELS)
    early = asyncio.create_task(server.frames(lambda frames: written(frames).count("queueing") > 3))
    await server.client.post(MESSAGES, json={"text": "How many?"})
    await early  # it leaves, and the turn goes on
    late = await server.frames(
        lambda frames: any(data and data["type"] == "call" for _, data in frames)
    )
    assert written(late) == next(
        data["arguments"] for _, data in late if data and data["type"] == "call"
    )
    frames = await server.frames(ends(1))
    assert end_of(frames)["reply"] == "Many."
    kept = [data["type"] for number, data in frames if data and number]
    # One who comes after the end reads the reply from the journal, too, and did not get it in pieces.
    told = (
        ["text"]
        if not any(data["type"] == "text" for number, data in frames if data and not number)
        else []
    )
    # Whether the agent hears of the saved file depends on when it was opened.
    kept = [kind for kind in kept if kind != "functions_changed"]
    assert kept == ["turn_started", "usage", "call", "answer", "usage", *told, "turn_ended"]


def written(frames: Frames) -> str:
    return "".join(data["arguments"] for _, data in frames if data and data["type"] == "writing")


async def test_whoever_comes_after_a_failed_turn_is_told_why(served: Serve) -> None:
    server = await served([Fail(400, "no such model")])
    await server.said("Hello")
    late = await server.frames(ends(1))
    *_, warned, ended = [data for _, data in late if data]
    assert [warned["type"], ended["type"]] == ["warning", "turn_ended"]
    assert "no such model" in warned["message"]


async def test_a_conversation_of_an_agent_is_its_own_and_of_the_same_token(served: Serve) -> None:
    server = await served([Say("One."), Say("Two.")])
    token = await server.as_("limited", "chat", "read", agents=("main",))
    begun = [
        (await token.post("/api/v1/agents/main/conversations", json={"name": "trip"})).json()
        for _ in range(2)
    ]
    assert begun[0] == begun[1]
    assert (begun[0]["agent"], begun[0]["name"]) == ("main", "trip")
    await server.said("Hello", conversation=begun[0]["id"])
    trip = f"{MESSAGES}?conversation=trip"
    assert len((await token.get(trip)).json()["messages"]) == 2
    assert (await token.get(MESSAGES)).json()["messages"] == []
    other = await server.as_("other", "chat", "read", agents=("bob",))
    assert (await other.get(trip)).status_code == 404
    wrong = await token.post("/api/v1/agents/main/conversations", json={"name": "x" * 61})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "usage")
    await server.said("Bye")


async def test_a_slow_listener_gets_all_of_a_text_in_fewer_pieces() -> None:
    listening = Listening()
    pieces = [events.Text(turn="t", step=1, text=f"{number} ") for number in range(5_000)]
    for piece in pieces:
        listening.hear(piece)
    listening.end()
    heard = []
    while (event := await listening.next(60)) is not None:
        assert isinstance(event, events.Text)
        heard.append(event.text)
    assert "".join(heard) == "".join(piece.text for piece in pieces)
    assert len(heard) < 200
    assert not listening.is_behind


async def test_a_group_and_its_members_are_talked_to_in_turn(served: Serve, tmp_path: Path) -> None:
    for folder in ("groups", "agents"):
        (tmp_path / folder).mkdir()
    (tmp_path / "agents" / "bob.toml").write_text('purpose = "Counts."\n')
    rules = 'members = ["main", "bob"]\nrules = []\nchoose = "round_robin"\nstop = { turns = 2 }\n'
    (tmp_path / "groups" / "crew.toml").write_text(f'purpose = "Talk."\n{rules}')
    server = await served(
        [Say(text) for text in ("Bob.", "First.", "Second.", "Bob again.", "Third.", "Fourth.")]
    )
    for agent, reply in (
        ("bob", "Bob."),
        ("crew", "Second."),
        ("bob", "Bob again."),
        ("crew", "Fourth."),
    ):
        assert end_of(await server.said("Hello", agent))["reply"] == reply


async def test_many_who_listen_each_hear_all_in_order(served: Serve) -> None:
    server = await served(
        [Ask(Wanted("count_vowels", {"text": "aha"})), Say("Two."), Say("Again.")]
    )
    await server.save("letters.py", VOWELS)
    many = [asyncio.create_task(server.frames(ends(2))) for _ in range(12)]
    await server.said("How many?")
    late = asyncio.create_task(server.frames(ends(2)))
    await server.said("And now?")
    each = [
        [number for number, data in frames if number is not None]
        for frames in [*await asyncio.gather(*many)]
    ]
    assert all(numbers == each[0] == sorted(numbers) for numbers in each)
    assert [number for number, _ in await late if number is not None] == each[0]


async def test_a_listener_who_leaves_while_it_reads_takes_no_news_from_the_others(
    served: Serve,
) -> None:
    server = await served([Say("Hello.")])
    await server.said("Hi.")
    async with opened_state(server.workspace.root) as state:
        tail = JournalTail(state.store, "main", 0)
        leaving = asyncio.create_task(tail.after(0, must_look=False))
        await asyncio.sleep(0)
        leaving.cancel()
        heard = await tail.after(0, must_look=False)
    assert [numbered.event.type for numbered in heard or [] if numbered.event][-1] == "turn_ended"


async def test_turns_go_on_after_the_state_file_was_taken_away(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    flags = {"model.base_url": scripted([Say("Hello again.")]).base_url, "model.name": "scripted"}
    async with (
        Workspace.open(tmp_path, flags=flags, sandbox=one_sandbox) as workspace,
        opened_rooms(workspace, 1) as rooms,
    ):
        with rooms.host.listen("main") as listening:
            await rooms.host.agent("main")
            (tmp_path / ".knapper" / "state.db").unlink()
            ring(prepare_state_dir(tmp_path))  # only the runner uses it now
            warned = await listening.next(30)
            assert isinstance(warned, events.Warned)
            assert "was taken away" in warned.message
            await rooms.host.post("main", "Hello?")
            while not isinstance(event := await listening.next(30), events.TurnEnded):
                pass
            assert event.reply == "Hello again."


async def test_who_hears_late_hears_a_text_before_the_calls_that_follow_it(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    call = Ask(Wanted("list_functions"), text="I look first.")
    flags = {
        "model.base_url": scripted([call, call, Say("Nothing.")]).base_url,
        "model.name": "scripted",
    }
    async with (
        Workspace.open(tmp_path, flags=flags, sandbox=one_sandbox) as workspace,
        opened_rooms(workspace, 1) as rooms,
    ):
        stream = event_stream(rooms.host, rooms.state.store, "main", 0)
        with rooms.host.listen("main") as listening:
            first = asyncio.create_task(anext(stream))
            await rooms.host.post("main", "Hello?")
            heard = [await first]
            while not isinstance(await listening.next(30), events.TurnEnded):
                pass
        while b'"turn_ended"' not in heard[-1]:
            heard.append(await anext(stream))
        await stream.aclose()
    told = [
        json.loads(line[6:])
        for frame in heard
        for line in frame.decode().split("\n")
        if line.startswith("data: ")
    ]
    kinds = [event["type"] for event in told if event["type"] in ("text", "call", "answer")]
    kinds = [
        kind for at, kind in enumerate(kinds) if kinds[at - 1 : at] != [kind]
    ]  # chunks of a text count as one
    assert kinds == ["text", "call", "answer", "text", "call", "answer", "text"]


async def test_a_conversation_that_is_read_while_turns_end_is_as_of_one_number(
    served: Serve,
) -> None:
    server = await served([Say("")] * 6)
    over = asyncio.Event()

    async def fail_often() -> None:
        for number in range(3):
            await server.client.post(MESSAGES, json={"text": f"hello {number}"})
            await server.frames(ends(number + 1))
        over.set()

    async def read_often() -> None:
        while not over.is_set():
            read = (await server.client.get(f"{MESSAGES}?last=300")).json()
            rows = [*read["messages"], *read["ends"]]
            assert all(row["seq"] <= read["after"] for row in rows), (
                "what is above comes as an event, too"
            )

    async with asyncio.TaskGroup() as tasks:
        for work in (fail_often, *[read_often] * 4):
            tasks.create_task(work())


@pytest.mark.parametrize(
    ("window", "alone", "turns"),
    [
        pytest.param("token", None, 2, id="a-token-begins-its-own"),
        pytest.param("token", False, 1, id="unless-it-joins"),
        pytest.param("page", None, 1, id="the-page-joins"),
        pytest.param("page", True, 2, id="unless-it-is-alone"),
    ],
)
async def test_a_message_during_a_turn(
    served: Serve, window: str, alone: bool | None, turns: int
) -> None:
    first = [Ask(Wanted("count_vowels", {"text": "a"}), pause_s=0.1), Say("One.")]
    server = await served([*first, *([Say("Two.")] if turns > 1 else [])])
    await server.save("letters.py", VOWELS)
    client = server.client if window == "token" else await server.logged_in()
    began = asyncio.create_task(server.frames(lambda frames: bool(written(frames))))
    await server.client.post(MESSAGES, json={"text": "first"})
    await began
    said = {"text": "second"} if alone is None else {"text": "second", "alone": alone}
    posted = await client.post(MESSAGES, json=said, headers={"Origin": server.url})
    assert posted.status_code == 202
    kinds = [data["type"] for _, data in await server.frames(ends(turns)) if data]
    assert kinds.count("turn_started") == turns
    shown = (await server.client.get(MESSAGES)).json()["messages"]
    assert [row["text"] for row in shown if row["kind"] == "user"] == ["first", "second"]


async def test_the_output_of_a_client_is_its_own_turn_alone(served: Serve) -> None:
    server = await served([Say("One. " * 20, pause_s=0.02), Say("Two.")])
    async with Client(HttpWire(server.url, server.key)) as client:
        await server.client.post(MESSAGES, json={"text": "first"})
        await server.frames(
            lambda frames: any(data and data["type"] == "text" for _, data in frames)
        )
        heard = [event async for event in client.turn("second")]
    assert [event.message for event in heard if isinstance(event, events.TurnStarted)] == ["second"]
    assert [event.reply for event in heard if isinstance(event, events.TurnEnded)] == ["Two."]
    assert "".join(event.text for event in heard if isinstance(event, events.Text)) == "Two."
    assert len({event.turn for event in heard if event.turn}) == 1
