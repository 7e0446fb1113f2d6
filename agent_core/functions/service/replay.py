"""Replays of recorded calls with the original arguments, seed, time zone and answers, on any version.

A replay has no effects outside: requests through `self` are answered from the record, or refused.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Container, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from agent_core.access.grants.content import runnable
from agent_core.access.secrets import CallSecrets, MaskedChannel
from agent_core.base.errors import UsageError
from agent_core.base.matching import diff_lines
from agent_core.base.offload import aside, bulk
from agent_core.base.records import dataclass, to_json
from agent_core.base.untrusted import visible
from agent_core.registry.depends import offered_sources
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.storage import FAILURES, CallOwners, RecordedRow, Store
from sandbox import CalleeFailed, FunctionCall, Job, Outcome, RequestRefused, Returned
from sandbox.wire.lines import bare_lines
from sandbox.wire.values import encode, read_row

from ..answers import CallReport, callee_error, show_value, size_of
from ..debug import Debugger, DebuggerSlot, Watch
from . import history
from .call_records import RecordedOutcome, Row, first_few

if TYPE_CHECKING:
    from agent_core.registry.registry import Registry

    from ..sandbox_client import SandboxClient

THEN, NOW = "", "now"
MOST_SHOWN: Final = 200
OTHER_STATE: Final = "it returns the same, and leaves another value in `self.state`"
_NONE: Final = sha256(b"null").hexdigest()
_ALIKE: Final = {"fetch": "url", "call": "function", "memory": "block"}


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A recorded call: how it ended, as a word and as a line, and what a replay would lack.

    `number_in_program` is the number of the call in its program, or 0.
    """

    call: int
    function: str
    arguments: Any  # Any: values of JSON
    outcome: str
    ended: str
    at: float
    turn: str
    lacking: tuple[str, ...]
    number_in_program: int = 0

    @classmethod
    def of(cls, row: RecordedRow) -> "RecordedCall":
        """Return the call in a stored row."""
        data = row.data
        ended = visible(_outcome_text(RecordedOutcome.from_json(data["outcome"])))[:MOST_SHOWN]
        lacking = tuple(data["lacking"])
        return cls(
            row.n,
            row.function,
            data["arguments"],
            row.outcome,
            ended,
            row.at,
            row.turn,
            lacking,
            int(data.get("number_in_program", 0)),
        )


