"""Level `portable` in the host: its start and its self-test, and its child processes, each with one instance ready.

Workers are instances. After an instance has ended normally, its child serves the next call in a new one. A timeout, a
protocol violation or a crash ends the child.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import knapper_ext
import sandbox
from sandbox.access import NOTHING, Access
from sandbox.beside import LevelBeside, Tell
from sandbox.confine.plan import Rlimits
from sandbox.errors import SandboxUnavailable
from sandbox.policy import Limits
from sandbox.processes.compilation import Compiled
from sandbox.processes.ends import Death, Used, WorkerUsage
from sandbox.processes.launch import LayerFailed, NoPlace
from sandbox.processes.pool import SPARES, kernel_limits
from sandbox.processes.startup import ANSWERS, another_user, examine
from sandbox.wire.strict_json import MESSAGE, Malformed, read_json

from .component import NoComponent, StoredCode, engine, find_or_build

_HEAD_OUT: Final = 17  # bytes of a header: letter, instance, CPU time, memory, length
_MOST_WAITING: Final = 1 << 20  # buffered bytes before the child has to wait
_MOST_SAID: Final = 2_000  # bytes of a dying child's standard error that are kept
_FAREWELL_S: Final = 0.25  # grace for an instance to end by itself after its last reply
_GONE_S: Final = 30.0  # gVisor once did not end a killed child, and the close waited for ever
_START_S: Final = 60.0
_MOST_POOLS: Final = 6
_ROOM: Final = 64 << 10
_LARGEST: Final = (4 << 30) - _ROOM  # largest limit for a 32-bit memory
_ROOMS: Final = tuple(str(Path(place.__file__ or "").parent) for place in (sandbox, knapper_ext))
_BOOT: Final = (  # without garbage collection, the imports take 8 ms less; nothing else of the program is found
    "import gc; gc.disable(); import sys, types\n"
    "for at, name in enumerate(('sandbox', 'knapper_ext'), 2):\n"
    "    sys.modules[name] = types.ModuleType(name)\n"
    "    sys.modules[name].__path__ = [sys.argv[at]]\n"
    "sys.path.insert(0, sys.argv[4])\n"
    "from knapper_ext.portable.runner import main\n"
    "del sys.path[0]\n"
    "main()"
)


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """The configuration of a child: the code, and the packages that its instances may import."""

    code: StoredCode
    user: int | None
    packages: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()  # packages of this program that no instance can import

    def to_json(self) -> dict[str, Any]:  # JSON
        """Return the JSON that the runner reads."""
        default = Limits()
        plan = _options(kernel_limits(default), default.scratch)
        plan |= {
            "absent": [*self.absent],
            "packages": dict(self.packages),
            "folders": [*dict.fromkeys(place for _, place in self.packages)],
        }
        return {"code": str(self.code.path), "plan": plan, "user": self.user}


def _options(rlimits: Rlimits, scratch: int) -> dict[str, Any]:
    return {"memory": min(rlimits.memory, _LARGEST), "cpu_s": rlimits.cpu_s, "scratch": scratch}


class InstanceSight:
    """The resource usage of an instance, as reported by the kernel or by its runner, which no function can alter."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.cpu_s = 0.0
        self.memory = 0

    def processor_time(self) -> float:
        """Return the CPU seconds of its process according to the kernel, or else the runner's latest report."""
        return WorkerUsage(self.pid).processor_time() or self.cpu_s

    def waited(self) -> float:
        """Return the seconds that it waited for a processor; 0 if unknown."""
        return WorkerUsage(self.pid).waited()

    def used(self, since: float = 0.0) -> Used:
        """Return the usage so far; the memory is that of its process. The time is unknown if the kernel's is gone."""
        now = self.processor_time()
        return Used(now - since if now >= since else None, self.memory or None)


