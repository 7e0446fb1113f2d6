"""Programs that use chat completions, with OpenAI's real client."""

import asyncio
import json
from asyncio import TaskGroup
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import openai
import pytest

from agent_core.api import agent_host
from agent_core.base.errors import AgentBusy
from agent_core.storage import SaveAgent
from knapper_ext.openai_api import chat_threads
from knapper_ext.tending.upkeep import repeated_programs
from sandbox import Sandbox
from tests.agents.groups import Cast, group_file, playing
from tests.kit import Ask, Expect, Fail, Repeat, Say, ScriptedModel, Wanted, contains, shows
from tests.kit.desk import VOWELS
from tests.kit.waiting import until

from .conftest import Serve, Served, end_of, server
from .programs import client, has_no, has_once, reply, user
from .test_the_api import READS


async def says(
    program: openai.AsyncOpenAI, *messages: Any, model: str = "main"
) -> Any:  # Any: the client's
    """Return the choice of a completion, without its usage."""
    answer = await program.chat.completions.create(model=model, messages=[*messages])
    assert answer.usage
    assert answer.usage.prompt_tokens > 0
    return answer.choices[0].message.content


async def test_the_history_that_comes_is_the_context_and_is_listed_nowhere(served: Serve) -> None:
    told = ("Answer in German.", "My name is Bob", "Nice to meet you")
    script = [
        Say("Hello."),
        Expect(Say("Twice."), *map(has_once, ("first question", "Good day.", "second question"))),
        *(Fail(400, "no such thing"), Expect(Say("Now."), has_once("third question"))),
        Expect(Say("Bob."), *map(contains, told), has_no("first question")),
    ]
    server = await served(script)
    async with client(server) as program:
        assert [model.id async for model in program.models.list()] == ["main"]
        assert await says(program, user("first question")) == "Hello."
        edited = [user("first question"), reply("Good day."), user("second question")]
        whole = [*edited, reply(await says(program, *edited))]
        with pytest.raises(openai.InternalServerError):
            await says(program, *whole, user("third question"))
        assert await says(program, *whole, user("third question")) == "Now.", "it is said once"
        messages = [{"role": "system", "content": told[0]}, user(told[1]), reply(told[2])]
        assert await says(program, *messages, user("What is my name?")) == "Bob."
    names = await histories(server)
    assert len(names) == 4, "the one that failed was tried again"
    for path in ("agents", "tree"):
        listed = (await server.client.get(f"/api/v1/{path}")).json()["agents"]
        assert [row["name"] for row in listed] == ["main"], path
    assert (await server.client.get("/api/v1/status")).json()["agents"] == 1
    seen = (await server.client.get(f"/api/v1/agents/{names[0]}/messages")).json()
    assert "first question" in str(seen), "by its name, it can still be read"


