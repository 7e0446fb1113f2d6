"""Calls outside of a turn: by the user, as a test, traced line by line, or to measure the examples' coverage."""

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import closing, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.access.grants import Denied
from agent_core.access.grants.content import runnable
from agent_core.access.secrets import CallSecrets, MaskedChannel
from agent_core.base.errors import UsageError
from agent_core.base.offload import aside, bulk
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, replace
from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.arguments import read_with
from sandbox import Evaluation, Job, Refused, Returned
from sandbox.wire.values import Unsendable, Written, encode

from ..answers import CallReport, InterruptedCall, bad_arguments, size_of
from ..debug import DebuggerSlot, Watch, stop
from ..worker_api import FunctionStates, OnProgress, WorkerApi, apart_of, large_of
from .call_records import noted, recorded
from .function_facts import Coverage
from .plan import USER, Author

if TYPE_CHECKING:
    from agent_core.registry.examples import Example
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from agent_core.storage import Store, Write

    from ..foreign import ForeignFunction
    from ..sandbox_client import SandboxClient
    from .call_records import SeenResults
    from .grant_service import GrantService


@dataclass(frozen=True, slots=True)
class TraceReport:
    """A call with the lines that ran. `cut`: there were more."""

    name: str
    outcome: CallReport
    lines: tuple[stop.TraceLine, ...]
    cut: bool
    text: str


