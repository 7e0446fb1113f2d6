"""Conversations of an agent over HTTP: each has its own context and stream, and those of a token are private to it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

import httpx2
import pytest

from agent_core.api.identity import SCOPES
from agent_core.api.operations import OfConversation
from agent_core.client.client import Client, HttpWire, connect
from agent_core.workspace.forgetting import ForgetRequest, Forgetting
from knapper_ext.openai_api import chat_threads
from knapper_ext.server.app import OPERATIONS
from knapper_ext.tending.upkeep import repeated_programs
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted
from tests.kit.waiting import until
from tests.knapper_ext.server.conftest import Serve, end_of, ends
from tests.storage.support import say

AGENT: Final = "/api/v1/agents/main"
ROOMS: Final = f"{AGENT}/conversations"
COUNT: Final = 10
Json: TypeAlias = dict[str, Any]  # Any: JSON


def said(seen: Seen) -> list[str]:
    """Return what the user said in a request."""
    return [str(row["content"]) for row in seen.messages if row["role"] == "user"]


async def begun(client: httpx2.AsyncClient, **body: object) -> Json:
    """Begin a conversation and return it."""
    answer = await client.post(ROOMS, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def listed(client: httpx2.AsyncClient, query: str = "") -> list[Json]:
    """Return the conversations that a client lists."""
    return list((await client.get(f"{ROOMS}{query}")).json()["conversations"])


async def test_conversations_are_begun_listed_named_deleted_and_exported(served: Serve) -> None:
    server = await served([Say("Teal."), Say("Which?")])
    client = server.client
    await server.said("The colour is teal.")
    other = (await begun(client))["id"]
    frames = await server.said("Which colour?", conversation=other)
    assert end_of(frames)["reply"] == "Which?"
    assert said(server.model.requests[-1]) == ["Which colour?"]
    replayed = await server.frames(ends(1), conversation=other)
    for events in (frames, replayed):
        (started,) = [data for _, data in events if data and data["type"] == "turn_started"]
        assert (started["agent"], started["conversation"]) == ("main", other)
    (started, *_) = [data for _, data in await server.frames(ends(1)) if data]
    assert "conversation" not in started, "the main one"
    rows = [(row["id"], row["name"], row["messages"]) for row in await listed(client)]
    assert rows == [(other, "Which colour?", 1), ("main", "main", 1)]
    renamed = await client.patch(f"{ROOMS}/{other}", json={"name": "Colours"})
    assert renamed.json()["name"] == "Colours"
    by_name = await client.get(f"{AGENT}/messages?conversation=colours")
    assert [row["kind"] for row in by_name.json()["messages"]] == ["user", "assistant"]
    exported = (await client.get(f"{ROOMS}/{other}/export")).json()["markdown"]
    assert exported.startswith("# Conversation with main: Colours")
    assert "**You:** Which colour?" in exported
    assert (await client.delete(f"{ROOMS}/{other}")).json()["deleted"] is not None
    assert [row["id"] for row in await listed(client)] == ["main"]
    assert [row["id"] for row in await listed(client, "?deleted=true")] == [other, "main"]
    assert (await client.get(f"{ROOMS}/{other}")).status_code == 404
    assert (await client.post(f"{ROOMS}/{other}/undelete")).json()["deleted"] is None
    assert (await client.get(f"{ROOMS}/{other}")).json()["name"] == "Colours"
    assert (await client.delete(f"{ROOMS}/main")).status_code == 503


async def test_a_branch_has_what_was_said_and_streams_its_own_turns(served: Serve) -> None:
    server = await served([Say("One."), Say("Two."), Say("Other.")])
    await server.said("first")
    first = await server.workspace.store.history("main")
    await server.said("second")
    branch = await begun(server.client, branch_of="main", upto=first[-1].seq)
    assert branch["branch_of"] == {"conversation": "main", "upto": first[-1].seq}
    frames = await server.said("third", conversation=branch["id"])
    assert said(server.model.requests[-1]) == ["first", "third"]
    late = await server.frames(ends(1), conversation=branch["id"])
    assert [seq for seq, _ in late if seq] == [seq for seq, _ in frames if seq]
    assert end_of(late) == end_of(frames)
    popped = await server.client.post(f"{AGENT}/pop?conversation={branch['id']}")
    assert popped.json() == {"removed": "third"}
    read = await server.client.get(f"{AGENT}/messages?conversation={branch['id']}")
    assert [row["text"] for row in read.json()["messages"]] == ["first", "One."]
    wrong = await server.client.post(ROOMS, json={"branch_of": "main", "upto": 7})
    assert wrong.json()["error"]["message"] == "The conversation has no such message."


async def test_what_is_said_in_one_conversation_is_streamed_in_no_other(served: Serve) -> None:
    server = await served([Repeat(lambda seen: Say(f"To {said(seen)[-1]}"))])
    ids = ["main", *[(await begun(server.client))["id"] for _ in range(2)]]
    streams = [asyncio.create_task(server.frames(ends(1), conversation=id)) for id in ids]
    for id in ids:
        path = f"{AGENT}/messages?conversation={id}"
        assert (await server.client.post(path, json={"text": id})).status_code == 202
    for id, stream in zip(ids, streams, strict=True):
        frames = await stream
        assert end_of(frames)["reply"] == f"To {id}"
        texts = [data.get("message", "") for _, data in frames if data]
        assert {text for text in texts if text} == {id}


ATTACKS: Final = [
    ("GET", "", None),
    ("PATCH", "", {"name": "mine"}),
    ("DELETE", "", None),
    ("POST", "/undelete", None),
    ("GET", "/export", None),
]
"""On a conversation by its name or id."""


async def test_stopping_an_agent_ends_its_turn_in_whatever_conversation(served: Serve) -> None:
    server = await served([Say("It takes a long time. " * 20, pause_s=0.5)])
    id = (await begun(server.client))["id"]
    heard = asyncio.create_task(server.frames(ends(1), conversation=id))
    path = f"{AGENT}/messages?conversation={id}"
    await server.client.post(path, json={"text": "Hello"})
    while not server.model.requests:  # noqa: ASYNC110 - as a person would look
        await asyncio.sleep(0.05)
    rows = (await server.client.get("/api/v1/agents")).json()["agents"]
    assert [row["running"] for row in rows] == [True]
    assert (await server.client.delete(AGENT)).status_code == 400
    stopped = await server.client.post(f"{AGENT}/stop", json={})
    assert stopped.json()["interrupted"] is True
    assert end_of(await heard)["reason"] == "interrupted"


async def test_a_long_message_says_where_it_is_whole(served: Serve) -> None:
    server = await served([])
    id = (await begun(server.client))["id"]
    await say(server.workspace.store, "x" * (3 << 20), agent=f"main/{id}")
    read = (await server.client.get(f"{AGENT}/messages?conversation={id}")).json()
    assert f"&count=1&conversation={id}]" in read["messages"][0]["cut"]


BODIES: Final[Json] = {
    "post": {"text": "hello"},
    "edit_waiting": {"text": "hello"},
    "choose_model": {"name": "other"},
}
PARTS: Final = {"event": "none", "seq": "1", "agent": "main"}
THROUGH: Final = [row for row in OPERATIONS if issubclass(row.query, OfConversation)]
"""Those on an agent, with a conversation in the query: a new one is attacked as well."""


async def refused(client: httpx2.AsyncClient, id: str) -> list[tuple[int, str]]:
    """Return the answer to every request about a conversation, with its id left out."""
    requests = [(method, f"{ROOMS}/{id}{path}", body) for method, path, body in ATTACKS]
    for row in THROUGH:
        query = {"conversation": id, **({"query": "teal"} if row.path.endswith("search") else {})}
        path = f"{row.path.format(**PARTS)}?{urlencode(query)}"
        requests.append((row.method, path, BODIES.get(row.handler.__name__)))
    requests += [("POST", ROOMS, {"branch_of": id})]
    answers = []
    for method, path, body in requests:
        answer = await client.request(method, path, json=body)
        answers.append((answer.status_code, answer.text.replace(id, "ID")))
    return answers


async def test_a_private_conversation_is_as_if_it_were_not_there_for_another_token(
    served: Serve,
) -> None:
    server = await served([Say("Hello."), Say("Teal it is.")])
    mine = await server.as_("mine", "chat", "read", "edit", agents=("main",))
    theirs = await server.as_("theirs", "chat", "read", "edit")
    await server.said("hello to all")
    private = await begun(mine, name="the secret plan")
    id = private["id"]
    assert private["origin"]["token"]
    await server.said("The secret colour is teal.", conversation=id)
    missing = "0a0a0a" if id != "0a0a0a" else "0b0b0b"
    guessed = await refused(theirs, id)
    assert len(guessed) > 15
    assert {status for status, _ in guessed} == {404}
    assert guessed == await refused(theirs, missing)
    for name in (id[:3], "the secret plan", "the secret pln"):
        answer = await theirs.get(f"{ROOMS}/{name}")
        assert (answer.status_code, id in answer.text) == (404, False)
    assert [row["id"] for row in await listed(theirs)] == ["main"]
    assert [row["id"] for row in await listed(theirs, "?deleted=true")] == ["main"]
    found = await theirs.get(f"{AGENT}/search?query=secret colour teal")
    assert "Teal it is" not in found.text
    assert "The secret colour" not in found.text
    assert [row["id"] for row in await listed(mine)] == [id, "main"]
    assert "teal" in (await mine.get(f"{AGENT}/search?query=teal&conversation={id}")).text
    for noun in ("memory", "conversations"):
        by_owner = await server.client.post(
            "/api/v1/commands", json={"words": [noun, "search", "secret", "colour"]}
        )
        assert (by_owner.status_code, "secret colour is teal" in by_owner.text) == (200, True)
    page = await server.logged_in()
    page.headers["Origin"] = server.url
    assert [row["id"] for row in await listed(page)] == [id, "main"]
    await page.delete(f"{ROOMS}/{id}")
    assert (await theirs.post(f"{ROOMS}/{id}/undelete")).status_code == 404
    assert (await mine.post(f"{ROOMS}/{id}/undelete")).status_code == 200


BEYOND: Final = [
    (
        "POST",
        "/v1/chat/completions",
        {"model": "main", "messages": [{"role": "user", "content": "a"}]},
    ),
    ("POST", "/v1/responses", {"model": "main", "input": "a"}),
    ("GET", "/metrics", None),
]
"""Endpoints of other protocols, of which none names a conversation as the API does."""


async def test_a_token_that_is_limited_to_conversations_reaches_nothing_but_them(
    served: Serve,
) -> None:
    server = await served([Say("Teal."), Say("Beige."), Say("Yes.")])
    page = await server.logged_in()
    page.headers["Origin"] = server.url
    ids = [(await begun(page, name=name))["id"] for name in ("ours", "apart")]
    mine, apart = ids
    for id in ids:
        await server.said(f"Which one is {id}?", conversation=id)
    lines = (f"main/{mine}",)
    guest = await server.as_("guest", *SCOPES, lines=lines)
    assert [row.agents for row in await server.workspace.store.tokens() if row.name == "guest"]
    for row in OPERATIONS:
        path = row.path.format(**dict.fromkeys(row.names, "main"))
        named = (apart, "apart", mine[:3], "ours", "main", "") if row.in_a_conversation else (mine,)
        for id in named:
            query = urlencode({"conversation": id})
            body = BODIES.get(row.handler.__name__, {})
            answer = await guest.request(row.method, f"{path}?{query}", json=body)
            wanted = 404 if row.in_a_conversation else 403
            assert (row.path, id, answer.status_code) == (row.path, id, wanted)
            assert apart not in answer.text.replace(f"`{apart}`", "")
    for method, path, body in BEYOND:
        answer = await guest.request(method, path, json=body)
        assert answer.status_code == 403, (path, answer.text)
    read = await guest.get(f"{AGENT}/messages?conversation={mine}")
    assert [entry["text"] for entry in read.json()["messages"]] == [
        f"Which one is {mine}?",
        "Teal.",
    ]
    renamed = await page.patch(f"{ROOMS}/{apart}", json={"name": mine})
    assert renamed.status_code == 200
    await page.delete(f"{ROOMS}/{mine}")
    assert (await guest.get(f"{AGENT}/messages?conversation={mine}")).status_code == 404
    await page.post(f"{ROOMS}/{mine}/undelete")
    sent = await guest.post(f"{AGENT}/messages?conversation={mine}", json={"text": "And?"})
    assert sent.status_code == 202
    done = await server.frames(ends(2), conversation=mine)
    assert end_of(done)["reply"] == "Yes."
    assert len(server.model.requests) == 3


async def test_a_token_may_be_limited_to_the_main_conversation(served: Serve) -> None:
    server = await served([Say("Teal.")])
    page = await server.logged_in()
    page.headers["Origin"] = server.url
    other = (await begun(page))["id"]
    await server.said("Which?")
    guest = await server.as_("guest", "read", lines=("main",))
    assert (await guest.get(f"{AGENT}/messages")).status_code == 200
    assert (await guest.get(f"{AGENT}/messages?conversation={other}")).status_code == 404
    assert (await guest.get("/api/v1/agents")).status_code == 403


FIRST_WORD: Final = '''
def first_word(text: str) -> str:
    """Return the first word of a text, such as a title.

    Args:
        text: The text.

    Examples:
        >>> first_word("a b")
        'a'
        >>> first_word("c")
        'c'
    """
    return text.split()[0]
'''
HISTORY_TEXT: Final = "My vault code is marmalade 4711: discount it."


PAYS: Final = '''\
def pay(self, to: str) -> str:
    """Pay somebody.

    Args:
        to: Who.
    """
    return self.ask(f"Pay {to} how much?", choices=["teal", "all"])
'''


@pytest.mark.parametrize("is_history", [False, True])
async def test_the_words_of_a_function_in_a_private_conversation_are_for_who_may_read_it(
    served: Serve, *, is_history: bool
) -> None:
    server = await served([Ask(Wanted("pay", {"to": "Quince"})), Say("Paid.")])
    await server.save("pays.py", PAYS)
    mine = await server.as_("mine", "chat", "read")
    theirs = await server.as_("theirs", "chat", "read", "approve")
    if is_history:
        body = {"model": "main", "messages": [{"role": "user", "content": "Pay."}]}
        sent = asyncio.create_task(mine.post("/v1/chat/completions", json=body))
    else:
        id = (await begun(mine))["id"]
        path = f"{AGENT}/messages?conversation={id}"
        sent = asyncio.create_task(mine.post(path, json={"text": "Pay."}))

    async def asks(client: httpx2.AsyncClient) -> list[Json]:
        return list((await client.get("/api/v1/approvals")).json()["asks"])

    [question] = await until(lambda: asks(server.client), bool)
    assert question["text"] == "Pay Quince how much?"
    assert [row["text"] for row in await asks(mine)] == [question["text"]]
    assert await asks(theirs) == []
    approval = {"answer": "yes", "word": "teal"}
    by_id = await theirs.post(f"/api/v1/approvals/{question['id']}", json=approval)
    words = {"words": ["functions", "answer", question["id"], "teal"]}
    by_command = await theirs.post("/api/v1/commands", json=words)
    assert by_id.status_code == 404
    assert "no question" in by_command.text.lower()
    answer = await server.client.post(f"/api/v1/approvals/{question['id']}", json=approval)
    assert answer.status_code == 200
    await sent


async def test_what_served_a_private_request_is_found_by_it_and_does_not_tell_it(
    served: Serve,
) -> None:
    call = Ask(Wanted("first_word", {"text": "A b"}))
    server = await served([step for _ in range(3) for step in (call, Say("Done."))])
    await server.save("words.py", FIRST_WORD)
    mine = await server.as_("mine", "chat", "read")
    theirs = await server.as_("theirs", "read", agents=("main",))
    private = (await begun(mine))["id"]
    await server.said("Slug for Anna Kumquat's divorce", conversation=private)
    body = {"model": "main", "messages": [{"role": "user", "content": HISTORY_TEXT}]}
    assert (await mine.post(CHAT, json=body)).status_code == 200
    await server.said("Slug of a title for all")
    store = server.workspace.store
    assert [text for _, text in await store.requests_served(9)] == ["Slug of a title for all"]
    assert len(await store.requests_served(9, with_private=True)) == 3
    shown = ""
    for need in ("slug divorce", "vault code", "title for all"):
        shown += (await theirs.get(f"/api/v1/functions/search?{urlencode({'need': need})}")).text
    told = [word in shown for word in ("Kumquat", "marmalade", "was called for")]
    assert told == [False, False, True]


async def test_a_history_is_there_for_the_token_that_sent_it_and_the_owner_alone(
    served: Serve,
) -> None:
    server = await served([Say("Noted.")])
    mine = await server.as_("mine", "chat", "read")
    body = {"model": "main", "messages": [{"role": "user", "content": HISTORY_TEXT}]}
    assert (await mine.post(CHAT, json=body)).status_code == 200
    (name,) = [each for each in await server.workspace.agent_names() if "--chat-" in each]
    theirs = await server.as_("theirs", *SCOPES[:-1])
    narrow = await server.as_("narrow", *SCOPES, agents=("main",))
    path = f"/api/v1/agents/{name}/messages"
    for client in (theirs, narrow):
        assert (await client.get(path)).status_code == 404
        assert (await client.post(path, json={"text": "injected"})).status_code == 404
        for listed_at in ("growth", "tree", "status"):
            assert "marmalade" not in (await client.get(f"/api/v1/{listed_at}")).text
    for words in (["memory", "search", "vault", "--agent", name], ["agents", "show", name]):
        told = await theirs.post("/api/v1/commands", json={"words": words})
        assert (told.status_code, "marmalade" in told.text) == (404, False), told.text
    for client in (mine, server.client):
        assert "marmalade" in (await client.get(path)).text


@pytest.mark.parametrize("is_private", [True, False], ids=["of a token", "of the owner"])
async def test_nothing_is_made_of_the_programs_of_a_private_conversation(
    served: Serve, *, is_private: bool
) -> None:
    runs = [Ask(Wanted("run_program", {"code": f"sum([{n}, 2, 3]) * 2"})) for n in range(2)]
    server = await served([step for run in runs for step in (run, Say("Done."))])
    who = await (server.as_("mine", "chat", "read") if is_private else server.logged_in())
    who.headers["Origin"] = server.url
    id = (await begun(who))["id"]
    for number in range(2):
        frames = await server.said(f"What is it? {number}", conversation=id)
        assert end_of(frames)["reply"] == "Done."
    found = await repeated_programs(server.workspace.store)
    assert [len(each) for each in found] == ([] if is_private else [2])


async def test_a_branch_of_a_private_conversation_is_private_to_the_same_token(
    served: Serve,
) -> None:
    server = await served([Say("Teal.")])
    mine, theirs = [await server.as_(name, "chat", "read") for name in ("mine", "theirs")]
    private = await begun(mine)
    await server.said("My colour?", conversation=private["id"])
    page = await server.logged_in()
    page.headers["Origin"] = server.url
    branch = (await begun(page, branch_of=private["id"]))["id"]
    assert (await theirs.get(f"{ROOMS}/{branch}")).status_code == 404
    assert (await mine.get(f"{AGENT}/messages?conversation={branch}")).status_code == 200


async def test_a_token_for_another_agent_names_a_conversation_in_vain(served: Serve) -> None:
    server = await served([Say("Hello.")])
    await server.client.post("/api/v1/agents", json={"name": "bob"})
    other = await server.as_("bobs", "chat", "read", agents=("bob",))
    id = (await begun(server.client))["id"]
    await server.said("Hello", conversation=id)
    assert (await other.get(f"{ROOMS}/{id}")).status_code == 404
    for name in (id, f"main/{id}", f"../main/{id}", "main", ""):
        query = {"conversation": name}
        answer = await other.get("/api/v1/agents/bob/messages", params=query)
        assert answer.json().get("messages", []) == [], name


async def test_ten_conversations_at_once_edit_one_block_and_nothing_is_lost(served: Serve) -> None:
    seen_by: dict[str, list[str]] = {}

    def step(seen: Seen) -> Step:
        word = said(seen)[0].split()[0]
        seen_by.setdefault(word, []).append(seen.text)
        calls = sum(row["role"] == "tool" for row in seen.messages)
        if calls < 2:
            line = {"name": "human", "content": f"{word} line {calls}"}
            return Ask(Wanted("core_memory_append", line))
        return Say("Kept.")

    server = await served([Repeat(step)], runner__slots=COUNT)
    ids = [(await begun(server.client))["id"] for _ in range(COUNT)]

    async def say_in_each(words: Callable[[int], str]) -> None:
        turns: list[Awaitable[Any]] = [
            server.said(words(at), conversation=id) for at, id in enumerate(ids)
        ]
        await asyncio.gather(*turns)

    await say_in_each(lambda at: f"word{at} go")
    block = (await server.client.get(f"{AGENT}/memory/human")).json()
    kept = [f"word{at} line {n}" for at in range(COUNT) for n in range(2)]
    assert sorted(row for row in block["value"].splitlines() if row in kept) == sorted(kept)
    await say_in_each(lambda _: "and?")
    for at in range(COUNT):
        text = seen_by[f"word{at}"][-1]
        assert not [row for row in kept if row not in text], at


async def test_a_conversation_of_an_earlier_version_opens_as_the_agent_that_it_was(
    served: Serve,
) -> None:
    server = await served([Say("One."), Say("Two.")])
    agent = await server.begin_as_before("trip")
    token = await server.as_("mine", "chat", "read", agents=("main",))
    begun_before = await begun(token, name="trip")
    assert (begun_before["agent"], begun_before["id"]) == (agent, "main")
    await server.said("first", agent)
    asked = {"model": "main@trip", "messages": [{"role": "user", "content": "second"}]}
    answer = await token.post("/v1/chat/completions", json=asked)
    assert answer.json()["choices"][0]["message"]["content"] == "Two."
    assert said(server.model.requests[-1]) == ["first", "second"]
    assert [row["id"] for row in await listed(token)] == []


CHAT: Final = "/v1/chat/completions"


async def asked(client: httpx2.AsyncClient, name: str, text: str, **more: object) -> str:
    """Return the reply in a conversation of a program."""
    body = {"model": f"main{name}", "messages": [{"role": "user", "content": text}], **more}
    answer = await client.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


async def responded(client: httpx2.AsyncClient, text: str, **more: object) -> httpx2.Response:
    """Return the response to a text."""
    return await client.post("/v1/responses", json={"model": "main", "input": text, **more})


async def test_what_a_program_says_at_a_door_is_private_to_its_token_and_user(
    served: Serve,
) -> None:
    def step(seen: Seen) -> Step:
        if said(seen)[-1] != "search" or any(row["role"] == "tool" for row in seen.messages):
            return Say(str([row["content"] for row in seen.messages if row["role"] == "tool"]))
        return Ask(Wanted("conversation_search", {"query": "secret plan"}))

    server = await served([Repeat(step)])
    mine, theirs = [await server.as_(name, "chat", "read", "edit") for name in ("mine", "theirs")]
    for user in ("ada", "bob", ""):
        more = {"user": user} if user else {}
        await asked(mine, "@plan", f"The secret plan of {user or 'all'} is marmalade.", **more)
    first = (await responded(mine, "The secret plan of responses is marmalade.")).json()
    rows = await listed(mine)
    ids = {row["origin"].get("user", ""): row["id"] for row in rows if row["name"] == "plan"}
    assert (len(rows), {*ids}) == (4, {"ada", "bob", ""})
    for client, name, more in (
        (theirs, "@plan", {}),
        (mine, "@plan", {"user": "eve"}),
        (theirs, "@other", {}),
    ):
        assert "is marmalade" not in await asked(client, name, "search", **more), (name, more)
    assert "of ada is marmalade" in await asked(mine, "@plan", "search", user="ada")
    assert "of bob" not in await asked(mine, "@plan", "search", user="ada")
    await server.said("search")
    assert "is marmalade" not in str(server.model.requests[-1].messages)
    for id in ids.values():
        guessed = await refused(theirs, id)
        assert {status for status, _ in guessed} == {404}
        assert guessed == await refused(theirs, "0a0a0a")
    assert "is marmalade" not in (await theirs.get(f"{AGENT}/search?query=marmalade plan")).text
    missing = f"resp_{'0' * 32}"
    for client, more in ((theirs, {}), (mine, {"user": "ada"})):
        for id in (first["id"], missing):
            answer = await responded(client, "And?", previous_response_id=id, **more)
            assert answer.status_code == 400
            assert answer.json()["error"]["message"].replace(id, missing).count(missing) == 1


async def test_a_search_of_the_owner_reaches_private_conversations_and_that_of_a_token_none(
    served: Serve,
) -> None:
    server = await served([Say("Noted.")] * 3)
    mine, theirs = [await server.as_(name, "chat", "read") for name in ("mine", "theirs")]
    await server.said("The plan is public.")
    await asked(mine, "@plan", "The plan is marmalade.")
    await asked(theirs, "@other", "The plan is honey.")
    page = await server.logged_in()
    page.headers["Origin"] = server.url
    words = {"words": ["conversations", "search", "plan"], "agent": "main"}
    for owner in (page, server.client):
        found = (await owner.get(f"{AGENT}/search?query=plan")).json()
        texts = {(row["text"], row["conversation"]) for row in found["private"]["results"]}
        assert texts >= {("The plan is marmalade.", "plan"), ("The plan is honey.", "other")}
        assert "The plan is public." in str(found["recall"])
        told = [row["text"] for row in found["best"]["hits"]]
        assert {"The plan is public.", "The plan is honey."} <= {*told}
        assert "marmalade" in (await owner.post("/api/v1/commands", json=words)).text
        id = (await listed(mine))[0]["id"]
        alone = (await owner.get(f"{AGENT}/search?query=plan&conversation={id}")).text
        assert ("marmalade" in alone, "honey" in alone, "public" in alone) == (True, False, False)
    for token in (mine, theirs):
        own = (await token.get(f"{AGENT}/search?query=plan")).json()
        assert "private" not in own
        answers = [str(own), (await token.post("/api/v1/commands", json=words)).text]
        assert not [text for text in answers if "marmalade" in text or "honey" in text]


async def test_an_id_at_a_door_goes_on_with_an_own_conversation_and_with_no_other(
    served: Serve,
) -> None:
    server = await served([Repeat(lambda seen: Say(str(said(seen))))])
    mine, theirs = [await server.as_(name, "chat", "read") for name in ("mine", "theirs")]
    id = (await begun(mine))["id"]
    await asked(mine, f"@{id}", "first")
    assert await asked(mine, f"@{id}", "second") == "['first', 'second']"
    for client, more in ((theirs, {}), (mine, {"user": "ada"})):
        for other in (id, "0a0a0a"):
            assert await asked(client, f"@{other}", "mine", **more) == "['mine']"
    page = await server.logged_in()
    page.headers["Origin"] = server.url
    own = (await begun(page))["id"]
    assert await asked(mine, f"@{own}", "theirs?") == "['theirs?']", "also a person's own"


async def test_instructions_of_a_program_are_those_of_its_conversation_alone(
    served: Serve,
) -> None:
    server = await served([Repeat(lambda seen: Say("Yes."))])
    program = await server.as_("mine", "chat")

    async def system(name: str, *texts: str) -> str:
        rows = [{"role": "system", "content": text} for text in texts]
        body = {"model": f"main@{name}", "messages": [*rows, {"role": "user", "content": "Hi"}]}
        assert (await program.post(CHAT, json=body)).status_code == 200
        return server.model.requests[-1].text

    assert "Speak like Ada." in await system("ada", "Speak like Ada.")
    told = await system("bob", "Speak like Bob.")
    assert ("Speak like Ada." in told, "Speak like Bob." in told) == (False, True)
    assert "Speak like Ada." not in await system("ada"), "they are left out"
    await server.said("Hi")
    assert "Speak like" not in server.model.requests[-1].text
    store, root = server.workspace.store, server.workspace.root
    assert "Speak like Bob." in str(await store.doors_with(""))
    forgetting = Forgetting(root, root / ".knapper", store)
    await store.forget(
        (await forgetting.order(ForgetRequest(text="Speak like Bob"), "main")).erasure
    )
    assert "Speak like Bob" not in str(await store.doors_with(""))


async def test_of_the_conversations_that_go_on_by_an_id_the_oldest_is_erased(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_KEPT", 2)
    server = await served([Repeat(lambda seen: Say("Yes."))])
    program = await server.as_("mine", "chat", "read")
    got = [(await responded(program, text)).json()["id"] for text in ("one marmalade", "two")]
    branch = await begun(program, branch_of=(await listed(program))[0]["id"])
    await listed(program)
    for text in ("three", "four"):
        await responded(program, text)
    names = {row["name"] for row in await listed(program)}
    assert names == {"two", branch["name"], "three", "four"}, "a branch stands on the second"
    gone = await responded(program, "And?", previous_response_id=got[0])
    assert gone.status_code == 400
    report = await server.workspace.store.check_journal()
    assert (report.faults, report.missing) == ((), 0)


async def test_a_group_has_one_conversation(served: Serve) -> None:
    server = await served([])
    (server.workspace.root / "groups").mkdir(exist_ok=True)
    (server.workspace.root / "groups" / "crew.toml").write_text('members = ["main", "bob"]\n')
    for body in ({"name": "plan"}, {}, {"branch_of": "main"}):
        answer = await server.client.post("/api/v1/agents/crew/conversations", json=body)
        assert (answer.status_code, "one conversation" in answer.text) == (400, True)


@pytest.mark.parametrize("where", ["here", "over HTTP"])
async def test_a_client_talks_in_conversations(served: Serve, where: str) -> None:
    server = await served([Say("One."), Say("Two."), Say("Three.")])
    key = await server.token("a-client", "chat", "read")
    client = (
        await connect(server.workspace) if where == "here" else Client(HttpWire(server.url, key))
    )
    async with client:
        assert await client.ask("first") == "One."
        trip = await client.begin_conversation("trip")
        assert await client.ask("second", conversation="trip") == "Two."
        assert await client.begin_conversation("trip") == {
            **trip,
            "messages": 1,
            "used": (await client.conversation("trip"))["used"],
        }
        branch = await client.branch_conversation("trip", name="another")
        assert await client.ask("third", conversation=branch["id"]) == "Three."
        assert said(server.model.requests[-1]) == ["second", "third"]
        assert [row["name"] for row in await client.conversations()] == ["another", "trip", "main"]
        assert (await client.rename_conversation("trip", "journey"))["name"] == "journey"
        assert "**You:** second" in await client.export_conversation("journey")
        await client.delete_conversation("journey")
        assert [row["name"] for row in await client.conversations()] == ["another", "main"]
        await client.undelete_conversation(trip["id"])
        assert await client.pop(conversation=branch["id"]) == "third"
        texts = [row["text"] for row in await client.messages(conversation=branch["id"])]
        assert texts == ["second", "Two."]


async def test_the_line_of_a_conversation_is_the_name_of_no_agent_at_any_door(
    served: Serve,
) -> None:
    server = await served([Repeat(lambda seen: Say("Noted."))])
    mine, theirs = [await server.as_(name, "chat", "read") for name in ("mine", "theirs")]
    id = (await begun(mine))["id"]
    await server.said("The code is marmalade.", conversation=id)
    line = f"main/{id}"
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    asked = {"model": line, "messages": [*history, {"role": "user", "content": "c"}]}
    search = {"words": ["memory", "search", "marmalade", "--agent", "main"]}
    for client in (mine, theirs):
        for path, body in (
            ("/api/v1/commands", {**search, "agent": line}),
            ("/api/v1/commands", {"words": ["conversations", "list", "--agent", line]}),
            ("/v1/chat/completions", asked),
            ("/v1/chat/completions", {**asked, "model": f"{line}@main"}),
            ("/v1/responses", {"model": line, "input": "hi"}),
        ):
            answer = await client.post(path, json=body)
            assert answer.status_code == 404, (path, answer.text)
            assert "The code" not in answer.text
    assert await server.workspace.store.agent_names() == ["main"]


async def test_a_name_that_another_gives_leads_nobody_away_from_the_own_conversation(
    served: Serve,
) -> None:
    server = await served([Say("Hello.")])
    mine, theirs = [await server.as_(name, "chat", "read") for name in ("mine", "theirs")]
    await server.said("hello")
    id = (await begun(mine, name="trip"))["id"]
    for name in ("trip", id):
        renamed = await theirs.patch(f"{ROOMS}/main", json={"name": name})
        assert renamed.status_code == 400
        await server.workspace.conversations("main").rename("main", name)  # the owner may
        for asked in ("trip", "Trip", id):
            assert (await mine.get(f"{ROOMS}/{asked}")).json()["id"] == id


async def test_a_long_transcript_comes_in_parts_and_says_so(served: Serve) -> None:
    server = await served([Repeat(lambda seen: Say("Noted."))])
    for number in range(9):
        await server.said(f"number {number} " + "word " * 180_000)
    whole, after, has_more = "", 0, True
    for _part in range(9):
        part = (await server.client.get(f"{ROOMS}/main/export?after={after}")).json()
        assert len(part["markdown"]) < 5 << 20
        whole += part["markdown"]
        after, has_more = part["after"], part["more"]
        if not has_more:
            break
    assert not has_more
    assert [whole.count(f"number {number} ") for number in range(9)] == [1] * 9
