"""The gate, which decides whether a function is accepted.

Stages in order of cost read a candidate as text, then try it in sandboxed workers; every problem is
reported at once. May touch: registry and sandbox. A verdict is computed here, never where the candidate ran.
"""

from .autofix import REPAIRS
from .candidate import Candidate, GivenExample, Policy
from .gate import Gate
from .proof import EXCUSED, ExampleResult
from .read import FIXES as _READ
from .rules import Rules
from .verdict import Breakage, Disagreement, Fix, Look, ModuleVerdict, StageReport, Standing, Verdict

CONTEXT = "context"
"""The code of what an import makes of `self` where functions were written for another agent."""
FIXES = frozenset([*_READ, *(repair.code for repair in REPAIRS), CONTEXT, EXCUSED])
"""The codes of all fixes."""

__all__ = [
    "CONTEXT",
    "FIXES",
    "Breakage",
    "Candidate",
    "Disagreement",
    "ExampleResult",
    "Fix",
    "Gate",
    "GivenExample",
    "Look",
    "ModuleVerdict",
    "Policy",
    "Rules",
    "StageReport",
    "Standing",
    "Verdict",
]
