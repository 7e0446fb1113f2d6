"""`functions/requirements.lock`: the pins of granted requirements, one section per set of them.

The host alone writes it. It is never handed to pip, and it installs nothing: it says what may be asked for.
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_core.base.untrusted import fence
from sandbox.wire.lines import bare_lines

from ..grants.items import written
from .failures import PackagesError
from .resolution import Pin

NAME = "requirements.lock"
PATH = f"functions/{NAME}"
_HEAD = """\
# What the packages that functions are granted are pinned to, with the hash of each file. Toolwright alone writes it.
# It installs nothing by itself: each user is asked, and sees what would be installed.
"""
_SECTION = re.compile(r"# for: (.+)")
_PIN = re.compile(r"(\S+)==(\S+) --hash=sha256:(\S+)")
_LIMIT = 1 << 20

Sections = Mapping[tuple[str, ...], tuple[Pin, ...]]


@dataclass(frozen=True, slots=True)
class Locked:
    """The sections by their requirements; `problem` says what was not understood, and then nothing in the file
    counts.
    """

    sections: Sections = field(default_factory=dict)
    problem: str = ""


class Lock:
    """The lock file in the folder of functions."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NAME
        self._known: tuple[object, Locked] = (None, Locked())

    def read(self) -> Locked:
        """Return the current contents; if the file is unchanged, this costs one `stat`."""
        try:
            status = os.stat(self._file, follow_symlinks=False)  # noqa: PTH116 - before every call
        except OSError:
            return Locked()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp != self._known[0]:
            self._known = (stamp, self._read())
        return self._known[1]

    def put(self, requirements: tuple[str, ...], pins: tuple[Pin, ...]) -> None:
        """Add a section, or replace it.

        Raises:
            PackagesError: the file holds what is not understood, or cannot be written.
        """
        self._write({**self._understood(), requirements: pins})

    def keep(self, used_sections: Iterable[tuple[str, ...]]) -> None:
        """Remove every other section.

        Raises:
            PackagesError: the file holds what is not understood, or cannot be written.
        """
        sections, used = self._understood(), set(used_sections)
        remaining = {section: pins for section, pins in sections.items() if section in used}
        if remaining != sections:
            self._write(remaining)

    def _understood(self) -> Sections:
        locked = self.read()
        if locked.problem:
            raise PackagesError(
                locked.problem, fix="Fix it manually, or remove it: it is regenerated when it is needed."
            )
        return locked.sections

    def _read(self) -> Locked:
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
                content = file.read(_LIMIT + 1) if is_file else b""
            return (
                _parsed(content.decode("utf-8")) if is_file and len(content) <= _LIMIT else _odd("is not a plain file")
            )
        except (OSError, UnicodeDecodeError):
            return _odd("cannot be read as text")

    def _write(self, sections: Sections) -> None:
        text = text_of(sections)
        temporary = ""
        try:
            if not sections:
                self._file.unlink(missing_ok=True)
                return
            descriptor, temporary = tempfile.mkstemp(prefix=f".{NAME}.", suffix=".tmp", dir=self._file.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, 0o644)
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            Path(temporary).replace(self._file)
        except OSError as error:
            if temporary:
                Path(temporary).unlink(missing_ok=True)
            raise PackagesError(f"`{PATH}` cannot be written: {error.strerror}.", fix="Check its rights.") from error


def text_of(sections: Sections) -> str:
    """Return the whole text of the file."""
    lines = [_HEAD]
    for requirements in sorted(sections):
        lines += [f"# for: {', '.join(requirements)}", *map(str, sorted(sections[requirements])), ""]
    return "\n".join(lines)


def _parsed(text: str) -> Locked:
    sections: dict[tuple[str, ...], tuple[Pin, ...]] = {}
    inside: tuple[str, ...] = ()
    for number, line in enumerate(bare_lines(text), 1):
        if heading := _SECTION.fullmatch(line):
            inside = tuple(heading[1].split(", "))
            if (
                any(written("packages", requirement) != requirement for requirement in inside)
                or tuple(sorted(set(inside))) != inside
            ):
                return _odd(f"has no requirements in line {number} ({fence(line, 80)})")
            sections[inside] = ()
        elif line.strip() and not line.startswith("#"):
            match = _PIN.fullmatch(line)
            pin = Pin.of(match[1], match[2], match[3]) if match else None
            if pin is None or not inside or pin.project in {earlier.project for earlier in sections[inside]}:
                return _odd(f"has no pin in line {number} ({fence(line, 80)})")
            sections[inside] += (pin,)
    return Locked({section: tuple(sorted(pins)) for section, pins in sections.items()})


def _odd(problem: str) -> Locked:
    return Locked(problem=f"`{PATH}` {problem}, so none of it counts.")
