"""The slash commands that are also shell commands: the typed text becomes the arguments of the shell command.

Its handler uses the workspace and the agent that the conversation has open, and the conversation shows the result.
"""

import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from agent_core.access.grants import Grants
from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.memory.agent_memory import AgentMemory
from agent_core.memory.source_catalog import Sources
from agent_core.operations.attachments import headline
from agent_core.operations.catalog import BY_NAME, VERBS, needed, verb_of
from agent_core.operations.commands.functions import results_of, revoked
from agent_core.operations.verb import Door, SourceProgress
from agent_core.runtime.agent import Agent
from agent_core.storage import AgentName, agent_named, id_of, line_named
from agent_core.storage.journal import text_of
from agent_core.views.function_view import shown_line
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, line
from agent_core.workspace.state_store import WorkspaceState, opened_state
from sandbox.wire.lines import bare_lines

from .conversation import Conversation, RunCommand

_STOPPABLE: Final = ("call", "test", "trace", "memory search", "attach", "agents watch")


class PromptDoor(Door):
    """The prompt's `Door`: a command uses the workspace and the agent that the conversation has open."""

    at_prompt = True

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation.workspace)
        self._conversation = conversation
        self.agent_name = conversation.agent.name
        self.line = line_named(conversation.agent.line)
        self.is_attended = conversation.voice.is_attended

    def state(self) -> AbstractAsyncContextManager[WorkspaceState]:
        """Return the state on disk, with all agents."""
        return opened_state(self._conversation.workspace.root)

    async def known(self, name: str) -> AgentName:
        """Return the name of this agent, unless another is named."""
        return agent_named(name or self.agent_name)

    async def agent(self, name: str) -> Agent:
        """Return the agent of the conversation."""
        return self._conversation.agent

    async def memory(self, name: str) -> AgentMemory:
        """Return the memory of this agent."""
        return self._conversation.agent.memory

    async def sources(self, name: str) -> Sources:
        """Return the sources of this agent."""
        return self._conversation.agent.memory.sources

    async def confirm(self, question: str, *, about: str = "", is_final: bool = False) -> bool:
        """Ask for a yes; it needs the whole word if the action cannot be undone."""
        return await self._conversation.voice.confirm(question, is_final=is_final)

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines above the prompt."""
        self._conversation.voice.lines(lines)

    @asynccontextmanager
    async def resting(self) -> AsyncIterator[None]:
        """Close the agent and reopen it afterwards, so that the session keeps nothing of its old state."""
        await self._conversation.agent.aclose()
        try:
            yield
        finally:
            try:
                await reload_after_forget(self._conversation)
            finally:
                await self._conversation.switch(self.agent_name, id_of(self.line or ""))

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Give the terminal to the user's editor."""
        return (
            self._conversation.aside()
            if self._conversation.voice.is_attended
            else super().editor(fix)
        )

    @contextmanager
    def source_progress(self) -> Iterator[SourceProgress]:
        """Show in the status line how much of a source has been read."""

        def hear(done: int, total: int, name: str) -> None:
            text = f"{done:,} of {total:,} passages of {one_line(name, 60)}" if done < total else ""
            self._conversation.voice.status(text)

        try:
            yield hear
        finally:
            self._conversation.voice.status("")


async def _run(name: str, conversation: Conversation, words: str) -> None:
    """Run a slash command that is also a shell command."""
    name, words = _form_of(name, words)
    is_long = name in BY_NAME and BY_NAME[name].is_long
    if name not in _STOPPABLE and not is_long:
        await show(conversation, await _result_of(name, conversation, words))
        return
    async with conversation.command():
        with (
            conversation.running(words.partition(" ")[0])
            if name in ("test", "trace")
            else nullcontext()
        ):
            shown = await _result_of(name, conversation, words)
        await show(conversation, shown)


async def _result_of(name: str, conversation: Conversation, words: str) -> Result:
    if name in _READERS:
        return await _READERS[name](conversation, words)
    return await run_shell(conversation, *(shell_words(name, words) or ()))


def shell_words(name: str, words: str) -> list[str] | None:
    """Return the arguments of the shell command for a slash command, or None if there is no such shell command.

    Raises:
        UsageError: the words are not valid arguments.
    """
    name, words = _form_of(name, words)
    if name in _WORDS:
        return _WORDS[name](words)
    if name not in OF_SHELL:
        return None
    (noun, verb), entry = VERBS[name], BY_NAME[name.partition(" ")[0]]
    if words and not verb.at_prompt:
        raise UsageError(
            f"/{name} cannot {one_line(words, 40)}.", fix=f"Type {entry.typed}. {entry.says}"
        )
    if verb.at_prompt and verb.at_prompt[0].required:
        needed(words, entry.name)
    return [noun, verb.name or "", *verb.from_prompt(words)]


