"""Completion of slash commands, arguments and function names; the history; and safe display of typed text."""

import re
from bisect import bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.history import History
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from agent_core.base.late import LateModule
from agent_core.base.plain_files import add_to, read_end
from agent_core.base.untrusted import one_line, visible
from agent_core.operations.attachments import as_sent, pasted, path_being_typed
from agent_core.views.styled_lines import certain, fitting

if TYPE_CHECKING:
    from agent_core.operations import catalog as slash_catalog
    from agent_core.operations.verb import CommandEntry
else:
    slash_catalog = LateModule("agent_core.operations.catalog")


_LEAST_OF_HELP = 3
_MOST_OF_HELP = 40
_MOST_PATHS = 200
_META = 60
_WORD = re.compile(r"(?<![A-Za-z0-9_])[0-9]*+([A-Za-z_][A-Za-z0-9_]*)$")


Offers: TypeAlias = Callable[[str, str], Awaitable[Iterable[tuple[str, str]]]]
"""A function that returns the names of a kind, such as `<version>`, after one word, each with a description."""


def completes_while_typing(before_cursor: str) -> bool:
    """Check whether to offer completions without Tab: for commands, calls, and files after an @."""
    return before_cursor.startswith(("/", "=", "?")) or path_being_typed(before_cursor) is not None


async def _nothing(kind: str, first: str) -> Iterable[tuple[str, str]]:
    return ()


class PromptCompleter(Completer):
    """A completer that uses the catalog, function names, and names that the conversation currently offers."""

    def __init__(self, names: Callable[[], Sequence[str]], offers: Offers = _nothing) -> None:
        self._names = names
        self._offers = offers

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return the completions at the cursor, without slow lookups."""
        text = document.text_before_cursor
        if not text.startswith("/"):
            if (path := path_being_typed(text)) is not None:
                return [completion for completion in _paths(path) if " " not in completion.text]
            match, is_call = _WORD.search(text), text.startswith(("=", "?"))
            return (
                self._functions(match[1])
                if match and (is_call or complete_event.completion_requested)
                else []
            )
        name, space, arguments = text[1:].partition(" ")
        if not space:
            entries = _matching_entries(name)
            if (
                _LEAST_OF_HELP <= len(name) <= _MOST_OF_HELP
            ):  # then those with a help word that begins with the letters
                begins = re.compile(rf"\b{re.escape(name)}", re.IGNORECASE)
                others = [entry for entry in slash_catalog.ENTRIES if entry not in entries]
                entries = [*entries, *(entry for entry in others if begins.search(entry.says))]
            return _commands(name, entries)
        before, typed = _split_words(name, arguments)
        return [
            completion
            for offer in _offers(name, before)
            for completion in self._complete_offer(offer, typed)
        ]

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions at the cursor."""
        for completion in self.get_completions(document, complete_event):
            yield completion
        text = document.text_before_cursor
        name, space, arguments = text[1:].partition(" ")
        if text.startswith("/") and space:
            before, typed = _split_words(name, arguments)
            for kind in _offers(name, before):
                for completion in await self._looked_up(kind, before[0] if before else "", typed):
                    yield completion

    def _complete_offer(self, offer: str, typed: str) -> Iterable[Completion]:
        match offer:
            case "<function>":
                return self._functions(typed)
            case "<place>":
                return self._functions(typed) if ":" not in typed else []
            case "<command>":
                return _commands(typed, _matching_entries(typed))
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
        return [completion(name, typed) for name in fitting(typed, sorted(self._names()), str)]


def _split_words(name: str, arguments: str) -> tuple[list[str], str]:
    """Return the words before the word at the cursor, and the typed part of that word. A path is one word."""
    if name in slash_catalog.BY_NAME and slash_catalog.BY_NAME[name].takes == "<path>":
        return [], arguments
    *before, typed = arguments.split(" ")
    return before, typed


def _offers(name: str, before: Sequence[str]) -> Sequence[str]:
    return slash_catalog.BY_NAME[name].offers(before) if name in slash_catalog.BY_NAME else ()


def _commands(typed: str, entries: Iterable["CommandEntry"]) -> Iterable[Completion]:
    return [
        Completion(
            entry.name,
            start_position=-len(typed),
            display=f"/{entry.name}",
            display_meta=entry.says,
        )
        for entry in entries
    ]


def _matching_entries(typed: str) -> list["CommandEntry"]:
    return fitting(typed, slash_catalog.ENTRIES, lambda entry: entry.name)


def _paths(typed: str) -> Iterable[Completion]:
    completions = PathCompleter(expanduser=True).get_completions(
        Document(typed), CompleteEvent(completion_requested=True)
    )
    return [
        Completion(
            completion.text,
            completion.start_position,
            display=certain(one_line(completion.display_text)),
        )
        for completion in islice(completions, _MOST_PATHS)
        if one_line(completion.text)
        == completion.text  # names with control characters must be typed manually
    ]


