"""What a person decides on the page, in a real browser: pins, modes, caps, approvals, agents, secrets, attachments."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.kit import Ask, Expect, Repeat, Say, Wanted
from tests.kit.desk import VOWELS
from tests.pictures.support import RED, URL, sees
from tests.runtime.test_functions_that_ask import PAYS

from .conftest import Serve, Served
from .test_modes_at_the_doors import policies
from .test_page import HOSTILE, go, in_browser, page, send
from .test_page_chat import answered
from .test_the_api import READS

GIVE = """([target, files, kind]) => {
  const data = new DataTransfer();
  for (const [name, type, base64] of files) {
    const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
    data.items.add(new File([bytes], name, { type }));
  }
  const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector(target).dispatchEvent(event);
}"""


async def give(view: Any, kind: str, *files: tuple[str, bytes]) -> None:  # Any: playwright's page
    """Paste or drop files where one writes."""
    rows = [[name, "", b64encode(content).decode()] for name, content in files]
    await view.evaluate(GIVE, ["form textarea", rows, kind])


async def command(server: Served, *words: str) -> Any:  # Any: JSON
    answer = await server.client.post("/api/v1/commands", json={"words": words})
    assert answer.is_success, answer.text
    return answer.json()["document"]


@in_browser
async def test_a_function_is_pinned_in_its_room_marked_in_the_list_and_let_go(
    served: Serve,
) -> None:
    server = await served([])
    await server.save("words.py", VOWELS)
    async with page(server) as (view, seen):
        await go(view, "Functions/count_vowels")
        await view.get_by_role("button", name="Pin", exact=True).click()
        await view.get_by_role("button", name="Pinned", pressed=True).wait_for()
        assert await server.workspace.functions.pins.holds("count_vowels")
        await go(view, "Functions")
        await view.locator("tr", has_text="count_vowels").get_by_text("pinned").wait_for()
        await go(view, "Functions/count_vowels")
        await view.get_by_role("button", name="Pinned").click()
        await view.get_by_role("button", name="Pin", exact=True).wait_for()
        assert not await server.workspace.functions.pins.holds("count_vowels")
        assert seen == []


@in_browser
async def test_mode_and_growth_are_chosen_by_keys_beside_the_model_and_kept_in_the_tab(
    served: Serve,
) -> None:
    server = await served([Repeat(Say("Done."))])
    async with page(server) as (view, seen):
        chooser = view.get_by_role("button", name="What it may reach, and what grows")
        assert (await chooser.inner_text()).strip() == "ask"
        await chooser.focus()
        await view.keyboard.press("Enter")
        await view.get_by_role("menuitemradio", name="ask Each new reach is asked").wait_for()
        await view.keyboard.press("ArrowDown")
        await view.keyboard.press("ArrowDown")
        await view.keyboard.press("Enter")
        assert (await chooser.inner_text()).strip() == "plan"
        await chooser.click()
        await view.get_by_role("group", name="Growth").get_by_text("off", exact=True).click()
        await view.reload()
        await view.get_by_text("plan, growth off").wait_for()
        await send(view, "Look.")
        await answered(view, "Done.")
        await chooser.click()
        await view.get_by_role("menuitemradio", name="task").click()
        await send(view, "Do it.")
        await view.locator(".said.text").nth(1).wait_for()
        assert await policies(server) == [("plan", "off"), ("task", "off")]
        assert seen == []


@in_browser
async def test_a_mode_that_the_server_refuses_is_told_and_nothing_typed_is_lost(
    served: Serve,
) -> None:
    server = await served([])
    refusal = {"error": {"code": "not-allowed", "message": "No mode task.", "fix": "Send less."}}

    async def refuse(route: Any) -> None:  # Any: playwright's
        if route.request.method == "POST":
            assert json.loads(route.request.post_data)["mode"] == "task"
            await route.fulfill(status=403, json=refusal)
        else:
            await route.fallback()

    async with page(server) as (view, _):
        await view.route("**/messages?*", refuse)
        await view.get_by_role("button", name="What it may reach").click()
        await view.get_by_role("menuitemradio", name="task").click()
        await send(view, "Do it all.")
        await view.get_by_text("No mode task. Send less.").wait_for()
        assert await view.input_value("form textarea") == "Do it all."


@in_browser
async def test_what_was_spent_is_seen_by_day_a_cap_is_set_and_what_runs_by_itself_is_paused(
    served: Serve,
) -> None:
    server = await served([Say("Hello.")])
    await server.said("Hi.")
    async with page(server, 1280) as (view, seen):
        await view.get_by_role("link", name="Spending and caps").click()
        spent = view.get_by_role("region", name="Spent", exact=True)
        await spent.locator("tr.sum").wait_for()
        await spent.get_by_role("button", name="conversation").click()
        await spent.get_by_role("columnheader", name="conversation").wait_for()
        caps = view.get_by_role("region", name="Caps")
        await caps.get_by_label("Kind").select_option("tokens")
        await caps.get_by_label("At most").fill("many")
        await caps.get_by_role("button", name="Set").click()
        await caps.get_by_text("A cap cannot be many.").wait_for()
        await caps.get_by_label("At most").fill("50000")
        await caps.get_by_role("button", name="Set").click()
        await caps.get_by_text("50,000 tokens").wait_for()
        rows = (await command(server, "cost", ""))["caps"]
        assert {"day_tokens": 50_000}.items() <= {row["name"]: row["most"] for row in rows}.items()
        await caps.get_by_role("button", name="The usual for day_tokens").click()
        await caps.get_by_text("50,000 tokens").wait_for(state="detached")

        await view.get_by_role("button", name="Pause all that").click()
        await view.get_by_text("Paused: nothing runs by itself").wait_for()
        assert (await command(server, "cost", ""))["paused"] is not None
        await view.locator(".side").get_by_role("button", name="Resume").click()
        await view.get_by_role("button", name="Pause all that").wait_for()
        assert (await command(server, "cost", ""))["paused"] is None
        assert [text for text in seen if "400" not in text] == []


@in_browser
async def test_the_log_of_approvals_says_who_allowed_what_and_each_row_takes_it_back(
    served: Serve,
) -> None:
    server = await served([])
    (server.workspace.root / "it's here.txt").write_text("hello\n")
    await server.save("files.py", READS)
    async with page(server) as (view, seen):
        await go(view, "Functions/first_line")
        await view.locator(".field textarea").fill("it's here.txt")
        await view.get_by_role("button", name="Call", exact=True).click()
        question = view.locator(".asking")
        await question.get_by_role("button", name="Always", disabled=False).first.click()
        await view.get_by_label("What it returned").wait_for()
        await go(view, "Settings/grants")
        log = view.get_by_role("region", name="Who allowed what")
        row = log.locator("li", has_text="it's here.txt").first
        await row.get_by_text("always, holds").wait_for()
        await row.get_by_role("button", name="Take back").click()
        await row.get_by_text("holds").wait_for(state="detached")
        assert (await server.client.get("/api/v1/grants")).json()["grants"] == []
        assert seen == []


@in_browser
async def test_an_agent_is_made_described_paused_changed_elsewhere_and_deleted(
    served: Serve,
) -> None:
    server = await served([])
    await server.save("words.py", VOWELS)
    file = server.workspace.root / "agents" / "books.toml"
    async with page(server, 1280) as (view, seen):
        await go(view, "Agents")
        await view.get_by_role("link", name="New agent").click()
        await view.get_by_role("textbox", name="A new agent").fill("books")
        await view.get_by_label("Purpose").fill('Books "payments".')
        await view.get_by_label("Persona").fill("Exact and short.")
        await view.get_by_label("Functions").fill("words.*")
        await view.get_by_text("1 of 1.").wait_for()
        await view.get_by_role("button", name="Make it").click()
        await view.get_by_role("heading", name="books").wait_for()
        blocks = (await server.client.get("/api/v1/agents/books/memory")).json()["blocks"]
        assert any("Exact and short." in block["value"] for block in blocks)
        assert 'functions = ["words.*"]' in file.read_text()

        file.write_text(f"{file.read_text()}# mine\nlimits = {{ steps = 3 }}\n")
        await view.get_by_label("Purpose").fill("Books payments.")
        await view.get_by_role("button", name="Save").click()
        await view.get_by_text("was changed meanwhile").wait_for()
        await view.get_by_role("button", name="Save").click()
        await view.get_by_text("books is changed from its next step on.").wait_for()
        text = file.read_text()
        assert 'purpose = "Books payments."' in text
        assert "# mine\nlimits = { steps = 3 }" in text

        row = view.locator("main li", has_text="books")
        await row.get_by_role("button", name="Pause").click()
        await row.get_by_text("paused").wait_for()
        await row.get_by_role("button", name="Delete books").click()
        await row.get_by_role("button", name="Delete books").click()
        await row.wait_for(state="detached")
        assert [text for text in seen if "409" not in text] == []


@in_browser
async def test_the_value_of_a_secret_is_typed_hidden_goes_to_its_file_and_is_shown_nowhere(
    served: Serve, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("configuration")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    server = await served([])
    async with page(server) as (view, seen):
        await go(view, "Settings/keys")
        await view.get_by_label("Name of the secret").fill("RATES_KEY")
        field = view.get_by_label("Its value, not shown as you type")
        assert await field.get_attribute("type") == "password"
        await field.fill("a long secret value 123")
        await view.get_by_role("button", name="Keep").click()
        row = view.locator("li", has_text="RATES_KEY")
        await row.get_by_text("not granted to any function").wait_for()
        assert await field.input_value() == ""
        assert "a long secret value 123" not in await view.content()
        (kept,) = home.rglob("secrets.toml")
        assert "a long secret value 123" in kept.read_text()
        told = await server.client.get("/api/v1/secrets")
        assert "a long secret" not in told.text
        assert "a long secret" not in "".join(
            path.read_text(errors="replace")
            for path in server.workspace.root.rglob("*")
            if path.is_file()
        )
        await row.get_by_role("button", name="Remove RATES_KEY").click()
        await row.get_by_role("button", name="Remove RATES_KEY").click()
        await row.wait_for(state="detached")
        assert seen == []


@in_browser
async def test_files_and_pictures_are_pasted_dropped_and_chosen_sent_and_shown_in_the_message(
    served: Serve, tmp_path: Path
) -> None:
    server = await served([Expect(Say("Red."), sees(URL)), Say("Two.")])
    notes = tmp_path / "notes.md"
    notes.write_text("one\n```\ntwo\n```\n")
    async with page(server) as (view, seen):
        await give(view, "paste", ("photo.png", RED))
        chips = view.get_by_role("list", name="Goes with the message")
        await chips.get_by_text("photo.png").wait_for()
        await give(view, "drop", ("data.csv", b"a,b\n1,2\n"))
        await chips.get_by_text("data.csv").wait_for()
        await view.locator(".composer input[type=file]").set_input_files(str(notes))
        await chips.get_by_text("notes.md").wait_for()
        await chips.get_by_role("button", name="Remove data.csv").click()
        await send(view, "What is it?")
        await answered(view, "Red.")
        bubble = view.locator(".said.user .bubble").first
        await bubble.locator("img").wait_for()
        assert "photo.png" in str(await bubble.locator("img").get_attribute("alt"))
        await bubble.locator("summary", has_text="notes.md").click()
        assert await bubble.get_by_label("notes.md").inner_text() == "one\n```\ntwo\n```"
        assert "[picture" not in await bubble.inner_text()
        asked = json.dumps(server.model.requests[-1].body)
        assert "````\\none\\n```\\ntwo" in asked
        await view.reload()
        await view.locator(".said.user .bubble img").first.wait_for()
        assert await chips.count() == 0
        await give(view, "drop", ("photo.png", RED))
        await chips.get_by_text("photo.png").wait_for()
        await view.get_by_role("button", name="Send", exact=True).click()
        await answered(view, "Two.")
        assert seen == []


@in_browser
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("scan.bmp", b"BM" + bytes(60), "is BMP: models read PNG"),
        ("cut.png", RED[:30], "is cut off or broken"),
        ("tool.bin", b"\x7fELF\x00\x01", "is not text"),
        ("latin.txt", b"caf\xe9", "is not text in UTF-8"),
        ("empty.txt", b"", "is empty"),
        ("<b>x</b>.bmp", b"BM" + bytes(60), "<b>x</b>.bmp is BMP"),
    ],
)
async def test_what_cannot_go_along_is_refused_with_its_reason(
    served: Serve, name: str, content: bytes, says: str
) -> None:
    server = await served([])
    async with page(server, 390) as (view, seen):
        await give(view, "drop", (name, content), ("fine.txt", b"fine"))
        await view.get_by_role("alert").get_by_text(says).wait_for()
        await (
            view.get_by_role("list", name="Goes with the message")
            .get_by_text("fine.txt")
            .wait_for()
        )
        await give(view, "drop", *[(f"{number}.txt", b"x") for number in range(25)])
        await view.get_by_text("24.txt is one too many").wait_for()
        assert await view.locator(".chip").count() == 20
        assert await view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert seen == []


@in_browser
async def test_a_question_of_a_function_is_answered_in_its_call_by_a_word_or_a_choice(
    served: Serve,
) -> None:
    server = await served([Ask(Wanted("pay", {"to": HOSTILE})), Say("Paid.")])
    await server.save("money.py", PAYS)
    async with page(server) as (view, seen):
        await send(view, "Pay.")
        question = view.get_by_role("region", name="Question of pay")
        await question.get_by_text("How much?").wait_for()
        answer = question.get_by_role("textbox")
        await answer.fill("lots")
        await question.get_by_role("button", name="Answer", exact=True, disabled=False).click()
        await question.get_by_text("The answer cannot be lots.").wait_for()
        await answer.fill("4.5")
        await question.get_by_role("button", name="Answer", exact=True, disabled=False).click()
        await question.get_by_text(f"Pay 5.5 to {HOSTILE}?").wait_for()
        await question.get_by_role("button", name="yes", disabled=False).click()
        await question.get_by_text("Which account?").wait_for()
        await question.get_by_role("button", name="main", disabled=False).wait_for()
        await view.keyboard.press("Alt+q")
        assert await view.evaluate("document.activeElement.innerText") == "main"
        await question.get_by_role("button", name="other", disabled=False).click()
        await answered(view, "Paid.")
        await view.get_by_text("Its question was answered: other").wait_for()
        assert [text for text in seen if "400" not in text] == []
