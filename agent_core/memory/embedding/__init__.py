"""Texts as vectors of one length, close to each other where the meaning is close.

A model is loaded when the first text is embedded, in a thread, and nothing is ever downloaded. Vectors
of different models cannot be compared: whatever stores them stores `space` too.
"""

from .choose import embedder
from .embedder import Embedder, EmbeddingUnavailable

__all__ = ["Embedder", "EmbeddingUnavailable", "embedder"]
