"""Complete agents in files: an agent moves as one JSON document; files of MemGPT and Letta are read as well."""

from .moves import ImportOptions, KnownNames, Moves, opened_moves, reader_of_files
from .report import AgentExists, AgentFileError, AgentReport, NoAgent, waiting_of
from .text import read_file, text_of, write_file

__all__ = [
    "AgentExists",
    "AgentFileError",
    "AgentReport",
    "ImportOptions",
    "KnownNames",
    "Moves",
    "NoAgent",
    "opened_moves",
    "read_file",
    "reader_of_files",
    "text_of",
    "waiting_of",
    "write_file",
]
