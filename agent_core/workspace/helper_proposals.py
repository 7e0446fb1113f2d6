"""Drafts of helpers from recorded turns: functions that were often used together, with statistics."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from .helper_file import written

if TYPE_CHECKING:
    from agent_core.registry.registry import Snapshot
    from agent_core.storage import CallStore

    from .helper_library import HelperLibrary

MOST_FUNCTIONS: Final = 6
_FEWEST_TURNS: Final = 3
_SHARE: Final = 0.5  # of the rarer function's turns in which both must have been used
_REQUESTS: Final = 3
_LONGEST: Final = 400


@dataclass(frozen=True, slots=True)
class HelperProposal:
    """A draft of a helper: its functions were used `together` in that many turns, with that many `calls`.

    `turns` counts the turns with any of the functions; `share` is the smallest share of a pair in the turns of its
    rarer function.
    """

    name: str
    functions: tuple[str, ...]
    together: int
    turns: int
    share: float
    calls: int
    requests: tuple[str, ...]
    draft: str


async def proposals(library: "HelperLibrary", store: "CallStore", snapshot: "Snapshot") -> list[HelperProposal]:
    """Return drafts of helpers for functions that were used in the same turns, most frequent first."""
    calls: dict[str, list[str]] = {}
    for name in snapshot.functions:
        turns = [row.turn for row in await store.recent_calls(name) if row.turn]
        if turns:
            calls[name] = turns
    served = await store.requests_served(_REQUESTS)
    drafts = []
    for cluster in clusters({name: set(turns) for name, turns in calls.items()}):
        draft = _draft(cluster, calls, served, snapshot)
        needed = [snapshot.functions[name] for name in draft.functions]
        if not any(all(map(helper.may_call, needed)) for helper in library.helpers.values()):
            drafts.append(draft)
    return drafts


def clusters(turns: Mapping[str, Set[str]]) -> list[tuple[str, ...]]:
    """Return sets of functions in which each pair was used in the same turns, most frequent first. Pure."""
    shares = {pair: share for pair in combinations(sorted(turns), 2) if (share := _share(turns, pair))}
    found: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for first, second in sorted(shares, key=lambda pair: (-len(turns[pair[0]] & turns[pair[1]]), pair)):
        if {first, second} & taken:
            continue
        cluster = [first, second]
        for name in sorted(turns.keys() - taken - {first, second}):
            fits = all(tuple(sorted((name, member))) in shares for member in cluster)
            if fits and len(cluster) < MOST_FUNCTIONS:
                cluster.append(name)
        taken |= {*cluster}
        found.append(tuple(sorted(cluster)))
    return found


def _share(turns: Mapping[str, Set[str]], pair: tuple[str, str]) -> float:
    """Return the share of turns that two functions have in common, or 0 if it is too small."""
    one, other = turns[pair[0]], turns[pair[1]]
    together = len(one & other)
    share = together / min(len(one), len(other))
    return share if together >= _FEWEST_TURNS and share >= _SHARE else 0.0


def _draft(
    cluster: tuple[str, ...], calls: Mapping[str, Sequence[str]], served: list[tuple[str, str]], snapshot: "Snapshot"
) -> HelperProposal:
    turns = {name: frozenset(calls[name]) for name in cluster}
    together = frozenset.intersection(*turns.values())
    share = min(_share(turns, pair) for pair in combinations(cluster, 2))
    texts = [request for function, request in served if function in cluster]
    requests = [text for text in dict.fromkeys(texts) if all((name, text) in served for name in cluster)]
    modules = {snapshot.functions[name].module.rpartition(".")[2] for name in cluster}
    firsts = [snapshot.functions[one].description.strip().partition("\n")[0].rstrip(".") for one in cluster]
    table = {
        "purpose": f"{'; '.join(firsts)[:_LONGEST]}.",
        "inputs": {"task": "str"},
        "result": "str",
        "functions": list(cluster),
        "budget": {"steps": 2 * len(cluster) + 2, "tokens": 20_000, "seconds": 60},
    }
    return HelperProposal(
        f"{modules.pop() if len(modules) == 1 else cluster[0]}_helper",
        cluster,
        len(together),
        len(frozenset.union(*turns.values())),
        round(share, 2),
        sum(len(calls[one]) for one in cluster),
        tuple(requests[-_REQUESTS:]),
        written(table),
    )
