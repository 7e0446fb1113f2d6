"""While a human is asked, the clock of a call is paused, and so are those of the enclosing calls."""

import asyncio
from typing import Any

import pytest

from sandbox import FunctionCall, Job, Limits, Patient, RequestRefused, Returned, Sandbox, TimedOut
from sandbox.wire.requests import PausableClock, standing_still
from tests.kit.levels import IS_PORTABLE
from tests.sandbox.support import modules

ASKING = modules(
    asking="""
    def ask(self) -> object:
        return self.call("human")

    def relay(self) -> object:
        return self.call("ask")

    def swallow(self) -> str:
        try:
            return self.call("human")
        except PermissionError as error:
            return str(error)
    """
)
SHORT = Limits(
    wall_s=2.0 if IS_PORTABLE else 0.5
)  # a second child may have to be started, which takes time there
THOUGHT_S = 3 * SHORT.wall_s


class Human:
    """Answers after a while, or says no; a call of any other function runs `ask`, which asks in turn."""

    def __init__(self, sandbox: Sandbox, *, patient: bool = True, word: str = "yes") -> None:
        self._sandbox = sandbox
        self._patient = patient
        self._word = word

    async def __call__(self, _name: str, arguments: dict[str, Any], /) -> Any:
        if arguments["function"] == "human":
            return Patient(self._think()) if self._patient else await self._think()
        outcome = await self._sandbox.run(
            Job(ASKING, "asking", FunctionCall("ask", {}), limits=SHORT, handler=self)
        )
        return outcome.value if isinstance(outcome, Returned) else repr(outcome)

    async def _think(self) -> str:
        await asyncio.sleep(THOUGHT_S)
        if self._word == "no":
            raise RequestRefused("a human said no")
        return self._word


async def test_the_time_that_a_human_takes_is_no_calls_also_not_of_one_around_it(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(
        Job(ASKING, "asking", FunctionCall("relay", {}), limits=SHORT, handler=Human(sandbox))
    )
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == "yes"
    assert outcome.seconds < THOUGHT_S


async def test_a_human_who_says_no_is_a_permission_error_and_what_takes_long_without_one_is_stopped(
    sandbox: Sandbox,
) -> None:
    alone = Human(sandbox, patient=False)
    outcome = await sandbox.run(
        Job(ASKING, "asking", FunctionCall("ask", {}), limits=SHORT, handler=alone)
    )
    assert isinstance(outcome, TimedOut), outcome
    handler = Human(sandbox, word="no")
    outcome = await sandbox.run(
        Job(ASKING, "asking", FunctionCall("swallow", {}), limits=SHORT, handler=handler)
    )
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == "a human said no"


async def test_a_clock_goes_on_with_the_time_that_was_left() -> None:
    clock = PausableClock(0.2)

    async def wait() -> None:
        async with clock:
            with standing_still(), standing_still():
                await asyncio.sleep(0.4)
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        await wait()
    assert clock.expired
    assert clock.stood >= 0.3


async def test_a_clock_that_is_over_can_still_be_let_go() -> None:
    async def outlive() -> None:
        with standing_still():
            await asyncio.sleep(0.1)

    async with PausableClock(5):
        task = asyncio.ensure_future(outlive())
        await asyncio.sleep(0)
    await task
