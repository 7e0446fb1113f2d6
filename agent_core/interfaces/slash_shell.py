"""The slash commands that the shell has, too: what was typed becomes the arguments of the shell's command.

Its handler works on what the conversation has open, and the conversation shows the result.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import datetime
from functools import partial
from typing import Final

from agent_core.access.grants import Grants
from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.functions.debug import Debugger
from agent_core.functions.service import FunctionService
from agent_core.functions.service.grant_commands import GrantListing
from agent_core.memory.source_catalog import Sources
from agent_core.runtime.agent import Agent
from agent_core.workspace.workspace import Workspace
from sandbox.wire.lines import bare_lines

from .catalogue import BY_NAME, ENTRIES, needed
from .commands.agents import agents
from .commands.calls import calls
from .commands.functions import functions
from .commands.granting import revoked
from .commands.history import results_of
from .commands.memory import memory
from .commands.sources import sources
from .commands.verb import Result, SourceProgress, Verb
from .conversation import Conversation
from .manual_edits import write_section
from .render.statistics import SLASH
from .spans import line
from .state import WorkspaceState, opened_state

_NOUNS: Final = {"functions": functions, "calls": calls, "memory": memory, "agents": agents, "sources": sources}
_SHELL: Final = {
    name: command
    for entry in ENTRIES
    for name, command in [
        (entry.name, entry.runs),
        *((f"{entry.name} {word}", below) for word, below in entry.below.items()),
    ]
    if command
}
_STOPPABLE: Final = ("test", "trace", "memory search", "attach")


class PromptDoor:
    """The prompt: a command works on what the conversation has open."""

    at_prompt = True
    typed = SLASH

    def __init__(self, talk: Conversation) -> None:
        self._talk = talk
        self.agent_name = talk.agent.name

    @property
    def workspace(self) -> Workspace:
        """The open workspace."""
        return self._talk.workspace

    @property
    def shop(self) -> FunctionService:
        """Its functions."""
        return self._talk.workspace.workshop

    def state(self) -> AbstractAsyncContextManager[WorkspaceState]:
        """Open the state on disk, with all agents in it."""
        return opened_state(self._talk.workspace.root)

    async def agent(self, name: str) -> Agent:
        """Return the agent that is talked to."""
        return self._talk.agent

    async def sources(self, name: str) -> Sources:
        """Return the sources of this agent."""
        return self._talk.agent.memory.sources

    async def confirm(self, question: str) -> bool:
        """Ask for a yes."""
        return await self._talk.voice.confirm(question)

    async def ask(self, question: str) -> str | None:
        """Ask nothing: the line is for the next command, which can hold the answer."""
        return None

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Give the terminal to the user's editor."""
        return self._talk.aside()

    def debugger(self) -> Debugger | None:
        """Return None: the workspace was opened with the conversation's debugger."""
        return None

    @contextmanager
    def source_progress(self) -> Iterator[SourceProgress]:
        """Show how far a source is read in the line of the status."""

        def hear(done: int, total: int, name: str) -> None:
            text = f"{done:,} of {total:,} passages of {one_line(name, 60)}" if done < total else ""
            self._talk.voice.status(text)

        try:
            yield hear
        finally:
            self._talk.voice.status("")


async def _run(name: str, talk: Conversation, words: str) -> None:
    """Run a slash command that the shell has, too."""
    verb, _, arguments = words.partition(" ")
    if (below := f"{name} {verb}") in _SHELL or below in _READERS:
        name, words = below, arguments.strip()
    if name not in _STOPPABLE:
        await show(talk, await _shown(name, talk, words))
        return
    async with talk.command():
        await show(talk, await _shown(name, talk, words))


async def _shown(name: str, talk: Conversation, words: str) -> Result:
    if name in _READERS:
        return await _READERS[name](talk, words)
    noun, verb, *places = _SHELL[name].split()
    if places and not places[0].startswith("["):
        needed(words, name.split()[0])
    return await run_shell(talk, noun, verb, *_filled(places, words))


async def run_shell(talk: Conversation, noun: str, name: str, *arguments: str) -> Result:
    """Run a command as it is typed in the shell, and return its result.

    Raises:
        UsageError: the arguments do not fit.
    """
    verb = _NOUNS[noun].commands[name]
    assert isinstance(verb, Verb), f"{noun} {name} is only for the shell"
    return await verb.handler(PromptDoor(talk), **verb.taken(arguments))


async def show(talk: Conversation, shown: Result) -> None:
    """Show the result of a command."""
    talk.failed |= shown.code != 0
    if shown.table is not None:
        await talk.voice.browse(shown.table)
    hint = [line(("dim", shown.hint))] if shown.hint else []
    if lines := [*shown.lines, *shown.aside, *hint]:
        talk.voice.lines(lines)
    if shown.source is not None:
        talk.voice.source(*shown.source)


