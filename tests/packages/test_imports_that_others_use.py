"""An import counts for the functions that use it: no other is asked for it, and no other has it in its worker."""

import re
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants import Grants
from tests.grants.support import AGENT, Human, human
from tests.kit.sources import function_text
from tests.packages.support import ABACUS as ABACUS_FILES
from tests.packages.support import BEADS, placed

pytestmark = pytest.mark.usefixtures("lent")
ABACUS = Grants(packages=("abacus",))
READ = "import abacus\n\n\n" + function_text(
    "read_sums(text: str) -> list[int]",
    "Read the sums of a text, one a line.\n\nArgs:\n    text: Numbers, a line for each sum.",
    "return [abacus.total(map(int, line.split())) for line in text.splitlines()]",
    "read_sums('1 2\\\\n3') → [3, 3]",
    'read_sums("") → []',
)
SHOPS = function_text(
    "largest_sum(text: str) -> int",
    "Return the largest sum of a text.\n\nArgs:\n    text: Numbers, a line for each sum.",
    "return max(read_sums(text), default=0)",
    "largest_sum('1 2\\\\n4') → 4",
    'largest_sum("") → 0',
)
COUNTS = function_text(
    "count_days(rows: list[str]) -> dict[str, int]",
    "Count the rows of each day.\n\nArgs:\n    rows: Rows that begin with a day.",
    "found = {}\nfor row in rows:\n    found[row[:2]] = found.get(row[:2], 0) + 1\nreturn found",
    "count_days(['mo a', 'mo b']) → {'mo': 2}",
    "count_days(['tu a']) → {'tu': 1}",
)
JOINED = function_text(
    "join_names(names: list[str]) -> str",
    "Join names by a comma.\n\nArgs:\n    names: Names.",
    'return ", ".join(sorted(names))',
    "join_names(['b', 'a']) → 'a, b'",
    "join_names([]) → ''",
)


def saved(root: Path, **files: str) -> list[Path]:
    """Save files as a human does; two underlines in a name stand for a folder."""
    (root / "knapper.toml").touch()
    paths = [
        root / "functions" / f"{name.replace('__', '/', 1) if name[0] != '_' else name}.py"
        for name in files
    ]
    for path, text in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return paths


def asked_for(who: Human) -> list[tuple[str, Grants]]:
    """Return the function and the missing grants of each question."""
    return [(question.function, question.missing) for question in who.asked]


async def test_what_only_computes_is_not_asked_for_the_reader_beside_it_nor_when_that_changes(
    ready: Path,
) -> None:
    (file,) = saved(ready, readers=READ)
    saved(ready, shops="from functions.readers import read_sums\n\n\n" + SHOPS + "\n\n" + COUNTS)
    who = human("yes")
    async with Workspace.open(ready, approver=who) as workspace:
        shop = workspace.functions
        assert {row.name: row.standing for row in (await shop.list()).functions}[
            "count_days"
        ] == "trial"
        assert (await shop.call("count_days", {"rows": ["mo"]})).value == {"mo": 1}
        assert who.asked == []
        assert (await shop.call("largest_sum", {"text": "1 2\n4"})).value == 4
        file.write_text(READ.replace("line.split()", "line.strip().split()"))
        await shop.saved([file])
        assert (await shop.call("count_days", {"rows": ["tu"]})).value == {"tu": 1}
        assert asked_for(who) == [("largest_sum", ABACUS)]
        assert (await shop.call("largest_sum", {"text": "1 2\n5"})).value == 5
    assert asked_for(who) == [("largest_sum", ABACUS)] * 2


async def test_the_worker_of_what_only_computes_has_neither_the_package_nor_the_reader(
    ready: Path,
) -> None:
    spying = COUNTS.replace(
        "    found = {}\n", "    import sys\n    return {name: 1 for name in sys.modules}\n"
    )
    text = "from functions.readers import read_sums\n\n\n" + SHOPS + "\n\n" + spying
    saved(ready, readers=READ, shops=text)
    async with Workspace.open(ready, approver=human("yes")) as workspace:
        shop = workspace.functions
        theirs = (await shop.call("count_days", {"rows": []})).value
        assert isinstance(theirs, dict)
        assert theirs.keys().isdisjoint({"abacus", "beads", "functions.readers"}), theirs
        assert "functions.shops" in theirs


async def test_a_library_grows_with_one_question_for_the_function_that_reads(ready: Path) -> None:
    who = human("yes")
    async with Workspace.open(ready, approver=who) as workspace:
        shop = workspace.functions
        for name, code, module in (
            ("count_days", COUNTS, "shops"),
            ("read_sums", READ, "readers"),
            ("largest_sum", SHOPS, "shops"),
            ("join_names", JOINED, "shops"),
        ):
            verdict = await shop.create(name, code, module, author=AGENT)
            assert verdict.admitted, verdict.problems
        changed = JOINED.replace('", ".join(sorted(names))', '", ".join(sorted({*names}))')
        assert (await shop.replace("join_names", changed, author=AGENT)).admitted
        for name, arguments in (("count_days", {"rows": ["mo"]}), ("join_names", {"names": ["a"]})):
            assert (await shop.call(name, arguments)).outcome == "returned"
        assert (await shop.call("largest_sum", {"text": "7"})).value == 7
    assert asked_for(who) == [("read_sums", ABACUS)]


