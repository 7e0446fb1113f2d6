"""`growth.mask`: functions made by agents are hidden from some conversations, and their worth is reported."""

import json
import math
import random
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest

from agent_core.functions.service.function_facts import effects
from agent_core.functions.service.tending import TendingBudget
from agent_core.storage import ExposedTurn
from benchmarks.masking import named_wrongly, planted
from sandbox import Sandbox
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json
from tests.kit import Ask, Repeat, Say, Seen, Wanted, scripted
from tests.kit.desk import another, answers, desk
from tests.kit.program import knapper
from tests.kit.steps import Step

NAMES = [f"count_vowels{number}" for number in range(6)]
HELPER = NAMES[0]


def making(name: str) -> Ask:
    return Ask(Wanted("create_function", {"function_name": name, "function_code_with_docstring": another(name)}))


@pytest.fixture(scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory, one_sandbox: Sandbox) -> Path:
    """A workspace whose agent has made these functions in its first turn."""
    root = tmp_path_factory.mktemp("made")
    with scripted([*map(making, NAMES), Say("Made."), Say("Counted.")]) as model:
        async with desk(root, model, one_sandbox, growth__mask=0.5) as opened:
            await opened.say("Make functions that count the vowels in a text.")
            assert set(NAMES) <= set(opened.workspace.functions.names())
            await opened.say("Count the vowels in a text.")  # no draw could mask them in this conversation
            assert await opened.workspace._store.exposed_turns() == []
    return root


@pytest.fixture
def grown(made: Path, tmp_path: Path, at_desk: OpenDesk) -> OpenDesk:
    """What opens a copy of that workspace."""
    copytree(made, tmp_path, dirs_exist_ok=True)
    return partial(at_desk, growth__mask=0.5)


def system_of(seen: Seen) -> str:
    return str(seen.messages[0]["content"])


async def test_what_is_masked_is_in_no_index_of_its_conversation_and_is_recorded(grown: OpenDesk) -> None:
    listing = Ask(Wanted("list_functions", {"pattern": "count_vowels"}))
    desk = await grown([listing, Say("Listed."), Say("Again.")])
    await desk.agent.begin_anew()
    (listed,) = answers(await desk.say("Count the vowels in a text."))
    await desk.say("Count the vowels in a text again.")
    *_, one, two = await desk.workspace._store.exposed_turns()
    masked, shown = {name for name, _ in one.masked}, {name for name, _ in one.shown}
    assert masked | shown == set(NAMES)
    assert {name for name, _ in two.masked} == masked, "it holds for the whole conversation"
    assert [name for name in NAMES if name not in system_of(desk.model.requests[-1])] == sorted(masked)
    assert [name for name in NAMES if name not in listed] == sorted(masked)
    assert (one.requests, two.requests) == (2, 1)


async def test_a_masked_function_can_be_called_and_one_of_a_person_or_kept_at_hand_is_never_masked(
    grown: OpenDesk,
) -> None:
    calls = Ask(*(Wanted(name, {"text": "aeiou"}) for name in NAMES))
    desk = await grown([calls, Repeat(Say("Counted."))])
    await desk.agent.begin_anew()
    assert len([text for text in answers(await desk.say("Count the vowels in a text.")) if text.isdecimal()]) == 6
    await desk.agent.session.own_set.add(HELPER)
    desk.put("own.py", another("count_vowels_own"))
    await desk.workspace.functions.reload()
    for _ in range(8):
        await desk.agent.begin_anew()
        await desk.say("Count the vowels in a text.")
        *_, last = await desk.workspace._store.exposed_turns()
        assert {name for name, _ in last.shown | last.masked} == {*NAMES} - {HELPER}
        assert "count_vowels_own" in system_of(desk.model.requests[-1])


async def test_what_no_draw_could_mask_is_recorded_neither_as_shown_nor_as_masked(grown: OpenDesk) -> None:
    desk = await grown([Repeat(Say("Counted."))], standing__retire_days=1e-9)
    report = await desk.workspace.functions.tending.run(TendingBudget(), applies=True)
    archived = {step.function for step in report.steps if step.kind == "archive" and step.done}
    assert archived
    await desk.agent.begin_anew()
    await desk.say("Count the vowels in a text.")
    seen = await desk.workspace._store.exposed_turns()
    assert not archived & {name for turn in seen for name, _ in turn.shown | turn.masked}


async def test_what_a_small_model_is_not_told_of_counts_neither_as_shown_nor_as_masked(grown: OpenDesk) -> None:
    small = await grown([Repeat(in_json("Good."))], model__mode="constrained")
    before = len(await small.workspace._store.exposed_turns())
    await small.say("Who wrote Hamlet?")
    assert len(await small.workspace._store.exposed_turns()) == before
    await small.say("Count the vowels in a text.")
    *_, last = await small.workspace._store.exposed_turns()
    assert {name for name, _ in last.shown | last.masked} == set(NAMES)


