"""The cost of turns, in a session or in total: tokens, and money if the model's price is known."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_core.base import events
from agent_core.base.events import Event, Usage
from agent_core.base.matching import MARK
from agent_core.base.records import dataclass
from agent_core.base.settings import NamedModel
from agent_core.base.untrusted import one_line
from agent_core.model.prices import FILE, Prices
from agent_core.storage import Entry, SpentRow, Store
from agent_core.storage.journal import MessageEntry, NoticeEntry, read_as, text_of
from agent_core.views.styled_lines import Line, columns, counted, line, money

from .attachments import headline
from .history_pages import read_pages

_MOST_CHARS = 200  # of a message
HEADS = ("agent", "message", "steps", "in", "cached", "out", "cost")


@dataclass(slots=True)
class TurnCost:
    """The usage of one turn; `cost` is None if a price is unknown. `seconds`: from its beginning to its last reply."""

    agent: str = ""
    message: str = ""
    steps: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    cost: float | None = 0.0
    is_estimated: bool = False
    turn: str = ""
    seconds: float = 0.0

    def add(self, turn_cost: "TurnCost") -> None:
        """Add the usage of another turn."""
        self.steps += turn_cost.steps
        self.prompt += turn_cost.prompt
        self.cached += turn_cost.cached
        self.completion += turn_cost.completion
        self.cost = (
            None if self.cost is None or turn_cost.cost is None else self.cost + turn_cost.cost
        )
        self.is_estimated |= turn_cost.is_estimated
        self.seconds += turn_cost.seconds

    @property
    def tokens(self) -> int:
        """The total number of tokens."""
        return self.prompt + self.completion


class Spending:
    """The turns of a session, recorded from their events."""

    def __init__(
        self, root: Path, named: Mapping[str, NamedModel] | None = None, most: int = 0
    ) -> None:
        """Create the record. `named` are the models in the settings; their prices override those in files. If there are
        more than `most` turns, the oldest are combined.
        """
        self.turns: list[TurnCost] = []
        self._most = most
        self.by_model: dict[str, TurnCost] = {}
        self.unpriced: set[str] = set()
        self._began = 0.0
        self._events: set[str] = set()  # names of the events that began turns without a message
        self._prices = Prices(root, named)

    def hear(self, event: Event, agent: str, model: str) -> None:
        """Count the usage in an event."""
        match event:
            case events.TurnStarted():
                said = headline(event.message)[:_MOST_CHARS]
                self._events |= set() if said else {event.event}
                self.turns.append(TurnCost(event.agent, said or event.event, turn=event.turn))
                if 0 < self._most < len(self.turns):
                    self.turns[:2] = [_sum(event.agent, self.turns[:2], "earlier turns")]
            case events.Usage():
                if not self.turns:
                    self.turns.append(TurnCost(agent))
                name = event.model or model
                prompt, cached, wrote = (
                    event.prompt_tokens,
                    event.cached_tokens,
                    event.completion_tokens,
                )
                usage = TurnCost("", "", 1, prompt, cached, wrote, is_estimated=event.estimated)
                price = self._prices.of(name)
                if price is None and usage.tokens:
                    self.unpriced.add(name)
                if usage.tokens:
                    usage.cost = (
                        price.of(prompt=prompt, cached=cached, completion=wrote) if price else None
                    )
                self.turns[-1].add(usage)
                self.by_model.setdefault(name, TurnCost(name, "by this model")).add(usage)
            case _:
                pass

    def read(self, journal: Iterable[Entry], agent: str, turn: str = "") -> str:
        """Count the usage in a part of an agent's journal that begins in a `turn`; return the turn that it ends in.

        Imported entries were paid for elsewhere.
        """
        for entry in journal:
            if entry.is_imported:
                continue
            if entry.turn != turn:
                self._began = entry.at
                turn = entry.turn
                started = events.TurnStarted(turn=turn, agent=agent, message=text_of(entry))
                self.hear(started, agent, "")
            used = read_as(Usage, entry)
            if used is not None:
                self.hear(used, agent, used.model)
                self.turns[-1].seconds = entry.at - self._began
        return turn

    def reread(self, said: Mapping[str, Sequence[str]]) -> None:
        """After something was forgotten, mask the messages that the record no longer contains."""
        for turn in self.turns:
            if turn.message not in {"", *self._events} and not any(
                turn.message in text for text in said[turn.agent]
            ):
                turn.message = MARK

    @property
    def total(self) -> TurnCost:
        """The usage of all turns together."""
        return _sum("", self.turns)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the turns and their sum. `cost` is in US dollars, or None if a price is unknown."""
        models = {name: self.by_model[name] for name in sorted(self.by_model)}
        return {
            "turns": self.turns,
            "total": self.total,
            "models": models,
            "unpriced": sorted(self.unpriced),
        }


