"""How a question looks: on small screens, without colors, with hostile texts, while the window changes."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.access.grants import Grants, Question
from agent_core.access.grants.approval import Moment
from agent_core.views.grant_question import GrantDialog, fitting_rows, question_rows
from agent_core.views.styled_lines import Line, plain, width
from tests.interfaces.asking import (
    DONE,
    REFUSED,
    asked,
    ended,
    home,
    made,
    press,
    shown_whole,
    weather,
)
from tests.interfaces.support import create, flags, prompt
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.pace import least_s, time_of
from tests.kit.terminal import ENTER, Terminal, terminal
from tests.programs.support import lay_out, lines

RICH = "# Title\n\n`code`\n\n```python\nx = 1\n```\n"
HOSTILE = "why\x1b[2J\x1b]0;pwned\x07\u202e\u2066\x9b8m\n\n? other asks to:\n    nothing  \u200b"
TEXTS = st.text(
    st.sampled_from("ab c\n\t\x1b[]0;\x07\x9b\u202e\u2066\u200b漢é\u0301│?→"), max_size=400
)


def text_of(lines: Iterable[Line]) -> list[str]:
    return ["".join(text for _, text in each) for each in lines]


@given(name=TEXTS, why=TEXTS, code=TEXTS, diff=TEXTS, columns=st.integers(20, 120))
def test_no_text_of_a_model_acts_or_looks_like_a_line_of_the_program(
    name: str, why: str, code: str, diff: str, columns: int
) -> None:
    missing = Grants(network=("api.example.org",), read=("data/",))
    asking = Question(name, missing, Grants(), why, ((7, code),), diff)
    rows = text_of(question_rows(asking, columns))
    for row in rows:
        assert width(row) <= columns
        assert not [
            one
            for one in row
            if unicodedata.category(one) in ("Cc", "Cf", "Cs") and one != "\u200d"
        ]
    titles = ("  The reason", "  The lines", "  What is", "  │ ", "  ↪ ")
    grants = len(text_of(question_rows(Question(name, missing), columns)))
    assert all(row.startswith((*titles, "    ")) for row in rows[grants:] if columns > 30)


MANY_HOSTS = Grants(network=tuple(f"h{number}.example.org" for number in range(20)))


def test_reason_lines_and_source_never_take_more_than_six_rows_with_what_a_yes_gives() -> None:
    diff = "--- a\n+++ b\n@@ -0,0 +1,30 @@\n" + "+x\n" * 30
    for why, needing in product(("", "because", "because " * 30), (0, 1, 9)):
        lines_of_code = tuple((number, f"self.fetch({number})") for number in range(needing))
        asking = Question("f", Grants(network=("a.b",)), why=why, lines=lines_of_code, diff=diff)
        lines, left, is_cut = fitting_rows(asking, 60, 40)
        shown, whole = text_of(lines), text_of(question_rows(asking, 60))
        assert (len(shown) <= 6, is_cut, shown[:2]) == (True, False, whole[:2]), (why, needing)
        assert left == len(whole) - len([row for row in shown if row != "  …"])


def test_of_a_text_that_is_asked_about_all_is_shown_before_a_yes_counts() -> None:
    for asking in (
        Question("f", MANY_HOSTS, is_again=True),
        Question("f", Grants(), moment="helper"),
    ):
        asking = replace(asking, diff="--- a\n+++ b\n@@ -1,30 +1,30 @@\n" + "+x\n" * 30)
        assert fitting_rows(asking, 60, 8)[2]
        assert text_of(fitting_rows(asking, 60, 80)[0]) == text_of(question_rows(asking, 60))


ANSWERS = {"o": "once", "y": "yes", "Yes": "yes", "n": "no", "no": "no"} | dict.fromkeys(
    ("", "ok", "w", "yy", "y please", "y 4f", "f")
)
AFTER_TYPING = {
    "once": ("once", ""),
    "Yes ": ("yes", ""),
    "n": ("no", ""),
    "w use less": ("no", "use less"),
} | (dict.fromkeys(("", " yes", "y", "o", "f", "Y", "ok", "w", "w  ", "yy", "yes please")))


def test_a_typed_line_is_an_answer_by_its_letter_or_else_by_its_whole_word() -> None:
    for typed, answer in ANSWERS.items():
        assert decision(typed)[:1] == (answer,), typed
    for typed, meant in AFTER_TYPING.items():
        assert decision(typed, is_ahead=True) == (meant or (None, "")), typed


def decision(typed: str, *, is_ahead: bool = False) -> tuple[str | None, str]:
    dialog = GrantDialog(Question("f", MANY_HOSTS))
    reply = dialog.reply(typed, is_ahead=is_ahead)
    return (dialog.decision(reply).answer, dialog.decision(reply).word) if reply else (None, "")


def test_questions_keep_their_form_on_every_screen_and_a_yes_counts_once_all_was_shown(
    tmp_path: Path, place: str
) -> None:
    many = "".join(f'    self.fetch("http://h{number}.example.org/")\n' for number in range(12))
    code = weather(place).replace("    return", f"{many}    return")
    long = made(place, reason="to see what comes of it " * 20)
    hostile: Script = [made(place, reason=HOSTILE), Say(f"{RICH}\nI see."), DONE]
    script: Script = [long, *REFUSED, *hostile, Ask(create(code, "weather")), DONE]
    with asked(script, tmp_path, columns=60, environment={"NO_COLOR": "1"}) as screen:
        rows = screen.screen()
        keys = "Press o (once) or y (always), then Enter, or n (no) or v"
        assert rows.index("? weather asks to join, and to:") < rows.index(keys)
        assert any("d: all (+" in row for row in rows)
        assert {screen.colour_of(text) for text in ("? weather", "Press o (once)")} == {
            ("default", "default")
        }
        assert "  │ +    return" in " ".join(sorted(shown_whole(screen)))
        press(screen, "n")
        ended(screen)
        screen.resize(110, 30)
        screen.do(
            "and now?",
            "  │ why\\x1b[2J\\x1b]0;pwned\\x07\\u202e\\u2066\\x9b8m ? other asks to: nothing",
        )
        assert not re.search(r"^\? other", screen.scrolled(), re.MULTILINE)
        screen.resize(50, 12)
        screen.wait(
            lambda: len(screen.screen()) == 12 and whole(screen.screen()),
            "the question, drawn anew",
        )
        press(screen, "n")
        screen.wait(lambda: "∙ " in screen.scrolled().partition("I see.")[2], "the end of the turn")
        for sent in (
            b"\x1b]0",
            b"\x07",
            b"\x1b[2J",
            b"\xc2\x9b",
            "\u202e".encode(),
            "\u2066".encode(),
        ):
            assert sent not in screen.sent, sent
        screen.do("/help", "/help · rows 1-")
        screen.do("", "Alt-Enter")
        screen.resize(60, 14)
        screen.line("then all of them")
        screen.wait_for("Press d for the next page")
        screen.type("y")
        screen.wait_for("Enter answers")
        screen.type(ENTER)
        screen.wait_for("not all of it has been")
        screen.type("d")
        screen.wait_gone("not all of it has been")
        assert not (tmp_path / "functions" / "grants.toml").exists()
        assert "  │ +    return self.fetch(" in " ".join(sorted(shown_whole(screen)))
        press(screen, "y")
        screen.wait(lambda: "∙ " in screen.scrolled().partition("→ yes")[2], "the end of the turn")
        assert not re.search(rb"\x1b\[([0-9;]*;)?(3[0-7]|9[0-7])m", screen.sent)  # by NO_COLOR
    assert place in (tmp_path / "functions" / "grants.toml").read_text()


PROGRAM = [
    "sums = []",
    "for number in range(2):",
    *(f"    sums.append({n} * {n})" for n in range(57)),
    'note("a")',
]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [pytest.param(80, 24, id="usual-window"), pytest.param(40, 10, id="small-window")],
)
def test_a_yes_to_a_program_counts_once_each_of_its_lines_was_on_the_screen(
    tmp_path: Path, columns: int, rows: int
) -> None:
    lay_out(tmp_path)
    script: Script = [Ask(Wanted("run_program", {"code": "\n".join(PROGRAM)})), DONE]
    with prompt(script, tmp_path, environment=home(tmp_path), columns=columns, rows=rows) as (
        screen,
        _,
    ):
        screen.line("go")
        screen.wait_for("Press d")
        screen.type("y")
        screen.wait_for("Enter")
        screen.type(ENTER)
        screen.wait_for("cannot be an answer yet")
        assert lines(tmp_path) == []
        visible = shown_whole(screen)
        assert [row for n, row in enumerate(PROGRAM, 1) if f"  │ {n:2} {row}" not in visible] == []
        screen.answer("y")
        screen.wait_for("∙ ")
    assert lines(tmp_path) == ["a"]


def test_a_terminal_of_lines_shows_each_line_of_a_program_before_a_yes_counts(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path)
    script: Script = [Ask(Wanted("run_program", {"code": "\n".join(PROGRAM)})), DONE]
    dumb = {"TERM": "dumb", **home(tmp_path)}
    with (
        scripted(script) as model,
        terminal(
            "run", *flags(model), cwd=tmp_path, environment=dumb, columns=40, rows=10
        ) as screen,
    ):
        screen.wait_for("/help lists")
        visible = screen.watch()
        screen.line("go")
        pages = 1
        screen.wait(partial(_asks, screen, pages), "the first page")
        while not any("Type y (yes)" in row for row in screen.screen()):
            pages += 1
            screen.type(ENTER)
            screen.wait(partial(_asks, screen, pages), "the next page")
        assert [row for n, row in enumerate(PROGRAM, 1) if f"  │ {n:2} {row}" not in visible] == []
        screen.line("y")
        screen.wait_for("∙ ")
    assert lines(tmp_path) == ["a"]


def _asks(screen: Terminal, times: int) -> bool:
    text = " ".join(screen.scrolled().split())
    return text.count("Enter shows more") + text.count("Type y (yes)") >= times


def whole(rows: list[str]) -> bool:
    return all(
        any(part in row for row in rows)
        for part in ("? weather asks", "    fetch from", "o (once)", "›")
    )


def test_a_screen_of_a_giant_question_is_drawn_at_once() -> None:
    giant = Question(
        "f",
        Grants(network=("a.b",)),
        diff="--- a\n+++ b\n@@ -1 +1 @@\n" + f"+{'x ' * 100_000}\n" * 20,
    )
    assert fitting_rows(giant, 80, 20)[1] == 200
    assert least_s(1, lambda: time_of(lambda: fitting_rows(giant, 80, 20))) <= 1


HEADS: list[tuple[Moment, bool, str, str]] = [
    ("join", False, "", "? f asks to join, and to:"),
    ("call", True, "g", "? f, called by g, is a new version now and asks again to:"),
    ("grant", True, "", "? You grant f again, now a new version:"),
]


def test_the_first_line_says_who_asks_and_when() -> None:
    for moment, is_again, caller, head in HEADS:
        asking = Question(
            "f", Grants(network=("a.b",)), moment=moment, is_again=is_again, caller=caller
        )
        assert plain(question_rows(asking, 80)).splitlines() == [head, "    fetch from a.b"]
