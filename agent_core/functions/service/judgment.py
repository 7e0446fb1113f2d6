"""The published form of a verdict, for everyone but the gate.

Verdicts are passed as JSON between processes, through the store and in events, and are parsed here, once. Writing a
verdict keeps the keys that it came with, in their order.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_core.access.grants import Grants
from agent_core.base.problem import Problem
from agent_core.base.records import dataclass, fields, fields_to_json, replace, to_json
from agent_core.base.untrusted import one_line
from agent_core.registry.function import reach_words
from agent_core.storage import SaveVerdict

from ..gate import Candidate, GivenExample, Verdict
from ..gate.verdict import (
    CHALLENGED,
    DISPUTED,
    GRANTABLE,
    REACHES_NOTHING,
    Disagreement,
    Fix,
    ReaderAnswer,
    StageReport,
    refusing,
)

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from agent_core.storage import FunctionStore

    from ..gate import Breakage

FAILED_EXAMPLES = frozenset(
    {"example-disagrees", "example-raises", "example-hangs", "example-stopped"}
)
UNSETTLED = frozenset({DISPUTED, REACHES_NOTHING})
"""Findings on which a reader of the description and the author differ; a person or real calls settle them."""
_WEAK = 2  # number of reported changes of the body that no example detects


@dataclass(frozen=True, slots=True)
class Judgment:
    """The verdict on a candidate or on a function of a saved file; `error` is the reason why there is none.

    `thumb` is a human's rating, `good` or `bad`, and `note` their comment. `diff` is the difference from the function
    that the candidate would replace. `back` is the version, with its time, that a rollback was to restore. `line` is
    the line of the function when a saved file was judged. `unfit_with` is the hash of the code that breaks it.
    """

    document: Mapping[str, Any]  # Any: the JSON that it was read from
    name: str = ""
    module: str = ""
    path: str = ""
    admitted: bool = False
    standing: str = ""
    version: str = ""
    source: str = ""
    by: str = ""
    error: str = ""
    denied: str = ""
    conflict: str = ""
    diff: str = ""
    back: str = ""
    unfit_with: str = ""
    line: int = 0
    agreed: int = 0
    can_be_confirmed: bool = False
    confirmed: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    problems: tuple[Problem, ...] = ()
    stages: tuple[StageReport, ...] = ()
    challenges: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    thumb: str = ""
    note: str = ""
    reach: tuple[str, ...] | None = None  # None: not recorded

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Judgment":  # Any: JSON
        """Return the verdict from its published or stored JSON."""
        plain = {name: data[name] for name in _PLAIN if data.get(name)}
        return cls(
            data,
            **plain,
            confirmed=tuple(data.get("confirmed") or ()),
            fixes=tuple(Fix(**fix) for fix in data.get("fixes") or ()),
            problems=tuple(Problem.from_json(problem) for problem in data.get("problems") or ()),
            stages=tuple(StageReport(**stage) for stage in data.get("stages") or ()),
            challenges=tuple(data.get("challenges") or ()),
            predicted=tuple(data.get("predicted") or ()),
            reach=None if data.get("reach") is None else tuple(data["reach"]),
            disagreements=tuple(Disagreement(**row) for row in data.get("disagreements") or ()),
        )

    @classmethod
    def of(cls, verdict: Verdict) -> "Judgment":
        """Return the gate's verdict in this form."""
        return cls.from_json(verdict.to_json())

    @property
    def lacks_only_grants(self) -> bool:
        """True if it is rejected only until the user allows what it reaches."""
        codes = {problem.code for problem in self.refusals}
        return bool(codes) and codes <= GRANTABLE

    @property
    def doubts(self) -> tuple[str, ...]:
        """The unproven claims of an admitted function, unless a human has called it good."""
        if self.thumb == "good" or not self.admitted:
            return ()
        calls = tuple(
            f"nobody predicted what {one_line(call, 200)} returns" for call in self.challenges
        )
        unsettled = tuple(problem.message for problem in self.problems if problem.code in UNSETTLED)
        found = tuple(problem.message for problem in self.problems if problem.code in CHALLENGED)
        return (*calls, *unsettled) or (() if self.predicted else found)

    @property
    def is_doubted(self) -> bool:
        """True if trust takes longer, because of doubts or because examples leave much open."""
        codes = [problem.code for problem in self.problems]
        is_open = codes.count("weak-examples") >= _WEAK
        is_settled = self.thumb == "good" or bool(self.predicted) or not self.admitted
        return bool(self.doubts) or (is_open and not is_settled)

    @property
    def late(self) -> tuple[str, ...]:
        """The stages that ran out of time, each with how far it came."""
        return tuple(f"{stage.stage} ({stage.note})" for stage in self.stages if stage.late)

    @property
    def fails_examples(self) -> bool:
        """True if any of its examples failed; it may still be admitted as a draft."""
        return any(problem.code in FAILED_EXAMPLES for problem in self.problems)

    @property
    def taken_over(self) -> tuple[Disagreement, ...]:
        """The examples that were confirmed: they now state the returned value instead of another or none."""
        return tuple(
            row for row in self.disagreements if self.admitted and row.call in self.confirmed
        )

    @property
    def imported_hash(self) -> str:
        """The hash of the library's text that the function was imported from, or an empty text."""
        return str((self.document.get("imported") or {}).get("hash", ""))

    @property
    def needs(self) -> Grants:
        """The grants that the candidate needs."""
        return Grants.from_json(self.document.get("needs") or {})

    @property
    def refusals(self) -> tuple[Problem, ...]:
        """The problems that reject the candidate, in the order of `refusing`."""
        return refusing(self.problems)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the original JSON with what was changed or added since."""
        own = {field.name: to_json(getattr(self, field.name)) for field in fields(self)[1:]}
        added = {key: value for key, value in own.items() if value and key not in self.document}
        return {key: own.get(key, value) for key, value in self.document.items()} | added


_PLAIN = tuple(field.name for field in fields(Judgment) if field.type in (str, int, bool))


@dataclass(frozen=True, slots=True)
class PendingCandidate:
    """A rejected candidate that is kept as pending.

    `over` is the version that it would replace, `conflict` a diff to the saved one. `agent` is the agent that wrote all
    of it, through all attempts; `turn` is that of the last one.
    """

    code: str
    module: str
    reason: str
    over: str | None  # None: kept before this was recorded
    examples: tuple[GivenExample, ...]
    verdict: Judgment
    conflict: str | None = None
    asked: tuple[str, ...] | None = None  # calls with results that its author was asked to predict
    agent: str | None = None
    turn: str | None = None

    @classmethod
    def of(
        cls, candidate: Candidate, over: str, judgment: Judgment, conflict: str | None = None
    ) -> "PendingCandidate":
        """Return a candidate in the form in which it is stored."""
        plain = (
            candidate.code,
            candidate.module,
            candidate.reason,
            over,
            candidate.examples,
            judgment,
            conflict,
        )
        return cls(*plain, tuple(dict.fromkeys((*candidate.asked, *judgment.challenges))) or None)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "PendingCandidate":  # Any: JSON
        """Return the candidate from its stored JSON."""
        examples, verdict = (
            tuple(GivenExample(*example) for example in data["examples"]),
            data["verdict"],
        )
        plain = data["code"], data["module"], data["reason"], data.get("over")
        asked = tuple(data.get("asked") or ()) or None
        judged = Judgment.from_json(verdict), data.get("conflict"), asked
        return cls(*plain, examples, *judged, data.get("agent"), data.get("turn"))

    @property
    def text(self) -> str:
        """The text to edit: with the gate's fixes, if it could be read."""
        return self.verdict.source or self.code

    @property
    def waits_for_a_person(self) -> bool:
        """True if a person's yes to it is all that it lacks."""
        codes = {problem.code for problem in self.verdict.refusals}
        return bool(codes) and codes <= {"needs-yes", "pinned"} | GRANTABLE

    def content_in(self, snapshot: "Snapshot") -> str:
        """Return what an approval of it covers: its text, and all modules that it could use once it joins them."""
        modules = sorted((name, source.version) for name, source in snapshot.modules.items())
        return json.dumps([self.text, self.module, self.verdict.version, modules])

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the stored and published shape."""
        examples = [[example.call, example.expected, example.approx] for example in self.examples]
        data = {**fields_to_json(self), "examples": examples}
        return {key: value for key, value in data.items() if value is not None}


def facts_of(verdict: "Verdict | Judgment") -> tuple[str, ...]:
    """Return what the gate knows of a function that a person is asked to join: its reach, and its examples."""
    many = "1 example agrees" if verdict.agreed == 1 else f"{verdict.agreed} examples agree"
    return (f"What it reaches: {one_line(reach_words(verdict.reach or ()), 400)}.", f"{many}.")


async def pending_candidate(store: "FunctionStore", name: str) -> PendingCandidate | None:
    """Return the rejected candidate with this name, or None."""
    pending = await store.pending(name)
    return None if pending is None else PendingCandidate.from_json(pending)


def candidates_of(
    rows: Mapping[str, Mapping[str, Any]],
) -> dict[str, PendingCandidate]:  # Any: JSON
    """Return rejected candidates from their stored JSON, by name."""
    return {name: PendingCandidate.from_json(data) for name, data in rows.items()}


def answer_of(judgment: Judgment) -> ReaderAnswer | None:
    """Return a reader's answer about the description, or None if no reader was asked."""
    answer = judgment.document.get("reader")
    return ReaderAnswer.from_json(answer) if answer else None


async def judgment_on(store: "FunctionStore", version: str, name: str) -> Judgment | None:
    """Return the stored verdict on a version of a function, or None."""
    verdict = await store.verdict(version, name)
    return None if verdict is None else Judgment.from_json(verdict)


async def writer_of(function: "Function", store: "FunctionStore") -> str:
    """Return who wrote a function's version: `human` or `agent`."""
    judgment = await judgment_on(store, function.body_hash, function.name)
    return (judgment and judgment.by) or "human"


async def marked_as_broken(
    store: "FunctionStore", breakages: Iterable["Breakage"]
) -> list[SaveVerdict]:
    """Return the writes that mark functions which a change broke, with the hash of the code that broke them."""
    writes = list[SaveVerdict]()
    for name, breakage in {breakage.user.name: breakage for breakage in breakages}.items():
        saved = await judgment_on(store, breakage.user.body_hash, name)
        if saved is not None:
            marked = replace(saved, unfit_with=breakage.code).to_json()
            writes.append(SaveVerdict(breakage.user.body_hash, name, marked))
    return writes
