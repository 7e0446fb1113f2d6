"""The documents match the program: generated pages are current, links resolve, and names exist."""

import re
import runpy
from pathlib import Path

from agent_core.context import INSTRUCTIONS
from sandbox.inside.context import Context, Response

ROOT = Path(__file__).parent.parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_the_generated_pages_are_what_the_program_says_of_itself() -> None:
    generated = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    again = {
        "reference.md": generated["page"]() + "\n",
        "modules.md": generated["modules"](),
        "openapi.json": generated["description"](),
    }
    written = {name: (ROOT / "docs" / name).read_text("utf-8") for name in again}
    assert [name for name in again if written[name] != again[name]] == [], "run: python docs/generate.py"


def test_every_link_of_a_page_leads_to_a_file() -> None:
    targets = {page: re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text("utf-8")) for page in PAGES}
    assert [(page, to) for page, links in targets.items() for to in links if not (page.parent / to).exists()] == []


def test_every_module_that_the_map_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(
        re.findall(
            r"`((?:agent_core|sandbox|meta_functions|gate|registry|model|context|interfaces|storage)/[\w/]+\.py)`", text
        )
    )
    assert named
    assert [
        name for name in sorted(named) if not any((ROOT / base / name).exists() for base in (".", "agent_core"))
    ] == []


def test_what_the_agent_is_told_of_self_is_there() -> None:
    told = set(re.findall(r"self\.(\w+)", INSTRUCTIONS))
    assert {"fetch", "secret", "scratch"} <= told
    assert told - {"scratch"} <= set(dir(Context))
    assert set(re.findall(r" \.(\w+)\(\)", INSTRUCTIONS)) == {"text", "json"} & set(dir(Response))
