"""Judges files and candidates without admitting anything: a job becomes the published verdicts.

Files are modules, folders, or `.jsonl` files with a candidate per line. Verdicts are reported in the order of the
input, each as soon as it and all before it are known. Only a window of candidates is held in memory.

Worker processes share a large number of jobs, each with its own sandbox, because the text stages occupy one core. A
candidate never runs in these processes, only in their sandboxed workers. They have no keys and no terminal, and end
with this process. They read and write JSON lines; the answer to a job has its number.
"""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from agent_core.base import machine, programs
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.offload import aside, results_of
from agent_core.base.plain_files import read_named_text
from agent_core.base.problem import Place, Problem, first_problems
from agent_core.base.records import asdict, dataclass, field, replace, to_json
from agent_core.base.settings import SandboxSettings
from agent_core.registry.function import ModuleReading
from agent_core.registry.registry import Registry, Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import FOLDER, ModuleSource, module_of, path_of, read_file
from sandbox.wire.lines import kept_lines
from sandbox.wire.strict_json import DEEPEST_ROW, LOOSE, read_json

from ..gate import Candidate, Gate, GivenExample, Look, ModuleVerdict, Policy, Rules
from ..gate.trial import UNGRANTED, Granted
from ..sandbox_client import SandboxClient
from .judgment import Judgment

if TYPE_CHECKING:
    from .grant_service import PackageGrants

_WINDOW = 64
_LONGEST = 4 << 20  # bytes of a line in a `.jsonl` file
_HIDDEN = re.compile(r"^[._]|^(?:node_modules|venv|build|dist)$")
_LOOKS_AT_ONCE = 2  # functions of one file that are examined at once; files are judged in parallel
AT_ONCE = 6  # jobs at once in one process: while one waits for its worker, others are parsed
_FEW = 12  # with this many jobs or fewer, no process is started: that takes half a second
_LONGEST_LINE = 64 << 20
Judge = Callable[["ReviewJob"], Coroutine[Any, Any, list[Judgment]]]  # Any: nothing is sent to it


