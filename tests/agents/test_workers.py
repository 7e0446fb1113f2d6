"""Workers share the agents at one database: one worker runs each turn, and another continues if it fails."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from agent_core import Workspace, connect
from agent_core.base.clock import Clock
from agent_core.base.errors import AgentBusy
from agent_core.base.events import TurnStarted
from agent_core.storage import SUMMARY, open_store
from tests.agents.team import by_name, describe, of_whom
from tests.agents.workers import Cluster, cluster
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Stall, Step, Wanted, scripted
from tests.kit.postgres import Server, link, name_of
from tests.kit.program import Program, knapper
from tests.kit.waiting import until

WAIT = '''\
def wait(self, seconds: int) -> int:
    """Wait for so many seconds, and give them back.

    Args:
        seconds: How many.
    """
    import time

    time.sleep(seconds)
    return seconds
'''


def slow(seen: Seen) -> Step:
    """Request a long call; once there is any answer, name its kind."""
    text = seen.text
    if "Go on with it" in text:
        return Say("went on")
    if seen.answers:
        return Say("went through")
    return Ask(Wanted("wait", {"seconds": 50}, "wait1"))


def with_wait(root: Path) -> Path:
    """Make the folder a workspace that has the function `wait`."""
    (root / "functions").mkdir()
    (root / "knapper.toml").touch()
    (root / "functions" / "waiting.py").write_text(WAIT)
    return root


def settings(database: str, model: ScriptedModel) -> dict[str, object]:
    """Return the flags of a workspace at the database."""
    flags = {"storage.url": database, "memory.embedding": "none"}
    return {**flags, "model.name": "scripted", "model.base_url": model.base_url}


async def in_a_call(made: Cluster, root: Path, *options: str, first: str = "a0") -> Program:
    """Start two workers; return the one that runs a long call of `a0`, triggered by a message to `first`."""
    with_wait(root)
    for _ in range(2):
        made.start(root, *options)
    await made.at_work(2)
    await made.say(first, "wait")
    worker = await made.who_has("a0")
    await until(lambda: made.store.history("a0", kinds=("call",)), bool)
    return worker


async def seen(requests: list[Seen]) -> list[Seen]:
    return requests


async def interrupt(made: Cluster, root: Path) -> None:
    """End the agent's turn as the user, from a process that does not run it."""
    async with await connect(root, flags=settings(made.database, made.model)) as client:
        assert await client.interrupt("a0")


async def calls(made: Cluster) -> list[str]:
    """Return the outcome of each call of the agent; a call that ran twice would appear twice."""
    entries = await made.store.history("a0", kinds=("call", "result"))
    assert len([entry for entry in entries if entry.kind == "call"]) == 1
    return [entry.payload["outcome"] for entry in entries if entry.kind == "result"]


async def test_two_workers_share_the_turns_of_eight_agents(
    database: str, tmp_path: Path, postgres: Server
) -> None:
    def reply(seen: Seen) -> Step:
        return Say(f"heard {seen.messages[-1]['content']}", pause_s=0.1)

    with scripted([Repeat(reply)]) as model:
        async with cluster(database, model) as made:
            for _ in range(2):
                made.start(tmp_path, "--slots", "2")
            await made.at_work(2)
            for number in range(8):
                await made.say(f"a{number}", f"message {number}")
            for number in range(8):
                await made.replied(f"a{number}", f"heard message {number}")
            for number in range(8):
                await made.say(f"a{number}", f"again {number}")
            for number in range(8):
                await made.replied(f"a{number}", f"heard again {number}")
            assert len(model.requests) == 16
            told = knapper(
                "doctor", cwd=tmp_path, environment={"KNAPPER_STORAGE_URL": database}
            ).stdout
            assert [f"process {worker.pid} on " in told for worker in made.programs] == [True, True]
            owners = {row.id for row in await made.store.workers() if row.slots}
    name = name_of(database)
    rows = postgres.execute("select owner, attempt, state from knapper.turn", name)
    assert {owner for owner, _, _ in rows} == owners
    assert {row[1:] for row in rows} == {(1, "done")}
    assert len(rows) == 16


@pytest.mark.slow
async def test_what_a_killed_worker_did_goes_on_where_no_slot_is_free(
    database: str, tmp_path: Path
) -> None:
    with scripted([Repeat(slow)]) as model:
        async with cluster(database, model) as made:
            worker = await in_a_call(made, tmp_path, "--slots", "1")
            for agent in ("a1", "a2"):
                await made.say(agent, "wait")
            await until(lambda: made.store.history("a1", kinds=("call",)), bool)
            os.kill(worker.pid, signal.SIGKILL)
            await made.replied("a0", "went on")
            assert await made.store.history("a2") == []


