"""`knapper configure`: asks, tries, and writes what works, but never a secret."""

import json
from pathlib import Path

import pytest

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


def test_a_resource_of_azure_is_shown_as_in_force(tmp_path: Path) -> None:
    azure = {"AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9", "AZURE_OPENAI_API_KEY": "a-key"}
    done = knapper("configure", "--yes", "--model", "mine", cwd=tmp_path, environment=azure)
    assert "http://127.0.0.1:9  (by AZURE_OPENAI_ENDPOINT)" in done.stdout + done.stderr
    assert "http://127.0.0.1:9/openai/v1 cannot be reached" in done.stderr


def test_the_question_shows_the_address_that_the_environment_sets(tmp_path: Path) -> None:
    with scripted([]) as model, terminal("configure", cwd=tmp_path, environment=model.environment) as screen:
        screen.wait_for(f"[{model.base_url}]:")


def test_what_does_not_work_is_not_written_and_exits_with_one(tmp_path: Path) -> None:
    done = knapper("configure", "--yes", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", cwd=tmp_path)
    assert done.returncode == 1
    assert "http://127.0.0.1:9/v1" in done.stderr
    assert "http://127.0.0.1:9/v1" not in done.stdout, "it is not in force"
    assert (tmp_path / "knapper.toml").read_text() == ""


def test_an_address_that_only_the_file_names_gets_no_key_and_configure_says_so(tmp_path: Path) -> None:
    (tmp_path / "knapper.toml").write_text('[model]\nbase_url = "http://127.0.0.2:9/v1"\nname = "m"\n')
    done = knapper("configure", "--yes", cwd=tmp_path, environment=KEY)
    assert "export KNAPPER_MODEL_BASE_URL=http://127.0.0.2:9/v1" in done.stderr
    assert "no key and no message is sent to it" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--model", "sk-abc"], "A key goes into the environment", id="key-as-name"),
        pytest.param(["--base-url", "https://x.test/v1?key=1"], "no user, password or query", id="key-in-address"),
        pytest.param(["--model", "tour"], "knapper run --model tour", id="tour-as-a-setting"),
        pytest.param(["--base-url", "sk-abc"], "not an address", id="key-as-address"),
        pytest.param(["--agent", "once--x"], "The name `once--x` is reserved", id="agent-of-one-question"),
        pytest.param(["--agent", "me"], "The name `me` is reserved", id="agent-as-a-word-of-models"),
    ],
)
def test_what_must_not_stand_in_the_file_is_not_taken_for_it(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = knapper("configure", "--yes", *arguments, cwd=tmp_path)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "knapper.toml").read_text() == ""


def test_a_value_beside_the_confirmation_of_an_address_is_refused_not_dropped(tmp_path: Path) -> None:
    address = "--base-url", "http://127.0.0.1:9/v1"
    done = knapper("configure", *address, "--confirm-address", "--yes", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--confirm-address sets nothing" in done.stderr


def test_without_a_terminal_and_without_yes_nothing_is_asked(tmp_path: Path) -> None:
    done = knapper("configure", cwd=tmp_path)
    assert (done.returncode, "--yes" in done.stderr) == (2, True)


def test_that_there_is_no_model_is_told_before_the_rest_is_asked_for(tmp_path: Path) -> None:
    with terminal("configure", cwd=tmp_path, environment={"HOME": str(tmp_path)}) as screen:
        for question in ("Address of an endpoint", "Model: its name"):
            screen.wait_for(question)
            screen.line("")
        screen.wait_for("Maximum number of model replies")
        assert "No model is set and none was found." in screen.scrolled()


def test_it_asks_how_new_agents_begin(tmp_path: Path) -> None:
    with scripted([Say("ready")]) as model, terminal("configure", "--base-url", model.base_url, cwd=tmp_path) as screen:
        for question in ("Model: its name", "Maximum number", "Maximum seconds"):
            screen.wait_for(question)
            screen.line("")
        screen.wait_for("Agent that `knapper run` talks to [main]:")
        screen.line("no good name")
        screen.wait_count("Agent that `knapper run` talks to [main]:", 2)
        screen.line("sam")
        screen.wait_for("Preset of new agents [direct]:")
        screen.line("memgtp")
        screen.wait_count("Preset of new agents [direct]:", 2)
        screen.line("memgpt")
        screen.wait_for("Persona of new agents")
        screen.line("")
        screen.wait_for("What new agents know of you")
        screen.line("My name is Sam.")
        screen.wait_for("answers (")
        screen.wait_for("The size of its window in tokens [as the endpoint says, else 16,384]:")
        screen.line("")
        assert screen.exit_code() == 0
    written = (tmp_path / "knapper.toml").read_text()
    assert 'preset = "memgpt"\nhuman = "My name is Sam."' in written
    assert written.startswith('agent = "sam"\n')


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
    with scripted([Say("ready")]) as model, terminal("configure", cwd=tmp_path) as screen:
        screen.wait_for("Address of an endpoint")
        assert "turn.max_steps" in screen.scrolled()
        screen.line(model.base_url)
        screen.wait_for("Model: its name at the endpoint")
        screen.line("scripted")
        screen.wait_for("Maximum number of model replies per turn [30]:")
        screen.line("none")
        screen.wait_for("The setting `turn.max_steps` cannot be 'none'")
        screen.wait_count("Maximum number of model replies per turn [30]:", 2)
        screen.line("12")
        screen.wait_for("Maximum seconds per function call")
        for question in ("Agent that", "Preset of new agents", "Persona of new agents", "What new agents know of you"):
            screen.line("")
            screen.wait_for(question)
        screen.line("")
        screen.wait_for("answers (")
        screen.wait_for("The size of its window in tokens")
        screen.line("lots")
        screen.wait_count("The size of its window in tokens", 2)
        screen.line("64000")
        assert screen.exit_code() == 0
    assert "context_tokens = 64000" in (tmp_path / "knapper.toml").read_text()
    assert "max_steps = 12" in (tmp_path / "knapper.toml").read_text()
    assert "wall_s" not in (tmp_path / "knapper.toml").read_text()
