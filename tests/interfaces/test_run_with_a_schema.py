"""`knapper run --schema`: the reply as JSON on standard output, and nothing else there."""

import json
from pathlib import Path

import pytest

from tests.interfaces.support import flags
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.program import knapper

ADA = {"name": "Ada", "age": 36}
SCRIPT: Script = [
    Ask(Wanted("list_functions"), text="I look."),
    Say("It is Ada."),
    Say(json.dumps(ADA)),
]


def test_the_value_alone_is_on_stdout_and_talk_on_stderr(tmp_path: Path) -> None:
    with scripted(SCRIPT) as model:
        done = knapper(
            "run", *flags(model), "--message", "Who?", "--schema", "name, age int", cwd=tmp_path
        )
    assert (done.returncode, json.loads(done.stdout)) == (0, ADA)
    assert "list_functions" in done.stderr


@pytest.mark.parametrize(
    ("written", "reply", "value"),
    [
        pytest.param("name\nage int", ADA, ADA, id="fields"),
        pytest.param("[name, age int]", {"answer": [ADA]}, [ADA], id="list"),
        pytest.param('{"type": "array"}', {"answer": [1]}, [1], id="schema"),
    ],
)
def test_a_file_names_the_shape(
    tmp_path: Path, written: str, reply: dict[str, object], value: object
) -> None:
    (tmp_path / "shape.txt").write_text(written)
    with scripted([Say(json.dumps(reply))]) as model:
        asked = ("--once", "--schema", "shape.txt")
        done = knapper("run", *flags(model), *asked, cwd=tmp_path, given="Who?\n")
    assert (done.returncode, json.loads(done.stdout)) == (0, value), done.stderr


def test_no_such_answer_is_a_failure_with_what_came(tmp_path: Path) -> None:
    with scripted([Say("Ada."), Say("Ada."), Say("Ada!")]) as model:
        done = knapper("run", *flags(model), "--message", "Who?", "--schema", "name", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "What came: Ada!" in done.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param(("--schema", "name"), "needs a message", id="no-message"),
        pytest.param(("--message", "a", "--schema", "name Odd"), "Odd", id="no-such-type"),
        pytest.param(("--message", "a", "--schema", "missing.json"), "missing.json", id="no-file"),
    ],
)
def test_what_is_no_shape_is_refused(tmp_path: Path, given: tuple[str, ...], says: str) -> None:
    with scripted([]) as model:
        done = knapper("run", *flags(model), *given, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
