"""Matching: line differences, similar names, and shell patterns, in bounded time for any input.

Lines, names and patterns come from models, files and workers, and are compared on the event loop. So every function
here takes at most linear time: where an exact answer would cost more, it returns a coarser one and marks it as such.
"""

from .differences import Comparison, ComparisonBudget, blamed, compare, diff_lines
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
    "blamed",
    "compare",
    "did_you_mean",
    "diff_lines",
    "look",
    "nearest",
]
