"""Short forms typed at the prompt, attachments of a message, and the changes of a session."""

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.interfaces.asking import agree
from tests.interfaces.support import COUNT_VOWELS, create, flags, leave, prompt
from tests.kit import Ask, Expect, Repeat, Say, Script, Wanted, contains, scripted
from tests.kit.levels import level_here
from tests.kit.program import knapper
from tests.kit.terminal import ENTER, KNAPPER, TAB, Terminal, terminal

SLUG = '''def slugify(text: str, sep: str = "-") -> str:
    """Return a text as a slug.

    Args:
        text: The text.
        sep: What stands between words.

    Examples:
        >>> slugify("A b")
        'a-b'
        >>> slugify("X", "_")
        'x'
    """
    return sep.join(text.lower().split())
'''
EDIT = Wanted(
    "edit_function",
    {"function_name": "count_vowels", "old_text": '"aeiou"', "new_text": '"aeioué"', "reason": "accents"},
)
WORDS = '''

def words(text: str) -> tuple[str, str]:
    """Return a text as it is, and in capitals.

    Args:
        text: The text.

    Examples:
        >>> words("a")
        ('a', 'A')
        >>> words("b c")
        ('b c', 'B C')
    """
    return text, text.upper()
'''
CTRL_Z = "\x1a"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "texts.py").write_text(SLUG)
    return tmp_path


AS_IN_PYTHON = {
    '=slugify("A b c", sep="_")': "a_b_c",
    '=slugify("A b", "_", "x")': "slugify takes 2 arguments, but got 3.",
    '=slugify(text="a", text="b")': "`text` was given twice.",
    '=slugify(open("x"))': "is not a literal.",
    '=slugfy("A")': "Did you mean `slugify`?",
    '=slugify("A") + "b"': "That is not a call of one function.",
    '=slugify("A"': "That is not a call: '(' was never closed.",
    "=slugify(3)": "slugify was not called: text: expected string, got 3",
    "=slugify(1e400)": "slugify was not called: expected a finite number, got Infinity",
    '=slugify("\\ud800")': "slugify was not called: expected whole characters",
    '=slugify("a", sep=["_"])': "sep: expected string, got",
    "=slugify()": "slugify was not called: text: expected string, got nothing.",
    "=slugify": "def slugify(text: str, sep: str='-') -> str",
    "=y": "There is no saved result or function named `y`.",
    '=slugify "x"': "That is not a call.",
    "=": "That is not a call.",
    "?": "`?` shows one function.",
    "?slugify of what": "`?` shows one function.",
    "?slugify": "def slugify(text: str, sep: str='-') -> str",
    "??slugify": "return sep.join(text.lower().split())",
    "?conversation_search": "`conversation_search` is part of the program (about memory)",
    "??create_function": "`create_function` is part of the program (a meta-function)",
    "/introspect archival_memory_insert": "`archival_memory_insert` is part of the program (about memory)",
    "=core_memory_append('human', 'x')": "core_memory_append is part of the program: only the agent calls it.",
    "/trace slugify -": "`-` is standard input, which the prompt reads itself.",
    "/load -": "cannot be read",
}


def test_functions_are_called_and_shown_as_in_python(folder: Path) -> None:
    with prompt([], folder, columns=120) as (screen, _):
        for typed, shows in AS_IN_PYTHON.items():
            before = screen.scrolled().count(shows)
            screen.type(typed)
            screen.wait_for(f"› {typed}")
            screen.type("\x1b[D\x1b[C" + ENTER)  # moving the cursor closes the completion menu
            screen.wait_count(shows, before + 1)


KEPT = {
    "=slugify(_)": "`_` is neither a literal nor a saved result. Saved: none yet.",
    '=slugify("A b c")': "a-b-c",
    '=slugify(_, sep="_")': "slugify(text='a-b-c', sep='_')",
    '=x = slugify("M n", sep="/")': "m/n",
    "=slugify(text=x, sep=y)": "`y` is neither a literal nor a saved result. Saved: `_`, `x`.",
    '=slugify("Q")': "q",
    "=x": "m/n",
    "=words(x)": "('m/n', 'M/N')",
    "=words(_[-1])": "('M/N', 'M/N')",
    "=words(_[7])": "`_[7]` does not exist.",
    '=lambda = slugify("a")': "`lambda` is a Python keyword and cannot be a name.",
}


