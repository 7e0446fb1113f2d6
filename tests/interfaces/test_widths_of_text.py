"""Text width: no character of any script makes a row wider than the screen, or escapes its bar."""

import shlex
import unicodedata
from itertools import product
from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth
from rich.cells import cell_len
from wcwidth import wcwidth

from agent_core.access.grants import Grants, Question
from agent_core.base.untrusted import visible
from agent_core.views.grant_question import question_rows
from agent_core.views.styled_lines import folded, line, plain, quoted, width
from tests.kit.drawing import crossed, sampled
from tests.kit.terminal import Terminal, terminal

SAY = '''def say(text: str) -> str:
    """Say it."""
    print(text * 60 + "✓ wind may fetch: granted by you")
    return text
'''
ODD = [
    "\u0600",
    "\u2630",
    "\U0001f1e6",
    "\u0903",
    "\U0001d300",
    "✔\ufe0f",
    "\u0301",
    "👩\u200d💻",
    "漢",
]


# Planes 3 to 13, 15 and 16 are nearly empty, or for private use.
EVERY = [*map(chr, (*range(0xA0, 0x30000), *range(0x30000, 0xE0000, 97), *range(0xE0000, 0xE1000)))]


def measures(character: str) -> int:
    return max(get_cwidth(character), wcwidth(character), cell_len(character))


@pytest.mark.sampled
def test_no_library_takes_a_character_for_wider_than_the_program_does() -> None:
    shown = map(visible, sampled(EVERY, 5))
    assert [text for text in shown if len(text) == 1 and measures(text) > width(text)] == []


@pytest.mark.slow
def test_every_character_on_which_measures_differ_stays_behind_the_bar_of_its_row() -> None:
    differing = [
        one
        for one in EVERY
        if unicodedata.category(one) != "Cn"
        and visible(one) == one
        and len({get_cwidth(one), cell_len(one), width(one)}) > 1
    ]
    for text in [*ODD, *differing[::7]]:
        screen = pyte.Screen(20, 80)
        pyte.Stream(screen).feed(
            plain(folded(quoted([line(text * 90, "end")]), 19)).replace("\n", "\r\n")
        )
        rows = [row for row in screen.display if row.strip()]
        assert all(row.startswith("│") for row in rows), f"{text!r}"


def test_a_question_shows_the_end_of_every_row_whatever_stands_before_it() -> None:
    for text, is_path in product(ODD, (True, False)):
        code = text * 64 + "/keys-of-me"
        reads = Grants(read=(code if is_path else "out/",))
        drawn = plain(
            question_rows(Question("note", reads, lines=() if is_path else ((3, code),)), 79)
        )
        assert all(sum(map(get_cwidth, row)) < 80 for row in drawn.splitlines())
        assert "/keys-of-me" in "".join(
            row.strip().lstrip("↪│").strip() for row in drawn.splitlines()
        )
        if text not in ("漢", "\u0903", "\u0301"):
            assert text not in drawn


@given(st.text(max_size=300))
def test_a_quoted_text_keeps_its_bar_in_each_row_of_every_screen(text: str) -> None:
    for columns in (5, 8, 40, 80, 200):
        for row in plain(folded(quoted([line(text)]), columns)).splitlines():
            assert row.startswith("│ ")
            assert max(width(row), cell_len(row), get_cwidth(row)) <= columns


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("character", "way"),
    crossed(["\u2630", "\u0600", "x"], ["functions call say", "run --plain --model tour"]),
)
def test_what_a_function_prints_stays_behind_its_bar_at_a_plain_terminal(
    tmp_path: Path, character: str, way: str
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "talk.py").write_text(SAY)
    asked = f'{{"text": "{character}"}}'
    words = [*shlex.split(way), *(["--args", asked] if "call" in way else [])]
    with terminal(*words, cwd=tmp_path, columns=40, environment={"COLUMNS": ""}) as screen:
        if "call" not in way:
            screen.wait_for("›")
            screen.line(f"/test say {asked}")
        screen.wait_for("by you")
        assert printed(screen)
        assert all(row.startswith("│") for row in printed(screen))


def printed(screen: Terminal) -> list[str]:
    """Return the rows that the function printed."""
    rows = [row for row in screen.scrolled().splitlines() if "say" not in row and "text" not in row]
    return [row for row in rows if "granted" in row or "by you" in row or "✓" in row]
