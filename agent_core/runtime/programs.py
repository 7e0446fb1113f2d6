"""Programs: Python code that the model writes, run in a worker; its calls go through the usual dispatch.

Each inner call is checked, asked about if a grant is missing, dispatched and recorded. One that may have effects is
journaled before it runs, under the program's key and its number; one that only computes, with the next entry. An
interrupted program runs again in the turn that continues its own, and the calls that it already made are answered from
that journal. If the second run makes a different call, it is ended.
"""

import asyncio
import contextlib
import hashlib
import json
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from agent_core.access.call_exit import CallExit
from agent_core.access.grants import (
    NOTHING,
    Approvals,
    CallFlow,
    Decision,
    Grants,
    ProgramFiles,
    Question,
)
from agent_core.access.grants.content import content_of, covered_code
from agent_core.access.grants.value import joined
from agent_core.access.secrets.session import FILES
from agent_core.base.errors import UsageError
from agent_core.base.events import CallAnswered
from agent_core.base.messages import Assistant, Call
from agent_core.base.offload import aside, bulk
from agent_core.base.receipt import INSIDE, Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line, visible
from agent_core.context import RUN_PROGRAM, beginning
from agent_core.context.folds import unwrapped
from agent_core.functions import answers
from agent_core.functions.answers import CallOutcome, InterruptedCall, Unknown
from agent_core.functions.debug.debugging import DebugNotes
from agent_core.functions.gate.capability import needs_of_text, shares_state
from agent_core.functions.gate.running import is_by_chance
from agent_core.functions.program_text import (
    MAX_PROBLEMS,
    ProgramCallees,
    ProgramText,
    SeenProgram,
    problems,
    source_of_program,
    with_names,
)
from agent_core.functions.worker_api import apart_of, large_of, typed_text
from agent_core.model.reading import meant
from agent_core.registry.arguments import read_with
from agent_core.storage import Entry, Plan, TurnStore, Write
from agent_core.storage.journal import (
    InnerAnswerEntry,
    InnerCallEntry,
    InnerGrantEntry,
    KeptEntry,
    ProgramEntry,
    ReplyEntry,
    assistant,
    read_all,
    read_as,
    read_entry,
    write_entry,
)
from agent_core.storage.value_files import KEPT_DAYS
from sandbox import (
    CallEnded,
    Job,
    Killed,
    Outcome,
    Patient,
    ProgramJob,
    Raised,
    Refused,
    RequestHandler,
    RequestRefused,
    Returned,
    TimedOut,
)
from sandbox.code import Code
from sandbox.errors import ProtocolError
from sandbox.inside.programs import (
    MOST_CALLS,
    MOST_KEPT,
    MOST_KEPT_ALL,
    MOST_KEPT_NAMES,
    MOST_SMALL_ALL,
    ROOM,
    is_variable,
)
from sandbox.processes.debugging import CallHooks
from sandbox.wire.large import Large, mib
from sandbox.wire.lines import bare_lines
from sandbox.wire.requests import without_handler
from sandbox.wire.strict_json import Malformed, read_json
from sandbox.wire.values import LARGE, TAG, decode, encode, kind_of, read_row

from .allowed import ABOUT_HELPERS
from .call_record import MOST_CHARS, CallRecord, Done, PlannedProgram
from .dispatch import Dispatcher
from .turn import Interrupted as StopRequested
from .turn import Turn

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.base.problem import Problem
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.functions.service import FunctionService
    from agent_core.functions.service.grant_service import GrantService
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

_InnerEntry: TypeAlias = ProgramEntry | InnerCallEntry | InnerGrantEntry | InnerAnswerEntry
_TOLD: Final = 12  # inner calls that an error lists
_SHORT: Final = 100  # characters of a value in such a list
_TEXT: Final = 2_000  # characters of an inner answer that is stored next to its value
_MOST_TOLD: Final = 40  # names that an answer lists
_WORD: Final = re.compile(r"\w+")
_BEYOND: Final = {
    "failed": f"a program may make {MOST_CALLS:,} calls, and this is one more: do the rest in the next"
}
_CHANGES: Final = ("Plan", "PlannedChange", "PlannedProgram")
_NO_TEXT: Final = hashlib.sha256(b"").hexdigest()
_MODULE: Final = Code("program", "", "program.py", _NO_TEXT)
_LOOKED_AT: Final = 30  # programs of a conversation that are examined
_APPROVED: Final = 100  # calls of a function in a loop that one approval covers
_KEEPS: Final = "create_function"
_LOSS_NOTICE: Final = (
    "None of its variables is kept: they are too many or too large, or it did not stop in time."
)
_NOT_IN_A_PLAN: Final = "This turn is a plan, so your next program does not have its variables."
_LIKE: Final = f"It is much like a program that ran before: {_KEEPS}(…, from_program=true) keeps it as a function."
_OPENING: Final = ("read_text", "list_folder")  # the starters that open what a path names
_MAX_REASON_CHARS: Final = 200  # characters of what a program says of a variable that is not kept
_NOBODY: Final = "a program may not look at files here: nobody can be asked. "
_AGAIN: Final = (
    "(Your program was cut off. It ran again: what it had called was answered from its record.)"
)


Kept: TypeAlias = str | Large
"""The value of a name that programs keep: its JSON, or a large value."""
AnswersCalls: TypeAlias = Callable[
    [str, Sequence[Mapping[str, Any]]], Awaitable[list[dict[str, Any]]]
]  # Any: values
"""Answers calls of one function, given a row of arguments for each."""


@dataclass(frozen=True, slots=True)
class InnerCall:
    """One journaled inner call; `answer` is None if its end was never recorded.

    It `reaches` if it had a grant or got one while it ran, so it may have had an effect.
    """

    name: str
    arguments: str
    reaches: bool
    answer: Mapping[str, Any] | None = None  # Any: the wire value, `value` or `failed`


