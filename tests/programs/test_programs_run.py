"""A program calls functions by name: its value, its output, its errors, and its effects."""

import json

import pytest

from agent_core.base.events import Event
from tests.broker.servers import serving
from tests.conftest import OpenDesk
from tests.kit.desk import answers, ended
from tests.kit.program import knapper

from .support import Person, lines, ran, ready


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param("sum(count_vowels(word) for word in ['queueing', 'aha'])", "7", id="last-expression"),
        pytest.param("total = count_vowels('aha')", "2\nKept", id="last-assignment"),
        pytest.param("total = 0\nfor w in ['a', 'b']:\n    total += count_vowels(w)", "1\nKept", id="in-a-loop"),
        pytest.param("print('hi')", "null\nIt printed:\n```\nhi\n```", id="what-it-printed"),
        pytest.param("each(count_vowels, ['a', ('ee',), {'text': 'x'}])", "[1, 2, 0]", id="side-by-side"),
        pytest.param(
            "def f(a, b=5):\n    return a - b\neach(f, [1, (2, 3), {'b': 1, 'a': 9}, {}])[:3] + each(len, [{}])",
            "[-4, -1, 8, 0]",
            id="own-def",
        ),
        pytest.param("each(ping, [{}] * 2)", "[1, 1]", id="without-arguments"),
        pytest.param(
            "[str(row)[:20] for row in each(key_of, [{'text': 'a'}, {'nothing': 1}])][1]",
            "`key_of` was not cal",
            id="failures-as-values",
        ),
        pytest.param("list_functions(pattern='count_*')[:11]", '"1 function,', id="functions-of-the-host"),
        pytest.param("key_of('a') == key_of('a')", "false", id="a-key-for-each-call"),
        pytest.param("import time\ntime.time() < time.time()", "true", id="the-clock-goes-on"),
        pytest.param("object", "This is no JSON", id="no-json"),
        pytest.param("print('x' * 9_000)", "characters left out", id="cut-texts-say-how-much"),
    ],
)
async def test_the_answer_is_its_value_with_what_it_printed(at_desk: OpenDesk, code: str, says: str) -> None:
    (told,), _ = await ran(at_desk, code)
    assert says in told


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param("count_vowels(", ["line 1"], id="syntax"),
        pytest.param("count_vowel('a')\nnothing", ["line 1: there is no `count_vowel`", "`count_vowels`", "line 2"]),
        pytest.param("count_vowels()\ncount_vowels(1, 2)", ["line 1: `count_vowels` lacks text", "line 2: "], id="few"),
        pytest.param("count_vowels(txt='a')", ["txt"], id="wrong-name"),
        pytest.param("count_vowels(text=[1, 2])", ["expected", "text"], id="wrong-type"),
        pytest.param("import numpy\nfrom functions.letters import x", ["cannot import `numpy`", "called by name"]),
        pytest.param("create_function('a', 'b')", ["`create_function` cannot be called in a program"], id="making"),
        pytest.param("run_program('1')", ["`run_program` cannot be called in a program"], id="itself"),
        pytest.param("delete_function('a')", ["`delete_function` cannot be called in a program"], id="deleting"),
    ],
)
async def test_all_that_is_wrong_is_told_before_anything_runs(at_desk: OpenDesk, code: str, says: list[str]) -> None:
    (told,), desk = await ran(at_desk, f"note('x')\n{code}", person=Person())
    shifted = [text.replace("line 2", "line 3").replace("line 1", "line 2") for text in says]
    assert told.startswith("The program was not run:")
    assert [text for text in shifted if text not in told] == []
    assert lines(desk.workspace.root) == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param("import os\nwhile True:\n    os.fork()", "in <module>: `os.fork()`", id="forks"),
        pytest.param("def f():\n    f()\nf()", "RecursionError", id="calls-itself"),
        pytest.param(
            "for i in range(1_001):\n    r = count_vowels('a')", "1,000 calls, and this is one more", id="many"
        ),
        pytest.param("count_vowels(text={1, object()})", "cannot be sent as JSON", id="no-json"),
        pytest.param("while True:\n    print('x' * 10_000)", "printed far more than", id="prints-without-end"),
    ],
)
async def test_a_program_that_fails_says_what_it_had_called(at_desk: OpenDesk, code: str, says: str) -> None:
    (told,), _ = await ran(at_desk, f"first = count_vowels('aha')\n{code}")
    assert says in told
    assert "1. count_vowels(text='aha') → 2" in told
    assert told.endswith("Nothing was changed outside.")


