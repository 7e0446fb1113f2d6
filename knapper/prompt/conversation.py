"""A conversation with one agent: its turns and slash commands.

The prompt and the plain mode use the same class with different voices.
"""

import asyncio
import sys
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.access.grants import Approver, Decision, Grants, Question
from agent_core.access.grants.book import checked
from agent_core.access.secrets import Secrets
from agent_core.base import machine
from agent_core.base.errors import (
    AgentBusy,
    KnapperError,
    LostLease,
    StorageError,
    Unavailable,
    UsageError,
    WorkspaceError,
)
from agent_core.base.events import (
    CallAnswered,
    CallStopped,
    Event,
    FunctionsChanged,
    MessageAdded,
    TurnEnded,
    TurnStarted,
    Usage,
)
from agent_core.base.messages import SEND, Answer, Message, Notice, User
from agent_core.base.pictures import PictureFile
from agent_core.base.plain_files import read_named
from agent_core.base.receipt import TOUCHED, Receipt
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import one_line
from agent_core.functions.answers import CallReport
from agent_core.operations.attachments import headline
from agent_core.operations.spending import Spending
from agent_core.runtime.agent import TAKEN_OVER, UNANSWERED, Agent, Origin
from agent_core.runtime.session import GO_ON
from agent_core.runtime.shared_debugger import end_breakpoints, tell_breakpoints
from agent_core.runtime.taken_up import JOB, PIPE
from agent_core.runtime.turn import Interrupted, Interruption
from agent_core.storage import MAIN, STATE, line_of
from agent_core.storage.picture_files import PictureFiles
from agent_core.views.agent_view import behind_lines
from agent_core.views.call_log import (
    CallLog,
    changed_lines,
    from_words,
    is_own,
    is_speech,
    stopped_lines,
)
from agent_core.views.faults import crash_line, fault_lines, innermost, traced, turn_fault
from agent_core.views.styled_lines import Line, counted, line, warned
from agent_core.workspace.runner import Front, Runner
from agent_core.workspace.workspace import Workspace
from sandbox.wire.strict_json import Malformed, read_toml

from .run_options import RunOptions
from .ui import Listener, Voice

if TYPE_CHECKING:
    from agent_core.registry.answer_shapes import AnswerShape

_UNANSWERED: Final = (
    "/retry sends it again; /pop takes it back. Else the model reads it with your next message."
)
_MESSAGE_CHARS: Final = 300  # of a message that was typed elsewhere
_MADE_S: Final = 5.0  # until the file of a function is seen that another window made
_QUIET_S: Final = 0.5  # time before a running command is shown