async def test_a_turn_whose_worker_is_killed_is_answered_once(
    database: str, tmp_path: Path, postgres: Server
) -> None:
    with scripted([Repeat(lambda _: Say("here"))]) as model:
        async with cluster(database, model) as made:
            for _ in range(2):
                made.start(tmp_path)
            await made.at_work(2)
            with postgres.standing_still(
                database, "before update on knapper.turn", "new.state = 'done'"
            ) as waiting:
                await made.say("a0", "hello")
                [backend] = await until(waiting, bool)
                os.kill((await made.who_has("a0")).pid, signal.SIGKILL)
                postgres.execute(f"select pg_terminate_backend({backend})")
            await until(made.store.due, lambda due: not due)
            assert await made.replies("a0") == ["here"]
            assert await made.store.history("a0", kinds=("notice",)) == []
            assert len(model.requests) == 1


@pytest.mark.slow
async def test_who_asked_hears_that_the_user_ended_the_turn_of_a_killed_worker(
    database: str, tmp_path: Path
) -> None:
    def asks(seen: Seen) -> Step:
        told = [answer for answer in seen.text.splitlines() if "ended by the user" in answer]
        return (
            Say(told[0]) if told else Ask(Wanted("ask_agent", {"agent": "a0", "question": "wait"}))
        )

    describe(tmp_path, "main")
    describe(tmp_path, "a0")
    with scripted([Repeat(by_name({"main": asks, "a0": slow}))]) as model:
        async with cluster(database, model) as made:
            worker = await in_a_call(made, tmp_path, first="main")
            await interrupt(made, tmp_path)
            os.kill(worker.pid, signal.SIGKILL)
            await made.replied("main", "The turn was ended by the user.")
            assert await calls(made) == ["unknown"]
            assert await made.replies("a0") == []
            assert [of_whom(seen) for seen in model.requests].count("a0") == 1, (
                "it is not begun again"
            )


async def test_a_turn_that_was_handed_back_and_removed_is_not_begun_again(
    database: str, tmp_path: Path
) -> None:
    with scripted([]) as model:
        async with Workspace.open(tmp_path, flags=settings(database, model)) as workspace:
            agent = await workspace.agent("a0", answers=True)
            async for event in agent.turn("wait"):
                if isinstance(event, TurnStarted):
                    await agent.interrupt(resumes=True)
            assert [due.line for due in await workspace.store.due()] == ["a0"]
            assert await agent.pop()
            assert await workspace.store.due() == []


@pytest.mark.slow
async def test_a_summary_of_a_conversation_that_was_killed_is_given_up(
    database: str, tmp_path: Path
) -> None:
    with scripted([Repeat(lambda _: Say("A long day. " * 125))], summary=Stall(60)) as model:
        async with cluster(database, model) as made:
            made.start(tmp_path)
            talk = made.talk(tmp_path, f"{'Tell me of the day. ' * 80}\n" * 9 + "/summarize\n")
            await until(partial(seen, model.summaries), bool)
            assert [item.is_takeover for item in await made.store.due()] == [True]
            os.kill(talk.pid, signal.SIGKILL)
            await until(made.store.due, lambda due: not due)
            assert len(model.summaries) == 1
            said = await made.store.history("a0", kinds=("user", SUMMARY))
            assert [entry.kind for entry in said] == ["user"] * 9


@pytest.mark.slow
async def test_a_worker_that_stood_still_ends_with_75_when_its_agent_was_taken(
    database: str, tmp_path: Path
) -> None:
    with scripted([Repeat(slow)]) as model:
        async with cluster(database, model) as made:
            worker = await in_a_call(made, tmp_path)
            os.kill(worker.pid, signal.SIGSTOP)
            await made.replied("a0", "went on")
            os.kill(worker.pid, signal.SIGCONT)
            assert worker.wait(60) == os.EX_TEMPFAIL
            assert await calls(made) == ["unknown"]
            assert "has taken over an agent" in made.words()


@pytest.mark.slow
async def test_a_worker_that_the_network_cuts_off_ends_with_75(
    database: str, tmp_path: Path, postgres: Server
) -> None:
    with_wait(tmp_path)
    with scripted([Repeat(slow)]) as model:
        async with link(postgres, database) as (way, address), cluster(database, model) as made:
            worker = made.start(tmp_path, environment={"KNAPPER_STORAGE_URL": address})
            await made.at_work(1)
            await made.say("a0", "wait")
            await until(lambda: made.store.history("a0", kinds=("call",)), bool)
            made.start(tmp_path)
            way.cut()
            await made.replied("a0", "went on")
            assert worker.poll() is None
            way.mend()
            assert await asyncio.to_thread(worker.wait, 60) == os.EX_TEMPFAIL
            assert await calls(made) == ["unknown"]
            assert "has taken over an agent" in made.words()


@pytest.mark.slow
async def test_a_worker_without_its_database_ends_with_75(
    database: str, tmp_path: Path, postgres: Server
) -> None:
    with scripted([]) as model:
        async with cluster(database, model) as made:
            worker = made.start(tmp_path)
            await made.at_work(1)
            name = name_of(database)
            postgres.execute(f"alter database {name} allow_connections false")
            postgres.execute(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
            )
            try:
                assert worker.wait(60) == os.EX_TEMPFAIL
            finally:
                postgres.execute(f"alter database {name} allow_connections true")
            assert "is not currently accepting connections" in made.words()


