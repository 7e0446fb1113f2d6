"""The WebAssembly component: built on first use from the sources of this package and pinned wheels, stored per user.

Its file name is the hash of all inputs. The compiled form is native code, which wasmtime trusts, so it is loaded only
if this user alone has access to it, its size matches the recorded one and, checked once per program, so does its
SHA-256.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sandbox.beside import Tell
from sandbox.errors import SandboxError

WORLD: Final = """package knapper:portable;

world worker {
  /// Returns the host's next frame, or nothing if it has no more.
  import hear: func() -> string;
  /// Sends a frame to the host.
  import say: func(frame: string);
  /// Sends what is printed to the host.
  import print: func(data: list<u8>);
  /// Returns whether a human wants what runs to stop at the debugger.
  import stop-wanted: func() -> bool;
  /// Serves one worker's conversation.
  export serve: func(plan: string);
}
"""
TESTED: Final = "50.0.1"  # version of wasmtime that the extra pins
_LOOKED_AT: Final = "2026-11-27"
_KNOWN: Final = (
    "GHSA-5m8g-xhq4-4h93 (empty writes fill memory; fixed in 50.0.2), which a function that takes over its interpreter "
    "could use to fill its child's memory until its time is up; GHSA-43j2-gcp4-m22g and six more that 50.0.2 fixes "
    "(the process ends, or HTTP fills memory), which need what is not used here: Wasm garbage collection, component "
    "streams, HTTP, exports that the host looks up, or a build without threads; GHSA-f2pq-268w-886c (on Windows a path "
    "with a drive leads out of an opened folder; fixed in 50.0.3), which reaches nothing here: on Windows no folder is "
    "opened. Neither release has a wheel yet"
)
WHEELS: Final = ("componentize-py", "wasmtime", "tzdata")  # of the extra `portable`
_ROOMS: Final = ("sandbox/inside", "sandbox/wire")  # packages that go into the component
_FILES: Final = (
    "sandbox/__init__.py",
    "sandbox/errors.py",
    "sandbox/confine/__init__.py",
    "sandbox/confine/calls.py",
    "knapper_ext/__init__.py",
    "knapper_ext/portable/__init__.py",
    "knapper_ext/portable/guest.py",
    "knapper_ext/portable/memory_files.py",
)
_APP: Final = """from knapper_ext.portable import memory_files

memory_files.install()
from knapper_ext.portable.guest import WitWorld
"""
_BUILD_S: Final = 600.0
_KEPT_S: Final = 3 * 86_400.0
_SHOWN: Final = 600  # characters of a failed build's output


class NoComponent(SandboxError):
    """There is no component, and none can be built. The message gives the reason and the fix."""


@dataclass(frozen=True, slots=True)
class StoredCode:
    """The compiled component of this user."""

    path: Path
    size: int
    digest: str
    identity: tuple[int, ...]

    def require_unchanged(self) -> None:
        """Raise NoComponent unless this is still the file that was checked, or one of the same owner and content."""
        try:
            facts = self.path.lstat()
            if _identity(facts) == self.identity:
                return
            _check(facts, self.path, stat.S_ISREG)
            is_whole = self.is_whole()  # another program may have marked it as in use
        except OSError:
            is_whole = False
        if not is_whole:
            raise NoComponent(
                f"{self.path} was changed while it was in use: start Knapper again, which builds it anew"
            )

    def mark(self) -> None:
        """Mark it as in use, so that no program that builds another version removes it."""
        with contextlib.suppress(OSError):  # `require_unchanged` reports what has gone
            os.utime(self.path.with_suffix(".note"))

    def is_whole(self) -> bool:
        """Return whether the file still has the recorded SHA-256. This takes a few hundredths of a second."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.digest


