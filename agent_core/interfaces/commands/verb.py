"""A verb, defined once: its signature is the command of the shell and the form that the prompt takes.

In the shell it is a command of click, for which `opened` opens the workspace; at the prompt, its handler works on what
the conversation has open; over a server, on what that has open, if a token has the `scope`.
"""

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import click
from click.core import ParameterSource

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import read_named_text

from ..cli_context import AGENT, FUNCTION, CliContext, loading, workspace_command

if TYPE_CHECKING:  # `knapper --help` must not load a workspace
    from agent_core.functions.debug import Debugger
    from agent_core.functions.service import FunctionService
    from agent_core.memory.agent_memory import AgentMemory
    from agent_core.memory.source_catalog import Sources
    from agent_core.runtime.agent import Agent
    from agent_core.storage import CallOwners
    from agent_core.workspace.workspace import Workspace

    from ..server.identity import Scope
    from ..spans import Line, Table
    from ..state import WorkspaceState

SourceProgress: TypeAlias = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command: a document for scripts, lines for people, and the exit code.

    A document of None and no lines print nothing. `aside` belongs to standard error, as `hint` does, which only people
    get. At the prompt the source is colored, and the table is there to be looked through in place of the lines.
    """

    document: Any  # Any: a JSON document of a published shape
    lines: Sequence["Line"] = ()
    hint: str = ""
    code: int = 0
    aside: Sequence["Line"] = ()
    source: tuple[str, int, Sequence[int]] | None = None
    table: "Table | None" = None


def read_here(file: str | None) -> str:
    """Return the text of a file of this machine; None is standard input, at which nobody is waited for.

    Raises:
        UsageError: it cannot be read, or nobody types it.
    """
    if file is None and sys.stdin.isatty():
        raise UsageError("There is no source.", fix="Give --file FILE, or --file - and the source on standard input.")
    try:
        return read_named_text(file or "-")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error


class Door:
    """The way by which a command came in: what it works on, and how it asks its user. Here nobody can be asked."""

    at_prompt = False
    agent_name = ""
    """The agent that is talked to; "" in the shell, where the usual one is meant."""
    owners: "CallOwners" = None
    """The agents whose calls may be read."""

    def __init__(self, workspace: "Workspace | None" = None) -> None:
        self._workspace = workspace

    @property
    def typed(self) -> str:
        """The words before a verb of functions, as the user types them."""
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

    def state(self) -> AbstractAsyncContextManager["WorkspaceState"]:
        """Open the state on disk, with all agents in it."""
        raise NotImplementedError

    async def known(self, name: str) -> str:
        """Return the name of an agent that exists, or the usual one: a command that only looks creates nothing."""
        raise NotImplementedError

    async def agent(self, name: str) -> "Agent":
        """Return an agent that exists."""
        return await self.workspace.agent(await self.known(name))

    async def memory(self, name: str) -> "AgentMemory":
        """Return what an agent that exists remembers, to search it; the agent may be running elsewhere."""
        return self.workspace.memory(await self.known(name))

    async def sources(self, name: str) -> "Sources":
        """Return the sources of an agent."""
        return await self.workspace.sources(await self.known(name))

    def read(self, file: str | None) -> str:
        """Return the text of a file that the user named; `-`, or None, is standard input.

        Raises:
            UsageError: it cannot be read, or nobody types it.
        """
        return read_here(file)

    async def confirm(self, question: str, *, is_final: bool = False) -> bool:
        """Ask for a yes, by the whole word if the deed cannot be undone. In the shell, the command itself is a yes."""
        return True

    async def agrees(self, question: str, fix: str, lines: Sequence["Line"] = (), *, is_final: bool = False) -> bool:
        """Ask for a yes below these lines. Where nobody can be asked, the error suggests `fix`: an option that agrees.

        Raises:
            UsageError: nobody can be asked.
        """
        self.show(lines)
        return await self.confirm(question, is_final=is_final)

    def show(self, lines: Sequence["Line"]) -> None:
        """Show what belongs to a question, before it is asked."""

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Close the agent that is talked to while the block runs; it goes on with what is on disk then."""
        return nullcontext()

    async def ask(self, question: str) -> str | None:
        """Return what the user types, or None if nobody can be asked or nothing more comes."""
        return None

    def editor(self, fix: str) -> AbstractAsyncContextManager[None]:
        """Give the terminal to the user's editor. Where there is none, the error suggests `fix`."""
        raise UsageError("There is no terminal for an editor.", fix=fix)

    def debugger(self) -> "Debugger | None":
        """Return the user at the debugger, None for that of the workspace.

        Raises:
            UsageError: nobody can sit there.
        """
        return None

    def source_progress(self) -> AbstractContextManager[SourceProgress]:
        """Show how far a source is read."""
        return nullcontext(lambda *_: None)


