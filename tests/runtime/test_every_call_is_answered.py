"""Every call of a reply gets exactly one result, whatever happens to it, and no request is ever rejected."""

import pytest

from agent_core.base.events import Warned
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Repeat, Say, Wanted, contains
from tests.kit.desk import another, answers, ended, of, outcomes

BAD = "def broken(x):\n    pass\n"
PROBE = '''\
def probe(n: int = 0) -> int:
    """Do what the test is about.

    Args:
        n: A number.

    >>> probe.__name__
    'probe'
    """
    {body}
'''


def create(name: str, code: str) -> Wanted:
    return Wanted("create_function", {"function_name": name, "function_code_with_docstring": code})


async def test_creations_refusals_and_unknown_names_are_all_answered_again_and_again(
    at_desk: OpenDesk,
) -> None:
    rounds = 3
    script = []
    for number in range(rounds):
        name = f"count_marked{number}"
        calls = (
            create(name, another(name)),
            create("broken", BAD),
            Wanted("no_such", {"n": number}),
        )
        script += [Ask(*calls), Say("Some of it was made."), Say("Indeed.")]
    desk = await at_desk(script)
    for number in range(rounds):
        events = await desk.say(f"Round {number}")
        assert outcomes(events) == ["returned", "refused", "refused"]
        assert desk.model.requests[3 * number + 1].answers == answers(events)
    assert desk.model.refusals == []


ENDINGS = {
    "return 1 // n": "ZeroDivisionError",
    "import os; os._exit(3)": "without an answer",
    "return [n] * (3 << 20)": "ReturnTypeError",
    "print('seen'); return n": "seen",
    "breakpoint(); return n": "hit 1: n = 0",
}


@pytest.mark.parametrize(
    ("bodies", "wall_s"), [({"while True: pass": "Stopped after 1 s"}, 1), (ENDINGS, 10)]
)
async def test_a_call_that_ends_badly_says_why(
    at_desk: OpenDesk, bodies: dict[str, str], wall_s: int
) -> None:
    names = [f"probe_{number}" for number in range(len(bodies))]
    desk = await at_desk(
        [*(Ask(Wanted(name, {"n": 0})) for name in names), Say("So it is.")], sandbox__wall_s=wall_s
    )
    for name, body in zip(names, bodies, strict=True):
        desk.put(f"{name}.py", PROBE.format(body=body).replace("probe", name))
    await desk.workspace.functions.reload()
    told = answers(await desk.say("Try them."))
    for body, answer in zip(bodies, told, strict=True):
        assert bodies[body] in answer, body


async def test_keys_that_are_no_text_read_as_json_writes_them(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(Wanted("probe", {"n": 7})), Say("So it is.")])
    probe = PROBE.replace("-> int", "-> dict[int, str]").format(
        body='return {n: "seven", -1: "less"}'
    )
    await desk.save("probe.py", probe)
    (told,) = answers(await desk.say("Try it."))
    assert '{"7": "seven", "-1": "less"}' in told


async def test_arguments_are_fixed_where_plain_and_explained_where_not(at_desk: OpenDesk) -> None:
    rows = [
        ("not json", "", "do not fit"),
        ('{"n": "three"}', "", "expected"),
        ('{"m": 3}', "", "m"),
        ('```json\n{"n": "3",}\n```', "3", "3"),
        ('{"N": 3}', "3", "`N` was read as `n`"),
        ('{"arguments": {"n": 3}}', "3", "taken out of `arguments`"),
        ('Sure, here it is: {"n": 3}', "3", "text around the JSON"),
    ]
    desk = await at_desk(
        [*(Ask(Wanted("probe", arguments)) for arguments, _, _ in rows), Say("So it is.")]
    )
    await desk.save("probe.py", PROBE.format(body="return n"))
    told = answers(await desk.say("Try it."))
    for (arguments, value, says), answer in zip(rows, told, strict=True):
        assert answer.startswith(value), arguments
        assert says in answer, arguments


async def test_forty_calls_at_once_are_all_answered_in_their_order(at_desk: OpenDesk) -> None:
    calls = [Wanted("probe", {"n": number}) for number in range(45)]
    desk = await at_desk([Ask(*calls), Say("Done.")])
    await desk.save("probe.py", PROBE.format(body="return n"))
    await desk.say("All of them.")
    read = desk.model.requests[-1].answers
    assert read[:40] == [str(number) for number in range(40)]
    assert all("one reply may ask for 40 calls" in text for text in read[40:])


async def test_the_same_failing_call_three_times_in_a_row_ends_the_turn_with_advice(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Repeat(Ask(Wanted("no_such")), times=3)])
    events = await desk.say("Go.")
    assert ended(events).reason == "repeated"
    assert "3 times in a row" in of(Warned, events)[-1].message


OUTER = '''\
def outer(self, n: int) -> list[object]:
    """Call a neighbour, and try to call what is none.

    Args:
        n: A number.
    """
    try:
        return [self.call("probe", n=n), self.call("delete_function", function_name="probe")]
    except LookupError as refused:
        return [self.call("probe", n=n), str(refused)]
'''


async def test_a_function_may_call_another_and_never_a_meta_function(at_desk: OpenDesk) -> None:
    desk = await at_desk(
        [Ask(Wanted("outer", {"n": 4})), Expect(Say("Yes."), contains("may call"))]
    )
    desk.put("probe.py", PROBE.format(body="return n"))
    await desk.save("outer.py", OUTER)
    (answer,) = answers(await desk.say("Go."))
    assert answer.startswith("[4, ")
    assert "probe" in desk.workspace.functions.names()


async def test_odd_replies_of_the_model_have_a_defined_course(at_desk: OpenDesk) -> None:
    courses: list[tuple[list[Say], str]] = [
        ([Say(""), Say("Here.")], "replied"),
        ([Say("Half of", finish="length"), Say("a thing.")], "replied"),
        ([Say("x" * 200_000)], "replied"),
    ]
    desk = await at_desk([step for script, _ in courses for step in script])
    for script, reason in courses:
        assert ended(await desk.say("Hello")).reason == reason, script
