"""The slash commands, those of the debugger, and the shorthands; names, usage and help are in `slash_catalog`."""

import ast
import asyncio
import codecs
import json
import keyword
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from agent_core.access.grants.record import UnconfirmedAddress, confirm
from agent_core.base import machine, matching, programs, syntax
from agent_core.base.errors import KnapperError, ModelError, UsageError
from agent_core.base.gone import gone_command
from agent_core.base.messages import Answer, Assistant, Message, Notice, System, User
from agent_core.base.own_environment import environment, without_secrets
from agent_core.base.untrusted import one_line, shorten
from agent_core.context import PRESSURE, presentation
from agent_core.functions.answers import CallReport
from agent_core.functions.debug import Placed, typed_breakpoint
from agent_core.operations.attachments import (
    as_sent,
    blocks_of,
    command_block,
    headline,
    named_in,
    pasted_notes,
    pictures_among,
    with_blocks,
)
from agent_core.operations.catalog import (
    BY_NAME,
    CALL,
    GROUPS,
    NEAR,
    SHELL,
    TO_MODEL,
    check_source,
    group,
    needed,
    suggestion,
)
from agent_core.operations.commands.conversations import end_at, shown_name
from agent_core.operations.commands.functions import ended, stopping_first
from agent_core.operations.commands.spending import cap_lines
from agent_core.operations.manual_edits import text_from_editor
from agent_core.operations.spending import (
    Spending,
    describe_price,
    ever_line,
    spending_lines,
    spent_since_ever,
)
from agent_core.operations.verb import ALWAYS, CommandEntry
from agent_core.operations.views import judged
from agent_core.registry.arguments import misfits
from agent_core.registry.function import Function
from agent_core.runtime.agent import RemovedTurn
from agent_core.runtime.model_session import SUMMARIZING
from agent_core.storage import ConversationRow
from agent_core.views.agent_view import heard_lines, report_lines
from agent_core.views.call_log import laid_open
from agent_core.views.styled_lines import (
    Choice,
    Line,
    columns,
    counted,
    explained,
    line,
    plain,
    screen_columns,
    warned,
)
from agent_core.views.verdicts import in_short, value_lines
from agent_core.workspace.conversations import Conversations
from agent_core.workspace.portable import read_file, write_file
from agent_core.workspace.state_store import opened_state
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import Malformed, read_json
from sandbox.wire.values import BODY, TAG

from . import modes, slash_shell, undo
from .conversation import Conversation, RunCommand, SentLine, made_line
from .menu import address_lines
from .slash_shell import PromptDoor, result_lines, run_shell, show

# Shorthands at a terminal: `=NAME(…)`, `?NAME`, `!COMMAND`, and @FILE within a message. The first three also have slash
# commands. In a pipe they are ordinary text. The result of a call is kept as `_` and, with `=x = NAME(…)`, as `x` too;
# both may be used in the arguments of later calls.

_KEPT = re.compile(r"=\s*([A-Za-z_]\w*)\s*")
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)
_ABOUT = re.compile(r"(\?\??)\s*([A-Za-z_]\w*)\s*")
_OF_SHELL = re.compile(r"(cd|pushd|popd|export|unset|alias|source|\.)(\s[^;&|\n]*)?")
_WIDE = re.compile(
    r"[／∕⁄](?=[A-Za-z])(\w+)(?![／∕⁄/\w])"
)  # slash look-alikes from other keyboard layouts
_MOST_OUTPUT: Final = 20_000  # characters of a command's output that the model gets
_MOST_KEPT: Final = 1_000_000
_QUIET_S: Final = 0.5
_LITERALS = 'Arguments are literals, such as =slugify("A b", 3, sep="-"), or saved results; `_` is the last one.'
_POST_MORTEM = ("%debug", "%pdb", "%pm")
_LEAVES_A_PAGER = "q"  # typed although no pager is open, such as on a screen too low for one
_LISTS: Final = ("tuple", "set", "frozenset")
_TEXTS: Final = ("bytes", "Decimal", "datetime", "date", "time", "UUID", "Path")  # text in JSON


