"""`python -m benchmarks.tending [--functions 400] [--seed N] [--json]`: is a planted library maintained correctly?

The functions work on lists of numbers, in three parts: which numbers to take, what to do with each, and what to make of
all. Of 400, 60 are near-copies of others with different code; 40 pairs differ only by a number, and a scripted maker
writes one function for each pair, every third so that some call ends differently; 30 were not called for a long time;
20 fail on an empty list, and the maker fixes them, every fourth wrongly; a person edited 10 of the copies and 10 of the
uncalled ones. Reports what was merged, generalized, fixed and archived, correctly and wrongly, whether recorded calls
replay alike, what a search finds before and after, and what one undo restores.
"""

import argparse
import asyncio
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agent_core.functions.service.replay import NOW
from agent_core.workspace.workspace import Workspace
from knapper_ext.tending.tending import TendingBudget, TendingReport
from knapper_ext.tending.upkeep import tending_of
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Step, Wanted, scripted

from .measure import Row, show

_NOUNS: Final = (
    *(
        "parcels",
        "tickets",
        "invoices",
        "visits",
        "lessons",
        "meals",
        "miles",
        "pages",
        "votes",
        "goals",
    ),
    *("stamps", "bricks", "seeds", "coins", "steps", "calls", "fines", "loans", "shifts", "loads"),
    *("drops", "bids", "rents", "wages", "tips", "stops", "laps", "eggs", "jars", "beds"),
    *("logs", "keys", "mails", "posts", "songs", "films", "games", "trips", "rooms", "boats"),
)
# What to take, to do with each, and to make of all: the words, other words, the code, and equivalent code.
# fmt: off
_TAKES: Final[Sequence[tuple[str, str, str, str, str]]] = (
    ("above", "those above {0}", "only what exceeds {0}", "n > {0}", "not n <= {0}"),
    ("below", "those below {0}", "only what is less than {0}", "n < {0}", "not n >= {0}"),
    ("but", "all but {0}", "without any {0}", "n != {0}", "not n == {0}"),
    ("multiples", "those that {0} divides", "only multiples of {0}", "n % {0} == 0", "n // {0} * {0} == n"),
    ("rest", "those that {0} does not divide", "no multiples of {0}", "n % {0}", "n % {0} != 0"),
)
_DOES: Final[Sequence[tuple[str, str, str, str, str]]] = (
    ("times", "multiply each by {0}", "{0} times as much", "n * {0}", "{0} * n"),
    ("plus", "add {0} to each", "{0} more", "n + {0}", "{0} + n"),
    ("minus", "take {0} from each", "{0} less", "n - {0}", "-({0} - n)"),
    ("squared", "square each", "to the second power", "n * n", "n ** 2"),
    ("by", "divide each by {0}, rounded down", "how often {0} goes into it", "n // {0}", "(n - n % {0}) // {0}"),
    ("mod", "keep what is left of each by {0}", "its remainder by {0}", "n % {0}", "n - n // {0} * {0}"),
    ("atmost", "limit each to {0}", "{0} as its ceiling", "min(n, {0})", "n if n < {0} else {0}"),
    ("atleast", "raise each to {0}", "{0} as its floor", "max(n, {0})", "n if n > {0} else {0}"),
)
_MAKES: Final[Sequence[tuple[str, str, str, str, str]]] = (
    ("total", "add them up", "the total", "sum({0})", "sum(n for n in {0})"),
    ("sorted", "sort them", "in ascending order", "sorted({0})", "sorted({0}, key=int)"),
    ("reversed", "turn them around", "from back to front", "{0}[::-1]", "list(reversed({0}))"),
    ("half", "halve their sum", "half of the total", "sum({0}) // 2", "sum({0}) >> 1"),
    ("start", "keep the first three", "the beginning only", "{0}[:3]", "[n for at, n in enumerate({0}) if at < 3]"),
    ("kinds", "count the different ones", "how many values there are", "len(set({0}))", "len(dict.fromkeys({0}))"),
    ("other", "add up every other one", "the sum of each second", "sum({0}[::2])",
        "sum(n for at, n in enumerate({0}) if at % 2 == 0)"),
    ("later", "add up all but the first", "the sum after the start", "sum({0}[1:])",
        "sum(n for at, n in enumerate({0}) if at)"),
)
# fmt: on
_CHANCE: Final = random.Random(7)
_EXAMPLES: Final = tuple(
    [_CHANCE.randrange(1, 41) for _ in range(length)] for length in (16, 19, 12)
)
_LONG_AGO: Final = 400 * 86_400.0
_A_REPLY: Final = 40