@pytest.mark.slow
async def test_a_server_whose_database_fails_says_so_and_goes_on_when_it_is_well_again(
    database: str, tmp_path: Path, postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def logged() -> str:
        return caplog.text

    name = name_of(database)
    with scripted([Repeat(lambda _: Say("here"))]) as model:
        async with await connect(tmp_path, flags=settings(database, model)) as client:
            assert await client.ask("hello", "main") == "here"
            postgres.execute(f"alter database {name} allow_connections false")
            postgres.execute(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
            )
            try:
                await until(logged, lambda text: "Cannot start a turn; trying again" in text)
            finally:
                postgres.execute(f"alter database {name} allow_connections true")
            assert "is not currently accepting connections" in caplog.text
            async with asyncio.timeout(60):
                assert await client.ask("are you there?", "main") == "here"


async def test_a_worker_leaves_an_agent_to_who_has_it_and_answers_every_client(
    database: str, tmp_path: Path
) -> None:
    def play(seen: Seen) -> Step:
        return Say(" ".join(str(one["content"]) for one in seen.messages if one["role"] == "user"))

    with scripted([Repeat(play)]) as model:
        async with cluster(database, model) as made:
            made.start(tmp_path)
            await made.at_work(1)
            await made.say("a0", "one")
            await made.replied("a0", "one")
            await made.say("a0", "two")
            await made.replied("a0", "one two")
            async with Workspace.open(tmp_path, flags=settings(database, model)) as workspace:
                agent = await workspace.agent("a0")
                assert await agent.ask("three") == "one two three"
                await agent.pop()
                await agent.aclose()
            await made.say("a0", "four")
            await made.replied("a0", "one two four")
            async with open_store(database, clock=Clock()) as other, other.hold(tmp_path, "a1"):
                await made.say("a1", "hello")
                await made.say("a2", "hello, too")
                await made.replied("a2", "hello, too")
                with pytest.raises(AgentBusy, match=r"runs in process \d+ on .* \(since"):
                    async with made.store.hold(tmp_path, "a1"):
                        pass
                assert await made.replies("a1") == []
            await made.replied("a1", "hello")
            async with await connect(tmp_path, flags=settings(database, model)) as client:
                for _ in range(2):
                    replies = await asyncio.gather(
                        *(client.ask(f"message {number}", "main") for number in range(3))
                    )
                    assert [
                        f"message {number}" in reply for number, reply in enumerate(replies)
                    ] == [True] * 3


async def test_a_turn_that_a_worker_runs_is_ended_from_another_process(
    database: str, tmp_path: Path
) -> None:
    def play(seen: Seen) -> Step:
        return Ask(Wanted("wait", {"seconds": 1 + len(seen.messages) % 3}))

    with_wait(tmp_path)
    with scripted([Repeat(play)]) as model:
        async with cluster(database, model) as made:
            made.start(tmp_path)
            await made.say("a0", "go")
            await made.who_has("a0")
            await until(lambda: made.store.history("a0", kinds=("call",)), bool)
            await interrupt(made, tmp_path)
            await until(made.store.due, lambda due: not due)
            notices = await made.store.history("a0", kinds=("notice",))
            assert [entry.payload["text"] for entry in notices] == ["The user ended the turn here."]


@pytest.mark.parametrize(
    ("options", "given"),
    [
        pytest.param(("--message", "and again"), "", id="message", marks=pytest.mark.slow),
        pytest.param(("--once", "--message", "and again"), "", id="once", marks=pytest.mark.slow),
        pytest.param((), "and again\nand more\n", id="lines"),
    ],
)
def test_a_conversation_whose_turn_was_taken_over_says_so_and_goes_on_if_nobody_does(
    database: str, tmp_path: Path, postgres: Server, options: tuple[str, ...], given: str
) -> None:
    def taken(_: Seen) -> Step:
        postgres.execute(
            "update knapper.turn set attempt = attempt + 1 where state = 'open'", name_of(database)
        )
        return Say("hello")

    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    environment = {"KNAPPER_STORAGE_URL": database, "KNAPPER_MEMORY_EMBEDDING": "none"}
    with scripted([Say("Good day."), taken, Repeat(Say("Here again."))]) as model:
        options = ("--base-url", model.base_url, "--model", "scripted", *options)
        knapper("run", *options[:4], "--message", "hello", cwd=tmp_path, environment=environment)
        done = knapper("run", *options, cwd=tmp_path, given=given, environment=environment)
    assert "Another process took over " in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "Here again." in done.stdout
    assert done.returncode == 0
    told = knapper("log", cwd=tmp_path, environment=environment).stdout
    assert [text in told for text in ("hello", "Good day.")] == [True, True]
    assert ("and again" in told) == ("--once" not in options)


def test_a_worker_needs_a_database(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    done = knapper("worker", cwd=tmp_path)
    assert done.returncode == 2
    assert "the state is in a file" in done.stderr
