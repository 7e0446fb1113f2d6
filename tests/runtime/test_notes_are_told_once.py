"""What the examples of a function leave open is told to whoever looks at it, and not with each change."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import answers

FIELDS = '''\
def read_fields(head: str, row: str) -> dict[str, str]:
    """Read the fields of a row by the names in the head of its table.

    Args:
        head: The names, with semicolons.
        row: The values, with semicolons.

    >>> read_fields("a;b", "1;2")
    {'a': '1', 'b': '2'}
    >>> read_fields("c", "3")
    {'c': '3'}
    """
    names = head.split(";")
    return dict(zip(names, row.split(";"), strict=True))
'''


async def test_what_examples_leave_open_is_told_where_a_function_is_shown(
    at_desk: OpenDesk,
) -> None:
    made = {"function_name": "read_fields", "function_code_with_docstring": FIELDS}
    change = [{"old_text": 'head.split(";")', "new_text": 'head.strip().split(";")'}]
    calls = [
        Wanted("create_function", made),
        Wanted("edit_function", {"function_name": "read_fields", "changes": change}),
        Wanted("introspect_function", {"function_name": "read_fields"}),
    ]
    desk = await at_desk([*map(Ask, calls), Repeat(Say("Done."))], model__context_tokens=64_000)
    told = answers(await desk.say("Read fields."))
    notes = [[line for line in text.splitlines() if line.startswith("Note:")] for text in told]
    assert "was changed" in told[1]
    assert ["fails-on" in note for note in notes[0]] == [True]
    assert notes[1] == []
    assert ["weak-examples" in note for note in notes[2]] == [True]
