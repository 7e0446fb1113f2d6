"""Turns without a prompt: one message, pipes, JSON lines, dumb terminals."""

import json
import re
import signal
import subprocess
from pathlib import Path

from tests.interfaces.support import COUNT_VOWELS, HERE, create, flags
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.program import knapper, surroundings
from tests.kit.terminal import KNAPPER

GROW: Script = [Ask(create(COUNT_VOWELS)), Ask(Wanted("count_vowels", {"text": "queueing"})), Say("There are **5**.")]
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
        typed = knapper("run", *flags(model), "--once", "--message", "-", cwd=tmp_path, given=b"caf\xe9 menu\n")
        argued = knapper("run", *flags(model), "--message", "caf\udce9", cwd=tmp_path)
        briefed = knapper("run", *flags(model), "--once", "--message", "hi", "-s", "caf\udce9", cwd=tmp_path)
    assert (typed.returncode, argued.returncode, briefed.returncode) == (2, 2, 2)
    assert "Standard input is not text in UTF-8: byte 4." in typed.stderr
    assert "is not text in UTF-8: 'caf\\udce9'" in argued.stderr
    assert "is not text in UTF-8: 'caf\\udce9'" in briefed.stderr
    assert "failed" not in typed.stderr + argued.stderr + briefed.stderr


def test_each_line_of_a_pipe_is_a_turn_or_a_command_if_it_is_utf_8(tmp_path: Path) -> None:
    refused = "✗ The message is not text in UTF-8, and was not sent.\n  Send it in UTF-8.\n"
    with scripted([Say("One."), Say("Two.")] * 2) as model:
        for line, code, says in ((b"", 0, ""), (b"caf\xe9 menu\n", 1, refused)):
            done = knapper("run", *flags(model), cwd=tmp_path, given=b"first\n\n/functions\n" + line + b"second")
            assert (done.returncode, done.stdout) == (code, f"One.\nNo functions. Ask for one.\n{says}Two.\n")
        empty = knapper("run", *flags(model), cwd=tmp_path, given="\n")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "standard input is empty. Next: knapper run --message TEXT, or knapper run, where you type" in empty.stderr


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
        assert knapper("run", *flags(model), "--message", "there?", cwd=tmp_path).stdout == "Here.\n"


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
        assert [one["text"] for one in events if one["type"] == "printed"] == (["so\x1b[5m\n"] if form else [])
