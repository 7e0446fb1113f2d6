"""From grants to a worker's access: paths, packages and limits, checked again before every call.

Some access can never be granted: to write what controls the workspace (its functions, its state, its settings, its
agents' instructions, its repository) or another workspace, to read where secrets and approvals are stored, and to use
the system's own trees. A repository or workspace that is in a writable folder after a call is reported and made
ineffective.
"""

import asyncio
import logging
import math
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_core.base import folders, machine
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import fence
from agent_core.base.user_folders import config_folder, data_folder
from agent_core.base.workspace_folder import FUNCTIONS, SETTINGS, STATE
from agent_core.registry import folder_access
from sandbox import Access, Killed, Limits, Outcome, Refused, RequestRefused
from sandbox.access import NOTHING as NO_ACCESS

from ..secrets import CallSecrets, Secrets
from .record import GrantRecord
from .repositories import (
    FAR,
    NEAR,
    RepositorySearch,
    disarm,
    is_own,
    is_part,
    is_state,
    owner_around,
    plain,
    rename,
    repository_in,
    state_in,
)
from .value import NOTHING, UNSAID, WORKSPACE, Grants

if TYPE_CHECKING:
    from sandbox.code import Modules

UNWRITTEN = (FUNCTIONS, STATE, SETTINGS, "mcp.toml", ".git", "presets", "personas", "humans")
_NOT_LISTED: Final = frozenset(map(plain, (STATE, SETTINGS, "mcp.toml")))
OF_THE_PROGRAM: Final = tuple(
    Path(__file__).parents[3] / room
    for room in ("agent_core", "knapper_ext", "meta_functions", "sandbox")
)
_SYSTEM = ("/proc", "/sys", "/dev")
_KEYS = (".ssh", ".gnupg")  # in the user's home folder
_SLACK_S = 10
_HIDES: Final = {"read": "the state of a workspace", "write": "a repository or a workspace"}
_DANGER: Final = {
    "read": "should a workspace lie in it, its state can be read",
    "write": "should a repository or a workspace lie in it, git or Knapper runs what its files say as you",
}
Packages: TypeAlias = Callable[
    [tuple[str, ...]], tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
]
"""Maps requirements to the location of each import name, and the names that are imported in advance."""


