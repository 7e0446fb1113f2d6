"""A verb is defined once and serves as a shell command, as a slash command and as a command of a server.

In the shell it is a click command, for which `opened` opens the workspace. At the prompt, its handler works on the
workspace of the conversation; over a server, on that of the server, if the token has one of the `scopes`.
"""

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeAlias

import click

from agent_core.base.errors import UsageError
from agent_core.base.gone import warn_of_gone
from agent_core.base.late import LateModule
from agent_core.base.plain_files import read_named_text
from agent_core.base.records import dataclass, field
from agent_core.operations.operation import Opens, Operation, Scope
from agent_core.operations.words import Word
from agent_core.views.result import Result
from agent_core.views.styled_lines import line

from .command_context import CliContext, workspace_command
from .completed_names import AGENT, FUNCTION

if TYPE_CHECKING:  # `knapper --help` must not load a workspace
    from agent_core import storage
    from agent_core.functions.debug import Debugger
    from agent_core.functions.service import Author, FunctionService, plan
    from agent_core.functions.worker_api import OnProgress
    from agent_core.memory.agent_memory import AgentMemory
    from agent_core.memory.source_catalog import Sources
    from agent_core.runtime.agent import Agent, Origin
    from agent_core.storage import CallOwners
    from agent_core.views.styled_lines import Line
    from agent_core.workspace.state_store import WorkspaceState
    from agent_core.workspace.workspace import Workspace
else:
    plan = LateModule("agent_core.functions.service.plan")
    storage = LateModule("agent_core.storage")

ALWAYS: Final = ".*"
ALONE: Final = ""
NEVER: Final = "(?!)"
CHANGED: Final = line(
    ("warn", "It changed meanwhile, so nothing was done. Here is the new question:")
)
SourceProgress: TypeAlias = Callable[[int, int, str], None]


def read_here(file: str | None) -> str:
    """Return the text of a file on this machine; None is standard input, which must not be a terminal.

    Raises:
        UsageError: the file cannot be read, or standard input is a terminal.
    """
    if file is None and sys.stdin.isatty():
        raise UsageError(
            "There is no source.",
            fix="Give --file FILE, or --file - and the source on standard input.",
        )
    try:
        return read_named_text(file or "-")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error


def at_most_one(given: Mapping[str, bool]) -> None:
    """Check that no two options were given that exclude each other.

    Raises:
        UsageError: two or more were given; the message names them.
    """
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other.", fix="Give one of them.")


