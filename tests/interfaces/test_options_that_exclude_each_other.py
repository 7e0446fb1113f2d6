"""Options that cannot be given together are refused, and nothing is done."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from tests.interfaces.support import COUNT_VOWELS
from tests.kit.program import Program, knapper
from tests.kit.terminal import Terminal

EDIT = ("functions", "edit", "count_vowels")
MCP = ("mcp", "add", "x")
UNUSED_BY_A_URL = (("--write", "a"), ("--unconfined",))
EXCLUDED = [
    ((*EDIT, "--old", "letter"), "--old and --new belong together."),
    (
        (*EDIT, "--old", "letter", "--new", "sign", "--file", "gone.py"),
        "--old and --file exclude each other.",
    ),
    (("functions", "tend", "--apply", "--undo"), "--apply and --undo exclude each other."),
    (
        ("functions", "check", "mine.py", "--sarif", "--json"),
        "--json and --sarif exclude each other.",
    ),
    *(((*MCP, *more, "https://localhost:1/mcp"), "is not confined") for more in UNUSED_BY_A_URL),
    ((*MCP, "--bearer", "API", "true"), "A command gets no bearer token."),
    (("agents", "watch", "--seconds", "nan"), "nan"),
    (("schema", "functions"), "is a directory"),
]


def test_what_would_be_ignored_is_refused(grown: Path) -> None:
    (grown / "mine.py").write_text(COUNT_VOWELS)
    wrong = {}
    for words, says in EXCLUDED:
        done = knapper(*words, cwd=grown, environment={"EDITOR": "true"})
        if done.returncode != 2 or says not in done.stdout + done.stderr:
            wrong[" ".join(words)] = (done.returncode, done.stdout[-200:], done.stderr[-300:])
    assert not wrong, "\n".join(wrong)


class Unseen(Terminal):
    """A terminal that does not show the program's standard error, which is a file."""

    def _start(
        self, command: Sequence[str], slave: int, cwd: Path, environment: Mapping[str, str]
    ) -> Program:
        with (cwd / "errors").open("wb") as errors:
            return Program(
                command, [slave, slave, errors.fileno()], cwd=cwd, environment=environment
            )


UNASKED = (
    (
        ("functions", "grant", "count_vowels", "--network", "localhost"),
        "",
        "There is no terminal for the question.",
    ),
    (
        ("run", "--plain", "--model", "tour"),
        "/delete count_vowels\n/exit\n",
        "no terminal to ask at",
    ),
)


def test_a_question_is_not_asked_where_standard_error_is_a_file(grown: Path) -> None:
    for words, typed, says in UNASKED:
        unseen = Unseen(
            words, cwd=grown, environment={"HOME": str(grown), "XDG_DATA_HOME": str(grown)}
        )
        with closing(unseen):
            for row in typed.splitlines():  # one by one: lines that arrive together are a message
                unseen.wait_for("Then type")
                unseen.line(row)
                time.sleep(1)
            code = unseen.exit_code(20)
            shown = (grown / "errors").read_text() + unseen.scrolled()
            assert (code, says in shown) == (1 if "run" in words else 2, True), shown
            assert (grown / "functions" / "words.py").exists()
