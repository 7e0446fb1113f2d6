"""The prompt of a small model: a fixed start, its own steps as objects, and functions shown where they help."""

import asyncio
import json
from dataclasses import replace

from agent_core.base.messages import Answer, Assistant, Call, Message, System, User
from agent_core.memory.embedding import embedder
from agent_core.model import FunctionShown, Request
from knapper_ext.local.conversation import (
    Entry,
    WireConversation,
    compared,
    find,
    line,
    trim,
)

TEXT = {"type": "string"}


def shown(name: str, description: str, *required: str, **optional: object) -> FunctionShown:
    properties = {**dict.fromkeys(required, TEXT), **optional}
    return FunctionShown(
        name, description, {"type": "object", "properties": properties, "required": [*required]}
    )


CREATE = shown(
    "create_function",
    "Make a function.",
    "function_name",
    "function_code_with_docstring",
    module_name=TEXT,
    reason=TEXT,
)
CONFIRM = shown("confirm_function", "Take it.", "function_name")
EDIT = shown("edit_function", "Change it.", "function_name", "old_text", "new_text")
WORDS = shown("count_words", "Count the words of a text.", "text")
SLUG = shown("slug", "Turn a title into an address.", "title")
KEEP = shown("core_memory_append", "Add a fact.", "name", "content")
ALL = (CREATE, CONFIRM, EDIT, WORDS, SLUG)
START: tuple[Message, ...] = (System("Be kind."), User("How long is this?"))
MADE: tuple[Message, ...] = (
    *START,
    Assistant("", (Call("1", "create_function", '{"function_name":"size"}'),), "I make it."),
    Answer(
        "1",
        "create_function",
        "`size` is not made yet. Call confirm_function(function_name='size').",
    ),
)


def requested(
    messages: tuple[Message, ...],
    functions: tuple[FunctionShown, ...] = ALL,
    excluded: frozenset[str] = frozenset(),
) -> Request:
    request = Request(messages, functions, excluded=excluded)
    texts, default = compared(request), embedder("wordllama")
    assert default is not None
    return replace(
        request, vectors=dict(zip(texts, asyncio.run(default.embed(texts)), strict=True))
    )


def write(*messages: Message, functions: tuple[FunctionShown, ...] = ALL) -> list[Entry]:
    return WireConversation().write(requested(messages, functions))


def names(*messages: Message, excluded: frozenset[str] = frozenset()) -> set[str]:
    conversation, request = WireConversation(), requested(messages, excluded=excluded)
    conversation.write(request)
    return {function.name for function in conversation.callable_now(request)}


def test_each_step_only_adds_to_what_was_written_before() -> None:
    conversation, size = WireConversation(), shown("size", "The size of a text.", "text")
    before = conversation.write(Request(START, ALL))
    after = conversation.write(Request(MADE, ALL))
    joined = Answer("2", "confirm_function", "`size` joined.")
    confirmed = (*MADE, Assistant("", (Call("2", "confirm_function", "{}"),)), joined)
    last = conversation.write(Request(confirmed, (*ALL, size)))
    assert after[: len(before)] == before
    assert last[: len(after)] == after


def test_parallel_calls_of_another_model_stand_each_before_its_answer() -> None:
    calls = (Call("1", "slug", '{"title":"A"}'), Call("2", "slug", "broken"))
    entries = write(
        User("a"), Assistant("I try.", calls), Answer("1", "slug", "a"), Answer("2", "slug", "bad")
    )
    first, result, second, _ = entries[-4:]
    assert json.loads(first["content"]) == {
        "thought": "I try.",
        "call": {"name": "slug", "arguments": {"title": "A"}},
    }
    assert result["content"].startswith("Result of slug: a")
    assert json.loads(second["content"])["call"]["arguments"] == {}


def test_a_user_who_wants_a_function_is_shown_an_old_one_only_if_it_does_that() -> None:
    rows: list[tuple[str, str, set[str]]] = [
        ("nothing-does-it", "I want a new function: it turns miles into kilometers.", set()),
        (
            "one-does-it-already",
            "Make a function that counts the words of a text.",
            {"count_words"},
        ),
        ("in-german", "Schreib eine Funktion, die Minuten in Stunden umrechnet.", set()),
    ]
    for case, message, shown_with_it in rows:
        assert names(User(message)) == {"create_function", *shown_with_it}, case


def test_confirming_can_be_called_only_where_an_answer_offers_it() -> None:
    rows: list[tuple[str, tuple[Message, ...], tuple[str, ...], set[str]]] = [
        ("at-first", START, (), {"create_function"}),
        ("named-by-the-last-answer", MADE, (), {"create_function", "confirm_function"}),
        ("excluded", MADE, ("create_function",), {"confirm_function"}),
        ("no-longer-named", (*MADE, Assistant("No."), User("Go on.")), (), {"create_function"}),
    ]
    for case, messages, excluded, expected in rows:
        assert names(*messages, excluded=frozenset(excluded)) == expected, case


