import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.untrusted import one_line, visible
from agent_core.views.styled_lines import coloured, line, plain

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def test_what_acts_on_a_terminal_is_shown_and_not_sent() -> None:
    rows: list[tuple[str, str, str]] = [
        ("clear-screen", "\x1b[2J", "\\x1b[2J"),
        ("window-title", "\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("return-over-the-line", "safe\rEVIL", "safe\\rEVIL"),
        ("right-to-left-override", "\u202egpj.exe", "\\u202egpj.exe"),
        ("hidden-by-variation-selectors", "a\U000e0150b", "a\\U000e0150b"),
        ("blank-letters", "\u3164\u115f\u1160\uffa0\u2800", "\\u3164\\u115f\\u1160\\uffa0\\u2800"),
        ("lone-surrogate", "\ud800", "\\ud800"),
        ("line-separator", "a\u2028b", "a\\u2028b"),
        ("lines-and-tabs-stay", "a\r\nb\tc", "a\nb\tc"),
        (
            "letters-and-emoji-stay",
            "e\u0301 漢 👩\u200d💻 ☀\ufe0f",
            "e\u0301 漢 👩\u200d💻 ☀\ufe0f",
        ),
        ("flood-of-marks", "a" + "\u0301" * 9, "a" + "\u0301" * 5 + "\\u0301" * 4),
        ("marks-of-a-language", "י\u05b0\u05bc\u05c1\u0591؟ת", "י\u05b0\u05bc\u05c1\u0591؟ת"),
        ("what-scripts-are-made-of-stays", "می\u200cخواهم \u06dd", "می\u200cخواهم \u06dd"),
    ]
    for case, text, shown in rows:
        assert visible(text) == shown, case


@given(st.text())
def test_no_text_at_all_keeps_a_control_or_format_character(text: str) -> None:
    shown = visible(text)
    assert not ACTING.search(shown)
    assert all(
        unicodedata.bidirectional(each) not in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI")
        for each in shown
    )
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
