"""A saved file before the gate: it is rejected if it cannot be called; all other findings are warnings.

The text stages check every public function; one import in a worker decides; examples only run again for functions
with changed code of their own, or changed code that they depend on, here and in the modules that use this one.
"""

import ast
import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sandbox.wire.lines import lines_of

from agent_core.base.offload import aside
from agent_core.access.grants import NOTHING, Grants
from agent_core.access.grants.content import modules_of
from agent_core.access.grants.value import joined
from agent_core.access.packages.projects import project_of
from agent_core.base.problem import Place, Problem
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from agent_core.registry.uses import code_hash, importers, uses
from . import capability, conform, neighbours, proof, substance
from .clones.index import surroundings
from .candidate import Policy
from .draft import TOO_DEEP, Finding
from .examples.enough import is_unproven, too_few
from .grants import Way
from .proof import ExampleResult
from .rules import Rules, severity
from .tree import FunctionNode, find, functions, parse
from .trial import TrialTools, try_module
from .uses import needs_of
from .uses import uses as reached
from .verdict import Breakage, Disagreement, Standing

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_DRAFT: Final[Standing] = "draft"


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved file on its way through the gate."""

    reading: ModuleReading
    snapshot: Snapshot
    policy: Policy
    rules: Rules
    previous: ModuleReading | None = None
    problems: tuple[Problem, ...] = ()
    standings: tuple[tuple[str, Standing], ...] = ()
    disagreements: tuple[tuple[str, Disagreement], ...] = ()
    breakages: tuple[Breakage, ...] = ()
    is_loaded: bool = False
    granted: Grants = NOTHING
    lacks_package: bool = False

    @property
    def refuses(self) -> bool:
        """True if there is a finding that causes a rejection."""
        return any(problem.severity == "refuses" for problem in self.problems)

    def with_findings(self, stage: str, findings: Iterable[Finding]) -> "Saved":
        """Return the file with a stage's findings, each weighed by the policy."""
        path = self.reading.source.path
        problems = [
            Problem(
                finding.code,
                finding.message,
                Place(path, finding.line, finding.column),
                finding.fix,
                severity(self.policy, stage, finding.code),
            )
            for finding in findings
        ]
        return replace(self, problems=(*self.problems, *problems))

    def nodes(self) -> Iterator[tuple[ast.Module, FunctionNode, Function]]:
        """Yield the tree of each function that the file exports."""
        tree = parse(self.reading.source.text)
        if isinstance(tree, ast.Module):
            for function in self.reading.functions:
                node = find(tree, function.name)
                if node is not None:
                    yield tree, node, function


def read_saved(
    source: ModuleSource, snapshot: Snapshot, rules: Rules, policy: Policy, previous: ModuleReading | None
) -> Saved:
    """Return the file as the registry reads it; its problems are weighed by the policy."""
    reading = read_module(source, rules.module_bytes)
    problems = tuple(
        problem
        if problem.severity == "refuses"
        else replace(problem, severity=severity(policy, "conform", problem.code))
        for problem in reading.problems
    )
    return Saved(reading, snapshot, policy, rules, previous, problems)


def look(saved: Saved) -> Saved:
    """Return the file with the findings from its text: conform, substance, capability; one nested too deeply
    continues.
    """
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
        approval_mode: Way = "calling" if saved.policy == "human" else "none"
        saved = saved.with_findings(
            "capability", capability.check(parsed, saved.rules.packages, saved.granted, approval_mode)
        )
    return saved


async def try_import(saved: Saved, bench: TrialTools) -> Saved:
    """Return the file after an import in a worker; one that is only missing a package is accepted, and proven later."""
    reading, problems = await try_module(saved.reading, saved.snapshot, bench)
    if _lacks_package(saved, problems):
        return replace(saved, is_loaded=True, lacks_package=True)
    return replace(saved, reading=reading, problems=(*saved.problems, *problems), is_loaded=not problems)


def _lacks_package(saved: Saved, problems: tuple[Problem, ...]) -> bool:
    """Check whether the import failed for a package that it, or a module it imports, needs: the user may grant it."""
    match = _NO_MODULE.search(problems[0].message) if len(problems) == 1 else None
    if match is None or any(function.unresolved for function in saved.reading.functions):
        return False
    module, after = saved.reading.source.module, saved.snapshot.with_module(saved.reading)
    trees = [parse(source.text) for source in modules_of(module, after).values()]
    needs = joined(needs_of(reached(tree, saved.rules.packages)) for tree in trees if isinstance(tree, ast.Module))
    return project_of(match[1]) in needs.packages


async def prove_changed(saved: Saved, bench: TrialTools) -> Saved:
    """Return the file with the example results of functions with changed code, or changed code behind it."""
    snapshot = saved.snapshot.with_module(saved.reading)
    size = len(saved.reading.source.text)
    changed_names = await aside(size, _to_try_again, saved, snapshot)
    changed = [entry for entry in saved.nodes() if entry[2].name in changed_names]
    if saved.lacks_package:
        drafts = tuple((function.name, _DRAFT) for _, _, function in changed)
        return replace(saved, standings=(*saved.standings, *drafts))
    needs = await aside(size, _needs, saved)
    async with asyncio.TaskGroup() as group:
        runs = [
            group.create_task(proof.run(function.examples, function.module, snapshot, bench, returns=function.returns))
            for _, _, function in changed
        ]
    tried = [(*entry, task.result()) for entry, task in zip(changed, runs, strict=True)]
    return await aside(size, _with_results, saved, tried, needs)


