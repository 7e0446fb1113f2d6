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
    root = alone(tmp_path)
    shown = _run(root, workspace, "--help").stdout.split()
    assert "functions" in shown
    assert not {"serve", "tokens", "worker", "mcp", "models"} & {*shown}
    listed = _run(root, workspace, "functions", "--help").stdout.split()
    assert "check" in listed
    assert not {"audit", "tend", "import", "export"} & {*listed}
    assert "--sarif" not in _run(root, workspace, "functions", "check", "--help").stdout


def test_it_says_what_it_cannot_read_and_whom_it_cannot_ask(
    tmp_path: Path, workspace: Path
) -> None:
    root = alone(tmp_path)
    _run(root, workspace, "init")
    (workspace / "letta.af").write_text('{"agents": [], "blocks": [], "tools": []}')
    home = {"HOME": str(root.parent)}
    refused = reduced(root, "agents", "import", "letta.af", cwd=workspace, environment=home)
    assert refused.returncode == 1
    assert "expected the file of an agent: `format` is knapper-agent" in refused.stderr
    assert "Letta" not in refused.stderr
    environment = {**home, "KNAPPER_GROWTH_MAKER": "strong"}
    with scripted([Ask(create(COUNT_VOWELS)), Repeat(Say("It was not made."))]) as model:
        typed = ("run", *flags(model), "-y", "--message", "Count.")
        done = reduced(root, *typed, cwd=workspace, environment=environment)
        assert done.returncode == 0, done.stderr
        told = model.requests[-1].text
    assert "the model `strong`, and nothing here can ask it" in told
    assert "growth.maker" in told


@pytest.mark.parametrize(
    ("extension", "words", "says"),
    [
        pytest.param(
            "server", ("tokens", "add", "ci", "--scope", "chat"), "shown this once", id="server"
        ),
        pytest.param("mcp", ("mcp", "list"), "", id="mcp"),
        pytest.param("local", ("models", "list"), "qwen2.5-coder-1.5b", id="local"),
        pytest.param("tending", ("functions", "audit"), "of 100", id="tending"),
        pytest.param("exchange", ("functions", "export", "out"), "package out", id="exchange"),
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
