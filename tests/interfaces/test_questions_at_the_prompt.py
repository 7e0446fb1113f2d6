"""A human at the prompt is asked before a function gets a missing grant, and answers with one key."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interfaces.asking import CALL, DONE, REFUSED, home, made, press, shown_whole, weather
from tests.interfaces.support import create, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains
from tests.kit.sources import function_text
from tests.kit.terminal import CTRL_C, ENTER, ESCAPE, UP, Terminal


def entries(root: Path) -> str:
    file = root / "functions" / "grants.toml"
    return file.read_text() if file.exists() else ""


@contextmanager
def turn(
    screen: Terminal, *says: str, asks: str = "? weather asks to join", ahead: str = ""
) -> Iterator[None]:
    """Send a message whose turn asks a question; at its end, the turn is over and each text was said once more."""
    before = [(text, screen.scrolled().count(text)) for text in ("∙ ", *says)]
    if ahead:
        screen.do("what is the weather?", "One moment")
        screen.type(ahead)
        screen.wait(lambda: since(screen).count("One moment") == 0, "the question")
    else:
        screen.do("what is the weather?", asks)
        screen.wait_for("Press o (once)")
    yield
    for text, count in before:
        screen.wait_count(text, count + 1)


def since(screen: Terminal) -> str:
    """Return what is on the screen since the last question."""
    return screen.scrolled().rpartition("? weather")[2]


def test_a_no_has_many_forms_and_is_told_to_the_model(tmp_path: Path, place: str) -> None:
    other = Wanted(
        "create_function", {"function_name": "rain", "function_code_with_docstring": renamed(place)}
    )
    told = Expect(
        Ask(other),
        contains("The user was asked and said no.\nDo not try the same again in this turn"),
    )
    said_no: Script = [Expect(DONE, contains("said no")), DONE]
    word = Expect(DONE, contains("They say: “only for Norway”.\nChange it as they say"))
    script: Script = [
        *[made(place, reason="to say if it rains"), *REFUSED],
        made(place),
        told,
        Expect(DONE, contains("has said no to this in this turn")),
        DONE,
        made(place),
        word,
        DONE,
        *[made(place), *said_no] * 2,
    ]
    with prompt(script, tmp_path, environment=home(tmp_path)) as (screen, _):
        with turn(screen, "→ no"):
            seen = "\n".join(screen.screen())
            visible = shown_whole(screen)
            press(screen, "n")
        assert f"? weather asks to join, and to:\n    fetch from {place}\n" in seen
        reason = "  The reason given:\n  │ to say if it rains\n"
        assert f"{reason}  The lines that need it:\n  │ 10 return self.fetch(" in seen
        assert "The full source:" not in seen
        assert {"  The full source:", "  │ +def weather(self, city: str) -> str:"} <= visible
        asked = screen.scrolled().count("asks to join")
        with turn(screen, "denied because you already said no in this turn: rain to fetch from"):
            press(screen, "n")
        assert screen.scrolled().count("asks to join") == asked + 1
        with turn(screen, "→ no: “only for Norway”"):
            screen.type("\x1b[200~half a thought\x1b[201~")
            screen.wait_for("That is not an answer.")
            press(screen, "w")
            screen.wait_for("reason ›")
            screen.type("only for Norway" + ENTER)
        for key in (ESCAPE, CTRL_C):
            with turn(screen, "→ no"):
                press(screen, key)
    assert entries(tmp_path) == ""


def renamed(place: str) -> str:
    return (
        weather(place)
        .replace("weather(", "rain(")
        .replace("what the weather is", "whether it rains")
    )


@pytest.mark.slow
def test_what_is_no_answer_is_explained(tmp_path: Path, place: str) -> None:
    script: Script = [*[made(place), *REFUSED] * 4, Expect(DONE, contains("next"))]
    with prompt(script, tmp_path, environment=home(tmp_path)) as (screen, _):
        with turn(screen, "→ no"):
            screen.type(ENTER)
            screen.wait_for("Enter is not an answer.")
            screen.type("x")
            screen.wait_for("That was typed text")
            screen.type("\x7f")
            time.sleep(0.8)  # until the user is no longer typing
            screen.type("y")
            screen.wait_for("Enter answers always")
            screen.type("e")  # a letter takes it back
            screen.wait_for("› ye")
            assert "→" not in since(screen)
            screen.type(ENTER)
            screen.wait_for("“ye” is not an answer and was not sent")
            press(screen, "n")
        screen.wait_gone("› ye")
        with turn(screen, "→ no"):
            screen.type("maybe")
            screen.wait_for("› maybe")
            time.sleep(0.1)
            screen.type(ENTER)
            screen.wait_for("“maybe” is not an answer and was not sent (↑ recalls it).")
            press(screen, "n")
        for pasted in (
            f"y{ENTER}and more",
            f"yes{ENTER}and more{ENTER}",
        ):  # right behind one another: a paste
            with turn(screen, "→ no"):
                screen.type(pasted)
                screen.wait_for("and more")
                time.sleep(0.5)
                assert "→" not in since(screen)
                screen.type(CTRL_C)
        screen.type(CTRL_C)
        screen.do("next", "› next", "∙ ")
    assert entries(tmp_path) == ""


def test_a_yes_is_kept_serves_every_later_call_and_is_taken_back(
    tmp_path: Path, place: str
) -> None:
    rains = Expect(Ask(CALL), contains("rain in Oslo"))
    loud = Expect(Say("As it was."), contains("RAIN IN OSLO"))
    both = Ask(CALL, Wanted("weather", {"city": "Rome"}))
    script: Script = [made(place), Ask(CALL), rains, DONE, Ask(CALL), loud, both, DONE]
    with prompt(script, tmp_path, environment=home(tmp_path)) as (screen, _):
        with turn(screen, "→ yes, kept in functions/grants.toml"):
            press(screen, "y")
        assert screen.scrolled().count("? weather") == 1
        assert place in entries(tmp_path)
        file = tmp_path / "functions" / "words.py"
        file.write_text(file.read_text().replace(".text()", ".text().upper()"))
        screen.wait_for("weather was changed outside")
        with turn(screen, "As it was.", asks="? weather is a new version now and asks again to:"):
            screen.wait_for('│ +    return self.fetch(f"http://')
            press(screen, "y")
        screen.do("/grants", f"  fetch from {place}")
        screen.do(
            "/grants weather revoke elsewhere.example", "weather has no grant elsewhere.example."
        )
        screen.do(f"/grants weather revoke {place}", "✓ weather may no longer")
        screen.do("/grants", "No function has a grant.")
        assert place not in entries(tmp_path)
        asked = screen.scrolled().count("? weather")
        with turn(screen, "RAIN IN ROME", asks="? weather"):  # two calls at once, one question
            press(screen, "y")
        assert screen.scrolled().count("? weather") == asked + 1


def test_a_yes_for_once_serves_one_call_and_a_host_of_no_text_is_asked_for_as_it_runs(
    tmp_path: Path, place: str
) -> None:
    anywhere = renamed(place).replace(f'f"http://{place}/{{city}}"', "city")
    grow = Ask(
        Wanted(
            "create_function", {"function_name": "rain", "function_code_with_docstring": anywhere}
        )
    )
    once: Script = [made(place), Ask(CALL), Expect(Ask(CALL), contains("rain in Oslo"))]
    runs: Script = [
        grow,
        Ask(Wanted("rain", {"city": f"http://{place}/Oslo"})),
        Expect(DONE, contains("rain in Oslo")),
    ]
    with prompt(
        [*once, Expect(DONE, contains("said no")), *runs], tmp_path, environment=home(tmp_path)
    ) as (screen, _):
        with turn(screen, "→ once", "→ no"):
            press(screen, "o")
            screen.wait_for("? weather asks, before it runs, to:")
            press(screen, "n")
        with turn(screen, "→ once", asks="? rain runs, and asks to:"):
            screen.wait_for(f"    fetch from {place}")
            press(screen, "o")
        assert screen.scrolled().count("? rain") == 1
    assert entries(tmp_path) == ""


LONGEST = function_text(
    "longest(self, path: str) -> str",
    "Return the longest line of a file.\n\nArgs:\n    path: The file.",
    "return max(open(path).readlines(), key=len).strip()",
)
PEEK = function_text(
    "peek(self, path: str) -> str",
    "Return the text of a file.\n\nArgs:\n    path: The file.",
    "return open(path).read().strip()",
)


def test_one_key_gives_a_folder_to_all_functions_that_the_agent_makes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "data" / name).write_text(name)
    script: Script = [
        Ask(create(PEEK, "peek")),
        Ask(Wanted("peek", {"path": "data/a.csv"})),
        Expect(Say("It says so."), contains("a.csv")),
        Ask(create(LONGEST, "longest")),
        Ask(Wanted("longest", {"path": "data/b.csv"})),
        Expect(DONE, contains("b.csv")),
    ]
    with prompt(script, tmp_path, environment=home(tmp_path), columns=150) as (screen, _):
        with turn(screen, "→ yes, the folder for all that main makes", asks="? peek is running"):
            screen.wait_for("f (always, read data/ for all that main makes here)")
            press(screen, "f")
        screen.do("and the other?", "That is all.")
        assert screen.scrolled().count("is running and asks") == 1
        screen.do("/grants", "agent:main (all that it makes here)", "  read data/")
        screen.do("/grants agent:main revoke", "✓ agent:main may no longer")
    assert "data/" not in entries(tmp_path)


SLOW_TO_SHOW = """
import time
from pathlib import Path
from prompt_toolkit.output import vt100

