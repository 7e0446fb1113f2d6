"""The model session of one agent: it builds the prompt, streams the reply as events, and counts tokens.

It holds what lasts from step to step: the open model, the functions shown, the system message of this turn, and the
correction of the token estimate. Also here: the models of an agent, the token meter, and the keeper of partial replies
in case the program is killed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_core import __version__
from agent_core.base import events
from agent_core.base.clock import shown_time
from agent_core.base.errors import ContextOverflow, ModelError, StorageError
from agent_core.base.messages import System, User, pictures_of
from agent_core.base.pictures import Picture
from agent_core.context import (
    ABOUT_PROGRAMS,
    BYTES_PER_TOKEN,
    INSTRUCTIONS,
    PROGRAM_LIMIT,
    READ_ON,
    RUN_PROGRAM,
    Budget,
    Compaction,
    FactKeeper,
    History,
    Remembered,
    RequestPrompt,
    Shown,
    SystemMessage,
    function_room,
    size_of,
    without_growing,
)
from agent_core.memory.agent_memory import KEPT_IN, AgentMemory
from agent_core.model.beside import NATIVE, mode_named
from agent_core.model.reading import written_calls
from agent_core.model.reply import (
    Mode,
    ModeChanged,
    Model,
    OpenModel,
    ReleaseModel,
    Reply,
    TextPiece,
    TokenUsage,
)
from agent_core.model.request import FunctionShown, Preparing, Request, Tell
from agent_core.model.wire import in_words
from agent_core.storage import Entry, SaveText, Write, content_hash
from agent_core.storage.journal import SEEN, TOLD, RequestEntry, cut_off, write_entry

from .turn import Interrupted, Turn

if TYPE_CHECKING:
    from agent_core.base.settings import NamedModel, ProgramsOffer, Settings
    from agent_core.memory.vectors import TextVectors
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from agent_core.storage.picture_files import PictureFiles

    from .session import AgentSession
    from .source import ToolSources

# The share of the room that the conversation may take: at first, and after each context overflow.
_SHARES: Final = (1.0, 0.5, 0.25)
_TIGHT: Final = (
    0.5  # factor on the room of memory and sections after half of the room was still too long
)
_ALONE: Final = "Answer the question that you are asked, in plain text, and briefly."
_SUMMARY_S: Final = 180.0
_MAX_PAST_CHARS: Final = 800  # of an answer or argument that is shown whole after the next turn
_LEARNT: Final = 1.1
ShowsWait: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Shows what is waited for while the block runs."""
SUMMARIZING: Final = "summarizing the oldest messages"
KEEPING: Final = "asking which facts to keep in memory"
_MOST_CHANGES: Final = 2  # mode changes allowed for one reply
_CORRECTIONS: Final = (0.5, 4.0)  # lower and upper bound of the correction of token estimates
_EVERY_S: Final = 1.0  # interval for storing a partial reply
_QUIET_S: Final = 2.0  # time without a piece after which the user is shown that the model reads


