"""`knapper --server URL …`: commands and conversations with a remote workspace."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_core.api.identity import ApiRefusal
from agent_core.base.gone import GONE
from agent_core.client.client import Client, HttpWire
from knapper.prompt.plain import Typed
from knapper.prompt.ui import Voice
from knapper.shell.remote import RemoteTalk
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.desk import VOWELS
from tests.kit.http import Answer, Request, Server
from tests.kit.program import knapper

from .conftest import Serve, Served
from .test_the_api import READS


@dataclass
class Elsewhere:
    """A shell with a server's address and a token, in another folder."""

    server: Served
    token: str
    folder: Path

    async def runs(self, *words: str, code: int = 0, token: str = "", typed: str = "") -> str:
        """Run a command that must end with this code; return its output on both streams."""
        environment = {"KNAPPER_TOKEN": token or self.token}
        options = ("--server", self.server.url)
        ended = await asyncio.to_thread(
            knapper, *options, *words, cwd=self.folder, given=typed, environment=environment
        )
        assert ended.returncode == code, ended
        return ended.stdout + ended.stderr


OpenElsewhere: TypeAlias = Callable[[Script], Awaitable[Elsewhere]]


@pytest.fixture
async def elsewhere(served: Serve, tmp_path_factory: pytest.TempPathFactory) -> OpenElsewhere:
    """Start a server and return a shell in another folder."""

    async def start(script: Script) -> Elsewhere:
        server = await served(script)
        token = await server.token("shell", "chat", "read", "edit", "approve", "admin")
        return Elsewhere(server, token, tmp_path_factory.mktemp("elsewhere"))

    return start


async def test_commands_do_their_work_where_the_workspace_is_or_say_why_they_cannot(
    elsewhere: OpenElsewhere,
) -> None:
    shell = await elsewhere([Say("Hello.")])
    await shell.runs("run", "--message", "Hi")
    (shell.folder / "mine.txt").write_text(VOWELS)
    assert "count_vowels" in await shell.runs(
        "functions", "create", "count_vowels", "--file=mine.txt"
    )
    assert (shell.server.workspace.root / "functions" / "grown.py").exists()
    listed = json.loads(await shell.runs("functions", "list", "vowel", "--json"))
    assert [row["name"] for row in listed["functions"]] == ["count_vowels"]
    assert (
        await shell.runs("functions", "call", "count_vowels", "--args", '{"text": "queueing"}')
        == "5\n"
    )
    assert "reads now" in await shell.runs("memory", "edit", "human", "--value", "Likes blue.")
    assert "does not work over a server" in await shell.runs("functions", "packages", code=2)
    assert "the editor is where" in await shell.runs("memory", "edit", "human", code=2)
    assert "--model does not work" in await shell.runs(
        "run", "--model", "x", "--message", "hi", code=2
    )
    assert "cannot be read" in await shell.runs(
        "functions", "create", "f", "--file=missing.py", code=2
    )
    reader = await shell.server.token("reader", "read")
    assert "scope `edit`" in await shell.runs("functions", "delete", "f", token=reader, code=1)
    refused = json.loads(await shell.runs("functions", "list", "--json", token="tw_wrong", code=1))
    assert refused["error"]["code"]


async def test_a_yes_to_a_command_is_for_what_was_shown(elsewhere: OpenElsewhere) -> None:
    shell = await elsewhere([])
    functions = shell.server.workspace.functions
    await functions.create("count_vowels", VOWELS, "text")
    async with Client(HttpWire(shell.server.url, shell.token)) as client:
        delete = partial(client.command, ["functions", "delete", "count_vowels"], at_prompt=True)
        with pytest.raises(ApiRefusal, match="Delete count_vowels, version 1") as asked:
            await delete()
        await functions.replace(
            "count_vowels", VOWELS.replace("look at.", "look through."), reason="words"
        )
        with pytest.raises(
            ApiRefusal, match=r"changed meanwhile.*\nDelete count_vowels, version 2"
        ) as asked_again:
            await delete(yes=asked.value.problems[0]["digest"])
        assert "count_vowels" in functions.names()
        await delete(yes=asked_again.value.problems[0]["digest"])
    assert "count_vowels" not in functions.names()


