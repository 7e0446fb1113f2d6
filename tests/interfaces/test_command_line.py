import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agent_core import __version__
from agent_core.views.faults import innermost, keep_traceback, report_crash
from knapper.shell.cli import knapper as root
from tests.interfaces.support import COUNT_VOWELS, HERE, SLOW
from tests.kit.program import knapper
from tests.kit.terminal import terminal


def test_the_version_is_answered_without_importing_a_parser(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['knapper', '--version']; from knapper.__main__ import main; main(); "
    code += "print(sorted({'click', 'argparse', 'asyncio', 'pydantic', 'json'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"knapper {__version__}\n[]\n"


def test_a_command_finds_all_that_it_imports_when_it_starts_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(COUNT_VOWELS)
    alone = {"PYTHONPATH": HERE, "HOME": str(tmp_path)}
    for words in ("functions check words.py", "doctor"):
        command = [sys.executable, "-m", "knapper", *words.split(), "--json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, env=alone)
        assert (done.returncode, done.stderr) == (int(words == "doctor"), b""), (
            words
        )  # the doctor lacks a model
        assert json.loads(done.stdout)


MISUSES = {
    ("functons",): "Did you mean 'functions'?",
    ("functions", "lst"): "Did you mean 'list'?",
    ("functions", "check", "none.py"): "does not exist",
    ("run", "--message", " "): "The message is empty",
    ("run", "hello"): "Put the text after --message, in quotes.",
    ("xyzzy",): "More comes with the extras of this program: ",
    ("grants", "list"): "It is in a group: knapper functions grants.",
}
BEFORE = {
    ("--model", "big", "run"): " These take it: configure, run, serve.",
    ("functions", "--expected", "3", "confirm"): "confirm.",
    ("functions", "-C", ".", "list"): "knapper functions COMMAND -C",
}


def test_misuse_exits_with_two_and_the_next_command_to_type(tmp_path: Path) -> None:
    for arguments, says in MISUSES.items():
        done = knapper(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, says in done.stderr) == (2, "", True), (
            arguments,
            done.stderr,
        )
        assert "--help" in done.stderr or "It is in a group" in says
    for arguments, takers in BEFORE.items():  # an option before its command
        done = knapper(*arguments, cwd=tmp_path)
        said = done.stdout + done.stderr
        assert (done.returncode, "Put it after a command: knapper " in said, takers in said) == (
            2,
            True,
            True,
        ), said
        assert "Did you mean" not in said
    done = knapper("functions", "lst", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["error"]["code"] == "usage"
    assert (done.returncode, done.stderr) == (2, "")


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


def test_help_lists_every_command_in_groups_and_cuts_no_text(tmp_path: Path) -> None:
    for columns in (60,):
        with terminal("--help", cwd=tmp_path, columns=columns, rows=50) as screen:
            assert screen.exit_code() == 0
            shown = screen.scrolled()
        missing = [
            name
            for name in root.list_commands(click.Context(root))
            if not re.search(rf"^(.*  )?  ?(\w+, )?{name}(, \w+)?  +\w", shown, re.MULTILINE)
        ]
        assert missing == []
        assert "..." not in shown.replace("COMMAND [ARGS]...", "")
        assert all(
            group in shown for group in ("Start:", "Functions:", "Agents:", "Serve and keep:")
        )


COMPLETED = {
    "knapper functions show co": "count_vowels",
    "knapper functions test --args {} sl": "slow",
    "knapper run --agent sa": "sam",
    "knapper agents show s": "sam",
    "knapper run --model f": "fast",
    "knapper conf": "configure",
}


def test_the_shell_completes_names_without_running_anything(folder: Path) -> None:
    trap = "raise SystemExit('it was run')\n"
    (folder / "functions" / "words.py").write_text(
        f"{trap}{COUNT_VOWELS}\n\n{SLOW}\n\ndef _hidden():\n    pass\n"
    )
    (folder / "functions" / "broken.py").write_text("def count_ (:\n")
    for name in ("agents", "below"):
        (folder / name).mkdir()
    (folder / "agents" / "sam.toml").write_text("")
    (folder / "knapper.toml").write_text('[models.fast]\nbase_url = "http://127.0.0.1:9/v1"\n')
    for typed, offered in COMPLETED.items():
        words = {
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split()) - 1),
            "_KNAPPER_COMPLETE": "bash_complete",
        }
        for place in (folder, folder / "below"):
            assert knapper(cwd=place, environment=words).stdout.splitlines() == [f"plain,{offered}"]
    assert not (folder / ".knapper").exists()


def test_every_command_has_help_that_names_json_and_workspace() -> None:
    texts = dict(_helps(root, "knapper"))
    assert len(texts) > 100
    lacking = [
        path for path, text in texts.items() if "--json" not in text or "--workspace" not in text
    ]
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
    for _ in range(30):
        keep_traceback(raised.value, tmp_path)
    assert len([*(tmp_path / ".knapper").iterdir()]) == 20, "the newest"
    for kept in (tmp_path / ".knapper").iterdir():
        kept.unlink()
    code = report_crash(innermost(ExceptionGroup("tasks", [raised.value])), tmp_path, as_json=False)
    [kept] = (tmp_path / ".knapper").glob("crash-*.log")
    said = capsys.readouterr().err
    assert (code, "Traceback (" in said) == (1, False)
    assert str(kept) in said
    assert "_ = 1 / 0" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_a_file_is_not_taken_for_a_workspace_nor_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for command in (["functions", "list"], ["init"]):
        done = knapper(
            *command, *(["notes.txt"] if command == ["init"] else ["-C", "notes.txt"]), cwd=tmp_path
        )
        assert (
            done.returncode,
            "notes.txt is a file, and a workspace is a folder." in done.stderr,
        ) == (1, True)
        if command != ["init"]:
            done = knapper(*command, "-C", "nowhere", cwd=tmp_path)
            assert (done.returncode, "There is no folder " in done.stderr) == (1, True)
            assert "Next: knapper init nowhere" in done.stderr