def long_form(conversation: Conversation, text: str) -> str:
    """Return the slash command for a shorthand typed at a terminal, or any other text unchanged.

    Raises:
        UsageError: the text begins like a shorthand but is not one.
    """
    if not conversation.voice.is_attended:
        return text
    kept = _KEPT.fullmatch(text)
    if CALL.match(text) or (kept and kept[1] in conversation.results):
        return f"/call {text[1:].strip()}"
    about = _ABOUT.fullmatch(text)
    if about and (about[2] in conversation.names() or text.startswith(about[1] + about[2])):
        return f"/{'about' if about[1] == '?' else 'introspect'} {about[2]}"
    if near := NEAR.fullmatch(text):
        sign, typed = near[1], near[2].strip()
        if sign != "=":
            raise UsageError(f"`{sign}` shows one function.", fix=f"Type {sign}NAME. {TO_MODEL}")
        if typed in conversation.names():  # a function's name after `=` shows the function
            return f"/about {typed}"
        if typed.isidentifier():
            hint = f"Type =NAME(…), or =x = NAME(…) to keep a result. {TO_MODEL}"
            fix = matching.did_you_mean(typed, conversation.names(), hint)
            raise UsageError(f"There is no saved result or function named `{typed}`.", fix=fix)
        raise UsageError(
            "That is not a call.",
            fix=f'Type =NAME(…), such as =slugify("A b", sep="-"). {TO_MODEL}',
        )
    if wide := _WIDE.match(text):
        fix = f"{suggestion(wide[1].lower())} {TO_MODEL}"
        raise UsageError(f"A command begins with /, not with {text[0]}.", fix=fix)
    if text.rstrip() in _POST_MORTEM:
        raise UsageError(
            f"{text.strip()} is a command of IPython.", fix=f"Type /debug last. {TO_MODEL}"
        )
    if text.rstrip() == _LEAVES_A_PAGER:
        raise UsageError(
            "There is nothing for q to close.", fix=f"To leave Knapper, type /exit. {TO_MODEL}"
        )
    return f"/shell {text[1:].strip()}" if SHELL.match(text) else text


def message_of(conversation: Conversation, text: str) -> str:
    """Return a message with its attachments: the files that it names and the output of shell commands run before it.

    This must not await: a Ctrl-C right after Enter has to find the turn running.
    """
    files, notes = (
        (named_in(text), pasted_notes(text)) if conversation.voice.is_attended else ([], [])
    )
    conversation.voice.lines(
        [line(("warn" if file.problem else "dim", f"  {file.note}")) for file in files]
    )
    conversation.voice.lines([line(("warn", f"  {note}")) for note in notes])
    text = as_sent(text) if conversation.voice.is_attended else text
    ran, conversation.ran = conversation.ran, []
    conversation.pictures += pictures_among(files)
    return with_blocks(text, [*blocks_of(files), *ran])


async def _call(conversation: Conversation, words: str) -> None:
    words = needed(words, "call")
    if words in conversation.results:
        kept = value_lines(conversation.results[words])
        if len(in_short(kept, "")) == len(kept):
            conversation.voice.lines(kept)
        else:
            await conversation.voice.read(
                Choice(f"={words}", line(f"={words}"), words, lambda: kept)
            )
        return
    named = _NAMED.fullmatch(words)
    kept_as, words = named.groups() if named else ("", words)
    if keyword.iskeyword(kept_as):
        raise UsageError(
            f"`{kept_as}` is a Python keyword and cannot be a name.", fix="Type =x = NAME(…)."
        )
    async with conversation.command():
        text = "  checking saved files first…"
        told = asyncio.get_running_loop().call_later(
            _QUIET_S, conversation.voice.lines, [line(("dim", text))]
        )
        try:
            await asyncio.shield(conversation.workspace.functions.reload())
        finally:
            told.cancel()
        name, arguments = _typed_call(conversation, words)
        conversation.tried = name, len(conversation.log.calls)
        with conversation.running(name):
            shown = await run_shell(
                conversation, "functions", "call", f"--args={arguments}", "--", name
            )
        if isinstance(shown.document, CallReport) and shown.document.outcome == "returned":
            conversation.results |= dict.fromkeys(
                ("_", kept_as) if kept_as else ("_",), shown.document
            )
        conversation.failed |= shown.code != 0
        conversation.voice.lines(result_lines(shown))  # shortened already, with how to see all


