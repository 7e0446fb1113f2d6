"""`knapper run` with its options: the prompt on a terminal; otherwise one turn, or one turn per line."""

import asyncio
import gc
import os
import sys
from dataclasses import replace
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

import click

from agent_core.base.errors import ForeignState, NoModel, NoWorkspace, UsageError
from agent_core.base.plain_files import read_named_text, read_plain
from agent_core.base.policy import GROWTHS, MODES
from agent_core.base.workspace_folder import SETTINGS
from agent_core.operations.command_context import (
    CliContext,
    loading,
    with_scheme,
    workspace_command,
)
from agent_core.operations.completed_names import AGENT, MODEL
from agent_core.views.faults import debug_file, innermost
from knapper.prompt.run_options import RunOptions
from sandbox.wire.strict_json import OF_A_FILE, Malformed, read_toml

_OVER_SERVER = (
    "agent",
    "conversation",
    "message",
    "files",
    "schema",
    "yes",
    "approve",
    "plain",
)  # the others are up to the server's workspace


@click.command()
@click.option(
    "--agent", metavar="NAME", type=AGENT, help="The agent to talk to; its conversation continues."
)
@click.option(
    "--conversation",
    metavar="NAME",
    default="main",
    show_default=True,
    help="The conversation to go on with, by its name or id; new begins one.",
)
@click.option(
    "--model",
    metavar="NAME",
    type=MODEL,
    help="A model of the endpoint, one that runs here (fetched at first), or tour (scripted).",
)
@click.option(
    "--maker",
    metavar="NAME",
    type=MODEL,
    help="The model that writes new functions in this run, for the agent's model to call; off for none.",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="What turns may reach: plan only reads, ask asks for each new reach, task once for all that is expected.",
)
@click.option(
    "--growth",
    type=click.Choice(GROWTHS),
    help="Whether functions grow: on, off, or with your yes to each (ask).",
)
@click.option(
    "--base-url",
    metavar="URL",
    callback=with_scheme,
    help="An endpoint that speaks chat completions.",
)
@click.option(
    "--message",
    metavar="TEXT",
    help="Run one turn with this message; - reads it from standard input.",
)
@click.option(
    "--once",
    is_flag=True,
    help="One turn that keeps no conversation; works while another one runs.",
)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    help="Add a file to the message, of text or a picture; - is standard input.",
)
@click.option(
    "--schema",
    metavar="FIELDS|FILE",
    help="Reply with JSON of this shape: 'name, age int', or a file with a JSON Schema.",
)
@click.option(
    "--system", "-s", metavar="TEXT", help="Instructions for this run, in place of the usual ones."
)
@click.option(
    "--preset",
    metavar="NAME",
    help="The preset of a new agent: direct, memgpt, or one from presets/.",
)
@click.option(
    "--persona",
    metavar="NAME|FILE",
    help="The persona of a new agent: a name from personas/, or a file.",
)
@click.option(
    "--human", metavar="NAME|FILE", help="The human of a new agent: a name from humans/, or a file."
)
@click.option(
    "--first", is_flag=True, help="You speak first, also to a new agent of the MemGPT style."
)
@click.option("--greet", is_flag=True, help="The agent speaks first.")
@click.option(
    "--no-verify",
    "verify",
    flag_value=False,
    default=True,
    help="Do not verify a new agent's first reply.",
)
@click.option(
    "--yes",
    "-y",
    is_flag=True,
    help="Create a workspace if there is none; run all commands from a pipe, and answer yes to their questions.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of model replies per turn.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted turn and waiting messages.")
@click.option(
    "--approve",
    metavar="ask|deny|FILE",
    help="Grants for this run: ask (default at a terminal), deny (default elsewhere), or a file such as grants.toml.",
)
@click.option("--plain", is_flag=True, help="At a terminal, print plain lines and redraw nothing.")
@click.option("--stream/--no-stream", default=True, help="Ask the endpoint to stream, or not.")
@partial(workspace_command, over_server=True)
def run(
    context: CliContext, **flags: Any
) -> int:  # Any: the options above, as RunOptions types them
    """Talk to an agent. A prompt on a terminal, one turn with --message, one turn per line from a pipe.

    The exit code is 0 when every turn ended with a reply, 1 when one did not, 2 when the options cannot be.
    """
    complete = _complete(RunOptions(root=context.root, as_json=context.as_json, **flags))
    if context.server:
        usual = RunOptions(root=complete.root)
        given = [
            name
            for name in flags
            if name not in _OVER_SERVER and flags[name] != getattr(usual, name)
        ]
        if given or complete.approve not in (None, "ask", "deny"):
            flag = (given or ["approve"])[0].replace("_", "-")
            fix = "The server's workspace has its own settings."
            raise UsageError(f"--{flag} does not work over a server.", fix=fix)
        from ..remote import talk_over

        return 0 if asyncio.run(talk_over(context, complete)) else 1
    options: RunOptions | None = complete
    while options is not None:
        try:
            if _names_address(options.root):
                from knapper.prompt.menu import settle_address

                settle_address(
                    options, can_ask=options.message is None and not options.as_json and _can_ask()
                )
            can_draw = os.environ.get("TERM") not in (None, "", "dumb")
            if (
                options.message is None
                and not (options.as_json or options.plain)
                and _at_terminal()
                and can_draw
            ):
                return _prompt(options)
            with loading():
                from knapper.prompt.plain import each_line, one_message, tour_alone

            if (
                options.is_tour
                and options.message is None
                and not (options.as_json or options.resume)
                and _is_alone()
            ):
                return 0 if asyncio.run(tour_alone(options)) else 1
            if options.message is None and not options.resume:
                return 0 if asyncio.run(each_line(options)) else 1
            return 0 if asyncio.run(one_message(options, options.message)) else 1
        except (NoModel, NoWorkspace, ForeignState, ExceptionGroup) as error:
            options = _with_what_lacks(options, error)
    return 0  # the user quit