RunCommand = Callable[["Conversation", str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SentLine:
    """A line that was sent to a running turn: what was typed, and the shell commands' output that went along."""

    typed: str
    ran: Sequence[str]


@dataclass(slots=True)
class MadeElsewhere:
    """The functions that a turn of another window has just made, as this one shows: their files are no news then."""

    _made: dict[str, float] = field(default_factory=dict)  # when that was shown, by name

    def hear(self, event: CallAnswered) -> None:
        """Note what a call made."""
        name = event.detail.get("name")
        if event.detail.get("admitted") and isinstance(name, str):
            self._made[name] = time.monotonic()

    def covers(self, changed: FunctionsChanged) -> bool:
        """Return whether a change of files is no more than that; each is meant once, and soon."""
        names = {*changed.loaded, *changed.changed}
        since = time.monotonic() - _MADE_S
        is_known = all(self._made.pop(name, since) > since for name in names)
        return bool(names) and is_known and not (changed.removed or changed.rejected)


class Conversation:
    """A conversation: it processes the user's input and records what was shown.

    `run_command` runs a command that was typed during a turn, after the turn has ended.
    """

    def __init__(
        self,
        workspace: Workspace,
        agent: Agent,
        voice: Voice,
        run_command: RunCommand | None = None,
    ) -> None:
        self._run_command = run_command
        self.workspace = workspace
        self.agent = agent
        self.voice = voice
        voice.agent = agent.name
        voice.secrets = Secrets(workspace.root)
        self.log = CallLog(is_full=workspace.settings.repl.show == "full")
        self.log.pictures = PictureFiles(workspace.root / STATE)
        self.began = time.time()
        self._made = MadeElsewhere()
        self._step_here()
        self.touched: dict[str, None] = {}
        """Names of functions and helpers that may have been changed in this session."""
        self.spending = Spending(workspace.root, workspace.settings.models)
        self.busy = False
        self.left = False
        self.failed = False
        self.ran: list[str] = []
        """Shell commands that the user ran since the last message, with their output; sent with the next message."""
        self.pictures: list[PictureFile] = []
        """The pictures that are sent with the next message."""
        self.results: dict[str, CallReport] = {}
        """Results of calls that the user typed, by name; `_` is the last one."""
        self.tried: tuple[str, int] | None = None
        """The function that the user called last, and the number of model calls before it."""
        self.later: list[str] = []
        """Commands that were typed during a turn and wait for its end."""
        self.waits: dict[str, SentLine] = {}
        """The messages from here, by id, that no turn has taken up as far as is known, the last one last."""
        self._runner: Runner | None = None
        self._is_begun = False  # whether the user was told what was found
        self.on_pause: Callable[[], None] = _nothing
        self.has_sent = False  # whether a turn has sent a message to another agent
        self._command: Interruption | None = None
        self._ending: asyncio.Future[None] | None = None  # of a turn that was taken over
        self._held: list[FunctionsChanged] | None = None
        self._saved_by = "outside"
        self.commanded = ""  # the running command, as typed

    def _step_here(self) -> None:
        """Have what stops at breakpoints of this window in other processes stepped here."""
        if self.voice.debugger is not None:
            self.agent.step_with(self.workspace.debugging.window, self.voice.debugger)

    async def tell_breakpoints(self) -> None:
        """Tell other windows which breakpoints are set here."""
        snapshot = self.workspace.functions.registry.snapshot()
        await tell_breakpoints(self.workspace.debugging, self.workspace.store, snapshot)

    def touch(self, names: Iterable[str]) -> None:
        """Record that functions or helpers with these names may have changed."""
        self.touched |= dict.fromkeys(names)

    @property
    def stoppable(self) -> bool:
        """True if a turn or command is running that `interrupt` can end."""
        return self.busy or self._command is not None

    @property
    def is_paused(self) -> bool:
        """True if everything is paused that runs by itself."""
        return self._runner is not None and self._runner.is_paused

    def _tell_pause(self) -> None:
        self.on_pause()

    def names(self) -> list[str]:
        """Return the function names, for completion."""
        service = self.workspace.functions
        return sorted({*service.names(), *service.foreign()})

    async def switch(self, name: str, id: str = MAIN) -> None:
        """Switch to another agent or conversation, by its id, or reload this one from disk.

        Raises:
            AgentBusy: another process runs it; the current one stays.
        """
        if line_of(name, id) == self.agent.line:
            await self.agent.aclose()
        before = self.agent
        self.agent = await self.workspace.agent_at(
            line_of(name, id), verify=before.session.verify, answers=True
        )
        self.agent.origin = before.origin
        self.agent.policy = before.policy  # the mode is of this window
        self.agent.max_steps = before.max_steps
        self.agent.model_flag = before.model_flag
        self.voice.agent = self.agent.name
        self._step_here()
        await before.aclose()
        if (
            self.voice.is_attended
        ):  # for the status bar (model, context size); its turn will report errors
            with suppress(KnapperError):
                await self.agent.measure()
        if self._runner is not None:
            await self.agent.session.schedule()
            self._runner.poke()

    async def turn(
        self,
        message: str | None,
        listener: Listener | None = None,
        shape: "AnswerShape | None" = None,
    ) -> bool:
        """Run one turn and report its events; return whether it ended with a reply. None processes waiting messages.

        If a user is here, turns of other windows are reported, too, and messages with where they come from. The reply
        to the message has the `shape`, if there is one.
        """
        heard = listener or self.voice.listener(self.log)
        pictures = self._take_pictures() if message is not None else ()
        self.busy, reason = True, ""
        try:
            async with aclosing(
                self.agent.turn(
                    message, follows=self.voice.is_attended, shape=shape, pictures=pictures
                )
            ) as turn:  # ends the turn even if reporting fails
                async for event in turn:
                    if isinstance(event, TurnStarted | MessageAdded):
                        self._tell_message(event)
                    if (
                        isinstance(event, Usage)
                        and event.context_tokens
                        and self.agent.is_following
                    ):
                        # The status bar shows how full the context is, whoever asked the model.
                        self.agent.model_session.meter.context_tokens = event.context_tokens
                    if isinstance(event, CallStopped):
                        self._tell_stop(event)
                    if listener is not None or not is_speech(event):
                        heard.hear(event)
                    if isinstance(event, CallAnswered) and self.agent.is_following:
                        self._made.hear(event)
                    if isinstance(event, CallAnswered) and "sent" in event.detail:
                        self.has_sent = True
                        self._poke()
                    if isinstance(event, TurnStarted | Usage):
                        self.spending.hear(
                            event, event.agent or self.agent.name, self.agent.status().model
                        )
                    if isinstance(event, TurnEnded):
                        reason = event.reason
                        self.touch(Receipt.from_json(event.made).names(*TOUCHED))
        except* LostLease:  # the runner shows it as it goes on there
            self.voice.lines(warned(TAKEN_OVER))
        finally:
            self.busy = False
            self._poke()
        self.failed |= message is not None and not reason  # no turn had it
        if reason == "failed" and self.voice.is_attended:
            self.voice.lines([line(("dim", f"  {_UNANSWERED}"))])
        self.failed |= reason not in (
            "replied",
            "parked",
            "client_calls",
            "handed_off",
            "",
        )  # "": no turn
        return reason == "replied"

    def _take_pictures(self) -> list[PictureFile]:
        pictures, self.pictures = self.pictures, []
        return pictures

    def _tell_message(self, event: TurnStarted | MessageAdded) -> None:
        """Show a message that was sent through another window, and where it comes from."""
        self.waits.pop(event.message_id, None)
        if self.voice.is_attended and self.agent.is_from_elsewhere(event.message_id):
            said = one_line(event.message, _MESSAGE_CHARS)
            self.voice.lines([line(("dim", f"{from_words(event.origin)} › "), said)])

    def _tell_stop(self, stopped: CallStopped) -> None:
        """Show that a function stands still which another window steps, and how to step it here."""
        has_debugger = self.voice.debugger is not None
        is_new = not stopped.stop.get("message")
        if has_debugger and is_new and not self.agent.is_stepped_here(stopped):
            self.voice.lines(stopped_lines(stopped))

    async def drop_unanswered(self) -> None:
        """Remove an unanswered message from the context, because the user of a script sends it again."""
        history = await self.agent.history()
        last = history[-1] if history else None
        if isinstance(last, User) or (isinstance(last, Notice) and last.text == UNANSWERED):
            await self.agent.pop()

    def _end_lost(self) -> None:
        """End the turn that another process took over while this one was suspended: its next write is refused."""
        self._ending = asyncio.ensure_future(self.agent.interrupt())

    def _poke(self) -> None:
        if self._runner is not None:
            self._runner.poke()

    async def say(self, message: str) -> None:
        """Send a message to the agent, then the messages that were typed too late for the running turn."""
        try:
            await self.turn(message)
            await self.take_up_waiting()
        except KnapperError as error:
            self.explain(error)

    async def say_meanwhile(self, message: str, sent_line: SentLine) -> None:
        """Send a message to the running turn. If the turn ends before the message is stored, start another turn."""
        id = await self.agent.say_during_turn(message, pictures=self._take_pictures())
        self.waits[id] = sent_line
        terms = ""
        if self.agent.is_following and self.agent.has_own_terms:
            terms = "; the turn keeps the model and mode with which it began in another window"
        self.voice.lines([line(("dim", f"  delivered at the next step; ↑ takes it back{terms}"))])
        if not self.busy:
            await self.take_up_waiting()
            await self.settle_later()

    async def take_back(self) -> str:
        """Take the last line back that waits for the turn, a command or a message, and return it; "" if none does."""
        if self.later:
            return self.later.pop()
        while self.waits:
            id, sent_line = self.waits.popitem()
            if await self.agent.withdraw(id):
                self.ran[:0] = sent_line.ran
                return sent_line.typed
            self.voice.lines([line(("dim", "  the turn has it already: it cannot be taken back"))])
        return ""

    async def take_up_waiting(self, listener: Listener | None = None) -> None:
        """Run turns until no message waits, so that one typed at the end of a turn is not left unanswered."""
        # The process that runs a turn takes them up, or this one afterwards.
        with suppress(AgentBusy):
            while not self.left and await self.agent.waiting():
                await self.turn(None, listener)

    async def settle_later(self) -> None:
        """Run the commands that waited for the end of a turn."""
        while self.later and self._run_command is not None and not (self.left or self.busy):
            text = self.later.pop(0)
            self.voice.lines([line(("name", "› "), ("strong", text))])
            await self._run_command(self, text)

    async def let_agent_begin(self, listener: Listener | None = None) -> None:
        """Start a turn in which the agent speaks first."""
        await self.agent.session.post("login")
        await self.wake(listener)

    async def begin(self, options: RunOptions, listener: Listener | None = None) -> None:
        """Answer what waits, and let the agent speak first if an option asks for it, or a new one of a MemGPT style."""
        self._is_begun = True
        self._poke()
        if self.voice.is_attended:
            await self.take_up_waiting(listener)
        is_new = (
            self.voice.is_attended
            and self.agent.session.style.packs
            and not await self.agent.history()
        )
        if options.greet or (is_new and not options.first):
            await self.let_agent_begin(listener)

    async def resume(self, listener: Listener | None = None) -> None:
        """Resume a turn that was cut off, and process the waiting messages."""
        is_cut = _was_cut_off(await self.agent.history())
        goes_on = await self.agent.goes_on()
        if not (is_cut or goes_on or await self.agent.waiting()):
            self.voice.aloud([line(("dim", "Nothing was interrupted, and no message is waiting."))])
        elif goes_on:
            await self.turn(None, listener)
        elif is_cut:
            await self.turn(GO_ON, listener)
        while not (self.left or self.failed) and await self.agent.waiting():
            await self.turn(None, listener)
        await self.settle_later()

    async def opening(self, options: RunOptions) -> str:
        """Return the text to send before the user's first message; empty if a cut-off turn will be resumed."""
        return "" if _was_cut_off(await self.agent.history()) else options.opening

    @asynccontextmanager
    async def awake(self, listener: Listener | None = None) -> AsyncIterator[None]:
        """Run the agent's timed heartbeats and the background agents while the block runs."""
        await self.agent.session.schedule()
        async with self._at_work(listener) as runner, asyncio.TaskGroup() as group:
            group.create_task(self.guarded(runner.run()))
            try:
                yield
            finally:
                await runner.stop()

    async def finish_work(self, listener: Listener | None = None) -> None:
        """Run the turns that follow from the agent's messages to others, until none is due."""
        async with self._at_work(listener) as runner:
            await runner.run(until_idle=True)

    @asynccontextmanager
    async def _at_work(self, listener: Listener | None) -> AsyncIterator[Runner]:
        """Yield the runner: turns of the conversation's agent run here, those of other agents in the background."""

        async def run_front(_: str) -> None:
            await self.guarded(self.wake(listener), AgentBusy, StorageError)

        async def watched() -> str:
            if not (self.voice.is_attended and self._is_begun) or self.busy:
                return ""
            if await self.agent.has_missed() or await self.agent.waiting():
                return self.agent.line
            return ""

        def hear(event: Event) -> None:
            if listener is not None:
                listener.hear(event)
            elif lines := behind_lines(event):
                self.voice.aloud(lines)

        async with self.workspace.runner(
            hear,
            front=Front(
                lambda: self.agent.line,
                run_front,
                lambda _: self.agent.interrupt(resumes=True),
                lambda: self._is_begun and not self.busy,
                self._end_lost,
                watched,
            ),
            on_fault=lambda *fault: self.voice.aloud([turn_fault(*fault)]),
        ) as runner:
            self._runner = runner
            runner.on_pause = self._tell_pause
            try:
                yield runner
            finally:
                self._runner = None

    async def wake(self, listener: Listener | None = None) -> None:
        """Run a turn for a waiting event, then turns for the messages that were typed meanwhile."""
        await self.turn(None, listener)
        await self.take_up_waiting(listener)
        await self.settle_later()

    async def guarded(self, work: Awaitable[None], *passes: type[KnapperError]) -> None:
        """Run work that must not end the conversation. Report an internal error and store its traceback.

        What `passes` is raised and not shown.
        """
        try:
            await work
        except passes:
            raise
        except KnapperError as error:
            self.explain(error)
        except Exception as error:  # noqa: BLE001  (the prompt's edge: one turn's failure does not end the conversation)
            self.failed = True
            self.voice.lines([crash_line(innermost(error), self.workspace.root)])

    @asynccontextmanager
    async def command(self) -> AsyncIterator[None]:
        """Make `interrupt` end the block like a turn."""
        self._command = Interruption()
        try:
            async with self._command:
                yield
        except Interrupted:
            self.voice.lines([line(("warn", "Interrupted."))])
        finally:
            self._command = None

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """Show in the status that a function runs, if the block takes longer and a user is at the terminal."""
        if not self.voice.is_attended:
            yield
            return
        told = asyncio.get_running_loop().call_later(
            _QUIET_S, self.voice.status, f"{name} runs; Ctrl-C ends it"
        )
        try:
            yield
        finally:
            told.cancel()
            self.voice.status("")

    async def leave(self) -> None:
        """End what runs here. A turn that another process runs, or will run for a message, goes on there."""
        self.left = True
        if self._command is None and self.agent.is_following:
            await self.agent.interrupt(resumes=True)
        else:
            await self.interrupt()

    async def interrupt(self) -> None:
        """End the running turn or command."""
        if self._command is not None:
            self._command.request()
        else:
            await self.agent.interrupt()

    def explain(self, error: KnapperError) -> None:
        """Show a failure that does not end the conversation."""
        traced(error)
        self.failed = True
        self.voice.lines(fault_lines(error.message, error.fix))

    async def keep_unsaved(self) -> None:
        """At the end of a conversation, let the model store unsaved facts, and show them."""
        if texts := await self.agent.keep_unsaved(self.waiting):
            kept = [
                line(("ok", "✓ "), "kept in memory: ", ("strong", one_line(text))) for text in texts
            ]
            self.voice.lines([*kept, line(("dim", "  to undo: knapper memory undo human"))])

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show a status text while the block runs."""
        self.voice.status(f"{what}…")
        try:
            yield
        finally:
            self.voice.status("")

    async def greet(self) -> None:
        """Show what was recovered at startup, which model answers, and whether a conversation continues.

        An endpoint that is down keeps nobody from functions and memory.

        Raises:
            NoModel: nothing is configured and nothing was found.
        """
        self.voice.lines(self.news())
        try:
            model = await self.agent.model_session.line()
        except Unavailable as error:
            self.voice.lines(fault_lines(error.message, error.fix))
            told = "Your next message tries it again; commands work meanwhile."
            self.voice.lines(greeting(told, await self.agent.user_texts()))
            return
        self.voice.lines(greeting(model, await self.agent.user_texts()))
        self.voice.lines(warned(self.agent.models.window_warning(only_news=True)))
        await self.agent.measure()

    def news(self) -> list[Line]:
        """Return lines about what was recovered, and about functions that were changed while no program ran."""
        sentences = [*self.workspace.recovered, self.agent.restored]
        since = (self.workspace.functions.changed_since(), self.workspace.helpers.since)
        return [
            *(row for sentence in sentences for row in warned(sentence)),
            *(
                row
                for change in since
                if change
                for row in changed_lines(change, "outside, since the last time")
            ),
        ]

    def announce(self, changed: FunctionsChanged) -> None:
        """Report functions that someone else changed, now or when the editor that has the screen is closed."""
        self.touch([*changed.loaded, *changed.changed, *changed.removed])
        if self._held is not None:
            self._held.append(changed)
        elif not (
            self._made.covers(changed) or is_own(changed, frozenset(self.commanded.split()[1:]))
        ):
            self.voice.aloud(changed_lines(changed, self._saved_by))

    @contextmanager
    def at_files(self, when: str) -> Iterator[None]:
        """Attribute files that are saved while the block runs to the user, with `when` in the report."""
        before, self._saved_by = self._saved_by, when
        try:
            yield
        finally:
            self._saved_by = before

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Give the terminal to the user's editor; changes made meanwhile are reported afterwards."""
        changes: list[FunctionsChanged] = []
        self._held = changes
        try:
            async with self.voice.aside():
                yield
        finally:
            self._held = None
            with self.at_files("while you edited"):
                for change in changes:
                    self.announce(change)


def _nothing() -> None:
    """Tell nobody of a pause."""


def greeting(model: str, texts: Sequence[str]) -> list[Line]:
    """Return lines that name the model, sum up a continued conversation, and point to the help."""
    last = one_line(headline(texts[-1]), 60) if texts else ""
    continuation = (
        f"the conversation continues: you wrote {counted(len(texts), 'message')}, the last: {last}"
        if texts
        else ""
    )
    anew = "/new begins another conversation; " if texts else ""
    sentences = (model, continuation, f"/help lists the commands; {anew}Ctrl-D leaves")
    return [line(("dim", sentence)) for sentence in sentences if sentence]


def _was_cut_off(history: Sequence[Message]) -> bool:
    """Check whether the last turn ended before its reply: with a message, a notice, or a result that no one read."""
    last = history[-1] if history else None
    return isinstance(last, User | Notice) or (isinstance(last, Answer) and last.name != SEND)


@asynccontextmanager
async def opened(
    options: RunOptions, voice: Voice, run_command: RunCommand | None = None
) -> AsyncIterator[Conversation]:
    """Open the workspace, its agent and a conversation; close everything at the end."""
    root = Workspace.find(options.root)
    if options.once:  # at the prompt, it is loaded while the user types
        importing = asyncio.create_task(asyncio.to_thread(import_module, "agent_core.model.client"))
        # Drop its exception: the code that needs a missing package reports it. A run may end before it is loaded.
        importing.add_done_callback(lambda task: task.cancelled() or task.exception())
    async with (
        Workspace.open(
            root,
            flags=options.flags(),
            environment=options.environment(),
            approver=chosen(options.approve, voice.approver),
            debugger=voice.debugger,
            on_status=voice.status,
        ) as workspace,
        _agent(workspace, options, voice) as agent,
    ):
        had = agent.session.style.preset
        if options.preset not in (None, had):
            message = f"The agent {agent.name} was created with the preset {had}, which cannot be changed."
            raise UsageError(
                message,
                fix=f"Create another agent: knapper run --preset {options.preset} --agent NAME",
            )
        agent.max_steps = options.max_steps or 0
        agent.model_flag = options.model or ""
        conversation = Conversation(workspace, agent, voice, run_command)
        quiet = conversation.agent.functions.on_change(conversation.announce)
        try:
            yield conversation
        finally:
            quiet()
            if voice.debugger is not None:
                await end_breakpoints(workspace.debugging, workspace.store)


@asynccontextmanager
async def _agent(workspace: Workspace, options: RunOptions, voice: Voice) -> AsyncIterator[Agent]:
    """Open the agent of a run. The workspace closes it, unless the agent is temporary (`once`)."""
    origin = Origin("prompt" if voice.is_attended else _window(options))
    if options.once:
        async with workspace.passing_agent(verify=options.verify) as agent:
            agent.origin = origin
            yield agent
    else:
        name = options.talks_to
        if name is not None and not options.is_tour and not await workspace.has_agent(name):
            made = await asyncio.to_thread(workspace.directory.make, name)
            if sys.stdout.isatty():  # a script does not need the notice
                voice.aloud([made_line(made)])
        yield await workspace.agent(
            name, options.conversation, verify=options.verify, origin=origin, answers=True
        )


def _window(options: RunOptions) -> str:
    """Return what kind of window a run is that nobody types into."""
    if options.message is None:
        return PIPE
    return "command" if machine.has_terminal() else JOB


def made_line(path: str) -> Line:
    """Return a line that says that the file of a new agent was created, and what to write into it."""
    return line(
        ("ok", "✓ "), "made ", ("name", path), ": its purpose, functions and limits go there"
    )


# The approvers of a run, which answer grant questions: the user, no one, or a file that lists allowed grants.

ASK, DENY = "ask", "deny"
_NOTES = ("by", "at")  # keys of `functions/grants.toml` that are not grants; ignored


def chosen(approve: str | None, human: Approver | None) -> Approver | None:
    """Return the approver that `--approve` selects; `human` is the user, if there is one.

    Raises:
        UsageError: no one can be asked, or the file is invalid.
    """
    if approve == ASK and human is None:
        fix = "Give --approve deny, or a file of what may be granted."
        raise UsageError("There is no terminal for the question.", fix=fix)
    if approve in (None, ASK):
        return human
    return None if approve == DENY else listed(Path(str(approve)))


def listed(file: Path) -> Approver:
    """Return an approver that grants what a file lists for a function, one call at a time and only in this run.

    The file has the format of `functions/grants.toml`.

    Raises:
        UsageError: the file cannot be read, or lists something that cannot be granted.
    """
    try:
        tables = read_toml(read_named(file))
        grants: dict[str, Grants] = {}
        for name, table in tables.items():
            if not isinstance(table, dict):
                fix = "Write [FUNCTION], and its grants below it."
                raise UsageError(f"{file}: `{one_line(name, 60)}` is not a table.", fix=fix)
            grants[name] = checked(
                {key: value for key, value in table.items() if key not in _NOTES}
            )
    except (OSError, Malformed) as error:
        fix = "--approve takes ask, deny, or a file such as functions/grants.toml."
        raise UsageError(f"{file} cannot be read: {one_line(str(error), 200)}.", fix=fix) from error
    except WorkspaceError as error:
        raise UsageError(f"{file}: {error.message}", fix=error.fix) from error

    async def approve(question: Question) -> Decision:
        entry = grants.get(question.function)
        is_listed = entry is not None and entry.covers(question.missing)
        return Decision("once" if is_listed else "no", by="policy")

    return approve
