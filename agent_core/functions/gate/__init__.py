"""The gate, which decides whether a function is accepted.

Its stages, in order of cost, read a candidate as text and then try it in sandboxed workers. All problems are reported
at once. May touch: registry and sandbox. A verdict is computed here, never where the candidate ran.
"""

from agent_core.base.late import late_names

__getattr__ = late_names(
    __name__,
    {
        "draft": "Candidate GivenExample",
        "gate": "Gate",
        "proof": "ExampleResult",
        "verdict": "CONTEXT Breakage Disagreement Fix Look ModuleVerdict Policy Rules StageReport Standing Verdict",
    },
)
