"""The host's handle on a zygote and on its workers: start, fork, kill, reap, end.

The zygote is exec'd, never forked: a fork of the host would carry the host's keys in its memory.
Orders and answers go over one socket, in the same order. Nothing here ever waits for function code, and a worker is
killed by its pidfd, never by its process id. A zygote that imported a third-party package is not trusted: anything
but a valid answer ends it, and only its own children count as workers.
"""

import asyncio
import functools
import json
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..confine.plan import THREADS, Rlimits, ZygotePlan
from ..errors import SandboxError
from ..policy import Limits
from ..wire.strict_json import MESSAGE, Malformed, read_json
from . import cgroup
from .ends import NOT_SEEN, WorkerUsage, descends, number_of, pid_of, threads_of

# The host's control of a zygote that imports packages: it forks only when ordered to, and is stopped between calls.
# The zygote's seccomp filter asks here about each fork. Each order permits one fork; any other fork fails as it does
# in a worker. Each permitted fork must come back as a new worker, or package code used the permission for itself.

STILL_S: Final = 0.05  # idle time after which the zygote is stopped
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV and _SEND
_QUESTION: Final = 80  # bytes; the first 8 are an id that the answer repeats
_ANSWER: Final = struct.Struct("=QqiI")  # id, value, error, flags
_GO_ON: Final = 1
_REFUSED: Final = -1  # EPERM
_MOST_REFUSED: Final = 1000  # forks without an order before a zygote is ended


class Forks:
    """The fork control of one zygote, active before it imports anything. `due` counts the workers still expected."""

    def __init__(
        self, listener: int, pidfd: int, due: Callable[[], int], give_up: Callable[[], None]
    ) -> None:
        self._listener = listener
        self._pidfd = pidfd
        self._pid = pid_of(pidfd)
        self._due = due
        self._give_up = give_up
        self._given = 0  # permitted forks without a worker yet
        self._refused = 0
        self._workers: set[int] = set()
        self._rest: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener, self._decide)

    def _decide(self) -> None:
        """Answer one fork request that the kernel passes on."""
        import fcntl  # noqa: PLC0415 - Windows does not have it, and imports this module too

        if not self._is_asked():
            self._loop.remove_reader(self._listener)  # the zygote has ended
            return
        question = bytearray(_QUESTION)
        is_due = self._given < self._due()
        try:
            fcntl.ioctl(self._listener, _RECEIVE, question)
            number = int.from_bytes(question[:8], sys.byteorder)
            answer = (
                _ANSWER.pack(number, 0, 0, _GO_ON)
                if is_due
                else _ANSWER.pack(number, 0, _REFUSED, 0)
            )
            fcntl.ioctl(self._listener, _SEND, answer)
        except FileNotFoundError:  # the forking process has ended or was interrupted
            return
        self._given += is_due
        self._refused += not is_due
        if self._refused > _MOST_REFUSED:
            self._give_up()

    def _is_asked(self) -> bool:
        """Return whether a request is pending. Some kernels block on receiving if there is none."""
        poller = select.poll()
        poller.register(self._listener, select.POLLIN)
        return any(events & select.POLLIN for _descriptor, events in poller.poll(0))

    def is_sound(self, worker: int | None) -> bool:
        """Return whether the answer to a fork order is valid; `worker` is the new worker's process id, if there is one.

        Every permitted fork must be an ordered worker, and the zygote must have only one thread.
        """
        if worker is not None:
            if worker <= 0 or worker in self._workers or not self._given:
                return False
            self._given -= 1
            self._workers.add(worker)
        return self._given < self._due() and not self.has_threads

    def forget(self, worker: int) -> None:
        """Forget a worker that has been reaped, because its process id may now be reused."""
        self._workers.discard(worker)

    @property
    def has_threads(self) -> bool:
        """True if the zygote has more than one thread."""
        return threads_of(self._pid) > 1

    def wake(self) -> None:
        """Wake the zygote for an order."""
        if self._rest is not None:
            self._rest.cancel()
        _signal(self._pidfd, signal.SIGCONT)

    def let_rest(self) -> None:
        """Stop the zygote soon, so that packages do no background work between calls."""
        if self._rest is not None:
            self._rest.cancel()
        self._rest = self._loop.call_later(STILL_S, _signal, self._pidfd, signal.SIGSTOP)

    def close(self) -> None:
        """Close the descriptors. The kernel refuses further forks."""
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._listener)
        os.close(self._listener)
        os.close(self._pidfd)


