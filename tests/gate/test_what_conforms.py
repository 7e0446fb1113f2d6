"""The stage "conform": the function can be shown to the model, which can tell how to call it."""

import pytest

from agent_core.functions.gate import Policy

from .support import ADD, codes, function, on_text, snapshot_of, warnings

DOCUMENTED = '"""Do.\n\n    Args:\n        a: A value.\n    """'


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("def f(a: int) -> int:\n    return a + 1\n", {"no-docstring", "undescribed-parameter"}, id="bare"),
        pytest.param(f"def f(a) -> int:\n    {DOCUMENTED}\n    return a + 1\n", {"no-type"}, id="no-type"),
        pytest.param(f"def f(a: int):\n    {DOCUMENTED}\n    return a + 1\n", {"no-return-type"}, id="no-return-type"),
        pytest.param(
            f"def f(**a: int) -> int:\n    {DOCUMENTED}\n    return sum(a.values())\n", {"star-parameter"}, id="star"
        ),
        pytest.param(
            f"def f(a: list[int] = []) -> int:\n    {DOCUMENTED}\n    return sum(a)\n",
            {"mutable-default"},
            id="mutable",
        ),
        pytest.param(
            f"def f(a: int, self: int) -> int:\n    {DOCUMENTED}\n    return a + self\n".replace(
                "a: A", "self: A\n        a: A"
            ),
            {"self-not-first"},
            id="self-not-first",
        ),
    ],
)
def test_what_a_model_could_not_call_is_refused(code: str, expected: set[str]) -> None:
    assert codes(on_text(code)) == expected


def test_a_parameter_that_hides_a_builtin_is_told_with_a_better_name() -> None:
    (problem,) = on_text(function("return len(list) + b", parameters="list: list[int], b: int")).problems
    assert (problem.code, problem.severity) == ("hides-builtin", "warns")
    assert problem.fix == "rename `list` to `list_value`, in the body and under `Args:` too"


def test_a_missing_docstring_is_answered_with_the_skeleton_to_write() -> None:
    problem = next(
        one for one in on_text("def f(a: int) -> int:\n    return a + 1\n").problems if one.code == "no-docstring"
    )
    assert problem.fix is not None
    for part in ("Args:\n    a: …", "Returns:", ">>> f(…)"):
        assert part in problem.fix


def test_a_name_that_nothing_defines_is_refused_with_its_line() -> None:
    (problem,) = on_text(function("return swap(a, b)")).problems
    assert (problem.code, problem.where.line) == ("undefined-name", 8)


def test_a_name_that_the_module_around_defines_is_known() -> None:
    assert (
        codes(on_text(function("return _swap(a, b)"), snapshot=snapshot_of(lib="def _swap(a, b):\n    return b\n")))
        == set()
    )


def test_every_problem_of_every_stage_is_told_at_once() -> None:
    draft = on_text("def f(list, *rest):\n    open('x')\n    return 1\n")
    found = codes(draft)
    assert "hides-builtin" in warnings(draft)
    assert {"no-docstring", "no-return-type", "star-parameter", "constant", "needs-files"} <= found


@pytest.mark.parametrize("policy", ["human", "import"])
def test_missing_words_only_warn_where_they_were_never_promised(policy: Policy) -> None:
    draft = on_text("def f(list):\n    return sum(list) + 1\n", policy=policy)
    assert codes(draft) == set()
    assert warnings(draft) == {"no-docstring", "no-type", "no-return-type", "undescribed-parameter", "hides-builtin"}


@pytest.mark.parametrize("policy", ["agent", "human", "import"])
def test_what_cannot_be_called_refuses_under_every_policy(policy: Policy) -> None:
    text = "import typing\n\n\ndef f(act: typing.Callable[[], int]) -> int:\n    return act()\n"
    assert "inexpressible-type" in codes(on_text(text, policy=policy))


@pytest.mark.parametrize("policy", ["human", "import"])
@pytest.mark.parametrize(
    ("signature", "code"),
    [
        pytest.param("*rest", "star-parameter", id="star"),
        pytest.param("**rest: int", "star-parameter", id="two-stars"),
        pytest.param("rest: list, /", "positional-only", id="positional-only"),
    ],
)
def test_what_is_passed_in_another_form_than_it_is_declared_refuses_only_a_model(
    policy: Policy, signature: str, code: str
) -> None:
    text = f"def f({signature}) -> int:\n    return len(rest)\n"
    assert (code in codes(on_text(text, policy=policy)), code in warnings(on_text(text, policy=policy))) == (
        False,
        True,
    )
    assert code in codes(on_text(text))


def test_a_good_function_has_no_problem() -> None:
    assert on_text(ADD, "add").problems == ()
