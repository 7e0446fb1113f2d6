"""Each command in a page or a hint is run as printed, in a separate home and workspace.

It runs at a terminal, where its questions are answered with yes; nothing outside can be reached.
`tests/data/commands.toml` defines the values of placeholders, and the commands that cannot run here.
"""

import os
import re
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

import click
import pytest

from knapper.shell.cli import knapper as program
from tests.agents.helper_files import FINDER
from tests.grants.support import FETCHES, PLAIN
from tests.interfaces.support import COUNT_VOWELS
from tests.kit import Repeat, Say, ScriptedModel
from tests.kit.drawing import sampled
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, CTRL_D, ENTER, Terminal, terminal
from tests.sources.support import pdf

from .test_commands_that_are_named import (
    PAGES,
    PLACE,
    ROOMS,
    ROOT,
    UNFOLLOWED,
    of_module,
    of_page,
    reason,
    words_of,
)

DATA: Final[Mapping[str, Any]] = tomllib.loads(
    (ROOT / "tests" / "data" / "commands.toml").read_text()
)
INSTALLED: Final = {each.name: each.version for each in distributions()}
GAP: Final = "\x1f"
ANSWERS: Final = (
    (re.compile(r"[Tt]ype (y(?:es)?)(?: \(yes\))? or n"), "{}" + ENTER),
    (re.compile(r"^The value of ", re.MULTILINE), "a-long-value" + ENTER),
    (re.compile(r"\]: *$", re.MULTILINE), ENTER),
    (re.compile(r"/help lists|^∙ ", re.MULTILINE), CTRL_D),
    (re.compile(r"(?<!runs; )Ctrl-C (?:stops|ends) it"), CTRL_C),  # a server, not a running call
)
TRIPLE: Final = re.sub(
    "number . number|double|Double|Twice|4|10",
    lambda found: {
        "double": "triple",
        "Double": "Triple",
        "Twice": "Thrice",
        "4": "6",
        "10": "15",
    }.get(found[0], "number * 3"),
    PLAIN,
)
READS: Final = '''

def harbour_wind(self, place: str) -> str:
    """Say how much wind there is.

    Args:
        place: The name of a harbour.
    """
    return self.secret("STATION_KEY")[:1] + place
'''