write = vt100.flush_stdout

def slowly(out, text):
    if "asks to join" in text and not Path("writing").exists():
        Path("writing").touch()
        time.sleep(1.5)
    write(out, text)

vt100.flush_stdout = slowly
"""
"""A terminal that takes long to take a question, as one at the end of a slow line does."""


def test_an_answer_that_comes_while_the_question_is_being_written_is_none(
    tmp_path: Path, place: str
) -> None:
    script: Script = [made(place), *REFUSED]
    with prompt(script, tmp_path, environment=home(tmp_path), first=SLOW_TO_SHOW) as (screen, _):
        screen.line("what is the weather?")
        screen.wait((tmp_path / "writing").exists, "the beginning of the question")
        screen.line("o")
        screen.wait_for("You began typing “o” before you could answer")
        screen.wait_for("Press o (once)")
        assert "→" not in since(screen)
        press(screen, "n")
        screen.wait_for("∙ ")


@pytest.mark.slow
def test_what_is_typed_ahead_or_slowly_answers_nothing_and_stays_in_the_line(
    tmp_path: Path, place: str
) -> None:
    slow = made(place, text="One moment please. " * 4, pause_s=0.05)
    with prompt([slow, *REFUSED] * 4, tmp_path, environment=home(tmp_path)) as (screen, _):
        with turn(screen, "→ no", ahead="y"):
            screen.type("y")
            screen.wait_for("› yy")
            screen.wait_for("Enter puts your line aside")
            screen.type(ENTER)
            screen.wait_for("Press o (once)")
            assert "→" not in since(screen)
            press(screen, "n")
        screen.wait_for("› yy")
        screen.type(CTRL_C)
        for begun, typed, told in (
            ("h", "i", "You began typing “hi” before"),
            ("\x7f", "hi", "“hi” is not an answer and was not sent"),
        ):
            with turn(screen, "→ no", ahead=begun):
                for key in f"{typed} {ENTER}":
                    time.sleep(0.8)
                    screen.type(key)
                screen.wait_for(told)
                time.sleep(0.5)
                assert "→" not in since(screen)
                press(screen, "n")
            if typed == "hi":
                screen.type(UP)
            screen.wait_for("› hi")
            screen.type(CTRL_C)
        before = screen.scrolled().count("∙ ")
        screen.do("what is the weather?", "One moment")
        os.kill(screen.process.pid, signal.SIGSTOP)
        time.sleep(1)
        screen.line("y")  # a key on its way as the question appears
        os.kill(screen.process.pid, signal.SIGCONT)
        screen.wait_for("delivered at the next step")
        screen.wait_for("Press o (once)")
        assert "→" not in since(screen)
        press(screen, "n")
        screen.wait_count("∙ ", before + 1)
