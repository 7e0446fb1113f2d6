"""Assembly of calls that arrive in pieces, in whatever way an endpoint cuts and numbers them. Pure.

What decides is the arguments: a piece that completes them goes on with a call, and once they are complete, a piece with
a name begins the next one. An index and an id say the same at most endpoints; at others each call has the index 0, or
each piece has an id of its own.
"""

import re
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.records import dataclass, field
from sandbox.wire.strict_json import LOOSE, MAX_VALUES, Malformed, read_json

from .wire import Fragment

MAX_CALLS: Final = 128
"""The calls of a reply that are taken."""
_MAX_DEPTH: Final = 200

_State: TypeAlias = Literal[
    "value", "first key", "key", "colon", "next", "string", "literal", "whole", "broken"
]
MAX_ARGUMENT_CHARS: Final = 1 << 20
"""The arguments of a call that are kept: more than a call may have, so that one with more is refused."""
_SLICE: Final = 16 << 10  # characters that are split in one step, which other threads wait for
_BLANK: Final = " \t\r\n"
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[-+.\w]++|[ \t\r\n]++|.', re.DOTALL)
"""A string, perhaps without its end; a literal; blanks; or any other character."""
_REST_OF_STRING: Final = re.compile(r'(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_WHOLE_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LITERAL: Final = re.compile(r"[-+.\w]*")
_EMPTY: Final = re.compile(r"[ \t\r\n]*\{[ \t\r\n]*\}[ \t\r\n]*")


@dataclass(slots=True)
class JsonScan:
    """The place in a JSON text that is known up to there, so that each piece is looked at once.

    It tells whether a text is complete and whether another text can go on with it, not whether each literal is valid.
    """

    state: _State = "value"
    _stack: list[str] = field(default_factory=list)
    _is_key: bool = False
    _is_escaped: bool = False

    def copy(self) -> "JsonScan":
        """Return the same place, to try what follows."""
        return JsonScan(self.state, [*self._stack], self._is_key, self._is_escaped)

    @property
    def is_open(self) -> bool:
        """True if the text is neither complete nor impossible."""
        return self.state not in ("whole", "broken")

    def feed(self, text: str) -> None:
        """Go on to the end of a piece."""
        for start in range(0, len(text), _SLICE):
            if self.state == "broken":
                return
            self._feed_slice(text[start : start + _SLICE])

    def break_off(self) -> None:
        """Look at nothing that follows: the text cannot be used."""
        self.state = "broken"

    def _feed_slice(self, text: str) -> None:
        place = 0
        if self.state == "string":
            place = self._go_on_with_string(text)
        elif self.state == "literal":
            place = _end(_LITERAL, text, 0)
        tokens: list[str] = _TOKEN.findall(text, place)
        for token in tokens:
            if self.state == "literal":
                self._finish_value()
            if token[0] not in _BLANK:
                self._take(token)
            if self.state == "broken":
                return
        if tokens and tokens[-1][0] == '"' and not _WHOLE_STRING.fullmatch(tokens[-1]):
            self._reopen_string(tokens[-1])

    def _go_on_with_string(self, text: str) -> int:
        """Return the place after the rest of a string, or after all of the text."""
        begin = 1 if self._is_escaped else 0
        end = _end(_REST_OF_STRING, text, begin)
        rest = text[begin:end]
        self._is_escaped = False
        if _WHOLE_STRING.fullmatch(f'"{rest}'):
            self._finish_string()
        else:
            self._is_escaped = self._ends_in_escape(rest)
        return end

    def _reopen_string(self, token: str) -> None:
        """Go back into the last string, whose end is still to come."""
        self.state, self._is_escaped = "string", self._ends_in_escape(token)

    def _ends_in_escape(self, part: str) -> bool:
        """Check whether a part of a string ends in a backslash whose character is still to come."""
        return (len(part) - len(part.rstrip("\\"))) % 2 == 1

    def _finish_string(self) -> None:
        if self._is_key:
            self.state = "colon"
        else:
            self._finish_value()

    def _take(self, token: str) -> None:
        state, char = self.state, token[0]
        if char == '"' and state in ("value", "key", "first key"):
            self._is_key = state != "value"
            self._finish_string()
        elif char in "{[" and state == "value" and len(self._stack) < _MAX_DEPTH:
            self._stack.append(char)
            self.state = "first key" if char == "{" else "value"
        elif char == ":" and state == "colon":
            self.state = "value"
        elif char == "," and state == "next":
            self.state = "key" if self._stack[-1] == "{" else "value"
        elif char in "}]" and self._closes(char):
            self._stack.pop()
            self._finish_value()
        elif state == "value" and self._stack and _LITERAL.fullmatch(char):
            self.state = "literal"
        else:
            self.state = "broken"

    def _closes(self, char: str) -> bool:
        """Check whether a bracket can stand here; `[1,]` passes."""
        opened = self._stack[-1] if self._stack else ""
        return opened + char in ("{}", "[]") and self.state in (
            ("next", "first key", "key") if char == "}" else ("next", "value")
        )

    def _finish_value(self) -> None:
        self.state = "next" if self._stack else "whole"


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match else place


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call of which pieces arrive; `place` is its place in the reply."""

    place: int
    id: str = ""
    name: str = ""
    extra: dict[str, Any] = field(default_factory=dict)  # Any: JSON
    _pieces: list[str] = field(default_factory=list)
    _size: int = 0
    _scan: JsonScan = field(default_factory=JsonScan)

    @property
    def arguments(self) -> str:
        """The arguments so far, as JSON text."""
        return "".join(self._pieces)

    @property
    def is_whole(self) -> bool:
        """True if the arguments are complete."""
        return self._scan.state == "whole"

    @property
    def is_broken(self) -> bool:
        """True if the arguments are no JSON, whatever follows."""
        return self._scan.state == "broken"

    @property
    def is_bare(self) -> bool:
        """True if no arguments have arrived."""
        return not self._pieces

    @property
    def is_empty(self) -> bool:
        """True if the arguments are an empty object."""
        return self.is_whole and _EMPTY.fullmatch(self.arguments) is not None

    @property
    def is_single_piece(self) -> bool:
        """True if the arguments arrived in one piece."""
        return len(self._pieces) == 1

    def can_go_on(self, text: str) -> bool:
        """Check whether arguments can go on with a text."""
        if not self._scan.is_open:
            return False
        trial = self._scan.copy()
        trial.feed(text)
        return trial.state != "broken"

    def repeats(self, text: str) -> bool:
        """Check whether a text has all arguments so far: it is what was sent, or more of it, sent again."""
        so_far = self.arguments
        if text.startswith(so_far):
            return True
        return self.is_whole and _read(text) == _read(so_far) is not None

    def add(self, text: str) -> str:
        """Add a piece of the arguments, or replace them by a text that has them all; return what is new."""
        if not text:
            return ""
        is_sound = bool(self._pieces) and self._scan.state != "broken"
        starts_again = is_sound and text.lstrip()[:1] in ("{", '"') and not self.can_go_on(text)
        if starts_again and (self.is_empty or self.repeats(text)):
            before, self._pieces, self._size, self._scan = self.arguments, [], 0, JsonScan()
            added = text.removeprefix(before) if text.startswith(before) else ""
        else:
            added = text
        self._keep(text)
        return added

    def _keep(self, text: str) -> None:
        """Keep a piece, as far as arguments are kept."""
        if self._size > MAX_ARGUMENT_CHARS:
            return
        piece = text[: MAX_ARGUMENT_CHARS + 1 - self._size]
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > MAX_ARGUMENT_CHARS:
            self._scan.break_off()
        else:
            self._scan.feed(piece)


class OpenCalls:
    """The calls of one reply; `is_known` tells whether a name is that of a function."""

    def __init__(self, is_known: Callable[[str], bool]) -> None:
        self._is_known = is_known
        self._latest: dict[tuple[int, int] | None, OpenCall] = {}  # by index
        self._by_id: dict[str, OpenCall] = {}
        self._last: OpenCall | None = None
        self.calls: list[OpenCall] = []
        self.dropped = 0
        """The calls beyond the limit."""

    def add(self, fragment: Fragment) -> tuple[OpenCall, str]:
        """Return the call that a piece belongs to, which may be a new one, and the arguments that it adds."""
        call = self._belongs_to(fragment) or self._begin()
        self._latest[fragment.index] = self._last = call
        if fragment.name and not call.name.endswith(fragment.name):
            call.name = (
                fragment.name if fragment.name.startswith(call.name) else call.name + fragment.name
            )
        call.id = call.id or fragment.id
        if fragment.id:
            self._by_id[fragment.id] = call
        call.extra.update(fragment.extra)
        return call, call.add(fragment.arguments)

    def _begin(self) -> OpenCall:
        call = OpenCall(len(self.calls))
        if len(self.calls) < MAX_CALLS:
            self.calls.append(call)
        else:
            self.dropped += 1
        return call

    def finished(self) -> list[OpenCall]:
        """Return the calls, without what was only begun: nothing, or the name of the call before it."""
        calls: list[OpenCall] = []
        for call in self.calls:
            before = calls[-1] if calls else None
            is_echo = (
                before is not None
                and not call.id
                and before.name == call.name
                and not before.is_bare
            )
            if not call.is_bare or (call.name and not is_echo):
                calls.append(call)
        return calls

    def _belongs_to(self, fragment: Fragment) -> OpenCall | None:
        """Return the call that a piece goes on with; None if it begins another."""
        at_index, last, arguments = self._latest.get(fragment.index), self._last, fragment.arguments
        of_id = self._by_id.get(fragment.id) if fragment.id else None
        if not fragment.name and (of_id or at_index):
            return of_id or at_index
        if (
            of_id is not None
            and (fragment.index is None or at_index is of_id)
            and self._continues(of_id, fragment)
        ):
            return of_id
        if at_index is not None:
            return at_index if self._continues(at_index, fragment) else None
        # A piece at an index of its own is the next call, unless it can only be the middle of the last one.
        is_middle = bool(arguments) and (
            not fragment.name or arguments.lstrip()[:1] not in ("", "{", '"')
        )
        return last if last is not None and is_middle and last.can_go_on(arguments) else None

    def _continues(self, call: OpenCall, fragment: Fragment) -> bool:
        """Decide whether a piece with a name goes on with this call, which has its place or its id."""
        has_other_id = bool(fragment.id and call.id and fragment.id != call.id)
        has_same_id = bool(fragment.id) and fragment.id == call.id
        if not call.name:
            return not has_other_id
        if fragment.name != call.name:
            return (
                call.is_bare
                and not has_other_id
                and self._is_part_of_name(call.name, fragment.name)
            )
        if not fragment.arguments:  # the name again, or the next call of the same function
            return has_same_id or not (has_other_id or call.is_whole)
        if call.is_bare or call.can_go_on(fragment.arguments):
            return True
        if has_other_id or call.is_broken:
            return not has_other_id
        is_wanted_twice = call.is_whole and call.is_single_piece and not has_same_id
        return call.is_empty or (not is_wanted_twice and call.repeats(fragment.arguments))

    def _is_part_of_name(self, begun: str, more: str) -> bool:
        """Check whether a name came in two pieces: together they name a function, and the second alone does not."""
        whole = more if more.startswith(begun) else begun + more
        return self._is_known(whole) and (whole == more or not self._is_known(more))


def _read(text: str) -> Any:  # Any: JSON
    """Return the value of a JSON text; None if it is none, or has too many values to be compared."""
    try:
        return read_json(text, LOOSE, most_values=MAX_VALUES)
    except Malformed:
        return None
