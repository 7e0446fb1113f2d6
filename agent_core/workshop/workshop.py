"""The verbs on functions, each of them one call, for every interface."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import events
from ..cage import Cage
from ..errors import ToolwrightError, WorkspaceError
from ..gate import Candidate, Gate
from ..problem import Problem
from ..registry.function import Function
from ..registry.registry import Change, Registry
from ..requests import OnProgress
from ..settings import StandingSettings
from ..storage import FAILURES, Store
from . import telling, view
from .bulk import Bulk
from .called import Calls
from .carry_out import Carrier, Record
from .changes import Changes
from .drafts import Drafts
from .granting import Granting
from .grantor import Grantor
from .ground import Ground
from .judging import Judging
from .load import Loader
from .packing import imported_at_the_top
from .past import Past
from .plan import Author, Plan
from .quarantine import Quarantine
from .replay import Replays
from .second_look import SecondLook

DEFAULT_MODULE = "grown"


class Workshop:
    """Everything that can be done with the functions of one workspace."""

    def __init__(  # noqa: PLR0913 - the rooms that it joins
        self,
        root: Path,
        store: Store,
        registry: Registry,
        gate: Gate,
        cage: Cage,
        *,
        module_bytes: int,
        rules: StandingSettings,
        granting: Granting,
        starters: Callable[[], frozenset[str]],
    ) -> None:
        self.registry = registry
        self.second_look = SecondLook(store, registry, gate, granting.packing, self._seen)
        self.loader = Loader(
            root, store, registry, gate, granting.packing, limit_bytes=module_bytes, then=self.second_look.ask
        )
        self._root = root
        self._store = store
        self._gate = gate
        self._cage = cage
        self.granting = granting
        self.calls, self.replays = Calls(cage, granting), Replays(store, registry, cage)
        self._carrier = Carrier(root, store, registry, granting.book)
        self.bulk = Bulk(root, store, registry, gate, cage, lambda plan: self._now(plan, None))
        ground, judging = Ground(root, registry, module_bytes, self._catch_up), Judging(store, gate, granting)
        self.plans = Changes(store, ground, judging)
        self.past = Past(store, ground, judging)
        self.grants = Grantor(store, registry, self.plans, granting, self._now)
        self.quarantine = Quarantine(store, registry, rules)
        self.drafts = Drafts(store, rules)
        self._rules = rules
        self._starters = starters
        self._listeners: list[Callable[[events.FunctionsChanged], None]] = []
        registry.subscribe(self._heard)

    async def carry_out(self, plan: Plan, record: Record, author: Author) -> Plan:
        """Make a planned change, recorded by `record` in one transaction with what must be true together."""
        return await self._carrier.carry_out(plan, record, author.by)

    async def plan_create(self, name: str, code: str, module: str, reason: str, author: Author) -> Plan:
        """Plan a new function: judged, not yet written."""
        module = module.removeprefix("functions.").removesuffix(".py") or DEFAULT_MODULE
        if module == DEFAULT_MODULE and imported_at_the_top(code, self._gate.rules.packages):
            module = name  # its neighbours would have to import its packages too
        return await self.plans.create(Candidate(name, code, module, reason), author)

    async def create(
        self, name: str, code: str, module: str = DEFAULT_MODULE, *, reason: str = "", author: Author | None = None
    ) -> dict[str, Any]:
        """Have a new function judged and, if it may, admitted; its verdict."""
        plan = await self.plan_create(name, code, module, reason, author or Author())
        return (await self._now(plan, author)).detail

    async def edit(
        self, name: str, old_text: str, new_text: str, *, reason: str = "", author: Author | None = None
    ) -> dict[str, Any]:
        """Change one place of a function, or of the candidate of that name that stands refused; its verdict."""
        return await self.make(await self.plans.edit(name, old_text, new_text, reason, author or Author()), author)

    async def replace(self, name: str, code: str, *, reason: str = "", author: Author | None = None) -> dict[str, Any]:
        """Give a function new source; its verdict."""
        return await self.make(await self.plans.replace(name, code, reason, author or Author()), author)

    async def confirm(self, name: str, *, reason: str = "", author: Author | None = None) -> dict[str, Any]:
        """Admit a refused candidate with the values that its examples really gave; its verdict."""
        return await self.make(await self.plans.confirm(name, reason, author or Author()), author)

    async def rollback(self, name: str, version: str = "", *, author: Author | None = None) -> dict[str, Any]:
        """Put an earlier version of a function, or a deleted function, back; its verdict."""
        return await self.make(await self.past.rollback(name, version, author or Author()), author)

    async def add_example(self, name: str, call: str, expected: str, *, author: Author | None = None) -> dict[str, Any]:
        """Keep one more example with a function, if it holds; its verdict."""
        return await self.make(await self.past.add_example(name, call, expected, author or Author()), author)

    async def delete(self, name: str, *, author: Author | None = None) -> dict[str, Any]:
        """Take a function out of its module.

        Raises:
            WorkspaceError: others use it (they are named), or its file holds something unsaved here.
        """
        plan = await self._now(await self.plans.delete(name, author or Author()), author)
        if plan.outcome == "refused":
            raise WorkspaceError(plan.text)
        return plan.detail

    async def reload(self) -> dict[str, Any]:
        """Look at the whole folder again; what is different, mended, in doubt, and rejected."""
        with self.second_look.put_off():
            async with self._carrier.one_at_a_time:
                change = await self.loader.refresh()
        return telling.reloaded(change, self.registry.snapshot().rejected)

    async def reload_after(self, work: Awaitable[object]) -> dict[str, Any]:
        """Wait for a human's work on the files, then look at the folder; what became different since it began.

        What was saved in between may have been taken at once, and is told all the same.
        """
        heard: list[events.FunctionsChanged] = []
        quiet = self.on_change(heard.append)
        try:
            await work
            found = await self.reload()
        finally:
            quiet()
        return {**found, **telling.summed(heard)}

    async def saved(self, paths: Iterable[Path]) -> None:
        """Take files that a human, or another program, has just changed; what cannot be done is told to listeners."""
        try:
            with self.second_look.put_off():
                async with self._carrier.one_at_a_time:
                    await self.loader.refresh(paths)
        except ToolwrightError as error:
            self._tell(events.FunctionsChanged(turn="", rejected=(str(error),)))

    async def list(self, pattern: str = "", module: str = "", standing: str = "") -> dict[str, Any]:
        """The functions of the workspace and the problems of what was rejected."""
        return await view.listing(self._sight(), view.Wanted(pattern, module, standing))

    async def unused(self, pattern: str = "", module: str = "", standing: str = "") -> dict[str, Any]:
        """The same of functions that nobody called for long, which a human may want to retire."""
        return await view.listing(self._sight(), view.Wanted(pattern, module, standing, unused=True))

    async def introspect(self, name: str) -> dict[str, Any]:
        """Everything that is known about a function."""
        found = await view.introspection(self._sight(), name)
        function, snapshot = self._function(name), self.registry.snapshot()
        found["coverage"] = await self.calls.coverage(function, snapshot)
        case = await self.quarantine.case(function) if found["standing"] == "quarantined" else None
        return await self.grants.seen(
            function, snapshot, {**found, "quarantine": events.to_json(case) if case else None}
        )

    async def release(self, name: str) -> dict[str, Any]:
        """Let a function out of quarantine, by a human's decision.

        Raises:
            UsageError: there is no such function, or it is not quarantined.
        """
        return await self.quarantine.release(self._function(name))

    async def pending(self, name: str) -> dict[str, Any] | None:
        """The candidate of this name that stands refused, with its verdict."""
        return await self._store.pending(name)

    async def all_pending(self) -> dict[str, dict[str, Any]]:
        """Every candidate that stands refused, by name."""
        return await self._store.all_pending()

    async def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Call a function once in a worker, on the record; the outcome, with `quarantined` if that was one too many.

        Raises:
            UsageError: there is no such function, or its arguments do not fit.
        """
        function, snapshot = self._function(name), self.registry.snapshot()
        _, found, kept = await self.calls.made(function, snapshot, arguments, on_progress)
        await self._store.apply(kept)
        news = await self.quarantine.entered({name}) if found["outcome"] in FAILURES else []
        return {**found, **({"quarantined": events.to_json(news[0])} if news else {})}

    async def trace(self, name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Call a function once, off the record; each line that ran, with the locals that it changed.

        Raises:
            UsageError: there is no such function, or its arguments do not fit.
        """
        return await self.calls.traced(self._function(name), self.registry.snapshot(), arguments)

    async def test(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run a function's examples, or one call of it, in workers of their own: off the record, as tests are."""
        function = self._function(name)
        if arguments is not None:
            found = (await self.calls.made(function, self.registry.snapshot(), arguments))[1]
            return {"name": name, "examples": [], "outcome": found}
        snapshot = self.registry.snapshot()
        results = await self._gate.run_examples(function, snapshot, await self.granting.having(function, snapshot))
        return {"name": name, "examples": [view.example_result(result) for result in results], "outcome": None}

    def names(self) -> Sequence[str]:
        """The names of all functions, sorted."""
        return sorted(self.registry.snapshot().functions)

    def path_of(self, name: str) -> tuple[Path, int]:
        """The file of a function and its line there."""
        function = self._function(name)
        return self._root / function.path, function.line

    def source(self, name: str) -> str:
        """The exact text of a function."""
        self._function(name)
        return self.plans.source(name)

    def rejected(self) -> tuple[Problem, ...]:
        """The problems that keep files or functions out now."""
        return self.registry.snapshot().rejected

    def tell_changes(self, changes: Iterable[events.FunctionsChanged]) -> str:
        """What the model is told about functions that changed by another hand."""
        return telling.changes(changes, dict(self.registry.snapshot().functions))

    def changed_since(self) -> events.FunctionsChanged | None:
        """What other hands changed while no program looked, if anything."""
        return telling.heard(self.loader.since, self._root) if self.loader.since else None

    def on_change(self, listener: Callable[[events.FunctionsChanged], None]) -> Callable[[], None]:
        """Hear of functions that change by another hand than an agent's; the returned callable ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _heard(self, change: Change) -> None:
        if change.by != "agent":
            self._tell(telling.heard(change, self._root))

    def _seen(self, name: str, problems: Sequence[Problem]) -> None:
        self._tell(events.FunctionsChanged(turn="", noted={name: telling.seen_later(problems)}))

    def _tell(self, event: events.FunctionsChanged) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def _sight(self) -> view.Sight:
        return view.Sight(self._store, self.registry.snapshot(), self._rules, self._starters)

    def _function(self, name: str) -> Function:
        function = self.registry.snapshot().functions.get(name)
        if function is None:
            raise view.unknown_function(name, self.registry.snapshot().functions)
        return function

    async def make(self, plan: Plan, author: Author | None) -> dict[str, Any]:
        """Carry a plan out, outside of a turn; its detail."""
        return (await self._now(plan, author)).detail

    async def _now(self, plan: Plan, author: Author | None) -> Plan:
        async def record(made: Plan) -> None:
            await self._store.apply(made.writes)

        return await asyncio.shield(self.carry_out(plan, record, author or Author()))

    async def _catch_up(self, path: str) -> None:
        async with self._carrier.one_at_a_time:
            await self.loader.catch_up(path)
