"""Import of a library: each public function is judged with its dependencies; the admitted ones join module by module.

Nothing that is there is overwritten; what was imported before and is unchanged is passed over, so that an import can
be run again. Each module is one transaction.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from agent_core.base.problem import Place, Problem
from agent_core.registry.module_edits import place_function
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.storage import FunctionStore

from ..gate import CONTEXT, Candidate, Gate
from ..gate.examples.example_text import with_example
from ..gate.verdict import Fix
from .closure import ModuleParts
from .intake import ImportedFunction, ImportedModule, ImportReport, Outcome, SkippedFile, Taking
from .judgment import Judgment, judgment_on
from .library_files import LibraryFile, circled, circles, generations, in_order, joined, plan
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

    async def run(self, parts: Mapping[str, LibraryFile], candidates: Mapping[str, Candidate]) -> None:
        """Judge and write every module, those that others use first."""
        claims = self._claims(parts)
        together = circled(parts)
        self.circles = {name: [parts[member] for member in sorted(others)] for name, others in together.items()}
        for group in generations(parts):
            async with asyncio.TaskGroup() as tasks:
                verdict_tasks = [tasks.create_task(self._judge(part, claims, candidates)) for part in group]
            for part, task in zip(group, verdict_tasks, strict=True):
                await self._join(part, task.result())

    def _claims(self, parts: Mapping[str, LibraryFile]) -> dict[str, str]:
        """Return the module of the library that owns each name: the first one."""
        claims: dict[str, str] = {}
        for part in parts.values():
            for name in part.parts.public:
                claims.setdefault(name, part.module)
        return claims

    async def _judge(  # noqa: PLR0915 - each way on ends the look at a name
        self, part: LibraryFile, claims: dict[str, str], candidates: Mapping[str, Candidate]
    ) -> dict[str, Judgment]:
        """Return the verdicts on what may join, in dependency order. The others are reported at once."""
        verdicts: dict[str, Judgment] = {}
        skipped: set[str] = set()
        uses = {name: part.parts.uses(name) for name in part.parts.public}
        together = circles(uses)
        for name in in_order(uses):
            statements = _own(part.parts, name)
            code, places = part.parts.candidate(statements)
            mark = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
            existing = await self._known(name, mark, part, claims)
            if existing == "skipped":
                skipped.add(name)
                self._told(part, name, "skipped")
                continue
            lacking = sorted(uses[name] - skipped - verdicts.keys() - together[name] - {name})
            if isinstance(existing, Problem) or lacking:
                problem = existing if isinstance(existing, Problem) else _lacking(name, lacking, part)
                self._told(part, name, "refused", (problem,))
                continue
            texts = _sources(part.parts, together[name] - skipped) | _texts(verdicts)
            verdict = await self._verdict(name, code, part, texts, candidates)
            troubles = part.troubles(statements)
            verdict = _located(verdict, troubles, places, part)
            if troubles or not verdict.admitted:
                self._told(part, name, "refused", (*self._round(code, part, name), *verdict.problems))
                continue
            document = {**verdict.document, "imported": {"from": self.report.from_, "hash": mark}}
            verdicts[name] = replace(verdict, fixes=(*_mapped(part, places), *verdict.fixes), document=document)
        return self._together(part, skipped, verdicts)

    def _together(self, part: LibraryFile, skipped: set[str], verdicts: dict[str, Judgment]) -> dict[str, Judgment]:
        """Return the verdicts without functions that depend on a rejected function of their circle. Report these."""
        while alone := {
            name: lacking for name in verdicts if (lacking := _missed(part.parts, name, skipped, verdicts))
        }:
            for name, lacking in alone.items():
                del verdicts[name]
                self._told(part, name, "refused", (_lacking(name, lacking, part),))
        return verdicts

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

    async def _verdict(
        self, name: str, code: str, part: LibraryFile, texts: Mapping[str, str], candidates: Mapping[str, Candidate]
    ) -> Judgment:
        around = self._around(part, texts)
        candidate = candidates.get(part.module) or Candidate(name, code, part.module, file=part.file)
        (verdict,) = await self.judge(ReviewJob(part.file, self.taking.policy, candidate, around=around))
        if not (verdict.admitted and candidate.examples):
            return verdict
        extended = replace(candidate, code=_with_examples(candidate, verdict.source), examples=(), exact=True)
        (rejudged,) = await self.judge(ReviewJob(part.file, self.taking.policy, extended, around=around))
        return replace(rejudged, fixes=verdict.fixes) if rejudged.admitted and rejudged.agreed else verdict

    def _around(self, part: LibraryFile, texts: Mapping[str, str]) -> tuple[ModuleSource, ...]:
        """Return the library's modules as written so far, with the current state of this one."""
        existing = self.snapshot.modules.get(part.module)
        text = existing.text if existing else ""
        for name, own_text in texts.items():
            placed = place_function(text, own_text, name)
            text = text if isinstance(placed, Problem) else placed
        own = (ModuleSource.of(part.module, text, existing.path if existing else part.path),) if text else ()
        return (*self.written.values(), *self._support_sources(), *own)

    def _support_sources(self) -> list[ModuleSource]:
        return [ModuleSource.of(part.module, part.text, part.path) for part in self.waiting.values()]

    async def _known(
        self, name: str, mark: str, part: LibraryFile, claims: dict[str, str]
    ) -> Literal["skipped"] | Problem | None:
        """Return "skipped" if the same function was imported before, or the problem if its name is taken."""
        where = Place(part.file, part.parts.line(name))
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

    async def _join(self, part: LibraryFile, verdicts: dict[str, Judgment]) -> None:
        """Write what may join, with the helper modules that it uses before it."""
        if not part.parts.public:
            self.waiting[part.module] = part
            return
        if not verdicts:
            return
        for module in sorted(self._support(part)):
            await self._write(self.waiting.pop(module), {})
        await self._write(part, verdicts)

    def _support(self, part: LibraryFile) -> set[str]:
        modules: set[str] = set()
        front = set(part.uses)
        while front:
            module = front.pop()
            if module in self.waiting and module not in modules:
                modules.add(module)
                front |= self.waiting[module].uses
        return modules

    async def _write(self, part: LibraryFile, verdicts: dict[str, Judgment]) -> None:
        ground = self.snapshot
        for source in (*self.written.values(), *self._support_sources()):
            ground = ground.with_module(read_module(source))
        joined_module = await joined(part, verdicts, self.gate, ground, self.taking.policy)
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


def _own(parts: ModuleParts, name: str) -> set[int]:
    """Return the statements of a function without those of the public functions that it uses."""
    return parts.needed([name], frozenset(parts.public) - {name})


def _sources(parts: ModuleParts, names: Set[str]) -> dict[str, str]:
    """Return functions as the author wrote them, for those of a circle that are not judged yet."""
    return {name: parts.candidate(_own(parts, name))[0] for name in names}


def _texts(verdicts: Mapping[str, Judgment]) -> dict[str, str]:
    return {name: verdict.source for name, verdict in verdicts.items()}


def _missed(parts: ModuleParts, name: str, skipped: set[str], verdicts: Mapping[str, Judgment]) -> list[str]:
    """Return the missing dependencies of a function: another of its circle was rejected."""
    return sorted(parts.uses(name) - skipped - verdicts.keys() - {name})


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
    """Return a place in the library's file, if the judged text still has its lines, else that of the function."""
    if not verdict.fixes and 0 < where.line <= len(places):
        return Place(part.file, places[where.line - 1], where.column)
    return Place(part.file, part.parts.line(verdict.name))
