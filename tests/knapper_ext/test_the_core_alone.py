"""The core without any extension, and with one alone: what a conversation needs is there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS, create, flags
from tests.kit import Ask, Repeat, Say, scripted
from tests.kit.reduced import alone, reduced
from tests.kit.terminal import Terminal


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def _run(root: Path, workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = reduced(root, *arguments, cwd=workspace, environment={"HOME": str(root.parent)})
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done


def test_a_function_is_grown_edited_debugged_granted_and_forgotten(
    tmp_path: Path, workspace: Path
) -> None:
    root = alone(tmp_path)
    _run(root, workspace, "init")
    with scripted([Ask(create(COUNT_VOWELS)), Say("Made: 5 vowels.")]) as model:
        grown = _run(root, workspace, "run", *flags(model), "-y", "--message", "Count in queueing.")
    assert "Made: 5 vowels." in grown.stdout
    changed = ("--old", "text.lower()", "--new", "text.casefold()")
    _run(root, workspace, "functions", "edit", "count_vowels", *changed)
    history = json.loads(
        _run(root, workspace, "functions", "history", "count_vowels", "--json").stdout
    )
    assert len(history["versions"]) == 2
    _debug(root, workspace)
    _run(root, workspace, "functions", "grant", "count_vowels", "--network", "a.example.org", "-y")
    grants = _run(root, workspace, "functions", "grants", "count_vowels").stdout
    assert "a.example.org" in grants
    shown = _run(root, workspace, "log").stdout
    assert "queueing" in shown
    _run(root, workspace, "memory", "forget", "queueing", "-y")
    assert "queueing" not in _run(root, workspace, "log").stdout


def _debug(root: Path, workspace: Path) -> None:
    """Stop at the function's first line at a prompt, look, and go on."""
    with scripted([]) as model:
        command = [sys.executable, "-m", "knapper", "run", *flags(model)]
        environment = {"PYTHONPATH": str(root), "HOME": str(root.parent)}
        screen = Terminal(command, cwd=workspace, environment=environment)
        try:
            screen.wait_for("/help lists")
            screen.line('/debug count_vowels {"text": "sea"}')
            screen.wait_for("(debug)")
            screen.do("p text.upper()", "SEA")
            screen.do("c", "2")
            screen.type("\x04")
            assert screen.exit_code() == 0
        finally:
            screen.close()


def test_of_its_commands_none_is_of_an_extension(tmp_path: Path, workspace: Path) -> None:
    shown = _run(alone(tmp_path), workspace, "--help").stdout.split()
    assert "functions" in shown
    assert not {"serve", "tokens", "worker", "mcp", "models"} & {*shown}


@pytest.mark.parametrize(
    ("extension", "words", "says"),
    [
        pytest.param(
            "server", ("tokens", "add", "ci", "--scope", "chat"), "shown this once", id="server"
        ),
        pytest.param("mcp", ("mcp", "list"), "", id="mcp"),
        pytest.param("local", ("models", "list"), "qwen2.5-coder-1.5b", id="local"),
    ],
)
def test_an_extension_alone_has_its_commands(
    extension: str, words: tuple[str, ...], says: str, tmp_path: Path, workspace: Path
) -> None:
    root = alone(tmp_path, extension)
    _run(root, workspace, "init")
    done = _run(root, workspace, *words)
    assert says in done.stdout + done.stderr
    with scripted([Repeat(Say("Hello."))]) as model:
        assert "Hello." in _run(root, workspace, "run", *flags(model), "--message", "Hi").stdout
