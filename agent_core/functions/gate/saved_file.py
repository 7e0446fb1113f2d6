"""A saved file before the gate: its functions are judged as candidates, and the module that they share as a whole.

The text stages check every public function; one import in a worker decides; examples only run again for functions
with changed code of their own, or changed code that they depend on, here and in the modules that use this one. What a
save does not wait for looks at one function after the other, as at a candidate.
"""

import ast
import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from agent_core.access.grants import Grants
from agent_core.base.offload import aside
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.registry.uses import code_hash, uses, using_modules
from sandbox.wire.lines import lines_of

from . import capability, conform, neighbours, proof, substance
from .candidate import Candidate, Policy
from .draft import Draft, ExampleTrials
from .rules import Rules
from .tree import find, functions, parse
from .trial import TrialTools, missing_package, try_module
from .uses import modules_of_workspace, needs_of
from .uses import uses as reached
from .verdict import Breakage, Disagreement, ModuleVerdict, StageReport, Standing

_DRAFT: Final[Standing] = "draft"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFile(Draft):
    """A saved file on its way through the gate: a draft of the whole module, and what is known of its functions."""

    source: ModuleSource
    previous: ModuleReading | None = None
    standings: tuple[tuple[str, Standing], ...] = ()
    disagreements: tuple[tuple[str, Disagreement], ...] = ()
    breakages: tuple[Breakage, ...] = ()
    lacks_package: bool = False

    @classmethod
    def of(
        cls,
        source: ModuleSource,
        snapshot: Snapshot,
        policy: Policy,
        rules: Rules,
        previous_reading: ModuleReading | None,
    ) -> "SavedFile":
        """Return a file that no stage has seen yet."""
        candidate = Candidate("", source.text, source.module, file=source.path, exact=True)
        return cls(candidate, policy, rules, snapshot, source.text, source=source, previous=previous_reading)

    @property
    def module(self) -> ModuleReading:
        """The file as the registry reads it."""
        assert self.reading is not None
        return self.reading

    @property
    def is_parsed(self) -> bool:
        """True if the file is Python."""
        return self.reading is not None and self.reading.parsed

    def verdict(self, reports: tuple[StageReport, ...]) -> ModuleVerdict:
        """Return the answer: a file that can be imported is admitted, unless the agent's rules apply to it."""
        admitted = self.trial is not None and not (self.refuses and self.policy == "agent")
        verdict = ModuleVerdict(self.module, admitted, self.problems, reports, self.standings, self.disagreements)
        return replace(verdict, breakages=self.breakages, policy=self.policy, previous=self.previous)


def read_file(file: SavedFile) -> SavedFile:
    """Return the file as the registry reads it; its problems are weighed by the policy."""
    reading = read_module(file.source, file.rules.module_bytes, modules=file.snapshot.modules)
    tree = parse(file.text) if reading.parsed else None
    file = replace(file, reading=reading, tree=tree if isinstance(tree, ast.Module) else None)
    return file.with_problems(conform.weighed(problem, file) for problem in reading.problems)


def look(file: SavedFile) -> SavedFile:
    """Return the file with the findings from its text: each function's as a candidate's, then those of the module."""
    if not file.is_parsed:
        return file.skip("the file is not Python")
    if file.tree is None:
        return file
    after = file
    for function in file.module.functions:
        if node := find(file.tree, function.name):
            after = after.with_findings(conform.STAGE, conform.check(node))
            after = after.with_findings(substance.STAGE, substance.check(node))
    return capability.capability(after.with_findings(conform.STAGE, conform.undefined(file.text, file.tree)))


