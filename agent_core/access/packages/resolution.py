"""The resolution of requirements: one file per project, pinned by its hash; and `functions/requirements.lock`.

The lock has the pins of granted requirements, one section per set of them. Only the host writes it. It is never passed
to pip, and it installs nothing: it says what may be requested. Where pip fails, its output becomes a sentence.
"""

import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_core.base.errors import WorkspaceError
from agent_core.base.plain_files import NotPlainError, read_plain, replace_text
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import fence, one_line
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import MESSAGE, Malformed, read_json

from ..grants.value import project, written

_REMARKS = ("WARNING: ", "DEPRECATION: ", "[notice] ")  # pip may print them after its failure
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
NO_PIP = f"Next: {one_line(sys.executable)} -m ensurepip"
# A part of pip's message that has been stable for years, and its meaning; the first match is reported.
_MEANINGS = (
    (
        r"No module named pip",
        "pip is not there for the Python that runs Knapper.",
        NO_PIP,
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "A package is not the file with the approved hash, so nothing was installed.",
        "Find out why it changed. To accept the new file, remove its section from the lock.",
    ),
    (
        r"ResolutionImpossible|conflicting dependencies",
        "These packages cannot be installed together: {told}.",
        "Grant other versions.",
    ),
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|Retrying \(|SSLError|ProxyError",
        "The package index that pip is configured for cannot be reached.",
        "Check the network or the configuration: pip config list",
    ),
    (
        r"No matching distribution found for (?P<what>\S+)",
        "There is no wheel of {what} for this Python and this machine: the name or the version is wrong, or it is"
        " published as source alone.",
        "Packages that would have to run a build of their own are never installed.",
    ),
    (
        r"No space left on device",
        "The disk is full.",
        "",
    ),
)


class PackagesError(WorkspaceError):
    """Error raised when packages cannot be resolved or installed; nothing of them was put in place."""

    code = "packages"


def meaning(output: Iterable[str]) -> PackagesError:
    """Return the error for pip's output before it failed."""
    lines = [line for line in output if line]
    text = "\n".join(lines)
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if not errors or errors[0].endswith(
        ":"
    ):  # a heading, such as that of a traceback: its last line says what happened
        errors = [
            line for line in lines if not line.startswith(_REMARKS) and not line.endswith(":")
        ][-1:]
    shown = fence(_CREDENTIALS.sub("", errors[0]), 300) if errors else "nothing"
    for pattern, template, fix in _MEANINGS:
        if match := re.search(pattern, text):
            subject = fence(match.groupdict().get("what") or "", 80)
            return PackagesError(template.format(told=shown, what=subject), fix=fix)
    return PackagesError(f"pip failed. Its last words: {shown}.", fix="See: pip config list")


