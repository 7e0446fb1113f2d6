"""A store is opened by its address: a path, or a URL with the scheme of its database."""

import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import open_store
from agent_core.workspace.state_store import UnconfirmedDatabase
from tests.storage.support import ManualClock, say


async def test_each_form_of_an_address_opens_the_same_file(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "state.db"
    addresses: list[str | Path] = [path, str(path), f"sqlite:///{path}", "sqlite:///state.db"]
    for number, address in enumerate(addresses, 1):
        async with open_store(address, clock=clock) as store:
            await say(store, "hello")
        async with open_store(path, clock=clock) as store:
            assert [(agent.name, agent.turns) for agent in await store.agents()] == [
                ("main", number)
            ]


@pytest.mark.parametrize(
    "address", ["mysql://here/agents", "sqlite:///", "sqlite://", "sqlite://state.db"]
)
def test_an_address_of_no_store_is_refused_with_what_would_do(
    clock: ManualClock, address: str
) -> None:
    with pytest.raises(StorageError, match=r"sqlite:///PATH, or the path of a file") as refusal:
        open_store(address, clock=clock)
    assert address in str(refusal.value)


def test_an_unknown_scheme_lists_those_that_are_here_and_the_extras(clock: ManualClock) -> None:
    with pytest.raises(StorageError) as refusal:
        open_store("mysql://here/agents", clock=clock)
    fix = refusal.value.fix
    assert [part in fix for part in ("postgresql://…", "postgres://…")] == [True, True]
    extras = metadata("knapper").get_all("Provides-Extra") or []
    assert "postgres" in extras
    assert [extra for extra in extras if extra not in fix] == []
    assert "pip install" in fix


_CORE_ALONE = """
import sys
from pathlib import Path

sys.modules["knapper_ext"] = None  # as if it were not installed
from agent_core.base.clock import Clock
from agent_core.storage import open_store
for address in (Path(sys.argv[1], "state.db"), "postgresql://here/agents"):
    try:
        print(type(open_store(address, clock=Clock())).__name__)
    except Exception as error:
        print(error)
"""


def test_the_core_without_extensions_opens_files_and_names_no_other_scheme(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _CORE_ALONE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    opened, refused = done.stdout.splitlines()[:2]
    assert opened == "SqliteStore"
    assert "No store can be opened at `postgresql://here/agents`" in refused
    assert "://…" not in refused


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param(
            "postgresql://me:secret@host:5432/db",
            "postgresql://me@host:5432/db",
            id="user-and-password",
        ),
        pytest.param(
            "postgresql://host:5432/db?x=a:b@other",
            "postgresql://host:5432/db?x=a:b@other",
            id="later-sign",
        ),
        pytest.param(
            "postgresql://me:a:b@c@host/db", "postgresql://me@host/db", id="signs-in-a-password"
        ),
        pytest.param("me:secret@host", "me@host", id="no-scheme"),
    ],
)
def test_the_address_of_an_unconfirmed_database_is_shown_with_its_host_and_no_password(
    url: str, shown: str
) -> None:
    assert UnconfirmedDatabase(url).message.startswith(f"knapper.toml names the database {shown}")
