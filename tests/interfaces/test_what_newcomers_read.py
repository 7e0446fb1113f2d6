"""What somebody new reads at the prompt: help, questions, memory."""

import pytest

from agent_core.interfaces.catalogue import ENTRIES
from agent_core.interfaces.columns import explained, width
from agent_core.interfaces.repl.live import Live
from agent_core.interfaces.spans import plain


@pytest.mark.parametrize("screen", [60, 80, 100, 120])
def test_help_fits_the_screen_and_keeps_its_texts_near_the_names(screen: int) -> None:
    shown = plain(explained([(entry.typed, entry.says) for entry in ENTRIES], screen)).splitlines()
    assert all(width(each) < screen or each.startswith("/memory [LABEL") for each in shown)
    at = {each.index("What ") for each in shown if each.startswith("/help") or each.lstrip().startswith("What the")}
    assert len(at) == 1
    assert max(at) <= 32


def test_a_question_is_folded_between_its_words() -> None:
    live = Live()
    live.question = "This would take the message “make it” and its turn out of the context. Type y and Enter for yes."
    drawn = "".join(fragment[1] for fragment in live.draw(22)).split("\n")
    assert all(width(each) <= 22 for each in drawn)
    assert " ".join(drawn) == live.question
