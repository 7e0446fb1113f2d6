"""Where no human can be asked the answer is no, with how to grant it; a command at a terminal asks."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.grants.support import READS
from tests.interfaces.asking import CALL, DONE, REFUSED, agree, home, made, service, weather
from tests.interfaces.support import flags
from tests.kit import Ask, Expect, Wanted, contains, scripted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, Terminal, terminal

ASKS = "yes (kept), n no, or w and a word; then Enter:"


@pytest.fixture
def place() -> Iterator[str]:
    with service() as found:
        yield found


def test_one_message_denies_and_says_so_to_the_model_and_once_to_the_human(tmp_path: Path, place: str) -> None:
    how = f"knapper functions grant weather --network {place}"
    told = Expect(made(place), contains(f"Nobody can be asked here.\nA human grants it with: {how}"))
    with scripted([made(place), told, DONE, DONE]) as model:
        done = knapper("run", *flags(model), "--message", "go", cwd=tmp_path, environment=home(tmp_path))
    assert (done.returncode, done.stdout) == (0, "That is all.\n" * 2)
    denied = f"! denied because nobody can be asked here: weather to fetch from {place}\n  to grant it: {how}\n"
    assert done.stderr.count(denied) == 1
    assert not (tmp_path / "functions" / "grants.toml").exists()


def test_events_of_a_script_say_what_was_denied_by_policy(tmp_path: Path, place: str) -> None:
    with scripted([made(place), *REFUSED]) as model:
        done = knapper("run", *flags(model), "--message", "go", "--json", cwd=tmp_path, environment=home(tmp_path))
    events = [json.loads(text) for text in done.stdout.splitlines()]
    [denied] = [event for event in events if event["type"].startswith("grant_")]
    assert denied["type"] == "grant_answered"
    assert (denied["answer"], denied["by"], denied["function"]) == ("no", "policy", "weather")
    assert denied["says"] == [f"fetch from {place}"]
    assert denied["command"].endswith(f"--network {place}")


def test_a_command_in_a_pipe_says_how_a_human_grants_it(tmp_path: Path, place: str) -> None:
    made = knapper(
        "functions", "create", "weather", "--file", "-", cwd=tmp_path, given=weather(place), environment=home(tmp_path)
    )
    assert made.returncode == 1
    assert f"A human grants it with: knapper functions grant weather --network {place}" in made.stderr


@pytest.mark.parametrize(
    ("typed", "code", "entry"), [("", 0, True), ("n\n", 1, False), (CTRL_C, 1, False)], ids=["yes", "no", "ctrl-c"]
)
def test_a_command_at_a_terminal_asks(tmp_path: Path, place: str, typed: str, code: int, entry: bool) -> None:
    (tmp_path / "new.py").write_text(weather(place))
    arguments = ("functions", "create", "weather", "--file", "new.py")
    with terminal(*arguments, cwd=tmp_path, environment=home(tmp_path)) as screen:
        screen.type("y\n")
        screen.wait_for(ASKS)
        assert f"    fetch from {place}" in screen.screen()
        assert "A yes takes the whole word: something was typed before it." in " ".join(screen.screen())
        screen.type("y\n")
        screen.wait_count(ASKS, 2)
        assert "Press o (once), y (always), n (no) or w (no, with a" in screen.scrolled()
        if typed:
            screen.type(typed)
        else:
            agree(screen)
        assert screen.exit_code() == code
    assert (tmp_path / "functions" / "grants.toml").exists() == entry


PAGED = "Enter shows more"


def long(place: str, root: Path) -> tuple[str, ...]:
    """Return a command whose question is longer than the screen."""
    comments = "".join(f"    # {number}\n" for number in range(60))
    (root / "new.py").write_text(weather(place).replace("    return", f"{comments}    return"))
    return "functions", "create", "weather", "--file", "new.py"


def test_a_yes_at_a_terminal_counts_only_below_the_last_page(tmp_path: Path, place: str) -> None:
    with terminal(*long(place, tmp_path), cwd=tmp_path, environment=home(tmp_path)) as screen:
        screen.wait_for(PAGED)
        screen.type("y\n")
        screen.wait_for("not all of it has been shown")
        while not any(ASKS in row for row in screen.screen()):
            seen = screen.scrolled()
            screen.type("\n")
            screen.wait(partial(_is_other, screen, seen), "the next page")
        assert "│ +    return" in screen.scrolled()
        agree(screen)
        assert screen.exit_code() == 0


def _is_other(screen: Terminal, seen: str) -> bool:
    return screen.scrolled() != seen and any(text in screen.screen()[-1] for text in (PAGED, ASKS))


def test_a_no_at_a_terminal_counts_on_every_page(tmp_path: Path, place: str) -> None:
    with terminal(*long(place, tmp_path), cwd=tmp_path, environment=home(tmp_path)) as screen:
        screen.wait_for(PAGED)
        screen.type("n\n")
        assert screen.exit_code() == 1
    assert "│ +    return" not in screen.scrolled()


def test_a_human_at_a_dumb_terminal_answers_with_a_line(tmp_path: Path, place: str) -> None:
    dumb = {"TERM": "dumb", **home(tmp_path)}
    told = Expect(DONE, contains("They say: “ask me tomorrow”."))
    with (
        scripted([made(place), told, DONE]) as model,
        terminal("run", *flags(model), cwd=tmp_path, environment=dumb) as screen,
    ):
        screen.wait_for("/help lists")
        screen.type("weather?\n")
        screen.wait_for(ASKS)
        screen.type("w ask me tomorrow\n")
        screen.wait_count("That is all.", 2)
    assert not (tmp_path / "functions" / "grants.toml").exists()


@pytest.mark.parametrize(("ahead", "turns"), [("y", 1), ("o", 1), ("y\n", 2), ("yes\no\n", 3)])
def test_no_form_of_typing_ahead_grants_at_a_dumb_terminal(tmp_path: Path, place: str, ahead: str, turns: int) -> None:
    dumb = {"TERM": "dumb", **home(tmp_path)}
    slow = made(place, text="One moment please. " * 4, pause_s=0.05)
    with (
        scripted([slow, *REFUSED, *[DONE] * (turns - 1)]) as model,
        terminal("run", *flags(model), cwd=tmp_path, environment=dumb) as screen,
    ):
        screen.wait_for("/help lists")
        screen.type("weather?\n")
        screen.wait_for("One moment")
        screen.type(ahead)
        screen.wait_for(ASKS)
        screen.type("\n")
        screen.wait_count(ASKS, 2)
        screen.type("n\n")
        screen.wait_count("That is all.", turns + 1)
    assert not (tmp_path / "functions" / "grants.toml").exists()


def test_the_end_of_input_at_a_question_is_a_no_and_leaves(tmp_path: Path, place: str) -> None:
    dumb = {"TERM": "dumb", **home(tmp_path)}
    with (
        scripted([made(place), DONE, DONE]) as model,
        terminal("run", *flags(model), cwd=tmp_path, environment=dumb) as screen,
    ):
        screen.wait_for("/help lists")
        screen.type("weather?\n")
        screen.wait_for(ASKS)
        screen.type("\x04")
        screen.wait_for("That is all.")
        assert screen.exit_code() == 0


def test_a_call_in_a_pipe_after_a_change_is_refused_and_says_how(tmp_path: Path, place: str) -> None:
    (tmp_path / "functions").mkdir()
    file = tmp_path / "functions" / "outside.py"
    file.write_text(weather(place))
    say = ("functions", "grant", "weather", "--network", place, "-y")
    assert knapper(*say, cwd=tmp_path, environment=home(tmp_path)).returncode == 0
    shown = knapper("functions", "show", "weather", cwd=tmp_path, environment=home(tmp_path)).stdout
    assert f"it may: fetch from {place}\n" in shown
    file.write_text(weather(place).replace(".text()", ".text().upper()"))
    arguments = ("functions", "call", "weather", "--args", json.dumps(CALL.arguments))
    done = knapper(*arguments, cwd=tmp_path, environment=home(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "may not in this new version (`weather` itself is changed): fetch from" in done.stderr
    assert f"knapper functions grant weather --network {place}" in done.stderr


def test_a_call_that_looks_into_a_folder_that_it_lacks_fails_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").write_text("6")
    text = READS.replace('Path("data").iterdir()', 'Path("data").glob("*")')
    (tmp_path / "functions" / "sums.py").write_text(text)
    done = knapper("functions", "call", "total", cwd=tmp_path, environment=home(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "PermissionError: `total` may not: read data/." in done.stderr
    assert "A human grants it with: knapper functions grant total --read data/" in done.stderr
    with scripted([Ask(Wanted("total")), Expect(DONE, contains("grant total --read data/"))]) as model:
        done = knapper("run", *flags(model), "--message", "go", cwd=tmp_path, environment=home(tmp_path))
    assert done.returncode == 0


def test_the_rest_of_a_paste_answers_no_question(tmp_path: Path, place: str) -> None:
    (tmp_path / "new.py").write_text(weather(place))
    arguments = ("functions", "create", "weather", "--file", "new.py")
    with terminal(*arguments, cwd=tmp_path, environment=home(tmp_path)) as screen:
        until = time.monotonic() + 8
        while time.monotonic() < until:  # input is still arriving when the question appears
            screen.type("yes\n")
            time.sleep(0.02)
        screen.wait_for(ASKS)
        screen.type("n\n")
        assert screen.exit_code() == 1
    assert not (tmp_path / "functions" / "grants.toml").exists()
