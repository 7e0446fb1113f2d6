"""The tour: a scripted endpoint that plays a growth session through the real loop.

Its replies are data (`tour.toml`); its calls have real effects. It says that it is scripted. Each answer is a pure
function of the request: the script has no memory, so a tour can be left and resumed anywhere.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator

from agent_core.base.records import dataclass, field
from sandbox.wire.strict_json import LOOSE, read_json

from .dialect import as_kind, parsed_toml
from .wire import IMPORTED_PREFIX, NOTICE_PREFIX

Stripped: TypeAlias = Annotated[str, AfterValidator(str.strip)]
Wire: TypeAlias = Mapping[str, Any]  # Any: a message in the wire's own shape
Body: TypeAlias = dict[str, Any]  # Any: JSON of a request, or of an answer

NAME: Final = "tour"
SERVED: Final = "tour (scripted)"
LABEL: Final = "tour (scripted, not a language model)"
READER: Final = "describe_body"  # the function that a reader of descriptions must call
_SHOWN: Final = re.compile(r"Screen (\d+) of")
_REMINDED: Final = "Nothing was made of it, so go on with the line above."
_NEXT: Final = re.compile(r"(next|go on|continue|weiter)\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TourStep:
    """One reply: its text and call, the pattern that the previous answer must match, and the text if it does not."""

    text: Stripped
    call: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    expect: str = ""
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class TourScene:
    """A scene, played if one of `says` was typed, all of `needs` and none of `absent` exist, and `noticed` was
    announced.
    """

    screen: int
    steps: tuple[TourStep, ...]
    says: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    noticed: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TypedLine:
    """A line that a person types; in the file that it opens, `old` becomes `new` before it is saved."""

    text: str
    file: str = ""
    old: str = ""
    new: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """The scenes in matching order, the lines a person types, and the text for unmatched input."""

    typed: tuple[TypedLine, ...]
    scenes: tuple[TourScene, ...]
    off: Stripped
    astray: Stripped
    readings: Mapping[str, Sequence[Mapping[str, str]]]

    @property
    def screens(self) -> int:
        """The number of screens."""
        return max(scene.screen for scene in self.scenes)


@dataclass(frozen=True, slots=True)
class TourReply:
    """One reply of the tour, ready to send."""

    text: str
    call: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON


@dataclass(frozen=True, slots=True)
class Situation:
    """The position in the tour, as far as a request shows it."""

    user_text: str
    screen: int
    notices: str
    answers: tuple[str, ...]
    created: frozenset[str]
    deleted: frozenset[str]
    has_replied: bool = False

    @classmethod
    def read(cls, messages: Sequence[Wire]) -> "Situation":
        """Read the situation from the messages of a request: the last typed text and its context."""
        start, user_text = 0, ""
        for place, message in enumerate(messages):
            parts = (
                str(message.get("content") or "").split("\n\n") if message["role"] == "user" else ()
            )
            typed = [
                part for part in parts if not part.startswith((NOTICE_PREFIX, IMPORTED_PREFIX))
            ]
            if text := "\n\n".join(typed).strip():
                start, user_text = place, text
        before = [
            str(message.get("content") or "")
            for message in messages[:start]
            if message["role"] == "assistant"
        ]
        shown = [int(number) for text in before for number in _SHOWN.findall(text)]
        notices = "\n".join(
            str(message.get("content")) for message in messages if message["role"] == "user"
        )
        turn = messages[start:]
        answers = tuple(str(message["content"]) for message in turn if message["role"] == "tool")
        called = [call["function"] for message in turn for call in message.get("tool_calls") or ()]
        created, deleted = (
            frozenset(
                str(read_json(one["arguments"], LOOSE).get("function_name"))
                for one in called
                if one["name"] == name
            )
            for name in ("create_function", "delete_function")
        )
        replied = any(
            message["role"] == "assistant" and not message.get("tool_calls") for message in turn
        )
        return cls(
            user_text, shown[-1] if shown else 0, notices, answers, created, deleted, replied
        )


def play(messages: Sequence[Wire], functions: frozenset[str]) -> TourReply:
    """Return the next reply. `functions` are those that the request shows."""
    situation, tour = Situation.read(messages), script()
    if functions == {READER}:
        names = [name for name in tour.readings if f"def {name}(" in situation.user_text]
        calls = tour.readings[names[0]] if names else []
        thought = "It works on its arguments alone."
        return TourReply(
            "", READER, {"thought": thought, "reach": "nothing", "calls": calls, "results": []}
        )
    match = _scene(situation, functions, tour)
    if match is None:
        return TourReply(_with_heading(tour.off, situation.screen, tour))
    scene, words = match
    number = min(len(situation.answers), len(scene.steps) - 1)
    step = scene.steps[number]
    answer = situation.answers[-1] if situation.answers else ""
    value = answer.partition("\n")[0]  # notes to the model may follow the value
    is_awaited = any(re.search(step.expect, text) for text in (value, answer))
    if not is_awaited and step.otherwise:
        line = _with_heading(step.otherwise.strip(), scene.screen, tour)
        return TourReply(_REMINDED if situation.has_replied else line)  # a reminder only once
    if len(situation.answers) >= len(scene.steps) or not is_awaited:
        return TourReply(
            _with_heading(_fill(tour.astray, {"answer": answer}), situation.screen, tour)
        )
    text = _fill(step.text, {**words, "answer": value})
    if step.call:
        return TourReply(text, step.call, _fill_each(step.arguments, words))
    return TourReply(_with_heading(text, scene.screen, tour))


@cache
def script() -> Script:
    """Return the script of this package."""
    return as_kind(parsed_toml("tour.toml"), Script)


def _scene(
    situation: Situation, functions: frozenset[str], script: Script
) -> tuple[TourScene, dict[str, str]] | None:
    # The state before this turn: functions that it created or deleted must not change its scene.
    available = (functions - situation.created) | situation.deleted
    asks_next = _NEXT.fullmatch(situation.user_text.strip()) is not None
    for scene in script.scenes:
        if (
            not scene.needs <= available
            or scene.absent & available
            or not re.search(scene.noticed, situation.notices)
        ):
            continue
        if asks_next and scene.screen == situation.screen + 1:
            return scene, dict(scene.defaults)
        for pattern in scene.says:
            if match := re.search(pattern, situation.user_text, re.IGNORECASE):
                arguments = {name: value for name, value in match.groupdict().items() if value}
                return scene, {**scene.defaults, **arguments}
    return None


def _with_heading(text: str, screen: int, script: Script) -> str:
    where = f"Screen {screen} of {script.screens} · " if screen else ""
    return f"**{where}{LABEL}**\n\n{text}"


def _fill(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _fill_each(value: Any, words: Mapping[str, str]) -> Any:  # Any: JSON
    match value:
        case str():
            return _fill(value, words)
        case dict():
            return {name: _fill_each(item, words) for name, item in value.items()}
        case list():
            return [_fill_each(item, words) for item in value]
        case _:
            return value


_PIECE: Final = 24
_COMES: Final = {
    "system": re.compile(r"^(\w+)\(.*\)(?: ->|:|$)", re.MULTILINE),
    "tool": re.compile(r"^`(\w+)` .* can be called now\."),
    "user": re.compile(r"`(\w+)` appeared:"),
}
"""The patterns that announce a function: in the index, in an answer, and in a notice."""
_GOES: Final = re.compile(r"^`(\w+)` was deleted from|`(\w+)` is gone")


def streamed(body: Body) -> bytes:
    """Return the answer to a request for a chat completion, as the events of a stream."""
    functions = {str(tool["function"]["name"]) for tool in body.get("tools") or ()}
    for message in body["messages"] if len(functions) > 1 else ():  # its texts announce others
        text = str(message.get("content") or "")
        functions.update(_COMES[message["role"]].findall(text) if message["role"] in _COMES else ())
        functions.difference_update(name for pair in _GOES.findall(text) for name in pair)
    reply, n = play(body["messages"], frozenset(functions)), len(body["messages"])
    arguments = json.dumps(reply.arguments, ensure_ascii=False)
    call = {
        "id": f"tour_{n}",
        "type": "function",
        "function": {"name": reply.call, "arguments": arguments},
    }
    deltas: list[Body] = [
        {"content": reply.text[at : at + _PIECE]} for at in range(0, len(reply.text), _PIECE)
    ]
    deltas += [{"tool_calls": [{"index": 0, **call}]}] if reply.call else []
    choices: list[Body] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append(
        {"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.call else "stop"}
    )
    head: Body = {
        "id": f"tour-{n}",
        "created": 0,
        "model": SERVED,
        "object": "chat.completion.chunk",
    }
    chunks = (json.dumps({**head, "choices": [choice]}).encode() for choice in choices)
    return b"".join(b"data: " + chunk + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
