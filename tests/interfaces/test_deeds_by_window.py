"""What a person does in any window beside an open prompt works as in that prompt, and the prompt shows it."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

import agent_core
from agent_core import TurnError
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Stall, Step, Wanted, scripted
from tests.kit.program import Program, knapper, surroundings
from tests.kit.terminal import CTRL_C, Terminal, terminal
from tests.kit.waiting import patience_s

from .asking import home, made, press
from .support import COUNT_VOWELS, create, flags

SLOW_S = 0.4
LIKES = "likes zebras"


def play(place: str) -> Callable[[Seen], Step]:
    """Return a model that does what the last message says."""
    calls = {
        "make": [Ask(create(COUNT_VOWELS))],
        "count": [Ask(Wanted("count_vowels", {"text": "aeiou"}))],
        "note": [Ask(Wanted("core_memory_append", {"label": "human", "content": LIKES}))],
        "weather": [made(place)],
    }

    def step(seen: Seen) -> Step:
        last = [place for place, one in enumerate(seen.messages) if one["role"] == "user"][-1]
        said = str(seen.messages[last]["content"])
        results = [one for one in seen.messages[last:] if one["role"] == "tool"]
        if calls_of := calls.get(said.split()[0]):
            if len(results) < len(calls_of):
                return calls_of[len(results)]
            return Say(f"heard {said}: {results[-1]['content'][:60]}")
        if said.startswith("stuck"):
            return Stall(60, "It begins")
        return Say(f"heard {said} to its end", pause_s=SLOW_S if "slow" in said else 0)

    return step


@dataclass
class Beside:
    """A workspace with an open prompt, which is the owner, and windows beside it."""

    root: Path
    model: ScriptedModel
    owner: Terminal
    stack: ExitStack
    replies: list[str] = field(default_factory=list)
    _asking: threading.Thread | None = None
    _stop: Callable[[], object] = lambda: None
    server: httpx2.Client | None = None
    browser: httpx2.Client | None = None
    url: str = ""
    login: str = ""

    def begin(self, door: str, text: str) -> None:
        """Send a message through a door, and do not wait for the answer."""
        getattr(self, f"_{door}")(text)

    def reply(self) -> str:
        """Return what the door has of the answer when it has ended."""
        if self._asking is not None:
            self._asking.join(patience_s())
            assert not self._asking.is_alive()
        return self.replies[-1]

    def say(self, door: str, text: str) -> str:
        """Send a message through a door, and return its answer."""
        self.begin(door, text)
        return self.reply()

    def stop(self) -> None:
        """End the running turn, through the door where that can be."""
        self._stop()

    def _thread(self, work: Callable[[], str]) -> None:
        self._asking = threading.Thread(target=lambda: self.replies.append(work()), daemon=True)
        self._asking.start()

    def _prompt(self, text: str) -> None:
        screen = self.stack.enter_context(window(self.model, self.root))
        screen.line(text)
        self._stop = lambda: screen.type(CTRL_C)

        def shown() -> str:
            screen.wait(
                lambda: "∙ " in screen.scrolled() or "nterrupted" in screen.scrolled(), "end"
            )
            return screen.scrolled()

        self._thread(shown)

    def _run(self, *arguments: str, given: str = "") -> None:
        read_end, typed = os.pipe()
        os.write(typed, given.encode())
        os.close(typed)
        shown_end, out = os.pipe()
        streams = [read_end, out, out]
        around = surroundings(home(self.root))
        options = ["run", *flags(self.model), *arguments]
        program = Program(options, streams, cwd=self.root, environment=around)
        os.close(read_end)
        os.close(out)
        self._stop = lambda: os.kill(program.pid, signal.SIGINT)

        def printed() -> str:
            with os.fdopen(shown_end) as shown:
                return shown.read()

        self._thread(printed)

    def _message(self, text: str) -> None:
        self._run("--message", text)

    def _pipe(self, text: str) -> None:
        self._run(given=f"{text}\n")

    def _ask(self, text: str) -> None:
        def asked() -> str:
            try:
                return agent_core.ask(text, self.root)
            except TurnError as error:
                return str(error)

        self._thread(asked)
        self._stop = lambda: self.owner.type(CTRL_C)  # a call of a function has no other way

    def _client(self, text: str) -> None:
        client = self.serve()
        path = "/api/v1/agents/main"
        posted = client.post(f"{path}/messages", json={"text": text, "alone": True}).json()
        self._stop = lambda: client.post(f"{path}/interrupt")

        self._thread(lambda: _stream(client, f"{path}/events?after=0", posted["event"]))

    def _page(self, text: str) -> None:
        client = self.page()
        path = "/api/v1/agents/main"
        posted = client.post(f"{path}/messages", json={"text": text}).json()
        self._stop = lambda: client.post(f"{path}/interrupt")
        self._thread(lambda: _stream(client, f"{path}/events?after=0", posted["event"]))

    def page(self) -> httpx2.Client:
        """Return what the page sends from a browser that is logged in."""
        if self.browser is None:
            self.serve()
            self.browser = httpx2.Client(base_url=self.url, timeout=60)
            self.stack.callback(self.browser.close)
            code = self.login.partition("code=")[2]
            answer = self.browser.post("/login", json={"code": code})
            self.browser.headers |= {"Knapper-Key": answer.json()["key"], "Origin": self.url}
        return self.browser

    def _openai(self, text: str) -> None:
        client = self.serve()
        body = {"model": "main", "messages": [{"role": "user", "content": text}]}

        def answered() -> str:
            answer = client.post("/v1/chat/completions", json=body).json()
            return str(answer["choices"][0]["message"]["content"])

        self._thread(answered)

    def serve(self) -> httpx2.Client:
        """Return a client of a server beside the prompt."""
        if self.server is None:
            scopes = ("--scope", "chat", "--scope", "read", "--scope", "approve")
            token = knapper(
                "tokens",
                "add",
                "anna",
                "--json",
                *scopes,
                cwd=self.root,
                environment=home(self.root),
            )
            read_end, out = os.pipe()
            options = ["serve", "--json", "--port", "0", *flags(self.model)]
            around = surroundings(home(self.root))
            program = Program(options, [0, out, 2], cwd=self.root, environment=around)
            self.stack.callback(program.wait, 10)
            self.stack.callback(program.kill)
            os.close(out)
            with os.fdopen(read_end) as told:
                document = json.loads(told.readline())
            self.url = document["url"]
            self.login = document["login"]
            key = json.loads(token.stdout)["token"]
            headers = {"Authorization": f"Bearer {key}"}
            self.server = httpx2.Client(base_url=self.url, headers=headers, timeout=60)
            self.stack.callback(self.server.close)
        return self.server


def _stream(client: httpx2.Client, path: str, message: str) -> str:
    """Return the end of the turn that a message began."""
    turn = ""
    with client.stream("GET", path) as answer:
        for line in answer.iter_lines():
            event = json.loads(line[6:]) if line.startswith("data: ") else {}
            if event.get("message_id") == message and event.get("turn"):
                turn = event["turn"]
            if turn and event.get("type") == "turn_ended" and event["turn"] == turn:
                return f"{event['reason']}: {event['reply']}"
    return ""


@contextmanager
def window(model: ScriptedModel, root: Path) -> Iterator[Terminal]:
    with terminal("run", *flags(model), cwd=root, columns=110, environment=home(root)) as screen:
        screen.wait_for("/help lists")
        yield screen


@pytest.fixture
def beside(folder: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    with scripted([Repeat(play(place))]) as model, ExitStack() as stack:
        monkeypatch.setenv("KNAPPER_MODEL_BASE_URL", model.base_url)
        monkeypatch.setenv("KNAPPER_MODEL_NAME", "scripted")
        monkeypatch.setenv("XDG_DATA_HOME", home(folder)["XDG_DATA_HOME"])
        owner = stack.enter_context(window(model, folder))
        yield Beside(folder, model, owner, stack)


def message(beside: Beside, door: str) -> None:
    """It is answered there, and shown here with where it comes from."""
    assert "heard two to its end" in beside.say(door, "two")
    beside.owner.wait_for("› two")
    beside.owner.wait_for("heard two to its end")


def question(beside: Beside, door: str) -> None:
    """Who can be asked is asked in the prompt, too, and its answer counts."""
    beside.begin(door, "weather in Oslo")
    if door in ("prompt", "page", "client"):
        press(beside.owner, "o")
        beside.owner.wait_for("→ once")
    assert "weather" in beside.reply()


def stop(beside: Beside, door: str) -> None:
    """It ends the turn, which both see."""
    beside.begin(door, "slow one")
    beside.owner.wait_for("heard slow")
    beside.stop()
    assert "nterrupted" in beside.reply()
    beside.owner.wait_for("nterrupted")
    assert "to its end" not in beside.owner.scrolled()


def block(beside: Beside, door: str) -> None:
    """A block that is edited there is another one here."""
    beside.say(door, "note it")
    beside.owner.wait_for("heard note")
    beside.owner.do("/memory", LIKES)


def function(beside: Beside, door: str) -> None:
    """A function that is made there is called here."""
    assert "heard make" in beside.say(door, "make it")
    beside.owner.wait_for("count_vowels")
    beside.owner.do('=count_vowels("aeiou")', "5")


def file(beside: Beside, door: str) -> None:
    """A file that is saved is told here, and called there."""
    (beside.root / "functions" / "words.py").write_text(COUNT_VOWELS)
    beside.owner.wait_for("count_vowels")
    assert "5" in beside.say(door, "count them").partition("heard count")[2]


DOORS = ("prompt", "page", "message", "client", "ask", "pipe")
DEEDS = (message, question, stop, block, function, file)
RARE = (
    ("pipe", question),
    ("pipe", block),
    ("pipe", function),
    ("pipe", file),
    ("ask", block),
    ("ask", function),
    ("ask", file),
    ("client", block),
    ("client", file),
    ("page", file),
    ("message", file),
    ("message", block),
)
CELLS = [
    pytest.param(
        *(door, deed),
        id=f"{door}-{deed.__name__}",
        marks=[pytest.mark.slow] if (door, deed) in RARE else [],
    )
    for deed in DEEDS
    for door in DOORS
]


@pytest.mark.parametrize(("door", "deed"), CELLS)
def test_a_deed_in_another_window(
    beside: Beside, door: str, deed: Callable[[Beside, str], None]
) -> None:
    deed(beside, door)


@pytest.mark.slow
@pytest.mark.parametrize("deed", [function, file])
def test_an_openai_client_has_its_own_conversation_and_the_same_functions(
    beside: Beside, deed: Callable[[Beside, str], None]
) -> None:
    deed(beside, "openai")


def test_the_page_ends_a_turn_that_a_prompt_began(beside: Beside) -> None:
    page = beside.page()
    beside.owner.line("stuck here")
    beside.owner.wait_for("It begins")
    ended = page.post("/api/v1/agents/main/interrupt?conversation=main")
    assert ended.json() == {"interrupted": True}
    beside.owner.wait_for("nterrupted")
