"""What one yes gives for a turn: the hosts, folders, packages and secrets that its model expected to need.

It holds for code that existed at the yes, and for code whose statements stood whole in a question that was answered
since. All other code is asked about, though it reaches no more.
"""

import hashlib
import json
from typing import TYPE_CHECKING

from agent_core.base.records import dataclass, field
from agent_core.registry.approved import ApprovedModule, ApprovedStatement

from .content import code_hash, content_of, covered_in_modules
from .value import NOTHING, Grants

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

    from .approval import Question


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

    def answered(self, offered: Grants, snapshot: "Snapshot", *, is_yes: bool) -> None:
        """Record the answer to the offer; a yes is for the code of this snapshot."""
        self._offered |= offered
        if is_yes:
            self.given |= offered
            self._then = snapshot

    def covers(self, question: "Question", function: "Function", snapshot: "Snapshot") -> bool:
        """Return whether the question about a function was answered by the yes."""
        if not self.given or not self.given.covers(question.missing):
            return False
        return question.version in self._seen or self._existed(function, question.version)

    def covers_program(self, question: "Question") -> bool:
        """Return whether the question about a program was answered by the yes, and by one that showed the program."""
        is_within = bool(self.given) and self.given.covers(question.missing)
        return is_within and _digest_of_lines(question) in self._seen

    def saw_program(self, question: "Question") -> None:
        """Record that a person saw a whole program and said yes."""
        self._seen.add(_digest_of_lines(question))

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


def _digest_of_lines(question: "Question") -> str:
    return hashlib.sha256(json.dumps([question.function, question.lines]).encode()).hexdigest()
