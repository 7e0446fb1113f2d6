"""Import of a library: each public function is judged with its dependencies; the admitted ones join module by module.

Nothing that is there is overwritten; what was imported before and is unchanged is passed over, so that an import can
be run again. Each module is one transaction.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agent_core.base.problem import Place, Problem
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.storage import FunctionStore

from ..gate import CONTEXT, Candidate, Gate
from ..gate.examples.example_text import with_example
from ..gate.verdict import Fix
from .closure import ModuleParts
from .foreign import here_already
from .intake import ImportedFunction, ImportedModule, ImportReport, Outcome, SkippedFile, Taking
from .judgment import Judgment, judgment_on
from .library_files import LibraryFile, circled, demands, generations
from .module_progress import ModuleProgress, PrivateNames, joined, plan
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
    demands: dict[str, frozenset[str]] = field(default_factory=dict)  # by module: what others of the library take

    async def run(self, parts: Mapping[str, LibraryFile], candidates: Mapping[str, Candidate]) -> None:
        """Judge and write every module, those that others use first."""
        claims = self._claims(parts)
        self.demands = demands(parts)
        together = circled(parts)
        self.circles = {name: [parts[member] for member in sorted(others)] for name, others in together.items()}
        for group in generations(parts):
            helpers = [part for part in group if not part.parts.public and not part.path.endswith("/__init__.py")]
            self.waiting |= {part.module: part for part in helpers}
            async with asyncio.TaskGroup() as tasks:
                verdict_tasks = [tasks.create_task(self._judge(part, claims, candidates)) for part in group]
            for task in verdict_tasks:
                await self._join(task.result())

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
        progress = ModuleProgress(part, existing.text if existing else "", self.demands[part.module])
        if any(member.module in self.waiting for member in self.circles[part.module]):
            progress.begin()
        for name in progress.order():
            code, places = part.parts.candidate(progress.statements(name))
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

    async def _review(
        self, name: str, progress: ModuleProgress, code: str, places: list[int], given: Candidate | None
    ) -> None:
        """Judge one function, and report it if it is refused."""
        part, statements = progress.part, progress.statements(name)
        helpers = part.parts.helpers(statements)
        candidate = given or Candidate(name, code, part.module, file=part.file, helpers=helpers)
        verdict = await self._verdict(candidate, part.file, self._around(part, progress.around(name)))
        progress.judged.add(name)
        troubles = part.troubles(statements)
        verdict = _located(verdict, troubles, places, part)
        if troubles or not verdict.admitted:
            progress.refuse(name, code, verdict)
            self._told(part, name, "refused", (*self._round(code, part, name), *verdict.problems))
            return
        mark = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
        document = {**verdict.document, "imported": {"from": self.report.from_, "hash": mark}}
        progress.admit(name, replace(verdict, fixes=(*_mapped(part, places), *verdict.fixes), document=document))

    def _round(self, code: str, part: LibraryFile, name: str) -> list[Problem]:
        """Return the cause of a rejection if a module imports this one too: that module did not exist yet."""
        words = frozenset(re.findall(r"\w+", code))
        partner = next(
            (member for member in self.circles[part.module] if words & {*member.parts.public, _last(member)}), None
        )
        if partner is None:
            return []
        message = f"`{part.file}` and `{partner.file}` import each other, and one module joins after another"
        fix = "import again, now that the rest of both is there; put functions that need each other into one file"
        return [Problem("import-each-other", message, Place(part.file, part.parts.line(name)), fix)]

    async def _verdict(self, candidate: Candidate, file: str, around: tuple[ModuleSource, ...]) -> Judgment:
        policy = self.taking.policy
        (verdict,) = await self.judge(ReviewJob(file, policy, candidate, around=around))
        if not (verdict.admitted and candidate.examples):
            return verdict
        extended = replace(candidate, code=_with_examples(candidate, verdict.source), examples=(), exact=True)
        (rejudged,) = await self.judge(ReviewJob(file, policy, extended, around=around))
        return replace(rejudged, fixes=verdict.fixes) if rejudged.admitted and rejudged.agreed else verdict

    def _around(self, part: LibraryFile, text: str) -> tuple[ModuleSource, ...]:
        """Return the library's modules as written so far, with the current text of this one."""
        existing = self.snapshot.modules.get(part.module)
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
        fix = f"rename one of the two; or take this text with: toolwright functions edit {name} --file FILE"
        return Problem("name-taken", message, where, fix)

    async def _join(self, progress: ModuleProgress) -> None:
        """Write what may join, with the helper modules that it uses before it."""
        part = progress.part
        if not part.parts.public:
            if part.module not in self.written:
                self.waiting[part.module] = part
            return
        if not progress.verdicts:
            text = progress.without_functions()
            parts = ModuleParts.of(text, part.file, part.module) if text else None
            if text and isinstance(parts, ModuleParts):
                adapted = replace(part.adapted, text=text, unused=frozenset())
                self.waiting[part.module] = replace(part, parts=replace(parts, public=()), adapted=adapted)
            return
        for module in sorted(self._support(part)):
            await self._write(self.waiting.pop(module), {}, PrivateNames())
        await self._write(part, progress.verdicts, progress.private_names())

    def _support(self, part: LibraryFile) -> set[str]:
        modules: set[str] = set()
        front = set(part.uses)
        while front:
            module = front.pop()
            if module in self.waiting and module not in modules:
                modules.add(module)
                front |= self.waiting[module].uses
        return modules

    async def _write(self, part: LibraryFile, verdicts: dict[str, Judgment], private: PrivateNames) -> None:
        ground = self.snapshot
        for source in (*self.written.values(), *self._support_sources()):
            ground = ground.with_module(read_module(source))
        joined_module = await joined(part, verdicts, private, self.gate, ground, self.taking.policy)
        if isinstance(joined_module, Problem):
            self._failed(part, verdicts, joined_module)
            return
        source, is_written = joined_module.source, not self.taking.dry_run
        if is_written:
            result = await self.carry(plan(joined_module, self.snapshot, Author(), self.report.from_))
            if result.outcome == "refused":
                problem = Problem("not-written", result.text, Place(part.file), "look at that file, and import again")
                self._failed(part, verdicts, problem)
                return
        self.written[part.module] = source
        self.report.modules.append(ImportedModule(part.module, source.path, source.version, is_written))
        for name, verdict in verdicts.items():
            self._told(part, name, "fixed" if verdict.fixes else "joined", verdict.problems, verdict)

    def _failed(self, part: LibraryFile, verdicts: dict[str, Judgment], problem: Problem) -> None:
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


def _last(part: LibraryFile) -> str:
    return part.module.rpartition(".")[2]


def _lacking(name: str, lacking: list[str], part: LibraryFile) -> Problem:
    message = f"`{name}` uses {', '.join(f'`{dependency}`' for dependency in lacking)}, which cannot join"
    return Problem("needs-refused", message, Place(part.file, part.parts.line(name)), "fix that function first")


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