_Tried: TypeAlias = tuple[ast.Module, FunctionNode, Function, Sequence[ExampleResult]]


def _with_results(saved: Saved, tried: Sequence[_Tried], needs: Grants) -> Saved:
    names = {function.name for function in saved.reading.functions}
    for tree, node, function, all_results in tried:
        results = [result for result in all_results if not proof.wants_grant(result, needs)]
        unproven = is_unproven(around(tree, function.name, names), node, function)
        differing = [result for result in results if not result.agreed]
        findings = [proof.example_finding(result, function.name) for result in differing]
        saved = saved.with_findings("examples", [*findings, *too_few(function, function.examples, unproven)])
        named = [
            (function.name, Disagreement(result.call, result.expected, result.returned, result.line))
            for result in differing
        ]
        standing: Standing = "trial" if results and all(result.agreed for result in results) else "draft"
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
    """Return the module without the other functions that it exports, except those that this one uses."""
    others = {node.name: node for node in functions(tree) if node.name in offered}
    waiting = [name] if name in others else []
    while waiting:
        words = {node.id for node in ast.walk(others.pop(waiting.pop())) if isinstance(node, ast.Name)}
        waiting += words & others.keys() - set(waiting)
    excluded_ids = set(map(id, others.values()))
    return ast.Module([node for node in tree.body if id(node) not in excluded_ids], tree.type_ignores)


def _to_try_again(saved: Saved, now: Snapshot) -> set[str]:
    """Return the functions of the file that may give another result than before."""
    own, before = _different(saved), _before(saved)
    offered = {function.name: function for function in saved.reading.functions}
    unchanged = offered.keys() - own
    if before is None or not unchanged:
        return set(offered)
    module = saved.reading.source.module
    if surroundings(module, before) == surroundings(module, now):  # then only what names a changed one can differ
        lines = lines_of(saved.reading.source.text)
        unchanged = {name for name in unchanged if any(word in _text(offered[name], lines) for word in own)}
    return (own & offered.keys()) | {name for name in unchanged if _differs(name, before, now)}


def _different(saved: Saved) -> set[str]:
    """Return the functions that are new, deleted, or have another text."""
    old = {function.name: function.body_hash for function in saved.previous.functions} if saved.previous else {}
    new = {function.name: function.body_hash for function in saved.reading.functions}
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _before(saved: Saved) -> Snapshot | None:
    """Return the snapshot with the file as it was."""
    if saved.previous is None or saved.snapshot.readings.get(saved.reading.source.module) is saved.previous:
        return saved.snapshot if saved.previous else None
    return saved.snapshot.with_module(saved.previous)


def _text(function: Function, lines: list[str]) -> str:
    return "".join(lines[function.line - 1 : function.end_line])


def _differs(name: str, before: Snapshot, now: Snapshot) -> bool:
    """Check whether a function, or code that it may use, has changed."""
    old, new = before.functions.get(name), now.functions.get(name)
    return old is None or new is None or code_hash(old, before) != code_hash(new, now)


async def try_users(saved: Saved, bench: TrialTools) -> tuple[Saved, str]:
    """Return the file with its effect on functions of other modules that use it, and a note of what was reached."""
    before = _before(saved)
    if before is None:
        return saved, ""
    now = saved.snapshot.with_module(saved.reading)
    users = [name for name in _users(saved, before) if _differs(name, before, now)]
    if not users:
        return saved, ""
    tried = await neighbours.try_callers(users, before, now, bench, saved.rules.neighbours_s)
    changed = _in_order(saved)
    for broken in tried.broken:
        used_names = uses(broken.caller, now)
        name = next((name for name in changed if name in used_names), changed[0] if changed else "")
        finding = neighbours.caller_finding(broken, name or saved.reading.source.module)
        line = next((function.line for function in saved.reading.functions if function.name == name), 0)
        saved = saved.with_findings(neighbours.STAGE, [replace(finding, line=line)])
        breakage = Breakage(name, broken.caller, code_hash(broken.caller, now), neighbours.differs(broken))
        saved = replace(saved, breakages=(*saved.breakages, breakage))
    return saved, tried.note


def _in_order(saved: Saved) -> list[str]:
    """Return the changed functions in the order of the file; deleted ones come last."""
    different = _different(saved)
    names = [function.name for function in saved.reading.functions if function.name in different]
    return [*names, *sorted(different - {*names})]


def _users(saved: Saved, before: Snapshot) -> Iterator[str]:
    """Yield functions of other modules that may use this one: they import it, or call its functions by name."""
    module, names = saved.reading.source.module, [f'"{name}"' for name in _different(saved)]
    modules = set(importers(module, before))
    for name, source in before.modules.items() if names else ():
        if ".call(" in source.text and any(word in source.text.replace("'", '"') for word in names):
            modules.add(name)
    if modules - {module}:
        yield from (
            name
            for name, function in before.functions.items()
            if function.module in modules and function.module != module
        )
