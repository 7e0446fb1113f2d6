"""The reader: a model in a fresh context that sees a function's name, signature and docstring, never its body.

It says what the body must reach in addition to its arguments, and what some calls must return. `meaning` decides what
follows from its answers. If it fails in any way, the verdict has a line about it.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, get_args

from agent_core.base.errors import KnapperError
from agent_core.base.messages import Assistant, Message, Notice, System, User
from agent_core.base.untrusted import one_line
from agent_core.model import FunctionShown, Model, Reply, Request
from agent_core.model.reply import ModeChanged
from agent_core.model.request import REPLY
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .verdict import ExpectedCall, Reach, ReaderAnswer

CANNOT_TELL: Final = "?"
_WAIT_S: Final = 60.0
_MOST_CALLS: Final = 3
_LONGEST: Final = 400  # characters of a call or a result
_TOKENS: Final = 800
_QUESTION: Final = """\
You are shown the name, the signature and the docstring of a Python function, without its body. Say what its body has \
to reach, besides its arguments, to really do what the docstring says:
- "nothing": computing on the arguments is enough (arithmetic, text, lists, formatting, fixed rules).
- "network": it must reach a server, a web service or live data.
- "files": it must read or write files or a database, or remember something after the call.
- "device": it must act on hardware, a program or a person (send, play, print, switch, pay, book).
- "understanding": it needs a mind or a trained model: translate, summarize, judge the meaning of a text or an image.
- "knowledge": it needs facts about the world that change or are many (prices, distances, people).
- "unknown": the docstring does not tell.
First write one short thought, then the answer."""
_RESULTS: Final = f"""
Also choose up to three calls of the kind that the docstring speaks of, unlike its own, small enough to be sure of \
their results, and write the result that each must have. Write Python: total([1, 2]) and 3, or an expression around \
a call, sorted(pairs("ab")); Decimal("1.50") for a decimal; an error by its name, ValueError. Where you are given \
calls, write their results in `results`, in the same order. Of each result say in `basis` whether the docstring says \
it ("docstring") or you infer it from what is usual ("inferred"). Write {CANNOT_TELL} for every result that the \
docstring does not settle, or that you are not sure of."""
_SHOTS: Final[tuple[tuple[str, str, Reach], ...]] = (
    (
        'def add_days(day: str, days: int) -> str:\n    """Add days to a date."""',
        "Date arithmetic on the argument.",
        "nothing",
    ),
    (
        'def order_taxi(address: str) -> str:\n    """Order a taxi to an address."""',
        "A taxi company must be told, so a service must be called.",
        "network",
    ),
    (
        'def receipt_text(shop: str, total: float) -> str:\n    """Write the text of a receipt."""',
        "It only formats its arguments.",
        "nothing",
    ),
    (
        'def store_score(player: str, score: int) -> bool:\n    """Store a player\'s score."""',
        "It must be kept after the call.",
        "files",
    ),
    (
        'def sarcasm_level(text: str) -> float:\n    """Rate how sarcastic a text is."""',
        "Only understanding of the meaning tells that.",
        "understanding",
    ),
)
_TEXT: Final = {"type": "string"}
_RESULT: Final = {"result": _TEXT, "basis": {"type": "string", "enum": ["docstring", "inferred"]}}


def _object(properties: dict[str, Any]) -> dict[str, Any]:  # Any: JSON Schema
    return {"type": "object", "properties": properties, "required": [*properties]}


NAME: Final = "describe_body"


_REACH: Final = {"type": "string", "enum": [*get_args(Reach)]}
_ANSWER: Final = {
    "thought": {"type": "string", "maxLength": 160},
    "reach": _REACH,
    "calls": {
        "type": "array",
        "items": _object({"call": _TEXT, **_RESULT}),
        "maxItems": _MOST_CALLS,
    },
    "results": {"type": "array", "items": _object(_RESULT)},
}
_DESCRIBE: Final = FunctionShown(
    NAME,
    "Say what the body must reach, and what calls must return.",
    _object(_ANSWER),
)
_SHAPE_OF_A_SMALL_ONE: Final = {
    "type": "json_schema",
    "json_schema": {
        "name": NAME,
        "schema": {
            "type": "object",
            "properties": {"reach": _REACH},
            "required": ["reach"],
            "additionalProperties": False,
        },
    },
}


