"""A human's rating of a function's results counts along with its examples and calls."""

import json
from pathlib import Path

from agent_core.base.settings import StandingSettings
from agent_core.functions.service.function_facts import standing
from agent_core.storage import Stats
from tests.conftest import OpenDesk
from tests.grants.support import human
from tests.interfaces.support import COUNT_VOWELS, prompt
from tests.kit import Ask, Expect, Repeat, Say, Wanted, contains
from tests.kit.desk import SHIPPING, VOWELS, answers
from tests.kit.program import knapper
from tests.kit.steps import Seen

PRICE = Ask(Wanted("shipping", {"weight": 12}))
COUNT = Ask(Wanted("count_vowels", {"text": "yes"}))
WRONG = "y counts too"
TOLD = f"(the user found a result of it wrong: {WRONG})"


def guess(seen: Seen) -> Ask:
    """Predict nonsense for all requested results."""
    calls = str(seen.messages[-1]["content"]).count("\n- ")
    return Ask(
        Wanted("confirm_function", {"function_name": "shipping", "expected": ["77"] * calls})
    )


async def test_what_nobody_predicted_is_said_with_each_result_until_a_human_calls_it_good(
    at_desk: OpenDesk,
) -> None:
    create = Wanted(
        "create_function", {"function_name": "shipping", "function_code_with_docstring": SHIPPING}
    )
    confirm = Ask(Wanted("confirm_function", {"function_name": "shipping"}))
    desk = await at_desk([Ask(create), guess, confirm, PRICE, Say("9."), PRICE, Say("9.")])
    result = answers(await desk.say("Make it."))[-1]
    assert result.startswith("9\n[unproven: nobody predicted what shipping(")
    rated = await desk.workspace.functions.rate("shipping", is_good=True)
    assert (rated.thumb, rated.standing, rated.doubts) == ("good", "trial", ())
    assert answers(await desk.say("Again.")) == ["9"]


async def test_a_function_called_bad_is_a_draft_of_which_the_model_is_told_until_it_changes(
    at_desk: OpenDesk,
) -> None:
    fixed = VOWELS.replace("    0\n", "    1\n").replace('"aeiou"', '"aeiouy"')
    replaced = {
        "function_name": "count_vowels",
        "function_code_with_docstring": fixed,
        "reason": WRONG,
    }
    desk = await at_desk(
        [
            COUNT,
            Say("1."),
            Expect(COUNT, contains(WRONG)),
            Ask(Wanted("replace_function", replaced)),
            COUNT,
            Say("2."),
            Repeat(Say("So.")),
        ]
    )
    desk.workspace.functions.granting.approver = human("yes")  # an example changes
    desk.put("letters.py", VOWELS)
    await desk.workspace.functions.reload()
    assert answers(await desk.say("Go.")) == ["1"]
    rated = await desk.workspace.functions.rate("count_vowels", is_good=False, note=WRONG)
    assert (rated.thumb, rated.standing) == ("bad", "draft")
    marked, _changed, right = answers(await desk.say("And now?"))
    assert marked == f"1\n[unproven: the user found a result of it wrong: {WRONG}]"
    assert right == "2"
    await desk.say("Thanks.")
    await desk.workspace.functions.rate("count_vowels", is_good=False, note=WRONG)
    await desk.begin()
    await desk.say("A new conversation.")
    assert [TOLD in request.text for request in desk.model.requests] == [*[False] * 7, True]


def test_a_script_rates_a_function(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    bad = knapper("functions", "bad", "count_vowels", WRONG, "--json", cwd=tmp_path)
    expected = {"name": "count_vowels", "thumb": "bad", "standing": "draft", "doubts": []}
    assert (bad.returncode, json.loads(bad.stdout)) == (0, expected)
    assert (
        f"~ rated bad: {WRONG}\n"
        in knapper("functions", "show", "count_vowels", cwd=tmp_path).stdout
    )
    good = knapper("functions", "good", "count_vowels", "--json", cwd=tmp_path)
    assert json.loads(good.stdout)["standing"] == "trial"
    assert knapper("functions", "good", "nothing", cwd=tmp_path).returncode == 2


def test_at_the_prompt_the_last_call_is_rated_be_it_the_agents_or_the_users(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions" / "words.py").write_text(
        COUNT_VOWELS + "\n\n" + COUNT_VOWELS.replace("_vowels", "_them")
    )
    fine = Expect(Say("Fine."), contains("takes that back: they are right"))
    with prompt([COUNT, Say("Once."), fine], tmp_path) as (screen, _model):
        screen.line("/good")
        screen.wait_for("No function was called in this session")
        screen.line('/call count_them("aha")')
        screen.wait_for("count_them(text='aha')")
        screen.line("/good")
        screen.wait_for("count_them is rated good")
        screen.line("Count.")
        screen.wait_for("count_vowels(text='yes') → 1")
        screen.wait_for("Once.")
        screen.line("/bad")
        screen.wait_for("count_vowels is rated bad; its standing is draft; the agent is notified")
        screen.line("/good")
        screen.wait_for("count_vowels is rated good; its standing is trial")
        screen.line("And now?")
        screen.wait_for("Fine.")


def test_open_doubts_double_what_trust_takes() -> None:
    cases: list[tuple[int, int, bool, bool]] = [
        (20, 7, False, True),
        (20, 7, True, False),
        (40, 7, True, False),
        (40, 14, True, True),
    ]
    for calls, days, doubted, trusted in cases:
        stats = Stats(
            "f",
            "v",
            calls,
            calls,
            0,
            0,
            calls,
            0.0,
            days * 86_400.0,
            1.0,
            since=0.0,
            worked=days * 86_400.0,
        )
        assert (
            standing("trial", stats, StandingSettings(), is_doubted=doubted) == "trusted"
        ) == trusted, calls
