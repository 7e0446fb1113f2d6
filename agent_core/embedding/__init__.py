"""Texts as vectors of one length, close to each other where the meaning is close.

A model is loaded when the first text is embedded, in a thread, and nothing is ever downloaded. Vectors
of one model say nothing beside another's: whatever keeps them keeps `space` too.
"""

from .choose import embedder
from .embedder import Embedder, EmbeddingUnavailable

__all__ = ["Embedder", "EmbeddingUnavailable", "embedder"]
