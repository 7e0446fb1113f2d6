"""Search for functions by what they are needed for: by words, by meaning, and by the requests that they served.

`FunctionSearch` words the results; the index (`index.py`) follows the snapshot and ranks.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "index": "FunctionSearch SearchReport",
    },
)
