"""Shorthands at a terminal: `=NAME(…)`, `?NAME`, `!COMMAND`, and @FILE within a message.

The first three are commands with a name of their own. In a pipe they are words like others. What a call returned is
kept as `_`, with `=x = NAME(…)` as `x` too, and may stand in the arguments of the next one.
"""

import ast
import asyncio
import codecs
import json
import keyword
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agent_core.base import machine, matching, programs, syntax
from agent_core.base.errors import UsageError
from agent_core.base.own_environment import environment, without_secrets
from agent_core.base.untrusted import one_line, shorten
from agent_core.context import presentation
from agent_core.functions.answers import CallReport
from agent_core.registry.arguments import misfits
from agent_core.registry.function import Function
from sandbox.wire.foreign import Malformed, read_json
from sandbox.wire.values import BODY, TAG

from .attachments import command_block, first_named, named_in, with_blocks
from .catalogue import BY_NAME, nearest, needed
from .conversation import Conversation
from .render.verdicts import value_lines
from .slash_shell import run_shell, show
from .spans import line

_CALL = re.compile(r"=\s*(?:[A-Za-z_]\w*\s*=\s*)?[A-Za-z_]\w*\s*\(")
_KEPT = re.compile(r"=\s*([A-Za-z_]\w*)\s*")
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)
_ABOUT = re.compile(r"(\?\??)\s*([A-Za-z_]\w*)\s*")
_NEAR = re.compile(r"(=|\?\??)(?:\s*$|(?=[A-Za-z_]))(.*)", re.DOTALL)
_SHELL = re.compile(r"!(?![\s!=])")
_SIGNS: Final = {"=": "call", "?": "about", "!": "shell"}
_COMMAND = re.compile(r"/([\w-]{1,60})(?!\S)")
_OF_SHELL = re.compile(r"(cd|pushd|popd|export|unset|alias|source|\.)(\s[^;&|\n]*)?")
_WIDE = re.compile(r"[／∕⁄](?=[A-Za-z])(\w+)(?![／∕⁄/\w])")  # a slash of another keyboard
_MOST_OUTPUT: Final = 20_000  # characters of what a command printed, for the model
_MOST_KEPT: Final = 1_000_000
_QUIET_S: Final = 0.5
_LITERALS = (
    'Arguments are literals, such as =slugify("A b", 3, sep="-"), and results that are kept: `_` is the last one.'
)
_POST_MORTEM = ("%debug", "%pdb", "%pm")
_LEAVES_A_PAGER = "q"  # pressed where none is open, as on a screen too low for one
_TO_MODEL = "To send it to the model, put a space before it."
_LISTS: Final = ("tuple", "set", "frozenset")
_TEXTS: Final = ("bytes", "Decimal", "datetime", "date", "time", "UUID", "Path")  # JSON has them as text


def long_form(conversation: Conversation, text: str) -> str:
    """Return the slash command for what was typed in short at a terminal; any other text unchanged.

    Raises:
        UsageError: it begins as a short form does, and is none.
    """
    if not conversation.voice.is_attended:
        return text
    kept = _KEPT.fullmatch(text)
    if _CALL.match(text) or (kept and kept[1] in conversation.results):
        return f"/call {text[1:].strip()}"
    about = _ABOUT.fullmatch(text)
    if about and (about[2] in conversation.names() or text.startswith(about[1] + about[2])):
        return f"/{'about' if about[1] == '?' else 'introspect'} {about[2]}"
    if near := _NEAR.fullmatch(text):
        return _looked_up(conversation, near[1], near[2].strip())
    if wide := _WIDE.match(text):
        meant = nearest(wide[1].lower())
        fix = f"Did you mean /{meant}?" if meant else "Type /help for the list."
        raise UsageError(f"A command begins with /, and this with {text[0]}.", fix=f"{fix} {_TO_MODEL}")
    if text.rstrip() in _POST_MORTEM:
        raise UsageError(f"{text.strip()} is a command of IPython.", fix=f"Type /debug last. {_TO_MODEL}")
    if text.rstrip() == _LEAVES_A_PAGER:
        raise UsageError("Nothing is open that q closes.", fix=f"To leave Knapper, type /exit. {_TO_MODEL}")
    return f"/shell {text[1:].strip()}" if _SHELL.match(text) else text


