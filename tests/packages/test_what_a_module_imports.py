"""Each function needs what its module imports at the top, used or not, and every report says so."""

import os
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants import Grants
from tests.grants.support import Human, human
from tests.interfaces.asking import home, press, shown_whole
from tests.interfaces.support import prompt
from tests.kit.program import knapper
from tests.packages.support import wheel

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
NEEDED = [
    pytest.param(IMPORT, id="import"),
    pytest.param("from abacus import total as _total\n", id="from"),
    pytest.param("import sys\n\nif sys.argv is not None:\n    import abacus\n", id="if"),
    pytest.param("try:\n    import abacus\nfinally:\n    DONE = 1\n", id="try that goes on without nothing"),
    pytest.param("class Counts:\n    import abacus\n", id="class"),
    pytest.param(f"{IMPORT}\n\n{HELPER}", id="helper"),
]
FREE = [
    pytest.param("try:\n    import abacus\nexcept ImportError:\n    abacus = None\n", id="try"),
    pytest.param("from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import abacus\n", id="hints"),
    pytest.param("if __name__ == '__main__':\n    import abacus\n", id="program"),
    pytest.param("import socket\n", id="socket"),
    pytest.param("import shutil\nimport urllib.request\n", id="standard library"),
    pytest.param(HELPER.replace("return", "import abacus\n    return"), id="helper"),
]


