"""The part of a conversation that is in the context: a summary of the older part, and every message after it.

Each message has its entry's number in storage (`seq`), so that a summary can say how far it reaches; after a restart,
the same context is read again. A long message is shown in part: its number is its name for `read_on`, which returns the
other pages. Of earlier turns, long answers and arguments are shown by their beginning only: a model that needs them
reads them again. The program sets the author of a line in a summary and never reads it from a text: text from others
keeps its content, but anything in it that looks like the program's author labels is quoted.
"""

import asyncio
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from agent_core.base.errors import UsageError
from agent_core.base.events import CallAnswered
from agent_core.base.messages import (
    SEND,
    Answer,
    Assistant,
    Call,
    Message,
    Notice,
    System,
    User,
    pictures_of,
)
from agent_core.base.offload import PER_ENTRY, aside
from agent_core.base.pictures import MAX_PICTURES, Picture, as_past
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import visible
from agent_core.model.tokens import BYTES_PER_TOKEN
from agent_core.registry.validation import LIMIT_CHARS
from agent_core.storage import (
    BETWEEN,
    LARGEST_NUMBER,
    SUMMARY,
    ClaimedTurn,
    Entry,
    SaveText,
    TurnStore,
    content_hash,
)
from agent_core.storage.journal import (
    PagedEntry,
    Quote,
    ReplyEntry,
    SummaryEntry,
    chars_of,
    read_as,
    read_entry,
    write_entry,
)
from agent_core.storage.turn_store import SAID
from sandbox.errors import ProtocolError
from sandbox.wire.large import Large
from sandbox.wire.strict_json import LOOSE, Malformed, read_json
from sandbox.wire.values import LARGE, TAG, read_row

from .folds import message_of

_PREFIX: Final = "text-"
_PAGED: Final = ("user", "notice", "assistant", "result")
_GENEROUS: Final = 2  # the model's own text is cut at twice a page: its replies are limited already
_AROUND: Final = 120
_BEGINNING: Final = 200  # characters of a long answer or argument of an earlier turn

Payload = dict[str, Any]  # Any: JSON
NONE_KNOWN: Final[Mapping[Call, Call]] = MappingProxyType({})


def beginning(text: str, page_chars: int) -> str:
    """Return the beginning of a text that is shown at once."""
    return (
        text
        if len(text) <= page_chars
        else f"{text[:page_chars]}\n[… {len(text):,} characters in all]"
    )


def first_page(text: str, page_chars: int) -> tuple[Payload, tuple[SaveText, ...]]:
    """Return the payload of a text for an entry, and the write that stores the full text if it is longer than a page.

    A longer text is reduced to its first page and the hash of the full text.
    """
    if len(text) <= page_chars:
        return {"text": text}, ()
    whole = SaveText(text.encode("utf-8", "replace").decode())
    return {"text": text[:page_chars], "whole": content_hash(whole.text), "chars": len(text)}, (
        whole,
    )


def large_page(text: str, large: Large, page_chars: int) -> Payload:
    """Return the payload of an answer with a large value: its first page, and its length with all of the value.

    The text is about the value, with the value's beginning at its end.
    """
    before = len(text) - len(visible(large.beginning))
    return {"text": text[:page_chars], "chars": max(before, 0) + large.size}


def in_part(message: Message, seq: int, chars: int, page_chars: int) -> Message:
    """Return the message as it is shown to the model; `chars` is the full length if more is stored than it contains."""
    match message:
        case System():
            return message
        case Assistant(text, calls):
            most = page_chars * _GENEROUS
            if len(text) <= most and all(len(call.arguments) <= most for call in calls):
                return message
            shorter = tuple(
                call
                if len(call.arguments) <= most
                else replace(
                    call, arguments=json.dumps({"left_out": f"{len(call.arguments):,} characters"})
                )
                for call in calls
            )
            return replace(
                message,
                text=text if len(text) <= most else _first(text, seq, 0, page_chars),
                calls=shorter,
            )
        case Answer(_, _, whole):
            text = _first(whole, seq, chars, page_chars)
            return message if text == whole else replace(message, text=text)
        case User(whole, packed) | Notice(whole, packed):
            text = _first(whole, seq, chars, page_chars)
            if text == whole:
                return message
            data = (
                read_json(packed, LOOSE) if packed else {}
            )  # an event has another key, and is not packed again
            repacked = (
                json.dumps({**data, "message": text}, ensure_ascii=False)
                if "message" in data
                else ""
            )
            return replace(message, text=text, packed=repacked)


