"""Fixing generated functions is idempotent and preserves the results."""

import ast
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.functions.gate import Candidate, Rules
from agent_core.functions.gate.autofix import fix
from agent_core.functions.gate.draft import Draft
from agent_core.functions.gate.read import read
from agent_core.registry.registry import Snapshot
from tests.kit.drawing import drawn

NAMES = ("a", "count", "words")
DESCRIPTIONS = (
    "The first.",
    "How many",
    "A `list`: with things",
    "x",
    "Größe — in m²",
    "says \\n twice",
)
WORDS = st.sampled_from(DESCRIPTIONS)
TYPES = st.sampled_from(
    ["int", "str", "list of ints", "List[str]", "int, optional", "number", "Optional[int]", ""]
)
RESULTS = st.sampled_from(
    [
        "{a} + {count}",
        "math.floor({a} / 2) + {count}",
        "Counter([{a}, {count}])[{a}]",
        "[{a}, _twice({count})]",
    ]
)
TRAILS = st.sampled_from(
    [
        "",
        "\nprint(f(1, 2, 3))\n",
        '\nif __name__ == "__main__":\n    f(1, 2, 3)\n',
        "\nassert f(1, 2, 3)\n",
    ]
)
HELPER = "\n\ndef _twice(n):\n    return n * 2\n"


def rest(name: str, kind: str, words: str) -> str:
    return f"    :param {kind} {name}: {words}\n" if kind else f"    :param {name}: {words}\n"


def google(name: str, kind: str, words: str) -> str:
    return f"        {name} ({kind}): {words}\n" if kind else f"        {name}: {words}\n"


def bullet(name: str, kind: str, words: str) -> str:
    return f"    - {name} ({kind}): {words}\n" if kind else f"    - {name}: {words}\n"


def numpy(name: str, kind: str, words: str) -> str:
    return f"    {name} : {kind or 'int'}\n        {words}\n"


STYLES = {rest: "", google: "    Args:\n", bullet: "", numpy: "    Parameters\n    ----------\n"}


@st.composite
def candidates(draw: st.DrawFn) -> str:
    """Draw a function `f(a, count, words)` with a docstring in some style, wrapped in some way."""
    style = draw(st.sampled_from(list(STYLES)))
    described = draw(st.lists(st.sampled_from(NAMES), unique=True))
    entries = "".join(style(name, draw(TYPES), draw(WORDS)) for name in described)
    example = draw(st.sampled_from(["", "\n    >>> f(1, 2, 'x')\n    3\n"]))
    hints = [draw(st.sampled_from(["", ": int", ": 'int'"])) for _ in NAMES]
    signature = ", ".join(name + hint for name, hint in zip(NAMES, hints, strict=True))
    result = draw(RESULTS).format(a="a", count="count")
    progress = draw(st.sampled_from(["", "    self.progress(1, 2)\n"]))
    body = f"{progress}    return {result} if words else a\n"
    code = f'def f({signature}):\n    """Do.\n\n{STYLES[style]}{entries}{example}    """\n{body}{HELPER}{draw(TRAILS)}'
    return draw(st.sampled_from(["{}", "```python\n{}```", "Sure!\n\n```\n{}```\n"])).format(code)


def fixed(code: str) -> Draft:
    draft = Draft(Candidate("f", code, "lib"), "agent", Rules(), Snapshot.empty(), code)
    return fix(read(draft))


def computed(text: str) -> list[Any]:
    """Return the results of the body; names that a fix may add come from the test, since the texts are our own."""
    namespace: dict[str, Any] = {}
    exec("import math\nfrom collections import Counter\nfrom typing import *\n" + text, namespace)
    function = namespace["f"]
    context = type("Context", (), {"progress": lambda self, done, total: None})()
    namespace["self"] = context
    takes_self = "self" in function.__code__.co_varnames[: function.__code__.co_argcount]
    return [
        function(*([context] if takes_self else []), a, 3, words)
        for a in (1, 4)
        for words in ("", "x")
    ]


@settings(max_examples=drawn(80))
@given(candidates())
def test_fixing_what_was_fixed_changes_nothing(code: str) -> None:
    once = fixed(code)
    assert once.problems == ()
    twice = fixed(once.text)
    assert (twice.text, [one.code for one in twice.fixes]) == (once.text, [])


@settings(max_examples=drawn(80))
@given(candidates())
def test_a_fix_never_changes_what_a_function_computes(code: str) -> None:
    bare = read(Draft(Candidate("f", code, "lib"), "agent", Rules(), Snapshot.empty(), code)).text
    assert computed(fixed(code).text) == computed(bare)


@settings(max_examples=drawn(50))
@given(candidates())
def test_every_word_of_a_docstring_outlives_its_fixing(code: str) -> None:
    draft = fixed(code)
    original = read(Draft(Candidate("f", code, "lib"), "agent", Rules(), Snapshot.empty(), code))
    before, after = (
        ast.get_docstring(one.function) or "" for one in (original, draft) if one.function
    )
    said = {word for words in DESCRIPTIONS for word in words.replace("\\n", "\n").split()}
    assert [word for word in before.split() if word in said and word not in after.split()] == []
