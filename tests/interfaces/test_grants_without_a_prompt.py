"""Where no human can be asked the answer is no, with how to grant it; a command at a terminal asks."""

import asyncio
import json
import shutil
import time
from functools import partial
from pathlib import Path

import pytest

from agent_core import Decision, Workspace
from agent_core.access.grants.approval import Answer
from tests.grants.support import READS
from tests.interfaces.asking import CALL, DONE, REFUSED, home, made, weather
from tests.interfaces.support import flags
from tests.kit import Ask, Expect, Say, Wanted, contains, scripted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, Terminal, terminal

ASKS = "reason, then Enter."
CREATE = ("functions", "create", "weather", "--file", "new.py")


def is_granted(root: Path) -> bool:
    return (root / "functions" / "grants.toml").exists()


def test_where_nobody_can_be_asked_it_is_a_no_that_says_how_to_grant_it(
    tmp_path: Path, place: str
) -> None:
    how = f"knapper functions grant weather --network {place}"
    told = Expect(
        made(place), contains(f"Nobody can be asked here.\nGrant it at a terminal: {how}")
    )
    with scripted([made(place), told, DONE, DONE, made(place), *REFUSED]) as model:
        run = ("run", *flags(model), "--message", "go")
        done = knapper(*run, cwd=tmp_path, environment=home(tmp_path))
        assert (done.returncode, done.stdout) == (0, "That is all.\n" * 2)
        denied = f"! denied because nobody can be asked here: weather to fetch from {place}\n  to grant it: {how}\n"
        assert done.stderr.count(denied) == 1
        lines = knapper(
            *run, "--json", cwd=tmp_path, environment=home(tmp_path)
        ).stdout.splitlines()
    [event] = [event for event in map(json.loads, lines) if event["type"].startswith("grant_")]
    assert (event["type"], event["answer"], event["by"]) == ("grant_answered", "no", "policy")
    assert (event["function"], event["says"], event["command"]) == (
        "weather",
        [f"fetch from {place}"],
        how,
    )
    piped = knapper(
        *CREATE[:-1], "-", cwd=tmp_path, given=weather(place), environment=home(tmp_path)
    )
    assert (piped.returncode, f"Grant it at a terminal: {how}" in piped.stderr) == (1, True)
    assert not is_granted(tmp_path)


@pytest.mark.parametrize(("answer", "calls"), [("yes", [0, 1, 2]), ("once", [0, 1, 1])])
async def test_a_question_that_nobody_could_be_asked_can_be_answered_before_it_comes_again(
    tmp_path: Path, place: str, answer: Answer, calls: list[int]
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "skies.py").write_text(weather(place))
    (tmp_path / "knapper.toml").touch()
    done = []
    for number in range(3):
        with scripted([Ask(CALL), DONE]) as model:
            run = partial(knapper, "run", *flags(model), "--message", "go", cwd=tmp_path)
            await asyncio.to_thread(run)
        done.append(model.requests[-1].text.count("rain in Oslo"))
        async with Workspace.open(tmp_path) as workspace:
            pending = await workspace.questions()
            if number == 0:
                (row,) = pending
                assert (row.question.function, row.question.missing.network) == (
                    "weather",
                    (place,),
                )
                await workspace.answer(row.id, Decision(answer))
    assert done == calls
    assert len(pending) == (answer == "once")


NOTES = '''\
def read_note(path: str) -> str:
    """Read a note.

    Args:
        path: The path of the note.

    Returns:
        Its text.
    """
    with open(path) as file:
        return file.read()
'''


async def test_one_function_pushes_out_no_question_about_another(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "skies.py").write_text(weather(place))
    (tmp_path / "functions" / "files.py").write_text(NOTES)
    (tmp_path / "data").mkdir()
    for number in range(12):
        (tmp_path / "data" / f"{number}.txt").write_text("x")
    (tmp_path / "knapper.toml").touch()
    calls = [Ask(Wanted("read_note", {"path": f"data/{number}.txt"})) for number in range(12)]
    with scripted([Ask(CALL), *calls, DONE]) as model:
        await asyncio.to_thread(
            partial(knapper, "run", *flags(model), "--message", "go", cwd=tmp_path)
        )
    async with Workspace.open(tmp_path) as workspace:
        asked = [row.question.function for row in await workspace.questions()]
    assert "weather" in asked
    assert len(asked) <= 9


