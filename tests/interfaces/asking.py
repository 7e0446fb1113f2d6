"""Shared by the tests of questions about grants: a service, a function that needs it, a prompt with a user key."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.grants.support import FETCHES, weather_service
from tests.interfaces.support import create, prompt
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.levels import lend
from tests.kit.terminal import ENTER, Terminal

KEYS = "Press o (once) or y (always), then Enter, or n (no) or v (never) or w (no, with a reason)."
CALL = Wanted("weather", {"city": "Oslo"})


def weather(place: str) -> str:
    """Return a function that fetches from this place."""
    return FETCHES.replace("{HOST}", place)


def made(place: str, *, reason: str = "asked", pause_s: float = 0.0, text: str = "") -> Ask:
    """Return the model's call that creates it."""
    call = create(weather(place), "weather")
    assert isinstance(call.arguments, dict)
    return Ask(
        Wanted("create_function", {**call.arguments, "reason": reason}), text=text, pause_s=pause_s
    )


def home(root: Path) -> dict[str, str]:
    """Return a separate user folder for the key that signs approvals."""
    folder = root.parent / f"{root.name}-home"
    lend(folder)  # for tests that open a workspace in this process
    return {"XDG_DATA_HOME": str(folder)}


@contextmanager
def asked(
    script: Script,
    root: Path,
    *,
    environment: Mapping[str, str] | None = None,
    columns: int = 80,
    message: str = "what is the weather?",
) -> Iterator[Terminal]:
    """Yield a prompt that shows the first question and accepts its keys."""
    with prompt(
        script, root, environment={**home(root), **(environment or {})}, columns=columns
    ) as (screen, _):
        screen.line(message)
        screen.wait_for("Press o (once)")
        yield screen


@contextmanager
def service() -> Iterator[str]:
    """Yield the address of the weather service."""
    with weather_service() as place:
        yield place


def press(screen: Terminal, key: str) -> None:
    """Press a single key, and Enter if it approves."""
    screen.wait_for("Press o (once)")
    screen.type(key)
    if key in ("o", "y", "f"):
        screen.wait_for("Enter answers")
        screen.type(ENTER)


def agree_in_full(screen: Terminal) -> None:
    """Type the whole word that approves an irreversible action."""
    asks = re.compile(r"\btype\s+yes\s+or\s+n\s+\(no\)")
    screen.wait(lambda: asks.search("\n".join(screen.screen())) is not None, "a question")
    screen.line("yes")


def ended(screen: Terminal) -> None:
    """Wait until the turn is over."""
    screen.wait_for("∙ ")


DONE = Say("That is all.")
REFUSED: Script = [DONE, DONE]  # a reply after a rejection gets one more step


def shown_whole(screen: Terminal) -> set[str]:
    """Turn every page of the question, since an approval is accepted only then. Return the rows that were visible."""
    visible = screen.watch()
    screen.wait_for("n (no)")
    while re.search(r"\bd(:| for) ", " ".join(screen.screen())):
        page_turned = partial(_is_another, screen, _quoted(screen))
        screen.type("d")
        screen.wait(page_turned, "the next page")
    return visible


def _is_another(screen: Terminal, page: list[str]) -> bool:
    return _quoted(screen) != page and any("n (no)" in row for row in screen.screen())


def _quoted(screen: Terminal) -> list[str]:
    return [row for row in screen.screen() if row.startswith("  ")]
