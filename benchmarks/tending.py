"""`python -m benchmarks.tending [--functions 400] [--seed N] [--json]`: is a planted library tended right, and undone?

Functions on lists of numbers, which an agent made: of 400, 60 are near-copies of others, written otherwise; 40 pairs
differ by a number alone, so that no merge of them is right; 30 were not called for long; 20 fail at an empty list, and
a scripted maker mends them, each fourth wrongly; a person edited 10 of the copies and 10 of those not called. Says what
of this was merged, mended and archived, rightly and wrongly, whether what was recorded replays alike, and what one undo
brings back.
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
from agent_core.functions.service.tending import TendingBudget, TendingReport
from agent_core.workspace.workspace import Workspace
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Step, Wanted, scripted

from .measure import Row, show

_NOUNS: Final = (
    *("parcels", "tickets", "invoices", "visits", "lessons", "meals", "miles", "pages", "votes", "goals"),
    *("stamps", "bricks", "seeds", "coins", "steps", "calls", "fines", "loans", "shifts", "loads"),
    *("drops", "bids", "rents", "wages", "tips", "stops", "laps", "eggs", "jars", "beds"),
    *("logs", "keys", "mails", "posts", "songs", "films", "games", "trips", "rooms", "boats"),
)
# fmt: off
_KINDS: Final = {  # its words, its body, and the body of a copy
    "count_large": ("Count the {0} above {1}.",
        "sum(1 for n in {0} if n > {1})", "len([n for n in {0} if not n <= {1}])"),
    "cap": ("Limit each of the {0} to {1}.",
        "[min(n, {1}) for n in {0}]", "[n if n < {1} else {1} for n in {0}]"),
    "pick_every": ("Take one of {1} of the {0}.",
        "{0}[::{1}]", "[n for at, n in enumerate({0}) if at % {1} == 0]"),
    "scale": ("Multiply the {0} by {1}.",
        "[n * {1} for n in {0}]", "list(map(({1}).__mul__, {0}))"),
    "raise": ("Add {1} to each of the {0}.",
        "[n + {1} for n in {0}]", "[n - -{1} for n in {0}]"),
    "rest_of": ("Divide the {0} by {1}; keep the rests.",
        "[n % {1} for n in {0}]", "[n - n // {1} * {1} for n in {0}]"),
    "sum_divisible": ("Add up the {0} that {1} divides.",
        "sum(n for n in {0} if n % {1} == 0)", "sum((n % {1} == 0) * n for n in {0})"),
    "drop_first": ("Leave out the first {1} of the {0}.",
        "{0}[{1}:]", "[n for at, n in enumerate({0}) if at >= {1}]"),
    "price": ("Price the {0}: {1} each, one more for each above nine.",
        "sum(n * {1} + max(0, n - 9) for n in {0})", "sum({1} * n + (n - 9 if n > 9 else 0) for n in {0})"),
}
# fmt: on
_BROKEN: Final = ("mean", "Average the {0}, rounded down, plus {1}.", "sum({0}) // len({0}) + {1}")
_EXAMPLES: Final = ([3, 14, 8, 21, 17, 2, 9, 40, 11, 6], [5, 30, 12, 1, 25, 7, 16, 33, 10, 4, 19])
_LONG_AGO: Final = 400 * 86_400.0
_A_REPLY: Final = 40


@dataclass(frozen=True, slots=True)
class PlantedFunction:
    """One function of the library, with what stands for it: `copy_of` names the one that it does the same as."""

    name: str
    kind: str
    noun: str
    body: str
    words: str
    copy_of: str = ""
    is_stale: bool = False
    is_broken: bool = False
    is_edited: bool = False

    def source(self, body: str = "", words: str = "") -> str:
        """Return its source, or that with another body."""
        body = body or self.body
        examples = "".join(
            f"    >>> {self.name}({rows})\n    {eval(body, {self.noun: rows})!r}\n" for rows in _EXAMPLES
        )
        result = "int" if isinstance(eval(body, {self.noun: [1, 2]}), int) else "list[int]"
        return (
            f'def {self.name}({self.noun}: list[int]) -> {result}:\n    """{words or self.words}\n\n    Args:\n'
            f'        {self.noun}: The {self.noun}, as numbers.\n\n{examples}    """\n    return {body}\n'
        )


