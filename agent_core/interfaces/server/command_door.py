"""The door of a server: a command that somebody typed elsewhere works on what the server has open."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext

from agent_core.base.errors import UsageError
from agent_core.functions.debug import Debugger
from agent_core.functions.service import FunctionService
from agent_core.memory.agent_memory import AgentMemory
from agent_core.memory.source_catalog import Sources
from agent_core.runtime.agent import Agent
from agent_core.storage import CallOwners
from agent_core.workspace.workspace import Workspace

from ..commands.verb import SourceProgress
from ..render.statistics import COMMAND, SLASH
from ..spans import Line, plain
from ..state import WorkspaceState
from .failures import ApiRefusal, NotThere
from .rooms import Rooms

NEEDS_TEXT, NEEDS_YES = "needs-text", "needs-yes"
_ELSEWHERE = "This does not work over a server: {what} is where the workspace is."


class ServerDoor:
    """A command from elsewhere: it reads no file and asks nobody here; `texts` are the files that it was given."""

    def __init__(
        self,
        rooms: Rooms,
        texts: Mapping[str, str],
        *,
        agent: str = "",
        owners: CallOwners = None,
        at_prompt: bool = False,
        is_sure: bool = False,
    ) -> None:
        self._rooms = rooms
        self._texts = texts
        self._is_sure = is_sure
        self.at_prompt = at_prompt
        self.agent_name = agent
        self.owners = owners
        self.typed = SLASH if at_prompt else COMMAND
        self.said: list[Line] = []

    @property
    def workspace(self) -> Workspace:
        """The open workspace."""
        return self._rooms.workspace

    @property
    def shop(self) -> FunctionService:
        """Its functions."""
        return self._rooms.workspace.workshop

    @asynccontextmanager
    async def state(self) -> AsyncIterator[WorkspaceState]:
        """Give the state that is open."""
        yield self._rooms.state

    async def agent(self, name: str) -> Agent:
        """Return an agent that exists."""
        return await self._rooms.host.agent(await self._known(name))

    async def memory(self, name: str) -> AgentMemory:
        """Return what an agent remembers."""
        return self.workspace.memory(await self._known(name))

    async def sources(self, name: str) -> Sources:
        """Return the sources of an agent."""
        return await self.workspace.sources(await self._known(name))

    async def _known(self, name: str) -> str:
        name = name or self.agent_name or self.workspace.settings.agent
        if not await self.workspace.can_be_talked_to(name):
            raise NotThere(f"There is no agent `{name[:80]}`.", fix="Type: knapper agents list")
        return name

    def read(self, file: str | None) -> str:
        """Return a text that came with the command, or ask for it.

        Raises:
            ApiRefusal: it did not come; the answer says which.
        """
        name = file or "-"
        if name not in self._texts:
            problem = {"where": "texts", "message": "It is read where the command was typed.", "file": name}
            raise ApiRefusal(409, NEEDS_TEXT, f"The text of {name} did not come with the command.", problems=[problem])
        return self._texts[name]

    async def confirm(self, question: str, *, is_final: bool = False) -> bool:
        """Ask whoever typed the command, if it was typed at a prompt.

        Raises:
            ApiRefusal: they have not said yes yet; the message is the question.
        """
        if self.at_prompt and not self._is_sure:
            problems = [{"is_final": True}] if is_final else []
            raise ApiRefusal(409, NEEDS_YES, f"{plain(self.said)}{question}", problems=problems)
        return True

    def show(self, lines: Sequence[Line]) -> None:
        """Keep what belongs to a question."""
        self.said += lines

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Do nothing: nobody talks to an agent through this door."""
        return nullcontext()

    async def ask(self, question: str) -> str | None:
        """Ask nothing: the next command can hold the answer."""
        return None

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Refuse: the editor would open elsewhere."""
        raise UsageError(_ELSEWHERE.format(what="the editor"), fix=fix)

    def debugger(self) -> Debugger | None:
        """Refuse: the debugger stops elsewhere."""
        raise UsageError(_ELSEWHERE.format(what="the debugger"), fix="Omit --debug.")

    @contextmanager
    def source_progress(self) -> Iterator[SourceProgress]:
        """Show nothing."""
        yield lambda *_: None
