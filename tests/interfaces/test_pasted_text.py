"""Text that was pasted may be a stranger's: it is a message, runs no command, and chooses no file to send."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS, flags, leave, prompt
from tests.kit import Repeat, Say, ScriptedModel, scripted
from tests.kit.drawing import sampled
from tests.kit.program import knapper
from tests.kit.terminal import ALT_ENTER, UP, Terminal, terminal

BEGINS, ENDS = "\x1b[200~", "\x1b[201~"
KEY = "AKIA-VICTIM"
PAUSE_S = 0.2  # four times as long as lines that arrive together may be apart
NOT_SENT = "was pasted, so it is not sent"
KILL_BACK, YANK, START, END, DELETE, BACKSPACE = "\x15", "\x19", "\x01", "\x05", "\x04", "\x7f"


@pytest.fixture
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file outside of the workspace that no one wants to send."""
    file = tmp_path_factory.mktemp("home") / "credentials"
    file.write_text(f"{KEY}\n")
    return file


@contextmanager
def plain(folder: Path, term: str = "xterm-256color") -> Iterator[tuple[Terminal, ScriptedModel]]:
    with (
        scripted([Repeat(Say("Summed."))]) as model,
        terminal(
            "run", "--plain", *flags(model), cwd=folder, environment={"TERM": term}, columns=200
        ) as screen,
    ):
        screen.wait_for("/help lists")
        screen.wait_for("›")
        yield screen, model


def sent(model: ScriptedModel) -> list[str]:
    """Return the messages of the user that reached the model, in order."""
    messages = model.requests[-1].messages if model.requests else []
    return [str(message["content"]) for message in messages if message["role"] == "user"]


def type_slowly(screen: Terminal, *pieces: str) -> None:
    """Type pieces with pauses, as a slow connection delivers them."""
    for piece in pieces:
        screen.type(piece)
        time.sleep(PAUSE_S)


MAIL = "Summarize:\nHello,\n!touch pwned\nBye"
ONE_MESSAGE: dict[str, tuple[Sequence[str], str]] = {
    "lines": ([f"{MAIL}\n"], MAIL),
    "lines and a begun one": ([MAIL, "\n"], MAIL),
    "a command begun below a line": (["Hello,\n!touch pwned", "\n"], "Hello,\n!touch pwned"),
    "a command first": (["!touch pwned\nHello,\n"], "!touch pwned\nHello,"),
    "a command and a blank line": (["!touch pwned\n\n"], "!touch pwned"),
    "a slash command": (["/shell touch pwned\nHello,\n"], "/shell touch pwned\nHello,"),
    "a call": (['=count_vowels("a")\nHello,\n'], '=count_vowels("a")\nHello,'),
    "marked, with pauses": (
        [f"{BEGINS}Hello,\n", "!touch pwned\n", f"Bye\n{ENDS}", "\n"],
        "Hello,\n!touch pwned\nBye",
    ),
    "marked, with a line break": ([f"{BEGINS}!touch pwned\n{ENDS}", "\n"], "!touch pwned"),
    "an end within": (
        [f"{BEGINS}Hello,\n{ENDS}!touch pwned\nBye\n{ENDS}", "\n"],
        "Hello,\n!touch pwned\nBye",
    ),
    "an end that was deleted": ([f"{BEGINS}!touch pwned\n", f"{ENDS[:-1]}\n"], "!touch pwned"),
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("pieces", "message", "term"),
    [
        *[(*row, "xterm-256color") for row in ONE_MESSAGE.values()],
        *sampled([(*row, "dumb") for row in ONE_MESSAGE.values()], 4),
    ],
)
def test_lines_pasted_at_the_plain_prompt_are_one_message_and_run_nothing(
    folder: Path, pieces: Sequence[str], message: str, term: str
) -> None:
    (folder / "functions" / "words.py").write_text(COUNT_VOWELS)
    with plain(folder, term) as (screen, model):
        type_slowly(screen, *pieces)
        screen.wait_for("Summed.")
        screen.do("typed", "Summed.")
        assert sent(model) == [message, "typed"]
    assert not (folder / "pwned").exists()


def test_a_command_that_came_alone_runs_at_the_plain_prompt(folder: Path) -> None:
    with plain(folder) as (screen, model):
        assert screen.sent.count(b"\x1b[?2004h") == 1
        screen.line("!touch typed")
        screen.wait_for("it goes along")
        screen.line(f"{BEGINS}!touch pasted{ENDS}")
        screen.wait_count("it goes along", 2)
        screen.line(f"{BEGINS}/exit\n{ENDS}")
        screen.wait_for("pasted lines are one message, not a command")
        screen.wait_for("Summed.")
        screen.line("/exit")
        assert screen.exit_code() == 0
        assert screen.sent.count(b"\x1b[?2004l") == 1
    assert {"typed", "pasted"} <= {path.name for path in folder.iterdir()}
    assert len(sent(model)) == 1


@pytest.mark.parametrize(
    "pasted", [f"{BEGINS}see @FILE now{ENDS}", "Hello,\nsee @FILE now", f"a{BEGINS}\n@FILE{ENDS}"]
)
def test_a_file_named_in_pasted_text_is_not_sent_from_the_plain_prompt(
    folder: Path, credentials: Path, pasted: str
) -> None:
    with plain(folder) as (screen, model):
        screen.do(pasted.replace("FILE", str(credentials)), NOT_SENT, "Summed.")
        assert f"@{credentials}" in sent(model)[-1]
        assert KEY not in sent(model)[-1]
        screen.do(f"see @{credentials}", "Summed.")
        assert KEY in sent(model)[-1]


