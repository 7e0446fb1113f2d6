r"""A `\n` in an example of a docstring that is not raw breaks its line, and a refusal names that cause."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import answers, outcomes

COUNT = r'''
def count_rows(text: str) -> int:
    """Count the rows of a table.

    Args:
        text: The table.

    >>> count_rows({first})
    {result}
    >>> count_rows("a")
    1
    """
    return {body}
'''
BODY = "len(text.splitlines())"


async def test_where_it_cannot_be_fixed_the_cause_is_named(at_desk: OpenDesk) -> None:
    code = COUNT.format(first=r'"a\\nb\nc"', result="3", body=BODY)
    wanted = Wanted(
        "create_function", {"function_name": "count_rows", "function_code_with_docstring": code}
    )
    desk = await at_desk([Ask(wanted), Repeat(Say("Done."))])
    events = await desk.say("Count.")
    assert outcomes(events) == ["refused"]
    assert r"a `\n` in a docstring is a line break: write `\\n` in an example" in answers(events)[0]
