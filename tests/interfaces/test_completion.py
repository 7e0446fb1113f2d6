"""Completion knows what fits at each place of a command: words, functions, versions, lines, blocks, agents."""

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from agent_core.operations.catalog import ENTRIES, nearest
from knapper.prompt import slash
from knapper.prompt.completion import PromptCompleter

NAMES = ["count_vowels", "count_words", "read_page"]
VERBS = ("edit", "history", "undo", "search", "section")
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
OFFERED = {
    "/re": ["release", "reload", "retry", "resume", "rename"],
    "/mw": ["memorywarning"],
    "/functions u": ["unused"],
    "/edit cwr": ["count_words"],
    "/rollback co": ["count_vowels", "count_words"],
    "/edit page": ["read_page"],
    "/test count_vowels {": [],
    "/grants count_vowels ": ["revoke"],
    "/grants count_vowels revoke ": [],
    "/help mod": ["model"],
    "what does count_v": ["count_vowels"],
}
OFFERED_THERE = {
    "/memory ": [*VERBS, "persona", "human"],
    "/memory section m": ["manner"],
    "/rollback slug ": ["3", "2", "1"],
    "/break slug:1": ["14", "15"],
    "/break cl": ["clear", "clamp_number"],
    "/break clear ": ["1"],
    "/break slug:14 ": ["if", "after", "every", "once"],
    "/create slug t": ["text"],
    "/move slug t": ["text"],
    "/pending slug ": ["drop"],
    "/show ": ["2", "1"],
    "/memory edit h": ["human"],
    "/switch m": ["main", "mine"],
    "/mem": ["memory", "memorywarning", "attach", "undo"],
}


def complete(text: str, *, asked: bool = True) -> list[str]:
    words = PromptCompleter(lambda: NAMES)
    return [
        found.text
        for found in words.get_completions(
            Document(text), CompleteEvent(completion_requested=asked)
        )
    ]


async def offered(kind: str, first: str) -> list[tuple[str, str]]:
    """Return the entries of a kind after a word."""
    return [
        (text, "")
        for text in OTHERS[f"{kind} of {first}" if f"{kind} of {first}" in OTHERS else kind]
    ]


async def test_completion_offers_what_can_stand_at_each_place() -> None:
    assert {typed: complete(typed) for typed in OFFERED} == OFFERED
    assert complete("what does count", asked=False) == []  # no pop-up while a sentence is typed
    assert complete("/intro", asked=False) == ["introspect"]
    words = PromptCompleter(lambda: ["clamp_number"], offered)
    for typed, whole in OFFERED_THERE.items():
        found = words.get_completions_async(
            Document(typed), CompleteEvent(completion_requested=True)
        )
        assert [each.text async for each in found] == whole, typed


def test_every_command_has_a_sentence_of_help_and_a_program_and_a_mistyped_one_names_the_nearest() -> (
    None
):
    assert all(entry.says.endswith(".") for entry in ENTRIES)
    assert {entry.name for entry in ENTRIES} == set(slash._RUNS)
    meant = {"functoins": "functions", "introspct": "introspect", "quit": "exit", "zzz": ""}
    assert {typed: nearest(typed) for typed in meant} == meant
