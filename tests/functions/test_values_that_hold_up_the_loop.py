"""Values that are costly to write for a worker are written beside the event loop, and once."""

from typing import Any

import pytest

from tests.functions.support import Room
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.kit.pace import slowness
from tests.kit.sources import function_text

pytestmark = pytest.mark.asyncio(loop_scope="module")
_MOST = 50_000  # values in the arguments of a call
_DEEP = 30


def _tagged(levels: int) -> Any:  # Any: JSON
    value: Any = 1
    for _ in range(levels):
        value = {"$": value}
    return value


async def test_arguments_with_keys_that_mark_types_do_not_hold_up_the_event_loop(here: Room) -> None:
    text = function_text("count(value: object) -> int", "Count.\n\nArgs:\n    value: It.", "return len(value)")
    (here.root / "functions").mkdir(exist_ok=True)
    await here.save(text, here.root / "functions" / "count.py")
    rows = [_tagged(_DEEP) for _ in range(_MOST // _DEEP - 100)]
    returned: list[object] = []

    async def call() -> None:
        returned.append((await here.shop.call("count", {"value": rows})).value)

    stall = await stall_of(call)
    assert returned[0] == len(rows)
    assert stall.cpu_ms <= MOST_MS * slowness(), stall
