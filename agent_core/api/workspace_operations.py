"""The API of what a workspace holds: functions, grants and questions about them, sources, calls, helpers and groups.

Also the API of the workspace as a whole, and of `knapper --server URL …` commands, which the shell's handlers run. A
source is a document that a client uploads for an agent, in parts.
"""

import asyncio
import binascii
import hashlib
import json
import os
import re
import stat
import time
from base64 import b64decode
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from agent_core.access.grants import Answer, Approvals, Decision, PendingQuestion
from agent_core.access.grants.approval import QuestionChanged, successor
from agent_core.base import machine
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.gone import gone_sentence
from agent_core.base.offload import PER_ENTRY, aside
from agent_core.base.plain_files import ADDING, open_plain, read_plain
from agent_core.base.records import to_json
from agent_core.base.untrusted import one_line
from agent_core.functions.asking import FunctionQuestion
from agent_core.functions.debug import Debugger
from agent_core.functions.service import CheckRequest
from agent_core.functions.service.judgment import Judgment
from agent_core.functions.service.plan import USER, Author
from agent_core.functions.service.replay import Replays
from agent_core.memory.source_catalog import Sources
from agent_core.operations.catalog import verb_of
from agent_core.operations.commands.memory import source_json
from agent_core.operations.verb import CHANGED, Door
from agent_core.registry.module_edits import remove_text, save_text
from agent_core.registry.source import hash_of
from agent_core.runtime.agent import Agent
from agent_core.storage import (
    MAIN,
    AgentName,
    CallOwners,
    agent_named,
    is_agent_name,
    is_history,
    own_folder,
    prepare_state_dir,
)
from agent_core.views.agent_view import helper_document, helpers_document
from agent_core.views.grant_question import title_of
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, plain, warned
from agent_core.workspace.agent_files import GROUPS, GroupFile, first_problems
from agent_core.workspace.portable import NoAgent
from agent_core.workspace.state_store import WorkspaceState

from .identity import OWNER, SCOPES, ApiRefusal, NotAllowed, NotThere
from .operations import Asked, Part, api_operation, require_admitted

_MOST_SOURCE: Final = 200_000
_Source = Annotated[str, Field(min_length=1, max_length=_MOST_SOURCE)]
_Reason = Annotated[str, Field(max_length=2_000)]


class FunctionFilter(Part):
    """A filter of functions: a part of a name or description, a module, a standing."""

    pattern: Annotated[str, Field(max_length=200)] = ""
    module: Annotated[str, Field(max_length=200)] = ""
    standing: Literal["", "draft", "trial", "trusted", "quarantined"] = ""


class Need(Part):
    """A need that a function serves."""

    need: Annotated[str, Field(min_length=1, max_length=2_000)]
    count: Annotated[int, Field(ge=1, le=50)] = 5


class FunctionBody(Part):
    """The source of a function. `module` is where a new one goes; `when` says whether it must be new, or there.

    `over` is the source that this is a change of, if no other one may be overwritten.
    """

    source: _Source
    module: Annotated[str, Field(max_length=200)] = "grown"
    reason: _Reason = ""
    when: Literal["either", "new", "there"] = "either"
    over: Annotated[str | None, Field(max_length=_MOST_SOURCE)] = None


class TextEdit(Part):
    """A part of a source to replace; `old` must occur exactly once."""

    old: _Source
    new: Annotated[str, Field(max_length=_MOST_SOURCE)]
    reason: _Reason = ""


class CandidateBody(Part):
    """A function to judge without admitting it."""

    source: _Source
    name: Annotated[str, Field(max_length=200)] = ""
    module: Annotated[str, Field(max_length=200)] = ""
    policy: Literal["agent", "human", "import"] = "agent"


class Arguments(Part):
    """The arguments of a call, by name."""

    arguments: Annotated[
        dict[str, Any], Field(default_factory=dict)
    ]  # Any: JSON, checked by the function's schema


class TestCall(Part):
    """The arguments of one call to try, by name; without them, the examples are run."""

    arguments: dict[str, Any] | None = None  # Any: JSON, checked by the function's schema


class ApprovalAnswer(Part):
    """An answer to a question about grants, perhaps with a word for the model. `wide`: a yes for the folder, too.

    `never` is a no for good: nobody is asked for the same again.
    """

    answer: Literal["once", "yes", "no", "never"]
    word: Annotated[str, Field(max_length=400)] = ""
    wide: bool = False


