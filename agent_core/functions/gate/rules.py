"""The gate's rules as data: which stages refuse under which policy, limits, and what can be switched off."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .verdict import GRANTABLE, TOO_FEW, Policy

if TYPE_CHECKING:
    from agent_core.base.problem import Severity

KIB = 1024
DISPUTED = "disputed"
REACHES_NOTHING = "reaches-nothing"
CONTEXT = "context"
"""The code of the fix that translates another agent's `self`."""

# Findings with weak evidence that a function is hollow; a doubt never refuses.
CHALLENGED = frozenset({"doubt-examples", "doubt-parameter"})
"""Findings that make the author predict the results of other calls."""
# Findings about a library's function with too little evidence, which makes it a draft.
WEAK = TOO_FEW | {"contradictory-examples", "unproven"}
UNPROVEN = WEAK | GRANTABLE | {"needs-terminal"}

# The stages that only warn; all others refuse, also one whose name is not known here. A human's file is refused only
# for what cannot be called. A library is not refused for missing words, but its functions must do something and have
# examples.
_ADVICE: Mapping[Policy, str] = {
    "agent": "",
    "human": "conform substance duplicate capability examples fitted mutation robust neighbours reader",
    "import": "conform capability robust reader",
}
# Findings that only warn, whatever their stage. A parameter `*rest` is offered as a list of its hint's type. A stub
# passes the examples of a library's function that rightly returns an argument.
_MILD: Mapping[Policy, str] = {
    "agent": "doubt-examples doubt-parameter hides-builtin near-copy confusable stuffed-description rest-parameter"
    " unproven unreachable-code weak-examples fails-on slow-on",
    "human": "unproven",
    "import": "doubt-examples doubt-parameter hides-builtin near-copy dead-parameter dynamic-code example-left-out"
    " rewrite stub-passes top-level-statement unreachable-code weak-examples",
}
# What no human can grant to a library, and what cannot be sent.
_GRAVE = frozenset({"workspace-import", "needs-processes", "native-code", "not-json"})


def severity(policy: Policy, stage: str, code: str) -> "Severity":
    """Return the severity of a stage's finding under a policy."""
    if policy == "import" and code in _GRAVE:
        return "refuses"
    is_mild = code in _MILD[policy].split() or (policy == "import" and code in WEAK)
    return "warns" if is_mild or stage in _ADVICE[policy].split() else "refuses"


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits and switches of the gate; `off` names disabled fixes, `*` all of them."""

    candidate_bytes: int = 64 * KIB
    module_bytes: int = 256 * KIB
    strict: bool = False
    off: frozenset[str] = frozenset()
    packages: tuple[str, ...] = ("pydantic",)
    reserved: frozenset[str] = field(default_factory=frozenset)
    duplicate_s: float = 1.0
    fitted_s: float = 2.0
    mutation_s: float = 0.75  # including the start of the worker
    max_mutants: int = 40
    neighbours_s: float = 2.0
    robust_s: float = 2.5
    robust_calls: int = 200
    robust_each_s: float = 0.25
    weak_share: float = 0.3  # of the changes of the body that no example detects; from here on, the author is asked
    weak_least: int = 2
    challenges: int = 3
    challenge_s: float = 1.0

    def makes(self, code: str) -> bool:
        """Check whether this fix is enabled."""
        return code not in self.off and "*" not in self.off

    def policy(self, policy: Policy) -> Policy:
        """Return the policy to apply: a strict workspace applies the agent's policy to saved files."""
        return "agent" if self.strict and policy == "human" else policy
