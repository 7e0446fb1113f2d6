"""Folders that the user gave, for reading, to all that an agent makes here: its functions and its programs.

A function has them if every statement that runs with it is code that the agent wrote here, from its first version on,
and if neither its text nor its grants show that it sends anything out: no host, no secret, and no call of a function
that does. Code that was pulled, imported or saved by a person is not the agent's, nor is a change of such code or a
copy of it. Starters that nobody changed are code of the agent that calls them. A program has the folders on the same
terms, and may also read what such functions may write. What neither shows is asked for as it runs, together with what
the call may have read by these folders (`CallFlow`).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.access.grants import NOTHING, Grants, GrantStore
from agent_core.access.grants.content import code_hash, covered_code, functions_within
from agent_core.access.grants.value import UNSAID
from agent_core.base.offload import aside
from agent_core.base.records import dataclass
from agent_core.registry.approved import ApprovedModule, ApprovedStatement
from agent_core.storage import FunctionStore

from ..gate.capability import only_computes
from . import history
from .judgment import pending_candidate

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from agent_core.registry.source import ModuleSource

    from ..gate import Verdict
    from .plan import ChangeSummary

NeedsOf: TypeAlias = "Callable[[Function, Snapshot], Awaitable[Grants]]"
_MOST_VERSIONS: Final = 500
_DEFINITIONS: Final = ("FunctionDef ", "AsyncFunctionDef ", "ClassDef ")
_IMPORTS: Final = ("Import ", "ImportFrom ")
_IDENTIFIER: Final = re.compile(r"(?<!Constant )'([A-Za-z_][A-Za-z_0-9]*)'")


@dataclass(frozen=True, slots=True)
class WrittenCode:
    """The code that an agent writes with a candidate that has not joined yet."""

    agent: str = ""
    codes: frozenset[str] = frozenset()


NOTHING_WRITTEN: Final = WrittenCode()


class AgentFolders:
    """The folders that the functions of agents may read."""

    def __init__(
        self,
        grant_store: GrantStore,
        store: FunctionStore,
        needs: NeedsOf,
        starters: Callable[[], Mapping[str, str]],
    ) -> None:
        """Create them; `starters` returns the text of each module of the starters as the program brings them."""
        self._book = grant_store
        self._store = store
        self._needs = needs
        self._starters = starters
        self._guarded: tuple[Snapshot | None, Mapping[str, Grants], frozenset[str]] = (
            None,
            {},
            frozenset(),
        )

    async def held(
        self,
        function: "Function",
        snapshot: "Snapshot",
        own_grants: Grants,
        written_code: WrittenCode = NOTHING_WRITTEN,
        caller_agent: str = "",
    ) -> Grants:
        """Return what a function has as one that an agent made: folders, and the calls of functions that have them.

        A starter has what the `caller_agent` has. It has `own_grants` besides, also for one call. If it does not write,
        it has the packages, too, that functions may import which it calls by their names.
        """
        folders, entries = await self._book.folders_of_agents(), await self._book.entries()
        if not folders and not any(entry.grants.packages for entry in entries.values()):
            return NOTHING
        agent, given = (
            await self.maker(function, snapshot, written_code, own_grants, caller_agent),
            NOTHING,
        )
        if agent in folders:
            callees = covered_code(function, snapshot).names & await self.guarded(snapshot) - {
                function.name
            }
            given = Grants(read=folders[agent].read, functions=tuple(sorted(callees)))
        if not agent or (await self._uses(function.name, function, snapshot)).write:
            return given
        functions = (snapshot.whole or snapshot).functions
        within = [
            functions[name] for name in functions_within(function, snapshot) if name in entries
        ]
        allowed = [(await self._book.allowed(callee, snapshot)).packages for callee in within]
        return given | Grants(
            packages=tuple(package for packages in allowed for package in packages)
        )

    async def lapsed(self, function: "Function", snapshot: "Snapshot") -> tuple[Grants, str]:
        """Return the folders that a function had as one of its maker's until someone else changed its code, and why.

        Only code that was the agent's in an earlier version may be someone else's now, and nothing may send.
        """
        folders, whole = await self._book.folders_of_agents(), snapshot.whole or snapshot
        covered = covered_code(function, snapshot)
        names = {*covered.names, *functions_within(function, snapshot)} & whole.functions.keys()
        makers, starter_codes = await self._book.makers(covered.codes), await self._starter_codes()
        for agent in sorted(folders):
            others = {
                code for code in covered.codes - starter_codes if agent not in makers.get(code, ())
            }
            own = (
                {_own_code(whole.functions[name], whole): name for name in names} if others else {}
            )
            if not others or not others <= own.keys() or await self.sends(function, snapshot):
                continue
            if all([await self._has_written(agent, whole.functions[own[code]]) for code in others]):
                changed = ", ".join(f"`{name}`" for name in sorted(own[code] for code in others))
                return folders[
                    agent
                ], f"It read this as one that {agent} made. Someone else has changed {changed}."
        return NOTHING, ""

    async def _has_written(self, agent: str, function: "Function") -> bool:
        """Check whether an agent wrote a version of a function."""
        rows = await self._store.function_history(function.name)
        versions = await asyncio.to_thread(history.versions, rows, function.name)
        sources = [each.source for each in versions if each.source][:_MOST_VERSIONS]
        bound = (
            ApprovedModule.of(source, function.module).binding.get(function.name, ())
            for source in sources
        )
        codes = {code_hash(each.whole) for statements in bound for each in statements}
        return any(agent in agents for agents in (await self._book.makers(codes)).values())

    async def maker(
        self,
        function: "Function",
        snapshot: "Snapshot",
        written_code: WrittenCode = NOTHING_WRITTEN,
        own_grants: Grants = NOTHING,
        caller_agent: str = "",
    ) -> str:
        """Return the agent that made a function with all its code, if nothing in it sends anything out; else "".

        For code of the starters alone, that is the agent that calls it.
        """
        covered = covered_code(function, snapshot)
        makers = await self._book.makers(covered.codes)
        agents = [
            makers.get(code, frozenset())
            | ({written_code.agent} if code in written_code.codes else frozenset())
            for code in covered.codes - await self._starter_codes()
        ]
        of_starters = frozenset({caller_agent} - {""}) if covered.codes else frozenset()
        made_by = frozenset[str].intersection(*agents) if agents else of_starters
        return (
            "" if not made_by or await self.sends(function, snapshot, own_grants) else min(made_by)
        )

    async def sends(
        self, function: "Function", snapshot: "Snapshot", own_grants: Grants = NOTHING
    ) -> bool:
        """Check whether a text or a grant shows that a function, or one that it calls, may send something out.

        That is to a host, with a secret, or into memory. `own_grants` may be for one call. Nothing shows all that it
        may ask for.
        """
        names = covered_code(function, snapshot).names
        uses = [own_grants, *[await self._uses(name, function, snapshot) for name in names]]
        return any(
            each.network or each.secrets or each.memory or {*each.functions} - names - {UNSAID}
            for each in uses
        )

    async def _uses(self, name: str, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return what a function needs or has that an approval of `function` covers."""
        callee = function if name == function.name else (snapshot.whole or snapshot).functions[name]
        entries = await self._book.entries()
        return await self._needs(callee, snapshot) | (
            entries[name].grants if name in entries else NOTHING
        )

    async def of_program(self, agent: str, snapshot: "Snapshot") -> Grants:
        """Return what a program that `is_of` an agent may read: its folders, and what its own functions may write."""
        whole, given = (
            snapshot.whole or snapshot,
            (await self._book.folders_of_agents()).get(agent, NOTHING).read,
        )
        for name in (await self._book.entries()).keys() & whole.functions.keys():
            function = whole.functions[name]
            written = (await self._book.allowed(function, whole)).write
            if written and await self.maker(function, whole) == agent:
                given += tuple(item for item in written if item != UNSAID)
        return Grants(read=given)

    async def is_of(
        self, agent: str, code: str, callees: Iterable["Function"], snapshot: "Snapshot"
    ) -> bool:
        """Check whether a program that calls these functions is an agent's own, and nothing in it sends anything out.

        It is not if it copies what the agent did not write, or calls a function of someone else that may write.
        """
        for function in callees:
            if await self.sends(function, snapshot):
                return False
            names = covered_code(function, snapshot).names
            uses = [await self._uses(name, function, snapshot) for name in names]
            is_active = any(each.write or each.memory for each in uses)
            if is_active and await self.maker(function, snapshot, caller_agent=agent) != agent:
                return False
        statements = (await aside(len(code), ApprovedModule.of, code, "program")).statements
        copied = await asyncio.to_thread(_copied, statements, snapshot.whole or snapshot)
        makers = await self._book.makers(copied)
        return all(agent in makers.get(code, ()) for code in copied - await self._starter_codes())

    async def wrote_files(self, agent: str, grants: Grants, snapshot: "Snapshot") -> bool:
        """Check whether grants are for reading modules alone that an agent wrote whole, which it is shown anyway."""
        modules = (snapshot.whole or snapshot).modules.values() if agent and grants.read else ()
        sources = [source for source in modules if source.path in grants.read]
        if grants != Grants(read=grants.read) or len(sources) < len(grants.read):
            return False
        codes = await asyncio.to_thread(_codes_of_sources, sources)
        makers = await self._book.makers(codes)
        return bool(codes) and all(agent in makers.get(code, ()) for code in codes)

    async def guarded(self, snapshot: "Snapshot") -> frozenset[str]:
        """Return the functions that may read what others may not, so that calling them needs a grant."""
        folders = await self._book.folders_of_agents()
        if not folders:
            return frozenset()
        whole, (known, known_folders, names) = snapshot.whole or snapshot, self._guarded
        if known is not whole or known_folders != folders:
            functions = whole.functions.values()
            codes = await asyncio.to_thread(
                lambda: {_own_code(function, whole): function for function in functions}
            )
            makers = await self._book.makers(codes)
            made = [codes[code] for code, agents in makers.items() if agents & folders.keys()]
            made += [codes[code] for code in codes.keys() & await self._starter_codes()]
            names = frozenset(
                function.name for function in made if not only_computes(function, whole)
            )
            self._guarded = whole, folders, names
        return names

    async def _starter_codes(self) -> frozenset[str]:
        """Return the hashes of the statements of the starters as the program brings them."""
        return await asyncio.to_thread(_codes_of, self._starters)


