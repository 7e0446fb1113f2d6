"""`knapper configure`: asks, tries, and writes what works, but never a secret."""

import json
from pathlib import Path

from tests.kit import Say, scripted
from tests.kit.program import knapper
from tests.kit.terminal import terminal

KEY = {"OPENAI_API_KEY": "sk-secret"}


def test_what_was_given_is_tried_and_written_beside_what_stood_there(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text("# mine\n[turn]\nmax_steps = 9\n")
    with scripted([Say("ready")]) as model:
        done = knapper("configure", "--yes", "--json", "--base-url", model.base_url, cwd=tmp_path, environment=KEY)
    document = json.loads(done.stdout)
    assert (done.returncode, document["tested"]["ok"], document["tested"]["model"]) == (0, True, "scripted")
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
    done = knapper("configure", "--yes", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", cwd=tmp_path)
    assert done.returncode == 1
    assert "http://127.0.0.1:9/v1" in done.stderr
    assert "http://127.0.0.1:9/v1" not in done.stdout, "it is not in force"
    assert (tmp_path / "knapper.toml").read_text() == ""


REFUSED = {
    ("--yes", "--model", "sk-abc"): "A key goes into the environment",
    ("--yes", "--model", "tour"): "knapper run --model tour",
    ("--yes", "--base-url", "sk-abc"): "not an address",
    ("--yes", "--agent", "once--x"): "The name `once--x` is reserved",
    ("--yes", "--confirm-address", "--base-url", "http://127.0.0.1:9/v1"): "--confirm-address sets nothing",
    (): "--yes",  # without a terminal nothing is asked
}


def test_what_must_not_stand_in_the_file_is_not_taken_for_it(tmp_path: Path) -> None:
    for arguments, says in REFUSED.items():
        done = knapper("configure", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout, says in done.stderr) == (2, "", True), (arguments, done.stderr)
        assert (tmp_path / "knapper.toml").read_text() == ""


def test_options_say_which_agent_and_how_new_ones_begin(tmp_path: Path) -> None:
    beginning = ("--agent", "sam", "--preset", "memgpt", "--persona", "I am terse.", "--human", "My name is Sam.")
    with scripted([Say("ready")]) as model:
        done = knapper("configure", "--yes", "--base-url", model.base_url, *beginning, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "knapper.toml").read_text()
    for text in ('agent = "sam"', 'preset = "memgpt"', 'persona = "I am terse."', 'human = "My name is Sam."'):
        assert text in written
    for option in ("--preset", "--persona", "--human"):
        missing = knapper("configure", "--yes", option, "memgtp", cwd=tmp_path)
        assert (missing.returncode, "memgtp" in missing.stderr) == (2, True)
    assert (tmp_path / "knapper.toml").read_text() == written


def test_at_a_terminal_it_asks_shows_what_is_in_force_and_asks_again_for_what_cannot_be(tmp_path: Path) -> None:
    with terminal("configure", cwd=tmp_path, environment={"HOME": str(tmp_path)}) as screen:
        screen.wait_for("Address of an endpoint")
        assert "turn.max_steps" in screen.scrolled()
        screen.do("", "Model: its name")
        screen.do("", "No model is set and none was found.", "Maximum number of model replies")
    with scripted([Say("ready")]) as model, terminal("configure", cwd=tmp_path) as screen:
        screen.wait_for("Address of an endpoint")
        steps, agent, preset = "model replies per turn [30]:", "`knapper run` talks to [main]:", "new agents [direct]:"
        for typed, *shows in (
            (model.base_url, "Model: its name at the endpoint"),
            ("scripted", f"Maximum number of {steps}"),
            ("none", "The setting `turn.max_steps` cannot be 'none'", steps),
            ("12", "Maximum seconds per function call"),
            ("", agent),
            ("no good name", agent),
            ("sam", preset),
            ("memgtp", preset),
            ("memgpt", "Persona of new agents"),
            ("", "What new agents know of you"),
            ("My name is Sam.", "answers (", "window in tokens [as the endpoint says, else 16,384]:"),
            ("lots", "The size of its window in tokens"),
        ):
            screen.do(typed, *shows)
        screen.line("64000")
        assert screen.exit_code() == 0
    written = (tmp_path / "knapper.toml").read_text()
    assert written.startswith('agent = "sam"\n')
    for text in ("context_tokens = 64000", "max_steps = 12", 'preset = "memgpt"\nhuman = "My name is Sam."'):
        assert text in written
    assert "wall_s" not in written