def _typed_call(conversation: Conversation, text: str) -> tuple[str, str]:
    """Return the name of the function and its arguments as JSON.

    Raises:
        UsageError: the text is not a single call of a workspace function with literal arguments.
    """
    name, _, rest = text.partition(" ")
    if name.isidentifier() and (not rest or rest.lstrip().startswith("{")):
        return name, rest or "{}"
    try:
        node = syntax.parse(text, mode="eval").body
    except SyntaxError as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"That is not a call: {one_line(why, 200)}.", fix=_LITERALS) from error
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise UsageError("That is not a call of one function.", fix=_LITERALS)
    service = conversation.workspace.functions
    foreign = service.foreign().get(node.func.id)
    function = (
        foreign.function if foreign else service.registry.snapshot().functions.get(node.func.id)
    )
    if function is None and _own(conversation, node.func.id):
        fix = f"To see what it takes: ?{node.func.id}. /help lists what you can do yourself."
        raise UsageError(
            f"{node.func.id} is part of the program: only the agent calls it.", fix=fix
        )
    if function is None:
        fix = matching.did_you_mean(
            node.func.id, conversation.names(), "Type /functions for the list."
        )
        raise UsageError(f"There is no function {node.func.id}.", fix=fix)
    arguments = json.dumps(
        _arguments(node, function, conversation), ensure_ascii=False, default=_as_list
    )
    try:
        given = read_json(arguments)
    except Malformed as error:  # an infinite number or a lone surrogate
        raise UsageError(f"{function.name} was not called: {error}.", fix=_LITERALS) from error
    if problems := misfits(
        given, function.parameters, len(arguments)
    ):  # values are not converted to other types
        reasons = "; ".join(problem.message for problem in problems)
        raise UsageError(
            f"{function.name} was not called: {one_line(reasons, 400)}.",
            fix=f"Type ?{function.name}.",
        )
    return function.name, arguments


def _arguments(
    node: ast.Call, function: Function, conversation: Conversation
) -> dict[str, Any]:  # Any: values of JSON
    names = [*function.parameters.get("properties", {})]
    at = names.index(function.rest) if function.rest in names else len(names)
    given, rest = node.args, node.args[at:]
    if rest and not isinstance(rest[0], ast.Starred):
        # The values for `*rest` go into one list, unless they are given as one.
        is_list = len(rest) == 1 and isinstance(_value(rest[0], conversation), list | tuple | set)
        given = given if is_list else [*given[:at], ast.List(rest, ast.Load())]
    if len(given) > len(names):
        count = counted(len(names), "argument")
        raise UsageError(
            f"{function.name} takes {count}, but got {len(given)}.", fix=f"Type ?{function.name}."
        )
    pairs = [
        *zip(names, given, strict=False),
        *((keyword.arg, keyword.value) for keyword in node.keywords),
    ]
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in pairs:
        if name is None or isinstance(value, ast.Starred):
            raise UsageError("Give each argument separately, without `*`.", fix=_LITERALS)
        if name in values:
            raise UsageError(f"`{name}` was given twice.", fix=f"Type ?{function.name}.")
        is_extra = bool(function.extra) and name not in names
        (extra if is_extra else values)[name] = _value(value, conversation)
    if extra and isinstance(into := values.setdefault(function.extra, {}), dict):
        into |= extra
    return values


def _value(node: ast.expr, conversation: Conversation) -> Any:  # Any: values of JSON
    """Return the value of a literal, a kept result, or a part of one."""
    if isinstance(node, ast.Name):
        if node.id not in conversation.results:
            kept = ", ".join(f"`{name}`" for name in conversation.results) or "none yet"
            raise UsageError(
                f"`{node.id}` is neither a literal nor a saved result. Saved: {kept}.",
                fix=_LITERALS,
            )
        return _plain(conversation.results[node.id].value, node.id)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, conversation) for item in node.elts]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant | ast.UnaryOp):
        whole, place = _value(node.value, conversation), _literal(node.slice)
        try:
            return whole[place]
        except (LookupError, TypeError) as error:
            raise UsageError(
                f"`{one_line(ast.unparse(node), 80)}` does not exist.", fix=_LITERALS
            ) from error
    return _literal(node)


def _plain(value: Any, name: str) -> Any:  # Any: tagged JSON, and JSON as arguments have it
    """Return a result in a form usable as an argument: lists for tuples and sets, text for dates, paths and the like.

    Raises:
        UsageError: JSON cannot represent it.
    """
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TAG)
    if tag is None:
        return {key: _plain(item, name) for key, item in value.items()}
    if tag not in (*_LISTS, *_TEXTS):
        raise UsageError(
            f"`{name}` contains a {tag}, which cannot be an argument.",
            fix="Pass only a part of it.",
        )
    return _plain(value[BODY], name)


