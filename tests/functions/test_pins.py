"""Pins: no agent changes what a person pinned, by whatever way; it can propose a new version, which a person joins."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_core.base.errors import UsageError
from agent_core.functions.service.plan import Author
from knapper_ext.tending.tending import TendingBudget
from knapper_ext.tending.upkeep import tending_of
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, Desk, another, answers, outcomes
from tests.kit.drawing import sampled
from tests.kit.sources import function_text

AGENT = Author("agent", "main")
PINNED = '''\
"""Uses of vowels."""

_VOWELS = "aeiou"


def _is_vowel(letter: str) -> bool:
    return letter in _VOWELS


# How many vowels there are.
def count_vowels(text: str) -> int:
    """Count the vowels in a text.

    Args:
        text: The text to look at.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("rhythm")
    0
    """
    return sum(_is_vowel(letter) for letter in text.lower())


def vowels_twice(text: str) -> int:
    """Say twice how many vowels a text has.

    Args:
        text: The text.

    >>> vowels_twice("queueing")
    10
    >>> vowels_twice("rhythm")
    0
    """
    return 2 * count_vowels(text)


def spare(text: str) -> str:
    """Turn a text round.

    Args:
        text: The text.

    >>> spare("ab")
    'ba'
    >>> spare("")
    ''
    """
    return text[::-1]
'''
NAMES = ("count_vowels", "vowels_twice")
Way = Callable[[int, str], Wanted]


def edit(name: str, old: str, new: str) -> Wanted:
    changes = [{"old_text": old, "new_text": new}]
    given = {"function_name": name, "changes": changes, "reason": "It is better so."}
    return Wanted("edit_function", given)


def whole(name: str, code: str, tool: str = "replace_function", **more: Any) -> Wanted:
    given = {"function_name": name, "function_code_with_docstring": code, "reason": "It is better."}
    return Wanted(tool, given | more)


def beside(n: int, extra: str) -> str:
    """Return a new function for the module, with more statements above it."""
    name = f"added_{n}"
    text = function_text(
        f"{name}(text: str) -> str",
        f"Say a text {n + 2} times.\n\nArgs:\n    text: The text.",
        f"return text * {n + 2}",
        f"{name}(\"a\") → '{'a' * (n + 2)}'",
        f"{name}(\"\") → ''",
    )
    return f"{extra}\n\n\n{text}"


def joining(n: int, extra: str) -> Wanted:
    return whole(f"added_{n}", beside(n, extra), "create_function", module_name="texts")


def plain(name: str, n: int) -> str:
    return VOWELS.replace("count_vowels", name).replace("Count the", f"Count, as number {n}, the")


WAYS: dict[str, Way] = {
    "its docstring": lambda n, name: edit(
        name, "        text: The text", f"        text: {n} The text"
    ),
    "its example": lambda n, name: edit(name, '"rhythm"', f'"rhythm{"x" * n}"'),
    "its body": lambda n, name: edit(name, "    return ", f"    _ = {n}\n    return "),
    "its whole text": lambda n, name: whole(name, plain(name, n)),
    "a comment above it": lambda n, name: whole(name, f"# Number {n}.\n{plain(name, n)}"),
    "made again where it is": lambda n, name: whole(
        name, plain(name, n), "create_function", module_name="texts"
    ),
    "made elsewhere": lambda n, name: whole(
        name, plain(name, n), "create_function", module_name=f"other_{n}"
    ),
    "deleted": lambda n, name: Wanted("delete_function", {"function_name": name}),
    "rolled back": lambda n, name: Wanted(
        "rollback_function", {"function_name": name, "version": str(1 + n % 2)}
    ),
    "another example": lambda n, name: Wanted(
        "add_example", {"function_name": name, "call": f'{name}("{"x" * n}")', "expected": "0"}
    ),
    "what was refused, confirmed": lambda n, name: Wanted(
        "confirm_function", {"function_name": name, "reason": f"{n}"}
    ),
    "its helper, by another function": lambda n, _: joining(
        n, f'def _is_vowel(letter: str) -> bool:\n    return letter in "aeiou{n}"'
    ),
    "its constant, by another function": lambda n, _: joining(n, f'_VOWELS = "aeiouy{n}"'),
    "its constant, changed in place": lambda n, _: joining(n, f'_VOWELS += "{n}"'),
    "its name, bound again": lambda n, name: joining(n, f"{name} = len  # {n}"),
    "its name, removed": lambda n, name: joining(n, f"del {name}  # {n}"),
    "the module's names": lambda n, name: joining(n, f'globals()["{name}"] = len  # {n}'),
    "its neighbor's edit": lambda n, name: whole(
        "spare", f'_VOWELS = "{n}"\n\n\n{beside(n, "").replace(f"added_{n}", "spare").strip()}'
    ),
    "a program that writes its file": lambda n, _: Wanted(
        "run_program", {"code": f'open("functions/texts.py", "a").write("# {n}")'}
    ),
    "its file, removed by a program": lambda n, _: Wanted(
        "run_program", {"code": f'import os\nos.remove("functions/texts.py")  # {n}'}
    ),
}
ATTEMPTS = [(way, n, NAMES[n % 2]) for n in range(10) for way in WAYS]


async def pinned_desk(at_desk: OpenDesk, *steps: Any, **flags: Any) -> Desk:
    """A desk with two versions of the module, whose two functions with vowels are pinned."""
    script = [*steps, Repeat(Say("Done."))] if steps else []
    desk = await at_desk(script, **flags)
    first = PINNED.replace("Count the vowels in a text.", "Count all vowels in a text.")
    await desk.save("texts.py", first.replace("Say twice", "Tell twice"))
    await desk.save("texts.py", PINNED)
    await desk.workspace.functions.pins.pin("count_vowels")
    await desk.workspace.functions.pins.pin("*_twice")
    return desk


def own(desk: Desk) -> list[str]:
    """Return the pinned functions, and what they use of their module, as they are in its file now."""
    text = (desk.functions / "texts.py").read_text("utf-8")
    return [part for part in PINNED.split("\n\n\n")[:4] if part.strip() not in text]


async def test_no_agent_changes_what_is_pinned_by_any_way(at_desk: OpenDesk) -> None:
    attempts = sampled(ATTEMPTS, 7)
    calls = [WAYS[way](n, name) for way, n, name in attempts]
    replies = [Ask(*calls[at : at + 10]) for at in range(0, len(calls), 10)]
    ends = Expect(Say("Done."), lambda seen: None if seen.answers else "no calls were answered")
    turns = [step for reply in replies for step in (reply, ends)]
    desk = await pinned_desk(at_desk, *turns)
    told = list[str]()
    for _ in replies:
        events = await desk.say("Change them.")
        told += outcomes(events)
    assert len(told) == len(calls)
    assert own(desk) == []
    assert {*NAMES, "spare"} <= {*desk.workspace.functions.names()}
    for name in NAMES:
        versions = await desk.workspace.functions.history.versions(name)
        assert {version.row.by for version in versions} == {"human"}, name


@pytest.mark.parametrize("verb", ["rename", "move", "tend", "merge"])
async def test_nor_does_what_works_on_many_functions_at_once(at_desk: OpenDesk, verb: str) -> None:
    desk = await pinned_desk(at_desk)
    shop = desk.workspace.functions
    if verb == "rename":  # of a function that a pinned one calls by its name, too
        plans = [await shop.relocations.rename(name, f"{name}_now", AGENT) for name in NAMES]
    elif verb == "move":
        plans = [await shop.relocations.move(name, "elsewhere", AGENT) for name in NAMES]
    else:
        plans = []
        await tending_of(shop, desk.workspace.settings).run(TendingBudget(), applies=True)
    made = [await shop.finish(plan, AGENT) for plan in plans]
    assert [plan.outcome for plan in made] == ["refused"] * len(plans)
    assert own(desk) == []


async def test_a_proposal_for_a_pinned_function_waits_until_the_person_joins_it(
    at_desk: OpenDesk,
) -> None:
    better = edit("count_vowels", "Count the vowels", "Count the five vowels")
    desk = await pinned_desk(at_desk, Ask(better))
    events = await desk.say("Say it better.")
    assert outcomes(events) == ["refused"]
    assert "pinned" in answers(events)[0]
    assert "/join count_vowels" in answers(events)[0]
    shop = desk.workspace.functions
    pending = await shop.pending("count_vowels")
    assert pending is not None
    assert pending.waits_for_a_person
    assert '+    """Count the five vowels in a text.' in pending.verdict.diff
    joined = await shop.join("count_vowels")
    assert [judgment.admitted for judgment in joined.joined] == [True]
    assert "five vowels" in shop.source("count_vowels")
    assert await shop.pins.holds("count_vowels")