@dataclass(frozen=True, slots=True)
class RecordedDetails:
    """Everything that is recorded about a call; `data` is the stored record with the answers to its requests."""

    call: RecordedCall
    outcome: RecordedOutcome
    data: Mapping[str, Any]  # Any: JSON

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published shape."""
        return {**to_json(self.call), **self.data}


@dataclass(frozen=True, slots=True)
class Replay:
    """A replayed call: the version that ran, and how it ended then and now.

    `number` is that of the version in its history, or 0. `quit`: the user ended it at the debugger. `lacking` is what
    could not be replayed.
    """

    call: int
    function: str
    version: str
    number: int
    then: RecordedOutcome
    outcome: CallReport
    same: bool
    quit: bool
    difference: str
    lacking: tuple[str, ...]


class Replays:
    """The recorded calls of a workspace, limited to those of `owners`."""

    def __init__(
        self,
        store: Store,
        registry: "Registry",
        sandbox: Callable[[], "SandboxClient"],
        owners: CallOwners = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._sandbox = sandbox
        self._owners = owners

    def of(self, owners: CallOwners) -> "Replays":
        """Return a view of the calls of these agents; it treats all others as not recorded."""
        return (
            self if owners is None else Replays(self._store, self._registry, self._sandbox, owners)
        )

    async def calls(self, function: str = "", *, failed: bool = False) -> list[RecordedCall]:
        """Return the recorded calls, newest first."""
        rows = await self._store.recorded_calls(
            function, tuple(sorted(FAILURES)) if failed else (), self._owners
        )
        return await asyncio.to_thread(lambda: [RecordedCall.of(row) for row in rows])

    async def show(self, call: int) -> RecordedDetails:
        """Return one recorded call with the answers it got.

        Raises:
            UsageError: the call is not recorded.
        """
        row = await self._row(call)
        shown = await aside(bulk(row.data["outcome"]), RecordedCall.of, row)
        return RecordedDetails(shown, RecordedOutcome.from_json(row.data["outcome"]), row.data)

    async def replay(  # noqa: PLR0913 - what may differ from the call of then
        self,
        call: int,
        version: str = THEN,
        *,
        looks_back: bool = False,
        debugger: Debugger | None = None,
        function: str = "",
        on: Snapshot | None = None,
        tried: str = "",
        more: Mapping[str, Any] | None = None,  # Any: values of Python
    ) -> Replay:
        """Replay a call, and return how it ended then and now.

        `version` is empty for the original code, `now`, or a version of the function by number or hash prefix. With
        `looks_back` and a human at the debugger, a call that raises stops there; `quit` means that the human ended it.
        `debugger` replaces that of the workspace. `function` takes the call instead, with `more` arguments. `on` is a
        snapshot to use that is not in force. `tried` is a function without effects: calls of it are made, not answered
        from the record.

        Raises:
            UsageError: the call or the version is not recorded.
        """
        row = await self._row(call)
        name = function or row.function
        if on is not None or function:
            snapshot = on or self._registry.snapshot()
            module = snapshot.functions[name].module
        else:
            module, snapshot = await self._code(row, version)
        sandbox = self._sandbox()
        watch = Watch(
            sandbox.debugging,
            looks_back=looks_back,
            slot=None if debugger is None else DebuggerSlot(debugger),
        )
        watch.recording.seed, watch.recording.zone_then = row.data["seed"], row.data["zone"]

        async def attempt(arguments: Mapping[str, Any]) -> Outcome:  # Any: values of Python
            work = FunctionCall(tried, arguments)
            home = snapshot.functions[tried].module
            modules = runnable(snapshot.functions[tried], snapshot.modules)
            return await sandbox.run(Job(modules, home, work, sandbox.limits, large=sandbox.values))

        replaced = await self._replaced_functions() if version == NOW else ()
        rows = row.data["heard"]
        to_try = (tried, attempt) if tried else None
        heard = await aside(bulk(rows), ReplayedRequests, rows, watch, snapshot, replaced, to_try)
        arguments = await aside(bulk(row.data["arguments"]), read_row, row.data["arguments"])
        try:
            with watch.over(
                name, snapshot, may_have_secret=False
            ) as around:  # a stand-in answers for each
                work = FunctionCall(name, arguments | (more or {}))
                own = snapshot.functions.get(name)
                modules = runnable(own, snapshot.modules) if own else snapshot.modules
                job = Job(
                    modules, module, work, sandbox.limits, around=around, large=sandbox.values
                )
                outcome = await sandbox.run(
                    job, MaskedChannel(CallSecrets(sandbox.secrets, row.function), heard)
                )
        finally:
            watch.close()
        then, size = RecordedOutcome.from_json(row.data["outcome"]), size_of(outcome)
        report = await aside(size, CallReport.of, outcome)
        now = await aside(size, RecordedOutcome.of, report)
        text = snapshot.modules[module].text
        hash = history.hash_of((await aside(len(text), offered_sources, text)).get(name, ""))
        numbers = [version.number for version in await self._versions(name) if version.hash == hash]
        kept_alike = await aside(bulk(rows), heard.kept_alike)
        same = await aside(size, then.__eq__, now)
        difference = "" if same and kept_alike else OTHER_STATE
        if not same:
            difference = await asyncio.to_thread(_difference, then, now)
        return Replay(
            call,
            row.function,
            *(hash, numbers[-1] if numbers else 0),
            then,
            report,
            same=same and kept_alike,
            quit=watch.was_quit,
            difference=difference,
            lacking=(*row.data["lacking"], *first_few(heard.missed)),
        )

    async def _row(self, call: int) -> RecordedRow:
        row = await self._store.recorded_call(call, self._owners)
        if row is None:
            raise UsageError(
                f"The call {call} is not recorded.",
                fix="To see the recorded calls: knapper calls list",
            )
        return row

    async def _code(self, row: RecordedRow, version: str) -> tuple[str, Snapshot]:
        """Return the function's module and a snapshot: the recorded code, that with another version, or the current."""
        now, module = self._registry.snapshot(), row.data["module"]
        if version == NOW:
            if row.function not in now.functions:
                raise UsageError(
                    f"`{row.function}` no longer exists.", fix="Omit --version, or give one."
                )
            return now.functions[row.function].module, now
        module_versions: dict[str, str] = dict(row.data["modules"])
        if version:
            chosen = history.pick(row.function, await self._versions(row.function), version)
            del module_versions[module]
            module = chosen.row.module
            module_versions[module] = chosen.row.version
        snapshot = Snapshot.empty()
        for name, hash in module_versions.items():
            source = now.modules.get(name)
            if source is None or source.version != hash:
                text = await self._store.text(hash)
                if text is None:
                    raise UsageError(
                        f"The text of `{name}` of then is not recorded.", fix="Use --version now."
                    )
                source = ModuleSource.of(name, text)
            snapshot = snapshot.with_module(read_module(source))
        return module, snapshot

    async def _versions(self, function: str) -> tuple[history.Version, ...]:
        return await asyncio.to_thread(
            history.versions, await self._store.function_history(function), function
        )

    async def _replaced_functions(self) -> frozenset[str]:
        """Return the functions that tending deleted because another one does what they did."""
        there, rows = self._registry.snapshot().functions, await self._store.tended()
        return frozenset(
            row.function for row in rows if not (row.after or row.undone or row.function in there)
        )


