"""A package that only examples import is no grant of their function; one that an agent has runs in its examples."""

from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants import Grants
from agent_core.views.grant_question import question_rows
from agent_core.views.styled_lines import plain
from tests.grants.support import AGENT, Human, human
from tests.kit.sources import function_text

pytestmark = pytest.mark.usefixtures("lent")
COUNTS = "\n\n".join(
    [
        "import abacus\n",
        function_text(
            "count(numbers: list[int]) -> int",
            "Add numbers up with an abacus.\n\nArgs:\n    numbers: What is added.",
            "return abacus.total(numbers)",
            "count([1, 2]) → 3",
            "count([4]) → 4",
        ),
    ]
)
CALLS = function_text(
    "doubled(numbers: list[int]) -> int",
    "Double a sum.\n\nArgs:\n    numbers: What is added.",
    "days = calendar.isleap(2024)\nreturn count(numbers) * (1 + days)",
    "doubled([1, 2]) → 6",
    "doubled([4]) → 8",
)
LARGEST = function_text(
    "largest(numbers: list[int]) -> int",
    "Return the largest number.\n\nArgs:\n    numbers: Some numbers.",
    "return max(numbers)",
    "import abacus\n>>> largest([abacus.total([1, 2]), 2]) → 3",
    "largest([abacus.total([1, 2]), 7]) → 7",
)


async def _asked(root: Path, code: str, name: str, module: str) -> tuple[Human, bool]:
    """Let an agent make a function that has a package, and then another. Return what was asked about the second."""
    async with Workspace.open(root, approver=human("yes")) as workspace:
        shop = workspace.functions
        assert (await shop.create("count", COUNTS, "sums", author=AGENT)).admitted
        asked = shop.granting.approver = human("no")
        made = await shop.create(name, code, module, author=AGENT)
        if made.admitted:
            tested = await shop.test(name, author=AGENT)
            assert all(example.agreed for example in tested.examples), tested
    return asked, made.admitted


@pytest.mark.parametrize(
    "module", ["sums", "other"], ids=["beside its import", "in another module"]
)
@pytest.mark.parametrize(
    "way",
    [
        ("import abacus", "abacus.total"),
        ("from abacus import total", "total"),
        ("import abacus as beads", "beads.total"),
    ],
    ids=["by its name", "from it", "by another name"],
)
async def test_a_package_that_only_examples_import_needs_no_yes_and_runs_where_the_agent_has_it(
    ready: Path, module: str, way: tuple[str, str]
) -> None:
    code = LARGEST.replace("import abacus", way[0]).replace("abacus.total", way[1])
    asked, is_admitted = await _asked(ready, code, "largest", module)
    assert (asked.asked, is_admitted) == ([], True)


async def test_examples_have_no_package_that_nobody_allowed_this_agent(ready: Path) -> None:
    async with Workspace.open(ready, approver=human("yes")) as workspace:
        made = await workspace.functions.create("largest", LARGEST, "other", author=AGENT)
    assert not made.admitted
    assert "No module named 'abacus'" in str(made)


async def test_a_function_that_imports_a_package_itself_is_asked_about_as_ever(ready: Path) -> None:
    body = LARGEST.replace(
        "return max(numbers)",
        "import abacus\n    return max(abacus.total([each]) for each in numbers)",
    )
    asked, is_admitted = await _asked(ready, body, "largest", "other")
    assert ([question.missing for question in asked.asked], is_admitted) == (
        [Grants(packages=("abacus",))],
        False,
    )


async def test_nobody_is_asked_about_a_package_before_the_examples_agree_with_it(
    ready: Path,
) -> None:
    wrong = (
        COUNTS.replace("count(", "tally(")
        .replace("with an abacus", "by beads")
        .replace("total(", "total([1] + ")
    )
    asked, is_admitted = await _asked(ready, wrong, "tally", "other")
    assert (asked.asked, is_admitted) == ([], False)


async def test_the_question_shows_the_lines_that_need_a_package_and_where_it_is_installed(
    ready: Path,
) -> None:
    async with Workspace.open(ready, approver=human("yes")) as workspace:
        shop = workspace.functions
        top = COUNTS.replace("import abacus\n", "import calendar\n\nimport abacus\n")
        await shop.create(
            "count",
            top.replace("return abacus", "calendar.isleap(2024)\n    return abacus"),
            "sums",
        )
        asked = shop.granting.approver = human("yes")
        assert (await shop.create("doubled", CALLS, "sums")).admitted
    (question,) = asked.asked
    assert [text for _, text in question.lines] == ["return count(numbers) * (1 + days)"]
    rows = [text.strip() for text in plain(question_rows(question, 100)).splitlines()]
    place = rows.index("import the package abacus")
    assert rows[place + 1] == "is installed already"
