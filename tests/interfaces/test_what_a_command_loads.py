"""A read-only command loads only the store and the registry: nothing that judges, calls or asks a model."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from agent_core.operations.operation import Opens
from agent_core.operations.verb import Verb
from knapper.shell.cli import knapper as program
from tests.interfaces.support import COUNT_VOWELS, flags
from tests.kit import Say, scripted
from tests.kit.drawing import sampled
from tests.kit.program import knapper, surroundings

HEAVY = {
    *("agent_core.functions.gate.gate", "sandbox.host", "sandbox.processes.pool"),
    *(
        "agent_core.runtime.agent",
        "agent_core.runtime.loop",
        "agent_core.model.client",
        "openai",
        "httpx2",
        "httpx",
    ),
    *("mcp", "starlette", "uvicorn", "numpy", "watchdog", "prompt_toolkit", "pydantic_settings"),
}
"""What judges, calls, serves, watches, or asks a model."""
MEASURES = {
    "functions show": [
        "sandbox.host",
        "sandbox.processes.pool",
    ],  # it runs the examples for the lines that they reach
    "functions audit": ["agent_core.functions.gate.gate", "numpy"],  # to find copies
    "functions search": ["numpy"],  # to compare meanings
    "memory search": ["numpy"],
}
"""Modules that a read-only command still needs."""
GIVEN = {"name": "count_vowels", "need": "count the vowels", "text": "vowels", "call": "1"}
"""The value typed for a parameter, by its name; nothing for others."""
SAYS = """
import sys
from knapper.__main__ import main
try:
    main()
finally:
    sys.stderr.write(f"loaded: {' '.join(sys.modules)}")
"""


def reading_verbs(group: click.Group, path: str = "") -> Iterator[tuple[str, Verb]]:
    """Yield every command that opens a workspace to read it, with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from reading_verbs(command, f"{path}{name} ")
        elif isinstance(command, Verb) and command.opens is Opens.READABLE:
            yield f"{path}{name}", command


assert all(
    find_spec(name) for name in HEAVY if name.startswith(("agent_core.", "sandbox."))
)  # none was renamed
VERBS = dict(reading_verbs(program))
assert {
    "functions list",
    "functions show",
    "functions history",
    "calls list",
    "sources list",
} <= VERBS.keys()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose functions were judged by an earlier command."""
    root = tmp_path_factory.mktemp("reading")
    assert knapper("init", ".", cwd=root).returncode == 0
    (root / "functions" / "grown.py").write_text(COUNT_VOWELS)
    assert knapper("functions", "list", cwd=root).returncode == 0
    return root


def loaded_by(workspace: Path, *typed: str) -> set[str]:
    """Return the modules that a command has loaded at its end."""
    command = [
        sys.executable,
        "-c",
        SAYS,
        *typed,
    ]  # no fork of a process that has imported the library
    ended = subprocess.run(
        command, cwd=workspace, env=surroundings({}), capture_output=True, text=True
    )
    assert ended.returncode in (0, 1, 2), ended.stderr  # an unknown name takes the same code path
    loaded = {*ended.stderr.rpartition("loaded: ")[2].split()}
    assert "agent_core.storage" in loaded, ended.stderr
    return loaded


@pytest.mark.sampled
@pytest.mark.parametrize("path", sampled(VERBS, 7))
def test_a_verb_that_reads_loads_nothing_that_judges_calls_or_asks(
    path: str, workspace: Path
) -> None:
    typed = [
        GIVEN[str(param.name)]
        for param in VERBS[path].params
        if param.name in GIVEN and param.required
    ]
    loaded = loaded_by(workspace, *path.split(), *typed)
    assert sorted(HEAVY & loaded - {*MEASURES.get(path, ())}) == []


def test_a_verb_that_reads_the_state_alone_loads_no_workspace(workspace: Path) -> None:
    loaded = loaded_by(workspace, "memory", "show")
    assert sorted((HEAVY | {"agent_core.workspace.workspace"}) & loaded) == []


def test_a_call_of_a_function_follows_no_files_and_loads_nothing_of_helpers_and_agents(
    workspace: Path,
) -> None:
    loaded = loaded_by(workspace, "functions", "call", "count_vowels", "--args", '{"text": "a"}')
    assert "agent_core.functions.sandbox_client" in loaded
    kept_out = {"watchdog", "openai", "agent_core.workspace.helper_library"}
    assert sorted(kept_out & loaded) == []


def test_a_message_without_a_call_loads_no_validator_and_few_types_of_the_client(
    workspace: Path,
) -> None:
    with scripted([Say("Hello.")]) as model:
        loaded = loaded_by(workspace, "run", "--once", *flags(model), "--message", "hi")
    types = {name for name in loaded if name.startswith("openai.types.")}
    assert (len(types) < 100, "openai" in loaded, "jsonschema" in loaded) == (True, True, False)


NAMES = """
import openai
first = "batch" in vars(openai.types)
from openai.types.chat import ChatCompletion
print(ChatCompletion, openai.types.Batch, *dir(openai.types), sep="; ", end=f"|{first}")
"""


def test_the_types_of_the_client_are_all_there_for_whoever_asks_for_one() -> None:
    ran = [
        subprocess.run(
            [sys.executable, "-c", before + NAMES],
            env=surroundings({}),
            capture_output=True,
            text=True,
        )
        for before in ("", "import agent_core.model.connection")
    ]
    (names, at_once), (late_names, is_early) = (done.stdout.split("|") for done in ran)
    assert (at_once, is_early) == ("True", "False"), ran
    assert late_names == names


NOT_FOR_HELP = (
    "agent_core.functions.service",
    "agent_core.storage",
    "agent_core.workspace",
    "pydantic",
    "jsonschema",
    "apsw",
)


def test_help_loads_no_workspace(tmp_path: Path) -> None:
    for words in (("--help",), ("functions", "--help")):
        command = [sys.executable, "-X", "importtime", "-m", "knapper", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=surroundings({}), capture_output=True, text=True, check=True
        )
        lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
        loaded = {line.rpartition("|")[2].strip() for line in lines}
        assert "knapper.shell.cli" in loaded
        assert not loaded & {*NOT_FOR_HELP}, words
