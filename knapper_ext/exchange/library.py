"""The import of a library.

A library's files are copied as a whole, each public function is judged, and admitted ones are offered. The others stay
in their files as private functions, with the reason in the report. Nothing is overwritten, and unchanged functions of
an earlier import are skipped, so an import can be repeated. Each module is one transaction.
"""

import ast
import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from agent_core.base.matching import diff_lines
from agent_core.base.offload import aside
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, fields_to_json, replace
from agent_core.functions.gate import CONTEXT, Candidate, Gate, Policy
from agent_core.functions.gate.verdict import Fix
from agent_core.functions.service.file_checks import Judge, ReviewJob, judges
from agent_core.functions.service.judgment import Judgment, judgment_on
from agent_core.functions.service.memgpt_functions import here_already
from agent_core.functions.service.plan import USER, ChangeSummary, PlannedChange, planned
from agent_core.registry.depends import code_hash, is_program
from agent_core.registry.function import ModuleReading
from agent_core.registry.module_edits import place_function, withhold
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, is_bare_value
from agent_core.registry.tree import Definition
from agent_core.storage import DropPending, FunctionStore, SaveVerdict
from sandbox.wire.lines import lines_of

from .library_files import LibraryFile, left_behind, read_files, with_names

if TYPE_CHECKING:
    from agent_core.functions.service import FunctionService

# Problems of functions without a real body; their callers are useless as well.
_HOLLOW = frozenset({"placeholder", "not-implemented", "todo", "hard-coded"})


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """An import request; if `is_read`, the reader is asked about each function.

    `hosted` are the agent's own functions with their parameters. `maps` says whether to translate code that was written
    for another agent. `text` is the content of the file `path`, which is then not read.
    """

    path: Path
    policy: Policy = "import"
    prefix: str = ""
    dry_run: bool = False
    is_read: bool = False
    maps: bool = True
    hosted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text: str = ""


