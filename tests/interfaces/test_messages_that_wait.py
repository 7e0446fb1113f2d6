"""A message that waits for a turn is seen in every window, and whoever sent it edits it or takes it back."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit import Repeat, Say, ScriptedModel, Seen, Step, scripted
from tests.kit.program import knapper
from tests.kit.terminal import ENTER, Terminal
from tests.kit.waiting import patience_s

from .support import flags
from .test_two_windows import window

UP = "\x1b[A"


def echo(seen: Seen) -> Step:
    """Answer with the last message; `slow` takes its time."""
    said = [str(one["content"]) for one in seen.messages if one["role"] == "user"][-1]
    return Say(f"heard {said} to its end", pause_s=1 if "slow" in said else 0)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted([Repeat(echo)]) as model:
        yield model


@pytest.fixture(autouse=True)
def root(tmp_path: Path, model: ScriptedModel) -> Path:
    (tmp_path / "functions").mkdir()
    return tmp_path


def said(model: ScriptedModel) -> str:
    """Return what the model was sent last."""
    return str(model.requests[-1].body["messages"])


def listed(screen: Terminal, text: str) -> str:
    """Return the id of a message that `/waiting` shows."""
    screen.line("/waiting")
    row = re.compile(rf"(\w{{6}})  {text}")
    screen.wait(lambda: bool(row.search(screen.scrolled())), text)
    return str(row.findall(screen.scrolled())[-1])


def test_up_on_an_empty_line_takes_the_last_message_back_to_edit_it(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as screen:
        screen.line("slow one")
        screen.wait_for("heard")
        screen.line("twoo")
        screen.wait_for("takes it back")
        screen.type(UP)
        screen.wait_count("› twoo", 2)
        screen.type("\x7f, and three" + ENTER)
        screen.wait_for("heard two, and three to its end")
        assert "twoo" not in said(model)


def test_a_message_that_waits_is_listed_edited_and_taken_back_in_another_window(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        first.wait_for("heard")
        for text in ("alpha", "beta"):
            first.line(text)
            first.wait_for(f"› {text}")
        first.wait_count("takes it back", 2)
        second.wait_for("from another prompt › slow one")
        alpha = listed(second, "alpha")
        beta = listed(second, "beta")
        second.do(f"/waiting edit {alpha} gamma ray", "it reads now: gamma ray")
        second.do(f"/waiting withdraw {beta}", "taken back: beta")
        first.wait_for("heard gamma ray to its end")
        assert "beta" not in said(model)
        second.do(f"/waiting withdraw {alpha}", "A turn has taken the message up")


def test_who_waits_for_the_answer_to_a_message_is_told_that_it_was_taken_back(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as screen, ThreadPoolExecutor(1) as thread:
        screen.line("slow one " * 4)
        screen.wait_for("heard")
        ran = thread.submit(knapper, "run", *flags(model), "--message", "delta", cwd=root)
        screen.wait(lambda: "delta" in waiting(root), "delta waits")
        shown = waiting(root)
        assert "from cron" in shown or "from a command" in shown
        (id,) = re.findall(r"(\w{6})  delta", shown)
        withdrawn = knapper("waiting", "withdraw", id, cwd=root)
        assert withdrawn.returncode == 0, withdrawn.stderr
        done = ran.result(patience_s())
        assert done.returncode == 1
        assert "was taken back in another window" in done.stderr
        screen.wait_for("to its end")
        assert "None waits." in waiting(root)
    assert "delta" not in said(model)


def waiting(root: Path) -> str:
    ran = knapper("waiting", "list", cwd=root)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout + ran.stderr
