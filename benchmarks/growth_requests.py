"""Requests of everyday work that come back: three domains, five families each, forty requests in a fixed order.

A domain is a module of functions that a person wrote, whose data a seed decides. A family works out one value for each
row, from three calls for each of three rows to six for each of forty, and asks for one figure of them all. It comes
back eight times, with other rows, other words and a twist. The text of its rule, the calls and the expected answer all
come from the same lines of Python.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

Call: TypeAlias = tuple[str, dict[str, Any]]  # Any: JSON

ROUNDS: Final = 8
_SIZES: Final = (3, 3, 8, 16, 40)
_TWISTS: Final = ("total", "total", "largest", "total", "above", "count", "smallest", "above")
_ASKED: Final = {
    "total": ("What do they come to in all?", "I need the sum of all of them."),
    "largest": ("Which value is the largest of them?", "Give me the highest of these values."),
    "smallest": ("What is the smallest of these values?", "I need the lowest value."),
    "above": ("What is the sum of those that are more than {above}?", "Add up only the ones above {above}."),
    "count": ("How many of them are more than {above}?", "Count those above {above}."),
}
_HEAD: Final = '''\
"""{about}"""

import hashlib
import json

_SEED = {seed}


def _drawn(most: int, *parts: object) -> int:
    text = repr((_SEED, *parts)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4]) % most


'''


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of request. `lines` work out `value` from `row`; `rule` says the same in words."""

    name: str
    rows: str  # the word for several rows
    rule: str
    lines: str


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A module of functions, as (parameter, type, words, result, expression) by name, with what is asked of it."""

    name: str
    about: str
    functions: dict[str, tuple[str, str, str, str, str]]
    families: tuple[Family, ...]

    def module(self, seed: int) -> str:
        """Return the source of the module whose data this seed decides."""
        parts = [
            f"def {name}({given}: {kind}) -> {result}:\n"
            f'    """Return {words}.\n\n    Args:\n        {given}: As another function or the user says it.\n    """\n'
            f"    return {expression}\n"
            for name, (given, kind, words, result, expression) in self.functions.items()
        ]
        return _HEAD.format(about=self.about, seed=seed) + "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Requested:
    """One request: its text and the expected value; `calls` are those of each row, in their order."""

    number: int
    domain: Domain
    family: Family
    text: str
    rows: list[int]
    twist: str
    above: float
    expected: float
    calls: list[list[Call]] = field(compare=False)

    @property
    def key(self) -> str:
        """The key of the answer in what the function of the family returns."""
        return "total" if self.twist == "above" else self.twist

    @property
    def arguments(self) -> dict[str, Any]:  # Any: JSON
        """The arguments for the function of the family."""
        return {"numbers": self.rows, **({"above": self.above} if self.above >= 0 else {})}


def definition(domain: Domain, family: Family, docstring: str = "", *, is_apart: bool = False) -> str:
    """Return the right function of a family; one that stands apart imports what it calls."""
    used = [name for name in domain.functions if name in family.lines]
    imports = "import json\n\n" + (f"from functions.{domain.name} import {', '.join(used)}\n\n\n" if is_apart else "")
    lines = "".join(f"        {line}\n" for line in family.lines.splitlines())
    return (
        f"{imports}def {family.name}(numbers: list[int], above: float = -1.0) -> dict[str, float]:\n"
        f"{docstring}    values = []\n    for row in numbers:\n{lines}        if value > above:\n"
        "            values.append(value)\n    figures = {'total': round(sum(values), 2), 'count': len(values)}\n"
        "    return figures | {'largest': max(values, default=0), 'smallest': min(values, default=0)}\n"
    )


def right_function(domain: Domain, family: Family, seed: int) -> str:
    """Return the whole source that a strong maker gives for a family."""
    examples = "".join(
        f"    >>> {family.name}({rows}, above={above})\n    {_figures(domain, family, seed, rows, above)}\n"
        for rows, above in (([1, 2, 3], -1.0), ([4, 9], 5.0))
    )
    words = (
        f'    """Work out one value for each of the {family.rows} with these numbers: total, count, largest, smallest.\n\n'
        f"    {family.rule}\n\n    Args:\n        numbers: The numbers of the {family.rows}.\n"
        f'        above: Only values that are more than this count.\n\n{examples}    """\n'
    )
    return definition(domain, family, words, is_apart=True)