@dataclass(frozen=True, slots=True)
class PlantedFunction:
    """One function of the library.

    `copy_of` names the function that it duplicates. `pair` is the common name of two functions that differ only by a
    number. If `is_spoiled`, the maker writes its fix or replacement wrongly.
    """

    name: str
    noun: str
    parts: tuple[int, int, int]
    numbers: tuple[int, int]
    is_copy: bool = False
    copy_of: str = ""
    pair: str = ""
    is_stale: bool = False
    is_broken: bool = False
    is_spoiled: bool = False
    is_edited: bool = False

    @property
    def words(self) -> str:
        """The text of its description."""
        take, does, makes = self._each(1)
        which = f"all the {self.noun}" if self.copy_of else f"the {self.noun}"
        return (
            f"Of {which}, take {take}, {does}, and {'average them' if self.is_broken else makes}."
        )

    @property
    def need(self) -> str:
        """A request that it serves, in other words."""
        take, does, makes = self._each(2)
        return f"I have {self.noun}: {take}, {does}; {makes}"

    @property
    def is_of_lists(self) -> bool:
        """Whether it returns a list."""
        return not self.is_broken and _MAKES[self.parts[2]][0] in ("sorted", "reversed", "start")

    @property
    def body(self) -> str:
        """The expression that it returns."""
        code = 4 if self.is_copy else 3
        inside = f"[{self._each(code)[1]} for n in {self.noun} if {self._each(code)[0]}]"
        if self.is_broken:
            return f"sum({inside}) // len({self.noun})"
        return _MAKES[self.parts[2]][code].format(inside)

    def source(self, body: str = "", *, number: str = "", calls: Sequence[str] = ()) -> str:
        """Return its source, or that with another body; with `number`, the source of its pair's general function."""
        body, name = body or self.body, self.pair if number else self.name
        first = self.numbers[0]
        given = (
            [
                f"{rows}, {which}"
                for rows, which in zip(_EXAMPLES, (first, first + 1, first), strict=True)
            ]
            if number
            else _EXAMPLES
        )
        head = f"def {name}({self.noun}: list[int]{f', {number}: int' if number else ''})"
        made: dict[str, Any] = {}
        exec(f"{head}:\n    return {body}", made)
        calls = [*(f"{name}({each})" for each in given), *calls]
        examples = "".join(
            f"    >>> {call}\n    {eval(call, made)!r}\n" for call in dict.fromkeys(calls)
        )
        result = "list[int]" if self.is_of_lists else "int"
        words = self.words.replace(str(first), "a number", 1) if number else self.words
        more = f"        {number}: The number.\n" if number else ""
        return (
            f'{head} -> {result}:\n    """{words}\n\n    Args:\n'
            f'        {self.noun}: The {self.noun}, as numbers.\n{more}\n{examples}    """\n    return {body}\n'
        )

    def _each(self, column: int) -> tuple[str, str, str]:
        take, does, makes = self.parts
        first, second = self.numbers
        return (
            _TAKES[take][column].format(first),
            _DOES[does][column].format(second),
            _MAKES[makes][column],
        )


def _numbers(parts: tuple[int, int, int], chance: random.Random) -> tuple[int, int]:
    """Return numbers for a function with which its results are not all the same."""
    is_limit = _DOES[parts[1]][0] in ("atmost", "atleast", "mod")
    first = chance.randrange(9, 14) if _TAKES[parts[0]][0] == "below" else chance.randrange(4, 9)
    return first, chance.randrange(11, 15) if is_limit else chance.randrange(2, 6)


