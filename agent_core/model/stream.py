"""Assembly of chunks into pieces and one whole reply, in any of the usual forms. Pure.

Some servers leave the thought in the text, between `<think>` at its very start and `</think>`; it is split off. Calls
that were cut off at the length limit are reported with their unfinished argument.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from agent_core.base.messages import Call
from agent_core.base.records import dataclass, replace
from sandbox.wire.strict_json import LOOSE, Malformed, read_next

from .reading import Holder, Shown, attached_call, meant, read_text, unwrapped, written_calls
from .reply import NOTES, CallPiece, Finish, Piece, Reply, TextPiece, ThoughtPiece, TokenUsage
from .wire import Entry, Fragment, is_object, read_chunk, read_progress, read_usage

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
MOST_BLANKS: Final = 4_096  # before a reply or a step begins; more blanks mean that none will


class Splitter:
    """Separates thought from text in a stream."""

    def __init__(self) -> None:
        self._held = ""
        self._place = "start"

    def feed(self, part: str) -> tuple[str, str]:
        """Return the thought and the text in this part, and hold back a possible partial mark."""
        self._held += part
        if self._place == "start":
            start = self._held.lstrip()
            if start.startswith(_OPEN):
                self._place, self._held = "thought", start[len(_OPEN) :]
            elif not _OPEN.startswith(start) or len(self._held) > MOST_BLANKS:  # else quadratic time
                self._place = "text"
        thought = ""
        if self._place == "thought":
            thought, mark, text = self._held.partition(_CLOSE)
            half = next((size for size in range(len(_CLOSE) - 1, 0, -1) if thought.endswith(_CLOSE[:size])), 0)
            if mark:
                self._place, self._held = "gap", text
            else:
                thought, self._held = thought[: len(thought) - half], thought[len(thought) - half :]
        if self._place == "gap" and (text := self._held.lstrip()):
            self._place, self._held = "text", text
        return thought, self._take() if self._place == "text" else ""

    def rest(self) -> tuple[str, str]:
        """Return the text still held back at the end of the stream."""
        if self._place == "gap":
            return "", ""
        return (self._take(), "") if self._place == "thought" else ("", self._take())

    def _take(self) -> str:
        buffered, self._held = self._held, ""
        return buffered


MOST_CALLS: Final = 128  # per reply; further calls are dropped, and the note says so
_MOST_REASONING_CHARS: Final = 1 << 20
_LONGEST_ID: Final = 200
_LONGEST_NAME: Final = 64  # of a function: a longer name is invalid
_FILTERED: Final = frozenset({"content_filter", "safety", "recitation"})


@dataclass(slots=True)
class _OpenCall:
    index: int | None
    id: str
    name: str
    arguments: list[str]
    extra: dict[str, Any]


class Assembly:
    """An accumulator for one reply. `shown` are the functions of this step; `used_ids` the call ids already in use."""

    def __init__(self, *, shown: Shown, used_ids: Collection[str], new_id: Callable[[], str]) -> None:
        self._shown = shown
        self._taken = set(used_ids)
        self._new_id = new_id
        self._splitter = Splitter()
        self._holder = Holder(shown)
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: list[_OpenCall] = []
        self._latest: dict[int | None, _OpenCall] = {}  # by index
        self._beyond = 0  # calls beyond the limit
        self._refused = False
        self._finish = ""
        self._reasoning: list[str] = []
        self.usage: TokenUsage | None = None
        self.extras: dict[str, Mapping[str, Any]] = {}
        """Data to return to the endpoint, by the ids of the reply's calls."""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def add(self, entry: Entry) -> list[Piece]:
        """Return the pieces that a chunk adds."""
        delta = read_chunk(entry)
        self.usage = read_usage(entry) or self.usage
        self._finish = delta.finish or self._finish
        self._refused = self._refused or bool(delta.refusal)
        if delta.reasoning and sum(map(len, self._reasoning)) < _MOST_REASONING_CHARS:
            self._reasoning.append(delta.reasoning)
        written: list[CallPiece] = []
        for fragment in delta.fragments:
            call = self._open_call(fragment)
            call.id = call.id or fragment.id
            call.name = call.name or fragment.name
            call.arguments.append(fragment.arguments)
            call.extra.update(fragment.extra)
            if call.name and fragment.arguments and len(self._calls) < MOST_CALLS:
                written.append(CallPiece(self._calls.index(call), call.name[:_LONGEST_NAME], fragment.arguments))
        thought, text = self._splitter.feed(delta.text + delta.refusal)
        return [*read_progress(entry), *self._show(delta.thought + thought, text), *written]

    def close(self, usage: TokenUsage) -> list[Piece]:
        """Return the last pieces: text that was still held back, and the reply, with the reported usage or this one."""
        pieces = self._show(*self._splitter.rest())
        finish = "refusal" if self._refused else finish_of(self._finish)
        reply = Reply(self.text, "".join(self._thought), (), finish, self.usage or usage, NOTES.get(finish, ""))
        reply = replace(self._with_calls(reply) if self._calls else self._bare(reply), reasoning=tuple(self._reasoning))
        tail = self._holder.rest()
        if reply.finish == "calls" and not self._calls:
            end = self.text.index(reply.text) + len(reply.text)
            tail = tail[: max(0, end - len(self.text) + len(tail))]
        return [*pieces, TextPiece(tail), reply] if tail else [*pieces, reply]

    def _show(self, thought: str, text: str) -> list[Piece]:
        self._thought.append(thought)
        self._text.append(text)
        shown = self._holder.feed(text) if text else ""
        pieces: list[Piece] = [ThoughtPiece(thought)] if thought else []
        return [*pieces, TextPiece(shown)] if shown else pieces

    def _open_call(self, fragment: Fragment) -> _OpenCall:
        """Return the call that a fragment belongs to, which may be a new one."""
        open_call = self._latest.get(fragment.index)
        # Some servers give every parallel call the index 0, or none: a name with another id begins a new call.
        begins = (
            bool(fragment.name)
            and open_call is not None
            and (fragment.index is None or fragment.id not in {"", open_call.id})
        )
        if open_call is None or begins:
            open_call = _OpenCall(fragment.index, fragment.id, fragment.name, [], {})
            self._latest[fragment.index] = open_call
            self._beyond += len(self._calls) == MOST_CALLS
            if len(self._calls) < MOST_CALLS:
                self._calls.append(open_call)
        return open_call

    def _with_calls(self, reply: Reply) -> Reply:
        whole, cut = self._calls, tuple[str, ...]()
        if reply.finish == "length":
            whole = [call for call in self._calls if is_object("".join(call.arguments))]
            halves = [call for call in self._calls if call not in whole]
            cut = tuple(cut_call(call.name, "".join(call.arguments)) for call in halves)
        note = reply.note
        if cut:
            note = note_on(cut)
        elif self._beyond:
            note = f"The reply asked for {self._beyond + MOST_CALLS} calls; the first {MOST_CALLS} were taken."
        calls = tuple(self._call(call.id, call.name, "".join(call.arguments)) for call in whole)
        self.extras = {call.id: opened.extra for call, opened in zip(calls, whole, strict=True) if opened.extra}
        finish: Finish = "calls" if calls and reply.finish == "stop" else reply.finish
        return replace(reply, calls=calls, finish=finish, note=note, cut=cut)

    def _bare(self, reply: Reply) -> Reply:
        read = read_text(reply.text, self._shown) if reply.finish == "stop" else None
        if read is None:
            written = written_calls(reply.text) if self._shown else ()
            return replace(reply, written=written, attached=attached_call(reply.text, self._shown))
        note = "The call was sent as text and was understood as a call."
        calls = tuple(self._call("", call.name, call.arguments) for call in read.calls)
        written = tuple(call.name for call in calls)
        return replace(reply, text=read.lead_in, calls=calls, finish="calls", note=note, written=written)

    def _call(self, given_id: str, name: str, arguments: str) -> Call:
        is_new = 0 < len(given_id) <= _LONGEST_ID and given_id not in self._taken
        call_id = given_id if is_new else self._new_id()
        name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        self._taken.add(call_id)
        return Call(call_id, meant(name, self._shown) or name, unwrapped(arguments))