def _first(text: str, seq: int, chars: int, page_chars: int) -> str:
    total = max(chars, len(text))
    if total <= page_chars:
        return text
    size, name = _size(page_chars), f"{_PREFIX}{seq:x}"
    more = f"read_on(name={name!r}, page=2) gives the next" if seq else "the rest is not shown"
    return f"{text[:size]}\n[Page 1 of {-(-total // size)}, {total:,} characters in all: {more}.]"


def of_the_past(
    message: Message, seq: int, chars: int, past_chars: int, known: Mapping[Call, Call] = NONE_KNOWN
) -> Message:
    """Return a message of an earlier turn as the model is shown it: long answers and arguments by their beginning.

    What the agent said to the user stays, and so do the arguments that an endpoint may have signed. `known` has what
    calls became before.
    """
    match message:
        case Answer(_, _, text) if (total := max(chars, len(text))) > past_chars:
            return replace(message, text=f"{text[:_BEGINNING]}\n{_left_out(total, seq)}")
        case Assistant(_, calls) if any(len(call.arguments) > past_chars for call in calls):
            shorter = (
                known.get(call) or _call_of_the_past(call, seq, past_chars) for call in calls
            )
            return replace(message, calls=tuple(shorter))
        case _:
            return message


def _call_of_the_past(call: Call, seq: int, past_chars: int) -> Call:
    if len(call.arguments) <= past_chars or call.name == SEND or _is_signed(call):
        return call
    whole = {"left_out": _left_out(len(call.arguments), seq)}
    try:
        arguments = read_json(call.arguments, LOOSE, most=LIMIT_CHARS)
    except Malformed:
        return replace(call, arguments=json.dumps(whole))
    if isinstance(arguments, dict):
        texts = {name: _argument_text(value) for name, value in arguments.items()}
        shorter = {
            name: value
            if len(texts[name]) <= past_chars
            else f"{texts[name][:_BEGINNING]} {_left_out(len(text), seq)}"
            for (name, value), text in zip(arguments.items(), texts.values(), strict=True)
        }
        written = json.dumps(shorter, ensure_ascii=False)
        if len(written) < len(call.arguments):
            return replace(call, arguments=written)
    return replace(call, arguments=json.dumps(whole))


def _is_signed(call: Call) -> bool:
    """Return whether its endpoint wants more back with a call than the call's ID: it may have signed the arguments."""
    try:
        extra = read_json(call.extra, LOOSE) if call.extra else {}
    except Malformed:
        return True
    return not (isinstance(extra, dict) and extra.keys() <= {"id"})


def _argument_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _left_out(total: int, seq: int) -> str:
    return f"[… {total:,} characters in all: read_on(name='{_PREFIX}{seq:x}', page=1) shows them]"


def _size(page_chars: int) -> int:
    """Return how much of a text fits on a page with the text around it."""
    return max(page_chars - _AROUND, _AROUND)


