"""A file that a running function opens without a grant is requested during the call, as a host is."""

import asyncio
import os
import sqlite3
from itertools import product
from pathlib import Path

import pytest

from agent_core.access.grants import Decision, Grants, Question
from agent_core.functions.answers import CallReport
from tests.functions.support import Room
from tests.grants.support import AGENT, PLAIN, Human, human
from tests.kit.levels import IS_PORTABLE
from tests.kit.sources import function_text

SUMS = "\n\n".join(
    [
        "import csv\n",
        function_text(
            "csv_sum(path: str) -> float",
            "Add up the column amount of a CSV file.\n\nArgs:\n    path: The file.\n\nReturns:\n    The sum.",
            'with open(path, newline="") as file:\n    '
            'return sum(float(row["amount"]) for row in csv.DictReader(file))',
        ),
    ]
)
SALES = "day,amount\n1,2.5\n2,4\n"


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """A file in the workspace."""
    file = tmp_path / "data" / "sales.csv"
    file.parent.mkdir(exist_ok=True)
    file.write_text(SALES)
    return file


async def called(
    room: Room, who: Human | None, arguments: dict[str, object], name: str = "csv_sum"
) -> CallReport:
    """Call a function while someone answers."""
    room.shop.granting.approver = who
    return await room.shop.call(name, arguments)


async def test_a_yes_at_the_call_opens_the_file_and_the_sum_comes_back(
    here: Room, sales: Path
) -> None:
    await here.save(SUMS)
    who = human("yes")
    report = await called(here, who, {"path": "data/sales.csv"})
    assert (report.outcome, report.value) == ("returned", 6.5), report
    assert [question.missing.sentences() for question in who.asked] == [["read data/sales.csv"]]
    assert (await called(here, human("no"), {"path": "data/sales.csv"})).value == 6.5


