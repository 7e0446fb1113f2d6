"""What goes wrong around a page, in a real browser: nothing that was typed is lost, and each fault is said."""

import asyncio
import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kit import Repeat, Say, ScriptedModel

from .conftest import Serve, port_of
from .test_page import HOSTILE, WAIT_MS, axe_problems, go, in_browser, page, send, settled, until
from .test_page_editor import CONTENT, double, opened, write
from .test_the_process import Process, place
from .test_what_the_page_asks import DOUBLE

__all__ = ("place",)  # a fixture
SLOW = (
    DOUBLE.strip()
    .replace("    return n * 2", "    import time\n\n    time.sleep(1.5)\n    return n + n")
    .replace("Return twice a number.", "Return twice a number, slowly.")
)


@in_browser
async def test_a_server_that_is_killed_in_the_middle_of_a_save_loses_nothing_and_half_saves_nothing(
    place: tuple[Path, str], scripted: Any
) -> None:
    root, token = place
    model: ScriptedModel = scripted([])
    (root / "functions" / "numbers.py").write_text(DOUBLE.lstrip())
    first = await asyncio.to_thread(Process, root, model, token)
    before = {path: path.read_text() for path in (root / "functions").rglob("*.py")}
    port = port_of(first.told["url"])
    seen_of = SimpleNamespace(url=first.told["url"], login=first.told["login"])
    async with page(seen_of, 1280) as (view, _):  # type: ignore[arg-type]  # it has what is used
        await opened(view)
        await write(view, SLOW)
        await view.get_by_role("button", name="Save", exact=True).click()
        await view.get_by_text("saving…").wait_for()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(first.end, signal.SIGKILL)
        await view.get_by_text("What you typed is kept in this browser.").wait_for()
        after = {path: path.read_text() for path in (root / "functions").rglob("*.py")}
        assert after == before
        again = await asyncio.to_thread(Process, root, model, token, ("--port", port))
        try:
            await view.get_by_text("The server was started again").wait_for()
            await view.get_by_label("Or paste the link here").fill(again.told["login"])
            await view.get_by_role("button", name="Log in").click()
            await view.locator(CONTENT, has_text="time.sleep").wait_for()
            await view.get_by_role("button", name="Save", exact=True).click()
            await view.get_by_text("double joined").wait_for()
            facts = await asyncio.to_thread(again.client.get, "/api/v1/functions/double")
            assert "time.sleep" in facts.json()["source"]
        finally:
            await asyncio.to_thread(again.end, signal.SIGTERM)


@in_browser
async def test_the_network_goes_and_comes_back_and_what_was_said_meanwhile_is_there_once(
    served: Serve,
) -> None:
    server = await served([Say("One."), Say("Two."), Say("Three.")])
    async with page(server) as (view, _):
        await send(view, "First.")
        await view.locator(".said.text", has_text="One.").wait_for()
        await view.context.set_offline(True)
        await send(view, "Second, offline.")
        await view.get_by_text("The server cannot be reached.").first.wait_for()
        assert await view.input_value("form textarea") == "Second, offline."
        await server.said("Said elsewhere.")
        await view.context.set_offline(False)
        await view.locator(".said.text", has_text="Two.").wait_for()
        await view.locator("form textarea").press("Enter")
        await view.locator(".said.text", has_text="Three.").wait_for()
        assert await view.locator(".said.user", has_text="Second, offline.").count() == 1
        assert await view.locator(".said.user", has_text="Said elsewhere.").count() == 1


@in_browser
async def test_two_presses_send_one_message_and_a_message_that_is_too_long_is_told_and_kept(
    served: Serve,
) -> None:
    server = await served([Repeat(Say("Done."))])
    async with page(server) as (view, _):
        await view.fill("form textarea", "Once.")
        await view.locator("form textarea").press("Enter")
        await view.locator("form textarea").press("Enter")
        await view.locator(".said.text", has_text="Done.").wait_for()
        assert await view.locator(".said.user").count() == 1
        long = "long " * 220_000
        await view.locator("form textarea").evaluate(
            "(box, text) => { box.value = text; box.dispatchEvent(new InputEvent('input', { bubbles: true })); }",
            long,
        )
        await view.locator("form textarea").press("Enter")
        await view.locator(".dock").get_by_role("alert").first.wait_for()
        assert len(await view.input_value("form textarea")) == len(long)


@in_browser
async def test_a_draft_that_cannot_be_read_or_kept_is_told_and_the_page_goes_on(
    served: Serve,
) -> None:
    server = await served([])
    await double(server)
    async with page(server, 1280) as (view, _):
        await view.evaluate("localStorage.setItem('knapper-typed:source:double', '{broken')")
        editor = await opened(view)
        assert "n * 2" in await editor.inner_text()
        full = "throw new DOMException('full', 'QuotaExceededError')"
        await view.evaluate(f"() => {{ Storage.prototype.setItem = () => {{ {full}; }}; }}")
        await write(view, DOUBLE.strip().replace("n * 2", "n + n"))
        await view.get_by_text("This browser does not keep what you type").wait_for()
        await view.get_by_role("button", name="Save", exact=True).click()
        await view.get_by_text("double joined").wait_for()