@dataclass(frozen=True, slots=True)
class ApprovedWithin:
    """The grants of a program's approval for a function that its functions call by name, whenever one of these does.

    `callers` maps each of these to the digest of its code: the approval ends when that changes.
    """

    grants: Grants
    callers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ProgramNeeds:
    """The grants that a program lacks: `direct` for its functions, in so many `calls`, `within` for what these call.

    Both are by function and version. What also needs a package is asked about alone, when it is called: of all that it
    needs, and for good.
    """

    direct: dict[tuple[str, str], Grants] = field(default_factory=dict)
    within: dict[tuple[str, str], ApprovedWithin] = field(default_factory=dict)
    calls: int = 0
    says: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)  # about each function alone

    def add(self, question: Question, calls: int) -> None:
        """Add what the question about a function of the program asks for."""
        if (missing := question.missing) and not missing.packages:
            self.direct[question.function, question.version] = missing
            self.questions.append(question)
            self.calls += calls
            most = f"in up to {calls} call{'' if calls == 1 else 's'}"
            self.says.append(f"{question.function}, {most}: {'; '.join(missing.sentences())}")

    def add_within(self, question: Question, caller: str, code_digests: Mapping[str, str]) -> None:
        """Add what the question about a function asks for that `caller` calls by name, directly or not."""
        if (missing := question.missing) and not missing.packages:
            within = self.within.setdefault(
                (question.function, question.version), ApprovedWithin(missing)
            )
            within.callers.update(code_digests)
            self.questions.append(question)
            self.says.append(
                f"{question.function}, called by {caller}: {'; '.join(missing.sentences())}"
            )

    def to_text(self, run: "ProgramRun") -> str:
        """Return all that an approval for this run covers, as the text to which it is bound."""
        direct = [[*key, grants.to_json()] for key, grants in self.direct.items()]
        within = [[*key, each.grants.to_json(), each.callers] for key, each in self.within.items()]
        return json.dumps([run.key, run.text, direct, within, self.calls], sort_keys=True)

    def question(self, text: str) -> Question:
        """Return the one question about them, with what changed in the functions since they were last approved."""
        grants = joined([*self.direct.values(), *(each.grants for each in self.within.values())])
        changes = dict.fromkeys(
            f"{each.function}: {each.changed}" for each in self.questions if each.changed
        )
        diffs = dict.fromkeys(each.diff for each in self.questions if each.diff)
        question = Question.of_text(RUN_PROGRAM, text, "program", grants)
        return replace(
            question, doubts=tuple(self.says), changed="; ".join(changes), diff="\n".join(diffs)
        )


@dataclass(slots=True)
class ProgramRun:
    """One run of a program. `earlier` are the inner calls of interrupted runs, by number."""

    record: CallRecord
    snapshot: "Snapshot"
    functions: Mapping[str, "Function"]
    key: str
    text: str  # the digest of its code
    began: float
    earlier: Mapping[int, InnerCall]
    approved: Mapping[tuple[str, str], Grants] = field(
        default_factory=dict
    )  # by function and version
    approved_within: Mapping[tuple[str, str], ApprovedWithin] = field(default_factory=dict)
    left: int = 0  # calls that the approval still covers
    calls: int = 0
    did: Receipt = field(default_factory=Receipt)
    told: list[str] = field(default_factory=list)
    debugged: DebugNotes = field(default_factory=DebugNotes)
    near: dict[str, None] = field(default_factory=dict)  # notes on values that are near their limit
    deviation: str = ""
    sealed: Sequence[str] = ("", "")  # what the user approved, and the seal
    asked: Counter[str] = field(default_factory=Counter)  # how often each question was asked
    exit: CallExit = field(
        default_factory=CallExit
    )  # the words of the host about the files that it opens
    flow: CallFlow = field(default_factory=CallFlow)
    loop_names: frozenset[str] = frozenset()  # that nothing but its loops bind
    form: str = ""  # the digest of its normal form
    is_like: bool = False  # whether a program of the same form ran before that has logic of its own

    @property
    def turn(self) -> Turn:
        """The turn that the program is part of."""
        return self.record.turn


def _functions_within(function: "Function", snapshot: "Snapshot") -> Iterator["Function"]:
    """Yield what a function calls by name, directly or not."""
    others = covered_code(function, snapshot).names - {function.name}
    yield from ((snapshot.whole or snapshot).functions[name] for name in sorted(others))


def _code_digests(function: "Function", snapshot: "Snapshot") -> dict[str, str]:
    """Return the digests of the code of a function and of each that it calls by name."""
    functions = (snapshot.whole or snapshot).functions
    return {
        name: content_of(functions[name], snapshot).digest
        for name in covered_code(function, snapshot).names
    }


@dataclass(slots=True)
class ProgramApprovals(Approvals):
    """The questions of a program or one of its calls; what was approved for the whole program is not asked again.

    A question that covers the same keeps its ID when the program runs again, so an answer still matches after the
    process has died.
    """

    run: ProgramRun = field(kw_only=True)
    number: int = 0  # of the call; 0 for the program itself

    @classmethod
    def of(cls, run: ProgramRun, number: int = 0) -> "ProgramApprovals":
        """Return the questions of a program, or of the call with this number."""
        base = run.record.approvals
        return cls(
            base.queue, base.turn, base.refusals, f"{run.key}:{number}", run=run, number=number
        )

    async def ask(self, question: Question) -> Decision:
        """Return a yes if the program's approval covers this call; otherwise ask the user."""
        run, decision = self.run, Decision("once", by="earlier")
        given = run.approved.get((question.function, question.version), NOTHING)
        within = run.approved_within.get((question.function, question.version))
        if self.number and question.caller:
            if (
                within is None
                or question.caller not in within.callers
                or not within.grants.covers(question.missing)
            ):
                decision = await Approvals.ask(self, question)
        elif self.number and run.left > 0 and given.covers(question.missing):
            run.left -= 1
        else:
            decision = await Approvals.ask(self, question)
        if self.number and decision.answer != "no":
            given_entry = InnerGrantEntry(program=run.key, ordinal=self.number)
            await run.turn.append([write_entry(given_entry)])
        return decision

    def _occasion_of(self, question: Question) -> str:
        """Return the occasion; the same question later in the same call is another one: once is once."""
        occasion = Approvals._occasion_of(self, question)
        self.run.asked[occasion] += 1
        return json.dumps([occasion, self.run.asked[occasion]])


