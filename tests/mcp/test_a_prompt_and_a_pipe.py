"""`knapper mcp` as another program starts it, next to a prompt in a terminal at the same workspace."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import mcp_types as wire
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.interfaces.support import COUNT_VOWELS, create, prompt
from tests.kit import Ask, Say
from tests.kit.program import surroundings
from tests.kit.terminal import KNAPPER

from .conftest import text_of
from .test_tools_of_strangers import approved, tool


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that is a workspace."""
    (tmp_path / "knapper.toml").touch()
    return tmp_path


async def test_what_is_made_at_a_prompt_is_heard_of_and_called_by_another_program(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            heard.set()

    program, *words = KNAPPER
    started = StdioServerParameters(command=program, args=[*words, "-C", str(tmp_path), "mcp"], env=dict(os.environ))
    asked = {"function_name": "count_vowels", "arguments": {"text": "queueing"}}
    with prompt([Ask(create(COUNT_VOWELS)), Say("It is made.")], tmp_path) as (screen, _):
        async with Client(stdio_client(started), mode="legacy", message_handler=hear) as client:
            assert (await client.call_tool("call_function", asked)).is_error
            screen.line("make it")
            async with asyncio.timeout(60):
                await heard.wait()
            assert text_of(await client.call_tool("call_function", asked)) == "5"
            await asyncio.to_thread(screen.wait_for, "It is made.")


def test_a_client_that_is_gone_from_both_pipes_ends_the_program_quietly(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    command = [*KNAPPER, "-C", str(tmp_path), "mcp"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path, env=surroundings({})) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        program.stdin.flush()
        assert program.stdout.readline()
        program.stdout.close()
        program.stdin.close()
        assert (program.wait(60), program.stderr.read()) == (0, b"")


def test_a_server_without_a_client_ends_at_once_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    program = [sys.executable, "-m", "agent_core", "mcp"]
    done = subprocess.run(program, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_approved_tool_of_another_program_is_called_by_hand_at_the_prompt(tmp_path: Path) -> None:
    approved(tmp_path, tool("echo"), says="heard you")
    with prompt([], tmp_path) as (screen, _):
        screen.line('=strange__echo(text="a")')
        screen.wait_for("heard you")
        screen.line('/call strange__echo {"text": 5}')
        screen.wait_for("strange__echo(text=5)")
        screen.line("=strange__echo(5, 6)")
        screen.wait_for("strange__echo takes 1 argument, but got 2.")
        screen.line("/test strange__echo")
        screen.wait_for("has no examples")
