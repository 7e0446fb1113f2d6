"""The ledger of a workspace: what a request to a model may take is reserved before it is sent, and settled after it.

Every model of the workspace is opened through it (`MeteredModel`), so that no request passes by it. Reservations hold
for all processes: where the rest of a cap is smaller than what a request may take, one request at a time is sent, so
that an overrun is one reply.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_core.base.caps import WARNED_AT, Cap, Payer, payer
from agent_core.base.clock import Clock, midnight
from agent_core.base.errors import KnapperError, NothingLeft, StorageError
from agent_core.base.messages import Notice
from agent_core.base.records import dataclass, field, replace
from agent_core.base.settings import ModelPrice
from agent_core.context import BYTES_PER_TOKEN
from agent_core.context.history import size_of
from agent_core.model.reply import CallPiece, Mode, Model, Piece, Reply, TextPiece, ThoughtPiece
from agent_core.model.request import FunctionShown, Preparing, Request, Tell
from agent_core.storage import BEAT_S, ModelUse, SpentRow, Store, Total

if TYPE_CHECKING:
    from agent_core.base.settings import Settings
    from agent_core.model.prices import Prices
    from agent_core.model.tokens import Window

_REPLY_PART: Final = 4
"""The part of the window that a reply may take, if no setting says so: a quarter."""
_LOOKS_S: Final = 0.05  # pause while another request may take the rest of a cap
_LOOKS_AT_MOST_S: Final = 1.0
WAITS: Final = "another request, which may take the rest of a cap"
_RAISE: Final = "To go on, raise it and say so: knapper cap {} AMOUNT"
NO_PRICE: Final = ModelPrice(input=0, output=0)
_RESUME: Final = "Type: knapper resume"


@dataclass(slots=True)
class _Verdict:
    """What the caps say of a request: it waits for another, is stopped by one of them, or may be sent."""

    waits: bool = False
    stopped: Cap | None = None
    spent: float = 0.0
    left: list[str] = field(default_factory=list)
    uncounted: list[Cap] = field(default_factory=list)


@dataclass(slots=True)
class _Reserved:
    """A request that may be sent: whose it is, and the caps that it is under."""

    row: SpentRow
    caps: Sequence[Cap] = ()
    left: str = ""
    chars: int = 0  # of the reply so far
    is_whole: bool = False
    is_over: bool = False

    def count(self, piece: Piece) -> None:
        """Count a piece of the reply, of which the last has what the request took."""
        match piece:
            case Reply(usage=usage):
                self.row = replace(
                    self.row,
                    prompt=usage.prompt,
                    cached=usage.cached,
                    completion=usage.completion,
                )
                self.is_whole = self.is_over = True
            case TextPiece() | ThoughtPiece():
                self.chars += len(piece.text)
            case CallPiece():
                self.chars += len(piece.arguments)
            case _:
                pass

    def break_off(
        self, model: Model, request: Request, ledger: "Ledger", *, is_refused: bool = False
    ) -> None:
        """Estimate what a request without a whole reply took: nothing if it was refused before anything came."""
        if self.is_over:
            return
        self.is_over = True
        row = ledger.estimated(self.row, model, request)
        prompt = 0 if is_refused and not self.chars else row.prompt
        self.row = replace(row, prompt=prompt, completion=int(self.chars / BYTES_PER_TOKEN))


class Ledger:
    """What is spent on models in one workspace, and what may be."""

    def __init__(
        self, store: Store, settings: "Settings", prices: "Prices", clock: Clock | None = None
    ) -> None:
        """Create the ledger; `prices` are those of the workspace."""
        self.store = store
        self._settings = settings
        self._prices = prices
        self._clock = clock or Clock()
        self._kept: Mapping[str, float | None] | None = None  # for which the caps are those below
        self._caps: tuple[Cap, ...] = ()

    def since(self, at: float) -> float:
        """Return when the day of a moment began, as far as caps go."""
        return midnight(at, self._settings.zone_of_caps)

    async def spent_today(self, caps: Sequence[Cap]) -> dict[str, float]:
        """Return what is spent and reserved of the caps of a day, by their names."""
        of_day = [cap for cap in caps if cap.scope in ("day", "unattended")]
        totals = await self.store.spent(Payer(), self.since, {cap.scope for cap in of_day})
        return {cap.name: self._amount(cap, totals[cap.scope]) for cap in of_day}

    async def reserve(self, model: Model, request: Request) -> _Reserved:
        """Reserve what a request may take; wait while others may take the rest of a cap.

        Raises:
            NothingLeft: a cap is reached, or everything is paused that runs by itself.
        """
        who = payer()
        row = SpentRow(self._clock.new_id(), who, model.name)
        rules = await self.store.spending_rules()
        if who.is_unattended and rules.pause is not None:
            reason = f": {rules.pause}" if rules.pause else ""
            what = f"Everything that runs by itself is paused{reason}."
            raise NothingLeft(what, fix=_RESUME, is_paused=True)
        if rules.caps != self._kept:
            self._kept = rules.caps
            self._caps = self._settings.caps(rules.caps)
        caps = self._caps
        if not who.is_unattended:
            caps = tuple(cap for cap in caps if cap.scope != "unattended")
        if not caps:
            return _Reserved(row)
        row = self.estimated(row, model, request)
        verdict = await self._admitted(row, caps)
        if verdict.uncounted and who.told is not None and model.name not in who.said:
            who.said.add(model.name)
            await who.told.warn(*_uncounted(model.name, verdict.uncounted))
        left = f"Left before a cap ends this: {'; '.join(verdict.left)}." if verdict.left else ""
        return _Reserved(row, caps, left)

    def estimated(self, row: SpentRow, model: Model, request: Request) -> SpentRow:
        """Return the row with an estimate of the prompt, and with the most that prompt and reply can take.

        A token has at least a byte.
        """
        size = sum(map(size_of, request.messages)) + model.overhead(request.functions)
        longest = request.max_tokens or self._settings.model.max_tokens
        longest = longest or model.context_limit // _REPLY_PART
        return replace(row, prompt=int(size / BYTES_PER_TOKEN), most_in=size, most_out=longest)

    async def _admitted(self, row: SpentRow, caps: Sequence[Cap]) -> _Verdict:
        decide = partial(self._decide, row, caps)
        verdict, is_first = await self.store.reserve(row, self.since, decide)
        with ExitStack() as shown:
            if verdict.waits and row.payer.told is not None:
                shown.enter_context(row.payer.told.waiting(WAITS))
            pause = _LOOKS_S
            while verdict.waits:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LOOKS_AT_MOST_S)
                verdict, is_first = await self.store.reserve(row, self.since, decide)
        if verdict.stopped is not None:
            raise _stop(verdict.stopped, verdict.spent)
        if is_first and row.payer.told is not None and self._prices.for_cap(row.model) != NO_PRICE:
            own = next((cap for cap in caps if cap.scope == "unattended"), None)
            if own is not None:
                await row.payer.told.warn(*_first_unattended(own))
        return verdict

    def _decide(self, row: SpentRow, caps: Sequence[Cap], total: Total) -> tuple[bool, _Verdict]:
        """Decide whether a request may be sent now, from what is spent and reserved."""
        mine = ModelUse(row.model, True, 1, row.prompt, 0, 0, row.most_in, row.most_out)
        verdict = _Verdict()
        for cap in caps:
            spent, reserved = self._split(cap, total(cap.scope))
            if spent >= cap.most:
                return False, _Verdict(stopped=cap, spent=spent)
            if reserved and spent + reserved + self._amount(cap, [mine]) > cap.most:
                verdict.waits = True
            if cap.is_set or spent >= WARNED_AT * cap.most:
                rest = max(cap.most - spent - reserved, 0)
                verdict.left.append(f"{cap.share(rest)} for {cap.whose}")
            if cap.kind == "money" and self._prices.for_cap(row.model) is None:
                verdict.uncounted.append(cap)
        return not verdict.waits, verdict

    def _split(self, cap: Cap, uses: Sequence[ModelUse]) -> tuple[float, float]:
        """Return the amount of a cap's kind that is spent, and that is reserved for requests that are under way."""
        spent = [use for use in uses if not use.is_open]
        return self._amount(cap, spent), self._amount(cap, uses) - self._amount(cap, spent)

    def _amount(self, cap: Cap, uses: Sequence[ModelUse]) -> float:
        """Return the amount of a cap's kind; of requests that are under way, what they may take at most."""
        if cap.kind == "requests":
            return sum(use.requests for use in uses)
        if cap.kind == "tokens":
            return sum(
                use.most_in + use.most_out if use.is_open else use.prompt + use.completion
                for use in uses
            )
        return sum(self._cost(use) for use in uses)

    def _cost(self, use: ModelUse) -> float:
        price = self._prices.for_cap(use.model)
        if price is None:
            return 0.0
        if use.is_open:
            return price.of(prompt=use.most_in, cached=0, completion=use.most_out)
        return price.of(prompt=use.prompt, cached=use.cached, completion=use.completion)

    async def settle(self, reserved: _Reserved) -> None:
        """Store what a request took, and warn where that brought a cap to four fifths."""
        row = reserved.row
        scopes = sorted({cap.scope for cap in reserved.caps})
        totals = await self.store.settle_request(row, self.since, scopes)
        told = row.payer.told
        if told is None or not reserved.is_whole:
            return
        mine = ModelUse(row.model, False, 1, row.prompt, row.cached, row.completion)
        for cap in reserved.caps:
            spent, _ = self._split(cap, totals[cap.scope])
            own = self._amount(cap, [mine])
            if spent - own < WARNED_AT * cap.most <= spent < cap.most:
                await told.warn(
                    f"{cap.share(spent)} are spent for {cap.whose}.",
                    _RAISE.format(cap.name),
                )

    def metered(self, model: Model) -> Model:
        """Return a model whose requests are reserved and settled here."""
        return (
            _PreparingModel(model, self)
            if isinstance(model, Preparing)
            else MeteredModel(model, self)
        )