class ModelSession:
    """The session that sends requests to the model of one agent."""

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        shown: Shown,
        settings: "Settings",
        models: "AgentModels",
        session: "AgentSession",
        tools: "ToolSources",
        *,
        remembered: Remembered | None = None,
        compaction: str = "",
        keep: "AgentMemory | None" = None,
        vectors: "TextVectors | None" = None,
        pictures: "PictureFiles | None" = None,
    ) -> None:
        """Create the session.

        `compaction` overrides the settings for how this agent's past is summarized. `vectors` are those of functions
        and messages; they choose what a small model is shown. Without `pictures`, the model is told of them in words.
        """
        self.pictures = pictures
        self.models = models
        self.functions = StepFunctions(shown, models, session, settings, tools)
        self.shown = shown
        self.meter = TokenMeter(settings.models)
        self.tools = tools
        self._style = session.style
        self._clock = session.clock
        self._facts = FactKeeper(keep)
        self._vectors = vectors
        self.settings = settings
        self._is_tight = self._is_style_told = False
        self._system = SystemMessage(remembered)
        self._compaction = Compaction(settings.memory, compaction)
        self._rendered_for: object = None
        self._told_of = (
            ""  # the turn in which the user was warned that the message is shown in part
        )
        self._last_request: object = None
        self._sight: dict[str, list[str]] = {}
        """The captions of the pictures that the last request showed, and of those that it told in words."""

    async def model(self) -> Model:
        """Return the model; it is opened on first use, or when the agent's file names another one."""
        if self.models.is_due:
            await self.change(None)
        assert self.models.usual is not None, "it was opened, or an error raised"
        return self.models.usual

    async def line(self) -> str:
        """Return one line that says which model answers and why it was chosen.

        Raises:
            NoModel: no model is configured and none was found.
        """
        await self.model()
        return self.models.line

    async def prepare(self, snapshot: "Snapshot", tell: Tell = lambda *_: None) -> None:
        """Prefill the prompt cache of a slow local model with the prefix of every request; do nothing for other models.

        `tell` is called with the tokens done and the total.

        Raises:
            ModelError: the model is not available.
        """
        model = await self.model()
        if isinstance(model, Preparing):
            await self._looking(snapshot)
            await model.prepare(Request(self._system.messages, self.functions.all()), tell)

    async def estimate(self, history: History, snapshot: "Snapshot") -> None:
        """Estimate how much of the context window a resumed conversation takes, before its first reply."""
        model = await self.model()
        if history.size and not self.meter.context_tokens:
            await self._looking(snapshot)
            self.meter.context_tokens = self._budget(model).tokens(history.size)

    async def _looking(self, snapshot: "Snapshot") -> Model:
        """Prepare the functions and the system message outside of a step, and return the model."""
        model = await self.model()
        self.functions.choose(snapshot)
        await self._render(model)
        return model

    async def prompt(self, history: History, snapshot: "Snapshot") -> RequestPrompt:
        """Return the prompt that the model would be sent now."""
        return self._prompt(history, await self._looking(snapshot))

    async def change(self, name: str | None) -> str:
        """Switch to another model from the next step on, and return the line that describes it.

        Without a name, switch to the agent's usual model. If the new one is not available, keep the current one.
        """
        await self.models.change(name)
        self.shown.thaw()
        self.meter.correction, self._is_tight, self._is_style_told = 1.0, False, False
        return self.models.line

    async def ask(self, turn: Turn, snapshot: "Snapshot", excluded: frozenset[str]) -> Reply:
        """Request one reply and emit its pieces as they arrive.

        Raises:
            Interrupted: the user ended the turn; the text that arrived is kept.
            ModelError: there is no usable answer; the text that arrived is kept.
        """
        model = await self.model()
        self.functions.choose(snapshot)
        await self._tell_style(turn, model.mode)
        for share in _SHARES:
            await self._make_ready(turn, model, share)
            try:
                return await self._ask_in_mode(turn, model, excluded)
            except ContextOverflow:
                if share == _SHARES[-1]:
                    raise
                # The prompt has more tokens than estimated: at least this factor.
                self.meter.correct(
                    max(
                        model.context_limit / max(self._prompt(turn.history, model).tokens, 1),
                        _LEARNT,
                    )
                )
        raise AssertionError("the last try returns or raises")

    async def summarize(self, turn: Turn, snapshot: "Snapshot") -> str:
        """Summarize the older part of the conversation now, and return a sentence about the result.

        Raises:
            ModelError: the model is not available.
        """
        model = await self._looking(snapshot)
        try:
            summary = await self._compaction.compact(
                turn, self._budget(model), partial(self._sum_up, turn, model)
            )
        except Interrupted:
            return "Stopped: the conversation is as it was."
        self._rendered_for = None
        if summary is None:
            return "There is nothing to summarize yet."
        self.shown.thaw()
        return f"A summary stands for {summary.covers:,} messages now:\n{summary.text}"

    async def keep_unsaved(
        self, history: History, turn: Turn | None, waiting: ShowsWait
    ) -> tuple[str, ...]:
        """Ask the model which of the user's sentences to keep that are in no block; store and return these.

        `waiting` shows the user that the model is being asked.
        """
        if not self.settings.memory.keep_unsaved or (turn is not None and turn.policy.only_reads):
            return ()

        async def ask(request: Request) -> str:
            with waiting(KEEPING):
                return (await self.reply_alone(request, turn)).text

        return await self._facts.keep(history, turn.id if turn else "", ask)

    async def announced(
        self, message: str, likely: Iterable["Function"], snapshot: "Snapshot"
    ) -> list[str]:
        """Return the functions that a message brings up for a small model, if the likely ones are not masked."""
        self.functions.choose(snapshot)
        shown = {function.name: function for function in self.functions.all()}
        for function in likely:
            shown.setdefault(
                function.name,
                FunctionShown(function.name, function.description, function.parameters),
            )
        functions = tuple(shown.values())
        mode = mode_named(self.models.mode)
        if mode is None:
            return list(shown)
        texts = mode.compared(Request((User(message),), functions))
        vectors = await self._vectors.of(texts) if self._vectors else None
        return [function.name for function in mode.find(message, functions, vectors)]

    async def ask_alone(self, message: str, turn: Turn | None) -> str:
        """Return a model's answer to one message without persona, memory or functions. The turn counts its tokens.

        Raises:
            ModelError: there is no usable answer.
        """
        request = Request((System(_ALONE), User(message)), is_apart=True)
        return (await self.reply_alone(request, turn, self.settings.turn.message_llm_model)).text

    async def reply_alone(
        self, request: Request, turn: Turn | None, name: str | None = None
    ) -> Reply:
        """Return the reply of the agent's model, or another one, to a separate request. The turn counts its tokens.

        Raises:
            ModelError: there is no usable answer.
        """
        return await self._reply_to(
            request, await (self.models.other(name) if name else self.model()), turn
        )

    def request_record(self, snapshot: "Snapshot") -> tuple[list[Entry], list[Write]]:
        """Return the record of a request, if it differs from the last; with the messages, it can be reproduced.

        The entry refers to texts by hash, and the writes store them.
        """
        functions = self.functions.all()
        shown = (functions, self.models.name, self._system.sections, self._sight)
        if self._last_request == shown:
            return [], []
        self._last_request = shown
        parameters = self.settings.model.model_dump(exclude_none=True, exclude={"base_url"})
        names = [function.name for function in functions]
        texts = [section.text for section in self._system.sections]
        hashes = [content_hash(text) for text in texts]
        known = [name for name in (*names, *sorted(self.shown.told)) if name in snapshot.functions]
        request = RequestEntry(
            program=__version__,
            model=self.models.name,
            parameters=parameters | self._sight,
            instructions=hashes[0] if hashes else "",
            sections=tuple(hashes),
            functions=tuple(names),
            versions={name: snapshot.functions[name].version for name in known},
        )
        return [write_entry(request)], [SaveText(text) for text in texts]

    async def _make_ready(self, turn: Turn, model: Model, share: float) -> None:
        """Prepare the system message of this turn, and shorten the conversation so that both fit."""
        if self._rendered_for != (turn.id, model.mode):
            budget = self._budget(model)
            page_chars = budget.page_chars(self.settings.turn.answer_chars)
            turn.history.page(page_chars, budget.message_chars(self.settings.memory))
            if model.mode == NATIVE and READ_ON in self.shown.callable:
                await turn.history.leave_behind(turn.id, _MAX_PAST_CHARS)
            if self._told_of != turn.id and (cut := turn.history.cut_short(turn.id)):
                self._told_of = turn.id
                seen, length = cut
                await turn.warn(
                    f"Your message has {length:,} characters: the model sees the first {seen:,}, and can read on."
                )
            await self._render(model, turn.id)
        budget = self._budget(model)
        used = budget.tokens(turn.history.size)
        if share == 1 and used < budget.warned_at(self.settings.memory):
            return
        ask = partial(self._sum_up, turn, model)
        self._is_tight |= share == _SHARES[-1]
        if used >= budget.most(self.settings.memory):
            for text in await self.keep_unsaved(turn.history, turn, turn.waiting):
                await turn.warn(f"Kept in memory: {text}")
                turn.note_done("remembered", KEPT_IN)
                turn.note_done("lines", KEPT_IN)
        if share < 1:
            await self._compaction.compact(turn, budget, ask, share)
        elif not await self._compaction.make(turn, budget, ask):
            return
        self.shown.thaw()
        await self._render(model, turn.id)

    async def _render(self, model: Model, turn: str = "") -> None:
        index = self.functions.index(model.mode, is_kept=bool(turn))
        instructions = f"{self.functions.instructions(model.mode)}\n\n{index}".rstrip()
        window = int(model.context_limit * BYTES_PER_TOKEN * (_TIGHT if self._is_tight else 1))
        day = shown_time(self._clock.now(), "%A, %Y-%m-%d")
        await self._system.render(instructions, self.tools.section(), window, day)
        self._rendered_for = (turn, model.mode)

    async def _ask_in_mode(self, turn: Turn, model: Model, excluded: frozenset[str]) -> Reply:
        for _ in range(_MOST_CHANGES):
            mode = model.mode
            try:
                reply = await self._stream(turn, model, self._prompt(turn.history, model), excluded)
                if reply.calls or not reply.written or model.mode == mode:
                    return reply
                await turn.warn(reply.note)
            except ModeChanged as error:
                await turn.warn(error.message)
            await self._tell_style(turn, model.mode)
            self.meter.correction = 1.0
            await self._make_ready(turn, model, 1.0)
        return await self._stream(turn, model, self._prompt(turn.history, model), excluded)

    async def _tell_style(self, turn: Turn, mode: Mode) -> None:
        """Warn the user, once per model, if it cannot keep the agent's style."""
        if not self._is_style_told and (sentence := self._style.not_kept(mode)):
            self._is_style_told = True
            await turn.warn(sentence)

    def _budget(self, model: Model) -> Budget:
        window = model.context_limit
        fixed = len(self._system.text.encode("utf-8", "replace")) + model.overhead(
            self.functions.all()
        )
        return Budget(window, self.functions.reply_tokens(), fixed, self.meter.correction)

    def _prompt(self, history: History, model: Model) -> RequestPrompt:
        functions, tokens = self.functions.all(), self._budget(model).tokens(history.size)
        return RequestPrompt((*self._system.messages, *history), functions, tokens)

    async def _sum_up(self, turn: Turn, model: Model, instructions: str, material: str) -> str:
        """Return the model's summary of the material, or an empty text if the model fails or takes too long."""
        request = Request(
            (System(instructions), User(material)),
            (),
            self.settings.model.max_tokens,
            is_apart=True,
        )
        try:
            with turn.waiting(SUMMARIZING):
                async with turn.ending.interruption, asyncio.timeout(_SUMMARY_S):
                    return (await self._reply_to(request, model, turn)).text
        except (ModelError, TimeoutError):
            return ""

    async def _reply_to(self, request: Request, model: Model, turn: Turn | None) -> Reply:
        """Return the reply to a request without showing its pieces. The turn counts its tokens."""
        pieces = [piece async for piece in model.stream(request)]
        reply = pieces[-1]
        assert isinstance(reply, Reply), "a model's stream ends with its reply or an error"
        if turn is not None:
            self.meter.charge(turn, reply.usage, model)
        return reply

    async def _with_pictures(self, request: Request, mode: Mode) -> Request:
        """Return a request with the pictures that its messages show, or with words for them in a mode of text alone."""
        if mode != NATIVE:
            return replace(request, messages=tuple(map(in_words, request.messages)))
        shown = list[Picture]()
        for message in request.messages:
            shown += pictures_of(message)
        if not shown or self.pictures is None:
            return request
        return replace(request, pictures=await self.pictures.urls(shown))

    async def _stream(
        self, turn: Turn, model: Model, prompt: RequestPrompt, excluded: frozenset[str]
    ) -> Reply:
        most = self.settings.model.max_tokens
        request = Request(
            prompt.messages, prompt.functions, most, excluded, callable=self.shown.callable
        )
        if self.tools.guest is not None:
            request = self.tools.guest.request(request)
        request = await self._with_pictures(request, model.mode)
        if model.mode != NATIVE and self._vectors is not None:
            mode = mode_named(model.mode)
            texts = mode.compared(request) if mode is not None else []
            request = replace(request, vectors=await self._vectors.of(texts))
        shown = ReplyKeeper(turn)
        kind = events.Thought if self._style.by_function(model.mode) else events.Text
        told = asyncio.get_running_loop().call_later(_QUIET_S, turn.tell_reading, prompt.tokens)
        reply: Reply | None = None
        try:
            async with turn.ending.interruption, shown:
                async for piece in model.stream(
                    request
                ):  # to its end, so that no task has to close it
                    told.cancel()
                    if isinstance(piece, Reply):
                        reply = piece
                        continue
                    if isinstance(piece, TextPiece):
                        shown.add(piece.text)
                    if not (
                        isinstance(piece, TextPiece) and written_calls(piece.text)
                    ):  # not an answer
                        await turn.tell_piece(piece, kind)
        except (
            Interrupted,
            ModelError,
        ):  # what the user saw is stored, so that a reload and the next step have it
            if shown.text:
                await turn.append([cut_off(shown.text)])
            raise
        finally:
            told.cancel()
        assert reply is not None, "a model's stream ends with its reply or an error"
        self.meter.count(turn, reply.usage, prompt.tokens, model)
        self._sight = _sight_of(request, reply)
        if held_back := turn.own_name.rest():
            turn.tell(kind(text=held_back))
        return reply


