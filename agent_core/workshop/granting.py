"""Before a function joins or runs: what it needs is compared with what it has, and a human is asked for the rest.

Where nobody can be asked the answer is no, and it says how a human grants it. While a human is asked, the clock of a
call that runs stands still.
"""

import ast
from dataclasses import dataclass, replace
from functools import lru_cache

from sandbox import Limits
from sandbox.lines import bare_lines
from sandbox.patience import standing_still

from ..gate import Verdict
from ..gate.capability import lacking
from ..gate.draft import unified
from ..gate.grants import Way
from ..gate.trial import Granted
from ..gate.uses import needs_of, uses
from ..grants import NOTHING, Approver, Decision, Denied, Giving, Grants, Permit, Question, Reach
from ..grants.book import who
from ..grants.content import content_of, misleading, modules_of, unshowable
from ..grants.desk import Desk
from ..grants.items import UNSAID
from ..grants.permit import raised
from ..grants.refusal import denial
from ..packages import PackagesError
from ..problem import Place, Problem
from ..registry.function import Function
from ..registry.snapshot import Snapshot
from ..settings import GrantSettings
from ..untrusted import fence
from .calls import source_of
from .closure import Parts
from .packing import Packing, imported_at_the_top
from .plan import Work

_BY_FILE = "It has its grants by functions/grants.toml alone: no human said yes to them here (`grants.unattended`)."


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a human let a candidate have: to be written down with it, or lent to its next call; or why not."""

    grants: Grants = NOTHING
    giving: Giving | None = None
    lent: Giving | None = None
    denied: str = ""
    is_human: bool = False  # whether it was a human's no


class Granting:
    """Asks for grants, and says what a call may have."""

    def __init__(
        self, packing: Packing, reach: Reach, settings: GrantSettings, limits: Limits, packages: tuple[str, ...]
    ) -> None:
        self.packing, packing.by_file = packing, self._is_by_file
        self.book = packing.book
        self.reach = reach
        self.approver: Approver | None = None
        self._desk = Desk()
        self._settings = settings
        self._limits = limits
        self._packages = packages

    async def ungranted(self, snapshot: Snapshot) -> Granted:
        """What a candidate is judged with before anybody was asked."""
        return Granted(guarded=await self.book.needed_to_call(snapshot), way=self._way())

    def _way(self) -> Way:
        """How a human comes to be asked for what a candidate lacks."""
        if self.approver is not None and self._settings.ask != "never":
            return "joining"
        return "file" if self._settings.unattended == "file" else "none"

    async def granted(self, grants: Grants, snapshot: Snapshot, owner: str) -> Granted:
        """What it is judged with once it has these."""
        spelled = self.reach.spelled(self.packing.known(grants))
        return replace(await self.ungranted(snapshot), grants=spelled, access=self.reach.access(grants, owner))

    async def having(self, function: Function, snapshot: Snapshot) -> Granted:
        """The same for a function that is there."""
        owner = f"{function.module}.{function.name}"
        return await self.granted(await self.in_force(function, snapshot), snapshot, owner)

    async def in_force(self, function: Function, snapshot: Snapshot) -> Grants:
        """What a function may reach now: by a human's yes, or by the file where that was set."""
        return await self.book.allowed(function, snapshot) | await self._by_file(function, snapshot)

    def _is_by_file(self) -> bool:
        """Whether the file alone puts grants in force: nobody can be asked, and that was set."""
        return self._settings.unattended == "file" and self.approver is None

    async def _by_file(self, function: Function, snapshot: Snapshot) -> Grants:
        """What the file alone puts in force, as far as the text has a use for it, where nobody can be asked."""
        entry = (await self.book.entries()).get(function.name)
        if entry is None or not self._is_by_file() or misleading(function, snapshot):
            return NOTHING
        return entry.grants.serving(await self.needs(function, snapshot) | self._around(function, snapshot))

    def asks(self, verdict: Verdict, work: Work) -> bool:
        """Whether a human has to say yes before this candidate joins."""
        wants_all = self._settings.ask == "always" and work.author.by == "agent" and verdict.admitted
        return wants_all or verdict.lacks_only_grants

    async def question(self, function: Function, snapshot: Snapshot) -> Question | None:
        """What a function of the workspace lacks now; None if it has all that it needs."""
        needs, around = await self.needs(function, snapshot), self._around(function, snapshot)
        found = await self.book.question(function, snapshot, needs, around)
        return found and replace(found, lines=_shown(function, snapshot))

    async def for_candidate(self, verdict: Verdict, snapshot: Snapshot, work: Work) -> Allowance:
        """Ask for what a judged candidate lacks, unless it was given already; `snapshot` is what it would join."""
        after, function = _joined(verdict, snapshot)
        unfit = await self._unfit(verdict, after)
        if function is None or unfit:
            return Allowance(denied=unfit)
        held = await self.book.held(function, after)
        content = content_of(function, after)
        if work.given is not None:
            having = held.now | work.given
            await self.packing.install(having)
            return Allowance(having, Giving(function.name, work.given, content, who(), held.now))
        needs = self.packing.named(self.reach.inside(verdict.needs), held.entry)
        question = await self.book.question(function, after, needs, self._around(function, after))
        if question is None and self._settings.ask != "always":
            return Allowance(held.now)
        question = question or Question(verdict.name, granted=held.now, version=function.version)
        before = snapshot.functions.get(verdict.name)
        old = source_of(before, snapshot) if before else ""
        diff = question.diff or unified(old, verdict.source, function.path)
        question = replace(question, why=work.reason, lines=verdict.asking, diff=diff, moment="join")
        decision = await self._ask(question, held.now | question.missing)
        if decision.answer == "no":
            return Allowance(denied=denial(question, decision), is_human=decision.by in ("human", "earlier", "often"))
        giving = Giving(function.name, question.missing, content, who(), held.now) if question.missing else None
        if decision.answer == "once":
            return Allowance(held.now | question.missing, lent=giving)
        return Allowance(held.now | question.missing, giving)

    async def _unfit(self, verdict: Verdict, after: Snapshot) -> str:
        """Why a candidate cannot join, whatever it is granted."""
        function = _joined(verdict, after)[1]
        if function is None:
            return "It has no place in its module yet, so nobody was asked."
        if why := misleading(function, after):
            return why
        mates = [one.name for one in after.functions.values() if one.module == verdict.module]
        at_top = imported_at_the_top(verdict.source, self._packages)
        return await self.packing.crowded(verdict.name, at_top, mates)

    async def permit(self, function: Function, snapshot: Snapshot, caller: str = "") -> Permit | Denied:
        """How a call of a function is made, after a human was asked for what it lacks; or why it is not made."""
        lent = self.book.borrowed(function, snapshot)
        needs = await self.needs(function, snapshot)
        held = await self.book.held(function, snapshot)
        if not (needs or held.entry or lent):
            return Permit(snapshot.modules, self._limits)
        if why := misleading(function, snapshot):
            return Denied(why)
        by_file = await self._by_file(function, snapshot)
        now, note = held.now | lent | by_file, _BY_FILE if by_file.without(held.now | lent) else ""
        question = await self.book.question(function, snapshot, needs, self._around(function, snapshot))
        if question is None and self.packing.lacks(now):
            question = Question(function.name, Grants(packages=now.packages), now, is_again=True)
        if question is not None and (not now.covers(question.missing) or self.packing.lacks(now)):
            question = replace(question, lines=_shown(function, snapshot), caller=caller)
            decision = await self._ask(question, now | question.missing)
            note = denial(question, decision)
            if decision.answer == "no" and (decision.by != "policy" or held.entry):
                return Denied(note)
            if decision.answer == "yes":
                await self.book.give(function, snapshot, question.missing, who())
            if decision.answer != "no":  # what it had may have been revoked while they were asked
                now, note = await self.book.allowed(function, snapshot) | lent | question.missing, ""
        return self._permit(function, snapshot, now, note)

    async def lacking(self, function: Function, snapshot: Snapshot) -> frozenset[str]:
        """What the gate has to say of those uses in its module that a function has no grant for now."""
        granted = self.reach.spelled(self.packing.known(await self.in_force(function, snapshot)))
        try:
            tree = ast.parse(snapshot.modules[function.module].text)
            found = lacking(uses(tree, self._packages, await self.guarded(snapshot)), granted)
        except RecursionError:
            return frozenset()
        return frozenset(one.what for one in found)

    async def guarded(self, snapshot: Snapshot) -> frozenset[str]:
        """The functions that only those may call that have the grant for it."""
        return await self.book.needed_to_call(snapshot)

    async def needs(self, function: Function, snapshot: Snapshot) -> Grants:
        """What a function of the workspace needs, by its own text and its helpers."""
        guarded = await self.book.needed_to_call(snapshot)
        text = snapshot.modules[function.module].text
        entry = (await self.book.entries()).get(function.name)
        found = self.reach.inside(_needs(text, function.name, self._packages, guarded))
        return self.packing.named(found, entry.grants) if entry else found

    async def want(self, function: str, snapshot: Snapshot, grants: Grants, caller: str = "") -> bool:
        """Ask in the middle of a call for what it turned out to need; whether it may have it from now on."""
        held = snapshot.functions[function]
        if why := misleading(held, snapshot):
            self._desk.close(Question(function, grants), Decision("no", why, "unavailable"))
            return False
        now = await self.book.allowed(held, snapshot)
        question = Question(function, grants, now, version=held.version, moment="run", caller=caller)
        decision = await self._ask(question)
        if decision.answer == "yes":
            await self.book.give(held, snapshot, grants, who())
        return decision.answer != "no"

    def _permit(self, function: Function, snapshot: Snapshot, grants: Grants, note: str) -> Permit:
        if not grants:
            return Permit(snapshot.modules, self._limits, note=note)
        return Permit(
            modules_of(function.module, snapshot),
            raised(self._limits, grants),
            grants,
            self.reach.access(grants, f"{function.module}.{function.name}"),
            function.name if grants.stateful else "",
            note
            or self.reach.refusal(grants, function.name)
            or self.reach.grown(grants)
            or _unnamed(function.name, grants),
        )

    def _around(self, function: Function, snapshot: Snapshot) -> Grants:
        """What the modules need that a function's own imports."""
        others = [one for name, one in modules_of(function.module, snapshot).items() if name != function.module]
        return _needs_of_all(tuple(one.text for one in others), self._packages, frozenset())

    async def explained(self, question: Question, having: Grants) -> Question:
        """The question with what a yes installs, and what is not known of what it gives."""
        doubts = self.reach.doubts(question.missing)
        return await self.packing.explained(replace(question, doubts=doubts), having)

    async def _ask(self, question: Question, having: Grants = NOTHING) -> Decision:
        """The answer; what it is about is installed with a yes, by which the function has all this."""
        if never := self.reach.refusal(question.missing, question.function, question.granted):
            return self._desk.close(question, Decision("no", never, "never"))
        if why := unshowable(question.diff):
            return self._desk.close(question, Decision("no", why, "unavailable"))
        approver = None if self._settings.ask == "never" else self.approver
        with standing_still():
            try:
                asked = await self.explained(question, having) if approver else question
                decision = await self._desk.ask(asked, approver)
                if decision.answer != "no":
                    await self.packing.install(having)
            except PackagesError as error:
                return self._desk.close(question, Decision("no", str(error), "unavailable"))
        return decision