@pytest.mark.parametrize("case", ["used once", "not used", "with an older state"])
async def test_a_kept_answer_counts_no_more_after_a_revocation(
    tmp_path: Path, place: str, case: str
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "skies.py").write_text(weather(place))
    (tmp_path / "knapper.toml").touch()

    async def turn() -> int:
        with scripted([Ask(CALL), DONE]) as model:
            await asyncio.to_thread(
                partial(knapper, "run", *flags(model), "--message", "go", cwd=tmp_path)
            )
        return model.requests[-1].text.count("rain in Oslo")

    assert await turn() == 0
    async with Workspace.open(tmp_path) as workspace:
        (row,) = await workspace.questions()
        await workspace.answer(row.id, Decision("yes"))
    shutil.copytree(tmp_path / ".knapper", tmp_path / "older")
    before = await turn() if case == "used once" else 0
    knapper("functions", "revoke", "weather", "--all", cwd=tmp_path)
    if case == "with an older state":
        shutil.rmtree(tmp_path / ".knapper")
        (tmp_path / "older").rename(tmp_path / ".knapper")
    assert await turn() == before
    grants = tmp_path / "functions" / "grants.toml"
    assert not grants.exists() or "network" not in grants.read_text()


def test_a_command_at_a_terminal_asks_and_input_from_before_is_no_answer(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "new.py").write_text(weather(place))
    for typed, code in (("n\n", 1), (CTRL_C, 1), ("", 0)):
        with terminal(*CREATE, cwd=tmp_path, environment=home(tmp_path)) as screen:
            screen.type("y\n")
            screen.wait_for(ASKS)
            assert f"    fetch from {place}" in screen.screen()
            assert "Something was typed before it: type once, yes (always), n (no)" in " ".join(
                screen.screen()
            )
            screen.type("y\n")
            screen.wait_count(ASKS, 2)
            assert "That is not an answer." in screen.scrolled()
            if typed:
                screen.type(typed)
            else:
                screen.answer("y")
            assert screen.exit_code() == code
        assert is_granted(tmp_path) == (code == 0)


@pytest.mark.slow
def test_the_rest_of_a_paste_answers_no_question(tmp_path: Path, place: str) -> None:
    (tmp_path / "new.py").write_text(weather(place))
    with terminal(*CREATE, cwd=tmp_path, environment=home(tmp_path)) as screen:
        until = time.monotonic() + 8
        while time.monotonic() < until:  # input is still arriving when the question appears
            screen.type("yes\n")
            time.sleep(0.02)
        screen.wait_for(ASKS)
        screen.type("n\n")
        assert screen.exit_code() == 1
    assert not is_granted(tmp_path)


PAGED = "Enter shows more"


def test_of_a_question_of_many_pages_a_no_counts_on_each_and_a_yes_below_the_last(
    tmp_path: Path, place: str
) -> None:
    comments = "".join(f"    # {number}\n" for number in range(60))
    (tmp_path / "new.py").write_text(weather(place).replace("    return", f"{comments}    return"))
    with terminal(*CREATE, cwd=tmp_path, environment=home(tmp_path)) as screen:
        screen.wait_for(PAGED)
        screen.type("n\n")
        assert screen.exit_code() == 1
    assert "│ +    return" not in screen.scrolled()
    with terminal(*CREATE, cwd=tmp_path, environment=home(tmp_path)) as screen:
        screen.wait_for(PAGED)
        screen.type("y\n")
        screen.wait_for("not all of it has been shown")
        screen.wait_count(PAGED, asked := 2)
        while ASKS not in screen.scrolled():
            screen.type("\n")
            screen.wait(partial(_asks_again, screen, asked), "the next page")
            asked += 1
        assert "│ +    return" in screen.scrolled()
        screen.answer("y")
        assert screen.exit_code() == 0


