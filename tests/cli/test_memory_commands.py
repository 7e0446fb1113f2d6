"""`knapper memory` from outside: an agent's memory is shown, edited, searched and reverted."""

import sys
from pathlib import Path

import pytest

from agent_core.base.clock import Clock
from agent_core.storage import lock_agent, open_store, prepare_state_dir
from tests.cli.support import remembering, run
from tests.kit.program import knapper
from tests.kit.terminal import terminal
from tests.storage.support import say


@pytest.fixture
async def kept(tmp_path: Path) -> Path:
    return await remembering(tmp_path)


def test_blocks_are_shown_with_their_size_and_what_there_is_besides(kept: Path) -> None:
    shown = run(kept, "memory", "show")
    assert [(one["label"], one["value"], one["version"]) for one in shown["blocks"]] == [
        ("human", "Name: Ada Lovelace", 2)
    ]
    assert shown["passages"] == 1
    lines = knapper("memory", "show", cwd=kept).stdout
    assert "human  18/100 characters, version 2\n  Name: Ada Lovelace\n" in lines
    wrong = knapper("memory", "show", "humn", cwd=kept)
    assert (wrong.returncode, "Did you mean `human`?" in wrong.stderr) == (2, True)


def test_the_history_of_blocks_says_what_was_done_and_by_whom(kept: Path) -> None:
    changes = run(kept, "memory", "history", "human")["changes"]
    assert [(one["version"], one["what"], one["value"]) for one in changes] == [
        (1, "begun", "Name: Ada"),
        (2, "core_memory_replace", "Name: Ada Lovelace"),
    ]
    head, newest, what = knapper("memory", "history", cwd=kept).stdout.splitlines()[:3]
    assert head.split() == ["when", "block", "version", "by"]
    assert newest.endswith("human  v2       the agent main")
    assert what == "  core_memory_replace"


def test_a_block_is_edited_by_a_script_and_each_undo_goes_back_one_more(kept: Path) -> None:
    assert run(kept, "memory", "edit", "human", "--value", "Name: Grace")["outcome"] == "returned"
    edit = knapper("memory", "edit", "human", "--file", "-", cwd=kept, given="Name: Joan\n")
    assert (edit.returncode, "Name: Joan" in edit.stdout) == (0, True)
    for value in ("Name: Grace", "Name: Ada Lovelace", "Name: Ada"):
        assert run(kept, "memory", "undo", "human")["outcome"] == "returned"
        assert run(kept, "memory", "show", "human")["blocks"][0]["value"] == value
    by = [one["by"] for one in run(kept, "memory", "history", "human")["changes"]]
    assert by == ["agent", "agent", "human", "human", "human", "human", "human"]


def test_an_edit_past_the_limit_or_of_no_block_is_refused_and_changes_nothing(kept: Path) -> None:
    told = run(kept, "memory", "edit", "human", "--value", "x" * 130, code=1)
    assert (told["outcome"], "30 too many" in told["text"]) == ("refused", True)
    assert run(kept, "memory", "show", "human")["blocks"][0]["version"] == 2
    assert "There is no block `humn`." in run(kept, "memory", "edit", "humn", "--value", "x", code=1)["text"]
    unattended = knapper("memory", "edit", "human", cwd=kept)
    assert (unattended.returncode, "Give --value TEXT, or --file FILE." in unattended.stderr) == (2, True)


def test_an_editor_is_opened_on_a_block_at_a_terminal(kept: Path) -> None:
    editor = kept / "editor.py"
    editor.write_text(
        "import sys, pathlib\npath = pathlib.Path(sys.argv[2])\npath.write_text(path.read_text().upper())\n"
    )
    environment = {"EDITOR": f"{sys.executable} {editor}"}
    with terminal("memory", "edit", "human", cwd=kept, environment=environment) as screen:
        screen.wait_for("NAME: ADA LOVELACE")
        assert screen.exit_code() == 0
    assert run(kept, "memory", "show", "human")["blocks"][0]["value"] == "NAME: ADA LOVELACE"


def test_a_section_is_set_shown_and_taken_away(kept: Path) -> None:
    section = ("memory", "edit", "rules", "--section")
    assert run(kept, *section, "--position", "7", "--value", "Be brief.")["section"] == "rules"
    (shown,) = run(kept, "memory", "show", "rules")["sections"]
    assert (shown["position"], shown["text"]) == (7, "Be brief.")
    run(kept, *section, "--value", "Be kind.")
    assert run(kept, "memory", "show", "rules")["sections"][0] | {"edited": 0} == shown | {
        "text": "Be kind.",
        "edited": 0,
    }
    run(kept, *section, "--value", "")
    assert run(kept, "memory", "show")["sections"] == []


def test_what_was_said_and_put_aside_is_searched_together_or_apart(kept: Path) -> None:
    found = run(kept, "memory", "search", "heron", "fish")
    assert [one["text"] for one in found["recall"]["results"]] == ["the code word is heron"]
    assert [one["text"] for one in found["archival"]["results"]] == ["Herons fish at dusk."]
    assert [*run(kept, "memory", "search", "heron", "--in", "recall", "--count", "1")] == ["recall"]
    assert "the code word is heron" in knapper("memory", "search", "heron", cwd=kept).stdout


