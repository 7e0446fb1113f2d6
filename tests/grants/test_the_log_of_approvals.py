"""The log of approvals: who allowed what and when, on which text, what used it, and how each is taken back."""

import asyncio
import json
from functools import partial
from pathlib import Path
from time import time
from typing import Any

import pytest

from agent_core import Decision, Workspace
from tests.interfaces.asking import CALL, DONE, made, service
from tests.kit import Ask, Expect, Say, Script, contains, scripted
from tests.kit.program import knapper
from tests.kit.waiting import until

pytestmark = pytest.mark.usefixtures("lent")


async def test_each_row_of_the_log_can_be_taken_back(tmp_path: Path, home: Path) -> None:
    environment = {"XDG_DATA_HOME": str(home)}

    def log(*words: str) -> list[dict[str, Any]]:
        done = knapper(
            "functions", "approvals", *words, "--json", cwd=tmp_path, environment=environment
        )
        assert done.returncode == 0, done.stderr
        return [*json.loads(done.stdout)["approvals"]]

    def do(command: str) -> int:
        return knapper(*command.split()[1:], cwd=tmp_path, environment=environment).returncode

    with service() as place:
        script: Script = [made(place), Ask(CALL), Expect(DONE, contains("rain in Oslo"))]
        with scripted(script) as model:
            flags = {"model.base_url": model.base_url, "model.name": "scripted"}
            async with Workspace.open(
                tmp_path, flags=flags, approver=Workspace.answered_by_id
            ) as workspace:
                agent = await workspace.agent()

                async def run() -> None:
                    async for _ in agent.turn("what is the weather?"):
                        pass

                turn = asyncio.create_task(run())
                [question] = await until(workspace.questions)
                [row] = await asyncio.to_thread(log)
                assert (row["kind"], row["question"], row["agent"]) == ("open", question.id, "main")
                assert row["undo"] == f"knapper functions answer {question.id} no"
                assert do(f"knapper functions answer {question.id} yes") == 2
                await workspace.answer(question.id, Decision("yes"))
                await turn
        kept, answered = sorted(log(), key=lambda row: row["kind"], reverse=True)
    assert (kept["kind"], kept["function"], kept["answer"]) == ("kept", "weather", "yes")
    assert kept["says"] == [f"fetch from {place}"] or place in str(kept["says"])
    assert (kept["stands"], kept["calls"]) == (True, 1)
    assert kept["modules"][0].startswith("words ")
    assert kept["text"] == answered["text"] != ""
    assert (answered["kind"], answered["by"], answered["turn"]) == (
        "answered",
        "human",
        question.turn,
    )
    assert kept["undo"] == f"knapper functions revoke weather --network {place}"
    assert do(kept["undo"]) == 0
    assert [row["kind"] for row in log()] == ["answered"]
    assert log("nothing") == []


async def test_an_open_question_is_answered_with_no_by_its_row(tmp_path: Path, home: Path) -> None:
    run_with = partial(knapper, cwd=tmp_path, environment={"XDG_DATA_HOME": str(home)})
    with service() as place, scripted([made(place), DONE, DONE]) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(
            tmp_path, flags=flags, approver=Workspace.answered_by_id
        ) as workspace:
            agent = await workspace.agent()

            async def run() -> None:
                async for _ in agent.turn("what is the weather?"):
                    pass

            turn = asyncio.create_task(run())
            [question] = await until(workspace.questions)
            words = ("functions", "answer", question.id, "no")
            done = await asyncio.to_thread(run_with, *words)
            assert done.returncode == 0, done.stderr
            await turn
            again = await asyncio.to_thread(run_with, *words)
            assert again.returncode == 2
            [row] = await workspace.functions.approvals_log.rows()
            assert (row.kind, row.answer) == ("answered", "no")


async def test_an_agents_file_says_nothing_of_what_a_person_here_allowed(
    tmp_path: Path, home: Path
) -> None:
    said = {
        "turn": "t",
        "step": 0,
        "question": "q",
        "function": "count_text",
        "says": ["fetch from bank.example", "use the secret BANK_KEY"],
        "answer": "yes",
        "word": "yes, for good",
        "by": "human",
        "command": "",
    }
    asked = {key: said[key] for key in ("turn", "step", "question", "function", "says")}
    used = {"model": "m", "prompt_tokens": 10**9, "completion_tokens": 1}
    with scripted([Say("Hello.")]) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(tmp_path, flags=flags) as workspace:
            await (await workspace.agent()).ask("Hi.")
            document = json.loads(await workspace.export_agent())
            document["turns"][-1]["entries"] += [
                {"at": time(), "kind": kind, "payload": payload}
                for kind, payload in (
                    ("grant_asked", asked),
                    ("grant_answered", said),
                    ("usage", used),
                )
            ]
            await workspace.import_agent(json.dumps(document), "gift")

    def run(*words: str) -> Any:  # Any: JSON
        done = knapper(*words, "--json", cwd=tmp_path, environment={"XDG_DATA_HOME": str(home)})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert run("functions", "approvals") == {"approvals": []}
    agents = {row["name"]: row for row in run("agents", "tree")["agents"]}
    assert agents["main"]["spent"]["tokens"] > 0
    assert "tokens" not in agents["gift"]["spent"]
