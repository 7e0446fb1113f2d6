"""A saved file before the gate: what cannot be called refuses, all else is said and warned of.

The text stages look at every public function; one import in a worker decides; only the examples of functions
whose own code, or code that it depends on, changed are run again, here and in the modules that use this one.
"""

import ast
import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sandbox.lines import lines_of

from ..aside import aside
from ..grants import NOTHING, Grants
from ..grants.content import modules_of
from ..grants.value import joined
from ..packages.projects import project_of
from ..problem import Place, Problem
from ..registry.function import Function, Reading
from ..registry.schema import read_module
from ..registry.snapshot import Snapshot
from ..registry.source import Source
from ..registry.uses import code_hash, importers, uses
from . import capability, conform, neighbours, proof, substance
from .alike.index import surroundings
from .candidate import Policy
from .draft import TOO_DEEP, Finding
from .examples.enough import is_unproven, too_few
from .grants import Way
from .proof import ExampleResult
from .rules import Rules, severity
from .tree import FunctionNode, find, functions, parse
from .trial import Bench, try_module
from .uses import needs_of
from .uses import uses as reached
from .verdict import Breakage, Disagreement, Standing

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_DRAFT: Final[Standing] = "draft"


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved file on its way through the gate."""

    reading: Reading
    snapshot: Snapshot
    policy: Policy
    rules: Rules
    previous: Reading | None = None
    problems: tuple[Problem, ...] = ()
    standings: tuple[tuple[str, Standing], ...] = ()
    disagreements: tuple[tuple[str, Disagreement], ...] = ()
    breakages: tuple[Breakage, ...] = ()
    is_loaded: bool = False
    granted: Grants = NOTHING
    lacks_package: bool = False

    @property
    def refuses(self) -> bool:
        """Something was found that refuses."""
        return any(problem.severity == "refuses" for problem in self.problems)

    def with_findings(self, stage: str, findings: Iterable[Finding]) -> "Saved":
        """The file with what a stage found, each weighed by the policy."""
        path = self.reading.source.path
        found = [
            Problem(
                one.code, one.what, Place(path, one.line, one.column), one.mend, severity(self.policy, stage, one.code)
            )
            for one in findings
        ]
        return replace(self, problems=(*self.problems, *found))

    def nodes(self) -> Iterator[tuple[ast.Module, FunctionNode, Function]]:
        """The tree of each function that the file offers."""
        tree = parse(self.reading.source.text)
        if isinstance(tree, ast.Module):
            for function in self.reading.functions:
                node = find(tree, function.name)
                if node is not None:
                    yield tree, node, function


def read_saved(source: Source, snapshot: Snapshot, rules: Rules, policy: Policy, previous: Reading | None) -> Saved:
    """The file as the registry reads it; its problems are weighed by the policy."""
    reading = read_module(source, rules.module_bytes)
    problems = tuple(
        one if one.severity == "refuses" else replace(one, severity=severity(policy, "conform", one.code))
        for one in reading.problems
    )
    return Saved(reading, snapshot, policy, rules, previous, problems)


def look(saved: Saved) -> Saved:
    """The file with what its text alone shows: conform, substance, capability; what is too deep for that goes on."""
    try:
        return _look(saved)
    except RecursionError:
        return saved.with_findings("substance", [TOO_DEEP])


def _look(saved: Saved) -> Saved:
    text = saved.reading.source.text
    for _, node, _ in saved.nodes():
        saved = saved.with_findings("conform", conform.check(node))
        saved = saved.with_findings("substance", substance.check(node, text))
    parsed = parse(text)
    if isinstance(parsed, ast.Module):
        saved = saved.with_findings("conform", conform.undefined(text, parsed))
        way: Way = "calling" if saved.policy == "human" else "none"
        saved = saved.with_findings("capability", capability.check(parsed, saved.rules.packages, saved.granted, way))
    return saved


async def try_import(saved: Saved, bench: Bench) -> Saved:
    """The file once it has been imported in a worker; one that lacks but a package is taken, and proven later."""
    reading, problems = await try_module(saved.reading, saved.snapshot, bench)
    if _lacks_package(saved, problems):
        return replace(saved, is_loaded=True, lacks_package=True)
    return replace(saved, reading=reading, problems=(*saved.problems, *problems), is_loaded=not problems)


def _lacks_package(saved: Saved, problems: tuple[Problem, ...]) -> bool:
    """Whether the import failed for a package that its text, or one that it imports, needs: a human may grant it."""
    found = _NO_MODULE.search(problems[0].what) if len(problems) == 1 else None
    if found is None or any(function.unresolved for function in saved.reading.functions):
        return False
    module, after = saved.reading.source.module, saved.snapshot.with_module(saved.reading)
    trees = [parse(source.text) for source in modules_of(module, after).values()]
    needs = joined(needs_of(reached(tree, saved.rules.packages)) for tree in trees if isinstance(tree, ast.Module))
    return project_of(found[1]) in needs.packages


async def prove_changed(saved: Saved, bench: Bench) -> Saved:
    """The file with what the examples of those of its functions showed whose code, or code behind it, changed."""
    snapshot = saved.snapshot.with_module(saved.reading)
    size = len(saved.reading.source.text)
    again = await aside(size, _to_try_again, saved, snapshot)
    changed = [found for found in saved.nodes() if found[2].name in again]
    if saved.lacks_package:
        drafts = tuple((function.name, _DRAFT) for _, _, function in changed)
        return replace(saved, standings=(*saved.standings, *drafts))
    needs = await aside(size, _needs, saved)
    async with asyncio.TaskGroup() as group:
        runs = [
            group.create_task(proof.run(function.examples, function.module, snapshot, bench, returns=function.returns))
            for _, _, function in changed
        ]
    tried = [(*found, task.result()) for found, task in zip(changed, runs, strict=True)]
    return await aside(size, _with_results, saved, tried, needs)


_Tried: TypeAlias = tuple[ast.Module, FunctionNode, Function, Sequence[ExampleResult]]


def _with_results(saved: Saved, tried: Sequence[_Tried], needs: Grants) -> Saved:
    names = {function.name for function in saved.reading.functions}
    for tree, node, function, all_results in tried:
        results = [one for one in all_results if not proof.wants_grant(one, needs)]
        unproven = is_unproven(around(tree, function.name, names), node, function)
        differing = [one for one in results if not one.agreed]
        found = [proof.told(one, function.name) for one in differing]
        saved = saved.with_findings("examples", [*found, *too_few(function, function.examples, unproven)])
        named = [(function.name, Disagreement(one.call, one.expected, one.returned, one.line)) for one in differing]
        standing: Standing = "trial" if results and all(one.agreed for one in results) else "draft"
        saved = replace(
            saved,
            standings=(*saved.standings, (function.name, standing)),
            disagreements=(*saved.disagreements, *named),
        )
    return saved


def _needs(saved: Saved) -> Grants:
    parsed = parse(saved.reading.source.text)
    return needs_of(reached(parsed, saved.rules.packages)) if isinstance(parsed, ast.Module) else NOTHING


def around(tree: ast.Module, name: str, offered: Collection[str]) -> ast.Module:
    """The module without the functions that it offers beside this one and those that this one uses."""
    others = {node.name: node for node in functions(tree) if node.name in offered}
    waiting = [name] if name in others else []
    while waiting:
        words = {node.id for node in ast.walk(others.pop(waiting.pop())) if isinstance(node, ast.Name)}
        waiting += words & others.keys() - set(waiting)
    left = set(map(id, others.values()))
    return ast.Module([node for node in tree.body if id(node) not in left], tree.type_ignores)


def _to_try_again(saved: Saved, now: Snapshot) -> set[str]:
    """The functions of the file that may give another result than before."""
    own, before = _different(saved), _before(saved)
    offered = {one.name: one for one in saved.reading.functions}
    kept = offered.keys() - own
    if before is None or not kept:
        return set(offered)
    module = saved.reading.source.module
    if surroundings(module, before) == surroundings(module, now):  # then only what names a changed one can differ
        lines = lines_of(saved.reading.source.text)
        kept = {name for name in kept if any(word in _text(offered[name], lines) for word in own)}
    return (own & offered.keys()) | {name for name in kept if _differs(name, before, now)}


def _different(saved: Saved) -> set[str]:
    """The functions that are new, gone, or have another text."""
    old = {one.name: one.body_hash for one in saved.previous.functions} if saved.previous else {}
    new = {one.name: one.body_hash for one in saved.reading.functions}
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _before(saved: Saved) -> Snapshot | None:
    """The snapshot with the file as it was."""
    if saved.previous is None or saved.snapshot.readings.get(saved.reading.source.module) is saved.previous:
        return saved.snapshot if saved.previous else None
    return saved.snapshot.with_module(saved.previous)


def _text(function: Function, lines: list[str]) -> str:
    return "".join(lines[function.line - 1 : function.end_line])


def _differs(name: str, before: Snapshot, now: Snapshot) -> bool:
    """A function, or code that it may use, is not as it was."""
    old, new = before.functions.get(name), now.functions.get(name)
    return old is None or new is None or code_hash(old, before) != code_hash(new, now)


async def try_users(saved: Saved, bench: Bench) -> tuple[Saved, str]:
    """The file with what it changes for the functions of other modules that use it; and what was reached of them."""
    before = _before(saved)
    if before is None:
        return saved, ""
    now = saved.snapshot.with_module(saved.reading)
    users = [name for name in _users(saved, before) if _differs(name, before, now)]
    if not users:
        return saved, ""
    tried = await neighbours.try_callers(users, before, now, bench, saved.rules.neighbours_s)
    changed = _in_order(saved)
    for one in tried.broken:
        near = uses(one.caller, now)
        name = next((name for name in changed if name in near), changed[0] if changed else "")
        found = neighbours.told(one, name or saved.reading.source.module)
        line = next((each.line for each in saved.reading.functions if each.name == name), 0)
        saved = saved.with_findings(neighbours.STAGE, [replace(found, line=line)])
        known = Breakage(name, one.caller, code_hash(one.caller, now), neighbours.differs(one))
        saved = replace(saved, breakages=(*saved.breakages, known))
    return saved, tried.note


def _in_order(saved: Saved) -> list[str]:
    """The functions that changed, as they stand in the file; those that are gone come last."""
    different = _different(saved)
    there = [one.name for one in saved.reading.functions if one.name in different]
    return [*there, *sorted(different - {*there})]


def _users(saved: Saved, before: Snapshot) -> Iterator[str]:
    """The functions of other modules that may use this one: those that import it, or call its functions by name."""
    module, names = saved.reading.source.module, [f'"{name}"' for name in _different(saved)]
    near = set(importers(module, before))
    for name, source in before.modules.items() if names else ():
        if ".call(" in source.text and any(word in source.text.replace("'", '"') for word in names):
            near.add(name)
    if near - {module}:
        yield from (name for name, one in before.functions.items() if one.module in near and one.module != module)