def _sight_of(request: Request, reply: Reply) -> dict[str, list[str]]:
    """Return the captions of the pictures that a model was shown, and of those that it was told of in words."""
    sight: dict[str, list[str]] = {}
    for message in request.messages:
        for picture in pictures_of(message):
            if not sight:
                sight = {SEEN: [], TOLD: []}
            key = SEEN if picture.digest in reply.seen else TOLD
            sight[key].append(picture.caption)
    return sight


class AgentModels:
    """The open models of an agent."""

    def __init__(
        self, open_model: OpenModel, release: ReleaseModel | None, named: Callable[[], str] = str
    ) -> None:
        """Create the models, none of them open. `release` is called with them at the end, instead of closing them.

        `named` returns the model that the agent's file names now.
        """
        self.line = ""
        self.endpoint_names: Callable[[], Awaitable[list[str]]] | None = None
        self.usual: Model | None = None
        self.programs: ProgramsOffer = "auto"
        self.chosen: str | None = None  # by a person, for this window; None is the usual one
        self._open = open_model
        self._release = release
        self._named = named
        self._opened_for = self._window_warning = ""
        self._other: Model | None = None

    @property
    def name(self) -> str:
        """The name of the model that answers; empty until one is opened."""
        return self.usual.name if self.usual else ""

    @property
    def context_limit(self) -> int:
        """The context window in tokens; 0 until a model is opened."""
        return self.usual.context_limit if self.usual else 0

    @property
    def mode(self) -> Mode:
        """The mode in which calls are currently sent."""
        return self.usual.mode if self.usual else "native"

    @property
    def is_due(self) -> bool:
        """True if the model that answers is not open yet, or the agent's file names another one now."""
        return self.usual is None or self._named() != self._opened_for

    def withheld(self) -> frozenset[str]:
        """Return the functions that the model that answers is not to have: programs, if it writes none."""
        return frozenset({RUN_PROGRAM}) if self.programs == "off" else frozenset()

    def window_warning(self, *, only_news: bool = False) -> str:
        """Return a warning if the open model's context window is a guess, with how to set it; otherwise an empty text.

        With `only_news`, also return an empty text if this workspace made the same guess before.
        """
        is_news = self.usual is not None and self.usual.window.is_news
        return self._window_warning if is_news or not only_news else ""

    async def change(self, name: str | None) -> None:
        """Open the model that answers from now on and release the previous one; if opening fails, keep it.

        Raises:
            ModelError: it is not available.
        """
        named = self._named()
        opened = await self._open(name)
        await self.aclose()
        self.chosen = name
        self.usual, self.line, self._opened_for = opened.model, opened.line, named
        self._window_warning = opened.model.window.warning(opened.model.name, opened.table)
        self.endpoint_names, self.programs = opened.endpoint_names, opened.programs

    async def other(self, name: str) -> Model:
        """Return the model for separate requests, opened on first use.

        Raises:
            ModelError: it is not available.
        """
        if self._other is None:
            self._other = (await self._open(name)).model
        return self._other

    async def aclose(self) -> None:
        """Release or close the models."""
        models, self._other = (
            [model for model in (self.usual, self._other) if model is not None],
            None,
        )
        if self._release is not None:
            self.usual = None
        for model in models:
            await (self._release(model) if self._release is not None else model.aclose())


