"""Facts about functions: the listing, everything that is known about one, and what its use says of it.

Its standing is the gate's verdict combined with recorded calls of its current version: `draft` → `trial` → `trusted` by
calls that returned; `quarantined` by consecutive failures, until a human releases it or another version replaces it.

The quarantine has names, reasons, and the way out. It also knows functions that a human called bad, a note that the
model reads with them, and functions that tending archived: these are no longer shown, but can be found and called. Its
entries are (function, version), so that another version is free at once. What another process records takes effect at
the next turn. A rating is stored with the gate's verdict on the version, so another version starts without one.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_core.access.grants import NOTHING, Grants
from agent_core.base.errors import UnknownName, UsageError
from agent_core.base.events import FunctionsChanged, Quarantined
from agent_core.base.late import LateModule
from agent_core.base.matching import Wildcard, did_you_mean
from agent_core.base.offload import PER_ENTRY, aside
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, published_as, replace, to_json
from agent_core.base.settings import StandingSettings
from agent_core.base.untrusted import fence, one_line
from agent_core.registry.depends import (
    callees,
    callers,
    code_hash,
    dependents,
    positions,
    reachable,
    used_imports,
)
from agent_core.registry.function import Function
from agent_core.registry.registry import Snapshot
from agent_core.registry.source import UNREADABLE_FOLDER
from agent_core.storage import (
    FAILURES,
    CallOwners,
    ReleaseFunction,
    SaveVerdict,
    StateRow,
    Stats,
    Store,
    VersionRow,
)

from ..answers import DISPROVEN, UNPROVEN
from .call_records import FunctionStatistics, by_function, statistics
from .history import SHORT
from .judgment import Judgment, judgment_on

if TYPE_CHECKING:
    from agent_core.access.grants import GrantStore
    from agent_core.registry.registry import Registry

    from ..answers import CallReport
    from ..gate import ExampleResult, capability
else:
    capability = LateModule("agent_core.functions.gate.capability")


Standing: TypeAlias = Literal["foreign", "draft", "trial", "trusted", "quarantined"]
STANDINGS: tuple[Standing, ...] = ("draft", "trial", "trusted", "quarantined")

_LONGEST_DOUBTS = 400
_DISAGREE = frozenset({"example-disagrees", "example-raises"})
PRAISE = "the user found its results wrong before, and takes that back: they are right"
"""The sentence for the model about a function that a human first called bad and then good."""
_DAY = 86_400.0
_REASONS = 3  # that a quarantine tells


@dataclass(frozen=True, slots=True)
class Usage:
    """The calls of all functions that use a function, directly or not, and when the last one was.

    A function that is called by its plain name runs within the call of its caller, which is what the store counts.
    """

    calls: int = 0
    last: float | None = None

    @classmethod
    def through(cls, callers_of: Iterable[str], stats: Mapping[str, Sequence[Stats]]) -> "Usage":
        """Return the usage of a function through these others."""
        rows = [row for name in callers_of for row in stats.get(name, ())]
        return cls(
            sum(row.calls for row in rows), max((row.last_called for row in rows), default=None)
        )


class CallGraph:
    """Which function uses which, in one snapshot, and how often each was called."""

    def __init__(self, snapshot: Snapshot, stats: Mapping[str, Sequence[Stats]]) -> None:
        """Find the callers of all functions, and what uses each directly or through others."""
        self._stats = stats
        self._callers: dict[str, list[str]] = {}
        # Module by module: what is remembered of a text would be gone when the next of its functions has its turn.
        for function in sorted(snapshot.functions.values(), key=lambda function: function.module):
            for callee in callees(function.name, snapshot):
                self._callers.setdefault(callee, []).append(function.name)
        for names in self._callers.values():
            names.sort()
        self._names = [*snapshot.functions]
        self._order = {name: at for at, name in enumerate(self._names)}
        self._users = reachable(
            [[self._order[each] for each in self.callers(name)] for name in self._names]
        )
        self._called = sum(1 << self._order[name] for name in stats.keys() & self._order.keys())

    def callers(self, name: str) -> tuple[str, ...]:
        """Return the functions that mention a function."""
        return tuple(self._callers.get(name, ()))

    def usage(self, name: str) -> Usage:
        """Return the usage of a function through those that use it, directly or through others."""
        at = self._order[name]
        users = self._users[at] & self._called & ~(1 << at)
        return Usage.through((self._names[user] for user in positions(users)), self._stats)


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """A function in a list. `source` is the author of its version, or `starter` if it came with the workspace.

    `reach` describes what it accesses apart from its arguments; empty if it only computes. No agent changes it if it
    is `pinned`.
    """

    name: str
    module: str
    description: str
    standing: Standing
    source: str
    calls: int
    last_called: float | None
    unused_since: float | None
    reach: tuple[str, ...] = ()
    callers: tuple[str, ...] = ()
    usage: "Usage" = field(default_factory=lambda: Usage())
    pinned: bool = False

    @property
    def is_idle(self) -> bool:
        """True if neither it nor a function that uses it was ever called; a starter is not, it came with the rest."""
        return self.source not in ("starter", "foreign") and not (self.calls or self.usage.calls)


@dataclass(frozen=True, slots=True)
class FunctionListing:
    """The matching functions, the problems of rejected files, and the number of long unused functions."""

    functions: tuple[FunctionSummary, ...]
    rejected: tuple[Problem, ...]
    unused: int

    @property
    def is_whole(self) -> bool:
        """True unless a folder could not be read, so that functions may be missing or different."""
        return all(problem.code != UNREADABLE_FOLDER for problem in self.rejected)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of executable lines of a function and of those that its examples reach, and the missed lines."""

    lines: int
    reached: int
    missed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FunctionDetails:
    """Everything that is known about one function. `versions` are those of its module."""

    function: Function = field(metadata=published_as("schema"))
    source: str
    standing: Standing
    statistics: FunctionStatistics
    verdict: Judgment | None
    callers: tuple[str, ...]
    callees: tuple[str, ...]
    versions: tuple[VersionRow, ...]
    coverage: Coverage = Coverage(0, 0, ())
    quarantine: Quarantined | None = None
    grants: Grants = NOTHING
    reach: tuple[str, ...] = ()
    state: StateRow | None = None
    usage: Usage = field(default_factory=Usage)
    maker: str = ""
    """The model that made the current version, if a model did and it is known."""
    imports: tuple[str, ...] = ()
    """The imports of its module that it uses."""
    pinned: bool = False
    """Whether a person keeps agents from changing it."""

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape."""
        function = self.function
        names = ("version", "by", "turn", "model", "reason", "at")
        return {
            **{
                "name": function.name,
                "module": function.module,
                "path": function.path,
                "line": function.line,
            },
            "source": self.source,
            "imports": [*self.imports],
            "schema": function.to_json(),
            "examples": [
                {
                    "setup": [*example.setup],
                    "call": example.call,
                    "expected": example.expected or example.raises,
                    "line": example.line,
                }
                for example in function.examples
            ],
            "standing": self.standing,
            "statistics": self.statistics.to_json(),
            "verdict": to_json(self.verdict),
            "callers": [*self.callers],
            "callees": [*self.callees],
            "versions": [{name: getattr(row, name) for name in names} for row in self.versions],
            "coverage": to_json(self.coverage),
            "quarantine": to_json(self.quarantine),
            "grants": self.grants.to_json(),
            "reach": [*self.reach],
            "maker": self.maker,
            "pinned": self.pinned,
            "usage": to_json(self.usage),
            "state": self.state
            and {"value": self.state.value, "turn": self.state.turn, "at": self.state.at},
        }


@dataclass(frozen=True, slots=True)
class ViewContext:
    """The inputs of a view: the store, a snapshot, the rules of standing, the starters, and the grants in the file."""

    store: Store
    snapshot: Snapshot
    rules: StandingSettings
    starters: Callable[[], frozenset[str]]
    book: "Callable[[], GrantStore]"
    pinned: Callable[[Iterable[Function]], Awaitable[frozenset[str]]]

    async def proposed(self) -> Mapping[str, Grants]:
        """Return the grants that the file proposes, by function."""
        return {name: entry.grants for name, entry in (await self.book().entries()).items()}


@dataclass(frozen=True, slots=True)
class ViewFilter:
    """A query for functions: by shell pattern or part of the name, module, current standing, or long unused."""

    pattern: str = ""
    module: str = ""
    standing: str = ""
    unused: bool = False


async def listing(view: ViewContext, view_filter: ViewFilter) -> FunctionListing:
    """Return the matching functions, the rejected files, and the number of long unused functions."""
    stats = by_function(await view.store.call_stats())
    retirable = await unused(view, stats)
    proposed, size = await view.proposed(), len(view.snapshot.functions) * PER_ENTRY
    rows, graph = list[FunctionSummary](), await aside(size, CallGraph, view.snapshot, stats)
    matching = _matching(view.snapshot.functions.values(), view_filter)
    pinned = await view.pinned(matching)
    for function in matching:
        grants, calls = proposed.get(function.name, NOTHING), stats.get(function.name, [])
        verdict = await judgment_on(view.store, function.body_hash, function.name)
        is_unchanged = (
            verdict is not None and verdict.version == function.version
        )  # with the text of its module
        reached = verdict.reach if verdict is not None and is_unchanged and not grants else None
        row = FunctionSummary(
            function.name,
            function.module,
            function.description.split("\n", 1)[0],
            standing_now(view.snapshot, function, verdict, calls, view.rules),
            source_of(function, verdict, view),
            sum(row.calls for row in calls),
            max((row.last_called for row in calls), default=None),
            retirable.get(function.name),
            capability.reach_of_function(function, view.snapshot, grants)
            if reached is None
            else reached,
            graph.callers(function.name),
            graph.usage(function.name),
            function.name in pinned,
        )
        rows.append(row)
    rows.sort(key=lambda row: row.source == "starter")
    selected = [row for row in rows if view_filter.standing in ("", row.standing)]
    selected = [row for row in selected if not view_filter.unused or row.unused_since is not None]
    return FunctionListing(
        tuple(selected), () if view_filter.unused else view.snapshot.rejected, len(retirable)
    )


def source_of(function: Function, judgment: Judgment | None, view: ViewContext) -> str:
    """Return the author of a function's version, or `starter` if it came with the workspace."""
    by = (judgment and judgment.by) or "human"
    return "starter" if by == "human" and function.name in view.starters() else by


