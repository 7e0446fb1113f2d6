"""Take a library over: each public function is judged with what it needs, and the admitted ones join, module by module.

Nothing that is there is overwritten; what was imported before and is unchanged is passed over, so that an import can
be run again. Each module is one transaction.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from ..gate import CONTEXT, Candidate, Gate
from ..gate.examples.example_text import with_example
from ..problem import Place, Problem
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source
from ..registry.writing import place_function
from ..storage import Store
from .closure import Parts
from .intake import Report, Taking, file_row
from .job import Job, Row
from .joining import joined, plan
from .judges import Judge
from .order import circles, in_order
from .plan import Author, Plan
from .taking import Part, circled, generations

_MOST_GIVEN = 8
Outcome = Literal["joined", "mended", "skipped", "refused"]


@dataclass(slots=True)
class Importer:
    """One import: what it needs of the workspace, and what it has found so far."""

    taking: Taking
    snapshot: Snapshot
    store: Store
    gate: Gate
    judge: Judge
    carry: Callable[[Plan], Awaitable[Plan]]
    tell: Callable[[Row], None]
    report: Report
    written: dict[str, Source] = field(default_factory=dict)
    waiting: dict[str, Part] = field(default_factory=dict)
    circles: dict[str, list[Part]] = field(default_factory=dict)

    async def run(self, parts: Mapping[str, Part], given: Mapping[str, Candidate]) -> None:
        """Judge and write every module, those that others use first."""
        claims = self._claims(parts)
        together = circled(parts)
        self.circles = {name: [parts[one] for one in sorted(others)] for name, others in together.items()}
        for group in generations(parts):
            async with asyncio.TaskGroup() as tasks:
                found = [tasks.create_task(self._judge(part, claims, given)) for part in group]
            for part, task in zip(group, found, strict=True):
                await self._join(part, task.result())

    def _claims(self, parts: Mapping[str, Part]) -> dict[str, str]:
        """Which module of the library has which name: the first one."""
        claims: dict[str, str] = {}
        for part in parts.values():
            for name in part.parts.public:
                claims.setdefault(name, part.module)
        return claims

    async def _judge(self, part: Part, claims: dict[str, str], given: Mapping[str, Candidate]) -> dict[str, Row]:
        """The verdicts on what may join, in the order in which they need one another; the others are told at once."""
        verdicts: dict[str, Row] = {}
        there: set[str] = set()
        uses = {name: part.parts.uses(name) for name in part.parts.public}
        together = circles(uses)
        for name in in_order(uses):
            statements = _own(part.parts, name)
            code, places = part.parts.candidate(statements)
            mark = hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
            known = await self._known(name, mark, part, claims)
            if known == "skipped":
                there.add(name)
                self._told(part, name, "skipped", [])
                continue
            lacking = sorted(uses[name] - there - verdicts.keys() - together[name] - {name})
            if isinstance(known, Problem) or lacking:
                problem = known if isinstance(known, Problem) else _lacking(name, lacking, part)
                self._told(part, name, "refused", [problem.to_json()])
                continue
            unjudged = _sources(part.parts, together[name] - there)
            row = await self._verdict(name, code, part, {**unjudged, **verdicts}, given)
            if _reported(row, statements, places, part, name):
                self._told(part, name, "refused", [*self._round(code, part, name), *row["problems"]])
                continue
            row["mends"] = [*_mapped(part, places), *row["mends"]]
            verdicts[name] = {**row, "imported": {"from": self.report.origin, "hash": mark}}
        return self._together(part, there, verdicts)

    def _together(self, part: Part, there: set[str], verdicts: dict[str, Row]) -> dict[str, Row]:
        """The verdicts without those on functions of whose circle another was refused, which is told."""
        while alone := {name: lacking for name in verdicts if (lacking := _missed(part.parts, name, there, verdicts))}:
            for name, lacking in alone.items():
                del verdicts[name]
                self._told(part, name, "refused", [_lacking(name, lacking, part).to_json()])
        return verdicts

    def _round(self, code: str, part: Part, name: str) -> list[Row]:
        """What stands behind a refusal where a module imports this one too: it was not there yet."""
        words = frozenset(re.findall(r"\w+", code))
        other = next((one for one in self.circles[part.module] if words & {*one.parts.public, _last(one)}), None)
        if other is None:
            return []
        what = f"`{part.file}` and `{other.file}` import each other, and one module joins after another"
        mend = "import again, now that the rest of both is there; functions that need each other go into one file"
        return [Problem("import-each-other", what, Place(part.file, part.parts.line(name)), mend).to_json()]

    async def _verdict(
        self, name: str, code: str, part: Part, verdicts: dict[str, Row], given: Mapping[str, Candidate]
    ) -> Row:
        around = self._around(part, verdicts)
        candidate = given.get(part.module) or Candidate(name, code, part.module, file=part.file)
        (row,) = await self.judge(Job(part.file, self.taking.policy, candidate, around=around))
        if not (row["admitted"] and candidate.examples):
            return row
        kept = replace(candidate, code=_with_examples(candidate, row["source"]), examples=(), exact=True)
        (again,) = await self.judge(Job(part.file, self.taking.policy, kept, around=around))
        return {**again, "mends": row["mends"]} if again["admitted"] and again["agreed"] else row

    def _around(self, part: Part, verdicts: dict[str, Row]) -> tuple[Source, ...]:
        """The library's modules as they have become, and this one as far as it has come."""
        held = self.snapshot.modules.get(part.module)
        text = held.text if held else ""
        for name, row in verdicts.items():
            placed = place_function(text, row["source"], name)
            text = text if isinstance(placed, Problem) else placed
        own = (Source.of(part.module, text, held.path if held else part.path),) if text else ()
        return (*self.written.values(), *self._support_sources(), *own)

    def _support_sources(self) -> list[Source]:
        return [Source.of(one.module, one.text, one.path) for one in self.waiting.values()]

    async def _known(
        self, name: str, mark: str, part: Part, claims: dict[str, str]
    ) -> Literal["skipped"] | Problem | None:
        """Whether the function is there already, as it was imported; or what has its name."""
        where = Place(part.file, part.parts.line(name))
        holder = self.snapshot.functions.get(name)
        if holder is None:
            if claims[name] == part.module:
                return None
            what = f"the library has a `{name}` in the module `{claims[name]}` too, which is taken"
            return Problem("name-clash", what, where, "rename one of the two")
        verdict = await self.store.verdict(holder.body_hash, name) or {}
        if holder.module == part.module and (verdict.get("imported") or {}).get("hash") == mark:
            return "skipped"
        what = f"there is already a `{name}` ({holder.path}:{holder.line}), which is not overwritten"
        mend = f"rename one of the two; or take this text with: toolwright functions edit {name} --file FILE"
        return Problem("name-taken", what, where, mend)

    async def _join(self, part: Part, verdicts: dict[str, Row]) -> None:
        """Write what may join, with the helper modules that it uses before it."""
        if not part.parts.public:
            self.waiting[part.module] = part
            return
        if not verdicts:
            return
        for module in sorted(self._support(part)):
            await self._write(self.waiting.pop(module), {})
        await self._write(part, verdicts)

    def _support(self, part: Part) -> set[str]:
        found: set[str] = set()
        front = set(part.uses)
        while front:
            module = front.pop()
            if module in self.waiting and module not in found:
                found.add(module)
                front |= self.waiting[module].uses
        return found

    async def _write(self, part: Part, verdicts: dict[str, Row]) -> None:
        ground = self.snapshot
        for source in (*self.written.values(), *self._support_sources()):
            ground = ground.with_module(read_module(source))
        found = await joined(part, verdicts, self.gate, ground, self.taking.policy)
        if isinstance(found, Problem):
            self._failed(part, verdicts, found)
            return
        module = {"module": part.module, "path": found.source.path, "version": found.source.version, "written": False}
        if not self.taking.dry_run:
            made = await self.carry(plan(found, self.snapshot, Author(), self.report.origin))
            if made.outcome == "refused":
                problem = Problem("not-written", made.text, Place(part.file), "look at that file, and import again")
                self._failed(part, verdicts, problem)
                return
            module["written"] = True
        self.written[part.module] = found.source
        self.report.modules.append(module)
        for name, row in verdicts.items():
            self._told(part, name, "mended" if row["mends"] else "joined", row["problems"], row)

    def _failed(self, part: Part, verdicts: dict[str, Row], problem: Problem) -> None:
        if not verdicts:
            self.report.files.append(file_row(replace(problem, where=Place(part.file))))
        for name in verdicts:
            self._told(part, name, "refused", [{**problem.to_json(), "path": part.file}])

    def _told(self, part: Part, name: str, outcome: Outcome, problems: list[Row], verdict: Row | None = None) -> None:
        row = {
            "name": name,
            "module": part.module,
            "from": f"{part.file}:{part.parts.line(name)}",
            "outcome": outcome,
            "standing": verdict["standing"] if verdict else "",
            "mends": verdict["mends"] if verdict else [],
            "problems": problems,
        }
        self.report.functions.append(row)
        self.tell(row)


