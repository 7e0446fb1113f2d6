"""`knapper configure` asks, tries, and writes what works, but never a secret; models of an unknown window or name."""

import json
from pathlib import Path

from tests.kit import Repeat, Say, scripted
from tests.kit.program import knapper
from tests.kit.terminal import terminal

KEY = {"OPENAI_API_KEY": "sk-secret"}


def test_what_was_given_is_tried_and_written_beside_what_stood_there(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text("# mine\n[turn]\nmax_steps = 9\n")
    with scripted([Say("ready")]) as model:
        done = knapper(
            "configure",
            "--yes",
            "--json",
            "--base-url",
            model.base_url,
            cwd=tmp_path,
            environment=KEY,
        )
    document = json.loads(done.stdout)
    assert (done.returncode, document["tested"]["ok"], document["tested"]["model"]) == (
        0,
        True,
        "scripted",
    )
    assert document["in_force"]["turn.max_steps"] == 9
    written = (tmp_path / "knapper.toml").read_text()
    assert written.startswith("# mine\n[turn]\nmax_steps = 9\n")
    assert f'base_url = "{model.base_url}"' in written
    assert "sk-secret" not in written + done.stdout + done.stderr


def test_an_address_of_the_environment_is_shown_as_in_force(tmp_path: Path) -> None:
    with scripted([Say("ready")]) as model:
        done = knapper("configure", "--yes", cwd=tmp_path, environment=model.environment)
        assert f"{model.base_url}  (by OPENAI_BASE_URL)" in done.stdout + done.stderr
        with terminal("configure", cwd=tmp_path, environment=model.environment) as screen:
            screen.wait_for(f"[{model.base_url}]:")
    azure = {"AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9", "AZURE_OPENAI_API_KEY": "a-key"}
    done = knapper("configure", "--yes", "--model", "mine", cwd=tmp_path, environment=azure)
    assert "http://127.0.0.1:9  (by AZURE_OPENAI_ENDPOINT)" in done.stdout + done.stderr
    assert "http://127.0.0.1:9/openai/v1 cannot be reached" in done.stderr


def test_what_does_not_work_is_not_written_and_exits_with_one(tmp_path: Path) -> None:
    done = knapper(
        "configure", "--yes", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "http://127.0.0.1:9/v1" in done.stderr
    assert "http://127.0.0.1:9/v1" not in done.stdout, "it is not in force"
    assert (tmp_path / "knapper.toml").read_text() == ""


REFUSED = {
    ("--yes", "--model", "sk-abc"): "A key goes into the environment",
    ("--yes", "--model", "tour"): "knapper run --model tour",
    ("--yes", "--base-url", "sk-abc"): "not an address",
    ("--yes", "--agent", "once--x"): "The name `once--x` is reserved",
    (
        "--yes",
        "--confirm-address",
        "--base-url",
        "http://127.0.0.1:9/v1",
    ): "--confirm-address sets nothing",
    (): "--yes",  # without a terminal nothing is asked
}


def test_what_must_not_stand_in_the_file_is_not_taken_for_it(tmp_path: Path) -> None:
    for arguments, says in REFUSED.items():
        done = knapper("configure", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, says in done.stderr) == (2, "", True), (
            arguments,
            done.stderr,
        )
        assert (tmp_path / "knapper.toml").read_text() == ""


def test_options_say_which_agent_and_how_new_ones_begin(tmp_path: Path) -> None:
    beginning = (
        "--agent",
        "sam",
        "--preset",
        "memgpt",
        "--persona",
        "I am terse.",
        "--human",
        "My name is Sam.",
    )
    with scripted([Say("ready")]) as model:
        done = knapper("configure", "--yes", "--base-url", model.base_url, *beginning, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "knapper.toml").read_text()
    for text in (
        'agent = "sam"',
        'preset = "memgpt"',
        'persona = "I am terse."',
        'human = "My name is Sam."',
    ):
        assert text in written
    for option in ("--preset", "--persona", "--human"):
        missing = knapper("configure", "--yes", option, "memgtp", cwd=tmp_path)
        assert (missing.returncode, "memgtp" in missing.stderr) == (2, True)
    assert (tmp_path / "knapper.toml").read_text() == written


def test_at_a_terminal_it_asks_shows_what_is_in_force_and_asks_again_for_what_cannot_be(
    tmp_path: Path,
) -> None:
    with terminal("configure", cwd=tmp_path, environment={"HOME": str(tmp_path)}) as screen:
        screen.wait_for("Address of an endpoint")
        assert "turn.max_steps" in screen.scrolled()
        screen.do("", "Model: its name")
        screen.do("", "No model is set and none was found.", "Maximum number of model replies")
    script = [Say("ready"), Say("ready")]
    with scripted(script) as model, terminal("configure", cwd=tmp_path) as screen:
        screen.wait_for("Address of an endpoint")
        steps, agent, preset = (
            "model replies per turn [30]:",
            "`knapper run` talks to [main]:",
            "new agents [direct]:",
        )
        for typed, *shows in (
            ("http://127.0.0.1:9/v1", "cannot be reached", "Another address, or Enter to keep"),
            (model.base_url, "answers (", "Model: its name at the endpoint"),
            ("scripted", f"Maximum number of {steps}"),
            ("none", "The setting `turn.max_steps` cannot be 'none'", steps),
            ("12", "Maximum seconds per function call"),
            ("", agent),
            ("no good name", agent),
            ("sam", preset),
            ("memgtp", preset),
            ("memgpt", "Persona of new agents"),
            ("", "What new agents know of you"),
            (
                "My name is Sam.",
                "answers (",
                "window in tokens [as the endpoint says, else 16,384]:",
            ),
            ("lots", "The size of its window in tokens"),
        ):
            screen.do(typed, *shows)
        screen.line("64000")
        assert screen.exit_code() == 0
    written = (tmp_path / "knapper.toml").read_text()
    assert written.startswith('agent = "sam"\n')
    for text in (
        "context_tokens = 64000",
        "max_steps = 12",
        'preset = "memgpt"\nhuman = "My name is Sam."',
    ):
        assert text in written
    assert "wall_s" not in written


UNKNOWN = "The window of scripted is unknown: 16,384 tokens are assumed"
COMMAND = "knapper configure --context-tokens N"
TELLING = {"id": "scripted", "max_model_len": 50_000}


def test_one_message_tells_it_once_beside_the_answer_and_the_doctor_at_each_time(
    tmp_path: Path,
) -> None:
    with scripted([Repeat(Say("Hello."))]) as model:
        first, second = (
            knapper("run", "--message", "Hi", cwd=tmp_path, environment=model.environment)
            for _ in range(2)
        )
        told = knapper("doctor", cwd=tmp_path, environment=model.environment).stdout
        report = json.loads(
            knapper("doctor", "--json", cwd=tmp_path, environment=model.environment).stdout
        )
    assert (UNKNOWN in told, COMMAND in told, report["model"]["window"]["assumed"]) == (
        True,
        True,
        True,
    )
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


def test_what_an_endpoint_tells_needs_no_word_and_counts_when_it_is_silent_later(
    tmp_path: Path,
) -> None:
    with scripted([Repeat(Say("Hello."))], models=[TELLING]) as model:
        said = knapper("run", "--message", "Hi", cwd=tmp_path, environment=model.environment)
        report = json.loads(
            knapper("doctor", "--json", cwd=tmp_path, environment=model.environment).stdout
        )
        (other := tmp_path / "other").mkdir()
        (other / "knapper.toml").touch()
        done = knapper("configure", "--yes", "--json", "--base-url", model.base_url, cwd=other)
    tested = json.loads(done.stdout)["tested"]
    assert (tested["context_tokens"], tested["window_warning"]) == (50_000, "")
    assert "window" not in said.stderr
    expected = {
        "tokens": 50_000,
        "source": "told by the endpoint",
        "assumed": False,
        "warning": None,
    }
    assert report["model"]["window"] == expected
    port = int(model.base_url.split(":")[2].split("/")[0])
    with scripted([Say("Hello.")], port=port) as silent:
        said = knapper("run", "--message", "Hi", cwd=tmp_path, environment=silent.environment)
    assert (said.returncode, UNKNOWN in said.stderr) == (0, False)


MODELS = ("small-coder", "large-coder")


def test_a_name_that_the_endpoint_does_not_list_is_refused_with_the_near_ones(
    tmp_path: Path,
) -> None:
    with scripted([], models=MODELS) as model:
        for words in (
            ("run", "--message", "hi"),
            ("run", "--once", "--message", "hi"),
            ("configure", "--yes"),
        ):
            for name in ("small-codr", "fast"):
                done = knapper(*words, "--base-url", model.base_url, "--model", name, cwd=tmp_path)
                assert (done.returncode, len(model.requests)) == (1, 0)
                assert f"has no model `{name}`." in done.stderr
                assert "`small-coder`" in done.stderr
                assert name not in (tmp_path / "knapper.toml").read_text()
