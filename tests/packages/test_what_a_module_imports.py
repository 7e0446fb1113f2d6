"""Each function needs what its module imports at the top, unless only others use it, and every report says so."""

import os
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants import Grants
from tests.conftest import OpenDesk
from tests.grants.support import Human, human
from tests.kit.desk import VOWELS
from tests.kit.program import knapper
from tests.packages.support import placed, wheel

pytestmark = pytest.mark.usefixtures("lent")
SHOUT = '''\
{top}

def shout(text: str) -> str:
    """Return a text in capitals.

    Args:
        text: What is shouted.

    Returns:
        The text in capitals.

    Examples:
        >>> shout("a")
        'A'
        >>> shout("bc")
        'BC'
    """
    return text.upper()
'''
WHISPER = (
    SHOUT.format(top="")
    .replace("shout", "whisper")
    .replace('"a"', '"A"')
    .replace('"bc"', '"bC"')
    .replace("'A'", "'a'")
    .replace("'BC'", "'bc'")
)
WHISPER = WHISPER.replace("capitals", "small letters").replace("text.upper()", "text.lower()")
USING = SHOUT.replace("text.upper()", "text.upper()[: abacus.total([len(text)])]")
IMPORT = "import abacus\n"
HELPER = "def _added(numbers: list[int]) -> int:\n    return abacus.total(numbers)\n"
NEEDED = (
    IMPORT,
    "from abacus import total as _total\n",
    "import sys\n\nif sys.argv is not None:\n    import abacus\n",
    "try:\n    import abacus\nfinally:\n    DONE = 1\n",
    "class Counts:\n    import abacus\n",
    f"import math\n{IMPORT}",
)
FREE = (
    "try:\n    import abacus\nexcept ImportError:\n    abacus = None\n",
    "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import abacus\n",
    "if __name__ == '__main__':\n    import abacus\n",
    "import socket\n",
    "import shutil\nimport urllib.request\n",
    HELPER.replace("return", "import abacus\n    return"),
    f"{IMPORT}\n\n{HELPER}",
)


