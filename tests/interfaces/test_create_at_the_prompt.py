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


def test_a_refused_one_is_kept_and_opened_again_and_a_name_that_is_taken_is_told(folder: Path) -> None:
    wrong = COUNT_VOWELS.replace("return sum", "return 1 + sum")
    with prompt([], folder, environment={"EDITOR": editor(folder, wrong)}) as (screen, _):
        screen.do("/create count_vowels words", "/create count_vowels opens it again")
        (folder / "text").write_text(COUNT_VOWELS)
        screen.do("/create count_vowels words", "count_vowels added to words")
        assert "def count_vowels" in (folder / "functions" / "words.py").read_text()
        screen.do("/create count_vowels", "There is a function count_vowels already.")
        for name in ("1st", "a-b"):
            screen.do(f"/create {name}", "cannot be a function's name")
