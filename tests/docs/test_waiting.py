"""A wait of the test kit ends, and says what came instead of what it waited for."""

import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.kit import waiting
from tests.kit.crash import Worker
from tests.kit.terminal import Terminal


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each wait end soon, on a machine without other work."""
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.2)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))


async def test_a_condition_that_never_holds_is_answered_with_what_was_seen_last() -> None:
    seen = ["one"]
    with pytest.raises(AssertionError, match=r"what is there instead: \['one'\]"):
        await waiting.until_it_is(lambda: seen, lambda found: len(found) > 1)


def test_a_text_that_never_comes_is_answered_with_the_screen(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "print('another'); import time; time.sleep(60)")
    screen = Terminal(command, cwd=tmp_path)
    try:
        screen.wait_for("another", timeout_s=60)
        with pytest.raises(AssertionError, match="'this' on the screen; the screen is:\nanother"):
            screen.wait_for("this")
        with pytest.raises(AssertionError, match="for the end; the screen is:\nanother"):
            screen.exit_code()
    finally:
        screen.close()


def reports_once(_argument: str, reports: Connection) -> None:
    """Send one report and nothing more."""
    reports.send("begun")
    time.sleep(60)


def test_a_report_that_never_comes_is_answered_with_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Worker(reports_once, "")
    monkeypatch.setattr(waiting, "PATIENCE_S", 60.0)
    assert worker.next_report() == "begun"
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.2)
    with pytest.raises(AssertionError, match="its last report: 'begun'"):
        worker.next_report()
    worker.kill()
    worker.reports()


def test_a_machine_with_more_work_than_processors_is_waited_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert waiting.patience_s() == 0.2
    monkeypatch.setattr(os, "getloadavg", lambda: (20.0, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert waiting.patience_s() == pytest.approx(2.0)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert waiting.patience_s() == pytest.approx(4.0)
