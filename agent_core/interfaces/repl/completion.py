"""Completion: slash commands and their arguments as they are typed, function names on Tab."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from agent_core.base.late import LateModule
from agent_core.base.untrusted import one_line

from ..attachments import path_being_typed
from ..choices import fitting
from ..columns import certain

if TYPE_CHECKING:
    from .. import catalogue
    from ..commands.verb import CommandEntry
else:  # it knows all verbs
    catalogue = LateModule("agent_core.interfaces.catalogue")

_LEAST_OF_HELP = 3
_MOST_OF_HELP = 40
_MOST_PATHS = 200
_META = 60
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


Offers: TypeAlias = Callable[[str, str], Awaitable[Iterable[tuple[str, str]]]]
"""Asked for names of a kind, such as `<version>`, after one word: each name with what is said of it."""


def completes_while_typing(before_cursor: str) -> bool:
    """Check whether completions are offered without Tab: for commands, calls, and files after an @."""
    return before_cursor.startswith(("/", "=", "?")) or path_being_typed(before_cursor) is not None


async def _nothing(kind: str, first: str) -> Iterable[tuple[str, str]]:
    return ()


class PromptCompleter(Completer):
    """A completer that uses the catalog, function names, and what is offered at this moment."""

    def __init__(self, names: Callable[[], Sequence[str]], offers: Offers = _nothing) -> None:
        self._names = names
        self._offers = offers

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return what can stand at the cursor, without looking anything up."""
        text = document.text_before_cursor
        if not text.startswith("/"):
            if (path := path_being_typed(text)) is not None:
                return [completion for completion in _paths(path) if " " not in completion.text]
            match, is_call = _WORD.search(text), text.startswith(("=", "?"))
            return self._functions(match[0]) if match and (is_call or complete_event.completion_requested) else []
        name, space, arguments = text[1:].partition(" ")
        if not space:
            return _commands(name, _fitting(name))
        before, typed = _parted(name, arguments)
        return [completion for offer in _offers(name, before) for completion in self._known(offer, typed)]

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield what can stand at the cursor."""
        for completion in self.get_completions(document, complete_event):
            yield completion
        text = document.text_before_cursor
        name, space, arguments = text[1:].partition(" ")
        if text.startswith("/") and space:
            before, typed = _parted(name, arguments)
            for kind in _offers(name, before):
                for completion in await self._looked_up(kind, before[0] if before else "", typed):
                    yield completion

    def _known(self, offer: str, typed: str) -> Iterable[Completion]:
        match offer:
            case "<function>":
                return self._functions(typed)
            case "<place>":
                return self._functions(typed) if ":" not in typed else []
            case "<command>":
                return _commands(typed, _named(typed))
            case "<path>":
                return _paths(typed)
            case _:
                return _following([(offer, "")], typed) if not offer.startswith("<") else []

    async def _looked_up(self, kind: str, first: str, typed: str) -> Iterable[Completion]:
        if kind == "<place>":
            name, colon, line = typed.partition(":")
            return _following(await self._offers("<line>", name), line) if colon else []
        return _following(await self._offers(kind, first), typed) if kind.startswith("<") else []

    def _functions(self, typed: str) -> Iterable[Completion]:
        return [
            Completion(name, start_position=-len(typed), display=certain(one_line(name)))
            for name in fitting(typed, sorted(self._names()), str)
        ]


def _parted(name: str, arguments: str) -> tuple[list[str], str]:
    """Return the words before the cursor's word, and the typed part of that one. A path is one word."""
    if name in catalogue.BY_NAME and catalogue.BY_NAME[name].takes == "<path>":
        return [], arguments
    *before, typed = arguments.split(" ")
    return before, typed


def _offers(name: str, before: Sequence[str]) -> Sequence[str]:
    return catalogue.BY_NAME[name].offers(before) if name in catalogue.BY_NAME else ()


def _commands(typed: str, entries: Iterable["CommandEntry"]) -> Iterable[Completion]:
    return [
        Completion(entry.name, start_position=-len(typed), display=f"/{entry.name}", display_meta=entry.says)
        for entry in entries
    ]


def _fitting(typed: str) -> list["CommandEntry"]:
    """Return the commands that match a few letters of their names, then those with a help word that begins so."""
    named = _named(typed)
    if not _LEAST_OF_HELP <= len(typed) <= _MOST_OF_HELP:
        return named
    begins = re.compile(rf"\b{re.escape(typed)}", re.IGNORECASE)
    return named + [entry for entry in catalogue.ENTRIES if entry not in named and begins.search(entry.says)]


def _named(typed: str) -> list["CommandEntry"]:
    return fitting(typed, catalogue.ENTRIES, lambda entry: entry.name)


def _paths(typed: str) -> Iterable[Completion]:
    completions = PathCompleter(expanduser=True).get_completions(
        Document(typed), CompleteEvent(completion_requested=True)
    )
    return [
        Completion(completion.text, completion.start_position, display=certain(one_line(completion.display_text)))
        for completion in islice(completions, _MOST_PATHS)
        if one_line(completion.text) == completion.text  # what would act on the screen must be typed manually
    ]


def _following(offers: Iterable[tuple[str, str]], typed: str) -> Iterable[Completion]:
    return [
        Completion(
            text,
            start_position=-len(typed),
            display=certain(one_line(text)),
            display_meta=certain(one_line(says, _META)),
        )
        for text, says in offers
        if text.startswith(typed)
    ]