async def test_an_error_says_what_was_changed_outside(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(at_desk, "note('x')\nraise ValueError('y')", person=Person())
    assert "program.py:2 in <module>: `raise ValueError('y')`" in told
    assert told.endswith("Outside it: wrote out/notes.txt.")
    assert lines(desk.workspace.root) == ["x"]


async def test_names_are_kept_for_the_next_program_and_taken_back_by_undo(at_desk: OpenDesk) -> None:
    told, desk = await ran(at_desk, "rows = [1, 2]\nwords = {'a': object()}", "rows.append(3)\nrows", "rows")
    assert told[0].endswith("Kept for your next program: rows (2 items).")
    assert [text.splitlines()[0] for text in told[1:]] == ["[1, 2, 3]"] * 2
    for _ in range(2):
        await desk.agent.pop()
    kept = await desk.workspace.store.history(desk.agent.name, kinds=("kept",))
    assert [row.payload["values"] for row in kept] == [{"rows": "[1, 2]"}]


async def test_inner_calls_are_recorded_and_count_for_standing(at_desk: OpenDesk) -> None:
    _, desk = await ran(at_desk, "count_vowels('aha')\ncount_vowels('b')")
    calls = await desk.workspace.functions.replays.of(None).calls("count_vowels")
    assert len(calls) == 2
    rows = await desk.workspace.store.history(desk.agent.name, kinds=("inner_call", "inner_result"))
    assert [(row.kind, row.payload["ordinal"]) for row in rows] == [
        ("inner_call", 1),
        ("inner_result", 1),
        ("inner_call", 2),
        ("inner_result", 2),
    ]


async def test_only_a_call_that_reaches_something_is_written_down_before_it_starts(at_desk: OpenDesk) -> None:
    """Entries written together have the same time."""
    _, desk = await ran(at_desk, "count_vowels('aha')\nnote('x')", person=Person())
    rows = await desk.workspace.store.history(desk.agent.name, kinds=("inner_call", "inner_result"))
    computes, reaches = ([row.at for row in rows if row.payload["name"] == name] for name in ("count_vowels", "note"))
    assert (len({*computes}), len({*reaches})) == (1, 2)


async def test_calls_show_says_which_call_of_its_program_one_was(at_desk: OpenDesk) -> None:
    _, desk = await ran(at_desk, "count_vowels('aha')\ncount_vowels('queue')")
    root = desk.workspace.root
    shown = [knapper("calls", "show", str(number), cwd=root).stdout for number in (1, 2)]
    assert [f"call {number} of a program" in text for number, text in zip((1, 2), shown, strict=True)] == [True, True]
    listed = json.loads(knapper("calls", "list", "count_vowels", "--json", cwd=root).stdout)
    assert sorted(row["number_in_program"] for row in listed) == [1, 2]


async def test_names_are_gone_with_a_new_conversation(at_desk: OpenDesk) -> None:
    desk = await ready(at_desk, "rows = [1, 2]", "rows")
    await desk.say("Go.")
    await desk.agent.begin_anew()
    (told,) = answers(await desk.say("Go."))
    assert "there is no `rows`" in told


async def test_what_is_forgotten_is_in_no_name_and_no_record_of_a_program(at_desk: OpenDesk) -> None:
    secret = "Zanzibarquist"
    desk = await ready(at_desk, f"friend = 'Anna {secret}'\nrows = [count_vowels(friend), 2]", "[friend, rows]")
    await desk.say("Go.")
    root = desk.workspace.root
    await desk.agent.aclose()
    assert knapper("memory", "forget", secret, "-y", cwd=root).returncode == 0
    agent = await desk.workspace.agent()
    events = [event async for event in agent.turn("Go.")]
    assert '"Anna [forgotten]"' in answers(events)[0]
    files = [path for path in (root / ".knapper").rglob("*") if path.is_file()]
    assert [path.name for path in files if secret.encode() in path.read_bytes()] == []


async def test_a_program_that_never_ends_is_stopped_and_says_what_it_had_called(at_desk: OpenDesk) -> None:
    desk = await ready(at_desk, "count_vowels('aha')\nwhile True:\n    pass")
    (told,) = answers(await desk.say("Go."))
    assert "Stopped after" in told
    assert "1. count_vowels(text='aha') → 2" in told


async def test_a_program_that_is_interrupted_is_over_and_says_so(at_desk: OpenDesk) -> None:
    desk = await ready(at_desk, "note('a')\nimport time\ntime.sleep(600)\nnote('b')", person=Person())
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


NAP = '''\
def nap(text: str) -> list:
    """Sleep, and say from when to when.

    Args:
        text: Anything.
    """
    import time

    began = time.time()
    time.sleep(1)
    return [began, time.time()]
'''


async def test_what_only_computes_runs_side_by_side_and_what_writes_in_its_order(at_desk: OpenDesk) -> None:
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
    code = "big = 'x' * 70_000\n" + "\n".join(f"part{n} = 'y' * 60_000" for n in range(5)) + "\nfew = 1"
    told, _ = await ran(at_desk, code, "len(part3) + few")
    assert "Not kept, as it is too large: big, part4." in told[0]
    assert told[1].startswith("60001")


async def test_a_call_of_an_unknown_number_of_rows_is_refused_whole(at_desk: OpenDesk) -> None:
    (told,), desk = await ran(at_desk, "each(note, [str(n) for n in range(10_000)])", person=Person())
    assert "these are 10,000" in told
    assert lines(desk.workspace.root) == []


PAYS = '''\
def pay(self, address: str) -> int:
    """Ask for a payment, once for a call.

    Args:
        address: Where.
    """
    return self.fetch(address, method="POST", headers={"Idempotency-Key": self.call_key}).status
'''


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
