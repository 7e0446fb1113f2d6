"""The workshop: every verb on functions, shared by the command line, the REPL and the meta-functions.

A verb that changes something is planned (and may be interrupted) and then carried out (and is not).
"""

from .call_records import noted
from .export import Handing
from .file_checks import CheckRequest, count
from .library import Taking
from .plan import Author, PlannedChange, StaleView
from .workshop import FunctionService

__all__ = [
    "Author",
    "CheckRequest",
    "FunctionService",
    "Handing",
    "PlannedChange",
    "StaleView",
    "Taking",
    "count",
    "noted",
]
