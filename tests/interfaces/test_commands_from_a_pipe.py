"""Commands from a pipe: those that only show something run, the others need an option."""

from pathlib import Path

from agent_core.operations.catalog import ENTRIES
from tests.interfaces.support import flags
from tests.kit import Expect, Repeat, Say, contains, scripted
from tests.kit.program import knapper

NAME = "count_vowels"
SHOWS = {
    "help": ["", "all", "undo"],
    "functions": ["", "vowels", "unused"],
    "introspect": [NAME],
    "about": [NAME],
    "show": [""],
    "break": [""],
    "grants": ["", NAME],
    "approvals": ["", NAME],
    "history": [NAME],
    "diff": [f"{NAME} 1"],
    "pending": ["", NAME],
    "audit": [""],
    "memory": ["", "human", "history", "history human", "search tea", "section", "section a"],
    "agents": ["", "tree"],
    "conversations": ["", "hello"],
    "waiting": [""],
    "log": ["", "--last 1", "--all --since 2026-01-01"],
    "changes": [""],
    "cost": ["", "day", "turn"],
    "clear": [""],
    "dump": [""],
    "model": [""],
    "exit": [""],
}
DOES_MORE = {
    "call": [f'{NAME}("a")'],
    "create": ["fresh"],
    "edit": [NAME],
    "test": [NAME],
    "break": [NAME, "now", "here", "clear"],
    "debug": [NAME, "last"],
    "trace": [NAME],
    "release": [NAME],
    "good": ["", NAME],
    "bad": ["", NAME],
    "grants": [f"{NAME} revoke"],
    "delete": [NAME],
    "pin": [NAME],
    "unpin": [NAME],
    "join": [NAME],
    "rename": [f"{NAME} other"],
    "move": [f"{NAME} other"],
    "rollback": [f"{NAME} 1"],
    "example": [f'{NAME}("a") = 1'],
    "pending": [f"{NAME} drop"],
    "confirm": [NAME],
    "reload": [""],
    "memory": [
        "edit human x",
        "edit human",
        "undo",
        "undo human",
        "section a 1 x",
        "section a drop",
    ],
    "attach": ["/etc/passwd"],
    "forget": ["tea", "last", "turn last"],
    "summarize": [""],
    "memorywarning": [""],
    "heartbeat": [""],
    "answer": ["123456 yes"],
    "cap": ["day_tokens 5"],
    "pause": ["", "holiday"],
    "resume": [""],
    "agents": ["pause main", "resume main", "stop main", "answer main x", "route main main"],
    "switch": ["other"],
    "save": ["", "kept.json"],
    "load": ["kept.json"],
    "log": ["-o kept.md", "--last 1 -o kept.md", "--since '1 -o kept.md'"],
    "mode": ["task", "ask on"],
    "go": [""],
    "retry": [""],
    "pop": [""],
    "changes": [NAME],
    "undo": [""],
    "new": [""],
    "conversations": ["delete hello", "undelete hello"],
    "waiting": ["edit 123456 x", "withdraw 123456"],
    "open": ["main"],
    "branch": [""],
    "name": ["another"],
    "shell": ["touch kept"],
    "dump": ["kept.txt"],
    "model": ["other"],
}
NEEDS_USER = [
    "/create fresh",
    f"/edit {NAME}",
    "/break now",
    "/break here",
    "/memory edit human",
    "/shell touch kept",
]


def typed(table: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table, in order."""
    return [f"/{name} {words}".strip() for name, each in table.items() for words in each]


def test_a_pipe_has_shown_what_it_asks_for(grown: Path) -> None:
    assert {entry.name for entry in ENTRIES} == SHOWS.keys() | DOES_MORE.keys()
    with scripted([Say("Hi.")]) as model:
        done = knapper("run", *flags(model), cwd=grown, given="\n".join(["hello", *typed(SHOWS)]))
    assert "Give -y" not in done.stdout
    assert "Count the vowels in a text." in done.stdout


def test_one_line_from_a_pipe_is_run_as_a_command_and_other_text_is_asked(grown: Path) -> None:
    with scripted([Expect(Say("Hi."), contains("/functions\nare what?"))]) as model:
        done = knapper("run", "--once", *flags(model), cwd=grown, given="/functions\n")
        refused = knapper("run", "--once", *flags(model), cwd=grown, given="/agents new editor\n")
        asked = knapper("run", "--once", *flags(model), cwd=grown, given="/functions\nare what?\n")
    assert "Count the vowels in a text." in done.stdout
    assert (refused.returncode, "came from a pipe" in refused.stdout) == (1, True)
    assert "Hi." in asked.stdout


def test_a_pipe_that_nobody_vouched_for_changes_and_runs_nothing(grown: Path) -> None:
    with scripted([Say("Hi.")]) as model:
        done = knapper(
            "run", *flags(model), cwd=grown, given="\n".join(["hello", *typed(DOES_MORE)])
        )
    refused = [row for row in done.stdout.splitlines() if row.endswith("came from a pipe.")]
    assert [row.split("`")[1] for row in refused] == typed(DOES_MORE)
    needs_user = [row.split("`")[1] for row in refused if "needs a user at a terminal" in row]
    assert needs_user == [row for row in typed(DOES_MORE) if row in NEEDS_USER]
    assert (done.returncode, done.stdout.count("Add -y")) == (1, len(refused) - len(NEEDS_USER))
    assert {path.name for path in grown.iterdir()} == {".knapper", "functions", "knapper.toml"}
    assert "**You:** hello" in knapper("log", cwd=grown).stdout


def test_a_pipe_that_is_vouched_for_does_all_but_what_needs_a_terminal(grown: Path) -> None:
    refused = (f"/edit {NAME}", "/create fresh", "/memory edit human")
    unknown = (f"/pending {NAME} dropp", f"/pending {NAME} drop it", f"/grants {NAME} revok")
    agreed = (
        "hello",
        "/pop",
        f"/delete {NAME}",
        "/memory edit human Likes tea.",
        "/save kept.json",
        "/load kept.json",
    )
    lines = (*refused, *unknown, *agreed)
    editor = {"EDITOR": "touch opened"}
    with scripted([Repeat(Say("Hi."))]) as model:
        done = knapper(
            "run", *flags(model), "-y", cwd=grown, given="\n".join(lines), environment=editor
        )
    assert (done.returncode, done.stdout.count("There is no terminal for an editor.")) == (1, 3), (
        done.stdout
    )
    assert (done.stdout + done.stderr).count(" cannot ") == len(unknown), done.stdout
    for did in (
        "removed from the context: hello",
        f"deleted {NAME}",
        "made of a file of this program's",
    ):
        assert did in done.stdout
    assert "Likes tea." in knapper("memory", "show", "human", cwd=grown).stdout
    assert (grown / "kept.json").exists()
