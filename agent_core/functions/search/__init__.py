"""Search for functions that serve a need: by words, by meaning, and by the requests that they served.

`FunctionSearch` explains the results; the index (`index.py`) follows the snapshot and ranks functions.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(__name__, {"index": "FunctionSearch SearchReport"})
