"""Listeners to a turn outside the prompt: plain text for pipes and dumb terminals, JSON lines for scripts."""

import sys
import time
from typing import Protocol

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.untrusted import visible
from agent_core.runtime.groups.floor import USER

from .cli_context import print_json
from .faults import with_options
from .progress import StatusLine, status_text
from .render.call_log import CallLog, call_line, call_lines, ended_lines, verdict_part, was_told
from .render.function_view import quarantine_lines
from .render.grant_question import denied_lines
from .spans import Line, line
from .wrap import screen_columns, write

_PIPE_COLUMNS = 119  # for who opens what was piped into a file


class Listener(Protocol):
    """A listener that hears every event of a turn, in order."""

    def hear(self, event: Event) -> None:
        """Show the event to the user or the script."""


class JsonLines:
    """A listener that prints one event per line on standard output."""

    def hear(self, event: Event) -> None:
        """Print the event's published shape; what is said again, whole, is left out."""
        if not isinstance(event, events.Writing):
            print_json(event)


class PlainText:
    """A listener that prints the reply on standard output as it comes; calls, verdicts and warnings on standard
    error. Where commands `can_follow`, `/show N` is named, else the command of the shell.
    """

    def __init__(self, log: CallLog, *, can_follow: bool = False) -> None:
        self._log = log
        self._can_follow = can_follow
        self._open_line = False
        self._said = self._heard = ""
        self._step = 0
        self._began = time.monotonic()
        self._denied: list[events.GrantAnswered] = []
        self._status = StatusLine()
        self._is_shown = False

    def hear(self, event: Event) -> None:
        """Print what a reader of plain text needs."""
        status = status_text(event)
        if self._is_shown or status:
            self._is_shown = bool(status)
            self._status.show(status)
        self._note_step(event.step)
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
                self._answered(event)
            case events.TurnEnded():
                self._ended(event)
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
            case _:
                pass

    def _note_step(self, step: int) -> None:
        if step != self._step:
            self._end_line()
            self._step, self._said = step, ""

    def _say(self, text: str) -> None:
        sys.stdout.write(visible(text))
        sys.stdout.flush()
        self._said += text
        self._heard += text
        self._open_line = not text.endswith("\n") if text else self._open_line

    def _talk(self, lines: list[Line]) -> None:
        self._end_line()
        write(lines, sys.stderr)

    def _answered(self, event: events.CallAnswered) -> None:
        call = self._log.answered(event)
        if self._log.is_full:
            self._talk([call_line(call, _columns()), *verdict_part(call)])
            return
        verdict = call.verdict
        where = f"knapper functions {'show' if verdict.admitted else 'pending'} {verdict.name}" if verdict else ""
        self._talk(call_lines(call, _columns(), "" if self._can_follow else where))

    def _ended(self, event: events.TurnEnded) -> None:
        if not was_told(event.reply, self._heard):
            self._end_line()
            self._say(event.reply)
        self._talk([*denied_lines(self._denied), *ended_lines(event, time.monotonic() - self._began, _columns())])

    def _end_line(self) -> None:
        if self._open_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open_line = False


def _columns() -> int:
    return screen_columns() if sys.stderr.isatty() else _PIPE_COLUMNS
