import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agent_core import __version__
from agent_core.interfaces.cli import _COMMANDS
from agent_core.interfaces.cli import knapper as root
from agent_core.interfaces.faults import innermost, report_crash
from tests.interfaces.support import COUNT_VOWELS, HERE, SLOW
from tests.kit.program import knapper
from tests.kit.terminal import KNAPPER, terminal


def test_the_version_is_answered_without_importing_a_parser(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['knapper', '--version']; from agent_core.__main__ import main; main(); "
    code += "print(sorted({'click', 'argparse', 'asyncio', 'pydantic', 'json'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"knapper {__version__}\n[]\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(words.split(), id=words)
        for words in ("init home", "schema words.py", "models list", "functions check words.py", "doctor")
    ],
)
def test_a_command_finds_all_that_it_imports_when_it_starts_from_nothing(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "words.py").write_text(COUNT_VOWELS)
    command = [*KNAPPER, *arguments, "--json"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, check=False, env={"PYTHONPATH": HERE, "HOME": str(tmp_path)}
    )
    lacks_model = arguments == ["doctor"]  # its exit code reports that
    assert (done.returncode, done.stderr) == (int(lacks_model), b"")
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["functons"], "Did you mean 'functions'?", id="command"),
        pytest.param(["functions", "lst"], "Did you mean 'list'?", id="verb"),
        pytest.param(["run", "--mesage", "x"], "--message", id="option"),
        pytest.param(["functions", "check"], "Missing argument 'PATH...'", id="missing-argument"),
        pytest.param(["functions", "check", "none.py"], "does not exist", id="missing-file"),
        pytest.param(["functions", "list", "--standing", "good"], "'quarantined'", id="unknown-standing"),
        pytest.param(["run", "--message", " "], "The message is empty", id="empty-message"),
        pytest.param(["memory", "edit", "human", "Likes tea"], "Put the text after --value, in quotes.", id="text"),
        pytest.param(["run", "hello"], "Put the text after --message, in quotes.", id="message"),
    ],
)
def test_misuse_exits_with_two_and_the_next_command_to_type(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = knapper(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "--help" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "takers"),
    [
        pytest.param(["--model", "big", "run"], " These take it: configure, run, serve.", id="before-the-noun"),
        pytest.param(["functions", "--expected", "3", "confirm"], "confirm.", id="before-the-verb"),
        pytest.param(["functions", "--json", "list"], "", id="of-every-command"),
        pytest.param(["functions", "-C", ".", "list"], "knapper functions COMMAND -C", id="between-group-and-verb"),
    ],
)
def test_an_option_before_its_command_is_said_to_belong_after_it(
    tmp_path: Path, arguments: list[str], takers: str
) -> None:
    done = knapper(*arguments, cwd=tmp_path)
    said = done.stdout + done.stderr
    assert (done.returncode, "Put it after a command: knapper " in said, takers in said) == (2, True, True)
    assert "Did you mean" not in said


@pytest.mark.parametrize("command", [["functions", "list"], ["memory", "show"], ["run", "--message", "hi"], ["init"]])
def test_a_file_is_not_taken_for_a_workspace_nor_a_folder_that_is_not_there(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "notes.txt").write_text("x")
    place = ["notes.txt"] if command == ["init"] else ["-C", "notes.txt"]
    done = knapper(*command, *place, cwd=tmp_path)
    assert (done.returncode, "notes.txt is a file, and a workspace is a folder." in done.stderr) == (1, True)
    if command != ["init"]:
        done = knapper(*command, "-C", "nowhere", cwd=tmp_path)
        assert (done.returncode, "There is no folder " in done.stderr) == (1, True)
        assert "Next: knapper init nowhere" in done.stderr


def test_the_command_alone_begins_with_what_a_newcomer_types(tmp_path: Path) -> None:
    with terminal(cwd=tmp_path) as screen:
        assert screen.exit_code() == 2
        shown = screen.screen()
    assert shown[:2] == [
        "New here? Type:",
        "  knapper run --model tour  See it work, without a model.",
    ]
    assert any("Talk to it" in row for row in shown[:6])
    assert any(row.startswith("Usage: knapper") for row in shown[:8])
    assert any("_KNAPPER_COMPLETE=bash_source" in row for row in shown)