async def test_a_named_conversation_goes_on_by_its_name_and_a_repeated_request_is_answered_once(
    served: Serve,
) -> None:
    again = [Expect(Say("Hello."), has_no("apples")), Say("One two three four.", pause_s=0.2)]
    server = await served(
        [Say("One."), Expect(Say("Two."), contains("apples")), Say("Three."), *again]
    )
    async with client(server) as program:
        for reply_to in (("One.", "I like apples"), ("Two.", "Go on"), ("Three.", "Go on")):
            assert await says(program, user(reply_to[1]), model="main@fruit") == reply_to[0]
        messages = [user("first"), reply(await says(program, user("first"))), user("second")]
        stream = await program.chat.completions.create(model="main", messages=messages, stream=True)
        async for _ in stream:
            break
        await stream.close()  # the client disconnects and asks again
        stream = await program.chat.completions.create(model="main", messages=messages, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(pieces) == "One two three four."
    assert len(await histories(server)) == 2


async def test_the_cap_of_an_agent_counts_histories_without_a_name_also_after_it_is_made_anew(
    served: Serve,
) -> None:
    server = await served([Repeat(Say("Hello."))], spending__agent_requests=2)
    codes: list[bool] = []
    for model in ("main", "main@fruit", "main", "main@fruit"):
        body = {"model": model, "messages": [user(f"Hello {len(codes)}")]}
        codes.append((await server.client.post(CHAT, json=body)).status_code == 200)
    assert codes == [True, True, False, False]
    assert len(server.model.requests) == 2
    delete = lambda: server.client.delete("/api/v1/agents/main")  # noqa: E731
    await until(delete, lambda answer: answer.status_code < 300)  # the last turn may still end
    assert end_of(await server.said("Hello again"))["reason"] == "limits"
    assert {row.agent for row in await server.workspace.store.requests()} == {"main"}


KEY = {"Idempotency-Key": "6f1c-one"}
CHAT = "/v1/chat/completions"
ROOMS = "/api/v1/agents/main/conversations"


async def test_a_key_returns_the_same_turn_and_belongs_to_one_request_of_one_token(
    served: Serve,
) -> None:
    server = await served([Say(f"{number}.") for number in ("One", "Two", "Three", "Four")])
    body: dict[str, Any] = {"model": "main", "messages": [user("Hello")]}
    first, *others = [await server.client.post(CHAT, json=body, headers=KEY) for _ in range(3)]
    assert first.json()["choices"][0]["message"]["content"] == "One."
    assert [other.json() for other in others] == [first.json()] * 2, "also its id is the same"
    for path, wrong in (
        (CHAT, {**body, "temperature": 0.5}),
        (CHAT, {**body, "model": "main@desk"}),
        (CHAT, {**body, "user": "ada"}),
        ("/v1/responses", {"model": "main", "input": "Hello"}),
    ):
        refused = await server.client.post(path, json=wrong, headers=KEY)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "key"), wrong
    long = await server.client.post(CHAT, json=body, headers={"Idempotency-Key": "k" * 256})
    assert (long.status_code, "255 characters" in long.text) == (400, True)
    other = await server.as_("other", "chat")
    answer = await other.post(CHAT, json=body, headers=KEY)
    assert answer.json()["choices"][0]["message"]["content"] == "Two.", "the key of another token"
    asked = {"model": "main@desk", "messages": [user("Hi")]}
    keys = [{"Idempotency-Key": key} for key in ("a", "b", "a")]
    said = [
        (await server.client.post(CHAT, json=asked, headers=key)).json()["choices"][0]["message"]
        for key in keys
    ]
    assert [message["content"] for message in said] == ["Three.", "Four.", "Three."]


async def test_a_key_that_comes_to_two_servers_at_once_begins_one_turn(served: Serve) -> None:
    one = await served([Repeat(Say("Paid by one."))])
    other = await served([Repeat(Say("Paid by the other."))])
    program = await one.as_("program", "chat")
    for number in range(4):
        body = {"model": f"main@talk{number}", "messages": [user("Pay the bill.")]}
        key = {"Idempotency-Key": f"bill-{number}"}
        answers = await asyncio.gather(
            *(
                program.post(f"{server.url}{CHAT}", json=body, headers=key)
                for server in (one, other)
            )
        )
        first, second = (answer.json() for answer in answers)
        assert (first["id"], first["choices"]) == (second["id"], second["choices"]), number
    rows = await one.workspace.conversations("main").list()
    assert sorted(row.name for row in rows) == [f"talk{number}" for number in range(4)]


async def test_a_response_that_is_asked_for_again_by_its_key_can_be_gone_on_from(
    served: Serve,
) -> None:
    server = await served([Say("Hello."), Expect(Say("Apples."), has_once("I like apples"))])
    body: dict[str, Any] = {"model": "main", "input": "I like apples"}
    for _ in range(2):
        got = (await server.client.post("/v1/responses", json=body, headers=KEY)).json()
    more = {"model": "main", "input": "What?", "previous_response_id": got["id"]}
    answer = (await server.client.post("/v1/responses", json=more)).json()
    assert answer["output"][0]["content"][0]["text"] == "Apples."
    assert (await server.client.post("/v1/responses", json=body, headers=KEY)).json() == got
    rows = (await server.client.get("/api/v1/agents/main/conversations")).json()["conversations"]
    assert [(row["name"], row["messages"]) for row in rows] == [("I like apples", 2)], "stored"


