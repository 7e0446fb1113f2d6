"""Writing into a module keeps every character that a human wrote."""

from agent_core.base.problem import Problem
from agent_core.registry.module_edits import place_function, remove_function

MODULE = '''#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Größen – every “width”."""

from __future__ import annotations

import os  # used below
from math import (
    pi,  # the ratio
)

LIMIT  =  3   # odd spacing stays


# about area
@cache
def area(r):
    """A – circle."""; x = 'ä' * 2
    return pi * r
    # the end of area


class Shape: pass
# attached to width
def width(): return os.sep


if __name__ == "__main__":
\tprint(area(1))
'''


def placed(module: str, candidate: str, name: str) -> str:
    result = place_function(module, candidate, name)
    assert isinstance(result, str), result
    return result


def refused(module: str, candidate: str, name: str = "f") -> Problem:
    result = place_function(module, candidate, name)
    assert isinstance(result, Problem), result
    return result


def test_a_function_is_replaced_by_its_exact_span() -> None:
    start, end = MODULE.index("# about area"), MODULE.index("\n\n\nclass Shape")
    new = "# mine\ndef area(r):\n    return r"
    assert placed(MODULE, new, "area") == MODULE[:start] + new + MODULE[end:]


def test_a_function_without_blank_lines_around_it_is_replaced_too() -> None:
    start, end = MODULE.index("# attached"), MODULE.index("\n\n\nif __name__")
    assert (
        placed(MODULE, "def width(): return 1", "width")
        == MODULE[:start] + "def width(): return 1" + MODULE[end:]
    )


def test_a_function_is_appended_and_nothing_else_changes() -> None:
    assert (
        placed(MODULE, '"""A candidate."""\n\ndef f(): ...', "f") == f"{MODULE}\n\ndef f(): ...\n"
    )


def test_a_function_is_removed_with_its_comments_and_decorators() -> None:
    start, end = MODULE.index("# about area"), MODULE.index("class Shape")
    assert remove_function(MODULE, "area") == MODULE[:start] + MODULE[end:]


def test_replacing_a_function_by_itself_changes_nothing() -> None:
    for name in ["area", "width"]:
        area = MODULE[MODULE.index("# about") : MODULE.index("\n\n\nclass")]
        bodies = {"area": area, "width": "# attached to width\ndef width(): return os.sep"}
        assert placed(MODULE, f"from math import pi\nimport os\n{bodies[name]}", name) == MODULE, (
            name
        )


def test_imports_go_to_the_top_once_and_the_function_to_the_end() -> None:
    rows: list[tuple[str, str, str]] = [
        ("nothing", "", "import re\n\ndef f(): ...\n"),
        ("docstring", '"""Doc."""\n', '"""Doc."""\n\nimport re\n\n\ndef f(): ...\n'),
        ("no-final-newline", '"""Doc."""', '"""Doc."""\n\nimport re\n\n\ndef f(): ...\n'),
        (
            "docstring-and-code",
            '"""D."""\nx = 1\n',
            '"""D."""\n\nimport re\n\n\nx = 1\n\n\ndef f(): ...\n',
        ),
        ("imports", "import os\nx = 1\n", "import os\nimport re\nx = 1\n\n\ndef f(): ...\n"),
        ("there-already", "import re\n", "import re\n\n\ndef f(): ...\n"),
        (
            "heading-comment",
            "# top\n\nx = 1\n",
            "# top\n\nimport re\n\n\nx = 1\n\n\ndef f(): ...\n",
        ),
        ("interpreter-line", "#!/b\nx = 1\n", "#!/b\n\nimport re\n\n\nx = 1\n\n\ndef f(): ...\n"),
        ("comment-alone", "# only this\n", "# only this\n\nimport re\n\n\ndef f(): ...\n"),
        (
            "semicolon",
            "import os; x = (\n1)\n",
            "import os; x = (\n1)\nimport re\n\n\ndef f(): ...\n",
        ),
        ("windows-lines", "import os\r\n", "import os\r\nimport re\r\n\r\n\r\ndef f(): ...\r\n"),
        ("lines-that-a-return-ends", "import os\r", "import os\rimport re\r\r\rdef f(): ...\r"),
        ("blank-end", "x = 1\n\n\n\n", "import re\n\n\nx = 1\n\n\n\ndef f(): ...\n"),
    ]
    for case, module, result in rows:
        assert placed(module, "import re\n\ndef f(): ...", "f") == result, case


FUTURE = "from __future__ import annotations"
MERGED = {
    "part": (
        "from a import b\n",
        "from a import b, c as d",
        "from a import b\nfrom a import c as d\n",
    ),
    "sub-modules": ("import a.b\n", "import a.c", "import a.b\nimport a.c\n"),
    "future": ("import os\n", FUTURE, f"{FUTURE}\n\nimport os\n"),
    "future after future": (
        '"""D."""\nfrom __future__ import division\nx = 1\n',
        f"{FUTURE}\nimport os",
        f'"""D."""\nfrom __future__ import division\n{FUTURE}\nimport os\nx = 1\n',
    ),
    "type checking": (
        "x = 1\n",
        "if TYPE_CHECKING:\n    import os",
        "if TYPE_CHECKING:\n    import os\n\n\nx = 1\n",
    ),
    "type checking again": (
        "if TYPE_CHECKING:\n    import os\n",
        "if TYPE_CHECKING:\n    import os",
        "if TYPE_CHECKING:\n    import os\n",
    ),
    "same alias": ("import a as b\n", "import a as b", "import a as b\n"),
    "relative": (
        "from .x import y\n",
        "from ..x import z",
        "from .x import y\nfrom ..x import z\n",
    ),
}


