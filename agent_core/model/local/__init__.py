"""The local model: weights that are fetched once, and an engine that runs them in this process.

Nothing is fetched but by `toolwright models get`, and nothing is loaded whose hash is not the pinned one.
`server` needs the `local` extra, so it is imported only when a local model is opened.
"""

from .fetch import Progress, fetch
from .weights import Weights, available, named, path

__all__ = ["Progress", "Weights", "available", "fetch", "named", "path"]
