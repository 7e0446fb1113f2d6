"""Ask the model once: what it is shown, its pieces as events, its tokens counted.

Holds what lasts from step to step: the open model, the functions shown, and how far the estimate of
tokens is off for this model.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from . import __version__, events
from .context import INSTRUCTIONS, Budget, Prompt, Shown, build
from .errors import ContextOverflow
from .interruption import Interrupted
from .messages import Assistant, System
from .model.ahead import Preparing, Tell
from .model.demonstration import INSTRUCTIONS as FOR_SMALL_MODELS
from .model.reply import Mode, ModeChanged, Model, Reply, RetryPiece, TextPiece, ThoughtPiece, TokenUsage
from .model.request import FunctionShown, Request
from .registry.snapshot import Snapshot
from .settings import Settings
from .storage import Entry, SaveText, Write, content_hash
from .style import DIRECT, Style
from .turn import Turn, assistant

# Of the window, when the endpoint says that the request was too long all the same.
_SHRINK = 0.6


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that answers, and the line that says which it is and why it was chosen."""

    model: Model
    line: str


OpenModel = Callable[[str | None], Awaitable[Opened]]


class Asker:
    """Asks the model of one agent."""

    def __init__(self, shown: Shown, settings: Settings, open_model: OpenModel, style: Style = DIRECT) -> None:
        self.shown = shown
        self.style = style
        self.line = ""
        self.context_tokens = 0
        self._settings = settings
        self._open = open_model
        self._model: Model | None = None
        self._correction = 1.0
        self._instructions = ""
        self._last_request: object = None

    @property
    def model_name(self) -> str:
        """The model that answers, or an empty text before one was needed."""
        return self._model.name if self._model else ""

    @property
    def context_limit(self) -> int:
        """The window in tokens; 0 before a model was needed."""
        return self._model.context_limit if self._model else 0

    @property
    def mode(self) -> Mode:
        """How calls travel at present."""
        return self._model.mode if self._model else "native"

    def functions(self) -> tuple[FunctionShown, ...]:
        """The functions as the agent's style shows them at present."""
        return self.style.shown(self.shown.line, self.mode)

    async def model(self) -> Model:
        """The model, opened when first asked for."""
        if self._model is None:
            opened = await self._open(None)
            self._model, self.line = opened.model, opened.line
        return self._model

    async def prepare(self, snapshot: Snapshot, own_set: frozenset[str], tell: Tell) -> None:
        """Have a model that reads slowly read what every request begins with; nothing with others.

        Raises:
            ModelError: the model cannot be had.
        """
        model = await self.model()
        if isinstance(model, Preparing):
            self.shown.choose(snapshot.functions, own_set)
            await model.prepare(Request((System(self._told()),), self.functions()), tell)

    async def change(self, name: str) -> None:
        """Another model for the steps to come; the one before stays if this one cannot be had."""
        opened = await self._open(name)
        await self.aclose()
        self._model, self.line = opened.model, opened.line
        self._correction = 1.0

    async def aclose(self) -> None:
        """Let the model go."""
        if self._model is not None:
            await self._model.aclose()

    async def ask(self, turn: Turn, snapshot: Snapshot, own_set: frozenset[str], excluded: frozenset[str]) -> Reply:
        """One reply, its pieces told as they come.

        Raises:
            Interrupted: the user ended the turn; what had come of the text is kept.
            ModelError: there is no usable answer.
        """
        model = await self.model()
        self.shown.choose(snapshot.functions, own_set)
        try:
            return await self._ask_in_mode(turn, model, model.context_limit, excluded)
        except ContextOverflow:
            turn.warn("The conversation is longer than the model's window: its oldest turns are left out.")
            return await self._ask_in_mode(turn, model, int(model.context_limit * _SHRINK), excluded)

    def request_record(self, snapshot: Snapshot) -> tuple[list[Entry], list[Write]]:
        """What the request showed, where it differs from the one before: with the messages it can be made again."""
        if self._last_request == (self.shown.line, self.model_name, self._instructions):
            return [], []
        self._last_request = (self.shown.line, self.model_name, self._instructions)
        names = [shown.name for shown in self.shown.line]
        versions = {name: snapshot.functions[name].version for name in names if name in snapshot.functions}
        parameters = self._settings.model.model_dump(exclude_none=True, exclude={"base_url"})
        request = {
            "program": __version__,
            "model": self.model_name,
            "parameters": parameters,
            "instructions": content_hash(self._instructions),
            "functions": names,
            "versions": versions,
        }
        return [Entry("request", request)], [SaveText(self._instructions)]

    async def _ask_in_mode(self, turn: Turn, model: Model, window: int, excluded: frozenset[str]) -> Reply:
        try:
            return await self._stream(turn, model, self._prompt(turn, model, window), excluded)
        except ModeChanged as error:
            turn.warn(error.message)
            self._correction = 1.0
            return await self._stream(turn, model, self._prompt(turn, model, window), excluded)

    def _prompt(self, turn: Turn, model: Model, window: int) -> Prompt:
        reply = self._settings.model.max_tokens or min(4096, window // 4)
        self._instructions = self._told()
        budget = Budget(window, reply, model.overhead(self.functions()), self._correction)
        return build(self._instructions, turn.history, self.functions(), budget)

    def _told(self) -> str:
        hidden = self.shown.hidden
        more = f"\n\n{hidden} more functions are not shown: list_functions finds them." if hidden else ""
        return (self._settings.instructions or self._usual_instructions()) + more

    def _usual_instructions(self) -> str:
        # A model that writes under a schema is a small one: it is told less, and shown the rest.
        if self.mode == "constrained":
            return self.style.brief or FOR_SMALL_MODELS
        return self.style.instructions or INSTRUCTIONS

    async def _stream(self, turn: Turn, model: Model, prompt: Prompt, excluded: frozenset[str]) -> Reply:
        request = Request(prompt.messages, prompt.functions, self._settings.model.max_tokens, excluded)
        said: list[str] = []
        kind = events.Thought if self.style.by_function(model.mode) else events.Text
        try:
            async with turn.interruption:
                async for piece in model.stream(request):
                    match piece:
                        case Reply():
                            self._count(turn, piece.usage, prompt, model)
                            return piece
                        case TextPiece():
                            said.append(piece.text)
                            turn.emit(kind(turn=turn.id, step=turn.step, text=piece.text))
                        case ThoughtPiece():
                            turn.emit(events.Thought(turn=turn.id, step=turn.step, text=piece.text))
                        case RetryPiece():
                            turn.warn(f"{piece.reason} Trying again in {piece.wait_s:.1f} s.")
        except Interrupted:
            if said:
                await turn.append([assistant(Assistant("".join(said) + " […]"))])
            raise
        raise AssertionError("a model's stream ends with its reply or an error")

    def _count(self, turn: Turn, usage: TokenUsage, prompt: Prompt, model: Model) -> None:
        self.context_tokens = usage.prompt + usage.completion
        if not usage.estimated and prompt.tokens > 0 and usage.prompt > 0:
            # Half of the way at a time, and within bounds: odd reports do not throw the estimate off.
            self._correction = min(max(self._correction * (1 + usage.prompt / prompt.tokens) / 2, 0.5), 4)
        turn.count(usage.prompt, usage.completion, usage.cached)
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
