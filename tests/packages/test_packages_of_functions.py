"""A package's way: a candidate needs it, a human sees what would be installed, its workers import it."""

import json
import os
import time
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.functions.service.judgment import Judgment
from agent_core.functions.service.plan import Author
from tests.grants.support import Human, human
from tests.interfaces.asking import DONE, ended, home, press, shown_whole
from tests.interfaces.support import prompt
from tests.kit import Ask, Wanted
from tests.kit.levels import require_imports_ahead
from tests.kit.program import knapper
from tests.kit.sources import function_text
from tests.packages.support import placed, wheel

pytestmark = pytest.mark.usefixtures("lent")
COUNTS = "\n\n".join(
    [
        "import abacus\n",
        function_text(
            "count(numbers: list[int]) -> int",
            "Add numbers up with an abacus.\n\nArgs:\n    numbers: What is added.\n\nReturns:\n    Their sum.\n\n"
            "Examples:\n    >>> count([1, 2])\n    3\n    >>> count([4])\n    4",
            "return abacus.total(numbers)",
        ),
    ]
)

DRAWS = "\n\n".join(
    [
        "import paint\n",
        function_text(
            "draw(title: str, path: str) -> str",
            "Draw a title and save it as a picture.\n\nArgs:\n    title: The title.\n    "
            "path: Where the picture is saved.\n\nReturns:\n    The path of the picture.\nExamples:\n    "
            '>>> draw("One", "one.svg")\n    \'one.svg\'\n    >>> from pathlib import Path\n    '
            '>>> Path(draw("Two", "two.svg")).read_text()\n    \'<svg>Two</svg>\'',
            'paint.save(path, f"<svg>{title}</svg>")\nreturn path',
        ),
    ]
)

ECHOES = DRAWS.replace(
    'Path(draw("Two", "two.svg")).read_text()', 'draw("Two", "two.svg")'
).replace("<svg>Two</svg>", "two.svg")
ECHOES = ECHOES.replace("draw(", "count(")


async def _made(
    root: Path, asked: Human | None, code: str = COUNTS, name: str = "count"
) -> Judgment:
    async with Workspace.open(root, approver=asked) as workspace:
        return await workspace.functions.create(name, code, reason="It counts.")


async def test_a_candidate_sees_its_package_once_a_human_has_seen_what_is_installed(
    index: Path, root: Path
) -> None:
    asked = human("yes")
    async with Workspace.open(root, approver=asked) as workspace:
        verdict = await workspace.functions.create("count", COUNTS, reason="It counts.")
        found = await workspace.functions.call("count", {"numbers": [3, 4]})
    assert (verdict.admitted, verdict.standing, verdict.problems) == (True, "trial", ())
    assert (found.outcome, found.value) == ("returned", 7)
    assert [question.missing.packages for question in asked.asked] == [("abacus",)]
    assert asked.asked[0].installs[0].startswith("would be installed: abacus 1.0")
    assert (root / "functions/requirements.lock").exists()


async def test_without_a_yes_nothing_is_installed_and_the_candidate_waits(
    index: Path, root: Path
) -> None:
    for asked in (None, human("no")):
        assert not (await _made(root, asked)).admitted
    assert not (root / "functions/requirements.lock").exists()
    assert not list((root / ".knapper").glob("env/*"))


async def test_a_package_that_cannot_be_had_is_told_and_nobody_is_asked(
    index: Path, root: Path
) -> None:
    asked = human("yes")
    code = COUNTS.replace("import abacus", "import nowhere as abacus")
    verdict = await _made(root, asked, code)
    assert not verdict.admitted
    assert "There is no wheel of `nowhere`" in str(verdict)
    assert asked.asked == []


