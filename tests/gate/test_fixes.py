"""The stages "read" and "fix": what counts as a candidate, repairs that follow from the text, and what stays."""

import sys

import pytest

from agent_core.functions.gate import Candidate, Rules
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.read import read
from agent_core.functions.gate.tree import parse
from agent_core.registry.registry import Snapshot

from .support import ADD, codes, fixes, function, on_text, snapshot_of


def test_a_standard_name_that_can_mean_one_thing_is_imported() -> None:
    for body, line in (
        ("return math.floor(a / b)", "import math"),  # module
        ("return len(re.findall('a', str(a))) + b", "import re"),  # another module
        ("return Counter([a, b])[a]", "from collections import Counter"),  # name
        ("return int(Decimal(a) + b)", "from decimal import Decimal"),  # class
        (
            "return datetime.now().year + a + b",
            "from datetime import datetime",
        ),  # datetime as class
        ("return datetime.date(a, b, 1).year", "import datetime"),  # datetime as module
        ("return a + b + int(time.time())", "import time"),  # time as module
        ("return floor(sqrt(a)) + b", "from math import floor, sqrt"),  # two of one module
    ):
        draft = on_text(function(body))
        assert fixes(draft) == ["missing-import"], body
        assert draft.text.startswith(f"{line}\n\n\ndef f("), body
        assert f"+{line}" in draft.fixes[0].diff, body


@pytest.mark.parametrize(
    ("use", "module"),
    [
        pytest.param(use, module or use.partition(".")[0], id=use)
        for use, module in (
            ("zipfile.ZipFile(str(a)).namelist()", ""),
            ("tempfile.mkdtemp()", ""),
            ("pathlib.Path(str(a)).parts", ""),
            ("glob.glob(str(a))", ""),
            ("shutil.copy(str(a), str(b))", ""),
            ("sqlite3.connect(':memory:').total_changes", ""),
            ("gzip.compress(bytes(a))", ""),
            ("tarfile.open(str(a)).getnames()", ""),
            ("email.message_from_string(str(a)).keys()", ""),
            ("email.message_from_string(str(a), policy=email.policy.default)", "email.policy"),
            ("tomllib.loads(str(a))", ""),
            ("codecs.encode(str(a), 'rot13')", ""),
            ("logging.getLogger(str(a)).name", ""),
            ("fnmatch.filter([str(a)], '*')", ""),
            ("hashlib.sha256(bytes(a)).hexdigest()", ""),
            ("xml.etree.ElementTree.fromstring(str(a)).tag", "xml.etree.ElementTree"),
            ("urllib.parse.quote(str(a))", "urllib.parse"),
            ("os.path.basename(str(a))", "os"),
            ("select.epoll(a)", ""),
            ("antigravity.geohash(a, b, b'')", ""),
        )
    ],
)
def test_any_module_of_the_standard_library_is_imported_that_is_used_by_its_attributes(
    use: str, module: str
) -> None:
    draft = on_text(function(f"return len(str({use})) + b"))
    assert fixes(draft) == ["missing-import"]
    assert draft.text.startswith(f"import {module}\n\n\ndef f(")
    assert "antigravity" not in sys.modules


def test_a_name_that_could_mean_several_things_is_not_imported() -> None:
    for body in (
        "queue.append(a)\nreturn b",  # a variable that was forgotten, and modules of these names
        "return len(email.lower()) + a + b",
        "return code.count('x') + a + b",
        "return select.index(a) + b",
        "return len(platform.strip()) + a + b",
        "return xml.etree.nonsense(a, b)",
        "return len(str(zipfile.ZipFile)) + len(str(zipfile)) + a + b",
        "return _thread.get_ident() + a + b",  # no public module
        "return time(a, b).hour",  # time is a class here
        "return datetime.nonsense(a, b)",  # datetime asked for neither
        "return numpy.add(a, b)",  # not in the standard library
        "return frobnicate(a, b)",  # unknown
        "math = [a, b]\nreturn math[0]",  # a local of that name
        "return json.loads(str(a)) + len(str(json)) + b",  # a module used as a value
    ):
        assert "missing-import" not in fixes(on_text(function(body))), body


