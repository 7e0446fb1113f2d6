"""A server process answers others while it receives heavy requests."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent_core.interfaces.server.identity import SCOPES
from tests.kit import Repeat, Say, scripted
from tests.kit.drawing import sampled
from tests.kit.pace import least_s
from tests.kit.program import knapper

from .heavy_bodies import PUT_MANY, Crowd, Heavy, all_of_them, crowds, large_answers, sources
from .test_the_process import Process, ended

MOST_S = 0.5
MANY_BODIES = [*all_of_them(), *sources()]
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Listener:
    """Sends the server trivial requests all the time and records the longest time without an answer.

    Time without CPU is not the server's fault: each wait counts only as far as the server computed.
    """

    url: str
    pid: int
    longest_s: float = 0.0
    _is_over: threading.Event = field(default_factory=threading.Event)

    def listen(self) -> None:
        """Send requests until stopped."""
        place = urlsplit(self.url)
        question = f"GET /page/none HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
        while not self._is_over.is_set():
            with socket.create_connection((place.hostname or "", place.port or 0), timeout=60) as connection:
                while not self._is_over.wait(0.005):
                    began, computed = time.perf_counter(), self._computed_s()
                    connection.sendall(question)
                    if not connection.recv(1 << 16):
                        break
                    waited = time.perf_counter() - began
                    if waited > self.longest_s:
                        self.longest_s = max(self.longest_s, min(waited, self._computed_s() - computed))

    def stop(self) -> None:
        """Stop."""
        self._is_over.set()

    def _computed_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@dataclass
class Silence:
    """A server, and how to measure its longest silence."""

    process: Process
    key: str

    def while_asked(self, ask: Callable[[], object]) -> float:
        """Return the longest silence, in seconds, while `ask` runs."""
        listener = Listener(self.process.told["url"], self.process.pid)
        with ThreadPoolExecutor(1) as beside:
            listening = beside.submit(listener.listen)
            try:
                ask()
            finally:
                listener.stop()
            listening.result()
        return listener.longest_s

    def send(self, heavy: Heavy) -> int:
        """Return the status of the response to a request."""
        place = urlsplit(self.process.told["url"])
        lines = (
            f"{heavy.method} {heavy.path} HTTP/1.1",
            f"Host: {place.netloc}",
            f"Authorization: Bearer {self.key}",
            "Accept: application/json, text/event-stream",
            "Connection: close",
            f"Content-Length: {len(heavy.body)}",
            *heavy.headers,
        )
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=170) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + heavy.body)
            answer = connection.recv(1 << 16)
            while connection.recv(1 << 20):
                pass
        return int(answer.split(b" ")[1])


@pytest.fixture(scope="module")
def silence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Silence]:
    root = tmp_path_factory.mktemp("silence")
    scopes = [word for scope in SCOPES for word in ("--scope", scope)]
    assert knapper("init", str(root), cwd=root).returncode == 0
    key = knapper("tokens", "add", "me", "--json", *scopes, cwd=root).stdout.split('"token": "')[1].split('"')[0]
    with scripted([Repeat(Say("done"))]) as model, ended(Process(root, model, key)) as process:
        silence = Silence(process, key)
        assert silence.send(PUT_MANY) == 200
        yield silence


@pytest.mark.sampled
@pytest.mark.parametrize("heavy", [pytest.param(one, id=one.name) for one in sampled(MANY_BODIES, 14, at=5)])
def test_others_are_answered_while_a_heavy_request_is_taken_in(silence: Silence, heavy: Heavy) -> None:
    assert least_s(MOST_S, lambda: silence.while_asked(lambda: silence.send(heavy))) < MOST_S


@pytest.mark.sampled
@pytest.mark.parametrize("heavy", [pytest.param(one, id=one.name) for one in sampled(large_answers(), 2)])
def test_others_are_answered_while_a_large_answer_is_written(silence: Silence, heavy: Heavy) -> None:
    statuses = list[int]()
    assert least_s(MOST_S, lambda: silence.while_asked(lambda: statuses.append(silence.send(heavy)))) < MOST_S
    assert set(statuses) == {200}


@pytest.mark.sampled
@pytest.mark.parametrize("crowd", [pytest.param(one, id=one.name) for one in sampled(crowds(), 3)])
def test_others_are_answered_while_many_heavy_requests_come_at_once(silence: Silence, crowd: Crowd) -> None:
    def all_at_once() -> None:
        with ThreadPoolExecutor(crowd.count) as clients:
            assert all(status < 500 for status in clients.map(silence.send, [crowd.heavy] * crowd.count))

    assert least_s(MOST_S, lambda: silence.while_asked(all_at_once)) < MOST_S
