"""Caps on what models may cost: they hold for all turns of a workspace, and a turn that reaches one ends whole."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent_core import Workspace
from agent_core.base.clock import Clock
from agent_core.base.errors import SettingsError
from agent_core.base.events import Event, TurnEnded, Warned
from agent_core.base.settings import load
from agent_core.model.prices import Prices
from agent_core.runtime.agent import Agent, Origin
from agent_core.runtime.taken_up import JOB
from agent_core.storage import DropCap, PauseAll, ResumeAll, SetBeat, SetCap, SpentRow
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Wanted, scripted
from tests.kit.desk import Desk, ended, of
from tests.kit.waiting import until_it_is

PLAIN = Say("Yes.", usage=(900, 100))


def warnings(events: list[Event]) -> list[str]:
    """Return the warnings of a turn."""
    return [event.text for event in of(Warned, events)]


def tail(seen: Seen) -> str:
    """Return the last line of a request."""
    return str(seen.messages[-1]["content"]).split("\n")[-1]


async def spent(desk: Desk) -> list[SpentRow]:
    """Return the requests on record."""
    return await desk.workspace.store.requests()


async def test_a_turn_that_reaches_its_cap_ends_whole_and_says_how_to_go_on(
    at_desk: OpenDesk,
) -> None:
    looks = Ask(Wanted("list_functions", {"pattern": "x"}), usage=(900, 100))
    desk = await at_desk([looks, PLAIN], spending__turn_tokens=1_000)
    events = await desk.say("Is there one?")
    assert ended(events).reason == "limits"
    (stop,) = [text for text in warnings(events) if "is reached" in text]
    assert "1,000 tokens for this turn" in stop
    assert "knapper cap turn_tokens" in stop
    assert ended(await desk.say("Go on.")).reply == "Yes."


async def test_without_a_cap_nothing_is_told_and_the_spending_is_on_record(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([PLAIN])
    events = await desk.say("Hello?")
    assert tail(desk.model.requests[0]) == "Hello?"
    assert warnings(events) == []
    (row,) = await spent(desk)
    assert (row.agent, row.payer.line, row.model) == ("main", "main", "scripted")
    assert (row.prompt, row.completion, row.payer.is_unattended) == (900, 100, False)


async def test_the_model_reads_what_is_left_at_the_end_of_a_request_and_not_in_the_system_message(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([PLAIN, PLAIN], spending__day_tokens=5_000)
    await desk.say("Hello?")
    await desk.say("And now?")
    first, second = (tail(seen) for seen in desk.model.requests)
    assert "5,000 of 5,000 tokens for today" in first
    assert "4,000 of 5,000 tokens for today" in second
    systems = [
        message
        for seen in desk.model.requests
        for message in seen.messages
        if message["role"] == "system"
    ]
    assert not any("Left before a cap" in str(message["content"]) for message in systems[:1])
    history = [message.text for message in await desk.agent.history()]
    assert history == ["Hello?", "Yes.", "And now?", "Yes."]


async def test_four_fifths_of_a_cap_are_told_once(at_desk: OpenDesk) -> None:
    desk = await at_desk([PLAIN] * 4, spending__conversation_tokens=4_900)
    told = [warnings(await desk.say(f"Number {n}?")) for n in range(4)]
    assert [len(each) for each in told] == [0, 0, 0, 1]
    assert "4,000 of 4,900 tokens" in told[3][0]


@pytest.mark.parametrize("cap", ["turn_tokens", "day_requests", "agent_money"])
async def test_a_cap_of_zero_asks_no_model_and_says_so(at_desk: OpenDesk, cap: str) -> None:
    desk = await at_desk([], **{f"spending__{cap}": 0})
    events = await desk.say("Hello?")
    assert ended(events).reason == "limits"
    assert f"`spending.{cap}` is 0" in warnings(events)[-1]
    assert desk.model.requests == []


async def test_requests_are_counted_and_the_last_one_is_sent(at_desk: OpenDesk) -> None:
    desk = await at_desk([PLAIN] * 2, spending__day_requests=2)
    reasons = [ended(await desk.say("Hello?")).reason for _ in range(3)]
    assert reasons == ["replied", "replied", "limits"]


async def test_a_cap_on_money_counts_by_the_price_of_the_model(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text("[models]\nscripted = { input = 1000, output = 1000 }\n")
    desk = await at_desk([PLAIN] * 2, spending__agent_money=1.5)
    reasons = [ended(await desk.say("Hello?")).reason for _ in range(3)]
    assert reasons == ["replied", "replied", "limits"]
    assert "$0.5000 of $1.50 for this agent" in tail(desk.model.requests[1])


async def test_with_an_unknown_price_tokens_are_counted_and_money_is_said_not_to_be(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([PLAIN], spending__day_money=0.01, spending__day_tokens=1_000)
    events = await desk.say("Hello?")
    assert ended(events).reason == "replied"
    (told,) = [text for text in warnings(events) if "price" in text]
    assert "scripted" in told
    assert "spending.day_money" in told
    assert ended(await desk.say("And now?")).reason == "limits"


async def test_a_helper_is_paid_by_the_turn_that_calls_it(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "helper_judge.toml").write_text(
        'purpose = "Judges."\nresult = "bool"\n[inputs]\ntext = "str: What to judge."\n'
    )
    give = Ask(Wanted("give_result", {"result": True}), usage=(900, 100))
    call = Ask(Wanted("helper_judge", {"text": "x"}), usage=(900, 100))
    desk = await at_desk([call, give], spending__turn_tokens=1_900)
    events = await desk.say("Judge it.")
    assert ended(events).reason == "limits"
    rows = await spent(desk)
    assert {row.payer.turn for row in rows} == {ended(events).turn}
    assert [row.agent for row in rows] == ["main", "main"]


async def test_what_a_request_took_that_was_interrupted_is_estimated(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Late.", pause_s=20)], spending__day_tokens=100_000)
    async for event in desk.agent.turn("Hello?"):
        if event.type in ("reading", "turn_started") and desk.model.requests:
            break
        if event.type == "turn_started":
            asyncio.get_running_loop().call_later(0.5, asyncio.create_task, desk.agent.interrupt())
    (row,) = await spent(desk)
    assert row.prompt > 500
    assert row.completion == 0


async def test_a_request_that_the_endpoint_refuses_costs_nothing(tmp_path: Path) -> None:
    flags = {"model.base_url": "http://127.0.0.1:9/v1", "model.name": "m", "model.retries": 0}
    async with Workspace.open(tmp_path, flags={**flags, "spending.day_tokens": 9_000}) as workspace:
        agent = await workspace.agent()
        events = [event async for event in agent.turn("Hello?")]
        assert ended(events).reason == "failed"
        rows = await workspace.store.requests()
        assert sum(row.prompt + row.completion for row in rows) == 0


# Who sets a cap.


def test_a_file_narrows_what_a_variable_says_and_never_widens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "knapper.toml").write_text(
        "[spending]\nday_tokens = 500\nturn_tokens = 50\nunattended_tokens = 9_000_000\n"
    )
    monkeypatch.setenv("KNAPPER_SPENDING_DAY_TOKENS", "100")
    caps = {cap.name: cap for cap in load(tmp_path, {"spending.turn_tokens": 80}).caps({})}
    assert caps["day_tokens"].most == 100
    assert caps["turn_tokens"].most == 50
    assert (caps["unattended_tokens"].most, caps["unattended_tokens"].wanted) == (
        2_000_000,
        9_000_000,
    )
    kept = {cap.name: cap.most for cap in load(tmp_path).caps({"unattended_tokens": None})}
    assert kept["unattended_tokens"] == 9_000_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[spending]\nday_tokens = -1\n", "spending.day_tokens"),
        ("[spending]\nday_token = 1\n", "day_tokens"),
        (f"[spending]\nday_tokens = 1{400 * '0'}\n", "spending.day_tokens"),
        (f"[spending]\nday_money = 1{400 * '0'}\n", "spending.day_money"),
        ("[spending]\nday_money = nan\n", "spending.day_money"),
        ("[spending]\nday_money = inf\n", "spending.day_money"),
        (f"[turn]\nmax_steps = 1{400 * '0'}\n", "turn.max_steps"),
        ("[models.m]\nprice = { input = nan, output = 1.0 }\n", "models.m.price.input"),
        ('zone = "Mars/Base"\n', "a time zone such as"),
        ('zone = "../../etc/passwd"\n', "a time zone such as"),
    ],
)
def test_a_cap_or_zone_that_cannot_be_is_refused_by_name(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "knapper.toml").write_text(text)
    with pytest.raises(SettingsError, match=said):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.toml", '[models]\n"gpt-4o" = { input = 0.0, output = 0.0 }\n'),
        ("prices.toml", '[models]\n"openai/gpt-4o-2024-08-06" = { input = 0.0, output = 0.0 }\n'),
        ("knapper.toml", '[models."gpt-4o"]\nprice = { input = 1e-300, output = 0.0 }\n'),
        ("knapper.toml", '[models.x]\nname = "gpt-4o"\nprice = { input = 0.0, output = 0.0 }\n'),
    ],
)
async def test_a_price_that_came_with_the_folder_widens_no_cap_on_money(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    dated = "openai/gpt-4o-2024-08-06"
    flags = {"model__name": dated, "spending__day_money": 0.05}
    reply = Say("Yes.", usage=(10_000, 2_000))  # $0.045
    with scripted([Repeat(reply)], models=(dated,)) as model:
        async with workspace_at(tmp_path, Time(1e9), model, **flags) as workspace:
            how = await reasons(await workspace.agent(), 3)
    assert how == ["replied", "replied", "limits"]


def test_the_users_own_price_is_the_one_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = '[models."gpt-4o"]\nprice = { input = 0.5, output = 0.5 }\n'
    (tmp_path / "knapper.toml").write_text(table)
    of_file = load(tmp_path)
    built_in = Prices(tmp_path).of("gpt-4o")
    assert Prices(tmp_path, of_file.models, of_file.priced_in_file).for_cap("gpt-4o") == built_in
    own = '{"gpt-4o": {"price": {"input": 1.0, "output": 1.0}}}'
    monkeypatch.setenv("KNAPPER_MODELS", own)
    mine = load(tmp_path)
    price = Prices(tmp_path, mine.models, mine.priced_in_file).for_cap("gpt-4o")
    assert price is not None
    assert (price.input, price.output) == (1.0, 1.0)


async def test_the_users_own_caps_hold_at_once_and_a_strangers_row_does_not(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([PLAIN])
    store = desk.workspace.store
    await store.apply([SetCap("day_requests", 0)])
    assert ended(await desk.say("Hello?")).reason == "limits"
    await store.apply([DropCap("day_requests")])
    assert ended(await desk.say("Hello?")).reason == "replied"
    await store._write(
        lambda session: session.all(
            "insert into cap (name, amount, at, seal) values ('unattended_tokens', null, 0, 'x')"
        )
    )
    assert (await store.spending_rules()).caps == {}


# Turns that nobody watches.


async def unwatched(desk: Desk, message: str) -> list[Event]:
    """Run a turn that a script begins."""
    before = desk.agent.origin
    desk.agent.origin = Origin(JOB)
    try:
        return await desk.say(message)
    finally:
        desk.agent.origin = before


async def test_turns_that_nobody_watches_have_a_cap_of_their_own_and_say_so_at_first(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([PLAIN] * 3, spending__unattended_tokens=2_000)
    first, second, third = [await unwatched(desk, "Go.") for _ in range(3)]
    assert sum("2,000 tokens a day" in text for text in warnings(first)) == 1
    assert not any("a day" in text for text in warnings(second))
    assert ended(third).reason == "limits"
    assert ended(await desk.say("I am here.")).reply == "Yes."


async def test_the_usual_cap_is_told_to_the_user_and_not_to_the_model(at_desk: OpenDesk) -> None:
    desk = await at_desk([PLAIN])
    events = await unwatched(desk, "Go.")
    assert "2,000,000 tokens a day" in warnings(events)[0]
    assert tail(desk.model.requests[0]) == "Go."


async def test_a_turn_of_a_timer_is_one_that_nobody_watches(at_desk: OpenDesk) -> None:
    desk = await at_desk([PLAIN], spending__unattended_requests=1)
    for _ in range(2):
        await desk.workspace.store.apply([SetBeat("main", 0.0, {"reason": "It is time."})])
        events = [event async for event in desk.agent.turn(None)]
    assert ended(events).reason == "limits"


async def test_paused_nothing_runs_by_itself_until_it_is_resumed(at_desk: OpenDesk) -> None:
    desk = await at_desk([PLAIN] * 2)
    store = desk.workspace.store
    await store.apply([PauseAll("holiday"), SetBeat("main", 0.0, {"reason": "It is time."})])
    assert [event async for event in desk.agent.turn(None)] == []
    assert await store.work() == []
    events = await unwatched(desk, "Go.")
    assert ended(events).reason == "limits"
    assert "holiday" in warnings(events)[-1]
    assert "knapper resume" in warnings(events)[-1]
    assert ended(await desk.say("I am here.")).reply == "Yes."
    await store.apply([ResumeAll()])
    assert [due.line for due in await store.work()] == ["main"]
    beat = [event async for event in desk.agent.turn(None)]
    assert ended(beat).reply == "Yes."


async def test_a_pause_ends_a_running_turn_at_its_next_request(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(Wanted("list_functions", {"pattern": "x"}), pause_s=1)])
    desk.agent.origin = Origin(JOB)

    async def pause() -> None:
        await until_it_is(lambda: desk.model.requests)
        await desk.workspace.store.apply([PauseAll()])

    paused = asyncio.create_task(pause())
    events = await desk.say("Go.")
    await paused
    assert ended(events).reason == "limits"
    assert len(desk.model.requests) == 1


# Days, by a clock of the test.


@dataclass
class Time:
    """A clock that the test sets."""

    at: float

    def now(self) -> float:
        """Return the time."""
        return self.at

    def set(self, text: str, zone: str = "UTC") -> None:
        """Set the clock to a moment in a time zone."""
        self.at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@asynccontextmanager
async def workspace_at(
    root: Path, time: Time, model: ScriptedModel, **flags: Any
) -> AsyncIterator[Workspace]:
    """Open a workspace whose clock is the test's."""
    given = {name.replace("__", "."): value for name, value in flags.items()}
    base = {"model.base_url": model.base_url, "model.name": "scripted", "model.stream": False}
    base |= {"model.context_tokens": 8_192, "memory.embedding": "none"}
    async with Workspace.open(root, flags=base | given, clock=Clock(now=time.now)) as workspace:
        yield workspace


