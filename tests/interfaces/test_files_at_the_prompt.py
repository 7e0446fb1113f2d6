"""A human at the prompt is asked for a file when a function opens it; the call waits."""

from pathlib import Path

import pytest

from tests.grants.test_files_asked_for_at_a_call import SALES, SUMS
from tests.interfaces.asking import home, press
from tests.interfaces.support import create, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains

CALL = Ask(Wanted("csv_sum", {"path": "data/sales.csv"}))
ASKS = "? csv_sum is running and asks to read data/sales.csv"
GRANT = "knapper functions grant csv_sum --read data/sales.csv"


@pytest.fixture(autouse=True)
def sales(tmp_path: Path) -> Path:
    """The user's file."""
    file = tmp_path / "data" / "sales.csv"
    file.parent.mkdir()
    file.write_text(SALES)
    return file


def entries(root: Path) -> str:
    """Return the content of the file of grants."""
    file = root / "functions" / "grants.toml"
    return file.read_text() if file.exists() else ""


def test_a_file_is_read_by_one_answer_and_a_no_is_told(tmp_path: Path) -> None:
    no = Expect(
        Say("I may not."), contains("may not: read data/sales.csv. The user was asked and said no.")
    )
    summed: Script = [CALL, Expect(Say("The sum is 6.5."), contains("6.5"))]
    script: Script = [Ask(create(SUMS, "csv_sum")), CALL, no, *summed, *summed, *summed]
    with prompt(script, tmp_path, environment=home(tmp_path), columns=120) as (screen, _):
        screen.do("Sum the amounts in data/sales.csv", ASKS)
        press(screen, "n")
        screen.wait_for("∙ ")
        assert "→ no" in screen.scrolled()
        assert "No such file" not in screen.scrolled()
        screen.do('=csv_sum("data/sales.csv")', ASKS)  # a call by hand
        press(screen, "n")
        screen.wait_for("may not: read data/sales.csv. The question was answered with no.")
        screen.wait_for("Call it again to be asked again.")
        screen.wait_for(GRANT)
        assert "nobody would be asked" not in screen.scrolled()
        for turns, (key, kept) in enumerate(
            (("o", ""), ("y", 'read = ["data/sales.csv"]'), ("f", 'read = ["data/"]'))
        ):
            screen.do("once more", ASKS)
            press(screen, key)
            screen.wait_count("The sum is 6.5.", turns + 1)
            screen.wait_count("∙ ", turns + 2)
            assert kept in entries(tmp_path)
            if key == "o":
                assert entries(tmp_path) == ""
            elif key == "y":
                screen.do("/grants csv_sum revoke data/sales.csv", "✓ csv_sum may no longer")
        assert screen.scrolled().count("? csv_sum") == 5
