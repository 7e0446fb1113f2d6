"""The caps on what a worker may claim. The worker cuts to these caps itself, and the host takes nothing beyond them.

A cap that the worker alone keeps is none, for whatever arrives may be forged. Both sides import the same numbers.
"""

from typing import Final

MOST_FRAMES: Final = 20  # of a failure
MOST_LOCALS: Final = 12  # of a frame
MOST_TEXT: Final = 100  # characters of a local
MOST_NAME: Final = 300  # characters of the name of a type, a function or a local
MOST_PATH: Final = 4_096  # characters
MOST_LINE: Final = 1 << 31
MOST_MESSAGE: Final = 4_000  # characters of an exception with its notes, and of the reason why nothing was called
MOST_CAUSES: Final = 3  # of a failure, one in another
MOST_CAUSE_FRAMES: Final = 6
MOST_CAUSE_MESSAGE: Final = 1_000
MOST_SHOWN: Final = 16_384  # characters of a value's representation
MOST_TRIED: Final = 4_096  # the same of an attempt, and of what it prints
MOST_ITEMS: Final = 1_000  # that are taken from an iterator, which may be endless
MOST_IMPORTS: Final = 1_000  # names in the import statements of a module

MOST_STATE: Final = 65_536  # bytes of the JSON that a function keeps as `self.state`
PROGRESS_EVERY_S: Final = 0.05  # but for the last
MOST_STACK: Final = 50  # frames of a stop
MOST_SEEN: Final = 100  # locals, and expressions that are displayed, of a stop or a record
MOST_SEEN_NAME: Final = 100  # characters
MOST_SEEN_TEXT: Final = 400  # characters of a value
MOST_SEEN_RESULT: Final = 2_000  # characters of what is returned or raised
MOST_ANSWER: Final = 8_000  # characters that answer a command
MOST_NAMES: Final = 2_000  # that complete
MOST_ROWS, MOST_CHANGES, MOST_LINES = 400, 20, 5_000  # of a trace
MOST_CLAIM: Final = 500_000  # characters of one claim of the debugger, each of its items counted as a few
ITEM: Final = 40