def test_a_name_that_the_module_around_defines_is_not_imported() -> None:
    around = snapshot_of(lib="sqrt = abs\n")
    assert fixes(on_text(function("return sqrt(a) + b"), snapshot=around)) == []


def test_imports_stand_below_the_docstring_of_the_text_and_beside_others() -> None:
    draft = on_text(
        '"""Text."""\nimport json\n\n' + function("return json.loads(str(math.floor(a))) + b")
    )
    assert draft.text.startswith('"""Text."""\nimport json\nimport math\n')


def test_self_is_added_where_the_body_uses_it() -> None:
    draft = on_text(function("self.progress(1, 2, 'half')\nreturn a + b"))
    assert fixes(draft) == ["missing-self"]
    assert "def f(self, a: int, b: int) -> int:" in draft.text
    assert (
        "def f(self) -> int:"
        in on_text(function("return len(self.scratch.name)", parameters="")).text
    )


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


def test_another_docstring_style_becomes_google_and_its_types_become_hints() -> None:
    for words in (
        REST,  # rest
        NUMPY,  # numpy
        EPYDOC,  # epydoc
    ):
        draft = on_text(f'def f(a, b):\n    """{words}"""\n    return a + b\n')
        assert fixes(draft) == ["docstring-style", "docstring-types"], words
        assert "def f(a: int, b: int) -> int:" in draft.text, words
        for line in (
            "Args:",
            "a (int): The first of them.",
            "b (int): The second.",
            "int: The sum.",
            "ValueError: Never.",
        ):
            assert f" {line}\n" in draft.text, words
        assert ">>> f(1, 2)\n" in draft.text, words


def test_a_result_without_a_type_is_described_without_a_mark() -> None:
    for words in (REST.replace("    :rtype: int\n", ""), EPYDOC.replace("    @rtype: int\n", "")):
        for gives in ("", " -> int"):
            draft = on_text(f'def f(a: int, b: int){gives}:\n    """{words}"""\n    return a + b\n')
            assert "    Returns:\n        The sum.\n" in draft.text, draft.text


def test_descriptions_that_stand_elsewhere_are_moved_under_args() -> None:
    for words in (
        "Add.\n    - a: The first.\n    - b: The second.\n    ",  # bullets
        "Add.\n\n    a: The first.\n    b: The second.\n    ",  # lines
        "Add.\n\n    `a` - The first.\n    `b` - The second.\n    ",  # dashes
        "Add.\n\n    Inputs:\n      a (int): The first.\n      b (int): The second.\n    ",  # other heading
    ):
        draft = on_text(f'def f(a: int, b: int) -> int:\n    """{words}"""\n    return a + b\n')
        assert fixes(draft) == ["docstring-sections"], words
        assert "    Args:\n        a: The first.\n        b: The second.\n" in draft.text, words


def hinted(named: str) -> str:
    """Return the parameter of a function whose docstring names this type."""
    draft = on_text(
        f'def f(a):\n    """Do.\n\n    Args:\n        a ({named}): A value.\n    """\n    return [a]\n'
    )
    return draft.text.partition("def f(")[2].partition("):")[0]


def test_a_type_that_the_docstring_names_becomes_a_hint_if_it_is_certain() -> None:
    for named, hint in (
        *(("int, optional", "int"), ("List[int]", "list[int]"), ("int or None", "int | None")),
        *(
            ("Optional[str]", "str | None"),
            ("dict[str, int]", "dict[str, int]"),
            ("Decimal", "Decimal"),
        ),
    ):
        assert hinted(named) == f"a: {hint}", named
    for named in (
        "number",
        "string",
        "list of strings",
        "array-like",
        "a thing",
        "callable",
        "DataFrame",
    ):
        assert hinted(named) == "a", named
    assert hinted("int, sometimes str") == "a"


def test_a_default_of_none_belongs_to_the_hint() -> None:
    draft = on_text(
        'def f(a=None):\n    """Do.\n\n    Args:\n        a (int): A value.\n    """\n    return [a]\n'
    )
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
    assert (
        draft.text
        == 'def f(a, b):\n    """Add "two"\n    numbers \\\\ more.\n    """\n    return a + b\n'
    )


SESSION = "\n".join(
    f"{'...' if number else '>>>'} {line}".rstrip()
    for number, line in enumerate(ADD[: ADD.index("    Examples")].split("\n"))
)
BODY = '    """\n    return a + b\n'


