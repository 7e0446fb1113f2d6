"""From grants to what a worker gets: paths, packages and limits, looked at anew before every call.

What can never be granted: to write what decides about the workspace (its functions, its state, its settings, what its
agents are told, its repository) or about another workspace, to read where secrets and yeses are kept, and the
system's own trees.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from sandbox import Access, Limits
from sandbox.access import NOTHING as NO_ACCESS
from sandbox.code import Modules

from ..secrets import Secrets, Session
from ..untrusted import fence
from ..user_folders import config_folder, data_folder
from .items import UNSAID
from .record import Record
from .repositories import Found, is_own, is_part, is_state, owner_around, plain, repository_in, state_in
from .value import NOTHING, Grants

UNWRITTEN = ("functions", ".toolwright", "toolwright.toml", ".git", "presets", "personas", "humans")
_SYSTEM = ("/proc", "/sys", "/dev")
_SLACK_S = 10
_HIDES: Final = {"read": "the state of a workspace", "write": "a repository or a workspace"}
_DANGER: Final = {
    "read": "should a workspace lie in it, its state can be read",
    "write": "should a repository or a workspace lie in it, git or Toolwright runs what its files say as you",
}
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Packages: TypeAlias = Callable[[tuple[str, ...]], tuple[tuple[tuple[str, str], ...], tuple[str, ...]]]
"""Requirements → where each import name lies, and which of them are imported ahead."""


def raised(limits: Limits, grants: Grants) -> Limits:
    """The limits with the time and the memory that were granted; none is ever made smaller."""
    wall_s = max(limits.wall_s, grants.seconds or 0)
    cpu_s = max(limits.cpu_s, math.ceil(grants.seconds or 0) + _SLACK_S)
    return replace(limits, wall_s=wall_s, cpu_s=cpu_s, memory=max(limits.memory, (grants.memory_mib or 0) << 20))


@dataclass(frozen=True, slots=True)
class Permit:
    """One call that may be made: what the function has, with which modules, limits and access it runs.

    `keep` names its own worker if it is stateful; `note` says what it lacks, should it fail.
    """

    modules: Modules
    limits: Limits
    grants: Grants = NOTHING
    access: Access = NO_ACCESS
    keep: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """A call that is not made, and why: what is missing, and how a human grants it."""

    text: str


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the grants of one workspace lead to."""

    root: Path
    packages: Packages = lambda wanted: ((), ())
    secrets: Secrets = field(default_factory=Secrets)

    def inside(self, grants: Grants) -> Grants:
        """The same with paths of the workspace as relative ones, and folders with their slash."""
        if not (grants.read or grants.write):
            return grants
        return replace(grants, read=self._named(grants.read), write=self._named(grants.write))

    def spelled(self, grants: Grants) -> Grants:
        """The same with every path of the workspace in both ways in which a text may name it."""
        root = Path(os.path.realpath(self.root))
        whole = Grants(
            read=tuple(f"{root}/{one}" for one in grants.read if one != UNSAID and not one.startswith("/")),
            write=tuple(f"{root}/{one}" for one in grants.write if one != UNSAID and not one.startswith("/")),
        )
        return grants | whole

    def _named(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        root = f"{os.path.realpath(self.root)}/"
        named = [one.removeprefix(root) or "./" for one in paths]
        return tuple(f"{one}/" if not one.endswith("/") and (self.root / one).is_dir() else one for one in named)

    def access(self, grants: Grants, owner: str = "") -> Access:
        """What a worker sees: what leads where it may not is left out.

        What packages that are imported ahead might keep of a call is its owner's alone.
        """
        root = os.path.realpath(self.root)
        readable = tuple(self._there(root, grants.read, writes=False))
        writable = tuple(self._there(root, grants.write, writes=True))
        found, ahead = self.packages(grants.packages) if grants.packages else ((), ())
        home = root if any(path.startswith(f"{root}/") for path in readable + writable) else ""
        return Access(readable, writable, found, ahead, home, owner if ahead else "")

    def refusal(self, grants: Grants, function: str, had: Grants = NOTHING) -> str:
        """Return why some of these can never be granted, as a sentence; empty if all can.

        It names what lies in a folder, which the function may have named after a secret: those are masked.
        """
        found = [*self._refusals(grants.read, writes=False), *self._refusals(grants.write, writes=True)]
        return Session(self.secrets, function, (grants | had).secrets).words(found[0]) if found else ""

    def grown(self, grants: Grants) -> str:
        """Why a folder is not given for now, as a sentence: at its yes it could be looked through."""
        for verb, item in _paths(grants):
            if self._has_grown(item, writes=verb == "write"):
                why = f"holds more by now than is looked through, so {_HIDES[verb]} may lie in it, and it is not given"
                fix = f"A human who has looked grants it again with `functions grant NAME --{verb}`"
                return f"{fence(item)} {why}. {fix}."
        return ""

    def _has_grown(self, item: str, *, writes: bool) -> bool:
        real = os.path.realpath(self.root / item)
        return not _look(Path(real), writes=writes).is_whole and real in Record(self.root).read().looked_through

    def doubts(self, grants: Grants) -> tuple[str, ...]:
        """What a human has to know of these, a line each: of what is too large to be looked through."""
        large = (pair for pair in _paths(grants) if not _look(self.root / pair[1], writes=pair[0] == "write").is_whole)
        return tuple(f"{fence(item)} is too large to be looked through: {_DANGER[verb]}" for verb, item in large)

    def _refusals(self, items: tuple[str, ...], *, writes: bool) -> Iterator[str]:
        for item in items:
            if item != UNSAID and (why := self._against(item, writes=writes)):
                yield f"{fence(item)} can never be granted {'for writing' if writes else 'for reading'}: it {why}."

    def _there(self, root: str, items: tuple[str, ...], *, writes: bool) -> Iterator[str]:
        """Paths as they are named, no link in them followed: the sandbox refuses those that have one."""
        for item in items:
            if item == UNSAID or self._against(item, writes=writes) or self._has_grown(item, writes=writes):
                continue
            path = os.path.normpath(f"{root}/{item}" if not item.startswith("/") else item)
            if writes:
                with suppress(OSError):  # the sandbox says it better
                    _make(path, is_folder=item.endswith("/"))
            if os.path.lexists(path):
                yield path

    def _against(self, item: str, *, writes: bool) -> str:
        """What speaks against a path as it leads now, through links and whatever its case."""
        root = Path(os.path.realpath(self.root))
        real = Path(os.path.realpath(root / item))
        if not item.startswith("/") and not real.is_relative_to(root):
            return "leads out of the workspace"
        for kept in self._kept(root, writes=writes):
            if _meets(real, kept):
                return f"is, holds or lies in {kept.name if kept.is_relative_to(root) else kept}"
        return _against_writing(item, real, root) if writes else _against_reading(real)

    @staticmethod
    def _kept(root: Path, *, writes: bool) -> Iterator[Path]:
        yield root / ".toolwright"
        yield data_folder()
        yield config_folder()
        yield from map(Path, _SYSTEM)
        if writes:
            yield from (root / name for name in UNWRITTEN)


def _paths(grants: Grants) -> Iterator[tuple[Literal["read", "write"], str]]:
    yield from (("write", item) for item in grants.write if item != UNSAID)
    yield from (("read", item) for item in grants.read if item != UNSAID)


def _look(folder: Path, *, writes: bool) -> Found:
    return repository_in(folder) if writes else state_in(folder)


def _against_writing(item: str, real: Path, root: Path) -> str:
    if is_own(item) or is_own(real) or is_part(real):
        return "is, or lies in, what a repository or a workspace keeps for itself"
    if around := owner_around(real, root):
        return f"lies in a bare repository or another workspace: {fence(str(around))}"
    path = repository_in(real).path
    return f"is a repository or a workspace, or holds one: {fence(path)}" if path else ""


def _against_reading(real: Path) -> str:
    if is_state(real):
        return "is, or lies in, the state of a workspace"
    path = state_in(real).path
    return f"holds the state of a workspace: {fence(path)}" if path else ""


def _make(path: str, *, is_folder: bool) -> None:
    """Make what is missing, through no link."""
    *parents, last = path.strip("/").split("/")
    with ExitStack() as stack:
        above = os.open("/", _FOLDER)
        stack.callback(os.close, above)
        for part in (*parents, last) if is_folder else parents:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=above)
            above = os.open(part, _FOLDER, dir_fd=above)
            stack.callback(os.close, above)
        if not is_folder:
            with suppress(FileExistsError):
                os.close(os.open(last, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=above))


def _meets(real: Path, kept: Path) -> bool:
    """Whether one is the other or holds it: by name in any case and form, or as the system sees them."""
    ours, theirs = [plain(part) for part in real.parts], [plain(part) for part in kept.parts]
    if ours[: len(theirs)] == theirs or theirs[: len(ours)] == ours:
        return True
    within = [_identity(one) for one in (real, *real.parents)]
    around = [_identity(one) for one in (kept, *kept.parents)]
    return _is_among(around[0], within) or _is_among(within[0], around)


def _is_among(one: tuple[int, int] | None, others: list[tuple[int, int] | None]) -> bool:
    return one is not None and one in others


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
