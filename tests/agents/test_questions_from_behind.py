"""Questions about grants in a turn that another agent started: who asks, for whom, and for how long."""

import asyncio
from pathlib import Path

from agent_core import Decision, Question
from agent_core.views.grant_question import grant_lines
from agent_core.views.styled_lines import plain
from tests.grants.support import READS

from .team import team
from .test_messages_between_agents import calling


def lay_out(root: Path) -> None:
    """Write a function that needs a grant."""
    (root / "functions").mkdir()
    (root / "functions" / "sums.py").write_text(READS, "utf-8")


PARTS = {
    "main": calling("ask_agent", agent="editor", question="How much?"),
    "editor": calling("total"),
}


async def test_a_question_says_who_asks_and_for_whom(tmp_path: Path) -> None:
    lay_out(tmp_path)
    asked: list[Question] = []

    async def decide(question: Question) -> Decision:
        asked.append(question)
        return Decision("no")

    async with team(tmp_path, PARTS, decide) as agents:
        await agents.say("Ask the editor.")
        assert not asked
        await agents.work()
        assert [(question.asker, question.whom) for question in asked] == [("editor", "main")]
        assert "The agent editor asks on behalf of main" in plain(grant_lines(asked[0]))
        await agents.say("And you?", to="editor")
        assert asked[1].whom == ""


async def test_a_question_from_behind_waits_no_longer_than_the_settings_say(tmp_path: Path) -> None:
    lay_out(tmp_path)

    async def never(_: Question) -> Decision:
        await asyncio.Event().wait()
        raise AssertionError

    async with team(tmp_path, PARTS, never, grants__wait_minutes=0.0005) as agents:
        await agents.say("Ask the editor.")
        await agents.work()
        assert agents.replies("editor") == ["Done."]
        assert "Nobody can be asked" in (await agents.words("editor"))[-2]
