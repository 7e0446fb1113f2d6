"""The order in which a library's modules are judged and loaded: each after those that it uses, circles together.

Modules that import each other can often be loaded in one order only: that in which their package loads them.
"""

from collections.abc import Iterator, Mapping, Set

from agent_core.registry.source import FOLDER, path_of

from .closure import ModuleParts
from .foreign import Adapted
from .library_files import LibraryFile


def in_order(uses: Mapping[str, Set[str]], also: Mapping[str, Set[str]] | None = None) -> list[str]:
    """Return the names, each after those that it uses and, where it can be, those in `also`. Circular ones keep their
    order.
    """
    order: list[str] = []
    seen: set[str] = set()
    reach = _reach(uses)

    def visit(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        for dependency in sorted(uses[name]):
            visit(dependency)
        for other in sorted((also or {}).get(name, ())):
            if not reach[other] & (seen - set(order)):  # what is only shown waits for those that use what waits
                visit(other)
        order.append(name)

    for name in uses:
        visit(name)
    return order


def circles(uses: Mapping[str, Set[str]]) -> dict[str, frozenset[str]]:
    """Return for each name those that it uses and that use it, directly or through others."""
    reach = _reach(uses)
    return {name: frozenset(target for target in reach[name] if name in reach[target]) - {name} for name in uses}


def _reach(uses: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """Return for each name those that it uses, directly or through others."""
    reach = {name: {target for target in used if target in uses} for name, used in uses.items()}
    for middle in uses:
        for reachable in reach.values():
            if middle in reachable:
                reachable |= reach[middle]
    return reach


def circled(parts: Mapping[str, LibraryFile]) -> dict[str, frozenset[str]]:
    """Return for each module those that import it and that it imports, directly or through others.

    That all modules of a package meet in the package is no circle, unless they take something of the package itself.
    """
    facades = {name for name, part in parts.items() if part.is_facade}
    taken = {used for part in parts.values() for used in part.own_packages}
    while taken & facades:
        facades -= taken
        taken = {used for name in taken for used in parts[name].uses}
    return circles({name: frozenset() if name in facades else part.uses - facades for name, part in parts.items()})


def generations(parts: Mapping[str, LibraryFile]) -> Iterator[list[LibraryFile]]:
    """Yield the modules in groups, each after those that it uses. Modules that use each other come together."""
    remaining, together = dict(parts), circled(parts)
    facades = {name for name, part in parts.items() if part.is_facade}
    uses = {name: part.uses - (facades if name not in facades else frozenset()) for name, part in parts.items()}
    while remaining:
        ready = [part for part in remaining.values() if not (_outside(part.module, uses, together) & remaining.keys())]
        ready = ready or list(remaining.values())  # packages that import each other
        yield ready
        for part in ready:
            del remaining[part.module]


def _outside(module: str, uses: Mapping[str, Set[str]], together: Mapping[str, Set[str]]) -> Set[str]:
    """Return what a module and those that it comes together with use of the others."""
    group = {module, *together[module]}
    return {used for member in group for used in uses[member]} - group


def first_loaded(circle: Set[str], parts: Mapping[str, LibraryFile]) -> LibraryFile | None:
    """Return a package that loads the modules of a circle in the order of its author; None if it has no such order."""
    common = _common_package(circle)
    package = parts.get(common)
    if package is None or not package.is_facade or common in circle:
        return None
    first = next((module for module in _loads(common, parts, set()) if module in circle), None)
    if first is None:
        return None
    text = f"# First, since its modules import each other.\nimport {FOLDER}.{first}\n"
    own = ModuleParts.of(text, package.file, common)
    assert isinstance(own, ModuleParts)
    path = path_of(common).removesuffix(".py") + "/__init__.py"
    return LibraryFile(package.file, common, path, own, Adapted(text, {}, (), frozenset()), (), frozenset({first}))


def _common_package(modules: Set[str]) -> str:
    first, *others = (name.split(".")[:-1] for name in sorted(modules))
    shared = list(first)
    for names in others:
        shared = [one for one, other in zip(shared, names, strict=False) if one == other]
    return ".".join(shared)


def _loads(module: str, parts: Mapping[str, LibraryFile], seen: set[str]) -> Iterator[str]:
    """Yield the modules in the order in which they begin to be loaded with this one."""
    seen.add(module)
    yield module
    for name in parts[module].loads():
        if name in parts and name not in seen:
            yield from _loads(name, parts, seen)
