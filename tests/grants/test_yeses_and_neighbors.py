"""An approval covers a function and what it calls and imports, not its neighbors; a lapse gives the true reason."""

import pytest

from agent_core.access.grants import Grants
from tests.functions.support import Room
from tests.grants.support import human

READER = '''\
from functions.helping import clean

RATE = 1


def parse(text: str) -> str:
    """Clean a text."""
    return clean(text.strip())


def first(path: str) -> str:
    """Read the first line of a file."""
    return parse(open(path).readline()) * RATE
'''
HELPING = 'def clean(text: str) -> str:\n    """Clean a text."""\n    return text\n'
NEIGHBOR = (
    '\n\ndef other(number: int = 2) -> int:\n    """Double."""\n    return 2 * math.floor(number)\n'
)
ROW = '''

@dataclass(frozen=True)
class Row:
    """A row."""

    __slots__ = ("name",)
    name: str
    size: int = 1

    def __str__(self) -> str:
        return self._shown

    @property
    def _shown(self) -> str:
        return self.name
'''


async def granted(room: Room, text: str = READER) -> None:
    """Save a function and bring its grant into force."""
    await room.save(HELPING, room.root / "functions" / "helping.py")
    await room.save(text, room.root / "functions" / "reading.py")
    await room.shop.grants.grant("first", Grants(read=("data/",)))
    assert await asked_again(room) is None


async def asked_again(room: Room) -> str | None:
    """Return what changed, as the next call would report it; None if the grant is in force."""
    snapshot = room.shop.registry.snapshot()
    function = snapshot.functions["first"]
    if (await room.shop.granting.in_force(function, snapshot)).covers(Grants(read=("data/",))):
        return None
    return await room.shop.granting.book.lapsed(function, snapshot)


async def test_a_yes_survives_a_neighbor(here: Room) -> None:
    await granted(here)
    for newer in (
        READER + NEIGHBOR,
        f"import math\n{READER}{NEIGHBOR}",
        READER + "\n\nOTHER = {'a': 1}\n",
        READER.replace("RATE = 1\n", "RATE = 1\n# a note\n"),
        f'"""Reads files."""\n{READER}',
        f"import re\n{READER}\n_A = re.compile(r'a', re.I | re.M)\n_B = [re.compile('b'), {{'c': set((1,))}}]\n",
        f"from functools import cache\n{READER}\n\n@cache\ndef other(n: int) -> int:\n    return n\n",
        f"from dataclasses import dataclass\n{READER}{ROW}",
        f"import enum\n{READER}\n\nclass Kind(enum.Enum):\n    A = 1\n\n    def shown(self):\n        return 'a'\n",
    ):
        await here.save(newer, here.root / "functions" / "reading.py")
        assert await asked_again(here) is None, newer
        here.shop.granting.approver = human("no")
        assert (await here.shop.call("first", {"path": "data/1"})).value == "1", newer
    await here.save(HELPING + NEIGHBOR, here.root / "functions" / "helping.py")
    assert await asked_again(here) is None


async def test_a_yes_lapses_with_what_it_names_and_says_so(here: Room) -> None:
    await granted(here)
    at_import, method = "what reading does when it is imported", "\n\n\nclass A:\n    "
    for old, new, says in (
        (
            "text.strip()",
            "text.rstrip()",
            "`first` itself is unchanged; `parse` of reading changed",
        ),
        ("readline()", "read()", "`first` itself is changed"),
        ("RATE = 1", "RATE = 2", "`first` itself is unchanged; `RATE` of reading changed"),
        ("RATE = 1", "RATE = 1\nprint(1)", at_import),
        ("RATE = 1", "RATE = 1\n\n\ndef open(path): return path", "`open` of reading is new"),
        ("RATE = 1", "RATE = 1\n\n\ndef evil(a=print(1)): return a", at_import),
        ("RATE = 1", "RATE = 1\n\n\ndef evil(a: print(1)): return a", at_import),
        ("RATE = 1", "RATE = 1\n\n\n@print\ndef evil(a): return a", at_import),
        ("RATE = 1", "RATE = 1\nimport functions.helping as open", "`open` of reading is new"),
        ("RATE = 1", "RATE = 1\nimport functions.helping as unused", at_import),
        ("RATE = 1", "RATE = 1\nfrom math import floor as open", "`open` of reading is new"),
        ("RATE = 1", f"RATE = 1{method}print(1)", at_import),
        ("RATE = 1", f"RATE = 1{method}clean.b: int = 1", at_import),
        ("RATE = 1", "RATE = 1\n\n\nclass A(dict):\n    pass", at_import),
        ("RATE = 1", "RATE = 1\n\n\nclass A(metaclass=print):\n    pass", at_import),
        ("RATE = 1", f"RATE = 1{method}def dict(x): print(x)\n    b = dict(1)", at_import),
        ("RATE = 1", f"RATE = 1{method}from os import fspath as __class_getitem__", at_import),
        (
            "RATE = 1",
            "import enum\nRATE = 1\n\n\nclass A(enum.Enum):\n    B = 1\n    def __init__(self, x): print(x)",
            at_import,
        ),
        ("RATE = 1", "RATE = 1\n\n\ndef set(x): print(x)\n\n\nA = set(1)", at_import),
        ("RATE = 1", "from functions.helping import clean as set\nRATE = set('x')", at_import),
    ):
        await here.save(READER.replace(old, new, 1), here.root / "functions" / "reading.py")
        assert says in str(await asked_again(here)), new
    await here.save(READER, here.root / "functions" / "reading.py")
    await here.save(
        HELPING.replace("return text", "return text + 'x'"), here.root / "functions" / "helping.py"
    )
    assert await asked_again(here) == "`first` itself is unchanged; `clean` of helping changed"
    (row,) = (await here.shop.grants.listing()).grants
    assert row.changed == "`first` itself is unchanged; `clean` of helping changed"