def raised(limits: Limits, grants: Grants) -> Limits:
    """Return the limits with the granted time and memory; no limit is ever reduced."""
    wall_s = max(limits.wall_s, grants.seconds or 0)
    cpu_s = max(limits.cpu_s, math.ceil(grants.seconds or 0) + _SLACK_S)
    return replace(
        limits,
        wall_s=wall_s,
        cpu_s=cpu_s,
        memory=max(limits.memory, (grants.memory_mib or 0) << 20),
    )


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission for one call: the function's grants, and the modules, limits and access it runs with.

    `note` says what is missing, in case it fails. A call that `is_bound` has only the code that an approval of the
    function covers; no other call may be given anything as it runs. `shared` is what it may read only by the folders of
    the agent that made the function. `given` are files that were asked for before the call: the host opens them, as it
    does those that are asked for as they are opened. A call that `only_reads` writes nothing and changes nothing where
    it gets.
    """

    modules: "Modules"
    limits: Limits
    grants: Grants = NOTHING
    access: Access = NO_ACCESS
    note: str = ""
    is_bound: bool = False
    shared: Grants = NOTHING
    given: Grants = NOTHING
    only_reads: bool = False


@dataclass(slots=True)
class CallFlow:
    """What one call may have read by the folders of an agent alone, and whether it can send anything out.

    Nothing in the text of a function proves that it sends nothing, so what it asks for as it runs is asked with this. A
    function may read directly in its folders, which the host does not see: having them counts.
    """

    read: Grants = NOTHING
    """What it may have read itself, or who called it."""
    received: Grants = NOTHING
    """What the functions that it called may have read."""
    is_out: bool = False
    """Whether it was given a host, a secret or the call of a function that needs a grant while it ran."""

    def of_callee(self, permit: Permit) -> "CallFlow":
        """Return the flow of a call that it makes with this permit, or that it is."""
        return CallFlow(self.read | permit.shared, self.received, self.is_out)

    def add(self, callee_flow: "CallFlow") -> None:
        """Add what came back from a call that it made."""
        self.received |= callee_flow.read | callee_flow.received
        self.is_out |= callee_flow.is_out


@dataclass(frozen=True, slots=True)
class Denied:
    """A call that was denied, with what is missing and how the user grants it."""

    text: str


@dataclass(frozen=True, slots=True)
class AccessResolver:
    """Resolves the grants of one workspace to files and packages."""

    root: Path
    packages: Packages = lambda requirements: ((), ())
    secrets: Secrets = field(default_factory=Secrets)

    def inside(self, grants: Grants) -> Grants:
        """Return the grants with workspace paths made relative, and folders with a trailing slash."""
        if not (grants.read or grants.write):
            return grants
        return replace(
            grants, read=self._relative_paths(grants.read), write=self._relative_paths(grants.write)
        )

    def spelled(self, grants: Grants) -> Grants:
        """Return the grants with every workspace path in both forms in which code may name it."""
        root = Path(os.path.realpath(self.root))
        whole = Grants(
            read=tuple(
                f"{root}/{path}"
                for path in grants.read
                if path != UNSAID and not path.startswith("/")
            ),
            write=tuple(
                f"{root}/{path}"
                for path in grants.write
                if path != UNSAID and not path.startswith("/")
            ),
        )
        return grants | whole

    def _relative_paths(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        root = f"{os.path.realpath(self.root)}/"
        named = [
            WORKSPACE if f"{path.rstrip('/')}/" == root else path.removeprefix(root)
            for path in paths
        ]
        return tuple(
            f"{name}/" if not name.endswith("/") and (self.root / name).is_dir() else name
            for name in named
        )

    def access(self, grants: Grants, owner: str = "") -> Access:
        """Return the access of a worker; paths that lead where it may not go are left out.

        Packages that are imported in advance might retain data of a call, so they are used for their owner only.
        """
        root = os.path.realpath(self.root)
        readable = tuple(self._there(root, grants.read, writes=False))
        writable = tuple(self._there(root, grants.write, writes=True))
        folders, ahead = self.packages(grants.packages) if grants.packages else ((), ())
        home = root if any(path.startswith(f"{root}/") for path in readable + writable) else ""
        return Access(readable, writable, folders, ahead, home, owner if ahead else "")

    def refusal(self, grants: Grants, function: str, grants_before: Grants = NOTHING) -> str:
        """Return a sentence that says why some of these grants can never be given, or "" if all can.

        It names a path in a folder, which the function may have named after a secret, so secrets are masked.
        """
        refusals = [
            *self._refusals(grants.read, writes=False),
            *self._refusals(grants.write, writes=True),
        ]
        return (
            CallSecrets(self.secrets, function, (grants | grants_before).secrets).words(refusals[0])
            if refusals
            else ""
        )

    def absent(self, grants: Grants) -> tuple[str, ...]:
        """Return what is to be written and is not there yet."""
        return tuple(item for item in grants.write if not os.path.lexists(self.root / item))

    def grown(self, grants: Grants) -> str:
        """Return the reason why a folder is withheld for now: it was checked when approved, but has grown since."""
        for verb, item in _paths(grants):
            if self._has_grown(item, writes=verb == "write"):
                why = f"holds more by now than is looked through, so {_HIDES[verb]} may lie in it, and it is not given"
                command = "functions grant NAME " + ("--write" if verb == "write" else "--read")
                return f"{fence(item)} {why}. Look, and grant it again at a terminal: `knapper {command}`."
        return ""

    def _has_grown(self, item: str, *, writes: bool) -> bool:
        real = os.path.realpath(self.root / item)
        return (
            not _look(Path(real), writes=writes).is_whole
            and real in GrantRecord(self.root).read().looked_through
        )

    def doubts(self, grants: Grants) -> tuple[str, ...]:
        """Return warnings about grants that cannot be checked, being too large or unreadable, one per line."""
        lines = []
        for verb, item in _paths(grants):
            search = _look(self.root / item, writes=verb == "write")
            if search.unread:
                lines.append(
                    f"{fence(os.path.relpath(search.unread, self.root))} cannot be looked into: {_DANGER[verb]}"
                )
            elif not search.is_whole:
                lines.append(f"{fence(item)} is too large to be looked through: {_DANGER[verb]}")
        return tuple(lines)

    def _refusals(self, items: tuple[str, ...], *, writes: bool) -> Iterator[str]:
        for item in items:
            is_list = (
                item == WORKSPACE and not writes
            )  # of names: its files are never shown to a worker
            if item != UNSAID and not is_list and (why := self.objection(item, writes=writes)):
                yield f"{fence(item)} can never be granted {'for writing' if writes else 'for reading'}: it {why}."

    def _there(self, root: str, items: tuple[str, ...], *, writes: bool) -> Iterator[str]:
        """Yield the paths as named, without following links: the sandbox refuses paths that contain one."""
        for item in items:
            if (
                item == UNSAID
                or self.objection(item, writes=writes)
                or self._has_grown(item, writes=writes)
            ):
                continue
            path = os.path.normpath(f"{root}/{item}" if not item.startswith("/") else item)
            if writes:
                with suppress(OSError):  # the sandbox reports it better
                    make_path(path, is_folder=item.endswith("/"))
            if os.path.lexists(path):
                yield path

    def objection(self, item: str, *, writes: bool) -> str:
        """Return why a path can never be granted, after following links and ignoring case; "" if it can."""
        root = Path(os.path.realpath(self.root))
        real = Path(os.path.realpath(root / item))
        if not item.startswith("/") and not real.is_relative_to(root):
            return "leads out of the workspace"
        for protected in self._protected_paths(root, writes=writes):
            if _meets(real, protected):
                name = fence(protected.name if protected.is_relative_to(root) else str(protected))
                if not protected.is_relative_to(real) or protected == real:
                    return f"is, or lies in, {name}"
                return f"holds {name}; what lies beside that can be granted by its own name"
        if writes:
            return _against_writing(item, real, root)
        if is_state(real):
            return "is, or lies in, the state of a workspace"
        path = state_in(real).path
        return f"holds the state of a workspace: {fence(path)}" if path else ""

    def is_listed(self, name: str) -> bool:
        """Check whether a list of the workspace's folder has this name: no hidden ones, state, settings or secrets."""
        if name.startswith(".") or plain(name) in _NOT_LISTED:
            return False
        return not self.is_kept(Path(os.path.realpath(self.root), name))

    def is_kept(self, real: Path) -> bool:
        """Return whether a path is where nothing can ever be granted, so that its contents are not disclosed."""
        return any(
            real.is_relative_to(place)
            for place in self._protected_paths(Path(os.path.realpath(self.root)), writes=False)
        )

    @staticmethod
    def _protected_paths(root: Path, *, writes: bool) -> Iterator[Path]:
        yield root / STATE
        yield data_folder()
        yield config_folder()
        yield from (Path.home() / name for name in _KEYS)
        yield from map(Path, _SYSTEM)
        if writes:
            yield from (root / name for name in UNWRITTEN)
            yield from OF_THE_PROGRAM


