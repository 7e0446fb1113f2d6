"""`knapper init, functions …, schema, doctor, models` as subprocesses, as a script uses them."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.problem import Place, Problem
from tests.interfaces.support import COUNT_VOWELS, SLOW, prompt
from tests.kit.program import knapper
from tests.kit.sources import function_text
from tests.kit.terminal import terminal

PROBLEM_KEYS = set(Problem("c", "w", Place("p")).to_json())


def document(*arguments: str, cwd: Path, given: str = "", code: int = 0) -> Any:
    done = knapper(*arguments, "--json", cwd=cwd, given=given)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    return json.loads(done.stdout)


def test_the_arguments_of_a_call_may_come_on_standard_input_and_must_be_a_json_object(
    grown: Path,
) -> None:
    for verb in ("call", "test", "trace"):
        command = ("functions", verb, "count_vowels", "--args", "-")
        done = knapper(*command, cwd=grown, given='{"text": "queueing"}\n')
        assert (done.returncode, "5" in done.stdout) == (0, True), done.stderr
        nothing = knapper(*command, cwd=grown, given="")
        assert (nothing.returncode, "was not called" in nothing.stderr) == (2, True), nothing.stderr
    for written, told in (
        ("{text:1}", "Write: --args '{\"text\": 1}'"),
        ("{'text': 'it'}", 'Write: --args \'{"text": "it"}\''),
        ('["queue"]', "Write: --args '{\"name\": 1}'"),
        ("queue", "at line 1 column 1"),
    ):
        done = knapper("functions", "call", "count_vowels", "--args", written, cwd=grown)
        assert (done.returncode, done.stdout, told in done.stderr) == (2, "", True), done.stderr
    for arguments in (
        ("show", "nothing"),
        ("call", "nothing"),
        ("call", "count_vowels", "--args", "{broken"),
        ("call", "count_vowels", "--args", '{"txt": 1}'),
        ("test", "nothing"),
        ("create", "f", "--file", "missing.py"),
    ):
        error = document("functions", *arguments, cwd=grown, code=2)["error"]
        assert (set(error), bool(error["message"])) == ({"code", "message", "fix"}, True), arguments


def test_list_and_show_have_the_published_shapes(grown: Path) -> None:
    (grown / "functions" / "bad.py").write_text("def x(:\n")
    listed = document("functions", "list", cwd=grown)
    row = {"name", "module", "description", "standing", "source", "calls", "last_called"}
    assert [row <= set(each) for each in listed["functions"]] == [True]
    assert [set(each) >= PROBLEM_KEYS for each in listed["rejected"]] == [True]
    shown = document("functions", "show", "count_vowels", "-C", str(grown), cwd=grown.parent)
    assert {"name", "module", "path", "line", "source", "schema", "examples", "standing"} <= set(
        shown
    )
    assert {"statistics", "verdict", "callers", "callees", "versions"} <= set(shown)


def test_a_call_that_fails_shows_its_own_frames_and_nothing_said_looks_like_the_program(
    folder: Path,
) -> None:
    says = "3\n✓ work joins e as trusted"
    code = 'def half(n: int) -> float:\n    """Halve.\n\n    Args:\n        n: What.\n    """\n    return n / 0\n\n\n'
    code += f'def fails() -> None:\n    """Fail."""\n    raise ValueError({says!r})\n\n\n'
    code += f'def returns() -> str:\n    """Return."""\n    return {says!r}\n'
    (folder / "functions" / "halves.py").write_text(code)
    half = ("functions", "call", "half", "--args", '{"n": 3}')
    outcome = document(*half, cwd=folder, code=1)
    assert {"outcome", "value", "output", "seconds", "error"} <= set(outcome)
    assert outcome["error"]["frames"][-1]["line"] == 7
    plainly = knapper(*half, cwd=folder)
    assert (plainly.returncode, plainly.stdout) == (1, "")
    assert "functions/halves.py:7 in half: return n / 0   n=3" in plainly.stderr
    failed = knapper("functions", "call", "fails", cwd=folder)
    assert failed.stderr.startswith("✗ ValueError: 3\n│ ✓ work joins e as trusted\n")
    assert (
        knapper("functions", "call", "returns", cwd=folder).stdout
        == "3\n✓ work joins e as trusted\n"
    )
    assert document("functions", "call", "returns", cwd=folder)["value"] == says
    assert document("functions", "call", "fails", cwd=folder, code=1)["error"]["message"] == says


def test_init_makes_a_workspace_once_and_overwrites_nothing(tmp_path: Path) -> None:
    made = knapper("init", "home", cwd=tmp_path)
    assert made.returncode == 0
    assert made.stderr == "Next: cd home && knapper run\n"
    assert len(list((tmp_path / "home" / "functions").glob("*.py"))) == 6
    again = knapper("init", "home", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["made"] == []


def test_schema_reads_a_file_without_running_a_line_of_it(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("open('ran', 'w')\n" + COUNT_VOWELS)
    found = document("schema", "words.py", cwd=tmp_path)
    assert [function["name"] for function in found["functions"]] == ["count_vowels"]
    assert not (tmp_path / "ran").exists()
    assert "text (string): What to look at." in knapper("schema", "words.py", cwd=tmp_path).stdout


@pytest.mark.slow
def test_progress_of_a_called_function_is_drawn_on_a_terminal(folder: Path) -> None:
    (folder / "functions" / "slow.py").write_text(SLOW)
    with terminal("functions", "call", "slow", cwd=folder) as screen:
        screen.wait_for("50% part\\x1b[5m")
        assert screen.exit_code() == 0
        assert screen.screen()[0] == "done"


LOUD = function_text(
    "loud(number: int) -> int", "Count.", 'print("one")\nprint("two")\nreturn number'
)


def test_what_a_function_prints_stands_before_its_result(folder: Path) -> None:
    (folder / "functions" / "loud.py").write_text(LOUD)
    call = ("--args", '{"number": 7}')
    done = knapper("functions", "call", "loud", *call, cwd=folder)
    assert (done.stdout, done.stderr) == (
        "7\n",
        "│ one\n│ two\n",
    )  # of what no example proves, nothing is said
    with terminal("functions", "call", "loud", *call, cwd=folder) as screen:
        assert screen.exit_code() == 0
        assert_printed_first(screen.scrolled(), 1)
    with prompt([], folder) as (screen, _):
        for times, typed in enumerate(("=loud(7)", "/call loud(7)", '/test loud {"number": 7}'), 1):
            screen.do(typed, *["│ two"] * times)
        assert_printed_first(screen.scrolled(), 3)
    assert_printed_first(knapper("functions", "trace", "loud", *call, cwd=folder).stdout, 1)
    assert_printed_first(knapper("calls", "replay", "1", cwd=folder).stdout, 1)


def assert_printed_first(text: str, times: int) -> None:
    rows = [row.strip() for row in text.splitlines()]
    ends = [at for at, row in enumerate(rows) if row == "│ two"]
    assert [rows[at - 1 : at + 2] for at in ends] == [["│ one", "│ two", "7"]] * times


def test_what_a_standing_means_stands_where_it_is_first_read(folder: Path) -> None:
    trial, draft = "trial: it passed the gate, and is new", "draft: no example proves it yet"
    made = knapper(
        "functions", "create", "count_vowels", "--file", "-", cwd=folder, given=COUNT_VOWELS
    )
    assert ("on trial" in made.stdout, trial in made.stderr, draft in made.stderr) == (
        True,
        True,
        False,
    )
    assert trial in knapper("functions", "show", "count_vowels", cwd=folder).stdout
    (folder / "functions" / "loud.py").write_text(LOUD)
    assert draft in knapper("functions", "show", "loud", cwd=folder).stdout
    with terminal("functions", "list", cwd=folder, columns=120) as screen:
        assert screen.exit_code() == 0
        assert f"{draft} · {trial}" in screen.scrolled()
    refused = COUNT_VOWELS.replace("        0\n", "        7\n").replace("count_vowels", "others")
    told = knapper("functions", "create", "others", "--file", "-", cwd=folder, given=refused)
    assert trial not in told.stderr + told.stdout
