"""The part of a reply that was shown survives a `kill -9` in the middle of it."""

import json
import os
import time
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from tests.interfaces.support import flags
from tests.kit import Expect, Say, Script, contains, scripted
from tests.kit.program import Program, knapper, surroundings

WORDS = " ".join(f"word{number}" for number in range(400))
SHOWN_S = 3.0


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.slow)])
def storage(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of programs that keep their state in a file, or in a database."""
    is_file = request.param == "file"
    return {} if is_file else {"KNAPPER_STORAGE_URL": request.getfixturevalue("database")}


def shown_until_killed(root: Path, words: tuple[str, ...], storage: dict[str, str]) -> str:
    """Return the output of a program that was killed some seconds after its first word."""
    with TemporaryFile() as typed, TemporaryFile() as out, TemporaryFile() as err:
        streams = [file.fileno() for file in (typed, out, err)]
        program = Program(("run", *words), streams, cwd=root, environment=surroundings(storage))
        end = 0.0
        while not end or time.monotonic() < end:
            time.sleep(0.05)
            assert program.poll() is None
            if not end and b"word0" in os.pread(
                out.fileno(), 100, 0
            ):  # without moving the program's write position
                end = time.monotonic() + SHOWN_S
        program.kill()
        program.wait(10)
        return os.pread(out.fileno(), 1 << 20, 0).decode()


def test_what_was_shown_of_a_reply_is_in_the_log_at_once_and_the_conversation_goes_on_with_it(
    tmp_path: Path, storage: dict[str, str]
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    script: Script = [
        Say(WORDS, pause_s=0.05),
        Expect(Say("I go on."), contains("word3 "), contains("[…]")),
    ]
    with scripted(script) as model:
        shown = shown_until_killed(tmp_path, (*flags(model), "--message", "Count."), storage)
        log = knapper("log", cwd=tmp_path, environment=storage).stdout
        assert "**main:** word0 word1" in log
        assert log.count("word") >= shown.count("word") - 60, (
            "at most what came in the last second or so is lost"
        )
        assert " […]\n\n> The reply is cut off here" in log
        (turn,) = json.loads(knapper("log", "--json", cwd=tmp_path, environment=storage).stdout)[
            "turns"
        ]
        assert [entry["kind"] for entry in turn["entries"]][-1] == "streamed"
        assert knapper("log", "-o", "kept.md", cwd=tmp_path, environment=storage).returncode == 0
        assert (tmp_path / "kept.md").read_text() == log, "reading closes nothing"
        done = knapper(
            "run", *flags(model), "--message", "Go on.", cwd=tmp_path, environment=storage
        )
        assert done.returncode == 0, done.stderr
    log = knapper("log", cwd=tmp_path, environment=storage).stdout
    count, kept = shown.count("word"), log.count("word")
    assert 0 < kept <= count + 60, (shown, log)
    assert kept >= count - 60, "at most what came in the last second or so is lost"
    assert "[…]" in log
    assert "The program was stopped here." in log
