"""A program waits for a person, and its process is killed: the answer may come later, and to another process."""

import asyncio
import json
import os
import signal
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from agent_core import Decision, Question
from agent_core.access.grants.approval import QuestionChanged
from agent_core.runtime.agent import Origin
from agent_core.runtime.session import GO_ON
from agent_core.workspace.workspace import Workspace
from tests.agents.workers import cluster
from tests.interfaces.support import flags
from tests.kit import Ask, Repeat, Say, Script, ScriptedModel, Seen, Step, Wanted, scripted
from tests.kit.crash import Worker
from tests.kit.program import knapper
from tests.kit.waiting import until, until_it_is

from .support import lay_out, lines

BEFORE = "note('a')\nkey_of('x')"
IN_THE_MIDDLE = "one = note('a')\nkept = [keep(f'out/{name}.txt', name) for name in ('x', 'y')]\n(one, kept, note('b'))"


def take_turn(argument: str, reports: Connection) -> None:
    """Take one turn in a subprocess whose user approves everything, but never answers what the argument names."""
    root, base_url, message, silent = json.loads(argument)
    asyncio.run(_take_turn(root, base_url, message, silent, reports))


async def _take_turn(
    root: str, base_url: str, message: str, silent: str, reports: Connection
) -> None:
    async def person(question: Question) -> Decision:
        reports.send(f"asked {question.moment} {' '.join(question.missing.sentences())}")
        if question.moment == silent:
            await asyncio.Event().wait()
        return Decision("yes")

    flags = {"model.base_url": base_url, "model.name": "scripted", "model.stream": False}
    async with Workspace.open(Path(root), flags=flags) as workspace:
        # A turn that is cut off in a prompt waits for its user; others begin again by themselves.
        agent = await workspace.agent(origin=Origin("prompt"))
        async for event in agent.turn(message, approver=person):
            reports.send(json.dumps(event.to_json()))


def turn(root: Path, model: ScriptedModel, message: str, silent: str = "") -> Worker:
    return Worker(take_turn, json.dumps([str(root), model.base_url, message, silent]))


def script(code: str) -> Script:
    return [Ask(Wanted("run_program", {"code": code})), Repeat(Say("Done."))]


def asked(reports: list[str]) -> list[str]:
    return [row.split()[1] for row in reports if row.startswith("asked")]


def answer_of(reports: list[str]) -> str:
    rows = [json.loads(row) for row in reports if row.startswith("{")]
    return next(str(row["text"]) for row in rows if row["type"] == "answer")


def killed_while_it_asks(root: Path, model: ScriptedModel, moment: str) -> None:
    """Kill a turn's process after it has asked a question of this kind."""
    worker = turn(root, model, "Go.", moment)
    while not worker.next_report().startswith(f"asked {moment}"):
        pass
    worker.kill()
    worker.reports()


async def answered(root: Path, decision: Decision) -> Question:
    """Return the question that the killed process left, answered by its id."""
    async with Workspace.open(root) as workspace:
        (row,) = await workspace.questions()
        await workspace.answer(row.id, decision)
        return row.question


@pytest.mark.parametrize(
    ("code", "moment", "again"),
    [
        pytest.param(BEFORE, "program", [], id="before-it-runs"),
        pytest.param(IN_THE_MIDDLE, "run", ["run"], id="in-the-middle"),
    ],
)
async def test_a_yes_that_comes_when_the_process_is_dead_lets_the_program_go_on(
    tmp_path: Path, code: str, moment: str, again: list[str]
) -> None:
    lay_out(tmp_path)
    with scripted(script(code)) as model:
        await asyncio.to_thread(killed_while_it_asks, tmp_path, model, moment)
        assert (await answered(tmp_path, Decision("yes"))).moment == moment
        reports = await asyncio.to_thread(turn(tmp_path, model, GO_ON).reports)
    assert asked(reports) == again
    written = [lines(tmp_path), lines(tmp_path, "x.txt"), lines(tmp_path, "y.txt")]
    assert written == ([["a"], [], []] if moment == "program" else [["a", "b"], ["x"], ["y"]]), (
        answer_of(reports)
    )


@pytest.mark.parametrize(("code", "moment"), [(BEFORE, "program"), (IN_THE_MIDDLE, "run")])
async def test_a_yes_by_id_counts_where_nobody_can_be_asked_afterwards(
    tmp_path: Path, code: str, moment: str
) -> None:
    lay_out(tmp_path)
    with scripted(script(code)) as model:
        await asyncio.to_thread(killed_while_it_asks, tmp_path, model, moment)
        await answered(tmp_path, Decision("yes"))
        await asyncio.to_thread(partial(knapper, "run", *flags(model), "--resume", cwd=tmp_path))
    assert lines(tmp_path)[:1] == ["a"]
    assert moment == "program" or lines(tmp_path, "x.txt") == ["x"]