def _asks_again(screen: Terminal, asked: int) -> bool:
    return sum(map(screen.scrolled().count, (PAGED, ASKS))) > asked


AHEAD = (("y", 1), ("o", 1), ("y\n", 2), ("yes\no\n", 2))  # and how many turns come of it


@pytest.mark.slow
def test_a_dumb_terminal_is_answered_with_a_line_and_nothing_typed_ahead_grants(
    tmp_path: Path, place: str
) -> None:
    slow = made(place, text="One moment please. " * 4, pause_s=0.05)
    told = Expect(DONE, contains("They say: “ask me tomorrow”."))
    ahead_of_it: list[Ask | Say] = []
    for _, turns in AHEAD:
        ahead_of_it += [slow, *[DONE] * (turns + 1)]
    dumb = {"TERM": "dumb", **home(tmp_path)}
    with (
        scripted([made(place), told, DONE, *ahead_of_it, made(place), DONE, DONE]) as model,
        terminal("run", *flags(model), cwd=tmp_path, environment=dumb, rows=60) as screen,
    ):
        screen.wait_for("/help lists")
        screen.type("weather?\n")
        screen.wait_for(ASKS)
        screen.type("w ask me tomorrow\n")
        screen.wait_count("That is all.", said := 2)
        for ahead, turns in AHEAD:
            questions, moments = (screen.scrolled().count(text) for text in (ASKS, "One moment"))
            screen.type("weather?\n")
            screen.wait_count("One moment", moments + 1)
            screen.type(ahead)
            screen.wait_count(ASKS, questions + 1)
            screen.type("\n")
            screen.wait_count(ASKS, questions + 2)
            screen.type("n\n")
            said += turns + 1
            screen.wait_count("That is all.", said)
        questions = screen.scrolled().count(ASKS)
        screen.type("weather?\n")
        screen.wait_count(ASKS, questions + 1)
        screen.type("\x04")  # the end of input is a no, and leaves
        screen.wait_count("That is all.", said + 1)
        assert screen.exit_code() == 0
    assert not is_granted(tmp_path)


def test_a_call_in_a_pipe_after_a_change_is_refused_and_says_how(folder: Path, place: str) -> None:
    file = folder / "functions" / "outside.py"
    file.write_text(weather(place))
    say = ("functions", "grant", "weather", "--network", place, "-y")
    assert knapper(*say, cwd=folder, environment=home(folder)).returncode == 0
    shown = knapper("functions", "show", "weather", cwd=folder, environment=home(folder)).stdout
    assert f"it may: fetch from {place}\n" in shown
    file.write_text(weather(place).replace(".text()", ".text().upper()"))
    arguments = ("functions", "call", "weather", "--args", json.dumps(CALL.arguments))
    done = knapper(*arguments, cwd=folder, environment=home(folder))
    assert (done.returncode, done.stdout) == (1, "")
    assert "may not in this new version (`weather` itself is changed): fetch from" in done.stderr
    assert f"knapper functions grant weather --network {place}" in done.stderr


def test_a_call_that_looks_into_a_folder_that_it_lacks_fails_and_says_so(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "one").write_text("6")
    text = READS.replace('Path("data").iterdir()', 'Path("data").glob("*")')
    (folder / "functions" / "sums.py").write_text(text)
    done = knapper("functions", "call", "total", cwd=folder, environment=home(folder))
    assert (done.returncode, done.stdout) == (1, "")
    assert "PermissionError: `total` may not: read data/." in done.stderr
    assert "Grant it at a terminal: knapper functions grant total --read data/" in done.stderr
    with scripted(
        [Ask(Wanted("total")), Expect(DONE, contains("grant total --read data/"))]
    ) as model:
        done = knapper(
            "run", *flags(model), "--message", "go", cwd=folder, environment=home(folder)
        )
    assert done.returncode == 0