class TokenMeter:
    """The meter of one agent's tokens and dollars; `correction` scales token estimates."""

    def __init__(self, prices: Mapping[str, "NamedModel"]) -> None:
        """Create the meter; `prices` are the `[models.NAME]` tables."""
        self.context_tokens = 0
        self.correction = 1.0
        self._prices = prices

    def correct(self, factor: float) -> None:
        """Scale the correction of token estimates by this factor, within bounds."""
        least, most = _CORRECTIONS
        self.correction = min(max(self.correction * factor, least), most)

    def charge(
        self, turn: Turn, usage: TokenUsage, model: Model, context_limit: int | None = None
    ) -> None:
        """Add the tokens and the cost of one request to the turn; 0 if no `[models.NAME]` has the model's price.

        `context_limit` is that of a step.
        """
        prices = (
            named.price
            for table, named in self._prices.items()
            if (named.name or table) == model.name
        )
        cost = 0.0
        if (price := next(filter(None, prices), None)) is not None:
            cost = price.of(prompt=usage.prompt, cached=usage.cached, completion=usage.completion)
        turn.count(usage, model.name, cost, context_limit)

    def count(self, turn: Turn, usage: TokenUsage, estimated: int, model: Model) -> None:
        """Count the tokens of a step, and adjust the correction by the estimate of its prompt."""
        self.context_tokens = usage.prompt + usage.completion
        if not usage.estimated and estimated > 0 and usage.prompt > 0:
            # Adjust by half of the deviation: single odd reports do not throw the estimate off.
            self.correct((1 + usage.prompt / estimated) / 2)
        self.charge(turn, usage, model, model.context_limit)