def _with_examples(candidate: Candidate, text: str) -> str:
    """The admitted text with the examples that came beside it in its docstring, where they are kept."""
    for given in candidate.examples[:_MOST_GIVEN]:
        more = with_example(text, candidate.name, given.call, given.expected) if given.call not in text else text
        text = text if isinstance(more, Problem) else more
    return text


def _reported(row: Row, statements: set[int], places: list[int], part: Part, name: str) -> bool:
    """Add to a verdict what else is to be said, at the lines of the library; whether it refuses."""
    _locate(row, places, part, name)
    trouble = [one.to_json() for one in part.troubles(statements)]
    row["problems"] = [*trouble, *_not_told_by(trouble, row["problems"])]
    return bool(trouble) or not row["admitted"]


def _last(part: Part) -> str:
    return part.module.rpartition(".")[2]


def _own(parts: Parts, name: str) -> set[int]:
    """The statements of a function without those of the public ones that it uses."""
    return parts.needed([name], frozenset(parts.public) - {name})


def _sources(parts: Parts, names: Set[str]) -> dict[str, Row]:
    """Functions as the author wrote them, where another of their circle is judged before them."""
    return {name: {"source": parts.candidate(_own(parts, name))[0]} for name in names}


def _missed(parts: Parts, name: str, there: set[str], verdicts: Mapping[str, Row]) -> list[str]:
    """What a function uses and does not get: another of its circle was refused."""
    return sorted(parts.uses(name) - there - verdicts.keys() - {name})


def _lacking(name: str, lacking: list[str], part: Part) -> Problem:
    what = f"`{name}` uses {', '.join(f'`{one}`' for one in lacking)}, which cannot join"
    return Problem("needs-refused", what, Place(part.file, part.parts.line(name)), "mend that function first")


def _mapped(part: Part, places: list[int]) -> list[Row]:
    """What was written otherwise, because `self` is another here."""
    found = [each for line, each in part.adapted.mapped.items() if line in places]
    return [{"code": CONTEXT, "message": said, "diff": diff} for said, diff in found]


def _not_told_by(trouble: list[Row], problems: list[Row]) -> list[Row]:
    """What is not the same again: a foreign name needs a grant too, which would not help."""
    lines = {one["line"] for one in trouble}
    return [one for one in problems if one["line"] not in lines or not one["code"].startswith("needs-")]


def _locate(row: Row, places: list[int], part: Part, name: str) -> None:
    """Name the lines of the library's file, where the text that was judged still has its lines."""
    for problem in row["problems"]:
        line = problem["line"]
        known = not row["mends"] and 0 < line <= len(places)
        problem |= {"path": part.file, "line": places[line - 1] if known else part.parts.line(name)}
        if not known:
            problem["column"] = 0
