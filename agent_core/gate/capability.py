"""Stage 6, capability: what a function would need a human's grant for, compared with what is granted."""

import ast
from collections.abc import Iterable
from dataclasses import replace

from ..grants import NOTHING, Grants
from .draft import Draft, Finding
from .grants import MENDS, Way
from .uses import Use, needs_of, uses

STAGE = "capability"
EFFECTS = frozenset({"call", "fetch", "secret", "memory"})


def capability(draft: Draft) -> Draft:
    """The draft with every use that needs a grant, and with those that it does not have."""
    if draft.tree is None:
        return draft.skip("the code could not be read")
    found = uses(draft.tree, draft.rules.packages, draft.guarded)
    draft = replace(draft, needs=needs_of(found), asking=_lines(found, draft.granted))
    return draft.with_findings(STAGE, lacking(found, draft.granted, draft.way))


def check(tree: ast.Module, packages: tuple[str, ...], granted: Grants = NOTHING, way: Way = "none") -> list[Finding]:
    """Every use in a module that needs a grant that is not there, or cannot be foreseen, one a line and kind."""
    return lacking(uses(tree, packages), granted, way)


def lacking(found: Iterable[Use], granted: Grants, way: Way = "none") -> list[Finding]:
    """What is to be said of the uses that are not granted, and how a human comes to be asked."""
    told: dict[tuple[int, str], Finding] = {}
    for use in found:
        if not (use.kind and granted.gives(use.kind, use.item)):
            mend = MENDS[way].format(use.finding.mend) if use.kind else use.finding.mend
            told.setdefault((use.finding.line, use.finding.code), replace(use.finding, mend=mend))
    return list(told.values())


def _lines(found: Iterable[Use], granted: Grants) -> tuple[int, ...]:
    """The lines whose uses a human is asked about: none where one of them can never be granted."""
    missing = [use for use in found if not (use.kind and granted.gives(use.kind, use.item))]
    return tuple(dict.fromkeys(use.finding.line for use in missing)) if all(use.kind for use in missing) else ()


def uses_context(tree: ast.AST) -> frozenset[str]:
    """The parts of the call's context that a function reaches: `call`, `progress`, `scratch`, …"""
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    )
