"""The verbs that change helpers: validated by a gate, approved by the user if an agent proposes them, then written.

Also drafts of helpers from recorded turns: functions that were often used together, with statistics.
"""

import json
import weakref
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_core.access.grants import Question
from agent_core.base.errors import UsageError
from agent_core.base.limits import SpendingLimits
from agent_core.base.matching import diff_lines
from agent_core.base.records import IF_SET, dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.functions.service import USER, Author, FunctionService, history
from agent_core.registry.function import signature
from sandbox.wire.lines import lines_of

from .helper_library import (
    Helper,
    beyond,
    failing_examples,
    near_copies,
    path_of,
    problems_around,
    read_helper,
    written,
)

if TYPE_CHECKING:
    from agent_core.base.problem import Problem
    from agent_core.base.receipt import Fact
    from agent_core.functions.answers import CallReport
    from agent_core.registry.registry import Snapshot
    from agent_core.runtime.agent import Agent
    from agent_core.storage import CallStore

    from .helper_library import HelperLibrary


Deed = Literal["created", "changed", "deleted", "restored"]
_FACTS: Final[Mapping[Deed, "Fact"]] = {
    "created": "created helper",
    "changed": "changed helper",
    "deleted": "deleted helper",
    "restored": "changed helper",
}
_ASKS: Final[Mapping[Deed, str]] = {
    "created": "a new helper",
    "changed": "a change of a helper",
    "deleted": "to delete a helper",
    "restored": "an earlier version of a helper",
}


@dataclass(frozen=True, slots=True)
class HelperVerdict:
    """The verdict on a proposed change of a helper: whether it was admitted, and its problems.

    `back` is the version that a rollback restores, with its time.
    """

    name: str
    deed: Deed
    admitted: bool
    problems: tuple["Problem", ...] = ()
    denied: str = ""
    back: str = field(default="", metadata=IF_SET)
    signature: str = field(default="", metadata=IF_SET)

    @property
    def text(self) -> str:
        """The verdict as text for a model."""
        found = "\n".join(map(str, self.problems))
        if self.admitted:
            can = (
                ""
                if self.deed == "deleted"
                else f" It can be called in your next step: {self.signature}."
            )
            return "\n".join(
                filter(None, (f"The helper `{self.name}` was {self.deed}.{can}", found))
            )
        reason = self.denied or f"It was not {self.deed}; each problem says how to fix it."
        return "\n".join(filter(None, (f"The helper `{self.name}` was rejected. {reason}", found)))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed change: its author, the author's remaining budget, and the reason."""

    author: Author = USER
    rest: SpendingLimits = SpendingLimits()
    reason: str = ""