async def test_nobody_is_asked_for_a_package_of_a_function_that_is_refused_anyway(
    index: Path, root: Path
) -> None:
    asked = human("yes")
    second = "        >>> count([4])\n        4\n"
    async with Workspace.open(root, approver=asked) as workspace:
        for at, (told, code) in enumerate(
            {
                "too-few-examples": COUNTS.replace(second, ""),
                "contradictory": COUNTS.replace(
                    "count([4])\n        4\n", "count([1, 2])\n        4\n"
                ),
                "same-results": COUNTS.replace(
                    "count([4])\n        4\n", "count([3])\n        3\n"
                ),
                "placeholder": COUNTS.replace("return abacus.total(numbers)", "pass"),
                "stub-passes": ECHOES,
                "undefined-name": COUNTS.replace("return abacus", "return word"),
            }.items()
        ):
            renamed = code.replace("count(", f"count{at}(")
            verdict = await workspace.functions.create(f"count{at}", renamed, reason="It counts.")
            assert told in str([problem.code for problem in verdict.refusals[:-1]]), told
            assert verdict.refusals[-1].code == "needs-packages", told
        await workspace.functions.create(
            "count", COUNTS.replace("import abacus\n\n\n", "").replace("abacus.total", "sum")
        )
        dropping = COUNTS.replace("count([4])\n        4\n", "count([5])\n        5\n")
        agent = Author("agent", "main", "turn", "scripted")
        verdict = await workspace.functions.replace("count", dropping, author=agent)
        assert "example-dropped" in str([problem.code for problem in verdict.problems])
    assert asked.asked == []
    assert not list((root / ".knapper").glob("env/*"))


async def test_a_function_that_writes_a_file_by_a_package_and_returns_its_path_joins(
    index: Path, root: Path
) -> None:
    placed(
        root,
        "paint",
        files={"paint.py": "def save(path, text):\n    open(path, 'w').write(text)\n"},
    )
    async with Workspace.open(root, approver=human("yes")) as workspace:
        verdict = await workspace.functions.create("draw", DRAWS, reason="It draws.")
        found = await workspace.functions.call("draw", {"title": "Cups", "path": "cups.svg"})
    assert verdict.admitted, verdict.problems
    assert (found.outcome, found.value) == ("returned", "cups.svg")
    assert (root / "cups.svg").read_text() == "<svg>Cups</svg>"


async def test_a_pulled_lock_is_asked_for_before_a_call_and_installed_by_a_yes(
    index: Path, root: Path, tmp_path: Path
) -> None:
    await _made(root, human("yes"))
    there = tmp_path / "there"
    there.mkdir()
    (root / "functions").rename(there / "functions")
    asked = human("no", "yes")
    async with Workspace.open(there, approver=asked) as workspace:
        denied = await workspace.functions.call("count", {"numbers": [1]})
        found = await workspace.functions.call("count", {"numbers": [1]})
    assert (denied.outcome, found.outcome) == ("refused", "returned")
    assert [bool(question.installs) for question in asked.asked] == [True, True]


async def test_what_is_imported_ahead_was_not_imported_by_the_worker(
    index: Path, root: Path
) -> None:
    require_imports_ahead()
    wheel(index, "slow", "1.0", {"slow.py": "import os\n\nAT = os.getpid()\n"})
    code = COUNTS.replace("import abacus", "import os\n\nimport slow").replace(
        "abacus.total(numbers)", "sum(numbers)"
    )
    code = code.replace(
        "    return sum",
        "    assert slow.AT != os.getpid(), 'imported in the call'\n    return sum",
    )
    async with Workspace.open(root, approver=human("yes")) as workspace:
        verdict = await workspace.functions.create("count", code, reason="It counts.")
        found = [await workspace.functions.call("count", {"numbers": [1]}) for _ in range(2)]
        listing = await workspace.functions.granting.packages.listing()
    assert isinstance(verdict, Judgment)
    assert verdict.admitted, verdict.problems
    assert [one.outcome for one in found] == ["returned", "returned"]
    assert listing.packages[0].ahead == ("slow",)


@pytest.mark.slow
async def test_a_package_that_cannot_be_imported_ahead_is_imported_by_each_call(
    index: Path, root: Path
) -> None:
    text = "import threading, time\n\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    wheel(index, "abacus", "3.0", {"abacus.py": f"{text}\ntotal = sum\n"})
    async with Workspace.open(root, approver=human("yes")) as workspace:
        verdict = await workspace.functions.create("count", COUNTS, reason="It counts.")
        found = await workspace.functions.call("count", {"numbers": [1]})
        listing = await workspace.functions.granting.packages.listing()
    assert isinstance(verdict, Judgment)
    assert verdict.admitted, verdict.problems
    assert (found.outcome, listing.packages[0].ahead) == ("returned", ())


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("while True: pass", id="computes"),
        pytest.param("import time; time.sleep(999)", id="waits"),
    ],
)
async def test_a_package_whose_import_never_ends_is_not_installed_and_holds_nothing_up(
    index: Path, root: Path, text: str
) -> None:
    require_imports_ahead()
    wheel(index, "abacus", "3.0", {"abacus.py": f"{text}\n"})
    async with Workspace.open(root, approver=human("yes")) as workspace:
        began = time.monotonic()
        verdict = await workspace.functions.create("count", COUNTS, reason="It counts.")
        seconds = time.monotonic() - began
        plain = COUNTS.replace("import abacus\n\n\n", "").replace("abacus.total", "sum")
        after = await workspace.functions.create("count", plain)
    assert "The import of the package `abacus` did not end" in str(verdict)
    assert (verdict.admitted, after.admitted) == (False, True)
    assert seconds < 60
    assert not (root / "functions/requirements.lock").exists()
    assert list((root / ".knapper/env").iterdir()) == []


