"""The record of a call, from its start to its answer: its arguments, what is stored, and who is notified."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from agent_core.access.grants import CallFlow
from agent_core.base import events
from agent_core.base.errors import KnapperError
from agent_core.base.messages import Call
from agent_core.base.offload import aside
from agent_core.base.pictures import Picture, PictureFile, captioned
from agent_core.base.receipt import CHANGING, Receipt
from agent_core.base.records import dataclass, replace, to_json
from agent_core.context import beginning, first_page, large_page
from agent_core.functions import answers
from agent_core.functions.answers import CallOutcome, Skipped
from agent_core.memory.function_api import FunctionMemoryApi
from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.validation import LIMIT_CHARS
from agent_core.storage import (
    Entry,
    NoProgress,
    Plan,
    SaveBlock,
    SetThread,
    Write,
    commit,
)
from agent_core.storage.journal import (
    ReachEntry,
    answer_to,
    call_started,
    facts_entry,
    own_arguments,
    write_entry,
)
from sandbox import Refused, Returned
from sandbox.wire.large import Large

from .turn import Turn

if TYPE_CHECKING:
    from agent_core.access.grants import Approvals
    from agent_core.base.clock import Clock
    from agent_core.base.problem import Problem
    from agent_core.functions.debug.debugging import DebugNotes
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

MOST_CHARS = 4 << 20
"""The maximum number of characters of a stored answer."""


@dataclass(frozen=True, slots=True)
class PlannedProgram:
    """A program to run; its answer is its value and its printed output."""

    code: str


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one call; `arguments` and `outcome` decide whether it is a repetition.

    `heartbeat`: the call requested another step. `has_changed`: it changed functions, memory or files. `is_waiting`: it
    was not made because it names a function that was refused in this turn.
    """

    call: "Call"
    text: str
    outcome: str
    excluded: frozenset[str] = frozenset()
    heartbeat: bool = False
    has_changed: bool = False
    is_waiting: bool = False

    @property
    def failed(self) -> bool:
        """True if the call did not return what was requested."""
        return self.outcome != "returned"


