"""Any text gets a verdict from the text stages, never an exception."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.functions.gate import Candidate, Policy, Rules
from agent_core.functions.gate.draft import Draft
from agent_core.registry.registry import Snapshot
from tests.gate.support import ADD, TEXT_STAGES
from tests.kit.drawing import drawn

SOURCES = [
    path.read_text("utf-8")
    for path in sorted(Path(__file__).parents[2].glob("agent_core/functions/gate/*.py"))
]
PIECES = st.sampled_from(
    [
        *(
            "def f(a):\n",
            "    return a\n",
            "class f:\n",
            "async ",
            "lambda: ",
            "match a:\n",
            "from . import *\n",
            "@f\n",
        ),
        *(
            "```",
            '"""',
            "    ",
            "\t",
            "\\\n",
            "\x0c",
            "\r\n",
            "*",
            "(",
            "]",
            ";",
            "    :param a: x\n",
            "f'{a!r:>{b}}'",
        ),
        *("\u2028", "é", "\ud800", "\0"),
    ]
)


def judged(code: str, policy: Policy = "agent") -> Draft:
    draft = Draft(Candidate("f", code, "lib"), policy, Rules(), Snapshot.empty(), code)
    for stage in TEXT_STAGES:
        draft = stage(draft)
    return draft


@settings(max_examples=drawn(150))
@given(st.text() | st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_answered_with_its_problems(code: str) -> None:
    assert judged(code).problems


@settings(max_examples=drawn(60))
@given(st.data())
def test_python_with_a_piece_torn_out_is_answered(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([ADD, *SOURCES]))
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, len(source)))
    draft = judged(
        source[:start] + data.draw(st.sampled_from(["", "x", "\n", '"', "("])) + source[end:]
    )
    assert all(problem.message and problem.where.path == "f.py" for problem in draft.problems)


@settings(max_examples=drawn(25))
@given(
    st.integers(10, 3000),
    st.sampled_from(["(", "[", "-", "not ", "lambda: ", "a.b(", "{'a':", "f("]),
)
def test_deep_nesting_is_answered_and_not_a_crash(depth: int, piece: str) -> None:
    assert judged(f"def f(a):\n    return {piece * depth}a\n").problems