TRIES = "\n\n".join(
    [
        function_text(
            'tries(path: str, how: str = "open") -> str',
            "Try to reach a path, and tell how that ended.",
            "import contextlib, glob, importlib, os, pathlib, shutil, sqlite3, tempfile, threading\nways = {\n  "
            '  "open": lambda: open(path).read(),\n    "bytes": lambda: open(path, "rb", '
            'buffering=0).read().decode(),\n    "path": lambda: pathlib.Path(path).read_text(),\n    '
            '"absolute": lambda: open(os.path.abspath(path)).read(),\n    "resolved": lambda: '
            'pathlib.Path(path).resolve().read_text(),\n    "joined": lambda: open(os.path.join(os.getcwd(), '
            'path)).read(),\n    "returned": lambda: open(returned(path)).read(),\n    "thread": lambda: '
            'str(threaded(lambda: open(path).read())),\n    "home": lambda: '
            'open(os.path.expanduser(path)).read(),\n    "Path.home": lambda: '
            'pathlib.Path(path).expanduser().read_text(),\n    "bz2": lambda: '
            'importlib.import_module("bz2").open(path, "rt").read(),\n    "access": lambda: str(os.access(path, '
            'os.R_OK)),\n    "uri": lambda: str(sqlite3.connect(f"file:{path}?mode=ro", uri=True)),\n    '
            '"enter": lambda: str(os.chdir(path)),\n    "temporary": lambda: '
            'tempfile.NamedTemporaryFile(dir=path).name,\n    "os.open": lambda: os.read(os.open(path, '
            'os.O_RDONLY), 100).decode(),\n    "stat": lambda: str(os.stat(path).st_size),\n    "exists": '
            'lambda: str(os.path.exists(path)),\n    "isfile": lambda: str(os.path.isfile(path)),\n    '
            '"Path.exists": lambda: str(pathlib.Path(path).exists()),\n    "listdir": lambda: '
            '",".join(sorted(os.listdir(path))),\n    "iterdir": lambda: ",".join(sorted(str(one) for one in '
            'pathlib.Path(path).iterdir())),\n    "walk": lambda: str([names for _, _, names in '
            'os.walk(path)]),\n    "glob": lambda: ",".join(sorted(glob.glob(path))),\n    "sqlite": lambda: '
            'str(sqlite3.connect(path).execute("select sum(x) from t").fetchone()[0]),\n    "write": lambda: '
            'str(open(path, "w").write("new")),\n    "append": lambda: str(open(path, "a").write("new")),\n    '
            '"update": lambda: str(open(path, "r+").write("NEW")),\n    "make": lambda: str(open(path, '
            '"x").write("new")),\n    "mkdir": lambda: str(os.mkdir(path)),\n    "makedirs": lambda: '
            'str(os.makedirs(path, exist_ok=True)),\n    "Path.mkdir": lambda: '
            'str(pathlib.Path(path).mkdir(parents=True, exist_ok=True)),\n    "fill": lambda: '
            'str((os.makedirs(path), open(path + "/a", "w").write("new"))[1]),\n    "remove": lambda: '
            'str(os.remove(path)),\n    "unlink": lambda: str(pathlib.Path(path).unlink(missing_ok=True)),\n    '
            '"rmdir": lambda: str(os.rmdir(path)),\n    "rename": lambda: str(os.rename(path, path + ".old")),\n'
            '    "Path.rename": lambda: str(pathlib.Path(path).rename(path + ".old")),\n    "replace": lambda: '
            'str(os.replace(path, path + ".old")),\n    "link": lambda: str(os.symlink(path, path + ".link")),\n'
            '    "move": lambda: str(shutil.move(path, path + ".old")),\n    "rmtree": lambda: '
            'str(shutil.rmtree(path)),\n    "chmod": lambda: str(os.chmod(path, 0o600)),\n    "touch": lambda: '
            'str(os.utime(path)),\n    "truncate": lambda: str(os.truncate(path, 0)),\n    "copy": lambda: '
            'shutil.copy(path, path + ".copy"),\n    "copy2": lambda: shutil.copy2(path, path + ".copy"),\n    '
            '"copytree": lambda: shutil.copytree(path, path + ".copy"),\n    "many": lambda: '
            'str({str(attempt(lambda: open(path))) for _ in range(40)}),\n    "names": lambda: '
            "str([attempt(lambda: open(path + str(n))) for n in range(40)][-1]),\n}\nreturn attempt(ways[how])",
        ),
        function_text(
            "returned(path: str) -> str",
            "Go elsewhere and come back with the path.",
            'import contextlib, os\nwith contextlib.chdir(os.environ["TMPDIR"]):\n    '
            'assert os.path.dirname(os.path.abspath("own")) == os.getcwd() == os.path.realpath(os.environ["TMPDIR"])\n'
            "return path",
        ),
        function_text(
            "threaded(act: object) -> list[str]",
            "Do something in a thread, and return the results that there were.",
            "import threading\nresults = []\nthread = threading.Thread(target=lambda: results.append(act()))\n"
            "thread.start()\nthread.join()\nreturn results",
        ),
        function_text(
            "attempt(act: object) -> str",
            "Do something, and tell the error if there is one.",
            'try:\n    return act()\nexcept Exception as error:\n    return f"{type(error).__name__}: {error}"',
        ),
    ]
)


async def tried(room: Room, who: Human | None, path: object, how: str = "open") -> str:
    """Return what a function gets at a path."""
    if not room.letters.exists():
        await room.save(TRIES)
    report = await called(room, who, {"path": str(path), "how": how}, "tries")
    assert report.outcome == "returned", report
    return str(report.value)


READ = ["open", "bytes", "path", "os.open", "absolute", "resolved", "joined", "returned"]


async def test_every_way_to_read_a_file_asks_for_it_even_for_that_of_the_function(
    here: Room, sales: Path
) -> None:
    for how in READ:
        for path, text in (("data/sales.csv", SALES), ("functions/letters.py", TRIES)):
            who = human("once")
            assert (await tried(here, who, path, how))[:80] == text[:80], how
            assert [question.missing.sentences() for question in who.asked] == [[f"read {path}"]], (
                how
            )


async def test_a_no_is_a_permission_error_with_the_sentence_and_never_not_found(
    here: Room, sales: Path
) -> None:
    for how in [*READ, "stat", "exists", "isfile", "Path.exists", "sqlite", "bz2", "access", "uri"]:
        told = await tried(here, human("no"), "data/sales.csv", how)
        assert (
            "PermissionError: `tries` may not: read data/sales.csv. The question was answered with no."
            in told
        ), how
        assert "No such" not in told, how


