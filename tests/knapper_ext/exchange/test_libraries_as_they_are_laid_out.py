"""Libraries with package-style imports between modules: by the package's name, below it, or through other packages."""

import subprocess
import sys
from pathlib import Path

from knapper_ext.exchange.export import ExportRequest, export_functions
from knapper_ext.exchange.library import ImportReport, ImportRequest, import_library
from tests.functions.support import Room
from tests.kit.sources import function_text

SHAPES = {
    "__init__.py": "from .parts import halves\nfrom .areas import square, total\nfrom .more import grow\n"
    "from ._inner import plus_two\n",
    "more/__init__.py": "from .growth import grow, _Box\n",
    "more/growth.py": "\n\n".join(
        [
            "import shapes\n",
            "class _Box:\n    side = 3\n",
            function_text(
                "grow(side: int) -> int",
                "Double a square.",
                "return 2 * shapes.square(side)",
                "grow(2) → 8",
                "grow(3) → 18",
            ),
        ]
    ),
    "areas.py": "\n\n".join(
        [
            "import shapes as sh\nimport shapes.more.growth\nfrom shapes import halves as in_two\n",
            function_text(
                "square(side: int) -> int",
                "Return an area.",
                "return side * side",
                "square(2) → 4",
                "square(3) → 9",
            ),
            function_text(
                "total(sides: list[int]) -> int",
                "Return the sum of the areas of first halves.",
                "assert shapes.more.growth._Box.side == 3\nreturn sum(sh.square(in_two(side)[0]) for side in sides)",
                "total([2, 4]) → 5",
                "total([6]) → 9",
            ),
        ]
    ),
    "parts.py": function_text(
        "halves(n: int) -> list[int]",
        "Split a number.",
        "return [n // 2, n - n // 2]",
        "halves(4) → [2, 2]",
        "halves(5) → [2, 3]",
    ),
    "_inner.py": '''from ._deep import plus


def plus_two(n: int) -> int:
    """Add two.

    >>> plus_two(1)
    3
    >>> plus_two(2)
    4
    """
    return plus(n, 2)
''',
    "_deep.py": "def plus(a, b):\n    return a + b\n",
}
PACKAGES = '"""Widths."""\n\nfrom absent_widths import width, wide\n\n\n' + "\n\n".join(
    [
        function_text(
            "shown_width(text: str) -> int",
            "Return a width.",
            "return width(text)",
            'shown_width("abc") → 3',
            'shown_width("ab") → 2',
        ),
        function_text(
            "halved(text: str) -> str",
            "Return the first half of a text.",
            "return text[: len(text) // 2]",
            "halved(\"abcd\") → 'ab'",
            "halved(\"xy\") → 'x'",
        ),
    ]
)
TYPES = '''"""Texts."""

from typing import Protocol, TypeVar
from argparse import Namespace

N = TypeVar("N", int, "Unknown")


class Sized(Protocol):
    """Sized."""

    def size(self) -> int: ...


def doubled(text: str, low: N | Sized = 1) -> str:
    """Return a text twice.

    >>> doubled("a")
    'aa'
    >>> doubled("bc")
    'bcbc'
    """
    return _of(Namespace(text=text)) + taken(Namespace(text=text))


def _of(options: Namespace) -> str:
    return options.text


def taken(options: Namespace) -> str:
    """Take a text out.

    >>> taken(Namespace(text="a"))
    'a'
    """
    return options.text
'''
EARLY = '''def web(name: str) -> str:
    """Look a name up.

    >>> web("a")
    'A1'
    >>> web("b")
    'B1'
    """
    return Picker().pick(name)


def upper(name: str) -> str:
    """Write a name large; two letters by the web.

    >>> upper("a")
    'A'
    >>> upper("b")
    'B'
    """
    return name.upper() if len(name) == 1 else web(name[0])


class Picker:
    """Picks."""

    def pick(self, name, by=upper):
        return by(name) + ONE


ONE = str(len(upper("a")))
'''


async def taken(here: Room, root: Path, name: str, files: dict[str, str]) -> ImportReport:
    for file, text in files.items():
        path = root / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return await import_library(
        here.shop, ImportRequest(root / name), lambda _: None, lambda _: None
    )


def outcomes(report: ImportReport) -> dict[str, str]:
    return {row.name: row.standing or row.outcome for row in report.functions}


