"""The keys of the prompt, as prompt_toolkit takes them, from what the terminal sends."""

import sys
from typing import Final

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from knapper.terminal.control_sequences import ESCAPE, ControlReader, Piece, plain_keys

_SINGLE_SHIFT: Final = f"{ESCAPE}O"


class KeyParser(Vt100Parser):
    """A parser that follows the grammar of control sequences: what is no key, such as a terminal's report, is none."""

    def reset(self, request: bool = False) -> None:  # noqa: FBT001, FBT002  (as in the class above)
        """Begin anew."""
        self._reader = ControlReader()

    def feed(self, data: str) -> None:
        """Take what has arrived."""
        for piece in self._reader.feed(data):
            self._press(piece)

    def flush(self) -> None:
        """Take note of a pause: an ESC that nothing follows is the key Escape."""
        for piece in self._reader.flush():
            self._press(piece)

    def _press(self, piece: Piece) -> None:
        if piece.kind == "paste":
            self.feed_key_callback(KeyPress(Keys.BracketedPaste, piece.text))
        elif piece.kind == "text":
            for char in piece.text:
                self._call_handler(ANSI_SEQUENCES.get(char, char), char)
        elif (key := ANSI_SEQUENCES.get(piece.text)) is not None:
            if key is not Keys.Ignore:
                self._call_handler(key, piece.text)
        elif piece.text.startswith(_SINGLE_SHIFT):  # in vi's mode, Escape and O open a line
            self._call_handler(Keys.Escape, ESCAPE)
            self._press(Piece("text", piece.text[1:]))
        else:
            for plain in plain_keys(piece.text):
                if plain != piece:
                    self._press(plain)


def terminal_input() -> Input | None:
    """Return the input of this terminal, or None for the one that prompt_toolkit takes, as on Windows."""
    if sys.platform == "win32":
        return None
    else:  # noqa: RET505 - a type checker for the other system reads this branch, or does not
        from prompt_toolkit.input.vt100 import Vt100Input  # noqa: PLC0415 - not on Windows

        class TerminalInput(Vt100Input):
            def __init__(self) -> None:
                super().__init__(sys.stdin)
                self.vt100_parser = KeyParser(lambda key: self._buffer.append(key))

        return TerminalInput()
