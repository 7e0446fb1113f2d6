"""A workspace opened for a single shell command. Slow to import, so only command bodies import it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.late import LateModule
from agent_core.operations.command_context import loading
from agent_core.operations.operation import Opens
from agent_core.operations.verb import Door, SourceProgress
from agent_core.storage import agent_named
from agent_core.views.faults import tell
from agent_core.views.function_view import source_lines
from agent_core.views.result import Result
from agent_core.views.styled_lines import meter, plain, write
from agent_core.workspace.scaffold import existing
from agent_core.workspace.state_store import (
    WorkspaceState,
    is_read_only,
    opened_state,
    reading_copy,
)
from knapper.terminal.deciding import decide_in, is_attended
from knapper.terminal.dialog import (
    TerminalAnswers,
    agrees,
    say,
    typed_line,
)
from knapper.terminal.progress import CELLS, StatusLine

if TYPE_CHECKING:
    from agent_core.access.grants import Approver
    from agent_core.functions.debug import Debugger
    from agent_core.functions.worker_api import OnProgress
    from agent_core.memory.source_catalog import Sources
    from agent_core.operations.command_context import CliContext
    from agent_core.storage import AgentName
    from agent_core.views.styled_lines import Line
    from agent_core.workspace import workspace as workspace_module
    from agent_core.workspace.workspace import Workspace
    from knapper.prompt import ui
else:
    ui = LateModule("knapper.prompt.ui")
    workspace_module = LateModule("agent_core.workspace.workspace")

T = TypeVar("T")


class ShellDoor(Door):
    """The shell's `Door`: a command has the workspace to itself and asks nothing that an option can answer."""

    def __init__(self, context: "CliContext", workspace: "Workspace | None" = None) -> None:
        super().__init__(workspace)
        self._context = context
        self.is_attended, self.is_on_screen, self.as_json = (
            is_attended(),
            sys.stdout.isatty(),
            context.as_json,
        )

    @asynccontextmanager
    async def state(self) -> AsyncIterator[WorkspaceState]:
        """Open the state on disk and report what was recovered."""
        async with opened_state(self._context.root) as opened:
            if opened.store.recovered:
                self._context.tell(opened.store.recovered)
            yield opened

    async def known(self, name: str) -> "AgentName":
        """Return the name of an existing agent, or of the default agent."""
        async with self.state() as opened:
            await opened.moves.whole(name or opened.agent)
            return agent_named(name or opened.agent)

    async def sources(self, name: str) -> "Sources":
        """Return the sources of an agent."""
        return await self.workspace.sources(name or None)

    async def agrees(
        self, question: str, fix: str, lines: Sequence["Line"] = (), *, is_final: bool = False
    ) -> bool:
        """Ask at a terminal."""
        if not self.is_attended:
            raise UsageError("There is no terminal for the question.", fix=fix)
        say(lines)
        return await agrees(question, is_final=is_final)

    def show(self, lines: Sequence["Line"]) -> None:
        """Show lines on standard error."""
        say(lines)

    async def ask(self, question: str) -> str | None:
        """Ask at a terminal, unless a script reads the result."""
        if self._context.as_json or not self.is_attended:
            return None
        return await typed_line(question)

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Return nothing to wait for: the terminal is free."""
        return nullcontext() if sys.stdin.isatty() else super().editor(fix)

    def debugger(self) -> "Debugger | None":
        """Return a debugger that the user controls at the terminal."""
        if self._context.as_json or not self.is_attended:
            fix = "Omit --debug, or run it at a terminal."
            raise UsageError("There is no terminal for the debugger.", fix=fix)
        return ui.LineDebugger(say, TerminalAnswers())

    @contextmanager
    def call_progress(self, name: str) -> Iterator["OnProgress"]:
        """Show a status line."""
        with StatusLine() as status:
            status.show(f"{name} runs; Ctrl-C ends it")
            yield status.count

    @contextmanager
    def source_progress(self) -> Iterator[SourceProgress]:
        """Show a progress bar. After Ctrl-C, tell the user how to resume."""
        try:
            with StatusLine() as bar:
                yield lambda done, total, name: bar.show(
                    f"{meter(done, total, CELLS)} {done:,} of {total:,} passages · {name}"
                )
        except asyncio.CancelledError:
            self._context.hint("The same command resumes it.")
            raise


def carry_out(
    context: "CliContext", opens: Opens, use: Callable[[Door], Coroutine[None, None, Result]]
) -> int:
    """Open what a command needs, print its result after closing it, and return the exit code."""

    def run(workspace: "Workspace | None" = None) -> Coroutine[None, None, Result]:
        return use(ShellDoor(context, workspace))

    match opens:
        case Opens.NOTHING:
            shown = asyncio.run(run())
        case Opens.MACHINE:
            shown = with_any_workspace(context, run)
        case Opens.READABLE if is_read_only(root := existing(context.root)):
            context.tell(
                f"{root.resolve()} cannot be written to, so it is only read: nothing that is found out is kept."
            )
            with reading_copy(root) as copy:
                shown = _use(context, copy, run, follows=False)
        case _:
            can_ask = (
                opens in (Opens.ASKING, Opens.CALLING) and is_attended() and not context.as_json
            )
            follows = opens in (Opens.WORKSPACE, Opens.ASKING)
            root = existing(context.root)
            shown = _use(context, root, run, decide_in(root) if can_ask else None, follows=follows)
    return print_result(context, shown)


def print_result(context: "CliContext", result: Result) -> int:
    """Print the result of a command, and return its exit code."""
    if result.document is None or not context.as_json:
        write(result.before, sys.stderr)
    if result.document is not None or result.lines:
        source = source_lines(*result.source) if result.source else ()
        context.result(result.document, [*result.lines, *source])
    if context.as_json and result.document is None and result.code:  # the user declined
        tell("declined", plain(result.aside).strip(), "", as_json=True)
    elif result.document is None or not context.as_json:
        write(result.aside, sys.stderr)
    if result.hint:
        context.hint(result.hint)
    return result.code


def with_workspace(context: "CliContext", use: "Callable[[Workspace], Awaitable[T]]") -> T:
    """Open the command's workspace, report what was recovered, and use it.

    Raises:
        WorkspaceError: there is no workspace; commands that only read do not create one.
    """
    return _use(context, existing(context.root), use)


def with_any_workspace(context: "CliContext", use: "Callable[[Workspace], Awaitable[T]]") -> T:
    """Open the command's workspace, or an empty temporary one for commands that only inspect the machine."""
    with TemporaryDirectory() as folder:
        try:
            root = existing(context.root)
        except WorkspaceError:
            root = Path(folder)
        return _use(context, root, use)


def _use(
    context: "CliContext",
    root: Path,
    use: "Callable[[Workspace], Awaitable[T]]",
    approver: "Approver | None" = None,
    *,
    follows: bool = True,
) -> T:
    with loading():
        open_workspace = workspace_module.Workspace.open

    async def opened() -> T:
        with StatusLine() as status:
            async with open_workspace(
                root, approver=approver, on_status=status.show, follows=follows
            ) as workspace:
                context.tell(*workspace.recovered)
                return await use(workspace)

    return asyncio.run(opened())
