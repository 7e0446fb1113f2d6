"""A function service with its folder and its store; nothing watches the folder, so each test triggers the scans."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_core.access.grants import ApprovalQueue
from agent_core.base.clock import Clock
from agent_core.base.settings import load
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import FunctionService
from agent_core.storage import Store, open_store, prepare_state_dir
from agent_core.workspace.workspace import Workspace, function_service
from sandbox import Sandbox
from tests.kit.desk import VOWELS, another
from tests.kit.sources import function_text

FLAGS = {"sandbox.wall_s": 2}
CLAMP = function_text(
    "clamp(value: int, low: int) -> int",
    "Keep a value above a bound.\n\nArgs:\n    value: The value.\n    low: The least.",
    "if value < low:\n    return low\nreturn value",
    "clamp(5, 1) → 5",
    "clamp(7, 2) → 7",
    "clamp(0, 3) → 3",
)
COPY = (
    CLAMP.replace("clamp", "at_least")
    .replace("value", "number")
    .replace("Keep", "Hold")
    .replace("bound", "limit")
)
CRASH = function_text(
    "initials(name: str) -> str",
    "Give the first letters of a name.\n\nArgs:\n    name: A first name and a second.",
    'return "".join(part[0] if part else None for part in name.split(" ")).upper()',
    "initials(\"ann lee\") → 'AL'",
    "initials(\"bob oak\") → 'BO'",
    "initials(\"cy\") → 'C'",
)
STRONG = function_text(
    "total(numbers: list[int]) -> int",
    "Add numbers up.\n\nArgs:\n    numbers: What to add.",
    "return sum(numbers)",
    "total([1, 2]) → 3",
    "total([5]) → 5",
)


@dataclass(frozen=True)
class Room:
    """A process at a workspace that works on functions; several may use one folder."""

    root: Path
    shop: FunctionService
    store: Store
    sandbox: SandboxClient

    @property
    def letters(self) -> Path:
        """The file that most tests use."""
        return self.root / "functions" / "letters.py"

    async def save(self, text: str, file: Path | None = None) -> None:
        """Save a file as a human does, and scan it."""
        (file or self.letters).write_text(text)
        await self.shop.saved([file or self.letters])

    async def held(self, name: str) -> dict[str, Any]:
        """Return what the store has on a function: its versions' authors, its verdict, and what is pending or open."""
        function = self.shop.registry.snapshot().functions.get(name)
        verdict = await self.store.verdict(function.body_hash, name) if function else None
        history = await self.store.module_history("letters")
        return {
            "by": [row.by for row in history],
            "verdict": (verdict["by"], verdict["standing"]) if verdict else None,
            "pending": await self.store.pending(name) is not None,
            "open": len(await self.store.open_writes()),
        }

    def leftovers(self) -> Sequence[str]:
        """Return the files of the folder."""
        return sorted(path.name for path in (self.root / "functions").rglob("*") if path.is_file())


@pytest.fixture
def lent(one_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lend the session's sandbox to the workspaces of a test that are opened without one."""
    monkeypatch.setattr(
        Workspace, "open", staticmethod(partial(Workspace.open, sandbox=one_sandbox))
    )


@asynccontextmanager
async def a_cage(shared: Sandbox) -> AsyncIterator[SandboxClient]:
    """Yield a client of this sandbox for several function services; a call ends after two seconds."""
    settings = load(Path("/"), FLAGS)
    sandbox = SandboxClient(settings.sandbox, settings.turn.parallel, shared=shared)
    try:
        yield sandbox
    finally:
        await sandbox.aclose()


@asynccontextmanager
async def room(root: Path, sandbox: SandboxClient) -> AsyncIterator[Room]:
    """Open a function service in a folder."""
    (root / "functions").mkdir(exist_ok=True)
    store = open_store(prepare_state_dir(root) / "state.db", clock=Clock())
    try:
        shop = function_service(
            root, load(root, FLAGS), store, lambda: sandbox, ApprovalQueue(None, store)
        )
        await shop.loader.start()
        yield Room(root, shop, store, sandbox)
    finally:
        await store.close()


def named(name: str, text: str = VOWELS) -> str:
    """Return the example function under another name; it also counts the name's capitals, so it is not a duplicate."""
    return another(name) if text == VOWELS else text.replace("count_vowels", name)


USER = named("count_twice").replace("return sum(", "return 0 * count_vowels(text) + sum(")
