"""A function's versions: who changed what and why, rollbacks, and what a call sees during changes."""

import asyncio

import pytest

from agent_core.base.errors import UsageError
from agent_core.functions.service import Author
from agent_core.functions.service.history import HistoryEntry
from tests.functions.support import Room
from tests.kit.desk import VOWELS
from tests.kit.sources import function_text

AGENT = Author("agent", turn="t1", model="m1")
MORE = VOWELS.replace('"aeiou"', '"aeiouäöü"')
MOST = MORE.replace("Count the vowels", "Number the vowels")
HALVE = "\n\n".join(
    [
        "import math\n\nUNIT = 2\n",
        "def _part(number: float) -> float:\n    return math.fabs(number) / UNIT\n",
        function_text(
            "halve(number: float) -> float",
            "Give half of the size of a number.\n\nArgs:\n    number: The number.",
            "return _part(number)",
            "halve(3.0) → 1.5",
            "halve(-8.0) → 4.0",
        ),
    ]
)


async def grown(here: Room) -> None:
    """Create three versions: a human's and two of an agent's."""
    await here.save(f"# mine\n{VOWELS}")
    await here.shop.replace("count_vowels", MORE, reason="umlauts count", author=AGENT)
    await here.shop.edit("count_vowels", "Count the vowels", "Number the vowels", author=AGENT)


async def history(here: Room, name: str = "count_vowels") -> list[HistoryEntry]:
    return [*(await here.shop.history.of(name)).versions]


async def test_the_history_and_difference_say_who_changed_what_when_and_why(here: Room) -> None:
    await grown(here)
    rows = await history(here)
    assert [
        (row.version.number, row.version.row.by, row.version.change_kind, row.is_current)
        for row in rows
    ] == [
        (1, "human", "created", False),
        (2, "agent", "changed", False),
        (3, "agent", "changed", True),
    ]
    assert [(row.version.added, row.version.removed) for row in rows[1:]] == [(1, 1), (1, 1)]
    assert [row.version.row.reason for row in rows] == [
        "saved",
        "umlauts count",
        "edit of count_vowels",
    ]
    assert (rows[1].version.row.turn, rows[1].version.row.model, rows[1].standing) == (
        "t1",
        "m1",
        "trial",
    )
    assert rows[2].version.hash == here.shop.registry.snapshot().functions["count_vowels"].body_hash
    last, all_of_it = [
        (await here.shop.history.diff("count_vowels", wanted)).diff for wanted in ("", "1")
    ]
    assert "aeiouäöü" not in "".join(
        line for line in last.splitlines(keepends=True) if line[0] in "+-"
    )
    assert '+    return sum(letter in "aeiouäöü" for letter in text.lower())' in all_of_it
    done = await here.shop.rollback("count_vowels", "3")
    assert (done.admitted, "at version 3 already" in done.error) == (False, True)
    assert len(await history(here)) == 3


async def test_what_does_not_touch_a_functions_own_text_is_no_version_of_it(here: Room) -> None:
    neighbor = "\n\ndef other(n: int) -> int:\n    return n + 1\n"
    for text in (VOWELS, f"# mine, still\n{VOWELS}", f"{VOWELS}{neighbor}"):
        await here.save(text)
    assert len(await here.store.module_history("letters")) == 3
    assert len(await history(here)) == 1


async def test_a_function_that_moves_to_another_file_keeps_its_history_without_a_break(
    here: Room,
) -> None:
    await here.save(VOWELS)
    here.letters.rename(here.letters.with_name("words.py"))
    await here.shop.reload()
    await here.shop.replace("count_vowels", MORE, author=AGENT)
    assert [(row.version.change_kind, row.version.row.module) for row in await history(here)] == [
        ("created", "letters"),
        ("changed", "words"),
    ]


async def test_a_rollback_puts_the_text_back_word_for_word_and_is_a_version_itself(
    here: Room,
) -> None:
    await grown(here)
    first = (await history(here))[0].version.hash
    mine = f"# mine\n{VOWELS}"
    for number, (wanted, text) in enumerate(
        (("", MORE), (first[:10], mine), ("2", MORE), ("1", mine)), 4
    ):
        done = await here.shop.rollback("count_vowels", wanted, author=AGENT)
        assert done.admitted, done
        assert here.letters.read_text() == text
        last = (await history(here))[-1]
        assert (last.version.number, last.version.row.turn) == (number, "t1")
        assert "rolled back to version" in last.version.row.reason


async def test_what_a_person_brings_back_is_still_by_the_agent_that_wrote_it(here: Room) -> None:
    await here.shop.create("count_vowels", VOWELS, "letters", author=AGENT)
    assert await writer(here) == "agent"
    await here.save(MORE)
    assert await writer(here) == "human"
    for wanted, by in (("1", "agent"), ("2", "human"), ("3", "agent")):
        assert (await here.shop.rollback("count_vowels", wanted)).admitted
        assert await writer(here) == by
    assert [row.version.row.by for row in await history(here)] == ["agent", *["human"] * 4]