def test_a_line_says_the_value_that_an_optional_parameter_has_without_a_call_for_it() -> None:
    bound, size = (
        {"type": "number", "default": -1.0},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    )
    function = shown(
        "sizes",
        "Sizes of texts.",
        "text",
        above=bound,
        most={**size, "default": None},
        end={**TEXT, "default": ""},
    )
    assert line(function).startswith(
        "sizes(text: string, above?: number = -1.0, most?: integer | null, end?: string) - "
    )
    words, is_wide = {"default": ["word"] * 500}, {"type": "boolean", "default": False}
    assert (
        line(shown("short", "", words=words, is_wide=is_wide))
        == "short(words?: any = …, is_wide?: boolean)"
    )
    created = shown(
        "create_function", "", "source", from_program={"type": "boolean", "default": True}
    )
    created = trim(created, "create_function(from_program=true)")
    assert line(created) == "create_function(source: string, from_program: boolean)"


def test_functions_are_found_by_the_words_of_a_message() -> None:
    rows: list[tuple[str, str, list[str]]] = [
        ("by-its-name", "How many words are in this text?", ["count_words"]),
        ("by-its-description", "Turn this title into an address.", ["slug"]),
        ("by-what-is-to-be-done", "Please change the code of slug.", ["edit_function", "slug"]),
        ("nothing", "Hello there!", []),
        ("a-tool-that-is-there", "Make a tool that counts the words of my notes.", ["count_words"]),
        ("one-that-is-named-in-any-language", "Lösche slug, bitte.", ["edit_function", "slug"]),
    ]
    for case, message, found in rows:
        functions = (EDIT, WORDS, SLUG)
        vectors = requested((User(message),), functions).vectors
        assert [each.name for each in find(message, functions, vectors)] == found, case


def test_after_an_edit_of_memory_a_function_can_be_made_only_if_the_message_brought_one_up() -> (
    None
):
    rows: list[tuple[str, str, bool]] = [
        ("a-fact", "I moved to Ulm.", False),
        ("brings-up-a-function", "I moved to Ulm. And count the words of this text.", True),
    ]
    for case, asked, offers in rows:
        kept = Assistant(
            "",
            (Call("1", "core_memory_append", '{"name":"human","content":"Lives in Ulm."}'),),
            "I keep it.",
        )
        messages = (
            System("Be kind."),
            User(asked),
            kept,
            Answer("1", "core_memory_append", "Added as line 1."),
        )
        functions = (*ALL, KEEP)
        conversation, request = WireConversation(), requested(messages, functions)
        told = conversation.write(request)[-1]["content"]
        assert told.endswith("Take out what no longer holds, else reply to the user."), case
        offered = {function.name for function in conversation.callable_now(request)}
        assert ("create_function" in offered, "core_memory_append" in offered) == (offers, True), (
            case
        )


def test_a_result_names_what_the_message_brought_up_and_was_not_called_yet() -> None:
    asked = User("Count the words of this text, and turn this title into an address.")

    def call(number: str, name: str, arguments: str = "{}") -> tuple[Message, ...]:
        return Assistant("", (Call(number, name, arguments),)), Answer(number, name, "3")

    first, second = call("1", "count_words"), call("2", "slug")
    last = [write(asked, *done)[-1]["content"] for done in (first, (*first, *second))]
    ends = [text.partition("\nNot called yet: ")[2] for text in last]
    assert ends == [
        "`slug`. Call what the request needs; then reply only with what a function returned.",
        "",
    ]
    often = [answer for number in range(9) for answer in call(str(number), "count_words")]
    assert "".join(entry["content"] for entry in write(asked, *often)).count("Not called yet") == 6
    numbered = User(f"{asked.text} Do it for 103, 574 and 837.")
    for rows, is_open in (("[103]", True), ("[103, 574]", False), ("[103, 574, 837]", False)):
        answer = write(numbered, *call("1", "count_words", f'{{"rows": {rows}}}'))[-1]["content"]
        assert ("Not called yet" in answer, "reply now" in answer) == (is_open, not is_open), rows


def test_after_a_program_the_rest_of_the_turn_offers_to_make_a_function_of_it() -> None:
    create = shown("create_function", "Make it.", "function_name", from_program={"type": "boolean"})
    run = shown("run_program", "Run it.", "code")
    ran = (
        *START,
        Assistant("", (Call("1", "run_program", '{"code":"1"}'),)),
        Answer("1", "run_program", "1"),
    )
    cases: list[tuple[str, tuple[Message, ...], bool]] = [
        ("before", START, False),
        ("after", ran, True),
        ("in the next turn", (*ran, Assistant("1."), User("Thanks.")), False),
    ]
    for case, messages, is_offered in cases:
        conversation, request = WireConversation(), requested(messages, (create, run))
        last = conversation.write(request)[-1]["content"]
        (now,) = [
            each for each in conversation.callable_now(request) if each.name == "create_function"
        ]
        assert (
            "from_program" in now.parameters["properties"],
            "from_program?: boolean" in last,
        ) == ((is_offered,) * 2), case
