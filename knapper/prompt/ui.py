"""The output of a conversation: to its user, at the prompt or as plain text, and to listeners in pipes and scripts."""

import json
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from agent_core.access.grants import Approver, Decision, Question
from agent_core.base import events
from agent_core.base.errors import UsageError
from agent_core.base.events import Event
from agent_core.base.pictures import pictures_in
from agent_core.base.records import replace
from agent_core.base.untrusted import visible
from agent_core.functions.debug import Command, Debugger, DebugStop
from agent_core.runtime.groups.floor import USER
from agent_core.views import call_log
from agent_core.views.dialog import YES, Dialog, DialogReply
from agent_core.views.faults import fault_lines, with_options
from agent_core.views.function_view import quarantine_lines, row_lines, source_lines
from agent_core.views.grant_question import (
    GrantDialog,
    denied_lines,
    function_question_lines,
)
from agent_core.views.result import print_json
from agent_core.views.styled_lines import (
    Choice,
    Line,
    ShownSource,
    Table,
    line,
    screen_columns,
    takes_colour,
    write,
)
from knapper.terminal.dialog import (
    Answers,
    SecretStore,
    TerminalAnswers,
    ask_in_lines,
    hidden_answer,
    set_secrets,
)
from knapper.terminal.pictures import shown_pictures
from knapper.terminal.progress import StatusLine, status_text

if TYPE_CHECKING:
    from agent_core.registry.answer_shapes import AnswerShape

# Listeners for turns outside the prompt: plain text for pipes and dumb terminals, JSON lines for scripts.

_PIPE_COLUMNS = 119  # for output piped into a file


class Listener(Protocol):
    """A listener that receives every event of a turn in order."""

    def hear(self, event: Event) -> None:
        """Show an event to the user or the script."""


class JsonLines:
    """A listener that prints one event per line on standard output."""

    def hear(self, event: Event) -> None:
        """Print the event's published JSON. Leave out `Writing` events: a later event has their content in full."""
        if not isinstance(event, events.Writing):
            print_json(event)


class PlainText:
    """A listener that prints the reply on standard output as it arrives, and calls, verdicts and warnings on standard
    error. If commands `can_follow`, it refers to `/show N`, otherwise to the shell command.
    """

    def __init__(self, log: call_log.CallLog, *, can_follow: bool = False) -> None:
        self._log = log
        self._can_follow = can_follow
        self._open_line = False
        self._heard = ""
        self._step = 0
        self._began = time.monotonic()
        self._denied: list[events.GrantAnswered] = []
        self._status = StatusLine()
        self._is_shown = False

    def hear(self, event: Event) -> None:
        """Print what a reader of plain text needs from an event."""
        status = status_text(event)
        if self._is_shown or status:
            self._is_shown = bool(status)
            self._status.show(status)
        if event.step != self._step:
            self._end_line()
            self._step = event.step
        match event:
            case events.TurnStarted():
                self._began, self._heard = time.monotonic(), ""
            case events.SpeakerChosen() if event.agent != USER:
                self._end_line()
                self._say(f"{event.agent}: ")
            case events.Text():
                self._say(event.text)
            case events.CallStarted():
                self._log.started(event)
            case events.CallAnswered():
                self._show_answer(event)
            case events.TurnEnded():
                if not call_log.was_told(event.reply, self._heard):
                    self._end_line()
                    self._say(event.reply)
                ended = call_log.ended_lines(event, time.monotonic() - self._began, _columns())
                self._talk([*denied_lines(self._denied), *ended])
            case _:
                self._aside(event)

    def _aside(self, event: Event) -> None:
        match event:
            case events.Warned():
                self._talk([line(("warn", with_options(event.text)))])
            case events.Quarantined():
                self._talk(quarantine_lines(event))
            case events.GrantAnswered():
                self._denied.append(event)
            case events.FunctionAsked() | events.FunctionAnswered():
                self._talk(function_question_lines(event))
            case _:
                pass

    def _say(self, text: str) -> None:
        sys.stdout.write(visible(text))
        sys.stdout.flush()
        self._heard += text
        self._open_line = not text.endswith("\n") if text else self._open_line

    def _talk(self, lines: list[Line]) -> None:
        self._end_line()
        write(lines, sys.stderr)

    def _show_answer(self, event: events.CallAnswered) -> None:
        self._show_call(event)
        pictures = pictures_in(event.detail)
        is_terminal = sys.stderr.isatty()
        for shown in shown_pictures(pictures, self._log.pictures, is_terminal=is_terminal):
            if isinstance(shown, str):
                self._end_line()
                sys.stderr.write(shown)
                sys.stderr.flush()
            else:
                self._talk([shown])

    def _show_call(self, event: events.CallAnswered) -> None:
        call = self._log.answered(event)
        if self._log.is_full:
            self._talk([call_log.call_line(call, _columns()), *call_log.verdict_part(call)])
            return
        verdict = call.verdict
        where = (
            f"knapper functions {'show' if verdict.admitted else 'pending'} {verdict.name}"
            if verdict
            else ""
        )
        self._talk(call_log.call_lines(call, _columns(), "" if self._can_follow else where))

    def _end_line(self) -> None:
        if self._open_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open_line = False


