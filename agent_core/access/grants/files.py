"""The files that a running function requests: one call's questions about them, and the files it was given.

The worker only names a path. The host resolves it, asks a human about the real file, and opens exactly that file by its
descriptors. Its bytes cross in pieces, so no descriptor is passed on, and all are closed with the call.
"""

import asyncio
import errno
import itertools
import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from agent_core.base import machine
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import fence
from agent_core.base.user_folders import home
from sandbox import Access, RequestRefused
from sandbox.access import AccessRefused
from sandbox.confine.opened_grants import OpenedGrant, opened

from ..call_exit import CallExit
from .permit import UNWRITTEN, AccessResolver, CallFlow, Permit, WrittenPlaces, make_path
from .value import NOTHING, UNSAID, WORKSPACE, Grants, oddity, written

MOST_ASKED: Final = 5  # files and folders that one call may ask a human for
_MOST_OPEN: Final = 32
_MOST_MISSED: Final = 20  # looks of one call at what is not there: it may not try all names
_LONGEST_PATH: Final = 4_096
_TILDE: Final = "only `os.path.expanduser` turns `~` into the home folder, and it was not called; give the whole path"
_NOT_ENTERED: Final = (
    "where the host opens files for a function, it can read and write granted folders, and not enter them: name the "
    "file by its whole path"
)
_NOT_MADE: Final = (
    "where the host opens files for a function, it makes folders, removes, renames and truncates, and changes no links "
    "or rights"
)
_KIND_OF_ACT: Final = {  # an operation, and what it needs the right to change
    **dict.fromkeys(("mkdir", "makedirs"), "folder"),
    **dict.fromkeys(("remove", "unlink", "rmdir", "rename", "replace"), "names"),
    **dict.fromkeys(("truncate", "utime"), "marks"),
}
_SECOND_NAME: Final = "this file has another name, too (a hard link), so it is not changed"
_UNREADABLE: Final = "it is too long, or not in a form that can be read"
_MOST_LISTED: Final = 10_000
_PIECE: Final = 1 << 20
_KINDS: Final = ("read", "write")
_LOOKS: Final = frozenset({"file_stat", "file_list"})
_MODES: Final = frozenset({"r", "+r", "w", "+w", "a", "+a", "x", "+x"})
# Programs look there for their own settings: a question about each would train a human to approve everything.
_SYSTEM: Final = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
)
_SHARED: Final = ("/usr", "/var", sys.prefix, sys.base_prefix)

_numbers = itertools.count(
    1
)  # unique in the process: what one call opened is not what another names


@dataclass(frozen=True, slots=True)
class _Asked:
    """A path that a worker named: in its own words, its real location, and its name in a grant."""

    sent: str
    real: Path
    item: str
    is_inside: bool

    @property
    def above(self) -> "_Asked":
        """The folder around it."""
        name = self.item.rstrip("/")
        folder = name.rpartition("/")[0] or ("" if name.startswith("/") else ".")
        return replace(self, real=self.real.parent, item=f"{folder}/")

    def grants(self, *, writes: bool) -> Grants:
        """Return the grants that reading it, or writing it, needs."""
        return Grants(write=(self.item,)) if writes else Grants(read=(self.item,))


@dataclass(slots=True)
class _Stream:
    descriptor: int
    appends: bool
    asked: _Asked


class _NotGranted(RequestRefused):
    """A refusal for lack of a grant. If nobody is asked, what it is about is simply not there."""


class _OfTheSystem(_NotGranted):
    """A refusal for a path of the system, of Python or of a package, for which nobody is asked."""


