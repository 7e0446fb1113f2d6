"""The guide types what its walk types, in order; every picture exists and matches its caption."""

import re
from html import unescape
from pathlib import Path

import pytest

from benchmarks import guide_agents_script
from benchmarks.guide_walk import FOLDER, PAGE
from benchmarks.guide_walk_script import PARTS, File, Half, Part, Picture, Prompt, Second, Shell

AGENTS = PAGE.with_name("guide-agents.md")
GUIDES = {PAGE: PARTS, AGENTS: guide_agents_script.PARTS}
PICTURES = [
    (page, act)
    for page, parts in {
        **GUIDES,
        PAGE.with_name("programs.md"): (guide_agents_script.PROGRAMS,),
    }.items()
    for part in parts
    for act in part.acts
    if isinstance(act, Picture)
]
MAKE = "the walk is another by now: make guide"


@pytest.mark.parametrize(
    ("page", "parts"), GUIDES.items(), ids=lambda one: getattr(one, "stem", "")
)
def test_every_command_stands_in_the_guide_as_it_was_typed(
    page: Path, parts: tuple[Part, ...]
) -> None:
    acts = [act for part in parts for act in part.acts]
    typed = [
        act.command if isinstance(act, Shell | Second) else act.text.strip()
        for act in acts
        if isinstance(act, Shell | Second | Prompt | Half)
    ]
    printed = re.findall(
        r"^```\n(?:\$|›|\(debug\)) (.*)\n```$", page.read_text("utf-8"), re.MULTILINE
    )
    assert printed == typed, MAKE
    assert all(act.text in page.read_text("utf-8") for act in acts if isinstance(act, File)), MAKE


def test_every_picture_shows_what_it_was_taken_for_and_fetches_nothing() -> None:
    for page, picture in PICTURES:
        svg = (FOLDER / f"{picture.name}.svg").read_text("utf-8")
        shown = re.sub(r"\s", "", unescape("".join(re.findall(r"<text[^>]*>(.*?)</text>", svg))))
        assert re.sub(r"\s", "", picture.since) in shown, (picture.name, MAKE)
        assert f"![{picture.says.replace('`', '')}](guide/{picture.name}.svg)" in page.read_text(
            "utf-8"
        )
        assert len(svg) < 30_000, picture.name
        assert re.findall(r"https?://[^\"]+|@import|url\(|@font-face|<script", svg) == [
            "http://www.w3.org/2000/svg"
        ]
    assert {file.stem for file in Path(FOLDER).iterdir()} == {one.name for _, one in PICTURES}, (
        "none is left over"
    )
