"""The API for inspection and control: steps, growth, cost, versions, sources, agents at work."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox import Sandbox
from tests.kit import Ask, Fail, Repeat, Say, ScriptedModel, Wanted

from .conftest import Serve, Served, server

DOUBLE = '''
def double(n: int) -> int:
    """Return twice a number.

    Args:
        n: The number.

    Examples:
        >>> double(2)
        4
        >>> double(5)
        10
    """
    return n * 2
'''
WRONG = DOUBLE.replace("n * 2", "n + 2")


async def get(server: Served, path: str, **query: Any) -> Any:  # Any: JSON
    answer = await server.client.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def create(source: str, name: str = "double") -> Ask:
    """Return a reply that creates a function."""
    return Ask(
        Wanted("create_function", {"function_name": name, "function_code_with_docstring": source})
    )


async def test_how_a_function_came_to_be_can_be_followed_from_the_wish_to_its_use(
    served: Serve,
) -> None:
    server = await served(
        [create(WRONG), create(DOUBLE), Ask(Wanted("double", {"n": 21})), Say("42")]
    )
    await server.said("Double 21.")

    (grown,) = (await get(server, "growth"))["functions"]
    stages = [stage["stage"] for stage in grown["stages"]]
    assert stages == ["wanted", "written", "rejected", "fixed", "admitted", "used"]
    assert grown["stages"][0]["text"] == "Double 21."
    assert "returned `7`" in grown["stages"][2]["text"]
    assert (grown["function"], grown["agent"], grown["used"]) == ("double", "main", 1)
    assert (await get(server, "functions/verdicts"))["verdicts"]["double"]["admitted"]

    listed = (await get(server, "agents/main/steps"))["steps"]
    assert [step["calls"] for step in listed] == [
        ["create_function"],
        ["create_function"],
        ["double"],
        [],
    ]
    seen = await get(server, f"agents/main/steps/{listed[2]['seq']}")
    by_name = {part["part"]: part for part in seen["parts"]}
    assert by_name["instructions"]["text"]
    assert "call_function" in by_name["functions"]["text"].split("\n")
    assert all(part["tokens"] > 0 for part in seen["parts"])
    assert seen["tokens"] == sum(part["tokens"] for part in seen["parts"])
    kinds = [message["kind"] for message in by_name["conversation"]["messages"]]
    assert kinds == ["user", "assistant", "answer", "assistant", "answer"]
    assert "def double" in by_name["conversation"]["messages"][3]["text"]

    cost = await get(server, "agents/main/cost")
    (turn,) = cost["turns"]
    assert (turn["message"], turn["steps"]) == ("Double 21.", 5)  # one is the reader's
    assert (
        turn["prompt"] + turn["completion"]
        == cost["total"]["prompt"] + cost["total"]["completion"]
        > 0
    )


async def test_cost_is_that_of_all_turns_also_of_those_before_a_restart_and_those_that_were_removed(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    (tmp_path / "prices.toml").write_text(
        "[models]\nscripted = { input = 1000, cached = 10, output = 2000 }\n"
    )
    model = scripted(
        [Say("Hi.", usage=(1000, 500)), Fail(400, "no"), Say("Hi.", usage=(2000, 500))]
    )
    async with server(tmp_path, model, one_sandbox) as first:
        for text in ("one", "fails"):
            await first.said(text)
        assert (await first.client.post("/api/v1/agents/main/pop")).status_code == 200
        assert (await first.client.post("/api/v1/agents/main/pop")).status_code == 200
        before = await get(first, "agents/main/cost")
    async with server(tmp_path, model, one_sandbox) as again:
        assert await get(again, "agents/main/cost") == before
        await again.said("two")
        cost = await get(again, "agents/main/cost")
    assert [(turn["message"], turn["steps"]) for turn in cost["turns"]] == [
        ("one", 1),
        ("fails", 0),
        ("two", 1),
    ]
    assert (cost["total"]["prompt"], cost["total"]["completion"], cost["total"]["cost"]) == (
        3000,
        1000,
        5.0,
    )
    assert (cost["total"]["is_estimated"], cost["unpriced"]) == (False, [])


async def test_a_document_comes_in_parts_and_is_found_afterwards(served: Serve) -> None:
    server = await served([])
    text = "The lighthouse of Brindle was built in 1871. " * 40
    half = len(text) // 2

    async def part(data: str, **more: Any) -> Any:  # Any: JSON
        body = {"name": "../notes.txt", "data": base64.b64encode(data.encode()).decode(), **more}
        return await server.client.post("/api/v1/agents/main/sources", json=body)

    assert (await part(text[:half], more=True)).json()["received"] == half
    assert (await part(text[half:], offset=3)).json()["error"]["problems"] == [{"offset": half}]
    done = (await part(text[half:], offset=half)).json()
    assert done["sources"][0]["outcome"] == "added"
    (row,) = (await get(server, "agents/main/sources"))["sources"]
    assert (row["name"], row["complete"]) == ("../notes.txt", True)
    found = await get(server, "agents/main/search", query="lighthouse", where="archival")
    assert "Brindle" in str(found)
    folder = server.workspace.root / ".knapper" / "uploads"
    assert list(folder.iterdir()) == []
    gone = await server.client.delete(
        "/api/v1/agents/main/sources", params={"source": "../notes.txt"}
    )
    assert gone.status_code == 200
    assert (await get(server, "agents/main/sources"))["sources"] == []
    broken = await server.client.post(
        "/api/v1/agents/main/sources", json={"name": "x", "data": "§"}
    )
    assert broken.json()["error"]["message"] == "The data are not base64."


async def test_what_steers_needs_its_scope_and_an_agent_that_is_not_the_tokens_is_not_there(
    served: Serve,
) -> None:
    server = await served([Say("Here I am.")])
    assert (
        await server.client.post("/api/v1/agents/main/pause", json={"why": "lunch"})
    ).status_code == 200
    (state,) = (await get(server, "tree"))["agents"]
    assert (state["state"], state["why"]) == ("paused", "lunch")
    await server.client.post("/api/v1/agents/main/resume")
    assert (await server.said("Are you there?"))[-1][1]["reply"] == "Here I am."  # type: ignore[index]
    assert (await server.client.post("/api/v1/agents/main/stop")).status_code == 400
    for name in ("main", "bob"):
        await server.client.post("/api/v1/agents", json={"name": name})
        await server.begin_as_before("trip", name)
    guest = await server.as_("guest", "read", "chat", agents=("main",))
    for path in ("agents", "tree"):
        listed = (await guest.get(f"/api/v1/{path}")).json()["agents"]
        assert sorted(row["name"] for row in listed) == ["main", "main--trip"]
    assert (await guest.get("/api/v1/status")).json()["agents"] == 2
    assert (await guest.get("/api/v1/agents/bob--trip/messages")).status_code == 404


FOR_PROMPTS = {
    "/memory": "Here it is: the room Memory.",
    "/edit double": "Here it is: the function in the room Functions.",
    "/typo": "There is no command /typo.",
    "=double(4)": "Here it is: the function's form in the room Functions.",
    "?double": "Here it is: the function in the room Functions.",
    "Sum up @notes.txt, please.": "Here it is: the sources in the room Memory, or paste its text.",
}
MESSAGES = (
    "/etc is what?",
    "/ and //",
    "= is a sign",
    "! and ?",
    "Ask @ann, or @nobody.txt.",
    " !ls -l",
)


async def test_what_only_a_prompt_takes_is_not_sent_from_the_page(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await served([Repeat(Say("Well."))])
    (server.workspace.root / "notes.txt").write_text("hello\n")
    monkeypatch.chdir(server.workspace.root)
    browser, path = await server.logged_in(), "/api/v1/agents/main/messages"
    for typed, told in FOR_PROMPTS.items():
        answer = await browser.post(path, json={"text": typed}, headers={"Origin": server.url})
        assert answer.status_code == 400, typed
        error = answer.json()["error"]
        assert told in f"{error['message']} {error['fix']}"
        assert "put a space before it" in error["fix"]
    for text in MESSAGES:
        answer = await browser.post(path, json={"text": text}, headers={"Origin": server.url})
        assert answer.status_code == 202, text
    await server.said("/memory")  # of a program


async def test_a_source_is_saved_over_the_one_that_was_seen_and_no_other(served: Serve) -> None:
    server = await served([])
    path = "/api/v1/functions/double"
    assert (await server.client.put(path, json={"source": DOUBLE})).is_success
    seen = (await get(server, "functions/double"))["source"]
    plus = {"source": DOUBLE.replace("n * 2", "n + n"), "over": seen}
    assert (await server.client.put(path, json=plus)).is_success
    late = await server.client.put(path, json={**plus, "source": DOUBLE})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "changed")
    assert "n + n" in late.json()["error"]["problems"][0]["source"]
    await server.save("double.py", "")
    gone = await server.client.put("/api/v1/functions/none", json={"source": DOUBLE, "over": seen})
    assert (gone.status_code, gone.json()["error"]["problems"][0]["source"]) == (409, "")
    versions = [
        (await get(server, f"functions/double/versions/{number}"))["source"] for number in (1, 2)
    ]
    assert ["n * 2" in versions[0], "n + n" in versions[1]] == [True, True]
    none = await server.client.get("/api/v1/functions/double/versions/9")
    assert none.status_code == 400


async def test_rejected_candidates_are_listed_with_what_they_would_replace_and_dropped(
    served: Serve,
) -> None:
    server = await served([])
    path = "/api/v1/functions/double"
    assert (await server.client.put(path, json={"source": DOUBLE})).is_success
    assert (await server.client.put(path, json={"source": WRONG})).status_code == 422
    (row,) = (await get(server, "candidates"))["candidates"]
    assert (row["name"], row["verdict"]["admitted"]) == ("double", False)
    assert ["n + 2" in row["code"], "n * 2" in row["source"]] == [True, True]
    assert (await get(server, "status"))["waiting"] == 1
    assert (await server.client.delete("/api/v1/candidates/double")).is_success
    assert (await get(server, "candidates"))["candidates"] == []
    assert (await server.client.delete("/api/v1/candidates/double")).status_code == 400


async def test_what_is_made_in_a_conversation_is_growth_and_a_turn_has_its_cost_and_its_seconds(
    served: Serve,
) -> None:
    server = await served([create(DOUBLE), Say("Made.")])
    begun = await server.client.post("/api/v1/agents/main/conversations", json={})
    talk = begun.json()["id"]
    await server.said("Double.", conversation=talk)
    (grown,) = (await get(server, "growth"))["functions"]
    assert (grown["agent"], grown["conversation"]) == ("main", talk)
    (turn,) = (await get(server, "agents/main/cost"))["turns"]
    assert turn["turn"] == grown["stages"][0]["turn"]
    assert turn["seconds"] > 0
    status = await get(server, "agents/main/status", conversation=talk)
    assert status["model"] == "scripted"
    assert status["context_tokens"] > 0
    wrong = await server.client.post("/api/v1/agents/main/model", json={"name": "none such"})
    assert wrong.status_code >= 400
    made = await get(server, "functions/double/versions/1")
    assert (made["agent"], made["conversation"]) == ("main", talk)
    guest = await server.as_("reader", "read")
    told = (await guest.get("/api/v1/functions/double/versions/1")).json()
    assert "conversation" not in told
