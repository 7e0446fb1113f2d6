"""The gate's results for a candidate or a saved file, as values whose JSON shape is published; and its rules as data.

The rules say which stages refuse under which policy, the limits, and what can be switched off.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_core.access.grants import NOTHING, Grants
from agent_core.base.records import IF_SET, dataclass, field, to_json
from agent_core.registry.source import MAX_MODULE_BYTES

if TYPE_CHECKING:
    from agent_core.base.problem import Problem, Severity
    from agent_core.registry.function import Function, ModuleReading


Policy = Literal["agent", "human", "import"]
Standing = Literal["draft", "trial", "trusted", "quarantined", ""]

GRANTABLE: Final = frozenset(
    f"needs-{grant}" for grant in ("network", "files", "secrets", "packages", "memory", "functions")
)
"""Findings that the user's approval can resolve."""

UNDEFINED: Final = "undefined-name"

TOO_FEW: Final = frozenset({"too-few-examples", "one-sided-examples", "same-results"})
"""Findings about missing examples."""

WORDLESS: Final = frozenset({"no-docstring", "undescribed-parameter", "no-type", "no-return-type"})
"""Findings about what a description leaves out."""


def refusing(problems: Iterable["Problem"]) -> tuple["Problem", ...]:
    """Return the problems that refuse, the worst first.

    Wrong and hollow code comes first, then missing examples, missing words, and what the user's approval can resolve.
    That a call stops at an undefined name is left out: the name itself is a problem.
    """
    refusals = [problem for problem in problems if problem.severity == "refuses"]
    names = [each.message.split("`")[1] for each in refusals if each.code == UNDEFINED]
    told = [each for each in refusals if not any(_stops_at(each, name) for name in names)]
    return tuple(sorted(told, key=_rank))


def _stops_at(problem: "Problem", name: str) -> bool:
    """Check whether all that a problem says is that a call stopped at an undefined name."""
    return any(f"NameError: name '{name}' is not" in row.returned for row in problem.evidence[:1])


def _rank(problem: "Problem") -> int:
    for rank, codes in enumerate((TOO_FEW, WORDLESS, GRANTABLE), 1):
        if problem.code in codes:
            return rank
    return 0


Reach: TypeAlias = Literal[
    "nothing", "network", "files", "device", "understanding", "knowledge", "unknown"
]
"""The resource that a body needs in addition to its arguments; `unknown` if the description does not say."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One call with the result that the reader expects and the returned one; `agreed` if these are the same.

    What it `is_inferred` from is more than the docstring says, so a difference accuses nobody.
    """

    call: str
    expected: str
    returned: str = ""
    agreed: bool = False
    is_inferred: bool = field(default=False, metadata=IF_SET)


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """A reader's answer about a description, with its cost; `error` is the reason why there is none.

    `described` is the hash of what it was shown, so that a description is read once. `asked` are the gate's calls that
    it was asked about; those that it could not answer are not in `calls`. A model that `is_small` was only asked for
    the reach.
    """

    model: str
    described: str = ""
    reach: Reach = "unknown"
    calls: tuple[ExpectedCall, ...] = ()
    asked: tuple[str, ...] = ()
    thought: str = ""
    is_small: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str = field(default="", metadata=IF_SET)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ReaderAnswer":  # Any: JSON
        """Return the answer from the JSON of a verdict."""
        calls = tuple(ExpectedCall(**row) for row in data["calls"])
        return cls(**{**data, "calls": calls, "asked": tuple(data["asked"])})

    def expects(self, call: str) -> str:
        """Return the result that it expects of a call; empty if it was not asked or could not tell."""
        return next((expected.expected for expected in self.calls if expected.call == call), "")


@dataclass(frozen=True, slots=True)
class Fix:
    """One automatic fix, with its unified diff."""

    code: str
    message: str
    diff: str