class CallService:
    """The service that makes calls, each with a debugger watch."""

    def __init__(
        self,
        sandbox: "SandboxClient",
        grants: "GrantService",
        store: "Store",
        seen_results: "SeenResults",
    ) -> None:
        self._sandbox = sandbox
        self._seen_results = seen_results
        self._store = store
        self._grants = grants
        self._covered: dict[
            tuple[str, str, str], Coverage
        ] = {}  # cached: the coverage of a text does not change
        self.debugging = sandbox.debugging

    async def made(
        self,
        function: "Function",
        snapshot: "Snapshot",
        arguments: str | Mapping[str, Any],
        on_progress: OnProgress | None = None,
        watch: Watch | None = None,
        author: Author = USER,
        did: Receipt | None = None,
    ) -> tuple[CallReport, tuple["Write", ...]]:
        """Make one call. Return its report and the writes to store.

        `author` is the agent that makes the call in its turn, if any. `did` collects the effects of the call.

        Raises:
            UsageError: the arguments do not fit.
        """
        if isinstance(arguments, str):
            arguments_json, written = arguments, dict[str, Written]()
        else:
            arguments_json, written = await aside(bulk(arguments), _sendable, arguments)
        apart = {} if isinstance(arguments, str) else {name: arguments[name] for name in written}
        checked = await _check_arguments(function, arguments_json, apart)
        granting = self._grants.during(author.approvals)
        permit = await granting.permit(function, snapshot, arguments=checked)
        if isinstance(permit, Denied):
            refused = Refused(permit.text)
            return CallReport.of(refused), (recorded(function, snapshot, refused, 0.0),)
        watch = watch or Watch(self.debugging, slot=author.slot)
        tell = on_progress or (lambda done, total, note: None)
        states = FunctionStates(self._store, keeps=not permit.only_reads)
        api = WorkerApi(
            self._sandbox,
            snapshot,
            tell,
            granting,
            watch=watch,
            states=states,
            did=Receipt() if did is None else did,
        )
        began = time.monotonic()
        try:
            outcome = await api.run(function, checked, permit, written)
        except asyncio.CancelledError:  # the call is still recorded
            seconds = time.monotonic() - began
            note = partial(
                noted,
                watch,
                function,
                snapshot,
                InterruptedCall(),
                seconds=seconds,
                arguments=checked,
            )

            async def record() -> None:
                await self._store.apply(await aside(bulk(checked), note))

            await asyncio.shield(record())
            raise
        finally:
            watch.close()
        size = max(size_of(outcome), len(arguments_json), bulk(checked))
        report = await aside(size, CallReport.of, outcome)
        writes = await aside(
            size,
            noted,
            watch,
            function,
            snapshot,
            outcome,
            seconds=report.seconds,
            arguments=checked,
        )
        missing = api.lacking(outcome, permit)
        kept = states.writes if isinstance(outcome, Returned) else ()
        seen = self._seen_results.note(function, outcome, author.agent)
        return replace(report, lacks=missing, debugged=watch.notes.text(snapshot)), (
            *writes,
            *kept,
            *seen,
        )

    async def call_foreign(
        self,
        foreign: "ForeignFunction",
        arguments: str | Mapping[str, Any],
        on_progress: OnProgress | None = None,
    ) -> CallReport:
        """Call a function of another program and return the report.

        Raises:
            UsageError: the arguments do not fit.
        """
        if not isinstance(arguments, str) and large_of(arguments):
            raise UsageError(
                f"`{foreign.function.name}` is a tool of another program, which gets no large values."
            )
        arguments_json = arguments if isinstance(arguments, str) else json.dumps(arguments)
        checked = await _check_arguments(foreign.function, arguments_json, {})
        outcome = await foreign.call(checked, on_progress or (lambda done, total, note: None))
        return CallReport.of(outcome)

    async def traced(
        self,
        function: "Function",
        snapshot: "Snapshot",
        arguments: str | Mapping[str, Any],
        author: Author = USER,
    ) -> TraceReport:
        """Return the outcome of a call and each line that ran with its changes, also as text.

        Raises:
            UsageError: the arguments do not fit.
        """
        watch = Watch(self.debugging, "lines", slot=author.slot, trace_for=author.by)
        report, _ = await self.made(function, snapshot, arguments, watch=watch, author=author)
        is_whole = report.outcome not in ("killed", "timed_out")
        text = stop.trace(watch.lines, snapshot, is_cut=watch.is_cut, is_whole=is_whole)
        return TraceReport(function.name, report, watch.lines, watch.is_cut, text)

    async def coverage(self, function: "Function", snapshot: "Snapshot") -> Coverage:
        """Return the executable lines of a function that its examples reach, cached by the text of its module."""
        key = function.module, function.name, function.version
        if key not in self._covered:
            runs = [
                self._reached_lines(function, snapshot, example) for example in function.examples
            ]
            reached: set[int] = set()
            can_run: set[int] = set()
            for ran, all_lines in await asyncio.gather(*runs):
                reached |= ran
                can_run |= all_lines
            self._covered = dict([*self._covered.items()][-200:])
            self._covered[key] = Coverage(
                len(can_run), len(can_run & reached), tuple(sorted(can_run - reached))
            )
        return self._covered[key]

    async def _reached_lines(
        self, function: "Function", snapshot: "Snapshot", example: "Example"
    ) -> tuple[set[int], set[int]]:
        shows_files = await self._sandbox.shows_files()
        granted = await self._grants.having(function, snapshot, shows_files=shows_files)
        nobody = DebuggerSlot()  # without a debugger, so no breakpoint stops the example
        watch = Watch(self.debugging, "cover", (function.module, function.name), slot=nobody)

        async def answer(name: str, arguments: dict[str, Any]) -> Any:  # Any: values that cross
            return await watch.answer(arguments, snapshot) if name == "debug" else None

        requests = closing(granted.files()) if granted.files else nullcontext()
        with requests as files, watch.over(function.name, snapshot) as around:
            work = Evaluation(example.setup, example.call, asks=granted.files is not None)
            modules = (
                runnable(function, snapshot.modules) if granted.served is None else granted.served
            )
            job = Job(
                modules, function.module, work, self._sandbox.limits, granted.access, around=around
            )
            secrets = CallSecrets(self._sandbox.secrets, function.name, granted.grants.secrets)
            await self._sandbox.run(job, MaskedChannel(secrets, answer, files=files))
        own = range(function.line, function.end_line + 1)
        ran = {row.line for row in watch.lines if row.path == function.path and row.line in own}
        return ran, {line for line in watch.can_run if line in own}


def _sendable(
    arguments: Mapping[str, Any],
) -> tuple[str, dict[str, Written]]:  # Any: what a caller of the library gives
    """Return the arguments as JSON, but those that JSON would change as a worker is sent them."""
    written = dict[str, Written]()
    for name, value in apart_of(arguments).items():
        with suppress(Unsendable):  # it has to be JSON
            written[name] = Written(encode(value, depth=1))  # as a part of all arguments
    return json.dumps(
        {name: value for name, value in arguments.items() if name not in written}
    ), written


async def _check_arguments(
    function: "Function", arguments_json: str, large: Mapping[str, Any]
) -> dict[str, Any]:  # Any: JSON
    if large:
        checked = await aside(
            len(arguments_json), read_with, arguments_json, function.parameters, large
        )
    else:
        checked = await aside(
            len(arguments_json), read_arguments, arguments_json, function.parameters
        )
    if not isinstance(checked, dict):
        raise UsageError(bad_arguments(function.name, checked))
    return checked