class ReplayedRequests:
    """The handler that answers requests of a replayed call from the record."""

    def __init__(
        self,
        rows: list[Row],
        watch: Watch,
        snapshot: Snapshot,
        replaced: Container[str] = (),
        tried: tuple[str, Callable[[Mapping[str, Any]], Awaitable[Outcome]]] | None = None,
    ) -> None:
        """Create the handler; `tried` is a function whose calls are made, and what makes them.

        The recorded answer of a `replaced` function counts for a call of another one with the same arguments, or more.
        """
        self._rows = rows
        self._answered = set[int]()
        # By what a request has to be alike in: going through all rows would take the square of their number.
        self._exact, self._alike = (
            defaultdict[object, deque[int]](deque),
            defaultdict[object, deque[int]](deque),
        )
        self._gone: list[int] = []
        for at, row in enumerate(rows):
            self._exact[_frozen([row["name"], row["arguments"]])].append(at)
            if key := _ALIKE.get(row["name"]):
                self._alike[_frozen([row["name"], _of(row["arguments"], key)])].append(at)
            if row["name"] == "call" and str(_of(row["arguments"], "function")) in replaced:
                self._gone.append(at)
        self._watch = watch
        self._snapshot = snapshot
        self._tried = tried
        self.missed: dict[str, None] = {}  # an ordered set
        self._left = [
            row["arguments"]
            for row in rows
            if row["name"] == "state" and "value" in row["arguments"]
        ]
        self._kept: list[Any] = []  # Any: JSON

    async def __call__(
        self, name: str, arguments: dict[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
        """Return the recorded answer.

        Raises:
            RequestRefused: no answer is recorded.
        """
        if name == "debug":
            return await self._watch.answer(arguments, self._snapshot)
        if name == "progress":
            return None
        if name == "state" and "value" in arguments:
            self._kept.append(await aside(bulk(arguments), encode, arguments))
            return None
        given = arguments.get("arguments") or {}
        if (
            name == "call"
            and self._tried
            and arguments.get("function") == self._tried[0]
            and isinstance(given, Mapping)
        ):
            outcome = await self._tried[1](given)
            if isinstance(outcome, Returned):
                return outcome.value
            raise callee_error(self._tried[0], outcome)
        row = await aside(bulk(arguments), self._take_row, name, arguments)
        if row is None:
            self.missed[f"an answer to self.{visible(name[:40])}, which it did not ask then"] = None
            raise RequestRefused(
                f"this is a replay, and the call of then got no such answer from self.{name}"
            )
        if "raised" in row:
            raise CalleeFailed.from_json(row["refused"], row["raised"])
        if "refused" in row:
            raise RequestRefused(row["refused"])
        if name == "secret":
            return f"secret {arguments.get('name')}"
        return await aside(bulk(row["value"]), read_row, row["value"])

    def kept_alike(self) -> bool:
        """Return whether the call left the same state as then."""
        return self._kept == self._left

    def _take_row(
        self, name: str, arguments: dict[str, Any]
    ) -> Row | None:  # Any: values that cross the sandbox
        """Return the first answer that is left to such a request, and use it up."""
        encoded = encode(arguments)
        key = _ALIKE.get(name)
        waiting = [self._exact.get(_frozen([name, encoded]))]
        waiting += [self._alike.get(_frozen([name, _of(encoded, key)]))] if key else []
        at = next(filter(lambda at: at is not None, map(self._first, waiting)), None)
        if at is None and name == "call":
            rows = (
                (at, self._rows[at]["arguments"]) for at in self._gone if at not in self._answered
            )
            given = _of(encoded, "arguments")
            at = next((at for at, own in rows if _has_all(given, _of(own, "arguments"))), None)
        if at is None:
            return None
        self._answered.add(at)
        return self._rows[at]

    def _first(self, places: deque[int] | None) -> int | None:
        while places and places[0] in self._answered:
            places.popleft()
        return places[0] if places else None


def _frozen(value: object) -> object:
    """Return a value of JSON as one that can be looked up; equal values stay equal."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return frozenset((name, _frozen(item)) for name, item in value.items())
    return value


def _has_all(given: object, those: object) -> bool:
    return (
        isinstance(given, Mapping) and isinstance(those, Mapping) and those.items() <= given.items()
    )


def _of(arguments: object, key: str) -> object:
    return arguments.get(key) if isinstance(arguments, Mapping) else None


def _difference(old_outcome: RecordedOutcome, new_outcome: RecordedOutcome) -> str:
    """Return one line about each outcome, or a diff of long values, and a diff of the output."""
    before, after = _outcome_text(old_outcome), _outcome_text(new_outcome)
    is_short = len(before) <= MOST_SHOWN >= len(after) and "\n" not in before + after
    head = [f"then: {before}", f"now: {after}"] if is_short and before != after else []
    long = [[] if is_short else bare_lines(text) for text in (before, after)]
    old, new = (
        [*long[0], *bare_lines(old_outcome.output)],
        [*long[1], *bare_lines(new_outcome.output)],
    )
    return visible("\n".join([*head, *diff_lines(old, new, ("then", "now"), 2)]))[:8_000]


def _outcome_text(recorded: RecordedOutcome) -> str:
    word, error = recorded.outcome.replace("_", " "), recorded.error
    if error:
        kind = "" if error.type == recorded.outcome else f"{error.type}: "
        return f"{word} {kind}{error.message}"
    if recorded.outcome != "returned":
        return word
    value = read_row(recorded.value)
    if value is None and recorded.digest != _NONE:
        return f"{word} a value too large to be kept, of SHA-256 {recorded.digest[:12]}"
    text = value if isinstance(value, str) and "\n" in value else show_value(value)
    return f"{word} {text}"