class Door:
    """The interface that a command came through: its workspace, and how to ask its user. This base asks no one."""

    at_prompt = False
    is_attended = False
    """True if a user can be asked at the terminal of this machine."""
    is_on_screen = False
    """True if the lines of the result are shown at that terminal as they are."""
    as_json = False
    """True if a script reads the document of the result."""
    agent_name = ""
    """The agent of the conversation; "" in the shell, which means the default agent."""
    line: "storage.Line | None" = None
    """The line of the conversation; None in the shell."""
    token: str | None = None
    """The id of the token of who asks, which finds no conversation that is private to another; None finds all."""
    origin: "Origin | None" = None
    """The origin of what is begun through it, if it is not the library's."""
    owners: "CallOwners" = None
    """The agents that the user may read the calls of."""

    def __init__(self, workspace: "Workspace | None" = None) -> None:
        self._workspace = workspace

    @property
    def typed(self) -> str:
        """The prefix that the user types before a verb for functions."""
        return "/" if self.at_prompt else "knapper functions "

    @property
    def workspace(self) -> "Workspace":
        """The open workspace."""
        assert self._workspace is not None
        return self._workspace

    @property
    def functions(self) -> "FunctionService":
        """Its functions."""
        return self.workspace.functions

    @property
    def author(self) -> "Author":
        """The user."""
        return plan.USER

    def state(self) -> AbstractAsyncContextManager["WorkspaceState"]:
        """Open the state on disk, with all agents in it."""
        raise NotImplementedError

    async def known(self, name: str) -> "storage.AgentName":
        """Return the name if the agent exists, or the default agent's for ""; a read-only command creates no agent."""
        raise NotImplementedError

    async def agent(self, name: str) -> "Agent":
        """Open an existing agent."""
        return await self.workspace.agent(await self.known(name))

    async def memory(self, name: str) -> "AgentMemory":
        """Return the memory of an existing agent for searching; the agent may be running elsewhere."""
        agent = await self.known(name)
        is_here = self.line is not None and storage.agent_of(self.line) == agent
        return self.workspace.memory(agent, self.line if is_here else None)

    async def sources(self, name: str) -> "Sources":
        """Return the sources of an agent."""
        return await self.workspace.sources(await self.known(name))

    def read(self, file: str | None) -> str:
        """Return the text of a file that the user named; `-` or None is standard input.

        Raises:
            UsageError: the file cannot be read, or there is no input.
        """
        return read_here(file)

    async def confirm(self, question: str, *, about: str = "", is_final: bool = False) -> bool:
        """Ask the user to confirm, with a whole `yes` if `is_final`. In the shell, the command itself is a yes.

        `about` is the digest of what the question is about; over a server, the yes is to that and to the question.
        """
        return True

    async def confirm_state(self, state: Callable[[], Awaitable[tuple[str, str]]]) -> bool:
        """Ask the user to confirm a question about something, and again if it is another one when the answer comes.

        `state` returns the question as it is now, and the digest of what it is about.
        """
        shown = await state()
        while await self.confirm(shown[0], about=shown[1]):
            now = await state()
            if now == shown:
                return True
            self.show([CHANGED])
            shown = now
        return False

    async def agrees(
        self, question: str, fix: str, lines: Sequence["Line"] = (), *, is_final: bool = False
    ) -> bool:
        """Show the lines and ask the user to confirm. If no one can be asked, the error suggests the option `fix`.

        Raises:
            UsageError: no one can be asked.
        """
        self.show(lines)
        return await self.confirm(question, is_final=is_final)

    def show(self, lines: Sequence["Line"]) -> None:
        """Show the lines that belong to a question before it is asked."""

    async def make_free(self, name: str) -> None:
        """Let go of an agent that is open here, so that the command can hold it."""

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Close the agent of the conversation while the block runs, then reopen it from disk."""
        return nullcontext()

    async def ask(self, question: str) -> str | None:
        """Return the user's answer, or None if no one can be asked or the input has ended."""
        return None

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Give the terminal to the user's editor. If there is no terminal, the error suggests `fix`."""
        raise UsageError("There is no terminal for an editor.", fix=fix)

    def debugger(self) -> "Debugger | None":
        """Return the debugger interface of this user, or None to use that of the workspace.

        Raises:
            UsageError: no one can use a debugger here.
        """
        return None

    def call_progress(self, name: str) -> AbstractContextManager["OnProgress | None"]:
        """Show that a function runs, and the progress that it reports."""
        return nullcontext()

    def source_progress(self) -> AbstractContextManager[SourceProgress]:
        """Show progress while a source is read."""
        return nullcontext(lambda *_: None)


Handler: TypeAlias = Callable[..., Coroutine[None, None, Result]]


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A slash command: its description, its arguments, and the completions for each of them.

    `typed` is the name with the arguments. `takes` lists the words and the kinds of names, such as `<function>`, for
    each position, separated by commas; `after` maps a first word to those for the second position.

    `shows` is a pattern for arguments with which the command only shows something. From a pipe, everything else needs
    an option. A command that always only shows works while a turn runs, as does one that is `in_turn`.
    `needs_user` is a pattern for arguments that require a user at a terminal, whatever the options.
    `page` names the equivalent on the server's page, if there is one. It is listed `before` another command, or last.
    Ctrl-C ends one that `is_long`.
    """

    typed: str
    says: str
    takes: str = ""
    shows: str = NEVER
    needs_user: str = NEVER
    in_turn: bool = False
    after: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    before: str = ""
    is_long: bool = False

    @property
    def name(self) -> str:
        """The command without its arguments."""
        return self.typed[1:].partition(" ")[0]

    def only_shows(self, words: str) -> bool:
        """Return whether the command only shows something with these arguments."""
        return re.fullmatch(self.shows, words) is not None

    def offers(self, before: Sequence[str]) -> Sequence[str]:
        """Return the completions for the position after these words."""
        if len(before) == 1 and before[0] in self.after:
            return self.after[before[0]].split()
        places = self.takes.split(", ")
        return places[len(before)].split() if len(before) < len(places) else ()


class _Seconds(click.FloatRange):
    """A number of seconds, which `nan` is not: it passes every comparison with a bound."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:  # Any: click's
        """Return the number."""
        seconds = float(super().convert(value, param, ctx))
        return self.fail("nan is no number of seconds.", param, ctx) if isnan(seconds) else seconds


