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


async def offered(talk: Conversation, kind: str, first: str) -> Offers:
    """Return each name of a kind, such as `<version>`, with its description; `first` is the word before it."""
    try:
        return await _OFFERS[kind](talk, first) if kind in _OFFERS else []
    except UsageError:  # what stands before it names nothing
        return []


async def _versions(talk: Conversation, name: str) -> Offers:
    versions = await talk.workspace.workshop.past.versions(name)
    return [
        (str(version.number), f"{version.short or version.change_kind} {version.who} {version.when}")
        for version in reversed(versions)
    ]


async def _lines(talk: Conversation, name: str) -> Offers:
    snapshot = talk.workspace.workshop.registry.snapshot()
    return [(str(number), text.strip()) for number, text in stopping_lines(name, snapshot)]


async def _breakpoints(talk: Conversation, _first: str) -> Offers:
    placed = talk.workspace.debugging.breakpoints.placed(talk.workspace.workshop.registry.snapshot())
    return [(str(entry.breakpoint.id), entry.text) for entry in placed]


async def _candidates(talk: Conversation, _first: str) -> Offers:
    return [(name, "") for name in sorted(await talk.workspace.workshop.all_pending())]


async def _modules(talk: Conversation, _first: str) -> Offers:
    return [(name, "") for name in sorted(talk.workspace.workshop.registry.snapshot().modules)]


async def _labels(talk: Conversation, _first: str) -> Offers:
    return [(row.label, row.description) for row in talk.agent.memory.blocks.rows]


async def _sections(talk: Conversation, _first: str) -> Offers:
    return [(row.name, row.text) for row in await talk.agent.memory.sections.list()]


async def _agents(talk: Conversation, _first: str) -> Offers:
    async with opened_state(talk.workspace.root) as state:
        groups = group_names(talk.workspace.root)
        agents = [name for name in await state.moves.names() if name not in groups]
        return [*((name, "") for name in agents), *((name, "group") for name in groups)]


async def _calls(talk: Conversation, _first: str) -> Offers:
    return [(str(call.number), call.name) for call in reversed(talk.log.calls)]


async def _models(talk: Conversation, _first: str) -> Offers:
    named = {name: priced(model) for name, model in talk.workspace.settings.models.items()}
    others = {name: "" for name in [talk.agent.status().model, *installed_models(), "tour"] if name}
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
