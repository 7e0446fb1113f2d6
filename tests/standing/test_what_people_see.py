"""Standing, statistics, quarantine and retirement in commands, the prompt, one-shot runs and meta-functions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_core.runtime.agent import Agent
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.interfaces.support import flags, prompt
from tests.kit import Ask, Say, Wanted, scripted
from tests.kit.desk import answers
from tests.kit.program import knapper
from tests.standing.support import PART, PART_OTHERWISE, failing, part, put, workplace

SHORT_WHILE = "1e-12"  # days


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return put(tmp_path)


def document(*arguments: str, cwd: Path) -> Any:  # Any: a JSON document
    return json.loads(knapper("functions", *arguments, "--json", cwd=cwd).stdout)


def test_one_shot_tells_of_a_quarantine_once_and_how_to_get_out(place: Path) -> None:
    with scripted([Ask(*failing(3)), Say("Hm."), Say("Again.")]) as model:
        first, second = (
            knapper("run", *flags(model), "--message", "go", cwd=place).stderr for _ in range(2)
        )
    assert "✗ part kept failing and is quarantined: the model no longer sees it" in first
    assert "lately: ZeroDivisionError: division by zero (3 ×)" in first
    assert "to show it to the model anyway: knapper functions release part" in first
    assert "quarantined" not in second
    assert (
        document("list", "--standing", "quarantined", cwd=place)["functions"][0]["name"] == "part"
    )


def test_the_prompt_tells_of_a_quarantine_shows_it_and_releases(tmp_path: Path) -> None:
    put(tmp_path, retire_days=SHORT_WHILE)
    with prompt([Ask(part(4, 2)), Ask(*failing(3)), Say("Hm.")], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("part kept failing and is quarantined")
        screen.wait_for("last worked: this version, ")
        screen.wait_for("to the model anyway: /release part")
        screen.wait_for("3 steps")
        screen.line("/functions")
        screen.wait_for("parts   quarantined")
        screen.wait_for("1 function not called for a long time: /functions unused")
        screen.line("/introspect part")
        screen.wait_for("/introspect part · rows 1-")
        screen.line("")
        screen.wait_for("return whole / among")
        screen.wait_count("called 4 ×: 1 returned, 3 failed", 1)
        screen.wait_count("ended otherwise: ZeroDivisionError 3 ×", 1)
        screen.line("/release part")
        screen.wait_for("✓ part is released")
        screen.line("/functions unused")
        screen.wait_for("/delete part")


def test_the_call_that_a_human_makes_counts_and_tells_too(tmp_path: Path) -> None:
    put(tmp_path, quarantine_failures="2")
    call = ("functions", "call", "part", "--args", '{"whole": 1, "among": 0}')
    said = [knapper(*call, cwd=tmp_path).stderr for _ in range(2)]
    assert ["is quarantined" in each for each in said] == [False, True]


async def test_statistics_have_all_by_version_and_by_kind(at_desk: OpenDesk) -> None:
    wanted = [part(4, 2), part(-1, 1), part(1, 0), Wanted("part", {"whole": "?"})]
    desk = await workplace(at_desk, [*map(Ask, wanted), Say("One."), Ask(part(6, 2)), Say("Two.")])
    await desk.say("Go.")
    desk.put("parts.py", PART_OTHERWISE)
    await desk.workspace.functions.reload()
    await desk.say("Again.")
    found = (await desk.workspace.functions.introspect("part")).statistics
    assert [found.totals.calls, found.totals.returned, found.totals.failed] == [4, 2, 1]
    kinds = {(kind.outcome, kind.error): kind.calls for kind in found.kinds}
    assert kinds == {("documented", "UnicodeError"): 1, ("raised", "ZeroDivisionError"): 1}
    assert [(each.present, each.totals.calls) for each in found.versions] == [(True, 1), (False, 3)]
    assert [call.outcome for call in found.recent] == [
        "returned",
        "raised",
        "documented",
        "returned",
    ]
    assert len(found.turns) == 2
    assert found.recent[1].message == "division by zero"
    assert found.totals.memory
    assert found.totals.cpu_s
    assert found.totals.median_s
    assert 1 << 20 < found.totals.memory < 1 << 30
    assert 0 < found.totals.cpu_s == pytest.approx(sum(call.cpu or 0 for call in found.recent))
    assert 0 < found.totals.median_s <= found.totals.longest_s <= found.totals.seconds


async def test_a_model_reads_of_calls_failures_and_quarantine_in_words(at_desk: OpenDesk) -> None:
    look = Wanted("introspect_function", {"function_name": "part"})
    listed = Wanted("list_functions", {"standing": "quarantined"})
    desk = await workplace(
        at_desk, [Ask(look), Ask(part(4, 2)), Ask(*failing(3)), Ask(look), Ask(listed)]
    )
    before, *_, after, quarantined = answers(await desk.say("Go."))
    assert "No calls of it are on record" in before
    assert "Called 4 times, 4 of them in this version: 1 returned, 3 failed" in after
    assert "`ZeroDivisionError` 3 ×" in after
    assert re.search(r"It computes for \d+ ms a call and has taken \d+ MiB at most\.", after)
    assert "you cannot call it: `ZeroDivisionError: division by zero (3 ×)`" in after
    assert "- part (parts, quarantined, computes only; called 4 ×, last " in quarantined


def test_what_nobody_calls_is_offered_with_the_command_and_never_removed(tmp_path: Path) -> None:
    knapper("init", ".", cwd=tmp_path)
    put(tmp_path, retire_days=SHORT_WHILE)
    listed = knapper("functions", "list", cwd=tmp_path)
    assert "1 function not called for a long time: knapper functions list --unused" in listed.stderr
    unused = knapper("functions", "list", "--unused", cwd=tmp_path).stdout
    assert unused.startswith("part  no calls on record since it was added ")
    assert unused.endswith("  knapper functions delete part\n")
    assert (tmp_path / "functions" / "parts.py").exists()


@pytest.mark.parametrize("days", [0, 1], ids=["never", "not yet"])
async def test_nothing_is_offered_for_retirement_before_its_time(
    at_desk: OpenDesk, days: float
) -> None:
    desk = await workplace(at_desk, [], standing__retire_days=days)
    assert (await desk.workspace.functions.unused()).functions == ()
    assert (await desk.workspace.functions.list()).unused == 0


async def _pin(workspace: Workspace, agent: Agent) -> None:
    await agent.session.own_set.add("part")


async def _call(workspace: Workspace, agent: Agent) -> None:
    await workspace.functions.call("part", {"whole": 1, "among": 1})


async def _use(workspace: Workspace, agent: Agent) -> None:
    (workspace.root / "functions" / "parts.py").write_text(
        PART
        + '\n\ndef half(whole: int) -> float:\n    """Halve.\n\n    Args:\n        whole: It.\n    """\n'
        "    return part(whole, 2)\n"
    )
    await workspace.functions.reload()


@pytest.mark.parametrize(
    ("do", "left"),
    [
        pytest.param(_pin, [], id="pinned"),
        pytest.param(_call, ["part"], id="a call only moves the time on"),
        pytest.param(_use, ["half"], id="used by another"),
    ],
)
async def test_what_is_pinned_or_used_by_others_is_not_offered(
    at_desk: OpenDesk, do: Any, left: list[str]
) -> None:
    desk = await workplace(at_desk, [], standing__retire_days=float(SHORT_WHILE))
    (desk.functions / "users.py").unlink()
    await desk.workspace.functions.reload()
    await do(desk.workspace, desk.agent)
    assert [each.name for each in (await desk.workspace.functions.unused()).functions] == left