async def test_modules_that_import_their_own_package_join_and_so_do_private_ones_behind_it(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, "shapes", SHAPES)
    assert outcomes(report) == dict.fromkeys(
        ("halves", "plus_two", "square", "total", "grow"), "trial"
    ), report
    assert {row.module for row in report.functions if row.name == "plus_two"} == {"shapes.inner"}
    answers = [
        (await here.shop.call(name, arguments)).value
        for name, arguments in (
            ("total", {"sides": [2, 4]}),
            ("grow", {"side": 2}),
            ("plus_two", {"n": 5}),
        )
    ]
    assert answers == [5, 8, 7]


PLAIN = '''def {0}(n: int) -> int:
    """Do it.

    Args:
        n: A number.

    >>> {0}(1)
    4
    >>> {0}(2)
    7
    """
    return 3 * n + 1
'''


BY_ATTRIBUTE = {
    "__init__.py": "from ._core import (\n    core,\n    step,\n)\n\n\n"
    + PLAIN.format("pace").replace("3 * n + 1", "_core.step(n)"),
    "_core.py": f"{PLAIN.format('step')}\n\ndef core():\n    pass\n",
    "usea.py": "import pk._core\n\n\n"
    + PLAIN.format("walk").replace("3 * n + 1", "pk._core.step(n)"),
    "useb.py": "import pk\n\n\n" + PLAIN.format("run").replace("3 * n + 1", "pk._core.step(n)"),
}


async def test_a_private_module_that_becomes_public_is_still_found_by_its_old_name(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, "pk", BY_ATTRIBUTE)
    assert outcomes(report) == {
        "core": "refused",
        **dict.fromkeys(("pace", "step", "walk", "run"), "trial"),
    }, report
    text = (here.root / "functions" / "pk" / "__init__.py").read_text()
    assert text.startswith("from . import core as _core; from .core import (\n    core,\n")


AREA = """from sides.lengths import side


def area_of(n: int) -> int:
    '''Return an area.

    >>> area_of(3)
    9
    '''
    return side(n) * n
"""


async def test_a_source_folder_beside_other_files_is_no_part_of_the_names(
    here: Room, tmp_path: Path
) -> None:
    side = "def side(n: int) -> int:\n    return n\n"
    files = {
        "src/sides/__init__.py": "",
        "src/sides/lengths.py": side,
        "src/sides/areas.py": AREA,
        "setup.py": "1\n",
    }
    await taken(here, tmp_path, "project", files)
    assert here.shop.registry.snapshot().functions["area_of"].module == "sides.areas"
    assert (await here.shop.call("area_of", {"n": 3})).value == 9


async def test_all_functions_of_a_module_that_loads_a_package_wait_for_it_and_other_modules_do_without(
    here: Room, tmp_path: Path
) -> None:
    files = {
        "__init__.py": "from .widths import halved\nfrom .plain import step\n",
        "widths.py": PACKAGES,
    }
    report = await taken(here, tmp_path, "wide", {**files, "plain.py": PLAIN.format("step")})
    assert outcomes(report) == {"shown_width": "draft", "halved": "draft", "step": "trial"}, report
    needs = {
        row.name: [one for one in row.problems if one.code == "needs-packages"]
        for row in report.functions
    }
    assert (needs["shown_width"][0].where.line, needs["step"]) == (3, [])
    assert all("absent" in one.message for rows in needs.values() for one in rows)
    assert "asked for at the first call" in (needs["shown_width"][0].fix or "")
    assert [row.code for row in report.files] == ["import-fails"]  # the package, which loads both
    assert (here.root / "functions" / "wide" / "widths.py").read_text() == PACKAGES
    assert (await here.shop.call("step", {"n": 2})).value == 7
    unfit = await here.shop.call("halved", {"text": "abcd"})
    assert unfit.outcome != "returned"


async def test_a_package_that_needs_its_own_functions_and_a_package_waits_for_it_whole(
    here: Room, tmp_path: Path
) -> None:
    files = {"__init__.py": PACKAGES, "plain.py": PLAIN.format("step")}
    report = await taken(here, tmp_path, "wide", files)
    assert outcomes(report) == dict.fromkeys(("shown_width", "halved", "step"), "draft"), report


REFUSED = 'def later(n):\n    """Do it."""\n    raise NotImplementedError\n'


