"""A turn's question is pending in the store: the first answer by its id counts."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from agent_core import Approver, Decision, KnapperError, Question, Workspace
from agent_core.access.grants.approval import PendingQuestion
from agent_core.base.events import Event, GrantAnswered, GrantAsked
from tests.interfaces.asking import CALL, DONE, made, service
from tests.kit import Ask, Expect, Script, contains, scripted
from tests.kit.desk import ended, of
from tests.kit.waiting import until

from .support import READS, human

pytestmark = pytest.mark.usefixtures("lent")


@asynccontextmanager
async def opened(root: Path, script: Script, approver: Approver | None) -> AsyncIterator[Workspace]:
    """A workspace whose model follows a script."""
    with scripted(script) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(root, flags=flags, approver=approver) as workspace:
            yield workspace


async def turn_of(workspace: Workspace, approver: Approver | None = None) -> list[Event]:
    """Return the events of a turn in which the model creates a function that needs a grant."""
    agent = await workspace.agent()
    return [event async for event in agent.turn("what is the weather?", approver=approver)]


async def pending(workspace: Workspace) -> PendingQuestion:
    """Wait for the one pending question and return it."""
    [question] = await until(workspace.questions)
    return question


async def test_another_handle_reads_the_question_and_its_yes_lets_the_turn_go_on(
    tmp_path: Path,
) -> None:
    with service() as place:
        script: Script = [made(place), Ask(CALL), Expect(DONE, contains("rain in Oslo"))]
        async with (
            opened(tmp_path, script, Workspace.answered_by_id) as workspace,
            Workspace.open(tmp_path) as other,
        ):
            turn = asyncio.create_task(turn_of(workspace))
            question = await pending(other)
            assert (question.agent, question.question.function, question.question.why) == (
                "main",
                "weather",
                "asked",
            )
            assert question.question.missing.network == (place,)
            await other.answer(question.id, Decision("yes"))
            events = await turn
            assert await other.questions() == []
    [asked], [answer] = of(GrantAsked, events), of(GrantAnswered, events)
    assert asked.question == answer.question == question.id
    assert (answer.answer, answer.by, asked.turn, asked.asker) == (
        "yes",
        "human",
        question.turn,
        "main",
    )


async def test_the_one_who_is_asked_here_may_be_first_and_then_nobody_else_can_answer(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    async def remembering(question: Question) -> Decision:
        asked.append(question.id)
        return Decision("no", "smaller")

    with service() as place:
        async with opened(tmp_path, [made(place), DONE, DONE], remembering) as workspace:
            [answer] = of(GrantAnswered, await turn_of(workspace))
            assert await workspace.questions() == []
            with pytest.raises(KnapperError, match="is pending"):
                await workspace.answer(asked[0], Decision("yes"))
    assert (answer.answer, answer.word) == ("no", "smaller")


async def test_an_answer_from_elsewhere_ends_the_question_of_the_prompt(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def prompt(_: Question) -> Decision:
        try:
            return await Workspace.answered_by_id(_)
        finally:
            left.set()

    with service() as place:
        async with opened(tmp_path, [made(place), DONE, DONE], prompt) as workspace:
            turn = asyncio.create_task(turn_of(workspace))
            await workspace.answer((await pending(workspace)).id, Decision("no", "not now"))
            [answer] = of(GrantAnswered, await turn)
    assert left.is_set()
    assert (answer.answer, answer.word, answer.by) == ("no", "not now", "human")


async def test_a_question_is_settled_when_its_turn_is_interrupted(tmp_path: Path) -> None:
    with service() as place:
        async with opened(tmp_path, [made(place)], Workspace.answered_by_id) as workspace:
            agent = await workspace.agent()
            async for event in agent.turn("go"):
                if isinstance(event, GrantAsked):
                    await agent.interrupt()
                    question = event.question
            assert await workspace.questions() == []
            with pytest.raises(KnapperError, match="is pending"):
                await workspace.answer(question, Decision("yes"))


DYING = """\
import asyncio, os, sys
from agent_core import Workspace
from agent_core.base.events import GrantAsked

async def main(root, url):
    flags = {"model.base_url": url, "model.name": "scripted"}
    async with Workspace.open(root, flags=flags, approver=Workspace.answered_by_id) as workspace:
        agent = await workspace.agent()
        async for event in agent.turn("go"):
            if isinstance(event, GrantAsked):
                os._exit(9)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_question_of_a_process_that_died_is_settled_with_its_turn(tmp_path: Path) -> None:
    with service() as place, scripted([made(place)]) as model:
        command = [sys.executable, "-c", DYING, str(tmp_path), model.base_url]
        done = await asyncio.to_thread(subprocess.run, command, check=False)
    assert done.returncode == 9
    async with Workspace.open(tmp_path) as workspace:
        assert len(await workspace.questions()) == 1
        agent = await workspace.agent()
        assert "cut off" in agent.restored
        assert await workspace.questions() == []


async def test_an_answer_that_somebody_wrote_into_the_file_is_none(tmp_path: Path) -> None:
    async def writing(question: Question) -> Decision:
        db = apsw.Connection(str(tmp_path / ".knapper" / "state.db"))
        yes = '{"answer": "yes", "word": "", "by": "human"}'
        await asyncio.to_thread(
            db.execute,
            "update question set decision = ?, answer_seal = 'x' where id = ?",
            (yes, question.id),
        )
        db.close()
        await asyncio.sleep(0.5)
        return Decision("no")

    with service() as place:
        async with opened(tmp_path, [made(place), DONE, DONE], writing) as workspace:
            [answer] = of(GrantAnswered, await turn_of(workspace))
    assert (answer.answer, answer.by) == ("no", "human")


async def test_a_turn_asks_its_own_approver_instead_of_the_usual_one(tmp_path: Path) -> None:
    usual, own = human("no"), human("yes")
    with service() as place:
        async with opened(tmp_path, [made(place), Ask(CALL), DONE], usual) as workspace:
            events = await turn_of(workspace, own)
    assert (len(own.asked), usual.asked, ended(events).reason) == (1, [], "replied")


async def test_a_turn_may_have_an_approver_where_the_workspace_has_none(tmp_path: Path) -> None:
    own = human("no")
    with service() as place:
        async with opened(
            tmp_path, [made(place), DONE, DONE, made(place), DONE, DONE], None
        ) as workspace:
            [asked] = of(GrantAnswered, await turn_of(workspace, own))
            [unasked] = of(GrantAnswered, await turn_of(workspace))
    assert (asked.by, unasked.by, len(own.asked)) == ("human", "policy", 1)


async def test_a_question_outside_of_a_turn_is_answered_by_its_id_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").write_text("6")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sums.py").write_text(READS)
    async with opened(tmp_path, [], Workspace.answered_by_id) as workspace:
        call = asyncio.create_task(workspace.functions.call("total", "{}"))
        await workspace.answer((await pending(workspace)).id, Decision("once"))
        assert (await call).outcome == "returned"
        assert await workspace.questions() == []


async def test_a_row_that_somebody_deletes_neither_hangs_nor_ends_a_turn(tmp_path: Path) -> None:
    with service() as place:
        async with opened(
            tmp_path, [made(place), DONE, DONE], Workspace.answered_by_id
        ) as workspace:
            turn = asyncio.create_task(turn_of(workspace))
            await pending(workspace)
            db = apsw.Connection(str(tmp_path / ".knapper" / "state.db"))
            db.set_busy_timeout(5_000)
            db.execute("delete from question")
            db.close()
            [answer] = of(GrantAnswered, await turn)
    assert answer.answer == "no"