async def test_a_failed_turn_that_is_asked_for_twice_is_tried_once_and_nothing_else_is_taken_back(
    served: Serve,
) -> None:
    tried = Expect(Say("Tried.", pause_s=0.3), has_once("third"), contains("first"))
    server = await served([Say("One."), Fail(400, "no such thing"), tried])
    body: dict[str, Any] = {"model": "main@desk", "messages": [user("third")]}
    await server.client.post(CHAT, json={**body, "messages": [user("first")]})
    assert (await server.client.post(CHAT, json=body, headers=KEY)).status_code == 502
    asked = [server.client.post(CHAT, json=body, headers=KEY) for _ in range(3)]
    found = {
        answer.json()["choices"][0]["message"]["content"] if answer.is_success else "busy"
        for answer in await asyncio.gather(*asked)
    }
    assert found <= {"Tried.", "busy"}
    assert "Tried." in found


async def test_an_answer_that_nobody_got_waits_for_the_same_bytes_and_not_for_ever(
    tmp_path: Path,
    scripted: Callable[..., ScriptedModel],
    one_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scripted([Say("One two three.", pause_s=0.2), Say("Later."), Say("Other.")])
    body: dict[str, Any] = {"model": "main", "messages": [user("Count.")], "stream": True}

    async def begins(of: Served, token: str) -> None:
        async with of.client.stream("POST", CHAT, json=body, headers=bearer(token)) as answer:
            async for _ in answer.aiter_lines():
                return

    async def asks(of: Served, token: str, **more: Any) -> str:
        answer = await of.client.post(CHAT, json={**body, **more}, headers=bearer(token))
        rows = [
            json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: {")
        ]
        return "".join(row["choices"][0]["delta"].get("content") or "" for row in rows)

    async with server(tmp_path, model, one_sandbox) as before:
        token = await before.token("program", "chat")
        await begins(before, token)
    async with server(tmp_path, model, one_sandbox) as after:
        with monkeypatch.context() as patch:
            patch.setattr(chat_threads, "_JOINED_S", 600.0)
            assert await asks(after, token) == "One two three."
            assert len(model.requests) == 1
        assert await asks(after, token) == "Later.", "somebody got it, so this is a new request"
        monkeypatch.setattr(chat_threads, "_JOINED_S", 0.0)
        assert await asks(after, token) == "Other."


def bearer(token: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token}"}


async def test_a_response_that_an_earlier_version_stored_can_be_gone_on_from(served: Serve) -> None:
    server = await served([Say("On.")])
    of_old = "bf2b528e14154b911497a6ce2fa35df12ef1019766f7c8e0436cce37533c297a"
    stored = {
        "chat_of": "main",
        "chat_asks": [["a", "k", 1.0]],
        "chat_sent": ["b"],
        "chat_open": [],
    }
    await server.workspace.store.apply(
        [SaveAgent("main--chat-0", {**stored, "chat_response": of_old})]
    )
    program = await server.as_("old", "chat")
    body = {"model": "main", "input": "And?", "previous_response_id": f"resp_{'0' * 32}"}
    answer = await program.post("/v1/responses", json=body)
    assert answer.json()["output"][0]["content"][0]["text"] == "On."


async def test_nothing_is_made_of_programs_that_repeat_from_history_to_history(
    served: Serve,
) -> None:
    runs = [Ask(Wanted("run_program", {"code": f"sum([{n}, 2, 3]) * 2"})) for n in range(2)]
    server = await served([step for run in runs for step in (run, Say("Done."))])
    async with client(server) as program:
        for number in range(2):
            assert await says(program, user(f"What is it? {number}")) == "Done."
    assert await repeated_programs(server.workspace.store) == []


async def test_of_the_keys_of_a_conversation_the_last_are_known(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_REQUESTS", 2)
    server = await served([Say(f"{number}.") for number in range(4)])
    body = {"model": "main@desk", "messages": [user("Hi")]}
    said = []
    for key in ("a", "b", "c", "b", "a"):
        answer = await server.client.post(CHAT, json=body, headers={"Idempotency-Key": key})
        said.append(answer.json()["choices"][0]["message"]["content"])
    assert said == ["0.", "1.", "2.", "1.", "3."]


async def test_histories_push_out_no_stored_conversation_and_no_conversation_with_a_name(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_KEPT", 2)
    server = await served([Say("Yes.")] * 7)
    async with client(server) as program:
        stored = await program.responses.create(model="main", input="Keep this.")
        await says(program, user("Keep this, too."), model="main@mine")
        for number in range(4):
            await says(program, user(f"question {number}"))
        assert len(await histories(server)) == 2
        on = await program.responses.create(
            model="main", input="On?", previous_response_id=stored.id
        )
        assert on.output_text == "Yes."
    names = [row.name for row in await server.workspace.conversations("main").list()]
    assert names == ["Keep this.", "mine"]


async def test_requests_of_one_token_push_out_no_response_of_another(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_KEPT", 2)
    server = await served([Say("Yes.")] * 6)
    async with (
        client(server, await server.token("one", "chat")) as one,
        client(server, await server.token("two", "chat")) as two,
    ):
        stored = await one.responses.create(model="main", input="Keep this.")
        for number in range(4):
            await two.responses.create(model="main", input=f"question {number}")
        on = await one.responses.create(model="main", input="On?", previous_response_id=stored.id)
    assert on.output_text == "Yes."


async def test_a_history_that_grows_begins_with_the_prompt_that_an_endpoint_has_in_its_cache(
    served: Serve,
) -> None:
    server = await served([Say("Yes.")] * 3)
    messages: list[Any] = []
    async with client(server) as program:
        for number in range(3):
            messages.append(user(f"question {number}"))
            messages.append(reply(await says(program, *messages)))
    first, second, third = (request.body["messages"] for request in server.model.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


GROWS = {"function_name": "count_vowels", "function_code_with_docstring": VOWELS}


async def test_a_function_grows_and_is_used_by_a_program_that_sends_its_whole_history(
    served: Serve,
) -> None:
    tasks = "### Task: suggest a title for the chat.\n<chat_history>\nUSER: How many vowels?\n</chat_history>"
    script = [
        Ask(Wanted("create_function", GROWS)),
        Ask(Wanted("count_vowels", {"text": "queueing"})),
        Expect(Say("There are five."), contains("5")),
        Say("Vowels"),
        Expect(
            Ask(Wanted("count_vowels", {"text": "rhythm"})),
            shows("count_vowels"),
            has_once("How many"),
        ),
        Expect(Say("None."), has_once("There are five.")),
    ]
    server = await served(script)

    async def streamed(*messages: Any) -> str:
        body = {"model": "main", "messages": [*messages], "stream": True}
        answer = await server.client.post(CHAT, json=body)
        rows = [
            json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: {")
        ]
        return "".join(row["choices"][0]["delta"].get("content") or "" for row in rows)

    asked = user("How many vowels does 'queueing' have?")
    assert await streamed(asked) == "There are five."
    assert await streamed(user(tasks)) == "Vowels"  # as Open WebUI asks next to each chat
    assert await streamed(asked, reply("There are five."), user("And 'rhythm'?")) == "None."
    assert len(await histories(server)) == 3
    functions = (await server.client.get("/api/v1/functions")).json()["functions"]
    assert [row["calls"] for row in functions if row["name"] == "count_vowels"] == [2]


REFUSED: tuple[tuple[dict[str, Any], int], ...] = (
    ({"model": "nobody"}, 404),
    ({"messages": []}, 400),
    ({"messages": [{"role": "assistant", "content": "I end it"}]}, 400),
    (
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
            ]
        },
        400,
    ),
)


async def test_what_cannot_be_done_is_told_in_the_clients_form(unchanged: Served) -> None:
    async with client(unchanged, unchanged.key) as program:
        for options, status in REFUSED:
            with pytest.raises(openai.APIStatusError) as refused:
                await program.chat.completions.create(
                    **{"model": "main", "messages": [user("hello")], **options}
                )
            assert refused.value.status_code == status, options
            assert isinstance(refused.value.body, dict)
            assert refused.value.body["message"]
    async with client(unchanged, await unchanged.token("reader", "read")) as program:
        with pytest.raises(openai.PermissionDeniedError):
            await program.chat.completions.create(model="main", messages=[user("hello")])


async def test_a_stream_has_pieces_what_happened_and_the_usage(served: Serve) -> None:
    server = await served(
        [Ask(Wanted("count_vowels", {"text": "queueing"})), Say("There are five.")]
    )
    await server.save("letters.py", VOWELS)
    async with client(server) as program:
        stream = await program.chat.completions.create(
            model="main",
            messages=[user("How many?")],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        == "There are five."
    )
    own = [(chunk.model_extra or {}).get("knapper", {"events": []}) for chunk in chunks]
    happened = [event["type"] for field in own for event in field["events"]]
    assert happened == ["call", "answer", "turn_ended"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage


async def answers(asked: Iterable[asyncio.Task[str]]) -> set[str]:
    """Return the different answers to some requests."""
    return set(await asyncio.gather(*asked))


async def test_a_request_that_is_repeated_while_it_is_answered_is_answered_once(
    served: Serve,
) -> None:
    slow = [Say(f"{name} is answered here.", pause_s=0.2) for name in ("One", "Two", "Three")]
    server = await served([*slow, Say("Later.")])
    async with (
        client(server) as program,
        client(server, await server.token("other", "chat")) as other,
        TaskGroup() as at,
    ):

        def ask(
            text: str, of: openai.AsyncOpenAI = program, model: str = "main"
        ) -> asyncio.Task[str]:
            return at.create_task(says(of, user(text), model=model))

        async def seen(count: int) -> None:
            while len(server.model.requests) < count:  # noqa: ASYNC110 - the model tells nobody
                await asyncio.sleep(0.01)

        first = ask("Hello")
        await seen(1)
        assert await answers([first, ask("Hello")]) == {"One is answered here."}
        assert len(await histories(server)) == 1
        first = ask("Hi", model="main@desk")
        await seen(2)
        between = ask("Ho", other, "main@desk")
        await asyncio.sleep(0.1)
        assert await answers([first, ask("Hi", model="main@desk")]) == {"Two is answered here."}
        assert await between == "Three is answered here."
        assert await says(program, user("Hello")) == "Later.", (
            "it was answered, so this is a greeting of its own"
        )


async def test_a_conversation_with_a_waiting_message_is_kept(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_KEPT", 2)
    server = await served([Say("Echo.", pause_s=0.05)] * 6, runner__slots=1)
    async with client(server) as program:
        asked = [says(program, user(f"question {n}")) for n in range(5)]
        assert await asyncio.wait_for(asyncio.gather(*asked), 30) == ["Echo."] * 5
        await says(program, user("one more"))
    assert len(await histories(server)) == 2


async def test_a_token_has_a_limited_number_of_named_conversations(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_MOST_NAMED", 1)
    server = await served([Say("Yes.")] * 4)
    async with client(server) as program:
        for text in ("one", "two"):
            assert await says(program, user(text), model="main@mine") == "Yes."
        for whom in ("", "ada"):  # whom the token serves makes no difference
            with pytest.raises(openai.BadRequestError, match="of this token, which is the most"):
                await program.chat.completions.create(
                    model="main@another", messages=[user("three")], user=whom
                )
        asked = {"model": "main@another", "messages": [user("three")]}
        assert (await server.client.post(CHAT, json=asked)).status_code == 200, "another token"
        assert (await server.client.delete(f"{ROOMS}/mine")).is_success
        assert await says(program, user("three"), model="main@another") == "Yes."


async def test_who_waits_in_a_deleted_conversation_is_told(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_WAIT_S", 0.2)
    server = await served([])
    desk = await server.begin_as_before("desk")
    await server.client.post(f"/api/v1/agents/{desk}/pause")
    body: dict[str, Any] = {"model": "main@desk", "messages": [user("Hello")]}
    asking = asyncio.create_task(server.client.post("/v1/chat/completions", json=body))
    await until(lambda: server.workspace.store.waiting(desk))
    assert (await server.client.delete(f"/api/v1/agents/{desk}")).status_code == 200
    assert "the conversation was deleted" in (await asyncio.wait_for(asking, 10)).text


async def test_of_idle_agents_the_oldest_are_closed_first(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_host, "_MOST_IDLE", 2)
    server = await served([*[Say("Yes.")] * 3, Expect(Say("Apples."), contains("I like apples"))])
    async with client(server) as program:
        for name in ("a", "b", "c"):
            await says(program, user("I like apples"), model=f"main@{name}")
        with pytest.raises(AgentBusy):
            await server.workspace.agent("main", conversation="c")
        async with await server.workspace.agent("main", conversation="a"):
            pass
        assert await says(program, user("What?"), model="main@a") == "Apples."


async def test_a_response_goes_on_from_the_one_before(served: Serve) -> None:
    server = await served([Say("Hello."), Expect(Say("Apples."), has_once("I like apples"))])
    async with client(server) as program:
        first = await program.responses.create(
            model="main", input="I like apples", instructions="Be brief."
        )
        assert (first.status, first.output_text) == ("completed", "Hello.")
        async with client(server, await server.token("other", "chat")) as other:
            someone: dict[str, Any] = {"user": "ada"}
            for who, more in ((other, {}), (program, someone)):
                with pytest.raises(openai.BadRequestError, match="no response"):
                    await who.responses.create(
                        model="main", input="?", previous_response_id=first.id, **more
                    )
        second = await program.responses.create(
            model="main", input="What?", previous_response_id=first.id
        )
        assert second.output_text == "Apples."
        assert second.usage
        with pytest.raises(openai.BadRequestError):
            await program.responses.create(
                model="main", input="What?", previous_response_id=first.id
            )


async def histories(server: Served) -> list[str]:
    """Return the histories that programs sent and that are kept, oldest first."""
    return [name for name in await server.workspace.agent_names() if "--chat-" in name]


async def test_a_group_is_a_model_with_one_conversation(served: Serve) -> None:
    cast = Cast(lambda name, number: [f"Says {name}. DONE", f"Again {name}. DONE"][number])
    server = await served(playing(cast))
    group_file(server.workspace.root, 'stop = { text = "DONE" }')
    async with client(server) as program:
        first = await program.chat.completions.create(model="team", messages=[user("@coder go")])
        said = first.choices[0].message.content or ""
        assert said == "Says coder. DONE"
        messages = [user("@coder go"), reply(said), user("@critic and you?")]
        stream = await program.chat.completions.create(model="team", messages=messages, stream=True)
        text = "".join(
            [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        )
    assert text == "Again critic. DONE"
    assert cast.spoken == ["coder", "critic"]


async def test_a_turn_that_waits_for_a_yes_says_so_in_the_stream_and_goes_on_with_it(
    served: Serve,
) -> None:
    server = await served([Ask(Wanted("first_line", {"path": "notes.txt"})), Say("Hello.")] * 2)
    (server.workspace.root / "notes.txt").write_text("hello\nworld\n")
    await server.save("files.py", READS)
    program = await server.as_("program", "chat", agents=("main",))
    owner = await server.as_("owner", "approve", agents=("main",))
    asks = "What does notes.txt say first?"
    for path, asked in (
        ("chat/completions", {"messages": [user(asks)]}),
        ("responses", {"input": asks}),
    ):
        body, heard = {"model": "main", **asked, "stream": True}, list[str]()
        async with asyncio.timeout(60), program.stream("POST", f"/v1/{path}", json=body) as got:
            async for line in got.aiter_lines():
                heard.append(line)
                if '"grant_asked"' in line:
                    (question,) = (await owner.get("/api/v1/approvals")).json()["approvals"]
                    answer = await owner.post(
                        f"/api/v1/approvals/{question['id']}", json={"answer": "once"}
                    )
                    assert answer.status_code == 200
        assert [
            sum(f'"{kind}"' in line for line in heard) for kind in ("grant_asked", "grant_answered")
        ] == [1, 1]
        assert "Hello." in " ".join(heard), path


async def test_a_conversation_of_a_program_changes_no_memory_of_the_agent(served: Serve) -> None:
    script = [Say("Hello."), Expect(Say("Hi."), has_no("memory was changed"))]
    server = await served(script)
    async with client(server) as program:
        assert await says(program, user("first question")) == "Hello."
    await server.said("Hello?")
