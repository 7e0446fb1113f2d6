"""The client: the same methods and events in this process, without a socket, and over a real one."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest

from agent_core import Client, KnapperError, TurnError, Workspace, connect, events
from agent_core.api.identity import SCOPES, TokenBook
from agent_core.base.errors import UsageError
from knapper_ext.server.app import ServeOptions, opened_doors
from sandbox import Sandbox
from tests.kit import Ask, Say, Script, ScriptedModel, Wanted
from tests.kit.asgi import StreamingTransport
from tests.kit.desk import VOWELS

from .conftest import server
from .test_the_api import READS

Connect: TypeAlias = Callable[[Script], Awaitable[Client]]
ADDRESS = "http://127.0.0.1:8700"
SLOW = Say("It takes so very long. " * 200, pause_s=0.05)
LONGER = Say("It takes longer. " * 200, pause_s=0.05)


@pytest.fixture(params=["in process", pytest.param("socket", marks=pytest.mark.slow)])
async def connected(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    scripted: Callable[..., ScriptedModel],
    one_sandbox: Sandbox,
) -> AsyncIterator[Connect]:
    """Connect a client to a workspace with the scripted model."""
    async with AsyncExitStack() as stack:
        (tmp_path / "functions").mkdir()

        async def start(script: Script) -> Client:
            model = scripted(script)
            flags: dict[str, Any] = {
                "model.base_url": model.base_url,
                "model.name": "scripted",
            }  # Any: settings
            flags["model.context_tokens"] = 8_192
            if request.param == "in process":
                return await stack.enter_async_context(
                    await connect(tmp_path, flags=flags, sandbox=one_sandbox)
                )
            if request.param == "socket":
                running = await stack.enter_async_context(server(tmp_path, model, one_sandbox))
                token = await running.token("client", *SCOPES)
                return await stack.enter_async_context(await connect(running.url, token=token))
            workspace = await stack.enter_async_context(
                Workspace.open(tmp_path, flags=flags, sandbox=one_sandbox)
            )
            doors = await stack.enter_async_context(opened_doors(workspace, ServeOptions(), 8700))
            token = (await TokenBook(workspace.store, time.time).add("client", SCOPES, ())).token
            transport = StreamingTransport(doors.app)
            return await stack.enter_async_context(
                await connect(ADDRESS, token=token, transport=transport)
            )

        yield start


class TestClient:
    """The behavior of a client, whatever its transport."""

    @pytest.mark.parametrize(
        "connected",
        ["in process", "socket", pytest.param("asgi", marks=pytest.mark.slow)],
        indirect=True,
    )
    async def test_a_turn_is_heard_as_the_events_of_a_turn(self, connected: Connect) -> None:
        client = await connected(
            [
                Ask(Wanted("count_vowels", {"text": "queueing"})),
                *map(Say, ("There are five.", "Bye.", "One.", "Two.")),
            ]
        )
        assert (await client.functions.create("count_vowels", VOWELS, "letters"))["admitted"]
        heard = [event async for event in client.turn("How many?")]
        shown = (events.TurnStarted, events.CallStarted, events.CallAnswered, events.TurnEnded)
        steps = [event for event in heard if isinstance(event, shown)]
        assert [type(event) for event in steps] == [*shown]
        answer, ended = steps[2:]
        assert isinstance(answer, events.CallAnswered)
        assert (answer.outcome, answer.detail["value"]) == ("returned", 5)
        assert isinstance(ended, events.TurnEnded)
        assert (ended.reason, ended.reply) == ("replied", "There are five.")
        assert (
            "".join(event.text for event in heard if isinstance(event, events.Text))
            == "There are five."
        )
        assert await client.ask("And now?") == "Bye."
        assert [row["text"] for row in await client.messages(last=2)] == ["And now?", "Bye."]
        assert {*await asyncio.gather(client.ask("And one?"), client.ask("And two?"))} == {
            "One.",
            "Two.",
        }

    async def test_events_go_on_after_a_number_and_a_turn_is_ended_and_tried_again(
        self, connected: Connect
    ) -> None:
        client = await connected(
            [Say("One."), Say("Two."), SLOW, Say("Again."), Say("Anew."), LONGER]
        )
        assert [await client.ask("first"), await client.ask("second")] == ["One.", "Two."]
        whole = await _until_ends(client, 2)
        for cut in range(1, len(whole)):
            assert (
                await _until_ends(client, 2, whole[cut - 1].seq or 0, before=whole[:cut])
                == whole[cut:]
            )
        reasons: list[str] = []
        async with aclosing(client.turn("Wait")) as turn:
            async for event in turn:
                if isinstance(event, events.Text) and not reasons:
                    assert await client.interrupt()
                if isinstance(event, events.TurnEnded):
                    reasons.append(event.reason)
        assert reasons == ["interrupted"]
        retried = await client.retry()
        assert retried["text"] == "Wait"
        ends = [
            event.reply
            async for event in client.follow(retried)
            if isinstance(event, events.TurnEnded)
        ]
        assert ends == ["Again."]
        assert [await client.pop() for _ in range(4)] == ["Wait", "second", "first", None]
        assert await client.ask("Hello") == "Anew."
        assert await client.new() == 1
        assert not await client.interrupt()
        asking = asyncio.create_task(client.ask("Wait"))
        async with aclosing(client.events()) as heard:
            async for numbered in heard:
                if isinstance(numbered.event, events.Text) and "longer" in numbered.event.text:
                    break
        assert await client.interrupt()
        with pytest.raises(TurnError):
            await asking

    async def test_a_function_goes_through_all_its_verbs(self, connected: Connect) -> None:
        client = await connected([])
        functions = client.functions
        assert (await functions.check(VOWELS))["admitted"]
        assert not (await functions.create("count_vowels", "def count_vowels(x): return x +"))[
            "admitted"
        ]
        assert (await functions.create("count_vowels", VOWELS, "letters"))["admitted"]
        assert not (await functions.create("count_vowels", VOWELS))["admitted"]
        called = await functions.call("count_vowels", {"text": "queueing"})
        assert (called["outcome"], called["value"]) == ("returned", 5)
        (recorded,) = await client.calls.list("count_vowels")
        assert (await client.calls.show(recorded["call"]))["function"] == "count_vowels"
        assert (await client.calls.replay(recorded["call"]))["same"]
        assert len((await functions.test("count_vowels"))["examples"]) == 2
        traced = await functions.trace("count_vowels", {"text": "a"})
        outcome = traced["outcome"]
        assert (outcome["outcome"], outcome["value"], traced["lines"] != []) == (
            "returned",
            1,
            True,
        )
        assert [row["name"] for row in (await functions.list("vowel"))["functions"]] == [
            "count_vowels"
        ]
        assert (await functions.search("count vowels"))["results"][0]["name"] == "count_vowels"
        assert (await functions.edit("count_vowels", "Count the vowels", "Count all vowels"))[
            "admitted"
        ]
        difference = (await functions.diff("count_vowels", "1"))["diff"].splitlines()
        sentences = [
            f'{sign}    """Count {word} vowels in a text.'
            for sign, word in (("-", "the"), ("+", "all"))
        ]
        assert [sentence in difference for sentence in sentences] == [True, True]
        assert "Count all vowels" in (await functions.show("count_vowels"))["source"]
        versions = (await functions.history("count_vowels"))["versions"]
        assert [(row["number"], row["current"]) for row in versions] == [(1, False), (2, True)]
        assert (await functions.rollback("count_vowels"))["admitted"]
        assert "Count the vowels" in (await functions.show("count_vowels"))["source"]
        assert (await functions.add_example("count_vowels", "count_vowels('b')", "0"))["admitted"]
        assert (await functions.bad("count_vowels", "y counts"))["standing"] == "draft"
        assert (await functions.good("count_vowels"))["thumb"] == "good"
        assert not (await functions.confirm("count_vowels", ["1"]))["admitted"]
        assert (await functions.delete("count_vowels"))["deleted"] == "count_vowels"
        with pytest.raises(KnapperError, match="nothing"):
            await functions.replace("nothing", VOWELS)
        with pytest.raises(KnapperError, match="count_vowels") as missing:
            await functions.show("count_vowels")
        assert missing.value.code == "not-found"

    async def test_a_question_is_answered_and_its_grant_revoked(
        self, connected: Connect, tmp_path: Path
    ) -> None:
        (tmp_path / "notes.txt").write_text("hello\nworld\n")
        (tmp_path / "functions" / "files.py").write_text(READS)
        client = await connected(
            [Ask(Wanted("first_line", {"path": "notes.txt"})), Say("It says hello.")]
        )
        for answer, code in (("perhaps", "invalid"), ("yes", "not-found")):
            with pytest.raises(KnapperError) as wrong:
                await client.answer("none", answer)
            assert wrong.value.code == code
        async with aclosing(client.turn("What does notes.txt say first?")) as turn:
            async for event in turn:
                if isinstance(event, events.GrantAsked):
                    (question,) = await client.approvals()
                    assert question["id"] == event.question
                    assert (await client.answer(event.question, "yes"))["answer"] == "yes"
        assert isinstance(event, events.TurnEnded)
        assert event.reply == "It says hello."
        (granted,) = (await client.grants.list("first_line"))["grants"]
        assert granted["name"] == "first_line"
        await client.grants.revoke("first_line")
        assert (await client.grants.list("first_line"))["grants"] == []

    async def test_memory_is_changed_and_agents_are_made_moved_and_deleted(
        self, connected: Connect
    ) -> None:
        client = await connected([Say("Blue.")])
        memory = await client.memory()
        block = await memory.block("human")
        assert (await memory.edit("human", block["version"], "Likes blue."))[
            "value"
        ] == "Likes blue."
        with pytest.raises(KnapperError) as late:
            await memory.edit("human", block["version"], "Likes red.")
        assert late.value.code == "version"
        assert [row["value"] for row in await memory.history("human")] == ["", "Likes blue."]
        await memory.undo("human")
        assert (await memory.block("human"))["value"] == block["value"]
        assert "human" in [row["label"] for row in (await memory.show())["blocks"]]
        await client.ask("Which color is the sky?")
        assert "sky" in str((await memory.search("color of the sky", "recall"))["recall"])
        await client.make_agent("second")
        document = await client.export_agent("second")
        assert [report["agent"] for report in await client.import_agent(document, "third")] == [
            "third"
        ]
        assert {"second", "third"} <= {row["name"] for row in await client.agents()}
        assert (await client.show_agent("third"))["name"] == "third"
        assert await client.delete_agent("second") == {"deleted": "second"}
        with pytest.raises(KnapperError) as missing:
            await client.show_agent("second")
        assert (missing.value.code, missing.value.fix) == (
            "not-found",
            "The list of agents has the names.",
        )
        status = await client.status()
        assert (status["agent"], status["running"], await client.approvals()) == ("main", [], [])


