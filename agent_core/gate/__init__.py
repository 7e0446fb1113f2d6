"""The gate: may this function join?

Stages in order of cost read a candidate as text, then try it in sandboxed workers; every problem is
reported at once. May touch: registry and sandbox. A verdict is computed here, never where the candidate ran.
"""

from .candidate import Candidate, GivenExample, Policy
from .gate import Gate
from .proof import ExampleResult
from .rules import Rules
from .verdict import Disagreement, Mend, ModuleVerdict, StageReport, Standing, Verdict

__all__ = [
    "Candidate",
    "Disagreement",
    "ExampleResult",
    "Gate",
    "GivenExample",
    "Mend",
    "ModuleVerdict",
    "Policy",
    "Rules",
    "StageReport",
    "Standing",
    "Verdict",
]
