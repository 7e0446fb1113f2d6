"""Limits of `knapper functions tend`: others name a function, a recorded call contradicts, or a person undid it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent_core.access.grants import Grants
from agent_core.functions.service.plan import Author
from knapper_ext.tending.tending import TendingBudget
from tests.conftest import OpenDesk
from tests.kit import Say, ScriptedModel
from tests.kit.desk import VOWELS, answers
from tests.kit.sources import function_text
from tests.knapper_ext.tending.test_tending import (
    COPY,
    FAILING,
    FIXED,
    SHARE,
    TWICE,
    a_maker,
    called,
    failing,
    fee,
    made,
    making,
    tended,
    tending,
    with_copies,
)

PLURAL = function_text(
    "plural(word: str) -> str",
    "Give the plural of a word.\n\nArgs:\n    word: The word.\n\nRaises:\n    "
    "LookupError: If the word is too strange to be one.",
    'if len({*word}) * len({*word}) < len(word):\n    raise LookupError("too strange")\n'
    'return word + ("es" if word.endswith("s") else "s")',
    "plural(\"cat\") → 'cats'",
    "plural(\"bus\") → 'buses'",
)
MAKE_PLURAL = function_text(
    "make_plural(word: str) -> str",
    "Give the plural of a word in English.\n\nArgs:\n    word: The word.",
    'return f"{word}es" if word[-1:] == "s" else f"{word}s"',
    "make_plural(\"dog\") → 'dogs'",
    "make_plural(\"gas\") → 'gases'",
)
PLURALS = function_text(
    "plural_of(self, words: list[str]) -> str",
    "Join the plurals of several words by commas, for a list, with a question mark for each strange one.\n\n"
    "Args:\n    words: The words.",
    'parts = []\nfor word in words:\n    try:\n        parts.append(self.call("plural", word=word))\n    '
    'except PermissionError:\n        parts.append("?")\nreturn ",".join(parts)',
    'plural_of(["cat", "bus"]) → \'cats,buses\'',
    "plural_of([]) → ''",
)
STRANGE = "q" * 8
BY_NAME = function_text(
    "vowels_by(self, way: str, text: str) -> int",
    "Count vowels in a way that is named.\n\nArgs:\n    way: `count_vowels` or `vowel_count`.\n    text: The text.",
    "return self.call(way, text=text)",
)
ROUTE = """\
def _route(self, way: str, text: str) -> int:
    return self.call(way, text=text)


