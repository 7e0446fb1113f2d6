"""Input from people who have not read the help: options and files in unusual places, empty folders."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS, HERE, flags, prompt
from tests.kit import Say, Stall, scripted
from tests.kit.program import knapper, surroundings
from tests.kit.terminal import CTRL_C, ESCAPE, KNAPPER, terminal

SHOUT = '''def shout(text: str) -> str:
    """Say a text loudly.

    Args:
        text: What to say.

    Examples:
        >>> shout("ab")
        'AB!'
        >>> shout("")
        '!'
    """
    return text.upper() + "!"
'''


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A workspace with one function, and its file next to it."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    (tmp_path / "mine.py").write_text(SHOUT)
    return tmp_path


def test_a_file_in_place_of_the_name_is_told_and_nothing_is_read(grown: Path) -> None:
    done = knapper("functions", "create", "mine.py", cwd=grown)
    assert (done.returncode, done.stdout) == (2, "")
    assert "knapper functions create NAME mine.py" in done.stderr


def test_the_file_may_follow_the_name_without_an_option(grown: Path) -> None:
    done = knapper("functions", "create", "shout", "mine.py", cwd=grown)
    assert (done.returncode, "added to grown" in done.stdout) == (0, True), done.stdout


@pytest.mark.parametrize("before", [("--json",), ("--json", "-C", ".")])
def test_json_may_stand_before_the_command(grown: Path, before: tuple[str, ...]) -> None:
    found = json.loads(knapper(*before, "functions", "list", cwd=grown).stdout)
    assert [each["name"] for each in found["functions"]] == ["count_vowels"]


def test_an_argument_too_many_that_is_long_is_not_repeated_whole(grown: Path) -> None:
    done = knapper("functions", "call", "count_vowels", "x" * 5_000, cwd=grown)
    assert (done.returncode, len(done.stderr) < 600) == (2, True), len(done.stderr)


def test_a_reload_with_nothing_new_says_what_is_in_use(grown: Path) -> None:
    done = knapper("functions", "reload", cwd=grown)
    assert (done.returncode, "1 function is in use" in done.stderr) == (0, True), done.stderr


def test_a_check_that_found_no_function_says_so(grown: Path) -> None:
    (grown / "empty.py").touch()
    done = knapper("functions", "check", "empty.py", cwd=grown)
    assert (done.returncode, done.stdout, "Nothing was judged" in done.stderr) == (0, "", True)


def test_a_file_that_cannot_be_read_is_named_in_its_verdict(grown: Path) -> None:
    (grown / "latin.py").write_bytes(b"x = '\xff'\n")
    done = knapper("functions", "check", "latin.py", cwd=grown)
    assert (done.returncode, done.stdout.startswith("✗ latin.py refused")) == (1, True), done.stdout


def test_a_locale_without_the_characters_that_are_shown_ends_in_no_crash(grown: Path) -> None:
    done = subprocess.run(
        [*KNAPPER, "functions", "show", "count_vowels"],
        cwd=grown,
        env=surroundings({"PYTHONPATH": HERE, "PYTHONIOENCODING": "ascii"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.startswith("count_vowels ? ")) == (0, True), done.stderr
    assert not list((grown / ".knapper").glob("crash-*"))


def test_a_file_that_stays_broken_is_told_at_each_save(grown: Path) -> None:
    with prompt([], grown) as (screen, _):
        for count, line in enumerate(("# one", "# two"), 1):
            (grown / "functions" / "words.py").write_text(f"{COUNT_VOWELS}\ndef (:\n{line}\n")
            screen.wait_count("✗ rejected: functions/words.py", count)
            screen.wait_for("1 file rejected")
        (grown / "functions" / "words.py").write_text(COUNT_VOWELS)
        screen.wait_for("functions/words.py loads again")
        screen.wait_gone("1 file rejected")


def test_every_count_of_functions_is_the_same_and_starters_are_marked(tmp_path: Path) -> None:
    assert knapper("init", cwd=tmp_path).returncode == 0
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    rows = json.loads(knapper("functions", "list", "--json", cwd=tmp_path).stdout)["functions"]
    assert (rows[0]["name"], rows[0]["source"]) == ("count_vowels", "human")
    assert {row["source"] for row in rows[1:]} == {"starter"}
    with prompt([], tmp_path, columns=140) as (screen, _):
        screen.wait_for(f"functions {len(rows)} ")
        screen.line("/functions")
        screen.wait_for(f"functions {len(rows)} of {len(rows)}:")
        screen.wait_for("standing")
        screen.wait_for("what it does")
        screen.wait_for(f"{len(rows)} functions of this workspace; ")
        screen.type(ESCAPE)


def test_habits_of_other_debuggers_lead_to_debug_last(tmp_path: Path) -> None:
    with prompt([], tmp_path) as (screen, model):
        for times, typed in enumerate(("/pm", "%debug"), 1):
            screen.line(typed)
            screen.wait_count("/debug last", times)
        assert model.requests == []


def test_model_lists_what_the_endpoint_has(tmp_path: Path) -> None:
    names = ["scripted", *(f"cap-{number}" for number in range(40))]
    with (
        scripted([], models=names) as model,
        terminal("run", *flags(model), cwd=tmp_path, rows=60) as screen,
    ):
        screen.wait_for("/help lists")
        screen.line("/model")
        screen.wait_for("and 11 more at the endpoint.")
        assert "*  scripted" in screen.screen()
        assert "   cap-0" in screen.screen()


NEAR = [
    ("functions", "delete", "count_vowel"),
    ("functions", "show", "count_vowel"),
    ("functions", "grants", "count_vowel"),
    ("functions", "revoke", "count_vowel", "--all"),
    ("functions", "list", "count_vowel_"),
    ("functions", "list", "--module", "word"),
    ("memory", "show", "humann"),
    ("memory", "history", "humann"),
    ("memory", "show", "--agent", "mian"),
    ("memory", "search", "x", "--agent", "mian"),
    ("agents", "show", "mian"),
    ("agents", "pause", "mian"),
    ("log", "--agent", "mian"),
    ("run", "--preset", "mmgpt", "--agent", "new", "--message", "x"),
    ("run", "--persona", "companio", "--agent", "new", "--message", "x"),
]


def test_each_unknown_name_is_told_with_the_nearest(grown: Path) -> None:
    meant = {"count_vowels", "words", "human", "main", "memgpt", "companion"}
    with scripted([Say("Hello.")]) as model:
        knapper("run", *flags(model), "--message", "hello", cwd=grown)
        for words in NEAR:
            extra = flags(model) if words[0] == "run" else ()
            done = knapper(*words, *extra, cwd=grown)
            named = re.search(r"Did you mean `(\w+)`\?", done.stderr)
            assert named, (words, done.stderr)
            assert named[1] in meant, words


@pytest.mark.parametrize("words", [("agents", "show", "x"), ("agents", "pause", "x"), ("memory", "edit", "human")])
def test_before_the_first_run_the_next_step_is_named(grown: Path, words: tuple[str, ...]) -> None:
    done = knapper(*words, *(["--value", "x"] if words[0] == "memory" else []), cwd=grown)
    assert "No agent yet. Next: knapper run" in done.stderr


def test_a_rejected_edit_in_the_way_is_told_without_a_name_of_the_models(grown: Path) -> None:
    knapper("functions", "list", cwd=grown)
    (grown / "functions" / "words.py").write_text(COUNT_VOWELS + "\nfrom string import nothing_there\n")
    done = knapper("functions", "delete", "count_vowels", cwd=grown)
    assert (done.returncode, "reload_functions" in done.stderr) == (1, False), done.stderr
    assert "nothing_there" in done.stderr  # what is wrong with it


def test_a_check_shows_what_was_fixed_as_a_diff_when_asked(grown: Path) -> None:
    (grown / "mine.py").write_text(SHOUT.replace("Args:\n        text:", ":param text:"))
    done = knapper("functions", "check", "mine.py", "--diff", cwd=grown)
    assert (done.returncode, "-    :param text: What to say.\n+    Args:\n" in done.stdout) == (0, True), done.stdout
    assert "+    Args:" not in knapper("functions", "check", "mine.py", cwd=grown).stdout


def test_of_a_turn_that_ended_before_its_first_reply_no_cost_is_made_up(grown: Path) -> None:
    with prompt([Stall(60, "Well")], grown, columns=110) as (screen, _):
        screen.line("hello")
        screen.wait_for("Well")
        screen.type(CTRL_C)
        screen.wait_for("Interrupted.")
        screen.line("/cost")
        screen.wait_for("Not counted: it ended before the model's first reply was complete.")
        assert "$0.00" not in screen.scrolled()
        screen.line("/changes")
        screen.wait_for("Nothing was made or changed in this session.")
        assert "/pop" not in screen.scrolled()


def test_what_the_gate_looked_at_is_said_in_questions(grown: Path) -> None:
    assert knapper("functions", "create", "shout", "mine.py", cwd=grown).returncode == 0
    with prompt([], grown, columns=110) as (screen, _):
        screen.line("/introspect shout")
        for told in ("checked by the gate in ", "mutation: would its examples notice a wrong body? "):
            screen.wait_for(told)
        assert "mutant" not in screen.scrolled()


def test_a_file_that_imports_its_neighbor_by_its_bare_name_is_told_how_to(grown: Path) -> None:
    assert knapper("functions", "list", cwd=grown).returncode == 0
    (grown / "functions" / "more.py").write_text("import words\n\n\n" + SHOUT)
    told = knapper("functions", "list", cwd=grown)
    assert "write `from functions import words`" in " ".join((told.stdout + told.stderr).split())
    (grown / "functions" / "more.py").write_text("from functions import words\n\n\n" + SHOUT)
    assert "shout" in knapper("functions", "list", cwd=grown).stdout
