"""`knapper memory` from outside: an agent's memory is shown, edited, searched and reverted."""

import json
import sys
from pathlib import Path
from typing import Any

from agent_core.base.clock import Clock
from agent_core.storage import lock_agent, open_store, prepare_state_dir
from tests.cli.support import run
from tests.interfaces.asking import home
from tests.kit.program import knapper
from tests.kit.terminal import terminal
from tests.storage.support import say


def test_options_that_would_do_nothing_are_refused(kept: Path) -> None:
    edit, forget = ("memory", "edit", "human", "--value", "x"), ("memory", "forget")
    (kept / "clock.toml").write_text("")
    for words, says in (
        ((*edit, "--file", "clock.toml"), "exclude each other"),
        ((*edit, "--position", "3"), "Only a section has a position."),
        ((*forget, "heron", "--agent", "main", "--dry-run"), "in all agents"),
        (("--server", "", "agents", "list"), "--server needs an address"),
        (("--server", "http://127.0.0.1:9", "-C", ".", "agents", "list"), "-C excludes it"),
        (("-C", "", "agents", "list"), "The name of a folder is empty."),
        (("mcp", "--grow", "list"), "--grow belongs to `knapper mcp` alone"),
    ):
        done = knapper(*words, cwd=kept)
        assert (done.returncode, says in done.stderr) == (2, True), (words, done.stderr)


def test_a_workspace_that_a_group_of_commands_names_is_the_one(
    kept: Path, tmp_path_factory: Any
) -> None:
    other = tmp_path_factory.mktemp("other")
    for root in (kept, other):
        (root / "knapper.toml").touch()
        (root / "mcp.toml").write_text('[clock]\ncommand = ["true"]\n')
    assert knapper("mcp", "-C", str(other), "remove", "clock", cwd=kept).returncode == 0
    assert (
        "clock" in (kept / "mcp.toml").read_text(),
        "clock" in (other / "mcp.toml").read_text(),
    ) == (True, False)
    assert json.loads(knapper("mcp", "--json", "list", cwd=kept).stdout)
    assert json.loads(knapper("--json", "-C", str(kept), "mcp", "list", cwd=other).stdout)[
        "servers"
    ]
    assert knapper("-C", str(kept), "mcp", "remove", "clock", cwd=other).returncode == 0
    assert "clock" not in (kept / "mcp.toml").read_text()


async def test_memory_is_shown_and_searched_without_a_lock(kept: Path) -> None:
    with lock_agent(prepare_state_dir(kept), "main"):
        shown = run(kept, "memory", "show")
        (block,) = shown["blocks"]
        assert (block["label"], block["value"], block["version"]) == (
            "human",
            "Name: Ada Lovelace",
            2,
        )
        assert shown["passages"] == 1
        lines = knapper("memory", "show", cwd=kept).stdout
        assert "human  18/100 characters, version 2\n  Name: Ada Lovelace\n" in lines
        changes = run(kept, "memory", "history", "human")["changes"]
        assert [(one["version"], one["what"], one["value"]) for one in changes] == [
            (1, "begun", "Name: Ada"),
            (2, "core_memory_replace", "Name: Ada Lovelace"),
        ]
        head, newest, what = knapper("memory", "history", cwd=kept).stdout.splitlines()[:3]
        assert (head.split(), what) == (["when", "block", "version", "by"], "  core_memory_replace")
        assert newest.endswith("human  v2       the agent main")
        found = run(kept, "memory", "search", "heron", "fish")
        (said,) = found["recall"]["results"]
        assert (said["text"], said["message"]) == ("the code word is heron", "1.0")
        assert [one["text"] for one in found["archival"]["results"]] == ["Herons fish at dusk."]
        assert [*run(kept, "memory", "search", "heron", "--in", "recall", "--count", "1")] == [
            "recall"
        ]
    async with open_store(prepare_state_dir(kept) / "state.db", clock=Clock()) as store:
        for text in ("a heron", "that heron again", "one more heron"):
            await say(store, text)
    hits = knapper("memory", "search", "heron", cwd=kept).stdout.split("\n")[:5]
    assert any("Herons fish at dusk." in hit for hit in hits[:2]), (
        hits
    )  # the best of each before the far ones