def finish_of(said: str) -> Finish:
    """Return the finish reason of a reply from the endpoint's name for it."""
    if said.lower() in _FILTERED:
        return "filter"
    return "length" if said.lower() in {"length", "max_tokens"} else "stop"


_NAME: Final = re.compile(r"\s*[{,]\s*")
_VALUE: Final = re.compile(r"\s*:\s*")


def cut_call(name: str, arguments: str) -> str:
    """Return a phrase that names the call and the argument at which its JSON text breaks off."""
    argument = cut_argument(arguments)
    return f"the argument `{argument}` of a call of `{name}`" if argument else f"a call of `{name}`"


def cut_argument(arguments: str) -> str:
    """Return the name of the argument in which a truncated JSON text ends; "" if no argument has begun."""
    name, place = "", 0
    with suppress(Malformed):
        while begun := _NAME.match(arguments, place):
            name = ""
            written, place = read_next(arguments, begun.end(), LOOSE)
            if colon := _VALUE.match(arguments, place):
                name = str(written)
                _, place = read_next(arguments, colon.end(), LOOSE)
    return name


def note_on(cut: Iterable[str]) -> str:
    """Return the note for the user about calls that were cut off."""
    where = " and ".join(cut)
    head = f"The reply was cut off at its length limit, in {where}: that was not called."
    return f"{head} `model.max_tokens` sets the limit."
