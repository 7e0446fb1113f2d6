"""The stage "import": imports the module in a worker, in the form in which it would be written, with its neighbors.

The tools of all stages that use a worker are also here. What a worker reports is untrusted, and is shown fenced.
"""

import asyncio
import re
import shlex
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from agent_core.access.grants import NOTHING, FileRequests, Grants
from agent_core.access.grants.content import runnable
from agent_core.access.grants.permit import raised
from agent_core.access.grants.value import modules_of_workspace
from agent_core.access.packages.projects import project_of
from agent_core.base.offload import aside
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, replace
from agent_core.base.syntax import FLAWS, odd_in_name
from agent_core.base.untrusted import fence
from agent_core.registry import docstring
from agent_core.registry.depends import modules_of
from agent_core.registry.module_edits import CANDIDATE
from agent_core.registry.schema import read_module
from agent_core.registry.source import FOLDER, ModuleSource
from agent_core.registry.validation import check_schema, schemas_in
from sandbox import (
    Access,
    Attempt,
    Attempts,
    Failure,
    Job,
    Killed,
    Limits,
    ModuleImport,
    Outcome,
    Raised,
    Refused,
    RequestRefused,
    Returned,
    SchemaRequest,
    TimedOut,
    Work,
)
from sandbox.access import NOTHING as NO_ACCESS
from sandbox.wire.definitions import with_definitions
from sandbox.wire.requests import without_handler

from .capability import imported_at_the_top, needs_of_text
from .clones import Alike
from .draft import Draft, Finding
from .uses import ADVICE

if TYPE_CHECKING:
    from agent_core.registry.function import Function, ModuleReading
    from agent_core.registry.registry import Snapshot
    from sandbox.code import Modules
    from sandbox.wire.requests import RequestHandler

    from ..search import FunctionSearch
    from .call_arguments import Arguments
    from .draft import Way
    from .reader import DescriptionReader

STAGE = "import"
EACH_S = 0.25  # timeout for one of many calls
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_UNAVAILABLE = re.compile(
    r"(?:ModuleNotFoundError: No module named|ImportError: cannot import name '(\w+)' from) 'functions\.?([\w.]*)'.*"
)
_LOOKS = frozenset({"file_open", "file_stat", "file_list"})
_MOST_WANTED = 1_000
_BUSY = (
    0.5  # share of the time limit, or seconds, of processor time: with more, a call was not starved
)


class Workers(Protocol):
    """The part of the sandbox interface that the gate needs."""

    async def run(self, job: Job[Work]) -> Outcome:
        """Run a job in a fresh worker."""

    async def attempt(self, job: Job[Attempts]) -> tuple[Outcome | None, ...]:
        """Run many attempts in one worker, as many as it can finish. The results are advice."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The terms for judging a candidate: its grants, its package paths, and the functions that need a grant.

    `approval_mode` is how the user is asked for missing grants. `files` returns a handler of an example's requests for
    granted files, where a worker cannot read them directly. `served` is the code that runs with access to files.
    """

    grants: Grants = NOTHING
    access: Access = NO_ACCESS
    guarded: frozenset[str] = frozenset()
    approval_mode: "Way" = "absent"
    files: Callable[[], FileRequests] | None = None
    served: "Modules | None" = None


UNGRANTED: Final = Granted()


