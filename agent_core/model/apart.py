"""A conversion of replies with several calls into several replies, for endpoints that allow one call per message."""

from collections.abc import Sequence

from agent_core.base.messages import Answer, Assistant, Message


def one_by_one(messages: Sequence[Message]) -> list[Message]:
    """Return the same conversation with each call directly followed by its answer."""
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