Handler: TypeAlias = Callable[..., Awaitable[Result]]


class Opens(Enum):
    """The needs of a command: a workspace; one that may be read-only; one that asks about grants; any, if need be
    empty; nothing.
    """

    WORKSPACE = auto()
    READABLE = auto()
    ASKING = auto()
    MACHINE = auto()
    NOTHING = auto()


ALWAYS, ALONE, NEVER = ".*", "", "(?!)"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A slash command: what it does, its arguments, and what can stand at each position after it.

    `typed` is its name with its arguments. `takes` has for each place, with a comma between them, the
    words and kinds of names, such as `<function>`; `after` those of the second place after one word at the first.

    `shows` is the form of the words with which it only shows something: from a pipe no more is done without an option.
    One that always does so works while a turn runs, and so does one that is `in_turn`.
    `needs_user` is the form of those with which it works only for a user at a terminal, whatever option is given.
    `page` says where the server's page has the same, if it has.
    """

    typed: str
    says: str
    takes: str = ""
    shows: str = NEVER
    needs_user: str = NEVER
    in_turn: bool = False
    after: Mapping[str, str] = field(default_factory=dict)
    page: str = ""

    @property
    def name(self) -> str:
        """The command without its arguments."""
        return self.typed[1:].partition(" ")[0]

    def only_shows(self, words: str) -> bool:
        """Return whether it only shows something with these words."""
        return re.fullmatch(self.shows, words) is not None

    def offers(self, before: Sequence[str]) -> Sequence[str]:
        """Return what can stand at the position after these words."""
        if len(before) == 1 and before[0] in self.after:
            return self.after[before[0]].split()
        places = self.takes.split(", ")
        return places[len(before)].split() if len(before) < len(places) else ()


@dataclass(frozen=True, slots=True)
class Word:
    """An argument as it is typed: the kind that the prompt completes, the type for the shell, and its name in help."""

    kind: str = ""
    type: click.ParamType[Any] | None = None  # Any: click's own
    metavar: str | None = None


FunctionName = Annotated[str, Word("<function>", FUNCTION)]
CandidateName = Annotated[str, Word("<candidate>", FUNCTION)]
VersionRef = Annotated[str, Word("<version>")]
AgentName = Annotated[str, Word("<agent>", AGENT)]
BlockLabel = Annotated[str, Word("<label>")]
SourcePlace = Annotated[str, Word("<path>", metavar="PATH|URL|-")]
CallNumber = Annotated[int, Word("", click.IntRange(1), "ID")]
OfAgent = Annotated[
    str,
    click.option("--agent", default="", metavar="NAME", type=AGENT, help="The agent; by default, the workspace's."),
]
Reason = Annotated[str, click.option("--reason", default="", help="The reason, for the history.")]


class Verb(click.Command):
    """A command of the shell that the prompt and a server run, too.

    `kinds` has what the prompt completes for each argument. As a slash command it is `slash`, typed with what is
    `at_prompt`.
    """

    handler: Handler
    opens: Opens
    scope: "Scope | None"
    kinds: Mapping[str, str]
    slash: str = ""
    entry: CommandEntry | None = None
    at_prompt: Sequence[click.Parameter] = ()

    def taken(self, typed: Sequence[str]) -> dict[str, Any]:  # Any: as the options are typed
        """Return the arguments of the handler.

        Raises:
            UsageError: they do not fit.
        """
        try:
            values = self.make_context(self.name, [*typed]).params
        except click.ClickException as error:
            raise UsageError(error.format_message()) from error
        return {name: value for name, value in values.items() if name not in _OF_ALL}

    def from_prompt(self, words: str) -> list[str]:
        """Return words of the prompt as the shell takes them: the last place takes all that is left."""
        texts = [text.strip() for text in words.split(" ", len(self.at_prompt) - 1)] if self.at_prompt else []
        pairs = [(place, text) for place, text in zip(self.at_prompt, texts, strict=False) if text]
        options = [f"{max(place.opts, key=len)}={text}" for place, text in pairs if isinstance(place, click.Option)]
        return [*options, "--", *(text for place, text in pairs if isinstance(place, click.Argument))]


def verb(
    group: click.Group | None = None,
    *,
    opens: Opens = Opens.WORKSPACE,
    scope: "Scope | None" = None,
) -> Callable[[Handler], Verb]:
    """Make a command of a handler: its parameters are arguments, but for the options of decorators below this one.

    `scope` is what a token needs to run it over a server.
    """

    def decorate(handler: Handler) -> Verb:
        def run(context: CliContext, **arguments: Any) -> int:
            if context.server:
                from ..remote import run_command

                return run_command(context, typed_words(click.get_current_context()))
            with loading():
                from ..shell_door import carry_out

            return carry_out(context, opens, lambda door: handler(door, **arguments))

        run.__name__, run.__doc__ = getattr(handler, "__name__", ""), handler.__doc__
        kinds = _add_arguments(handler)
        own = getattr(handler, "__click_params__", [])
        callback = workspace_command(run, [name for option in own for name in option.opts], over_server=bool(scope))
        vars(callback)["__click_params__"] += own
        command = click.command(run.__name__.strip("_").replace("_", "-"), cls=Verb)(callback)
        command.handler, command.opens, command.scope, command.kinds = handler, opens, scope, kinds
        if group is not None:
            group.add_command(command)
        return command

    return decorate


def slash(typed: str, says: str = "", *, last: str = "", **entry: Any) -> Callable[[Verb], Verb]:  # Any: its fields
    """Make a verb a slash command, too, with an entry; or, if nothing says what it does, a form of one, as two words.

    There its arguments are typed in order, and the option `last` as the last of them. If it only reads, it only shows.
    """

    def decorate(verb: Verb) -> Verb:
        arguments = [param for param in verb.params if isinstance(param, click.Argument)]
        verb.slash = typed.partition(" ")[0] if says else typed
        verb.at_prompt = [*arguments, *(param for param in verb.params if param.name == last)]
        if says:
            usage = "" if " " in typed else " ".join(_usage_of(param) for param in verb.at_prompt)
            takes = ", ".join(verb.kinds.get(param.name or "", "") for param in arguments)
            shows = ALWAYS if verb.opens is Opens.READABLE else NEVER
            verb.entry = CommandEntry(f"/{typed} {usage}".rstrip(), says, **{"takes": takes, "shows": shows} | entry)
        return verb

    return decorate


def _usage_of(param: click.Parameter) -> str:
    name = param.metavar or (param.name or "").upper()
    return name if param.required else f"[{name}]"


def _add_arguments(handler: Handler) -> dict[str, str]:
    """Add the parameters of a handler that no decorator added, and return what the prompt completes for each."""
    own: list[click.Parameter] = vars(handler).setdefault("__click_params__", [])
    kinds: dict[str, str] = {}
    options, arguments = list[click.Parameter](), list[click.Parameter]()
    for each in [*inspect.signature(handler).parameters.values()][1:]:
        if each.kind is each.VAR_KEYWORD or any(param.name == each.name for param in own):
            continue
        about: tuple[Any, ...] = getattr(each.annotation, "__metadata__", ())  # Any: a word, or a decorator of click
        word = about[0] if about else Word()
        if isinstance(word, Word):
            kinds[each.name] = word.kind
            given = {} if each.default is each.empty else {"default": each.default}
            arguments.append(click.Argument([each.name], type=word.type, metavar=word.metavar, **given))
        else:
            word(handler)
            options.append(own.pop())
    own[:] = [*options[::-1], *own, *arguments[::-1]]
    return kinds


def typed_words(context: click.Context) -> list[str]:
    """Return a command as it was typed, without the options that every command takes."""
    options: list[str] = []
    places: list[str] = []
    for param in context.command.params:
        name = param.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name in _OF_ALL:
            continue
        value = context.params[name]
        values = [str(item) for item in value] if isinstance(value, tuple) else [str(value)]
        if isinstance(param, click.Argument):
            places += values
        elif isinstance(param, click.Option) and param.is_flag:
            options.append(param.opts[0])
        else:
            options += [f"{max(param.opts, key=len)}={item}" for item in values]
    return [*context.command_path.split()[1:], *options, "--", *places]


_OF_ALL: Final = ("as_json", "root", "debug")
