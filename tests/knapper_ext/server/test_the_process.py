"""The server process: its first line of output, its end by a signal, and a kill in mid-turn."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from agent_core import Workspace
from agent_core.base import machine
from agent_core.base.seal import Sealer
from tests.kit import Expect, Say, ScriptedModel, Stall
from tests.kit.program import Program, knapper, surroundings
from tests.kit.terminal import KNAPPER, terminal

from .conftest import Frames, ends
from .programs import has_once


class Process:
    """A running `knapper serve`: forked from a process that has imported it, or started from scratch."""

    def __init__(
        self,
        root: Path,
        model: ScriptedModel,
        token: str,
        more: tuple[str, ...] = (),
        *,
        from_nothing: bool = False,
    ) -> None:
        named = ("--base-url", model.base_url, "--model", "scripted", *more)
        arguments = ["-C", str(root), "serve", "--json", "--port", "0", *named]
        read_end, out = os.pipe()
        self._process: Program | subprocess.Popen[bytes]
        if from_nothing:
            self._process = subprocess.Popen([*KNAPPER, *arguments], stdout=out)
        else:
            self._process = Program(arguments, [0, out, 2], cwd=Path.cwd(), environment=os.environ)
        os.close(out)
        self._out = os.fdopen(read_end)
        self.told: dict[str, Any] = json.loads(self._out.readline())
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx2.Client(base_url=self.told["url"], headers=headers, timeout=60)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def end(self, how: int) -> int:
        """Send a signal, and return the exit code."""
        self.client.close()
        os.kill(self._process.pid, how)
        code = self._process.wait(60)
        self._out.close()
        return code

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        os.kill(self._process.pid, signal.SIGINT)

    def say(self, text: str) -> None:
        """Send a message."""
        assert (
            self.client.post("/api/v1/agents/main/messages", json={"text": text}).status_code == 202
        )

    def frames(self, until: Callable[[Frames], bool], after: int = 0) -> Frames:
        """Return the stream's frames until `until` holds."""
        frames: Frames = []
        with self.client.stream("GET", f"/api/v1/agents/main/events?after={after}") as answer:
            number: int | None = None
            data: dict[str, Any] | None = None
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    number = int(line[4:])
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                elif not line and (number is not None or data is not None):
                    frames.append((number, data))
                    number = data = None
                    if until(frames):
                        break
        return frames


def writes(text: str) -> Callable[[Frames], bool]:
    """Return a condition: the model has begun this answer, so no later turn gets that step of the script."""
    return lambda frames: any(
        data is not None and str(data.get("text", "")).startswith(text) for _, data in frames
    )


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, str]:
    """A workspace and a token for it."""
    Workspace.create(tmp_path)
    made = knapper(
        "tokens", "add", "me", "--json", "--scope", "chat", "--scope", "read", cwd=tmp_path
    )
    return tmp_path, json.loads(made.stdout)["token"]


@contextmanager
def ended(process: Process, how: int = signal.SIGTERM) -> Iterator[Process]:
    """Yield the process and end it with the block."""
    try:
        yield process
    finally:
        process.end(how)


def test_login_prints_links_of_the_running_servers(
    place: tuple[Path, str], scripted: Callable[..., ScriptedModel]
) -> None:
    root, token = place
    none = knapper("login", cwd=root)
    assert (none.returncode, none.stdout, "knapper serve" in none.stderr) == (2, "", True)
    process = Process(root, scripted([]), token)
    assert {*process.told} == {"url", "login", "workspace"}
    assert process.told["workspace"] == str(root)
    url = process.told["url"]
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port)) as client:
        assert min(_answer_s(client, address.netloc, token) for _ in range(20)) < 0.03
    second = knapper("serve", "--port", str(address.port), "--json", cwd=root)
    assert (second.returncode, "another program uses it" in second.stdout) == (2, True)
    refused = knapper(
        "serve", "--port", "0", "--tls-cert", "knapper.toml", "--tls-key", "no.pem", cwd=root
    )
    assert (refused.returncode, refused.stdout, "cannot be used" in refused.stderr) == (
        2,
        "",
        True,
    ), refused
    links = [json.loads(knapper("login", "--json", cwd=root).stdout)["login"]]
    links.append(knapper("login", cwd=root).stdout.strip())
    assert len({process.told["login"], *links}) == 3
    for link in links:
        assert link.startswith(url)
        assert (
            httpx2.post(f"{url}/login", json={"code": link.partition("code=")[2]}).status_code
            == 200
        )
    far = knapper("--server", url, "--token", token, "login", cwd=root)
    assert (far.returncode, "all scopes" in far.stderr) == (1, True)
    other = Process(root, scripted([]), token)
    both = json.loads(knapper("login", "--json", cwd=root).stdout)["logins"]
    for link, running in zip(both, (process, other), strict=True):
        assert link.startswith(running.told["url"])
    process.end(signal.SIGKILL)  # its file remains; whoever has its port now is not asked
    assert knapper("login", cwd=root).stdout.startswith(other.told["url"])
    assert other.end(signal.SIGTERM) == 0
    assert knapper("login", cwd=root).returncode == 2


