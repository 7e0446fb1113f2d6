"""A small model with two narrow helpers, compared with the same model that has all functions itself.

Ten requests, each in a fresh workspace: once for one agent with all six functions, and once for an agent with two
helpers that have three functions each. Counts right answers, tokens and seconds. A reply is right if it contains the
expected text.

    python -m benchmarks.local_helpers [--base-url URL] [--model NAME] [--only 0,3] [--json]
"""

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from agent_core import Settings, Workspace, events
from agent_core.base.settings import ModelSettings, TurnSettings
from knapper_ext.local.server import open_local

from .local_requests import MAX_STEPS, MODEL
from .measure import ran_with

Table: TypeAlias = Mapping[str, Any]  # Any: TOML
WAYS: Final = ("one agent", "two helpers")
_DATA: Final = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class Came:
    """The result of one request."""

    way: str
    request: str
    reply: str
    is_right: bool
    called: tuple[str, ...]
    tokens: int
    seconds: float


def lay_out(root: Path, way: str, data: Table) -> None:
    """Create a workspace with the functions, which either the agent or its two helpers see."""
    Workspace.create(root)
    for name, text in data["modules"].items():
        (root / "functions" / f"{name}.py").write_text(text.lstrip(), "utf-8")
    sees = [f"{name}.*" for name in data["modules"]]
    if way == WAYS[1]:
        (root / "helpers").mkdir()
        for name, text in data["helpers"].items():
            (root / "helpers" / f"{name}.toml").write_text(text.lstrip(), "utf-8")
        sees = []
    (root / "agents").mkdir()
    (root / "agents" / "main.toml").write_text(f"functions = {json.dumps(sees)}\n", "utf-8")


async def answer(way: str, request: Table, settings: Settings, data: Table) -> Came:
    """Answer one request in a fresh workspace."""
    reply, called, tokens = "", list[str](), 0
    with tempfile.TemporaryDirectory(prefix="knapper-helpers-") as folder:
        lay_out(Path(folder), way, data)
        async with Workspace.open(folder, settings=settings) as workspace:
            agent = await workspace.agent()
            began = time.perf_counter()
            async for event in agent.turn(request["text"]):
                match event:
                    case events.CallStarted():
                        called.append(event.name)
                    case events.Usage():
                        tokens += event.prompt_tokens + event.completion_tokens
                    case events.TurnEnded():
                        reply = event.reply
            seconds = round(time.perf_counter() - began, 1)
    is_right = any(re.search(rf"\b{re.escape(text)}\b", reply) for text in request["expected"])
    return Came(way, request["text"], reply, is_right, tuple(called), tokens, seconds)


def total(came: Sequence[Came]) -> list[dict[str, Any]]:  # Any: JSON
    """Return the figures of each way."""
    rows = []
    for way in WAYS:
        own = [one for one in came if one.way == way]
        seconds = statistics.median([one.seconds for one in own] or [0])
        right, tokens = sum(one.is_right for one in own), sum(one.tokens for one in own)
        rows.append(
            {
                "way": way,
                "requests": len(own),
                "right": right,
                "tokens": tokens,
                "median_s": seconds,
            }
        )
    return rows


async def run(base_url: str | None, model: str, only: Sequence[int] = ()) -> list[Came]:
    """Answer all requests, in both ways."""
    data = tomllib.loads(_DATA.read_text("utf-8"))
    chosen = ModelSettings(name=model, base_url=base_url, stream=base_url is None)
    settings = Settings(model=chosen, turn=TurnSettings(max_steps=MAX_STEPS))
    keeper = (
        await open_local(model, chosen) if base_url is None else None
    )  # loaded between the workspaces
    came = []
    for number, request in enumerate(data["requests"]):
        for way in WAYS if not only or number in only else ():
            came.append(await answer(way, request, settings, data))
            print(number, came[-1], file=sys.stderr, flush=True)
    if keeper is not None:
        await keeper.aclose()
    return came


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", help="of a server; without it, the built-in engine")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--only", default="", help="numbers of requests, such as 0,3")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    only = [int(number) for number in given.only.split(",") if number]
    came = ran_with(given.model, run(given.base_url, given.model, only))
    rows = total(came)
    if given.json:
        print(
            json.dumps(
                {"total": rows, "requests": [asdict(one) for one in came]}, ensure_ascii=False
            )
        )
        return
    for row in rows:
        print(*(f"{key}: {value}" for key, value in row.items()), sep=", ")


if __name__ == "__main__":
    main()
