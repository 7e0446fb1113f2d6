"""`knapper functions tend`: duplicates are merged, failing functions fixed, each change proven, and all undone."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.events import FunctionsChanged
from agent_core.functions.service.plan import Author
from agent_core.functions.service.replay import NOW
from agent_core.storage.token_store import TokenRow
from knapper_ext.tending.tending import Tending, TendingBudget
from knapper_ext.tending.upkeep import tending_of
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, ScriptedModel, Wanted
from tests.kit.desk import VOWELS, Desk, answers
from tests.kit.program import knapper
from tests.kit.sources import function_text

COPY = (
    VOWELS.replace("count_vowels", "vowel_count")
    .replace(
        'sum(letter in "aeiou" for letter in text.lower())', "sum(map(text.lower().count, 'aeiou'))"
    )
    .replace("Count the vowels in a text.", "Count the vowels of a text.")
)
TWICE = function_text(
    "vowels_twice(self, text: str) -> int",
    "Say twice how many vowels a text has.\n\nArgs:\n    text: The text.",
    'return 2 * self.call("vowel_count", text=text)',
    'vowels_twice("queueing") → 10',
    'vowels_twice("rhythm") → 0',
)
SHARE = function_text(
    "share(total: int, people: int) -> int",
    "Share something out among people, in whole parts.\n\nArgs:\n    total: How much there is.\n    "
    "people: How many there are.",
    "return total // people",
    "share(7, 2) → 3",
    "share(8, 2) → 4",
)
FIXED = SHARE.replace("return total // people", "return total // people if people else 0")
HASTY = SHARE.replace(
    "return total // people", "return total // people + (total > 20) if people else 0"
)
OTHERWISE = HASTY.replace(
    "    >>> share(8, 2)\n", "    >>> share(30, 4)\n    8\n    >>> share(8, 2)\n"
)


def fee(name: str, where: str, free: int, price: int) -> str:
    """Return a function that differs from its variants in two literals."""
    return f'''\
def {name}(days: int) -> int:
    """Say what a book costs that is given back late {where}.

    Args:
        days: For how many days it was out.

    >>> {name}({free + 6})
    {6 * price}
    >>> {name}(3)
    0
    """
    return max(0, days - {free}) * {price}
'''


FEES = function_text(
    "fees(many: list[int]) -> int",
    "Add up what several books cost that are given back late in town.\n\nArgs:\n    "
    "many: For how many days each was out.",
    "return sum(fee_in_town(days) for days in many)",
    "fees([20, 3]) → 18",
    "fees([]) → 0",
)
GENERAL = function_text(
    "late_fee(days: int, free: int, price: int) -> int",
    "Say what a book costs that is given back late, by what is free and what a day costs.\n\nArgs:\n    "
    "days: For how many days it was out.\n    free: For how many days it costs nothing.\n    "
    "price: What each day after them costs.",
    "return max(0, days - free) * price",
    "late_fee(20, 14, 3) → 18",
    "late_fee(3, 1, 5) → 10",
    "late_fee(3, 14, 3) → 0",
)
SPECIAL = {
    "fee_in_town": fee("fee_in_town", "in town", 14, 3),
    "fee_abroad": fee("fee_abroad", "abroad", 28, 5),
    "fees": FEES,
}
WRONG = GENERAL.replace("* price", "* price + (days > 80)")
MORE = WRONG.replace(
    "    >>> late_fee(3, 14, 3)\n",
    "    >>> late_fee(90, 14, 3)\n    229\n    >>> late_fee(3, 14, 3)\n",
)
SOURCES = {"count_vowels": VOWELS, "vowel_count": COPY, "vowels_twice": TWICE, "share": SHARE}


def making(name: str, source: str, other: str = "count_vowels") -> Ask:
    """Return the creation of a function by an agent, which says that it differs from another one."""
    asked = {"function_name": name, "function_code_with_docstring": source}
    return Ask(
        Wanted("create_function", {**asked, "reason": f"it differs from {other} by its name"})
    )


def made(name: str) -> Ask:
    """Return the creation of one of these functions."""
    return making(name, SOURCES[name])


def called(name: str, *many: dict[str, Any]) -> Ask:
    return Ask(*(Wanted(name, arguments) for arguments in many))


FAILING = called("share", *({"total": total, "people": 0} for total in (1, 2, 3)))
GOOD = called("share", {"total": 30, "people": 4}, {"total": 8, "people": 2})


async def with_copies(at_desk: OpenDesk, **settings: Any) -> Desk:
    """A desk with two equivalent functions, each called, and a caller of the less-called one."""
    more = called("count_vowels", {"text": "queue"}, {"text": "sky"})
    few = called("vowels_twice", {"text": "queue"}, {"text": "aloud"})
    desk = await at_desk(
        [made("count_vowels"), made("vowel_count"), made("vowels_twice"), more, few, Say("Done.")],
        **settings,
    )
    events = await desk.say("Make them, and call them.")
    assert {"count_vowels", "vowel_count", "vowels_twice"} <= set(
        desk.workspace.functions.names()
    ), answers(events)
    return desk


async def tend(root: Path, *words: str) -> Any:
    """What the command answers; the desk goes on meanwhile, so that it can end its own changes."""
    done = await asyncio.to_thread(knapper, "functions", "tend", *words, "--json", cwd=root)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


async def test_a_copy_becomes_one_with_what_calls_it_and_one_command_undoes_it(
    at_desk: OpenDesk,
) -> None:
    desk = await with_copies(at_desk)
    root = desk.workspace.root
    before = {file.name: file.read_text() for file in desk.functions.glob("*.py")}
    proposed = [step for step in (await tend(root))["steps"] if not step["why_not"]]
    assert [(step["kind"], step["function"], step["done"]) for step in proposed] == [
        ("merge", "vowel_count", False)
    ]
    assert {file.name: file.read_text() for file in desk.functions.glob("*.py")} == before
    (step,) = [step for step in (await tend(root, "--apply"))["steps"] if step["done"]]
    assert "recorded calls of `vowel_count`" in step["evidence"][0]
    assert "for 2 recorded calls" in step["evidence"][1]
    await desk.workspace.functions.reload()
    assert "vowel_count" not in desk.workspace.functions.names()
    assert (await desk.workspace.functions.call("vowels_twice", {"text": "queue"})).value == 8
    replays = desk.workspace.functions.replays
    assert all(
        [(await replays.replay(row.call, NOW)).same for row in await replays.calls("vowels_twice")]
    )
    assert [row["undone"] for row in await tend(root, "--undo")] == [True, True]
    await desk.workspace.functions.reload()
    after = {file.name: file.read_text() for file in desk.functions.glob("*.py")}
    assert {line for text in after.values() for line in text.splitlines()} == {
        line for text in before.values() for line in text.splitlines()
    }
    assert await tend(root, "--undo") == []


async def test_one_function_is_undone_with_all_changes_of_its_step_and_no_others(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    maker = a_maker(scripted, SHARE, VOWELS, COPY, TWICE, FIXED)
    more = [
        made("share"),
        GOOD,
        FAILING,
        made("count_vowels"),
        made("vowel_count"),
        made("vowels_twice"),
    ]
    many = called("count_vowels", {"text": "queue"}, {"text": "sky"})
    desk = await at_desk(
        [*more, many, called("vowels_twice", {"text": "aloud"}), Say("Done.")], **maker
    )
    root = desk.workspace.root
    await desk.say("Make them, and call them.")
    steps = [(step["kind"], step["function"]) for step in await tended(desk) if step["done"]]
    assert sorted(steps) == [("mend", "share"), ("merge", "vowel_count")]
    undone = await tend(root, "--undo", "vowels_twice")
    assert [(row["function"], row["undone"]) for row in undone] == [
        ("vowel_count", True),
        ("vowels_twice", True),
    ]
    await desk.workspace.functions.reload()
    assert "vowel_count" in desk.workspace.functions.names()
    assert "if people else 0" in desk.workspace.functions.plans.source("share")
    assert [row["function"] for row in await tend(root, "--undo")] == ["share"]
    refused = await asyncio.to_thread(knapper, "functions", "tend", "--undo", "share", cwd=root)
    assert "Tending changed no `share`" in refused.stderr


async def test_functions_that_keep_a_value_or_reach_outside_are_not_merged(
    at_desk: OpenDesk,
) -> None:
    kept = COPY.replace("(text: str)", "(self, text: str)").replace(
        "    return sum", "    self.state = {}\n    return sum"
    )
    desk = await at_desk([made("count_vowels"), making("vowel_count", kept), Say("Made.")])
    events = await desk.say("Make them.")
    assert "vowel_count" in desk.workspace.functions.names(), answers(events)
    steps = [step for step in await tended(desk) if step["kind"] == "merge"]
    assert all("keeps a value between its calls" in step["why_not"] for step in steps), steps
    assert {"count_vowels", "vowel_count"} <= set(desk.workspace.functions.names())


async def failing(at_desk: OpenDesk, maker: ScriptedModel, **settings: Any) -> Desk:
    """A desk with a function that failed three times in the same way and returned twice."""
    table = {"models": {"maker": {"name": "strong", "base_url": maker.base_url}}}
    desk = await at_desk([made("share"), GOOD, FAILING, Repeat(Say("Done."))], **table, **settings)
    await desk.say("Make it, and call it.")
    return desk


def tending(desk: Desk) -> Tending:
    return tending_of(desk.workspace.functions, desk.workspace.settings)


async def tended(desk: Desk, *, applies: bool = True) -> list[dict[str, Any]]:
    report = await tending(desk).run(TendingBudget(), applies=applies)
    return list(report.to_json()["steps"])


async def test_what_failed_three_times_is_mended_if_good_calls_stay_the_same(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    written = [SHARE, HASTY, OTHERWISE, FIXED]
    maker = scripted(
        [Say(f"```\n{source}```") for source in written], models=["scripted", "strong"]
    )
    desk = await failing(at_desk, maker)
    (step,) = [step for step in await tended(desk) if step["kind"] == "mend"]
    assert (step["done"], step["why_not"]) == (True, "")
    assert step["evidence"] == ["3 calls that failed no longer do", "2 good calls return the same"]
    assert "+    return total // people if people else 0" in step["diff"]
    assert "No example settles what these calls return." in maker.requests[2].text
    assert "the good call" in maker.requests[3].text
    assert (await desk.workspace.functions.call("share", {"total": 3, "people": 0})).value == 0
    assert [step.undone for step in await tending(desk).undo()] == [True]
    assert (
        await desk.workspace.functions.call("share", {"total": 3, "people": 0})
    ).outcome == "raised"


async def test_a_fix_that_loses_an_example_or_fails_as_before_is_not_taken(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    lost = FIXED.replace("    >>> share(8, 2)\n    4\n", "    >>> share(9, 2)\n    4\n")
    still = SHARE.replace("total // people", "int(total) // people")
    maker = scripted(
        [Say(SHARE), Say(lost), Say(still), Say("I cannot.")], models=["scripted", "strong"]
    )
    desk = await failing(at_desk, maker)
    (step,) = [step for step in await tended(desk) if step["kind"] == "mend"]
    assert not step["done"]
    assert "no fix of 3 was proven" in step["why_not"]
    assert "share(8, 2)" in maker.requests[2].text
    assert "still fails" in maker.requests[3].text
    assert "total // people\n" in (desk.functions / "grown.py").read_text()


def a_maker(scripted: Callable[..., ScriptedModel], *written: str) -> dict[str, Any]:
    """Return the settings of a maker that writes these sources, in order."""
    maker = scripted(
        [Say(f"```\n{source}```") for source in written], models=["scripted", "strong"]
    )
    return {"models": {"maker": {"name": "strong", "base_url": maker.base_url}}}


async def with_fees(at_desk: OpenDesk, **settings: Any) -> Desk:
    """A desk with two functions that differ in two literals, and a caller of one of them."""
    makes = [making(name, source) for name, source in SPECIAL.items()]
    calls = [called("fee_in_town", {"days": 90}, {"days": 15}), called("fee_abroad", {"days": 30})]
    desk = await at_desk(
        [*makes, *calls, called("fees", {"many": [16, 20]}), Repeat(Say("Done."))], **settings
    )
    told = answers(await desk.say("Make them, and call them."))
    assert {*SPECIAL} <= set(desk.workspace.functions.names()), told
    return desk


async def test_two_that_differ_in_literals_become_one_that_a_model_writes(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    desk = await with_fees(at_desk, **a_maker(scripted, *SPECIAL.values(), MORE, GENERAL, GENERAL))
    workshop = desk.workspace.functions
    before = {name: workshop.plans.source(name) for name in workshop.names()}
    (proposed,) = [
        step for step in await tended(desk, applies=False) if step["kind"] == "generalize"
    ]
    assert (proposed["why_not"], proposed["done"]) == ("", False)
    (step,) = [step for step in await tended(desk) if step["kind"] == "generalize"]
    assert (step["done"], step["function"], step["others"]) == (
        True,
        "late_fee",
        ["fee_abroad", "fee_in_town"],
    )
    assert any(
        "free=14, price=3" in fact and "2 recorded calls" in fact for fact in step["evidence"]
    ), step
    assert set(workshop.names()) == {"late_fee", "fees"}
    assert "days > 80" not in workshop.plans.source("late_fee")  # one recorded call ended otherwise
    assert "late_fee(days, free=14, price=3)" in workshop.plans.source("fees")
    assert (await workshop.call("fees", {"many": [16, 20]})).value == 24
    assert all(undone.undone for undone in await tending(desk).undo())
    assert {name: workshop.plans.source(name) for name in workshop.names()} == before


async def test_a_general_function_that_answers_one_recorded_call_otherwise_is_never_taken(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    desk = await with_fees(
        at_desk,
        **a_maker(scripted, *SPECIAL.values(), MORE, GENERAL.replace(", price: int", ""), MORE),
    )
    (step,) = [step for step in await tended(desk) if step["kind"] == "generalize"]
    assert not step["done"]
    assert "ends otherwise" in step["why_not"]
    assert {"fee_in_town", "fee_abroad", "fees"} == set(desk.workspace.functions.names())


async def test_a_program_that_was_repeated_becomes_a_function(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    program = "from_shelf = {}\nsum(count_vowels(word) for word in from_shelf) * {}"
    source = "\n\n".join(
        [
            "from functions.grown import count_vowels\n",
            function_text(
                "weighed_vowels(words: list[str], weight: int) -> int",
                "Add up the vowels of words, and weigh the sum.\n\nArgs:\n    words: The words.\n    "
                "weight: What each vowel counts.",
                "return sum(count_vowels(word) for word in words) * weight",
                'weighed_vowels(["queue"], 2) → 8',
                "weighed_vowels([], 5) → 0",
            ),
        ]
    )
    runs = [
        Ask(Wanted("run_program", {"code": program.format(*row)}))
        for row in (("['queue', 'sky']", 3), ("['aloud']", 2))
    ]
    desk = await at_desk(
        [made("count_vowels"), Say("Made."), runs[0], Say("12."), runs[1], Say("6.")],
        **a_maker(scripted, VOWELS, source, source),
    )
    for message in ("Make it.", "Weigh the words of the first shelf.", "And of the second."):
        told = answers(await desk.say(message))
    apart = TokenRow("t", "for-one", "0" * 64, ("converse",), ("default",), None)
    await desk.workspace._store.add_token(apart)
    assert [
        step for step in await tended(desk) if step["kind"] == "keep"
    ] == []  # this token may see only one agent
    await desk.workspace._store.revoke_token("for-one")
    (step,) = [step for step in await tended(desk) if step["kind"] == "keep"]
    assert (step["why_not"], step["done"], step["function"]) == ("", True, "weighed_vowels"), told
    assert "it returns what 2 of the runs returned" in step["evidence"]
    assert (
        await desk.workspace.functions.call("weighed_vowels", {"words": ["queue"], "weight": 10})
    ).value == 40
    assert [undone.undone for undone in await tending(desk).undo()] == [True]
    assert "weighed_vowels" not in desk.workspace.functions.names()
    (again,) = [step for step in await tended(desk) if step["kind"] == "keep"]
    assert (again["done"], again["why_not"]) == (False, "it was made before, and undone")


async def test_a_program_that_ran_again_with_the_same_values_is_left(at_desk: OpenDesk) -> None:
    run = Ask(Wanted("run_program", {"code": "[len(word) for word in ['sky', 'aloud']]"}))
    desk = await at_desk([run, Say("3, 5."), run, Say("3, 5.")])
    for message in ("How long are they?", "And today?"):
        await desk.say(message)
    (step,) = await tended(desk)
    assert (step["kind"], step["done"], step["why_not"]) == (
        "keep",
        False,
        "each run had the same values",
    )


NEAR = "".join(
    f'''\
def book_{word}(title: str) -> str:
    """Say the {word} of a book in the library, which may be late.

    Args:
        title: What the book is called.

    >>> book_{word}("Emma")
    'Emma {word}'
    >>> book_{word}("Ada")
    'Ada {word}'
    """
    return f"{{title}} {word}"


'''
    for word in ("author", "year", "shelf", "owner", "days", "reader")
)
DUE = fee("above_fourteen", "", 14, 3).replace(
    "Say what a book costs that is given back late .", "Multiply by three what is above fourteen."
)
DUE = DUE.replace("days: int", "days: Days")
DAYS = 'from typing import NewType\n\nDays = NewType("Days", int)\n\n\n'  # a type that a worker describes


async def test_a_description_that_its_requests_miss_is_reworded_and_nothing_else_of_it(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    helpful = DUE.replace(
        "Multiply by three what is above fourteen.",
        "Say what is owed for a late book of the library, by days.",
    )
    written = [
        DAYS + DUE,
        DUE.replace("by three what", "by 3 whatever"),
        helpful.replace("    >>> above_fourteen(3)\n    0\n", ""),
        helpful.replace("days - 14", "days - 15"),
    ]
    maker = scripted(
        [Say(f"```\n{source}```") for source in written], models=["scripted", "strong"]
    )
    table = {"models": {"maker": {"name": "strong", "base_url": maker.base_url}}}
    desk = await at_desk(
        [
            making("above_fourteen", DUE),
            Say("Made."),
            called("above_fourteen", {"days": 40}),
            Say("78."),
        ],
        **table,
    )
    desk.put("books.py", NEAR)
    await desk.workspace.functions.reload()
    for message in ("Make it.", "What do I owe the library for a book that is days late?"):
        told = answers(await desk.say(message))
    (step,) = [step for step in await tended(desk) if step["kind"] == "reword"]
    assert (step["why_not"], step["done"], step["function"]) == ("", True, "above_fourteen"), told
    source = desk.workspace.functions.plans.source("above_fourteen")
    assert source == DUE.replace(
        "Multiply by three what is above fourteen.",
        "Say what is owed for a late book of the library, by days.",
    )
    assert "do not find it with these words" in maker.requests[2].text
    assert "Only the words of its docstring" in maker.requests[3].text


async def test_a_fix_may_be_the_same_as_what_its_author_told_it_apart_from(
    at_desk: OpenDesk,
) -> None:
    again = {
        "function_name": "ration",
        "function_code_with_docstring": SHARE.replace("share(", "ration("),
    }
    twin = Ask(
        Wanted(
            "create_function",
            {**again, "reason": "rations are counted apart from what share divides"},
        )
    )
    desk = await at_desk([made("share"), twin, Say("Made.")])
    told = answers(await desk.say("Make them."))
    workshop = desk.workspace.functions
    assert {"share", "ration"} <= set(workshop.names()), told
    for name in ("share", "ration"):
        mended = await workshop.replace(
            name, FIXED.replace("share(", f"{name}("), author=Author("agent")
        )
        assert mended.admitted, mended.refusals


async def gone(desk: Desk, name: str) -> None:
    """Wait until no function has this name."""
    async with asyncio.timeout(60):
        while name in desk.workspace.functions.names():  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.1)


async def test_an_idle_workspace_tends_itself_if_it_is_told_to(
    at_desk: OpenDesk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "knapper.tending")
    script = [made("count_vowels"), made("vowel_count"), Say("Made."), Say("Hello.")]
    desk = await at_desk(script, tend__idle=0.01, tend__apply="proved")
    told: list[FunctionsChanged] = []
    desk.workspace.functions.on_change(told.append)
    await desk.say("Make them.")
    assert set(desk.workspace.functions.names()) == {"count_vowels", "vowel_count"}
    await gone(desk, "vowel_count")
    async with asyncio.timeout(60):  # a message would end the run
        while "tending took 0 tokens of models" not in caplog.text:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.1)
    await desk.say("Hello?")
    assert [(change.by, change.removed) for change in told] == [("tending", ("vowel_count",))]
    assert "`vowel_count` is gone." in str(desk.model.requests[-1].messages)


async def test_a_message_ends_what_tending_began_by_itself(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    maker = scripted(
        [Say(f"```\n{SHARE}```"), Repeat(Say(f"```\n{FIXED}```", pause_s=300))],
        models=["scripted", "strong"],
    )
    desk = await failing(at_desk, maker, tend__idle=0.01, tend__apply="proved")
    before = desk.workspace.functions.plans.source("share")
    async with asyncio.timeout(60):
        while len(maker.requests) < 2:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.1)
    began = time.monotonic()
    await desk.say("Are you there?")
    assert time.monotonic() - began < 60
    assert desk.workspace.functions.plans.source("share") == before
    assert not await desk.workspace.store.tended()


async def test_what_is_archived_is_not_shown_but_found_and_called(at_desk: OpenDesk) -> None:
    finding = Ask(Wanted("list_functions", {"pattern": "share something out among people"}))
    script = [
        made("share"),
        Say("Made."),
        finding,
        called("share", {"total": 9, "people": 2}),
        Say("4."),
    ]
    desk = await at_desk(script, standing__retire_days=1e-9)
    await desk.say("Make it.")
    (step,) = [step for step in await tended(desk) if step["kind"] == "archive"]
    assert step["done"], step
    await desk.begin()
    found, counted = answers(await desk.say("Count."))
    assert "share" not in str(desk.model.requests[-3].messages[0]["content"])
    assert "share" in found
    assert counted == "4"
    assert [step.undone for step in await tending(desk).undo()] == [True]
    assert await tended(desk) == []  # a person undid it


def test_an_empty_library_has_nothing_to_tend(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    for words in (["--apply"], ["--undo"]):
        done = knapper("functions", "tend", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
