"""Short forms typed at the prompt, attachments of a message, and the changes of a session."""

import json
import time
from contextlib import closing
from pathlib import Path
from socket import socket

import pytest

from tests.interfaces.support import prompt
from tests.kit import Expect, Say, Script, contains, scripted
from tests.kit.levels import level_here
from tests.kit.program import knapper
from tests.kit.sources import function_text
from tests.kit.terminal import ENTER, KNAPPER, TAB, Terminal, terminal

SLUG = function_text(
    'slugify(text: str, sep: str = "-") -> str',
    "Return a text as a slug.",
    "return sep.join(text.lower().split())",
)
WORDS = function_text(
    "words(text: str) -> tuple[str, str]",
    "Return a text as it is, and in capitals.",
    "return text, text.upper()",
)
CTRL_Z = "\x1a"


SEVERAL = function_text(
    'joined(*items: int | str, sep: str = ", ") -> str',
    "Return items as one text.",
    "return sep.join(str(item) for item in items)",
) + function_text(
    "scale(width: int | float, unit: str | None = None) -> str",
    "Return a width twice as large.",
    "return f\"{width * 2} {unit or ''}\".strip()",
)

KEPT = {
    "=slugify(_)": "`_` is neither a literal nor a saved result. Saved: none yet.",
    '=slugify("A b c")': "a-b-c",
    '=slugify(_, sep="_")': "slugify(text='a-b-c', sep='_')",
    '=x = slugify("M n", sep="/")': "m/n",
    "=words(x)": "('m/n', 'M/N')",
    "=words(_[7])": "`_[7]` does not exist.",
    '=lambda = slugify("a")': "`lambda` is a Python keyword and cannot be a name.",
    '=scale(2.5, "m")': "5.0 m",
    "=scale([1])": "scale was not called: width",
    '=joined(_, "b")': "joined(items=['5.0 m', 'b'])",
    '=slugify(open("x"))': "is not a literal.",
    '=slugfy("A")': "Did you mean `slugify`?",
    "=slugify(3)": "slugify was not called: text: expected string, got 3",
    "=slugify(1e400)": "slugify was not called: expected a finite number, got Infinity",
    "=y": "There is no saved result or function named `y`.",
    "?slugify of what": "`?` shows one function.",
    "?slugify": "def slugify(text: str, sep: str='-') -> str",
    "??slugify": "return sep.join(text.lower().split())",
    "?conversation_search": "`conversation_search` is part of the program (about memory)",
    "=core_memory_append('human', 'x')": "core_memory_append is part of the program: only the agent calls it.",
    "/trace slugify -": "`-` is standard input, which the prompt reads itself.",
}
LOOKS_SHORT = ("= 3?", "!!", "?? why", " ／help")


def test_functions_are_called_and_shown_as_in_python_and_no_message_is_taken_for_that(
    folder: Path,
) -> None:
    (folder / "functions" / "texts.py").write_text(f"{SLUG}{WORDS}\n\n{SEVERAL}")
    script: Script = [
        Expect(Say(f"Answer {at}."), contains(text)) for at, text in enumerate(LOOKS_SHORT)
    ]
    with prompt(script, folder, columns=200) as (screen, _):
        for typed, shows in KEPT.items():
            before = screen.scrolled().count(shows)
            screen.type(typed)
            screen.wait_for(f"› {typed}")
            screen.type("\x1b[D\x1b[C" + ENTER)  # moving the cursor closes the completion menu
            screen.wait_count(shows, before + 1)
        for number, text in enumerate(LOOKS_SHORT):
            screen.do(text, f"Answer {number}.", "∙ 1 step")
        # the full-width slash of another keyboard
        screen.do(
            "／hlep all", "Did you mean /help? To send it to the model, put a space before it."
        )
        screen.do(
            "!cd /", "cd would have no effect: each ! starts a new shell", "Type !cd / && COMMAND."
        )
        screen.do("!cd / && pwd", "  it goes along with your next message")
        assert "Knapper failed" not in screen.scrolled()