def test_a_block_is_edited_with_its_limit_and_each_undo_goes_back_one_more(kept: Path) -> None:
    edit = ("memory", "edit", "human")
    assert run(kept, *edit, "--value", "Name: Grace")["outcome"] == "returned"
    piped = knapper(*edit, "--file", "-", cwd=kept, given="Name: Joan\n")
    assert (piped.returncode, "Name: Joan" in piped.stdout) == (0, True)
    for value in ("Name: Grace", "Name: Ada Lovelace", "Name: Ada"):
        assert run(kept, "memory", "undo", "human")["outcome"] == "returned"
        assert run(kept, "memory", "show", "human")["blocks"][0]["value"] == value
    by = [one["by"] for one in run(kept, "memory", "history", "human")["changes"]]
    assert by == ["agent", "agent", "human", "human", "human", "human", "human"]
    told = run(kept, *edit, "--value", "x" * 130, code=1)
    assert (told["outcome"], "30 too many" in told["text"]) == ("refused", True)
    assert (
        "There is no block `humn`."
        in run(kept, "memory", "edit", "humn", "--value", "x", code=1)["text"]
    )
    assert run(kept, "memory", "show", "human")["blocks"][0]["version"] == 7
    for words, says in (
        ((), "Give --value TEXT, or --file FILE."),
        (("--section", "--limit", "9"), "Omit --section."),
    ):
        wrong = knapper(*edit, *words, cwd=kept)
        assert (wrong.returncode, says in wrong.stderr) == (2, True)
    run(kept, *edit, "--limit", "400", "--value", "x" * 350, "--description", "Who it is.")
    assert run(kept, *edit, "--limit", "10", code=1)["outcome"] == "refused"
    (block,) = run(kept, "memory", "show", "human")["blocks"]
    assert (len(block["value"]), block["limit"], block["description"]) == (350, 400, "Who it is.")
    editor = kept / "editor.py"
    editor.write_text(
        "import sys, pathlib\npath = pathlib.Path(sys.argv[2])\npath.write_text(path.read_text()[:3] + 'Y')\n"
    )
    with terminal(*edit, cwd=kept, environment={"EDITOR": f"{sys.executable} {editor}"}) as screen:
        screen.wait_for("xxxY")
        assert screen.exit_code() == 0
    assert run(kept, "memory", "show", "human")["blocks"][0]["value"] == "xxxY"


def test_a_block_is_made_shared_attached_and_taken_out_of_a_memory(kept: Path) -> None:
    (kept / "other.json").write_text(knapper("agents", "export", "main", cwd=kept).stdout)
    assert run(kept, "agents", "import", "other.json", "--as", "bob")["agents"]
    assert (
        run(kept, "memory", "add", "team", "--value", "Ann leads", "--limit", "40")["outcome"]
        == "returned"
    )
    (made,) = run(kept, "memory", "show", "team")["blocks"]
    assert (made["value"], made["limit"], made["shared"]) == ("Ann leads", 40, False)
    assert run(kept, "memory", "add", "crew", "--limit", "40")["outcome"] == "returned"
    for words, says in (
        (("human",), "there is a block `human` already"),
        (("a b",), "`a b` cannot be a label"),
        (("big", "--limit", "3", "--value", "abcd"), "1 too many"),
        (
            ("vast", "--limit", "9" * 20),
            "`limit`: Input should be less than or equal to 9223372036854775807.",
        ),
    ):
        failed = knapper("memory", "add", *words, cwd=kept)
        assert (failed.returncode != 0, says in failed.stdout + failed.stderr) == (True, True), (
            words
        )
    described = ("memory", "edit", "crew", "--limit", "300")
    assert run(kept, *described, "--description", "Who leads.")["text"].split("\n") == [
        "The limit of `crew` is now: 300",
        "The description of `crew` is now: Who leads.",
        "`crew` is still empty.",
    ]
    assert run(kept, *described)["text"] == "Nothing was changed."
    attach = ("memory", "attach", "team", "--agent", "bob")
    assert "No shared block is called `team`." in run(kept, *attach, code=1)["text"]
    assert "is shared" in run(kept, "memory", "share", "team")["text"]
    assert (
        run(kept, "memory", "edit", "team", "--value", "Ann leads")["text"]
        == "Nothing was changed."
    )
    run(kept, *attach)
    run(kept, "memory", "edit", "team", "--agent", "bob", "--value", "Bob leads")
    (shown,) = run(kept, "memory", "show", "team")["blocks"]
    assert (shown["value"], shown["limit"], shown["shared"]) == ("Bob leads", 40, True)
    run(kept, "memory", "detach", "team", "--agent", "bob")
    assert "team" not in knapper("memory", "show", "--agent", "bob", cwd=kept).stdout


ENDLESS = "/dev/zero"


def test_it_is_rejected_by_its_size(tmp_path: Path) -> None:
    for arguments in (
        ("functions", "create", "f", "--file", ENDLESS),
        ("agents", "import", ENDLESS),
        ("memory", "edit", "human", "--file", ENDLESS),
        ("run", "--persona", ENDLESS, "--message", "hi"),
        ("run", "--approve", ENDLESS, "--message", "hi"),
    ):
        done = knapper(*arguments, cwd=tmp_path, environment=home(tmp_path))
        assert done.returncode in (1, 2)
        assert "File larger than 256 MiB" in done.stderr, arguments


def test_no_command_about_memory_makes_an_agent(tmp_path: Path) -> None:
    assert run(tmp_path, "memory", "show")["blocks"] == []
    assert "There is no agent `main`." in str(run(tmp_path, "memory", "search", "x", code=1))
    assert run(tmp_path, "agents", "list") == {"agents": []}
