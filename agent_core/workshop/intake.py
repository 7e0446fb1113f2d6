"""What is to be imported, read into modules, and the report of what became of each function.

A `.jsonl` file gives one module a line; every other library gives one a file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..gate import Candidate, Policy
from ..gate.reading.escapes import write_escapes
from ..problem import Place, Problem
from ..registry.source import check_module_name, path_of
from .archive import read_library
from .checking import parse_line
from .closure import Parts
from .foreign import Adapted
from .job import Row
from .taking import Part, escaping, fitting, is_passed_over, modules


@dataclass(frozen=True, slots=True)
class Taking:
    """What is imported, and how."""

    path: Path
    policy: Policy = "import"
    prefix: str = ""
    dry_run: bool = False
    maps: bool = True  # what was written for another agent


@dataclass(slots=True)
class Report:
    """What became of each function and each module; `to_json` is the published shape."""

    origin: str
    dry_run: bool
    functions: list[Row] = field(default_factory=list)
    modules: list[Row] = field(default_factory=list)
    files: list[Row] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """The report as a document."""
        outcomes = [row["outcome"] for row in self.functions]
        summary = {key: outcomes.count(key) for key in ("joined", "mended", "skipped", "refused")}
        return {
            "from": self.origin,
            "dry_run": self.dry_run,
            "functions": self.functions,
            "modules": self.modules,
            "files": self.files,
            "summary": summary,
        }


def read(taking: Taking, report: Report) -> tuple[dict[str, Part], dict[str, Candidate]]:
    """The modules that a library would be, and with a `.jsonl` file the candidates themselves.

    Raises:
        UsageError: there is nothing that can be read.
    """
    if taking.prefix and (bad := check_module_name(taking.prefix)):
        raise UsageError(f"--module-prefix: {bad.what}.", mend=bad.mend or "")
    if not taking.path.exists():
        raise UsageError(f"{taking.path} is not there.")
    if taking.path.suffix == ".jsonl":
        return _read_lines(taking, report)
    library = read_library(taking.path)
    report.files += [file_row(one) for one in library.problems]
    report.files += [
        {"path": name, "code": "passed-over", "message": "tests and set-up are not imported"}
        for name in sorted(library.files)
        if is_passed_over(name)
    ]
    parts: dict[str, Part] = {}
    for part in modules(library, taking.prefix, maps=taking.maps):
        if isinstance(part, Problem):
            report.files.append(file_row(part))
        elif part.module in parts:
            what = f"it would be the module `{part.module}`, as {parts[part.module].file} is"
            report.files.append(file_row(Problem("module-clash", what, Place(part.file), "rename one of the two")))
        else:
            parts[part.module] = part
            report.files += _methods(part)
    return parts, {}


def _methods(part: Part) -> Iterator[Row]:
    """The classes of a file whose methods are not taken."""
    for line, name, count in part.parts.methods_left():
        many = "1 method is" if count == 1 else f"{count} methods are"
        what = f"{many} not taken of `{name}`: functions stand at the top of a module"
        mend = "write each as `def name(self, …)` there, with what it needs of the object as parameters"
        yield file_row(Problem("methods", what, Place(part.file, line), mend, "warns"))


def _read_lines(taking: Taking, report: Report) -> tuple[dict[str, Part], dict[str, Candidate]]:
    prefix = taking.prefix or fitting(taking.path.stem)
    parts: dict[str, Part] = {}
    given: dict[str, Candidate] = {}
    for number, line in enumerate(taking.path.read_bytes().split(b"\n"), 1):
        where = f"{taking.path.name}:{number}"
        candidate = parse_line(line, where, "") if line.strip() else None
        if isinstance(candidate, Problem):
            report.files.append(file_row(candidate))
        elif candidate is not None:
            module = candidate.module or f"{prefix}.{fitting(candidate.name)}"
            candidate, escapes = replace(candidate, code=write_escapes(candidate.code)), escaping(candidate.code)
            found = Parts.of(candidate.code, where)
            if isinstance(found, Problem) or candidate.name not in found.public or module in given:
                what = _why_not(found, candidate, is_twice=module in given)
                report.files.append(file_row(Problem("not-a-candidate", what, Place(where), "mend that line")))
                continue
            alone = replace(found, public=(candidate.name,))
            adapted = Adapted(candidate.code, escapes, (), frozenset())
            parts[module] = Part(where, module, path_of(module), alone, adapted, (), frozenset())
            given[module] = replace(candidate, module=module)
    return parts, given


def _why_not(found: Parts | Problem, candidate: Candidate, *, is_twice: bool) -> str:
    if is_twice:
        return f"a line above holds a `{candidate.name}` too, which is taken"
    return (
        f"line {found.where.line}: {found.what}"
        if isinstance(found, Problem)
        else f"it does not define `{candidate.name}`"
    )


def file_row(problem: Problem) -> Row:
    """A file that was not taken, in the report."""
    return {**problem.to_json(), "path": str(problem.where)}