def test_of_several_fences_the_one_with_a_function_is_taken() -> None:
    for fence in ("```", "~~~"):
        text = f"First:\n{fence}sh\npip install x\n{fence}\nThen:\n{fence}python\n{ADD}{fence}\nUse it.\n"
        assert on_text(text, "add").text == ADD, fence


def test_a_docstring_that_is_indented_with_tabs_stays_so() -> None:
    code = 'def f(a: int) -> int:\n\t"""Count.\n\n\t:param a: A number.\n\t"""\n\treturn a\n'
    assert (
        on_text(code).text
        == 'def f(a: int) -> int:\n\t"""Count.\n\n\tArgs:\n\t    a: A number.\n\t"""\n\treturn a\n'
    )


def test_a_docstring_with_escaped_line_breaks_is_read_as_it_means() -> None:
    code = 'def f(a: int) -> int:\n    "Count.\\n\\n:param a: A number."\n    return a + 1\n'
    draft = on_text(code)
    assert codes(draft) == set()
    assert "    Args:\n        a: A number.\n" in draft.text


def test_what_watches_its_own_text_is_not_fixed() -> None:
    for code in (
        f"from pydantic import validate_call\n@validate_call\n{function('return a * b', 'a=1, b=2')}",  # checks hints
        function("return a + b + len(f.__annotations__)", "a=1, b=2"),  # counts hints
        function("return a + b + len(f.__doc__)").replace(
            "Args:", ":param a: x"
        ),  # reads its docstring
        function(
            "try:\n    return sqrt(a)\nexcept NameError:\n    return b"
        ),  # expects a missing name
        function("return floor(a) if 'floor' in globals() else b"),  # looks for a name
    ):
        draft = on_text(code)
        assert parse(code) is not None, code
        assert (fixes(draft), draft.text) == ([], code), code


def test_a_hint_means_what_its_name_means_in_the_file() -> None:
    code = "from typing import List\nlist = tuple\n" + function(
        "return a[b]", "a: List[int], b: int | None"
    )
    assert fixes(on_text(code)) == []


def test_a_trial_at_the_end_is_taken_off() -> None:
    for tail in (
        "assert add(x, 2) == 3",  # assert
        "# Example usage\nprint(add(1, 2))",  # with its comment
        "total = add(1, 2)\nprint(total)\nassert total == 3",  # with a value of its own
        "if __name__ == '__main__':\n    print(add(1, 2))",  # program
    ):
        draft = on_text(f"{ADD}\n\n{tail}\n", "add")
        assert (codes(draft), fixes(draft), draft.text.strip()) == (
            set(),
            ["trailing-code"],
            ADD.strip(),
        ), tail


def test_what_may_change_what_is_computed_is_left_and_told() -> None:
    for tail in (
        "TABLE.update({1: 2})",  # state that the function reads
        "TABLE[add(1, 2)] = 5",  # state changed with its result
        "for n in [1]:\n    TABLE.append(f(n, n))",  # a loop that fills it
        "random.seed(0)",  # a module changed
    ):
        draft = on_text(
            f"import random\n\nTABLE = {{}}\n\n\n{function('return TABLE[a] + random.randint(0, b)')}\n\n{tail}\n"
        )
        assert tail in draft.text, tail
        assert codes(draft) == {"top-level-statement"} or "trailing-code" not in fixes(draft), tail


def test_a_helper_that_is_named_like_a_test_stays() -> None:
    code = function("return check(a) + b") + "\n\ndef check(n):\n    return n * 2\n"
    draft = on_text(code)
    assert fixes(draft) == ["private-helper"]
    assert "return _check(a) + b" in draft.text


def test_wrapping_around_the_code_is_taken_off() -> None:
    for wrapped, code in (
        (f"```python\n{ADD}```", "code-fence"),  # fence
        (
            f"Here is the function:\n\n```py\n{ADD}```\nI hope it helps.",
            "code-fence",
        ),  # fence in prose
        ("\n".join(f"    {line}" for line in ADD.split("\n")), "indentation"),  # indented
    ):
        draft = on_text(wrapped, "add")
        assert (codes(draft), fixes(draft), draft.text.strip()) == (set(), [code], ADD.strip()), (
            wrapped
        )