class HelperChanges:
    """The verbs that change helpers, for all interfaces."""

    def __init__(self, library: "HelperLibrary", functions: FunctionService) -> None:
        self._library = library
        self._functions = functions

    async def check(self, name: str, text: str, proposal: Proposal | None = None) -> HelperVerdict:
        """Validate a helper without writing anything."""
        await self._library.refresh()
        problems = await self._judge(name, text, proposal or Proposal())
        return HelperVerdict(name, "created", _passes(problems), problems)

    async def create(self, name: str, text: str, proposal: Proposal) -> HelperVerdict:
        """Validate a new helper and, if it passes and the user agrees, write its file.

        Raises:
            UsageError: a helper with that name exists.
        """
        await self._library.refresh()
        if name in self._library.helpers:
            fix = "Change it with edit_helper, or choose another name."
            raise UsageError(f"There is a helper `{one_line(name, 80)}` already.", fix=fix)
        return await self._put("created", name, text, proposal)

    async def edit(
        self, name: str, old_text: str, new_text: str, proposal: Proposal
    ) -> HelperVerdict:
        """Change one place in a helper's file.

        Raises:
            UsageError: there is no such helper, or the text does not occur in it exactly once.
        """
        await self._library.refresh()
        text = self._library.helper(name).text
        if not old_text or text.count(old_text) != 1:
            times = text.count(old_text) if old_text else 0
            fix = "Give a text that stands in it exactly once, with the lines around it."
            raise UsageError(
                f"The text stands {times} times in {path_of(name)}, which reads:\n{text}", fix=fix
            )
        return await self._put("changed", name, text.replace(old_text, new_text), proposal)

    async def replace(self, name: str, text: str, proposal: Proposal) -> HelperVerdict:
        """Replace the whole file of a helper.

        Raises:
            UsageError: there is no such helper.
        """
        await self._library.refresh()
        self._library.helper(name)
        return await self._put("changed", name, text, proposal)

    async def delete(self, name: str, proposal: Proposal) -> HelperVerdict:
        """Delete a helper that no other helper refers to.

        Raises:
            UsageError: there is no such helper, or another one refers to it.
        """
        await self._library.refresh()
        helper = self._library.helper(name)
        naming = sorted(
            other.name for other in self._library.helpers.values() if name in other.helpers
        )
        if naming:
            fix = f"Take it out of {path_of(naming[0])} first."
            raise UsageError(f"`{name}` is named by the helper `{naming[0]}`.", fix=fix)
        if denied := await self._ask_user("deleted", helper, "", proposal):
            return HelperVerdict(name, "deleted", admitted=False, denied=denied)
        await self._library.remove(name, proposal.author, proposal.reason or "deleted")
        return HelperVerdict(name, "deleted", admitted=True)

    async def rollback(self, name: str, version: str, proposal: Proposal) -> HelperVerdict:
        """Restore an earlier version of a helper, or a deleted helper.

        Without `version`, the one before the current one; repeated rollbacks go back further.

        Raises:
            UsageError: there is no such version.
        """
        await self._library.refresh()
        target = history.pick(name, await self._library.versions(name), version, goes_back=True)
        went_back = history.went_back(
            target, is_there=name in self._library.helpers
        )  # marks it for the next rollback
        reason = ": ".join(filter(None, (went_back, proposal.reason)))
        verdict = await self._put("restored", name, target.source, replace(proposal, reason=reason))
        return replace(verdict, back=f"version {target.number} of {target.when}")

    async def _put(self, deed: Deed, name: str, text: str, proposal: Proposal) -> HelperVerdict:
        problems = await self._judge(name, text, proposal)
        helper = read_helper(name, text)
        if not _passes(problems) or not isinstance(helper, Helper):
            return HelperVerdict(name, deed, admitted=False, problems=problems)
        if denied := await self._ask_user(deed, helper, text, proposal):
            return HelperVerdict(name, deed, admitted=False, problems=problems, denied=denied)
        await self._library.write(name, text, proposal.author, proposal.reason or deed)
        return HelperVerdict(
            name, deed, admitted=True, problems=problems, signature=signature(helper.function)
        )

    async def _judge(self, name: str, text: str, proposal: Proposal) -> tuple["Problem", ...]:
        helper = read_helper(name, text)
        if not isinstance(helper, Helper):
            return helper
        around = self._library.surroundings(without=name)
        problems = [
            *problems_around(helper, around),
            *near_copies(helper, around),
            *beyond(helper, proposal.rest),
        ]
        if _passes(problems):
            problems += await failing_examples(helper, self._call)
        return tuple(problems)

    async def _call(self, name: str, inputs: dict[str, Any]) -> "CallReport":  # Any: JSON
        """Call a function with those inputs that it has parameters for."""
        function = self._functions.registry.snapshot().functions[name]
        taken: Mapping[str, Any] = {
            key: inputs[key] for key in function.parameters["properties"] if key in inputs
        }
        report = await self._functions.test(name, taken)
        assert report.outcome is not None, "one call was made"
        return report.outcome

    async def _ask_user(self, deed: Deed, helper: Helper, text: str, proposal: Proposal) -> str:
        """Ask the user about an agent's proposal. Return the reason if it is denied; a user's command is a yes."""
        author = proposal.author
        if author.by == "human":
            return ""
        path, old = path_of(helper.name), self._library.helpers.get(helper.name)
        before, after = lines_of(old.text if old else ""), lines_of(text)
        diff = "\n".join(row.rstrip("\n") for row in diff_lines(before, after, (path, path)))
        why = proposal.reason or helper.purpose
        question = Question.of_text(
            helper.name, json.dumps([old.text if old else "", text]), "helper"
        )
        question = replace(question, why=f"{_ASKS[deed]}: {why}", diff=diff)
        denied = await self._functions.granting.during(author.approvals).agreed(question)
        await self._library.refresh()
        if not denied and self._library.helpers.get(helper.name) != old:
            return f"{path} was changed while the user was asked, so nothing was done. Read it, then propose it again."
        return denied


