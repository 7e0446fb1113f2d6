"""Saving a module's file: only if it still is what the writer read, through a temporary file and a rename.

`root` is the folder `functions/`, and a path is what `Source.path` says ("functions/web/pages.py").
"""

import difflib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..errors import StaleFile, WorkspaceError
from ..problem import Problem
from .source import FOLDER, hash_of, module_of

_BOM = b"\xef\xbb\xbf"
_CANNOT_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)  # file systems without hard links
_LONGEST_DIFF = 4_000
_MOST_LINES = 2_000  # of two texts that are compared: the time grows with their product


def save(root: Path, path: str, text: str, expected_version: str | None) -> None:
    """Write a module's file; `expected_version` is the hash of the text that the writer read, None for a new file.

    Raises:
        StaleFile: the file is another than the writer read; the message shows the difference.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be written.
    """
    target = _target(root, path)
    with explained(path):
        before = _check(target, path, text, expected_version)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = (_BOM if before.startswith(_BOM) else b"") + text.encode("utf-8")
        temporary = _write_beside(target, content, exists=expected_version is not None)
        try:
            # Once more, as late as can be: what somebody saved meanwhile is theirs.
            _check(target, path, text, expected_version)
            _put(temporary, target, is_new=expected_version is None)
        except FileExistsError:
            _check(target, path, text, expected_version)
            raise
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(target.parent)


def remove(root: Path, path: str, expected_version: str) -> None:
    """Delete a module's file, if it still is what the caller read.

    Raises:
        StaleFile: it is not.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be removed.
    """
    target = _target(root, path)
    with explained(path):
        _check(target, path, "", expected_version)
        target.unlink()
        _sync_folder(target.parent)


def _target(root: Path, path: str) -> Path:
    given = PurePosixPath(path)
    inside = PurePosixPath(*given.parts[1:])
    module = module_of(inside) if given.parts[:1] == (FOLDER,) and inside.parts else None
    if module is None or isinstance(module, Problem):
        reason = module.what if module else f"`{path}` is not below `{FOLDER}/`"
        raise WorkspaceError(f"{reason}, so it is not written.", mend="Name a module in that folder.")
    target = root / inside
    for one in (target, *target.parents[: len(inside.parts) - 1]):
        if one.is_symlink():
            shown = f"{FOLDER}/{one.relative_to(root).as_posix()}"
            raise WorkspaceError(f"`{shown}` is a link, so it is not written.", mend="Put the file itself there.")
    return target


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns what the system refuses into an error that says which file, why, and what to check."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        mend = "Check the folder's rights and the free space; nothing was changed."
        raise WorkspaceError(f"`{path}` cannot be written: {reason}.", mend=mend) from error
    except UnicodeEncodeError as error:
        what = f"`{path}` cannot be written: character {error.start} is half of a pair and has no UTF-8 form."
        raise WorkspaceError(what, mend="Write that character whole, or as an escape.") from error


def _check(target: Path, path: str, text: str, expected_version: str | None) -> bytes:
    """What is in the file, if it is what the writer read."""
    try:
        content = _content(target)
    except FileNotFoundError:
        if expected_version is None:
            return b""
        raise StaleFile(f"`{path}` is gone since it was read.", mend="Read the folder again.") from None
    now = content.removeprefix(_BOM).decode("utf-8", "replace")
    if expected_version is not None and hash_of(now) == expected_version:
        return content
    said = "exists already" if expected_version is None else "was changed by somebody since it was read"
    diff = _difference(now, text, path)
    shown = diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}…\n"
    raise StaleFile(
        f"`{path}` {said}, so it was not overwritten:\n{shown}", mend="Read it again, then make the change."
    )


def _content(target: Path) -> bytes:
    # Not blocking: a pipe that stands in the way must not stop the program.
    with os.fdopen(os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EEXIST, "something that is no regular file has its name")
        return file.read()


def _difference(now: str, text: str, path: str) -> str:
    before, after = now.splitlines(keepends=True), text.splitlines(keepends=True)
    if len(before) + len(after) > _MOST_LINES:
        return f"(it has {len(before):,} lines now; {len(after):,} were not written)\n"
    lines = difflib.unified_diff(before, after, f"{path} (now)", f"{path} (not written)")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _write_beside(target: Path, content: bytes, *, exists: bool) -> Path:
    """A hidden file in the same folder with the content, on disk, and with the rights of what it will replace."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), target.stat().st_mode & 0o777 if exists else 0o644)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _put(temporary: Path, target: Path, *, is_new: bool) -> None:
    if is_new:
        try:
            os.link(temporary, target)  # refuses if somebody was quicker, where a rename would overwrite
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
        else:
            return
    temporary.replace(target)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