def test_a_fix_that_is_switched_off_is_not_made() -> None:
    draft = on_text(f"```python\n{ADD}```", "add", rules=Rules(off=frozenset({"*"})))
    assert (fixes(draft), codes(draft)) == ([], {"syntax-error"})


def test_code_that_stops_in_the_middle_is_said_to_be_cut_off() -> None:
    for code in (
        ADD[: ADD.index("Returns")],  # in the docstring
        "def add(a: int, b: int) -> int:\n    return (a +",  # in an expression
        "def add(a: int, b: int) -> int:\n",  # before the body
        "def add(a, b):\n    if a:",  # before a block
        'def add(a, b):\n    return "half of a',  # in a string
    ):
        assert codes(on_text(code, "add")) == {"cut-off"}, code


def test_a_syntax_error_names_its_line_and_quotes_it() -> None:
    (problem,) = on_text("def add(a, b):\n    return a b\n\nx = 1\n", "add").problems
    assert problem.code == "syntax-error"
    assert problem.where.line == 2
    assert "`return a b`" in problem.message


def test_what_is_not_one_function_of_the_promised_name_is_refused() -> None:
    cases: list[tuple[str, str, set[str]]] = [
        ("x = 1\n", "add", {"no-function"}),  # no function
        ("   \n", "add", {"no-function"}),  # nothing
        (
            ADD + "\n\ndef other() -> None:\n    add(1, 2)\n",
            "add",
            {"several-functions"},
        ),  # two functions
        ("print('hello')\n" + ADD, "add", {"top-level-statement"}),  # statement at the top
        (ADD.replace("def add", "def print"), "print", {"bad-name"}),  # builtin
        (ADD, "class", {"bad-name", "wrong-name"}),  # keyword
        (ADD, "ädd", {"bad-name", "wrong-name"}),  # not ascii
        ("def add(a, b):\0\n    return a", "add", {"not-text"}),  # nul byte
        ("def add(a):\n    return '\ud800'", "add", {"not-text"}),  # lone surrogate
        ("x = '" + "a" * 70_000 + "'", "add", {"too-long"}),  # too long
    ]
    for code, name, expected in cases:
        assert codes(on_text(code, name)) == expected, code


def test_a_wrong_name_is_told_with_both_names() -> None:
    (problem,) = on_text(ADD, "plus").problems
    assert problem.code == "wrong-name"
    assert "`plus`" in problem.message
    assert "`add`" in problem.message
    assert problem.fix is not None


def test_a_helper_that_the_function_calls_becomes_private() -> None:
    draft = on_text(
        ADD.replace("return a + b", "return total(a, b)")
        + "\n\ndef total(a, b):\n    return a + b\n",
        "add",
    )
    assert fixes(draft) == ["private-helper"]
    assert "return _total(a, b)" in draft.text
    assert "def _total(a, b)" in draft.text


def test_a_helper_whose_name_means_more_than_one_thing_keeps_it() -> None:
    for body in (
        "total = total(a, b)\n    return total",  # also a local
        "return total(a, b) + sum([total for total in (a, b)])",  # also in a comprehension
        "return f'{total(a, b)}'",  # inside an f string
        "return total(a, b) + _total",  # with the underscore taken
    ):
        helper = "\n\n_total = 3\n\n\ndef total(a, b):\n    return a + b\n"
        draft = on_text(
            ADD.replace("return a + b", body)
            + (helper if "_total" in body else helper.replace("_total", "LIMIT")),
            "add",
        )
        assert "private-helper" not in fixes(draft), body
        assert "several-functions" in codes(draft), body


def test_a_module_name_that_leaves_the_folder_or_is_no_name_is_refused() -> None:
    for module in ("../x", "a/b", "", ".", "a..b", "class", "1x", "a b"):
        assert codes(on_text(ADD, "add", module=module)) == {"bad-module"}, module


def of_path(example: str, result: str, *, prefix: str = "") -> str:
    """Return a function with an example as it is written in a docstring with this prefix."""
    lines = [f"    {line}\n" for line in (*example.split("\n"), *result.split("\n"))]
    return (
        f'def f(text: str) -> list[str]:\n    {prefix}"""Split a text.\n\n    Args:\n        text: A value.\n\n'
        f'{"".join(lines)}    """\n    return text.splitlines()\n'
    )