async def _known_function(asked: Asked, name: str) -> str:
    """Return the name of an existing function of the workspace.

    Raises:
        NotThere: there is no such function.
    """
    if name not in asked.functions.names():
        raise NotThere(
            f"There is no function `{name[:80]}`.", fix="The list of functions has the names."
        )
    return name


async def _listed_function(asked: Asked, name: str) -> str:
    """Return the name of an existing function, which may be one of another program.

    Raises:
        NotThere: there is no such function.
    """
    return name if name in asked.functions.foreign() else await _known_function(asked, name)


ThereFunction = Annotated[str, _known_function]
_ListedFunction = Annotated[str, _listed_function]


@api_operation("GET", "/functions", ("read",), "List the functions.")
async def functions(asked: Asked, function_filter: FunctionFilter) -> object:
    """List the functions, and what was rejected."""
    return await asked.functions.list(
        function_filter.pattern, function_filter.module, function_filter.standing
    )


@api_operation("POST", "/functions/check", ("read", "edit"), "Judge a function.")
async def check(asked: Asked, body: CandidateBody) -> object:
    """Judge a function without admitting it."""
    verdicts = list[Judgment]()
    with TemporaryDirectory(prefix="knapper-") as folder:
        path = Path(folder) / "candidate.py"
        path.write_text(body.source, "utf-8")
        request = CheckRequest((path,), body.policy, body.name, body.module, asked.workspace.root)
        await asked.functions.checks.check(request, verdicts.append)
    if not verdicts:
        raise UsageError(
            "There is no function in the source.", fix="Send the text of one function."
        )
    return verdicts[0]


@api_operation("GET", "/functions/search", ("read",), "Find functions by need.")
async def search(asked: Asked, need: Need) -> object:
    """Find functions by what they are needed for."""
    owners = await asked.rooms.owners(asked.identity)
    return await asked.functions.search(need.need, need.count, owners=owners)


@api_operation("PUT", "/functions/{name}", ("edit",), "Create or replace a function.")
async def put(asked: Asked, name: str, body: FunctionBody) -> object:
    """Create a function, or replace it; the gate judges it."""
    service = asked.functions
    if body.over is not None:
        await _require_source(asked, name, body.over)
    if body.when == "there" or (body.when == "either" and name in service.names()):
        return require_admitted(await service.replace(name, body.source, reason=body.reason))
    return require_admitted(
        await service.create(name, body.source, body.module, reason=body.reason)
    )


async def _require_source(asked: Asked, name: str, over: str) -> None:
    """Check that a function still has the source that a change of it was made for.

    Raises:
        ApiRefusal: it has another source by now, which its problem has, or it was deleted.
    """
    await asked.functions.reload()
    now = ""
    message = f"`{name[:80]}` was deleted meanwhile."
    if name in asked.functions.names():
        now = (await asked.functions.introspect(name)).source
        message = f"`{name[:80]}` was changed meanwhile."
    if now != over:
        problems = [{"where": "body.over", "message": message, "source": now}]
        fix = "Look at what it is now, and change that; or send it as `over`, to replace it."
        raise ApiRefusal(409, "changed", message, fix, problems)


@api_operation("PATCH", "/functions/{name}", ("edit",), "Edit a function.")
async def edit(asked: Asked, name: ThereFunction, text_edit: TextEdit) -> object:
    """Replace a part of a function's source; the gate judges the result."""
    return require_admitted(
        await asked.functions.edit(name, text_edit.old, text_edit.new, reason=text_edit.reason)
    )


@api_operation("POST", "/functions/{name}/call", ("chat", "edit"), "Call a function.")
async def call(asked: Asked, name: _ListedFunction, arguments: Arguments) -> object:
    """Call a function in a worker, on the record."""
    owners = await asked.rooms.owners(asked.identity)
    return await asked.functions.call(
        name, arguments.arguments, author=by_hand(asked), owners=owners
    )


@api_operation("POST", "/functions/{name}/test", ("edit",), "Run a function's examples.")
async def test(asked: Asked, name: ThereFunction, test_call: TestCall) -> object:
    """Run a function's examples in workers, or one call, off the record."""
    return await asked.functions.test(name, test_call.arguments)


