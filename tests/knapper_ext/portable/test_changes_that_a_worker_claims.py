"""At level `portable` the host makes a function's changes: what kind it says one is and what it does must agree."""

import json
from pathlib import Path

import pytest

from knapper_ext.portable.component import lacks
from tests.kit.levels import lend
from tests.kit.program import knapper

pytestmark = pytest.mark.skipif(bool(lacks()), reason="the extra `portable` is not installed")
NOTE = '''
import json
import sys


def note(changes: list[list[str | list[str | int]]]) -> list[str]:
    """Ask for changes in the frames of the sandbox.

    Args:
        changes: A kind, a path and an operation each.

    Returns:
        What the host answered.
    """
    with open("out/report.md", "a") as file:
        file.write("x")
    with open("out/deep/a.txt", "a") as file:
        file.write("x")
    host = sys.modules["wit_world"]
    answers = []
    for kind, path, act in changes:
        asked = {"path": path, "kind": kind, "act": act}
        frame = {"kind": "request", "name": "file_change", "arguments": asked}
        host.say(json.dumps(frame))
        answers.append(str(json.loads(host.hear())))
    return answers
'''
CLAIMS = (
    ("marks", "out/report.md", ["remove"]),
    ("marks", "out/report.md", ["rename", "out/other.md"]),
    ("folder", "out/report.md", ["remove"]),
    ("folder", "out/deep", ["rmdir"]),
    ("folder", "out/deep", ["rename", "out/deeper"]),
    ("marks", "out/deep", ["rename", "out/deeper"]),
    ("names", "out/deep/hard.txt", ["truncate", 0]),
    ("marks", "out/deep/hard.txt", ["truncate", 0]),
)


def test_a_change_is_of_the_kind_that_is_claimed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lend(home / "data", always=True)
    settings = {
        "KNAPPER_SANDBOX_LEVEL": "portable",
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
    }
    root = tmp_path / "work"
    (root / "out" / "deep").mkdir(parents=True)
    assert knapper("init", cwd=root, environment=settings).returncode == 0
    for name in ("report.md", "other.md", "deep/a.txt"):
        (root / "out" / name).write_text(name)
    (root / "out/deep/hard.txt").hardlink_to(root / "out/other.md")
    (root / "functions" / "note.py").write_text(NOTE)
    given = ("--write", "out/report.md", "--write", "out/deep/", "-y")
    granted = knapper("functions", "grant", "note", *given, cwd=root, environment=settings)
    assert granted.returncode == 0, granted.stderr
    arguments = json.dumps({"changes": CLAIMS})
    done = knapper(
        "--json", "functions", "call", "note", f"--args={arguments}", cwd=root, environment=settings
    )
    answers = json.loads(done.stdout)["value"]
    assert len(answers) == len(CLAIMS), done.stderr
    assert not [answer for answer in answers if "'value': 0" in answer], answers
    assert (root / "out/other.md").read_text() == "other.md"
    assert (root / "out/report.md").read_text() == "report.mdx"
    assert (root / "out/deep/a.txt").read_text() == "deep/a.txtx"
