"""The model's view at one step: the system message, the functions, and the conversation or its summary."""

from .build import BYTES_PER_TOKEN, Budget, RequestPrompt, build
from .history import PRESSURE, History, Summary
from .instructions import INSTRUCTIONS
from .paging import PageReader, beginning, first_page
from .resume import claim, pop, resume
from .room import KIND, Room
from .sections import Remembered, Section, SystemMessage
from .shown import Shown

__all__ = [
    "BYTES_PER_TOKEN",
    "INSTRUCTIONS",
    "KIND",
    "PRESSURE",
    "Budget",
    "History",
    "PageReader",
    "Remembered",
    "RequestPrompt",
    "Room",
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
