"""The sandbox's interface for the host: start it, run function code in separate workers, read the outcomes.

The host measures the time, kills by pidfd, caps output and replies, and treats every reply as an unverified claim.
Canceling any of these coroutines kills its worker.
"""

import asyncio
import tempfile
import uuid
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from .beside import NO_OTHERS, LevelBeside, LevelsBeside
from .code import SourceText
from .confine import mounts
from .confine.plan import ZygotePlan
from .errors import ProtocolError, SandboxError, SandboxUnavailable
from .job import Attempt, Attempts, Evaluation, FunctionCall, Job, ProgramJob, Work
from .outcome import Killed, Outcome, Refused, TimedOut
from .policy import Limits
from .processes.calls import CallServer, by_size
from .processes.compilation import Compiled, CompiledCache, UncompilableModule, parents
from .processes.ends import PoolChoice, ProcessorWait, WorkerPool
from .processes.large import LargeExchange
from .processes.launch import LayerFailed, NoPlace, ZygoteEnded
from .processes.pool import SPARES, Places, Pools
from .processes.sessions import (
    Late,
    Serve,
    StreamListeners,
    WorkerConversation,
    WorkerReply,
    WorkerSession,
    judge,
    judged,
    run,
)
from .processes.startup import CHOICES, Level, StartedLevel, find_ground
from .wire.caps import MOST_TRIED
from .wire.claims import within
from .wire.large import ValueGone
from .wire.protocol import Frame as Message
from .wire.protocol import pack
from .wire.requests import without_handler
from .wire.values import Unsendable, lean

_NO_WORKER: Final = (LayerFailed, NoPlace, ZygoteEnded)  # the job did not run
_SENT_ALONG: Final = (
    256 * 1024
)  # characters of code sent with a job, so that imports need no requests
_NESTED: Final = 4  # workers per place; all but one wait for nested calls