@pytest.mark.parametrize("columns", [80, 60])
def test_help_lists_every_command_in_groups_and_cuts_no_text(tmp_path: Path, columns: int) -> None:
    with terminal("--help", cwd=tmp_path, columns=columns, rows=50) as screen:
        assert screen.exit_code() == 0
        shown = screen.scrolled()
    missing = [name for name in _COMMANDS if not re.search(rf"^(.*  )?  ?{name}  +\w", shown, re.MULTILINE)]
    assert missing == []
    assert "..." not in shown.replace("COMMAND [ARGS]...", "")
    for group in ("Start:", "Functions:", "Agents:", "Serve and keep:"):
        assert group in shown


def test_a_command_that_is_in_a_group_is_named_with_it(tmp_path: Path) -> None:
    done = knapper("grants", "list", cwd=tmp_path)
    assert (done.returncode, "It is in a group: knapper functions grants." in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        pytest.param("knapper functions show co", ["count_vowels"], id="a function"),
        pytest.param("knapper functions test --args {} sl", ["slow"], id="a function after an option"),
        pytest.param("knapper run --agent sa", ["sam"], id="an agent"),
        pytest.param("knapper agents show s", ["sam"], id="an agent to show"),
        pytest.param("knapper run --model f", ["fast"], id="a model"),
        pytest.param("knapper con", ["configure"], id="a command"),
    ],
)
def test_the_shell_completes_names_without_running_anything(tmp_path: Path, typed: str, offered: list[str]) -> None:
    (tmp_path / "functions").mkdir()
    trap = "raise SystemExit('it was run')\n"
    (tmp_path / "functions" / "words.py").write_text(f"{trap}{COUNT_VOWELS}\n\n{SLOW}\n\ndef _hidden():\n    pass\n")
    (tmp_path / "functions" / "broken.py").write_text("def count_ (:\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "sam.toml").write_text("")
    (tmp_path / "knapper.toml").write_text('[models.fast]\nbase_url = "http://127.0.0.1:9/v1"\n')
    below = tmp_path / "below"
    below.mkdir()
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_KNAPPER_COMPLETE": "bash_complete"}
    for folder in (tmp_path, below):
        done = knapper(cwd=folder, environment=words)
        assert done.stdout.splitlines() == [f"plain,{name}" for name in offered]
    assert not (tmp_path / ".knapper").exists()


def test_misuse_under_json_is_one_json_document_on_standard_output(tmp_path: Path) -> None:
    done = knapper("functions", "lst", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["error"]["code"] == "usage"
    assert (done.returncode, done.stderr) == (2, "")


def test_every_command_has_help_that_names_json_and_workspace() -> None:
    texts = dict(_helps(root, "knapper"))
    assert len(texts) > 100
    lacking = [path for path, text in texts.items() if "--json" not in text or "--workspace" not in text]
    assert lacking == []


def _helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Yield the help of a command, or of all commands below a group."""
    context = click.Context(command, info_name=path)
    if not isinstance(command, click.Group):
        yield path, command.get_help(context)
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _helps(inner, f"{path} {name}")


def test_an_unforeseen_error_is_short_and_leaves_a_private_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".knapper").mkdir()
    with pytest.raises(ZeroDivisionError) as raised:
        _ = 1 / 0
    code = report_crash(innermost(ExceptionGroup("tasks", [raised.value])), tmp_path, as_json=False)
    [kept] = (tmp_path / ".knapper").glob("crash-*.log")
    said = capsys.readouterr().err
    assert (code, "Traceback (" in said) == (1, False)
    assert str(kept) in said
    assert "_ = 1 / 0" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("command", [["functions", "list"], ["run", "--message", "hi"], ["functions", "test", "f"]])
def test_a_command_in_a_folder_that_is_no_workspace_makes_nothing_and_names_init(
    tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "knapper.toml").unlink()
    (tmp_path / "x.py").write_text("")
    done = knapper(*command, cwd=tmp_path)
    assert done.returncode == 1
    assert "knapper init" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.py"]


def test_the_doctor_says_why_texts_are_found_by_words_alone(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sqlite_vec.py").write_text("")
    broken = f"import sys; sys.path.insert(0, {str(tmp_path / 'broken')!r}); sys.modules.pop('sqlite_vec', None)"
    told, whole = (knapper("doctor", *options, cwd=tmp_path, first=broken) for options in ([], ["--json"]))
    storage = json.loads(whole.stdout)["storage"]
    assert storage["ok"]
    assert "the extension sqlite-vec cannot be loaded" in storage["vectors"]
    assert "found only by their words" in " ".join(told.stdout.split())


def test_the_doctor_works_in_any_folder_and_leaves_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").unlink()
    assert json.loads(knapper("doctor", "--json", cwd=tmp_path).stdout)["storage"]["ok"]
    assert list(tmp_path.iterdir()) == []
