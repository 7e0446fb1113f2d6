"""The result of an edit shows the lines most similar to the new text, in any language."""

import json

import pytest

from agent_core.base.events import CallAnswered
from agent_core.memory.classes import ChatMemory
from benchmarks.nearest import measured
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json
from tests.kit.desk import of
from tests.kit.steps import Ask, Expect, Say, Wanted, contains

FRIENDS = "Bob's best friends include Alex and Mitua"
BESIDE = "Bob's friend Karl lives in York"


def _append(content: str) -> Ask:
    return Ask(Wanted("core_memory_append", {"name": "human", "content": content}))


async def _answers(
    at_desk: OpenDesk, human: list[str], *asked: Ask | Expect
) -> tuple[list[str], list[str]]:
    """Return the results of the calls, and the remaining lines."""
    desk = await at_desk([*asked, Say("All right.")])
    agent = await desk.workspace.agent("blank", memory=ChatMemory(human="\n".join(human)))
    answers = [
        answer.text for answer in of(CallAnswered, [event async for event in agent.turn("Listen.")])
    ]
    return answers, agent.memory.blocks.memory["human"].lines


async def test_the_untrue_line_is_shown_by_its_number_which_a_replacement_takes(
    at_desk: OpenDesk,
) -> None:
    others = ["Likes tea", "Owns a boat", "Works at a bakery", "Plays the cello", BESIDE]
    correction = Wanted(
        "core_memory_replace",
        {"name": "human", "old_content": "line 3", "new_content": "Alex is one"},
    )
    answers, lines = await _answers(
        at_desk,
        [*others[:2], FRIENDS, *others[2:]],
        _append("Mitua is not Bob's best friend"),
        Expect(Ask(correction), contains(f'Nearest to what was written: line 3: "{FRIENDS}"')),
    )
    assert BESIDE in answers[0].split("Nearest")[1]
    assert lines == [*others[:2], "Alex is one", *others[2:], "Mitua is not Bob's best friend"]


async def test_nothing_is_shown_where_nothing_is_near(at_desk: OpenDesk) -> None:
    answers, _ = await _answers(at_desk, ["Owns a boat", "用户不吃肉。"], _append("Zzyzx qwrt"))
    assert "Nearest" not in answers[0]


async def test_lines_are_shown_by_their_words_where_no_vectors_can_be_had(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [_append("Mitua is not Bob's best friend"), Say("Yes.")], memory__embedding="none"
    )
    agent = await desk.workspace.agent(
        "blank", memory=ChatMemory(human=f"Likes tea\n{FRIENDS}\nOwns a boat")
    )
    (answer,) = of(CallAnswered, [event async for event in agent.turn("Listen.")])
    assert f'Nearest to what was written: line 2: "{FRIENDS}"' in answer.text


@pytest.mark.slow
@pytest.mark.parametrize(("embedding", "least"), [("none", 0.79), ("wordllama", 0.84)])
async def test_contradicted_lines_of_five_languages_are_among_the_three(
    embedding: str, least: float
) -> None:
    shown = await measured(embedding)
    assert len(shown) == 640
    assert sum(case.rank is not None for case in shown) >= least * len(shown)
    assert max(case.tokens for case in shown) <= 90


@pytest.mark.parametrize(
    ("line", "is_offered"), [("Bob likes tea.", False), ("Mitua is Bob's best friend.", True)]
)
async def test_a_small_model_is_offered_a_replacement_after_an_addition_only_where_a_line_stands_near(
    at_desk: OpenDesk, line: str, is_offered: bool
) -> None:
    added = {"name": "human", "content": "Mitua is not a friend."}
    call = json.dumps(
        {"thought": "I add it.", "call": {"name": "core_memory_append", "arguments": added}}
    )
    settings = {"model__mode": "constrained", "model__context_tokens": 16_000}
    desk = await at_desk([Say(call), in_json("All right.")], **settings)
    agent = await desk.workspace.agent("blank", memory=ChatMemory(human=line))
    [event async for event in agent.turn("Remember that Mitua is not my friend.")]
    schema = json.dumps(desk.model.requests[1].body["response_format"])
    assert '"const": "core_memory_append"' in schema
    assert ('"const": "core_memory_replace"' in schema) is is_offered
