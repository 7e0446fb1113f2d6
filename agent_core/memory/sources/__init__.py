"""Sources: documents that the user gives an agent, read as data and cut into passages that an answer can cite.

Readers and the cutting are pure and run in a process of their own (`kinds.py`), bounded in memory and time,
for what they read may be hostile. Nothing of a source is ever run.
"""

from .cutting import Chunk, Cut, Unreadable
from .places import SourcePlace, not_prose, of_program, places
from .reading import SourceReader

__all__ = ["Chunk", "Cut", "SourcePlace", "SourceReader", "Unreadable", "not_prose", "of_program", "places"]
