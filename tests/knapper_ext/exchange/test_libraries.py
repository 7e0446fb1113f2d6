"""`functions import`: a library is imported whole, each function is judged in its place, and a rerun is possible."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.workspace.workspace import Workspace
from benchmarks.bulk import made
from knapper_ext.exchange.library import (
    ImportedFunction,
    ImportReport,
    ImportRequest,
    import_library,
)
from tests.functions.support import CLAMP, Room
from tests.kit.desk import VOWELS
from tests.kit.sources import function_text

SLUG = function_text(
    "slug(title)",
    "Make a title fit for an address.\n\n:param title: What to turn.",
    'return MARK.sub("-", title.lower()).strip("-")',
    "slug(\"Hello, World\") → 'hello-world'",
    "slug(\"A b\") → 'a-b'",
)
TEXT = f'''"""Helpers for text."""

import re
import memgpt

MARK = re.compile(r"[^a-z0-9]+")
SPARE = 3  # which nothing needs


# The one that most use.
{SLUG}

def _shout(text):
    return text.upper()


def loud(title: str) -> str:
    """Shout a slug.

    Args:
        title: What to shout.

    >>> loud("a b")
    'A-B'
    >>> loud("x")
    'X'
    """
    return _shout(slug(title))
'''
HOLLOW = "\n\n" + "\n\n".join(
    [
        function_text(
            "later(text: str) -> str",
            "Do it.\n\nArgs:\n    text: What.",
            "raise NotImplementedError",
        ),
        function_text(
            "needs_later(text: str) -> str",
            "Do it.\n\nArgs:\n    text: What.",
            'return later(text) + "!"',
        ),
    ]
)
USER = "from helpers.text import slug\nfrom helpers import _shared\n\n\n" + function_text(
    "shown(title: str) -> str",
    "Show a slug.\n\nArgs:\n    title: What to show.",
    'return _shared.OPEN + slug(title) + ">"',
    "shown(\"a b\") → '<a-b>'",
    "shown(\"x\") → '<x>'",
)


async def taken(here: Room, path: Path, **options: Any) -> ImportReport:
    rows: list[ImportedFunction] = []
    report = await import_library(
        here.shop, ImportRequest(path, **options), rows.append, lambda _: None
    )
    assert sorted(row.name for row in rows) == sorted(row.name for row in report.functions)
    return report


def outcomes(report: ImportReport) -> dict[str, str]:
    return {row.name: row.outcome for row in report.functions}


def codes(report: ImportReport, name: str) -> set[str]:
    (row,) = [row for row in report.functions if row.name == name]
    return {one.code for one in row.problems if one.severity == "refuses"}


def a_library(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "lib" / name).write_text(text)
    return root / "lib"


async def test_a_module_that_is_admitted_whole_keeps_the_authors_text(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, a_library(tmp_path, {"text.py": TEXT}))
    assert outcomes(report) == {"slug": "fixed", "loud": "joined"}
    written = (here.root / "functions" / "text.py").read_text()
    above, _, below = written.partition("# The one that most use.\n")
    assert above == TEXT.partition("# The one")[0].replace("import memgpt\n", "\n")
    assert below.endswith(TEXT.partition("def _shout")[1] + TEXT.partition("def _shout")[2])
    history = await here.store.module_history("text")
    assert [(row.by, row.reason) for row in history] == [("human", "imported from lib")]
    assert {row.standing for row in report.functions} == {"trial"}


async def test_what_is_refused_stays_in_its_file_and_is_not_offered_nor_is_what_needs_it(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, a_library(tmp_path, {"text.py": TEXT + HOLLOW}))
    assert outcomes(report) == {
        "slug": "fixed",
        "loud": "joined",
        "later": "refused",
        "needs_later": "refused",
    }
    assert "not-implemented" in codes(report, "later")
    assert codes(report, "needs_later") == {"needs-refused"}
    written = (here.root / "functions" / "text.py").read_text()
    assert "SPARE = 3" in written
    assert written.endswith(HOLLOW.lstrip("\n"))
    assert '__all__ = ["slug", "loud"]' in written
    assert here.shop.names() == ["loud", "slug"]
    places = [
        one.where.line for row in report.functions if row.name == "later" for one in row.problems
    ]
    assert all(line > TEXT.count("\n") for line in places)


async def test_modules_that_use_each_other_join_with_the_helpers_that_they_need(
    here: Room, tmp_path: Path
) -> None:
    files = {
        "helpers/__init__.py": "",
        "helpers/text.py": TEXT,
        "helpers/_shared.py": 'OPEN = "<"\n',
        "helpers/_unused.py": "OTHER = 1\n",
        "app/page.py": USER,
        "tests/test_page.py": "def test_x():\n    pass\n",
    }
    report = await taken(here, a_library(tmp_path, files), prefix="taken")
    assert set(outcomes(report).values()) == {"joined", "fixed"}, report
    modules = [row.module for row in report.modules]
    assert sorted(modules) == [
        "taken.app.page",
        "taken.helpers._shared",
        "taken.helpers._unused",
        "taken.helpers.text",
    ]
    (page,) = [row for row in report.modules if row.module == "taken.app.page"]
    assert "-from helpers.text import slug\n" in page.diff
    assert "+from ..helpers.text import slug\n" in page.diff
    assert (here.root / page.path).read_text() == USER.replace("from helpers", "from ..helpers")
    assert [row.code for row in report.files] == ["passed-over"]
    called = await here.shop.call("shown", {"title": "A b"})
    assert called.value == "<a-b>"


async def test_an_import_can_be_run_again_and_overwrites_nothing(
    here: Room, tmp_path: Path
) -> None:
    library = a_library(tmp_path, {"text.py": TEXT})
    await taken(here, library)
    before = (here.root / "functions" / "text.py").read_text()
    assert outcomes(await taken(here, library)) == {"slug": "skipped", "loud": "skipped"}
    more = TEXT + "\n\n" + VOWELS
    (library / "text.py").write_text(more.replace("Shout a slug", "Shout a slug very"))
    again = await taken(here, library)
    assert outcomes(again) == {"slug": "skipped", "loud": "refused", "count_vowels": "joined"}
    assert codes(again, "loud") == {"name-taken"}
    after = (here.root / "functions" / "text.py").read_text()
    assert after.startswith(before)
    assert "very" not in after


async def test_a_name_that_is_there_already_is_told_and_stays(here: Room, tmp_path: Path) -> None:
    await here.save(VOWELS)
    other = VOWELS.replace("aeiou", "aeiouy")
    report = await taken(here, a_library(tmp_path, {"a.py": other, "b.py": TEXT, "c.py": TEXT}))
    assert codes(report, "count_vowels") == {"name-taken"}
    assert (outcomes(report)["b_slug"], outcomes(report)["b_loud"]) == ("fixed", "fixed")
    assert codes(report, "c_slug") == {"copy"}
    assert here.letters.read_text() == VOWELS
    assert not (here.root / "functions" / "a.py").exists()


CALENDAR = (
    '"""A calendar.\n\n>>> days(2)\nYEAR\n"""\n\n__all__ = ["days", "leap"]\n\n\n'
    + "\n\n".join(
        [
            function_text(
                "days(years, *, leap=0)",
                "Return the days of some years.",
                "return sum(map(lambda days: days, [LENGTH] * years)) + leap",
                "days(1) → LENGTH",
                "days(0, leap=leap(3)) → 0",
                "days(2) → YEAR",
            ),
            function_text(
                "leap(year)",
                "Return 1 for a year with a day more.",
                "return int(year % BASE == days(0))",
                "leap(BASE) → 1",
                "[leap(days(0) + year) for year in (1,)] → [0]",
                "leap(1) → 0",
                "leap(2 * BASE) → 1",
            ),
        ]
    )
)
REPORT = "from . import moon\nfrom .sun import days, leap as is_leap\n\n\n" + function_text(
    "compare(years)",
    "Return the days of both calendars.",
    "return moon.days(years), days(years, leap=is_leap(1))",
    "compare(1) → (354, 365)",
    "compare(2) → (708, 730)",
)


async def test_functions_of_one_name_in_several_modules_join_under_their_modules_names(
    here: Room, tmp_path: Path
) -> None:
    moon = CALENDAR.replace("LENGTH", "354").replace("YEAR", "708").replace("BASE", "30")
    sun = CALENDAR.replace("LENGTH", "365").replace("YEAR", "730").replace("BASE", "4")
    files = {"cal/__init__.py": "", "cal/moon.py": moon, "cal/sun.py": sun, "cal/report.py": REPORT}
    library = a_library(tmp_path, files)
    report = await taken(here, library)
    names = {"moon_days", "moon_leap", "sun_days", "sun_leap", "compare"}
    assert outcomes(report) == {**dict.fromkeys(names, "fixed"), "compare": "joined"}, report
    (fix,) = [row.fixes[0] for row in report.functions if row.name == "sun_leap"]
    assert "`sun_leap`" in fix.message
    assert "-def leap(year):\n+def sun_leap(year):" in fix.diff
    written = (here.root / "functions" / "cal" / "moon.py").read_text()
    assert '__all__ = ["days", "leap", "moon_days", "moon_leap"]' in written
    assert "sum(map(lambda days: days, [354] * years)) + leap" in written
    assert "    >>> moon_days(0, leap=leap(3))\n" in written
    assert "days = moon_days  # its name in the library\n" in written
    assert (await here.shop.call("compare", {"years": 3})).value["v"] == [1062, 1095]
    assert set(outcomes(await taken(here, library)).values()) == {"skipped"}


async def test_a_file_that_is_there_and_in_nobodys_use_is_not_written_over(
    here: Room, tmp_path: Path
) -> None:
    (target := here.root / "functions" / "text.py").write_text("def broken(:\n")
    report = await taken(here, a_library(tmp_path, {"text.py": TEXT}))
    assert set(outcomes(report).values()) == {"refused"}
    assert codes(report, "slug") == {"not-written"}
    assert target.read_text() == "def broken(:\n"


async def test_a_dry_run_says_the_same_and_writes_nothing(here: Room, tmp_path: Path) -> None:
    library = a_library(
        tmp_path,
        {"text.py": TEXT + HOLLOW, "page.py": USER.replace("helpers.", "").partition("\n")[0]},
    )
    tried = await taken(here, library, dry_run=True)
    assert (here.leftovers(), here.shop.names()) == ([], [])
    assert outcomes(tried) == outcomes(await taken(here, library))


CIRCLE = '''def {0}(n: int) -> bool:
    """Say whether a number is {0}.

    >>> {0}(3)
    {2}
    >>> {0}(4)
    {3}
    """
    return {4} if n == 0 else {1}(n - 1)
'''
EVEN, ODD = (
    CIRCLE.format("even", "odd", False, True, True),
    CIRCLE.format("odd", "even", True, False, False),
)


async def test_of_functions_that_call_each_other_each_is_offered_for_what_it_shows_itself(
    here: Room, tmp_path: Path
) -> None:
    text = f"{EVEN}\n\n{ODD}".replace("odd(4)\n    False", "odd(4)\n    True")
    report = await taken(here, a_library(tmp_path, {"parity.py": text}))
    assert outcomes(report) == {"even": "joined", "odd": "refused"}
    assert (await here.shop.call("even", {"n": 5})).value is False


async def test_modules_that_load_in_the_order_of_their_package_alone_join_together(
    here: Room, tmp_path: Path
) -> None:
    files = {
        "parity/__init__.py": "from .tally import *\n",
        "parity/tally.py": f"from .odd import odd\n\n\n{CLAMP}",
        "parity/odd.py": f"LAST = False\n\nfrom .even import even\n\n\n{ODD}",
        "parity/even.py": "from .odd import LAST\n\n\n"
        + EVEN.replace(
            "    return True if n == 0 else odd(n - 1)".strip(), "return (n % 2 == 0) is not LAST"
        ),
    }
    report = await taken(here, a_library(tmp_path, files))
    assert outcomes(report) == dict.fromkeys(("clamp", "odd", "even"), "joined"), report
    answers = [await here.shop.call(name, {"n": 4}) for name in ("even", "odd")]
    assert [answer.value for answer in answers] == [True, False], answers


THINKS = CLAMP.replace("clamp(value", "clamp(self, value", 1).replace(
    "    if value", '    self.interface.internal_monologue("hm")\n    if value'
)


@pytest.mark.parametrize(
    ("is_fixed", "outcome", "diffs"),
    [
        pytest.param(True, "fixed", ['-    self.interface.internal_monologue("hm")\n+    self.progress(0, note="hm")'],
                     id="on"),
        pytest.param(False, "refused", [], id="off"),
    ],
)  # fmt: skip
async def test_what_is_mapped_for_another_agents_self_is_shown_and_can_be_switched_off(
    tmp_path: Path, is_fixed: bool, outcome: str, diffs: list[str]
) -> None:
    library = a_library(tmp_path, {"a.py": THINKS})
    (tmp_path / "here").mkdir()
    async with Workspace.open(tmp_path / "here", flags={"gate.fixes": is_fixed}) as workspace:
        report = await import_library(
            workspace.functions, ImportRequest(library), lambda _: None, lambda _: None
        )
    (row,) = report.functions
    assert (row.outcome, [one.diff for one in row.fixes if one.code == "context"]) == (
        outcome,
        diffs,
    )
    assert ("foreign-context" in codes(report, "clamp")) is not is_fixed


async def test_methods_that_are_left_behind_are_counted_by_class(
    here: Room, tmp_path: Path
) -> None:
    needed = "class Held:\n    def get(self) -> int:\n        return 0\n"
    agent = "class Agent:\n    def send(self) -> None:\n        pass\n\n    def _own(self) -> None:\n        pass\n"
    more = "\n    async def search(self) -> None:\n        pass\n"
    text = (
        f"{needed}\n\n{agent}{more}\n\n{CLAMP.replace('value < low', 'value < low + Held().get()')}"
    )
    report = await taken(here, a_library(tmp_path, {"a.py": text}))
    assert outcomes(report) == {"clamp": "joined"}
    ((where, code, what),) = [(str(one.where), one.code, one.message) for one in report.files]
    assert (where.endswith("lib/a.py:6"), code) == (True, "methods")
    assert what == "2 methods are not taken of `Agent`: functions stand at the top of a module"


async def test_lines_of_candidates_join_with_the_examples_that_came_beside_them(
    here: Room, tmp_path: Path
) -> None:
    code = "def twice(n):\n    return n + n\n"
    examples = [{"call": "twice(2)", "expected": "4"}, {"call": "twice('a')", "expected": "'aa'"}]
    rows = [
        {"name": "twice", "code": code, "examples": examples, "description": "Double it."},
        {"name": "no"},
    ]
    (path := tmp_path / "my-set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    report = await taken(here, path)
    assert outcomes(report) == {"twice": "fixed"}
    assert [row.code for row in report.files] == ["not-a-candidate"]
    assert len((await here.shop.introspect("twice")).function.examples) == 2
    assert outcomes(await taken(here, path)) == {"twice": "skipped"}


async def test_a_large_library_is_judged_by_other_processes_and_joins_all_the_same(
    here: Room, tmp_path: Path
) -> None:
    (path := tmp_path / "many.jsonl").write_text("\n".join(made(13)))
    first = outcomes(await taken(here, path))
    joined = sorted(name for name, outcome in first.items() if outcome in {"joined", "fixed"})
    assert len(first) == 13
    assert joined
    assert here.shop.names() == joined
    again = outcomes(await taken(here, path))
    assert [name for name in sorted(again) if again[name] == "skipped"] == joined
