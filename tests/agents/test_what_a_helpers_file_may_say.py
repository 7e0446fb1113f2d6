"""Every mistake or trick in a helper's file is reported with the file, the line and the fix."""

from pathlib import Path

from agent_core.registry.registry import Snapshot
from agent_core.workspace.helper_library import (
    Helper,
    Surroundings,
    problems_around,
    read_helper,
)
from tests.agents.helper_files import FINDER, put, write
from tests.conftest import OpenDesk
from tests.kit.desk import VOWELS
from tests.kit.pace import time_of

OTHER = FINDER.replace("which words of a text have many vowels", "how a title reads best, and why")
MISTAKES = (
    ('"count_vowels"', '"count_vowel"', ":4 unknown-function: there is no function `count_vowel`"),
    ('"count_vowels"', '"vowel_finder"', "A helper belongs into `helpers`"),
    ('"count_vowels"', '"create_function"', ":4 meta-function: `create_function`"),
    ('"list[str]"', '"lits[str]"', ":3 inexpressible-type: `lits[str]` is not a type"),
    ('"int = 3"', '"intt = 3"', ":2 inexpressible-type: `intt = 3`"),
    ('"int = 3"', '"int, more: str"', ":2 inexpressible-type:"),
    ('"int = 3"', "3", ":2 wrong-kind: `inputs`"),
    ("most =", '"most words" =', "input-name: `most words` cannot be the name"),
    ("steps = 4", "steps = -1", ":5 budget: the limit `steps` cannot be -1"),
    (
        "purpose =",
        "purpos =",
        "unknown-key: `purpos` is no key of a helper — did you mean `purpose`",
    ),
    ("budget", 'grants = ["network"]\nbudget', ":5 unknown-key: `grants` is no key"),
    ("budget", 'helpers = ["other"]\nbudget', "own-name: `other` is the helper itself"),
    ("budget", 'helpers = ["*"]\nbudget', ":5 depth: `helpers` names helpers"),
    ("purpose", "purpose = ", ":1 toml: the file is not valid TOML"),
    ("budget", "examples = [{ inputs = {} }]\nbudget", ":5 example:"),
)
NAMES = {
    "slug": "name-clash: `slug` is already the function at functions/words.py",
    "send_message": "reserved-name:",
    "create_function": "reserved-name:",
    "user": "reserved-name:",
    "vowe1_finder": "look-alike: `vowe1_finder` looks like `vowel_finder`",
    "a-b": "helper-name:",
    "../evil": "helper-name:",
    "ｖｏｗｅｌ": "helper-name:",
}
EXAMPLE = (
    'examples = [{{ inputs = {{ text = "a b e" }}, function = "count_vowels", result = {} }}]\n'
)


async def test_a_mistake_is_told_with_its_line_and_near_copies_are_refused(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    check = (await at_desk([])).workspace.helper_changes.check
    for old, new, says in MISTAKES:
        verdict = await check("other", OTHER.replace(old, new, 1))
        assert not verdict.admitted, new
        assert says in "\n".join(map(str, verdict.problems))
        assert all(str(problem).startswith("helpers/other.toml:") for problem in verdict.problems)
    for name, says in NAMES.items():
        verdict = await check(name, OTHER)
        assert (verdict.admitted, says in "\n".join(map(str, verdict.problems))) == (False, True), (
            name
        )
    near = (await check("other", FINDER.replace("Say which", "Say now which"))).problems[0]
    assert "near-copy: `other` has nearly the purpose of the helper `vowel_finder`" in str(near)
    text = FINDER.replace(
        "Say which words of a text have many vowels", "Count the vowels in a text"
    )
    near = (await check("other", text.replace(', most = "int = 3"', ""))).problems[0]
    assert (
        "near-copy: `other` has the purpose and the inputs of the function `count_vowels`"
        in str(near)
    )
    text = OTHER.replace('"list[str]"', '"int"')
    assert (await check("other", text + EXAMPLE.format(2))).admitted
    wrong = (await check("other", text + EXAMPLE.format(3))).problems[0]
    assert "example: `count_vowels` gives 2 for an example, and not 3" in str(wrong)


async def test_links_and_files_of_runs_are_no_helpers_and_names_are_taken(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    write(tmp_path, "helper--x", FINDER)
    (tmp_path / "helpers" / "linked.toml").symlink_to(write(tmp_path, "vowel_finder", FINDER))
    workspace = (await at_desk([])).workspace
    assert [*workspace.helpers.helpers] == ["vowel_finder"]
    assert any(
        "it is a link, which is not followed" in str(problem)
        for problem in workspace.helpers.problems
    )
    code = VOWELS.replace("count_vowels", "vowel_finder")
    verdict = await workspace.functions.create("vowel_finder", code, "letters")
    assert not verdict.admitted
    assert "there is already a helper `vowel_finder` (helpers/vowel_finder.toml)" in str(
        verdict.problems
    )


async def test_a_saved_function_with_a_helpers_name_hides_it(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path, "count_vowels")
    desk = await at_desk([])
    assert not desk.workspace.helpers.helpers
    assert "name-clash" in str(desk.workspace.helpers.problems[0])


def test_a_helper_is_judged_in_the_same_time_among_many() -> None:
    def seconds(count: int) -> float:
        texts = {
            f"finder_{at}": FINDER.replace("vowel_finder", f"finder_{at}") for at in range(count)
        }
        readings = [read_helper(name, text) for name, text in texts.items()]
        helpers = {each.name: each for each in readings if isinstance(each, Helper)}
        assert len(helpers) == count
        around = Surroundings(Snapshot.empty(), helpers)
        return time_of(lambda: [problems_around(helper, around) for helper in helpers.values()])

    few, many = seconds(100), seconds(1_600)
    assert many / few <= 60, (few, many)  # 16 times as many; the square would be 256
