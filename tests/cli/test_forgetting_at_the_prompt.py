"""`/forget` in a real pseudo-terminal: previewed, confirmed, gone; and the conversation goes on without it."""

from pathlib import Path

from agent_core.storage import lock_agent, prepare_state_dir
from tests.interfaces.asking import agree
from tests.interfaces.support import leave, prompt
from tests.kit import Expect, Say, Script, Seen
from tests.kit.program import toolwright


def knows_no_zoltan(seen: Seen) -> str | None:
    return "it still knows Zoltan" if "zoltan" in str(seen.body).lower() else None


def test_a_name_is_forgotten_in_mid_conversation_and_the_model_no_longer_sees_it(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    script: Script = [Say("Nice to meet Zoltan."), Expect(Say("Hello again."), knows_no_zoltan)]
    with prompt(script, tmp_path, columns=110) as (screen, _):
        screen.line("this is my friend Zoltan")
        screen.wait_for("Nice to meet Zoltan.")
        screen.wait_for("1 step")
        screen.line("/forget zoltan")
        screen.wait_for("input history  1")
        screen.line("n")
        screen.wait_for("Nothing was forgotten.")
        screen.line("/forget zoltan")
        screen.wait_count("To forget: “zoltan”", 2)
        agree(screen)
        screen.wait_for("✓ forgot “zoltan”")
        screen.wait_for("main · scripted")
        screen.line("hello?")
        screen.wait_for("Hello again.")
        screen.line("/forget turn last")
        screen.wait_for("To forget: turn 2 of main (“hello?”)")
        agree(screen)
        screen.wait_for("✓ forgot turn 2 of main")
        assert leave(screen) == 0
    state = [path for path in (tmp_path / ".toolwright").rglob("*") if path.is_file()]
    assert [path.name for path in state if b"zoltan" in path.read_bytes().lower()] == []


def test_it_is_refused_while_another_process_holds_one_of_the_agents(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([Say("Hi.")], tmp_path, columns=110) as (screen, _):
        screen.line("this is Zoltan")
        screen.wait_for("1 step")
        refused = toolwright("memory", "forget", "Zoltan", "-y", cwd=tmp_path)
        assert (refused.returncode, "Agent `main` is in use by process" in refused.stderr) == (1, True)
        assert toolwright("memory", "forget", "Zoltan", "--dry-run", cwd=tmp_path).returncode == 0
        with lock_agent(prepare_state_dir(tmp_path), "other"):
            screen.line("/forget message last")
            screen.wait_for("To forget: message")
            agree(screen)
            screen.wait_for("✓ forgot message")
        assert leave(screen) == 0
