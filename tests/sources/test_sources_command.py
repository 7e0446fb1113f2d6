"""`knapper sources`, as a human and a script type it."""

import json
import os
import signal
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from agent_core.storage import lock_agent, prepare_state_dir
from tests.kit.program import Program, knapper, surroundings
from tests.kit.terminal import terminal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "birds.md").write_text("# Herons\n\nThey fish at dusk.\n")
    return tmp_path


def run(cwd: Path, *words: str, code: int = 0, given: str = "") -> Any:  # Any: JSON
    done = knapper("sources", *words, "--json", cwd=cwd, given=given)
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_a_source_is_added_while_its_agent_runs_elsewhere_listed_and_removed(folder: Path) -> None:
    with lock_agent(prepare_state_dir(folder), "main"):
        (added,) = run(folder, "add", "birds.md")["sources"]
    assert (added["name"], added["outcome"], added["passages"]) == ("birds.md", "added", 1)
    (row,) = run(folder, "list")["sources"]
    assert (row["name"], row["kind"], row["complete"]) == ("birds.md", "markdown", True)
    (removed,) = run(folder, "remove", row["hash"][:10])["removed"]
    assert removed["name"] == "birds.md"
    assert run(folder, "list") == {"sources": []}


def test_standard_input_is_a_source_of_its_own_each_time(folder: Path) -> None:
    first, other = [
        run(folder, "add", "-", given=text)["sources"][0]
        for text in ("Herons fish.", "Ducks dive.")
    ]
    named = run(folder, "add", "-", "--name", "pond", given="Frogs sing.")["sources"][0]
    assert first["name"].startswith("standard input ")
    assert (len({first["name"], other["name"]}), named["name"]) == (2, "pond")


