"""The last turn is taken back as its receipt says, any other change by name; what others changed since stays."""

import json
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS, NOTHING_LEFT, create, leave, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains
from tests.kit.desk import another
from tests.kit.program import knapper
from tests.kit.terminal import ALT_ENTER, DOWN, ESCAPE, Terminal

OLD = '"aeiou"'
NEW = '"aeioué"'
OTHERS = '"aeiouéü"'


def edit(old: str, new: str) -> Ask:
    changes = [{"old_text": old, "new_text": new}]
    wanted = {"function_name": "count_vowels", "changes": changes, "reason": "é"}
    return Ask(Wanted("edit_function", wanted))


def remember(text: str) -> Ask:
    return Ask(Wanted("core_memory_append", {"name": "human", "content": text}))


MADE: Script = [Ask(create(COUNT_VOWELS)), edit(OLD, NEW), Say("Done.")]


def undo(screen: Terminal, asks: str, then: str, command: str = "/undo") -> None:
    screen.do(command, asks)
    screen.answer("y")
    screen.wait_gone("Press y (yes)")
    screen.wait_for(then)


def block(root: Path) -> str:
    done = knapper("memory", "show", "human", "--json", cwd=root)
    return str(json.loads(done.stdout)["blocks"][0]["value"])


def test_each_undo_takes_back_what_one_turn_did_also_after_a_restart(tmp_path: Path) -> None:
    """Everything that a turn did goes at once; a turn that only talked is passed over."""
    file = tmp_path / "functions" / "words.py"
    later: Script = [remember("Has a cat."), edit(NEW, OTHERS), Say("Done."), Say("Hello.")]
    with prompt([*MADE, *later], tmp_path, columns=120) as (screen, _):
        screen.do("make it", "3 steps")
        screen.do("more letters", "3 steps")
        screen.do("hi", "∙ 1 step")
        screen.do("/undo", "Undo what “more letters” did: change count_vowels back to version 2")
        screen.answer("n")
        screen.wait_for("Nothing was changed.")
        undo(screen, "restore the block human as it was before the edit", "restored the block")
        assert NEW in file.read_text()
        assert block(tmp_path) == ""
        assert leave(screen) == 0
    with prompt([], tmp_path, columns=120) as (screen, _):
        undo(
            screen, "Undo what “make it” did: delete count_vowels, made by", "deleted count_vowels"
        )
        screen.do("/undo", NOTHING_LEFT)
        assert not file.exists()


def test_what_was_changed_since_stays_and_both_changes_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "functions" / "words.py"
    turn: Script = [remember("Has a cat."), edit(NEW, OTHERS), Say("Done.")]
    with prompt([*MADE, *turn], tmp_path, columns=140) as (screen, _):
        screen.do("make it", "3 steps")
        screen.do("more letters", "3 steps")
        file.write_text(file.read_text().replace(OTHERS, '"aeiouy"'))
        screen.wait_for("count_vowels was changed outside")
        screen.do(
            "/undo", "count_vowels stays: the agent main (scripted) changed it at", "and you at"
        )
        screen.wait_for("Undo what “more letters” did: restore the block human")
        screen.answer("y")
        screen.wait_for("restored the block human")
        assert '"aeiouy"' in file.read_text()
        screen.do("/undo", NOTHING_LEFT)
        screen.do("/changes", "you changed count_vowels")
        asks = "Undo: change count_vowels back to version 3 (by the agent main (scripted)"
        undo(screen, asks, "✓ count_vowels", "/changes count_vowels")
        undo(screen, "change count_vowels back to version 2", "✓ count_vowels")
        undo(screen, "delete count_vowels, made by", "deleted count_vowels")


def test_a_person_who_puts_a_thing_back_has_taken_back_what_came_after(tmp_path: Path) -> None:
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
        undo(screen, "delete count_vowels, made by the agent main", "deleted count_vowels")
        screen.do("/undo", NOTHING_LEFT)


