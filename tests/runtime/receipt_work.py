"""Shared by the tests of receipts: a workspace whose functions have effects, and a model that uses all of them."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.agents.helper_files import FINDER, give, write
from tests.interfaces.support import flags
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.desk import VOWELS, another
from tests.kit.program import knapper
from tests.kit.terminal import Terminal, terminal

REPORT = '''\
def report(self, url: str, elsewhere: str) -> str:
    """Fetch a page twice and another one, and write down what came.

    Args:
        url: The page.
        elsewhere: The other one.
    """
    texts = [self.fetch(url).text(), self.fetch(url).text()]
    try:
        texts.append(self.fetch(elsewhere).text())
    except PermissionError:
        texts.append("refused")
    with open("out/report.txt", "w") as file:
        file.write(" ".join(texts))
    return "written"
'''
REFUSED = "evil.example"
ASKED = f"may report fetch from {REFUSED}? no"
NOTHING = "nothing outside this conversation"


class Place(str):
    """The `host:port` of a site, and the number of its requests."""

    heard = 0


@contextmanager
def a_site(*, is_silent: bool = False) -> Iterator[Place]:
    """Run a site that says hello, or that never answers."""
    ended = threading.Event()

    class Hello(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place.heard += 1
            if is_silent:
                ended.wait(60)
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            with suppress(OSError):  # the client was killed in the meantime
                self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        place = Place(f"127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield place
        finally:
            ended.set()
            server.shutdown()
            thread.join()


@contextmanager
def prepared_place(root: Path) -> Iterator[Place]:
    """Run a site that `report` in a workspace may reach."""
    with a_site() as place:
        prepared(root, place)
        yield place


def kill(screen: Terminal) -> None:
    """Kill a program as a power failure would."""
    os.kill(screen.process.pid, signal.SIGKILL)
    screen.process.wait()


def killed(root: Path, script: Script) -> None:
    """Run a prompt whose user rejects the one question, and kill it when its model has played the whole script."""
    with scripted(script) as model, terminal("run", *flags(model), cwd=root) as screen:
        screen.wait_for("sandbox")
        screen.line("Go.")
        screen.wait_for("asks to")
        screen.answer("n")
        screen.wait(lambda: len(model.requests) == len(script), "the last request")
        kill(screen)


def prepared(root: Path, place: str) -> None:
    """Create a workspace with `report`, which has its grants, and with a helper that can call it."""
    (root / "knapper.toml").touch()
    (root / "functions").mkdir()
    (root / "functions" / "words.py").write_text(VOWELS, "utf-8")
    (root / "functions" / "reports.py").write_text(REPORT, "utf-8")
    write(root, "reporter", FINDER.replace('["count_vowels"]', '["count_vowels", "report"]'))
    granted = knapper(
        "functions", "grant", "report", "--network", place, "--write", "out/", "-y", cwd=root
    )
    assert granted.returncode == 0, granted.stderr


def reporting(place: str) -> Ask:
    """Return the call that fetches twice, is refused a third time, and writes a file."""
    return Ask(Wanted("report", {"url": f"http://{place}/", "elsewhere": f"http://{REFUSED}/"}))


def growing() -> Ask:
    """Return the calls that create two functions."""
    return Ask(*(_create(name) for name in ("vowels_of", "vowels_in")))


def _create(name: str) -> Wanted:
    code = {"function_name": name, "function_code_with_docstring": another(name)}
    return Wanted("create_function", code)


def helping(place: str) -> Script:
    """Return the call of a helper, which calls `report` and returns its result."""
    return [Ask(Wanted("reporter", {"text": "sky"})), reporting(place), give(["written"])]


def reported(place: str) -> dict[str, object]:
    """Return the receipt of `reporting`."""
    return {
        "wrote": ["out/report.txt"],
        "reached": {place: 2},
        "refused": {REFUSED: 1},
        "called": {"report": 1},
    }


GROWN = {"created": ["vowels_of", "vowels_in"]}


def by_helper(place: str) -> dict[str, object]:
    """Return the receipt of `helping`."""
    return {**reported(place), "called": {"report": 1, "reporter": 1}}


def conversation(place: str) -> Script:
    """Return a script of four turns: one that does nothing, whatever it says, and three that do something."""
    claims = Say("I have emailed your boss.")
    return [
        claims,
        growing(),
        Say("Two."),
        reporting(place),
        Say("Written."),
        *helping(place),
        Say("Done."),
    ]
