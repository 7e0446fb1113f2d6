"""What a session changed is listed, undone one by one or all at once, and named with who did it."""

import json
from pathlib import Path

from tests.interfaces.support import COUNT_VOWELS, create, leave, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains
from tests.kit.desk import another
from tests.kit.program import knapper
from tests.kit.terminal import ALT_ENTER, DOWN, ESCAPE, Terminal

OLD, NEW = '"aeiou"', '"aeioué"'
EDIT = Ask(
    Wanted(
        "edit_function",
        {
            "function_name": "count_vowels",
            "changes": [{"old_text": OLD, "new_text": NEW}],
            "reason": "é",
        },
    )
)
MADE: Script = [Ask(create(COUNT_VOWELS)), EDIT, Say("Done.")]
NOTHING = "Nothing was changed or said in this session."


def undo(screen: Terminal, words: str, asks: str, then: str) -> None:
    screen.do(f"/undo {words}".strip(), f"Undo: {asks}")
    screen.answer("y")
    screen.wait_gone("Press y (yes)")
    screen.wait_for(then)


def test_each_undo_takes_back_the_last_change_of_a_function_and_then_the_message(
    tmp_path: Path,
) -> None:
    file = tmp_path / "functions" / "words.py"
    with prompt(MADE, tmp_path, columns=120) as (screen, _):
        screen.do("make it", "3 steps")
        screen.do(
            "/history count_vowels",
            "versions of count_vowels 2 of 2:",
            f"+    return sum(letter in {NEW}",
        )
        screen.type(DOWN)
        screen.wait_for("+def count_vowels(text")
        screen.type(ESCAPE)
        screen.wait_gone("versions of count_vowels")
        screen.do("/rollback count_vowels 1", "✓ count_vowels: version 1 of")
        undo(
            screen, "", "change count_vowels back to version 2 (by the agent main", "✓ count_vowels"
        )
        screen.wait(lambda: NEW in file.read_text(), "the second version in the file")
        screen.do("/undo", "Undo: change count_vowels back to version 1")
        screen.do("n", "Nothing was changed.")
        undo(screen, "", "change count_vowels back to version 1", "✓ count_vowels")
        undo(screen, "", "delete count_vowels, made by", "deleted count_vowels")
        undo(screen, "", "remove the message “make it”", "removed from the context: make it")
        screen.do("/undo", NOTHING)
        assert not file.exists()


def test_all_that_a_session_changed_is_listed_and_undone_at_once(tmp_path: Path) -> None:
    with prompt(MADE, tmp_path, columns=120) as (screen, _):
        screen.do("make it", "3 steps")
        screen.do("/memory edit human Likes tea.", "reads now")
        made, changed = "the agent main (scripted) made count_vowels", "you changed the block human"
        screen.do("/changes", made, changed, "and 1 turn: /pop removes the last one.")
        screen.do("/undo 9", "There is no change 9.")
        restored = "restored the block human as it was when the session began"
        undo(screen, "all", "", "✓ deleted count_vowels")
        screen.wait_for(restored)
        screen.do("/undo all", "Nothing was made or changed in this session.")


def test_an_undo_of_a_block_takes_back_the_edits_of_one_hand_and_leaves_the_others(
    tmp_path: Path,
) -> None:
    """The agent writes two lines, the user two, and each undo by number takes back one hand's; /undo alone one edit."""
    remember = [
        Ask(Wanted("core_memory_append", {"name": "human", "content": line}))
        for line in ("Has a cat.", "Naps.")
    ]
    with prompt([*remember, Say("Noted.")], tmp_path, columns=140) as (screen, _):
        screen.do("remember it", "3 steps")
        mine = "Has a cat.\nNaps."
        screen.do("/memory edit human Only tea.", "reads now")
        screen.do("/memory edit human Only coffee.", "reads now")
        undo(screen, "", "restore the block human as it was before your edit", "Only tea.")
        screen.do("/memory edit human Only cocoa.", "reads now")
        screen.do("/changes", "you changed the block human")
        undo(
            screen,
            "1",
            "restore the block human as it was before your edit",
            "restored the block human",
        )
        assert block(tmp_path) == mine
        screen.do("/changes", "the agent main changed the block human")
        undo(
            screen,
            "1",
            "restore the block human as it was when the session began",
            "when the session began",
        )
        assert mine not in block(tmp_path)
        screen.do("/changes", "and 1 turn")


def block(root: Path) -> str:
    done = knapper("memory", "show", "human", "--json", cwd=root)
    return str(json.loads(done.stdout)["blocks"][0]["value"])


