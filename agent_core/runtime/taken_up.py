"""How a turn takes up an event of the inbox: the entry that the model reads of it.

Another agent's words are data: no line of them can pass for the user's words, the program's, or a third agent's.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

from agent_core.base.pictures import MAX_PICTURES
from agent_core.base.policy import Policy
from agent_core.base.records import replace
from agent_core.base.untrusted import one_line
from agent_core.context.history import harmless
from agent_core.storage import Entry, Inbound, Misfit, sender_of
from agent_core.storage.inbox import HEARD
from agent_core.storage.journal import (
    NoticeEntry,
    TurnMarks,
    mark,
    notice,
    text_of,
    user,
    write_entry,
)
from agent_core.storage.subject import parse_row

from .message_protocol import MessageProtocol, moment

PIPE: Final = "pipe"
"""The window of `knapper run` that reads its messages from a program."""
JOB: Final = "job"
"""The window of `knapper run --message` without a terminal."""
SCHEDULE: Final = "schedule"
"""The window of a timer."""
AGAIN: Final = "The program was stopped in the middle of your last turn. Go on with it; nobody has had your reply yet."
AGAIN_OF: Final = (
    "The program was stopped in the middle of your turn for the message that begins with “{}”. Go on with it; nobody"
    " has had your reply yet."
)
_POSING: Final = re.compile(r"^([^\w\n]*+)(from[^\w:：]*+[:：].*)$", re.IGNORECASE | re.MULTILINE)
_PROGRAM: Final = re.compile(r"\[\s*knapper\s*\]", re.IGNORECASE)
_HEADS: Final[Mapping[str, str]] = {
    "note": "[from: {}]",
    "ask": "[from: {}] asks you; your reply is the answer:",
    "handoff": "[from: {}] hands this over to you:",
    "stop": "[from: {}] asks you to stop:",
}


def quoted(text: str) -> str:
    """Return an agent's words, escaped so that no line can pass for the user's, the program's or another agent's."""
    return _POSING.sub(r"\1“\2”", _PROGRAM.sub("“Knapper”", harmless(text)))


def entry_of_agent(inbound: Inbound) -> Entry | None:
    """Return the entry of an event that another agent caused; None for any other event."""
    speaker = ", ".join(senders(inbound))
    if inbound.kind in _HEADS:
        return user(f"{_HEADS[inbound.kind].format(speaker)}\n{quoted(inbound.text)}", speaker)
    if inbound.kind == "again":
        return notice(AGAIN_OF.format(inbound.text) if inbound.text else AGAIN)
    if inbound.kind != "answer" or not inbound.answers:
        return None
    texts = []
    for answer in inbound.answers:
        verb = "answers" if answer.state == "answered" else "gave no answer"
        texts.append(f"[from: {_name(answer.from_)}] {verb}:\n{quoted(answer.text)}")
    return user("\n\n".join(texts), speaker)


def senders(inbound: Inbound) -> list[str]:
    """Return the agents that are quoted in an event."""
    if inbound.kind in _HEADS:
        return [_name(inbound.from_)]
    if inbound.kind != "answer":
        return []
    return [_name(answer.from_) for answer in inbound.answers]


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    return one_line(name, 64)


def is_alone(inbound: Inbound) -> bool:
    """Return whether an event begins a turn of its own, instead of being added to the running one.

    One that a client began does, with functions of its own or with terms for the reply.
    """
    return inbound.alone or inbound.client is not None


def is_unwatched(inbound: Inbound) -> bool:
    """Return whether a timer began this, or a program without a terminal."""
    if not inbound.origin:
        return False
    with suppress(Misfit):
        return parse_row(inbound.origin, dict).get("window") in (PIPE, JOB, SCHEDULE)
    return False


def begun(entry: Entry, inbound: Inbound, policy: Policy) -> Entry:
    """Return the entry that begins a turn, with what the event that it is of says about the turn, and its policy."""
    said = said_by(inbound)
    marks = TurnMarks(
        step=0, begins=inbound.kind, policy=policy.to_json(), said=said, trace=inbound.trace
    )
    if said == text_of(entry):
        marks = replace(marks, said=None)
    return sent_from(mark(entry, marks), inbound)


def sent_from(entry: Entry, inbound: Inbound) -> Entry:
    """Return the entry of a message with its id, and where it comes from."""
    if inbound.kind != "message":
        return entry
    return mark(entry, TurnMarks(message_id=inbound.id, origin=sender_of(inbound.origin)))


def heartbeat(reason: str, protocol: MessageProtocol, now: float) -> Entry:
    """Return the entry of a heartbeat, which gives the reason why the agent is awake."""
    packed = protocol.event("heartbeat", {"reason": reason}, now)
    return write_entry(NoticeEntry(text=f"Heartbeat: {reason}", packed=packed))


def login(last: float | None, protocol: MessageProtocol, now: float) -> Entry:
    """Return the entry that says that the user is present, and when they were last present."""
    before = "never: this is the first time" if last is None else moment(last)
    text = f"The user is here. The last time was: {before}."
    packed = protocol.event("login", {"last_login": before}, now)
    return write_entry(NoticeEntry(text=text, packed=packed))


def entry_of(inbound: Inbound, protocol: MessageProtocol, now: float) -> Entry:
    """Return the entry of an inbox event: a message, heartbeat, login or system alert."""
    if (entry := entry_of_agent(inbound)) is not None:
        return entry
    match inbound.kind:
        case "message":
            return user(inbound.text, pictures=inbound.pictures[:MAX_PICTURES])
        case kind if kind == HEARD:
            return user(inbound.text, inbound.speaker)
        case "heartbeat":
            return heartbeat(inbound.reason or "time has passed.", protocol, now)
        case "login":
            return login(inbound.last, protocol, now)
        case _:
            return notice(inbound.text)


def said_by(inbound: Inbound) -> str:
    """Return the text of an event: a message, or the reason for the event."""
    if (entry := entry_of_agent(inbound)) is not None:
        return text_of(entry)
    return inbound.text or inbound.reason