def _following(offers: Iterable[tuple[str, str]], typed: str) -> Iterable[Completion]:
    return [
        completion(text, typed, one_line(says, _META))
        for text, says in offers
        if text.startswith(typed)
    ]


def completion(text: str, typed: str, says: str = "") -> Completion:
    """Return a completion of what is typed, with a description."""
    return Completion(text, -len(typed), certain(one_line(text)), certain(one_line(says)))


# The history of a prompt, stored in the workspace's state folder.

MOST_BYTES: Final = 2 << 20  # read from the end of a file
FORGET: Final = "/forget"  # such a line contains text that must not be stored
_HAS_PASTE: Final = " pasted"  # after the time of a message that has a pasted part
MOST_CHARS: Final = 64 << 10  # of a message in the history


class KeptHistory(History):
    """A history in the workspace's state folder, or in memory while it cannot be stored there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._early: list[str] = []

    def load_history_strings(self) -> Iterable[str]:
        """Return the stored messages, latest first, or none if the file cannot be read."""
        try:
            text = read_end(self._path, MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            return []
        messages, lines, is_pasted = list[str](), list[str](), False
        for line in [
            *text.split("\n"),
            "",
        ]:  # the format of `prompt_toolkit`: each line of a message follows a plus
            if line.startswith("+"):
                lines.append(line[1:])
            else:
                if lines:
                    message, lines = "\n".join(lines), []
                    messages.append(pasted(message) if is_pasted else message)
                is_pasted = line.startswith("# ") and line.endswith(_HAS_PASTE)
        return [message for message in messages if len(message) <= MOST_CHARS][::-1]

    def drop(self, buffer: Buffer) -> None:
        """Drop all messages, also in the buffer, and reload the stored ones. Text being typed stays."""
        is_typed = buffer.text not in self.get_strings()
        self._loaded, self._loaded_strings, self._early = False, [], []
        buffer.reset(buffer.document if is_typed else None)

    def store_string(self, string: str) -> None:
        """Store one message, or keep it in memory if the disk is full or not writable. Do not store `/forget` lines."""
        if string.lstrip(" ").startswith(FORGET):
            return
        self._early.append(string.encode("utf-8", "backslashreplace").decode())
        with suppress(OSError):
            while self._early and self._path.parent.is_dir() and not self._path.parent.is_symlink():
                sent = as_sent(self._early[0])
                lines = "".join(f"+{line}\n" for line in sent.split("\n"))
                note = _HAS_PASTE if sent != self._early[0] else ""
                add_to(self._path, f"\n# {datetime.now()}{note}\n{lines}".encode())
                del self._early[0]


# Safe display of text that is typed, pasted or suggested from the history: control characters are escaped. The text
# itself stays unchanged. A very long line is shown as its two ends with its length in between: it is redrawn at each
# key, and the time for that must not grow with pasted text.

LONGEST = 2_000
"""The maximum length of a line that is shown completely."""
_END = 200


class Escaped(Processor):
    """A processor that escapes control characters and shortens very long lines."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return a line of the input as drawn, with the mapping of positions."""
        fragments: StyleAndTextTuples = [
            (part[0], as_sent(part[1])) for part in transformation_input.fragments
        ]
        text = fragment_list_to_text(fragments)
        if len(text) > LONGEST:
            parts = [*text[:_END], text[_END:-_END], *text[-_END:]]
            mark = f"[pasted: {len(text):,} characters]"
            shown: StyleAndTextTuples = [
                ("", visible(part) if len(part) == 1 else mark) for part in parts
            ]
            return _transformation(shown, [len(part) for part in parts])
        if visible(text) == text:
            return Transformation(fragments)
        shown = [
            (fragment[0], visible(fragment[1])) for fragment in explode_text_fragments(fragments)
        ]
        return _transformation(shown, [1] * len(shown))


def shortened(line: str) -> str:
    """Return a sent line as the prompt echoes it."""
    line = as_sent(line)
    return (
        line
        if len(line) <= LONGEST
        else f"{line[:_END]} [pasted: {len(line):,} characters] {line[-_END:]}"
    )


def _transformation(shown: StyleAndTextTuples, sizes: list[int]) -> Transformation:
    """Return the parts of a line as drawn; `sizes` are their lengths in the original line."""
    starts = list(accumulate(sizes, initial=0))
    ends = list(accumulate((len(fragment[1]) for fragment in shown), initial=0))
    return Transformation(
        shown,
        source_to_display=lambda at: ends[min(bisect_right(starts, at) - 1, len(ends) - 1)],
        display_to_source=lambda at: starts[min(bisect_right(ends, at) - 1, len(starts) - 1)],
    )