@dataclass(frozen=True, slots=True)
class TrialTools:
    """The tools to try out code: the workers with their access, and the indexes of existing functions."""

    sandbox: Workers
    limits: Limits
    alike: Alike = field(default_factory=Alike)
    access: Access = NO_ACCESS
    reader: "DescriptionReader | None" = None
    finder: "FunctionSearch | None" = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # for work that must run alone
    files: Callable[[], FileRequests] | None = None  # as in `Granted`

    def granted(self, granted: Granted) -> "TrialTools":
        """Return these tools with the granted packages, time and memory, but without access to the outside world."""
        access = replace(granted.access, readable=(), writable=(), home="")
        return replace(self, access=access, limits=raised(self.limits, granted.grants))

    def reading(self, granted: Granted) -> "TrialTools":
        """Return tools that can also reach the granted files."""
        return replace(self.granted(granted), access=granted.access, files=granted.files)

    async def run(
        self, modules: "Modules", module: str, work: Work, handler: "RequestHandler | None" = None
    ) -> Outcome:
        """Run one piece of work in a fresh worker; the handler answers its requests through `self`.

        If it was stopped but got little processor time, it runs again, alone and with twice the time.
        """
        job = Job(modules, module, work, self.limits, self.access, handler)
        outcome = await self.sandbox.run(job)
        share = _BUSY * outcome.limit_s if isinstance(outcome, TimedOut) else _BUSY
        if not isinstance(outcome, TimedOut | Killed) or (
            outcome.cpu_s is not None and outcome.cpu_s >= share
        ):
            return outcome
        async with self.turn:
            return await self.sandbox.run(
                replace(job, limits=replace(self.limits, wall_s=2 * self.limits.wall_s))
            )

    async def call_all(
        self,
        function: "Function",
        modules: "Modules",
        calls: "Sequence[Arguments]",
        wall_s: float,
        each_s: float = EACH_S,
        *,
        is_patient: bool = False,
    ) -> tuple[Outcome | None, ...]:
        """Call a function several times in one worker within a time limit; None for calls that were not reached."""
        work = Attempts(
            function.name, [Attempt(call) for call in calls], each_s, is_patient=is_patient
        )
        return await self.attempt(function, modules, work, wall_s) if calls else ()

    async def attempt(
        self, function: "Function", modules: "Modules", attempts: Attempts, wall_s: float
    ) -> tuple[Outcome | None, ...]:
        """Run many attempts in one worker within a time limit. The results are advice."""
        limits = replace(self.limits, wall_s=wall_s)
        own = await aside(len(modules[function.module].text), runnable, function, modules)
        return await self.sandbox.attempt(Job(own, function.module, attempts, limits, self.access))


async def load(draft: Draft, trial: TrialTools) -> Draft:
    """Return the draft with the module it would become, after importing that module in a worker."""
    if draft.function is None:
        return draft.skip("there is no function to import")
    if draft.has(
        "bad-name",
        "bad-module",
        "name-taken",
        "several-functions",
        "star-parameter",
        "top-level-statement",
        *FLAWS,
    ):
        return draft.skip(
            "its name, its shape, a statement or a character of it has no place in a module"
        )
    around, text = draft.around, await aside(draft.size, lambda: draft.placed)
    # What asks for its package when it is called may import it there.
    is_due = draft.has("needs-packages") or imported_at_the_top(draft.text, draft.rules.packages)
    lacking = "it needs the grant `packages`" if is_due and draft.shows("needs-packages") else ""
    if isinstance(text, Problem):
        where = (
            replace(text.where, path=draft.candidate.path)
            if text.where.path == CANDIDATE
            else text.where
        )
        return draft.with_problems([replace(text, where=where)])
    if len(text.encode("utf-8")) > draft.rules.module_bytes:
        message = f"with this function, the module `{draft.candidate.module}` would be larger than it may be"
        return draft.with_findings(
            STAGE, [Finding("module-too-long", message, "choose another module_name")]
        )
    source = ModuleSource.of(draft.candidate.module, text, around.path if around else "")
    reading = await aside(len(text), read_module, source)
    if not reading.parsed:
        return draft.with_problems(reading.problems)
    return (
        replace(draft, reading=reading).skip(lacking)
        if lacking
        else await _import_draft(draft, reading, trial)
    )


