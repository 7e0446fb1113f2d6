"""The API of commands: what `knapper --server URL …` runs where the workspace is, with the handlers of the shell."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import click
from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.json_form import to_json

from ..commands.agents import agents
from ..commands.calls import calls
from ..commands.functions import functions
from ..commands.helpers import helpers
from ..commands.memory import memory
from ..commands.sources import sources
from ..commands.verb import Result, Verb
from .command_door import ServerDoor
from .failures import NotThere
from .identity import SCOPES, Scope
from .operations import API, Asked, Operation
from .parts import Part

_NOUNS: Final[Mapping[str, click.Group]] = {
    "functions": functions,
    "calls": calls,
    "memory": memory,
    "agents": agents,
    "sources": sources,
    "helpers": helpers,
}
_ALLOWED: Final[Mapping[Scope, Mapping[str, str]]] = {
    "read": {
        "functions": "list search show history diff blame grants",
        "calls": "list show",
        "memory": "show history search",
        "agents": "list show tree",
        "sources": "list",
        "helpers": "list show history propose",
    },
    "edit": {
        "functions": "create edit delete test trace release good bad rollback add-example confirm pending reload",
        "calls": "replay",
        "memory": "edit undo add",
        "sources": "attach detach remove",
        "helpers": "create edit delete rollback",
    },
    "chat": {"functions": "call"},
    "approve": {"functions": "revoke"},
}
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
    verb, scope = _verb(noun, name)
    asked.identity.needs(scope)
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


def _verb(noun: str, name: str) -> tuple[Verb, Scope]:
    for scope in SCOPES:
        if name in _ALLOWED.get(scope, {}).get(noun, "").split():
            verb = _NOUNS[noun].commands[name]
            assert isinstance(verb, Verb)
            return verb, scope
    raise NotThere(f"`{noun[:80]} {name[:80]}` does not work over a server.", fix="Run it where the workspace is.")


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