NO_PLACES = (
    "http://127.0.0.1:port",
    "http://127.0.0.1:99999",
    "http://[::1",
    "http://",
    "http://ä..x",
    "http://a:0",
)


async def test_what_is_no_address_no_token_or_another_program_is_told_in_a_sentence() -> None:
    wrong = [(url, "", "no address") for url in NO_PLACES] + [
        (ADDRESS, token, "no token") for token in ("täst", "a\n")
    ]
    for url, token, says in wrong:
        with pytest.raises(UsageError, match=says):
            await connect(url, token=token)
    for answer in (b"{}", b"[1, 2]", b"null", b"<html>"):
        other = httpx2.MockTransport(_answering(answer))
        async with await connect(ADDRESS, transport=other) as client:
            for asking in (
                client.status(),
                client.command(["functions", "list"]),
                client.post("a", "main"),
            ):
                with pytest.raises(KnapperError, match="no Knapper server"):
                    await asking


def _answering(content: bytes) -> Callable[[httpx2.Request], httpx2.Response]:
    return lambda _: httpx2.Response(200, content=content)


async def _until_ends(
    client: Client, turns: int, after: int = 0, before: list[Any] | None = None
) -> list[Any]:
    """Return the events until this many turns have ended, after those already received."""
    heard: list[Any] = []
    ended = sum(isinstance(row.event, events.TurnEnded) for row in before or [])
    async with aclosing(client.events(after=after)) as stream:
        async for numbered in stream:
            heard.append(numbered)
            ended += isinstance(numbered.event, events.TurnEnded)
            if ended == turns:
                break
    return heard