SECONDS: Final = _Seconds(0)
TYPES: Final = {"<function>": FUNCTION, "<candidate>": FUNCTION, "<agent>": AGENT}
"""What the shell completes for each kind of word."""
_MOST_ROWS: Final = (1 << 63) - 1  # as the database can number
AgentName = Annotated[str, Word("<agent>")]
BlockLabel = Annotated[str, Word("<label>")]
SourcePlace = Annotated[str, Word("<path>", metavar="PATH|URL|-")]
CallNumber = Annotated[int, Word("", click.IntRange(1, _MOST_ROWS), "ID")]
OfAgent = Annotated[
    str,
    click.option(
        "--agent",
        default="",
        metavar="NAME",
        type=AGENT,
        help="The agent; by default, the workspace's.",
    ),
]
OfConversation = Annotated[
    str,
    click.option(
        "--conversation",
        default="",
        metavar="NAME",
        help="The conversation, by its name or id; by default, the main one.",
    ),
]
Reason = Annotated[str, click.option("--reason", default="", help="The reason, for the history.")]


def _is_file(param: click.Parameter) -> bool:
    return isinstance(param.type, click.Path)


def _is_place_of_file(param: click.Parameter) -> bool:
    return isinstance(param, click.Argument) and _is_file(param)


def _is_agent(param: click.Parameter) -> bool:
    return param.type is AGENT


class Verb(click.Command):
    """A shell command that the prompt and a server can run, too.

    `kinds` maps each argument to its kind for completion. `slash` is the name as a slash command, `at_prompt` its
    parameters there.
    """

    handler: Handler
    opens: Opens
    scopes: "Sequence[Scope]"
    kinds: Mapping[str, str]
    slash: str = ""
    entry: CommandEntry | None = None
    at_prompt: Sequence[click.Parameter] = ()
    operation: Operation | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the command, and keep them as they were typed, for a server."""
        ctx.meta[_TYPED] = [*args]
        return super().parse_args(ctx, args)

    def taken(self, typed: Sequence[str]) -> dict[str, Any]:  # Any: as the options are typed
        """Parse words into the arguments of the handler.

        Raises:
            UsageError: the words do not match the command.
        """
        try:
            values = self.make_context(self.name, [*typed]).params
        except click.ClickException as error:
            raise UsageError(error.format_message()) from error
        if values["root"] is not None:
            raise UsageError(
                "-C works only in a shell.",
                fix="Leave it out: the workspace is the one that is open.",
            )
        return {name: value for name, value in values.items() if name not in _OF_ALL}

    def files(self, typed: Sequence[str]) -> set[str]:
        """Return the files that the words name where the command takes one.

        Raises:
            UsageError: the words do not match the command.
        """
        return self._given(typed, _is_file)

    def reads_input(self, typed: Sequence[str]) -> bool:
        """Return whether the words mean standard input: by a `-`, or because the FILE of the command is left out.

        Raises:
            UsageError: the words do not match the command.
        """
        files = self._given(typed, _is_file)
        if "-" in files or "-" in typed:
            return True
        return not files and any(map(_is_place_of_file, self.params))

    def agents(self, typed: Sequence[str]) -> set[str]:
        """Return the agents that the words name where the command takes one.

        Raises:
            UsageError: the words do not match the command.
        """
        return self._given(typed, _is_agent)

    def _given(self, typed: Sequence[str], is_meant: Callable[[click.Parameter], bool]) -> set[str]:
        values = self.taken(typed)
        texts = set[str]()
        for param in filter(is_meant, self.params):
            value = values.get(param.name or "")
            if value is not None:
                texts.add(str(value))
        return texts

    def from_prompt(self, words: str) -> list[str]:
        """Convert prompt words to shell words; the last parameter takes the rest of the line."""
        texts = (
            [text.strip() for text in words.split(" ", len(self.at_prompt) - 1)]
            if self.at_prompt
            else []
        )
        pairs = [(place, text) for place, text in zip(self.at_prompt, texts, strict=False) if text]
        options = [
            f"{max(place.opts, key=len)}={text}"
            for place, text in pairs
            if isinstance(place, click.Option)
        ]
        return [
            *options,
            "--",
            *(text for place, text in pairs if isinstance(place, click.Argument)),
        ]


class Shell(Protocol):
    """Where a verb is typed as a shell command. It is the object of click's outermost context."""

    def run(
        self,
        context: CliContext,
        verb: Verb,
        arguments: Mapping[str, Any],
        words: Sequence[str],  # Any: as the handler takes them
    ) -> int:
        """Open what a verb needs, or ask the server, show the result, and return the exit code.

        `words` are the whole command, without the program's name.
        """


