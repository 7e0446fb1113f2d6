"""The page in a real browser: `make test-page` where Chromium and playwright are installed, otherwise skipped."""

import asyncio
import base64
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

import httpx2
import pytest

from agent_core.workspace.model_check import keep_address
from knapper_ext.server.app import ServeOptions
from sandbox import Sandbox
from tests.interfaces.support import FLAWED
from tests.interfaces.support import create as create_vowels
from tests.kit import Ask, Cut, Expect, Say, ScriptedModel, Wanted, contains
from tests.kit.npm import axe_source

from .conftest import Serve, Served, port_of
from .conftest import server as running
from .test_the_api import READS
from .test_what_the_page_asks import DOUBLE, WRONG, create

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
AXE = axe_source()
HAS_BROWSER = CHROMIUM is not None and find_spec("playwright") is not None
ROOMS = ("Chat", "Functions", "Growth", "Memory", "Settings", "Agents", "Steps", "Approvals")
WAIT_MS = 120_000
DELIVERED = '''
def greeting(name: str) -> str:
    """Greet somebody <img src=x onerror=alert(3)>.

    >>> greeting("Ann")
    'Hello, Ann!'
    >>> greeting("Bo")
    'Hello, Bo!'
    """
    return f"Hello, {name}!"
'''
FETCHES = '''
def page_title(self, path: str) -> str:
    """Return the title of a page.

    Args:
        path: Its path.

    Examples:
        >>> page_title("one")
        'Example'
        >>> page_title("two")
        'Other'
    """
    text = self.fetch(f"https://example.org/{path}").text
    return text.partition("<title>")[2].partition("</title>")[0]
'''


def in_browser(test: Any) -> Any:  # Any: a test
    """Mark a test that needs a browser; without one it is skipped."""
    return pytest.mark.page(
        pytest.mark.skipif(not HAS_BROWSER, reason="needs Chromium and playwright")(test)
    )


async def test_the_page_loads_nothing_from_elsewhere(served: Serve) -> None:
    server = await served([])
    seen, wanted = set[str](), ["/"]
    async with httpx2.AsyncClient(base_url=server.url) as browser:
        while wanted:
            path = wanted.pop()
            answer = await browser.get(path)
            assert answer.status_code == 200, path
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
            assert "dangerouslySetInnerHTML=" not in answer.text
            seen.add(path)
            named = re.findall(r'(?:src=|href=)\s*"(/page/[\w./-]+)"', answer.text)
            named += [
                urljoin(path, name)
                for name in re.findall(r'(?:from |import\()"(\./[\w./-]+)"', answer.text)
            ]
            wanted += [name for name in named if name not in seen and name not in wanted]
    assert len(seen) > 30


@in_browser
async def test_a_conversation_is_streamed_and_is_there_again_after_a_reload(served: Serve) -> None:
    called = Ask(Wanted("days_between", {"start": "2026-01-01", "end": "2026-11-22"}))
    server = await served([Say("What can I make?"), called, Say("325 days.")])
    server.workspace.create(server.workspace.root)
    await server.workspace.functions.reload()
    async with page(server) as (view, seen):
        await send(view, "hello")
        await view.get_by_text("What can I make?").first.wait_for()
        await send(view, "How many days?")
        await view.locator(".said", has_text="325 days.").wait_for()
        before = await log_of(view)
        await view.reload()
        await view.locator(".said", has_text="325 days.").wait_for()
        assert await log_of(view) == before
        assert seen == []


@in_browser
async def test_what_a_reply_stresses_and_its_code_look_so_and_are_texts(served: Serve) -> None:
    fence = f"```python\nprint('{HOSTILE}')\n```"
    server = await served(
        [Say(f"**Yes {HOSTILE}**: `f({HOSTILE})` does 2 ** 3.\n\n{fence}\nDone.")]
    )
    async with page(server) as (view, seen):
        await send(view, "hello")
        said = view.locator(".said", has_text="Done.")
        await said.wait_for()
        assert await said.locator("strong").inner_text() == f"Yes {HOSTILE}"
        assert [text.strip() for text in await said.locator("code").all_inner_texts()] == [
            f"f({HOSTILE})",
            f"print('{HOSTILE}')",
        ]
        assert await said.locator("img, script").count() == 0
        assert "does 2 ** 3." in await said.inner_text()
        assert seen == []


@in_browser
async def test_what_an_agent_grows_is_shown_in_each_room_as_it_is_written(served: Serve) -> None:
    server = await served(
        [create(WRONG), create(DOUBLE), Ask(Wanted("double", {"n": 21})), Say("42")]
    )
    async with page(server) as (view, seen):
        await send(view, "Double 21.")
        await view.locator(".said", has_text="42").wait_for()
        await shows_both_attempts(view)
        summary = await view.locator("details.call > summary").inner_text()
        assert " ".join(summary.split()).startswith("✓ double(n=21) → 42")

        await go(view, "Growth")
        await view.locator("ol.stages li").nth(5).wait_for()
        stages = await view.locator("ol.stages li strong").all_inner_texts()
        assert stages == ["wanted", "written", "rejected", "fixed", "admitted", "used"]

        await go(view, "Steps")
        await view.get_by_text("What the model saw").wait_for()
        titles = " ".join(" ".join(await view.locator("main summary").all_inner_texts()).split())
        parts = ("instructions", "functions", "conversation")
        assert all(re.search(rf"{part}.*≈ [\d,]+ token", titles) for part in parts)
        assert await view.locator("tr.sum").count() == 1
        assert seen == []


async def shows_both_attempts(view: Any) -> None:  # Any: playwright's page
    """Check that the rejected attempt gives the reason, and the created one its description and folded source."""
    rejected, made = view.locator("section.made").nth(0), view.locator("section.made").nth(1)
    assert await rejected.get_attribute("aria-label") == "rejected double"
    assert (
        "0 of 2 examples" in await rejected.inner_text()
        or "1 of 2 examples" in await rejected.inner_text()
    )
    assert "its example says 10" in (await rejected.inner_text()).replace("`", "")
    title = await made.locator("h3").inner_text()
    assert " ".join(title.split()) == "✓ made double(n: int) -> int"
    assert "Return twice a number." in await made.inner_text()
    assert await made.locator(".meta span").all_inner_texts() == [
        "trial",
        "2 of 2 examples",
        "computes only",
    ]
    assert not await made.locator(".source").is_visible()
    await made.get_by_text("Source", exact=True).click()
    assert await made.locator(".source .line").first.get_attribute("data-line") == "1"


@in_browser
async def test_a_function_is_shown_while_the_model_writes_it(served: Serve) -> None:
    server = await served([Ask(*create(DOUBLE).calls, pause_s=0.2), Say("Made.")])
    async with page(server) as (view, seen):
        await send(view, "Make double.")
        growing = view.locator("section[aria-label='writing double']")
        await growing.get_by_text("def double").wait_for()
        assert "\\n" not in await growing.inner_text()
        await view.locator(".said", has_text="Made.").wait_for()
        assert (await growing.count(), await view.locator(".call").count()) == (0, 1)
        assert seen == []


@in_browser
async def test_a_call_that_raises_shows_its_error_and_the_page_goes_on(served: Serve) -> None:
    server = await served([])
    raising = DOUBLE.replace(
        "    return n * 2",
        "    if n < 0:\n        raise ValueError('below zero')\n    return n * 2",
    )
    assert (
        await server.client.put("/api/v1/functions/double", json={"source": raising})
    ).status_code == 200
    async with page(server) as (view, seen):
        await go(view, "Functions")
        await view.get_by_role("link", name="double", exact=True).click()
        await view.locator("input[type=number]").fill("-3")
        await view.get_by_role("button", name="Call", exact=True).click()
        told = await view.get_by_label("The error").inner_text()
        assert "ValueError: below zero" in told
        assert "n = -3" in told
        await go(view, "Memory")
        await view.locator("main.Memory").wait_for()
        assert seen == []


