"""Downloading and removing a local model: the progress, the time left, and what is gone afterwards."""

import asyncio
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_core.interfaces.progress import Download, progress_text
from agent_core.model.local.weights import available, named
from tests.kit.http import Answer, Request, Server
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, terminal

MB = 1_000_000


class Watch:
    """A clock that the test advances."""

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
    assert lines[0] == "from a folder, continued"
    assert [text.split(",")[1].strip() for text in lines[1:]] == ["50%", "60%", "70%", "80%", "90%", "100%"]
    assert "2.0 MB/s, 20 s left" in lines[2]  # the part that was already here does not count


@contextmanager
def endless(asked: list[str]) -> Iterator[str]:
    """Yield an address that sends bytes slowly until the client leaves; `asked` records where each request began."""

    async def answer(request: Request, answer: Answer) -> None:
        asked.append(request.headers.get("range", ""))
        answer.begin("application/octet-stream")
        while not answer.broken:
            await answer.write(b"\0" * 100_000)
            await asyncio.sleep(0.01)

    server = Server(answer)
    try:
        yield f"http://127.0.0.1:{server.port}/any.gguf"
    finally:
        server.close()


def partial(home: Path) -> Path:
    return home / "knapper" / "models" / f"{available()[1].file}.partial"


def test_a_download_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    home, asked = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}, list[str]()
    with endless(asked) as url:
        command = ("models", "get", available()[1].name, "--from", url)
        with terminal(*command, cwd=tmp_path, environment=home) as screen:
            screen.wait_for("MB/s")
            screen.process.kill()
            screen.exit_code()
        kept = partial(tmp_path).stat().st_size
        with terminal(*command, cwd=tmp_path, environment=home) as screen:
            screen.wait_for("from 127.0.0.1, continued")
            screen.wait_for("MB/s")
            screen.type(CTRL_C)
            screen.wait_for("The partial download is kept")
            assert screen.exit_code() == 1
            assert not any("█" in line or "░" in line for line in screen.screen())
    assert asked == ["", f"bytes={kept}-"]
    assert partial(tmp_path).stat().st_size >= kept


@pytest.mark.parametrize(
    ("source", "says", "code"),
    [
        pytest.param("nowhere", "nowhere is not there", 2, id="no-such-file"),
        pytest.param(".", "holds nothing of", 2, id="a-folder-without-it"),
        pytest.param("other", "it has 5 bytes, not 1,117,320,768", 2, id="another-file"),
        pytest.param("ftp://host/file", "not an address that can be read", 2, id="no-web-address"),
        pytest.param("http://[", "not an address that can be read", 2, id="no-address"),
        pytest.param("http://127.0.0.1:9/f", "127.0.0.1 cannot be reached", 1, id="nobody-there"),
    ],
)
def test_where_a_model_cannot_be_taken_from_is_said(tmp_path: Path, source: str, says: str, code: int) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    (tmp_path / "other").write_bytes(b"12345")
    done = knapper("models", "get", available()[0].name, "--from", source, cwd=tmp_path, environment=home)
    assert (done.returncode, says in done.stderr, done.stdout) == (code, True, "")
    assert not partial(tmp_path).exists()


