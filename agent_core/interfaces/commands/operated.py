"""Commands of the shell and the prompt that are operations."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from agent_core.base.late import LateModule
from agent_core.operations.operation import OPERATIONS, Operation

from .verb import Door, Result, slash, verb

if TYPE_CHECKING:  # `knapper --help` must not load what shows results
    from ..render import views
else:
    views = LateModule("agent_core.interfaces.render.views")

LOOKS: Final[Mapping[str, Mapping[str, str]]] = {
    "FunctionDetails": {"brief": "Only its signature, its docstring and its standing."}
}
"""Options that show less of a result, by its type."""


def add_operations(group: click.Group) -> None:
    """Add the operations of a noun to its commands."""
    for operation in OPERATIONS[group.name or ""].values():
        _add_operation(group, operation)


def _add_operation(group: click.Group, operation: Operation) -> None:
    async def run(door: Door, **typed: Any) -> Result:  # Any: as the operation takes them
        looks = [name for name in options if typed.pop(name)]
        return views.view(await operation.run(door, **typed), door, *looks)

    options = LOOKS.get(operation.gives, {})
    help = operation.help
    for each in operation.parameters:
        if each.default is not each.empty and each.name in operation.meanings:
            help += f" {each.name.upper()}: {operation.meanings[each.name]}"
    run.__name__ = operation.verb
    run.__doc__ = help
    vars(run)["__signature__"] = inspect.signature(operation.body)
    vars(run)["__click_params__"] = [
        click.Option([f"--{name}"], is_flag=True, help=text) for name, text in options.items()
    ]
    command = verb(group, opens=operation.opens, scopes=operation.scopes)(run)
    command.operation = operation
    if operation.slash:
        slash(operation.slash, operation.summary, **operation.prompt)(command)
