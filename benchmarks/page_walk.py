"""Pictures of the page from a fresh workspace to the first grown function: docs/page/*.svg.

    make page-walk

Chromium renders the page; the visible part becomes an SVG of boxes and texts (`page_walk.js`). The model is the
scripted tour; the server, the gate and the sandbox are real. Prints the seconds from the start of the server.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "page"
ASKED: Final = "how many vowels are in queueing?"
MADE: Final = "count_vowels"
WIDTH, HEIGHT, TALL = 1120, 720, 1200
_PATIENCE_MS, _STOP_S = 180_000, 60


def main() -> int:
    """Walk, write the pictures, and print when each was taken."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("Skipped: there is no Chromium here.", file=sys.stderr)
        return 0
    FOLDER.mkdir(exist_ok=True)
    begun = time.monotonic()
    with served() as login:
        for name, seconds in asyncio.run(pictures(chromium, login, begun)).items():
            print(f"{seconds:6.1f} s  docs/page/{name}.svg")
    return 0


@contextmanager
def served() -> Iterator[str]:
    """Run a server of a new workspace with the tour as its model; yield its login link."""
    with tempfile.TemporaryDirectory(prefix="page-") as above:
        folder = str(Path(above) / "assistant")
        ours = [sys.executable, "-m", "knapper", "-C", folder]
        subprocess.run([*ours, "init", folder], cwd=ROOT, capture_output=True, check=True)
        command = [*ours, "serve", "--json", "--port", "0", "--model", "tour"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield json.loads(process.stdout.readline())["login"]
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(_STOP_S)


async def pictures(chromium: str, login: str, begun: float) -> dict[str, float]:
    """Drive the page, capture the view at each station, and return the times."""
    stations: dict[str, float] = {}
    drawing = Path(__file__).with_suffix(".js").read_text("utf-8")

    async def keep(view: Any, name: str) -> None:  # Any: playwright's page
        stations[name] = time.monotonic() - begun
        (FOLDER / f"{name}.svg").write_text(await view.evaluate(drawing), "utf-8")

    async with import_module("playwright.async_api").async_playwright() as programs:
        browser = await programs.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = await browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"
        )
        view.set_default_timeout(_PATIENCE_MS)
        await view.goto(login)
        await view.fill("form textarea", ASKED)
        await keep(view, "asked")
        await grow(view)
        await view.set_viewport_size({"width": WIDTH, "height": TALL})
        await view.locator("section.made .source").last.scroll_into_view_if_needed()
        await keep(view, "grown")
        await view.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        for room, there in (("Growth", ".waiting a"), (f"Functions/{MADE}", ".cm-content")):
            await view.evaluate("(room) => { location.hash = '#/' + room; }", room)
            await view.locator(f"main {there}", has_text=MADE).first.wait_for()
            await keep(view, room.split("/")[0].lower())
        await browser.close()
    return stations


async def grow(view: Any) -> None:  # Any: playwright's page
    """Send what was typed; wait for the function and the end of the turn."""
    tail = view.locator("nav a", has_text="Functions").locator(".tail")
    known = int(await tail.inner_text())
    await view.keyboard.press("Enter")
    await view.locator("section.made", has_text=MADE).last.wait_for()
    await (
        view.locator("details.call", has_text=MADE)
        .locator("summary", has_text=MADE)
        .first.wait_for()
    )
    await view.get_by_role("button", name="Stop").wait_for(state="detached")
    await view.locator("section.made", has_text=MADE).last.get_by_text("Source", exact=True).click()
    await view.locator("nav a .tail", has_text=str(known + 1)).wait_for()


if __name__ == "__main__":
    sys.exit(main())
