import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.base import events
from agent_core.base.receipt import Made
from agent_core.base.untrusted import visible
from agent_core.functions.answers import CallReport
from agent_core.functions.service.judgment import Judgment
from agent_core.interfaces.conversation import greeting
from agent_core.interfaces.faults import fault_lines
from agent_core.interfaces.render import verdicts
from agent_core.interfaces.render.call_log import CallLog, call_line, changed_lines, ended_lines, laid_open
from agent_core.interfaces.repl import render
from agent_core.interfaces.repl.live import Live, RunningCall
from agent_core.interfaces.repl.prompt import gauge
from agent_core.interfaces.spans import columns, cut, line, meter, plain, quoted, width, wrapped
from sandbox import Failure, Frame, Raised

VERDICT: dict[str, Any] = {
    "name": "count_vowels",
    "module": "text",
    "admitted": False,
    "standing": "draft",
    "fixes": [{"code": "import-added", "message": "added `import re`", "diff": ""}],
    "problems": [
        {
            "code": "undescribed-parameter",
            "message": "parameter `text` has no description",
            "fix": "add `text: …` under `Args:`",
            "path": "functions/text.py",
            "line": 3,
            "column": 5,
            "severity": "refuses",
        }
    ],
    "stages": [{"stage": "read", "passed": True, "seconds": 0.002, "note": ""}],
    "source": "def count_vowels(text: str) -> int: ...",
}


def answered(**given: Any) -> events.CallAnswered:
    shape = {"turn": "t", "call_id": "1", "name": "add", "text": "5", "outcome": "returned", "seconds": 0.012}
    return events.CallAnswered(**{**shape, **given})


def log_of(arguments: str, **given: Any) -> CallLog:
    log = CallLog()
    log.started(events.CallStarted(turn="t", call_id="1", name="add", arguments=arguments))
    log.answered(answered(**given))
    return log


def test_a_call_and_its_answer_are_one_compact_line() -> None:
    log = log_of('{"a": 2, "b": "x"}')
    assert plain([call_line(log.calls[0], 80)]) == "▸ add(a=2, b='x') → 5  12 ms  [1]\n"


@pytest.mark.parametrize("columns_", [30, 80, 200])
def test_a_long_call_is_cut_to_the_width_of_the_screen(columns_: int) -> None:
    log = log_of('{"text": "' + "漢" * 500 + '"}', text="y" * 500)
    shown = plain([call_line(log.calls[0], columns_)]).rstrip("\n")
    assert width(shown) <= max(columns_, 41)
    assert shown.endswith("[1]")


def test_arguments_that_are_not_an_object_are_shown_as_they_came() -> None:
    assert verdicts.compact_call("add", "{broken") == "add({broken)"
    assert verdicts.compact_call("add", "[" * 100_000) == f"add({'[' * 100_000})"


def test_a_failed_call_shows_its_error_and_not_the_text_for_the_model() -> None:
    error = {"type": "ZeroDivisionError", "message": "division by zero", "frames": []}
    log = log_of("{}", outcome="raised", text="The function raised", detail={"outcome": "raised", "error": error})
    assert "ZeroDivisionError: division by zero" in plain([call_line(log.calls[0], 80)])


def test_show_lays_open_arguments_and_answer_with_escapes_made_visible() -> None:
    shown = plain(laid_open(log_of('{"a": 1}', text="one\n\x1b[2Jtwo").calls[0]))
    assert '{"a": 1}' in shown
    assert "  one\n  \\x1b[2Jtwo\n" in shown


def test_a_refusal_lists_fixes_and_every_problem_with_place_and_fix() -> None:
    shown = plain(verdicts.verdict_lines(Judgment.from_json(VERDICT)))
    assert "✗ count_vowels refused: 1 problem" in shown
    assert "fixed: added `import re`" in shown
    assert "functions/text.py:3:5 undescribed-parameter: parameter `text` has no description — add `text: …`" in shown


def test_a_verdict_says_what_became_of_the_examples_and_leaves_the_stages_to_show() -> None:
    stages = [
        *VERDICT["stages"],
        {"stage": "examples", "passed": True, "seconds": 0.02, "note": "2 of 2 examples agree"},
        {"stage": "mutation", "passed": True, "seconds": 0.3, "note": "2 of 2 wrong bodies noticed"},
        {"stage": "robust", "passed": False, "seconds": 0, "note": "not run: there is no function"},
    ]
    verdict = Judgment.from_json({**VERDICT, "stages": stages, "problems": []})
    shown = plain(verdicts.verdict_lines(verdict))
    assert "2 of 2 examples agree · 322 ms\n" in shown
    assert "bodies" not in shown
    laid = plain(verdicts.stage_lines(verdict))
    assert laid == (
        "checked by the gate in 3 of 4 stages, among them:\n"
        "  examples: do its examples hold? 2 of 2 examples agree\n"
        "  mutation: would its examples notice a wrong body? 2 of 2 wrong bodies noticed\n"
    )


