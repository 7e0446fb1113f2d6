"""The API of commands: what `knapper --server URL …` runs where the workspace is, with the handlers of the shell."""

from typing import Annotated, Any, Final

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.json_form import to_json

from ..catalogue import verb_of
from ..commands.verb import Result
from .command_door import ServerDoor
from .failures import NotThere
from .identity import SCOPES
from .operations import API, Asked, Operation
from .parts import Part

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


async def command(asked: Asked) -> object:
    """Run a command of `knapper`, and return what it shows."""
    body = asked.body
    noun, name, *words = body.words
    verb = verb_of(noun, name)
    if verb is None or not verb.scope:
        raise NotThere(f"`{noun[:80]} {name[:80]}` does not work over a server.", fix="Run it where the workspace is.")
    asked.identity.needs(verb.scope)
    if asked.identity.agents and noun not in _OF_ALL_AGENTS:
        raise UsageError(f"`{noun}` needs a token for all agents.", fix="Use the API, or another token.")
    if any(word in _HELP for word in words):
        raise UsageError("Help is where the command is typed.")
    agent = await asked.rooms.known(body.agent, asked.identity) if body.agent else ""
    owners = await asked.rooms.owners(asked.identity)
    door = ServerDoor(
        asked.rooms, body.texts, agent=agent, owners=owners, at_prompt=body.at_prompt, is_sure=body.is_sure
    )
    return _shown(await verb.handler(door, **verb.taken(words)))


def _shown(result: Result) -> dict[str, Any]:  # Any: JSON
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


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("POST", f"{API}/commands", SCOPES, "Run a command of the shell.", command, CommandLine),
)
