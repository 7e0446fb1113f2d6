"""The questions that a running function asks a person: `self.ask` and `self.confirm`.

A question is shown as part of its call, as the function's words and never as the program's own. It is answered by its
id, from any window. The worker waits with its clock stopped; a call that waits too long ends, and is not run again.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from agent_core.base import events
from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.storage import ApprovalStore, QuestionRow
from sandbox import Outcome, RequestRefused
from sandbox.wire.requests import standing_still

from .answers import CallOutcome, InterruptedCall

if TYPE_CHECKING:
    from agent_core.base.messages import Call
    from agent_core.base.receipt import Receipt

KIND: Final = "ask"
"""The `kind` of a stored question of a function; one about grants has none."""
TYPES: Final[Mapping[str, Callable[[str], object]]] = {
    "str": str,
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time.fromisoformat,
}
"""The types of an answer, each with what reads it from a person's text."""
QUESTION_LIMIT: Final = 8
"""Questions of functions that wait at the same time, in all processes."""
CALL_LIMIT: Final = 100
"""Questions that one call asks at most."""
WAIT_LIMIT_S: Final = 3_600.0
TEXT_LIMIT: Final = 1_000
CHOICE_LIMIT: Final = 20
ID_LEAST: Final = 6
"""Characters of an id that name a question."""
LOOK_S: Final = 0.2  # between two looks for an answer


class CallRecording(Protocol):
    """The record of a call: `did` collects what it did, so that it is not tried again by itself."""

    call: "Call"
    did: "Receipt"


class Asker(Protocol):
    """A turn whose call asks."""

    id: str

    @property
    def agent(self) -> str:
        """The agent whose turn it is."""

    async def show(self, event: events.StoredEvent, /) -> None:
        """Store an event of the turn, and report it to its listeners."""


