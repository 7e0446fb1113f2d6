"""The API of helpers and of groups, by the text of their files."""

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.json_form import to_json
from agent_core.base.plain_files import read_plain
from agent_core.registry.module_file import remove_text, save_text
from agent_core.registry.source import hash_of
from agent_core.storage import AGENT
from agent_core.workspace.agent_files import first_problems
from agent_core.workspace.group_file import FOLDER, GroupFile
from agent_core.workspace.helper_changes import HelperVerdict

from ..render.agent_view import helper_document, helpers_document
from .failures import ApiRefusal, NotThere
from .identity import NotAllowed
from .operations import Asked, operation
from .parts import Part

_Reason = Annotated[str, Field(max_length=2_000)]


class FileText(Part):
    """The text of a helper's or a group's file, as TOML."""

    text: Annotated[str, Field(min_length=1, max_length=200_000)]
    reason: _Reason = ""


class HelperVersionChoice(Part):
    """A version of a helper; without one, the last before."""

    version: Annotated[str, Field(max_length=64)] = ""
    reason: _Reason = ""


@operation("GET", "/helpers", ("read",), "List the helpers.")
async def helpers(asked: Asked) -> object:
    """List the helpers, and the files that were rejected."""
    return await helpers_document(asked.workspace)


@operation("GET", "/helpers/{name}", ("read",), "Show a helper.")
async def helper(asked: Asked, name: str) -> object:
    """Show a helper: its schema, functions, limits, text and last runs."""
    document = await helper_document(asked.workspace, name)
    return {**document, "last_runs": await asked.rooms.shown(document["last_runs"], asked.identity)}


@operation("PUT", "/helpers/{name}", ("edit",), "Make or replace a helper.")
async def put_helper(asked: Asked, name: str, file_text: FileText) -> object:
    """Make a helper, or replace its file, if its gate admits it."""
    workspace = asked.workspace
    await workspace.helpers.refresh(is_told=False)
    changes, proposal = workspace.helper_changes, workspace.by_user(file_text.reason)
    put = changes.replace if name in workspace.helpers.helpers else changes.create
    return _judged(await put(name, file_text.text, proposal))


@operation("DELETE", "/helpers/{name}", ("edit",), "Delete a helper.")
async def delete_helper(asked: Asked, name: str) -> object:
    """Delete a helper that no other one names."""
    workspace = asked.workspace
    return _judged(await workspace.helper_changes.delete(name, workspace.by_user()))


@operation("GET", "/helpers/{name}/history", ("read",), "Return its versions.")
async def helper_history(asked: Asked, name: str) -> object:
    """Return the versions of a helper."""
    return {"name": name, "versions": await asked.workspace.helpers.history(name)}


@operation("POST", "/helpers/{name}/rollback", ("edit",), "Restore a version.")
async def restore_helper(asked: Asked, name: str, choice: HelperVersionChoice) -> object:
    """Go back to an earlier version of a helper."""
    workspace = asked.workspace
    proposal = workspace.by_user(choice.reason)
    return _judged(await workspace.helper_changes.rollback(name, choice.version, proposal))


@operation("GET", "/groups", ("read",), "List the groups.")
async def groups(asked: Asked) -> object:
    """List the groups, and what is wrong with their files."""
    folder, names = asked.workspace.groups, await asked.workspace.agent_names()
    files = {name: file for name, file in folder.read().items() if await asked.rooms.shows(name, asked.identity)}
    hidden = {_path(name) for name in names if name not in files} if asked.identity.agents else frozenset()
    problems = {row.where.path: (row,) for row in folder.problems if row.where.path not in hidden}
    return {
        "groups": [_group(name, file) for name, file in files.items()],
        "problems": first_problems(FOLDER, problems),
    }


@operation("GET", "/groups/{name}", ("read",), "Show a group.")
async def group(asked: Asked, name: str) -> object:
    """Show a group: its members, purpose and rules."""
    return _group(name, await _group_file(asked, name))


@operation("PUT", "/groups/{name}", ("admin",), "Make or replace a group.")
async def put_group(asked: Asked, name: str, file_text: FileText) -> object:
    """Make a group, or replace its file."""
    workspace, text = asked.workspace, file_text.text
    if not AGENT.fullmatch(name):
        raise UsageError(f"`{name[:80]}` cannot be a name.", fix="Use up to 64 letters, digits, `_` and `-`.")
    members = workspace.groups.parse(text, name).members
    # The file of a group that is hidden from the token is not its own to write, either.
    if not all(map(asked.identity.sees, (name, *members))) or not await asked.rooms.shows(name, asked.identity):
        fix = "Name only agents that the token is for; the group is one of them."
        raise NotAllowed("The token may use certain agents only.", fix=fix)
    path = workspace.root / _path(name)
    old = await asyncio.to_thread(_text, path)
    await asyncio.to_thread(save_text, workspace.root, _path(name), text, None if old is None else hash_of(old))
    problems = [problem for problem in workspace.groups.problems if problem.where.path == _path(name)]
    return {"name": name, "problems": problems}


@operation("DELETE", "/groups/{name}", ("admin",), "Delete a group.")
async def delete_group(asked: Asked, name: str) -> object:
    """Delete a group's file; what was said in it stays."""
    workspace = asked.workspace
    await _group_file(asked, name)
    old = await asyncio.to_thread(_text, workspace.root / _path(name))
    await asyncio.to_thread(remove_text, workspace.root, _path(name), hash_of(old or ""))
    return {"deleted": name}


def _judged(verdict: HelperVerdict) -> object:
    if verdict.admitted:
        return verdict
    problems = [to_json(problem) for problem in verdict.problems]
    message = verdict.denied or next((row["message"] for row in problems), "It was rejected.")
    raise ApiRefusal(422, "rejected", message, "", problems, verdict=to_json(verdict))


async def _group_file(asked: Asked, name: str) -> GroupFile:
    files = asked.workspace.groups.read()
    if name not in files or not await asked.rooms.shows(name, asked.identity):
        raise NotThere(f"There is no group `{name[:80]}`.", fix="The list of groups has the names.")
    return files[name]


def _group(name: str, file: GroupFile) -> dict[str, object]:
    return {"name": name, **to_json(file)}


def _path(name: str) -> str:
    return f"{FOLDER}/{name}.toml"


def _text(path: Path) -> str | None:
    try:
        return read_plain(path, 1 << 20).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
