"""`python -m benchmarks.best_play`: fifty tasks of 3 to 20 calls, each played optimally in two ways.

*Direct*: one reply requests all calls that do not need each other's results, so a loop takes one step, and each page of
a list and each round of a join takes one more. *Program*: one program does it all. Reported are the requests, the bytes
sent, and the *fresh* bytes: those after the prefix shared with the previous request, which a prefix cache does not
have. Each task is a separate conversation whose first request is fresh; *fresh to a server* is what remains if the
cache also holds the first request of the previous conversation. A task is solved if the program returns the expected
value and all calls of the direct play returned. The script knows the right calls, so this measures what each way costs,
not what a model can do. One of the functions computes, one reads a file under a grant, and one is a tool of an MCP
server. Last: the milliseconds of an inner call and of the same function called directly, both recorded.
"""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent_core.access.grants import Decision, Grants, Question
from agent_core.base.events import CallAnswered
from agent_core.workspace.workspace import Workspace
from knapper_ext.mcp.servers import ServerEntry
from tests.kit import Ask, Say, Seen, Step, Wanted, scripted
from tests.kit.servers import library_in

from .measure import Row, options, show, timed

AIM = 0.4
MORE_MS = 2
SIZES = (3, 4, 5, 6, 8, 9, 11, 13, 16, 19)
SHOP = '''\
def page_of_orders(cursor: int) -> dict:
    """Return the numbers of three orders from a place in the list, and the next place.

    Args:
        cursor: The place; 0 is the first.
    """
    return {"orders": [cursor * 3 + place for place in range(3)], "next": cursor + 1}


def order(number: int) -> dict:
    """Return an order: its customer, its amount, and whether it is late.

    Args:
        number: The number of the order.
    """
    import json

    with open("orders.json", encoding="utf-8") as file:
        return json.load(file)[number]
'''
ORDERS = [
    {"customer": number % 7, "amount": number * 13 % 50, "is_late": number % 3 == 0}
    for number in range(100)
]
SERVER = '''\
from mcp.server import MCPServer

server = MCPServer("shop")


@server.tool()
def customer(number: int) -> dict:
    """Return a customer: the city and the discount in percent."""
    return {"city": ["Oslo", "Bern", "Rome"][number % 3], "discount": number}


server.run("stdio")
'''
CUSTOMER = "shop__customer"


@dataclass
class Task:
    """A task: the calls of each step in direct play, the program, and the result."""

    code: str
    steps: list[list[tuple[str, int]]]
    expected: object


