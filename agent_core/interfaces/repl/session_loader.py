"""The part that is loaded after the prompt is shown: the conversation, connected to the prompt. Slow to import."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from agent_core.base.errors import UsageError
from agent_core.functions.debug import stopping_lines
from agent_core.workspace.group_file import group_names
from agent_core.workspace.local_models import installed_models

from ..conversation import Conversation, opened
from ..options import RunOptions
from ..slash import command, during, take
from ..spans import line
from ..spending import priced, short
from ..state import opened_state
from .prompt import Prompt
from .terminal import TerminalVoice


class LoadedSession:
    """A conversation as the prompt drives it."""

    def __init__(self, conversation: Conversation, voice: TerminalVoice, rests: asyncio.Event) -> None:
        self._conversation = conversation
        self._voice = voice
        self._rests = rests

    @property
    def busy(self) -> bool:
        """True if a turn is running, so what is typed is for it."""
        return self._conversation.busy

    @property
    def stoppable(self) -> bool:
        """True if a turn or a command runs or a question is open: something that Ctrl-C ends."""
        return self._conversation.stoppable or self._voice.asking

    @property
    def left(self) -> bool:
        """True if the user has asked to leave."""
        return self._conversation.left

    def names(self) -> list[str]:
        """Return the function names, for completion."""
        return self._conversation.names()

    async def offered(self, kind: str, first: str) -> list[tuple[str, str]]:
        """Return what of a kind can be typed after a word, each with its description, for completion."""
        return await offered(self._conversation, kind, first)

    async def opening(self, options: RunOptions) -> str:
        """Return the message that is sent before the user's first, if any."""
        return await self._conversation.opening(options)

    def answers(self, text: str) -> bool:
        """Return whether the line answered an open question."""
        return self._voice.answers(text)

    def can_run_beside(self, text: str) -> bool:
        """Return whether a command is running that the line is meant for, as `/break` is for a call."""
        return self._conversation.stoppable and text.split()[:1] == ["/break"]

    async def take(self, text: str) -> None:
        """Process a typed line."""
        with self._voice.at_work(self._conversation.agent.name):
            await self._conversation.guarded(take(self._conversation, text))
        self._voice.rest()
        self._rests.set()

    async def during(self, text: str) -> None:
        """Process a line that was typed while a turn runs."""
        await self._conversation.guarded(during(self._conversation, text))

    async def interrupt(self) -> None:
        """End the running turn, and answer an open question with no."""
        if not self._voice.refuse():
            await self._conversation.interrupt()

    async def leave(self) -> None:
        """Accept nothing more, and end what is running."""
        self._conversation.left = True
        self._voice.refuse()
        await self._conversation.interrupt()


def _connect(conversation: Conversation, voice: TerminalVoice, prompt: Prompt) -> None:
    """Connect the debugger's line and the bar to the conversation."""
    voice.debugger.slash = lambda text: conversation.guarded(during(conversation, text))
    prompt.debug.stops_evaluation = conversation.workspace.debugging.stop_evaluation
    prompt.bar.unsafe = conversation.workspace.settings.sandbox.unsafe
    prompt.bar.status = lambda: conversation.agent.status()  # of the one that is talked to then
    prompt.bar.spent = lambda: short(conversation.spending.total)
    prompt.bar.running = lambda: len(prompt.live.calls)
    prompt.bar.rejected = lambda: len({problem.where.path for problem in conversation.workspace.rejected()})


@asynccontextmanager
async def session(options: RunOptions, prompt: Prompt) -> AsyncIterator[LoadedSession]:
    """Open a conversation that is ready: workspace open, model chosen, the user greeted."""
    voice = TerminalVoice(prompt)
    async with opened(options, voice, command) as conversation, conversation.awake():
        _connect(conversation, voice, prompt)
        await conversation.greet()
        async with asyncio.TaskGroup() as group:
            # The sandbox tests itself while the human thinks; its level is known when it is first needed.
            group.create_task(conversation.guarded(_show_level(conversation, prompt)))
            # A model that reads slowly reads what every request begins with.
            preparing = group.create_task(conversation.guarded(conversation.agent.prepare()))
            group.create_task(conversation.guarded(conversation.workspace.workshop.finder.prepare()))
            if options.resume:
                group.create_task(conversation.guarded(conversation.resume()))
            group.create_task(conversation.guarded(conversation.begin(options)))
            rests = asyncio.Event()
            remembering = group.create_task(conversation.guarded(_remember(conversation, rests)))
            try:
                yield LoadedSession(conversation, voice, rests)
            finally:
                preparing.cancel()
                remembering.cancel()
                await conversation.guarded(conversation.keep_unsaved())


