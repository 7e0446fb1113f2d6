"""A command of both doors: its handler serves the shell and the prompt alike, and returns what is to be shown.

In the shell it is a command of click, for which `opened` opens the workspace; at the prompt, `slash` calls it in the
open conversation.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import click

from agent_core.base.errors import UsageError

from ..choices import Table
from ..cli_context import CliContext, scene
from ..spans import Line

if TYPE_CHECKING:  # `toolwright --help` must not load a workspace
    from agent_core.functions.debug import Debugger
    from agent_core.functions.service import FunctionService
    from agent_core.memory.source_catalog import Sources
    from agent_core.runtime.agent import Agent
    from agent_core.workspace.workspace import Workspace

    from ..state import WorkspaceState

SourceProgress: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command: a document for scripts, lines for people, and the exit code.

    A document of None and no lines print nothing. `aside` belongs to standard error, as `hint` does, which only people
    get. At the prompt the source is colored, and the table is there to be looked through in place of the lines.
    """

    document: Any  # Any: a JSON document of a published shape
    lines: Sequence[Line] = ()
    hint: str = ""
    code: int = 0
    aside: Sequence[Line] = ()
    source: tuple[str, int, Sequence[int]] | None = None
    table: Table | None = None


class Door(Protocol):
    """The way by which a command came in: what it works on, and how it asks its user."""

    at_prompt: bool
    typed: str
    """What the user types before a verb of functions."""
    agent_name: str
    """The agent that is talked to; "" in the shell, where the usual one is meant."""

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

    async def sources(self, name: str) -> "Sources":
        """Return the sources of an agent."""

    async def confirm(self, question: str) -> bool:
        """Ask for a yes. In the shell, the command itself is one."""

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


class Opens(Enum):
    """What the shell opens for a command: a workspace; one that asks about grants; any, if need be empty; nothing."""

    WORKSPACE = auto()
    ASKING = auto()
    MACHINE = auto()
    NOTHING = auto()


class Verb(click.Command):
    """A command of the shell that the prompt runs, too."""

    def __init__(self, *arguments: Any, handler: Handler, **options: Any) -> None:  # Any: click's own
        super().__init__(*arguments, **options)
        self.handler = handler

    def taken(self, typed: Sequence[str]) -> dict[str, Any]:  # Any: as the options are typed
        """Return the arguments of the handler.

        Raises:
            UsageError: they do not fit.
        """
        try:
            values = self.make_context(self.name, [*typed]).params
        except click.ClickException as error:
            raise UsageError(error.format_message()) from error
        return {name: value for name, value in values.items() if name not in ("as_json", "root")}


def verb(name: str | None = None, *, opens: Opens = Opens.WORKSPACE) -> Callable[[Handler], Verb]:
    """Make a command of a handler, with the options that the decorators below this one gave it."""

    def made(handler: Handler) -> Verb:
        def run(scene: CliContext, **arguments: Any) -> int:
            from ..shell_door import carry_out

            return carry_out(scene, opens, lambda door: handler(door, **arguments))

        own = getattr(handler, "__click_params__", [])
        run.__name__, run.__doc__ = getattr(handler, "__name__", ""), handler.__doc__
        callback = scene(run)
        vars(callback)["__click_params__"] += own
        return click.command(name, cls=Verb, handler=handler)(callback)

    return made
