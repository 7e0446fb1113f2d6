import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from agent_core.interfaces.catalogue import ENTRIES, nearest
from agent_core.interfaces.repl.completion import PromptCompleter

NAMES = ["count_vowels", "count_words", "read_page"]


def complete(text: str, *, asked: bool = True) -> list[str]:
    words = PromptCompleter(lambda: NAMES)
    return [found.text for found in words.get_completions(Document(text), CompleteEvent(completion_requested=asked))]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        pytest.param("/re", ["release", "reload", "retry"], id="commands-by-their-beginning"),
        pytest.param("/hist", ["history"], id="a-command-before-those-that-only-mention-it"),
        pytest.param("/mw", ["memorywarning"], id="commands-by-letters-in-their-order"),
        pytest.param("/tokens", ["cost"], id="commands-by-a-word-of-their-help"),
        pytest.param("/functions u", ["unused"], id="the-word-of-a-listing"),
        pytest.param("/edit cwr", ["count_words"], id="functions-by-letters-in-their-order"),
        pytest.param("/rollback co", ["count_vowels", "count_words"], id="functions-to-go-back-with"),
        pytest.param("/edit co", ["count_vowels", "count_words"], id="functions-as-argument"),
        pytest.param("/edit page", ["read_page"], id="functions-by-a-part-of-the-name"),
        pytest.param("/test count_vowels {", [], id="nothing-in-a-second-argument"),
        pytest.param("/grants co", ["count_vowels", "count_words"], id="functions-whose-grants-are-listed"),
        pytest.param("/grants count_vowels ", ["revoke"], id="words-that-follow-a-function"),
        pytest.param("/grants count_vowels revoke ", [], id="nothing-after-the-last-word"),
        pytest.param("/help mod", ["model"], id="commands-as-argument-of-help"),
        pytest.param("/pop ", [], id="nothing-where-nothing-fits"),
        pytest.param("/nonsense x", [], id="nothing-after-an-unknown-command"),
        pytest.param("what does count_v", ["count_vowels"], id="functions-in-a-sentence-on-tab"),
    ],
)
def test_completion_offers_what_can_stand_there(typed: str, offered: list[str]) -> None:
    assert complete(typed) == offered


def test_function_names_do_not_pop_up_while_a_sentence_is_typed() -> None:
    assert complete("what does count", asked=False) == []
    assert complete("/intro", asked=False) == ["introspect"]


def test_every_command_has_a_sentence_of_help_and_a_program() -> None:
    from agent_core.interfaces import slash

    assert all(entry.says.endswith(".") for entry in ENTRIES)
    assert {entry.name for entry in ENTRIES} == set(slash._RUNS)


@pytest.mark.parametrize(
    ("typed", "meant"), [("functoins", "functions"), ("introspct", "introspect"), ("quit", "exit"), ("zzz", "")]
)
def test_a_mistyped_command_names_the_nearest_one(typed: str, meant: str) -> None:
    assert nearest(typed) == meant
