"""The messages of a conversation, kept turn by turn so that whole turns can leave the window."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..messages import Answer, Assistant, Message

# Roles, separators and the wire's own words around one message, in bytes.
_ENVELOPE = 24


@dataclass(slots=True)
class Exchange:
    """The messages of one turn and their size in bytes."""

    turn: str
    messages: list[Message] = field(default_factory=list)
    size: int = 0

    def add(self, message: Message) -> None:
        """Append one message; answers stand in the order of their calls, in whatever order they came."""
        self.messages.insert(self._place(message), message)
        self.size += size_of(message)

    def _place(self, message: Message) -> int:
        end = len(self.messages)
        if not isinstance(message, Answer):
            return end
        asked = next(each for each in reversed(self.messages) if isinstance(each, Assistant))
        order = [call.id for call in asked.calls]
        while isinstance(before := self.messages[end - 1], Answer) and order.index(before.call_id) > order.index(
            message.call_id
        ):
            end -= 1
        return end


class History:
    """Every message of an agent that is in its context, oldest turn first."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def add(self, turn: str, messages: Iterable[Message]) -> None:
        """Append messages to a turn, which is the last one or a new one."""
        if not self.exchanges or self.exchanges[-1].turn != turn:
            self.exchanges.append(Exchange(turn))
        for message in messages:
            self.exchanges[-1].add(message)

    def drop_last(self) -> None:
        """Forget the last turn; the record in storage keeps it."""
        if self.exchanges:
            self.exchanges.pop()

    def clear(self) -> None:
        """Forget every turn; the record in storage keeps them."""
        self.exchanges.clear()

    def __iter__(self) -> Iterator[Message]:
        for exchange in self.exchanges:
            yield from exchange.messages


def size_of(message: Message) -> int:
    """About how many bytes a message takes on the wire."""
    match message:
        case Assistant():
            calls = sum(len(call.name) + _bytes(call.arguments) + 2 * _ENVELOPE for call in message.calls)
            return _bytes(message.text) + calls + _ENVELOPE
        case Answer():
            return _bytes(message.text) + 2 * _ENVELOPE
        case _:
            return _bytes(message.text) + _ENVELOPE


def _bytes(text: str) -> int:
    # A model can write half of a surrogate pair, and a conversation that holds one must go on.
    return len(text.encode("utf-8", "surrogatepass"))
