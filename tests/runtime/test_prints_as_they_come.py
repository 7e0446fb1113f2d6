"""A function's output is reported while it runs: complete, masked, and not too often."""

from pathlib import Path

import pytest

from agent_core.base.events import CallAnswered, Printed
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import of
from tests.secrets.support import KEY, MARK, put

SCRIPT = [Ask(Wanted("tell", {})), Say("Done.")]
HALVES = """
import sys, time
key = self.secret("KEY")
for piece in ("begun\\n", "at " + key[:9], key[9:] + " and\\n", "went on\\n"):
    print(piece, end="", flush=True)
    time.sleep(0.08)
return len(key)
"""
BYTES = """
import os, time
for byte in "é漢\\n".encode() + b"\\xff\\n":
    os.write(1, bytes([byte]))
    time.sleep(0.06)
return 1
"""
CALLS = 'print("outer")\nreturn self.call("inner")'


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> str:
    home: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("KNAPPER_SECRET_KEY", KEY)
    return KEY


async def heard(at_desk: OpenDesk, body: str, *secrets: str) -> tuple[list[Printed], CallAnswered]:
    """Return the output reported before the result, and the result; no output may follow it."""
    desk = await at_desk(SCRIPT)
    await put(desk.workspace, "tell", body, *secrets)
    events = await desk.say("tell me")
    (answer,) = of(CallAnswered, events)
    prints = of(Printed, events)
    assert all(events.index(one) < events.index(answer) for one in prints)
    return prints, answer


async def test_a_line_is_told_while_the_function_runs(at_desk: OpenDesk) -> None:
    prints, answer = await heard(
        at_desk, 'import time\nprint("first")\ntime.sleep(0.5)\nprint("second")\nreturn 1'
    )
    assert (prints[0].text.strip(), "".join(one.text for one in prints)) == (
        "first",
        "first\nsecond\n",
    )
    assert {(one.call_id, one.name, one.step) for one in prints} == {
        (answer.call_id, "tell", answer.step)
    }


async def test_a_secret_that_is_printed_in_two_pieces_is_masked(at_desk: OpenDesk) -> None:
    prints, answer = await heard(at_desk, HALVES, "KEY")
    assert len(prints) > 1
    assert (
        "".join(one.text for one in prints)
        == f"begun\nat {MARK} and\nwent on\n"
        == answer.detail["output"]
    )


async def test_half_a_secret_at_the_end_of_what_is_printed_is_masked(at_desk: OpenDesk) -> None:
    prints, answer = await heard(
        at_desk, 'print("x", self.secret("KEY")[:9], end="")\nreturn 1', "KEY"
    )
    assert KEY[:4] not in "".join(one.text for one in prints)
    assert "".join(one.text for one in prints) == answer.detail["output"]


async def test_a_flood_is_told_in_few_pieces_and_up_to_the_limit(at_desk: OpenDesk) -> None:
    prints, answer = await heard(
        at_desk, 'for number in range(20_000):\n    print(number)\nreturn "done"'
    )
    whole = "".join(one.text for one in prints)
    assert len(prints) <= 20 * answer.seconds + 2
    assert len(whole) == 64 << 10
    assert answer.detail["output"].startswith(whole)


async def test_a_letter_that_comes_in_two_pieces_is_one(at_desk: OpenDesk) -> None:
    prints, _answer = await heard(at_desk, BYTES)
    assert len(prints) > 1
    assert "".join(one.text for one in prints) == "é漢\n\ufffd\n"


async def test_prints_of_what_a_function_calls_are_not_its_own(at_desk: OpenDesk) -> None:
    desk = await at_desk(SCRIPT)
    await put(desk.workspace, "inner", 'print("inner")\nreturn 1')
    await put(desk.workspace, "tell", CALLS)
    assert [one.text for one in of(Printed, await desk.say("tell me"))] == ["outer\n"]