_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DOWNLOADED = re.compile(r"Downloading (\S+\.whl) \(([\d.]+) ?(bytes|[kMG]B)\)")
_UNITS = {"bytes": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
_MOST_PINS = 300
_LONGEST_PIN = 300  # characters of its line
_SHOWN = 12


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """One file: the project's normalized name, the version, the SHA-256 of the wheel."""

    project: str
    version: str
    sha256: str

    @classmethod
    def of(cls, name: str, version: str, sha256: str) -> "Pin | None":
        """Return a pin if each of the three values is valid, else None."""
        is_one = (
            written("packages", name) == name
            and _VERSION.fullmatch(version)
            and _SHA256.fullmatch(sha256)
        )
        return cls(project(name), version, sha256) if is_one else None

    @classmethod
    def read(cls, line: str) -> "Pin | None":
        """Return the pin in a line as `str` writes it, else None."""
        if len(line) > _LONGEST_PIN:
            return None
        requirement, _, sha256 = line.partition(" --hash=sha256:")
        name, _, version = requirement.partition("==")
        return cls.of(name, version, sha256)

    def __str__(self) -> str:
        return f"{self.project}=={self.version} --hash=sha256:{self.sha256}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """Requirements, in order, and their pins; the sizes of files as far as they are known."""

    requirements: tuple[str, ...]
    pins: tuple[Pin, ...]
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)
    is_installed: bool = False
    doubt: str = ""
    """Why a set that is there, and was approved, does not count."""

    @property
    def digest(self) -> str:
        """The name of the folder: for exactly these files and this interpreter."""
        return digest_of(self.pins)

    def sentences(self) -> tuple[str, ...]:
        """Return the lines that the user reads before the installation."""
        projects = {project(requirement) for requirement in self.requirements}
        others = [pin for pin in self.pins if pin.project not in projects]
        lines = [
            f"would be installed: {self._describe_pin(pin)}"
            for pin in self.pins
            if pin.project in projects
        ]
        if others:
            listed = ", ".join(self._describe_pin(pin) for pin in others[:_SHOWN])
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            lines.append(
                f"with {len(others)} that {'it needs' if len(projects) == 1 else 'they need'}: {listed}{more}"
            )
        lines += [self.doubt] if self.doubt else []
        return ("is installed already",) if self.is_installed else tuple(lines)

    def _describe_pin(self, pin: Pin) -> str:
        size = self.sizes.get(pin.project)
        if size is None:
            return f"{pin.project} {pin.version}"
        shown = f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{max(size // 1000, 1)} kB"
        return f"{pin.project} {pin.version} ({shown})"


def digest_of(pins: Iterable[Pin]) -> str:
    """Return the name of a set of files, for this interpreter."""
    kind = [sys.implementation.cache_tag, sysconfig.get_platform()]
    text = json.dumps([kind, sorted(str(pin) for pin in pins)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def required(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements in their stored form and order.

    Raises:
        PackagesError: one of them is not a package name with optional versions.
    """
    normalized = []
    for requirement in requirements:
        good = written("packages", requirement)
        if good is None:
            message = f"{fence(requirement, 80)} names no package that can be installed."
            raise PackagesError(
                message, fix="Write a name, perhaps with versions: requests or requests>=2.31"
            )
        normalized.append(good)
    return tuple(sorted(set(normalized)))


def read_report(requirements: tuple[str, ...], report: Path, output: Sequence[str]) -> Resolution:
    """Return the resolution in pip's report.

    Raises:
        PackagesError: it has something that cannot be pinned.
    """
    try:
        data: dict[str, Any] = read_json(report.read_bytes(), MESSAGE)
    except Malformed as error:
        raise PackagesError(f"What pip would install cannot be read: {error}.") from error
    downloads = filter(None, map(_DOWNLOADED.search, output))
    sizes = {
        match[1].rpartition("/")[2]: round(float(match[2]) * _UNITS[match[3]])
        for match in downloads
    }
    pins, known_sizes = list[Pin](), dict[str, int]()
    for item in data["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        info = item["download_info"]
        address = urlsplit(info["url"])
        file = Path(unquote(address.path))
        is_here = address.scheme == "file" and file.is_file()
        digest = info.get("archive_info", {}).get("hashes", {}).get("sha256", "")
        if not digest and is_here:  # pip before 23.1 reports no hash for a local file
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        pin = Pin.of(name, version, digest)
        if pin is None or item.get("is_direct"):
            raise PackagesError(f"{fence(f'{name} {version}', 120)} cannot be pinned by a hash.")
        pins.append(pin)
        size = file.stat().st_size if is_here else sizes.get(file.name)
        known_sizes |= {} if size is None else {pin.project: size}
    if len(pins) > _MOST_PINS:
        raise PackagesError(
            f"{len(pins)} packages would be installed; that is more than {_MOST_PINS}."
        )
    return Resolution(requirements, tuple(sorted(pins)), known_sizes)


_LOCK_NAME = "requirements.lock"
LOCK_PATH = f"functions/{_LOCK_NAME}"
_HEAD = """\
# What the packages that functions are granted are pinned to, with the hash of each file. Knapper alone writes it.
# It installs nothing by itself: each user is asked, and sees what would be installed.
"""
_SECTION = "# for: "
_MOST_BYTES = 256 << 10  # about 2,000 pins
_LONGEST_LINE = 20_000

Sections = Mapping[tuple[str, ...], tuple[Pin, ...]]


@dataclass(frozen=True, slots=True)
class Locked:
    """The sections by their requirements; if `problem` is set, the file is invalid and none of it counts."""

    sections: Sections = field(default_factory=dict)
    problem: str = ""


class Lock:
    """The lock file in the folder of functions."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _LOCK_NAME
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
        """Add or replace a section.

        Raises:
            PackagesError: the file has invalid parts, or cannot be written.
        """
        self._write({**self.understood(), requirements: pins})

    def keep(self, used_sections: Iterable[tuple[str, ...]]) -> None:
        """Remove every other section.

        Raises:
            PackagesError: the file has invalid parts, or cannot be written.
        """
        sections, used = self.understood(), set(used_sections)
        remaining = {section: pins for section, pins in sections.items() if section in used}
        if remaining != sections:
            self._write(remaining)

    def understood(self) -> Sections:
        """Return the sections.

        Raises:
            PackagesError: the file has invalid parts.
        """
        locked = self.read()
        if locked.problem:
            raise PackagesError(
                locked.problem,
                fix="Fix it manually, or remove it: it is regenerated when it is needed.",
            )
        return locked.sections

    def _read(self) -> Locked:
        try:
            return _parse_lock(read_plain(self._file, _MOST_BYTES).decode("utf-8"))
        except NotPlainError:
            return _odd(f"is not a plain file of at most {_MOST_BYTES >> 10} KiB")
        except (OSError, UnicodeDecodeError):
            return _odd("cannot be read as text")

    def _write(self, sections: Sections) -> None:
        text = text_of(sections)
        if len(text) > _MOST_BYTES:
            message = f"`{LOCK_PATH}` would have more than {_MOST_BYTES >> 10} KiB."
            raise PackagesError(
                message, fix="Revoke packages that no function needs: knapper functions packages"
            )
        try:
            if sections:
                replace_text(self._file, text, 0o644)
            else:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            message = f"`{LOCK_PATH}` cannot be written: {error.strerror}."
            raise PackagesError(message, fix="Check its rights.") from error


def text_of(sections: Sections) -> str:
    """Return the whole text of the file."""
    lines = [_HEAD]
    for requirements in sorted(sections):
        lines += [
            f"# for: {', '.join(requirements)}",
            *map(str, sorted(sections[requirements])),
            "",
        ]
    return "\n".join(lines)


def _parse_lock(text: str) -> Locked:
    sections: dict[tuple[str, ...], dict[str, Pin]] = {}
    pins: dict[str, Pin] | None = None
    for number, line in enumerate(bare_lines(text), 1):
        if len(line) > _LONGEST_LINE:
            return _odd(f"has {len(line):,} characters in line {number}")
        if line.startswith(_SECTION):
            requirements = tuple(line.removeprefix(_SECTION).split(", "))
            if (
                any(written("packages", requirement) != requirement for requirement in requirements)
                or tuple(sorted(set(requirements))) != requirements
            ):
                return _odd(f"has no requirements in line {number} ({fence(line, 80)})")
            pins = sections[requirements] = {}
        elif line.strip() and not line.startswith("#"):
            pin = Pin.read(line)
            if pin is None or pins is None or pin.project in pins or len(pins) == _MOST_PINS:
                return _odd(f"has no pin in line {number} ({fence(line, 80)})")
            pins[pin.project] = pin
    return Locked({section: tuple(sorted(pins.values())) for section, pins in sections.items()})


def _odd(problem: str) -> Locked:
    return Locked(problem=f"`{LOCK_PATH}` {problem}, so none of it counts.")