async def test_a_function_with_a_package_joins_beside_functions_without_it(ready: Path) -> None:
    who = human("yes")
    async with Workspace.open(ready, approver=who) as workspace:
        shop = workspace.functions
        assert (await shop.create("count_days", COUNTS, "tables", author=AGENT)).admitted
        verdict = await shop.create("read_sums", READ, "tables", author=AGENT)
        assert verdict.admitted, verdict.problems
        assert (await shop.call("count_days", {"rows": ["mo"]})).value == {"mo": 1}
        assert (await shop.call("read_sums", {"text": "1 2"})).value == [3]
    assert asked_for(who) == [("read_sums", ABACUS)]


READER = (
    "import abacus\n\n\ndef read_sum(text: str) -> int:\n    return abacus.total([len(text)])\n\n\n"
)
TIDY = "def tidy(text: str) -> str:\n    return text.strip()\n\n\n"
QUIET = "def quiet(text: str) -> str:\n    return text.strip()\n\n\n"
LOUD = "def loud(text: str) -> int:\n    return read_sum(text)\n\n\n"
# Files by module, of which `quiet` is not asked for the package: it has no import that it does not use.
UNASKED = {
    "an import of the package": {
        "shop": f"import abacus\n\n\n{QUIET}{LOUD.replace('read_sum(text)', 'abacus.total([1])')}"
    },
    "a name of the package": {
        "shop": f"from abacus import total as t\n\n\n{QUIET}{LOUD.replace('read_sum(text)', 't([1])')}"
    },
    "two names of a module in one import": {
        "tools": READER + TIDY,
        "shop": f"from functions.tools import read_sum, tidy\n\n\n{QUIET.replace('text.strip()', 'tidy(text)')}{LOUD}",
    },
    "names over several lines, with a comment": {
        "tools": READER + TIDY,
        "shop": "from functions.tools import (  # both\n    read_sum,\n    tidy,\n)\n\n\n"
        + QUIET.replace("text.strip()", "tidy(text)")
        + LOUD,
    },
    "statements on one line": {
        "tools": READER,
        "shop": f"END = 'é'; from functions.tools import read_sum; MARK = '!'\n\n\n{QUIET}{LOUD}".replace(
            "text.strip()", "(text + END + MARK).strip(END + MARK)"
        ),
    },
    "a package and a module of Python in one import": {
        "shop": "import abacus, string\n\n\n"
        + QUIET.replace("strip()", "strip(string.whitespace)")
        + LOUD.replace("read_sum(text)", "abacus.total([1])"),
    },
    "an import within a package": {
        "stores__readers": READER,
        "stores__rows": f"from .readers import read_sum\n\n\n{QUIET}{LOUD}",
    },
    "a package that passes names on": {
        "stores__readers": READER,
        "stores__words": TIDY,
        "stores____init__": "from .readers import read_sum\nfrom .words import tidy\n\n"
        "__all__ = ['read_sum', 'tidy']\n",
        "shop": "from functions.stores import tidy\n\n\n"
        + QUIET.replace("text.strip()", "tidy(text)"),
    },
    "modules that import each other": {
        "tools": READER + "def loud(text: str) -> int:\n    from functions.shop import quiet\n\n"
        "    return read_sum(quiet(text))\n",
        "shop": f"from functions.tools import loud\n\n\n{QUIET}def louder(text: str) -> int:\n    return loud(text)\n",
    },
    "a module between": {
        "tools": READER,
        "middle": "from functions.tools import read_sum\n\n\n" + TIDY + LOUD,
        "shop": "from functions.middle import loud, tidy\n\n\n"
        + QUIET.replace("text.strip()", "tidy(text)")
        + "def louder(text: str) -> int:\n    return loud(text)\n",
    },
    "an annotation, in quotes or not": {
        "shop": f"from abacus import Frame, Bead\n\n\n{QUIET}"
        "def loud(frame: Frame, bead: 'Bead | None' = None) -> int:\n    return 1\n",
    },
    "an example of another": {
        "tools": READER,
        "shop": f"from functions.tools import read_sum\n\n\n{QUIET}"
        'def loud(size: int) -> int:\n    """Return a size.\n\n'
        '    >>> loud(read_sum("a"))\n    1\n    """\n    return size\n',
    },
}
# Those that are asked for it: the import is used, or it runs for all.
ASKED = {
    "a helper that it calls": {
        "tools": READER,
        "shop": "from functions.tools import read_sum\n\n\ndef _more(text):\n    return text * read_sum('a')\n\n\n"
        + QUIET.replace("text.strip()", "_more(text)"),
    },
    "an import that nothing uses": {"shop": f"import abacus\n\n\n{QUIET}"},
    "a module that nothing uses": {"tools": READER, "shop": f"import functions.tools\n\n\n{QUIET}"},
    "a star": {"tools": READER, "shop": f"from functions.tools import *\n\n\n{QUIET}{LOUD}"},
    "a whole module that it uses": {
        "tools": READER + TIDY,
        "shop": "import functions.tools as t\n\n\n" + QUIET.replace("text.strip()", "t.tidy(text)"),
    },
    "a decorator of another": {
        "shop": f"import abacus\n\n\n{QUIET}@abacus.counted\ndef loud(text: str) -> str:\n    return text\n"
    },
    "a default of another": {
        "shop": f"import abacus\n\n\n{QUIET}def loud(size: int = abacus.SIZE) -> int:\n    return size\n"
    },
    "a base of a class": {
        "shop": f"import abacus\n\n\n{QUIET}class Mine(abacus.Frame):\n    pass\n"
    },
    "a value that is computed at the top": {
        "shop": f"import abacus\n\nSIZE = abacus.total([1])\n\n\n{QUIET}"
    },
    "an example of its own": {
        "tools": READER,
        "shop": 'from functions.tools import read_sum\n\n\ndef quiet(text: str) -> str:\n    """Return a text.\n\n'
        "    >>> quiet('a' * read_sum('a'))\n    'a'\n    \"\"\"\n    return text\n",
    },
    "a local name that is the same": {
        "shop": "import abacus\n\n\ndef quiet(text: str) -> str:\n    abacus = text\n    return abacus\n\n\n"
        + LOUD.replace("read_sum(text)", "abacus.total([1])"),
    },
}


