"""A token for one agent sees and changes nothing of another agent.

Every operation, command and endpoint of the catalog is tried, with values that it accepts, on a workspace in which the
other agent has a secret in every possible place.
"""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import click
import httpx2
import pytest
from starlette.routing import Route

from agent_core import Workspace
from agent_core.api.agent_host import opened_rooms
from agent_core.api.http_door import open_http_doors
from agent_core.api.identity import SCOPES, Sessions
from agent_core.api.operations import API, ApiOperation, Nothing, Part
from agent_core.api.workspace_operations import _OF_ALL_AGENTS
from agent_core.operations.catalog import NOUNS, verb_of
from agent_core.operations.manual_edits import HUMAN, add_block, done, set_up_block
from agent_core.operations.verb import Verb
from knapper_ext.server.app import OPERATIONS, LoginDoor, application
from sandbox import Sandbox
from tests.agents.groups import group_file
from tests.kit import Ask, Repeat, Say, Script, Wanted
from tests.kit import scripted as running
from tests.kit.drawing import sampled

from .conftest import Serve, Served, end_of, ends, server
from .test_the_api import READS
from .test_what_the_page_asks import DOUBLE, create

Json = dict[str, Any]
MINE, OTHER, TALK, GROUP, THIRD = "mine", "vexlomir", "vexlomir--private", "crew", "quillthrax"
NO_TALK: Final = "mine--apart"
"""An agent named like a conversation of `mine`, but not one."""
SECRET: Final = "zorblaxquiver"
DROP: Final = '''
def drop(text: str) -> str:
    """Return the part of a text after its first colon.

    Args:
        text: The text.

    Examples:
        >>> drop("a:1")
        '1'
        >>> drop("x:y")
        'y'
    """
    if ":" not in text:
        raise ValueError(f"there is no colon in {text}")
    return text.partition(":")[2]
'''
FUNCTIONS: Final = f'''
def shout(text: str) -> str:
    """Return a text twice, louder.

    Args:
        text: The text.

    Examples:
        >>> shout("a")
        'aa'
        >>> shout("b c")
        'b cb c'
    """
    return text + text


def pick(text: str) -> str:
    """Return the first digit of a text.

    Args:
        text: The text.

    Examples:
        >>> pick("a1")
        '1'
        >>> pick("2 b 3")
        '2'
    """
    for letter in text:
        if letter.isdigit():
            return letter
    raise ValueError(f"there is no digit in {{text}}")

{DROP}
{DROP.replace("drop", "snip")}
{DROP.replace("drop", "clip")}
{READS}
'''
CREW: Final = f'members = ["{MINE}", "{OTHER}"]\npurpose = "Keeps {SECRET}."\n'
HELPER: Final = 'purpose = "Say something twice."\ninputs = { text = "str" }\nresult = "str"\nfunctions = ["shout"]\n'
NOTHING_TO_RUN: Final = ("answer", "join", "pin", "unpin")
"""Commands that find no question and no draft here, or are for the owner of the workspace alone."""
TEXTS: Final[Mapping[str, str]] = {
    "text": f'members = ["{MINE}", "{OTHER}"]\n',
    "source": DOUBLE,
    "old": "twice",
    "new": "two times",
    "need": "Remember a text, and shout it.",
    "query": "what is kept, and what was said",
    "function": "shout",
    "function_name": "pick",
    "module": "grown",
    "data": base64.b64encode(b"Some words.").decode(),
    "document": json.dumps({"format": "knapper-agent", "version": 1, "agent": {"name": OTHER}}),
    "args": '{"text": "a"}',
    "arguments": '{"text": "a"}',
    "call": "shout('a')",
    "typed": "continue",
    "version": "1",
    "note": "It has a hole.",  # it is told to whoever calls the function
    "where": "both",
}
"""The value of a text field, by name; other fields name the other agent."""