class PageReader:
    """Returns the pages of texts that were shown in part in one conversation; `page_chars` is called for each page.

    `value_part` returns a part of a large value by its digest, from a byte on; None if it is not kept.
    """

    def __init__(
        self,
        store: TurnStore,
        line: str,
        page_chars: Callable[[], int],
        value_part: Callable[[str, int, int], str | None] = lambda digest, start, size: None,
    ) -> None:
        self._store = store
        self._line = line
        self._page_chars = page_chars
        self._value_part = value_part
        self._calls: tuple[object, str] = (
            None,
            "",
        )  # of the last reply that was read, and their text

    async def page(self, name: str, page: int) -> str:
        """Return a page of a long text, with its position among the others.

        Raises:
            UsageError: nothing has this name, or it has no such page.
        """
        match = re.fullmatch(rf"(?:{_PREFIX})?([0-9a-f]{{1,15}})", name.strip().lower())
        seq = int(match[1], 16) if match else 0
        entries = (
            await self._store.history(self._line, since=seq - 1, kinds=_PAGED, most=1)
            if seq > 0
            else []
        )
        entry = next((row for row in entries if row.seq == seq), None)
        if entry is None and 0 < seq <= LARGEST_NUMBER:  # a search found it elsewhere
            entry = await self._store.entry_in_reach(self._line, seq)
            entry = entry if entry is not None and entry.kind in _PAGED else None
        paged = read_entry(entry) if entry is not None else None
        if entry is None or not isinstance(paged, PagedEntry):
            raise UsageError(
                f"There is no long text named {name!r}.",
                fix="Take the name from where it was shown.",
            )
        whole = await self._store.text(paged.whole) if paged.whole else None
        text = paged.text if whole is None else whole
        if isinstance(paged, ReplyEntry):
            text += await self._text_of_calls(paged.calls)
        size, large = _size(self._page_chars()), _large_of(entry)
        total = paged.chars if large else len(text)
        pages = max(-(-total // size), 1)
        if not 1 <= page <= pages:
            raise UsageError(
                f"`{name}` has {pages} page{'' if pages == 1 else 's'}.", fix="Ask for one of them."
            )
        more = (
            f" Next: read_on(name={name!r}, page={page + 1})."
            if page < pages
            else " This is its end."
        )
        shown: str | None = text[(page - 1) * size : page * size]
        if large and page > 1:  # the value follows what is said about it
            start = max(0, (page - 1) * size - (total - large.size))
            part = await asyncio.to_thread(self._value_part, large.digest, start, size)
            shown = None if part is None else visible(part)
        if shown is None:
            raise UsageError(
                f"The value of `{name}` is not kept any longer.", fix="Call the function again."
            )
        return f"Page {page} of {pages} of {name}.{more}\n{shown}"

    async def _text_of_calls(self, calls: Sequence[Call]) -> str:
        """Return the text of a reply's calls, which is made once for all its pages."""
        if self._calls[0] != calls:
            size = sum(len(call.arguments) for call in calls)
            self._calls = calls, await aside(size, _calls_text, calls)
        return self._calls[1]


def _calls_text(calls: Sequence[Call]) -> str:
    """Return the calls of a reply with their arguments, as text after the reply's own."""
    lines: list[str] = []
    for call in calls:
        try:
            arguments = read_json(call.arguments, LOOSE, most=LIMIT_CHARS)
        except Malformed:
            arguments = None
        rows = (
            [f"{name}: {_argument_text(value)}" for name, value in arguments.items()]
            if isinstance(arguments, dict)
            else [call.arguments]
        )
        lines += ["", f"Call of {call.name}:", *rows]
    return "\n".join(map(visible, lines))


def _large_of(entry: Entry) -> Large | None:
    """Return the large value that a call returned, if it did."""
    answer = read_as(CallAnswered, entry)
    if answer is None or not answer.chars or entry.is_imported:
        return None
    value = answer.detail.get("value")
    if not (isinstance(value, dict) and value.get(TAG) == LARGE):
        return None
    with suppress(ProtocolError):  # a part of it was forgotten
        large = read_row(value)
        return large if isinstance(large, Large) else None
    return None


USER: Final = "user"
"""The author of the user's sentences; a function's author is its name with `()`, the assistant's is ""."""
ASKED: Final = "The user's message that is being worked on"

_SPEAKERS: Final = "user|human|assistant|system|developer|program|tool|function"
_AS_A_SPEAKER: Final = re.compile(
    rf"^((?:[^\w\n]|_)*+)((?:the\s+)?(?:{_SPEAKERS})(?:[^\w\n]|_)*?[:：])",
    re.IGNORECASE | re.MULTILINE,
)
_AS_ASKED: Final = re.compile(
    r"the\s+user\W{0,3}s\s+message\s+that\s+is\s+being\s+worked\s+on", re.IGNORECASE
)
_AGENT: Final = r"[A-Za-z0-9_-]{1,64}"
AUTHOR: Final = re.compile(
    rf"(?:user|a function|another agent|the agent {_AGENT}(?:, {_AGENT})*|[^\W\d]\w{{0,63}}\(\))?"
)
"""The authors of sentences in summaries, also in agent files."""


def label_of(by: str) -> str:
    """Return the label before a sentence of this author."""
    if by == USER:
        return "user: "
    return f"{by} said: " if by else ""


def of_function(name: str) -> str:
    """Return the author label for a function's answer; no function name equals the user's."""
    author = f"{name}()"
    return author if AUTHOR.fullmatch(author) else "a function"


def of_agent(names: str) -> str:
    """Return the author label for the text of other agents; no agent name equals the user's."""
    author = f"the agent {names}"
    return author if AUTHOR.fullmatch(author) else "another agent"


def harmless(text: str) -> str:
    """Return text of anyone but the user, without line starts that look like another author's, and without controls."""
    return _AS_ASKED.sub(r"“\g<0>”", _AS_A_SPEAKER.sub(r"\1“\2”", visible(text)))


# Roles, separators and the wire's own text around one message, in bytes.
_ENVELOPE: Final = 24
_LEAST_PAGE: Final = 200
_MAX_SEEN_BYTES: Final = 16_000_000  # of pictures, which are sent with each request

PRESSURE: Final = Notice(
    "Memory pressure: what you can see of this conversation is nearly as much as fits. Soon its oldest part is replaced"
    " by a summary; nothing is deleted. If something in it must stay before your eyes, write it into a memory block"
    " now, briefly. conversation_search finds all that was said, now and later. Then go on with what you were doing."
)
"""Shown once between two compactions; recognized by its text, also after a restart."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of the older part: it covers `covers` messages up to the entry `upto`; `seq` is its own entry.

    `model_text` is the model's summary (or the whole summary, in an older entry); `quotes` are pairs of author and
    sentence; `open_request` is the user's request in the current turn.
    """

    model_text: str
    covers: int
    upto: int
    style: str = "summary"
    seq: int = 0
    quotes: tuple[tuple[str, str], ...] = ()
    open_request: str = ""
    is_imported: bool = False

    @classmethod
    def of(cls, entry: Entry) -> "Summary":
        """Return the summary in an entry of this kind."""
        stored = read_entry(entry)
        assert isinstance(stored, SummaryEntry), "an entry of another kind is no summary"
        return cls(
            stored.text,
            stored.covers,
            stored.upto,
            stored.style,
            entry.seq,
            tuple((quote.by, quote.text) for quote in stored.said),
            stored.asked,
            entry.is_imported,
        )

    def entry(self) -> Entry:
        """Return the entry of the summary."""
        stored = SummaryEntry(
            text=self.model_text,
            covers=self.covers,
            upto=self.upto,
            style=self.style,
            said=tuple(Quote(by, text) for by, text in self.quotes),
            asked=self.open_request,
        )
        return write_entry(stored)

    @property
    def text(self) -> str:
        """The whole summary as the model reads it."""
        lines = [f"- {label_of(by)}{text}" for by, text in self.quotes]
        head = [self.model_text, *(["Also said:"] if lines else [])] if self.model_text else []
        return "\n".join(
            [*head, *lines, *([f"{ASKED}: {self.open_request}"] if self.open_request else [])]
        )

    def notice(self) -> Notice:
        """Return the summary as a notice for the model."""
        return Notice(
            f"The {self.covers:,} oldest messages of this conversation are out of your sight. This stands for them;"
            f" conversation_search(query) finds each of them word for word.\n{self.text}",
            is_imported=self.is_imported,
        )


@dataclass(slots=True)
class HistoryItem:
    """One message: complete, or the stored part of it (`chars` is the real length), and as it is shown."""

    turn: str
    seq: int
    chars: int
    whole: Message
    shown: Message
    size: int
    is_past: bool = False  # of a turn before the last one
    shorter: dict[Call, Call] = field(
        default_factory=dict
    )  # its long calls, as they are shown when it is past

    async def shorten(self, past_chars: int) -> None:
        """Shorten its long calls beside the event loop, once: a model or an endpoint chose their arguments."""
        calls = self.whole.calls if isinstance(self.whole, Assistant) else ()
        for call in calls:
            if len(call.arguments) > past_chars:
                short = await aside(
                    len(call.arguments), _call_of_the_past, call, self.seq, past_chars
                )
                self.shorter[call] = short


@dataclass(slots=True)
class History:
    """All messages of a conversation that are in its context, oldest first."""

    summary: Summary | None = None
    items: list[HistoryItem] = field(default_factory=list)
    size: int = 0
    page_chars: int = 12_000
    message_chars: int = 12_000  # up to here, the user's own messages are shown whole
    past_chars: int = 0
    _notice: Notice | None = None

    def take(self, entry: Entry, turn: str, seq: int) -> None:
        """Append the message of an entry, if it has one."""
        message = message_of(entry)
        if message is not None:
            self.add(turn, [message], seq, chars_of(entry))

    def add(self, turn: str, messages: Iterable[Message], seq: int = 0, chars: int = 0) -> None:
        """Append messages; answers are placed in the order of their calls, in any order of arrival.

        `chars` is the real length of the text, if the entry has only its first part.
        """
        for message in messages:
            if is_pressure(message) and self.summary is not None and 0 < seq < self.summary.seq:
                continue  # from before the last compaction
            shown = self._in_part(message, seq, chars)
            item = HistoryItem(turn, seq, chars, message, shown, size_of(shown))
            self.items.insert(self._place(message), item)
            self.size += item.size
            if pictures_of(message):
                self._limit_pictures(item)

    def _limit_pictures(self, newest_item: HistoryItem) -> None:
        """Leave the oldest pictures out of sight if there are too many, half of them at once.

        So what a model has read stays the beginning of what it reads next, which servers cache.
        """
        seen = [*filter(_seen_pictures, self.items)]
        seen.remove(newest_item)
        count, size = _picture_load([newest_item, *seen])
        if count <= MAX_PICTURES and size <= _MAX_SEEN_BYTES:
            return
        most = MAX_PICTURES // 2
        most_bytes = _MAX_SEEN_BYTES // 2
        while seen and (count > most or size > most_bytes):
            oldest = seen.pop(0)
            if isinstance(oldest.whole, User | Answer | Notice):
                past = map(as_past, oldest.whole.pictures)
                oldest.whole = replace(oldest.whole, pictures=tuple(past))
            self._show_again([oldest])
            count, size = _picture_load([newest_item, *seen])

    @property
    def warned(self) -> bool:
        """True if the model was warned of memory pressure since the last compaction."""
        return any(is_pressure(item.whole) for item in self.items)

    def last_request(self) -> str:
        """Return the text of the user's last message; "" if there is none."""
        messages = (item.whole for item in reversed(self.items))
        return next((message.text for message in messages if isinstance(message, User)), "")

    def open_calls(self) -> tuple[Call, ...]:
        """Return the calls of the last reply that have no answer."""
        answered = set[str]()
        for item in reversed(self.items):
            if isinstance(item.whole, Assistant):
                return tuple(call for call in item.whole.calls if call.id not in answered)
            answered |= {item.whole.call_id} if isinstance(item.whole, Answer) else set()
        return ()

    def cut_short(self, turn: str) -> tuple[int, int] | None:
        """Return the shown length and the full length of a turn's longest user message; None if all of it is shown."""
        users = (
            (item.whole, item)
            for item in self.items
            if item.turn == turn and item.shown is not item.whole
        )
        lengths = [
            max(item.chars, len(whole.text)) for whole, item in users if isinstance(whole, User)
        ]
        return (min(self.page_chars, max(lengths)), max(lengths)) if lengths else None

    def page(self, page_chars: int, message_chars: int) -> None:
        """Show long texts in parts of this size, but the user's messages whole up to `message_chars`."""
        if (page_chars, message_chars) == (self.page_chars, self.message_chars):
            return
        self.page_chars, self.message_chars = page_chars, message_chars
        self._show_again(self.items)

    async def leave_behind(self, turn: str, past_chars: int) -> None:
        """Show long answers and arguments by their beginning, but those of this turn and of the one before it.

        Turns in which the user said nothing do not count. Once per turn: the text that a model has read stays the
        beginning of what it reads next, which servers cache.
        """
        self.past_chars, place = past_chars, len(self.items)
        while place and self.items[place - 1].turn == turn:
            place -= 1
        before = ""
        while place and (not before or self.items[place - 1].turn == before):
            place -= 1
            if isinstance(self.items[place].whole, User):
                before = self.items[place].turn
        newly = [item for item in self.items[:place] if item.seq and not item.is_past]
        for item in newly:
            await item.shorten(past_chars)
        for item in newly:
            item.is_past = True
        self._show_again(newly)

    def paged(self, item: HistoryItem) -> Message:
        """Return a message as it was shown in its own turn."""
        return self._in_part(item.whole, item.seq, item.chars)

    def _in_part(self, message: Message, seq: int, chars: int) -> Message:
        is_users = isinstance(message, User) and not (message.speaker or message.is_imported)
        if is_users and max(chars, len(message.text)) <= self.message_chars:
            return message
        return in_part(message, seq, chars, self.page_chars)

    def _show_again(self, items: Iterable[HistoryItem]) -> None:
        for item in items:
            shown = self.paged(item)
            if item.is_past:
                shown = of_the_past(shown, item.seq, item.chars, self.past_chars, item.shorter)
            if (
                shown != item.shown
            ):  # keep the same object if nothing changed, so that it is not serialized again
                item.shown, item.size = shown, size_of(shown)
        self.size = self._measure()

    def fit(self, room: int) -> None:
        """Shorten the longest messages until everything fits or nothing more can be omitted."""
        while self.size > room and max(self.page_chars, self.message_chars) > _LEAST_PAGE:
            self.page(
                max(self.page_chars // 2, _LEAST_PAGE), max(self.message_chars // 2, _LEAST_PAGE)
            )

    def compact(self, summary: Summary, covered: int = 0) -> None:
        """Replace the first messages with a summary, including those covered by the previous one."""
        self.summary, self._notice = summary, summary.notice()
        self.items = [item for item in self.items[covered:] if not is_pressure(item.whole)]
        self.size = self._measure()

    def clear(self) -> None:
        """Remove everything from the context; the record in storage keeps it."""
        self.summary, self._notice, self.size = None, None, 0
        self.items.clear()

    def __iter__(self) -> Iterator[Message]:
        if self._notice is not None:
            yield self._notice
        for item in self.items:
            yield item.shown

    def _measure(self) -> int:
        noticed = size_of(self._notice) if self._notice else 0
        return noticed + sum(item.size for item in self.items)

    def _place(self, message: Message) -> int:
        place = end = len(self.items)
        if not isinstance(message, Answer):
            return end
        while not isinstance(reply := self.items[place - 1].whole, Assistant):
            place -= 1
        order = {call.id: at for at, call in enumerate(reply.calls)}
        # A notice may be there already, if a client's answer arrives in a later turn.
        while (
            place < end
            and isinstance(before := self.items[place].whole, Answer)
            and order[before.call_id] < order[message.call_id]
        ):
            place += 1
        return place


def _seen_pictures(item: HistoryItem) -> list[Picture]:
    """Return the pictures of a message that are in sight."""
    return [picture for picture in pictures_of(item.whole) if not picture.is_past]


def _picture_load(items: Iterable[HistoryItem]) -> tuple[int, int]:
    """Return the number and the bytes of the pictures in sight."""
    count = 0
    size = 0
    for item in items:
        for picture in _seen_pictures(item):
            count += 1
            size += picture.size
    return count, size


def is_pressure(message: Message) -> bool:
    """Check whether a message is the warning of memory pressure."""
    return isinstance(message, Notice) and message.text == PRESSURE.text


def size_of(message: Message) -> int:
    """Return the approximate size of a message on the wire in bytes."""
    match message:
        case Assistant():
            calls = sum(
                len(call.name) + _bytes(call.arguments) + len(call.extra) + 2 * _ENVELOPE
                for call in message.calls
            )
            return _bytes(message.text) + calls + sum(map(_bytes, message.reasoning)) + _ENVELOPE
        case Answer():
            return _bytes(message.text) + 2 * _ENVELOPE + _size_of_pictures(message.pictures)
        case User(text, packed) | Notice(text, packed):
            return _bytes(packed or text) + _ENVELOPE + _size_of_pictures(message.pictures)
        case System(text):
            return _bytes(text) + _ENVELOPE


def _size_of_pictures(pictures: Iterable[Picture]) -> int:
    """Return the bytes of text that take as many tokens as these pictures."""
    tokens = 0
    for picture in pictures:
        if not picture.is_past:
            tokens += picture.tokens
    return int(tokens * BYTES_PER_TOKEN)


def _bytes(text: str) -> int:
    # A model can write a lone surrogate, and a conversation that contains one must continue.
    return len(text.encode("utf-8", "surrogatepass"))


async def resume(
    store: TurnStore, line: str, history: History, before: int = LARGEST_NUMBER
) -> None:
    """Rebuild the history from storage, as after a restart or when turns were removed.

    Optionally only the entries `before` a number are read.
    """
    history.clear()
    entries = await store.history(line, before=before, kinds=(SUMMARY,))
    since = 0
    if entries:
        summary = Summary.of(entries[-1])
        history.compact(summary)
        since = summary.upto
    said = await store.history(line, since=since, before=before)

    def add() -> None:
        for entry in said:
            history.take(entry, entry.turn, entry.seq)

    await aside(len(said) * PER_ENTRY, add)


async def pop(store: TurnStore, line: str) -> list[Entry]:
    """Remove the last turn with messages, and later summaries, from the history; return its entries."""
    while entries := await store.hide_last_turn(line):
        if any(entry.kind in SAID for entry in entries):
            return entries
    return []


async def claim(
    store: TurnStore, line: str, owner: str, *, leaves: Collection[str] = ()
) -> ClaimedTurn | None:
    """Return the open turn, or a new one for what is waiting; a requested summary that was never made is abandoned.

    Messages from other agents, and events of the kinds in `leaves`, remain waiting for the runner.
    """
    skip = (*BETWEEN, *leaves)
    while (
        claimed := await store.next(line, owner, skip=skip)
    ) is not None and claimed.event.kind == SUMMARY:
        await store.finish(claimed.id, claimed.attempt)
    return claimed
