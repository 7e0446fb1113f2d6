"""Descriptions are extracted from every docstring style, without the examples."""

import pytest

from agent_core.registry import docstring
from tests.registry.support import codes, read

STYLES = {
    "google": "Args:\n    url (str): Where\n        to look.\n    tries: How often.\n\nReturns:\n    str: The text.",
    "numpy": "Parameters\n----------\nurl : str\n    Where to look.\ntries : int, optional\n    How often."
    "\n\nReturns\n-------\nstr\n    The text.",
    "rest": ":param url: Where to look.\n:type url: str\n:param int tries: How often.\n:returns: The text.",
    "epydoc": "@param url: Where to look.\n@type url: str\n@param tries: How often.\n@return: The text.",
}
BODY = '''def fetch(url: str, tries: int = 1) -> str:
    """Fetch a page.

    Follows redirects.

    {}
    """
'''


def test_parameters_are_described_in_every_style() -> None:
    for case, section in STYLES.items():
        reading = read(BODY.format(section.replace("\n", "\n    ")))
        function = reading.functions[0]
        described = {
            name: one["description"] for name, one in function.parameters["properties"].items()
        }
        assert described == {"url": "Where to look.", "tries": "How often."}, case
        assert function.description == "Fetch a page.\n\nFollows redirects.", case
        assert reading.problems == (), case


@pytest.mark.parametrize(
    "section",
    [
        pytest.param("Args:\n    a - First.\n    b -- Second.", id="dashes"),
        pytest.param(
            "Args:\na: First.\nb (int): Second.\n\nReturns:\n    int: The sum.", id="not-indented"
        ),
        pytest.param("Args:\n    * a: First.\n    * b: Second.", id="bullets"),
        pytest.param("Args:\n    1. `a`: First.\n    2. **b** (int): Second.", id="marks"),
        pytest.param("Arguments:\n    a {int} -- First.\n    b {int} -- Second.", id="braces"),
        pytest.param(
            "Args:\n    a: First.\n\nKeyword Args:\n    b: Second.", id="keyword-arguments"
        ),
        pytest.param("Args:\n    a: First.\n\nArgs:\n    b: Second.", id="same-heading-twice"),
        pytest.param(
            "@param a First.\n@param {int} b - Second.\n@return the sum", id="fields-without-colon"
        ),
        pytest.param(":param a First.\n:param b: Second.", id="one-field-without-colon"),
        pytest.param("Parameters\n---\na: int\n    First.\nb: int\n    Second.", id="three-dashes"),
        pytest.param(
            "Parameters:\n==========\na : First.\nb : Second.", id="words-in-place-of-types"
        ),
    ],
)
def test_other_spellings_of_entries_describe_their_parameters(section: str) -> None:
    described = docstring.read(f"Mix.\n\n{section}\n")
    assert described.parameters == {"a": "First.", "b": "Second."}
    assert docstring.read(section).parameters == described.parameters  # without a summary, too


@pytest.mark.parametrize(
    ("section", "text"),
    [
        pytest.param(
            "Args:\n    a: First.\n    and so on\n    b: Second.", "", id="a-line-further"
        ),
        pytest.param(
            "Args:\n    All are numbers.\n    a: First. and so on\n    b: Second.",
            "All",
            id="a-line-before",
        ),
        pytest.param(
            "Args:\n    a: First. and so on\n    b: Second.\n\n    b: Second.\n\nMore.",
            "More",
            id="after",
        ),
        pytest.param(
            ":param a: First. and so on\n:param b: Second.\n:kwarg c: Third.",
            "Third",
            id="unknown-field",
        ),
    ],
)
def test_a_line_that_is_no_entry_costs_neither_its_neighbors_nor_itself(
    section: str, text: str
) -> None:
    described = docstring.read(f"Mix.\n\n{section}\n")
    assert described.parameters == {"a": "First. and so on", "b": "Second."}
    assert text in described.text


@pytest.mark.parametrize(
    "section",
    [
        pytest.param("Args:\n    a First.\n    b Second.", id="without-a-sign"),
        pytest.param("Args:\n    a: First.\n\nOptions:\n    b: Second.", id="other-heading"),
        pytest.param("Args:\na: First.\n\nb: Second.", id="apart"),
        pytest.param(
            "Returns:\n    The sum.\n\nargs:\n    a: First.\n    b: Second.", id="small-letters"
        ),
        pytest.param(
            "## Parameters\n- a: First.\n- b: Second.\n\nReturns:\n    The sum.", id="markdown"
        ),
        pytest.param("Parameters\n----------\na - First.\nb - Second.", id="dashes-below-a-line"),
    ],
)
def test_words_that_no_entry_has_stay_in_the_text(section: str) -> None:
    described = docstring.read(f"Mix.\n\n{section}\n")
    words = " ".join([described.text, *described.parameters.values()])
    assert described.text.startswith("Mix.")
    assert ("First." in words, "Second." in words) == (True, True)


def test_types_and_returns_of_the_docstring_are_kept_as_advice() -> None:
    for case, section in STYLES.items():
        described = docstring.read(f"Fetch a page.\n\n{section}")
        assert described.types["url"] == "str", case
        assert described.returns == "The text.", case


def test_a_heading_of_examples_is_no_part_of_the_last_description() -> None:
    for style in ["rest", "epydoc", "google"]:
        mark = {
            "rest": ":param url: Where.",
            "epydoc": "@param url: Where.",
            "google": "Args:\n    url: Where.",
        }[style]
        described = docstring.read(f"Fetch.\n\n{mark}\n\nExamples:\n    >>> fetch('a')\n    'b'\n")
        assert described.parameters == {"url": "Where."}, style


def test_two_styles_in_one_docstring_describe_together() -> None:
    described = docstring.read("Fetch.\n\nArgs:\n    url: Where.\n\n:param tries: How often.\n")
    assert described.parameters["tries"] == "How often."
    assert described.parameters["url"].startswith("Where.")


def test_examples_are_no_part_of_the_description() -> None:
    for text in [
        "Add.\n\n>>> add(1, 2)\n3\n",
        "Add.\n\nExample:\n    >>> add(1, 2)\n    3\n",
        "Add.\n\nExamples\n--------\n>>> add(1, 2)\n3\n\n>>> add(2, 2)\n4\n",
        "Add.\n\n>>> add(1, 2)\n3\n\n:param a: First.\n",
        "Add.\n>>> add(1,\n...     2)\n3",
    ]:
        assert docstring.read(text).text == "Add.", text


def test_a_malformed_docstring_is_text_and_no_error() -> None:
    for text in [
        "Args:\n  broken",
        "A.\n\n:param",
        "@param :",
        "Parameters\n----------\n:::",
        "Args:\n" * 50,
        "",
        "\x00\ud800",
    ]:
        assert isinstance(docstring.read(text).text, str), text


def test_each_undescribed_parameter_is_named_with_its_place() -> None:
    reading = read(
        'def probe(größe: int, url: str):\n    """Probe.\n\n    Args:\n        größe: It.\n    """\n'
    )
    (problem,) = reading.problems
    assert (problem.code, problem.severity) == ("undescribed-parameter", "warns")
    assert (problem.where.line, problem.where.column) == (1, 23)
    assert "`url` of `probe`" in problem.message


def test_an_entry_without_a_parameter_is_pointed_out() -> None:
    reading = read('def probe():\n    """Probe.\n\n    Args:\n        ulr: Where.\n    """\n')
    assert codes(reading.problems) == ["unknown-parameter"]
    assert len(reading.functions) == 1
