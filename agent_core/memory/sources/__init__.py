"""Sources: documents that the user gives an agent, read as data and cut into passages that an answer can cite.

Readers and cutting are pure and run in a separate process (`kinds.py`) with limited memory and time, because their
input may be malicious. Nothing in a source is ever executed.
"""

from .cutting import Chunk, Cut, Unreadable
from .places import SourcePlace, SourceReader, is_missing, not_prose, of_program, places

__all__ = [
    "Chunk",
    "Cut",
    "SourcePlace",
    "SourceReader",
    "Unreadable",
    "is_missing",
    "not_prose",
    "of_program",
    "places",
]
