"""The host's API for a running function: show progress, call another function, use what was granted.

Each request comes through the masked channel of its call, which answers fetches and secrets, so no secret's value
reaches this module. Arguments are checked like a model's, and the depth of calls is limited. `self.state` is read from
the store, and held until the answer of its call is stored: it belongs to one function, for all callers, identified by
the code that runs, not by a name that a worker sends.
"""

import ast
import asyncio
import base64
import contextlib
import hashlib
import itertools
import json
import math
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from agent_core.access.call_exit import CallExit, Reach
from agent_core.access.grants import NOTHING, CallFlow, Denied, FileRequests, Grants, Permit
from agent_core.access.grants.content import served, withheld
from agent_core.access.secrets import CallSecrets, MaskedChannel
from agent_core.access.secrets.session import FILES
from agent_core.base import syntax
from agent_core.base.errors import StorageError
from agent_core.base.offload import aside, bulk
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.memory.function_api import FunctionMemoryApi, MemoryAccessRefused
from agent_core.registry.arguments import read_with
from agent_core.storage import FunctionStore, SaveState, dump
from agent_core.storage.subject import parse_row
from sandbox import (
    FunctionCall,
    Job,
    Killed,
    Outcome,
    Raised,
    RequestRefused,
    Returned,
)
from sandbox.processes.debugging import PLAIN
from sandbox.wire.caps import MOST_STATE
from sandbox.wire.large import Large
from sandbox.wire.requests import without_handler
from sandbox.wire.values import Members, Pairs, Written, encode, is_plain

from .answers import bad_arguments, callee_error, error_in_caller, near_limit
from .foreign import ForeignFunction
from .gate.uses import opened_paths

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from .debug.debugging import Watch
    from .sandbox_client import SandboxClient


MOST_FILES: Final = 5_000  # examined before and after a call
_State: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class WritableFiles:
    """The state of the files that a call may write, at one moment; `is_whole` means that all were examined.

    A worker writes there directly, so no request reports it. Changes by others in the meantime count, too.
    """

    files: Mapping[str, _State] = field(default_factory=dict)
    is_whole: bool = True

    @classmethod
    def at(cls, paths: Sequence[str]) -> "WritableFiles":
        """Examine files, and the contents of folders."""
        files = dict(islice(_files(paths), MOST_FILES + 1))
        return cls(files, len(files) <= MOST_FILES)

    def changed(self, paths: Sequence[str], root: Path) -> Receipt:
        """Return the files that were written or removed since then; paths in `root`, the workspace, are relative."""
        receipt, now = Receipt(), WritableFiles.at(paths)
        if not (self.is_whole and now.is_whole):
            for path in paths:
                receipt.note(
                    "wrote",
                    f"{_name(path, root)} (perhaps: more than {MOST_FILES:,} files to compare)",
                )
            return receipt
        for path, state in now.files.items():
            if self.files.get(path) != state:
                receipt.note("wrote", _name(path, root))
        for path in self.files.keys() - now.files.keys():
            receipt.note("removed", _name(path, root))
        return receipt


def _files(paths: Sequence[str]) -> Iterator[tuple[str, _State]]:
    waiting = [*paths]
    while waiting:
        path = waiting.pop()
        try:
            state = os.lstat(path)
            if stat.S_ISDIR(state.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in islice(entries, MOST_FILES + 1)]
                # For a folder, only its existence counts; its contents have entries of their own.
                yield f"{path.rstrip('/')}/", (state.st_dev, state.st_ino, 0, 0)
            else:
                yield path, (state.st_dev, state.st_ino, state.st_size, state.st_ctime_ns)
        except OSError:
            continue  # it is gone, or unreadable


def _name(path: str, root: Path) -> str:
    own = f"{root}/"
    return path.removeprefix(own) or "./"


_COMPUTES: Final = (
    "Nothing in the text of `{function}` shows that it opens a file, so nobody is asked while it runs. Open it by name"
    " in the text, as in `open(path)`."
)
NONE_WRITTEN: Final[Mapping[str, Written]] = MappingProxyType({})
MAX_DEPTH = 4
MAX_NOTE = 400  # characters

OnProgress = Callable[[float, float | None, str], None]
OnOutput = Callable[[str], None]


