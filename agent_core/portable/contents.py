"""What stands in a message of Letta's: pieces of text, reasoning, and kinds that have no place here."""

from dataclasses import dataclass
from typing import Any

from .foreign import Json, text_at, whole_characters
from .report import Report

_THOUGHTS = ("reasoning", "summarized_reasoning")
_HIDDEN = ("omitted_reasoning", "redacted_reasoning")


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a message, and the thought before it."""

    text: str
    thought: str = ""


def content_of(message: Json, where: str, report: Report) -> Content:
    """A message's content: a text, pieces of several kinds, or nothing."""
    found: Any = message.get("content")  # Any: whatever stands in the file
    if not isinstance(found, list):
        return Content(text_at(message, "content", where))
    texts, thoughts = [], []
    for at, piece in enumerate(found):
        kind, said = _piece(piece, f"{where}.content[{at}]")
        if kind == "text":
            texts.append(said)
        elif kind in _THOUGHTS:
            thoughts.append(said)
        elif kind not in _HIDDEN:
            report.leaves(f"pieces of the kind `{kind[:40]}`", "messages are text here")
    return Content("\n".join(texts), "\n".join(thoughts))


def _piece(piece: Any, where: str) -> tuple[str, str]:
    if isinstance(piece, str):
        return "text", whole_characters(piece)
    if not isinstance(piece, dict):
        return "unknown", ""
    kind = text_at(piece, "type", where)
    return kind, text_at(piece, "reasoning" if kind == "reasoning" else "text", where)
