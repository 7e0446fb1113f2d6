"""A turn cannot ask question after question of a human who says no."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from agent_core.access.grants import ApprovalQueue, Approvals, Decision, Grants, Question
from agent_core.access.grants.approval import denial
from agent_core.base import events
from agent_core.base.receipt import Fact

from .support import human

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Turn:
    """The events and callbacks of a turn."""

    id: str = "turn"
    step: int = 0
    agent: str = "main"
    works_for: str = ""
    heard: list[events.Event] = field(default_factory=list)

    def note_done(self, fact: Fact, name: str) -> None:
        """Ignore the fact: these tests examine the questions."""

    def ask_nobody(self) -> None:
        """Do nothing: these tests do not wait for a question."""

    @property
    def emit(self) -> Callable[[events.Event], None]:
        return self.heard.append


async def noes(questions: Sequence[Question], *answers: str) -> tuple[int, list[Decision]]:
    """Return how many of these questions were asked in one turn, and the decisions."""
    who = human(*(answers or ("no",)))
    desk = Approvals(ApprovalQueue(who), Turn())
    found = [await desk.ask(one) for one in questions]
    return len(who.asked), found


SPELLINGS = {
    "ports": [Question("f", Grants(network=(f"api.example.org:{port}",))) for port in range(8_000, 8_051)],
    "hosts": [Question("f", Grants(network=(f"h{number}.example.org",))) for number in range(50)],
    "paths": [Question("f", Grants(read=(f"data{number}/",))) for number in range(50)],
    "versions": [Question("f", Grants(secrets=(f"S{number}",)), version=str(number)) for number in range(50)],
    "joining": [Question("f", version=str(number)) for number in range(50)],
    "limits": [Question("f", Grants(seconds=number)) for number in range(1, 50)],
}


@pytest.mark.parametrize("questions", SPELLINGS.values(), ids=SPELLINGS)
async def test_after_three_noes_to_one_function_and_kind_it_is_no_for_the_turn(questions: list[Question]) -> None:
    asked, answers = await noes(questions)
    assert asked <= 3
    assert {one.answer for one in answers} == {"no"}
    assert {one.by for one in answers[3:]} <= {"often", "earlier"}


async def test_other_functions_and_kinds_do_not_go_round_it() -> None:
    mixed = [
        *(Question(f"f{number}", Grants(network=(f"h{number}.example.org",))) for number in range(50)),
        *(Question(f"g{number}", Grants(read=(f"d{number}/",)), version=str(number)) for number in range(50)),
    ]
    asked, answers = await noes(mixed, "no: not this")
    assert asked == 6
    assert {one.by for one in answers[6:]} == {"often"}


async def test_neither_a_yes_between_noes_nor_another_kind_begins_the_count_anew_and_another_turn_does() -> None:
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
