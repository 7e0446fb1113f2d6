"""A candidate, and the state that passes through the stages: its text and tree, and the findings so far.

The state is immutable: every stage takes a draft and returns another, so stages can be tested and reordered alone.
"""

import ast
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self, TypeVar

from agent_core.access.grants import NOTHING, Grants
from agent_core.access.grants.content import runnable
from agent_core.base.matching import diff_lines
from agent_core.base.problem import Evidence, Place, Problem
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from agent_core.registry.approved import without_stale_imports
from agent_core.registry.module_edits import place_function
from sandbox.wire.lines import kept_lines, lines_of

from .tree import FunctionNode, bound_names, find, parse
from .verdict import Breakage, Disagreement, Fix, ReaderAnswer, Rules, severity

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function, ModuleReading
    from agent_core.registry.registry import Snapshot
    from agent_core.registry.source import ModuleSource
    from sandbox.code import Modules

    from .verdict import Policy


Way = Literal["absent", "none", "joining", "calling", "importing", "file"]
"""When the user is asked for a missing grant.

In this order: after a function was made, never, before a candidate is accepted, before a call (of a saved function, or
of an imported one), or by an edit of the file.
"""


@dataclass(frozen=True, slots=True)
class GivenExample:
    """An example that was sent with the code: `call` and `expected` are Python source. It has no line."""

    call: str
    expected: str
    approx: float | None = None
    setup: ClassVar[tuple[str, ...]] = ()
    raises: ClassVar[str] = ""
    line: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class ReplyChanges:
    """The changes that are made together with a candidate, in one reply of a model.

    `coming` are the functions that are changed after it: how they are now is not held against it. `before` is the
    snapshot before all of them. `broken` are functions that none of them changes, and that an earlier one broke. The
    candidate was refused in the reply, and `is_once_more` judged, after the others. `called` are names that the reply
    calls.
    """

    coming: frozenset[str] = frozenset()
    before: "Snapshot | None" = None
    broken: frozenset[str] = frozenset()
    is_once_more: bool = False
    called: frozenset[str] = frozenset()


