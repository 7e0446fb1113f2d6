"""Plays the tour in a pseudo-terminal, as a human would take it, into an animated SVG: `make recording`.

    python -m benchmarks.recording docs/recording.svg

The model is the scripted tour, which says so on the screen; the loop, the gate, the sandbox and the file that is saved
while a line is being typed are real.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks.screens import Film, see_dim
from tests.kit.terminal import ENTER, Terminal

COLUMNS, ROWS = 92, 30
KEY_S = 0.09  # for two keys
VOWELS, INITIALS = "how many vowels are in queueing?", "what are the initials of Ada Lovelace?"
RHYTHM, GRANT = "how many vowels are in rhythm?", "how many functions are in tour.py?"
PROGRAM, BACK = (
    "which word has most vowels: queueing, rhythm, audio or sky?",
    "/rollback count_vowels",
)
TYPED = (VOWELS, INITIALS, RHYTHM, PROGRAM, GRANT, BACK)
TITLE = "Knapper: functions are written, refused, fixed, called, edited by hand, granted a file and rolled back"


def main() -> int:
    """Play the tour and write the recording."""
    see_dim()
    with tempfile.TemporaryDirectory(prefix="recording-") as folder:
        home = Path(folder)
        shell = Terminal(
            ("bash", "--noprofile", "--norc", "-i"),
            cwd=home,
            environment=surroundings(home),
            columns=COLUMNS,
            rows=ROWS,
        )
        try:
            Path(sys.argv[1]).write_text(_played(shell, home / "functions" / "tour.py"), "utf-8")
        finally:
            shell.close()
    return 0


def surroundings(home: Path) -> dict[str, str]:
    """Return a new user's environment: an empty home, no key, and the command where it is installed."""
    (home / "knapper.toml").touch()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return {
        "HOME": str(home),
        "PATH": path,
        "PS1": "$ ",
        "OPENAI_API_KEY": "",
        "OPENAI_BASE_URL": "",
    }


def _played(shell: Terminal, file: Path) -> str:
    film = Film(shell)
    shell.wait_for("$")
    film.look(0.8)
    _ask(film, "knapper run --model tour", "Screen 1 of 10", 2.5)
    _ask(film, VOWELS, "Screen 2 of 10", 6)
    _ask(film, INITIALS, "Screen 3 of 10", 6, dwell=("initials refused", 4))
    _type(film, RHYTHM[:20])
    file.write_text(file.read_text("utf-8").replace('"aeiou"', '"aeiouy"'), "utf-8")
    _until(film, "was changed outside", 1.5)
    _ask(film, RHYTHM[20:], "Screen 5 of 10", 5)
    _ask(film, PROGRAM, "Screen 7 of 10", 5)
    _ask(film, GRANT, "y (always)", 3)
    shell.wait_for("y (always)")
    shell.type("y")
    shell.wait_for("Enter answers")
    shell.type(ENTER)
    _until(film, "It joined with your approval", 4)
    _ask(film, BACK, "2 of 2 examples agree", 4)
    return film.svg(TITLE)


def _ask(
    film: Film, text: str, shown: str, seconds: float, dwell: tuple[str, float] = ("", 0)
) -> None:
    """Type a line and send it; leave time for the output and to read it."""
    _type(film, text)
    film.hold(0.4)
    before = film.terminal.scrolled().count(shown)
    film.terminal.type(ENTER)
    film.watch(lambda: film.terminal.scrolled().count(shown) > before, shown, dwell=dwell)
    _settled(film, seconds)


def _type(film: Film, text: str) -> None:
    for at in range(0, len(text), 2):
        film.terminal.type(text[at : at + 2])
        begun = text[: at + 2].rstrip()
        film.watch(
            lambda begun=begun: any(begun in row for row in film.terminal.screen()),  # type: ignore[misc]
            begun,
            KEY_S,
        )


def _until(film: Film, shown: str, seconds: float) -> None:
    film.watch(lambda: shown in film.terminal.scrolled(), shown)
    _settled(film, seconds)


def _settled(film: Film, seconds: float) -> None:
    """Record all remaining output, then hold the last screen for a while."""
    before: list[str] = []
    while before != film.terminal.screen():
        before = film.terminal.screen()
        film.pause()
    film.hold(seconds)


if __name__ == "__main__":
    sys.exit(main())
