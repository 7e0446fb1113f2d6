"""Texts as vectors of one length, which are close to each other if the meaning is close.

A model is loaded in a thread when the first text is embedded, and nothing is ever downloaded. Vectors of different
models cannot be compared, so `space` must be stored with them.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "models": "Embedder EmbeddingUnavailable embedder",
    },
)
