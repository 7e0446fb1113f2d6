"""The API of functions, of questions about grants, and of the workspace as a whole."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from agent_core.access.grants import Approvals, Decision, PendingQuestion
from agent_core.base.errors import UsageError
from agent_core.functions.service import CheckRequest
from agent_core.functions.service.judgment import Judgment
from agent_core.functions.service.plan import Author

from ..render.grant_question import title_of
from .failures import NotThere, rejected
from .identity import OWNER
from .operations import Asked, Part, operation

_MOST_SOURCE: Final = 200_000
_Source = Annotated[str, Field(min_length=1, max_length=_MOST_SOURCE)]
_Reason = Annotated[str, Field(max_length=2_000)]
_Expected = Annotated[str, Field(max_length=10_000)]


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
    """The source of a function. `module` is where a new one goes; `when` says whether it must be new, or there."""

    source: _Source
    module: Annotated[str, Field(max_length=200)] = "grown"
    reason: _Reason = ""
    when: Literal["either", "new", "there"] = "either"


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

    arguments: Annotated[dict[str, Any], Field(default_factory=dict)]  # Any: JSON, checked by the function's schema


class TestCall(Part):
    """The arguments of one call to try, by name; without them, the examples are run."""

    arguments: dict[str, Any] | None = None  # Any: JSON, checked by the function's schema


class VersionChoice(Part):
    """A version; without one, the last before."""

    version: Annotated[str, Field(max_length=64)] = ""


class Expected(Part):
    """What the calls must return that were asked about, as Python writes it, or nothing: as they returned."""

    expected: Annotated[list[_Expected], Field(default_factory=list, max_length=100, fail_fast=True)]
    reason: _Reason = ""


class ApprovalAnswer(Part):
    """An answer to a question about grants, perhaps with a word for the model. `wide`: a yes for the folder, too."""

    answer: Literal["once", "yes", "no"]
    word: Annotated[str, Field(max_length=400)] = ""
    wide: bool = False


async def known_function(asked: Asked, name: str) -> str:
    """Return the name of an existing function of the workspace.

    Raises:
        NotThere: there is no such function.
    """
    if name not in asked.functions.names():
        raise NotThere(f"There is no function `{name[:80]}`.", fix="The list of functions has the names.")
    return name


async def listed_function(asked: Asked, name: str) -> str:
    """Return the name of an existing function, which may be one of another program.

    Raises:
        NotThere: there is no such function.
    """
    return name if name in asked.functions.foreign() else await known_function(asked, name)


ThereFunction = Annotated[str, known_function]
ListedFunction = Annotated[str, listed_function]


@operation("GET", "/functions", ("read",), "List the functions.")
async def functions(asked: Asked, function_filter: FunctionFilter) -> object:
    """List the functions, and what was rejected."""
    return await asked.functions.list(function_filter.pattern, function_filter.module, function_filter.standing)


@operation("POST", "/functions/check", ("read", "edit"), "Judge a function.")
async def check(asked: Asked, body: CandidateBody) -> object:
    """Judge a function without admitting it."""
    verdicts = list[Judgment]()
    with TemporaryDirectory(prefix="knapper-") as folder:
        path = Path(folder) / "candidate.py"
        path.write_text(body.source, "utf-8")
        request = CheckRequest((path,), body.policy, body.name, body.module, asked.workspace.root)
        await asked.functions.batch.check(request, verdicts.append)
    if not verdicts:
        raise UsageError("There is no function in the source.", fix="Send the text of one function.")
    return verdicts[0]


@operation("GET", "/functions/search", ("read",), "Find functions by need.")
async def search(asked: Asked, need: Need) -> object:
    """Find functions by what they are needed for."""
    owners = await asked.rooms.owners(asked.identity)
    return await asked.functions.search(need.need, need.count, owners=owners)


@operation("GET", "/functions/{name}", ("read",), "Show a function.")
async def show(asked: Asked, name: ListedFunction) -> object:
    """Show everything about a function."""
    owners = await asked.rooms.owners(asked.identity)
    return await asked.functions.introspect(name, owners)


@operation("PUT", "/functions/{name}", ("edit",), "Create or replace a function.")
async def put(asked: Asked, name: str, body: FunctionBody) -> object:
    """Create a function, or replace it; the gate judges it."""
    service = asked.functions
    if body.when == "there" or (body.when == "either" and name in service.names()):
        return _require_admitted(await service.replace(name, body.source, reason=body.reason))
    return _require_admitted(await service.create(name, body.source, body.module, reason=body.reason))


@operation("PATCH", "/functions/{name}", ("edit",), "Edit a function.")
async def edit(asked: Asked, name: ThereFunction, text_edit: TextEdit) -> object:
    """Replace a part of a function's source; the gate judges the result."""
    return _require_admitted(await asked.functions.edit(name, text_edit.old, text_edit.new, reason=text_edit.reason))


@operation("DELETE", "/functions/{name}", ("edit",), "Delete a function.")
async def delete(asked: Asked, name: ThereFunction) -> object:
    """Delete a function; refused while others call it."""
    return await asked.functions.delete(name)


