"""A small world to attack, and what is looked at afterwards. Standard library only, so that any user's Python runs it.

`python -m tests.attack.arena full` runs every attempt at that level and prints one JSON object,
attempt → list of breaches.
"""

import ast
import asyncio
import functools
import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox import Code, Limits, Outcome, Returned, Sandbox
from sandbox.pool import Pool
from sandbox.starting import Ground, Level, plan_for, try_level, without_root

REPOSITORY = Path(__file__).resolve().parents[2]
ATTEMPTS = Path(__file__).with_name("attempts")
# Enough for an honest call of this kind, little enough to wait for: what never returns is stopped here.
LIMITS = Limits(wall_s=0.4, cpu_s=5, requests=300, output=20_000)


def attempts() -> list[tuple[str, str]]:
    """(module, function) of every attempt."""
    return [
        (path.stem, node.name)
        for path in sorted(ATTEMPTS.glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]


@functools.cache
def modules() -> dict[str, Code]:
    """The attempts as modules of a workspace."""
    found = {}
    for path in ATTEMPTS.glob("*.py"):
        text = path.read_text()
        version = hashlib.sha256(text.encode()).hexdigest()
        found[path.stem] = Code(path.stem, text, f"functions/{path.name}", version)
    return found


@dataclass(frozen=True)
class World:
    """What can be attacked, and how it looked before."""

    told: dict[str, Any]
    secret: str
    folder: Path
    victim: "subprocess.Popen[bytes]"
    listeners: tuple[socket.socket, ...]
    before: dict[str, tuple[Any, ...]]
    host_name: str

    def breaches(self, outcome: Outcome) -> list[str]:
        """Everything that an attempt reached, whatever its answer says."""
        found = []
        if self.secret in repr(outcome):
            found.append("a secret came back")
        if isinstance(outcome, Returned) and self.told["mark"] in repr(outcome.value):
            found.append(f"it says that it worked: {outcome.shown[:80]}")
        if look(self.folder) != self.before:
            found.append("files outside have changed")
        if self.victim.poll() is not None:
            found.append("the victim is dead")
        if socket.gethostname() != self.host_name:
            found.append("the host's name has changed")
        found += [f"{listener} heard something" for listener in self.listeners if _heard(listener)]
        return found


@contextmanager
def world(level: Level) -> Iterator[World]:
    """A folder with secrets, a victim process, listeners of every family."""
    secret, mark = f"secret-{secrets.token_hex(16)}", f"mark-{secrets.token_hex(8)}"
    os.environ["TOOLWRIGHT_ARENA"] = secret
    with tempfile.TemporaryDirectory(prefix="arena-") as name:
        folder = Path(name)
        _lay_out(folder, secret)
        victim = subprocess.Popen(["/bin/sleep", "600"], env={"TOOLWRIGHT_ARENA": secret})
        listeners, addresses = _listen(folder, mark)
        told: dict[str, Any] = {
            "mark": mark,
            "level": level,
            "folder": name,
            "secret": f"{name}/secret",
            "open_secret": f"{name}/open_secret",
            "writable": f"{name}/writable",
            "open_folder": f"{name}/open",
            "repository": str(REPOSITORY),
            "victim": victim.pid,
            "host": os.getpid(),
            **addresses,
        }
        try:
            yield World(told, secret, folder, victim, listeners, look(folder), socket.gethostname())
        finally:
            victim.kill()
            victim.wait()
            for listener in listeners:
                listener.close()
            os.environ.pop("TOOLWRIGHT_ARENA", None)


def _lay_out(folder: Path, secret: str) -> None:
    folder.chmod(0o755)
    for name, mode in (("secret", 0o600), ("open_secret", 0o644), ("writable", 0o666)):
        folder.joinpath(name).write_text(secret)
        folder.joinpath(name).chmod(mode)
    folder.joinpath("outside.py").write_text(f"SECRET = {secret!r}")
    folder.joinpath("open").mkdir()
    folder.joinpath("open").chmod(0o777)


def _listen(folder: Path, mark: str) -> tuple[tuple[socket.socket, ...], dict[str, Any]]:
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    path, datagram, abstract = (socket.socket(socket.AF_UNIX, kind) for kind in (1, 2, 1))
    for listener, address in ((path, f"{folder}/s"), (datagram, f"{folder}/d"), (abstract, f"\0{mark}")):
        listener.bind(address)
    for listener in (path, abstract):
        listener.listen()
    for address in ("s", "d"):
        folder.joinpath(address).chmod(0o777)
    addresses = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
    names = {"unix": f"{folder}/s", "unix_datagram": f"{folder}/d", "abstract": mark}
    listeners = (tcp, udp, path, datagram, abstract)
    for listener in listeners:
        listener.setblocking(False)
    return listeners, addresses | names


def _heard(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(100)
    except BlockingIOError:
        return False
    return True


def look(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Names, contents, modes, owners and times below a folder, and where a host would import from."""
    seen: dict[str, tuple[Any, ...]] = {}
    for path in sorted([folder, *folder.rglob("*"), *REPOSITORY.joinpath("sandbox").glob("*.py")]):
        facts = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        seen[str(path)] = (content, facts.st_mode, facts.st_uid, facts.st_gid, facts.st_nlink, facts.st_mtime_ns)
    return seen


def _scratch() -> str:
    return str(Path(tempfile.gettempdir(), f"arena-scratch-{secrets.token_hex(8)}"))


@asynccontextmanager
async def sandbox_at(level: Level) -> AsyncIterator[Sandbox | str]:
    """A sandbox at just this level, or why there is none."""
    plan = plan_for({}, slots=17, scratch_folder=_scratch())
    missing: list[str] = []
    ground = await try_level(level, plan if level == "full" else without_root(plan), missing)
    if ground is None:
        yield "; ".join(missing)
        return
    async with Sandbox(ground, 4) as sandbox:
        yield sandbox


@asynccontextmanager
async def sandbox_without_layers() -> AsyncIterator[Sandbox]:
    """No sandbox at all, to see that the arena would notice."""
    plan = replace(without_root(plan_for({}, slots=17, scratch_folder=_scratch())), layers=(), user=None)
    async with Sandbox(Ground("none", plan, Pool(plan), {}, ()), 4) as sandbox:
        yield sandbox


async def attack(sandbox: Sandbox, arena: World, module: str, function: str) -> tuple[Outcome, list[str]]:
    """One attempt's outcome and breaches; afterwards an honest call must work in the same sandbox."""
    sources = modules()
    outcome = await sandbox.call(sources, module, function, {"world": arena.told}, limits=LIMITS, handler=_nobody)
    found = arena.breaches(outcome)
    text = "def honest(items: list[int]) -> int:\n    open('mine', 'x').write('x')\n    return sum(items)\n"
    honest = {"after": Code("after", text, "functions/after.py", hashlib.sha256(text.encode()).hexdigest())}
    after = await sandbox.call(honest, "after", "honest", {"items": [1, 2]})
    if not isinstance(after, Returned) or after.value != 3:
        found.append(f"the next call is not well: {after}")
    return outcome, found


async def _nobody(_name: str, _arguments: dict[str, Any]) -> None:
    return None


def zygotes_of(host: int) -> set[int]:
    """The sandbox's processes among the descendants of this one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = path.read_text().split(" (", 1)
        except OSError:
            continue
        parents[int(pid)] = int(rest.rsplit(") ", 1)[1].split()[1])
    found = {host}
    while fresh := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= fresh
    return {pid for pid in found if _is_zygote(pid)}


def _is_zygote(pid: int) -> bool:
    try:
        return b"sandbox.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def _main(level: Level) -> dict[str, list[str]]:
    with world(level) as arena:
        async with sandbox_at(level) as sandbox:
            if isinstance(sandbox, str):
                return {"": [sandbox]}
            results = {}
            for module, function in attempts():
                _outcome, results[f"{module}.{function}"] = await attack(sandbox, arena, module, function)
            return results


if __name__ == "__main__":
    signal.alarm(240)
    print(json.dumps(asyncio.run(_main("full" if sys.argv[1] == "full" else "core"))))
