"""One thing to be judged, with all that its verdict depends on beside the workspace: a value that travels as JSON.

Here a job becomes the published verdicts, in whichever process it is judged.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..gate import Candidate, Gate, GivenExample, Look, ModuleVerdict, Policy
from ..problem import Place, Problem
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source

Row = dict[str, Any]  # Any: JSON of a verdict, with the `path` of what was judged
_AT_ONCE = 2  # functions of a file that are looked at: other files are judged beside it


@dataclass(frozen=True, slots=True)
class Job:
    """A candidate, or a whole file, or (with neither) a problem that stands for its verdict.

    `path` is what the verdict calls it. `around` are modules that stand beside it, or in the place of those of the
    workspace; one without text is taken away.
    """

    path: str
    policy: Policy = "agent"
    candidate: Candidate | None = None
    file: Source | None = None
    around: tuple[Source, ...] = ()
    problem: Problem | None = None

    def to_json(self) -> Row:
        """The form in which it goes to another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Row) -> "Job":
        """The job that was sent."""
        held, file = data["candidate"], data["file"]
        candidate = None
        if held is not None:
            candidate = Candidate(**{**held, "examples": tuple(GivenExample(**one) for one in held["examples"])})
        return cls(
            data["path"],
            data["policy"],
            candidate,
            Source(**file) if file else None,
            tuple(Source(**one) for one in data["around"]),
        )


async def judged(job: Job, gate: Gate, snapshot: Snapshot) -> list[Row]:
    """The verdict on a candidate, or one for each function of a file."""
    if job.problem is not None:
        return [refusal(job.problem, job.path)]
    for source in job.around:
        snapshot = _with(source, snapshot)
    if job.file is not None:
        return await _of_file(job.file, job, gate, snapshot)
    assert job.candidate is not None
    return [{**(await gate.judge(job.candidate, snapshot, job.policy)).to_json(), "path": job.path}]


def refusal(problem: Problem, path: str, name: str = "", module: str = "") -> Row:
    """The verdict on what the gate need not be asked about."""
    return {
        "name": name,
        "module": module,
        "admitted": False,
        "standing": "",
        "version": "",
        "mends": [],
        "problems": [problem.to_json()],
        "stages": [],
        "source": "",
        "path": path,
    }


def _with(source: Source, snapshot: Snapshot) -> Snapshot:
    held = snapshot.modules.get(source.module)
    if held is not None and (held.path != source.path or not source.text):
        snapshot = snapshot.without_module(source.module)
    return snapshot.with_module(read_module(source)) if source.text else snapshot


async def _of_file(file: Source, job: Job, gate: Gate, snapshot: Snapshot) -> list[Row]:
    """The verdicts on a file, with what a save of it would be told behind its back."""
    verdict = await gate.judge_module(file, snapshot, job.policy)
    ground = snapshot.with_module(verdict.reading)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def look(name: str) -> Look:
        async with turn:
            return await gate.look_closer(name, verdict, ground, job.policy)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(look(name)) for name, _ in verdict.standings]
    return _of_module(verdict, {task.result().name: task.result() for task in tasks}, job.path)


def _of_module(verdict: ModuleVerdict, looks: Mapping[str, Look], path: str) -> list[Row]:
    """A verdict for each function of a module: its own problems, and those of the whole file."""
    own = verdict.reading.source
    whole = verdict.to_json()
    spans = {each.name: (each.line, each.end_line) for each in verdict.reading.functions}
    if not spans:
        refused = [one for one in verdict.problems if one.severity == "refuses"]
        return [{**refusal(one, path, module=own.module), "problems": [_shown(one, path, own.path)]} for one in refused]
    standings = dict(verdict.standings)  # of a module that cannot be imported, no function has one
    rows = []
    for name, span in spans.items():
        look = looks.get(name, Look(name))
        problems = [one for one in verdict.problems if not standings or _concerns(one, span, spans)]
        problems += look.problems
        refused_here = any(problem.severity == "refuses" for problem in problems)
        rows.append(
            {
                "module": own.module,
                "stages": [*whole["stages"], *look.stages_json()],
                "path": path,
                "name": name,
                "admitted": not refused_here,
                "standing": "" if refused_here else standings[name],
                "version": own.version,
                "mends": [],
                "problems": [_shown(problem, path, own.path) for problem in problems],
                "source": own.text,
            }
        )
    return rows


def _shown(problem: Problem, path: str, own: str) -> Row:
    """A problem that names the file as it was given, and not as it would be called in a workspace."""
    return {**problem.to_json(), **({"path": path} if problem.where.path == own else {})}


def _concerns(problem: Problem, span: tuple[int, int], spans: dict[str, tuple[int, int]]) -> bool:
    line = problem.where.line
    if span[0] <= line <= span[1]:
        return True
    return not any(first <= line <= last for first, last in spans.values())


def unreadable(path: str, what: str) -> Job:
    """A file that cannot be judged, as a job with its refusal."""
    return Job(path, problem=Problem("unreadable", what, Place(path), "check the file and its encoding, UTF-8"))
