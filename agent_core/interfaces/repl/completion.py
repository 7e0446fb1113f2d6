"""Completion: slash commands and their arguments as they are typed, function names on Tab."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from agent_core.untrusted import one_line

from ..catalogue import BY_NAME, ENTRIES, Entry
from ..fuzzy import fitting

_LEAST_OF_HELP = 3
_MOST_PATHS = 200
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
        return self._argument(name, rest) if space else _commands(name, _fitting(name))

    def _argument(self, name: str, typed: str) -> Iterable[Completion]:
        kind = BY_NAME[name].argument if name in BY_NAME else ""
        if kind == "word":
            word, space, rest = typed.partition(" ")
            following = self._others("label") if name == "memory" and word in BY_NAME[name].then else ()
            return _following(following, rest) if space else _following(BY_NAME[name].then, word)
        if kind in ("agent", "call"):
            return _following(self._others(kind), typed)
        if kind == "path":
            return _paths(typed)
        if kind and " " in typed:
            return _following(BY_NAME[name].then, typed.partition(" ")[2])
        if kind == "function":
            return self._functions(typed)
        return _commands(typed, _named(typed)) if kind == "command" else []

    def _functions(self, typed: str) -> Iterable[Completion]:
        return [
            Completion(name, start_position=-len(typed), display=one_line(name))
            for name in fitting(typed, sorted(self._names()), str)
        ]


def _commands(typed: str, entries: Iterable[Entry]) -> Iterable[Completion]:
    return [
        Completion(entry.name, start_position=-len(typed), display=f"/{entry.name}", display_meta=entry.says)
        for entry in entries
    ]


def _fitting(typed: str) -> list[Entry]:
    """The commands by a few letters of their names, then those whose help has a word that begins so."""
    named = _named(typed)
    if len(typed) < _LEAST_OF_HELP:
        return named
    begins = re.compile(rf"\b{re.escape(typed)}", re.IGNORECASE)
    return named + [entry for entry in ENTRIES if entry not in named and begins.search(entry.says)]


def _named(typed: str) -> list[Entry]:
    return fitting(typed, ENTRIES, lambda entry: entry.name)


def _paths(typed: str) -> Iterable[Completion]:
    found = PathCompleter(expanduser=True).get_completions(Document(typed), CompleteEvent(completion_requested=True))
    return [
        Completion(each.text, each.start_position, display=one_line(each.display_text))
        for each in islice(found, _MOST_PATHS)
        if one_line(each.text) == each.text  # what would act on the screen is typed by hand
    ]


def _following(words: Iterable[str], typed: str) -> Iterable[Completion]:
    return [Completion(word, start_position=-len(typed)) for word in words if word.startswith(typed)]