@in_browser
async def test_a_function_is_searched_called_compared_and_rolled_back(served: Serve) -> None:
    server = await served([])
    for source in (DOUBLE, DOUBLE.replace("n * 2", "n + n")):
        assert (
            await server.client.put("/api/v1/functions/double", json={"source": source})
        ).status_code == 200
    async with page(server) as (view, seen):
        await go(view, "Functions")
        await view.keyboard.press("/")
        await view.keyboard.type("twice a num")
        await view.locator("tbody tr", has_text="Return twice a number").wait_for()
        await view.keyboard.press("ArrowDown")
        assert await view.evaluate("document.activeElement.innerText") == "double"
        row = view.locator("tbody tr", has_text="Return twice a number")
        await row.wait_for()
        await row.locator("svg.strip").wait_for()
        assert "trial" in await row.inner_text()
        await view.get_by_role("link", name="double", exact=True).click()
        await view.locator("input[type=number]").fill("4")
        await view.get_by_role("button", name="Call", exact=True).click()
        await view.get_by_label("What it returned").wait_for()
        assert await view.get_by_label("What it returned").inner_text() == "8"
        await view.get_by_role("link", name="Evidence").click()
        await view.get_by_role("button", name="Run them").click()
        await view.locator("li", has_text="double(5) → 10 ✓").wait_for()
        await view.get_by_text("do its examples hold?").wait_for()
        await view.get_by_role("link", name="Versions").click()
        old, new = (
            view.get_by_label("Version 1", exact=True),
            view.get_by_label("Version 2", exact=True),
        )
        assert "    return n * 2" in await old.locator(".refuses").inner_text()
        assert "    return n + n" in await new.locator(".added").inner_text()
        await view.get_by_role("button", name="Go back to 1").click()
        await view.get_by_label("Version 3 on the right").wait_for()
        await view.get_by_role("link", name="Source").click()
        await view.locator(".cm-content", has_text="return n * 2").wait_for()
        for _ in range(4):
            await view.go_back()
        await view.get_by_role("search").wait_for()
        assert seen == []


@in_browser
async def test_an_edit_shows_what_it_changed(served: Serve) -> None:
    change = {
        "function_name": "double",
        "changes": [{"old_text": "return n * 2", "new_text": "return n + n"}],
        "reason": "plainer",
    }
    replaced = {
        "function_name": "double",
        "function_code_with_docstring": DOUBLE.replace("n * 2", "2 * n"),
        "reason": "shorter",
    }
    edits = [Ask(Wanted("edit_function", change)), Ask(Wanted("replace_function", replaced))]
    server = await served([create(DOUBLE), *edits, Say("Done.")])
    async with page(server) as (view, seen):
        await send(view, "Make it, and change it.")
        await view.locator(".said", has_text="Done.").wait_for()
        for at, rows in (
            (1, ["-    return n * 2", "+    return n + n"]),
            (2, ["-    return n + n", "+    return 2 * n"]),
        ):
            card = view.locator("section.made").nth(at)
            assert await card.get_attribute("aria-label") == "changed double"
            text = (await card.get_by_label("What is different").inner_text()).splitlines()
            assert [row for row in text if row[:1] in {"-", "+"}] == rows
        assert seen == []


@in_browser
async def test_an_edit_of_a_refused_candidate_shows_its_lines_as_they_are_indented(
    served: Serve,
) -> None:
    mended = DOUBLE.replace("n * 2", "2 * n")
    old, new = (
        next(row for row in text.splitlines() if "return" in row) for text in (WRONG, mended)
    )
    change = {
        "function_name": "double",
        "changes": [{"old_text": f"\n{old}", "new_text": f"\n{new}"}],
    }
    server = await served(
        [create(WRONG), Ask(Wanted("edit_function", change)), Say("**Done**, `double` is mended.")]
    )
    async with page(server) as (view, seen):
        await send(view, "Make it.")
        await view.locator(".said", has_text="Done").wait_for()
        mended_card = view.locator("section.made").nth(1)
        assert (
            await mended_card.get_attribute("aria-label") == "made double"
        )  # it did not exist before
        text = await mended_card.get_by_label("What is different").inner_text()
        assert [row for row in text.splitlines() if row] == [f"-{old}", f"+{new}"]
        await go(view, "Steps")
        await view.locator("option", has_text="Done, double is mended.").wait_for(state="attached")
        assert seen == []


MARKDOWN = """# Sales

Both **regions**, see [the docs](https://example.org/docs):

| region | sales |
|:-------|------:|
| North  | 1,204 |

1. one
   - nested
2. two

> said

Last."""


@in_browser
async def test_markdown_is_read_whole_as_it_streams(served: Serve) -> None:
    server = await served([Say(MARKDOWN, pause_s=0.01)])
    async with page(server) as (view, seen):
        await send(view, "hello")
        said = view.locator(".said.text", has_text="Last.")
        await said.wait_for()
        for shape, text in (
            ("h3", "Sales"),
            ("p strong", "regions"),
            ("thead th.right", "sales"),
            ("td.right", "1,204"),
            ("ol > li ul li", "nested"),
            ("blockquote p", "said"),
        ):
            assert (await said.locator(shape).inner_text()).strip() == text
        link = said.locator("a")
        assert await link.get_attribute("href") == "https://example.org/docs"
        assert (await link.get_attribute("rel"), await link.get_attribute("target")) == (
            "noopener noreferrer",
            "_blank",
        )
        heard = (
            "Sales Both regions, see the docs: region sales North 1,204 one nested two said Last."
        )
        assert (await view.locator("p[role=status]").text_content()).split() == heard.split()
        assert seen == []


LURES = """<img src=x onerror=alert(1)> and <a href="javascript:alert(2)">here</a>

<script>alert(3)</script>

<iframe src="https://evil.example"></iframe>

![a](https://evil.example/x.png?secret=1) ![b](data:image/svg+xml,<svg/onload=alert(4)>) ![c](x" onerror="alert(5))

[d](javascript:alert(6)) [e](JaVaScRiPt&#58;alert(7)) [f](data:text/html,<script>alert(8)</script>) [g](vbscript:x)
[h](//evil.example) [i](/api/v1/agents) [j](file:///etc/passwd) [k](\tjavascript:alert(9)) <javascript:alert(10)>
[l](blob:x) [m](https://user@evil.example "t\" onmouseover=alert(11)") [n]: javascript:alert(12)

[o][n] | a |
|-|-|
| <b onclick=alert(13)> | `<i>` |

```html"><img src=x onerror=alert(14)>
<b>code</b>
```
right‮tfel

End."""


@in_browser
async def test_no_html_no_picture_and_no_address_of_another_kind_of_a_model_passes(
    served: Serve,
) -> None:
    server = await served([Say(LURES)])
    async with page(server) as (view, seen):
        await send(view, "hello")
        said = view.locator(".said.text", has_text="End.")
        await said.wait_for()
        assert (
            await said.locator(
                "img, script, iframe, svg:not(.icon), b, i, form, input, object, embed, style, link"
            ).count()
            == 0
        )
        addresses = await said.locator("a").evaluate_all(
            "(links) => links.map((link) => link.href)"
        )
        assert [
            text
            for text in addresses
            if not text.startswith(("https://evil.example", "https://user@evil"))
        ] == []
        assert len(addresses) == 2  # the picture, and the web address
        named = await said.evaluate(
            "(part) => [...part.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
        )
        assert not [
            name for name in named if name.startswith("on") or name in {"src", "style", "srcdoc"}
        ]
        text = await said.inner_text()
        assert "<img src=x onerror=alert(1)>" in text
        assert "\\u202etfel" in text
        assert seen == []


