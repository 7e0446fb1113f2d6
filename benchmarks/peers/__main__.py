"""`make bench-peers`: ours and other frameworks, the same work in the same run, as ratios.

Each peer is installed from its file here into a separate environment below the cache folder; one that cannot be
installed is skipped, with the reason. All processes are alive at once and take turns, so a busy moment affects all of
them.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from agent_core import __version__
from agent_core.base.user_folders import cache_folder
from benchmarks import fake_endpoint
from benchmarks.registry import TEMPLATE

from .frameworks import AGENTS
from .ours import CALLS

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
OURS: Final = "Knapper"
SDK: Final = "openai"
_FUNCTIONS: Final = 1_000
_SCHEMA_ROUNDS: Final = 3
_INSTALL_S: Final = 900
_TICKS: Final = os.sysconf("SC_CLK_TCK")

Line: TypeAlias = dict[str, Any]  # Any: JSON


@dataclass(slots=True)
class Peer:
    """One framework: the command of its process, and its measurements."""

    name: str
    command: Sequence[str]
    version: str
    step_ms: list[float] = field(default_factory=list)
    cpu_ms: float = 0
    start_s: float = 0
    memory_mb: float = 0
    schema_ms: list[float] = field(default_factory=list)

    @property
    def describes(self) -> bool:
        """True if it makes schemas."""
        return self.name == OURS or AGENTS[self.name][1] is not None


class Running:
    """A peer's process, which takes a turn for each line."""

    def __init__(self, peer: Peer, url: str) -> None:
        began = time.perf_counter()
        pipe = subprocess.PIPE
        command = [*peer.command, "turn", url]
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=_environment()
        )
        self._read()
        peer.start_s = time.perf_counter() - began
        peer.memory_mb = self._sum(_memory) / 1e6
        self.peer = peer

    def turn(self) -> float:
        """Return the seconds of one turn."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        done = self._read()
        assert done["calls"] == CALLS, f"{self.peer.name} made {done['calls']} calls"
        return float(done["seconds"])

    def cpu_s(self) -> float:
        """Return the CPU seconds of all its processes so far."""
        return self._sum(_cpu)

    def end(self) -> None:
        """End the process."""
        self._process.communicate("")

    def _read(self) -> Line:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"ended with status {self._process.wait()}")
        read: Line = json.loads(line)
        return read

    def _sum(self, measure: Any) -> float:  # Any: a function of a process's number
        return float(sum(measure(pid) for pid in _family(self._process.pid)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="of the peers; all of them if none is named"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each is timed")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    given = parser.parse_args()
    chosen = given.names or [name for name in AGENTS if name != SDK]
    if unknown := set(chosen) - AGENTS.keys():
        parser.error(f"there is no peer {min(unknown)!r}; there are {', '.join(AGENTS)}")
    peers = [
        Peer(OURS, (sys.executable, "-m", "benchmarks.peers.ours"), __version__),
        _peer(SDK, Path(sys.executable)),
    ]
    skipped: dict[str, str] = {}
    for name in chosen:
        try:
            peers.append(_peer(name, installed(name)))
        except OSError as error:
            skipped[name] = str(error)
    peers = _measured(peers, given.rounds, skipped)
    if given.json:
        print(
            json.dumps(
                {
                    "machine": _machine(),
                    "peers": [_figures(peer) for peer in peers],
                    "skipped": skipped,
                }
            )
        )
        return
    print(table(peers, skipped), _machine(), sep="\n", flush=True)
    for text in _other_figures():
        print(text, flush=True)


def _measured(peers: list[Peer], rounds: int, skipped: dict[str, str]) -> list[Peer]:
    """Return the peers that took their turns; note why any other did not."""
    with ExitStack() as stack:
        url = f"{stack.enter_context(fake_endpoint.running())}/{CALLS}/v1"
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-peers-")))
        for n in range(_FUNCTIONS):
            (folder / f"book_{n}.py").write_text(TEMPLATE.format(n=n))
        running: list[Running] = []
        for peer in peers:
            print(f"{peer.name} …", file=sys.stderr, flush=True)
            try:
                Running(peer, url).end()  # compiles its modules and reads its files once
                running.append(one := Running(peer, url))
                stack.callback(one.end)
                one.turn()  # not counted
            except (EOFError, AssertionError) as error:
                running = [other for other in running if other.peer is not peer]
                skipped[peer.name] = f"it took no turn: {error}"
        for number in range(rounds):
            print(f"round {number + 1} of {rounds} …", file=sys.stderr, flush=True)
            for one in running if number % 2 else reversed(running):
                began = one.cpu_s()
                one.peer.step_ms.append(one.turn() * 1000 / (CALLS + 1))
                one.peer.cpu_ms += (one.cpu_s() - began) * 1000 / (CALLS + 1) / rounds
            for one in running if number < _SCHEMA_ROUNDS else ():
                if one.peer.describes:
                    one.peer.schema_ms.append(_schema_ms(one.peer, folder))
        return [one.peer for one in running]


def _schema_ms(peer: Peer, folder: Path) -> float:
    command = [*peer.command, "schema", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=True
    )
    told: Line = json.loads(done.stdout)
    assert told["functions"] == _FUNCTIONS, f"{peer.name} described {told['functions']} functions"
    return float(told["seconds"]) * 1000


def _environment() -> dict[str, str]:
    """Return an environment whose compiled modules are kept for all, as for an installed package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _peer(name: str, python: Path) -> Peer:
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    distribution = {"pydantic-ai": "pydantic-ai-slim"}.get(name, name)
    done = subprocess.run(
        [str(python), "-c", code, distribution], capture_output=True, text=True, check=True
    )
    return Peer(name, (str(python), str(HERE / "frameworks.py"), name), done.stdout.strip())


