"""Forgetting: a person removes something from the record, so that its bytes are gone.

A text is replaced everywhere, in all agents; turns are removed whole; one message loses its words. Summaries, memory
blocks and sections lose the sentences with the text; summaries are created again without forgotten turns or messages.
Everything happens in one transaction.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from agent_core.base.matching import MARK, NAME, Mention
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .subject import dump
from .turn_store import Entry

Words: TypeAlias = Callable[[str, float | None, Sequence[str]], str]
"""Maps the text, time and tags of a row to the words that the word index stores for it."""
Resummarize: TypeAlias = Callable[[dict[str, Any], Sequence[Entry]], dict[str, Any] | None]
"""Maps a summary and the remaining messages that it covers to a new summary; None if nothing remains."""

_OURS: Final = frozenset(
    (
        *("text", "packed", "chars", "reason", "speaker", "thought", "calls", "id", "name", "arguments", "version"),
        *("call_id", "whole", "outcome", "seconds", "detail", "covers", "upto", "style", "said", "by", "asked", "kind"),
        *("program", "model", "parameters", "instructions", "sections", "functions", "versions", "usage", "code"),
        *("prompt_tokens", "completion_tokens", "cached_tokens", "estimated"),
    )
)
"""The keys that this program writes; they are never replaced."""
_FIXED: Final = frozenset(("version", "outcome", "style", "kind", "program", "hash", "whole", "model"))
_NAMED: Final = frozenset(("name", "functions", "by", "speaker", "code", "source", "module", "path"))
_ID: Final = frozenset(("id", "call_id"))
_ROLES: Final = frozenset(("user", "assistant"))


@dataclass(frozen=True, slots=True)
class TurnsGone:
    """The numbers of an agent's turns to forget completely; with `before`, also earlier data outside of turns."""

    agent: str
    turns: Sequence[int]
    before: float | None = None


@dataclass(frozen=True, slots=True)
class MessageGone:
    """An agent's message to blank, by the number of its entry."""

    agent: str
    seq: int


@dataclass(frozen=True, slots=True)
class Erasure:
    """A request to forget: the target, how to index and summarize again, and the functions that keep their names."""

    target: Mention | TurnsGone | MessageGone
    words: Words
    resummarize: Resummarize
    hosted: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """A message that can be forgotten: the numbers of its turn and its entry, and its text."""

    turn: int
    seq: int
    speaker: str
    text: str
    at: float


class ForgetStore(Protocol):
    """The methods that remove something from the record."""

    async def last_said(self, agent: str, turn: int | None = None, entry: int | None = None) -> Said | None:
        """Return the last message of an agent, of a turn, or of an entry in it; None if there is none."""

    async def turns_before(self, agent: str, at: float) -> list[int]:
        """Return the numbers of the turns that began before a time."""

    async def rehearse(self, erasure: Erasure) -> dict[str, int]:
        """Return how much would be removed from each place, without changing anything."""

    async def forget(self, erasure: Erasure) -> dict[str, int]:
        """Forget in one transaction, then remove the bytes from the file; return how much was removed from each place.

        If the program ends in between, the next opening of the file removes the bytes.
        """


@dataclass(slots=True)
class Redaction:
    """Replaces a text in the values of rows, but keeps the parts that the program depends on.

    `hashes` maps the hashes of rewritten texts to their new hashes.
    """

    mention: Mention
    hosted: Collection[str] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    def json(self, value: Any, key: str = "") -> Any:  # Any: JSON
        """Return a value without the text."""
        match value:
            case str():
                return self._string(value, key)
            case list():
                return [self.json(item, key) for item in value]
            case dict():
                kept = [name for name in value if name in _OURS or name in self.hosted]
                return {
                    name if name in kept else self.mention.without(name, NAME): self.json(item, name)
                    for name, item in value.items()
                }
            case int() | float() if (
                key not in _OURS and not isinstance(value, bool) and self.mention.within(str(value))
            ):
                return MARK
            case _:
                return value

    def summary(self, payload: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        """Return a summary without the sentences that contain the text."""
        short: dict[str, Any] = {
            key: self.mention.shortened(payload[key]) for key in ("text", "asked") if key in payload
        }
        quotes = [quote for quote in payload.get("said", ()) if not self.mention.within(dump(quote["text"]))]
        said = {"said": [self.json(quote) for quote in quotes]} if "said" in payload else {}
        return payload | short | said

    def value(self, value: str | list[str]) -> str | list[str]:
        """Return the value of a block without the sentences that contain the text."""
        if isinstance(value, str):
            return self.mention.shortened(value)
        return [short for line in value if (short := self.mention.shortened(line)) or not line]

    def _string(self, text: str, key: str) -> str:
        if text in self.hashes:
            return self.hashes[text]
        if key in _FIXED or text in self.hosted or (key in ("by", "speaker") and text in _ROLES):
            return text
        if key in _ID:
            return self._ids.setdefault(text, f"{NAME}_{len(self._ids)}") if self.mention.within(text) else text
        if key in _NAMED:
            return self.mention.without(text, NAME)
        return self._arguments(text) if key == "arguments" else self.mention.without(text)

    def _arguments(self, text: str) -> str:
        """Return the arguments of a call; JSON stays valid JSON."""
        if not self.mention.within(text):
            return text
        try:
            value = read_json(text, LOOSE)
        except Malformed:
            return self.mention.without(text)
        return self.mention.without(dump(self.json(value)), NAME)
