"""A workspace that an earlier version wrote opens: what went is told, and nothing that was made in it is lost."""

import json
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_core import Workspace
from agent_core.base.gone import GONE
from agent_core.storage import Entry
from agent_core.workspace.state_store import opened_state
from tests.cli.support import run
from tests.contracts.earlier import make
from tests.kit import Say, scripted
from tests.kit.program import knapper
from tests.knapper_ext.server.told import replayed
from tests.storage.support import begin

CALLS: dict[str, tuple[dict[str, Any], Any]] = {  # Any: JSON
    "count_vowels": ({"text": "queueing"}, 5),
    "doubled": ({"number": 4}, 8),
    "note_of": ({"name": "today"}, "Rain."),
    "counted": ({}, 1),
}
WENT = sorted(
    name for name in GONE if "." in name and f"\n{name.partition('.')[2]} = " in make.SETTINGS
)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """The workspace as that version left it, with its state set aside: a seal holds at one path only."""
    for file in make.HERE.iterdir():
        if file.suffix == ".txt" or file.name == "grants.toml":
            to = tmp_path / "functions" / file.name.removesuffix(".txt")
            to.parent.mkdir(exist_ok=True)
            shutil.copy(file, to)
    shutil.copy(make.HERE / "knapper.toml", tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "today").write_text("Rain.")
    (tmp_path / ".knapper").mkdir(mode=0o700)
    state = apsw.Connection(str(tmp_path / ".knapper" / "earlier.db"))
    state.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)  # the text makes its search indexes itself
    state.execute((make.HERE / "state.sql").read_text("utf-8"))
    state.close()
    return tmp_path


async def test_its_files_open_with_a_warning_for_each_thing_that_went_and_all_its_functions_run(
    earlier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = (earlier / "knapper.toml", earlier / "functions" / "grants.toml")
    texts = [file.read_text() for file in written]
    async with Workspace.open(earlier, flags={"grants.unattended": "file"}) as workspace:
        assert (workspace.settings.agent, workspace.settings.turn.max_steps) == ("ada", 9)
        assert workspace.functions.rejected() == ()
        reports = {
            name: await workspace.functions.call(name, arguments)
            for name, (arguments, _) in CALLS.items()
        }
    assert {name: report.error for name, report in reports.items()} == dict.fromkeys(CALLS)
    values = {name: report.value for name, report in reports.items()}
    assert values == {name: value for name, (_, value) in CALLS.items()}
    warnings = capsys.readouterr().err
    assert len(WENT) == 20
    told = {name: warnings.count(f"`{name}`") for name in (*WENT, "stateful")}
    assert told == dict.fromkeys((*WENT, "stateful"), 1)
    assert [file.read_text() for file in written] == texts


def test_its_state_is_adopted_with_conversation_memory_versions_and_calls(earlier: Path) -> None:
    run(earlier, "state", "adopt", "earlier.db")
    (turn, *_) = run(earlier, "log")["turns"]
    assert "How many vowels has queueing?" in str(turn)
    assert "Name: Ada Lovelace" in str(run(earlier, "memory", "show", "human"))
    (version,) = run(earlier, "functions", "history", "count_vowels")["versions"]
    assert (version["by"], version["agent"]) == ("agent", "ada")
    assert [*run(earlier, "functions", "pending")] == ["flawed"]
    assert {call["function"] for call in run(earlier, "calls", "list")} >= {"count_vowels"}
    assert run(earlier, "storage", "check")["ok"]
    with scripted([Say("Yes.")]) as model:
        flags = ("--base-url", model.base_url, "--model", "scripted")
        done = knapper("run", "--message", "And now?", *flags, cwd=earlier)
    assert (done.returncode, done.stdout) == (0, "Yes.\n")
    assert "How many vowels has queueing?" in model.requests[0].text


def test_its_agent_file_is_imported(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    run(tmp_path, "agents", "import", str(make.HERE / "ada.json"))
    options = ("--agent", "ada")
    assert "Name: Ada Lovelace" in str(run(tmp_path, "memory", "show", "human", *options))
    (turn, *_) = run(tmp_path, "log", *options)["turns"]
    assert "How many vowels has queueing?" in str(turn)


SENT = {"id": "c3", "name": "send_message", "arguments": '{"message": "Here."}'}
CALLED = {"id": "c1", "name": "count_vowels", "arguments": '{"text": "aha"}'}
USED = Entry(
    "usage", {"model": "m", "prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 0}
)
ROWS: list[tuple[str, list[Entry]]] = [
    (
        "done",
        [
            Entry("user", {"text": "How many?"}),
            USED,
            Entry("assistant", {"text": "I look.", "calls": [CALLED, {**CALLED, "id": "c2"}]}),
            Entry("call", {"id": "c1", "name": "count_vowels", "version": "1"}),
            Entry("result", {"call_id": "c1", "name": "count_vowels", "text": "2", "seconds": 0.5}),
            Entry("result", {"call_id": "c2", "name": "count_vowels", "text": "no", "detail": {}}),
            Entry("user", {"text": "Are you there?"}),
            Entry("notice", {"text": "Something changed."}),
            USED,
            Entry("assistant", {"text": "A thought.", "calls": [SENT]}),
            Entry("result", {"call_id": "c3", "name": "send_message", "text": "Shown."}),
            Entry("receipt", {"made": {"called": {"count_vowels": 1}}}),
        ],
    ),
    ("done", [USED, Entry("summary", {"text": "Earlier.", "covers": 2, "upto": 1})]),
    (
        "client_calls",
        [
            Entry("notice", {"text": "Heartbeat: it is time.", "packed": "{}"}),
            Entry("assistant", {"text": "", "calls": [CALLED]}),
            Entry("call", {"id": "c1", "name": "count_vowels", "version": None, "client": True}),
            Entry("parked", {"calls": [{"id": "c1", "name": "count_vowels"}]}),
        ],
    ),
    (
        "failed",
        [
            Entry("client", {"text": "", "event": "message"}),
            Entry("result", {"call_id": "c1", "name": "count_vowels", "text": "2"}),
            Entry("user", {"text": "Go on.", "speaker": "bob"}),
            Entry("speaker", {"name": "bob", "rule": "only", "reason": "the only one"}),
            Entry("ended", {"text": "It failed."}),
        ],
    ),
    ("interrupted", [Entry("assistant", {"text": "Begun […]", "calls": []})]),
]
"""Turns as versions wrote them whose entries name no step, with their states."""


def earlier_events() -> dict[str, Any]:  # Any: JSON
    """Return what that version told of its state, and of the turns above.

    It counted no step of its own for a turn without a message, but those of the turn before.
    """
    told: dict[str, Any] = json.loads((make.HERE / "events.json").read_text("utf-8"))
    return told


async def test_its_stream_has_the_events_that_it_had(earlier: Path) -> None:
    run(earlier, "state", "adopt", "earlier.db")
    async with opened_state(earlier) as state:
        told = [event for _, event in await replayed(state.store, "ada") if event is not None]
    assert told == earlier_events()["state"]


async def test_turns_that_name_no_step_are_told_as_they_were(tmp_path: Path) -> None:
    turns: list[str] = []
    async with Workspace.open(tmp_path) as workspace:
        for state, entries in ROWS:
            turn = await begin(workspace.store)
            turns.append(turn.id)
            await workspace.store.append(turn.id, turn.attempt, 0, entries)
            await workspace.store.finish(turn.id, turn.attempt, state)
        told = [event for _, event in await replayed(workspace.store) if event is not None]
    named = [{**event, "turn": turns.index(event["turn"])} for event in told]
    assert named == earlier_events()["turns"]