def test_of_stages_that_ran_at_once_only_the_longest_counts_as_time() -> None:
    at_once = [
        {"stage": "mutation", "passed": True, "seconds": 0.7},
        {"stage": "robust", "passed": True, "seconds": 0.9, "beside": True},
    ]
    shown = plain(verdicts.verdict_lines(Judgment.from_json({**VERDICT, "stages": [*VERDICT["stages"], *at_once]})))
    assert "  902 ms\n" in shown


def test_a_conversation_that_goes_on_counts_what_the_user_wrote_and_not_what_agents_did() -> None:
    shown = plain(greeting("a model", ["Which title?"]))
    assert "you wrote 1 message, the last: Which title?" in shown


def test_a_failure_of_many_lines_keeps_them() -> None:
    assert plain(fault_lines("No:\n- a\n- b", "Do\nthis.")) == "✗ No:\n  - a\n  - b\n  Do\n  this.\n"


def test_an_admission_names_module_and_standing() -> None:
    shown = plain(
        verdicts.verdict_lines(Judgment.from_json({**VERDICT, "admitted": True, "standing": "trial", "problems": []}))
    )
    assert shown.startswith("✓ count_vowels added to text, on trial")


def test_frames_of_an_error_are_shown_with_the_locals() -> None:
    failure = Failure("E", "m", (Frame("functions/a.py", 3, "f", "1 / x", (("x", "0"),)),))
    report = CallReport.of(Raised(failure, "hm\n", 0.0, 0, 0.0))
    assert plain(verdicts.outcome_lines(report)) == "│ hm\n✗ E: m\n  functions/a.py:3 in f: 1 / x   x=0\n"


BUSY: Made = {
    "created": ["celsius", "kelvin", "rankine", "reaumur"],
    "wrote": ["out/table.csv"],
    "refused": {"evil.example": 1},
    "called": {"celsius": 2},
}


@pytest.mark.parametrize(
    ("made", "columns", "text"),
    [
        pytest.param({}, 80, "3 steps, 1,000 tokens, 2.5 s · nothing outside this conversation", id="nothing was done"),
        pytest.param({}, 60, "3 steps, 1,000 tokens, 2.5 s · nothing outside", id="nothing, on a narrow screen"),
        pytest.param(
            {"called": {"celsius": 2}},
            100,
            "3 steps, 1,000 tokens, 2.5 s · called celsius ×2 · nothing outside this conversation",
            id="a call that only computed",
        ),
        pytest.param(
            {"called": {"celsius": 2}},
            80,
            "3 steps, 1,000 tokens, 2.5 s · nothing outside this conversation",
            id="the calls were shown above",
        ),
        pytest.param(
            BUSY,
            120,
            "created celsius and 3 more · wrote out/table.csv · was refused evil.example"
            " · 3 steps, 2.5 s · called celsius ×2",
            id="names before tokens",
        ),
        pytest.param(
            BUSY, 80, "created 4 · wrote 1 · was refused 1 · 3 steps, 1,000 tokens, 2.5 s", id="then their number"
        ),
    ],
)
def test_the_last_line_of_a_turn_is_its_receipt_in_one_row(made: Made, columns: int, text: str) -> None:
    event = events.TurnEnded(
        turn="t", reason="replied", reply="", steps=3, usage={"prompt_tokens": 1000}, made=made, receipt="it is known"
    )
    assert plain(ended_lines(event, 2.5, columns)) == f"∙ {text}\n"


def test_a_change_by_hand_names_functions_and_what_was_rejected() -> None:
    event = events.FunctionsChanged(turn="", changed=("f",), rejected=("functions/x.py:1 syntax: bad",))
    assert plain(changed_lines(event)) == "⟳ f was changed outside\n  ✗ rejected: functions/x.py:1 syntax: bad\n"
    alone = events.FunctionsChanged(turn="", rejected=("functions/x.py:1 syntax: bad",))
    assert plain(changed_lines(alone)) == "✗ rejected: functions/x.py:1 syntax: bad\n"


def test_a_reload_that_finds_nothing_new_says_so() -> None:
    assert plain([verdicts.changes_line(events.FunctionsChanged(turn=""))]) == "⟳ nothing changed\n"


