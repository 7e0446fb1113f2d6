"""Seconds from the start of a program to the local model's first word: without, then with, a cached prompt.

python -m benchmarks.local_start [--runs 3] [--threads 1] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Final

from agent_core import Settings, Workspace
from agent_core.base.events import Text, Thought, Usage
from agent_core.base.settings import ModelSettings
from knapper_ext.local.server import open_local

from .measure import ran_with

MODEL: Final = "local/qwen2.5-coder-1.5b"
BEGAN: Final = "KNAPPER_BENCHMARK_BEGAN"


async def _once(settings: ModelSettings, began: float) -> dict[str, float]:
    """Run one turn in a fresh workspace; return the seconds from the start of the program to each stage."""
    reached: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="knapper-start-") as folder:
        async with Workspace.open(folder, settings=Settings(model=settings)) as workspace:
            agent = await workspace.agent()
            await agent.model_session.line()
            reached["opened_s"] = time.time() - began
            keeper = await open_local(MODEL, settings)
            await keeper.engine.child()
            reached["loaded_s"] = time.time() - began
            async for event in agent.turn("Good morning! How are you?"):
                if isinstance(event, Text | Thought):
                    reached.setdefault("first_word_s", time.time() - began)
                elif isinstance(event, Usage):
                    reached |= {
                        "prompt_tokens": event.prompt_tokens,
                        "cached_tokens": event.cached_tokens,
                    }
            await keeper.aclose()
    return {name: round(value, 2) for name, value in reached.items()}


def _in_a_fresh_program(threads: int, cache: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.local_start", "--threads", str(threads), "--json"],
        env={**os.environ, "XDG_CACHE_HOME": cache, BEGAN: str(time.time())},
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)  # the program has printed the reason
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if began := os.environ.get(BEGAN):
        settings = ModelSettings(name=MODEL, threads=arguments.threads)
        print(json.dumps(ran_with(MODEL, _once(settings, float(began)))))
        return
    with tempfile.TemporaryDirectory(prefix="knapper-start-") as cache:
        came = [
            _in_a_fresh_program(arguments.threads or 1, cache) for _ in range(1 + arguments.runs)
        ]
    if arguments.json:
        print(json.dumps({"nothing_kept": came[0], "kept": came[1:]}))
    else:
        print(
            "\n".join(
                f"{'kept' if number else 'nothing kept'}: {each}"
                for number, each in enumerate(came)
            )
        )


if __name__ == "__main__":
    main()
