"""Walks through the guide as a new user does, in a pseudo-terminal, and writes it: docs/guide.md and docs/guide/*.svg.

    python -m benchmarks.guide_walk [first] [agents] [program]     (or: make guide, which takes all walks)

Everything happens in an empty home; every command is typed as the guide prints it. The first walk installs the last
commit. The second, docs/guide-agents.md, uses this environment and a scripted model; so does the third, which makes the
picture of docs/programs.md.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import guide_agents_script
from benchmarks.guide_walk_script import (
    HEAD,
    PARTS,
    TAIL,
    Act,
    Escape,
    File,
    Half,
    Part,
    Picture,
    Prompt,
    Said,
    Second,
    Shell,
)
from benchmarks.screens import see_dim, still
from tests.kit import Repeat, scripted
from tests.kit.terminal import CTRL_D, ENTER, Terminal

ROOT = Path(__file__).parents[1]
PAGE, FOLDER = ROOT / "docs" / "guide.md", ROOT / "docs" / "guide"
COLUMNS, ROWS = 92, 42
PATIENCE_S = 240
NETWORK = ("PIP_", "SSL_CERT_", "http_proxy", "https_proxy", "no_proxy")
WORDS_A_MINUTE, KEYS_A_MINUTE = 200, 200  # of someone who reads and types neither fast nor slowly


def main() -> int:
    """Take the named walks, or all, and write what was seen."""
    see_dim()
    FOLDER.mkdir(exist_ok=True)
    walks = {"first": first_walk, "agents": agents_walk, "program": program_walk}
    for name in sys.argv[1:] or walks:
        walks[name]()
    return 0


def agents_walk() -> None:
    """Walk with several agents and a scripted model."""
    script = guide_agents_script
    page = _scripted_pages(script.HEAD, script.PARTS, script.TAIL)
    PAGE.with_name("guide-agents.md").write_text(page, "utf-8")


def program_walk() -> None:
    """Walk with a program, only for its picture."""
    _scripted_pages("", (guide_agents_script.PROGRAMS,), "")


def _scripted_pages(head: str, parts: Sequence[Part], tail: str) -> str:
    with (
        tempfile.TemporaryDirectory(prefix="guide-") as folder,
        scripted([Repeat(guide_agents_script.play)]) as model,
    ):
        home = Path(folder)
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        own = {"PATH": path, "OPENAI_BASE_URL": model.base_url, "KNAPPER_MODEL_NAME": "scripted"}
        first = _bash(home, home, own)
        try:
            return Walk(first, first, home).pages(head, parts, tail)
        finally:
            first.close()


def first_walk() -> None:
    """Walk from an empty machine."""
    with tempfile.TemporaryDirectory(prefix="guide-") as folder:
        home = Path(folder)
        clone = home / "clone"
        clone.mkdir()
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", clone], input=archive, check=True)
        first, second = _bash(clone, home), _bash(clone, home)
        try:
            walk = Walk(first, second, home)
            page = walk.pages(HEAD, PARTS, TAIL)
            page = f"{page}\n{walk.took(page)}\n"
        finally:
            first.close()
            second.close()
    PAGE.write_text(page, "utf-8")


def _bash(cwd: Path, home: Path, more: Mapping[str, str] | None = None) -> Terminal:
    """Return a new user's shell: an empty home, and what the package installer needs to know of the network."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(NETWORK)}
    own = {
        "HOME": str(home),
        "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin",
        "PS1": "$ ",
        "OPENAI_API_KEY": "",
    }
    return Terminal(
        ("bash", "--noprofile", "--norc", "-i"),
        cwd=cwd,
        environment={
            **{
                **kept,
                **own,
                "VIRTUAL_ENV_DISABLE_PROMPT": "1",
                "PYTHONPATH": "",
                "OPENAI_BASE_URL": "",
            },
            **(more or {}),
        },
        columns=COLUMNS,
        rows=ROWS,
    )


