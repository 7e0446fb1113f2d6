"""Reading of imports into modules, and the report on each function.

A `.jsonl` file gives one module a line; every other library gives one a file.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from agent_core.base.errors import UsageError
from agent_core.base.json_form import fields_to_json
from agent_core.base.plain_files import read_named
from agent_core.base.problem import Place, Problem
from agent_core.registry.source import check_module_name, path_of

from ..gate import Candidate, Policy
from ..gate.text_fixes import write_escapes
from ..gate.verdict import Fix
from .archive import read_library
from .closure import ModuleParts
from .file_checks import parse_line
from .foreign import Adapted
from .library_files import LibraryFile, escaping, fitting, is_passed_over, modules
from .name_clashes import told_apart


@dataclass(frozen=True, slots=True)
class Taking:
    """An import request; if `is_read`, the reader is asked about each function. `hosted` are the agent's own functions
    with their parameters, `holders` the modules of the functions of the workspace, `packages` those that functions
    can import anyway.
    """

    path: Path
    policy: Policy = "import"
    prefix: str = ""
    dry_run: bool = False
    is_read: bool = False
    maps: bool = True  # what was written for another agent
    hosted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    holders: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


Outcome = Literal["joined", "fixed", "skipped", "refused"]


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """What became of one function of a library, and from which line it is."""

    name: str
    module: str
    from_: str
    outcome: Outcome
    standing: str
    fixes: tuple[Fix, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ImportedModule:
    """A module that an import writes; in a dry run it is not written."""

    module: str
    path: str
    version: str
    written: bool


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of a library that was not taken, with the problem unless it was passed over."""

    path: str
    code: str
    message: str
    problem: Problem | None = None

    @classmethod
    def of(cls, problem: Problem) -> "SkippedFile":
        """Return the file that a problem keeps out."""
        return cls(str(problem.where), problem.code, problem.message, problem)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published shape."""
        if self.problem is not None:
            return {**self.problem.to_json(), "path": self.path}
        return {"path": self.path, "code": self.code, "message": self.message}


@dataclass(slots=True)
class ImportReport:
    """The result for each function and each module."""

    from_: str
    dry_run: bool
    functions: list[ImportedFunction] = field(default_factory=list)
    modules: list[ImportedModule] = field(default_factory=list)
    files: list[SkippedFile] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, int]:
        """The number of functions by what became of them."""
        counts = Counter(function.outcome for function in self.functions)
        return {outcome: counts[outcome] for outcome in get_args(Outcome)}

    @property
    def has_failed(self) -> bool:
        """True if a function was refused, or there is none because files could not be read."""
        is_unread = not self.functions and any(file.code != "passed-over" for file in self.files)
        return is_unread or self.summary["refused"] > 0

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published shape."""
        return {**fields_to_json(self), "summary": self.summary}


def read(taking: Taking, report: ImportReport) -> tuple[dict[str, LibraryFile], dict[str, Candidate]]:
    """Return the modules of a library and, for a `.jsonl` file, the candidates themselves.

    Raises:
        UsageError: there is nothing that can be read.
    """
    if taking.prefix and (bad := check_module_name(taking.prefix)):
        raise UsageError(f"--module-prefix: {bad.message}.", fix=bad.fix or "")
    if not taking.path.exists():
        raise UsageError(f"{taking.path} is not there.")
    if taking.path.suffix == ".jsonl":
        return _read_lines(taking, report)
    library = read_library(taking.path)
    report.files += [SkippedFile.of(problem) for problem in library.problems]
    report.files += [
        SkippedFile(name, "passed-over", "tests and setup files are not imported")
        for name in sorted(library.files)
        if is_passed_over(name)
    ]
    parts: dict[str, LibraryFile] = {}
    for part in modules(library, taking.prefix, taking.packages, maps=taking.maps):
        if isinstance(part, Problem):
            report.files.append(SkippedFile.of(part))
        elif part.module in parts:
            message = f"it would be the module `{part.module}`, as {parts[part.module].file} is"
            report.files.append(
                SkippedFile.of(Problem("module-clash", message, Place(part.file), "rename one of the two"))
            )
        else:
            parts[part.module] = part
            report.files += (
                _methods(part) if part.file != part.module else ()
            )  # what takes a package's place has its own
    return told_apart(parts, taking.holders), {}


def _methods(part: LibraryFile) -> Iterator[SkippedFile]:
    """Yield the classes of a file with methods that are not imported."""
    for line, name, count in part.parts.methods_left():
        many = "1 method is" if count == 1 else f"{count} methods are"
        message = f"{many} not taken of `{name}`: functions stand at the top of a module"
        fix = "write each as `def name(self, …)` there, with what it needs of the object as parameters"
        yield SkippedFile.of(Problem("methods", message, Place(part.file, line), fix, "warns"))


def _read_lines(taking: Taking, report: ImportReport) -> tuple[dict[str, LibraryFile], dict[str, Candidate]]:
    prefix = taking.prefix or fitting(taking.path.stem)
    parts: dict[str, LibraryFile] = {}
    candidates: dict[str, Candidate] = {}
    for number, line in enumerate(read_named(taking.path).split(b"\n"), 1):
        where = f"{taking.path.name}:{number}"
        candidate = parse_line(line, where, "") if line.strip() else None
        if isinstance(candidate, Problem):
            report.files.append(SkippedFile.of(candidate))
        elif candidate is not None:
            module = candidate.module or f"{prefix}.{fitting(candidate.name)}"
            candidate, escapes = replace(candidate, code=write_escapes(candidate.code)), escaping(candidate.code)
            parsed = ModuleParts.of(candidate.code, where)
            if isinstance(parsed, Problem) or candidate.name not in parsed.public or module in candidates:
                reason = _why_not(parsed, candidate, is_twice=module in candidates)
                report.files.append(SkippedFile.of(Problem("not-a-candidate", reason, Place(where), "fix that line")))
                continue
            alone = replace(parsed, public=(candidate.name,))
            adapted = Adapted(candidate.code, escapes, (), frozenset())
            parts[module] = LibraryFile(where, module, path_of(module), alone, adapted, (), frozenset())
            candidates[module] = replace(candidate, module=module)
    return parts, candidates


def _why_not(parsed: ModuleParts | Problem, candidate: Candidate, *, is_twice: bool) -> str:
    if is_twice:
        return f"a line above holds a `{candidate.name}` too, which is taken"
    return (
        f"line {parsed.where.line}: {parsed.message}"
        if isinstance(parsed, Problem)
        else f"it does not define `{candidate.name}`"
    )
