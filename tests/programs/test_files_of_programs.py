"""The files that a program opens: asked for with its whole text, or said to be out of its reach, never missing."""

import json
import subprocess
from pathlib import Path

import pytest

from agent_core import Decision, Question
from tests.conftest import OpenDesk
from tests.kit.desk import answers
from tests.kit.drawing import sampled
from tests.kit.repositories import BARE_GIT, EVERY_NAME, LEFT

from .support import Person, ready

WAYS = {
    "open": "open('data/a.csv').read()",
    "exists": "import os\nos.path.exists('data/a.csv')",
    "is a file": "import os\nos.path.isfile('data/a.csv')",
    "list": "import os\nos.listdir('data')",
    "scan": "import os\n[entry.name for entry in os.scandir('data')]",
    "walk": "import os\n[names for _, _, names in os.walk('data')]",
    "stat": "import os\nos.stat('data/a.csv').st_size",
    "access": "import os\nos.access('data/a.csv', os.R_OK)",
    "Path": "from pathlib import Path\nPath('data/a.csv').read_text()",
    "Path.exists": "from pathlib import Path\nPath('data/a.csv').exists()",
    "Path.glob": "from pathlib import Path\nsorted(str(path) for path in Path('data').glob('*.csv'))",
    "glob": "import glob\nglob.glob('data/*.csv')",
    "glob of a name": "import glob\nglob.glob('data/a.csv')",
    "csv": "import csv\nlist(csv.reader(open('data/a.csv')))",
    "zipfile": "import zipfile\nzipfile.is_zipfile('data/a.csv')",
    "a name in a def": "def read(path):\n    return open(path).read()\nread('data/' + 'a.csv')",
    "a module": "open('functions/ping.py').read(5)",
    "a module exists": "import os\nos.path.exists('functions/ping.py')",
    "the workspace": "import os\nos.listdir('.')",
    "the workspace by glob": "import glob\nglob.glob('*')",
    "outside": "open('@OUTSIDE@').read()",
    "of the system": "open('/etc/passwd').read()",
    "of the system, exists": "import os\nos.path.exists('/etc/passwd')",
    "of the system, listed": "import os\nos.listdir('/etc')",
}


ODD_WAYS = {
    "bytes": "open(b'data/a.csv').read()",
    "around a corner": "open('data/../data/./a.csv').read()",
    "io": "import io\nio.FileIO('data/a.csv').readall().decode()",
    "descriptors": "import os\nos.read(os.open('data/a.csv', os.O_RDONLY), 99).decode()",
    "a descriptor of the folder": (
        "import os\nhere = os.open('data', os.O_RDONLY)\nos.read(os.open('a.csv', 0, dir_fd=here), 99).decode()"
    ),
    "the process's own folder": "open('/proc/self/cwd/data/a.csv').read()",
    "the process's own root": "import os\nopen('/proc/self/root' + os.getcwd() + '/data/a.csv').read()",
    "a link": (
        "import os, tempfile\nto = tempfile.mkdtemp() + '/x'\nos.symlink(os.path.abspath('data/a.csv'), to)\n"
        "open(to).read()"
    ),
    "a copy": "import shutil, tempfile\nto = tempfile.mkdtemp() + '/x'\nshutil.copy('data/a.csv', to)\nopen(to).read()",
    "another folder": "import os\nos.chdir('data')\nopen('a.csv').read()",
    "lines": "import linecache\nlinecache.getlines('data/a.csv')",
    "all arguments": "import fileinput\nlist(fileinput.input(['data/a.csv']))",
    "a module from a file": "import runpy\nrunpy.run_path('data/a.csv')",
    "a loader": (
        "from importlib.machinery import SourceFileLoader\n"
        "SourceFileLoader('a', 'data/a.csv').get_data('data/a.csv').decode()"
    ),
    "a program": "import subprocess\nsubprocess.run(['cat', 'data/a.csv'], capture_output=True).stdout.decode()",
    "an address": (
        "import urllib.request, os\nurllib.request.urlopen('file://' + os.getcwd() + '/data/a.csv').read().decode()"
    ),
    "a replaced open": "import builtins, _io\nbuiltins.open = _io.open\nopen('data/a.csv').read()",
    "the C interface": "import ctypes\nctypes.CDLL(None).open(b'data/a.csv', 0)",
    "a name as a path": "class P:\n    def __fspath__(self):\n        return 'data/a.csv'\nopen(P()).read()",
}


async def told(
    at_desk: OpenDesk, root: Path, *programs: str, person: Person | None = None
) -> list[str]:
    """Return the answers to programs in a workspace with a file."""
    outside = root / "elsewhere" / "b.txt"
    outside.parent.mkdir()
    outside.write_text("beyond")
    desk = await ready(
        at_desk, *(code.replace("@OUTSIDE@", str(outside)) for code in programs), person=person
    )
    (desk.workspace.root / "data").mkdir()
    (desk.workspace.root / "data" / "a.csv").write_text("day;paid\n1;2\n")
    return [answer for _ in programs for answer in answers(await desk.say("Go."))]