@api_operation("GET", "/approvals", ("approve", "read"), "List pending questions.")
async def approvals(asked: Asked) -> object:
    """List the questions about grants that wait for an answer, oldest first, and under `asks` those of functions."""
    pending = await _pending(asked)
    shown = await aside(PER_ENTRY * len(pending), _questions_json, pending)
    asks = [{**question.to_shown(), "agent": agent} for agent, question in await _asks(asked)]
    return {"approvals": shown, "asks": asks}


def _questions_json(pending: Iterable[PendingQuestion]) -> list[dict[str, Any]]:  # Any: JSON
    return [*map(_question_json, pending)]


def _question_json(pending_question: PendingQuestion) -> dict[str, Any]:  # Any: JSON
    """Return all that a question shows, and what it covers. Its `id` changes with any of it."""
    question = pending_question.question
    kept = {
        "id": pending_question.id,
        "agent": pending_question.agent,
        "turn": pending_question.turn,
        "asked_at": pending_question.asked_at,
    }
    says, may = question.says, list(question.granted.sentences())
    shown = {
        "title": title_of(question),
        "says": says,
        "may": may,
        "is_about_text": question.is_about_text,
    }
    return {**question.to_json(), **kept, **shown, "command": question.command}


@api_operation("POST", "/approvals/{id}", ("approve",), "Answer a question.")
async def answer(asked: Asked, id: str, approval: ApprovalAnswer) -> object:
    """Answer a question about grants, or one of a function: a yes with the answer as `word`. The first one counts.

    An answer to a question that has changed since is a 409, with the new `question`.
    """
    for _, own in await _asks(asked):
        if own.id == id:
            decision = Decision("no")
            if approval.answer == "yes":
                decision = Decision("yes", own.read(approval.word))
            await asked.workspace.answer(id, decision)
            return {"id": id, "answer": decision.answer}
    pending = {row.id: row for row in await _pending(asked)}
    if id not in pending:
        if row := successor(id, pending.values()):
            changed = QuestionChanged(row.question)
            raise ApiRefusal(
                409, changed.code, changed.message, changed.fix, question=_question_json(row)
            )
        raise NotThere(
            f"No question `{id[:80]}` is pending: it was answered, or its turn has ended."
        )
    question = pending[id].question
    is_wide = approval.wide and approval.answer == "yes" and bool(question.folder)
    if is_wide and question.maker and not await asked.rooms.shows(question.maker, asked.identity):
        fix = "Answer without `wide`, or use a token for that agent."
        raise NotAllowed(f"The folder would be for all functions of `{question.maker}`.", fix=fix)
    is_lasting = approval.answer == "never"
    given: Answer = "no"
    if approval.answer != "never":
        given = approval.answer
    decision = Decision(given, approval.word, is_wide=is_wide, is_lasting=is_lasting)
    await asked.workspace.answer(id, decision)
    return {"id": id, "answer": approval.answer}


@api_operation("GET", "/status", ("read", "chat"), "Return how the server is.")
async def status(asked: Asked) -> object:
    """Return how the server is: its workspace, agents at work, and what waits.

    `model_trouble` is why no turn can be taken yet; `saves` counts the changes of functions by files since the start,
    and `last_save` is what the last one did; `rejected` counts the files that do not load now, and `grants` is another
    number after each change of the grants. `waiting` counts the rejected candidates that are kept. `stopped` is the
    function whose call stands at a breakpoint, for who may say how it goes on. `paused` is why nothing runs by itself
    now, or null.
    """
    rooms, usual = asked.rooms, asked.workspace.settings.agent
    agents = await rooms.shown(await rooms.state.store.agent_names(), asked.identity)
    return {
        "workspace": rooms.workspace.root.name,
        "agent": usual if asked.identity.sees(usual) else min(asked.identity.agents),
        "agents": sum(not is_history(name) for name in agents),
        "running": [name for name in agents if rooms.host.is_at_work(name)],
        "functions": rooms.workspace.functions.count(),
        "approvals": len(await _pending(asked)),
        "sandbox": await rooms.workspace.sandbox_level(),
        "model_trouble": rooms.host.model_trouble(),
        "saves": rooms.host.saves,
        "last_save": rooms.host.last_save if "read" in asked.identity.scopes else "",
        "waiting": len(await rooms.state.store.all_pending()),
        "rejected": len({problem.where.path for problem in asked.workspace.rejected()}),
        "grants": asked.functions.granting.book.changed_at(),
        "stopped": _stopped(asked),
        "paused": (await rooms.state.store.spending_rules()).pause,
    }