def _passes(problems: tuple["Problem", ...] | list["Problem"]) -> bool:
    return all(problem.severity == "warns" for problem in problems)


class HelperDesk:
    """The verbs that change helpers for the model of one agent, with verdicts as text."""

    def __init__(self, changes: HelperChanges, agent: "Agent") -> None:
        self._changes = changes
        self._agent = weakref.ref(agent)  # weak, because the agent holds the desk

    async def create(self, name: str, table: Mapping[str, Any], reason: str) -> str:  # Any: JSON
        """Propose a new helper.

        Raises:
            UsageError: it was rejected.
        """
        verdict = await self._changes.create(
            name, written({key: value for key, value in table.items() if value}), self._by(reason)
        )
        return self._report(verdict)

    async def edit(self, name: str, old_text: str, new_text: str, reason: str) -> str:
        """Propose a change of one place in a helper's file.

        Raises:
            UsageError: it was rejected.
        """
        return self._report(await self._changes.edit(name, old_text, new_text, self._by(reason)))

    async def delete(self, name: str, reason: str) -> str:
        """Propose to delete a helper.

        Raises:
            UsageError: it was rejected.
        """
        return self._report(await self._changes.delete(name, self._by(reason)))

    def _by(self, reason: str) -> Proposal:
        agent = self._agent()
        assert agent is not None, "its turn runs"
        return Proposal(agent.author, agent.left(), reason)

    def _report(self, verdict: HelperVerdict) -> str:
        if not verdict.admitted:
            raise UsageError(verdict.text)
        if agent := self._agent():
            agent.turn_now.note_done(_FACTS[verdict.deed], verdict.name)
        return verdict.text


_MOST_FUNCTIONS: Final = 6
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


async def proposals(
    library: "HelperLibrary", store: "CallStore", snapshot: "Snapshot"
) -> list[HelperProposal]:
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
    shares = {
        pair: share for pair in combinations(sorted(turns), 2) if (share := _share(turns, pair))
    }
    found: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for first, second in sorted(
        shares, key=lambda pair: (-len(turns[pair[0]] & turns[pair[1]]), pair)
    ):
        if {first, second} & taken:
            continue
        cluster = [first, second]
        for name in sorted(turns.keys() - taken - {first, second}):
            fits = all(tuple(sorted((name, member))) in shares for member in cluster)
            if fits and len(cluster) < _MOST_FUNCTIONS:
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
    cluster: tuple[str, ...],
    calls: Mapping[str, Sequence[str]],
    served: list[tuple[str, str]],
    snapshot: "Snapshot",
) -> HelperProposal:
    turns = {name: frozenset(calls[name]) for name in cluster}
    together = frozenset.intersection(*turns.values())
    share = min(_share(turns, pair) for pair in combinations(cluster, 2))
    texts = [request for function, request in served if function in cluster]
    requests = [
        text for text in dict.fromkeys(texts) if all((name, text) in served for name in cluster)
    ]
    modules = {snapshot.functions[name].module.rpartition(".")[2] for name in cluster}
    firsts = [
        snapshot.functions[one].description.strip().partition("\n")[0].rstrip(".")
        for one in cluster
    ]
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
