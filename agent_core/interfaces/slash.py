"""The slash commands, with those of the debugger; their names, usage and help are in `catalogue`."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from agent_core.access.grants.addresses import UnconfirmedAddress, confirm
from agent_core.base.errors import KnapperError, ModelError, UsageError
from agent_core.base.matching import MARK
from agent_core.base.messages import Answer, Assistant, Message, Notice, System, User
from agent_core.base.untrusted import one_line
from agent_core.functions.debug import Placed, typed_breakpoint
from agent_core.model.request import FunctionShown
from agent_core.runtime.model_session import SUMMARIZING
from agent_core.workspace.portable import read_file, write_file
from sandbox.wire.lines import bare_lines

from . import slash_shell, slash_shorthands, slash_undo
from .address_confirmation import address_lines
from .catalogue import BY_NAME, GROUPS, check_source, group, nearest, needed
from .choices import Choice
from .columns import columns, explained
from .commands.calls import stopping_first
from .commands.functions import challenge_hint, ended, judged
from .commands.verb import ALWAYS, CommandEntry
from .conversation import Conversation, made_line
from .manual_edits import text_from_editor
from .render.agent_view import report_lines, waiting_lines
from .render.call_log import laid_open
from .slash_shell import PromptDoor, run_shell, show
from .slash_undo import popped, removed_line
from .spans import Line, line, plain, warned
from .spending import Spending, ever_line, priced, spending_lines, spent_since_ever
from .state import opened_state
from .wrap import screen_columns

_IN_SHORT = "=NAME(…): call a function · ?NAME: show it · !COMMAND: run in your shell · @FILE: add a file to a message"
_KEYS = "Alt-Enter: new line · Tab: complete · Ctrl-R: search · Ctrl-C: end the turn · Ctrl-Z: suspend · Ctrl-D: leave"
_SAME = "The model is the same as before."
_MOST_MODELS = 30
_SHOWN = 20  # lines of a message that is sent again: the text of files goes along with it
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
        await show(conversation, ended(door, (name, arguments), outcome))


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
    beside, conversation.commanded = conversation.commanded, frozenset(text.split()[1:])
    try:
        if words and " " not in BY_NAME[name].typed:
            raise UsageError(f"/{name} takes nothing after it, so it was not run.", fix=f"Type /{name} alone.")
        check_source(name, words, is_trusted=conversation.voice.is_trusted)
        await run(conversation, words)
        conversation.deeds.touch(text.split()[1:2])
    except KnapperError as error:
        conversation.explain(error)
    finally:
        conversation.commanded = beside


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


async def _cost(conversation: Conversation, words: str) -> None:
    workspace, name = conversation.workspace, conversation.agent.name
    ever = Spending(workspace.root, workspace.settings.models)
    await spent_since_ever(workspace.store, name, ever)
    conversation.voice.lines([*spending_lines(conversation.spending), ever_line(name, ever)])


async def _pop(conversation: Conversation, words: str) -> None:
    removed = await popped(conversation)
    conversation.voice.lines([removed_line(removed) if removed else line(("dim", "There is no turn to remove."))])


async def _new(conversation: Conversation, words: str) -> None:
    await conversation.keep_unsaved()
    turns = await conversation.agent.begin_anew()
    conversation.deeds.unsay_all(conversation.agent.name)
    many = f"{turns} turn{'' if turns == 1 else 's'}"
    message = f"A new conversation. {many} left the context and stay{'s' if turns == 1 else ''} on record."
    conversation.voice.lines(
        [line(("ok", "✓ "), message) if turns else line(("dim", "The conversation is already new."))]
    )


async def _retry(conversation: Conversation, words: str) -> None:
    if await conversation.agent.ends_with_a_file():
        raise UsageError("The last message came with an agent's file.", fix="Type it yourself to send it.")
    if MARK in (await conversation.agent.user_texts() or [""])[-1]:
        what = "Something of the last message was forgotten, so it is not sent again."
        raise UsageError(what, fix="Type anew what you want to say.")
    removed = await popped(conversation)
    while removed is not None and not removed.is_message:  # a heartbeat's turn after it goes with it
        conversation.voice.lines([removed_line(removed)])
        removed = await popped(conversation)
    if removed is None:
        raise UsageError("There is no message to send again.")
    first, *others = bare_lines(removed.text) or [""]
    conversation.voice.lines(
        [line(("name", "› "), ("strong", first)), *(line("  ", ("strong", text)) for text in others[:_SHOWN])]
    )
    await conversation.say(removed.text)


async def _dump(conversation: Conversation, words: str) -> None:
    prompt = await conversation.agent.prompt()
    system = [message for message in prompt.messages if isinstance(message, System)]
    said = [row for message in prompt.messages if not isinstance(message, System) for row in _message_lines(message)]
    shown = [row for function in prompt.functions for row in _function_lines(function)]
    before = [*(row for message in system for row in _message_lines(message)), *shown]
    lines = [*before, *(said or [line(("dim", "Nothing was said yet."))])]
    if not words:
        conversation.voice.lines(lines)
        return
    await asyncio.to_thread(write_file, words, plain(lines))
    conversation.voice.lines([line(("ok", "✓ "), f"{len(lines)} lines in {words}")])


async def _model(conversation: Conversation, words: str) -> None:
    if " " in words:
        raise UsageError("A model's name has no space.", fix=f"Type {BY_NAME['model'].typed}.")
    if not words:
        await _show_models(conversation)
        return
    try:
        message = await _switched(conversation, words)
    except UnconfirmedAddress as error:
        settings = conversation.workspace.settings.using(words)
        conversation.voice.lines(address_lines(settings, error.url))
        if not await conversation.voice.confirm("Send it there?"):
            conversation.voice.lines([line(("dim", _SAME))])
            return
        confirm(conversation.workspace.root, error.url)
        message = await _switched(conversation, words)
    conversation.voice.lines([line(message), *warned(conversation.agent.window_warning())])


async def _show_models(conversation: Conversation) -> None:
    """Show the model that answers, those of the settings, and those that its endpoint has."""
    line_of_model, models = await conversation.agent.model_line(), conversation.workspace.settings.models
    now = conversation.agent.status().model
    named = {name: priced(model) for name, model in models.items()}
    listed = await conversation.agent.endpoint_models()
    endpoint_names = [name for name in listed or () if name not in named]
    shown = sorted(endpoint_names, key=lambda name: (name != now, name))[:_MOST_MODELS]
    prices = [*named.items(), *((name, "") for name in shown)]
    current = {now, *(name for name, model in models.items() if model.name == now)}
    rows = [["*" if name in current else "", one_line(name, 100), price] for name, price in prices]
    left_out = len(endpoint_names) - len(shown)
    more = f"and {left_out:,} more that the endpoint has. " if left_out else ""
    none = "Its endpoint does not say which models it has. " if listed == [] else ""
    hint = f"{more}{none}/model NAME switches to another."
    model = [line(line_of_model), *warned(conversation.agent.window_warning())]
    conversation.voice.lines([*model, *columns(rows, ("ok", "name", "dim")), line(("dim", hint))])


async def _switched(conversation: Conversation, name: str) -> str:
    try:
        return await conversation.agent.set_model(name)
    except UnconfirmedAddress:
        raise
    except (ModelError, UsageError) as error:
        error.fix = f"{error.fix} {_SAME}".strip()
        raise


def _function_lines(function: FunctionShown) -> list[Line]:
    parameters = json.dumps(function.parameters, ensure_ascii=False)
    return _speech_lines(f"function {function.name}", f"{function.description.strip()}\n{parameters}")


def _message_lines(message: Message) -> list[Line]:
    match message:
        case Assistant():
            call_lines = [line("  ▸ ", call.name, " ", call.arguments) for call in message.calls]
            return [*_speech_lines("assistant", message.text), *call_lines]
        case Answer():
            return _speech_lines(f"answer of {message.name}", message.text)
        case System() | User() | Notice():
            return _speech_lines(type(message).__name__.lower(), message.text)


def _speech_lines(who: str, text: str) -> list[Line]:
    return [line(("strong", who)), *(line("  ", row) for row in bare_lines(text))]


async def _summarize(conversation: Conversation, words: str) -> None:
    async with conversation.command():
        await conversation.keep_unsaved()
        with conversation.waiting(SUMMARIZING):
            summary = await conversation.agent.summarize()
        conversation.voice.lines([line(row) for row in bare_lines(summary)])


async def _memorywarning(conversation: Conversation, words: str) -> None:
    await conversation.agent.warn_memory()
    await conversation.wake()


async def _heartbeat(conversation: Conversation, words: str) -> None:
    await conversation.agent.session.post("heartbeat", words or "the user asked for it.")
    await conversation.wake()


async def _switch(conversation: Conversation, words: str) -> None:
    name = needed(words, "switch")
    if name == conversation.agent.name:
        raise UsageError(f"You are already talking to {name}.")
    is_new = not await conversation.workspace.has_agent(name)
    if is_new and not await conversation.voice.confirm(f"There is no agent {name}. Create it?"):
        conversation.voice.lines([line(("dim", "It was not created."))])
        return
    made = await asyncio.to_thread(conversation.workspace.directory.make, name) if is_new else ""
    await conversation.switch(name)
    if made:
        conversation.voice.lines([made_line(made)])
    await conversation.greet()


async def _load(conversation: Conversation, words: str) -> None:
    """Load an agent from a file. Check the whole file before asking, and replace this agent only once the other is
    ready.
    """
    name, path = conversation.agent.name, Path(needed(words, "load"))
    text = await asyncio.to_thread(read_file, path)
    async with opened_state(conversation.workspace.root) as state:
        whole, report = await state.moves.check(text, name, path.stem)
        conversation.voice.lines(waiting_lines(report.inbox, report.waiting))
        question = f"Replace {name}, conversation and memory, with the agent in {words}?"
        if not await conversation.voice.confirm(question, is_final=True):
            conversation.voice.lines([line(("dim", "Nothing was changed."))])
            return
        await conversation.agent.aclose()
        try:
            async with state.alone(name):
                await state.moves.replace(whole, report)
        finally:
            await conversation.switch(name)
    conversation.voice.lines(report_lines(report))
    await conversation.greet()


_OWN: Final[Sequence[Run]] = (
    *(_help, _exit, _show, _create, _break, _debug, _clear, _cost, _pop, _new, _retry, _dump, _model, _summarize),
    *(_memorywarning, _heartbeat, _switch, _load),
)
_RUNS: Final[Mapping[str, Run]] = {
    **{getattr(run, "__name__", "")[1:]: run for run in _OWN},
    **slash_undo.RUNS,
    **slash_shell.RUNS,
    **slash_shorthands.RUNS,
}