Outcome = Literal["joined", "fixed", "skipped", "refused"]


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """The outcome for one function of a library, and the line that it is from."""

    name: str
    module: str
    from_: str
    outcome: Outcome
    standing: str
    fixes: tuple[Fix, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ImportedModule:
    """A module that an import writes, with the diff from its original; a dry run does not write it."""

    module: str
    path: str
    version: str
    written: bool
    diff: str


@dataclass(slots=True)
class ImportReport:
    """The result for each function and each module; `files` are the skipped files, with reasons."""

    from_: str
    dry_run: bool
    functions: list[ImportedFunction] = field(default_factory=list)
    modules: list[ImportedModule] = field(default_factory=list)
    files: list[Problem] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, int]:
        """The number of functions by outcome."""
        counts = Counter(function.outcome for function in self.functions)
        return {outcome: counts[outcome] for outcome in get_args(Outcome)}

    @property
    def has_failed(self) -> bool:
        """True if a function was refused, or if no functions were found because files could not be read."""
        is_unread = not self.functions and any(file.code != "passed-over" for file in self.files)
        return is_unread or self.summary["refused"] > 0

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published shape."""
        files = [{**problem.to_json(), "path": str(problem.where)} for problem in self.files]
        return {**fields_to_json(self), "files": files, "summary": self.summary}


@dataclass(slots=True)
class Importer:
    """One import: its files by module, the existing functions, and the results so far.

    `ground` is the workspace with the whole library in place. `library` is the library alone; with it, code of an
    earlier import is recognized.
    """

    request: ImportRequest
    snapshot: Snapshot
    parts: dict[str, LibraryFile]
    ground: Snapshot
    library: Snapshot
    report: ImportReport
    tell: Callable[[ImportedFunction], None]
    verdicts: dict[str, dict[str, Judgment]] = field(
        default_factory=dict
    )  # admitted functions, by module and function

    @classmethod
    def read(
        cls, request: ImportRequest, snapshot: Snapshot, tell: Callable[[ImportedFunction], None]
    ) -> "Importer":
        """Return the import with its files read.

        Raises:
            UsageError: nothing can be read.
        """
        report = ImportReport(request.path.name, request.dry_run)
        held = {name: function.module for name, function in snapshot.functions.items()}
        parts: dict[str, LibraryFile] = {}
        ground = snapshot.draft()
        library = Snapshot.empty(snapshot.reserved).draft()
        for part in read_files(
            request.path, request.prefix, request.text, maps=request.maps, held=held
        ):
            if isinstance(part, Problem):
                report.files.append(part)
                continue
            parts[part.module] = part
            reading = read_module(part.source)
            report.files += left_behind(part, reading.functions)
            library = library.with_module(reading)
            ground = ground.with_module(reading) if part.module not in snapshot.modules else ground
        return cls(request, snapshot, parts, ground.finished(), library.finished(), report, tell)

    async def leave_out_packages(self, gate: Gate) -> None:
        """Leave out each `__init__.py` without functions that fails to import: all modules below it would fail."""
        packages = [
            part for part in self.parts.values() if part.is_package and not part.parts.public
        ]
        for part in sorted(packages, key=lambda part: part.module.count(".")):
            if part.module in self.snapshot.modules:
                continue
            if problem := await gate.try_import(part.source, self.ground):
                del self.parts[part.module]
                self.ground = self.ground.without_module(part.module)
                self.library = self.library.without_module(part.module)
                message = f"{problem.message}; its modules come without it"
                self.report.files.append(replace(problem, message=message, where=Place(part.file)))

    @property
    def count(self) -> int:
        """The number of public functions."""
        return sum(len(part.parts.public) for part in self.parts.values())

    async def run(
        self,
        store: FunctionStore,
        gate: Gate,
        judge: Judge,
        carry: Callable[[PlannedChange], Awaitable[PlannedChange]],
    ) -> None:
        """Judge every function, and write the library if any is admitted."""
        names = [(part, name) for part in self.parts.values() for name in part.parts.public]
        async with asyncio.TaskGroup() as tasks:
            for part, name in names:
                tasks.create_task(self._judge(part, name, store, judge))
        self._leave_out_hollow()
        if any(self.verdicts.values()):
            for part, reading in await self._compose_modules(gate):
                await self._write(part, reading, carry)

    async def _judge(
        self, file: LibraryFile, name: str, store: FunctionStore, judge: Judge
    ) -> None:
        """Judge one function in its module, and report it unless it may be admitted."""
        held = self.library.functions.get(name)
        mark = (
            code_hash(held, self.library) if held is not None and held.module == file.module else ""
        )
        known = await self._why_known(file, name, mark, store)
        if known is not None:
            self._report_function(
                file, name, "refused" if known.severity == "refuses" else "skipped", (known,)
            )
            return
        if name in self.snapshot.functions:
            self._report_function(file, name, "skipped")
            return
        candidate, shown = await aside(len(file.source.text), self._candidate, file, name)
        (verdict,) = await judge(
            ReviewJob(file.file, self.request.policy, candidate, is_read=self.request.is_read)
        )
        troubles = [problem for problem in file.problems if problem.where.line in shown]
        lines = {problem.where.line for problem in troubles}
        # A grant would not help foreign code.
        others = [
            row
            for row in verdict.problems
            if row.where.line not in lines or not row.code.startswith("needs-")
        ]
        if troubles or not verdict.admitted:
            self._report_function(file, name, "refused", (*troubles, *others))
            return
        notes = [Fix(CONTEXT, *note) for line, note in sorted(file.notes.items()) if line in shown]
        document = {**verdict.document, "imported": {"from": self.report.from_, "hash": mark}}
        joining = replace(verdict, fixes=(*notes, *verdict.fixes), document=document)
        self.verdicts.setdefault(file.module, {})[name] = joining

    def _candidate(self, file: LibraryFile, name: str) -> tuple[Candidate, set[int]]:
        """Return a function as a candidate with the statements that it needs or that run at import; and their lines."""
        body = file.parts.text.body
        binds = file.parts.binds
        unbound = {
            at: node
            for at, node in enumerate(body)
            if not binds[at] and not isinstance(node, Definition)
        }
        running = {
            at for at, node in unbound.items() if not (is_bare_value(node) or is_program(node))
        }
        calling = {
            at for at in running if not isinstance(body[at], ast.Assign | ast.AugAssign)
        }  # not `f.__doc__ = …`
        read = {word for at in calling for word in file.parts.statements[at].reads}
        statements = running | file.parts.needed(
            [name, *read], frozenset(file.parts.public) - {name}
        )
        helpers = tuple(
            sorted({bound for at in statements for bound in file.parts.binds[at]} - {name})
        )
        own = Candidate(
            name, file.parts.part(statements), file.module, file=file.file, helpers=helpers
        )
        candidate = replace(file.given or own, replaces=file.module not in self.snapshot.modules)
        return candidate, file.parts.lines(statements)

    async def _why_known(
        self, file: LibraryFile, name: str, mark: str, store: FunctionStore
    ) -> Problem | None:
        """Return why a function is not judged: it is already here, or its name is taken."""
        where = Place(file.file, file.parts.definition(name).lineno)
        if hosted := here_already(file.parts.definition(name), self.request.hosted):
            return Problem("here-already", hosted, where, None, "warns")
        holder = self.snapshot.functions.get(name)
        if holder is None:
            first = self.library.functions.get(name)
            if first is None or first.module == file.module:
                return None
            message = (
                f"the library has a `{name}` in the module `{first.module}` too, which is taken"
            )
            return Problem("name-clash", message, where, "rename one of the two")
        verdict = await judgment_on(store, holder.body_hash, name)
        if (
            mark
            and holder.module == file.module
            and verdict is not None
            and verdict.imported_hash == mark
        ):
            return None
        message = (
            f"there is already a `{name}` ({holder.path}:{holder.line}), which is not overwritten"
        )
        fix = f"rename one of the two; or take this text with: knapper functions edit {name} --file FILE"
        return Problem("name-taken", message, where, fix)

    def _leave_out_hollow(self) -> None:
        """Refuse functions that use a function of their module without a real body."""
        hollow = {
            (row.module, row.name)
            for row in self.report.functions
            if any(one.code in _HOLLOW for one in row.problems)
        }
        for module, verdicts in self.verdicts.items() if hollow else ():
            part = self.parts[module]
            for name in [*verdicts]:
                bound = {
                    bound for at in part.parts.needed([name]) for bound in part.parts.binds[at]
                }
                if used := sorted(bound & {other for own, other in hollow if own == module}):
                    message = f"`{name}` uses {', '.join(f'`{other}`' for other in used)}, which cannot join"
                    where = Place(part.file, part.parts.definition(name).lineno)
                    problem = Problem("needs-refused", message, where, "fix that function first")
                    self._report_function(part, name, "refused", (problem,))
                    del verdicts[name]

    async def _compose_modules(self, gate: Gate) -> list[tuple[LibraryFile, ModuleReading]]:
        """Return the modules to write, which offer the admitted functions, after checking that all can be imported."""
        short = {module for module, part in self.parts.items() if self._withheld(part)}
        parts = map(self.parts.__getitem__, self._modules_to_write())
        texts = {
            part.module: text for part in parts if (text := self._text(part, short)) is not None
        }
        sources = {
            module: ModuleSource.of(
                module, text, (self.snapshot.modules.get(module) or self.parts[module].source).path
            )
            for module, text in texts.items()
        }
        ground = self.snapshot.draft()
        for source in sources.values():
            ground = ground.with_module(read_module(source))
        ground = ground.finished()

        async def checked(file: LibraryFile, source: ModuleSource) -> ModuleReading:
            reading = read_module(source)
            if not self.verdicts.get(file.module):
                return reading
            verdict = await gate.judge_module(
                source, ground, self.request.policy, previous_reading=reading
            )
            for problem in verdict.problems:
                if problem.severity == "refuses" and problem.code.startswith("import"):
                    self._report_failure(file, problem)
                    break
            return verdict.reading

        pairs = [(self.parts[module], source) for module, source in sources.items()]
        readings = await asyncio.gather(*(checked(part, source) for part, source in pairs))
        return [(part, reading) for (part, _), reading in zip(pairs, readings, strict=True)]

    def _modules_to_write(self) -> list[str]:
        """Return the modules of each package or single file with an admitted function, and those that they import."""
        depth = self.request.prefix.count(".") + 1 if self.request.prefix else 0
        tops = {module: tuple(module.split(".")[: depth + 1]) for module in self.parts}
        wanted = {tops[module] for module, verdicts in self.verdicts.items() if verdicts}
        while True:
            modules = [module for module in self.parts if tops[module] in wanted]
            used = {
                tops[name]
                for module in modules
                for name in self.library.readings[module].imports
                if name in tops
            }
            if used <= wanted:
                return modules
            wanted |= used

    def _text(self, file: LibraryFile, short: Set[str]) -> str | None:
        """Return the text of a module with its admitted functions; None if there is nothing to write.

        Modules in `short` offer less than their originals.
        """
        verdicts = self.verdicts.get(file.module, {})
        existing = self.snapshot.modules.get(file.module)
        if existing is not None and (not verdicts or not existing.text.strip()):
            return None
        text = existing.text if existing else with_names(file, short, self.parts)
        for name, verdict in [*verdicts.items()]:
            if existing or verdict.fixes:
                placed = place_function(
                    text, verdict.source, name, path=file.source.path, with_statements=True
                )
                if isinstance(placed, Problem):
                    self._report_function(
                        file, name, "refused", (replace(placed, where=Place(file.file)),)
                    )
                    del verdicts[name]
                else:
                    text = placed
        withheld = frozenset[str]() if existing else self._withheld(file)
        unoffered = withhold(text, withheld) if withheld else text
        return text if isinstance(unoffered, Problem) else unoffered

    def _withheld(self, file: LibraryFile) -> frozenset[str]:
        """Return the functions that a file defines but does not offer, because they were not admitted."""
        reading = self.library.readings[file.module]
        return (
            frozenset(function.name for function in reading.functions)
            - self.verdicts.get(file.module, {}).keys()
        )

    async def _write(
        self,
        file: LibraryFile,
        reading: ModuleReading,
        carry: Callable[[PlannedChange], Awaitable[PlannedChange]],
    ) -> None:
        verdicts = self.verdicts.get(file.module, {})
        source = reading.source
        if not self.request.dry_run:
            done = await carry(_plan(reading, verdicts, self.snapshot, self.report.from_))
            if done.outcome == "refused":
                fix = "look at that file, and import again"
                self._report_failure(file, Problem("not-written", done.text, Place(file.file), fix))
                return
        before = self.snapshot.modules.get(file.module)
        old = lines_of(before.text if before else file.author_text)
        new = lines_of(source.text)
        rows = diff_lines(old, new, (file.file, source.path), 0)
        diff = "".join(row if row.endswith("\n") else f"{row}\n" for row in rows)
        self.report.modules.append(
            ImportedModule(file.module, source.path, source.version, not self.request.dry_run, diff)
        )
        for name, verdict in verdicts.items():
            self._report_function(
                file, name, "fixed" if verdict.fixes else "joined", verdict.problems, verdict
            )

    def _report_failure(self, file: LibraryFile, problem: Problem) -> None:
        """Report a module that cannot be written or imported, and all its functions that would have been admitted."""
        if not self.verdicts.get(file.module):
            self.report.files.append(replace(problem, where=Place(file.file)))
        for name in self.verdicts.pop(file.module, {}):
            self._report_function(
                file,
                name,
                "refused",
                (replace(problem, where=replace(problem.where, path=file.file)),),
            )

    def _report_function(
        self,
        file: LibraryFile,
        name: str,
        outcome: Outcome,
        problems: tuple[Problem, ...] = (),
        judgment: Judgment | None = None,
    ) -> None:
        standing, fixes = (judgment.standing, judgment.fixes) if judgment else ("", ())
        place = f"{file.file}:{file.parts.definition(name).lineno}"
        function = ImportedFunction(name, file.module, place, outcome, standing, fixes, problems)
        self.report.functions.append(function)
        self.tell(function)


def _plan(
    reading: ModuleReading, verdicts: Mapping[str, Judgment], snapshot: Snapshot, origin: str
) -> PlannedChange:
    """Return the plan that writes a module: one transaction, with a verdict for each admitted function."""
    source = reading.source
    author = USER
    existing = snapshot.modules.get(source.module)
    before = existing or ModuleSource(source.module, source.path, "", "")
    names = ", ".join(verdicts) or source.module
    work = ChangeSummary(
        "changed" if existing else "created", names, author, f"imported from {origin}"
    )
    result = planned(
        f"{names} imported",
        Judgment.from_json({"name": names, "admitted": True}),
        before,
        reading,
        work,
    )
    for function in reading.functions:
        if row := verdicts.get(function.name):
            saved = SaveVerdict(
                function.body_hash, function.name, replace(row, by=author.by).to_json()
            )
            result = replace(result, writes=(*result.writes, saved, DropPending(function.name)))
    return result


async def import_library(
    service: "FunctionService",
    request: ImportRequest,
    tell: Callable[[ImportedFunction], None],
    begin: Callable[[int], None],
) -> ImportReport:
    """Import a library and return the report. `tell` is called with each function, `begin` with their number.

    Raises:
        UsageError: nothing can be read, or the reader is requested and there is none.
    """
    gate = service.parts.gate()
    hosted = service.parts.hosted()
    request = replace(request, maps=gate.rules.makes(CONTEXT), hosted=hosted)
    work = await asyncio.to_thread(Importer.read, request, service.registry.snapshot(), tell)
    await work.leave_out_packages(gate)
    begin(work.count)
    context = replace(service.checks.context(), snapshot=work.ground)
    shared = service.checks.count_shared(work.count, is_read=request.is_read)
    async with judges(context, gate, shared) as judge:
        await work.run(service.store, gate, judge, service.finish)
    return work.report