async def test_a_module_that_is_called_otherwise_is_found_in_the_package_that_was_granted(
    index: Path, root: Path
) -> None:
    wheel(index, "Py-Counting", "1.0", {"counting/__init__.py": "total = sum\n"})
    code = COUNTS.replace("import abacus", "import counting as abacus")
    async with Workspace.open(root) as workspace:
        shop = workspace.functions
        assert not (await shop.create("count", code, reason="It counts.")).admitted
        question = await shop.grants.question(
            "count", shop.grants.wanted({"packages": ("Py-Counting",)})
        )
        verdict = await shop.grants.grant("count", question.missing)
        found = await shop.call("count", {"numbers": [1, 2]})
    assert question.installs[0].startswith("would be installed: py-counting 1.0")
    assert isinstance(verdict, Judgment)
    assert verdict.admitted, verdict.problems
    assert (found.outcome, found.value) == ("returned", 3)


async def test_a_function_without_the_grant_does_not_see_the_package_of_another(
    ready: Path,
) -> None:
    plain = (
        COUNTS.replace("import abacus\n", "")
        .replace("def count", "def other")
        .replace("count(", "other(")
    )
    code = plain.replace(
        "    return", "    import sys\n    assert 'abacus' not in sys.modules\n    return"
    )
    async with Workspace.open(ready, approver=human("yes")) as workspace:
        await workspace.functions.create("count", COUNTS, reason="It counts.")
        await workspace.functions.create(
            "other", code.replace("abacus.total", "sum"), reason="It counts."
        )
        found = await workspace.functions.call("other", {"numbers": [1]})
    assert found.outcome == "returned", found


async def test_a_function_whose_import_runs_for_all_never_breaks_its_neighbours(
    ready: Path,
) -> None:
    asked = human("yes")
    plain = (
        COUNTS.replace("import abacus\n\n\n", "")
        .replace("count", "plain")
        .replace("abacus.total", "sum")
    )
    unused = COUNTS.replace("abacus.total", "sum")
    async with Workspace.open(ready, approver=asked) as workspace:
        shop = workspace.functions
        assert (await shop.create("plain", plain, "sums", reason="It counts.")).admitted
        refused = await shop.create("count", unused, "sums", reason="It counts, unlike `plain`.")
        inside = COUNTS.replace("import abacus\n\n\n", "").replace(
            "    return", "    import abacus\n\n    return"
        )
        admitted = await shop.create(
            "count", inside, "sums", reason="It adds with an abacus, unlike `plain`."
        )
        found = [await shop.call(name, {"numbers": [1]}) for name in ("plain", "count")]
    assert (refused.admitted, admitted.admitted) == (False, True), admitted.problems
    assert "Give `count` another module_name" in str(refused)
    assert [one.outcome for one in found] == ["returned", "returned"]


async def test_an_import_that_names_no_project_is_never_asked_about(root: Path) -> None:
    asked = human("yes")
    for name in ("rеquests", "_private", "a" * 400):  # the first with a letter of another alphabet
        verdict = await _made(
            root, asked, COUNTS.replace("import abacus", f"import {name} as abacus")
        )
        assert "needs-packages" in {problem.code for problem in verdict.problems}, name
        assert (verdict.admitted, asked.asked) == (False, []), name


async def test_a_yes_meant_once_gives_the_package_to_one_call(ready: Path) -> None:
    asked = human("once", "no")
    async with Workspace.open(ready, approver=asked) as workspace:
        verdict = await workspace.functions.create("count", COUNTS, reason="It counts.")
        found = [await workspace.functions.call("count", {"numbers": [1]}) for _ in range(2)]
        removed = await workspace.functions.granting.packages.listing()
    assert verdict.admitted
    assert [one.outcome for one in found] == ["returned", "refused"]
    assert removed.packages[0].functions == ()


