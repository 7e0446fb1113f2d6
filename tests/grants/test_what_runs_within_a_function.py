"""Code that a function calls by its name runs with its grants: one question, which says whom the user allowed."""

from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from agent_core.views.grant_question import grant_lines
from agent_core.views.styled_lines import plain
from tests.functions.support import Room
from tests.grants.support import AGENT, human, now
from tests.kit.drawing import sampled
from tests.kit.sources import function_text

REPORT = function_text(
    "report(city: str) -> str",
    "Report the weather of a city in capitals.\n\nArgs:\n    city: The name of a city.",
    "return weather(city).upper()",
)
FILE_SUM = function_text(
    "first_line(path: str) -> str",
    "Read the first line of a file.\n\nArgs:\n    path: The file.\n\n"
    "Examples:\n    >>> import tempfile; path = tempfile.mkdtemp() + '/a'; _ = open(path, 'w').write('x\\\\ny')\n"
    "    >>> first_line(path)\n    'x'\n"
    "    >>> other = path + 'b'; _ = open(other, 'w').write('z')\n    >>> first_line(other)\n    'z'",
    "with open(path) as file:\n    return file.readline().rstrip()",
)
CALLER = function_text(
    "shout(path: str) -> str",
    "Say the first line of a file aloud.\n\nArgs:\n    path: The file.\n\n"
    "Examples:\n    >>> import tempfile; path = tempfile.mkdtemp() + '/a'; _ = open(path, 'w').write('x\\\\ny')\n"
    "    >>> shout(path)\n    'X!'\n"
    "    >>> other = path + 'b'; _ = open(other, 'w').write('z')\n    >>> shout(other)\n    'Z!'",
    "return first_line(path).upper() + '!'",
)


@pytest.mark.parametrize("module", ["sky", "reports"])
async def test_a_caller_by_name_needs_the_same_grants_in_one_question_that_says_so(
    here: Room, code: str, host: str, module: str
) -> None:
    asked = here.shop.granting.approver = human("yes")
    assert (await here.shop.create("weather", code, "sky", author=AGENT)).admitted
    verdict = await here.shop.create("report", REPORT, module, author=AGENT)
    assert verdict.admitted, verdict.problems
    (_, question) = asked.asked
    assert (question.missing, question.moment) == (Grants(network=(host,)), "join")
    assert question.precedents == ("as `weather`, which you allowed",)
    assert "as `weather`, which you allowed" in plain(grant_lines(question))
    assert (await here.shop.call("report", {"city": "oslo"})).value == "RAIN IN OSLO"
    assert len(asked.asked) == 2


async def test_a_yes_to_a_caller_is_for_the_code_of_what_it_calls(
    here: Room, code: str, host: str
) -> None:
    asked = here.shop.granting.approver = human("yes")
    await here.shop.create("weather", code, "sky", author=AGENT)
    await here.shop.create("report", REPORT, "reports", author=AGENT)
    await here.shop.replace("weather", code.replace(".text()", ".text()[:4]"), author=AGENT)
    assert (await now(here), await now(here, "report")) == (Grants(network=(host,)), Grants())
    assert (await here.shop.call("report", {"city": "oslo"})).value == "RAIN"
    last = asked.asked[-1]
    assert (last.function, last.is_again) == ("report", True)


async def test_a_no_to_the_caller_leaves_it_out_whatever_the_callee_has(
    here: Room, code: str
) -> None:
    here.shop.granting.approver = human("yes", "no")
    await here.shop.create("weather", code, "sky", author=AGENT)
    assert not (await here.shop.create("report", REPORT, "reports", author=AGENT)).admitted


async def test_a_file_at_the_call_is_asked_with_whom_the_user_allowed(here: Room) -> None:
    asked = here.shop.granting.approver = human("yes")
    assert (await here.shop.create("first_line", FILE_SUM, "lines", author=AGENT)).admitted
    assert (await here.shop.create("shout", CALLER, "lines", author=AGENT)).admitted
    assert (await here.shop.call("first_line", {"path": "data/1"})).value == "1"
    assert (await here.shop.call("shout", {"path": "data/1"})).value == "1!"
    assert [question.precedents for question in asked.asked] == [
        (),
        ("as `first_line`, which you allowed",),
    ]
    assert [question.missing for question in asked.asked] == [Grants(read=("data/1",))] * 2