class InnerRecord(CallRecord):
    """The record of one inner call, journaled outside of the conversation.

    `apart` has the arguments that the function gets as they are, because JSON would change them or they are large.
    """

    def __init__(
        self, run: ProgramRun, number: int, call: Call, clock: "Clock", apart: Mapping[str, Any]
    ) -> None:
        super().__init__(call, run.turn, clock, MOST_CHARS)
        self._run = run
        self._apart = apart
        self.flow = run.flow
        self.number = number
        self.answer: dict[str, Any] = {"failed": "it has no answer"}  # Any: the wire value

    def read(self, function: "Function") -> dict[str, Any] | tuple["Problem", ...]:
        """Return the arguments, or the problems with them."""
        text = self.call.arguments
        if self._apart:
            text = json.dumps(
                {name: value for name, value in read_json(text).items() if name not in self._apart}
            )
        return read_with(text, function.parameters, self._apart, notes=self.repairs)

    @property
    def key(self) -> str:
        """The key of this call, the same in each run of its program."""
        return _digest(f"{self._run.key}:{self.number}")[:32]

    @property
    def approvals(self) -> Approvals:
        """The questions of the call; they may have been answered before the program ran."""
        return ProgramApprovals.of(self._run, self.number)

    async def begin(self, version: str | None, *, reaches: bool = True) -> None:
        """Journal the start of the call; time before it does not count.

        A call that only computes is journaled with the next entry: a grant, an address that it reaches, or its answer.
        """
        start = write_entry(
            InnerCallEntry(
                id=self.call.id,
                program=self._run.key,
                ordinal=self.number,
                name=self.call.name,
                arguments=self.call.arguments,
                version=version,
                reaches=reaches,
            )
        )
        if reaches:
            await self.turn.append([start])
        else:  # running it twice has no visible effect
            self.turn.journal.unwritten.append(start)
        self._began = self._clock.monotonic()

    async def record(self, plan: Plan) -> Receipt:
        """Store the answer like any other, and add the call's effects to its program's receipt."""
        did = await super().record(plan)
        self._run.did.add(did)
        self._run.record.has_changed |= self.has_changed
        return did

    def facts_of(self, outcome: CallOutcome | None) -> Mapping[str, Any]:  # Any: JSON
        """Return an error as the program will raise it, also when it runs again."""
        if not isinstance(outcome, Raised):
            return {}
        return {"raised": answers.callee_error(self.call.name, outcome).to_json()}

    async def _answer_entry(
        self, text: str, word: str, detail: dict[str, Any]
    ) -> tuple[Entry, Sequence[Write]]:
        if word != "returned":
            self.answer = _failed(text, detail)
        else:
            self.answer = {
                "value": await aside(len(text), read_row, detail["value"])
                if "value" in detail
                else text
            }
        answer = InnerAnswerEntry(
            call_id=self.call.id,
            program=self._run.key,
            ordinal=self.number,
            name=self.call.name,
            outcome=word,
            text=beginning(text, _TEXT) if "value" in detail else text,
            detail=detail,
            seconds=round(self.seconds(), 6),
        )
        return write_entry(answer), ()

    def report(self, plan: Plan) -> Done:
        """Report the call as progress of its program, which is what the user sees."""
        self._run.record.tell_progress(self.number, None, one_line(self.call.name, 60))
        return super().report(plan)

    def tell_progress(self, done: float, total: float | None, note: str) -> None:
        """Report nothing; only the program's own progress is shown."""

    def take_debug_notes(self, notes: DebugNotes, snapshot: "Snapshot") -> str:
        """Hand the notes to the program, whose answer the model reads."""
        self._run.debugged.add(notes)
        return ""

    def size_notes(self) -> Iterator[str]:
        """Yield nothing: the model did not write these arguments."""
        return iter(())

    def take_size_notes(self, near: Mapping[str, None]) -> Iterable[str]:
        """Hand the notes to the program, whose answer the model reads."""
        self._run.near |= near
        return ()

    def tell_printed(self, text: str) -> None:
        """Report nothing; the output of a called function is in its record."""


