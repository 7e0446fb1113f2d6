"""A read-only workspace, as on a read-only disk, can be inspected; nothing in it changes."""

import json
import os
from pathlib import Path

import pytest

from tests.kit.levels import require_functions
from tests.kit.program import knapper

PLANTS = '''\
def water_plan(days: int) -> list:
    """Plan on which days of a month the plants in the garden get water."""
    return [*range(1, 31, days)]
'''
SOMEBODY = 65_534


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A workspace with a state that this user cannot write: root can write all files except a foreign user's."""
    require_functions()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "plants.py").write_text(PLANTS)
    assert knapper("functions", "reload", cwd=tmp_path).returncode == 0
    os.mkfifo(tmp_path / "functions" / "pipe.py")
    state = tmp_path / ".knapper"
    if os.geteuid() == 0:
        os.chown(state, SOMEBODY, SOMEBODY)
    else:
        (state / "state.db").chmod(0o400)
    return tmp_path


def content(root: Path) -> dict[str, tuple[int, bytes]]:
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): (path.stat().st_mode, path.read_bytes()) for path in paths}


def test_what_only_looks_works_and_what_changes_something_says_why_it_cannot(closed: Path) -> None:
    before = content(closed)
    done = knapper("functions", "search", "water the garden", "--json", cwd=closed)
    assert "cannot be written to, so it is only read" in done.stderr
    assert [match["name"] for match in json.loads(done.stdout)["results"]] == ["water_plan"]
    listed = knapper("functions", "list", "--json", cwd=closed)
    assert [function["name"] for function in json.loads(listed.stdout)["functions"]] == ["water_plan"]
    for words in (("audit",), ("show", "water_plan")):
        done = knapper("functions", *words, cwd=closed)
        assert (done.returncode, "water_plan" in done.stdout) == (0, True)
    assert content(closed) == before
    done = knapper("functions", "delete", "water_plan", cwd=closed)
    assert done.returncode == 1
    assert "belongs to" in done.stderr or "cannot be opened for writing" in done.stderr
    assert content(closed) == before
