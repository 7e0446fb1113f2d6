"""The service with every operation on functions, for all interfaces."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.base import events, matching
from agent_core.base.errors import KnapperError, StorageError, UsageError, WorkspaceError
from agent_core.base.late import LateModule
from agent_core.base.offload import PER_ENTRY, aside, in_background
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from agent_core.registry.function import Function, reach_words
from agent_core.storage import (
    FAILURES,
    FUNCTIONS,
    RESTORED,
    CallOwners,
    SaveState,
    StateConflict,
    StateRow,
    Store,
)

from . import change_texts, function_facts
from .call_records import SeenResults
from .change_executor import ChangeExecutor, FolderCopy, Record
from .function_facts import Quarantine, Rated, Ratings, Released
from .judgment import Judgment, PendingCandidate, candidates_of, judgment_on, pending_candidate
from .loader import BackgroundReview, Loader, heard
from .pins import Pins
from .plan import USER, Author, Deletion, Detail, Dropped, FunctionWriter, Joined, PlannedChange

if TYPE_CHECKING:  # imported late: operations that only read load no gate, no sandbox and no search
    from agent_core.access.grants import GrantStore
    from agent_core.base.problem import Problem
    from agent_core.base.settings import StandingSettings
    from agent_core.model import Model
    from agent_core.registry import watch
    from agent_core.registry.registry import Registry, RegistryChange, Snapshot

    from .. import foreign as foreign_functions
    from .. import worker_api
    from ..answers import CallReport
    from ..foreign import ForeignFunction
    from ..gate import Gate, capability, draft
    from ..sandbox_client import SandboxClient
    from ..search import FunctionSearch, SearchReport
    from ..worker_api import FunctionStates, OnProgress
    from . import (
        approvals_log,
        call_service,
        changes,
        file_checks,
        file_sync,
        grant_service,
        proposals,
        relocation,
        replay,
        version_history,
    )
    from .grant_service import GrantService
else:
    watch = LateModule("agent_core.registry.watch")
    approvals_log = LateModule("agent_core.functions.service.approvals_log")
    call_service = LateModule("agent_core.functions.service.call_service")
    changes = LateModule("agent_core.functions.service.changes")
    file_checks = LateModule("agent_core.functions.service.file_checks")
    file_sync = LateModule("agent_core.functions.service.file_sync")
    grant_service = LateModule("agent_core.functions.service.grant_service")
    proposals = LateModule("agent_core.functions.service.proposals")
    relocation = LateModule("agent_core.functions.service.relocation")
    replay = LateModule("agent_core.functions.service.replay")
    version_history = LateModule("agent_core.functions.service.version_history")
    foreign_functions = LateModule("agent_core.functions.foreign")
    draft = LateModule("agent_core.functions.gate.draft")
    capability = LateModule("agent_core.functions.gate.capability")
    worker_api = LateModule("agent_core.functions.worker_api")

DEFAULT_MODULE = "grown"
_LOOK_S = 5.0  # between checks for functions that were changed elsewhere without a notice


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """The parts of a service; each is created when it is first used and then kept."""

    book: "Callable[[], GrantStore]"
    foreign: "Callable[[], Mapping[str, ForeignFunction]]"
    gate: "Callable[[], Gate]"
    grants: "Callable[[], GrantService]"
    hosted: Callable[[], Mapping[str, tuple[str, ...]]]
    file_patterns: Callable[[], Mapping[str, str]]
    open_model: "Callable[[str | None], Awaitable[Model]] | None"
    sandbox: "Callable[[], SandboxClient]"
    search: "Callable[[], FunctionSearch]"
    starters: Callable[[], frozenset[str]]
    writer: "Callable[[FunctionService], FunctionWriter | None]"


class _UseCount:
    """Counts the turns that run, and tells each upkeep when one begins or ends."""

    def __init__(self) -> None:
        self.count = 0
        self._heard: list[asyncio.Event] = []

    def changes(self) -> asyncio.Event:
        """Return an event that is set whenever a turn begins or ends."""
        event = asyncio.Event()
        self._heard.append(event)
        return event

    def __enter__(self) -> None:
        self._change(1)

    def __exit__(self, *_: object) -> None:
        self._change(-1)

    def _change(self, by: int) -> None:
        self.count += by
        for event in self._heard:
            event.set()


class FunctionService:
    """The service for everything that can be done with the functions of one workspace."""

    def __init__(
        self,
        root: Path,
        store: Store,
        registry: "Registry",
        parts: ServiceParts,
        *,
        module_bytes: int,
        standing: "StandingSettings",
        pins_mine: bool = False,
    ) -> None:
        """Create the service. With `pins_mine`, what a person wrote or changed is pinned."""
        self.pins = Pins(store, registry.snapshot, self._is_mine if pins_mine else None)
        self.registry = registry
        self.background_review = BackgroundReview(
            store, registry, parts.gate, lambda: self.granting.packages, self._announce_problems
        )
        self._copy = FolderCopy(root, store, module_bytes) if store.is_shared else None
        self.loader = Loader(
            root,
            store,
            registry,
            parts.gate,
            lambda: self.granting.packages,
            limit_bytes=module_bytes,
            copy=self._copy,
            then=self.background_review.ask,
        )
        self._pulled = -1
        self._root, self.store, self.parts, self._module_bytes = root, store, parts, module_bytes
        self.seen_results = SeenResults(store, registry.snapshot)
        self.quarantine = Quarantine(store, registry, standing)
        self._standing = standing
        self._listeners: list[Callable[[events.FunctionsChanged], None]] = []
        self.use: AbstractContextManager[object] = nullcontext()
        """Entered while a turn runs, which puts off the upkeep that waits for idle functions, and stops it."""
        registry.subscribe(self._announce)

    @cached_property
    def granting(self) -> "GrantService":
        """The grants, and who is asked for them."""
        granting = self.parts.grants()
        granting.prove = self._prove_again
        granting.current = self.registry.snapshot
        return granting

    async def _prove_again(self, function: Function, snapshot: "Snapshot") -> None:
        if function.unresolved:
            await self.saved(())  # makes the schemas that waited for a package
        await self.loader.prove_again(function, snapshot)

    @cached_property
    def calls(self) -> "call_service.CallService":
        """The calls of functions."""
        return call_service.CallService(
            self.parts.sandbox(), self.granting, self.store, self.seen_results
        )

    @cached_property
    def replays(self) -> "replay.Replays":
        """The recorded calls."""
        return replay.Replays(self.store, self.registry, self.parts.sandbox)

    @cached_property
    def _carrier(self) -> ChangeExecutor:
        return ChangeExecutor(
            self._root, self.store, self.registry, self.parts.book(), self.pins, self._copy
        )

    @cached_property
    def _proposals(self) -> "proposals.Proposals":
        return proposals.Proposals(self.pins, self.granting, self.registry.snapshot)

    @cached_property
    def checks(self) -> "file_checks.FileChecks":
        """The checks of files, which admit nothing."""
        gate = self.parts.gate()
        return file_checks.FileChecks(
            self.registry, gate, self.parts.sandbox(), self.granting.packages
        )

    @cached_property
    def _files(self) -> "file_sync.FileSync":
        return file_sync.FileSync(self._root, self.registry, self._module_bytes, self._catch_up)

    def _review(self) -> "changes.CandidateReview":
        return changes.CandidateReview(self.store, self.parts.gate(), self.granting, self.pins)

    @cached_property
    def plans(self) -> "changes.ChangePlanner":
        """The planner of changes to functions."""
        return changes.ChangePlanner(self.store, self._files, self._review(), lambda: self._writer)

    @cached_property
    def _writer(self) -> "FunctionWriter | None":
        return self.parts.writer(self)

    @cached_property
    def history(self) -> "version_history.VersionHistory":
        """The version history of functions."""
        return version_history.VersionHistory(self.store, self._files, self._review)

    @cached_property
    def relocations(self) -> "relocation.RelocationPlanner":
        """The planner of changes that give functions other names and modules."""
        return relocation.RelocationPlanner(
            self.store,
            self._files,
            self.parts.gate(),
            self.granting.packages,
            self.parts.book(),
            self.parts.file_patterns,
            lambda: self.parts.sandbox().debugging.breakpoints,
        )

    @cached_property
    def grants(self) -> "grant_service.GrantCommands":
        """The grants, as the user manages them."""
        return grant_service.GrantCommands(
            self.store,
            self.registry,
            lambda *pending: self.plans.granted(*pending),
            self.granting,
            self.finish,
        )

    @cached_property
    def approvals_log(self) -> "approvals_log.ApprovalsLog":
        """The log of approvals."""
        return approvals_log.ApprovalsLog(
            self.store, self.registry, self.parts.book(), lambda: self.granting
        )

    @cached_property
    def ratings(self) -> Ratings:
        """The ratings of results by users and calls."""
        return Ratings(self.store, self._standing, self.quarantine, self.tell)

    @cached_property
    def finder(self) -> "FunctionSearch":
        """The search for functions that serve a need."""
        return self.parts.search()

    async def when_idle(self, minutes: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work once each time that the functions have been unused for so long, until cancelled."""
        if not isinstance(self.use, _UseCount):
            self.use = _UseCount()
        use = self.use
        changes = use.changes()
        while True:
            changes.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(minutes * 60):
                    await changes.wait()
            if use.count or changes.is_set():
                continue
            doing = asyncio.ensure_future(work())
            try:
                await changes.wait()
            finally:
                doing.cancel()
                await asyncio.wait([doing])

    @asynccontextmanager
    async def followed(
        self,
        upkeep: Iterable[Coroutine[Any, Any, None]] = (),  # Any: as asyncio's
    ) -> AsyncIterator[None]:
        """Take changes of files, and those by other folders at the store, while the block runs; and do the upkeep."""
        async with (
            self.background_review.at_work(),
            watch.Watcher(self._root / "functions") as watcher,
        ):
            work = [self._follow(watcher), *upkeep]
            work += [self._follow_others()] if self.store.is_shared else []
            async with in_background(*work):
                yield

    async def _follow(self, watcher: "watch.Watcher") -> None:
        async for paths in watcher:
            await self.saved(paths)

    async def _follow_others(self) -> None:
        """Load changes by other folders at the store, on notices and at regular intervals."""
        told = asyncio.Event()
        async with self.store.heard(lambda topic: told.set() if topic in ("", FUNCTIONS) else None):
            while True:
                with suppress(StorageError):  # the database is unreachable: try again
                    await self.pull()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await told.wait()
                told.clear()

    def close(self) -> None:
        """Release the package folders that were used."""
        if "granting" in vars(self):
            self.granting.packages.environment.close()

    async def carry_out(self, plan: PlannedChange, record: Record, author: Author) -> PlannedChange:
        """Carry out a planned change. `record` stores it in one transaction with what must be atomic with it.

        One by an agent must be `decided` before.
        """
        has_clash = self.registry.snapshot().has_clash
        growth = self.granting.during(author.approvals).policy.growth
        done = await self._carrier.carry_out(plan, record, author.by, growth)
        if has_clash and done.change is not None:
            with suppress(KnapperError):  # the next refresh of the folder will do it
                await self._catch_up(
                    done.change.path
                )  # judge the files that can have their names now
        return done

    async def decided(self, plan: PlannedChange, author: Author) -> PlannedChange:
        """Return a plan as it may be carried out: a change by an agent may need a person's yes, or become a draft."""
        return await self._proposals.decided(plan, author) if author.by == "agent" else plan

    async def plan_create(
        self, name: str, code: str, module: str, reason: str, author: Author
    ) -> PlannedChange:
        """Plan a new function: it is judged, but not written yet."""
        module = module.removeprefix("functions.").removesuffix(".py") or DEFAULT_MODULE
        packages = await aside(
            len(code), capability.imported_at_the_top, code, self.parts.gate().rules.packages
        )
        if module == DEFAULT_MODULE and packages - self.registry.snapshot().modules.keys():
            module = (
                name  # in a shared module, the neighbors would also have to import its packages
            )
        return await self.plans.create(draft.Candidate(name, code, module, reason), author)

    async def create(
        self,
        name: str,
        code: str,
        module: str = DEFAULT_MODULE,
        *,
        reason: str = "",
        author: Author = USER,
    ) -> Judgment:
        """Judge a new function and, if it passes, admit it. Return its verdict."""
        plan = await self.plan_create(name, code, module, reason, author)
        return await self._make_judgment(plan, author)

    async def edit(
        self, name: str, old_text: str, new_text: str, *, reason: str = "", author: Author = USER
    ) -> Judgment:
        """Replace one passage of a function, or of the rejected candidate with that name. Return its verdict."""
        return await self._make_judgment(
            await self.plans.edit(name, [(old_text, new_text)], reason, author), author
        )

    async def replace(
        self, name: str, code: str, *, reason: str = "", author: Author = USER
    ) -> Judgment:
        """Replace the source of a function. Return its verdict."""
        return await self._make_judgment(
            await self.plans.replace(name, code, reason, author), author
        )

    async def confirm(
        self, name: str, *, expected: Sequence[str] = (), reason: str = "", author: Author = USER
    ) -> Judgment:
        """Admit a rejected candidate with the values that its examples actually returned. Return its verdict.

        If its author was asked what calls must return, `expected` are these results as Python literals.
        """
        return await self._make_judgment(
            await self.plans.confirm(name, reason, author, expected), author
        )

    async def rollback(self, name: str, version: str = "", *, author: Author = USER) -> Judgment:
        """Restore an earlier version of a function, or a deleted function. Return its verdict."""
        return await self._make_judgment(await self.plan_rollback(name, version, author), author)

    async def plan_rollback(self, name: str, version: str, author: Author) -> PlannedChange:
        """Plan an earlier version of a function; without one, a last rename or move is taken back in all files."""
        is_open = not version and author.by == "human"
        step = await self.relocations.last_step(name) if is_open else None
        if step:
            return await self.relocations.take_back(name, step.reason, author)
        return await self.history.rollback(name, version, author)

    async def add_example(
        self, name: str, call: str, expected: str, *, author: Author = USER
    ) -> Judgment:
        """Add an example to a function if it passes. Return its verdict."""
        return await self._make_judgment(
            await self.history.add_example(name, call, expected, author), author
        )

    async def delete(self, name: str, *, author: Author = USER) -> Deletion:
        """Delete a function from its module.

        Raises:
            WorkspaceError: other functions use it (they are named), or its file has changes that were not taken.
        """
        deletion = await self.make(await self.plans.delete(name, author), author)
        assert isinstance(deletion, Deletion)
        return deletion

    async def join(self, pattern: str) -> Joined:
        """Join the drafts that wait for a person: one by its name, or all that fit a pattern and lack nothing else.

        Raises:
            UsageError: none waits.
        """
        self.pins.require_person()
        pending = await self.all_pending()
        names = [pattern] if pattern in pending else []
        if not names:
            names = [
                name
                for name, candidate in pending.items()
                if candidate.waits_for_a_person and matching.Wildcard(pattern).fits(name)
            ]
        if not names:
            fix = matching.did_you_mean(pattern, pending, "Next: knapper functions pending")
            raise UsageError(f"No draft `{one_line(pattern, 80)}` waits.", fix=fix)
        made = [await self._make_judgment(await self.plans.join(name), USER) for name in names]
        return Joined(tuple(made))

    async def drop(self, name: str) -> Dropped:
        """Discard a rejected candidate.

        Raises:
            UsageError: there is no candidate with this name.
        """
        dropped = await self.make(await self.plans.drop(name))
        assert isinstance(dropped, Dropped)
        return dropped

    async def reload(self) -> "RegistryChange":
        """Reload the whole folder. Return what is different, fixed, in doubt, and all that is rejected."""
        change = await self._refresh(partial(self.loader.refresh, tries_all=True))
        return replace(change, rejected=self.registry.snapshot().rejected)

    async def reload_after(self, work: Awaitable[object]) -> "RegistryChange":
        """Wait for the user's work on the files, then reload the folder. Return all changes since it began.

        Changes that were taken while the user worked are included.
        """
        others: list[events.FunctionsChanged] = []
        quiet = self.on_change(others.append)
        try:
            await work
            report = await self.reload()
        finally:
            quiet()
        return change_texts.summed(report, others)

    async def saved(self, paths: Iterable[Path]) -> None:
        """Take files that the user or another program has just changed. Notify listeners of failures."""
        try:
            await self._refresh(partial(self.loader.refresh, paths))
        except KnapperError as error:
            self.tell(events.FunctionsChanged(turn="", rejected=(str(error),)))

    async def _refresh(self, look: "Callable[[], Awaitable[RegistryChange]]") -> "RegistryChange":
        with self.background_review.put_off():
            async with self._carrier.one_at_a_time:
                return await look()

    async def start(self) -> None:
        """Load the functions, and settle interrupted writes."""
        number = await self.store.functions_number()
        await self.loader.start()
        self._pulled = number

    async def pull(self) -> None:
        """Take changes made in other folders that share the store, if there are any."""
        number = await self.store.functions_number()
        if number == self._pulled and self.loader.is_whole:
            return
        try:
            await self._refresh(self.loader.pull)
            self._pulled = number
        except KnapperError as error:
            self.tell(events.FunctionsChanged(turn="", rejected=(str(error),)))

    async def list(
        self, pattern: str = "", module: str = "", standing: str = "", hidden: Collection[str] = ()
    ) -> function_facts.FunctionListing:
        """Return the workspace functions that are not hidden, and the problems of rejected files."""
        view, query = self.view(), function_facts.ViewFilter(pattern, module, standing)
        seen = (
            view.snapshot.seen(lambda function: function.name not in hidden)
            if hidden
            else view.snapshot
        )
        listing = await function_facts.listing(replace(view, snapshot=seen), query)
        foreign = function_facts.foreign_rows(
            (one.function for one in self.foreign().values()), query
        )
        foreign = [row for row in foreign if row.name not in hidden]
        return replace(listing, functions=(*listing.functions, *foreign)) if foreign else listing

    def ending(self, function: Function) -> str:
        """Return the end of a function's description for a model: what it reaches; empty if it only computes."""
        snapshot = self.registry.snapshot()
        source = snapshot.modules.get(function.module)
        if source is not None and source.version != function.version:
            return ""  # the function is of an older snapshot, which only this step still shows
        is_helper = source is None and function.name not in self.foreign()
        reached = () if is_helper else capability.reach_of_function(function, snapshot)
        return f" [{one_line(reach_words(reached), 400)}]" if reached else ""

    def foreign(self) -> "Mapping[str, ForeignFunction]":
        """Return the callable functions of other programs, by name."""
        taken = self.registry.snapshot().functions
        return {
            name: foreign for name, foreign in self.parts.foreign().items() if name not in taken
        }

    async def unused(
        self, pattern: str = "", module: str = "", standing: str = ""
    ) -> function_facts.FunctionListing:
        """Return functions that have not been called for a long time, which the user may want to retire."""
        return await function_facts.listing(
            self.view(), function_facts.ViewFilter(pattern, module, standing, unused=True)
        )

    async def search(
        self,
        need: str,
        count: int | None = None,
        hidden: Collection[str] = (),
        *,
        owners: CallOwners = None,
    ) -> "SearchReport":
        """Return the functions that serve a need, best first, with the reason and how they differ from their neighbors.

        Hidden functions are excluded. Requests that a function served are quoted only if they are of `owners`.

        Raises:
            UsageError: the need is empty.
        """
        return await self.finder.search(need, count, {*self._quarantined_names(), *hidden}, owners)

    async def likely(self, message: str, count: int, hidden: Collection[str] = ()) -> Sequence[str]:
        """Return the names of the functions that a message probably needs, best first, without the hidden ones."""
        return await self.finder.likely(message, count, {*self._quarantined_names(), *hidden})

    async def meant(self, message: str, count: int, hidden: Collection[str] = ()) -> Sequence[str]:
        """Return the names of the functions that a message is about, best first, without the hidden ones."""
        return await self.finder.meant(message, count, {*self._quarantined_names(), *hidden})

    def _quarantined_names(self) -> Sequence[str]:
        functions = self.registry.snapshot().functions
        return [
            name
            for name, version in self.quarantine.held
            if name in functions and functions[name].body_hash == version
        ]

    async def introspect(
        self, name: str, owners: CallOwners = None
    ) -> function_facts.FunctionDetails:
        """Return everything that is known about a function; about a foreign one, what was approved.

        Single calls are included only if they are of `owners`.
        """
        if (foreign := self.foreign().get(name)) is not None:
            return function_facts.foreign_details(
                foreign.function, foreign_functions.stub(foreign.function)
            )
        function, snapshot = self._function(name, self.foreign()), self.registry.snapshot()
        details = await function_facts.introspection(self.view(), name, owners)
        details = replace(details, pinned=await self.pins.holds(name))
        case = (
            await self.quarantine.case(function, owners)
            if details.standing == "quarantined"
            else None
        )
        coverage = await self.calls.coverage(function, snapshot)
        return await self.grants.seen(
            snapshot, replace(details, coverage=coverage, quarantine=case)
        )

    async def rate(self, name: str, *, is_good: bool, note: str = "") -> Rated:
        """Store the user's rating of a function's results. Return its standing after that.

        Raises:
            UsageError: there is no such function.
        """
        return await self.ratings.rate(
            self._function(name), self.registry.snapshot(), is_good=is_good, note=note
        )

    async def release(self, name: str) -> Released:
        """Release a function from quarantine, by the user's decision.

        Raises:
            UsageError: there is no such function, or it is not quarantined.
        """
        return await self.quarantine.release(self._function(name))

    async def pending(self, name: str) -> PendingCandidate | None:
        """Return the rejected candidate with this name and its verdict."""
        return await pending_candidate(self.store, name)

    async def all_pending(self) -> dict[str, PendingCandidate]:
        """Return every rejected candidate, by name."""
        rows = await self.store.all_pending()
        return await aside(PER_ENTRY * len(rows), candidates_of, rows)

    def value_part(self, digest: str, start: int, size: int) -> str | None:
        """Return a part of the JSON of a large value, from a byte on; None if it is not kept."""
        values = self.parts.sandbox().values
        return None if values is None else values.part(digest, start, size)

    async def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        on_progress: "OnProgress | None" = None,
        author: Author = USER,
        *,
        owners: CallOwners = None,
    ) -> "CallReport":
        """Call a function once in a worker and record the call. Return how it ended.

        `author` determines who is asked about grants, if not the approver of the workspace. If the call puts the
        function into quarantine, only failures in calls of `owners` are disclosed in full.

        Raises:
            UsageError: there is no such function, or the arguments do not fit.
        """
        if (foreign := self.foreign().get(name)) is not None:
            return await self.calls.call_foreign(foreign, arguments, on_progress)
        function, snapshot = self._function(name, self.foreign()), self.registry.snapshot()
        for tries_left in reversed(range(worker_api.TRIES)):
            did = Receipt()
            report, writes = await self.calls.made(
                function, snapshot, arguments, on_progress, author=author, did=did
            )
            try:
                await self.store.apply(writes)
                break
            except (
                StateConflict
            ):  # the call is made again, unless it has already had effects outside
                if not tries_left or not did.is_inside:
                    await self.store.apply(
                        [write for write in writes if not isinstance(write, SaveState)]
                    )
                    raise
        news = await self.quarantine.entered({name}, owners) if report.outcome in FAILURES else []
        report = await self._mark_unproven(report, function, snapshot)
        return replace(report, quarantined=news[0]) if news else report

    async def kept_states(self) -> Mapping[str, Sequence[StateRow]]:
        """Return all stored states by function, oldest first, including those that were replaced."""
        rows: dict[str, tuple[StateRow, ...]] = {}
        for row in await self.store.states():
            rows[row.function] = (*rows.get(row.function, ()), row)
        return rows

    async def restore_state(self, row: StateRow, base_row: StateRow) -> None:
        """Give a function, whose newest state is `row`, the value of the earlier state `base_row` again.

        Raises:
            StateConflict: a call changed it meanwhile.
        """
        await self.store.apply([SaveState(row.function, base_row.value, row.n, RESTORED)])

    def states(self, turn: str, *, keeps: bool = True) -> "FunctionStates":
        """Return the states of functions that a call in this turn reads, and writes if it `keeps` anything."""
        return worker_api.FunctionStates(self.store, turn, keeps=keeps)

    async def _is_mine(self, function: Function) -> bool:
        """Return whether a person wrote or changed a function here."""
        judgment = await judgment_on(self.store, function.body_hash, function.name)
        return function_facts.source_of(function, judgment, self.view()) == "human"

    async def is_by_hand(self, name: str) -> bool:
        """Return whether the newest version of a function is the user's, not one that an agent made."""
        function = self.registry.snapshot().functions.get(name)
        judgment = (
            None if function is None else await judgment_on(self.store, function.body_hash, name)
        )
        return function is not None and (judgment is None or judgment.by in ("", "human"))

    async def _mark_unproven(
        self, report: "CallReport", function: Function, snapshot: "Snapshot"
    ) -> "CallReport":
        """Return the report; if it has a value, with what is unproven about it."""
        returned = report.outcome == "returned"
        return (
            replace(report, unproven=await self.ratings.unproven(function, snapshot))
            if returned
            else report
        )

    async def trace(
        self, name: str, arguments: str | Mapping[str, Any], author: Author = USER
    ) -> "call_service.TraceReport":
        """Call a function once, without recording the call. Return each line that ran, with the locals that it changed.

        `author` is the agent whose turn the call is part of, if any.

        Raises:
            UsageError: there is no such function, or the arguments do not fit.
        """
        return await self.calls.traced(
            self._function(name), self.registry.snapshot(), arguments, author
        )

    async def test(
        self, name: str, arguments: str | Mapping[str, Any] | None = None, author: Author = USER
    ) -> function_facts.FunctionTestReport:
        """Run a function's examples, or one call of it, in separate workers. Tests are not recorded.

        Raises:
            UsageError: there is no such function, or its arguments do not fit or, for a foreign one, are missing.
        """
        if (foreign := self.foreign().get(name)) is not None:
            if author.by == "agent":  # it has tools of its own, and its turn a policy
                raise UsageError(
                    f"`{name}` is a tool of an MCP server, which cannot be tested.",
                    fix="If it is one of your functions, call it.",
                )
            if arguments is None:
                raise UsageError(
                    f"`{name}` has no examples: it is a tool of an MCP server.",
                    fix="Give its arguments.",
                )
            return function_facts.FunctionTestReport(
                name, (), await self.calls.call_foreign(foreign, arguments)
            )
        function, snapshot = self._function(name, self.foreign()), self.registry.snapshot()
        if arguments is not None:
            report, _ = await self.calls.made(function, snapshot, arguments, author=author)
            return function_facts.FunctionTestReport(
                name, (), await self._mark_unproven(report, function, snapshot)
            )
        shows_files = await self.parts.sandbox().shows_files()
        granted = await self.granting.having(function, snapshot, shows_files=shows_files)
        results = await self.parts.gate().run_examples(function, snapshot, granted)
        return function_facts.FunctionTestReport(name, tuple(results), None)

    def names(self) -> Sequence[str]:
        """Return the names of all functions, sorted."""
        return sorted(self.registry.snapshot().functions)

    def count(self) -> int:
        """Return the number of functions that can be called: the workspace's, and those of other programs."""
        return len(self.registry.snapshot().functions) + len(self.foreign())

    def path_of(self, name: str) -> tuple[Path, int]:
        """Return the file of a function and its line there."""
        function = self._function(name)
        return self._root / function.path, function.line

    def source(self, name: str) -> str:
        """Return the source of a function."""
        return self.plans.source(name)

    def rejected(self) -> tuple["Problem", ...]:
        """Return the problems that currently reject files or functions."""
        return self.registry.snapshot().rejected

    def tell_changes(
        self,
        changes: Iterable[events.FunctionsChanged],
        hidden: Collection[str] = (),
        functions: Mapping[str, Function] | None = None,
    ) -> str:
        """Return the notice to a model about functions that someone else changed, without the hidden ones.

        `functions` are those that the model can be shown; by default all of the workspace.
        """
        known = self.registry.snapshot().functions if functions is None else functions
        return change_texts.changes(changes, known, hidden)

    def changed_since(self) -> events.FunctionsChanged | None:
        """Return the changes that others made while no program ran, if any."""
        return heard(self.loader.since, self._root) if self.loader.since else None

    def on_change(self, listener: Callable[[events.FunctionsChanged], None]) -> Callable[[], None]:
        """Subscribe to changes of functions by anyone but an agent. Return a callable that ends the subscription."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _announce(self, change: "RegistryChange") -> None:
        if change.by != "agent":
            self.tell(heard(change, self._root))

    def _announce_problems(self, name: str, problems: Sequence["Problem"]) -> None:
        self.tell(events.FunctionsChanged(turn="", noted={name: change_texts.seen_later(problems)}))

    def tell(self, event: events.FunctionsChanged) -> None:
        """Notify the subscribers of a change by someone else."""
        for listener in tuple(self._listeners):
            listener(event)

    def view(self) -> function_facts.ViewContext:
        """Return the functions as they are now, with what is known of them."""
        return function_facts.ViewContext(
            self.store,
            self.registry.snapshot(),
            self._standing,
            self.parts.starters,
            self.parts.book,
            self.pins.holding,
        )

    def _function(self, name: str, others: Iterable[str] = ()) -> Function:
        functions = self.registry.snapshot().functions
        if name not in functions:
            raise function_facts.unknown_function(name, [*functions, *others])
        return functions[name]

    async def _make_judgment(self, plan: PlannedChange, author: Author) -> Judgment:
        verdict = await self.make(plan, author)
        assert isinstance(verdict, Judgment)
        return verdict

    async def make(self, plan: PlannedChange, author: Author = USER) -> Detail | None:
        """Carry out a plan outside of a turn. Return its result, which may be a verdict that refuses.

        Raises:
            WorkspaceError: it was refused without a verdict.
        """
        made = await self.finish(plan, author)
        if made.outcome == "refused" and not isinstance(made.detail, Judgment):
            raise WorkspaceError(made.text)
        return made.detail

    async def finish(self, plan: PlannedChange, author: Author = USER) -> PlannedChange:
        """Carry out a plan outside of a turn. Return the completed plan."""

        async def record(change: PlannedChange) -> None:
            await self.store.apply(change.writes)

        plan = await self.decided(plan, author)
        return await asyncio.shield(self.carry_out(plan, record, author))

    async def _catch_up(self, path: str) -> None:
        async with self._carrier.one_at_a_time:
            await self.loader.catch_up(path)
