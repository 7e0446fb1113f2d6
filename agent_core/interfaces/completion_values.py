"""The possible arguments of a slash command at this moment, by kind, for completion."""

from collections.abc import Awaitable, Callable

from agent_core.base.errors import UsageError
from agent_core.functions.debug import stopping_lines
from agent_core.workspace.group_file import group_names
from agent_core.workspace.local_models import installed_models

from .conversation import Conversation
from .spending import priced
from .state import opened_state

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
