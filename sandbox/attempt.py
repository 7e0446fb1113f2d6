"""Many attempts in one worker. Any of them may spoil the rest, so their outcomes are advice and never proof.

Each has its own time on the host's clock; patient ones get back what they waited for a processor. One that hangs, dies
or breaks a rule ends its worker, and the rest goes on in another; a module that does that on import ends them all.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from .errors import ProtocolError
from .job import Attempt, Attempts, Evaluation, Job
from .outcome import Outcome, Refused, TimedOut
from .processes.conversation import Late, Serve, WorkerConversation, judge
from .processes.ends import WorkerPool
from .processes.usage import ProcessorWait
from .processes.worker_session import WorkerSession
from .wire.caps import MOST_TRIED
from .wire.claims import within
from .wire.protocol import Frame as Message
from .wire.protocol import pack
from .wire.values import Unsendable, encode

_FEW, _PAUSE_S = 4, 0.001
RESULT: Final = 64 * 1024  # bytes of one value; a larger one is reported as ResultTooLarge
_PATIENT: Final = 3  # times its time: what an attempt gets at most for waiting for a processor
_LEAST_S: Final = 0.002
_TOGETHER: Final = 4  # times a call's result: all that is heard, after which nothing more is reached


class AttemptSeries:
    """Attempts in order with their outcomes, None for those not reached."""

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
        self._add(job.work.attempts)

    def _add(self, attempts: Sequence[Attempt]) -> None:
        for at, attempt in enumerate(attempts, len(self.attempts)):
            message = self._message(attempt)
            self.attempts.append(attempt)
            self.outcomes.append(message if isinstance(message, Refused) else None)
            self._messages.append({} if isinstance(message, Refused) else message)
            if self.outcomes[at] is None:
                self._waiting.append(at)

    def _message(self, attempt: Attempt) -> Message | Refused:
        text = {} if attempt.text is None else {"text": self._numbers.setdefault(attempt.text, len(self._numbers))}
        if isinstance(attempt.work, Evaluation):
            return attempt.work.to_json() | text
        try:
            return text | {"arguments": encode(dict(attempt.work))}
        except Unsendable as error:
            return Refused(f"arguments: {error}")

    def _goes_on(self) -> bool:
        """Return whether an attempt is left. If none is waiting, ask for more."""
        while not self._waiting and self._then is not None:
            more = self._then(self.outcomes)
            if not more:
                self._then = None
            self._add(more)
        return bool(self._waiting)

    def _job(self, texts: int = 0) -> Message:
        """Return the waiting attempts, and the texts without the first `texts`, which the worker has."""
        return {"texts": [*self._numbers][texts:], "attempts": [self._messages[at] for at in self._waiting]}

    async def run(self, pool: WorkerPool, message: Message, serve: Serve) -> None:
        """Run the waiting attempts in as many workers as needed, until the time or the room for replies is used up."""
        try:
            async with asyncio.timeout(self._limits.wall_s) as clock:
                while self._room > 0 and self._goes_on():
                    await self._in_one_worker(pool, message, serve)
        except TimeoutError:
            if not clock.expired():
                raise

    async def _in_one_worker(self, pool: WorkerPool, message: Message, serve: Serve) -> None:
        data = pack(message | {"result": self._limits.result} | self._job())
        self._is_loaded = False
        async with WorkerSession(pool, self._limits) as session:
            self._wait = ProcessorWait(session.sight) if self._is_patient else None
            end = await self._end(session.conversation, data, serve)
        self._room -= session.conversation.heard
        if not self._waiting or self._room <= 0:
            return
        ended = await session.ended(end)
        if isinstance(ended, TimedOut):
            ended = replace(ended, limit_s=self._most_s, seconds=self._most_s)
        charged = self._waiting[:1] if self._is_loaded else self._waiting
        self.outcomes = [ended if at in charged else outcome for at, outcome in enumerate(self.outcomes)]
        self._waiting = self._waiting[len(charged) :]

    async def _end(self, conversation: WorkerConversation, data: bytes, serve: Serve) -> Late | str | None:
        """Take replies until all have arrived. If some are missing, return why."""
        try:
            return await self._told(conversation, data, serve)
        except ProtocolError as error:
            return f"the worker was stopped, because {error}"

    async def _told(self, conversation: WorkerConversation, data: bytes, serve: Serve) -> Late | None:
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
                await asyncio.sleep(_PAUSE_S)  # to take several at once is cheaper than to wake for each
            frame = await self._reply(conversation, serve)
            if not isinstance(frame, dict):
                return frame
            self._take(frame, loop.time() - began)
            await asyncio.sleep(0)  # what is here already never waits, and each may be large
        return None

    async def _reply(self, conversation: WorkerConversation, serve: Serve) -> Message | Late | None:
        """Return the next reply; if they are patient, the time in which it had no processor is not charged."""
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
        if not self._waiting and self._goes_on():
            await conversation.say(pack({"kind": "attempts", **self._job(sent_count)}))
        return bool(self._waiting)

    @property
    def _most_s(self) -> float:
        return min(self._each_s, self.attempts[self._waiting[0]].most_s)

    def _take(self, message: Message, seconds: float) -> None:
        match message:
            case {"kind": "tried", "reply": dict(reply), "output": str(output)}:
                within("characters of what is printed", len(output), MOST_TRIED)
                self.outcomes[self._waiting[0]] = judge(reply, output, seconds, MOST_TRIED)
                del self._waiting[0]
            case _:
                raise ProtocolError("its reply has no known shape")
