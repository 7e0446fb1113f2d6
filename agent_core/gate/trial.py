"""Stage 7, import: the module as it would be written is imported in a worker, with its neighbours as they are.

Here are also the means that every stage in a worker uses. What a worker says is a claim, shown fenced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from sandbox import Access, Attempt, Evaluation, Killed, Limits, Outcome, Raised, Refused, Returned, Then, TimedOut
from sandbox.access import NOTHING as NO_ACCESS
from sandbox.code import Modules

from ..characters import FLAWS
from ..grants import NOTHING, Grants
from ..grants.permit import raised
from ..problem import Place, Problem
from ..registry.function import Function, Reading
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source
from ..registry.validation import check_schema
from ..registry.writing import CANDIDATE, place_function
from ..untrusted import fence
from .alike.index import Alike
from .draft import Draft, Finding
from .grants import Way

STAGE = "import"


class Workers(Protocol):
    """What the gate needs of the sandbox, or of whatever stands in front of it."""

    async def load(self, modules: Modules, module: str, *, limits: Limits, access: Access = ...) -> Outcome:
        """Import a module in a fresh worker."""

    async def describe(
        self, modules: Modules, module: str, functions: Sequence[str], *, limits: Limits, access: Access = ...
    ) -> Outcome:
        """Import a module and ask for the schemas that syntax cannot give."""

    async def evaluate(
        self, modules: Modules, module: str, evaluation: Evaluation, *, limits: Limits, access: Access = ...
    ) -> Outcome:
        """Run one example."""

    async def attempt(  # noqa: PLR0913 - as the sandbox's own
        self,
        modules: Modules,
        module: str,
        function: str,
        attempts: Sequence[Attempt],
        *,
        each_s: float,
        limits: Limits,
        then: Then | None = None,
        access: Access = ...,
    ) -> tuple[Outcome | None, ...]:
        """Try many things in one worker, as far as it goes: advice."""


@dataclass(frozen=True, slots=True)
class Granted:
    """What a candidate is judged with: its grants, where its packages lie, who may be called by grant alone.

    And how a human comes to be asked for what it lacks.
    """

    grants: Grants = NOTHING
    access: Access = NO_ACCESS
    guarded: frozenset[str] = frozenset()
    way: Way = "none"


UNGRANTED: Final = Granted()


@dataclass(frozen=True, slots=True)
class Bench:
    """The means of trying code out: workers, what each may use, and the index of what is there already."""

    sandbox: Workers
    limits: Limits
    alike: Alike = field(default_factory=Alike)

    def granted(self, granted: Granted) -> "Bench":
        """The same with the packages, the time and the memory that were granted; the world stays shut."""
        access = replace(granted.access, readable=(), writable=(), home="")
        sandbox = self.sandbox if access == NO_ACCESS else _With(self.sandbox, access)
        return replace(self, sandbox=sandbox, limits=raised(self.limits, granted.grants))


@dataclass(frozen=True, slots=True)
class _With:
    """Workers that see the packages of one candidate."""

    workers: Workers
    own: Access

    async def load(self, modules: Modules, module: str, *, limits: Limits, access: Access = NO_ACCESS) -> Outcome:
        return await self.workers.load(modules, module, limits=limits, access=self.own)

    async def describe(
        self, modules: Modules, module: str, functions: Sequence[str], *, limits: Limits, access: Access = NO_ACCESS
    ) -> Outcome:
        return await self.workers.describe(modules, module, functions, limits=limits, access=self.own)

    async def evaluate(
        self, modules: Modules, module: str, evaluation: Evaluation, *, limits: Limits, access: Access = NO_ACCESS
    ) -> Outcome:
        return await self.workers.evaluate(modules, module, evaluation, limits=limits, access=self.own)

    async def attempt(  # noqa: PLR0913 - as the sandbox's own
        self,
        modules: Modules,
        module: str,
        function: str,
        attempts: Sequence[Attempt],
        *,
        each_s: float,
        limits: Limits,
        then: Then | None = None,
        access: Access = NO_ACCESS,
    ) -> tuple[Outcome | None, ...]:
        return await self.workers.attempt(
            modules, module, function, attempts, each_s=each_s, limits=limits, then=then, access=self.own
        )


async def load(draft: Draft, bench: Bench) -> Draft:
    """The draft with the module it would become, once that has been imported in a worker."""
    blocked = _blocked(draft)
    if blocked:
        return draft.skip(blocked)
    lacking = _lacking(draft)
    around = draft.snapshot.modules.get(draft.candidate.module)
    text = placed(draft, around)
    if isinstance(text, Problem):
        where = replace(text.where, path=draft.candidate.path) if text.where.path == CANDIDATE else text.where
        return draft.with_problems([replace(text, where=where)])
    if len(text.encode("utf-8")) > draft.rules.module_bytes:
        what = f"with this function, the module `{draft.candidate.module}` would be larger than it may be"
        return draft.with_findings(STAGE, [Finding("module-too-long", what, "choose another module_name")])
    reading = read_module(Source.of(draft.candidate.module, text, around.path if around else ""))
    if not reading.parsed:
        return draft.with_problems(reading.problems)
    if lacking:
        return replace(draft, reading=reading).skip(lacking)
    reading, problems = await try_module(reading, draft.snapshot, bench)
    trial = None if problems else draft.snapshot.with_module(reading)
    found = [replace(one, where=_where(draft, around, one.where)) for one in problems]
    return replace(draft, reading=reading, trial=trial).with_problems(found)


def _where(draft: Draft, around: Source | None, where: Place) -> Place:
    """A place of the module as one of the candidate: with its line, where the candidate is all of the module."""
    path = draft.candidate.path
    if around is not None or draft.mends or not where.line:
        return Place(path)
    return Place(path, where.line + draft.text[: -len(draft.text.lstrip())].count("\n"))


def placed(draft: Draft, around: Source | None) -> str | Problem:
    """The text of the module with the candidate in it, or why it has no place there."""
    candidate = draft.candidate
    if around is None:
        return place_function("", draft.text, candidate.name)
    return place_function(around.text, draft.text, candidate.name, path=around.path)


def _blocked(draft: Draft) -> str:
    if draft.function is None:
        return "there is no function to import"
    if draft.has("bad-name", "bad-module", "name-taken", "several-functions", "star-parameter"):
        return "its name or shape has no place in a module"
    if draft.has(*FLAWS):
        return "its text does not read as it runs"
    return ""


def _lacking(draft: Draft) -> str:
    grants = sorted({one.code.removeprefix("needs-") for one in draft.problems if one.code == "needs-packages"})
    return f"it needs the grant {', '.join(f'`{grant}`' for grant in grants)}" if grants else ""


async def try_module(reading: Reading, snapshot: Snapshot, bench: Bench) -> tuple[Reading, tuple[Problem, ...]]:
    """Import a module in a worker, and have it resolve the types that its text does not decide."""
    modules = snapshot.with_module(reading).modules
    where = Place(reading.source.path)
    unresolved = [function for function in reading.functions if function.unresolved]
    if not unresolved:
        outcome = await bench.sandbox.load(modules, reading.source.module, limits=bench.limits)
        refusal = import_problem(outcome, where)
        return reading, (refusal,) if refusal else ()
    names = [function.name for function in unresolved]
    outcome = await bench.sandbox.describe(modules, reading.source.module, names, limits=bench.limits)
    refusal = import_problem(outcome, where)
    if refusal or not isinstance(outcome, Returned):
        return reading, (refusal,) if refusal else ()
    return resolve(reading, outcome.value)


def import_problem(outcome: Outcome, where: Place) -> Problem | None:
    """Why a module could not be imported, or None if it could."""
    match outcome:
        case Returned():
            return None
        case Raised(failure=failure):
            frame = next((one for one in reversed(failure.frames) if one.path == where.path), None)
            place = Place(where.path, frame.line) if frame else where
            error = fence(f"{failure.type}: {failure.message}")
            at = f" at {fence(frame.source.strip(), 120)}" if frame else ""
            return Problem("import-fails", f"importing it raised {error}{at}", place, "mend what runs at the top level")
        case TimedOut(limit_s=limit_s):
            what = f"importing it did not end within {limit_s:g} s"
            return Problem("import-hangs", what, where, "move what takes long from the top level into the function")
        case Killed(reason=reason) | Refused(reason=reason):
            mend = "keep the top level to imports, constants, classes and functions"
            return Problem("import-fails", f"importing it was stopped: {fence(reason)}", where, mend)


def resolve(reading: Reading, claimed: Any) -> tuple[Reading, tuple[Problem, ...]]:  # Any: a worker's claim
    """The reading with the schemas that a worker gave, each checked here."""
    problems: list[Problem] = []
    found: list[Function] = []
    for function in reading.functions:
        answer = claimed.get(function.name) if isinstance(claimed, dict) else None
        resolved = with_schemas(function, answer) if function.unresolved else function
        if isinstance(resolved, Problem):
            problems.append(resolved)
        else:
            found.append(resolved)
    return replace(reading, functions=tuple(found)), tuple(problems)


def with_schemas(function: Function, answer: Any) -> Function | Problem:  # Any: a worker's claim
    """The function with the worker's schemas in place of what its text left open."""
    where = Place(function.path, function.line)
    properties = dict(function.parameters["properties"])
    definitions = dict(function.parameters.get("$defs", {}))
    for name in function.unresolved:
        schema = answer.get(name) if isinstance(answer, dict) else None
        wrong = check_schema(schema, where)
        if wrong or not isinstance(schema, dict):
            what = f"the type of parameter `{name}` of `{function.name}` has no JSON Schema"
            return Problem(
                "inexpressible-type", what, where, "take text, numbers, lists, dictionaries or a pydantic model"
            )
        definitions |= schema.get("$defs", {})
        bare = {key: value for key, value in schema.items() if key != "$defs"}
        properties[name] = bare | properties[name]
    parameters = function.parameters | {"properties": properties}
    return replace(function, parameters=parameters | ({"$defs": definitions} if definitions else {}))