def test_an_escape_that_would_tear_an_example_apart_makes_the_docstring_raw() -> None:
    for example, result in (
        (r'>>> f("a\nb")', "['a', 'b']"),  # in a call
        (
            r'>>> _ = open("a.csv", "w").write("day,sum\n1,2.5\n")' + "\n>>> f('a')",
            "['a']",
        ),  # in a file's text
        (r'>>> "\n".join(f("a"))', r"'a\nb'"),  # in a result
        (r'>>> f("a\n\nb")', "['a', '', 'b']"),  # with an empty line
        (r'>>> f("a\tb")', r"['a\tb']"),  # a tab, which would be spaces
        (r'>>> f("a\x00b")', r"['a\x00b']"),  # a character that cannot be seen
        (r'>>> f("a\r\nb")', "['a', 'b']"),  # a line of Windows
    ):
        text = of_path(example, result)
        draft = on_text(text)
        assert fixes(draft) == ["raw-docstring"], example
        assert draft.text == text.replace('"""Split', 'r"""Split'), example
        assert codes(draft) == set(), example


def test_a_docstring_whose_examples_read_as_they_are_meant_stays() -> None:
    for text in (
        of_path(r'>>> f("a\nb")', "['a', 'b']", prefix="r"),  # raw
        of_path(r'>>> f("a\\nb")', "['a', 'b']"),  # escaped
        of_path(r'>>> f("a\\nb")', r"['a\nb']"),  # by an author who knows of escapes
        of_path(r'>>> f("\u00e9")', "['é']"),  # a letter
        of_path('>>> f("a")', "['a']").replace(
            "A value.", r"Lines with \n between."
        ),  # not in an example
        of_path('>>> f("a	b")', "['a	b']"),  # a tab that was typed
        of_path(">>>f(1)", "[1]").replace(
            "A value.", r"Lines with \n between."
        ),  # broken in another way
    ):
        draft = on_text(text)
        assert fixes(draft) == [], text
        assert draft.text == text


def test_calls_that_set_up_an_import_are_made_in_the_function() -> None:
    for top, call in (
        ("import matplotlib\n{}import matplotlib.pyplot as plt\n", 'matplotlib.use("Agg")'),
        ("import csv\n\n{}", "csv.field_size_limit(10_000_000)"),
        ("import warnings\n\n{}", 'warnings.filterwarnings("ignore", category=DeprecationWarning)'),
        ("import random\n\n{}", "random.seed(7)"),
        ("from locale import LC_ALL, setlocale\n\n{}", 'setlocale(LC_ALL, "C")'),
        ("import sys\n\n{}", "sys.setrecursionlimit(5_000)"),
    ):
        text = top.format(f"{call}\n") + "\n\n" + function("return a * 2 + b")
        draft = on_text(text)
        assert fixes(draft) == ["moved-setup"], call
        assert codes(draft) <= {"needs-packages"}, call
        assert f'    """\n    {call}\n    return a * 2 + b\n' in draft.text, call
        assert not draft.text.startswith(call), call
        assert draft.text.count(call) == 1, call


def test_a_statement_that_is_no_setup_stays_where_a_model_is_told_of_it() -> None:
    whole = function("return a * 2 + b")
    for top in (
        "import csv\n\nfor size in (1, 2):\n    csv.field_size_limit(size)\n",  # a loop
        "print('ready')\n",  # of nothing that is imported
        "LIMITS = [1]\nLIMITS.append(2)\n",  # of its own value
        "import random\n\nSEED = 7\nrandom.seed(SEED)\n",  # with its own value
    ):
        draft = on_text(f"{top}\n\n{whole}")
        assert (fixes(draft), codes(draft)) == ([], {"top-level-statement"}), top
    hidden = on_text(
        "import random as a\n\na.seed(7)\n\n\n" + whole
    )  # the parameter `a` is another one
    assert codes(hidden) == {"top-level-statement"}


def test_imports_for_a_type_checker_may_stand_at_the_top() -> None:
    top = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from decimal import Decimal\n\n\n"
    assert codes(on_text(top + function("return a * 2 + b"))) == set()