_MAX_ANSWER = 1 << 16
_READ = 1 << 16
_FAREWELL_S = 5.0
_ANSWER_S = 150.0  # longer than a pool's timeout for a start
_ANSWERS: dict[str, dict[str, dict[str, Any]]] = {  # order → kind of answer → its fields
    "plan": {
        "guarded": {},
        "hello": {"held": dict, "python": str},
        "failed": {"layer": str, "reason": str},
    },
    "fork": {"forked": {"pid": int}, "full": {}},
    "reap": {"reaped": {"status": int, "cpu_s": int | float, "memory": int}},
}
_DESCRIPTORS = {"forked": 3, "guarded": 2}
# Imported modules stay in memory, so garbage collection during their import would only cost time.
_BOOT = (
    "import gc, sys, types; gc.disable(); room = types.ModuleType('sandbox'); room.__path__ = [sys.argv[1]]; "
    "sys.modules['sandbox'] = room; from sandbox.processes.zygote import main; main(int(sys.argv[2]))"
)
_PYTHON = (sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", "-c", _BOOT)
# MALLOC_ARENA_MAX: one heap for all threads, because each further one reserves 64 MiB of a worker's memory limit.
# LD_BIND_NOW: resolve symbols at load time; otherwise each worker does it again, in pages that it has to copy.
# PYTHONHASHSEED: a set of strings has the same order in every process, so a replay repeats the result of a call.
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "LD_BIND_NOW": "1",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
}


class ZygoteEnded(SandboxError):
    """The zygote has ended. To get a worker, start another zygote."""


class NoPlace(SandboxError):
    """Every slot has a worker."""


class LayerFailed(SandboxError):
    """A confinement layer could not be applied, so the zygote has exited."""

    def __init__(self, layer: str, reason: str) -> None:
        super().__init__(f"{layer}: {reason}")
        self.layer = layer


class ThreadsLeft(LayerFailed):
    """A preloaded package left threads running, and a process with more than one thread cannot fork a worker."""