def _paths(grants: Grants) -> Iterator[tuple[Literal["read", "write"], str]]:
    """Yield what may be read or written with all that lies in it."""
    yield from (("write", item) for item in grants.write if item != UNSAID)
    yield from (("read", item) for item in grants.read if item not in (UNSAID, WORKSPACE))


def _look(folder: Path, *, writes: bool) -> RepositorySearch:
    return repository_in(folder) if writes else state_in(folder)


def _against_writing(item: str, real: Path, root: Path) -> str:
    if is_own(item) or is_own(real) or is_part(real):
        return "is, or lies in, what a repository or a workspace keeps for itself"
    if around := owner_around(real, root):
        return f"lies in a bare repository or another workspace: {fence(str(around))}"
    path = repository_in(real).path
    return f"is a repository or a workspace, or holds one: {fence(path)}" if path else ""


def make_path(path: str, *, is_folder: bool) -> None:
    """Create a missing file or folder, and the folders above it, without following links."""
    *parents, last = path.strip("/").split("/")
    parts = [*parents, last] if is_folder else parents
    with folder_access.folder(Path("/"), parts, make=True, lists=False) as folder_fd:
        if not is_folder:
            with suppress(FileExistsError):
                os.close(
                    folders.open_in(
                        last, folder_fd, os.O_CREAT | os.O_EXCL | os.O_WRONLY | machine.CLOEXEC
                    )
                )


