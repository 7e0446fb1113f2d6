"""What names a function that was refused in the same turn waits for it: one line, and no repetition."""

import json

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.contract import said
from tests.kit.desk import VOWELS, answers, ended

WRONG = VOWELS.replace("    5\n", "    6\n")
TWICE = '''\
def twice(text: str) -> int:
    """Count the vowels of a text that is said twice.

    Args:
        text: The text.

    >>> twice("queueing")
    10
    >>> twice("rhythm")
    0
    """
    return 2 * count_vowels(text)
'''
USES = Wanted("create_function", {"function_name": "twice", "function_code_with_docstring": TWICE})
PROGRAM = Wanted("run_program", {"code": "[twice('aha'), count_vowels('aha')]"})


def made(code: str) -> Wanted:
    return Wanted(
        "create_function", {"function_name": "count_vowels", "function_code_with_docstring": code}
    )


WAITS = said("a reply: a function waits for one that is refused")
# Followed by the names of what it waits for, which are more in a second attempt.
NOT_RUN = said("a reply: a program waits for one that is refused").partition("`")[0]


async def test_what_depends_on_a_refused_function_says_so_in_a_line_and_can_be_sent_again(
    at_desk: OpenDesk,
) -> None:
    attempts = [
        made(WRONG),
        made(WRONG.replace("Count the", "Tell the")),
        made(WRONG.replace("Count", "Sum")),
    ]
    steps = [Ask(attempt, USES, PROGRAM) for attempt in attempts]
    desk = await at_desk(
        [*steps, Ask(made(VOWELS), USES, PROGRAM), Repeat(Say("Done."))],
        model__context_tokens=64_000,
    )
    events = await desk.say("Count.")
    told = answers(events)
    for at in (1, 4, 7):
        assert told[at].startswith(WAITS), told[at]
        assert len(told[at].splitlines()) <= 2
        assert told[at + 1].startswith(NOT_RUN), told[at + 1]
        assert len(told[at + 1].splitlines()) == 1
    assert told[11] == "[4, 2]"
    assert ended(events).reason == "replied"
    said = [json.dumps(message) for message in desk.model.requests[-1].messages]
    assert not any("in a row" in text or "for the same reason" in text for text in said)


async def test_a_program_that_only_waits_is_a_repetition_as_ever(at_desk: OpenDesk) -> None:
    desk = await at_desk([Ask(made(WRONG)), Repeat(Ask(PROGRAM))], model__context_tokens=64_000)
    assert ended(await desk.say("Count.")).reason == "repeated"


@pytest.mark.parametrize(
    ("uses", "also"),
    [
        pytest.param("open('data/rules.txt').read()", False, id="a-file"),
        pytest.param("self.fetch('http://one.example.org/').text()", False, id="a-host"),
        pytest.param("self.secret('KEY')", False, id="a-secret"),
        pytest.param("eval('[1]')", True, id="what-no-grant-answers"),
    ],
)
async def test_what_a_grant_answers_is_not_in_the_way_of_a_function_that_waits(
    at_desk: OpenDesk, uses: str, also: bool
) -> None:
    code = TWICE.replace("(text: str)", "(self, text: str)" if "self" in uses else "(text: str)")
    code = code.replace("    return 2", f"    rules = {uses}\n    return len(rules) * 0 + 2")
    asks = Wanted(
        "create_function", {"function_name": "twice", "function_code_with_docstring": code}
    )
    desk = await at_desk([Ask(made(WRONG), asks), Repeat(Say("Done."))])
    told = answers(await desk.say("Count."))[1]
    assert told.startswith(WAITS)
    assert (len(told.splitlines()) > 1) == also, told