@in_browser
@pytest.mark.parametrize(
    ("path", "answer", "room"),
    [
        ("**/api/v1/functions", {"functions": [None], "rejected": [], "unused": 0}, "Functions"),
        ("**/api/v1/growth?*", {"functions": [{"function": "x", "agent": "main"}]}, "Growth"),
        ("**/api/v1/tree", {"agents": [None]}, "Agents"),
    ],
)
async def test_a_room_that_fails_says_so_and_the_others_go_on(
    served: Serve, path: str, answer: dict[str, Any], room: str
) -> None:
    server = await served([])
    async with page(server, before={path: answer}) as (view, _):
        await go(view, room)
        await view.get_by_text("This room failed").wait_for()
        await go(view, "Memory")
        await view.get_by_label("Text of human").wait_for()


@in_browser
async def test_what_stands_before_the_server_answers_in_words_of_its_own_and_is_told(
    served: Serve,
) -> None:
    server = await served([])

    async def gateway(route: Any) -> None:  # Any: playwright's
        await route.fulfill(status=502, body="<html>Bad Gateway</html>", content_type="text/html")

    async with page(server) as (view, _):
        await view.route("**/api/v1/**", gateway)
        await go(view, "Memory")
        await view.get_by_text("The server answered 502.").first.wait_for()
        await view.unroute_all()
        await view.get_by_label("Text of human").wait_for(timeout=20_000)


@in_browser
async def test_an_address_of_nothing_says_what_is_not_there(served: Serve) -> None:
    server = await served([])
    async with page(server, 390) as (view, seen):
        for room, says in (
            ("Functions/nobody", "There is no function"),
            (f"Functions/{HOSTILE}", "There is no function"),
            ("Chat/nobody", "There is no agent"),
            ("Memory/nobody", "There is no agent"),
            ("Agents/nobody", "There is no agent"),
            ("Settings/nothing", "This workspace"),
            ("Chat/main/nothing", "What should be done?"),
        ):
            await go(view, room)
            await view.locator("main").get_by_text(says).first.wait_for()
        assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await view.locator("main img, main script").count() == 0
        assert [text for text in seen if "40" not in text] == []


@in_browser
async def test_an_agent_and_a_conversation_that_are_deleted_in_another_window_leave_the_page_usable(
    served: Serve,
) -> None:
    server = await served([Repeat(Say("Done."))])
    await server.client.post("/api/v1/agents", json={"name": "books"})
    begun = await server.client.post("/api/v1/agents/main/conversations", json={"name": "Taxes"})
    async with page(server) as (view, _):
        await go(view, f"Chat/main/{begun.json()['id']}")
        await send(view, "Hello.")
        await view.locator(".said.text", has_text="Done.").wait_for()
        await settled(view, _)
        gone = await server.client.delete(f"/api/v1/agents/main/conversations/{begun.json()['id']}")
        assert gone.is_success, gone.text
        await send(view, "Still there?")
        await view.locator(".dock").get_by_role("alert").first.wait_for()
        assert await view.input_value("form textarea") == "Still there?"
        await go(view, "Chat/books")
        await view.locator("form textarea").wait_for()
        await server.client.delete("/api/v1/agents/books")
        await send(view, "And you?")
        await view.locator(".dock").get_by_role("alert").first.wait_for()
        await view.locator(".side a", has_text="main").first.click()
        await send(view, "Here.")
        await view.locator(".said.text", has_text="Done.").first.wait_for()


@in_browser
async def test_a_turn_of_a_million_tokens_and_text_from_right_to_left_fit_the_smallest_screen(
    served: Serve,
) -> None:
    server = await served([Say("שלום " * 40, usage=(1_000_000, 5_000))])
    async with page(server, 320) as (view, seen):
        await send(view, "שלום, מה שלומך?")
        await view.get_by_text("1,005,000 tokens").first.wait_for()
        assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for room in ("Functions", "Growth", "Memory", "Settings", "Settings/spending", "Agents"):
            await go(view, room)
            await settled(view, seen)
            assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth"), room
        assert await axe_problems(view) == []
        assert seen == []


@in_browser
async def test_a_page_that_slept_goes_on_where_the_conversation_is_now(served: Serve) -> None:
    server = await served([Say("One."), Say("Two.")])
    async with page(server) as (view, seen):
        await server.said("First.")
        await view.locator(".said.text", has_text="One.").wait_for()
        session = await view.context.new_cdp_session(view)
        await session.send("Page.setWebLifecycleState", {"state": "frozen"})
        await server.said("Second.")
        await session.send("Page.setWebLifecycleState", {"state": "active"})
        await view.locator(".said.text", has_text="Two.").wait_for()
        await until(view, "document.querySelectorAll('.said.text').length === 2")
        assert seen == []


@in_browser
async def test_a_result_that_is_not_json_and_one_of_hostile_keys_are_shown_as_they_are(
    served: Serve,
) -> None:
    server = await served([])
    await double(server)
    outcome = {"outcome": "returned", "value": {"__proto__": {"x": 1}, HOSTILE: "\u202e"}}

    async def answers(route: Any) -> None:  # Any: playwright's
        await route.fulfill(body=json.dumps(outcome), content_type="application/json")

    async with page(server, 1280) as (view, seen):
        await go(view, "Functions/double")
        await view.route("**/functions/double/call", answers)
        await view.locator("input[type=number]").fill("1")
        await view.get_by_role("button", name="Call", exact=True).click()
        await view.get_by_label("What it returned").wait_for(timeout=WAIT_MS)
        assert await view.locator("main img, main script").count() == 0
        assert "\u202e" not in await view.inner_text("main")
        assert seen == []