class Programs:
    """The runner of one agent's programs; `dispatcher` answers their calls and is set after both are created."""

    dispatcher: Dispatcher

    def __init__(
        self, sandbox: "SandboxClient", functions: "FunctionService", clock: "Clock"
    ) -> None:
        self._sandbox = sandbox
        self._functions = functions
        self._clock = clock
        self._again: dict[
            str, str
        ] = {}  # by call ID, the key of the interrupted program that the call resumes

    async def go_on(self, turn: Turn, snapshot: "Snapshot") -> None:
        """Run the program again that was interrupted with the previous turn, if any."""
        entries = [
            entry for entry in await turn.store.load(turn.origin.continues) if not entry.is_imported
        ]
        cuts = [answer for _, answer in read_all(CallAnswered, entries) if _is_cut(answer)]
        before = _asked_for(entries, cuts[-1].call_id) if cuts else None
        if before is None:
            return
        programs = [program for _, program in read_all(ProgramEntry, entries)]
        began = [program for program in programs if program.id == cuts[-1].call_id]
        call = Call(f"again_{self._clock.new_id()[-12:]}", RUN_PROGRAM, before.arguments)
        if began:
            self._again[call.id] = began[0].program
        await turn.append([assistant(Assistant("", (call,)))])
        await self.dispatcher.run([call], snapshot, turn, lambda: snapshot)

    async def run(self, plan: PlannedProgram, record: CallRecord, snapshot: "Snapshot") -> Done:
        """Run a program, and close the record of its call with its value and output or its error."""
        turn = record.turn
        rows = [
            row
            for row in await turn.store.history(turn.line, kinds=(KeptEntry.kind,))
            if not row.is_imported
        ]
        kept = _kept_in(rows[-1]) if rows else {}
        program = await aside(len(plan.code), ProgramText.of, plan.code)
        if not isinstance(program, ProgramText):
            return await record.close(Refused("syntax"), _not_run([program]))
        known = dict.fromkeys(self.dispatcher.names(snapshot), ())
        spelled = partial(meant, known=known)
        program = await aside(len(plan.code), with_names, program, spelled, kept)
        functions = dict[str, "Function"]()
        withheld: list[str] = []  # that programs may not call
        for name in program.free:  # thousands, perhaps, of which few can be found
            callee = (
                self.dispatcher.find(name, snapshot) if name in known and name not in kept else None
            )
            if callee is None:
                continue
            if callee.version is None and (
                callee.function.returns in _CHANGES or name in ABOUT_HELPERS
            ):
                withheld.append(name)
            else:
                functions[name] = callee.function
        packages = self._sandbox.settings.packages
        size = len(program.code)
        if found := await aside(
            size, problems, program, functions, known, kept, packages, withheld
        ):
            unmade = [
                name for name in turn.work.refused if name in program.free and name not in functions
            ]
            record.is_waiting = bool(unmade)
            return await record.close(Refused("does not fit"), _not_run(found, unmade))
        run = await self._begin_run(record, snapshot, functions, program)
        inner = lambda name, rows: _whole(self.answers(run, name, rows), run.turn)  # noqa: E731 - it is given once
        given, gone = self._given(program.code, kept)
        outcome: CallOutcome
        refusal = ""
        try:
            async with turn.ending.interruption:
                refusal = await self._approve(run, program)
                if not refusal:
                    with contextlib.closing(await self._files(run, program)) as files:
                        handler = _handler(functions, inner, files)
                        job = _job(
                            self._sandbox,
                            program.code,
                            functions,
                            handler,
                            run.key,
                            run.began,
                            given,
                        )
                        job = replace(job, on_output=record.tell_printed)
                        outcome = _sound(await self._sandbox.run(job, places=files.places))
                        if run.flow.is_out:
                            turn.work.folders = NOTHING
        except StopRequested:
            outcome = Unknown() if turn.resumes_later else InterruptedCall()  # it resumes later
        if refusal:  # not above: an interruption there would answer it again
            return await record.close(Refused(refusal), refusal)
        return await self._close(
            run, outcome, {name: kept[name] for name in kept if name not in gone}, given, gone
        )

    def _given(self, code: str, kept: Mapping[str, Kept]) -> tuple[dict[str, Kept], list[str]]:
        """Return the kept values that a program gets, and the names of those that it would get and that are gone.

        A large one is given to a program with its name in it: reading it takes time and memory.
        """
        words, values = {*_WORD.findall(code)}, self._sandbox.values
        given: dict[str, Kept] = {}
        gone: list[str] = []
        for name, value in kept.items():
            if not isinstance(value, Large):
                given[name] = value
            elif name in words:
                if values is not None and values.has(value.digest):
                    given[name] = value
                else:
                    gone.append(name)
        return given, gone

    async def _begin_run(
        self,
        record: CallRecord,
        snapshot: "Snapshot",
        functions: Mapping[str, "Function"],
        program: ProgramText,
    ) -> ProgramRun:
        """Return a run whose start is on disk; an interrupted program keeps its key and journal."""
        turn, text = record.turn, _digest(program.code)
        form = _digest(await aside(len(program.code), program.form))
        before = await _programs_in(turn.store, turn.line)
        key = self._again.pop(record.call.id, "")
        if not key and turn.origin.continues and before:
            row, last = before[-1]  # if it was interrupted, the model requests it again
            if row.turn != turn.id and last.text == text:
                answered = read_all(CallAnswered, await turn.store.load(row.turn))
                if any(_is_cut(answer, last.id) for _, answer in answered):
                    key = last.program
        rows = await _inner_rows(turn, key) if key else []
        runs = [row for row in rows if isinstance(row, ProgramEntry)]
        began = runs[0].at if runs else self._clock.now()
        run = ProgramRun(
            record, snapshot, functions, key or record.key, text, began, _journal(rows)
        )
        run.sealed = next((row.sealed for row in reversed(runs) if row.sealed), ("", ""))
        is_like = not key and any(program.form == form for _, program in before)
        run.loop_names = program.loop_names
        run.form, run.is_like = (
            form,
            is_like and await aside(len(program.code), program.has_logic, functions),
        )
        await turn.append([_beginning(run)])
        return run

    async def _approve(self, run: ProgramRun, program: ProgramText) -> str:
        """Ask once for every grant that the program's functions need; return why it may not run, or an empty text."""
        granting = self._functions.granting.during(ProgramApprovals.of(run))
        can_ask = granting.can_ask
        needs = (
            await self._lacking(run, program, granting)
            if can_ask or granting.is_answered_later
            else ProgramNeeds()
        )
        if not needs.says:
            return ""
        text = needs.to_text(run)
        if run.sealed[0] != text or not granting.book.sealer.holds(run.sealed[1], "program", text):
            rows = tuple(enumerate(bare_lines(program.code), 1))
            try:
                if denied := await granting.agreed(replace(needs.question(text), lines=rows)):
                    return denied if can_ask else ""
            finally:
                run.record.stood += granting.stood
            run.sealed = text, granting.book.sealer.seal("program", text)
            await run.turn.append([_beginning(run)])
        names = {name for name, _ in needs.direct}
        run.approved, run.approved_within = needs.direct, needs.within
        run.left = needs.calls - sum(call.name in names for call in run.earlier.values())
        return ""

    async def _lacking(
        self, run: ProgramRun, program: ProgramText, grants: "GrantService"
    ) -> ProgramNeeds:
        """Return the grants that the program's functions, and those that these call by name, do not have yet."""
        needs = ProgramNeeds()
        for name in run.functions:
            callee = self.dispatcher.find(name, run.snapshot)
            if callee is None or callee.snapshot is None:
                continue
            if question := await grants.question(callee.function, callee.snapshot):
                needs.add(question, program.most_calls(name, _APPROVED))
            for function in _functions_within(callee.function, callee.snapshot):
                if question := await grants.question(function, callee.snapshot):
                    needs.add_within(
                        question, name, _code_digests(callee.function, callee.snapshot)
                    )
        return needs

    async def _files(self, run: ProgramRun, program: ProgramText) -> ProgramFiles:
        """Return the handler of the program's requests for files.

        What the agent's own programs may not read is asked for, with the whole text.
        """
        granting, instead = (
            self._functions.granting.during(ProgramApprovals.of(run)),
            _instead(run.snapshot),
        )
        rows, agent = tuple(enumerate(bare_lines(program.code), 1)), run.turn.agent
        is_own = await self._is_own(run, program, granting)
        given = await granting.of_program(agent, run.snapshot) if is_own else NOTHING
        turn_grants = run.turn.work.folders if is_own else NOTHING

        async def want_path(grants: Grants, folder: str, doubt: str) -> tuple[Grants, str]:
            maker = agent if is_own and not run.flow.is_out else ""
            if maker and (await granting.of_program(agent, run.snapshot)).covers(grants):
                run.flow.read |= grants  # a call of this program was given it meanwhile
                return grants, ""
            text = json.dumps([run.key, run.text, grants.to_json()], sort_keys=True)
            question = Question.of_text(RUN_PROGRAM, text, "open", grants)
            is_for_turn = bool(maker and grants.write)
            question = replace(
                question,
                lines=rows,
                creates=granting.reach.absent(grants),
                folder=folder or (_folder_in(grants) if is_for_turn else ""),
                maker=maker,
            )
            question = replace(question, is_for_turn=is_for_turn and bool(question.folder))
            before = granting.stood
            given, why, is_wide = await granting.want_path_of_text(
                replace(question, doubts=(doubt,) if doubt else ()), run.snapshot
            )
            if is_wide and question.is_for_turn and not run.flow.is_out:
                run.turn.work.folders |= given
            run.record.stood += granting.stood - before
            if maker and (await granting.of_program(agent, run.snapshot)).covers(given):
                run.flow.read |= given
            return given, "" if given else why or f"{_NOBODY}{instead}"

        if any(
            call.reaches for call in run.earlier.values()
        ):  # what these may have read is not on record
            run.flow.received |= await granting.of_program(agent, run.snapshot)
        run.exit = CallExit(did=run.record.did, want_path=want_path)
        return granting.files_of_program(run.exit, instead, given, run.flow, turn_grants)

    async def _is_own(self, run: ProgramRun, program: ProgramText, grants: "GrantService") -> bool:
        """Return whether a program has what its agent was given: it calls functions of the workspace alone, for one."""
        callees = [self.dispatcher.find(name, run.snapshot) for name in run.functions]
        functions = [
            callee.function
            for callee in callees
            if callee is not None and callee.snapshot is not None
        ]
        if len(functions) < len(callees):
            return False
        return await grants.is_programs_maker(run.turn.agent, program.code, functions, run.snapshot)

    async def answers(
        self, run: ProgramRun, name: str, rows: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the answers to calls of one function, in order; calls that only compute run concurrently."""
        first, run.calls = run.calls + 1, run.calls + len(rows)
        callee = self.dispatcher.find(name, run.snapshot)
        apart_in = apart_of if callee is not None and callee.snapshot is not None else large_of
        given = [await aside(bulk(row), apart_in, row) for row in rows]
        texts = [
            await aside(bulk(row), typed_text, row, apart)
            for row, apart in zip(rows, given, strict=True)
        ]
        calls = [
            self._answer(run, number, name, text, apart)
            for number, (text, apart) in enumerate(zip(texts, given, strict=True), first)
        ]
        if len(calls) > 1 and await self._only_computes(run, name):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(call) for call in calls]
            return [task.result() for task in tasks]
        return [await call for call in calls]

    async def _only_computes(self, run: ProgramRun, name: str) -> bool:
        """Return whether calls of a function only compute: it needs no grant, has none, and shares no state."""
        callee, granting = self.dispatcher.find(name, run.snapshot), self._functions.granting
        if callee is None or callee.snapshot is None or not callee.is_parallel:
            return False
        if name in await granting.guarded(callee.snapshot):
            return False
        return not await granting.needs(callee.function, callee.snapshot)

    async def _answer(
        self, run: ProgramRun, number: int, name: str, text: str, apart: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the answer to one inner call, from the journal if it has one."""
        if number > MOST_CALLS:
            return _BEYOND
        earlier = run.earlier.get(number)
        if earlier is not None and (earlier.name, earlier.arguments) != (name, text):
            then = await aside(len(earlier.arguments), _call_text, earlier.name, earlier.arguments)
            now = await aside(len(text), _call_text, name, text)
            run.deviation = f"its call {number} was {then} when it was cut off, and is {now} now"
            raise CallEnded(run.deviation)
        if (
            earlier is not None
            and earlier.answer is not None
            and (known := self._known_answer(earlier))
        ):
            answer = known
        else:
            record = InnerRecord(
                run, number, Call(f"{run.record.call.id}.{number}", name, text), self._clock, apart
            )
            if earlier is not None and earlier.reaches:
                await record.close(Unknown())
            else:
                await self.dispatcher.answer(record, run.snapshot)
            answer = record.answer
        run.told.append(
            await aside(len(text) + bulk(answer), _call_line, number, name, text, answer)
        )
        return answer

    def _known_answer(self, earlier_call: InnerCall) -> dict[str, Any] | None:
        """Return the recorded answer to a call; None if its result is gone and it can be made again without effect."""
        answer = dict(earlier_call.answer or {})
        value, values = answer.get("value"), self._sandbox.values
        if not isinstance(value, Large) or (values is not None and values.has(value.digest)):
            return answer
        if not earlier_call.reaches:
            return None
        return {
            "failed": f"it had returned a {value.words} before the program was cut off, which is not kept here now"
        }

    async def _close(
        self,
        run: ProgramRun,
        outcome: CallOutcome,
        kept: Mapping[str, Kept],
        given: Mapping[str, Kept],
        gone: Sequence[str],
    ) -> Done:
        record, entries = run.record, list[Entry]()
        again = _AGAIN if run.earlier else ""
        debugged = run.debugged.text(run.snapshot.whole or run.snapshot)
        if run.deviation:
            said = f"The program took another way than before it was cut off: {run.deviation}. It was ended there."
            return await record.close(
                outcome, "\n".join(filter(None, [said, *self._facts(run), debugged]))
            )
        if not isinstance(outcome, Returned):
            refused = [*run.exit.refusals]
            write = lambda: answers.answer(  # noqa: E731 - once
                outcome, 1 << 20, was_refused=bool(refused), subject="program"
            )
            text = await aside(1, write)
            error = outcome.failure.message if isinstance(outcome, Raised) else ""
            lines = [*_gone_names(gone), *(refusal for refusal in refused if refusal not in error)]
            claimed = dict(outcome.kept) if isinstance(outcome, Raised | TimedOut) else {}
            if (claimed and not _are_values(claimed)) or (
                not claimed and isinstance(outcome, TimedOut)
            ):
                lines.append(_LOSS_NOTICE)
            elif claimed:
                left = _left_values(claimed, kept, given)
                entries, names = _what_is_kept(run, left, kept, gone)
                lines += names
            told = map(visible, [*lines, *run.near])
            whole = "\n".join(filter(None, [again, text, *told, *self._facts(run), debugged]))
            return await record.close(outcome, whole, entries=entries)
        value, left = outcome.value["value"], _left_values(outcome.value["kept"], kept, given)
        text, seen = await aside(1, _value_text, outcome), _seen_calls(outcome.value["seen"])
        entries, names = _what_is_kept(run, left, kept, gone, run.loop_names)
        lines = [*_gone_names(gone), *names, *run.near]
        if isinstance(value, Large):
            lines += filter(
                None,
                [
                    answers.near_limit(
                        "The result of the program", value, self._sandbox.limits.value
                    )
                ],
            )
        if run.is_like and run.calls > 1 and _KEEPS in self.dispatcher.names(run.snapshot):
            lines.append(_LIKE)
        lines += _dropped_names(outcome.value["dropped"])
        note = visible("\n".join(filter(None, [again, *run.exit.refusals, *lines, debugged])))
        text = record.noted(text, note) if note else text
        return await record.close(
            replace(outcome, value=value),
            text,
            about={"calls": run.calls, "seen": seen},
            entries=entries,
        )

    def _facts(self, run: ProgramRun) -> list[str]:
        """Return the effects of a program that did not finish."""
        did = Receipt()
        did.add(run.did)
        did.add(run.record.did)
        outside = [phrase for fact, phrase in did.parts(_TOLD) if fact not in INSIDE]
        changed = (
            f"Outside it: {'; '.join(outside)}." if outside else "Nothing was changed outside."
        )
        return [*_call_list(run.told), changed]


async def run_apart(
    sandbox: "SandboxClient",
    service: "FunctionService",
    code: str,
    call: Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]],
) -> tuple[str, bool]:
    """Run a program outside of a turn; return its answer and whether it finished.

    It can call the workspace's functions through `call`, which returns `value` or `failed`. It needs no approval as a
    whole, keeps no names, and is not run again.
    """
    program, snapshot = await aside(len(code), ProgramText.of, code), service.registry.snapshot()
    if not isinstance(program, ProgramText):
        return _not_run([program]), False
    functions = {
        name: snapshot.functions[name] for name in program.free if name in snapshot.functions
    }
    packages = sandbox.settings.packages
    if found := await aside(
        len(code), problems, program, functions, snapshot.functions, (), packages, ()
    ):
        return _not_run(found), False
    told: list[str] = []

    async def answers_of(name: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        given = list[dict[str, Any]]()
        for row in rows:
            if len(told) >= MOST_CALLS:
                given.append(_BEYOND)
                continue
            given.append(await call(name, row))
            apart = await aside(bulk(row), apart_of, row)
            text = await aside(bulk(row), typed_text, row, apart)
            told.append(
                await aside(
                    len(text) + bulk(given[-1]), _call_line, len(told) + 1, name, text, given[-1]
                )
            )
        return given

    key, instead = secrets.token_hex(16), _instead(snapshot)

    async def refuse_path(_grants: Grants, _folder: str, _doubt: str) -> tuple[Grants, str]:
        return NOTHING, f"{_NOBODY}{instead}"

    exit = CallExit(want_path=refuse_path)
    with contextlib.closing(service.granting.files_of_program(exit, instead)) as files:
        job = _job(
            sandbox, code, functions, _handler(functions, answers_of, files), key, time.time(), {}
        )
        outcome = _sound(await sandbox.run(job, places=files.places))
    if isinstance(outcome, Returned):
        return "\n".join([await aside(1, _value_text, outcome), *map(visible, exit.refusals)]), True
    text = await aside(1, lambda: answers.answer(outcome, 1 << 20, subject="program"))
    return "\n".join([text, *_call_list(told)]), False


def _folder_in(grants: Grants) -> str:
    """Return the one folder that is to be written itself, if that is all; else ""."""
    match grants.write:
        case [folder] if folder.endswith("/") and grants == Grants(write=grants.write):
            return folder
        case _:
            return ""


def _instead(snapshot: "Snapshot") -> str:
    """Return what a program may call in place of opening a file."""
    there = [f"`{name}`" for name in _OPENING if name in snapshot.functions]
    return f"Call a function that opens it{', such as ' if there else ''}{' or '.join(there)}."


def _handler(
    functions: Mapping[str, "Function"], answers: AnswersCalls, files: ProgramFiles
) -> RequestHandler:
    """Return the handler of a program's requests: its calls of these functions, and its files."""

    async def handle(name: str, arguments: dict[str, Any], /) -> Any:  # Any: values that cross
        if name in FILES:
            return await files.answer(name, arguments)
        if name != "inner":
            return await without_handler(name, arguments)
        function, rows = arguments.get("function"), arguments.get("rows")
        if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
            raise RequestRefused("the arguments of a call are given by their names")
        if len(rows) > MOST_CALLS:
            raise RequestRefused(
                f"a program may make {MOST_CALLS:,} calls, and these are {len(rows):,}"
            )
        if not isinstance(function, str) or function not in functions:
            raise RequestRefused("the program does not name this function")
        return Patient(answers(function, rows))

    return handle


def _job(
    sandbox: "SandboxClient",
    code: str,
    functions: Mapping[str, "Function"],
    handler: RequestHandler,
    key: str,
    began: float,
    kept: Mapping[str, Kept],
) -> Job[ProgramJob]:
    """Return the job of a program that may call these functions only; its random numbers are seeded from its key."""
    parameters = {
        name: [*function.parameters.get("properties", {})] for name, function in functions.items()
    }
    limits = replace(sandbox.limits, result=sandbox.limits.result + ROOM)
    work, around = ProgramJob(code, parameters, kept, began), CallHooks(int(key[:12], 16))
    job = Job({"program": _MODULE}, "program", work, limits, handler=handler)
    return replace(job, around=around, large=sandbox.values)


def _sound(outcome: Outcome) -> Outcome:
    """Return the outcome of a program; a failure if its reply, which the program may have forged, is malformed."""
    if not isinstance(outcome, Returned):
        return outcome
    match outcome.value:
        case {
            "value": _,
            "is_shown": bool(),
            "kept": dict(kept),
            "dropped": dict(dropped),
            "seen": dict(),
        }:
            if _are_values(kept) and all(
                isinstance(text, str) and len(text) <= _MAX_REASON_CHARS
                for row in dropped.items()
                for text in row
            ):
                return outcome
    reason = "its reply is none that a program gives"
    return Killed(reason, outcome.output, outcome.seconds, outcome.memory, outcome.cpu_s)


def _are_values(kept: Mapping[Any, Any]) -> bool:  # Any: what a worker claims
    """Check whether a worker's claim of a program's variables is names with values, within the limits."""
    if len(kept) > MOST_KEPT_NAMES or not all(map(is_variable, kept)):
        return False
    size = small = 0
    for value in kept.values():
        match value:
            case str(text) if _is_json(text):
                small += len(text)
            case Large() if value.size <= MOST_KEPT:
                size += value.size
            case True:
                pass
            case _:
                return False
    return small <= MOST_SMALL_ALL and size <= MOST_KEPT_ALL


def _kept_in(entry: Entry) -> dict[str, Kept]:
    """Return the names that programs of the conversation have kept, with their values."""
    kept: dict[str, Kept] = {}
    kept_entry = read_as(KeptEntry, entry)
    for name, value in kept_entry.values.items() if kept_entry else ():
        if isinstance(value, str):
            kept[name] = value
        elif isinstance(value, dict) and value.get(TAG) == LARGE:
            with suppress(ProtocolError):  # a part of it was forgotten
                kept[name] = read_row(value)
    return kept


def _what_is_kept(
    run: ProgramRun,
    left: Mapping[str, Kept],
    kept: Mapping[str, Kept],
    gone: Sequence[str],
    loop_names: Collection[str] = (),
) -> tuple[list[Entry], list[str]]:
    """Return the entry of the names that a program leaves, and lines about them."""
    if run.turn.policy.only_reads:
        return [], [_NOT_IN_A_PLAN] if left != kept else []
    return _kept_entries(left, kept, gone), _new_names(left, kept, loop_names)


def _kept_entries(
    left: Mapping[str, Kept], kept: Mapping[str, Kept], gone: Sequence[str]
) -> list[Entry]:
    """Return the entry of the names that are kept now; none if it would be as before."""
    if left == kept and not gone:
        return []
    values = {name: encode(value) for name, value in left.items()}
    return [write_entry(KeptEntry(values=values))]


def _left_values(
    claimed: Mapping[str, Kept | bool], kept: Mapping[str, Kept], given: Mapping[str, Kept]
) -> dict[str, Kept]:
    """Return the values that a program leaves: those that it did not get stay as they are, the oldest not for ever."""
    left: dict[str, Kept] = {name: value for name, value in kept.items() if name not in given}
    for name, value in claimed.items():
        if isinstance(value, str | Large):
            left[name] = value
        elif name in given:
            left[name] = given[name]
    for name in [name for name in left if name not in claimed]:
        size = sum(value.size for value in left.values() if isinstance(value, Large))
        if size <= MOST_KEPT_ALL and len(left) <= MOST_KEPT_NAMES:
            break
        del left[name]
    return left


def _gone_names(names: Sequence[str]) -> list[str]:
    """Return a line with the names whose large values are not kept any longer; none if there are none."""
    why = f"a value above 64 KiB stays for {KEPT_DAYS} days, on the machine that made it"
    return [f"No longer kept ({why}): {', '.join(names)}."] if names else []


def _dropped_names(dropped: Mapping[str, str]) -> list[str]:
    """Return lines with the variables that a program has set and that are not kept."""
    too_large = [name for name, what in dropped.items() if not what]
    others = [f"{name} ({what})" for name, what in dropped.items() if what]
    limits = (
        f"above {mib(MOST_KEPT)} as JSON, {mib(MOST_KEPT_ALL)} in all, or {MOST_KEPT_NAMES} names"
    )
    lines = [f"Not kept ({limits}): {', '.join(too_large)}."] if too_large else []
    return [*lines, f"Not kept: {', '.join(others)}."] if others else lines


def _new_names(
    left: Mapping[str, Kept], kept: Mapping[str, Kept], loop_names: Collection[str] = ()
) -> list[str]:
    """Return lines with the variables that a program has set or changed, and those that are near the limit.

    After a loop that ended, its variables are kept, and not named; where a program failed, they say how far it came.
    """
    names: list[str] = []
    near: list[str] = []
    for name, value in left.items():
        if kept.get(name) == value:
            continue
        if isinstance(value, Large):
            count = value.count if value.kind not in ("str", "bytes") else None
            near += [f"{name} ({mib(value.size)})"] if value.size * 2 >= MOST_KEPT else []
        else:
            count = kind_of(read_json(value))[1] if value[0] in "[{" else None
        if name in loop_names:
            continue
        names.append(name if count is None else f"{name} ({count} item{'' if count == 1 else 's'})")
    more = f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
    lines = [f"Kept for your next program: {', '.join(names[:_MOST_TOLD])}{more}."] if names else []
    if near:
        lines.append(
            f"A value of more than {mib(MOST_KEPT)} is not kept: keep less of {', '.join(near[:_MOST_TOLD])}."
        )
    return lines


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except Malformed:
        return False
    return True


def _value_text(returned: Returned) -> str:
    """Return the answer of a program that finished."""
    value = returned.value["value"]
    if not returned.value["is_shown"]:
        return answers.answer(replace(returned, value=value), MOST_CHARS)
    text = f"{visible(str(value))}\n(This is no JSON: it is shown as Python shows it.)"
    return answers.with_output(text, returned.output, MOST_CHARS)


async def _whole(work: Awaitable[list[dict[str, Any]]], turn: Turn) -> list[dict[str, Any]]:
    """Finish the work even if the user interrupts the turn; then its calls end as interrupted."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not turn.ending.interruption.requested:
            task.cancel()
        await asyncio.wait([task])
        raise


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _beginning(run: ProgramRun) -> Entry:
    program = ProgramEntry(
        id=run.record.call.id,
        program=run.key,
        at=run.began,
        text=run.text,
        form=run.form,
        sealed=tuple(run.sealed) if run.sealed[0] else (),
    )
    return write_entry(program)


async def source_of_last_program(
    service: "FunctionService",
    store: TurnStore,
    line: str,
    snapshot: "Snapshot",
    others: "OtherFunctions",
    name: str,
    words: str,
) -> str:
    """Return the source of a function made from the last program: one `def` in it, or the whole program.

    Raises:
        UsageError: no program has finished, or it uses what only programs can use.
    """
    seen = await seen_runs(store, line)
    if not seen:
        raise UsageError(
            "No program has come to its end here.", fix="Run one with run_program first."
        )
    runs = [
        run for _turn, run in seen[next(reversed(seen))]
    ]  # the last one, after earlier ones of the same form
    size, whole = sum(len(run.code) for run in runs), snapshot.whole or snapshot
    free = (await aside(size, runs[-1].parse)).free
    functions = {each: whole.functions[each] for each in free if each in whole.functions}
    with_state = {
        each: function for each, function in functions.items() if shares_state(function, whole)
    }
    foreign = {
        each: others.foreign[each]
        for each in free
        if each in others.foreign and each not in functions
    }
    by_name = {each: function for each, function in functions.items() if each not in with_state}
    needs = [await service.granting.needs(function, whole) for function in functions.values()]
    needed = joined([*needs, needs_of_text(runs[-1].code)])
    reaches = bool(with_state or foreign or needed.is_outward)
    computes = not (with_state or foreign or needed or is_by_chance(runs[-1].parse().tree))
    callees = ProgramCallees(by_name, with_state | foreign, others.of_the_host, reaches, computes)
    return await aside(size, source_of_program, name, words, runs, callees)


@dataclass(frozen=True, slots=True)
class OtherFunctions:
    """The functions that an agent may call and that are not the workspace's.

    The `foreign` ones are of other programs; those of the host and helpers cannot be called by functions.
    """

    foreign: Mapping[str, "Function"]
    of_the_host: Collection[str]


async def seen_runs(store: TurnStore, line: str) -> dict[str, list[tuple[str, SeenProgram]]]:
    """Return the newest programs of a conversation that returned a value, with their turns, grouped by form.

    Within a form they are oldest first; the form of the newest program is the last.
    """
    begun = {program.id: (row, program) for row, program in await _programs_in(store, line)}
    runs: dict[str, list[tuple[str, SeenProgram]]] = {}
    for row, program in [*begun.values()][-_LOOKED_AT:]:
        entries = await store.load(row.turn)
        results = [
            answer for _, answer in read_all(CallAnswered, entries) if answer.call_id == program.id
        ]
        asked = _asked_for(entries, program.id)
        if asked is None or not results or results[0].outcome != "returned":
            continue
        arguments = read_json(asked.arguments)
        detail = results[0].detail
        code = str(arguments.get("code")) if isinstance(arguments, dict) else ""
        if code and isinstance(await aside(len(code), ProgramText.of, code), ProgramText):
            stored = detail["value"]
            is_large = isinstance(stored, dict) and stored.get(TAG) == LARGE
            value = read_row(stored) if is_large else decode(stored)
            run = SeenProgram(code, _seen_calls(detail.get("seen")), value)
            runs[program.form] = [*runs.pop(program.form, ()), (row.turn, run)]
    return runs


def _asked_for(entries: Sequence[Entry], call: str) -> Call | None:
    """Return a call as in the model's reply; for `call_function`, the call that it wraps."""
    for _, reply in read_all(ReplyEntry, entries):
        for asked in reply.calls:
            if asked.id == call:
                return unwrapped(asked)
    return None


def _seen_calls(seen: object) -> dict[str, list[list[str]]]:
    """Return the calls that a worker reports, without rows that have another shape."""
    rows = seen.items() if isinstance(seen, dict) else ()
    noted: dict[str, list[list[str]]] = {}
    for name, calls in rows:
        for call in calls if isinstance(calls, list) else ():
            match call:
                case [str(), str()]:
                    noted.setdefault(str(name), []).append(call)
    return noted


def _failed(text: str, detail: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return the answer to a call that failed, with the error that it raised, if any."""
    return {"failed": text} | ({"raised": detail["raised"]} if "raised" in detail else {})


def _is_cut(answered: CallAnswered, call: str = "") -> bool:
    is_unknown = answered.name == RUN_PROGRAM and answered.outcome == "unknown"
    return is_unknown and call in ("", answered.call_id)


async def _programs_in(store: TurnStore, line: str) -> list[tuple[Entry, ProgramEntry]]:
    """Return the starts of the programs of a conversation, but for those that came with an agent's file."""
    rows = await store.history(line, kinds=(ProgramEntry.kind,))
    return [*read_all(ProgramEntry, [row for row in rows if not row.is_imported])]


async def _inner_rows(turn: Turn, program: str) -> list[_InnerEntry]:
    """Return what is journaled under the key of a program: its starts, and its inner calls."""
    found: list[_InnerEntry] = []
    kinds = tuple(kind.kind for kind in get_args(_InnerEntry))
    for row in await turn.store.history(turn.line, kinds=kinds):
        inner = read_entry(row)
        if isinstance(inner, _InnerEntry) and inner.program == program and not row.is_imported:
            found.append(inner)
    return found


def _journal(rows: Sequence[_InnerEntry]) -> dict[int, InnerCall]:
    """Return the inner calls that earlier runs of a program made, by number."""
    calls: dict[int, InnerCall] = {}
    for row in rows:
        match row:
            case InnerCallEntry(ordinal=number):
                calls[number] = InnerCall(row.name, row.arguments, row.reaches)
            case InnerGrantEntry(ordinal=number) if number in calls:
                calls[number] = replace(calls[number], reaches=True)
            case InnerAnswerEntry(ordinal=number) if number in calls:
                calls[number] = replace(calls[number], answer=_inner_answer(row))
            case _:
                pass
    return calls


def _inner_answer(answer: InnerAnswerEntry) -> dict[str, Any] | None:  # Any: the wire value
    """Return a recorded answer for a program that runs again; None if the call was interrupted: its end is unknown."""
    if answer.outcome == "interrupted":
        return None
    if answer.outcome != "returned":
        return _failed(answer.text, answer.detail)
    is_apart = "value" in answer.detail
    return {"value": read_row(answer.detail["value"]) if is_apart else answer.text}


def calls_made(entries: Sequence[Entry], call: str) -> list[str]:
    """Return the calls that an interrupted program had made, as lines for the model; none if it had made none."""
    lines = dict[str, str]()
    for entry in entries:
        match read_entry(entry):
            case InnerCallEntry(id=id) as inner if id.rpartition(".")[0] == call:
                text = f"{inner.name}({inner.arguments})"
                lines[id] = f"{len(lines) + 1}. {one_line(text, _SHORT)}"
            case InnerAnswerEntry(call_id=id, outcome=outcome, text=text) if id in lines:
                lines[id] += f" → {outcome}: {one_line(text, _SHORT)}"
            case _:
                pass
    return _call_list([*lines.values()]) if lines else []


def _call_text(name: str, arguments: str) -> str:
    given = ", ".join(f"{name}={read_row(value)!r}" for name, value in read_json(arguments).items())
    return f"{name}({one_line(given, _SHORT)})"


def _call_line(number: int, name: str, arguments: str, answer: Mapping[str, Any]) -> str:
    shown = (
        answers.show_value(answer["value"]) if "value" in answer else f"failed: {answer['failed']}"
    )
    return f"{number}. {_call_text(name, arguments)} → {one_line(shown, _SHORT)}"


def _call_list(calls: Sequence[str]) -> list[str]:
    """Return a header and the first of the calls that a program had made."""
    head = f"It had made {len(calls) or 'no'} call{'' if len(calls) == 1 else 's'}{':' if calls else '.'}"
    more = [f"… and {len(calls) - _TOLD} more"] if len(calls) > _TOLD else []
    return [head, *map(visible, calls[:_TOLD]), *more]


def _not_run(found: Sequence["Problem"], unmade: Sequence[str] = ()) -> str:
    """Return why a program was not run; `unmade` are functions that it names and that were refused in this turn."""
    found = [row for row in found if not any(f"`{name}`" in row.message for name in unmade)]
    if unmade and not found:
        names = " and ".join(f"`{name}`" for name in unmade)
        return f"The program was not run: it waits for {names}, which {'was' if len(unmade) == 1 else 'were'} not made."
    lines = [
        f"{row.where}: {row.message}".removeprefix(": ") + (f" ({row.fix})" if row.fix else "")
        for row in found
    ]
    shown = [f"- {visible(line)}" for line in lines[:MAX_PROBLEMS]]
    more = ["There may be more of them."] if len(lines) > MAX_PROBLEMS else []
    return "\n".join(
        ["The program was not run:", *shown, *more, "Nothing has run. Fix it, and run it again."]
    )
