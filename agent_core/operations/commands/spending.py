"""`knapper cost`, `cap`, `pause` and `resume`: what models cost, the most that they may, and what runs by itself."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from agent_core.base.caps import AMOUNT_LIMIT, CAPS, WARNED_AT, Cap
from agent_core.base.clock import day_of, midnight
from agent_core.base.errors import UsageError
from agent_core.base.late import LateModule
from agent_core.base.matching import did_you_mean
from agent_core.base.offload import aside
from agent_core.base.records import asdict, replace
from agent_core.base.untrusted import one_line
from agent_core.operations.operation import Opens
from agent_core.operations.words import Word
from agent_core.storage import DropCap, PauseAll, ResumeAll, SetCap, SpentScope
from agent_core.views.result import Result
from agent_core.views.styled_lines import Line, Role, columns, line, money

from ..verb import ALWAYS, Door, OfAgent, slash, verb

if TYPE_CHECKING:  # slow to import
    from agent_core.model import prices
    from agent_core.operations import spending
    from agent_core.runtime import ledger
    from agent_core.storage import Store, folder
    from agent_core.workspace.state_store import WorkspaceState
else:
    prices = LateModule("agent_core.model.prices")
    spending = LateModule("agent_core.operations.spending")
    ledger = LateModule("agent_core.runtime.ledger")
    folder = LateModule("agent_core.storage.folder")

GROUPINGS: Final = ("day", "agent", "conversation", "turn")
NO_CAP: Final = "none"
USUAL_CAP: Final = "usual"
_MESSAGE_CHARS: Final = 40  # characters of a message
_KEY_CHARS: Final = 36  # of an id
_ROW_COST: Final = 40  # characters, as `aside` counts
CostBy = Annotated[
    str, Word(" ".join(GROUPINGS), click.Choice(GROUPINGS), "[day|agent|conversation|turn]")
]
CapName = Annotated[str, Word(" ".join(CAPS), metavar="NAME")]
CapAmount = Annotated[str, Word(f"{NO_CAP} {USUAL_CAP}", metavar="AMOUNT|none|usual")]


@slash(
    "cost [day|agent|conversation|turn]",
    "Show what each turn of this session cost, and all turns of the agent; or what was spent here by day, agent,"
    " conversation or turn, with the caps.",
    takes=" ".join(GROUPINGS),
    in_turn=True,
    shows=ALWAYS,
    page="the room Steps",
)
@verb(opens=Opens.NOTHING, scopes=("read",))
@click.option(
    "--last", type=click.IntRange(1, 10_000), default=30, show_default=True, help="At most so many."
)
async def cost(door: Door, by: CostBy = "day", *, last: int, agent: OfAgent) -> Result:
    """Show what models cost by day, agent, conversation or turn, and the caps. Money is counted where a price is known.

    Of one agent: --agent NAME. The caps are set with knapper cap.
    """
    async with door.state() as state:
        return await _costs(state, door, by, last, agent)


async def _costs(state: "WorkspaceState", door: Door, by: str, last: int, agent: str) -> Result:
    store = state.store
    settings = state.settings
    known = prices.Prices(state.root, settings.models, settings.priced_in_file)
    table = spending.CostTable(known)
    scope = await _seen(door, store, agent)
    if by == "day":
        since = partial(midnight, zone=settings.zone)
        for begun, use in await store.spent_by_day(last, scope, since):
            table.add(day_of(begun, settings.zone), use)
    else:
        for key, use in await store.spent_by(by, last, scope):
            table.add(key, use)
    for use in await store.spent_together(scope):
        table.add_to_total(use)
    shown = table.rows()
    names = await _names(store, by, [row.agent for row in shown])
    rules = await store.spending_rules()
    caps = settings.caps(rules.caps)
    spent = await ledger.Ledger(store, settings, known).spent_today(caps)
    document = {
        "by": by,
        "rows": [replace(row, message=names.get(row.agent, "")) for row in shown],
        "total": table.total,
        "unpriced": sorted(table.unpriced),
        "caps": [{"name": cap.name, **asdict(cap), "spent": spent.get(cap.name)} for cap in caps],
        "zone": settings.zone,
        "paused": rules.pause,
    }
    if not shown:
        hint = "No model was asked here yet. Next: knapper run"
        return Result(document, cap_lines(document), hint)
    lines = await aside(len(shown) * _ROW_COST, table_lines, by, document)
    return Result(document, [*lines, *cap_lines(document)])


async def _seen(door: Door, store: "Store", agent: str) -> SpentScope:
    """Return the requests that who asks may see: of its agents, and of no conversation that is private to another."""
    agents = door.owners
    if agent:
        agents = {agent} if agents is None or agent in agents else set()
    if door.token is None:
        return SpentScope(agents)
    lines = set[str]()
    for spender in await store.spenders():
        if agents is None or spender in agents:
            lines |= {spender, *await store.lines(spender, token=door.token)}
    return SpentScope(agents, lines)


async def _names(store: "Store", by: str, keys: Sequence[str]) -> dict[str, str]:
    """Return what conversations are called, or what began turns."""
    if by == "turn":
        return await store.turn_texts(keys)
    if by != "conversation":
        return {}
    names = dict[str, str]()
    for key in keys:
        row = await store.conversation(key) if key else None
        names[key] = "" if row is None else row.name
    return names


def table_lines(by: str, document: Mapping[str, Any]) -> list[Line]:  # Any: JSON
    """Return a row for each day, agent, conversation or turn, and their sum."""
    rows = list[list[str]]()
    for row in (*document["rows"], document["total"]):
        dollars = "" if row.cost is None else money(row.cost)
        counts = map("{:,}".format, (row.steps, row.prompt, row.cached, row.completion))
        named = [row.agent[:_KEY_CHARS], one_line(row.message, _MESSAGE_CHARS)]
        rows.append([*(named if row.agent else named[::-1]), *counts, dollars])
    heads = (by, "", "requests", "in", "cached", "out", "cost")
    lines = columns(rows, ("name", "", "dim", "", "dim", "", "strong"), heads=heads)
    if document["unpriced"]:
        models = ", ".join(document["unpriced"])
        lines.append(line(("dim", f"No price is known for {models}; prices.toml can say it.")))
    return lines


def cap_lines(document: Mapping[str, Any]) -> list[Line]:  # Any: JSON
    """Return a line for each cap, with what is spent of it today, and one if all that runs by itself is paused."""
    lines = []
    for row in document["caps"]:
        cap = Cap(*(row[name] for name in ("scope", "kind", "most", "is_set", "wanted")))
        spent = row["spent"]
        used = f"at most {cap.amount(cap.most)}" if spent is None else cap.share(spent)
        wide = ""
        if cap.wanted is not None:
            wide = f"; knapper.toml asks for {cap.amount(cap.wanted)}, and can only narrow"
        role: Role = "warn" if spent and spent >= WARNED_AT * cap.most else "dim"
        text = f"{used} for {cap.whose} (spending.{cap.name}){wide}"
        lines.append(line((role, text)))
    paused = document["paused"]
    return lines if paused is None else [*lines, paused_line(paused)]


def paused_line(why: str) -> Line:
    """Return a line that says that nothing runs by itself, and how to go on."""
    reason = f" ({one_line(why, 200)})" if why else ""
    return line(("warn", f"Paused{reason}: nothing runs by itself. Next: knapper resume"))


@slash(
    "cap NAME AMOUNT",
    "Set a cap on spending for yourself; `none` lifts one, `usual` forgets yours.",
)
@verb(opens=Opens.NOTHING, scopes=("admin",))
async def cap(door: Door, name: CapName, amount: CapAmount) -> Result:
    """Set a cap on what models may cost: turn_tokens, day_money, unattended_requests and the like.

    It is this user's own, kept in the state with a seal; a file that travels with the folder can only narrow it. `none`
    lifts the program's, `usual` forgets yours.
    """
    if name not in CAPS:
        known = f"A cap is one of {', '.join(CAPS)}."
        raise UsageError(
            f"There is no cap `{one_line(name, 60)}`.", fix=did_you_mean(name, CAPS, known)
        )
    write = DropCap(name) if amount == USUAL_CAP else SetCap(name, _amount(name, amount))
    async with door.state() as state:
        before = state.settings.caps((await state.store.spending_rules()).caps)
        await state.store.apply([write])
        caps = state.settings.caps((await state.store.spending_rules()).caps)
    now = _named(caps, name)
    was = _named(before, name)
    document = {"name": name, "most": now and now.most, "was": was and was.most}
    said = f"{now.amount(now.most)} for {now.whose}" if now else f"no cap on `spending.{name}`"
    lines = [line(("ok", "✓ "), said)]
    if isinstance(write, SetCap) and write.amount != (now.most if now else None):
        lower = "A flag, a variable or knapper.toml says what holds."
        lines.append(line(("warn", lower)))
    return Result(document, lines)


def _named(caps: Sequence[Cap], name: str) -> Cap | None:
    return next((cap for cap in caps if cap.name == name), None)


def _amount(name: str, text: str) -> float | None:
    if text == NO_CAP:
        return None
    try:
        amount = float(text.replace(",", "").replace("_", "").removeprefix("$"))
    except ValueError:
        amount = -1.0
    if not (0 <= amount <= AMOUNT_LIMIT) or (not name.endswith("_money") and amount != int(amount)):
        raise UsageError(
            f"A cap cannot be {one_line(text, 60)}.",
            fix="Give a number from 0 (which allows nothing), `none` or `usual`.",
        )
    return amount


@slash(
    "pause [WHY]",
    "Stop everything that runs by itself, in every window and process, until /resume.",
    in_turn=True,
)
@verb(opens=Opens.NOTHING, scopes=("edit",))
@click.argument("why", nargs=-1, metavar="[WHY]")
async def pause(door: Door, *, why: tuple[str, ...]) -> Result:
    """Stop everything that runs by itself, in every window and process: heartbeats, agents that others woke, scripts.

    Turns that run end at their next request; their work waits until knapper resume. You can go on talking.
    """
    reason = " ".join(why)
    async with door.state() as state:
        await state.store.apply([PauseAll(reason)])
        folder.ring(state.folder)
    return Result({"paused": reason}, [paused_line(reason)])


@slash("resume", "Let everything run again that runs by itself.", in_turn=True)
@verb(opens=Opens.NOTHING, scopes=("edit",))
async def resume(door: Door) -> Result:
    """Let everything run again that runs by itself, after knapper pause."""
    async with door.state() as state:
        was = (await state.store.spending_rules()).pause
        await state.store.apply([ResumeAll()])
        folder.ring(state.folder)
    said = "Nothing was paused." if was is None else "What runs by itself goes on."
    return Result({"resumed": was is not None}, [line(("ok", "✓ "), said)])
