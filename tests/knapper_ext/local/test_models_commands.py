"""Downloading and removing a local model: the progress, the time left, and what is gone afterwards."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from knapper.terminal.progress import Download, progress_text
from knapper_ext.local.weights import available
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


PROGRESS: dict[tuple[int, int | None, float | None], str] = {
    (0, 100 * MB, None): "0 of 100 MB, 0%",
    (40 * MB, 100 * MB, 2.0 * MB): "40 of 100 MB, 40%, 2.0 MB/s, 30 s left",
    (400 * MB, 1117 * MB, 1.0 * MB): "400 of 1117 MB, 35%, 1.0 MB/s, 11 min 57 s left",
    (5 * MB, None, 1.0 * MB): "5 MB, 1.0 MB/s",
}


def test_progress_says_what_is_known_and_without_a_terminal_each_tenth_has_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for given, text in PROGRESS.items():
        assert progress_text(*given) == text
    watch = Watch()
    with Download(watch) as download:
        download.hear(50 * MB, 100 * MB, "from a folder, continued")
        for done in range(51, 101):
            watch.now += 0.5
            download.hear(done * MB, 100 * MB, "")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "from a folder, continued"
    assert [text.split(",")[1].strip() for text in lines[1:]] == [
        "50%",
        "60%",
        "70%",
        "80%",
        "90%",
        "100%",
    ]
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


def test_where_a_model_cannot_be_taken_from_is_said(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    (tmp_path / "other").write_bytes(b"12345")
    for source, says, code in (
        ("nowhere", "nowhere is not there", 2),
        ("other", "it has 5 bytes, not 1,117,320,768", 2),
        ("ftp://host/file", "not an address that can be read", 2),
        ("http://127.0.0.1:9/f", "127.0.0.1 cannot be reached", 1),
    ):
        done = knapper(
            "models", "get", available()[0].name, "--from", source, cwd=tmp_path, environment=home
        )
        assert (done.returncode, says in done.stderr, done.stdout) == (code, True, ""), (
            source,
            done.stderr,
        )
        assert not partial(tmp_path).exists()


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
    unknown = knapper("models", "remove", "../../etc", cwd=tmp_path, environment=home)
    assert (unknown.returncode, "There is no local model" in unknown.stderr) == (2, True)


STANDIN = Path(__file__).parents[2] / "kit" / "standin"


def engine(more: str = "") -> str:
    """Return code that makes the program find the engine's stand-in."""
    return f"import sys; sys.path.insert(0, {str(STANDIN)!r})\n{more}"


def small(url: str, content: bytes) -> str:
    """Return code that leaves one local model, a small one at this address."""
    data = f"size={len(content)}, sha256={hashlib.sha256(content).hexdigest()!r}, url={url!r}, packages=None"
    return engine(f"""
from dataclasses import replace
from knapper_ext.local import weights
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


def test_a_local_model_that_is_named_is_fetched_once_and_answers(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    asked: list[str] = []
    run = ("run", "--model", "local")
    with serving(b"ready", asked) as url:
        around: dict[str, Any] = {
            "cwd": tmp_path,
            "environment": folders(tmp_path),
            "first": small(url, b"ready"),
        }
        runs = [
            knapper(*run, "--message", "Good morning!", **around),
            knapper(*run, given="Good morning!\n", **around),
        ]
    for done in runs:
        assert (done.returncode, done.stdout[-14:]) == (0, "Good morning!\n"), done.stderr
    assert ["from 127.0.0.1" in done.stderr for done in runs] == [True, False]
    assert asked == ["/small.gguf"]


def test_a_local_model_of_the_settings_is_not_fetched_unasked(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text('[model]\nname = "local"\n')
    for words in (("run", "--message", "hi"), ("doctor",)):
        done = knapper(*words, cwd=tmp_path, environment=folders(tmp_path), first=engine())
        said = done.stdout + done.stderr
        assert (done.returncode, "huggingface" in said) == (1, False), said
        assert "The weights of qwen2.5-coder-1.5b are not here." in said
        assert "knapper models get" in said