async def test_what_is_not_pinned_changes_beside_it(at_desk: OpenDesk) -> None:
    turned = edit("spare", "Turn a text round.", "Turn a text around.")
    more = whole("added_1", beside(1, ""), "create_function", module_name="texts")
    desk = await pinned_desk(at_desk, Ask(turned, more))
    assert outcomes(await desk.say("Go on.")) == ["returned", "returned"]
    assert own(desk) == []


async def test_a_pin_follows_a_persons_renaming_and_ends_when_they_unpin(at_desk: OpenDesk) -> None:
    desk = await pinned_desk(at_desk)
    shop = desk.workspace.functions
    await shop.finish(await shop.relocations.rename("count_vowels", "vowels_of", Author()))
    assert await shop.pins.holds("vowels_of")
    assert await shop.pins.holds("vowels_twice")
    freed = await shop.pins.unpin("vowels_twice")  # a wider pin holds it
    assert (freed.holds, freed.functions) == (False, ("vowels_twice",))
    assert not await shop.pins.holds("vowels_twice")
    assert (await shop.pins.pin("texts")).functions == ("spare", "vowels_of", "vowels_twice")
    assert await shop.pins.holds("spare")
    await shop.pins.unpin("texts")
    assert not await shop.pins.holds("spare")


@pytest.mark.parametrize("pattern", ["not_there", "shop.*", "", "x" * 300, "count vowels", "*\n*"])
async def test_a_pin_on_what_is_not_there_is_refused(at_desk: OpenDesk, pattern: str) -> None:
    desk = await pinned_desk(at_desk)
    for verb in (desk.workspace.functions.pins.pin, desk.workspace.functions.pins.unpin):
        with pytest.raises(UsageError):
            await verb(pattern)


