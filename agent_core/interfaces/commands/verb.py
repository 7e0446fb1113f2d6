"""A command of both doors: its handler serves the shell and the prompt alike, and returns what is to be shown.

In the shell it is a command of click, for which `opened` opens the workspace; at the prompt, `slash` calls it in the
open conversation.
"""

import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import click
from click.core import ParameterSource

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_named_text

from ..cli_context import CliContext, loading, workspace_command
from ..shell_completion import complete

if TYPE_CHECKING:  # `knapper --help` must not load a workspace
    from agent_core.functions.debug import Debugger
    from agent_core.functions.service import FunctionService
    from agent_core.memory.agent_memory import AgentMemory
    from agent_core.memory.source_catalog import Sources
    from agent_core.runtime.agent import Agent
    from agent_core.storage import CallOwners
    from agent_core.workspace.workspace import Workspace

    from ..choices import Table
    from ..spans import Line
    from ..state import WorkspaceState

SourceProgress: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command: a document for scripts, lines for people, and the exit code.

    A document of None and no lines print nothing. `aside` belongs to standard error, as `hint` does, which only people
    get. At the prompt the source is colored, and the table is there to be looked through in place of the lines.
    """

    document: Any  # Any: a JSON document of a published shape
    lines: Sequence["Line"] = ()
    hint: str = ""
    code: int = 0
    aside: Sequence["Line"] = ()
    source: tuple[str, int, Sequence[int]] | None = None
    table: "Table | None" = None


class Door(Protocol):
    """The way by which a command came in: what it works on, and how it asks its user."""

    at_prompt: bool
    typed: str
    """What the user types before a verb of functions."""
    agent_name: str
    """The agent that is talked to; "" in the shell, where the usual one is meant."""
    owners: "CallOwners"
    """The agents whose calls may be read."""

    @property
    def workspace(self) -> "Workspace":
        """The open workspace."""

    @property
    def shop(self) -> "FunctionService":
        """Its functions."""

    def state(self) -> AbstractAsyncContextManager["WorkspaceState"]:
        """Open the state on disk, with all agents in it."""

    async def agent(self, name: str) -> "Agent":
        """Return an agent that exists: a command that only looks creates nothing."""

    async def memory(self, name: str) -> "AgentMemory":
        """Return what an agent that exists remembers, to search it; the agent may be running elsewhere."""

    async def sources(self, name: str) -> "Sources":
        """Return the sources of an agent."""

    def read(self, file: str | None) -> str:
        """Return the text of a file that the user named; `-`, or None, is standard input.

        Raises:
            UsageError: it cannot be read, or nobody types it.
        """

    async def confirm(self, question: str, *, is_final: bool = False) -> bool:
        """Ask for a yes, with a code if the deed cannot be undone. In the shell, the command itself is a yes."""

    def show(self, lines: Sequence["Line"]) -> None:
        """Show what belongs to a question, before it is asked."""

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Close the agent that is talked to while the block runs; it goes on with what is on disk then."""

    async def ask(self, question: str) -> str | None:
        """Return what the user types, or None if nobody can be asked or nothing more comes."""

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Give the terminal to the user's editor. Where there is none, the error suggests `fix`."""

    def debugger(self) -> "Debugger | None":
        """Return the user at the debugger, None for that of the workspace.

        Raises:
            UsageError: nobody can sit there.
        """

    def source_progress(self) -> AbstractContextManager[SourceProgress]:
        """Show how far a source is read."""


Handler: TypeAlias = Callable[..., Awaitable[Result]]


def read_here(file: str | None) -> str:
    """Return the text of a file of this machine; None is standard input, at which nobody is waited for.

    Raises:
        UsageError: it cannot be read, or nobody types it.
    """
    if file is None and sys.stdin.isatty():
        raise UsageError("There is no source.", fix="Give --file FILE, or --file - and the source on standard input.")
    try:
        return read_named_text(file or "-")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error


class Opens(Enum):
    """The needs of a command: a workspace; one that may be read-only; one that asks about grants; any, if need be
    empty; nothing.
    """

    WORKSPACE = auto()
    READABLE = auto()
    ASKING = auto()
    MACHINE = auto()
    NOTHING = auto()


class Verb(click.Command):
    """A command of the shell that the prompt runs, too."""

    def __init__(self, *arguments: Any, handler: Handler, opens: Opens, **options: Any) -> None:  # Any: click's own
        super().__init__(*arguments, **options)
        self.handler = handler
        self.opens = opens

    def taken(self, typed: Sequence[str]) -> dict[str, Any]:  # Any: as the options are typed
        """Return the arguments of the handler.

        Raises:
            UsageError: they do not fit.
        """
        try:
            values = self.make_context(self.name, [*typed]).params
        except click.ClickException as error:
            raise UsageError(error.format_message()) from error
        return {name: value for name, value in values.items() if name not in _OF_ALL}


def verb(name: str | None = None, *, opens: Opens = Opens.WORKSPACE) -> Callable[[Handler], Verb]:
    """Make a command of a handler, with the options that the decorators below this one gave it."""

    def made(handler: Handler) -> Verb:
        def run(context: CliContext, **arguments: Any) -> int:
            if context.server:
                from ..remote import run_command

                return run_command(context, typed_words(click.get_current_context()))
            with loading():
                from ..shell_door import carry_out

            return carry_out(context, opens, lambda door: handler(door, **arguments))

        own = getattr(handler, "__click_params__", [])
        run.__name__, run.__doc__ = getattr(handler, "__name__", ""), handler.__doc__
        callback = workspace_command(run, [name for option in own for name in option.opts], over_server=True)
        vars(callback)["__click_params__"] += own
        command = click.command(name, cls=Verb, handler=handler, opens=opens)(callback)
        complete(command, handler.__module__)
        return command

    return made


def typed_words(context: click.Context) -> list[str]:
    """Return a command as it was typed, without the options that every command takes."""
    options: list[str] = []
    places: list[str] = []
    for param in context.command.params:
        name = param.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name in _OF_ALL:
            continue
        value = context.params[name]
        values = [str(item) for item in value] if isinstance(value, tuple) else [str(value)]
        if isinstance(param, click.Argument):
            places += values
        elif isinstance(param, click.Option) and param.is_flag:
            options.append(param.opts[0])
        else:
            options += [f"{max(param.opts, key=len)}={item}" for item in values]
    return [*context.command_path.split()[1:], *options, "--", *places]


_OF_ALL = ("as_json", "root", "debug")
