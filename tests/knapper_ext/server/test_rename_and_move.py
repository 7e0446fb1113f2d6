"""`functions rename` and `functions move`: all that refers to a function follows, and is taken back as one."""

import asyncio
import json
from typing import Any

import pytest

from agent_core.access.grants import Grants
from agent_core.client.client import Client, HttpWire
from agent_core.functions.debug import Breakpoint
from agent_core.functions.service.plan import USER
from agent_core.storage import JoinOwnSet
from knapper.prompt.conversation import Conversation
from knapper.prompt.slash import take
from knapper.prompt.ui import Voice
from knapper.shell.cli import main
from knapper.shell.remote import RemoteTalk
from tests.conftest import OpenDesk
from tests.kit import Say
from tests.kit.desk import VOWELS

from .conftest import Serve, Served

TWICE = '''\
"""Uses of vowels."""

from functions.words import count_vowels  # kept
from functions.words import count_vowels as cv


def vowels_twice(text: str) -> int:
    """Say twice how many vowels a text has: count_vowels, and again.

    Args:
        text: The text.

    >>> vowels_twice("queueing")
    10
    >>> vowels_twice("rhythm")   +   count_vowels("a")
    1
    """
    return count_vowels(text)  +  cv(text)  # count_vowels
'''
CALLING = '''\
def vowels_and_more(self, text: str) -> int:
    """Say how many vowels a text has, and add the letters of a word.

    Args:
        text: The text.

    >>> vowels_and_more("queueing")
    17
    >>> vowels_and_more("rhythm")
    12
    """
    word = "count_vowels"
    return self.call("count_vowels", text=text) + len(word)
'''
SHADOWED = '''\
import functions.words as w


def with_a_vowel(count_vowels: int) -> int:
    """Add the one vowel of a letter to a number.

    Args:
        count_vowels: The number.

    >>> with_a_vowel(1)
    2
    >>> with_a_vowel(count_vowels=5)
    6
    """
    return count_vowels + w.count_vowels("a")
'''
INSIDE = '''\
from functions import words


def inside(text: str, many: int = 1) -> int:
    """Say how many vowels a text has, many times over.

    Args:
        text: The text.
        many: How many times.

    >>> from functions.words import count_vowels as c
    >>> inside("a") - c("a")
    0
    >>> inside("queueing", 2)
    10
    """
    from .words import count_vowels

    times = [count_vowels(text) for _ in range(many)]
    return sum(times) - words.count_vowels("") + len({"count_vowels": 0}) - 1
'''
FILES = {
    "words.py": VOWELS,
    "twice.py": TWICE,
    "calling.py": CALLING,
    "shadowed.py": SHADOWED,
    "inside.py": INSIDE,
}
RENAMED = {
    "words.py": VOWELS.replace("count_vowels", "vowels_of"),
    "twice.py": TWICE.replace("import count_vowels", "import vowels_of")
    .replace('count_vowels("a")', 'vowels_of("a")')
    .replace("count_vowels(text)", "vowels_of(text)"),
    "calling.py": CALLING.replace('call("count_vowels"', 'call("vowels_of"'),
    "shadowed.py": SHADOWED.replace("w.count_vowels", "w.vowels_of"),
    "inside.py": INSIDE.replace("count_vowels", "vowels_of").replace(
        '{"vowels_of"', '{"count_vowels"'
    ),
}
SOME = (
    VOWELS.replace("count_vowels", "count_some").replace("aeiou", "aei").replace("    5", "    3")
)
SEVERAL = '''\
from functions.words import (
    count_some,
    count_vowels,  # these
)


def both(text: str) -> int:
    """Count vowels twice.

    Args:
        text: The text.

    >>> both("queueing")
    8
    >>> both("rhythm")
    0
    """
    return count_vowels(text) + count_some(text)
'''
BY_MODULE = (
    CALLING.replace("def vowels_and_more(self, ", "import functions.words\n\n\ndef by_module(")
    .replace("vowels_and_more", "by_module")
    .replace('self.call("count_vowels", text=text)', "functions.words.count_vowels(text)")
)
HELPED = '''\
"""Prices."""

import math
from decimal import Decimal

RATE = Decimal("0.19")
STEP = 5


def _rounded(price: Decimal) -> int:
    # to the next step
    return math.ceil(price / STEP) * STEP


def _plain(text: str) -> str:
    return text.strip()


def gross(price: int) -> int:
    """Add the tax to a price, in whole steps.

    Args:
        price: The price.

    >>> gross(100)
    120
    >>> gross(10)
    15
    """
    return _rounded(price * (1 + RATE))


def tag(text: str) -> str:
    """Write a tag for a shelf, with its step.

    Args:
        text: What stands on the shelf.

    >>> tag(" tea ")
    'tea/5'
    >>> tag("jam")
    'jam/5'
    """
    return f"{_plain(text)}/{STEP}"


def total(prices: list[int]) -> int:
    """Add prices up, each with its tax.

    Args:
        prices: The prices.

    >>> total([100, 10])
    135
    >>> total([])
    0
    """
    return sum(gross(price) for price in prices)
'''