async def writer(here: Room) -> str:
    """Return the author of the current text, as lists show it."""
    return next(
        row.source for row in (await here.shop.list()).functions if row.name == "count_vowels"
    )


async def test_a_version_that_is_not_there_is_refused_and_those_that_are_named(here: Room) -> None:
    await here.save(VOWELS)
    short = (await history(here))[0].version.hash[:8]
    for wanted, says in (
        ("9", "no version `9`"),
        ("dead", "no version `dead`"),
        ("", "no version before the current"),
    ):
        with pytest.raises(UsageError, match=says) as caught:
            await here.shop.rollback("count_vowels", wanted)
        assert f"1 ({short})" in caught.value.fix
    with pytest.raises(UsageError, match="There is no function `nothing`"):
        await here.shop.history.of("nothing")


async def test_a_deleted_function_comes_back_with_its_imports_and_helpers(here: Room) -> None:
    await here.save(HALVE)
    await here.shop.delete("halve", author=AGENT)
    await here.save("LIMIT = 3\n")
    assert [row.version.change_kind for row in await history(here, "halve")] == [
        "created",
        "deleted",
    ]
    assert (await here.shop.history.of("halve")).deleted
    done = await here.shop.rollback("halve", author=AGENT)
    assert done.admitted, done
    assert (
        here.letters.read_text()
        == f"import math\n\n\nLIMIT = 3\n\n\n{HALVE.removeprefix('import math' + chr(10) * 2)}"
    )
    assert (await history(here, "halve"))[-1].version.change_kind == "restored"
    with pytest.raises(UsageError, match="is its deletion"):
        await here.shop.rollback("halve", "2")


async def test_a_rollback_leaves_its_neighbours_and_puts_back_the_helper_that_is_only_its_own(
    here: Room,
) -> None:
    mine = "\n\ndef other(n: int) -> int:\n    return n + 1\n"
    await here.save(HALVE + mine)
    changed = HALVE.replace("/ UNIT", "* 1 / UNIT").replace(
        "return _part(number)", "return 1.0 * _part(number)"
    )
    await here.save(changed + mine.replace("n + 1", "n + 2"))
    assert (await here.shop.rollback("halve")).admitted
    assert here.letters.read_text() == HALVE + mine.replace("n + 1", "n + 2")


async def test_a_helper_that_others_use_too_is_not_put_back_and_the_two_clash(here: Room) -> None:
    user = "\n\ndef quarter(number: float) -> float:\n    return _part(number) / 2\n"
    await here.save(HALVE + user)
    text = (
        HALVE.replace("/ UNIT", "* 1 / UNIT").replace(
            "return _part(number)", "return 1.0 * _part(number)"
        )
        + user
    )
    await here.save(text)
    done = await here.shop.rollback("halve")
    assert [problem.code for problem in done.problems if problem.severity == "refuses"] == [
        "helper-clash"
    ]
    assert (here.letters.read_text(), await here.shop.pending("halve") is not None) == (text, True)


async def test_a_rollback_that_the_gate_refuses_waits_as_a_candidate_and_changes_nothing(
    here: Room,
) -> None:
    base = "def base(number: int) -> int:\n    return number + 1\n"
    user = HALVE.replace("_part(number)", "float(base(0)) * _part(number)")
    await here.save(f"{base}\n\n{user}")
    await here.save(HALVE)
    done = await here.shop.rollback("halve", author=AGENT)
    assert (done.admitted, await here.shop.pending("halve") is not None) == (False, True)
    assert here.letters.read_text() == HALVE


SLOW = "\n\n".join(
    [
        "import time\n",
        function_text(
            "slow(word: str) -> str",
            "Say a word, later.\n\nArgs:\n    word: The word.",
            'time.sleep(0.4)\nfrom functions.words import ending\n\nreturn f"{word} {ending()}"',
            "slow(\"a\") → 'a ONE'",
            "slow(\"b\") → 'b ONE'",
        ),
    ]
)
ENDING = 'def ending() -> str:\n    """Give the ending."""\n    return "ONE"\n'


async def test_a_call_in_flight_a_replay_and_a_rollback_each_see_their_own_code(here: Room) -> None:
    words = here.letters.with_name("words.py")
    await here.save(ENDING, words)
    await here.save(SLOW)
    first = here.shop.registry.snapshot().functions["slow"]
    flying = asyncio.create_task(here.shop.call("slow", {"word": "in flight"}))
    await asyncio.sleep(0.1)
    await here.save(ENDING.replace("ONE", "TWO"), words)
    await here.save(SLOW.replace("ONE", "TWO").replace("{word} ", "{word}: "))
    after = await here.shop.call("slow", {"word": "after"})
    assert ((await flying).value, after.value) == ("in flight ONE", "after: TWO")
    assert (await here.shop.rollback("slow")).admitted
    assert (await here.shop.call("slow", {"word": "back"})).value == "back TWO"
    row = await here.store.version(first.version)
    assert row is not None
    assert row.text == SLOW