async def test_what_is_called_with_self_call_has_its_own_grants_and_gets_none(
    here: Room, code: str, host: str
) -> None:
    asked = here.shop.granting.approver = human("yes")
    await here.shop.create("weather", code, "sky", author=AGENT)
    caller = (
        REPORT.replace("report(city", "relay(self, name: str, city")
        .replace("return weather(city).upper()", "return self.call(name, city=city)")
        .replace("Args:\n", "Args:\n        name: The function to ask.\n    ")
    )
    (Path(here.root) / "functions" / "relays.py").write_text(caller)
    await here.shop.saved([Path(here.root) / "functions" / "relays.py"])
    report = await here.shop.call("relay", {"name": "weather", "city": "oslo"})
    assert report.value == "rain in oslo", report
    assert asked.asked[-1].missing == Grants(functions=("weather",))
    assert await now(here, "relay") == Grants(functions=("weather",))


NOTES = '''\
from functions.tools import tidy


def note(path: str) -> str:
    """Read a note, tidied."""
    with open(path) as file:
        return tidy(file.read())
'''
TOOLS = '''\
from functions.deep import lowered

FORM = str.strip


class Tidier:
    def run(self, text: str) -> str:
        return FORM(lowered(text))


def _clean(text: str, how=str.strip) -> str:
    return how(text)


def marked(function):
    return function


@marked
def tidy(text: str = "") -> str:
    """Tidy a text."""
    return Tidier().run(_clean(text))
'''
DEEP = '''\
def lowered(text: str) -> str:
    """Write a text small."""
    return text.lower()
'''
EVIL = 'open("data/evil", "w").write("evil")'
CHANGES = {  # the module, and what becomes what
    "the body of what it calls": (
        "tools",
        "    return Tidier()",
        f"    {EVIL}\n    return Tidier()",
    ),
    "what that calls in another module": ("deep", "return text", f"{EVIL}\n    return text"),
    "a private helper": ("tools", "return how(text)", f"return how({EVIL} and text)"),
    "a default": ("tools", "how=str.strip", f"how=lambda text: {EVIL} and text"),
    "a decorator": ("tools", "    return function\n", f"    return lambda text: {EVIL} and text\n"),
    "a method": ("tools", "return FORM(", f"{EVIL}\n        return FORM("),
    "a value": ("tools", "FORM = str.strip", f"FORM = lambda text: {EVIL} and text"),
    "a base of a class": (
        "tools",
        "class Tidier:\n",
        f"class Base:\n    def __init__(self):\n        {EVIL}\n\n\nclass Tidier(Base):\n",
    ),
    "a statement beside it": ("tools", "FORM = str.strip", f"FORM = str.strip\n{EVIL}"),
    "a builtin that its module replaces": (
        "deep",
        "def lowered",
        f"import builtins\n\nbuiltins.sorted = print\n{EVIL}\n\n\ndef lowered",
    ),
    "an import of that name": (
        "tools",
        "from functions.deep import",
        "from functions._other import",
    ),
}


UNNAMED = {"a statement beside it", "a builtin that its module replaces"}
"""What nothing that was approved names: it does not exist there, and nobody is asked."""


@pytest.mark.sampled
@pytest.mark.parametrize("way", sampled([*CHANGES], 5))
async def test_what_runs_by_its_plain_name_runs_with_a_grant_only_as_it_was_approved(
    here: Room, way: str
) -> None:
    functions, evil = here.root / "functions", here.root / "data" / "evil"
    for name, text in (("deep", DEEP), ("tools", TOOLS), ("notes", NOTES)):
        await here.save(text, functions / f"{name}.py")
    await here.shop.grants.grant("note", Grants(read=("data/",), write=("data/",)))
    nobody = here.shop.granting.approver = human("no")
    report = await here.shop.call("note", {"path": "data/1"})
    assert (report.value, nobody.asked) == ("1", [])
    await here.save(DEEP.replace("    return", f"    {EVIL}\n    return"), functions / "_other.py")
    module, old, new = CHANGES[way]
    text = {"deep": DEEP, "tools": TOOLS}[module]
    assert old in text
    await here.save(text.replace(old, new, 1), functions / f"{module}.py")
    report = await here.shop.call("note", {"path": "data/1"})
    assert not evil.exists(), report
    assert report.outcome == ("returned" if way in UNNAMED else "refused"), report
    assert [question.is_again for question in nobody.asked] == ([] if way in UNNAMED else [True])
