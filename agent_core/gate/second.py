"""The second look at a saved file: a function of it as the draft that stages 5, 9 and 10 take.

It is as if the function had come alone into the module as it is, with its examples run and its text looked at:
these stages then judge it as they judge a candidate.
"""

import ast
from typing import Final

from sandbox.lines import lines_of

from ..registry.function import Function, Reading
from ..registry.snapshot import Snapshot
from .candidate import Candidate, Policy
from .draft import Draft, Trials
from .rules import Rules
from .saved import around
from .tree import parse
from .verdict import ModuleVerdict

STAGES: Final = frozenset({"duplicate", "bite", "robust"})
"""What a save is not held up for."""


def draft_of(
    name: str, verdict: ModuleVerdict, snapshot: Snapshot, ground: tuple[Policy, Rules], previous: Reading | None
) -> Draft | None:
    """A function of the file, whose examples were run, as a draft; None if the snapshot has not this file.

    Of copies in one file the first stays: it is not compared with those that are looked at after it.
    """
    reading = verdict.reading
    places = {each.name: each for each in reading.functions}
    function, standings = places.get(name), dict(verdict.standings)
    tree = parse(reading.source.text)
    is_held = snapshot.modules.get(reading.source.module) == reading.source
    if function is None or not is_held or not isinstance(tree, ast.Module):
        return None
    policy, rules = ground
    text = "".join(lines_of(reading.source.text)[function.line - 1 : function.end_line])
    replaces = previous is not None and any(each.name == name for each in previous.functions)
    agreed = len(function.examples) if standings.get(name) == "trial" else 0
    return Draft(
        Candidate(name, text, function.module, replaces=replaces, file=function.path, exact=True),
        policy,
        rules,
        snapshot,
        text,
        around(tree, name, places),
        tuple(one for one in verdict.problems if _is_in(function, one.where.line)),
        own=reading,
        reading=reading,
        trial=snapshot,
        trials=Trials(agreed),
        apart=frozenset(other for other in standings if other in places and places[other].line > function.line),
    )


def _is_in(function: Function, line: int) -> bool:
    return function.line <= line <= function.end_line
