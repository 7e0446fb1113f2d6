"""One module of a library while it is judged: what was admitted, what stays for others alone, and the text so far.

`library` asks for the next candidate here and tells what became of it. At the end the admitted functions are composed:
the author's text is kept word for word where all of it is admitted, else what the admitted need of it.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from agent_core.base.characters import FLAWS
from agent_core.base.problem import Problem
from agent_core.registry.function import ModuleReading
from agent_core.registry.module_edits import place_function, withhold
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.storage import DropPending, SaveVerdict, Write

from ..gate.verdict import ModuleVerdict
from .closure import ModuleParts, only
from .import_order import circles, in_order
from .judgment import Judgment
from .late_imports import is_at_the_top, with_late_imports
from .library_files import LibraryFile
from .plan import Author, ChangeSummary, PlannedChange, planned


@dataclass(frozen=True, slots=True)
class PrivateNames:
    """Names that stay in a module and are not offered: withheld functions, and others that modules import."""

    functions: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


# What keeps a function from being used by others, wherever they are.
_UNUSABLE = FLAWS | {
    *("import-fails", "import-hangs", "module-too-long", "needs-packages", "foreign-import", "workspace-import"),
    *("syntax", "several-functions", "no-function", "not-text", "too-long", "too-deep", "bad-module"),
}
# What keeps others of its module out, too: they would do no more than it does.
_HOLLOW = frozenset({"placeholder", "not-implemented", "todo", "hard-coded"})
# What does not keep out those that it calls and that call it.
_UNOFFERED = frozenset(
    {"function-name", "inexpressible-type", "bad-name", "name-taken", "copy", "not-json", "echo", "constant"}
)


@dataclass(slots=True)
class ModuleProgress:
    """The progress of one module; `text` is that of the module with all that was judged and is usable."""

    part: LibraryFile
    text: str
    demands: Set[str]  # names that other modules of the library take from it
    verdicts: dict[str, Judgment] = field(default_factory=dict)
    companions: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    judged: set[str] = field(default_factory=set)
    in_order: frozenset[str] = frozenset()  # what is in the text before it is judged, too
    uses: Mapping[str, frozenset[str]] = field(init=False)
    shown: Mapping[str, frozenset[str]] = field(init=False)
    together: Mapping[str, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        parts = self.part.parts
        self.uses = {name: parts.uses(name) for name in parts.public}
        self.shown = {name: parts.shown_with(name) for name in parts.public}
        self.together = circles(self.uses)

    def order(self) -> list[str]:
        """Return the functions, each after those that it uses and, where it can be, those that its examples use."""
        return in_order(self.uses, self.shown)

    @property
    def usable(self) -> Set[str]:
        """The functions that the others can use."""
        return self.skipped | self.verdicts.keys() | self.companions.keys()

    def statements(self, name: str) -> set[int]:
        """Return the statements of a function without those of the public functions that it uses."""
        return self.part.parts.needed([name], frozenset(self.part.parts.public) - {name})

    def keeps_others_out(self, text: str) -> bool:
        """Check whether a text imports a package where its module is loaded, and others of the module need none."""
        part = self.part
        if not is_at_the_top(text, part.absent):
            return False
        return not all(
            is_at_the_top(candidate_of(part, part.parts.needed([name]))[0], part.absent) for name in part.parts.public
        )

    def lacking(self, name: str) -> list[str]:
        """Return the functions that one uses and that cannot join."""
        return sorted(self.uses[name] - self.usable - self.together[name] - {name})

    def around(self, name: str) -> str:
        """Return the module's text for judging a function, with what is not judged yet as the author wrote it."""
        later = {other for other in self.shown[name] if other not in self.judged}
        names = (self.together[name] | later) - self.usable - {name}
        return _placed(
            self.text, {other: candidate_of(self.part, self.statements(other))[0] for other in sorted(names)}
        )

    def take_in_order(self, name: str) -> None:
        """Take a function and all that is usable in the order of their author, which what runs at the top may need."""
        needed = self.part.parts.needed({name, *self.verdicts, *self.companions})
        self.in_order = frozenset(bound for at in needed for bound in self.part.parts.binds[at])
        self.text = candidate_of(self.part, needed)[0]

    def admit(self, name: str, verdict: Judgment) -> None:
        """Take note of a function that joins."""
        self.verdicts[name] = verdict
        self.text = _placed(self.text, {name: verdict.source})

    def refuse(self, name: str, code: str, verdict: Judgment) -> None:
        """Take note of a refused function, which others may use all the same."""
        codes = {problem.code for problem in verdict.refusals}
        is_usable = codes <= _UNOFFERED if self.together[name] else not codes & _HOLLOW
        # Without a function that others import, no module of theirs could be loaded.
        if not codes & _UNUSABLE and (is_usable or name in self.demands):
            self.companions[name] = code
            self.text = _placed(self.text, {name: code})

    def take_alone(self) -> Iterator[tuple[str, list[str]]]:
        """Remove and yield the functions that depend on a rejected function of their circle, with what is missing."""
        while alone := {name: lacking for name in self.verdicts if (lacking := self._missed(name))}:
            for name, lacking in alone.items():
                del self.verdicts[name]
                yield name, lacking

    def _missed(self, name: str) -> list[str]:
        return sorted(self.uses[name] - self.usable - {name})

    def private_names(self) -> PrivateNames:
        """Return what stays in the module and is not offered: for those which join, and for other modules."""
        demanded, withheld = self._demanded(), set[str]()
        front = {*self.verdicts, *demanded}
        withheld |= front & self.companions.keys()
        while front:
            name = front.pop()
            needed = (self.part.parts.uses(name) | self.part.parts.shown_with(name)) & self.companions.keys() - withheld
            withheld |= needed
            front |= needed
        return PrivateNames(frozenset(withheld), frozenset(demanded - set(self.part.parts.public)))

    def _demanded(self) -> set[str]:
        """Return what other modules take of this one apart from its functions that cannot be used."""
        bound = {name for names in self.part.parts.binds for name in names if not name.startswith("__")}
        names = bound if "*" in self.demands else self.demands & bound
        return {name for name in names if name not in self.part.parts.public or name in self.companions}

    def without_functions(self) -> str | None:
        """Return the text of a module that offers nothing, with what other modules take of it; None if nothing is."""
        private = self.private_names()
        names = private.names | private.functions
        text = only(self.part.text, names, self.part.adapted.unused) if names else None
        text = withhold(text, private.functions) if isinstance(text, str) and private.functions else text
        return text if isinstance(text, str) else None