""" + BY_NAME.replace("self.call(way, text=text)", "_route(self, way, text)")
BOUND = BY_NAME.replace("return self.call(way", "called = self.call\n    return called(way")
BY_MODULE = function_text(
    "vowels_and_one(text: str) -> int",
    "Add one to how many vowels a text has.\n\nArgs:\n    text: The text.",
    "from functions import grown\n\nreturn grown.vowel_count(text) + 1",
    'vowels_and_one("queueing") → 6',
    'vowels_and_one("rhythm") → 1',
)
SHOWN = function_text(
    "without_vowels(text: str) -> str",
    "Leave the vowels of a text out.\n\nArgs:\n    text: The text.",
    'return "".join(letter for letter in text if letter not in "aeiou")',
    "without_vowels(\"queueing\") → 'qng'",
    "without_vowels(\"sky\") → 'sky'",
    'len(without_vowels("aloud")) + vowel_count("aloud") → 5',
)
TEXT = function_text(
    "way_to_count(is_short: bool) -> str",
    "Say how to count vowels.\n\nArgs:\n    is_short: Whether briefly.",
    'return "count" if is_short else "vowel_count"',
    "way_to_count(True) → 'count'",
    "way_to_count(False) → 'vowel_count'",
)


def merges(steps: list[dict[str, Any]]) -> list[tuple[bool, str]]:
    return [(step["done"], step["why_not"]) for step in steps if step["kind"] == "merge"]


async def test_a_recorded_call_that_was_refused_keeps_two_functions_apart(
    at_desk: OpenDesk,
) -> None:
    many = called("make_plural", *({"word": word} for word in ("cat", "dog", "ox")))
    through = [
        making("plural_of", PLURALS),
        called("plural_of", {"words": ["cat", STRANGE]}),
        Say("Done."),
    ]
    own = [called("plural", {"word": STRANGE}), Say("Done.")]
    desk = await at_desk(
        [
            making("plural", PLURAL),
            making("make_plural", MAKE_PLURAL, "plural"),
            many,
            *through,
            *own,
        ]
    )
    for why in ("`plural_of` would answer the call", "does not end the same for the call"):
        told = answers(await desk.say("Call them."))
        ((done, why_not),) = merges(await tended(desk))
        assert (done, why in why_not) == (False, True), (told, why_not)


async def test_functions_that_raise_different_errors_are_not_the_same(at_desk: OpenDesk) -> None:
    first, second = (
        SHARE.replace("share", name).replace(
            "    return", f"    if total == 41:\n        raise {error}('odd')\n    return"
        )
        for name, error in (("share", "KeyError"), ("divide", "TypeError"))
    )
    second = second.replace("total // people", "(total - total % people) // people")
    desk = await at_desk([making("share", first), making("divide", second, "share"), Say("Made.")])
    told = answers(await desk.say("Make them."))
    steps = merges(await tended(desk))
    assert len(steps) == 1, told
    assert "not proven the same: different" in steps[0][1]


def look_alikes(parameter: str, description: str, cases: dict[str, str], *bodies: str) -> list[str]:
    """Return two functions, `one` and `other`, that agree on these cases; the description has a word for each."""
    return [
        function_text(
            f"{name}({parameter}) -> int",
            description.format(word),
            body,
            *(f"{name}({given}) → {result}" for given, result in cases.items()),
        )
        for name, word, body in zip(
            ("one", "other"), ("in a list", "of a list"), bodies, strict=True
        )
    ]


AFTER_FIRST = look_alikes(
    "stamps: list[int]",
    "Add up all but the first of the stamps {} that are below a limit.\n\nArgs:\n    stamps: The stamps.",
    {"[3, 10, 4, 30]": "14", "[8, 50, 2, 9]": "11"},
    "return sum([n for n in stamps if n < 12][1:])",
    "below = [n for n in stamps if not n >= 11]\nreturn sum(below[1:])",
)
DEAR = look_alikes(
    "orders: list[dict[str, int]]",
    "Count the orders {} that are above a price.\n\nArgs:\n    orders: The orders, each with its `price`.",
    {'[{"price": 20}, {"price": 70}]': "1", '[{"price": 80}, {"price": 90}]': "2"},
    'return sum(order["price"] > 50 for order in orders)',
    'return len([order for order in orders if not order["price"] <= 51])',
)
FREE = look_alikes(
    "prices: list[int]",
    "Say what the delivery of the prices {} costs.\n\nArgs:\n    prices: The prices.",
    {"[20, 70]": "5", "[200, 200]": "0"},
    "return 0 if sum(prices) * 2 > 500 else 5",
    "return 5 if 2 * sum(prices) <= 503 else 0",
)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [(*AFTER_FIRST, "different"), (*DEAR, "different"), (*FREE, "unknown")],
)
async def test_functions_whose_numbers_differ_are_not_the_same(
    at_desk: OpenDesk, first: str, second: str, why: str
) -> None:
    """A limit decides only about what comes later, stands in rows, or is compared with a sum that no call has."""
    desk = await at_desk([making("one", first), making("other", second, "one"), Say("Made.")])
    told = answers(await desk.say("Make them."))
    steps = merges(await tended(desk))
    assert [done for done, _why in steps] == [False], told
    assert f"not proven the same: {why}" in steps[0][1]


FILES = {
    "helpers/report.toml": 'purpose = "Count."\nresult = "int"\nfunctions = ["grown.count_vowels", "vowel_count"]\n',
    "agents/ed.toml": 'functions = ["vowel_count", "count_vowels"]\n',
    "groups/board.toml": 'members = ["ed", "al"]\nrules = ["function vowel_count"]\nchoose = "function count_vowels"\n',
}


async def test_a_fix_that_only_names_its_error_is_none(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    raises = "There are.\n\n    Raises:\n        ZeroDivisionError: If there are none.\n"
    named = SHARE.replace("How many there are.\n", raises)
    maker = scripted(
        [Say(f"```\n{source}```") for source in (SHARE, named, FIXED)],
        models=["scripted", "strong"],
    )
    desk = await failing(at_desk, maker)
    (step,) = [step for step in await tended(desk) if step["kind"] == "mend"]
    assert step["done"], step
    assert "still fails: ZeroDivisionError" in maker.requests[2].text
    assert "if people else 0" in desk.workspace.functions.plans.source("share")


async def test_what_others_name_stays_and_what_has_a_grant_keeps_it(at_desk: OpenDesk) -> None:
    desk = await with_copies(at_desk)
    for path, text in FILES.items():
        file = desk.workspace.root / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        assert merges(await tended(desk)) == [(False, f"{path} names `count_vowels`")]
        file.unlink()
    shop = desk.workspace.functions
    for text in (BY_NAME, ROUTE, BOUND):  # may call it by a name that it is given
        desk.put("mine.py", text)
        await shop.reload()
        assert (await shop.call("vowels_by", {"way": "vowel_count", "text": "queue"})).value == 4
        ((done, why),) = merges(await tended(desk))
        assert (done, why.partition(":")[0]) == (False, "functions/mine.py"), why
    (desk.functions / "mine.py").unlink()
    await shop.reload()
    await shop.grants.grant("vowel_count", Grants(seconds=120))
    file = desk.functions / "grants.toml"
    before = file.read_text()
    ((done, why),) = merges(await tended(desk))
    assert (done, why) == (True, "")
    assert "count_vowels" not in shop.names()
    assert file.read_text() == before


def late(name: str, where: str, free: int, price: int, head: str = "", more: str = "") -> str:
    """Return a function of late fees that accepts two kinds of things and rejects negative days."""
    return f'''\
from typing import Literal


def {name}(days: int, kind: Literal["book", "disc"]{head}) -> int:
    """Say what something costs that is given back late {where}.

    Args:
        days: For how many days it was out.
        kind: What it is.
{more}
    Raises:
        ValueError: If it was not out yet.

    >>> {name}({free + 6}, "book")
    {6 * price}
    >>> {name}({free + 6}, "disc")
    {12 * price}
    >>> {name}(3, "disc")
    0
    """
    if days < 0:
        raise ValueError("not out yet")
    return max(0, days - {free}) * {price} * (2 if kind == "disc" else 1)
'''


LATE = {
    "late_in_town": late("late_in_town", "in town", 14, 3),
    "late_abroad": late("late_abroad", "abroad", 28, 5),
}
LATER = (
    late(
        "late_fee",
        "by what is free and what a day costs",
        14,
        3,
        ", free: int, price: int",
        "        free: F.\n        price: P.\n",
    )
    .replace("days - 14", "days - free")
    .replace("* 3 *", "* price *")
    .replace('"book")\n', '"book", 14, 3)\n')
    .replace('"disc")\n', '"disc", 14, 3)\n')
)
WIDER = LATER.replace('Literal["book", "disc"]', "str")
SILENT = LATER.replace("    Raises:\n        ValueError: If it was not out yet.\n\n", "")


async def test_a_general_function_keeps_the_checks_of_the_special_ones(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    maker = scripted(
        [Say(f"```\n{source}```") for source in (*LATE.values(), WIDER, SILENT, LATER)],
        models=["scripted", "strong"],
    )
    calls = [
        called("late_in_town", {"days": 90, "kind": "book"}),
        called("late_abroad", {"days": 30, "kind": "disc"}),
    ]
    desk = await at_desk(
        [*(making(name, source) for name, source in LATE.items()), *calls, Say("Done.")],
        models={"maker": {"name": "strong", "base_url": maker.base_url}},
    )
    told = answers(await desk.say("Make them, and call them."))
    (step,) = [step for step in await tended(desk) if step["kind"] == "generalize"]
    assert step["done"], (step, told)
    assert "It must accept the same as `late_abroad` for days, kind." in maker.requests[3].text
    assert "`ValueError` under `Raises:`" in maker.requests[4].text


async def test_functions_with_an_example_that_is_no_plain_call_are_not_made_one(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    town = fee("fee_in_town", "in town", 14, 3).replace(
        ">>> fee_in_town(20)", ">>> days = 20\n    >>> fee_in_town(days)"
    )
    special = {"fee_in_town": town, "fee_abroad": fee("fee_abroad", "abroad", 28, 5)}
    makes = [making(name, source) for name, source in special.items()]
    calls = [called("fee_in_town", {"days": 15}), called("fee_abroad", {"days": 30})]
    desk = await at_desk([*makes, *calls, Say("Done.")], **a_maker(scripted, *special.values()))
    told = answers(await desk.say("Make them, and call them."))
    (step,) = [step for step in await tended(desk) if step["kind"] == "generalize"]
    assert "an example of `fee_in_town` is not a plain call" in step["why_not"], told


@pytest.mark.parametrize(
    ("source", "module"), [(BY_MODULE, "other"), (SHOWN, "grown")], ids=["by module", "example"]
)
async def test_what_refers_to_a_copy_in_another_way_follows_and_comes_back(
    at_desk: OpenDesk, source: str, module: str
) -> None:
    desk = await with_copies(at_desk)
    shop = desk.workspace.functions
    name = source.removeprefix("def ").partition("(")[0]
    made = await shop.create(name, source, module, author=Author("agent"))
    assert made.admitted, made.document["problems"]
    before = {name: shop.plans.source(name) for name in shop.names()}
    ((done, why),) = merges(await tended(desk))
    assert (done, why) == (True, "")
    assert shop.plans.source(name) == source.replace("vowel_count(", "count_vowels(")
    assert all(row.agreed for row in (await shop.test(name)).examples)
    assert all(undone.undone for undone in await tending(desk).undo())
    assert {name: shop.plans.source(name) for name in shop.names()} == before


async def test_a_text_that_may_mean_a_copy_keeps_it(at_desk: OpenDesk) -> None:
    desk = await with_copies(at_desk)
    shop = desk.workspace.functions
    assert (await shop.create("way_to_count", TEXT, "ways", author=Author("agent"))).admitted
    ((done, why),) = merges(await tended(desk))
    assert (done, why.partition(":")[0]) == (False, "functions/ways.py"), why
    assert "vowel_count" in shop.names()


async def test_a_step_of_which_a_part_was_changed_since_stays_whole(at_desk: OpenDesk) -> None:
    desk = await with_copies(at_desk)
    shop = desk.workspace.functions
    assert merges(await tended(desk)) == [(True, "")]
    await shop.edit("vowels_twice", "Say twice", "Tell twice")
    before = (desk.functions / "grown.py").read_text()
    undone = await tending(desk).undo()
    assert [(step.function, step.undone) for step in undone] == [
        ("vowel_count", False),
        ("vowels_twice", False),
    ]
    assert (desk.functions / "grown.py").read_text() == before


async def test_a_caller_that_a_person_has_just_saved_keeps_all_as_it_is(
    at_desk: OpenDesk,
) -> None:
    desk = await with_copies(at_desk)
    shop, user = desk.workspace.functions, TWICE.replace("vowels_twice", "mine")
    file = desk.functions / "grown.py"
    desk.put("grown.py", f"{file.read_text()}\n\n{user}")
    await tended(desk)  # it may have been loaded by then, or not
    assert user.strip() in file.read_text()
    assert {"vowel_count", "mine"} <= set(shop.names()), "what it calls stays"
    versions = [version.row.by for version in await shop.history.versions("vowels_twice")]
    assert versions == ["agent"]
    await shop.reload()
    assert 'self.call("vowel_count"' in shop.plans.source("vowels_twice")


async def test_what_a_person_has_edited_and_what_an_agent_has_at_hand_stay(
    at_desk: OpenDesk,
) -> None:
    desk = await with_copies(at_desk)
    shop = desk.workspace.functions
    await shop.edit("vowel_count", '"rhythm"', '"rhythms"')  # it is the person's now
    await desk.agent.session.own_set.add("count_vowels")
    assert [done for done, _ in merges(await tended(desk))] in ([False], [])
    assert {"count_vowels", "vowel_count"} <= set(shop.names())


async def test_merges_cost_no_tokens_and_are_made_without_any(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    maker = scripted(
        [Say(f"```\n{source}```") for source in (SHARE, VOWELS, COPY)],
        models=["scripted", "strong"],
    )
    makes = [made("share"), made("count_vowels"), made("vowel_count"), FAILING]
    desk = await at_desk(
        [*makes, Say("Done.")], models={"maker": {"name": "strong", "base_url": maker.base_url}}
    )
    await desk.say("Make them, and call them.")
    report = await tending(desk).run(TendingBudget(tokens=0), applies=True)
    assert [(step.kind, step.done) for step in report.steps] == [("merge", True)]
    assert report.stopped == "it took 0 tokens, of 0"


async def test_a_proof_that_takes_longer_than_its_run_may_ends(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    slow = [Say(f"```\n{SHARE}```"), Say(f"```\n{FIXED}```", pause_s=300)]
    desk = await failing(at_desk, scripted(slow, models=["scripted", "strong"]))
    async with asyncio.timeout(60):
        report = await tending(desk).run(TendingBudget(minutes=0.05), applies=True)
    assert [step.why_not for step in report.steps] == ["the time was over before it was proven"]
