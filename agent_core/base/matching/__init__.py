"""Matching: line differences, similar names, and shell patterns, in bounded time for any input.

Lines, names and patterns come from models, files and workers, and are compared on the event loop. So nothing here takes
longer than its input is long: where an exact answer would cost more, a coarser one is given, and said to be that.
"""

from .differences import Comparison, ComparisonBudget, compare, diff_lines
from .mention import MARK, NAME, Mention
from .nearest import did_you_mean, look, nearest
from .wildcard import Wildcard

__all__ = [
    "MARK",
    "NAME",
    "Comparison",
    "ComparisonBudget",
    "Mention",
    "Wildcard",
    "compare",
    "did_you_mean",
    "diff_lines",
    "look",
    "nearest",
]