@dataclass(frozen=True, slots=True)
class ReviewJob:
    """A candidate, or a whole file, or (with neither) a problem that takes the place of its verdict.

    `path` is its name in the verdict. `around` are modules next to it that are added or replace those of the workspace;
    a module without text is removed. `is_installed` means that the text is a file of the workspace. `granted` are the
    grants with which it is judged; `is_read` asks the reader about it.
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
        """The text to judge."""
        return self.candidate.code if self.candidate else self.file.text if self.file else ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the JSON for another process, which has no grants and no reader; its candidate is not of a reply."""
        data = asdict(self)
        del data["granted"], data["is_read"]
        if data["candidate"] is not None:
            del data["candidate"]["together"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ReviewJob":
        """Return the job from its JSON."""
        candidate_data, file = data["candidate"], data["file"]
        candidate = None
        if candidate_data is not None:
            examples = tuple(GivenExample(**example) for example in candidate_data["examples"])
            sequences = {"examples": examples, "helpers": tuple(candidate_data["helpers"])}
            candidate = Candidate(**{**candidate_data, **sequences})
        return cls(
            data["path"],
            data["policy"],
            candidate,
            ModuleSource(**file) if file else None,
            tuple(ModuleSource(**source) for source in data["around"]),
            is_installed=data["is_installed"],
        )


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A request to judge files; if `is_read`, the reader is asked about them.

    The expected `name` and `module` of a single function may be given.
    """

    paths: tuple[Path, ...]
    policy: Policy = "agent"
    name: str = ""
    module: str = ""
    root: Path = field(
        default_factory=Path
    )  # the workspace; its own files are judged as its modules
    is_read: bool = False


async def check(jobs: Iterable[ReviewJob], judge: Judge, tell: Callable[[Judgment], None]) -> None:
    """Report the verdict on every job, in order."""
    waiting: deque[asyncio.Task[list[Judgment]]] = deque()

    async def tell_first() -> None:
        for row in await waiting.popleft():
            tell(row)
            await asyncio.sleep(0)  # a file may have thousands, each of which is shown or sent

    reading = iter(jobs)
    async with asyncio.TaskGroup() as group:
        while (job := await asyncio.to_thread(next, reading, None)) is not None:
            waiting.append(group.create_task(judge(job)))
            while len(waiting) >= _WINDOW or (waiting and waiting[0].done()):
                await tell_first()
        while waiting:
            await tell_first()


def count(request: CheckRequest) -> int:
    """Return the number of jobs, without parsing the files as Python."""
    number = 0
    for path, _ in _files(request.paths):
        if path.suffix == ".jsonl":
            with path.open("rb") as stream:
                number += sum(1 for line in stream if line.strip())
        else:
            number += 1
    return number


def jobs(request: CheckRequest, snapshot: Snapshot) -> Iterator[ReviewJob]:
    """Yield the jobs; each file is read when its job is needed.

    Raises:
        UsageError: a path does not exist.
    """
    for path, folder in _files(request.paths):
        if path.suffix == ".jsonl":
            yield from _of_lines(path, request.policy)
        else:
            yield _of_file(path, folder, request, snapshot)


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Yield each file with the folder that it was found in, or the outermost one of its package.

    Links and hidden folders are skipped.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} cannot be read: there is no such file.")
        if path.is_dir():
            yield from ((file, path) for file in python_files(path))
        else:
            folders = takewhile(
                lambda folder: (folder / "__init__.py").is_file(), path.resolve().parents
            )
            yield path, next(reversed([*folders]), None) if path.suffix == ".py" else None


def python_files(folder: Path) -> Iterator[Path]:
    """Yield the `.py` and `.jsonl` files below a folder, sorted. Links and hidden folders are skipped."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name == "__pycache__":
            continue
        if path.is_dir():
            if not _HIDDEN.match(path.name):
                yield from python_files(path)
        elif path.suffix in (".py", ".jsonl") and not path.name.startswith("."):
            yield path


def _of_lines(path: Path, policy: Policy) -> Iterator[ReviewJob]:
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(_LONGEST):
            number += 1
            where = f"{path.as_posix()}:{number}"
            whole = line.endswith(b"\n") or len(line) < _LONGEST
            if not whole:
                while not line.endswith(b"\n") and (line := stream.readline(_LONGEST)):
                    continue
                yield unreadable(where, f"the line is longer than {_LONGEST >> 20} MiB")
            elif line.strip():
                candidate = parse_line(line, where)
                if isinstance(candidate, Problem):
                    yield ReviewJob(where, problem=candidate)
                else:
                    yield ReviewJob(where, policy, candidate)


def parse_line(line: bytes, where: str, module: str = "checked") -> Candidate | Problem:
    """Return the candidate in one line of a `.jsonl` file."""
    try:
        row = read_json(line)
        examples = tuple(
            GivenExample(str(example["call"]), str(example["expected"]), example.get("approx"))
            for example in row.get("examples") or ()
        )
        return Candidate(
            str(row["name"]),
            str(row["code"]),
            str(row.get("module") or module),
            examples=examples,
            description=str(row.get("description") or ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"the line is not a candidate: {error!r:.200}"
        fix = 'write {"name": …, "code": …, "examples": [{"call": …, "expected": …}]}'
        return Problem("not-a-candidate", message, Place(where), fix)


def _of_file(
    path: Path, folder: Path | None, request: CheckRequest, snapshot: Snapshot
) -> ReviewJob:
    shown = path.as_posix()
    own = request.root / FOLDER
    if path.resolve().is_relative_to(own.resolve()) and not request.name:
        return _of_workspace(path, own, request.policy, snapshot)
    try:
        text = read_named_text(path)
    except (OSError, UnicodeDecodeError) as error:
        return unreadable(shown, f"{shown} cannot be read: {error}")
    module = request.module
    if not module:
        named = module_of(
            path.resolve().relative_to(folder.resolve()) if folder else Path(path.name)
        )
        module = "checked" if isinstance(named, Problem) else named
    source = ModuleSource.of(module, text, shown)
    reading = read_module(source)
    if len(reading.functions) > 1 and not request.name:
        local_sources = _folder_sources(reading.imports, folder) if folder else ()
        return ReviewJob(
            shown, request.policy, file=source, around=(_absent(module), *local_sources)
        )
    name = request.name or (reading.functions[0].name if reading.functions else path.stem)
    holder = snapshot.functions.get(name)
    if not reading.functions and reading.parsed and not request.name and not reading.problems:
        return ReviewJob(
            shown, request.policy, file=source, around=(_absent(module),)
        )  # only helpers, for import
    candidate = Candidate(
        name, text, holder.module if holder else module, replaces=holder is not None, file=shown
    )
    absent = () if holder or request.module else (_absent(module),)
    around = (*absent, *(_folder_sources(reading.imports, folder) if folder else ()))
    return ReviewJob(shown, request.policy, candidate, around=around)


def _of_workspace(path: Path, own: Path, policy: Policy, snapshot: Snapshot) -> ReviewJob:
    """Return the job for a file in the workspace's folder, with the module name that it has there."""
    inside = path.resolve().relative_to(own.resolve())
    source = read_file(own, inside)
    if isinstance(source, Problem):
        return ReviewJob(
            path.as_posix(),
            problem=replace(source, where=Place(path.as_posix(), source.where.line)),
        )
    functions = snapshot.functions
    offered = read_module(source).functions
    if len(offered) == 1 and (
        offered[0].name not in functions or functions[offered[0].name].module == source.module
    ):
        name = offered[0].name
        candidate = Candidate(
            name, source.text, source.module, replaces=name in functions, file=path.as_posix()
        )
        return ReviewJob(path.as_posix(), policy, candidate, is_installed=True)
    return ReviewJob(path.as_posix(), policy, file=source, is_installed=True)


def with_name_clash(judgment: Judgment, snapshot: Snapshot) -> Judgment:
    """Return the verdict on a function in the workspace's folder; rejected if another file has its name."""
    problem = snapshot.clash(judgment.name, judgment.module, Place(judgment.path, judgment.line))
    if problem is None:
        return judgment
    return replace(judgment, admitted=False, standing="", problems=(problem, *judgment.problems))


def _absent(module: str) -> ModuleSource:
    """Return an empty source that hides the workspace's module with this name."""
    return ModuleSource(module, path_of(module), "", "")


def _folder_sources(imports: Iterable[str], folder: Path) -> tuple[ModuleSource, ...]:
    """Return the modules of a folder that a file imports, directly or indirectly."""
    sources: dict[str, ModuleSource] = {}
    waiting = list(imports)
    while waiting:
        module = waiting.pop()
        for inside in (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__init__.py"):
            source = (
                read_file(folder, Path(inside))
                if module not in sources and (folder / inside).is_file()
                else None
            )
            if isinstance(source, ModuleSource):
                sources[module] = source
                waiting += read_module(source).imports
    return tuple(sources.values())


async def _judge_job(job: ReviewJob, gate: Gate, snapshot: Snapshot) -> list[Judgment]:
    """Return the verdict on a candidate, or one for each function of a file."""
    if job.problem is not None:
        return [refusal(job.problem, job.path)]
    if job.is_installed:  # otherwise it is not in the workspace and has no grants
        job = replace(job, granted=replace(job.granted, approval_mode="calling"))
    for source in job.around:
        existing = snapshot.modules.get(source.module)
        if existing is not None and (existing.path != source.path or not source.text):
            snapshot = snapshot.without_module(source.module)
        snapshot = snapshot.with_module(_reading(source)) if source.text else snapshot
    if job.file is not None:
        return await _verdicts_of_file(job.file, job, gate, snapshot)
    assert job.candidate is not None
    verdict = await gate.judge(
        job.candidate, snapshot, job.policy, granted=job.granted, reading=job.is_read
    )
    return [replace(Judgment.of(verdict), path=job.path)]


def refusal(problem: Problem, path: str, name: str = "", module: str = "") -> Judgment:
    """Return a negative verdict for a problem that needs no judging by the gate."""
    nothing = {
        "standing": "",
        "version": "",
        "fixes": [],
        "problems": [problem.to_json()],
        "stages": [],
        "source": "",
    }
    return Judgment.from_json(
        {"name": name, "module": module, "admitted": False, **nothing, "path": path}
    )


_reading = lru_cache(maxsize=64)(read_module)  # many candidates share it


async def _verdicts_of_file(
    source: ModuleSource, job: ReviewJob, gate: Gate, snapshot: Snapshot
) -> list[Judgment]:
    """Return a verdict for each function of a file, with its own problems, those of the file, and those found later."""
    verdict = await gate.judge_module(source, snapshot, job.policy, granted=job.granted)
    ground = snapshot.with_module(verdict.reading)
    size = len(source.text)
    judged_file = await aside(size, gate.judged_file, verdict, ground)

    async def look_closer(name: str) -> Look:
        return await gate.look_closer(name, judged_file, job.granted, reading=job.is_read)

    names = [name for name, _ in verdict.standings]
    looks = await results_of(look_closer, names, _LOOKS_AT_ONCE)
    return await aside(
        size, _judgments_of_file, verdict, {each.name: each for each in looks}, job.path
    )


def _judgments_of_file(
    verdict: ModuleVerdict, looks: Mapping[str, Look], path: str
) -> list[Judgment]:
    own = verdict.reading.source
    spans = {
        function.name: (function.line, function.end_line) for function in verdict.reading.functions
    }
    refusals = [problem for problem in verdict.problems if problem.severity == "refuses"]
    if not spans:
        return [
            refusal(_at_given_path(problem, path, own.path), path, module=own.module)
            for problem in first_problems(refusals)
        ]
    standings = dict(verdict.standings)  # functions of a module that cannot be imported have none
    covered = {line for first, last in spans.values() for line in range(first, last + 1)}
    # By line, with their order: going through all of them for each function would take the square of a long file.
    by_line = defaultdict[int, list[tuple[int, Problem]]](list)
    for order, problem in enumerate(verdict.problems):
        by_line[problem.where.line if problem.where.line in covered else 0].append((order, problem))
    rows, lines = [], kept_lines(own.text)
    stages = to_json(verdict.stages)
    for name, (first, last) in spans.items():
        look = looks.get(name, Look(name))
        here = [row for line in (0, *range(first, last + 1)) for row in by_line.get(line, ())]
        problems = [*(problem for _, problem in sorted(here, key=itemgetter(0))), *look.problems]
        refused_here = any(problem.severity == "refuses" for problem in problems)
        if (
            name not in standings and not refused_here
        ):  # another function's problem rejects the file
            problems, refused_here = [*problems, *refusals], True
        told = tuple(_at_given_path(each, path, own.path) for each in first_problems(problems))
        document = {
            "module": own.module,
            "stages": [*stages, *to_json(look.stages)],
            "path": path,
            "name": name,
            "admitted": not refused_here,
            "standing": "" if refused_here else standings[name],
            "version": own.version,
            "fixes": [],
            "problems": to_json(told),
            "source": "".join(
                lines[first - 1 : last]
            ),  # not the file's, which would be there once for each
            **({"reader": to_json(look.answer)} if look.answer else {}),
        }
        # What the document says of problems and stages is there already: all functions share it, in thousands.
        judgment = Judgment.from_json({**document, "problems": (), "stages": ()})
        reports = (*verdict.stages, *look.stages)
        rows.append(replace(judgment, document=document, problems=told, stages=reports))
    return rows


def _at_given_path(problem: Problem, path: str, own: str) -> Problem:
    """Return a problem with the path of the file as it was given, not as in a workspace."""
    return (
        replace(problem, where=replace(problem.where, path=path))
        if problem.where.path == own
        else problem
    )


def unreadable(path: str, reason: str) -> ReviewJob:
    """Return the job of an unreadable file, which is its refusal."""
    return ReviewJob(
        path,
        problem=Problem(
            "unreadable", reason, Place(path), "check the file and its encoding, UTF-8"
        ),
    )


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """Everything that a verdict depends on: the rules, the sandbox, the existing functions."""

    rules: Rules
    sandbox: SandboxSettings
    snapshot: Snapshot

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for another process."""
        rules, reserved = (
            {**asdict(self.rules), "off": sorted(self.rules.off)},
            sorted(self.snapshot.reserved),
        )
        readings = [
            [asdict(reading.source), reading.to_json()]
            for reading in self.snapshot.readings.values()
        ]
        return {
            "rules": rules,
            "reserved": reserved,
            "sandbox": self.sandbox.model_dump(),
            "readings": readings,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ReviewContext":
        """Return the context from its JSON."""
        rules = data["rules"]
        new_rules = Rules(
            **{**rules, "off": frozenset(rules["off"]), "packages": tuple(rules["packages"])}
        )
        snapshot = Snapshot.empty(frozenset(data["reserved"]))
        for source, reading in data["readings"]:
            own = ModuleSource(**source)
            snapshot = snapshot.with_module(
                ModuleReading.from_json(reading, own) or read_module(own)
            )
        return cls(new_rules, SandboxSettings(**data["sandbox"]), snapshot)


@dataclass(frozen=True, slots=True)
class FileChecks:
    """The checks of files in one workspace."""

    registry: Registry
    gate: Gate
    sandbox: SandboxClient
    packages: "PackageGrants"

    async def check(
        self,
        request: CheckRequest,
        tell: Callable[[Judgment], None],
        *,
        processes: int | None = None,
    ) -> None:
        """Judge files without admitting anything, on all cores if that is faster. Report the verdicts in order.

        Raises:
            UsageError: a path does not exist, or the reader is requested and there is none.
        """
        snapshot = self.registry.snapshot()
        total = self.count_shared(count(request), is_read=request.is_read)
        async with judges(self.context(), self.gate, total, processes=processes) as judge:

            async def judge_granted(job: ReviewJob) -> list[Judgment]:
                job = replace(job, is_read=request.is_read)
                if not job.is_installed:
                    return await judge(job)
                granted = await self.packages.of_text(job.text)
                if granted != UNGRANTED:
                    job = replace(job, granted=granted)
                verdicts = await judge(job)
                return [with_name_clash(verdict, snapshot) for verdict in verdicts]

            await check(jobs(request, snapshot), judge_granted, tell)

    def count_shared(self, jobs: int, *, is_read: bool) -> int:
        """Return the number of jobs that other processes may share; 0 if a reader is asked, which only happens here.

        Raises:
            UsageError: there is no reader.
        """
        if not is_read:
            return jobs
        if not self.gate.has_reader:
            fix = 'Set gate.reader to "same" or to a model, or leave out --reader.'
            raise UsageError("No reader can be asked: gate.reader is off.", fix=fix)
        return 0

    def context(self) -> ReviewContext:
        """Return everything that verdicts currently depend on."""
        return ReviewContext(self.gate.rules, self.sandbox.settings, self.registry.snapshot())


@asynccontextmanager
async def judges(
    context: ReviewContext, gate: Gate, jobs: int | None, *, processes: int | None = None
) -> AsyncIterator[Judge]:
    """Yield a judge of jobs: this process if there are few, otherwise one process per core."""
    count = processes or (1 if jobs is not None and jobs <= _FEW else machine.cores())
    if count <= 1 and processes is None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def judge_locally(job: ReviewJob) -> list[Judgment]:
            async with slots:
                return await _judge_job(job, gate, context.snapshot)

        yield judge_locally
        return
    helpers = [_Process() for _ in range(count)]
    try:
        async with asyncio.TaskGroup() as group:
            started = json.dumps(context.to_json()).encode() + b"\n"
            await asyncio.gather(*(helper.start(started) for helper in helpers))
            readers = [group.create_task(helper.read()) for helper in helpers]
            slots = asyncio.Semaphore(AT_ONCE * count)

            async def judge_in_helper(job: ReviewJob) -> list[Judgment]:
                if (
                    job.problem is not None or job.granted is not UNGRANTED
                ):  # packages are installed here
                    return await _judge_job(job, gate, context.snapshot)
                async with slots:
                    return await min(helpers, key=lambda one: one.load).ask(job)

            yield judge_in_helper
            for reader in readers:
                reader.cancel()
    finally:
        await asyncio.gather(*(helper.end() for helper in helpers))


class _Process:
    """One judging process."""

    def __init__(self) -> None:
        self._answers: dict[int, asyncio.Future[list[Judgment]]] = {}
        self._count = 0
        self._process: Process | None = None
        self._said = TemporaryFile()  # noqa: SIM115 - as long as the process

    @property
    def load(self) -> int:
        """The number of jobs that are not answered yet."""
        return len(self._answers)

    async def start(self, ground: bytes) -> None:
        self._process = await programs.start(
            programs.python("-m", f"{__package__}.file_checks"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._said,
            env=programs.variables_for_python("HOME", "TMPDIR"),
            cwd="/",
            limit=_LONGEST_LINE,
        )
        await self._write(ground)

    async def ask(self, job: ReviewJob) -> list[Judgment]:
        self._count += 1
        number = self._count
        self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            await self._write(json.dumps([number, job.to_json()]).encode() + b"\n")
            return await self._answers[number]
        finally:
            del self._answers[number]

    async def read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            number, rows = _read(line)
            if number in self._answers:
                self._answers[number].set_result([Judgment.from_json(row) for row in rows])
        code = await self._process.wait()
        self._said.seek(0)
        last = self._said.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        message = f"A process that judges ended unexpectedly (exit code {code}): {last}"
        raise WorkspaceError(message.removesuffix(": "), fix="Run it again, on fewer files.")

    async def end(self) -> None:
        self._said.close()
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError):
            self._process.stdin.close()
        try:
            async with asyncio.timeout(5):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _write(self, line: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):  # if the process has ended, its reader reports it
            self._process.stdin.write(line)
            await self._process.stdin.drain()


def _read(line: bytes) -> Any:  # Any: JSON
    return read_json(line, LOOSE, most=_LONGEST_LINE, deepest=DEEPEST_ROW)


async def _serve() -> None:
    """Serve review requests in a separate process until standard input ends."""
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    context = ReviewContext.from_json(_read(await reader.readline()))
    sandbox = SandboxClient(context.sandbox, AT_ONCE)
    gate = Gate(sandbox, limits=sandbox.limits, rules=context.rules)

    async def answer(number: int, job: dict[str, Any]) -> None:  # Any: JSON
        rows = await _judge_job(ReviewJob.from_json(job), gate, context.snapshot)
        sys.stdout.buffer.write(json.dumps([number, to_json(rows)], default=str).encode() + b"\n")
        sys.stdout.buffer.flush()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = deque[asyncio.Task[None]]()
            while line := await reader.readline():
                tasks.append(group.create_task(answer(*_read(line))))
                while tasks and tasks[0].done():
                    tasks.popleft()
            for task in tasks:  # the remaining answers are not needed
                task.cancel()
    finally:
        await sandbox.aclose()


if __name__ == "__main__":
    asyncio.run(_serve())
