"""Fixtures for tests that need PostgreSQL: the server of the run, and an empty store database for each test."""

import asyncio
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count

import pytest

from agent_core.base.clock import Clock
from agent_core.storage import open_store
from tests.kit.postgres import Server, programs, shared_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Server]:
    """The PostgreSQL server of this run."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install '.[postgres]'")
    if programs() is None:
        pytest.skip("there is no PostgreSQL on this machine, and no wheel of one for it")
    folder = tmp_path_factory.getbasetemp()
    with ExitStack() as stack:
        try:
            server = stack.enter_context(
                shared_server(folder.parent if worker_id != "master" else folder)
            )
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(
                f"PostgreSQL cannot be started here: {error} {getattr(error, 'stderr', '')}"
            )
        yield server


@pytest.fixture(scope="session")
def template(postgres: Server, worker_id: str) -> str:
    """The name of a database with the store's tables; each test gets a copy."""
    name = f"base_{worker_id}"
    postgres.execute(f"create database {name}")
    with ThreadPoolExecutor(1) as thread:  # a thread without a running event loop
        thread.submit(asyncio.run, _prepare(postgres.url(name))).result()
    return name


async def _prepare(url: str) -> None:
    await open_store(url, clock=Clock()).close()


@pytest.fixture
def database(postgres: Server, template: str) -> Iterator[str]:
    """The URL of an empty database."""
    with _made(postgres, template) as url:
        yield url


@pytest.fixture(scope="module")
def lasting_database(postgres: Server, template: str) -> Iterator[str]:
    """The URL of an empty database that all tests of a module share."""
    with _made(postgres, template) as url:
        yield url


@contextmanager
def _made(postgres: Server, template: str) -> Iterator[str]:
    name = f"{template}_{next(_NUMBERS)}"
    postgres.execute(f"create database {name} template {template} strategy file_copy")
    yield postgres.url(name)
    postgres.execute(f"drop database {name} with (force)")
