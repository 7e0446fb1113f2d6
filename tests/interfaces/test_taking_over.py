"""Who runs a turn is killed at any instant of it: a window that is open answers what was accepted, soon and once."""

import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit import Repeat, Say, ScriptedModel, Seen, Step, scripted
from tests.kit.crash import Worker
from tests.kit.drawing import sampled
from tests.kit.terminal import terminal
from tests.kit.waiting import patience_s
from tests.promises.doomed import act

from .test_two_windows import root as root
from .test_two_windows import window

FIRST = """
import signal
from tests.promises.doomed import Instants
instants = Instants({instant})
instants.watch()
signal.signal(signal.SIGUSR1, lambda *_: setattr(instants, "is_counting", True))
"""
MOST = 60
NAMES = re.compile(r"(?:program|prompt)-\d+")


def echo(seen: Seen) -> Step:
    """Answer with the last name of a message that the user has said."""
    said = NAMES.findall(
        " ".join(str(one["content"]) for one in seen.messages if one["role"] == "user")
    )
    return Say(f"heard {said[-1]} to its end", pause_s=0.01)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted([Repeat(echo)]) as model:
        yield model


def rows(root: Path, sql: str) -> list[str]:
    """Return the texts in the rows of a query."""
    with closing(sqlite3.connect(f"file:{root}/.knapper/state.db?mode=ro", uri=True)) as db:
        return [json.loads(payload)["text"] for (payload,) in db.execute(sql)]


def is_accepted(root: Path, text: str) -> bool:
    """Return whether a message is stored."""
    return text in rows(root, "select payload from event where kind = 'message'")


def replies(root: Path) -> list[str]:
    """Return the replies of the turns that ended with one."""
    sql = (
        "select e.payload from entry e join turn t on t.seq = e.seq >> 20"
        " where e.kind = 'assistant' and t.state = 'done'"
    )
    return rows(root, sql)


def program(root: Path, model: ScriptedModel, instant: int, text: str) -> bool:
    """Send a message by the library; return whether the process was killed at an instant of its turn."""
    flags = {"model.base_url": model.base_url, "model.name": "scripted"}
    order = {"root": str(root), "flags": flags, "agent": "main", "deed": "take_turn"}
    worker = Worker(act, json.dumps({**order, "arguments": [text], "instant": instant}))
    return not any(report.startswith("replied") for report in worker.reports())


def prompt(root: Path, model: ScriptedModel, instant: int, text: str) -> bool:
    """Type a message into a prompt; return whether it was killed at an instant of its turn."""
    flags = ("--base-url", model.base_url, "--model", "scripted")
    first = FIRST.format(instant=instant)
    with terminal("run", *flags, cwd=root, columns=110, first=first) as screen:
        screen.wait_for("/help lists")
        os.kill(screen.process.pid, signal.SIGUSR1)
        time.sleep(0.1)
        screen.line(text)
        end = time.monotonic() + patience_s()
        while screen.process.poll() is None and time.monotonic() < end:
            is_shown = f"heard {text} to its end" in screen.scrolled()
            if is_shown and f"heard {text} to its end" in replies(root):  # the turn has ended, too
                return False
            time.sleep(0.02)
        return True


@pytest.mark.parametrize("owner", [program, prompt])
def test_a_window_takes_over_from_who_is_killed_at_any_instant_of_its_turn(
    root: Path, model: ScriptedModel, owner: Callable[[Path, ScriptedModel, int, str], bool]
) -> None:
    sent = list[str]()
    with window(model, root) as screen:
        for instant in sampled(range(2, MOST), 4):
            text = f"{owner.__name__}-{instant}"
            was_killed = owner(root, model, instant, text)
            if is_accepted(root, text):
                sent.append(text)
                screen.wait_count(f"heard {text} to its end", 1)
            if not was_killed:
                break
        screen.do("prompt-0", "heard prompt-0 to its end")
    assert len(sent) > 2
    answered = replies(root)
    assert [answered.count(f"heard {text} to its end") for text in sent] == [1] * len(sent)
