"""What ends the prompt from outside, and what does not."""

import os
import signal
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interfaces.support import SLOW as SLOW_FUNCTION
from tests.interfaces.support import flags, leave, prompt
from tests.kit import Ask, Expect, Say, Wanted, contains, scripted
from tests.kit.program import Program
from tests.kit.terminal import Knapper, Terminal, terminal

SLOW = Say("one two three four five six seven eight nine ten " * 20, pause_s=0.05)
ENDS = [pytest.param(signal.SIGTERM, 143, id="SIGTERM"), pytest.param(signal.SIGHUP, 129, id="SIGHUP")]


def is_cooked(screen: Terminal) -> bool:
    return bool(termios.tcgetattr(screen.fileno())[3] & termios.ICANON)


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_a_signal_to_end_leaves_a_clean_screen_and_a_usable_terminal(tmp_path: Path, number: int, code: int) -> None:
    with prompt([], tmp_path) as (screen, _):
        assert not is_cooked(screen)
        os.kill(screen.process.pid, number)
        assert screen.exit_code() == code
        assert is_cooked(screen)
        assert not any("sandbox" in row or "›" in row for row in screen.screen())


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_a_signal_in_a_turn_ends_it_and_the_conversation_goes_on_later(tmp_path: Path, number: int, code: int) -> None:
    with prompt([SLOW], tmp_path) as (screen, _):
        screen.line("tell me a story")
        screen.wait_for("one two three")
        os.kill(screen.process.pid, number)
        assert screen.exit_code() == code
    with prompt([Expect(Say("Here."), contains("The user ended the turn here."))], tmp_path) as (screen, _):
        screen.wait_for("continues: you wrote 1 message")
        screen.line("still there?")
        screen.wait_for("Here.")
        assert leave(screen) == 0


def test_ctrl_d_ends_a_turn_that_nobody_typed_anything_for(tmp_path: Path) -> None:
    with (
        scripted([SLOW]) as model,
        terminal("run", *flags(model), "--preset", "memgpt", "--agent", "first", cwd=tmp_path) as screen,
    ):
        screen.wait_for("/help lists")
        screen.wait(lambda: bool(model.requests), "the request that the agent begins with")
        assert leave(screen) == 0


def test_a_signal_while_all_is_being_opened_ends_the_prompt_too(tmp_path: Path) -> None:
    with scripted([]) as model, terminal("run", *flags(model), cwd=tmp_path) as screen:
        screen.wait_for("›")
        os.kill(screen.process.pid, signal.SIGTERM)
        assert screen.exit_code() == 143
        assert is_cooked(screen)


def test_a_terminal_that_goes_away_ends_the_turn_and_the_program(tmp_path: Path) -> None:
    with prompt([SLOW], tmp_path) as (screen, _):
        screen.line("tell me a story")
        screen.wait_for("one two three")
        screen.hang_up()
        assert screen.exit_code() == 129
    with prompt([], tmp_path) as (screen, _):
        screen.wait_for("continues: you wrote 1 message")
        assert "cut off" not in screen.scrolled()


BROKEN = """
import agent_core.{module} as module
sound = module.{owner}
def broken(*given, **named):
    module.{owner} = sound
    raise LookupError("a fault of our own\x1b[2J")
module.{owner} = broken
"""


@pytest.mark.parametrize(
    ("module", "owner"),
    [
        pytest.param("runtime.loop", "AgentLoop._act", id="in-the-turn"),
        pytest.param("interfaces.repl.render", "TurnRenderer._text", id="in-telling-it"),
        pytest.param("runtime.turn_runner", "TurnRunner.begin", id="before-the-turn"),
    ],
)
def test_a_fault_of_our_own_is_told_in_one_line_and_keeps_the_prompt(tmp_path: Path, module: str, owner: str) -> None:
    code = BROKEN.format(module=module, owner=owner)
    script = [Say("First."), Say("Second.")][owner == "TurnRunner.begin" :]
    with scripted(script) as model, program(code, *flags(model), cwd=tmp_path) as screen:
        screen.line("hello")
        screen.wait_for("Knapper failed: LookupError: a fault of our own\\x1b[2J.")
        screen.wait_gone("thinking…")
        screen.line("again")
        screen.wait_for("Second.")
        assert leave(screen) == 0
    [kept] = (tmp_path / ".knapper").glob("crash-*.log")
    assert "LookupError" in kept.read_text()


FAILS_TO_DRAW = """
from agent_core.interfaces.repl import live
def fails(call):
    raise LookupError("a fault of our own")
live._progress = fails
"""


def test_a_fault_at_each_drawing_is_told_once_and_kept_once(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(SLOW_FUNCTION)
    with (
        scripted([Ask(Wanted("slow", {})), Say("Second.")]) as model,
        program(FAILS_TO_DRAW, *flags(model), cwd=tmp_path) as screen,
    ):
        screen.line("hello")
        screen.wait_for("Second.")
        assert screen.scrolled().count("Knapper failed") == 1
        assert leave(screen) == 0
    assert len([*(tmp_path / ".knapper").glob("crash-*.log")]) == 1


def test_a_fault_in_a_slash_command_keeps_the_prompt_too(tmp_path: Path) -> None:
    code = BROKEN.format(module="functions.service", owner="FunctionService.list")
    with scripted([]) as model, program(code, *flags(model), cwd=tmp_path) as screen:
        screen.line("/functions")
        screen.wait_for("Knapper failed: LookupError")
        screen.line("/functions")
        screen.wait_for("No functions. Ask for one.")
        assert leave(screen) == 0


class Broken(Knapper):
    """A terminal with the program, partly replaced by code: the first word of the command is that code."""

    def _start(self, command: Sequence[str], slave: int, cwd: Path, environment: Mapping[str, str]) -> Program:
        return Program(command[1:], [slave] * 3, cwd=cwd, environment=environment, first=command[0])


@contextmanager
def program(code: str, *arguments: str, cwd: Path) -> Iterator[Terminal]:
    screen = Broken((code, "run", *arguments), cwd=cwd)
    try:
        screen.wait_for("/help lists")
        yield screen
    finally:
        screen.close()


def test_the_tour_leaves_a_turn_that_was_cut_off_to_be_sent_again(tmp_path: Path) -> None:
    with terminal("run", "--model", "tour", cwd=tmp_path) as screen:
        screen.wait_for("Screen 1 of 10")
        screen.line("how many vowels are in queueing?")
        screen.wait_for("Screen 2 of 10")
        screen.line("how many functions are in tour.py?")
        screen.wait_for("functions_in_tour asks")
        os.kill(screen.process.pid, signal.SIGKILL)
        screen.exit_code()
    with terminal("run", "--model", "tour", cwd=tmp_path) as screen:
        screen.wait_for("/retry sends its message again")
        screen.line("/retry")
        screen.wait_for("functions_in_tour asks")
        assert "› start" not in [row.strip() for row in screen.screen()]
        screen.line("no")
