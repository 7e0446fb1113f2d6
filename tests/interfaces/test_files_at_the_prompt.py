"""A human at the prompt is asked for a file when a function opens it; the call waits."""

from pathlib import Path

import pytest

from tests.grants.test_files_asked_for_at_a_call import SALES, SUMS
from tests.interfaces.asking import agree, ended, home, press
from tests.interfaces.support import create, flags, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains, scripted, shows
from tests.kit.program import knapper
from tests.kit.terminal import terminal

CALL = Wanted("csv_sum", {"path": "data/sales.csv"})
ASKS = "? csv_sum is running and asks to read data/sales.csv"
MADE: Script = [Ask(create(SUMS, "csv_sum")), Ask(CALL)]
SUMMED: Script = [*MADE, Expect(Say("The sum is 6.5."), contains("6.5"))]
TOLD = "may not: read data/sales.csv. The user was asked and said no."
DENIED: Script = [*MADE, Expect(Say("I may not."), contains(TOLD))]


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


@pytest.mark.parametrize(
    ("key", "kept"), [("y", 'read = ["data/sales.csv"]'), ("f", 'read = ["data/"]'), ("o", "")], ids=["y", "f", "o"]
)
def test_a_file_is_summed_in_one_turn_with_one_answer(tmp_path: Path, key: str, kept: str) -> None:
    with prompt(SUMMED, tmp_path, environment=home(tmp_path)) as (screen, _):
        screen.line("Sum the amounts in data/sales.csv")
        screen.wait_for("is running and asks to")
        press(screen, key)
        ended(screen)
        seen = screen.scrolled()
    assert ASKS in seen
    assert "The sum is 6.5." in seen
    assert seen.count("? csv_sum") == 1
    assert kept in entries(tmp_path)


def test_a_question_on_a_text_file_is_served_by_a_starter_with_one_answer(tmp_path: Path) -> None:
    assert knapper("init", ".", cwd=tmp_path).returncode == 0
    (tmp_path / "data" / "notes.txt").write_text("One two three.\nFour five six seven.\n")
    counted = Expect(Say("Seven words."), contains('"words": 7'))
    asked = Expect(Ask(Wanted("count_text", {"text": "data/notes.txt"})), shows("count_text"))
    with prompt([asked, counted], tmp_path, environment=home(tmp_path)) as (screen, _):
        screen.line("How many words are in data/notes.txt?")
        screen.wait_for("? count_text is running and asks to read data/notes.txt")
        press(screen, "y")
        ended(screen)
        assert "Seven words." in screen.scrolled()
    assert 'read = ["data/notes.txt"]' in entries(tmp_path)


def test_a_no_is_told_and_nothing_says_that_the_file_is_missing(tmp_path: Path) -> None:
    with prompt(DENIED, tmp_path, environment=home(tmp_path)) as (screen, _):
        screen.line("Sum the amounts in data/sales.csv")
        screen.wait_for(ASKS)
        press(screen, "n")
        ended(screen)
        seen = screen.scrolled()
    assert "→ no" in seen
    assert "No such file" not in seen
    assert entries(tmp_path) == ""


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        (
            (),
            "Nobody can be asked here.\\nA human grants it with: knapper functions grant csv_sum --read data/sales",
        ),
        (("--approve", "allowed.toml"), "6.5"),
    ],
    ids=["unattended", "by a file"],
)
def test_a_one_shot_from_a_script_reads_what_a_file_lists_and_else_names_the_command(
    tmp_path: Path, extra: tuple[str, ...], told: str
) -> None:
    (tmp_path / "allowed.toml").write_text('[csv_sum]\nread = ["data/sales.csv"]\n')
    with scripted([*MADE, Expect(Say("Done."), contains(told))]) as model:
        done = knapper("run", *flags(model), "--message", "sum", *extra, cwd=tmp_path)
    assert done.returncode == 0
    if not extra:
        assert "knapper functions grant csv_sum --read data/sales.csv" in done.stderr


def test_a_call_by_hand_that_is_refused_says_what_to_do_to_its_human_and_nothing_to_a_model(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sums.py").write_text(SUMS)
    with prompt([], tmp_path, environment=home(tmp_path), columns=120) as (screen, _):
        screen.line('=csv_sum("data/sales.csv")')
        screen.wait_for(ASKS)
        press(screen, "n")
        screen.wait_for("may not: read data/sales.csv. The question was answered with no.")
        screen.wait_for("Call it again to be asked again.")
        screen.wait_for("knapper functions grant csv_sum --read data/sales.csv")
        assert "nobody would be asked" not in screen.scrolled()


def test_a_call_at_a_terminal_asks_for_the_file(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sums.py").write_text(SUMS)
    arguments = ("functions", "call", "csv_sum", "--args", '{"path": "data/sales.csv"}')
    with terminal(*arguments, cwd=tmp_path, environment=home(tmp_path)) as screen:
        screen.wait_for(ASKS)
        agree(screen, "f")
        screen.wait_for("6.5")
        assert screen.exit_code() == 0
    assert 'read = ["data/"]' in entries(tmp_path)
