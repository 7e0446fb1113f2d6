"""Comparing: what differs between two texts or two lists, and how alike they are."""

import difflib
from typing import Any


def diff_texts(before: str, after: str, context: int = 3) -> str:
    """Diff two texts. Show what changed between them as a unified diff.

    Args:
        before: The old text.
        after: The new text.
        context: Unchanged lines to show around each change.

    Returns:
        The diff, or an empty text where nothing differs.

    Examples:
        >>> print(diff_texts("one\\ntwo", "one\\n2", context=0))
        --- before
        +++ after
        @@ -2 +2 @@
        -two
        +2
        >>> diff_texts("same", "same")
        ''
    """
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", n=context, lineterm=""
    )
    return "\n".join(lines)


def similarity(one: str, other: str) -> float:
    """Measure how alike two texts are.

    Args:
        one: A text.
        other: The text to compare it with.

    Returns:
        A number from 0, nothing in common, to 1, equal; to three places.

    Examples:
        >>> similarity("kitten", "sitting")
        0.615
        >>> similarity("same", "same")
        1.0
    """
    return round(difflib.SequenceMatcher(None, one, other, autojunk=False).ratio(), 3)


def edit_distance(one: str, other: str) -> int:
    """Count the letters to insert, delete or replace to turn one text into another.

    Args:
        one: A text.
        other: The text it is to become.

    Returns:
        The least number of edits (Levenshtein distance).

    Examples:
        >>> edit_distance("kitten", "sitting")
        3
        >>> edit_distance("", "abc")
        3
        >>> edit_distance("flaw", "lawn")
        2
    """
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, start=1):
        above, row = row, [count]
        for place, wanted in enumerate(other):
            row.append(min(above[place + 1] + 1, row[place] + 1, above[place] + (letter != wanted)))
    return row[-1]


def nearest(word: str, choices: list[str], count: int = 3) -> list[str]:
    """Find the choices that are most like a word, for example after a typing error.

    Args:
        word: The word as it was typed.
        choices: The words it could have been.
        count: How many to give at most.

    Returns:
        The nearest choices, the best first; those with little in common are left out.

    Examples:
        >>> nearest("pyhton", ["python", "pylon", "ruby"])
        ['python', 'pylon']
        >>> nearest("xyz", ["python", "ruby"])
        []
    """
    return difflib.get_close_matches(word, choices, n=count)


def compare_lists(before: list[Any], after: list[Any]) -> dict[str, list[Any]]:
    """Compare two lists. Tell which items were added, removed or kept, whatever their order.

    Args:
        before: The old items.
        after: The new items.

    Returns:
        Lists under "added", "removed" and "kept"; an item that stands twice counts twice.

    Examples:
        >>> compare_lists(["a", "b"], ["b", "c"])
        {'added': ['c'], 'removed': ['a'], 'kept': ['b']}
        >>> compare_lists([1, 1], [1])
        {'added': [], 'removed': [1], 'kept': [1]}
    """
    removed, added, kept = list(before), [], []
    for item in after:
        if item in removed:
            removed.remove(item)
            kept.append(item)
        else:
            added.append(item)
    return {"added": added, "removed": removed, "kept": kept}