@pytest.mark.parametrize(
    "way", ["unsealed", "sealed elsewhere", "readable by others", "a link", "not locked"]
)
def test_login_asks_no_server_that_a_folder_from_elsewhere_names(
    place: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory, way: str
) -> None:
    root, _ = place
    file = root / ".knapper" / "serving.json"
    told = ["http://127.0.0.1:9/", "a token", ""]
    seal = Sealer(tmp_path_factory.mktemp("other") if way == "sealed elsewhere" else root).seal(
        "serving", *told
    )
    names = ("url", "token", "certificate", "seal")[: 3 if way == "unsealed" else 4]
    real = root / "real.json" if way == "a link" else file
    real.write_text(json.dumps(dict(zip(names, [*told, seal], strict=False))))
    real.chmod(0o644 if way == "readable by others" else 0o600)
    if way == "a link":
        file.symlink_to(real)
    descriptor = os.open(real, os.O_RDWR)
    if way != "not locked":
        assert machine.try_lock(descriptor)
    try:
        found = knapper("login", cwd=root)
    finally:
        os.close(descriptor)
    assert (found.returncode, "No server of" in found.stderr) == (2, True), found


@pytest.mark.slow
def test_knapper_login_trusts_the_servers_own_certificate_and_no_other(
    place: tuple[Path, str], scripted: Callable[..., ScriptedModel], tmp_path: Path
) -> None:
    root, token = place
    for name in ("ours", "other"):
        made = f"openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN={name}.example"
        files = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        subprocess.run([*made.split(), *files], check=True, capture_output=True)
    tls = ("--tls-cert", str(tmp_path / "ours.pem"), "--tls-key", str(tmp_path / "ours.key"))
    with ended(Process(root, scripted([]), token, tls)):
        done = knapper("login", cwd=root)
        assert done.stdout.startswith("https://127.0.0.1:")
        (tmp_path / "ours.pem").write_text((tmp_path / "other.pem").read_text())
        refused = knapper("login", cwd=root)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "certificate" in refused.stderr.lower()


def _answer_s(client: socket.socket, host: str, token: str) -> float:
    """Return the response time for a client that delays its acknowledgments by 40 ms or more."""
    began = time.monotonic()
    client.sendall(
        f"GET /api/v1/agents HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n".encode()
    )
    got = b""
    while not got.endswith(b"}"):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        got += client.recv(1 << 16)
    return time.monotonic() - began


def test_a_stream_ends_with_the_server(
    place: tuple[Path, str], scripted: Callable[..., ScriptedModel]
) -> None:
    root, token = place
    process = Process(root, scripted([Say("Hello.")]), token)
    process.say("hello")
    with process.client.stream("GET", "/api/v1/agents/main/events") as answer:
        lines = answer.iter_lines()
        next(line for line in lines if "turn_ended" in line)
        process.interrupt()
        assert [*lines] in ([], [""])
    assert process.end(signal.SIGCONT) == 0


@pytest.mark.slow
def test_a_program_that_asks_again_after_a_kill_is_answered_in_the_history_that_it_began(
    place: tuple[Path, str], scripted: Callable[..., ScriptedModel]
) -> None:
    root, token = place
    answered = Expect(Say("One."), has_once("Count to one."))
    model = scripted([Stall(60, "It comes in pieces"), answered])
    body = {
        "model": "main",
        "messages": [{"role": "user", "content": "Count to one."}],
        "stream": True,
    }
    first = Process(root, model, token)
    with first.client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert any('"content": "I' in line for line in answer.iter_lines())
        first.end(signal.SIGKILL)
    histories = "select name from agent where name like 'main--chat-%'"
    with ended(Process(root, model, token)) as second:
        assert '"One."' in second.client.post("/v1/chat/completions", json=body).text
        with closing(sqlite3.connect(root / ".knapper" / "state.db")) as state:
            assert len(state.execute(histories).fetchall()) == 1


