"""An address that comes only from `knapper.toml` gets nothing until this user confirms it once for this workspace."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interfaces.asking import agree
from tests.kit import Say, scripted
from tests.kit.drawing import crossed, sampled
from tests.kit.http import Answer, Request, Server
from tests.kit.program import knapper
from tests.kit.terminal import terminal

DIARY = "my private diary: the safe code is 4711"
KEY = {"OPENAI_API_KEY": "sk-mine"}


class Listener:
    """An eavesdropper: answers as a model and an embedder would, and records what it receives."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.server = Server(self._handle)
        self.url = f"http://127.0.0.1:{self.server.port}/v1"

    async def _handle(self, request: Request, answer: Answer) -> None:
        sent = (request.body or b"").decode()
        self.heard.append(f"{request.method} {request.path} {request.headers.get('authorization')} {sent}")
        if request.path.endswith("/embeddings"):
            rows = [{"index": at, "embedding": [1.0, 0.0]} for at, _ in enumerate(json.loads(sent)["input"])]
            await answer.send(200, json.dumps({"data": rows}).encode())
        else:
            await answer.send(200, json.dumps({"data": [{"id": "m"}]}).encode())


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()
    try:
        yield listener
    finally:
        listener.server.close()


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    (made / "functions").mkdir(parents=True)
    return made


def names(folder: Path, url: str, more: str = "") -> None:
    (folder / "knapper.toml").write_text(f'[model]\nbase_url = "{url}"\nname = "scripted"\n{more}')


EMBEDS = '[memory]\nembedding = "endpoint"\nembedding_model = "e"\n'


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "key"),
    crossed(
        [
            pytest.param(["run", "--message", DIARY], id="a-message"),
            pytest.param(["run", "--json", "--message", DIARY], id="a-message-as-json"),
            pytest.param(["run"], id="a-pipe"),
            pytest.param(["doctor"], id="doctor"),
            pytest.param(["configure", "--yes"], id="configure"),
            pytest.param(["memory", "search", "safe"], id="a-search"),
            pytest.param(["models", "list"], id="list-of-models"),
        ],
        [pytest.param({}, id="without-a-key"), pytest.param(KEY, id="with-a-key")],
    ),
)
def test_no_command_sends_anything_there(
    folder: Path, home: dict[str, str], command: list[str], key: dict[str, str]
) -> None:
    with listening() as listener:
        names(folder, listener.url, EMBEDS)
        done = knapper(*command, cwd=folder, given=DIARY, environment={**home, **key})
        assert listener.heard == []
    if command[0] in ("run", "configure"):
        assert done.returncode == 1
        assert "knapper configure --confirm-address" in done.stdout + done.stderr


def test_a_model_without_a_name_is_not_asked_for_either(folder: Path, home: dict[str, str]) -> None:
    with listening() as listener:
        (folder / "knapper.toml").write_text(f'[model]\nbase_url = "{listener.url}"\n')
        knapper("run", "--message", DIARY, cwd=folder, environment={**home, **KEY})
        knapper("doctor", cwd=folder, environment={**home, **KEY})
        assert listener.heard == []


def test_texts_of_a_model_of_this_machine_are_not_sent_there_to_be_embedded(folder: Path, home: dict[str, str]) -> None:
    with listening() as listener:
        names(folder, listener.url, EMBEDS)
        done = knapper("run", "--model", "tour", "--message", DIARY, cwd=folder, environment=home)
        knapper("memory", "search", "--agent", "tour", "safe", cwd=folder, environment=home)
        (folder / "notes.md").write_text(DIARY)
        knapper("sources", "add", "notes.md", cwd=folder, environment=home)
        assert listener.heard == []
    assert done.returncode == 1


def test_it_is_confirmed_with_one_command_that_says_what_that_means(folder: Path, home: dict[str, str]) -> None:
    with scripted([Say("hello")], key="sk-mine") as model:
        names(folder, model.base_url)
        done = knapper("configure", "--confirm-address", "--yes", cwd=folder, environment={**home, **KEY})
        assert done.returncode == 0, done.stderr
        assert (model.base_url in done.stderr, "OPENAI_API_KEY" in done.stderr) == (True, True)
        said = knapper("run", "--message", "hi", cwd=folder, environment={**home, **KEY})
    assert (said.returncode, said.stdout.strip()) == (0, "hello")


