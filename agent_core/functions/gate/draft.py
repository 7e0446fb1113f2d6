"""The state that passes through the stages: a candidate's text and tree, and the findings so far.

Immutable: every stage takes one and returns another, so stages can be tested and reordered alone.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self, TypeVar

from agent_core.access.grants import NOTHING, Grants
from agent_core.base.matching import diff_lines
from agent_core.base.problem import Evidence, Place, Problem
from agent_core.base.untrusted import one_line
from agent_core.registry.module_edits import place_function
from sandbox.wire.lines import lines_of

from .rules import Rules, severity
from .tree import FunctionNode, bound_names, find, parse
from .verdict import Disagreement, Fix

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function, ModuleReading
    from agent_core.registry.snapshot import Snapshot
    from agent_core.registry.source import ModuleSource
    from sandbox.code import Modules

    from .candidate import Candidate, GivenExample, Policy, Way
    from .mutants import Mutant
    from .verdict import ReaderAnswer

NOT_IMPORTED: Final = "the module could not be imported"
NOTHING_YET: Final = "the body does nothing yet"
OUTSIDE: Final = "it acts on the outside, which is not tried here"
_QUOTED = 160  # characters of a line that is shown as evidence


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before the policy is applied: code, message, fix and place in the text.

    Without any other `evidence`, the line at that place is what can be checked.
    """

    code: str
    message: str
    fix: str | None = None
    line: int = 0
    column: int = 0
    evidence: tuple[Evidence, ...] = ()


TOO_DEEP = Finding(
    "too-deep", "the code is nested too deeply, or has too long a chain, to be judged", "split it into smaller parts"
)


@dataclass(frozen=True, slots=True)
class TrialSubject:
    """The promised function with the module that could be imported: what the stages in a worker run.

    `tree` and `node` are of its own text, `snapshot` has the module.
    """

    function: "Function"
    node: FunctionNode
    tree: ast.Module
    snapshot: "Snapshot"

    @property
    def modules(self) -> "Modules":
        """The modules of the workspace, with its own."""
        return self.snapshot.modules


