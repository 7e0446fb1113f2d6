"""Ordinary code runs as before with its approved statements, and keeps its grant until they change."""

import re
from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from tests.functions.support import Room
from tests.grants.support import human

SHAPES = {
    "constants": (
        "11",
        """\
# file: shop
RATE = 2
NAMES = ('a', RATE)

def note(path: str) -> str:
    return open(path).read() * NAMES[1]
""",
    ),
    "a global value": (
        1,
        """\
# file: shop
COUNT = 0

def note(path: str) -> int:
    global COUNT
    COUNT += int(open(path).read())
    return COUNT
""",
    ),
    "classes": (
        "1a",
        """\
# file: shop
from dataclasses import dataclass
import enum

class Kind(enum.Enum):
    A = 'a'

@dataclass
class Row:
    text: str
    kind: Kind = Kind.A

    def shown(self) -> str:
        return self.text + self.kind.value

class Special(Row):
    pass

def note(path: str) -> str:
    return Special(open(path).read()).shown()
""",
    ),
    "helpers": (
        "11",
        """\
# file: shop
def _read(path):
    return open(path).read()

def double(text: str) -> str:
    return text * 2

def note(path: str) -> str:
    return double(_read(path))
""",
    ),
    "helpers of another module": (
        "1!",
        """\
# file: tools
MARK = '!'

def read(path: str) -> str:
    return open(path).read() + MARK
# file: shop
from functions.tools import read as r

def note(path: str) -> str:
    return r(path)
""",
    ),
    "a whole module": (
        "1?",
        """\
# file: more
MARK = '?'
# file: tools
def read(path: str) -> str:
    return open(path).read()
# file: shop
import functions.tools as t
from functions import more

def note(path: str) -> str:
    return t.read(path) + more.MARK
""",
    ),
    "a package": (
        "1.",
        """\
# file: shop
from functions.web import MARK, read

def note(path: str) -> str:
    return read(path) + MARK
# file: web/deep/low
def low(path: str) -> str:
    return open(path).read()
# file: web/deep/__init__
# file: web/pages
from .deep.low import low

def read(path: str) -> str:
    return low(path)
# file: web/__init__
from .pages import read

MARK = '.'
""",
    ),
    "decorators": (
        "1111",
        """\
# file: shop
import functools

def twice(f):
    @functools.wraps(f)
    def inner(path: str) -> str:
        return f(path) * 2
    return inner

@functools.cache
def one():
    return '1'

@twice
def note(path: str) -> str:
    return open(path).read() + one()
""",
    ),
    "a table that a decorator fills": (
        "1",
        """\
# file: shop
TABLE = {}

def keep(f):
    TABLE[f.__name__] = f
    return f

@keep
def _plain(path):
    return open(path).read()

def note(path: str) -> str:
    return TABLE['_plain'](path)
""",
    ),
    "a cycle of modules": (
        "1~",
        """\
# file: shop
MARK = '~'
# file: tools
import functions.shop

def read(path: str) -> str:
    return open(path).read() + functions.shop.MARK
# file: shop
import functions.tools

MARK = '~'

def note(path: str) -> str:
    return functions.tools.read(path)
""",
    ),
    "a star": (
        "1",
        """\
# file: tools
def read(path: str) -> str:
    return open(path).read()
# file: shop
from functions.tools import *

def note(path: str) -> str:
    return read(path)
""",
    ),
    "conditions and fallbacks": (
        "1tomllib",
        """\
# file: shop
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from collections.abc import Mapping
try:
    import tomllib as toml
except ImportError:
    toml = None

def note(path: str, more: 'Mapping[str, str] | None' = None) -> str:
    return open(path).read() + toml.__name__
""",
    ),
    "a module that makes names up": (
        "1",
        """\
# file: tools
def _read(path):
    return open(path).read()

def __getattr__(name):
    if name == 'anything':
        return _read
    raise AttributeError(name)
# file: shop
from functions.tools import anything

def note(path: str) -> str:
    return anything(path)
""",
    ),
    "nested and local definitions": (
        "13",
        """\
# file: shop
MOST = 3

def note(path: str) -> str:
    def inner(text=str(MOST)):
        class Local:
            mark = text
        return [Local.mark for _ in range(1)][0]
    return open(path).read() + inner()
""",
    ),
}
WHOLE = {
    "a star",
    "a whole module",
    "a cycle of modules",
}  # what imports a whole module is bound to all of it
NEIGHBOR = '''

# A neighbor.
def other(number: int = 1) -> int:
    """Return a number."""
    return number


OTHER = {"a": 1}
'''


