"""What a model and a human read of needs and grants, and how often a human is asked in a turn."""

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from weakref import ref

import pytest

from agent_core.access.grants import (
    ApprovalQueue,
    Approvals,
    Approver,
    Decision,
    Grants,
    Question,
    TaskReach,
)
from agent_core.access.grants.approval import denial
from agent_core.base import events
from agent_core.base.policy import DEFAULT, Policy
from agent_core.base.receipt import Fact
from agent_core.context import presentation
from tests.functions.support import Room

from .support import AGENT, Human, human


def with_settings(here: Room, **settings: str) -> None:
    granting = here.shop.granting
    granting._settings = granting._settings.model_copy(update=settings)
    granting.queue.policy = Policy(asks=granting._settings.ask != "never")


@pytest.mark.parametrize(
    ("settings", "is_attended", "says"),
    [
        pytest.param(
            {},
            True,
            "if the task needs it, the user is asked before it joins",
            id="a human is there",
        ),
        pytest.param(
            {},
            False,
            "Fix: take the text as a parameter instead of fetching it",
            id="nobody is there",
        ),
        pytest.param(
            {"ask": "never"}, True, "Fix: take the text as a parameter", id="nobody is ever asked"
        ),
        pytest.param(
            {"unattended": "file"},
            False,
            "and grant it: knapper functions grant NAME",
            id="the file decides",
        ),
    ],
)
async def test_a_need_is_fixed_by_asking_where_somebody_can_be_asked(
    here: Room, code: str, settings: dict[str, str], is_attended: bool, says: str
) -> None:
    with_settings(here, **settings)
    here.shop.granting.approver = human("no") if is_attended else None
    wrong = code.replace("-> str", "-> int").replace("city: The", "town: The")
    assert says in (await here.shop.plan_create("weather", wrong, "sky", "", AGENT)).text


async def test_what_was_granted_is_shown_instead_of_what_was_lacking(
    here: Room, code: str, host: str
) -> None:
    await here.save(code, here.root / "functions" / "sky.py")
    before = await here.shop.introspect("weather")
    await here.shop.grants.grant("weather", Grants(network=("other.example.org",)))
    another = await here.shop.introspect("weather")
    await here.shop.grants.revoke("weather", None)
    await here.shop.grants.grant("weather", Grants(network=(host,)))
    after = await here.shop.introspect("weather")
    lacking = [
        [one.code for one in found.verdict.problems].count("needs-network")
        for found in (before, another, after)
        if found.verdict
    ]
    assert (lacking, after.grants) == ([1, 1, 0], Grants(network=(host,)))
    assert f"A human lets it: fetch from {host}." in presentation.introspection(
        after, after.function.parameters
    )
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


async def test_a_question_names_the_function_that_calls_and_the_moment(
    here: Room, code: str, host: str
) -> None:
    await here.save(GETS, here.root / "functions" / "web.py")
    asked = here.shop.granting.approver = human("yes")
    assert (await here.shop.call("relay", {"url": f"http://{host}/Oslo"})).value == "rain in Oslo"
    assert [(one.function, one.moment, one.caller) for one in asked.asked] == [
        ("get", "run", "relay")
    ]
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


async def test_a_yes_is_shared_by_those_that_waited_whoever_called_them_and_one_for_a_single_call_is_not() -> (
    None
):
    desk = Approvals(ApprovalQueue(slow(human("yes", "no"))))
    questions = [
        Question("f", Grants(network=("a.b",)), caller=caller) for caller in ("", "g", "h")
    ]
    assert await ask(desk, *questions) == ["yes", "yes", "yes"]
    assert await ask(desk, questions[0]) == ["no"]
    assert await ask(Approvals(ApprovalQueue(slow(human("once", "no")))), *questions) == [
        "once",
        "no",
        "no",
    ]


@dataclass
class Turn:
    """The events and callbacks of a turn."""

    id: str = "turn"
    step: int = 0
    agent: str = "main"
    on_behalf_of: str = ""
    heard: list[events.Event] = field(default_factory=list)
    policy: Policy = DEFAULT
    task: TaskReach = field(default_factory=TaskReach)

    def note_done(self, fact: Fact, name: str) -> None:
        """Ignore the fact: these tests examine the questions."""

    def ask_nobody(self) -> None:
        """Do nothing: these tests do not wait for a question."""

    async def show(self, event: events.StoredEvent, /) -> None:
        """Keep the event."""
        self.heard.append(event)


async def noes(questions: Sequence[Question], *answers: str) -> tuple[int, list[Decision]]:
    """Return how many of these questions were asked in one turn, and the decisions."""
    who = human(*(answers or ("no",)))
    desk = Approvals(ApprovalQueue(who), Turn())
    found = [await desk.ask(one) for one in questions]
    return len(who.asked), found


SPELLINGS = {
    "ports": [
        Question("f", Grants(network=(f"api.example.org:{port}",))) for port in range(8_000, 8_051)
    ],
    "hosts": [Question("f", Grants(network=(f"h{number}.example.org",))) for number in range(50)],
    "paths": [Question("f", Grants(read=(f"data{number}/",))) for number in range(50)],
    "versions": [
        Question("f", Grants(secrets=(f"S{number}",)), version=str(number)) for number in range(50)
    ],
    "joining": [Question("f", version=str(number)) for number in range(50)],
    "limits": [Question("f", Grants(seconds=number)) for number in range(1, 50)],
}


@pytest.mark.parametrize("questions", SPELLINGS.values(), ids=SPELLINGS)
async def test_after_three_noes_to_one_function_and_kind_it_is_no_for_the_turn(
    questions: list[Question],
) -> None:
    asked, answers = await noes(questions)
    assert asked <= 3
    assert {one.answer for one in answers} == {"no"}
    assert {one.by for one in answers[3:]} <= {"often", "earlier"}


async def test_other_functions_and_kinds_do_not_go_round_it() -> None:
    mixed = [
        *(
            Question(f"f{number}", Grants(network=(f"h{number}.example.org",)))
            for number in range(50)
        ),
        *(
            Question(f"g{number}", Grants(read=(f"d{number}/",)), version=str(number))
            for number in range(50)
        ),
    ]
    asked, answers = await noes(mixed, "no: not this")
    assert asked == 6
    assert {one.by for one in answers[6:]} == {"often"}


async def test_neither_a_yes_between_noes_nor_another_kind_begins_the_count_anew_and_another_turn_does() -> (
    None
):
    hosts = [Question("f", Grants(network=(f"h{number}.example.org",))) for number in range(20)]
    asked, _ = await noes(hosts, "no", "yes", "no", "once", "no", "yes")
    assert asked == 5
    asked, answers = await noes([*hosts[:3], Question("f", Grants(read=("data/",)))])
    assert (asked, answers[-1].by) == (4, "human")
    assert (await noes(hosts[:3]))[0] == 3


async def test_the_model_and_the_human_are_told_that_nobody_is_asked_any_more() -> None:
    turn = Turn()
    desk = Approvals(ApprovalQueue(human("no")), turn)
    questions = [Question("f", Grants(network=(f"h{number}.example.org",))) for number in range(4)]
    decision = [await desk.ask(one) for one in questions][-1]
    last = turn.heard[-1]
    assert isinstance(last, events.GrantAnswered)
    assert (last.by, last.says) == ("often", ("fetch from h3.example.org",))
    told = denial(questions[-1], decision)
    assert "has said no several times in this turn" in told
    assert "not asked again before the next" in told