@dataclass(frozen=True, slots=True)
class ExampleTrials:
    """The results of running the examples."""

    agreed: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    is_unproven: bool = False
    values: tuple[tuple[str, object], ...] = ()  # the calls that agreed, with what came back
    slowest_s: float = 0.0  # of processor time, for one example
    offered: Disagreement | None = None  # a call that would make too few examples enough, with what it returned


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate on its way through the gate."""

    candidate: "Candidate"
    policy: "Policy"
    rules: Rules
    snapshot: "Snapshot"
    text: str
    tree: ast.Module | None = None
    problems: tuple[Problem, ...] = ()
    fixes: tuple[Fix, ...] = ()
    note: str = ""
    skipped: bool = False  # by the present stage, which could not run
    late: bool = False  # the present stage had no time for all that it had to try
    own: "ModuleReading | None" = None  # the candidate's text alone
    reading: "ModuleReading | None" = None  # the module that it would become
    trial: "Snapshot | None" = None  # the snapshot with that module, once it could be imported
    trials: ExampleTrials = ExampleTrials()
    unnoticed: tuple["Mutant", ...] = ()  # the changes of the body that no example noticed, of those that were tried
    mutants_tried: int = 0
    challenges: tuple[str, ...] = ()  # the calls whose results the author is to predict
    answer: "ReaderAnswer | None" = None
    is_challenging: bool = False  # whether its author can be asked
    is_read: bool = False  # whether a reader is asked
    apart: frozenset[str] = frozenset()  # functions that it is not compared with
    likely: tuple[str, ...] = ()  # functions that its description finds, best first
    granted: Grants = NOTHING
    guarded: frozenset[str] = frozenset()  # functions that have grants of their own
    approval_mode: "Way" = "absent"  # how the user is asked for missing grants
    needs: Grants = NOTHING
    asking: tuple[int, ...] = ()  # the lines that need what is not granted

    @property
    def function(self) -> FunctionNode | None:
        """The promised function, once the text has been parsed."""
        return find(self.tree, self.candidate.name) if self.tree else None

    @property
    def examples(self) -> "list[Example | GivenExample]":
        """The examples of the docstring, and those that were sent next to it."""
        function = self.loaded.function if self.loaded else self.own_function
        return [*(function.examples if function else ()), *self.candidate.examples]

    @property
    def own_function(self) -> "Function | None":
        """The promised function as its text alone has it."""
        functions = self.own.functions if self.own else ()
        return next((function for function in functions if function.name == self.candidate.name), None)

    @property
    def line(self) -> int:
        """The line of the promised function; 0 without one."""
        return self.function.lineno if self.function else 0

    @property
    def size(self) -> int:
        """The number of characters that are checked: its own, and those of the module that it goes into."""
        return len(self.text) + (len(self.around.text) if self.around else 0)

    @property
    def around(self) -> "ModuleSource | None":
        """The module that the candidate joins, as it is; None for a new one."""
        return self.snapshot.modules.get(self.candidate.module)

    @property
    def placed(self) -> str | Problem:
        """The text of that module with the candidate in it, or why it cannot be placed."""
        before, path = (self.around.text, self.around.path) if self.around else ("", "module")
        is_library = self.policy == "import"
        return place_function(before, self.text, self.candidate.name, path=path, with_statements=is_library)

    @property
    def loaded(self) -> TrialSubject | None:
        """The promised function as its module has it, once that could be imported."""
        functions, own, node = self.reading.functions if self.reading else (), self.own_function, self.function
        function = next((function for function in functions if function.name == self.candidate.name), None)
        if function is None or self.own is None or self.tree is None or node is None or self.trial is None:
            return None
        # The examples' lines are those of the candidate's text: that is what its author sees.
        function = replace(function, examples=own.examples) if own else function
        return TrialSubject(function, node, self.tree, self.trial)

    @property
    def module_names(self) -> frozenset[str]:
        """The names that the candidate's module already has."""
        tree = parse(self.around.text) if self.around else None
        return frozenset(bound_names(tree)) if isinstance(tree, ast.Module) else frozenset()

    def has(self, *codes: str) -> bool:
        """Check whether one of these problems was found and causes a rejection."""
        return any(problem.code in codes and problem.severity == "refuses" for problem in self.problems)

    def shows(self, *codes: str) -> bool:
        """Check whether one of these problems was found, whatever the policy makes of it."""
        return any(problem.code in codes for problem in self.problems)

    @property
    def refuses(self) -> bool:
        """True if there is a finding that causes a rejection."""
        return any(problem.severity == "refuses" for problem in self.problems)

    def with_findings(self, stage: str, findings: Iterable[Finding], *, is_mild: bool = False) -> Self:
        """Return the draft with a stage's findings, each weighed by the policy; those that are mild only warn."""
        problems = tuple(
            Problem(
                code=finding.code,
                message=finding.message,
                where=Place(self.candidate.path, self.authors_line(finding.line), finding.column),
                fix=finding.fix,
                severity="warns" if is_mild else severity(self.policy, stage, finding.code),
                evidence=finding.evidence or self._line(self.text, finding.line),
            )
            for finding in findings
        )
        return self.with_problems(problems)

    def authors_line(self, line: int) -> int:
        """Return the line of a file for one of the text, which may have been fixed; the same line without a file."""
        if not self.candidate.file or self.text == self.candidate.code or not line:
            return line
        lines = _lines_before(self.candidate.code, self.text)
        return lines[min(line, len(lines)) - 1] if lines else line

    def with_problems(self, problems: Iterable[Problem]) -> Self:
        """Return the draft with these problems; one without evidence gets the line at its place."""
        written = self.candidate.code if self.candidate.file else self.text
        added = tuple(
            replace(problem, evidence=problem.evidence or self._line(written, problem.where.line))
            for problem in problems
        )
        return replace(self, problems=self.problems + added) if added else self

    def _line(self, text: str, line: int) -> tuple[Evidence, ...]:
        """Return a line of a text as evidence; without a number the one on which the function, or the text, begins.

        What is looked at in its file has the file's lines.
        """
        lines = lines_of(self.reading.source.text if self.reading and self.own is self.reading else text)
        number = line or (self.function.lineno if self.function else 1)
        quoted = lines[number - 1].strip()[:_QUOTED] if 0 < number <= len(lines) else ""
        return (Evidence(f"line {number}: {one_line(quoted, _QUOTED)}" if quoted else "the text is empty there"),)

    def skip(self, reason: str) -> Self:
        """Return the draft unchanged, with the reason why a stage could not run."""
        return replace(self, note=f"not run: {reason}", skipped=True)

    def with_fix(self, code: str, message: str, text: str) -> Self:
        """Return the draft with a fixed text, and the fix on record with its diff."""
        tree = parse(text)
        fix = Fix(code, message, unified_diff(self.text, text, self.candidate.path))
        return replace(
            self, text=text, tree=tree if isinstance(tree, ast.Module) else self.tree, fixes=(*self.fixes, fix)
        )


D = TypeVar("D", bound=Draft)
"""A draft of one kind, a candidate's or a saved file's: the stages that judge both return what they were given."""


@lru_cache(maxsize=16)
def _lines_before(before: str, after: str) -> tuple[int, ...]:
    """Return for each line of a text the line from which it came; a new one counts as part of the one above it."""
    old, new = lines_of(before), lines_of(after)
    lines: list[int] = []
    for kind, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
        count = last - first
        rows = (
            range(start + 1, end + 1) if kind == "equal" else [min(start + 1 + at, max(end, 1)) for at in range(count)]
        )
        lines += rows if kind != "delete" else ()
    return tuple(lines)


def unified_diff(before: str, after: str, path: str) -> str:
    """Return the changes between two texts as a unified diff."""
    lines = diff_lines(lines_of(before), lines_of(after), (f"a/{path}", f"b/{path}"), 1)
    return "".join(line if line.endswith(("\n", "\r")) else line + "\n" for line in lines)