class CallRecord:
    """One call from its start to its answer; `number` is its position in the program that makes it, if any."""

    number = 0

    def __init__(self, call: "Call", turn: Turn, clock: "Clock", answer_chars: int) -> None:
        self._answer_chars = answer_chars
        self.call = call
        self.turn = turn
        self.memory: FunctionMemoryApi | None = None  # holds its edits until the answer is stored
        self.heartbeat = False
        self.has_changed = False
        self.is_waiting = False
        self.repairs: list[str] = []
        self.files: list[PictureFile] = []
        """Pictures that the call returned, which are shown with its answer."""
        self.hidden: list[str] = []
        """A sentence about each picture that the call returned and nobody is shown."""
        self.did = Receipt()  # effects of the call as observed by the host
        self.flow = CallFlow()  # of the program that makes the call, if one does
        self._clock = clock
        self._began = clock.monotonic()
        self.stood = 0.0  # seconds spent waiting for a human, at the debugger or with a question
        self._returned: Large | None = None
        self._pictures: Sequence[Picture] = ()

    @property
    def key(self) -> str:
        """The key of this call, the same when the call is made again; its function reads it as `self.call_key`."""
        return hashlib.sha256(f"{self.turn.id}:{self.call.id}".encode()).hexdigest()[:32]

    @property
    def approvals(self) -> "Approvals":
        """The questions about grants that come up in this call."""
        return self.turn.approvals

    def read(self, function: "Function") -> dict[str, Any] | tuple["Problem", ...]:
        """Return the arguments, or the problems with them. A request for another step is removed and noted."""
        style, parameters = self.turn.style, function.parameters
        arguments = read_arguments(
            self.call.arguments, style.reading(parameters), notes=self.repairs
        )
        if isinstance(arguments, dict):
            self.heartbeat = style.take_heartbeat(arguments, parameters)
        return arguments

    async def begin(self, version: str | None, *, reaches: bool = True) -> None:
        """Record the start of the call, unless that is done; time before it does not count.

        `version` is that of its function. A call that `reaches` nothing can only compute.
        """
        journal = self.turn.journal
        if self.call.id not in journal.started:
            asked = journal.fold.arguments.get(self.call.id)
            await self.turn.append([call_started(self.call, version, asked)])
        self._began = self._clock.monotonic()

    def seconds(self) -> float:
        """Return how long the call has run, without the time in which it waited for a human."""
        return max(0.0, self._clock.monotonic() - self._began - self.stood)

    async def close(
        self,
        outcome: CallOutcome | None,
        text: str | None = None,
        writes: Sequence[Write] = (),
        *,
        unproven: str = "",
        about: Mapping[str, Any] | None = None,  # Any: JSON
        entries: Sequence[Entry] = (),
    ) -> Done:
        """Store and report the answer: `text`, or a text for the outcome. None means that a host function returned.

        `unproven` is a note that no one has vouched for the result. `about` is stored and published with the outcome,
        and `entries` are stored with it.
        """
        if isinstance(outcome, Returned):
            outcome = await self._with_captions(outcome)
        pictures, refused = await self._keep_pictures()
        size = answers.size_of(outcome) if outcome is not None else 0
        if isinstance(outcome, Returned) and isinstance(outcome.value, Large):
            self._returned = outcome.value
        full = (
            text
            if text is not None
            else await aside(size, answers.answer, outcome or Skipped(""), MOST_CHARS)
        )
        if pictures:
            full = captioned(full, pictures)
        full = "\n".join(filter(None, [full, *refused]))
        word = answers.word(outcome) if outcome is not None else "returned"
        detail = await aside(size, answers.report_json, outcome) if outcome is not None else {}
        detail = {**detail, **self.facts_of(outcome), **(about or {})}
        if unproven:
            full, detail = self.noted(full, unproven), {**detail, "unproven": True}
        if self.repairs:
            full = self.noted(full, f"(Your arguments were repaired. {'. '.join(self.repairs)}.)")

        def with_edits(plan: Plan) -> Plan:
            """Return the answer with these edits of memory, which the call made."""

            async def replan() -> Plan:
                assert plan.replan is not None, (
                    "only a plan with a way to plan it again is planned again"
                )
                return with_edits(await plan.replan())

            noted, again = (
                self.noted(full, plan.text) if plan.text else full,
                replan if plan.replan else None,
            )
            answer = Plan(noted, word, detail, (*writes, *plan.writes), tuple(entries), plan.did)
            return replace(answer, replan=again, done=plan.done)

        plan = with_edits(self.memory.held if self.memory else Plan(""))

        def refusal(_: Plan, error: KnapperError) -> Plan:
            return with_edits(Plan(str(error)))

        return self.report(await commit(plan, self.record, self._clock.random, refusal))

    async def _with_captions(self, returned: Returned) -> Returned:
        """Return an outcome with words in the place of its pictures, which are added to `files`."""
        album = self.turn.pictures
        if album is None:
            return returned
        value = returned.value
        if isinstance(value, Large):
            data = await album.large(value)
            value = value if data is None else data
        written = self.did.names("wrote")
        if isinstance(value, str | PurePath) and written:
            file = await album.written(value, written)
            if file and await _holds_a_secret(file):
                self.hidden.append(f"{file.name} is not shown, because it holds a secret.")
            elif file:
                self.files.append(file)
        size = answers.size_of(returned)
        return replace(
            returned, value=await aside(size, answers.without_pictures, value, self.files)
        )

    async def _keep_pictures(self) -> tuple[Sequence[Picture], Sequence[str]]:
        """Keep the pictures of the call, and return these, and a sentence about each that cannot be shown."""
        if not self.files or self.turn.pictures is None:
            return (), self.hidden
        self._pictures, refused = await self.turn.pictures.keep_all(self.files)
        return self._pictures, [*self.hidden, *refused]

    def facts_of(self, outcome: CallOutcome | None) -> Mapping[str, Any]:  # Any: JSON
        """Return facts about an outcome that are stored with it, besides its report."""
        return {}

    async def commit(self, plan: Plan) -> Done:
        """Commit a plan with the answer, and report it. Of messages to other agents, all are sent, or none."""

        def refusal(_: Plan, error: KnapperError) -> Plan:
            outcome, thread = Refused(str(error)), list[Write]()
            if isinstance(error, NoProgress):
                self.turn.ending.stuck = error.message
                thread.append(SetThread(self.turn.origin.thread, "stuck", error.message))
            return Plan(
                answers.answer(outcome, MOST_CHARS),
                "refused",
                answers.report_json(outcome),
                tuple(thread),
            )

        return self.report(await commit(plan, self.record, self._clock.random, refusal))

    def noted(self, text: str, note: str) -> str:
        """Return an answer with a note, placed where it is visible even if only the beginning is shown."""
        return f"{text}\n{note}" if len(text) <= self._answer_chars else f"{note}\n{text}"

    async def record(self, plan: Plan) -> Receipt:
        """Store a plan: the answer with its writes and the effects of the call. Return these effects."""
        did = Receipt()
        did.add(self.did)
        did.add(plan.did)
        self.has_changed |= bool(did.names(*CHANGING))
        answer, texts = await self._answer_entry(plan.text, plan.outcome, _detail_of(plan))
        before = [facts_entry(did.to_json())] if did else []
        changes = [
            write_entry(events.MemoryChanged(block=write.block.label, what=write.action))
            for write in plan.writes
            if isinstance(write, SaveBlock)
        ]
        entries = [*before, answer, *changes, *plan.entries]
        await self.turn.append(entries, writes=(*plan.writes, *texts))
        return did

    async def _answer_entry(
        self, text: str, word: str, detail: dict[str, Any]
    ) -> tuple[Entry, Sequence[Write]]:
        """Return the entry of an answer; of a long one, it has the beginning, and the whole is stored for `read_on`."""
        page, whole = first_page(text, self._answer_chars)
        if self._returned is not None:
            page, whole = large_page(text, self._returned, self._answer_chars), ()
        answer = replace(
            answer_to(self.call, text, word, self.seconds(), detail),
            pictures=tuple(self._pictures),
            **page,
        )
        if self.call.id not in self.turn.journal.started:  # the answer tells of the call, too
            asked = self.turn.journal.fold.arguments.get(self.call.id)
            answer = replace(answer, arguments=own_arguments(self.call, asked))
        return write_entry(answer), whole

    async def note_reach(self, place: str) -> None:
        """Record that the call is about to reach an address, in case its end is never seen."""
        await self.turn.append([write_entry(ReachEntry(call=self.call.id, place=place))])

    def take_debug_notes(self, notes: "DebugNotes", snapshot: "Snapshot") -> str:
        """Return what the answer says about breakpoints that were passed."""
        return notes.text(snapshot)

    def size_notes(self) -> Iterator[str]:
        """Yield what the answer says if the arguments that the model wrote are near their limit."""
        size = len(self.call.arguments)
        if size * 2 >= LIMIT_CHARS:
            yield (
                f"[Your arguments have {size:,} of the {LIMIT_CHARS:,} characters that you can send: pass a path, or"
                " let a function make the data and hand it on in a program.]"
            )

    def take_size_notes(self, near: Mapping[str, None]) -> Iterable[str]:
        """Return what the answer says about values that are near their limit."""
        return near

    def tell_progress(self, done: float, total: float | None, note: str) -> None:
        """Report progress."""
        call = self.call
        self.turn.tell(
            events.Progress(call_id=call.id, name=call.name, done=done, total=total, note=note)
        )

    def tell_printed(self, text: str) -> None:
        """Report a piece of the printed output."""
        call = self.call
        self.turn.tell(events.Printed(call_id=call.id, name=call.name, text=text))

    def report(self, plan: Plan) -> Done:
        """Return what the loop needs of a plan that is on disk."""
        return Done(
            self.call,
            beginning(plan.text, self._answer_chars),
            plan.outcome,
            plan.excluded,
            self.heartbeat,
            self.has_changed,
            self.is_waiting,
        )


async def _holds_a_secret(file: PictureFile) -> bool:
    """Return whether a picture file holds a secret that a function was given; a file is not masked as a result is."""
    from agent_core.access.secrets import REVEALED  # noqa: PLC0415  (most calls write no picture)

    return await aside(len(file.data), REVEALED.are_in, file.data)


def _detail_of(plan: Plan) -> dict[str, Any]:  # Any: JSON
    return plan.detail if isinstance(plan.detail, dict) else to_json(plan.detail) or {}
