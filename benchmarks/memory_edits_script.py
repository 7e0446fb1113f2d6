"""A model that makes the right edits: from a case of the data to its replies, request by request."""

import re
from collections.abc import Generator, Sequence
from typing import Any, Final, TypeAlias

from tests.kit.steps import Ask, Choose, Say, Seen, Step, Wanted

Play: TypeAlias = Generator[Step, Seen, None]
"""Replies; each receives the next request."""

_PAIR: Final = "{} = {}"
_SOUGHT: Final = r"{} = ([0-9a-f-]{{36}})"


def pair(key: str, value: str) -> str:
    """Return a record in the form in which it is stored."""
    return _PAIR.format(key, value)


class Player:
    """Plays the given replies, turn by turn; `seen` is the last request."""

    def __init__(self) -> None:
        self.seen: Seen | None = None
        self._play: Play | None = None
        self._started = False

    def perform(self, play: Play) -> None:
        """Set the replies for the requests of the next turn."""
        self._play, self._started = play, False

    @property
    def choose(self) -> Choose:
        """Return the next step, as ScriptedModel calls it."""
        return self._next

    def _next(self, seen: Seen) -> Step:
        assert self._play is not None
        self.seen = seen
        if self._started:
            return self._play.send(seen)
        self._started = True
        return next(self._play)


def told(facts: Sequence[str]) -> Play:
    """Return the replies that store each of the facts at once."""
    yield Ask(*(_append(fact) for fact in facts))
    yield Say("I will remember that.")


def corrected(update: str, superseded: Sequence[str]) -> Play:
    """Replace the first fact that the new one makes untrue, and remove the others."""
    calls = [_replace(old, update if n == 0 else "") for n, old in enumerate(superseded)]
    yield Ask(*(calls or [_append(update)]))
    yield Say("I have corrected that.")


def said(text: str) -> Play:
    """Answer from the context."""
    yield Say(text)


def followed(key: str) -> Play:
    """Search for the key, then for its value, until that is no longer a key."""
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
    arguments: dict[str, Any] = {
        "name": "human",
        "old_content": old,
        "new_content": new,
    }  # Any: JSON
    return Wanted("core_memory_replace", arguments)
