"""Package grants: planned installs are shown in the question and installed after approval; unused ones are removed.

The packages of a function are resolved for all of its grants together, so that they are compatible.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agent_core.access.grants import NOTHING, Grants, GrantStore, Question
from agent_core.access.grants.value import joined
from agent_core.access.packages.projects import project_of
from agent_core.access.packages.resolution import NO_PIP
from agent_core.registry.source import ModuleSource
from sandbox import Access, Job, Limits, ModuleImport, Returned
from sandbox.access import NOTHING as NO_ACCESS

from ..gate.trial import Granted, Workers

if TYPE_CHECKING:
    from agent_core.access.packages import Environment, Resolution

_PATIENT_S = 60
_TRIAL = "import sys\n\nassert '{name}' in sys.modules, 'it is not imported ahead'\n\nimport {name}\n"


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
        if not grants.packages or (self.environment.find(grants.packages) and not question.missing.packages):
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
        projects = {project_of(name): owner for name, owner in self.environment.projects(held_grants.packages)}
        return replace(grants, packages=tuple(projects.get(package, package) for package in grants.packages))

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
        agreed = {name: entry.grants for name, entry in entries.items()} if self.by_file() else await self.book.agreed()
        named = {name: agreed.get(name, NOTHING) for name in entries if name in text}
        return self.together(
            replace(entries[name].grants, seconds=had.seconds, memory_mib=had.memory_mib) for name, had in named.items()
        )

    def together(self, entries: Iterable[Grants]) -> Granted:
        """Return these entries combined, with access to those of their packages that are installed."""
        all_grants = tuple(entries)
        names, ahead = dict[str, str](), tuple[str, ...]()
        for grants in all_grants:
            seen, ahead = self.environment.folders(grants.packages) if grants.packages else ((), ahead)
            names = {**dict(seen), **names}
        access = replace(Access(), packages=tuple(names.items()), preload=ahead if set(ahead) <= set(names) else ())
        return Granted(joined(map(self.known, all_grants)), access if names else NO_ACCESS)

    async def crowded(self, name: str, projects: frozenset[str], module: Iterable[str]) -> str:
        """Return why a function cannot share its module if it imports these projects at the top, or an empty text."""
        entries = await self.book.entries()
        grants_by_name = {
            member: entries[member].grants if member in entries else NOTHING for member in module if member != name
        }
        others = [
            member for member, grants in grants_by_name.items() if not grants.covers(Grants(packages=tuple(projects)))
        ]
        if not projects or not others:
            return ""
        reason = (
            f"`{others[0]}` is in the same module and may not import {', '.join(sorted(projects))}: it would not run"
        )
        return f"{reason} any more. Give it another module_name, or import inside the function."

    async def listing(self) -> PackageListing:
        """Return the installed packages with the functions that use them."""
        wanted = await self._wanted_packages()
        sections, sets = self.environment.sections(), list[PackageSet]()
        for requirements in sorted({*sections, *wanted}):
            installation = self.environment.find(requirements)
            pins = tuple(f"{pin.project} {pin.version}" for pin in sections.get(requirements, ()))
            ahead, size = (tuple(installation.ahead), installation.size) if installation else ((), 0)
            functions = tuple(sorted(wanted.get(requirements, ())))
            sets.append(PackageSet(requirements, functions, installation is not None, pins, ahead, size))
        return PackageListing(tuple(sets), self.environment.problem)

    async def health(self) -> dict[str, Any]:  # Any: JSON
        """Return the `doctor` report on packages: whether pip exists, what is installed, and any lock file problem."""
        listing = await self.listing()
        installed = [each.bytes for each in listing.packages if each.installed]
        if listing.problem:
            return {"ok": False, "problem": listing.problem}
        if find_spec("pip") is None:
            return {"ok": False, "problem": "pip is not there, so none can be installed.", "fix": NO_PIP}
        size = f"{sum(installed) / 1e6:.1f} MB"
        return {"ok": True, "why": f"{len(installed)} of {len(listing.packages)} sets are installed ({size})"}

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


class ImportTrials:
    """A test of whether a package can be preloaded: a process with a package that starts threads cannot fork."""

    def __init__(self, workers: Workers, limits: Limits) -> None:
        self._workers = workers
        self._limits = replace(limits, wall_s=_PATIENT_S, cpu_s=_PATIENT_S)

    async def __call__(self, names: tuple[tuple[str, str], ...], name: str) -> bool:
        """Return whether the package `name` can be preloaded and then used by a worker."""
        source = ModuleSource.of("trial", _TRIAL.format(name=name))
        access = replace(Access(), packages=names, preload=(name,))
        job = Job({source.module: source}, source.module, ModuleImport(), self._limits, access)
        outcome = await self._workers.run(job)
        return isinstance(outcome, Returned)