class Sandbox:
    """A runner of function code and async context manager, created by `start`."""

    def __init__(
        self, ground: StartedLevel | LevelBeside, parallel: int, lender: "Sandbox | None" = None
    ) -> None:
        self.parallel = parallel
        self.level: Level = ground.level
        self.layers = ground.layers
        self.missing = ground.missing
        self._ground = ground
        self._places: Places = lender._places if lender else Places(parallel)
        self._pools: PoolChoice
        if isinstance(ground, LevelBeside):
            self._pools = ground.pools
        else:
            shared = lender._pools if lender else None
            self._pools = Pools(
                ground.plan, ground.pool, shared if isinstance(shared, Pools) else None
            )
        self._is_lent = lender is not None
        self._compiled = CompiledCache(self._compile)

    @classmethod
    async def start(
        cls,
        *,
        packages: Sequence[str] = ("pydantic",),
        parallel: int = 4,
        guarded: Sequence[str] = (),
        override: bool = False,
        level: Level = "auto",
        beside: LevelsBeside = NO_OTHERS,
    ) -> "Sandbox":
        """Start a sandbox and return it after it has passed its self-test.

        No function can be granted write access to `guarded` files and folders, nor to folders that contain them.
        `beside` are the levels that stand beside this package, for the machines on which no level of its own holds.

        Raises:
            SandboxUnavailable: no level works here; it names the missing layers.
            OneWall: only a level beside this package works, with one wall, and the user neither chose it nor agreed
                to it (`agree_to_one_wall`).
        """
        slots = _NESTED * parallel + SPARES
        names = mounts.packages(packages)
        if level not in CHOICES:
            return cls(await beside.start(level, slots, tuple(names)), parallel)
        try:
            ground = await find_ground(
                names, slots, _scratch_folder(), override=override, choice=level
            )
        except SandboxUnavailable as missing:
            if level != "auto":
                raise
            return cls(await beside.start_any(missing, slots, tuple(names)), parallel)
        ground.pool.refill()
        return cls(replace(ground, plan=replace(ground.plan, guarded=tuple(guarded))), parallel)

    def share(self, *, guarded: Sequence[str] = ()) -> "Sandbox":
        """Return a sandbox with separate guards; it must end before this one.

        Both use the same warm processes for calls without access, and share the limit of parallel calls.
        """
        ground = self._ground
        if isinstance(ground, StartedLevel):
            plan = replace(ground.plan, guarded=tuple(guarded), scratch_folder=_scratch_folder())
            ground = replace(ground, plan=plan)
        return Sandbox(ground, self.parallel, self)

    @property
    def plan(self) -> ZygotePlan:
        """The plan for starting zygotes. Raises SandboxError at a level beside this package, which has none."""
        if isinstance(self._ground, LevelBeside):
            raise SandboxError(f"level `{self.level}` has no zygote")
        return self._ground.plan

    @property
    def shows_files(self) -> bool:
        """Whether a worker sees granted files itself; otherwise the host passes them on request."""
        return isinstance(self._ground, StartedLevel)

    async def run(self, job: Job[Work]) -> Outcome:
        """Run a job in a new worker, and return its outcome."""
        try:
            message = await by_size(_values_of(job.work), job.work.to_json)
        except Unsendable as error:
            return Refused(f"arguments: {error}")
        try:
            ready = await self._prepare(job, message)
            if not isinstance(ready, _Ready):
                return ready
            if isinstance(job.work, Evaluation | ProgramJob):
                ready.show(job.work)
            return ready.call.illustrated(await self._outcome(ready, job))
        except (*_NO_WORKER, ValueGone) as error:
            return Refused(str(error))

    async def attempt(self, job: Job[Attempts]) -> tuple[Outcome | None, ...]:
        """Run attempts, in one worker if possible, and return their outcomes in order; None if not reached.

        The outcomes are only hints, to be confirmed by `run`. `limits.wall_s` is the time for all attempts together.
        """
        try:
            ready = await self._prepare(job, job.work.to_json())
        except _NO_WORKER as error:
            ready = Refused(str(error))
        if not isinstance(ready, _Ready):
            return (ready,) * len(job.work.attempts)
        series = AttemptSeries(job)
        await series.add(job.work.attempts)
        async with self._places:
            try:
                pool = await self._pools.get(ready.ahead, job.limits, job.access)
                await series.run(pool, ready.message, ready.call.serve)
            except _NO_WORKER as error:
                return tuple(outcome or Refused(str(error)) for outcome in series.outcomes)
        return tuple(
            outcome and ready.illustrated(attempt, outcome, job.modules[job.module])
            for attempt, outcome in zip(series.attempts, series.outcomes, strict=True)
        )

    @property
    def resources(self) -> dict[str, str]:
        """The limits on memory, pids and CPU of all workers of a zygote together, and their maximum number."""
        return self._pools.resources()

    @property
    def zygotes(self) -> int:
        """The number of warm processes that run or may be started."""
        return len(self._pools)

    async def aclose(self) -> None:
        """End all workers and warm processes, except shared ones."""
        if not (self._is_lent and isinstance(self._ground, LevelBeside)):
            await self._pools.aclose()

    async def __aenter__(self) -> "Sandbox":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def _outcome(self, ready: "_Ready", job: Job[Work]) -> Outcome:
        limits, large = job.limits, ready.call.large
        sizes = {"result": limits.result, "most_large": large.most}
        message = ready.message | sizes | ready.around(job)
        onlookers = StreamListeners(
            job.around.debug.reins if job.around.debug else None, job.on_output, large
        )
        async with self._places:
            pool = await self._pools.get(ready.ahead, limits, job.access)
            return await judged(await run(pool, message, limits, ready.call.serve, onlookers))

    async def _prepare(self, job: Job[Work | Attempts], message: Message) -> "_Ready | Outcome":
        """Return the job with the compiled code that it needs, or the outcome if it cannot run."""
        modules, name = job.modules, job.module
        source = modules.get(name)
        if source is None:
            return Refused(f"there is no module functions.{name}")
        compiled = await self._compiled.get(source)
        if not isinstance(compiled, Compiled):
            return compiled.outcome if isinstance(compiled, UncompilableModule) else compiled
        closure = await self._compiled.closure(modules, name)
        large = LargeExchange(job.large, job.limits)
        call = CallServer(
            modules, self._compiled, self._places, job.handler or without_handler, large
        )
        for dependency in closure:
            call.show_module(modules[dependency])
        ahead = self._pools.ahead_for(closure, " ".join(job.texts))
        sent: dict[
            str, Message
        ] = {}  # the module, its parent folders, and its imports up to a total size
        size = 0
        for folder in {folder for module in closure for folder in parents(module)} - closure.keys():
            sent[folder] = {"kind": "package"}
        for module, code in closure.items():
            size += len(code.message["code"])
            if module == name or size < _SENT_ALONG:
                sent[module] = code.message
        return _Ready(call, message | {"module": name, "modules": sent}, ahead, closure.keys())

    async def _compile(self, message: Message) -> Message | Killed | TimedOut:
        async with self._places:
            result = await run(self._pools.lean, message, Limits(result=_SENT_ALONG * 64), _refuse)
        return result.reply if isinstance(result, WorkerReply) else result


