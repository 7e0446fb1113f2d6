"""An error names the one that it was raised from or while handling, to scripts, the model and the human."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.views.verdicts import failed_lines
from agent_core.workspace.workspace import Workspace
from sandbox.outcome import Raised
from sandbox.processes.sessions import judge
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers
from tests.kit.levels import lend
from tests.kit.sources import function_text
from tests.secrets.support import KEY, MARK, put

CHAINED = "\n\n".join(
    [
        function_text(
            "look_up(item: str) -> int",
            "Look an item up.",
            'table = {"a": 1}\nreturn table[item]',
        ),
        function_text(
            "direct(item: str) -> int",
            "Raise from another error.",
            "try:\n    return look_up(item)\nexcept KeyError as error:\n    "
            'raise ValueError(f"no item {item}") from error',
        ),
        function_text(
            "handling(item: str) -> int",
            "Raise while handling another error.",
            "try:\n    return look_up(item)\nexcept KeyError:\n    return int(item)",
        ),
        function_text(
            "hidden(item: str) -> int",
            "Raise, and hide what it came of.",
            'try:\n    return look_up(item)\nexcept KeyError:\n    raise ValueError("none") from None',
        ),
        function_text(
            "in_a_circle(depth: int) -> int",
            "Raise errors that are causes of each other.",
            'first, second = ValueError("first"), ValueError("second")\n'
            "first.__cause__, second.__cause__ = second, first\nraise first",
        ),
        function_text(
            "twice(item: str) -> int",
            "Raise from an error that was raised from another.",
            "try:\n    return direct(item)\nexcept ValueError as error:\n    "
            'raise RuntimeError("in the end") from error',
        ),
    ]
)


async def told(
    workspace: Workspace, tmp_path: Path, name: str, argument: object = "zz"
) -> Any:  # JSON
    (tmp_path / "functions" / "chained.py").write_text(CHAINED, "utf-8")
    await workspace.functions.reload()
    given = {"depth": 1} if name == "in_a_circle" else {"item": argument}
    return (await workspace.functions.call(name, given)).to_json()


async def test_an_error_has_the_one_that_it_was_raised_from_with_its_own_frames(
    workspace: Workspace, tmp_path: Path
) -> None:
    error = (await told(workspace, tmp_path, "direct"))["error"]
    assert (error["type"], error["message"]) == ("ValueError", "no item zz")
    cause = error["cause"]
    assert (cause["type"], cause["message"], cause["was_handled"], cause["cause"]) == (
        "KeyError",
        "'zz'",
        False,
        None,
    )
    assert [(one["function"], one["source"].strip()) for one in cause["frames"]] == [
        ("direct", "return look_up(item)"),
        ("look_up", "return table[item]"),
    ]
    assert cause["frames"][0]["locals"] == {}  # they belong to the error's own frame
    assert cause["frames"][1]["locals"] == {"item": "'zz'", "table": "{'a': 1}"}


async def test_what_an_error_came_of_is_told_a_few_levels_deep(
    workspace: Workspace, tmp_path: Path
) -> None:
    expected: dict[str, list[tuple[str, bool]]] = {
        "handling": [("KeyError", True)],
        "hidden": [],
        "twice": [("ValueError", False), ("KeyError", False)],
        "in_a_circle": [("ValueError", False)] * 3,
        "look_up": [],
    }
    for name, causes in expected.items():
        error, found = (await told(workspace, tmp_path, name))["error"], []
        while error := error["cause"]:
            found.append((error["type"], error["was_handled"]))
        assert found == causes, name


async def test_the_model_and_the_human_read_where_the_first_error_was_raised(
    at_desk: OpenDesk,
) -> None:
    calls = [Wanted(name, {"item": "zz"}) for name in ("direct", "handling")]
    desk = await at_desk([Ask(calls[0]), Ask(calls[1]), Say("Seen.")])
    desk.put("chained.py", CHAINED)
    await desk.workspace.functions.reload()
    direct, handling = answers(await desk.say("Call them."))
    assert "It was raised from `KeyError`: `'zz'`\n" in direct
    assert "functions/chained.py:4 in look_up: `return table[item]`" in direct
    assert "It was raised while handling `KeyError`: `'zz'`\n" in handling
    outcome = await desk.workspace.functions.call("handling", {"item": "zz"})
    shown = ["".join(text for _, text in one) for one in failed_lines(outcome)]
    assert "  while handling KeyError: 'zz'" in shown
    assert any("look_up: return table[item]" in one.replace("    ", "") for one in shown)


async def test_a_secret_is_masked_in_what_an_error_came_of(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    lend(home / "data")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("KNAPPER_SECRET_KEY", KEY)
    body = """
held = self.secret("KEY")
try:
    raise KeyError(held)
except KeyError as error:
    raise ValueError("none") from error
"""
    await put(workspace, "leak", body, "KEY")
    outcome = await workspace.functions.call("leak", {})
    assert outcome.error is not None
    assert MARK in str(outcome.error.cause)
    assert KEY not in json.dumps(outcome.to_json())


def test_a_claim_of_causes_without_end_is_cut() -> None:
    reply: dict[str, object] = {"kind": "raised", "type": "E", "message": "m", "frames": []}
    for _ in range(50):
        reply = {**reply, "cause": reply}
    outcome = judge(reply, "", 0.0)
    assert isinstance(outcome, Raised)
    depth, one = 0, outcome.failure
    while one.cause is not None:
        depth, one = depth + 1, one.cause
    assert depth == 3
