"""The engine's process: start, requests, cancellation, crash and end; the fixed part of the prompt is read once.

The program that runs is the real one; only the package `xllamacpp` is replaced.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.messages import System, User
from agent_core.base.settings import ModelSettings
from agent_core.model import Reply, Request
from knapper_ext.local import server
from knapper_ext.local.server import EnginePlan, LocalModel
from knapper_ext.local.weights import Weights, states_folder

WEIGHTS = Weights(
    "tiny", "Tiny", "tiny.gguf", 2, "0" * 64, "none", "nobody", "https://example.org/tiny.gguf"
)
STANDIN = Path(__file__).parents[2] / "kit" / "standin"


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(STANDIN))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tiny.gguf").write_text("ok")
    return tmp_path


def plan(room: Path, context: int = 4_096) -> EnginePlan:
    return EnginePlan(str(room / "tiny.gguf"), context, 1, 128, 0, f"{server.prepared_folder()}/")


def opened(room: Path, context: int = 4_096) -> LocalModel:
    engine = server.engine(
        WEIGHTS, lambda: plan(room, context), lambda other: other.context == context
    )
    return LocalModel(WEIGHTS, engine, ModelSettings())


@asynccontextmanager
async def model_in(room: Path, context: int = 4_096) -> AsyncIterator[LocalModel]:
    model = opened(room, context)
    try:
        yield model
    finally:
        await model.aclose()


async def ask(model: LocalModel, text: str, told: str = "Be kind.") -> Reply:
    pieces = [piece async for piece in model.stream(Request((System(told), User(text))))]
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


def states() -> list[Path]:
    return sorted(states_folder().iterdir())


def places_in(folder: Path) -> list[Path]:
    return list(folder.glob("knapper-engine-*"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


async def until_gone(pid: int) -> None:
    while is_running(pid):  # noqa: ASYNC110 - another process sets no event
        await asyncio.sleep(0.01)


async def pid_of(model: LocalModel) -> int:
    return (await model.engine.child()).pid


async def test_an_engine_answers_and_goes_on_whatever_is_asked(
    room: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("KNAPPER_MODEL_NAME", "local/tiny")
    async with model_in(room, context=1_000) as model:
        assert (await ask(model, "hello")).text == "hello"
        names = (await ask(model, "environment")).text.split()
        assert "PYTHONPATH" in names
        assert not {"OPENAI_API_KEY", "KNAPPER_MODEL_NAME", "HOME"} & {*names}
        with pytest.raises(ModelError, match=r"the local model says \(500\): no more"):
            await ask(model, "fail")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await ask(model, "endless")
        pid = await pid_of(model)
        assert (await ask(model, "next")).text == "next"
        assert await pid_of(model) == pid
        with pytest.raises(ContextOverflow):
            await ask(model, "word " * 1_000)
    assert capfd.readouterr() == ("", "")


async def test_an_engine_that_dies_says_why_and_the_next_request_has_another(room: Path) -> None:
    deaths = [
        (signal.SIGKILL, "memory ran out", "context_tokens"),
        (signal.SIGILL, "cannot run on this processor", "`model.base_url`"),
        (signal.SIGABRT, "SIGABRT", "another model"),
    ]
    async with model_in(room) as model:
        for number, said, fix in deaths:
            before = await pid_of(model)
            with pytest.raises(ModelError, match=said) as caught:
                await ask(model, f"die {int(number)}")
            assert fix in caught.value.fix
            assert (await ask(model, "again")).text == "again"
            assert await pid_of(model) != before
        pid = await pid_of(model)
        os.kill(pid, signal.SIGKILL)  # while nobody asks
        await until_gone(pid)
        await asyncio.sleep(0.05)
        assert (await ask(model, "again")).text == "again"


async def test_an_engine_ends_when_its_program_is_killed(room: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from knapper_ext.local.server import Child, EnginePlan\n"
        "async def main():\n"
        "    child = await Child.start(EnginePlan(sys.argv[1], 512, 1, 128, 0))\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    places = [str(STANDIN), str(Path(__file__).parents[2])]
    with subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond
        [sys.executable, "-c", program, str(room / "tiny.gguf")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), "TMPDIR": str(room)},
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        pid = int(await asyncio.to_thread(parent.stdout.readline))
        assert is_running(pid)
        parent.kill()
    await until_gone(pid)
    assert places_in(room) == []


async def test_the_fixed_part_is_read_once_and_not_again_by_another_process(room: Path) -> None:
    async with model_in(room) as model:
        first = (await ask(model, "confidential")).usage
    async with model_in(room) as model:
        heard: list[int] = []
        await model.prepare(Request((System("Be kind."),)), lambda done, _: heard.append(done))
        again = (await ask(model, "confidential")).usage
    assert (heard, again.cached) == ([], first.cached)
    assert again.cached >= again.prompt - 2
    assert [oct(file.stat().st_mode & 0o777) for file in (states_folder(), *states())] == [
        "0o700",
        "0o600",
    ]
    assert "confidential" not in states()[0].read_text()  # what the user says is not kept with it
    assert "kind" in states()[0].read_text()


async def test_a_damaged_state_is_thrown_away_and_made_again(room: Path) -> None:
    async with model_in(room) as model:
        await ask(model, "hello")
    (state,) = states()
    whole = state.read_bytes()
    (room / "elsewhere").write_bytes(whole)
    for damaged in (whole[:-9], b"poison", room / "elsewhere"):
        state.unlink()
        if isinstance(damaged, Path):
            state.symlink_to(damaged)
        else:
            state.write_bytes(damaged)
        async with model_in(room) as model:
            assert (await ask(model, "hello")).text == "hello"
        assert [file.read_bytes() for file in states()] == [whole]
        assert not states()[0].is_symlink()


async def test_another_text_is_another_state_and_only_a_few_are_kept(room: Path) -> None:
    async with model_in(room) as model:
        for number in range(server.KEPT + 2):
            await ask(model, "hello", told=f"You are number {number}.")
            os.utime(states()[-1])
    assert len(states()) == server.KEPT
    assert any("4." in file.read_text() for file in states())


def test_only_what_was_left_unfinished_long_ago_is_tidied_away(room: Path) -> None:
    for name, age_s in (("saving", 60), ("forgotten", 7200)):
        (room / f"{name}.new").write_text("x")
        os.utime(room / f"{name}.new", (time.time() - age_s,) * 2)
    (room / "now.new").write_text("x")
    server.keep_state(room, "tiny-0", "now.new")
    assert [file.name for file in room.glob("*.new")] == ["saving.new"]


async def test_a_folder_that_cannot_be_written_costs_only_the_time(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (room / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(room / "file"))
    assert server.prepared_folder() is None
    engine = server.engine(
        WEIGHTS, lambda: EnginePlan(str(room / "tiny.gguf"), 4_096, 1, 128, 0), lambda _: False
    )
    model = LocalModel(WEIGHTS, engine, ModelSettings())
    try:
        assert not await (await engine.child()).act("save", "nothing")
        assert (await ask(model, "hello")).text == "hello"
    finally:
        await model.aclose()


async def test_weights_that_cannot_be_loaded_fail_the_request_and_not_the_opening(
    room: Path,
) -> None:
    async with model_in(room) as model:
        for happens, said in (
            ("broken", "could not be loaded: Failed to init server"),
            ("9", "memory ran out"),
        ):
            (room / "tiny.gguf").write_text(happens)
            with pytest.raises(ModelError, match=said):
                await ask(model, "hello")
        (room / "tiny.gguf").write_text("ok")
        assert (await ask(model, "hello")).text == "hello"