class Permits(Protocol):
    """The access rules of calls and of the files that they open; the user is asked for missing grants."""

    async def permit(
        self,
        function: "Function",
        snapshot: "Snapshot",
        caller: str = "",
        flow: CallFlow | None = None,
        arguments: Mapping[str, Any] | None = None,  # Any: values that can be sent
    ) -> Permit | Denied:
        """Return the permit for a call of a function, possibly by another function, or why it is denied."""

    async def want(
        self,
        function: str,
        snapshot: "Snapshot",
        grants: Grants,
        caller: str = "",
        flow: CallFlow | None = None,
    ) -> bool:
        """Ask whether a running function, possibly called by another, may have more grants from now on."""

    async def guarded(self, snapshot: "Snapshot") -> frozenset[str]:
        """Return the functions whose callers need a grant."""

    async def want_path(
        self,
        function: str,
        snapshot: "Snapshot",
        grants: Grants,
        folder: str,
        doubt: str,
        *,
        caller: str = "",
        flow: CallFlow | None = None,
    ) -> tuple[Grants, str]:
        """Ask whether a running function may open a file. Return the new grants, or why nothing was granted."""

    def files_of(self, function: str, permit: Permit, exit: CallExit) -> FileRequests:
        """Return the handler of a call's requests for files."""


@asynccontextmanager
async def _noting_changes(permit: Permit, exit: CallExit) -> AsyncIterator[None]:
    """Note the changes to the files that a call may write while the block runs."""
    writable = permit.access.writable
    before = await asyncio.to_thread(WritableFiles.at, writable) if writable else WritableFiles()
    try:
        yield
    finally:  # also after an interruption
        if writable:
            exit.note_all(
                await asyncio.to_thread(before.changed, writable, Path(permit.access.home or "/"))
            )