def _meets(real: Path, protected: Path) -> bool:
    """Check whether one path is or contains the other: by name in any case and form, or by system identity."""
    ours, theirs = [plain(part) for part in real.parts], [plain(part) for part in protected.parts]
    if ours[: len(theirs)] == theirs or theirs[: len(ours)] == ours:
        return True
    within = [_identity(path) for path in (real, *real.parents)]
    around = [_identity(path) for path in (protected, *protected.parents)]
    return (around[0] is not None and around[0] in within) or (
        within[0] is not None and within[0] in around
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


_LOG: Final = logging.getLogger("knapper.grants")
_MOST_NAMED: Final = 5


class WrittenPlaces:
    """The files and folders that one call may write: from its start, or from a yes while it runs.

    Each is looked through before the call can write there, so that the look afterwards knows what has grown. The host
    makes a change for the call while it holds them, and none after that look.
    """

    def __init__(self) -> None:
        self._were_large: dict[
            str, bool
        ] = {}  # path → whether it could not be looked through before
        self._one_at_a_time = threading.Lock()
        self._is_over = False

    def __bool__(self) -> bool:
        """Return whether the call may write anywhere."""
        return bool(self._were_large)

    def add(self, paths: Iterable[str]) -> None:
        """Add places where the call cannot write yet."""
        for path in paths:
            if path not in self._were_large:
                self._were_large[path] = _is_large(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the places for one change, from its check on.

        Raises:
            RequestRefused: the call is over.
        """
        with self._one_at_a_time:
            if self._is_over:
                raise RequestRefused("the call is over")
            yield

    def disarmed(self) -> str:
        """End the changes. Return why a result is withheld: a repository or a workspace, or too much to check."""
        with self._one_at_a_time:
            self._is_over = True
        names: list[str] = []
        grown = sorted(
            path
            for path, was_large in self._were_large.items()
            if not was_large and _is_large(path)
        )
        for path in map(Path, self._were_large):
            try:
                if path.is_dir() and not path.is_symlink():
                    names += [
                        str(path / name)
                        for name in disarm(path, FAR if str(path) in grown else NEAR)
                    ]
                elif path.exists() and is_part(path):
                    with folder_access.folder(path.parent, ()) as folder_fd:
                        rename(path.name, folder_fd)
                    names.append(str(path))
            except OSError as error:
                where = f"{fence(str(path))}, which cannot be renamed: {error.strerror}"
                return f"It made a repository or a workspace in {where}. Remove it."
        if names:
            named = ", ".join(map(fence, names[:_MOST_NAMED])) + (
                " and more" if len(names) > _MOST_NAMED else ""
            )
            why = "git, Knapper and programs like them run as you what such a folder says"
            told = f"so its result is withheld, and {named} was renamed"
            return f"It made what is taken for a repository or a workspace, {told}: {why}."
        hidden = [path for path in grown if not repository_in(Path(path), FAR).is_whole]
        if not hidden:
            return ""
        message = f"It wrote more into {fence(hidden[0])} than can be looked through for repositories and workspaces"
        return f"{message}, so its result is withheld. Look there yourself before you run git or Knapper in it."


async def without_repositories(
    running: Awaitable[Outcome], places: WrittenPlaces, writable: Sequence[str]
) -> Outcome:
    """Return the outcome of a call: as killed if a repository or a workspace is left, or too much to check.

    It may write what is `writable` from its start, and the `places` that are added while it runs.
    """
    if writable:
        await asyncio.to_thread(places.add, writable)
    outcome: Outcome | None = None
    reason = ""
    try:
        outcome = await running
    finally:  # even if it was interrupted
        if places:
            reason = await asyncio.to_thread(places.disarmed)
        if reason and outcome is None:
            _LOG.warning(reason)
    if not reason:
        return outcome
    if isinstance(outcome, Refused):
        return Refused(reason)
    return Killed(reason, outcome.output, outcome.seconds, outcome.memory, outcome.cpu_s)


def _is_large(path: str) -> bool:
    return not repository_in(Path(path)).is_whole
