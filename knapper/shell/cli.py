"""The command line: noun, then verb; one answer; exit codes 0 done, 1 rejected or failed, 2 usage error.

A command's module is imported only when the command is used, so that no command pays for another's imports. Every
exit from a command other than its answer goes through `main`.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from agent_core import __version__
from agent_core.base.errors import KnapperError
from agent_core.base.extensions import COMMANDS, NounBeside, offers, what_else
from agent_core.base.gone import GONE, warn_of_gone
from agent_core.base.untrusted import shorten
from agent_core.base.workspace_folder import current_workspace
from agent_core.operations.command_context import loading, workspace_option
from agent_core.views.faults import REFUSED, USAGE, innermost, report, report_crash, tell
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import whole_characters

if TYPE_CHECKING:  # `knapper --help` loads neither
    from agent_core.operations.command_context import CliContext
    from agent_core.operations.verb import Verb

_SHELL = f"{__package__}.commands"
_VERBS = "agent_core.operations.commands"
_COMMANDS = {
    "init": f"{_SHELL}.setup",
    "configure": f"{_SHELL}.configure",
    "run": f"{_SHELL}.run",
    "functions": f"{_SHELL}.functions",
    "calls": f"{_VERBS}.functions",
    "secrets": f"{_SHELL}.setup",
    "agents": f"{_VERBS}.agents",
    "conversations": f"{_VERBS}.conversations",
    "helpers": f"{_VERBS}.agents",
    "memory": f"{_VERBS}.memory",
    "sources": f"{_VERBS}.memory",
    "log": f"{_VERBS}.memory",
    "waiting": f"{_VERBS}.waiting",
    "cost": f"{_VERBS}.spending",
    "cap": f"{_VERBS}.spending",
    "pause": f"{_VERBS}.spending",
    "resume": f"{_VERBS}.spending",
    "login": f"{_SHELL}.login",
    "schema": f"{_SHELL}.setup",
    "state": f"{_SHELL}.setup",
    "storage": f"{_SHELL}.setup",
    "doctor": f"{_SHELL}.setup",
    "extensions": f"{_SHELL}.extensions",
    "uninstall": f"{_SHELL}.setup",
}
"""The module of each command, which is imported when the command is used."""

_GROUPS = (
    (
        ("Start", {
            "init": "make a workspace",
            "configure": "choose the model, limits",
            "run": "talk to an agent",
            "doctor": "check what works here",
            "uninstall": "what lies where",
        }),
        ("Agents", {
            "agents": "list, move, run together",
            "conversations": "list, name, branch",
            "memory": "what an agent remembers",
            "sources": "files and pages to know",
            "helpers": "narrow agents to call",
            "log, waiting": "said, and still to say",
        }),
    ),
    (
        ("Functions", {
            "functions": "list, make, test, grant",
            "calls": "recorded calls, replay",
            "secrets": "what they may be given",
            "schema, extensions": "of files, more",
        }),
        ("Serve and keep", {
            "login": "a link to the page",
            "storage, state": "check, move, adopt",
            "cost, cap": "spent on models, limits",
            "pause, resume": "what runs by itself",
        }),
    ),
)  # fmt: skip
"""The commands as `--help` groups them, in two columns, one or two with a short description; their own help has more.

