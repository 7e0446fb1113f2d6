"""Import of a library: each public function is judged with its dependencies; the admitted ones join module by module.

Nothing that is there is overwritten; what was imported before and is unchanged is passed over, so that an import can
be run again. Each module is one transaction.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agent_core.base.problem import Place, Problem
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.storage import FunctionStore

from ..gate import CONTEXT, Candidate, Gate
from ..gate.examples.example_text import with_example
from ..gate.verdict import Fix, ModuleVerdict
from .closure import own_text
from .foreign import here_already
from .import_order import circled, first_loaded, generations
from .intake import ImportedFunction, ImportedModule, ImportReport, Outcome, SkippedFile, Taking
from .judgment import Judgment, judgment_on
from .library_files import LibraryFile, demands
from .module_progress import Joined, ModuleProgress, alone, candidate_of, joined, plan, unoffered, whole
from .plan import Author, PlannedChange
from .review_job import ReviewJob
from .review_pool import Judge

_MOST_GIVEN = 8


@dataclass(slots=True)
class Importer:
    """One import: its dependencies on the workspace, and its results so far."""

    taking: Taking
    snapshot: Snapshot
    store: FunctionStore
    gate: Gate
    judge: Judge
    carry: Callable[[PlannedChange], Awaitable[PlannedChange]]
    tell: Callable[[ImportedFunction], None]
    report: ImportReport
    written: dict[str, ModuleSource] = field(default_factory=dict)
    waiting: dict[str, LibraryFile] = field(default_factory=dict)
    circles: dict[str, list[LibraryFile]] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)  # by module: the one that loads its circle
    demands: dict[str, frozenset[str]] = field(default_factory=dict)  # by module: what others of the library take
    texts: dict[str, str] = field(default_factory=dict)  # by text: the function that has it

    async def run(self, parts: Mapping[str, LibraryFile], candidates: Mapping[str, Candidate]) -> None:
        """Judge and write every module, those that others use first."""
        claims = self._claims(parts)
        self.demands = demands(parts)
        together = circled(parts)
        self.circles = {name: [parts[member] for member in sorted(others)] for name, others in together.items()}
        for group in generations(parts):
            self._prepare(group, parts)
            async with asyncio.TaskGroup() as tasks:
                verdict_tasks = [tasks.create_task(self._judge(part, claims, candidates)) for part in group]
            remaining = {task.result().part.module: task.result() for task in verdict_tasks}
            for progress in remaining.values():
                self._leave_out_copies(progress)
            while remaining:
                module = next(iter(remaining))
                await self._join([remaining.pop(name) for name in (module, *sorted(together[module]))])

    def _prepare(self, group: list[LibraryFile], parts: Mapping[str, LibraryFile]) -> None:
        """Have there for the others what a group holds of helpers, and of modules that import each other."""
        self.waiting |= {part.module: part for part in group if not part.parts.public and not part.is_facade}
        for part in group:
            if circle := self.circles[part.module]:
                self.waiting[part.module] = whole(part, is_offered="*" in self.demands[part.module])
                package = first_loaded({part.module, *(member.module for member in circle)}, parts)
                if package is not None and package.module not in self.snapshot.modules:
                    self.waiting[package.module] = package
                    self.packages[part.module] = package.module

    def _claims(self, parts: Mapping[str, LibraryFile]) -> dict[str, str]:
        """Return the module of the library that owns each name: the first one."""
        claims: dict[str, str] = {}
        for part in parts.values():
            for name in part.parts.public:
                claims.setdefault(name, part.module)
        return claims

    async def _judge(
        self, part: LibraryFile, claims: dict[str, str], candidates: Mapping[str, Candidate]
    ) -> ModuleProgress:
        """Return the module with the verdicts on what may join, dependencies first. The others are reported at once."""
        existing = self.snapshot.modules.get(part.module)
        before = whole(part).text if self.circles[part.module] else ""
        progress = ModuleProgress(part, existing.text if existing else before, self.demands[part.module])
        for name in progress.order():
            code, places = candidate_of(part, progress.statements(name))
            mark = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
            known = await self._known(name, mark, part, claims)
            if known == "skipped":
                progress.skipped.add(name)
                self._told(part, name, "skipped")
            elif known is not None:
                self._told(part, name, "refused" if known.severity == "refuses" else "skipped", (known,))
            elif lacking := progress.lacking(name):
                self._told(part, name, "refused", (_lacking(name, lacking, part),))
            else:
                await self._review(name, progress, code, places, candidates.get(part.module))
        for name, lacking in progress.take_alone():
            self._told(part, name, "refused", (_lacking(name, lacking, part),))
        return progress

    def _leave_out_copies(self, progress: ModuleProgress) -> None:
        """Refuse what another module, judged at the same time, has word for word under another name."""
        for name, verdict in [*progress.verdicts.items()]:
            text = own_text(verdict.source, name)
            first = self.texts.setdefault(text, f"{progress.part.module}.{name}") if text else ""
            if first not in ("", f"{progress.part.module}.{name}"):
                del progress.verdicts[name]
                progress.companions[name] = verdict.source
                where = Place(progress.part.file, progress.part.parts.line(name))
                message = f"`{name}` is `{first}` word for word, which joins"
                self._told(progress.part, name, "refused", (Problem("copy", message, where, "call that one"),))

    async def _review(
        self, name: str, progress: ModuleProgress, code: str, places: list[int], given: Candidate | None
    ) -> None:
        """Judge one function, and report it if it is refused."""
        part, statements = progress.part, progress.statements(name)
        helpers = part.parts.helpers(statements)
        candidate = given or Candidate(name, code, part.module, file=part.file, helpers=helpers)
        candidate = replace(candidate, replaces=name in progress.in_order)
        verdict = await self._verdict(candidate, part.file, self._around(part, progress.around(name)))
        is_early = any(
            problem.code == "import-fails" and "NameError" in problem.message for problem in verdict.problems
        )
        if is_early and part.module not in self.snapshot.modules:
            progress.take_in_order(name)
            around = self._around(part, progress.text)
            verdict = await self._verdict(replace(candidate, replaces=True), part.file, around)
        progress.judged.add(name)
        troubles = [*part.troubles(statements), *_kept_out(name, progress, verdict)]
        verdict = _located(verdict, troubles, places, part)
        if troubles or not verdict.admitted:
            progress.refuse(name, code, verdict)
            self._told(part, name, "refused", verdict.problems)
            return
        mark = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        document = {**verdict.document, "imported": {"from": self.report.from_, "hash": mark}}
        progress.admit(name, replace(verdict, fixes=(*_mapped(part, places), *verdict.fixes), document=document))

    async def _verdict(self, candidate: Candidate, file: str, around: tuple[ModuleSource, ...]) -> Judgment:
        job = ReviewJob(file, self.taking.policy, candidate, around=around, is_read=self.taking.is_read)
        (verdict,) = await self.judge(job)
        if not (verdict.admitted and candidate.examples):
            return verdict
        extended = replace(candidate, code=_with_examples(candidate, verdict.source), examples=(), exact=True)
        (rejudged,) = await self.judge(replace(job, candidate=extended))
        return replace(rejudged, fixes=verdict.fixes) if rejudged.admitted and rejudged.agreed else verdict

    def _around(self, part: LibraryFile, text: str) -> tuple[ModuleSource, ...]:
        """Return the library's modules as written so far, with the current text of this one."""
        existing = self.snapshot.modules.get(part.module)
        if not text and part.path.endswith("/__init__.py"):
            text = "\n"  # so that it is judged as a package
        own = (ModuleSource.of(part.module, text, existing.path if existing else part.path),) if text else ()
        return (*self.written.values(), *self._support_sources(), *own)

    def _support_sources(self) -> list[ModuleSource]:
        return [ModuleSource.of(part.module, part.text, part.path) for part in self.waiting.values()]

    async def _known(
        self, name: str, mark: str, part: LibraryFile, claims: dict[str, str]
    ) -> Literal["skipped"] | Problem | None:
        """Return "skipped" if the same function was imported before, or the problem if its name is taken."""
        where = Place(part.file, part.parts.line(name))
        if hosted := here_already(name, part.parts.parameters(name), self.taking.hosted):
            return Problem("here-already", hosted, where, None, "warns")
        holder = self.snapshot.functions.get(name)
        if holder is None:
            if claims[name] == part.module:
                return None
            message = f"the library has a `{name}` in the module `{claims[name]}` too, which is taken"
            return Problem("name-clash", message, where, "rename one of the two")
        verdict = await judgment_on(self.store, holder.body_hash, name)
        if holder.module == part.module and verdict is not None and verdict.imported_hash == mark:
            return "skipped"
        message = f"there is already a `{name}` ({holder.path}:{holder.line}), which is not overwritten"
        fix = f"rename one of the two; or take this text with: knapper functions edit {name} --file FILE"
        return Problem("name-taken", message, where, fix)

    async def _join(self, group: list[ModuleProgress]) -> None:
        """Write what may join of a module, or of modules that import each other, after the helpers that they use."""
        joining = [progress for progress in group if progress.verdicts]
        for progress in group:
            if not progress.verdicts:
                self._keep(progress)
        sources: list[tuple[LibraryFile, Joined]] = []
        for progress in joining:
            own = self.waiting.pop(progress.part.module, None)
            result = await self._composed(progress, [row.source for _, row in sources])
            if isinstance(result, Joined):
                sources.append((progress.part, result))
            elif own is not None:
                self.waiting[progress.part.module] = own
        used = {module for part, _ in sources for module in self._support(part)}
        for module in sorted(used):
            helper = self.waiting.pop(module)
            await self._write(helper, alone(helper, self.snapshot.modules.get(module)))
        for part, result in sources:
            await self._write(part, result)

    def _keep(self, progress: ModuleProgress) -> None:
        """Keep a module of which nothing joins for those that use it."""
        part = progress.part
        if not part.parts.public:
            if part.module not in self.written:
                self.waiting.setdefault(part.module, part)
        elif not self.circles[part.module] and (text := progress.without_functions()):
            self.waiting[part.module] = unoffered(part, text)

    def _support(self, part: LibraryFile) -> set[str]:
        modules: set[str] = set()
        front = {*part.uses, self.packages.get(part.module, "")}
        while front:
            module = front.pop()
            if module in self.waiting and module not in modules:
                modules.add(module)
                front |= {*self.waiting[module].uses, self.packages.get(module, "")}
        return modules

    async def _composed(self, progress: ModuleProgress, others: list[ModuleSource]) -> Joined | Problem:
        """Return a module with what joins of it, after it was imported next to the others; else report the problem."""
        part, ground = progress.part, self.snapshot
        for source in (*self.written.values(), *self._support_sources(), *others):
            ground = ground.with_module(read_module(source))

        def check(source: ModuleSource, previous: ModuleReading) -> Awaitable[ModuleVerdict]:
            return self.gate.judge_module(source, ground, self.taking.policy, previous=previous)

        existing = ground.modules.get(part.module)
        result = await joined(part, progress.verdicts, progress.private_names(), existing, check)
        if isinstance(result, Problem):
            self._failed(part, progress.verdicts, result)
        return result

    async def _write(self, part: LibraryFile, result: Joined) -> None:
        source, is_written = result.source, not self.taking.dry_run
        if is_written:
            done = await self.carry(plan(result, self.snapshot, Author(), self.report.from_))
            if done.outcome == "refused":
                problem = Problem("not-written", done.text, Place(part.file), "look at that file, and import again")
                self._failed(part, result.verdicts, problem)
                return
        self.written[part.module] = source
        self.report.modules.append(ImportedModule(part.module, source.path, source.version, is_written))
        for name, verdict in result.verdicts.items():
            self._told(part, name, "fixed" if verdict.fixes else "joined", verdict.problems, verdict)

    def _failed(self, part: LibraryFile, verdicts: Mapping[str, Judgment], problem: Problem) -> None:
        if not verdicts:
            self.report.files.append(SkippedFile.of(replace(problem, where=Place(part.file))))
        for name in verdicts:
            self._told(part, name, "refused", (replace(problem, where=replace(problem.where, path=part.file)),))

    def _told(
        self,
        part: LibraryFile,
        name: str,
        outcome: Outcome,
        problems: tuple[Problem, ...] = (),
        verdict: Judgment | None = None,
    ) -> None:
        standing, fixes = (verdict.standing, verdict.fixes) if verdict else ("", ())
        place = f"{part.file}:{part.parts.line(name)}"
        function = ImportedFunction(name, part.module, place, outcome, standing, fixes, problems)
        self.report.functions.append(function)
        self.tell(function)