@cache
def _codes_of(texts: Callable[[], Mapping[str, str]]) -> frozenset[str]:
    """Return the hashes of all statements of these modules."""
    modules = (ApprovedModule.of(text, module) for module, text in texts().items())
    return frozenset(code_hash(each.whole) for module in modules for each in module.statements)


def _codes_of_sources(sources: Iterable["ModuleSource"]) -> frozenset[str]:
    """Return the hashes of the statements of modules, without their imports."""
    modules = (ApprovedModule.of(source.text, source.module) for source in sources)
    texts = (each.whole for module in modules for each in module.statements)
    return frozenset(code_hash(text) for text in texts if not text.startswith(_IMPORTS))


def _own_code(function: "Function", snapshot: "Snapshot") -> str:
    """Return the hash of a function's own statement, or of nothing if it is defined otherwise."""
    codes = _codes_by_name(snapshot.modules[function.module].text, function.module).get(
        function.name, ()
    )
    return codes[-1] if codes else ""


@lru_cache(maxsize=2048)
def _codes_by_name(text: str, module: str) -> Mapping[str, tuple[str, ...]]:
    """Return the hashes of the statements of a module that bind each name."""
    binding = ApprovedModule.of(text, module).binding
    return {
        name: tuple(code_hash(each.whole) for each in statements)
        for name, statements in binding.items()
    }