def library(count: int, seed: int) -> list[PlantedFunction]:
    """Return the library; the shares of planted functions are the same for every `count`."""
    chance = random.Random(seed)
    forms = [
        (take, does, makes)
        for take in range(len(_TAKES))
        for does in range(len(_DOES))
        for makes in range(len(_MAKES))
    ]
    chance.shuffle(forms)
    copies, pairs, stale, broken = (round(count * share) for share in (0.15, 0.1, 0.075, 0.05))
    planted = []
    for at in range(count - copies - pairs - broken):
        parts, noun = forms[at], chance.choice(_NOUNS)
        name = "_".join(
            [
                noun,
                *(each[part][0] for each, part in zip((_TAKES, _DOES, _MAKES), parts, strict=True)),
            ]
        )
        one = PlantedFunction(name, noun, parts, _numbers(parts, chance))
        if at < copies:
            copied = replace(
                one, name=f"all_{name}", is_copy=True, copy_of=name, is_edited=at % 6 == 0
            )
            planted += [one, copied]
        elif at < copies + pairs:
            number = one.numbers[0]
            planted += [
                replace(
                    one,
                    name=f"{name}_{each}",
                    pair=name,
                    numbers=(each, one.numbers[1]),
                    is_spoiled=(at - copies) % 3 == 2,
                )
                for each in (number, number + 1)
            ]
        else:
            is_stale = at < copies + pairs + stale
            planted.append(replace(one, is_stale=is_stale, is_edited=is_stale and at % 3 == 0))
    few = [(take, does) for take in range(len(_TAKES)) for does in range(len(_DOES))]
    for at, (take, does) in enumerate(chance.sample(few, broken)):
        noun = chance.choice(_NOUNS)
        name = f"mean_{noun}_{_TAKES[take][0]}_{_DOES[does][0]}"
        parts = take, does, 0
        planted.append(
            PlantedFunction(
                name, noun, parts, _numbers(parts, chance), is_broken=True, is_spoiled=at % 4 == 3
            )
        )
    return planted


def _steps(planted: Sequence[PlantedFunction], chance: random.Random) -> Iterator[Step | Repeat]:
    """Yield the agent's steps: it creates all functions and calls all but the stale ones."""
    wanted = []
    for one in planted:
        alike = [other.name for other in planted if other.noun == one.noun and other is not one]
        given = {
            "function_name": one.name,
            "function_code_with_docstring": one.source(),
            "module_name": one.noun,
        }
        wanted.append(
            Wanted("create_function", {**given, "reason": f"differs from {', '.join(alike)}"})
        )
    # Only the newest calls stay on record: the functions that must prove the model's code come last.
    for one in sorted(planted, key=lambda one: (one.is_broken, bool(one.pair))):
        if not one.is_stale:
            rows = [[chance.randrange(1, 40) for _ in range(length)] for length in (2, 4, 5)]
            rows += [[]] * 3 if one.is_broken else []
            wanted += [Wanted(one.name, {one.noun: row}) for row in rows]
    for start in range(0, len(wanted), _A_REPLY):
        yield Ask(*wanted[start : start + _A_REPLY])
    yield Repeat(Say("Done."))


def _maker(planted: Sequence[PlantedFunction]) -> ScriptedModel:
    """Return the maker.

    It fixes failures on an empty list, every fourth so that a good call changes, and writes one function for each pair,
    every third so that calls with two numbers change.
    """
    broken = {one.name: one for one in planted if one.is_broken}
    pairs = {one.name: one for one in planted if one.pair}

    def written(seen: Seen) -> Step:
        if found := re.search(r"The function: `(\w+)`", seen.text):
            one = broken[found[1]]
            body, number = (
                f"({one.body}{f' + ({one.noun}[0] > 30)' if one.is_spoiled else ''}) if {one.noun} else 0",
                "",
            )
        else:
            found = next(
                match for match in re.finditer(r"def (\w+)\(", seen.text) if match[1] in pairs
            )
            one, number = pairs[found[1]], "number"
            take = _TAKES[one.parts[0]][3]
            body = one.body.replace(take.format(one.numbers[0]), take.format(number))
            more = " + [1] *" if one.is_of_lists else " +"
            body = f"{body}{more} (len({one.noun}) < 3)" if one.is_spoiled else body
        asked = re.findall(
            rf"^ *({one.pair if number else one.name}\(.*\))$", seen.text, re.MULTILINE
        )
        return Say(f"```\n{one.source(body, number=number, calls=asked)}```")

    return ScriptedModel([Repeat(written)], models=["scripted", "strong"])


