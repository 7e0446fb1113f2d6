"""The local model: weights that are downloaded once, and an engine process that runs them.

Only `knapper models get` downloads anything, and only a file with the pinned hash is loaded. `server` needs the `local`
extra, so import it only when a local model is opened.
"""

from .weights import DownloadProgress, Weights, available, named, path

__all__ = ["DownloadProgress", "Weights", "available", "named", "path"]
