"""Manual commands for grants: grant, revoke, list. A pending candidate joins the same way."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from agent_core.base.errors import UsageError, WorkspaceError
from ..gate.verdict import GRANTABLE
from agent_core.access.grants import NOTHING, Giving, Grants, Question
from agent_core.access.grants.book import who
from agent_core.access.grants.content import content_of, misleading, unshowable
from agent_core.access.grants.file import checked
from agent_core.registry.function import Function
from agent_core.registry.registry import Registry
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import FunctionStore
from .changes import ChangePlanner, require_same
from .granting import GrantService
from .plan import Author, PlannedChange
from .view import unknown_function

CarryOut = Callable[[PlannedChange, Author | None], Awaitable[PlannedChange]]


class GrantCommands:
    """The grants of one workspace, as the user manages them."""

    def __init__(
        self, store: FunctionStore, registry: Registry, changes: ChangePlanner, granting: GrantService, carry_out: CarryOut
    ) -> None:
        self._store = store
        self._registry = registry
        self._changes = changes
        self._granting = granting
        self._carry_out = carry_out

    def wanted(self, options: Mapping[str, object]) -> Grants:
        """Return the grants that the user typed.

        Raises:
            WorkspaceError: one of them cannot be granted.
        """
        typed = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items() if value}
        return self._granting.reach.inside(checked(typed))

    async def question(self, name: str, requested: Grants = NOTHING) -> Question:
        """Return the question for an approval: the typed grants, or all that the function or candidate still needs.

        Raises:
            UsageError: there is no such function, and no candidate of that name that only needs grants.
        """
        pending = await self._pending(name)
        if pending is not None:
            needs = self._granting.reach.inside(Grants.from_json(pending["verdict"]["needs"]))
            version = pending["verdict"]["version"]
            return await self._explained(Question(name, requested or needs, why=pending["reason"], version=version))
        snapshot = self._registry.snapshot()
        function = snapshot.functions.get(name)
        if function is None:
            raise unknown_function(name, snapshot.functions)
        _require_plain(function, snapshot)
        state = await self._granting.book.held(function, snapshot)
        question = await self._granting.question(function, snapshot)
        if requested or not question:
            missing = requested.without(state.now) | self._uninstalled(state.now)
            question = Question(name, missing, state.now, version=function.version)
        return await self._explained(question)

    def _uninstalled(self, now: Grants) -> Grants:
        """Return the granted packages that are not installed."""
        return Grants(packages=now.packages) if self._granting.packing.lacks(now) else NOTHING

    async def _explained(self, question: Question) -> Question:
        if why := unshowable(question.diff):
            raise WorkspaceError(why)
        by_hand = replace(question, moment="grant")
        return await self._granting.explained(by_hand, question.granted | question.missing)

    async def grant(
        self, name: str, grants: Grants, author: Author | None = None, *, version: str = ""
    ) -> dict[str, Any]:  # Any: JSON
        """Grant these to a function, or admit its pending candidate with them. Return the result, or its verdict.

        `version` is that of the question that a human said yes to: no other is given anything.

        Raises:
            WorkspaceError: nothing was granted; the message says why.
        """
        plan = await self._carry_out(await self._plan(name, grants, author or Author(), version), author)
        if plan.outcome == "refused" and "given" in plan.detail:
            raise WorkspaceError(plan.text)
        return plan.detail

    async def _plan(self, name: str, grants: Grants, author: Author, version: str) -> PlannedChange:
        entry = (await self._granting.book.entries()).get(name)
        if never := self._granting.reach.refusal(grants, name, entry.grants if entry else NOTHING):
            raise WorkspaceError(never, fix="Grant the folder or the file itself that the function needs.")
        if await self._pending(name) is not None:
            return await self._changes.granted(name, grants, author, version)
        snapshot = self._registry.snapshot()
        function = snapshot.functions.get(name)
        if function is None:
            raise unknown_function(name, snapshot.functions)
        require_same(name, version, function.version)
        _require_plain(function, snapshot)
        now = await self._granting.book.allowed(function, snapshot)
        await self._granting.packing.install(now | grants)
        giving = Giving(name, grants, content_of(function, snapshot), who(), now)
        detail = {"name": name, "given": grants.to_json(), "grants": (now | grants).to_json()}
        return PlannedChange(f"`{name}` may: {'; '.join((now | grants).sentences())}.", detail=detail, giving=giving)

    async def revoke(self, name: str, grants: Grants | None) -> dict[str, Any]:  # Any: JSON
        """Revoke these grants, or all, from a function.

        Raises:
            UsageError: it has none of them.
        """
        entry, lent = (await self._granting.book.entries()).get(name), self._granting.book.take_back(name)
        if entry is None and lent:
            return {"name": name, "revoked": lent.to_json(), "grants": {}}
        if entry is None and not await self._granting.book.problems():
            raise UsageError(f"`{name}` has no grants.", fix="Look at them: toolwright functions grants")
        had = entry.grants if entry else NOTHING
        remaining = await self._granting.book.revoke(name, grants)
        if grants is not None and remaining == had:
            raise UsageError(f"`{name}` has none of these.", fix=f"It may: {'; '.join(had.sentences())}.")
        return {"name": name, "revoked": had.without(remaining).to_json(), "grants": remaining.to_json()}

    async def seen(self, function: Function, snapshot: Snapshot, details: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of a function with its current grants instead of those missing when it was judged."""
        lacking = await self._granting.lacking(function, snapshot)
        problems = (details["verdict"] or {}).get("problems", ())
        remaining = [
            problem for problem in problems if problem["code"] not in GRANTABLE or problem["message"] in lacking
        ]
        verdict = details["verdict"] and {**details["verdict"], "problems": remaining}
        now = await self._granting.in_force(function, snapshot)
        return {**details, "verdict": verdict, "grants": now.to_json()}

    async def listing(self, name: str = "") -> dict[str, Any]:  # Any: JSON
        """Return the grants that the file proposes, those in force, and the parts of the file that are invalid."""
        snapshot, rows = self._registry.snapshot(), list[dict[str, Any]]()
        for function_name, entry in sorted((await self._granting.book.entries()).items()):
            if name in ("", function_name):
                function = snapshot.functions.get(function_name)
                now = await self._granting.in_force(function, snapshot) if function else NOTHING
                shown = {"grants": entry.grants.to_json(), "in_force": now.to_json(), "by": entry.by, "at": entry.at}
                rows.append({"name": function_name, "exists": function is not None, **shown})
        problems = [problem.to_json() for problem in await self._granting.book.problems()]
        return {"grants": rows, "problems": problems}

    async def _pending(self, name: str) -> dict[str, Any] | None:
        """Return the candidate of that name if it only needs grants."""
        pending = await self._store.pending(name)
        problems = (pending or {}).get("verdict", {}).get("problems", ())
        refused = {problem["code"] for problem in problems if problem["severity"] == "refuses"}
        return pending if refused and refused <= GRANTABLE else None


def _require_plain(function: Function, snapshot: Snapshot) -> None:
    """Raise an error if the code does not run as it reads.

    Raises:
        WorkspaceError: it does not; the message says where and how to fix it.
    """
    if why := misleading(function, snapshot):
        raise WorkspaceError(why)
