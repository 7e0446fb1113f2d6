import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.untrusted import one_line, visible
from agent_core.interfaces.spans import coloured, line, plain

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b[2J", "\\x1b[2J", id="clear-screen"),
        pytest.param("\x1b]0;title\x07", "\\x1b]0;title\\x07", id="window-title"),
        pytest.param("\x9b31m", "\\x9b31m", id="eight-bit-sequence"),
        pytest.param("safe\rEVIL", "safe\\rEVIL", id="return-over-the-line"),
        pytest.param("a\x08b", "a\\x08b", id="backspace"),
        pytest.param("\u202egpj.exe", "\\u202egpj.exe", id="right-to-left-override"),
        pytest.param("\U000e0041", "\\U000e0041", id="hidden-tag"),
        pytest.param("a\U000e0150b", "a\\U000e0150b", id="hidden-by-variation-selectors"),
        pytest.param("\u3164\u115f\u1160\uffa0\u2800", "\\u3164\\u115f\\u1160\\uffa0\\u2800", id="blank-letters"),
        pytest.param("a\u034f\ufe00\U0001d173", "a\\u034f\\ufe00\\U0001d173", id="marks-of-no-shape"),
        pytest.param("\ud800", "\\ud800", id="lone-surrogate"),
        pytest.param("a\u2028b", "a\\u2028b", id="line-separator"),
        pytest.param("a\r\nb\tc", "a\nb\tc", id="lines-and-tabs-stay"),
        pytest.param("e\u0301 漢 👩\u200d💻 ☀\ufe0f", "e\u0301 漢 👩\u200d💻 ☀\ufe0f", id="letters-and-emoji-stay"),
        pytest.param("a" + "\u0301" * 9, "a" + "\u0301" * 5 + "\\u0301" * 4, id="flood-of-marks"),
        pytest.param(
            "\u20dd\u200d" * 4, "\u20dd\u200d" * 2 + "\u20dd" + "\\u200d\\u20dd\\u200d", id="enclosed-and-joined"
        ),
        pytest.param("י\u05b0\u05bc\u05c1\u0591؟ת", "י\u05b0\u05bc\u05c1\u0591؟ת", id="marks-of-a-language"),
        pytest.param("می\u200cخواهم \u06dd", "می\u200cخواهم \u06dd", id="what-scripts-are-made-of-stays"),
    ],
)
def test_what_acts_on_a_terminal_is_shown_and_not_sent(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_no_text_at_all_keeps_a_control_or_format_character(text: str) -> None:
    shown = visible(text)
    assert not ACTING.search(shown)
    assert all(unicodedata.bidirectional(each) not in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI") for each in shown)
    shown.encode()


@given(st.text(), st.integers(2, 40))
def test_one_line_is_one_line_and_within_its_limit(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert not ACTING.search(shown)
    assert "\n" not in shown
    assert "\t" not in shown


@given(st.text(), st.text())
def test_plain_lines_hold_no_escape_whatever_they_are_made_of(first: str, second: str) -> None:
    assert not ACTING.search(plain([line(("bad", first), second)]).replace("\n", ""))


def test_coloured_lines_hold_no_escapes_but_their_own() -> None:
    painted = coloured([line(("ok", "\x1b[8mhidden"), "\x07")])
    assert painted == "\x1b[32m\\x1b[8mhidden\x1b[0m\\x07\n"
