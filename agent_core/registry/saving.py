"""Saving a module's file: only if it still is what the writer read, through a temporary file and a rename.

`root` is the folder `functions/`, and a path is what `Source.path` says ("functions/web/pages.py").
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbox.lines import lines_of

from ..errors import StaleFile, WorkspaceError
from ..matching import diff_lines
from ..problem import Problem
from . import within
from .source import FOLDER, hash_of, module_of

_BOM = b"\xef\xbb\xbf"
_CANNOT_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)  # file systems without hard links
_LONGEST_DIFF = 4_000


def save(root: Path, path: str, text: str, expected_version: str | None) -> None:
    """Write a module's file; `expected_version` is the hash of the text that the writer read, None for a new file.

    Raises:
        StaleFile: the file is another than the writer read; the message shows the difference.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be written.
    """
    parts = _parts(root, path)
    with explained(path), _folder_of(root, path, parts, expected_version) as held:
        target = _File(held, parts[-1], path)
        before = target.check(text, expected_version)
        content = (_BOM if before.startswith(_BOM) else b"") + text.encode("utf-8")
        temporary = target.write_beside(content, exists=expected_version is not None)
        try:
            # Once more, as late as can be: what somebody saved meanwhile is theirs.
            target.check(text, expected_version)
            target.put(temporary, is_new=expected_version is None)
        except FileExistsError:
            target.check(text, expected_version)
            raise
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=held)
        os.fsync(held)


def remove(root: Path, path: str, expected_version: str) -> None:
    """Delete a module's file, if it still is what the caller read.

    Raises:
        StaleFile: it is not.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be removed.
    """
    parts = _parts(root, path)
    with explained(path), _folder_of(root, path, parts, expected_version) as held:
        _File(held, parts[-1], path).check("", expected_version)
        os.unlink(parts[-1], dir_fd=held)
        os.fsync(held)


@contextmanager
def _folder_of(root: Path, path: str, parts: Sequence[str], expected_version: str | None) -> Iterator[int]:
    """The folder that holds the file; made for a new one."""
    with ExitStack() as stack:
        try:
            held = stack.enter_context(within.folder(root, parts[:-1], make=expected_version is None))
        except FileNotFoundError:
            raise _gone(path) from None
        yield held


def _parts(root: Path, path: str) -> tuple[str, ...]:
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
    return inside.parts


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


def _gone(path: str) -> StaleFile:
    return StaleFile(f"`{path}` is gone since it was read.", mend="Read the folder again.")


@dataclass(frozen=True, slots=True)
class _File:
    """A file by the descriptor of its folder, so that what is looked at is what is written."""

    held: int
    name: str
    path: str

    def check(self, text: str, expected_version: str | None) -> bytes:
        """What is in the file, if it is what the writer read."""
        try:
            content = self._content()
        except FileNotFoundError:
            if expected_version is None:
                return b""
            raise _gone(self.path) from None
        now = content.removeprefix(_BOM).decode("utf-8", "replace")
        if expected_version is not None and hash_of(now) == expected_version:
            return content
        said = "exists already" if expected_version is None else "was changed by somebody since it was read"
        diff = _difference(now, text, self.path)
        shown = diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}…\n"
        raise StaleFile(
            f"`{self.path}` {said}, so it was not overwritten:\n{shown}", mend="Read it again, then make the change."
        )

    def _content(self) -> bytes:
        with os.fdopen(within.read_only(self.name, self.held), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EEXIST, "something that is no regular file has its name")
            return file.read()

    def write_beside(self, content: bytes, *, exists: bool) -> str:
        """A hidden file in the same folder with the content, on disk, and with the rights of what it will replace."""
        name = f".{self.name}.{secrets.token_hex(6)}.tmp"
        mode = os.stat(self.name, dir_fd=self.held, follow_symlinks=False).st_mode & 0o777 if exists else 0o644
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self.held)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            os.unlink(name, dir_fd=self.held)
            raise
        return name

    def put(self, temporary: str, *, is_new: bool) -> None:
        """Give the written file its name."""
        if is_new:
            try:  # refuses if somebody was quicker, where a rename would overwrite
                os.link(temporary, self.name, src_dir_fd=self.held, dst_dir_fd=self.held)
            except OSError as error:
                if error.errno not in _CANNOT_LINK:
                    raise
            else:
                return
        os.replace(temporary, self.name, src_dir_fd=self.held, dst_dir_fd=self.held)


def _difference(now: str, text: str, path: str) -> str:
    lines = diff_lines(lines_of(now), lines_of(text), (f"{path} (now)", f"{path} (not written)"))
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
