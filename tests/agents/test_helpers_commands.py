"""`knapper helpers`: what people and scripts see of helpers, and how they change them."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.workspace.helper_changes import clusters
from tests.agents.helper_files import FINDER, call, give, put, write
from tests.conftest import OpenDesk
from tests.interfaces.support import prompt
from tests.kit import Ask, Say, Wanted
from tests.kit.program import knapper


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a helper."""
    (tmp_path / "knapper.toml").touch()
    put(tmp_path)
    return tmp_path


def in_json(root: Path, *arguments: str, code: int = 0) -> Any:
    done = knapper("helpers", *arguments, "--json", cwd=root)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_helpers_are_listed_shown_and_checked(root: Path) -> None:
    [row] = in_json(root, "list")["helpers"]
    assert row["signature"].startswith("vowel_finder(text")
    shown = in_json(root, "show", "vowel_finder")
    assert (shown["calls"], shown["result"], shown["text"]) == (
        ["count_vowels"],
        "list[str]",
        FINDER,
    )
    assert shown["budget"]["depth"] == 1
    (root / "helpers" / "bad.toml").write_text(
        FINDER.replace("count_vowels", "count_vowel"), "utf-8"
    )
    [problem] = in_json(root, "check", code=1)["problems"]
    assert (problem["code"], problem["path"], problem["line"]) == (
        "unknown-function",
        "helpers/bad.toml",
        4,
    )
    told = knapper("helpers", "check", cwd=root).stdout
    assert "1 helper is in force" in told
    assert "✓" not in told, "it did not pass"
    assert not in_json(root, "check", "bad", code=1)["admitted"]
    assert in_json(root, "check", "vowel_finder")["admitted"]
    assert (
        "Did you mean `vowel_finder`?" in knapper("helpers", "show", "vowel_findr", cwd=root).stderr
    )


def test_a_helper_is_created_and_each_rollback_goes_one_version_further_back_until_there_is_none(
    root: Path,
) -> None:
    text = FINDER.replace(
        "which words of a text have many vowels", "how a title reads best, and why"
    )
    (root / "new.txt").write_text(text, "utf-8")
    assert in_json(root, "create", "titles", "--file", "new.txt", "--reason", "asked")["admitted"]
    assert in_json(root, "delete", "titles")["admitted"]
    assert not (root / "helpers" / "titles.toml").exists()
    versions = in_json(root, "history", "titles")["versions"]
    assert (versions[0]["by"], versions[0]["reason"]) == ("human", "asked")
    assert in_json(root, "rollback", "titles", "1")["admitted"]
    assert (root / "helpers" / "titles.toml").read_text("utf-8") == text
    texts = [FINDER.replace("steps = 4", f"steps = {steps}") for steps in (4, 5, 6)]
    for text in texts[1:]:
        (root / "new.txt").write_text(text, "utf-8")
        assert in_json(root, "edit", "vowel_finder", "--file", "new.txt")["admitted"]
    for back in (2, 1):
        done = knapper("helpers", "rollback", "vowel_finder", "--reason", "worse", cwd=root)
        assert f"✓ vowel_finder was restored: version {back} of 20" in done.stdout
        assert (root / "helpers" / "vowel_finder.toml").read_text("utf-8") == texts[back - 1]
    last = knapper("helpers", "rollback", "vowel_finder", cwd=root)
    assert (last.returncode, "has no version before version 1" in last.stderr) == (2, True)
    reasons = [row["reason"] for row in in_json(root, "history", "vowel_finder")["versions"]]
    assert reasons[-1].startswith("rolled back to version 1 (")
    assert reasons[-1].endswith("): worse")
    assert in_json(root, "rollback", "vowel_finder", "3")["back"].startswith("version 3 of 20")
    assert in_json(root, "rollback", "vowel_finder")["back"].startswith("version 2 of 20")


async def test_functions_used_together_are_proposed_with_figures(
    tmp_path: Path, at_desk: OpenDesk
) -> None:
    put(tmp_path)
    (tmp_path / "helpers" / "vowel_finder.toml").unlink()
    both = Ask(Wanted("count_vowels", {"text": "a"}), Wanted("slug", {"text": "A b"}))
    desk = await at_desk([step for _ in range(3) for step in (both, Say("Done."))])
    for _ in range(3):
        await desk.say("Slug it and count.")
    turns = {
        "a": {"1", "2", "3", "4"},
        "b": {"1", "2", "3"},
        "c": {"1", "9"},
        "d": {"1", "2", "3", "5", "6", "7", "8"},
    }
    assert clusters(turns) == [("a", "b", "d")]
    assert clusters({"a": {"1", "2"}, "b": {"1", "2"}}) == []
    [proposal] = await desk.workspace.helper_proposals()
    assert proposal.functions == ("count_vowels", "slug")
    assert (proposal.together, proposal.turns, proposal.share, proposal.calls) == (3, 3, 1.0, 6)
    verdict = await desk.workspace.helper_changes.check(proposal.name, proposal.draft)
    assert verdict.admitted, verdict.problems


async def test_runs_of_helpers_are_no_agents_in_the_list(root: Path, at_desk: OpenDesk) -> None:
    desk = await at_desk([call(), give([]), Say("Done.")])
    await desk.say("Which?")
    await desk.agent.aclose()
    listed = json.loads(knapper("agents", "list", "--json", cwd=root).stdout)
    assert [row["name"] for row in listed["agents"]] == ["main"]
    tree = json.loads(knapper("agents", "tree", "--json", cwd=root).stdout)
    assert [(row["name"], row["kind"]) for row in tree["agents"]] == [("main", "agent")]
    [name] = (await desk.workspace.helpers.runs())["vowel_finder"]
    shown = knapper("agents", "show", name, "--json", cwd=root)
    assert json.loads(shown.stdout)["settings"]["caller"] == "main"
    assert "give_result" in knapper("log", "--agent", name, cwd=root).stdout


def test_a_session_lists_and_takes_back_what_it_did_to_helpers(root: Path) -> None:
    with prompt([], root, columns=110) as (screen, _):
        write(root, "vowel_finder", FINDER.replace("steps = 4", "steps = 5"))
        screen.wait_for("vowel_finder was changed outside")
        write(root, "letter_finder", FINDER.replace("many vowels", "few letters"))
        screen.wait_for("letter_finder was added outside")
        screen.line("/changes")
        screen.wait_for("you made the helper letter_finder")
        screen.wait_for("you changed the helper vowel_finder")
        screen.line("/changes letter_finder")
        screen.wait_for("delete the helper letter_finder, made by you")
        screen.answer("y")
        screen.wait_for("deleted the helper letter_finder")
        (root / "helpers" / "vowel_finder.toml").unlink()
        screen.wait_for("vowel_finder was removed outside")
        screen.line("/changes vowel_finder")
        screen.wait_for("bring the helper vowel_finder back, which you deleted")
        screen.answer("y")
        screen.wait_for("vowel_finder was restored")
        screen.line("/changes vowel_finder")
        screen.wait_for("change the helper vowel_finder back to version 1")
        screen.answer("y")
        screen.wait_count("vowel_finder was restored", 2)
        screen.line("/changes")
        screen.wait_for("you deleted the helper letter_finder")
    assert [file.name for file in (root / "helpers").glob("*.toml")] == ["vowel_finder.toml"]
    assert (root / "helpers" / "vowel_finder.toml").read_text("utf-8") == FINDER
