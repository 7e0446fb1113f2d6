"""The stage "fix": repairs that follow from the text alone, and what is left unchanged."""

import pytest

from agent_core.functions.gate import Candidate, Rules
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.read import read
from agent_core.registry.snapshot import Snapshot

from .support import ADD, fixes, function, on_text, snapshot_of


@pytest.mark.parametrize(
    ("body", "line"),
    [
        pytest.param("return math.floor(a / b)", "import math", id="module"),
        pytest.param("return len(re.findall('a', str(a))) + b", "import re", id="another-module"),
        pytest.param("return Counter([a, b])[a]", "from collections import Counter", id="name"),
        pytest.param("return int(Decimal(a) + b)", "from decimal import Decimal", id="class"),
        pytest.param("return datetime.now().year + a + b", "from datetime import datetime", id="datetime-as-class"),
        pytest.param("return datetime.date(a, b, 1).year", "import datetime", id="datetime-as-module"),
        pytest.param("return a + b + int(time.time())", "import time", id="time-as-module"),
        pytest.param("return floor(sqrt(a)) + b", "from math import floor, sqrt", id="two-of-one-module"),
    ],
)
def test_a_standard_name_that_can_mean_one_thing_is_imported(body: str, line: str) -> None:
    draft = on_text(function(body))
    assert fixes(draft) == ["missing-import"]
    assert draft.text.startswith(f"{line}\n\n\ndef f(")
    assert f"+{line}" in draft.fixes[0].diff


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return time(a, b).hour", id="time-is-a-class-here"),
        pytest.param("return datetime.nonsense(a, b)", id="datetime-asked-for-neither"),
        pytest.param("return numpy.add(a, b)", id="not-in-the-standard-library"),
        pytest.param("return frobnicate(a, b)", id="unknown"),
        pytest.param("math = [a, b]\nreturn math[0]", id="a-local-of-that-name"),
        pytest.param("return json.loads(str(a)) + len(str(json)) + b", id="a-module-used-as-a-value"),
    ],
)
def test_a_name_that_could_mean_several_things_is_not_imported(body: str) -> None:
    assert "missing-import" not in fixes(on_text(function(body)))


def test_a_name_that_the_module_around_defines_is_not_imported() -> None:
    around = snapshot_of(lib="sqrt = abs\n")
    assert fixes(on_text(function("return sqrt(a) + b"), snapshot=around)) == []


def test_imports_stand_below_the_docstring_of_the_text_and_beside_others() -> None:
    draft = on_text('"""Text."""\nimport json\n\n' + function("return json.loads(str(math.floor(a))) + b"))
    assert draft.text.startswith('"""Text."""\n\nimport math\nimport json\n')


def test_self_is_added_where_the_body_uses_it() -> None:
    draft = on_text(function("self.progress(1, 2, 'half')\nreturn a + b"))
    assert fixes(draft) == ["missing-self"]
    assert "def f(self, a: int, b: int) -> int:" in draft.text


def test_self_alone_is_added_between_empty_parentheses() -> None:
    assert "def f(self) -> int:" in on_text(function("return len(self.scratch.name)", parameters="")).text


REST = """Add.

    :param a: The first
        of them.
    :type a: int
    :param int b: The second.
    :returns: The sum.
    :rtype: int
    :raises ValueError: Never.

    >>> f(1, 2)
    3
    """
NUMPY = """Add.

    Parameters
    ----------
    a : int
        The first of them.
    b : int
        The second.

    Returns
    -------
    int
        The sum.

    Raises
    ------
    ValueError
        Never.

    Examples
    --------
    >>> f(1, 2)
    3
    """
EPYDOC = """Add.

    @param a: The first of them.
    @type a: int
    @param b: The second.
    @type b: int
    @return: The sum.
    @rtype: int
    @raise ValueError: Never.

    >>> f(1, 2)
    3
    """