def test_a_command_runs_in_the_folder_of_the_workspace_from_wherever_the_prompt_was_opened(
    folder: Path,
) -> None:
    below = folder / "functions"
    with prompt([], below, columns=200) as (screen, _):
        screen.do(
            "!ls -d functions/*.py knapper.toml; pwd",
            f"  {folder}",
            "goes along with your next message",
        )
        assert "  knapper.toml" in screen.scrolled()


def test_a_file_that_is_named_goes_along_and_one_that_is_not_there_is_told(folder: Path) -> None:
    (folder / "notes.md").write_text("one\n```\ntwo\n")
    (folder / "image.bin").write_bytes(b"\xff\xfe\x00")
    (folder / "long.txt").write_text("x" * 150_000)
    sent = "see @notes.md, @nobody and @image.bin in @functions/, @functions\n\n`notes.md`:\n````\none\n```\ntwo\n````"
    missing = "compare @nosuch.csv, @data/old.json and @\"my notes\" for @anna with @app.route('/x') @types/node"
    script: Script = [
        Expect(Say("Seen."), contains(sent)),
        Expect(Say("What?"), contains("@nosuch.csv")),
        Say("Read."),
    ]
    with prompt(script, folder, columns=120) as (screen, model):
        screen.type("see @no")
        screen.wait_for("notes.md")
        screen.type(TAB)
        screen.wait_for("› see @notes.md")
        screen.type(", @nobody and @image.bin in @functions/, @functions")
        screen.wait_for("@image.bin")
        screen.type(" \x7f" + ENTER)
        screen.wait_for("with notes.md: 3 lines")
        screen.wait_for("image.bin is not sent: it is not text")
        screen.wait_for("functions/ is not sent: Is a directory")
        screen.wait_for("functions is not sent: Is a directory")
        screen.wait_for("Seen.")
        assert "nobody`" not in model.requests[-1].text
        screen.do(missing, "What?", "∙ 1 step")
        screen.do(
            "see @long.txt ",
            "with long.txt: 1 line, shortened to 100,000 of 150,000 characters",
            "Read.",
        )
        told = [
            row.strip() for row in screen.scrolled().split("\n") if "there is no such file" in row
        ]
    names = ("nosuch.csv", "data/old.json", "my notes")
    assert told == [f"{name} is not sent: there is no such file" for name in names]


def test_a_command_of_the_shell_is_shown_goes_along_once_and_is_ended_by_ctrl_c(
    folder: Path,
) -> None:
    sent = "go\n\nI ran this in the shell (exit code 3): `echo out; exit 3`\n```\nout\n```"
    script: Script = [Expect(Say("First."), contains(sent)), Say("Second.")]
    with prompt(script, folder, environment={"MY_API_KEY": "not-for-it"}) as (screen, model):
        screen.do("!echo out; exit 3", "exit code 3  it goes along with your next message")
        screen.do("go", "First.", "∙ 1 step")
        screen.do("and?", "Second.", "∙ 1 step")
        assert model.requests[-1].text.count("I ran this") == 1
        screen.do("!echo key:$MY_API_KEY:", "  key::")
        running = "running, without input or a terminal; Ctrl-C ends it: echo begun; sleep 60"
        screen.do("!echo begun; sleep 60", "  begun", running)
        screen.do("how long?", "waits for the end of what is running; Ctrl-C ends that")
        screen.type("\x03")
        screen.wait_for("not sent: how long?")
        screen.wait_for("Interrupted.")
        screen.wait_gone("running, without input")
        screen.type("half a line")
        screen.wait_for("› half a line")
        screen.type(CTRL_Z)
        time.sleep(0.5)
        screen.type("!")
        screen.wait_for(
            "› half a line!"
        )  # no job control here: the program keeps running, and nothing is inserted
        assert "\\x1a" not in screen.scrolled()


