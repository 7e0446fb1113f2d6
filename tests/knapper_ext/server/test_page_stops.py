"""A function is stopped at a line on the page, in a real browser: set, hit, looked into, stepped on."""

from typing import Any

from tests.kit import Ask, Say, Wanted

from .conftest import Serve
from .test_page import axe_problems, go, in_browser, opened_beside, page, send
from .test_stops import armed, with_total


async def call_by_form(view: Any, numbers: str) -> None:  # Any: playwright's page
    form = view.get_by_role("region", name="Try it")
    await form.locator("textarea").fill(numbers)
    await form.get_by_role("button", name="Call", exact=True).click()


@in_browser
async def test_a_call_stops_at_a_line_and_its_variables_are_seen_changed_and_stepped_through(
    served: Serve,
) -> None:
    server, line = await with_total(served)
    async with page(server, 1280) as (view, seen):
        await go(view, "Functions/total/stop")
        stops = view.get_by_role("region", name="Where it stops", exact=True)
        await stops.get_by_placeholder("line, if condition, after N").fill(
            f"{line + 1} if number > 1"
        )
        await stops.get_by_role("button", name="Add").click()
        await stops.get_by_text("if number > 1").wait_for()
        await call_by_form(view, "[1, 2]")
        stopped = view.get_by_role("region", name=f"Stopped at line {line + 1}")
        await stopped.wait_for()
        assert "result += number" in await stopped.locator(".line.stopped").inner_text()
        variables = view.get_by_role("region", name="Variables")
        assert "result\n1" in await variables.inner_text()
        await view.get_by_label("Expression, or name = value").fill("result + 40")
        await view.keyboard.press("Enter")
        await view.get_by_role("log", name="What was typed here").get_by_text("41").wait_for()
        await view.get_by_label("Expression, or name = value").fill("result = 7")
        await view.keyboard.press("Enter")
        await variables.get_by_text("7", exact=True).wait_for()
        assert await axe_problems(view) == []
        await view.get_by_role("heading", name="Variables").click()
        await view.locator("main").focus()
        await view.keyboard.press("n")
        await view.get_by_role("region", name=f"Stopped at line {line}").wait_for()
        await variables.get_by_text("9", exact=True).wait_for()
        await view.keyboard.press("c")
        await view.get_by_label("What it returned").get_by_text("9").wait_for()
        await stops.get_by_role("button", name=f"Remove the stop at line {line + 1}").click()
        await stops.get_by_text("Nowhere yet.").wait_for()
        assert seen == []


@in_browser
async def test_a_line_is_pressed_to_stop_there_and_a_stop_of_an_agents_call_is_told_in_each_room(
    served: Serve,
) -> None:
    server, line = await with_total(
        served, [Ask(Wanted("total", {"numbers": [3]})), Say("It is 3.")]
    )
    async with page(server, 1280) as (view, seen):
        await go(view, "Functions/total/stop")
        at = view.locator(f"[data-line='{line + 2}']")
        await at.click(position={"x": 20, "y": 8})
        await view.locator(".line.armed").wait_for()
        await go(view, "Chat")
        await send(view, "Add.")
        await view.get_by_role("link", name="total stands at a stop").click()
        await view.get_by_role("region", name=f"Stopped at line {line + 2}").wait_for()
        other = await opened_beside(view, server)
        await go(other, "Functions/total/stop")
        await other.get_by_role("button", name="Continue").click()
        await view.get_by_role("region", name="Where total stops").wait_for()
        await go(view, "Chat")
        await view.locator(".said.text", has_text="It is 3.").wait_for()
        assert seen == []


@in_browser
async def test_a_call_that_stands_is_ended_and_a_stop_whose_line_is_gone_says_so(
    served: Serve,
) -> None:
    server, line = await with_total(served)
    await armed(server, str(line))
    async with page(server, 390) as (view, seen):
        await go(view, "Functions/total")
        await call_by_form(view, "[1]")
        await view.get_by_text("A call of it stands at line").wait_for()
        await view.get_by_role("link", name="Look").click()
        await view.get_by_role("button", name="End the call").click()
        await view.get_by_text("was told to end it").wait_for()
        source = (await server.client.get("/api/v1/functions/total")).json()["source"]
        changed = source.replace("for number in numbers", "for number in list(numbers)")
        put = await server.client.put("/api/v1/functions/total", json={"source": changed})
        assert put.is_success, put.text
        await view.get_by_text("its line is gone").wait_for()
        assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert seen == []
