"""The slash command about grants: who may reach what, and to take it back."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent_core.errors import UsageError
from agent_core.grants import Grants

from .catalogue import BY_NAME
from .conversation import Conversation
from .granted import grants_lines, revoked_lines
from .spans import line


async def _grants(talk: Conversation, words: str) -> None:
    name, _, rest = words.partition(" ")
    verb, _, what = rest.strip().partition(" ")
    if verb not in ("", "revoke"):
        raise UsageError(f"/grants cannot {verb}.", mend=f"Type {BY_NAME['grants'].typed}.")
    found = await talk.workspace.workshop.grants.listing(name)
    if verb:
        taken = _named(name, found, what.strip()) if what else None
        talk.voice.lines(revoked_lines(await talk.workspace.workshop.grants.revoke(name, taken)))
        return
    none = f"{name or 'No function'} has {'no' if name else 'a'} grant. You are asked when one is needed."
    talk.voice.lines(grants_lines(found) or [line(("dim", none))])


def _named(name: str, found: dict[str, Any], what: str) -> Grants:  # Any: JSON
    """Of what a function has, a kind of it or one item."""
    held = {key: value for row in found["grants"] for key, value in row["grants"].items()}
    taken = {key: held[key]} if (key := what) in held else {key: [what] for key, has in held.items() if _has(has, what)}
    if not taken:
        raise UsageError(f"{name} has no grant {what}.", mend=f"Type /grants {name}.")
    return Grants.from_json(taken)


def _has(held: object, what: str) -> bool:
    return isinstance(held, list) and what in held


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {"grants": _grants}
