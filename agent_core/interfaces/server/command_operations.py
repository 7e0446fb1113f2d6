"""The API for commands: runs `knapper --server URL …` commands on the server with the shell's handlers."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Final

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.records import to_json
from agent_core.functions.debug import Debugger
from agent_core.runtime.agent import Agent
from agent_core.storage import CallOwners
from agent_core.workspace.portable import NoAgent
from agent_core.workspace.state_store import WorkspaceState

from ..commands.verb import Door
from ..slash_catalog import verb_of
from ..styled_lines import Line, plain
from .failures import ApiRefusal, NotThere
from .identity import SCOPES
from .operations import Asked, Part, operation

_OF_ALL_AGENTS: Final = ("functions", "calls")  # the others show agents that a token may not see
_HELP: Final = ("-h", "--help")
_Word = Annotated[str, Field(max_length=400_000)]


class CommandLine(Part):
    """A command as it is typed, word by word, with the `texts` of the files that it names.

    `agent` is the one that is talked to where it was typed; `at_prompt`: at a prompt, whose user said yes to the
    question if they are `is_sure`.
    """

    words: Annotated[list[_Word], Field(min_length=2, max_length=200, fail_fast=True)]
    texts: Annotated[dict[str, _Word], Field(default_factory=dict, max_length=10)]
    agent: Annotated[str, Field(max_length=64)] = ""
    at_prompt: bool = False
    is_sure: bool = False


NEEDS_TEXT, NEEDS_YES = "needs-text", "needs-yes"
_ELSEWHERE = "This does not work over a server: {what} is where the workspace is."


class ServerDoor(Door):
    """The `Door` for remote commands: it reads no files and asks no questions here; files come with the command."""

    def __init__(self, asked: Asked, line: CommandLine, agent: str, owners: CallOwners) -> None:
        super().__init__(asked.workspace)
        self._rooms = asked.rooms
        self._line = line
        self.at_prompt = self._line.at_prompt
        self.agent_name = agent
        self.owners = owners
        self._said: list[Line] = []

    def state(self) -> AbstractAsyncContextManager[WorkspaceState]:
        """Return the open state."""
        return nullcontext(self._rooms.state)

    async def known(self, name: str) -> str:
        """Return the name of an agent that was talked to, as in the shell."""
        name = name or self.agent_name or self.workspace.settings.agent
        state = self._rooms.state
        if not (await self.workspace.can_be_talked_to(name) and await state.store.has_agent(name)):
            raise NoAgent(name[:80], await state.moves.names())
        return name

    async def agent(self, name: str) -> Agent:
        """Return an existing agent."""
        return await self._rooms.host.agent(await self.known(name))

    def read(self, file: str | None) -> str:
        """Return a text that came with the command.

        Raises:
            ApiRefusal: the text is missing; the response asks the client for it.
        """
        name = file or "-"
        if name not in self._line.texts:
            problem = {"where": "texts", "message": "It is read where the command was typed.", "file": name}
            raise ApiRefusal(409, NEEDS_TEXT, f"The text of {name} did not come with the command.", problems=[problem])
        return self._line.texts[name]

    async def confirm(self, question: str, *, is_final: bool = False) -> bool:
        """Ask the user who typed the command, if it was typed at a prompt.

        Raises:
            ApiRefusal: the user has not confirmed yet; the message is the question.
        """
        if self.at_prompt and not self._line.is_sure:
            problems = [{"is_final": True}] if is_final else []
            raise ApiRefusal(409, NEEDS_YES, f"{plain(self._said)}{question}", problems=problems)
        return True

    async def agrees(self, question: str, fix: str, lines: Sequence[Line] = (), *, is_final: bool = False) -> bool:
        """Ask the user who typed the command at a prompt; a shell that is elsewhere has to give the option."""
        if not self.at_prompt:
            raise UsageError("This needs a yes, and a server cannot ask for it in the shell.", fix=fix)
        return await super().agrees(question, fix, lines, is_final=is_final)

    async def make_free(self, name: str) -> None:
        """Close an agent that is open on the server."""
        await self._rooms.host.make_free(name)

    def show(self, lines: Sequence[Line]) -> None:
        """Keep the lines that belong to a question."""
        self._said += lines

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Refuse, because the editor would open on the server."""
        raise UsageError(_ELSEWHERE.format(what="the editor"), fix=fix)

    def debugger(self) -> Debugger | None:
        """Refuse, because the debugger would stop on the server."""
        raise UsageError(_ELSEWHERE.format(what="the debugger"), fix="Omit --debug.")


@operation("POST", "/commands", SCOPES, "Run a command of the shell.")
async def command(asked: Asked, line: CommandLine) -> object:
    """Run a command of `knapper`, and return what it shows."""
    noun, name, *words = line.words
    verb = verb_of(noun, name)
    if verb is None or not verb.scopes:
        raise NotThere(f"`{noun[:80]} {name[:80]}` does not work over a server.", fix="Run it where the workspace is.")
    asked.identity.needs(*verb.scopes)
    if asked.identity.agents and noun not in _OF_ALL_AGENTS:
        raise UsageError(f"`{noun}` needs a token for all agents.", fix="Use the API, or another token.")
    if any(word in _HELP for word in words):
        raise UsageError("Help is where the command is typed.")
    agent = await asked.rooms.known(line.agent, asked.identity) if line.agent else ""
    door = ServerDoor(asked, line, agent, await asked.rooms.owners(asked.identity))
    result = await verb.handler(door, **verb.taken(words))
    table = result.table.lines() if result.table is not None else []
    code, first, marked = result.source or ("", 0, ())
    return {
        "document": to_json(result.document),
        "lines": [*result.lines, *table],
        "aside": result.aside,
        "source": {"text": code, "first": first, "marked": [*marked]} if result.source else None,
        "hint": result.hint,
        "code": result.code,
    }
