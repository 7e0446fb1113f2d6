"""`python -m benchmarks.growth`: does an agent that makes its own functions answer more, or the same for less?

Forty requests of a domain recur with other values and small twists (`growth_requests.py`); the same model answers them
in several arms. `none` has only the functions that a person wrote; `programs` also runs programs; `cold` makes
functions but runs no programs; `after` makes functions, also from programs that succeeded; `yesterday` is `after` with
what it made on the previous day, whose requests it answers first; `maker` has the right function of each family from
the start, as a strong model would write it. Each request is a separate conversation. The answers are checked by value.

    python -m benchmarks.growth [--arm none,after] [--domain shop] [--seed 1,2] [--limit 8] [--out FOLDER] [--json]
        [--model NAME | --base-url URL | --player best|forgetful]

`--limit` takes equally many requests of each quarter, of families from easy to hard. Answers are stored in FOLDER, one
per line, with the workspaces; the same command resumes where it ended. A player replaces the model: it plays optimally
(`best`), or makes functions and never calls one (`forgetful`), so the expected result is known.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from agent_core import Agent, Settings, Workspace
from agent_core.base.events import CallAnswered, TurnEnded, Usage
from agent_core.base.settings import GrowthSettings, MemorySettings, ModelSettings, TurnSettings
from agent_core.memory.blocks import NamedAuthor
from knapper_ext.local.server import open_local

from .growth_play import GrowthPlayer
from .growth_requests import (
    DOMAINS,
    FAMILIES,
    ROUNDS,
    Requested,
    is_answer,
    requests,
    right_function,
)
from .local_requests import MODEL
from .measure import ran_with

ARMS: Final = ("none", "programs", "cold", "after", "yesterday", "maker")
_GROWING: Final = ("cold", "after", "yesterday")
_WITH_PROGRAMS: Final = ("programs", "after", "yesterday")
_QUARTERS: Final = 4
_MAX_STEPS: Final = 12
_PLAIN: Final = "You are an assistant. Answer in plain text; call functions for what is better computed than guessed."


@dataclass(frozen=True, slots=True)
class GrowthRecord:
    """The result of one request.

    `called` holds calls of the arm's own functions as [name, outcome, made on an earlier request]; `refused` counts
    functions that the gate rejected.
    """

    arm: str
    domain: str
    seed: int
    day: int
    number: int
    family: str
    rows: int
    expected: float
    reply: str
    is_right: bool
    reason: str
    requests: int
    fresh: int
    cached: int
    written: int
    seconds: float
    calls: int
    called: list[list[Any]] = field(
        default_factory=list
    )  # Any: a name, an outcome and whether it is reused
    made: list[str] = field(default_factory=list)
    refused: int = 0
    shown: list[str] = field(
        default_factory=list
    )  # to the model with the request, of the functions that were there
    kept: list[str] = field(default_factory=list)  # the arm's own functions, after the request

    @property
    def quarter(self) -> int:
        """The quarter of the day, from 1."""
        return 1 + self.number * _QUARTERS // (ROUNDS * FAMILIES)


@dataclass(frozen=True, slots=True)
class GrowthRun:
    """One arm in one domain with one seed, in its own workspace below `folder`."""

    arm: str
    domain: str
    seed: int
    folder: Path
    settings: Settings
    seconds: float
    player: GrowthPlayer | None = None

    @property
    def days(self) -> tuple[int, ...]:
        """The days that it works; only the second one counts."""
        return (1, 2) if self.arm == "yesterday" else (2,)

    async def answer(self, limit: int, done: frozenset[tuple[int, int]]) -> None:
        """Answer the requests not done yet and append the results to the file."""
        root = self.folder / f"{self.domain}-{self.seed}-{self.arm}"
        if not root.exists():
            self._lay_out(root)
        async with Workspace.open(root, settings=self._settings()) as workspace:
            agent = await workspace.agent()
            blocks, by = agent.memory.blocks, NamedAuthor(by="human")
            values = {row.label: row.value for row in blocks.rows}
            for day in self.days:
                for requested in sample(requests(DOMAINS[self.domain], self.seed, day), limit):
                    if (day, requested.number) in done:
                        continue
                    known, before = self._own(workspace), frozenset(workspace.functions.names())
                    record = await self._ask(agent, requested, day, known)
                    shown = sorted(await agent.shown(requested.text) & before)
                    record = replace(record, shown=shown, kept=sorted(self._own(workspace)))
                    with (self.folder / "results.jsonl").open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(record)) + "\n")
                    print(_line(record), file=sys.stderr, flush=True)
                    await agent.aclose()
                    agent = await workspace.agent(conversation="new")
                    blocks = agent.memory.blocks
                    # What a model noted, perhaps wrongly, is not to change the next request.
                    for label, value in values.items():
                        await blocks.commit(
                            await blocks.write(
                                label, [*value] if isinstance(value, tuple) else value, by
                            )
                        )

    def _settings(self) -> Settings:
        model = self.settings.model.model_copy(
            update={"programs": "on" if self.arm in _WITH_PROGRAMS else "off"}
        )
        grows = self.arm in _GROWING
        growth = GrowthSettings(maker="off", mode="on" if grows else "off")
        changed = {"model": model, "growth": growth, "instructions": None if grows else _PLAIN}
        return self.settings.model_copy(update=changed)

    def _lay_out(self, root: Path) -> None:
        domain = DOMAINS[self.domain]
        (root / "functions").mkdir(parents=True)
        (root / "functions" / f"{domain.name}.py").write_text(domain.module(self.seed), "utf-8")
        if self.arm == "maker":
            for family in domain.families(self.seed):
                source = right_function(domain, family, self.seed)
                (root / "functions" / f"{family.name}.py").write_text(source, "utf-8")

    def _own(self, workspace: Workspace) -> frozenset[str]:
        """Return the functions that the arm has in addition to those of the domain."""
        return frozenset(workspace.functions.names()) - DOMAINS[self.domain].functions.keys()

    async def _ask(
        self, agent: Agent, requested: Requested, day: int, known: frozenset[str]
    ) -> GrowthRecord:
        if self.player:
            self.player.begin(requested, self.arm, self.seed)
        events, began, reason = list[Any](), time.perf_counter(), "time"
        try:
            async with asyncio.timeout(self.seconds), aclosing(agent.turn(requested.text)) as turn:
                async for event in turn:
                    events.append(event)
        except TimeoutError:
            pass
        seconds = round(time.perf_counter() - began, 1)
        usage = [event for event in events if isinstance(event, Usage)]
        answers = [event for event in events if isinstance(event, CallAnswered)]
        ended = next((event for event in events if isinstance(event, TurnEnded)), None)
        reason, reply = (ended.reason, ended.reply) if ended else (reason, "")
        cached = self.player.cached if self.player else sum(event.cached_tokens for event in usage)
        read = self.player.read if self.player else sum(event.prompt_tokens for event in usage)
        making = [event for event in answers if "admitted" in event.detail]
        made = [str(event.detail.get("name", "")) for event in making if event.detail["admitted"]]
        own = known | {*made}
        return GrowthRecord(
            arm=self.arm,
            domain=self.domain,
            seed=self.seed,
            day=day,
            number=requested.number,
            family=requested.family.name,
            rows=len(requested.rows),
            expected=requested.expected,
            reply=reply,
            is_right=is_answer(requested, reply),
            reason=reason,
            requests=len(usage),
            fresh=read - cached,
            cached=cached,
            written=sum(event.completion_tokens for event in usage),
            seconds=seconds,
            calls=len(answers),
            called=[
                [event.name, event.outcome, event.name in known]
                for event in answers
                if event.name in own
            ],
            made=made,
            refused=len(making) - len(made),
        )


def sample(every: Iterator[Requested], limit: int) -> Iterator[Requested]:
    """Yield about `limit` requests: equally many of each quarter, of families from easy to hard."""
    rows = [*every]
    a_round = min(FAMILIES, max(1, limit // _QUARTERS))
    rounds = range(ROUNDS) if limit >= len(rows) else range(0, ROUNDS, ROUNDS // _QUARTERS)
    chosen = {round(place * (FAMILIES - 1) / max(1, a_round - 1)) for place in range(a_round)}
    yield from (
        row for row in rows if row.number % FAMILIES in chosen and row.number // FAMILIES in rounds
    )


def figures(records: Sequence[GrowthRecord]) -> list[dict[str, Any]]:  # Any: JSON
    """Return a row for each arm, domain, seed and quarter, and one for each whole day."""
    rows = []
    for arm, domain, seed in dict.fromkeys((one.arm, one.domain, one.seed) for one in records):
        own = [one for one in records if (one.arm, one.domain, one.seed) == (arm, domain, seed)]
        today = [one for one in own if one.day == max(row.day for row in own)]
        for quarter in (1, 2, 3, 4, 0):
            part = [one for one in today if quarter in (0, one.quarter)]
            if part:
                head = {"arm": arm, "domain": domain, "seed": seed, "quarter": quarter or "all"}
                rows.append(head | _spent(part) | ({} if quarter else _reuse(own)))
    return rows


def _spent(part: Sequence[GrowthRecord]) -> dict[str, Any]:  # Any: JSON
    """Return the number of right answers and the mean cost of a request."""
    sums = Counter[str]()
    for one in part:
        sums.update(
            {
                name: getattr(one, name)
                for name in ("requests", "fresh", "cached", "written", "seconds")
            }
        )
    return {"asked": len(part), "right": sum(one.is_right for one in part)} | {
        name: round(value / len(part), 1) for name, value in sums.items()
    }


def _reuse(own: Sequence[GrowthRecord]) -> dict[str, Any]:  # Any: JSON
    """Return how many functions were made, called again, and used in right answers."""
    made = {name for one in own for name in one.made}
    calls = [
        (name, outcome, reused, one.is_right) for one in own for name, outcome, reused in one.called
    ]
    again = [call for call in calls if call[2]]
    return {
        "made": len(made),
        "kept": len(made & {*own[-1].kept}),
        "refused": sum(one.refused for one in own),
        "never used again": len(made - {name for name, *_ in again}),
        "calls a function": round(len(calls) / max(1, len({name for name, *_ in calls})), 1),
        "calls to earlier ones": len(again),
        "of all calls": round(len(again) / max(1, sum(one.calls for one in own)), 2),
        "of these returned": sum(outcome == "returned" for _, outcome, *_ in again),
        "of these in a right answer": sum(is_right for *_, is_right in again),
    }


def results(folder: Path) -> list[GrowthRecord]:
    """Return the results so far."""
    path = folder / "results.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [GrowthRecord(**json.loads(line)) for line in lines]


async def run(given: argparse.Namespace) -> list[GrowthRecord]:
    """Answer the selected requests that have no answer yet; return all their records."""
    given.out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        player = (
            stack.enter_context(GrowthPlayer(reuses=given.player == "best"))
            if given.player
            else None
        )
        base_url = player.base_url if player else given.base_url
        model = ModelSettings(
            name="scripted" if player else given.model, base_url=base_url, threads=given.threads
        )
        keeper = (
            None if base_url else await open_local(given.model, model)
        )  # loaded between the workspaces
        memory = MemorySettings(embedding="none") if player else MemorySettings()
        settings = Settings(model=model, turn=TurnSettings(max_steps=_MAX_STEPS), memory=memory)
        chosen = [*product(given.seed, given.domain, given.arm)]
        for seed, domain, arm in chosen:
            earlier = [
                one
                for one in results(given.out)
                if (one.seed, one.domain, one.arm) == (seed, domain, arm)
            ]
            done = frozenset((one.day, one.number) for one in earlier)
            at = GrowthRun(arm, domain, seed, given.out, settings, given.seconds, player)
            await at.answer(given.limit, done)
        if keeper is not None:
            await keeper.aclose()
    return [one for one in results(given.out) if (one.seed, one.domain, one.arm) in chosen]


def _line(record: GrowthRecord) -> str:
    verdict = (
        "right" if record.is_right else f"wrong ({record.expected:g} expected; {record.reason})"
    )
    what = f"{record.domain} {record.seed} {record.arm} day {record.day} #{record.number} {record.family}: {verdict}"
    return f"{what}, {record.requests} requests, {record.seconds} s, made {record.made}, called {record.called}"


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command-line options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arm", default=",".join(ARMS), help=f"some of {', '.join(ARMS)}")
    parser.add_argument("--domain", default=",".join(DOMAINS), help=f"some of {', '.join(DOMAINS)}")
    parser.add_argument("--seed", default="1,2")
    parser.add_argument("--limit", type=int, default=40, help="how many requests of each run")
    parser.add_argument("--out", type=Path, default=Path("growth-results"))
    parser.add_argument(
        "--seconds", type=float, default=600, help="after which a request is given up"
    )
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--base-url", help="of a server; without it, the built-in engine")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--player", choices=("best", "forgetful"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    given.arm, given.domain = given.arm.split(","), given.domain.split(",")
    given.seed = [int(number) for number in given.seed.split(",")]
    if unknown := ({*given.arm} - {*ARMS}) | ({*given.domain} - DOMAINS.keys()):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    return given


def main() -> None:
    given = options(sys.argv[1:])
    rows = figures(ran_with(given.model, run(given)))
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print(*(f"{key}: {value}" for key, value in row.items()), sep=", ")


if __name__ == "__main__":
    main()