class ReplyKeeper:
    """The keeper of a reply's text while it arrives, in case the program is killed.

    Leave its block before you append the reply. A reply that arrives within a second is not stored. No piece waits for
    the disk, and writes are not flushed: what the system was given survives a crash of the program, but not a power
    cut.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._pieces: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add(self, text: str) -> None:
        """Add a piece, which is stored within a second."""
        self._pieces.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_S, self._begin)

    def _begin(self) -> None:
        self._timer, before = None, self._work
        self._work = asyncio.create_task(self._keep(before))

    async def _keep(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        turn = self._turn
        with suppress(StorageError):  # the next append reports it
            place = (turn.id, turn.attempt, turn.journal.n)
            if await turn.store.keep_streamed(*place, self.text):
                turn.ending.interruption.request()  # another process said so

    async def __aenter__(self) -> "ReplyKeeper":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._work is not None:
            await asyncio.wait({self._work})


# The functions that a step shows: chosen, written in the agent's style, limited to the room, with those of a guest.

_NOTHING_JOINED: Final[tuple[object, tuple[FunctionShown, ...]]] = (None, ())


class StepFunctions:
    """The functions of one agent as its model is shown them. Unchanged functions give the same object."""

    def __init__(
        self,
        shown: Shown,
        models: AgentModels,
        session: "AgentSession",
        settings: "Settings",
        tools: "ToolSources",
    ) -> None:
        self.shown = shown
        self._models = models
        self._session = session
        self._protocol = session.style
        self._settings = settings
        self.own_set = session.own_set
        self._tools = tools
        self._of_guest: tuple[FunctionShown, ...] = ()
        self._joined = _NOTHING_JOINED

    def choose(self, snapshot: "Snapshot") -> None:
        """Choose the functions that the next step shows.

        Raises:
            ModelError: those of a guest take more than half of the room for functions.
        """
        guest = self._tools.guest
        if guest is None:
            self._of_guest = ()
        elif guest.shown != self._of_guest:
            guest.must_fit(self._whole_room() // 2)
            self._of_guest = guest.shown
            self._joined = _NOTHING_JOINED
        self.shown.withhold(self._tools.withheld() | self._models.withheld())
        staying = self._tools.staying(snapshot)
        self.shown.choose(self.offered(snapshot), self.own_set.names.union(staying))

    def offered(self, snapshot: "Snapshot") -> Mapping[str, "Function"]:
        """Return the functions that can be shown: those of the snapshot, and those of other sources."""
        return self._tools.offered(snapshot)

    def schema_of(self, function: "Function") -> dict[str, Any]:  # Any: JSON Schema
        """Return the schema of a function's arguments as the agent's style offers it to the model."""
        return self._protocol.offered(function.parameters, self._models.mode)

    def all(self) -> tuple[FunctionShown, ...]:
        """Return the functions as the agent's style currently shows them, with those of a guest."""
        own = self._own()
        if not self._of_guest:
            return own
        if self._joined[0] is not own:
            self._joined = own, own + self._of_guest
        return self._joined[1]

    def instructions(self, mode: Mode) -> str:
        """Return the instructions that come first in the system message."""
        if self._settings.instructions:
            return self._settings.instructions
        # Only small models write under a schema: they get fewer instructions, which leaves room for the rest.
        if mode != NATIVE and (own := mode_named(mode)) is not None:
            return self._protocol.brief or own.instructions
        text = self._protocol.instructions or INSTRUCTIONS
        if not self._session.policy.grows:
            text = without_growing(text)
        if RUN_PROGRAM in self._models.withheld():
            return text.replace(ABOUT_PROGRAMS, "")
        about = ABOUT_PROGRAMS.replace(PROGRAM_LIMIT, f"{self._settings.sandbox.wall_s:g} s")
        return text.replace(ABOUT_PROGRAMS, about)

    def index(self, mode: Mode, *, is_kept: bool) -> str:
        """Return the index of the callable functions that are not shown as tools; empty if all are tools."""
        if mode != "native" or not self.shown.has_index:
            return ""
        most = int(self._settings.turn.index_tokens * BYTES_PER_TOKEN)
        return self.shown.index(min(most, self._whole_room() // 2), is_kept=is_kept).text

    def reply_tokens(self) -> int:
        """Return how many tokens of the context window a reply may take."""
        return self._settings.model.max_tokens or min(4096, self._models.context_limit // 4)

    def _own(self) -> tuple[FunctionShown, ...]:
        mode = self._models.mode
        if mode == "native" and self.shown.has_index:
            return self._protocol.shown(self.shown.tools, mode)
        line = self._protocol.shown(self.shown.line, mode)
        if self._models.usual is None:
            return line
        room = self._whole_room() - size_of(self._of_guest)
        shown = self.shown.fitting(mode, room, line, with_programs=self._models.programs == "on")
        # If not even the permanent functions fit, show all functions: the model then changes to the mode that needs few
        # tokens.
        return line if self._settings.model.mode == "auto" and size_of(shown) > room else shown

    def _whole_room(self) -> int:
        return function_room(
            self._models.context_limit, self.reply_tokens(), self.instructions(self._models.mode)
        )
