"""The API of functions, of questions about grants, and of the workspace as a whole."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from agent_core.access.grants import Approvals, Decision, PendingQuestion
from agent_core.base.errors import UsageError
from agent_core.base.json_form import to_json
from agent_core.functions.service import CheckRequest
from agent_core.functions.service.judgment import Judgment
from agent_core.functions.service.plan import Author

from ..render.grant_question import title_of
from .failures import ApiRefusal, NotThere
from .identity import OWNER
from .operations import API, Asked, Operation
from .parts import Part

_MOST_SOURCE: Final = 200_000
_Source = Annotated[str, Field(min_length=1, max_length=_MOST_SOURCE)]
_Reason = Annotated[str, Field(max_length=2_000)]
_Expected = Annotated[str, Field(max_length=10_000)]


class FunctionFilter(Part):
    """Which functions are listed: a part of a name or description, a module, a standing."""

    pattern: Annotated[str, Field(max_length=200)] = ""
    module: Annotated[str, Field(max_length=200)] = ""
    standing: Literal["", "draft", "trial", "trusted", "quarantined"] = ""


class Need(Part):
    """What a function is needed for."""

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


async def functions(asked: Asked) -> object:
    """List the functions, and what was rejected."""
    query = asked.query
    return await asked.rooms.workspace.workshop.list(query.pattern, query.module, query.standing)


async def search(asked: Asked) -> object:
    """Find functions by what they are needed for."""
    need, owners = asked.query, await asked.rooms.owners(asked.identity)
    return await asked.rooms.workspace.workshop.search(need.need, need.count, owners=owners)


async def show(asked: Asked) -> object:
    """Show everything about a function."""
    owners = await asked.rooms.owners(asked.identity)
    return await asked.rooms.workspace.workshop.introspect(known_function(asked), owners)


async def put(asked: Asked) -> object:
    """Create a function, or replace it; the gate judges it."""
    name, shop, body = asked.path["name"], asked.rooms.workspace.workshop, asked.body
    if body.when == "there" or (body.when == "either" and name in shop.names()):
        return _judged(await shop.replace(name, body.source, reason=body.reason))
    return _judged(await shop.create(name, body.source, body.module, reason=body.reason))


async def edit(asked: Asked) -> object:
    """Replace a part of a function's source; the gate judges the result."""
    body = asked.body
    shop = asked.rooms.workspace.workshop
    return _judged(await shop.edit(known_function(asked), body.old, body.new, reason=body.reason))


async def delete(asked: Asked) -> object:
    """Delete a function; refused while others call it."""
    return await asked.rooms.workspace.workshop.delete(known_function(asked))


async def call(asked: Asked) -> object:
    """Call a function in a worker, on the record."""
    owners, name = await asked.rooms.owners(asked.identity), known_function(asked)
    author = by_hand(asked)
    return await asked.rooms.workspace.workshop.call(name, asked.body.arguments, author=author, owners=owners)


async def test(asked: Asked) -> object:
    """Run a function's examples in workers, or one call, off the record."""
    return await asked.rooms.workspace.workshop.test(known_function(asked), asked.body.arguments)


async def rollback(asked: Asked) -> object:
    """Go back to an earlier version; the gate judges it again."""
    return _judged(await asked.rooms.workspace.workshop.rollback(asked.path["name"], asked.body.version))


async def confirm(asked: Asked) -> object:
    """Admit a rejected candidate with the results that came back, if its examples expected others."""
    shop, body = asked.rooms.workspace.workshop, asked.body
    return _judged(await shop.confirm(asked.path["name"], expected=body.expected, reason=body.reason))


async def release(asked: Asked) -> object:
    """Release a function from quarantine."""
    return await asked.rooms.workspace.workshop.release(known_function(asked))


async def check(asked: Asked) -> object:
    """Judge a function without admitting it."""
    body, verdicts = asked.body, list[Judgment]()
    with TemporaryDirectory(prefix="knapper-") as folder:
        path = Path(folder) / "candidate.py"
        path.write_text(body.source, "utf-8")
        request = CheckRequest((path,), body.policy, body.name, body.module, asked.rooms.workspace.root)
        await asked.rooms.workspace.workshop.bulk.check(request, verdicts.append)
    if not verdicts:
        raise UsageError("There is no function in the source.", fix="Send the text of one function.")
    return verdicts[0]


async def approvals(asked: Asked) -> object:
    """List the questions about grants that wait for an answer, oldest first."""
    rows = []
    for row in await _pending(asked):
        about = row.question.to_json()
        says, may = list(row.question.missing.sentences()), list(row.question.granted.sentences())
        kept = {"id": row.id, "agent": row.agent, "turn": row.turn, "asked_at": row.asked_at, "says": says, "may": may}
        rows.append({**about, **kept, "title": title_of(row.question), "command": row.question.command})
    return {"approvals": rows}