def candidate_of(part: LibraryFile, statements: Set[int]) -> tuple[str, list[int]]:
    """Return these statements as a text, and the line of the library for each of its lines; what they import of
    packages that are not there is imported where it is used.
    """
    text, places = part.parts.candidate(statements)
    late = with_late_imports(text, part.absent)
    return late.text, [places[line - 1] for line in late.lines if line <= len(places)]


def _placed(text: str, sources: Mapping[str, str]) -> str:
    """Return a module's text with these functions, as far as they can be placed."""
    for name, source in sources.items():
        placed = place_function(text, source, name, with_statements=True)
        text = text if isinstance(placed, Problem) else placed
    return text


@dataclass(frozen=True, slots=True)
class Joined:
    """A module to be written, with the verdicts on its new functions."""

    source: ModuleSource
    reading: ModuleReading
    verdicts: Mapping[str, Judgment]


def alone(part: LibraryFile, existing: ModuleSource | None) -> Joined:
    """Return a module that is there for others alone. Whether it can be imported shows with what imports it."""
    text = existing.text if existing is not None and existing.text.strip() else _complete(part)
    source = ModuleSource.of(part.module, text, existing.path if existing else part.path)
    return Joined(source, read_module(source), {})


def whole(part: LibraryFile, *, is_offered: bool = False) -> LibraryFile:
    """Return a module of a circle as its author wrote it, which offers no function unless others take all of it."""
    text = _complete(part)
    return unoffered(part, text if is_offered else _unoffered(text, frozenset(part.parts.public)))


def _complete(part: LibraryFile) -> str:
    names = {name for names in part.parts.binds for name in names}
    text = only(part.text, names, part.adapted.unused, is_bare=False)
    return with_late_imports(text if isinstance(text, str) else part.text, part.absent).text