async def test_an_error_has_the_code_and_the_exit_code_that_it_has_in_the_shell(
    elsewhere: OpenElsewhere,
) -> None:
    shell = await elsewhere([])
    assert (await shell.server.client.post("/api/v1/agents", json={"name": "ada"})).is_success
    many = "9" * 23
    refused = {
        ("functions", "show", "nothing"): ("not-found", 2),
        ("functions", "show", "a", "--nothing"): ("usage", 2),
        ("calls", "show", many): ("usage", 2),
        ("memory", "undo", "human"): ("no-agent", 1),
        ("agents", "show", "nobody"): ("no-agent", 1),
    }
    for words, (says, code) in refused.items():
        there = json.loads(await shell.runs(*words, "--json", code=code))["error"]
        here = await asyncio.to_thread(knapper, *words, "--json", cwd=shell.server.workspace.root)
        assert (there["code"], here.returncode) == (says, code), (words, there, here)
        assert json.loads(here.stdout)["error"] == there, words
    assert not await shell.server.workspace.store.has_agent(
        "main"
    )  # a command that only reads creates none
    for line in (["calls", "show", many], ["functions", "list", "-C", "/etc"]):
        answer = await shell.server.client.post("/api/v1/commands", json={"words": line})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "usage"), answer.text
    unknown = await shell.server.client.get("/api/v1/agents", headers={"Authorization": ""})
    assert "export KNAPPER_TOKEN=" in unknown.json()["error"]["fix"]
    for url in ("ftp://x", "http://[::1"):
        wrong = await asyncio.to_thread(
            knapper, "--server", url, "agents", "list", cwd=shell.folder
        )
        assert (wrong.returncode, "http://" in wrong.stderr, "running?" in wrong.stderr) == (
            2,
            True,
            False,
        ), wrong


async def test_a_reply_of_a_shape_is_the_value_alone(elsewhere: OpenElsewhere) -> None:
    shell = await elsewhere([Say("It is Ada."), Say('{"name": "Ada", "age": 36}')])
    asked = ("run", "--message", "Who?", "--schema", "name, age int", "--plain")
    printed = await shell.runs(*asked)
    assert json.loads(printed.partition("}")[0] + "}") == {"name": "Ada", "age": 36}


@pytest.mark.slow
async def test_agents_are_paused_and_deleted_where_they_are_at_work(
    elsewhere: OpenElsewhere,
) -> None:
    shell = await elsewhere([Say("Hello.")])
    assert (await shell.server.client.post("/api/v1/agents", json={"name": "ada"})).is_success
    await shell.runs("run", "--agent", "ada", "--message", "Hi")  # the server keeps it open
    assert "ada is paused" in await shell.runs("agents", "pause", "ada", "--why", "lunch")
    assert "ada goes on" in await shell.runs("agents", "resume", "ada")
    assert "not at work in any thread" in await shell.runs("agents", "stop", "ada", code=2)
    chatter = await shell.server.token("chatter", "chat")
    for words in (["pause", "ada"], ["delete", "ada", "-y"]):
        assert "needs a token with the scope" in await shell.runs(
            "agents", *words, token=chatter, code=1
        )
    assert "Give -y" in await shell.runs("agents", "delete", "ada", code=2)
    assert "deleted ada" in await shell.runs("agents", "delete", "ada", "-y")
    assert "ada" not in await shell.runs("agents", "list")


async def test_a_server_reads_no_file_of_its_own_for_a_command(served: Serve) -> None:
    server = await served([])
    (server.workspace.root / "secret.txt").write_text("of the server")
    body = {"words": ["functions", "create", "f", "--file=secret.txt"]}
    answer = await server.client.post("/api/v1/commands", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "needs-text")
    assert answer.json()["error"]["problems"][0]["file"] == "secret.txt"


async def test_a_conversation_has_turns_commands_and_questions(elsewhere: OpenElsewhere) -> None:
    asks = Ask(Wanted("first_line", {"path": "notes.txt"}))
    shell = await elsewhere([Say("Hello there."), asks, Say("I may not."), Say("Again.")])
    (shell.server.workspace.root / "functions" / "files.py").write_text(READS)
    (shell.server.workspace.root / "notes.txt").write_text("It says nothing.")
    await shell.server.workspace.functions.reload()
    said = await shell.runs("run", "--message", "Hi", "--json")
    assert json.loads(said.splitlines()[-1])["reply"] == "Hello there."
    heard = asyncio.create_task(_answered(shell.server))
    typed = "What does it say?\n/retry\n/functions first\n/memory\n/debug first_line\n/nothing\n"
    printed = await shell.runs("run", "-y", typed=typed, code=1)
    await heard
    for text in (
        "I may not.",
        "Again.",
        "first_line",
        "human",
        "/debug does not work over",
        "no command /nothing",
    ):
        assert text in printed


