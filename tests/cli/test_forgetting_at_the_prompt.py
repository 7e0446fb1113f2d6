"""`/forget` in a real pseudo-terminal: previewed, confirmed and removed; the conversation continues without it."""

import re
from pathlib import Path

from agent_core.storage import lock_agent, prepare_state_dir
from tests.interfaces.asking import agree, agree_in_full
from tests.interfaces.support import leave, prompt
from tests.kit import Ask, Expect, Say, Script, Seen, Wanted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, UP, Terminal

CTRL_R = "\x12"


def knows_no_password(seen: Seen) -> str | None:
    return "it still knows the password" if "hunter2" in str(seen.body).lower() else None


def forget(screen: Terminal, words: str, *shows: str) -> None:
    screen.do(f"/forget {words}", "To forget:", *shows)
    agree_in_full(screen)


def test_a_text_is_forgotten_in_mid_conversation_and_nothing_brings_it_back(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    script: Script = [Say("Hi there."), Say("Noted, hunter2."), Expect(Say("Hello again."), knows_no_password)]
    with prompt(script, tmp_path, columns=110) as (screen, _):
        screen.do("good morning", "∙ 1 step")
        screen.do("my password is hunter2 do not tell", "∙ 1 step")
        elsewhere = knapper("memory", "forget", "hunter2", "-y", cwd=tmp_path)
        assert (elsewhere.returncode, "Agent `main` is in use by process" in elsewhere.stderr) == (1, True)
        assert knapper("memory", "forget", "hunter2", "--dry-run", cwd=tmp_path).returncode == 0
        screen.do("/forget hunter2", "To forget: “hunter2”", "input history  1")
        screen.do("n", "Nothing was forgotten.")
        forget(screen, "hunter2", "To forget: “hunter2”")
        screen.wait_for("✓ forgot “hunter2”")
        screen.do("/forget giraffe77", "The record does not contain “giraffe77”.")
        screen.line("/clear")
        screen.wait_gone("✓ forgot")
        for shown in ("/clear", "good morning"):  # no line that forgot something, and no answer
            screen.type(UP)
            screen.wait_for(f"› {shown}")
        for begun, whole in (("hunter", "hunter2"), ("giraffe", "giraffe77")):
            screen.type(CTRL_C + CTRL_R + begun)
            screen.wait_for(f"I-search backward: {begun}")
            assert not any(whole in row for row in screen.screen())
        screen.type(CTRL_C)
        screen.wait_gone("I-search")
        screen.do("/cost", "Since ever, main: 2 turns")
        turns = [row for row in screen.screen() if row.startswith("main ")][:2]
        assert [("good morning" in row, "[forgotten]" in row) for row in turns] == [(True, False), (False, True)]
        screen.do("/show", "No call was made in this session.")
        assert not any("hunter2" in row for row in screen.screen())
        screen.do("hello?", "Hello again.", "∙ 1 step")
        with lock_agent(prepare_state_dir(tmp_path), "other"):
            forget(screen, "turn last", "To forget: turn 3 of main (“hello?”)")
            screen.wait_for("✓ forgot turn 3 of main")
        for left in ("my password is [forgotten] do not tell", "good morning"):
            screen.do("/undo", f"Undo: remove the message “{left}”")
            agree(screen)
            screen.wait_count("removed from the context", 2 if left == "good morning" else 1)
        screen.do("/undo", "✗ Nothing is left to undo in this session: what /forget removed cannot be restored.")
        assert leave(screen) == 0
    state = [path for path in (tmp_path / ".knapper").rglob("*") if path.is_file()]
    assert [path.name for path in state if b"hunter2" in path.read_bytes().lower()] == []


def test_the_lines_that_go_and_the_nearest_that_stay_are_shown_and_what_went_is_not_sent_again(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "one.py").write_text('def one() -> int:\n    """Return one."""\n    return 1\n')
    calls = Ask(Wanted("one")), Say("One.")
    with prompt([Say("Noted."), *calls, *calls, Say("Noted."), Say("Hi.")], tmp_path, columns=110) as (screen, _):
        screen.do("By the way: I like tea\x1b\rand long walks", "∙ 1 step")
        screen.do("/memory edit human Likes tea.", "reads now")
        stays = "the block human still says: Likes tea."
        screen.do("/forget I like tea", "user: By the way: I like tea", stays)
        assert "long walks" not in screen.scrolled().split("To forget:")[1]
        agree_in_full(screen)
        screen.wait_for("✓ forgot “I like tea”")
        screen.wait_count(stays, 2)
        screen.do("the word is zebra", "∙ 2 steps")
        forget(screen, "zebra")
        screen.wait_for("✓ forgot “zebra”")
        screen.do("again", "∙ 2 steps")
        screen.do("/show 1", "Type /show 2 … /show 2. /forget dropped those before.")
        screen.do("/show 2", "[2] one · rows 1-")
        screen.type("q")
        screen.wait_gone("[2] one · rows 1-")
        screen.do("\x1b\r".join(f"{'x' * 150} giraffe {at} {'y' * 150}" for at in range(12)), "∙ 1 step")
        screen.do("/forget giraffe", "The first lines to remove:")
        assert len(re.findall(r"giraffe\s+\d", screen.scrolled().rsplit("To forget:", 1)[1])) == 8
        screen.do("n", "Nothing was forgotten.")
        screen.do("this is Zoltan", "∙ 1 step")
        forget(screen, "message last", "To forget: message")
        screen.wait_for("✓ forgot message")
        screen.do("/retry", "Part of the last message was forgotten, so it is not sent again.")
        assert leave(screen) == 0


def test_what_was_typed_to_the_debugger_is_forgotten_with_the_rest(tmp_path: Path) -> None:
    typed = prepare_state_dir(tmp_path) / "debug_history"
    typed.write_text("\n# 2026-01-02 10:00:00.000000\n+p 'zoltan'\n\n# 2026-01-02 10:01:00.000000\n+p 1\n")
    done = knapper("memory", "forget", "Zoltan", "-y", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert typed.read_text().strip() == "# 2026-01-02 10:01:00.000000\n+p 1"