@in_browser
@pytest.mark.parametrize(
    "lure",
    [
        ">" * 40_000,
        "_a_" * 15_000,
        "|a" * 2_000 + "\n" + "|-" * 2_000 + "\n" + "|\n" * 9_000,
        "- " * 20_000,
    ],
)
async def test_a_text_that_is_made_to_take_long_leaves_the_page_usable(
    served: Serve, lure: str
) -> None:
    server = await served([Say(lure), Say("Still here.")], model__context_tokens=200_000)
    async with page(server) as (view, seen):
        await send(view, "hello")
        await view.locator(".said.text").first.wait_for(state="attached")
        await view.get_by_role("button", name="Stop").wait_for(state="detached")
        await send(view, "again")
        await view.locator(".said.text", has_text="Still here.").wait_for()
        assert seen == []


@in_browser
async def test_a_question_is_answered_where_it_is_asked_and_once(served: Serve) -> None:
    server = await served([create(FETCHES, "page_title"), Say("Made.")])
    async with page(server) as (view, seen):
        await send(view, "Read titles.")
        card = view.locator(".log .asking")
        await card.get_by_role("button", name="Once").wait_for()
        assert "fetch from example.org" in await card.inner_text()
        buttons = await card.get_by_role("button").all_inner_texts()
        assert buttons == ["Once", "Always", "No", "Never", "No, with a word"]
        assert await card.locator("button.strong").count() == 0
        await card.get_by_role("button", name="Once", disabled=False).wait_for()
        await view.keyboard.press("Alt+q")
        assert await view.evaluate("document.activeElement.innerText") == "Once"
        await view.keyboard.press("Tab")
        await view.keyboard.press("Enter")
        await view.locator(".said.text", has_text="Made.").wait_for()
        assert await card.count() == 0
        assert (
            "page_title asked to fetch from example.org: allowed always"
            in await view.inner_text(".log")
        )
        grants = (
            await server.client.get("/api/v1/grants", params={"function": "page_title"})
        ).json()
        assert "example.org" in str(grants)
        await go(view, "Approvals")
        await view.get_by_text("No question waits").wait_for()
        assert seen == []


@in_browser
async def test_a_message_that_is_sent_while_a_question_waits_is_seen_at_once_in_each_tab_and_later_in_its_place(
    served: Serve,
) -> None:
    server = await served(
        [create(FETCHES, "page_title"), Expect(Say("Made."), contains("And be quick."))]
    )
    async with page(server) as (view, seen):
        other = await opened_beside(view, server)
        await send(view, "Read titles.")
        await (
            view.locator(".log .asking")
            .get_by_role("button", name="Once", disabled=False)
            .wait_for()
        )
        await send(view, "And be quick.")
        for tab in (view, other):
            await tab.locator(
                ".said.user", has_text="And be quick. (waits: added to this turn)"
            ).wait_for()
        late = await opened_beside(view, server)
        await late.locator(".said.user", has_text="And be quick. (waits").wait_for()
        await view.locator(".log .asking").get_by_role("button", name="Once").click()
        for tab in (view, other, late):
            await tab.locator(".said.text", has_text="Made.").wait_for()
            assert await said_in(tab) == ["Read titles.", "And be quick.", "Made."]
        await late.reload()
        await late.locator(".said.text", has_text="Made.").wait_for()
        assert await said_in(late) == ["Read titles.", "And be quick.", "Made."]
        assert seen == []


@in_browser
async def test_a_host_that_no_text_names_is_asked_for_once_when_it_is_known(served: Serve) -> None:
    anywhere = FETCHES.replace('f"https://example.org/{path}"', "path")
    call = Ask(Wanted("page_title", {"path": "http://127.0.0.1:1/"}))
    server = await served([create(anywhere, "page_title"), call, Say("No.")])
    async with page(server) as (view, seen):
        await send(view, "Read the title.")
        card = view.locator(".log .asking")
        await card.get_by_role("button", name="No", exact=True).wait_for()
        assert "fetch from 127.0.0.1:1" in await card.inner_text()
        await view.wait_for_timeout(700)
        await card.get_by_role("button", name="No", exact=True).click()
        await view.locator(".said.text", has_text="No.").wait_for()
        assert (await view.inner_text(".log")).count("asked to") == 1
        assert seen == []


@in_browser
async def test_a_new_conversation_begins_empty_and_the_old_one_stays_and_is_found(
    served: Serve,
) -> None:
    server = await served([Say("Lighthouses are tall."), Say("Hello anew.")])
    async with page(server) as (view, seen):
        await send(view, "Tell me of lighthouses.")
        await view.locator(".said.text", has_text="tall").wait_for()
        await view.get_by_text(re.compile(r"\d of [\d,]+ tokens$")).wait_for()
        await view.get_by_role("button", name="New conversation").click()
        await view.get_by_text("Nothing was said yet").wait_for()
        assert await view.get_by_text(re.compile(r"of [\d,]+ tokens$")).count() == 0
        await send(view, "hello")
        await view.locator(".said.text", has_text="anew").wait_for()
        await view.reload()
        await view.locator(".said.text", has_text="anew").wait_for()
        assert await said_in(view) == ["hello", "Hello anew."]
        assert "lighthouses" not in server.model.requests[-1].text
        await talk(view, "main").click()
        await view.locator(".said.text", has_text="tall").wait_for()
        assert await said_in(view) == ["Tell me of lighthouses.", "Lighthouses are tall."]
        await go(view, "Memory")
        await view.get_by_label("In what was said").fill("lighthouses")
        await view.get_by_role("button", name="Search", exact=True).click()
        await view.get_by_text("Lighthouses are tall.").wait_for()
        await view.go_back()
        await view.go_back()
        await view.locator(".said.text", has_text="anew").wait_for()  # each has its address
        assert seen == []


def talk(view: Any, name: str) -> Any:  # Any: of playwright
    """Return the link to a conversation in the page's side."""
    return view.locator("nav ul[aria-label^='Conversations'] a", has_text=name)


@in_browser
async def test_conversations_are_renamed_deleted_and_brought_back_in_their_list(
    served: Serve,
) -> None:
    server = await served([Say("One."), Say("Two.")])
    async with page(server) as (view, seen):
        await send(view, "first")
        await view.locator(".said.text", has_text="One.").wait_for()
        await view.get_by_role("button", name="New conversation").click()
        await view.get_by_text("Nothing was said yet").wait_for()
        await send(view, HOSTILE)
        await view.locator(".said.text", has_text="Two.").wait_for()
        await talk(view, HOSTILE[:10]).wait_for()
        assert await view.get_by_role("button", name="Delete main").count() == 0
        assert await view.locator("nav img, nav script").count() == 0
        await view.get_by_role("button", name=f"Rename {HOSTILE[:10]}").click()
        await view.fill("main textarea", "a draft")
        await view.get_by_role("textbox", name="Name of").fill("Trips")
        await view.get_by_role("button", name="Keep", exact=True).click()
        await view.get_by_role("button", name="Rename Trips").wait_for()
        assert await view.input_value("main textarea") == "a draft"
        await talk(view, "main").click()
        await view.locator(".said.text", has_text="One.").wait_for()
        await view.get_by_role("button", name="Delete Trips").click()
        await talk(view, "Trips").wait_for(state="detached")
        await view.get_by_role("button", name="Undo").click()
        await talk(view, "Trips").click()
        await view.locator(".said.text", has_text="Two.").wait_for()
        await view.get_by_role("heading", name="Trips").wait_for()
        assert seen == []