@pytest.mark.parametrize(
    "words", [pytest.param(REST, id="rest"), pytest.param(NUMPY, id="numpy"), pytest.param(EPYDOC, id="epydoc")]
)
def test_another_docstring_style_becomes_google_and_its_types_become_hints(words: str) -> None:
    draft = on_text(f'def f(a, b):\n    """{words}"""\n    return a + b\n')
    assert fixes(draft) == ["docstring-style", "docstring-types"]
    assert "def f(a: int, b: int) -> int:" in draft.text
    for line in ("Args:", "a (int): The first of them.", "b (int): The second.", "int: The sum.", "ValueError: Never."):
        assert f" {line}\n" in draft.text
    assert ">>> f(1, 2)\n" in draft.text


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("Add.\n    - a: The first.\n    - b: The second.\n    ", id="bullets"),
        pytest.param("Add.\n\n    a: The first.\n    b: The second.\n    ", id="lines"),
        pytest.param("Add.\n\n    `a` - The first.\n    `b` - The second.\n    ", id="dashes"),
        pytest.param(
            "Add.\n\n    Arguments:\n        a {int} -- The first.\n        b {int} -- The second.\n    ", id="braces"
        ),
        pytest.param("Add.\n\n    Args:\n    a: The first.\n    b: The second.\n    ", id="not-indented"),
        pytest.param(
            "Add.\n\n    Inputs:\n      a (int): The first.\n      b (int): The second.\n    ", id="other-heading"
        ),
    ],
)
def test_descriptions_that_stand_elsewhere_are_moved_under_args(words: str) -> None:
    draft = on_text(f'def f(a: int, b: int) -> int:\n    """{words}"""\n    return a + b\n')
    assert fixes(draft) == ["docstring-sections"]
    assert "    Args:\n        a: The first.\n        b: The second.\n" in draft.text


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        pytest.param("int, optional", "int", id="marked"),
        pytest.param("List[int]", "list[int]", id="old-generic"),
        pytest.param("int or None", "int | None", id="or"),
        pytest.param("Optional[str]", "str | None", id="optional"),
        pytest.param("dict[str, int]", "dict[str, int]", id="generic"),
        pytest.param("Decimal", "Decimal", id="standard-class"),
    ],
)
def test_a_type_that_the_docstring_names_becomes_a_hint(named: str, hint: str) -> None:
    draft = on_text(f'def f(a):\n    """Do.\n\n    Args:\n        a ({named}): A value.\n    """\n    return [a]\n')
    assert f"def f(a: {hint}):" in draft.text


@pytest.mark.parametrize(
    "named",
    ["number", "string", "list of strings", "array-like", "a thing", "callable", "DataFrame", "int, sometimes str"],
)
def test_a_type_that_is_not_certain_becomes_no_hint(named: str) -> None:
    draft = on_text(f'def f(a):\n    """Do.\n\n    Args:\n        a ({named}): A value.\n    """\n    return [a]\n')
    assert "def f(a):" in draft.text


def test_a_default_of_none_belongs_to_the_hint() -> None:
    draft = on_text('def f(a=None):\n    """Do.\n\n    Args:\n        a (int): A value.\n    """\n    return [a]\n')
    assert "def f(a: int | None = None):" in draft.text


def test_a_description_is_never_invented() -> None:
    draft = on_text('def f(a: int, b: int) -> int:\n    """Add a and b."""\n    return a + b\n')
    assert fixes(draft) == []
    assert sum(problem.code == "undescribed-parameter" for problem in draft.problems) == 2


def test_a_missing_return_type_is_named_and_not_inferred() -> None:
    draft = on_text(
        'def f(self, a: int):\n    """Do.\n\n    Args:\n        a: A value.\n    """\n    self.progress(a, 2)\n'
    )
    assert ("no-return-type", "-> None" in draft.text) == (draft.problems[0].code, False)


def test_one_kind_of_fix_can_be_switched_off_alone() -> None:
    code = function("self.progress(1, 2)\nreturn math.floor(a / b)")
    assert fixes(on_text(code, rules=Rules(off=frozenset({"missing-import"})))) == ["missing-self"]


def test_good_code_is_left_exactly_as_it_is() -> None:
    draft = on_text(ADD, "add")
    assert (draft.text, draft.fixes, draft.problems) == (ADD, (), ())


def test_a_description_that_came_with_the_code_becomes_its_docstring() -> None:
    code = "def f(a, b):\n    return a + b\n"
    draft = fix(
        read(
            Draft(
                Candidate("f", code, "lib", description='Add "two"\nnumbers \\ more.'),
                "import",
                Rules(),
                Snapshot.empty(),
                code,
            )
        )
    )
    assert fixes(draft) == ["given-description"]
    assert draft.text == 'def f(a, b):\n    """Add "two"\n    numbers \\\\ more.\n    """\n    return a + b\n'