def test_imports_are_merged_by_what_they_mean() -> None:
    for case, (module, candidate, top) in MERGED.items():
        assert placed(module, f"{candidate}\ndef f(): ...", "f") == f"{top}\n\ndef f(): ...\n", case


def test_helpers_come_along_unless_the_module_has_them() -> None:
    candidate = "RATE = 3  # per day\n\n# halves\ndef _half(x):\n    return x / 2\n\ndef f(): return _half(RATE)"
    once = placed("x = 1\n", candidate, "f")
    helpers = "RATE = 3  # per day\n\n\n# halves\ndef _half(x):\n    return x / 2\n"
    assert once == f"x = 1\n\n\n{helpers}\n\ndef f(): return _half(RATE)\n"
    assert (
        placed(once, candidate.replace("def f()", "def g()"), "g")
        == f"{once}\n\ndef g(): return _half(RATE)\n"
    )
    assert placed(once, candidate, "f") == once


def test_what_cannot_be_written_safely_is_a_problem() -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("helper", "def _h(): return 1\n", "def _h(): return 2\ndef f(): ...", "helper-clash"),
        ("constant", "K = 1\n", "K = 2\ndef f(): ...", "helper-clash"),
        ("import-over-value", "os = 1\n", "import os\ndef f(): ...", "import-clash"),
        ("import-over-alias", "import a as os\n", "import os\ndef f(): ...", "import-clash"),
        (
            "import-over-import",
            "from a import x\n",
            "from b import x\ndef f(): ...",
            "import-clash",
        ),
        ("name-of-a-value", "f = 1\n", "def f(): ...", "not-a-plain-function"),
        ("conditional", "if x:\n    def f(): ...\n", "def f(): ...", "not-a-plain-function"),
        ("twice", "def f(): ...\ndef f(): ...\n", "def f(): ...", "bound-twice"),
        ("missing", "", "def g(): ...", "name-missing"),
        ("loose", "", "print('hello')\ndef f(): ...", "loose-code"),
        ("main", "", "def f(): ...\nif __name__ == '__main__':\n    f()", "loose-code"),
        ("broken-candidate", "", "def f(:", "syntax"),
        ("broken-module", "def g(:", "def f(): ...", "syntax"),
    ]
    for case, module, candidate, code in rows:
        problem = refused(module, candidate)
        assert problem.code == code, case
        assert problem.fix, case


ALL = {
    "one line": ('__all__ = ["a"]\n', '__all__ = ["a", "f"]\n'),
    "single quotes": ("__all__ = ['a', ]\n", "__all__ = ['a', 'f', ]\n"),
    "tuple": ('__all__ = ("a",)\n', '__all__ = ("a", "f",)\n'),
    "empty": ("__all__ = []\n", '__all__ = ["f"]\n'),
    "empty tuple": ("__all__ = ()\n", '__all__ = ("f",)\n'),
    "bare tuple": ('__all__ = "a", "ä"\n', '__all__ = "a", "ä", "f"\n'),
    "lines": (
        '__all__ = [\n    "a",  # first\n]\n',
        '__all__ = [\n    "a",  # first\n    "f",\n]\n',
    ),
    "no last comma": ('__all__ = [\n  "a"  # x\n]\n', '__all__ = [\n  "a",  # x\n  "f"\n]\n'),
    "annotated": ('__all__: list[str] = ["a"]\n', '__all__: list[str] = ["a", "f"]\n'),
    "computed": ("__all__ = [n for n in ()]\n", "__all__ = [n for n in ()]\n"),
    "there already": ('__all__ = ["f", "a"]\n', '__all__ = ["f", "a"]\n'),
    "after the code": (
        'x = 1\n__all__ = ["a"]  # public\n',
        'x = 1\n__all__ = ["a", "f"]  # public\n',
    ),
}


def test_the_list_of_public_names_gets_the_new_one() -> None:
    for case, (module, result) in ALL.items():
        assert placed(module, "def f(): ...", "f") == f"{result}\n\ndef f(): ...\n", case


def test_the_list_of_public_names_loses_a_removed_one() -> None:
    for module, result in [pair for key, pair in ALL.items() if key != "there already"]:
        assert remove_function(f"{result}\n\ndef f(): ...\n", "f") == module, module


def test_a_name_in_the_middle_of_the_list_is_taken_out() -> None:
    module = '__all__ = ["a", "f", "b"]\ndef f(): ...\n'
    assert remove_function(module, "f") == '__all__ = ["a", "b"]\n'
    first = '__all__ = ["f", "b"]\ndef f(): ...\n'
    assert remove_function(first, "f") == '__all__ = ["b"]\n'


def test_a_private_function_is_not_made_public() -> None:
    assert (
        placed('__all__ = ["a"]\n', "def _f(): ...", "_f") == '__all__ = ["a"]\n\n\ndef _f(): ...\n'
    )


def test_removing_an_unknown_function_is_a_problem() -> None:
    result = remove_function("x = 1\n", "f")
    assert isinstance(result, Problem)
    assert result.code == "name-missing"


def test_the_last_line_keeps_its_missing_end_when_it_is_replaced() -> None:
    assert placed("def g(): ...\ndef f(): ...", "def f(): 1", "f") == "def g(): ...\ndef f(): 1"