class FileRequests:
    """Answers a call's requests for files. If its exit asks nobody for a path, what is not granted is not there."""

    _kind = "call"

    def __init__(
        self, resolver: AccessResolver, function: str, permit: Permit, exit: CallExit
    ) -> None:
        self._resolver = resolver
        self._function = function
        self._permit = permit
        self._exit = exit
        self._given = permit.given  # during this call
        self.places = WrittenPlaces()
        """Where the call may write; what is given for writing is added."""
        self._noes: dict[Grants, str] = {}
        self.named: Callable[[], Iterable[str]] = (
            tuple  # texts that may name a path: its arguments and its source
        )
        self.opens: Callable[[], Iterable[tuple[str, bool]]] = (
            tuple  # paths that it will open, True to be written
        )
        self.is_typed: Callable[[], bool] = lambda: (
            False
        )  # whether a user types the current code at a debugger
        self.is_shown = (
            True  # whether a worker can directly access what was granted before the call
        )
        self._questions = 0
        self._misses = 0
        self._one_at_a_time = asyncio.Lock()
        self._streams: dict[int, _Stream] = {}

    @cached_property
    def _root(self) -> Path:
        """The workspace without symbolic links: resolved at the first request, which most calls never make."""
        return Path(os.path.realpath(self._resolver.root))

    async def begin(self) -> None:
        """Add the files that were asked for before the call to the places where it may write."""
        if self._given.write:
            await asyncio.to_thread(self._add_places, self._given)

    def close(self) -> None:
        """Close every file that is still open."""
        for number in list(self._streams):
            self._drop(number)

    async def answer(
        self, name: str, arguments: Mapping[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
        """Return the answer to one request; an error of the file system is a value, too.

        Raises:
            RequestRefused: it is not granted.
        """
        dropped = arguments.get("dropped")
        for number in dropped if isinstance(dropped, list) else ():
            self._drop(number)
        try:
            return await self._answer(name, arguments)
        except RequestRefused as refusal:
            if not self._exit.asks_for_paths and isinstance(refusal, _NotGranted):
                return {"real": True}
            reads = name in _LOOKS or arguments.get("mode") == "r"
            # That a library made it is the worker's claim, and affects only the reporting.
            is_try = reads and (
                isinstance(refusal, _OfTheSystem) or arguments.get("is_try") is True
            )
            text = self._exit.refusal(str(refusal), *_names(arguments))
            if not self.is_typed():
                self._exit.keep(text, is_try=is_try)
            raise RequestRefused(text) from refusal
        except OSError as error:
            # By its name: the worker's system may have other numbers.
            return {"errno": errno.errorcode.get(error.errno or errno.EIO, "EIO")}

    async def _answer(
        self, name: str, arguments: Mapping[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
        match name:
            case "file_open":
                return await self._open(str(arguments.get("path")), str(arguments.get("mode")))
            case _ if name in _LOOKS:
                path, is_try = str(arguments.get("path")), arguments.get("is_try") is True
                if arguments.get("follows") is False and (facts := await self._look_at_name(path)):
                    return facts
                is_probe = arguments.get("is_probe") is True
                return await self._look(
                    path, lists=name == "file_list", is_try=is_try, is_probe=is_probe
                )
            case "file_places":
                return {"value": [str(self._root), str(home() or "")]}
            case "file_change":
                kind, act = str(arguments.get("kind")), arguments.get("act")
                return await self._change(
                    str(arguments.get("path")), kind, act if isinstance(act, list) else []
                )
            case _:
                number = arguments.get("stream")
                stream = self._streams.get(number) if isinstance(number, int) else None
                if stream is None:
                    raise RequestRefused(
                        "this file is closed: what was opened at a call ends with it"
                    )
                return {"value": await asyncio.to_thread(self._use, name, stream, arguments)}

    async def _open(self, path: str, mode: str) -> dict[str, Any]:
        if mode not in _MODES:
            raise RequestRefused("this is no mode to open a file in")
        if len(self._streams) >= _MOST_OPEN:
            raise RequestRefused(
                f"{_MOST_OPEN} files that were granted at this call are open: close some"
            )
        writes = mode != "r"
        asked = self._locate(path)
        if self._is_systems(asked):
            raise _OfTheSystem(self._untold(asked, writes=writes))
        if not writes:
            await self._require_something(asked, path)
        if not await self._require_grant(asked, writes=writes):
            return {"real": True}
        descriptor = await asyncio.to_thread(self._open_exactly, asked, mode)
        number = next(_numbers)
        self._streams[number] = _Stream(descriptor, "a" in mode, asked)
        if "w" in mode or "x" in mode:
            self._exit.note("wrote", asked.item, asked.sent)
        return {"value": number}

    async def _look(
        self, path: str, *, lists: bool, is_try: bool, is_probe: bool
    ) -> dict[str, Any]:
        """Examine a path.

        A library's attempt leads to a question only if the call or the function names the path, and something is
        there. What nobody allows looks the same as what is not there.
        """
        if lists and self._is_shown_whole(path):
            return {"real": True}
        asked = self._locate(path)
        is_around = self._root.is_relative_to(asked.real) or await asyncio.to_thread(
            self._is_around_writable, asked
        )
        if is_around and not lists:
            return {"value": list(asked.real.stat())}
        if self._leaves_to_system(asked, is_probe=is_probe):
            return {"real": True}
        has = (self._permit.grants | self._given).covers(asked.grants(writes=False))
        is_attempt = is_try and not has
        is_there = lists or os.path.lexists(asked.real)  # noqa: ASYNC240 - one look, as at each question
        if is_attempt and not (is_there and await asyncio.to_thread(self._is_named, path, asked)):
            raise _NotGranted(self._untold(asked, writes=False))
        await self._require_something(asked, path)
        try:
            is_given = await self._require_grant(asked, writes=False)
        except RequestRefused as refusal:
            if is_attempt and not lists:
                raise _NotGranted(str(refusal)) from refusal
            raise
        if not is_given and asked.item != WORKSPACE:
            return {"real": True}
        return {
            "value": await asyncio.to_thread(self._list_folder if lists else self._facts, asked)
        }

    def _is_shown_whole(self, path: str) -> bool:
        """Check whether a worker sees all of a folder, whatever its name: it is granted, or lies in one that is."""
        real = Path(os.path.realpath(self._root / path)) if "\0" not in path else Path("/")
        return self.is_shown and any(map(real.is_relative_to, self._permit.access.paths))

    def _leaves_to_system(self, asked: _Asked, *, is_probe: bool = False) -> bool:
        """Check whether a path is the system's, so that the worker's kernel answers and nobody is asked."""
        return self._is_systems(asked)

    async def _look_at_name(self, path: str) -> dict[str, Any] | None:
        """Examine a name in a granted folder, and not what a link of that name leads to; None in another folder."""
        asked = self._locate(path, follows=path.endswith("/"))
        has = (self._permit.grants | self._given).covers(asked.above.grants(writes=False))
        if self._is_systems(asked) or not has:
            return None
        if not await self._require_grant(asked.above, writes=False):
            return {"real": True}
        return {"value": await asyncio.to_thread(self._facts_of_name, asked)}

    async def _change(
        self, path: str, kind: str, act: list[Any]
    ) -> dict[str, Any]:  # Any: values that cross
        """Make a new folder, or remove or rename what is in one. All other changes need an earlier grant.

        With that grant, a worker makes the change directly, or the host does as `act` says: the name of the operation
        in `os`, and its plain arguments after the path.
        """
        if kind == "enter":
            return self._enter(path)
        if act and _KIND_OF_ACT.get(str(act[0]), kind) != kind:  # two claims about one change
            raise RequestRefused(_NOT_MADE)
        if kind == "names" and path.rstrip("/").endswith(("/.", "/..")):
            raise OSError(errno.EINVAL, "")
        asked = self._locate(path, follows=kind == "marks")
        if self._leaves_to_system(asked):
            return {"real": True}
        place = asked if kind == "marks" else asked.above
        if kind == "folder":
            place = replace(asked, item=f"{asked.item.rstrip('/')}/")
        grants = place.grants(writes=True)
        if kind == "folder" and await asyncio.to_thread(self._is_around_writable, asked):
            raise FileExistsError(errno.EEXIST, "")
        if self._permit.grants.covers(grants):
            if self.is_shown:
                return {"real": True}
            if why := self._resolver.refusal(grants, self._function):
                raise RequestRefused(why)
            if act != ["makedirs"]:
                await asyncio.to_thread(self._make_change, asked, path, act)
                return {"value": 0}
        if kind == "marks" and self._given.covers(grants):
            return {"value": 0}
        await self._change_if_granted(asked, place, path, kind, act)
        return {"value": 0}

    async def _change_if_granted(
        self, asked: _Asked, place: _Asked, path: str, kind: str, act: list[Any]
    ) -> None:  # Any: values that cross
        """Make a change for which a human is asked: of a place that was not granted before the call."""
        match kind, act:
            case "folder", _:
                await self._require_grant(place, writes=True)
                if self._doubt(asked) == "":
                    raise FileExistsError(errno.EEXIST, "")
                await asyncio.to_thread(self._make, asked, is_folder=True)
            case "names", ["remove" | "unlink" | "rmdir"] | ["rename" | "replace", str()]:
                await self._require_grant(place, writes=True)
                await asyncio.to_thread(self._make_change, asked, path, act)
            case _:
                raise _NotGranted(self._untold(place, writes=True))
        self._exit.note("wrote", place.item, place.sent)

    def _is_around_writable(self, asked: _Asked) -> bool:
        """Check whether a folder is there in which the call may write a file: nothing is left to decide about it."""
        for item in (self._permit.grants | self._given).write:
            place = self._root / item
            if item != UNSAID and place.is_relative_to(asked.real):
                return asked.real.is_dir()
        return False

    def _enter(self, path: str) -> dict[str, Any]:  # Any: values that cross
        asked = self._locate(path)
        if not self._leaves_to_system(asked):
            if not self._permit.grants.covers(asked.grants(writes=False)):
                raise _NotGranted(self._untold(asked, writes=False))
            if not self.is_shown:
                raise RequestRefused(_NOT_ENTERED)
        return {"real": True}

    def _locate(self, path: str, *, follows: bool = True) -> _Asked:
        """Return where a path really leads, with links resolved, and the item of a grant that names it.

        Unless it `follows`, a link in the last place is meant itself, as where a name is removed or renamed.

        Raises:
            RequestRefused: no grant can name it.
        """
        if len(path) > _LONGEST_PATH or "\0" in path:
            raise _NotGranted("this is no path that can be granted")
        named = Path(os.path.normpath(self._root / path))
        whole = self._root / path
        is_name = not follows and whole.name != ".." and not path.endswith("/.")
        real = (
            Path(os.path.realpath(whole.parent), whole.name)
            if is_name
            else Path(os.path.realpath(whole))
        )
        is_inside = real == self._root or real.is_relative_to(self._root)
        if not is_inside and (named == self._root or named.is_relative_to(self._root)):
            raise _NotGranted(
                f"{fence(path, 200)} can never be granted: it leads out of the workspace"
            )
        text = str(real.relative_to(self._root)) if is_inside else str(real)
        is_folder = (
            text != "/"
            and not self._resolver.is_kept(real)
            and real.is_dir()
            and not real.is_symlink()
        )
        item = written("read", f"{text}/" if is_folder else text)
        if (
            item is None
            or item == UNSAID
            or (item.rstrip("/") != text.rstrip("/") and item != "./")
        ):
            why = oddity("read", text) or (_TILDE if path.startswith("~") else _UNREADABLE)
            raise _NotGranted(f"the path {fence(text, 200)} cannot be granted: {why}")
        return _Asked(path, real, item, is_inside)

    def _is_named(self, path: str, asked: _Asked) -> bool:
        """Check whether one of the texts names a path, or a folder around it that is smaller than the workspace."""
        parts = Path(path).parts
        for text in self.named():
            name = f"{home()}{text[1:]}" if text.startswith("~/") else text
            if len(name) <= _LONGEST_PATH and "\0" not in name and Path(name).name in parts:
                place = Path(os.path.realpath(self._root / name))
                if asked.real.is_relative_to(place) and not self._root.is_relative_to(place):
                    return True
        return False

    def _is_systems(self, asked: _Asked) -> bool:
        """Check whether a path belongs to the system, to Python or to a package."""
        trees = [tree for tree in (*_SYSTEM, *_SHARED) if not self._root.is_relative_to(tree)]
        own = [
            folder for folder in self._permit.access.folders if asked.real.is_relative_to(folder)
        ]
        return bool(own) or any(asked.real.is_relative_to(tree) for tree in trees)

    async def _require_something(self, asked: _Asked, path: str) -> None:
        """Raise FileNotFoundError if nothing is at a path to be read: a human has nothing to decide about it.

        Code that is about to write a new file looks for it first, and the write asks. This is so for a few paths of a
        call, in the workspace or named by the call or the function, so that no function learns what else there is.
        """
        if (
            self._exit.asks_for_paths
            and self._misses < _MOST_MISSED
            and not os.path.lexists(asked.real)  # noqa: ASYNC240 - one look, as at each question
            and (asked.is_inside or await asyncio.to_thread(self._is_named, path, asked))
            and not self._resolver.refusal(asked.grants(writes=False), self._function)
        ):
            self._misses += 1
            raise FileNotFoundError(errno.ENOENT, "")

    async def _require_grant(self, asked: _Asked, *, writes: bool) -> bool:
        """Return whether the file was given during this call; False if the worker can access it directly.

        Raises:
            RequestRefused: it is not granted.
        """
        grants = asked.grants(writes=writes)
        async with self._one_at_a_time:
            if self._permit.grants.covers(grants):
                if why := self._resolver.refusal(grants, self._function) or self._resolver.grown(
                    grants
                ):
                    raise RequestRefused(why)
                return not self.is_shown
            if not self._given.covers(grants):
                await self._ask(asked, grants)
        return True

    async def _ask(self, asked: _Asked, grants: Grants) -> None:
        if said := self._noes.get(grants):
            raise RequestRefused(said)
        if not self._exit.asks_for_paths or self._questions >= MOST_ASKED:
            times = f"(A {self._kind} asks {MOST_ASKED} times.)"
            raise _NotGranted(f"{self._untold(asked, writes=bool(grants.write))} {times}")
        self._questions += 1
        together, sent = await asyncio.to_thread(self.with_what_follows, grants)
        doubt = "" if grants.write else self._doubt(asked)
        given, why = await self._exit.want_path(
            together, self._around(together), doubt, asked.sent, *sent
        )
        if why:
            self._noes |= {
                Grants.from_json({kind: (item,)}): why
                for kind in _KINDS
                for item in together.items(kind)
            }
            self._noes[grants] = why
            raise RequestRefused(why)
        if given.write:
            await asyncio.to_thread(self._begin_writing, given)
        self._given |= given

    def with_what_follows(self, grants: Grants) -> tuple[Grants, list[str]]:
        """Return the grants with those for the other files that this call will open, and the paths of these.

        A file that is to be read is there, and one that is to be written is there or new.
        """
        granted = self._permit.grants | self._given
        sent = list[str]()
        for path, writes in itertools.islice(self.opens(), MOST_ASKED):
            with suppress(RequestRefused, OSError):  # which the call is told when it opens the file
                own = self._grants_of_file(path, writes=writes)
                if own and not (granted.covers(own) or self._exit.hides(path)):
                    grants |= own
                    sent.append(path)
        return replace(
            grants, read=tuple(item for item in grants.read if item not in grants.write)
        ), sent

    def _grants_of_file(self, path: str, *, writes: bool) -> Grants:
        """Return what opening a file needs of a person; nothing if the system decides, or there is no such file.

        Raises:
            RequestRefused: no grant can name it.
            OSError: the path leads where this program may not look, or is too long.
        """
        asked = self._locate(path)
        grants = asked.grants(writes=writes)
        is_new = not os.path.lexists(asked.real)
        is_file = asked.real.is_file() or (is_new and writes and asked.real.parent.is_dir())
        if not is_file or self._leaves_to_system(asked, is_probe=True):
            return NOTHING
        if self._resolver.refusal(grants, self._function):
            return NOTHING
        return grants

    def _around(self, grants: Grants) -> str:
        """Return the one folder around the files, in the form of a grant, if it can be granted; otherwise ""."""
        items = [item for kind in _KINDS for item in grants.items(kind)]
        folders = {"" if item.endswith("/") else item.rpartition("/")[0] for item in items}
        around = f"{folders.pop()}/" if len(folders) == 1 else "/"
        wider = Grants.from_json(dict.fromkeys(grants.to_json(), (around,)))
        return "" if around == "/" or self._resolver.refusal(wider, self._function) else around

    def _begin_writing(self, grants: Grants) -> None:
        """Add places that were given for writing; a repository that appeared there since the question is not ours."""
        if why := self._resolver.refusal(grants, self._function):
            raise RequestRefused(why)
        self._add_places(grants)

    def _add_places(self, grants: Grants) -> None:
        self.places.add(str(self._root / item) for item in grants.write)

    @staticmethod
    def _doubt(asked: _Asked) -> str:
        return "" if os.path.lexists(asked.real) else f"{fence(asked.item)} does not exist now"

    def _untold(self, asked: _Asked, *, writes: bool) -> str:
        """Return the refusal for a path that nobody is asked about."""
        grants = asked.grants(writes=writes)
        if never := self._resolver.refusal(grants, self._function):
            return never
        return self._advised(asked, writes=writes)

    def _advised(self, asked: _Asked, *, writes: bool) -> str:
        """Return the refusal for a path that could be granted, with how."""
        flag, verb = ("--write", "write") if writes else ("--read", "read")
        how = f"knapper functions grant {self._function} {flag} {shlex.quote(asked.item)}"
        why = f"`{self._function}` may not {verb} {fence(asked.item)}, and nobody is asked for it while it runs"
        return f"{why}. Grant it at a terminal: {how}"

    def _open_exactly(self, asked: _Asked, mode: str) -> int:
        """Open exactly the requested file, not one that took its place."""
        writes = mode != "r"
        if "x" in mode and os.path.lexists(asked.real):
            raise FileExistsError(errno.EEXIST, "")
        if writes and mode != "+r":
            self._make(asked, is_folder=False)
        with self._hold(asked, writes=writes) as grant:
            if grant.is_folder:
                raise IsADirectoryError(errno.EISDIR, "")
            return machine.reopen(grant.descriptor, grant.path, _flags_of(mode))

    @contextmanager
    def _naming(self, asked: _Asked) -> Iterator[None]:
        """Hold the places of the call while the host gives a file or folder this name.

        A grant of the folder is not enough: with the names that are there now, this one may make it a repository.
        """
        with self.places.held():
            if why := self._resolver.refusal(asked.grants(writes=True), self._function):
                raise RequestRefused(why)
            yield

    def _make(self, asked: _Asked, *, is_folder: bool) -> None:
        with self._naming(asked):
            make_path(str(asked.real), is_folder=is_folder)

    def _make_change(
        self, asked: _Asked, path: str, act: list[Any]
    ) -> None:  # Any: values that cross
        """Make a change below a granted folder, in the folder that exists now, reached without links."""
        name, says_folder = asked.real.name, any(str(text).endswith("/") for text in (path, *act))
        with self._hold_folder(asked.above, writes=True) as folder:
            if (
                says_folder
                and act != ["mkdir"]
                and not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)
            ):
                raise NotADirectoryError(errno.ENOTDIR, "")
            match act:
                case ["mkdir"]:
                    with self._naming(asked):
                        os.mkdir(name, dir_fd=folder)
                case ["remove" | "unlink"]:
                    os.unlink(name, dir_fd=folder)
                case ["rmdir"]:
                    os.rmdir(name, dir_fd=folder)
                case ["rename" | "replace", str(target)]:
                    # Rename only within the held folder: moving a file elsewhere means to copy and remove it.
                    to, granted = (
                        self._locate(target, follows=False),
                        self._permit.grants | self._given,
                    )
                    if to.real.parent != asked.real.parent or not granted.covers(
                        to.grants(writes=True)
                    ):
                        raise OSError(errno.EXDEV, "")
                    with self._naming(to):
                        os.replace(name, to.real.name, src_dir_fd=folder, dst_dir_fd=folder)
                case ["rename" | "replace"]:  # from or to scratch
                    raise OSError(errno.EXDEV, "")
                case ["truncate", int(size)]:
                    size = _within(_number(size), self._permit.limits.file_size)
                    flags = os.O_WRONLY | machine.NOFOLLOW | machine.NONBLOCK | machine.CLOEXEC
                    with os.fdopen(os.open(name, flags, dir_fd=folder), "wb") as file:
                        if os.fstat(file.fileno()).st_nlink > 1:
                            raise RequestRefused(_SECOND_NAME)
                        file.truncate(size)
                case ["utime"]:
                    os.utime(name, dir_fd=folder, follow_symlinks=False)
                case _:
                    raise RequestRefused(_NOT_MADE)

    @contextmanager
    def _hold(self, asked: _Asked, *, writes: bool) -> Iterator[OpenedGrant]:
        """Hold the file or folder that is now at a path by a descriptor, reached without links."""
        path = str(asked.real)
        if not os.path.lexists(path):
            raise FileNotFoundError(errno.ENOENT, "")
        grants = asked.grants(writes=writes)
        if why := self._resolver.refusal(grants, self._function):  # changed since the question
            raise RequestRefused(why)
        access = Access(writable=(path,)) if writes else Access(readable=(path,))
        try:
            with opened(access, [str(self._root / name) for name in UNWRITTEN]) as grant:
                yield grant[0]
        except AccessRefused as refusal:
            raise RequestRefused(str(refusal)) from refusal

    @contextmanager
    def _hold_folder(self, asked: _Asked, *, writes: bool) -> Iterator[int]:
        """Hold the folder that is now at a path, in order to access its entries."""
        with self._hold(asked, writes=writes) as grant:
            if not grant.is_folder:
                raise NotADirectoryError(errno.ENOTDIR, "")
            folder = machine.reopen(
                grant.descriptor, grant.path, os.O_RDONLY | machine.DIRECTORY | machine.CLOEXEC
            )
        try:
            yield folder
        finally:
            os.close(folder)

    def _facts(self, asked: _Asked) -> list[float]:
        with self._hold(asked, writes=False) as grant:
            return list(os.fstat(grant.descriptor))

    def _facts_of_name(self, asked: _Asked) -> list[float]:
        with self._hold_folder(asked.above, writes=False) as folder:
            return list(os.lstat(asked.real.name, dir_fd=folder))

    def _list_folder(self, asked: _Asked) -> list[list[object]]:
        with self._hold_folder(asked, writes=False) as folder:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in itertools.islice(entries, _MOST_LISTED + 1))
            if len(names) > _MOST_LISTED:
                raise RequestRefused(
                    f"{fence(asked.item)} holds more than {_MOST_LISTED} names: grant it by name"
                )
            if asked.item == WORKSPACE:
                names = [name for name in names if self._resolver.is_listed(name)]
            rows = (
                (name, os.lstat(name, dir_fd=folder).st_mode) for name in names if _is_text(name)
            )
            return [[name, mode] for name, mode in rows]

    def _drop(self, number: object) -> None:
        stream = self._streams.pop(number, None) if isinstance(number, int) else None
        if stream is not None:
            with suppress(OSError):
                os.close(stream.descriptor)

    def _use(self, name: str, stream: _Stream, arguments: Mapping[str, Any]) -> bytes | int:
        """Read from an open file, or change it, as far as it was opened for that."""
        most = self._permit.limits.file_size
        match name:
            case "file_read":
                size = min(_number(arguments.get("size")), _PIECE)
                return machine.read_at(stream.descriptor, size, _number(arguments.get("at")))
            case "file_size":
                return os.fstat(stream.descriptor).st_size
            case "file_truncate":
                os.ftruncate(stream.descriptor, _within(_number(arguments.get("size")), most))
                self._exit.note("wrote", stream.asked.item, stream.asked.sent)
                return 0
            case "file_write":
                data = arguments.get("data")
                if not isinstance(data, bytes):
                    raise RequestRefused("only bytes can be written")
                at = (
                    os.fstat(stream.descriptor).st_size
                    if stream.appends
                    else _number(arguments.get("at"))
                )
                _within(at + len(data), most)
                while data:
                    written_size = machine.write_at(stream.descriptor, data, at)
                    data, at = data[written_size:], at + written_size
                self._exit.note("wrote", stream.asked.item, stream.asked.sent)
                return at
            case _:
                raise RequestRefused(f"a file has no {name}")


class ProgramFiles(FileRequests):
    """Answers a program's requests for files. It has what its agent may read; any other path needs a yes to its text.

    It has that, and the `turn_grants` that a person gave to all programs of the turn, until one of its calls is given a
    way out while it runs. What it may not reach is never said to be missing: `instead` says what it may call.
    """

    _kind = "program"

    def __init__(
        self,
        resolver: AccessResolver,
        permit: Permit,
        exit: CallExit,
        instead: str,
        flow: CallFlow,
        turn_grants: Grants = NOTHING,
    ) -> None:
        super().__init__(resolver, "", permit, exit)
        self.is_shown = False
        self._instead = instead
        self._flow = flow
        self._has_folders = True
        self._turn_grants = turn_grants
        self._given = turn_grants

    async def _require_grant(self, asked: _Asked, *, writes: bool) -> bool:
        grants, folders = asked.grants(writes=writes), self._permit.grants
        if self._flow.is_out and self._has_folders:
            self._has_folders = False
            self._permit = replace(self._permit, grants=NOTHING)
            self._given = self._given.without(self._flow.read).without(self._turn_grants)
        elif folders.covers(grants) and not self._flow.read.covers(grants):
            self._flow.read |= Grants(
                read=tuple(item for item in folders.read if Grants(read=(item,)).covers(grants))
            )
        elif self._given.covers(grants) and self._turn_grants.covers(grants):
            await asyncio.to_thread(self._begin_writing, self._turn_grants)
            self._flow.read |= Grants(read=self._turn_grants.write)
        return await super()._require_grant(asked, writes=writes)

    def _leaves_to_system(self, asked: _Asked, *, is_probe: bool = False) -> bool:
        is_systems = self._is_systems(asked)
        if is_systems and not is_probe:
            raise _OfTheSystem(self._untold(asked, writes=False))
        return is_systems

    def _enter(self, path: str) -> dict[str, Any]:  # Any: values that cross the sandbox
        asked = self._locate(path)
        if not self._leaves_to_system(asked):
            raise _NotGranted(
                f"a program cannot enter {fence(asked.item)}: name the file by its whole path"
            )
        return {"real": True}

    def _advised(self, asked: _Asked, *, writes: bool) -> str:
        return f"a program may not {'write' if writes else 'read'} {fence(asked.item)} here. {self._instead}"


def _names(arguments: Mapping[str, Any]) -> list[str]:  # Any: values that cross the sandbox
    """Return the names of files in a request, in the worker's words."""
    act = arguments.get("act")
    named = [arguments.get("path"), *(act if isinstance(act, list) else ())]
    return [name for name in named if isinstance(name, str)]


def _number(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise RequestRefused("this is no place in a file")
    return value


def _within(size: int, most: int) -> int:
    """Return a size that a file may have.

    Raises:
        OSError: it exceeds the limit of a call.
    """
    if size > most:
        raise OSError(errno.EFBIG, "")
    return size


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _flags_of(mode: str) -> int:
    """Return the flags of `os.open` for a mode of `open`."""
    flags = machine.CLOEXEC | machine.NONBLOCK | machine.NOCTTY
    if "+" in mode:
        flags |= os.O_RDWR
    elif mode != "r":
        flags |= os.O_WRONLY
    if "w" in mode:
        flags |= os.O_TRUNC
    if "a" in mode:
        flags |= os.O_APPEND
    return flags
