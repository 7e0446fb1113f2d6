"""Input from people who have not read the help: options and files in unusual places, empty folders."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.interfaces.support import HERE, flags, prompt
from tests.kit import Expect, Fail, Say, contains, scripted
from tests.kit.desk import another
from tests.kit.program import knapper, surroundings
from tests.kit.steps import Cut, Step
from tests.kit.terminal import ENTER, ESCAPE, KNAPPER

SHOUT = another("shout")
RETURNS = "    Returns:\n        How many of its letters are a, e, i, o or u.\n\n"


@pytest.fixture
def mine(grown: Path) -> Path:
    """A workspace with one function, and another one's file next to it."""
    (grown / "mine.py").write_text(SHOUT)
    return grown


def test_what_is_missing_in_a_command_is_told_and_what_is_plain_is_taken(mine: Path) -> None:
    created = knapper("functions", "create", "mine.py", cwd=mine)
    assert (created.returncode, created.stdout) == (2, "")
    assert "knapper functions create NAME mine.py" in created.stderr
    for before in (("--json",), ("--json", "-C", ".")):
        found = json.loads(knapper(*before, "functions", "list", cwd=mine).stdout)
        assert [each["name"] for each in found["functions"]] == ["count_vowels"]
    done = knapper("functions", "call", "count_vowels", "x" * 5_000, cwd=mine)
    assert (done.returncode, len(done.stderr) < 600) == (2, True), len(done.stderr)
    done = knapper("functions", "reload", cwd=mine)
    assert (done.returncode, "1 function is in use" in done.stderr) == (0, True), done.stderr
    done = subprocess.run(
        [*KNAPPER, "functions", "show", "count_vowels"],
        cwd=mine,
        env=surroundings(
            {"PYTHONPATH": HERE, "PYTHONIOENCODING": "ascii"}
        ),  # without the characters that are shown
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.startswith("count_vowels ? ")) == (0, True), done.stderr
    assert not list((mine / ".knapper").glob("crash-*"))
    for words in (
        ("agents", "show", "x"),
        ("agents", "pause", "x"),
        ("memory", "edit", "human", "--value", "x"),
    ):
        assert "No agent yet. Next: knapper run" in knapper(*words, cwd=mine).stderr, words


def test_a_check_names_what_it_cannot_read_and_shows_what_was_fixed_when_asked(mine: Path) -> None:
    (mine / "empty.py").touch()
    done = knapper("functions", "check", "empty.py", cwd=mine)
    assert (done.returncode, done.stdout, "Nothing was judged" in done.stderr) == (0, "", True)
    (mine / "latin.py").write_bytes(b"x = '\xff'\n")
    done = knapper("functions", "check", "latin.py", cwd=mine)
    assert (done.returncode, done.stdout.startswith("✗ latin.py refused")) == (1, True), done.stdout
    (mine / "mine.py").write_text(
        SHOUT.replace("Args:\n        text:", ":param text:").replace(RETURNS, "")
    )
    done = knapper("functions", "check", "mine.py", "--diff", cwd=mine)
    assert (
        done.returncode,
        "-    :param text: The text to look at.\n+    Args:\n" in done.stdout,
    ) == (0, True), done.stdout
    assert "+    Args:" not in knapper("functions", "check", "mine.py", cwd=mine).stdout


def test_every_count_of_functions_is_the_same_starters_are_marked_and_the_gate_is_told_in_questions(
    mine: Path,
) -> None:
    assert knapper("init", cwd=mine).returncode == 0
    done = knapper(
        "functions", "create", "shout", "mine.py", cwd=mine
    )  # the file may follow without an option
    assert (done.returncode, "added to grown" in done.stdout) == (0, True), done.stdout
    rows = json.loads(knapper("functions", "list", "--json", cwd=mine).stdout)["functions"]
    human = {row["name"] for row in rows if row["source"] == "human"}
    assert (human, {row["source"] for row in rows}) == (
        {"count_vowels", "shout"},
        {"human", "starter"},
    )
    with prompt([], mine, columns=140) as (screen, _):
        screen.wait_for(f"functions {len(rows)} ")
        screen.do(
            "/functions", f"functions {len(rows)} of {len(rows)}:", "standing", "what it does"
        )
        screen.wait_for(f"This workspace has {len(rows)} functions. ")
        screen.type(ESCAPE)
        screen.wait_gone("This workspace has ")
        screen.do("/introspect shout", "checked by the gate in ")
        screen.wait_for("mutation: would its examples notice a wrong body? ")
        assert "mutant" not in screen.scrolled()


NEAR = [
    ("functions", "delete", "count_vowel"),
    ("functions", "grants", "count_vowel"),
    ("functions", "list", "count_vowel_"),
    ("memory", "show", "humann"),
    ("memory", "show", "--agent", "mian"),
    ("agents", "show", "mian"),
    ("log", "--agent", "mian"),
    ("run", "--preset", "mmgpt", "--agent", "new", "--message", "x"),
    ("run", "--persona", "companio", "--agent", "new", "--message", "x"),
]