class CostTable:
    """What requests cost, by anything that they can be counted to; its rows name that in `agent`."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._rows: dict[str, TurnCost] = {}
        self.unpriced: set[str] = set()

    def add(self, key: str, spent: SpentRow) -> None:
        """Count a request."""
        usage = TurnCost(key, "", 1, spent.prompt, spent.cached, spent.completion)
        price = self._prices.of(spent.model)
        if usage.tokens and price is None:
            self.unpriced.add(spent.model)
        if usage.tokens:
            usage.cost = (
                None
                if price is None
                else price.of(prompt=spent.prompt, cached=spent.cached, completion=spent.completion)
            )
        self._rows.setdefault(key, TurnCost(key)).add(usage)

    def rows(self, last: int) -> list[TurnCost]:
        """Return the last rows, in the order in which they began."""
        return [*self._rows.values()][-last:]

    @property
    def total(self) -> TurnCost:
        """The sum of all rows."""
        return _sum("", [*self._rows.values()], "together")


async def spent_since_ever(
    store: Store, agent: str, spending: Spending, token: str | None = None
) -> Spending:
    """Return the record of a new `Spending`, filled with all turns of an agent, in all its conversations.

    With a `token`, those in conversations that are private to another one are left out.
    """
    kinds = (MessageEntry.kind, NoticeEntry.kind, Usage.kind)
    for each in (agent, *await store.lines(agent, token=token)):
        turn = ""
        since = await store.branched_at(each)
        async for entries in read_pages(store, each, kinds=kinds, since=since, with_removed=True):
            turn = spending.read(entries, agent, turn)
    return spending


def _sum(agent: str, turns: Sequence[TurnCost], title: str = "") -> TurnCost:
    total = TurnCost(agent, title or counted(len(turns), "turn"))
    for turn in turns:
        total.add(turn)
    return total


def spending_lines(spending: Spending) -> list[Line]:
    """Return a row for each turn, each agent and, if several were used, each model, with notes on what is not known."""
    if not spending.turns:
        return [line(("dim", "Nothing was asked in this session yet."))]
    names = list(dict.fromkeys(turn.agent for turn in spending.turns))
    sums = [_sum(name, [turn for turn in spending.turns if turn.agent == name]) for name in names]
    sums += spending.by_model.values() if len(spending.by_model) > 1 else ()
    rows = []
    for turn in (*spending.turns, *sums):
        about = "≈" if turn.is_estimated else ""
        figures = ["", "", "", "", "not counted"]
        if turn.steps:
            cached = f"{turn.cached:,}" if turn.cached else ""
            cost = "" if turn.cost is None else money(turn.cost)
            figures = [
                str(turn.steps),
                f"{about}{turn.prompt:,}",
                cached,
                f"{about}{turn.completion:,}",
                cost,
            ]
        rows.append([turn.agent, one_line(turn.message, 40), *figures])
    lines = columns(rows, ("name", "", "dim", "", "dim", "", "strong"), heads=HEADS)
    for at in range(len(lines) - len(sums), len(lines)):
        lines[at] = tuple(("strong", text) for _, text in lines[at])
    if spending.unpriced:
        models = ", ".join(sorted(spending.unpriced))
        lines.append(
            line(
                (
                    "dim",
                    f"No price is known for {models}; {FILE} or [models.NAME] in the workspace can say it.",
                )
            )
        )
    if any(not turn.steps for turn in spending.turns):
        lines.append(
            line(("dim", "Not counted: it ended before the model's first reply was complete."))
        )
    if any(turn.is_estimated for turn in spending.turns):
        lines.append(line(("dim", "≈: estimated, because the endpoint did not report it.")))
    return lines


def ever_line(agent: str, spending: Spending) -> Line:
    """Return a line with the total cost of all turns of an agent, including earlier sessions."""
    total = spending.total
    about, cost = (
        "≈" if total.is_estimated else "",
        "price unknown" if total.cost is None else money(total.cost),
    )
    cost = "not counted" if spending.turns and not total.steps else cost
    read = f"{about}{total.prompt:,} tokens in ({total.cached:,} cached), {about}{total.completion:,} out"
    return line(
        (
            "dim",
            f"Since ever, {agent}: {counted(len(spending.turns), 'turn')}, {total.steps} steps, {read}, {cost}.",
        )
    )


def describe_price(model: NamedModel) -> str:
    """Return a description of a named model, with its price if known."""
    price = model.price
    costs = f"${price.input:g} in, ${price.output:g} out for a million tokens" if price else ""
    return ", ".join(
        filter(None, [model.name or "", f"at {model.base_url}" if model.base_url else "", costs])
    )


def short(cost: TurnCost) -> str:
    """Return `12k tokens $0.03` for the status bar."""
    if not cost.tokens:
        return ""
    count = f"{cost.tokens / 1e6:.1f}M" if cost.tokens >= 1e6 else f"{cost.tokens / 1e3:.1f}k"
    return f"{count} tokens" + (f" {money(cost.cost)}" if cost.cost else "")
