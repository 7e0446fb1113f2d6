"""Where the process that runs a turn may be another user's, a window that follows it asks for no value of a secret."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants import Decision, Grants, Question
from agent_core.access.grants.approval import FollowedQuestions, asking
from agent_core.storage import QuestionRow


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_value_is_asked_for_where_this_user_owns_the_secrets(
    tmp_path: Path, is_own: bool
) -> None:
    asked = list[Question]()

    async def approve(question: Question) -> Decision:
        asked.append(question)
        return Decision("once")

    question = Question("f", Grants(secrets=("KEY",)), unset=("KEY",), version="1")
    async with Workspace.open(tmp_path) as workspace:
        store = workspace.store
        await store.ask_user(QuestionRow(question.id, "main", "turn", question.to_json()))
        owns: Callable[[], bool] = lambda: is_own  # noqa: E731
        followed = FollowedQuestions(approve, store, owns)
        followed.hear(asking(question, "turn"))
        while await store.decision(question.id) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await followed.aclose()
        assert (await store.decision(question.id) or {})["answer"] == "once"
    assert [each.unset for each in asked] == [("KEY",) if is_own else ()]
