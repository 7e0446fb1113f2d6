"""What a terminal sends by itself is never typed into anything; the keys of its protocols are keys."""

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.prompt.keys import KeyParser
from knapper.terminal.control_sequences import ControlReader, typed_text
from tests.interfaces.asking import DONE, home, press
from tests.interfaces.support import create, flags, prompt
from tests.kit import Ask, Expect, Repeat, Say, Script, Wanted, contains, scripted
from tests.kit.sources import function_text
from tests.kit.terminal import ALT_ENTER, CTRL_C, ENTER, ESCAPE, Terminal, terminal

REPORTS = (
    "\x1b[I",  # focus
    "\x1b[O",
    "\x1b]11;rgb:3030/3434/4646\x1b\\",  # colors
    "\x1b]10;rgb:ffff/ffff/ffff\x07",
    "\x1b]4;1;rgb:cdcd/0000/0000\x1b\\",
    "\x1b]lname of the window\x1b\\",
    "\x1b]52;c;aGVsbG8=\x07",  # the clipboard
    "\x1b[?62;1;4;6;22c",  # device and version
    "\x1b[>41;390;0c",
    "\x1bP!|7E565445\x1b\\",
    "\x1bP>|WezTerm 20260101\x1b\\",
    "\x1bP1+r544e=787465726d\x1b\\",
    "\x1bP1$r0m\x1b\\",
    "\x1b[24;80R",  # position, size, modes
    "\x1b[?24;80;1R",
    "\x1b[8;24;80t",
    "\x1b[48;24;80;480;1280t",
    "\x1b[?2026;2$y",
    "\x1b[4;2$y",
    "\x1b[?997;1n",
    "\x1b[0n",
    "\x1b[?5u",
    "\x1b[97;1:3u",  # a key is let go
    "\x1b[<0;12;7M",  # the mouse
    "\x1b[<0;12;7m",
    "\x1b[M !!",
    "\x1b[32;12;7M",
    "\x1b_Gi=31;OK\x1b\\",  # strings of applications
    "\x1b^a private message\x1b\\",
    "\x1bXany string\x1b\\",
    "\x1b[1;2;3 q",  # what nobody knows
    "\x1b[=9;9!~",
    "\x1b]9999;\x07",
    "\x9b?62c",
)
KEYS = {
    "\x1b[97u": "a",
    "\x1b[97;2u": "A",
    "\x1b[49:33;2u": "!",
    "\x1b[97;65u": "A",  # with the caps lock
    "\x1b[228;1;228u": "ä",
    "\x1b[97;1:2u": "a",  # held down
    "\x1b[57400u": "1",
    "\x1b[27;2;66~": "B",
    "\x1b[32;1u": " ",
}
PIECES = st.lists(st.sampled_from([*REPORTS, *KEYS, *"abc é漢?[];1~\\"]), max_size=12)
KEYED = function_text(
    "keyed(self) -> int",
    "Return the length of the key of the shop.",
    'return len(self.secret("SHOP_KEY"))',
)


def drip(screen: Terminal, *texts: str, at: int = 4) -> None:
    """Type texts in pieces, each cut at some of its places."""
    for text in texts:
        for begin in range(0, len(text), at):
            screen.type(text[begin : begin + at])
            time.sleep(0.02)


def pressed(parts: Sequence[str]) -> list[str]:
    """Return the keys that the prompt gets, by what each types."""
    keys: list[str] = []
    parser = KeyParser(lambda key: keys.append(key.data))
    for part in parts:
        parser.feed(part)
    parser.flush()
    return keys


@given(PIECES, st.data())
def test_reports_leave_nothing_and_keys_of_protocols_are_keys_however_the_input_is_cut(
    pieces: list[str], data: st.DataObject
) -> None:
    sent, typed = (
        "".join(pieces),
        "".join(KEYS.get(piece, "" if piece in REPORTS else piece) for piece in pieces),
    )
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sent)), max_size=6)) | {0, len(sent)})
    parts = [sent[begin:end] for begin, end in pairwise(cuts)]
    assert "".join(pressed(parts)) == typed
    reader = ControlReader(is_of_lines=True)
    assert (
        typed_text(piece for part in [*parts, "\n"] for piece in reader.feed(part)) == f"{typed}\n"
    )


