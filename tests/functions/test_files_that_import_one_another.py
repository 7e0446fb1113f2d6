"""Modules that depend on each other can arrive in any order, or together."""

from pathlib import Path

import pytest

from agent_core import Workspace

DOUBLE = 'def double(n: int) -> int:\n    """Double a number.\n\n    >>> double(2)\n    4\n    """\n    return 2 * n\n'
USER = (
    "from functions.parts import double\n\n\ndef quadruple(n: int) -> int:\n"
    '    """Take a number four times.\n\n    >>> quadruple(2)\n    8\n    """\n    return double(double(n))\n'
)
CHAIN = "from functions.a_user import quadruple\n\n\n" + USER.split("\n\n\n")[1].replace(
    "double(double(n))", "quadruple(n)"
).replace("def quadruple", "def once_more").replace(">>> quadruple", ">>> once_more")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    return tmp_path


def write(root: Path, **modules: str) -> list[Path]:
    paths = [root / "functions" / f"{name}.py" for name in modules]
    for path, text in zip(paths, modules.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


async def test_a_folder_taken_over_whole_offers_what_imports_its_neighbours(root: Path) -> None:
    write(root, a_chain=CHAIN, a_user=USER, parts=DOUBLE)
    async with Workspace.open(root) as workspace:
        assert workspace.functions.names() == ["double", "once_more", "quadruple"]
        assert workspace.functions.rejected() == ()


async def test_a_file_that_came_before_what_it_imports_is_taken_when_that_comes(root: Path) -> None:
    async with Workspace.open(root) as workspace:
        await workspace.functions.saved(write(root, user=USER))
        assert workspace.functions.names() == []
        await workspace.functions.saved(write(root, parts=DOUBLE))
        assert workspace.functions.names() == ["double", "quadruple"]


async def test_files_that_need_each_other_s_new_version_are_taken_together(root: Path) -> None:
    write(root, parts=DOUBLE, user=USER)
    async with Workspace.open(root) as workspace:
        renamed = write(root, parts=DOUBLE.replace("double", "twice"), user=USER.replace("double", "twice"))
        await workspace.functions.saved(renamed)
        assert workspace.functions.names() == ["quadruple", "twice"]
        assert workspace.functions.rejected() == ()


async def test_a_neighbor_of_the_same_save_is_no_package_and_how_to_import_it_is_told(root: Path) -> None:
    async with Workspace.open(root) as workspace:
        user = USER.replace("from functions.parts import", "from parts import")
        await workspace.functions.saved(write(root, a_user=user, parts=DOUBLE))
        assert workspace.functions.names() == ["double"]
        (problem,) = workspace.functions.rejected()
        assert problem.code == "import-fails"
        assert "`from functions" in (problem.fix or "")


async def test_what_imports_nothing_that_is_there_is_rejected_once_more(root: Path) -> None:
    write(root, user=USER, other=USER.replace("parts", "nowhere").replace("quadruple", "eightfold"))
    async with Workspace.open(root) as workspace:
        assert workspace.functions.names() == []
        assert "import-fails" in {problem.code for problem in workspace.functions.rejected()}


async def test_of_a_file_that_cannot_be_imported_only_what_keeps_it_out_is_told(root: Path) -> None:
    bare = "import json\n\n\ndef shout(text):\n    return text.upper()\n"
    async with Workspace.open(root) as workspace:
        await workspace.functions.saved(write(root, mine=bare))
        assert workspace.functions.names() == ["shout"]
        await workspace.functions.saved(write(root, mine=bare.replace("json", "json.nowhere")))
        assert {problem.code for problem in workspace.functions.rejected()} == {"import-fails"}