@pytest.mark.parametrize("shapes", [UNASKED, ASKED], ids=["unasked", "asked"])
async def test_who_uses_an_import_is_asked_for_it_and_nobody_else(
    index: Path, root: Path, shapes: dict[str, dict[str, str]]
) -> None:
    more = "SIZE = 1\n\n\nclass Frame:\n    pass\n\n\nclass Bead:\n    pass\n\n\ndef counted(each):\n    return each\n"
    placed(
        root,
        "abacus",
        files=ABACUS_FILES
        | BEADS
        | {"abacus/__init__.py": ABACUS_FILES["abacus/__init__.py"] + more},
    )
    for at, files in enumerate(shapes.values()):
        saved(
            root, **{_numbered(module, at): _numbered(text, at) for module, text in files.items()}
        )
    asked, values = dict[str, list[Grants]](), dict[str, object]()
    for at, shape in enumerate(shapes):
        who = human("yes")
        async with Workspace.open(root, approver=who) as workspace:
            report = await workspace.functions.call(f"quiet{at}", {"text": "a"})
        values[shape] = report.value if report.outcome == "returned" else report
        asked[shape] = [question.missing for question in who.asked]
    assert values == dict.fromkeys(shapes, "a")
    assert asked == dict.fromkeys(shapes, [ABACUS] if shapes is ASKED else [])


def _numbered(text: str, number: int) -> str:
    """Return a text whose modules and functions are those of one shape alone."""
    words = r"\b(tools|shop|middle|stores|quiet|louder|loud|read_sum|tidy)(?=\b|__)"
    return re.sub(words, lambda match: f"{match[1]}{number}", text)


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_an_import_goes_with_the_last_function_that_uses_it(
    ready: Path, is_deleted: bool
) -> None:
    who = human("yes")
    async with Workspace.open(ready, approver=who) as workspace:
        shop = workspace.functions
        for name, code, module in (
            ("read_sums", READ, "readers"),
            ("count_days", COUNTS, "shops"),
            ("largest_sum", SHOPS, "shops"),
        ):
            assert (await shop.create(name, code, module, author=AGENT)).admitted
        if is_deleted:
            await shop.delete("largest_sum", author=AGENT)
        else:
            plain = SHOPS.replace(
                "read_sums(text)", "[sum(map(int, line.split())) for line in text.splitlines()]"
            )
            verdict = await shop.replace(
                "largest_sum", plain, author=AGENT, reason="It needs no reader."
            )
            assert verdict.admitted, verdict.problems
        asked = len(who.asked)
        assert (await shop.call("count_days", {"rows": ["mo"]})).value == {"mo": 1}
    assert "import" not in (ready / "functions" / "shops.py").read_text()
    assert who.asked[asked:] == []


async def test_an_import_that_another_module_takes_from_it_stays(ready: Path) -> None:
    text = "from functions.readers import read_sums\n\n\n" + SHOPS + "\n\n" + COUNTS
    saved(
        ready,
        readers=READ,
        shops=text,
        sums="from functions.shops import read_sums\n\n\n"
        + LOUD.replace("sum(", "sums(").replace("int:", "list[int]:"),
    )
    async with Workspace.open(ready, approver=human("yes")) as workspace:
        await workspace.functions.delete("largest_sum", author=AGENT)
        assert "import read_sums" in (ready / "functions" / "shops.py").read_text()
        assert (await workspace.functions.call("loud", {"text": "1 2"})).value == [3]