@pytest.mark.slow
def test_after_a_kill_in_mid_turn_no_event_is_missing_and_none_comes_twice(
    place: tuple[Path, str], scripted: Callable[..., ScriptedModel]
) -> None:
    root, token = place
    model = scripted([Say("One."), Stall(60, "Two comes"), Say("Two."), Say("Three.")])
    first = Process(root, model, token)
    first.say("first")
    before = first.frames(ends(1))
    first.say("second")
    before = first.frames(writes("T"))
    first.end(signal.SIGKILL)
    with ended(Process(root, model, token)) as second:
        last = max(number for number, _ in before if number is not None)
        after = second.frames(ends(1), last)
        assert after[-1][1] is not None
        assert after[-1][1]["reason"] == "interrupted"
        again = second.frames(ends(2), last)  # what was accepted is answered, by itself
        assert again[-1][1] is not None
        assert again[-1][1]["reply"] == "Two."
        second.say("third")
        whole = second.frames(ends(4))
    numbers = [number for number, _ in whole if number is not None]
    assert [number for number, _ in before if number] == numbers[: len([n for n, _ in before if n])]
    assert numbers == sorted(set(numbers))
    assert whole[-1][1] is not None
    assert whole[-1][1]["reply"] == "Three."


@pytest.mark.slow
def test_a_server_without_a_model_says_so_and_how_to_set_one_and_which_files_are_rejected(
    tmp_path: Path,
) -> None:
    root = tmp_path / "work"
    assert knapper("init", str(root), cwd=tmp_path).returncode == 0
    Workspace.create(tmp_path / "other")
    refused = knapper("serve", "--host", "0.0.0.0", "--json", cwd=tmp_path / "other")
    assert (refused.returncode, "knapper tokens add" in refused.stdout) == (2, True)
    (root / "functions" / "broken.py").write_text("def broken(:\n")
    (told, out), environment = os.pipe(), surroundings({"HOME": str(tmp_path)})
    with TemporaryFile() as err:
        arguments = ["-C", str(root), "serve", "--port", "0"]
        served = Program(arguments, [0, out, err.fileno()], cwd=tmp_path, environment=environment)
        os.close(out)
        assert os.read(told, 1 << 16)
        os.kill(served.pid, signal.SIGINT)
        served.wait(60)
        os.close(told)
        err.seek(0)
        said = err.read().decode()
    assert "No turn can be taken yet: No model is set and none was found." in said
    assert "knapper configure" in said
    assert "✗ rejected: functions/broken.py:1" in said


def test_an_idle_server_shuts_nobody_out_and_goes_on_from_what_others_said(
    place: tuple[Path, str], scripted: Callable[..., ScriptedModel]
) -> None:
    root, token = place
    model = scripted([Say("One."), Say("Two."), Expect(Say("Three."), has_once("zebra"))])
    with ended(Process(root, model, token)) as server:
        server.say("first")
        server.frames(ends(1))
        named = ("--base-url", model.base_url, "--model", "scripted")
        ran = knapper("run", *named, "--message", "zebra", cwd=root)
        assert (ran.returncode, "Two." in ran.stdout) == (0, True), ran.stderr
        server.say("third")
        told = server.frames(ends(3))
        assert told[-1][1] is not None
        assert told[-1][1]["reply"] == "Three.", told[-6:]


def test_a_message_that_a_server_takes_is_answered_in_the_turn_of_a_prompt_and_streamed(
    place: tuple[Path, str], scripted: Callable[..., ScriptedModel]
) -> None:
    root, token = place
    slow = Say("Slow and steady.", pause_s=0.5)
    model = scripted([slow, Expect(Say("Both."), has_once("zebra"))])
    with (
        terminal("run", "--base-url", model.base_url, "--model", "scripted", cwd=root) as screen,
        ended(Process(root, model, token)) as server,
    ):
        screen.wait_for("/help lists")
        screen.line("first")
        screen.wait_for("Slow")
        server.say("zebra")
        told = server.frames(lambda frames: bool(frames[-1][1]) and "Both." in str(frames[-1][1]))
        assert told
        screen.wait_for("Both.")