@dataclass
class Neighbors:
    """Two agents at a server: the other's secrets, a client for one agent, and one for all."""

    server: Served
    mine: httpx2.AsyncClient
    places: Mapping[str, tuple[str, ...]]
    """Values for the path parameters of operations; those of the other agent come first."""
    planted: tuple[str, ...]
    """What no response may contain: a word that only the other agent knows, the names of agents and of a turn."""
    asked: set[str] = field(default_factory=set)
    """The paths that the token for one agent requested."""

    @property
    def all(self) -> httpx2.AsyncClient:
        return self.server.client

    async def state(self) -> Json:
        """Return all that the other agent has."""
        paths = [
            f"agents/{OTHER}{rest}"
            for rest in ("/export", "/messages?count=1000", "/memory", "/sources", "/steps")
        ]
        paths += [f"agents/{TALK}/export", f"groups/{GROUP}"]
        answers = [(await self.all.get(f"{API}/{path}")).text for path in paths]
        rows = (await self.all.get(f"{API}/tree")).json()["agents"]
        pending = (await self.all.get(f"{API}/approvals")).json()["approvals"]
        return {
            "answers": answers,
            "tree": [row for row in rows if row["name"] in (OTHER, TALK)],
            "pending": pending,
        }

    async def asks(
        self, method: str, path: str, query: Json | None = None, body: Json | None = None
    ) -> httpx2.Response:
        """Return the response to a request with the token for one agent; check that it reveals nothing of the other.

        A rate-limited request is repeated.
        """
        answer = await self._asks(method, path, query, body)
        while answer.status_code == 429 and answer.json()["error"]["message"].startswith(
            "Too many requests at once"
        ):
            await asyncio.sleep(0.1)
            answer = await self._asks(method, path, query, body)
        return answer

    async def _asks(
        self, method: str, path: str, query: Json | None, body: Json | None
    ) -> httpx2.Response:
        self.asked.add(path)
        async with self.mine.stream(method, path, params=query or {}, json=body) as answer:
            content = b""
            is_stream = path.endswith("/events")
            with suppress(*([TimeoutError] if is_stream else [])):
                async with asyncio.timeout(0.4 if is_stream else 30):
                    async for piece in answer.aiter_bytes():
                        content += piece
        said = f"{content.decode('utf-8', 'replace')}{answer.headers}"
        for planted in self.planted:
            if planted not in f"{path} {query} {body}":
                assert planted not in said, f"{method} {path} {query} {body}: {said}"
        return httpx2.Response(answer.status_code, headers=answer.headers, content=content)


@pytest.fixture(scope="module", params=["file", pytest.param("database", marks=pytest.mark.slow)])
async def neighbors(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, one_sandbox: Sandbox
) -> AsyncIterator[Neighbors]:
    """Two agents, with their state in a file or in a database; a database also records which process has an agent."""
    shared = (
        {"storage__url": request.getfixturevalue("lasting_database")}
        if request.param == "database"
        else {}
    )
    root = tmp_path_factory.mktemp("neighbors")
    files = {
        "functions/kept.py": FUNCTIONS,
        f"groups/{GROUP}.toml": CREW,
        "helpers/twice.toml": HELPER,
    }
    files |= {
        f"agents/{name}.toml": 'purpose = "Helps."\n' for name in (MINE, OTHER, THIRD, NO_TALK)
    }
    files[f"{SECRET}.txt"] = "There it is."  # what is not there is not asked for
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    script: Script = [
        create(DOUBLE),
        Ask(Wanted("shout", {"text": SECRET})),
        Ask(*(Wanted("pick", {"text": f"{SECRET} {letter}"}) for letter in "abc")),
        Ask(
            *(
                Wanted(name, {"text": f"{SECRET} {x}"})
                for name in ("drop", "snip", "clip")
                for x in "ab"
            )
        ),
        Say(f"I keep {SECRET}."),
        Ask(Wanted("ask_agent", {"agent": THIRD, "question": f"What is {SECRET}?"})),
        Ask(Wanted("first_line", {"path": f"{SECRET}.txt"})),
        Ask(Wanted("list_functions", {"pattern": "Remember a text, and shout it."})),
        Ask(Wanted("introspect_function", {"function_name": "pick"})),
        Ask(Wanted("pick", {"text": "a"})),
        Ask(Wanted("shout", {"text": "mine"})),
        Ask(Wanted("drop", {"text": "a"})),
        Repeat(Say("Fine.")),
    ]
    with running(script) as model:
        async with server(
            root, model, one_sandbox, standing__quarantine_failures=3, **shared
        ) as started:
            mine = await started.as_("mine", *SCOPES, agents=(MINE, GROUP))
            places = await _planted(started)
            yield Neighbors(
                started, mine, places, (SECRET, OTHER, THIRD, NO_TALK, *places.pop("turn"))
            )
            for question in (await started.client.get(f"{API}/approvals")).json()["approvals"]:
                await started.client.post(
                    f"{API}/approvals/{question['id']}", json={"answer": "no"}
                )


