"""The tour: a scripted growth session through the real loop; every screen says that it is scripted."""

from itertools import product
from pathlib import Path
from typing import Any

from agent_core.model.tour import LABEL, SERVED, play, script
from tests.interfaces.asking import home, press
from tests.interfaces.support import leave
from tests.kit.program import knapper
from tests.kit.terminal import terminal

VOWELS = "how many vowels are in queueing?"
GRANT = "how many functions are in tour.py?"
ALONE = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


def played(*typed: str, cwd: Path) -> str:
    done = knapper(
        "run", "--model", "tour", cwd=cwd, given="\n".join(typed) + "\n", environment=ALONE
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_anything_off_its_script_gets_an_honest_answer_and_a_second_tour_says_what_is_there(
    tmp_path: Path,
) -> None:
    seen = played(
        "What is the meaning of life?", GRANT, "how many vowels are in Señora-queue?", cwd=tmp_path
    )
    for part in (
        LABEL,
        "I have not understood it",
        "OPENAI_API_KEY",
        "Ollama",
        "knapper models get",
    ):
        assert part in seen
    assert "There is no `tour.py` yet" in seen
    assert 'There are 7 vowels in "Señora-queue"' in seen  # a hyphenated word counts as one
    assert "not follow my script" not in seen
    assert [*(tmp_path / ".knapper").rglob("*tour*")]  # a conversation of its own
    assert [*(tmp_path / ".knapper").rglob("*main*")] == []
    again = played("start", "next", "next", cwd=tmp_path)
    assert "`count_vowels` already exists" in again
    assert '"A. L."' in again


def test_from_every_screen_next_leads_to_the_following_one() -> None:
    for functions, number in product(
        (frozenset[str](), {"count_vowels", "initials"}), range(1, script().screens)
    ):
        shown = {"role": "assistant", "content": f"**Screen {number} of 10"}
        known = functions | ({"count_vowels"} if number > 1 else set())
        line = play([shown, {"role": "user", "content": "next"}], frozenset(known))
        assert line.call or f"Screen {number + 1} of" in line.text


def test_a_call_that_did_not_go_by_the_script_is_told_and_not_hidden() -> None:
    call = {
        "id": "1",
        "function": {"name": "create_function", "arguments": '{"function_name": "count_vowels"}'},
    }
    messages: list[dict[str, Any]] = [  # Any: as on the wire
        {"role": "user", "content": VOWELS},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "`count_vowels` is not made yet."},
    ]
    line = play(messages, frozenset())
    assert not line.call
    assert "did not follow my script" in line.text
    assert "is not made yet" in line.text


def test_a_file_changed_by_hand_is_seen_and_one_is_asked_for_and_read_by_a_yes(
    tmp_path: Path,
) -> None:
    with terminal(
        "run", "--model", "tour", cwd=tmp_path, environment=ALONE | home(tmp_path)
    ) as screen:
        screen.wait_for("Screen 1 of 10")
        screen.do(VOWELS, "Screen 2 of 10")
        file = tmp_path / "functions" / "tour.py"
        file.write_text(file.read_text().replace('"aeiou"', '"aeiouy"'))
        screen.wait_for("⟳ count_vowels was changed outside")
        screen.do("how many vowels are in rhythm?", 'In "rhythm" it is 1 now')
        screen.wait_for(f"tour · {SERVED} · ")  # the status bar says it too
        screen.wait_count("∙ ", 3)
        screen.do(GRANT, "    read functions/tour.py")
        press(screen, "y")
        screen.wait_for("It joined with your approval")
        assert leave(screen) == 0
    assert 'read = ["functions/tour.py"]' in (tmp_path / "functions" / "grants.toml").read_text()


def test_a_tour_that_nobody_types_plays_by_itself_to_its_end_and_touches_nothing(
    tmp_path: Path,
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = knapper("run", "--model", "tour", cwd=empty, environment=ALONE | home(tmp_path))
    assert done.returncode == 0, done.stderr
    for number in range(1, script().screens + 1):
        assert done.stdout.count(f"**Screen {number} of 10 · {LABEL}**") == 1, number
    assert [text for text in done.stdout.splitlines() if text.startswith("› ")] == [
        f"› {typed.text}" for typed in script().typed
    ]
    for part in (
        'In "rhythm" it is 1 now',
        "initials refused: 1 problem",
        "denied because nobody can be asked here",
    ):
        assert part in done.stdout + done.stderr, part
    assert "not follow my script" not in done.stdout
    assert list(empty.iterdir()) == []


def test_a_tour_whose_functions_cannot_be_made_says_so_and_fails(tmp_path: Path) -> None:
    unwilling = {"KNAPPER_GROWTH_MODE": "ask"}  # and there is nobody to ask
    done = knapper("run", "--model", "tour", cwd=tmp_path, environment=ALONE | unwilling)
    assert done.returncode == 1
    assert "functions/tour.py was not made, so the tour ends here." in done.stdout + done.stderr
