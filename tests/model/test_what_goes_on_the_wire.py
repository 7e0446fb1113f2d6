"""Messages become what every server accepts, and nothing else leaves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.messages import Answer, Assistant, Call, Message, Notice, System, User
from agent_core.model import FunctionShown
from agent_core.model.wire import InvalidRequest, RequestWriter, functions_to_wire
from tests.kit.rules import fault
from tests.model.asking import to_wire

texts = st.text(st.characters(), max_size=20)
calls = st.builds(Call, id=st.uuids().map(str), name=texts, arguments=texts | st.just('{"a": 1}'))


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """Draw a reply with its calls, each answered, in any order."""
    reply = draw(st.builds(Assistant, text=texts, calls=st.lists(calls, max_size=3).map(tuple)))
    answers: list[Message] = [Answer(call.id, call.name, draw(texts)) for call in reply.calls]
    return [reply, *draw(st.permutations(answers))]


plain = st.one_of(st.builds(User, texts), st.builds(Notice, texts), st.builds(System, texts)).map(
    lambda one: [one]
)
conversations = st.lists(st.one_of(plain, exchanges()), max_size=6).map(
    lambda parts: [User("Hello."), *(message for part in parts for message in part)]
)


@given(conversations)
def test_every_valid_conversation_is_one_that_servers_take(conversation: list[Message]) -> None:
    assert fault({"messages": json.loads(RequestWriter().messages(conversation))}) is None


@given(conversations, conversations)
def test_what_the_writer_remembers_never_changes_what_it_writes(
    first: list[Message], more: list[Message]
) -> None:
    writer = RequestWriter()
    writer.messages(first)
    assert writer.messages([*first, *more]) == RequestWriter().messages([*first, *more])


def test_a_conversation_that_servers_refuse_never_leaves() -> None:
    rows: list[tuple[list[Message], str]] = [
        ([Assistant("", (Call("c1", "f", "{}"),))], "c1 have no answer"),
        ([Assistant("", (Call("c1", "f", "{}"),)), User("x")], "a User message follows"),
        ([Answer("c1", "f", "x")], "has no call before it"),
        (
            [
                Assistant("", (Call("c1", "f", "{}"),)),
                Answer("c1", "f", "x"),
                Answer("c1", "f", "x"),
            ],
            "has no call before it",
        ),
        ([Assistant("", (Call("c1", "f", ""), Call("c1", "g", "")))], "ids of their own"),
    ]
    for messages, says in rows:
        with pytest.raises(InvalidRequest, match=says):
            to_wire(messages)


def test_roles_alternate_as_strict_templates_want() -> None:
    rows: list[tuple[str, list[Message], list[object]]] = [
        (
            "neighbours-of-the-user-are-one",
            [User("a"), Notice("b"), User("c")],
            [{"role": "user", "content": "a\n\n[Knapper] b\n\nc"}],
        ),
        (
            "system-comes-first",
            [User("a"), System("s")],
            [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}],
        ),
        (
            "neighbouring-replies-are-one",
            [User("a"), Assistant("b"), Assistant("c")],
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b\n\nc"}],
        ),
    ]
    for case, messages, expected in rows:
        assert to_wire(messages) == expected, case


def test_a_broken_call_is_sent_in_a_valid_form() -> None:
    rows: list[tuple[str, str, str, str, str]] = [
        ("whole", "add", '{"a": 1}', "add", '{"a": 1}'),
        ("cut-arguments", "add", '{"a": ', "add", "{}"),
        ("not-a-number", "add", '{"a": NaN}', "add", "{}"),
        ("deeply-nested", "add", '{"a":' * 100_000, "add", "{}"),
        ("broken-name", "my functions.add!", "{}", "my_functions_add_", "{}"),
        ("long-name", "x" * 80, "{}", "x" * 64, "{}"),
    ]
    for case, name, arguments, sent_name, sent_arguments in rows:
        entry = to_wire([Assistant("", (Call("c1", name, arguments),)), Answer("c1", name, "x")])[0]
        assert entry["content"] is None, case
        assert entry["tool_calls"][0]["function"] == {
            "name": sent_name,
            "arguments": sent_arguments,
        }, case


def test_functions_that_servers_refuse_are_never_shown() -> None:
    for names in [
        ["web.read"],
        ["größe"],
        ["x" * 65],
        ["add", "add"],
        [f"f{n}" for n in range(129)],
    ]:
        with pytest.raises(InvalidRequest):
            functions_to_wire([FunctionShown(name, "…", {}) for name in names])


def test_half_a_surrogate_pair_does_not_stop_a_request() -> None:
    assert json.loads(RequestWriter().messages([User("a\ud800b")]))[0]["content"] == "a?b"