@in_browser
async def test_each_tab_has_its_conversation_and_a_draft_outlives_rooms_and_reloads(
    served: Serve,
) -> None:
    server = await served([Say("Lighthouses are tall.")])
    async with page(server) as (view, seen):
        other = await opened_beside(view, server)
        await send(view, "Tell me of lighthouses.")
        await other.locator(".said.text", has_text="tall").wait_for()
        await other.fill("form textarea", "not sent yet")
        await view.get_by_role("button", name="New conversation").click()
        await view.get_by_text("Nothing was said yet").wait_for()
        assert await view.input_value("form textarea") == ""
        assert await said_in(other) == ["Tell me of lighthouses.", "Lighthouses are tall."]
        await other.keyboard.press("Alt+2")
        await other.locator("main.Functions").wait_for()
        await other.keyboard.press("Alt+1")
        assert await other.input_value("form textarea") == "not sent yet"
        await other.reload()
        await other.wait_for_selector("form textarea")
        assert await other.input_value("form textarea") == "not sent yet"
        assert seen == []


@in_browser
async def test_why_a_turn_failed_is_told_after_a_reload_and_it_is_tried_again(
    served: Serve,
) -> None:
    server = await served([Say(""), Say(""), Say("Here I am.")])
    async with page(server) as (view, seen):
        await send(view, "hello")
        await view.get_by_role("button", name="Try again").wait_for()
        before = await log_of(view)
        assert "The model gave an empty answer twice." in before
        await view.reload()
        await view.get_by_role("button", name="Try again").wait_for()
        assert await log_of(view) == before
        await view.get_by_role("button", name="Try again").click()
        await view.locator(".said.text", has_text="Here I am.").wait_for()
        assert await said_in(view) == ["hello", "Here I am."]
        assert await view.get_by_role("button", name="Try again").count() == 0
        assert seen == []


@in_browser
async def test_what_came_of_a_reply_that_broke_off_stays_after_a_reload_and_the_model_reads_it(
    served: Serve,
) -> None:
    server = await served(
        [Cut("Once upon a time"), Expect(Say("There was a fox."), contains("Once upon a time"))],
        model__stream=True,
        model__retries=0,
    )
    async with page(server) as (view, seen):
        await send(view, "Tell me.")
        await view.get_by_role("button", name="Try again").wait_for()
        await view.locator(
            ".said.text", has_text="Once upon a time"
        ).wait_for()  # drawing is throttled
        await view.reload()
        await view.get_by_role("button", name="Try again").wait_for()
        await view.locator(
            ".said.text", has_text="Once upon a time"
        ).wait_for()  # drawing is throttled
        await send(view, "Go on.")
        await view.locator(".said.text", has_text="There was a fox.").wait_for()
        assert (await said_in(view))[2:] == ["Go on.", "There was a fox."]
        assert seen == []


@in_browser
async def test_a_command_of_the_prompt_is_not_sent_and_the_page_says_where_it_has_the_same(
    served: Serve,
) -> None:
    server = await served([Say("A folder.")])
    async with page(server) as (view, seen):
        for typed, told in (
            ("/functions", "Here it is: the room Functions."),
            ("/edit count_vowels", "Here it is: the function in the room Functions."),
            ("=count_vowels('a')", "Here it is: the function's form in the room Functions."),
        ):
            await send(view, typed)
            await view.locator(".fault", has_text=told).wait_for()
            assert await view.input_value("form textarea") == typed
        await send(view, "/etc is what?")
        await view.locator(".said.text", has_text="A folder.").wait_for()
        assert await said_in(view) == ["/etc is what?", "A folder."]
        assert [
            text for text in seen if "400" not in text
        ] == []  # the browser reports the rejections


@in_browser
async def test_a_command_that_runs_over_a_server_runs_in_the_chat_and_pickers_name_what_there_is(
    served: Serve,
) -> None:
    server = await served([Say("I look at it.")])
    assert (await server.client.put("/api/v1/functions/double", json={"source": DOUBLE})).is_success
    async with page(server) as (view, seen):
        await view.locator("form textarea").press_sequentially("/hist")
        await view.get_by_role("option", name="/history").wait_for()
        await view.keyboard.press("Enter")
        assert await view.input_value("form textarea") == "/history "
        await view.keyboard.type("double")
        await view.keyboard.press("Enter")
        shown = view.get_by_role("region", name="What the command showed")
        await shown.get_by_text("created").first.wait_for()
        await send(view, "/delete double")
        await shown.get_by_text("Delete double, version 1?").wait_for()
        await shown.get_by_role("button", name="Yes").click()
        await shown.get_by_text("Delete double, version 1?").wait_for(state="detached")
        assert (await server.client.get("/api/v1/functions/double")).status_code == 404
        await shown.get_by_role("button", name="Close").click()
        await server.client.put("/api/v1/functions/double", json={"source": DOUBLE})
        await view.reload()
        await view.locator("form textarea").press_sequentially("Look at #dou")
        await view.get_by_role("option", name="double").wait_for()
        await view.keyboard.press("Tab")
        assert await view.input_value("form textarea") == "Look at double "
        await view.keyboard.press("Enter")
        await view.locator(".said.text", has_text="I look at it.").wait_for()
        assert await said_in(view) == ["Look at double", "I look at it."]
        assert [text for text in seen if "409" not in text] == []


