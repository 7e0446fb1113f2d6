"""`knapper mcp` as another program starts it, next to a prompt in a terminal at the same workspace."""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryFile

import mcp_types as wire
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.interfaces.support import COUNT_VOWELS, create, prompt
from tests.kit import Ask, Say
from tests.kit.program import Program, surroundings
from tests.kit.terminal import KNAPPER

from .conftest import text_of
from .test_tools_of_strangers import approved, tool


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that is a workspace."""
    (tmp_path / "knapper.toml").touch()
    return tmp_path


async def test_what_is_made_at_a_prompt_is_heard_of_and_called_by_another_program(
    tmp_path: Path,
) -> None:
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            heard.set()

    program, *words = KNAPPER
    started = StdioServerParameters(
        command=program, args=[*words, "-C", str(tmp_path), "mcp"], env=dict(os.environ)
    )
    asked = {"function_name": "count_vowels", "arguments": {"text": "queueing"}}
    with prompt([Ask(create(COUNT_VOWELS)), Say("It is made.")], tmp_path) as (screen, _):
        async with Client(stdio_client(started), mode="legacy", message_handler=hear) as client:
            assert (await client.call_tool("call_function", asked)).is_error
            screen.line("make it")
            async with asyncio.timeout(60):
                await heard.wait()
            assert text_of(await client.call_tool("call_function", asked)) == "5"
            await asyncio.to_thread(screen.wait_for, "It is made.")


@pytest.mark.parametrize(
    "said", [b"", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'], ids=["nothing", "ping"]
)
def test_a_server_whose_client_is_gone_or_was_never_there_ends_quietly(
    tmp_path: Path, said: bytes
) -> None:
    (typed, given), (told, out) = os.pipe(), os.pipe()
    with TemporaryFile() as err:
        program = Program(
            ["mcp"], [typed, out, err.fileno()], cwd=tmp_path, environment=surroundings({})
        )
        for end in (typed, out):
            os.close(end)
        os.write(given, said)
        assert not said or os.read(told, 1 << 16)
        for end in (given, told):
            os.close(end)
        assert program.wait(60) == 0
        err.seek(0)
        assert err.read() == b""


def test_an_approved_tool_of_another_program_is_called_by_hand_at_the_prompt(
    tmp_path: Path,
) -> None:
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