class ShapedText(PlainText):
    """A listener that prints a reply of a shape on standard output, and nothing else there: a program reads it."""

    def __init__(self, log: call_log.CallLog, shape: "AnswerShape") -> None:
        super().__init__(log)
        self._shape = shape

    def hear(self, event: Event) -> None:
        """Print what a reader of plain text needs from an event, but for the text before the reply."""
        if isinstance(event, events.Text) or call_log.is_speech(event):
            return
        if isinstance(event, events.TurnEnded):
            reply = ""
            if event.reason == "replied":
                value = self._shape.read(event.reply)
                reply = json.dumps(value, ensure_ascii=False, indent=2)
            event = replace(event, reply=reply)
        super().hear(event)


def _columns() -> int:
    return screen_columns() if sys.stderr.isatty() else _PIPE_COLUMNS


_DEBUG_MARK = "(debug) "


class Voice:
    """The output and questions of a conversation: text without control characters, results on standard output, messages
    on standard error. The prompt uses a subclass.

    `answers` are the lines that a user types; without them, only the `approver` can be asked, and only about grants.
    """

    def __init__(
        self,
        answers: Answers | None = None,
        approver: Approver | None = None,
        *,
        agrees: bool = False,
    ) -> None:
        """Create a voice. With `agrees`, questions are answered with yes if there is no user to ask."""
        self.agent = ""
        """The agent that the user talks to: its questions need not say who asks."""
        self._agrees = agrees
        self._approver = approver
        self._answers = answers
        self.secrets: SecretStore | None = None
        """Where a secret goes that the user types after a yes, if it is one of this machine."""
        self.debugger: Debugger | None = (
            None if answers is None else LineDebugger(self.aloud, answers)
        )
        """The debugger front end, if there is a user."""

    def lines(self, lines: Iterable[Line]) -> None:
        """Show lines."""
        write(lines, sys.stdout)

    def aloud(self, lines: Iterable[Line]) -> None:
        """Show a message that is not a result, on standard error."""
        write(lines, sys.stderr)

    def clear(self) -> None:
        """Clear the screen, if there is one."""
        if takes_colour(sys.stdout):
            sys.stdout.write("\x1b[H\x1b[2J")

    def source(self, code: str, first: int, marked: Collection[int] = ()) -> None:
        """Show Python source with line numbers, starting at `first`, and with some lines marked."""
        write(source_lines(code, first, marked), sys.stdout)

    def listener(self, log: call_log.CallLog) -> Listener:
        """Return a listener that shows a turn's events here."""
        return PlainText(log, can_follow=self.is_attended)

    async def browse(self, table: Table) -> None:
        """Show the whole table."""
        self.lines(table.lines())

    async def read(self, choice: Choice) -> None:
        """Show all details of a choice."""
        self.lines(choice.lines())
        if choice.source:
            self.source(*choice.source())

    async def result(
        self, name: str, lines: Sequence[Line], source: ShownSource | None = None
    ) -> None:
        """Show the result of a command: lines, and Python source under them."""
        self.lines(lines)
        if source is not None:
            self.source(*source)

    def aside(self) -> AbstractAsyncContextManager[None]:
        """Do nothing: this voice does not occupy the terminal."""
        return nullcontext()

    def status(self, text: str) -> None:
        """Print one line per status."""
        if text:
            self.aloud([line(("dim", text))])

    def drop_typed(self) -> None:
        """Do nothing: this voice keeps no history of typed lines."""

    async def confirm(self, question: str, *, is_final: bool = False) -> bool:
        """Ask for a yes. If there is no user to ask, an option must have given it."""
        if not self.asks and not self._agrees:
            raise UsageError(
                f"{question} There is no terminal to ask at.",
                fix="Give -y to say yes to such questions.",
            )
        return (
            not self.asks
            or (await self._ask(Dialog(question, is_final=is_final))).letter == YES.letter
        )

    @property
    def is_attended(self) -> bool:
        """True if a user types the answers."""
        return self._answers is not None

    @property
    def asks(self) -> bool:
        """True if a user sees the questions, too."""
        return self.is_attended and sys.stderr.isatty()

    @property
    def is_trusted(self) -> bool:
        """True if a user types the commands, or an option agrees to them."""
        return self.is_attended or self._agrees

    @property
    def approver(self) -> Approver | None:
        """The approver that asks the user, one line each; without a user, the approver that was passed in, if any."""
        return self._decide if self.asks or self._approver else None

    async def _decide(self, question: Question) -> Decision:
        if question.asker == self.agent and not question.whom:
            question = replace(question, asker="")
        if not self.asks and self._approver is not None:
            decision = await self._approver(question)
        else:
            dialog = GrantDialog(question)
            decision = dialog.decision(await self._ask(dialog))
        if decision.answer != "no" and decision.by == "human" and self.secrets is not None:
            await set_secrets(question.unset, self.secrets, self._ask_hidden, self.aloud)
        return decision

    async def _ask_hidden(self, question: str) -> str | None:
        return await hidden_answer(question, self._answers or TerminalAnswers())

    async def _ask(self, dialog: Dialog) -> DialogReply:
        assert self._answers is not None
        return await ask_in_lines(dialog, self.aloud, self._answers)


