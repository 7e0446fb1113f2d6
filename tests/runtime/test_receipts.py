"""A turn ends with the program's own record of its actions, whatever its reply says: the same in every interface."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.support import flags
from tests.kit import Say, Script, ScriptedModel, Stall, scripted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_D, terminal

from .receipt_work import (
    ASKED,
    GROWN,
    NOTHING,
    REFUSED,
    a_site,
    by_helper,
    conversation,
    growing,
    helping,
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
    return end_of(knapper("run", "--json", *flags(model), *(arguments or ("--message", "Go.")), cwd=root))


def test_a_turn_that_did_nothing_says_so_whatever_its_reply_says(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").touch()
    with scripted([Say("I have emailed your boss.")]) as model:
        end = turn(tmp_path, model)
    assert (end["made"], end["receipt"]) == ({}, NOTHING)


@pytest.mark.parametrize("by", ["itself", "a helper"])
def test_files_and_addresses_are_in_it_and_what_was_refused(place: str, tmp_path: Path, by: str) -> None:
    script = [reporting(place)] if by == "itself" else helping(place)
    with scripted([*script, Say("Done.")]) as model:
        end = turn(tmp_path, model)
    assert end["made"] == (reported(place) if by == "itself" else by_helper(place))
    assert end["receipt"].startswith(f"wrote out/report.txt; reached {place} ×2; was refused {REFUSED}; called ")
    assert (tmp_path / "out" / "report.txt").read_text() == "hello hello refused"


def test_the_prompt_has_the_receipt_of_each_turn_in_its_last_line(place: str, tmp_path: Path) -> None:
    script = conversation(place)
    with scripted(script) as model, terminal("run", *flags(model), cwd=tmp_path, columns=200, rows=50) as screen:
        screen.wait_for("sandbox")
        for number, asks in enumerate((False, False, True, True), 1):
            screen.line("Go.")
            if asks:
                screen.wait_count("asks to", number - 2)
                screen.line("n")
            screen.wait(lambda: len(last_lines(screen.scrolled())) == number, "the end of the turn")  # noqa: B023
        nothing, grown, did, helped = last_lines(screen.scrolled())
        screen.type(CTRL_D)
    assert nothing.endswith(f" · {NOTHING}")
    assert grown.startswith("∙ created vowels_of, vowels_in · 2 steps, ")
    beyond = f"∙ wrote out/report.txt · reached {place} ×2 · was refused {REFUSED} · asked a person: {ASKED} · "
    assert did.startswith(beyond)
    assert did.endswith(" · called report")
    assert helped.startswith(beyond)


def test_a_message_that_is_sent_again_has_a_receipt_of_what_was_done_then_alone(place: str, tmp_path: Path) -> None:
    script: Script = [reporting(place), Say("Written."), growing(), Say("Two."), Say("Nothing.")]
    with scripted(script) as model, terminal("run", *flags(model), cwd=tmp_path, columns=200, rows=50) as screen:
        screen.wait_for("sandbox")
        screen.line("Go.")
        screen.wait_for("asks to")
        screen.line("n")
        for number in range(1, 4):
            screen.wait(lambda: len(last_lines(screen.scrolled())) == number, "the end of the turn")  # noqa: B023
            screen.line("/retry" if number < 3 else "")
        did, grown, nothing = last_lines(screen.scrolled())
        screen.type(CTRL_D)
    assert did.startswith("∙ wrote out/report.txt · ")
    assert grown.startswith("∙ created vowels_of, vowels_in · 2 steps, ")
    assert nothing.endswith(f" · {NOTHING}")
    log = knapper("log", "--all", cwd=tmp_path).stdout
    assert f"reached {place} ×2; was refused {REFUSED}" in log
    assert "created vowels_of, vowels_in" in log


def test_the_prompt_tells_what_a_killed_turn_did_and_sends_its_message_again(place: str, tmp_path: Path) -> None:
    killed(tmp_path, [reporting(place), Stall(60)])
    with (
        scripted([Say("Well.")]) as model,
        terminal("run", *flags(model), cwd=tmp_path, columns=200, rows=50) as screen,
    ):
        screen.wait_for(f"reached {place} ×2")
        screen.line("/retry")
        screen.wait(lambda: len(last_lines(screen.scrolled())) == 1, "the end of the turn")
        (nothing,) = last_lines(screen.scrolled())
        screen.type(CTRL_D)
    assert nothing.endswith(f" · {NOTHING}")


def last_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.startswith("∙ ")]


def test_a_turn_that_was_killed_keeps_its_receipt_and_the_turn_that_goes_on_has_it(place: str, tmp_path: Path) -> None:
    killed(tmp_path, [reporting(place), Stall(60)])
    with scripted([growing(), Say("Two.")]) as model:
        done = knapper("run", "--json", "--resume", *flags(model), cwd=tmp_path)
    did = f"wrote out/report.txt; reached {place} ×2; was refused {REFUSED}; asked a person: {ASKED}; called report"
    assert f"Until then: {did}." in " ".join(done.stderr.split())
    assert end_of(done)["made"] == {**GROWN, **reported(place), "asked": [ASKED]}


def test_a_call_that_was_killed_is_in_it_with_what_it_was_about_to_reach(tmp_path: Path) -> None:
    with a_site(is_silent=True) as place:
        prepared(tmp_path, place)
        with scripted([reporting(place)]) as model, terminal("run", *flags(model), cwd=tmp_path) as screen:
            screen.wait_for("sandbox")
            screen.line("Go.")
            screen.wait(lambda: place.heard > 0, "the request of the call")
            kill(screen)
    with scripted([Say("I know nothing.")]) as model:
        done = knapper("run", "--json", "--resume", *flags(model), cwd=tmp_path)
    end = end_of(done)
    assert end["made"] == {"reached": {place: 1}, "called": {"report": 1}, "unknown": {"report": 1}}
    assert end["receipt"] == f"reached {place}; called report; report cut off, with unknown effect"