def _stop(cap: Cap, spent: float) -> NothingLeft:
    """Return the error for a cap that is reached, with how to go on."""
    notes = []
    if cap.wanted is not None:
        wanted = cap.amount(cap.wanted)
        notes.append(f"knapper.toml asks for {wanted}, but a file can only narrow a cap.")
    if cap.scope in ("day", "unattended"):
        notes.append("It is new at midnight.")
    fix = " ".join([*notes, _RAISE.format(cap.name)])
    if not cap.most:
        return NothingLeft(
            f"`spending.{cap.name}` is 0: no model is asked for {cap.whose}.", fix=fix
        )
    what = f"The cap of {cap.amount(cap.most)} for {cap.whose} is reached: {cap.amount(spent)} are spent."
    return NothingLeft(what, fix=fix)


def _first_unattended(cap: Cap) -> tuple[str, str]:
    """Return what is told at the first turn that nobody watches, and what to do about it."""
    return (
        f"Turns that nobody watches may spend {cap.amount(cap.most)} a day.",
        f"To change it: knapper cap {cap.name} AMOUNT",
    )


def _uncounted(model: str, caps: Sequence[Cap]) -> tuple[str, str]:
    """Return what is told of caps on money that an unknown price makes useless, and what to do about it."""
    named = ", ".join(f"`spending.{cap.name}`" for cap in caps)
    return (
        f"No price is known for {model}, so its money cannot be counted: {named} does not stop it.",
        "Say the price in [models.NAME] or prices.toml, or cap the tokens.",
    )


