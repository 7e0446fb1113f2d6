"""A note about a function is told once: after an edit, only what the edit brought is told."""

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


def edit(old: str, new: str) -> Wanted:
    return Wanted(
        "edit_function",
        {"function_name": "read_fields", "changes": [{"old_text": old, "new_text": new}]},
    )


async def test_a_note_is_not_told_again_about_a_line_that_an_edit_left_as_it_was(
    at_desk: OpenDesk,
) -> None:
    made = Wanted(
        "create_function", {"function_name": "read_fields", "function_code_with_docstring": FIELDS}
    )
    edits = [
        edit('names = head.split(";")', 'names = head.strip().split(";")'),
        edit("Read the fields of a row", "Read all fields of a row"),
        edit("zip(names, row.split", "zip(names, row.strip().split"),
    ]
    desk = await at_desk(
        [Ask(made), *map(Ask, edits), Repeat(Say("Done."))], model__context_tokens=64_000
    )
    told = answers(await desk.say("Read fields."))
    notes = [[line for line in text.splitlines() if line.startswith("Note:")] for text in told]
    assert all("was changed" in text for text in told[1:])
    assert "strict" in "".join(notes[0])
    assert notes[1:3] == [[], []]
    assert "strict" in "".join(notes[3]), "the edit changed that line"