def test_what_a_call_returned_stands_for_an_argument_of_the_next(folder: Path) -> None:
    (folder / "functions" / "texts.py").write_text(SLUG + WORDS)
    with prompt([], folder, columns=120) as (screen, _):
        for typed, shows in KEPT.items():
            before = screen.scrolled().count(shows)
            screen.type(typed)
            screen.wait_for(f"› {typed}")
            screen.type("\x1b[D\x1b[C" + ENTER)
            screen.wait_count(shows, before + 1)


SEVERAL = '''def joined(*items: int | str, sep: str = ", ") -> str:
    """Return items as one text.

    Args:
        items: The items.
        sep: What stands between them.

    Examples:
        >>> joined(1, 2)
        '1, 2'
        >>> joined("a", sep="-")
        'a'
    """
    return sep.join(str(item) for item in items)


def scale(width: int | float, unit: str | None = None) -> str:
    """Return a width twice as large.

    Args:
        width: The width.
        unit: Its unit.

    Examples:
        >>> scale(2, "cm")
        '4 cm'
        >>> scale(1.5)
        '3.0'
    """
    return f"{width * 2} {unit or ''}".strip()
'''


def test_an_argument_of_several_kinds_is_taken_as_it_is_typed(folder: Path) -> None:
    (folder / "functions" / "texts.py").write_text(SEVERAL)
    shown = {
        "=scale(4)": "scale(width=4)",
        '=scale(2.5, "m")': "5.0 m",
        "=scale([1])": "scale was not called: width",
        "=joined(-1)": "joined(items=[-1])",
        '=joined(_, "b")': "joined(items=['-1', 'b'])",
        "=joined(_)": "joined(items=['-1, b'])",
    }
    with prompt([], folder, columns=120) as (screen, _):
        for typed, says in shown.items():
            screen.line(typed)
            screen.wait_for(says)
        assert "Knapper failed" not in screen.scrolled()


def test_a_message_that_only_looks_like_a_short_form_is_sent(folder: Path) -> None:
    texts = ("= 3?", "!!", "?? why", "= 3 apples", " =y", " ／help")
    script: Script = [Expect(Say(f"Answer {number}."), contains(text)) for number, text in enumerate(texts)]
    with prompt(script, folder) as (screen, _):
        for number, text in enumerate(texts):
            screen.line(text)
            screen.wait_for(f"Answer {number}.")
        screen.line("／hlep all")  # the full-width slash of another keyboard
        screen.wait_for("Did you mean /help? To send it to the model, put a space before it.")


def test_a_file_that_is_named_goes_along_and_a_name_that_is_no_file_does_not(folder: Path) -> None:
    (folder / "notes.md").write_text("one\n```\ntwo\n")
    (folder / "image.bin").write_bytes(b"\xff\xfe\x00")
    sent = "see @notes.md, @nobody and @image.bin in @functions/, @functions\n\n`notes.md`:\n````\none\n```\ntwo\n````"
    with prompt([Expect(Say("Seen."), contains(sent))], folder) as (screen, model):
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


def test_a_file_that_is_not_there_is_told_and_what_is_no_files_name_is_not(folder: Path) -> None:
    message = "compare @nosuch.csv, @data/old.json and @\"my notes\" for @anna with @app.route('/x') @types/node"
    (folder / "long.txt").write_text("x" * 150_000)
    script: Script = [Expect(Say("Seen."), contains("@nosuch.csv")), Say("Read.")]
    with prompt(script, folder, columns=120) as (screen, _):
        screen.line(message)
        screen.wait_for("Seen.")
        screen.line("see @long.txt ")
        screen.wait_for("with long.txt: 1 line, shortened to 100,000 of 150,000 characters")
        screen.wait_for("Read.")
        told = [row.strip() for row in screen.scrolled().split("\n") if "there is no such file" in row]
    names = ("nosuch.csv", "data/old.json", "my notes")
    assert told == [f"{name} is not sent: there is no such file" for name in names]


def test_a_command_of_the_shell_is_shown_and_goes_along_with_the_next_message_once(folder: Path) -> None:
    sent = "go\n\nI ran this in the shell (exit code 3): `echo out; exit 3`\n```\nout\n```"
    script: Script = [Expect(Say("First."), contains(sent)), Say("Second.")]
    with prompt(script, folder, environment={"MY_API_KEY": "not-for-it"}) as (screen, model):
        screen.line("!echo out; exit 3")
        screen.wait_for("exit code 3  it goes along with your next message")
        screen.line("go")
        screen.wait_for("First.")
        screen.line("and?")
        screen.wait_for("Second.")
        assert model.requests[-1].text.count("I ran this") == 1
        screen.line("!echo key:$MY_API_KEY:")
        screen.wait_for("  key::")


