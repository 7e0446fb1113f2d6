"""A turn's receipt over HTTP, for chat completions clients, and on the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import Say, Stall
from tests.runtime.receipt_work import (
    ASKED,
    GROWN,
    NOTHING,
    REFUSED,
    by_helper,
    conversation,
    growing,
    killed,
    prepared_place,
    reported,
    reporting,
)

from .conftest import Serve, Served, end_of
from .test_page import in_browser, page, send


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """A site that `report` in this workspace may reach."""
    with prepared_place(tmp_path) as place:
        yield place


def texts_of(place: str) -> list[str]:
    """Return the receipts of the conversation, as sentences."""
    beyond = f"wrote out/report.txt; reached {place} ×2; was refused {REFUSED}"
    grown = "created vowels_of, vowels_in"
    return [NOTHING, grown, f"{beyond}; called report", f"{beyond}; called report, reporter"]


async def receipts(server: Served) -> list[dict[str, Any]]:  # Any: JSON
    """Return the receipts next to the messages of the conversation."""
    answer = await server.client.get("/api/v1/agents/main/messages")
    found: list[dict[str, Any]] = answer.json()["receipts"]
    return found


async def test_each_turn_over_http_ends_with_its_receipt_which_is_kept(
    place: str, served: Serve
) -> None:
    server = await served(conversation(place), grants__ask="never")
    ends = [end_of(await server.said("Go.")) for _ in range(4)]
    assert [end["made"] for end in ends] == [{}, GROWN, reported(place), by_helper(place)]
    assert [end["receipt"] for end in ends] == texts_of(place)
    assert [(row["made"], row["receipt"]) for row in await receipts(server)] == [
        (end["made"], end["receipt"]) for end in ends
    ]


async def test_other_doors_have_it_and_a_retry_has_that_of_its_new_turn(
    place: str, served: Serve
) -> None:
    once = [reporting(place), Say("Written.")]
    server = await served([*once, growing(), Say("Two."), *once], grants__ask="never")
    first, again = end_of(await server.said("Go.")), end_of(await server.said(""))
    assert [end["made"] for end in (first, again)] == [reported(place), GROWN]
    assert [row["receipt"] for row in await receipts(server)] == ["created vowels_of, vowels_in"]
    asked: dict[str, Any] = {"model": "main", "messages": [{"role": "user", "content": "Go."}]}
    end = (await server.client.post("/v1/chat/completions", json=asked)).json()["knapper"][
        "events"
    ][-1]
    made = {"made": reported(place), "receipt": texts_of(place)[2]}
    assert (end["type"], {name: end[name] for name in made}) == ("turn_ended", made)


@in_browser
async def test_the_page_shows_it_below_each_turn_and_again_after_a_reload(
    place: str, tmp_path: Path, served: Serve
) -> None:
    killed(tmp_path, [reporting(place), Stall(60)])
    server = await served(conversation(place), grants__ask="never")
    cut = f"wrote out/report.txt; reached {place} ×2; was refused {REFUSED}; asked: {ASKED}; called report"
    # What was cut off goes on by itself with the first reply, and tells of all that it did.
    expected = [f"This turn: {text}" for text in [cut, cut, *texts_of(place)[1:]]]
    async with page(server) as (view, seen):
        await view.locator(".said.receipt").nth(1).wait_for()
        for number in range(2, 5):
            await send(view, "Go.")
            await view.locator(".said.receipt").nth(number).wait_for()
        assert await view.locator(".said.receipt").all_text_contents() == expected
        await view.reload()
        await view.locator(".said.receipt").nth(4).wait_for()
        assert await view.locator(".said.receipt").all_text_contents() == expected
        assert seen == []
