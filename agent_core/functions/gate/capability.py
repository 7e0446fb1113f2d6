"""Stage 6, capability: the grants that a function would need, compared with those that it has."""

import ast
from collections.abc import Iterable
from dataclasses import replace

from agent_core.access.grants import Grants

from .draft import D, Finding
from .grants import FIXES, Way
from .uses import Use, modules_of_workspace, needs_of, uses

STAGE = "capability"
EFFECTS = frozenset({"call", "fetch", "secret", "memory", "now"})


def capability(draft: D) -> D:
    """Return the draft with every use that needs a grant, and with those that have none."""
    if draft.tree is None:
        return draft.skip("the code could not be read")
    own = modules_of_workspace(draft.snapshot.modules, draft.granted)
    all_uses = uses(draft.tree, draft.rules.packages, draft.guarded, own)
    draft = replace(draft, needs=needs_of(all_uses), asking=_lines(all_uses, draft.granted))
    is_imported = draft.policy == "import" and draft.approval_mode == "none"
    return draft.with_findings(
        STAGE, lacking(all_uses, draft.granted, "importing" if is_imported else draft.approval_mode)
    )


def lacking(uses: Iterable[Use], granted: Grants, approval_mode: Way = "none") -> list[Finding]:
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
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    )
