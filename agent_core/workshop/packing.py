"""Packages between a question and its yes: what would be installed is said, then installed; what nobody has goes.

A function's packages are those of all its grants together, so that they fit each other.
"""

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from sandbox import Access, Limits, Returned
from sandbox.access import NOTHING as NO_ACCESS

from ..gate.trial import Granted, Workers
from ..gate.uses import needs_of, uses
from ..grants import NOTHING, GrantBook, Grants, Question
from ..grants.value import joined
from ..packages import Environment, Resolution
from ..packages.failures import NO_PIP
from ..packages.projects import project_of
from ..registry.source import Source

_PATIENT_S = 60
_TRIAL = "import {name}\n"


class Packing:
    """The packages of one workspace, as grants ask for them."""

    def __init__(self, environment: Environment, book: GrantBook) -> None:
        self.environment = environment
        self.book = book
        self.by_file: Callable[[], bool] = lambda: False  # whether the file alone decides here
        self._said: dict[tuple[str, ...], Resolution] = {}

    def lacks(self, having: Grants) -> bool:
        """Whether packages of these grants are not installed, as after a pull or with another Python."""
        return bool(having.packages) and self.environment.find(having.packages) is None

    async def explained(self, question: Question, having: Grants) -> Question:
        """The question with what would be installed for all that the function would then have.

        Raises:
            PackagesError: it cannot be.
        """
        if not having.packages or (self.environment.find(having.packages) and not question.missing.packages):
            return question
        return replace(question, installs=(await self._resolved(having.packages)).sentences())

    async def install(self, having: Grants) -> None:
        """Install what was said, after a yes.

        Raises:
            PackagesError: it cannot be.
        """
        if self.lacks(having):
            resolution = await self._resolved(having.packages)
            try:
                await self.environment.install(resolution)
            finally:
                self._said.pop(having.packages, None)

    def named(self, needs: Grants, having: Grants) -> Grants:
        """Needs with the projects that were granted in the place of import names that turned out to be theirs."""
        if not needs.packages or not having.packages:
            return needs
        projects = {project_of(name): owner for name, owner in self.environment.projects(having.packages)}
        return replace(needs, packages=tuple(projects.get(one, one) for one in needs.packages))

    def known(self, grants: Grants) -> Grants:
        """Grants with the import names of what was granted, by which a text may need it."""
        names = tuple(project_of(name) for name, _ in self.environment.projects(grants.packages))
        return replace(grants, packages=grants.packages + names)

    async def of_text(self, text: str) -> Granted:
        """What a saved file is judged with: what the entries of the functions that it names propose.

        Of time and memory it has those that a human once said yes to: no example runs longer by a file's word alone,
        unless that was set to be enough.
        """
        entries = await self.book.entries()
        agreed = {name: one.grants for name, one in entries.items()} if self.by_file() else await self.book.agreed()
        named = {name: agreed.get(name, NOTHING) for name in entries if name in text}
        return self.together(
            replace(entries[name].grants, seconds=had.seconds, memory_mib=had.memory_mib) for name, had in named.items()
        )

    def together(self, entries: Iterable[Grants]) -> Granted:
        """These entries as one, and of their packages those that are here."""
        found = tuple(entries)
        names, ahead = dict[str, str](), tuple[str, ...]()
        for one in found:
            seen, ahead = self.environment.folders(one.packages) if one.packages else ((), ahead)
            names = {**dict(seen), **names}
        access = replace(Access(), packages=tuple(names.items()), preload=ahead if set(ahead) <= set(names) else ())
        return Granted(joined(map(self.known, found)), access if names else NO_ACCESS)

    async def crowded(self, name: str, projects: frozenset[str], module: Iterable[str]) -> str:
        """Why a function that imports these at the top of its module cannot share it; empty if it can."""
        entries = await self.book.entries()
        held = {other: entries[other].grants if other in entries else NOTHING for other in module if other != name}
        others = [one for one, grants in held.items() if not grants.covers(Grants(packages=tuple(projects)))]
        if not projects or not others:
            return ""
        what = f"`{others[0]}` is in the same module and may not import {', '.join(sorted(projects))}: it would not run"
        return f"{what} any more. Give it another module_name, or import inside the function."

    async def listing(self) -> dict[str, Any]:  # Any: JSON
        """What is installed, and for which functions."""
        rows = [await self._row(one) for one in sorted({*self.environment.sections(), *await self._wanted()})]
        return {"packages": rows, "problem": self.environment.problem}

    async def health(self) -> dict[str, Any]:  # Any: JSON
        """What `doctor` says of packages: whether pip is there, what is installed, what is wrong with the lock."""
        found = await self.listing()
        there = [row for row in found["packages"] if row["installed"]]
        size = sum(row["bytes"] for row in there) / 1e6
        if problem := found["problem"]:
            return {"ok": False, "problem": problem}
        if find_spec("pip") is None:
            return {"ok": False, "problem": "pip is not there, so none can be installed.", "mend": NO_PIP}
        return {"ok": True, "why": f"{len(there)} of {len(found['packages'])} sets are installed ({size:.1f} MB)"}

    async def clean(self) -> dict[str, Any]:  # Any: JSON
        """Remove what no function is granted.

        Raises:
            PackagesError: the lock is not understood.
        """
        return {"removed": await self.environment.clean(await self._wanted())}

    async def _resolved(self, wanted: tuple[str, ...]) -> Resolution:
        """What was said of these before, so that nothing else is installed than what a human saw."""
        if wanted not in self._said:
            self._said[wanted] = await self.environment.resolve(wanted)
        return self._said[wanted]

    async def _wanted(self) -> dict[tuple[str, ...], list[str]]:
        found: dict[tuple[str, ...], list[str]] = {}
        for name, entry in (await self.book.entries()).items():
            if entry.grants.packages:
                found.setdefault(entry.grants.packages, []).append(name)
        return found

    async def _row(self, requirements: tuple[str, ...]) -> dict[str, Any]:
        found = self.environment.find(requirements)
        pins = self.environment.sections().get(requirements, ())
        return {
            "requirements": list(requirements),
            "functions": sorted((await self._wanted()).get(requirements, ())),
            "installed": found is not None,
            "pins": [f"{pin.project} {pin.version}" for pin in pins],
            "ahead": list(found.ahead) if found else [],
            "bytes": found.size if found else 0,
        }


def imported_at_the_top(text: str, listed: tuple[str, ...]) -> frozenset[str]:
    """The projects that importing a module with this text needs, whichever of its functions is called."""
    try:
        body = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    except (SyntaxError, RecursionError, ValueError, MemoryError):
        return frozenset()
    return frozenset(needs_of(uses(ast.Module([*body], []), listed)).packages)


class Trials:
    """Tries what can be imported ahead: a package that starts threads cannot be forked with."""

    def __init__(self, workers: Workers, limits: Limits) -> None:
        self._workers = workers
        self._limits = replace(limits, wall_s=_PATIENT_S, cpu_s=_PATIENT_S)

    async def __call__(self, names: tuple[tuple[str, str], ...], name: str) -> bool:
        """Return whether one of these names can be imported ahead, and by a worker then."""
        source = Source.of("trial", _TRIAL.format(name=name))
        access = replace(Access(), packages=names, preload=(name,))
        outcome = await self._workers.load({source.module: source}, source.module, limits=self._limits, access=access)
        return isinstance(outcome, Returned)