def _with_examples(candidate: Candidate, text: str) -> str:
    """Return the admitted text with the candidate's examples stored in its docstring."""
    for example in candidate.examples[:_MOST_GIVEN]:
        more = with_example(text, candidate.name, example.call, example.expected) if example.call not in text else text
        text = text if isinstance(more, Problem) else more
    return text


def _lacking(name: str, lacking: list[str], part: LibraryFile) -> Problem:
    message = f"`{name}` uses {', '.join(f'`{dependency}`' for dependency in lacking)}, which cannot join"
    return Problem("needs-refused", message, Place(part.file, part.parts.line(name)), "fix that function first")


def _kept_out(name: str, progress: ModuleProgress, verdict: Judgment) -> list[Problem]:
    """Return the problem that a function's module would need a package that others of it do without."""
    if not progress.keeps_others_out(verdict.source):
        return []
    needs = next((problem for problem in verdict.problems if problem.code == "needs-packages"), None)
    if needs is None:
        return []
    message = f"{needs.message}; it is needed when the module is loaded, so that no other function of it would run"
    return [Problem("needs-packages", message, needs.where, "import it inside the function that uses it")]


def _mapped(part: LibraryFile, places: list[int]) -> tuple[Fix, ...]:
    """Return the rewrites that were made because `self` differs here."""
    notes = [note for line, note in part.adapted.mapped.items() if line in places]
    return tuple(Fix(CONTEXT, message, diff) for message, diff in notes)


def _located(verdict: Judgment, troubles: list[Problem], places: list[int], part: LibraryFile) -> Judgment:
    """Return a verdict with its problems at the lines of the library, after those that its text has there anyway.

    A foreign name needs a grant too, which would not help: this is not reported next to it.
    """
    lines = {problem.where.line for problem in troubles}
    located = [replace(problem, where=_place(problem.where, verdict, places, part)) for problem in verdict.problems]
    others = [p for p in located if p.where.line not in lines or not p.code.startswith("needs-")]
    return replace(verdict, problems=(*troubles, *others))


def _place(where: Place, verdict: Judgment, places: list[int], part: LibraryFile) -> Place:
    """Return a place in the library's file for one in the judged text, else that of the function."""
    if 0 < where.line <= len(places):
        return Place(part.file, places[where.line - 1], where.column)
    return Place(part.file, part.parts.line(verdict.name))