def saved(root: Path, text: str, name: str = "sounds") -> Path:
    """Save a file as a human does, and return it."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "knapper.toml").touch()
    file = root / "functions" / f"{name}.py"
    file.write_text(text)
    return file


async def asked_by_a_call(root: Path, *words: str, name: str = "shout") -> tuple[str, list[Grants], Human]:
    """Call a function; return its value, the missing grants that were asked for, and the human."""
    asked = human(*words)
    async with Workspace.open(root, approver=asked) as workspace:
        found = await workspace.functions.call(name, {"text": "a"})
    return str(found.value), [question.missing for question in asked.asked], asked


@pytest.mark.parametrize("top", NEEDED)
async def test_a_call_asks_for_what_its_module_imports_at_the_top(ready: Path, top: str) -> None:
    saved(ready, SHOUT.format(top=top))
    value, missing, _ = await asked_by_a_call(ready, "yes")
    assert (value, missing) == ("A", [Grants(packages=("abacus",))])


@pytest.mark.parametrize("top", FREE)
async def test_a_call_asks_for_nothing_that_its_import_can_do_without(ready: Path, top: str) -> None:
    saved(ready, SHOUT.format(top=top))
    assert (await asked_by_a_call(ready))[:2] == ("A", [])


async def test_the_question_shows_the_import(ready: Path) -> None:
    saved(ready, SHOUT.format(top=f"import math\n{IMPORT}"))
    (question,) = (await asked_by_a_call(ready, "yes"))[2].asked
    assert question.lines == ((2, "import abacus"),)


async def test_each_function_of_the_module_is_asked_for_it_and_for_no_more(ready: Path) -> None:
    wheel(ready.parent / "index", "requests", "1.0", {"requests.py": "get = len\n"})
    fetch = "\n\ndef fetched(text: str) -> int:\n    '''Fetch a text.'''\n    return requests.get(text)\n"
    saved(ready, SHOUT.format(top="import requests\n") + WHISPER + fetch)
    wanted = Grants(packages=("requests",))
    for name, value in (("shout", "A"), ("whisper", "a"), ("fetched", "1")):
        assert (await asked_by_a_call(ready, "yes", name=name))[:2] == (value, [wanted])


@pytest.mark.parametrize("text", [pytest.param(SHOUT, id="not used"), pytest.param(USING, id="used")])
def test_the_gate_the_grant_and_the_list_agree_on_what_a_function_needs(ready: Path, text: str) -> None:
    saved(ready, text.format(top=IMPORT))

    def run(*arguments: str, code: int = 0) -> str:
        done = knapper("functions", *arguments, cwd=ready, environment=os.environ)
        assert done.returncode == code, f"{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    assert "needs-packages" in run("check", "functions/sounds.py", code=1)
    assert "draft" in run("list")
    assert "import the package abacus" in run("grant", "shout", "-y")
    assert "trial" in run("list")
    assert "needs-" not in run("check", "functions/sounds.py")
    assert run("call", "shout", "--args", '{"text": "a"}') == "A\n"
    assert "has all of it already" in run("grant", "shout", "-y", code=2)


def test_an_unused_http_client_is_no_dead_end(index: Path, root: Path) -> None:
    wheel(index, "requests", "1.0", {"requests.py": "get = len\n"})
    saved(root, SHOUT.format(top="import requests\n"))
    granted = knapper("functions", "grant", "shout", "-y", cwd=root, environment=os.environ)
    assert ("requests" in granted.stdout, "fetch" in granted.stdout) == (True, False), granted.stderr
    checked = knapper("functions", "check", "functions/sounds.py", cwd=root, environment=os.environ)
    assert "needs-" not in checked.stdout + checked.stderr
    again = knapper("functions", "grant", "shout", "-y", cwd=root, environment=os.environ)
    assert again.returncode == 2


async def test_a_yes_that_an_edit_ended_is_asked_for_again_at_the_call(ready: Path) -> None:
    file = saved(ready, SHOUT.format(top=IMPORT))
    assert (await asked_by_a_call(ready, "yes"))[1] == [Grants(packages=("abacus",))]
    assert (await asked_by_a_call(ready))[:2] == ("A", [])
    file.write_text(file.read_text().replace("text.upper()", "text.upper() + '!'"))
    value, missing, who = await asked_by_a_call(ready, "yes")
    assert (value, missing, who.asked[0].is_again) == ("A!", [Grants(packages=("abacus",))], True)


async def test_a_no_refuses_the_call_with_the_command_that_grants_it(ready: Path) -> None:
    saved(ready, SHOUT.format(top=IMPORT))
    async with Workspace.open(ready, approver=human("no")) as workspace:
        found = await workspace.functions.call("shout", {"text": "a"})
    assert found.outcome == "refused"
    assert found.error is not None
    assert "To grant it for good: knapper functions grant shout --package abacus" in found.error.message


async def test_a_package_that_comes_to_the_top_of_the_module_is_asked_for_with_what_was_given(ready: Path) -> None:
    file = saved(ready, SHOUT.format(top="").replace("text.upper()", "open('data/a').read() if text == 'x' else 'y'"))
    given = Grants(read=("data/a",))
    assert (await asked_by_a_call(ready, "yes"))[1] == [given]
    file.write_text(IMPORT + file.read_text())
    value, missing, who = await asked_by_a_call(ready, "yes")
    assert (value, missing) == ("y", [given | Grants(packages=("abacus",))])
    assert who.asked[0].changed == "`shout` itself is unchanged; what sounds does when it is imported is new"
    assert (await asked_by_a_call(ready))[:2] == ("y", [])


async def test_a_candidate_is_asked_for_what_the_module_that_it_joins_imports(ready: Path) -> None:
    saved(ready, SHOUT.format(top=IMPORT))
    asked = human("yes")
    async with Workspace.open(ready, approver=asked) as workspace:
        verdict = await workspace.functions.create("whisper", WHISPER, "sounds", reason="It whispers, unlike `shout`.")
        found = await workspace.functions.call("whisper", {"text": "B"})
    assert (verdict.admitted, found.value) == (True, "b"), verdict.problems
    assert [question.missing.packages for question in asked.asked] == [("abacus",)]


async def test_a_file_that_a_module_opens_at_its_top_is_asked_for_before_the_call(ready: Path) -> None:
    (ready / "data").mkdir()
    (ready / "data/words.txt").write_text("a\n")
    top = "try:\n    WORDS = open('data/words.txt').read()\nexcept OSError:\n    WORDS = ''\n"
    saved(ready, SHOUT.format(top=top))
    assert (await asked_by_a_call(ready, "yes"))[:2] == ("A", [Grants(read=("data/words.txt",))])


@pytest.mark.parametrize("text", [pytest.param(SHOUT, id="not used"), pytest.param(USING, id="used")])
@pytest.mark.parametrize(("expected", "standing"), [("'BC'", "trial"), ("'BD'", "draft")])
async def test_a_yes_to_a_package_runs_the_examples_that_waited_for_it(
    ready: Path, text: str, expected: str, standing: str
) -> None:
    saved(ready, text.format(top=IMPORT).replace("'BC'", expected))
    async with Workspace.open(ready, approver=human("yes")) as workspace:
        shop = workspace.functions
        assert (await shop.introspect("shout")).standing == "draft"
        assert (await shop.call("shout", {"text": "a"})).value == "A"
        assert (await shop.introspect("shout")).standing == standing
        (row,) = (await shop.list()).functions
    assert row.standing == standing


async def test_a_package_for_one_call_alone_raises_nothing(ready: Path) -> None:
    saved(ready, SHOUT.format(top=IMPORT))
    async with Workspace.open(ready, approver=human("once")) as workspace:
        assert (await workspace.functions.call("shout", {"text": "a"})).value == "A"
        assert (await workspace.functions.introspect("shout")).standing == "draft"


def test_the_prompt_asks_before_it_calls_a_function_whose_module_imports_a_package(index: Path, root: Path) -> None:
    saved(root, SHOUT.format(top=IMPORT))
    given = {name: os.environ[name] for name in os.environ if name.startswith("PIP_")}
    with prompt([], root, environment={**home(root), **given}) as (screen, _):
        screen.line('=shout("a")')
        shown_whole(screen)
        assert any("import the package abacus" in row for row in screen.screen())
        press(screen, "y")
        screen.wait(lambda: "A" in screen.screen(), "the result")