async def reasons(agent: Agent, count: int) -> list[str]:
    """Return how so many turns ended."""
    turns = [[event async for event in agent.turn("Hello?")] for _ in range(count)]
    return [ended(events).reason for events in turns]


async def test_a_day_ends_at_midnight_where_the_workspace_is_also_after_a_restart(
    tmp_path: Path,
) -> None:
    time = Time(0)
    time.set("2026-11-29T23:50", "Europe/Berlin")
    flags = {"zone": "Europe/Berlin", "spending__day_tokens": 2_000}
    with scripted([Repeat(PLAIN)]) as model:
        async with workspace_at(tmp_path, time, model, **flags) as workspace:
            assert await reasons(await workspace.agent(), 3) == ["replied", "replied", "limits"]
        async with workspace_at(tmp_path, time, model, **flags) as workspace:
            agent = await workspace.agent()
            assert await reasons(agent, 1) == ["limits"]
            time.set("2026-11-30T00:00:01", "Europe/Berlin")
            assert await reasons(agent, 3) == ["replied", "replied", "limits"]


@pytest.mark.parametrize(
    ("zone", "how"),
    [("UTC", ["limits"]), ("Asia/Tokyo", ["replied"]), ("America/New_York", ["limits"])],
)
async def test_a_change_of_the_zone_changes_what_counts_to_the_day(
    tmp_path: Path, zone: str, how: list[str]
) -> None:
    time = Time(0)
    time.set("2026-11-29T14:30")  # 23:30 in Tokyo
    with scripted([Repeat(PLAIN)]) as model:
        async with workspace_at(tmp_path, time, model, zone="UTC") as workspace:
            await reasons(await workspace.agent(), 1)
        time.set("2026-11-29T15:30")
        flags = {"zone": zone, "spending__day_tokens": 1_000}
        async with workspace_at(tmp_path, time, model, **flags) as workspace:
            assert await reasons(await workspace.agent(), 1) == how


