"""The API of what is set up: the files that describe agents, and secrets, of which only names are ever returned."""

import asyncio
from typing import Annotated, Final

from pydantic import Field

from agent_core.access.secrets import Secrets
from agent_core.base.errors import WorkspaceError
from agent_core.base.plain_files import read_plain
from agent_core.base.records import to_json
from agent_core.base.settings import Value, with_values
from agent_core.base.untrusted import one_line
from agent_core.registry.module_edits import remove_text, save_text
from agent_core.registry.source import hash_of
from agent_core.storage import is_agent_name
from agent_core.workspace.agent_files import MOST_BYTES, AgentFiles

from .identity import ApiRefusal, NotAllowed, NotThere
from .operations import Asked, Part, api_operation

_TEXT_LIMIT: Final = 8_000
_PATTERN_LIMIT: Final = 200
_Pattern = Annotated[str, Field(min_length=1, max_length=200)]


class AgentDescription(Part):
    """What the file of an agent says of it; what is left out stays as it is.

    `functions` are patterns; `over` is the text of the file that this is a change of, "" for a new one.
    """

    purpose: Annotated[str | None, Field(max_length=_TEXT_LIMIT)] = None
    persona: Annotated[str | None, Field(max_length=_TEXT_LIMIT)] = None
    model: Annotated[str | None, Field(max_length=200)] = None
    functions: Annotated[list[_Pattern] | None, Field(max_length=_PATTERN_LIMIT)] = None
    over: Annotated[str, Field(max_length=MOST_BYTES)] = ""


class SecretValue(Part):
    """The value of a secret."""

    value: Annotated[str, Field(min_length=1, max_length=16 << 10)]


@api_operation("GET", "/agents/{name}/file", ("admin",), "Return the file of an agent.")
async def agent_file(asked: Asked, name: str) -> object:
    """Return the text of an agent's file, and what it says; an agent without a file may do everything."""
    await _require_seen(asked, name)
    return await _file_json(asked, name)


@api_operation("PUT", "/agents/{name}/file", ("admin",), "Describe an agent.")
async def describe_agent(asked: Asked, name: str, description: AgentDescription) -> object:
    """Write what an agent is for, and what it may use, into its file; comments and other keys stay.

    A file that was changed meanwhile is a 409, which has its text. An agent that is made afterwards has the persona.
    """
    await _require_seen(asked, name)
    directory = asked.workspace.directory
    await asyncio.to_thread(directory.check_name, name)
    before = await asyncio.to_thread(_text, directory, name)
    if (before or "") != description.over:
        message = f"agents/{name}.toml was changed meanwhile."
        problems = [{"where": "body.over", "message": message, "text": before or ""}]
        raise ApiRefusal(409, "changed", message, "Look at what it says now.", problems)
    wanted: dict[str, Value] = description.model_dump(exclude={"over"}, exclude_none=True)
    path = f"agents/{name}.toml"
    text = with_values(before or "", wanted, path)
    directory.folder.parse(text, name)
    version = None if before is None else hash_of(before)
    await asyncio.to_thread(save_text, asked.workspace.root, path, text, version)
    return await _file_json(asked, name)


@api_operation("DELETE", "/agents/{name}/file", ("admin",), "Delete the file of an agent.")
async def delete_agent_file(asked: Asked, name: str) -> object:
    """Delete the file of an agent, if it has one; what was said with it stays."""
    await _require_seen(asked, name)
    before = await asyncio.to_thread(_text, asked.workspace.directory, name)
    if before is not None:
        path = f"agents/{name}.toml"
        await asyncio.to_thread(remove_text, asked.workspace.root, path, hash_of(before))
    return {"deleted": name, "had_file": before is not None}


async def _require_seen(asked: Asked, name: str) -> None:
    """Check that a token may see an agent, which need not exist yet.

    Raises:
        NotThere: nothing can have this name.
        NotAllowed: it is for other agents.
    """
    if not is_agent_name(name):
        raise NotThere(f"There is no agent `{one_line(name, 80)}`.", fix="The list has the names.")
    if not asked.identity.sees(name) or not await asked.rooms.shows(name, asked.identity):
        raise NotAllowed(f"The token may not use an agent `{name[:80]}`.")


async def _file_json(asked: Asked, name: str) -> dict[str, object]:
    directory = asked.workspace.directory
    text = await asyncio.to_thread(_text, directory, name)
    profile = await asyncio.to_thread(directory.profile, name)
    path = f"agents/{name}.toml"
    problems = [row for row in directory.folder.problems if row.where.path == path]
    about = {"name": name, "path": path, "text": text, "problems": problems}
    return {**about, "profile": to_json(profile)}


def _text(agent_files: AgentFiles, name: str) -> str | None:
    try:
        return read_plain(agent_files.place / f"{name}.toml", MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(
            f"agents/{name}.toml cannot be read: {error}.", fix="Make it an ordinary text file."
        ) from error


@api_operation("GET", "/secrets", ("admin",), "List the names of secrets.")
async def secrets(asked: Asked) -> object:
    """List the secrets by name: where each comes from, and which functions may read it. Values are never returned."""
    _require_all(asked)
    store = Secrets(asked.workspace.root)
    readers = dict[str, list[str]]()
    listing = await asked.functions.grants.listing("", await asked.rooms.owners(asked.identity))
    for row in listing.grants:
        for name in row.in_force.secrets:
            readers.setdefault(name, []).append(row.name)
    problem = ""
    places = store.variables()
    try:
        places = await asyncio.to_thread(store.places)
    except WorkspaceError as error:
        problem = f"{error.message} {error.fix or ''}".strip()
    rows = [
        {"name": name, "from": places.get(name), "functions": readers.get(name, [])}
        for name in sorted({*places, *readers})
    ]
    return {"secrets": rows, "problem": problem}


@api_operation("PUT", "/secrets/{name}", ("admin",), "Set a secret.")
async def set_secret(asked: Asked, name: str, secret: SecretValue) -> object:
    """Write the value of a secret into the file that only the user of the server may read, and nowhere else."""
    _require_all(asked)
    store = Secrets(asked.workspace.root)
    await asyncio.to_thread(store.put, name, secret.value)
    return {"name": name, "from": store.variables().get(name) or "file"}


@api_operation("DELETE", "/secrets/{name}", ("admin",), "Remove a secret.")
async def remove_secret(asked: Asked, name: str) -> object:
    """Remove a secret from the user's file."""
    _require_all(asked)
    store = Secrets(asked.workspace.root)
    await asyncio.to_thread(store.remove, name)
    return {"removed": name, "from": store.variables().get(name)}


def _require_all(asked: Asked) -> None:
    """Check that a token is not limited to agents: secrets are the user's, in every workspace.

    Raises:
        NotAllowed: it is.
    """
    if asked.identity.agents:
        raise NotAllowed(
            "Secrets are those of the user, and this token may use certain agents only.",
            fix="Use a token for all agents.",
        )
