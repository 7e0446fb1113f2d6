"""How long the page keeps a person waiting, in a real browser: by the processor time of each task."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kit import Say

from .conftest import Serve
from .test_page import go, in_browser, page, send, until

MOST_MS = 100
SIZE = 100_000
SENTENCE = "The quick brown fox jumps over the **lazy dog**, and `code` stands beside it. "
ANSWERS = {
    "prose": (SENTENCE * 6 + "\n\n") * 220,
    "one paragraph": "word " * 20_000,
    "list": "- an item with **weight** and `code`\n" * 3_000,
    "code": "```python\n" + "def f(x):\n    return x + 1  # more\n" * 3_000,
}

READ = {  # what says that all of an answer is read
    "prose": "said.querySelectorAll('p strong').length > 1200",
    "one paragraph": f"said.innerText.length > {SIZE * 0.98}",
    "list": "said.querySelectorAll('li strong').length > 2690",
    "code": "said.querySelectorAll('pre.source .line').length > 5000 && !said.querySelector('p')",
}


@asynccontextmanager
async def tasks_of(view: Any) -> AsyncIterator[list[float]]:  # Any: playwright's page
    """Yield a list that has, after the block, the processor time of each task of the page, in milliseconds."""
    browser, spent = view.context.browser, list[float]()
    await browser.start_tracing(page=view, categories=["toplevel"])
    yield spent
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    named = [row for row in events if row["name"] == "thread_name"]
    mains = [(row["pid"], row["tid"]) for row in named if row["args"]["name"] == "CrRendererMain"]
    for row in events:
        if "RunTask" in row["name"] and (row["pid"], row["tid"]) in mains:
            spent.append(row.get("tdur", 0) / 1_000)


@in_browser
@pytest.mark.parametrize("kind", ANSWERS)
async def test_no_task_is_long_while_100_kb_stream_and_all_of_it_is_read(
    served: Serve, kind: str
) -> None:
    text = ANSWERS[kind][:SIZE]
    server = await served([Say(text)], model__context_tokens=400_000)
    async with page(server) as (view, seen):
        async with tasks_of(view) as spent:
            await send(view, "Write.")
            await view.get_by_role("button", name="Stop").wait_for()
            await view.get_by_role("button", name="Stop").wait_for(state="detached")
            await view.locator(".receipt-row").wait_for()
        assert spent
        assert max(spent) < MOST_MS, sorted(spent)[-5:]
        await until(
            view,
            f"(() => {{ const said = document.querySelector('.said.text .prose'); return {READ[kind]}; }})()",
        )
        assert seen == []


@in_browser
async def test_a_thousand_functions_ten_thousand_messages_and_300_conversations_scroll_without_a_stall(
    served: Serve,
) -> None:
    server = await served([])
    plain = {"module": "many", "description": "One of many.", "standing": "trial", "calls": 3}
    more: dict[str, Any] = {"source": "agent", "reach": [], "last_called": None}
    listed = {
        "functions": [{"name": f"function_{n:04}", **plain, **more} for n in range(1_000)],
        "rejected": [],
        "unused": 0,
    }
    talks = [
        {"id": f"t{n}", "name": f"Talk {n}", "used": 1.0, "messages": 3, "running": False}
        for n in range(300)
    ]

    async def messages(route: Any) -> None:  # Any: playwright's
        found = re.search(r"before=(\d+)", route.request.url)
        before = int(found[1]) if found else 10_001
        rows = [
            {"seq": n, "turn": f"t{n}", "kind": "user", "at": 0, "text": f"message {n}."}
            for n in range(max(1, before - 300), before)
        ]
        await route.fulfill(
            json={"agent": "main", "messages": rows, "after": 0, "more": before > 301}
        )

    answers = {
        "**/api/v1/functions": listed,
        "**/messages?*": messages,
        "**/agents/main/conversations": {"agent": "main", "conversations": talks},
    }
    down = "for (const box of document.querySelectorAll('{}')) box.scrollTop += {}"
    async with page(server, before=answers) as (view, seen):
        await view.get_by_text("message 10000.").wait_for()
        await view.get_by_text("Talk 299").wait_for(state="attached")
        async with tasks_of(view) as spent:
            for number in (9_700, 9_400):
                up = "const log = document.querySelector('.log'); log.scrollTop -= 2000;"
                reached = (
                    f"(() => {{ {up} return log.innerText.includes('message {number}.'); }})()"
                )
                await until(view, reached)
            for _ in range(12):
                await view.evaluate(down.format(".side-list", 700))
                await view.wait_for_timeout(30)
        assert max(spent) < MOST_MS, sorted(spent)[-5:]
        await go(view, "Functions")
        await view.get_by_role("link", name="function_0999").wait_for()
        async with tasks_of(view) as spent:
            for _ in range(20):
                await view.evaluate(down.format(".rows", 1_500))
                await view.wait_for_timeout(30)
        assert max(spent) < MOST_MS, sorted(spent)[-5:]
        assert seen == []
