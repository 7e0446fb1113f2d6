"""Functions, memory, agents and questions about grants over HTTP."""

import asyncio
import json
from typing import Any, Final

import pytest

from agent_core import Workspace
from agent_core.storage import prepare_state_dir
from knapper_ext.server.app import OPERATIONS
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import SHIPPING, VOWELS
from tests.kit.waiting import until

from .conftest import Serve, Served, end_of, ends

FUNCTIONS = "/api/v1/functions"
MEMORY = "/api/v1/agents/main/memory"
READS = '''
def first_line(path: str) -> str:
    """Return the first line of a file.

    Args:
        path: The file to read.
    """
    with open(path, encoding="utf-8") as file:
        return file.readline()
'''


async def test_what_the_gate_rejects_and_what_does_not_fit_is_told(served: Serve) -> None:
    server = await served([])
    client = server.client
    broken = await client.put(f"{FUNCTIONS}/f", json={"source": "def f(x): return x +"})
    assert broken.status_code == 422
    assert broken.json()["error"]["problems"]
    assert broken.json()["verdict"]["admitted"] is False
    verdict = (await client.post(f"{FUNCTIONS}/check", json={"source": VOWELS})).json()
    assert (verdict["name"], verdict["admitted"]) == ("count_vowels", True)
    assert (await client.post(f"{FUNCTIONS}/check", json={"source": "x = 1"})).status_code == 400
    for name in ("f", "count_vowels"):  # a check admits nothing
        assert (await client.get(f"{FUNCTIONS}/{name}")).status_code == 404
    await server.save("shop.py", SHIPPING)
    answer = await client.post(
        f"{FUNCTIONS}/shipping/call", json={"arguments": {"weight": "heavy"}}
    )
    assert (answer.status_code, "weight" in answer.json()["error"]["message"]) == (400, True)
    block = (await client.get(f"{MEMORY}/human")).json()
    changed = await client.patch(
        f"{MEMORY}/human", json={"version": block["version"], "value": "Ann"}
    )
    late = await client.patch(f"{MEMORY}/human", json={"version": block["version"], "value": "Bo"})
    assert late.status_code == 409
    (problem,) = late.json()["error"]["problems"]
    assert (problem["value"], problem["version"]) == ("Ann", changed.json()["version"])
    for edit in (
        {"limit": 2},
        {"limit": 2, "value": "Bob"},
        {"limit": 9_000, "value": "x" * 9_001},
    ):
        refused = await client.patch(
            f"{MEMORY}/human", json={"version": problem["version"], **edit}
        )
        assert (refused.status_code, (await client.get(f"{MEMORY}/human")).json()["version"]) == (
            400,
            problem["version"],
        )
    unseen = await client.post(f"{MEMORY}/human/undo", json={"version": block["version"]})
    assert (unseen.status_code, unseen.json()["error"]["code"]) == (409, "version")
    assert (await client.post(f"{MEMORY}/human/undo")).status_code == 200
    assert (await client.get(f"{MEMORY}/human")).json()["value"] == ""


NOT_THERE = (
    *("GET functions/nothing", "GET functions/nothing/history", "GET functions/nothing/diff"),
    *("POST functions/nothing/rollback", "GET helpers/nothing", "DELETE helpers/nothing"),
    *("GET helpers/nothing/history", "POST helpers/nothing/rollback", "DELETE groups/nothing"),
    *("DELETE agents/main/sources?source=nothing", "GET agents/main/memory/nothing"),
)


async def test_what_is_not_there_is_told_in_the_one_shape_and_the_description_has_the_rest(
    unchanged: Served,
) -> None:
    for path in ("/api/v1/nothing", "/api/v2/agents", "/v1/embeddings"):
        answer = await unchanged.client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no-route")
    for method, path in (row.split() for row in NOT_THERE):
        answer = await unchanged.client.request(method, f"/api/v1/{path}")
        assert (path, answer.status_code, answer.json()["error"]["code"]) == (
            path,
            404,
            "not-found",
        )
    document = (await unchanged.client.get("/openapi.json")).json()
    for operation in OPERATIONS:
        described = document["paths"][operation.path][operation.method.lower()]
        assert described["summary"]
        assert {row["name"] for row in described["parameters"] if row["in"] == "path"} == set(
            operation.names
        )
    references = [
        text.split('"')[0] for text in json.dumps(document).split('"#/components/schemas/')[1:]
    ]
    assert set(references) <= document["components"]["schemas"].keys()


