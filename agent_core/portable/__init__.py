"""Agents whole, in files: an agent moves as one JSON document; MemGPT's and Letta's files are read as well."""

from .errors import AgentExists, AgentFileError, NoAgent
from .moves import Known, Moves, Taken, reader_of_files
from .report import Report, waiting_of
from .text import read_file

__all__ = [
    "AgentExists",
    "AgentFileError",
    "Known",
    "Moves",
    "NoAgent",
    "Report",
    "Taken",
    "read_file",
    "reader_of_files",
    "waiting_of",
]
