"""The API of grants that were given, of recorded calls, and of what this machine can do."""

from typing import Annotated, Any, Final

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.functions.service.replay import Replays

from .operations import API, Asked, Operation
from .parts import Part


class OfFunction(Part):
    """Of which function; without a name, of all."""

    function: Annotated[str, Field(max_length=200)] = ""


class CallFilter(OfFunction):
    """Which recorded calls: of one function, or only those that failed."""

    failed: bool = False


class Revoking(Part):
    """What is revoked: `grants` as in grants.toml, or all of them."""

    grants: dict[str, Any] | None = None  # Any: as in grants.toml, checked there
    all: bool = False


class ReplayVersion(Part):
    """The code to run: that of the recorded call, `now`, or a version."""

    version: Annotated[str, Field(max_length=64)] = ""


async def grants(asked: Asked) -> object:
    """List what functions may reach, and how much of it is in force."""
    return await asked.rooms.workspace.workshop.grants.listing(asked.query.function)


async def revoke(asked: Asked) -> object:
    """Revoke grants of a function: those that are named, or all."""
    book, body = asked.rooms.workspace.workshop.grants, asked.body
    if body.all == bool(body.grants):
        raise UsageError("Name the grants to revoke, or all of them.", fix='Send {"grants": {…}} or {"all": true}.')
    return await book.revoke(asked.path["name"], book.wanted(body.grants) if body.grants else None)


async def calls(asked: Asked) -> object:
    """List the recorded calls, newest first."""
    query = asked.query
    return {"calls": await (await _replays(asked)).calls(query.function, failed=query.failed)}


async def recorded_call(asked: Asked) -> object:
    """Return a recorded call: its arguments, what it got, and its outcome."""
    return await (await _replays(asked)).show(_number(asked))


async def replay(asked: Asked) -> object:
    """Make a recorded call again, with what it got then, and compare."""
    return await (await _replays(asked)).replay(_number(asked), asked.body.version)


async def doctor(asked: Asked) -> object:
    """Return what this machine can do."""
    return await asked.rooms.workspace.doctor(await asked.rooms.owners(asked.identity))


async def _replays(asked: Asked) -> Replays:
    """Return the calls that the token may read."""
    return asked.rooms.workspace.workshop.replays.of(await asked.rooms.owners(asked.identity))


def _number(asked: Asked) -> int:
    text = asked.path["call"]
    if not (text.isdecimal() and text.isascii() and len(text) < 19):
        raise UsageError(f"`{text[:80]}` is no call's number.", fix="The list of calls has the numbers.")
    return int(text)


_CALL: Final = f"{API}/calls/{{call}}"
OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("GET", f"{API}/grants", ("read", "approve"), "List the grants.", grants, query=OfFunction),
    Operation("POST", f"{API}/grants/{{name}}/revoke", ("approve",), "Revoke grants.", revoke, Revoking),
    Operation("GET", f"{API}/calls", ("read",), "List recorded calls.", calls, query=CallFilter),
    Operation("GET", _CALL, ("read",), "Return a recorded call.", recorded_call),
    Operation("POST", f"{_CALL}/replay", ("edit",), "Make a recorded call again.", replay, ReplayVersion),
    Operation("GET", f"{API}/doctor", ("read", "admin"), "Return what this machine can do.", doctor),
)