def test_progress_of_a_running_call_is_a_bar_within_the_screen() -> None:
    live = Live()
    live.calls["1"] = RunningCall("fetch", '{"n": 3}', time.monotonic(), done=5, total=10, note="half\x1b[2J")
    drawn = "".join(fragment[1] for fragment in live.draw(60))
    assert re.search(r"▸ fetch\(n=3\) █{10}░{10} 5/10 half\\x1b", drawn)
    assert width(drawn) <= 60


def test_the_moving_part_keeps_to_a_few_lines_of_the_screen() -> None:
    live = Live()
    live.blocks.feed("\n".join(f"line {n} {'x' * 200}" for n in range(50)))
    lines = "".join(fragment[1] for fragment in live.draw(40)).split("\n")
    assert len(lines) <= 8
    assert all(width(each) <= 40 for each in lines)


@pytest.mark.parametrize(
    ("used", "style"), [(10, "class:bar"), (75, "class:bar.near"), (99, "class:bar.full"), (500, "class:bar.full")]
)
def test_the_gauge_changes_its_colour_when_the_context_gets_tight(used: int, style: str) -> None:
    assert gauge(used, 100)[0][0] == style


def test_columns_stand_under_one_another_with_wide_characters() -> None:
    shown = plain(columns([["漢字", "a"], ["x", "b"]], ("", ""))).splitlines()
    assert [width(each) for each in shown] == [7, 7]
    assert width(cut("漢字漢字", 5)) <= 5


@given(st.lists(st.tuples(st.sampled_from(["", "ok"]), st.text()), max_size=5), st.integers(8, 60))
def test_wrapped_lines_fit_the_screen_and_lose_nothing_but_spaces(spans: list[Any], columns_: int) -> None:
    shown = ["".join(text for _, text in each) for each in wrapped([tuple(spans)], columns_)]
    assert all(width(text) <= columns_ for text in shown)
    assert "".join(shown).replace(" ", "") == re.sub("[ \n\t]", "", "".join(visible(text) for _, text in spans))


def test_a_long_problem_is_folded_at_words_under_its_indentation() -> None:
    shown = plain(wrapped([line("    place: parameter has no description")], 20)).splitlines()
    assert shown == ["    place: parameter", "      has no", "      description"]


def test_every_row_of_a_long_line_behind_a_bar_stands_behind_it() -> None:
    shown = plain(wrapped(quoted([line("one two three four")]), 12)).splitlines()
    assert shown == ["│ one two", "│   three", "│   four"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a **b**", ["a b"], id="emphasis"),
        pytest.param("# Title\n\n## Part", ["Title", "", "Part"], id="headings-on-the-left"),
        pytest.param("- one\n- two", [" • one", " • two"], id="list-without-blank-lines-around"),
        pytest.param("[x](http://e/)", ["x (http://e/)"], id="link-as-text"),
        pytest.param("[x](http://e/\x1b]8;;evil)", ["x (http://e/%5Cx1b%5D8;;evil)"], id="escape-in-a-link"),
        pytest.param("\x1b[2J :smile: [red]x[/red]", ["\\x1b[2J :smile: [red]x[/red]"], id="no-markup-but-markdown"),
        pytest.param("<div>seen</div> <!-- too -->", ["<div>seen</div> <!-- too -->"], id="html-as-typed"),
        pytest.param("![x](http://e/p)", ["!x (http://e/p)"], id="a-picture-as-text"),
        pytest.param("[x]: http://e/ 'seen'", ["[x]: http://e/ 'seen'"], id="a-definition-as-typed"),
        pytest.param("a &#x202e; &#155;2J &amp;", ["a \\u202e �2J &"], id="entities-of-what-acts"),
        pytest.param("2. b", [" 2 b"], id="a-list-goes-on-after-a-cut"),
    ],
)
def test_markdown_is_drawn_without_blank_edges_links_or_foreign_escapes(text: str, lines: list[str]) -> None:
    drawn = "".join(render.markdown(text, 60))
    assert re.sub("\x1b\\[[0-9;]*m", "", drawn).splitlines() == lines


@pytest.mark.parametrize(
    ("done", "total", "full"),
    [(1, 4, 2), (1e308, 1e-300, 8), (-1e308, 1e-300, 0), (3, 0, 0), (9, 4, 8)],
)
def test_how_far_something_is_stays_within_its_cells(done: float, total: float, full: int) -> None:
    assert meter(done, total, 8) == "█" * full + "░" * (8 - full)


def test_a_table_wider_than_any_screen_is_drawn_as_it_was_written() -> None:
    table = "\n".join(("|" + "a|" * 5_000, "|" + "-|" * 5_000))
    assert re.sub(r"\s", "", "".join(render.markdown(table, 80))) == re.sub(r"\s", "", table)