def _stopped(asked: Asked) -> str:
    """Return the function whose call stands at a stop, or "" for who may not step through it."""
    held = asked.rooms.host.debugger.held
    is_shown = not asked.identity.agents and "edit" in asked.identity.scopes
    return held.stop.call if held is not None and is_shown else ""


async def _pending(asked: Asked) -> list[PendingQuestion]:
    """Return the pending questions of agents that the token may see, oldest first."""
    questions = await asked.workspace.questions()
    return [row for row in questions if await asked.rooms.concerns(row.agent, asked.identity)]


async def _asks(asked: Asked) -> list[tuple[str, FunctionQuestion]]:
    """Return the pending questions of functions in conversations that the token may read, oldest first.

    One about a grant says what a function may reach. The words of a function are of the conversation.
    """
    asks = list[tuple[str, FunctionQuestion]]()
    for row in await asked.workspace.store.pending_questions(asked.identity.reader):
        question = FunctionQuestion.from_row(row)
        if question is not None and await asked.rooms.shows(row.agent, asked.identity):
            asks.append((row.agent, question))
    return asks


def by_hand(asked: Asked) -> Author:
    """Return the user; logged in on the page, they are asked there for missing grants."""
    if asked.identity is not OWNER:
        return USER
    workspace = asked.workspace
    return Author(
        approvals=Approvals(workspace.functions.granting.queue.asking(workspace.answered_by_id))
    )


# The sources of agents.

_MOST_BYTES: Final = 32 << 20
_MOST_PART: Final = 1_400_000  # characters of base64
_STALE_S: Final = 24 * 3_600
_MOST_UPLOADS: Final = 1_000  # that are looked at in one request
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")


class Upload(Part):
    """A part of a document, in base64. `offset` is where in the document it begins; `more`: others follow."""

    name: Annotated[str, Field(min_length=1, max_length=300)]
    data: Annotated[str, Field(max_length=_MOST_PART)]
    offset: Annotated[int, Field(ge=0, le=_MOST_BYTES)] = 0
    more: bool = False


class SourceName(Part):
    """A source: its name, or the beginning of its hash."""

    source: Annotated[str, Field(min_length=1, max_length=300)]


@api_operation("GET", "/agents/{agent}/sources", ("read",), "List the sources of an agent.")
async def sources(asked: Asked, agent: str) -> object:
    """List the sources of an agent, with how much of each is stored."""
    rows = await (await _sources(asked, agent)).list()
    return {"agent": agent, "sources": [source_json(row) for row in rows]}


