"""Every mistake or trick in a helper's file is reported with the file, the line and the fix."""

from pathlib import Path

import pytest

from agent_core.workspace.helper_changes import HelperVerdict
from tests.agents.helper_files import FINDER, put, write
from tests.conftest import OpenDesk
from tests.kit.desk import VOWELS

OTHER = FINDER.replace("which words of a text have many vowels", "how a title reads best, and why")


async def judged(root: Path, at_desk: OpenDesk, text: str, name: str = "other") -> HelperVerdict:
    """Return the verdict on a file, next to a good helper."""
    put(root)
    desk = await at_desk([])
    return await desk.workspace.helper_changes.check(name, text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(
            ('"count_vowels"', '"count_vowel"'), ":4 unknown-function: there is no function `count_vowel`", id="f"
        ),
        pytest.param(('"count_vowels"', '"vowel_finder"'), "A helper belongs into `helpers`", id="helper-as-function"),
        pytest.param(('"count_vowels"', '"create_function"'), ":4 meta-function: `create_function`", id="meta"),
        pytest.param(('"count_vowels"', '"core_memory_append"'), ":4 meta-function:", id="memory"),
        pytest.param(('"list[str]"', '"lits[str]"'), ":3 inexpressible-type: `lits[str]` is not a type", id="type"),
        pytest.param(('"int = 3"', '"intt = 3"'), ":2 inexpressible-type: `intt = 3`", id="input-type"),
        pytest.param(('"int = 3"', "\"int = open('x')\""), ":2 inexpressible-type:", id="default-is-a-call"),
        pytest.param(('"int = 3"', '"int, more: str"'), ":2 inexpressible-type:", id="two-in-one"),
        pytest.param(('"int = 3"', "3"), ":2 wrong-kind: `inputs`", id="type-is-no-text"),
        pytest.param(("most =", '"most words" ='), "input-name: `most words` cannot be the name", id="input-name"),
        pytest.param(('"list[str]"', "7"), ":3 wrong-kind: `result` cannot be 7", id="result-is-no-text"),
        pytest.param(("steps = 4", "steps = -1"), ":5 budget: the limit `steps` cannot be -1", id="negative"),
        pytest.param(("steps = 4", "stepps = 4"), ":5 budget: `stepps` is not a limit", id="unknown-limit"),
        pytest.param(("seconds = 60", "seconds = inf"), ":5 budget: the limit `seconds` cannot be inf", id="infinite"),
        pytest.param(("steps = 4", "steps = true"), ":5 budget: the limit `steps` cannot be True", id="yes-steps"),
        pytest.param(
            ("purpose =", "purpos ="), "unknown-key: `purpos` is no key of a helper — did you mean `purpose`", id="k"
        ),
        pytest.param(("budget", 'grants = ["network"]\nbudget'), ":5 unknown-key: `grants` is no key", id="grants"),
        pytest.param(("budget", 'helpers = ["other"]\nbudget'), "own-name: `other` is the helper itself", id="itself"),
        pytest.param(("budget", 'helpers = ["vowel_findr"]\nbudget'), "did you mean `vowel_finder`?", id="helper"),
        pytest.param(("budget", 'helpers = ["*"]\nbudget'), ":5 depth: `helpers` names helpers", id="depth"),
        pytest.param(("purpose", "purpose = "), ":1 toml: the file is not valid TOML", id="toml"),
        pytest.param(("result", "resultx"), "missing-key: `result` is missing", id="missing"),
        pytest.param(("budget", "examples = [{ inputs = {} }]\nbudget"), ":5 example:", id="half-an-example"),
    ],
)
async def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, at_desk: OpenDesk, change: tuple[str, str], says: str
) -> None:
    verdict = await judged(tmp_path, at_desk, OTHER.replace(*change, 1))
    assert not verdict.admitted
    assert says in "\n".join(map(str, verdict.problems))
    assert all(str(problem).startswith("helpers/other.toml:") for problem in verdict.problems)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("slug", "name-clash: `slug` is already the function at functions/words.py"),
        ("send_message", "reserved-name:"),
        ("create_function", "reserved-name:"),
        ("give_result", "reserved-name:"),
        ("user", "reserved-name:"),
        ("vowe1_finder", "look-alike: `vowe1_finder` looks like `vowel_finder`"),
        ("VowelFinder", "look-alike: `VowelFinder` looks like `vowel_finder`"),
        ("vowel__finder", "look-alike:"),
        ("pytest_setup", "helper-name:"),
        ("a-b", "helper-name:"),
        ("../evil", "helper-name:"),
        ("ｖｏｗｅｌ", "helper-name:"),
    ],
)
async def test_a_name_that_is_anothers_is_refused(tmp_path: Path, at_desk: OpenDesk, name: str, says: str) -> None:
    verdict = await judged(tmp_path, at_desk, OTHER, name)
    assert not verdict.admitted
    assert says in "\n".join(map(str, verdict.problems))


async def test_nearly_the_purpose_of_another_helper_is_refused(tmp_path: Path, at_desk: OpenDesk) -> None:
    verdict = await judged(tmp_path, at_desk, FINDER.replace("Say which", "Say now which"))
    assert "near-copy: `other` has nearly the purpose of the helper `vowel_finder`" in str(verdict.problems[0])


async def test_the_purpose_of_a_function_is_refused(tmp_path: Path, at_desk: OpenDesk) -> None:
    text = FINDER.replace("Say which words of a text have many vowels", "Count the vowels in a text")
    verdict = await judged(tmp_path, at_desk, text.replace(', most = "int = 3"', ""))
    assert "near-copy: `other` has the purpose and the inputs of the function `count_vowels`" in str(
        verdict.problems[0]
    )


@pytest.mark.parametrize(("result", "is_good"), [(2, True), (3, False)])
async def test_examples_are_answered_by_their_functions(
    tmp_path: Path, at_desk: OpenDesk, result: int, is_good: bool
) -> None:
    text = OTHER.replace('"list[str]"', '"int"')
    example = f'examples = [{{ inputs = {{ text = "a b e" }}, function = "count_vowels", result = {result} }}]\n'
    verdict = await judged(tmp_path, at_desk, text + example)
    assert verdict.admitted is is_good
    if not is_good:
        assert "example: `count_vowels` gives 2 for an example, and not 3" in str(verdict.problems[0])


async def test_a_link_is_not_followed_and_says_so(tmp_path: Path, at_desk: OpenDesk) -> None:
    put(tmp_path)
    (tmp_path / "helpers" / "linked.toml").symlink_to(write(tmp_path, "vowel_finder", FINDER))
    desk = await at_desk([])
    assert [*desk.workspace.helpers.helpers] == ["vowel_finder"]
    assert "it is a link, which is not followed" in str(desk.workspace.helpers.problems[0])


async def test_no_new_function_gets_the_name_of_a_helper(tmp_path: Path, at_desk: OpenDesk) -> None:
    put(tmp_path)
    desk = await at_desk([])
    verdict = await desk.workspace.functions.create(
        "vowel_finder", VOWELS.replace("count_vowels", "vowel_finder"), "letters"
    )
    assert not verdict.admitted
    assert "there is already a helper `vowel_finder` (helpers/vowel_finder.toml)" in str(verdict.problems)


async def test_a_saved_function_with_a_helpers_name_hides_it(tmp_path: Path, at_desk: OpenDesk) -> None:
    put(tmp_path, "count_vowels")
    desk = await at_desk([])
    assert not desk.workspace.helpers.helpers
    assert "name-clash" in str(desk.workspace.helpers.problems[0])
