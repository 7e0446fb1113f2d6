"""The slash commands; their names, usage and help are in `catalogue`."""

from collections.abc import Awaitable, Callable
from typing import Final

from agent_core.base.errors import ToolwrightError, UsageError
from agent_core.base.untrusted import one_line

from . import slash_debug, slash_session, slash_shell
from .catalogue import BY_NAME, ENTRIES, nearest, needed
from .columns import explained
from .commands.history import challenge_hint, judged
from .conversation import Conversation
from .manual_edits import text_from_editor
from .render.call_log import laid_open
from .slash_shell import PromptDoor, show
from .spans import line
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
    hint = f"/create {name} opens it again; /pending lists rejected candidates."
    hint = f"  {challenge_hint(PromptDoor(talk), verdict) or hint}"
    await show(talk, judged(verdict, "" if verdict.admitted else hint))


Run = Callable[[Conversation, str], Awaitable[None]]


async def take(talk: Conversation, text: str) -> None:
    """Process a typed line: a command, or a message to the agent."""
    if _is_command(text):
        await command(talk, text.strip())
    else:
        await talk.say(text.removeprefix("/") if text.startswith("//") else text)
    await talk.settle_later()


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


async def _clear(talk: Conversation, words: str) -> None:
    talk.voice.clear()


_RUNS: dict[str, Run] = {
    "help": _help,
    "exit": _exit,
    "show": _show,
    "create": _create,
    **slash_shell.RUNS,
    **slash_debug.RUNS,
    **slash_session.RUNS,
    "clear": _clear,
}