async def test_what_takes_a_grant_of_the_folder_says_so_and_that_of_the_workspace_is_a_list_of_names(
    here: Room, sales: Path
) -> None:
    for how, verb in (("enter", "read"), ("temporary", "write")):
        told = await tried(here, human("yes"), "data", how)
        assert told.startswith(f"PermissionError: `tries` may not {verb} `data/`"), told
    (here.root / ".env").write_text("")
    for how, path in (("listdir", "."), ("iterdir", "./"), ("listdir", "data/..")):
        who = human("yes")
        names = (await tried(here, who, path, how)).split(",")
        assert [Path(name).name for name in names] == ["data", "functions"], how
        assert [question.missing for question in who.asked] in ([Grants(read=("./",))], []), how
    assert "can never be granted" in await tried(here, human("yes"), ".env/../.knapper", "listdir")
    refused = here.shop.granting.reach.refusal(Grants(write=("./",)), "tries")
    assert "`./` can never be granted for writing" in refused


async def test_a_function_that_hides_a_no_is_reported_with_it(here: Room, sales: Path) -> None:
    await here.save(TRIES)
    for how, path, value in (
        ("walk", "data", "[]"),
        ("glob", "data/*", ""),
        ("thread", "data/sales.csv", "[]"),
    ):
        who = human("no")
        report = await called(here, who, {"path": path, "how": how}, "tries")
        assert (report.value, len(who.asked)) == (value, 1), how
        assert report.lacks.startswith("`tries` may not: read data/"), how


