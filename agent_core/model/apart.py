"""A reply with several calls, told as several replies, for endpoints that know one call a message only."""

from collections.abc import Sequence

from ..messages import Answer, Assistant, Message


def one_by_one(messages: Sequence[Message]) -> list[Message]:
    """The same conversation; each call has its answer right behind it."""
    answers = {message.call_id: message for message in messages if isinstance(message, Answer)}
    written: list[Message] = []
    for message in messages:
        if isinstance(message, Assistant) and message.calls:
            for n, call in enumerate(message.calls):
                written.append(Assistant("" if n else message.text, (call,)))
                written += [answers[call.id]] if call.id in answers else []
        elif not isinstance(message, Answer):
            written.append(message)
    return written
