"""Which models are offered programs: by their mode of calls, or by the settings of each model."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.context.folds import HEARTBEAT
from tests.conftest import OpenDesk
from tests.interfaces.support import flags
from tests.kit import Ask, Repeat, Say, Step, Wanted, scripted
from tests.kit.desk import Desk, answers
from tests.kit.program import knapper

from .support import lay_out

CODE = "sum(each(count_vowels, ['aha', 'queue']))"
CALL = {"name": "run_program", "arguments": {"code": CODE}}
NATIVE, SMALL = "native", "constrained"


def asks(mode: str, style: str) -> Step:
    """Return a reply that runs a program in this mode."""
    if mode == SMALL:
        return Say(json.dumps({"thought": "", "call": CALL}))
    more = {HEARTBEAT: True} if style == "memgpt" else {}
    return Ask(Wanted("run_program", {"code": CODE, **more}))


def offered(desk: Desk) -> bool:
    """Check whether the first request offers programs, as a function or as a choice of its schema."""
    body: dict[str, Any] = desk.model.requests[0].body
    return '"run_program"' in json.dumps({**body, "messages": []})


async def tried(at_desk: OpenDesk, mode: str, style: str, programs: str) -> tuple[Desk, list[str]]:
    """Return a desk after a turn in which the model ran a program, and the results in it."""
    end = Say('{"thought": "", "reply": "Done."}' if mode == SMALL else "Done.")
    flags = {"model__mode": mode, "model__programs": programs, "model__context_tokens": 16_384}
    desk = await at_desk([asks(mode, style), Repeat(end)], memory__preset=style, **flags)
    desk.agent.session.verify = False
    lay_out(desk.workspace.root)
    await desk.workspace.functions.reload()
    return desk, answers(await desk.say("Go."))


@pytest.mark.parametrize(
    ("style", "mode", "programs", "is_offered"),
    [
        *(
            ("direct", NATIVE, "auto", True),
            ("memgpt", NATIVE, "auto", True),
            ("memgpt", NATIVE, "on", True),
        ),
        *(("direct", NATIVE, "off", False), ("memgpt", NATIVE, "off", False)),
        *(("direct", SMALL, "auto", False), ("memgpt", SMALL, "auto", False)),
        *(("direct", SMALL, "on", True), ("memgpt", SMALL, "on", True)),
    ],
)
async def test_a_model_is_offered_programs_as_its_settings_say(
    at_desk: OpenDesk, style: str, mode: str, programs: str, *, is_offered: bool
) -> None:
    desk, told = await tried(at_desk, mode, style, programs)
    assert offered(desk) == is_offered
    assert (
        is_offered == ("in a program or by call_function" in desk.model.requests[0].text)
        or mode == SMALL
    )
    if is_offered:
        assert told[0].splitlines()[0] == "6"
    elif programs == "off":
        assert "There is no function `run_program`" in told[0]


async def test_another_model_has_what_its_own_table_says(at_desk: OpenDesk) -> None:
    models = {"small": {"name": "scripted", "programs": "off"}}
    desk = await at_desk([Repeat(Say("Done."))], models=models)
    await desk.say("Go.")
    await desk.agent.model_session.change("small")
    await desk.say("Go.")
    shown = [
        [tool["function"]["name"] for tool in request.body["tools"]]
        for request in desk.model.requests
    ]
    assert [set(names) - set(shown[1]) for names in shown] == [{"run_program"}, set()]


@pytest.mark.parametrize(
    ("words", "given"), [(("--message", "Go."), ""), ((), "Go.\n")], ids=["one message", "a pipe"]
)
def test_programs_are_off_where_a_command_sends_the_message(
    tmp_path: Path, words: tuple[str, ...], given: str
) -> None:
    (tmp_path / "knapper.toml").write_text('model.programs = "off"\n')
    with scripted([Repeat(Say("Done."))]) as model:
        knapper("run", *flags(model), *words, cwd=tmp_path, given=given)
    names = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert "create_function" in names
    assert "run_program" not in names
