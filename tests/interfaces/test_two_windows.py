"""One agent, many windows: who comes second is answered, once, and its output is its own turn alone."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import agent_core
from agent_core import Workspace
from tests.kit import Repeat, Say, Script, ScriptedModel, Seen, Stall, Step, scripted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, CTRL_D, Terminal, terminal
from tests.kit.waiting import patience_s

from .asking import DONE, home, made, press
from .support import flags, prompt

SLOW_S = 0.5  # between pieces


def echo(seen: Seen) -> Step:
    """Answer with all that the user has said; what contains `slow` takes its time, `stuck` for ever the first time."""
    said = [str(one["content"]) for one in seen.messages if one["role"] == "user"]
    if "stuck" in said[-1] and "Your last turn" not in seen.text and "stopped" not in seen.text:
        return Stall(60, "It begins")
    return Say(
        f"heard {said[-1]} after {len(said) - 1}", pause_s=SLOW_S if "slow" in said[-1] else 0
    )


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted([Repeat(echo)]) as model:
        yield model


def say(model: ScriptedModel, root: Path, text: str) -> str:
    """Return what `run --message` prints."""
    ran = knapper("run", *flags(model), "--message", text, cwd=root)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def pipe(model: ScriptedModel, root: Path, text: str) -> str:
    """Return what a pipe prints."""
    ran = knapper("run", *flags(model), cwd=root, given=f"{text}\n")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def ask(model: ScriptedModel, root: Path, text: str) -> str:
    """Return the reply to a program, in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(agent_core.ask, text, root).result(60)


async def _library(model: ScriptedModel, root: Path, text: str) -> str:
    settings = {"model.base_url": model.base_url, "model.name": "scripted"}
    async with Workspace.open(root, flags=settings) as workspace, await workspace.agent() as agent:
        return await agent.ask(text)


def library(model: ScriptedModel, root: Path, text: str) -> str:
    """Return the reply to a program that opens the agent itself."""
    return asyncio.run(_library(model, root, text))


SECOND: dict[str, Callable[[ScriptedModel, Path, str], str]] = {
    "message": say,
    "pipe": pipe,
    "ask": ask,
    "library": library,
}


@contextmanager
def window(model: ScriptedModel, root: Path) -> Iterator[Terminal]:
    with terminal("run", *flags(model), cwd=root, columns=110) as screen:
        screen.wait_for("/help lists")
        yield screen


@pytest.fixture(autouse=True)
def root(tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "functions").mkdir()
    monkeypatch.setenv("KNAPPER_MODEL_BASE_URL", model.base_url)
    monkeypatch.setenv("KNAPPER_MODEL_NAME", "scripted")
    return tmp_path


@pytest.mark.parametrize("second", SECOND)
def test_beside_an_idle_prompt_a_message_is_answered_and_the_prompt_goes_on_from_it(
    root: Path, model: ScriptedModel, second: str
) -> None:
    with window(model, root) as screen:
        screen.do("one", "heard one after 0")
        assert "heard two after 1" in SECOND[second](model, root, "two")
        screen.do("three", "heard three after 2")


@pytest.mark.parametrize("second", SECOND)
def test_beside_a_running_turn_a_message_begins_its_own_and_is_answered_alone(
    root: Path, model: ScriptedModel, second: str
) -> None:
    with window(model, root) as screen:
        screen.line("slow one")
        screen.wait_for("slow one")
        time.sleep(0.5)
        shown = SECOND[second](model, root, "two")
        assert "heard two after 1" in shown
        assert "slow" not in shown
        screen.wait_for("heard slow one after 0")


@pytest.mark.parametrize("second", SECOND)
def test_a_message_that_waited_for_a_process_that_is_killed_is_answered_here(
    root: Path, model: ScriptedModel, second: str
) -> None:
    with window(model, root) as screen, ThreadPoolExecutor(1) as thread:
        screen.line("stuck")
        screen.wait_for("It begins")
        answer = thread.submit(SECOND[second], model, root, "two")
        time.sleep(1)
        assert not answer.done()
        os.kill(screen.process.pid, signal.SIGKILL)
        before = time.monotonic()
        assert "two after" in answer.result(patience_s())
        print(f"answered {time.monotonic() - before:.2f} s after the kill")


def test_four_threads_of_one_program_are_answered_each_with_its_own(
    root: Path, model: ScriptedModel
) -> None:
    together = threading.Barrier(4)

    def one(text: str) -> str:
        together.wait()
        return agent_core.ask(text, root)

    with ThreadPoolExecutor(4) as threads:
        words = ["alpha", "beta", "gamma", "delta"]
        replies = [*threads.map(one, words)]
    assert [reply.split()[1] for reply in replies] == words
    assert sorted(reply.split()[-1] for reply in replies) == ["0", "1", "2", "3"]