@api_operation("POST", "/agents/{agent}/sources", ("edit",), "Upload a part of a source.")
async def upload(asked: Asked, agent: str, upload: Upload) -> object:
    """Take a part of a document; after the last one, read it all into archival memory. `GET` tells how far it is."""
    try:
        folder = own_folder(prepare_state_dir(asked.workspace.root), "uploads")
        _remove_stale(folder)
    except OSError as error:
        fix = f"Remove `{error.filename}` if you did not put it there."
        raise WorkspaceError(
            f"`{error.filename}` cannot be used: {error.strerror}.", fix=fix
        ) from error
    kind = _SUFFIX.search(upload.name)  # only the file type of the name is used in the path
    key = "\0".join((asked.identity.name, agent, upload.name))
    place = (
        folder
        / f"{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()}{kind[0] if kind else ''}"
    )
    size = _received(place)
    if upload.offset not in (0, size):
        message = f"The next part of `{one_line(upload.name, 80)}` begins at {size}, not at {upload.offset}."
        raise ApiRefusal(
            409, "offset", message, "Go on there, or begin again at 0.", [{"offset": size}]
        )
    try:
        data = b64decode(upload.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(
            "The data are not base64.", fix="Encode the bytes of the document as base64."
        ) from error
    if upload.offset + len(data) > _MOST_BYTES:
        place.unlink(missing_ok=True)
        raise UsageError(
            f"A document may have {_MOST_BYTES >> 20} MiB.",
            fix="Split it, or use knapper sources add.",
        )
    _receive(place, data, is_first=not upload.offset)
    received = {"name": upload.name, "received": upload.offset + len(data)}
    if upload.more:
        return {**received, "sources": []}
    try:
        reports = await (await _sources(asked, agent)).add(str(place), name=one_line(upload.name))
    finally:
        place.unlink(missing_ok=True)
    return {**received, "sources": reports}


# The name of an upload can be known before, so a folder that comes from someone else may have a link, a pipe or a
# second name of another file there. The first part is written to a new file, the others only to a file like that one.


def _remove_stale(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in islice(entries, _MOST_UPLOADS):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_S:
                with suppress(OSError):
                    Path(entry.path).unlink()


def _received(place: Path) -> int:
    try:
        status = place.lstat()
    except FileNotFoundError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else 0


def _receive(place: Path, data: bytes, *, is_first: bool) -> None:
    """Write a part of an upload.

    Raises:
        WorkspaceError: it cannot be written.
    """
    try:
        if is_first:
            place.unlink(missing_ok=True)
        descriptor = open_plain(place, machine.MAKING if is_first else ADDING)
        with os.fdopen(descriptor, "ab") as file:
            file.write(data)
    except OSError as error:
        fix = f"Remove `{place}` if you did not put it there, and check that there is room."
        raise WorkspaceError(f"The document cannot be kept: {error.strerror}.", fix=fix) from error


@api_operation("DELETE", "/agents/{agent}/sources", ("edit",), "Remove a source.")
async def remove(asked: Asked, agent: str, source_name: SourceName) -> object:
    """Remove a source from an agent, with its passages."""
    rows = await (await _sources(asked, agent)).remove(source_name.source)
    return {"removed": [source_json(row) for row in rows]}


async def _sources(asked: Asked, name: str) -> Sources:
    await asked.rooms.host.agent(name)
    return await asked.workspace.sources(name)


# Grants, recorded calls, and the capabilities of this machine.


class OfFunction(Part):
    """Of which function; without a name, of all."""

    function: Annotated[str, Field(max_length=200)] = ""


class CallFilter(OfFunction):
    """A filter of recorded calls: those of one function, or only those that failed."""

    failed: bool = False


class Revoking(Part):
    """What is revoked: `grants` as in grants.toml, or all of them."""

    grants: dict[str, Any] | None = None  # Any: as in grants.toml, checked there
    all: bool = False


class ReplayVersion(Part):
    """The code to run: that of the recorded call, `now`, or a version."""

    version: Annotated[str, Field(max_length=64)] = ""


async def _number(_: Asked, text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 19):
        raise UsageError(
            f"`{text[:80]}` is no call's number.", fix="The list of calls has the numbers."
        )
    return int(text)


_CallNumber = Annotated[int, _number]


@api_operation("GET", "/grants", ("read", "approve"), "List the grants.")
async def grants(asked: Asked, of_function: OfFunction) -> object:
    """List what functions may reach, and how much of it is in force."""
    return await asked.functions.grants.listing(
        of_function.function, await asked.rooms.owners(asked.identity)
    )


@api_operation("POST", "/grants/{name}/revoke", ("approve",), "Revoke grants.")
async def revoke(asked: Asked, name: str, revoking: Revoking) -> object:
    """Revoke grants of a function: those that are named, or all."""
    book = asked.functions.grants
    if revoking.all == bool(revoking.grants):
        raise UsageError(
            "Name the grants to revoke, or all of them.",
            fix='Send {"grants": {…}} or {"all": true}.',
        )
    selection = book.wanted(revoking.grants) if revoking.grants else None
    return await book.revoke(name, selection, await asked.rooms.owners(asked.identity))


@api_operation("GET", "/calls", ("read",), "List recorded calls.")
async def calls(asked: Asked, call_filter: CallFilter) -> object:
    """List the recorded calls, newest first."""
    return {
        "calls": await (await _replays(asked)).calls(
            call_filter.function, failed=call_filter.failed
        )
    }


@api_operation("GET", "/calls/{call}", ("read",), "Return a recorded call.")
async def recorded_call(asked: Asked, call: _CallNumber) -> object:
    """Return a recorded call: its arguments, what it got, and its outcome."""
    return await (await _replays(asked)).show(call)


@api_operation("POST", "/calls/{call}/replay", ("edit",), "Make a recorded call again.")
async def replay(asked: Asked, call: _CallNumber, replay_version: ReplayVersion) -> object:
    """Make a recorded call again, with what it got then, and compare."""
    return await (await _replays(asked)).replay(call, replay_version.version)


@api_operation("GET", "/doctor", ("read", "admin"), "Return what this machine can do.")
async def doctor(asked: Asked) -> object:
    """Return what this machine can do."""
    return await asked.workspace.doctor(await asked.rooms.owners(asked.identity))


async def _replays(asked: Asked) -> Replays:
    """Return the replays of the calls that the token may read."""
    return asked.functions.replays.of(await asked.rooms.owners(asked.identity))


# Helpers and groups, by the text of their files.


class FileText(Part):
    """The text of a helper's or a group's file, as TOML."""

    text: Annotated[str, Field(min_length=1, max_length=200_000)]
    reason: _Reason = ""


class HelperVersionChoice(Part):
    """A version of a helper; without one, the last before."""

    version: Annotated[str, Field(max_length=64)] = ""
    reason: _Reason = ""


@api_operation("GET", "/helpers", ("read",), "List the helpers.")
async def helpers(asked: Asked) -> object:
    """List the helpers, and the files that were rejected."""
    return await helpers_document(asked.workspace)


@api_operation("GET", "/helpers/{name}", ("read",), "Show a helper.")
async def helper(asked: Asked, name: str) -> object:
    """Show a helper: its schema, functions, limits, text and last runs."""
    document = await helper_document(asked.workspace, name)
    return {**document, "last_runs": await asked.rooms.shown(document["last_runs"], asked.identity)}


@api_operation("PUT", "/helpers/{name}", ("edit",), "Make or replace a helper.")
async def put_helper(asked: Asked, name: str, file_text: FileText) -> object:
    """Make a helper, or replace its file, if its gate admits it."""
    workspace = asked.workspace
    await workspace.helpers.refresh(is_told=False)
    changes, proposal = workspace.helper_changes, workspace.by_user(file_text.reason)
    put = changes.replace if name in workspace.helpers.helpers else changes.create
    return require_admitted(await put(name, file_text.text, proposal))


@api_operation("DELETE", "/helpers/{name}", ("edit",), "Delete a helper.")
async def delete_helper(asked: Asked, name: str) -> object:
    """Delete a helper that no other one names."""
    workspace = asked.workspace
    return require_admitted(await workspace.helper_changes.delete(name, workspace.by_user()))


@api_operation("GET", "/helpers/{name}/history", ("read",), "Return its versions.")
async def helper_history(asked: Asked, name: str) -> object:
    """Return the versions of a helper."""
    return {"name": name, "versions": await asked.workspace.helpers.history(name)}


@api_operation("POST", "/helpers/{name}/rollback", ("edit",), "Restore a version.")
async def restore_helper(asked: Asked, name: str, choice: HelperVersionChoice) -> object:
    """Go back to an earlier version of a helper."""
    workspace = asked.workspace
    proposal = workspace.by_user(choice.reason)
    return require_admitted(await workspace.helper_changes.rollback(name, choice.version, proposal))


@api_operation("GET", "/groups", ("read",), "List the groups.")
async def groups(asked: Asked) -> object:
    """List the groups, and what is wrong with their files."""
    folder, names = asked.workspace.groups, await asked.workspace.agent_names()
    files = {
        name: file
        for name, file in folder.read().items()
        if await asked.rooms.shows(name, asked.identity)
    }
    hidden = (
        {_path(name) for name in names if name not in files}
        if asked.identity.agents
        else frozenset()
    )
    problems = {row.where.path: (row,) for row in folder.problems if row.where.path not in hidden}
    return {
        "groups": [_group(name, file) for name, file in files.items()],
        "problems": first_problems(GROUPS, problems),
    }


@api_operation("GET", "/groups/{name}", ("read",), "Show a group.")
async def group(asked: Asked, name: str) -> object:
    """Show a group: its members, purpose and rules."""
    return _group(name, await _group_file(asked, name))


@api_operation("PUT", "/groups/{name}", ("admin",), "Make or replace a group.")
async def put_group(asked: Asked, name: str, file_text: FileText) -> object:
    """Make a group, or replace its file."""
    workspace, text = asked.workspace, file_text.text
    if not is_agent_name(name):
        raise UsageError(
            f"`{name[:80]}` cannot be a name.", fix="Use up to 64 letters, digits, `_` and `-`."
        )
    members = workspace.groups.parse(text, name).members
    # A token must not write the file of a group that it cannot see.
    if not all(map(asked.identity.sees, (name, *members))) or not await asked.rooms.shows(
        name, asked.identity
    ):
        fix = "Name only agents that the token is for; the group is one of them."
        raise NotAllowed("The token may use certain agents only.", fix=fix)
    path = workspace.root / _path(name)
    old = await asyncio.to_thread(_text, path)
    await asyncio.to_thread(
        save_text, workspace.root, _path(name), text, None if old is None else hash_of(old)
    )
    problems = [
        problem for problem in workspace.groups.problems if problem.where.path == _path(name)
    ]
    return {"name": name, "problems": problems}


@api_operation("DELETE", "/groups/{name}", ("admin",), "Delete a group.")
async def delete_group(asked: Asked, name: str) -> object:
    """Delete a group's file; what was said in it stays."""
    workspace = asked.workspace
    await _group_file(asked, name)
    old = await asyncio.to_thread(_text, workspace.root / _path(name))
    await asyncio.to_thread(remove_text, workspace.root, _path(name), hash_of(old or ""))
    return {"deleted": name}


async def _group_file(asked: Asked, name: str) -> GroupFile:
    files = asked.workspace.groups.read()
    if name not in files or not await asked.rooms.shows(name, asked.identity):
        raise NotThere(f"There is no group `{name[:80]}`.", fix="The list of groups has the names.")
    return files[name]


def _group(name: str, file: GroupFile) -> dict[str, object]:
    return {"name": name, **to_json(file)}


def _path(name: str) -> str:
    return f"{GROUPS}/{name}.toml"


def _text(path: Path) -> str | None:
    try:
        return read_plain(path, 1 << 20).decode("utf-8", "replace")
    except FileNotFoundError:
        return None


# Commands of `knapper --server URL …`, run on the server with the shell's handlers.

_OF_ALL_AGENTS: Final = ("functions", "calls")  # the others show agents that a token may not see
_HELP: Final = ("-h", "--help")
_Word = Annotated[str, Field(max_length=400_000)]


class CommandLine(Part):
    """A command as it is typed, word by word, with the `texts` of the files that it names.

    `agent` is the one that is talked to where it was typed, in this `conversation`; `at_prompt`: at a prompt. `yes` is
    the digest of the question to which its user said yes, from the error that asked it.
    """

    words: Annotated[list[_Word], Field(min_length=2, max_length=200, fail_fast=True)]
    texts: Annotated[dict[str, _Word], Field(default_factory=dict, max_length=10)]
    agent: Annotated[str, Field(max_length=64)] = ""
    conversation: Annotated[str, Field(max_length=200)] = MAIN
    at_prompt: bool = False
    yes: Annotated[str, Field(max_length=64)] = ""


NEEDS_TEXT, NEEDS_YES = "needs-text", "needs-yes"
_ELSEWHERE = "This does not work over a server: {what} is where the workspace is."


class ServerDoor(Door):
    """The `Door` for remote commands: it reads no files and asks no questions here; files come with the command."""

    def __init__(
        self, asked: Asked, line: CommandLine, agent: AgentName | None, owners: CallOwners
    ) -> None:
        super().__init__(asked.workspace)
        self._rooms = asked.rooms
        self._line = line
        self.at_prompt = self._line.at_prompt
        self.agent_name = agent or ""
        self.owners = owners
        self.origin = asked.identity.origin
        self.token = asked.identity.reader
        self._said: list[Line] = []

    def state(self) -> AbstractAsyncContextManager[WorkspaceState]:
        """Return the open state."""
        return nullcontext(self._rooms.state)

    async def known(self, name: str) -> AgentName:
        """Return the name of an agent that was talked to, as in the shell."""
        name = name or self.agent_name or self.workspace.settings.agent
        state = self._rooms.state
        if not (await self.workspace.can_be_talked_to(name) and await state.store.has_agent(name)):
            raise NoAgent(name[:80], await state.moves.names())
        return agent_named(name)

    async def agent(self, name: str) -> Agent:
        """Return an existing agent."""
        return await self._rooms.host.agent(await self.known(name))

    def read(self, file: str | None) -> str:
        """Return a text that came with the command.

        Raises:
            ApiRefusal: the text is missing; the response asks the client for it.
        """
        name = file or "-"
        if name not in self._line.texts:
            problem = {
                "where": "texts",
                "message": "It is read where the command was typed.",
                "file": name,
            }
            raise ApiRefusal(
                409,
                NEEDS_TEXT,
                f"The text of {name} did not come with the command.",
                problems=[problem],
            )
        return self._line.texts[name]

    async def confirm(self, question: str, *, about: str = "", is_final: bool = False) -> bool:
        """Ask the user who typed the command, if it was typed at a prompt.

        Raises:
            ApiRefusal: the user has not confirmed this question yet, which is the message; its problem has the digest
                that a yes names.
        """
        shown = f"{plain(self._said)}{question}"
        digest = hash_of(json.dumps([shown, about]))
        if self.at_prompt and self._line.yes != digest:
            shown = f"{plain([CHANGED])}{shown}" if self._line.yes else shown
            raise ApiRefusal(
                409, NEEDS_YES, shown, problems=[{"digest": digest, "is_final": is_final}]
            )
        return True

    async def agrees(
        self, question: str, fix: str, lines: Sequence[Line] = (), *, is_final: bool = False
    ) -> bool:
        """Ask the user who typed the command at a prompt; a shell that is elsewhere has to give the option."""
        if not self.at_prompt:
            raise UsageError(
                "This needs a yes, and a server cannot ask for it in the shell.", fix=fix
            )
        return await super().agrees(question, fix, lines, is_final=is_final)

    async def make_free(self, name: str) -> None:
        """Close an agent that is open on the server."""
        await self._rooms.host.make_free(name)

    def show(self, lines: Sequence[Line]) -> None:
        """Keep the lines that belong to a question."""
        self._said += lines

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Refuse, because the editor would open on the server."""
        raise UsageError(_ELSEWHERE.format(what="the editor"), fix=fix)

    def debugger(self) -> Debugger | None:
        """Refuse, because the debugger would stop on the server."""
        raise UsageError(_ELSEWHERE.format(what="the debugger"), fix="Omit --debug.")


@api_operation("POST", "/commands", SCOPES, "Run a command of the shell.")
async def command(asked: Asked, line: CommandLine) -> object:
    """Run a command of `knapper`, and return what it shows."""
    noun, name, *words = line.words
    gone = gone_sentence(f"{noun} {name}")
    if gone is not None:
        return _shown(Result(None, aside=warned(gone)))
    verb = verb_of(noun, name)
    if verb is None or not verb.scopes:
        raise NotThere(
            f"`{noun[:80]} {name[:80]}` does not work over a server.",
            fix="Run it where the workspace is.",
        )
    asked.identity.needs(*verb.scopes)
    if asked.identity.agents and noun not in _OF_ALL_AGENTS:
        raise UsageError(
            f"`{noun}` needs a token for all agents.", fix="Use the API, or another token."
        )
    if any(word in _HELP for word in words):
        raise UsageError("Help is where the command is typed.")
    agent = await asked.rooms.known(line.agent, asked.identity) if line.agent else None
    for each in verb.agents(words) - {""}:
        if not await asked.rooms.shows(each, asked.identity):
            raise NoAgent(each[:80], [])
    door = ServerDoor(asked, line, agent, await asked.rooms.owners(asked.identity))
    door.line = None if agent is None else await asked.line(agent, line.conversation)
    result = await verb.handler(door, **verb.taken(words))
    return _shown(result)


def _shown(result: Result) -> object:
    table = result.table.lines() if result.table is not None else []
    code, first, marked = result.source or ("", 0, ())
    return {
        "document": result.document,
        "lines": [*result.lines, *table],
        "aside": [*result.before, *result.aside],
        "source": {"text": code, "first": first, "marked": [*marked]} if result.source else None,
        "hint": result.hint,
        "code": result.code,
    }
