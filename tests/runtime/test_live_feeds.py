"""What is told of a running turn reaches other processes of this user through a socket, and nobody else."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent_core.base import events
from agent_core.runtime.live_feed import LiveFeed, LiveReader, feed_paths

STORE, LINE = "sqlite:///some/state.db", "main"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with TemporaryDirectory() as base:  # a short path, unlike those of pytest
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        yield Path(base)


def own_path() -> Path:
    return feed_paths(STORE, LINE)[0]


def piece(text: str, seq: int = 0) -> events.Text:
    return events.Text(turn="t", step=1, text=text, seq=seq)


async def heard(reader: LiveReader, count: int) -> list[events.Event]:
    told = list[events.Event]()
    async with asyncio.timeout(10):
        while len(told) < count and not reader.is_over:
            await reader.comes.wait()
            reader.comes.clear()
            told += reader.taken()
    return told


async def connected() -> LiveReader:
    reader = await LiveReader.connect(STORE, LINE, asyncio.Event())
    assert reader is not None
    return reader


async def test_who_comes_late_has_the_running_step_from_its_beginning() -> None:
    feed = LiveFeed("t", lambda: None)
    await feed.serve(STORE, LINE)
    feed.tell(piece("before", seq=7))
    feed.tell(piece("a"))
    feed.tell(piece("b"))
    reader = await connected()
    first = await heard(reader, 2)
    feed.tell(piece("c"))
    feed.tell(events.MessageAdded(turn="t", message="m", seq=8))
    told = [*first, *await heard(reader, 2)]
    assert told == [piece("a"), piece("b"), piece("c"), events.MessageAdded(turn="t", message="m")]
    assert told[-1].seq == 8
    await feed.aclose()
    await heard(reader, 1)
    assert reader.is_over


async def test_a_follower_ends_the_turn() -> None:
    ended = asyncio.Event()
    feed = LiveFeed("t", ended.set)
    await feed.serve(STORE, LINE)
    reader = await connected()
    reader.end_turn()
    async with asyncio.timeout(10):
        await ended.wait()
    reader.close()
    await feed.aclose()


def _touch(path: Path) -> None:
    path.touch()


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))


@pytest.mark.parametrize("leave", [_touch, _bind])
async def test_a_file_or_a_socket_of_a_killed_process_in_the_way_is_replaced(
    leave: Callable[[Path], None],
) -> None:
    leave(own_path())
    assert await LiveReader.connect(STORE, LINE, asyncio.Event()) is None
    feed = LiveFeed("t", lambda: None)
    await feed.serve(STORE, LINE)
    assert own_path().stat().st_mode & 0o777 == 0o600
    (await connected()).close()
    await feed.aclose()
    assert not own_path().exists()


async def test_a_folder_in_the_way_leaves_the_journal() -> None:
    own_path().mkdir()
    assert await LiveReader.connect(STORE, LINE, asyncio.Event()) is None
    feed = LiveFeed("t", lambda: None)
    await feed.serve(STORE, LINE)
    feed.tell(piece("a"))
    assert await LiveReader.connect(STORE, LINE, asyncio.Event()) is None
    await feed.aclose()
    assert own_path().is_dir()


_OF_ANOTHER = """
import contextlib, os, socket, sys
end = socket.socket(socket.AF_UNIX)
end.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
end.listen()
print("bound", flush=True)
while True:
    with contextlib.suppress(OSError):  # it has gone
        end.accept()[0].sendall(b'{"knapper": 1, "turn": "t"}\\n')