def test_six_programs_say_ten_things_each_and_all_are_answered_once(
    root: Path, model: ScriptedModel
) -> None:
    def one(sender: int) -> list[str]:
        return [library(model, root, f"{sender}-{number}") for number in range(10)]

    with ThreadPoolExecutor(6) as threads:
        replies = [*threads.map(one, range(6))]
    for sender, got in enumerate(replies):
        assert [reply.split()[1] for reply in got] == [f"{sender}-{n}" for n in range(10)]
    places = sorted(int(reply.split()[-1]) for got in replies for reply in got)
    assert places == [*range(60)]


def test_two_prompts_show_the_same_turn_and_a_message_typed_in_the_second_joins_it(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        second.wait_for("from another prompt › slow one")
        second.wait_for("heard slow one after 0")
        second.do("two", "heard two after 1")
        first.wait_for("from another prompt › two")
        first.wait_for("heard two after 1")


def test_a_prompt_takes_over_from_one_that_is_killed_in_its_turn(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("stuck")
        second.wait_for("from another prompt › stuck")
        first.wait_for("It begins")
        os.kill(first.process.pid, signal.SIGKILL)
        before = time.monotonic()
        second.wait_for("The last turn was cut off")
        print(f"taken over {time.monotonic() - before:.2f} s after the kill")
        second.wait_for("heard stuck")
        second.wait_for("after 0")
        second.do("two", "heard two after 1")


def test_ctrl_c_ends_the_turn_that_another_process_runs_for_a_message(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        second.wait_for("from another prompt › slow one")
        second.type(CTRL_C)
        first.wait_for("nterrupted")


def test_the_text_of_a_turn_comes_to_the_other_window_while_the_model_writes_it(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        second.wait_for("heard")
        assert "after 0" not in second.scrolled() + first.scrolled()
        for screen in (first, second):
            screen.wait_for("heard slow one after 0")
            assert screen.scrolled().count("heard slow") == 1


def test_a_window_that_is_left_ends_no_turn_of_another_one(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first:
        with window(model, root) as second:
            first.line("slow one")
            second.wait_for("heard")
            second.type(CTRL_D)
            second.process.wait(patience_s())
        first.wait_for("heard slow one after 0")


def test_a_prompt_says_from_where_a_message_came(root: Path, model: ScriptedModel) -> None:
    with window(model, root) as screen:
        say(model, root, "two")
        screen.wait_for(" › two")
        screen.wait_for("heard two after 0")
        job = "from cron or another job without a terminal › two"
        assert job in screen.scrolled() or "from a command › two" in screen.scrolled()
        pipe(model, root, "three")
        screen.wait_for("from a pipe › three")
        screen.wait_for("heard three after 1")
        ask(model, root, "four")
        screen.wait_for("from a program › four")
        screen.wait_for("heard four after 2")
        screen.do("five", "heard five after 3")
        assert screen.scrolled().count("› five") == 1


@pytest.mark.parametrize("answers", ["where-it-runs", "elsewhere"])
def test_a_question_is_asked_in_both_windows_and_the_first_answer_counts(
    tmp_path: Path, place: str, answers: str
) -> None:
    script: Script = [made(place), DONE]
    with (
        prompt(script, tmp_path, environment=home(tmp_path)) as (first, model),
        terminal("run", *flags(model), cwd=tmp_path, environment=home(tmp_path)) as second,
    ):
        second.wait_for("/help lists")
        first.line("what is the weather?")
        first.wait_for("? weather asks to join")
        first.wait_for("Press o (once)")
        second.wait_for("? weather asks to join")
        second.wait_for("Press o (once)")
        asked = first if answers == "where-it-runs" else second
        press(asked, "o")
        other = second if asked is first else first
        other.wait_for("→ answered in another window: once")
        for screen in (first, second):
            screen.wait_for("∙ ")


def test_what_is_forgotten_elsewhere_is_not_sent_by_an_idle_prompt(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as screen:
        screen.do("my password is hunter2", "heard my password")
        ran = knapper("memory", "forget", "hunter2", "-y", cwd=root)
        assert ran.returncode == 0, ran.stderr
        asked = len(model.requests)
        screen.do("and now", "heard and now")
        assert "hunter2" not in "".join(str(seen.body) for seen in model.requests[asked:])
