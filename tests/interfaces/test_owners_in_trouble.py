"""The process that runs a turn is suspended, or two of them run it because a lock lied: each window says so."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Step, Wanted, scripted
from tests.kit.program import Program, surroundings
from tests.kit.terminal import CTRL_C, Terminal
from tests.kit.waiting import patience_s

from .support import flags
from .test_two_windows import library, window
from .test_two_windows import root as root

SLOW_S = 0.4


def echo(seen: Seen) -> Step:
    """Answer with the last thing that the user has said, slowly if they say so."""
    said = [str(one["content"]) for one in seen.messages if one["role"] == "user"][-1]
    results = [one for one in seen.messages if one["role"] == "tool"]
    if "refused" in said and not results:
        return Ask(Wanted("no_such_function", {}))
    return Say(f"heard {said} to its end", pause_s=SLOW_S if "slow" in said else 0)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted([Repeat(echo)]) as model:
        yield model


def states(root: Path) -> list[str]:
    """Return how each turn ended."""
    with closing(sqlite3.connect(f"file:{root}/.knapper/state.db?mode=ro", uri=True)) as db:
        return [state for (state,) in db.execute("select state from turn order by seq")]


def shows(screen: Terminal, text: str, count: int = 1) -> Callable[[], bool]:
    """Return a condition that holds when a screen has shown a text so often, however its lines were broken."""
    wanted = "".join(text.split())
    return lambda: "".join(screen.scrolled().split()).count(wanted) >= count


def test_who_waits_for_a_suspended_process_is_told_and_it_goes_on(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        second.wait_for("from another prompt › slow one")
        first.wait_for("heard")
        os.kill(first.process.pid, signal.SIGSTOP)
        try:
            for text in (f"process {first.process.pid} (since ", "which is stopped", "kill -CONT"):
                second.wait(shows(second, text), text)
            read_end, out = os.pipe()
            around = surroundings({})
            waiting = Program(
                ["run", *flags(model), "--message", "two"],
                [0, out, out],
                cwd=root,
                environment=around,
            )
            os.close(out)
            time.sleep(2)
            assert waiting.poll() is None
        finally:
            os.kill(first.process.pid, signal.SIGCONT)
        assert waiting.wait(patience_s()) == 0
        with os.fdopen(read_end) as shown:
            printed = shown.read()
        assert "which is stopped. This message waits for it." in printed
        assert "heard two to its end" in printed
        assert "slow" not in printed
        for screen in (first, second):
            screen.wait_count("to its end", 2)


def test_a_window_that_was_suspended_when_its_turn_was_asked_to_end_ends_it(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        second.wait_for("heard")
        os.kill(first.process.pid, signal.SIGSTOP)
        second.wait(shows(second, "which is stopped"), "stopped")
        second.type(CTRL_C)
        time.sleep(0.5)
        os.kill(first.process.pid, signal.SIGCONT)
        for screen in (first, second):
            screen.wait_for("nterrupted")


def test_of_two_owners_the_one_that_lost_says_so_and_follows(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        second.wait_for("from another prompt › slow one")
        first.wait_for("heard")
        (root / ".knapper" / "agents" / "main.lock").unlink()  # as a network's lock may be lost
        second.wait_for("The last turn was cut off")
        first.wait_for("Another process took over this turn")
        for screen in (first, second):
            screen.wait_for("to its end")
        second.wait(lambda: states(root) == ["interrupted", "done"], "two turns")
        first.do("two", "heard two to its end")
        second.wait_for("heard two to its end")
        second.wait(lambda: states(root) == ["interrupted", "done", "done"], "three turns")


def test_a_program_whose_turn_is_taken_over_gets_the_answer(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as screen, ThreadPoolExecutor(1) as thread:
        answer = thread.submit(library, model, root, "slow one")
        screen.wait_for("from a program › slow one")
        screen.wait_for("heard")
        (root / ".knapper" / "agents" / "main.lock").unlink()
        screen.wait_for("The last turn was cut off")
        assert "to its end" in answer.result(patience_s())
        screen.wait(lambda: states(root) == ["interrupted", "done"], "two turns")


def test_a_call_that_is_refused_is_shown_with_its_answer_in_both_windows(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("refused")
        for screen in (first, second):
            screen.wait_for("heard refused to its end")
        lines = [
            [row for row in screen.scrolled().split("\n") if "no_such_function" in row]
            for screen in (first, second)
        ]
        assert lines[0] == lines[1]
        assert lines[0]