async def test_a_users_verdict_counts_for_the_last_turn_that_called_the_function(grown: OpenDesk) -> None:
    desk = await grown([Ask(Wanted(HELPER, {"text": "aeiou"})), Repeat(Say("Counted."))])
    await desk.agent.begin_anew()
    await desk.say("Count the vowels in aeiou.")
    await desk.say("Count the vowels in a text.")
    await desk.workspace.functions.rate(HELPER, is_good=False)
    *_, rated, later = await desk.workspace._store.exposed_turns()
    assert (rated.is_right, later.is_right) == (False, None)
    assert rated.kind in NAMES


def test_an_effect_is_told_for_each_kind_of_request() -> None:
    counted = frozenset({("count", "v1")})
    turns = [
        ExposedTurn(f"{number}", "m", counted if is_shown else frozenset(), frozenset() if is_shown else counted, 1, 9)
        for number, is_shown in enumerate([True, False] * 20)
    ]
    helped = [replace(turn, kind="count", is_right=bool(turn.shown)) for turn in turns]
    harmed = [replace(turn, kind="other", is_right=bool(turn.masked)) for turn in turns]
    effect = effects([*helped, *harmed])["count", "v1"]
    assert effect.worth == "unknown"
    assert {kind: one.worth for kind, one in effect.kinds.items()} == {"count": "helps", "other": "harms"}


def idle_functions(seed: int) -> list[ExposedTurn]:
    """Turns of 16 conversations, which differ by their subjects, with ten functions that do nothing."""
    chance = random.Random(seed)
    functions, turns = [(f"f{number}", "") for number in range(10)], []
    for draw in range(16):
        subject, masked = chance.gauss(0, 0.4), {function for function in functions if chance.random() < 0.2}
        for turn in range(25):
            needed = frozenset(chance.sample(functions, 3))
            tokens = round(2_000 * math.exp(subject + chance.gauss(0, 0.3)))
            turns.append(
                ExposedTurn(f"{draw}-{turn}", "m", needed - masked, needed & masked, 3, tokens, draw=f"{draw}")
            )
    return turns


def test_turns_of_one_conversation_are_not_independent() -> None:
    worths = [effect.worth for seed in range(8) for effect in effects(idle_functions(seed)).values()]
    assert (len(worths) > 16, sum(worth != "unknown" for worth in worths)) == (True, 0)
    assert effects([turn for turn in idle_functions(0) if int(turn.draw) < 8]) == {}, "too few conversations"


def working(seen: Seen) -> Step:
    """Answer at once if the helper is shown; search first if not."""
    looked = sum(message["role"] == "tool" for message in seen.messages)
    if HELPER in system_of(seen) or looked >= 3:
        return Say("Counted.")
    return Ask(Wanted("list_functions", {"pattern": f"nothing{looked}"}))


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_function_that_saves_requests_is_told_as_one_that_helps(grown: OpenDesk) -> None:
    desk = await grown([Repeat(working)])
    for _ in range(40):
        await desk.agent.begin_anew()
        await desk.say("Count the vowels in a text.")
    facts = (await desk.workspace.functions.introspect(HELPER)).to_json()
    assert facts["maker"] == "scripted"
    effect = facts["effect"]
    assert (effect["worth"], effect["models"]) == ("helps", ["scripted"])
    assert effect["requests"]["high"] < 0
    others = [(await desk.workspace.functions.introspect(name)).to_json()["effect"] for name in NAMES[1:]]
    assert sum(bool(other) and other["worth"] != "unknown" for other in others) <= 1
    rows = {row.name: row.worth for row in (await desk.workspace.functions.list()).functions}
    assert rows[HELPER] == "helps"
    root = desk.workspace.root
    shown = knapper("functions", "show", HELPER, cwd=root).stdout
    assert "✓ helps in" in shown
    assert re.search(r"  requests that probably need count_vowels\d most: ✓ helps in", shown)
    assert "made by: scripted" in shown
    listed = json.loads(knapper("functions", "list", "--json", cwd=root).stdout)
    assert {row["name"]: row["worth"] for row in listed["functions"]}[HELPER] == "helps"


def test_planted_functions_are_named_after_four_hundred_turns_and_not_after_thirty() -> None:
    assert named_wrongly(planted(1, share=0.3, effect=0.5, turns=400)) <= 2
    assert named_wrongly(planted(0, share=0.1, effect=0.5, turns=30)) == 20
