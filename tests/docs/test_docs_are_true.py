"""The documents match the program: generated pages are current, links resolve, and names exist."""

import re
import runpy
from pathlib import Path

from agent_core.context import INSTRUCTIONS
from agent_core.functions.gate.gate import READER, STAGES
from sandbox.inside.context import Context, Response

ROOT = Path(__file__).parent.parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def test_the_generated_pages_are_what_the_program_says_of_itself() -> None:
    generated = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    again = {
        "reference.md": generated["page"]() + "\n",
        "modules.md": generated["modules"](),
        "openapi.json": generated["description"](),
        "../agent_core/client/resources.pyi": generated["stub"](),
    }
    written = {name: (ROOT / "docs" / name).read_text("utf-8") for name in again}
    assert [name for name in again if written[name] != again[name]] == [], (
        "run: python docs/generate.py"
    )


def test_every_link_of_a_page_leads_to_a_file() -> None:
    targets = {
        page: re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text("utf-8")) for page in PAGES
    }
    assert [
        (page, to)
        for page, links in targets.items()
        for to in links
        if not (page.parent / to).exists()
    ] == []


def test_every_module_that_the_map_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", text))
    assert "runtime/loop.py" in named
    places = [ROOT, ROOT / "agent_core", *(ROOT / "agent_core").iterdir(), ROOT / "sandbox"]
    assert [
        name for name in sorted(named) if not any((place / name).exists() for place in places)
    ] == []


def test_every_name_in_the_map_of_where_to_start_is_in_the_program() -> None:
    start = (
        (ROOT / "ARCHITECTURE.md")
        .read_text("utf-8")
        .split("## Start here")[1]
        .split("## Layers")[0]
    )
    files = [*(ROOT / "agent_core").rglob("*.py"), *(ROOT / "knapper_ext").rglob("*.py")]
    program = "".join(file.read_text("utf-8") for file in files)
    names = {
        part
        for name in re.findall(r"`@?([A-Za-z_.]+)`", start)
        for part in name.removesuffix(".py").split(".")
    }
    assert {"AgentLoop", "ToolSource", "_save_approval"} <= names
    names -= {"app", "approval", "pin", "question"}  # a module, and tables
    assert [
        name
        for name in sorted(names)
        if not re.search(rf"(def|class) {name}\b|^{name}\b", program, re.M)
    ] == []


def test_the_page_of_the_gate_has_exactly_the_stages_of_the_gate() -> None:
    page = (ROOT / "docs" / "gate.md").read_text("utf-8").split("## The stages")[1].split("\n\n")[2]
    rows = [row.split("|")[1].strip() for row in page.splitlines()[2:]]
    assert rows == [stage.name for stage in (*STAGES, READER)]


def test_what_the_agent_is_told_of_self_is_there() -> None:
    told = set(re.findall(r"self\.(\w+)", INSTRUCTIONS))
    assert {"fetch", "secret", "scratch"} <= told
    assert told - {"scratch"} <= set(dir(Context))
    assert set(re.findall(r" \.(\w+)\(\)", INSTRUCTIONS)) == {"text", "json"} & set(dir(Response))