def test_a_change_is_taken_back_by_its_name(tmp_path: Path) -> None:
    script: Script = [remember("Has a cat."), Say("Noted.")]
    with prompt(script, tmp_path, columns=140) as (screen, _):
        screen.do("/changes", "Nothing was made or changed in this session.")
        screen.do("remember it", "2 steps")
        screen.do("/memory edit human Only tea.", "reads now")
        screen.do("/changes", "you changed the block human", "/changes NAME")
        screen.do("/undo", "the block human stays: the agent main changed it at", NOTHING_LEFT)
        undo(screen, "before your edit", "restored the block human", "/changes human")
        assert block(tmp_path) == "Has a cat."
        screen.do("/changes nobody", "nobody was not changed in this session.")
        undo(screen, "Undo what “remember it” did", "restored the block human")
        assert block(tmp_path) == ""


@pytest.mark.parametrize("name", ["vowels_of", "count_vowels", "twice"])
def test_a_new_name_is_taken_back_in_all_files_by_any_of_its_functions(
    grown: Path, name: str
) -> None:
    files = {file.name: file for file in (grown / "functions").glob("*.py")}
    user = "from functions.words import count_vowels\n\n\n" + another("twice").replace(
        "return sum(", "return 0 * count_vowels(text) + sum("
    )
    files["twice.py"] = grown / "functions" / "twice.py"
    files["twice.py"].write_text(user)
    before = {name: file.read_text() for name, file in files.items()}
    with prompt([], grown, columns=140) as (screen, _):
        screen.do("/rename count_vowels vowels_of", "✓ count_vowels is vowels_of now")
        assert "vowels_of(text) + sum(" in files["twice.py"].read_text()
        asks = "Undo: take “renamed count_vowels to vowels_of (step "
        undo(screen, asks, "✓ ", f"/changes {name}")
        screen.do("/history vowels_of", "deleted")
    assert {name: file.read_text() for name, file in files.items()} == before


def test_a_move_is_listed_and_taken_back(grown: Path) -> None:
    words = grown / "functions" / "words.py"
    before = words.read_text()
    with prompt([], grown, columns=140) as (screen, _):
        screen.do("/move count_vowels letters", "✓ count_vowels is in letters now")
        assert not words.exists()
        screen.do("/changes", "you changed count_vowels")
        asks = "Undo: take “moved count_vowels from words to letters (step "
        undo(screen, asks, "✓ ", "/changes count_vowels")
        screen.do("/history count_vowels", "human")
    assert words.read_text() == before
    assert not (grown / "functions" / "letters.py").exists()


def test_an_undo_leaves_what_another_agent_did(tmp_path: Path) -> None:
    with prompt([Ask(create(COUNT_VOWELS)), Say("Done.")], tmp_path, columns=140) as (screen, _):
        screen.do("make it", "2 steps")
        screen.do("/switch other", "Create it?")
        screen.answer("y")
        screen.wait_count("/help lists", 2)
        screen.do("/undo", NOTHING_LEFT)
        screen.do("/changes", "the agent main (scripted) made count_vowels")
        screen.do("/switch main", "/help lists")
        undo(screen, "delete count_vowels", "deleted count_vowels")


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
        assert leave(screen) == 0


def test_a_yes_to_undo_or_delete_is_for_what_was_shown(tmp_path: Path) -> None:
    file = tmp_path / "functions" / "words.py"
    with prompt(MADE, tmp_path, columns=120) as (screen, _):
        screen.do("make it", "3 steps")
        screen.do("/undo", "delete count_vowels, made by the agent main")
        file.write_text(file.read_text().replace(NEW, '"aeiouéü"'))
        screen.wait_count("count_vowels was changed outside", 1)
        screen.answer("y")
        screen.wait_for("It changed meanwhile, so nothing was done.")
        screen.wait_for("count_vowels stays")
        screen.do("/delete count_vowels", "Delete count_vowels, version 3?")
        file.write_text(file.read_text().replace("ü", "ö"))
        screen.wait_count("count_vowels was changed outside", 2)
        screen.answer("y")
        screen.wait_for("Delete count_vowels, version 4?")
        screen.answer("n")
        screen.wait_for("Nothing was changed.")
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
        undo(screen, "delete count_more", "✓ deleted count_more")
        screen.do("/delete count_vowels", "Delete count_vowels, version 1?")
        screen.answer("y")
        screen.wait_for("✓ deleted count_vowels")
        screen.do("/changes count_vowels", "bring count_vowels back, which you deleted (")
        screen.answer("n", "Nothing was changed.")
        screen.do("And now?", "I know.")
        assert "⟳" not in screen.scrolled()
        assert "by you" not in screen.scrolled()
        assert "someone else" not in model.requests[-1].text
