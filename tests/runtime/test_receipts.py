"""A turn ends with the program's own record of its actions, whatever its reply says: the same in every interface."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import Sandbox
from tests.interfaces.support import flags
from tests.kit import Say, ScriptedModel, Stall, scripted
from tests.kit.desk import VOWELS, desk, ended
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_D, terminal

from .receipt_work import (
    ASKED,
    GROWN,
    NOTHING,
    REFUSED,
    a_site,
    conversation,
    growing,
    kill,
    killed,
    prepared,
    prepared_place,
    reported,
    reporting,
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """A site that `report` in this workspace may reach."""
    with prepared_place(tmp_path) as place:
        yield place


def end_of(done: Any) -> dict[str, Any]:  # Any: a process that has ended; JSON
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert last["type"] == "turn_ended", done.stderr
    return last


def turn(root: Path, model: ScriptedModel, *arguments: str) -> dict[str, Any]:  # Any: JSON
    """Return the end of one turn of `knapper run --json`."""
    return end_of(
        knapper("run", "--json", *flags(model), *(arguments or ("--message", "Go.")), cwd=root)
    )


def test_the_prompt_has_the_receipt_of_each_turn_in_its_last_line(
    place: str, tmp_path: Path
) -> None:
    script = conversation(place)
    with (
        scripted(script) as model,
        terminal("run", *flags(model), cwd=tmp_path, columns=200, rows=50) as screen,
    ):
        screen.wait_for("sandbox")
        for number, asks in enumerate((False, False, True, True), 1):
            screen.line("Go.")
            if asks:
                screen.wait_count("asks to", number - 2)
                screen.answer("n")
            screen.wait(lambda: len(last_lines(screen.scrolled())) == number, "the end of the turn")  # noqa: B023
        nothing, grown, did, helped = last_lines(screen.scrolled())
        screen.type(CTRL_D)
    assert nothing.endswith(f" · {NOTHING}")
    assert grown.startswith("∙ created vowels_of, vowels_in · 2 steps, ")
    beyond = f"∙ wrote out/report.txt · reached {place} ×2 · was refused {REFUSED} · asked you: {ASKED} · "
    assert did.startswith(beyond)
    assert did.endswith(" · called report")
    assert helped.startswith(beyond)


def last_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.startswith("∙ ")]


@pytest.mark.slow
def test_a_turn_that_was_killed_keeps_its_receipt_and_the_turn_that_goes_on_has_it(
    place: str, tmp_path: Path
) -> None:
    killed(tmp_path, [reporting(place), Stall(60)])
    with scripted([growing(), Say("Two.")]) as model:
        done = knapper("run", "--json", "--resume", *flags(model), cwd=tmp_path)
    did = f"wrote out/report.txt; reached {place} ×2; was refused {REFUSED}; asked: {ASKED}; called report"
    assert f"Until then: {did}." in " ".join(done.stderr.split())
    assert end_of(done)["made"] == {**GROWN, **reported(place), "asked": [ASKED]}
    assert (
        f"reached {place} ×2; was refused {REFUSED}" in knapper("log", "--all", cwd=tmp_path).stdout
    )


@pytest.mark.slow
def test_a_call_that_was_killed_is_in_it_with_what_it_was_about_to_reach(tmp_path: Path) -> None:
    with a_site(is_silent=True) as place:
        prepared(tmp_path, place)
        with (
            scripted([reporting(place)]) as model,
            terminal("run", *flags(model), cwd=tmp_path) as screen,
        ):
            screen.wait_for("sandbox")
            screen.line("Go.")
            screen.wait(lambda: place.heard > 0, "the request of the call")
            kill(screen)
    with scripted([Say("I know nothing.")]) as model:
        done = knapper("run", "--json", "--resume", *flags(model), cwd=tmp_path)
    end = end_of(done)
    assert end["made"] == {"reached": {place: 1}, "called": {"report": 1}, "unknown": {"report": 1}}
    assert end["receipt"] == f"reached {place}; called report; report cut off, with unknown effect"


DOUBLE = 'def double(x: int) -> int:\n    """Double a number."""\n    return 2 * x\n'
TWO = (
    f"```python\n{DOUBLE}```\nand\n```py\nasync def triple(x: int) -> int:\n    return 3 * x\n```\n"
)
LISTED = (
    "1. It is saved:\n\n   ```python\n"
    + "".join(f"   {row}\n" for row in DOUBLE.splitlines())
    + "   ```\n"
)


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        (f"I have created it:\n\n```python\n{DOUBLE}```\nIt is saved as `double`.", ["double"]),
        (f"~~~\n{DOUBLE}~~~", ["double"]),
        (f"````\n{DOUBLE}````\nDone.", ["double"]),
        (f"```python\n{DOUBLE}", ["double"]),
        (TWO, ["double", "triple"]),
        (LISTED, ["double"]),
        ("I have created `double`.", []),  # what a sentence claims, nobody reads
        (f"It is there:\n```python\n{VOWELS}```\n", []),
        ("```sh\ndef double\n```\nor\n```python\nprint(2)\n```", []),
        ("```python\ndef _helper():\n    return 2\n```", []),
    ],
)
async def test_a_function_that_a_reply_only_writes_out_is_named_as_not_made(
    reply: str, names: list[str], tmp_path: Path, one_sandbox: Sandbox
) -> None:
    with scripted([Say(reply), Say("Hi.")]) as model:
        async with desk(tmp_path, model, one_sandbox) as at:
            await at.save("vowels.py", VOWELS)
            first = ended(await at.say("Make it."))
            second = ended(await at.say("And now?"))
    assert first.made.get("unmade", []) == names
    assert f"did not make {', '.join(names)}" in first.receipt or not names
    assert "unmade" not in second.made
    advice = f"{' and '.join(f'`{name}`' for name in names)}, which was not made: only create_function makes a function"
    assert (advice in model.requests[1].text) is bool(names)


async def test_agents_that_may_make_none_are_told_nothing_of_functions_not_made(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    with scripted([Say(f"```python\n{DOUBLE}```")]) as model:
        async with desk(tmp_path, model, one_sandbox, growth__mode="off") as at:
            assert "unmade" not in ended(await at.say("Show me.")).made