class InstanceWorker:
    """One instance as a worker, from before its job until its end."""

    def __init__(self, child: "ComponentChild", number: int) -> None:
        self.child = child
        self.number = number  # of its instance in the child
        self.sight = InstanceSight(child.pid)
        self.end: dict[str, Any] | None = None  # how it ended
        self.is_running = False  # it has a frame to answer
        self._frames, self._output = bytearray(), bytearray()
        self._waiting: asyncio.Future[None] | None = None
        self._heard: Callable[[], None] | None = None
        self.is_killed = False

    @property
    def held(self) -> int:
        """The number of bytes that have arrived and that nobody has taken."""
        return len(self._frames) + len(self._output)

    async def receive(self) -> bytes:
        """Return what has arrived of its frames, with their length prefixes, or b"" if the instance has ended."""
        while not self._frames:
            if self.end is not None:
                return b""
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self._take_out(self._frames)

    async def send(self, data: bytes) -> None:
        """Send one packed frame. Raise ConnectionError if the child has died."""
        if self.end is not None:
            raise ConnectionResetError
        self.is_running = True
        await self.child.send(b"f" + self.number.to_bytes(4, "big") + data)

    def read_output(self) -> bytes | None:
        """Return the printed output so far, or None if there is none now."""
        return self._take_out(self._output) or None

    def listen(self, heard: Callable[[], None] | None) -> None:
        """Call `heard` whenever there is output; None removes the callback."""
        self._heard = heard

    def kill(self) -> None:
        """Kill its child process."""
        self.is_killed = True
        self.child.kill()

    def interrupt(self) -> bool:
        """Ask the instance to stop at the debugger. Return False if it has ended."""
        if self.end is not None:
            return False
        self.child.tell(b"s")
        return True

    def end_program(self) -> bool:
        """Return False: an instance has no signals, so the variables of a program that takes too long are lost."""
        return False

    # called by the child

    def take_frame(self, data: bytes, *, is_whole: bool) -> None:
        """Queue a piece of a frame from the instance; with the last one, the frame is whole."""
        self.is_running = not is_whole
        self._frames += data
        self._wake()

    def take_output(self, data: bytes) -> None:
        """Queue printed output of the instance."""
        self._output += data
        if self._heard is not None:
            self._heard()

    def take_end(self, end: dict[str, Any]) -> None:
        """Note how the instance ended."""
        self.end = end
        self._wake()

    def _take_out(self, queue: bytearray) -> bytes:
        data = bytes(queue)
        queue.clear()
        self.child.resume_reading()
        return data

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class ComponentChild(asyncio.SubprocessProtocol):
    """One child process, with its current instance as `worker`."""

    def __init__(self, is_over: Callable[["ComponentChild"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_over = is_over  # called when an instance or the child has ended
        self._buffer = bytearray()
        self._letter, self._rest = (
            b"",
            0,
        )  # of the message that is arriving: what it is, and the bytes to come
        self._speaker = 0  # the number of the instance that the message comes from
        self._note = bytearray()  # a message of the runner
        self._said = bytearray()
        self._writable: asyncio.Future[None] | None = None
        self._transport: asyncio.SubprocessTransport
        self.held: dict[str, str] = {}
        self.greeted: asyncio.Future[None] = self._loop.create_future()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self.worker: InstanceWorker
        self.is_lent = False
        self.is_killed = False

    @classmethod
    async def start(
        cls, plan: ChildPlan, is_over: Callable[["ComponentChild"], None]
    ) -> "ComponentChild":
        """Start a child and return it when it is confined. Raise LayerFailed if it cannot be started."""
        from importlib.util import find_spec  # noqa: PLC0415 - once per child

        spec = find_spec("wasmtime")
        if spec is None or spec.origin is None:
            raise LayerFailed("portable", "wasmtime is not installed: add the extra `portable`")
        site_packages = str(Path(spec.origin).parents[1])
        command = [
            sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT, json.dumps(plan.to_json()), *_ROOMS,
            site_packages,
        ]  # fmt: skip
        child = cls(is_over)
        # Windows cannot load libraries without SYSTEMROOT.
        environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        try:
            await child._loop.subprocess_exec(
                lambda: child, *command, cwd=Path(sys.executable).anchor, env=environment
            )
        except OSError as error:
            raise LayerFailed(
                "portable", f"no child process can be started: {error.strerror or error}"
            ) from error
        try:
            async with asyncio.timeout(_START_S):
                await child.greeted
        except TimeoutError as error:
            await child.aclose()
            raise LayerFailed(
                "portable", f"a child process took more than {_START_S:.0f} s to start"
            ) from error
        except BaseException:
            await child.aclose()
            raise
        return child

    @property
    def pid(self) -> int:
        """The process id."""
        return self._transport.get_pid() or 0

    @property
    def is_alive(self) -> bool:
        """True until the child exits or is killed."""
        return not self.exited.done() and not self.is_killed

    def renew(self, options: dict[str, Any]) -> None:
        """Replace the waiting instance with one that has other limits."""
        self.tell(b"n", json.dumps(options).encode())
        self.worker = InstanceWorker(self, self.worker.number + 1)

    def tell(self, letter: bytes, data: bytes = b"") -> None:
        """Send a message about the current instance to the runner, without waiting."""
        number = self.worker.number.to_bytes(4, "big")
        self._stdin.write(letter + number + len(data).to_bytes(4, "big") + data)

    async def send(self, data: bytes) -> None:
        """Send bytes, and wait while the pipe is full."""
        if self.exited.done() or self._stdin.is_closing():
            raise ConnectionResetError
        self._stdin.write(data)
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def resume_reading(self) -> None:
        """Resume reading if there is room."""
        if self.worker.held < _MOST_WAITING:
            self._stdout.resume_reading()

    def kill(self) -> None:
        """Kill the child."""
        self.is_killed = True
        if not self.exited.done():
            self._transport.kill()

    async def aclose(self) -> None:
        """Kill the child and wait until it has exited; one that the kernel does not end is left after `_GONE_S`."""
        self.kill()
        await asyncio.wait([self.exited], timeout=_GONE_S)

    # callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport and create the first worker."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin: Any = self._transport.get_pipe_transport(0)
        self._stdout: Any = self._transport.get_pipe_transport(1)
        self.worker = InstanceWorker(self, number=1)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Process messages of the runner, and collect its standard error."""
        if fd == 1:
            self._buffer += data
            self._parse()
        elif len(self._said) < _MOST_SAID:
            self._said += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Wake senders that wait for a closed pipe."""
        if fd == 0:
            self.resume_writing()

    def pause_writing(self) -> None:
        """Make senders wait."""
        self._writable = self._writable or self._loop.create_future()

    def resume_writing(self) -> None:
        """Wake the waiting senders."""
        waiting, self._writable = self._writable, None
        if waiting is not None:
            waiting.set_result(None)

    def process_exited(self) -> None:
        """Note the exit status and end the worker."""
        status = self._transport.get_returncode()
        self.exited.set_result(-1 if status is None else status)
        self.resume_writing()
        if not self.greeted.done():
            said = self._said.decode("utf-8", "replace").strip()
            self.greeted.set_exception(
                LayerFailed("portable", f"the child process ended at its start: {said}")
            )
            self.greeted.exception()  # mark it as retrieved, because its waiter may be gone
        self.worker.take_end({"how": "died"})
        self._transport.close()
        self._is_over(self)

    def _parse(self) -> None:
        """Process what has arrived, the messages in pieces, so that no length that one claims fills memory."""
        while not self.is_killed and len(self._buffer) >= (1 if self._rest else _HEAD_OUT):
            length = b""
            if not self._rest:
                head = bytes(self._buffer[:_HEAD_OUT])
                del self._buffer[:_HEAD_OUT]
                self._letter = head[:1]
                self._speaker = int.from_bytes(head[1:5], "big")
                length = head[13:]
                self._rest = int.from_bytes(length, "big")
                if self._speaker == self.worker.number:
                    self.worker.sight.cpu_s = int.from_bytes(head[5:9], "big") / 1e6
                    self.worker.sight.memory = int.from_bytes(head[9:13], "big") << 10
            data = bytes(self._buffer[: self._rest])
            del self._buffer[: self._rest]
            self._rest -= len(data)
            self._take(length, data)
            if self.worker.held >= _MOST_WAITING:
                self._stdout.pause_reading()

    def _take(self, length: bytes, data: bytes) -> None:
        """Process a piece of a message; the first one has the `length`."""
        match self._letter:
            case b"f" | b"o" if self._speaker != self.worker.number:
                pass  # of an instance that was replaced or has ended
            case b"f":
                self.worker.take_frame(length + data, is_whole=not self._rest)
            case b"o" if data:  # an empty piece is the end of a pipe, and nothing is printed by it
                self.worker.take_output(data)
            case b"e" | b"h" if len(self._note) + len(data) <= _ROOM:
                self._note += data
                if not self._rest:
                    note, self._note = bytes(self._note), bytearray()
                    self._take_note(note)
            case b"o":
                pass
            case _:
                self.kill()

    def _take_note(self, note: bytes) -> None:
        """Process a message of the runner, which code that broke out of its instance can forge."""
        try:
            message = read_json(note, MESSAGE)
        except Malformed:
            message = None
        match self._letter, message:
            case b"e", _ if self._speaker != self.worker.number:
                self.kill()  # of an instance that was replaced: the next one may have other limits
            case b"e", {"how": "done"} | {"how": "trap", "why": str()}:
                ended = self.worker
                self.worker = InstanceWorker(self, ended.number + 1)
                ended.take_end(message)
                if message["how"] != "done":
                    self.kill()
                self.resume_reading()  # what nobody took of the ended instance counts no more
                self._is_over(self)
            case b"h", dict():
                self.held = {name: str(why) for name, why in message.items()}
                if not self.greeted.done():  # it may be canceled
                    self.greeted.set_result(None)
            case _:
                self.kill()


class ChildPool:
    """The children of one plan. They start on demand; a few stay idle, each with an instance ready."""

    def __init__(self, plan: ChildPlan, slots: int) -> None:
        self.plan = plan
        self.taken = 0
        self.trap = ""  # why the last instance ended that did not end by itself
        self._slots = slots
        self._children: set[ComponentChild] = set()
        self._idle: deque[ComponentChild] = deque()
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._adding: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, rlimits: Rlimits, scratch: int) -> InstanceWorker:
        """Return a worker for exclusive use. Raise NoPlace if every slot has one.

        Raise LayerFailed in another event loop than the first: nobody would hear the children there, and the call would
        last until its time is up.
        """
        self._loop = self._loop or asyncio.get_running_loop()
        if self._loop is not asyncio.get_running_loop():
            raise LayerFailed("portable", "the sandbox was started in another event loop")
        if self.taken >= self._slots:
            raise NoPlace(
                "too many calls wait for calls of their own: call less deeply, or one after another"
            )
        self.taken += 1
        try:
            child = self._ready() or await self._start()
        except BaseException:
            self.taken -= 1
            raise
        child.is_lent = True
        self.plan.code.mark()
        default = Limits()
        if (rlimits, scratch) != (kernel_limits(default), default.scratch):
            child.renew(_options(rlimits, scratch))
        return child.worker

    def _ready(self) -> ComponentChild | None:
        while self._idle:
            child = self._idle.popleft()
            if child.is_alive:
                return child
        return None

    async def _start(self) -> ComponentChild:
        try:
            await asyncio.to_thread(self.plan.code.require_unchanged)
        except NoComponent as error:
            raise LayerFailed("portable", str(error)) from error
        child = await ComponentChild.start(self.plan, self._is_over)
        self._children.add(child)
        return child

    async def start_ahead(self) -> dict[str, str]:
        """Start a child before it is needed. Return its layers, each with the reason if it could not be applied."""
        self._loop = asyncio.get_running_loop()
        child = await self._start()
        if self._is_closed:
            await child.aclose()
        elif child not in self._idle:
            self._idle.append(child)
        return child.held

    def give_back(self, worker: InstanceWorker) -> Death:
        """End the worker: with a message if its last reply has arrived, otherwise by killing its child."""
        self.taken -= 1
        child = worker.child
        child.is_lent = False
        loop = asyncio.get_running_loop()
        death: Death = loop.create_future()
        if worker.end is None and not worker.is_running and child.is_alive:
            child.tell(b"c")
            loop.call_later(_FAREWELL_S, self._end_if_running, worker)
        elif worker.end is None:
            child.kill()
        elif worker.end == {"how": "done"}:
            self._rest(child)
        else:
            self.trap = " ".join(worker.end.get("why", "its process ended").split())
        self._tasks.add(task := asyncio.ensure_future(_report_end(worker, death)))
        task.add_done_callback(self._tasks.discard)
        if (
            len(self._children) < SPARES
            and not self._is_closed
            and (self._adding is None or self._adding.done())
        ):
            self._adding = asyncio.ensure_future(
                self._add()
            )  # so that a nested call need not wait for a start
        return death

    async def _add(self) -> None:
        """Start a child for later. Ignore failures: the next caller that needs a child gets them."""
        with contextlib.suppress(LayerFailed):
            await self.start_ahead()

    def _end_if_running(self, worker: InstanceWorker) -> None:
        if worker.end is None:
            worker.child.kill()

    def _is_over(self, child: ComponentChild) -> None:
        """Handle the end of a child or of its instance; a child that was given back becomes idle."""
        if child.exited.done():
            self._children.discard(child)
            if child in self._idle:
                self._idle.remove(child)
        elif child.is_alive and not child.is_lent and child not in self._idle:
            self._rest(child)

    def _rest(self, child: ComponentChild) -> None:
        if not child.is_alive or child in self._idle:
            return
        if self._is_closed or len(self._idle) >= SPARES:
            child.kill()
        else:
            self._idle.append(child)

    async def aclose(self) -> None:
        """Kill all children and wait until they have exited, as `ComponentChild.aclose` does."""
        self._is_closed = True
        ends: set[asyncio.Future[Any]] = {child.exited for child in self._children} | self._tasks
        if self._adding is not None:
            self._adding.cancel()
            ends.add(self._adding)
        for child in self._children:
            child.kill()
        if ends:
            await asyncio.wait(ends, timeout=_GONE_S)


async def _report_end(worker: InstanceWorker, death: Death) -> None:
    """Set the result of `death` after a worker has ended."""
    if worker.end is None or worker.end["how"] == "died":
        status = await asyncio.shield(worker.child.exited)
    else:  # the exit status of a process that corresponds to wasmtime's message about an instance
        why = worker.end.get("why", "")
        status = -signal.SIGABRT if why else 0
        if found := re.search("exit status ?([0-9]{0,9})", why):
            status = int(found[1] or 1)
        elif "stack" in why or "out of bounds" in why:
            status = -signal.SIGSEGV
    death.set_result(
        ({"status": status, "cpu_s": worker.sight.cpu_s, "memory": worker.sight.memory}, None)
    )


@dataclass(frozen=True, slots=True)
class PoolPortion:
    """A view of a pool for calls with a certain size of the scratch folder, in bytes."""

    pool: ChildPool
    scratch: int

    async def take(self, rlimits: Rlimits) -> InstanceWorker:
        """Return a worker for exclusive use."""
        return await self.pool.take(rlimits, self.scratch)

    def give_back(self, worker: InstanceWorker) -> Death:
        """End the worker, as `ChildPool.give_back` does."""
        return self.pool.give_back(worker)


class ChildPools:
    """The pools of one sandbox, by the packages that their instances may import."""

    def __init__(self, plan: ChildPlan, slots: int) -> None:
        self._plan, self._slots = plan, slots
        self.lean_pool = ChildPool(plan, slots)
        self._pools: OrderedDict[tuple[tuple[str, str], ...], ChildPool] = OrderedDict()

    @property
    def lean(self) -> PoolPortion:
        """The pool without packages."""
        return PoolPortion(self.lean_pool, Limits().scratch)

    async def get(
        self, ahead: tuple[str, ...], limits: Limits, access: Access = NOTHING
    ) -> PoolPortion:
        """Return the pool for a call. Nothing is preloaded, and all files come from the host."""
        if not access.packages:
            return PoolPortion(self.lean_pool, limits.scratch)
        if sys.platform == "win32":
            raise LayerFailed(
                "packages", "on Windows no folder is opened to a component before wasmtime 50.0.3"
            )
        if access.packages not in self._pools:
            idle = [key for key, pool in self._pools.items() if not pool.taken]
            if idle and len(self._pools) >= _MOST_POOLS:
                await self._pools.pop(idle[0]).aclose()
            plan = replace(self._plan, user=None, packages=access.packages)
            self._pools.setdefault(access.packages, ChildPool(plan, self._slots))
        self._pools.move_to_end(access.packages)
        return PoolPortion(self._pools[access.packages], limits.scratch)

    def ahead_for(self, closure: Mapping[str, Compiled], text: str) -> tuple[str, ...]:
        """Return no names: the component contains everything that can be preloaded."""
        return ()

    def resources(self) -> dict[str, str]:
        """Return the limits for all workers together, as sentences by name."""
        workers = f"at most {self._slots} at a time, each with its own limit of memory"
        return {"workers": workers, "engine": f"wasmtime {engine()}"}

    def __len__(self) -> int:
        return 1 + len(self._pools)

    async def aclose(self) -> None:
        """Close all pools."""
        for pool in (self.lean_pool, *self._pools.values()):
            await pool.aclose()


_ONE_WALL: Final = (
    "Functions can run here at level `portable`, with one wall: the WebAssembly sandbox of wasmtime. The operating "
    "system puts no second one around it, so an error in wasmtime would let a function do what you can do."
)
_WALLS: Final = frozenset({"landlock", "profile", "integrity"})  # any of these is a second wall
_NOT_THERE: Final = frozenset({"threads", "socketpair"})  # features that no component has


async def start_portable(
    folder: Path, slots: int, absent: tuple[str, ...], tell: Tell
) -> LevelBeside:
    """Start the level and return it if it passes its self-test. Raise SandboxUnavailable otherwise."""
    try:
        code = await asyncio.to_thread(find_or_build, folder, tell)
    except NoComponent as error:
        raise _unavailable(str(error)) from error
    pools = ChildPools(ChildPlan(code, another_user(), absent=absent), slots)
    try:
        held = await pools.lean_pool.start_ahead()
        report = await examine(pools.lean, is_process=False)
    except (LayerFailed, OSError) as error:
        await pools.aclose()
        raise _unavailable(str(error)) from error
    except BaseException:
        await pools.aclose()
        raise
    broken = [
        name for name in report.broken if name not in _NOT_THERE and name != "the same interpreter"
    ]
    if report.escaped or broken:
        trap = pools.lean_pool.trap
        await pools.aclose()
        raise _unavailable(
            "; ".join(
                [
                    *(f"the self-test's {name} escaped" for name in report.escaped),
                    *(
                        f"no {name}{f': {trap}' if name == ANSWERS and trap else ''}"
                        for name in broken
                    ),
                ]
            )
        )
    layers = {"wasmtime": True} | {name: not reason for name, reason in held.items()}
    missing = tuple(f"{name}: {reason}" for name, reason in held.items() if reason)
    one_wall = "" if any(layers.get(wall) for wall in _WALLS) else _ONE_WALL
    return LevelBeside("portable", pools, layers, missing, one_wall)


def _unavailable(reason: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"The sandbox's level `portable` cannot be had here: {reason}", (f"portable: {reason}",)
    )
