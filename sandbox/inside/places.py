"""The folder in which a function seems to run: that of the workspace, although its worker runs in scratch.

So `os.path.abspath("data/a.csv")` and `Path.cwd()` name the user's files, and `~/` is the user's home folder. To enter
a folder that was not granted is refused with the grant that it takes, as other changes are.
"""

import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .file_changes import SHUT
from .host_files import NotGranted

if TYPE_CHECKING:
    from .files import Opener


def install(opener: "Opener") -> None:
    """Put the replacements in place."""
    os.getcwd = _getcwd(opener)
    os.getcwdb = lambda: os.fsencode(os.getcwd())
    os.chdir = _chdir(opener, os.chdir)  # type: ignore[assignment]  # the name of its parameter
    os.access = _access(opener, os.access)
    paths = sys.modules["posixpath"]
    paths.__dict__["realpath"] = _realpath(opener, os.path.realpath)
    paths.__dict__["expanduser"] = _expanduser(opener, os.path.expanduser)
    pathlib = sys.modules["pathlib"].__dict__["Path"]
    pathlib.expanduser = lambda path: type(path)(os.path.expanduser(path))


def _getcwd(opener: "Opener") -> Callable[[], str]:
    @functools.wraps(opener.getcwd)
    def getcwd() -> str:  # as os has it
        return (opener.is_in_place() and opener.places()[0]) or opener.getcwd()

    return getcwd


def _chdir(opener: "Opener", real: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(real)
    def chdir(path: Any) -> None:  # as os has it
        if opener.is_workspace(path):
            opener.return_home(real)
            return
        try:
            real(path)
        except OSError as error:
            place = opener.named(path) if error.errno in SHUT else None
            if place is not None:
                opener.request("file_change", place, error, kind="enter")
            raise
        opener.has_left = True

    return chdir


def _access(opener: "Opener", real: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(real)
    def access(path: Any, mode: int, *, dir_fd: int | None = None, **more: Any) -> bool:  # as os has it
        if real(path, mode, dir_fd=dir_fd, **more):
            return True
        if dir_fd is not None or opener.named(path) is None:
            return False
        try:
            facts = os.stat(path)
        except NotGranted:
            raise
        except OSError:
            return False
        return mode == os.F_OK or bool(facts.st_mode & mode * 0o111)

    return access


def _realpath(opener: "Opener", real: Callable[..., Any]) -> Callable[..., Any]:
    """Leave links to the host, which asks for the file that is meant in truth."""

    @functools.wraps(real)
    def realpath(filename: Any, *, strict: bool = False) -> Any:  # as os.path has it
        if opener.named(filename) is None:
            return real(filename, strict=strict)
        if opener.is_workspace(filename):
            return os.getcwd()
        try:
            opener.lstat(filename)
        except (OSError, ValueError):
            if strict:
                os.stat(filename)
            return os.path.abspath(filename)
        text, here = os.fspath(filename), opener.getcwd()
        return real(os.path.join(os.fsencode(here) if isinstance(text, bytes) else here, text), strict=strict)

    return realpath


def _expanduser(opener: "Opener", real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Leave hidden names below the scratch folder, where packages keep what they store for themselves."""

    @functools.wraps(real)
    def expanduser(path: Any) -> Any:  # as os.path has it
        text = os.fspath(path)
        is_users = isinstance(text, str) and text.startswith("~/") and not text.startswith("~/.")
        if is_users and opener.is_asking and (home := opener.places()[1]):
            return home + text[1:]
        return real(path)

    return expanduser
