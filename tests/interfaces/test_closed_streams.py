"""A program whose standard streams are closed, full or left by their reader."""

import subprocess
from pathlib import Path

import pytest

from tests.interfaces.support import HERE, flags
from tests.kit import Repeat, Say, scripted
from tests.kit.drawing import sampled
from tests.kit.program import surroundings
from tests.kit.terminal import KNAPPER


def shell(command: str, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = command.replace("KNAPPER", " ".join(KNAPPER)).replace("FLAGS", " ".join(arguments))
    return subprocess.run(
        ["bash", "-c", script],
        cwd=cwd,
        env=surroundings({"PYTHONPATH": HERE, "PATH": "/usr/bin:/bin"}),
        text=True,
        capture_output=True,
        timeout=50,
        check=False,
    )


CASES = {
    "KNAPPER init && KNAPPER functions list --json > /dev/full": (
        1,
        "cannot be written: No space",
    ),  # beyond a buffer
    "KNAPPER run FLAGS <&-": (0, ""),
    "KNAPPER run FLAGS --message - <&-": (2, "The message is empty."),
    "KNAPPER run FLAGS --message hi >&-": (0, "1 step"),
    "KNAPPER run FLAGS --message hi <&- >&- 2>&-": (0, ""),
    "KNAPPER --version >&-": (0, ""),
    "KNAPPER run FLAGS --message hi > /dev/full": (1, "cannot be written: No space"),
    "KNAPPER run FLAGS --message hi 2> /dev/full": (1, ""),
    "KNAPPER --help > /dev/full": (1, "cannot be written: No space"),
    "PYTHONUNBUFFERED=1 KNAPPER functions list --json > /dev/full": (
        1,
        "cannot be written: No space",
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("command", sampled(CASES, 4))
def test_a_stream_that_cannot_be_used_ends_in_no_crash(tmp_path: Path, command: str) -> None:
    code, says = CASES[command]
    with scripted([Repeat(Say("Fine. " * 3000))]) as model:
        done = shell(command, tmp_path, *flags(model))
    assert (done.returncode, "Traceback" in done.stderr, "Exception ignored" in done.stderr) == (
        code,
        False,
        False,
    )
    assert says in done.stderr
    assert "Knapper failed" not in done.stderr
    assert not list(tmp_path.glob(".knapper/crash-*"))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("first", "more"),
    sampled([("", ""), ("", "--json"), ("PYTHONUNBUFFERED=1", "--json")], 3, at=1),
)
def test_a_reader_that_leaves_in_mid_turn_ends_it_quietly(
    tmp_path: Path, first: str, more: str
) -> None:
    (tmp_path / "knapper.toml").write_text(
        "[model]\ncontext_tokens = 8192\n"
    )  # avoids a message about the window
    with scripted([Repeat(Say("Good day. " * 9000))]) as model:  # more than a pipe holds
        done = shell(
            f"{first} KNAPPER run FLAGS {more} --message hi | head -c 5; exit ${{PIPESTATUS[0]}}",
            tmp_path,
            *flags(model),
        )
    assert (done.returncode, done.stderr) == (1, "")
    assert not list(tmp_path.glob(".knapper/crash-*"))
