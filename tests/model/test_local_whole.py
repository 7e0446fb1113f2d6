"""The local model as the program uses it, from the command to the answer; the engine's package is replaced."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.events import Event, TurnEnded, Usage
from agent_core.base.settings import ModelSettings, Settings
from agent_core.interfaces.menu import prepare
from agent_core.model.local import server, weights
from agent_core.model.local import server as memory
from agent_core.model.local.server import open_local
from agent_core.workspace.local_models import remove_model
from agent_core.workspace.workspace import Workspace
from tests.kit.desk import Desk

NAME = "local/qwen2.5-coder-1.5b"
STANDIN = Path(__file__).parents[1] / "kit" / "standin"
SETTINGS = Settings(model=ModelSettings(name=NAME))


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


async def turn(machine: Path) -> list[Event]:
    async with Workspace.open(machine / "workspace", settings=SETTINGS) as workspace:
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


async def test_too_little_memory_is_said_when_the_model_is_opened() -> None:
    with pytest.raises(ModelError, match="GB of memory, and"):
        await open_local(NAME, ModelSettings(context_tokens=10**9))
    assert not server.running()


async def test_a_turn_after_another_program_reads_nothing_of_the_fixed_part(machine: Path) -> None:
    for _ in range(2):
        events = await turn(machine)
        assert isinstance(events[-1], TurnEnded)
        assert events[-1].reply.endswith("Good morning!")
    (usage,) = [event for event in events if isinstance(event, Usage)]
    assert usage.prompt_tokens - usage.cached_tokens < 200  # what this agent remembers, and the message


async def test_what_is_prepared_after_the_download_serves_every_workspace(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(prepare, "qwen2.5-coder-1.5b")
    (state,) = weights.states_folder().iterdir()
    (machine / "workspace" / "functions").mkdir()
    (machine / "workspace" / "functions" / "own.py").write_text('def own() -> int:\n    """One."""\n    return 1\n')
    await turn(machine)
    assert [*weights.states_folder().iterdir()] == [state]
    assert "up to a minute" in capsys.readouterr().err


def test_what_stands_in_the_way_of_preparing_is_told_and_fails_nothing(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (weights.folder() / weights.named(NAME).file).unlink()
    prepare(NAME)
    assert "The first request will do that: The weights of" in capsys.readouterr().err


async def test_a_removed_model_takes_what_it_has_read_with_it(machine: Path) -> None:
    await turn(machine)
    (state,) = weights.states_folder().iterdir()
    assert str(state) in remove_model(NAME)["removed"]
    assert not state.exists()


async def test_a_model_at_an_endpoint_is_not_asked_to_read_ahead(at_desk: Callable[..., Awaitable[Desk]]) -> None:
    desk = await at_desk([])
    await desk.agent.model_session.prepare(desk.agent.snapshot())
    assert not desk.model.requests
