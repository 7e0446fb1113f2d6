"""An address that comes only from `knapper.toml` gets nothing until this user confirms it once for this workspace."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit import Repeat, Say, scripted
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
        self.heard.append(
            f"{request.method} {request.path} {request.headers.get('authorization')} {sent}"
        )
        if request.path.endswith("/embeddings"):
            rows = [
                {"index": at, "embedding": [1.0, 0.0]}
                for at, _ in enumerate(json.loads(sent)["input"])
            ]
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


def at_once(folder: Path, home: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return knapper(*command, cwd=folder, given=DIARY, environment={**home, **KEY})


def test_no_command_sends_anything_there(folder: Path, home: dict[str, str]) -> None:
    says = ("--message", DIARY)
    with listening() as listener:
        names(folder, listener.url, EMBEDS)
        for command in (
            ("run", *says),
            ("configure", "--yes"),
            (
                "run",
                "--model",
                "tour",
                *says,
            ),  # a model of this machine, whose texts would be embedded there
        ):
            done = at_once(folder, home, *command)
            assert (done.returncode, listener.heard) == (1, []), command
            if "tour" not in command:
                assert "knapper configure --confirm-address" in done.stdout + done.stderr, command
        keyless = knapper("run", *says, cwd=folder, environment=home)
        assert (keyless.returncode, listener.heard) == (1, [])
        (folder / "notes.md").write_text(DIARY)
        for search in (
            ("memory", "search", "safe"),
            ("memory", "search", "--agent", "tour", "safe"),
        ):
            at_once(folder, home, *search)
            assert listener.heard == [], search
        (folder / "knapper.toml").write_text(
            f'[model]\nbase_url = "{listener.url}"\n'
        )  # a model without a name
        for nameless in (("run", *says), ("doctor",), ("sources", "add", "notes.md")):
            at_once(folder, home, *nameless)
            assert listener.heard == [], nameless


OTHERS = {
    "port": "http://127.0.0.1:9/v1",
    "host": "http://127.0.0.2:{port}/v1",
    "user": "http://me@127.0.0.1:{port}/v1",
}


def test_one_yes_confirms_one_address_for_this_workspace_and_this_user_alone(
    folder: Path, home: dict[str, str], tmp_path: Path
) -> None:
    confirm = ("configure", "--confirm-address")
    with scripted([Say("hello")], key="sk-mine") as model:
        names(folder, model.base_url)
        unasked = at_once(folder, home, *confirm)
        assert (unasked.returncode, "--confirm-address --yes" in unasked.stderr) == (2, True)
        assert not (tmp_path / "data/knapper/workspaces").exists()
        done = at_once(folder, home, *confirm, "--yes")
        assert done.returncode == 0, done.stderr
        assert (model.base_url in done.stderr, "OPENAI_API_KEY" in done.stderr) == (True, True)
        requests = len(model.agents)
        moved = folder.rename(tmp_path / "other")
        elsewhere = at_once(moved, home, "run", "--message", DIARY)
        moved.rename(folder)
        somebody = at_once(
            folder, {"XDG_DATA_HOME": str(tmp_path / "x")}, "run", "--message", DIARY
        )
        for done in (elsewhere, somebody):
            assert (done.returncode, "--confirm-address" in done.stderr) == (1, True)
        assert len(model.agents) == requests
        said = at_once(folder, home, "run", "--message", "hi")
        assert (said.returncode, said.stdout.strip()) == (0, "hello")
        requests = len(model.agents)
        port = model.base_url.split(":")[2].split("/")[0]
        for what, other in OTHERS.items():
            names(folder, other.replace("{port}", port))
            done = at_once(folder, home, "run", "--message", DIARY)
            assert (done.returncode, "--confirm-address" in done.stderr) == (1, True), what
        assert len(model.agents) == requests


def test_what_configure_writes_or_the_environment_names_needs_no_yes(
    folder: Path, home: dict[str, str]
) -> None:
    with scripted([Say("ready"), Repeat(Say("hello"))], key="sk-mine") as model:
        written = ("configure", "--yes", "--base-url", model.base_url, "--model", "scripted")
        assert at_once(folder, home, *written).returncode == 0
        done = at_once(folder, home, "run", "--message", "hi")
        assert (done.returncode, done.stdout.strip()) == (0, "hello")
        names(folder, model.base_url)
        for variable in ("OPENAI_BASE_URL", "KNAPPER_MODEL_BASE_URL"):
            another_user = {"XDG_DATA_HOME": str(folder / "another"), variable: model.base_url}
            assert at_once(folder, another_user, "run", "--message", "hi").returncode == 0, variable


def test_at_a_terminal_one_question_names_the_address_and_only_a_yes_sends_anything(
    folder: Path, home: dict[str, str]
) -> None:
    with scripted([Say("hello")], key="sk-mine") as model:
        names(folder, model.base_url, EMBEDS)
        for typed in ("", "maybe"):
            with terminal("run", cwd=folder, environment={**home, **KEY}) as screen:
                screen.wait_for("Type y (yes) or n (no), then Enter.")
                screen.line(typed)
                if typed:
                    screen.wait_count("Type y (yes) or n (no), then Enter.", 2)
                    screen.line("n")
                assert screen.exit_code() == 1
            assert at_once(folder, home, "run", "--message", "hi").returncode == 1
        names(folder, model.base_url)
        with terminal("run", cwd=folder, environment={**home, **KEY}) as screen:
            screen.wait_for("Type y (yes) or n (no), then Enter.")
            asked = " ".join(screen.scrolled().split())
            assert (model.base_url in asked, "OPENAI_API_KEY" in asked, model.agents) == (
                True,
                True,
                [],
            )
            screen.answer("y")
            screen.wait_for("/help lists")
            screen.do("hi", "hello")
            screen.type("\x04")
            assert screen.exit_code() == 0


def test_an_address_that_looks_like_another_is_shown_as_it_is(
    folder: Path, home: dict[str, str]
) -> None:
    names(folder, "https://api.\u043epenai.com/v1")
    done = knapper("run", "--message", "hi", cwd=folder, environment=home)
    assert "\\u043e" in done.stderr
    names(folder, "https://api.openai.com@collector.example/v1")
    done = knapper("run", "--message", "hi", cwd=folder, environment=home)
    assert "the host is collector.example" in done.stderr


def test_a_yes_for_an_address_covers_the_key_that_it_named_and_no_other(
    folder: Path, home: dict[str, str]
) -> None:
    here = {**home, **KEY, "STRIPE_API_KEY": "sk-stripe"}
    with listening() as listener:
        names(folder, listener.url)
        assert (
            knapper(
                "configure", "--confirm-address", "--yes", cwd=folder, environment=here
            ).returncode
            == 0
        )
        names(folder, listener.url, 'key_variable = "STRIPE_API_KEY"\n')
        message = ("--message", DIARY, "--json")
        done = knapper("run", *message, cwd=folder, environment=here)
        named = f'[models.maker]\nname = "m"\nbase_url = "{listener.url}"\nkey_variable = "STRIPE_API_KEY"\n'
        names(folder, listener.url, named)
        other = knapper("run", "--model", "maker", *message, cwd=folder, environment=here)
        codes = [json.loads(each.stdout)["error"]["code"] for each in (done, other)]
        assert codes == ["unconfirmed-address"] * 2, other.stderr
        assert not any("sk-stripe" in line for line in listener.heard)
        shown = knapper("configure", "--confirm-address", "--yes", cwd=folder, environment=here)
        assert "the key in STRIPE_API_KEY" in shown.stdout + shown.stderr
        knapper("run", "--model", "maker", "--message", DIARY, cwd=folder, environment=here)
        assert any("sk-stripe" in line for line in listener.heard)