def _literal(node: ast.expr) -> Any:  # Any: a literal
    try:
        value = ast.literal_eval(node)
        json.dumps(value, default=_as_list)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"`{one_line(ast.unparse(node), 80)}` is not a literal.", fix=_LITERALS
        ) from error
    return value


def _as_list(value: object) -> list[Any]:  # Any: the elements of a literal
    if isinstance(value, set):
        return sorted(value, key=repr)
    raise TypeError(f"{type(value).__name__} cannot be an argument")


async def _explain(command: str, conversation: Conversation, words: str) -> None:
    """Show a function of the workspace, or a built-in function that the agent has."""
    name, options = needed(words, command), ["--brief"] if command == "about" else []
    if own := _own(conversation, name):
        schema = conversation.agent.model_session.functions.schema_of(own)
        lines = [line(row) for row in presentation.own_function(own, schema).splitlines()]
        await conversation.voice.result(conversation.commanded, lines)
        return
    await show(
        conversation, await run_shell(conversation, "functions", "show", *options, "--", name)
    )


def _own(conversation: Conversation, name: str) -> Function | None:
    return next(
        (
            function
            for function in conversation.agent.model_session.shown.pinned
            if function.name == name
        ),
        None,
    )


async def _shell(conversation: Conversation, words: str) -> None:
    command = needed(words, "shell")
    if not conversation.voice.is_attended:
        fix = "Run it in your shell: COMMAND | knapper run --once -f - --message TEXT"
        raise UsageError("A command of the shell runs only for a user at a terminal.", fix=fix)
    if own := _OF_SHELL.fullmatch(command):
        message = f"{own[1]} would have no effect: each ! starts a new shell in {conversation.workspace.root}."
        raise UsageError(message, fix=f"Type !{one_line(command, 60)} && COMMAND.")
    async with conversation.command():
        with conversation.at_files("while that ran"):
            with conversation.waiting(
                f"running, without input or a terminal; Ctrl-C ends it: {one_line(command, 60)}"
            ):
                output, code = await _run(conversation, command)
            failed = f"exit code {code}" if code else ""
            shown = shorten(output.rstrip("\n"), _MOST_OUTPUT) if output.strip() else ""
            conversation.ran.append(command_block(one_line(command, 1_000), failed, shown))
            if (
                not conversation.busy
            ):  # a turn may lock the functions for long, and it watches the files itself
                await conversation.workspace.functions.reload()
        note = "  it goes along with your next message"
        conversation.voice.lines([line(("warn", f"  {failed}" if failed else ""), ("dim", note))])


async def _run(conversation: Conversation, command: str) -> tuple[str, int]:
    """Run a command in the user's shell, show its output as it arrives, and return the output and the exit code.

    It runs in the workspace's folder, where the agent's paths begin. It gets no input and no keys or secrets in its
    environment, because the model sees its output.
    """
    around = environment()
    shell = around.get("SHELL") or "/bin/sh"
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await programs.start(
            [shell, "-c", command],
            env=without_secrets(around),
            cwd=conversation.workspace.root,
            **{"stdin": nothing, "stdout": pipe, "stderr": asyncio.subprocess.STDOUT},
        )
    except OSError as error:
        raise UsageError(
            f"The shell {shell} cannot be started: {error.strerror}.", fix="Set SHELL."
        ) from error
    try:
        assert process.stdout is not None
        decoder, rest, kept = codecs.getincrementaldecoder("utf-8")("replace"), "", ""
        while piece := await process.stdout.read(1 << 16):
            text = decoder.decode(piece).replace("\r\n", "\n")
            kept += text if len(kept) < _MOST_KEPT else ""
            *complete, rest = (rest + text).split("\n")
            if complete:
                conversation.voice.lines([line("  ", row) for row in complete])
        if rest:
            conversation.voice.lines([line("  ", rest)])
        return kept, await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                machine.kill_group(process.pid)


_IN_SHORT = "=NAME(…): call a function · ?NAME: show it · !COMMAND: run in your shell · @FILE: add a file to a message"
_KEYS = "Alt-Enter: new line · Tab: complete · Ctrl-R: search · Ctrl-C: end the turn · Ctrl-Z: suspend · Ctrl-D: leave"
_SAME = "The model is the same as before."
_MOST_MODELS = 30
_SHOWN = 20  # lines shown of a message that is sent again: it may include the text of files
_RUNS_ELSEWHERE = "What runs now runs in another window: type /break now there."
_NOBODY = "No debugger is attached here: breakpoints record values, and the answer includes them."