QUOTED = '''from dataclasses import dataclass
from typing import Union


@dataclass
class Query:
    path: str

    def __post_init__(self) -> None:
        self.path = self.path.strip()


Asked = Union["Query", None]


def first(path: HINT) -> str:
    """Read the first line of a file."""
    return open(path if isinstance(path, str) else "data/1").readline()
'''


async def test_a_class_that_is_named_in_quotes_is_covered(here: Room) -> None:
    for hint in ('"Query"', "Asked"):
        text = QUOTED.replace("HINT", hint)
        await granted(here, text)
        newer = text.replace("self.path.strip()", "open(self.path).read()")
        await here.save(newer, here.root / "functions" / "reading.py")
        assert (
            await asked_again(here) == "`first` itself is unchanged; `Query` of reading changed"
        ), hint


@pytest.mark.parametrize("newer", ["x", "web.reading"])
async def test_a_function_that_moved_is_said_to_have_moved_and_to_be_unchanged(
    here: Room, newer: str
) -> None:
    await granted(here)
    file = here.root / "functions" / f"{newer.replace('.', '/')}.py"
    file.parent.mkdir(exist_ok=True)
    (here.root / "functions" / "reading.py").unlink()
    await here.shop.saved([here.root / "functions" / "reading.py"])
    await here.save(READER, file)
    assert (
        await asked_again(here) == f"`first` itself is unchanged; it moved from reading to {newer}"
    )
    await here.save(READER.replace("RATE = 1", "RATE = 2"), file)
    assert str(await asked_again(here)).endswith(
        f"it moved from reading to {newer}; `RATE` of {newer} changed"
    )


async def test_a_yes_lapses_with_what_the_package_around_the_function_does_at_its_import(
    here: Room,
) -> None:
    package, page = (here.root / "functions" / "web" / name for name in ("__init__.py", "pages.py"))
    package.parent.mkdir()
    await here.save('"""Web."""\n', package)
    await here.save(HELPING, here.root / "functions" / "helping.py")
    await here.save(READER, page)
    await here.shop.grants.grant("first", Grants(read=("data/",)))
    await here.save(f'"""Pages."""\nimport math\n{NEIGHBOR}', package)
    assert await asked_again(here) is None
    await here.save("import functions.web.pages as pages\n\npages.open = print\n", package)
    assert "what web does when it is imported" in str(await asked_again(here))


async def test_the_question_shows_only_what_concerns_the_function(here: Room) -> None:
    await granted(here)
    newer = READER.replace("strip()", "rstrip()") + NEIGHBOR
    await here.save(newer, here.root / "functions" / "reading.py")
    who = here.shop.granting.approver = human("no")
    await here.shop.call("first", {"path": "data/1"})
    (question,) = who.asked
    assert "rstrip" in question.diff
    assert "Double" not in question.diff
    assert question.is_again


LAID_OUT = '''\
from functions.helping import clean


RATE = 0x1  # as before


def parse(text: str) -> str:
    """Clean a text."""
    # Blanks around it do not count.

    return clean(
        text.strip(),
    )


def first( path: str ) -> str:  # of any file
    """Read the first line of a file."""

    return (parse(open(path).readline())
            * RATE)
'''


async def test_a_yes_survives_layout_comments_and_docstrings_of_its_own(here: Room) -> None:
    await granted(here)
    await here.save(
        LAID_OUT.replace("Read the first", "Return the first"),
        here.root / "functions" / "reading.py",
    )
    assert await asked_again(here) is None
    who = here.shop.granting.approver = human("no")
    assert ((await here.shop.call("first", {"path": "data/1"})).value, who.asked) == ("1", [])
    await here.save(
        LAID_OUT.replace("readline()", "read()"), here.root / "functions" / "reading.py"
    )
    assert await asked_again(here) == "`first` itself is changed"


async def test_what_only_looks_like_layout_ends_a_yes(here: Room) -> None:
    await granted(here)
    returned = "    return parse(open(path).readline())"
    for newer in (
        READER.replace(f"{returned} * RATE", f"{returned[:-1]} * RATE)"),
        READER.replace("text.strip()", "text.strip(' ')"),
        READER.replace("clean(text.strip())", "clean(text.strip()) # a\\\n    # b\n").replace(
            "# a\\", "+ 'x'"
        ),
        f"def open(path):\n    return path\n\n\n{READER}",
    ):
        await here.save(newer, here.root / "functions" / "reading.py")
        assert await asked_again(here), newer


async def test_the_examples_of_a_docstring_that_nobody_agreed_to_read_no_granted_file(
    here: Room,
) -> None:
    (here.root / "data").mkdir(exist_ok=True)
    (here.root / "data" / "2").write_text("one\nprivate\n")
    await granted(here)
    example = 'of a file.\n\n    >>> open("data/2").read()\n    \'nothing\'\n    """'
    await here.save(
        READER.replace('of a file."""', example), here.root / "functions" / "reading.py"
    )
    (result,) = (await here.shop.test("first")).examples
    assert "private" not in f"{result.returned}{result.printed}{result.unrun}"
    await here.shop.grants.grant("first", Grants(read=("data/",)))
    (result,) = (await here.shop.test("first")).examples
    assert "private" in result.returned
