"""Dependency order of functions or modules, and their circular dependencies. Pure."""

from collections.abc import Mapping, Set


def in_order(uses: Mapping[str, Set[str]]) -> list[str]:
    """Return the names, each after those that it uses. Circular ones keep their order."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name not in seen:
            seen.add(name)
            for dependency in sorted(uses[name]):
                visit(dependency)
            order.append(name)

    for name in uses:
        visit(name)
    return order


def circles(uses: Mapping[str, Set[str]]) -> dict[str, frozenset[str]]:
    """Return for each name those that it uses and that use it, directly or through others."""
    reach = {name: {target for target in used if target in uses} for name, used in uses.items()}
    for middle in uses:
        for reachable in reach.values():
            if middle in reachable:
                reachable |= reach[middle]
    return {name: frozenset(target for target in reach[name] if name in reach[target]) - {name} for name in uses}
