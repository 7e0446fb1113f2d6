"""What a new user reads at the prompt: help, questions, memory."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base import events
from agent_core.base.receipt import Made
from agent_core.base.records import replace
from agent_core.base.untrusted import visible
from agent_core.functions.debug import Command, DebugStop
from agent_core.functions.debug.stop import At
from agent_core.functions.service.judgment import Judgment
from agent_core.memory.search import FoundItem, ResultPage
from agent_core.operations.catalog import ENTRIES
from agent_core.storage import BlockRow
from agent_core.views import verdicts
from agent_core.views.call_log import (
    CallLog,
    ShownCall,
    call_line,
    call_lines,
    ended_lines,
    stop_parts,
)
from agent_core.views.dialog import Dialog
from agent_core.views.memory_view import found_lines, history_lines
from agent_core.views.styled_lines import columns, cut, explained, folded, meter, plain, width
from knapper.prompt import render
from knapper.prompt.live import BlockSplitter, DrawnBlock
from knapper.prompt.prompt import gauge


def log_of(arguments: str, **given: Any) -> CallLog:
    log = CallLog()
    log.started(events.CallStarted(turn="t", call_id="1", name="add", arguments=arguments))
    shape = {
        "turn": "t",
        "call_id": "1",
        "name": "add",
        "text": "5",
        "outcome": "returned",
        "seconds": 0.012,
    }
    log.answered(events.CallAnswered(**{**shape, **given}))
    return log


def test_a_long_call_is_cut_to_the_width_of_the_screen() -> None:
    log = log_of('{"text": "' + "漢" * 500 + '"}', text="y" * 500)
    for columns_ in (30, 80, 200):
        shown = plain([call_line(log.calls[0], columns_)]).rstrip("\n")
        assert (width(shown) <= max(columns_, 41), shown[-3:]) == (True, "[1]")
    assert verdicts.compact_call("add", "{broken") == "add({broken)"
    assert verdicts.compact_call("add", "[" * 100_000) == f"add({'[' * 100_000})"


def test_a_verdict_says_what_became_of_the_examples_and_leaves_the_stages_to_show() -> None:
    stages = [
        {"stage": "examples", "passed": True, "seconds": 0.02, "note": "2 of 2 examples agree"},
        {
            "stage": "mutation",
            "passed": True,
            "seconds": 0.3,
            "note": "2 of 2 wrong bodies noticed",
        },
        {
            "stage": "robust",
            "passed": True,
            "seconds": 0.5,
            "note": "",
            "beside": True,
        },  # it ran at once
        {"stage": "cost", "passed": False, "seconds": 0, "note": "not run: there is no function"},
    ]
    shape = {
        "name": "f",
        "module": "text",
        "admitted": False,
        "standing": "draft",
        "source": "def f() -> int: ...",
    }
    verdict = Judgment.from_json({**shape, "fixes": [], "problems": [], "stages": stages})
    shown = plain(verdicts.verdict_lines(verdict))
    assert "2 of 2 examples agree · 520 ms\n" in shown  # of two at once, the longer one
    assert "bodies" not in shown
    laid = plain(verdicts.stage_lines(verdict))
    assert laid == (
        "checked by the gate in 3 of 4 stages, among them:\n"
        "  examples: do its examples hold? 2 of 2 examples agree\n"
        "  mutation: would its examples notice a wrong body? 2 of 2 wrong bodies noticed\n"
    )


BUSY: Made = {
    "created": ["celsius", "kelvin", "rankine", "reaumur"],
    "wrote": ["out/table.csv"],
    "refused": {"evil.example": 1},
    "called": {"celsius": 2},
}


COMPUTED: Made = {"called": {"celsius": 2}}
ASKED: Made = {
    "created": ["plot"],
    "wrote": ["chart.png"],
    "asked": ["may plot read chart.png? once", "and write it? no"],
}
RECEIPTS: list[tuple[Made, int, str]] = [
    ({}, 80, "3 steps, 1,000 tokens, 2.5 s · nothing outside this conversation"),
    (COMPUTED, 80, "3 steps, 2.5 s · nothing outside this conversation · called celsius ×2"),
    (COMPUTED, 60, "3 steps, 2.5 s · nothing outside this conversation"),  # they were shown above
    (
        BUSY,  # names before tokens
        120,
        "created celsius and 3 more · wrote out/table.csv · was refused evil.example"
        " · 3 steps, 2.5 s · called celsius ×2",
    ),
    # Then the longest become a number, and what is short keeps its names.
    (BUSY, 80, "created 4 · wrote out/table.csv · was refused evil.example · 3 steps, 2.5 s"),
    (BUSY, 40, "created 4 · wrote 1 · was refused 1 · 3 steps, 2.5 s"),
    (
        ASKED,
        160,
        "created plot · wrote chart.png · asked you: may plot read chart.png? once, and write it? no"
        " · 3 steps, 1,000 tokens, 2.5 s",
    ),
    (ASKED, 80, "created plot · wrote chart.png · asked you 2× · 3 steps, 1,000 tokens, 2.5 s"),
    (
        {**ASKED, "asked": {"may f read a.csv? yes": 2}},
        40,
        "created 1 · wrote 1 · asked you 2× · 3 steps, 2.5 s",
    ),
    # What one long name gave back lets the others stay.
    (
        {"created": ["a", "b", "c", "d", "e"], "reached": ["a-long-name-of-a-host.example:8443"]},
        60,
        "created a, b, c, d, e · reached 1 · 3 steps, 2.5 s",
    ),
]


def test_the_last_line_of_a_turn_is_its_receipt_in_one_row() -> None:
    usage = {"prompt_tokens": 1000}
    for made, screen, text in RECEIPTS:
        event = events.TurnEnded(
            turn="t",
            reason="replied",
            reply="",
            steps=3,
            usage=usage,
            made=made,
            receipt="it is known",
        )
        assert plain(ended_lines(event, 2.5, screen)) == f"∙ {text}\n"


@pytest.mark.parametrize("is_admitted", [True, False])
@pytest.mark.parametrize("number", [1, 17, 1234])
@pytest.mark.parametrize("hints", [0, 1, 12])
@pytest.mark.parametrize("name", ["f", "number_of_vowels", "x" * 64])
def test_the_row_of_a_made_function_ends_in_a_command_that_stands_whole(
    name: str, hints: int, number: int, *, is_admitted: bool
) -> None:
    problem = {"code": "c", "message": "it is bad in many words that go on and on", "path": ""}
    hinted = [{**problem, "message": f"m{at}", "severity": "warns"} for at in range(hints)]
    verdict = {
        "admitted": is_admitted,
        "name": name,
        "source": f"def {name}(text: str, other: int) -> dict[str, int]:\n    return {{}}\n",
        "problems": [*hinted, *([] if is_admitted else [problem, problem])],
        "stages": [
            {"stage": "examples", "passed": True, "seconds": 0.1, "note": "2 of 2 examples agree"}
        ],
        "agreed": 2,
        "reach": ["fetches api.example.org", "reads files that you name"],
    }
    call = ShownCall(number, "create_function", "", "", "returned", 0.1, verdict)
    for screen in range(40, 161):
        shown = plain(folded(call_lines(call, screen), screen)).splitlines()
        head = shown if is_admitted else shown[:-1]
        assert len(head) <= (2 if screen < 100 else 1), shown
        assert any(row.endswith(f"/show {number}") for row in head), shown
        assert max(map(width, shown)) <= screen


def test_gauges_meters_and_columns_stay_within_their_cells() -> None:
    for used, style in (
        (10, "class:bar"),
        (75, "class:bar.near"),
        (99, "class:bar.full"),
        (500, "class:bar.full"),
    ):
        assert gauge(used, 100)[0][0] == style
    for done, total, full in (
        (1, 4, 2),
        (1e308, 1e-300, 8),
        (-1e308, 1e-300, 0),
        (3, 0, 0),
        (9, 4, 8),
    ):
        assert meter(done, total, 8) == "█" * full + "░" * (8 - full)
    shown = plain(columns([["漢字", "a"], ["x", "b"]], ("", ""))).splitlines()
    assert [width(each) for each in shown] == [7, 7]
    assert width(cut("漢字漢字", 5)) <= 5


@given(st.lists(st.tuples(st.sampled_from(["", "ok"]), st.text()), max_size=5), st.integers(8, 60))
def test_wrapped_lines_fit_the_screen_and_lose_nothing_but_spaces(
    spans: list[Any], columns_: int
) -> None:
    shown = ["".join(text for _, text in each) for each in folded([tuple(spans)], columns_)]
    assert all(width(text) <= columns_ for text in shown)
    assert "".join(shown).replace(" ", "") == re.sub(
        "[ \n\t]", "", "".join(visible(text) for _, text in spans)
    )


def test_a_value_an_error_and_what_is_displayed_at_a_stop_stand_behind_the_bar() -> None:
    at = At("functions/a.py", 1, "f")
    shown = (("x", "o once · y yes, kept"),)
    stop = DebugStop(
        "f",
        "return",
        (at,),
        0,
        (),
        0,
        (),
        shown,
        "ok",
        "✗ Knapper: type /grants f yes",
        "def f(): ...\n",
    )
    rows = plain(stop_parts(stop, Command(""))[2]).splitlines()
    assert [row[:2] for row in rows] == ["│ "] * 3


MARKDOWN = {
    "a **b**": ["a b"],
    "[x](http://e/)": ["x (http://e/)"],
    "[x](http://e/\x1b]8;;evil)": ["x (http://e/%5Cx1b%5D8;;evil)"],
    "\x1b[2J :smile: [red]x[/red]": ["\\x1b[2J :smile: [red]x[/red]"],
    "<div>seen</div> <!-- too -->": ["<div>seen</div> <!-- too -->"],
    "a &#x202e; &#155;2J &amp;": ["a \\u202e �2J &"],
}


def test_each_line_of_a_paragraph_stays_on_a_line_of_its_own() -> None:
    rows = "".join(render.markdown("Porvoo 1\nHanko 2\n\n- a\n- b\nTogether 3\n", 60)).splitlines()
    said = [re.sub(r"\x1b\[[0-9;]*m", "", row).strip() for row in rows]
    assert [row for row in said if row] == ["Porvoo 1", "Hanko 2", "• a", "• b", "Together 3"]


@pytest.mark.parametrize(
    "indents", [("    ", ""), ("        ", "  "), ("    ", "    "), ("  ", "")]
)
def test_a_table_with_an_indented_head_is_a_table(indents: tuple[str, str]) -> None:
    head, marks = indents
    text = f"As asked:\n\n{head}| month | paid |\n{marks}|---|---:|\n| May | 7 |\n"
    drawn = re.sub("\x1b\\[[0-9;]*m", "", "".join(render.markdown(text, 60)))
    plain = re.sub(
        "\x1b\\[[0-9;]*m",
        "",
        "".join(render.markdown(text.replace(f"{head}|", "|").replace(f"{marks}|-", "|-"), 60)),
    )
    assert drawn == plain
    assert "|" not in drawn
    code = "Code:\n\n    a | b\n    c | d\n"
    assert "a | b" in "".join(render.markdown(code, 60))


def test_markdown_is_drawn_without_blank_edges_links_or_foreign_escapes() -> None:
    for text, lines in MARKDOWN.items():
        drawn = "".join(render.markdown(text, 60))
        assert re.sub("\x1b\\[[0-9;]*m", "", drawn).splitlines() == lines
    wide = "\n".join(
        ("|" + "a|" * 5_000, "|" + "-|" * 5_000)
    )  # wider than any screen: drawn as it was written
    assert re.sub(r"\s", "", "".join(render.markdown(wide, 80))) == re.sub(r"\s", "", wide)


TEXT = "First *line*\nsecond line\n\n- one\n- two\n\n```python\nx = 1\n\ny = 2\n```\nAfter.\n"
WHOLE = [
    DrawnBlock("First *line*\nsecond line"),
    DrawnBlock("- one\n- two"),
    DrawnBlock("x = 1\n\ny = 2\n", "python"),
    DrawnBlock("After."),
]


def pieces_of(text: str, at: list[int]) -> list[str]:
    places = sorted({0, len(text), *(place % len(text) for place in at)})
    return [text[start:end] for start, end in pairwise(places)]


def play(pieces: list[str]) -> list[DrawnBlock]:
    """Return the blocks of a stream, with the parts of each joined."""
    blocks, whole = BlockSplitter(), list[DrawnBlock]()
    for block in [*(found for piece in pieces for found in blocks.feed(piece)), *blocks.end()]:
        if whole and not whole[-1].ends:
            block = DrawnBlock(whole.pop().text + block.text, block.code, block.ends)
        whole.append(block)
    return whole


@given(st.lists(st.integers(0, 1000)))
def test_blocks_are_the_same_however_the_stream_was_cut(at: list[int]) -> None:
    assert play(pieces_of(TEXT, at)) == WHOLE


@given(st.text(alphabet="a#- \n", max_size=80), st.lists(st.integers(0, 1000), max_size=6))
def test_no_line_that_says_something_is_lost_or_said_twice(text: str, at: list[int]) -> None:
    pieces = pieces_of(text, at) if text else []
    said = [line for block in play(pieces) for line in block.text.split("\n") if line.strip()]
    assert said == [line for line in text.split("\n") if line.strip()]


@given(st.text(alphabet="a`~ \n", max_size=60), st.lists(st.integers(0, 1000), max_size=6))
def test_code_and_its_fences_are_cut_the_same_in_any_pieces(text: str, at: list[int]) -> None:
    assert play(pieces_of(text, at) if text else []) == play([text])


def test_code_is_given_out_as_soon_as_it_is_written_without_the_indentation_of_its_fence() -> None:
    blocks = BlockSplitter()
    assert blocks.feed("~~~~ python\na\n\n~~~\nb") == [
        DrawnBlock("a\n\n~~~\n", "python", ends=False)
    ]
    assert blocks.feed("\n~~~~\n") == [DrawnBlock("b\n", "python")]
    assert play(["- so:\n  ```\n  x\n    y\n  ```\n"]) == [
        DrawnBlock("- so:"),
        DrawnBlock("x\n  y\n", ""),
    ]
    assert play(["```\nx"]) == [
        DrawnBlock("x\n", "")
    ]  # a block that the reply leaves open ends with it


def test_what_grows_beyond_a_screen_is_given_out_in_parts_and_a_table_goes_on_under_its_head() -> (
    None
):
    for line, first, parts in (("- item", 40, 3), ("| a | b |", 120, 1)):
        lines = [line, "|---|---|" if line[0] == "|" else line, *[line] * 118]
        found = BlockSplitter().feed("\n".join(lines) + "\n\n")
        assert (len(found), found[0].text.count("\n") + 1) == (parts, first)
    found = BlockSplitter().feed("\n".join(["| a |", "|---|", *["| x |"] * 300]) + "\n\n")
    assert [part.text.split("\n")[:2] for part in found] == [["| a |", "|---|"]] * 2
    assert sum(part.text.count("| x |") for part in found) == 300


def test_help_fits_the_screen_and_keeps_its_texts_near_the_names() -> None:
    for screen in (60, 80, 100, 120):
        shown = plain(
            explained([(entry.typed, entry.says) for entry in ENTRIES], screen)
        ).splitlines()
        assert all(width(each) < screen for each in shown)
        (at,) = {each.index("List the commands") for each in shown if "List the commands" in each}
        assert at <= 32


def test_a_question_is_folded_between_its_words() -> None:
    dialog = Dialog("Undo: remove the message “make it” and its turn from the context?")
    drawn = plain(dialog.rows(22)).splitlines()
    assert all(width(each) <= 22 for each in drawn)
    assert (
        " ".join(map(str.strip, drawn))
        == "? Undo: remove the message “make it” and its turn from the context?"
    )


def test_the_history_of_memory_has_a_heading_and_calls_its_reader_you() -> None:
    by = {"human": "you", "agent": "the agent main", "class": "from the memory class"}
    change = {
        "at": 0.0,
        "label": "human",
        "version": 6,
        "agent": "main",
        "turn": "",
        "what": "write",
    }
    head, *lines = plain(
        history_lines({"changes": [{**change, "by": each} for each in by]})
    ).splitlines()
    assert head.split() == ["when", "block", "version", "by"]
    assert [line.split("v6")[1].strip() for line in lines[::2]] == [*by.values()][::-1]
    assert history_lines({"changes": []}) == []


def test_a_search_by_a_human_begins_with_what_is_missing_and_the_best_hits_of_all() -> None:
    items = tuple(
        FoundItem(n, f"{'word ' * 200}heron{' word' * 200}", 0.0, "you") for n in range(2)
    )
    best = FoundItem(7, "an owl and a heron", 0.0, "birds.md, lines 1–2", "p-1")
    terms, notes = frozenset({"heron", "owl"}), ("To follow up, search again with: Ada.",)
    said = ResultPage("messages", items, 0, 5, 2, terms, notes, ("owl", "emu"))
    stored = ResultPage("passages", (best,), 0, 1, 2, terms, notes, ("emu",))
    missing, first, *hits, messages, passages = plain(
        found_lines([said, stored], "'heron owl'")
    ).splitlines()
    assert "birds.md, lines 1–2: an owl and a heron" in first
    assert all("heron" in hit and len(hit) < 220 for hit in hits)
    assert "message 0.0: " in hits[0]
    assert messages == (
        "messages 1 to 2 of 5; more: knapper memory search 'heron owl' --in recall --count 2 --page 1"
    )
    assert (passages, missing) == ("passages 1 to 1 of 1", "No hit has: emu.")


def test_a_search_of_which_no_hit_has_a_word_says_so_first_and_shows_the_nearest_three() -> None:
    items = tuple(FoundItem(n, f"tea number {n}", 0.0, "you") for n in range(10))
    page = ResultPage("messages", items, 0, 14, 10, frozenset({"emu"}), missing=("emu",))
    first, *hits = plain(found_lines([page])).splitlines()
    assert first == "No hit has: emu. The nearest by meaning:"
    assert [hit.rpartition(" ")[2] for hit in hits] == ["0", "1", "2"]


def test_a_search_shows_the_lines_of_blocks_that_have_a_word_of_it_first() -> None:
    page = ResultPage(
        "messages",
        (FoundItem(1, "a cup", 0.0, "you"),),
        0,
        1,
        10,
        frozenset({"tea"}),
        missing=("tea",),
    )
    block = BlockRow("b-1", "human", "I like tea.\nI am tall.", 2_000)
    first, second, third = plain(found_lines([page], blocks=[block])).splitlines()
    assert (first, second) == ("- the block human: I like tea.", "The nearest by meaning:")
    assert third.endswith("a cup")


@pytest.mark.parametrize("words", [1, 3, 9])
def test_a_search_ends_where_the_hits_with_its_words_end(words: int) -> None:
    items = tuple(
        FoundItem(n, f"{'tea' if n < words else 'cups'} number {n}", 0.0, "you") for n in range(10)
    )
    page = ResultPage("messages", items, 0, 60, 10, frozenset({"tea"}))
    *hits, counted = plain(found_lines([page])).splitlines()
    assert [hit.rpartition(" ")[2] for hit in hits[:words]] == [str(n) for n in range(words)]
    assert hits[words] == "Near in meaning:"
    assert len(hits) == words + 1 + min(3, 10 - words)
    assert counted == f"messages with a word of it: {words}"
    for whole in (
        ResultPage("messages", items[:words], 0, 60, words, frozenset({"tea"})),
        replace(page, page=1),
    ):
        shown = plain(
            found_lines([whole])
        ).splitlines()  # they may go on, or the rest was asked for
        assert (len(shown), "Near" in "".join(shown)) == (len(whole.items) + 1, False)
        assert "of 60; more: knapper memory search" in shown[-1]