async def test_agents_and_groups_on_file_are_there_before_they_have_said_anything(
    served: Serve,
) -> None:
    server = await served([Say("I suggest: hello."), Say("AGREED")])
    root = server.workspace.root
    for folder, name, text in (
        ("agents", "editor", 'purpose = "Edits."\n'),
        ("agents", "critic", 'purpose = "Criticizes."\n'),
        (
            "groups",
            "review",
            'members = ["editor", "critic"]\nchoose = "round_robin"\nstop = { text = "AGREED" }\n',
        ),
    ):
        (root / folder).mkdir(exist_ok=True)
        (root / folder / f"{name}.toml").write_text(text)
    names = [row["name"] for row in (await server.client.get("/api/v1/agents")).json()["agents"]]
    assert sorted(names) == ["critic", "editor", "main", "review"]
    frames = await server.said("Write a greeting", "review")
    assert end_of(frames)["reply"] == "AGREED"
    for name, statuses in (("second", {201}), ("a/b", {400, 422})):
        assert (
            await server.client.post("/api/v1/agents", json={"name": name})
        ).status_code in statuses
    for name in ("user", "ed1tor", "helper--x"):
        document = json.dumps({"format": "knapper-agent", "version": 1, "agent": {"name": name}})
        for path, body in (("agents", {"name": name}), ("agents/import", {"document": document})):
            assert (await server.client.post(f"/api/v1/{path}", json=body)).json()["error"][
                "code"
            ] == "config", name


async def test_a_question_about_a_grant_is_answered_once(served: Serve) -> None:
    server = await served([Ask(Wanted("first_line", {"path": "notes.txt"})), Say("It says hello.")])
    (server.workspace.root / "notes.txt").write_text("hello\nworld\n")
    await server.save("files.py", READS)
    heard = asyncio.create_task(server.frames(ends(1)))
    await server.client.post(
        "/api/v1/agents/main/messages", json={"text": "What does notes.txt say first?"}
    )
    await server.frames(
        lambda frames: any(data is not None and data["type"] == "grant_asked" for _, data in frames)
    )
    (question,) = (await server.client.get("/api/v1/approvals")).json()["approvals"]
    assert question["function"] == "first_line"
    answers = [
        server.client.post(f"/api/v1/approvals/{question['id']}", json={"answer": answer})
        for answer in ("yes", "no")
    ]
    first, second = await asyncio.gather(*answers)
    assert sorted([first.status_code, second.status_code])[0] == 200
    assert sorted([first.status_code, second.status_code])[1] in {400, 404}
    assert end_of(await heard)["reply"] == "It says hello."


async def test_a_call_by_hand_asks_whoever_is_logged_in_to_the_page_and_refuses_a_token(
    served: Serve,
) -> None:
    server = await served([])
    (server.workspace.root / "notes.txt").write_text("hello\nworld\n")
    await server.save("files.py", READS)
    browser, arguments = await server.logged_in(), {"arguments": {"path": "notes.txt"}}
    browser.headers["Origin"] = server.url
    refused = (await server.client.post(f"{FUNCTIONS}/first_line/call", json=arguments)).json()
    assert "knapper functions grant" in str(refused)
    for answer, outcome in (("no", "raised"), ("once", "returned")):
        calling = asyncio.create_task(browser.post(f"{FUNCTIONS}/first_line/call", json=arguments))
        page = await until(
            lambda: browser.get("/api/v1/approvals"), lambda found: found.json()["approvals"]
        )
        asked = page.json()["approvals"]
        assert [(row["function"], row["agent"]) for row in asked] == [("first_line", "")]
        assert (
            await browser.post(f"/api/v1/approvals/{asked[0]['id']}", json={"answer": answer})
        ).status_code == 200
        assert (await calling).json()["outcome"] == outcome
    assert (await browser.get("/api/v1/approvals")).json() == {"approvals": [], "asks": []}


async def test_a_message_for_an_agent_that_another_program_runs_is_taken_and_waits(
    served: Serve,
) -> None:
    server = await served([Say("Hello.")])
    async with Workspace.open(server.workspace.root) as beside:
        async with await beside.agent("taken"):
            pass
        other = beside.store
        async with other.hold(prepare_state_dir(server.workspace.root), "taken"):
            path = "/api/v1/agents/taken/messages"
            answer = await server.client.post(path, json={"text": "hello"})
            assert answer.status_code == 202
            await asyncio.sleep(0.2)
            assert [row.kind for row in await other.waiting("taken")] == ["message"]
        await until(lambda: other.history("taken", kinds=("assistant",)), bool)