@dataclass(frozen=True, slots=True)
class WorkerApi:
    """The handler for the requests of one call. Functions that it calls run on the same snapshot."""

    sandbox: "SandboxClient"
    snapshot: "Snapshot"
    on_progress: OnProgress
    permits: Permits
    depth: int = 1
    caller: str = ""  # the running function
    grants: Grants = NOTHING  # its grants
    is_bound: bool = (
        False  # whether it, or a caller of it, has only the code that an approval covers
    )
    secrets: CallSecrets | None = None  # its secrets; results of its callees are masked with them
    watch: "Watch | None" = None  # debugs and records the call
    memory: FunctionMemoryApi | None = None  # the blocks of the turn's agent
    states: "FunctionStates | None" = None  # the states of the functions in this call
    refusals: list[str] = field(
        default_factory=list
    )  # collects refused files, which the function may hide
    tries: list[str] = field(default_factory=list)  # the same for reads that libraries only attempt
    near: dict[str, None] = field(
        default_factory=dict
    )  # collects notes on values that are near their limit
    on_output: OnOutput | None = None  # gets the call's masked output, without that of its callees
    did: Receipt = field(
        default_factory=Receipt
    )  # collects the effects of the call and its callees
    on_reach: Reach | None = None  # is called before an address is first reached
    flow: CallFlow = field(
        default_factory=CallFlow
    )  # of the function or program that makes the call
    key: str = ""  # identifies the call, even when it is made again
    callees: Iterator[int] = field(
        default_factory=itertools.count
    )  # numbers the calls that it makes

    async def run(
        self,
        function: "Function",
        arguments: Mapping[str, Any],
        permit: Permit,
        written: Mapping[str, Written] = NONE_WRITTEN,
    ) -> Outcome:  # Any: JSON
        """Call a function and answer its requests; resources are closed however the call ends.

        `written` has those arguments that were encoded already.
        """
        flow = self.flow.of_callee(permit)

        async def want(grants: Grants) -> bool:
            asked = permit.is_bound and await self.permits.want(
                function.name, self.snapshot, grants, self.caller, flow
            )
            return self._note_denial(asked)

        async def want_host(place: str) -> bool:
            return await want(Grants(network=(place,)))

        async def want_secret(name: str) -> bool:
            return await want(Grants(secrets=(name,)))

        async def want_path(grants: Grants, folder: str, doubt: str) -> tuple[Grants, str]:
            if not permit.is_bound:
                return NOTHING, _COMPUTES.format(function=function.name)
            given, why = await self.permits.want_path(
                function.name, self.snapshot, grants, folder, doubt, caller=self.caller, flow=flow
            )
            self._note_denial(given != NOTHING)
            return given, why

        secrets = CallSecrets(
            self.sandbox.secrets, function.name, permit.grants.secrets, want_secret, self.secrets
        )
        exit = CallExit(
            secrets.words,
            only_reads=permit.only_reads,
            did=self.did,
            reach=self.on_reach,
            want_host=want_host,
            want_path=want_path,
        )
        files = self.permits.files_of(function.name, permit, exit)
        files.opens = lambda: opened_paths(
            arguments, function.name, self.snapshot.modules[function.module].text
        )
        files.is_typed = self._is_typed
        files.is_shown = await self.sandbox.shows_files()
        await files.begin()
        files.named = lambda: _texts(arguments, self.snapshot.modules[function.module].text)
        session = self.sandbox.broker.session(function.name, permit.grants.network, exit)
        async with _noting_changes(permit, exit), session as fetches:
            own = replace(
                self,
                secrets=secrets,
                caller=function.name,
                grants=permit.grants,
                is_bound=permit.is_bound,
                flow=flow,
            )
            is_first = self.depth == 1
            keep = self.watch.recording.note if self.watch and is_first else None
            channel = MaskedChannel(
                secrets, own, fetches, keep, self.on_output if is_first else None, files
            )
            watch = self.watch
            # Those of callers count, since its arguments may be one, and so do those of functions that it may call.
            may_have_secret = secrets.has_any or bool(permit.grants.functions)
            watched = (
                watch.over(function.name, self.snapshot, arguments, may_have_secret=may_have_secret)
                if watch
                else contextlib.nullcontext(PLAIN)
            )
            with contextlib.closing(files), watched as around:
                work = FunctionCall(
                    function.name, {**arguments, **written} if written else arguments
                )
                job = Job(permit.modules, function.module, work, permit.limits, permit.access)
                job = replace(job, around=around, large=self.sandbox.values)
                outcome = await self.sandbox.run(job, channel, files.places)
                self.flow.add(flow)
                self.refusals.extend(exit.refusals)
                self.tries.extend(exit.tries)
                if secrets.lacks_value:
                    self._note_denial(False)
                if (
                    permit.note
                    and isinstance(outcome, Raised)
                    and outcome.failure.type == "ModuleNotFoundError"
                ):
                    self._note_denial(
                        False
                    )  # a package that it may not import is reported as missing
                return outcome

    def was_refused(self, outcome: object) -> bool:
        """Return whether anything was refused while the call ran, so that the same call would fail again."""
        failure = outcome.failure if isinstance(outcome, Raised) else None
        while failure is not None:
            if any(text in failure.message for text in self.tries):
                return True
            failure = failure.cause
        return bool(self.refusals) or (self.watch is not None and self.watch.was_denied)

    def lacking(self, outcome: object, permit: Permit) -> str:
        """Return missing grants and refused files that may explain how a call ended, unless its error names them.

        Refused reads that a library only attempted count if the call failed.
        """
        if not isinstance(outcome, Returned | Raised | Killed):
            return ""
        is_returned = isinstance(outcome, Returned)
        error = outcome.failure.message if isinstance(outcome, Raised) else ""
        note = "" if is_returned and permit.grants else permit.note
        if isinstance(outcome, Raised):
            note = note or withheld(permit.modules, self.snapshot.modules, outcome.failure)
        refusals = [*self.refusals, *(() if is_returned else self.tries)]
        told = dict.fromkeys([note, *(refusal for refusal in refusals if refusal not in error)])
        return "\n".join(filter(None, told))

    def note_size(self, label: str, value: object) -> None:
        """Note for the model that a value is near the limit, if it is."""
        if isinstance(value, Large) and (
            note := near_limit(label, value, self.sandbox.limits.value)
        ):
            self.near[note] = None

    def _is_typed(self) -> bool:
        return self.watch is not None and self.watch.is_halted

    async def __call__(self, name: str, arguments: dict[str, Any]) -> Any:  # noqa: PLR0911 - one a request
        """Answer one request, which is already masked.

        Raises:
            RequestRefused: it cannot be answered; the message is for the function's author.
        """
        match name:
            case "debug" if self.watch is not None:
                return await self.watch.answer(arguments, self.snapshot)
            case "progress":
                return self._progress(arguments)
            case "call":
                return await self._call(
                    str(arguments.get("function")), arguments.get("arguments") or {}
                )
            case "call_key":
                return self.key
            case "now":
                return datetime.now().astimezone()
            case "memory":
                return await self._remember(arguments)
            case "state" if self.states is not None:
                return await self.states.answer(self.caller, arguments)
            case _ if name in FILES:
                return await without_handler(name, arguments)
            case _:
                raise RequestRefused(
                    f"`self.{name}` is not there: there is nothing yet that it could reach."
                )

    def _progress(self, arguments: dict[str, Any]) -> None:
        done, total = arguments.get("done"), arguments.get("total")
        amounts = [amount for amount in (done, total) if amount is not None]
        try:
            are_finite = all(
                isinstance(amount, int | float) and math.isfinite(amount) for amount in amounts
            )
        except OverflowError:
            are_finite = False
        if done is None or not are_finite:
            raise RequestRefused("self.progress takes finite numbers: done, and total or None.")
        note = str(arguments.get("note") or "")
        shown = note if len(note) <= MAX_NOTE else f"{note[:MAX_NOTE]}…"
        self.on_progress(float(done), None if total is None else float(total), shown)

    async def _remember(self, arguments: dict[str, Any]) -> str | None:
        label = str(arguments.get("block"))
        if self.memory is None:
            raise RequestRefused(
                "no agent's memory is at hand here: `self.memory` works in what an agent calls"
            )
        if not self.memory.has(label):
            raise RequestRefused(f"there is no memory block `{label}`")
        grants = Grants(memory=(label,))
        if not await self._may(grants):
            how = f"knapper functions grant {self.caller} --block {label}"
            raise RequestRefused(
                f"the memory block `{label}` is not granted to `{self.caller}`. Grant it at a terminal: {how}"
            )
        try:
            mask = self.secrets.words if self.secrets else str
            return await self.memory.answer(self.caller, arguments, mask)
        except MemoryAccessRefused as refusal:
            raise RequestRefused(str(refusal)) from refusal

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        function, foreign = self.snapshot.functions.get(name), self.sandbox.foreign
        if function is None and foreign is not None and name in foreign.functions():
            return await self._call_foreign(foreign.functions()[name], arguments)
        if function is None:
            raise error_in_caller(
                "LookupError", f"there is no function `{name}` that a function may call"
            )
        if self.depth >= MAX_DEPTH:
            raise error_in_caller(
                "RecursionError",
                f"functions may call one another {MAX_DEPTH} deep, and `{name}` would be deeper",
            )
        checked = await _checked_arguments(function, arguments)
        if name in await self.permits.guarded(self.snapshot):
            await self._must_have_grant(name, "has grants of its own")
        permit = await self.permits.permit(function, self.snapshot, self.caller, self.flow, checked)
        if isinstance(permit, Denied):
            self._note_denial(False)
            raise RequestRefused(permit.text)
        if self.is_bound and not permit.is_bound:
            permit = replace(permit, modules=served(function, self.snapshot), is_bound=True)
        self.did.note("called", name)
        key = (
            hashlib.sha256(f"{self.key}:{next(self.callees)}".encode()).hexdigest()[:32]
            if self.key
            else ""
        )
        outcome = await replace(self, depth=self.depth + 1, key=key, callees=itertools.count()).run(
            function, checked, permit
        )
        if isinstance(outcome, Returned):
            self.note_size(f"The result of `{name}`", outcome.value)
            return outcome.value
        self.did.note("failed", name)
        raise callee_error(name, outcome, was_refused=self.was_refused(outcome))

    async def _call_foreign(
        self, foreign: ForeignFunction, arguments: dict[str, Any]
    ) -> Any:  # Any: JSON
        """Call a function of another program; the result is also masked with the function's secrets."""
        name = foreign.function.name
        if any(isinstance(value, Large) for value in arguments.values()):
            raise RequestRefused(
                f"`{name}` is a tool of another program, which gets no large values: pass less, or a part"
            )
        checked = await _checked_arguments(foreign.function, arguments, keeps_types=False)
        await self._must_have_grant(name, "is a tool of another program")
        self.did.note("called", name)
        self.did.note("reached", foreign.reached)
        outcome = await foreign.call(checked, self.on_progress)
        if isinstance(outcome, Returned):
            return self.secrets.words(outcome.value) if self.secrets else outcome.value
        raise callee_error(name, outcome)

    async def _may(self, grants: Grants) -> bool:
        has = self.grants.covers(grants) or (
            self.is_bound
            and await self.permits.want(self.caller, self.snapshot, grants, flow=self.flow)
        )
        return self._note_denial(has)

    def _note_denial(self, is_given: bool) -> bool:  # noqa: FBT001 - it is passed on
        """Return `is_given`; if it is false, record that a grant was missing."""
        if self.watch is not None and not is_given and not self._is_typed():
            self.watch.was_denied = True
        return is_given

    async def _must_have_grant(self, name: str, why: str) -> None:
        grants = Grants(functions=(name,))
        if not await self._may(grants):
            how = f"knapper functions grant {self.caller} --call {name}"
            raise RequestRefused(
                f"`{name}` {why}, and `{self.caller}` may not call it. Grant it at a terminal: {how}"
            )


