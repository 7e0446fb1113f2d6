"""Grant checks before a function is admitted or run: its needs are compared with its grants, and the user is asked.

If no one can be asked, the answer is no, with the command by which a human can grant it. While a human is asked, the
clock of a running call is stopped.
"""

import copy
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from agent_core.access.grants import (
    NOTHING,
    AccessResolver,
    ApprovalQueue,
    Approvals,
    Approver,
    Decision,
    Denied,
    FileRequests,
    Grants,
    NewGrant,
    Permit,
    Question,
    WantPath,
)
from agent_core.access.grants.approval import denial
from agent_core.access.grants.book import who
from agent_core.access.grants.content import content_of, misleading, unshowable
from agent_core.access.grants.permit import raised
from agent_core.access.grants.value import joined
from agent_core.access.packages import PackagesError
from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.registry.depends import ModuleParts, modules_of
from sandbox.wire.lines import bare_lines
from sandbox.wire.requests import standing_still

from ..gate.capability import imported_at_the_top, lacking, needs_of_text, packages_used, uses_at_import
from ..gate.draft import unified_diff
from ..gate.trial import Granted
from ..gate.uses import modules_of_workspace, needs_of, uses

if TYPE_CHECKING:
    from agent_core.access.grants.book import GrantEntry
    from agent_core.base.settings import GrantSettings
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from sandbox import Limits

    from ..gate import Verdict
    from ..gate.draft import Way
    from .package_grants import PackageGrants
    from .plan import ChangeSummary

_BY_FILE = "It has its grants by functions/grants.toml alone: no human said yes to them here (`grants.unattended`)."


@dataclass(frozen=True, slots=True)
class CandidateGrants:
    """The user's decision on a candidate: grants to store or to allow for its next call, or why it is denied."""

    grants: Grants = NOTHING
    new_grant: NewGrant | None = None
    one_call_grant: NewGrant | None = None
    denied: str = ""
    is_human: bool = False  # whether a human said no


