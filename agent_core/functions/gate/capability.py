"""Stage 6, capability: the grants that a function would need, compared with those that it has."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from agent_core.access.grants import Grants
from agent_core.access.grants.content import Part, parts_of
from agent_core.base.problem import Problem
from agent_core.registry.module_edits import place_function

from .draft import D, Finding
from .grants import ADVICE, FIXES, Way
from .tree import context_nodes, parse
from .uses import Use, is_program, modules_of_workspace, needs_of, uses

STAGE = "capability"
EFFECTS = frozenset({"call", "fetch", "secret", "memory", "now"})


def capability(draft: D) -> D:
    """Return the draft with every use that needs a grant, and with those that have none."""
    if draft.tree is None:
        return draft.skip("the code could not be read")
    own = modules_of_workspace(draft.snapshot.modules, draft.granted)
    through = (*_through_its_module(draft, own), *_through_modules(draft, own))
    all_uses = [*uses(draft.tree, draft.rules.packages, draft.guarded, own), *through]
    draft = replace(draft, needs=needs_of(all_uses), asking=_lines(all_uses, draft.granted))
    is_imported = draft.policy == "import" and draft.approval_mode == "absent"
    return draft.with_findings(
        STAGE, lacking(all_uses, draft.granted, "importing" if is_imported else draft.approval_mode)
    )


def _through_its_module(draft: D, own: frozenset[str]) -> Iterator[Use]:
    """Yield the packages that the module which a candidate joins imports at its top, for each of its functions."""
    around = draft.snapshot.modules.get(draft.candidate.module)
    known = (*draft.rules.packages, *sorted(own))
    if around is None or draft.function is None or not imported_at_the_top(around.text, known):
        return  # most modules import none, and need not be put together with the candidate
    is_library = draft.policy == "import"
    text = place_function(around.text, draft.text, draft.candidate.name, path=around.path, with_statements=is_library)
    present = imported_at_the_top(draft.text, draft.rules.packages)
    for use in () if isinstance(text, Problem) else uses_at_import(text, known):
        if use.kind == "packages" and use.item not in present:
            message = f"module `{draft.candidate.module}`, which it joins, needs the grant `packages` ({use.item})"
            yield replace(use, finding=replace(use.finding, message=message, line=draft.function.lineno, column=0))


def _through_modules(draft: D, own: frozenset[str]) -> Iterator[Use]:
    """Yield the packages that a candidate needs for what it uses of other modules, at the import of the first."""
    imports = [node for node in ast.walk(draft.tree) if isinstance(node, ast.Import | ast.ImportFrom)]  # type: ignore[arg-type]
    node = next((node for node in imports if getattr(node, "level", 0) or "functions" in ast.unparse(node)), None)
    if node is None or not draft.candidate.name:
        return
    texts = {module: source.text for module, source in draft.snapshot.modules.items()}
    function = draft.candidate.module, draft.candidate.name
    others = tuple(sorted({**texts, draft.candidate.module: draft.text}.items()))
    for package in packages_used(function, others, (*draft.rules.packages, *sorted(own))).packages:
        message = f"`{ast.unparse(node)}` needs the grant `packages` ({package}), which this function does not have"
        finding = Finding("needs-packages", message, ADVICE["packages"], node.lineno, node.col_offset)
        yield Use("packages", package, finding)


@lru_cache(maxsize=512)
def packages_used(function: Part, texts: tuple[tuple[str, str], ...], listed: tuple[str, ...]) -> Grants:
    """Return the packages that a function needs for what it uses of other modules than its own."""
    text_of = dict(texts)
    parts = {part: text for part, text in parts_of(function, text_of).items() if part[0] != function[0]}
    trees = [tree for text in parts.values() if isinstance(tree := parse(text), ast.Module)]
    used = [package for tree in trees for package in needs_of(uses(tree, listed)).packages]
    at_top = (imported_at_the_top(text_of[module], listed) for module in {module for module, _name in parts})
    return Grants(packages=tuple(sorted({*used}.union(*at_top))))


def imported_at_the_top(text: str, listed: tuple[str, ...]) -> frozenset[str]:
    """Return the projects that importing a module with this text needs, whichever of its functions is called."""
    return frozenset(needs_of(uses_at_import(text, listed)).packages) if "import" in text else frozenset()


@lru_cache(maxsize=512)
def uses_at_import(text: str, listed: tuple[str, ...]) -> tuple[Use, ...]:
    """Return the uses of what runs when a module with this text is imported."""
    tree = parse(text)
    return tuple(uses(ast.Module([*_running(tree.body)], []), listed)) if isinstance(tree, ast.Module) else ()


def _running(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run at an import: not what functions do, nor what a module does as a program."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _running(node.body)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_program(node):
            yield node


def lacking(uses: Iterable[Use], granted: Grants, approval_mode: Way = "absent") -> list[Finding]:
    """Return the findings for the uses that are not granted, and how the user is asked."""
    findings: dict[tuple[int, str], Finding] = {}
    for use in uses:
        if not use.is_asked_later and not (use.kind and granted.gives(use.kind, use.item)):
            fix = FIXES[approval_mode].format(use.finding.fix) if use.kind else use.finding.fix
            findings.setdefault((use.finding.line, use.finding.code), replace(use.finding, fix=fix))
    return list(findings.values())


def _lines(uses: Iterable[Use], granted: Grants) -> tuple[int, ...]:
    """Return the lines for which the user is asked: none if one of their uses can never be granted."""
    missing = [use for use in uses if not use.is_asked_later and not (use.kind and granted.gives(use.kind, use.item))]
    return tuple(dict.fromkeys(use.finding.line for use in missing)) if all(use.kind for use in missing) else ()


def uses_context(tree: ast.AST) -> frozenset[str]:
    """Return the parts of the call's context that a function uses: `call`, `progress`, `scratch`, …"""
    return frozenset(
        node.attr
        for node in context_nodes(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    )
