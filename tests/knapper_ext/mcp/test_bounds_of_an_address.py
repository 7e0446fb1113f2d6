"""A server that sends too much or without end: the client stays small, stops in time, and reports why."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from knapper_ext.mcp.servers import ServerBook, ServerEntry
from tests.kit.drawing import crossed, sampled
from tests.kit.program import Program, surroundings

from .hostile import DRIPS, HONEST, TEXT, WHAT

SERVER = Path(__file__).with_name("hostile.py")
MOST_MIB = 300
MOST_S = 30.0
SLOW = {"slow-headers", "continue", "silence", "slowly", "slow-event"}
WHOLE = {"schemas", "a-long-session"}  # within the limits, so it is read
READ = {
    *WHOLE,
    "descriptions",
    "empty-pages",
    "one-name",
    "a-schema-of-itself",
}  # the valid part is read
STREAMED = [
    "blanks-in-events",
    "comments",
    "one-event",
    "garbage",
    "questions",
    "progress",
    "large-log-lines",
]


@dataclass(frozen=True)
class Ran:
    """A program's output, exit code, peak memory and duration."""

    said: str
    code: int | None
    mib: int
    seconds: float


@contextmanager
def hostile(what: str, where: str) -> Iterator[str]:
    """Yield the address of a server that does this to requests of this method."""
    with subprocess.Popen(
        [sys.executable, str(SERVER), what, where], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        finally:
            server.kill()


def ran(root: Path, *arguments: str) -> Ran:
    """Run the program to its end and measure it."""
    with TemporaryFile() as nothing, TemporaryFile() as out:
        streams = [nothing.fileno(), out.fileno(), out.fileno()]
        program = Program(arguments, streams, cwd=root, environment=surroundings({}))
        began, most = time.monotonic(), 0
        while (code := program.poll()) is None and time.monotonic() < began + 4 * MOST_S:
            most = max(most, peak_mib(program.pid))
            time.sleep(0.02)
        seconds = time.monotonic() - began
        program.kill()
        out.seek(0)
        return Ran(out.read().decode(), code, most, seconds)


def peak_mib(process: int) -> int:
    """Return a process's peak memory so far."""
    try:
        rows = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(row.split()[1]) >> 10 for row in rows if row.startswith("VmHWM")), 0)


def added(root: Path, url: str) -> Ran:
    """Add the server."""
    (root / "knapper.toml").touch()
    return ran(root, "mcp", "add", "strange", url, "--json")


def is_bounded(done: Ran) -> bool:
    """Check the promised limits, and that the program ended without a traceback."""
    assert done.mib <= MOST_MIB
    assert done.seconds <= MOST_S
    assert "Traceback" not in done.said
    assert done.code is not None
    return True


@pytest.mark.sampled
@pytest.mark.parametrize(
    "what",
    [
        *sampled([what for what in WHAT if what not in SLOW], 17),
        *(pytest.param(what, marks=pytest.mark.slow) for what in sorted(SLOW)),
    ],
)
def test_what_is_sent_in_place_of_a_list_of_tools_is_bounded(tmp_path: Path, what: str) -> None:
    with hostile(what, "tools/list") as url:
        done = added(tmp_path, url)
    assert is_bounded(done)
    assert (done.code == 0) == (what in READ), done.said
    if what in READ:
        assert bool(json.loads(done.said)["problems"]) == (what not in WHOLE)
    else:
        assert is_refused(tmp_path, done)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("what", "where"),
    sampled(
        crossed(
            ["tiny-tools", "redirects", "headers", "blanks-in-events", "a-packed-bomb"],
            ["initialize", "everything"],
        ),
        6,
    ),
)
def test_a_greeting_without_end_is_bounded(tmp_path: Path, what: str, where: str) -> None:
    with hostile(what, where) as url:
        done = added(tmp_path, url)
    assert is_bounded(done)
    assert is_refused(tmp_path, done)


def called(root: Path, what: str) -> Ran:
    """Call an approved tool to which the server answers this way."""
    with hostile(what, "tools/call") as url:
        (root / "knapper.toml").touch()
        book, entry = ServerBook(root), ServerEntry(url=url)
        book.put("strange", entry)
        book.approve("strange", entry, {"echo": {"description": "Repeat.", "parameters": TEXT}})
        return ran(root, "functions", "call", "strange__echo", "--args", '{"text": "a"}')


@pytest.mark.sampled
@pytest.mark.parametrize(
    "what", sampled(["blanks", "reconnecting", "news-of-the-list", *STREAMED], 11)
)
def test_what_is_sent_in_place_of_a_result_is_bounded(tmp_path: Path, what: str) -> None:
    assert is_bounded(done := called(tmp_path, what))
    assert "strange" in done.said


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=() if what == "an-answer-to-another" else pytest.mark.slow)
        for what in DRIPS
    ],
)
def test_what_drips_within_a_call_ends_long_before_the_call_would(
    tmp_path: Path, what: str
) -> None:
    assert is_bounded(done := called(tmp_path, f"drip:{what}"))
    assert (done.code, "The MCP server `strange` did not answer `echo`: it" in done.said) == (
        1,
        True,
    ), done.said


@pytest.mark.slow
@pytest.mark.parametrize("where", ["initialize", "tools/list"])
@pytest.mark.parametrize("what", DRIPS)
def test_what_drips_before_anything_is_approved_is_bounded(
    tmp_path: Path, what: str, where: str
) -> None:
    with hostile(f"drip:{what}", where) as url:
        assert is_bounded(done := added(tmp_path, url))
    assert is_refused(tmp_path, done)


@pytest.mark.slow
@pytest.mark.parametrize("what", HONEST)
def test_a_call_that_takes_long_and_says_so_now_and_then_returns(tmp_path: Path, what: str) -> None:
    done = called(tmp_path, f"honest:{what}")
    assert (done.code, "fine" in done.said) == (0, True), done.said


def is_refused(root: Path, done: Ran) -> bool:
    """Check that the reason is given, and that nothing of the server is stored."""
    message = json.loads(done.said)["error"]["message"]
    return (
        bool(message.startswith("The MCP server `strange` cannot be used: "))
        and not (root / "mcp.toml").exists()
    )


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "what",
    sampled(["a-bomb-in-events", "reconnecting", "redirects", "news-of-the-list", *STREAMED], 11),
)
def test_a_stream_beside_the_answers_is_bounded_and_holds_up_nothing(
    tmp_path: Path, what: str
) -> None:
    with hostile(what, "GET") as url:
        assert is_bounded(done := added(tmp_path, url))
    assert done.code in (0, 1)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("what", sampled(["headers", "silence", "blanks", "continue", "slowly"], 5))
def test_the_farewell_is_bounded(tmp_path: Path, what: str) -> None:
    with hostile(what, "DELETE") as url:
        done = added(tmp_path, url)
    assert is_bounded(done)
    assert done.code == 0


@pytest.mark.slow
def test_a_schema_of_results_that_takes_forever_to_compare_is_not_compared(tmp_path: Path) -> None:
    done = called(tmp_path, "a-result")
    assert is_bounded(done)
    assert (done.code, "aaaa" in done.said) == (0, True)