async def try_import(file: SavedFile, trial_tools: TrialTools) -> SavedFile:
    """Return the file after an import in a worker; one that is only missing a package is accepted, and proven later."""
    if not file.is_parsed:
        return file.skip("the file is not Python")
    reading, problems = await try_module(file.module, file.snapshot, trial_tools)
    is_typed = not any(function.unresolved for function in file.module.functions)  # else only the import says how
    if is_typed and missing_package(file.module, problems, file.snapshot, file.rules.packages):
        return replace(file, trial=file.snapshot.with_module(file.module), lacks_package=True)
    trial = None if problems else file.snapshot.with_module(reading)
    return replace(file, reading=reading, trial=trial).with_problems(problems)


async def prove_changed(file: SavedFile, trial: TrialTools) -> SavedFile:
    """Return the file with the example results of functions with changed code, or changed code behind it."""
    if file.trial is None:
        return file.skip("the file could not be imported")
    changed_names = await aside(file.size, _to_try_again, file, file.trial)
    names = [function.name for function in file.module.functions if function.name in changed_names]
    if file.lacks_package:
        return replace(file, standings=(*file.standings, *((name, _DRAFT) for name in names)))
    verdict = file.verdict(())
    drafts = [draft for name in names if (draft := draft_of(name, verdict, file.trial, file.rules))]
    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(proof.prove(replace(draft, problems=()), trial)) for draft in drafts]
    for draft in (run.result() for run in runs):
        failing = [problem for problem in draft.problems if problem.code.startswith("example-")]
        rows = [(problem.evidence[0], problem.where.line) for problem in failing]
        differing = [Disagreement(fact.call, fact.expected, fact.returned, line) for fact, line in rows]
        standing: Standing = "trial" if draft.trials.agreed and not differing else _DRAFT
        file = replace(
            file.with_problems(draft.problems),
            standings=(*file.standings, (draft.candidate.name, standing)),
            disagreements=(*file.disagreements, *((draft.candidate.name, row) for row in differing)),
        )
    return file


def _needs(tree: ast.Module, rules: Rules, snapshot: Snapshot) -> Grants:
    """Return what the text of one function of a file needs."""
    return needs_of(reached(tree, rules.packages, own=modules_of_workspace(snapshot.modules)))


def around(tree: ast.Module, name: str, offered: Collection[str]) -> ast.Module:
    """Return the module without the other functions that it exports, except those that this one uses."""
    others = {node.name: node for node in functions(tree) if node.name in offered}
    waiting = [name] if name in others else []
    while waiting:
        words = {node.id for node in ast.walk(others.pop(waiting.pop())) if isinstance(node, ast.Name)}
        waiting += words & others.keys() - set(waiting)
    excluded_ids = set(map(id, others.values()))
    return ast.Module([node for node in tree.body if id(node) not in excluded_ids], tree.type_ignores)


def _to_try_again(file: SavedFile, snapshot: Snapshot) -> set[str]:
    """Return the functions of the file that may give another result than before."""
    own, before = _different(file), _before(file)
    offered = {function.name: function for function in file.module.functions}
    unchanged = offered.keys() - own
    if before is None or not unchanged:
        return set(offered)
    module = file.source.module
    if _surroundings(module, before) == _surroundings(
        module, snapshot
    ):  # then only what names a changed one can differ
        lines = lines_of(file.text)
        unchanged = {name for name in unchanged if any(word in _text(offered[name], lines) for word in own)}
    return (own & offered.keys()) | {name for name in unchanged if _differs(name, before, snapshot)}


def _surroundings(module: str, snapshot: Snapshot) -> str:
    """Return a module's text without the functions it exports: imports, constants, helpers."""
    source = snapshot.modules.get(module)
    if source is None:
        return ""
    lines = lines_of(source.text)
    for function in snapshot.readings[module].functions:
        lines[function.line - 1 : function.end_line] = [""] * (function.end_line - function.line + 1)
    return "".join(lines)


