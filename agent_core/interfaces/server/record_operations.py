"""The API of grants that were given, of recorded calls, and of what this machine can do."""

from typing import Annotated, Any

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.functions.service.replay import Replays

from .operations import Asked, operation
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


async def _number(_: Asked, text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 19):
        raise UsageError(f"`{text[:80]}` is no call's number.", fix="The list of calls has the numbers.")
    return int(text)


_CallNumber = Annotated[int, _number]


@operation("GET", "/grants", ("read", "approve"), "List the grants.")
async def grants(asked: Asked, of_function: OfFunction) -> object:
    """List what functions may reach, and how much of it is in force."""
    return await asked.shop.grants.listing(of_function.function)


@operation("POST", "/grants/{name}/revoke", ("approve",), "Revoke grants.")
async def revoke(asked: Asked, name: str, revoking: Revoking) -> object:
    """Revoke grants of a function: those that are named, or all."""
    book = asked.shop.grants
    if revoking.all == bool(revoking.grants):
        raise UsageError("Name the grants to revoke, or all of them.", fix='Send {"grants": {…}} or {"all": true}.')
    return await book.revoke(name, book.wanted(revoking.grants) if revoking.grants else None)


@operation("GET", "/calls", ("read",), "List recorded calls.")
async def calls(asked: Asked, call_filter: CallFilter) -> object:
    """List the recorded calls, newest first."""
    return {"calls": await (await _replays(asked)).calls(call_filter.function, failed=call_filter.failed)}


@operation("GET", "/calls/{call}", ("read",), "Return a recorded call.")
async def recorded_call(asked: Asked, call: _CallNumber) -> object:
    """Return a recorded call: its arguments, what it got, and its outcome."""
    return await (await _replays(asked)).show(call)


@operation("POST", "/calls/{call}/replay", ("edit",), "Make a recorded call again.")
async def replay(asked: Asked, call: _CallNumber, replay_version: ReplayVersion) -> object:
    """Make a recorded call again, with what it got then, and compare."""
    return await (await _replays(asked)).replay(call, replay_version.version)


@operation("GET", "/doctor", ("read", "admin"), "Return what this machine can do.")
async def doctor(asked: Asked) -> object:
    """Return what this machine can do."""
    return await asked.workspace.doctor(await asked.rooms.owners(asked.identity))


async def _replays(asked: Asked) -> Replays:
    """Return the calls that the token may read."""
    return asked.shop.replays.of(await asked.rooms.owners(asked.identity))
