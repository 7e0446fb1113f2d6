"""Who speaks: the words of other agents as a model reads them, and an agent's own name before its reply.

Another agent's words are data: no line of them can pass for the user's words, the program's, or a third agent's.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from agent_core.base.untrusted import one_line
from agent_core.context.history import harmless
from agent_core.storage import Entry, Inbound

_POSING: Final = re.compile(r"^(\W*)(\[?\W*from\W*[:：].*)$", re.IGNORECASE | re.MULTILINE)
_PROGRAM: Final = re.compile(r"\[\s*knapper\s*\]", re.IGNORECASE)
_HEADS: Final[Mapping[str, str]] = {
    "note": "[from: {}]",
    "ask": "[from: {}] asks you; your reply is the answer:",
    "handoff": "[from: {}] hands this over to you:",
    "stop": "[from: {}] asks you to stop:",
}
AGAIN: Final = "The program was stopped in the middle of your last turn. Go on with it; nobody has had your reply yet."


def quoted(text: str) -> str:
    """Return an agent's words, escaped so that no line can pass for the user's, the program's or another agent's."""
    return _POSING.sub(r"\1“\2”", _PROGRAM.sub("“Knapper”", harmless(text)))


def entry_of(inbound: Inbound) -> Entry | None:
    """Return the entry of an event that another agent caused; None for any other event."""
    payload, speaker = inbound.payload, ", ".join(senders(inbound))
    if inbound.kind in _HEADS:
        text = f"{_HEADS[inbound.kind].format(speaker)}\n{quoted(str(payload.get('text', '')))}"
        return Entry("user", {"text": text, "speaker": speaker})
    if inbound.kind == "again":
        return Entry("notice", {"text": AGAIN})
    if inbound.kind != "answer" or not isinstance(payload.get("answers"), list):
        return None
    return Entry("user", {"text": "\n\n".join(map(_answer, _answers(inbound))), "speaker": speaker})


def senders(inbound: Inbound) -> list[str]:
    """Return the agents that are quoted in an event."""
    if inbound.kind in _HEADS:
        return [_name(inbound.payload)]
    return [_name(answer) for answer in _answers(inbound)] if inbound.kind == "answer" else []


def _answers(inbound: Inbound) -> list[Mapping[str, Any]]:  # Any: JSON
    answers = inbound.payload.get("answers")
    return [answer for answer in answers if isinstance(answer, Mapping)] if isinstance(answers, list) else []


def _name(said: Mapping[str, Any]) -> str:  # Any: JSON
    return _line(str(said.get("from", "")))


@lru_cache(maxsize=1024)
def _line(name: str) -> str:
    return one_line(name, 64)


def _answer(answer: Mapping[str, Any]) -> str:  # Any: JSON
    is_answered = answer.get("state") == "answered"
    head = f"[from: {_name(answer)}] {'answers' if is_answered else 'gave no answer'}:"
    return f"{head}\n{quoted(str(answer.get('text', '')))}"


class OwnName:
    """A filter that strips an agent's name from the beginning of its reply, where some models write it."""

    def __init__(self, agent: str) -> None:
        forms = ("{}:", "[{}]:", "[from: {}]:", "[from: {}]")
        self._forms = tuple(form.format(agent).casefold() for form in forms)
        self._held: str | None = ""

    def of(self, text: str) -> str:
        """Return a whole reply without the name at its beginning."""
        bare = text.lstrip()
        form = next((form for form in self._forms if bare.casefold().startswith(form)), None)
        return bare[len(form) :].lstrip() if form else text

    def piece(self, text: str) -> str:
        """Return the text that can be shown after this piece; a beginning that may be the name is held back."""
        if self._held is None:
            return text
        self._held += text
        bare = self._held.lstrip().casefold()
        if any(form.startswith(bare) for form in self._forms):
            return ""
        held, self._held = self._held, None
        return self.of(held)

    def rest(self) -> str:
        """Return the text that is still held back at the end of a reply; the next piece begins another reply."""
        held, self._held = self._held, ""
        return self.of(held or "")