"""


@contextmanager
def serving(user: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Serve at our path in a process of a user."""
    command = [sys.executable, "-c", _OF_ANOTHER, str(own_path()), str(user)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"bound\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
async def test_a_socket_that_another_user_serves_is_not_read_and_is_replaced() -> None:
    with serving(12345):
        assert await LiveReader.connect(STORE, LINE, asyncio.Event()) is None
        feed = LiveFeed("t", lambda: None)
        await feed.serve(STORE, LINE)
        (await connected()).close()
        await feed.aclose()


async def test_a_process_that_is_stopped_says_nothing_and_its_followers_go_on_without() -> None:
    with serving(os.geteuid()) as stopped:
        stopped.send_signal(signal.SIGSTOP)
        connecting = [
            LiveReader.connect(STORE, LINE, asyncio.Event(), within_s=0.5) for _ in range(150)
        ]  # more than the kernel lets wait
        assert await asyncio.gather(*connecting) == [None] * 150
        stopped.send_signal(signal.SIGCONT)
        (await connected()).close()


@pytest.mark.parametrize("rounds", range(5))
async def test_who_connects_while_the_turn_ends_is_sent_away(rounds: int) -> None:
    feed = LiveFeed("t", lambda: None)
    await feed.serve(STORE, LINE)
    with socket.socket(socket.AF_UNIX) as late:
        late.connect(str(own_path()))
        for _ in range(rounds):
            await asyncio.sleep(0)
        await feed.aclose()
        late.settimeout(5)
        with suppress(ConnectionResetError):
            while await asyncio.to_thread(late.recv, 1_000):
                pass


async def test_the_socket_of_who_took_over_stays() -> None:
    lost, winner = LiveFeed("lost", lambda: None), LiveFeed("winner", lambda: None)
    await lost.serve(STORE, LINE)
    await winner.serve(STORE, LINE)
    await lost.aclose()
    reader = await connected()
    assert reader.turn == "winner"
    reader.close()
    await winner.aclose()
    assert not own_path().exists()


async def test_fifty_followers_hear_all_of_it_in_order() -> None:
    feed = LiveFeed("t", lambda: None)
    await feed.serve(STORE, LINE)
    readers = [await connected() for _ in range(50)]
    told = [piece(str(number)) for number in range(100)]
    for event in told:
        feed.tell(event)
    for reader in readers:
        assert await heard(reader, 100) == told
        reader.close()
    await feed.aclose()


def _open_to_all(folder: Path) -> None:
    folder.chmod(0o755)


def _link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def _file(folder: Path) -> None:
    folder.rmdir()
    folder.touch()


def _of_another(folder: Path) -> None:
    os.chown(folder, 12345, -1)


@pytest.mark.parametrize("change", [_open_to_all, _link, _file, _of_another])
async def test_a_folder_that_others_may_enter_has_no_socket(
    change: Callable[[Path], None],
) -> None:
    if change is _of_another and os.geteuid():
        pytest.skip("only root gives folders away")
    path = own_path()
    change(path.parent)
    assert path not in feed_paths(STORE, LINE)
    feed = LiveFeed("t", lambda: None)
    await feed.serve(STORE, LINE)
    feed.tell(piece("a"))
    (await connected()).close()  # in another one
    await feed.aclose()


def test_a_path_that_is_too_long_for_a_socket_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ("x" * 100)).mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    assert not [path for path in feed_paths(STORE, LINE) if path.is_relative_to(tmp_path)]


@pytest.mark.parametrize("hello", [{"knapper": 99, "version": "9.9", "process": 7}, {}])
async def test_another_version_is_refused_by_its_number_with_what_to_restart(
    hello: dict[str, object],
) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps({**hello, "turn": "t"}).encode() + b"\n")
        writer.close()

    server = await asyncio.start_unix_server(serve, own_path())
    reader = await connected()
    server.close()
    assert reader.is_over
    assert "Restart the older of the two." in reader.warning


@pytest.mark.parametrize("said", [b"", b"no json\n", b"[]\n", b"\xff\n"])
async def test_what_says_nothing_that_is_known_is_not_followed(said: bytes) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_unix_server(serve, own_path())
    assert await LiveReader.connect(STORE, LINE, asyncio.Event()) is None
    server.close()


async def test_events_of_a_later_version_are_left_out() -> None:
    feed = LiveFeed("t", lambda: None)
    await feed.serve(STORE, LINE)
    reader = await connected()
    later = {"seq": 0, "event": {"type": "of_tomorrow", "text": "x"}}
    for writer in [*feed.writers]:
        writer.write(json.dumps(later).encode() + b"\n[]\n")
    feed.tell(piece("a"))
    assert await heard(reader, 1) == [piece("a")]
    reader.close()
    await feed.aclose()