@dataclass(frozen=True, slots=True)
class FunctionQuestion:
    """A question of a function, with the form of its answer: one of the `choices`, or a value of the `type`.

    Without an answer after `after_s` seconds, the `default` is taken; None means that there is none.
    """

    function: str
    call: str
    text: str
    choices: tuple[str, ...] = ()
    type: str = "str"
    default: str | None = None
    after_s: float | None = None
    id: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def of(cls, function: str, call: str, asked: Mapping[str, Any]) -> "FunctionQuestion":
        """Return the question that a worker asks.

        Raises:
            RequestRefused: it is not one that a person can be asked.
        """
        text = asked.get("question")
        choices = asked.get("choices") or []
        kind = asked.get("type", "str")
        default = asked.get("default")
        after_s = asked.get("after")
        if not isinstance(text, str) or not text.strip() or len(text) > TEXT_LIMIT:
            raise RequestRefused(f"a question is a text of at most {TEXT_LIMIT} characters")
        are_texts = isinstance(choices, list) and all(isinstance(each, str) for each in choices)
        if not are_texts or len(choices) > CHOICE_LIMIT or max(map(len, choices), default=0) > 200:
            raise RequestRefused(f"at most {CHOICE_LIMIT} choices, of 200 characters each")
        if not isinstance(kind, str) or kind not in TYPES:
            shown = one_line(kind, 40) if isinstance(kind, str) else "something else"
            raise RequestRefused(f"an answer is one of {', '.join(TYPES)}, not {shown}")
        if after_s is not None and not (
            isinstance(after_s, int | float) and 0 <= after_s <= WAIT_LIMIT_S
        ):
            raise RequestRefused("`after` is a number of seconds, at most an hour")
        is_text = isinstance(default, str) and len(default) <= TEXT_LIMIT
        if default is not None and not is_text:
            raise RequestRefused(
                f"a default has the form of an answer, of at most {TEXT_LIMIT} characters"
            )
        question = cls(function, call, text, tuple(choices), kind, default, after_s)
        if default is not None:
            try:
                question.read(default)
            except UsageError as error:
                raise RequestRefused(f"the default does not fit: {error.message}") from error
        return question

    @property
    def form(self) -> str:
        """What an answer may be, in words."""
        if self.choices:
            numbers = events.numbers_of(self.choices)
            pairs = zip(numbers, self.choices, strict=True)
            return "one of " + ", ".join(f"{number}{one_line(each, 60)}" for number, each in pairs)
        return "any text" if self.type == "str" else f"a {self.type}"

    @property
    def otherwise(self) -> str:
        """What follows without an answer, in words."""
        if self.default is None or self.after_s is None:
            return "Without an answer within an hour, the call ends."
        return f"Without an answer in {self.after_s:g} seconds, it is {one_line(self.default, 80)}."

    @property
    def ending(self) -> str:
        """What the model reads of a call that ended because nobody answered it."""
        return (
            f"`{self.function}` asked a person “{one_line(self.text, 200)}” ({self.form}), and nobody answered in time."
            " What it did before may have taken effect. It is not run again by itself."
        )

    def read(self, text: str) -> str:
        """Return the answer in a person's text: the choice, by its number or its words, or the text of a value.

        Raises:
            UsageError: it is none.
        """
        typed = text.strip()
        if self.choices:
            if typed in self.choices:
                return typed
            numbers = [number.strip() for number in events.numbers_of(self.choices)]
            if typed and typed in numbers:
                return self.choices[numbers.index(typed)]
        elif len(typed) <= TEXT_LIMIT:
            try:
                TYPES[self.type](typed)
            except (ValueError, InvalidOperation, OverflowError):
                pass
            else:
                return typed
        raise UsageError(f"The answer cannot be {one_line(text, 60)}.", fix=f"Give {self.form}.")

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the question in its stored form."""
        return {
            "kind": KIND,
            "function": self.function,
            "call": self.call,
            "text": self.text,
            "choices": [*self.choices],
            "type": self.type,
            "default": self.default,
            "after_s": self.after_s,
        }

    def to_shown(self) -> dict[str, Any]:  # Any: JSON
        """Return the question as a window shows it."""
        told = {"id": self.id, "form": self.form, "otherwise": self.otherwise}
        return {**self.to_json(), **told}

    @classmethod
    def from_row(cls, row: QuestionRow) -> "FunctionQuestion | None":
        """Return the question of a stored row; None if it is one about grants, or of another version."""
        data = row.question
        if data.get("kind") != KIND:
            return None
        asked = {"question": data.get("text"), "after": data.get("after_s")}
        asked |= {name: data.get(name) for name in ("choices", "type", "default")}
        try:
            question = cls.of(str(data.get("function", "")), str(data.get("call", "")), asked)
        except RequestRefused:
            return None
        return replace(question, id=row.id)


class CallQuestions:
    """The questions of one call: each is stored, shown, and waited for."""

    def __init__(self, store: ApprovalStore | None, asker: Asker, record: CallRecording) -> None:
        """Create them; without a store, nobody can be asked."""
        self._store = store
        self._asker = asker
        self._record = record
        self._unanswered: FunctionQuestion | None = None
        self._asked = 0
        self.stood = 0.0
        """The seconds that the call waited for answers."""

    def ending_of(self, outcome: Outcome) -> CallOutcome:
        """Return how the call ended: interrupted, if nobody answered it."""
        return outcome if self._unanswered is None else InterruptedCall(self._unanswered.ending)

    async def ask(self, function: str, asked: Mapping[str, Any]) -> str:
        """Ask a person, and return the answer as text.

        Raises:
            RequestRefused: it cannot be asked, or nobody answered.
        """
        question = FunctionQuestion.of(function, self._record.call.id, asked)
        if self._store is None:
            raise RequestRefused("nobody can be asked here")
        self._asked += 1
        if self._asked > CALL_LIMIT:
            raise RequestRefused(f"a call asks at most {CALL_LIMIT} questions")
        rows = await self._store.pending_questions()
        if sum(row.question.get("kind") == KIND for row in rows) >= QUESTION_LIMIT:
            raise RequestRefused(
                f"{QUESTION_LIMIT} questions of functions wait for an answer already"
            )
        self._record.did.note("asked", f"{function}: {one_line(question.text, 80)}")
        await self._asker.show(
            events.FunctionAsked(
                turn=self._asker.id,
                question=question.id,
                call=question.call,
                function=function,
                text=question.text,
                choices=question.choices,
                form=question.form,
                otherwise=question.otherwise,
            )
        )
        row = QuestionRow(question.id, self._asker.agent, self._asker.id, question.to_json())
        await self._store.ask_user(row)
        began = asyncio.get_running_loop().time()
        with standing_still():
            answer, by = await self._answer(question, self._store)
        self.stood += asyncio.get_running_loop().time() - began
        if answer is None:
            self._unanswered = question
        await self._asker.show(
            events.FunctionAnswered(
                turn=self._asker.id,
                question=question.id,
                call=question.call,
                answer=answer or "",
                by=by,
            )
        )
        if answer is None:
            raise RequestRefused("nobody answered")
        return answer

    async def _answer(
        self, question: FunctionQuestion, store: ApprovalStore
    ) -> tuple[str | None, str]:
        """Wait for the answer; return it and who gave it."""
        has_default = question.default is not None and question.after_s is not None
        longest = question.after_s if has_default else WAIT_LIMIT_S
        end = asyncio.get_running_loop().time() + (longest or 0.0)
        while (decision := await store.decision(question.id)) is None:
            if asyncio.get_running_loop().time() >= end:
                late = {"answer": "no", "word": "", "by": "ended"}
                await store.answer_question(question.id, late)
                return (question.default, "default") if has_default else (None, "nobody")
            await asyncio.sleep(LOOK_S)
        if decision["answer"] != "yes":
            return None, decision["by"]
        return question.read(decision["word"]), decision["by"]