async def test_helpers_and_groups_are_files_that_are_made_shown_and_deleted(served: Serve) -> None:
    server = await served([])
    client = server.client
    wrong = await client.put("/api/v1/helpers/summarize", json={"text": "purpose = 1"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) in {
        (422, "rejected"),
        (400, "config"),
    }
    helper = 'purpose = "Say in one sentence what a text says."\nresult = "str"\ninputs = { text = "str" }\n'
    made = await client.put("/api/v1/helpers/summarize", json={"text": helper})
    assert made.status_code == 200, made.text
    assert (await client.get("/api/v1/helpers/summarize")).json()["text"] == helper
    assert [row["name"] for row in (await client.get("/api/v1/helpers")).json()["helpers"]] == [
        "summarize"
    ]
    assert len((await client.get("/api/v1/helpers/summarize/history")).json()["versions"]) == 1
    assert (await client.delete("/api/v1/helpers/summarize")).status_code == 200
    assert (await client.post("/api/v1/helpers/summarize/rollback", json={})).status_code == 200
    group = 'members = ["main", "critic"]\n'
    assert (await client.put("/api/v1/groups/review", json={"text": group})).json()[
        "problems"
    ] == []
    assert (await client.get("/api/v1/groups/review")).json()["members"] == ["main", "critic"]
    assert (await client.put("/api/v1/groups/..%2Freview", json={"text": group})).status_code in {
        400,
        404,
    }
    assert (await client.put("/api/v1/groups/bad", json={"text": "members = 3"})).status_code == 400
    assert [row["name"] for row in (await client.get("/api/v1/groups")).json()["groups"]] == [
        "review"
    ]
    assert (await client.delete("/api/v1/groups/review")).json() == {"deleted": "review"}
    assert (await client.get("/api/v1/groups/review")).status_code == 404


CREATED = {"id": "c1", "name": "create_function", "arguments": "{}"}


def _answered(detail: Any) -> list[dict[str, Any]]:
    """Return a call of a function that makes one, and its answer with this verdict."""
    answer = {"call_id": "c1", "name": "create_function", "text": "x", "outcome": "refused"}
    return [
        {"at": 1.0, "kind": "assistant", "payload": {"text": "", "calls": [CREATED]}},
        {"at": 1.0, "kind": "result", "payload": {**answer, "detail": detail}},
    ]


def _used(**payload: Any) -> list[dict[str, Any]]:
    return [{"at": 1.0, "kind": "usage", "payload": {"model": "m", **payload}}]


def _asked(**parameters: Any) -> list[dict[str, Any]]:
    return [
        {"at": 1.0, "kind": "request", "payload": {"model": "m", "parameters": parameters}},
        {"at": 1.0, "kind": "assistant", "payload": {"text": "hi", "calls": []}},
    ]


STRANGE: Final = {
    "problems that are numbers": _answered({"name": "zz", "problems": [1]}),
    "a problem without words": _answered({"name": "zz", "problems": [{"severity": "refuses"}]}),
    "a problem of odd words": _answered({"name": "zz", "problems": [{"message": [1]}]}),
    "problems that are one number": _answered({"name": "zz", "problems": 5}),
    "problems that are an object": _answered({"name": "zz", "problems": {"a": 1}}),
    "a verdict of odd parts": _answered({"name": 7, "admitted": 5, "standing": ["a"]}),
    "tokens that are words": _used(prompt_tokens="x", completion_tokens=[]),
    "tokens without end": _used(prompt_tokens=10**400, completion_tokens=1),
    "tokens that are half": _used(prompt_tokens=1.5, completion_tokens=None),
    "captions that are a number": _asked(seen_pictures=5, told_pictures=7),
    "captions that are an object": _asked(seen_pictures={"a": 1}, told_pictures="abc"),
}


@pytest.mark.parametrize("name", STRANGE)
async def test_an_agents_file_of_a_stranger_breaks_no_view(served: Serve, name: str) -> None:
    server = await served([Say("ok")])
    await server.said("hi")
    document = json.loads(await server.workspace.export_agent())
    entries = document["turns"][-1]["entries"]
    entries[1:1] = STRANGE[name]
    body = {"document": json.dumps(document), "name": "gift"}
    imported = await server.client.post("/api/v1/agents/import", json=body)
    assert imported.status_code == 201, imported.text
    gift = "/api/v1/agents/gift"
    steps = (await server.client.get(f"{gift}/steps")).json()["steps"]
    paths = [f"{gift}/steps/{step['seq']}" for step in steps]
    for path in ("/api/v1/growth", "/api/v1/tree", f"{gift}/messages", f"{gift}/cost", *paths):
        answer = await server.client.get(path)
        assert answer.status_code == 200, (path, answer.text)
    words = {"words": ["agents", "tree"], "agent": "main"}
    assert (await server.client.post("/api/v1/commands", json=words)).status_code == 200
