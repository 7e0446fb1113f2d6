"""The model's view at one step: the system message, the functions, and the conversation or its summary."""

from .build import (
    ABOUT_PROGRAMS,
    BYTES_PER_TOKEN,
    INSTRUCTIONS,
    Budget,
    Remembered,
    RequestPrompt,
    Section,
    SystemMessage,
    function_room,
)
from .compaction import Compaction, FactKeeper, rebuilt
from .history import (
    PRESSURE,
    History,
    PageReader,
    Summary,
    beginning,
    claim,
    first_page,
    large_page,
    pop,
    resume,
)
from .shown import CALLER, EXPECTED, READ_ON, RUN_PROGRAM, FunctionNotes, Shown, size_of

__all__ = [
    "ABOUT_PROGRAMS",
    "BYTES_PER_TOKEN",
    "CALLER",
    "EXPECTED",
    "INSTRUCTIONS",
    "PRESSURE",
    "READ_ON",
    "RUN_PROGRAM",
    "Budget",
    "Compaction",
    "FactKeeper",
    "FunctionNotes",
    "History",
    "PageReader",
    "Remembered",
    "RequestPrompt",
    "Section",
    "Shown",
    "Summary",
    "SystemMessage",
    "beginning",
    "claim",
    "first_page",
    "function_room",
    "large_page",
    "pop",
    "rebuilt",
    "resume",
    "size_of",
]
