"""Texts as vectors of one length, close to each other where the meaning is close.

A model is loaded when the first text is embedded, in a thread, and nothing is ever downloaded. Vectors
of different models cannot be compared: whatever stores them stores `space` too.
"""

from .local import Embedder, EmbeddingUnavailable
from .models import embedder

__all__ = ["Embedder", "EmbeddingUnavailable", "embedder"]