async def test_where_all_names_of_a_file_are_taken_those_that_it_no_longer_offers_are_taken_too(
    here: Room, tmp_path: Path
) -> None:
    user = "from .core import *\n\n\n" + PLAIN.format("pace").replace(
        "return", "assert HELP and later\n    return"
    )
    core = f"HELP = 2\n\n\n{PLAIN.format('step').replace('3 * n', 'n + 2 * n')}\n\n{REFUSED}"
    report = await taken(
        here,
        tmp_path,
        "pk",
        {"core.py": core, "user.py": user, "__init__.py": "from .core import *\n"},
    )
    assert outcomes(report) == {"later": "refused", "step": "trial", "pace": "trial"}, report
    assert (here.root / "functions" / "pk" / "user.py").read_text() == user.replace(
        "*\n", "HELP, later, step\n", 1
    )
    assert (await here.shop.call("pace", {"n": 2})).value == 7


async def test_what_is_refused_is_not_offered_however_its_module_lists_its_names(
    here: Room, tmp_path: Path
) -> None:
    listing = "__all__ = ['la' + 'ter']\n__all__ += ['step', 'later']\n"
    report = await taken(
        here, tmp_path, "dy", {"dy.py": f"{listing}\n\n{PLAIN.format('step')}\n\n{REFUSED}"}
    )
    assert outcomes(report) == {"later": "refused", "step": "trial"}, report
    assert here.shop.names() == ["step"]


async def test_a_module_that_does_at_its_import_what_no_grant_allows_offers_nothing(
    here: Room, tmp_path: Path
) -> None:
    hostile = f"import os\n\nos.system('touch {tmp_path}/PWNED')\n\n\n{PLAIN.format('step')}"
    conditional = (
        f"try:\n    import nothing_here\nexcept ImportError:\n    "
        f"{REFUSED.replace(chr(10), chr(10) + '    ')}"
    )
    files = {
        "hostile.py": hostile,
        "sitecustomize.py": PLAIN.format("pace"),
        "conditional.py": conditional,
    }
    report = await taken(here, tmp_path, "lib", files)
    assert outcomes(report) == {"step": "refused"}
    (row,) = report.functions
    assert "needs-processes" in {problem.code for problem in row.problems}
    assert {row.code for row in report.files} == {"module-name", "conditional"}
    assert (here.leftovers(), (tmp_path / "PWNED").exists()) == ([], False)


async def test_types_without_a_schema_keep_no_other_function_out(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, "types", {"types_.py": TYPES})
    assert outcomes(report) == {"doubled": "trial", "taken": "refused"}, report
    assert (await here.shop.call("doubled", {"text": "x"})).value == "xx"


async def test_what_runs_at_the_top_finds_the_functions_that_stand_above_it(
    here: Room, tmp_path: Path
) -> None:
    report = await taken(here, tmp_path, "early", {"early.py": EARLY})
    assert outcomes(report) == {"web": "trial", "upper": "trial"}, report
    assert (await here.shop.call("web", {"name": "q"})).value == "Q1"


DOUBLE = (
    PLAIN.format("pace")
    .replace("4\n", "8\n")
    .replace("7\n", "14\n")
    .replace("3 * n + 1", "2 * step(n)")
)


async def test_functions_of_a_package_are_changed_deleted_brought_back_and_exported_and_the_package_goes_on(
    here: Room, tmp_path: Path
) -> None:
    files = {
        "__init__.py": "from .moon import step\nfrom .sun import pace\n",
        "moon.py": PLAIN.format("step"),
        "sun.py": "from .moon import step\n\n\n" + DOUBLE,
    }
    await taken(here, tmp_path, "cal", files)
    folder = here.root / "functions" / "cal"
    edited = await here.shop.edit("pace", "step(n)", "(3 * n + 1)")
    assert edited.admitted, edited.problems
    assert (await here.shop.delete("step")).deleted == "step"
    assert here.shop.names() == ["pace"]
    assert (await here.shop.call("pace", {"n": 2})).value == 14  # its package still takes `step`
    assert (await here.shop.rollback("step")).admitted
    assert sorted(here.shop.names()) == ["pace", "step"]
    assert (await here.shop.call("step", {"n": 3})).value == 10
    await here.save((folder / "moon.py").read_text().replace("Do it", "Step"), folder / "moon.py")
    assert here.shop.registry.snapshot().functions["step"].description.startswith("Step")
    report = await export_functions(here.shop, ExportRequest(tmp_path / "out", ("pace",), "handed"))
    assert report.functions == ("pace",)
    assert printed(tmp_path / "out", "import handed; print(handed.pace(2))") == "14\n"


def printed(folder: Path, line: str) -> str:
    """Return what another Python prints for a line, with a folder on its path."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); {line}"
    return subprocess.run(
        [sys.executable, "-I", "-c", code], text=True, capture_output=True, check=True
    ).stdout
