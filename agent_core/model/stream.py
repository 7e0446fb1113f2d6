"""Assembly of chunks into pieces and one whole reply, in any of the usual forms. Pure.

This is the one reader of replies, over each API: chunks → text, thought, calls, end. Calls that were cut off are
reported with their unfinished argument.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from agent_core.base.messages import Call
from agent_core.base.records import replace
from agent_core.base.untrusted import one_line
from sandbox.wire.strict_json import LOOSE, Malformed, read_next, whole_characters

from .fragments import MAX_CALLS, OpenCall, OpenCalls
from .reading import (
    Holder,
    KnownNames,
    attached_call,
    forms,
    marked_function,
    meant,
    read_text,
    unwrapped,
    written_calls,
)
from .reasoning import Reasoning, extra_text
from .reply import NOTES, CallPiece, Finish, Piece, Reply, TextPiece, ThoughtPiece, TokenUsage
from .splitter import Splitter
from .wire import Entry, WireDelta, is_object, read_chunk, read_progress, read_usage

_USUAL_KEYS: Final = frozenset(("role", "content", "tool_calls", "refusal"))
"""What most messages have alone: none of it is reasoning, unless the content is a list."""
_LONGEST_ID: Final = 200
_LONGEST_GIVEN_ID: Final = 1 << 16
_MAX_READ_CHARS: Final = (
    256 << 10
)  # of a text in which calls are looked for: in a longer one, a pattern takes too long
_LONGEST_NAME: Final = 64  # of a function: a longer name is invalid


class Assembly:
    """An accumulator for one reply. `known` are the functions that can be called; `used_ids` the ids already in use."""

    def __init__(
        self, *, known: KnownNames, used_ids: Collection[str], new_id: Callable[[], str]
    ) -> None:
        self._known = known
        self._taken = set(used_ids)
        self._given = {""}  # ids of calls in this reply, as the endpoint gave them
        self._new_id = new_id
        self._splitter = Splitter()
        self._holder = Holder(self._known)
        self._text: list[str] = []
        self._moved = ""  # text that a mark showed to be thought
        self._thought: list[str] = []
        self._halves: dict[str, str] = {}  # first halves of a character, by what they belong to
        self._calls: OpenCalls | None = None  # until the first piece of one
        self._speaker: int | None = None  # the choice that has the text
        self._refused = False
        self._finish = ""
        self._reasoning: Reasoning | None = None  # until a message has more than text and calls
        self.usage: TokenUsage | None = None

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def add(self, entry: Entry) -> list[Piece]:
        """Return the pieces that a chunk adds."""
        self.usage = read_usage(entry) or self.usage
        pieces: list[Piece] = [*read_progress(entry)]
        for delta in read_chunk(entry):
            pieces += self._add(delta)
        return pieces

    def close(self, usage: TokenUsage) -> list[Piece]:
        """Return the last pieces: text that was still held back, and the reply, with the reported usage or this one."""
        pieces = self._show(*self._splitter.rest())
        if self._moved and not self.text.strip():  # nothing but that text came
            self._thought.remove(self._moved)
            self._text.insert(0, self._moved)
        finish = "refusal" if self._refused else finish_of(self._finish)
        note = note_of(finish, self._finish)
        thought = whole_characters("".join(self._thought))
        reply = Reply(whole_characters(self.text), thought, (), finish, self.usage or usage, note)
        calls = self._calls.finished() if self._calls is not None else []
        reply = self._with_calls(reply, calls) if calls else self._bare(reply)
        if self._reasoning is not None:
            reply = replace(reply, reasoning=self._reasoning.texts())
        tail = self._holder.rest()
        if reply.finish == "calls" and not calls:
            end = self.text.index(reply.text) + len(reply.text)
            tail = tail[: max(0, end - len(self.text) + len(tail))]
        return [*pieces, TextPiece(tail), reply] if tail else [*pieces, reply]

    def _add(self, delta: WireDelta) -> list[Piece]:
        self._finish = delta.finish or self._finish
        self._refused = self._refused or bool(delta.refusal)
        shown_thought = ""
        if delta.message.keys() - _USUAL_KEYS or isinstance(delta.message.get("content"), list):
            self._reasoning = self._reasoning or Reasoning()
            shown_thought = self._reasoning.add(delta.message)
        said = delta.text + delta.refusal
        if said and self._speaker is None:
            self._speaker = delta.choice
        had_moved = self._splitter.was_thought
        thought, text = self._splitter.feed(
            self._whole("text", said if delta.choice == self._speaker else "")
        )
        has_moved = self._splitter.was_thought and not had_moved
        if has_moved:
            self._moved, self._text, self._holder = (
                self.text + self._splitter.last_words,
                [],
                Holder(self._known),
            )
        pieces = self._show(self._whole("thought", shown_thought) + thought, text)
        if has_moved:
            self._thought.append(self._moved)
        if delta.fragments and self._calls is None:
            self._calls = OpenCalls(lambda name: meant(name, self._known) is not None)
        for fragment in delta.fragments:
            assert self._calls is not None, "it was made for the first of them"
            call, added = self._calls.add(fragment)
            if call.name and added and call.place < MAX_CALLS:
                pieces.append(CallPiece(call.place, call.name[:_LONGEST_NAME], added))
        return pieces

    def _whole(self, subject: str, text: str) -> str:
        """Return a text in whole characters; the first half of one waits for the second."""
        if not text:
            return ""
        text = self._halves.pop(subject, "") + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._halves[subject], text = text[-1], text[:-1]
        return whole_characters(text)

    def _show(self, thought: str, text: str) -> list[Piece]:
        self._thought.append(thought)
        self._text.append(text)
        shown = self._holder.feed(text) if text else ""
        pieces: list[Piece] = [ThoughtPiece(thought)] if thought else []
        return [*pieces, TextPiece(shown)] if shown else pieces

    def _with_calls(self, reply: Reply, opened: list[OpenCall]) -> Reply:
        whole, cut, note = opened, tuple[str, ...](), reply.note
        if reply.finish in ("length", "broken"):
            whole = [call for call in opened if is_object(call.arguments)]
            cut = tuple(cut_call(call.name, call.arguments) for call in opened if call not in whole)
        if cut:
            note = (
                note_on(cut)
                if reply.finish == "length"
                else f"{note} It ended in {' and '.join(cut)}."
            )
        elif self._calls is not None and self._calls.dropped:
            asked = self._calls.dropped + MAX_CALLS
            note = f"The reply asked for {asked} calls; the first {MAX_CALLS} were taken."
        calls = tuple(self._call(call.id, call.name, call.arguments, call.extra) for call in whole)
        finish: Finish = "calls" if calls and reply.finish == "stop" else reply.finish
        return replace(reply, calls=calls, finish=finish, note=note, cut=cut)

    def _bare(self, reply: Reply) -> Reply:
        if len(reply.text) > _MAX_READ_CHARS:
            return reply
        read = read_text(reply.text, self._known) if reply.finish == "stop" else None
        if read is None and self._known:
            attached, marked = (
                attached_call(reply.text, self._known),
                marked_function(reply.text, self._known),
            )
            return replace(
                reply, written=written_calls(reply.text), attached=attached, marked=marked
            )
        if read is None:
            return reply
        note = "The call was sent as text and was understood as a call."
        calls = tuple(self._call("", call.name, call.arguments, {}) for call in read.calls)
        written = tuple(call.name for call in calls)
        return replace(
            reply, text=read.lead_in, calls=calls, finish="calls", note=note, written=written
        )

    def _call(
        self, given_id: str, name: str, arguments: str, extra: Mapping[str, Any]
    ) -> Call:  # Any: JSON
        """Return a call with an id that is unique here; if the endpoint's is another, it goes back with the call."""
        is_own = given_id not in self._taken and 0 < len(given_id) <= _LONGEST_ID
        call_id = given_id if is_own else self._new_id()
        is_kept = not is_own and given_id not in self._given and len(given_id) <= _LONGEST_GIVEN_ID
        self._taken.add(call_id)
        self._given.add(given_id)
        name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        text = extra_text(extra, given_id if is_kept else "")
        return Call(
            call_id, meant(name, self._known) or name, unwrapped(whole_characters(arguments)), text
        )


def finish_of(said: str) -> Finish:
    """Return the finish reason of a reply from the endpoint's name for it; `broken` if that is no known good end."""
    ends, name = forms().ends, said.lower()
    if not name or name in ends.good:
        return "stop"
    if name in ends.filter:
        return "filter"
    return "length" if name in ends.length else "broken"


def note_of(finish: Finish, said: str) -> str:
    """Return the note for the user about the end of a reply, for which the endpoint has this name."""
    return NOTES.get(finish, "").format(one_line(said, _LONGEST_NAME))


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