class Walk:
    """Two windows, and the page written from them."""

    def __init__(self, first: Terminal, second: Terminal, home: Path) -> None:
        self._first, self._second = first, second
        self._home = home
        self._keys = 0
        self._seconds = 0.0

    def pages(self, head: str, parts: Sequence[Part], tail: str) -> str:
        """Return the whole page."""
        return "\n".join(
            [head, *(text for part in parts for text in self._chapter(part)), self._leave(), tail]
        )

    def took(self, page: str) -> str:
        """Return how long it took: machine time as measured, human time estimated from the words and the keys."""
        words = len(re.sub(r"```.*?```|!\[.*?\)", "", page, flags=re.DOTALL).split())
        read, typed = 60 * words / WORDS_A_MINUTE, 60 * self._keys / KEYS_A_MINUTE
        return (
            f"Timed when these pictures were taken: {self._seconds:.0f} s for the machine (two shared cores, most of "
            f"it `pip install`), {typed:.0f} s to type {self._keys} keys at {KEYS_A_MINUTE} a minute, {read:.0f} s to "
            f"read {words} words at {WORDS_A_MINUTE} a minute: {(self._seconds + read + typed) / 60:.1f} minutes."
        )

    def _chapter(self, part: Part) -> list[str]:
        print(f"… {part.title}", file=sys.stderr)
        return [f"## {part.title}\n", *(self._do(act) for act in part.acts)]

    def _do(self, act: Act) -> str:
        began = time.monotonic()
        match act:
            case Said() | File():
                return self._told(act)
            case Picture():
                self._quiet()
                (FOLDER / f"{act.name}.svg").write_text(
                    still(self._first, act.says, act.since), "utf-8"
                )
                return f"![{act.says.replace('`', '')}](guide/{act.name}.svg)\n\n{act.says}\n"
            case Shell():
                self._shell(act)
            case Prompt():
                self._quiet()
                self._prompt(act)
            case Half():
                self._quiet()
                self._first.type(act.text)
            case Escape():
                self._quiet()
                self._first.type(act.key)
                return ""
            case Second():
                count = self._first.scrolled().count(act.until) + 1
                self._second.line(act.command)
                self._first.wait_count(act.until, count, PATIENCE_S)
        self._seconds += time.monotonic() - began
        return self._shown(act)

    def _told(self, act: Said | File) -> str:
        if isinstance(act, Said):
            return f"{act.text}\n"
        path = self._home / act.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(act.text, "utf-8")
        return f"```{path.suffix[1:].replace('py', 'python')}\n# {act.path}\n{act.text}```\n"

    def _shown(self, act: Shell | Prompt | Half | Second) -> str:
        mark = act.mark if isinstance(act, Prompt) else "› " if isinstance(act, Half) else "$ "
        typed = act.text if isinstance(act, Prompt | Half) else act.command
        self._keys += len(typed) + 1
        return f"```\n{mark}{typed.strip()}\n```\n"

    def _shell(self, act: Shell) -> None:
        self._first.wait(self._is_at_shell, "the shell", PATIENCE_S)
        self._first.type(act.command + ENTER)
        if act.until:
            self._first.wait_for(act.until, PATIENCE_S)
        else:
            time.sleep(0.3)  # until it has read the line
            self._first.wait(self._is_at_shell, act.command, PATIENCE_S)

    def _is_at_shell(self) -> bool:
        shown = [row for row in self._first.screen() if row]
        return bool(shown) and shown[-1] == "$"

    def _prompt(self, act: Prompt) -> None:
        count = self._first.scrolled().count(act.until) + 1
        self._first.line(act.text)
        self._first.wait_count(act.until, count, PATIENCE_S)

    def _quiet(self) -> None:
        """Wait until the screen stops changing, apart from the elapsed seconds of a paused call."""
        before = "nothing"
        while before != (now := re.sub(r"\d", "", "\n".join(self._first.screen()))):
            before = now
            time.sleep(0.7)

    def _leave(self) -> str:
        self._quiet()
        if not self._is_at_shell():
            self._first.type(CTRL_D)
        self._first.wait(self._is_at_shell, "the shell", PATIENCE_S)
        return ""


if __name__ == "__main__":
    sys.exit(main())
