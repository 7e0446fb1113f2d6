"""Other assistants, and chat completions clients, can run programs if they may create functions."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client

from agent_core import Workspace
from agent_core.interfaces.server.identity import Scope
from sandbox import Sandbox
from tests.kit import Ask, Repeat, Say, ScriptedModel, Wanted
from tests.programs.support import lay_out, lines
from tests.server.conftest import server

from .conftest import over_http, piped, text_of

RUN = "run_program"


async def ran(client: Client, code: str) -> tuple[bool, str]:
    """Return whether a program finished, and its output."""
    result = await client.call_tool(RUN, {"code": code})
    return not result.is_error, text_of(result)


async def offered(client: Client) -> bool:
    return RUN in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize(
    ("code", "is_whole", "says"),
    [
        pytest.param("[count_vowels(word) for word in ('aha', 'sky')]", True, "[2, 0]", id="a-loop"),
        pytest.param("each(count_vowels, ['aha', 'sky'])", True, "[2, 0]", id="each"),
        pytest.param("print('x')\nobject", True, "This is no JSON", id="no-json"),
        pytest.param("count_vowel('a')", False, "there is no `count_vowel`", id="unknown"),
        pytest.param("create_function('a', 'b')", False, "there is no `create_function`", id="making"),
        pytest.param("count_vowels('aha')\n1 / 0", False, "1. count_vowels(text='aha') → 2", id="fails"),
        pytest.param("note('x')", False, "knapper functions grant note --read out/notes.txt", id="without-grant"),
    ],
)
async def test_a_program_runs_with_the_functions_of_the_workspace(
    tmp_path: Path, one_sandbox: Sandbox, code: str, is_whole: bool, says: str
) -> None:
    lay_out(tmp_path)
    opened = Workspace.open(tmp_path, flags={"mcp.grow": True}, sandbox=one_sandbox)
    async with opened as workspace, piped(workspace) as client:
        assert await offered(client)
        whole, text = await ran(client, code)
        assert (whole, says in text) == (is_whole, True), text
        calls = (await workspace.functions.list("count_vowels")).functions[0].calls
        assert (calls > 0) == ("count_vowels" in code)
    assert lines(tmp_path) == []


async def test_it_is_there_only_where_functions_are_made(tmp_path: Path, one_sandbox: Sandbox) -> None:
    lay_out(tmp_path)
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as workspace, piped(workspace) as client:
        assert not await offered(client)
        assert (await ran(client, "count_vowels('a')"))[0] is False
        assert (await workspace.functions.list("count_vowels")).functions[0].calls == 0


@pytest.mark.parametrize("scopes", [("read", "chat"), ("read", "chat", "edit")])
async def test_a_token_needs_the_scope_that_growing_needs(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox, scopes: tuple[Scope, ...]
) -> None:
    lay_out(tmp_path)
    async with server(tmp_path, scripted([]), one_sandbox, mcp__grow=True) as served:
        token = await served.token("peer", *scopes)
        async with over_http(served, token) as client:
            assert await offered(client) == ("edit" in scopes)
            assert (await ran(client, "count_vowels('aha')"))[0] == ("edit" in scopes)


async def test_the_agent_behind_chat_completions_runs_programs(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    lay_out(tmp_path)
    script = [Ask(Wanted(RUN, {"code": "sum(each(count_vowels, ['aha', 'sky']))"})), Repeat(Say("Two."))]
    model = scripted(script)
    async with server(tmp_path, model, one_sandbox) as served:
        client = await served.as_("peer", "read", "chat", "edit")
        body = {"model": "main", "messages": [{"role": "user", "content": "How many?"}]}
        reply = (await client.post("/v1/chat/completions", json=body)).json()
        assert reply["choices"][0]["message"]["content"] == "Two."
    assert [tool["function"]["name"] for tool in model.requests[0].body["tools"]].count(RUN) == 1
    assert model.requests[-1].messages[-1]["content"] == "2"
