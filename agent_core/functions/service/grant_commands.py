"""Commands by which the user grants, revokes and lists grants. A pending candidate can be admitted by a grant."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent_core.access.grants import NOTHING, Grants, NewGrant, Question
from agent_core.access.grants.book import checked, who
from agent_core.access.grants.content import content_of, misleading, unshowable
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.json_form import IF_SET

from ..gate.verdict import GRANTABLE
from .file_sync import require_same
from .function_facts import FunctionDetails, known_function
from .judgment import Judgment, PendingCandidate, pending_candidate
from .plan import Author, Given, PlannedChange

if TYPE_CHECKING:
    from agent_core.base.problem import Problem
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Registry, Snapshot
    from agent_core.storage import FunctionStore

    from .changes import ChangePlanner
    from .grant_service import GrantService

CarryOut = Callable[[PlannedChange, Author | None], Awaitable[PlannedChange]]


@dataclass(frozen=True, slots=True)
class Revoked:
    """The grants that a function lost, and those that it still has."""

    name: str
    revoked: Grants
    grants: Grants


@dataclass(frozen=True, slots=True)
class ProposedGrants:
    """A function's entry in the file of grants, by whom and when, and the part that is in force."""

    name: str
    exists: bool
    grants: Grants
    in_force: Grants
    by: str
    at: str
    changed: str = field(default="", metadata=IF_SET)  # why it is not in force


@dataclass(frozen=True, slots=True)
class GrantListing:
    """The entries of the file of grants, and the problems of invalid parts."""

    grants: tuple[ProposedGrants, ...]
    problems: tuple["Problem", ...]


