"""What a model writes into a breakpoint reads the values of the function that it stops, and never acts in its place."""

from collections.abc import Sequence
from operator import itemgetter

import pytest

from agent_core.access.grants import Grants
from agent_core.base.errors import UsageError
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers

from .support import Typist, arm, room_of

SENDING = '''\
import dataclasses
import enum
import typing
import zoneinfo
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal


class Zone(tzinfo):
    def utcoffset(self, moment: typing.Any) -> timedelta:
        write("zone")
        return timedelta(hours=9)


class MyDict(dict):
    def __iter__(self) -> typing.Any:
        write("iter")
        return super().__iter__()


class Mood(enum.Enum):
    GOOD = 1


@dataclasses.dataclass
class Note:
    text: str
    mood: Mood = Mood.GOOD

    @property
    def sent(self) -> str:
        return write(self.text)

    def __eq__(self, other: object) -> bool:
        write("eq")
        return True

    def __hash__(self) -> int:
        write("hash")
        return hash("a")

    def __len__(self) -> int:
        write("len")
        return 1

    def __repr__(self) -> str:
        return self.text

    def __getattr__(self, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return write(name)

    def __format__(self, form: str) -> str:
        return write("format")


class Pair(typing.NamedTuple):
    first: int
    second: int


def write(text: str) -> str:
    """Write."""
    with open("out/evil.txt", "a") as file:
        file.write(text)
    return text


def send_note(text: str) -> str:
    """Send a note."""
    note, rows, pair = Note(text), {"a": [1, 2, 3], "b": []}, Pair(3, 4)
    began = datetime(2026, 11, 27, 2, 37, tzinfo=zoneinfo.ZoneInfo("Europe/Kyiv"))
    own, price, fields = began.replace(tzinfo=Zone()), Decimal("1.50"), MyDict(one=1)
    return note.text + str(rows["a"][0] + pair.first)
'''
AT_END = len(SENDING.splitlines())


async def open_desk(at_desk: OpenDesk, *steps: Ask | Say) -> tuple[list[str], bool]:
    """Return the answers of a turn beside a function that may write, and whether anything was written."""
    desk = await at_desk([*steps, Say("Done.")])
    (desk.workspace.root / "out").mkdir()
    desk.put("sending.py", SENDING)
    await desk.workspace.functions.reload()
    await desk.workspace.functions.grants.grant("send_note", Grants(write=("out/",)))
    said = answers(await desk.say("Look into it."))
    return said, (desk.workspace.root / "out" / "evil.txt").exists()


def asking(*expressions: str, condition: str = "") -> Wanted:
    """Return the call with which a model arms a breakpoint at the last line of `send_note`."""
    wanted = {
        "function_name": "send_note",
        "line": AT_END,
        "condition": condition,
        "expressions": [*expressions],
    }
    return Wanted("debugger", wanted)


CALLED = Wanted("send_note", {"text": "hello"})
ACTING = [
    "open('out/evil.txt', 'w').write('EVIL')",
    "write('EVIL')",
    "__import__('os').mkdir('out/evil.txt')",
    "(lambda: write('EVIL'))()",
    "[write(one) for one in 'abc']",
    "'{0.sent}'.format(note)",
    "str.format('{0.sent}', note)",
    "sorted([1, 2], key=write)",
    "note.text.join(map(write, 'abc'))",
    "f'{write(1)}'",
    "note.text.__class__.__subclasses__()",
    "[note for note.text in 'abc']",
]


@pytest.mark.parametrize("expression", ACTING)
async def test_what_a_model_writes_calls_nothing_that_the_function_may_call(
    at_desk: OpenDesk, expression: str
) -> None:
    said, is_written = await open_desk(
        at_desk, Ask(asking(expression)), Ask(asking(condition=expression)), Ask(CALLED)
    )
    assert not is_written
    assert "a breakpoint reads values" in said[0] or "Unreadable" in said[2]
    assert said[2].startswith('"hello4"')


