"""The local model from the command to the answer: memory, and one engine. The engine's package is replaced."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent_core.base import machine
from agent_core.base.errors import ModelError, NoModel
from agent_core.base.events import Event, TurnEnded, Usage
from agent_core.base.settings import ModelSettings, Settings
from agent_core.model.dialect import ServerKind
from agent_core.model.discover import choose
from agent_core.workspace.workspace import Workspace
from knapper_ext.local import server, weights
from knapper_ext.local import server as memory
from knapper_ext.local.commands import prepare
from knapper_ext.local.models import remove_model
from knapper_ext.local.server import available, context_size, open_local
from tests.kit import ScriptedModel
from tests.kit.desk import Desk

NAME = "local/qwen2.5-coder-1.5b"
STANDIN = Path(__file__).parents[2] / "kit" / "standin"
SETTINGS = Settings(model=ModelSettings(name=NAME))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that appears to have the weights: an empty file of their size."""
    monkeypatch.syspath_prepend(str(STANDIN))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    known = weights.named(NAME)
    file = weights.folder() / known.file
    file.parent.mkdir(parents=True)
    file.touch()
    os.truncate(file, known.size)
    weights.mark_verified(known, file)
    (tmp_path / "workspace").mkdir()
    return tmp_path


async def turn(home: Path) -> list[Event]:
    async with Workspace.open(home / "workspace", settings=SETTINGS) as workspace:
        agent = await workspace.agent()
        return [event async for event in agent.turn("Good morning!")]


async def test_opening_does_not_wait_for_the_loading() -> None:
    model = await open_local(NAME)
    (engine,) = server.running()
    loaded = [engine.is_loaded]
    await engine.child()
    loaded.append(engine.is_loaded)
    await model.aclose()
    assert (loaded, server.running()) == ([False, True], ())


async def test_a_second_model_takes_the_window_of_the_first_unless_another_is_wanted() -> None:
    one, other = await open_local(NAME), await open_local(NAME)
    third = await open_local(NAME, ModelSettings(context_tokens=700))
    assert one.context_limit == other.context_limit
    assert one.context_limit in memory.SIZES
    assert (third.context_limit, len(server.running())) == (700, 2)
    await asyncio.gather(one.aclose(), other.aclose(), third.aclose())


async def test_a_turn_after_another_program_reads_nothing_of_the_fixed_part(home: Path) -> None:
    for _ in range(2):
        events = await turn(home)
        assert isinstance(events[-1], TurnEnded)
        assert events[-1].reply.endswith("Good morning!")
    (usage,) = [event for event in events if isinstance(event, Usage)]
    assert (
        usage.prompt_tokens - usage.cached_tokens < 200
    )  # what this agent remembers, and the message


async def test_what_is_prepared_after_the_download_serves_every_workspace(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(prepare, "qwen2.5-coder-1.5b")
    (state,) = weights.states_folder().iterdir()
    (home / "workspace" / "functions").mkdir()
    (home / "workspace" / "functions" / "own.py").write_text(
        'def own() -> int:\n    """One."""\n    return 1\n'
    )
    await turn(home)
    assert [*weights.states_folder().iterdir()] == [state]
    assert "up to a minute" in capsys.readouterr().err


async def test_a_removed_model_takes_what_it_has_read_with_it(home: Path) -> None:
    await turn(home)
    (state,) = weights.states_folder().iterdir()
    assert str(state) in remove_model(NAME)["removed"]
    assert not state.exists()


CLOSED = [ServerKind("closed", 9)]


async def test_stored_weights_are_taken_when_nothing_else_is_found() -> None:
    for name in (None, "local"):
        chosen = await choose(ModelSettings(name=name), {}, servers=CLOSED)
        assert (chosen.kind, chosen.model_name) == ("beside", NAME), name


async def test_stored_weights_are_taken_before_a_server_that_may_be_of_another_user(
    scripted: Callable[..., ScriptedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = scripted([], models=["spy"])
    found = [ServerKind("Spy", urlsplit(server.base_url).port or 0)]
    assert (await choose(ModelSettings(), {}, servers=found)).model_name == "spy"
    monkeypatch.setattr(machine, "_SOCKETS", (tmp_path / "tcp",))  # nobody says whose it is
    assert (await choose(ModelSettings(), {}, servers=found)).model_name == NAME


async def test_weights_without_their_engine_are_no_model_and_the_error_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(STANDIN)])
    if weights.has_engine():
        pytest.skip("the extra `local` is installed")
    with pytest.raises(NoModel, match=f"{NAME} is here, but cannot be used.*xllamacpp") as caught:
        await choose(ModelSettings(), {}, servers=CLOSED)
    assert "Type: " in caught.value.message
    assert "3. a local model:   knapper models get qwen2.5-coder-1.5b" in caught.value.fix


async def test_a_model_at_an_endpoint_is_not_asked_to_read_ahead(
    at_desk: Callable[..., Awaitable[Desk]],
) -> None:
    desk = await at_desk([])
    await desk.agent.model_session.prepare(desk.agent.snapshot())
    assert not desk.model.requests


GB = 10**9
BIG, SMALL = 1_117_320_768, 491_400_064
MEMINFO = "MemTotal: 8000000 kB\nMemFree: 10 kB\nMemAvailable: 4000000 kB\nHugePages_Total: 0\n"


def test_the_window_is_as_large_as_the_memory_allows() -> None:
    rows: list[tuple[str, int | None, int, int | None, int]] = [
        ("unknown", None, BIG, None, 8_192),
        ("plenty", 24 * GB, BIG, None, 16_384),
        ("four-gigabyte-machine", int(3.1 * GB), BIG, None, 8_192),
        ("little", int(1.9 * GB), BIG, None, 4_096),
        ("small-weights", int(2.5 * GB), SMALL, None, 16_384),
    ]
    for case, free, held, wanted, size in rows:
        assert context_size(free, held, wanted) == size, case


def test_too_little_memory_is_said_before_anything_is_loaded() -> None:
    rows: list[tuple[str, int, int | None, str, str]] = [
        ("any", GB, None, r"needs 1\.8 GB of memory, and 1\.0 GB are free", "Close other programs"),
        ("wanted", 2 * GB, 32_768, r"needs 2\.6 GB", "context_tokens` lower"),
    ]
    for case, free, wanted, said, fix in rows:
        with pytest.raises(ModelError, match=said) as caught:
            context_size(free, BIG, wanted)
        assert fix in caught.value.fix, case


@pytest.mark.parametrize(
    ("group", "free"),
    [
        pytest.param({}, 4_096_000_000, id="no-group"),
        pytest.param({"memory.max": "3000\n", "memory.current": "2000\n"}, 1_000, id="limit"),
        pytest.param(
            {
                "memory.max": "3000\n",
                "memory.current": "2000\n",
                "memory.stat": "anon 1\ninactive_file 500\n",
            },
            1_500,
            id="cache-counts-as-free",
        ),
    ],
)
def test_free_memory_is_the_machines_within_the_limit_of_the_group(
    tmp_path: Path, group: dict[str, str], free: int
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in group.items():
        (tmp_path / "sys/fs/cgroup" / name).write_text(text)
    assert available(tmp_path) == free


def test_memory_that_nobody_tells_of_is_not_guessed(tmp_path: Path) -> None:
    assert available(tmp_path) is None