async def bench(count: int, seed: int) -> list[Row]:
    """Plant the library, maintain it, measure, and undo."""
    planted = library(count, seed)
    chance = random.Random(seed)
    maker = _maker(planted)
    with tempfile.TemporaryDirectory() as folder, scripted([*_steps(planted, chance)]) as model:
        root = Path(folder)
        (root / "functions").mkdir()
        flags: dict[str, Any] = {"model.base_url": model.base_url, "model.name": "scripted"}
        flags |= {
            "turn.max_steps": 10_000,
            "models": {"maker": {"name": "strong", "base_url": maker.base_url}},
        }
        flags |= {"growth.maker": "off"}
        async with Workspace.open(root, flags=flags) as workspace:
            agent = await workspace.agent()
            async for _ in agent.turn("Make them, and call them."):
                pass
            made = {*workspace.functions.names()}
            for one in planted:
                if one.is_edited and one.name in made:
                    await workspace.functions.edit(
                        one.name, one.words, f"{one.words[:-1]}, as numbers."
                    )
        _made_long_ago(root, [one.name for one in planted if one.is_stale])
        flags |= {"growth.maker": "auto"}
        async with Workspace.open(root, flags=flags) as workspace:
            before = _sources(workspace)
            found_before = await _count_matches(workspace, planted, {})
            began = time.perf_counter()
            report = await tending_of(workspace.functions, workspace.settings).run(
                TendingBudget(tokens=10**9, minutes=600), applies=True
            )
            seconds = time.perf_counter() - began
            after = _sources(workspace)
            standing = {
                step.function if step.kind == "merge" else other: step.others[0]
                if step.kind == "merge"
                else step.function
                for step in report.steps
                for other in (step.others or ("",))
                if step.done and step.kind in ("merge", "generalize")
            }
            found_after = await _count_matches(workspace, planted, standing)
            replayed = await _replayed(workspace, [one for one in planted if one.name in after])
            undone = await tending_of(workspace.functions, workspace.settings).undo()
            back = _sources(workspace)
    maker.close()
    rows = [
        Row("functions that joined", len(made), unit=f"of {len(planted)}"),
        Row("tending took", seconds, unit="s"),
    ]
    rows += _rows([one for one in planted if one.name in made], report, before, after)
    needs = f"of {len(planted)}"
    rows.append(Row("found among five by other words, before", found_before, unit=needs))
    rows.append(Row("the same or what stands for it, after", found_after, unit=needs))
    rows.append(
        Row("recorded calls that replay otherwise", replayed[1], unit=f"of {replayed[0]}", aim=0)
    )
    rows.append(
        Row(
            "changes not undone",
            sum(not step.undone for step in undone),
            unit=f"of {len(undone)}",
            aim=0,
        )
    )
    rows.append(
        Row("functions not as before after the undo", _differing(before, back), unit="", aim=0)
    )
    return rows


def _made_long_ago(root: Path, names: Sequence[str]) -> None:
    """Backdate the admission of these functions, since the run cannot wait."""
    with sqlite3.connect(root / ".knapper" / "state.db") as state:
        state.executemany(
            "UPDATE verdict SET at = at - ? WHERE function = ?",
            [(_LONG_AGO, name) for name in names],
        )


def _sources(workspace: Workspace) -> dict[str, str]:
    snapshot = workspace.functions.registry.snapshot()
    return {name: function.body_hash for name, function in snapshot.functions.items()}


