"""Confusable functions: pairs for which a request of one function finds the other one first.

The requests of a function are the first sentence of its description and those of the turns in which it was called.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_core.base.untrusted import one_line
from agent_core.registry.function import first_sentence

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from .index import FunctionIndex

NEAR: Final = 0.8
"""The cosine from which two functions may be confused (`python -m benchmarks.confusables`)."""

_LOOKED_AT: Final = 5  # results of a request that are examined
_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Confusion:
    """A request of one function that finds the other first; `cosine` is the similarity of their descriptions."""

    name: str
    other: str
    cosine: float
    request: str


async def confusions(
    index: "FunctionIndex", snapshot: "Snapshot", names: Collection[str] | None = None, least: float = NEAR
) -> list[Confusion]:
    """Return the confused pairs, the nearest first and each once; with `names`, only pairs with one of these."""
    near = defaultdict[str, dict[str, float]](dict)
    for name, other, cosine in await index.near(snapshot, least, names):
        near[name][other] = near[other][name] = cosine
    confused: dict[frozenset[str], Confusion] = {}
    for name in sorted(near):
        for request in await index.requests_of(name, snapshot):
            ranked = await index.rank(request, snapshot, _LOOKED_AT, by_text=True)
            order = [candidate.name for candidate in ranked]
            before = order[: order.index(name)] if name in order else order
            for other in before:
                if other in near[name]:
                    pair = frozenset((name, other))
                    confused.setdefault(pair, Confusion(name, other, near[name][other], request))
    return sorted(confused.values(), key=lambda pair: (-pair.cosine, pair.name, pair.other))


async def mistaken(index: "FunctionIndex", snapshot: "Snapshot", name: str) -> Confusion | None:
    """Return how a function is mistaken for another, or None.

    Either its own first sentence finds another function first, or it is one of a confused pair.
    """
    said = first_sentence(snapshot.functions[name].description)
    ranked = await index.rank(said, snapshot, 1, by_text=True) if said else []
    if ranked and ranked[0].name != name:
        return Confusion(name, ranked[0].name, 0.0, said)
    return next(iter(await confusions(index, snapshot, [name])), None)


def describe_difference(function: "Function", other_function: "Function") -> str:
    """Return advice on what the first sentence of one function could say that is not true of the other."""
    mine, others = (list(each.parameters.get("properties", {})) for each in (function, other_function))
    own, left = [name for name in mine if name not in others], [name for name in others if name not in mine]
    differences: list[str] = []
    if own:
        differences.append(f"it takes {_list_names(own)}{f' instead of {_list_names(left)}' if left else ''}")
    elif len(mine) < len(others):
        differences.append(f"it needs no {_list_names(left, 'or')}")
    if function.returns and other_function.returns and function.returns != other_function.returns:
        differences.append(f"it returns `{function.returns}`, not `{other_function.returns}`")
    if differences:
        return f"say in its first sentence that {' and '.join(differences)}"
    says = one_line(first_sentence(other_function.description), _SHOWN)
    return f"say in its first sentence what `{other_function.name}` does not do" + (
        f"; that one says “{says}”" if says else ""
    )


def _list_names(names: list[str], word: str = "and") -> str:
    *more, last = [f"`{name}`" for name in names[:3]]
    return f"{', '.join(more)} {word} {last}" if more else last