def unoffered(part: LibraryFile, text: str | Problem) -> LibraryFile:
    """Return a module with another text, which is there for others alone."""
    parts = ModuleParts.of(text, part.file, part.module) if isinstance(text, str) else text
    if isinstance(parts, Problem) or not isinstance(text, str):
        return part
    adapted = replace(part.adapted, text=text, unused=frozenset())
    return replace(part, parts=replace(parts, public=()), adapted=adapted)


Check: TypeAlias = Callable[[ModuleSource, ModuleReading], Awaitable[ModuleVerdict]]


async def joined(
    part: LibraryFile,
    verdicts: Mapping[str, Judgment],
    private: PrivateNames,
    existing: ModuleSource | None,
    check: Check,
) -> Joined | Problem:
    """Return the module with the admitted functions after it was imported as a whole, or the problem.

    What is `private` is there for them, but is not offered. `existing` is what is there of the module.
    """
    path = existing.path if existing else part.path
    problem: Problem | None = None
    for text in _texts(part, verdicts, private, existing):
        if isinstance(text, Problem):
            problem = text
            continue
        source = ModuleSource.of(part.module, text, path)
        verdict = await check(source, read_module(source))
        refused = [
            problem
            for problem in verdict.problems
            if problem.severity == "refuses" and problem.code.startswith("import")
        ]
        if not refused:
            return Joined(source, verdict.reading, verdicts)
        problem = refused[0]
    assert problem is not None
    return problem


def _texts(
    part: LibraryFile, verdicts: Mapping[str, Judgment], private: PrivateNames, existing: ModuleSource | None
) -> list[str | Problem]:
    """Return the texts to try: the author's whole, then only what is needed; or the existing one with new functions."""
    if existing is not None and existing.text.strip():
        stop = set(part.parts.public)
        own = {name: candidate_of(part, part.parts.needed([name], stop - {name}))[0] for name in private.functions}
        brought = own | {name: row.source for name, row in verdicts.items()}
        return [_unoffered(_written(existing.text, brought, part.path), private.functions)]
    fixed = {name: row.source for name, row in verdicts.items() if row.fixes}
    texts: list[str | Problem] = []
    for needed in (False, True):
        if needed or {*verdicts, *private.functions} == set(part.parts.public):
            text = only(part.text, {*verdicts, *private.functions, *private.names}, part.adapted.unused, is_bare=needed)
            text = text if isinstance(text, Problem) else with_late_imports(text, part.absent).text
            placed = text if isinstance(text, Problem) else _written(text, fixed, part.path)
            texts.append(_unoffered(placed, private.functions))
    return texts


def _unoffered(text: str | Problem, names: Set[str]) -> str | Problem:
    return withhold(text, names) if isinstance(text, str) and names else text


def _written(text: str, sources: Mapping[str, str], path: str) -> str | Problem:
    for name, source in sources.items():
        placed = place_function(text, source, name, path=path, with_statements=True)
        if isinstance(placed, Problem):
            return placed
        text = placed
    return text


def plan(joined_module: Joined, snapshot: Snapshot, author: Author, origin: str) -> PlannedChange:
    """Return the plan that writes the module: one transaction, with a verdict for each function."""
    existing = snapshot.modules.get(joined_module.source.module)
    before = existing or ModuleSource(joined_module.source.module, joined_module.source.path, "", "")
    names = ", ".join(joined_module.verdicts) or joined_module.source.module
    work = ChangeSummary("changed" if existing else "created", names, author, f"imported from {origin}")
    result = planned(
        f"{names} imported", Judgment.from_json({"name": names, "admitted": True}), before, joined_module.reading, work
    )
    hashes = {function.name: function.body_hash for function in joined_module.reading.functions}
    writes: list[Write] = []
    for name, row in joined_module.verdicts.items():
        if name in hashes:
            saved = replace(row, by=author.by).to_json()
            writes += [SaveVerdict(hashes[name], name, saved), DropPending(name)]
    return replace(result, writes=(*result.writes, *writes))
