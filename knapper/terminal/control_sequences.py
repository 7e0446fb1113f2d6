"""What a terminal sends, by the grammar of control sequences (ECMA-48): the text that a person types, and sequences.

Beside keys, a terminal sends reports: focus, colors, versions, positions, sizes. A sequence that is no key is dropped,
whatever it says; a report is never text. The keys of two protocols (`CSI … u` and `CSI 27;…~`) become those that every
terminal sends.

A sequence may arrive in pieces. What was begun waits for its rest, without a limit to how it is cut, but not for long:
then a key pressed with Alt, such as Alt-], is that key, and a report whose rest never came is gone.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from agent_core.base.records import dataclass

ESCAPE: Final = "\x1b"
_BELL, _CANCELS = "\x07", "\x18\x1a"
_CSI, _SS3 = "[", "O"
_OSC, _DCS = "]", "P"
_STRINGS = (_OSC, _DCS, "X", "^", "_")  # the others: SOS, PM, APC
# The same introducers as one character, and as a byte that is no UTF-8.
_EIGHT_BIT = {
    chr(base + ord(letter) - 0x40): ESCAPE + letter
    for letter in (_CSI, _SS3, *_STRINGS)
    for base in (0x80, 0xDC80)
}
_IN_STRINGS = "\b\t\v\f"
_STRING_ENDS = (_BELL, "\x9c", "\udc9c")
PASTE: Final = "\x1b[200~"
PASTE_END: Final = "\x1b[201~"
_LINUX_KEY, _MOUSE = "\x1b[[", "\x1b[M"  # followed by one and by three characters
_KEPT: Final = 256  # characters of a sequence that are kept: what is longer is no key
_LONGEST: Final = 1 << 20  # characters of a sequence; what follows is text again
REST_S: Final = 2.0  # for this long, a report that stopped in the middle waits for its rest


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, a sequence from its ESC to its end, or a pasted text."""

    kind: Literal["text", "sequence", "paste"]
    text: str


