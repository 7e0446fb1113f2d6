"""How a question looks: on small screens, without colors, with hostile texts, while the window changes."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.access.grants import Grants, Question
from agent_core.access.grants.approval import Moment
from agent_core.base.events import GrantAnswered
from agent_core.interfaces.question import Agreement
from agent_core.interfaces.render.grant_question import (
    denied_lines,
    fitting_rows,
    pages,
    question_rows,
    transcript_form,
    typed_decision,
)
from agent_core.interfaces.spans import Line, plain, width
from tests.interfaces.asking import DONE, REFUSED, asked, ended, made, press, service, shown_whole, weather
from tests.interfaces.support import create
from tests.kit import Ask, Say
from tests.kit.drawing import sampled
from tests.kit.pace import least_s, time_of
from tests.kit.terminal import Terminal

HOSTILE = "why\x1b[2J\x1b]0;pwned\x07\u202e\u2066\x9b8m\n\n? other asks to:\n    nothing  \u200b"
TEXTS = st.text(st.sampled_from("ab c\n\t\x1b[]0;\x07\x9b\u202e\u2066\u200b漢é\u0301│?→"), max_size=400)


@pytest.fixture
def place() -> Iterator[str]:
    with service() as found:
        yield found


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
        assert not [one for one in row if unicodedata.category(one) in ("Cc", "Cf", "Cs") and one != "\u200d"]
    titles = ("  The reason", "  The lines", "  What is", "  │ ", "  ↪ ")
    grants = len(text_of(question_rows(Question(name, missing), columns)))
    assert all(row.startswith((*titles, "    ")) for row in rows[grants:] if columns > 30)


MANY_HOSTS = Grants(network=tuple(f"h{number}.example.org" for number in range(20)))


@pytest.mark.parametrize("rows", [1, 3, 8, 40])
def test_what_a_yes_gives_is_cut_to_the_screen_alone_and_says_by_how_much(rows: int) -> None:
    lines, left, is_cut = fitting_rows(Question("f", MANY_HOSTS), 60, rows)
    whole = len([*question_rows(Question("f", MANY_HOSTS), 60)])
    assert len(lines) + left == whole
    assert (left == 0) == (rows == 40) == (not is_cut)


@pytest.mark.parametrize("why", ["", "because", "because " * 30], ids=["none", "short", "long"])
@pytest.mark.parametrize("needing", [0, 1, 9])
def test_reason_lines_and_source_never_take_more_than_six_rows_with_what_a_yes_gives(why: str, needing: int) -> None:
    lines_of_code = tuple((number, f"self.fetch({number})") for number in range(needing))
    diff = "--- a\n+++ b\n@@ -0,0 +1,30 @@\n" + "+x\n" * 30
    asking = Question("f", Grants(network=("a.b",)), why=why, lines=lines_of_code, diff=diff)
    lines, left, is_cut = fitting_rows(asking, 60, 40)
    shown, whole = text_of(lines), text_of(question_rows(asking, 60))
    assert len(shown) <= 6
    assert left == len(whole) - len([row for row in shown if row != "  …"])
    assert not is_cut
    assert shown[:2] == whole[:2]


@pytest.mark.parametrize("asking", [Question("f", MANY_HOSTS, is_again=True), Question("f", Grants(), moment="helper")])
def test_of_a_text_that_is_asked_about_all_is_shown_before_a_yes_counts(asking: Question) -> None:
    asking = replace(asking, diff="--- a\n+++ b\n@@ -1,30 +1,30 @@\n" + "+x\n" * 30)
    assert fitting_rows(asking, 60, 8)[2]
    assert text_of(fitting_rows(asking, 60, 80)[0]) == text_of(question_rows(asking, 60))


@pytest.mark.parametrize(
    ("typed", "answer", "word"),
    [("once", "once", ""), (" Yes ", "yes", ""), ("n", "no", ""), ("w use less", "no", "use less")],
    ids=["once", "yes", "no", "word"],
)
def test_a_typed_line_is_an_answer_by_its_whole_word(typed: str, answer: str, word: str) -> None:
    decision = typed_decision(typed, Agreement("something was typed"))
    assert decision is not None
    assert (decision.answer, decision.word) == (answer, word)


@pytest.mark.parametrize("typed", ["", "y", "o", "f", "Y", "ok", "w", "w  ", "yy", "yes please"])
def test_a_letter_is_no_answer_where_something_was_typed_ahead(typed: str) -> None:
    assert typed_decision(typed, Agreement("something was typed")) is None


@pytest.mark.parametrize(("typed", "answer"), [("o", "once"), ("y", "yes"), ("Yes", "yes"), ("n", "no"), ("no", "no")])
def test_a_letter_or_word_is_an_answer_where_nothing_was_typed_ahead(typed: str, answer: str) -> None:
    decision = typed_decision(typed, Agreement())
    assert decision is not None
    assert decision.answer == answer


@pytest.mark.parametrize("typed", ["", "ok", "w", "yy", "y please", "y 4f", "f"])
def test_any_other_line_is_no_answer(typed: str) -> None:
    assert typed_decision(typed, Agreement()) is None


def test_hostile_words_of_the_model_never_reach_the_terminal_as_they_are(tmp_path: Path, place: str) -> None:
    with asked([made(place, reason=HOSTILE), Say("I see."), DONE], tmp_path) as screen:
        seen = screen.scrolled()
        press(screen, "n")
        ended(screen)
        for sent in (b"\x1b]0", b"\x07", b"\x1b[2J", b"\xc2\x9b", "\u202e".encode(), "\u2066".encode()):
            assert sent not in screen.sent, sent
    assert "  │ why\\x1b[2J\\x1b]0;pwned\\x07\\u202e\\u2066\\x9b8m ? other asks to: nothing" in seen
    assert not re.search(r"^\? other", seen, re.MULTILINE)


def test_a_question_fits_a_narrow_screen_without_colours(tmp_path: Path, place: str) -> None:
    long = made(place, reason="to see what comes of it " * 20)
    with asked([long, *REFUSED], tmp_path, columns=60, environment={"NO_COLOR": "1"}) as screen:
        rows = screen.screen()
        assert rows.index("? weather asks to join, and to:") < rows.index(
            "o once · y yes, kept · n no · w no, with a word · d all of"
        )
        assert any(row.startswith("  it (+") for row in rows)
        assert {screen.colour_of(text) for text in ("? weather", "o once")} == {("default", "default")}
        shown_whole(screen)
        screen.wait_count("│ +    return", 1)
        press(screen, "n")
        ended(screen)


@pytest.mark.sampled
@pytest.mark.parametrize(("columns", "rows"), sampled([(50, 12), (60, 24), (120, 40)], 3))
def test_a_question_stays_whole_when_the_window_changes(tmp_path: Path, place: str, columns: int, rows: int) -> None:
    with asked([made(place), DONE], tmp_path) as screen:
        screen.resize(columns, rows)
        screen.wait(lambda: len(screen.screen()) == rows and whole(screen.screen()), "the question, drawn anew")
        press(screen, "y")
        screen.wait(lambda: cut_or_answered(screen), "what came of the key")
        if any("not all of it has been" in row for row in screen.screen()):
            shown_whole(screen)
            press(screen, "y")
        ended(screen)
        assert "→ yes" in screen.scrolled()


def cut_or_answered(screen: Terminal) -> bool:
    return "not all of it has been" in screen.scrolled() or "→ yes" in screen.scrolled()


def test_a_yes_counts_only_once_all_that_it_gives_was_shown(tmp_path: Path, place: str) -> None:
    many = "".join(f'    self.fetch("http://h{number}.example.org/")\n' for number in range(12))
    code = weather(place).replace("    return", f"{many}    return")
    with asked([Ask(create(code, "weather")), DONE], tmp_path) as screen:
        screen.resize(60, 14)
        screen.wait(lambda: any("more rows" in row for row in screen.screen()), "the question, cut")
        press(screen, "y")
        screen.wait_for("not all of it has been")
        press(screen, "d")
        screen.wait_for("press d for the next page")
        press(screen, "o")
        screen.wait_for("not all of it has been")
        assert not (tmp_path / "functions" / "grants.toml").exists()
        shown_whole(screen)
        screen.wait_count("│ +    return\n  ↪ ", 1)
        press(screen, "y")
        ended(screen)
    assert place in (tmp_path / "functions" / "grants.toml").read_text()


def whole(rows: list[str]) -> bool:
    return all(any(part in row for row in rows) for part in ("? weather asks", "    fetch from", "o once", "›"))


def test_a_question_of_more_than_the_screen_shows_comes_in_pages() -> None:
    many = Question("f", Grants(network=tuple(f"h{number}.example.org" for number in range(40))))
    found = list(pages(many, 80, 20))
    assert [is_last for _, is_last in found] == [False, False, True]
    assert [row for page, _ in found for row in page] == [*question_rows(many, 80)]


def test_a_screen_of_a_giant_question_is_drawn_at_once() -> None:
    giant = Question("f", Grants(network=("a.b",)), diff="--- a\n+++ b\n@@ -1 +1 @@\n" + f"+{'x ' * 100_000}\n" * 20)
    assert fitting_rows(giant, 80, 20)[1] == 200
    assert least_s(1, lambda: time_of(lambda: fitting_rows(giant, 80, 20))) <= 1


def test_packages_that_cannot_be_had_are_not_told_as_forbidden() -> None:
    event = GrantAnswered(
        turn="t",
        question="1",
        function="f",
        says=("import the package x",),
        answer="no",
        by="unavailable",
        word="No\x1b.",
    )
    told = plain(denied_lines([event]))
    assert told == "! denied because what it needs is not available: f to import the package x\n  No\\x1b.\n"


@pytest.mark.parametrize(
    ("moment", "is_again", "caller", "head"),
    [
        pytest.param("join", False, "", "? f asks to join, and to:", id="before it joins"),
        pytest.param("call", False, "", "? f asks, before it runs, to:", id="before a call"),
        pytest.param("call", False, "g", "? f, called by g, asks, before it runs, to:", id="before a function's call"),
        pytest.param("call", True, "g", "? f, called by g, is a different version now and asks again to:", id="again"),
        pytest.param("run", False, "g", "? f, called by g, runs, and asks to:", id="while it runs for another"),
        pytest.param("grant", False, "", "? You grant f:", id="by hand"),
        pytest.param("grant", True, "", "? You grant f again, now a different version:", id="by hand to a new version"),
    ],
)
def test_the_first_line_says_who_asks_and_when(moment: Moment, is_again: bool, caller: str, head: str) -> None:
    asking = Question("f", Grants(network=("a.b",)), moment=moment, is_again=is_again, caller=caller)
    assert plain(question_rows(asking, 80)).splitlines() == [head, "    fetch from a.b"]


def test_a_text_that_looks_like_a_new_one_hides_no_difference() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1,2 @@\n one\n+@@ -0,0 +1 @@"
    asking = Question("f", Grants(network=("a.b",)), diff=diff)
    shown = plain(question_rows(asking, 80))
    assert "What is different:\n  │ --- a\n" in shown
    assert transcript_form(asking).diff == diff


def test_what_was_denied_is_told_once_with_its_command() -> None:
    one = GrantAnswered(
        turn="t", question="1", function="f\x1b[5m", says=("fetch from a.b",), answer="no", by="policy", command="do it"
    )
    by_human = GrantAnswered(turn="t", question="2", function="g", says=("read x",), answer="no")
    told = plain(denied_lines([one, one, by_human]))
    assert told == "! denied because nobody can be asked here: f\\x1b[5m to fetch from a.b\n  to grant it: do it\n"