def texts(server: Served) -> dict[str, str]:
    """Return the files of the functions."""
    folder = server.workspace.root / "functions"
    return {path.name: path.read_text() for path in folder.glob("*.py")}


async def saved(server: Served, files: dict[str, str]) -> None:
    """Save files, and check that all their functions are in use."""
    for name, text in files.items():
        await server.save(name, text)
    assert not server.workspace.functions.rejected()


async def shell(server: Served, *words: str) -> int:
    """Run a command of the shell in the workspace."""
    return await asyncio.to_thread(main, ["-C", str(server.workspace.root), *words])


async def _shell(server: Served) -> None:
    assert await shell(server, "functions", "rename", "count_vowels", "vowels_of") == 0
    await server.workspace.functions.reload()


async def _shell_elsewhere(server: Served) -> None:
    there = ["--server", server.url, "--token", server.key]
    words = [*there, "functions", "rename", "count_vowels", "vowels_of"]
    assert await asyncio.to_thread(main, words) == 0


async def _prompt(server: Served) -> None:
    agent = await server.workspace.agent("ada")
    await take(
        Conversation(server.workspace, agent, Voice(agrees=True)), "/rename count_vowels vowels_of"
    )


async def _prompt_elsewhere(server: Served) -> None:
    async with Client(HttpWire(server.url, server.key)) as client:
        talk = RemoteTalk(client, "main", Voice(agrees=True), None)
        await talk.take("/rename count_vowels vowels_of")
        assert not talk.failed


