"""The gate's rules as data: which stage rejects under which policy, limits, and what can be switched off."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_core.base.problem import Severity

    from .candidate import Policy

KIB = 1024
DISPUTED = "disputed"
REACHES_NOTHING = "reaches-nothing"
CONTEXT = "context"
"""The code of what an import makes of `self` where functions were written for another agent."""

_AFTER_READ = (
    *("conform", "substance", "duplicate", "capability", "examples", "fitted", "mutation", "robust", "neighbours"),
    "reader",
)
# Stage by policy. A human's file is refused only for what cannot be called; a library that is taken over is
# not refused for words it never had, but must do something and show it.
STAGES: Mapping["Policy", Mapping[str, "Severity"]] = MappingProxyType(
    {
        "agent": MappingProxyType({}),
        "human": MappingProxyType(dict.fromkeys(_AFTER_READ, "warns")),
        "import": MappingProxyType({"conform": "warns", "capability": "warns", "robust": "warns", "reader": "warns"}),
    }
)

# What weak evidence that a function is hollow is called; a doubt never refuses.
DOUBTS: Mapping[str, "Severity"] = MappingProxyType({"doubt-examples": "warns", "doubt-parameter": "warns"})
# What shows too little of a library's function, which joins as a draft.
WEAK = frozenset({"too-few-examples", "one-sided-examples", "same-results", "contradictory-examples", "unproven"})
_BEYOND = ("network", "packages", "files", "secrets", "memory", "functions", "terminal")
UNPROVEN = WEAK | {f"needs-{means}" for means in _BEYOND}

# Single findings that are judged otherwise than their stage.
FINDINGS: Mapping["Policy", Mapping[str, "Severity"]] = MappingProxyType(
    {
        "agent": MappingProxyType(
            {
                "hides-builtin": "warns",
                "near-copy": "warns",
                "confusable": "warns",
                "stuffed-description": "warns",
                "rest-parameter": "warns",  # offered as a list of what its hint says
                "unproven": "warns",
                "unreachable-code": "warns",
                "weak-examples": "warns",
                "fails-on": "warns",
                "slow-on": "warns",
                **DOUBTS,
            }
        ),
        "human": MappingProxyType({"unproven": "warns"}),
        "import": MappingProxyType(
            {
                **dict.fromkeys(WEAK, "warns"),
                "dead-parameter": "warns",
                "dynamic-code": "warns",
                "example-left-out": "warns",
                "hides-builtin": "warns",
                "near-copy": "warns",
                "rewrite": "warns",
                "workspace-import": "refuses",
                "needs-processes": "refuses",  # which no human can grant
                "native-code": "refuses",
                "top-level-statement": "warns",
                "unreachable-code": "warns",
                "stub-passes": "warns",  # of an argument that came back, rightly
                "weak-examples": "warns",
                "not-json": "refuses",
                **DOUBTS,
            }
        ),
    }
)

CHALLENGED: frozenset[str] = frozenset(DOUBTS)
"""Findings that make the author predict the results of other calls: what it was seen to do speaks for them."""


def severity(policy: "Policy", stage: str, code: str) -> "Severity":
    """Return the severity of a stage's finding under a policy."""
    return FINDINGS[policy].get(code) or STAGES[policy].get(stage, "refuses")


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits and switches of one gate; `off` names disabled fixes, `*` all of them."""

    candidate_bytes: int = 64 * KIB
    module_bytes: int = 256 * KIB
    strict: bool = False
    off: frozenset[str] = frozenset()
    packages: tuple[str, ...] = ("pydantic",)
    reserved: frozenset[str] = field(default_factory=frozenset)
    duplicate_s: float = 1.0
    fitted_s: float = 2.0
    mutation_s: float = 0.75  # the worker's start in it
    max_mutants: int = 40
    neighbours_s: float = 2.0
    robust_s: float = 2.5
    robust_calls: int = 200
    robust_each_s: float = 0.25
    weak_share: float = 0.3  # of the changes of the body that no example notices: from here on its author is asked
    weak_least: int = 2
    challenges: int = 3
    challenge_s: float = 1.0

    def makes(self, code: str) -> bool:
        """Check whether this fix is switched on."""
        return code not in self.off and "*" not in self.off

    def policy(self, policy: "Policy") -> "Policy":
        """Return the policy to apply: a strict workspace holds saved files to the agent's rules."""
        return "agent" if self.strict and policy == "human" else policy