def test_a_command_that_changes_only_its_own_shell_is_refused(folder: Path) -> None:
    with prompt([], folder, columns=200) as (screen, _):
        for command in ("cd /", "cd", "export A=1", ". ./env"):
            screen.line(f"!{command}")
            screen.wait_for(f"{command.split()[0]} would have no effect: each ! starts a new shell")
            screen.wait_for(f"Type !{command} && COMMAND.")
        screen.line("!cd / && pwd")
        screen.wait_for("  it goes along with your next message")


def test_a_command_of_the_shell_is_ended_by_ctrl_c(folder: Path) -> None:
    with prompt([], folder) as (screen, _):
        screen.line("!echo begun; sleep 60")
        screen.wait_for("  begun")
        screen.wait_for("running, without input or a terminal; Ctrl-C ends it: echo begun; sleep 60")
        screen.line("how long?")
        screen.wait_for("waits for the end of what is running; Ctrl-C ends that")
        screen.type("\x03")
        screen.wait_for("not sent: how long?")
        screen.wait_for("Interrupted.")
        screen.wait_gone("running, without input")
        assert leave(screen) == 0


def test_ctrl_z_suspends_and_continuing_draws_the_prompt_again(folder: Path) -> None:
    with prompt([], folder) as (screen, _):
        screen.type("half a line")
        screen.wait_for("› half a line")
        screen.type(CTRL_Z)
        time.sleep(0.5)
        screen.type("!")
        screen.wait_for("› half a line!")  # no job control here: the program keeps running, and nothing is inserted
        assert "\\x1a" not in screen.scrolled()


def test_all_that_a_session_changed_is_listed_and_undone_at_once(tmp_path: Path) -> None:
    script: Script = [Ask(create(COUNT_VOWELS)), Ask(EDIT), Say("Done.")]
    with prompt(script, tmp_path, columns=120) as (screen, _):
        screen.line("make it")
        screen.wait_for("3 steps")
        screen.line("/memory edit human Likes tea.")
        screen.wait_for("reads now")
        screen.line("/changes")
        screen.wait_for("the agent main (scripted) made count_vowels")
        screen.wait_for("you changed the block human")
        screen.wait_for("and 1 turn: /pop removes the last one.")
        screen.line("/undo 9")
        screen.wait_for("There is no change 9.")
        screen.line("/undo all")
        screen.wait_for("Type y and Enter for yes.")
        agree(screen)
        screen.wait_for("✓ deleted count_vowels")
        screen.wait_for("restored the block human as it was when the session began")
        screen.line("/undo all")
        screen.wait_for("Nothing was made or changed in this session.")


def test_a_command_typed_at_a_question_is_a_no_and_then_runs(folder: Path) -> None:
    with prompt([], folder) as (screen, _):
        screen.line("/switch nobody")
        screen.wait_for("There is no agent nobody.")
        screen.line("/switch second")
        screen.wait_for("There is no agent second.")
        screen.wait_for("It was not created.")
        agree(screen)
        screen.wait_count("/help lists", 2)


def test_what_another_agent_did_is_not_undone_here(tmp_path: Path) -> None:
    script: Script = [Ask(create(COUNT_VOWELS)), Say("Done.")]
    with prompt(script, tmp_path, columns=140) as (screen, _):
        screen.line("make it")
        screen.wait_for("2 steps")
        screen.line("/switch other")
        screen.wait_for("Create it?")
        agree(screen)
        screen.wait_count("/help lists", 2)
        screen.line("/undo")
        screen.wait_for("A change of count_vowels by the agent main")
        screen.wait_for("Nothing was changed or said in this session.")
        screen.line("/switch main")
        screen.wait_count("/help lists", 3)
        screen.line("/undo")
        screen.wait_for("Undo: delete count_vowels")
        screen.line("n")
        screen.wait_for("Nothing was changed.")


