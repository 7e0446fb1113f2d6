"""Commands of the shell and the prompt that are operations."""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from agent_core.base.late import LateModule
from agent_core.operations.operation import Operation, operations_of, verbs_beside
from agent_core.operations.words import word_of
from agent_core.views.result import Result

from ..verb import Door, slash, verb

if TYPE_CHECKING:  # `knapper --help` must not load what shows results
    from .. import views
else:
    views = LateModule("agent_core.operations.views")

LOOKS: Final[Mapping[str, Mapping[str, str]]] = {
    "FunctionDetails": {"brief": "Only its signature, its docstring and its standing."}
}
"""Options that show less of a result, by its type."""


def add_operations(group: click.Group) -> None:
    """Add the operations of a noun to its commands, and the commands that extensions add to it."""
    noun = group.name or ""
    for beside in verbs_beside(noun):
        if isinstance(beside, click.Command) and beside.name not in group.commands:
            group.add_command(beside)
    for operation in operations_of(noun).values():
        _add_operation(group, operation)


def _add_operation(group: click.Group, operation: Operation) -> None:
    async def run(door: Door, **typed: Any) -> Result:  # Any: as the operation takes them
        looks = [name for name in options if typed.pop(name)]
        asks = operation.asks
        if asks is not None and not await door.confirm_state(partial(asks, door, **typed)):
            return Result(None, hint="Nothing was changed.")
        return views.view(await operation.run(door, **typed), door, *looks)

    options = LOOKS.get(operation.gives, {})
    help = operation.help
    own: list[click.Parameter] = []
    for each in operation.parameters:
        meaning = operation.meanings.get(each.name, "")
        if word_of(each).is_option:
            own.append(_option(each, meaning))
        elif meaning and each.default is not each.empty:
            help += f" {each.name.upper()}: {meaning}"
    run.__name__ = operation.verb
    run.__doc__ = help
    vars(run)["__signature__"] = inspect.signature(operation.body)
    own += [click.Option([f"--{name}"], is_flag=True, help=text) for name, text in options.items()]
    vars(run)["__click_params__"] = own[::-1]
    command = verb(group, opens=operation.opens, scopes=operation.scopes)(run)
    command.operation = operation
    if operation.slash:
        slash(operation.slash, **{"says": operation.summary, **operation.prompt})(command)


def _option(parameter: inspect.Parameter, help: str) -> click.Option:
    """Return the option for a parameter."""
    word = word_of(parameter)
    given = {"default": parameter.default}
    if parameter.default is parameter.empty:
        given = {"required": True}
    return click.Option(
        [f"--{parameter.name}"],
        help=help,
        type=word.type,
        metavar=word.metavar,
        multiple=word.max_items is not None,
        **given,
    )
