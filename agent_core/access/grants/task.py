"""What one yes gives for a turn: the hosts, folders, packages and secrets that its model expected to need.

It holds for code that existed at the yes, and for code whose statements stood whole in a question that was answered
since. All other code is asked about, though it reaches no more.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent_core.base.records import dataclass, field
from agent_core.registry.approved import ApprovedModule, ApprovedStatement

from .content import code_hash, content_of, covered_in_modules
from .value import NOTHING, Grants

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

ProgramLines: TypeAlias = Sequence[tuple[int, str]]
"""The numbered lines of a whole program."""


@dataclass(slots=True)
class TaskReach:
    """The reach of one turn. `expected` is what its model said that it needs, `given` what a person allowed of it."""

    expected: Grants = NOTHING
    why: str = ""
    given: Grants = NOTHING
    _offered: Grants = NOTHING
    _then: "Snapshot | None" = None  # the functions at the yes
    _seen: set[str] = field(default_factory=set)  # digests of what a person saw whole since

    @property
    def due(self) -> Grants:
        """What is to be offered at the next question: what the model expects, unless it was offered before."""
        return self.expected.without(self._offered | self.given)

    def answered(self, grants: Grants, snapshot: "Snapshot", *, is_yes: bool) -> None:
        """Record the answer to the offer of these; a yes is for the code of this snapshot."""
        self._offered |= grants
        if is_yes:
            self.given |= grants
            self._then = snapshot

    def covers(self, grants: Grants, function: "Function", digest: str) -> bool:
        """Return whether the yes gives these to a function, whose content has this digest."""
        if not self.given or not self.given.covers(grants):
            return False
        return digest in self._seen or self._existed(function, digest)

    def covers_program(self, grants: Grants, lines: ProgramLines, snapshot: "Snapshot") -> bool:
        """Return whether the yes gives these to a program, which a person saw whole.

        What it calls may have changed since, so there must be the same functions.
        """
        is_within = bool(self.given) and self.given.covers(grants)
        return is_within and _digest_of(lines, snapshot) in self._seen

    def saw_program(self, lines: ProgramLines, snapshot: "Snapshot") -> None:
        """Record that a person saw a whole program and said yes."""
        self._seen.add(_digest_of(lines, snapshot))

    def saw(self, function: "Function", snapshot: "Snapshot", source: str) -> None:
        """Record that a person saw the `source` of a function and said yes; it counts if no other code is new."""
        if self._then is None:
            return
        shown = {code_hash(each.whole) for each in _statements(source, function.module)}
        for module, codes in covered_in_modules(function, snapshot).items():
            before = self._then.modules.get(module)
            known = _statements(before.text, module) if before else ()
            own = shown if module == function.module else frozenset[str]()
            if not codes <= own | {code_hash(each.whole) for each in known}:
                return
        self._seen.add(content_of(function, snapshot).digest)

    def _existed(self, function: "Function", digest: str) -> bool:
        then = self._then
        before = None if then is None else (then.whole or then).functions.get(function.name)
        return then is not None and before is not None and content_of(before, then).digest == digest


def _statements(text: str, module: str) -> tuple[ApprovedStatement, ...]:
    return ApprovedModule.of(text, module).statements


def _digest_of(lines: ProgramLines, snapshot: "Snapshot") -> str:
    modules = sorted((name, source.version) for name, source in snapshot.modules.items())
    return hashlib.sha256(json.dumps(["program", lines, modules]).encode()).hexdigest()