async def _remember(conversation: Conversation, rests: asyncio.Event) -> None:
    """Index what was said and attached between turns, so that it can be searched."""
    while True:
        await rests.wait()
        rests.clear()
        if not conversation.busy:
            await conversation.agent.memory.remember()


async def _show_level(conversation: Conversation, prompt: Prompt) -> None:
    if question := await conversation.workspace.one_wall():
        conversation.voice.lines([line(("warn", "! "), question)])
        conversation.workspace.answer_one_wall(
            agrees=await conversation.voice.confirm("Run functions so on this machine?")
        )
    prompt.bar.sandbox = await conversation.workspace.sandbox_level()
    prompt.app.invalidate()


Offers = list[tuple[str, str]]


async def offered(conversation: Conversation, kind: str, first: str) -> Offers:
    """Return each name of a kind, such as `<version>`, with its description; `first` is the word before it."""
    try:
        return await _OFFERS[kind](conversation, first) if kind in _OFFERS else []
    except UsageError:  # what stands before it names nothing
        return []


async def _versions(conversation: Conversation, name: str) -> Offers:
    versions = await conversation.workspace.workshop.past.versions(name)
    return [
        (str(version.number), f"{version.short or version.change_kind} {version.who} {version.when}")
        for version in reversed(versions)
    ]


async def _lines(conversation: Conversation, name: str) -> Offers:
    snapshot = conversation.workspace.workshop.registry.snapshot()
    return [(str(number), text.strip()) for number, text in stopping_lines(name, snapshot)]


async def _breakpoints(conversation: Conversation, _first: str) -> Offers:
    placed = conversation.workspace.debugging.breakpoints.placed(conversation.workspace.workshop.registry.snapshot())
    return [(str(entry.breakpoint.id), entry.text) for entry in placed]


async def _candidates(conversation: Conversation, _first: str) -> Offers:
    return [(name, "") for name in sorted(await conversation.workspace.workshop.all_pending())]


async def _modules(conversation: Conversation, _first: str) -> Offers:
    return [(name, "") for name in sorted(conversation.workspace.workshop.registry.snapshot().modules)]


async def _labels(conversation: Conversation, _first: str) -> Offers:
    return [(row.label, row.description) for row in conversation.agent.memory.blocks.rows]


async def _sections(conversation: Conversation, _first: str) -> Offers:
    return [(row.name, row.text) for row in await conversation.agent.memory.sections.list()]


async def _agents(conversation: Conversation, _first: str) -> Offers:
    async with opened_state(conversation.workspace.root) as state:
        groups = group_names(conversation.workspace.root)
        agents = [name for name in await state.moves.names() if name not in groups]
        return [*((name, "") for name in agents), *((name, "group") for name in groups)]


async def _calls(conversation: Conversation, _first: str) -> Offers:
    return [(str(call.number), call.name) for call in reversed(conversation.log.calls)]


async def _models(conversation: Conversation, _first: str) -> Offers:
    named = {name: priced(model) for name, model in conversation.workspace.settings.models.items()}
    others = {name: "" for name in [conversation.agent.status().model, *installed_models(), "tour"] if name}
    return [*(others | named).items()]


_OFFERS: dict[str, Callable[[Conversation, str], Awaitable[Offers]]] = {
    "<version>": _versions,
    "<line>": _lines,
    "<breakpoint>": _breakpoints,
    "<candidate>": _candidates,
    "<module>": _modules,
    "<label>": _labels,
    "<section>": _sections,
    "<agent>": _agents,
    "<call>": _calls,
    "<model>": _models,
}
