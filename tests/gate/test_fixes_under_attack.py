"""The stages "read" and "fix" where a fix could do harm or stop short: sessions, tabs, code that inspects itself."""

from pathlib import Path

import pytest

from agent_core.base.errors import SettingsError
from agent_core.functions.gate import Rules
from agent_core.functions.gate.tree import parse
from agent_core.workspace.workspace import Workspace

from .support import ADD, codes, fixes, function, on_text

SESSION = "\n".join(
    f"{'...' if number else '>>>'} {line}".rstrip()
    for number, line in enumerate(ADD[: ADD.index("    Examples")].split("\n"))
)
BODY = '    """\n    return a + b\n'


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_of_several_fences_the_one_with_a_function_is_taken(fence: str) -> None:
    text = f"First:\n{fence}sh\npip install x\n{fence}\nThen:\n{fence}python\n{ADD}{fence}\nUse it.\n"
    assert on_text(text, "add").text == ADD


def test_a_docstring_that_is_indented_with_tabs_stays_so() -> None:
    code = 'def f(a: int) -> int:\n\t"""Count.\n\n\t:param a: A number.\n\t"""\n\treturn a\n'
    assert (
        on_text(code).text == 'def f(a: int) -> int:\n\t"""Count.\n\n\tArgs:\n\t    a: A number.\n\t"""\n\treturn a\n'
    )


def test_a_docstring_with_escaped_line_breaks_is_read_as_it_means() -> None:
    code = 'def f(a: int) -> int:\n    "Count.\\n\\n:param a: A number."\n    return a + 1\n'
    draft = on_text(code)
    assert codes(draft) == set()
    assert "    Args:\n        a: A number.\n" in draft.text


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            f"from pydantic import validate_call\n@validate_call\n{function('return a * b', 'a=1, b=2')}",
            id="checks-hints",
        ),
        pytest.param(function("return a + b + len(f.__annotations__)", "a=1, b=2"), id="counts-hints"),
        pytest.param(
            function("return a + b + len(f.__doc__)").replace("Args:", ":param a: x"), id="reads-its-docstring"
        ),
        pytest.param(
            function("try:\n    return sqrt(a)\nexcept NameError:\n    return b"), id="expects-a-missing-name"
        ),
        pytest.param(function("return floor(a) if 'floor' in globals() else b"), id="looks-for-a-name"),
    ],
)
def test_what_watches_its_own_text_is_not_fixed(code: str) -> None:
    draft = on_text(code)
    assert parse(code) is not None
    assert (fixes(draft), draft.text) == ([], code)


def test_a_hint_means_what_its_name_means_in_the_file() -> None:
    code = "from typing import List\nlist = tuple\n" + function("return a[b]", "a: List[int], b: int | None")
    assert fixes(on_text(code)) == []


async def test_each_kind_of_fix_can_be_switched_off_in_the_settings(tmp_path: Path) -> None:
    code = (
        function("return math.floor(a) + b")
        .replace("    Args:\n        a:", "    :param a:")
        .replace("        b:", "    :param b:")
    )
    async with Workspace.open(tmp_path, flags={"gate.fixes_off": ["missing-import"]}) as workspace:
        verdict = await workspace.functions.create("f", code)
    assert [one.code for one in verdict.fixes] == ["docstring-style"]
    with pytest.raises(SettingsError, match="missing-imports"):
        async with Workspace.open(tmp_path, flags={"gate.fixes_off": ["missing-imports"]}):
            pass


def test_every_fix_can_be_switched_off_by_its_code() -> None:
    draft = on_text(f"```python\n{ADD}```", "add", rules=Rules(off=frozenset({"code-fence"})))
    assert (fixes(draft), codes(draft)) == ([], {"syntax-error"})