SLOW_TO_CHECK = "import time\n\n\n" + function_text(
    "waits(n: int) -> int",
    "Add thousands to a number after a while.",
    "time.sleep(0.6)\nreturn n + 4000",
    "waits(1) → 4001",
    "waits(2) → 4002",
)


def test_a_call_typed_right_after_a_save_is_of_what_was_saved(folder: Path) -> None:
    with prompt([], folder, columns=110) as (screen, _):
        screen.wait_for(f"sandbox {level_here()}")
        for text, result in (
            (SLOW_TO_CHECK, "4007"),
            (SLOW_TO_CHECK.replace("400", "500"), "5007"),
        ):
            (folder / "functions" / "mine.py").write_text(text)
            screen.do("=waits(7)", result)
        assert "checking saved files first…" in screen.scrolled()


@pytest.mark.slow
def test_the_prompt_is_shown_before_the_settings_are_loaded(tmp_path: Path) -> None:
    screen = Terminal([*KNAPPER, "run"], cwd=tmp_path, environment={"PYTHONPROFILEIMPORTTIME": "1"})
    with closing(screen):
        screen.wait_for("Which model should answer you?")
        before = screen.sent.partition("›".encode())[0]
    assert b"knapper.prompt.prompt" in before, "what is imported is told"
    assert b"pydantic" not in before, "it takes longer than much else together"


SHARE_AND_SPIN = function_text(
    "share(total: int, people: int) -> float", "Share something out.", "return total / people"
) + function_text("spin(n: int) -> int", "Never end.", "while True:\n    n += 1")


@pytest.mark.slow
def test_typed_calls_are_recorded_and_say_that_they_run_and_what_to_do_after_a_time_out(
    folder: Path,
) -> None:
    (folder / "functions" / "mine.py").write_text(SHARE_AND_SPIN)
    (folder / "knapper.toml").write_text("[sandbox]\nwall_s = 3\n")
    with prompt([], folder, columns=110) as (screen, _):
        screen.do("=share(5, 0)", "ZeroDivisionError")
        screen.do("/call share(9, 2)", "4.5")
        screen.do("/debug last", "■ share  functions/mine.py:3")
        screen.do("q", "ended at the debugger")
        listed = knapper("calls", "list", "--json", cwd=folder).stdout
        outcomes = [(call["function"], call["outcome"]) for call in json.loads(listed)]
        assert outcomes == [("share", "returned"), ("share", "raised")]
        screen.do("=spin(1)", "spin runs; Ctrl-C ends it", "✗ timed out after 3.")
        screen.wait_gone("spin runs")
        screen.wait_for('/trace spin {"n": 1}')
        screen.wait_for("knapper functions grant spin --seconds")
    done = knapper("functions", "call", "spin", "--args", '{"n": 1}', cwd=folder)
    assert (done.returncode, "✗ timed out after 3." in done.stderr) == (1, True)
    assert """knapper functions trace spin --args '{"n": 1}'""" in done.stderr


def test_an_endpoint_that_is_down_keeps_nobody_from_functions_and_answers_when_it_is_back(
    grown: Path,
) -> None:
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with terminal("run", "--base-url", f"http://127.0.0.1:{port}/v1", cwd=grown) as screen:
        for told in ("cannot be reached", "Your next message tries it again", "/help lists"):
            screen.wait_for(told)
        screen.do('=count_vowels("queueing")', "5")
        screen.do("/memory", "human")
        screen.do("hello", "The turn failed.")
        with scripted([Say("Hi there.")], port=port):
            screen.do("/retry", "Hi there.")
    done = knapper(
        "run", "--base-url", f"http://127.0.0.1:{port}/v1", "--message", "hello", cwd=grown
    )
    assert (done.returncode, "cannot be reached" in done.stderr) == (1, True), done.stderr
