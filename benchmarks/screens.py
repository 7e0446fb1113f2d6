"""Screens of a terminal as SVG: one, or a film of several. No font is fetched; readable on dark and light pages."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from typing import Any

import pyte.graphics

from tests.kit.terminal import Terminal

WIDE, HIGH, PAD, BASE = 8.4, 17, 12, 13
_PATIENCE_S = 60
Look = tuple[str, str, bool, bool, bool]
_NOTHING = "\0"
_WORDS = re.compile(r"\S+(?: {1,2}\S+)*")
_SAME = {"brown": "yellow", "brightbrown": "yellow", "brightwhite": "white"}
_DARK = {
    "default": "#d5d8de",
    "ground": "#16181d",
    "black": "#5c6370",
    "red": "#ff7a78",
    "green": "#7ccf7c",
    "yellow": "#e3c26b",
    "blue": "#7aa7ff",
    "magenta": "#d59cf0",
    "cyan": "#5cc7d6",
    "white": "#f2f2f2",
    "dim": "#838b97",
}
_LIGHT = {
    "default": "#24292f",
    "ground": "#f7f7f4",
    "black": "#57606a",
    "red": "#b3261e",
    "green": "#1a7f37",
    "yellow": "#8a6100",
    "blue": "#0a53c1",
    "magenta": "#8250df",
    "cyan": "#0b6e7a",
    "white": "#24292f",
    "dim": "#66707a",
}


def see_dim() -> None:
    """Make pyte record faint text, which it does not know, as blinking text."""
    pyte.graphics.TEXT[2] = "+blink"


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen at one moment: its rows as SVG, and the cursor position."""

    rows: tuple[str, ...]
    cursor: tuple[int, int] | None

    @classmethod
    def of(cls, terminal: Terminal) -> "Screen":
        """Return what a terminal shows now."""
        return cls(tuple("".join(_runs(row)) for row in terminal.cells()), terminal.cursor())


def still(terminal: Terminal, title: str, since: str = "") -> str:
    """Return one screen as a picture, from the last line with a text down to the last non-empty line."""
    screen, shown = Screen.of(terminal), terminal.screen()
    first = max((at for at, row in enumerate(shown) if since and since in row), default=0)
    last = max(at for at, row in enumerate(shown, 1) if row)
    rows = [
        f'<g transform="translate(0 {n * HIGH})">{row}</g>'
        for n, row in enumerate(screen.rows[first:last])
        if row
    ]
    return f"{_head(len(terminal.cells()[0]), last - first, title)}{''.join(rows)}</g></svg>\n"


@dataclass
class Film:
    """A series of screens, each with the seconds that it is shown."""

    terminal: Terminal
    frames: list[tuple[Screen, float]] = field(default_factory=list)

    def look(self, seconds: float) -> None:
        """Capture the current screen if it has changed."""
        screen = Screen.of(self.terminal)
        if self.frames and self.frames[-1][0] == screen:
            self.hold(seconds)
        else:
            self.frames.append((screen, seconds))

    def hold(self, seconds: float) -> None:
        """Show the last screen for longer."""
        screen, shown = self.frames[-1]
        self.frames[-1] = screen, shown + seconds

    def pause(self, real_s: float = 0.4) -> None:
        """Let the program run for a moment, then capture its screen."""
        time.sleep(real_s)
        self.look(0.1)

    def watch(
        self,
        until: Callable[[], bool],
        what: str,
        seconds: float = 0.08,
        dwell: tuple[str, float] = ("", 0),
    ) -> None:
        """Capture every screen until something holds; the first one with the text of `dwell` is shown longer."""
        end, (wanted, longer) = time.monotonic() + _PATIENCE_S, dwell
        while not until():
            if time.monotonic() > end:
                raise AssertionError(f"waited for {what}:\n{self.terminal.scrolled()}")
            time.sleep(0.02)
            self.look(seconds if Screen.of(self.terminal) != self.frames[-1][0] else 0)
            if wanted and any(wanted in row for row in self.terminal.screen()):
                wanted = ""
                self.hold(longer)
        self.look(seconds)

    def svg(self, title: str) -> str:
        """Return the film as a loop; it does not move for viewers who prefer reduced motion."""
        cells = self.terminal.cells()
        columns, rows = len(cells[0]), len(cells)
        names = {
            row: f"r{n}"
            for n, row in enumerate(
                dict.fromkeys(row for one, _ in self.frames for row in one.rows)
            )
        }
        defined = "".join(f'<g id="{name}">{row}</g>' for row, name in names.items() if row)
        step = rows * HIGH + PAD
        strip = "".join(
            self._frame(one, at * step, names) for at, (one, _) in enumerate(self.frames)
        )
        window = f'<svg width="{columns * WIDE:.0f}" height="{rows * HIGH}"><g class="film">{strip}</g></svg>'
        return f"{_head(columns, rows, title, self._motion(step))}<defs>{defined}</defs>{window}</g></svg>\n"

    def _frame(self, screen: Screen, top: int, names: dict[str, str]) -> str:
        uses = [
            f'<use href="#{names[row]}" y="{top + at * HIGH}"/>'
            for at, row in enumerate(screen.rows)
            if row
        ]
        if screen.cursor:
            row, column = screen.cursor
            uses.append(
                f'<rect class="cursor default" x="{column * WIDE:.1f}" y="{top + row * HIGH}"/>'
            )
        return "".join(uses)

    def _motion(self, step: int) -> str:
        total, at, keys = sum(seconds for _, seconds in self.frames), 0.0, ""
        for number, (_, seconds) in enumerate(self.frames):
            keys += f"{100 * at / total:.2f}%{{transform:translateY({-number * step}px)}}"
            at += seconds
        last = -(len(self.frames) - 1) * step
        return (
            f".cursor{{width:{WIDE}px;height:{HIGH}px;opacity:.45}}"
            f".film{{animation:film {total:.1f}s steps(1,end) infinite}}@keyframes film{{{keys}}}"
            f"@media (prefers-reduced-motion:reduce){{.film{{animation:none;transform:translateY({last}px)}}}}"
        )


