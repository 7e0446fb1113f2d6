"""Completion knows the words after /memory, the blocks there are, and the agents."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from agent_core.interfaces.repl.completion import Words

OTHERS = {"label": ["persona", "human"], "agent": ["main", "mine", "kylie"]}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        pytest.param("/memory ", ["edit", "history", "undo", "search", "section"], id="what-can-be-done"),
        pytest.param("/memory s", ["search", "section"], id="by-their-beginning"),
        pytest.param("/memory edit h", ["human"], id="blocks-to-edit"),
        pytest.param("/memory edit human x", [], id="nothing-in-the-text"),
        pytest.param("/memory human ", [], id="nothing-after-a-block"),
        pytest.param("/switch m", ["main", "mine"], id="agents"),
        pytest.param("/mem", ["memory", "memorywarning", "attach", "undo"], id="commands"),
    ],
)
def test_completion_offers_words_blocks_and_agents(typed: str, offered: list[str]) -> None:
    words = Words(list, lambda kind: OTHERS[kind])
    found = words.get_completions(Document(typed), CompleteEvent(completion_requested=True))
    assert [each.text for each in found] == offered