async def starters_in(view: ViewContext) -> frozenset[str]:
    """Return the starters of a workspace that nobody has changed."""
    names = view.starters() & view.snapshot.functions.keys()
    functions = [view.snapshot.functions[name] for name in names]
    sources = {
        one.name: source_of(one, await judgment_on(view.store, one.body_hash, one.name), view)
        for one in functions
    }
    return frozenset(name for name, source in sources.items() if source == "starter")


def foreign_rows(functions: Iterable[Function], view_filter: ViewFilter) -> list[FunctionSummary]:
    """Return the matching foreign functions, by name."""
    if view_filter.unused or view_filter.standing not in ("", "foreign"):
        return []
    reach = capability.FOREIGN_REACH
    return [
        FunctionSummary(
            one.name, one.module, one.description, "foreign", "foreign", 0, None, None, reach
        )
        for one in _matching(functions, view_filter)
    ]


KINDS: Final = ("meta", "memory")
"""The kinds of built-in functions."""


def kind_of(function: Function) -> str:
    """Return whether a built-in function is for memory (`memory`) or for anything else (`meta`)."""
    is_meta = (
        function.module.startswith("meta_functions.") and function.module != "meta_functions.memory"
    )
    return "meta" if is_meta else "memory"  # methods of a memory class are in its own module