async def test_the_zone_in_the_workspaces_file_begins_no_other_day_of_a_cap(
    tmp_path: Path,
) -> None:
    now = datetime(2026, 11, 29, 14, 30).astimezone()  # by this machine's time
    zone = f"Etc/GMT-{(24 - now.astimezone(UTC).hour) % 24}"
    assert 0 <= now.astimezone(ZoneInfo(zone)).hour < 1, "there a day has just begun"
    time = Time(now.timestamp() - 3_600)
    with scripted([Repeat(PLAIN)]) as model:
        async with workspace_at(tmp_path, time, model) as workspace:
            await reasons(await workspace.agent(), 1)
        (tmp_path / "knapper.toml").write_text(f'zone = "{zone}"\n')
        time.at += 3_600
        flags = {"spending__day_tokens": 1_000}
        async with workspace_at(tmp_path, time, model, **flags) as workspace:
            assert await reasons(await workspace.agent(), 1) == ["limits"]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
async def test_a_day_of_23_or_25_hours_is_a_day(tmp_path: Path, day: str) -> None:
    time = Time(0)
    flags = {"zone": "Europe/Berlin", "spending__day_requests": 2}
    with scripted([Repeat(PLAIN)]) as model:
        time.set(f"{day}T00:00:01", "Europe/Berlin")
        async with workspace_at(tmp_path, time, model, **flags) as workspace:
            agent = await workspace.agent()
            assert await reasons(agent, 1) == ["replied"]
            time.set(f"{day}T23:59:59", "Europe/Berlin")
            assert await reasons(agent, 2) == ["replied", "limits"]


