"""A model of an unknown window or name: the user is told how to set it, or which names are near."""

import json
from pathlib import Path

from tests.kit import Repeat, Say, scripted
from tests.kit.program import knapper
from tests.kit.terminal import terminal

UNKNOWN = "The window of scripted is unknown: 16,384 tokens are assumed"
COMMAND = "knapper configure --context-tokens N"
TELLING = {"id": "scripted", "max_model_len": 50_000}


def test_one_message_tells_it_once_beside_the_answer_and_the_doctor_at_each_time(tmp_path: Path) -> None:
    with scripted([Repeat(Say("Hello."))]) as model:
        first, second = (
            knapper("run", "--message", "Hi", cwd=tmp_path, environment=model.environment) for _ in range(2)
        )
        told = knapper("doctor", cwd=tmp_path, environment=model.environment).stdout
        report = json.loads(knapper("doctor", "--json", cwd=tmp_path, environment=model.environment).stdout)
    assert (UNKNOWN in told, COMMAND in told, report["model"]["window"]["assumed"]) == (True, True, True)
    assert (first.stdout, second.stdout) == ("Hello.\n", "Hello.\n")
    assert UNKNOWN in first.stderr
    assert COMMAND in first.stderr
    assert UNKNOWN not in second.stderr


def test_the_prompt_tells_it_at_the_first_start_and_with_the_model_at_each(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text('[models.small]\nname = "scripted"\n')
    with scripted([]) as model:  # at a single address, as an endpoint is
        for count in (2, 1):
            with terminal("run", cwd=tmp_path, environment=model.environment) as screen:
                screen.wait_for("/help lists the commands")
                screen.line("/model")
                screen.wait_count(UNKNOWN, count)
                screen.do("/model other", "has no model")
                assert screen.scrolled().count(UNKNOWN) == count
                screen.do("/model small", "below `[models.")  # one of its own table is set there
                screen.line("/exit")
                assert screen.exit_code() == 0


def test_what_an_endpoint_tells_needs_no_word_and_counts_when_it_is_silent_later(tmp_path: Path) -> None:
    with scripted([Repeat(Say("Hello."))], models=[TELLING]) as model:
        said = knapper("run", "--message", "Hi", cwd=tmp_path, environment=model.environment)
        report = json.loads(knapper("doctor", "--json", cwd=tmp_path, environment=model.environment).stdout)
        (other := tmp_path / "other").mkdir()
        (other / "knapper.toml").touch()
        done = knapper("configure", "--yes", "--json", "--base-url", model.base_url, cwd=other)
    tested = json.loads(done.stdout)["tested"]
    assert (tested["context_tokens"], tested["window_warning"]) == (50_000, "")
    assert "window" not in said.stderr
    expected = {"tokens": 50_000, "source": "told by the endpoint", "assumed": False, "warning": None}
    assert report["model"]["window"] == expected
    port = int(model.base_url.split(":")[2].split("/")[0])
    with scripted([Say("Hello.")], port=port) as silent:
        said = knapper("run", "--message", "Hi", cwd=tmp_path, environment=silent.environment)
    assert (said.returncode, UNKNOWN in said.stderr) == (0, False)


def test_the_command_sets_it_and_nothing_is_assumed_from_then_on(tmp_path: Path) -> None:
    with scripted([Repeat(Say("ready"))]) as model:
        done = knapper("configure", "--context-tokens", "131072", cwd=tmp_path, environment=model.environment)
        assert "model.context_tokens = 131072 written" in done.stdout
        assert "context_tokens = 131072" in (tmp_path / "knapper.toml").read_text()
        said = knapper("run", "--message", "Hi", cwd=tmp_path, environment=model.environment)
        shown = knapper("doctor", cwd=tmp_path, environment=model.environment).stdout
    assert (said.returncode, UNKNOWN in said.stderr) == (0, False)
    assert "window: 131,072 tokens, set in model.context_tokens" in shown


MODELS = ("small-coder", "large-coder")


def test_a_name_that_the_endpoint_does_not_list_is_refused_with_the_near_ones(tmp_path: Path) -> None:
    with scripted([], models=MODELS) as model:
        for words in (("run", "--message", "hi"), ("run", "--once", "--message", "hi"), ("configure", "--yes")):
            for name in ("small-codr", "fast"):
                done = knapper(*words, "--base-url", model.base_url, "--model", name, cwd=tmp_path)
                assert (done.returncode, len(model.requests)) == (1, 0)
                assert f"has no model `{name}`." in done.stderr
                assert "`small-coder`" in done.stderr
                assert name not in (tmp_path / "knapper.toml").read_text()
