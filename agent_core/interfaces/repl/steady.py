"""The terminal as the prompt writes to it: whole frames, and none where nobody reads any more."""

import os

from prompt_toolkit.output.vt100 import Vt100_Output


class SteadyOutput(Vt100_Output):
    """A terminal whose writes can be held back until the next frame, and that may go away."""

    held = False
    gone = False

    def flush(self) -> None:
        """Write what has gathered, unless it is held back; what nobody can read any more is let go."""
        if self.held:
            return
        try:
            super().flush()
        except OSError:
            self.gone = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
