"""Changes to folders and to what lies in them: what the kernel does not allow is put to the host, as opening a file is.

The host asks the user for a new folder, and makes it. It asks for nothing else here: to remove, rename or link takes a
grant of the folder beforehand, and the error names it, where the kernel would only say that there is no such file.
"""

import errno
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from .files import Opener

SHUT: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EROFS})
"""The errors of the kernel that may mean that a file was not granted."""
Kind: TypeAlias = Literal["folder", "names", "marks"]
_KINDS: Final[dict[Callable[..., None], Kind]] = {
    os.mkdir: "folder",
    **dict.fromkeys((os.remove, os.unlink, os.rmdir, os.rename, os.replace, os.link, os.symlink), "names"),
    **dict.fromkeys((os.chmod, os.utime, os.truncate), "marks"),
}
_MADE: Final = frozenset({"rename", "replace", "truncate"})  # of which the host needs more than the path
_MOVES: Final = frozenset({"rename", "replace", "link", "symlink"})  # their second argument is a path, too


def install(opener: "Opener") -> None:
    """Put the asking ways to change folders in place."""
    for real, kind in _KINDS.items():
        setattr(os, real.__name__, _asking(opener, real, kind, 2 if real.__name__ in _MOVES else 1))
    os.makedirs = _makedirs(opener, os.makedirs)
    os.listxattr = _listxattr(opener, os.listxattr)


def _asking(opener: "Opener", real: Callable[..., None], kind: Kind, paths: int) -> Callable[..., None]:
    @functools.wraps(real)
    def change(*arguments: Any, **more: Any) -> None:  # as os has it
        if any(value is not None for key, value in more.items() if key.endswith("dir_fd")):
            return real(*arguments, **more)
        places = [place for path in arguments[:paths] if (place := opener.named(path, changes=True)) is not None]
        error: OSError | None = None
        if kind != "folder" or not places or not opener.starts_elsewhere(places[0]):
            try:
                return real(*arguments, **more)
            except OSError as failure:
                if failure.errno not in SHUT:
                    raise
                error = failure.with_traceback(None)
        if not places and error is not None:
            raise error
        act = _act(real.__name__, arguments)
        answers = [opener.request("file_change", place, error, kind=kind, act=act) for place in places[:1]]
        answers += [opener.request("file_change", place, error, kind=kind) for place in places[1:] if None in answers]
        return real(*arguments, **more) if None in answers else None

    return change


def _act(name: str, arguments: tuple[Any, ...]) -> list[Any]:
    """Return the change as the host may make it: its name, and what follows the path."""
    rest = [os.fspath(value) if isinstance(value, os.PathLike) else value for value in arguments[1:]]
    return [name, *(value for value in rest if isinstance(value, str | int))] if name in _MADE else [name]


def _makedirs(opener: "Opener", real: Callable[..., None]) -> Callable[..., None]:
    """Make one request of a path of several new folders."""

    @functools.wraps(real)
    def makedirs(name: Any, mode: int = 0o777, exist_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as os has it
        place = opener.named(name, changes=True)
        if place is None or not opener.starts_elsewhere(place):
            return real(name, mode, exist_ok)
        try:
            answer = opener.request("file_change", place, None, kind="folder", act=["mkdir"])
        except FileExistsError:
            if not exist_ok:
                raise
            return None
        return real(name, mode, exist_ok) if answer is None else None

    return makedirs


def _listxattr(opener: "Opener", real: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Say that a file of the host that may be read has no marks beyond those of `stat`: who copies a file asks."""

    @functools.wraps(real)
    def listxattr(path: Any = None, *, follow_symlinks: bool = True) -> list[str]:  # as os has it
        try:
            return real(path, follow_symlinks=follow_symlinks)
        except OSError as error:
            place = opener.named(path) if error.errno in SHUT else None
            if place is None:
                raise
            opener.request("file_stat", place, error)
            return []

    return listxattr