async def test_a_tilde_is_the_home_of_the_user_where_it_is_expanded(
    here: Room, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path_factory.mktemp("own")
    (own / "sales.csv").write_text(SALES)
    monkeypatch.setenv("HOME", str(own))
    for how in ("home", "Path.home"):
        who = human("once")
        assert await tried(here, who, "~/sales.csv", how) == SALES
        (question,) = who.asked
        assert question.missing.sentences() == [f"read {own}/sales.csv (outside the workspace)"]
    told = await tried(here, human("yes"), "~/notes.txt")
    only = "only `os.path.expanduser` turns `~` into the home folder, and it was not called; give the whole path"
    assert only in told


async def test_looking_is_asked_for_too(here: Room, sales: Path) -> None:
    for how, path, gives in (
        ("stat", "data/sales.csv", str(len(SALES))),
        ("exists", "data/sales.csv", "True"),
        ("isfile", "data", "False"),
        ("Path.exists", "data", "True"),
        ("listdir", "data", "1,2,3,sales.csv"),
        ("iterdir", "data", "data/1,data/2,data/3,data/sales.csv"),
        ("walk", "data", "[['1', '2', '3', 'sales.csv']]"),
        ("glob", "data/*.csv", "data/sales.csv"),
        ("exists", "data/none.csv", "False"),
    ):
        assert await tried(here, human("once"), path, how) == gives, (how, path)


PARTS = {
    "listdir": "sales.csv",
    "iterdir": "data/sales.csv",
    "walk": "sales.csv",
    "glob": "data/sales.csv",
}


async def test_a_folder_of_which_a_part_is_granted_is_never_listed_as_if_that_were_all(
    here: Room, sales: Path
) -> None:
    (here.root / "data/mails/old").mkdir(parents=True)
    (here.root / "data/mails/1.eml").write_text("")
    await here.save(TRIES)
    await here.shop.grants.grant("tries", Grants(read=("data/mails/",)))
    for how, name in PARTS.items():
        path = "data/*" if how == "glob" else "data"
        who = human("once")
        assert name in await tried(here, who, path, how), how
        assert [question.missing for question in who.asked] == [Grants(read=("data/",))], how
    names = await tried(here, human("once"), str(here.root), "listdir")
    assert names.split(",") == ["data", "functions"]
    who = human("no")
    assert (await tried(here, who, "data/mails", "listdir")).split(",") == ["1.eml", "old"]
    assert await tried(here, who, "data/mails/old", "listdir") == ""
    assert who.asked == []
    assert "PermissionError" in await tried(here, who, "data", "listdir")
    here.shop.granting.approver = None
    assert "PermissionError" in await tried(here, None, "data", "listdir")


async def test_a_module_is_there_for_each_way_to_look_and_is_asked_for(here: Room) -> None:
    for how, path, gives in (
        ("listdir", "functions", "letters.py"),
        ("walk", "functions", "[['letters.py']]"),
        ("glob", "functions/*", "functions/letters.py"),
        ("stat", "functions/letters.py", str(len(TRIES))),
        ("exists", "functions/letters.py", "True"),
        ("Path.exists", "functions/", "True"),
        ("access", "functions/letters.py", "True"),
    ):
        who = human("once")
        assert await tried(here, who, path, how) == gives, how
        assert len(who.asked) == 1, how


async def test_a_temporary_file_of_another_call_is_said_to_be_that(here: Room) -> None:
    place = function_text(
        "scratch() -> str", "Name scratch.", 'import os\nreturn os.environ["TMPDIR"]'
    )
    await here.save(place, here.root / "functions" / "places.py")
    own = Path(str((await called(here, None, {}, "scratch")).value))
    for how in ("open", "path", "os.open", "stat", "listdir", "write", "mkdir", "remove"):
        who = human("yes")
        told = await tried(here, who, own.parent / "987/tmp/a.txt", how)
        assert "a temporary file is there only for the call or program that made it" in told, how
        assert who.asked == [], how


async def test_writing_is_asked_for_and_done_in_place(here: Room, sales: Path) -> None:
    for how, path, text in (
        ("write", "data/sales.csv", "new"),
        ("append", "data/sales.csv", SALES + "new"),
        ("update", "data/sales.csv", "NEW" + SALES[3:]),
        ("make", "data/made.csv", "new"),
        ("write", "top.csv", "new"),
        ("write", "made/below/top.csv", "new"),
    ):
        (here.root / "data/sales.csv").write_text(SALES)
        who = human("once")
        assert await tried(here, who, path, how) == "3", (how, path)
        assert [question.missing.sentences() for question in who.asked] == [
            [f"read and write {path}"]
        ]
        assert (here.root / path).read_text() == text, (how, path)


async def test_a_new_folder_is_asked_for_and_made_and_filled_without_another_question(
    here: Room, sales: Path
) -> None:
    for how, path in product(["mkdir", "makedirs", "Path.mkdir"], ["made", "data/made"]):
        assert (await tried(here, human("no"), path, how)).startswith(
            "PermissionError: `tries` may not"
        )
        assert not (here.root / path).exists()
        who = human("once")
        assert await tried(here, who, path, how) == "None"
        assert [question.missing.sentences() for question in who.asked] == [
            [f"read and write {path}/"]
        ]
        (here.root / path).rmdir()
    who = human("once")
    assert await tried(here, who, "data/made", "fill") == "3"
    assert (len(who.asked), (here.root / "data/made/a").read_text()) == (1, "new")


async def test_removing_and_renaming_ask_for_the_folder_and_are_done_once_by_the_host(
    here: Room, sales: Path
) -> None:
    deep, old = here.root / "data/deep/er", here.root / "data/sales.csv.old"
    for how in ("remove", "unlink", "rename", "Path.rename", "replace", "move", "rmdir"):
        deep.mkdir(parents=True, exist_ok=True)
        path, folder = (
            ("data/deep/er", "data/deep/") if how == "rmdir" else ("data/sales.csv", "data/")
        )
        assert (await tried(here, human("no"), path, how)).startswith(
            "PermissionError: `tries` may not"
        ), how
        assert (here.root / path).exists(), how
        who = human("once")
        assert "Error" not in await tried(here, who, path, how), how
        assert who.asked[-1].missing.sentences() == [f"read and write {folder}"], how
        assert not (here.root / path).exists(), how
        assert old.exists() == (how in {"rename", "Path.rename", "replace", "move"}), how
        old.unlink(missing_ok=True)
        await asyncio.to_thread(sales.write_text, SALES)


async def test_what_changes_a_folder_otherwise_names_the_grant_that_it_takes(
    here: Room, sales: Path
) -> None:
    deep, file = here.root / "data/deep/er", "data/sales.csv"
    deep.mkdir(parents=True)
    for how, path, folder in (
        ("link", file, "data/"),
        *((how, file, file) for how in ("chmod", "touch", "truncate")),
        ("rmtree", "data/deep", "data/"),
    ):
        told = await tried(here, human("once"), path, how)
        assert told.startswith("PermissionError: `tries` may not write"), (how, told)
        assert told.endswith(f"knapper functions grant tries --write {folder}"), (how, told)
        assert (await asyncio.to_thread(sales.read_text), deep.is_dir()) == (SALES, True), how


async def test_a_file_is_copied_by_two_questions(here: Room, sales: Path) -> None:
    for how in ("copy", "copy2"):
        copy = here.root / "data/sales.csv.copy"
        copy.unlink(missing_ok=True)
        assert await tried(here, human("once"), "data/sales.csv", how) == "data/sales.csv.copy"
        assert copy.read_text() == SALES


async def test_a_yes_for_the_folder_gives_what_lies_in_it_now_and_later(
    here: Room, sales: Path
) -> None:
    who = Human([Decision("yes", is_wide=True)])
    await here.save(SUMS)
    assert (await called(here, who, {"path": "data/sales.csv"})).value == 6.5
    assert who.asked[0].folder == "data/"
    (sales.parent / "more.csv").write_text(SALES)
    assert (await called(here, human("no"), {"path": "data/more.csv"})).value == 6.5


async def test_what_is_not_there_is_not_found_without_a_question(here: Room, sales: Path) -> None:
    ways = [
        *READ,
        "stat",
        "exists",
        "isfile",
        "Path.exists",
        "listdir",
        "glob",
        "access",
        "bz2",
        "copy",
    ]
    for how, path in product(ways, ["data/none.csv", "none.csv", "data/none/at/all.csv"]):
        who = human("no")
        told = await tried(here, who, path, how)
        assert told in ("False", "") or "FileNotFoundError" in told, (how, path, told)
        assert who.asked == [], (how, path)


STAMPS = "\n\n".join(
    [
        "from pathlib import Path\n",
        function_text(
            "stamp(logo: str, chart: str) -> str",
            "Draw a chart with a logo.\n\nArgs:\n    logo: The picture to read.\n    chart: The file to write.",
            'with open(logo) as picture, open(chart, "w") as target:\n    target.write(picture.read())\nreturn chart',
        ),
        function_text(
            "stamp_by_path(logo: Path, chart: str) -> str",
            "Draw a chart with a logo.\n\nArgs:\n    logo: The picture to read.\n    chart: The file to write.",
            "chart = Path(chart)\nif chart.exists():\n    chart.read_text()\nchart.write_text(Path(logo).read_text())\n"
            "return str(chart)",
        ),
        function_text(
            "extend(chart: str) -> str",
            "Add a line to a chart, or begin one.\n\nArgs:\n    chart: The file.",
            "try:\n    before = open(chart).read()\nexcept FileNotFoundError:\n    before = ''\n"
            "with open(chart, 'w') as target:\n    target.write(before + 'x')\nreturn chart",
        ),
        function_text(
            "join(first: str, second: str, to: str) -> str",
            "Join two files.\n\nArgs:\n    first: One.\n    second: The other.\n    to: The file to write.",
            "text = Path(first).read_text() + Path(second).read_text()\nPath(to).write_text(text)\nreturn to",
        ),
        function_text(
            "column(path: str, name: str) -> str",
            "Say what a file begins with.\n\nArgs:\n    path: The file.\n    name: A column.",
            "return open(path).readline() + name",
        ),
    ]
)


async def test_the_files_that_one_call_reads_and_writes_are_one_question(
    here: Room, sales: Path
) -> None:
    for name in ("logo.png", "other.png"):
        (here.root / name).write_text("logo")
    await here.save(STAMPS)
    for name, arguments, asks in (
        ("stamp", ["logo.png", "chart.png"], ["read logo.png", "create chart.png"]),
        ("stamp", ["logo.png", "chart.png"], ["read logo.png", "read and write chart.png"]),
        ("stamp", ["logo.png", "data/chart.png"], ["read logo.png", "create data/chart.png"]),
        ("stamp_by_path", ["logo.png", "new.png"], ["read logo.png", "create new.png"]),
        ("stamp_by_path", ["logo.png", "new.png"], ["read logo.png", "read and write new.png"]),
        ("extend", ["log.txt"], ["create log.txt"]),
        ("extend", ["log.txt"], ["read and write log.txt"]),
        (
            "join",
            ["logo.png", "other.png", "both.png"],
            ["read logo.png", "read other.png", "create both.png"],
        ),
        ("column", ["data/sales.csv", "data"], ["read data/sales.csv"]),
    ):
        who = human("once")
        names = {
            "stamp": "logo chart",
            "stamp_by_path": "logo chart",
            "extend": "chart",
            "column": "path name",
        }
        keys = names.get(name, "first second to").split()
        report = await called(here, who, dict(zip(keys, arguments, strict=True)), name)
        assert report.outcome == "returned", (name, report)
        assert [sorted(question.says) for question in who.asked] == [sorted(asks)], name
    who = human("no")
    report = await called(here, who, {"logo": "logo.png", "chart": "third.png"}, "stamp")
    assert (len(who.asked), (here.root / "third.png").exists()) == (1, False)
    who = Human([Decision("yes", is_wide=True)])
    await called(here, who, {"chart": "data/log.txt"}, "extend")
    await called(here, who, {"chart": "data/next.txt"}, "extend")
    assert [(question.says, question.folder) for question in who.asked] == [
        (["create data/log.txt"], "data/")
    ]


async def test_a_database_is_read_from_a_copy(here: Room, sales: Path) -> None:
    with sqlite3.connect(sales.parent / "shop.db") as shop:
        shop.execute("create table t (x)")
        shop.execute("insert into t values (3), (4)")
    assert await tried(here, human("once"), "data/shop.db", "sqlite") == "7"


async def test_a_no_is_remembered_for_the_call_and_many_paths_are_not_many_questions(
    here: Room, sales: Path
) -> None:
    who = human("no")
    assert "answered with no" in await tried(here, who, "data/sales.csv", "many")
    assert len(who.asked) == 1
    for path in (sales.parent / f"more-{number}" for number in range(40)):
        path.write_text("")
    who = human("no")
    assert "nobody is asked" in await tried(here, who, "data/more-", "names")
    assert len(who.asked) == 5
    who = human("no")  # a function may not find out in one call which of many names there are
    assert "nobody is asked" in await tried(here, who, "data/less-", "names")
    assert len(who.asked) == 5


async def test_what_is_never_granted_is_not_asked_for(here: Room, sales: Path, home: Path) -> None:
    (here.root / "link.csv").symlink_to("/etc/hostname")
    (here.root / "folder").symlink_to("/etc")
    (here.root / "?").write_text("asked")
    own = (
        ".knapper/state.db",
        "data/../.knapper/state.db",
        "link.csv",
        "folder/hostname",
        "?",
        " data/1",
    )
    odd = ("data/\x1b[31mred.csv", "data/\u202evsc.csv", "data/two\nlines.csv")
    system = (
        "/proc/self/environ",
        "/proc/self/mem",
        "/sys/kernel/notes",
        "/dev/zero",
        "/etc/shadow",
    )
    who = human("yes")
    for path in (*own, *odd, *system):
        told = await tried(here, who, path)
        assert told.startswith("PermissionError"), (path, told)
    for kept in (home / "knapper" / "grants.key", Path.home() / ".ssh" / "id_rsa"):
        assert "can never be granted" in await tried(here, who, kept)
    assert who.asked == []


async def test_what_is_no_plain_file_is_refused_and_nothing_waits(here: Room, sales: Path) -> None:
    os.mkfifo(here.root / "data" / "pipe")
    (here.root / "data" / "folder").mkdir()
    for kind, how in product(["pipe", "folder"], ["open", "write"]):
        told = await tried(here, human("once"), f"data/{kind}", how)
        assert "neither a file nor a folder" in told or "IsADirectoryError" in told, told


def swap(file: Path, target: Path) -> None:
    file.unlink()
    file.symlink_to(target)


async def test_a_link_that_comes_between_the_question_and_the_opening_leads_nowhere(
    here: Room, sales: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("secret")

    class Swapping(Human):
        async def __call__(self, question: Question) -> Decision:
            swap(sales, secret)
            return await super().__call__(question)

    told = await tried(here, Swapping([Decision("once")]), "data/sales.csv")
    assert told.startswith("PermissionError")
    assert "secret" not in told


async def test_a_path_is_asked_for_as_it_is_in_truth(
    here: Room, sales: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (here.root / "other.csv").symlink_to(sales)
    (outside := tmp_path_factory.mktemp("elsewhere") / "a.csv").write_text(SALES)
    inside = ("other.csv", "data/./../data/sales.csv", str(sales), f"{here.root}/data//sales.csv")
    for path, asked in (
        *((path, "data/sales.csv") for path in inside),
        (str(outside), f"{outside} (outside the workspace)"),
    ):
        who = human("once")
        assert await tried(here, who, path) == SALES
        assert [question.missing.sentences() for question in who.asked] == [[f"read {asked}"]]


async def test_a_huge_file_is_read_in_pieces(here: Room, sales: Path) -> None:
    with sales.open("wb") as file:
        file.truncate(3 << 30)
    code = (
        TRIES.replace('"open": lambda: open(path).read()', '"open": lambda: str(last(path))') + LAST
    )
    await here.save(code)
    report = await called(here, human("once"), {"path": "data/sales.csv"}, "tries")
    assert report.value == f"{3 << 30} 1"


LAST = '''

def last(path: str) -> str:
    """Look at the end of a file."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(-1, 2)
        return f"{size} {len(file.read())}"
'''
WORKER = function_text(
    "forges(kind: str) -> str",
    "Send the host what no file sends.",
    'import io\nasks = io.open.asks._channel\nasked = {"path": "data/sales.csv", "mode": "rw"}\nrequests = {\n    '
    '"mode": ("file_open", asked),\n    "stream": ("file_read", {"stream": 1, "at": 0, "size": 9}),\n    '
    '"write": ("file_write", {"stream": 1, "at": 0, "data": b"x"}),\n    '
    '"path": ("file_open", {"path": 7, "mode": "r"}),\n    '
    '"nul": ("file_open", {"path": "data/\\\\0", "mode": "r"}),\n    '
    '"dropped": ("file_stat", {"path": "/proc", "dropped": [None, "x", 5]}),\n    '
    '"list": ("file_list", {"path": "..", "dropped": 3}),\n}\ntry:\n    return str(asks.request(*requests[kind]))\n'
    'except Exception as error:\n    return f"{type(error).__name__}: {error}"',
)


async def test_forged_requests_get_nothing(here: Room, sales: Path) -> None:
    await here.save(WORKER)
    for kind in ("mode", "stream", "write", "path", "nul", "list"):
        report = await called(here, human("no"), {"kind": kind}, "forges")
        assert str(report.value).startswith(
            "{'errno': 'ENOENT'}" if kind == "path" else "PermissionError"
        ), kind


async def test_code_that_goes_around_the_question_finds_nothing(here: Room, sales: Path) -> None:
    code = TRIES.replace("open(path).read()", "__import__('io').open.asks.open(path).read()")
    await here.save(code)
    who = human("yes")
    report = await called(here, who, {"path": str(sales)}, "tries")
    assert str(report.value).startswith(("FileNotFoundError", "PermissionError"))
    assert who.asked == []


FIXTURES = SUMS.replace(
    """        The sum.
""",
    """        The sum.

    Examples:
        >>> table = self.scratch / "sales.csv"
        >>> size = table.write_text("day,amount\\\\n1,2.5\\\\n2,4\\\\n")
        >>> csv_sum(str(table))
        6.5
        >>> size = table.write_text("day,amount\\\\n1,1\\\\n")
        >>> csv_sum(str(table))
        1.0
""",
)
NAMED = SUMS.replace(
    "        The sum.\n", '        The sum.\n\n    >>> csv_sum("data/sales.csv")\n    6.5\n'
)


@pytest.mark.parametrize(
    ("text", "standing"),
    [(SUMS, "draft"), (NAMED, "draft"), (FIXTURES, "trial")],
    ids=["none", "not run", "fixtures"],
)
async def test_a_function_with_a_path_joins_without_a_question(
    here: Room, sales: Path, text: str, standing: str
) -> None:
    who = here.shop.granting.approver = human("no")
    verdict = await here.shop.create("csv_sum", text, "sums", author=AGENT)
    assert (verdict.admitted, verdict.standing) == (True, standing), verdict.document["problems"]
    assert who.asked == []


async def test_an_example_that_lacks_a_file_names_the_grant_and_runs_with_it(
    here: Room, sales: Path
) -> None:
    await here.save(NAMED)
    (example,) = (tested := await here.shop.test("csv_sum")).examples
    assert example.unrun.startswith("it opens `data/sales.csv`, which is not granted.")
    assert example.unrun.endswith("knapper functions grant csv_sum --read data/sales.csv")
    told = tested.to_json()["examples"][0]
    assert (told["passed"], told["unrun"]) == (False, example.unrun)
    await here.shop.grants.grant("csv_sum", Grants(read=("data/",)))
    tested = await here.shop.test("csv_sum")
    assert [example.agreed for example in tested.examples] == [True], tested


async def test_examples_read_what_was_granted_and_write_nothing(here: Room, sales: Path) -> None:
    text = (
        NAMED.replace("        return", "        total =")
        + '    open(path, "w").close()\n    return total\n'
    )
    await here.save(text)
    await here.shop.grants.grant("csv_sum", Grants(write=("data/",)))
    (example,) = (await here.shop.test("csv_sum")).examples
    coverage = (await here.shop.introspect("csv_sum")).coverage
    assert (here.root / "data" / "sales.csv").read_text() == SALES
    assert not example.agreed
    assert coverage.missed == (text.splitlines().index("    return total") + 1,), coverage


ENTERS = '''\
import os


def names(folder: str) -> list[str]:
    """List a folder.

    >>> names("data/")
    ['1', '2', '3', 'sales.csv']
    """
    os.chdir(folder)
    return sorted(os.listdir("."))
'''


async def test_an_example_that_may_not_enter_a_granted_folder_says_so(
    here: Room, sales: Path
) -> None:
    await here.save(ENTERS)
    await here.shop.grants.grant("names", Grants(read=("data/",)))
    (example,) = (await here.shop.test("names")).examples
    assert example.agreed != IS_PORTABLE
    assert ("not enter them: name the file by its whole path" in str(example)) == IS_PORTABLE


async def test_what_an_example_calls_reads_no_file_that_was_granted_to_its_function(
    here: Room, sales: Path
) -> None:
    docstring = '"""Add up a file twice.\n\n    >>> both("data/sales.csv")\n    13.0\n    """'
    reader = f'def both(self, path: str) -> float:\n    {docstring}\n    return 2 * self.call("csv_sum", path=path)\n'
    await here.save(f"{SUMS}\n\n{reader}")
    await here.shop.grants.grant("both", Grants(read=("data/",)))
    (example,) = (await here.shop.test("both")).examples
    assert (
        example.unrun == "`csv_sum` opens `data/sales.csv`, and what an example calls has no grants"
    )


CALLS = "\n\n".join(
    [
        function_text(
            "twice(self, number: int) -> int",
            "Double a number by another function.\n\nArgs:\n    number: The number.\n\nExamples:\n    "
            '>>> twice(2)\n    4\n    >>> self.call("double", number=5)\n    10',
            'return self.call("double", number=number)',
        ),
        function_text(
            "news(self, topic: str) -> str",
            "Fetch the news.\n\nArgs:\n    topic: What about.\n\nExamples:\n    >>> news(\"rain\")\n    'wet'",
            'return self.fetch(f"http://localhost/{topic}").text()',
        ),
    ]
)


async def test_an_example_calls_other_functions_and_one_without_its_network_did_not_run(
    here: Room,
) -> None:
    await here.save(PLAIN, here.root / "functions" / "plain.py")
    await here.save(CALLS, here.root / "functions" / "calls.py")
    assert [example.agreed for example in (await here.shop.test("twice")).examples] == [True, True]
    (example,) = (await here.shop.test("news")).examples
    assert example.unrun == "`self.fetch` reaches what an example does not have"


async def test_the_starters_say_what_is_in_a_folder_and_in_a_file_after_one_yes_each(
    here: Room, sales: Path
) -> None:
    text = (Path(__file__).parents[2] / "functions" / "files.py").read_text("utf-8")
    await here.save(text, here.root / "functions" / "files.py")
    for name in (".env", "knapper.toml", "notes.txt"):
        (here.root / name).write_text("")
    (here.root / "away").symlink_to("/etc")
    (sales.parent / ".hidden").write_text("")
    who = human("yes")
    names = ["away@", "data/", "functions/", "notes.txt"]
    for path in ("", ".", str(here.root)):
        assert (await called(here, who, {"path": path}, "list_folder")).value == names, path
    assert (await called(here, who, {"path": "data"}, "list_folder")).value == [
        "1",
        "2",
        "3",
        "sales.csv",
    ]
    assert (await called(here, who, {"path": "data/sales.csv"}, "read_text")).value == SALES
    asked = [question.missing for question in who.asked]
    assert asked == [
        Grants(read=("./",)),
        Grants(read=("data/",)),
        Grants(read=("data/sales.csv",)),
    ]
    for path in ("away", "..", ".knapper"):
        report = await called(here, who, {"path": path}, "list_folder")
        assert "can never be granted" in (report.error.message if report.error else ""), path
    assert len(who.asked) == 3