async def test_a_person_goes_on_in_another_conversation_and_branches_it(
    elsewhere: OpenElsewhere,
) -> None:
    shell = await elsewhere([Say("One."), Say("Two."), Say("Three."), Say("Four.")])
    await shell.runs("run", "--message", "first")
    typed = "/new trip\nsecond\n/branch\n/name journey\nthird\n/open main\nfourth\n/conversations\n"
    printed = await shell.runs("run", "-y", typed=typed)
    for text in ("In the conversation trip.", "/open main goes back", "Three.", "a branch of trip"):
        assert text in printed
    texts = [
        [str(row["content"]) for row in request.messages if row["role"] == "user"]
        for request in shell.server.model.requests
    ]
    assert texts == [["first"], ["second"], ["second", "third"], ["first", "fourth"]]
    listed = json.loads(await shell.runs("conversations", "list", "--json"))
    names = [row["name"] for row in listed["conversations"]]
    assert sorted(names) == ["journey", "main", "trip"]
    other = await shell.server.token("another", "chat", "read")
    options = ("run", "--conversation", "trip", "--message", "Hi")
    assert "no conversation `trip`" in await shell.runs(*options, token=other, code=2)
    for words in (["rename", "trip", "mine"], ["delete", "trip"], ["branch", "trip"]):
        said = await shell.runs("conversations", *words, token=other, code=2)
        assert "no conversation `trip`" in said, words
    assert "trip" not in await shell.runs("conversations", "list", token=other)


async def test_short_forms_typed_at_the_prompt_are_not_sent_to_the_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").touch()
    short = ("!cat notes.txt", "=f(1)", "?f", "read @notes.txt")
    messages = (" !cat notes.txt", "//exit", "What?", "read @nothing.txt")
    async with Client(HttpWire("http://127.0.0.1:9", "")) as client:
        for voice, unsent, sent in ((Voice(Typed()), short, messages), (Voice(), (), short)):
            talk = RemoteTalk(client, "main", voice, None)
            for says, texts in (("so nothing was sent", unsent), ("cannot be reached", sent)):
                for text in texts:
                    await talk.take(text)
                    assert says in " ".join(capsys.readouterr().out.split()), text


async def _answered(server: Served) -> None:
    """Answer the first question with no, from another client."""
    await server.frames(
        lambda frames: any(data is not None and data["type"] == "grant_asked" for _, data in frames)
    )
    (question,) = (await server.client.get("/api/v1/approvals")).json()["approvals"]
    await server.client.post(f"/api/v1/approvals/{question['id']}", json={"answer": "no"})


async def test_a_name_longer_than_any_is_refused_before_it_is_shown(served: Serve) -> None:
    server = await served([])
    for word in ("\n" * 390_000, "a" * 201):
        answer = await server.client.post(
            "/api/v1/commands", json={"words": ["functions", "confirm", word]}
        )
        assert answer.status_code == 400
        assert len(answer.content) < 2_000
        assert "A name has at most 200 characters" in answer.text


async def test_a_command_that_went_is_told_over_a_server(served: Serve) -> None:
    server = await served([])
    answer = await server.client.post(
        "/api/v1/commands", json={"words": ["functions", "blame", "slugify"]}
    )
    shown = answer.json()
    assert (answer.status_code, shown["code"], shown["document"]) == (200, 0, None)
    assert GONE["functions blame"] in str(shown["aside"])


@pytest.mark.parametrize(
    ("asked", "typed", "is_given"),
    [
        pytest.param(".env", "memory search .env", False, id="a word that is sought"),
        pytest.param("secrets", "conversations search secrets", False, id="in conversations"),
        pytest.param(".env", "memory edit human --value .env", False, id="a value"),
        pytest.param(".env", "conversations rename main .env", False, id="a name"),
        pytest.param(".env", "conversations branch main --name=.env", False, id="an option"),
        pytest.param(".env", "memory edit human --file secrets", False, id="another file"),
        pytest.param("-", "memory search cake", False, id="standard input"),
        pytest.param("-", "conversations list", False, id="in a loop over lines"),
        pytest.param("-", "memory edit human --file secrets", False, id="instead of the file"),
        pytest.param("-", "functions create f", True, id="the input that is meant"),
        pytest.param("secrets", "memory edit human --file secrets", True, id="the file"),
        pytest.param("secrets", "functions create f secrets", True, id="an argument"),
    ],
)
async def test_a_hostile_server_gets_no_file_but_one_that_the_command_takes(
    asked: str, typed: str, is_given: bool, tmp_path: Path
) -> None:
    given: list[dict[str, str]] = []
    refusal = {"code": "needs-text", "message": "", "fix": None, "problems": [{"file": asked}]}

    async def serve(request: Request, answer: Answer) -> None:
        texts = json.loads(request.body or b"{}").get("texts")
        given.extend([texts] if texts else [])
        await answer.send(409, json.dumps({"error": refusal}).encode())

    for name in (".env", "secrets"):
        (tmp_path / name).write_text(f"the text of {name}")
    with closing(Server(serve)) as server:
        url = f"http://127.0.0.1:{server.port}"
        done = await asyncio.to_thread(
            knapper,
            *("--server", url, "--token", "tw_a_b", *typed.split()),
            cwd=tmp_path,
            given="the text of -",
        )
    assert done.returncode != 0
    assert [texts[asked] for texts in given[:1]] == [f"the text of {asked}"] * is_given
    assert is_given or "you did not name" in done.stderr
