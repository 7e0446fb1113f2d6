"""The texts about needs and grants for a model and a human: what to do where, and the current state."""

import asyncio
import gc
from typing import ClassVar
from weakref import ref

import pytest

from agent_core.access.grants import ApprovalQueue, Approvals, Approver, Decision, Grants, Question
from agent_core.context import presentation
from tests.functions.support import Room

from .support import AGENT, Human, human

pytestmark = pytest.mark.asyncio(loop_scope="module")


def with_settings(here: Room, **settings: str) -> None:
    granting = here.shop.granting
    granting._settings = granting._settings.model_copy(update=settings)


@pytest.mark.parametrize(
    ("settings", "is_attended", "says"),
    [
        pytest.param({}, True, "if the task needs it, the user is asked before it joins", id="a human is there"),
        pytest.param({}, False, "Fix: take the text as a parameter instead of fetching it", id="nobody is there"),
        pytest.param({"ask": "never"}, True, "Fix: take the text as a parameter", id="nobody is ever asked"),
        pytest.param({"unattended": "file"}, False, "a human has to grant it", id="the file decides"),
    ],
)
async def test_a_need_is_fixed_by_asking_where_somebody_can_be_asked(
    here: Room, code: str, settings: dict[str, str], is_attended: bool, says: str
) -> None:
    with_settings(here, **settings)
    here.shop.granting.approver = human("no") if is_attended else None
    wrong = code.replace("-> str", "-> int").replace("city: The", "town: The")
    assert says in (await here.shop.plan_create("weather", wrong, "sky", "", AGENT)).text


async def test_what_was_granted_is_shown_instead_of_what_was_lacking(here: Room, code: str, host: str) -> None:
    await here.save(code, here.root / "functions" / "sky.py")
    before = await here.shop.introspect("weather")
    await here.shop.grants.grant("weather", Grants(network=(host,)))
    after = await here.shop.introspect("weather")
    lacking = [
        [one.code for one in found.verdict.problems].count("needs-network")
        for found in (before, after)
        if found.verdict
    ]
    assert (lacking, after.grants) == ([1, 0], Grants(network=(host,)))
    assert f"A human lets it: fetch from {host}." in presentation.introspection(after, after.function.parameters)
    await here.shop.grants.revoke("weather", None)
    assert (await here.shop.introspect("weather")).verdict == before.verdict


GETS = '''\
def get(self, url: str) -> str:
    """Fetch a page."""
    return self.fetch(url).text()


def relay(self, url: str) -> str:
    """Let another fetch a page."""
    return self.call("get", url=url)
'''


async def test_a_question_names_the_function_that_calls_and_the_moment(here: Room, code: str, host: str) -> None:
    await here.save(GETS, here.root / "functions" / "web.py")
    asked = here.shop.granting.approver = human("yes")
    assert (await here.shop.call("relay", {"url": f"http://{host}/Oslo"})).value == "rain in Oslo"
    assert [(one.function, one.moment, one.caller) for one in asked.asked] == [("get", "run", "relay")]
    await here.save(code, here.root / "functions" / "sky.py")
    assert (await here.shop.grants.question("weather", Grants(network=(host,)))).moment == "grant"


def slow(asked: Human) -> Approver:
    """Return an approver that yields to the event loop before it answers."""

    async def slowly(question: Question) -> Decision:
        await asyncio.sleep(0)
        return await asked(question)

    return slowly


async def ask(desk: Approvals, *questions: Question) -> list[str]:
    """Return a human's answers to questions that wait at the same time."""
    return [one.answer for one in await asyncio.gather(*(desk.ask(one) for one in questions))]


class Tracked(Question):
    """A question whose instances are known as long as they live."""

    living: ClassVar[list["ref[Tracked]"]] = []

    def __new__(cls, *given: object, **named: object) -> "Tracked":
        made = super().__new__(cls)
        cls.living.append(ref(made))
        return made


async def test_questions_that_were_answered_are_not_kept() -> None:
    asked = human("yes")
    desk = Approvals(ApprovalQueue(slow(asked)))
    await ask(desk, *(Tracked(f"kept_{number}") for number in range(20)))
    asked.asked.clear()
    gc.collect()
    assert len(Tracked.living) >= 20
    assert not [one for one in Tracked.living if one() is not None]


async def test_a_yes_is_shared_by_those_that_waited_whoever_called_them() -> None:
    desk = Approvals(ApprovalQueue(slow(human("yes", "no"))))
    questions = [Question("f", Grants(network=("a.b",)), caller=caller) for caller in ("", "g", "h")]
    assert await ask(desk, *questions) == ["yes", "yes", "yes"]
    assert await ask(desk, questions[0]) == ["no"]