@operation("POST", "/functions/{name}/call", ("chat", "edit"), "Call a function.")
async def call(asked: Asked, name: ListedFunction, arguments: Arguments) -> object:
    """Call a function in a worker, on the record."""
    owners = await asked.rooms.owners(asked.identity)
    return await asked.functions.call(name, arguments.arguments, author=by_hand(asked), owners=owners)


@operation("POST", "/functions/{name}/test", ("edit",), "Run a function's examples.")
async def test(asked: Asked, name: ThereFunction, test_call: TestCall) -> object:
    """Run a function's examples in workers, or one call, off the record."""
    return await asked.functions.test(name, test_call.arguments)


@operation("POST", "/functions/{name}/rollback", ("edit",), "Go back to an earlier version.")
async def rollback(asked: Asked, name: str, choice: VersionChoice) -> object:
    """Go back to an earlier version; the gate judges it again."""
    return _require_admitted(await asked.functions.rollback(name, choice.version))


@operation("POST", "/functions/{name}/confirm", ("edit",), "Admit a candidate as it is.")
async def confirm(asked: Asked, name: str, expected: Expected) -> object:
    """Admit a rejected candidate with the results that came back, if its examples expected others."""
    return _require_admitted(await asked.functions.confirm(name, expected=expected.expected, reason=expected.reason))


@operation("POST", "/functions/{name}/release", ("edit",), "Release a function from quarantine.")
async def release(asked: Asked, name: ThereFunction) -> object:
    """Release a function from quarantine."""
    return await asked.functions.release(name)


@operation("GET", "/approvals", ("approve", "read"), "List pending questions.")
async def approvals(asked: Asked) -> object:
    """List the questions about grants that wait for an answer, oldest first."""
    rows = []
    for row in await _pending(asked):
        about = row.question.to_json()
        says, may = list(row.question.missing.sentences()), list(row.question.granted.sentences())
        kept = {"id": row.id, "agent": row.agent, "turn": row.turn, "asked_at": row.asked_at, "says": says, "may": may}
        rows.append({**about, **kept, "title": title_of(row.question), "command": row.question.command})
    return {"approvals": rows}


@operation("POST", "/approvals/{id}", ("approve",), "Answer a question.")
async def answer(asked: Asked, id: str, approval: ApprovalAnswer) -> object:
    """Answer a question about grants. The first answer counts; a later one is told so."""
    pending = {row.id: row for row in await _pending(asked)}
    if id not in pending:
        raise NotThere(f"No question `{id[:80]}` is pending: it was answered, or its turn has ended.")
    is_wide = approval.wide and approval.answer == "yes" and bool(pending[id].question.folder)
    await asked.workspace.answer(id, Decision(approval.answer, approval.word, is_wide=is_wide))
    return {"id": id, "answer": approval.answer}


@operation("GET", "/status", ("read", "chat"), "Return how the server is.")
async def status(asked: Asked) -> object:
    """Return how the server is: its workspace, agents at work, and what waits.

    `model_trouble` is why no turn can be taken yet; `saves` counts the changes of functions by files since the start,
    and `last_save` is what the last one did; `rejected` counts the files that do not load now, and `grants` is another
    number after each change of the grants.
    """
    rooms, usual = asked.rooms, asked.workspace.settings.agent
    agents = await rooms.shown(await rooms.state.store.agent_names(), asked.identity)
    return {
        "workspace": rooms.workspace.root.name,
        "agent": usual if asked.identity.sees(usual) else min(asked.identity.agents),
        "agents": len(agents),
        "running": [name for name in agents if rooms.host.is_running(name)],
        "functions": rooms.workspace.functions.count(),
        "approvals": len(await _pending(asked)),
        "sandbox": await rooms.workspace.sandbox_level(),
        "model_trouble": rooms.host.model_trouble(),
        "saves": rooms.host.saves,
        "last_save": rooms.host.last_save if "read" in asked.identity.scopes else "",
        "rejected": len({problem.where.path for problem in asked.workspace.rejected()}),
        "grants": asked.functions.granting.book.changed_at(),
    }


async def _pending(asked: Asked) -> list[PendingQuestion]:
    """Return the pending questions of agents that the token may see, oldest first."""
    questions = await asked.workspace.questions()
    return [row for row in questions if await asked.rooms.shows(row.agent, asked.identity)]


def by_hand(asked: Asked) -> Author | None:
    """Return an author that asks on the page for missing grants, if a user is logged in there; otherwise None."""
    if asked.identity is not OWNER:
        return None
    workspace = asked.workspace
    return Author(approvals=Approvals(workspace.functions.granting.queue.asking(workspace.answered_by_id)))


def _require_admitted(judgment: Judgment) -> object:
    """Return the verdict if it admits the function; otherwise raise an error with the gate's problems."""
    if judgment.admitted:
        return judgment
    raise rejected(judgment, judgment.refusals, judgment.error)
