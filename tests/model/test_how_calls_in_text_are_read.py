"""A call that a model writes as text is read in every common format, but never from an example or a quotation."""

import json
from collections.abc import Callable, Mapping
from itertools import product
from typing import TypeAlias

import pytest

from agent_core.model import Reply, TextPiece
from agent_core.model.reading import (
    Holder,
    attached_call,
    marked_function,
    read_text,
    unwrapped,
    written_calls,
)
from agent_core.model.splitter import Splitter
from tests.kit import Ask, Say, ScriptedModel, Wanted
from tests.kit.pace import time_of
from tests.model.asking import ask, ask_reply

Scripted = Callable[..., ScriptedModel]
Case: TypeAlias = tuple[str, tuple[tuple[str, Mapping[str, object]], ...], str]
SHOWN = {"count_vowels": ("text",), "add": ("a", "b"), "now": (), "label": ("name", "text")}
ONE = '{"name": "count_vowels", "arguments": {"text": "x"}}'
TWO = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
VOWELS: tuple[str, Mapping[str, object]] = ("count_vowels", {"text": "x"})
SUM: tuple[str, Mapping[str, object]] = ("add", {"a": 1, "b": 2})


NAMED: tuple[str, Mapping[str, object]] = ("label", {"name": "n", "text": "x"})
HTML: tuple[str, Mapping[str, object]] = ("count_vowels", {"text": "<b>x</b>"})
WIRE = {"type": "function", "function": {"name": "count_vowels", "arguments": '{"text":"x"}'}}


def case(
    _name: str, text: str, *calls: tuple[str, Mapping[str, object]], lead_in: str = ""
) -> Case:
    return text, calls or (VOWELS,), lead_in


