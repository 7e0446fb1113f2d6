"""`toolwright secrets`: what functions are given by name. Values come from a hidden prompt or standard input alone."""

import sys
from pathlib import Path
from typing import Any

import click

from agent_core.errors import NoWorkspace, UsageError, WorkspaceError

from ..columns import columns
from ..scene import Scene, scene
from ..spans import Line, line


@click.group()
def secrets() -> None:
    """Set, list and remove the secrets that functions may be given."""


@secrets.command("set")
@click.argument("name")
@scene
def set_(scene: Scene, name: str) -> None:
    """Keep a secret in a file that only you can read. Its value is asked for, or read from standard input."""
    from agent_core.secrets import Secrets
    from agent_core.secrets.source import check_name
    from agent_core.secrets.vault import shown

    check_name(name)
    held = Secrets(_workspace(scene))
    held.put(name, _value(name))
    by = held.variables().get(name)
    lines = [line(("ok", "✓ "), ("name", name), f" is set, in {shown(held.vault.path)}.")]
    lines += [line(("warn", "! "), f"The variable {by} goes before it as long as it is set.")] if by else []
    scene.result({"name": name, "from": held.places()[name]}, lines)
    scene.hint(f"A function gets it with: toolwright functions grant NAME --secret {name}")


@secrets.command("list")
@scene
def list_(scene: Scene) -> int:
    """List the names: where each comes from, and which functions may read it. Values are never shown."""
    from agent_core.secrets import Secrets

    root = _workspace(scene)
    readers = _readers(scene) if root else {}
    held = Secrets(root)
    places, problem = held.variables(), None
    try:
        places = held.places()
    except WorkspaceError as error:
        problem = error
    names = sorted({*places, *readers})
    rows = [{"name": one, "from": places.get(one), "functions": readers.get(one, [])} for one in names]
    told = {"code": problem.code, "message": problem.message, "mend": problem.mend} if problem else None
    scene.result({"secrets": rows, "problem": told}, [*_lines(rows), *_problem_lines(problem)])
    if not rows and not problem:
        scene.hint("No secret is set. Next: toolwright secrets set NAME")
    return 1 if problem else 0


@secrets.command()
@click.argument("name")
@scene
def remove(scene: Scene, name: str) -> None:
    """Take a secret out of your file."""
    from agent_core.secrets import Secrets

    held = Secrets(_workspace(scene))
    held.remove(name)
    still = held.variables().get(name)
    lines = [line(("ok", "✓ "), ("name", name), " is removed.")]
    lines += [line(("warn", "! "), f"The variable {still} still sets it.")] if still else []
    scene.result({"name": name, "from": still}, lines)


def _workspace(scene: Scene) -> Path | None:
    """The folder, if it is a workspace: a secret needs none."""
    from agent_core.assemble import Workspace

    try:
        return Workspace.find(scene.root)
    except NoWorkspace:
        return None


def _readers(scene: Scene) -> dict[str, list[str]]:
    """Which functions may read each secret now."""
    from ..opened import with_workshop

    found: dict[str, list[str]] = {}
    for row in with_workshop(scene, lambda shop: shop.grants.listing())["grants"]:
        for name in row["in_force"].get("secrets", ()):
            found.setdefault(name, []).append(row["name"])
    return found


def _value(name: str) -> str:
    from ..question import ask_hidden

    if sys.stdin.isatty():
        typed = ask_hidden(f"The value of {name} (nothing of it is shown):")
    else:
        try:
            typed = sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise UsageError("What came on standard input is no text.") from error
    if not typed:
        raise UsageError("Nothing was given, and nothing was set.", mend=f"Next: toolwright secrets set {name}")
    return typed


def _lines(rows: list[dict[str, Any]]) -> list[Line]:
    cells = [
        (row["name"], row["from"] or "not set", ", ".join(row["functions"]) or "for no function yet") for row in rows
    ]
    return columns(cells, ("name", "", "dim"))


def _problem_lines(problem: WorkspaceError | None) -> list[Line]:
    from ..faults import fault_lines

    return fault_lines(problem.message, problem.mend) if problem else []