@dataclass(slots=True)
class Worker:
    """One forked worker, as a set of descriptors. `Zygote.release` ends it; `close` closes the descriptors."""

    zygote: "Zygote"
    pid: int  # in the zygote's namespace
    channel: socket.socket
    output: int
    pidfd: int
    sight: WorkerUsage = NOT_SEEN

    async def receive(self) -> bytes:
        """Return data from the worker, or b"" if it has closed its end or died."""
        try:
            return await asyncio.get_running_loop().sock_recv(self.channel, _READ)
        except ConnectionError:
            return b""

    async def send(self, data: bytes) -> None:
        """Send one packed frame. Raise ConnectionError if the worker has died."""
        await asyncio.get_running_loop().sock_sendall(self.channel, data)

    def read_output(self) -> bytes | None:
        """Return some printed output, b"" at its end, or None if there is none now."""
        try:
            return os.read(self.output, _READ)
        except BlockingIOError:
            return None

    def listen(self, heard: Callable[[], None] | None) -> None:
        """Call `heard` whenever there is output; None removes the callback."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.output) if heard is None else loop.add_reader(self.output, heard)

    def interrupt(self) -> bool:
        """Stop the worker at its next line of function code. Return False if it has ended."""
        return _signal(self.pidfd, signal.SIGUSR1)  # handled by `inside.debugger`

    def end_program(self) -> bool:
        """End the program that the worker runs, so that it replies with its variables. Return False if it cannot."""
        return _signal(self.pidfd, signal.SIGUSR2)  # handled by `inside.programs`

    def kill(self) -> None:
        """Kill the worker."""
        _signal(self.pidfd, signal.SIGKILL)

    def stop(self) -> None:
        """Pause the worker with all its threads."""
        _signal(self.pidfd, signal.SIGSTOP)

    def go_on(self) -> None:
        """Resume the worker."""
        _signal(self.pidfd, signal.SIGCONT)

    def close(self) -> None:
        """Close the descriptors."""
        self.channel.close()
        self.sight.close()
        os.close(self.output)
        os.close(self.pidfd)


Answer: TypeAlias = asyncio.Future[
    tuple[dict[str, Any], Worker | None]
]  # the zygote's JSON, and its new worker


class Zygote:
    """A running zygote, created by `start`."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", control: socket.socket, plan: ZygotePlan
    ) -> None:
        self._process, self._control, self._plan = process, control, plan
        self.imports = bool(plan.access.preload)  # third-party code: its answers are checked
        self._forks: Forks | None = None  # set before it imports anything
        self._waiting: deque[tuple[str, Answer]] = deque()  # pairs of an order and its answer
        self._killed: deque[tuple[Worker, Answer]] = deque()  # not yet reaped
        self._loop = asyncio.get_running_loop()
        self.ended = False
        self.held: dict[str, str] = {}
        self.python = ""
        self.group = cgroup.Group()

    @classmethod
    async def start(cls, plan: ZygotePlan) -> "Zygote":
        """Start a zygote and return it when it is ready. Raise LayerFailed if a layer could not be applied."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        room, control = str(Path(__file__).parents[1]), str(theirs.fileno())
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond
                [*_PYTHON, room, control],
                env=_ENVIRONMENT | ({"TZ": os.environ["TZ"]} if "TZ" in os.environ else {}),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        ours.setblocking(False)
        zygote = cls(process, ours, plan)
        zygote._loop.add_reader(ours.fileno(), zygote._receive)
        try:
            if "limits" in plan.layers:
                await asyncio.to_thread(zygote._share_out, plan.slots)
            hello, _none = await zygote._send("plan", json.dumps(plan.to_json()).encode())
        except BaseException:
            await zygote.aclose()
            raise
        return await zygote._take_greeting(hello)

    def _share_out(self, slots: int) -> None:
        """Create a control group while the interpreter starts, because the kernel is slow at it."""
        self.group = cgroup.make(cgroup.share_of(Limits().memory, slots, THREADS))
        self.group = self.group.take(self._process.pid)

    async def _take_greeting(self, hello: dict[str, Any]) -> "Zygote":  # JSON from the zygote
        if hello["kind"] == "failed":
            await self.aclose()
            raise LayerFailed(hello["layer"], hello["reason"])
        if self._forks is not None and self._forks.has_threads:
            await self.aclose()
            raise ThreadsLeft("packages", ", ".join(self._plan.access.preload))
        self.held, self.python = hello["held"], hello["python"]
        return self

    def order(self, rlimits: Rlimits, *, ahead: bool = False) -> Answer:
        """Order a new worker; `collect` waits for it. With `ahead`, the worker warms itself up."""
        self._clear_away()
        return self._send("fork", _fork_order(rlimits, ahead=ahead))

    async def collect(self, answer: Answer) -> Worker:
        """Return the worker that was ordered. It is confined, or dying, and has received nothing yet."""
        try:
            _answer, worker = answer.result() if answer.done() else await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(self.discard)
            raise
        if worker is None:
            raise NoPlace(
                "too many calls wait for calls of their own: call less deeply, or one after another"
            )
        return worker

    def _worker(self, pid: int, descriptors: list[int]) -> Worker | None:
        """Return a worker for these descriptors, or None if they are not those of a new worker of this zygote."""
        channel, output, pidfd = descriptors
        seen_as = pid_of(pidfd) if self.imports else number_of(pidfd)
        if self.imports and not (
            _is(stat.S_ISSOCK, channel)
            and _is(stat.S_ISFIFO, output)
            and descends(seen_as, self._process.pid)
            and (self._forks is None or self._forks.is_sound(seen_as))
        ):
            return None
        os.set_blocking(output, False)
        worker = Worker(
            self, pid, socket.socket(fileno=channel), output, pidfd, WorkerUsage.of(seen_as)
        )
        worker.channel.setblocking(False)
        return worker

    def discard(self, answer: Answer) -> None:
        """Release the worker of an answer that is no longer needed."""
        if (
            not answer.cancelled()
            and answer.exception() is None
            and (worker := answer.result()[1]) is not None
        ):
            self.release(worker)

    def release(self, worker: Worker) -> Answer:
        """Kill a worker now and let the zygote reap it soon. Return a future of the zygote's report on its end."""
        worker.kill()
        reaped: Answer = self._loop.create_future()
        self._killed.append((worker, reaped))
        self._loop.call_soon(self._clear_away)
        return reaped

    def _clear_away(self) -> None:
        """Close and reap killed workers, once their users have continued and before another worker is ordered."""
        while self._killed:
            worker, reaped = self._killed.popleft()
            worker.close()
            if self._forks is not None:
                reaped.add_done_callback(functools.partial(_forget, self._forks, worker.sight.pid))
            self._send("reap", b'{"kind": "reap", "pid": %d}' % worker.pid, reaped)

    def _send(self, kind: str, order: bytes, future: Answer | None = None) -> Answer:
        future = self._loop.create_future() if future is None else future
        if self._forks is not None:
            self._forks.wake()
        try:
            self._control.send(order)
        except OSError as error:
            future.set_exception(ZygoteEnded(f"the zygote has ended: {error}"))
            future.exception()  # mark it as retrieved, because a reaping may have no waiter
            return future
        self._waiting.append((kind, future))
        late = self._loop.call_later(_ANSWER_S, self._give_up)
        future.add_done_callback(lambda _: late.cancel())
        return future

    def _receive(self) -> None:
        try:
            data, descriptors, _flags, _address = socket.recv_fds(self._control, _MAX_ANSWER, 3)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        answer = _answer(data, descriptors, self._waiting[0][0]) if data and self._waiting else None
        if answer is not None and self._take(answer, descriptors):
            return
        for descriptor in descriptors:
            os.close(descriptor)
        self._give_up() if data else self._end()

    def _take(self, answer: dict[str, Any], descriptors: list[int]) -> bool:
        """Pass an answer on to its waiter. Return False if the answer is invalid."""
        match answer["kind"]:
            case "guarded":
                listener, pidfd = descriptors
                if self._forks is not None or not self.imports:
                    return False
                # The zygote is about to import packages: take control of its forks.
                self._forks = Forks(listener, pidfd, self._due, self._give_up)
                return True
            case "hello" if self._forks is None and self._is_to_be_guarded:
                return False
            case "full" if self._forks is not None and not self._forks.is_sound(None):
                return False
        worker = self._worker(answer["pid"], descriptors) if descriptors else None
        if descriptors and worker is None:
            return False
        _order, future = self._waiting.popleft()
        if not future.cancelled():
            future.set_result((answer, worker))
        if self._forks is not None and not self._waiting:
            self._forks.let_rest()
        return True

    @property
    def _is_to_be_guarded(self) -> bool:
        return self.imports and "seccomp" in self._plan.layers and not self._plan.tolerant

    def _due(self) -> int:
        """Return the number of workers that were ordered and have not arrived yet."""
        return sum(order == "fork" for order, _future in self._waiting)

    def _give_up(self) -> None:
        """End a zygote that does not answer, or answers invalidly."""
        if not self._plan.has_outer:  # an outer process kills it when the host closes its end
            self._process.kill()
        self._end()

    def _end(self) -> None:
        if self.ended:
            return
        self.ended = True
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if self._forks is not None:
            self._forks.close()
            self._forks = None
        while self._waiting:
            _order, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(ZygoteEnded("the zygote has ended"))
                future.exception()

    async def aclose(self) -> None:
        """End the zygote and all its workers, and wait until it has exited."""
        self._end()
        try:
            await asyncio.to_thread(self._process.wait, _FAREWELL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        await asyncio.to_thread(self.group.close)


def _signal(pidfd: int, number: signal.Signals) -> bool:
    """Send a signal to a worker. Return False if it has ended, which the reader of its socket notices."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    return True


@functools.cache
def _fork_order(rlimits: Rlimits, *, ahead: bool) -> bytes:
    return json.dumps({"kind": "fork", "limits": asdict(rlimits), "ahead": ahead}).encode()


def _is(kind: Callable[[int], bool], descriptor: int) -> bool:
    return kind(os.fstat(descriptor).st_mode)


def _answer(data: bytes, descriptors: list[int], order: str) -> dict[str, Any] | None:
    """Parse an answer to this kind of order; return None if it is invalid."""
    try:
        answer = read_json(data, MESSAGE)
        shape = _ANSWERS[order][answer["kind"]]
        is_whole = all(isinstance(answer[key], kind) for key, kind in shape.items())
    except (Malformed, KeyError, TypeError):
        return None
    return answer if is_whole and len(descriptors) == _DESCRIPTORS.get(answer["kind"], 0) else None


def _forget(forks: Forks, worker: int, _reaped: Answer) -> None:
    forks.forget(worker)