def saved(root: Path, text: str, name: str = "sounds") -> Path:
    """Save a file as a human does, and return it."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "knapper.toml").touch()
    file = root / "functions" / f"{name}.py"
    file.write_text(text)
    return file


async def asked_by_a_call(
    root: Path, *words: str, name: str = "shout"
) -> tuple[str, list[Grants], Human]:
    """Call a function; return its value, the missing grants that were asked for, and the human."""
    asked = human(*words)
    async with Workspace.open(root, approver=asked) as workspace:
        found = await workspace.functions.call(name, {"text": "a"})
    return str(found.value), [question.missing for question in asked.asked], asked


async def test_a_call_asks_for_what_its_module_imports_at_the_top_and_for_nothing_that_it_can_do_without(
    ready: Path,
) -> None:
    tops = [*FREE, *NEEDED]
    for at, top in enumerate(tops):
        saved(ready, SHOUT.format(top=top).replace("shout", f"shout{at}"), f"sounds{at}")
    who = human("yes")
    async with Workspace.open(ready, approver=human("no")) as workspace:
        shop = workspace.functions
        last = f"shout{len(tops) - 1}"
        refused = await shop.call(last, {"text": "a"})
        shop.granting.approver = who
        values = [(await shop.call(f"shout{at}", {"text": "a"})).value for at in range(len(tops))]
    assert refused.outcome == "refused"
    assert f"To grant it for good: knapper functions grant {last} --package abacus" in str(
        refused.error
    )
    assert values == ["A"] * len(tops)
    needed = [f"shout{at}" for at in range(len(FREE), len(tops))]
    asked = [(one.function, one.missing) for one in who.asked]
    assert asked == [(name, Grants(packages=("abacus",))) for name in needed]
    assert who.asked[-1].lines == ((2, "import abacus"),)


async def test_each_function_is_asked_for_an_import_that_none_uses_and_for_no_more(
    ready: Path,
) -> None:
    wheel(ready.parent / "index", "requests", "1.0", {"requests.py": "get = len\n"})
    fetch = "\n\ndef fetched(text: str) -> int:\n    '''Fetch a text.'''\n    return len(text)\n"
    saved(ready, SHOUT.format(top="import requests\n") + WHISPER + fetch)
    asked = human("yes")
    async with Workspace.open(ready, approver=asked) as workspace:
        found = [
            await workspace.functions.call(name, {"text": "a"})
            for name in ("shout", "whisper", "fetched")
        ]
    assert [str(one.value) for one in found] == ["A", "a", "1"]
    assert [question.missing for question in asked.asked] == [Grants(packages=("requests",))] * 3


def test_the_gate_the_grant_and_the_list_agree_on_what_a_function_needs_for_an_unused_http_client(
    index: Path, root: Path
) -> None:
    placed(root, "requests", files={"requests.py": "get = len\n"})
    saved(root, SHOUT.format(top="import requests\n"))

    def run(*arguments: str, code: int = 0) -> str:
        done = knapper("functions", *arguments, cwd=root, environment=os.environ)
        assert done.returncode == code, f"{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    assert "after a question: needs-packages" in run("check", "functions/sounds.py")
    assert "draft" in run("list")
    granted = run("grant", "shout", "-y")
    assert ("import the package requests" in granted, "fetch" in granted) == (True, False)
    assert "trial" in run("list")
    assert "needs-" not in run("check", "functions/sounds.py")
    assert run("call", "shout", "--args", '{"text": "a"}') == "A\n"
    assert "has all of it already" in run("grant", "shout", "-y", code=2)


async def test_a_yes_that_an_edit_ended_is_asked_for_again_at_the_call(ready: Path) -> None:
    file = saved(ready, SHOUT.format(top=IMPORT))
    asked = human("yes")
    async with Workspace.open(ready, approver=asked) as workspace:
        shop = workspace.functions
        assert [(await shop.call("shout", {"text": "a"})).value for _ in range(2)] == ["A", "A"]
        assert len(asked.asked) == 1
        file.write_text(file.read_text().replace("text.upper()", "text.upper() + '!'"))
        await shop.saved([file])
        assert (await shop.call("shout", {"text": "a"})).value == "A!"
    wanted = Grants(packages=("abacus",))
    assert [(one.missing, one.is_again) for one in asked.asked] == [(wanted, False), (wanted, True)]


async def test_a_package_that_comes_to_the_top_of_the_module_is_asked_for_with_what_was_given(
    ready: Path,
) -> None:
    file = saved(
        ready,
        SHOUT.format(top="").replace(
            "text.upper()", "open('data/a').read() if text == 'x' else 'y'"
        ),
    )
    given = Grants(read=("data/a",))
    assert (await asked_by_a_call(ready, "yes"))[1] == [given]
    file.write_text(IMPORT + file.read_text())
    value, missing, who = await asked_by_a_call(ready, "yes")
    assert (value, missing) == ("y", [given | Grants(packages=("abacus",))])
    assert (
        who.asked[0].changed
        == "`shout` itself is unchanged; what sounds does when it is imported is new"
    )
    assert (await asked_by_a_call(ready))[:2] == ("y", [])


async def test_a_file_whose_package_is_not_there_is_taken_and_described_once_it_is(
    ready: Path,
) -> None:
    text = f"from dataclasses import dataclass\n\n{IMPORT}\n\n@dataclass\nclass Word:\n    letters: str\n"
    saved(
        ready,
        SHOUT.format(top=text)
        .replace("text: str", "text: Word")
        .replace("text.upper", "text.letters.upper"),
    )

    def properties(workspace: Workspace) -> object:
        schema = (
            workspace.functions.registry.snapshot()
            .functions["shout"]
            .parameters["properties"]["text"]
        )
        return schema.get("properties")

    async with Workspace.open(ready, approver=human("yes")) as workspace:
        assert (workspace.functions.rejected(), properties(workspace)) == ((), None)
        result = await workspace.functions.call("shout", {"text": {"letters": "a"}})
        assert (result.value, properties(workspace)) == ("A", {"letters": {"type": "string"}})
    async with Workspace.open(ready) as workspace:
        assert properties(workspace) == {"letters": {"type": "string"}}


async def test_a_file_that_waits_for_two_packages_is_described_once_the_second_is_there(
    index: Path, root: Path
) -> None:
    text = f"from dataclasses import dataclass\n\n{IMPORT}import other\n\n@dataclass\nclass Word:\n    letters: str\n"
    wheel(index, "other", "1.0", {"other.py": ""})
    (root / "functions").mkdir()
    file = saved(
        root,
        SHOUT.format(top=text)
        .replace("text: str", "text: Word")
        .replace("text.upper", "text.letters.upper"),
    )
    async with Workspace.open(root, approver=human("yes")) as workspace:
        shop = workspace.functions
        for packages, has_fields in ((("abacus",), False), (("abacus", "other"), True)):
            await shop.grants.grant("shout", Grants(packages=packages))
            await shop.saved([file])
            schema = shop.registry.snapshot().functions["shout"].parameters["properties"]["text"]
            assert ("properties" in schema) == has_fields, packages


async def test_a_candidate_is_asked_for_what_the_module_that_it_joins_imports(ready: Path) -> None:
    saved(ready, SHOUT.format(top=IMPORT))
    asked = human("yes")
    async with Workspace.open(ready, approver=asked) as workspace:
        verdict = await workspace.functions.create(
            "whisper", WHISPER, "sounds", reason="It whispers, unlike `shout`."
        )
        found = await workspace.functions.call("whisper", {"text": "B"})
    assert (verdict.admitted, found.value) == (True, "b"), verdict.problems
    assert [question.missing.packages for question in asked.asked] == [("abacus",)]


async def test_a_file_that_a_module_opens_at_its_top_is_asked_for_before_the_call(
    ready: Path,
) -> None:
    (ready / "data").mkdir()
    (ready / "data/words.txt").write_text("a\n")
    top = "try:\n    WORDS = open('data/words.txt').read()\nexcept OSError:\n    WORDS = ''\n"
    saved(ready, SHOUT.format(top=top))
    assert (await asked_by_a_call(ready, "yes"))[:2] == ("A", [Grants(read=("data/words.txt",))])


async def test_a_yes_to_a_package_runs_the_examples_that_waited_for_it(ready: Path) -> None:
    saved(ready, SHOUT.format(top=IMPORT))
    saved(ready, USING.format(top=IMPORT).replace("shout", "cry").replace("'BC'", "'BD'"), "cries")
    async with Workspace.open(ready, approver=human("yes")) as workspace:
        shop = workspace.functions
        for name, standing in (("shout", "trial"), ("cry", "draft")):
            assert (await shop.introspect(name)).standing == "draft"
            assert (await shop.call(name, {"text": "a"})).value == "A"
            assert (await shop.introspect(name)).standing == standing
        assert {row.name: row.standing for row in (await shop.list()).functions} == {
            "shout": "trial",
            "cry": "draft",
        }


async def test_a_package_for_one_call_alone_raises_nothing(ready: Path) -> None:
    saved(ready, SHOUT.format(top=IMPORT))
    async with Workspace.open(ready, approver=human("once")) as workspace:
        assert (await workspace.functions.call("shout", {"text": "a"})).value == "A"
        assert (await workspace.functions.introspect("shout")).standing == "draft"


BODY = 'def size(count: int) -> str:\n    """Write a size."""\n{}    return str(humanize)\n'


@pytest.mark.parametrize(
    "text",
    [
        "import humanize\n\n\n" + BODY.format(""),
        "import humanize.time\n\n\n" + BODY.format(""),
        "from humanize import naturalsize as humanize\n\n\n" + BODY.format(""),
        "import json, humanize\n\n\n" + BODY.format(""),
        BODY.format("    import humanize\n"),
        "try:\n    import json\nfinally:\n    from humanize import time as humanize\n\n\n"
        + BODY.format(""),
    ],
)
async def test_a_file_that_imports_its_own_name_means_a_package_of_this_name(
    text: str, at_desk: OpenDesk
) -> None:
    here = await at_desk([])
    await here.save("humanize.py", text)
    await here.save(
        "other.py",
        'import humanize\n\n\ndef two() -> str:\n    """Say it."""\n    return str(humanize)\n',
    )
    snapshot = here.workspace.functions.registry.snapshot()
    assert {"size", "two"} <= snapshot.functions.keys(), snapshot.rejections
    report = await here.workspace.functions.call("size", {"count": 5})
    assert "import the package humanize" in f"{report.lacks} {report.error}", report


async def test_a_file_beside_another_still_needs_the_import_of_the_workspace(
    at_desk: OpenDesk,
) -> None:
    here = await at_desk([])
    await here.save("words.py", VOWELS)
    await here.save(
        "other.py",
        'import words\n\n\ndef two() -> str:\n    """Say it."""\n    return str(words)\n',
    )
    rejections = here.workspace.functions.registry.snapshot().rejections
    assert "write `from functions import words`" in str(rejections["functions/other.py"])
