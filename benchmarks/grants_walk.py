"""A new user's walk through grants, played in a pseudo-terminal against a scripted model; writes what was seen.

    python benchmarks/grants_walk.py > docs/grants-walk.md

Everything happens in an empty home: a workspace, a weather service on this machine, and a folder as the package index.
The model's replies are scripted; the loop, the gate, the sandbox, the questions and the answers are real.
"""

import json
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.grants_walk_script import (
    FILES,
    HEAD,
    KEY,
    PLACE,
    PORT,
    WALK,
    Key,
    Shell,
    Shown,
    Typed,
    Waited,
)
from tests.kit import scripted
from tests.kit.terminal import CTRL_D, ENTER, KNAPPER, Terminal
from tests.packages.support import wheel

COLUMNS, ROWS = 100, 30
PATIENCE_S = 120


def main() -> int:
    """Play the walk and print the page."""
    with tempfile.TemporaryDirectory(prefix="grants-walk-") as folder, _service():
        home = Path(folder)
        root = home / "diary"
        environment = _environment(home)
        with _program(home, environment, "init", "diary") as made:
            made.exit_code(PATIENCE_S)
        _fill(root)
        print(HEAD)
        with scripted([step for part in WALK for step in part.model]) as model:
            Walk(root, environment, model.base_url).play()
    return 0


class Walk:
    """The prompt, plus a second terminal for commands."""

    def __init__(self, root: Path, environment: Mapping[str, str], address: str) -> None:
        self._root = root
        self._environment = environment
        self._address = address

    def play(self) -> None:
        """Follow the script and print what it wants shown."""
        arguments = ("run", "--base-url", self._address, "--model", "scripted")
        with _program(self._root, self._environment, *arguments) as prompt:
            prompt.wait_for("/help lists", PATIENCE_S)
            for part in WALK:
                print(f"## {part.title}\n")
                for act in part.acts:
                    self._do(act, prompt)
            prompt.type(CTRL_D)
            prompt.exit_code(PATIENCE_S)

    def _do(self, act: Typed | Key | Waited | Shown | Shell, prompt: Terminal) -> None:
        match act:
            case Typed():
                prompt.wait(
                    lambda: not any("thinking" in row for row in prompt.screen()),
                    "the prompt",
                    PATIENCE_S,
                )
                prompt.line(act.text)
            case Key():
                prompt.wait_for("Press o (once)", PATIENCE_S)
                prompt.type(act.key)
                if act.key in ("o", "y"):
                    prompt.wait_for("Enter answers", PATIENCE_S)
                    prompt.type(ENTER)
                prompt.wait_count(act.until, act.count, PATIENCE_S)
            case Waited():
                prompt.wait_count(act.text, act.count, PATIENCE_S)
            case Shown():
                prompt.wait_for(act.when, PATIENCE_S)
                _show(act.says, _since(prompt.screen(), act.since))
            case Shell():
                self._run(act)

    def _run(self, act: Shell) -> None:
        command = KNAPPER if act.command[0] == "knapper" else act.command[:1]
        with _terminal((*command, *act.command[1:]), self._root, self._environment) as screen:
            if act.hidden:
                screen.wait_for(":", PATIENCE_S)
                screen.line(act.hidden)
            screen.exit_code(PATIENCE_S)
            _show(act.says, [f"$ {' '.join(act.command)}", *_since(screen.screen(), "")])


def _show(says: str, rows: list[str]) -> None:
    print(f"{says}\n\n```")
    print("\n".join(rows))
    print("```\n", flush=True)


def _since(rows: list[str], begin: str) -> list[str]:
    """Return the rows from the last one that contains this text, without empty rows at the end."""
    at = max((n for n, row in enumerate(rows) if begin and begin in row), default=0)
    kept = rows[at:]
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _fill(root: Path) -> None:
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)


def _environment(home: Path) -> dict[str, str]:
    """Return a new user's environment: an empty home, and a folder of wheels instead of the package index."""
    wheels = home / "wheels"
    wheels.mkdir()
    wheel(
        wheels, "sparkle", "1.2.0", {"sparkle.py": "import blocks\n\n\n" + SPARKLE}, ["blocks>=3"]
    )
    wheel(wheels, "blocks", "3.1", {"blocks.py": 'EIGHTHS = "▁▂▃▄▅▆▇█"\n'})
    return {
        "HOME": str(home),
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": "/dev/null",
    }


SPARKLE = """\
def line(numbers):
    low, high = min(numbers), max(numbers)
    return "".join(blocks.EIGHTHS[round(7 * (one - low) / ((high - low) or 1))] for one in numbers)
"""


class _Weather(BaseHTTPRequestHandler):
    """Reports the weather; below /station only for callers with the key, which it echoes."""

    def do_GET(self) -> None:
        own = self.path.startswith("/station")
        known = self.headers.get("X-Key") == KEY
        found = (
            {"wind_m_s": 7.5, "key": KEY}
            if own
            else {"city": self.path.rpartition("/")[2], "celsius": 3.6}
        )
        text = json.dumps(found if known or not own else {"error": "who are you?"})
        self.send_response(200 if known or not own else 401)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _service() -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", PORT), _Weather) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert f"localhost:{server.server_port}" == PLACE
        yield
        server.shutdown()


@contextmanager
def _terminal(
    command: tuple[str, ...], cwd: Path, environment: Mapping[str, str]
) -> Iterator[Terminal]:
    running = Terminal(command, cwd=cwd, environment=environment, columns=COLUMNS, rows=ROWS)
    try:
        yield running
    finally:
        running.close()


@contextmanager
def _program(cwd: Path, environment: Mapping[str, str], *arguments: str) -> Iterator[Terminal]:
    with _terminal((*KNAPPER, *arguments), cwd, environment) as running:
        yield running


if __name__ == "__main__":
    sys.exit(main())