class MeteredModel:
    """A model of a workspace: each request is reserved in the ledger before it is sent, and settled after it."""

    def __init__(self, model: Model, ledger: Ledger) -> None:
        """Create it around the model that answers."""
        self._model = model
        self._ledger = ledger

    @property
    def name(self) -> str:
        """The model's name at its endpoint."""
        return self._model.name

    @property
    def mode(self) -> Mode:
        """The mode in which calls are transmitted."""
        return self._model.mode

    @property
    def context_limit(self) -> int:
        """The size of the model's window in tokens."""
        return self._model.context_limit

    @property
    def window(self) -> "Window":
        """The window with the origin of its size."""
        return self._model.window

    def overhead(self, functions: tuple[FunctionShown, ...]) -> int:
        """Return the bytes of a request beyond instructions and messages."""
        return self._model.overhead(functions)

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        """Yield the pieces of one reply. What is left of the caps is told at the end of the request.

        Raises:
            NothingLeft: a cap or a pause keeps the request from being sent.
            ModelError: as the model itself does.
        """
        reserved = await self._ledger.reserve(self._model, request)
        if reserved.left and not request.is_apart:
            request = replace(request, messages=(*request.messages, Notice(reserved.left)))
        beat = asyncio.create_task(self._beat(reserved)) if reserved.caps else None
        try:
            async with aclosing(self._model.stream(request)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    reserved.count(piece)
                    yield piece
        except KnapperError:
            reserved.break_off(self._model, request, self._ledger, is_refused=True)
            raise
        finally:
            if beat is not None:
                beat.cancel()
            reserved.break_off(self._model, request, self._ledger)
            await self._ledger.settle(reserved)

    async def _beat(self, reserved: _Reserved) -> None:
        """Show that the request is under way, as long as it is."""
        while True:
            await asyncio.sleep(BEAT_S)
            with suppress(StorageError):  # the settlement reports it
                await self._ledger.store.keep_reserved(reserved.row.id)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()


class _PreparingModel(MeteredModel):
    """A metered model that can read the beginning of its requests in advance, which costs nothing."""

    async def prepare(self, request: Request, tell: Tell) -> None:
        """Prefill the model's prompt cache.

        Raises:
            ModelError: that failed.
        """
        assert isinstance(self._model, Preparing)
        await self._model.prepare(request, tell)
