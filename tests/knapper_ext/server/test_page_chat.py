"""The chat of the page, in a real browser: calls that fold, branches, and what waits to be decided in Growth."""

from typing import Any

import pytest

from tests.kit import Ask, Expect, Say, Wanted, contains

from .conftest import Serve
from .test_page import FETCHES, HOSTILE, go, in_browser, page, said_in, send, talk
from .test_what_the_page_asks import DOUBLE, WRONG, create

CALLS = [Wanted("double", {"n": number}) for number in range(5)]


async def answered(view: Any, text: str) -> None:  # Any: playwright's page
    await view.locator(".said.text", has_text=text).wait_for()
    await view.get_by_role("button", name="Stop").wait_for(state="detached")


@in_browser
async def test_many_calls_are_one_line_and_an_answer_says_what_its_turn_took(
    served: Serve,
) -> None:
    server = await served([create(DOUBLE), Ask(*CALLS), Say("```python\nx = 1\n```\nDone.")])
    async with page(server) as (view, seen):
        await send(view, "Double five numbers.")
        await answered(view, "Done.")
        folded = view.locator("details.folded > summary")
        assert await folded.count() == 1
        assert "Called double ×5 · 5 calls, all returned" in await folded.inner_text()
        await folded.click()
        calls = view.locator(".calls > details.call")
        assert await calls.count() == 5
        receipt = view.locator(".receipt-row")
        await receipt.get_by_text(" tokens").wait_for()
        await receipt.get_by_text(" s", exact=False).first.wait_for()
        await view.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await view.get_by_role("button", name="Copy the code").click()
        assert await view.evaluate("navigator.clipboard.readText()") == "x = 1"
        assert seen == []


@in_browser
async def test_a_message_is_edited_and_sent_again_in_a_branch_and_an_answer_is_asked_for_again(
    served: Serve,
) -> None:
    script = [
        Say("Paris is far."),
        Say("Rome is near."),
        Expect(Say("Oslo is cold."), contains("Paris is far.")),
        Say("Oslo is very cold."),
        Expect(Say("Yes, very."), contains("Oslo is very cold.")),
    ]
    server = await served(script)
    async with page(server) as (view, seen):
        for typed, told in (("Paris?", "Paris is far."), ("Rome?", "Rome is near.")):
            await send(view, typed)
            await answered(view, told)
        await view.get_by_role("button", name="Edit and send again").last.click()
        await view.get_by_label("Send it again, in a branch").fill("Oslo?")
        await view.get_by_role("button", name="Send in a branch").click()
        await answered(view, "Oslo is cold.")
        assert await said_in(view) == ["Paris?", "Paris is far.", "Oslo?", "Oslo is cold."]
        await view.get_by_role("button", name="Answer again").click()
        await answered(view, "Oslo is very cold.")
        assert (await said_in(view))[2:] == ["Oslo?", "Oslo is very cold."]
        await view.get_by_role("button", name="Branch here").last.click()
        await view.wait_for_timeout(500)
        await send(view, "Very?")
        await answered(view, "Yes, very.")
        assert (await said_in(view))[-2:] == ["Very?", "Yes, very."]
        await talk(view, "main").click()
        await answered(view, "Rome is near.")
        assert await said_in(view) == ["Paris?", "Paris is far.", "Rome?", "Rome is near."]
        assert seen == []


@in_browser
async def test_what_waits_is_looked_at_edited_and_decided_in_growth_several_at_once(
    served: Serve,
) -> None:
    server = await served([create(DOUBLE), Say("Made.")])
    await server.said("Double.")
    await server.save("halves.py", WRONG.replace("double", "half"))  # a draft
    for name in ("double", "triple"):
        wrong = WRONG.replace("double", name)
        answer = await server.client.put(f"/api/v1/functions/{name}", json={"source": wrong})
        assert answer.status_code == 422
    async with page(server) as (view, seen):
        await go(view, "Growth")
        await view.get_by_text("Made in conversations").wait_for()
        waiting = view.get_by_role("region", name="What waits for you")
        rows = waiting.locator(".waiting > li")
        await rows.nth(2).wait_for()
        double = rows.filter(has=view.get_by_label("Choose double", exact=True))
        await double.get_by_role("button", name="Diff").click()
        different = double.get_by_label("What is different")
        assert "-    return n * 2" in await different.inner_text()
        assert "+    return n + 2" in await different.inner_text()
        triple = rows.filter(has=view.get_by_label("Choose triple"))
        await triple.get_by_role("button", name="Look").click()
        await triple.get_by_label("Source of triple").wait_for()
        for name in ("double", "half"):
            await waiting.get_by_label(f"Choose {name}", exact=True).check()
        await waiting.get_by_role("button", name="Drop 2").click()
        await rows.nth(1).wait_for(state="detached")
        assert (await server.client.get("/api/v1/functions/half")).status_code == 404
        await triple.get_by_role("button", name="Edit").click()
        await view.locator(".cm-content", has_text="def triple").wait_for()
        await view.locator(".gate", has_text="rejected").wait_for()
        assert [text for text in seen if "404" not in text] == []