def test_no_command_about_memory_makes_an_agent(tmp_path: Path) -> None:
    assert run(tmp_path, "memory", "show")["blocks"] == []
    assert "There is no agent `main`." in str(run(tmp_path, "memory", "search", "x", code=1))
    assert run(tmp_path, "agents", "list") == {"agents": []}


def test_a_block_is_made_shared_attached_and_taken_out_of_a_memory(kept: Path) -> None:
    assert run(kept, "agents", "import", str(other_agent(kept)), "--as", "bob")["agents"]
    assert run(kept, "memory", "add", "team", "--value", "Ann leads", "--limit", "40")["outcome"] == "returned"
    assert (
        "No shared block is called `team`." in run(kept, "memory", "attach", "team", "--agent", "bob", code=1)["text"]
    )
    assert "is shared" in run(kept, "memory", "share", "team")["text"]
    assert run(kept, "memory", "edit", "team", "--value", "Ann leads")["text"] == "Nothing was changed."
    run(kept, "memory", "attach", "team", "--agent", "bob")
    run(kept, "memory", "edit", "team", "--agent", "bob", "--value", "Bob leads")
    (shown,) = run(kept, "memory", "show", "team")["blocks"]
    assert (shown["value"], shown["limit"], shown["shared"]) == ("Bob leads", 40, True)
    run(kept, "memory", "detach", "team", "--agent", "bob")
    assert "team" not in knapper("memory", "show", "--agent", "bob", cwd=kept).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("human",), "there is a block `human` already", id="there-already"),
        pytest.param(("a b",), "`a b` cannot be a label", id="no-label"),
        pytest.param(("big", "--limit", "3", "--value", "abcd"), "1 too many", id="past-its-limit"),
        pytest.param(("vast", "--limit", "9" * 20), "Nothing was changed.\n  Give a smaller one.", id="no-such-limit"),
    ],
)
def test_a_block_that_cannot_be_is_refused_with_the_reason(kept: Path, words: tuple[str, ...], says: str) -> None:
    failed = knapper("memory", "add", *words, cwd=kept)
    assert (failed.returncode != 0, says in failed.stdout + failed.stderr) == (True, True)


def other_agent(root: Path) -> Path:
    file = root / "other.json"
    file.write_text(knapper("agents", "export", "main", cwd=root).stdout)
    return file


def test_the_limit_and_the_description_of_a_block_are_edited_alone_or_with_its_text(kept: Path) -> None:
    told = run(kept, "memory", "edit", "human", "--limit", "300", "--description", "Who it is.")
    (block,) = run(kept, "memory", "show", "human")["blocks"]
    assert (told["outcome"], block["limit"], block["description"]) == ("returned", 300, "Who it is.")
    assert block["value"] == "Name: Ada Lovelace"
    run(kept, "memory", "edit", "human", "--limit", "400", "--value", "x" * 350)
    (block,) = run(kept, "memory", "show", "human")["blocks"]
    assert (len(block["value"]), block["limit"], block["description"]) == (350, 400, "Who it is.")
    told = run(kept, "memory", "edit", "human", "--limit", "10", code=1)
    assert told["outcome"] == "refused"
    assert run(kept, "memory", "show", "human")["blocks"][0]["limit"] == 400
    wrong = knapper("memory", "edit", "rules", "--section", "--limit", "10", cwd=kept)
    assert (wrong.returncode, "Omit --section." in wrong.stderr) == (2, True)


def test_what_became_of_an_empty_block_is_told(kept: Path) -> None:
    run(kept, "memory", "add", "team", "--limit", "40")
    told = run(kept, "memory", "edit", "team", "--limit", "300", "--description", "Who leads.")["text"]
    assert told.split("\n") == [
        "The limit of `team` is now: 300",
        "The description of `team` is now: Who leads.",
        "`team` is still empty.",
    ]
    assert run(kept, "memory", "edit", "team", "--limit", "300")["text"] == "Nothing was changed."


async def test_the_best_hit_of_each_search_comes_before_the_far_ones_of_the_other(kept: Path) -> None:
    async with open_store(prepare_state_dir(kept) / "state.db", clock=Clock()) as store:
        for text in ("a heron", "that heron again", "one more heron"):
            await say(store, text)
    hits = knapper("memory", "search", "heron", cwd=kept).stdout.split("\n")[:5]
    passage = next(place for place, hit in enumerate(hits) if "Herons fish at dusk." in hit)
    assert passage <= 1, hits


def test_a_search_needs_no_lock(kept: Path) -> None:
    with lock_agent(prepare_state_dir(kept), "main"):
        found = run(kept, "memory", "search", "heron")
    assert found["recall"]["results"][0]["text"] == "the code word is heron"
    assert found["recall"]["results"][0]["message"] == "1.0"
