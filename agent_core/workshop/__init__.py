"""The workshop: every verb on functions, for the command line, the REPL and the meta-functions alike.

A verb that changes something is planned (and may be interrupted) and then carried out (and is not).
"""

from .calls import noted
from .checking import Wanted, count
from .export import Handing
from .intake import Taking
from .plan import Author, Plan
from .telling import signature
from .unread import Unread
from .workshop import Workshop

__all__ = ["Author", "Handing", "Plan", "Taking", "Unread", "Wanted", "Workshop", "count", "noted", "signature"]