def _looked_up(conversation: Conversation, sign: str, typed: str) -> str:
    """Return the command for what is nearly a short form: a function's name after `=` shows the function.

    Raises:
        UsageError: it is something else.
    """
    if sign != "=":
        raise UsageError(f"`{sign}` shows one function.", fix=f"Type {sign}NAME. {_TO_MODEL}")
    if typed in conversation.names():
        return f"/about {typed}"
    if typed.isidentifier():
        fix = matching.did_you_mean(
            typed, conversation.names(), f"Type =NAME(…), or =x = NAME(…) to keep a result. {_TO_MODEL}"
        )
        raise UsageError(f"There is no result that is kept as `{typed}`, and no function of that name.", fix=fix)
    raise UsageError("That is not a call.", fix=f'Type =NAME(…), such as =slugify("A b", sep="-"). {_TO_MODEL}')


def check_message(text: str) -> None:
    """Check that a text that was typed elsewhere than at a prompt is a message; one with a space before it is.

    Raises:
        UsageError: it begins as a command or a short form does, or names a file that is there.
    """
    if text[:1].isspace():
        return
    command, file = _COMMAND.match(text), first_named(text)
    typed, name = text.split()[0], command[1] if command else ""
    if _CALL.match(text) or _NEAR.fullmatch(text) or _SHELL.match(text):
        name = _SIGNS[text[0]]
    elif command and name not in BY_NAME:
        if meant := nearest(name):
            raise UsageError(f"There is no command /{name}.", fix=f"Did you mean /{meant}? {_TO_MODEL}")
        if text.strip() == typed:
            raise UsageError(f"There is no command /{name}.", fix=_TO_MODEL)
        name = ""
    if name or file:
        page = BY_NAME[name].page if name else "the sources in the room Memory, or paste its text"
        where = f"Here it is: {page}." if page else "This page does not have it."
        what = f"`{one_line(typed if name else f'@{file}', 60)}` is for the prompt in a terminal (knapper run)"
        raise UsageError(f"{what}, and nothing was sent.", fix=f"{where} {_TO_MODEL}")


def message_of(conversation: Conversation, text: str) -> str:
    """Return a message with what goes along with it: the files that it names, and what was run before it.

    Nothing is awaited: a Ctrl-C right after Enter has to find the turn running.
    """
    files = named_in(text) if conversation.voice.is_attended else []
    conversation.voice.lines([line(("warn" if file.problem else "dim", f"  {file.note}")) for file in files])
    ran, conversation.ran = conversation.ran, []
    return with_blocks(text, [*(file.block for file in files if not file.problem), *ran])


async def _call(conversation: Conversation, words: str) -> None:
    words = needed(words, "call")
    if words in conversation.results:
        conversation.voice.lines(value_lines(conversation.results[words]))
        return
    named = _NAMED.fullmatch(words)
    kept_as, words = named.groups() if named else ("", words)
    if keyword.iskeyword(kept_as):
        raise UsageError(f"`{kept_as}` is a word of Python's, and no name.", fix="Type =x = NAME(…).")
    async with conversation.command():
        text = "  checking saved files first…"
        told = asyncio.get_running_loop().call_later(_QUIET_S, conversation.voice.lines, [line(("dim", text))])
        try:
            await asyncio.shield(conversation.workspace.workshop.reload())
        finally:
            told.cancel()
        name, arguments = _typed_call(conversation, words)
        conversation.tried = name, len(conversation.log.calls)
        with conversation.running(name):
            shown = await run_shell(conversation, "functions", "call", f"--args={arguments}", "--", name)
        if isinstance(shown.document, CallReport) and shown.document.outcome == "returned":
            conversation.results |= dict.fromkeys(("_", kept_as) if kept_as else ("_",), shown.document)
        await show(conversation, shown)