def ungranted(verdict: Verdict, denied: str, path: str) -> Verdict:
    """An admitted candidate that a human did not say yes to."""
    if not verdict.admitted:
        return verdict
    problem = Problem("needs-yes", denied, Place(path), "ask the human what is wrong with it")
    return replace(verdict, admitted=False, standing="", problems=(*verdict.problems, problem))


def _unnamed(function: str, grants: Grants) -> str:
    """What a human does for a function whose text does not name the files that it was let have."""
    if UNSAID not in grants.read + grants.write:
        return ""
    flag = "--write" if UNSAID in grants.write else "--read"
    named = ", ".join(map(fence, dict.fromkeys(one for one in grants.write + grants.read if one != UNSAID)))
    what = f"`{function}` is told its paths by who calls it, and reaches those in folders that a human named"
    return f"{what} (so far {named or 'none'}). To name one: toolwright functions grant {function} {flag} FOLDER"


def _joined(verdict: Verdict, snapshot: Snapshot) -> tuple[Snapshot, Function | None]:
    """The snapshot with the candidate's module in it, and the candidate there."""
    if verdict.reading is None:
        return snapshot, None
    after = snapshot.with_module(verdict.reading)
    found = after.functions.get(verdict.name)
    return after, found if found is not None and found.module == verdict.module else None


def _shown(function: Function, snapshot: Snapshot) -> tuple[tuple[int, str], ...]:
    """The lines of a function that need something."""
    text = snapshot.modules[function.module].text
    lines, own = bare_lines(text), range(function.line, function.end_line + 1)
    try:
        found = [one.finding.line for one in uses(ast.parse(text), ()) if one.kind and one.finding.line in own]
    except RecursionError:
        return ()
    return tuple((line, lines[line - 1].strip()) for line in dict.fromkeys(found))


@lru_cache(maxsize=2048)
def _needs(text: str, name: str, packages: tuple[str, ...], guarded: frozenset[str]) -> Grants:
    parts = Parts.of(text)
    if isinstance(parts, Problem):
        return NOTHING
    own, _ = parts.candidate(parts.needed([name]))
    return _needs_of_all((own,), packages, guarded)


@lru_cache(maxsize=512)
def _needs_of_all(texts: tuple[str, ...], packages: tuple[str, ...], guarded: frozenset[str]) -> Grants:
    found = NOTHING
    for text in texts:
        try:
            found |= needs_of(uses(ast.parse(text), packages, guarded))
        except (SyntaxError, RecursionError, ValueError, MemoryError):
            continue
    return found