def test_each_unknown_name_is_told_with_the_nearest(grown: Path) -> None:
    meant = {"count_vowels", "words", "human", "main", "memgpt", "companion"}
    with scripted([Say("Hello.")]) as model:
        knapper("run", *flags(model), "--message", "hello", cwd=grown)
        for words in NEAR:
            extra = flags(model) if words[0] == "run" else ()
            done = knapper(*words, *extra, cwd=grown)
            named = re.search(r"Did you mean `(\w+)`\?", done.stderr)
            assert named, (words, done.stderr)
            assert named[1] in meant, words


def test_a_file_that_imports_its_neighbor_by_its_bare_name_is_told_how_to(grown: Path) -> None:
    assert knapper("functions", "list", cwd=grown).returncode == 0
    (grown / "functions" / "more.py").write_text("import words\n\n\n" + SHOUT)
    told = knapper("functions", "list", cwd=grown)
    assert "write `from functions import words`" in " ".join((told.stdout + told.stderr).split())
    (grown / "functions" / "more.py").write_text("from functions import words\n\n\n" + SHOUT)
    assert "shout" in knapper("functions", "list", cwd=grown).stdout


MINE = '''"""Mine."""


def big() -> list[int]:
    """Return many numbers."""
    return list(range(100_000))


def tall() -> str:
    """Return many lines."""
    return "\\n".join(map(str, range(1_000)))


def opts(*args: int, **kw: int) -> str:
    """Return what was given."""
    return f"got {args} {kw}"


def one(a: int) -> int:
    """Return it."""
    return a
'''


def test_a_large_result_leaves_the_screen_and_can_be_read_whole(folder: Path) -> None:
    (folder / "functions" / "mine.py").write_text(MINE)
    with prompt([], folder) as (screen, _):
        screen.do("=one(a=4711)", "4711")
        for typed in ("=big()", "=tall()"):
            screen.do(typed, "=_ shows all of it.")
            assert "=one(a=4711)" in "\n".join(screen.scrolled().splitlines()[-60:])
        screen.line("=_")
        screen.wait_for("Esc")
        screen.type(ENTER)  # prints all of it
        screen.wait_count("999", 1)


def test_arguments_of_any_name_are_passed_and_an_unknown_one_is_named(folder: Path) -> None:
    (folder / "functions" / "mine.py").write_text(MINE)
    with prompt([], folder) as (screen, _):
        screen.do("=opts(1, 2, b=3)", "got (1, 2) {'b': 3}")
        screen.do("=opts()", "got () {}")
        screen.do("=one(1, b=2)", "there is no argument `b`")


def test_words_times_and_failures_are_told_as_a_person_reads_them(folder: Path) -> None:
    (folder / "functions" / "mine.py").write_text(MINE)
    with prompt(
        [Fail(401, "bad key"), Expect(Say("Fine."), contains("again"))], folder, rows=50
    ) as (screen, _):
        screen.do("?one", "one · draft", "draft: no example proves it yet")
        screen.line("/functions")
        screen.wait_for("Esc")
        screen.type(ENTER)
        screen.wait_gone("Esc")
        screen.do("say it", "/retry sends it again; /pop takes it back.")
        screen.do("/pop", "say it")
        screen.do("again", "Fine.")
    done = knapper("functions", "grant", "one", "--read", "data", "-y", cwd=folder)
    assert done.returncode == 0, done.stderr
    granted = knapper("functions", "grants", cwd=folder).stdout
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d$", granted.splitlines()[0]), granted


def test_a_turn_that_failed_says_so_below_what_was_said_and_its_message_is_not_glued_to_the_next(
    tmp_path: Path,
) -> None:
    said = "# The report\n\nThe first paragraph of a long reply that breaks"
    no_retry = {"x-should-retry": "false"}
    script: list[Step] = [
        Cut(said),
        Fail(401, "bad key", no_retry),
        Fail(429, "slow down", no_retry),
    ]
    script += [Fail(500, "broken", no_retry), Say(""), Say(""), Say("Fine.")]
    messages = "cut it", "with a key", "too often", "a broken server", "an empty one"
    with prompt(script, tmp_path, rows=60) as (screen, model):
        for times, typed in enumerate(messages, 1):
            screen.line(typed)
            screen.wait_count("takes it back", times)
        screen.do("and now?", "Fine.")
        rows = [row.strip() for row in screen.scrolled().splitlines()]
        told = [
            next(at for at, row in enumerate(rows) if text in row)
            for text in ("The report", "breaks", "broke off")
        ]
        assert told == sorted(told), rows
    read = [
        text
        for message in model.requests[-1].messages[1:]
        for text in str(message["content"]).split("\n\n")
    ]
    for typed in messages:
        after = read[read.index(typed) + 1 :]
        following = next(at for at, text in enumerate(after) if text in (*messages, "and now?"))
        assert (
            "[Knapper] The turn ended here: it failed, and the user has no answer to this."
            in after[:following]
        ), read