async def _break(conversation: Conversation, words: str) -> None:
    first, _, arguments = words.partition(" ")
    match first:
        case "":
            snapshot = conversation.workspace.functions.registry.snapshot()
            placed = [
                _line(entry)
                for entry in conversation.workspace.debugging.breakpoints.placed(snapshot)
            ]
            none = line(("dim", "No breakpoint is set. Type /break FUNCTION:LINE."))
            conversation.voice.lines(placed or [none])
        case "now" if not arguments:
            if conversation.workspace.debugging.slot.debugger is None:
                raise UsageError("No debugger is attached here, so nothing can be stopped.")
            reached = conversation.workspace.debugging.break_now()
            message = f"stopping {', '.join(reached)} at its next line"
            if not reached:
                is_elsewhere = conversation.agent.is_following
                message = _RUNS_ELSEWHERE if is_elsewhere else "No function is running."
            conversation.voice.lines([line(("dim", f"  {message}"))])
        case "here" if not arguments:
            debugger = conversation.voice.debugger
            if debugger is None:
                raise UsageError("No debugger is attached here, so nothing can be stepped.")
            await conversation.agent.take_over_stop(debugger)
        case "clear":
            target = arguments.strip()
            name, _, number = target.partition(":")
            if number and not number.strip().isdecimal():
                raise UsageError(f"{number!r} is no line.", fix=f"Type {BY_NAME['break'].typed}.")
            id = int(name) if name.isdecimal() else 0
            removed = conversation.workspace.debugging.breakpoints.clear(
                "" if id else name,
                int(number or 0),
                conversation.workspace.functions.registry.snapshot(),
                id,
            )
            if not removed:
                fix = "Type /break for the list."
                raise UsageError(f"There is no breakpoint {target}.".replace(" .", "."), fix=fix)
            conversation.voice.lines(
                [line(("ok", "✓ "), "cleared ", entry.text) for entry in removed]
            )
        case _:
            _show_placed(conversation, _arm(conversation, words))
    if words not in ("", "now", "here"):
        await conversation.tell_breakpoints()


def _arm(conversation: Conversation, words: str, *, once: bool = False) -> Placed:
    target, line_number = typed_breakpoint(words, once=once)
    return conversation.workspace.debugging.breakpoints.arm(
        target, line_number, conversation.workspace.functions.registry.snapshot()
    )


def _show_placed(conversation: Conversation, placed: Placed) -> None:
    nobody = (
        []
        if conversation.workspace.debugging.slot.debugger is not None
        else [line(("dim", f"  {_NOBODY}"))]
    )
    moved = [line(("dim", f"  {placed.moved}"))] if placed.moved else []
    conversation.voice.lines([_line(placed), *moved, *nobody])


def _line(placed: Placed) -> Line:
    return line(("warn", "● " if placed.line else "○ "), placed.text)


async def _debug(conversation: Conversation, words: str) -> None:
    name, _, arguments = needed(words, "debug").partition(" ")
    if words == "last":
        failed = await conversation.workspace.functions.replays.calls(failed=True)
        if not failed:
            raise UsageError("No recorded call has failed.", fix="Type /debug NAME [JSON].")
        async with conversation.command():
            await show(
                conversation,
                await run_shell(conversation, "calls", "replay", "--debug", str(failed[0].call)),
            )
        return
    if not arguments:
        _show_placed(conversation, _arm(conversation, name, once=True))
        await conversation.tell_breakpoints()
        return
    async with conversation.command():
        door = PromptDoor(conversation)
        with stopping_first(door, name):
            outcome = await door.functions.call(name, arguments)
        await show(conversation, await ended(door, (name, arguments), outcome))


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
    service = conversation.workspace.functions
    pending = await service.pending(name)
    begun = pending.code if pending else _BEGUN.format(name=name)
    async with PromptDoor(conversation).editor(
        f"In the shell: knapper functions create {name} FILE"
    ):
        code = await text_from_editor(name, begun, suffix=".py")
    if code is None:
        conversation.voice.lines([line(("dim", "Nothing was made: the text is unchanged."))])
        return
    into = [module.strip() or (pending.module if pending else "")]
    verdict = await service.create(name, code, *filter(None, into), reason="written at the prompt")
    hint = f"  /create {name} opens it again; /pending lists rejected candidates."
    await show(
        conversation, judged(verdict, PromptDoor(conversation), "" if verdict.admitted else hint)
    )


