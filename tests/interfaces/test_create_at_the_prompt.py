"""A function is written in the user's editor, from a template, and judged like any other."""

import stat
from pathlib import Path

from tests.interfaces.support import COUNT_VOWELS, prompt


def editor(folder: Path, text: str) -> str:
    """Return an editor that writes this text into any file it opens."""
    (folder / "text").write_text(text)
    program = folder / "editor"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\ncp "{folder}/text" "$last"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_a_function_that_is_written_in_the_editor_joins_the_module_that_was_named(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([], tmp_path, environment={"EDITOR": editor(tmp_path, COUNT_VOWELS)}) as (screen, _):
        screen.line("/create count_vowels words")
        screen.wait_for("count_vowels added to words")
    assert "def count_vowels" in (tmp_path / "functions" / "words.py").read_text()


def test_a_refused_one_is_kept_and_opened_again_and_a_name_that_is_taken_is_told(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    wrong = COUNT_VOWELS.replace("return sum", "return 1 + sum")
    with prompt([], tmp_path, environment={"EDITOR": editor(tmp_path, wrong)}) as (screen, _):
        screen.line("/create count_vowels")
        screen.wait_for("/create count_vowels opens it again")
        (tmp_path / "text").write_text(COUNT_VOWELS)
        screen.line("/create count_vowels")
        screen.wait_for("count_vowels added to grown")
        screen.line("/create count_vowels")
        screen.wait_for("There is a function count_vowels already.")
        for times, name in enumerate(("1st", "a-b"), 1):
            screen.line(f"/create {name}")
            screen.wait_count("cannot be a function's name", times)