async def test_a_yes_to_a_program_is_none_if_a_helper_of_its_functions_changed_before_it_goes_on(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path)
    notes = tmp_path / "functions" / "notes.py"
    notes.write_text(
        f"from functions.signs import _sign\n\n\n{notes.read_text()}".replace(
            'text + "', 'text + _sign() + "'
        )
    )
    signs = tmp_path / "functions" / "signs.py"
    signs.write_text("def _sign() -> str:\n    return '.'\n")
    with scripted(script(BEFORE)) as model:
        await asyncio.to_thread(killed_while_it_asks, tmp_path, model, "program")
        before = await answered(tmp_path, Decision("yes"))
        signs.write_text("def _sign() -> str:\n    return ' and more'\n")
        worker = turn(tmp_path, model, GO_ON, "program")
        while not worker.next_report().startswith("asked program"):
            pass
        async with Workspace.open(tmp_path) as workspace:
            (row,) = await workspace.questions()
            with pytest.raises(QuestionChanged, match=row.id):
                await workspace.answer(before.id, Decision("yes"))
            await workspace.answer(row.id, Decision("yes"))
        await asyncio.to_thread(worker.reports)
    assert lines(tmp_path) == ["a and more"]


async def test_a_no_that_comes_when_the_process_is_dead_is_a_no(tmp_path: Path) -> None:
    lay_out(tmp_path)
    with scripted(script(IN_THE_MIDDLE)) as model:
        await asyncio.to_thread(killed_while_it_asks, tmp_path, model, "run")
        await answered(tmp_path, Decision("no"))
        reports = await asyncio.to_thread(turn(tmp_path, model, GO_ON).reports)
    assert asked(reports) == []
    assert "said no" in answer_of(reports)
    assert lines(tmp_path) == ["a"]
    assert lines(tmp_path, "x.txt") == []


async def test_without_an_answer_the_next_process_asks_the_same(tmp_path: Path) -> None:
    lay_out(tmp_path)
    with scripted(script(BEFORE)) as model:
        await asyncio.to_thread(killed_while_it_asks, tmp_path, model, "program")
        reports = await asyncio.to_thread(turn(tmp_path, model, GO_ON).reports)
    assert (asked(reports), lines(tmp_path)) == (["program"], ["a"])


async def test_a_call_that_was_given_something_and_killed_is_not_made_again(tmp_path: Path) -> None:
    lay_out(tmp_path)
    waits = "import time\nkeep('out/x.txt', 'x')\nprint('there')\nnote('b')"
    text = (tmp_path / "functions" / "keeping.py").read_text("utf-8")
    slow = text.replace(
        "return file.write",
        "file.write(text); file.flush(); import time; time.sleep(60)\n        return file.write",
    )
    (tmp_path / "functions" / "keeping.py").write_text(slow, "utf-8")
    with scripted(script(waits)) as model:
        worker = turn(tmp_path, model, "Go.")
        await until_it_is(lambda: lines(tmp_path, "x.txt"))
        worker.kill()
        await asyncio.to_thread(worker.reports)
        reports = await asyncio.to_thread(turn(tmp_path, model, GO_ON).reports)
    assert "whether it took effect is unknown" in answer_of(reports)
    assert lines(tmp_path, "x.txt") == ["x"]


@pytest.mark.parametrize(
    ("ends", "is_spare_there"),
    [
        pytest.param(
            signal.SIGKILL,
            False,
            id="killed-and-answered-when-nobody-is-at-work",
            marks=pytest.mark.slow,
        ),
        pytest.param(signal.SIGKILL, True, id="killed-next-to-another"),
        pytest.param(signal.SIGTERM, True, id="stopped-next-to-another", marks=pytest.mark.slow),
    ],
)
async def test_another_worker_goes_on_with_the_answer(
    database: str, tmp_path: Path, ends: signal.Signals, *, is_spare_there: bool
) -> None:
    def play(seen: Seen) -> Step:
        return Say("Done.") if seen.answers else Ask(Wanted("run_program", {"code": IN_THE_MIDDLE}))

    lay_out(tmp_path)
    flags = {"storage.url": database, "memory.embedding": "none"}
    with scripted([Repeat(play)]) as model:
        async with (
            cluster(database, model) as made,
            Workspace.open(tmp_path, flags=flags) as workspace,
        ):

            async def answer(moment: str) -> None:
                (row,) = await until(workspace.questions, bool)
                assert row.question.moment == moment
                await workspace.answer(row.id, Decision("yes"))

            made.start(tmp_path, "--grace", "0.2")
            await made.say("a0", "Go.")
            await answer("program")
            await until(workspace.questions, bool)
            if is_spare_there:
                made.start(tmp_path)
                await made.at_work(2)
            worker = await made.who_has("a0")
            os.kill(worker.pid, ends)
            await asyncio.to_thread(worker.wait, 30)
            await answer("run")
            if not is_spare_there:
                made.start(tmp_path)
            await answer("run")
            await made.replied("a0", "Done.")
            results = [
                entry.payload["text"] for entry in await made.store.history("a0", kinds=("result",))
            ]
            assert await workspace.questions() == []
    assert [lines(tmp_path), lines(tmp_path, "x.txt"), lines(tmp_path, "y.txt")] == [
        ["a", "b"],
        ["x"],
        ["y"],
    ], results
    assert "[1, [2, 2], 2]" in results[-1]