def _complete(options: RunOptions) -> RunOptions:
    """Return the options with the complete message: read from its source, with the files added.

    Raises:
        UsageError: the options contradict each other, or the message is empty.
    """
    if options.once and (options.agent or options.resume or options.conversation != "main"):
        raise click.UsageError(
            "--once keeps no conversation, so it takes neither --agent, --conversation nor --resume."
        )
    if options.first and options.greet:
        raise click.UsageError("--first and --greet exclude each other.")
    if [options.message, *options.files].count("-") > 1:
        raise click.UsageError("Standard input can be read only once.")
    message, is_piped = options.message, False
    if options.schema is not None:
        _check_schema(options)
    if message is None and options.once and "-" not in options.files and not sys.stdin.isatty():
        message, is_piped = "-", not (options.files or options.as_json)
    if message == "-":
        try:
            message = read_named_text("-").removesuffix("\n")
        except UnicodeDecodeError as error:
            what = f"Standard input is not text in UTF-8: byte {error.start + 1}. Convert it first."
            raise click.UsageError(what) from error
    fix = "Give --message TEXT, or the text on standard input."
    if message is None and (options.once or options.files):
        raise click.UsageError(f"{'--once' if options.once else '--file'} needs a message. {fix}")
    if message is not None and not message.strip():
        raise click.UsageError(f"The message is empty. {fix}")
    if message is not None and options.files:
        from agent_core.operations.attachments import added

        message, pictures = added(message, options.files)
        options = replace(options, pictures=tuple(pictures))
    return replace(options, message=message, is_typed=is_piped and "\n" not in (message or ""))


def _check_schema(options: RunOptions) -> None:
    """Check that there is a message to be answered in the shape that was given, and that it is one.

    Raises:
        UsageError: it is none.
    """
    if options.message is None and not options.once:
        raise click.UsageError("--schema needs a message. Give --message TEXT or --once.")
    assert options.shape is not None


def _with_what_lacks(options: RunOptions, error: Exception) -> RunOptions | None:
    """Ask the user for a missing model or workspace, or about a state file without their seal. Without a user, raise
    the error again.
    """
    cause = innermost(error)
    if options.yes and isinstance(cause, NoWorkspace):
        from agent_core.workspace.scaffold import create

        create(options.root)
        return options
    if isinstance(cause, NoModel) and options.model:
        from agent_core.model.beside import models_of

        # The user named it for this run; untrusted settings cannot get here.
        models = models_of(options.model)
        if models is not None and isinstance(models.obstacle(options.model), NoModel):
            models.fetch(options.model)
            return options
    if isinstance(cause, ForeignState) and not options.as_json and _can_ask():
        from knapper.prompt.menu import set_state_aside

        return set_state_aside(options, cause)
    if options.message is not None or options.as_json or not _can_ask():
        raise error
    from agent_core.model.discover import UnconfirmedServer
    from knapper.prompt.menu import choose, make_workspace

    match cause:
        case UnconfirmedServer():
            from agent_core.base.settings import load
            from knapper.prompt.menu import ask_to_confirm

            ask_to_confirm(options.root, load(options.root, options.flags()), cause.url)
            return options
        case NoModel():
            return choose(options, cause)
        case NoWorkspace():
            return make_workspace(options, cause)
        case _:
            raise error


def _prompt(options: RunOptions) -> int:
    if debug_log := debug_file(options.root):
        print(f"What goes over the wire is in {debug_log}", file=sys.stderr)  # noqa: T201  (before the prompt)
    if (workspace := options.root.resolve()) != Path.cwd():
        print(f"The workspace is {workspace}", file=sys.stderr)  # noqa: T201  (before the prompt)
    gc.disable()  # until everything is loaded: imports leave no garbage, and collection costs a tenth of the time
    from knapper.prompt.app import Repl

    code = asyncio.run(Repl(options).run())
    from agent_core.base.settings import load  # slow, and the prompt must not wait for it

    if code == 0 and options.base_url and not load(options.root).model.base_url:
        note = "The address was for this session. To keep it, type: knapper configure"
        print(note, file=sys.stderr)  # noqa: T201  (after the prompt)
    return code


def _names_address(root: Path) -> bool:
    """Check whether the file names an address, without reading all settings, which would delay the prompt."""
    try:
        file = read_toml(read_plain(root / SETTINGS, 1 << 20), values=OF_A_FILE)
    except (OSError, Malformed):
        return False  # problems are reported when the settings are read
    named = file.get("models")
    tables = [file.get("model"), *(named.values() if isinstance(named, dict) else ())]
    return any(isinstance(table, dict) and "base_url" in table for table in tables)


def _is_alone() -> bool:
    """Check whether there is no input: no terminal, and nothing on standard input."""
    if sys.stdin.isatty():
        return not _at_terminal()
    return isinstance(sys.stdin.buffer, BufferedReader) and not sys.stdin.buffer.peek(1)


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _can_ask() -> bool:
    return _at_terminal() and sys.stderr.isatty()  # where questions are shown
