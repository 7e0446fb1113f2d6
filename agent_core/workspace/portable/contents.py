"""The content of a Letta message: pieces of text, reasoning, and kinds that have no place here."""

from dataclasses import dataclass
from typing import Any

from .foreign import Json, text_at, whole_characters
from .report import AgentReport

_THOUGHTS = ("reasoning", "summarized_reasoning")
_HIDDEN = ("omitted_reasoning", "redacted_reasoning")


@dataclass(frozen=True, slots=True)
class MessageContent:
    """The text of a message, and the thought before it."""

    text: str
    thought: str = ""


def content_of(message: Json, where: str, report: AgentReport) -> MessageContent:
    """Return a message's content: a text, pieces of several kinds, or nothing."""
    content: Any = message.get("content")  # Any: whatever stands in the file
    if not isinstance(content, list):
        return MessageContent(text_at(message, "content", where))
    texts, thoughts = [], []
    for at, piece in enumerate(content):
        kind, text = _piece(piece, f"{where}.content[{at}]")
        if kind == "text":
            texts.append(text)
        elif kind in _THOUGHTS:
            thoughts.append(text)
        elif kind not in _HIDDEN:
            report.leaves(f"pieces of the kind `{kind[:40]}`", "messages are text here")
    return MessageContent("\n".join(texts), "\n".join(thoughts))


def _piece(piece: Any, where: str) -> tuple[str, str]:
    if isinstance(piece, str):
        return "text", whole_characters(piece)
    if not isinstance(piece, dict):
        return "unknown", ""
    kind = text_at(piece, "type", where)
    return kind, text_at(piece, "reasoning" if kind == "reasoning" else "text", where)