def _form_of(name: str, words: str) -> tuple[str, str]:
    """Return the command, or the form of it that its first word names, and the remaining words."""
    first, _, others = words.partition(" ")
    below = f"{name} {first}"
    return (below, others.strip()) if below in VERBS or below in _READERS else (name, words)


async def run_shell(conversation: Conversation, noun: str, name: str, *arguments: str) -> Result:
    """Run a command with arguments as typed in the shell, and return its result.

    Raises:
        UsageError: the arguments are invalid.
    """
    verb = verb_of(noun, name)
    assert verb is not None, f"{noun} {name} is only for the shell"
    return await verb.handler(PromptDoor(conversation), **verb.taken(arguments))


async def show(conversation: Conversation, result: Result) -> None:
    """Show the result of a command."""
    conversation.failed |= result.code != 0
    if result.table is not None:
        await conversation.voice.browse(result.table)
    lines = result_lines(result)
    if lines or result.source is not None:
        await conversation.voice.result(conversation.commanded, lines, result.source)


def result_lines(result: Result) -> list[Line]:
    """Return all lines of a result."""
    hint = [line(("dim", result.hint))] if result.hint else []
    return [*result.before, *result.lines, *result.aside, *hint]


def _functions(words: str) -> list[str]:
    if words == "unused":
        return ["functions", "list", "--unused"]
    return ["functions", "search" if len(words.split()) > 1 else "list", "--", words]


def _example(words: str) -> list[str]:
    name, _, example = needed(words, "example").partition(" ")
    call, arrow, expected = example.rpartition(" = ")
    if not arrow:
        raise UsageError(
            "An example is a call and its result.", fix=f"Type {BY_NAME['example'].typed}."
        )
    return ["functions", "add-example", f"--call={call}", f"--expected={expected}", "--", name]


async def _browse(conversation: Conversation, words: str) -> Result:
    """List the functions. Below the complete list, explain the counts in the status bar."""
    result = await run_shell(conversation, *_functions(words))
    if result.table is None:
        return result
    status = conversation.agent.status()
    counted = shown_line(status.functions_shown, status.functions_known, status.functions_own)
    return replace(result, table=replace(result.table, below=(counted, *result.table.below)))


async def _rate(thumb: str, conversation: Conversation, words: str) -> Result:
    """Rate the named function, or the one called last."""
    name, _, note = words.partition(" ")
    called = [call.name for call in conversation.log.calls if call.name in conversation.names()]
    if conversation.tried and conversation.tried[1] == len(
        conversation.log.calls
    ):  # the last call was the user's
        called.append(conversation.tried[0])
    if not (name or called):
        raise UsageError("No function was called in this session.", fix=f"Type /{thumb} NAME.")
    notes = [note.strip()] if note.strip() and thumb == "bad" else []
    return await run_shell(conversation, "functions", thumb, "--", name or called[-1], *notes)


def _confirm(words: str) -> list[str]:
    name, _, rest = needed(words, "confirm").partition(" ")
    results = results_of(rest.strip()[1:]) if rest.strip().startswith("=") else []
    options = [f"--expected={result}" for result in results] or [f"--reason={rest.strip()}"] * bool(
        rest.strip()
    )
    return ["functions", "confirm", *options, "--", name]


def _pending(words: str) -> list[str]:
    name, _, action = words.partition(" ")
    if action not in ("", "drop"):
        raise UsageError(
            f"/pending cannot {one_line(action, 40)}.", fix=f"Type {BY_NAME['pending'].typed}."
        )
    return ["functions", "pending", *(["--drop"] if action == "drop" else []), "--", name]


async def _grants(conversation: Conversation, words: str) -> Result:
    name, _, arguments = words.partition(" ")
    action, _, item = arguments.strip().partition(" ")
    if action not in ("", "revoke"):
        raise UsageError(f"/grants cannot {action}.", fix=f"Type {BY_NAME['grants'].typed}.")
    if not action:
        return await run_shell(conversation, "functions", "grants", "--", name)
    service, selected = conversation.workspace.functions, None
    if item := item.strip():  # one kind of its grants, or a single item
        granted = (await service.grants.listing(name)).grants
        current = {key: value for row in granted for key, value in row.grants.to_json().items()}
        lists = {
            key: [item]
            for key, items in current.items()
            if isinstance(items, list) and item in items
        }
        if not (selection := {item: current[item]} if item in current else lists):
            raise UsageError(f"{name} has no grant {item}.", fix=f"Type /grants {name}.")
        selected = Grants.from_json(selection)
    return await revoked(service, name, selected)