async def take(conversation: Conversation, text: str) -> None:
    """Process a typed line: a command, or a message to the agent."""
    text = long_form(conversation, text)
    if is_command(text):
        await command(conversation, as_sent(text).strip())
    else:
        await conversation.say(message_of(conversation, _unescape(text)))
    await conversation.settle_later()


async def during(conversation: Conversation, text: str) -> None:
    """Process a line while a turn runs. A message is delivered at its next step; some commands wait for its end."""
    text = long_form(conversation, text)
    if not is_command(text):
        ran = [*conversation.ran]
        message = message_of(conversation, _unescape(text))
        await conversation.say_meanwhile(message, SentLine(text, ran))
        return
    text = as_sent(text).strip()
    entry = BY_NAME.get(_name(text))
    if entry is not None and not (entry.in_turn or entry.shows == ALWAYS):
        conversation.later.append(text)
        activity = "turn" if conversation.busy else "call"
        conversation.voice.lines(
            [line(("dim", f"  /{entry.name} waits until this {activity} has ended"))]
        )
        return
    await command(conversation, text)


async def command(conversation: Conversation, text: str) -> None:
    """Run one command. An error is reported and does not end the conversation."""
    name, words = _name(text), text.partition(" ")[2].strip()
    gone = gone_command(name, words)
    if gone is not None:
        conversation.voice.lines(warned(gone))
        return
    run = _RUNS.get(name)
    if run is None:
        conversation.explain(_no_command(name))
        return
    earlier = conversation.commanded
    conversation.commanded = text
    try:
        if words and " " not in BY_NAME[name].typed:
            raise UsageError(
                f"/{name} takes no arguments, so it was not run.", fix=f"Type /{name} alone."
            )
        check_source(name, words, is_trusted=conversation.voice.is_trusted)
        await run(conversation, words)
        conversation.touch(text.split()[1:2])
    except KnapperError as error:
        conversation.explain(error)
    finally:
        conversation.commanded = earlier


def _no_command(name: str) -> UsageError:
    return UsageError(f"There is no command /{one_line(name, 60)}.", fix=suggestion(name))


def is_command(text: str) -> bool:
    """Check whether a typed line is a command, not a message."""
    # Spaces before the slash, such as those left from an unsent line, do not turn it into a message.
    typed = text.lstrip(" ")
    return typed.startswith("/") and not typed.startswith("//")


def _unescape(text: str) -> str:
    return text.removeprefix("/") if text.startswith("//") else text


def _name(text: str) -> str:
    return text[1:].partition(" ")[0].strip()


async def _help(conversation: Conversation, words: str) -> None:
    name = words.removeprefix("/")
    if name in BY_NAME:
        lines = _explanation_lines([BY_NAME[name]])
    elif name in ("all", *GROUPS):
        lines = []
        for each in GROUPS if name == "all" else [name]:
            lines += [line(("strong", each)), *_explanation_lines(group(each))]
    elif name:
        raise _no_command(name)
    else:
        first, *others = GROUPS
        lines = _explanation_lines(group(first))
        for other in others:
            lines.append(
                line(
                    ("strong", f"{other}: "),
                    ("name", " ".join(f"/{entry.name}" for entry in group(other))),
                )
            )
        ends = ("/help COMMAND explains one, /help all explains all", _IN_SHORT, _KEYS)
        lines += [line(("dim", text)) for text in ends]
    await conversation.voice.result(conversation.commanded, lines)


def _explanation_lines(entries: Sequence[CommandEntry]) -> list[Line]:
    return explained([(entry.typed, entry.says) for entry in entries], screen_columns())


async def _exit(conversation: Conversation, words: str) -> None:
    conversation.left = True
    await conversation.interrupt()