async def test_what_a_person_wrote_is_pinned_from_the_start_if_they_say_so(
    at_desk: OpenDesk,
) -> None:
    grown = whole("vowels_too", another("vowels_too"), "create_function", module_name="grown")
    changed = [
        edit("vowels_too", "Count the vowels", "Count all the vowels"),
        edit("spare", "Turn a text round.", "Turn a text around."),
    ]
    again = edit("vowels_too", "Count the vowels", "Count the vowels there")
    steps = [Ask(grown), Say("Made."), Ask(*changed), Say("Done."), Ask(again)]
    desk = await at_desk([*steps, Say("Done.")], growth__pin="mine")
    await desk.save("texts.py", PINNED)
    await desk.say("Make one.")
    assert outcomes(await desk.say("Change both.")) == ["returned", "refused"]
    shop = desk.workspace.functions
    await shop.edit("vowels_too", "Count all the vowels", "Count the vowels")  # by hand
    assert outcomes(await desk.say("Change it again.")) == ["refused"]
    await shop.pins.unpin("spare")
    assert not await shop.pins.holds("spare")
    assert not await shop.pins.holds("read_text")  # a starter


async def test_listings_show_what_is_pinned(at_desk: OpenDesk) -> None:
    listing = [
        Wanted("list_functions", {"pattern": "vowels"}),
        Wanted("introspect_function", {"function_name": "count_vowels"}),
    ]
    desk = await pinned_desk(at_desk, Ask(*listing))
    listed, shown = answers(await desk.say("What is there?"))
    assert "pinned" in listed.partition("count_vowels (")[2].partition("\n")[0]
    assert "It is pinned" in shown
    rows = (await desk.workspace.functions.list()).functions
    assert {row.name for row in rows if row.pinned} == {*NAMES}
