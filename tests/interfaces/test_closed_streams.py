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


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        *sampled(
            [
                pytest.param("KNAPPER run FLAGS <&-", 0, "", id="no-input"),
                pytest.param("KNAPPER run FLAGS --message - <&-", 2, "The message is empty.", id="no-message"),
                pytest.param("KNAPPER run FLAGS --message hi >&-", 0, "1 step", id="no-output"),
                pytest.param("KNAPPER run FLAGS --message hi 2>&-", 0, "", id="no-talk"),
                pytest.param("KNAPPER run FLAGS --message hi <&- >&- 2>&-", 0, "", id="nothing"),
                pytest.param("KNAPPER --version >&-", 0, "", id="version"),
                pytest.param("KNAPPER run FLAGS --message hi > /dev/full", 1, "cannot be written: No space", id="full"),
                pytest.param("KNAPPER run FLAGS --message hi 2> /dev/full", 1, "", id="talk-full"),
                pytest.param(
                    "KNAPPER functions list --json > /dev/full", 1, "cannot be written: No space", id="json-full"
                ),
                pytest.param("KNAPPER --help > /dev/full", 1, "cannot be written: No space", id="help-full"),
            ],
            3,
        ),
        pytest.param(  # more than a buffer holds
            "KNAPPER init && KNAPPER functions list --json > /dev/full",
            1,
            "cannot be written: No space",
            id="starters-full",
        ),
        pytest.param(
            "KNAPPER init && KNAPPER functions list --json > /dev/full 2>&1", 1, "", id="starters-and-talk-full"
        ),
        pytest.param(
            "PYTHONUNBUFFERED=1 KNAPPER functions list --json > /dev/full",
            1,
            "cannot be written: No space",
            id="unbuffered-full",
        ),
    ],
)
def test_a_stream_that_cannot_be_used_ends_in_no_crash(tmp_path: Path, command: str, code: int, says: str) -> None:
    with scripted([Repeat(Say("Fine. " * 3000))]) as model:
        done = shell(command, tmp_path, *flags(model))
    assert (done.returncode, "Traceback" in done.stderr, "Exception ignored" in done.stderr) == (code, False, False)
    assert says in done.stderr
    assert "Knapper failed" not in done.stderr
    assert not list(tmp_path.glob(".knapper/crash-*"))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("first", "more"),
    sampled([("", ""), ("", "--json"), ("PYTHONUNBUFFERED=1", ""), ("PYTHONUNBUFFERED=1", "--json")], 3),
)
def test_a_reader_that_leaves_in_mid_turn_ends_it_quietly(tmp_path: Path, first: str, more: str) -> None:
    (tmp_path / "knapper.toml").write_text("[model]\ncontext_tokens = 8192\n")  # avoids a message about the window
    with scripted([Repeat(Say("Good day. " * 9000))]) as model:  # more than a pipe holds
        done = shell(
            f"{first} KNAPPER run FLAGS {more} --message hi | head -c 5; exit ${{PIPESTATUS[0]}}",
            tmp_path,
            *flags(model),
        )
    assert (done.returncode, done.stderr) == (1, "")
    assert not list(tmp_path.glob(".knapper/crash-*"))