SHARES = COUNTS.replace("import abacus\n\n\n", "").replace(
    "    return abacus", "    import abacus\n\n    return abacus"
)
USES = "\n\n".join(
    [
        "from functions.tools.counts import count\n",
        function_text(
            "mean(numbers: list[int]) -> float",
            "Return the mean of numbers.\n\nArgs:\n    numbers: What the mean is of.\n\nReturns:\n    Their mean.\n\n"
            "Examples:\n    >>> mean([1, 2])\n    1.5\n    >>> mean([4])\n    4.0",
            "return count(numbers) / len(numbers)",
        ),
    ]
)


async def test_a_call_asks_for_the_package_of_another_module_that_it_goes_through(
    ready: Path,
) -> None:
    (ready / "functions/tools").mkdir(parents=True)
    (ready / "functions/tools/counts.py").write_text(COUNTS)  # at the top
    (ready / "functions/tools/weighs.py").write_text(
        SHARES.replace("count", "weigh")
    )  # in the body
    (ready / "functions/means.py").write_text(USES)
    (ready / "functions/averages.py").write_text(
        USES.replace("count", "weigh").replace("mean", "average")
    )
    asked = human("yes")
    async with Workspace.open(ready, approver=asked) as workspace:
        found = [
            await workspace.functions.call(name, {"numbers": [3, 4]})
            for name in ("mean", "average")
        ]
    assert [(one.outcome, one.value) for one in found] == [("returned", 3.5)] * 2
    missing = [(question.function, question.missing.packages) for question in asked.asked]
    assert missing == [("mean", ("abacus",)), ("average", ("abacus",))]


async def test_a_candidate_that_uses_a_module_is_asked_for_the_package_of_that(ready: Path) -> None:
    (ready / "functions/tools").mkdir(parents=True)
    (ready / "functions/tools/counts.py").write_text(COUNTS)
    asked = human("yes")
    verdict = await _made(ready, asked, USES, "mean")
    assert (verdict.admitted, verdict.standing) == (True, "trial"), verdict.problems
    assert [(question.function, question.missing.packages) for question in asked.asked] == [
        ("mean", ("abacus",))
    ]


async def test_a_neighbor_of_what_is_used_elsewhere_asks_for_nothing(
    index: Path, root: Path
) -> None:
    (root / "functions/tools").mkdir(parents=True)
    plain = SHARES.replace("    import abacus\n\n", "").replace("abacus.total", "sum")
    plain = SHARES.replace("count", "weigh") + "\n\n" + plain
    (root / "functions/tools/counts.py").write_text(plain)
    (root / "functions/means.py").write_text(USES)
    asked = human("yes")
    async with Workspace.open(root, approver=asked) as workspace:
        found = await workspace.functions.call("mean", {"numbers": [3, 4]})
    assert (found.outcome, found.value, asked.asked) == ("returned", 3.5, [])


@pytest.mark.slow
def test_the_prompt_says_what_is_done_until_a_package_is_there(index: Path, root: Path) -> None:
    (root / "functions").mkdir()
    (root / "knapper.toml").touch()
    given = {name: os.environ[name] for name in os.environ if name.startswith("PIP_")}
    call = Ask(
        Wanted(
            "create_function", {"function_name": "count", "function_code_with_docstring": COUNTS}
        )
    )
    with prompt([call, DONE], root, environment={**home(root), **given}) as (screen, _):
        screen.line("count")
        screen.wait_for("  Looking up abacus")
        shown_whole(screen)
        press(screen, "y")
        screen.wait_for("  Trying to import them")
        ended(screen)
        assert not [row for row in screen.screen() if "Trying" in row or "Looking" in row]


def test_packages_are_granted_listed_and_removed_by_the_command_line(
    index: Path, root: Path
) -> None:
    (root / "functions").mkdir()
    (root / "knapper.toml").touch()
    (root / "functions/sums.py").write_text(COUNTS)

    def run(*arguments: str) -> str:
        done = knapper("functions", *arguments, cwd=root, environment=os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "import the package abacus" in run("grant", "count", "--package", "abacus", "-y")
    assert run("call", "count", "--args", '{"numbers": [2, 3]}') == "5\n"
    listed = json.loads(run("packages", "--json"))["packages"]
    assert [(row["functions"], row["installed"], row["pins"]) for row in listed] == [
        (["count"], True, ["abacus 1.0", "beads 2.0"])
    ]
    run("revoke", "count", "--all")
    assert "removed 1" in run("packages", "--clean")
    assert not (root / "functions/requirements.lock").exists()