def _different(file: SavedFile) -> set[str]:
    """Return the functions that are new, deleted, or have another text."""
    old = {function.name: function.body_hash for function in file.previous.functions} if file.previous else {}
    new = {function.name: function.body_hash for function in file.module.functions}
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _before(file: SavedFile) -> Snapshot | None:
    """Return the snapshot with the file as it was."""
    if file.previous is None or file.snapshot.readings.get(file.source.module) is file.previous:
        return file.snapshot if file.previous else None
    return file.snapshot.with_module(file.previous)


def _text(function: Function, lines: list[str]) -> str:
    return "".join(lines[function.line - 1 : function.end_line])


def _differs(name: str, snapshot: Snapshot, new_snapshot: Snapshot) -> bool:
    """Check whether a function, or code that it may use, has changed."""
    old, new = snapshot.functions.get(name), new_snapshot.functions.get(name)
    return old is None or new is None or code_hash(old, snapshot) != code_hash(new, new_snapshot)


async def try_users(file: SavedFile, trial: TrialTools) -> SavedFile:
    """Return the file with its effect on functions of other modules that use it, and a note of what was reached."""
    before, now = _before(file), file.trial
    if before is None or now is None:
        return file.skip("nothing uses the file yet")
    users = [name for name in _users(file, before) if _differs(name, before, now)]
    if not users:
        return file.skip("what uses the file is unchanged")
    tried = await neighbours.try_callers(users, before, now, trial, file.rules.neighbours_s)
    changed = _in_order(file)
    for broken in tried.broken:
        used_names = uses(broken.caller, now)
        name = next((name for name in changed if name in used_names), changed[0] if changed else "")
        finding = neighbours.caller_finding(broken, name or file.source.module)
        line = next((function.line for function in file.module.functions if function.name == name), 0)
        file = file.with_findings(neighbours.STAGE, [replace(finding, line=line)])
        breakage = Breakage(name, broken.caller, code_hash(broken.caller, now), neighbours.differs(broken))
        file = replace(file, breakages=(*file.breakages, breakage))
    return replace(file, note=tried.note)


def _in_order(file: SavedFile) -> list[str]:
    """Return the changed functions in the order of the file; deleted ones come last."""
    different = _different(file)
    names = [function.name for function in file.module.functions if function.name in different]
    return [*names, *sorted(different - {*names})]


def _users(file: SavedFile, snapshot: Snapshot) -> Iterator[str]:
    """Yield functions of other modules that may use this one."""
    modules = set(using_modules(file.source.module, snapshot))
    if modules:
        yield from (name for name, function in snapshot.functions.items() if function.module in modules)


def draft_of(name: str, verdict: ModuleVerdict, snapshot: Snapshot, rules: Rules) -> Draft | None:
    """Return a function of a judged file as a draft for the stages that a save does not wait for: as if it had come
    alone into the module as it is, with its examples run. None if the snapshot does not have this file.

    Of copies in one file the first stays: it is not compared with those that are looked at after it.
    """
    reading, standings = verdict.reading, dict(verdict.standings)
    places = {function.name: function for function in reading.functions}
    function, tree = places.get(name), parse(reading.source.text)
    is_held = snapshot.modules.get(reading.source.module) == reading.source
    if function is None or not is_held or not isinstance(tree, ast.Module):
        return None
    text = _text(function, lines_of(reading.source.text))
    replaces = verdict.previous is not None and any(known.name == name for known in verdict.previous.functions)
    lines, alone = range(function.line, function.end_line + 1), around(tree, name, places)
    return Draft(
        Candidate(name, text, function.module, replaces=replaces, file=function.path, exact=True),
        verdict.policy,
        replace(rules, off=frozenset("*")),
        snapshot,
        text,
        alone,
        tuple(problem for problem in verdict.problems if problem.where.line in lines),
        own=reading,
        reading=reading,
        trial=snapshot,
        trials=ExampleTrials(len(function.examples) if standings.get(name) == "trial" else 0),
        apart=frozenset(other for other in standings if other in places and places[other].line > function.line),
        needs=_needs(alone, rules, snapshot),
    )