async def _show(conversation: Conversation, words: str) -> None:
    calls, forgot = conversation.log.calls, conversation.log.forgot
    if not calls:
        fix = "" if forgot else "For earlier calls: /log, or in the shell: knapper calls list"
        raise UsageError(
            f"No call was made {'since /forget' if forgot else 'in this session'}.", fix=fix
        )
    first, last = calls[0].number, calls[-1].number
    if words and not (words.isdecimal() and first <= int(words) <= last):
        gone = " /forget dropped those before." if forgot else ""
        raise UsageError(
            f"There is no call {one_line(words, 40)}.",
            fix=f"Type /show {first} … /show {last}.{gone}",
        )
    call = calls[int(words) - first if words else -1]
    head, source = f"[{call.number}] {one_line(call.name, 80)}", (call.source, 1, ())
    await conversation.voice.read(
        Choice(
            head,
            line(head),
            head,
            partial(laid_open, call),
            (lambda: source) if call.source else None,
        )
    )


async def _clear(conversation: Conversation, words: str) -> None:
    conversation.voice.clear()


async def _cost(conversation: Conversation, words: str) -> None:
    if words:
        await slash_shell.RUNS["cost"](conversation, words)
        return
    workspace, name = conversation.workspace, conversation.agent.name
    ever = Spending(workspace.root, workspace.settings.models)
    await spent_since_ever(workspace.store, name, ever)
    here = await run_shell(conversation, "cost", "cost")
    caps = cap_lines(here.document)
    conversation.voice.lines([*spending_lines(conversation.spending), ever_line(name, ever), *caps])


async def _pop(conversation: Conversation, words: str) -> None:
    removed = await conversation.agent.pop()
    conversation.voice.lines(
        [_removed_line(removed) if removed else line(("dim", "There is no turn to remove."))]
    )


def _removed_line(removed: RemovedTurn) -> Line:
    """Return a line about what was removed: the user's message, or the turn that an event began."""
    what = "" if removed.is_message else "a turn that no message began: "
    return line(
        ("ok", "✓ "), "removed from the context: ", what, ("strong", headline(removed.text))
    )


async def _new(conversation: Conversation, words: str) -> None:
    agent = conversation.agent
    if not words and not (await agent.history() or await agent.user_texts()):
        conversation.voice.lines([line(("dim", "The conversation is already new."))])
        return
    await conversation.keep_unsaved()
    left = agent.conversation
    begun = await _conversations(conversation).begin(agent.origin, words)
    await conversation.switch(agent.name, begun.id)
    back = f"/open {left.id} goes back to {_quoted(left)}"
    conversation.voice.lines([line(("ok", "✓ "), "A new conversation. ", ("dim", back))])


async def _open(conversation: Conversation, words: str) -> None:
    agent = conversation.agent
    found = await _conversations(conversation).find(needed(words, "open"))
    if found.line == agent.line:
        raise UsageError(f"You are already in {_quoted(found)}.")
    await conversation.switch(agent.name, found.id)
    await conversation.greet()


async def _branch(conversation: Conversation, words: str) -> None:
    agent = conversation.agent
    own = _conversations(conversation)
    upto = await end_at(own, agent.line, words) if words else None
    left = agent.conversation
    begun = await own.branch(left.id, upto, agent.origin)
    await conversation.switch(agent.name, begun.id)
    back = f"/open {left.id} goes back to {_quoted(left)}"
    where = words and f", up to {words}"
    what = f"A branch of {_quoted(left)}{where}. "
    conversation.voice.lines([line(("ok", "✓ "), what, ("dim", back))])


async def _rename(conversation: Conversation, words: str) -> None:
    agent = conversation.agent
    agent.conversation = await _conversations(conversation).rename(
        agent.conversation.id, needed(words, "name")
    )
    conversation.voice.lines([line(("ok", "✓ "), "named ", ("name", _quoted(agent.conversation)))])


def _conversations(conversation: Conversation) -> Conversations:
    return conversation.workspace.conversations(conversation.agent.name)


def _quoted(row: ConversationRow) -> str:
    """Return the name of a conversation within a sentence."""
    return f"“{shown_name(row)}”" if row.name else row.id


async def _retry(conversation: Conversation, words: str) -> None:
    await conversation.agent.require_own_message()
    removed = await conversation.agent.pop()
    while (
        removed is not None and not removed.is_message
    ):  # also removes a later turn that an event began
        conversation.voice.lines([_removed_line(removed)])
        removed = await conversation.agent.pop()
    if removed is None:
        raise UsageError("There is no message to send again.")
    first, *others = bare_lines(removed.text) or [""]
    conversation.voice.lines(
        [
            line(("name", "› "), ("strong", first)),
            *(line("  ", ("strong", text)) for text in others[:_SHOWN]),
        ]
    )
    await conversation.say(removed.text)


