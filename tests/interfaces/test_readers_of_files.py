"""`functions check --reader` and `functions import --reader`: a model reads each description on request."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.kit import scripted
from tests.kit.desk import HOLLOW, VOWELS
from tests.kit.drawing import sampled
from tests.kit.play import reading
from tests.kit.program import knapper
from tests.kit.steps import Seen, Step


def by_description(seen: Seen) -> Step:
    return reading("network" if "Send a mail" in seen.text else "nothing")(seen)


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mails.py").write_text(f"{HOLLOW}\n\n{VOWELS}")
    (tmp_path / "lib" / "mail.py").write_text(HOLLOW)
    (tmp_path / "knapper.toml").touch()
    return tmp_path


def judged(root: Path, *command: str) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the verdicts by function, and how many descriptions the reader was shown."""
    with scripted([], reader=by_description) as model:
        done = knapper("functions", *command, "--json", cwd=root, environment=model.environment)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row for row in rows}, len(model.readings)


def found(row: dict[str, Any]) -> dict[str, str]:
    return {problem["code"]: problem["severity"] for problem in row["problems"]}


@pytest.mark.sampled
def test_a_check_asks_the_reader_if_it_is_told_to_and_reports_what_it_said(lib: Path) -> None:
    policies = {"human": "warns", "import": "warns", "agent": "refuses"}
    for policy, file in sampled(product(policies, ("lib/mail.py", "lib/mails.py", "")), 2):
        reader = ("--reader",) if file else ()
        rows, asked = judged(lib, "check", file or "lib/mails.py", "--policy", policy, *reader)
        assert found(rows["send_mail"]).get("reaches-nothing") == (policies[policy] if file else None)
        assert (rows["send_mail"].get("reader") or {}).get("reach") == ("network" if file else None)
        assert asked == (len(rows) if file else 0)


@pytest.mark.parametrize(("flags", "standing", "asked"), [((), "trial", 0), (("--reader",), "draft", 2)])
def test_an_import_makes_a_draft_of_what_the_reader_doubts(
    lib: Path, flags: tuple[str, ...], standing: str, asked: int
) -> None:
    with scripted([], reader=by_description) as model:
        done = knapper("functions", "import", "lib/mails.py", *flags, cwd=lib, environment=model.environment)
        listed = knapper("functions", "list", "--json", cwd=lib)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["standing"] for row in json.loads(listed.stdout)["functions"]}
    assert (rows["send_mail"], len(model.readings)) == (standing, asked)


def test_a_reader_that_is_off_cannot_be_asked_for(lib: Path) -> None:
    (lib / "knapper.toml").write_text('[gate]\nreader = "off"\n')
    for command in ("check", "import"):
        done = knapper("functions", command, "lib/mail.py", "--reader", cwd=lib)
        assert (done.returncode, "No reader can be asked: gate.reader is off." in done.stderr) == (2, True)
        assert 'Set gate.reader to "same" or to a model' in done.stderr