async def written_code(
    store: FunctionStore,
    grant_store: GrantStore,
    verdict: "Verdict",
    snapshot: "Snapshot",
    summary: "ChangeSummary",
) -> WrittenCode:
    """Return the code that an agent writes with a judged candidate, or none if any of it goes back to someone else.

    It does if it replaces, or once replaced, or continues what the agent did not write, or is a copy of that.
    """
    author, reading = summary.author, verdict.reading
    if (
        author.by != "agent"
        or not (author.agent and author.turn)
        or summary.goes_back
        or reading is None
    ):
        return NOTHING_WRITTEN
    pending = await pending_candidate(store, verdict.name)
    if pending is not None and pending.agent != author.agent:
        return NOTHING_WRITTEN
    rows = await store.function_history(verdict.name)
    versions = await asyncio.to_thread(history.versions, rows, verdict.name)
    if len(versions) > _MOST_VERSIONS:
        return NOTHING_WRITTEN
    work = partial(
        _compare,
        verdict.source,
        reading.source,
        snapshot,
        verdict.name,
        [each.source for each in versions],
    )
    written, earlier, alike = await asyncio.to_thread(work)
    makers = await grant_store.makers(earlier | alike)
    if any(author.agent not in makers.get(code, ()) for code in earlier | alike):
        return NOTHING_WRITTEN
    return WrittenCode(author.agent, written)


