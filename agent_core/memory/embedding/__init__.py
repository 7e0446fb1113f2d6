"""Texts as vectors of one length, close to each other where the meaning is close.

A model is loaded when the first text is embedded, in a thread, and nothing is ever downloaded. Vectors
of different models cannot be compared: whatever stores them stores `space` too.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "local": "Embedder EmbeddingUnavailable",
        "models": "embedder",
    },
)