class LineDebugger:
    """A plain debugger front end. Its first command at a stop is never one that was typed ahead."""

    def __init__(self, show: Callable[[Iterable[Line]], None], answers: Answers) -> None:
        self._show = show
        self._answers = answers
        self._is_on = False  # within a debugging session, where typed-ahead lines are commands
        self._typed = ""
        self._last = Command("")

    async def stopped(self, stop: DebugStop) -> Command:
        """Return the user's command. The end of input or Ctrl-C ends the call."""
        above, source, below = call_log.stop_parts(stop, self._last)
        self._show([*above, *row_lines(source), *below])
        while True:
            if not self._is_on:
                self._answers.set_aside()
            typed = await self._answers.answer(_DEBUG_MARK)
            self._is_on = True
            if typed is not None and "\n" in typed.rstrip(
                "\n"
            ):  # as a paste arrives, which may be from a stranger
                self._show(
                    fault_lines(
                        "Several lines arrived at once, so none was run.",
                        "Type one command at a time.",
                    )
                )
                continue
            self._typed = (
                self._typed
                if typed is not None and not typed.strip()
                else (typed or "quit").strip()
            )
            if not self._typed:
                continue
            try:
                self._last = call_log.typed_command(self._typed)
            except UsageError as error:
                self._show(fault_lines(error.message, error.fix))
                continue
            self._is_on = self._last.do not in ("quit", "continue")
            return self._last