def _compare(
    text: str, new_source: "ModuleSource", snapshot: "Snapshot", name: str, versions: Sequence[str]
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the hashes of what a candidate writes, of what it replaces, and of what it is a copy of.

    What the module gets to import for it is written, too.
    """
    candidate = ApprovedModule.of(text, new_source.module).statements
    before = (
        snapshot.modules[new_source.module].text if new_source.module in snapshot.modules else ""
    )
    old = ApprovedModule.of(before, new_source.module)
    known = {each.whole for each in old.statements}
    imports = [
        each
        for each in ApprovedModule.of(new_source.text, new_source.module).statements
        if each.code.startswith(_IMPORTS) and each.whole not in known
    ]
    bound = {
        each
        for statement in candidate
        if not statement.code.startswith(_IMPORTS)
        for each in statement.binds
    }
    replaced = [each for each in old.statements if each.binds & bound]
    replaced += [
        each
        for source in versions
        if source
        for each in ApprovedModule.of(source, new_source.module).binding.get(name, ())
    ]
    written, earlier = (
        frozenset(code_hash(each.whole) for each in statements)
        for statements in ((*candidate, *imports), replaced)
    )
    return written, earlier, _copied(candidate, snapshot)


def _copied(statements: Sequence[ApprovedStatement], snapshot: "Snapshot") -> frozenset[str]:
    """Return the hashes of the definitions in the workspace that these are copies of, whatever their names."""
    definitions = [each for each in statements if _form(each)]
    own, words = {_form(each) for each in definitions}, [_identifiers(each) for each in definitions]
    # Only a module with all identifiers of a definition is read: each costs some milliseconds.
    near = (
        source
        for source in snapshot.modules.values()
        if any(all(word in source.text for word in each) for each in words)
    )
    others = (ApprovedModule.of(source.text, source.module).statements for source in near)
    return frozenset(
        code_hash(each.whole) for found in others for each in found if _form(each) in own
    )


def _identifiers(statement: ApprovedStatement) -> frozenset[str]:
    """Return the identifiers in a statement, without those that it binds."""
    return frozenset(_IDENTIFIER.findall(statement.code)) - statement.binds


def _form(statement: ApprovedStatement) -> str:
    """Return a definition without its name, or "" if the statement is none."""
    if not statement.code.startswith(_DEFINITIONS):
        return ""
    kind, _, rest = statement.code.split(" ", 2)
    return f"{kind} {rest}"
