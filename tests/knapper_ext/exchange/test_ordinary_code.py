"""Ordinary library code: what runs and is not hollow is admitted, as a draft if too little proves that it works."""

from pathlib import Path

from knapper_ext.exchange.library import (
    ImportedFunction,
    ImportReport,
    ImportRequest,
    import_library,
)
from tests.functions.support import Room
from tests.kit.sources import function_text


async def taken(here: Room, root: Path, **files: str) -> ImportReport:
    (root / "lib").mkdir()
    for name, text in files.items():
        (root / "lib" / f"{name}.py").write_text(text)
    return await import_library(
        here.shop, ImportRequest(root / "lib"), lambda _: None, lambda _: None
    )


def only(report: ImportReport, name: str) -> ImportedFunction:
    (row,) = [row for row in report.functions if row.name == name]
    return row


def standings(report: ImportReport) -> dict[str, str]:
    return {row.name: row.standing for row in report.functions}


def codes(row: ImportedFunction) -> set[str]:
    return {problem.code for problem in row.problems}


STARS = "\n\n".join(
    [
        function_text(
            'joined(first, *others, sep="-", **marks)',
            "Join texts.",
            'return sep.join((first, *others)) + marks.get("end", "")',
            'joined("a", "b", "c") → \'a-b-c\'',
            'joined("a", "b", sep="+", end="!") → \'a+b!\'',
        ),
        function_text(
            "pairs(items)",
            "Yield neighbors.",
            "for first, second in zip(items, items[1:]):\n    yield first, second",
            "list(pairs([1, 2, 3])) → [(1, 2), (2, 3)]",
            "list(pairs([4, 5])) → [(4, 5)]",
            "list(pairs([])) → []",
        ),
        function_text(
            "halves(items, /)",
            "Return two iterators.",
            "return iter(items[::2]), iter(items[1::2])",
            "first, second = halves([1, 2, 3, 4])",
            "next(first) → 1",
            "next(first) → 3",
            "list(second) → [2, 4]",
        ),
    ]
)


async def test_stars_are_offered_as_a_list_and_an_object_and_iterators_come_back_as_lists(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, stars=STARS)
    assert standings(report) == {"joined": "trial", "pairs": "trial", "halves": "trial"}, report
    arguments = {"first": "a", "others": ["b", "c"], "marks": {"end": "?"}}
    assert (await here.shop.call("joined", arguments)).value == "a-b-c?"
    assert [row["v"] for row in (await here.shop.call("pairs", {"items": [1, 2, 3]})).value] == [
        [1, 2],
        [2, 3],
    ]
    halves = await here.shop.call("halves", {"items": [1, 2, 3]})
    assert halves.outcome == "returned", halves
    assert halves.value["v"] == [[1, 3], [2]]


LITTLE = "\n\n".join(
    [
        function_text("none_shown(text)", "Shout.", "return text.upper()"),
        function_text(
            "once_shown(text)", "Whisper.", "return text.lower()", "once_shown(\"A\") → 'a'"
        ),
        function_text(
            "alike_shown(text)",
            "Measure.",
            "return len(text)",
            'alike_shown("ab") → 2',
            'alike_shown("cd") → 2',
        ),
        function_text(
            "wrongly_shown(text)",
            "Turn around.",
            "return text[::-1]",
            "wrongly_shown(\"abc\") → 'cab'",
            "wrongly_shown(\"xy\") → 'yx'",
        ),
        function_text("not_done(text)", "Translate.", "return text"),
    ]
)


async def test_too_little_evidence_makes_a_draft_and_what_is_wrong_or_hollow_stays_out(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, little=LITTLE)
    drafts = dict.fromkeys(("none_shown", "once_shown", "alike_shown"), "draft")
    assert standings(report) == {**drafts, "wrongly_shown": "", "not_done": ""}, report
    assert "example-disagrees" in codes(only(report, "wrongly_shown"))
    assert "echo" in codes(only(report, "not_done"))


EXCUSED = "\n\n".join(
    [
        "import random\nfrom elsewhere import nothing_here\n\nLIMIT = 3\n",
        'class Spot:\n    """A place."""\n\n    title = property(lambda self: self.__doc__)\n',
        function_text(
            "spot()",
            "Return a place.",
            "return Spot()",
            "spot() → <elsewhere.Spot object at 0x7f0011223344>",
        ),
        function_text(
            "repeated(items)",
            "Yield each item as often as the limit says.",
            "for item in items:\n    yield from [item] * LIMIT",
            "list(repeated([1, 2])) → [1, 1, 1, 2, 2, 2]",
            "list(repeated([4])) → [4, 4, 4]",
            "repeated([1])  # doctest: +ELLIPSIS → <generator object repeated at 0x...>",
        ),
        function_text(
            "drawn(items)",
            "Draw an item.",
            "return random.choice(items)",
            "drawn(range(10**9)) → 417",
        ),
        function_text(
            "limited(items)",
            "Take the first items.",
            "return items[:LIMIT]",
            "import elsewhere",
            "from elsewhere import numbers",
            "limited(numbers()) → [1, 2, 3]",
        ),
        function_text(
            "told(items)",
            "Tell items, one a line.",
            'return "\\n".join(map(str, items))',
            "print(told(range(20))) → 0\n1\n...\n19",
            "for number in (7, 8): → ...     print(told([number]))\n7\n8",
            "told([1] * LIMIT) → '1\\\\n1\\\\n1'",
        ),
    ]
)


