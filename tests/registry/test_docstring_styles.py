"""Descriptions are extracted from every docstring style, without the examples."""

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
        described = {name: one["description"] for name, one in function.parameters["properties"].items()}
        assert described == {"url": "Where to look.", "tries": "How often."}, case
        assert function.description == "Fetch a page.\n\nFollows redirects.", case
        assert reading.problems == (), case


def test_types_and_returns_of_the_docstring_are_kept_as_advice() -> None:
    for case, section in STYLES.items():
        described = docstring.read(f"Fetch a page.\n\n{section}")
        assert described.types["url"] == "str", case
        assert described.returns == "The text.", case


def test_a_heading_of_examples_is_no_part_of_the_last_description() -> None:
    for style in ["rest", "epydoc", "google"]:
        mark = {"rest": ":param url: Where.", "epydoc": "@param url: Where.", "google": "Args:\n    url: Where."}[style]
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
    reading = read('def probe(größe: int, url: str):\n    """Probe.\n\n    Args:\n        größe: It.\n    """\n')
    (problem,) = reading.problems
    assert (problem.code, problem.severity) == ("undescribed-parameter", "warns")
    assert (problem.where.line, problem.where.column) == (1, 23)
    assert "`url` of `probe`" in problem.message


def test_an_entry_without_a_parameter_is_pointed_out() -> None:
    reading = read('def probe():\n    """Probe.\n\n    Args:\n        ulr: Where.\n    """\n')
    assert codes(reading.problems) == ["unknown-parameter"]
    assert len(reading.functions) == 1
