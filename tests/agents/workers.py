"""Worker processes at one database, with a scripted model."""

import os
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import IO

from agent_core.base.clock import Clock
from agent_core.storage import Post, Store, WorkerRow, open_store
from tests.kit import ScriptedModel
from tests.kit.program import Program, surroundings
from tests.kit.waiting import until


@dataclass
class Cluster:
    """Workers and conversations at one database. Their output is kept, to be shown with a failure."""

    database: str
    model: ScriptedModel
    store: Store
    programs: list[Program] = field(default_factory=list)
    said: list[IO[bytes]] = field(default_factory=list)

    def start(
        self, root: Path, *options: str, environment: Mapping[str, str] = MappingProxyType({})
    ) -> Program:
        """Start a worker in a folder."""
        return self._program(root, "worker", *options, environment=environment)

    def talk(self, root: Path, given: str) -> Program:
        """Start a conversation in a folder, with all of the user's input."""
        return self._program(root, "run", "-y", "--agent", "a0", given=given)

    def _program(
        self,
        root: Path,
        *arguments: str,
        given: str = "",
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Program:
        (root / "functions").mkdir(parents=True, exist_ok=True)
        (root / "knapper.toml").touch()
        environment = {
            "KNAPPER_STORAGE_URL": self.database,
            "KNAPPER_MODEL_BASE_URL": self.model.base_url,
            "KNAPPER_MODEL_NAME": "scripted",
            "KNAPPER_MODEL_CONTEXT_TOKENS": "16384",
            "KNAPPER_MEMORY_EMBEDDING": "none",
            **environment,
        }
        out = TemporaryFile()  # noqa: SIM115  (closed with the cluster)
        with TemporaryFile() as typed:
            typed.write(given.encode())
            typed.seek(0)
            streams = [typed.fileno(), out.fileno(), out.fileno()]
            program = Program(arguments, streams, cwd=root, environment=surroundings(environment))
        self.programs.append(program)
        self.said.append(out)
        return program

    async def at_work(self, count: int) -> None:
        """Wait until this many workers have slots."""
        await until(lambda: self._count(), lambda found: found == count)

    async def _count(self) -> int:
        return sum(row.is_alive and row.slots > 0 for row in await self.store.workers())

    async def say(self, agent: str, text: str) -> None:
        """Post a message of the user."""
        await self.store.post(Post(agent, "message", {"text": text}))

    async def replies(self, agent: str) -> list[str]:
        """Return an agent's replies."""
        entries = await self.store.history(agent, kinds=("assistant",))
        return [entry.payload["text"] for entry in entries if not entry.payload["calls"]]

    async def replied(self, agent: str, text: str) -> None:
        """Wait for a reply of an agent and for the end of its turn."""
        await until(lambda: self.replies(agent), lambda found: text in found)
        await until(self.store.due, lambda due: agent not in [item.line for item in due])

    async def who_has(self, agent: str) -> Program:
        """Wait until a worker has claimed an agent, and return that worker."""
        rows = await until(self.store.workers, lambda rows: _holder(rows, agent) is not None)
        pid = _holder(rows, agent)
        return next(worker for worker in self.programs if worker.pid == pid)

    def words(self) -> str:
        """Return the output of all programs."""
        texts = []
        for out in self.said:
            out.seek(0)
            texts.append(out.read().decode())
        return "\n".join(texts)


def _holder(rows: list[WorkerRow], agent: str) -> int | None:
    names = [row.name for row in rows if agent in row.agents]
    match = re.match(r"process (\d+) ", names[0]) if names else None
    return int(match[1]) if match else None


@asynccontextmanager
async def cluster(database: str, model: ScriptedModel) -> AsyncIterator[Cluster]:
    """Yield a database without workers; end all that were started."""
    async with open_store(database, clock=Clock()) as store:
        made = Cluster(database, model, store)
        try:
            yield made
        except BaseException as error:
            error.add_note(made.words())
            raise
        finally:
            for program in made.programs:
                os.kill(program.pid, signal.SIGCONT) if program.poll() is None else None
                program.kill()
                program.wait(10)
            for out in made.said:
                out.close()