def description_id(text: str) -> str:
    """Return an ID for what a reader is shown, by its content."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class DescriptionReader:
    """A model in a fresh context, opened on first use; `name` is the one in the settings."""

    def __init__(self, name: str, open_model: Callable[[], Awaitable[Model]]) -> None:
        self.name = name
        self._open = open_model
        self._model: Model | None = None
        self._turn = asyncio.Lock()  # a model serves one request at a time

    async def read(self, description: str, calls: Sequence[str], bare: str) -> ReaderAnswer:
        """Return the model's answer about a description, with expected results of `calls` and of its own calls.

        A small model reads the `bare` description without the calls of the examples, which would confuse it.
        """
        async with self._turn:
            began, error = time.perf_counter(), ""
            try:
                async with asyncio.timeout(_WAIT_S):
                    if self._model is None:
                        self._model = await self._open()
                    # A model that makes no calls natively is too small to be sure of results.
                    is_small = self._model.mode != "native"
                    asked = () if is_small else tuple(calls)
                    request = (
                        _small_request(bare) if is_small else _full_request(description, asked)
                    )
                    reply = await reply_apart(self._model, request)
            except TimeoutError:
                error = f"no answer within {_WAIT_S:.0f} s"
            except KnapperError as refusal:
                error = one_line(refusal.message, _LONGEST)
        if error or self._model is None:
            return ReaderAnswer(self.name, seconds=time.perf_counter() - began, error=error)
        data = _answer(reply, is_small=is_small)
        answer = data or {}
        reach, thought = (
            answer.get("reach"),
            answer.get("thought", "" if data is None else reply.thought),
        )
        return ReaderAnswer(
            self._model.name,
            reach=next((known for known in get_args(Reach) if known == reach), "unknown"),
            calls=tuple(_expected_calls(answer, asked)),
            asked=asked,
            thought=one_line(thought, 160) if isinstance(thought, str) else "",
            is_small=is_small,
            prompt_tokens=reply.usage.prompt,
            completion_tokens=reply.usage.completion,
            seconds=time.perf_counter() - began,
            error="its answer could not be read" if data is None else "",
        )


async def reply_apart(model: Model, request: Request) -> Reply:
    """Return the reply to a request outside of a conversation.

    Raises:
        KnapperError: there is no reply.
    """
    for _ in range(2):
        try:
            async with aclosing(model.stream(request)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    if isinstance(piece, Reply) and (piece.calls or not piece.written):
                        return piece
        except ModeChanged:
            continue
    raise KnapperError(f"`{model.name}` gave no reply.")


def _full_request(description: str, calls: Sequence[str]) -> Request:
    shots = "\n\n".join(f"{shown}\n{thought} So: {reach}" for shown, thought, reach in _SHOTS)
    wanted = "\n".join(["Also say what these calls must return:", *calls]) if calls else ""
    text = "\n\n".join(filter(None, [description, wanted]))
    system = System(f"{_QUESTION}{_RESULTS}\n\nFor example:\n\n{shots}")
    messages = (system, User(text), Notice(f"Call {NAME}."))
    return Request(messages, (_DESCRIBE,), _TOKENS, frozenset({REPLY}), is_apart=True)


def _small_request(description: str) -> Request:
    """Return the question with its examples as earlier turns, which a small model follows best.

    The answer is plain JSON, because a surrounding function call would only distract a model of this size.
    """
    messages: list[Message] = [System(_QUESTION)]
    for shown, thought, reach in _SHOTS:
        messages += [User(shown), Assistant(json.dumps({"reach": reach}), (), thought)]
    return Request(
        (*messages, User(description)), (), _TOKENS, shape=_SHAPE_OF_A_SMALL_ONE, is_apart=True
    )


def _answer(reply: Reply, *, is_small: bool) -> dict[str, Any] | None:
    """Return the answer; None if it cannot be parsed."""
    call = next((call for call in reply.calls if call.name == NAME), None)
    text = reply.text if is_small else call.arguments if call else ""
    try:
        data = read_json(text, LOOSE)
    except Malformed:
        return None
    return data if isinstance(data, dict) else None


def _expected_calls(answer: Mapping[str, Any], asked: Sequence[str]) -> list[ExpectedCall]:
    """Return the calls with the results that it gave: first those that it was asked about, then its own."""
    results, rows = answer.get("results"), answer.get("calls")
    pairs: list[tuple[Any, Any]] = list(
        zip(asked, results if isinstance(results, list) else [], strict=False)
    )
    for row in (rows if isinstance(rows, list) else [])[:_MOST_CALLS]:
        pairs += [(row.get("call"), row)] if isinstance(row, Mapping) else []
    found: dict[str, ExpectedCall] = {}
    for call, answered in pairs:
        row = answered if isinstance(answered, Mapping) else {"result": answered}
        call_text, result = _text_in(call), _text_in(row.get("result"))
        if call_text and result and result != CANNOT_TELL:
            is_inferred = row.get("basis") == "inferred"
            found.setdefault(call_text, ExpectedCall(call_text, result, is_inferred=is_inferred))
    return [*found.values()]


def _text_in(value: object) -> str:
    """Return a text of usable length without the blanks around it; empty for any other value."""
    text = value.strip() if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else ""
