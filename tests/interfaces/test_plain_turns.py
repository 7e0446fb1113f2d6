"""Turns without a prompt: pipes, JSON lines, exit codes, what resumes, and who answers about grants."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.interfaces.asking import CALL, DONE, home, made
from tests.interfaces.support import COUNT_VOWELS, HERE, create, flags
from tests.kit import Ask, Expect, Fail, Say, Script, Wanted, contains, scripted
from tests.kit.program import Program, knapper, surroundings
from tests.kit.terminal import KNAPPER, terminal

GROW: Script = [
    Ask(create(COUNT_VOWELS)),
    Ask(Wanted("count_vowels", {"text": "queueing"})),
    Say("There are **5**."),
]
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def test_one_message_gives_the_reply_on_stdout_and_talk_on_stderr(tmp_path: Path) -> None:
    with scripted(GROW) as model:
        done = knapper("run", *flags(model), "--message", "count", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "There are **5**.\n")
    assert "✓ made count_vowels(text) -> int · 2 of 2 examples · computes only" in done.stderr
    assert "▸ count_vowels(text='queueing') → 5" in done.stderr
    assert not CONTROL.search((done.stdout + done.stderr).replace("\n", ""))


def test_what_is_not_utf_8_is_refused_before_anything_is_sent_or_kept(tmp_path: Path) -> None:
    with scripted([]) as model:
        typed = knapper(
            "run", *flags(model), "--once", "--message", "-", cwd=tmp_path, given=b"caf\xe9 menu\n"
        )
        argued = knapper("run", *flags(model), "--message", "caf\udce9", cwd=tmp_path)
        briefed = knapper(
            "run", *flags(model), "--once", "--message", "hi", "-s", "caf\udce9", cwd=tmp_path
        )
    assert (typed.returncode, argued.returncode, briefed.returncode) == (2, 2, 2)
    assert "Standard input is not text in UTF-8: byte 4." in typed.stderr
    assert "is not text in UTF-8: 'caf\\udce9'" in argued.stderr
    assert "is not text in UTF-8: 'caf\\udce9'" in briefed.stderr
    assert "failed" not in typed.stderr + argued.stderr + briefed.stderr


def test_each_line_of_a_pipe_is_a_turn_or_a_command_if_it_is_utf_8(tmp_path: Path) -> None:
    refused = "✗ The message is not text in UTF-8, and was not sent.\n  Send it in UTF-8.\n"
    with scripted([Say("One."), Say("Two.")] * 2) as model:
        for line, code, says in ((b"", 0, ""), (b"caf\xe9 menu\n", 1, refused)):
            done = knapper(
                "run",
                *flags(model),
                cwd=tmp_path,
                given=b"first\n\n/functions\n" + line + b"second",
            )
            assert (done.returncode, done.stdout) == (
                code,
                f"One.\nNo functions. Ask for one.\n{says}Two.\n",
            )
        empty = knapper("run", *flags(model), cwd=tmp_path, given="\n")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert (
        "standard input is empty. Next: knapper run --message TEXT, or knapper run, where you type"
        in empty.stderr
    )


def test_events_are_json_lines_that_end_with_the_turn(tmp_path: Path) -> None:
    with scripted(GROW) as model:
        done = knapper("run", *flags(model), "--message", "count", "--json", cwd=tmp_path)
    events = [json.loads(text) for text in done.stdout.splitlines()]
    types = [event["type"] for event in events]
    assert (types[0], types[-1], done.returncode) == ("turn_started", "turn_ended", 0)
    assert {"call", "answer", "text", "usage"} <= set(types)
    assert events[-1]["made"] == {"created": ["count_vowels"], "called": {"count_vowels": 1}}


def test_ctrl_c_ends_a_one_shot_turn_with_a_valid_history(tmp_path: Path) -> None:
    with scripted([Say("so it goes on and on " * 30, pause_s=0.05), Say("Here.")]) as model:
        command = [*KNAPPER, "run", *flags(model), "--message", "tell"]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=surroundings({"PYTHONPATH": HERE}),
        )
        assert process.stdout is not None
        process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        _, talk = process.communicate(timeout=20)
        assert process.returncode == 1
        assert b"Interrupted." in talk
        assert (
            knapper("run", *flags(model), "--message", "there?", cwd=tmp_path).stdout == "Here.\n"
        )


def test_what_a_function_prints_is_an_event_and_no_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "says.py").write_text(
        'def says(self) -> int:\n    """Say."""\n    print("so\\x1b[5m")\n    return 1\n'
    )
    script: Script = [Ask(Wanted("says")), Say("Done.")]
    for form in ((), ("--json",)):
        with scripted(script) as model:
            done = knapper("run", *flags(model), *form, "--message", "go", cwd=tmp_path)
        assert not CONTROL.search((done.stdout + done.stderr).replace("\n", ""))
        events = [json.loads(line) for line in done.stdout.splitlines()] if form else []
        assert [one["text"] for one in events if one["type"] == "printed"] == (
            ["so\x1b[5m\n"] if form else []
        )


LISTS = Ask(Wanted("list_functions"))
SLOWLY = "so it goes on and on " * 30


def allowed(root: Path, text: str) -> str:
    file = root / "allowed.toml"
    file.write_text(text)
    return str(file)


CODES: list[tuple[Script, tuple[str, ...], int, str]] = [
    ([Say("Yes.")], (), 0, "Yes."),
    ([Fail(401)], (), 1, "key"),
    ([LISTS, LISTS], ("--max-steps", "2"), 1, "limit of steps"),
    ([], ("--approve", "ask"), 2, "--approve"),
    ([], ("--approve", "wrong.toml"), 2, "cannot be granted"),
    ([Say("Yes.")], ("--agent", "other", "--approve", "deny"), 0, "Yes."),
]


def test_an_exit_code_says_whether_it_was_done(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text('[weather]\nnetwork = ["http://x/y"]\n')
    for script, arguments, code, says in CODES:
        with scripted(script) as model:
            done = knapper("run", *flags(model), "--message", "hi", *arguments, cwd=tmp_path)
        assert (done.returncode, says in done.stdout + done.stderr) == (code, True), (
            arguments,
            done.stderr,
        )


def test_the_message_of_a_turn_that_failed_does_not_go_along_with_the_next(tmp_path: Path) -> None:
    with scripted([Fail(401), Fail(400, "no"), Say("Fine.")]) as model:
        for message in ("one that failed", "another one", "hello"):
            knapper("run", *flags(model), "--message", message, cwd=tmp_path)
        assert [row["content"] for row in model.requests[-1].messages if row["role"] == "user"] == [
            "hello"
        ]


def test_waits_for_one_reason_are_told_once_and_an_address_needs_no_scheme(tmp_path: Path) -> None:
    busy = Fail(503, "busy", {"Retry-After": "0"})
    with scripted([busy, busy, Say("Here.")]) as model:
        address = model.base_url.removeprefix("http://")
        options = ("--base-url", address, "--model", "scripted", "--message", "hi")
        done = knapper("run", *options, cwd=tmp_path)
    assert done.stdout == "Here.\n", done.stderr
    assert done.stderr.count("Trying again in") == 1, done.stderr


def cut_off(root: Path, *arguments: str) -> None:
    """Kill a process while its model is replying."""
    reading, writing = os.pipe()
    process = Program(("run", *arguments), [0, writing, 2], cwd=root, environment=surroundings({}))
    os.close(writing)
    os.read(reading, 10)
    process.kill()
    process.wait()
    os.close(reading)


def test_a_turn_that_was_killed_goes_on_with_resume_and_then_takes_the_message(
    tmp_path: Path,
) -> None:
    slow = Say(SLOWLY, pause_s=0.05)
    goes_on = Expect(Say("As I said."), contains("begins with “tell me all”. Go on with it"))
    with scripted([slow, goes_on, Say("And that."), slow, Say("Onwards.")]) as model:
        cut_off(tmp_path, *flags(model), "--message", "tell me all")
        done = knapper("run", *flags(model), "--resume", "--message", "and more", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "As I said.\nAnd that.\n")
        done = knapper("run", *flags(model), "--resume", cwd=tmp_path)
        assert (done.returncode, done.stdout, "Nothing was interrupted" in done.stderr) == (
            0,
            "",
            True,
        )
        cut_off(tmp_path, *flags(model), "--message", "tell me all")
        with terminal("run", *flags(model), "--resume", cwd=tmp_path) as screen:
            screen.wait_for("Onwards.")


def test_a_file_grants_what_it_lists_for_this_run_alone(tmp_path: Path, place: str) -> None:
    file = allowed(tmp_path, f'[weather]\nnetwork = ["{place}"]\nby = "me"\n')
    script: Script = [made(place), Ask(CALL), Expect(Ask(CALL), contains("rain in Oslo")), DONE]
    with scripted(script) as model:
        run = "run", *flags(model), "--message", "go", "--json", "--approve", file
        done = knapper(*run, cwd=tmp_path, environment=home(tmp_path))
    answers = [json.loads(text) for text in done.stdout.splitlines() if '"grant_answered"' in text]
    assert done.returncode == 0, done.stdout
    assert {(each["answer"], each["by"]) for each in answers} == {("once", "policy")}
    assert len(answers) >= 2
    assert not (tmp_path / "functions" / "grants.toml").exists()


def test_a_file_grants_nothing_that_it_does_not_list(tmp_path: Path, place: str) -> None:
    file = allowed(
        tmp_path, f'[other]\nnetwork = ["{place}"]\n[weather]\nnetwork = ["elsewhere.example"]'
    )
    with scripted(
        [made(place), Expect(DONE, contains("Nobody can be asked here.")), DONE]
    ) as model:
        run = "run", *flags(model), "--message", "go", "--approve", file
        done = knapper(*run, cwd=tmp_path, environment=home(tmp_path))
    assert done.stderr.count("! denied because nobody can be asked here: weather") == 1


@pytest.mark.parametrize(
    ("extra", "asks"), [((), True), (("--approve", "deny"), False)], ids=["usual", "deny"]
)
def test_one_message_at_a_terminal_asks_there_unless_told_not_to(
    tmp_path: Path, place: str, extra: tuple[str, ...], asks: bool
) -> None:
    arguments = "run", "--message", "go", *extra
    with (
        scripted([made(place), DONE, DONE]) as model,
        terminal(
            *arguments, *flags(model), cwd=tmp_path, environment=home(tmp_path), columns=120
        ) as screen,
    ):
        if asks:
            screen.wait_for("then Enter")
            screen.type("n\n")
        assert screen.exit_code() == 0
        assert ("nobody can be asked" in screen.scrolled()) is not asks


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """A workspace with a conversation, seen with another XDG_DATA_HOME."""
    with scripted([Say("Good day.")]) as model:
        assert knapper("run", *flags(model), "--message", "hello", cwd=tmp_path).returncode == 0
    return {"XDG_DATA_HOME": str(tmp_path / "elsewhere")}


def set_aside(root: Path) -> list[str]:
    return [path.name for path in (root / ".knapper").glob("state.db.*-*")]


def test_a_state_of_another_key_stays_unless_a_command_sets_it_aside(
    tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    for command in (("calls", "list"), ("run", "--message", "hi")):
        refused = knapper(*command, cwd=tmp_path, environment=elsewhere)
        assert (refused.returncode, set_aside(tmp_path)) == (1, []), refused.stderr
        assert "does not carry your seal" in refused.stderr
        assert "knapper state set-aside" in refused.stderr
    assert "Good day." in knapper("log", cwd=tmp_path).stdout
    done = knapper("state", "set-aside", "--json", cwd=tmp_path, environment=elsewhere)
    (name,) = set_aside(tmp_path)
    assert json.loads(done.stdout) == {"set_aside": name}
    assert "Good day." not in knapper("log", cwd=tmp_path, environment=elsewhere).stdout
    assert knapper("state", "adopt", name, cwd=tmp_path, environment=elsewhere).returncode == 0
    assert "Good day." in knapper("log", cwd=tmp_path, environment=elsewhere).stdout


def test_a_user_is_asked_before_a_state_of_another_key_is_set_aside(
    tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    with scripted([]) as model:
        for answer, shows, many in (("n", "Nothing was changed.", 0), ("y", "/help lists", 1)):
            with terminal(
                "run", *flags(model), cwd=tmp_path, environment=elsewhere, columns=120
            ) as screen:
                screen.wait_for("Set it aside, and begin a new one")
                screen.wait_for("then Enter")
                assert set_aside(tmp_path) == []
                screen.line(answer)
                screen.wait_for(shows)
                assert len(set_aside(tmp_path)) == many