@in_browser
async def test_a_result_of_three_megabytes_a_text_from_right_to_left_and_a_long_name_fit_the_page(
    served: Serve,
) -> None:
    large = (
        DOUBLE.replace("double", "large").replace("n * 2", "'x' * n").replace("-> int", "-> str")
    )
    source = large.replace("        4\n", "        'xx'\n").replace(
        "        10\n", "        'xxxxx'\n"
    )
    name = "long_" + "name_" * 11
    server = await served(
        [create(source, "large"), Ask(Wanted("large", {"n": 3_000_000})), Say("שלום עולם " * 30)]
    )
    await server.save("long.py", DOUBLE.replace("double", name))
    async with page(server, 390) as (view, seen):
        await send(view, f"{HOSTILE} " + "מילה " * 40)
        await answered(view, "שלום")
        for room in ("Chat", "Functions", f"Functions/{name}", f"Functions/{name}/evidence"):
            await go(view, room)
            await view.wait_for_timeout(700)
            assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth"), room
        await go(view, "Functions/large")
        await view.locator("input[type=number]").fill("3000000")
        await view.get_by_role("button", name="Call", exact=True).click()
        await view.get_by_label("What it returned").wait_for()
        assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await view.get_by_role("button", name="Rooms and conversations").click()
        await view.locator(".side a", has_text="Growth").click()
        await view.locator("main.Growth").wait_for()
        assert seen == []


@in_browser
async def test_a_message_that_waits_is_taken_back_to_edit_and_others_say_from_where_they_are(
    served: Serve,
) -> None:
    server = await served([Say("It goes on.", pause_s=1), Say("heard two and three")])
    anna = await server.as_("anna", "chat")
    async with page(server) as (view, seen):
        await anna.post("/api/v1/agents/main/messages", json={"text": "one"})
        await view.locator(".said.user", has_text="from anna").wait_for()
        await send(view, "twoo")
        waits = view.locator(".said.unread", has_text="twoo")
        await waits.hover()
        await waits.get_by_role("button", name="Take back").click()
        await waits.wait_for(state="detached")
        assert await view.get_by_role("textbox", name="Message to main").input_value() == "twoo"
        await view.get_by_role("textbox", name="Message to main").fill("two and three")
        await view.keyboard.press("Enter")
        await answered(view, "heard two and three")
        assert "twoo" not in str([request.body for request in server.model.requests])
        own = view.locator(".said.user", has_text="two and three")
        assert "from" not in await own.inner_text()
        await view.reload()
        await view.locator(".said.user", has_text="from anna").wait_for()
        assert seen == []


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
async def test_a_conversation_opens_at_its_end_with_the_question_in_sight(
    served: Serve, width: int
) -> None:
    long = "\n\n".join(f"Paragraph {n} of an answer. " * 6 for n in range(8))
    server = await served(
        [*(Say(long) for _ in range(20)), create(FETCHES, "page_title"), Say("Made.")]
    )
    agent = await server.workspace.agent()
    for number in range(20):
        await agent.ask(f"Tell me more, {number}.")
    await agent.aclose()
    async with page(server, width) as (view, seen):
        await send(view, "Read titles.")
        last = view.locator(".log .asking").get_by_role("button").last
        await last.wait_for()
        for _ in range(2):
            await view.reload()
            await last.wait_for()
            await view.wait_for_function(
                "() => { const log = document.querySelector('.log');"
                " return log.scrollHeight - log.scrollTop - log.clientHeight < 2; }"
            )
            assert await last.evaluate(
                "(one) => one.getBoundingClientRect().bottom"
                " <= document.querySelector('.dock').getBoundingClientRect().top"
            )
        await view.set_viewport_size({"width": width - 60, "height": 700})
        await view.wait_for_function(
            "() => { const log = document.querySelector('.log');"
            " return log.scrollHeight - log.scrollTop - log.clientHeight < 2; }"
        )
        await view.locator(".log .asking").get_by_role("button", name="Once").click()
        await answered(view, "Made.")
        assert seen == []
