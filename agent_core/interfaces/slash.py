"""The slash commands, with those of the debugger; their names, usage and help are in `catalogue`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.untrusted import one_line
from agent_core.functions.debug import Placed, typed_breakpoint
from sandbox.wire.lines import bare_lines

from . import slash_session, slash_shell, slash_shorthands
from .catalogue import BY_NAME, GROUPS, check_source, group, nearest, needed
from .choices import Choice
from .columns import explained
from .commands.calls import stopping_first
from .commands.functions import challenge_hint, ended, judged
from .commands.verb import ALWAYS, CommandEntry
from .conversation import Conversation
from .manual_edits import text_from_editor
from .render.call_log import laid_open
from .slash_shell import PromptDoor, run_shell, show
from .spans import Line, line
from .wrap import screen_columns

_IN_SHORT = "=NAME(…): call a function · ?NAME: show it · !COMMAND: run in your shell · @FILE: add a file to a message"
_KEYS = "Alt-Enter: new line · Tab: complete · Ctrl-R: search · Ctrl-C: end the turn · Ctrl-Z: suspend · Ctrl-D: leave"
_NOBODY = "No human is at a debugger here: breakpoints record values, and the answer includes them."


async def _break(conversation: Conversation, words: str) -> None:
    first, _, arguments = words.partition(" ")
    match first:
        case "":
            _list(conversation)
        case "now" if not arguments:
            if conversation.workspace.debugging.seat.debugger is None:
                raise UsageError("No human is at a debugger here, so nothing is stopped.")
            reached = conversation.workspace.debugging.break_now()
            message = f"stopping {', '.join(reached)} at its next line" if reached else "No function is running."
            conversation.voice.lines([line(("dim", f"  {message}"))])
        case "clear":
            _clear_breakpoints(conversation, arguments.strip())
        case _:
            _show_placed(conversation, _armed(conversation, words))


def _list(conversation: Conversation) -> None:
    placed = conversation.workspace.debugging.breakpoints.placed(conversation.workspace.workshop.registry.snapshot())
    conversation.voice.lines(
        [_line(entry) for entry in placed] or [line(("dim", "No breakpoint is set. Type /break FUNCTION:LINE."))]
    )


def _clear_breakpoints(conversation: Conversation, target: str) -> None:
    name, _, number = target.partition(":")
    id = int(name) if name.isdecimal() else 0
    snapshot = conversation.workspace.workshop.registry.snapshot()
    breakpoints = conversation.workspace.debugging.breakpoints
    removed = breakpoints.clear("" if id else name, _number(number) if number else 0, snapshot, id)
    if not removed:
        raise UsageError(f"There is no breakpoint {target}.".replace(" .", "."), fix="Type /break for the list.")
    conversation.voice.lines([line(("ok", "✓ "), "cleared ", entry.text) for entry in removed])


def _armed(conversation: Conversation, words: str, *, once: bool = False) -> Placed:
    target, line_number = typed_breakpoint(words, once=once)
    return conversation.workspace.debugging.breakpoints.arm(
        target, line_number, conversation.workspace.workshop.registry.snapshot()
    )


def _number(text: str) -> int:
    if not text.strip().isdecimal():
        raise UsageError(f"{text!r} is no line.", fix=f"Type {BY_NAME['break'].typed}.")
    return int(text)


def _show_placed(conversation: Conversation, placed: Placed) -> None:
    nobody = [] if conversation.workspace.debugging.seat.debugger is not None else [line(("dim", f"  {_NOBODY}"))]
    moved = [line(("dim", f"  {placed.moved}"))] if placed.moved else []
    conversation.voice.lines([_line(placed), *moved, *nobody])


def _line(placed: Placed) -> Line:
    return line(("warn", "● " if placed.line else "○ "), placed.text)


async def _debug(conversation: Conversation, words: str) -> None:
    name, _, arguments = needed(words, "debug").partition(" ")
    if words == "last":
        failed = await conversation.workspace.workshop.replays.calls(failed=True)
        if not failed:
            raise UsageError("No recorded call has failed.", fix="Type /debug NAME [JSON].")
        async with conversation.command():
            await show(conversation, await run_shell(conversation, "calls", "replay", "--debug", str(failed[0].call)))
        return
    if not arguments:
        _show_placed(conversation, _armed(conversation, name, once=True))
        return
    async with conversation.command():
        door = PromptDoor(conversation)
        with stopping_first(door, name):
            outcome = await door.shop.call(name, arguments)
        shown = ended(door, (name, arguments), outcome)
        seen = [line(("dim", text)) for text in bare_lines(outcome.debugged)]
        await show(conversation, replace(shown, aside=[*shown.aside, *seen]))


_BEGUN: Final = '''\
def {name}(text: str) -> str:
    """Say here what it does.

    Args:
        text: What it is given.

    >>> {name}("")
    ''
    """
    return text
'''


async def _create(conversation: Conversation, words: str) -> None:
    name, _, module = needed(words, "create").partition(" ")
    if not name.isidentifier():
        raise UsageError(f"{name} cannot be a function's name.", fix="Use letters, digits and _.")
    if name in conversation.names():
        raise UsageError(f"There is a function {name} already.", fix=f"Type /edit {name}.")
    shop = conversation.workspace.workshop
    pending = await shop.pending(name)
    begun = pending.code if pending else _BEGUN.format(name=name)
    async with PromptDoor(conversation).editor(f"In the shell: knapper functions create {name} FILE"):
        code = await text_from_editor(name, begun, suffix=".py")
    if code is None:
        conversation.voice.lines([line(("dim", "Nothing was made: the text is unchanged."))])
        return
    into = [module.strip() or (pending.module if pending else "")]
    verdict = await shop.create(name, code, *filter(None, into), reason="written at the prompt")
    hint = f"/create {name} opens it again; /pending lists rejected candidates."
    hint = f"  {challenge_hint(PromptDoor(conversation), verdict) or hint}"
    await show(conversation, judged(PromptDoor(conversation), verdict, "" if verdict.admitted else hint))


Run = Callable[[Conversation, str], Awaitable[None]]


async def take(conversation: Conversation, text: str) -> None:
    """Process a typed line: a command, or a message to the agent."""
    text = slash_shorthands.long_form(conversation, text)
    if is_command(text):
        await command(conversation, text.strip())
    else:
        await conversation.say(slash_shorthands.message_of(conversation, _unescaped(text)))
    await conversation.settle_later()


async def during(conversation: Conversation, text: str) -> None:
    """Process a line while a turn runs: a message is delivered at its next step; some commands wait for the turn to
    end.
    """
    text = slash_shorthands.long_form(conversation, text)
    if not is_command(text):
        await conversation.say_meanwhile(slash_shorthands.message_of(conversation, _unescaped(text)))
        return
    text = text.strip()
    entry = BY_NAME.get(_name(text))
    if entry is not None and not (entry.in_turn or entry.shows == ALWAYS):
        conversation.later.append(text)
        activity = "turn" if conversation.busy else "call"
        conversation.voice.lines([line(("dim", f"  /{entry.name} waits until this {activity} has ended"))])
        return
    await command(conversation, text)


async def command(conversation: Conversation, text: str) -> None:
    """Run one command. An error is reported and ends nothing."""
    name, words = _name(text), text.partition(" ")[2].strip()
    run = _RUNS.get(name)
    if run is None:
        conversation.explain(_no_command(name))
        return
    conversation.commanded = frozenset(text.split()[1:])
    try:
        if words and " " not in BY_NAME[name].typed:
            raise UsageError(f"/{name} takes nothing after it, so it was not run.", fix=f"Type /{name} alone.")
        check_source(name, words, is_trusted=conversation.voice.is_trusted)
        await run(conversation, words)
        conversation.deeds.touch(text.split()[1:2])
    except KnapperError as error:
        conversation.explain(error)
    finally:
        conversation.commanded = frozenset()


def _no_command(name: str) -> UsageError:
    suggestion = nearest(name)
    fix = f"Did you mean /{suggestion}?" if suggestion else "Type /help for the list."
    return UsageError(f"There is no command /{one_line(name, 60)}.", fix=fix)


def is_command(text: str) -> bool:
    """Check whether a typed line is a command, and no message."""
    # Spaces before the slash, left over from a line that was not sent, do not make it a message.
    typed = text.lstrip(" ")
    return typed.startswith("/") and not typed.startswith("//")


def _unescaped(text: str) -> str:
    return text.removeprefix("/") if text.startswith("//") else text


def _name(text: str) -> str:
    return text[1:].partition(" ")[0].strip()


async def _help(conversation: Conversation, words: str) -> None:
    name = words.removeprefix("/")
    if name in BY_NAME:
        conversation.voice.lines(_explained([BY_NAME[name]]))
    elif name in ("all", *GROUPS):
        conversation.voice.lines(
            [row for group_name in (GROUPS if name == "all" else [name]) for row in _group(group_name)]
        )
    elif name:
        raise _no_command(name)
    else:
        conversation.voice.lines([*_explained(group(next(iter(GROUPS)))), *map(_names, [*GROUPS][1:]), *_help_ends()])


def _explained(entries: Sequence[CommandEntry]) -> list[Line]:
    return explained([(entry.typed, entry.says) for entry in entries], screen_columns())


def _group(name: str) -> list[Line]:
    return [line(("strong", name)), *_explained(group(name))]


def _names(name: str) -> Line:
    """Return the commands of a group by their names alone."""
    return line(("strong", f"{name}: "), ("name", " ".join(f"/{entry.name}" for entry in group(name))))


def _help_ends() -> list[Line]:
    ends = ("/help COMMAND explains one, /help all explains all", _IN_SHORT, _KEYS)
    return [line(("dim", text)) for text in ends]


async def _exit(conversation: Conversation, words: str) -> None:
    conversation.left = True
    await conversation.interrupt()


async def _show(conversation: Conversation, words: str) -> None:
    calls, forgot = conversation.log.calls, conversation.log.forgot
    if not calls:
        fix = "" if forgot else "Calls of before are in /log, and in the shell: knapper calls list"
        raise UsageError(f"No call was made {'since /forget' if forgot else 'in this session'}.", fix=fix)
    first, last = calls[0].number, calls[-1].number
    if words and not (words.isdecimal() and first <= int(words) <= last):
        gone = " /forget dropped those before." if forgot else ""
        raise UsageError(f"There is no call {one_line(words, 40)}.", fix=f"Type /show {first} … /show {last}.{gone}")
    call = calls[int(words) - first if words else -1]
    head, source = f"[{call.number}] {one_line(call.name, 80)}", (call.source, 1)
    await conversation.voice.read(
        Choice(head, line(head), head, partial(laid_open, call), (lambda: source) if call.source else None)
    )


async def _clear(conversation: Conversation, words: str) -> None:
    conversation.voice.clear()


_RUNS: dict[str, Run] = {
    "help": _help,
    "exit": _exit,
    "show": _show,
    "create": _create,
    **slash_shell.RUNS,
    "break": _break,
    "debug": _debug,
    **slash_session.RUNS,
    **slash_shorthands.RUNS,
    "clear": _clear,
}