PASTES = {
    "lines": "Please summarize:\n> see @FILE for more\n> Bye",
    "one line": "see @FILE for more",
    "the name alone": "@FILE",
    "quoted": 'see @"FILE" for more',
    "in parentheses": "see (@FILE), and more",
    "at the end of a line": "see @FILE.\r\nBye",
}


@pytest.mark.parametrize("pasted", PASTES.values(), ids=PASTES)
def test_a_file_named_in_pasted_text_is_not_sent_and_the_user_is_told(
    folder: Path, credentials: Path, pasted: str
) -> None:
    text = pasted.replace("FILE", str(credentials))
    with prompt([Repeat(Say("Summed."))], folder, columns=200) as (screen, model):
        screen.paste(text)
        screen.wait_for(str(credentials))
        screen.do("", f"{credentials} {NOT_SENT}", "Summed.")
        assert sent(model) == [text.replace("\r\n", "\n")]


EDITS = {
    "cut and put back": KILL_BACK + YANK,
    "a word before it": START + "now " + END,
    "letters deleted in it": BACKSPACE + "s",
    "a line below it": ALT_ENTER + "thanks",
    "cleared and undone": KILL_BACK + "\x1f",
}


@pytest.mark.parametrize("keys", EDITS.values(), ids=EDITS)
def test_pasted_text_names_no_file_however_the_line_is_edited(
    folder: Path, credentials: Path, keys: str
) -> None:
    with prompt([Repeat(Say("Summed."))], folder, columns=200) as (screen, model):
        screen.paste(f"see @{credentials}")
        screen.wait_for("see @")
        screen.type(keys)
        screen.do("", NOT_SENT, "Summed.")
        assert KEY not in sent(model)[-1]
        assert f"@{credentials}" in sent(model)[-1]
        screen.type(UP)
        screen.wait_for(f"@{credentials}")
        screen.do("", NOT_SENT, "Summed.")
        assert KEY not in sent(model)[-1]


def test_a_message_with_a_paste_stays_one_in_the_history_of_the_next_session(
    folder: Path, credentials: Path
) -> None:
    with prompt([Repeat(Say("Summed."))], folder, columns=200) as (screen, _):
        screen.paste(f"see @{credentials}\n!touch pwned")
        screen.do("", NOT_SENT, "Summed.")
        screen.do(f"and @{credentials}", "1 line", "Summed.")
        assert leave(screen) == 0
    assert f"+see @{credentials}\n+!touch pwned\n" in (folder / ".knapper" / "history").read_text(
        "utf-8"
    )
    with prompt([Repeat(Say("Summed."))], folder, columns=200) as (screen, model):
        screen.type(UP)
        screen.wait_for("› and @")
        screen.do("", "1 line", "Summed.")
        assert KEY in sent(model)[-1]
        screen.type(UP + UP)
        screen.wait_for("see @")
        screen.do("", NOT_SENT, "Summed.")
        assert KEY not in sent(model)[-1]


def test_a_file_is_sent_whose_at_sign_was_typed_even_if_its_path_was_pasted(
    folder: Path, credentials: Path
) -> None:
    with prompt([Repeat(Say("Summed."))], folder, columns=200) as (screen, model):
        screen.type("see @")
        screen.paste(str(credentials))  # as a file that is dropped onto the terminal
        screen.do("", "1 line", "Summed.")
        assert KEY in sent(model)[-1]
        screen.paste(f"@{credentials}")
        screen.type(START + DELETE + "@")
        screen.do("", "1 line", "Summed.")
        assert KEY in sent(model)[-1]


def test_a_paste_of_several_lines_that_begins_like_a_command_is_a_message(folder: Path) -> None:
    for first in ("!touch pwned", "/shell touch pwned", "?nothing"):
        with prompt([Repeat(Say("Summed."))], folder) as (screen, model):
            text = f"{first}\n" + "\n".join(f"line {number}" for number in range(40))
            screen.paste(text)
            screen.wait_for("line 39")
            screen.do("", "pasted lines are one message", "Summed.")
            assert sent(model)[-1].startswith(text)
            screen.paste("!touch shown\n")  # copied with the end of its line
            screen.do("", "it goes along")
            assert (folder / "shown").exists()
    assert not (folder / "pwned").exists()


def test_text_from_a_pipe_or_an_option_runs_no_shell_and_sends_no_file(
    folder: Path, credentials: Path
) -> None:
    lines = ["!touch pwned", '=count_vowels("a")', f"see @{credentials}", " !touch pwned"]
    with scripted([Repeat(Say("Summed."))]) as model:
        for flag in ((), ("-y",), ("--plain",)):
            done = knapper("run", *flags(model), *flag, cwd=folder, given="\n".join(lines))
            assert done.returncode == 0, done.stderr
            assert sent(model)[-4:] == lines
        for text in (*lines, "/shell touch pwned"):
            done = knapper("run", *flags(model), "--message", text, cwd=folder)
            assert (done.returncode, sent(model)[-1]) == (0, text)
    assert not (folder / "pwned").exists()


def test_lines_that_arrive_at_once_are_no_commands_of_the_plain_debugger(folder: Path) -> None:
    (folder / "functions" / "words.py").write_text(COUNT_VOWELS)
    with plain(folder) as (screen, model):
        screen.line('/debug count_vowels {"text": "queueing"}')
        screen.wait_for("(debug)")
        screen.type("c\nHello,\n")
        screen.wait_for("Several lines arrived at once, so none was run.")
        screen.line("c")
        screen.wait_count("›", 2)
        screen.do("typed", "Summed.")
        assert sent(model) == ["typed"]
