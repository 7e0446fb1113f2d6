"""What MCP clients of both eras see of a workspace, over a pipe and over HTTP, and the effects of their calls."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import mcp_types as wire
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from agent_core import Workspace
from agent_core.access.grants import Decision
from agent_core.functions.service import Author
from knapper_ext.mcp.door import serve_streams
from knapper_ext.mcp.wire import MOST_LINE
from tests.conftest import OpenDesk
from tests.kit.desk import VOWELS
from tests.kit.drawing import crossed
from tests.kit.waiting import until
from tests.knapper_ext.server.conftest import Served

from .conftest import Era, names, over_http, pipe_pair, piped, text_of

READS = '''\
def first_line(self, path: str) -> str:
    """Read the first line of a file.

    Args:
        path: The file.
    """
    with open(path) as file:
        return file.readline().strip()
'''
WIDER = (
    VOWELS.replace("(text: str)", '(text: str, more: str = "")')
    .replace("look at.\n", "look at.\n        more: Other letters to count.\n", 1)
    .replace('in "aeiou"', 'in "aeiou" + more')
)
SLOW = '''\
import time


def wait_long(self, steps: int) -> int:
    """Wait as many steps as asked.

    Args:
        steps: How many.
    """
    for step in range(steps):
        self.progress(step + 1, steps, f"step {step + 1}")
        time.sleep(0.02)
    return steps
'''


async def saved(workspace: Workspace, name: str, text: str) -> None:
    (workspace.root / "functions" / f"{name}.py").write_text(text)
    await workspace.functions.reload()


@pytest.mark.sampled
@pytest.mark.parametrize(("way", "era"), crossed(["pipe", "http"], ["auto", "legacy"]))
async def test_clients_see_call_and_follow_the_functions(
    served: Served, era: Era, way: str
) -> None:
    workspace = served.workspace
    token = await served.token("peer", "read", "chat")
    notices: list[object] = []

    async def hear(message: object) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            notices.append(message)

    opened = piped(workspace, era, hear) if way == "pipe" else over_http(served, token, era, hear)
    async with opened as client, AsyncExitStack() as stack:
        assert await names(client) == set()
        seen = await _following(client, notices, stack)
        made = await workspace.functions.create(
            "count_vowels", VOWELS, "text", author=Author("agent")
        )
        assert made.admitted
        await until(lambda: _is(seen, {"count_vowels"}))
        result = await client.call_tool("count_vowels", {"text": "queueing"})
        assert (text_of(result), result.structured_content) == ("5", {"result": 5})
        again = await client.call_tool(
            "call_function", {"function_name": "count_vowels", "arguments": {"text": 77}}
        )
        assert (again.is_error, text_of(again)) == (False, "0"), (
            "arguments are repaired as everywhere"
        )
        assert (await workspace.functions.list("count_vowels")).functions[0].calls == 2
        seen.clear()
        assert (await workspace.functions.replace("count_vowels", WIDER, reason="wider")).admitted
        await until(lambda: _is(seen, {"count_vowels"}))
        described = text_of(
            await client.call_tool("describe_function", {"function_name": "count_vowels"})
        )
        assert '"more"' in described
        assert "Reaches: computes only" in described
        (resource,) = (await client.list_resources(cache_mode="bypass")).resources
        assert "def count_vowels" in (await client.read_resource(resource.uri)).contents[0].text  # type: ignore[union-attr]
        history = await client.read_resource("knapper://functions/count_vowels/history")
        assert "wider" in history.contents[0].text  # type: ignore[union-attr]
        await workspace.functions.delete("count_vowels")
        await until(lambda: _is(seen, set()))
        gone = await client.call_tool("count_vowels", {"text": "a"})
        assert gone.is_error
        assert "`count_vowels` was deleted" in text_of(gone)


async def _following(
    client: Client, notices: list[object], stack: AsyncExitStack
) -> list[set[str]]:
    """Follow the list as a client of its era does; each list seen is appended."""
    seen: list[set[str]] = []

    async def follow() -> None:
        async with client.listen(tools_list_changed=True) as events:
            ready.set()
            async for _ in events:
                seen.append(await names(client))  # noqa: PERF401 - read by others in the meantime

    async def look() -> None:
        ready.set()
        while True:
            await until(lambda: _more(notices))
            notices.clear()
            seen.append(await names(client))

    ready = asyncio.Event()
    task = asyncio.create_task(follow() if client.protocol_version >= "2026-07-28" else look())

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(end)
    await ready.wait()
    return seen


async def _more(notices: Sequence[object]) -> bool:
    return len(notices) > 0


async def _is(seen: list[set[str]], last: set[str]) -> bool:
    return seen[-1:] == [last]


async def test_a_call_without_its_grant_says_what_to_do_and_its_question_waits(
    workspace: Workspace,
) -> None:
    (workspace.root / "notes.txt").write_text("hello\nworld\n")
    await saved(workspace, "files", READS)
    asked = {"function_name": "first_line", "arguments": {"path": "notes.txt"}}
    async with piped(workspace) as client:
        assert await names(client) == set(), "it is a draft, and not shown"
        refused = await client.call_tool("call_function", asked)
        assert refused.is_error
        assert "knapper functions grant first_line" in text_of(refused)
        assert "waits in the approvals" in text_of(refused)
        for _ in range(workspace.settings.standing.quarantine_failures):
            assert "waits in the approvals" in text_of(
                await client.call_tool("call_function", asked)
            )
        assert await _kinds(workspace, "first_line") == {"refused"}
        await until(lambda: _waiting(workspace, 1))
        (pending,) = await workspace.questions()
        assert pending.question.function == "first_line"
        await workspace.answer(pending.id, Decision("yes"))
        await until(lambda: _may_read(workspace))
        assert text_of(await client.call_tool("call_function", asked)) == "hello"


async def test_a_question_that_waits_is_replaced_when_what_it_covers_changes(
    served: Served,
) -> None:
    workspace, approver = served.workspace, await served.as_("approver", "approve")
    (workspace.root / "notes.txt").write_text("hello\nworld\n")
    await saved(workspace, "files", READS)
    asked = {"function_name": "first_line", "arguments": {"path": "notes.txt"}}
    async with over_http(served, await served.token("peer", "read", "chat")) as client:
        assert (await client.call_tool("call_function", asked)).is_error
        await until(lambda: _waiting(workspace, 1))
        (before,) = await workspace.questions()
        await saved(workspace, "files", READS.replace("readline()", "read()"))
        await until(lambda: _is_replaced(workspace, before.id))
        (now,) = await workspace.questions()
        refused = await approver.post(f"/api/v1/approvals/{before.id}", json={"answer": "yes"})
        said = refused.json()
        assert (refused.status_code, said["error"]["code"]) == (409, "question-changed")
        assert said["question"]["id"] == now.id
        assert now.question.version != before.question.version
        assert not await _may_read(workspace)
        await workspace.answer(now.id, Decision("yes"))
        await until(lambda: _may_read(workspace))


async def _is_replaced(workspace: Workspace, question: str) -> bool:
    """Check whether another question took the place of this one."""
    return [row.id == question for row in await workspace.questions()] == [False]


async def _kinds(workspace: Workspace, name: str) -> set[str]:
    """Return the outcomes of calls that did not return."""
    return {kind.outcome for kind in (await workspace.functions.introspect(name)).statistics.kinds}


async def _may_read(workspace: Workspace) -> bool:
    return bool((await workspace.functions.introspect("first_line")).grants.read)


async def _waiting(workspace: Workspace, count: int) -> bool:
    return len(await workspace.questions()) == count


async def test_a_canceled_call_ends_and_progress_arrives_on_the_way(workspace: Workspace) -> None:
    await saved(workspace, "slow", SLOW)
    heard: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with piped(workspace, "legacy") as client:
        call: dict[str, Any] = {
            "function_name": "wait_long",
            "arguments": {"steps": 3},
        }  # Any: JSON
        assert (
            text_of(await client.call_tool("call_function", call, progress_callback=report)) == "3"
        )
        assert heard == sorted(heard) != []
        heard.clear()
        call["arguments"] = {"steps": 100_000}
        endless = asyncio.create_task(
            client.call_tool("call_function", call, progress_callback=report)
        )
        await until(lambda: _more(heard))
        endless.cancel()
        await asyncio.gather(endless, return_exceptions=True)
        call["arguments"] = {"steps": 1}
        assert text_of(await client.call_tool("call_function", call)) == "1"
        await until(lambda: _was_interrupted(workspace))


async def _was_interrupted(workspace: Workspace) -> bool:
    return await _kinds(workspace, "wait_long") == {"interrupted"}


async def test_each_token_reaches_over_mcp_what_its_scopes_allow(served: Served) -> None:
    await served.workspace.functions.create("count_vowels", VOWELS, "text")
    nothing = await served.token("approver", "approve")
    sees = await served.token("reader", "read")
    async with httpx2.AsyncClient() as stranger:
        answer = await stranger.post(f"{served.url}/mcp", json={})
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    async with over_http(served, nothing) as client:
        with pytest.raises(MCPError, match="scope `read` or `chat`"):
            await client.list_tools()
        with pytest.raises(MCPError, match="scope `read`"):
            await client.read_resource("knapper://functions/count_vowels/source")
        for tool in ("count_vowels", "find_functions", "create_function"):
            assert (await client.call_tool(tool, {})).is_error
    async with over_http(served, sees, "legacy") as client:
        assert await names(client) == {"count_vowels"}
        refused = await client.call_tool("count_vowels", {"text": "a"})
        assert "needs a token with the scope `chat`" in text_of(refused)
    assert (await served.workspace.functions.list("count_vowels")).functions[0].calls == 0


async def test_nobody_uses_the_session_of_another_token(served: Served) -> None:
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "peer", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    accepts = {"Accept": "application/json, text/event-stream"}
    owner, other = await served.as_("owner", "read"), await served.as_("other", "read")
    opened = await owner.post("/mcp", json=message, headers=accepts)
    session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], **accepts}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert (await other.post("/mcp", json=listing, headers=session)).status_code == 404
    assert (await owner.post("/mcp", json=listing, headers=session)).status_code == 200


@pytest.mark.parametrize("grows", [False, True])
async def test_only_where_it_is_allowed_clients_make_functions_through_the_gate(
    at_desk: OpenDesk, grows: bool
) -> None:
    workspace = (await at_desk([], mcp__grow=grows)).workspace  # its model reads the description
    async with piped(workspace) as client:
        made = {
            "function_name": "count_vowels",
            "function_code_with_docstring": VOWELS,
            "module_name": "text",
        }
        result = await client.call_tool("create_function", made)
        assert (result.is_error, "count_vowels" in workspace.functions.names()) == (
            not grows,
            grows,
        )
        assert ("create_function" in await names(client)) is grows
        if grows:
            bad = await client.call_tool(
                "create_function",
                {**made, "function_name": "x", "function_code_with_docstring": "def x(): pass"},
            )
            assert bad.is_error
            edit = {
                "function_name": "count_vowels",
                "changes": [{"old_text": "a, e, i", "new_text": "a, e and i"}],
            }
            assert not (await client.call_tool("edit_function", edit)).is_error
            tested = text_of(
                await client.call_tool("test_function", {"function_name": "count_vowels"})
            )
            assert tested.startswith("2 of 2 examples hold.")


async def test_whatever_comes_through_the_pipe_the_next_message_is_answered(
    workspace: Workspace,
) -> None:
    (reader, writer), (their_reader, their_writer) = await pipe_pair()
    serving = asyncio.create_task(
        serve_streams(workspace, their_reader, their_writer, asyncio.Event())
    )
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }

    async def ask(**message: Any) -> dict[str, Any]:  # Any: JSON
        writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        async with asyncio.timeout(60):
            while (answer := json.loads(await reader.readline())).get("id") != message["id"]:
                pass
        return dict(answer)

    writer.write(
        b"\xff\xfe garbage\n{}\n[]\n" + b"[" * 100_000 + b"\n" + b'{"jsonrpc": "2.0", "id": null}\n'
    )
    wrong: list[dict[str, Any]] = [
        {},
        {"name": 5},
        {"name": "x" * 100_000},
        {"name": "x", "arguments": [1]},
    ]
    for number, params in enumerate(wrong):
        answer = await ask(id=number, method="tools/call", params={**params, "_meta": meta})
        assert "error" in answer or answer["result"]["isError"]
    answer = await ask(id=9, method="tools/list", params={"_meta": meta})
    assert len(answer["result"]["tools"]) == 3
    writer.write(b"x" * (MOST_LINE + 10) + b"\n")
    async with asyncio.timeout(60):
        await serving
    for end in (writer, their_writer):
        end.close()
        await asyncio.gather(end.wait_closed(), return_exceptions=True)


async def test_a_client_that_loads_slowly_has_loaded_before_it_hears_again(
    workspace: Workspace,
) -> None:
    notices: list[object] = []

    async def hear(message: object) -> None:
        if isinstance(message, wire.ToolListChangedNotification):
            notices.append(message)

    await workspace.functions.create("count_vowels", VOWELS, "text")
    async with piped(workspace, "legacy", hear) as client:
        assert await names(client) == {"count_vowels"}
        assert (await workspace.functions.replace("count_vowels", WIDER, reason="wider")).admitted
        await until(lambda: _more(notices))
        notices.clear()
        await asyncio.sleep(0.5)
        assert await names(client) == set()
        await asyncio.sleep(0.1)
        assert notices == [], "some clients drop what they are loading when they hear again"
        await until(lambda: _more(notices))
        assert await names(client) == {"count_vowels"}


async def test_a_call_ends_when_its_client_closes_the_connection(served: Served) -> None:
    await saved(served.workspace, "slow", SLOW)
    call = {
        "name": "call_function",
        "arguments": {"function_name": "wait_long", "arguments": {"steps": 100_000}},
    }
    era = "io.modelcontextprotocol/"
    about = {
        f"{era}protocolVersion": "2026-07-28",
        f"{era}clientCapabilities": {},
        "progressToken": 1,
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**call, "_meta": about}}
    headers = {
        "Authorization": f"Bearer {await served.token('leaver', 'chat')}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "call_function",
    }
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        http.stream("POST", f"{served.url}/mcp", json=asked) as answer,
    ):
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if "notifications/progress" in line:
                break
    await until(lambda: _was_interrupted(served.workspace))