def library(count: int, seed: int) -> list[PlantedFunction]:
    """Return the library; the shares of what is planted are the same for every `count`."""
    chance = random.Random(seed)
    kinds = [(kind, noun) for kind in _KINDS for noun in _NOUNS]
    chance.shuffle(kinds)
    copies, pairs, stale, broken = (round(count * share) for share in (0.15, 0.1, 0.075, 0.05))
    planted = []
    for at in range(count - copies - pairs - broken):
        kind, noun = kinds[at]
        words, body, other = _KINDS[kind]
        number = chance.randrange(2, 9)
        name = f"{kind}_{noun}"
        own = words.format(noun, number)
        if at < copies:
            twin = own.replace("the ", "all the ", 1)
            planted.append(PlantedFunction(name, kind, noun, body.format(noun, number), own))
            copied = PlantedFunction(f"{noun}_{kind}", kind, noun, other.format(noun, number), twin, name)
            planted.append(replace(copied, is_edited=at % 6 == 0))
        elif at < copies + pairs:
            planted += [
                PlantedFunction(f"{name}_{each}", kind, noun, body.format(noun, each), words.format(noun, each))
                for each in (number, number + 1)
            ]
        else:
            is_stale = at < copies + pairs + stale
            one = PlantedFunction(name, kind, noun, body.format(noun, number), own, is_stale=is_stale)
            planted.append(replace(one, is_edited=is_stale and at % 3 == 0))
    kind, words, body = _BROKEN
    for noun in _NOUNS[:broken]:
        made = PlantedFunction(
            f"{kind}_{noun}", kind, noun, body.format(noun, 2), words.format(noun, 2), is_broken=True
        )
        planted.append(made)
    return planted


def _steps(planted: Sequence[PlantedFunction], chance: random.Random) -> Iterator[Step | Repeat]:
    """Yield what the agent does: it makes all of them, and calls all but the stale ones."""
    wanted = []
    for one in planted:
        alike = [other.name for other in planted if other.kind == one.kind and other is not one]
        given = {"function_name": one.name, "function_code_with_docstring": one.source(), "module_name": one.noun}
        wanted.append(Wanted("create_function", {**given, "reason": f"differs from {', '.join(alike)}"}))
    for one in planted:
        if not one.is_stale:
            rows = [[chance.randrange(1, 40) for _ in range(chance.randrange(1, 6))] for _ in range(3)]
            rows += [[]] * 3 if one.is_broken else []
            wanted += [Wanted(one.name, {one.noun: row}) for row in rows]
    for start in range(0, len(wanted), _A_REPLY):
        yield Ask(*wanted[start : start + _A_REPLY])
    yield Repeat(Say("Done."))


def _maker(planted: Sequence[PlantedFunction]) -> ScriptedModel:
    """Return the maker: it mends what failed at an empty list, each fourth so that a good call returns otherwise."""
    broken = {one.name: (at, one) for at, one in enumerate(one for one in planted if one.is_broken)}

    def written(seen: Seen) -> Step:
        found = re.search(r"The function: `(\w+)`", seen.text)
        assert found is not None, "the maker is told the function"
        at, one = broken[found[1]]
        more = f" + ({one.noun}[0] > 30)" if is_wrong(at) else ""
        return Say(f"```\n{one.source(f'({one.body}{more}) if {one.noun} else 0')}```")

    return ScriptedModel([Repeat(written)], models=["scripted", "strong"])


def is_wrong(number: int) -> bool:
    """Check whether the maker's fix of this broken function is a wrong one."""
    return number % 4 == 3