def matches(functions: Iterable[Function], pattern: str = "", module: str = "") -> list[Function]:
    """Return the matching built-in functions, by name; their modules are `meta` and `memory`."""
    chosen = _matching(functions, ViewFilter(pattern))
    return [function for function in chosen if module in ("", kind_of(function))]


def _matching(functions: Iterable[Function], view_filter: ViewFilter) -> list[Function]:
    """Return the functions with this pattern and module, by name."""
    word, module = view_filter.pattern.lower(), view_filter.module
    wildcard = Wildcard(word)
    found: list[Function] = []
    for function in functions:
        text = f"{function.name} {function.module} {function.description}".lower()
        is_named = not word or wildcard.fits(function.name.lower()) or word in text
        if is_named and (not module or f"{function.module}.".startswith(f"{module}.")):
            found.append(function)
    return sorted(found, key=lambda function: function.name)


async def unused(view: ViewContext, stats: Mapping[str, Sequence[Stats]]) -> dict[str, float]:
    """Return the functions that may be retired, each with the time of its last call or admission."""
    if not view.rules.retire_days:
        return {}
    now, judged = await view.store.now(), await view.store.judged_at()
    always_shown = await view.store.in_own_sets()
    last_uses: dict[str, float] = {}
    for name, function in view.snapshot.functions.items():
        joined = judged.get((name, function.body_hash), now)
        called = max((row.last_called for row in stats.get(name, ())), default=joined)
        if name not in always_shown and is_unused(joined, called, now, view.rules):
            last_uses[name] = max(joined, called)
    if not last_uses:
        return {}
    left_out = view.starters().union(
        *(callees(name, view.snapshot) for name in view.snapshot.functions)
    )
    return {name: since for name, since in last_uses.items() if name not in left_out}


