"""The slash commands; their names, usage and help are in `catalogue`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from agent_core.base.errors import ToolwrightError, UsageError
from agent_core.base.messages import Answer, Assistant, Message, Notice, System, User
from agent_core.base.untrusted import one_line
from sandbox.wire.lines import bare_lines

from . import slash_debug, slash_grants, slash_history, slash_memory, slash_session
from .agents import write_new
from .by_hand import text_from_editor
from .catalogue import BY_NAME, ENTRIES, nearest, needed
from .columns import explained
from .conversation import Conversation
from .opened import edit_function
from .spans import Line, line, plain
from .standings import SLASH, released_lines, unused_hint, unused_lines
from .tables import functions_table
from .told import laid_open
from .verdicts import (
    changes_line,
    compact_call,
    examples_lines,
    outcome_lines,
    problem_lines,
    value_lines,
    verdict_lines,
)
from .views import facts_lines, list_lines
from .wrap import screen_columns

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


async def _create(talk: Conversation, words: str) -> None:
    name, _, module = needed(words, "create").partition(" ")
    if not name.isidentifier():
        raise UsageError(f"{name} cannot be a function's name.", fix="Use letters, digits and _.")
    if name in talk.names():
        raise UsageError(f"There is a function {name} already.", fix=f"Type /edit {name}.")
    shop = talk.workspace.workshop
    pending = await shop.pending(name)
    begun = pending.code if pending else _BEGUN.format(name=name)
    async with talk.aside():
        code = await text_from_editor(name, begun, suffix=".py")
    if code is None:
        talk.voice.lines([line(("dim", "Nothing was made: the text is unchanged."))])
        return
    into = [module.strip() or (pending.module if pending else "")]
    verdict = await shop.create(name, code, *filter(None, into), reason="written at the prompt")
    hint = line(("dim", f"  /create {name} opens it again; /pending lists rejected candidates."))
    talk.voice.lines([*verdict_lines(verdict), *([] if verdict.admitted else [hint])])


RUNS: Final[Mapping[str, Callable[[Conversation, str], Awaitable[None]]]] = {"create": _create}


Run = Callable[[Conversation, str], Awaitable[None]]


async def take(talk: Conversation, text: str) -> None:
    """Process a typed line: a command, or a message to the agent."""
    if _is_command(text):
        await command(talk, text.strip())
    else:
        await talk.say(text.removeprefix("/") if text.startswith("//") else text)
    while talk.later and not talk.left:
        text = talk.later.pop(0)
        talk.voice.lines([line(("name", "› "), ("strong", text))])
        await command(talk, text)


async def during(talk: Conversation, text: str) -> None:
    """Process a line while a turn runs: a message is delivered at its next step; some commands wait for the turn to
    end.
    """
    if not _is_command(text):
        await talk.say_meanwhile(text)
        return
    text = text.strip()
    entry = BY_NAME.get(_name(text))
    if entry is not None and not entry.in_turn:
        talk.later.append(text)
        activity = "turn" if talk.busy else "call"
        talk.voice.lines([line(("dim", f"  /{entry.name} waits until this {activity} has ended"))])
        return
    await command(talk, text)


async def command(talk: Conversation, text: str) -> None:
    """Run one command. An error is reported and ends nothing."""
    run = _RUNS.get(_name(text))
    if run is None:
        talk.explain(_no_command(_name(text)))
        return
    try:
        await run(talk, text.partition(" ")[2].strip())
        talk.deeds.touch(text.split()[1:2])
    except ToolwrightError as error:
        talk.explain(error)


def _no_command(name: str) -> UsageError:
    suggestion = nearest(name)
    fix = f"Did you mean /{suggestion}?" if suggestion else "Type /help for the list."
    return UsageError(f"There is no command /{one_line(name, 60)}.", fix=fix)


def _is_command(text: str) -> bool:
    # Spaces before the slash, left over from a line that was not sent, do not make it a message.
    typed = text.lstrip(" ")
    return typed.startswith("/") and not typed.startswith("//")


def _name(text: str) -> str:
    return text[1:].partition(" ")[0].strip()


async def _help(talk: Conversation, words: str) -> None:
    name = words.removeprefix("/")
    if name and name not in BY_NAME:
        raise _no_command(name)
    entries = [BY_NAME[name]] if name else ENTRIES
    shown = explained([(entry.typed, entry.says) for entry in entries], screen_columns())
    keys = "Alt-Enter: new line · Tab: complete · Ctrl-R: search · Ctrl-C: end the turn · Ctrl-D: leave"
    talk.voice.lines([*shown, *([] if name else [line(("dim", keys))])])


async def _exit(talk: Conversation, words: str) -> None:
    talk.left = True
    await talk.interrupt()


async def _functions(talk: Conversation, words: str) -> None:
    shop = talk.workspace.workshop
    if words == "unused":
        none = line(("dim", "Every function was called recently, or is used by others."))
        talk.voice.lines(unused_lines(await shop.unused(), SLASH) or [none])
        return
    data = await shop.list(words)
    if words or not data.functions:
        why = (
            f"No function has “{one_line(words)}” in its name, module or description."
            if words
            else "No functions. Ask for one."
        )
        talk.voice.lines(list_lines(data, heads=True) or [line(("dim", why))])
        return
    below = (*list_lines(replace(data, functions=())), *unused_hint(data, "/functions unused"))
    await talk.voice.browse(functions_table(data, shop.source, below))


async def _introspect(talk: Conversation, words: str) -> None:
    data = await talk.workspace.workshop.introspect(needed(words, "introspect"))
    talk.voice.lines(facts_lines(data, SLASH))
    talk.voice.source(data.source, data.function.line, data.coverage.missed)


async def _show(talk: Conversation, words: str) -> None:
    calls = talk.log.calls
    if not calls:
        raise UsageError("No call was made in this session.")
    if words and not (words.isdigit() and 1 <= int(words) <= len(calls)):
        raise UsageError(f"There is no call {words}.", fix=f"Type /show 1 … /show {len(calls)}.")
    call = calls[int(words) - 1 if words else -1]
    talk.voice.lines(laid_open(call))
    if call.source:
        talk.voice.source(call.source, 1)


async def _edit(talk: Conversation, words: str) -> None:
    name = needed(words, "edit")
    async with talk.aside():
        # The result is announced, like any manual change.
        await edit_function(talk.workspace.workshop, name)


async def _test(talk: Conversation, words: str) -> None:
    name, _, arguments = needed(words, "test").partition(" ")
    async with talk.command():
        await (_call(talk, name, arguments) if arguments else _examples(talk, name))


async def _examples(talk: Conversation, name: str) -> None:
    talk.voice.lines(examples_lines(await talk.workspace.workshop.test(name)))


async def _call(talk: Conversation, name: str, arguments: str) -> None:
    outcome = (await talk.workspace.workshop.test(name, arguments)).outcome or {}
    talk.voice.lines([line(("name", compact_call(name, arguments))), *value_lines(outcome), *outcome_lines(outcome)])


async def _release(talk: Conversation, words: str) -> None:
    released = await talk.workspace.workshop.release(needed(words, "release"))
    talk.voice.lines(released_lines(released))


async def _delete(talk: Conversation, words: str) -> None:
    name = needed(words, "delete")
    if name not in talk.names():
        raise UsageError(f"There is no function {name}.", fix="Type /functions for the list.")
    if await talk.voice.confirm(f"Delete {name}?"):
        result = await talk.workspace.workshop.delete(name)
        talk.voice.lines([line(("ok", "✓ "), f"deleted {result.name} from {result.module}")])
    else:
        talk.voice.lines([line(("dim", "Nothing was deleted."))])


async def _reload(talk: Conversation, words: str) -> None:
    change = await talk.workspace.workshop.reload()
    announced = change.loaded or change.changed or change.removed or change.fixed
    summary = [] if announced else [changes_line(change)]
    talk.voice.lines([*summary, *problem_lines(change.rejected)])


async def _pop(talk: Conversation, words: str) -> None:
    message = await talk.agent.pop()
    lines = [line(("ok", "✓ "), "removed from the context: ", ("strong", message))] if message else None
    talk.voice.lines(lines or [line(("dim", "There is no turn to remove."))])


async def _new(talk: Conversation, words: str) -> None:
    turns = await talk.agent.begin_anew()
    many = f"{turns} turn{'' if turns == 1 else 's'}"
    message = f"A new conversation. {many} left the context and stay{'s' if turns == 1 else ''} on record."
    talk.voice.lines([line(("ok", "✓ "), message) if turns else line(("dim", "The conversation is already new."))])


async def _clear(talk: Conversation, words: str) -> None:
    talk.voice.clear()


async def _retry(talk: Conversation, words: str) -> None:
    if await talk.agent.ends_with_a_file():
        raise UsageError("The last message came with an agent's file.", fix="Type it yourself to send it.")
    message = await talk.agent.pop()
    if message is None:
        raise UsageError("There is no message to send again.")
    first, *others = message.split("\n")
    talk.voice.lines([line(("name", "› "), ("strong", first)), *(line("  ", ("strong", text)) for text in others)])
    await talk.say(message)


async def _dump(talk: Conversation, words: str) -> None:
    lines = [row for message in await talk.agent.history() for row in _message_lines(message)]
    if not words:
        talk.voice.lines(lines or [line(("dim", "Nothing was said yet."))])
        return
    await asyncio.to_thread(write_new, words, plain(lines))
    talk.voice.lines([line(("ok", "✓ "), f"{len(lines)} lines in {words}")])


async def _model(talk: Conversation, words: str) -> None:
    if " " in words:
        raise UsageError("A model's name has no space.", fix=f"Type {BY_NAME['model'].typed}.")
    message = await (talk.agent.set_model(words) if words else talk.agent.model_line())
    talk.voice.lines([line(message)])


def _message_lines(message: Message) -> list[Line]:
    match message:
        case Assistant():
            call_lines = [line("  ▸ ", compact_call(call.name, call.arguments)) for call in message.calls]
            return [*_speech_lines("assistant", message.text), *call_lines]
        case Answer():
            return _speech_lines(f"answer of {message.name}", message.text)
        case System() | User() | Notice():
            return _speech_lines(type(message).__name__.lower(), message.text)


def _speech_lines(who: str, text: str) -> list[Line]:
    return [line(("strong", who)), *(line("  ", row) for row in bare_lines(text))]


_RUNS: dict[str, Run] = {
    "help": _help,
    "exit": _exit,
    "functions": _functions,
    "introspect": _introspect,
    "show": _show,
    "edit": _edit,
    "test": _test,
    "delete": _delete,
    **slash_history.RUNS,
    **slash_grants.RUNS,
    **RUNS,
    **slash_debug.RUNS,
    **slash_memory.RUNS,
    **slash_session.RUNS,
    "release": _release,
    "reload": _reload,
    "retry": _retry,
    "pop": _pop,
    "new": _new,
    "clear": _clear,
    "dump": _dump,
    "model": _model,
}
