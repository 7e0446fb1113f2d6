"""The API of breakpoints and stops: where functions stop, and the call that stands there, with its variables.

A stop is of any call in this process, by hand or by an agent. It shows values, and what is typed there runs with the
grants of the function: a token needs the scope `edit`, and all agents.
"""

from typing import Annotated, Final

from pydantic import Field

from agent_core.base.records import to_json
from agent_core.functions.debug import Command, Placed, typed_breakpoint

from .identity import NotAllowed, NotThere
from .operations import Asked, Part, api_operation
from .remote_debugger import HeldCall
from .workspace_operations import ThereFunction

_LINES_AROUND: Final = 60
_TYPED_LIMIT: Final = 4_000
_CONDITION_LIMIT: Final = 600


class BreakpointBody(Part):
    """Where a function stops, as it is typed at the prompt: a line of its file, or nothing for its first, and when:
    `67 if total > 5 after 3 once`.
    """

    at: Annotated[str, Field(max_length=_CONDITION_LIMIT)] = ""


class StopCommand(Part):
    """What is typed at a stop, as at the prompt of the debugger: `next`, `step`, `continue`, or an expression."""

    typed: Annotated[str, Field(min_length=1, max_length=_TYPED_LIMIT)]


@api_operation("POST", "/functions/{name}/breakpoints", ("edit",), "Set a breakpoint.", status=201)
async def set_breakpoint(asked: Asked, name: ThereFunction, body: BreakpointBody) -> object:
    """Let calls of a function stop at a line: those by hand, and those of agents that run in this process."""
    _require_all(asked)
    breakpoint_, line = typed_breakpoint(f"{name}:{body.at}" if body.at.strip() else name)
    snapshot = asked.functions.registry.snapshot()
    return _placed_json(asked.rooms.host.debugger.arm(breakpoint_, line, snapshot))


@api_operation("DELETE", "/breakpoints/{number}", ("edit",), "Remove a breakpoint.")
async def remove_breakpoint(asked: Asked, number: str) -> object:
    """Remove a breakpoint by its number."""
    _require_all(asked)
    asked.rooms.host.debugger.clear(_number(number))
    return {"removed": _number(number)}


@api_operation("GET", "/stops", ("edit",), "Return breakpoints, and the call that stands at one.")
async def stops(asked: Asked) -> object:
    """Return the breakpoints of this process, each at its current line, which is 0 if it is gone; and, in `stops`, the
    call that stands at a stop, if there is one: its variables, its frames, and the source around it.
    """
    _require_all(asked)
    return _stops_json(asked)


@api_operation("POST", "/stops/{number}", ("edit",), "Say how a stopped call goes on.")
async def at_stop(asked: Asked, number: str, stop_command: StopCommand) -> object:
    """Give a command of the debugger to the call that stands at the stop with this number, and return where it is then.

    The first command at a stop counts; for a stop that is over, the answer is a 409.
    """
    _require_all(asked)
    await asked.rooms.host.debugger.order(_number(number), Command.parse(stop_command.typed))
    return _stops_json(asked)


def _require_all(asked: Asked) -> None:
    """Check that a token is not limited to agents: a stop shows what any of them is doing.

    Raises:
        NotAllowed: it is.
    """
    if asked.identity.agents:
        raise NotAllowed(
            "Breakpoints stop calls of all agents, and this token may use certain agents only.",
            fix="Use a token for all agents.",
        )


def _number(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise NotThere(
            f"There is none with the number `{text[:40]}`.", fix="The list has the numbers."
        )
    return int(text)


def _placed_json(placed: Placed) -> dict[str, object]:
    point = placed.breakpoint
    where = {"path": placed.path, "line": placed.line, "text": point.anchor}
    when = {"condition": point.condition, "after": point.after, "every": point.every}
    about = {"number": point.id, "function": point.function, "once": point.once, "by": point.by}
    return {**about, **where, **when, "moved": placed.moved}


def _stops_json(asked: Asked) -> dict[str, object]:
    placed = asked.workspace.debugging.breakpoints.placed(asked.functions.registry.snapshot())
    held = asked.rooms.host.debugger.held
    rows = [] if held is None else [_held_json(held)]
    return {"stops": rows, "breakpoints": [_placed_json(row) for row in placed]}


def _held_json(held: HeldCall) -> dict[str, object]:
    about = to_json(held.stop)
    for name in ("source", "names", "armed"):
        del about[name]
    around = [list(line) for line in held.stop.listing(_LINES_AROUND)]
    return {**about, "number": held.number, "since": held.since, "lines": around}