def test_a_folder_gives_its_texts_and_one_line(folder: Path) -> None:
    site = folder / "site"
    site.mkdir()
    (site / "page.md").write_text("# Herons\n\nThey fish at dawn.\n")
    (site / "logo.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><text>heron</text></svg>"
    )
    (site / "drawn").write_text("<?xml version='1.0'?>\n<svg><text>heron</text></svg>")
    (site / "app.js").write_text("function heron(){return 1};" * 200)
    (site / "lib.min.js").write_text("var heron=1;\n")
    (site / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (site / "main.js").write_text("// what herons do\nfunction heron() {\n  return 1;\n}\n" * 20)
    done = knapper("sources", "add", "site", cwd=folder)
    (told,) = done.stdout.splitlines()
    assert told.startswith("✓ site: 7 files, 2 added; ")
    assert told.endswith(
        "left out 5 without text to read: app.js, drawn, lib.min.js, logo.svg, photo.png."
    )
    assert [row["name"] for row in run(folder, "list")["sources"]] == [
        "site/main.js",
        "site/page.md",
    ]
    assert run(folder, "add", "site/logo.svg")["sources"][0]["outcome"] == "added"


def test_a_source_is_loaded_once_and_attached_to_agents_and_detached(folder: Path) -> None:
    (loaded,) = run(folder, "load", "birds.md")["sources"]
    assert loaded["outcome"] == "added"
    assert run(folder, "list") == {"sources": []}
    assert [row["name"] for row in run(folder, "list", "--loaded")["sources"]] == ["birds.md"]
    assert "sources list --loaded" in knapper("sources", "list", cwd=folder).stderr
    (folder / "birds.md").unlink()
    assert run(folder, "attach", "birds.md")["attached"][0]["passages"] == 1
    assert run(folder, "attach", loaded["hash"][:8])["there"][0]["passages"] == 1
    assert run(folder, "list")["sources"][0]["complete"]
    assert run(folder, "detach", "birds.md")["detached"][0]["name"] == "birds.md"
    assert run(folder, "list") == {"sources": []}
    assert (
        "No source gulls is loaded." in run(folder, "attach", "gulls", code=2)["error"]["message"]
    )
    assert run(folder, "remove", "--loaded", "birds.md")["removed"][0]["name"] == "birds.md"
    listed = knapper("agents", "list", "--json", cwd=folder)
    assert json.loads(listed.stdout) == {"agents": []}


def test_what_cannot_be_done_is_said_with_its_exit_code(folder: Path) -> None:
    rows: list[tuple[str, list[str], int, str]] = [
        ("no file", ["add", "missing.txt"], 1, "missing.txt: It cannot be read: No such file"),
        ("no agent", ["add", "birds.md", "--agent", "nobody"], 2, "There is no agent nobody"),
        ("no source", ["remove", "missing"], 2, "main has no source missing"),
    ]
    for case, words, code, says in rows:
        assert says in run(folder, *words, code=code)["error"]["message"], case


@pytest.mark.slow
def test_an_interrupt_ends_it_and_the_same_again_goes_on(folder: Path) -> None:
    (folder / "big.csv").write_text(
        "name,city\n" + "".join(f"Person {n} of all,City {n}\n" for n in range(200_000))
    )
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        streams = [file.fileno() for file in (given, out, err)]
        program = Program(
            ["sources", "add", "big.csv"], streams, cwd=folder, environment=surroundings({})
        )
        while not (rows := run(folder, "list")["sources"]):
            assert program.poll() is None
        os.kill(program.pid, signal.SIGINT)
        assert program.wait(50) == 1
        err.seek(0)
        assert b"The same command resumes it." in err.read()
    assert rows[0]["complete"] is False


def test_a_folder_leaves_out_what_this_program_wrote_and_its_settings(folder: Path) -> None:
    for words in (
        ("run", "--model", "tour", "--message", "start"),
        ("agents", "export", "tour", "main-2026.json"),
    ):
        done = knapper(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
    (folder / "agents").mkdir()
    (folder / "agents" / "second.toml").write_text('purpose = "Edits texts."\n')
    (folder / "knapper.toml").write_text("# Settings of mine.\n")
    (folder / "Cargo.toml").write_text('[package]\nname = "heron"\n')
    reports = {row["name"]: row for row in run(folder, "load", ".")["sources"]}
    added = {name for name, row in reports.items() if row["outcome"] == "added"}
    assert {"birds.md", "Cargo.toml"} <= added
    assert not added & {"main-2026.json", "agents/second.toml", "knapper.toml"}
    assert "a saved conversation" in str(reports["main-2026.json"])


def test_what_is_loaded_is_named_where_it_can_be_attached(folder: Path) -> None:
    (folder / "notes").mkdir()
    for name in ("ducks", "geese"):
        (folder / "notes" / f"{name}.md").write_text(f"# Of {name}\n\nThey swim.\n")
    with terminal("sources", "load", "notes", cwd=folder) as screen:
        screen.wait_for("Next: knapper sources attach notes")
    with terminal("sources", "list", cwd=folder) as screen:
        screen.wait_for("2 more can be attached: knapper sources list --loaded")
    assert len(run(folder, "attach", "notes")["attached"]) == 2


@pytest.mark.parametrize(
    "how", [("attach", "owls"), ("add", "owls")], ids=["attached", "added by its name"]
)
def test_a_loaded_source_whose_text_the_agent_has_is_there_already(
    folder: Path, how: tuple[str, str]
) -> None:
    run(folder, "load", "birds.md", "--name", "owls")
    (own,) = run(folder, "add", "birds.md")["sources"]
    again = run(folder, *how)
    assert (again["attached"], [row["name"] for row in again["there"]]) == ([], [own["name"]])
    assert [row["name"] for row in run(folder, "list")["sources"]] == ["birds.md"]


def test_a_name_that_no_file_has_attaches_what_was_loaded_under_it(folder: Path) -> None:
    run(folder, "load", "birds.md", "--name", "owls")
    assert [row["name"] for row in run(folder, "add", "owls")["attached"]] == ["owls"]
    (folder / "owls").write_text("A file of that name.\n")
    assert [row["outcome"] for row in run(folder, "add", "owls")["sources"]] == ["replaced"]
