"""Forgetting: what a human takes out of the record, so that its bytes are gone.

A text is replaced wherever it occurs, in all agents; turns go whole, and of one message its words. What was condensed
from it loses the sentences (a text) or is made anew (turns, messages). All of it is one transaction.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from agent_core.base.matching import MARK, NAME, Mention
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .subject import dump
from .turn_store import Entry

Words: TypeAlias = Callable[[str, float | None, Sequence[str]], str]
"""Text, time and tags of a row → what the index of words reads of it."""
Resummarize: TypeAlias = Callable[[dict[str, Any], Sequence[Entry]], dict[str, Any] | None]
"""A summary and the messages that are left of those it covers → the new summary; None if nothing is left."""

_OURS: Final = frozenset(
    (
        *("text", "packed", "chars", "reason", "speaker", "thought", "calls", "id", "name", "arguments", "version"),
        *("call_id", "whole", "outcome", "seconds", "detail", "covers", "upto", "style", "said", "by", "asked", "kind"),
        *("program", "model", "parameters", "instructions", "sections", "functions", "versions", "usage", "code"),
        *("prompt_tokens", "completion_tokens", "cached_tokens", "estimated"),
    )
)
"""The keys of what this program writes: they keep their names."""
_FIXED: Final = frozenset(("version", "outcome", "style", "kind", "program", "hash", "whole", "model"))
_NAMED: Final = frozenset(("name", "functions", "by", "speaker", "code", "source", "module", "path"))
_ID: Final = frozenset(("id", "call_id"))
_ROLES: Final = frozenset(("user", "assistant"))


@dataclass(frozen=True, slots=True)
class TurnsGone:
    """The turns of an agent that are forgotten whole, by number; before a time also what lies outside of turns."""

    agent: str
    turns: Sequence[int]
    before: float | None = None


@dataclass(frozen=True, slots=True)
class MessageGone:
    """The message of an agent whose words are forgotten, by the number of its entry."""

    agent: str
    seq: int


@dataclass(frozen=True, slots=True)
class Erasure:
    """An order to forget: what, how to index rows and make summaries anew, and the functions that keep their names."""

    target: Mention | TurnsGone | MessageGone
    words: Words
    resummarize: Resummarize
    hosted: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it can be forgotten: the number of its turn, of its entry, and its beginning."""

    turn: int
    seq: int
    speaker: str
    text: str
    at: float


class ForgetStore(Protocol):
    """The methods that take something out of the record."""

    async def last_said(self, agent: str, turn: int | None = None, entry: int | None = None) -> Said | None:
        """Return the last message of an agent, or that of a turn, or an entry of it, if it is there."""

    async def turns_before(self, agent: str, at: float) -> list[int]:
        """Return the numbers of the turns that began before a time."""

    async def rehearse(self, erasure: Erasure) -> dict[str, int]:
        """Return how much would be taken out of which place; nothing is changed."""

    async def forget(self, erasure: Erasure) -> dict[str, int]:
        """Take it out in one transaction, then free the file of its bytes; return how much was taken out of where.

        Whatever ends the program in between: the next opening of the file frees it.
        """


@dataclass(slots=True)
class Redaction:
    """Replaces a text in the values of rows, and leaves what they mean to the program as it is.

    `hashes` maps texts that were stored under their hash to where they are now.
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
                return {self._key(name): self.json(item, name) for name, item in value.items()}
            case int() | float() if (
                key not in _OURS and not isinstance(value, bool) and self.mention.within(str(value))
            ):
                return MARK
            case _:
                return value

    def summary(self, payload: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        """Return a summary without the sentences that hold the text."""
        short: dict[str, Any] = {
            key: self.mention.shortened(payload[key]) for key in ("text", "asked") if key in payload
        }
        quotes = [quote for quote in payload.get("said", ()) if not self.mention.within(dump(quote["text"]))]
        said = {"said": [self.json(quote) for quote in quotes]} if "said" in payload else {}
        return payload | short | said

    def value(self, value: str | list[str]) -> str | list[str]:
        """Return the value of a block without the sentences that hold the text."""
        if isinstance(value, str):
            return self.mention.shortened(value)
        return [short for line in value if (short := self.mention.shortened(line)) or not line]

    def _key(self, name: str) -> str:
        return name if name in _OURS or name in self.hosted else self.mention.without(name, NAME)

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
        """Return the arguments of a call, which stay JSON if they are."""
        if not self.mention.within(text):
            return text
        try:
            value = read_json(text, LOOSE)
        except Malformed:
            return self.mention.without(text)
        return self.mention.without(dump(self.json(value)), NAME)
