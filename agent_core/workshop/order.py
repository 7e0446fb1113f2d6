"""In which order functions, or modules, join that use one another, and which of them go in circles. Pure."""

from collections.abc import Mapping, Set


def in_order(uses: Mapping[str, Set[str]]) -> list[str]:
    """The names, each after those that it uses; within a circle as they come."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name not in seen:
            seen.add(name)
            for other in sorted(uses[name]):
                visit(other)
            order.append(name)

    for name in uses:
        visit(name)
    return order


def circles(uses: Mapping[str, Set[str]]) -> dict[str, frozenset[str]]:
    """With each name those that it uses and that use it, directly or through others."""
    reach = {name: {one for one in used if one in uses} for name, used in uses.items()}
    for middle in uses:
        for found in reach.values():
            if middle in found:
                found |= reach[middle]
    return {name: frozenset(one for one in reach[name] if name in reach[one]) - {name} for name in uses}
