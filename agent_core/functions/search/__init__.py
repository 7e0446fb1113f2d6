"""Search for functions by what they are needed for: by words, by meaning, and by the requests that they served.

`FunctionSearch` words the results; the index (`index.py`) follows the snapshot and ranks.
"""

from .search import FunctionSearch, SearchReport

__all__ = ["FunctionSearch", "SearchReport"]
