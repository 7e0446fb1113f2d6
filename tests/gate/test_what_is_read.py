"""The stage "read": what counts as a candidate, and what is reported about the rest."""

import pytest

from agent_core.functions.gate import Rules

from .support import ADD, codes, fixes, on_text, snapshot_of


@pytest.mark.parametrize(
    ("wrapped", "fix"),
    [
        pytest.param(f"```python\n{ADD}```", "code-fence", id="fence"),
        pytest.param(f"Here is the function:\n\n```py\n{ADD}```\nI hope it helps.", "code-fence", id="fence-in-prose"),
        pytest.param("\n".join(f"    {line}" for line in ADD.split("\n")), "indentation", id="indented"),
    ],
)
def test_wrapping_around_the_code_is_taken_off(wrapped: str, fix: str) -> None:
    draft = on_text(wrapped, "add")
    assert (codes(draft), fixes(draft), draft.text.strip()) == (set(), [fix], ADD.strip())


def test_a_fix_that_is_switched_off_is_not_made() -> None:
    draft = on_text(f"```python\n{ADD}```", "add", rules=Rules(off=frozenset({"*"})))
    assert (fixes(draft), codes(draft)) == ([], {"syntax-error"})


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(ADD[: ADD.index("Returns")], id="in-the-docstring"),
        pytest.param("def add(a: int, b: int) -> int:\n    return (a +", id="in-an-expression"),
        pytest.param("def add(a: int, b: int) -> int:\n", id="before-the-body"),
        pytest.param("def add(a, b):\n    if a:", id="before-a-block"),
        pytest.param('def add(a, b):\n    return "half of a', id="in-a-string"),
    ],
)
def test_code_that_stops_in_the_middle_is_said_to_be_cut_off(code: str) -> None:
    assert codes(on_text(code, "add")) == {"cut-off"}


def test_a_syntax_error_names_its_line_and_quotes_it() -> None:
    (problem,) = on_text("def add(a, b):\n    return a b\n\nx = 1\n", "add").problems
    assert problem.code == "syntax-error"
    assert problem.where.line == 2
    assert "`return a b`" in problem.message


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        pytest.param("x = 1\n", "add", {"no-function"}, id="no-function"),
        pytest.param("   \n", "add", {"no-function"}, id="nothing"),
        pytest.param(
            ADD + "\n\ndef other() -> None:\n    add(1, 2)\n", "add", {"several-functions"}, id="two-functions"
        ),
        pytest.param("print('hello')\n" + ADD, "add", {"top-level-statement"}, id="statement-at-the-top"),
        pytest.param(ADD.replace("def add", "def print"), "print", {"bad-name"}, id="builtin"),
        pytest.param(ADD, "class", {"bad-name", "wrong-name"}, id="keyword"),
        pytest.param(ADD, "ädd", {"bad-name", "wrong-name"}, id="not-ascii"),
        pytest.param("def add(a, b):\0\n    return a", "add", {"not-text"}, id="nul-byte"),
        pytest.param("def add(a):\n    return '\ud800'", "add", {"not-text"}, id="lone-surrogate"),
        pytest.param("x = '" + "a" * 70_000 + "'", "add", {"too-long"}, id="too-long"),
    ],
)
def test_what_is_not_one_function_of_the_promised_name_is_refused(code: str, name: str, expected: set[str]) -> None:
    assert codes(on_text(code, name)) == expected


def test_a_wrong_name_is_told_with_both_names() -> None:
    (problem,) = on_text(ADD, "plus").problems
    assert problem.code == "wrong-name"
    assert "`plus`" in problem.message
    assert "`add`" in problem.message
    assert problem.fix is not None


def test_a_helper_that_the_function_calls_becomes_private() -> None:
    draft = on_text(
        ADD.replace("return a + b", "return total(a, b)") + "\n\ndef total(a, b):\n    return a + b\n", "add"
    )
    assert fixes(draft) == ["private-helper"]
    assert "return _total(a, b)" in draft.text
    assert "def _total(a, b)" in draft.text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("total = total(a, b)\n    return total", id="also-a-local"),
        pytest.param("return total(a, b) + sum([total for total in (a, b)])", id="also-in-a-comprehension"),
        pytest.param("return f'{total(a, b)}'", id="inside-an-f-string"),
        pytest.param("return total(a, b) + _total", id="with-the-underscore-taken"),
    ],
)
def test_a_helper_whose_name_means_more_than_one_thing_keeps_it(body: str) -> None:
    helper = "\n\n_total = 3\n\n\ndef total(a, b):\n    return a + b\n"
    draft = on_text(
        ADD.replace("return a + b", body) + (helper if "_total" in body else helper.replace("_total", "LIMIT")), "add"
    )
    assert "private-helper" not in fixes(draft)
    assert "several-functions" in codes(draft)


def test_a_name_that_another_function_has_is_refused_with_its_place() -> None:
    draft = on_text(ADD, "add", snapshot=snapshot_of(other=ADD))
    (problem,) = draft.problems
    assert problem.code == "name-taken"
    assert "functions/other.py:1" in problem.message


@pytest.mark.parametrize("module", ["../x", "a/b", "", ".", "a..b", "class", "1x", "a b"])
def test_a_module_name_that_leaves_the_folder_or_is_no_name_is_refused(module: str) -> None:
    assert codes(on_text(ADD, "add", module=module)) == {"bad-module"}
