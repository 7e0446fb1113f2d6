"""The history that a client sends with each request: what of it was before, what is new, and how it is known again.

A text is compared without its spaces, and that of a message with calls not at all: clients trim texts, join those of
several steps, cut them into parts, or leave them out where there are calls.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from typing import Final

from agent_core.base.errors import UsageError
from agent_core.base.messages import Assistant, Call
from agent_core.base.untrusted import one_line
from agent_core.runtime.client_calls import answered
from agent_core.runtime.turn import assistant, user
from agent_core.storage import Entry, WholeEvent, WholeTurn

MOST_CALLS: Final = 128  # that follow each other: they become one message
PER_MESSAGE: Final = 40  # what one costs, in characters of `base/offload.py`
_SYSTEM: Final = ("system", "developer")


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A message of a client's history. `calls` are those of its own functions; `answers` is the call it answers, and
    `name` the function, if it is named.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ClientHistory:
    """A client's request, read: its instructions, what was said before, what is new, and `by` whom."""

    system: str
    before: tuple[ClientMessage, ...]
    answers: tuple[ClientMessage, ...]
    text: str
    by: str
    sent: str = ""
    """What that is known by which was said before."""
    asked: str = ""
    """What the whole of it is known by."""

    @classmethod
    def read(cls, messages: Iterable[ClientMessage], by: str, *, goes_on: bool = False) -> "ClientHistory":
        """Read the messages of a request. If it `goes_on`, they are new, and what was before is known by other means.

        Raises:
            UsageError: nothing in them is new, or answers do not belong to calls.
        """
        rows = [*messages]
        system = "\n\n".join(row.text for row in rows if row.role in _SYSTEM)
        said = _merged(row for row in rows if row.role not in _SYSTEM)
        begin = max((place + 1 for place, row in enumerate(said) if row.role == "assistant"), default=0)
        new = said[begin:]
        if not new:
            fix = "Send it as {'role': 'user', 'content': …}, or the answers to the calls."
            raise UsageError("The last message must be the user's, or the answer to a call.", fix=fix)
        if not goes_on or begin:
            _check_answers(said)
        answers = tuple(row for row in new if row.role == "tool")
        text = "\n\n".join(row.text for row in new if row.role == "user")
        history = cls(system, tuple(said[:begin]), answers, text, by)
        sent, asked = digest(by, history.before), digest(by, (*history.before, *history.new))
        return replace(history, sent=sent, asked=asked)

    @property
    def new(self) -> tuple[ClientMessage, ...]:
        """What is new, as one message each."""
        said = (ClientMessage("user", self.text),) if any(self.text) or not self.answers else ()
        return (*self.answers, *said)

    def turns(self) -> list[WholeTurn]:
        """Return what was said before as finished turns, one for each message of the user."""
        turns: list[tuple[str, list[Entry]]] = []
        names = {call.id: call.name for row in self.before for call in row.calls}
        for place, row in enumerate(self.before):
            if row.role == "user" or not turns:
                turns.append((row.text, []))
            following = self.before[place + 1 : place + 1 + max(len(row.calls), 1)]
            turns[-1][1].extend(_entries(row, following, names))
        return [
            WholeTurn(f"before-{place}", "done", 0.0, 0.0, [WholeEvent("message", {"text": text}, 0.0)], entries)
            for place, (text, entries) in enumerate(turns)
        ]


def forms(history: ClientHistory, texts: Iterable[str], calls: Sequence[Call]) -> list[str]:
    """Return all that a client's next request may be known by; `texts` are the forms that it may give our answer."""
    said = (*history.before, *history.new)
    return sorted({digest(history.by, (*said, ClientMessage("assistant", text, tuple(calls)))) for text in texts})


def digest(by: str, messages: Iterable[ClientMessage]) -> str:
    """Return what messages of somebody are known by."""
    text = json.dumps([[by], *(_known_by(message) for message in messages)])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _known_by(message: ClientMessage) -> list[str]:
    if message.calls:
        return [message.role, *(call.id for call in message.calls)]
    return [message.role, message.answers, "".join(message.text.split())]


def _merged(messages: Iterable[ClientMessage]) -> list[ClientMessage]:
    """Return the messages, those of the user that follow each other as one, and those of the assistant."""
    merged: list[ClientMessage] = []
    for role, group in groupby(messages, key=attrgetter("role")):
        rows = [*group]
        if role == "assistant" and len(rows) > 1:
            text = "\n\n".join(row.text.rstrip() for row in rows if row.text.strip())
            rows = [ClientMessage(role, text.strip(), tuple(chain.from_iterable(row.calls for row in rows)))]
        elif role == "user":
            rows = [ClientMessage(role, "\n\n".join(row.text for row in rows))]
        merged += rows
    return merged


def _check_answers(said: Sequence[ClientMessage]) -> None:
    """Raise where an answer has no call before it that it could be for, or a call has two."""
    waiting = dict[str, str]()
    for row in said:
        if row.role == "assistant":
            if len(row.calls) > MOST_CALLS:
                what = f"An answer of the assistant has more than {MOST_CALLS} calls."
                raise UsageError(what, fix="Send what answers them with them, or leave them out.")
            waiting = {call.id: call.name for call in row.calls}
            if len(waiting) < len(row.calls):
                raise UsageError("Two calls of one message have the same id.", fix="Send them as they came.")
        elif row.role == "user":
            waiting = {}
        else:
            if row.answers not in waiting:
                what = f"The answer to `{row.answers[:80]}` is for no call of the message before it."
                raise UsageError(what, fix="Send the assistant's message with its calls first, and each answer once.")
            if row.name not in ("", called := waiting.pop(row.answers)):
                what = f"The `name` of the answer to `{row.answers[:80]}` is not `{one_line(called, 80)}`."
                raise UsageError(what, fix="Leave it out, or name the function that was called.")


def _entries(message: ClientMessage, after: Sequence[ClientMessage], names: Mapping[str, str]) -> list[Entry]:
    """Return the entries of a message of the past; calls that nobody answered are answered by saying so.

    Where nothing follows, the calls are still open.
    """
    if message.role == "user":
        return [user(message.text)]
    if message.role == "tool":
        return [answered(Call(message.answers, names.get(message.answers, ""), "{}"), message.text)]
    entries = [assistant(Assistant(message.text, message.calls))]
    following = {other.answers for other in after}
    entries += [answered(call, None) for call in message.calls if after and call.id not in following]
    return entries