READING = {
    "note.sent": "`sent` of a Note is code",
    "note.missing": "no stored field `missing`",
    "note == 1": "a Note has code of its own",
    "note in [1]": "a Note has code of its own",
    "rows[note]": "a Note has code of its own",
    "len(note)": "a Note has code of its own",
    "not note": "whether a Note is true",
    "f'{note:x}'": "a Note has code of its own",
    "max(note, note)": "a Note has code of its own",
    "{note: 1}": "a Note has code of its own",
    "[one for one in note]": "what a Note goes through",
    "note.__dict__": "`__dict__` is none of the stored fields",
    "'a' * 10 ** 9": "takes more",
    "10 ** 10 ** 10": "too large to compute with",
    "[0 for a in rows for b in range]": "what a type goes through",
    "sum([a * b for a in rows['a'] for b in rows['a']])": "= 36",
    "note": "<Note text='hello', mood=<Mood",
    "note.text.upper()[1:3]": "= 'EL'",
    "note.mood.name": "= 'GOOD'",
    "{key: len(rows[key]) for key in rows}": "= {'a': 3, 'b': 0}",
    "pair.first < pair[1] <= 4": "= True",
    "[one for one in sorted(rows['a'], reverse=True) if one > 1]": "= [3, 2]",
    "f'{pair.first:>4}|{note.text!r}'": "= \"   3|'hello'\"",
    "type(note).__name__": "= 'Note'",
    "rows.get('c', 'none')": "= 'none'",
    "str(began)": "= '2026-11-27 02:37:00+02:00'",
    "f'{began}'": "= '2026-11-27 02:37:00+02:00'",
    "repr(began)": "tzinfo=zoneinfo.ZoneInfo(key='Europe/Kyiv'))",
    "began": "= datetime.datetime(2026, 11, 27, 2, 37, tzinfo=zoneinfo.ZoneInfo(key='Europe/Kyiv'))",
    "began.isoformat()": "= '2026-11-27T02:37:00+02:00'",
    "[str(began + timedelta(hours=1)), began < datetime(2027, 1, 1)]": "TypeError",
    "str(began + timedelta(hours=1))": "= '2026-11-27 03:37:00+02:00'",
    "str(own)": "a datetime has code of its own",
    "own": "= datetime.datetime(2026, 11, 27, 2, 37, tzinfo=<Zone>)",
    "dict(fields)": "= {'one': 1}",
    "dict([('a', 1)]) | {'b': 2}": "= {'a': 1, 'b': 2}",
    "dict(a=1)": "= {'a': 1}",
    "dict(**rows)": "does not give arguments with `**`",
    "list(rows.items())[:1]": "= [('a', [1, 2, 3])]",
    "list(zip(rows['a'], 'xyz'))": "= [(1, 'x'), (2, 'y'), (3, 'z')]",
    "[place for place, one in enumerate(rows['a'], 1) if one > 2]": "= [3]",
    "sorted(set(rows['a']))": "= [1, 2, 3]",
    "Decimal('0.10') + price": "= Decimal('1.60')",
    "str(Decimal(rows['a'][0]))": "= '1'",
    "Decimal('1e999999')": "too large to compute with",
    "int(Decimal('9e1000') * Decimal('9e1000'))": "too large to compute with",
    "int('12') + float('0.5') + int(price)": "= 13.5",
    "isinstance(note, (int, Note))": "= True",
    "next((one for one in rows['a'] if one > 1), None)": "= 2",
    "next(rows)": "`next` takes a generator expression",
    "list(note)": "what a Note goes through",
    "list(range(10 ** 9))": "takes more",
    "set(range(2_000))": "up to 1,000 keys",
    "int(note)": "a Note has code of its own",
}
"""By an expression what is shown of it."""
TOGETHER = [[*READING][at : at + 8] for at in range(0, len(READING), 8)]
"""One breakpoint reads up to ten."""


@pytest.mark.parametrize("together", TOGETHER, ids=itemgetter(0))
async def test_what_a_model_writes_reads_stored_values_alone(
    at_desk: OpenDesk, together: Sequence[str]
) -> None:
    said, is_written = await open_desk(at_desk, Ask(asking(*together)), Ask(CALLED))
    assert not is_written
    rest = said[1].partition(f"hit 1: {together[0]} = ")[2]
    for expression, following in zip(together, [*together[1:], ""], strict=True):
        shown, _, rest = rest.partition(f", {following} = ")
        assert READING[expression] in f"= {shown}", said[1]


async def test_a_condition_of_a_model_that_cannot_be_read_says_why_and_counts(
    at_desk: OpenDesk,
) -> None:
    steps = (
        Ask(asking(condition="note.sent")),
        Ask(CALLED),
        Ask(asking(condition="pair.first > 3")),
        Ask(CALLED),
    )
    said, is_written = await open_desk(at_desk, *steps)
    assert not is_written
    assert "note.sent = *** Unreadable" in said[1]
    assert "hit" not in said[3]


async def test_a_person_may_act_where_a_model_reads(workspace: Workspace) -> None:
    with pytest.raises(UsageError) as error:
        arm(workspace, condition="print(number) is None", by="agent")
    assert "it does not call `print`" in str(error.value)
    arm(workspace, condition="print(number) is None", expressions=("numbers.copy()",))
    assert (
        "numbers.copy() = [1, 2]"
        in (await workspace.functions.call("sum_up", {"numbers": [1, 2]})).debugged
    )


async def test_at_a_stop_that_a_model_asked_for_its_expressions_read_and_the_person_acts(
    workspace: Workspace,
) -> None:
    arm(workspace, expressions=("random.random",), by="agent")
    room_of(workspace).slot.debugger = typist = Typist(
        "display len(str(random.random()))", "n", "c", "c"
    )
    assert (await workspace.functions.call("sum_up", {"numbers": [1]})).value == 1
    assert [stop.is_first for stop in typist.stops if not stop.message] == [True, False]
    assert "builtin_function_or_method" in dict(typist.stops[0].shown)["random.random"]
    assert dict(typist.stops[-1].shown)["len(str(random.random()))"].isdecimal()


async def test_the_condition_of_a_loop_that_repeats_is_asked(workspace: Workspace) -> None:
    line = 50
    for by in ("human", "agent"):
        arm(workspace, line=line, name="busy", condition="left == 2", by=by)
        text = (await workspace.functions.call("busy", {"turns": 4})).debugged
        assert text.count("hit ") == 1, text
        assert "left = 2" in text


async def test_an_expression_that_cannot_be_read_leaves_the_breakpoint_with_the_others(
    at_desk: OpenDesk,
) -> None:
    said, is_written = await open_desk(
        at_desk, Ask(asking("write('EVIL')", "text + '!'", "(")), Ask(CALLED)
    )
    assert not is_written
    assert (
        "with text + '!' is set. It is set without what cannot be read there: `write('EVIL')` is no"
        in said[0]
    )
    assert "`(` is no expression" in said[0]
    assert "text + '!' = 'hello!'" in said[1]
    assert "EVIL" not in said[1]


async def test_a_long_value_of_a_record_is_cut_between_its_parts_and_says_how_much_is_missing(
    at_desk: OpenDesk,
) -> None:
    said, _ = await open_desk(
        at_desk, Ask(asking("[{'number': one} for one in range(10_000, 10_012)]")), Ask(CALLED)
    )
    shown = said[1].partition(" = [{")[2].partition(" more characters)")[0]
    rows, _, count = shown.partition(", … (")
    assert rows.endswith("}")
    assert count.isdecimal(), said[1]