class ControlReader:
    """A reader of one terminal's input, in whatever pieces it arrives."""

    def __init__(self, *, is_of_lines: bool = False) -> None:
        self._knows_pastes = not is_of_lines  # a line has the marks of a paste as sequences
        self._begun = ""  # the first characters of an unfinished sequence, from its ESC on
        self._length = 0  # of all of it
        self._is_ending = False  # whether a string's last character was an ESC
        self._pasted: list[str] | None = None
        self._tail = ""  # the end of what was pasted so far, which may begin the mark of its end
        self._text: list[str] = []
        self._fed_at = 0.0
        self._pieces: list[Piece] = []

    def feed(self, data: str) -> list[Piece]:
        """Return what has arrived in whole."""
        now = time.monotonic()
        if self._begun and now - self._fed_at > REST_S:
            self._break_off()
        self._fed_at = now if data else self._fed_at
        at = 0
        while at < len(data):
            at = self._paste(data, at) if self._pasted is not None else self._take(data, at)
        return self._taken()

    def flush(self) -> list[Piece]:
        """Return, after a pause, what was begun if it may be keys: Escape, or a key pressed with Alt."""
        if self._begun and not self._is_report():
            self._as_keys()
        return self._taken()

    def _taken(self) -> list[Piece]:
        self._end_text()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _take(self, data: str, at: int) -> int:
        """Read one character and return the position of the next one."""
        char = data[at]
        if not self._begun:
            if char == ESCAPE or char in _EIGHT_BIT:
                self._begin(_EIGHT_BIT.get(char, ESCAPE))
            else:
                self._text.append(char)
        elif self._begun == ESCAPE:
            if char in (_CSI, _SS3, *_STRINGS):
                self._begin(ESCAPE + char)
            else:  # Escape, or a key with Alt
                self._end(ESCAPE)
                return at
        elif self._begun[1] in _STRINGS:
            return at + self._in_string(char)
        else:
            return at + self._in_sequence(char)
        return at + 1

    def _in_sequence(self, char: str) -> bool:
        """Add a character to a control sequence or a single shift. Return whether it belongs there."""
        begun = self._begun
        is_more = " " <= char <= "?" if begun[1] == _CSI else "0" <= char <= ";"
        if begun[:3] == _MOUSE and char >= " ":
            self._add(char)
            if self._length == len(_MOUSE) + 3:
                self._end(self._begun)
        elif begun == _LINUX_KEY and "A" <= char <= "E":
            self._end(begun + char)
        elif is_more or begun + char in (_LINUX_KEY, _MOUSE):
            self._add(char)
        elif "@" <= char <= "~":
            self._end(begun + char)
        else:
            self._break_off()
            return False
        return True

    def _in_string(self, char: str) -> bool:
        """Add a character to a string. Return whether it belongs there."""
        if self._is_ending and char != "\\":  # another sequence begins in its middle
            self._is_ending = False
            self._break_off()
            self._begin(ESCAPE)
            return False
        if self._is_ending or char in _STRING_ENDS or (char in _CANCELS and self._is_report()):
            self._begin("")
        elif char == ESCAPE:
            self._is_ending = True
        elif char < " " and char not in _IN_STRINGS:  # a key, such as Enter or Ctrl-C
            self._break_off()
            return False
        else:
            self._add(char)
        return True

    def _add(self, char: str) -> None:
        self._length += 1
        if self._length > _LONGEST:
            self._begin("")
        elif len(self._begun) < _KEPT:
            self._begun += char

    def _begin(self, begun: str) -> None:
        self._begun, self._length, self._is_ending = begun, len(begun), False

    def _end(self, sequence: str) -> None:
        """Take a whole sequence."""
        is_whole = self._length < _KEPT
        self._begin("")
        if sequence == PASTE and self._knows_pastes:
            self._pasted, self._tail = [], ""
        elif is_whole:
            self._end_text()
            self._pieces.append(Piece("sequence", sequence))

    def _break_off(self) -> None:
        """Drop a report that does not go on as one; what may be keys counts as keys."""
        if self._is_report():
            self._begin("")
        else:
            self._as_keys()

    def _is_report(self) -> bool:
        """Check whether what was begun cannot be keys: only a terminal begins so, or writes so much at once."""
        begun = self._begun
        if begun[1:2] == _OSC:
            return begun[2:3].isdecimal() or begun[2:3] in ("l", "L")
        if begun[1:2] == _DCS:
            return " " < begun[2:3] <= "?"
        return (begun[1:2] == _CSI and len(begun) > len(ESCAPE + _CSI)) or self._length >= _KEPT

    def _as_keys(self) -> None:
        typed, is_ending = self._begun[1:], self._is_ending
        self._end(ESCAPE)
        self._text += typed
        if is_ending:
            self._end(ESCAPE)

    def _paste(self, data: str, at: int) -> int:
        """Add to the pasted text up to its end, and return the position after that."""
        assert self._pasted is not None
        joined = self._tail + data[at:]
        end = joined.find(PASTE_END)
        if end < 0:
            kept = len(PASTE_END) - 1
            self._pasted.append(joined[:-kept])
            self._tail = joined[-kept:]
            return len(data)
        self._end_text()
        self._pieces.append(Piece("paste", "".join(self._pasted) + joined[:end]))
        at += end + len(PASTE_END) - len(self._tail)
        self._pasted = None
        return at

    def _end_text(self) -> None:
        if self._text:
            self._pieces.append(Piece("text", "".join(self._text)))
            self._text = []


def typed_text(pieces: Iterable[Piece]) -> str:
    """Return the text in what arrived, for a line that the terminal itself edits."""
    return "".join(piece.text for piece in _plain(pieces) if piece.kind != "sequence")


