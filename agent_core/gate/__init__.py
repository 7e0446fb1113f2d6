"""The gate, which decides whether a function is accepted.

Stages in order of cost read a candidate as text, then try it in sandboxed workers; every problem is
reported at once. May touch: registry and sandbox. A verdict is computed here, never where the candidate ran.
"""

from .candidate import Candidate, GivenExample, Policy
from .gate import Gate
from .mend import REPAIRS
from .proof import ExampleResult
from .read import MENDS as _READ
from .rules import Rules
from .verdict import Breakage, Disagreement, Look, Mend, ModuleVerdict, StageReport, Standing, Verdict

CONTEXT = "context"
"""The code of what an import makes of `self` where functions were written for another agent."""
MENDS = frozenset([*_READ, *(repair.code for repair in REPAIRS), CONTEXT])
"""The codes of all mends."""

__all__ = [
    "CONTEXT",
    "MENDS",
    "Breakage",
    "Candidate",
    "Disagreement",
    "ExampleResult",
    "Gate",
    "GivenExample",
    "Look",
    "Mend",
    "ModuleVerdict",
    "Policy",
    "Rules",
    "StageReport",
    "Standing",
    "Verdict",
]
