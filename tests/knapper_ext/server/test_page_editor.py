"""A function is edited on the page, in a real browser: what the gate finds, what is saved, and what is never lost."""

from typing import Any

import pytest

from tests.kit import Expect, Say, contains

from .conftest import Serve, Served
from .test_page import HOSTILE, WAIT_MS, go, in_browser, page, until
from .test_what_the_page_asks import DOUBLE

CONTENT = ".cm-content"
PASTE = """(content, text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  content.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


async def opened(view: Any, name: str = "double") -> Any:  # Any: playwright's page, a locator
    """Open a function and return its editor."""
    await go(view, f"Functions/{name}")
    editor = view.locator(CONTENT)
    await editor.wait_for()
    return editor


async def write(view: Any, text: str) -> None:  # Any: playwright's page
    """Replace the whole source by what is pasted."""
    await view.locator(CONTENT).click()
    await view.keyboard.press("Control+a")
    await view.locator(CONTENT).evaluate(PASTE, text)


async def double(server: Served, source: str = DOUBLE) -> None:
    answer = await server.client.put("/api/v1/functions/double", json={"source": source})
    assert answer.is_success, answer.text


async def source_of(server: Served, name: str = "double") -> str:
    return str((await server.client.get(f"/api/v1/functions/{name}")).json()["source"])


@in_browser
async def test_what_the_gate_finds_stands_under_its_line_while_one_types_and_what_is_right_is_saved(
    served: Serve,
) -> None:
    server = await served([])
    await double(server)
    async with page(server, 1280) as (view, seen):
        await opened(view)
        assert await view.get_by_role("button", name="Save").is_disabled()
        await write(view, DOUBLE.strip().replace("n * 2", "n * 3"))
        found = view.locator(".found").first
        await found.get_by_text("returned").wait_for()
        assert "6" in await found.inner_text()
        line = view.locator(".cm-line.refused").first
        assert "double(2)" in await line.inner_text()
        await view.locator(".gate", has_text="rejected").wait_for()
        await view.get_by_role("button", name="Save").click()
        await view.locator(".gate", has_text="the saved one stays in use").wait_for()
        assert "n * 2" in await source_of(server)

        await write(view, DOUBLE.strip().replace("n * 2", "n + n"))
        await view.locator(".gate", has_text="would join").wait_for()
        await view.locator(".found").first.wait_for(state="detached")
        await view.keyboard.press("Control+s")
        await view.get_by_text("double joined").wait_for()
        assert "n + n" in await source_of(server)
        await view.get_by_role("button", name="Undo").click()
        await view.locator(CONTENT, has_text="n * 2").wait_for()
        assert "n * 2" in await source_of(server)
        assert [text for text in seen if "422" not in text] == []


@in_browser
async def test_what_was_typed_into_a_source_outlives_a_reload_a_new_tab_and_the_browser_session(
    served: Serve,
) -> None:
    server = await served([])
    await double(server)
    typed = DOUBLE.strip().replace("Return twice a number.", f"Return twice {HOSTILE}")
    async with page(server, 1280) as (view, seen):
        await opened(view)
        await write(view, typed)
        await until(view, "Object.keys(localStorage).some((key) => key.includes('source:double'))")
        await view.reload()
        await view.locator(CONTENT, has_text="onerror").wait_for()
        other = await view.context.new_page()
        other.set_default_timeout(WAIT_MS)
        await other.goto(f"{server.url}/#/Functions/double")
        await other.locator(CONTENT, has_text="onerror").wait_for()
        assert await view.locator("main img, main script").count() == 0
        await go(view, "Functions")
        await view.get_by_text("Not saved yet:").wait_for()
        await go(view, "Functions/double")
        await view.locator(CONTENT).wait_for()
        await view.get_by_role("button", name="Revert").click()
        await view.locator(CONTENT, has_text="Return twice a number.").wait_for()
        await view.get_by_role("button", name="Undo").click()
        await view.locator(CONTENT, has_text="onerror").wait_for()
        assert seen == []


@in_browser
@pytest.mark.parametrize("is_file", [True, False])
async def test_a_save_over_what_was_changed_meanwhile_shows_both(
    served: Serve, *, is_file: bool
) -> None:
    server = await served([])
    await double(server)
    async with page(server, 1280) as (view, seen):
        await opened(view)
        await write(view, DOUBLE.strip().replace("n * 2", "n + n"))
        theirs = DOUBLE.replace("n * 2", "2 * n")
        if is_file:
            listed = (await server.client.get("/api/v1/functions/double")).json()
            await server.save(listed["path"].removeprefix("functions/"), theirs)
        else:
            await double(server, theirs)
        await view.get_by_role("button", name="Save", exact=True).click()
        await view.get_by_text("It was changed elsewhere since you began.").wait_for()
        assert "2 * n" in await view.get_by_label("As it is now").locator(".refuses").inner_text()
        assert "n + n" in await view.get_by_label("Yours").locator(".added").inner_text()
        assert "2 * n" in await source_of(server)
        await view.get_by_role("button", name="Save mine instead").click()
        await view.get_by_text("double joined").wait_for()
        assert "n + n" in await source_of(server)
        assert [text for text in seen if "409" not in text] == []


@in_browser
async def test_a_function_is_made_from_nothing_renamed_moved_deleted_and_brought_back(
    served: Serve,
) -> None:
    server = await served([])
    async with page(server, 1280) as (view, seen):
        await go(view, "Functions")
        await view.get_by_role("link", name="New function").click()
        await view.get_by_label("Name", exact=False).first.fill("double")
        await view.get_by_label("What it does").fill("Return twice a number.")
        await view.get_by_label("Name of parameter 1").fill("n")
        await view.get_by_role("button", name="Write it").click()
        await view.locator(CONTENT, has_text="def double(n").wait_for()
        await write(view, DOUBLE.strip())
        await view.locator(".gate", has_text="would join").wait_for()
        await view.get_by_role("button", name="Save", exact=True).click()
        await view.locator(".life h2", has_text="double").wait_for()

        await view.get_by_role("button", name="Rename").last.click()
        await view.get_by_label("New name").fill("twice")
        await view.get_by_role("button", name="Rename").last.click()
        await view.locator(".life h2", has_text="twice").wait_for()
        await view.get_by_role("button", name="Undo").click()
        await view.locator(".life h2", has_text="double").wait_for()
        await view.get_by_role("button", name="Move").click()
        await view.get_by_label("Module", exact=True).fill("sums")
        await view.get_by_role("button", name="Move").click()
        await view.locator(".life .meta", has_text="sums.py").wait_for()
        await view.get_by_role("button", name="Delete", exact=True).click()
        await view.get_by_role("button", name="Delete", exact=True).click()
        await view.get_by_text("double was deleted.").wait_for()
        assert (await server.client.get("/api/v1/functions/double")).status_code == 404
        await view.get_by_role("button", name="Undo").click()
        await view.locator(".life h2", has_text="double").wait_for()
        assert "n * 2" in await source_of(server)
        assert [text for text in seen if "404" not in text] == []


@in_browser
async def test_the_assistant_is_asked_to_fix_a_finding_with_the_source_as_it_is_typed(
    served: Serve,
) -> None:
    heard = Expect(Say("I look at it."), contains("n * 3"), contains("replace_function"))
    server = await served([heard])
    await double(server)
    async with page(server, 1280) as (view, seen):
        await opened(view)
        await write(view, DOUBLE.strip().replace("n * 2", "n * 3"))
        await view.get_by_role("button", name="Let the assistant fix this").first.click()
        await view.locator(".said.text", has_text="I look at it.").wait_for()
        await go(view, "Functions/double")
        await view.locator(CONTENT, has_text="n * 3").wait_for()  # what was typed is still there
        assert seen == []


@in_browser
async def test_a_server_that_is_gone_while_saving_loses_nothing_and_a_source_of_4000_lines_is_edited(
    served: Serve,
) -> None:
    server = await served([])
    await double(server)
    long = DOUBLE.strip() + "\n" + "\n".join(f"# {number}" for number in range(4_000))
    async with page(server, 1280) as (view, seen):
        await opened(view)
        await write(view, long)
        await view.route("**/api/v1/functions/double", lambda route: route.abort())
        await view.get_by_role("button", name="Save", exact=True).click()
        await view.get_by_text("What you typed is kept in this browser.").wait_for()
        await view.unroute_all()
        began = await view.evaluate("performance.now()")
        await view.locator(CONTENT).press("Control+End")
        await view.keyboard.type("# more")
        took = await view.evaluate("performance.now()") - began
        assert took < 5_000
        await view.reload()
        await view.locator(CONTENT).press("Control+End")
        await view.locator(".cm-line", has_text="# more").wait_for()
        assert [text for text in seen if "ERR_FAILED" not in text] == []


@in_browser
async def test_two_windows_that_edit_one_function_are_told_and_the_second_save_shows_both(
    served: Serve,
) -> None:
    server = await served([])
    await double(server)
    async with page(server) as (view, seen):
        await opened(view)
        other = await view.context.new_page()
        other.set_default_timeout(WAIT_MS)
        await other.goto(f"{server.url}/#/Functions/double")
        await other.locator(CONTENT).wait_for()
        await write(view, DOUBLE.strip().replace("n * 2", "n + n"))
        await other.get_by_text("Another window of this browser edits double").wait_for()
        await write(other, DOUBLE.strip().replace("n * 2", "2 * n"))
        await view.get_by_role("button", name="Save", exact=True).click()
        await view.get_by_text("double joined").wait_for()
        await until(other, "localStorage.getItem('knapper-typed:source:double') !== null")
        await other.reload()
        await other.locator(CONTENT, has_text="2 * n").wait_for()
        await other.get_by_role("button", name="Save", exact=True).click()
        await other.get_by_text("It was changed elsewhere since you began.").wait_for()
        assert "n + n" in await source_of(server)
        assert "2 * n" in await other.get_by_label("Yours").locator(".added").inner_text()
        assert [text for text in seen if "409" not in text] == []


SCROLLED = """(() => { const box = document.querySelector('.mirror').shadowRoot.querySelector('.cm-scroller');
  return [box.scrollLeft, box.scrollWidth - box.clientWidth]; })()"""


@in_browser
@pytest.mark.parametrize("width", [1280, 390])
async def test_a_finding_that_opens_moves_no_line_and_is_no_wider_than_what_is_seen(
    served: Serve, width: int
) -> None:
    server = await served([])
    await double(server)
    wrong = DOUBLE.strip().replace("n * 2", "n + missing").replace(" the ", " ")
    async with page(server, width) as (view, seen):
        await opened(view)
        await write(view, wrong.replace("        4\n", f"        '{'long' * 3}'\n"))
        await view.locator(".found").first.wait_for()
        assert await view.evaluate(SCROLLED) == [0, 0]
        await view.locator(".found code").first.evaluate(
            "(code) => { code.textContent = 'long '.repeat(60); }"
        )
        assert await view.evaluate(SCROLLED) == [0, 0]
        await view.locator(CONTENT).evaluate("(content) => content.scrollIntoView()")
        assert await view.evaluate(SCROLLED) == [0, 0]
        assert seen == []
