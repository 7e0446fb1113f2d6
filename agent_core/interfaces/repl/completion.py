"""Completion: slash commands and their arguments as they are typed, function names on Tab."""

import re
from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from agent_core.untrusted import one_line

from ..catalogue import BY_NAME, ENTRIES

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


class Words(Completer):
    """Completes from the catalogue, and from the names of functions, agents and blocks as they are at this moment."""

    def __init__(
        self, names: Callable[[], Sequence[str]], others: Callable[[str], Sequence[str]] = lambda kind: ()
    ) -> None:
        self._names = names
        self._others = others

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What could stand at the cursor."""
        text = document.text_before_cursor
        if not text.startswith("/"):
            found = _WORD.search(text)
            return self._functions(found[0]) if found and complete_event.completion_requested else []
        name, space, rest = text[1:].partition(" ")
        return self._argument(name, rest) if space else _commands(name)

    def _argument(self, name: str, typed: str) -> Iterable[Completion]:
        kind = BY_NAME[name].argument if name in BY_NAME else ""
        if kind == "word":
            word, space, rest = typed.partition(" ")
            following = self._others("label") if word in BY_NAME[name].then else ()
            return _following(following, rest) if space else _following(BY_NAME[name].then, word)
        if kind == "agent":
            return _following(self._others("agent"), typed)
        if kind and " " in typed:
            return _following(BY_NAME[name].then, typed.partition(" ")[2])
        if kind == "function":
            return self._functions(typed)
        return _commands(typed) if kind == "command" else []

    def _functions(self, typed: str) -> Iterable[Completion]:
        return [
            Completion(name, start_position=-len(typed), display=one_line(name))
            for name in sorted(self._names(), key=lambda name: (not name.startswith(typed), name))
            if typed.lower() in name.lower()
        ]


def _commands(typed: str) -> Iterable[Completion]:
    return [
        Completion(entry.name, start_position=-len(typed), display=f"/{entry.name}", display_meta=entry.says)
        for entry in ENTRIES
        if entry.name.startswith(typed)
    ]


def _following(words: Iterable[str], typed: str) -> Iterable[Completion]:
    return [Completion(word, start_position=-len(typed)) for word in words if word.startswith(typed)]