def verb(
    group: click.Group | None = None,
    name: str = "",
    *,
    opens: Opens = Opens.WORKSPACE,
    scopes: "Sequence[Scope]" = (),
) -> Callable[[Handler], Verb]:
    """Turn a handler into a command: its parameters become arguments, except options of decorators below this one.

    It is named as the handler, unless there is a `name`. A token needs one of the `scopes` to run it over a server;
    without any, it does not work there.
    """

    def decorate(handler: Handler) -> Verb:
        def run(context: CliContext, **arguments: Any) -> int:
            current = click.get_current_context()
            words = [*current.command_path.split()[1:], *current.meta[_TYPED]]
            shell: Shell = current.obj
            return shell.run(context, command, arguments, words)

        run.__name__, run.__doc__ = getattr(handler, "__name__", ""), handler.__doc__
        kinds = _add_arguments(handler)
        own = getattr(handler, "__click_params__", [])
        callback = workspace_command(
            run, [name for option in own for name in option.opts], over_server=bool(scopes)
        )
        vars(callback)["__click_params__"] += own
        command = click.command(name or run.__name__.strip("_").replace("_", "-"), cls=Verb)(
            callback
        )
        command.handler, command.opens, command.scopes, command.kinds = (
            handler,
            opens,
            scopes,
            kinds,
        )
        if group is not None:
            group.add_command(command)
        return command

    return decorate


def gone_flag(flag: str) -> Callable[[Handler], Handler]:
    """Let a command take a flag that went: it is told, and changes nothing."""

    def tell(context: click.Context, _: click.Parameter, value: Any) -> None:  # Any: click's
        if value:
            warn_of_gone(flag, context.command_path)

    return click.option(flag, is_flag=True, hidden=True, expose_value=False, callback=tell)


def slash(
    typed: str, says: str = "", *, last: str = "", **entry: Any
) -> Callable[[Verb], Verb]:  # Any: its fields
    """Make a verb a slash command, too. Without a description (`says`), it is a two-word form of another one.

    At the prompt its arguments are typed in order, followed by the option `last`. A verb that only reads only shows.
    """

    def decorate(verb: Verb) -> Verb:
        arguments = [param for param in verb.params if isinstance(param, click.Argument)]
        verb.slash = typed.partition(" ")[0] if says else typed
        verb.at_prompt = [*arguments, *(param for param in verb.params if param.name == last)]
        if says:
            names = [
                (param.metavar or (param.name or "").upper(), param.required)
                for param in verb.at_prompt
            ]
            usage = (
                ""
                if " " in typed
                else " ".join(name if required else f"[{name}]" for name, required in names)
            )
            takes = ", ".join(verb.kinds.get(param.name or "", "") for param in arguments)
            shows = ALWAYS if verb.opens is Opens.READABLE else NEVER
            verb.entry = CommandEntry(
                f"/{typed} {usage}".rstrip(), says, **{"takes": takes, "shows": shows} | entry
            )
        return verb

    return decorate


def _add_arguments(handler: Handler) -> dict[str, str]:
    """Add click parameters for those that no decorator added, and return the completion kind of each argument."""
    own: list[click.Parameter] = vars(handler).setdefault("__click_params__", [])
    kinds: dict[str, str] = {}
    options, arguments = list[click.Parameter](), list[click.Parameter]()
    for each in [*inspect.signature(handler).parameters.values()][1:]:
        if each.kind is each.VAR_KEYWORD or any(param.name == each.name for param in own):
            continue
        about: tuple[Any, ...] = getattr(
            each.annotation, "__metadata__", ()
        )  # Any: a word, or a decorator of click
        word = about[0] if about else Word()
        if isinstance(word, Word):
            kinds[each.name] = word.kind
            given = {} if each.default is each.empty else {"default": each.default}
            kind = word.type or TYPES.get(word.kind)
            arguments.append(click.Argument([each.name], type=kind, metavar=word.metavar, **given))
        else:
            word(handler)
            options.append(own.pop())
    own[:] = [*options[::-1], *own, *arguments[::-1]]
    return kinds


_OF_ALL: Final = ("as_json", "root", "debug")
_TYPED: Final = "agent_core.typed"