async def bench(count: int, seed: int) -> list[Row]:
    """Plant, tend, look, and undo."""
    planted = library(count, seed)
    chance = random.Random(seed)
    maker = _maker(planted)
    with tempfile.TemporaryDirectory() as folder, scripted([*_steps(planted, chance)]) as model:
        root = Path(folder)
        (root / "functions").mkdir()
        flags: dict[str, Any] = {"model.base_url": model.base_url, "model.name": "scripted"}
        flags |= {"turn.max_steps": 10_000, "models": {"maker": {"name": "strong", "base_url": maker.base_url}}}
        flags |= {"growth.maker": "off"}
        async with Workspace.open(root, flags=flags) as workspace:
            agent = await workspace.agent()
            async for _ in agent.turn("Make them, and call them."):
                pass
            made = {*workspace.workshop.names()}
            for one in planted:
                if one.is_edited and one.name in made:
                    await workspace.workshop.edit(one.name, one.words, f"{one.words[:-1]}, as numbers.")
        _made_long_ago(root, [one.name for one in planted if one.is_stale])
        flags |= {"growth.maker": "auto"}
        async with Workspace.open(root, flags=flags) as workspace:
            before = _sources(workspace)
            began = time.perf_counter()
            report = await workspace.workshop.tending.run(TendingBudget(minutes=60), applies=True)
            seconds = time.perf_counter() - began
            after = _sources(workspace)
            replayed = await _replayed(workspace, [one for one in planted if one.name in after])
            undone = await workspace.workshop.tending.undo()
            back = _sources(workspace)
    maker.close()
    rows = [Row("functions that joined", len(made), unit=f"of {len(planted)}"), Row("tending took", seconds, unit="s")]
    rows += _rows([one for one in planted if one.name in made], report, before, after)
    rows.append(Row("recorded calls that replay otherwise", replayed[1], unit=f"of {replayed[0]}", aim=0))
    rows.append(Row("changes not undone", sum(not step.undone for step in undone), unit=f"of {len(undone)}", aim=0))
    rows.append(Row("functions not as before after the undo", _differing(before, back), unit="", aim=0))
    return rows


def _made_long_ago(root: Path, names: Sequence[str]) -> None:
    """Put back the time at which these functions joined: nobody has time to wait."""
    with sqlite3.connect(root / ".knapper" / "state.db") as state:
        state.executemany("UPDATE verdict SET at = at - ? WHERE function = ?", [(_LONG_AGO, name) for name in names])


def _sources(workspace: Workspace) -> dict[str, str]:
    snapshot = workspace.workshop.registry.snapshot()
    return {name: function.body_hash for name, function in snapshot.functions.items()}


def _differing(one: dict[str, str], other: dict[str, str]) -> int:
    return sum(one.get(name) != other.get(name) for name in one.keys() | other.keys())


async def _replayed(workspace: Workspace, planted: Sequence[PlantedFunction]) -> tuple[int, int]:
    """Return how many calls that returned were made again, and how many ended otherwise."""
    replays, count, other = workspace.workshop.tending.replays, 0, 0
    for one in planted:
        for call in await replays.calls(one.name):
            if call.outcome == "returned":
                count += 1
                other += not (await replays.replay(call.call, NOW)).same
    return count, other


def _rows(
    planted: Sequence[PlantedFunction], report: TendingReport, before: dict[str, str], after: dict[str, str]
) -> list[Row]:
    """Return what was done rightly and wrongly."""
    by_name = {one.name: one for one in planted}
    pairs = {frozenset((one.name, one.copy_of)) for one in planted if one.copy_of}
    done = [step for step in report.steps if step.done]
    merged = [frozenset((step.function, *step.others)) for step in done if step.kind == "merge"]
    archived = [step.function for step in done if step.kind == "archive"]
    mended = [step.function for step in done if step.kind == "mend"]
    edited = [one.name for one in planted if one.is_edited]
    broken = [one.name for one in planted if one.is_broken]
    mendable = [name for at, name in enumerate(broken) if not is_wrong(at)]
    stale = [one.name for one in planted if one.is_stale and not one.is_edited]
    copies = [one for one in planted if one.copy_of and one.copy_of in by_name]
    free = len(copies)  # where a person edited the copy, the other one of the two may go
    touched = [name for name in edited if after.get(name) != before.get(name) or name in archived]
    return [
        Row("near-copies merged", len(pairs.intersection(merged)), unit=f"of {free}"),
        Row("merges that are wrong", len([pair for pair in merged if pair not in pairs]), unit="", aim=0),
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