async def test_examples_that_cannot_agree_here_are_left_out_with_a_word(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(
        here, tmp_path, excused=EXCUSED.replace("from elsewhere import nothing_here\n", "")
    )
    assert standings(report) == {
        "spot": "draft", "repeated": "trial", "drawn": "draft", "limited": "draft", "told": "trial"
    }, report  # fmt: skip
    said = {
        row.name: [one.message for one in row.problems if one.code == "example-left-out"]
        for row in report.functions
    }
    assert said["drawn"] == [
        "an example is left out: its result differs from one run to the next"
    ] or said["drawn"] == ["an example is left out: chance or the clock decides its result"]
    assert said["limited"] == ["an example is left out: it uses what is not here"]
    written = (here.root / "functions" / "excused.py").read_text()
    assert ">>> limited(numbers())  # doctest: +SKIP\n" in written
    assert ">>> print(told(range(20)))  # doctest: +ELLIPSIS\n" in written
    assert [example.agreed for example in (await here.shop.test("told")).examples] == [True] * 3


NEEDS = '''import warnings
from typing import Callable

try:
    import no_such_package
except ImportError:
    no_such_package = None

warnings.simplefilter("ignore")
TABLE = {}
TABLE["a"] = "alpha"
for letter in "bc":
    TABLE[letter] = letter * 2


def applied(act: Callable[[str], str], text: str) -> str:
    """Apply a function."""
    return act(text)


def looked_up(letter: str) -> str:
    """Look a letter up.

    Args:
        letter: The letter.

    >>> looked_up("a")
    'ALPHA'
    >>> looked_up("b")
    'BB'
    """
    return applied(str.upper, TABLE[letter] if no_such_package is None else "")


def shown_as(letter: str, form: Callable[[str], str] = str) -> str:
    """Show a letter.

    >>> shown_as("x")
    '(x)'
    >>> shown_as("b", looked_up)
    '(BB)'
    """
    return f"({form(letter)})"
'''
PRIVATE = '''def _marked(text):
    return f"<{text}>"


def other(text):
    """Do another thing.

    >>> other("a")
    'b'
    >>> other("b")
    'c'
    """
    return text
'''
USER = "from own_marks import _marked\n\n\n" + function_text(
    "marked(text)",
    "Mark a text.",
    "return _marked(text)",
    "marked(\"a\") → '<a>'",
    "marked(\"b\") → '<b>'",
)


async def test_what_a_function_needs_of_its_library_comes_along_and_stays_private(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, needs=NEEDS, own_marks=PRIVATE, user=USER)
    assert standings(report) == {
        "applied": "", "looked_up": "trial", "shown_as": "trial", "other": "", "marked": "trial"
    }, report  # fmt: skip
    assert here.shop.names() == ["looked_up", "marked", "shown_as"]
    assert (await here.shop.call("looked_up", {"letter": "c"})).value == "CC"
    assert (await here.shop.call("marked", {"text": "c"})).value == "<c>"
    assert "form" not in (await here.shop.introspect("shown_as")).function.parameters["properties"]


SENT_AT_TIMES = (
    'from typing import Any\n\n\nclass Invalid:\n    """What is wrong with a value."""\n\n\n'
    + "\n\n".join(
        [
            function_text(
                "halved(value: int) -> Any",
                "Return half of an even number, else what is wrong.",
                "return value // 2 if value % 2 == 0 else [Invalid()][0]",
                "halved(2) → 1",
                "halved(-4) → -2",
            ),
            function_text(
                "wrapped(value)",
                "Wrap a text.",
                "return [Invalid(), value]",
                "wrapped(\"ab\")[1] → 'ab'",
                "wrapped(\"c\")[1] → 'c'",
            ),
        ]
    )
)


async def test_what_can_be_sent_for_some_arguments_joins_and_what_never_can_stays_out(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, sent=SENT_AT_TIMES)
    assert standings(report) == {"halved": "trial", "wrapped": ""}, report
    assert "fails-on" in codes(only(report, "halved"))
    assert "not-json" in codes(only(report, "wrapped"))


TYPES_ONLY = '''from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

import typing as t

STEP = 2


@t.overload
def summed(numbers: None) -> None: ...


@t.overload
def summed(numbers: Iterable[int]) -> int: ...


def plain(number: int) -> int:
    """Return the next even step."""
    return number + STEP


def summed(numbers: Iterable[int]) -> int:
    """Return the sum, with a step.

    >>> summed([1])
    3
    >>> summed([4, 5])
    11
    """
    return plain(sum(numbers))
'''


async def test_what_is_there_for_type_checkers_alone_keeps_no_function_out(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, hints=TYPES_ONLY)
    assert standings(report) == {"plain": "draft", "summed": "trial"}, report
    assert (await here.shop.call("summed", {"numbers": [1, 2]})).value == 5


async def test_a_function_of_another_workspace_keeps_the_context_of_its_calls(
    here: Room, tmp_path: Path
) -> None:
    text = function_text(
        "title_of(self, url: str) -> str",
        "Return the title of a page.\n\nArgs:\n    url: The address of the page.",
        'key = self.secret("KEY")\nself.state["last"] = url\nreturn self.fetch(url, headers={"key": key}).text()',
    )
    report = await taken(here, tmp_path, pages=text)
    row = only(report, "title_of")
    assert (row.outcome, row.standing) == ("joined", "draft"), row.problems