def test_both_local_models_are_listed_and_the_abler_one_is_named_as_next(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = knapper("models", "list", cwd=tmp_path, environment=home)
    rows = [row.split() for row in done.stdout.splitlines()]
    assert [(row[0], row[1]) for row in rows] == [
        ("local/qwen2.5-coder-1.5b", "1.12"),
        ("local/qwen2.5-coder-0.5b", "0.49"),
    ]
    assert done.stderr.splitlines() == ["Next: knapper models get local/qwen2.5-coder-1.5b"]


def test_a_removed_model_is_gone_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    folder = tmp_path / "knapper" / "models"
    folder.mkdir(parents=True)
    known = available()[0]
    for suffix in ("", ".verified", ".partial"):
        (folder / f"{known.file}{suffix}").write_bytes(b"1234")
    (folder / "another.gguf").touch()
    (folder / f"{known.file}.of-somebody").touch()
    done = knapper("models", "remove", known.name, "--json", cwd=tmp_path, environment=home)
    assert json.loads(done.stdout)["bytes"] == 12
    assert {file.name for file in folder.iterdir()} == {"another.gguf", f"{known.file}.of-somebody"}
    again = knapper("models", "remove", known.name, cwd=tmp_path, environment=home)
    assert (again.returncode, "Nothing of" in again.stderr) == (2, True)


def test_a_model_that_nobody_knows_is_not_removed(tmp_path: Path) -> None:
    done = knapper("models", "remove", "../../etc", cwd=tmp_path)
    assert (done.returncode, "There is no local model" in done.stderr) == (2, True)


STANDIN = Path(__file__).parents[1] / "kit" / "standin"
NOWHERE = {
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "PIP_NO_INDEX": "1",
    "PIP_FIND_LINKS": "",
    "PIP_CONFIG_FILE": "/dev/null",
}


def engine(more: str = "") -> str:
    """Return code that makes the program find the engine's stand-in."""
    return f"import sys; sys.path.insert(0, {str(STANDIN)!r})\n{more}"


def small(url: str, content: bytes) -> str:
    """Return code that leaves one local model, a small one at this address."""
    data = f"size={len(content)}, sha256={hashlib.sha256(content).hexdigest()!r}, url={url!r}, packages=None"
    return engine(f"""
from dataclasses import replace
from agent_core.model.local import weights
only = (replace(weights.available()[0], {data}),)
weights.available = lambda: only
""")


def folders(tmp_path: Path) -> dict[str, str]:
    return {name: str(tmp_path / "home") for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}


@contextmanager
def serving(content: bytes, asked: list[str]) -> Iterator[str]:
    async def answer(request: Request, answer: Answer) -> None:
        asked.append(request.path)
        await answer.send(200, content, {"Content-Type": "application/octet-stream"})

    server = Server(answer)
    try:
        yield f"http://127.0.0.1:{server.port}/small.gguf"
    finally:
        server.close()


@pytest.mark.parametrize("how", [("--message", "Good morning!"), ()], ids=["message", "pipe"])
def test_a_local_model_that_is_named_is_fetched_and_answers(tmp_path: Path, how: tuple[str, ...]) -> None:
    asked: list[str] = []
    with serving(b"ready", asked) as url:
        runs = [
            knapper(
                *("run", "--model", "local", *how),
                cwd=tmp_path,
                given="" if how else "Good morning!\n",
                environment=folders(tmp_path),
                first=small(url, b"ready"),
            )
            for _ in range(2)
        ]
    for done in runs:
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("Good morning!\n")
    assert "from 127.0.0.1" in runs[0].stderr
    assert "from 127.0.0.1" not in runs[1].stderr
    assert asked == ["/small.gguf"]


def test_a_local_model_that_cannot_be_fetched_says_what_is_missing(tmp_path: Path) -> None:
    around = folders(tmp_path) | NOWHERE
    done = knapper("run", "--model", "local", "--message", "hi", cwd=tmp_path, environment=around, first=engine())
    assert (done.returncode, done.stdout) == (1, "")
    for part in ("could not be fetched: huggingface.co cannot be reached", "is not available", "--from FILE"):
        assert part in done.stderr, part


def test_a_model_that_only_the_settings_name_is_not_fetched_unasked(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text('[model]\nname = "local"\n')
    around = folders(tmp_path) | NOWHERE
    done = knapper("run", "--message", "hi", cwd=tmp_path, environment=around, first=engine())
    assert (done.returncode, done.stdout) == (1, "")
    assert "The weights of qwen2.5-coder-1.5b are not here." in done.stderr
    assert "knapper models get qwen2.5-coder-1.5b" in done.stderr
    assert "huggingface" not in done.stderr


def test_no_weights_are_fetched_where_there_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    around = folders(tmp_path) | NOWHERE
    done = knapper(
        "run",
        "--model",
        "local",
        "--message",
        "hi",
        "-C",
        ".",
        cwd=tmp_path / "bare",
        environment=around,
        first=engine(),
    )
    assert done.returncode == 1
    assert "is not a workspace" in done.stderr
    assert "huggingface" not in done.stderr


def test_local_is_the_best_model_that_is_here_or_else_the_recommended_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    recommended, smaller = available()
    assert named("local") == recommended
    file = partial(tmp_path).with_name(smaller.file)
    file.parent.mkdir(parents=True)
    file.touch()
    os.truncate(file, smaller.size)
    assert named("local") == smaller


def test_the_doctor_says_that_the_weights_of_the_model_are_not_here(tmp_path: Path) -> None:
    around = folders(tmp_path) | {"KNAPPER_MODEL_NAME": "local"}
    done = knapper("doctor", cwd=tmp_path, environment=around, first=engine())
    assert "✗ model: The weights of qwen2.5-coder-1.5b are not here. knapper models get" in done.stdout