async def _dump(conversation: Conversation, words: str) -> None:
    prompt = await conversation.agent.prompt()
    system = [message for message in prompt.messages if isinstance(message, System)]
    said = [
        row
        for message in prompt.messages
        if not isinstance(message, System)
        for row in _message_lines(message)
    ]
    before = [row for message in system for row in _message_lines(message)]
    for function in prompt.functions:
        parameters = json.dumps(function.parameters, ensure_ascii=False)
        before += _speech_lines(
            f"function {function.name}", f"{function.description.strip()}\n{parameters}"
        )
    lines = [*before, *(said or [line(("dim", "Nothing was said yet."))])]
    if not words:
        await conversation.voice.result(conversation.commanded, lines)
        return
    await asyncio.to_thread(write_file, words, plain(lines))
    conversation.voice.lines([line(("ok", "✓ "), f"{len(lines)} lines in {words}")])


async def _model(conversation: Conversation, words: str) -> None:
    if " " in words:
        raise UsageError(
            "A model's name cannot contain a space.", fix=f"Type {BY_NAME['model'].typed}."
        )
    if not words:
        await _show_models(conversation)
        return
    try:
        message = await _switch_model(conversation, words)
    except UnconfirmedAddress as error:
        settings = conversation.workspace.settings.using(words)
        conversation.voice.lines(address_lines(settings, error.url))
        if not await conversation.voice.confirm("Send it there?"):
            conversation.voice.lines([line(("dim", _SAME))])
            return
        confirm(conversation.workspace.root, error.url, settings.model.key_variable)
        message = await _switch_model(conversation, words)
    conversation.voice.lines([line(message), *warned(conversation.agent.models.window_warning())])


async def _show_models(conversation: Conversation) -> None:
    """Show the current model, the models in the settings, and those of the endpoint."""
    line_of_model, models = (
        await conversation.agent.model_session.line(),
        conversation.workspace.settings.models,
    )
    now = conversation.agent.status().model
    named = {name: describe_price(model) for name, model in models.items()}
    ask = conversation.agent.models.endpoint_names
    listed = await ask() if ask else None
    endpoint_names = [name for name in listed or () if name not in named]
    shown = sorted(endpoint_names, key=lambda name: (name != now, name))[:_MOST_MODELS]
    prices = [*named.items(), *((name, "") for name in shown)]
    current = {now, *(name for name, model in models.items() if model.name == now)}
    rows = [["*" if name in current else "", one_line(name, 100), price] for name, price in prices]
    left_out = len(endpoint_names) - len(shown)
    more = f"and {left_out:,} more at the endpoint. " if left_out else ""
    none = "Its endpoint does not say which models it has. " if listed == [] else ""
    hint = f"{more}{none}/model NAME switches to another."
    model = [line(line_of_model), *warned(conversation.agent.models.window_warning())]
    lines = [*model, *columns(rows, ("ok", "name", "dim")), line(("dim", hint))]
    await conversation.voice.result(conversation.commanded, lines)


async def _switch_model(conversation: Conversation, name: str) -> str:
    try:
        return await conversation.agent.model_session.change(name)
    except UnconfirmedAddress:
        raise
    except (ModelError, UsageError) as error:
        error.fix = f"{error.fix} {_SAME}".strip()
        raise


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
        await conversation.voice.result(
            conversation.commanded, [line(row) for row in bare_lines(summary)]
        )


async def _memorywarning(conversation: Conversation, words: str) -> None:
    await conversation.agent.session.post("notice", PRESSURE.text)
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
        conversation.voice.lines(heard_lines(report))
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


_OWN: Final[Sequence[RunCommand]] = (
    *(
        _help,
        _exit,
        _show,
        _create,
        _break,
        _debug,
        _clear,
        _cost,
        _pop,
        _new,
        _open,
        _branch,
        _retry,
        _dump,
        _model,
        _summarize,
    ),
    *(_memorywarning, _heartbeat, _switch, _load, _call, _shell),
)
_RUNS: Final[Mapping[str, RunCommand]] = {
    **modes.RUNS,
    **undo.RUNS,
    **slash_shell.RUNS,
    "name": _rename,
    **{name: partial(_explain, name) for name in ("about", "introspect")},
    **{
        getattr(run, "__name__", "")[1:]: run for run in _OWN
    },  # some show more than the verb with the same name
}