async def _section(conversation: Conversation, words: str) -> Result:
    """List the sections of the system message, set one, or drop one."""
    name, _, arguments = words.partition(" ")
    position, _, text = arguments.strip().partition(" ")
    if not name or not position:
        rows = [
            row for row in await conversation.agent.memory.sections.list() if name in ("", row.name)
        ]
        shown = [
            [
                line(("name", row.name), ("dim", f"  at {row.position}")),
                *map(line, bare_lines(row.text)),
            ]
            for row in rows
        ]
        none = f"There is no section {name}." if name else "No section yet."
        hint = "" if rows else f"{none} /memory section NAME POSITION TEXT makes one."
        return Result(None, [row for lines in shown for row in lines], hint)
    if position != "drop" and not text.strip():
        raise UsageError(
            "A section has a name, a position and a text.", fix="Type /memory section NAME 10 TEXT."
        )
    options = (
        ["--value="]
        if position == "drop"
        else [f"--position={position}", f"--value={text.strip()}"]
    )
    return await run_shell(conversation, "memory", "edit", "--section", *options, "--", name)


_TARGETS: Final = ("message", "turn", "before")
_CHOICES: Final = ("--word", "--exact", "--dry-run")


async def _forget(conversation: Conversation, words: str) -> Result:
    """Parse what to forget: a word for the kind of target and the target, or options and the text. Then forget it."""
    first, _, rest = needed(words, "forget").partition(" ")
    if first in _TARGETS and rest:
        return await run_shell(conversation, "memory", "forget", f"--{first}={rest.strip()}")
    choices: list[str] = []
    while first in _CHOICES:
        choices.append(first)
        words = rest.strip()
        first, _, rest = words.partition(" ")
    result = await run_shell(
        conversation, "memory", "forget", *choices, "--", words.removeprefix("text ").strip()
    )
    if result.document and result.document["outcome"] == "nothing":
        conversation.voice.drop_typed()  # the typed line contains the text
    return result


async def _log(conversation: Conversation, words: str) -> Result:
    try:
        return await run_shell(conversation, "log", "", *shlex.split(words))
    except ValueError as error:
        raise UsageError(
            f"That cannot be read: {error}.", fix=f"Type {BY_NAME['log'].typed}."
        ) from error


def _conversations(words: str) -> list[str]:
    """List the conversations, or find the words in all of them."""
    return ["conversations", *(["search", "--", words] if words else ["list"])]


async def _save(conversation: Conversation, words: str) -> Result:
    path = words or f"{conversation.agent.name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}.json"
    return await run_shell(
        conversation,
        "agents",
        "export",
        "--",
        conversation.agent.name,
        path if path != "-" else "./-",
    )


_WORDS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "functions": _functions,
    "example": _example,
    "confirm": _confirm,
    "pending": _pending,
    "conversations": _conversations,
}
"""The commands with their own parsers for the words after them."""
_READERS: Final[Mapping[str, Callable[[Conversation, str], Awaitable[Result]]]] = {
    "functions": _browse,
    "good": partial(_rate, "good"),
    "bad": partial(_rate, "bad"),
    "grants": _grants,
    "memory section": _section,
    "forget": _forget,
    "save": _save,
    "log": _log,
}
"""The commands that also need the conversation."""
OF_SHELL: Final = {name for name in (*VERBS, *_WORDS) if name in _WORDS or name not in _READERS}
"""The commands that are the same as in the shell."""
RUNS: Final[Mapping[str, RunCommand]] = {
    name: partial(_run, name) for name in (*VERBS, *_WORDS, *_READERS) if name in BY_NAME
}


# Reloading the session's copies of what was said after something was forgotten, so that they match the record.

_RAN_IS_GONE = (
    "The output of ! commands since your last message was dropped. Run them again to send it."
)


async def reload_after_forget(conversation: Conversation) -> None:
    """Reload the session's data from the record, and drop what the record does not contain."""
    conversation.voice.drop_typed()
    conversation.log.forget()
    conversation.results.clear()
    conversation.tried = None
    if conversation.ran:
        conversation.ran = []
        conversation.voice.aloud([line(("warn", f"! {_RAN_IS_GONE}"))])
    agents = {turn.agent for turn in conversation.spending.turns}
    here = conversation.agent
    begun: dict[str, dict[str, str]] = {}  # the text that began each turn of an agent, on one line
    for agent in agents:
        entries = await conversation.workspace.store.history(
            here.line if agent == here.name else agent, kinds=("user", "notice"), with_removed=True
        )
        begun[agent] = {
            entry.turn: headline(text_of(entry))
            for kind in ("notice", "user")  # the message, or otherwise the notice
            for entry in entries[::-1]
            if entry.kind == kind
        }
    conversation.spending.reread({agent: [*texts.values()] for agent, texts in begun.items()})