def requests(domain: Domain, seed: int, day: int) -> Iterator[Requested]:
    """Yield the forty requests of a day in their order: each quarter has two of each family."""
    chance = random.Random(f"{domain.name} {seed} {day}")
    for number in range(ROUNDS * len(domain.families)):
        round_, place = divmod(number, len(domain.families))
        family, size, twist = domain.families[place], _SIZES[place], _TWISTS[(round_ + place) % ROUNDS]
        twist = "total" if not round_ else twist
        first = chance.randrange(100, 900)
        rows = [*range(first, first + size)] if size > ROUNDS else sorted(chance.sample(range(100, 900), size))
        every = _figures(domain, family, seed, rows, -1.0)
        above = float(round((every["largest"] + every["smallest"]) / 2)) if twist in ("above", "count") else -1.0
        calls: list[list[Call]] = []
        figures = _figures(domain, family, seed, rows, above, calls)
        shown = f"{rows[0]} to {rows[-1]}" if size > ROUNDS else f"{', '.join(map(str, rows[:-1]))} and {rows[-1]}"
        asked = _ASKED[twist][round_ % 2].format(above=f"{above:g}")
        beginning = (f"Take the {family.rows} {shown}.", f"About the {family.rows} numbered {shown}:")[round_ % 2]
        text = f"{beginning} {family.rule} {asked} Answer with the number alone."
        expected = figures["total" if twist == "above" else twist]
        yield Requested(number, domain, family, text, rows, twist, above, expected, calls)


def is_answer(requested: Requested, reply: str) -> bool:
    """Check whether a reply has the expected value: of its numbers, the last that the request itself does not have."""
    said = [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*", reply)]
    given = {float(number) for number in re.findall(r"\d+\.?\d*", requested.text)}
    own = [number for number in said if number not in given or _is_same(number, requested.expected)]
    return bool(own) and _is_same(own[-1], requested.expected)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) < 0.006


@cache
def _world(domain: Domain, seed: int) -> dict[str, Any]:  # Any: what a module holds
    names: dict[str, Any] = {}
    exec(domain.module(seed), names)
    return names


def _figures(
    domain: Domain, family: Family, seed: int, rows: list[int], above: float, calls: list[list[Call]] | None = None
) -> dict[str, float]:
    """Return what the right function returns; the calls of each row are added to `calls`."""
    made: list[Call] = []
    names = dict(_world(domain, seed))
    for name, (parameter, *_) in domain.functions.items():
        names[name] = _noted(name, parameter, names[name], made)
    exec(definition(domain, family), names)
    figures: dict[str, float] = names[family.name](rows, above)
    if calls is not None:
        count = len(made) // len(rows)
        calls += [made[start : start + count] for start in range(0, len(made), count)]
    return figures


