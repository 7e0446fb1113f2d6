"""The caps on a worker's claims. The worker cuts to these caps, and the host rejects anything beyond them.

The host must check them, because every message may be forged. Both sides import the same numbers.
"""

from typing import Final

MOST_FRAMES: Final = 20  # frames of a failure
MOST_LOCALS: Final = 12  # locals of a frame
MOST_TEXT: Final = 100  # characters of a local
MOST_NAME: Final = 300  # characters of the name of a type, a function or a local
MOST_PATH: Final = 4_096  # characters
MOST_LINE: Final = 1 << 31
MOST_MESSAGE: Final = (
    4_000  # characters of an exception with its notes, and of the reason of a refusal
)
MOST_CAUSES: Final = 3  # length of the chain of causes of a failure
MOST_CAUSE_FRAMES: Final = 6
MOST_CAUSE_MESSAGE: Final = 1_000
MOST_SHOWN: Final = 16_384  # characters of a value's representation
MOST_TRIED: Final = 4_096  # the same for an attempt, and for its output
MOST_ITEMS: Final = 1_000  # items read from an iterator, which may be endless
MOST_IMPORTS: Final = 1_000  # names in the import statements of a module

MOST_STATE: Final = 65_536  # bytes of JSON in `self.state`
PROGRESS_EVERY_S: Final = 0.05  # between reports, except the last
MOST_STACK: Final = 50  # frames of a stop
MOST_SEEN: Final = 100  # locals, and displayed expressions, of a stop or a record
MOST_SEEN_NAME: Final = 100  # characters
MOST_SEEN_TEXT: Final = 400  # characters of a value
MOST_SEEN_RESULT: Final = 2_000  # characters of a returned value or an exception
MOST_ANSWER: Final = 8_000  # characters of the answer to a command
MOST_NAMES: Final = 2_000  # names for completion
MOST_ROWS, MOST_CHANGES, MOST_LINES = 400, 20, 5_000  # of a trace
MOST_CLAIM: Final = 500_000  # characters of one claim of the debugger; each item counts as a few
ITEM: Final = 40
