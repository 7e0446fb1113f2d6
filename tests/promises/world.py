"""What the state machine moves in: functions with known results, processes at a workspace, a model, and a watch."""

import ast
import json
import os
import re
import subprocess
import sys
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agent_core.base.records import to_json
from agent_core.memory.classes import Block, Memory
from agent_core.runtime.agent import Agent
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox
from sandbox.wire.lines import lines_of
from tests.kit import Repeat, Say, ScriptedModel, Seen, Step
from tests.kit.sources import function_text
from tests.memory.blocks.conftest import HUMAN

ROOT: Final = Path(__file__).resolve().parents[2]
ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
TEMPORARY: Final = re.compile(r"\.py\.\w+\.tmp$")
FOLDER: Final = re.compile(r"(?:^|/)functions$")
MESSAGE: Final = re.compile(r"Please: (word\d+)\.")
EDITION: Final = re.compile(r"and add (-?\d+) \(edition (\d+)\)")
STARTERS_OF_PROGRAMS: Final = (
    "agent_core/base/programs.py",
    "sandbox/processes/",
    "sandbox/portable/",
)
STARTS: Final = (
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.fork",
    "pty.spawn",
)
SECRET: Final = "wk-7Qz9aB3xY"
KEY: Final = "sk-planted-0001"


@dataclass(frozen=True)
class Counter:
    """A function of the agent, as it should be: it counts letters and adds a number; `edition` changes no result."""

    name: str
    number: int
    edition: int = 0
    path: str = "letters.py"

    @property
    def letters(self) -> str:
        """The letters that it counts: others for each name, so that no function is the copy of another."""
        chosen = zlib.crc32(self.name.encode())
        return "".join(letter for at, letter in enumerate(ALPHABET) if chosen >> at & 1)

    def value(self, text: str) -> int:
        """Return what it must return."""
        return self.number + sum(letter in self.letters for letter in text)

    @property
    def source(self) -> str:
        """Its text, with examples that hold."""
        examples = [
            f'{self.name}("{text}") → {self.value(text)}'
            for text in ("queueing", "rhythm", "bad fox")
        ]
        words = f"Count how many letters of a text are among {self.letters}, and add {self.number}"
        return function_text(
            f"{self.name}(text: str) -> int",
            f"{words} (edition {self.edition}).\n\nArgs:\n    text: The text to look at.\n\nReturns:\n    The count.",
            f'return {self.number} + sum(letter in "{self.letters}" for letter in text)',
            *examples,
        )


def counters_in(path: str, text: str) -> dict[str, Counter]:
    """Return the functions that a file has, as their texts say; one that was changed in any other way is an error."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            segment = ast.get_source_segment(text, node) or ""
            (said,) = EDITION.findall(segment)
            counter = Counter(node.name, int(said[0]), int(said[1]), path)
            assert ast.dump(node) == ast.dump(ast.parse(counter.source).body[0]), segment
            found[node.name] = counter
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what the modules of a folder contain."""
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


def comments_in(text: str) -> list[str]:
    """Return the comments of a file, which a person has written."""
    return [line.strip() for line in lines_of(text) if line.startswith("#")]


class Process:
    """A workspace that is open in this process, with a store and a registry of its own, and one conversation."""

    def __init__(self, root: Path, flags: Mapping[str, Any], sandbox: Sandbox, name: str) -> None:
        self.name = name
        self._open = root, flags, sandbox
        self._stack = AsyncExitStack()
        self.workspace: Workspace
        self.agent: Agent

    async def open(self) -> None:
        """Open the workspace and the conversation, as after a start of the program."""
        root, flags, sandbox = self._open
        opening = Workspace.open(root, flags=flags, sandbox=sandbox, follows=False)
        self.workspace = await self._stack.enter_async_context(opening)
        is_first = self.name == "main"
        blocks = [Block(label="team", value=[], shared=True, limit=100_000)] if is_first else []
        self.agent = await self.workspace.agent(self.name, memory=Memory(blocks=blocks))
        memory = self.agent.memory.blocks
        await memory.commit(await memory.attach("team", HUMAN))

    async def close(self) -> None:
        """End the process as a person does."""
        await self._stack.aclose()


@dataclass
class Turn:
    """What a model saw in one turn, and what it is to reply, step by step."""

    steps: deque[Step]
    agent: str = (
        ""  # with which it is, where its requests are compared with those of its other turns
    )
    requests: list[Seen] = field(default_factory=list)
    on_request: Callable[[Seen], None] = lambda _: None


class Talk:
    """The model of a world: it replies to each message as its turn says; `on_request` looks at each request."""

    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}
        self.on_request: Callable[[Turn, Seen], None] = lambda _turn, _seen: None
        self.model = ScriptedModel([Repeat(self._reply)], key=KEY)

    def _reply(self, seen: Seen) -> Step:
        words = MESSAGE.findall(
            "\n".join(
                str(message["content"]) for message in seen.messages if message["role"] == "user"
            )
        )
        turn = self.turns[words[-1]]
        turn.requests.append(seen)
        self.on_request(turn, seen)
        turn.on_request(seen)
        return turn.steps.popleft() if turn.steps else Say(f"Done: {words[-1]}.")


class Watch:
    """Notes who starts programs, and with which environment, as long as it is on.

    `on_change` is called once, in the middle of the next change of a module: when its text is put beside the file, or
    with `is_removed` when the folder is opened in which the file is removed.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.on_change: Callable[[], None] | None = None
        self.is_removed = False
        self.faults: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:  # Any: of each event
        awaited = FOLDER if self.is_removed else TEMPORARY
        if event == "open" and self.on_change and awaited.search(str(arguments[0])):
            act = self.on_change
            self.on_change = None
            act()
        if not self.is_on or event not in STARTS:
            return
        places = _places(sys._getframe())
        if places and not places[0].startswith(STARTERS_OF_PROGRAMS):
            self.faults.append(f"{places[0]} started a program")
        given = (
            arguments[-1] if event in ("subprocess.Popen", "os.exec", "os.posix_spawn") else None
        )
        if places and _has_a_secret(given if given is not None else os.environ):
            self.faults.append(f"{places[0]} handed a secret on")


def _places(frame: Any) -> list[str]:  # Any: a frame, or None
    found = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            place = str(path.relative_to(ROOT))
            if not place.startswith(("tests/", ".venv/")):
                found.append(place)
        frame = frame.f_back
    return found


def _has_a_secret(variables: Any) -> bool:  # Any: as a program is given them
    text = repr(dict(variables) if isinstance(variables, Mapping) else variables)
    return SECRET in text or KEY in text


def leaks(what: object) -> bool:
    """Return whether the secret is in what was shown or sent."""
    return SECRET in json.dumps(to_json(what), default=repr)


def files_with(text: str, folder: Path) -> list[str]:
    """Return the files that have a text. Another process reads them: closing a database here would end its locks."""
    command = ["grep", "-rlaFe", text, str(folder)]
    return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()


def copy_folder(folder: Path, copied: Path) -> None:
    """Copy a folder by another process, for the same reason."""
    subprocess.run(["cp", "-r", str(folder), str(copied)], check=True)
