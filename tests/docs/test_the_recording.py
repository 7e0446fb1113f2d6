"""The README's recording shows what the tour says today, is small, static where required, and self-contained."""

import re
import tomllib
from collections import defaultdict
from html import unescape
from pathlib import Path

from benchmarks.recording import ROWS, TYPED
from benchmarks.screens import HIGH, PAD

ROOT = Path(__file__).parents[2]
SVG = (ROOT / "docs" / "recording.svg").read_text("utf-8")
SCENES = tomllib.loads((ROOT / "agent_core/model/tour.toml").read_text("utf-8"))["scenes"]
IN_ORDER = [
    one for one in SCENES if len(one.get("absent", ())) < 2
]  # not of an agent that asks out of turn
PLAYED = [
    one
    for one in IN_ORDER
    if one["screen"] in (1, 2, 3, 5, 8) and ("absent" in one or "noticed" in one)
]
PLAYED += [one for one in IN_ORDER if one["screen"] == 7 and "needs" in one]
MAKE = "the tour is another by now: make recording"


def plain(text: str) -> str:
    """Return a text without line folding and Markdown."""
    return re.sub(r"[\s`*]", "", text)


def frames() -> list[str]:
    """Return the text of each frame of the film."""
    rows = {
        name: "".join(re.findall(r"<text[^>]*>(.*?)</text>", row))
        for name, row in _ROWS.findall(SVG)
    }
    seen = defaultdict(list)
    for name, top in re.findall(r'<use href="#(r\d+)" y="(\d+)"', SVG):
        seen[int(top) // (ROWS * HIGH + PAD)].append(unescape(rows[name]))
    return [plain("".join(seen[at])) for at in sorted(seen)]


_ROWS = re.compile(r'<g id="(r\d+)">(.*?)</g>')


def test_what_is_typed_and_said_and_what_comes_of_it_is_in_the_film() -> None:
    film = frames()
    assert all(any(step.get("text") for step in scene["steps"]) for scene in PLAYED)
    texts = [step.get("text", "") for scene in PLAYED for step in scene["steps"]]
    pieces = [
        each for text in texts for part in text.split("\n\n") for each in re.split(r"\{\w+\}", part)
    ]
    assert len(pieces) > len(PLAYED) > 3
    pieces += [*TYPED, " is back, on trial", "initials refused", "count_vowels was changed outside"]
    pieces.append("It joined with your approval")
    assert [one for one in pieces if not any(plain(one) in frame for frame in film)] == [], MAKE


def test_the_film_is_small_fetches_nothing_and_is_readable_on_dark_and_light() -> None:
    assert len(SVG.encode()) <= 300_000
    assert re.findall(r"https?://[^\"]+|@import|url\(|@font-face|<script", SVG) == [
        "http://www.w3.org/2000/svg"
    ]
    assert "prefers-color-scheme:light" in SVG
    assert "prefers-reduced-motion" in SVG
