"""A model that makes the right edits: a case of the data → its replies, request by request."""

import re
from collections.abc import Generator, Sequence
from typing import Any, Final, TypeAlias

from tests.kit.steps import Ask, Choose, Say, Seen, Step, Wanted

Play: TypeAlias = Generator[Step, Seen, None]
"""Replies; each is sent the request that comes next."""

_PAIR: Final = "{} = {}"
_SOUGHT: Final = r"{} = ([0-9a-f-]{{36}})"


def pair(key: str, value: str) -> str:
    """A record as it is put aside."""
    return _PAIR.format(key, value)


class Player:
    """Plays what it is told to, turn by turn; `seen` is the last request."""

    def __init__(self) -> None:
        self.seen: Seen | None = None
        self._play: Play | None = None
        self._started = False

    def perform(self, play: Play) -> None:
        """Answer the requests of the next turn so."""
        self._play, self._started = play, False

    @property
    def choose(self) -> Choose:
        """As the scripted model takes it."""
        return self._next

    def _next(self, seen: Seen) -> Step:
        assert self._play is not None
        self.seen = seen
        if self._started:
            return self._play.send(seen)
        self._started = True
        return next(self._play)


def told(facts: Sequence[str]) -> Play:
    """Keeps each of the facts, in one reply."""
    yield Ask(*(_append(fact) for fact in facts))
    yield Say("I will remember that.")


def corrected(update: str, superseded: Sequence[str]) -> Play:
    """Puts the new fact in the place of the first that it makes untrue, and takes the others out."""
    calls = [_replace(old, update if n == 0 else "") for n, old in enumerate(superseded)]
    yield Ask(*(calls or [_append(update)]))
    yield Say("I have corrected that.")


def said(text: str) -> Play:
    """Answers from what it has before it."""
    yield Say(text)


def followed(key: str) -> Play:
    """Searches for the key, then for what stood beside it, until that is no key."""
    while True:
        seen = yield Ask(Wanted("archival_memory_search", {"query": key}))
        found = re.search(_SOUGHT.format(key), "\n".join(seen.answers))
        if found is None:
            break
        key = found[1]
    yield Say(key)


def _append(fact: str) -> Wanted:
    return Wanted("core_memory_append", {"name": "human", "content": fact})


def _replace(old: str, new: str) -> Wanted:
    arguments: dict[str, Any] = {"name": "human", "old_content": old, "new_content": new}  # Any: JSON
    return Wanted("core_memory_replace", arguments)
