"""A human at the prompt is asked before a function gets a missing grant, and answers with one key."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interfaces.asking import CALL, DONE, REFUSED, asked, ended, made, press, service, shown_whole, weather
from tests.interfaces.support import prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains
from tests.kit.drawing import sampled
from tests.kit.terminal import CTRL_C, ENTER, ESCAPE, UP


@pytest.fixture
def place() -> Iterator[str]:
    with service() as found:
        yield found


def entries(root: Path) -> str:
    file = root / "functions" / "grants.toml"
    return file.read_text() if file.exists() else ""


def test_a_question_says_who_asks_for_what_why_and_by_which_line(tmp_path: Path, place: str) -> None:
    with asked([made(place, reason="to say if it rains"), *REFUSED], tmp_path) as screen:
        seen = "\n".join(screen.screen())
        shown_whole(screen)
        whole = screen.scrolled()
        press(screen, "n")
        screen.wait_for("→ no")
        ended(screen)
    assert f"? weather asks to join, and to:\n    fetch from {place}\n" in seen
    assert "  The reason given:\n  │ to say if it rains\n  The lines that need it:\n  │ 10 return self.fetch(" in seen
    assert "The full source:" not in seen
    assert "  The full source:\n  │ +def weather(self, city: str) -> str:" in whole


def test_a_yes_is_kept_and_serves_every_later_call(tmp_path: Path, place: str) -> None:
    rains = Expect(Ask(CALL), contains("rain in Oslo"))
    with asked([made(place), Ask(CALL), rains, DONE], tmp_path) as screen:
        press(screen, "y")
        ended(screen)
        seen = screen.scrolled()
    assert seen.count("? weather") == 1
    assert "→ yes, kept in functions/grants.toml" in seen
    assert place in entries(tmp_path)


def test_a_yes_for_once_serves_one_call_and_the_next_asks_again(tmp_path: Path, place: str) -> None:
    once: Script = [made(place), Ask(CALL), Expect(Ask(CALL), contains("rain in Oslo"))]
    with asked([*once, Expect(DONE, contains("said no"))], tmp_path) as screen:
        press(screen, "o")
        screen.wait_for("→ once")
        screen.wait_for("? weather asks, before it runs, to:")
        press(screen, "n")
        ended(screen)
    assert entries(tmp_path) == ""


def test_a_no_is_told_to_the_model_and_not_asked_again_in_this_turn(tmp_path: Path, place: str) -> None:
    other = Wanted("create_function", {"function_name": "rain", "function_code_with_docstring": renamed(place)})
    told = Expect(Ask(other), contains("The user was asked and said no.\nDo not try the same again in this turn"))
    with asked(
        [made(place), told, Expect(DONE, contains("has said no to this in this turn")), DONE], tmp_path
    ) as screen:
        press(screen, "n")
        ended(screen)
        assert "denied because you already said no in this turn: rain to fetch from" in screen.scrolled()
        assert screen.scrolled().count("asks to join") == 1


def renamed(place: str) -> str:
    return weather(place).replace("weather(", "rain(").replace("what the weather is", "whether it rains")


def test_a_word_with_a_no_reaches_the_model_and_the_draft_stays(tmp_path: Path, place: str) -> None:
    script: Script = [made(place), Expect(DONE, contains("They say: “only for Norway”.\nChange it as they say")), DONE]
    with asked(script, tmp_path) as screen:
        screen.type("\x1b[200~half a thought\x1b[201~")
        screen.wait_for("That is not an answer.")
        press(screen, "w")
        screen.wait_for("word ›")
        screen.type("only for Norway" + ENTER)
        ended(screen)
        assert "→ no: “only for Norway”" in screen.scrolled()


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C], ids=["escape", "ctrl-c"])
def test_escape_and_ctrl_c_are_a_no_and_the_turn_goes_on(tmp_path: Path, place: str, key: str) -> None:
    with asked([made(place), Expect(DONE, contains("said no")), DONE], tmp_path) as screen:
        press(screen, key)
        screen.wait_for("→ no")
        ended(screen)
    assert entries(tmp_path) == ""


def test_enter_and_other_keys_answer_nothing_and_explain(tmp_path: Path, place: str) -> None:
    with asked([made(place), *REFUSED], tmp_path) as screen:
        screen.type(ENTER)
        screen.wait_for("Enter is not an answer. Press o (once), y (always), n (no) or w (no, with a")
        screen.type("x")
        screen.wait_for("That was typed text")
        screen.type("\x7f")
        assert "→" not in screen.scrolled().split("? weather")[1]
        press(screen, "n")
        ended(screen)


def test_what_is_typed_ahead_answers_nothing_and_stays_in_the_line(tmp_path: Path, place: str) -> None:
    slow = made(place, text="One moment please. " * 4, pause_s=0.05)
    with prompt([slow, *REFUSED], tmp_path) as (screen, _):
        screen.line("what is the weather?")
        screen.wait_for("One moment")
        screen.type("y")
        screen.wait_for("? weather asks to join")
        screen.type("y")
        screen.wait_for("› yy")
        screen.wait_for("Enter puts your line aside")
        screen.type(ENTER)
        screen.wait_for("o once")
        assert "→ yes" not in screen.scrolled()
        press(screen, "n")
        ended(screen)
        screen.wait_for("› yy")


@pytest.mark.parametrize("before", ["h", ""], ids=["begun-before", "begun-after"])
def test_whoever_types_slowly_answers_nothing(tmp_path: Path, place: str, before: str) -> None:
    slow = made(place, text="One moment please. " * 4, pause_s=0.05)
    with prompt([slow, *REFUSED], tmp_path) as (screen, _):
        screen.line("what is the weather?")
        screen.wait_for("One moment")
        screen.type(before)
        screen.wait_for("? weather asks to join")
        for key in f"{'hi'[len(before) :]} {ENTER}":
            time.sleep(0.8)
            screen.type(key)
        screen.wait_for("You began typing “hi” before" if before else "“hi” is not an answer and was not sent")
        time.sleep(1)
        assert "→" not in screen.scrolled().split("? weather")[1]
        press(screen, "n")
        ended(screen)
        if not before:
            screen.type(UP)
        screen.wait_for("› hi")


def test_a_yes_takes_enter_and_a_letter_takes_it_back(tmp_path: Path, place: str) -> None:
    with asked([made(place), *REFUSED], tmp_path) as screen:
        screen.type("y")
        screen.wait_for("Enter answers yes, kept")
        screen.type("e")
        screen.wait_for("› ye")
        assert "→" not in screen.scrolled().split("? weather")[1]
        screen.type(ENTER)
        screen.wait_for("“ye” is not an answer and was not sent")
        press(screen, "n")
        ended(screen)
        screen.wait_gone("› ye")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("typed", "says"),
    sampled(
        [
            ("yes", "→ yes, kept in functions/grants.toml"),
            ("Once", "→ once"),
            ("w only for Norway", "→ no: “only for Norway”"),
            ("no", "→ no"),
        ],
        2,
    ),
)
def test_a_word_and_enter_answer_as_its_key_does(tmp_path: Path, place: str, typed: str, says: str) -> None:
    with asked([made(place), *(REFUSED if "no" in says else [DONE])], tmp_path) as screen:
        screen.wait_for("Press a key, then Enter after o or y. Or type once, yes or no, then Enter.")
        for letter in typed:
            screen.type(letter)
        screen.wait_for(f"› {typed}")
        screen.wait_for("Enter answers with your line")
        screen.type(ENTER)
        screen.wait_for(says)
        ended(screen)


def test_a_line_that_is_no_answer_is_told_and_does_not_come_back(tmp_path: Path, place: str) -> None:
    with asked([made(place), *REFUSED, Expect(DONE, contains("next"))], tmp_path) as screen:
        screen.type("maybe")
        screen.wait_for("› maybe")
        time.sleep(0.1)
        screen.type(ENTER)
        screen.wait_for("“maybe” is not an answer and was not sent (↑ recalls it). Press o (once)")
        press(screen, "n")
        ended(screen)
        screen.line("next")
        screen.wait_for("› next")
        screen.wait_count("∙ ", 2)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("typed", "says"), sampled([("y", "→ yes, kept"), ("o", "→ once"), ("n", "→ no"), ("yes", "→ yes")], 2)
)
def test_an_answer_and_enter_that_come_together_at_once_are_an_answer(
    tmp_path: Path, place: str, typed: str, says: str
) -> None:
    with asked([made(place), *(REFUSED if typed == "n" else [DONE])], tmp_path) as screen:
        screen.line(typed)
        screen.wait_for(says)
        ended(screen)


@pytest.mark.parametrize("pasted", [f"y{ENTER}and more", f"yes{ENTER}and more{ENTER}"], ids=["key", "word"])
def test_an_answer_with_more_right_behind_it_is_a_paste(tmp_path: Path, place: str, pasted: str) -> None:
    with asked([made(place), *REFUSED], tmp_path) as screen:
        screen.type(pasted)
        screen.wait_for("and more")
        time.sleep(0.5)
        assert "→" not in screen.scrolled().split("? weather")[1]
        screen.type(CTRL_C)
        screen.wait_for("→ no")
        ended(screen)


def test_a_key_on_its_way_as_the_question_appears_answers_nothing(tmp_path: Path, place: str) -> None:
    slow = made(place, text="One moment please. " * 4, pause_s=0.05)
    with prompt([slow, *REFUSED], tmp_path) as (screen, _):
        screen.line("what is the weather?")
        screen.wait_for("One moment")
        os.kill(screen.process.pid, signal.SIGSTOP)
        time.sleep(1)
        screen.line("y")
        os.kill(screen.process.pid, signal.SIGCONT)
        screen.wait_for("delivered at the next step")
        screen.wait_for("o once")
        assert "→" not in screen.scrolled().split("? weather")[1]
        press(screen, "n")
        ended(screen)


def test_only_new_content_asks_again_with_its_difference_and_one_key(tmp_path: Path, place: str) -> None:
    again: Script = [Ask(CALL), Expect(Say("As it was."), contains("RAIN IN OSLO"))]
    with asked([made(place), DONE, *again], tmp_path) as screen:
        press(screen, "y")
        ended(screen)
        file = tmp_path / "functions" / "words.py"
        file.write_text(file.read_text().replace(".text()", ".text().upper()"))
        screen.wait_for("weather was changed outside")
        screen.line("and now?")
        screen.wait_for("? weather is a different version now and asks again to:")
        screen.wait_for('│ +    return self.fetch(f"http://')
        press(screen, "y")
        screen.wait_for("As it was.")


def test_a_host_that_no_text_names_is_asked_for_while_the_call_runs_and_not_before(tmp_path: Path, place: str) -> None:
    anywhere = weather(place).replace(f'f"http://{place}/{{city}}"', "city")
    grow = Ask(Wanted("create_function", {"function_name": "weather", "function_code_with_docstring": anywhere}))
    call = Ask(Wanted("weather", {"city": f"http://{place}/Oslo"}))
    with asked([grow, call, Expect(DONE, contains("rain in Oslo"))], tmp_path) as screen:
        screen.wait_for("? weather runs, and asks to:")
        screen.wait_for(f"    fetch from {place}")
        press(screen, "o")
        ended(screen)
        assert screen.scrolled().count("? weather") == 1


def test_the_same_question_of_two_calls_at_once_is_asked_once(tmp_path: Path, place: str) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(weather(place))
    with asked([Ask(CALL, Wanted("weather", {"city": "Rome"})), DONE], tmp_path) as screen:
        press(screen, "y")
        ended(screen)
        seen = screen.scrolled()
    assert seen.count("? weather") == 1
    assert "rain in Oslo" in seen
    assert "rain in Rome" in seen


def test_grants_are_listed_and_taken_back_at_the_prompt(tmp_path: Path, place: str) -> None:
    with asked([made(place), DONE], tmp_path) as screen:
        press(screen, "y")
        ended(screen)
        screen.line("/grants")
        screen.wait_for(f"  fetch from {place}")
        screen.line("/grants weather revoke elsewhere.example")
        screen.wait_for("weather has no grant elsewhere.example.")
        screen.line(f"/grants weather revoke {place}")
        screen.wait_for("✓ weather may no longer")
        screen.line("/grants")
        screen.wait_for("No function has a grant.")
    assert place not in entries(tmp_path)