@pytest.mark.slow
async def test_where_nobody_can_be_asked_a_file_is_never_said_to_be_missing(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    many = await told(at_desk, tmp_path, *WAYS.values())
    for way, text in zip(WAYS, many, strict=True):
        assert "a program may not " in text, way
        assert "such as `read_text`" not in text, way  # this workspace does not have it
        assert "No such file" not in text, way
        assert text.count("a program may not ") == 1, way


async def test_a_person_is_asked_once_for_each_path_and_sees_the_whole_program(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    person, code = (
        Person(),
        "rows = open('data/a.csv').read()\nopen('data/a.csv').read() == rows, rows",
    )
    (text,) = await told(at_desk, tmp_path, code, person=person)
    (question,) = person.asked
    assert json.loads(text.splitlines()[0]) == [True, "day;paid\n1;2\n"]
    assert (question.function, question.moment) == ("run_program", "open")
    assert question.missing.sentences() == ["read data/a.csv"]
    assert [line for _, line in question.lines] == code.splitlines()
    assert (question.is_about_text, question.folder, question.command) == (True, "data/", "")


async def test_a_yes_is_for_the_text_of_one_program(at_desk: OpenDesk, tmp_path: Path) -> None:
    person = Person()
    first, second = "open('data/a.csv').read(3)", "open('data/a.csv').read(4)"
    assert await told(at_desk, tmp_path, first, second, first, person=person) == [
        '"day"',
        '"day;"',
        '"day"',
    ]
    versions = [question.version for question in person.asked]
    assert len(set(versions)) == 3


@pytest.mark.slow
async def test_every_way_to_look_finds_what_is_there_after_a_yes(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    ways = {
        way: code for way, code in WAYS.items() if "system" not in way and "workspace" not in way
    }
    many = await told(at_desk, tmp_path, *ways.values(), person=Person())
    wrong = {
        way: text
        for way, text in zip(ways, many, strict=True)
        if "Error" in text or text in ("false", "[]")
    }
    assert wrong == {"zipfile": "false"}


async def test_a_yes_for_the_folder_covers_the_other_files_in_it_now_or_for_reading_later(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    person = Person(Decision("yes", is_wide=True))
    code = (
        "open('data/a.csv').read(1)\nfor n in range(9):\n    open(f'data/{n}.txt', 'w').write('x')"
    )
    reads = "open('data/a.csv').read(1)\nimport os\nos.listdir('data')"
    written, read = await told(at_desk, tmp_path, code, reads, person=person)
    asked = [question.missing.sentences()[0] for question in person.asked]
    assert asked == ["read data/a.csv", "read and write data/0.txt"]
    assert "Error" not in written
    assert len(json.loads(read)) == 10


async def test_a_no_is_a_refusal_with_the_reason(at_desk: OpenDesk, tmp_path: Path) -> None:
    person = Person(Decision("no", "not this one"))
    text, listed = await told(
        at_desk, tmp_path, "open('data/a.csv')", "import glob\nglob.glob('data/*')", person=person
    )
    assert "PermissionError" in text
    assert "They say: “not this one”" in text
    assert listed.startswith("[]\n")
    assert "The user was asked and said no" in listed


@pytest.mark.sampled
@pytest.mark.parametrize("way", sampled([*ODD_WAYS], 6))
async def test_whatever_opens_it_a_file_is_not_read_after_a_no(
    at_desk: OpenDesk, tmp_path: Path, way: str
) -> None:
    (text,) = await told(at_desk, tmp_path, ODD_WAYS[way], person=Person(Decision("no")))
    assert "paid" not in text, text


async def test_what_nobody_can_grant_is_refused_without_a_question(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    person = Person()
    ways = [
        "open('.knapper/state.db', 'rb')",
        "import os\nos.path.exists('.knapper/state.db')",
        "open('/proc/self/environ')",
    ]
    many = await told(at_desk, tmp_path, *ways, person=person)
    assert [
        text
        for text in many
        if "can never be granted" not in text and "a program may not" not in text
    ] == []
    assert person.asked == []


async def test_libraries_that_look_for_their_own_files_work_and_ask_nothing(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    ways = [
        "import mimetypes\nmimetypes.guess_type('a.csv')[0]",
        "import zoneinfo\nzoneinfo.ZoneInfo('Europe/Berlin').key",
        "import shutil\nshutil.which('git')",
        "import tempfile, os\npath = tempfile.mkdtemp() + '/x'\nopen(path, 'w').write('1')\nos.path.exists(path)",
    ]
    person = Person()
    many = await told(at_desk, tmp_path, *ways, person=person)
    assert [text.splitlines()[0] for text in many] == [
        '"text/csv"',
        '"Europe/Berlin"',
        "null",
        "true",
    ]
    assert person.asked == []


OPENED_AGAIN = {
    "runpy": "import runpy\nrunpy.run_path(path)['value']",
    "open_code": "import io\nint(io.open_code(path).read().split()[-1])",
    "a loader": (
        "from importlib.machinery import SourceFileLoader\nint(SourceFileLoader('a', path).get_data(path).split()[-1])"
    ),
    "a module from a path": (
        "import importlib.util as util\nspec = util.spec_from_file_location('made', path)\n"
        "made = util.module_from_spec(spec)\nspec.loader.exec_module(made)\nmade.value"
    ),
    "tokenize": "import tokenize\nint(tokenize.open(path).read().split()[-1])",
    "zipfile": "import zipfile\n7 if not zipfile.is_zipfile(path) else 0",
    "a copy": "import shutil, tempfile\nint(open(shutil.copyfile(path, tempfile.mkdtemp() + '/x')).read().split()[-1])",
}


async def test_what_a_program_wrote_is_there_for_all_that_opens_it_then(at_desk: OpenDesk) -> None:
    first = "path = 'out/made.py'\nwith open(path, 'w') as file:\n    _ = file.write('value = 7')\n"
    codes = [first + way for way in OPENED_AGAIN.values()]
    desk = await ready(at_desk, *codes, person=Person(Decision("yes", is_wide=True)))
    many = [answers(await desk.say("Go."))[0].splitlines()[0] for _ in codes]
    assert dict(zip(OPENED_AGAIN, many, strict=True)) == dict.fromkeys(OPENED_AGAIN, "7")


async def test_a_temporary_file_of_a_program_is_said_to_be_its_own(at_desk: OpenDesk) -> None:
    made = "import tempfile\npath = tempfile.mkdtemp() + '/a.txt'\n_ = open(path, 'w').write('x')\n"
    ways = [
        "keep(path, 'y')",
        "keep(text='y', path=path)",
        "each(keep, [(path, 'y')])",
        "trace_function('keep', {'path': path, 'text': 'y'})",
        "test_function('keep', {'path': path, 'text': 'y'})",
    ]
    person = Person()
    desk = await ready(at_desk, *(made + way for way in ways), person=person)
    for way in ways:
        (text,) = answers(await desk.say("Go."))
        assert "a program's temporary files are there for the program alone" in text, way
    assert person.asked == []


async def test_the_workspaces_own_folder_is_listed_by_name_after_one_yes(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    person = Person()
    code = "import os, glob\n[sorted(os.listdir()), sorted(glob.glob('*')), os.path.exists('knapper.toml')]"
    desk = await ready(at_desk, code, person=person)
    root = desk.workspace.root
    for name in ("knapper.toml", ".env", "mcp.toml", "notes.txt"):
        (root / name).write_text("")
    (root / "link").symlink_to("/etc")
    (text,) = answers(await desk.say("Go."))
    names = ["functions", "link", "notes.txt", "out"]
    assert json.loads(text.splitlines()[0]) == [names, names, True]
    sentences = [question.missing.sentences() for question in person.asked]
    assert sentences == [
        ["list the names in the workspace's folder (not hidden ones, nor settings)"],
        ["read knapper.toml"],
    ]


async def left_by(at_desk: OpenDesk, code: str) -> tuple[str, Path]:
    """Return the answer to a program that makes something in a folder after a yes for it, and the folder."""
    desk = await ready(
        at_desk, f'folder = "out"\n{code}', person=Person(Decision("yes", is_wide=True))
    )
    (text,) = answers(await desk.say("Go."))
    return text, desk.workspace.root / "out"


async def test_a_yes_lets_a_program_leave_no_repository(at_desk: OpenDesk) -> None:
    text, out = await left_by(at_desk, BARE_GIT)
    subprocess.run(["git", "status"], cwd=out, capture_output=True, timeout=20)  # noqa: ASYNC221 - the test waits for it
    assert "'out/HEAD' can never be granted for writing" in text
    assert sorted(path.name for path in out.iterdir()) == ["config", "objects", "refs", "tmp"]


async def test_a_yes_for_a_folder_lets_a_program_make_no_name_that_nobody_can_grant(
    at_desk: OpenDesk,
) -> None:
    text, out = await left_by(at_desk, f"{EVERY_NAME}\ntold")
    assert (text.splitlines()[0], sorted(path.name for path in out.rglob("*"))) == ("[]", LEFT)


async def test_what_was_given_to_a_program_is_looked_through_after_it(at_desk: OpenDesk) -> None:
    asked = list[Question]()

    async def someone(question: Question) -> Decision:
        asked.append(question)
        if len(asked) == 2:
            (desk.workspace.root / "out" / ".git").mkdir()
        return Decision("yes", is_wide=True)

    code = 'open("out/a", "w").write("x")\nopen("other/a", "w").write("x")'
    desk = await ready(at_desk, code, person=someone)
    (text,) = answers(await desk.say("Go."))
    assert "It made what is taken for a repository" in text
    assert not (desk.workspace.root / "out" / ".git").exists()
