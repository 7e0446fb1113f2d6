"""Other assistants, and chat completions clients, can run programs if they may create functions."""

from collections.abc import Callable
from pathlib import Path

from mcp import Client

from agent_core import Workspace
from agent_core.operations.operation import Scope
from sandbox import Sandbox
from tests.kit import ScriptedModel
from tests.knapper_ext.server.conftest import server
from tests.programs.support import lay_out, lines

from .conftest import over_http, piped, text_of

RUN = "run_program"


async def ran(client: Client, code: str) -> tuple[bool, str]:
    """Return whether a program finished, and its output."""
    result = await client.call_tool(RUN, {"code": code})
    return not result.is_error, text_of(result)


async def offered(client: Client) -> bool:
    return RUN in {tool.name for tool in (await client.list_tools()).tools}


PROGRAMS = (
    ("[count_vowels(word) for word in ('aha', 'sky')]", True, "[2, 0]"),
    ("each(count_vowels, ['aha', 'sky'])", True, "[2, 0]"),
    ("print('x')\nobject", True, "This is no JSON"),
    ("count_vowel('a')", False, "there is no `count_vowel`"),
    ("create_function('a', 'b')", False, "there is no `create_function`"),
    ("count_vowels('aha')\n1 / 0", False, "1. count_vowels(text='aha') → 2"),
    ("note('x')", False, "knapper functions grant note --read out/notes.txt"),
)


async def test_a_program_runs_with_the_functions_of_the_workspace(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    lay_out(tmp_path)
    opened = Workspace.open(tmp_path, flags={"mcp.grow": True}, sandbox=one_sandbox)
    async with opened as workspace, piped(workspace) as client:
        assert await offered(client)
        before = 0
        for code, is_whole, says in PROGRAMS:
            whole, text = await ran(client, code)
            assert (whole, says in text) == (is_whole, True), text
            calls = (await workspace.functions.list("count_vowels")).functions[0].calls
            assert (calls > before) == ("count_vowels" in code), code
            before = calls
    assert lines(tmp_path) == []


async def test_it_is_there_only_where_functions_are_made(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    lay_out(tmp_path)
    async with (
        Workspace.open(tmp_path, sandbox=one_sandbox) as workspace,
        piped(workspace) as client,
    ):
        assert not await offered(client)
        assert (await ran(client, "count_vowels('a')"))[0] is False
        assert (await workspace.functions.list("count_vowels")).functions[0].calls == 0


async def test_a_token_needs_the_scope_that_growing_needs(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    lay_out(tmp_path)
    without: tuple[Scope, ...] = ("read", "chat")
    async with server(tmp_path, scripted([]), one_sandbox, mcp__grow=True) as served:
        for name, scopes, may in (("reader", without, False), ("grower", (*without, "edit"), True)):
            async with over_http(served, await served.token(name, *scopes)) as client:
                assert await offered(client) == may
                assert (await ran(client, "count_vowels('aha')"))[0] == may
