"""`knapper secrets`: values that functions get by name, read only from a hidden prompt or standard input."""

import sys
from pathlib import Path
from typing import Any

import click

from agent_core.base.errors import NoWorkspace, UsageError, WorkspaceError

from ..cli_context import CliContext, workspace_command
from ..faults import fault_lines
from ..styled_lines import columns, line


@click.group()
def secrets() -> None:
    """Set, list and remove the secrets that functions may be given."""


@secrets.command("set")
@click.argument("name")
@workspace_command
def set_(context: CliContext, name: str) -> None:
    """Store a secret in a file that only you can read. Its value is asked for, or read from standard input."""
    from agent_core.access.secrets import Secrets
    from agent_core.access.secrets.source import check_name, shown

    check_name(name)
    store = Secrets(_workspace(context))
    from ..dialog import ask_hidden

    if sys.stdin.isatty():
        typed = ask_hidden(f"The value of {name} (not shown as you type):")
    else:
        try:
            typed = sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise UsageError("Standard input is not text.") from error
    if not typed:
        raise UsageError("No value was given, so nothing was set.", fix=f"Next: knapper secrets set {name}")
    store.put(name, typed)
    by = store.variables().get(name)
    lines = [line(("ok", "✓ "), ("name", name), f" is set, in {shown(store.vault.path)}.")]
    lines += [line(("warn", "! "), f"The variable {by} takes precedence while it is set.")] if by else []
    context.result({"name": name, "from": store.places()[name]}, lines)
    context.hint(f"A function gets it with: knapper functions grant NAME --secret {name}")


@secrets.command("list")
@workspace_command
def list_(context: CliContext) -> int:
    """List the names: where each comes from, and which functions may read it. Values are never shown."""
    from agent_core.access.secrets import Secrets

    root = _workspace(context)
    readers: dict[str, list[str]] = {}
    if root:
        from ..shell_door import with_workspace

        for row in with_workspace(context, lambda workspace: workspace.functions.grants.listing()).grants:
            for secret in row.in_force.secrets:
                readers.setdefault(secret, []).append(row.name)
    store = Secrets(root)
    places, problem = store.variables(), None
    try:
        places = store.places()
    except WorkspaceError as error:
        problem = error
    names = sorted({*places, *readers})
    rows: list[dict[str, Any]] = [  # Any: JSON
        {"name": name, "from": places.get(name), "functions": readers.get(name, [])} for name in names
    ]
    problem_data = {"code": problem.code, "message": problem.message, "fix": problem.fix} if problem else None
    cells = [
        (shown["name"], shown["from"] or "not set", ", ".join(shown["functions"]) or "not granted to any function yet")
        for shown in rows
    ]
    lines = columns(cells, ("name", "", "dim"))
    lines += fault_lines(problem.message, problem.fix) if problem else []
    context.result({"secrets": rows, "problem": problem_data}, lines)
    if not rows and not problem:
        context.hint("No secret is set. Next: knapper secrets set NAME")
    return 1 if problem else 0


@secrets.command()
@click.argument("name")
@workspace_command
def remove(context: CliContext, name: str) -> None:
    """Remove a secret from your file."""
    from agent_core.access.secrets import Secrets

    store = Secrets(_workspace(context))
    store.remove(name)
    still = store.variables().get(name)
    lines = [line(("ok", "✓ "), ("name", name), " is removed.")]
    lines += [line(("warn", "! "), f"The variable {still} still sets it.")] if still else []
    context.result({"name": name, "from": still}, lines)


def _workspace(context: CliContext) -> Path | None:
    """Return the workspace folder, or None if there is none, because secrets do not need one."""
    from agent_core.workspace.workspace import Workspace

    try:
        return Workspace.find(context.root)
    except NoWorkspace:
        return None
