"""Completion knows what fits at each place of a command: words, functions, versions, lines, blocks, agents."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from agent_core.interfaces.repl.completion import PromptCompleter

VERBS = ("edit", "history", "undo", "tidy", "search", "section")
OTHERS = {
    "<label>": ["persona", "human"],
    "<agent>": ["main", "mine", "kylie"],
    "<section>": ["manner"],
    "<version> of slug": ["3", "2", "1"],
    "<line> of slug": ["14", "15", "2"],
    "<breakpoint> of clear": ["1"],
    "<module> of slug": ["text"],
    "<candidate>": ["slug"],
    "<model>": ["tour"],
    "<call>": ["2", "1"],
}


async def offered(kind: str, first: str) -> list[tuple[str, str]]:
    """Return the entries of a kind after a word."""
    return [(text, "") for text in OTHERS[f"{kind} of {first}" if f"{kind} of {first}" in OTHERS else kind]]


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        pytest.param("/memory ", [*VERBS, "persona", "human"], id="what-can-be-done"),
        pytest.param("/memory s", ["search", "section"], id="by-their-beginning"),
        pytest.param("/memory section m", ["manner"], id="sections"),
        pytest.param("/rollback slug ", ["3", "2", "1"], id="versions"),
        pytest.param("/diff slug 2", ["2"], id="a-version-by-its-beginning"),
        pytest.param("/break slug:1", ["14", "15"], id="lines-where-it-can-stop"),
        pytest.param("/break cl", ["clear", "clamp_number"], id="words-before-functions"),
        pytest.param("/break clear ", ["1"], id="breakpoints"),
        pytest.param("/break slug:14 ", ["if", "after", "every", "once"], id="words-after-a-place"),
        pytest.param("/break now ", [], id="nothing-after-now"),
        pytest.param("/create slug t", ["text"], id="modules"),
        pytest.param("/confirm s", ["slug"], id="candidates"),
        pytest.param("/pending slug ", ["drop"], id="what-to-do-with-one"),
        pytest.param("/model t", ["tour"], id="models"),
        pytest.param("/show ", ["2", "1"], id="calls"),
        pytest.param("/memory edit h", ["human"], id="blocks-to-edit"),
        pytest.param("/memory edit human x", [], id="nothing-in-the-text"),
        pytest.param("/memory human ", [], id="nothing-after-a-block"),
        pytest.param("/switch m", ["main", "mine"], id="agents"),
        pytest.param("/mem", ["memory", "memorywarning", "attach", "undo"], id="commands"),
    ],
)
async def test_completion_offers_what_can_stand_at_each_place(typed: str, whole: list[str]) -> None:
    words = PromptCompleter(lambda: ["clamp_number"], offered)
    found = words.get_completions_async(Document(typed), CompleteEvent(completion_requested=True))
    assert [each.text async for each in found] == whole