async def _planted(server: Served) -> dict[str, tuple[str, ...]]:
    """Let the other agent store its secret everywhere; return the path values that result."""
    await server.client.post(f"{API}/agents/{THIRD}/pause", json={})
    await server.said(f"Remember {SECRET}, and shout it.", agent=OTHER)
    assert await server.begin_as_before("private", OTHER) == TALK
    rooms = []
    for agent in (OTHER, MINE):
        path = f"{API}/agents/{agent}/conversations"
        begun = await server.client.post(path, json={"name": f"about {SECRET}"})
        rooms.append(str(begun.json()["id"]))
    await server.said(f"Ask the third about {SECRET}.", agent=TALK)
    block = f"{API}/agents/{OTHER}/memory/human"
    edit = {
        "version": (await server.client.get(block)).json()["version"],
        "value": f"The word is {SECRET}.",
    }
    assert (await server.client.patch(block, json=edit)).status_code == 200
    await _share(server.workspace)
    upload = {
        "name": "notes.txt",
        "data": base64.b64encode(f"What is kept is {SECRET}.".encode()).decode(),
    }
    assert (
        await server.client.post(f"{API}/agents/{OTHER}/sources", json=upload)
    ).status_code == 200
    (server.workspace.root / f"{SECRET}-folder").mkdir(exist_ok=True)
    await server.workspace.functions.granting.book.give_folder(
        OTHER, f"{SECRET}-folder/", "a human"
    )
    posted = await server.client.post(
        f"{API}/agents/{OTHER}/messages", json={"text": f"Read {SECRET}.txt"}
    )
    await server.frames(
        lambda frames: any(
            data is not None and data["type"] == "grant_asked" for _, data in frames
        ),
        agent=OTHER,
    )
    questions = (await server.client.get(f"{API}/approvals")).json()["approvals"]
    await server.said("Look around.", agent=MINE)
    await server.said(f"Keep {SECRET} for me.", agent=MINE, conversation=rooms[1])
    calls = (await server.client.get(f"{API}/calls")).json()["calls"]
    steps = (await server.client.get(f"{API}/agents/{OTHER}/steps")).json()["steps"]
    return {
        "agent": (OTHER, TALK, GROUP, MINE),
        "conversation": (*rooms, f"about {SECRET}", "main"),
        "label": ("human", "plan"),
        "event": (posted.json()["event"],),
        "seq": (str(steps[-1]["seq"]),),
        "number": ("1",),
        "call": tuple(str(call["call"]) for call in calls),
        "id": (questions[0]["id"],),
        "turn": (questions[0]["turn"],),
        "version": (TEXTS["version"],),
    }


async def _share(workspace: Workspace) -> None:
    """Let both agents have a block, whose value is no secret any more."""
    theirs, mine = (workspace.memory(name).blocks for name in (OTHER, MINE))
    await theirs.load()
    await mine.load()
    await add_block(theirs, "plan", value=f"Until noon: {SECRET}.")
    await set_up_block(theirs, "plan", value="Nothing is planned.")
    await done(theirs, theirs.share("plan", HUMAN, writers=[MINE, THIRD]))
    await done(mine, mine.attach("plan", HUMAN))


