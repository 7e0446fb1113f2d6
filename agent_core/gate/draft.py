"""The state that runs through the stages: a candidate's text and tree, and what was found so far.

Immutable: every stage takes one and returns another, so stages can be tested and reordered alone.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sandbox.lines import lines_of

from ..grants import NOTHING, Grants
from ..matching import diff_lines
from ..problem import Place, Problem
from ..registry.function import Function, Reading
from ..registry.snapshot import Snapshot
from .candidate import Candidate, Policy
from .grants import Way
from .rules import Rules, severity
from .tree import FunctionNode, bound_names, find, parse
from .verdict import Disagreement, Mend, Survivor


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before its policy is asked: code, sentence, mend and place in the text."""

    code: str
    what: str
    mend: str | None = None
    line: int = 0
    column: int = 0


TOO_DEEP = Finding(
    "too-deep", "the code is nested too deeply, or has too long a chain, to be judged", "split it into smaller parts"
)


@dataclass(frozen=True, slots=True)
class Trials:
    """What running the examples showed."""

    agreed: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    is_unproven: bool = False
    values: tuple[tuple[str, object], ...] = ()  # the calls that agreed, with what came back
    offered: Disagreement | None = None  # a call that would make too few examples enough, with what it returned


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate on its way through the gate."""

    candidate: Candidate
    policy: Policy
    rules: Rules
    snapshot: Snapshot
    text: str
    tree: ast.Module | None = None
    problems: tuple[Problem, ...] = ()
    mends: tuple[Mend, ...] = ()
    note: str = ""
    skipped: bool = False
    own: Reading | None = None  # the candidate's text alone
    reading: Reading | None = None  # the module that it would become
    trial: Snapshot | None = None  # the snapshot with that module, once it could be imported
    trials: Trials = Trials()
    survivors: tuple[Survivor, ...] = ()
    apart: frozenset[str] = frozenset()  # functions that it is not compared with
    granted: Grants = NOTHING
    guarded: frozenset[str] = frozenset()  # functions that have grants of their own
    way: Way = "none"  # how a human comes to be asked for what it lacks
    needs: Grants = NOTHING
    asking: tuple[int, ...] = ()  # the lines that need what is not granted

    @property
    def function(self) -> FunctionNode | None:
        """The promised function, once the text has been read."""
        return find(self.tree, self.candidate.name) if self.tree else None

    @property
    def size(self) -> int:
        """How many characters are looked at: its own, and those of the module that it goes into."""
        around = self.snapshot.modules.get(self.candidate.module)
        return len(self.text) + (len(around.text) if around else 0)

    @property
    def loaded(self) -> Function | None:
        """The promised function as its module has it, once that could be imported."""
        functions = self.reading.functions if self.reading and self.trial else ()
        found = next((one for one in functions if one.name == self.candidate.name), None)
        if found is None or self.own is None:
            return None
        own = next((one for one in self.own.functions if one.name == found.name), None)
        # The examples' lines are those of the candidate's text: that is what its author sees.
        return replace(found, examples=own.examples) if own else found

    @property
    def module_names(self) -> frozenset[str]:
        """The names that the module the candidate goes into already has."""
        around = self.snapshot.modules.get(self.candidate.module)
        tree = parse(around.text) if around else None
        return frozenset(bound_names(tree)) if isinstance(tree, ast.Module) else frozenset()

    def has(self, *codes: str) -> bool:
        """One of these problems was found and refuses."""
        return any(problem.code in codes and problem.severity == "refuses" for problem in self.problems)

    def shows(self, *codes: str) -> bool:
        """One of these problems was found, whatever the policy makes of it."""
        return any(problem.code in codes for problem in self.problems)

    def with_findings(self, stage: str, findings: Iterable[Finding]) -> "Draft":
        """The draft with what a stage found, each weighed by the policy."""
        found = tuple(
            Problem(
                code=one.code,
                what=one.what,
                where=Place(self.candidate.path, one.line, one.column),
                mend=one.mend,
                severity=severity(self.policy, stage, one.code),
            )
            for one in findings
        )
        return replace(self, problems=self.problems + found) if found else self

    def with_problems(self, problems: Iterable[Problem]) -> "Draft":
        """The draft with problems as they are."""
        return replace(self, problems=(*self.problems, *problems))

    def skip(self, reason: str) -> "Draft":
        """The draft as it is: a stage could not run, and says why."""
        return replace(self, note=f"not run: {reason}", skipped=True)

    def with_mend(self, code: str, message: str, text: str) -> "Draft":
        """The draft with a mended text, and the mend on record with its diff."""
        tree = parse(text)
        mend = Mend(code, message, unified(self.text, text, self.candidate.path))
        return replace(
            self,
            text=text,
            tree=tree if isinstance(tree, ast.Module) else self.tree,
            mends=(*self.mends, mend),
        )


def unified(before: str, after: str, path: str) -> str:
    """What changed between two texts, as a unified diff."""
    lines = diff_lines(lines_of(before), lines_of(after), (f"a/{path}", f"b/{path}"), 1)
    return "".join(line if line.endswith(("\n", "\r")) else line + "\n" for line in lines)
