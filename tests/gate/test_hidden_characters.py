"""A text that reads differently from how it runs is rejected with its place; a string keeps its value."""

import ast

import pytest

from agent_core.functions.gate import Candidate, Policy, Rules
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.read import read, write_escapes
from agent_core.registry.registry import Snapshot

from .support import ADD, fixes, on_text

BACKWARDS = ADD.replace("return a + b", "return a + b  # \u202e b - a nruter")
STRINGS = [
    *(
        "'\u2066'",
        "'a\u200db'",
        "'👩\u200d'",
        "f'{1}\u200b'",
        "'\u200cخواهم'",
        "'\ue0b0'",
        "('a' '\u200d')",
    ),
    '"""\u2028\n\x0c"""',
]


def test_a_change_of_direction_is_named_with_its_place() -> None:
    cases: list[Policy] = ["agent", "import", "human"]
    for policy in cases:
        problems = on_text(BACKWARDS, "add", policy).problems
        (problem,) = [one for one in problems if one.code == "hidden-characters"]
        assert (problem.severity, problem.where.line, problem.where.column) == (
            "refuses",
            17,
            21,
        ), policy
        assert "U+202E RIGHT-TO-LEFT OVERRIDE" in problem.message, policy
        assert problem.fix == 'remove it; in a string that needs it, write it as "\\u202e"', policy


@pytest.mark.parametrize("text", STRINGS, ids=ascii)
@pytest.mark.parametrize("policy", ["agent", "import"])
def test_strings_of_a_candidate_keep_their_value_as_escapes(text: str, policy: Policy) -> None:
    before = ADD.replace("return a + b", f"text = {text}\n    return a + b + len(text)")
    draft = on_text(before, "add", policy)
    assert "hidden-characters" in fixes(draft)
    assert not draft.shows("hidden-characters")
    assert draft.text.replace("\n", "").isprintable()
    assert ast.dump(ast.parse(draft.text)) == ast.dump(ast.parse(before))


def test_what_takes_no_escape_is_rejected() -> None:
    for text in ("r'\u2066'", "1  # \u200b", "'\\\u200d'", "rf'{1}\ufeff'", "'''a''' # '\u2028'"):
        draft = on_text(ADD.replace("return a + b", f"text = {text}\n    return a + b"), "add")
        assert ("hidden-characters" in fixes(draft), draft.has("hidden-characters")) == (
            False,
            True,
        ), text


def test_a_description_becomes_a_docstring_with_escapes() -> None:
    code = "def add(a: int, b: int) -> int:\n    return a + b\n"
    candidate = Candidate("add", code, "lib", description="Add two num\u200dbers.")
    draft = fix(read(Draft(candidate, "agent", Rules(), Snapshot.empty(), code)))
    assert "given-description" in fixes(draft)
    assert "two num\\u200dbers" in draft.text


def test_the_escapes_can_be_switched_off() -> None:
    draft = on_text(
        ADD.replace("two", "\u200dtwo"), "add", rules=Rules(off=frozenset({"hidden-characters"}))
    )
    assert draft.has("hidden-characters")


def test_what_is_plain_or_no_python_stays_as_it_is() -> None:
    for text in (
        "x = '☀\ufe0f é 漢'",
        "x = '👩\u200d💻 می\u200cخواهم'",
        "x = 'a\u200bb",
        "x = 1\x00",
    ):
        assert write_escapes(text) == text, text


def test_another_encoding_and_misread_names_are_rejected() -> None:
    assert on_text("# coding: unicode_escape\n" + ADD, "add").has("encoding")
    assert on_text(ADD.replace("return a", "return ａ"), "add").has("name-spelling")
