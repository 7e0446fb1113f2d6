"""A stop at a line over HTTP: set, hit, looked into, changed, stepped on, and taken by one of several windows."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.kit import Ask, Say, Wanted
from tests.kit.waiting import until

from .conftest import Serve, Served

TOTAL = '''
def total(numbers: list[int]) -> int:
    """Return the sum of numbers.

    Args:
        numbers: The numbers.

    Examples:
        >>> total([1, 2])
        3
        >>> total([5])
        5
    """
    result = 0
    for number in numbers:
        result += number
    return result
'''


async def with_total(served: Serve, script: list[Any] | None = None) -> tuple[Served, int]:
    """Start a server with the function, and return the line of its loop."""
    server = await served(script or [])
    answer = await server.client.put("/api/v1/functions/total", json={"source": TOTAL})
    assert answer.is_success, answer.text
    facts = (await server.client.get("/api/v1/functions/total")).json()
    lines = facts["source"].strip("\n").splitlines()
    return server, facts["line"] + lines.index("    for number in numbers:")


async def armed(server: Served, at: str, name: str = "total") -> httpx2.Response:
    return await server.client.post(f"/api/v1/functions/{name}/breakpoints", json={"at": at})


async def stops(server: Served) -> dict[str, Any]:
    answer = await server.client.get("/api/v1/stops")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def standing(server: Served) -> dict[str, Any]:
    """Wait until a call stands at a stop, and return it."""
    seen = await until(lambda: stops(server), lambda told: told["stops"])
    return dict(seen["stops"][0])


async def typed(server: Served, stop: dict[str, Any], text: str) -> dict[str, Any]:
    answer = await server.client.post(f"/api/v1/stops/{stop['number']}", json={"typed": text})
    assert answer.status_code == 200, answer.text
    rows = answer.json()["stops"]
    return dict(rows[0]) if rows else {}


def called(server: Served, numbers: list[int]) -> "asyncio.Task[httpx2.Response]":
    call = server.client.post(
        "/api/v1/functions/total/call", json={"arguments": {"numbers": numbers}}, timeout=60
    )
    return asyncio.create_task(call)


async def test_a_call_stops_shows_its_variables_is_changed_and_goes_on(served: Serve) -> None:
    server, line = await with_total(served)
    placed = (await armed(server, f"{line + 1} if number > 1")).json()
    assert (placed["function"], placed["line"], placed["by"]) == ("total", line + 1, "human")
    call = called(server, [1, 2, 4])
    stop = await standing(server)
    assert (stop["call"], stop["why"]) == ("total", f"breakpoint {placed['number']}")
    assert dict(stop["locals"]) == {"numbers": "[1, 2, 4]", "result": "1", "number": "2"}
    assert [line + 1, "        result += number"] in stop["lines"]
    assert (await server.client.get("/api/v1/status")).json()["stopped"] == "total"

    stop = await typed(server, stop, "result * 100")
    assert stop["message"] == "100"
    stop = await typed(server, stop, "result = 50")
    stop = await typed(server, stop, "next")
    assert (stop["why"], dict(stop["locals"])["result"]) == ("step", "52")
    await typed(server, stop, "continue")
    stop = await standing(server)
    assert dict(stop["locals"])["number"] == "4"
    await server.client.delete(f"/api/v1/breakpoints/{placed['number']}")
    await typed(server, stop, "continue")
    answer = (await call).json()
    assert (answer["outcome"], answer["value"]) == ("returned", 56)
    assert await stops(server) == {"stops": [], "breakpoints": []}
    assert server.workspace.debugging.slot.debugger is None


async def test_what_was_typed_for_an_earlier_stop_does_nothing(served: Serve) -> None:
    server, line = await with_total(served)
    await armed(server, f"{line} once")
    call = called(server, [1])
    first = await standing(server)
    second = await typed(server, first, "next")
    late = await server.client.post(f"/api/v1/stops/{first['number']}", json={"typed": "quit"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "moved")
    assert (await standing(server))["number"] == second["number"]
    await typed(server, second, "quit")
    assert (await call).json()["outcome"] != "returned"
    assert (await stops(server))["stops"] == []


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("900", "does not stop at line 900"),
        ("wild", "no line"),
        ("{line} if )", "no expression"),
        ("{line} with", "nothing that a breakpoint knows"),
    ],
)
async def test_a_breakpoint_that_cannot_be_is_refused_with_what_can(
    served: Serve, at: str, says: str
) -> None:
    server, line = await with_total(served)
    refused = await armed(server, at.replace("{line}", str(line)))
    assert refused.status_code == 400, refused.text
    assert says in refused.json()["error"]["message"]
    assert (await armed(server, "", "nobody")).status_code == 404
    assert (await server.client.delete("/api/v1/breakpoints/7")).status_code == 400
    assert (await stops(server))["breakpoints"] == []


async def test_a_call_of_an_agent_stops_too_and_what_an_agent_set_only_records(
    served: Serve,
) -> None:
    call = Wanted("total", {"numbers": [3]})
    spy = Wanted("debugger", {"function_name": "total"})
    server, line = await with_total(served, [Ask(spy), Ask(call), Say("3."), Ask(call), Say("3.")])
    await server.said("Add.")  # nobody is asked where nobody set a breakpoint
    await armed(server, str(line + 2))
    turn = asyncio.create_task(server.said("Add again."))
    stop = await standing(server)
    assert stop["frames"][-1]["line"] == line + 2
    await typed(server, stop, "continue")
    await turn


async def test_a_token_of_one_agent_and_one_that_only_reads_see_no_stop(served: Serve) -> None:
    server, line = await with_total(served)
    await armed(server, str(line))
    call = called(server, [1])
    stop = await standing(server)
    for client in (
        await server.as_("one", "read", "edit", "chat", agents=("main",)),
        await server.as_("reader", "read", "chat", "approve", "admin"),
    ):
        number = stop["number"]
        for method, path, body in (
            ("GET", "stops", None),
            ("POST", f"stops/{number}", {"typed": "quit"}),
            ("POST", "functions/total/breakpoints", {"at": ""}),
            ("DELETE", "breakpoints/1", None),
        ):
            answer = await client.request(method, f"/api/v1/{path}", json=body)
            assert answer.status_code == 403, (path, answer.text)
        assert (await client.get("/api/v1/status")).json()["stopped"] == ""
    await typed(server, stop, "continue")
    assert (await call).json()["value"] == 1