@dataclass(frozen=True, slots=True)
class StageReport:
    """The result of one stage. `note` says what it found, or why it did not run.

    `beside`: it ran in parallel with another stage. `late`: its time was up, and what it did not reach is unchecked.
    """

    stage: str
    passed: bool
    seconds: float
    note: str = ""
    beside: bool = field(default=False, metadata=IF_SET)
    late: bool = field(default=False, metadata=IF_SET)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An example that gives another result than the returned one. Neither is assumed to be right."""

    call: str
    expected: str
    returned: str
    line: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer about one candidate. `standing` is empty if the candidate is rejected."""

    name: str
    module: str
    admitted: bool
    standing: Standing
    version: str
    fixes: tuple[Fix, ...]
    problems: tuple["Problem", ...]
    stages: tuple[StageReport, ...]
    source: str
    module_text: str | None
    disagreements: tuple[Disagreement, ...] = ()
    agreed: int = 0
    confirmed: tuple[str, ...] = ()
    reading: "ModuleReading | None" = None
    offered: Disagreement | None = None
    needs: Grants = NOTHING
    asking: tuple[tuple[int, str], ...] = ()  # lines that need grants it does not have
    challenges: tuple[str, ...] = ()  # calls with results that its author must still predict
    predicted: tuple[str, ...] = ()  # calls with results that its author has predicted
    answer: ReaderAnswer | None = None
    reach: tuple[str, ...] = ()  # descriptions of what it accesses; empty if it only computes
    breakages: tuple["Breakage", ...] = ()  # what it breaks, and what the same reply changes next
    upheld: frozenset[str] = frozenset()  # functions that use it and whose examples all agree

    @property
    def lacks_only_grants(self) -> bool:
        """True if only missing grants, which the user could give, reject the candidate."""
        codes = {problem.code for problem in self.refusals}
        return bool(codes and self.asking) and codes <= GRANTABLE

    @property
    def waits_for_packages(self) -> bool:
        """True if it is admitted without its packages, which its first call asks for."""
        return self.admitted and any(problem.code == "needs-packages" for problem in self.problems)

    @property
    def refusals(self) -> tuple["Problem", ...]:
        """The problems that reject the candidate, in the order of `refusing`."""
        return refusing(self.problems)

    @property
    def can_be_confirmed(self) -> bool:
        """True if only example results reject the candidate: written ones that differ, or a missing one."""
        return bool(self.to_confirm)

    @property
    def to_confirm(self) -> tuple[Disagreement, ...]:
        """The calls that would admit the candidate if their returned results were confirmed."""
        codes = {problem.code for problem in self.refusals}
        missing = (self.offered,) if self.offered and codes & TOO_FEW else ()
        if not codes <= {"example-disagrees", *TOO_FEW} or bool(codes & TOO_FEW) != bool(missing):
            return ()
        return (*self.disagreements, *missing) if codes else ()

    def to_json(self) -> dict[str, Any]:
        """Return the published shape."""
        lists = {"challenges": self.challenges, "predicted": self.predicted}
        return {
            **{name: to_json(getattr(self, name)) for name in _PUBLISHED.split()},
            **{name: list(calls) for name, calls in lists.items() if calls},
            **({"reader": to_json(self.answer)} if self.answer else {}),
        }


_PUBLISHED: Final = (
    "name module admitted standing version fixes problems stages source agreed confirmed can_be_confirmed needs reach"
    " disagreements"
)


@dataclass(frozen=True, slots=True)
class Look:
    """The findings about one function of a file from the stages that a save does not wait for."""

    name: str
    problems: tuple["Problem", ...] = ()
    stages: tuple[StageReport, ...] = ()
    answer: ReaderAnswer | None = None


@dataclass(frozen=True, slots=True)
class Breakage:
    """A function that a change has broken all the same: of another file that was saved, or that is changed next.

    `name` is the changed function, or empty if code around functions changed. `code` is the hash of all the code with
    which the examples fail.
    """

    name: str
    user: "Function"
    code: str
    description: str


@dataclass(frozen=True, slots=True)
class ModuleVerdict:
    """The gate's answer about a saved file: its functions with their standings, and differing examples.

    It also has the policy that was applied, and the previous reading.
    """

    reading: "ModuleReading"
    admitted: bool
    problems: tuple["Problem", ...]
    stages: tuple[StageReport, ...]
    standings: tuple[tuple[str, Standing], ...] = ()
    disagreements: tuple[tuple[str, Disagreement], ...] = ()
    breakages: tuple[Breakage, ...] = ()
    policy: Policy = "human"
    previous: "ModuleReading | None" = None

    @property
    def refusals(self) -> tuple["Problem", ...]:
        """The problems that reject the file."""
        return tuple(problem for problem in self.problems if problem.severity == "refuses")

    def to_json(self) -> dict[str, Any]:
        """Return the published shape for a whole module."""
        return {
            "module": self.reading.source.module,
            "admitted": self.admitted,
            "standings": dict(self.standings),
            "problems": to_json(self.problems),
            "stages": to_json(self.stages),
        }


KIB = 1024
DISPUTED = "disputed"
REACHES_NOTHING = "reaches-nothing"
WEAK_EXAMPLES: Final = "weak-examples"
NOT_READ: Final = "not read"
"""The beginning of the reader's note where no model could be asked."""
CONTEXT = "context"
"""The code of the fix that translates another agent's `self`."""

# Findings with weak evidence that a function is hollow; a doubt never refuses.
CHALLENGED = frozenset({"doubt-examples", "doubt-parameter"})
"""Findings that make the author predict the results of other calls."""
# Findings about too little evidence, which make what is admitted a draft.
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
    "agent": "doubt-examples doubt-parameter hides-builtin near-copy confusable rest-parameter"
    " undescribed-parameter unproven unreachable-code weak-examples fails-on slow-on",
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
    module_bytes: int = MAX_MODULE_BYTES
    strict: bool = False
    off: frozenset[str] = frozenset()
    packages: tuple[str, ...] = ("pydantic",)
    duplicate_s: float = 1.0
    fitted_s: float = 2.0
    mutation_s: float = 0.75  # including the start of the worker
    max_mutants: int = 40
    neighbours_s: float = 2.0
    robust_s: float = 2.5
    robust_calls: int = 200
    robust_each_s: float = 0.25
    weak_share: float = (
        0.3  # of the changes of the body that no example detects; from here on, the author is asked
    )
    weak_least: int = 2
    challenges: int = 3
    challenge_s: float = 1.0

    def makes(self, code: str) -> bool:
        """Check whether this fix is enabled."""
        return code not in self.off and "*" not in self.off

    def policy(self, policy: Policy) -> Policy:
        """Return the policy to apply: a strict workspace applies the agent's policy to saved files."""
        return "agent" if self.strict and policy == "human" else policy