async def answer(asked: Asked) -> object:
    """Answer a question about grants. The first answer counts; a later one is told so."""
    id, body = asked.path["id"], asked.body
    pending = {row.id: row for row in await _pending(asked)}
    if id not in pending:
        raise NotThere(f"No question `{id[:80]}` is pending: it was answered, or its turn has ended.")
    is_wide = body.wide and body.answer == "yes" and bool(pending[id].question.folder)
    await asked.rooms.workspace.answer(id, Decision(body.answer, body.word, is_wide=is_wide))
    return {"id": id, "answer": body.answer}


async def status(asked: Asked) -> object:
    """Return how the server is: its workspace, agents at work, and what waits.

    `model_trouble` is why no turn can be taken yet; `saves` counts the changes of functions by files since the start,
    and `last_save` is what the last one did.
    """
    rooms, usual = asked.rooms, asked.rooms.workspace.settings.agent
    agents = await rooms.shown(await rooms.state.store.agent_names(), asked.identity)
    return {
        "workspace": rooms.workspace.root.name,
        "agent": usual if asked.identity.sees(usual) else min(asked.identity.agents),
        "agents": len(agents),
        "running": [name for name in agents if rooms.host.is_running(name)],
        "functions": rooms.workspace.workshop.count(),
        "approvals": len(await _pending(asked)),
        "sandbox": await rooms.workspace.sandbox_level(),
        "model_trouble": rooms.host.model_trouble(),
        "saves": rooms.host.saves,
        "last_save": rooms.host.last_save if "read" in asked.identity.scopes else "",
    }


async def _pending(asked: Asked) -> list[PendingQuestion]:
    """Return the questions of the agents that the token may see, oldest first."""
    questions = await asked.rooms.workspace.questions()
    return [row for row in questions if await asked.rooms.shows(row.agent, asked.identity)]


def known_function(asked: Asked) -> str:
    """Return the function that the path names.

    Raises:
        NotThere: there is none.
    """
    name = asked.path["name"]
    if name not in asked.rooms.workspace.workshop.names():
        raise NotThere(f"There is no function `{name[:80]}`.", fix="The list of functions has the names.")
    return name


def by_hand(asked: Asked) -> Author | None:
    """Return whoever is logged in to the page, who is asked there for what a call lacks; elsewhere nobody is."""
    if asked.identity is not OWNER:
        return None
    workspace = asked.rooms.workspace
    return Author(approvals=Approvals(workspace.workshop.granting.queue.asking(workspace.answered_by_id)))


def _judged(judgment: Judgment) -> object:
    """Return the verdict; a rejection is an error whose problems are those of the gate."""
    if judgment.admitted:
        return judgment
    problems = [to_json(problem) for problem in judgment.refusals]
    message = judgment.error or next((problem["message"] for problem in problems), "The gate does not admit it.")
    fix = next((problem["fix"] for problem in problems), "")
    raise ApiRefusal(422, "rejected", message, fix, problems, verdict=to_json(judgment))


_FUNCTION: Final = f"{API}/functions/{{name}}"
OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("GET", f"{API}/functions", ("read",), "List the functions.", functions, query=FunctionFilter),
    Operation("POST", f"{API}/functions/check", ("read", "edit"), "Judge a function.", check, CandidateBody),
    Operation("GET", f"{API}/functions/search", ("read",), "Find functions by need.", search, query=Need),
    Operation("GET", _FUNCTION, ("read",), "Show a function.", show),
    Operation("PUT", _FUNCTION, ("edit",), "Create or replace a function.", put, FunctionBody),
    Operation("PATCH", _FUNCTION, ("edit",), "Edit a function.", edit, TextEdit),
    Operation("DELETE", _FUNCTION, ("edit",), "Delete a function.", delete),
    Operation("POST", f"{_FUNCTION}/call", ("chat", "edit"), "Call a function.", call, Arguments),
    Operation("POST", f"{_FUNCTION}/test", ("edit",), "Run a function's examples.", test, TestCall),
    Operation("POST", f"{_FUNCTION}/rollback", ("edit",), "Go back to an earlier version.", rollback, VersionChoice),
    Operation("POST", f"{_FUNCTION}/confirm", ("edit",), "Admit a candidate as it is.", confirm, Expected),
    Operation("POST", f"{_FUNCTION}/release", ("edit",), "Release a function from quarantine.", release),
    Operation("GET", f"{API}/approvals", ("approve", "read"), "List pending questions.", approvals),
    Operation("POST", f"{API}/approvals/{{id}}", ("approve",), "Answer a question.", answer, ApprovalAnswer),
    Operation("GET", f"{API}/status", ("read", "chat"), "Return how the server is.", status),
)
