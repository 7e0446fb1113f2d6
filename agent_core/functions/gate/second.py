"""The second look at a saved file: a function of it as the draft for stages 5, 9 and 10.

It is as if the function had come alone into the module as it is, with its examples run and its text looked at:
these stages then judge it as they judge a candidate.
"""

import ast
from typing import Final

from sandbox.wire.lines import lines_of

from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.snapshot import Snapshot
from .candidate import Candidate, Policy
from .draft import Draft, ExampleTrials
from .rules import Rules
from .saved import around
from .tree import parse
from .verdict import ModuleVerdict

STAGES: Final = frozenset({"duplicate", "mutation", "robust"})
"""What a save is not held up for."""


def draft_of(
    name: str, verdict: ModuleVerdict, snapshot: Snapshot, ground: tuple[Policy, Rules], previous: ModuleReading | None
) -> Draft | None:
    """Return a function of the file, after its examples ran, as a draft; None if the snapshot does not have this file.

    Of copies in one file the first stays: it is not compared with those that are looked at after it.
    """
    reading = verdict.reading
    places = {function.name: function for function in reading.functions}
    function, standings = places.get(name), dict(verdict.standings)
    tree = parse(reading.source.text)
    is_held = snapshot.modules.get(reading.source.module) == reading.source
    if function is None or not is_held or not isinstance(tree, ast.Module):
        return None
    policy, rules = ground
    text = "".join(lines_of(reading.source.text)[function.line - 1 : function.end_line])
    replaces = previous is not None and any(function.name == name for function in previous.functions)
    agreed = len(function.examples) if standings.get(name) == "trial" else 0
    return Draft(
        Candidate(name, text, function.module, replaces=replaces, file=function.path, exact=True),
        policy,
        rules,
        snapshot,
        text,
        around(tree, name, places),
        tuple(problem for problem in verdict.problems if _is_in(function, problem.where.line)),
        own=reading,
        reading=reading,
        trial=snapshot,
        trials=ExampleTrials(agreed),
        apart=frozenset(
            other_name for other_name in standings if other_name in places and places[other_name].line > function.line
        ),
    )


def _is_in(function: Function, line: int) -> bool:
    return function.line <= line <= function.end_line
