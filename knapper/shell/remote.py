"""`knapper --server URL …`: commands and turns in a workspace that a server has open. Slow to import."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import fields, replace
from typing import Any, Final

from agent_core.access.grants import Approver, Question
from agent_core.api.identity import ApiRefusal
from agent_core.api.workspace_operations import NEEDS_TEXT, NEEDS_YES
from agent_core.base import events
from agent_core.base.errors import KnapperError, UnknownName, UsageError
from agent_core.base.gone import gone_command
from agent_core.base.own_environment import environment
from agent_core.base.pictures import PictureFile
from agent_core.base.settings import TOKEN
from agent_core.base.untrusted import one_line
from agent_core.client.client import NO_SERVER, Client, ConnectionLost, HttpWire, of_knapper
from agent_core.operations import views
from agent_core.operations.attachments import as_sent
from agent_core.operations.catalog import (
    BY_NAME,
    GROUPS,
    check_message,
    check_source,
    group,
    needed,
    suggestion,
    verb_of,
)
from agent_core.operations.command_context import CliContext
from agent_core.operations.commands.operated import LOOKS
from agent_core.operations.verb import Door, Verb, read_here
from agent_core.registry.answer_shapes import AnswerShape
from agent_core.storage import MAIN, NAME_CHARS
from agent_core.views.call_log import CallLog
from agent_core.views.faults import fault_lines
from agent_core.views.result import Result
from agent_core.views.styled_lines import ROLES, explained, line, screen_columns, warned, write
from agent_core.workspace.conversations import NEW
from knapper.prompt.plain import MARK, Typed, ctrl_c
from knapper.prompt.run_options import RunOptions
from knapper.prompt.slash_shell import OF_SHELL, shell_words
from knapper.prompt.ui import JsonLines, Listener, PlainText, ShapedText, Voice
from knapper.terminal.deciding import decide, is_attended
from sandbox.wire.lines import bare_lines

from .shell_door import print_result

_OWN: Final = ("retry", "pop", "new", "open", "branch", "name", "help", "exit")
_NOT_HERE: Final = "It does not work over a server; /help lists what does."
NOWHERE: Final[Mapping[str, str]] = {}
_MOST_TRIES: Final = 12  # for one command: each try adds one text or a yes
_BAD_REQUEST: Final = 400
_OTHER_SHAPE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    SyntaxError,
    TypeError,
    ValueError,
)


@asynccontextmanager
async def connected(context: CliContext) -> AsyncIterator[Client]:
    """Provide a client of the named server, with the token from the option or the environment.

    Raises:
        UsageError: this is no address, or the server rejected a request as invalid.
    """
    try:
        async with Client(
            HttpWire(context.server, context.token or environment().get(TOKEN, ""))
        ) as client:
            yield client
    except ApiRefusal as error:
        if error.status != _BAD_REQUEST and error.code != UnknownName.code:
            raise
        misused = UsageError(error.message, fix=error.fix)
        misused.code = error.code
        raise misused from error


def run_command(context: CliContext, words: Sequence[str]) -> int:
    """Run a command on the server, print its output, and return its exit code."""

    async def run() -> Result:
        async with connected(context) as client:
            return await carried_out(client, words)

    return print_result(context, asyncio.run(run()))


async def carried_out(
    client: Client,
    words: Sequence[str],
    voice: Voice | None = None,
    place: Mapping[str, str] = NOWHERE,
) -> Result:
    """Run a command on the server. Read the files that it names on this machine and ask questions with the `voice`.

    Raises:
        ApiRefusal: the server refused the command.
    """
    verb = verb_of(words[0], words[1])
    if verb is not None and verb.operation is not None and not (verb.operation.asks and voice):
        return await _ask(client, verb, verb.taken(words[2:]), at_prompt=voice is not None)
    texts: dict[str, str] = {}
    yes = ""
    for _ in range(_MOST_TRIES):
        at_prompt = voice is not None
        try:
            shown = await client.command(words, texts, **place, at_prompt=at_prompt, yes=yes)
            with _reading_document():
                return _result(shown)
        except ApiRefusal as refused:
            if refused.code == NEEDS_TEXT:
                name = _asked_for(refused, words)
                texts[name] = read_here(None if name == "-" else name)
            elif refused.code == NEEDS_YES and voice is not None:
                is_final = any(problem.get("is_final") for problem in refused.problems)
                above, _, question = refused.message.rpartition("\n")
                voice.aloud([line(row) for row in bare_lines(above)])
                if not await voice.confirm(question, is_final=is_final):
                    return Result(None, hint="Nothing was changed.")
                yes = next((str(problem.get("digest", "")) for problem in refused.problems), "")
            else:
                raise
    raise UsageError("The server keeps asking for more.", fix="Check that it is a Knapper server.")


async def _ask(client: Client, verb: Verb, typed: dict[str, Any], *, at_prompt: bool) -> Result:
    """Ask the server for an operation, and return what is shown of its result here."""
    assert verb.operation is not None
    gives = verb.operation.gives
    looks = [name for name in LOOKS.get(gives, ()) if typed.pop(name)]
    document = await client.functions.run(verb.operation, **typed)
    door = Door()
    door.at_prompt = at_prompt
    with _reading_document():
        result = views.view(views.read(gives, document), door, *looks)
        table = result.table.lines() if result.table is not None else ()
        shown = _lines([*result.lines, *table])
        return replace(result, document=document, lines=shown, aside=_lines(result.aside))


@contextmanager
def _reading_document() -> Iterator[None]:
    """Report a document that cannot be shown: whoever answers may be no Knapper server, and send anything.

    Raises:
        ConnectionLost: it has another shape.
    """
    try:
        yield
    except _OTHER_SHAPE as error:
        fix = f"Its document has another shape: {one_line(str(error))}."
        raise ConnectionLost(NO_SERVER, fix=fix) from error


def _result(shown: dict[str, Any]) -> Result:  # Any: JSON
    source = shown.get("source")
    return Result(
        shown["document"],
        _lines(shown["lines"]),
        str(shown["hint"]),
        int(shown["code"]),
        _lines(shown["aside"]),
        (str(source["text"]), int(source["first"]), [int(row) for row in source["marked"]])
        if source
        else None,
    )


def _asked_for(refusal: ApiRefusal, words: Sequence[str]) -> str:
    """Return the file that the server needs: standard input, or what the user typed where the command takes a file."""
    name = str(refusal.problems[0].get("file", "")) if refusal.problems else ""
    verb = verb_of(words[0], words[1])
    typed = words[2:]
    is_named = verb is not None and name in verb.files(typed)
    is_input = verb is not None and name == "-" and verb.reads_input(typed)
    if not (is_named or is_input):
        raise UsageError(
            "The server asked for a file that you did not name.", fix="Do not trust this server."
        )
    return name


def _lines(rows: Any) -> list[Any]:  # Any: JSON
    return [line(*((ROLES[role], str(text)) for role, text in row)) for row in rows]


class RemoteTalk:
    """A conversation with an agent on a server: turns, and the commands that work remotely."""

    def __init__(
        self,
        client: Client,
        agent: str,
        voice: Voice,
        approver: Approver | None,
        conversation: str = MAIN,
    ) -> None:
        self._client = client
        self._place = {"agent": agent, "conversation": conversation}
        self._voice = voice
        self._approver = approver
        self._log = CallLog()
        self.failed = self.left = False
        self.stoppable = False  # True while a turn is shown

    async def take(self, text: str, listener: Listener | None = None) -> None:
        """Run a command or a turn. Errors are shown and do not end the conversation."""
        try:
            if text.startswith("/") and not text.startswith("//") and listener is None:
                await self._command(as_sent(text[1:]))
            else:
                if self._voice.is_attended and not text.startswith("//"):
                    check_message(text, _NOT_HERE)
                sent = text.removeprefix("/") if text.startswith("//") else text
                await self.turn(as_sent(sent) if self._voice.is_attended else sent, listener)
        except KnapperError as error:
            self.failed = True
            self._voice.lines(fault_lines(error.message, error.fix))

    async def turn(
        self,
        text: str,
        listener: Listener | None = None,
        shape: AnswerShape | None = None,
        pictures: Sequence[PictureFile] = (),
    ) -> None:
        """Send a message and show the turn that processes it; its reply has the `shape`, if there is one."""
        result = shape and shape.schema
        turn = self._client.turn(text, **self._place, result=result, pictures=pictures)
        await self._show_turn(turn, listener)

    async def interrupt(self) -> None:
        """End the running turn."""
        with suppress(KnapperError):  # the event stream shows the outcome
            await self._client.interrupt(**self._place)

    async def _show_turn(
        self,
        turn: Any,
        listener: Listener | None,  # Any: an asynchronous generator of events
    ) -> None:
        heard, reason = listener or self._voice.listener(self._log), ""
        self.stoppable = True
        try:
            async with aclosing(turn):
                async for event in turn:
                    heard.hear(event)
                    if isinstance(event, events.GrantAsked) and self._approver is not None:
                        await self._answer(event.question, self._approver)
                    reason = event.reason if isinstance(event, events.TurnEnded) else reason
        finally:
            self.stoppable = False
        self.failed |= reason not in ("replied", "parked", "client_calls", "handed_off")

    async def _answer(self, id: str, approver: Approver) -> None:
        rows = await self._client.approvals()
        with _reading_document():
            asked = [
                Question.from_json({field.name: row[field.name] for field in fields(Question)})
                for row in rows
                if row["id"] == id
            ]
        if not asked:
            return  # another client has answered it
        decision = await approver(asked[0])
        try:
            await self._client.answer(id, decision.answer, decision.word, wide=decision.is_wide)
        except ApiRefusal as error:
            self._voice.aloud(fault_lines(error.message, error.fix))

    async def _command(self, typed: str) -> None:
        name, _, words = typed.strip().partition(" ")
        check_source(name, words, is_trusted=self._voice.is_trusted)
        match name:
            case "exit":
                self.left = True
            case "help":
                entries = [
                    entry
                    for kind in GROUPS
                    for entry in group(kind)
                    if entry.name in (*_OWN, *OF_SHELL)
                ]
                self._voice.lines(
                    explained([(entry.typed, entry.says) for entry in entries], screen_columns())
                )
            case "retry":
                posted = await self._client.retry(**self._place)
                await self._show_turn(self._client.follow(posted, **self._place), None)
            case "pop":
                text = await self._client.pop(**self._place)
                self._voice.lines(
                    [line(("dim", "There is no turn." if text is None else f"removed: {text}"))]
                )
            case "new" | "open" | "branch" | "name":
                await self._move(name, words.strip())
            case _:
                await self._run(name, words.strip())

    async def _move(self, name: str, words: str) -> None:
        """Begin, open, branch or name a conversation, and go on in it."""
        agent = self._place["agent"]
        left = self._place["conversation"]
        match name:
            case "new":
                row = await self._client.begin_conversation(words, agent)
            case "open":
                row = await self._client.conversation(needed(words, "open"), agent)
            case "name":
                row = await self._client.rename_conversation(left, needed(words, "name"), agent)
            case _:
                typed = ["conversations", "branch", left, "--at", words]
                shown = await self._client.command(typed, agent=agent, conversation=left)
                row = of_knapper(shown["document"], "id", "name")
        self._place["conversation"] = str(row["id"])
        called = one_line(str(row["name"] or row["id"]), NAME_CHARS)
        back = "" if row["id"] == left else f"/open {left} goes back"
        self._voice.lines([line(("ok", "✓ "), f"In the conversation {called}. ", ("dim", back))])

    async def _run(self, name: str, words: str) -> None:
        gone = gone_command(name, words)
        if gone is not None:
            self._voice.lines(warned(gone))
            return
        if name not in BY_NAME:
            raise UsageError(f"There is no command /{name}.", fix=suggestion(name))
        command = shell_words(name, words)
        if command is None:
            raise UsageError(f"/{name} does not work over a server.")
        shown = await carried_out(self._client, command, self._voice, self._place)
        self.failed |= shown.code != 0
        hint = [line(("dim", shown.hint))] if shown.hint else []
        self._voice.lines([*shown.lines, *shown.aside, *hint])
        if shown.source is not None:
            self._voice.source(*shown.source)


async def _opened(client: Client, agent: str, conversation: str) -> str:
    """Return the id of the conversation to go on with; `new` begins one."""
    if conversation == MAIN:
        return MAIN
    if conversation == NEW:
        return str((await client.begin_conversation(agent=agent))["id"])
    return str((await client.conversation(conversation, agent))["id"])


async def talk_over(context: CliContext, options: RunOptions) -> bool:
    """Run one turn, or one for each typed line. Return whether all ended with a reply."""
    typed = Typed()
    is_attended_here = sys.stdin.isatty() and options.message is None
    asks_here = decide if is_attended() and not options.as_json else None
    voice = Voice(typed if is_attended_here else None, asks_here, agrees=options.yes)
    approver = None if options.approve == "deny" else voice.approver
    listener: Listener | None = JsonLines() if options.as_json else None
    async with connected(context) as client:
        voice.agent = agent = options.agent or str((await client.status())["agent"])
        own = await _opened(client, agent, options.conversation)
        conversation = RemoteTalk(client, agent, voice, approver, own)
        async with asyncio.TaskGroup() as group:
            if options.message is not None:
                with ctrl_c(group, conversation):
                    shape = options.shape
                    plain = PlainText(CallLog())
                    if shape is not None:
                        plain = ShapedText(CallLog(), shape)
                    heard = listener or plain
                    await conversation.turn(options.message, heard, shape, options.pictures)
                return not conversation.failed
            if is_attended_here:
                told = f"{agent} at {context.server}; /help lists the commands, Ctrl-D leaves"
                write([line(("dim", told))], sys.stderr)
            with typed.reading(), ctrl_c(group, conversation, typed):
                while not conversation.left and (text := await typed.line(MARK)) is not None:
                    await conversation.take(text, listener)
        return not conversation.failed
