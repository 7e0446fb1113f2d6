"""Fetching and removing a local model: how far it is, how long it takes, and what is gone afterwards."""

import json
from pathlib import Path

import pytest

from agent_core.interfaces.download import Download, progress_text
from agent_core.model.local.weights import available
from tests.interfaces.support import toolwright

MB = 1_000_000


class Watch:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("done", "total", "rate", "text"),
    [
        pytest.param(0, 100 * MB, None, "0 of 100 MB, 0%", id="nothing-known"),
        pytest.param(40 * MB, 100 * MB, 2.0 * MB, "40 of 100 MB, 40%, 2.0 MB/s, 30 s left", id="seconds"),
        pytest.param(400 * MB, 1117 * MB, 1.0 * MB, "400 of 1117 MB, 35%, 1.0 MB/s, 11 min 57 s left", id="minutes"),
        pytest.param(0, 7200 * MB, 1.0 * MB, "0 of 7200 MB, 0%, 1.0 MB/s, 2 h 0 min left", id="hours"),
        pytest.param(5 * MB, None, 1.0 * MB, "5 MB, 1.0 MB/s", id="size-unknown"),
        pytest.param(100 * MB, 100 * MB, 1.0 * MB, "100 of 100 MB, 100%, 1.0 MB/s", id="all-here"),
    ],
)
def test_progress_says_what_is_known_and_no_more(done: int, total: int | None, rate: float | None, text: str) -> None:
    assert progress_text(done, total, rate) == text


def test_without_a_terminal_a_line_comes_at_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Watch()
    with Download(watch) as download:
        download.hear(50 * MB, 100 * MB, "from a folder, continued")
        for done in range(51, 101):
            watch.now += 0.5
            download.hear(done * MB, 100 * MB, "")
    lines = capsys.readouterr().err.splitlines()
    assert [text.split(",")[1].strip() for text in lines] == ["50%  from a folder", "60%", "70%", "80%", "90%", "100%"]
    assert "2.0 MB/s, 20 s left" in lines[1]  # what was here before does not count


def test_a_removed_model_is_gone_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    folder = tmp_path / "toolwright" / "models"
    folder.mkdir(parents=True)
    known = available()[0]
    for suffix in ("", ".verified", ".partial"):
        (folder / f"{known.file}{suffix}").write_bytes(b"1234")
    (folder / "another.gguf").touch()
    done = toolwright("models", "remove", known.name, "--json", cwd=tmp_path, environment=home)
    assert json.loads(done.stdout)["bytes"] == 12
    assert [file.name for file in folder.iterdir()] == ["another.gguf"]
    again = toolwright("models", "remove", known.name, cwd=tmp_path, environment=home)
    assert (again.returncode, "Nothing of" in again.stderr) == (2, True)


def test_a_model_that_nobody_knows_is_not_removed(tmp_path: Path) -> None:
    done = toolwright("models", "remove", "../../etc", cwd=tmp_path)
    assert (done.returncode, "There is no local model" in done.stderr) == (2, True)