def test_an_undo_says_whose_the_change_was_and_leaves_what_another_agent_did(
    tmp_path: Path,
) -> None:
    file = tmp_path / "functions" / "words.py"
    with prompt([Ask(create(COUNT_VOWELS)), Say("Done.")], tmp_path, columns=140) as (screen, _):
        screen.do("make it", "2 steps")
        screen.do("/switch other", "Create it?")
        screen.answer("y")
        screen.wait_count("/help lists", 2)
        screen.do("/undo", "A change of count_vowels by the agent main", NOTHING)
        screen.do("/switch main", "/help lists")
        screen.do("/undo", "Undo: delete count_vowels")
        screen.do("n", "Nothing was changed.")
        made = file.read_text()
        for letters in ("aeioué", "aeiouéü"):
            before = screen.scrolled().count("count_vowels was changed outside")
            file.write_text(made.replace("aeiou", letters))
            screen.wait_count("count_vowels was changed outside", before + 1)
        screen.do("/changes", "you changed count_vowels")
        undo(
            screen,
            "1",
            "change count_vowels back to version 1 (by the agent main (scripted)",
            "✓ count_vowels",
        )
        screen.wait(lambda: OLD in file.read_text(), "the agent's version in the file")
        screen.do("/changes", "the agent main (scripted) made count_vowels")
        file.write_text(made.replace("aeiou", "aeioué"))
        screen.wait_count("count_vowels was changed outside", 3)
        whose = "made by the agent main (scripted) and changed by you?"
        undo(screen, "all", f"delete count_vowels, {whose}", "deleted count_vowels")


def test_a_message_is_sent_again_or_taken_back_and_the_dump_shows_the_rest(tmp_path: Path) -> None:
    again = Expect(Say("Third."), contains("two\nlines"))
    awake = Expect(Say("Awake."), contains("look around"))
    with prompt([Say("First."), Say("Second."), again, awake], tmp_path) as (screen, model):
        screen.do("one", "∙ 1 step")
        screen.do(f"two{ALT_ENTER}lines", "∙ 1 step")
        screen.do("/retry", "∙ 1 step")
        assert "Second." not in model.requests[-1].text
        assert screen.scrolled().count("› two\n  lines") == 2
        screen.do("/pop", "removed from the context: two")
        screen.do("/dump kept.txt", "lines in kept.txt")
        kept = (tmp_path / "kept.txt").read_text()
        assert (kept[:9], "\nfunction create_function\n" in kept) == ("system\n  ", True)
        assert kept.endswith("\nuser\n  one\nassistant\n  First.\n")
        screen.do("/heartbeat look around", "∙ 1 step")
        screen.do("/pop 2", "/pop takes no arguments, so it was not run.")
        screen.do("/pop", "removed from the context: a turn that no message began: Heartbeat")
        screen.do("/pop", "removed from the context: one")
        screen.do("/pop", "There is no turn to remove.")
        screen.do("/undo", NOTHING)
        assert leave(screen) == 0


def test_a_yes_to_undo_or_delete_is_for_what_was_shown(tmp_path: Path) -> None:
    file = tmp_path / "functions" / "words.py"
    with prompt(MADE, tmp_path, columns=120) as (screen, _):
        screen.do("make it", "3 steps")
        screen.do("/undo", "Undo: change count_vowels back to version 1")
        file.write_text(file.read_text().replace(NEW, '"aeiouéü"'))
        screen.wait_count("count_vowels was changed outside", 1)
        screen.answer("y")
        screen.wait_for("It changed meanwhile, so nothing was done.")
        screen.wait_for("Undo: change count_vowels back to version 2")
        screen.answer("n")
        screen.wait_for("Nothing was changed.")
        screen.do("/delete count_vowels", "Delete count_vowels, version 3?")
        file.write_text(file.read_text().replace("ü", "ö"))
        screen.wait_count("count_vowels was changed outside", 2)
        screen.answer("y")
        screen.wait_for("Delete count_vowels, version 4?")
        screen.answer("n")
        screen.wait_for("Nothing was deleted.")
    assert "aeiouéö" in file.read_text()


def test_what_the_user_does_here_is_told_to_the_model_as_the_users_and_not_shown_twice(
    grown: Path,
) -> None:
    told = contains("The user changed functions. `count_more` is gone. `count_vowels` is gone.")
    script: Script = [
        Ask(create(another("count_more"), "count_more")),
        Say("Made."),
        Expect(Say("I know."), told),
    ]
    with prompt(script, grown, columns=120) as (screen, model):
        screen.do("Make it.", "∙ created count_more")
        undo(screen, "1", "delete count_more", "✓ deleted count_more")
        screen.do("/delete count_vowels", "Delete count_vowels, version 1?")
        screen.answer("y")
        screen.wait_for("✓ deleted count_vowels")
        screen.do("/undo", "Undo: bring count_vowels back, which you deleted (")
        screen.do("n", "Nothing was changed.")
        screen.do("And now?", "I know.")
        assert "⟳" not in screen.scrolled()
        assert "by you" not in screen.scrolled()
        assert "someone else" not in model.requests[-1].text