async def _http(server: Served) -> None:
    path = "/api/v1/functions/count_vowels/rename"
    answer = await server.client.post(path, json={"new": "vowels_of"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["name"] == "vowels_of"


async def _client(server: Served) -> None:
    async with Client(HttpWire(server.url, server.key)) as client:
        document = await client.functions.rename("count_vowels", "vowels_of")
    assert document["changed"] == ["inside", "vowels_and_more", "vowels_twice", "with_a_vowel"]
    assert document["unread"] == [
        'functions/calling.py:12 has the text "count_vowels"',
        'functions/inside.py:20 has the text "count_vowels"',
    ]


@pytest.mark.parametrize(
    "door",
    [
        pytest.param(door, id=door.__name__.strip("_"))
        for door in (_shell, _shell_elsewhere, _prompt, _prompt_elsewhere, _http, _client)
    ],
)
async def test_a_new_name_is_in_all_files_from_each_door(served: Serve, door: Any) -> None:
    server = await served([])
    await saved(server, FILES)
    await door(server)
    assert texts(server) == RENAMED
    functions = server.workspace.functions
    assert "count_vowels" not in functions.names()
    for name in ("vowels_of", "vowels_twice", "vowels_and_more", "with_a_vowel", "inside"):
        assert all(row.agreed for row in (await functions.test(name)).examples)
    assert await server.workspace.store.open_writes() == []


@pytest.mark.parametrize("name", ["vowels_of", "count_vowels", "vowels_twice"])
async def test_a_rollback_takes_a_new_name_back_in_all_files(served: Serve, name: str) -> None:
    server = await served([])
    await saved(server, FILES)
    await _http(server)
    answer = await server.client.post(f"/api/v1/functions/{name}/rollback", json={})
    assert answer.status_code == 200, answer.text
    assert texts(server) == FILES
    functions = server.workspace.functions
    assert "vowels_of" not in functions.names()
    assert all(row.agreed for row in (await functions.test("vowels_twice")).examples)


async def test_what_was_taken_back_can_be_had_again(served: Serve) -> None:
    server = await served([])
    await saved(server, FILES)
    await _http(server)
    await server.workspace.functions.rollback("count_vowels")
    await server.workspace.functions.rollback("count_vowels")
    assert texts(server) == RENAMED


async def test_a_file_that_was_changed_since_is_named_and_nothing_is_taken_back(
    served: Serve,
) -> None:
    server = await served([])
    await saved(server, FILES)
    await _http(server)
    changed = RENAMED["shadowed.py"].replace("Add the one vowel", "Add one vowel")
    await server.save("shadowed.py", changed)
    answer = await server.client.post("/api/v1/functions/vowels_of/rollback", json={})
    assert answer.status_code != 200
    assert "functions/shadowed.py" in answer.json()["error"]["message"]
    assert texts(server) == {**RENAMED, "shadowed.py": changed}


@pytest.mark.parametrize(
    "words",
    [("rename", "count_vowels", "vowels_of"), ("move", "count_vowels", "letters")],
    ids=lambda words: words[0],
)
async def test_a_server_answers_with_the_document_of_the_shell(
    served: Serve, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    server = await served([])
    files = {name: text for name, text in FILES.items() if name not in ("inside.py", "shadowed.py")}
    await saved(server, files)
    assert await shell(server, "functions", *words, "--json") == 0
    here = json.loads(capsys.readouterr().out)
    await server.workspace.functions.reload()
    await server.workspace.functions.rollback("count_vowels")
    assert texts(server) == files
    there = ["--server", server.url, "--token", server.key, "functions", *words, "--json"]
    assert await asyncio.to_thread(main, there) == 0
    assert json.loads(capsys.readouterr().out) == here


REFUSED = {
    "a name that is taken": ("vowels_twice", {}),
    "a keyword": ("class", {}),
    "no name": ("two words", {}),
    "a private name": ("_vowels", {}),
    "a built-in function": ("create_function", {}),
    "a local name": (
        "letters",
        {
            "local.py": TWICE.replace("vowels_twice", "by_letters").replace(
                "    return count_vowels(text)",
                "    letters = text\n    return count_vowels(letters)",
            )
        },
    ),
    "a name that the file has": ("WORDS", {"words.py": f"WORDS = 3\n\n\n{VOWELS}"}),
    "a name that the file uses": ("sum", {}),
    "two meanings": (
        "vowels_of",
        {"words.py": f"import os\n\n{VOWELS}\n\nif os.sep == 'x':\n    count_vowels = len\n"},
    ),
    "a global name": (
        "vowels_of",
        {"words.py": f"{VOWELS}\n\ndef _swap() -> None:\n    global count_vowels\n"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_name_that_cannot_be_had_changes_nothing(served: Serve, case: str) -> None:
    server = await served([])
    new, more = REFUSED[case]
    await saved(server, {**FILES, **more})
    before = texts(server)
    answer = await server.client.post("/api/v1/functions/count_vowels/rename", json={"new": new})
    assert answer.status_code in (400, 409, 422), answer.text
    assert answer.json()["error"]["message"]
    assert texts(server) == before


async def test_a_function_that_is_not_there_has_no_new_name(served: Serve) -> None:
    server = await served([])
    await saved(server, FILES)
    answer = await server.client.post("/api/v1/functions/no_such/rename", json={"new": "other"})
    assert answer.status_code == 404
    answer = await server.client.post("/api/v1/functions/no_such/move", json={"module": "other"})
    assert answer.status_code == 404


async def test_what_nobody_can_follow_is_told(served: Serve) -> None:
    server = await served([])
    by_name = CALLING.replace('self.call("count_vowels", ', "self.call(word[:], ")
    await saved(server, {**FILES, "calling.py": by_name})
    (server.workspace.root / "functions" / "broken.py").write_text("def count_vowels(:\n")
    (server.workspace.root / "agents").mkdir()
    (server.workspace.root / "agents" / "ada.toml").write_text(
        'purpose = "Count."\nfunctions = ["count_vowels"]\n'
    )
    await server.workspace.functions.reload()
    answer = await server.client.post(
        "/api/v1/functions/count_vowels/rename", json={"new": "vowels_of"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["unread"] == [
        'functions/calling.py:12 has the text "count_vowels"',
        "functions/calling.py:13 calls a function by a computed name",
        'functions/inside.py:20 has the text "count_vowels"',
        "functions/broken.py is rejected",
        "agents/ada.toml names `count_vowels`",
    ]
    assert texts(server)["calling.py"] == by_name


async def test_what_only_a_function_uses_moves_with_it(served: Serve) -> None:
    server = await served([])
    await saved(server, {"prices.py": HELPED.partition("\n\ndef total")[0]})
    answer = await server.client.post("/api/v1/functions/gross/move", json={"module": "taxes"})
    assert answer.status_code == 200, answer.text
    now = texts(server)
    assert "def _rounded(price: Decimal) -> int:\n    # to the next step\n" in now["taxes.py"]
    assert 'RATE = Decimal("0.19")' in now["taxes.py"]
    assert "import math\n" in now["taxes.py"]
    assert "from functions.prices import STEP\n" in now["taxes.py"]
    assert "_plain" not in now["taxes.py"]
    left = now["prices.py"]
    assert "STEP = 5" in left
    assert "_plain" in left
    assert not any(word in left for word in ("_rounded", "RATE", "def gross"))


async def test_a_move_makes_the_imports_of_its_callers_follow(served: Serve) -> None:
    server = await served([])
    files = {"words.py": f"{VOWELS}\n\n{SOME}", "several.py": SEVERAL, "by_module.py": BY_MODULE}
    await saved(server, files)
    answer = await server.client.post(
        "/api/v1/functions/count_vowels/move", json={"module": "web.letters"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["module"] == "web.letters"
    now = texts(server)
    folder = server.workspace.root / "functions"
    assert (folder / "web" / "letters.py").read_text() == VOWELS
    assert "def count_vowels" not in now["words.py"]
    assert "from functions.web.letters import count_vowels\n" in now["several.py"]
    assert "    count_some,  # these\n)" in now["several.py"]
    assert "return count_vowels(text) + len(word)" in now["by_module.py"]
    functions = server.workspace.functions
    for name in ("both", "by_module", "count_vowels"):
        assert all(row.agreed for row in (await functions.test(name)).examples)
    history = await functions.history.of("count_vowels")
    assert [entry.version.change_kind for entry in history.versions] == ["created"]
    await functions.rollback("count_vowels")
    assert texts(server) == files
    assert not (folder / "web" / "letters.py").exists()


STARRED = SEVERAL.replace("import (\n    count_some,\n    count_vowels,  # these\n)", "import *")
IN_EXAMPLE = INSIDE.replace(
    '>>> from functions.words import count_vowels as c\n    >>> inside("a") - c("a")',
    '>>> import functions.words\n    >>> inside("a") - functions.words.count_vowels("a")',
)


@pytest.mark.parametrize(
    ("name", "text"), [("both", STARRED), ("inside", IN_EXAMPLE)], ids=["a star", "an example"]
)
@pytest.mark.parametrize("verb", ["rename", "move"])
async def test_a_function_that_came_in_another_way_is_found(
    served: Serve, verb: str, name: str, text: str
) -> None:
    server = await served([])
    await saved(server, {"words.py": f"{VOWELS}\n\n{SOME}", "caller.py": text})
    body = {"new": "vowels_of"} if verb == "rename" else {"module": "letters"}
    answer = await server.client.post(f"/api/v1/functions/count_vowels/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    now = texts(server)["caller.py"]
    if verb == "rename":
        assert now == text.replace("count_vowels", "vowels_of").replace(
            '{"vowels_of"', '{"count_vowels"'
        )
    assert all(row.agreed for row in (await server.workspace.functions.test(name)).examples)
    await server.workspace.functions.rollback("count_vowels")
    assert texts(server)["caller.py"] == text


SCOPES = '''\
from functions.words import @


class Tally:
    """What was counted, by a method that has its own name for it."""

    count_vowels = 0

    def add(self, text: str, more: int = count_vowels) -> int:
        return @(text) + more + self.count_vowels


def _by_default(text: str, count=@) -> int:
    return count(text)


def _caught() -> str:
    try:
        raise ValueError("count")
    except ValueError as count_vowels:
        return str(count_vowels)


def _matched(value: list[int]) -> int:
    match value:
        case [count_vowels, *_]:
            return count_vowels
    return 0


def _nested() -> int:
    def count_vowels() -> int:
        return 1

    return count_vowels()


def scopes(text: str) -> int:
    """Count in several ways.

    Args:
        text: The text.

    >>> scopes("queueing")
    33
    >>> scopes("sky") + @("a") - @("a")
    8
    >>> @("a" is no example
    """
    given = (lambda count_vowels: count_vowels)(1) + (lambda text, by=@: by(text))(text)
    looped = sum(count_vowels for count_vowels in [1, 2]) + len({@: 1})
    walked = [found for word in [text] if (found := @(word)) or True]
    own = len(_caught()) - _matched([1]) - _nested()
    return given + looped + sum(walked) + found + Tally().add(text) + own + _by_default(text)
'''


async def test_names_are_told_apart_by_the_scopes_of_python(served: Serve) -> None:
    server = await served([])
    listed = f'__all__ = ["count_vowels"]\n\n\n{VOWELS}'
    files = {"words.py": listed, "scopes.py": SCOPES.replace("@", "count_vowels")}
    for name, text in files.items():
        await server.save(name, text)
    assert "scopes" in server.workspace.functions.names()
    value = (await server.workspace.functions.call("scopes", {"text": "queue"})).value
    await _http(server)
    now = texts(server)
    assert now["words.py"] == listed.replace("count_vowels", "vowels_of")
    shown, broken = SCOPES.split('>>> @("a" is')
    assert now["scopes.py"] == shown.replace(
        "@", "vowels_of"
    ) + '>>> count_vowels("a" is' + broken.replace("@", "vowels_of")
    assert (await server.workspace.functions.call("scopes", {"text": "queue"})).value == value


async def test_a_circle_of_imports_is_refused_with_its_modules(served: Serve) -> None:
    server = await served([])
    await saved(server, {"prices.py": HELPED})
    answer = await server.client.post("/api/v1/functions/gross/move", json={"module": "taxes"})
    message = answer.json()["error"]["message"]
    assert message.index("functions/prices.py") < message.index("functions/taxes.py")
    assert texts(server) == {"prices.py": HELPED}


@pytest.mark.parametrize("module", ["words", "no/path", "_private", "class", "twice"])
async def test_a_module_that_cannot_be_had_changes_nothing(served: Serve, module: str) -> None:
    server = await served([])
    await saved(server, FILES)
    answer = await server.client.post(
        "/api/v1/functions/count_vowels/move", json={"module": module}
    )
    assert answer.status_code in (400, 409, 422), answer.text
    assert texts(server) == FILES


IMMOVABLE = {
    "two statements in a line": {
        "both.py": SEVERAL.replace(
            "import (\n    count_some,\n    count_vowels,  # these\n)",
            "import count_some, count_vowels; x = 1",
        )
    },
    "a local name": {"shadowed.py": SHADOWED},
    "several names in an example": {
        "inside.py": INSIDE.replace(
            "import count_vowels as c", "import count_some, count_vowels as c"
        )
    },
    "a value that functions assign": {
        "words.py": f"{VOWELS}\n\n{SOME}".replace(
            "    return sum(", "    global SEEN\n    SEEN = text\n    return sum("
        ).replace("def count_vowels", "SEEN = ''\n\n\ndef count_vowels", 1)
    },
    "another name for what is there": {
        "letters.py": SOME.replace("count_some", "count_few")
        .replace("aei", "ae")
        .replace("    3", "    2"),
        "words.py": "from functions.letters import count_few as few\n\n\n"
        + f"{VOWELS}\n\n{SOME}".replace("return sum(", "return 0 * few(text) + sum(", 1),
    },
}


@pytest.mark.parametrize("case", IMMOVABLE)
async def test_a_place_that_a_move_cannot_rewrite_is_named_and_nothing_is_changed(
    served: Serve, case: str
) -> None:
    server = await served([])
    files = {"words.py": f"{VOWELS}\n\n{SOME}", **IMMOVABLE[case]}
    await saved(server, files)
    answer = await server.client.post(
        "/api/v1/functions/count_vowels/move", json={"module": "letters"}
    )
    (path,) = [*IMMOVABLE[case]][-1:]
    assert f"functions/{path}" in answer.json()["error"]["message"], answer.text
    assert texts(server) == files


async def test_state_pins_and_ratings_follow_a_new_name(served: Serve) -> None:
    server = await served([])
    counting = """\
def count_calls(self, by: int) -> int:
    \"\"\"Count up from call to call.

    Args:
        by: The step.
    \"\"\"
    self.state["sum"] = self.state.get("sum", 0) + by
    return self.state["sum"]
"""
    await saved(server, {"counting.py": counting})
    workspace = server.workspace
    functions = workspace.functions
    assert (await functions.call("count_calls", {"by": 2})).value == 2
    await workspace.store.apply([JoinOwnSet("ada", "count_calls")])
    await functions.rate("count_calls", is_good=False, note="off by one")
    assert await shell(server, "functions", "rename", "count_calls", "add_up") == 0
    await functions.reload()
    client = server.client
    answer = await client.post("/api/v1/functions/add_up/rename", json={"new": "sum_up"})
    assert answer.status_code == 200, answer.text
    assert (await functions.call("sum_up", {"by": 3})).value == 5
    assert await workspace.store.own_set("ada") == {"sum_up"}
    assert [*(await workspace.store.complaints()).values()].count("off by one") >= 2
    details = await functions.introspect("sum_up")
    assert details.verdict is not None
    assert details.verdict.note == "off by one"


async def test_breakpoints_follow_a_new_name(served: Serve) -> None:
    server = await served([])
    await saved(server, FILES)
    points = server.workspace.debugging.breakpoints
    snapshot = server.workspace.functions.registry.snapshot()
    points.arm(Breakpoint(0, "count_vowels", "", 0, by="human"), 0, snapshot)
    await _http(server)
    (placed,) = points.placed(server.workspace.functions.registry.snapshot())
    assert placed.breakpoint.function == "vowels_of"
    assert placed.line


NOTE = '''\
from functions.labels import label


def note(text: str) -> int:
    """Write a text with a label to the file of notes.

    Args:
        text: What to write.
    """
    with open("out/notes.txt", "a") as file:
        return file.write(label(text))
'''
LABEL = '''\
def label(text: str) -> str:
    """Put a label before a text.

    Args:
        text: The text.

    >>> label("tea")
    'note: tea'
    >>> label("")
    'note: '
    """
    return f"note: {text}"
'''


@pytest.mark.parametrize(("name", "new"), [("label", "labeled"), ("note", "write_note")])
async def test_a_function_whose_approved_text_changed_asks_again(
    served: Serve, name: str, new: str
) -> None:
    server = await served([])
    await saved(server, {"labels.py": LABEL, "notes.py": NOTE})
    functions = server.workspace.functions
    await functions.grants.grant("note", Grants(write=("out/",)))
    answer = await server.client.post(f"/api/v1/functions/{name}/rename", json={"new": new})
    assert answer.status_code == 200, answer.text
    asking = new if name == "note" else "note"
    assert answer.json()["asks_again"] == [asking]
    called = await functions.call(asking, {"text": "tea"})
    assert called.outcome != "returned"
    assert not (server.workspace.root / "out" / "notes.txt").exists()


async def test_a_neighbor_that_did_not_change_goes_back_by_itself(served: Serve) -> None:
    server = await served([])
    await saved(server, {**FILES, "words.py": f"{VOWELS}\n\n{SOME}"})
    functions = server.workspace.functions
    await functions.edit("count_some", "Count the vowels", "Count some vowels")
    await _http(server)
    await functions.rollback("count_some")
    assert "vowels_of" in functions.names()
    assert "Count some vowels" not in functions.source("count_some")


async def test_an_agent_that_runs_has_the_new_name_in_its_own_set(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Yes?"), Say("Yes.")])
    await desk.save("words.py", VOWELS)
    await desk.agent.session.own_set.add("count_vowels")
    await desk.say("Are you there?")
    functions = desk.workspace.functions
    await functions.make(await functions.relocations.rename("count_vowels", "vowels_of", USER))
    await desk.say("And now?")
    assert desk.agent.session.own_set.names == {"vowels_of"}
