"""A program calls functions by name: its value, output, errors and effects, and the one question that it asks."""

import json

import pytest

from agent_core import Decision
from agent_core.access.grants import Grants
from agent_core.base.events import Event
from agent_core.views.grant_question import grant_lines
from agent_core.views.styled_lines import plain
from tests.broker.servers import serving
from tests.conftest import OpenDesk
from tests.kit.desk import answers, ended
from tests.kit.heartbeat import MOST_MS, heartbeat
from tests.kit.pace import slowness
from tests.kit.program import knapper
from tests.kit.sources import function_text

from .support import NOT_RUN, UNCHANGED, Person, lines, ran, ready


async def test_the_answer_is_its_value_with_what_it_printed(at_desk: OpenDesk) -> None:
    own = "def f(a, b=5):\n    return a - b\neach(f, [1, (2, 3), {'b': 1, 'a': 9}, {}])[:3] + each(len, [{}])"
    failures = "[str(row)[:20] for row in each(key_of, [{'text': 'a'}, {'nothing': 1}])][1]"
    says = {
        "sum(count_vowels(word) for word in ['queueing', 'aha'])": "7",
        "total = count_vowels('aha')": "2\nKept",
        "total = 0\nfor w in ['a', 'b']:\n    total += count_vowels(w)": "1\nKept",
        "print('hi')": "null\nIt printed:\n```\nhi\n```",
        "each(count_vowels, ['a', ('ee',), {'text': 'x'}])": "[1, 2, 0]",
        own: "[-4, -1, 8, 0]",
        "each(ping, [{}] * 2)": "[1, 1]",  # without arguments
        failures: "`key_of` was not cal",
        "list_functions(pattern='count_*')[:11]": '"1 function,',  # of the host
        "key_of('a') == key_of('a')": "false",
        "import time\ntime.time() < time.time()": "true",
        "object": "This is no JSON",
        "print('x' * 9_000)": "x" * 9_000,
    }
    told, _ = await ran(at_desk, *says)
    assert [
        (code, text)
        for (code, said), text in zip(says.items(), told, strict=True)
        if said not in text
    ] == []


async def test_all_that_a_program_printed_is_kept_to_be_read_on(at_desk: OpenDesk) -> None:
    [told], desk = await ran(at_desk, "for n in range(5_000):\n    print('line', n)")
    [entry] = await desk.workspace.store.history("main", kinds=("result",))
    assert "line 0\nline 1\n" in told
    assert "read_on" in desk.model.requests[-1].text
    assert entry.payload["chars"] > 5_000 * len("line 4999\n") - 5_000


async def test_all_that_is_wrong_is_told_before_anything_runs(at_desk: OpenDesk) -> None:
    says = {
        "count_vowels(": ["line 2"],
        "count_vowel('a')\nnothing": [
            "line 2: there is no `count_vowel`",
            "`count_vowels`",
            "line 3",
        ],
        "count_vowels()\ncount_vowels(1, 2)": ["line 2: `count_vowels` lacks text", "line 3: "],
        "count_vowels(txt='a')": ["txt"],
        "count_vowels(text=[1, 2])": ["expected", "text"],
        "import numpy\nfrom functions.letters import x": [
            "cannot import `numpy`",
            "called by name",
        ],
        "create_function('a', 'b')": ["`create_function` cannot be called in a program"],
        "run_program('1')": ["`run_program` cannot be called in a program"],
        "delete_function('a')": ["`delete_function` cannot be called in a program"],
    }
    told, desk = await ran(at_desk, *(f"note('x')\n{code}" for code in says), person=Person())
    for text, (code, expected) in zip(told, says.items(), strict=True):
        assert text.startswith(NOT_RUN)
        assert [each for each in expected if each not in text] == [], code
    assert lines(desk.workspace.root) == []


async def test_a_program_that_fails_says_what_it_had_called(at_desk: OpenDesk) -> None:
    says = {
        "import os\nwhile True:\n    os.fork()": "in <module>: `os.fork()`",
        "def f():\n    f()\nf()": "RecursionError",
        "count_vowels(text={1, object()})": "cannot be sent as JSON",
        "while True:\n    print('x' * 10_000)": "printed far more than",
    }
    many, _ = await ran(at_desk, *(f"first = count_vowels('aha')\n{code}" for code in says))
    for told, (code, expected) in zip(many, says.items(), strict=True):
        assert expected in told, code
        assert "1. count_vowels(text='aha') → 2" in told
        assert told.endswith(UNCHANGED)


