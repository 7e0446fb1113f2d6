"""The model's view at one step: the system message, the functions, and the conversation or its summary."""

from .build import BYTES_PER_TOKEN, Budget, Remembered, RequestPrompt, Section, SystemMessage, build
from .compaction import Compaction
from .history import PRESSURE, History, Summary, claim, pop, resume
from .instructions import INSTRUCTIONS
from .paging import PageReader, beginning, first_page
from .shown import Shown

__all__ = [
    "BYTES_PER_TOKEN",
    "INSTRUCTIONS",
    "PRESSURE",
    "Budget",
    "Compaction",
    "History",
    "PageReader",
    "Remembered",
    "RequestPrompt",
    "Section",
    "Shown",
    "Summary",
    "SystemMessage",
    "beginning",
    "build",
    "claim",
    "first_page",
    "pop",
    "resume",
]