async def _import_draft(draft: Draft, reading: "ModuleReading", trial_tools: TrialTools) -> Draft:
    """Return the draft after an import; a library's function may need a package that a call asks for."""
    function = reading.function(draft.candidate.name)
    own = function.line if function else 0
    known = len(reading.problems)
    reading, problems = await try_module(reading, draft.snapshot, trial_tools, function)
    package = await aside(
        draft.size, missing_package, reading, problems, draft.snapshot, draft.rules.packages
    )
    if package and draft.policy == "import":
        message = f"importing `{draft.candidate.module}` needs the grant `packages` ({package})"
        needed = Finding("needs-packages", message, ADVICE["packages"], draft.line)
        return (
            replace(draft, reading=reading)
            .with_findings("capability", [needed])
            .skip(f"it needs `{package}`")
        )
    problems += tuple(p for p in reading.problems[known:] if p.where.line == own)  # not of others
    trial = None if problems else draft.snapshot.with_module(reading)
    # Lines only count if the candidate is the whole module.
    is_part = bool((draft.around is not None and draft.around.text.strip()) or draft.fixes)
    above, path = draft.text[: -len(draft.text.lstrip())].count("\n"), draft.candidate.path
    lines = [
        0 if is_part or not problem.where.line else problem.where.line + above
        for problem in problems
    ]
    placed = [
        replace(problem, where=Place(path, line))
        for problem, line in zip(problems, lines, strict=True)
    ]
    return replace(draft, reading=reading, trial=trial).with_problems(placed)


class _Wanted:
    """The handler of an import's requests, which grants nothing and keeps what the import looked for."""

    def __init__(self) -> None:
        self._reaches: dict[
            str, tuple[str, str]
        ] = {}  # by a text of the error: the verb, and the flag of a grant

    async def __call__(
        self, name: str, arguments: dict[str, Any]
    ) -> Any:  # Any: a value of `values`
        """Answer that a file is as the kernel shows it; refuse the rest."""
        if name in _LOOKS and len(self._reaches) < _MOST_WANTED:
            is_read = name != "file_open" or arguments.get("mode") == "r"
            verb, flag = ("read", "--read") if is_read else ("write", "--write")
            self._reaches[str(arguments.get("path"))] = verb, flag
        if name == "fetch":
            place = urlsplit(str(arguments.get("url"))).hostname or ""
            self._reaches[place] = "fetch from", "--network"
            raise RequestRefused(f"nothing is fetched while a file is imported: {place}")
        return await without_handler(name, arguments)

    def explained(self, problem: Problem, outcome: Outcome, reading: "ModuleReading") -> Problem:
        """Return the problem of a failed import, as the lack of a grant if its error is about what it looked for."""
        error = outcome.failure.message if isinstance(outcome, Raised) else ""
        item = next((item for item in reversed(self._reaches) if item and item in error), "")
        if not item or odd_in_name(item):
            return problem
        verb, flag = self._reaches[item]
        name = reading.functions[0].name if reading.functions else "NAME"
        at = f" at {problem.message.rpartition(' at ')[2]}" if " at `" in problem.message else ""
        message = f"importing it may not {verb} {fence(item)}: nothing is granted while a file is imported{at}"
        how = f"knapper functions grant {name} {flag} {shlex.quote(item)}"
        return replace(
            problem,
            message=message,
            fix=f"do it in the function; then a call asks, or grant it at a terminal: {how}",
        )


