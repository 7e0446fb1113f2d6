"""A value that passes between functions and programs arrives with its type, or the call says why not."""

import random
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tests.conftest import OpenDesk
from tests.kit.desk import answers
from tests.kit.drawing import sampled
from tests.programs.support import ready

IMPORTS = "from datetime import UTC, date, datetime, time, timedelta, timezone\nfrom decimal import Decimal\n"
IMPORTS += "from pathlib import Path\nfrom uuid import UUID\nfrom zoneinfo import ZoneInfo\n"
FUNCTIONS = f'''\
{IMPORTS}
from typing import Any


def form(value: Any) -> str:
    """Write a value and all that is in it with its type.

    Args:
        value: Anything.
    """
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind + str(sorted(form(key) + ":" + form(item) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return kind + str([form(item) for item in value])
    if isinstance(value, (set, frozenset)):
        return kind + str(sorted(form(item) for item in value))
    return kind + repr(value)


def returned(value: Any) -> Any:
    """Return what was given.

    Args:
        value: Anything.
    """
    return value


def passed_on(self, value: Any) -> list:
    """Return the form of a value as another function got it, and as it comes back from a third.

    Args:
        value: Anything.
    """
    return [self.call("form", value=value), form(self.call("returned", value=value))]
'''


def drawn(chance: random.Random, depth: int = 0) -> Any:
    """Return a random value of the types that cross; sets and keys hold only what can be hashed."""
    moment = datetime(2026, 1, 1) + timedelta(
        seconds=chance.randrange(10**9), microseconds=chance.randrange(10**6)
    )
    zone = chance.choice(
        [
            None,
            UTC,
            timezone(timedelta(minutes=chance.randrange(-800, 800))),
            ZoneInfo("Europe/Warsaw"),
        ]
    )
    scalars: list[Any] = [
        moment.replace(tzinfo=zone),
        datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Warsaw"), fold=chance.randrange(2)),
        moment.date(),
        moment.time(),
        time(7, 30, tzinfo=ZoneInfo("America/New_York")),
        timedelta(days=chance.randrange(-9, 9), microseconds=chance.randrange(10**11)),
        Decimal(chance.randrange(10**9)).scaleb(-chance.randrange(6)),
        chance.randbytes(chance.randrange(9)),
        complex(chance.random(), -chance.random()),
        UUID(int=chance.getrandbits(128)),
        Path("depots") / str(chance.randrange(9)),
        chance.choice([None, True, 7, 2.5, float("inf"), "2026-03-01 00:00:00", "$"]),
    ]
    if depth == 3 or chance.random() < 0.4:
        return chance.choice(scalars)
    size = chance.randrange(4)
    inner = [drawn(chance, depth + 1) for _ in range(size)]
    plain = [drawn(chance, 3) for _ in range(size)]
    return chance.choice(
        [
            inner,
            tuple(inner),
            set(plain),
            frozenset(plain),
            dict(zip(plain, inner, strict=True)),
            {"$": inner, "v": 1},
        ]
    )


@pytest.mark.sampled
async def test_what_a_program_passes_by_name_or_a_function_by_call_keeps_every_type(
    at_desk: OpenDesk,
) -> None:
    chance = random.Random(20261129)
    rows = sampled([drawn(chance) for _ in range(60)], 3)
    names: dict[str, Any] = {}
    exec(FUNCTIONS, names)
    forms = [names["form"](row) for row in rows]
    written = (
        repr(rows).replace("zoneinfo.", "").replace("datetime.", "").replace("PosixPath", "Path")
    )
    code = f"{IMPORTS}inf = float('inf')\nrows = {written}\nforms = {forms!r}\n"
    code += "got = [[form(row), form(returned(row)), *passed_on(row)] for row in rows]\n"
    code += "[[own, *kinds] for own, kinds in zip(forms, got) if set(kinds) != {own}]"
    desk = await ready(at_desk, code)
    await desk.save("kinds.py", FUNCTIONS)
    told = answers(await desk.say("Go."))[0]
    assert told.splitlines()[0] == "[]", told


TYPED = f'''\
{IMPORTS}

def take(text: str = "", day: date = date.min, price: float = 0.0, count: int = 0, folder: Path | str = "") -> list:
    """Return the arguments with their types.

    Args:
        text: A text.
        day: A day.
        price: A price.
        count: How many.
        folder: A folder.
    """
    return [type(value).__name__ + " " + str(value) for value in (text, day, price, count, folder)]
'''
DECLARED = [
    ("text=Path('a/b')", 0, "str a/b"),
    ("day=datetime(2026, 3, 1, 12, 30)", 1, "datetime 2026-03-01 12:30:00"),
    ("price=Decimal('2.5')", 2, "float 2.5"),
    ("count=Decimal(7)", 3, "int 7"),
    ("folder=Path('a/b')", 4, "PosixPath a/b"),
]
SAID = [
    ("text=date(2026, 3, 1)", "text: expected text, got datetime.date(2026, 3, 1)"),
    ("day='first of March'", "day: expected a date like 2024-05-01, got 'first of March'"),
    ("price=Decimal('0.1')", "price: expected a number, got Decimal('0.1')"),
    ("no_such=date(2026, 3, 1)", "there is no argument `no_such`"),
]


async def test_what_a_declared_type_cannot_take_without_loss_is_said_and_never_turned_into_text(
    at_desk: OpenDesk,
) -> None:
    code = f"{IMPORTS}[{', '.join(f'take({given})[{at}]' for given, at, _ in DECLARED)}]"
    desk = await ready(at_desk, code, *(f"{IMPORTS}take({given})" for given, _ in SAID))
    await desk.save("kinds.py", TYPED)
    told = answers(await desk.say("Go."))[0]
    assert told.splitlines()[0] == str([want for _, _, want in DECLARED]).replace("'", '"')
    for given, says in SAID:
        assert says in answers(await desk.say("Go."))[0], given
