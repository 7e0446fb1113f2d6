"""A parameter shares a word with its class, so that readers need not look it up."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CUSTOMARY = {"self", "event", "write", "error", "plan", "ctx", "approval_mode"}
"""Customary names for a whole family of classes, and names that third-party packages require."""


def words(name: str) -> set[str]:
    found = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return found | {word.removesuffix("s") for word in found}


def parameters(tree: ast.Module) -> Iterator[tuple[ast.arg, str]]:
    """Yield the parameters of all functions whose type is one class, each with the class name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):  # no operators
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                match arg.annotation:
                    case ast.Name(id=name) | ast.Constant(value=str(name)) if not arg.arg.startswith("_"):
                        yield arg, name


def test_every_parameter_shares_a_word_with_its_class() -> None:
    files = [path for top in ("agent_core", "sandbox", "meta_functions") for path in (ROOT / top).rglob("*.py")]
    trees = {path: ast.parse(path.read_text("utf-8")) for path in files}
    classes = {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    strange = [
        f"{path.relative_to(ROOT)}:{arg.lineno} {arg.arg}: {name}"
        for path, tree in trees.items()
        for arg, name in parameters(tree)
        if name in classes and len(name) > 2 and arg.arg not in CUSTOMARY and not words(arg.arg) & words(name)
    ]
    assert strange == []
