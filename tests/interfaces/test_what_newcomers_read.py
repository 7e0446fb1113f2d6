"""What a new user reads at the prompt: help, questions, memory."""

from agent_core.interfaces.dialog import Dialog
from agent_core.interfaces.render.memory_view import found_lines, history_lines
from agent_core.interfaces.slash_catalog import ENTRIES
from agent_core.interfaces.styled_lines import explained, plain, width
from agent_core.memory.search import FoundItem, ResultPage
from agent_core.storage import BlockRow


def test_help_fits_the_screen_and_keeps_its_texts_near_the_names() -> None:
    for screen in (60, 80, 100, 120):
        shown = plain(explained([(entry.typed, entry.says) for entry in ENTRIES], screen)).splitlines()
        assert all(width(each) < screen for each in shown)
        (at,) = {each.index("List the commands") for each in shown if "List the commands" in each}
        assert at <= 32


def test_a_question_is_folded_between_its_words() -> None:
    dialog = Dialog("Undo: remove the message “make it” and its turn from the context?")
    drawn = plain(dialog.rows(22)).splitlines()
    assert all(width(each) <= 22 for each in drawn)
    assert " ".join(map(str.strip, drawn)) == "? Undo: remove the message “make it” and its turn from the context?"


def test_the_history_of_memory_has_a_heading_and_calls_its_reader_you() -> None:
    by = {"human": "you", "agent": "the agent main", "class": "from the memory class"}
    change = {"at": 0.0, "label": "human", "version": 6, "agent": "main", "turn": "", "what": "write"}
    head, *lines = plain(history_lines({"changes": [{**change, "by": each} for each in by]})).splitlines()
    assert head.split() == ["when", "block", "version", "by"]
    assert [line.split("v6")[1].strip() for line in lines[::2]] == [*by.values()][::-1]
    assert history_lines({"changes": []}) == []


def test_a_search_by_a_human_begins_with_what_is_missing_and_the_best_hits_of_all() -> None:
    items = tuple(FoundItem(n, f"{'word ' * 200}heron{' word' * 200}", 0.0, "you") for n in range(2))
    best = FoundItem(7, "an owl and a heron", 0.0, "birds.md, lines 1–2", "p-1")
    terms, notes = frozenset({"heron", "owl"}), ("To follow up, search again with: Ada.",)
    said = ResultPage("messages", items, 0, 5, 2, terms, notes, ("owl", "emu"))
    stored = ResultPage("passages", (best,), 0, 1, 2, terms, notes, ("emu",))
    missing, first, *hits, messages, passages = plain(found_lines([said, stored], "'heron owl'")).splitlines()
    assert "birds.md, lines 1–2: an owl and a heron" in first
    assert all("heron" in hit and len(hit) < 220 for hit in hits)
    assert "message 0.0: " in hits[0]
    assert messages == ("messages 1 to 2 of 5; more: knapper memory search 'heron owl' --in recall --count 2 --page 1")
    assert (passages, missing) == ("passages 1 to 1 of 1", "No hit has: emu.")


def test_a_search_of_which_no_hit_has_a_word_says_so_first_and_shows_the_nearest_three() -> None:
    items = tuple(FoundItem(n, f"tea number {n}", 0.0, "you") for n in range(10))
    page = ResultPage("messages", items, 0, 14, 10, frozenset({"emu"}), missing=("emu",))
    first, *hits = plain(found_lines([page])).splitlines()
    assert first == "No hit has: emu. The nearest by meaning:"
    assert [hit.rpartition(" ")[2] for hit in hits] == ["0", "1", "2"]


def test_a_search_shows_the_lines_of_blocks_that_have_a_word_of_it_first() -> None:
    page = ResultPage("messages", (FoundItem(1, "a cup", 0.0, "you"),), 0, 1, 10, frozenset({"tea"}), missing=("tea",))
    block = BlockRow("b-1", "human", "I like tea.\nI am tall.", 2_000)
    first, second, third = plain(found_lines([page], blocks=[block])).splitlines()
    assert (first, second) == ("- the block human: I like tea.", "The nearest by meaning:")
    assert third.endswith("a cup")
