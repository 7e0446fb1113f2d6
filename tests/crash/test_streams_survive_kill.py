"""What was shown survives a `kill -9`: the part of a reply in the middle of it, and each event of a turn."""

import json
import os
import time
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from agent_core import Workspace
from tests.crash.stream_work import take_turn
from tests.interfaces.support import flags
from tests.kit import Expect, Repeat, Say, Script, contains, scripted
from tests.kit.crash import Worker
from tests.kit.program import Program, knapper, surroundings
from tests.knapper_ext.server.told import calling, prepare, replayed, without_pieces

WORDS = " ".join(f"word{number}" for number in range(400))
SHOWN_S = 3.0


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.slow)])
def storage(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of programs that keep their state in a file, or in a database."""
    is_file = request.param == "file"
    return {} if is_file else {"KNAPPER_STORAGE_URL": request.getfixturevalue("database")}


def shown_until_killed(root: Path, words: tuple[str, ...], storage: dict[str, str]) -> str:
    """Return the output of a program that was killed some seconds after its first word."""
    with TemporaryFile() as typed, TemporaryFile() as out, TemporaryFile() as err:
        streams = [file.fileno() for file in (typed, out, err)]
        program = Program(("run", *words), streams, cwd=root, environment=surroundings(storage))
        end = 0.0
        while not end or time.monotonic() < end:
            time.sleep(0.05)
            assert program.poll() is None
            if not end and b"word0" in os.pread(
                out.fileno(), 100, 0
            ):  # without moving the program's write position
                end = time.monotonic() + SHOWN_S
        program.kill()
        program.wait(10)
        return os.pread(out.fileno(), 1 << 20, 0).decode()


def test_what_was_shown_of_a_reply_is_in_the_log_at_once_and_the_conversation_goes_on_with_it(
    tmp_path: Path, storage: dict[str, str]
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    script: Script = [
        Say(WORDS, pause_s=0.05),
        Expect(Say("I go on."), contains("word3 "), contains("[…]")),  # the turn that was cut off
        Expect(Say("As you say."), contains("I go on.")),
    ]
    with scripted(script) as model:
        shown = shown_until_killed(tmp_path, (*flags(model), "--message", "Count."), storage)
        log = knapper("log", cwd=tmp_path, environment=storage).stdout
        assert "**main:** word0 word1" in log
        assert log.count("word") >= shown.count("word") - 60, (
            "at most what came in the last second or so is lost"
        )
        assert " […]\n\n> The reply is cut off here" in log
        (turn,) = json.loads(knapper("log", "--json", cwd=tmp_path, environment=storage).stdout)[
            "turns"
        ]
        assert [entry["kind"] for entry in turn["entries"]][-1] == "streamed"
        assert knapper("log", "-o", "kept.md", cwd=tmp_path, environment=storage).returncode == 0
        assert (tmp_path / "kept.md").read_text() == log, "reading closes nothing"
        done = knapper(
            "run", *flags(model), "--message", "Go on.", cwd=tmp_path, environment=storage
        )
        assert (done.returncode, done.stdout) == (0, "As you say.\n"), done.stderr
    log = knapper("log", cwd=tmp_path, environment=storage).stdout
    count, kept = shown.count("word"), log.count("word")
    assert 0 < kept <= count + 60, (shown, log)
    assert kept >= count - 60, "at most what came in the last second or so is lost"
    assert "[…]" in log
    assert "The program was stopped here." in log


@pytest.mark.timeout(300)
@pytest.mark.parametrize("heard", [2, 4, 9, 14, 20, 26, 33])
async def test_each_event_that_was_told_is_in_the_stream_of_the_next_start(
    tmp_path: Path, heard: int
) -> None:
    prepare(tmp_path)
    (tmp_path / "knapper.toml").touch()
    steps = iter([*calling(), *[Say("Later.")] * 9])
    with scripted([Repeat(lambda _: next(steps))]) as model:  # type: ignore[arg-type, return-value]
        worker = Worker(take_turn, f"{tmp_path}|{model.base_url}")
        reports = [worker.next_report() for _ in range(heard)]
        worker.kill()
        _, *reports = [*reports, *worker.reports()]
        numbered = [row.partition(" ") for row in reports]
        told = [json.loads(text) for _, _, text in numbered]
        async with Workspace.open(tmp_path, flags={"model.base_url": model.base_url}) as workspace:
            agent = await workspace.agent()
            settled = await replayed(workspace.store)
            steps = iter([Say("Later.")] * 9)
            _ = [event async for event in agent.turn("Go on.")]
            whole = await replayed(workspace.store)
            assert whole[: len(settled)] == settled
            for at, (number, _) in enumerate(whole, 1):
                if number is not None:
                    assert await replayed(workspace.store, after=number) == whole[at:]
            await agent.aclose()
    later = without_pieces([event for _, event in whole])
    assert later[: len(told)] == told
    assert {int(seq) for seq, *_ in numbered} <= {number for number, _ in whole}
    ends = [event["reason"] for event in later if event["type"] == "turn_ended"]
    assert ends == ["interrupted", "replied", "replied"]  # its sender waited, so it began again