def named() -> list[str]:
    """Return the complete commands that can run here, once each, with a gap between their words."""
    pages = (of_page(page) for page in PAGES if page.name not in UNFOLLOWED)
    modules = (of_module(path) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    commands = {tuple(words_of(text)) for texts in (*pages, *modules) for text, _ in texts}
    return sorted(
        GAP.join(words)
        for words in commands
        if is_whole(words) and entry("not_here", words) is None
    )


def is_whole(words: Sequence[str]) -> bool:
    """Check whether typing this does something: a page may mention a command by its name alone."""
    is_noun = len(words) == 1 and isinstance(
        program.get_command(click.Context(program), words[0]), click.Group
    )
    return not is_noun and not reason([*words], is_typed=True)


def entry(table: str, words: Sequence[str]) -> Any:  # Any: TOML
    """Return a table's entry for the longest prefix of a command that it has; None if it has none."""
    text = " ".join(words) + " "
    begins = [
        begin
        for begin in DATA[table]
        if text.startswith(begin if begin.endswith(":") else f"{begin} ")
    ]
    return DATA[table][max(begins, key=len)] if begins else None


def filled(words: Sequence[str]) -> list[str]:
    """Return the words of a command with a value for each placeholder."""
    left, done = [*(entry("places", words) or ())], []
    for before, word in zip(("", *words), words, strict=False):
        is_place = PLACE.fullmatch(word) and word not in DATA["names"]
        done.append(
            (left.pop(0) if left else DATA["options"].get(before, word)) if is_place else word
        )
    return [word for word in done if word]


@dataclass(frozen=True)
class World:
    """A home with a workspace, the same for each command."""

    base: Path
    environment: Mapping[str, str]

    @property
    def workspace(self) -> Path:
        return self.base / "now" / "assistant"

    def renew(self) -> None:
        """Restore the initial state."""
        shutil.rmtree(self.base / "now", ignore_errors=True)
        shutil.copytree(self.base / "kept", self.base / "now", symlinks=True)

    def do(self, *words: str) -> str:
        """Run a preparatory command and return its output."""
        done = knapper(
            *words, cwd=self.workspace, environment=self.environment, given="a-long-value\n"
        )
        assert done.returncode == 0 or "refused" in done.stdout + done.stderr, (
            words,
            done.stdout,
            done.stderr,
        )
        return done.stdout


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    server = ScriptedModel([Repeat(Say("Done."))])
    yield server
    server.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel) -> World:
    """One of each thing that the pages mention."""
    base, nowhere = tmp_path_factory.mktemp("world"), "http://127.0.0.1:9"
    folders = {
        f"XDG_{kind}_HOME": str(base / "now" / kind.lower()) for kind in ("DATA", "CONFIG", "CACHE")
    }
    proxies = {
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": "127.0.0.1",
        "PIP_INDEX_URL": nowhere,
    }
    endpoint = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k"}
    environment = {"HOME": str(base / "now"), "EDITOR": "true", **folders, **proxies, **endpoint}
    kept = World(
        base, environment | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    )
    (root := kept.workspace).mkdir(parents=True)
    kept.do("init", ".")
    for name, text in {
        "functions/count_vowels.py": COUNT_VOWELS,
        "functions/harbour_wind.py": READS,
        "functions/slugify.py": PLAIN.replace("double", "slugify"),
        "functions/weather.py": FETCHES.replace("{HOST}", "api.example.org"),
        "helpers/vowel_finder.toml": FINDER,
        "flawed.py": TRIPLE.replace("triple", "flawed").replace("15", "16"),
        "count_vowels.py": COUNT_VOWELS.replace("letter", "sign"),
        "data.csv": "a,b\n1,2\n",
        "data/a.txt": "1",
        "docs/a.md": "# A\n\nText.\n",
        "finder.toml": FINDER.replace(
            "Say which words of a text have many vowels", "Make a title of a letter shorter"
        ),
        "triple.py": TRIPLE,
        "weather.py": "",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    (root / "handbook.pdf").write_bytes(pdf(["A handbook."]))
    with zipfile.ZipFile(root / "helpers.zip", "w") as archive:
        archive.writestr(
            "letters.py",
            COUNT_VOWELS.replace("aeiou", "bcdf").replace("vowel", "letter").replace("5", "0"),
        )
    for name in ("main", "main", "main", "editor", "critic", "writer", "support"):
        kept.do("run", "--agent", name, "--message", "hello")
    kept.do("memory", "add", "plan", "--agent", "editor", "--value", "1")
    kept.do("memory", "add", "plan", "--value", "1")
    (root / "critic.json").write_text(kept.do("agents", "export", "critic"))
    shutil.move(base / "now", base / "kept")
    return kept


@pytest.mark.sampled
@pytest.mark.parametrize(
    "command", sampled(named(), 16, at=3), ids=lambda text: text.replace(GAP, " ")
)
def test_a_named_command_runs(world: World, command: str) -> None:
    words = command.split(GAP)
    world.renew()
    for earlier in entry("before", words) or ():
        world.do(*earlier.split())
    if {"-", "--json"} & {*words}:  # it reads standard input
        done = knapper(
            *filled(words), cwd=world.workspace, environment=world.environment, given="a text\n"
        )
        code, shown = done.returncode, done.stdout + done.stderr
    else:
        with terminal(
            *filled(words), cwd=world.workspace, environment=world.environment, columns=200
        ) as screen:
            if words[-1] == "watch":
                screen.wait_for("main ")
                screen.type(CTRL_C)
            code, shown = ended(screen), screen.scrolled()
    said = DATA["refused"].get(" ".join(words))
    assert "Traceback" not in shown
    assert code == 0 if said is None else said in shown, shown
    assert {each.name: each.version for each in distributions()} == INSTALLED


def ended(screen: Terminal) -> int:
    """Answer a command's questions until it ends, and return its exit code."""
    answered = dict.fromkeys(ANSWERS, 0)

    def has_ended() -> bool:
        shown = screen.scrolled()
        for answer in ANSWERS:
            asked = answer[0].findall(shown)
            if len(asked) > answered[answer]:
                answered[answer] += 1
                screen.type(answer[1].format(asked[-1]))
        return screen.process.poll() is not None

    screen.wait(has_ended, "its end", 20)
    return screen.exit_code()
