"""One step: what the model is shown, its reply, the calls it asked for, and whether the turn goes on.

A step is a short list of phases, and each phase leaves the conversation valid on disk.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from . import events
from .context import Budget, History, Prompt, Shown, build
from .dispatch import Dispatcher, Done
from .errors import ContextOverflow
from .interruption import Interrupted
from .messages import Assistant
from .model.reply import Model, Reply, RetryPiece, TextPiece, ThoughtPiece, TokenUsage
from .model.request import Request
from .registry.snapshot import Snapshot
from .settings import Settings
from .storage import Entry
from .turn import Turn, assistant, notice, user
from .workshop import Workshop

Reason = Literal["replied", "interrupted", "steps", "repeated", "failed", "cancelled"]

MAX_SAME_FAILURES = 3
MAX_SAME_ANSWERS = 5
_SHRINK = 0.6


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a turn ended, and what the agent said last."""

    reason: Reason
    reply: str


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that answers, and the line that says which it is and why it was chosen."""

    model: Model
    line: str


OpenModel = Callable[[str | None], Awaitable[Opened]]


@dataclass(slots=True)
class _Course:
    """What a turn has been through: which nudges were given, and how often the same thing came again."""

    excluded: frozenset[str] = frozenset()
    nudged: set[str] = field(default_factory=set)
    runs: dict[tuple[str, str, str], int] = field(default_factory=dict)


class Stepper:
    """Takes the steps of one agent's turns."""

    def __init__(
        self, dispatcher: Dispatcher, workshop: Workshop, shown: Shown, settings: Settings, opener: OpenModel
    ) -> None:
        self.shown = shown
        self.context_tokens = 0
        self.model_line = ""
        self._dispatcher = dispatcher
        self._workshop = workshop
        self._settings = settings
        self._opener = opener
        self._model: Model | None = None
        self._correction = 1.0
        self._changes: list[events.FunctionsChanged] = []
        self._last_shown: tuple[str, ...] = ()
        self._instructions = settings.instructions or ""
        self._forget = workshop.on_change(self._changes.append)

    @property
    def model_name(self) -> str:
        """The model that answers, or an empty text before one was needed."""
        return self._model.name if self._model else ""

    @property
    def context_limit(self) -> int:
        """The window in tokens; 0 before a model was needed."""
        return self._model.context_limit if self._model else 0

    async def open_model(self) -> Model:
        """The model, opened when first asked for."""
        if self._model is None:
            opened = await self._opener(None)
            self._model, self.model_line = opened.model, opened.line
        return self._model

    async def change_model(self, name: str) -> None:
        """Another model for the steps to come; the one before stays if this one cannot be had."""
        opened = await self._opener(name)
        if self._model is not None:
            await self._model.aclose()
        self._model, self.model_line = opened.model, opened.line
        self._correction = 1.0

    async def aclose(self) -> None:
        """Let the model go."""
        self._forget()
        if self._model is not None:
            await self._model.aclose()

    async def run(self, turn: Turn) -> Ended:
        """Step until the model answers without a call, or something ends the turn.

        Raises:
            Interrupted: the user asked for the end.
            ModelError: the model gives no usable answer.
        """
        async with turn.interruption:
            model = await self.open_model()
        course = _Course()
        for number in range(1, self._settings.turn.max_steps + 1):
            turn.step, turn.model = number, model.name
            await self._take_up(turn)
            snapshot = self._workshop.registry.snapshot()
            reply = await self._ask(turn, snapshot, course.excluded)
            ended = await self._act(turn, reply, snapshot, course)
            if ended is not None:
                return ended
        return self._end(turn, Ended("steps", ""), f"The turn was ended after {self._settings.turn.max_steps} steps.")

    async def _take_up(self, turn: Turn) -> None:
        """What came meanwhile: messages of the user, and functions that changed by another hand."""
        waiting = await turn.store.waiting(turn.agent)
        entries = [user(str(each.payload.get("text", ""))) for each in waiting]
        changes, self._changes[:] = list(self._changes), []
        if changes:
            entries.append(notice(self._workshop.tell_changes(changes)))
            for change in changes:
                turn.emit(_of_turn(change, turn))
        if entries:
            await turn.append(entries, takes=[each.id for each in waiting])

    async def _ask(self, turn: Turn, snapshot: Snapshot, excluded: frozenset[str]) -> Reply:
        model = await self.open_model()
        self.shown.choose(snapshot.functions, self._workshop.own_set)
        window = model.context_limit
        try:
            return await self._stream(turn, model, self._prompt(turn.history, window), excluded)
        except ContextOverflow:
            warning = (
                "The conversation is longer than the model's window; its oldest turns are left out of the request."
            )
            turn.emit(events.Warned(turn=turn.id, step=turn.step, message=warning))
            return await self._stream(turn, model, self._prompt(turn.history, int(window * _SHRINK)), excluded)

    def _prompt(self, history: History, window: int) -> Prompt:
        reply = self._settings.model.max_tokens or min(4096, window // 4)
        budget = Budget(window, reply, self._correction)
        more = (
            f"\n\n{self.shown.hidden} more functions are not shown: list_functions finds them."
            if self.shown.hidden
            else ""
        )
        return build(self._instructions + more, history, self.shown, budget)

    async def _stream(self, turn: Turn, model: Model, prompt: Prompt, excluded: frozenset[str]) -> Reply:
        request = Request(prompt.messages, prompt.functions, self._settings.model.max_tokens, excluded)
        said: list[str] = []
        try:
            async with turn.interruption:
                async for piece in model.stream(request):
                    match piece:
                        case Reply():
                            self._count(turn, piece.usage, prompt, model)
                            return piece
                        case TextPiece():
                            said.append(piece.text)
                            turn.emit(events.Text(turn=turn.id, step=turn.step, text=piece.text))
                        case ThoughtPiece():
                            turn.emit(events.Thought(turn=turn.id, step=turn.step, text=piece.text))
                        case RetryPiece():
                            warning = f"{piece.reason} Trying again in {piece.wait_s:.1f} s."
                            turn.emit(events.Warned(turn=turn.id, step=turn.step, message=warning))
        except Interrupted:
            if said:
                await turn.append([assistant(Assistant("".join(said) + " […]"))])
            raise
        raise AssertionError("a model's stream ends with its reply or an error")

    def _count(self, turn: Turn, usage: TokenUsage, prompt: Prompt, model: Model) -> None:
        self.context_tokens = usage.prompt + usage.completion
        if not usage.estimated and prompt.tokens > 0 and usage.prompt > 0:
            # Half of the way at a time: one odd report does not throw the estimate off.
            self._correction *= (1 + min(max(usage.prompt / prompt.tokens, 0.25), 4)) / 2
        turn.tokens["prompt_tokens"] += usage.prompt
        turn.tokens["completion_tokens"] += usage.completion
        turn.tokens["cached_tokens"] += usage.cached
        turn.emit(
            events.Usage(
                turn=turn.id,
                step=turn.step,
                prompt_tokens=usage.prompt,
                completion_tokens=usage.completion,
                cached_tokens=usage.cached,
                estimated=usage.estimated,
                context_tokens=self.context_tokens,
                context_limit=model.context_limit,
            )
        )

    async def _act(self, turn: Turn, reply: Reply, snapshot: Snapshot, course: _Course) -> Ended | None:
        """Put the reply on disk, carry out what it asks for, and say whether the turn is over."""
        message = Assistant(reply.text, reply.calls, reply.thought)
        starting = self._dispatcher.started_at_once(reply.calls, snapshot)
        if reply.text or reply.calls:
            await turn.append([*self._request_entry(snapshot), assistant(message), *starting])
        if reply.note:
            turn.emit(events.Warned(turn=turn.id, step=turn.step, message=reply.note))
        if not reply.calls:
            return await self._hand_back(turn, reply, course)
        done = await self._dispatcher.run(reply.calls, snapshot, turn)
        for each in done:
            self.shown.use(each.call.name)
        if turn.interruption.requested:
            raise Interrupted
        course.excluded = frozenset().union(*(each.excluded for each in done))
        return await self._repeated(turn, done, course)

    def _request_entry(self, snapshot: Snapshot) -> list[Entry]:
        """What the request showed, where it differs from the one before: with the messages it can be made again."""
        names = tuple(shown.name for shown in self.shown.line)
        if names == self._last_shown:
            return []
        self._last_shown = names
        versions = {name: snapshot.functions[name].version for name in names if name in snapshot.functions}
        parameters = self._settings.model.model_dump(exclude_none=True, exclude={"base_url"})
        return [
            Entry(
                "request",
                {"functions": list(names), "versions": versions, "model": self.model_name, "parameters": parameters},
            )
        ]

    async def _hand_back(self, turn: Turn, reply: Reply, course: _Course) -> Ended | None:
        """The model asked for nothing: the turn is over, unless something speaks against it, once."""
        why_not = _objection(turn, reply)
        if why_not is not None and why_not[0] not in course.nudged:
            course.nudged.add(why_not[0])
            await turn.append([notice(why_not[1])])
            return None
        if await turn.store.waiting(turn.agent):
            return None
        if not reply.text:
            return self._end(turn, Ended("failed", ""), "The model answered nothing, twice.")
        return Ended("replied", reply.text)

    async def _repeated(self, turn: Turn, done: Sequence[Done], course: _Course) -> Ended | None:
        """The same call with the same outcome, step after step: advice first, then the end."""
        course.runs = {key: course.runs.get(key, 0) + 1 for key in map(_sameness, done)}
        for (name, _, text), times in course.runs.items():
            failing = not text
            if times >= (MAX_SAME_FAILURES if failing else MAX_SAME_ANSWERS):
                how = "failed" if failing else "gave the same answer"
                what = f"`{name}` {how} {times} times in a row with the same arguments"
                await turn.append([notice(f"{what}. Do something else, or tell the user what is in the way.")])
                return self._end(turn, Ended("repeated", ""), f"The turn was ended: {what}.")
            if not failing and times == MAX_SAME_FAILURES:
                advice = f"You have called `{name}` {times} times and the answer stays. Reply to the user now."
                await turn.append([notice(advice)])
        return None

    def _end(self, turn: Turn, ended: Ended, warning: str) -> Ended:
        turn.emit(events.Warned(turn=turn.id, step=turn.step, message=warning))
        return ended


def _objection(turn: Turn, reply: Reply) -> tuple[str, str] | None:
    """Why a reply without a call should not end the turn yet: a name for it, and what to tell the model."""
    if reply.finish == "length":
        return "length", "Your reply was cut off at its length limit. Go on in smaller pieces, or say it shorter."
    if not reply.text.strip():
        return "empty", "Your reply was empty. Answer the user, or call a function."
    if turn.refused:
        names = ", ".join(f"`{name}`" for name in turn.refused)
        said = f"Nothing was made: {names} stands refused and cannot be called. "
        return "refused", said + "Mend it with edit_function or create_function, or tell the user that it was not made."
    return None


def _sameness(done: Done) -> tuple[str, str, str]:
    try:
        arguments = json.dumps(json.loads(done.call.arguments), sort_keys=True)
    except ValueError:
        arguments = done.call.arguments
    return done.call.name, arguments, "" if done.failed else done.text


def _of_turn(change: events.FunctionsChanged, turn: Turn) -> events.FunctionsChanged:
    parts: dict[str, Any] = {name: getattr(change, name) for name in ("loaded", "changed", "removed", "rejected", "by")}
    return events.FunctionsChanged(turn=turn.id, step=turn.step, **parts)
