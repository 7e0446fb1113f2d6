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
from tests.kit.drawing import sampled
from tests.kit.program import Program
from tests.kit.terminal import Knapper, Terminal, terminal

SLOW = Say("one two three four five six seven eight nine ten " * 20, pause_s=0.05)


def is_cooked(screen: Terminal) -> bool:
    return bool(termios.tcgetattr(screen.fileno())[3] & termios.ICANON)


def test_a_signal_or_a_closed_window_ends_a_turn_and_the_conversation_goes_on_later(
    tmp_path: Path,
) -> None:
    here = Expect(Say("Here."), contains("The user ended the turn here."))
    for said, (number, code) in enumerate(((signal.SIGTERM, 143), (None, 129))):
        with prompt([here, SLOW] if said else [SLOW], tmp_path) as (screen, _):
            if said:
                screen.wait_for("continues: you wrote ")
                screen.do("still there?", "Here.", "∙ 1 step")
            screen.do("tell me a story", "one two three")
            if number:
                os.kill(screen.process.pid, number)
            else:
                screen.hang_up()
            assert screen.exit_code() == code
            assert number is None or is_cooked(screen)
    with prompt([], tmp_path) as (screen, _):  # between two turns
        screen.wait_for("continues: you wrote 3 messages")
        assert ("cut off" in screen.scrolled(), is_cooked(screen)) == (False, False)
        os.kill(screen.process.pid, signal.SIGHUP)
        assert (screen.exit_code(), is_cooked(screen)) == (129, True)
        assert not any("sandbox" in row or "›" in row for row in screen.screen())


def test_ctrl_d_ends_a_turn_that_nobody_typed_anything_for(tmp_path: Path) -> None:
    with (
        scripted([SLOW]) as model,
        terminal(
            "run", *flags(model), "--preset", "memgpt", "--agent", "first", cwd=tmp_path
        ) as screen,
    ):
        screen.wait_for("/help lists")
        screen.wait(lambda: bool(model.requests), "the request that the agent begins with")
        assert leave(screen) == 0


BROKEN = """
def breaks():
    import agent_core.{module} as module
    sound = module.{owner}
    def broken(*given, **named):
        module.{owner} = sound
        raise LookupError("a fault of our own\x1b[2J")
    module.{owner} = broken
breaks()
"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("module", "owner"),
    sampled(
        [
            pytest.param("runtime.loop", "AgentLoop._act", id="in-the-turn"),
            pytest.param("interfaces.repl.render", "TurnRenderer._text", id="in-telling-it"),
            pytest.param("runtime.agent", "TurnRunner.begin", id="before-the-turn"),
        ],
        3,
    ),
)
def test_a_fault_of_our_own_is_told_in_one_line_and_keeps_the_prompt(
    tmp_path: Path, module: str, owner: str
) -> None:
    code = BROKEN.format(module=module, owner=owner)
    code += BROKEN.format(module="functions.service", owner="FunctionService.list")
    script = [Say("First."), Say("Second.")][owner == "TurnRunner.begin" :]
    with scripted(script) as model, program(code, *flags(model), cwd=tmp_path) as screen:
        screen.line("hello")
        screen.wait_for("Knapper failed: LookupError: a fault of our own\\x1b[2J.")
        screen.wait_gone("thinking…")
        screen.line("again")
        screen.wait_for("Second.")
        assert [
            "LookupError" in kept.read_text()
            for kept in (tmp_path / ".knapper").glob("crash-*.log")
        ] == [True]
        screen.do("/functions", "Knapper failed: LookupError")
        screen.do("/functions", "No functions. Ask for one.")
        assert leave(screen) == 0


FAILS_TO_DRAW = """
from knapper.prompt import live
def fails(call):
    raise LookupError("a fault of our own")
live._progress = fails
"""


@pytest.mark.slow
def test_a_fault_at_each_drawing_is_told_once_and_kept_once(folder: Path) -> None:
    (folder / "functions" / "words.py").write_text(SLOW_FUNCTION)
    with (
        scripted([Ask(Wanted("slow", {})), Say("Second.")]) as model,
        program(FAILS_TO_DRAW, *flags(model), cwd=folder) as screen,
    ):
        screen.line("hello")
        screen.wait_for("Second.")
        assert screen.scrolled().count("Knapper failed") == 1
        assert leave(screen) == 0
    assert len([*(folder / ".knapper").glob("crash-*.log")]) == 1


class Broken(Knapper):
    """A terminal with the program, partly replaced by code: the first word of the command is that code."""

    def _start(
        self, command: Sequence[str], slave: int, cwd: Path, environment: Mapping[str, str]
    ) -> Program:
        return Program(command[1:], [slave] * 3, cwd=cwd, environment=environment, first=command[0])


@contextmanager
def program(code: str, *arguments: str, cwd: Path) -> Iterator[Terminal]:
    screen = Broken((code, "run", *arguments), cwd=cwd)
    try:
        screen.wait_for("/help lists")
        yield screen
    finally:
        screen.close()