def installed(name: str, folder: Path = HERE) -> Path:
    """Return the interpreter of a peer's environment; create it from its file in the folder if needed.

    Raises:
        OSError: it cannot be created; says why.
    """
    wanted = (folder / f"{name}.txt").read_bytes() + sys.version.encode()
    place = cache_folder() / "peers" / f"{name}-{hashlib.sha256(wanted).hexdigest()[:12]}"
    python = place / "bin" / "python"
    if (place / "whole").exists():
        return python
    print(f"installing {name} …", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--requirement",
        str(folder / f"{name}.txt"),
    ]
    for command in ([sys.executable, "-m", "venv", str(place)], install):
        try:
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=_INSTALL_S)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"its installation took more than {_INSTALL_S} s") from error
        except subprocess.CalledProcessError as error:
            last = [line for line in error.stderr.splitlines() if line.startswith("ERROR")][-1:]
            raise OSError(
                f"it cannot be installed: {' '.join(last) or 'pip gave no reason'}"
            ) from error
    (place / "whole").touch()
    return python


def _other_figures() -> Iterator[str]:
    """Yield the lines on what no peer has: from a save to the call, and the sandbox."""
    saved = _bench("reload")["rows"][0]
    yield f"\n{saved['what']}: {saved['ms']:.1f} ms. No peer takes up a changed file: it is started anew."
    taken = _bench("sandbox", may_miss=True)["milliseconds"]
    names = {
        "whole": "a sandboxed call",
        "fresh python": "a fresh Python process",
        "bubblewrap": "Python in bubblewrap",
    }
    for name, text in names.items():
        skipped = "skipped: bubblewrap (bwrap) is not installed or may not make namespaces here"
        figure = (
            f"{taken[name]:8.2f} ms {taken[name] / taken['whole']:6.2f} ×"
            if name in taken
            else skipped
        )
        yield f"{text:24} {figure}"


def _bench(name: str, *, may_miss: bool = False) -> Line:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=not may_miss)
    told: Line = json.loads(done.stdout)
    return told


def table(peers: Sequence[Peer], skipped: Mapping[str, str]) -> str:
    """Return the table as text: each figure, and its ratio to the raw loop of the SDK or to ours."""
    head = (
        "",
        "version",
        "step ms",
        "× SDK",
        "cpu ms",
        "start s",
        "MB",
        f"{_FUNCTIONS} schemas ms",
        "× ours",
    )
    sdk = next((peer for peer in peers if peer.name == SDK), None)
    ours = next((peer for peer in peers if peer.name == OURS), None)
    rows = [head, *(_row(peer, sdk, ours) for peer in peers)]
    lines = [
        f"{row[0]:18} {row[1]:8} " + " ".join(f"{cell:>15}" for cell in row[2:]) for row in rows
    ]
    return "\n".join(lines + [f"{name:18} skipped: {reason}" for name, reason in skipped.items()])


def _row(peer: Peer, sdk: Peer | None, ours: Peer | None) -> tuple[str, ...]:
    step = f"{statistics.median(peer.step_ms):.2f}"
    schema = f"{statistics.median(peer.schema_ms):.0f}" if peer.schema_ms else ""
    times = (step, _beside(peer.step_ms, sdk.step_ms if sdk else []), f"{peer.cpu_ms:.2f}")
    stands = (f"{peer.start_s:.2f}", f"{peer.memory_mb:.0f}")
    return (
        peer.name,
        peer.version,
        *times,
        *stands,
        schema,
        _beside(peer.schema_ms, ours.schema_ms if ours else []),
    )


def _beside(figures: Sequence[float], reference: Sequence[float]) -> str:
    """Return the median ratio of neighboring measurements, with the smallest and the largest."""
    ratios = [one / other for one, other in zip(figures, reference, strict=False)]
    return (
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else ""
    )


def _figures(peer: Peer) -> Line:
    names = ("name", "version", "step_ms", "cpu_ms", "start_s", "memory_mb", "schema_ms")
    return {name: getattr(peer, name) for name in names}


def _machine() -> str:
    load = os.getloadavg()[0]
    system = f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}, {os.cpu_count()} cores"
    return (
        f"{system}, load {load:.1f}, {platform.python_implementation()} {platform.python_version()}"
    )


def _family(root: int) -> set[int]:
    """Return a process and all its descendants."""
    parents = {
        int(entry.name): _parent(int(entry.name))
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
    }
    family, before = {root}, 0
    while len(family) > before:
        before = len(family)
        family |= {pid for pid, parent in parents.items() if parent in family}
    return family


def _parent(pid: int) -> int:
    try:
        return int(_stat(pid)[1])
    except OSError:  # the process has ended in the meantime
        return 0


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that have ended."""
    try:
        return sum(map(int, _stat(pid)[11:15])) / _TICKS
    except OSError:  # the process has ended in the meantime
        return 0.0


def _memory(pid: int) -> int:
    """Return the bytes of a process, with its proportional share of shared memory."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # the process has ended in the meantime
        return 0
    return int(text.partition("Pss:")[2].split(maxsplit=1)[0]) * 1024


if __name__ == "__main__":
    main()
