"""The prompt's terminal output: whole frames, and none after the reader has gone."""

import os

from prompt_toolkit.output.vt100 import Vt100_Output


class SteadyOutput(Vt100_Output):
    """A terminal with writes that can be held back until the next frame, and that may disconnect."""

    held = False
    gone = False

    def flush(self) -> None:
        """Write what has gathered, unless it is held back. Discard what nobody can read any more."""
        if self.held:
            return
        try:
            super().flush()
        except OSError:
            self.gone = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