@pytest.mark.slow
async def test_a_program_makes_a_thousand_calls_and_no_more(at_desk: OpenDesk) -> None:
    (told,), _ = await ran(at_desk, "for i in range(1_001):\n    r = count_vowels('a')")
    assert "1,000 calls, and this is one more" in told


async def test_an_error_says_what_was_changed_outside(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(at_desk, "note('x')\nraise ValueError('y')", person=Person())
    assert "program.py:2 in <module>: `raise ValueError('y')`" in told
    assert told.endswith("Outside it: wrote out/notes.txt.")
    assert lines(desk.workspace.root) == ["x"]


async def test_names_are_kept_for_the_next_program_and_taken_back_by_undo_or_a_new_conversation(
    at_desk: OpenDesk,
) -> None:
    desk = await ready(
        at_desk, "rows = [1, 2]\nwords = {'a': object()}", "rows.append(3)\nrows", *("rows",) * 2
    )
    told = [answers(await desk.say("Go."))[0] for _ in range(3)]
    assert told[0].endswith(
        "program: rows (2 items).\nNot kept: words (a dict with an object in it)."
    )
    assert [text.splitlines()[0] for text in told[1:]] == ["[1, 2, 3]"] * 2
    for _ in range(2):
        await desk.agent.pop()
    kept = await desk.workspace.store.history(desk.agent.name, kinds=("kept",))
    assert [row.payload["values"] for row in kept] == [{"rows": "[1, 2]"}]
    await desk.begin()
    (anew,) = answers(await desk.say("Go."))
    assert "there is no `rows`" in anew


LOOPS = {
    "for n in (1, 2):\n    total = n": ("total", "[n, total]", "[2, 2]"),
    "for a, (b, *rest) in [(1, (2, 3))]:\n    for c in rest:\n        pass\nseen = a": (
        "seen",
        "[a, b, rest, c]",
        "[1, 2, [3], 3]",
    ),
    "n = 0\nfor n in (1, 2):\n    pass": ("n", "n", "2"),
    "for n in (1, 2):\n    n += 1": ("n", "n", "3"),
    "m = [n for n in (1, 2)]\nfor n in m:\n    pass": ("m (2 items)", "n", "2"),
    "for n in (1, 2):\n    pass": ("", "n", "2"),
}


@pytest.mark.parametrize("code", LOOPS)
async def test_names_that_only_loops_bind_are_kept_and_not_named(
    at_desk: OpenDesk, code: str
) -> None:
    named, then, value = LOOPS[code]
    desk = await ready(at_desk, f"{code}\n'done'", then)
    told, after = [answers(await desk.say("Go."))[0] for _ in range(2)]
    says = f"\nKept for your next program: {named}." if named else ""
    assert (told, after) == (f'"done"{says}', value)


FAILING = {
    "a = 1\nb = [1, 2]\n1 / 0": (
        "Kept for your next program: a, b (2 items).",
        "[a, b]",
        "[1, [1, 2]]",
    ),
    "x = count_vowels('aha')\n[x][3]": ("Kept for your next program: x.", "x", "2"),
    "rows = []\nfor n in (1, 2, 0):\n    rows.append(4 // n)": (
        "rows (2 items), n.",
        "rows",
        "[4, 2]",
    ),
    "d = {'k': None}\nraise SystemExit": ("d (1 item).", "d", '{"k": null}'),
    "def f(n):\n    return n / 0\nm = 3\nf(m)": ("program: m.", "m", "3"),
    "import math\np = math.floor(2.5)\nassert p == 3": ("program: p.", "p", "2"),
    "o = object()\ns = 'ok'\no.no": ("program: s.", "s", '"ok"'),
    "1 / 0": ("", "7", "7"),
}


@pytest.mark.parametrize("code", FAILING)
async def test_values_of_a_program_that_failed_are_kept(at_desk: OpenDesk, code: str) -> None:
    named, then, value = FAILING[code]
    desk = await ready(at_desk, code, then, then)
    failed, after, again = [answers(await desk.say("Go."))[0] for _ in range(3)]
    assert failed.startswith("The program raised")
    assert named in failed
    assert ("Kept for" in failed) == bool(named)
    assert after == again == value  # what is kept already is not named again


async def test_inner_calls_are_recorded_with_their_number_and_count_for_standing(
    at_desk: OpenDesk,
) -> None:
    _, desk = await ran(at_desk, "count_vowels('aha')\ncount_vowels('b')")
    calls = await desk.workspace.functions.replays.of(None).calls("count_vowels")
    assert len(calls) == 2
    rows = await desk.workspace.store.history(desk.agent.name, kinds=("inner_call", "inner_result"))
    assert [(row.kind, row.payload["ordinal"]) for row in rows] == [
        (kind, number) for number in (1, 2) for kind in ("inner_call", "inner_result")
    ]
    root = desk.workspace.root
    shown = [knapper("calls", "show", str(number), cwd=root).stdout for number in (1, 2)]
    assert [
        f"call {number} of a program" in text for number, text in zip((1, 2), shown, strict=True)
    ] == [True, True]
    listed = json.loads(knapper("calls", "list", "count_vowels", "--json", cwd=root).stdout)
    assert sorted(row["number_in_program"] for row in listed) == [1, 2]


async def test_only_a_call_that_reaches_something_is_written_down_before_it_starts(
    at_desk: OpenDesk,
) -> None:
    """Entries written together have the same time."""
    _, desk = await ran(at_desk, "count_vowels('aha')\nnote('x')", person=Person())
    rows = await desk.workspace.store.history(desk.agent.name, kinds=("inner_call", "inner_result"))
    computes, reaches = (
        [row.at for row in rows if row.payload["name"] == name] for name in ("count_vowels", "note")
    )
    assert (len({*computes}), len({*reaches})) == (1, 2)


async def test_what_is_forgotten_is_in_no_name_and_no_record_of_a_program(
    at_desk: OpenDesk,
) -> None:
    secret = "Zanzibarquist"
    desk = await ready(
        at_desk, f"friend = 'Anna {secret}'\nrows = [count_vowels(friend), 2]", "[friend, rows]"
    )
    await desk.say("Go.")
    root = desk.workspace.root
    await desk.agent.aclose()
    assert knapper("memory", "forget", secret, "-y", cwd=root).returncode == 0
    agent = await desk.workspace.agent()
    events = [event async for event in agent.turn("Go.")]
    assert '"Anna [forgotten]"' in answers(events)[0]
    files = [path for path in (root / ".knapper").rglob("*") if path.is_file()]
    assert [path.name for path in files if secret.encode() in path.read_bytes()] == []


async def test_a_program_that_never_ends_is_stopped_and_says_what_it_had_called(
    at_desk: OpenDesk,
) -> None:
    desk = await ready(at_desk, "count_vowels('aha')\nwhile True:\n    pass", sandbox__wall_s=1)
    (told,) = answers(await desk.say("Go."))
    assert "Stopped after" in told
    assert "1. count_vowels(text='aha') → 2" in told


WAIT = function_text(
    "wait(text: str) -> int",
    "Wait long.\n\nArgs:\n    text: Anything.",
    "import time\n\ntime.sleep(600)\nreturn len(text)",
)
ENDLESS = {
    "computes": "while True:\n    pass",
    "sleeps": "import time\ntime.sleep(600)",
    "catches its end": "try:\n    while True:\n        pass\nexcept BaseException:\n    while True:\n        pass",
    "is within a call": "wait('aha')",
    "asks when its time is up": "try:\n    while True:\n        pass\nfinally:\n    wait('aha')",
}


@pytest.mark.parametrize("end", ENDLESS)
async def test_values_of_a_program_whose_time_is_up_are_kept(at_desk: OpenDesk, end: str) -> None:
    code = f"rows = [1]\nrows.append(2)\n{ENDLESS[end]}\nrows.append(3)"
    desk = await ready(at_desk, code, "rows", sandbox__wall_s=1)
    desk.put("wait.py", WAIT)
    await desk.workspace.functions.reload()
    stopped, after = [answers(await desk.say("Go."))[0] for _ in range(2)]
    assert "Stopped after" in stopped
    assert "rows (2 items)" in stopped
    assert after == "[1, 2]"


async def test_a_program_that_never_lets_itself_end_is_killed_and_its_values_are_lost(
    at_desk: OpenDesk,
) -> None:
    endless = (
        "    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
    )
    code = f"a = 1\nwhile True:\n{endless}"
    desk = await ready(at_desk, code, "a", sandbox__wall_s=1)
    stopped, after = [answers(await desk.say("Go."))[0] for _ in range(2)]
    assert "Stopped after" in stopped
    assert "there is no `a`" in after


async def test_a_program_that_is_interrupted_is_over_and_says_so(at_desk: OpenDesk) -> None:
    desk = await ready(
        at_desk, "note('a')\nimport time\ntime.sleep(600)\nnote('b')", person=Person()
    )
    events = list[Event]()
    async for event in desk.agent.turn("Go."):
        events.append(event)
        if event.type == "progress":
            await desk.agent.interrupt()
    assert ended(events).reason == "interrupted"
    (told,) = answers(events)
    assert ended(await desk.say("Go on.")).reply == "Done."
    assert "stopped this call" in told
    assert "1. note(text='a') → 1" in told
    assert told.endswith("Outside it: wrote out/notes.txt.")
    assert lines(desk.workspace.root) == ["a"]


NAP = function_text(
    "nap(text: str) -> list",
    "Sleep, and say from when to when.\n\nArgs:\n    text: Anything.",
    "import time\n\nbegan = time.time()\ntime.sleep(1)\nreturn [began, time.time()]",
)


async def test_what_only_computes_runs_side_by_side_and_what_writes_in_its_order(
    at_desk: OpenDesk,
) -> None:
    texts = ["a", "b", "c", "d"]
    code = f"[each(nap, ['a', 'b']), each(note, {texts})]"
    desk = await ready(at_desk, code, person=Person())
    desk.put("naps.py", NAP)
    await desk.workspace.functions.reload()
    (told,) = answers(await desk.say("Go."))
    naps, counts = json.loads(told)
    assert max(began for began, _ in naps) < min(ended for _, ended in naps)
    assert counts == [1, 2, 3, 4]
    assert lines(desk.workspace.root) == texts


async def test_names_that_are_too_large_are_not_kept_and_it_says_which(at_desk: OpenDesk) -> None:
    code = (
        "big = 'x' * (4 << 20)\n"
        + "\n".join(f"part{n} = 'y' * 4_000_000" for n in range(17))
        + "\nfew = 1"
    )
    told, _ = await ran(at_desk, code, "len(part3) + few")
    assert "Not kept (above 4.0 MiB as JSON, 64 MiB in all, or 200 names): big, part16." in told[0]
    assert told[1].startswith("4000001")


OF_THEIR_TYPES = (
    *(
        "{'b', 'a'}",
        "(1, (2, 'x'))",
        "frozenset({1})",
        "Counter('aab')",
        "{(1, 2): {3}}",
        "date(2026, 11, 27)",
    ),
    *(
        "defaultdict(list, {'a': [1]})",
        "defaultdict(None, {1: 2})",
        "OrderedDict(b=1, a=2)",
        "deque([1, (2,)])",
    ),
    *(
        "Decimal('1.10')",
        "datetime(2026, 11, 27, 2, 37, tzinfo=ZoneInfo('Europe/Warsaw'))",
        "b'x'",
        "float('inf')",
    ),
    *(
        "timedelta(1)",
        "{'$': 'set', 'v': [1]}",
        "[{'rows': {1}}, Counter()]",
        "Path('a/b')",
        "UUID(int=7)",
    ),
)


@pytest.mark.parametrize("size", [1, 30_000])
async def test_names_of_any_type_that_crosses_are_kept_with_their_types(
    at_desk: OpenDesk, size: int
) -> None:
    imports = "from collections import Counter, OrderedDict, defaultdict, deque\nfrom datetime import date, datetime"
    imports += ", timedelta\nfrom decimal import Decimal\nfrom pathlib import Path\nfrom uuid import UUID\n"
    imports += "from zoneinfo import ZoneInfo\n"
    values = f"[[{', '.join(OF_THEIR_TYPES)}], {size}, *range({size})]"
    first = f"{imports}known = {values}\nlone = {{1, 2}}\nlone_large = set(range({size}))\nrepr(known[0])"
    then = f"{imports}[known == {values}, lone == {{1, 2}}, lone_large == set(range({size}))]"
    told, _ = await ran(at_desk, first, "repr(known[0])", then)
    assert f"lone (2 items), lone_large ({size} item" in told[0]
    assert "Not kept" not in told[0]
    assert told[1].splitlines()[0] == told[0].splitlines()[0]
    assert told[2].startswith("[true, true, true]")


async def test_names_that_cannot_be_kept_are_said_with_what_they_are(at_desk: OpenDesk) -> None:
    code = """import math
from functools import reduce
known = (n for n in [1, 2])
class Reading:
    pass
def add(n):
    return n + 1
rows = [{'one': Reading()}]
file = open('notes.txt', 'w')
big = 10 ** 9_000
fine = {1}
fine"""
    (told,), _ = await ran(at_desk, code, person=Person())
    whats = "known (a generator), Reading (a class), add (a function), rows (a list with a Reading in it)"
    assert told.endswith(
        f"fine (1 item).\nNot kept: {whats}, file (a file), big (an int that JSON cannot hold)."
    )


async def test_a_program_keeps_so_many_names_and_lists_few(at_desk: OpenDesk) -> None:
    told, _ = await ran(at_desk, "for n in range(60_000):\n    globals()[f'n{n}'] = n", "n198")
    assert "n39 and 159 more." in told[0]
    assert len(told[0]) < 2_000
    assert told[1].startswith("198")


async def test_a_call_of_an_unknown_number_of_rows_is_refused_whole(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(
        at_desk, "each(note, [str(n) for n in range(10_000)])", person=Person()
    )
    assert "these are 10,000" in told
    assert lines(desk.workspace.root) == []


PAYS = function_text(
    "pay(self, address: str) -> int",
    "Ask for a payment, once for a call.\n\nArgs:\n    address: Where.",
    'return self.fetch(address, method="POST", headers={"Idempotency-Key": self.call_key}).status',
)


async def test_a_granted_host_gets_the_key_of_the_call(at_desk: OpenDesk) -> None:
    async with serving() as server:
        address = f"http://localhost:{server.port}/"
        desk = await ready(at_desk, f"each(pay, [{address!r}] * 2)", person=Person())
        desk.put("pays.py", PAYS)
        await desk.workspace.functions.reload()
        assert answers(await desk.say("Go.")) == ["[200, 200]"]
        keys = [asked.headers.get("idempotency-key", "") for asked in server.asked]
    assert [len(key) for key in keys] == [32, 32]
    assert len({*keys}) == 2


async def test_a_program_is_asked_for_once_before_it_runs(at_desk: OpenDesk) -> None:
    person = Person()
    _, desk = await ran(at_desk, "[note(text) for text in ('a', 'b', 'c')]", person=person)
    (question,) = person.asked
    assert "run_program asks, for the functions that it calls, to" in plain(grant_lines(question))
    assert question.doubts == (
        "note, in up to 100 calls: read out/notes.txt; read and write out/notes.txt",
    )
    assert lines(desk.workspace.root) == ["a", "b", "c"]


async def test_a_yes_to_a_program_is_for_so_many_calls_and_each_one_more_asks(
    at_desk: OpenDesk,
) -> None:
    person = Person(Decision("once"))
    await ran(at_desk, "for number in range(102):\n    note(str(number))", person=person)
    assert [question.moment for question in person.asked] == ["program", "call", "call"]


NOTE_ALL = function_text(
    "note_all(self, texts: list[str]) -> int",
    "Write lines down, and say how many there are.\n\nArgs:\n    texts: The lines.",
    'return [self.call("note", text=text) for text in texts][-1]',
)


async def test_what_its_functions_call_is_part_of_the_one_question(at_desk: OpenDesk) -> None:
    person = Person()
    desk = await ready(at_desk, "note_all(['a', 'b'])", person=person)
    (desk.workspace.root / "functions" / "lists.py").write_text(NOTE_ALL)
    await desk.workspace.functions.reload()
    await desk.say("Go.")
    (question,) = person.asked
    assert question.doubts == (
        "note, called by note_all: read out/notes.txt; read and write out/notes.txt",
    )
    assert lines(desk.workspace.root) == ["a", "b"]


async def test_what_changed_since_the_last_yes_is_shown_in_the_question(at_desk: OpenDesk) -> None:
    person = Person(Decision("no"))
    desk = await ready(at_desk, 'note("a")', person=person)
    file = desk.workspace.root / "functions" / "notes.py"
    await desk.workspace.functions.grants.grant("note", Grants(write=("out/",)))
    file.write_text(
        file.read_text("utf-8").replace('text + "\\n"', 'text.upper() + "\\n"'), "utf-8"
    )
    await desk.workspace.functions.reload()
    await desk.say("Go.")
    (question,) = person.asked
    assert question.changed == "note: `note` itself is changed"
    assert '+        file.write(text.upper() + "\\n")' in question.diff


async def test_a_yes_to_one_text_does_nothing_for_another(at_desk: OpenDesk) -> None:
    person = Person()
    await ran(at_desk, "note('a')", "note('b')", person=person)
    assert [question.lines for question in person.asked] == [
        ((1, "note('a')"),),
        ((1, "note('b')"),),
    ]


async def test_a_no_lets_nothing_run(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(
        at_desk, "count_vowels('a')\nnote('a')", person=Person(Decision("no"))
    )
    assert "The user was asked and said no." in told
    assert lines(desk.workspace.root) == []
    assert await desk.workspace.store.history(desk.agent.name, kinds=("inner_call",)) == []


async def test_where_nobody_can_be_asked_each_call_says_so(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(at_desk, "note('a')")
    assert "knapper functions grant note --write out/notes.txt" in told
    assert lines(desk.workspace.root) == []


async def test_a_program_is_held_to_the_limits_of_a_file(at_desk: OpenDesk) -> None:
    says = {
        " + ".join(["1"] * 400): "more than 100 levels",
        f"a = {'-' * 300}1": "more than 100 levels",
        "a" + ".b" * 300: "more than 100 levels",
        "(lambda: " * 120 + "1" + ")" * 120: "more than 100 levels",
        "a = [" + "1," * 25_000 + "]": "more than 40,000 names",
        "x = 1\n" * 11_000: "larger than 64 KiB",
        "def g(" + ", ".join(f"a{n}" for n in range(300)) + "): pass": "at most 255",
        f"import {'a.' * 150}b": "more than 100 parts",
        f"from {'a' * 2_000} import b": "1,000 letters",
        "a = 0x" + "f" * 5_000: "thousands of digits",
        "a = 'x\u202ey'": "direction",
        "\u2115 = 1": "write `N`",
        "a = '\x00'": "NULL",
    }
    told, desk = await ran(at_desk, *says)
    for text, (code, expected) in zip(told, says.items(), strict=True):
        assert text.startswith(NOT_RUN), code[:40]
        assert expected in text, (code[:40], text)
    assert not [*desk.workspace.root.glob(".knapper/crash*")]


async def test_a_program_of_thousands_of_names_does_not_hold_up_the_event_loop(
    at_desk: OpenDesk,
) -> None:
    code = ",".join(f"n{at:x}" for at in range(11_000))
    desk = await ready(at_desk, "1", code)
    await desk.say("Go.")
    async with heartbeat() as stall:
        (told,) = answers(await desk.say("Go."))
    assert "there is no `n0`" in told
    assert stall.cpu_ms <= MOST_MS / 2 * slowness(), stall


async def test_of_many_problems_of_a_program_the_first_are_told(at_desk: OpenDesk) -> None:
    code = "\n".join([*(f"nothing{number}" for number in range(500)), *["count_vowels()"] * 500])
    (text,), _ = await ran(at_desk, code)
    assert text.count("there is no `nothing") == 20
    assert "There may be more of them." in text


async def test_the_error_of_a_called_function_can_be_caught_in_a_program_by_its_class(
    at_desk: OpenDesk,
) -> None:
    says = {
        "try:\n    number_of('x')\nexcept ValueError as error:\n    said = str(error)\nsaid": "invalid literal for",
        "try:\n    number_of('x')\nexcept CallFailed as error:\n    said = type(error).__name__\nsaid": '"ValueError"',
        "[isinstance(row, ValueError) for row in each(number_of, ['1', 'x'])]": "[false, true]",
        "number_of('x')": "The program raised `ValueError`: `invalid literal for int() with base 10: 'x'",
        "try:\n    number_of()\nexcept CallFailed:\n    said = 'not called'\nsaid": "lacks text",
    }
    desk = await ready(at_desk, *says)
    text = function_text(
        "number_of(text: str) -> int",
        "Read a number.\n\nArgs:\n    text: The text.",
        "return int(text)",
    )
    (desk.workspace.root / "functions" / "numbers_of.py").write_text(text)
    await desk.workspace.functions.reload()
    told = [answer for _ in says for answer in answers(await desk.say("Go."))]
    assert [
        code for (code, said), text in zip(says.items(), told, strict=True) if said not in text
    ] == [], told
