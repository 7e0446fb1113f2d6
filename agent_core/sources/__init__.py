"""Sources: what a human hands an agent to know, read as data and cut into passages that an answer can cite.

Readers and the cutting are pure and run in a process of their own (`child.py`), bounded in memory and time,
for what they read may be hostile. Nothing of a source is ever run.
"""

from .errors import Unreadable
from .parts import Chunk, Cut, Part
from .places import Material, Place, places
from .reading import Reading

__all__ = ["Chunk", "Cut", "Material", "Part", "Place", "Reading", "Unreadable", "places"]