def tasks() -> Iterator[Task]:
    """Yield ten tasks of each of five kinds."""
    for count in SIZES:
        numbers = [*range(count)]
        code = f"sum(row['amount'] for row in each(order, range({count})))"
        yield Task(
            code,
            [[("order", number) for number in numbers]],
            sum(ORDERS[number]["amount"] for number in numbers),
        )
        code = f"[n for n in range({count}) if order(n)['is_late']]"
        yield Task(
            code,
            [[("order", number) for number in numbers]],
            [number for number in numbers if ORDERS[number]["is_late"]],
        )
        code = f"at, found = 0, []\nfor _ in range({count}):\n    page = page_of_orders(at)\n"
        code += "    found, at = found + page['orders'], page['next']\nsum(found)"
        found = [number for cursor in range(count) for number in _page(cursor)]
        yield Task(code, [[("page_of_orders", cursor)] for cursor in range(count)], sum(found))
        half = max(count // 2, 2)
        code = f"import json\n[json.loads({CUSTOMER}(order(n)['customer']))['city'] for n in range({half})]"
        customers = [int(row["customer"]) for row in ORDERS[:half]]
        rounds = [
            [("order", number) for number in range(half)],
            [(CUSTOMER, number) for number in customers],
        ]
        yield Task(code, rounds, [["Oslo", "Bern", "Rome"][number % 3] for number in customers])
        code = f"page, total = 0, 0\nwhile total < {count * 20}:\n    got = page_of_orders(page)\n"
        code += "    total += sum(order(n)['amount'] for n in got['orders'])\n    page = got['next']\ntotal"
        yield _until(count * 20, code)


def _page(cursor: int) -> list[int]:
    return [cursor * 3 + place for place in range(3)]


def _until(enough: int, code: str) -> Task:
    """Return the task that reads pages, and the orders on each, until the amounts suffice."""
    steps: list[list[tuple[str, int]]] = []
    cursor, total = 0, 0
    while total < enough and sum(map(len, steps)) < 20:
        numbers = _page(cursor)
        steps += [[("page_of_orders", cursor)], [("order", number) for number in numbers]]
        total, cursor = total + sum(ORDERS[number]["amount"] for number in numbers), cursor + 1
    return Task(code.replace(f"total < {enough}", f"total < {total}"), steps, total)


def main() -> None:
    """Measure and print the figures."""
    given = options(__doc__, rounds=10)
    show([*asyncio.run(bench()), *asyncio.run(inner_calls(given.rounds))], as_json=given.json)


@dataclass
class Spent:
    """The cost of tasks played in one way."""

    requests: int = 0
    sent: int = 0
    fresh: int = 0
    fresh_to_server: int = 0
    first: str = ""  # of the previous conversation
    solved: int = 0

    def add(self, requests: Sequence[Seen]) -> None:
        """Add the requests of one conversation. Providers put the tools before the messages."""
        texts = [json.dumps([request.body.get("tools"), request.messages]) for request in requests]
        self.requests += len(texts)
        self.sent += sum(map(len, texts))
        later = sum(len(now) - shared(then, now) for then, now in pairwise(texts))
        self.fresh += len(texts[0]) + later
        self.fresh_to_server += len(texts[0]) - shared(self.first, texts[0]) + later
        self.first = texts[0]


def shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


async def bench() -> list[Row]:
    """Return the requests and bytes of the tasks, played directly and as programs."""
    every = [*tasks()]
    direct = await _played(
        [[*_asks(task), Say("Done.")] for task in every], every, _is_each_call_made
    )
    programs: list[list[Step]] = [
        [Ask(Wanted("run_program", {"code": task.code})), Say("Done.")] for task in every
    ]
    program = await _played(programs, every, _is_result)
    rows = [Row("direct: solved", direct.solved, unit=f"of {len(every)}")]
    rows += [Row("program: solved", program.solved, unit=f"of {len(every)}")]
    for what in ("requests", "sent", "fresh", "fresh_to_server"):
        unit = "requests" if what == "requests" else "bytes"
        base, other = getattr(direct, what), getattr(program, what)
        rows.append(Row(f"direct: {what}", base, unit=unit))
        rows.append(Row(f"program: {what}", other, f"direct: {what}", other / base, AIM, unit))
    return rows


def _asks(task: Task) -> list[Step]:
    argument = {"order": "number", CUSTOMER: "number", "page_of_orders": "cursor"}
    return [
        Ask(*(Wanted(name, {argument[name]: value}) for name, value in calls))
        for calls in task.steps
    ]


def _is_each_call_made(task: Task, answers: Sequence[CallAnswered]) -> bool:
    return len(answers) == sum(map(len, task.steps)) and all(
        row.outcome == "returned" for row in answers
    )


def _is_result(task: Task, answers: Sequence[CallAnswered]) -> bool:
    return answers[0].text.partition("\n")[0] == json.dumps(task.expected)


async def _yes(question: Question) -> Decision:
    return Decision("yes")


async def _played(
    scripts: Sequence[Sequence[Step]],
    every: Sequence[Task],
    is_solved: Callable[[Task, Sequence[CallAnswered]], bool],
) -> Spent:
    """Return the cost of the tasks, each in its own conversation."""
    spent = Spent()
    with (
        tempfile.TemporaryDirectory() as folder,
        scripted([step for script in scripts for step in script]) as model,
    ):
        root = Path(folder)
        (root / "functions").mkdir()
        (root / "functions" / "shop.py").write_text(SHOP, "utf-8")
        flags = {
            "model.base_url": model.base_url,
            "model.name": "scripted",
            "memory.embedding": "none",
        }
        (root / "orders.json").write_text(json.dumps(ORDERS), "utf-8")
        (root / "server.py").write_text(SERVER, "utf-8")
        async with Workspace.open(root, flags=flags, approver=_yes) as workspace:
            entry = ServerEntry(
                command=(sys.executable, str(root / "server.py")), read=(str(root / "server.py"),)
            )
            await workspace.functions.grants.grant("order", Grants(read=("orders.json",)))
            book = library_in(workspace).book
            book.put("shop", entry)
            connection = library_in(workspace).trial("shop", entry)
            await connection.client()
            book.approve(
                "shop",
                entry,
                {tool.name: tool.to_json() for tool in connection.listing.tools.values()},
            )
            agent = await workspace.agent()
            for task in every:
                before = len(model.requests)
                events = [event async for event in agent.turn("Do the task.")]
                spent.add(model.requests[before:])
                spent.solved += is_solved(
                    task, [event for event in events if isinstance(event, CallAnswered)]
                )
                await agent.aclose()
                agent = await workspace.agent(conversation="new")
    return spent


async def inner_calls(rounds: int, calls: int = 50) -> list[Row]:
    """Return the time of a program's inner call, and how much longer it takes than a direct call."""
    clock = "import time\nbegan = time.perf_counter()\n"
    code = f"{clock}for n in range({calls}):\n    page_of_orders(n)\n(time.perf_counter() - began) / {calls} * 1000"
    script = [
        step
        for _ in range(rounds + 1)
        for step in (Ask(Wanted("run_program", {"code": code})), Say("Done."))
    ]
    inner: list[float] = []
    plain: list[float] = []
    with tempfile.TemporaryDirectory() as folder, scripted(script) as model:
        (Path(folder) / "functions").mkdir()
        (Path(folder) / "functions" / "shop.py").write_text(SHOP, "utf-8")
        flags = {
            "model.base_url": model.base_url,
            "model.name": "scripted",
            "memory.embedding": "none",
        }
        async with Workspace.open(folder, flags=flags) as workspace:
            agent = await workspace.agent()
            for _ in range(rounds + 1):  # the first is a warm-up
                events = [event async for event in agent.turn("Do it.")]
                inner += [
                    float(event.text.splitlines()[0])
                    for event in events
                    if isinstance(event, CallAnswered)
                ]
                acts = [
                    workspace.functions.call("page_of_orders", {"cursor": number})
                    for number in range(calls)
                ]
                plain.append(statistics.mean([await timed(act) for act in acts]) * 1000)
    more = statistics.median(one - other for one, other in zip(inner[1:], plain[1:], strict=True))
    rows = [
        Row("a call by itself", statistics.median(plain[1:])),
        Row("an inner call", statistics.median(inner[1:])),
    ]
    return [*rows, Row("an inner call: more than a call by itself", more, aim=MORE_MS)]


if __name__ == "__main__":
    main()
