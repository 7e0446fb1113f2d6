"""Judges files without admitting anything: modules, folders, or `.jsonl` files with a candidate per line.

Verdicts are reported in the order of the input, each as soon as it and all before it are known. Only a window of
candidates is held in memory.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_named_text
from agent_core.base.problem import Place, Problem
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import FOLDER, ModuleSource, module_of, path_of, read_file
from sandbox.wire.strict_json import read_json

from ..gate import Candidate, GivenExample, Policy
from .judgment import Judgment
from .review_pool import Judge, ReviewJob, unreadable

_WINDOW = 64
_LONGEST = 4 << 20  # bytes of a line in a `.jsonl` file
_HIDDEN = re.compile(r"^[._]|^(?:node_modules|venv|build|dist)$")


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A request to judge files; if `is_read`, the reader is asked about them.

    The expected `name` and `module` of a single function may be given.
    """

    paths: tuple[Path, ...]
    policy: Policy = "agent"
    name: str = ""
    module: str = ""
    root: Path = field(default_factory=Path)  # the workspace; its own files are judged as its modules
    is_read: bool = False


async def check(jobs: Iterable[ReviewJob], judge: Judge, tell: Callable[[Judgment], None]) -> None:
    """Report the verdict on every job, in order."""
    waiting: deque[asyncio.Task[list[Judgment]]] = deque()

    async def tell_first() -> None:
        for row in await waiting.popleft():
            tell(row)

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
            folders = takewhile(lambda folder: (folder / "__init__.py").is_file(), path.resolve().parents)
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


def _of_file(path: Path, folder: Path | None, request: CheckRequest, snapshot: Snapshot) -> ReviewJob:
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
        named = module_of(path.resolve().relative_to(folder.resolve()) if folder else Path(path.name))
        module = "checked" if isinstance(named, Problem) else named
    source = ModuleSource.of(module, text, shown)
    reading = read_module(source)
    if len(reading.functions) > 1 and not request.name:
        local_sources = _folder_sources(reading.imports, folder) if folder else ()
        return ReviewJob(shown, request.policy, file=source, around=(_absent(module), *local_sources))
    name = request.name or (reading.functions[0].name if reading.functions else path.stem)
    holder = snapshot.functions.get(name)
    if not reading.functions and reading.parsed and not request.name and not reading.problems:
        return ReviewJob(shown, request.policy, file=source, around=(_absent(module),))  # only helpers, for import
    candidate = Candidate(name, text, holder.module if holder else module, replaces=holder is not None, file=shown)
    absent = () if holder or request.module else (_absent(module),)
    around = (*absent, *(_folder_sources(reading.imports, folder) if folder else ()))
    return ReviewJob(shown, request.policy, candidate, around=around)


def _of_workspace(path: Path, own: Path, policy: Policy, snapshot: Snapshot) -> ReviewJob:
    """Return the job for a file in the workspace's folder, with the module name that it has there."""
    inside = path.resolve().relative_to(own.resolve())
    source = read_file(own, inside)
    if isinstance(source, Problem):
        return ReviewJob(path.as_posix(), problem=replace(source, where=Place(path.as_posix(), source.where.line)))
    functions = snapshot.functions
    offered = read_module(source).functions
    if len(offered) == 1 and (offered[0].name not in functions or functions[offered[0].name].module == source.module):
        name = offered[0].name
        candidate = Candidate(name, source.text, source.module, replaces=name in functions, file=path.as_posix())
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
            source = read_file(folder, Path(inside)) if module not in sources and (folder / inside).is_file() else None
            if isinstance(source, ModuleSource):
                sources[module] = source
                waiting += read_module(source).imports
    return tuple(sources.values())
