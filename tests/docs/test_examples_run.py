"""The programs in `examples/` do what their first lines say."""

from pathlib import Path

import pytest

from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.program import python

EXAMPLES = Path(__file__).parents[2] / "examples"
HELPED: Script = [
    Ask(Wanted("vowel_finder", {"text": "queueing in the sky"})),
    Ask(Wanted("give_result", {"result": ["queueing"]})),
    Say("It is queueing."),
]
GREETED: Script = [Say("Good day. AGREED")]
RUNS: list[tuple[str, list[str], Script, str]] = [
    ("grow_by_hand.py", [], [], "returned MHH\n"),
    ("one_turn.py", ["Hello?"], GREETED, "(replied after 1 steps; made: nothing)"),
    ("own_memory.py", [".", "Remind me to buy milk."], GREETED, "To do:"),
    ("group.py", [".", "@writer go."], GREETED, "[writer: user addressed writer]"),
    (
        "helpers.py",
        [".", "Which words?"],
        HELPED,
        "[vowel_finder: returned, 1 steps of helper--vowel_finder-",
    ),
    (
        "self_editing_memory.py",
        ["."],
        [],
        "- Mitua is not Bob's best friend.\n- Bob lives in Leeds.\n",
    ),
]


@pytest.mark.parametrize(
    ("example", "arguments", "script", "shown"), RUNS, ids=[row[0] for row in RUNS]
)
def test_an_example_runs(
    tmp_path: Path, example: str, arguments: list[str], script: Script, shown: str
) -> None:
    with scripted(script) as server:
        ended = python(EXAMPLES / example, *arguments, cwd=tmp_path, environment=server.environment)
    assert (ended.returncode, shown in ended.stdout, "REFUSED" in ended.stdout) == (
        0,
        True,
        False,
    ), ended.stderr
    assert not script or script[-1].text in ended.stdout  # type: ignore[union-attr]  # the last step is a reply
