"""`knapper init, functions …, schema, doctor, models` as subprocesses, as a script uses them."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.problem import Place, Problem
from sandbox.processes.startup import LEVELS
from tests.interfaces.support import COUNT_VOWELS, FLAWED, SLOW
from tests.kit.levels import require_functions
from tests.kit.program import knapper
from tests.kit.terminal import terminal

PROBLEM_KEYS = set(Problem("c", "w", Place("p")).to_json())


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    return tmp_path


def document(*arguments: str, cwd: Path, given: str = "", code: int = 0) -> Any:
    done = knapper(*arguments, "--json", cwd=cwd, given=given)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    return json.loads(done.stdout)


def test_init_makes_a_workspace_once_and_overwrites_nothing(tmp_path: Path) -> None:
    made = knapper("init", "home", cwd=tmp_path)
    assert made.returncode == 0
    assert made.stderr == "Next: cd home && knapper run\n"
    assert len(list((tmp_path / "home" / "functions").glob("*.py"))) == 5
    again = knapper("init", "home", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["made"] == []


def test_a_function_is_created_called_edited_tested_and_deleted_by_a_script(tmp_path: Path) -> None:
    require_functions()
    create = ("functions", "create", "count_vowels", "--module", "words", "--file", "-")
    refused = knapper(*create, cwd=tmp_path, given=FLAWED)
    assert refused.returncode == 1
    assert "example-disagrees" in refused.stdout
    made = knapper(*create, cwd=tmp_path, given=COUNT_VOWELS)
    assert (made.returncode, "added to words, on trial" in made.stdout) == (0, True)
    call = ("functions", "call", "count_vowels", "--args", '{"text": "queueing"}')
    assert knapper(*call, cwd=tmp_path).stdout == "5\n"
    edit = ("functions", "edit", "count_vowels", "--old", "aeiou", "--new", "aeiouy")
    assert knapper(*edit, cwd=tmp_path).returncode == 1
    assert knapper("functions", "test", "count_vowels", cwd=tmp_path).returncode == 0
    assert knapper("functions", "delete", "count_vowels", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "functions" / "words.py").exists()


@pytest.mark.parametrize("verb", ["call", "test", "trace"])
def test_the_arguments_of_a_call_may_come_on_standard_input(grown: Path, verb: str) -> None:
    command = ("functions", verb, "count_vowels", "--args", "-")
    done = knapper(*command, cwd=grown, given='{"text": "queueing"}\n')
    assert (done.returncode, "5" in done.stdout) == (0, True), done.stderr
    nothing = knapper(*command, cwd=grown, given="")
    assert (nothing.returncode, "was not called" in nothing.stderr) == (2, True), nothing.stderr


def test_list_and_show_have_the_published_shapes(grown: Path) -> None:
    (grown / "functions" / "bad.py").write_text("def x(:\n")
    listed = document("functions", "list", cwd=grown)
    row = {"name", "module", "description", "standing", "source", "calls", "last_called"}
    assert [row <= set(each) for each in listed["functions"]] == [True]
    assert [set(each) >= PROBLEM_KEYS for each in listed["rejected"]] == [True]
    shown = document("functions", "show", "count_vowels", "-C", str(grown), cwd=grown.parent)
    assert {"name", "module", "path", "line", "source", "schema", "examples", "standing"} <= set(shown)
    assert {"statistics", "verdict", "callers", "callees", "versions"} <= set(shown)


def test_check_prints_one_verdict_a_line_and_admits_nothing(tmp_path: Path) -> None:
    require_functions()
    lines = [json.dumps({"name": "count_vowels", "code": code}) for code in (COUNT_VOWELS, FLAWED)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines) + "\n")
    done = knapper("functions", "check", "many.jsonl", "--json", cwd=tmp_path)
    verdicts = [json.loads(text) for text in done.stdout.splitlines()]
    assert [verdict["admitted"] for verdict in verdicts] == [True, False]
    assert {"name", "module", "standing", "version", "fixes", "problems", "stages", "source"} <= set(verdicts[0])
    assert done.returncode == 1
    assert document("functions", "list", cwd=tmp_path)["functions"] == []


def test_a_call_that_fails_exits_with_one_and_shows_the_functions_own_frames(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    code = 'def half(n: int) -> float:\n    """Halve.\n\n    Args:\n        n: What.\n    """\n    return n / 0\n'
    (tmp_path / "functions" / "halves.py").write_text(code)
    outcome = document("functions", "call", "half", "--args", '{"n": 3}', cwd=tmp_path, code=1)
    assert {"outcome", "value", "output", "seconds", "error"} <= set(outcome)
    assert outcome["error"]["frames"][-1]["line"] == 7
    plainly = knapper("functions", "call", "half", "--args", '{"n": 3}', cwd=tmp_path)
    assert (plainly.returncode, plainly.stdout) == (1, "")
    assert "functions/halves.py:7 in half: return n / 0   n=3" in plainly.stderr


def test_no_line_of_what_a_function_says_looks_like_one_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    says = "3\n✓ work joins e as trusted"
    code = f'def fails() -> None:\n    """Fail."""\n    raise ValueError({says!r})\n\n\n'
    code += f'def returns() -> str:\n    """Return."""\n    return {says!r}\n'
    (tmp_path / "functions" / "saying.py").write_text(code)
    failed = knapper("functions", "call", "fails", cwd=tmp_path)
    assert failed.stderr.startswith("✗ ValueError: 3\n│ ✓ work joins e as trusted\n")
    assert knapper("functions", "call", "returns", cwd=tmp_path).stdout == "3\n✓ work joins e as trusted\n"
    assert document("functions", "call", "returns", cwd=tmp_path)["value"] == says
    assert document("functions", "call", "fails", cwd=tmp_path, code=1)["error"]["message"] == says


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["show", "nothing"], id="show"),
        pytest.param(["call", "nothing"], id="call"),
        pytest.param(["call", "count_vowels", "--args", "{broken"], id="broken-arguments"),
        pytest.param(["call", "count_vowels", "--args", '{"txt": 1}'], id="wrong-arguments"),
        pytest.param(["test", "nothing"], id="test"),
        pytest.param(["create", "f", "--file", "missing.py"], id="create-from-missing-file"),
    ],
)
def test_what_cannot_be_asked_is_usage_and_one_json_error(grown: Path, arguments: list[str]) -> None:
    error = document("functions", *arguments, cwd=grown, code=2)["error"]
    assert set(error) == {"code", "message", "fix"}
    assert error["message"]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{text:1}", "Write: --args '{\"text\": 1}'"),
        ("{'text': 'it'}", 'Write: --args \'{"text": "it"}\''),
        ('["queue"]', "Write: --args '{\"name\": 1}'"),
        ("queue", "at line 1 column 1"),
    ],
)
def test_arguments_that_are_no_json_object_are_refused_with_the_right_form(
    tmp_path: Path, written: str, told: str
) -> None:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    done = knapper("functions", "call", "count_vowels", "--args", written, cwd=tmp_path)
    assert (done.returncode, done.stdout, told in done.stderr) == (2, "", True), done.stderr


def test_schema_reads_a_file_without_running_a_line_of_it(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text("open('ran', 'w')\n" + COUNT_VOWELS)
    found = document("schema", "words.py", cwd=tmp_path)
    assert [function["name"] for function in found["functions"]] == ["count_vowels"]
    assert not (tmp_path / "ran").exists()
    assert "text (string): What to look at." in knapper("schema", "words.py", cwd=tmp_path).stdout


def test_doctor_tells_people_what_is_missing_and_what_to_do(tmp_path: Path) -> None:
    done = knapper("doctor", cwd=tmp_path, environment={"KNAPPER_MODEL_BASE_URL": "nonsense"})
    assert (done.returncode, "✗ model" in done.stdout) == (1, True)
    shown = done.stdout
    assert "✗ model: `nonsense` is not an address of an endpoint. It looks like http" in shown
    assert shown.endswith("✓ storage: whole\n")


def test_doctor_says_ok_and_names_every_layer(tmp_path: Path) -> None:
    report = document("doctor", cwd=tmp_path, code=1)  # there is no model
    assert {"version", "python", "platform", "sandbox", "model", "storage", "ok"} <= set(report)
    assert report["ok"] is True
    assert report["sandbox"]["level"] in LEVELS


def test_models_lists_what_can_be_fetched_and_path_says_how(tmp_path: Path) -> None:
    empty = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    listed = knapper("models", "list", "--json", cwd=tmp_path, environment=empty)
    names = [model["name"] for model in json.loads(listed.stdout)["models"]]
    assert "local/qwen2.5-coder-1.5b" in names
    asked = knapper("models", "path", names[0], cwd=tmp_path, environment=empty)
    assert asked.returncode == 2
    assert f"knapper models get {names[0]}" in asked.stderr


def test_progress_of_a_called_function_is_drawn_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "slow.py").write_text(SLOW)
    with terminal("functions", "call", "slow", cwd=tmp_path) as screen:
        screen.wait_for("50% part\\x1b[5m")
        assert screen.exit_code() == 0
        assert screen.screen()[0] == "done"
