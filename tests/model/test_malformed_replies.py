"""Whatever a model writes: nothing crashes, nothing unrequested runs, and the next request is valid."""

import json
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.base.messages import Answer, Assistant, Message, User
from agent_core.model import Reply, TextPiece
from agent_core.model.reading import KnownNames, read_text
from agent_core.model.reply import TokenUsage
from agent_core.model.stream import Assembly
from tests.kit.drawing import drawn
from tests.kit.rules import fault
from tests.model.asking import to_wire

SHOWN: KnownNames = {"count_vowels": ("text",), "add": ("a", "b"), "now": ()}
names = st.sampled_from(
    ["add", "ADD", "count_vowels", "countVowels", "now", "rm", "functions.add", "", "add<|x|>"]
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)
keys = st.sampled_from(
    ["name", "arguments", "parameters", "function", "tool", "args", "text", "a", "b", "id", "type"]
)
arguments = st.one_of(
    st.dictionaries(keys, values, max_size=3), values, values.map(json.dumps).map(json.dumps)
)


@st.composite
def objects(draw: st.DrawFn) -> str:
    """Draw one call in JSON, or something similar."""
    call: dict[str, Any] = {draw(st.sampled_from(["name", "function", "tool"])): draw(names)}
    call[draw(keys)] = draw(arguments)
    call = draw(
        st.sampled_from(
            [call, {"type": "function", "function": call}, {"tool_calls": [call]}, [call, call]]
        )
    )
    return draw(
        st.sampled_from(
            [json.dumps(call), str(call), json.dumps(json.dumps(call)), json.dumps(call, indent=1)]
        )
    )


@st.composite
def pythons(draw: st.DrawFn) -> str:
    """Draw one call in Python, or something similar."""
    given = [
        draw(st.sampled_from(["", "a=", "text=", "**", "*"])) + repr(draw(values))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return f"{draw(names)}({', '.join(given)})"


calls = objects() | pythons()
MARKS = [
    "",
    "\n",
    "<tool_call>",
    "</tool_call>",
    "```json\n",
    "```\n",
    "\n```",
    "```python\n",
    "[TOOL_CALLS]",
]
MARKS += [
    "<|python_tag|>",
    "<function=add>",
    "</function>",
    "<parameter=a>",
    "</parameter>",
    "> ",
    "`",
    '"',
]
MARKS += ["For example:\n", "I'll add.\n", "functools", "<think>", "</think>", "Done."]
marks = st.sampled_from(MARKS)
AROUND = [
    "{}",
    "```json\n{}\n```",
    "<tool_call>{}</tool_call>",
    "```python\n{}\n```",
    "I'll add.\n<tool_call>\n{}",
]
fitting = st.dictionaries(st.sampled_from(["a", "b", "text"]), values, max_size=2)
good = st.builds(
    lambda name, given: json.dumps({"name": name, "arguments": given}),
    st.sampled_from([*SHOWN]),
    fitting,
)


@st.composite
def replies(draw: st.DrawFn) -> str:
    """Draw calls between or instead of markers of all kinds, perhaps damaged somewhere."""
    parts = draw(st.lists(marks | calls | good | st.text(max_size=5), min_size=1, max_size=7))
    around = draw(st.lists(st.sampled_from(AROUND), min_size=1, max_size=2))
    placed = "\n".join(each.format(draw(good | calls)) for each in around)
    text = draw(st.sampled_from([placed, placed, "".join(parts)]))
    start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    return draw(
        st.sampled_from([text, text, text, text[:end], text[start:], text[:start] + text[end:]])
    )


@st.composite
def chunks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw the chunks of one reply: text, native calls, and an end, all of them odd."""
    text, size = draw(replies()), draw(st.integers(1, 40))
    deltas: list[dict[str, Any]] = [
        {"content": text[at : at + size]} for at in range(0, len(text), size)
    ]
    if draw(st.integers(0, 3)) == 0:
        function = st.fixed_dictionaries(
            {}, optional={"name": names, "arguments": arguments | objects()}
        )
        call = st.fixed_dictionaries(
            {},
            optional={"index": st.integers(0, 2), "id": st.text(max_size=3), "function": function},
        )
        deltas.append({"tool_calls": draw(st.lists(call | values, max_size=3))})
    end: dict[str, Any] = {
        "choices": [
            {
                "delta": {},
                "finish_reason": draw(st.sampled_from(["stop", "tool_calls", "length", None])),
            }
        ]
    }
    return [*({"choices": [{"delta": delta}]} for delta in deltas), end]


def assembled(script: list[dict[str, Any]]) -> tuple[str, Reply]:
    """Return the text that was shown, and the reply."""
    number = count()
    assembly = Assembly(known=SHOWN, used_ids=(), new_id=lambda: f"call_{next(number)}")
    pieces = [piece for chunk in script for piece in assembly.add(chunk)] + assembly.close(
        TokenUsage(1, 1)
    )
    reply = pieces[-1]
    assert isinstance(reply, Reply)
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)), reply


def check_reply(script: list[dict[str, Any]]) -> None:
    """Check one reply, as it arrives and as it is sent back."""
    shown, reply = assembled(script)
    # What was shown before a mark proved it a thought is no part of the reply.
    assert shown.strip() == reply.text.strip() or (
        shown.strip().endswith(reply.text.strip()) and reply.thought
    )
    native = any("tool_calls" in chunk["choices"][0]["delta"] for chunk in script)
    if reply.calls and not native:
        assert all(
            call.name in SHOWN and isinstance(json.loads(call.arguments), dict)
            for call in reply.calls
        )
        assert not any(word in reply.text for word in ("For example", "> ", "Done."))
    answers = [Answer(call.id, call.name, "1") for call in reply.calls]
    messages: list[Message] = [User("x"), Assistant(reply.text, reply.calls), *answers, User("y")]
    assert fault({"messages": to_wire(messages)}) is None


@settings(max_examples=drawn(300), suppress_health_check=[HealthCheck.too_slow])
@given(chunks())
def test_malformed_replies_never_crash_nor_run_what_was_not_asked(
    script: list[dict[str, Any]],
) -> None:
    check_reply(script)


@settings(max_examples=drawn(200))
@given(
    calls,
    st.sampled_from(
        ["It looks like this: {}", "> {}", "`{}`", "{} is a call.", "For example:\n```\n{}\n```"]
    ),
)
def test_a_call_inside_other_text_is_never_read(call: str, around: str) -> None:
    assert read_text(around.format(call), SHOWN) is None
