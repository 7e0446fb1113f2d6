"""The messages of a conversation: system, user, assistant, call, answer, notice.

These are the inner values; `model/wire.py` turns them into the endpoint's format, and is the only place that calls a
function a tool.
"""

from typing import Final, TypeAlias

from .pictures import Picture
from .records import IF_SET, dataclass, field

SEND: Final = "send_message"
"""The function that sends a message to the user; an agent with inner monologue uses its text for thoughts."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request by the model to call a function; `arguments` is the JSON text exactly as it arrived.

    `extra` is a JSON object of what its endpoint wants back with it, as text: a signature, or the endpoint's own id.
    """

    id: str
    name: str
    arguments: str
    extra: str = field(default="", metadata=IF_SET)


@dataclass(frozen=True, slots=True)
class System:
    """A part of the system message, such as the instructions; rebuilt for every request and never stored."""

    text: str


@dataclass(frozen=True, slots=True)
class User:
    """A message from the user; `packed` is the same message with type and time, for a model that reads that format.

    A message that `is_imported` came with an agent's file, so its text may be anyone's. With a `speaker`, it is the
    message of another agent and not of the user. The text has the captions of the `pictures`.
    """

    text: str
    packed: str = ""
    is_imported: bool = False
    speaker: str = ""
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Assistant:
    """One reply of the model: text, the requested calls, and its thought if the model shows one.

    `reasoning` goes back unchanged: JSON texts as they arrived, items of the Responses API or one object with fields of
    the message. It goes to its `source` only, the endpoint and model that gave it.
    """

    text: str
    calls: tuple[Call, ...] = ()
    thought: str = ""
    reasoning: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one call; every call gets exactly one. The text has the captions of the `pictures`."""

    call_id: str
    name: str
    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice from the program to the model, for example that someone else changed a function; `packed` as in `User`.

    A notice that `is_imported` came with an agent's file: someone else wrote it.
    """

    text: str
    packed: str = ""
    is_imported: bool = False
    pictures: tuple[Picture, ...] = ()


Message: TypeAlias = System | User | Assistant | Answer | Notice


def pictures_of(message: Message) -> tuple[Picture, ...]:
    """Return the pictures of a message."""
    return message.pictures if isinstance(message, User | Answer | Notice) else ()
