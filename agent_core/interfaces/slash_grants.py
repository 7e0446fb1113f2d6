"""The slash command for grants: list who may reach what, and revoke it."""

from collections.abc import Awaitable, Callable

from agent_core.access.grants import Grants
from agent_core.base.errors import UsageError
from agent_core.functions.service.grant_commands import GrantListing

from .catalogue import BY_NAME
from .conversation import Conversation
from .granted import grants_lines, revoked_lines
from .spans import line


async def _grants(talk: Conversation, words: str) -> None:
    name, _, arguments = words.partition(" ")
    verb, _, item = arguments.strip().partition(" ")
    if verb not in ("", "revoke"):
        raise UsageError(f"/grants cannot {verb}.", fix=f"Type {BY_NAME['grants'].typed}.")
    data = await talk.workspace.workshop.grants.listing(name)
    if verb:
        selection = _named(name, data, item.strip()) if item else None
        talk.voice.lines(revoked_lines(await talk.workspace.workshop.grants.revoke(name, selection)))
        return
    none = f"{name or 'No function'} has {'no' if name else 'a'} grant. You are asked when one is needed."
    talk.voice.lines(grants_lines(data) or [line(("dim", none))])


def _named(name: str, listing: GrantListing, item: str) -> Grants:
    """Return one kind of a function's grants, or one item."""
    current = {key: value for row in listing.grants for key, value in row.grants.to_json().items()}
    selection = (
        {key: current[key]}
        if (key := item) in current
        else {key: [item] for key, has in current.items() if _has(has, item)}
    )
    if not selection:
        raise UsageError(f"{name} has no grant {item}.", fix=f"Type /grants {name}.")
    return Grants.from_json(selection)


def _has(value: object, item: str) -> bool:
    return isinstance(value, list) and item in value


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {"grants": _grants}