ALONE: Final = ReplyChanges()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A submitted function in its original form; `replaces` allows it to replace one with the same name.

    `file` is the file that its text is from, if any; `exact` means that its text must not be fixed. `asked` are calls
    whose results its author was asked to predict. `helpers` are functions that it contains under their own names and
    that are not offered. `around` is the new text of its whole module, if more than the function changes: it is written
    with it, and the plan has to compute it again when it is planned again. `answer` is an earlier
    reader's answer about its description; an author who `insists` holds on to a promise of the description that the
    code does not fulfill. `apart` are functions from which the author distinguished the previous version. `together`
    are the other changes of the same reply.
    """

    name: str
    code: str
    module: str
    reason: str = ""
    examples: tuple[GivenExample, ...] = ()
    replaces: bool = False
    description: str = ""
    file: str = ""
    exact: bool = False
    asked: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    around: str | None = None
    answer: ReaderAnswer | None = None
    insists: bool = False
    apart: tuple[str, ...] = ()
    together: ReplyChanges = ALONE

    @property
    def path(self) -> str:
        """The name that problems use for the text: its file, or its name if its lines are not those of a file."""
        return self.file or f"{self.name or 'candidate'}.py"


NOT_IMPORTED: Final = "the module could not be imported"
NOTHING_YET: Final = "the body does nothing yet"
OUTSIDE: Final = "it acts on the outside, which is not tried here"
_QUOTED = 160  # characters of a line that is quoted as evidence


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed text; `line` is relative to the function's first, `notices` is the kind of example that detects it."""

    operator: str
    text: str
    line: int
    before: str
    after: str
    notices: str

    @property
    def diff(self) -> str:
        """The change as the lines of a diff."""
        removed = ["-" + self.before.replace("\n", "\n-")] if self.before else []
        return "\n".join([*removed, "+" + self.after.replace("\n", "\n+")])


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem before the policy is applied: code, message, fix, and place in the text.

    Without other `evidence`, the line at that place is the evidence.
    """

    code: str
    message: str
    fix: str | None = None
    line: int = 0
    column: int = 0
    evidence: tuple[Evidence, ...] = ()


TOO_DEEP = Finding(
    "too-deep",
    "the code is nested too deeply, or has too long a chain, to be judged",
    "split it into smaller parts",
)


@dataclass(frozen=True, slots=True)
class TrialSubject:
    """The promised function with its importable module, which the stages run in a worker.

    `tree` and `node` are of the function's text alone; `snapshot` has the module.
    """

    function: "Function"
    node: FunctionNode
    tree: ast.Module
    snapshot: "Snapshot"

    @property
    def modules(self) -> "Modules":
        """The modules of the workspace, including its own, as they are imported for it."""
        return runnable(self.function, self.snapshot.modules)


@dataclass(frozen=True, slots=True)
class ExampleTrials:
    """The results of running the examples."""

    agreed: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    is_unproven: bool = False
    values: tuple[tuple[str, object], ...] = ()  # calls that agreed, with their results
    slowest_s: float = 0.0  # processor time of the slowest example
    offered: Disagreement | None = (
        None  # a call, with its result, that would make too few examples enough
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate in the gate."""

    candidate: "Candidate"
    policy: "Policy"
    rules: Rules
    snapshot: "Snapshot"
    text: str
    tree: ast.Module | None = None
    problems: tuple[Problem, ...] = ()
    fixes: tuple[Fix, ...] = ()
    note: str = ""
    skipped: bool = False  # the current stage could not run
    late: bool = False  # the current stage ran out of time
    own: "ModuleReading | None" = None  # the candidate's text, read alone
    reading: "ModuleReading | None" = None  # the module that it would become
    trial: "Snapshot | None" = None  # the snapshot with that module, if it can be imported
    trials: ExampleTrials = ExampleTrials()
    unnoticed: tuple[Mutant, ...] = ()  # tried changes of the body that no example detected
    mutants_tried: int = 0
    challenges: tuple[str, ...] = ()  # calls with results that the author must predict
    answer: "ReaderAnswer | None" = None
    is_challenging: bool = False  # whether its author can be asked
    is_read: bool = False  # whether a reader is asked
    apart: frozenset[str] = frozenset()  # functions that it is not compared with
    likely: tuple[str, ...] = ()  # functions that its description finds, best first
    granted: Grants = NOTHING
    guarded: frozenset[str] = frozenset()  # functions that need a grant to be called
    approval_mode: "Way" = "absent"  # how the user is asked for missing grants
    needs: Grants = NOTHING
    asking: tuple[int, ...] = ()  # lines that need grants it does not have
    breakages: tuple[Breakage, ...] = ()  # functions that it breaks, and that this does not refuse
    upheld: frozenset[str] = frozenset()  # functions that use it and whose examples all agree

    @property
    def function(self) -> FunctionNode | None:
        """The node of the promised function, once the text has been parsed."""
        return find(self.tree, self.candidate.name) if self.tree else None

    @property
    def examples(self) -> "list[Example | GivenExample]":
        """The examples in the docstring, followed by those that were sent with the code."""
        function = self.loaded.function if self.loaded else self.own_function
        return [*(function.examples if function else ()), *self.candidate.examples]

    @property
    def own_function(self) -> "Function | None":
        """The promised function, read from its own text."""
        return self.own.function(self.candidate.name) if self.own else None

    @property
    def line(self) -> int:
        """The line of the promised function; 0 without one."""
        return self.function.lineno if self.function else 0

    @property
    def size(self) -> int:
        """The number of characters to check: its own and those of its module."""
        return len(self.text) + (len(self.around.text) if self.around else 0)

    @property
    def around(self) -> "ModuleSource | None":
        """The current module that the candidate joins; None for a new one."""
        return self.snapshot.modules.get(self.candidate.module)

    @property
    def placed(self) -> str | Problem:
        """The text of that module with the candidate in it, or why it cannot be placed."""
        before, path = (self.around.text, self.around.path) if self.around else ("", "module")
        is_library = self.policy == "import"
        text = place_function(
            before, self.text, self.candidate.name, path=path, with_statements=is_library
        )
        if isinstance(text, Problem) or not before:
            return text
        return without_stale_imports(
            before, text, self.candidate.module, self.snapshot.modules.values()
        )

    @property
    def loaded(self) -> TrialSubject | None:
        """The promised function as read from its module, once that could be imported."""
        function = self.reading.function(self.candidate.name) if self.reading else None
        own, node = self.own_function, self.function
        if (
            function is None
            or self.own is None
            or self.tree is None
            or node is None
            or self.trial is None
        ):
            return None
        # Use the examples' lines in the candidate's text, which its author sees.
        function = replace(function, examples=own.examples) if own else function
        return TrialSubject(function, node, self.tree, self.trial)

    @property
    def module_names(self) -> frozenset[str]:
        """The names that the candidate's module already has."""
        tree = parse(self.around.text) if self.around else None
        return frozenset(bound_names(tree)) if isinstance(tree, ast.Module) else frozenset()

    def has(self, *codes: str) -> bool:
        """Check whether one of these problems was found and rejects the candidate."""
        return any(
            problem.code in codes and problem.severity == "refuses" for problem in self.problems
        )

    def shows(self, *codes: str) -> bool:
        """Check whether one of these problems was found, regardless of the policy."""
        return any(problem.code in codes for problem in self.problems)

    @property
    def refuses(self) -> bool:
        """True if a finding rejects the candidate."""
        return any(problem.severity == "refuses" for problem in self.problems)

    def with_findings(
        self, stage: str, findings: Iterable[Finding], *, is_mild: bool = False
    ) -> Self:
        """Return the draft with a stage's findings, weighed by the policy; if `is_mild`, they only warn."""
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
        """Return the original file's line for a line of the text, which may be fixed; without a file, the same line."""
        if not self.candidate.file or self.text == self.candidate.code or not line:
            return line
        lines = _lines_before(self.candidate.code, self.text)
        return lines[min(line, len(lines)) - 1] if lines else line

    def with_problems(self, problems: Iterable[Problem]) -> Self:
        """Return the draft with these problems; a problem without evidence gets the line at its place."""
        written = self.candidate.code if self.candidate.file else self.text
        added = tuple(
            replace(problem, evidence=problem.evidence or self._line(written, problem.where.line))
            for problem in problems
        )
        return replace(self, problems=self.problems + added) if added else self

    def _line(self, text: str, line: int) -> tuple[Evidence, ...]:
        """Return a line of a text as evidence; without a number, the first line of the function or the text.

        For a function of a saved file, lines are those of the file.
        """
        lines = kept_lines(
            self.reading.source.text if self.reading and self.own is self.reading else text
        )
        number = line or (self.function.lineno if self.function else 1)
        quoted = lines[number - 1].strip()[:_QUOTED] if 0 < number <= len(lines) else ""
        return (
            Evidence(
                f"line {number}: {one_line(quoted, _QUOTED)}"
                if quoted
                else "the text is empty there"
            ),
        )

    def skip(self, reason: str) -> Self:
        """Return the draft with a note why the current stage could not run."""
        return replace(self, note=f"not run: {reason}", skipped=True)

    def with_fix(self, code: str, message: str, text: str) -> Self:
        """Return the draft with a fixed text and the recorded fix with its diff."""
        tree = parse(text)
        fix = Fix(code, message, unified_diff(self.text, text, self.candidate.path))
        return replace(
            self,
            text=text,
            tree=tree if isinstance(tree, ast.Module) else self.tree,
            fixes=(*self.fixes, fix),
        )


D = TypeVar("D", bound=Draft)
"""A draft of a candidate or of a saved file; stages that judge both return the type that they were given."""


@lru_cache(maxsize=16)
def _lines_before(before: str, after: str) -> tuple[int, ...]:
    """Return the original line for each line of a text; a new line belongs to the line above it."""
    old, new = lines_of(before), lines_of(after)
    lines: list[int] = []
    for kind, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
        count = last - first
        rows = (
            range(start + 1, end + 1)
            if kind == "equal"
            else [min(start + 1 + at, max(end, 1)) for at in range(count)]
        )
        lines += rows if kind != "delete" else ()
    return tuple(lines)


def unified_diff(before: str, after: str, path: str) -> str:
    """Return the changes between two texts as a unified diff."""
    lines = diff_lines(lines_of(before), lines_of(after), (f"a/{path}", f"b/{path}"), 1)
    return "".join(line if line.endswith(("\n", "\r")) else line + "\n" for line in lines)
