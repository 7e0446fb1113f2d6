"""What a yes to a program, or to one of its calls, gives: to the callers that it names, and once if it is `once`."""

from agent_core import Decision
from tests.conftest import OpenDesk
from tests.kit.sources import function_text

from .support import Person, lines, ready

STARTS = function_text(
    "start(self, text: str) -> int",
    "Write a start down.\n\nArgs:\n    text: A line.",
    'return self.call("note", text=text)',
)
HIDES = function_text(
    "other(self, text: str) -> str",
    "Do other things.\n\nArgs:\n    text: A line.",
    'call = getattr(self, "ca" + "ll")\nreturn str([call("no" + "te", text=text) for _ in range(3)])',
)


async def test_what_a_callee_may_is_for_its_callers_that_the_question_names(
    at_desk: OpenDesk,
) -> None:
    person = Person(Decision("once"))
    desk = await ready(at_desk, 'start("a")\nother("b")', person=person)
    for name, text in (("starts.py", STARTS), ("hides.py", HIDES)):
        (desk.workspace.root / "functions" / name).write_text(text)
    await desk.workspace.functions.reload()
    await desk.say("Go.")
    assert lines(desk.workspace.root) == ["a", "b", "b", "b"]
    assert [question.moment for question in person.asked] == ["program", "call", "call", "call"]
    assert "note, called by start" in person.asked[0].doubts[0]
    assert {question.caller for question in person.asked[1:]} == {"other"}


async def test_once_is_once_within_a_call_of_a_program(at_desk: OpenDesk) -> None:
    person = Person(Decision("once"))
    desk = await ready(at_desk, 'other("b")', person=person)
    (desk.workspace.root / "functions" / "hides.py").write_text(HIDES)
    await desk.workspace.functions.reload()
    await desk.say("Go.")
    assert lines(desk.workspace.root) == ["b", "b", "b"]
    assert len({question.id for question in person.asked}) == len(person.asked) == 3
