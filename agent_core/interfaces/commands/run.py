"""`toolwright run`: the prompt on a terminal; elsewhere one turn, or one turn per line."""

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import Any

import click

from agent_core.base.errors import NoModel, NoWorkspace
from agent_core.base.plain_files import read_named_text, read_plain
from sandbox.wire.foreign import Malformed, read_toml

from ..cli_context import CliContext, scene
from ..faults import innermost
from ..options import RunOptions


@click.command()
@click.option("--agent", metavar="NAME", help="The agent to talk to; its conversation continues.")
@click.option(
    "--model", metavar="NAME", help="A model of the endpoint, local/NAME, or tour (a scripted demonstration)."
)
@click.option("--base-url", metavar="URL", help="An endpoint that speaks chat completions.")
@click.option("--message", metavar="TEXT", help="Run one turn with this message; - reads it from standard input.")
@click.option("--preset", metavar="NAME", help="The preset of a new agent: direct, memgpt, or one from presets/.")
@click.option("--persona", metavar="NAME|FILE", help="The persona of a new agent: a name from personas/, or a file.")
@click.option("--human", metavar="NAME|FILE", help="The human of a new agent: a name from humans/, or a file.")
@click.option("--first", is_flag=True, help="The agent speaks first.")
@click.option("--no-verify", "verify", flag_value=False, default=True, help="Do not verify a new agent's first reply.")
@click.option("--yes", "-y", is_flag=True, help="If there is no workspace, create one without asking.")
@click.option("--max-steps", type=click.IntRange(1), metavar="N", help="Maximum number of model replies per turn.")
@click.option("--resume", is_flag=True, help="Continue an interrupted turn and waiting messages.")
@click.option(
    "--approve",
    metavar="ask|deny|FILE",
    help="Grants for this run: ask (default at a terminal), deny (default elsewhere), or a file such as grants.toml.",
)
@click.option("--plain", is_flag=True, help="At a terminal, print plain lines and redraw nothing.")
@click.option("--stream/--no-stream", default=True, help="Ask the endpoint to stream, or not.")
@scene
def run(scene: CliContext, **flags: Any) -> int:  # Any: the options above, as RunOptions types them
    """Talk to an agent. A prompt on a terminal, one turn with --message, one turn per line from a pipe.

    The exit code is 0 when every turn ended with a reply, 1 when one did not, 2 when the options cannot be.
    """
    options: RunOptions | None = RunOptions(root=scene.root, as_json=scene.as_json, **flags)
    while options is not None:
        try:
            return _talk(options)
        except (NoModel, NoWorkspace, ExceptionGroup) as error:
            options = _with_what_lacks(options, error)
    return 0  # the human has left


def _talk(options: RunOptions) -> int:
    if _names_address(options.root):
        from ..address_confirmation import settle_address

        settle_address(options, can_ask=options.message is None and not options.as_json and _at_terminal())
    if options.message is None and not (options.as_json or options.plain) and _can_prompt():
        return _prompt(options)
    return _plainly(options)


def _with_what_lacks(options: RunOptions, error: Exception) -> RunOptions | None:
    """Ask the user to choose a model or a workspace if there is none. Without a user, raise the error again."""
    cause = innermost(error)
    if options.yes and isinstance(cause, NoWorkspace):
        from agent_core.workspace.scaffold import create

        create(options.root)
        return options
    if options.message is not None or options.as_json or not _at_terminal():
        raise error
    from agent_core.model.discover import UnconfirmedServer

    from ..menu import choose, make_workspace

    match cause:
        case UnconfirmedServer():
            from agent_core.base.settings import load

            from ..address_confirmation import ask_to_confirm

            ask_to_confirm(options.root, load(options.root, options.flags()), cause.url)
            return options
        case NoModel():
            return choose(options, cause)
        case NoWorkspace():
            return make_workspace(options, cause)
        case _:
            raise error


def _prompt(options: RunOptions) -> int:
    gc.disable()  # until all is loaded: imports leave no garbage, and looking for it costs a tenth of the way
    from ..repl.app import Repl

    return asyncio.run(Repl(options).run())


def _plainly(options: RunOptions) -> int:
    message = read_named_text("-") if options.message == "-" else options.message
    if message is not None and not message.strip():
        raise click.UsageError("The message is empty.")
    from ..plain import each_line, one_message

    if message is None and not options.resume:
        return 0 if asyncio.run(each_line(options)) else 1
    return 0 if asyncio.run(one_message(options, message)) else 1


def _names_address(root: Path) -> bool:
    """Check whether the file names an address, without reading all settings, which would delay the prompt."""
    try:
        model = read_toml(read_plain(root / "toolwright.toml", 1 << 20)).get("model")
    except (OSError, Malformed):
        return False  # problems in it are reported where the settings are read
    return isinstance(model, dict) and "base_url" in model


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _can_prompt() -> bool:
    return _at_terminal() and os.environ.get("TERM") not in (None, "", "dumb")
