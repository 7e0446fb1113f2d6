"""The slash commands of the debugger: breakpoints, a call that stops, and the lines that a call ran."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent_core.base.errors import UsageError
from agent_core.functions.debug import Placed, typed_breakpoint
from sandbox.wire.lines import bare_lines

from .catalogue import BY_NAME, needed
from .commands.calls import stopping_first
from .commands.functions import ended
from .conversation import Conversation
from .slash_shell import PromptDoor, run_shell, show
from .spans import Line, line

_NOBODY = "No human is at a debugger here: breakpoints record values, and the answer includes them."


async def _break(talk: Conversation, words: str) -> None:
    first, _, arguments = words.partition(" ")
    match first:
        case "":
            _list(talk)
        case "now" if not arguments:
            _break_now(talk)
        case "clear":
            _clear(talk, arguments.strip())
        case _:
            _show_placed(talk, _armed(talk, words))


def _list(talk: Conversation) -> None:
    placed = talk.workspace.debugging.breakpoints.placed(talk.workspace.workshop.registry.snapshot())
    talk.voice.lines(
        [_line(entry) for entry in placed] or [line(("dim", "No breakpoint is set. Type /break FUNCTION:LINE."))]
    )


def _break_now(talk: Conversation) -> None:
    if talk.workspace.debugging.debugger is None:
        raise UsageError("No human is at a debugger here, so nothing is stopped.")
    reached = talk.workspace.debugging.break_now()
    message = f"stopping {', '.join(reached)} at its next line" if reached else "No function is running."
    talk.voice.lines([line(("dim", f"  {message}"))])


def _clear(talk: Conversation, target: str) -> None:
    name, _, number = target.partition(":")
    id = int(name) if name.isdecimal() else 0
    snapshot = talk.workspace.workshop.registry.snapshot()
    breakpoints = talk.workspace.debugging.breakpoints
    removed = breakpoints.clear("" if id else name, _number(number) if number else 0, snapshot, id)
    if not removed:
        raise UsageError(f"There is no breakpoint {target}.".replace(" .", "."), fix="Type /break for the list.")
    talk.voice.lines([line(("ok", "✓ "), "cleared ", entry.text) for entry in removed])


def _armed(talk: Conversation, words: str, *, once: bool = False) -> Placed:
    target, line_number = typed_breakpoint(words, once=once)
    return talk.workspace.debugging.breakpoints.arm(target, line_number, talk.workspace.workshop.registry.snapshot())


def _number(text: str) -> int:
    if not text.strip().isdecimal():
        raise UsageError(f"{text!r} is no line.", fix=f"Type {BY_NAME['break'].typed}.")
    return int(text)


def _show_placed(talk: Conversation, placed: Placed) -> None:
    nobody = [] if talk.workspace.debugging.debugger is not None else [line(("dim", f"  {_NOBODY}"))]
    moved = [line(("dim", f"  {placed.moved}"))] if placed.moved else []
    talk.voice.lines([_line(placed), *moved, *nobody])


def _line(placed: Placed) -> Line:
    return line(("warn", "● " if placed.line else "○ "), placed.text)


async def _debug(talk: Conversation, words: str) -> None:
    name, _, arguments = needed(words, "debug").partition(" ")
    if words == "last":
        await _debug_last(talk)
        return
    if not arguments:
        _show_placed(talk, _armed(talk, name, once=True))
        return
    async with talk.command():
        door = PromptDoor(talk)
        with stopping_first(door, name):
            outcome = await door.shop.call(name, arguments)
        shown = ended(door, (name, arguments), outcome)
        seen = [line(("dim", text)) for text in bare_lines(str(outcome.get("debugged", "")))]
        await show(talk, replace(shown, aside=[*shown.aside, *seen]))


async def _debug_last(talk: Conversation) -> None:
    failed = await talk.workspace.workshop.replays.calls(failed=True)
    if not failed:
        raise UsageError("No recorded call has failed.", fix="Type /debug NAME [JSON].")
    async with talk.command():
        await show(talk, await run_shell(talk, "calls", "replay", "--debug", str(failed[0]["call"])))


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {"break": _break, "debug": _debug}
