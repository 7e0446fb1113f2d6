"""One item to be judged, with all that its verdict depends on apart from the workspace: a value that travels as JSON.

Here a job becomes the published verdicts, in whichever process it is judged.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from agent_core.base.json_form import to_json
from agent_core.base.problem import Place, Problem
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource

from ..gate import Candidate, Gate, GivenExample, Look, ModuleVerdict, Policy
from ..gate.trial import UNGRANTED, Granted
from .judgment import Judgment

_AT_ONCE = 2  # functions of a file that are looked at: other files are judged in parallel


@dataclass(frozen=True, slots=True)
class ReviewJob:
    """A candidate, or a whole file, or (with neither) a problem that stands for its verdict.

    `path` is what the verdict calls it. `around` are modules next to it, or in the place of those of the
    workspace; one without text is taken away. `is_installed` says that the text is that of a file of the workspace,
    `granted` is what it is judged with; `is_read` asks the reader about it.
    """

    path: str
    policy: Policy = "agent"
    candidate: Candidate | None = None
    file: ModuleSource | None = None
    around: tuple[ModuleSource, ...] = ()
    problem: Problem | None = None
    is_installed: bool = False
    granted: Granted = UNGRANTED
    is_read: bool = False

    @property
    def text(self) -> str:
        """The text that is judged."""
        return self.candidate.code if self.candidate else self.file.text if self.file else ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the form in which the job is sent to another process, which knows of no grants and has no reader."""
        data = asdict(self)
        del data["granted"], data["is_read"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ReviewJob":
        """Return the job that was sent."""
        candidate_data, file = data["candidate"], data["file"]
        candidate = None
        if candidate_data is not None:
            candidate = Candidate(
                **{
                    **candidate_data,
                    "examples": tuple(GivenExample(**example) for example in candidate_data["examples"]),
                    "helpers": tuple(candidate_data["helpers"]),
                }
            )
        return cls(
            data["path"],
            data["policy"],
            candidate,
            ModuleSource(**file) if file else None,
            tuple(ModuleSource(**source) for source in data["around"]),
            is_installed=data["is_installed"],
        )


async def judged(job: ReviewJob, gate: Gate, snapshot: Snapshot) -> list[Judgment]:
    """Return the verdict on a candidate, or one for each function of a file."""
    if job.problem is not None:
        return [refusal(job.problem, job.path)]
    if job.is_installed:  # else it is not there yet, and nothing can be granted to it
        job = replace(job, granted=replace(job.granted, approval_mode="calling"))
    for source in job.around:
        snapshot = _with(source, snapshot)
    if job.file is not None:
        return await _of_file(job.file, job, gate, snapshot)
    assert job.candidate is not None
    verdict = await gate.judge(job.candidate, snapshot, job.policy, granted=job.granted, reading=job.is_read)
    return [replace(Judgment.of(verdict), path=job.path)]


def refusal(problem: Problem, path: str, name: str = "", module: str = "") -> Judgment:
    """Return the verdict for a problem that needs no judging by the gate."""
    nothing = {"standing": "", "version": "", "fixes": [], "problems": [problem.to_json()], "stages": [], "source": ""}
    return Judgment.from_json({"name": name, "module": module, "admitted": False, **nothing, "path": path})


def _with(source: ModuleSource, snapshot: Snapshot) -> Snapshot:
    existing = snapshot.modules.get(source.module)
    if existing is not None and (existing.path != source.path or not source.text):
        snapshot = snapshot.without_module(source.module)
    return snapshot.with_module(_reading(source)) if source.text else snapshot


@lru_cache(maxsize=64)
def _reading(source: ModuleSource) -> ModuleReading:
    """Return the reading of a module that stands next to many candidates."""
    return read_module(source)


async def _of_file(source: ModuleSource, job: ReviewJob, gate: Gate, snapshot: Snapshot) -> list[Judgment]:
    """Return the verdicts on a file, including those that the background review of a save would report."""
    verdict = await gate.judge_module(source, snapshot, job.policy, granted=job.granted)
    ground = snapshot.with_module(verdict.reading)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def look(name: str) -> Look:
        async with turn:
            return await gate.look_closer(name, verdict, ground, job.granted, reading=job.is_read)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(look(name)) for name, _ in verdict.standings]
    return _of_module(verdict, {task.result().name: task.result() for task in tasks}, job.path)


def _of_module(verdict: ModuleVerdict, looks: Mapping[str, Look], path: str) -> list[Judgment]:
    """Return a verdict for each function of a module: its own problems, and those of the whole file."""
    own = verdict.reading.source
    spans = {function.name: (function.line, function.end_line) for function in verdict.reading.functions}
    refusals = [problem for problem in verdict.problems if problem.severity == "refuses"]
    if not spans:
        return [refusal(_shown(problem, path, own.path), path, module=own.module) for problem in refusals]
    standings = dict(verdict.standings)  # of a module that cannot be imported, no function has one
    rows = []
    for name, span in spans.items():
        look = looks.get(name, Look(name))
        problems = [*(problem for problem in verdict.problems if _concerns(problem, span, spans)), *look.problems]
        refused_here = any(problem.severity == "refuses" for problem in problems)
        if name not in standings and not refused_here:
            problems, refused_here = [*problems, *refusals], True  # what another function does keeps the file out
        document = {
            "module": own.module,
            "stages": to_json((*verdict.stages, *look.stages)),
            "path": path,
            "name": name,
            "admitted": not refused_here,
            "standing": "" if refused_here else standings[name],
            "version": own.version,
            "fixes": [],
            "problems": [_shown(problem, path, own.path).to_json() for problem in problems],
            "source": own.text,
            **({"reader": to_json(look.answer)} if look.answer else {}),
        }
        rows.append(Judgment.from_json(document))
    return rows


def _shown(problem: Problem, path: str, own: str) -> Problem:
    """Return a problem that names the file as given, not as it would be called in a workspace."""
    return replace(problem, where=replace(problem.where, path=path)) if problem.where.path == own else problem


def _concerns(problem: Problem, span: tuple[int, int], spans: dict[str, tuple[int, int]]) -> bool:
    line = problem.where.line
    if span[0] <= line <= span[1]:
        return True
    return not any(first <= line <= last for first, last in spans.values())


def unreadable(path: str, reason: str) -> ReviewJob:
    """Return the job of a file that cannot be judged, with its refusal."""
    return ReviewJob(path, problem=Problem("unreadable", reason, Place(path), "check the file and its encoding, UTF-8"))
