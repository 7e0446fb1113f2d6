"""Any JSON from a model or a function comes back unchanged."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.storage import Entry, Post, SavePending, Store, open_store
from sandbox.wire.strict_json import whole_value
from tests.kit.drawing import drawn
from tests.storage.support import ManualClock, begin

TEXT = st.text(st.characters())  # lone surrogates too: a model may write \ud800
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)


async def _through_the_store(payload: dict[str, Any]) -> list[object]:  # Any: JSON
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "state.db", clock=ManualClock()) as store:
            await store.post(Post("main", "user", {"client": payload}))
            turn = await store.next("main", "here")
            assert turn is not None
            await store.append(
                turn.id, 1, 0, [Entry("other", payload)], writes=[SavePending("f", payload)]
            )
            [entry] = await store.load(turn.id)
            return [turn.event.client, entry.payload, await store.pending("f")]


@settings(max_examples=drawn(30))
@given(st.dictionaries(TEXT, JSON))
def test_any_json_comes_back_as_it_was_stored_in_whole_characters(payload: dict[str, Any]) -> None:
    assert asyncio.run(_through_the_store(payload)) == [whole_value(payload)] * 3


async def test_hard_values_come_back_as_they_were_stored(store: Store) -> None:
    deep: object = [[[[{"a": [None]}]]]]
    values = ["a\x00b", "\ufffd", "é\u202e𝕏", 2**80 + 1, float("inf"), "x" * 2_000_000, deep]
    turn = await begin(store)
    sent = ["\ud800" if value == "\ufffd" else value for value in values]
    await store.append(turn.id, 1, 0, [Entry("other", {"value": value}) for value in sent])
    assert [entry.payload["value"] for entry in await store.load(turn.id)] == values
