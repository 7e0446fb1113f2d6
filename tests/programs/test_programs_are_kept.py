"""A program that ran is kept as a function, whose examples are the calls and results that were seen."""

from typing import Any

import pytest

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import answers

from .support import lay_out

DEF = """
def most_vowels(words: list[str]) -> str:
    return max(words, key=count_vowels)

print(most_vowels(["sky", "queue", "aha"]), most_vowels(["rhythm", "tree"]))
"""
WHOLE = "words = {}\nbest = max(words, key=count_vowels)\nbest + '!'"
WORDS = "Find the word with the most vowels.\n\nArgs:\n    words: The words to compare."


async def kept(at_desk: OpenDesk, *programs: str, by: str = "run_program") -> tuple[list[str], str]:
    """The answers to these programs and to keeping the last one, and the file that it made."""
    keep = {"function_name": "most_vowels", "function_code_with_docstring": WORDS, "from_program": True}
    wanted: list[dict[str, Any]] = [{"code": code} for code in programs]
    if by == "call_function":
        wanted = [{"name": "run_program", "arguments": arguments} for arguments in wanted]
    calls = [*(Wanted(by, arguments) for arguments in wanted), Wanted("create_function", keep)]
    desk = await at_desk([*map(Ask, calls), Repeat(Say("Done."))])
    lay_out(desk.workspace.root)
    await desk.workspace.workshop.reload()
    told = answers(await desk.say("Go."))
    file = desk.functions / "grown.py"
    return told, file.read_text("utf-8") if file.exists() else ""


@pytest.mark.parametrize("by", ["run_program", "call_function"])
async def test_a_def_of_a_program_is_kept_with_the_calls_that_were_seen(at_desk: OpenDesk, by: str) -> None:
    told, text = await kept(at_desk, DEF, by=by)
    assert ">>> most_vowels(['sky', 'queue', 'aha'])\n    'queue'" in text, told
    assert "from functions.letters import count_vowels" in text


async def test_a_whole_program_is_kept_with_the_values_it_begins_with_as_parameters(at_desk: OpenDesk) -> None:
    told, text = await kept(at_desk, WHOLE.format("['sky', 'queue']"), WHOLE.format("['tree', 'rhythm', 'aha']"))
    assert ">>> most_vowels(words=['sky', 'queue'])\n    'queue!'" in text, told
    assert ">>> most_vowels(words=['tree', 'rhythm', 'aha'])\n    'tree!'" in text
    assert "like a program that ran before" in told[1]


async def test_what_only_a_program_has_is_not_kept_and_it_says_so(at_desk: OpenDesk) -> None:
    told, text = await kept(at_desk, "each(count_vowels, ['a'])")
    assert "`each` is there in programs only" in told[-1]
    assert text == ""


async def test_without_a_program_there_is_nothing_to_keep(at_desk: OpenDesk) -> None:
    (told,), _ = await kept(at_desk)
    assert "No program has come to its end here." in told
