"""Writes a module's file, only if it is still what the writer read, through a temporary file and a rename.

`root` is the folder `functions/`, and a path has the form of `ModuleSource.path` ("functions/web/pages.py").
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent_core.base import folders, machine
from agent_core.base.errors import StaleFile, WorkspaceError
from agent_core.base.matching import diff_lines
from agent_core.base.problem import Problem
from sandbox.wire.lines import lines_of

from . import folder_access
from .source import FOLDER, hash_of, module_of

_BOM = b"\xef\xbb\xbf"
_CANNOT_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)  # file systems without hard links
_LONGEST_DIFF = 4_000


def save(root: Path, path: str, text: str, expected_version: str | None) -> None:
    """Write a module's file; `expected_version` is the hash of the text that the writer read, None for a new file.

    Raises:
        StaleFile: the file differs from what the writer read; the message shows the difference.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be written.
    """
    _save(root, path, _parts(root, path), text, expected_version)


def save_text(root: Path, path: str, text: str, expected_version: str | None) -> None:
    """Write a text that is not a module, such as `helpers/NAME.toml` below the workspace `root`, in the same way.

    Raises:
        StaleFile: the file differs from what the writer read; the message shows the difference.
        WorkspaceError: the path goes through a link, or cannot be written.
    """
    _save(root, path, PurePosixPath(path).parts, text, expected_version)


def _save(root: Path, path: str, parts: Sequence[str], text: str, expected_version: str | None) -> None:
    with explained(path), _folder_of(root, path, parts, expected_version) as folder_fd:
        target = _File(folder_fd, parts[-1], path)
        before = target.check(text, expected_version)
        content = (_BOM if before.startswith(_BOM) else b"") + text.encode("utf-8")
        temporary = target.write_beside(content, exists=expected_version is not None)
        try:
            # Check again as late as possible, to keep what someone else saved meanwhile.
            target.check(text, expected_version)
            target.put(temporary, is_new=expected_version is None)
        except FileExistsError:
            target.check(text, expected_version)
            raise
        finally:
            with suppress(FileNotFoundError):
                folders.remove(temporary, folder_fd)
        folders.save(folder_fd)


def remove(root: Path, path: str, expected_version: str) -> None:
    """Delete a module's file if it is still what the caller read.

    Raises:
        StaleFile: the file has changed.
        WorkspaceError: the path leaves the folder, goes through a link, or cannot be removed.
    """
    _remove(root, path, _parts(root, path), expected_version)


def remove_text(root: Path, path: str, expected_version: str) -> None:
    """Delete a text that is not a module if it is still what the caller read.

    Raises:
        StaleFile: the file has changed.
        WorkspaceError: the path goes through a link, or cannot be removed.
    """
    _remove(root, path, PurePosixPath(path).parts, expected_version)


def _remove(root: Path, path: str, parts: Sequence[str], expected_version: str) -> None:
    with explained(path), _folder_of(root, path, parts, expected_version) as folder_fd:
        _File(folder_fd, parts[-1], path).check("", expected_version)
        folders.remove(parts[-1], folder_fd)
        folders.save(folder_fd)


@contextmanager
def _folder_of(root: Path, path: str, parts: Sequence[str], expected_version: str | None) -> Iterator[int]:
    """Yield the descriptor of the file's folder, which is created for a new file."""
    with ExitStack() as stack:
        try:
            folder_fd = stack.enter_context(folder_access.folder(root, parts[:-1], make=expected_version is None))
        except FileNotFoundError:
            raise _file_gone(path) from None
        yield folder_fd


def _parts(root: Path, path: str) -> tuple[str, ...]:
    pure_path = PurePosixPath(path)
    inside = PurePosixPath(*pure_path.parts[1:])
    module = module_of(inside) if pure_path.parts[:1] == (FOLDER,) and inside.parts else None
    if module is None or isinstance(module, Problem):
        reason = module.message if module else f"`{path}` is not below `{FOLDER}/`"
        raise WorkspaceError(f"{reason}, so it is not written.", fix="Name a module in that folder.")
    target = root / inside
    for part in (target, *target.parents[: len(inside.parts) - 1]):
        if os.path.islink(part):  # noqa: PTH114 - where it cannot be seen, the write says so
            shown = f"{FOLDER}/{part.relative_to(root).as_posix()}"
            raise WorkspaceError(f"`{shown}` is a link, so it is not written.", fix="Put the file itself there.")
    return inside.parts


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Convert system errors to a WorkspaceError that says which file, why, and what to check."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        fix = "Check the folder's rights and the free space; nothing was changed."
        raise WorkspaceError(f"`{path}` cannot be written: {reason}.", fix=fix) from error
    except UnicodeEncodeError as error:
        message = f"`{path}` cannot be written: character {error.start} is half of a pair and has no UTF-8 form."
        raise WorkspaceError(message, fix="Write that character whole, or as an escape.") from error


def _file_gone(path: str) -> StaleFile:
    return StaleFile(f"`{path}` is gone since it was read.", fix="Read the folder again.")


@dataclass(frozen=True, slots=True)
class _File:
    """A file identified by the descriptor of its folder, so that the checked file is the one that is written."""

    folder_fd: int
    name: str
    path: str

    def check(self, text: str, expected_version: str | None) -> bytes:
        """Return the content of the file if it is still what the writer read.

        Raises:
            StaleFile: it has changed, is gone, or already exists.
        """
        try:
            with os.fdopen(folder_access.read_only(self.name, self.folder_fd), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError(errno.EEXIST, "something that is not a regular file has its name")
                content = file.read()
        except FileNotFoundError:
            if expected_version is None:
                return b""
            raise _file_gone(self.path) from None
        now = content.removeprefix(_BOM).decode("utf-8", "replace")
        if expected_version is not None and hash_of(now) == expected_version:
            return content
        reason = "exists already" if expected_version is None else "was changed by somebody since it was read"
        lines = diff_lines(lines_of(now), lines_of(text), (f"{self.path} (now)", f"{self.path} (not written)"))
        diff = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        shown = diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}…\n"
        raise StaleFile(
            f"`{self.path}` {reason}, so it was not overwritten:\n{shown}", fix="Read it again, then make the change."
        )

    def write_beside(self, content: bytes, *, exists: bool) -> str:
        """Write the content to a hidden file in the same folder, with the permissions of the file that it replaces.

        The content is flushed to disk.
        """
        name = f".{self.name}.{secrets.token_hex(6)}.tmp"
        mode = folders.mode_of(self.name, self.folder_fd) if exists else 0o644
        descriptor = folders.open_in(name, self.folder_fd, machine.MAKING, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                machine.change_mode(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            folders.remove(name, self.folder_fd)
            raise
        return name

    def put(self, temporary: str, *, is_new: bool) -> None:
        """Rename the written file to its final name."""
        if is_new:
            try:  # unlike a rename, a link fails if the file exists
                folders.link(temporary, self.name, self.folder_fd)
            except OSError as error:
                if error.errno not in _CANNOT_LINK:
                    raise
            else:
                # Watchers react when a file is closed, but a hard link only creates a name, as for a file that someone
                # is still writing. So close it again.
                with suppress(OSError):  # it is already gone, so there is nothing to report
                    flags = os.O_WRONLY | machine.NOFOLLOW | machine.CLOEXEC
                    os.close(folders.open_in(self.name, self.folder_fd, flags))
                return
        folders.replace(temporary, self.name, self.folder_fd)