def _head(columns: int, rows: int, title: str, style: str = "") -> str:
    wide, high = columns * WIDE + 2 * PAD, rows * HIGH + 2 * PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" width="{wide:.0f}" height="{high}" '
        f'xml:space="preserve" role="img"><title>{escape(title)}</title><style>'
        f"{_rules(_DARK)}@media (prefers-color-scheme:light){{{_rules(_LIGHT)}}}"
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "white-space:pre}"
        f".b{{font-weight:bold}}.i{{font-style:italic}}{style}</style>"
        f'<rect class="ground" width="100%" height="100%" rx="8"/><g transform="translate({PAD} {PAD})">'
    )


def _rules(colours: dict[str, str]) -> str:
    return "".join(
        f"{'text,' * (name == 'default')}.{name}{{fill:{colour}}}"
        for name, colour in colours.items()
    )


def _runs(row: list[Any]) -> Iterator[str]:  # Any: pyte's cells
    """Split a row into runs of one style, each at its position and with its width, whatever the font."""
    at = 0
    for look, cells in groupby(row, _look):
        held = list(cells)
        left, at = at, at + len(held)
        if look[1] != "ground":
            yield f'<rect class="{look[1]}" x="{left * WIDE:.1f}" width="{len(held) * WIDE:.1f}" height="{HIGH}"/>'
        # One character per cell: the second cell of a wide character is empty and stays so.
        for words in _WORDS.finditer("".join(cell.data[:1] or _NOTHING for cell in held)):
            wide = (words.end() - words.start()) * WIDE
            yield _text(look, (left + words.start()) * WIDE, wide, words[0].replace(_NOTHING, ""))


def _text(look: Look, left: float, wide: float, text: str) -> str:
    words = [look[0]] * (look[0] != "default") + ["b"] * look[2] + ["i"] * look[3]
    kind = f' class="{" ".join(words)}"' if words else ""
    under = ' text-decoration="underline"' * look[4]
    size = (
        f' textLength="{wide:.1f}" lengthAdjust="spacingAndGlyphs"'
        if len(text) > 1 or not text.isascii()
        else ""
    )
    return f'<text{kind}{under} x="{left:.1f}" y="{BASE}"{size}>{escape(text, quote=False)}</text>'


def _look(cell: Any) -> Look:  # Any: a cell of pyte
    """Return color, background, bold, italic and underlined."""
    front, back = _colour(cell.fg), "ground" if cell.bg == "default" else _colour(cell.bg)
    if cell.reverse:
        front, back = back, front
    return (
        "dim" if cell.blink and front == "default" else front,
        back,
        cell.bold,
        cell.italics,
        cell.underscore,
    )


def _colour(name: str) -> str:
    if name == "brightblack":
        return "dim"
    known = _SAME.get(name, name.removeprefix("bright"))
    return known if known in _DARK else "default"
