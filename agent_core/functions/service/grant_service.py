"""Grants: asked for before a function is admitted or run, with packages to install, and as the user manages them.

Its needs are compared with its grants, and the user is asked. If no one can be asked, the answer is no, with the
command by which a human can grant it. While a human is asked, the clock of a running call is stopped.

The packages of a function are resolved for all of its grants together, so that they are compatible. Planned installs
are shown in the question and made after approval; unused ones are removed.
"""

import asyncio
import copy
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agent_core.access.call_exit import CallExit
from agent_core.access.grants import (
    NOTHING,
    AccessResolver,
    ApprovalQueue,
    Approvals,
    Approver,
    CallFlow,
    Decision,
    Denied,
    FileRequests,
    Grants,
    GrantStore,
    NewGrant,
    Permit,
    ProgramFiles,
    Question,
)
from agent_core.access.grants.approval import QuestionChanged, denial
from agent_core.access.grants.book import OF_AGENT, checked, who
from agent_core.access.grants.content import (
    content_of,
    covered_code,
    covered_source,
    functions_within,
    misleading,
    runnable,
    served,
    unshowable,
)
from agent_core.access.grants.permit import raised
from agent_core.access.grants.value import UNSAID, WAYS_OUT, joined, modules_of_workspace
from agent_core.access.packages import PackagesError
from agent_core.access.packages.projects import project_of
from agent_core.access.packages.resolution import NO_PIP
from agent_core.base import syntax
from agent_core.base.errors import StaleFile, UsageError, WorkspaceError
from agent_core.base.offload import aside
from agent_core.base.problem import Problem
from agent_core.base.records import IF_SET, dataclass, field, replace
from agent_core.base.seal import ELSEWHERE
from agent_core.registry.depends import ModuleParts, modules_of
from agent_core.registry.source import ModuleSource
from sandbox import Access, Job, Limits, ModuleImport, Returned
from sandbox.access import NOTHING as NO_ACCESS
from sandbox.wire.lines import bare_lines
from sandbox.wire.requests import standing_still

from ..gate.capability import (
    imported_at_the_top,
    lacking,
    needs_of_others,
    needs_of_text,
    only_computes,
    text_with,
    uses_at_import,
)
from ..gate.draft import unified_diff
from ..gate.trial import Granted, Workers
from ..gate.uses import needs_of, opened_paths, uses
from ..gate.verdict import GRANTABLE
from .agent_folders import NOTHING_WRITTEN, AgentFolders, WrittenCode
from .file_sync import own_text, require_same
from .function_facts import FunctionDetails, known_function
from .judgment import Judgment, PendingCandidate, facts_of, pending_candidate
from .plan import ChangeSummary, Given, PlannedChange

if TYPE_CHECKING:
    from agent_core.access.grants.book import GrantEntry
    from agent_core.access.packages import Environment, Resolution
    from agent_core.base.policy import Policy
    from agent_core.base.settings import GrantSettings
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Registry, Snapshot
    from agent_core.storage import CallOwners, FunctionStore

    from ..gate import Verdict
    from ..gate.draft import Way
    from ..sandbox_client import SandboxClient


_MOST_PRECEDENTS = 5  # functions that are named with what they were given
_MAY_SEND = (
    "By the folders of an agent, the call could already {}. A yes lets this send out what is there."
)
NOT_IN_A_PLAN = "This turn is a plan, which only reads: it may not {}. Put it into the proposal."
_BY_FILE = "It has its grants by functions/grants.toml alone: nobody said yes to them here (`grants.unattended`)."


@dataclass(frozen=True, slots=True)
class CandidateGrants:
    """The user's decision on a candidate: grants to store or to allow for its next call, or why it is denied."""

    grants: Grants = NOTHING
    new_grant: NewGrant | None = None
    one_call_grant: NewGrant | None = None
    denied: str = ""
    is_all: bool = (
        False  # whether the denial alone says what to do: no finding that a question would answer
    )
    agreed: tuple[str, ...] = ()  # what else the human let go
    is_asked: bool = False