def _identity(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_mode, facts.st_uid


def lacks() -> tuple[str, ...]:
    """Return the wheels of the extra that are not installed."""
    return tuple(name for name in WHEELS if _version(name) is None)


def engine() -> str:
    """Return the installed version of wasmtime, with its known vulnerabilities when this was written."""
    version = _version("wasmtime") or "none"
    if version != TESTED:
        return f"{version}; only {TESTED} was tested here"
    return f"{version}; known against it on {_LOOKED_AT}: {_KNOWN}"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def find_or_build(folder: Path, tell: Tell) -> StoredCode:
    """Return the compiled component. If it is missing, build it, which takes half a minute, and report with `tell`.

    Raises:
        NoComponent: it cannot be built here, or others have access to the stored one.
    """
    if missing := lacks():
        raise NoComponent(f"{', '.join(missing)} is not installed: add the extra `portable`")
    import sqlite3  # noqa: PLC0415 - for its lock, which is the same on all systems and ends with its program

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(folder.lstat(), folder, stat.S_ISDIR)
        name = _name()
        stored = _find_stored(folder, name)
        if stored is None:
            tell("building the sandbox's component, once for this version: half a minute …")
            with contextlib.closing(
                sqlite3.connect(folder / ".lock", timeout=2 * _BUILD_S)
            ) as lock:
                lock.execute("BEGIN EXCLUSIVE")
                stored = _find_stored(folder, name) or _build(
                    folder, name, tell
                )  # another program may have built it
            tell("")
    except (OSError, sqlite3.Error) as error:
        # While a folder is copied: a list of all files, with the reason as the last part of each.
        why = (
            error.args[0][0][-1]
            if isinstance(error, shutil.Error)
            else getattr(error, "strerror", "") or error
        )
        raise NoComponent(f"the component cannot be stored in {folder}: {why}") from error
    stored.mark()
    return stored


def _check(facts: os.stat_result, path: Path, kind: Callable[[int], bool]) -> None:
    """Raise NoComponent unless the path is of this kind, belongs to this user, and is closed to others."""
    owner = getattr(os, "geteuid", lambda: facts.st_uid)()
    if (
        not kind(facts.st_mode)
        or facts.st_uid != owner
        or (os.name == "posix" and facts.st_mode & 0o077)
    ):
        raise NoComponent(
            f"{path} is not this user's alone, so no code is loaded from it: look at it, and remove it"
        )


def _find_stored(folder: Path, name: str) -> StoredCode | None:
    """Return the stored code of a name, or None if it is missing or has another size or SHA-256 than recorded."""
    path, note = folder / f"{name}.compiled", folder / f"{name}.note"
    try:
        facts = path.lstat()
        _check(facts, path, stat.S_ISREG)
        _check(note.lstat(), note, stat.S_ISREG)
        size, digest = note.read_text().split()
        stored = StoredCode(path, int(size), digest, _identity(facts))
        return stored if facts.st_size == stored.size and stored.is_whole() else None
    except (FileNotFoundError, ValueError):
        return None


def _name() -> str:
    """Return the hash of the inputs: our sources, the wheels' versions, the machine and its processor features.

    So code that was compiled for features that are missing here, as under gVisor or after a move, is not loaded.
    """
    digest = hashlib.sha256(WORLD.encode() + _APP.encode())
    for place, source in _sources():
        digest.update(f"\0{place}\0{len(source)}\0".encode() + source)
    versions = {name: _version(name) for name in WHEELS}
    found = None
    with contextlib.suppress(OSError):  # only Linux has this file
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
        found = re.search(r"^(?:flags|Features|isa).*", text, re.MULTILINE)
    digest.update(
        json.dumps([versions, sys.platform, platform.machine(), found[0] if found else ""]).encode()
    )
    return digest.hexdigest()[:32]


def _sources() -> Iterator[tuple[str, bytes]]:
    """Yield the sources that go into the component, with their paths below the folder of our packages."""
    top = Path(__file__).parents[2]
    paths = [top / name for name in _FILES]
    for name in _ROOMS:
        paths += (top / name).glob("*.py")
    for path in sorted(paths):
        yield path.relative_to(top).as_posix(), path.read_bytes()


def _build(folder: Path, name: str, tell: Tell) -> StoredCode:
    for left in folder.glob(".building-*"):  # left by a program that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as place:
        wasm, compiled = Path(place, "component.wasm"), Path(place, "compiled")
        source = Path(place, "source")
        for name_of_source, text in _sources():
            path = source / name_of_source
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        source.joinpath("entry.py").write_text(_APP)
        zones = importlib.util.find_spec("tzdata")
        if zones is None or not zones.origin:
            raise NoComponent("tzdata is not installed: add the extra `portable`")
        shutil.copytree(Path(zones.origin).parent, source / "tzdata")
        world = Path(place, "world")
        world.mkdir()
        world.joinpath("world.wit").write_text(WORLD)
        _run(
            "from componentize_py import script; import sys; sys.argv[0] = 'componentize-py'; sys.exit(script())",
            [
                "-d",
                str(world),
                "-w",
                "worker",
                "componentize",
                "entry",
                "-p",
                str(source),
                "-o",
                str(wasm),
            ],
            Path(place),
        )
        tell("compiling the sandbox's component for this machine …")
        _run(_COMPILE, [str(wasm), str(compiled)], Path(place))
        return _keep(compiled, folder, name)


_COMPILE: Final = (
    "import sys; from pathlib import Path; from wasmtime import Engine; from wasmtime.component import Component; "
    "from knapper_ext.portable.runner import config; "
    "Path(sys.argv[2]).write_bytes(Component.from_file(Engine(config()), sys.argv[1]).serialize())"
)
_END_WITH_PARENT: Final = (
    "import os; from sandbox.confine.limits import end_with_parent; end_with_parent(); "
    "os.getppid() == int(sys.argv.pop()) or os._exit(1); "
)


def _run(program: str, arguments: list[str], place: Path) -> None:
    """Run a step of the build in a separate process with a minimal environment."""
    paths = [
        str(Path(__file__).parents[2]),
        *(path for path in sys.path if path.endswith("site-packages")),
    ]
    begin = f"import sys; sys.path[:0] = {paths!r}; "
    if sys.platform == "linux":
        begin, arguments = begin + _END_WITH_PARENT, [*arguments, str(os.getpid())]
    keys = ("PATH", "SYSTEMROOT", "LANG")  # Windows cannot load libraries without SYSTEMROOT
    environment = {key: os.environ[key] for key in keys if key in os.environ}
    environment |= {"HOME": str(place), "TMPDIR": str(place), "TMP": str(place)}
    command = [sys.executable, "-I", "-B", "-c", begin + program, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_BUILD_S,
        )
    except subprocess.TimeoutExpired as error:
        raise NoComponent(f"the component was not built within {_BUILD_S:.0f} s") from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-_SHOWN:]
        why = (
            said or f"its compiler was ended by signal {-done.returncode}, as where memory runs out"
        )
        raise NoComponent(f"the component could not be built: {why}")


def _keep(compiled: Path, folder: Path, name: str) -> StoredCode:
    """Move the compiled form into place and record its size and SHA-256. Remove those unused for `_KEPT_S`."""
    compiled.chmod(0o600)
    with compiled.open(
        "r+b"
    ) as file:  # Windows writes only what was opened for writing to the disk
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    facts = compiled.lstat()
    stored = StoredCode(folder / f"{name}.compiled", facts.st_size, digest, _identity(facts))
    note = compiled.with_suffix(".note")
    note.write_text(f"{stored.size} {digest}")
    note.chmod(0o600)
    for old in [*folder.glob("*.compiled"), *folder.glob("*.note")]:
        with contextlib.suppress(FileNotFoundError):  # a note marks both
            if time.time() - old.with_suffix(".note").stat().st_mtime > _KEPT_S:
                old.unlink()
    note.replace(folder / f"{name}.note")
    compiled.replace(stored.path)
    return stored