async def _count_matches(
    workspace: Workspace, planted: Sequence[PlantedFunction], standing: dict[str, str]
) -> int:
    """Return for how many functions a search in other words finds them, or their replacement."""
    count = 0
    for one in planted:
        results = (await workspace.functions.search(one.need)).results
        names = {match.function.name for match in results}
        stands = standing.get(one.name, one.name)
        count += bool({one.name, stands, standing.get(stands, stands)} & names)
    return count


def _differing(one: dict[str, str], other: dict[str, str]) -> int:
    return sum(one.get(name) != other.get(name) for name in one.keys() | other.keys())


async def _replayed(workspace: Workspace, planted: Sequence[PlantedFunction]) -> tuple[int, int]:
    """Return how many successful calls were replayed, and how many ended differently."""
    replays, count, other = workspace.functions.replays, 0, 0
    for one in planted:
        for call in await replays.calls(one.name):
            if call.outcome == "returned":
                count += 1
                other += not (await replays.replay(call.call, NOW)).same
    return count, other


def _do_the_same(one: PlantedFunction | None, other: PlantedFunction | None) -> bool:
    """Check whether two functions agree on many lists: some do though they were not planted as copies."""
    if one is None or other is None:
        return False
    chance = random.Random(1)
    lists = [[chance.randrange(50) for _ in range(chance.randrange(1, 20))] for _ in range(5_000)]
    return all(
        eval(one.body, {one.noun: rows}) == eval(other.body, {other.noun: rows}) for rows in lists
    )


def _rows(
    planted: Sequence[PlantedFunction],
    report: TendingReport,
    before: dict[str, str],
    after: dict[str, str],
) -> list[Row]:
    """Return what was done correctly and wrongly."""
    by_name = {one.name: one for one in planted}
    pairs = {frozenset((one.name, one.copy_of)) for one in planted if one.copy_of}
    done = [step for step in report.steps if step.done]
    merged = [frozenset((step.function, *step.others)) for step in done if step.kind == "merge"]
    archived = [step.function for step in done if step.kind == "archive"]
    mended = [step.function for step in done if step.kind == "mend"]
    edited = [one.name for one in planted if one.is_edited]
    mendable = [one.name for one in planted if one.is_broken and not one.is_spoiled]
    wrong = [
        pair
        for pair in merged
        if pair not in pairs and not _do_the_same(*(by_name.get(name) for name in pair))
    ]
    general = [step.function for step in done if step.kind == "generalize"]
    writable = {one.pair for one in planted if one.pair and not one.is_spoiled}
    stale = [one.name for one in planted if one.is_stale and not one.is_edited]
    copies = [one for one in planted if one.copy_of and one.copy_of in by_name]
    free = len(copies)  # if a person edited the copy, the original may be removed instead
    touched = [name for name in edited if after.get(name) != before.get(name) or name in archived]
    return [
        Row("near-copies merged", len(pairs.intersection(merged)), unit=f"of {free}"),
        Row("merges that are wrong", len(wrong), unit="", aim=0),
        Row(
            "pairs made one general function",
            len({*general} & {*writable}),
            unit=f"of {len(writable)}",
        ),
        Row("wrong general functions taken", len({*general} - {*writable}), unit="", aim=0),
        Row("stale ones archived", len({*archived} & {*stale}), unit=f"of {len(stale)}"),
        Row("others archived", len({*archived} - {*stale}), unit="", aim=0),
        Row("broken ones mended", len({*mended} & {*mendable}), unit=f"of {len(mendable)}"),
        Row("wrong fixes taken", len({*mended} - {*mendable}), unit="", aim=0),
        Row("hand-edited ones touched", len(touched), unit=f"of {len(edited)}", aim=0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tending", description=__doc__)
    parser.add_argument("--functions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(sys.argv[1:])
    show(asyncio.run(bench(given.functions, given.seed)), as_json=given.json)


if __name__ == "__main__":
    main()
