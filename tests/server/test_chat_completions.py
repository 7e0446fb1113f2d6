"""Programs that use chat completions, with OpenAI's real client."""

import asyncio
from asyncio import TaskGroup
from collections.abc import Iterable
from typing import Any

import openai
import pytest

from agent_core.base.errors import AgentBusy
from agent_core.interfaces.server import agent_host, chat_threads
from tests.agents.groups import Cast, group_file, playing
from tests.kit import Ask, Expect, Fail, Say, Wanted, contains
from tests.kit.desk import VOWELS
from tests.kit.waiting import until

from .conftest import Serve, Served
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


async def test_a_known_history_goes_on_and_another_begins_a_conversation_of_its_own(
    served: Serve,
) -> None:
    told = ("Answer in German.", "My name is Bob", "Nice to meet you")
    script = [
        *(Say("Hello."), Expect(Say("Twice."), has_once("first question"))),
        *(Fail(400, "no such thing"), Expect(Say("Now."), has_once("third question"))),
        Expect(Say("Left."), has_once("first question"), has_no("second question")),
        Expect(Say("Bob."), *map(contains, told), has_no("first question")),
    ]
    server = await served(script)
    async with client(server) as program:
        assert [model.id async for model in program.models.list()] == ["main"]
        begin = [user("first question"), reply(await says(program, user("first question")))]
        whole = [
            *begin,
            user("second question"),
            reply(await says(program, *begin, user("second question"))),
        ]
        with pytest.raises(openai.InternalServerError):
            await says(program, *whole, user("third question"))
        assert await says(program, *whole, user("third question")) == "Now.", "it is said once"
        assert await conversations(server) == 1
        assert await says(program, *begin, user("to the left")) == "Left."
        assert await conversations(server) == 2
        messages = [{"role": "system", "content": told[0]}, user(told[1]), reply(told[2])]
        assert await says(program, *messages, user("What is my name?")) == "Bob."


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
        assert await says(program, *messages) == "One two three four."
    assert await conversations(server) == 1


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
        assert await conversations(server) == 1
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
    assert await conversations(server) == 2


async def test_an_agent_has_a_limited_number_of_named_conversations(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_MOST_NAMED", 1)
    server = await served([Say("Yes.")] * 2)
    async with client(server) as program:
        for text in ("one", "two"):
            assert await says(program, user(text), model="main@mine") == "Yes."
    asked = {"model": "main@another", "messages": [user("three")]}
    refused = await server.client.post("/v1/chat/completions", json=asked)
    assert "main has 1 named conversations, which is the most." in refused.text


async def test_who_waits_in_a_deleted_conversation_is_told(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_threads, "_WAIT_S", 0.2)
    server = await served([])
    desk = (
        await server.client.post("/api/v1/agents/main/conversations", json={"name": "desk"})
    ).json()["agent"]
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
            await server.workspace.agent("main--c")
        async with await server.workspace.agent("main--a"):
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


async def conversations(server: Served) -> int:
    """Return the number of unnamed conversations."""
    return len([name for name in await server.workspace.agent_names() if "--chat-" in name])


SENT_BACK: tuple[Any, ...] = (  # Any: content
    "I look.\n\nThere are five.",
    "There are five.",
    [{"type": "text", "text": "I look."}, {"type": "text", "text": "There are five."}],
)


async def test_an_answer_is_known_in_whatever_form_it_is_sent_back(served: Serve) -> None:
    looks = Ask(Wanted("count_vowels", {"text": "queueing"}), text="I look.")
    server = await served(
        [looks, Say("There are five."), Expect(Say("Yes."), has_once("How many?"))] * len(SENT_BACK)
    )
    await server.save("letters.py", VOWELS)
    async with client(server) as program:
        for number, sent in enumerate(SENT_BACK, 1):
            messages = [user(f"How many? {number}")]
            stream = await program.chat.completions.create(
                model="main", messages=messages, stream=True
            )
            text = "".join(
                [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
            )
            assert text == "I look.\n\nThere are five."
            assert await says(program, *messages, reply(sent), user("Sure?")) == "Yes."
            assert await conversations(server) == number


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
