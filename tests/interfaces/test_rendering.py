import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_core.base import events
from agent_core.base.receipt import Made
from agent_core.base.untrusted import visible
from agent_core.functions.debug import Command, DebugStop
from agent_core.functions.debug.stop import At
from agent_core.functions.service.judgment import Judgment
from agent_core.interfaces.render import verdicts
from agent_core.interfaces.render.call_log import CallLog, call_line, ended_lines, stop_parts
from agent_core.interfaces.repl import render
from agent_core.interfaces.repl.prompt import gauge
from agent_core.interfaces.styled_lines import columns, cut, folded, line, meter, plain, quoted, width


def log_of(arguments: str, **given: Any) -> CallLog:
    log = CallLog()
    log.started(events.CallStarted(turn="t", call_id="1", name="add", arguments=arguments))
    shape = {"turn": "t", "call_id": "1", "name": "add", "text": "5", "outcome": "returned", "seconds": 0.012}
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
        {"stage": "mutation", "passed": True, "seconds": 0.3, "note": "2 of 2 wrong bodies noticed"},
        {"stage": "robust", "passed": True, "seconds": 0.5, "note": "", "beside": True},  # it ran at once
        {"stage": "cost", "passed": False, "seconds": 0, "note": "not run: there is no function"},
    ]
    shape = {"name": "f", "module": "text", "admitted": False, "standing": "draft", "source": "def f() -> int: ..."}
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
RECEIPTS: list[tuple[Made, int, str]] = [
    ({}, 80, "3 steps, 1,000 tokens, 2.5 s · nothing outside this conversation"),
    (COMPUTED, 80, "3 steps, 1,000 tokens, 2.5 s · nothing outside this conversation"),  # they were shown above
    (
        BUSY,  # names before tokens
        120,
        "created celsius and 3 more · wrote out/table.csv · was refused evil.example"
        " · 3 steps, 2.5 s · called celsius ×2",
    ),
    (BUSY, 80, "created 4 · wrote 1 · was refused 1 · 3 steps, 1,000 tokens, 2.5 s"),  # then their number
]


def test_the_last_line_of_a_turn_is_its_receipt_in_one_row() -> None:
    usage = {"prompt_tokens": 1000}
    for made, screen, text in RECEIPTS:
        event = events.TurnEnded(
            turn="t", reason="replied", reply="", steps=3, usage=usage, made=made, receipt="it is known"
        )
        assert plain(ended_lines(event, 2.5, screen)) == f"∙ {text}\n"


def test_gauges_meters_and_columns_stay_within_their_cells() -> None:
    for used, style in ((10, "class:bar"), (75, "class:bar.near"), (99, "class:bar.full"), (500, "class:bar.full")):
        assert gauge(used, 100)[0][0] == style
    for done, total, full in ((1, 4, 2), (1e308, 1e-300, 8), (-1e308, 1e-300, 0), (3, 0, 0), (9, 4, 8)):
        assert meter(done, total, 8) == "█" * full + "░" * (8 - full)
    shown = plain(columns([["漢字", "a"], ["x", "b"]], ("", ""))).splitlines()
    assert [width(each) for each in shown] == [7, 7]
    assert width(cut("漢字漢字", 5)) <= 5


@given(st.lists(st.tuples(st.sampled_from(["", "ok"]), st.text()), max_size=5), st.integers(8, 60))
def test_wrapped_lines_fit_the_screen_and_lose_nothing_but_spaces(spans: list[Any], columns_: int) -> None:
    shown = ["".join(text for _, text in each) for each in folded([tuple(spans)], columns_)]
    assert all(width(text) <= columns_ for text in shown)
    assert "".join(shown).replace(" ", "") == re.sub("[ \n\t]", "", "".join(visible(text) for _, text in spans))


def test_a_long_line_is_folded_at_words_under_its_indentation_and_behind_its_bar() -> None:
    shown = plain(folded([line("    place: parameter has no description")], 20)).splitlines()
    assert shown == ["    place: parameter", "      has no", "      description"]
    shown = plain(folded(quoted([line("one two three four")]), 12)).splitlines()
    assert shown == ["│ one two", "│   three", "│   four"]


def test_a_value_an_error_and_what_is_displayed_at_a_stop_stand_behind_the_bar() -> None:
    at = At("functions/a.py", 1, "f")
    shown = (("x", "o once · y yes, kept"),)
    stop = DebugStop("f", "return", (at,), 0, (), 0, (), shown, "ok", "✗ Knapper: type /grants f yes", "def f(): ...\n")
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


def test_markdown_is_drawn_without_blank_edges_links_or_foreign_escapes() -> None:
    for text, lines in MARKDOWN.items():
        drawn = "".join(render.markdown(text, 60))
        assert re.sub("\x1b\\[[0-9;]*m", "", drawn).splitlines() == lines
    wide = "\n".join(("|" + "a|" * 5_000, "|" + "-|" * 5_000))  # wider than any screen: drawn as it was written
    assert re.sub(r"\s", "", "".join(render.markdown(wide, 80))) == re.sub(r"\s", "", wide)