@dataclass(frozen=True, slots=True)
class _Ready:
    """A job that is ready for a worker."""

    call: CallServer
    message: Message
    ahead: tuple[str, ...]
    reached: Set[str]  # the module and all modules that it imports

    def around(self, job: Job[Work]) -> Message:
        """Return what surrounds the job, with the breakpoints of the modules that it has."""
        around = job.around.to_json()
        if debug := around.get("debug"):
            points = [
                self.call.placed(point)
                for point in debug["points"]
                if point["module"] in job.modules
            ]
            around["debug"] = {**debug, "points": points}
        return around

    def show(self, work: Evaluation | ProgramJob) -> None:
        """Make the code of an example or program available for traceback frames."""
        for label, text in work.labels:
            self.call.show(label, text)

    def illustrated(self, attempt: Attempt, outcome: Outcome, source: SourceText) -> Outcome:
        """Return an attempt's outcome with the source lines of its text in the frames."""
        if attempt.text is None:
            self.call.show_module(source)
        else:
            self.call.show(source.path, attempt.text)
        if isinstance(attempt.work, Evaluation):
            self.show(attempt.work)
        return self.call.illustrated(outcome)


def _values_of(work: Work) -> object:
    """Return the values that a worker gets with its job."""
    if isinstance(work, FunctionCall):
        return work.arguments
    return work.kept if isinstance(work, ProgramJob) else None


def _scratch_folder() -> str:
    """Return an unused path for scratch folders. The folder is created only if it is needed."""
    return str(Path(tempfile.gettempdir(), f"knapper-scratch-{uuid.uuid4().hex}"))


async def _refuse(_message: Message) -> Message:
    raise ProtocolError("a compile-only worker asked for something")


# Many attempts in one worker. Any of them may affect the next ones, so their outcomes are hints and never proof.
# Each has a timeout on the host's clock; patient ones are not charged for waiting for a processor. An attempt that
# hangs, dies or violates the protocol ends its worker, and the rest continues in another one; if importing the module
# does that, all attempts end.

_FEW, _PAUSE_S = 4, 0.001
RESULT: Final = 64 * 1024  # bytes of one value; a larger one is reported as ResultTooLarge
_PATIENT: Final = 3  # extensions of a patient attempt's timeout at most
_LEAST_S: Final = 0.002
_TOGETHER: Final = 4  # times the limit of one result: limit for all replies together