async def test_a_request_of_a_process_that_died_counts_with_its_estimate(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([PLAIN], spending__day_tokens=10_000)
    await desk.workspace.store._write(
        lambda session: session.all(
            "insert into spent (id, at, turn, line, unattended, model, prompt, cached, completion, most_in, most_out,"
            " beat) values ('x', ?, 't', 'other', false, 'scripted', 700, 0, 0, 9000, 9000, ?)",
            session.clock.now(),
            session.clock.now() - 61,
        )
    )
    await desk.say("Hello?")
    assert "9,300 of 10,000 tokens" in tail(desk.model.requests[0])


# A week of a workspace that works by itself, by a clock of the test.


async def test_a_week_by_itself_stays_under_the_cap_of_each_day(tmp_path: Path) -> None:
    time = Time(0)
    time.set("2026-11-23T00:00", "UTC")
    steps: Callable[[Seen], Say] = lambda seen: Say("Nothing new.", usage=(900, 100))  # noqa: E731
    with scripted([Repeat(steps)]) as model:
        flags = {"zone": "UTC", "memory__preset": "memgpt", "heartbeat__every_minutes": 60}
        async with workspace_at(
            tmp_path, time, model, **flags, spending__unattended_tokens=10_500
        ) as workspace:
            agent, reasons_of = await workspace.agent(), list[str]()
            await agent.session.schedule()
            for _ in range(7 * 24):
                time.at += 3_600
                async for event in agent.turn(None):
                    if isinstance(event, TurnEnded):
                        reasons_of.append(event.reason)
            rows = await workspace.store.requests()
    days: dict[int, int] = {}
    for row in rows:
        days[int(row.at // 86_400)] = (
            days.get(int(row.at // 86_400), 0) + row.prompt + row.completion
        )
    assert len(days) >= 7
    assert max(days.values()) <= 10_500 + 1_000
    assert reasons_of.count("limits") > 7
    assert all(row.payer.is_unattended for row in rows)
