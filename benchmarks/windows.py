"""Many windows on one conversation, and its owner killed: `python -m benchmarks.windows soak|server|text|idle`.

`soak`: messages from six programs to one agent; every few seconds the one that runs a turn is killed, and begun again.
`server`: the same through one server that is killed and begun again. Each message that was accepted must be answered
once, those of one sender in order, and a prompt that only looks on must have shown all. `text`: how much later the
second of two prompts shows the first text of a turn. `idle`: the share of a core that a prompt takes that nobody types
into.
"""

import argparse
import json
import os
import random
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx2

from agent_core import Workspace
from tests.kit import Repeat, Say, ScriptedModel, Seen, Step, scripted
from tests.kit.program import Program, knapper, surroundings
from tests.kit.terminal import Terminal, terminal

_SENDERS: Final = 6
_KILL_S: Final = (2.0, 4.0)
_THINKS_S: Final = 0.02
_SETTLE_S: Final = 30.0
_TELL_S: Final = 10.0
_TRIES: Final = 20
_IDLE_S: Final = 20.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_NAMES: Final = re.compile(r"\d+-\d+")  # of messages
_TURNS: Final = (
    "select t.id, t.seq, t.state, t.ended, e.payload, e.key from turn t join event e on e.seq = t.event"
    " order by t.seq"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["soak", "server", "text", "idle"])
    parser.add_argument("--messages", type=int, default=1000)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="windows") as folder, scripted([Repeat(_echo)]) as model:
        Workspace.create(Path(folder))
        run: Callable[[Path, ScriptedModel, int], dict[str, Any]] = {
            "soak": _soak,
            "server": _soak_server,
            "text": _first_text,
            "idle": _idle,
        }[given.what]
        print(json.dumps(run(Path(folder), model, given.messages)), flush=True)


def _echo(seen: Seen) -> Step:
    said = [str(one["content"]) for one in seen.messages if one["role"] == "user"]
    return Say(f"heard {_NAMES.findall(said[-1])[-1]} end", pause_s=_THINKS_S)


def _flags(model: ScriptedModel) -> list[str]:
    return ["--base-url", model.base_url, "--model", "scripted"]


@contextmanager
def _window(model: ScriptedModel, root: Path) -> Iterator[Terminal]:
    with terminal("run", *_flags(model), cwd=root, columns=110) as screen:
        screen.wait_for("/help lists")
        yield screen


async def send(root: Path, number: int, count: int) -> None:
    """Send the messages of one sender that were not accepted yet, one after another."""
    settings = {"model.base_url": os.environ["MODEL"], "model.name": "scripted"}
    async with Workspace.open(root, flags=settings) as workspace, await workspace.agent() as agent:
        accepted = {text for _, text, _ in _accepted(root)}
        for text in [f"{number}-{message}" for message in range(count)]:
            if text in accepted:
                continue
            await agent.ask(text)


def _accepted(root: Path) -> list[tuple[int, str, str]]:
    """Return what the inbox has had: number, text and id of each message."""
    with closing(sqlite3.connect(f"file:{root}/.knapper/state.db?mode=ro", uri=True)) as db:
        rows = db.execute("select seq, payload, id from event where kind = 'message' order by seq")
        return [(seq, json.loads(payload).get("text", ""), id) for seq, payload, id in rows]


def _start(root: Path, model: ScriptedModel, number: int, count: int) -> Program:
    """Start a sender, forked from a process that has imported the library, so that a start takes little time."""
    send = f"benchmarks.windows.send(pathlib.Path({str(root)!r}), {number}, {count})"
    code = f"import asyncio, pathlib, sys, benchmarks.windows\nasyncio.run({send})\nsys.exit()"
    environment = surroundings({"MODEL": model.base_url})
    return Program([], [0, 1, 2], cwd=root, environment=environment, first=code)


def _owner(root: Path) -> int:
    """Return the process that runs a turn now; 0 if none does."""
    with suppress(OSError, ValueError):
        return int((root / ".knapper" / "agents" / "main.lock").read_text())
    return 0


def _soak(root: Path, model: ScriptedModel, count: int) -> dict[str, Any]:
    each = count // _SENDERS
    kills = 0
    with _window(model, root) as screen:
        began = time.monotonic()
        senders = {number: _start(root, model, number, each) for number in range(_SENDERS)}
        kill_at = began + _KILL_S[1]
        told_at = began
        while senders:
            time.sleep(0.02)
            for number, process in [*senders.items()]:
                code = process.poll()
                if code == 0:
                    del senders[number]
                elif code is not None:
                    senders[number] = _start(root, model, number, each)
            owners = [process for process in senders.values() if process.pid == _owner(root)]
            if time.monotonic() > told_at:
                told_at += _TELL_S
                print(
                    f"{len(_accepted(root))} accepted, {kills} kills", file=sys.stderr, flush=True
                )
            if time.monotonic() > kill_at and owners:
                owners[0].kill()
                kills += 1
                kill_at = time.monotonic() + random.uniform(*_KILL_S)
        spent = time.monotonic() - began
        report = _report(root, each * _SENDERS) | {"kills": kills, "seconds": round(spent, 1)}
        end = time.monotonic() + _SETTLE_S
        texts = [text for _, text, _ in _accepted(root)]
        while (shown := _shown(screen, texts)) < len(texts) and time.monotonic() < end:
            time.sleep(0.2)
    return report | {"shown by a prompt": shown}


