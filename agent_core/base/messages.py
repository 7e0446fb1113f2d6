"""The messages of a conversation: system, user, assistant, call, answer, notice.

These are the inner values; `model/wire.py` turns them into what an endpoint reads, and is the
one place where a function is called a tool.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

SEND: Final = "send_message"
"""The function that speaks to the user for an agent with inner monologue as its text."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request by the model to call a function; `arguments` is the JSON text exactly as it arrived."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class System:
    """The instructions, or another part of the system message; rebuilt for every request and never stored."""

    text: str


@dataclass(frozen=True, slots=True)
class User:
    """A message from the user; `packed` is the same message with type and time, for a model that reads that format.

    One that `is_imported` came with an agent's file: whoever wrote that may have put any words here. With a `speaker`,
    it is another agent's, and the user has said nothing.
    """

    text: str
    packed: str = ""
    is_imported: bool = False
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Assistant:
    """One reply of the model: text, the calls it asks for, and its thought where it shows one.

    `reasoning` is what goes back to the endpoint within the turn, unread: JSON texts as they came.
    """

    text: str
    calls: tuple[Call, ...] = ()
    thought: str = ""
    reasoning: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one call; every call gets exactly one."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice from the program to the model, for example that someone else changed a function; `packed` as in `User`.

    One that `is_imported` came with an agent's file: somebody else wrote it.
    """

    text: str
    packed: str = ""
    is_imported: bool = False


Message: TypeAlias = System | User | Assistant | Answer | Notice