def _filled(places: Sequence[str], words: str) -> list[str]:
    """Return a word for each of the places, such as `NAME` and `[--args=JSON]`, as the shell takes them.

    The last place takes all that is left; a place without a word is left out.
    """
    texts = [text.strip() for text in words.split(" ", len(places) - 1)] if places else []
    pairs = [(place.strip("[]").partition("=")[0], text) for place, text in zip(places, texts, strict=False) if text]
    options = [f"{place}={text}" for place, text in pairs if place.startswith("--")]
    return [*options, "--", *(text for place, text in pairs if not place.startswith("--"))]


async def _functions(talk: Conversation, words: str) -> Result:
    return await run_shell(talk, "functions", "list", *(["--unused"] if words == "unused" else ["--", words]))


async def _example(talk: Conversation, words: str) -> Result:
    name, _, example = needed(words, "example").partition(" ")
    call, arrow, expected = example.rpartition(" = ")
    if not arrow:
        raise UsageError("An example is a call and its result.", fix=f"Type {BY_NAME['example'].typed}.")
    return await run_shell(talk, "functions", "add-example", f"--call={call}", f"--expected={expected}", "--", name)


async def _rate(thumb: str, talk: Conversation, words: str) -> Result:
    """Rate the named function, or the one that was called last."""
    name, _, note = words.partition(" ")
    called = [call.name for call in talk.log.calls if call.name in talk.names()]
    if not (name or called):
        raise UsageError("No function was called in this session.", fix=f"Type /{thumb} NAME.")
    notes = [note.strip()] if note.strip() and thumb == "bad" else []
    return await run_shell(talk, "functions", thumb, "--", name or called[-1], *notes)


async def _confirm(talk: Conversation, words: str) -> Result:
    name, _, rest = needed(words, "confirm").partition(" ")
    results = results_of(rest.strip()[1:]) if rest.strip().startswith("=") else []
    options = [f"--expected={result}" for result in results] or [f"--reason={rest.strip()}"] * bool(rest.strip())
    return await run_shell(talk, "functions", "confirm", *options, "--", name)


async def _pending(talk: Conversation, words: str) -> Result:
    name, _, action = words.partition(" ")
    return await run_shell(talk, "functions", "pending", *(["--drop"] if action == "drop" else []), "--", name)


async def _grants(talk: Conversation, words: str) -> Result:
    name, _, arguments = words.partition(" ")
    action, _, item = arguments.strip().partition(" ")
    if action not in ("", "revoke"):
        raise UsageError(f"/grants cannot {action}.", fix=f"Type {BY_NAME['grants'].typed}.")
    if not action:
        return await run_shell(talk, "functions", "grants", "--", name)
    shop = talk.workspace.workshop
    return await revoked(shop, name, _named(name, await shop.grants.listing(name), item.strip()) if item else None)


def _named(name: str, listing: GrantListing, item: str) -> Grants:
    """Return one kind of a function's grants, or one item."""
    current = {key: value for row in listing.grants for key, value in row.grants.to_json().items()}
    lists = {key: [item] for key, items in current.items() if isinstance(items, list) and item in items}
    selection = {item: current[item]} if item in current else lists
    if not selection:
        raise UsageError(f"{name} has no grant {item}.", fix=f"Type /grants {name}.")
    return Grants.from_json(selection)


async def _section(talk: Conversation, words: str) -> Result:
    """List the sections of the system message, set one, or drop one."""
    sections = talk.agent.memory.sections
    name, _, arguments = words.partition(" ")
    position, _, text = arguments.strip().partition(" ")
    if not name or not position:
        rows = [row for row in await sections.list() if name in ("", row.name)]
        shown = [
            [line(("name", row.name), ("dim", f"  at {row.position}")), *map(line, bare_lines(row.text))]
            for row in rows
        ]
        none = f"There is no section {name}." if name else "No section yet."
        hint = "" if rows else f"{none} /memory section NAME POSITION TEXT makes one."
        return Result(None, [row for lines in shown for row in lines], hint)
    if position != "drop" and not (position.lstrip("-").isdigit() and text.strip()):
        raise UsageError("A section has a name, a position and a text.", fix="Type /memory section NAME 10 TEXT.")
    number, text = (0, "") if position == "drop" else (int(position), text.strip())
    return Result(None, [line(("ok", "✓ "), await write_section(sections, name, number, text))])


async def _save(talk: Conversation, words: str) -> Result:
    path = words or f"{talk.agent.name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}.json"
    return await run_shell(talk, "agents", "export", "--", talk.agent.name, path if path != "-" else "./-")


_READERS: Final[Mapping[str, Callable[[Conversation, str], Awaitable[Result]]]] = {
    "functions": _functions,
    "example": _example,
    "confirm": _confirm,
    "good": partial(_rate, "good"),
    "bad": partial(_rate, "bad"),
    "pending": _pending,
    "grants": _grants,
    "memory section": _section,
    "save": _save,
}
"""The commands whose words are read in a way of their own."""
RUNS: Final[Mapping[str, Callable[[Conversation, str], Awaitable[None]]]] = {
    name: partial(_run, name) for name in (*_SHELL, *_READERS) if name in BY_NAME
}
