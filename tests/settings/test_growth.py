"""Growth: agents make functions by themselves, with a person's yes to each, or not at all; people always can."""

import json
from pathlib import Path

import pytest

from agent_core.access.grants import Answer, Decision, Question
from agent_core.access.grants.approval import MOST_NOES
from agent_core.base.settings import FILE_NAME, load
from agent_core.runtime.allowed import GROWING
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Script, Wanted, scripted
from tests.kit.desk import VOWELS, another, answers, outcomes

LOOKS = [
    Wanted("no_such_function", {}),
    Wanted("list_functions", {"pattern": "what sends a letter"}),
    Wanted("function_history", {"function_name": "count_vowels"}),
    Wanted("introspect_function", {"function_name": "count_vowels"}),
    Wanted("run_program", {"code": "max(['a', 'b'], key=count_vowels)"}),
    Wanted("run_program", {"code": "max(['a', 'c'], key=count_vowels)"}),
]
"""Calls whose answers name what makes functions, where an agent may."""


def making(name: str) -> Wanted:
    code = VOWELS if name == "count_vowels" else another(name)
    given = {"function_name": name, "function_code_with_docstring": code}
    return Wanted("create_function", given | {"reason": f"{name} is needed"})


class Person:
    """Answers questions in order, and keeps them."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[Question] = []
        self._answers = list(answers)

    async def __call__(self, question: Question) -> Decision:
        self.asked.append(question)
        return Decision(self._answers.pop(0))


async def test_with_growth_off_no_request_has_a_word_or_a_tool_of_growing(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "texts.py").write_text(VOWELS)
    sizes = {}
    for mode in ("on", "off"):
        script: Script = [Ask(*LOOKS), Say("```python\ndef f() -> int: ...\n```"), Say("Hi.")]
        with scripted(script) as model:
            flags = {"model.base_url": model.base_url, "model.name": "scripted"}
            flags |= {"memory.embedding": "none", "growth.mode": mode}
            async with Workspace.open(tmp_path, flags=flags) as workspace:
                agent = await workspace.agent(conversation="new")
                for message in ("Hello", "Again"):
                    _ = [event async for event in agent.turn(message)]
            texts = [json.dumps([seen.body["tools"], seen.messages]) for seen in model.requests]
        sizes[mode] = len(texts[0])
        named = {name for name in GROWING if any(name in text for text in texts)}
        words = [word for word in ("makes its own", "make one", "gate") if word in "".join(texts)]
        assert bool(named) == bool(words) == (mode == "on"), (named, words)
    assert sizes["off"] < sizes["on"] * 0.75, sizes


async def test_with_growth_off_a_call_of_what_makes_functions_is_a_call_of_nothing(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Ask(making("count_vowels")), Say("Done.")], growth__mode="off")
    (told,) = answers(await desk.say("Make it."))
    assert told.startswith("There is no function `create_function`.")
    assert "make it with" not in told
    assert "count_vowels" not in desk.workspace.functions.names()
    assert (await desk.workspace.functions.create("count_vowels", VOWELS)).admitted  # by hand


async def test_where_growth_asks_a_yes_joins_and_a_no_keeps_a_draft(at_desk: OpenDesk) -> None:
    makes = [making("count_vowels"), making("more_vowels")]
    desk = await at_desk([Ask(*makes), Repeat(Say("Done."))], growth__mode="ask")
    person = Person("yes", "no")
    shop = desk.workspace.functions
    shop.granting.approver = person
    assert outcomes(await desk.say("Make both.")) == ["returned", "refused"]
    first, second = person.asked
    assert first.is_new
    assert "def count_vowels" in first.diff
    assert first.why == "count_vowels is needed"
    assert first.facts == ("What it reaches: computes only.", "2 examples agree.")
    assert "more_vowels" not in shop.names()
    assert [*await shop.all_pending()] == ["more_vowels"]
    joined = await shop.join("more_vowels")
    assert joined.joined[0].admitted
    assert second.function == "more_vowels"
    assert joined.joined[0].by in ("", "agent")


async def test_several_drafts_join_at_once_and_only_those_that_lack_nothing_else(
    at_desk: OpenDesk,
) -> None:
    wrong = making("wrong_vowels")
    assert isinstance(wrong.arguments, dict)
    code = str(wrong.arguments["function_code_with_docstring"])
    wrong.arguments["function_code_with_docstring"] = code.replace("\n    5\n", "\n    6\n")
    makes = [making("one_vowels"), making("two_vowels"), wrong]
    desk = await at_desk([Ask(*makes), Repeat(Say("Done."))], growth__mode="ask")
    shop = desk.workspace.functions
    assert outcomes(await desk.say("Make them.")) == ["refused"] * 3  # nobody can be asked
    joined = await shop.join("*_vowels")
    assert {judgment.name for judgment in joined.joined if judgment.admitted} == {
        "one_vowels",
        "two_vowels",
    }
    assert [*await shop.all_pending()] == ["wrong_vowels"]


async def test_where_growth_asks_each_way_to_change_is_asked(at_desk: OpenDesk) -> None:
    changes = [{"old_text": "Count the vowels", "new_text": "Count all vowels"}]
    ways = [
        Wanted("edit_function", {"function_name": "count_vowels", "changes": changes}),
        Wanted("delete_function", {"function_name": "count_vowels"}),
        Wanted("rollback_function", {"function_name": "count_vowels", "version": "1"}),
        Wanted(
            "add_example",
            {"function_name": "count_vowels", "call": 'count_vowels("a")', "expected": "1"},
        ),
    ]
    read = Ask(Wanted("introspect_function", {"function_name": "count_vowels"}))
    desk = await at_desk([read, Ask(*ways), Repeat(Say("Done."))], growth__mode="ask")
    await desk.save("texts.py", VOWELS.replace("Count the vowels in", "Count vowels in"))
    await desk.save("texts.py", VOWELS)
    person = Person("no", "no", "no", "no")
    shop = desk.workspace.functions
    shop.granting.approver = person
    events = await desk.say("Change it.")
    assert outcomes(events) == ["returned", *["refused"] * 4]
    assert len(person.asked) == MOST_NOES  # after these, a person is left alone
    assert all("count_vowels" in question.diff for question in person.asked)
    assert (desk.functions / "texts.py").read_text() == VOWELS
    assert {version.row.by for version in await shop.history.versions("count_vowels")} == {"human"}


@pytest.mark.parametrize(
    ("old", "value", "mode"),
    [
        ("growth.create", False, "off"),
        ("growth.create", True, "on"),
        ("grants.ask", "always", "ask"),
    ],
)
def test_what_an_earlier_version_called_otherwise_counts_and_is_told_once(
    old: str, value: object, mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section, _, name = old.partition(".")
    (tmp_path / FILE_NAME).write_text(f"[{section}]\n{name} = {json.dumps(value)}\n")
    assert [load(tmp_path).growth.mode for _ in range(2)] == [mode] * 2
    told = capsys.readouterr().err
    assert told.count(f"`{old} = ") == 1
    assert f'`growth.mode = "{mode}"`' in told
    assert load(tmp_path, {"growth.mode": "off"}).growth.mode == "off"


def test_a_variable_of_an_earlier_version_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNAPPER_GROWTH_CREATE", "false")
    assert load(tmp_path).growth.mode == "off"