def _shown(screen: Terminal, texts: list[str]) -> int:
    seen = screen.scrolled()
    return sum(f"heard {text} end" in seen for text in texts)


def _report(root: Path, expected: int) -> dict[str, Any]:
    with closing(sqlite3.connect(f"file:{root}/.knapper/state.db?mode=ro", uri=True)) as db:
        turns = db.execute(_TURNS).fetchall()
        replies = db.execute(
            "select seq >> 20, payload from entry where kind = 'assistant' order by seq"
        ).fetchall()
    said = defaultdict[int, list[str]](list)
    for turn, payload in replies:
        said[turn].append(json.loads(payload)["text"])
    answered = Counter[str]()
    order = defaultdict[str, list[int]](list)
    for _, seq, state, _, _, _ in turns:
        if state == "done" and said[seq]:
            text = said[seq][-1].removeprefix("heard ").removesuffix(" end")
            answered[text] += 1
            sender, _, number = text.partition("-")
            order[sender].append(int(number))
    ends = sorted(ended for *_, ended, _, _ in turns if ended)
    gaps = [after - before for before, after in pairwise(ends)]
    accepted = Counter(text for _, text, _ in _accepted(root))
    return {
        "expected": expected,
        "accepted": len(accepted),
        "accepted twice": sum(number > 1 for number in accepted.values()),
        "answered once": sum(answered[text] == 1 for text in accepted),
        "answered twice": sum(number > 1 for number in answered.values()),
        "unanswered": sorted(text for text in accepted if not answered[text])[:20],
        "out of order": sum(numbers != sorted(numbers) for numbers in order.values()),
        "longest silence s": round(max(gaps, default=0), 2),
        "turns": len(turns),
        "states": dict(Counter(state for _, _, state, *_ in turns)),
    }


class _Server:
    """One server, killed and begun again."""

    def __init__(self, root: Path, model: ScriptedModel) -> None:
        self._command = [sys.executable, "-m", "knapper", "-C", str(root), "serve", "--json"]
        self._command += ["--port", "0", *_flags(model)]
        self.url = ""
        self.begin()

    def begin(self) -> None:
        """Start it, and wait until it serves."""
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]


def _soak_server(root: Path, model: ScriptedModel, count: int) -> dict[str, Any]:
    scopes = ("--scope", "chat", "--scope", "read")
    made = knapper("tokens", "add", "me", "--json", *scopes, cwd=root)
    headers = {"Authorization": f"Bearer {json.loads(made.stdout)['token']}"}
    server = _Server(root, model)
    each = count // _SENDERS
    kills = 0

    def send(number: int) -> None:
        for message in range(each):
            text = f"{number}-{message}"
            while True:  # a repeated key is the same message
                with suppress(httpx2.HTTPError):
                    path = f"{server.url}/api/v1/agents/main/messages"
                    posted = {"text": text, "key": text, "alone": True}
                    answer = httpx2.post(path, json=posted, headers=headers, timeout=10)
                    if answer.status_code == 202:
                        break
                time.sleep(0.1)
            time.sleep(0.1)

    began = time.monotonic()
    with ThreadPoolExecutor(_SENDERS) as threads:
        sending = [threads.submit(send, number) for number in range(_SENDERS)]
        while not all(one.done() for one in sending):
            time.sleep(random.uniform(*_KILL_S))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            kills += 1
            server.begin()
    end = time.monotonic() + _SETTLE_S
    while (report := _report(root, each * _SENDERS))["unanswered"] and time.monotonic() < end:
        time.sleep(0.2)
    server.process.terminate()
    server.process.wait()
    return report | {"kills": kills, "seconds": round(time.monotonic() - began, 1)}


def _first_text(root: Path, model: ScriptedModel, _: int) -> dict[str, Any]:
    late = list[float]()
    with _window(model, root) as first, _window(model, root) as second:
        for number in range(_TRIES):
            first.line(f"m{number}")
            marks = [f"heard m{number} ".encode().split()[0] for _ in (first, second)]
            starts = [len(first.sent), len(second.sent)]
            at: list[float | None] = [None, None]
            while None in at:
                for place, screen in enumerate((first, second)):
                    if at[place] is None and marks[place] in screen.sent[starts[place] :]:
                        at[place] = time.monotonic()
                time.sleep(0.0005)
            assert at[0] is not None
            assert at[1] is not None
            late.append((at[1] - at[0]) * 1000)
            for screen in (first, second):
                screen.wait_for(f"heard m{number} end")
            time.sleep(0.2)
    return {
        "tries": _TRIES,
        "later by ms (median)": round(statistics.median(late), 1),
        "later by ms (most)": round(max(late), 1),
    }


def _idle(root: Path, model: ScriptedModel, _: int) -> dict[str, Any]:
    with _window(model, root) as first, _window(model, root) as second:
        first.line("hello")
        second.wait_for("heard hello end")
        time.sleep(1)
        idle = _share(second.process.pid)
    return {"an idle prompt, % of a core": round(100 * idle, 2)}


def _share(process: int) -> float:
    """Return the part of a core that a process takes for a while."""
    before = _spent(process)
    time.sleep(_IDLE_S)
    return (_spent(process) - before) / _IDLE_S


def _spent(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