def _typed_call(conversation: Conversation, text: str) -> tuple[str, str]:
    """Return the name of the function and its arguments as JSON.

    Raises:
        UsageError: it is not one call of a function of the workspace with literals.
    """
    name, _, rest = text.partition(" ")
    if name.isidentifier() and (not rest or rest.lstrip().startswith("{")):
        return name, rest or "{}"
    try:
        node = syntax.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"That is not a call: {one_line(why, 200)}.", fix=_LITERALS) from error
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise UsageError("That is not a call of one function.", fix=_LITERALS)
    shop = conversation.workspace.workshop
    foreign = shop.foreign().get(node.func.id)
    function = foreign.function if foreign else shop.registry.snapshot().functions.get(node.func.id)
    if function is None and _own(conversation, node.func.id):
        fix = f"To see what it takes: ?{node.func.id}. /help lists what you can do yourself."
        raise UsageError(f"{node.func.id} is part of the program: only the agent calls it.", fix=fix)
    if function is None:
        fix = matching.did_you_mean(node.func.id, conversation.names(), "Type /functions for the list.")
        raise UsageError(f"There is no function {node.func.id}.", fix=fix)
    arguments = json.dumps(_arguments(node, function, conversation), ensure_ascii=False, default=_as_list)
    try:
        given = read_json(arguments)
    except Malformed as error:  # an infinite number, half a character
        raise UsageError(f"{function.name} was not called: {error}.", fix=_LITERALS) from error
    if problems := misfits(given, function.parameters, len(arguments)):  # nothing is read as another type
        reasons = "; ".join(problem.message for problem in problems)
        raise UsageError(f"{function.name} was not called: {one_line(reasons, 400)}.", fix=f"Type ?{function.name}.")
    return function.name, arguments


def _arguments(node: ast.Call, function: Function, conversation: Conversation) -> dict[str, Any]:  # Any: values of JSON
    names = [*function.parameters.get("properties", {})]
    node = _gathered(node, names, function.rest, conversation)
    if len(node.args) > len(names):
        count = f"{len(names)} argument{'' if len(names) == 1 else 's'}"
        raise UsageError(f"{function.name} takes {count}, and {len(node.args)} came.", fix=f"Type ?{function.name}.")
    pairs = [*zip(names, node.args, strict=False), *((keyword.arg, keyword.value) for keyword in node.keywords)]
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name is None or isinstance(value, ast.Starred):
            raise UsageError("Arguments are given one by one, without `*`.", fix=_LITERALS)
        if name in values:
            raise UsageError(f"`{name}` came twice.", fix=f"Type ?{function.name}.")
        values[name] = _value(value, conversation)
    return values


def _gathered(node: ast.Call, names: list[str], rest: str, conversation: Conversation) -> ast.Call:
    """Return a call with the values for `*rest` in one list, unless they came as one."""
    at = names.index(rest) if rest in names else len(names)
    several = node.args[at:]
    if not several or isinstance(several[0], ast.Starred):
        return node
    if len(several) == 1 and isinstance(_value(several[0], conversation), list | tuple | set):
        return node
    return ast.Call(node.func, [*node.args[:at], ast.List(several, ast.Load())], node.keywords)


def _value(node: ast.expr, conversation: Conversation) -> Any:  # Any: values of JSON
    """Return the value of a literal, or of a result that is kept, or of a part of one."""
    if isinstance(node, ast.Name):
        if node.id not in conversation.results:
            kept = ", ".join(f"`{name}`" for name in conversation.results) or "none yet"
            raise UsageError(f"`{node.id}` is not a literal, and no result that is kept: {kept}.", fix=_LITERALS)
        return _plain(conversation.results[node.id].value, node.id)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, conversation) for item in node.elts]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant | ast.UnaryOp):
        whole, place = _value(node.value, conversation), _literal(node.slice)
        try:
            return whole[place]
        except (LookupError, TypeError) as error:
            raise UsageError(f"`{one_line(ast.unparse(node), 80)}`: there is no such part.", fix=_LITERALS) from error
    return _literal(node)


def _plain(value: Any, name: str) -> Any:  # Any: tagged JSON, and JSON as arguments have it
    """Return a result as an argument: lists for tuples and sets, text for dates, paths and the like.

    Raises:
        UsageError: JSON has nothing for it.
    """
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TAG)
    if tag is None:
        return {key: _plain(item, name) for key, item in value.items()}
    if tag not in (*_LISTS, *_TEXTS):
        raise UsageError(f"`{name}` has a {tag} in it, which cannot be an argument.", fix="Hand on a part of it.")
    return _plain(value[BODY], name)