def test_confirming_needs_a_human_or_a_yes(folder: Path, home: dict[str, str]) -> None:
    names(folder, "http://127.0.0.1:9/v1")
    done = knapper("configure", "--confirm-address", cwd=folder, environment=home)
    assert (done.returncode, "--confirm-address --yes" in done.stderr) == (2, True)
    assert not (folder.parent / "data/knapper/workspaces").exists()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("http://127.0.0.1:{port}/v2", id="path"),
        pytest.param("http://127.0.0.1:9/v1", id="port"),
        pytest.param("http://127.0.0.2:{port}/v1", id="host"),
        pytest.param("https://127.0.0.1:{port}/v1", id="scheme"),
        pytest.param("http://me@127.0.0.1:{port}/v1", id="user"),
    ],
)
def test_another_address_needs_another_yes(folder: Path, home: dict[str, str], other: str) -> None:
    with listening() as listener:
        names(folder, listener.url)
        knapper("configure", "--confirm-address", "--yes", cwd=folder, environment=home)
        names(folder, other.replace("{port}", str(listener.server.port)))
        done = knapper("run", "--message", DIARY, cwd=folder, environment=home)
        assert (done.returncode, listener.heard) == (1, [])
        assert "--confirm-address" in done.stderr


def test_a_yes_counts_for_this_workspace_and_this_user_alone(
    folder: Path, home: dict[str, str], tmp_path: Path
) -> None:
    with listening() as listener:
        names(folder, listener.url)
        knapper("configure", "--confirm-address", "--yes", cwd=folder, environment=home)
        other = tmp_path / "other"
        folder.rename(other)
        elsewhere = knapper("run", "--message", DIARY, cwd=other, environment=home)
        other.rename(folder)
        somebody = knapper("run", "--message", DIARY, cwd=folder, environment={"XDG_DATA_HOME": str(tmp_path / "x")})
        assert (elsewhere.returncode, somebody.returncode, listener.heard) == (1, 1, [])


def test_what_configure_writes_is_confirmed_by_that(folder: Path, home: dict[str, str]) -> None:
    with scripted([Say("ready"), Say("hello")], key="sk-mine") as model:
        words = ("configure", "--yes", "--base-url", model.base_url, "--model", "scripted")
        assert knapper(*words, cwd=folder, environment={**home, **KEY}).returncode == 0
        done = knapper("run", "--message", "hi", cwd=folder, environment={**home, **KEY})
    assert (done.returncode, done.stdout.strip()) == (0, "hello")


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "KNAPPER_MODEL_BASE_URL"])
def test_an_address_of_the_users_own_environment_needs_no_yes(
    folder: Path, home: dict[str, str], variable: str
) -> None:
    with scripted([Say("hello")], key="sk-mine") as model:
        names(folder, model.base_url)
        around = {**home, **KEY, variable: model.base_url}
        assert knapper("run", "--message", "hi", cwd=folder, environment=around).returncode == 0


def test_at_a_terminal_one_question_names_the_address_and_what_goes_there(folder: Path, home: dict[str, str]) -> None:
    with scripted([Say("hello")], key="sk-mine") as model:
        names(folder, model.base_url)
        with terminal("run", cwd=folder, environment={**home, **KEY}) as screen:
            screen.wait_for("Type y and Enter")
            asked = " ".join(screen.scrolled().split())
            assert model.base_url in asked
            assert "OPENAI_API_KEY" in asked
            assert model.requests == []
            agree(screen)
            screen.wait_for("/help lists")
            screen.line("hi")
            screen.wait_for("hello")
            screen.type("\x04")
            assert screen.exit_code() == 0


@pytest.mark.sampled
@pytest.mark.parametrize("typed", sampled(["", "n", "maybe"], 2))
def test_a_no_at_the_terminal_sends_nothing_and_is_asked_again_next_time(
    folder: Path, home: dict[str, str], typed: str
) -> None:
    with listening() as listener:
        names(folder, listener.url, EMBEDS)
        with terminal("run", cwd=folder, environment={**home, **KEY}) as screen:
            screen.wait_for("Type y and Enter")
            screen.line(typed)
            assert screen.exit_code() == 1
        assert knapper("run", "--message", "hi", cwd=folder, environment=home).returncode == 1
        assert listener.heard == []


def test_configure_at_a_terminal_asks_before_it_tries_what_the_file_names(folder: Path, home: dict[str, str]) -> None:
    with listening() as listener:
        names(folder, listener.url)
        with terminal("configure", cwd=folder, environment={**home, **KEY}) as screen:
            for question in (
                "Address of an endpoint",
                "Model: its name",
                "Maximum number of model replies",
                "Maximum seconds per",
                "Agent that",
                "Preset of new agents",
                "Persona",
                "What new agents know of you",
            ):
                screen.wait_for(question)
                screen.line("")
            screen.wait_for("Type y and Enter")
            screen.line("n")
            assert screen.exit_code() == 1
        assert listener.heard == []


def test_an_address_that_looks_like_another_is_shown_as_it_is(folder: Path, home: dict[str, str]) -> None:
    names(folder, "https://api.\u043epenai.com/v1")
    done = knapper("run", "--message", "hi", cwd=folder, environment=home)
    assert "\\u043e" in done.stderr
    names(folder, "https://api.openai.com@collector.example/v1")
    done = knapper("run", "--message", "hi", cwd=folder, environment=home)
    assert "the host is collector.example" in done.stderr