class AttemptSeries:
    """A series of attempts with their outcomes, None for those not reached."""

    def __init__(self, job: Job[Attempts]) -> None:
        self.attempts: list[Attempt] = []
        self.outcomes: list[Outcome | None] = []
        self._then = job.work.then
        self._numbers: dict[str, int] = {}
        self._messages: list[Message] = []
        self._waiting: list[int] = []
        self._limits = replace(job.limits, result=min(job.limits.result, RESULT))
        self._room = _TOGETHER * job.limits.result
        self._each_s = job.work.each_s
        self._is_loaded = False
        self._is_patient = job.work.is_patient
        self._wait: ProcessorWait | None = None

    async def add(self, attempts: Sequence[Attempt]) -> None:
        """Add attempts; large arguments are written beside the event loop."""
        for at, attempt in enumerate(attempts, len(self.attempts)):
            message = await by_size(attempt.work, self._message, attempt)
            self.attempts.append(attempt)
            self.outcomes.append(message if isinstance(message, Refused) else None)
            self._messages.append({} if isinstance(message, Refused) else message)
            if self.outcomes[at] is None:
                self._waiting.append(at)

    def _message(self, attempt: Attempt) -> Message | Refused:
        text = (
            {}
            if attempt.text is None
            else {"text": self._numbers.setdefault(attempt.text, len(self._numbers))}
        )
        if isinstance(attempt.work, Evaluation):
            return attempt.work.to_json() | text
        try:
            return text | {"arguments": lean(dict(attempt.work))}
        except Unsendable as error:
            return Refused(f"arguments: {error}")

    async def _goes_on(self) -> bool:
        """Return whether an attempt is left. If none is waiting, call `then` for more."""
        while not self._waiting and self._then is not None:
            more = self._then(self.outcomes)
            if not more:
                self._then = None
            await self.add(more)
        return bool(self._waiting)

    def _job(self, texts: int = 0) -> Message:
        """Return the waiting attempts, and the texts except the first `texts`, which the worker already has."""
        return {
            "texts": [*self._numbers][texts:],
            "attempts": [self._messages[at] for at in self._waiting],
        }

    async def run(self, pool: WorkerPool, message: Message, serve: Serve) -> None:
        """Run the attempts in as many workers as necessary, until the time or the space for replies is used up."""
        try:
            async with asyncio.timeout(self._limits.wall_s) as clock:
                while self._room > 0 and await self._goes_on():
                    await self._in_one_worker(pool, message, serve)
        except TimeoutError:
            if not clock.expired():
                raise

    async def _in_one_worker(self, pool: WorkerPool, message: Message, serve: Serve) -> None:
        data = pack(message | {"result": self._limits.result} | self._job())
        self._is_loaded = False
        async with WorkerSession(pool, self._limits) as session:
            self._wait = ProcessorWait(session.sight) if self._is_patient else None
            end: Late | str | None  # if replies are missing, the reason
            try:
                end = await self._load_into(session.conversation, data, serve)
            except ProtocolError as error:
                end = session.stop_for(error)
        self._room -= session.conversation.heard
        if not self._waiting or self._room <= 0:
            return
        ended = await session.ended(end)
        if isinstance(ended, TimedOut):
            ended = replace(ended, limit_s=self._most_s, seconds=self._most_s)
        charged = self._waiting[:1] if self._is_loaded else self._waiting
        for at in charged:
            self.outcomes[at] = ended
        self._waiting = self._waiting[len(charged) :]

    async def _load_into(
        self, conversation: WorkerConversation, data: bytes, serve: Serve
    ) -> Late | None:
        if not await conversation.ready():
            return None
        await conversation.say(data)
        frame = await conversation.reply(serve)
        if frame is None:
            return None
        if frame != {"kind": "loaded"}:
            raise ProtocolError("its reply has no known shape")
        self._is_loaded = True
        return await self._hear_all(conversation, serve)

    async def _hear_all(self, conversation: WorkerConversation, serve: Serve) -> Late | None:
        loop = asyncio.get_running_loop()
        while await self._more(conversation) and conversation.heard <= self._room:
            began = loop.time()
            if len(self._waiting) > _FEW and not conversation.has_frame:
                await asyncio.sleep(
                    _PAUSE_S
                )  # receiving several at once is cheaper than waking for each
            frame = await self._reply(conversation, serve)
            if not isinstance(frame, dict):
                return frame
            match frame:
                case {"kind": "tried", "reply": dict(reply), "output": str(output)}:
                    within("characters of what is printed", len(output), MOST_TRIED)
                    self.outcomes[self._waiting[0]] = judge(
                        reply, output, loop.time() - began, MOST_TRIED
                    )
                    del self._waiting[0]
                case _:
                    raise ProtocolError("its reply has no known shape")
            await asyncio.sleep(0)  # frames that have arrived never wait, and each may be large
        return None

    async def _reply(self, conversation: WorkerConversation, serve: Serve) -> Message | Late | None:
        """Return the next reply; patient attempts are not charged for the time without a processor."""
        if self._wait is None:
            return await conversation.reply_within(self._most_s, serve)
        waited = self._wait.seconds()
        frame = await conversation.reply_within(self._most_s, serve)
        for _turn in range(_PATIENT):
            before, waited = waited, self._wait.seconds()
            if not isinstance(frame, Late) or waited - before < _LEAST_S:
                break
            frame = await conversation.reply_within(min(self._most_s, waited - before), serve)
        return frame

    async def _more(self, conversation: WorkerConversation) -> bool:
        """Return whether an attempt is left. Send new attempts to the worker."""
        sent_count = len(self._numbers)
        if not self._waiting and await self._goes_on():
            await conversation.say(pack({"kind": "attempts", **self._job(sent_count)}))
        return bool(self._waiting)

    @property
    def _most_s(self) -> float:
        return min(self._each_s, self.attempts[self._waiting[0]].most_s)