async def try_module(
    reading: "ModuleReading",
    snapshot: "Snapshot",
    trial: TrialTools,
    only: "Function | None" = None,
) -> tuple["ModuleReading", tuple[Problem, ...]]:
    """Return a module after an import in a worker, and why it could not be imported.

    The worker resolves types that the text does not determine. A function whose types have no schema is left out, and
    the problem is added to those of the reading. With `only`, the module is imported as it is for that function. Others
    may need what is missing: then their types stay as they were.
    """
    after = snapshot.with_module(reading)
    if reading.leans:
        around = modules_of(reading.source.module, after).items()
        leans = tuple(
            (name, source.version) for name, source in around if name != reading.source.module
        )
        reading = replace(reading, leans=leans)
    modules = (
        await aside(len(reading.source.text), runnable, only, after.modules)
        if only
        else after.modules
    )
    unresolved = [function.name for function in reading.functions if function.unresolved]
    if only is not None and modules is not after.modules:
        others = [
            function
            for function in reading.functions
            if function.name != only.name and function.unresolved
        ]
        reading = await with_types(reading, others, snapshot, trial)
        unresolved = [only.name] if only.unresolved else []
    work = SchemaRequest(unresolved) if unresolved else ModuleImport()
    wanted = _Wanted()
    outcome = await trial.run(modules, reading.source.module, work, wanted)
    if refusal := import_problem(outcome, Place(reading.source.path), after):
        return reading, (wanted.explained(refusal, outcome, reading),)
    return resolve(reading, outcome.value, unresolved) if isinstance(
        outcome, Returned
    ) else reading, ()


async def with_types(
    reading: "ModuleReading",
    functions: "Sequence[Function]",
    snapshot: "Snapshot",
    trial: TrialTools,
) -> "ModuleReading":
    """Return a module's reading with the types of these functions, or with those that they had before."""
    names = [function.name for function in functions if function.unresolved]
    if not names:
        return reading
    after = snapshot.with_module(reading).modules
    modules = await aside(len(reading.source.text), runnable, functions[0], after, *functions[1:])
    outcome = await trial.run(modules, reading.source.module, SchemaRequest(names), _Wanted())
    if isinstance(outcome, Returned):
        return resolve(reading, outcome.value, names)
    before = snapshot.readings.get(reading.source.module)
    known = {function.name: function for function in before.functions} if before else {}
    functions = tuple(
        replace(function, parameters=known[function.name].parameters)
        if function.name in names and function.name in known
        else function
        for function in reading.functions
    )
    return replace(reading, functions=functions)


def missing_package(
    reading: "ModuleReading",
    problems: tuple[Problem, ...],
    snapshot: "Snapshot",
    listed: tuple[str, ...],
) -> str:
    """Return the package that is the only reason for a failed import, if the module needs it; otherwise an empty text.

    The user may grant it.
    """
    match = _NO_MODULE.search(problems[0].message) if len(problems) == 1 else None
    if match is None:
        return ""
    after = snapshot.with_module(reading)
    known, project = (*listed, *sorted(modules_of_workspace(after))), project_of(match[1])
    texts = [source.text for source in modules_of(reading.source.module, after).values()]
    return project if any(project in needs_of_text(text, known).packages for text in texts) else ""


def import_problem(outcome: Outcome, known_place: Place, snapshot: "Snapshot") -> Problem | None:
    """Return why a module could not be imported together with those of a snapshot, or None if it could."""
    match outcome:
        case Returned():
            return None
        case Raised(failure=failure):
            frame = next(
                (
                    candidate
                    for candidate in reversed(failure.frames)
                    if candidate.path == known_place.path
                ),
                None,
            )
            place = Place(known_place.path, frame.line) if frame else known_place
            error = fence(f"{failure.type}: {failure.message}")
            at = f" at {fence(frame.source.strip(), 120)}" if frame else ""
            fix = _fix_of(failure, known_place.path, snapshot)
            return Problem("import-fails", f"importing it raised {error}{at}", place, fix)
        case TimedOut(limit_s=limit_s):
            message = f"importing it did not end within {limit_s:g} s"
            return Problem(
                "import-hangs",
                message,
                known_place,
                "move what takes long from the top level into the function",
            )
        case Refused(reason=reason):  # nothing ran; the reason says what to do
            return Problem(
                "import-fails", f"it could not be imported: {fence(reason)}", known_place
            )
        case Killed(reason=reason):
            fix = "keep the top level to imports, constants, classes and functions"
            return Problem(
                "import-fails", f"importing it was stopped: {fence(reason)}", known_place, fix
            )