class GrantCommands:
    """The grants of one workspace, as the user manages them."""

    def __init__(
        self,
        store: "FunctionStore",
        registry: "Registry",
        changes: "Callable[[], ChangePlanner]",
        grants: "GrantService",
        carry_out: CarryOut,
    ) -> None:
        self._store = store
        self._registry = registry
        self._changes = changes
        self._grants = grants
        self._carry_out = carry_out

    def wanted(self, options: Mapping[str, object]) -> Grants:
        """Return the grants that the user typed.

        Raises:
            WorkspaceError: one of them cannot be granted.
        """
        typed = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items() if value}
        return self._grants.reach.inside(checked(typed))

    async def question(self, name: str, grants: Grants = NOTHING) -> Question:
        """Return the question for an approval: the typed grants, or all that the function or candidate still needs.

        Raises:
            UsageError: there is no such function, and no candidate of that name that only needs grants.
            WorkspaceError: the typed time or memory is not more than every call has.
        """
        if little := self._grants.too_little(grants):
            raise WorkspaceError(
                little, fix="Give more. A limit for all functions is in knapper.toml, under [sandbox]."
            )
        pending = await self._pending(name)
        if pending is not None:
            needs, version = self._grants.reach.inside(pending.verdict.needs), pending.verdict.version
            return await self._explain(Question(name, grants or needs, why=pending.reason, version=version))
        snapshot = self._registry.snapshot()
        function = known_function(name, snapshot)
        _require_plain(function, snapshot)
        state = await self._grants.book.held(function, snapshot)
        question = await self._grants.question(function, snapshot)
        if grants or not question:
            lost = Grants(packages=state.now.packages) if self._grants.packages.needs_install(state.now) else NOTHING
            missing = grants.without(state.now) | lost
            question = Question(name, missing, state.now, version=function.version)
        return await self._explain(question)

    async def _explain(self, question: Question) -> Question:
        if why := unshowable(question.diff):
            raise WorkspaceError(why)
        by_hand = replace(question, moment="grant")
        return await self._grants.explained(by_hand, question.granted | question.missing)

    async def grant(self, name: str, grants: Grants, *, version: str = "") -> Given | Judgment:
        """Grant these to a function, or admit its pending candidate with them. Return the grants or the verdict.

        `version` is that of the question that a human approved; another version is not granted anything.

        Raises:
            WorkspaceError: nothing was granted; the message says why.
        """
        plan = await self._plan(name, grants, version)
        is_candidate = isinstance(plan.detail, Judgment)
        plan = await self._carry_out(plan, None)
        if plan.outcome == "refused" and not is_candidate:
            raise WorkspaceError(plan.text)
        assert isinstance(plan.detail, Given | Judgment)
        snapshot = self._registry.snapshot()
        if isinstance(plan.detail, Given) and name in snapshot.functions:
            await self._grants.prove_after(snapshot.functions[name], snapshot, grants)
        return plan.detail

    async def _plan(self, name: str, grants: Grants, version: str) -> PlannedChange:
        entry = (await self._grants.book.entries()).get(name)
        if never := self._grants.reach.refusal(grants, name, entry.grants if entry else NOTHING):
            raise WorkspaceError(never, fix="Grant the folder or the file itself that the function needs.")
        if await self._pending(name) is not None:
            return await self._changes().granted(name, grants, Author(), version)
        snapshot = self._registry.snapshot()
        function = known_function(name, snapshot)
        require_same(name, version, function.version)
        _require_plain(function, snapshot)
        now = await self._grants.book.allowed(function, snapshot)
        await self._grants.packages.install(now | grants)
        new_grant = NewGrant(name, grants, content_of(function, snapshot), who(), now)
        detail = Given(name, grants, now | grants)
        return PlannedChange(
            f"`{name}` may: {'; '.join((now | grants).sentences())}.", detail=detail, new_grant=new_grant
        )

    async def revoke(self, name: str, grants: Grants | None) -> Revoked:
        """Revoke these grants, or all, from a function.

        Raises:
            UsageError: it has none of them.
        """
        entry, once = (await self._grants.book.entries()).get(name), self._grants.book.take_back(name)
        if entry is None and once:
            return Revoked(name, once, NOTHING)
        if entry is None and not await self._grants.book.problems():
            known_function(name, self._registry.snapshot())
            raise UsageError(f"`{name}` has no grants.", fix="See them: knapper functions grants")
        had = entry.grants if entry else NOTHING
        remaining = await self._grants.book.revoke(name, grants)
        if grants is not None and remaining == had:
            raise UsageError(f"`{name}` has none of these.", fix=f"It may: {'; '.join(had.sentences())}.")
        return Revoked(name, had.without(remaining), remaining)

    async def seen(self, snapshot: "Snapshot", details: FunctionDetails) -> FunctionDetails:
        """Return the details of a function with its current grants and without resolved grant problems."""
        function, verdict = details.function, details.verdict
        lacking = await self._grants.lacking(function, snapshot)
        if verdict is not None:
            problems = (p for p in verdict.problems if p.code not in GRANTABLE or p.message in lacking)
            verdict = replace(verdict, problems=tuple(problems))
        return replace(details, verdict=verdict, grants=await self._grants.in_force(function, snapshot))

    async def listing(self, name: str = "") -> GrantListing:
        """Return the grants that the file proposes, those in force, and the parts of the file that are invalid."""
        snapshot, rows = self._registry.snapshot(), list[ProposedGrants]()
        for owner, entry in sorted((await self._grants.book.entries()).items()):
            if name in ("", owner):
                function = snapshot.functions.get(owner)
                now = await self._grants.in_force(function, snapshot) if function else NOTHING
                is_lapsed = function is not None and not now.covers(entry.grants)
                changed = await self._grants.book.lapsed(function, snapshot) if function and is_lapsed else ""
                row = ProposedGrants(owner, function is not None, entry.grants, now, entry.by, entry.at, changed)
                rows.append(row)
        return GrantListing(tuple(rows), tuple(await self._grants.book.problems()))

    async def _pending(self, name: str) -> PendingCandidate | None:
        """Return the candidate with this name if it only needs grants."""
        pending = await pending_candidate(self._store, name)
        return pending if pending and pending.needs_only_grants else None


def _require_plain(function: "Function", snapshot: "Snapshot") -> None:
    """Raise if the code does not run as it reads.

    Raises:
        WorkspaceError: it does not; the message says where and how to fix it.
    """
    if why := misleading(function, snapshot):
        raise WorkspaceError(why)
