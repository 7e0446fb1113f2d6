"""`[models.maker]`: another model writes the functions that an agent requests, and the agent's own model calls them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OpenDesk
from tests.grants.support import human
from tests.kit import Ask, Fail, Say, Script, ScriptedModel, Wanted, scripted
from tests.kit.desk import VOWELS, answers
from tests.kit.program import knapper

ROUGH = 'def count_vowels(text):\n    """Count vowels."""\n    return len(text)\n'
LETTERS = '''def count_letters(text: str) -> int:
    """Count the letters.

    Args:
        text: A text with letters and vowels.
    """
    return len(text)
'''
ASKED = Ask(
    Wanted(
        "create_function", {"function_name": "count_vowels", "function_code_with_docstring": ROUGH}
    )
)
CALLED = Ask(Wanted("count_vowels", {"text": "queueing"}))
FENCED = f"```python\n{VOWELS}```"


def maker_at(model: ScriptedModel) -> dict[str, Any]:
    """Return the settings table."""
    return {"models": {"maker": {"name": "strong", "base_url": model.base_url}}}


async def test_the_maker_writes_and_the_agent_calls(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    maker = scripted([Say(FENCED)], models=["strong"])
    desk = await at_desk([ASKED, CALLED, Say("5.")], **maker_at(maker))
    await desk.save("letters.py", LETTERS)
    made, called = answers(await desk.say("How many vowels are in queueing?"))
    assert made.startswith("Written by strong.")
    assert called == "5"
    (seen,) = maker.requests
    assert "How many vowels are in queueing?" in seen.text
    assert "return len(text)" in seen.text
    assert (
        "count_letters(text) -> int - Count the letters. (from functions.letters import count_letters)"
        in seen.text
    )
    assert [row.model for row in await desk.workspace._store.function_history("count_vowels")] == [
        "strong"
    ]
    assert len(maker.readings) == 1  # the same model read the description, in a fresh context


async def test_a_refused_attempt_is_shown_to_the_maker(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    wrong = VOWELS.replace('>>> count_vowels("rhythm")\n    0', '>>> count_vowels("rhythm")\n    3')
    maker = scripted([Say(f"```python\n{wrong}```"), Say(FENCED)], models=["strong"])
    desk = await at_desk([ASKED, CALLED, Say("5.")], **maker_at(maker))
    assert answers(await desk.say("Count."))[1] == "5"
    second = maker.requests[1].text
    assert f"Refused attempt 1:\n```\n{wrong.rstrip()}\n```" in second, second
    assert "expected 3" in second or "returned 0" in second, second


async def test_a_silent_maker_leaves_the_agents_own_source(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    own = Ask(
        Wanted(
            "create_function",
            {"function_name": "count_vowels", "function_code_with_docstring": VOWELS},
        )
    )
    maker = scripted([Fail(400, "no credit")], models=["strong"])
    desk = await at_desk([own, CALLED, Say("5.")], **maker_at(maker))
    made, called = answers(await desk.say("Count."))
    assert "wrote nothing" in made
    assert "no credit" in made
    assert called == "5"


async def test_the_maker_mends_what_is_to_change(
    at_desk: OpenDesk, scripted: Callable[..., ScriptedModel]
) -> None:
    fixed = (
        VOWELS.replace('"aeiou"', '"aeiouy"')
        .replace("a, e, i, o or u", "a, e, i, o, u or y")
        .replace('>>> count_vowels("rhythm")\n    0', '>>> count_vowels("rhythm")\n    1')
    )
    change = {
        "function_name": "count_vowels",
        "changes": [{"old_text": '"aeiou"', "new_text": '"aeiouy"'}],
        "reason": "y counts as a vowel, too",
    }
    maker = scripted([Say(f"```\n{fixed}```")], models=["strong"])
    desk = await at_desk([Ask(Wanted("edit_function", change)), Say("Done.")], **maker_at(maker))
    desk.workspace.functions.granting.approver = human("yes")  # an example changes
    await desk.save("letters.py", VOWELS)
    (changed,) = answers(await desk.say("Count y, too."))
    assert "count_vowels" in changed
    (seen,) = maker.requests
    assert "y counts as a vowel, too" in seen.text
    assert "The function as it is" in seen.text
    assert "aeiouy" in (desk.functions / "letters.py").read_text()


@pytest.mark.slow
def test_a_maker_for_one_run_is_named_by_a_flag_and_its_cost_is_counted_apart(
    tmp_path: Path,
) -> None:
    (tmp_path / "knapper.toml").touch()
    script: Script = [ASKED, Say(FENCED), CALLED, Say("5.")]
    with scripted(script, models=["scripted", "strong"]) as model:
        words = (
            "--model",
            "scripted",
            "--maker",
            "strong",
            "--base-url",
            model.base_url,
            "--message",
            "Count.",
        )
        done = knapper(
            "run", *words, "--json", cwd=tmp_path, environment={"OPENAI_API_KEY": "scripted"}
        )
        assert done.returncode == 0, done.stderr
        assert [one.body["model"] for one in model.requests] == [
            "scripted",
            "strong",
            "scripted",
            "scripted",
        ]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["model"] for row in rows if row["type"] == "usage" and row.get("model")} >= {
        "strong"
    }
