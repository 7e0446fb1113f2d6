"""A running server's wall clock is set forward and back by hours: only dates follow it."""

import json
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from agent_core import Workspace
from tests.agents.team import said_last
from tests.kit import Repeat, Say, ScriptedModel
from tests.kit.program import knapper

from .conftest import Frames, ends
from .test_the_process import Process

HOUR = 3600.0
AGENTS = "/api/v1/agents"
# The clock cannot be set for one process: there, Python reads the offset from a file.
SITE = """
import time
from pathlib import Path
_real, _ahead = time.time, Path({ahead!r})
time.time = lambda: _real() + float(_ahead.read_text())
time.time_ns = lambda: int(time.time() * 1e9)
"""


class Machine:
    """A server on a machine whose wall clock can be set."""

    def __init__(self, folder: Path, model: ScriptedModel) -> None:
        self._folder, self._model = folder, model
        self.root, self._ahead = folder / "workspace", folder / "ahead"
        Workspace.create(self.root)
        (folder / "sitecustomize.py").write_text(SITE.format(ahead=str(self._ahead)))
        self.is_ahead_by(0.0)
        self.token = self.new_token("all")

    def is_ahead_by(self, seconds: float) -> None:
        """Set the clock."""
        new = self._ahead.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._ahead)

    def new_token(self, name: str, *options: str) -> str:
        """Return a token that may chat and read."""
        scopes = ("--scope", "chat", "--scope", "read", "--scope", "edit")
        made = knapper("tokens", "add", name, "--json", *scopes, *options, cwd=self.root)
        return str(json.loads(made.stdout)["token"])

    @contextmanager
    def serving(self) -> Iterator[Process]:
        """The server."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", os.pathsep.join((str(self._folder), str(Path.cwd()))))
            process = Process(self.root, self._model, self.token, from_nothing=True)
        try:
            yield process
        finally:
            assert process.end(signal.SIGTERM) == 0


@pytest.fixture
def machine(tmp_path: Path, scripted: Callable[..., ScriptedModel]) -> Machine:
    """The machine; its model repeats the message."""
    return Machine(tmp_path, scripted([Repeat(lambda seen: Say(f"You said: {said_last(seen)}"))]))


def status(process: Process, token: str) -> int:
    """Return the status of a client's request with a token."""
    return httpx2.get(
        f"{process.told['url']}{AGENTS}", headers={"Authorization": f"Bearer {token}"}
    ).status_code


def replies(frames: Frames) -> list[str]:
    """Return the replies of the turns."""
    return [
        data["reply"] for _, data in frames if data is not None and data["type"] == "turn_ended"
    ]


@pytest.mark.slow
def test_tokens_follow_the_date_and_turns_links_cookies_and_brakes_do_not(machine: Machine) -> None:
    brief = machine.new_token("brief", "--expires", "2h")
    with machine.serving() as process:
        for turns, ahead in enumerate((0.0, 30 * HOUR, -30 * HOUR), 1):
            machine.is_ahead_by(ahead)
            process.say(f"It is {turns} o'clock.")
            heard = process.frames(ends(turns))
        assert replies(heard) == [f"You said: It is {turns} o'clock." for turns in (1, 2, 3)]
        assert process.client.post(f"{AGENTS}/main/pause", json={}).status_code == 200
        for number, ahead in enumerate((0.0, 30 * HOUR, -30 * HOUR), 1):
            machine.is_ahead_by(ahead)
            process.say(f"Message {number}.")
        assert process.client.post(f"{AGENTS}/main/resume", json={}).status_code == 200
        heard = process.frames(ends(4))
        assert replies(heard)[-1] == "You said: Message 1.\n\nMessage 2.\n\nMessage 3."
        assert status(process, brief) == 200
        machine.is_ahead_by(30 * HOUR)
        assert (status(process, brief), status(process, machine.token)) == (401, 200)
        with httpx2.Client(base_url=process.told["url"]) as browser:
            link = {
                "code": process.told["login"].partition("code=")[2]
            }  # valid for ten minutes, which have not passed
            browser.headers["Knapper-Key"] = browser.post("/login", json=link).json()["key"]
            machine.is_ahead_by(-30 * HOUR)
            assert browser.get(AGENTS).status_code == 200
            assert status(process, brief) == 200
            wrong = [status(process, f"tw_{number:08x}_x") for number in range(25)]
            assert (wrong[0], wrong[-1]) == (401, 429)
            machine.is_ahead_by(30 * HOUR)
            assert status(process, "tw_00000000_x") == 429
            assert browser.get(AGENTS).status_code == 200
    machine.is_ahead_by(0.0)
    with machine.serving() as process:
        again = process.frames(ends(4))
    numbers = [number for number, _ in again if number is not None]
    assert numbers == sorted(set(numbers))
    assert replies(again) == replies(heard)


@pytest.mark.slow
def test_the_newest_conversations_of_programs_are_kept_and_not_those_with_the_latest_dates(
    machine: Machine,
) -> None:
    with machine.serving() as process:
        machine.is_ahead_by(30 * HOUR)
        for number in range(100):
            chat(process, f"Conversation {number}.")
        ahead = names(machine)
        machine.is_ahead_by(0.0)
        first = chat(process, "The first of today.")
        chat(process, "The second of today.")
        chat(process, "And?", *first)
        kept = names(machine)
        assert (len(ahead), len(kept), len(kept - ahead)) == (100, 100, 3)


def chat(process: Process, text: str, *before: dict[str, str]) -> list[dict[str, str]]:
    """Say something as a program that sends its whole history; return that history."""
    messages = [*before, {"role": "user", "content": text}]
    answer = process.client.post(
        "/v1/chat/completions", json={"model": "main", "messages": messages}
    )
    return [
        *messages,
        {"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]},
    ]


def names(machine: Machine) -> set[str]:
    """Return the names of the histories that are kept."""
    with closing(sqlite3.connect(machine.root / ".knapper" / "state.db")) as state:
        rows = state.execute("select name from agent where name like 'main--chat-%'").fetchall()
    return {name for (name,) in rows}