async def _checked_arguments(
    function: "Function", arguments: dict[str, Any], *, keeps_types: bool = True
) -> dict[str, Any]:  # Any: values that can be sent; JSON if it does not keep types
    apart = await aside(bulk(arguments), apart_of, arguments) if keeps_types else {}
    rest = {name: value for name, value in arguments.items() if name not in apart}
    text = await aside(bulk(rest), arguments_text, rest)
    checked = await aside(len(text), read_with, text, function.parameters, apart)
    if not isinstance(checked, dict):
        raise error_in_caller("TypeError", bad_arguments(function.name, checked))
    return checked


def large_of(arguments: Mapping[str, Any]) -> dict[str, Large]:
    """Return those arguments that are large values."""
    return {name: value for name, value in arguments.items() if isinstance(value, Large)}


def apart_of(arguments: Mapping[str, Any]) -> dict[str, Any]:  # Any: values that can be sent
    """Return those arguments that a function gets as they are, because JSON would change their type, or are large."""
    return {name: value for name, value in arguments.items() if not is_plain(value)}


def _texts(arguments: object, source: str = "") -> Iterator[str]:
    """Yield the strings in a call's arguments, and the string literals in a source."""
    waiting = [arguments]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case PurePath() as path:
                yield str(path)
            case Members(items=items) | Pairs(items=items):
                waiting += items
            case Mapping() as mapping:
                waiting += mapping.values()
            case list() | tuple() as items:
                waiting += items
    nodes = ast.walk(syntax.parse(source))
    yield from (
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def typed_text(arguments: Mapping[str, Any], apart: Mapping[str, Any]) -> str:  # Any: as above
    """Return the arguments of a call as JSON, those that came `apart` with their types, a large one by its words.

    Raises:
        RequestRefused: JSON cannot represent them.
    """
    kept = {name for name, value in apart.items() if not isinstance(value, Large)}
    return arguments_text(
        {name: encode(value) if name in kept else value for name, value in arguments.items()}
    )


def arguments_text(arguments: object) -> str:
    """Return the arguments of a call as JSON, as a program that knows no Python takes them.

    Raises:
        RequestRefused: JSON cannot represent them.
    """
    try:
        return json.dumps(arguments, default=_as_argument)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestRefused(f"a call takes what JSON can hold: {error}.") from error


def _as_argument(value: object) -> object:
    """Return the schema's form of a value that JSON cannot represent; the worker rebuilds the value."""
    match value:
        case Members():
            return list(value.items)
        case Pairs():
            return value.as_object()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            return str(value)


TRIES: Final = 30
"""The number of attempts for a call if other calls change its state meanwhile: of three callers, two lose each time."""


class FunctionStates:
    """The states of a function and of those that it calls, as one call reads and writes them."""

    def __init__(self, store: FunctionStore, turn: str = "", *, keeps: bool = True) -> None:
        """Create the states; unless the call `keeps` anything, what it writes ends with it."""
        self._store = store
        self._turn = turn
        self._keeps = keeps
        self._began: dict[str, int] = {}  # the number of the row that each was read from
        self._held: dict[
            str, tuple[int, Any]
        ] = {}  # Any: JSON; how often the call has changed it, and the value

    @property
    def writes(self) -> tuple[SaveState, ...]:
        """The writes of the states that changed."""
        held = self._held.items() if self._keeps else ()
        changed = [(name, value) for name, (version, value) in held if version]
        return tuple(
            SaveState(name, value, self._began[name], self._turn) for name, value in changed
        )

    async def answer(
        self, function: str, arguments: dict[str, Any]
    ) -> list[Any] | None:  # Any: as a worker sent them
        """Return the version and the value of a function's state, or hold a new value for it.

        Raises:
            RequestRefused: the value is not small JSON, or an inner call changed the state since it was read.
        """
        if function not in self._held:
            rows = await self._store.states(function)
            self._began[function] = rows[-1].n if rows else 0
            self._held[function] = (0, rows[-1].value if rows else {})
        version, value = self._held[function]
        if "value" not in arguments:
            return [version, value]
        try:
            text = dump(arguments["value"])
            new = parse_row(text)  # must be readable later
        except StorageError as error:
            raise RequestRefused(f"self.state takes what JSON can hold: {error.message}") from error
        if len(text.encode()) > MOST_STATE:
            raise RequestRefused(
                f"self.state takes {MOST_STATE} bytes of JSON: keep less, or a summary"
            )
        if arguments.get("version") != version:
            raise RequestRefused(
                f"`{function}` was called within its own call and changed the state that this one read"
            )
        self._held[function] = (version + 1, new)
        return None