def _paths(operation: ApiOperation, places: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield the paths of an operation: to the other agent's, shared, and own things."""
    named: tuple[str, ...] = ("twice", "newer")
    if "/functions/" in operation.path or "/grants/" in operation.path:
        named = ("pick", "shout", "drop") if operation.method != "DELETE" else ("double",)
    elif "/groups/" in operation.path:
        named = (GROUP, MINE, OTHER)
    known = {**places, "name": named}
    for chosen in product(*(known[name] for name in operation.names)):
        path = operation.path
        for name, value in zip(operation.names, chosen, strict=True):
            path = path.replace(f"{{{name}}}", value)
        yield path


def _given(part: type[Part]) -> Iterator[Json]:
    """Yield values for a part of a request: the required ones, then all, naming the other agent in both."""
    schema = part.model_json_schema()
    fields, needed = schema.get("properties", {}), schema.get("required", [])
    whole = {name: _value(name, field) for name, field in fields.items()}
    least = {name: value for name, value in whole.items() if name in needed}
    yield least
    if whole != least:
        yield whole


def _value(name: str, schema: Json) -> Any:  # Any: JSON
    schema = next(
        (one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"), schema
    )
    match schema.get("type"):
        case "integer" | "number":
            return max(
                int(schema.get("minimum", 0)), 1 if name in ("count", "last", "limit") else 0
            )
        case "boolean":
            return False
        case "array":
            return [_value(name, schema.get("items", {}))]
        case "object":
            return {"text": "a"} if name == "arguments" else {}
        case _:
            return next(iter(schema.get("enum", [])), TEXTS.get(name, OTHER))


@pytest.mark.slow
async def test_what_others_do_changes_no_answer(neighbors: Neighbors) -> None:
    """Numbers cannot be searched for words: counts and sums could reveal others, too."""

    async def answers() -> dict[str, object]:
        found = {}
        for operation in OPERATIONS:
            if operation.method == "GET" and not operation.streams:
                for path, query in product(
                    _paths(operation, neighbors.places), _given(operation.query)
                ):
                    answer = await neighbors.asks("GET", path, query)
                    found[f"{path} {query}"] = json.loads(
                        answer.content, parse_float=lambda _: 0.0
                    )  # no clocks
        return found

    await answers()  # the first time, its own words are indexed
    before = await answers()
    for name in ("once", "twice"):
        path = f"{API}/agents/{OTHER}/conversations"
        id = (await neighbors.all.post(path, json={"name": name})).json()["id"]
        await neighbors.server.said(f"Say {SECRET}.", agent=OTHER, conversation=id)
    await neighbors.all.post(
        f"{API}/agents/{OTHER}/messages", json={"text": "Go on."}
    )  # waits: its turn is asking
    now = await answers()
    changed = [path for path in now if now[path] != before[path]]
    assert not changed, "\n".join(
        f"{path}: {json.dumps(before[path])} -> {json.dumps(now[path])}" for path in changed
    )


async def test_the_calls_of_its_own_agent_are_listed_shown_and_run_again(
    neighbors: Neighbors,
) -> None:
    everyone = (await neighbors.all.get(f"{API}/calls")).json()["calls"]
    mine = (await neighbors.asks("GET", f"{API}/calls")).json()["calls"]
    assert (len(everyone), [call["arguments"] for call in mine]) == (
        12,
        [{"text": "a"}, {"text": "mine"}],
    )
    shout = f"{API}/calls/{mine[1]['call']}"
    assert (await neighbors.asks("GET", shout)).json()["arguments"] == {"text": "mine"}
    assert (await neighbors.asks("POST", f"{shout}/replay", body={})).json()["same"]
    for words in (["list"], ["list", "drop", "--failed"], ["show", str(mine[1]["call"])]):
        answer = await neighbors.asks("POST", f"{API}/commands", body={"words": ["calls", *words]})
        assert answer.status_code == 200
        assert answer.json()["lines"]
    called = await neighbors.asks(
        "POST", f"{API}/functions/shout/call", body={"arguments": {"text": "b"}}
    )
    assert called.json()["value"] == "bb"
    assert (await neighbors.asks("GET", f"{API}/calls")).json()[
        "calls"
    ] == mine  # outside of turns: no agent's
    assert (await neighbors.asks("GET", f"{API}/status")).json()[
        "agent"
    ] == GROUP  # the first of its own


async def test_of_failures_of_others_the_kind_is_told_and_of_its_own_the_message(
    neighbors: Neighbors,
) -> None:
    """The other agent let `drop`, `snip` and `clip` fail twice; this agent's call is the third failure."""
    said = (await neighbors.asks("GET", f"{API}/agents/{MINE}/messages")).json()["messages"]
    told = " ".join(str(row.get("text")) for row in said)
    assert "ValueError (3 ×)" in told  # of `pick`, which only the other agent called
    assert "ValueError (2 ×)" in told
    assert "ValueError: there is no colon in a" in told
    third = await neighbors.asks(
        "POST", f"{API}/functions/snip/call", body={"arguments": {"text": "a"}}
    )
    assert third.json()["quarantined"]["name"] == "snip"
    words = ["functions", "call", "clip", "--args", TEXTS["args"]]
    assert (
        "kept failing and is quarantined"
        in (await neighbors.asks("POST", f"{API}/commands", body={"words": words})).text
    )


async def test_no_other_door_shows_anything_of_another(
    neighbors: Neighbors, tmp_path: Path, one_sandbox: Sandbox
) -> None:
    before = await neighbors.state()
    said = [{"role": "user", "content": "What do you keep?"}]
    await neighbors.asks("GET", "/v1/models")
    for model in (OTHER, TALK, f"{OTHER}@private", GROUP, MINE):
        await neighbors.asks(
            "POST", "/v1/chat/completions", body={"model": model, "messages": said}
        )
        await neighbors.asks(
            "POST", "/v1/responses", body={"model": model, "input": "What do you keep?"}
        )
    assert (await neighbors.asks("GET", "/metrics")).status_code == 403  # sums of all agents
    unseen = f"{API}/pictures/{'0' * 64}"  # who has the hash of one was told it by an entry
    for path in ("/openapi.json", f"/v1/models/{OTHER}", f"/v1/models/{MINE}", unseen):
        await neighbors.asks("GET", path)
    for name, arguments in (
        ("find_functions", {"need": TEXTS["need"], "count": 9}),
        ("describe_function", {"function_name": "pick"}),
        ("call_function", {"function_name": "pick", "arguments": {"text": "a"}}),
        ("call_function", {"function_name": "drop", "arguments": {"text": "a"}}),
        ("pick", {"text": "a"}),
    ):
        called = await _mcp(neighbors, "tools/call", {"name": name, "arguments": arguments})
        assert called.status_code == 200, called.text
    listed = (await _mcp(neighbors, "tools/list", {})).json()["result"]["tools"]
    assert {"call_function", "shout"} <= {tool["name"] for tool in listed}
    for tool in listed:
        arguments = {
            name: _value(name, schema) for name, schema in tool["inputSchema"]["properties"].items()
        }
        called = await _mcp(neighbors, "tools/call", {"name": tool["name"], "arguments": arguments})
        assert called.status_code == 200, called.text
    assert await neighbors.state() == before
    assert not await _unasked(neighbors, tmp_path, one_sandbox), "each door has to be asked here"


async def _unasked(neighbors: Neighbors, root: Path, sandbox: Sandbox) -> set[str]:
    """Return the server's routes that are no operations and were not requested; pages and login have no agent."""
    async with (
        Workspace.open(root, sandbox=sandbox) as workspace,
        opened_rooms(workspace, 1) as rooms,
    ):
        login = LoginDoor(Sessions(time.monotonic, 1))
        routes = application(rooms, login, open_http_doors(rooms)).routes
    apart = {operation.path for operation in OPERATIONS} | {"/"}
    doors = [
        route
        for route in routes
        if isinstance(route, Route) and not route.path.startswith(("/page/", "/login"))
    ]
    assert len(doors) > len(OPERATIONS)
    asked = neighbors.asked
    return {
        door.path
        for door in doors
        if door.path not in apart and not any(map(door.path_regex.match, asked))
    }


async def _mcp(neighbors: Neighbors, method: str, params: Json) -> httpx2.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    neighbors.mine.headers["Accept"] = "application/json, text/event-stream"
    neighbors.mine.headers["MCP-Protocol-Version"] = "2026-07-28"
    neighbors.mine.headers["Mcp-Method"] = method
    neighbors.mine.headers["Mcp-Name"] = params.get("name", "")
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return await neighbors.asks("POST", "/mcp", body=body)


def _commands() -> Iterator[tuple[str, str, Verb]]:
    """Yield all commands that a server runs; those that delete come last."""
    groups = [(noun, group) for noun, group in NOUNS.items() if isinstance(group, click.Group)]
    rows = [(noun, name) for noun, group in groups for name in group.commands]
    for noun, name in sorted(rows, key=lambda row: (row[1] in ("delete", "remove", "revoke"), row)):
        if (verb := verb_of(noun, name)) is not None and verb.scopes:
            yield noun, name, verb


def _words(command: click.Command, call: str, name: str) -> Iterator[list[str]]:
    """Yield a command's words: only the required ones, then all."""
    arguments, options = list[str](), list[str]()
    for param in command.params:
        given_names = {"name": name, "call": call}
        if command.name == "rename":
            given_names["new"] = "clipped"
        text = given_names.get(param.name or "", TEXTS.get(param.name or "", OTHER))
        if isinstance(param.type, click.IntRange):
            text = call if param.name == "call" else "1"
        if isinstance(param.type, click.Choice):
            text = str(param.type.choices[0])
        if isinstance(param, click.Argument):
            arguments.append(text)
        elif isinstance(param, click.Option) and param.is_flag:
            options.append(param.opts[0])
        elif isinstance(param, click.Option):
            given = f"{param.opts[0]}={TEXTS['call'] if param.opts[0] == '--call' else text}"
            (arguments if param.required else options).append(given)
    yield arguments
    for option in options:
        yield [*arguments, option]


@pytest.mark.sampled
async def test_no_command_shows_or_changes_anything_of_another_agent(neighbors: Neighbors) -> None:
    before, unrun = await neighbors.state(), set[str]()
    calls, talks = neighbors.places["call"], ("", OTHER, TALK)
    for noun, name, command in _commands():
        codes = set[str]()
        names = ("double",) if name in ("delete", "remove", "revoke") else ("drop", "pick")
        names = ("clip",) if name == "rename" else names
        names = names if name in ("show", "call") else names[:1]
        for call, function, talked_to in product(
            calls[:1] if noun != "calls" else calls, names, sampled(talks, 2)
        ):
            chosen = _words(command, call, function)
            if name == "answer":  # the other agent's question, which is not there
                chosen = iter([[neighbors.places["id"][0], "no"]])
            for words in chosen:
                texts = {"-": DOUBLE, OTHER: DOUBLE}
                body = {"words": [noun, name, *words], "texts": texts, "agent": talked_to}
                answer = await neighbors.asks("POST", f"{API}/commands", body=body)
                codes.add("" if answer.is_success else answer.json()["error"]["code"])
                if talked_to and noun in _OF_ALL_AGENTS:
                    assert answer.status_code == 404, answer.text
                if noun not in _OF_ALL_AGENTS:
                    assert "needs a token for all agents" in answer.text
        is_run = name in NOTHING_TO_RUN or not codes <= {"usage", "not-found"}
        if "internal" in codes or (noun in _OF_ALL_AGENTS and not is_run):
            unrun.add(f"{noun} {name}: {codes} {answer.text}")
        if "read" not in command.scopes:
            assert await neighbors.state() == before, (noun, name)
    assert not unrun, "what these take has no value here that they accept"


async def test_no_operation_shows_or_changes_anything_of_another_agent(
    neighbors: Neighbors,
) -> None:
    before = await neighbors.state()
    assert SECRET in json.dumps(before)
    misasked = set[str]()
    order = ("GET", "POST", "PUT", "PATCH", "DELETE")
    for operation in sorted(OPERATIONS, key=lambda row: (order.index(row.method), len(row.path))):
        if operation.path == f"{API}/commands":
            continue  # each command separately, below
        codes = set[str]()
        for path in _paths(operation, neighbors.places):
            for query, body in product(_given(operation.query), _given(operation.body)):
                given = None if operation.body is Nothing else body
                answer = await neighbors.asks(operation.method, path, query, given)
                codes.add("" if answer.is_success else answer.json()["error"]["code"])
        if codes <= {"invalid"} or "internal" in codes:
            misasked.add(f"{operation.method} {operation.path}")
        if operation.method != "GET":
            assert await neighbors.state() == before, operation
    assert not misasked, "what these take has no value here that they accept"


async def test_a_group_is_there_for_a_token_that_is_for_all_its_members(served: Serve) -> None:
    server = await served([Repeat(Say("One. @user"))])
    root = server.workspace.root
    group_file(root, members=("a", "b"))
    (root / "agents" / "c.toml").write_text('purpose = "Listens."\n')
    whole, part = [
        await server.as_(name, *SCOPES, agents=agents)
        for name, agents in (("whole", ("team", "a", "b")), ("part", ("team", "a")))
    ]
    talk, file = f"{API}/agents/team/messages", f"{API}/groups/team"
    assert [(await client.get(file)).status_code for client in (whole, part)] == [200, 404]
    assert [
        (await client.post(talk, json={"text": "Hi."})).status_code for client in (part, whole)
    ] == [404, 202]
    for client, members in ((whole, '"a", "c"'), (part, '"a", "b"'), (part, '"a", "a"')):
        refused = await client.put(file, json={"text": f"members = [{members}]"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not-allowed")
    assert (await part.delete(file)).status_code == 404
    assert (await whole.put(file, json={"text": 'members = ["b", "a"]'})).json() == {
        "name": "team",
        "problems": [],
    }


async def test_members_are_checked_when_the_turn_of_a_group_begins(served: Serve) -> None:
    server = await served([Repeat(Say("Here I am. @user"))])
    root = server.workspace.root
    group_file(root, members=("a", "b"))
    (root / "agents" / "c.toml").write_text('purpose = "Listens."\n')
    client = await server.as_("whole", *SCOPES, agents=("team", "a", "b"))
    await server.client.post(f"{API}/agents/team/pause", json={})
    posted = await client.post(f"{API}/agents/team/messages", json={"text": "@c what do you know?"})
    assert posted.status_code == 202
    group_file(root, members=("a", "b", "c"))
    heard = asyncio.create_task(server.frames(ends(1), agent="team"))
    await server.client.post(f"{API}/agents/team/resume", json={})
    frames = await heard
    assert end_of(frames)["reason"] == "failed"
    assert any(
        data and "members that this token is not for" in data.get("message", "")
        for _, data in frames
    )
    assert not server.model.requests
    heard = asyncio.create_task(server.frames(ends(2), agent="team"))
    await server.client.post(
        f"{API}/agents/team/messages", json={"text": "@c what have you heard?"}
    )
    assert end_of(await heard)["reason"] == "replied"
    (request,) = server.model.requests
    assert "what have you heard?" in request.text
    assert "what do you know?" not in request.text  # a rejected message is not delivered later


async def test_a_stream_of_a_group_ends_when_others_join_it(served: Serve) -> None:
    server = await served([Repeat(Say(f"I keep {SECRET}. @user"))])
    root = server.workspace.root
    group_file(root, members=("a", "b"))
    client = await server.as_("whole", *SCOPES, agents=("team", "a", "b"))
    async with asyncio.timeout(30), client.stream("GET", f"{API}/agents/team/events") as answer:
        assert answer.status_code == 200
        group_file(root, members=("a", "b", "c"))
        await server.client.post(
            f"{API}/agents/team/messages", json={"text": "@c what do you know?"}
        )
        heard = ""
        async for piece in answer.aiter_text():
            heard += piece
            assert SECRET not in heard
