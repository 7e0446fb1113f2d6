"""Stage 2, fix: mechanical problems are fixed; each fix is shown as a diff and can be switched off.

A repair stands only if the text still parses, computes the same, and keeps its examples and descriptions.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from agent_core.base import syntax
from agent_core.registry import docstring
from agent_core.registry.examples import find as find_examples

from .draft import Draft
from .fix_docstring import STYLE_MARKS, add_description, describe_parameters, hint_from_docstring, hint_none, to_google
from .fix_imports import add_imports, import_from_workspace, uses_workspace
from .fix_view import View, add_self
from .tree import find, functions, nodes_of, parse, takes_self

_ROUNDS = 4
# Who asks for these sees text that is no computation elsewhere: its docstring, its hints, a name that is missing.
_WATCHING = frozenset(
    ["__doc__", "__annotations__", "NameError", "globals", "signature", "getfullargspec", "get_annotations"]
) | {"get_type_hints", "getdoc", "getsource", "validate_call", "typechecked", "beartype"}


@dataclass(frozen=True, slots=True)
class Repair:
    """One mechanical fix: `apply` returns the fixed text, or the text unchanged.

    `may` is a cheap test that leaves out what certainly has nothing to repair.
    """

    code: str
    message: str
    may: Callable[[View], object]
    apply: Callable[[View], str]


def _has(*marks: str) -> Callable[[View], bool]:
    return lambda view: any(mark in view.text for mark in marks)


REPAIRS: tuple[Repair, ...] = (
    Repair("missing-self", "added the parameter `self`, which the body uses", _has("self"), add_self),
    Repair(
        "given-description",
        "wrote the description that came with it as its docstring",
        lambda view: view.description,
        add_description,
    ),
    Repair("docstring-style", "wrote the docstring's sections in the Google style", _has(*STYLE_MARKS), to_google),
    Repair(
        "docstring-sections",
        "moved the descriptions of parameters under `Args:`",
        lambda view: view.words and view.undescribed,
        describe_parameters,
    ),
    Repair(
        "docstring-types",
        "wrote the types that the docstring names as hints",
        lambda view: not view.is_hinted,
        hint_from_docstring,
    ),
    Repair(
        "returns-none", "wrote `-> None`, since nothing is returned", lambda view: view.node.returns is None, hint_none
    ),
    Repair(
        "workspace-import",
        "added the imports of the functions of the workspace that it calls",
        uses_workspace,
        import_from_workspace,
    ),
    Repair(
        "missing-import", "added the imports of standard names that it uses", lambda view: view.missing, add_imports
    ),
)


def fix(draft: Draft) -> Draft:
    """Return the draft with every fix that follows from its own text, until none is left."""
    view = view_of(draft)
    if view is None:
        return draft.skip("there is no function to fix")
    repairs = [repair for repair in REPAIRS if draft.rules.makes(repair.code)]
    for _ in range(_ROUNDS):
        before = draft.text
        for repair in repairs:
            if repair.may(view):
                draft, view = _try(repair, draft, view)
        if draft.text == before:
            break
    return draft


def view_of(draft: Draft) -> View | None:
    """Return the draft as a fix sees it; None without the promised function."""
    node = draft.function
    if draft.tree is None or node is None:
        return None
    around, candidate = draft.snapshot.modules.get(draft.candidate.module), draft.candidate
    text = around.text if around else ""
    parts = (draft.text, candidate.name, draft.tree, node, text, candidate.description, candidate.examples)
    return View(*parts, candidate.module, draft.snapshot.functions)


def _try(repair: Repair, draft: Draft, before: View) -> tuple[Draft, View]:
    text = repair.apply(before)
    if text == draft.text or not keeps_meaning(draft.text, text, before.name):
        return draft, before
    fixed = draft.with_fix(repair.code, repair.message, text)
    after = view_of(fixed)
    return (fixed, after) if after is not None else (draft, before)


def keeps_meaning(before: str, after: str, name: str) -> bool:
    """Check whether the second text computes the same, has the same examples, and describes no fewer parameters."""
    old, new = parse(before), parse(after)
    if not isinstance(old, ast.Module) or not isinstance(new, ast.Module):
        return False
    return _computation(old) == _computation(new) and _says_no_less(_words(old, name), _words(new, name))


@lru_cache(maxsize=8)
def _computation(tree: ast.Module) -> str:
    """Return the tree's text without what no computation depends on: docstrings, hints, imports, an unused `self`."""
    if any(_WATCHING & _names_in(node) for node in nodes_of(tree)):
        return ast.dump(tree)
    bare = syntax.parse(ast.unparse(tree))
    bare.body = [node for node in bare.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    for node in functions(bare):
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if takes_self(node):
            node.args.args = node.args.args[1:]
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
    return ast.dump(bare)


def _names_in(node: ast.AST) -> set[str]:
    """Return the names that one node of a tree mentions."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return {name.rpartition(".")[2]}
        case _:
            return set()


def _words(tree: ast.Module, name: str) -> str:
    node = find(tree, name)
    return (ast.get_docstring(node) or "") if node else ""


def _says_no_less(old: str, new: str) -> bool:
    if old == new:
        return True
    before, after = docstring.read(old), docstring.read(new)
    described = all(after.parameters.get(name) == text for name, text in before.parameters.items() if text)
    new_examples = iter(_examples(new))
    return described and all(example in new_examples for example in _examples(old))


def _examples(words: str) -> list[tuple[str, str]]:
    """Return the examples of a docstring that have a result; unreadable ones count as none."""
    try:
        return [(example.source, example.want.partition("```")[0]) for example in find_examples(words) if example.want]
    except ValueError:
        return []
