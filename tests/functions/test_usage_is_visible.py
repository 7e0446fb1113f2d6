"""How often a function is called, alone and within others, and what nobody needs."""

from agent_core.context import presentation
from tests.functions.support import Room
from tests.kit.sources import function_text

ONE = "\n\n".join(
    [
        function_text(
            "month_total(days: list[int]) -> int",
            "Add days up.",
            "return sum(days)",
            "month_total([1]) → 1",
        ),
        function_text("_halved(total: int) -> int", "Halve.", "return month_total([total]) // 2"),
        function_text(
            "half_month(days: list[int]) -> int", "Halve a month.", "return _halved(sum(days))"
        ),
        function_text(
            "year_total(days: list[int]) -> int", "Add a year up.", "return month_total(days) * 12"
        ),
        function_text("report(days: list[int]) -> str", "Report.", "return str(year_total(days))"),
        function_text("nobody_calls(days: list[int]) -> int", "Give none.", "return 0 * len(days)"),
        function_text(
            "dead_too(days: list[int]) -> int", "Give one.", "return 1 + nobody_calls(days)"
        ),
        function_text(
            "recursive(n: int) -> int", "Count down.", "return 0 if n < 1 else recursive(n - 1)"
        ),
    ]
)
OTHER = "\n\n".join(
    [
        "from functions.one import month_total\n",
        function_text(
            "elsewhere(days: list[int]) -> int", "Add here.", "return month_total(days) + 1"
        ),
        function_text(
            "by_self(self, days: list[int]) -> int",
            "Call.",
            'return self.call("month_total", days=days)',
        ),
    ]
)


async def a_used_library(here: Room) -> None:
    await here.save(ONE, here.root / "functions" / "one.py")
    await here.save(OTHER, here.root / "functions" / "other.py")
    for name, times in {
        "report": 2,
        "half_month": 1,
        "elsewhere": 3,
        "month_total": 1,
        "by_self": 1,
    }.items():
        for _ in range(times):
            assert (await here.shop.call(name, {"days": [1, 2]})).outcome == "returned"
    assert (await here.shop.call("recursive", {"n": 2})).outcome == "returned"


async def test_calls_within_other_functions_count_for_what_they_use(here: Room) -> None:
    await a_used_library(here)
    rows = {row.name: row for row in (await here.shop.list()).functions}
    seen = {name: (row.calls, row.usage.calls, row.callers) for name, row in rows.items()}
    assert seen == {
        "month_total": (1, 7, ("by_self", "elsewhere", "half_month", "year_total")),
        "half_month": (1, 0, ()),
        "year_total": (0, 2, ("report",)),
        "report": (2, 0, ()),
        "nobody_calls": (0, 0, ("dead_too",)),
        "dead_too": (0, 0, ()),
        "recursive": (1, 0, ()),
        "elsewhere": (3, 0, ()),
        "by_self": (1, 0, ()),
    }
    assert rows["month_total"].usage.last is not None
    assert [name for name, row in rows.items() if row.is_idle] == ["dead_too", "nobody_calls"]
    details = await here.shop.introspect("year_total")
    assert "What uses it was called 2 times" in presentation.introspection(details, {})


async def test_one_page_says_what_is_dead_weight(here: Room) -> None:
    await a_used_library(here)
    text = presentation.listing(await here.shop.list(), 1)
    assert "called 1 × and 7 × within what uses it, last " in text
    assert "used by by_self, elsewhere, half_month and 1 more" in text
    assert "- nobody_calls (one, draft, computes only; never called; used by dead_too)" in text
    assert (
        text.splitlines()[-1]
        == "Never called, and used by nothing that was: dead_too, nobody_calls."
    )
