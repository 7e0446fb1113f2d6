"""One question for one program: for this text, these functions and what they reach, and for a number of calls."""

from agent_core import Decision
from agent_core.interfaces.render.grant_question import grant_lines
from agent_core.interfaces.spans import plain
from tests.conftest import OpenDesk

from .support import Person, lines, ran


async def test_a_program_is_asked_for_once_before_it_runs(at_desk: OpenDesk) -> None:
    person = Person()
    _, desk = await ran(at_desk, "[note(text) for text in ('a', 'b', 'c')]", person=person)
    (question,) = person.asked
    assert "run_program asks, for the functions that it calls, to" in plain(grant_lines(question))
    assert question.doubts == ("note, in up to 100 calls: read out/notes.txt; read and write out/notes.txt",)
    assert lines(desk.workspace.root) == ["a", "b", "c"]


async def test_a_yes_to_one_text_does_nothing_for_another(at_desk: OpenDesk) -> None:
    person = Person()
    await ran(at_desk, "note('a')", "note('b')", person=person)
    assert [question.lines for question in person.asked] == [((1, "note('a')"),), ((1, "note('b')"),)]


async def test_a_no_lets_nothing_run(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(at_desk, "count_vowels('a')\nnote('a')", person=Person(Decision("no")))
    assert "The user was asked and said no." in told
    assert lines(desk.workspace.root) == []
    assert await desk.workspace.store.history(desk.agent.name, kinds=("inner_call",)) == []


async def test_where_nobody_can_be_asked_each_call_says_so(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(at_desk, "note('a')")
    assert "knapper functions grant note --write out/notes.txt" in told
    assert lines(desk.workspace.root) == []