class GrantService:
    """Service that asks for grants and decides what a call may use."""

    def __init__(
        self,
        package_grants: "PackageGrants",
        store: "FunctionStore",
        resolver: AccessResolver,
        settings: "GrantSettings",
        client: "SandboxClient",
        queue: ApprovalQueue,
        starters: Callable[[], Mapping[str, str]],
    ) -> None:
        """Create the service; functions of the client's foreign library can only be called with a grant."""
        self.packages, package_grants.by_file = package_grants, self._is_by_file
        self.book = package_grants.book
        if queue.policy.same_reach:
            self.book.needs_of = self.needs
        self.reach = resolver
        self.queue = queue
        self._foreign = client.foreign
        self.prove: Callable[[Function, Snapshot], Awaitable[None]] | None = None
        """Runs the examples of a function that waited for a package."""
        self._approvals = Approvals(queue)
        self._folders = AgentFolders(self.book, store, self.needs, starters)
        self._settings = settings
        self._limits = client.limits
        self._packages = client.settings.packages
        self.stood = 0.0  # seconds in which a human was asked
        self.current: Callable[[], Snapshot] | None = None
        """The functions as they are now, which a yes for a turn is about."""

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

    async def ungranted(self, snapshot: "Snapshot", agent: str = "") -> Granted:
        """Return the grants with which a candidate of an agent is judged before anyone is asked.

        Its examples may import the packages of the agent's functions; to import them itself, it needs a grant.
        """
        guarded = await self.guarded(snapshot)
        way: Way = (
            "joining" if self.can_ask else "file" if self._settings.unattended == "file" else "none"
        )
        return Granted(
            access=(await self.packages_of(agent, snapshot)).access,
            guarded=guarded,
            approval_mode=way,
        )

    async def granted(
        self, grants: Grants, snapshot: "Snapshot", owner: str, agent: str = ""
    ) -> Granted:
        """Return the grants and access with which a candidate is judged once it has these grants."""
        spelled, before = (
            self.reach.spelled(self.packages.known(grants)),
            await self.ungranted(snapshot, agent),
        )
        access = self.reach.access(grants, owner)
        access = replace(
            access,
            packages=tuple({**dict(before.access.packages), **dict(access.packages)}.items()),
        )
        return replace(before, grants=spelled, access=access)

    async def packages_of(self, agent: str, snapshot: "Snapshot") -> Granted:
        """Return the installed packages that are allowed for functions which an agent made here with all their code.

        Functions that may send something out are left out.
        """
        allowed = list[Grants]()
        for name, entry in (await self.book.entries()).items() if agent else ():
            function = (snapshot.whole or snapshot).functions.get(name)
            if function is None or not entry.grants.packages:
                continue
            packages = (await self.book.allowed(function, snapshot)).packages
            if packages and await self._folders.maker(function, snapshot) == agent:
                allowed.append(Grants(packages=packages))
        together = self.packages.together(allowed)
        return replace(together, access=replace(together.access, preload=()))

    async def having(
        self, function: "Function", snapshot: "Snapshot", *, shows_files: bool
    ) -> Granted:
        """Return the same for the examples of an existing function, which read granted files and write none.

        Examples that came after the approval, or that use code which it does not cover, read none. `shows_files` says
        whether a worker can read them directly.
        """
        owner, grants = (
            f"{function.module}.{function.name}",
            await self.in_force(function, snapshot),
        )
        granted = await self.granted(grants, snapshot, owner)
        if not granted.access.paths:  # code of a package that it has no grant for gets no files
            return await self.granted(
                grants, snapshot, owner, await self._folders.maker(function, snapshot)
            )
        if not (self._is_by_file() or await self.book.covers_examples(function, snapshot)):
            return await self.granted(replace(grants, read=(), write=()), snapshot, owner)
        access = replace(granted.access, readable=granted.access.paths, writable=())

        def files() -> FileRequests:
            grants = Grants(read=granted.grants.read + granted.grants.write)
            requests = FileRequests(
                self.reach, function.name, Permit({}, self._limits, grants, access), CallExit()
            )
            requests.is_shown = False
            return requests

        files_or_none = None if shows_files or not access.readable else files
        return replace(
            granted, access=access, files=files_or_none, served=served(function, snapshot)
        )

    async def in_force(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return what a function may reach now: by the user's approval, or by the file if the settings allow it."""
        await _read_aside(function, snapshot)
        allowed = await self.book.allowed(function, snapshot)
        return (
            allowed
            | await self._shared(function, snapshot, allowed)
            | await self._by_file(function, snapshot)
        )

    async def usable(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return what is in force and of use: what only computes opens nothing in the folders of its agent."""
        now = await self.in_force(function, snapshot)
        if not only_computes(function, snapshot):
            return now
        own = await self.book.allowed(function, snapshot) | await self._by_file(function, snapshot)
        return now.without((await self._shared(function, snapshot, own)).without(own))

    async def _shared(
        self,
        function: "Function",
        snapshot: "Snapshot",
        own_grants: Grants,
        written_code: WrittenCode = NOTHING_WRITTEN,
    ) -> Grants:
        """Return what a function has, besides its own grants, as one that an agent made.

        Packages that have to be installed for it, together with its own, are asked for.
        """
        shared = await self._folders.held(
            function, snapshot, own_grants, written_code, self._approvals.agent
        )
        return (
            replace(shared, packages=())
            if self.packages.needs_install(own_grants | shared)
            else shared
        )

    async def _missing(
        self,
        function: "Function",
        snapshot: "Snapshot",
        grants: Grants,
        shared_grants: Grants,
        written_code: WrittenCode = NOTHING_WRITTEN,
    ) -> tuple[Question | None, Grants]:
        """Return the question about what a function lacks, if anything, and what of the shared ones it has.

        The packages of a function are installed together, so those that it shares are asked for with any others.
        """
        around, question = self._around(function, snapshot), None
        for given in dict.fromkeys((shared_grants, replace(shared_grants, packages=()))):
            named = self.packages.named(grants, given)
            question = await self.book.question(
                function, snapshot, named, around, given, written_code.codes
            )
            if question is None or not (question.missing.packages and given.packages):
                break
        return (await self._with_lapsed(question, function, snapshot) if question else None), given

    async def _with_lapsed(
        self, question: Question, function: "Function", snapshot: "Snapshot"
    ) -> Question:
        """Return a question about reading with the folders that the function had until someone changed its code.

        They are asked for at once, and not one by one.
        """
        if not question.missing.read:
            return question
        lapsed, why = await self._folders.lapsed(function, snapshot)
        if not any(lapsed.gives("read", item) for item in question.missing.read if item != UNSAID):
            return question
        doubts = (*question.doubts, why)
        return replace(question.asking_also(lapsed), folder="", doubts=doubts)

    def _is_by_file(self) -> bool:
        """Return whether the file alone puts grants in force: no one can be asked, and the settings allow it."""
        return self._settings.unattended == "file" and self._approvals.queue.approver is None

    @property
    def policy(self) -> "Policy":
        """What may be asked and grown now."""
        return self._approvals.policy

    @property
    def can_ask(self) -> bool:
        """Whether there is someone to ask."""
        return self.policy.asks and self._approvals.queue.approver is not None

    @property
    def is_answered_later(self) -> bool:
        """Whether there is no one to ask now, but an answer may come by a question's id."""
        return self.policy.asks and not self.can_ask and self._approvals.turn is not None

    async def _by_file(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return the grants that the file alone puts in force, limited to the needs; none if someone can be asked."""
        entry = (await self.book.entries()).get(function.name)
        if entry is None or not self._is_by_file() or misleading(function, snapshot):
            return NOTHING
        return entry.grants.serving(
            await self.needs(function, snapshot) | self._around(function, snapshot)
        )

    def asks(self, verdict: "Verdict", summary: ChangeSummary) -> bool:
        """Return whether the user must approve before this candidate is admitted."""
        is_each = self.policy.growth == "ask" and summary.author.by == "agent"
        return (is_each and verdict.admitted) or verdict.lacks_only_grants

    async def question(self, function: "Function", snapshot: "Snapshot") -> Question | None:
        """Return a question about the missing grants of a workspace function, or None if it has all that it needs."""
        shared = await self._shared(function, snapshot, await self.book.allowed(function, snapshot))
        question, _ = await self._missing(
            function, snapshot, await self.needs(function, snapshot), shared
        )
        if question is None:
            return None
        lines = _granting_lines(function, snapshot, self._known_packages(snapshot, None))
        return await self._with_precedents(replace(question, lines=lines), function, snapshot)

    async def _with_precedents(
        self, question: Question, function: "Function", snapshot: "Snapshot"
    ) -> Question:
        """Return the question with what the user has given to functions that run within this one."""
        lines: list[str] = []
        for name in functions_within(function, snapshot):
            shared = question.missing & await self.book.allowed(
                (snapshot.whole or snapshot).functions[name], snapshot
            )
            if shared and len(lines) < _MOST_PRECEDENTS:
                what = (
                    "" if shared.covers(question.missing) else f"{'; '.join(shared.sentences())}: "
                )
                lines.append(f"{what}as `{name}`, which you allowed")
        return replace(question, precedents=tuple(lines))

    async def for_candidate(
        self,
        verdict: "Verdict",
        snapshot: "Snapshot",
        summary: ChangeSummary,
        written_code: WrittenCode = NOTHING_WRITTEN,
        doubts: tuple[str, ...] = (),
    ) -> CandidateGrants:
        """Ask for a judged candidate's missing grants, unless they were given already. It would join `snapshot`.

        `written_code` is what its author writes with it, `doubts` what else a yes lets go.
        """
        after = snapshot.with_module(verdict.reading) if verdict.reading else snapshot
        function = after.functions.get(verdict.name)
        if verdict.reading is None or function is None or function.module != verdict.module:
            return CandidateGrants(
                denied="It has no place in its module yet, so nobody was asked.", is_all=True
            )
        if why := misleading(function, after) or await self.crowded(verdict, snapshot):
            return CandidateGrants(denied=why, is_all=True)
        state = await self.book.held(function, after, written_code.codes)
        content = content_of(function, after)
        if summary.preset_grants is not None:
            having = state.now | summary.preset_grants
            await self.packages.install(having)
            return CandidateGrants(
                having, NewGrant(function.name, summary.preset_grants, content, who(), state.now)
            )
        shared = await self._shared(function, after, state.now, written_code)
        needs = self.packages.named(self.reach.inside(verdict.needs), state.entry)
        question, shared = await self._missing(function, after, needs, shared, written_code)
        if question is None and not (self.policy.growth == "ask" and summary.author.by == "agent"):
            return CandidateGrants(state.now | shared)
        if question is None:  # about the text: a change of words alone is another one, too
            about = Question.of_text(function.name, verdict.source, "join")
            question = replace(about, granted=state.now)
        diff = (
            question.diff
            or change_of(verdict, snapshot)
            or unified_diff("", verdict.source, function.path)
        )
        facts = facts_of(verdict) if self.policy.growth == "ask" else ()
        question = replace(
            question,
            why=summary.reason,
            lines=verdict.asking,
            diff=diff,
            moment="join",
            facts=facts,
        )
        question = replace(question, doubts=(*doubts, *question.doubts))
        question = await self._with_folder(question, function, after, written_code)
        question = await self._with_precedents(question, function, after)
        decision = await self._ask(question, state.now | question.missing)
        if decision.answer == "no":
            return CandidateGrants(
                denied=denial(question, decision, by_hand=summary.author.by == "human"),
                is_all=decision.by not in ("policy", "ended"),
                is_asked=True,
            )
        if self._approvals.turn is not None and question.is_new:
            self._approvals.turn.task.saw(function, after, verdict.source)
        turn = self._approvals.turn_id
        new_grant = (
            NewGrant(function.name, question.missing, content, who(), state.now, turn)
            if question.missing
            else None
        )
        if decision.is_wide and question.maker:
            new_grant = await self.book.folder_grant(question.maker, question.folder, who())
        stored_or_once = (None, new_grant) if decision.answer == "once" else (new_grant, None)
        given = CandidateGrants(state.now | shared | question.missing, *stored_or_once)
        return replace(given, agreed=doubts, is_asked=True)

    async def crowded(self, verdict: "Verdict", snapshot: "Snapshot") -> str:
        """Return why a candidate cannot share its module with those that would then import its packages; or ""."""
        if verdict.reading is None:
            return ""
        after = snapshot.with_module(verdict.reading)
        text = verdict.reading.source.text
        crowd = await aside(len(text), self._with_imports_of, verdict, after)
        return await self.packages.crowded(verdict.name, crowd)

    def _with_imports_of(
        self, verdict: "Verdict", new_snapshot: "Snapshot"
    ) -> Mapping[str, frozenset[str]]:
        """Return the other functions of a candidate's module, with the packages of its imports that run for them, too.

        They run for all if nothing uses what they bind, and otherwise for those that use it.
        """
        projects = imported_at_the_top(verdict.source, self._packages)
        if not projects:
            return {}
        text = new_snapshot.modules[verdict.module].text
        mates = (
            each.name for each in new_snapshot.functions.values() if each.module == verdict.module
        )
        return {
            mate: projects
            & imported_at_the_top(text_with((verdict.module, mate), text), self._packages)
            for mate in mates
            if mate != verdict.name
        }

    async def permit(
        self,
        function: "Function",
        snapshot: "Snapshot",
        caller: str = "",
        flow: CallFlow | None = None,
        arguments: Mapping[str, Any] | None = None,  # Any: values that can be sent
    ) -> Permit | Denied:
        """Return a permit for a call, after asking for missing grants, or the reason for denial.

        `flow` is that of the function or program that makes the call. A question about a package also names the files
        that the call will open by its `arguments`.
        """
        flow = flow or CallFlow()
        needs = await self.needs(function, snapshot)  # and its modules are read beside the loop
        once = self.book.take_once(function, snapshot, self._approvals.turn_id)
        state = await self.book.held(function, snapshot)
        if not (needs or state.entry or once) and only_computes(function, snapshot):
            code = runnable(function, snapshot.modules)
            return Permit(code, self._limits, only_reads=self.policy.only_reads)
        if why := misleading(function, snapshot):
            return Denied(why)
        by_file = await self._by_file(function, snapshot)
        shared = await self._shared(function, snapshot, state.now | once | by_file)
        question, shared = await self._missing(function, snapshot, needs, shared)
        own = state.now | once | by_file
        question = await self._with_what_was_read(question, function, snapshot, own, flow, caller)
        now, note = own | shared, _BY_FILE if by_file.without(state.now | once) else ""
        given = NOTHING
        if question is None and self.packages.needs_install(now):
            question = Question.of(function, snapshot, Grants(packages=now.packages), now)
        if question is not None and (
            not now.covers(question.missing) or self.packages.needs_install(now)
        ):
            question = replace(
                question,
                lines=_granting_lines(function, snapshot, self._known_packages(snapshot, None)),
                caller=caller,
            )
            question, files = await self._with_files(question, function, snapshot, arguments)
            question = await self._with_folder(question, function, snapshot)
            question = await self._with_precedents(question, function, snapshot)
            about = (function, snapshot)
            decision = await self._ask(question, now | question.missing, about)
            note = self._denial(question, decision)
            if decision.answer == "no" and (decision.by != "policy" or state.entry or once):
                return Denied(note)
            if decision.answer == "yes":
                await self._give(question, decision, function, snapshot)
                await self.prove_after(function, snapshot, question.missing)
            if (
                decision.answer != "no"
            ):  # its earlier grants may have been revoked while the user was asked
                allowed = await self.book.allowed(function, snapshot)
                shared = await self._shared(function, snapshot, allowed | once | question.missing)
                own, note = allowed | once | question.missing, ""
                now = own | shared
                given = files
                flow.is_out |= _is_way_out(question.missing)
        return replace(
            self._permit(function, snapshot, now.without(given), note),
            given=given,
            shared=Grants(read=shared.read).without(own),
        )

    async def _with_files(
        self,
        question: Question,
        function: "Function",
        snapshot: "Snapshot",
        arguments: Mapping[str, Any] | None,  # Any: values that can be sent
    ) -> tuple[Question, Grants]:
        """Return a question about a package with the files that the call will open, and the grants of these.

        A call can only ask for its files once it has its packages, which would be a second question. One with a secret
        asks apart: a path may contain the secret. Where nobody can be asked, nothing is looked for: the answer would
        tell which files there are.
        """
        missing = question.missing
        before = question.granted
        if not self.can_ask or arguments is None:
            return question, NOTHING
        if not missing.packages or _may_send(missing) or before.secrets:
            return question, NOTHING
        files = FileRequests(
            self.reach, function.name, Permit({}, self._limits, before), CallExit()
        )
        source = snapshot.modules[function.module].text
        files.opens = lambda: opened_paths(arguments, function.name, source)
        found = (await asyncio.to_thread(files.with_what_follows, missing))[0].without(missing)
        creates = (*question.creates, *self.reach.absent(found))
        return replace(question.asking_also(found), creates=creates), found

    async def _with_what_was_read(
        self,
        question: Question | None,
        function: "Function",
        snapshot: "Snapshot",
        own_grants: Grants,
        flow: CallFlow,
        caller: str,
    ) -> Question | None:
        """Return the question before a call that may send, with what its caller may have read by an agent's folders.

        A function that is a `caller` has a grant to call what has grants. A program needs none, so what it calls may
        have been given a host meanwhile.
        """
        read = flow.read.without(own_grants)
        if not read:
            return question
        asks_to_send = question is not None and _may_send(question.missing)
        if not asks_to_send and (
            caller or not await self._folders.sends(function, snapshot, own_grants)
        ):
            return question
        question = question or Question.of(function, snapshot, held_grants=own_grants)
        doubts = (*question.doubts, _MAY_SEND.format("; ".join(read.sentences())))
        return replace(question.asking_also(read), doubts=doubts)

    async def prove_after(self, function: "Function", snapshot: "Snapshot", grants: Grants) -> None:
        """Run the examples of a function that waited for a package, now that a human has granted it."""
        if self.prove is not None and grants.packages:
            with standing_still():
                await self.prove(function, snapshot)

    async def lacking(self, function: "Function", snapshot: "Snapshot") -> frozenset[str]:
        """Return the gate's messages about uses in a function's module for which it currently has no grant."""
        granted = self.reach.spelled(self.packages.known(await self.in_force(function, snapshot)))
        try:
            text = text_with(
                (function.module, function.name), snapshot.modules[function.module].text
            )
            tree = syntax.parse(text)
            findings = lacking(uses(tree, self._packages, await self.guarded(snapshot)), granted)
        except RecursionError:
            return frozenset()
        return frozenset(finding.message for finding in findings)

    async def _with_folder(
        self,
        question: Question,
        function: "Function",
        snapshot: "Snapshot",
        written_code: WrittenCode = NOTHING_WRITTEN,
    ) -> Question:
        """Return a question about one folder to read with the agent to whose functions all it may be granted."""
        if not (folder := self._folder_to_read(question)):
            return question
        maker = await self._folders.maker(
            function, snapshot, written_code, caller_agent=self._approvals.agent
        )
        return replace(question, folder=folder, maker=maker) if maker else question

    def _folder_to_read(self, question: Question) -> str:
        """Return the one folder that a question is about, if it is about reading alone and can be granted; else ""."""
        folders = {_folder_of(item) for item in question.missing.read}
        if question.missing != Grants(read=question.missing.read) or len(folders) != 1:
            return ""
        (folder,) = folders
        return "" if self.reach.refusal(Grants(read=(folder,)), question.function) else folder

    async def _give(
        self, question: Question, decision: Decision, function: "Function", snapshot: "Snapshot"
    ) -> Grants:
        """Store a permanent yes, and return the grants that it gives."""
        if decision.is_wide and question.maker:
            await self.book.give_folder(question.maker, question.folder, who())
        else:
            await self.book.give(function, snapshot, given_by(question, decision), who())
        return given_by(question, decision)

    async def guarded(self, snapshot: "Snapshot") -> frozenset[str]:
        """Return the functions that can only be called with a grant."""
        foreign = self._foreign.functions().keys() if self._foreign else ()
        return (await self.book.needed_to_call(snapshot)).union(
            foreign, await self._folders.guarded(snapshot)
        )

    async def needs(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return what a workspace function needs: its text, its helpers, and what runs when its module is imported.

        Those of other modules, too: what it calls by its name runs in its process, with its grants.
        """
        await _read_aside(function, snapshot)
        guarded = await self.guarded(snapshot)
        text = text_with((function.module, function.name), snapshot.modules[function.module].text)
        entry = (await self.book.entries()).get(function.name)
        known = self._known_packages(snapshot, entry)
        needs = self.reach.inside(_needs(text, function.name, known, guarded))
        sources = modules_of(function.module, snapshot)
        if len(sources) > 1:
            texts = tuple((module, source.text) for module, source in sorted(sources.items()))
            others = needs_of_others((function.module, function.name), texts, known, guarded)
            needs |= self.reach.inside(others)
        return self.packages.named(needs, entry.grants) if entry else needs

    def _known_packages(self, snapshot: "Snapshot", entry: "GrantEntry | None") -> tuple[str, ...]:
        """Return the modules that imports may name without a package grant: the listed ones and the workspace's."""
        granted = entry.grants if entry else NOTHING
        return (*self._packages, *sorted(modules_of_workspace(snapshot, granted)))

    async def want(
        self,
        function: str,
        snapshot: "Snapshot",
        grants: Grants,
        caller: str = "",
        flow: CallFlow | None = None,
    ) -> bool:
        """Ask for a grant that a running call turned out to need. Return whether the call may continue with it."""
        return not (
            await self.want_path(function, snapshot, grants, "", "", caller=caller, flow=flow)
        )[1]

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
        """Ask for what a running call needs, such as a file. Return the new grants, or why nothing was granted.

        A way out is asked for with what the call may have read by the folders of an agent, and a yes gives both. A call
        that has one is given no such folder.
        """
        target, flow = snapshot.functions[function], flow or CallFlow()
        allowed = await self.book.allowed(target, snapshot)
        shared = await self._shared(target, snapshot, allowed)
        read = NOTHING
        if _may_send(grants):
            read = (flow.read | flow.received | Grants(read=shared.read)).without(allowed | grants)
        sent = (read | Grants(read=grants.read)).sentences() if _may_send(grants) else []
        doubts = tuple(filter(None, (doubt, _MAY_SEND.format("; ".join(sent)) if sent else "")))
        question = Question.of(target, snapshot, grants | read)
        creates = self.reach.absent(question.missing)
        question = replace(
            question, moment="run", caller=caller, creates=creates, folder=folder, doubts=doubts
        )
        if why := misleading(target, snapshot):
            await self._approvals.close(question, Decision("no", why, "unavailable"))
            return NOTHING, why
        if not flow.is_out and await self._reads_own_code(target, snapshot, question.missing):
            flow.read |= question.missing
            return question.missing, ""
        if not _may_send(grants):
            question = await self._with_lapsed(question, target, snapshot)
        if not flow.is_out:
            question = await self._with_folder(question, target, snapshot)
        question = await self._with_precedents(question, target, snapshot)
        question = replace(question, granted=allowed if read else allowed | shared)
        decision = await self._ask(question, about=(target, snapshot))
        if decision.answer == "no":
            return NOTHING, self._denial(question, decision)
        flow.is_out |= any(grants.items(kind) for kind in WAYS_OUT)
        if decision.answer == "yes":
            given = await self._give(question, decision, target, snapshot)
            if decision.is_wide and question.maker:
                flow.read |= given
            return given, ""
        return question.missing, ""

    async def _reads_own_code(
        self, function: "Function", snapshot: "Snapshot", grants: Grants
    ) -> bool:
        """Return whether an unchanged starter reads code that the agent which calls it wrote."""
        agent = self._approvals.agent
        if not await self._folders.wrote_files(agent, grants, snapshot):
            return False
        is_agents = await self._folders.maker(function, snapshot, caller_agent=agent) == agent
        return is_agents and not await self._folders.maker(function, snapshot)

    async def want_path_of_text(
        self, question: Question, snapshot: "Snapshot"
    ) -> tuple[Grants, str, bool]:
        """Ask for a path that a program is opening; a yes is for its text. Return the grants, or why there are none.

        Also return whether they are for the folder. Code that its agent wrote is not asked for. The reason is empty if
        nobody can be asked.
        """
        if await self._folders.wrote_files(question.maker, question.missing, snapshot):
            return question.missing, "", False
        if question.maker:
            folder = self._folder_to_read(question)
            question = replace(
                question, folder=folder or question.folder, maker=question.maker if folder else ""
            )
        decision = await self._ask(question)
        if decision.answer != "no":
            self._saw_program(question)
        if decision.answer == "no":
            return NOTHING, "" if decision.by == "policy" else denial(question, decision), False
        if decision.is_wide and question.maker:
            await self.book.give_folder(question.maker, question.folder, who())
        return given_by(question, decision), "", decision.is_wide

    async def is_programs_maker(
        self, agent: str, code: str, callees: Iterable["Function"], snapshot: "Snapshot"
    ) -> bool:
        """Return whether a program that calls these functions has the folders of its agent."""
        return await self._folders.is_of(agent, code, callees, snapshot)

    async def of_program(self, agent: str, snapshot: "Snapshot") -> Grants:
        """Return what the programs of an agent may read without a question."""
        return await self._folders.of_program(agent, snapshot)

    def files_of_program(
        self,
        exit: CallExit,
        instead: str,
        grants: Grants = NOTHING,
        flow: CallFlow | None = None,
        turn_grants: Grants = NOTHING,
    ) -> ProgramFiles:
        """Return the handler of a program's requests for files; `instead` says what it may call for them."""
        permit = Permit({}, self._limits, grants)
        return ProgramFiles(self.reach, permit, exit, instead, flow or CallFlow(), turn_grants)

    def _denial(self, question: Question, decision: Decision) -> str:
        """Return the refusal of a call; outside of a turn, it is phrased for the user, who made the call."""
        return denial(question, decision, by_hand=self._approvals.turn is None)

    def files_of(self, function: str, permit: Permit, exit: CallExit) -> FileRequests:
        """Return the handler of a call's requests for files."""
        return FileRequests(self.reach, function, permit, exit)

    def _permit(
        self, function: "Function", snapshot: "Snapshot", grants: Grants, note: str
    ) -> Permit:
        modules = served(function, snapshot)
        only_reads = self.policy.only_reads
        if only_reads:
            foreign = self._foreign.functions().keys() if self._foreign else ()
            callable_here = tuple(name for name in grants.functions if name not in foreign)
            grants = replace(grants.for_reading(), functions=callable_here)
        if not grants:
            return Permit(modules, self._limits, note=note, is_bound=True, only_reads=only_reads)
        return Permit(
            modules,
            raised(self._limits, grants),
            grants,
            self.reach.access(grants, f"{function.module}.{function.name}"),
            note or self.reach.refusal(grants, function.name) or self.reach.grown(grants),
            is_bound=True,
            only_reads=only_reads,
        )

    def _around(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return the needs of the other modules that are imported with a function."""
        modules = runnable(function, modules_of(function.module, snapshot))
        others = [modules[name] for name in served(function, snapshot) if name != function.module]
        known = self._known_packages(snapshot, None)
        return joined(needs_of_text(source.text, known) for source in others)

    async def agreed(self, question: Question) -> str:
        """Ask the user to approve something that needs no grant. Return why it was denied, or an empty text."""
        decision = await self._ask(question)
        if decision.answer != "no" and question.moment == "program":
            self._saw_program(question)
        return denial(question, decision) if decision.answer == "no" else ""

    def _saw_program(self, question: Question) -> None:
        """Record that a person saw the whole program of a question and said yes, for the rest of the turn."""
        if self._approvals.turn is not None and self.current is not None:
            self._approvals.turn.task.saw_program(question.lines, self.current())

    async def explained(self, question: Question, grants: Grants) -> Question:
        """Return the question with what an approval installs, what is not set, and with open doubts."""
        unset = tuple(
            name
            for name in question.missing.secrets
            if name != UNSAID and not self.reach.secrets.is_set(name)
        )
        how = "is not set. At a terminal of this machine, a yes asks for its value. Otherwise type:"
        not_set = (f"{name} {how} knapper secrets set {name}" for name in unset)
        doubts = (*not_set, *self.reach.doubts(question.missing))
        whole = replace(question, doubts=(*question.doubts, *doubts), unset=unset)
        return await self.packages.explained(whole, grants)

    async def _ask(
        self,
        question: Question,
        grants: Grants = NOTHING,
        about: "tuple[Function, Snapshot] | None" = None,
    ) -> Decision:
        """Ask the question and return the decision. An approval installs the packages in `grants`.

        What it is `about` may have been answered with a yes to all that the turn is expected to need. That is offered
        with the first question: before it, if a yes to the offer answers it, otherwise as a part of it.
        """
        if refused := await self._refused(question):
            return await self._approvals.close(question, refused)
        if self.policy.mode == "task" and await self._is_of_task(question, about):
            try:
                await self.packages.install(grants)
            except PackagesError as error:
                denied = Decision("no", str(error), "unavailable")
                return await self._approvals.close(question, denied)
            return Decision("once", by="task")
        due = await self._due()
        decision = await self._asked(_with_expected(question, due), grants)
        if due and decision.answer != "no":
            self._answered(due, is_yes=True)
        if self.policy.only_reads and decision.answer == "yes":
            return replace(decision, answer="once")  # a plan keeps nothing
        return decision

    async def _refused(self, question: Question) -> Decision | None:
        """Return the no to what nobody can allow, what a person has refused for good, and what a plan may not do.

        No other answer comes before it: neither a yes to a task nor one that is given now.
        """
        if never := self.reach.refusal(question.missing, question.function, question.granted):
            return Decision("no", never, "never")
        if await self.book.denied(question.function) & question.missing:
            return Decision("no", by="always")
        if why := unshowable(question.diff):
            return Decision("no", why, "unavailable")
        changes = question.missing.without(_reading(question.missing))
        if self.policy.only_reads and changes:
            why = NOT_IN_A_PLAN.format("; ".join(changes.sentences()))
            return Decision("no", why, "unavailable")
        return None

    async def _is_of_task(
        self, question: Question, about: "tuple[Function, Snapshot] | None"
    ) -> bool:
        """Return whether a yes to what the turn is expected to need answers a question; it is offered if it would."""
        turn = self._approvals.turn
        if turn is None or self.current is None:
            return False
        if about is None:
            is_programs = question.moment in ("program", "open")
            return is_programs and turn.task.covers_program(
                question.missing, question.lines, self.current()
            )
        function, _ = about
        due = await self._due()
        is_there = content_of(function, self.current()).digest == question.version
        if due and is_there and (turn.task.given | due).covers(question.missing):
            text = json.dumps([turn.id, due.to_json()])
            offer = Question.of_text(turn.agent, text, "task", due)
            decision = await self._asked(replace(offer, why=turn.task.why), NOTHING)
            self._answered(due, is_yes=decision.answer != "no")
        return turn.task.covers(question.missing, function, question.version)

    async def _due(self) -> Grants:
        """Return what the turn is expected to need and nobody was offered yet, if there is anyone to ask."""
        turn = self._approvals.turn
        if self.policy.mode != "task" or not self.can_ask or turn is None or self.current is None:
            return NOTHING
        due = self._grantable(turn.task.due)
        return due.without(await self.of_program(turn.agent, self.current())) if due else NOTHING

    def _answered(self, due_grants: Grants, *, is_yes: bool) -> None:
        """Record the answer to the offer of what the turn is expected to need."""
        if self._approvals.turn is not None and self.current is not None:
            self._approvals.turn.task.answered(due_grants, self.current(), is_yes=is_yes)

    def _grantable(self, grants: Grants) -> Grants:
        """Return those that a yes can give; the others are asked for, and refused, as they come up."""
        items = {
            kind: [
                item
                for item in grants.items(kind)
                if not self.reach.refusal(Grants.from_json({kind: [item]}), "")
            ]
            for kind in grants.to_json()
        }
        return Grants.from_json(items)

    async def _asked(self, question: Question, grants: Grants) -> Decision:
        """Ask the question, if there is anyone to ask."""
        if not self.can_ask and (not self.is_answered_later or grants.packages):
            return await self._approvals.close(question, Decision("no", by="policy"))
        if not self.can_ask:  # an answer from before a revocation is for another occasion
            occasion = json.dumps(self.book.revocations(question.function, question.maker))
            question = replace(question, occasion=occasion)
        began = time.monotonic()
        with standing_still():
            try:
                decision = await self._approvals.ask(await self.explained(question, grants))
                if decision.is_lasting and question.missing:
                    await self.book.deny(question.function, question.missing)
                if decision.answer != "no":
                    await self.packages.install(grants)
            except PackagesError as error:
                return await self._approvals.close(
                    question, Decision("no", str(error), "unavailable")
                )
            finally:
                self.stood += time.monotonic() - began
        return decision


def change_of(verdict: "Verdict", snapshot: "Snapshot") -> str:
    """Return the diff of a candidate to the function that it would replace, and to its module; empty if it is new."""
    before = snapshot.functions.get(verdict.name)
    if before is None or not verdict.source:
        return ""
    if verdict.reading is None or verdict.module != before.module:
        return unified_diff(own_text(verdict.name, snapshot) or "", verdict.source, before.path)
    return unified_diff(
        snapshot.modules[before.module].text, verdict.reading.source.text, before.path
    )


def _with_expected(question: Question, due_grants: Grants) -> Question:
    """Return a question that also offers, for this turn, what else is expected."""
    more = due_grants.without(question.missing)
    if not more:
        return question
    told = f"With a yes, this turn may also: {'; '.join(more.sentences())}."
    return replace(question, doubts=(*question.doubts, told))


def given_by(question: Question, decision: Decision) -> Grants:
    """Return the grants that a yes gives to the function."""
    return question.wider if decision.is_wide else question.missing


async def _read_aside(function: "Function", snapshot: "Snapshot") -> None:
    """Read the modules of a function beside the event loop; what asks about their texts later finds them read."""
    sources = modules_of(function.module, snapshot).values()
    await aside(sum(len(source.text) for source in sources), _read, function, snapshot)


def _read(function: "Function", snapshot: "Snapshot") -> None:
    covered_code(function, snapshot)
    only_computes(function, snapshot)
    runnable(function, snapshot.modules)


def _reading(grants: Grants) -> Grants:
    """Return the part of grants that a plan may ask for: what changes nothing, here or elsewhere."""
    return replace(grants, write=(), memory=(), packages=())


def _is_way_out(grants: Grants) -> bool:
    return bool(grants.network or grants.secrets)


def _may_send(grants: Grants) -> bool:
    """Return whether a call that gets these may send something out: also to who reads a memory block."""
    return bool(grants.memory) or any(grants.items(kind) for kind in WAYS_OUT)


def _folder_of(item: str) -> str:
    """Return the folder that a path names, or the one around a file; "" if that cannot be granted by a name."""
    return (
        item if item.endswith("/") else f"{folder}/" if (folder := item.rpartition("/")[0]) else ""
    )


def _granting_lines(
    function: "Function", snapshot: "Snapshot", listed: tuple[str, ...]
) -> tuple[tuple[int, str], ...]:
    """Return the lines that need a grant, in a function or when its module is imported; `listed` packages need none."""
    text = text_with((function.module, function.name), snapshot.modules[function.module].text)
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
    return needs_of_text(parts.part(parts.needed([name])), packages, guarded) | needs_of(
        uses_at_import(text, packages)
    )


_PATIENT_S = 60
_TRIAL = (
    "import sys\n\nassert '{name}' in sys.modules, 'it is not imported ahead'\n\nimport {name}\n"
)


@dataclass(frozen=True, slots=True)
class PackageSet:
    """Requirements that are installed together: their functions, pins, preloaded packages, and size in bytes."""

    requirements: tuple[str, ...]
    functions: tuple[str, ...]
    installed: bool
    pins: tuple[str, ...]
    ahead: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class PackageListing:
    """The packages of a workspace, and the problem of the lock file, if any."""

    packages: tuple[PackageSet, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The folders of packages that were removed."""

    removed: tuple[str, ...]


class PackageGrants:
    """The packages that the grants of one workspace need."""

    def __init__(self, environment: "Environment", grant_store: GrantStore) -> None:
        self.environment = environment
        self.book = grant_store
        self.by_file: Callable[[], bool] = lambda: False  # whether the file alone decides
        self._said: dict[tuple[str, ...], Resolution] = {}

    def needs_install(self, grants: Grants) -> bool:
        """Return whether packages of these grants are not installed, as after a pull or with another Python."""
        return bool(grants.packages) and self.environment.find(grants.packages) is None

    async def explained(self, question: Question, grants: Grants) -> Question:
        """Return the question with the planned installs for everything that the function would then have.

        Raises:
            PackagesError: the packages cannot be resolved.
        """
        if not grants.packages or (
            self.environment.find(grants.packages) and not question.missing.packages
        ):
            return question
        return replace(question, installs=(await self._resolve_once(grants.packages)).sentences())

    async def install(self, grants: Grants) -> None:
        """Install the planned packages after an approval.

        Raises:
            PackagesError: they cannot be installed.
        """
        if self.needs_install(grants):
            resolution = await self._resolve_once(grants.packages)
            try:
                await self.environment.install(resolution)
            finally:
                self._said.pop(grants.packages, None)

    def named(self, grants: Grants, held_grants: Grants) -> Grants:
        """Return needs with import names replaced by the granted projects that provide them."""
        if not grants.packages or not held_grants.packages:
            return grants
        projects = {
            project_of(name): owner
            for name, owner in self.environment.projects(held_grants.packages)
        }
        return replace(
            grants, packages=tuple(projects.get(package, package) for package in grants.packages)
        )

    def known(self, grants: Grants) -> Grants:
        """Return grants with the import names of the granted projects added, by which a text may need them."""
        names = tuple(project_of(name) for name, _ in self.environment.projects(grants.packages))
        return replace(grants, packages=grants.packages + names)

    async def of_text(self, text: str) -> Granted:
        """Return the grants with which a saved file is judged: the proposed entries of the functions that it names.

        Time and memory are limited to what a human has approved once: the file alone cannot make an example run longer,
        unless the settings let the file decide.
        """
        entries = await self.book.entries()
        agreed = (
            {name: entry.grants for name, entry in entries.items()}
            if self.by_file()
            else await self.book.agreed()
        )
        named = {
            name: agreed.get(name, NOTHING)
            for name in entries
            if name in text and not name.startswith(OF_AGENT)
        }
        return self.together(
            replace(entries[name].grants, seconds=had.seconds, memory_mib=had.memory_mib)
            for name, had in named.items()
        )

    def together(self, entries: Iterable[Grants]) -> Granted:
        """Return these entries combined, with access to those of their packages that are installed."""
        all_grants = tuple(entries)
        names, ahead = dict[str, str](), tuple[str, ...]()
        for grants in all_grants:
            seen, ahead = (
                self.environment.folders(grants.packages) if grants.packages else ((), ahead)
            )
            names = {**dict(seen), **names}
        access = replace(
            Access(),
            packages=tuple(names.items()),
            preload=ahead if set(ahead) <= set(names) else (),
        )
        return Granted(joined(map(self.known, all_grants)), access if names else NO_ACCESS)

    async def crowded(self, name: str, crowd: Mapping[str, frozenset[str]]) -> str:
        """Return why a function cannot share its module: others may not import what runs for them, too."""
        entries = await self.book.entries()
        others = [
            (member, projects)
            for member, projects in crowd.items()
            if not (entries[member].grants if member in entries else NOTHING).covers(
                Grants(packages=tuple(projects))
            )
        ]
        if not others:
            return ""
        member, projects = others[0]
        named = ", ".join(sorted(projects))
        reason = f"`{member}` is in the same module and may not import {named}: it would not run any more"
        return (
            f"{reason}, so nobody was asked. Give `{name}` another module_name, or import {named} inside of it: then"
            " the user is asked before it joins."
        )

    async def listing(self) -> PackageListing:
        """Return the installed packages with the functions that use them."""
        wanted = await self._wanted_packages()
        sections, sets = self.environment.sections(), list[PackageSet]()
        for requirements in sorted({*sections, *wanted}):
            installation = self.environment.find(requirements)
            pins = tuple(f"{pin.project} {pin.version}" for pin in sections.get(requirements, ()))
            ahead, size = (
                (tuple(installation.ahead), installation.size) if installation else ((), 0)
            )
            functions = tuple(sorted(wanted.get(requirements, ())))
            sets.append(
                PackageSet(requirements, functions, installation is not None, pins, ahead, size)
            )
        return PackageListing(tuple(sets), self.environment.problem)

    async def health(self) -> dict[str, Any]:  # Any: JSON
        """Return the `doctor` report on packages: whether pip exists, what is installed, and any lock file problem."""
        listing = await self.listing()
        installed = [each.bytes for each in listing.packages if each.installed]
        if listing.problem:
            return {"ok": False, "problem": listing.problem}
        if find_spec("pip") is None:
            return {
                "ok": False,
                "problem": "pip is not there, so none can be installed.",
                "fix": NO_PIP,
            }
        size = f"{sum(installed) / 1e6:.1f} MB"
        return {
            "ok": True,
            "why": f"{len(installed)} of {len(listing.packages)} sets are installed ({size})",
        }

    async def clean(self) -> Cleaned:
        """Remove packages that no function is granted.

        Raises:
            PackagesError: the lock file is invalid.
        """
        return Cleaned(tuple(await self.environment.clean(await self._wanted_packages())))

    async def _resolve_once(self, requirements: tuple[str, ...]) -> "Resolution":
        """Return the earlier resolution of these requirements, so that only what the user has seen is installed."""
        if requirements not in self._said:
            self._said[requirements] = await self.environment.resolve(requirements)
        return self._said[requirements]

    async def _wanted_packages(self) -> dict[tuple[str, ...], list[str]]:
        functions: dict[tuple[str, ...], list[str]] = {}
        for name, entry in (await self.book.entries()).items():
            if entry.grants.packages:
                functions.setdefault(entry.grants.packages, []).append(name)
        return functions


async def can_preload(
    workers: Workers, limits: Limits, names: tuple[tuple[str, str], ...], name: str
) -> bool:
    """Check whether a package can be preloaded, then used by a worker: one that starts threads cannot fork."""
    source = ModuleSource.of("trial", _TRIAL.format(name=name))
    access = replace(Access(), packages=names, preload=(name,))
    patient = replace(limits, wall_s=_PATIENT_S, cpu_s=_PATIENT_S)
    outcome = await workers.run(
        Job({source.module: source}, source.module, ModuleImport(), patient, access)
    )
    return isinstance(outcome, Returned)


Admit = Callable[[str, Grants, str], Awaitable[PlannedChange]]
"""Plans the admission of the pending candidate with this name by these grants, if it still has this version."""
CarryOut = Callable[[PlannedChange], Awaitable[PlannedChange]]


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
    elsewhere: str = field(default="", metadata=IF_SET)  # why a stored yes does not count here


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
        admit: Admit,
        grants: GrantService,
        carry_out: CarryOut,
    ) -> None:
        self._store = store
        self._registry = registry
        self._admit = admit
        self._grants = grants
        self._carry_out = carry_out

    def wanted(self, options: Mapping[str, object]) -> Grants:
        """Return the grants that the user typed.

        Raises:
            WorkspaceError: one of them cannot be granted.
        """
        typed = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in options.items()
            if value
        }
        return self._grants.reach.inside(checked(typed))

    async def question(self, name: str, grants: Grants = NOTHING) -> Question:
        """Return the question for an approval: the typed grants, or all that the function or candidate still needs.

        It has the text that a yes covers, or what differs from the text of the last one.

        Raises:
            UsageError: there is no such function, and no candidate of that name that only needs grants.
            WorkspaceError: the typed time or memory is not more than every call has.
        """
        if little := self._grants.too_little(grants):
            raise WorkspaceError(
                little,
                fix="Give more. A limit for all functions is in knapper.toml, under [sandbox].",
            )
        pending, snapshot = await self._pending(name), self._registry.snapshot()
        if pending is not None:
            wanted = grants or self._grants.reach.inside(pending.verdict.needs)
            about = Question.of_text(name, pending.content_in(snapshot), "grant", wanted)
            diff = unified_diff(own_text(name, snapshot) or "", pending.text, f"{name}.py")
            return await self._explain(replace(about, why=pending.reason, diff=diff))
        function = known_function(name, snapshot)
        _require_plain(function, snapshot)
        state = await self._grants.book.held(function, snapshot)
        question = None if grants else await self._grants.question(function, snapshot)
        if question is None:
            lost = (
                Grants(packages=state.now.packages)
                if self._grants.packages.needs_install(state.now)
                else NOTHING
            )
            missing = grants.without(state.now) | lost
            question = Question.of(function, snapshot, missing, state.now)
        if not question.diff and not state.before:  # nobody has seen it yet
            question = replace(
                question, diff=await asyncio.to_thread(covered_source, function, snapshot)
            )
        return await self._explain(question)

    async def _explain(self, question: Question) -> Question:
        if why := unshowable(question.diff):
            raise WorkspaceError(why)
        by_hand = replace(question, moment="grant")
        return await self._grants.explained(by_hand, question.granted | question.missing)

    async def lift(self, name: str) -> Grants:
        """Let a function be asked for again, and return what a person had said it never may."""
        return await self._grants.book.lift(name)

    async def agree(self, question: Question, grants: Grants = NOTHING) -> Given | Judgment:
        """Grant what a question asked for, after a yes to it. `grants` are those that were typed before it, if any.

        Raises:
            QuestionChanged: what a yes would cover has changed since; the error has the new question.
            WorkspaceError: nothing was granted; the message says why.
        """
        now = await self.question(question.function, grants)
        if now.digest != question.digest:
            raise QuestionChanged(now)
        return await self.grant(question.function, question.missing, version=question.version)

    async def grant(self, name: str, grants: Grants, *, version: str = "") -> Given | Judgment:
        """Grant these to a function, or admit its pending candidate with them. Return the grants or the verdict.

        `version` is that of the question that a human approved; another version is not granted anything.

        Raises:
            QuestionChanged: it is another version; the error has the new question.
            WorkspaceError: nothing was granted; the message says why.
        """
        try:
            plan = await self._plan(name, grants, version)
            is_candidate = isinstance(plan.detail, Judgment)
            plan = await self._carry_out(plan)
        except StaleFile as error:
            raise QuestionChanged(await self.question(name, grants)) from error
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
            raise WorkspaceError(
                never, fix="Grant the folder or the file itself that the function needs."
            )
        if await self._pending(name) is not None:
            return await self._admit(name, grants, version)
        snapshot = self._registry.snapshot()
        function = known_function(name, snapshot)
        content = content_of(function, snapshot)
        require_same(name, version, content.digest)
        _require_plain(function, snapshot)
        now = await self._grants.book.allowed(function, snapshot)
        await self._grants.book.lift(name)
        await self._grants.packages.install(now | grants)
        new_grant = NewGrant(name, grants, content, who(), now)
        detail = Given(name, grants, now | grants)
        return PlannedChange(
            f"`{name}` may: {'; '.join((now | grants).sentences())}.",
            detail=detail,
            new_grant=new_grant,
        )

    async def revoke(
        self, name: str, grants: Grants | None, owners: "CallOwners" = None
    ) -> Revoked:
        """Revoke these grants, or all, from a function, or from an agent if it is one of `owners`.

        Raises:
            UsageError: it has none of them.
        """
        if not _is_visible(name, owners):
            known_function(name, self._registry.snapshot())
        once = self._grants.book.take_back(name) | await self._grants.book.drop_kept_answers(name)
        entry = (await self._grants.book.entries()).get(name)
        if entry is None and once:
            return Revoked(name, once, NOTHING)
        if entry is None and not await self._grants.book.problems():
            known_function(name, self._registry.snapshot())
            raise UsageError(f"`{name}` has no grants.", fix="See them: knapper functions grants")
        had = entry.grants if entry else NOTHING
        remaining = await self._grants.book.revoke(name, grants)
        if grants is not None and remaining == had:
            raise UsageError(
                f"`{name}` has none of these.", fix=f"It may: {'; '.join(had.sentences())}."
            )
        return Revoked(name, had.without(remaining), remaining)

    async def seen(self, snapshot: "Snapshot", details: FunctionDetails) -> FunctionDetails:
        """Return the details of a function with its current grants and without resolved grant problems."""
        function, verdict = details.function, details.verdict
        lacking = await self._grants.lacking(function, snapshot)
        if verdict is not None:
            problems = (
                p for p in verdict.problems if p.code not in GRANTABLE or p.message in lacking
            )
            verdict = replace(verdict, problems=tuple(problems))
        return replace(
            details, verdict=verdict, grants=await self._grants.usable(function, snapshot)
        )

    async def listing(self, name: str = "", owners: "CallOwners" = None) -> GrantListing:
        """Return the grants that the file proposes, those in force, and the parts of the file that are invalid.

        Of agents, those of `owners` are listed.
        """
        snapshot, rows = self._registry.snapshot(), list[ProposedGrants]()
        folders = await self._grants.book.folders_of_agents()
        for owner, entry in sorted((await self._grants.book.entries()).items()):
            if name in ("", owner) and _is_visible(owner, owners):
                function = snapshot.functions.get(owner)
                now = await self._grants.in_force(function, snapshot) if function else NOTHING
                now = (
                    folders.get(owner.removeprefix(OF_AGENT), NOTHING)
                    if owner.startswith(OF_AGENT)
                    else now
                )
                is_lapsed = function is not None and not now.covers(entry.grants)
                changed = (
                    await self._grants.book.lapsed(function, snapshot)
                    if function and is_lapsed
                    else ""
                )
                exists = function is not None or owner.startswith(OF_AGENT)
                is_elsewhere = is_lapsed and await self._grants.book.is_elsewhere(owner)
                told = changed, ELSEWHERE if is_elsewhere else ""
                row = ProposedGrants(owner, exists, entry.grants, now, entry.by, entry.at, *told)
                rows.append(row)
        return GrantListing(tuple(rows), tuple(await self._grants.book.problems()))

    async def _pending(self, name: str) -> PendingCandidate | None:
        """Return the candidate with this name if it only needs grants."""
        pending = await pending_candidate(self._store, name)
        return pending if pending and pending.verdict.lacks_only_grants else None


def _is_visible(owner: str, owners: "CallOwners") -> bool:
    """Check whether who has a grant may be seen: a function, or one of these agents."""
    return (
        owners is None or not owner.startswith(OF_AGENT) or owner.removeprefix(OF_AGENT) in owners
    )


def _require_plain(function: "Function", snapshot: "Snapshot") -> None:
    """Raise if the code does not run as it reads.

    Raises:
        WorkspaceError: it does not; the message says where and how to fix it.
    """
    if why := misleading(function, snapshot):
        raise WorkspaceError(why)
