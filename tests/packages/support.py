"""Shared by the tests of packages: wheels built by the tests, and an environment that finds only those."""

import base64
import hashlib
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core.access.packages import Environment, Pin
from agent_core.access.packages.environment import Installed, PackageCache
from agent_core.access.packages.resolution import Lock, digest_of
from agent_core.base.seal import Sealer

ABACUS = {
    "abacus/__init__.py": "import beads\n\n\ndef total(numbers):\n    return beads.LIST(numbers)\n"
}
BEADS = {"beads.py": "LIST = sum\n"}


def wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], needs: Sequence[str] = ()
) -> Path:
    """Build a wheel of these files, with its metadata."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    inside = {
        **files,
        f"{info}/METADATA": head + "".join(f"Requires-Dist: {one}\n" for one in needs),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={_hash(text)},{len(text.encode())}\n" for path, text in inside.items()
    )
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for inner, text in {**inside, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(inner, text)
    return path


def source(folder: Path, name: str, version: str, canary: Path) -> None:
    """Build a source archive whose build would create the file `canary`."""
    text = (
        f"open({str(canary)!r}, 'w').close()\nfrom setuptools import setup\n"
        f"setup(name={name!r}, version={version!r})\n"
    )
    with zipfile.ZipFile(folder / f"{name}-{version}.zip", "w") as archive:
        archive.writestr(f"{name}-{version}/setup.py", text)
        archive.writestr(
            f"{name}-{version}/PKG-INFO",
            f"Metadata-Version: 1.0\nName: {name}\nVersion: {version}\n",
        )


@asynccontextmanager
async def nobody_else() -> AsyncIterator[None]:
    """Hold the right to change files, as if there were only one process."""
    yield


async def _imports(names: tuple[tuple[str, str], ...], name: str) -> bool:
    return True


def opened(
    root: Path, most_mib: int = 64, tell: Callable[[str], None] | None = None
) -> Environment:
    """Return the packages of a workspace, without a sandbox to test them in."""
    (root / "functions").mkdir(exist_ok=True)
    (root / ".knapper").mkdir(mode=0o700, exist_ok=True)
    return Environment(root, nobody_else, _imports, ("pydantic",), most_mib, tell=tell)


def placed(root: Path, *requirements: str, files: Mapping[str, str] | None = None) -> Path:
    """Return the folder of such a package as after an install, without pip; the lock pins it."""
    files = files or {f"{requirements[0]}.py": ""}
    names = dict.fromkeys(
        (path.partition("/")[0].removesuffix(".py") for path in files), requirements[0]
    )
    for needed in ("functions", ".knapper"):
        (root / needed).mkdir(mode=0o700, exist_ok=True)
    pins = (Pin(requirements[0], "1.0", hashlib.sha256(requirements[0].encode()).hexdigest()),)
    cache = PackageCache(root / ".knapper" / "env", Sealer(root))
    with cache.staging() as folder:
        for path, text in files.items():
            (folder / "root" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "root" / path).write_text(text)
        cache.put(digest_of(pins), Installed(folder / "root", names, (), 1))
    Lock(root / "functions").put(tuple(sorted(requirements)), pins)
    return root / ".knapper" / "env" / digest_of(pins)


async def put(environment: Environment, *requirements: str) -> Path:
    """Resolve and install; return the target folder."""
    await environment.install(await environment.resolve(requirements))
    found = environment.find(tuple(sorted(requirements)))
    assert found is not None
    return found.folder


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