async def introspection(view: ViewContext, name: str, owners: CallOwners = None) -> FunctionDetails:
    """Return what the store and the registry know about one function; single calls are limited to `owners`.

    Raises:
        UsageError: there is no such function.
    """
    function = known_function(name, view.snapshot)
    verdict = await judgment_on(view.store, function.body_hash, name)
    rows = await view.store.call_stats(name)
    states = (
        await view.store.states(name) if owners is None else []
    )  # the state comes from calls of all agents
    stats = by_function(await view.store.call_stats())
    grants = (await view.proposed()).get(name, NOTHING)
    around = await asyncio.to_thread(_around, name, view.snapshot, grants)
    placed = verdict
    if placed and placed.line:  # the function may have moved since
        shift = function.line - placed.line
        places = [
            Place(function.path, at.line and at.line + shift, at.column)
            for at in (p.where for p in placed.problems)
        ]
        problems = [
            replace(problem, where=place)
            for problem, place in zip(placed.problems, places, strict=True)
        ]
        placed = replace(placed, problems=tuple(problems), line=function.line)
    versions = tuple(await view.store.module_history(function.module))
    return FunctionDetails(
        function,
        view.snapshot.text_of(function),
        standing_now(view.snapshot, function, verdict, rows, view.rules),
        await statistics(view.store, function, rows, owners),
        placed,
        around.callers,
        around.callees,
        versions,
        reach=around.reach,
        state=states[-1] if states else None,
        usage=Usage.through(around.users, stats),
        maker=next(
            (row.model for row in reversed(versions) if row.version == function.version), ""
        ),
        imports=around.imports,
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """What the other functions and the text of a module say about one."""

    callers: tuple[str, ...]
    callees: tuple[str, ...]
    users: tuple[str, ...]
    reach: tuple[str, ...]
    imports: tuple[str, ...]


def _around(name: str, snapshot: Snapshot, grants: Grants) -> _Around:
    return _Around(
        callers=tuple(callers(name, snapshot)),
        callees=tuple(callees(name, snapshot)),
        users=tuple(dependents([name], snapshot)),
        reach=capability.reach_of_function(snapshot.functions[name], snapshot, grants),
        imports=used_imports(snapshot.functions[name], snapshot),
    )


def foreign_details(function: Function, source: str) -> FunctionDetails:
    """Return what is known about a function of another program. Its calls are not counted here."""
    none = FunctionStatistics.none()
    return FunctionDetails(
        function, source, "foreign", none, None, (), (), (), reach=capability.FOREIGN_REACH
    )


@dataclass(frozen=True, slots=True)
class FunctionTestReport:
    """The results of a function's examples, or the outcome of one call."""

    name: str
    examples: tuple["ExampleResult", ...]
    outcome: "CallReport | None"

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published shape."""
        examples = [
            {
                "call": result.call,
                "expected": result.expected,
                "returned": result.returned,
                "line": result.line,
                "passed": result.agreed,
                "printed": result.printed,
                "value": result.value,
                "unrun": result.unrun,
            }
            for result in self.examples
        ]
        return {"name": self.name, "examples": examples, "outcome": to_json(self.outcome)}


def unknown_function(name: str, names: Iterable[str] = ()) -> UsageError:
    """Return the error for an unknown function name."""
    fix = did_you_mean(name, names, "To see all names: /functions, or `knapper functions list`.")
    return UnknownName(f"There is no function `{name}` in functions/.", fix=fix)


def known_function(name: str, snapshot: Snapshot) -> Function:
    """Return a function of the workspace.

    Raises:
        UsageError: there is no such function.
    """
    if name not in snapshot.functions:
        raise unknown_function(name, snapshot.functions)
    return snapshot.functions[name]


def standing_now(
    snapshot: Snapshot,
    function: Function,
    judgment: Judgment | None,
    rows: Sequence[Stats],
    standing_settings: StandingSettings,
) -> Standing:
    """Return the gate's standing (draft if never judged), adjusted by calls of the current version.

    If a change elsewhere broke its examples, or a human called it bad, it is a draft regardless of its calls.
    """
    present = next((row for row in rows if row.version == function.body_hash), None)
    if is_unfit(function, judgment, snapshot) or (judgment is not None and judgment.thumb == "bad"):
        return standing(
            "draft", replace(present, holding=0) if present else None, standing_settings
        )
    is_doubted = judgment is not None and judgment.is_doubted
    given: Standing = (
        "trial"
        if judgment and (judgment.standing == "trial" or judgment.thumb == "good")
        else "draft"
    )
    return standing(given, present, standing_settings, is_doubted=is_doubted)


def is_unfit(function: Function, judgment: Judgment | None, snapshot: Snapshot) -> bool:
    """Return whether its examples fail with the code that it currently uses."""
    return (
        judgment is not None
        and bool(judgment.unfit_with)
        and judgment.unfit_with == code_hash(function, snapshot)
    )


def standing(
    current: Standing,
    stats: Stats | None,
    standing_settings: StandingSettings,
    *,
    is_doubted: bool = False,
) -> Standing:
    """Return the current standing; `current` is the gate's, `stats` are the calls of the current version.

    A function that was admitted with open doubts needs twice as many calls, over twice as many days, to be trusted.
    """
    times = 2 if is_doubted else 1
    if stats is None:
        return current
    if is_quarantined(stats, standing_settings):
        return "quarantined"
    days = (
        0.0 if stats.worked is None or stats.since is None else (stats.worked - stats.since) / _DAY
    )
    has_held = stats.holding >= times * standing_settings.trusted_calls
    if has_held and days >= times * standing_settings.trusted_days:
        return "trusted"
    if current == "draft" and stats.holding >= standing_settings.trial_calls:
        return "trial"
    return current


def is_quarantined(stats: Stats, standing: StandingSettings) -> bool:
    """Check whether this version failed so often in a row that it is hidden from the model."""
    return 0 < standing.quarantine_failures <= stats.worst


def is_unused(joined: float, called: float | None, now: float, standing: StandingSettings) -> bool:
    """Check whether a function has been unused for so long, counted from its admission, that it may be retired."""
    since = max(joined, called or joined)
    return standing.retire_days > 0 and now - since >= standing.retire_days * _DAY


@dataclass(frozen=True, slots=True)
class Released:
    """A released function, with its module and version."""

    released: str
    module: str
    version: str


class Quarantine:
    """The quarantine, with an in-memory index that saves a query per call."""

    def __init__(self, store: Store, registry: "Registry", standing: StandingSettings) -> None:
        self.held: frozenset[tuple[str, str]] = frozenset()
        self.archived: frozenset[tuple[str, str]] = frozenset()
        self.complaints: Mapping[tuple[str, str], str] = {}
        self._store = store
        self._registry = registry
        self._standing = standing

    def holds(self, function: Function) -> bool:
        """Return whether this version of the function is in quarantine."""
        return (function.name, function.body_hash) in self.held

    def hides(self, function: Function) -> bool:
        """Return whether this version of the function is not shown: it is in quarantine, or archived."""
        return (function.name, function.body_hash) in self.held | self.archived

    async def refresh(self) -> None:
        """Reload the quarantine, at the start and before each turn."""
        self.held = await self._failing()
        rows = await self._store.tended()
        self.archived = frozenset(
            (row.function, row.after) for row in rows if row.kind == "archived" and not row.undone
        )
        self.complaints = {
            pair: complaint(note) for pair, note in (await self._store.complaints()).items()
        }

    async def entered(self, names: set[str], owners: CallOwners = None) -> list[Quarantined]:
        """Return the functions that entered quarantine with their last failed calls, described as in `case`."""
        fresh = {pair for pair in await self._failing() - self.held if pair[0] in names}
        if not fresh:
            return []
        self.held |= fresh
        functions = self._registry.snapshot().functions.values()
        return [
            await self.case(function, owners)
            for function in functions
            if (function.name, function.body_hash) in fresh
        ]

    async def case(self, function: Function, owners: CallOwners = None) -> Quarantined:
        """Return why a function is in quarantine, the last version that worked, and the user's options.

        For failures in calls that are not of `owners`, only the kind is disclosed, because messages may contain
        arguments.
        """
        name, version = function.name, function.body_hash
        calls = await self._store.recent_calls(name)
        failures = [call for call in calls if call.version == version and call.outcome in FAILURES]
        if owners is not None:
            theirs = {*await self._store.recent_calls(name, owners)}
            failures = [call if call in theirs else replace(call, message="") for call in failures]
        # The version that returned most recently; versions that are not in quarantine come first.
        worked = max(
            (row for row in await self._store.call_stats(name) if row.worked is not None),
            key=lambda row: (not is_quarantined(row, self._standing), row.worked or 0.0),
            default=None,
        )
        others = {
            judged_version for of, judged_version in await self._store.judged_at() if of == name
        } - {version}
        to = f" {worked.version[:SHORT]}" if worked and worked.version in others else ""
        back = (f"rollback {name}{to}",) if others else ()
        kinds = Counter[str]()
        for call in failures[: max(self._standing.quarantine_failures, 1)]:
            parts = filter(None, (call.error or call.outcome.replace("_", " "), call.message))
            kinds[one_line(": ".join(parts), 120)] += 1
        return Quarantined(
            turn="",
            name=name,
            version=version,
            failures=tuple(
                f"{text} ({times} ×)" if times > 1 else text
                for text, times in kinds.most_common(_REASONS)
            ),
            worked_version=worked.version if worked else "",
            worked_at=worked.worked if worked else None,
            ways=(*back, f"release {name}"),
        )

    async def refusal(
        self, function: Function, owners: CallOwners = None, *, grows: bool = True
    ) -> str:
        """Return the answer to a model that calls a function in quarantine, with the facts of `case`."""
        case = await self.case(function, owners)
        why = f"`{case.name}` was not called: it is quarantined, because it kept failing"
        return f"{why}: {_advice(case, grows=grows)}"

    async def release(self, function: Function) -> Released:
        """Release a function from quarantine by the user's decision. Its failures are counted from zero again.

        Raises:
            UsageError: it is not in quarantine.
        """
        pair = (function.name, function.body_hash)
        if pair not in await self._failing():
            raise UsageError(f"`{function.name}` is not quarantined.", fix="See the list.")
        await self._store.apply([ReleaseFunction(*pair)])
        self.held -= {pair}
        return Released(function.name, function.module, function.body_hash)

    async def _failing(self) -> frozenset[tuple[str, str]]:
        failures = self._standing.quarantine_failures
        return await self._store.failing(failures) if failures else frozenset()


def complaint(note: str) -> str:
    """Return the sentence for the model about a function that a human called bad."""
    why = f": {one_line(note, 400)}" if note else ""
    return f"the user found a result of it wrong{why}"


def quarantine_notice(quarantined: Quarantined, *, grows: bool = True) -> str:
    """Return the notice to the model that a function is hidden from it."""
    told = f"`{quarantined.name}` kept failing and is quarantined: you are not shown it any more."
    return f"{told} Last: {_advice(quarantined, grows=grows)}"


def _advice(quarantined: Quarantined, *, grows: bool) -> str:
    lately = "; ".join(fence(failure, 160) for failure in quarantined.failures)
    if not grows:
        return f"{lately}. Do without it and tell the user."
    back = "go back with rollback_function, " if len(quarantined.ways) > 1 else ""
    fix = f"Look at it with introspect_function, fix it with edit_function, {back}or do without it"
    return f"{lately}. {fix} and tell the user."


@dataclass(frozen=True, slots=True)
class Rated:
    """A function that a human rated, its new standing, and what is still unproven."""

    name: str
    thumb: str
    standing: Standing
    doubts: tuple[str, ...]


class Ratings:
    """The ratings by humans, and an index of proven functions that saves a query per call."""

    def __init__(
        self,
        store: Store,
        standing: StandingSettings,
        quarantine: Quarantine,
        tell: Callable[[FunctionsChanged], None],
    ) -> None:
        self._store = store
        self._standing = standing
        self._quarantine = quarantine
        self._tell = tell
        self._snapshot: Snapshot | None = None
        self._proven: set[str] = set()

    async def rate(
        self, function: Function, snapshot: Snapshot, *, is_good: bool, note: str = ""
    ) -> Rated:
        """Store a human's rating of a function's results; the agent is notified of a bad one and of its withdrawal."""
        verdict = await judgment_on(self._store, function.body_hash, function.name)
        names = {"name": function.name, "module": function.module, "admitted": True, "by": "human"}
        was_bad = verdict is not None and verdict.thumb == "bad"
        verdict = replace(
            verdict or Judgment.from_json(names), thumb="good" if is_good else "bad", note=note
        )
        await self._store.apply([SaveVerdict(function.body_hash, function.name, verdict.to_json())])
        self._snapshot = None
        await self._quarantine.refresh()
        if not is_good or was_bad:
            noted = PRAISE if is_good else complaint(note)
            self._tell(FunctionsChanged(turn="", by="user", noted={function.name: noted}))
        rows = await self._store.call_stats(function.name)
        now = standing_now(snapshot, function, verdict, rows, self._standing)
        return Rated(function.name, verdict.thumb, now, verdict.doubts)

    async def unproven(self, function: Function, snapshot: Snapshot) -> str:
        """Return the note to show with a result of this function; empty if the function is proven."""
        if self._snapshot is not snapshot:
            self._snapshot, self._proven = snapshot, set()
        if bad := self._quarantine.complaints.get((function.name, function.body_hash)):
            return f"[unproven: {bad}]"
        if function.name in self._proven:
            return ""
        verdict = await judgment_on(self._store, function.body_hash, function.name)
        if verdict and verdict.doubts:
            return f"[unproven: {one_line('; '.join(verdict.doubts), _LONGEST_DOUBTS)}]"
        is_proven = verdict is not None and verdict.standing == "trial"
        rows = [] if is_proven else await self._store.call_stats(function.name)
        is_draft = standing_now(snapshot, function, verdict, rows, self._standing) == "draft"
        if not is_draft and self._snapshot is snapshot:
            self._proven.add(function.name)
        if not is_draft:
            return ""
        disagrees = verdict is not None and any(
            problem.code in _DISAGREE for problem in verdict.problems
        )
        return DISPROVEN if disagrees else UNPROVEN
