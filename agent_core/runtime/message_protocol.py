"""The protocols of messages: the `direct` one, and that of MemGPT with `send_message`, heartbeats and packed messages.

The loop asks the protocol in the few places where it differs from the `direct` one. A model in constrained mode already
writes a thought and a reply at each step: its reply is the message, and every call leads to another step.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_core.base.clock import shown_time
from agent_core.base.messages import SEND
from agent_core.base.records import dataclass, field, replace
from agent_core.context.folds import HEARTBEAT
from agent_core.model.reading import forms, has_call_mark
from agent_core.model.request import FunctionShown
from agent_core.registry.validation import IdentityCache
from sandbox.wire.strict_json import Malformed, read_json

if TYPE_CHECKING:
    from agent_core.model.reply import Mode, Reply

Line: TypeAlias = tuple[FunctionShown, ...]
_Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

_MAX_VALUES: Final = 1_000  # of the arguments of a message
_LOOKED_AT: Final = 20_000  # characters of a thought or a message
# Words of the program or of a chat template in a text for a person: then the model wrote a call as text.
_RESERVED: Final = re.compile(
    rf"\b(?:{SEND}|{HEARTBEAT}|(?:function|tool)_calls?|inner[ _](?:thoughts?|monologue))\b"
    r"|<[|\uff5c][^<>\n]{1,40}[|\uff5c]>",
    re.IGNORECASE,
)
_OBJECT: Final = re.compile(
    r"""\{\s*["'](?:name|function|tool|arguments|parameters|message)\w*["']\s*:"""
)
_ASKED: Final[_Schema] = {
    "type": "boolean",
    "description": "true: another step follows this call",
}
_TIME: Final = "%Y-%m-%d %I:%M:%S %p %Z%z"


@dataclass(frozen=True, slots=True)
class MessageProtocol:
    """How an agent and its user reach each other: `direct`, where a reply's text is the message and nothing is packed.

    `instructions` (empty: the default) and `brief` (for small models) come from the preset, whose name is `preset`. The
    others are for the first reply of a protocol that can fail it.
    """

    preset: str = "direct"
    instructions: str = ""
    brief: str = ""
    verify: bool = False
    attempts: int = 3
    first_thought: bool = True

    @property
    def packs(self) -> bool:
        """Whether messages and events are packed as JSON with type and time."""
        return False

    def by_function(self, _mode: "Mode", /) -> bool:
        """Return whether messages go through a function, and each further step must be requested."""
        return False

    def first_fault(self, _reply: "Reply", _shown: Collection[str], /) -> str:
        """Return the fault of an agent's first reply, or an empty text; `_shown` are the functions it could call."""
        return ""

    def not_kept(self, _mode: "Mode", /) -> str:
        """Return a sentence for the user if this style cannot be kept in this mode, otherwise an empty text."""
        return ""

    def shown(self, line: Line, _mode: "Mode" = "native", /) -> Line:
        """Return the functions in this style. Unchanged functions give the same object."""
        return line

    def offered(self, parameters: dict[str, Any], _mode: "Mode" = "native", /) -> dict[str, Any]:
        """Return the schema of a function's arguments as the model gets it. Any: JSON Schema."""
        return parameters

    def reading(self, parameters: dict[str, Any], /) -> dict[str, Any]:  # Any: JSON Schema
        """Return the schema for reading a call's arguments."""
        return parameters

    def take_heartbeat(self, _arguments: dict[str, Any], _parameters: dict[str, Any], /) -> bool:
        """Remove a request for another step from a call's arguments, and return whether one was made. Any: JSON."""
        return False

    def event(self, _kind: str, _fields: Mapping[str, Any], _now: float, /) -> str:  # Any: JSON
        """Return an event as JSON for the model; empty if it reads the text."""
        return ""


@dataclass(slots=True)
class _ConversionCache:
    """A cache of converted functions, keyed by identity; originals are held so that their IDs stay valid."""

    line: Line | None = None
    mode: "Mode" = "native"
    shown: Line = ()
    functions: dict[int, tuple[FunctionShown, FunctionShown]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SendMessageProtocol(MessageProtocol):
    """The protocol of MemGPT: `send_message`, heartbeats that a call asks for, and packed messages.

    With `verify`, an agent's first reply must have a message, and a thought unless `first_thought` is off; otherwise it
    is requested again, up to `attempts` times.
    """

    _kept: _ConversionCache = field(default_factory=_ConversionCache, compare=False, repr=False)

    @property
    def packs(self) -> bool:
        """True, because messages and events are packed as JSON with type and time."""
        return True

    def by_function(self, mode: "Mode") -> bool:
        """Return whether messages go through `send_message`, text is inner, and each further step must be requested."""
        return mode == "native"

    def first_fault(self, reply: "Reply", shown: Collection[str]) -> str:
        """Return the fault of an agent's first reply, or an empty text; `shown` are the functions it could call.

        Of a long text the beginning is looked at.
        """
        messages = []
        for call in reply.calls:
            if call.name != SEND:
                continue
            try:
                arguments = read_json(call.arguments, most_values=_MAX_VALUES)
            except Malformed:
                continue
            message = arguments.get("message") if isinstance(arguments, dict) else None
            messages.append(message[:_LOOKED_AT] if isinstance(message, str) else "")
        if not messages:
            return f"it does not call {SEND}"
        if not all(map(is_readable, messages)):
            return "its message is empty"
        thought = reply.text[:_LOOKED_AT]
        if self.first_thought and not is_readable(thought + reply.thought[:_LOOKED_AT]):
            return "it has no inner thought"
        called = _call_of(shown)
        for place, text in [
            ("thought", thought),
            *(("message", message) for message in messages),
        ]:
            if word := _RESERVED.search(text):
                return f"its {place} holds `{word[0]}`, a word of the program"
            # Models write a call in tags, as an object, or as Python.
            if has_call_mark(text) or _OBJECT.search(text) or called.search(text):
                return f"its {place} holds a call, written as text"
        return ""

    def not_kept(self, mode: "Mode") -> str:
        """Return a sentence for the user if this style cannot be kept in this mode, otherwise an empty text."""
        if self.by_function(mode):
            return ""
        return (
            f"The style of the preset `{self.preset}` cannot be kept while calls are written under a schema: the reply"
            f" is the message, without {SEND}, {HEARTBEAT} and the check of the first reply. A model that calls"
            " functions by itself, with a window of 8,192 tokens or more, keeps it."
        )

    def shown(self, line: Line, mode: "Mode" = "native") -> Line:
        """Return the functions in this style. Unchanged functions give the same object."""
        cache = self._kept
        if line is not cache.line or mode != cache.mode:
            before, cache.functions = cache.functions, {}
            for function in line:  # holding the function keeps its id from being reused
                made = before.get(id(function))
                if made is None:
                    parameters = _with_heartbeat(function.parameters)
                    is_same = parameters is function.parameters
                    made = (
                        function,
                        function if is_same else replace(function, parameters=parameters),
                    )
                cache.functions[id(function)] = made
            cache.line, cache.mode = line, mode
            if mode != "native":
                cache.shown = tuple(function for function in line if function.name != SEND)
            else:
                cache.shown = tuple(cache.functions[id(function)][1] for function in line)
        return cache.shown

    def offered(self, parameters: _Schema, mode: "Mode" = "native") -> _Schema:
        """Return the schema of a function's arguments as the model gets it."""
        return _with_heartbeat(parameters) if self.by_function(mode) else parameters

    def reading(self, parameters: _Schema) -> _Schema:
        """Return the schema for reading a call's arguments, which accepts any value for the heartbeat."""
        if HEARTBEAT in parameters.get("properties", {}):
            return parameters
        return _READ_SCHEMAS.get(parameters)

    def take_heartbeat(self, arguments: dict[str, Any], parameters: _Schema) -> bool:  # Any: JSON
        """Remove the heartbeat request from a call's arguments, and return whether one was made."""
        if HEARTBEAT in parameters.get("properties", {}):
            return False
        heartbeat = arguments.pop(HEARTBEAT, False)
        return str(heartbeat).strip().lower() in {"true", "1", "yes"}

    def event(self, kind: str, fields: Mapping[str, Any], now: float) -> str:  # Any: JSON
        """Return an event as JSON for the model: user_message, heartbeat, login or system_alert."""
        return json.dumps({"type": kind, **fields, "time": moment(now)}, ensure_ascii=False)


def is_readable(text: str) -> bool:
    """Check whether a text contains any visible character."""
    return any(letter.isprintable() and not letter.isspace() for letter in text)


def _call_of(names: Collection[str]) -> re.Pattern[str]:
    """Return the pattern of the beginning of a call of one of these functions, written as Python."""
    functions, spaces = ("|".join(map(re.escape, words)) for words in (names, forms().namespaces))
    return re.compile(rf"\b(?:(?:{spaces})\.\w+|{functions or SEND})\s*\(")


def _with_any_heartbeat(parameters: _Schema) -> _Schema:
    return {**parameters, "properties": {**parameters.get("properties", {}), HEARTBEAT: {}}}


_READ_SCHEMAS: Final = IdentityCache(_with_any_heartbeat)


def _with_heartbeat(parameters: _Schema) -> _Schema:
    properties = parameters.get("properties", {})
    if HEARTBEAT in properties:
        return parameters
    required = [*parameters.get("required", ()), HEARTBEAT]
    return {**parameters, "properties": {**properties, HEARTBEAT: _ASKED}, "required": required}


def moment(at: float) -> str:
    """Return a time as in packed messages, in the time zone of this machine."""
    return shown_time(at, _TIME)