def _literal(node: ast.expr) -> Any:  # Any: a literal
    try:
        value = ast.literal_eval(node)
        json.dumps(value, default=_as_list)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(f"`{one_line(ast.unparse(node), 80)}` is not a literal.", fix=_LITERALS) from error
    return value


def _as_list(value: object) -> list[Any]:  # Any: the elements of a literal
    if isinstance(value, set):
        return sorted(value, key=repr)
    raise TypeError(f"{type(value).__name__} cannot be an argument")


async def _about(conversation: Conversation, words: str) -> None:
    await _explain(conversation, needed(words, "about"), "--brief")


async def _introspect(conversation: Conversation, words: str) -> None:
    await _explain(conversation, needed(words, "introspect"))


async def _explain(conversation: Conversation, name: str, *options: str) -> None:
    """Show a function of the workspace, or one of the program that the agent has."""
    if own := _own(conversation, name):
        conversation.voice.lines(
            [line(row) for row in presentation.own_function(own, conversation.agent.schema_of(own)).splitlines()]
        )
        return
    await show(conversation, await run_shell(conversation, "functions", "show", *options, "--", name))


def _own(conversation: Conversation, name: str) -> Function | None:
    return next((function for function in conversation.agent.own_functions() if function.name == name), None)


async def _shell(conversation: Conversation, words: str) -> None:
    command = needed(words, "shell")
    if not conversation.voice.is_attended:
        fix = "Run it in your shell: COMMAND | knapper run --once -f - --message TEXT"
        raise UsageError("A command of the shell runs only for a user at a terminal.", fix=fix)
    if own := _OF_SHELL.fullmatch(command):
        message = f"{own[1]} would change nothing: each ! is a shell of its own, and begins in {Path.cwd()}."
        raise UsageError(message, fix=f"Type !{one_line(command, 60)} && COMMAND.")
    async with conversation.command():
        with conversation.at_files("while that ran"):
            failed = await _run_for_message(conversation, command)
            if not conversation.busy:  # a turn may hold the functions for long; it hears of the files by itself
                await conversation.workspace.workshop.reload()
        note = "  it goes along with your next message"
        conversation.voice.lines([line(("warn", f"  {failed}" if failed else ""), ("dim", note))])


async def _run_for_message(conversation: Conversation, command: str) -> str:
    """Run a command, and keep what it printed for the next message. Return how it failed, if it did."""
    conversation.voice.status(f"running, without input or a terminal; Ctrl-C ends it: {one_line(command, 60)}")
    try:
        output, code = await _run(conversation, command)
    finally:
        conversation.voice.status("")
    failed = f"exit code {code}" if code else ""
    shown = shorten(output.rstrip("\n"), _MOST_OUTPUT) if output.strip() else ""
    conversation.ran.append(command_block(one_line(command, 1_000), failed, shown))
    return failed


async def _run(conversation: Conversation, command: str) -> tuple[str, int]:
    """Run a command in the user's shell, show what it prints as it comes, and return that with the exit code.

    It has no input, and no keys and secrets in its environment: what it prints is for the model.
    """
    around = environment()
    shell = around.get("SHELL") or "/bin/sh"
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await programs.start(
            [shell, "-c", command],
            env=without_secrets(around),
            cwd=Path.cwd(),
            **{"stdin": nothing, "stdout": pipe, "stderr": asyncio.subprocess.STDOUT},
        )
    except OSError as error:
        raise UsageError(f"The shell {shell} cannot be started: {error.strerror}.", fix="Set SHELL.") from error
    try:
        assert process.stdout is not None
        return await _shown(conversation, process.stdout), await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                machine.kill_group(process.pid)


async def _shown(conversation: Conversation, stream: asyncio.StreamReader) -> str:
    decoder, rest, kept = codecs.getincrementaldecoder("utf-8")("replace"), "", ""
    while piece := await stream.read(1 << 16):
        text = decoder.decode(piece).replace("\r\n", "\n")
        kept += text if len(kept) < _MOST_KEPT else ""
        *complete, rest = (rest + text).split("\n")
        if complete:
            conversation.voice.lines([line("  ", row) for row in complete])
    if rest:
        conversation.voice.lines([line("  ", rest)])
    return kept


RUNS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    "call": _call,
    "about": _about,
    "introspect": _introspect,
    "shell": _shell,
}
