"""`functions export`: a package that works and tests itself without Knapper."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agent_core.base.errors import UsageError
from agent_core.functions.service import ExportRequest
from agent_core.functions.service.library_files import ImportMover
from tests.functions.support import Room
from tests.kit.desk import VOWELS
from tests.kit.sources import function_text

pytestmark = pytest.mark.asyncio(loop_scope="module")

LETTERS = f'''{VOWELS}

def ratio(n: int, of: int) -> float:
    """Divide.

    Args:
        n: The part.
        of: The whole.

    >>> ratio(1, 3)
    0.3333333333
    >>> ratio(1, 0)
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    """
    return n / of
'''
PAGES = "\n\n".join(
    [
        "from functions.letters import count_vowels\nimport functions.letters as all_letters\n",
        function_text(
            "async told(self, texts: list[str]) -> dict[str, int]",
            "Count in each text.\n\nArgs:\n    texts: Where to count.",
            'self.progress(0, len(texts), "counting")\n(self.scratch / "seen").write_text("yes")\n'
            "assert all_letters.count_vowels is count_vowels\n"
            'return {text: self.call("count_vowels", text=text) for text in texts}',
            "told([\"queue\"]) → {'queue': 4}",
            "told([]) → {}",
        ),
    ]
)


async def a_workspace(here: Room) -> None:
    await here.save(LETTERS)
    (here.root / "functions" / "web").mkdir()
    await here.save(PAGES, here.root / "functions" / "web" / "pages.py")
    assert here.shop.names() == ["count_vowels", "ratio", "told"]


def alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{arguments[0]}"],
        cwd=folder, text=True, capture_output=True, timeout=50, check=False,
    )  # fmt: skip


RUN = "import unittest; unittest.main(module=None, argv=['x', 'discover'])"


async def test_an_exported_package_works_without_us_and_its_tests_pass_or_fail(here: Room, tmp_path: Path) -> None:
    await a_workspace(here)
    report = await here.shop.batch.export(ExportRequest(tmp_path / "my-package"))
    assert report.functions == ("count_vowels", "ratio", "told")
    ran = alone(tmp_path / "my-package", RUN)
    assert (ran.returncode, "Ran 1 test" in ran.stderr) == (0, True), ran.stderr
    use = (
        "import my_package as m, asyncio; print(asyncio.run(m.told(m.Context(), ['ae'])), 'agent_core' in sys.modules)"
    )
    assert alone(tmp_path / "my-package", use).stdout == "{'ae': 2} False\n"
    project = tomllib.loads((tmp_path / "my-package" / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["dependencies"]) == ("my-package", [])
    module = tmp_path / "my-package" / "my_package" / "letters.py"
    module.write_text(module.read_text().replace("aeiou", "aei"))
    ran = alone(tmp_path / "my-package", RUN)
    assert ran.returncode != 0
    assert "function='count_vowels'" in ran.stderr


async def test_named_functions_come_with_what_they_need_and_nothing_else(here: Room, tmp_path: Path) -> None:
    await a_workspace(here)
    report = await here.shop.batch.export(ExportRequest(tmp_path / "one", ("ratio",)))
    assert report.functions == ("ratio",)
    assert "count_vowels" not in (tmp_path / "one" / "one" / "letters.py").read_text()
    await here.shop.batch.export(ExportRequest(tmp_path / "two", ("told",)))
    assert alone(tmp_path / "two", RUN).returncode == 0
    for number, (names, package, held, said) in enumerate(
        (
            ((), "", "a.txt", "is not empty"),
            (("nothing",), "", "", "nothing"),
            ((), "json", "", "cannot be called"),
            ((), "no-name", "", "cannot be called"),
        )
    ):
        (folder := tmp_path / f"out{number}").mkdir()
        if held:
            (folder / held).write_text("mine")
        with pytest.raises(UsageError, match=said):
            await here.shop.batch.export(ExportRequest(folder, names, package))
        assert [path.name for path in folder.iterdir()] == ([held] if held else [])


async def test_imports_between_modules_are_written_for_the_package() -> None:
    places = {"functions": "", **{f"functions.{name}": name for name in ("a", "b", "w.a", "w.b")}}
    for module, line, becomes in (
        ("a", "from functions.b import c", "from .b import c"),
        ("a", "from functions import b", "from . import b"),
        ("w.a", "from functions.w.b import c", "from .b import c"),
        ("w.a", "import functions.w.b as b", "from . import b"),
        ("b", "import os, functions.w.b as c", "import os; from .w import b as c"),
        ("a", "import functions.w.b", "import p.w.b, p as functions"),
        ("a", "import functionsx.b", "import functionsx.b"),
        ("a", "from .b import c", "from .b import c"),
    ):
        mover = ImportMover(places, f"functions.{module}", module, "p", is_package=False)
        assert mover.moved(line + "\n") == becomes + "\n"