def _fix_of(failure: Failure, path: str, snapshot: "Snapshot") -> str:
    """Return what to do about an import of the file at `path` that failed, together with the modules of a snapshot."""
    last, error = (
        failure.frames[-1] if failure.frames else None,
        f"{failure.type}: {failure.message}",
    )
    if failure.type == "SyntaxError" and last and last.path != path:
        return f"fix {last.path} first"
    if last and failure.message.endswith(f"({path}, line {last.line})"):  # it was not compiled
        return "fix that line" if failure.type == "SyntaxError" else "split it into smaller parts"
    if unavailable := _UNAVAILABLE.fullmatch(error):
        name, module = unavailable[1], unavailable[2].replace(".", "/")
        places = [place for place in (module, f"{module}/{name}".lstrip("/")) if place]
        files = [f"{FOLDER}/{place}{end}" for place in places for end in (".py", "/__init__.py")]
        if rejected := next((file for file in files if file in snapshot.rejections), ""):
            return f"fix {rejected} first, which is rejected"
    missing = _NO_MODULE.fullmatch(error)
    if missing and missing[1] in modules_of_workspace(snapshot):
        return (
            f"a file beside it is part of `functions`: write `from functions import {missing[1]}`"
        )
    return "fix what runs at the top level"


def resolve(
    reading: "ModuleReading", claimed: Any, names: Collection[str]
) -> "ModuleReading":  # Any: a worker's claim
    """Return the reading with the schemas that a worker returned for these functions, each of them checked.

    A function without one is left out with its reason, as if the text had shown it.
    """
    problems: list[Problem] = []
    functions: list[Function] = []
    for function in reading.functions:
        answer = claimed.get(function.name) if isinstance(claimed, dict) else None
        resolved = with_schemas(function, answer) if function.name in names else function
        if isinstance(resolved, Problem):
            problems.append(resolved)
        else:
            functions.append(resolved)
    return replace(reading, functions=tuple(functions), problems=(*reading.problems, *problems))


def with_schemas(
    function: "Function", answer: Any
) -> "Function | Problem":  # Any: a worker's claim
    """Return the function with the worker's schemas for the types that its text left open."""
    where = Place(function.path, function.line)
    properties = dict(function.parameters["properties"])
    definitions = dict(function.parameters.get("$defs", {}))
    required = [*function.parameters["required"]]
    for name in function.unresolved:
        schema = answer.get(name) if isinstance(answer, dict) else answer
        if isinstance(schema, str) and name not in required and isinstance(answer, dict):
            if name not in (function.rest, function.extra):
                del properties[name]  # no model can pass it, and it has a default
            continue
        if check_schema(schema, where) or not isinstance(schema, dict):
            why = f": {fence(schema, 200)}" if isinstance(schema, str) else ""
            message = f"the type of parameter `{name}` of `{function.name}` has no JSON Schema{why}"
            return Problem(
                "inexpressible-type",
                message,
                where,
                "take text, numbers, lists, dictionaries or a pydantic model",
            )
        _describe_fields(schema)
        bare = with_definitions(schema, definitions)
        properties[name] = bare | properties[name]
        if name in (function.rest, function.extra) and (
            schema.get("minItems") or schema.get("required")
        ):
            required.append(name)  # a type after a star, or in `Unpack[…]`, can need some
    parameters = function.parameters | {"properties": properties, "required": required}
    return replace(
        function, parameters=parameters | ({"$defs": definitions} if definitions else {})
    )


def _describe_fields(schema: Any) -> None:  # Any: JSON Schema
    """Give the fields of each class what its docstring says of them; the class keeps the first paragraph."""
    for node in schemas_in(schema):
        properties, text = node.get("properties"), node.get("description")
        if isinstance(properties, dict) and isinstance(text, str):
            described = docstring.read(text)
            del node["description"]
            node |= (
                {"description": summary} if (summary := described.text.split("\n\n", 1)[0]) else {}
            )
            for name, words in described.parameters.items():
                if isinstance(properties.get(name), dict):
                    properties[name].setdefault("description", words)