READ = [
    case("bare", ONE),
    case("list", f"[{ONE}, {TWO}]", VOWELS, SUM),
    case("fenced", f"```json\n{ONE}\n```"),
    case("fence-named-tool-call", f"```tool_call\n{ONE}\n```"),
    case("tagged", f"<tool_call>\n{ONE}\n</tool_call>"),
    case("several-in-one-tag", f"<tool_calls>[{ONE}, {TWO}]</tool_calls>", VOWELS, SUM),
    case("tag-never-closed", f"<tool_call>\n{ONE}"),
    case(
        "tag-after-lead-in",
        f"Sure, I can do that.\n\n<tool_call>{ONE}</tool_call>",
        lead_in="Sure, I can do that.",
    ),
    case("mistral-mark", f"[TOOL_CALLS] [{ONE}]"),
    case("llama-mark", f"<|python_tag|>{ONE}"),
    case("llama-function", '<function=count_vowels>{"text": "x"}</function>'),
    case(
        "qwen-coder",
        "<tool_call>\n<function=count_vowels>\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>",
    ),
    case("python", 'count_vowels(text="x")'),
    case("python-list", "[count_vowels(text='x'), add(1, b=2)]", VOWELS, SUM),
    case("python-list-in-a-fence", "```python\n[count_vowels(text='x')]\n```"),
    case("python-dictionary", "{'name': 'count_vowels', 'arguments': {'text': 'x'}}"),
    case(
        "trebly-encoded",
        json.dumps({"name": "count_vowels", "arguments": json.dumps('{"text": "x"}')}),
    ),
    case("parameters", '{"name": "count_vowels", "parameters": {"text": "x"}}'),
    case("beside-under-function", '{"function": "label", "name": "n", "text": "x"}', NAMED),
    case("wire-shape", json.dumps(WIRE)),
    case("other-case", '{"name": "Count_Vowels", "arguments": {"text": "x"}}'),
    case("camel-case", "countVowels(text='x')"),
    case("newline-in-a-string", ONE.replace('"x"', '"a\nb"'), ("count_vowels", {"text": "a\nb"})),
    case(
        "glm",
        "<tool_call>count_vowels\n<arg_key>text</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    ),
    case(
        "glm-two-calls",
        "<tool_call>count_vowels<arg_key>text</arg_key><arg_value>x</arg_value></tool_call><tool_call>now</tool_call>",
        VOWELS,
        ("now", {}),
    ),
    case(
        "deepseek-v3",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>count_vowels\n```json\n"
        '{"text": "x"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ),
    case(
        "deepseek-v3.1",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>count_vowels<｜tool▁sep｜>{"text": "x"}<｜tool▁call▁end｜>',
    ),
    case(
        "deepseek-v4",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="add">\n'
        '<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="b" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        SUM,
    ),
    case(
        "kimi",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.count_vowels:0<|tool_call_argument_begin|>"
        '{"text": "x"}<|tool_call_end|><|tool_calls_section_end|>',
    ),
    case(
        "gpt-oss",
        '<|channel|>commentary to=functions.count_vowels <|constrain|>json<|message|>{"text": "x"}<|call|>',
    ),
    case(
        "minimax",
        '<minimax:tool_call>\n<invoke name="count_vowels">\n<parameter name="text">x</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
    ),
    case(
        "invoke-alone", '<invoke name="count_vowels"><parameter name="text">x</parameter></invoke>'
    ),
    case("gemma-4", '<|tool_call>call:count_vowels{text:<|"|>x<|"|>}<tool_call|>'),
    case("gemma-3", "```tool_code\nprint(count_vowels(text='x'))\n```"),
    case("mistral-v11", '[TOOL_CALLS]count_vowels[ARGS]{"text": "x"}'),
    case("mistral-with-an-id", '[TOOL_CALLS]count_vowels[CALL_ID]a1b2c3d4e[ARGS]{"text": "x"}'),
    case("lfm2", "<|tool_call_start|>[count_vowels(text='x')]<|tool_call_end|>"),
    case("llama-4", "<|python_start|>[count_vowels(text='x')]<|python_end|><|eom|>"),
    case(
        "seed",
        "<seed:tool_call><function=count_vowels><parameter=text>x</parameter></function></seed:tool_call>",
    ),
    case("nemotron", f"<TOOLCALL>[{ONE}]</TOOLCALL>"),
    case(
        "command-a",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "add", "parameters": {"a": 1, "b": 2}}]<|END_ACTION|>',
        SUM,
    ),
    case("apertus", '<|tools_prefix|>[{"add": {"a": 1, "b": 2}}]<|tools_suffix|>', SUM),
    case(
        "qwen-without-its-opening",
        "<function=count_vowels>\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>",
    ),
    case(
        "qwen-unclosed",
        "<tool_call>\n<function=label>\n<parameter=name>\nn\n<parameter=text>\nx\n</function>",
        NAMED,
    ),
    case("react", 'Action: count_vowels\nAction Input: {"text": "x"}'),
    case(
        "of-no-family",
        '<tool_use>\n<name>count_vowels</name>\n<arguments>{"text": "x"}</arguments>\n</tool_use>',
    ),
    case("an-element-of-its-name", "<count_vowels>\n<text>x</text>\n</count_vowels>"),
    case(
        "marks-in-a-value",
        "<function=count_vowels><parameter=text><b>x</b></parameter></function>",
        HTML,
    ),
    case("marks-in-an-object", '<function=count_vowels>{"text": "<b>x</b>"}</function>', HTML),
    case("no-arguments-in-a-tag", '<tool_call>{"name": "now"}</tool_call>', ("now", {})),
]

TEXT = {
    "text-after": f"{ONE}\nThat is a call.",
    "inline-code": "`count_vowels(text='x')`",
    "fence-of-an-example": f"For example, you can call it like this:\n```json\n{ONE}\n```",
    "fence-with-text-after": f"I'll call it.\n```json\n{ONE}\n```\nThis is how it works.",
    "python-program": "```python\nn = count_vowels(text='x')\nprint(n)\n```",
    "tag-in-a-sentence": f"Models write <tool_call>{ONE}</tool_call>",
    "tag-with-text-after": f"<tool_call>{ONE}</tool_call>\nThis calls count_vowels.",
    "tag-after-long-text": f"{'Word. ' * 50}\n<tool_call>{ONE}</tool_call>",
    "not-shown": ONE.replace("count_vowels", "count_consonants"),
    "one-not-shown": f"[{ONE}, {TWO.replace('add', 'sub')}]",
    "data-with-a-name": '{"name": "add", "age": 3}',
    "more-than-a-call": '{"name": "add", "arguments": {}, "why": 1}',
    "call-in-a-call": "add(a=count_vowels(text='x'), b=2)",
    "arguments-by-star": "add(**{'a': 1})",
    "number-without-json": '{"name": "add", "arguments": {"a": NaN}}',
    "letters-before-a-name": "ÀADD()",
    "arguments-are-text": '{"name": "add", "arguments": "a"}',
}


def test_a_call_in_any_usual_form_is_a_call() -> None:
    for text, calls, lead_in in READ:
        read = read_text(text, SHOWN)
        assert read is not None, text
        assert [(found.name, json.loads(found.arguments)) for found in read.calls] == list(calls), (
            text
        )
        assert read.lead_in == lead_in, text


def test_what_is_quoted_explained_or_something_else_is_no_call() -> None:
    for text in TEXT.values():
        assert read_text(text, SHOWN) is None, text


def test_a_fence_after_words_is_no_call_yet_in_any_language() -> None:
    for call in [f"```json\n{ONE}\n```", "```python\ncount_vowels(text='x')\n```"]:
        for words in [
            "I'll count them now.",
            "Ich zähle sie jetzt:",
            "我现在来数。",
            "A call looks like this:",
        ]:
            assert read_text(f"{words}\n{call}", SHOWN) is None, call
            assert attached_call(f"{words}\n{call}", SHOWN) == "count_vowels", call


def test_what_has_no_words_or_many_before_it_is_not_attached() -> None:
    for text in [
        ONE,
        "Use it.",
        f"{'Word. ' * 50}\n```json\n{ONE}\n```",
        "Here:\n```json\n{}\n```",
    ]:
        assert attached_call(text, SHOWN) == "", text


def test_a_call_is_never_shown_as_text_while_it_comes() -> None:
    for (text, _, lead_in), size in product(READ, (1, 7, 1000)):
        holder = Holder(SHOWN)
        passed = "".join(
            holder.feed(text[start : start + size]) for start in range(0, len(text), size)
        )
        assert passed.strip() == lead_in, (text, size)


def test_ordinary_text_is_passed_on_as_it_comes() -> None:
    for text in [
        "Adding is easy.",
        "Here it is:\n```python\nprint(1)\n```",
        "[1] is a source.",
        "{curly} braces",
    ]:
        holder = Holder(SHOWN)
        assert "".join(map(holder.feed, text)).startswith(text[: len(text) - 3]), text


@pytest.mark.timeout(10)
def test_noise_without_end_is_read_in_no_time() -> None:
    for noise in ["<tool_call>", "```\n```\n", "<parameter=a>", "[", "{'a':", "add("]:
        assert read_text(noise * 20_000, SHOWN) is None, noise
        assert read_text(f"<function=add>{noise * 20_000}</function>", SHOWN) is None, noise


def test_marks_of_an_end_without_end_take_a_time_that_grows_with_their_number() -> None:
    def read(count: int) -> float:
        splitter = Splitter()
        splitter.feed("Well, I say <think>" + "</s> " * count)
        return time_of(splitter.rest)

    few, many = read(10_000), read(80_000)
    assert many / few <= 20, (few, many)  # the square would be 64


def test_arguments_encoded_twice_are_taken_out_of_their_text() -> None:
    rows: list[tuple[str, str, str]] = [
        ("twice", '"{\\"a\\": 1}"', '{"a": 1}'),
        ("thrice", json.dumps(json.dumps('{"a": 1}')), '{"a": 1}'),
        ("broken", '"broken', '"broken'),
    ]
    for case, given, expected in rows:
        assert unwrapped(given) == expected, case


def test_marks_around_the_name_of_a_function_are_found_anywhere_but_in_code() -> None:
    for text in [
        f"I add.<tool_call>{ONE}</tool_call>",
        f"{'Word. ' * 50}\n<tool_call>{ONE}</tool_call>",
        f"<tool_call>{ONE}</tool_call>\nThis counts.",
        'Thought: I count.\nAction: count_vowels\nAction Input: {"text": "x"}\nObservation: 1',
        "Then <|go|>count_vowels<|with|> x",
        '<call_it name="count_vowels">x</call_it> and more',
    ]:
        assert read_text(text, SHOWN) is None, text
        assert marked_function(text, SHOWN) == "count_vowels", text
    for text in [
        "Use `<tool_call>count_vowels</tool_call>`.",
        "```\n<tool_call>count_vowels</tool_call>\n```",
        "<p>The <b>count_vowels</b> function.</p>",
        "[NOTE] count_vowels is fine.",
        '<label name="now">Now</label>',
        "<tool_call>something else</tool_call>",
    ]:
        assert marked_function(text, SHOWN) == "", text


UNKNOWN = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
WRITTEN = [
    UNKNOWN,
    f"```json\n{UNKNOWN}\n```",
    f"<tool_call>\n{UNKNOWN}\n</tool_call>",
    "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>",
    'get_weather(city="Paris")',
    'functions.get_weather("Paris")',
    '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}',
    '{"name": "get_weather", "arguments": {"city": """Paris"""}}',
    '{"thought": "t", "call": {"name": "get_weather", "arguments": {}}}',
]
NOT_WRITTEN = [
    '{"name": "Bob", "age": 3}',
    "```python\nget_weather('Paris')\n```",
    "re.sub(pattern='a', repl='b', string='c')",
    "slugify('A b') gives 'a-b'.",
    '{"thought": "t", "reply": "no call"}',
]


def test_the_text_of_a_call_of_any_function_is_known_as_one() -> None:
    for text in WRITTEN:
        assert written_calls(text) == ("get_weather",), text
    for text in NOT_WRITTEN:
        assert written_calls(text) == (), text


async def test_a_native_call_is_fixed_in_the_same_ways(scripted: Scripted) -> None:
    server = scripted([Ask(Wanted("ADD", json.dumps('{"a": 1}')))])
    reply = await ask_reply(server)
    assert [(call.name, call.arguments) for call in reply.calls] == [("add", '{"a": 1}')]


async def test_the_lead_in_stays_text_beside_its_call(scripted: Scripted) -> None:
    *pieces, reply = await ask(
        scripted([Say('Let me add.\n<tool_call>{"name": "add", "arguments": {}}</tool_call>')])
    )
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish, len(reply.calls)) == ("Let me add.", "calls", 1)
    assert (
        "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).strip()
        == "Let me add."
    )