Those of extensions come before the command that they name, or last in their group.
"""
_COMPLETION = 'Tab: eval "$(_KNAPPER_COMPLETE=bash_source knapper)" (or zsh_, fish_source)'
_MOST_NAMED = 3  # commands that take an option
_LONGEST = 300  # characters of an error that are shown

_START = (
    ("knapper run --model tour", "See it work, without a model."),
    ("knapper run", "Talk to it here; in a browser: knapper serve."),
)


class Shell:
    """Runs the verbs that are typed as shell commands."""

    def run(
        self,
        context: "CliContext",
        verb: "Verb",
        arguments: Mapping[str, Any],
        words: Sequence[str],
    ) -> int:
        """Run a verb in the workspace here, or on the server that the command names. Return the exit code."""
        if context.server:
            from .remote import run_command  # noqa: PLC0415 - slow to import

            return run_command(context, words)
        with loading():
            from .shell_door import carry_out  # noqa: PLC0415 - slow to import
        return carry_out(context, verb.opens, lambda door: verb.handler(door, **arguments))


class LazyGroup(click.Group):
    """A group of commands whose modules are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a new user needs them."""
        return _with_nouns(_COMMANDS, _nouns())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        if cmd_name not in _COMMANDS:
            noun = _nouns().get(cmd_name)
            return noun.command() if noun is not None else None
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name]), cmd_name)
        return command

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what a new user should type, then the usual help."""
        with formatter.section("New here? Type"):
            formatter.write_dl(_START, col_max=40)
        self.format_usage(ctx, formatter)
        self.format_options(ctx, formatter)
        lines = bare_lines(
            formatter.getvalue()
        )  # no empty lines and no heading of options, so that all of it fits on a 24-line screen
        formatter.buffer[:] = [f"{text}\n" for text in lines if text not in ("", "Options:")]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, in two columns if there is room, without importing any of them."""
        columns: list[list[str]] = []
        nouns = _nouns()
        for groups in _GROUPS:
            columns.append([])
            for title, commands in groups:
                added = {name: noun for name, noun in nouns.items() if noun.group == title}
                says = {**commands}
                for name, noun in added.items():
                    says[name] = noun.says
                rows = (f"  {name:9}  {says[name]}" for name in _with_nouns(commands, added))
                columns[-1] += [f"{title}:", *rows]
        half = (formatter.width + 2) // 2
        if max(len(row) for rows in columns for row in rows) >= half:
            columns = [[row for rows in columns for row in rows]]
        for left, right in zip_longest(
            columns[0], columns[-1] if len(columns) > 1 else (), fillvalue=""
        ):
            formatter.write(f"{left:{half}}{right}".rstrip() + "\n")
        formatter.write(f"{_COMPLETION}\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. If there is none, fail and suggest the nearest name."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            commands = self.list_commands(ctx)
            if args[0] not in commands:
                raise click.NoSuchCommand(args[0], possibilities=commands, ctx=ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="knapper", message="%(prog)s %(version)s")
@workspace_option
@click.option("--server", metavar="URL", help="The workspace that a server has open.")
@click.option("--token", metavar="TOKEN", hidden=True)
@click.option("--json", "as_json", is_flag=True, hidden=True)
@click.option("--debug", is_flag=True, hidden=True)
def knapper(root: Path | None, **options: object) -> None:
    """An assistant that makes its own functions as you talk, tested in a sandbox."""


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    as_json = "--json" in arguments
    for at, argument in enumerate(arguments, start=1):
        if whole_characters(argument) != argument:
            fix = "Encode it in UTF-8, or give the text in a UTF-8 file."
            tell(
                "usage",
                f"Argument {at} is not text in UTF-8: {argument!r:.80}.",
                fix,
                as_json=as_json,
            )
            return USAGE
    try:
        answer: Any = knapper.main(
            list(arguments), prog_name="knapper", standalone_mode=False, obj=Shell()
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        return _report_misuse(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        tell("interrupted", "Interrupted.", "", as_json=as_json)
        return REFUSED
    except Exception as error:  # noqa: BLE001  (top of the interface: report every error and keep its traceback)
        named = (
            Path(value) for flag, value in pairwise(arguments) if flag in ("-C", "--workspace")
        )
        root = next(named, None) or current_workspace() or Path()
        return _report_failure(innermost(error), as_json=as_json, root=root)
    return answer if isinstance(answer, int) else 0


def _report_misuse(error: click.ClickException, *, as_json: bool) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "knapper"
    if isinstance(error, click.NoSuchCommand):
        name = f"{path} {error.command_name}".removeprefix("knapper ")
        if name in GONE:
            warn_of_gone(name)
            return 0
    message, fix = error.format_message(), f"Try: {path} --help"
    if isinstance(error, click.NoSuchOption) and context:
        option = error.option_name
        if takers := [
            name for name, command in _subcommands(context).items() if option in _options(command)
        ]:
            of = f" These take it: {', '.join(takers)}." if len(takers) <= _MOST_NAMED else ""
            message, fix = (
                f"No such option '{option}'.",
                f"Put it after a command: {path} COMMAND {option}.{of}",
            )
    elif isinstance(error, click.NoSuchCommand) and context:
        wanted, groups = error.command_name, _subcommands(context).items()
        if places := [
            f"{path} {name} {wanted}"
            for name, group in groups
            if isinstance(group, click.Group) and wanted in group.list_commands(context)
        ]:
            message, fix = (
                f"No such command '{wanted}'.",
                f"It is in a group: {' or '.join(places)}.",
            )
        elif context.parent is None and not error.possibilities:
            fix = f"{fix}. {what_else()}"
    elif "unexpected extra argument" in error.message and context:
        texts = [
            name for name, option in _options(context.command).items() if option.metavar == "TEXT"
        ]
        fix = f"Put the text after {texts[0]}, in quotes. {fix}" if texts else fix
    tell("usage", shorten(message, _LONGEST), fix, as_json=as_json)
    return USAGE


def _nouns() -> dict[str, NounBeside]:
    """Return the commands of extensions; none replaces one of the program."""
    nouns: dict[str, NounBeside] = offers(COMMANDS)
    return {name: noun for name, noun in nouns.items() if name not in _COMMANDS}


def _with_nouns(commands: Iterable[str], nouns: Mapping[str, NounBeside]) -> list[str]:
    """Return the names of commands, and in between those of extensions."""
    names = [*commands]
    for name in sorted(nouns, key=lambda name: nouns[name].before in nouns):
        before = nouns[name].before
        names.insert(names.index(before) if before in names else len(names), name)
    return names


def _subcommands(context: click.Context) -> dict[str, click.Command]:
    group = context.command
    if not isinstance(group, click.Group):
        return {}
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in commands.items() if command is not None}


def _options(command: click.Command) -> dict[str, click.Option]:
    return {
        name: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
    }


def _report_failure(error: BaseException, *, as_json: bool, root: Path) -> int:
    if isinstance(error, OSError) and _is_unwritable(sys.stdout, error) | _is_unwritable(
        sys.stderr, error
    ):
        if not isinstance(
            error, BrokenPipeError
        ):  # no message for a reader that exited early, like `| head`
            try:
                tell(
                    "output", f"The output cannot be written: {error.strerror}.", "", as_json=False
                )
            except OSError as another:  # neither can the message
                _is_unwritable(sys.stderr, another)
        return REFUSED
    if isinstance(error, KnapperError):
        return report(error, as_json=as_json)
    return report_crash(error, root, as_json=as_json)


def _is_unwritable(stream: TextIO, error: OSError) -> bool:
    """Check whether output cannot be written. If so, discard it, so that the interpreter can exit."""
    try:
        stream.flush()  # after a failed write, the lost data may have left the buffer; then the error names the stream
        if error.filename is None or error.filename != getattr(stream, "name", None):
            return False
    except OSError:
        pass
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return True
