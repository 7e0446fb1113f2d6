"""A plan is committed with its record, planned again where someone else was first, or refused."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from agent_core.base.errors import KnapperError, StaleFile, StorageError, UsageError
from agent_core.storage import BlockConflict, Plan, commit

LATE = (BlockConflict("human", 1, 2), StaleFile("`a.py` was changed."))
REFUSED = "refused: "


async def committed(
    plan: Plan, error: Callable[[int], KnapperError | None]
) -> tuple[Plan, list[str]]:
    """Return the committed plan, and the texts that were recorded; try `n` fails with `error(n)`."""
    texts: list[str] = []

    async def record(plan: Plan) -> None:
        texts.append(plan.text)
        if not plan.text.startswith(REFUSED) and (raised := error(len(texts))):
            raise raised

    plan = await commit(
        plan, record, Random(1), lambda _, error: Plan(f"{REFUSED}{error.message}", "refused")
    )
    return plan, texts


def planned(number: int, done: list[int]) -> Plan:
    async def again() -> Plan:
        return planned(number + 1, done)

    return Plan(str(number), replan=again, done=lambda: done.append(number))


@pytest.mark.parametrize("late", LATE, ids=["block", "file"])
async def test_a_plan_that_is_late_is_planned_again_and_done_once(late: KnapperError) -> None:
    done: list[int] = []
    plan, texts = await committed(planned(1, done), lambda tried: late if tried < 3 else None)
    assert (plan.text, texts, done) == ("3", ["1", "2", "3"], [3])


async def test_a_plan_that_is_always_late_is_refused_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent_core.storage.subject._LONGEST_PAUSE_S", 0)
    done: list[int] = []
    plan, texts = await committed(planned(1, done), lambda _: LATE[0])
    assert (plan.outcome, len(texts), done) == ("refused", 101, [])


@pytest.mark.parametrize(
    "error", [LATE[0], UsageError("There is no agent `b`.")], ids=["late", "wrong"]
)
async def test_a_plan_that_cannot_be_planned_again_is_refused(error: KnapperError) -> None:
    plan, texts = await committed(replace(planned(1, []), replan=None), lambda _: error)
    assert (plan.outcome, texts) == ("refused", ["1", f"{REFUSED}{error.message}"])


async def test_an_error_of_the_store_passes_through() -> None:
    with pytest.raises(StorageError, match="The disk is full"):
        await committed(planned(1, []), lambda _: StorageError("The disk is full."))


async def test_a_plan_whose_replanning_fails_is_refused() -> None:
    async def again() -> Plan:
        raise StaleFile("`f` itself was changed.")

    plan, texts = await committed(replace(planned(1, []), replan=again), lambda _: LATE[0])
    assert (plan.outcome, texts) == ("refused", ["1", f"{REFUSED}`f` itself was changed."])