def _noted(name: str, parameter: str, function: Callable[[Any], Any], made: list[Call]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:  # Any: JSON
        made.append((name, {parameter: value}))
        return function(value)

    return call


SHOP: Final = Domain(
    "shop",
    "A shop: orders as JSON, prices as CSV, customers and countries.",
    {
        "order_json": (
            "number",
            "int",
            "an order as JSON text: customer, item and count",
            "str",
            'json.dumps({"customer": _drawn(40, "customer", number), "item": ["lamp", "desk", "chair", "shelf"]'
            '[_drawn(4, "item", number)], "count": 1 + _drawn(9, "count", number)})',
        ),
        "price_line": (
            "item",
            "str",
            "a line of CSV: the item, its price, its weight in kg",
            "str",
            'f"{item},{5 + _drawn(900, item) / 10:.2f},{1 + _drawn(30, item, 1)}"',
        ),
        "discount_of": (
            "customer",
            "int",
            "a customer's discount in percent",
            "int",
            '_drawn(30, "percent", customer)',
        ),
        "country_of": (
            "customer",
            "int",
            "the country of a customer",
            "str",
            '["NO", "CH", "IT", "PT", "IE"][_drawn(5, "country", customer)]',
        ),
        "shipping_to": (
            "country",
            "str",
            "the cost of sending a parcel",
            "float",
            '2 + _drawn(200, "parcel", country) / 10',
        ),
        "tax_in": ("country", "str", "the tax in percent", "int", '5 + _drawn(20, "tax", country)'),
    },
    (
        Family(
            "net_of_orders",
            "orders",
            "An order's value is its count times the price of its item, less the customer's discount in percent,"
            " rounded to two decimals.",
            "order = json.loads(order_json(row))\nprice = float(price_line(order['item']).split(',')[1])\n"
            "percent = discount_of(order['customer'])\nvalue = round(order['count'] * price * (100 - percent) / 100, 2)",
        ),
        Family(
            "parcels_of_orders",
            "orders",
            "The value of an order is what its parcels cost: its count times the shipping to its customer's country.",
            "order = json.loads(order_json(row))\ncountry = country_of(order['customer'])\n"
            "value = round(order['count'] * shipping_to(country), 2)",
        ),
        Family(
            "gross_of_orders",
            "orders",
            "An order's value is its count times the price of its item, plus the tax in percent of its customer's"
            " country, rounded to two decimals.",
            "order = json.loads(order_json(row))\nprice = float(price_line(order['item']).split(',')[1])\n"
            "percent = tax_in(country_of(order['customer']))\n"
            "value = round(order['count'] * price * (100 + percent) / 100, 2)",
        ),
        Family(
            "delivered_orders",
            "orders",
            "An order's value is its count times the price of its item, less the customer's discount in percent, plus"
            " one shipping to the customer's country, rounded to two decimals.",
            "order = json.loads(order_json(row))\nprice = float(price_line(order['item']).split(',')[1])\n"
            "percent = discount_of(order['customer'])\nshipping = shipping_to(country_of(order['customer']))\n"
            "value = round(order['count'] * price * (100 - percent) / 100 + shipping, 2)",
        ),
        Family(
            "invoice_of_orders",
            "orders",
            "An order's value is its count times the price of its item, less the customer's discount in percent; add"
            " one shipping to the customer's country, then that country's tax in percent on all of it; round to two"
            " decimals.",
            "order = json.loads(order_json(row))\nprice = float(price_line(order['item']).split(',')[1])\n"
            "percent = discount_of(order['customer'])\ncountry = country_of(order['customer'])\n"
            "goods = order['count'] * price * (100 - percent) / 100\n"
            "value = round((goods + shipping_to(country)) * (100 + tax_in(country)) / 100, 2)",
        ),
    ),
)
CALENDAR: Final = Domain(
    "calendar",
    "A guest house with a calendar of its own: stays, odd months, days of rest, rates and clubs.",
    {
        "stay_json": (
            "number",
            "int",
            "a stay as JSON text: its day of the year, room, nights and guest",
            "str",
            'json.dumps({"day": 1 + _drawn(390, "day", number), "room": ["oak", "elm", "fir"][_drawn(3, "room", number)],'
            ' "nights": 1 + _drawn(6, "nights", number), "guest": _drawn(50, "guest", number)})',
        ),
        "month_of_day": (
            "day",
            "int",
            "the month in which a day of the year lies; months differ in length",
            "int",
            "next(month for month in range(1, 15) if day <= sum(27 + each % 4 for each in range(1, month + 1)))",
        ),
        "rest_days_in": ("month", "int", "how many days of rest a month has", "int", '2 + _drawn(7, "rest", month)'),
        "rate_of_room": (
            "room",
            "str",
            "the price of a night in a room",
            "float",
            '30 + _drawn(900, "rate", room) / 10',
        ),
        "club_of_guest": (
            "guest",
            "int",
            "the club of a guest",
            "str",
            '["sun", "moon", "none"][_drawn(3, "club", guest)]',
        ),
        "bonus_of_club": ("club", "str", "the bonus of a club in percent", "int", '_drawn(25, "bonus", club)'),
    },
    (
        Family(
            "points_of_stays",
            "stays",
            "A stay's value is its nights times the bonus in percent of the guest's club.",
            "stay = json.loads(stay_json(row))\nvalue = stay['nights'] * bonus_of_club(club_of_guest(stay['guest']))",
        ),
        Family(
            "rest_of_stays",
            "stays",
            "A stay's value is its nights times the days of rest in the month of its day.",
            "stay = json.loads(stay_json(row))\nmonth = month_of_day(stay['day'])\nvalue = stay['nights'] * rest_days_in(month)",
        ),
        Family(
            "season_of_stays",
            "stays",
            "A stay's value is its nights times the rate of its room, plus one percent for each day"
            " of rest in the month of its day, rounded to two decimals.",
            "stay = json.loads(stay_json(row))\npercent = rest_days_in(month_of_day(stay['day']))\n"
            "value = round(stay['nights'] * rate_of_room(stay['room']) * (100 + percent) / 100, 2)",
        ),
        Family(
            "credit_of_stays",
            "stays",
            "A stay's value is its nights times the bonus of the guest's club, plus the days of rest"
            " in the month of its day.",
            "stay = json.loads(stay_json(row))\nbonus = bonus_of_club(club_of_guest(stay['guest']))\n"
            "value = stay['nights'] * bonus + rest_days_in(month_of_day(stay['day']))",
        ),
        Family(
            "bill_of_stays",
            "stays",
            "A stay's value is its nights times the rate of its room, less the bonus of the guest's"
            " club in percent, then plus one percent for each day of rest in the month of its day; round to two decimals.",
            "stay = json.loads(stay_json(row))\nbonus = bonus_of_club(club_of_guest(stay['guest']))\n"
            "percent = rest_days_in(month_of_day(stay['day']))\nprice = stay['nights'] * rate_of_room(stay['room'])\n"
            "value = round(price * (100 - bonus) / 100 * (100 + percent) / 100, 2)",
        ),
    ),
)
LOGS: Final = Domain(
    "logs",
    "Lines of a log and what belongs to them: services, teams, notes as texts.",
    {
        "log_line": (
            "number",
            "int",
            "a line of the log, such as `WARN svc=mail ms=523 user=7`",
            "str",
            "f\"{['INFO', 'WARN', 'FAIL'][_drawn(3, number)]} svc={['mail', 'web', 'pay', 'disk'][_drawn(4, 1, number)]}"
            ' ms={1 + _drawn(900, 2, number)} user={_drawn(60, 3, number)}"',
        ),
        "weight_of_level": ("level", "str", "how much a level of the log weighs", "int", "1 + _drawn(9, level)"),
        "team_of_service": (
            "service",
            "str",
            "the team that keeps a service",
            "str",
            '["red", "blue", "green"][_drawn(3, service)]',
        ),
        "cost_of_team": ("team", "str", "what a minute of a team costs", "float", "1 + _drawn(80, team) / 10"),
        "note_of_user": (
            "user",
            "int",
            "the note of a user: a text of some words",
            "str",
            '" ".join(["late", "slow", "again", "fine", "broken"][_drawn(5, user, n)] for n in range(2 + _drawn(9, user)))',
        ),
        "limit_of_service": (
            "service",
            "str",
            "the milliseconds that a service may take",
            "int",
            '50 + _drawn(400, "limit", service)',
        ),
    },
    (
        Family(
            "cost_of_lines",
            "log lines",
            "A line's value is its ms divided by 100, times the cost of the team that keeps its"
            " service, rounded to two decimals.",
            "fields = dict(part.split('=') for part in log_line(row).split()[1:])\n"
            "value = round(int(fields['ms']) / 100 * cost_of_team(team_of_service(fields['svc'])), 2)",
        ),
        Family(
            "words_of_lines",
            "log lines",
            "A line's value is the number of words in the note of its user, times the weight of its level.",
            "line = log_line(row).split()\nwords = note_of_user(int(line[3].split('=')[1])).split()\n"
            "value = len(words) * weight_of_level(line[0])",
        ),
        Family(
            "excess_of_lines",
            "log lines",
            "A line's value is how many ms it took over the limit of its service, at least 0, times"
            " the cost of the team that keeps the service, rounded to two decimals.",
            "fields = dict(part.split('=') for part in log_line(row).split()[1:])\n"
            "over = max(0, int(fields['ms']) - limit_of_service(fields['svc']))\n"
            "value = round(over * cost_of_team(team_of_service(fields['svc'])), 2)",
        ),
        Family(
            "burden_of_lines",
            "log lines",
            "A line's value is the weight of its level times how many ms it took over the limit of"
            " its service, at least 0, plus the number of words in the note of its user that are `again`, times the"
            " letters in the name of the team that keeps the service.",
            "line = log_line(row).split()\nfields = dict(part.split('=') for part in line[1:])\n"
            "over = max(0, int(fields['ms']) - limit_of_service(fields['svc']))\n"
            "again = note_of_user(int(fields['user'])).split().count('again')\n"
            "value = weight_of_level(line[0]) * over + again * len(team_of_service(fields['svc']))",
        ),
        Family(
            "bill_of_lines",
            "log lines",
            "A line's value is the weight of its level times how many ms it took over the limit of"
            " its service, at least 0, plus the number of words in the note of its user times the cost of the team that"
            " keeps the service; round to two decimals.",
            "line = log_line(row).split()\nfields = dict(part.split('=') for part in line[1:])\n"
            "over = max(0, int(fields['ms']) - limit_of_service(fields['svc']))\n"
            "words = len(note_of_user(int(fields['user'])).split())\n"
            "cost = cost_of_team(team_of_service(fields['svc']))\n"
            "value = round(weight_of_level(line[0]) * over + words * cost, 2)",
        ),
    ),
)
DOMAINS: Final = {domain.name: domain for domain in (SHOP, CALENDAR, LOGS)}