def _plain(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        yield from plain_keys(piece.text) if piece.kind == "sequence" else (piece,)


# Keys as the protocols write them: https://sw.kovidgoyal.net/kitty/keyboard-protocol, and modifyOtherKeys of xterm.

_SHIFT, _ALT, _CTRL, _SUPER, _HYPER, _META, _CAPS_LOCK = (1 << bit for bit in range(7))
_LEGACY_MODIFIERS = _SHIFT | _ALT | _CTRL
_RELEASED = 3
_NAMED: Final = "ABCDEFHPQS~"  # the finals of keys with a sequence of their own
_MOST_CODE: Final = 7  # digits of a code
# Keys of the keypad and the like that are others elsewhere.
_KEYPAD_TEXT = dict(zip(range(57399, 57417), "0123456789./*-+\r=,", strict=True))
_KEYPAD_KEYS = dict(zip(range(57417, 57427), "DCAB56HF23", strict=True))
_PRIVATE = range(57344, 63744)
_CONTROL = {
    " ": "\0",
    "/": "\x1f",
    "2": "\0",
    "\x7f": "\b",
    "?": "\x7f",
    "~": "\x1e",
    **dict(zip("345678", "\x1b\x1c\x1d\x1e\x1f\x7f", strict=True)),
}


def plain_keys(sequence: str) -> list[Piece]:
    """Return a sequence as it is, or, if a protocol wrote a key with it, the pieces of that key: none for a release."""
    body, final = sequence[2:-1], sequence[-1]
    parameters = [
        [
            int(code) if code.isdecimal() and len(code) <= _MOST_CODE else 0
            for code in part.split(":")
        ]
        for part in body.split(";")
    ]
    if (
        sequence[1:2] != _CSI
        or not all(char.isdecimal() or char in ":;" for char in body)
        or not body
    ):
        return [Piece("sequence", sequence)]
    first, second, third = (*parameters, [0], [0])[:3]
    modifiers = max(second[0] - 1, 0)
    if final == "~" and first[0] == 27 and len(parameters) == 3:
        return _key(third, modifiers, [])
    if final == "u":
        is_released = second[1:2] == [_RELEASED]
        return [] if is_released else _key(first, modifiers, third if len(parameters) > 2 else [])
    if (
        final in _NAMED
        and len(parameters) <= 2
        and (len(second) > 1 or modifiers & ~_LEGACY_MODIFIERS)
    ):
        return [] if second[1:2] == [_RELEASED] else _named(f"{first[0] or 1}", final, modifiers)
    return [Piece("sequence", sequence)]


def _named(number: str, final: str, modifiers: int) -> list[Piece]:
    """Return a key that has a sequence of its own on every terminal."""
    kept = modifiers & _LEGACY_MODIFIERS
    if modifiers & (_SUPER | _HYPER | _META):
        return []
    plain = "" if number == "1" and final != "~" else number
    return [Piece("sequence", f"\x1b[{f'{number};{kept + 1}' if kept else plain}{final}")]


def _key(codes: list[int], modifiers: int, text: list[int]) -> list[Piece]:
    """Return the pieces of a key: its code, with Shift, and on an English keyboard; its modifiers; its text."""
    code, shifted, base = (*codes, 0, 0)[:3]
    if code in _KEYPAD_KEYS:
        name = _KEYPAD_KEYS[code]
        return _named(*((name, "~") if name.isdecimal() else ("1", name)), modifiers)
    char = _KEYPAD_TEXT.get(code) or _character(code)
    if not char or modifiers & (_SUPER | _HYPER):
        return []
    is_alt = bool(modifiers & (_ALT | _META))
    if char == "\t" and modifiers & _SHIFT:
        return [Piece("sequence", "\x1b[Z")]
    if modifiers & _CTRL:
        char = _with_control(char if char.isascii() else _character(base))
    elif not is_alt and (typed := "".join(map(_character, text))) and typed.isprintable():
        char = typed
    elif modifiers & _SHIFT and (with_shift := _character(shifted)):
        char = with_shift
    elif modifiers & (_SHIFT | _CAPS_LOCK) and len(char.upper()) == 1:
        char = char.upper()
    is_escape = char == ESCAPE
    pieces = [Piece("sequence", ESCAPE)] * (is_alt + is_escape)
    return [*pieces, *([Piece("text", char)] if char and not is_escape else [])]


def _character(code: int) -> str:
    """Return the character of a code, or "" if it has none or is a key without a text."""
    is_none = not 0 < code < 0x110000 or code in _PRIVATE or 0xD800 <= code < 0xE000
    return "" if is_none else chr(code)


def _with_control(char: str) -> str:
    """Return what a terminal sends for the key with Ctrl."""
    if char in _CONTROL:
        return _CONTROL[char]
    upper = char.upper()
    if len(upper) == 1 and "@" <= upper <= "_":
        return chr(ord(upper) - 0x40)
    is_control = bool(char) and char < " "
    return char if is_control else ""
