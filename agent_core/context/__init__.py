"""What the model sees at one step: the system message, functions, and the conversation or what stands for it."""

from .build import BYTES_PER_TOKEN, Budget, Prompt, build
from .history import PRESSURE, History, Summary
from .instructions import INSTRUCTIONS
from .paging import Reading, beginning, kept
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
    "Prompt",
    "Reading",
    "Remembered",
    "Room",
    "Section",
    "Shown",
    "Summary",
    "SystemMessage",
    "beginning",
    "build",
    "claim",
    "kept",
    "pop",
    "resume",
]