@in_browser
async def test_after_a_restart_each_tab_says_so_and_keeps_what_was_typed(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> None:
    model = scripted([])
    async with AsyncExitStack() as first, AsyncExitStack() as browser:
        served = await first.enter_async_context(running(tmp_path, model, one_sandbox))
        view, _ = await browser.enter_async_context(page(served))
        await view.fill("form textarea", "not sent yet")
        await first.aclose()
        async with running(
            tmp_path, model, one_sandbox, ServeOptions(port=int(port_of(served.url)))
        ) as again:
            await view.get_by_text("The server was started again").wait_for()
            assert "used already" not in await view.inner_text("main")
            await view.get_by_label("Or paste the link here").fill(again.login)
            await view.get_by_role("button", name="Log in").click()
            await view.wait_for_selector("form textarea")
            assert await view.input_value("form textarea") == "not sent yet"


@in_browser
async def test_another_tab_is_logged_in_by_the_first_and_a_used_link_is_told_in_words(
    served: Serve,
) -> None:
    server = await served([])
    async with page(server) as (view, seen):
        other = await view.context.new_page()
        await other.goto(server.url)
        await other.wait_for_selector("form textarea")
        await other.close()
        assert await view.evaluate("location.href") == f"{server.url}/"
        assert seen == []
        stranger = await (await view.context.browser.new_context()).new_page()
        await stranger.goto(server.login)
        await stranger.get_by_text("was used already").wait_for()
        assert "knapper login" in await stranger.inner_text("main")
        link = (await server.client.post("/login/links")).json()["login"]
        await stranger.get_by_label("Or paste the link here").fill(link)
        await stranger.get_by_role("button", name="Log in").click()
        await stranger.wait_for_selector("form textarea")


ATTACK = Path(__file__).with_name("elsewhere.html").read_text()


@asynccontextmanager
async def elsewhere(target: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Run a server at another port whose page attacks the one at `target`; yield the cookies it receives."""
    taken: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        taken.extend(
            line.partition(":")[2].strip()
            for line in head.splitlines()
            if line.lower().startswith("cookie:")
        )
        body = ATTACK.replace("TARGET", target).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + body
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", taken


@in_browser
async def test_a_page_and_a_server_at_another_port_of_the_host_get_nothing(served: Serve) -> None:
    server = await served([])
    async with elsewhere(server.url) as (address, taken), page(server) as (view, _seen):
        evil = await view.context.new_page()
        await evil.goto(address)
        await until(evil, "got.over === true")
        got = await evil.evaluate("got")
        told = [
            name
            for name in ("events", "socket", "script", "frame", "channel", "opened")
            if got.get(name)
        ]
        assert told == [], got
        assert got["header"] == "blocked"
        assert {value for name, value in got.items() if "/" in name} <= {"blocked", "opaque"}, got
        assert got["own"] == "0,0"
        assert "knapper_session" in taken[0]  # the browser sends it to every port
        async with httpx2.AsyncClient(
            base_url=server.url, headers={"Cookie": taken[0], "Origin": server.url}
        ) as thief:
            assert (await thief.get("/api/v1/agents")).status_code == 401
            assert (await thief.post("/login", json={"code": ""})).status_code == 403
        assert (await server.client.get("/api/v1/agents/main/messages")).json()["messages"] == []
        key = await view.evaluate("sessionStorage.getItem('knapper-key')")
        assert key not in "".join(taken)


@in_browser
async def test_a_question_shows_what_the_prompt_shows_and_a_no_with_a_word_reaches_the_model(
    served: Serve,
) -> None:
    heard = Expect(Say("I leave it."), contains("only the weather"))
    server = await served([create(FETCHES, "page_title"), heard, Say("It was not done.")])
    async with page(server) as (view, seen):
        await send(view, "Read titles.")
        await go(view, "Approvals")
        card = view.locator("section.card")
        await card.get_by_role("button", name="Once").wait_for()
        text = await card.inner_text()
        assert "page_title asks" in text
        assert "self.fetch(f" in await card.get_by_label("The lines that need it").inner_text()
        assert "knapper functions grant page_title" in text
        await card.get_by_role("button", name="Not now").click()
        await view.get_by_text("Not now: 1").wait_for()
        await view.get_by_role("button", name="page_title").click()
        await card.get_by_role("button", name="No, with a word").click()
        await view.get_by_label("A word for the model").fill("only the weather")
        await view.get_by_role("button", name="No, and say this").click()
        await view.get_by_text("No question waits").wait_for()
        await go(view, "Chat")
        await view.locator(".said", has_text="I leave it.").wait_for()
        assert seen == []


@in_browser
async def test_memory_is_edited_undone_and_given_sources_and_an_agent_is_paused(
    served: Serve, tmp_path: Path
) -> None:
    server = await served([])
    document = tmp_path / "lighthouse.txt"
    document.write_text("The lighthouse of Brindle was built in 1871. " * 20_000)
    async with page(server) as (view, seen):
        await go(view, "Memory")
        box = view.get_by_label("Text of human")
        await box.fill("Likes lighthouses.")
        card = view.locator("section.card", has=box)
        await card.get_by_role("button", name="Save").click()
        await card.get_by_text("Saved.").wait_for()
        await card.get_by_role("button", name="Undo the last change").click()
        typed = "[...document.querySelectorAll('textarea')].some((box) => box.value.includes('lighthouses'))"
        await until(view, f"!{typed}")
        await card.locator("summary", has_text="History").click()
        assert await card.locator("ol.plain > li").count() >= 2
        await view.locator("input[type=file]").set_input_files(str(document))
        await view.locator("td", has_text="lighthouse.txt").wait_for()
        await view.get_by_text("lighthouse.txt: added").wait_for()

        await go(view, "Agents")
        await view.get_by_role("button", name="Pause").click()
        await view.locator("main li", has_text="paused").wait_for()
        await view.get_by_role("button", name="Resume").click()
        await view.locator("main li", has_text="idle").wait_for()
        assert seen == []


@in_browser
async def test_what_was_typed_into_a_block_stays_with_a_change_from_elsewhere_beside_it(
    served: Serve,
) -> None:
    server = await served([])
    blocks = (await server.client.get("/api/v1/agents/main/memory")).json()["blocks"]
    version = next(row["version"] for row in blocks if row["label"] == "human")
    async with page(server) as (view, seen):
        await go(view, "Memory")
        box = view.get_by_label("Text of human")
        await box.fill("What I typed.")
        await go(view, "Agents")
        await go(view, "Memory")
        assert await box.input_value() == "What I typed."
        await view.reload()
        await box.wait_for()
        assert await box.input_value() == "What I typed."

        body = {"version": version, "value": "From elsewhere."}
        assert (
            await server.client.patch("/api/v1/agents/main/memory/human", json=body)
        ).status_code == 200
        card = view.locator("section.card", has=box)
        if await card.get_by_role(
            "button", name="Save", exact=True
        ).count():  # otherwise it was already reported
            await card.get_by_role("button", name="Save", exact=True).click()
        await card.get_by_label("human as it is now").wait_for()
        assert await card.get_by_label("human as it is now").inner_text() == "From elsewhere."
        assert await box.input_value() == "What I typed."
        assert await view.evaluate("document.activeElement.tagName") == "TEXTAREA"
        assert await card.get_by_role("button", name="Undo the last change").is_disabled()
        await card.get_by_role("button", name="Save mine instead").click()
        await card.get_by_text("Saved.").wait_for()
        kept = (await server.client.get("/api/v1/agents/main/memory/human")).json()
        assert (kept["value"], [change["value"] for change in kept["changes"]][-2:]) == (
            "What I typed.",
            ["From elsewhere.", "What I typed."],
        )
        assert [text for text in seen if "409" not in text] == []


@in_browser
async def test_memory_follows_each_change_and_no_change_is_taken_back_unseen(served: Serve) -> None:
    append = Ask(Wanted("core_memory_append", {"name": "human", "content": "Likes trains."}))
    server = await served([append, Say("Kept.")])
    path = "/api/v1/agents/main/memory/human"
    async with page(server) as (view, seen):
        await go(view, "Memory")
        box = view.get_by_label("Text of human")
        card = view.locator("section.card", has=box)
        await box.wait_for()
        await server.said("I like trains.")
        await until(
            view, "document.querySelectorAll('textarea')[1].value.includes('Likes trains.')"
        )

        await view.route(
            f"**{path}", lambda route: route.abort() if route.request.method == "GET" else None
        )
        await view.route(
            "**/agents/main/memory", lambda route: route.abort()
        )  # this tab receives nothing for a while
        version = (await server.client.get(path)).json()["version"]
        assert (
            await server.client.patch(path, json={"version": version, "value": "Unseen."})
        ).is_success
        await card.get_by_role("button", name="Undo the last change").click()
        await card.get_by_text("by now, not").wait_for()
        await view.unroute_all()
        assert (await server.client.get(path)).json()["value"] == "Unseen."
        await until(view, "document.querySelectorAll('textarea')[1].value === 'Unseen.'")
        await card.get_by_role("button", name="Undo the last change").click()
        await until(
            view, "document.querySelectorAll('textarea')[1].value.includes('Likes trains.')"
        )
        assert [text for text in seen if "409" not in text and "ERR_FAILED" not in text] == []


@in_browser
async def test_a_search_of_memory_shows_the_best_of_all_kinds_first_and_says_what_is_missing(
    served: Serve,
) -> None:
    told = "Lighthouses were built of stone. " * 400
    server = await served([Say(told), Say(told)])
    for text in ("Tell me of lighthouses.", "More of lighthouses."):
        await server.said(text)
    source = {
        "name": "vienna.txt",
        "data": base64.b64encode(b"The lighthouses of Vienna are small.").decode(),
    }
    assert (await server.client.post("/api/v1/agents/main/sources", json=source)).is_success
    async with page(server) as (view, seen):
        await go(view, "Memory")
        found = view.locator("section.card", has=view.get_by_role("search")).locator("li")
        for query, first in (
            ("small lighthouses Vienna", "Vienna"),
            ("lighthouses zebra", "ighthouses"),
        ):
            await view.get_by_label("In what was said").fill(query)
            await view.get_by_role("button", name="Search", exact=True).click()
            await found.first.get_by_text(first).wait_for()
        await view.get_by_text("No hit has: zebra.").wait_for()
        assert all(len(text) < 300 for text in await found.all_inner_texts())
        assert seen == []


@in_browser
async def test_each_grant_is_revoked_alone(served: Serve) -> None:
    server = await served([])
    for name in ("notes.txt", "other.txt"):
        (server.workspace.root / name).write_text("hello\n")
    (server.workspace.root / "functions" / "files.py").write_text(READS)
    await server.workspace.functions.reload()
    async with page(server) as (view, seen):
        for name in ("notes.txt", "other.txt"):
            await go(view, "Functions/first_line")
            await view.locator(".field textarea").fill(name)
            await view.get_by_role("button", name="Call", exact=True).click()
            await (
                view.locator(".asking")
                .get_by_role("button", name="Always", disabled=False)
                .first.click()
            )
            await view.get_by_label("What it returned").wait_for()
            await go(view, "Functions/first_line/reach")
            await view.get_by_role("button", name=f"Revoke read {name}").wait_for()
        await view.get_by_role("button", name="Revoke read notes.txt").click()
        await view.get_by_text("read notes.txt was revoked.").wait_for()
        await view.get_by_role("button", name="Revoke read notes.txt").wait_for(state="detached")
        assert (await server.client.get("/api/v1/grants")).json()["grants"][0]["grants"] == {
            "read": ["other.txt"]
        }
        assert seen == []


@in_browser
async def test_what_a_function_reaches_is_shown_anew_after_a_revoke_here_or_in_the_shell(
    served: Serve,
) -> None:
    server = await served([])
    (server.workspace.root / "notes.txt").write_text("hello\n")
    (server.workspace.root / "functions" / "files.py").write_text(READS)
    await server.workspace.functions.reload()
    shell = [
        sys.executable,
        "-m",
        "knapper",
        "--workspace",
        str(server.workspace.root),
        "functions",
    ]

    async def typed(*words: str) -> None:
        run = await asyncio.create_subprocess_exec(*shell, *words)
        assert await run.wait() == 0

    async with page(server) as (view, seen):
        await go(view, "Functions/first_line/reach")
        reads, revoke = (
            view.locator(".life").get_by_text("reads notes.txt"),
            view.get_by_role("button", name="Revoke read notes.txt"),
        )
        await typed("grant", "-y", "first_line", "--read", "notes.txt")
        await revoke.click()
        await reads.wait_for(state="detached")
        await go(view, "Functions")
        listed = view.locator("td.far", has_text="reads notes.txt")
        await view.locator("tbody a", has_text="first_line").wait_for()
        await listed.wait_for(state="detached")
        await typed("grant", "-y", "first_line", "--read", "notes.txt")
        await listed.wait_for()
        await go(view, "Functions/first_line/reach")
        await revoke.wait_for()
        await typed("revoke", "--all", "first_line")
        await revoke.wait_for(state="detached")
        await reads.wait_for(state="detached")
        assert seen == []


@in_browser
async def test_what_is_missing_for_a_model_is_told_at_once_and_one_that_is_configured_counts(
    served: Serve,
) -> None:
    unset = {f"model__{name}": None for name in ("base_url", "name", "context_tokens")}
    server = await served([Say("Here I am.")], **unset)
    async with page(server) as (view, seen):
        told = view.locator(".log .fault")
        await told.wait_for()
        text = await told.inner_text()
        assert all(
            way in text
            for way in ("No model is set", "OPENAI_API_KEY", "knapper configure", "tour")
        )
        await send(view, "hello")
        await view.get_by_role("button", name="Try again").click()
        await view.get_by_text("Tried again 1 time: it failed as before.").wait_for()
        await view.get_by_role("button", name="Try again").click()
        await view.get_by_text("Tried again 2 times: it failed as before.").wait_for()
        keep_address(
            server.workspace.root,
            {"model.base_url": server.model.base_url, "model.name": "scripted"},
        )
        await view.get_by_role("button", name="Try again").click()
        await view.locator(".said.text", has_text="Here I am.").wait_for()
        assert await said_in(view) == ["hello", "Here I am."]
        assert seen == []


@in_browser
async def test_a_file_that_is_saved_broken_or_wrong_is_told_in_each_room_until_it_is_mended(
    served: Serve,
) -> None:
    server = await served([])
    file = server.workspace.root / "functions" / "double.py"
    async with page(server) as (view, seen):
        file.write_text("def double(:\n")
        await view.locator("header .saved", has_text="rejected: functions/double.py:1").wait_for()
        await go(view, "Functions")
        await view.get_by_text("1 problem in files").wait_for()
        file.write_text(WRONG)
        await view.locator("header .saved", has_text="double is a draft").wait_for()
        await view.get_by_text("1 problem in files").wait_for(state="detached")
        file.write_text(DOUBLE)
        await view.locator("header .saved", has_text="double is on trial").wait_for()
        await view.get_by_role("button", name="Close").click()
        await view.locator("header .saved").wait_for(state="detached")
        assert seen == []


@in_browser
async def test_what_a_save_broke_is_told_after_a_reload_and_in_a_new_tab_and_of_before_the_start(
    served: Serve, tmp_path: Path
) -> None:
    (tmp_path / "functions").mkdir()
    file = tmp_path / "functions" / "double.py"
    file.write_text("def double(:\n")
    server = await served([])
    async with page(server) as (view, seen):
        rejected = view.get_by_role("button", name="1 file rejected")
        await rejected.click()
        await view.get_by_text("1 problem in files").wait_for()
        file.write_text(WRONG)
        await rejected.wait_for(state="detached")
        await view.reload()
        for tab in (view, await opened_beside(view, server)):
            await tab.locator("header .saved", has_text="double is a draft").wait_for()
        await tab.get_by_role("button", name="Close").click()
        await view.reload()
        await view.get_by_text("double").first.wait_for()
        assert await view.locator("header .saved").count() == 0
        assert seen == []


@in_browser
async def test_what_was_typed_in_a_form_outlives_rooms_and_reloads(served: Serve) -> None:
    server = await served(
        [create(FETCHES, "page_title"), Say("I leave it."), Say("It was not done.")]
    )
    assert (await server.client.put("/api/v1/functions/double", json={"source": DOUBLE})).is_success
    async with page(server) as (view, seen):
        await send(view, "Read titles.")
        await view.locator(".log .asking").get_by_role("button", name="No, with a word").click()
        for room, field, typed in (
            ("Chat", "A word for the model", "only the weather"),
            ("Functions/double", "n integer", "21"),
            ("Agents", "A new agent", "second"),
        ):
            await go(view, room)
            await view.get_by_label(field).fill(typed)
            await go(view, "Growth")
            await go(view, room)
            assert await view.get_by_label(field).input_value() == typed
            await view.reload()
            await view.get_by_label(field).wait_for()
            assert await view.get_by_label(field).input_value() == typed
        await go(view, "Chat")
        await view.get_by_role("button", name="No, and say this", disabled=False).click()
        await view.locator(".said.text", has_text="It was not done.").wait_for()
        assert seen == []


@in_browser
async def test_a_reload_keeps_the_agent_that_was_chosen(served: Serve) -> None:
    server = await served([])
    assert (await server.client.post("/api/v1/agents", json={"name": "second"})).is_success
    async with page(server) as (view, seen):
        await view.locator("nav a", has_text="second").click()
        await view.get_by_label("Message to second").fill("not sent yet")
        await view.reload()
        await view.wait_for_selector("form textarea")
        assert await view.get_by_label("Message to second").input_value() == "not sent yet"
        await go(view, "Memory")
        await go(view, "Chat")
        await view.get_by_label("Message to second").wait_for()
        assert seen == []


@in_browser
async def test_a_card_counts_the_examples_as_the_verdict_does_also_after_a_confirm(
    served: Serve,
) -> None:
    confirm = Ask(Wanted("confirm_function", {"function_name": "count_vowels"}))
    server = await served([Ask(create_vowels(FLAWED)), confirm, Say("Made.")])
    async with page(server) as (view, seen):
        await send(view, "Make it.")
        await view.locator(".said", has_text="Made.").wait_for()
        rejected, made = view.locator("section.made").nth(0), view.locator("section.made").nth(1)
        assert "1 of 2 examples" in await rejected.inner_text()
        assert "2 of 2 examples" in await made.locator(".meta").inner_text()
        assert seen == []


@in_browser
async def test_escape_in_the_field_of_a_question_closes_the_field_and_no_turn(
    served: Serve,
) -> None:
    server = await served([create(FETCHES, "page_title"), Say("Made.")])
    async with page(server) as (view, seen):
        await send(view, "Read titles.")
        card = view.locator(".log .asking")
        await card.get_by_role("button", name="No, with a word").click()
        await card.get_by_label("A word for the model").press("Escape")
        await card.get_by_label("A word for the model").wait_for(state="detached")
        assert await view.evaluate("document.activeElement.innerText") == "No, with a word"
        await card.get_by_role("button", name="Once", disabled=False).click()
        await view.locator(".said.text", has_text="Made.").wait_for()
        assert "interrupted" not in await view.inner_text(".log")
        assert seen == []


@in_browser
async def test_the_chat_says_that_its_agent_is_paused_and_lets_it_go_on(served: Serve) -> None:
    server = await served([Say("Here I am.")])
    async with page(server) as (view, seen):
        assert (await server.client.post("/api/v1/agents/main/pause", json={})).status_code == 200
        await view.get_by_text("main is paused: what you send waits.").wait_for()
        await send(view, "hello")
        await view.get_by_role("button", name="Resume").click()
        await view.locator(".said.text", has_text="Here I am.").wait_for()
        await view.get_by_text("main is paused").wait_for(state="detached")
        assert seen == []


@in_browser
async def test_the_key_for_a_question_leads_to_it_from_the_chat_of_another_agent_and_from_each_room(
    served: Serve,
) -> None:
    server = await served(
        [create(FETCHES, "page_title"), Say("I leave it."), Say("It was not done.")]
    )
    async with page(server) as (view, seen):
        await send(view, "Fetch a title.")
        await view.locator(".asking").wait_for()
        assert (
            await server.client.post("/api/v1/agents", json={"name": "other"})
        ).status_code == 201
        await go(view, "Chat/other")
        for room in ("Chat", "Memory"):
            await go(view, room)
            await view.locator(".asking").wait_for(state="detached")
            await view.keyboard.press("Alt+q")
            no = view.locator("main.Approvals .asking").get_by_role("button", name="No", exact=True)
            await no.wait_for()
            await until(view, "document.activeElement.tagName === 'MAIN'")
        await no.click()
        await view.get_by_text("No question waits for an answer.").wait_for()
        await go(view, "Chat/main")
        await view.locator(".said.text", has_text="It was not done.").wait_for()
        assert seen == []


@in_browser
async def test_a_call_by_hand_asks_on_the_functions_page_and_what_was_granted_is_revoked_there(
    served: Serve,
) -> None:
    server = await served([])
    (server.workspace.root / "notes.txt").write_text("hello\nworld\n")
    (server.workspace.root / "functions" / "files.py").write_text(READS)
    await server.workspace.functions.reload()
    async with page(server) as (view, seen):
        await go(view, "Functions/first_line")
        await view.locator(".field textarea").fill("notes.txt")
        await view.get_by_role("button", name="Call", exact=True).click()
        await (
            view.locator(".asking")
            .get_by_role("button", name="Always", exact=False, disabled=False)
            .first.click()
        )
        await view.get_by_label("What it returned").wait_for()
        assert await view.get_by_label("What it returned").inner_text() == "hello\n"
        await view.get_by_role("link", name="Reach").click()
        await view.get_by_role("button", name="Revoke read").click()
        await view.get_by_text("read notes.txt was revoked.").wait_for()
        await view.get_by_role("button", name="Revoke read").wait_for(state="detached")
        assert (await server.client.get("/api/v1/grants")).json()["grants"] == []
        assert seen == []


@in_browser
async def test_a_thousand_functions_are_all_there_and_of_ten_thousand_messages_a_window_is_drawn(
    served: Serve,
) -> None:
    server = await served([])
    names = [f"function_{number:04}" for number in range(1_000)]
    plain = {"module": "many", "description": "One of many.", "standing": "trial", "calls": 0}
    listed = {"functions": [{"name": name, **plain} for name in names], "rejected": [], "unused": 0}
    said = [
        {"seq": n, "turn": f"t{n}", "kind": "user", "at": 0, "text": f"message {n}."}
        for n in range(1, 10_001)
    ]

    async def messages(route: Any) -> None:  # Any: playwright's
        before = int(re.search(r"before=(\d+)", route.request.url + "before=10001")[1])  # type: ignore[index]
        rows = [row for row in said if int(str(row["seq"])) < before][-300:]
        await route.fulfill(
            json={"agent": "main", "messages": rows, "after": 0, "more": before > 301}
        )

    async with page(server, before={"**/api/v1/functions": listed, "**/messages?*": messages}) as (
        view,
        seen,
    ):
        await view.get_by_text("message 10000.").wait_for()
        for number in (9_700, 9_400, 9_000):
            scrolled = "const log = document.querySelector('.log'); log.scrollTop = 0;"
            await until(
                view,
                f"(() => {{ {scrolled} return log.innerText.includes('message {number}.'); }})()",
            )
            assert await view.locator(".log > *").count() < 200
        await view.get_by_role("button", name="To the newest").click()
        await view.get_by_text("message 10000.").wait_for()

        await go(view, "Functions")
        await view.get_by_role("link", name="function_0000").wait_for()
        assert await view.locator("tbody tr").count() == 1_000  # the browser's own search finds all
        await view.get_by_role("link", name="function_0999").focus()
        await view.keyboard.press("ArrowUp")
        assert await view.evaluate("document.activeElement.innerText") == "function_0998"
        assert seen == []


@in_browser
async def test_hostile_texts_are_shown_as_texts(served: Serve) -> None:
    server = await served([create(DOUBLE.replace("Return twice", HOSTILE)), Say(HOSTILE)])
    (server.workspace.root / "functions" / "hostile.py").write_text(DELIVERED)
    await server.workspace.functions.reload()
    blocks = (await server.client.get("/api/v1/agents/main/memory")).json()["blocks"]
    body = {"version": blocks[1]["version"], "value": HOSTILE}
    await server.client.patch(f"/api/v1/agents/main/memory/{blocks[1]['label']}", json=body)
    source = {"name": f"{HOSTILE}.txt", "data": "aGVsbG8gdGhlcmUsIGxpZ2h0aG91c2U="}
    await server.client.post("/api/v1/agents/main/sources", json=source)
    async with page(server) as (view, seen):
        await send(view, HOSTILE)
        await view.locator(".said.text", has_text=HOSTILE).wait_for()
        for room in (*ROOMS, "Functions/greeting", "Functions/double", f"Functions/{HOSTILE}"):
            await go(view, room)
            await settled(view, seen)
            await view.evaluate(
                "document.querySelectorAll('main details').forEach((part) => { part.open = true; })"
            )
            assert await view.locator("img, main script").count() == 0
        assert [text for text in seen if "404" not in text] == []


MARKS = "\u202e\u2066\u200e\u200f\u061c"
NAMED = {
    "name",
    "function",
    "agent",
    "workspace",
    "description",
    "model",
    "sandbox",
    "module",
    "message",
    "label",
}
DRAWN = """() => [document.body.innerText, ...[...document.querySelectorAll('body *')].flatMap((one) =>
  [one.textContent, ...['title', 'aria-label', 'placeholder'].map((name) => one.getAttribute(name))])].join(' ')"""


def marked(value: Any, name: str = "") -> Any:  # Any: JSON
    """Return an answer of the server with direction marks in its names and messages."""
    if isinstance(value, dict):
        return {key: marked(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner, name) for inner in value]
    return value + MARKS if isinstance(value, str) and name in NAMED else value


async def pass_marked(route: Any) -> None:  # Any: playwright's request
    """Answer a request of the page as the server does, with marks in the names."""
    url = route.request.url.replace(quote(MARKS), "")
    if "/events?" in url:
        await route.continue_(url=url)
        return
    answer = await route.fetch(url=url)
    await route.fulfill(response=answer, json=marked(await answer.json()))


@in_browser
async def test_marks_that_turn_what_is_read_are_seen_wherever_a_text_is_drawn(
    served: Serve,
) -> None:
    server = await served([create(DOUBLE), Say(f"Done.{MARKS}")])
    async with page(server, before={"**/api/v1/**": pass_marked}) as (view, seen):
        await send(view, f"tsil eht dne{MARKS}")
        await view.locator(".said.text", has_text="Done.").wait_for()
        for room in (*ROOMS, "Functions/double", "Functions/none"):
            await go(view, room)
            await settled(view, seen)
            drawn = await view.evaluate(DRAWN)
            assert not set(MARKS) & set(drawn), room
            assert "\\u202e\\u2066\\u200e\\u200f\\u061c" in drawn, room


@in_browser
@pytest.mark.skipif(not AXE, reason="axe-core is not installed: python -m tests.kit.npm")
@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (768, "dark"), (1280, "dark"), (1600, "light")]
)
async def test_every_room_fits_the_screen_and_is_usable_by_a_screen_reader(
    served: Serve, width: int, scheme: str
) -> None:
    grown = [create(WRONG), create(DOUBLE), Say("word " * 200)]
    server = await served(
        [*grown, create(FETCHES, "page_title"), Say("No."), Say("It was not done.")]
    )
    async with page(server, width, scheme) as (view, seen):
        await send(view, "long" * 100)
        await view.get_by_text("word word").first.wait_for()
        await send(view, "Read titles.")
        await view.locator("nav .waits").first.wait_for(state="attached")
        broken = []
        tabs = [
            f"Functions/double/{tab}" for tab in ("evidence", "versions", "calls", "stop", "reach")
        ]
        parts = [f"Settings/{part}" for part in ("spending", "keys", "grants", "mcp")]
        for room in (*ROOMS, "Functions/double", *tabs, "Functions/+", *parts, "Agents/+"):
            await go(view, room)
            await settled(view, seen)
            assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth"), room
            broken += [f"{room}: {problem}" for problem in await axe_problems(view)]
        assert broken == []
        await go(view, "Approvals")
        await view.get_by_role("button", name="No", exact=True).click()
        await view.get_by_text("No question waits").wait_for()
        assert seen == []


async def axe_problems(view: Any) -> list[str]:  # Any: playwright's page
    """Return the serious problems that axe-core finds on the page."""
    found = await view.evaluate(f"async () => {{ {AXE}; return (await axe.run()).violations; }}")
    serious = [row for row in found if row["impact"] in ("serious", "critical")]
    return [f"{row['id']}: {[node['html'][:160] for node in row['nodes'][:3]]}" for row in serious]


async def send(view: Any, text: str) -> None:  # Any: playwright's page
    """Send a message from the keyboard."""
    await view.fill("form textarea", text)
    await view.keyboard.press("Enter")


async def log_of(view: Any) -> str:  # Any: playwright's page
    """Return what the conversation shows, without what each turn took: that is read when it has ended."""
    hidden = "for (const row of document.querySelectorAll('.receipt-row')) row.hidden = true"
    await view.evaluate(hidden)
    return str(await view.inner_text(".log"))


async def said_in(view: Any) -> list[str]:  # Any: playwright's page
    """Return the user's and the agent's messages in the displayed order."""
    texts = await view.locator(".log > .said.user, .log > .said.text").all_inner_texts()
    return [text.partition("\n")[2].strip() for text in texts]


async def opened_beside(view: Any, server: Served) -> Any:  # Any: playwright's page
    """Return a second tab of the same browser, in the conversation."""
    tab = await view.context.new_page()
    tab.set_default_timeout(WAIT_MS)
    await tab.goto(server.url)
    await tab.wait_for_selector("form textarea")
    return tab


async def go(view: Any, room: str) -> None:  # Any: playwright's page
    """Open a room by its address."""
    await view.evaluate(
        "(room) => { location.hash = '#/' + room.split('/').map(encodeURIComponent).join('/'); }",
        room,
    )
    await view.locator(f"main.{room.split('/')[0]}").wait_for()


async def until(view: Any, expression: str) -> None:  # Any: playwright's page
    """Wait until an expression is true; the page's own policy blocks playwright's way to wait."""
    async with asyncio.timeout(WAIT_MS / 1000):
        while not await view.evaluate(expression):  # noqa: ASYNC110  (a page cannot set an event)
            await asyncio.sleep(0.05)


async def settled(view: Any, seen: "Seen") -> None:  # Any: playwright's page
    """Wait until a room's requests are done."""
    async with asyncio.timeout(WAIT_MS / 1000):
        while seen.pending or not (await view.inner_text("main")).strip():  # noqa: ASYNC110  (the same)
            await asyncio.sleep(0.05)


class Seen(list[str]):
    """The page's console messages and foreign requests; `pending` holds its unfinished requests."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.own = (url, "data:", "blob:")
        self.pending = set[str]()

    def hear(self, view: Any) -> None:  # Any: playwright's page
        """Record the page's activity."""
        view.on("console", lambda message: self.append(message.text))
        view.on("pageerror", lambda error: self.append(str(error)))
        view.on("request", self._asked)
        view.on("requestfinished", lambda request: self.pending.discard(request.url))
        view.on("requestfailed", lambda request: self.pending.discard(request.url))

    def _asked(self, request: Any) -> None:  # Any: playwright's request
        if not request.url.startswith(self.own):
            self.append(request.url)
        if "/events?" not in request.url:
            self.pending.add(request.url)


@asynccontextmanager
async def page(
    server: Served, width: int = 1280, scheme: str = "light", before: dict[str, Any] | None = None
) -> AsyncIterator[tuple[Any, Seen]]:  # Any: playwright's page, answers in place of the server's
    """Yield the logged-in page and what was seen of it."""
    api = import_module("playwright.async_api")
    async with api.async_playwright() as programs:
        browser = await programs.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            context = await browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme
            )
            view = await context.new_page()
            view.set_default_timeout(WAIT_MS)
            seen = Seen(server.url)
            seen.hear(view)
            for path, answer in (before or {}).items():
                await view.route(path, answer if callable(answer) else _fulfilling(answer))
            await view.goto(server.login)
            await view.wait_for_selector("form textarea")
            yield view, seen
        finally:
            await browser.close()


def _fulfilling(document: Any) -> Any:  # Any: JSON; playwright's handler
    async def fulfill(route: Any) -> None:
        await route.fulfill(json=document)

    return fulfill