@given(
    st.lists(
        st.text(
            st.sampled_from("\x1b[]PX^_O\\?;19cuM~\x07\x18\r\x03 \x9b\x9c\udc9bah"), max_size=9
        ),
        max_size=9,
    )
)
def test_no_input_is_lost_for_good_or_raises(parts: list[str]) -> None:
    parser = ControlReader()
    for part in parts:
        parser.feed(part)
    ended = parser.feed("\x1b\\\x1b[201~\x1b\\\r" + "x" * 4)
    assert ended[-1].text.endswith("xxxx")


def test_a_string_that_never_ends_is_bounded() -> None:
    reader = ControlReader()
    for _ in range(40):
        assert not reader.feed("\x1b]0;" + "9" * 50_000)
    reader.feed("\x1b]0;")
    left = typed_text(piece for _ in range(40) for piece in reader.feed("x" * 50_000))
    assert 0 < len(left) < 1_000_000


@pytest.mark.parametrize("at", [1, 1_000])
def test_what_a_person_types_is_the_message_whatever_the_terminal_reports_meanwhile(
    tmp_path: Path, at: int
) -> None:
    script: Script = [
        Expect(Say("Heard."), contains("hello")),
        Expect(Say("Two."), contains("one\ntwo")),
        Expect(Say("Keys."), contains("Ab ok")),
    ]
    with prompt(script, tmp_path) as (screen, model):
        drip(screen, "he", *REPORTS, "llo", at=at)
        screen.wait_for("› hello")
        screen.do("", "Heard.", "∙ 1 step")
        drip(screen, "one", REPORTS[0], ALT_ENTER, *REPORTS[2:8], "two", at=at)
        screen.wait_for("  two")
        screen.do("", "Two.")
        drip(screen, "x\x1b[127u\x1b[97;2ub\x1b[32u\x1b[111uk\x1b[13u", at=at)
        screen.wait_for("Keys.")
        said = [str(request.messages[-1]["content"]) for request in model.requests]
        assert said == ["hello", "one\ntwo", "Ab ok"]


def test_escape_and_keys_with_alt_do_what_they_did(folder: Path) -> None:
    (folder / "functions" / "shop.py").write_text(KEYED)
    with prompt([Expect(Say("Heard."), contains("a b"))], folder) as (screen, _):
        screen.type("a b c")
        screen.wait_for("› a b c")
        screen.type("\x1b\x7f")  # Alt-Backspace
        screen.wait(lambda: any(row == "› a b" for row in screen.screen()), "the word gone")
        screen.type("\x1b[99;5u")  # Ctrl-C
        screen.wait_gone("› a b")
        screen.line("/functions")
        screen.wait_for("Esc")
        screen.type(ESCAPE)
        screen.wait_gone("Esc")
        screen.type("a b\x1b]")  # Alt-]
        time.sleep(0.6)
        screen.line("")
        screen.wait_for("Heard.")


def test_a_report_while_a_turn_runs_ends_nothing_and_is_not_sent(tmp_path: Path) -> None:
    with prompt([Repeat(Say("word " * 400, pause_s=0.02))], tmp_path) as (screen, model):
        screen.line("talk")
        screen.wait_for("word word")
        drip(screen, *REPORTS)
        assert "Interrupted." not in screen.scrolled()
        screen.type(CTRL_C)
        screen.wait_for("Interrupted.")
        screen.type(ENTER)
        time.sleep(0.3)
        assert [request.messages[-1]["content"] for request in model.requests] == ["talk"]


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_report_answers_no_question_and_is_no_part_of_a_secret(tmp_path: Path, term: str) -> None:
    value = "sk-12345-abcdef"  # pragma: allowlist secret
    called: Script = [
        Ask(create(KEYED, "keyed")),
        Ask(Wanted("keyed", {})),
        Expect(DONE, contains(str(len(value)))),
    ]
    around = {
        **home(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path.parent / f"{tmp_path.name}-config"),
        "TERM": term,
    }
    with (
        scripted(called) as model,
        terminal(
            "run", *flags(model), cwd=tmp_path, environment=around, columns=120, rows=60
        ) as screen,
    ):
        screen.wait_for("/help lists")
        screen.line("how long is it?")
        screen.wait_for("(once)")
        if term == "dumb":
            screen.type("".join(REPORTS))
            screen.answer("y")
        else:
            drip(screen, *REPORTS)
            assert "not an answer" not in screen.scrolled()
            press(screen, "y")
        screen.wait_for("The value of SHOP_KEY (not shown as you type")
        screen.type(REPORTS[0] + value[:3] + REPORTS[2] + value[3:] + REPORTS[9])
        screen.type(REPORTS[1] + ENTER)
        screen.wait_for("∙ ")
        screen.wait_for("SHOP_KEY is set.")