def saved(root: Path, module: str) -> Path:
    """Return the file of a module."""
    file = root / "functions" / f"{module}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def files_of(room: Room, shape: str) -> list[tuple[Path, str]]:
    """Return the files of a shape in the order in which they are saved."""
    parts = re.split(r"^# file: (.+)\n", SHAPES[shape][1], flags=re.MULTILINE)
    return [
        (saved(room.root, module), text)
        for module, text in zip(parts[1::2], parts[2::2], strict=True)
    ]


@pytest.mark.parametrize("shape", SHAPES)
async def test_it_runs_and_keeps_its_grant_beside_new_neighbors_and_docstrings(
    here: Room, shape: str
) -> None:
    value, files = SHAPES[shape][0], files_of(here, shape)
    for file, text in files:
        await here.save(text, file)
    await here.shop.grants.grant("note", Grants(read=("data/",)))
    nobody = here.shop.granting.approver = human("no")
    assert (await here.shop.call("note", {"path": "data/1"})).value == value
    for number, (file, text) in enumerate(dict(files).items()):
        documented = text.replace("-> str:\n", '-> str:\n    """Return a text."""\n\n')
        neighbor = "" if shape in WHOLE else NEIGHBOR.replace("other", f"other{number}")
        await here.save(f'"""A module."""\n# A comment.\n{documented}{neighbor}', file)
    report = await here.shop.call("note", {"path": "data/1"})
    assert (report.value, nobody.asked) == (value, [])


FAILS = '''\
"""Notes."""

import json


def other() -> int:
    """Return one."""
    return 1


def parse(text: str) -> object:
    """Parse a text.

    It is JSON.
    """
    # Many lines
    return json.dumps(
        [
            1,
            int(text) / 0,
        ]
    )


def note(path: str) -> object:
    """Read a note."""
    try: return parse(open(path).read())
    finally:
        """Nothing."""
'''


async def test_an_error_names_the_lines_of_the_file(here: Room) -> None:
    await here.save(FAILS, saved(here.root, "notes"))
    await here.shop.grants.grant("note", Grants(read=("data/",)))
    error = (await here.shop.call("note", {"path": "data/1"})).error
    assert error is not None
    assert [(frame.line, frame.source) for frame in error.frames] == [
        (27, "try: return parse(open(path).read())"),
        (20, "int(text) / 0,"),
    ]


async def test_what_it_calls_by_name_belongs_to_its_approval(here: Room) -> None:
    caller = (
        'NAME = "tidy"\n\n\ndef note(self, path: str) -> str:\n    return '
        "self.call(NAME, text=open(path).read())\n"
    )
    tidy = "def _clean(text):\n    return text\n\n\ndef tidy(text: str) -> str:\n    return _clean(text)\n"
    await here.save(tidy, saved(here.root, "tools"))
    await here.save(caller, saved(here.root, "shop"))
    await here.shop.grants.grant("note", Grants(read=("data/",)))
    who = here.shop.granting.approver = human("no")
    assert (await here.shop.call("note", {"path": "data/1"})).value == "1"
    await here.save(tidy + NEIGHBOR, saved(here.root, "tools"))
    assert ((await here.shop.call("note", {"path": "data/1"})).value, who.asked) == ("1", [])
    await here.save(tidy.replace("return text", "return text + '!'"), saved(here.root, "tools"))
    assert (await here.shop.call("note", {"path": "data/1"})).outcome == "refused"
    (question,) = who.asked
    assert question.changed == "`note` itself is unchanged; `_clean` of tools changed"
    assert "+    return text + '!'" in question.diff
