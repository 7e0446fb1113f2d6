"""How the prompt ends from outside, and what does not end it."""

import os
import signal
import termios
from pathlib import Path

import pytest

from tests.interfaces.support import flags, leave, prompt
from tests.kit import Expect, Say, contains, scripted
from tests.kit.terminal import Terminal, terminal

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
        screen.wait_for("goes on after 1 message")
        screen.line("still there?")
        screen.wait_for("Here.")
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
        screen.wait_for("goes on after 1 message")
        assert "cut off" not in screen.scrolled()