class GrantService:
    """Service that asks for grants and decides what a call may use."""

    def __init__(
        self,
        package_grants: "PackageGrants",
        resolver: AccessResolver,
        settings: "GrantSettings",
        limits: "Limits",
        packages: tuple[str, ...],
        queue: ApprovalQueue,
    ) -> None:
        self.packages, package_grants.by_file = package_grants, self._is_by_file
        self.book = package_grants.book
        self.reach = resolver
        self.queue = queue
        self.foreign: Callable[[], frozenset[str]] = frozenset
        """The names of foreign functions, which can only be called with a grant."""
        self.prove: Callable[[Function, Snapshot], Awaitable[None]] | None = None
        """Runs the examples of a function that waited for a package."""
        self._approvals = Approvals(queue)
        self._settings = settings
        self._limits = limits
        self._packages = packages
        self.stood = 0.0  # seconds in which a human was asked

    @property
    def approver(self) -> Approver | None:
        """The approver for turns that do not have their own."""
        return self.queue.approver

    @approver.setter
    def approver(self, approver: Approver | None) -> None:
        self.queue.approver = approver

    def during(self, approvals: Approvals | None) -> "GrantService":
        """Return this service for questions during a turn; for None, outside of any turn."""
        service = copy.copy(self)
        service._approvals, service.stood = approvals or self._approvals, 0.0
        return service

    def too_little(self, grants: Grants) -> str:
        """Return why the time or memory of these grants adds nothing to what every call has, or an empty text."""
        if 0 < (grants.seconds or 0) <= self._limits.wall_s:
            return f"Every call has {self._limits.wall_s:g} s already, and a grant only adds to it."
        if 0 < ((grants.memory_mib or 0) << 20) <= self._limits.memory:
            return f"Every call has {self._limits.memory >> 20} MiB already, and a grant only adds to it."
        return ""

    async def ungranted(self, snapshot: "Snapshot") -> Granted:
        """Return the grants with which a candidate is judged before anyone is asked."""
        guarded = await self.guarded(snapshot)
        way: Way = "joining" if self.can_ask else "file" if self._settings.unattended == "file" else "none"
        return Granted(guarded=guarded, approval_mode=way)

    async def granted(self, grants: Grants, snapshot: "Snapshot", owner: str) -> Granted:
        """Return the grants and access with which a candidate is judged once it has these grants."""
        spelled = self.reach.spelled(self.packages.known(grants))
        return replace(await self.ungranted(snapshot), grants=spelled, access=self.reach.access(grants, owner))

    async def having(self, function: "Function", snapshot: "Snapshot", *, shows_files: bool) -> Granted:
        """Return the same for the examples of an existing function, which read granted files and write none.

        `shows_files` says whether a worker can read them directly.
        """
        owner = f"{function.module}.{function.name}"
        granted = await self.granted(await self.in_force(function, snapshot), snapshot, owner)
        access = replace(granted.access, readable=granted.access.paths, writable=())

        def files() -> FileRequests:
            grants = Grants(read=granted.grants.read + granted.grants.write)
            requests = FileRequests(self.reach, function.name, Permit({}, self._limits, grants, access), None)
            requests.is_shown = False
            return requests

        return replace(granted, access=access, files=None if shows_files or not access.readable else files)

    async def in_force(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return what a function may reach now: by the user's approval, or by the file if the settings allow it."""
        return await self.book.allowed(function, snapshot) | await self._by_file(function, snapshot)

    def _is_by_file(self) -> bool:
        """Return whether the file alone puts grants in force: no one can be asked, and the settings allow it."""
        return self._settings.unattended == "file" and self._approvals.queue.approver is None

    @property
    def can_ask(self) -> bool:
        """Whether there is someone to ask."""
        return self._settings.ask != "never" and self._approvals.queue.approver is not None

    async def _by_file(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return the grants that the file alone puts in force, limited to the needs; none if someone can be asked."""
        entry = (await self.book.entries()).get(function.name)
        if entry is None or not self._is_by_file() or misleading(function, snapshot):
            return NOTHING
        return entry.grants.serving(await self.needs(function, snapshot) | self._around(function, snapshot))

    def asks(self, verdict: "Verdict", summary: "ChangeSummary") -> bool:
        """Return whether the user must approve before this candidate is admitted."""
        wants_all = self._settings.ask == "always" and summary.author.by == "agent" and verdict.admitted
        return wants_all or verdict.lacks_only_grants

    async def question(self, function: "Function", snapshot: "Snapshot") -> Question | None:
        """Return a question about the missing grants of a workspace function, or None if it has all that it needs."""
        needs, around = await self.needs(function, snapshot), self._around(function, snapshot)
        question = await self.book.question(function, snapshot, needs, around)
        return question and replace(
            question, lines=_granting_lines(function, snapshot, self._known_packages(snapshot, None))
        )

    async def for_candidate(
        self, verdict: "Verdict", snapshot: "Snapshot", summary: "ChangeSummary"
    ) -> CandidateGrants:
        """Ask for a judged candidate's missing grants, unless they were given already. It would join `snapshot`."""
        after = snapshot.with_module(verdict.reading) if verdict.reading else snapshot
        function = after.functions.get(verdict.name)
        if verdict.reading is None or function is None or function.module != verdict.module:
            return CandidateGrants(denied="It has no place in its module yet, so nobody was asked.")
        mates = [mate.name for mate in after.functions.values() if mate.module == verdict.module]
        at_top = imported_at_the_top(verdict.source, self._packages)
        if why := misleading(function, after) or await self.packages.crowded(verdict.name, at_top, mates):
            return CandidateGrants(denied=why)
        state = await self.book.held(function, after)
        content = content_of(function, after)
        if summary.preset_grants is not None:
            having = state.now | summary.preset_grants
            await self.packages.install(having)
            return CandidateGrants(having, NewGrant(function.name, summary.preset_grants, content, who(), state.now))
        needs = self.packages.named(self.reach.inside(verdict.needs), state.entry)
        question = await self.book.question(function, after, needs, self._around(function, after))
        if question is None and self._settings.ask != "always":
            return CandidateGrants(state.now)
        question = question or Question(verdict.name, granted=state.now, version=function.version)
        before = snapshot.functions.get(verdict.name)
        old = snapshot.text_of(before) if before else ""
        diff = question.diff or unified_diff(old, verdict.source, function.path)
        question = replace(question, why=summary.reason, lines=verdict.asking, diff=diff, moment="join")
        decision = await self._ask(question, state.now | question.missing)
        if decision.answer == "no":
            return CandidateGrants(
                denied=denial(question, decision, by_hand=summary.author.by == "human"),
                is_human=decision.by in ("human", "earlier", "often"),
            )
        new_grant = NewGrant(function.name, question.missing, content, who(), state.now) if question.missing else None
        stored_or_once = (None, new_grant) if decision.answer == "once" else (new_grant, None)
        return CandidateGrants(state.now | question.missing, *stored_or_once)

    async def permit(self, function: "Function", snapshot: "Snapshot", caller: str = "") -> Permit | Denied:
        """Return a permit for a call, after asking for missing grants, or the reason for denial."""
        once = self.book.take_once(function, snapshot)
        needs = await self.needs(function, snapshot)
        state = await self.book.held(function, snapshot)
        if not (needs or state.entry or once):
            return Permit(snapshot.modules, self._limits)
        if why := misleading(function, snapshot):
            return Denied(why)
        by_file = await self._by_file(function, snapshot)
        now, note = state.now | once | by_file, _BY_FILE if by_file.without(state.now | once) else ""
        question = await self.book.question(function, snapshot, needs, self._around(function, snapshot))
        if question is None and self.packages.needs_install(now):
            question = Question(function.name, Grants(packages=now.packages), now, is_again=True)
        if question is not None and (not now.covers(question.missing) or self.packages.needs_install(now)):
            question = replace(
                question, lines=_granting_lines(function, snapshot, self._known_packages(snapshot, None)), caller=caller
            )
            decision = await self._ask(question, now | question.missing)
            note = self._denial(question, decision)
            if decision.answer == "no" and (decision.by != "policy" or state.entry):
                return Denied(note)
            if decision.answer == "yes":
                await self.book.give(function, snapshot, question.missing, who())
                await self.prove_after(function, snapshot, question.missing)
            if decision.answer != "no":  # its earlier grants may have been revoked while the user was asked
                now, note = await self.book.allowed(function, snapshot) | once | question.missing, ""
        return self._permit(function, snapshot, now, note)

    async def prove_after(self, function: "Function", snapshot: "Snapshot", grants: Grants) -> None:
        """Run the examples of a function that waited for a package, now that a human has granted it."""
        if self.prove is not None and grants.packages:
            with standing_still():
                await self.prove(function, snapshot)

    async def lacking(self, function: "Function", snapshot: "Snapshot") -> frozenset[str]:
        """Return the gate's messages about uses in a function's module for which it currently has no grant."""
        granted = self.reach.spelled(self.packages.known(await self.in_force(function, snapshot)))
        try:
            tree = syntax.parse(snapshot.modules[function.module].text)
            findings = lacking(uses(tree, self._packages, await self.guarded(snapshot)), granted)
        except RecursionError:
            return frozenset()
        return frozenset(finding.message for finding in findings)

    async def guarded(self, snapshot: "Snapshot") -> frozenset[str]:
        """Return the functions that can only be called with a grant."""
        return await self.book.needed_to_call(snapshot) | self.foreign()

    async def needs(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return what a workspace function needs: its text, its helpers, and what runs when its module is imported.

        Packages that it uses through other modules are included, because a call can no longer ask for these.
        """
        guarded = await self.guarded(snapshot)
        text = snapshot.modules[function.module].text
        entry = (await self.book.entries()).get(function.name)
        known = self._known_packages(snapshot, entry)
        needs = self.reach.inside(_needs(text, function.name, known, guarded))
        sources = modules_of(function.module, snapshot)
        if len(sources) > 1:
            texts = tuple((module, source.text) for module, source in sorted(sources.items()))
            needs |= packages_used((function.module, function.name), texts, known)
        return self.packages.named(needs, entry.grants) if entry else needs

    def _known_packages(self, snapshot: "Snapshot", entry: "GrantEntry | None") -> tuple[str, ...]:
        """Return the modules that imports may name without a package grant: the listed ones and the workspace's."""
        granted = entry.grants if entry else NOTHING
        return (*self._packages, *sorted(modules_of_workspace(snapshot.modules, granted)))

    async def want(self, function: str, snapshot: "Snapshot", grants: Grants, caller: str = "") -> bool:
        """Ask for a grant that a running call turned out to need. Return whether the call may continue with it."""
        return not (await self.want_path(function, snapshot, grants, "", "", caller=caller))[1]

    async def want_path(
        self, function: str, snapshot: "Snapshot", grants: Grants, folder: str, doubt: str, *, caller: str = ""
    ) -> tuple[Grants, str]:
        """Ask for a file that a running call is opening. Return the new grants, or why nothing was granted."""
        target = snapshot.functions[function]
        question = Question(function, grants, version=target.version, moment="run", caller=caller, folder=folder)
        question = replace(question, doubts=(doubt,) if doubt else ())
        if why := misleading(target, snapshot):
            self._approvals.close(question, Decision("no", why, "unavailable"))
            return NOTHING, why
        decision = await self._ask(replace(question, granted=await self.book.allowed(target, snapshot)))
        if decision.answer == "no":
            return NOTHING, self._denial(question, decision)
        given = question.wider if decision.is_wide else grants
        if decision.answer == "yes":
            await self.book.give(target, snapshot, given, who())
        return given, ""

    def _denial(self, question: Question, decision: Decision) -> str:
        """Return the refusal of a call; outside of a turn, it is phrased for the user, who made the call."""
        return denial(question, decision, by_hand=self._approvals.turn is None)

    def files_of(self, function: str, permit: Permit, want: WantPath) -> FileRequests:
        """Return the handler of a call's requests for files."""
        return FileRequests(self.reach, function, permit, want)

    def _permit(self, function: "Function", snapshot: "Snapshot", grants: Grants, note: str) -> Permit:
        if not grants:
            return Permit(snapshot.modules, self._limits, note=note)
        return Permit(
            modules_of(function.module, snapshot),
            raised(self._limits, grants),
            grants,
            self.reach.access(grants, f"{function.module}.{function.name}"),
            function.name if grants.stateful else "",
            note or self.reach.refusal(grants, function.name) or self.reach.grown(grants),
        )

    def _around(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return the needs of the modules that a function's own module imports."""
        others = [source for name, source in modules_of(function.module, snapshot).items() if name != function.module]
        known = self._known_packages(snapshot, None)
        return joined(needs_of_text(source.text, known) for source in others)

    async def agreed(self, question: Question) -> str:
        """Ask the user to approve something that needs no grant. Return why it was denied, or an empty text."""
        decision = await self._ask(question)
        return denial(question, decision) if decision.answer == "no" else ""

    async def explained(self, question: Question, grants: Grants) -> Question:
        """Return the question with what an approval installs, and with open doubts."""
        doubts = (*question.doubts, *self.reach.doubts(question.missing))
        return await self.packages.explained(replace(question, doubts=doubts), grants)

    async def _ask(self, question: Question, grants: Grants = NOTHING) -> Decision:
        """Ask the question and return the decision. An approval installs the packages in `grants`."""
        if never := self.reach.refusal(question.missing, question.function, question.granted):
            return self._approvals.close(question, Decision("no", never, "never"))
        if why := unshowable(question.diff):
            return self._approvals.close(question, Decision("no", why, "unavailable"))
        if not self.can_ask:
            return self._approvals.close(question, Decision("no", by="policy"))
        began = time.monotonic()
        with standing_still():
            try:
                decision = await self._approvals.ask(await self.explained(question, grants))
                if decision.answer != "no":
                    await self.packages.install(grants)
            except PackagesError as error:
                return self._approvals.close(question, Decision("no", str(error), "unavailable"))
            finally:
                self.stood += time.monotonic() - began
        return decision


def _granting_lines(function: "Function", snapshot: "Snapshot", listed: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Return the lines that need a grant, in a function or when its module is imported; `listed` packages need none."""
    text = snapshot.modules[function.module].text
    lines, own = bare_lines(text), range(function.line, function.end_line + 1)
    at_import = uses_at_import(text, listed)
    try:
        inside = [use for use in uses(syntax.parse(text), ()) if use.finding.line in own]
    except RecursionError:
        return ()
    needing = [*(use for use in at_import if not use.is_asked_later), *inside]
    numbers = dict.fromkeys(use.finding.line for use in needing if use.kind)
    return tuple((line, lines[line - 1].strip()) for line in numbers)


@lru_cache(maxsize=2048)
def _needs(text: str, name: str, packages: tuple[str, ...], guarded: frozenset[str]) -> Grants:
    parts = ModuleParts.of(text)
    if isinstance(parts, Problem):
        return NOTHING
    return needs_of_text(parts.part(parts.needed([name])), packages, guarded) | needs_of(uses_at_import(text, packages))