def test_pop_says_what_it_removed_after_a_heartbeat(tmp_path: Path) -> None:
    with prompt([Say("Hi."), Expect(Say("Awake."), contains("look around"))], tmp_path) as (screen, _):
        screen.line("hello there")
        screen.wait_for("∙ 1 step")
        screen.line("/heartbeat look around")
        screen.wait_count("∙ 1 step", 2)
        screen.line("/pop 2")
        screen.wait_for("/pop takes no arguments, so it was not run.")
        screen.line("/pop")
        screen.wait_for("removed from the context: a turn that no message began: Heartbeat")
        screen.line("/pop")
        screen.wait_for("removed from the context: hello there")
        screen.line("/pop")
        screen.wait_for("There is no turn to remove.")
        screen.line("/undo")
        screen.wait_for("Nothing was changed or said in this session.")


@pytest.mark.parametrize(("first", "asked"), [((), 1), (("--first",), 0)], ids=["agent", "user"])
def test_a_new_agent_of_the_memgpt_style_speaks_first_unless_the_user_does(
    tmp_path: Path, first: tuple[str, ...], asked: int
) -> None:
    script: Script = [Repeat(Ask(Wanted("send_message", {"message": "Good morning."}), text="They are there."))]
    with (
        scripted(script) as model,
        terminal("run", *flags(model), "--preset", "memgpt", *first, cwd=tmp_path) as screen,
    ):
        screen.wait_for("/help lists")
        if asked:
            screen.wait_for("Good morning.")
        time.sleep(1)
        assert len(model.requests) == asked


SLOW_TO_CHECK = '''\
import time


def waits(n: int) -> int:
    """Add thousands to a number after a while.

    Args:
        n: The number.

    >>> waits(1)
    4001
    >>> waits(2)
    4002
    """
    time.sleep(0.6)
    return n + 4000
'''


def test_a_call_typed_right_after_a_save_is_of_what_was_saved(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.wait_for(f"sandbox {level_here()}")
        for text, result in ((SLOW_TO_CHECK, "4007"), (SLOW_TO_CHECK.replace("400", "500"), "5007")):
            (tmp_path / "functions" / "mine.py").write_text(text)
            screen.line("=waits(7)")
            screen.wait_for(result)
        assert "checking saved files first…" in screen.scrolled()


def test_the_prompt_is_shown_before_the_settings_are_loaded(tmp_path: Path) -> None:
    screen = Terminal([*KNAPPER, "run"], cwd=tmp_path, environment={"PYTHONPROFILEIMPORTTIME": "1"})
    with closing(screen):
        screen.wait_for("Which model should answer you?")
        before = screen.sent.partition("›".encode())[0]
    assert b"agent_core.interfaces.repl.prompt" in before, "what is imported is told"
    assert b"pydantic" not in before, "it takes longer than much else together"


SHARE_AND_SPIN = '''def share(total: int, people: int) -> float:
    """Share something out."""
    return total / people


def spin(n: int) -> int:
    """Never end."""
    while True:
        n += 1
'''


def test_calls_that_are_typed_are_recorded_and_the_debugger_knows_the_last_that_failed(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "mine.py").write_text(SHARE_AND_SPIN)
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.line("=share(5, 0)")
        screen.wait_for("ZeroDivisionError")
        screen.line("/call share(9, 2)")
        screen.wait_for("4.5")
        screen.line("/debug last")
        screen.wait_for("■ share  functions/mine.py:3")
        screen.line("q")
        screen.wait_for("ended at the debugger")
        leave(screen)
    listed = knapper("calls", "list", "--json", cwd=tmp_path).stdout
    assert [(call["function"], call["outcome"]) for call in json.loads(listed)] == [
        ("share", "returned"),
        ("share", "raised"),
    ]


def test_a_typed_call_shows_that_it_runs_and_a_time_out_says_when_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "mine.py").write_text(SHARE_AND_SPIN)
    (tmp_path / "knapper.toml").write_text("[sandbox]\nwall_s = 3\n")
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.line("=spin(1)")
        screen.wait_for("spin runs; Ctrl-C ends it")
        screen.wait_for("✗ timed out after 3.")
        screen.wait_gone("spin runs")
        screen.wait_for('/trace spin {"n": 1}')
        screen.wait_for("knapper functions grant spin --seconds")
    done = knapper("functions", "call", "spin", "--args", '{"n": 1}', cwd=tmp_path)
    assert done.returncode == 1
    assert "✗ timed out after 3." in done.stderr
    assert """knapper functions trace spin --args '{"n": 1}'""" in done.stderr
