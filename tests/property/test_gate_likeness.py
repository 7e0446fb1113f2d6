"""Forms, uses and neighbors of generated modules: names and words decide nothing, and nothing raises."""

import ast
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.functions.gate import Candidate, Gate
from agent_core.functions.gate.clones import normal_form
from agent_core.functions.gate.tree import functions
from agent_core.registry.depends import callees, callers, code_hash, dependents
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from tests.gate.conftest import gate  # noqa: F401 - the fixture
from tests.kit.drawing import drawn

SOURCES = [
    path.read_text("utf-8")
    for path in sorted(Path(__file__).parents[2].glob("agent_core/functions/gate/*.py"))
]
NAMES = ("a", "b", "x", "y", "found")
NAME = st.sampled_from(NAMES)
ATOM = NAME | st.sampled_from(
    ["1", "0", "'t'", "True", "[]", "other(a)", "near.far(b)", "_help(x)"]
)
OPERATOR = st.sampled_from(["+", "-", "*", "<", "==", "!=", "and", "or", "in"])
EXPRESSION = st.recursive(
    ATOM,
    lambda inner: (
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(["+", "-", "*", "<", "==", "!=", "and", "or", "in"]),
            inner,
        )
        | st.builds("[{1} for {0} in {2} if {1}]".format, NAME, inner, inner)
        | st.builds("(lambda {}: {})".format, NAME, inner)
        | st.builds("({} if not {} else {})".format, inner, inner, inner)
        | st.builds("f'{{{}}}'".format, NAME)
        | st.builds("len({})".format, inner)
    ),
    max_leaves=6,
)
SIMPLE = (
    st.builds("{} = {}".format, NAME, EXPRESSION)
    | st.builds("{} += {}".format, NAME, EXPRESSION)
    | st.builds("{}, {} = {}, {}".format, NAME, NAME, EXPRESSION, EXPRESSION)
    | st.builds("{}.append({})".format, NAME, EXPRESSION)
    | st.builds("return {}".format, EXPRESSION)
    | st.sampled_from(["pass", "import math", "del x", "raise ValueError(a)", "a[0] = b"])
)


def indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for one in lines for line in one.split("\n"))


STATEMENT = st.recursive(
    SIMPLE,
    lambda inner: (
        st.builds(
            "if {}:\n{}".format, EXPRESSION, st.lists(inner, min_size=1, max_size=3).map(indented)
        )
        | st.builds(
            "for {} in {}:\n{}".format,
            NAME,
            EXPRESSION,
            st.lists(inner, min_size=1, max_size=3).map(indented),
        )
        | st.builds(
            "try:\n{}\nexcept E as {}:\n    pass".format,
            st.lists(inner, min_size=1).map(indented),
            NAME,
        )
        | st.builds(
            "def {}(x, y=1):\n{}".format,
            NAME,
            st.lists(inner, min_size=1, max_size=2).map(indented),
        )
    ),
    max_leaves=8,
)
BODY = st.lists(STATEMENT, min_size=1, max_size=6).map(indented)
WORDS = st.sampled_from(["", '    """Do."""\n', "    '''Other, with more words.'''\n"])
HELPER = "\n\ndef _help(x):\n    return x\n"


def function(name: str, words: str, body: str) -> str:
    return f"def {name}(a, b=1):\n{words}{body}\n"


def renamed(text: str, names: dict[str, str]) -> str:
    """Return the text with the names that it binds renamed everywhere."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if (
                not isinstance(node, ast.alias | ast.keyword)
                and getattr(node, field, None) in names
            ):
                setattr(node, field, names[getattr(node, field)])
    return ast.unparse(tree)


@settings(max_examples=drawn(80))
@given(BODY, WORDS, WORDS, st.permutations(["p", "q", "r", "s", "t"]))
def test_names_and_words_do_not_change_a_form(
    body: str, words: str, others: str, names: list[str]
) -> None:
    bound = f"    x, y, found = a, b, [a]\n{body}"
    one = normal_form("f", function("f", words, bound) + HELPER)
    disguise = dict(zip(NAMES, names, strict=True))
    other = normal_form("g", renamed(function("g", others, bound) + HELPER, disguise))
    assert one is not None
    assert one == other


@settings(max_examples=drawn(60))
@given(st.data())
def test_whatever_parses_has_a_form_or_none(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(SOURCES))
    lines = source.split("\n")
    at = data.draw(st.integers(0, len(lines)))
    text = "\n".join([*lines[:at], data.draw(STATEMENT), *lines[at:]])
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in functions(tree):
        normal_form(node.name, text)


def snapshot(texts: list[str]) -> Snapshot:
    found = Snapshot.empty()
    for module, text in zip(("lib", "near", "third"), texts, strict=False):
        found = found.with_module(read_module(ModuleSource.of(module, text)))
    return found


IMPORT = st.sampled_from(
    [
        "",
        "from functions.lib import other\n",
        "from functions import near\n",
        "from . import near\n",
    ]
)
MODULES = st.tuples(
    st.builds(
        "{}{}{}".format, IMPORT, BODY.map(lambda body: function("other", "", body)), st.just(HELPER)
    ),
    st.builds("{}{}".format, IMPORT, BODY.map(lambda body: function("far", "", body))),
    st.builds("{}{}".format, IMPORT, BODY.map(lambda body: function("third", "", body))),
).map(list)


@settings(max_examples=drawn(30))
@given(MODULES)
def test_uses_are_read_from_any_modules(texts: list[str]) -> None:
    found = snapshot(texts)
    for name, one in found.functions.items():
        assert set(callers(name, found)) <= set(dependents([name], found)) <= found.functions.keys()
        assert all(name in callers(other, found) for other in callees(name, found))
        assert code_hash(one, found) == code_hash(one, snapshot(texts))


EXAMPLES = '    """Do.\n\n    >>> {0}(1)\n    1\n    >>> {0}(2)\n    2\n    """\n'


@settings(max_examples=drawn(5), suppress_health_check=[HealthCheck.too_slow])
@given(MODULES, BODY)
async def test_the_neighbours_of_any_change_are_judged(
    gate: Gate,  # noqa: F811
    texts: list[str],
    body: str,
) -> None:
    told = [
        text.replace("):\n", "):\n" + EXAMPLES.format(name), 1)
        for text, name in zip(texts, ("other", "far", "third"), strict=True)
    ]
    found = snapshot(told)
    code = function("other", EXAMPLES.format("other"), body)
    verdict = await gate.judge(Candidate("other", code, "lib", replaces=True), found)
    assert [one.stage for one in verdict.stages][-1] == "neighbours"
