"""What the tests of questions about grants share: a service, a function that wants it, a prompt with a human's key."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.grants.support import FETCHES, weather_service
from tests.interfaces.support import create, prompt
from tests.kit import Ask, Say, Script, Wanted
from tests.kit.terminal import ENTER, Terminal

KEYS = "o once · y yes, kept · n no · w no, with a word"
CALL = Wanted("weather", {"city": "Oslo"})


def weather(place: str) -> str:
    """A function that fetches from this place."""
    return FETCHES.replace("{HOST}", place)


def made(place: str, *, reason: str = "asked", pause_s: float = 0.0, text: str = "") -> Ask:
    """The model's call that makes it."""
    call = create(weather(place), "weather")
    assert isinstance(call.arguments, dict)
    return Ask(Wanted("create_function", {**call.arguments, "reason": reason}), text=text, pause_s=pause_s)


def home(root: Path) -> dict[str, str]:
    """A folder of the user's own for the key of the yeses."""
    return {"XDG_DATA_HOME": str(root.parent / f"{root.name}-home")}


@contextmanager
def asked(
    script: Script,
    root: Path,
    *,
    environment: Mapping[str, str] | None = None,
    columns: int = 80,
    message: str = "what is the weather?",
) -> Iterator[Terminal]:
    """A prompt at which the first question has come, and its keys count."""
    with prompt(script, root, environment={**home(root), **(environment or {})}, columns=columns) as (screen, _):
        screen.line(message)
        screen.wait_for("o once")
        yield screen


@contextmanager
def service() -> Iterator[str]:
    """The place where the weather is to be had."""
    with weather_service() as place:
        yield place


def press(screen: Terminal, key: str) -> None:
    """A key that stands alone, and Enter where it is a yes."""
    screen.wait_for("o once")
    screen.type(key)
    if key in ("o", "y", "f"):
        screen.wait_for("Enter answers")
        screen.type(ENTER)


def agree(screen: Terminal, key: str = "y") -> None:
    """Type a yes, which is one letter."""
    asks = re.compile(rf"Type\s+{key}\s+and\s+Enter|\b{key}\s+(yes|once)\b")
    screen.wait(lambda: asks.search("\n".join(screen.screen())) is not None, "a question")
    screen.line(key)


def agree_in_full(screen: Terminal) -> None:
    """Type a yes to what cannot be undone, which is the whole word."""
    asks = re.compile(r"Type\s+yes\s+and\s+Enter")
    screen.wait(lambda: asks.search("\n".join(screen.screen())) is not None, "a question")
    screen.line("yes")


def ended(screen: Terminal) -> None:
    """Until the turn is over."""
    screen.wait_for("∙ ")


DONE = Say("That is all.")
REFUSED: Script = [DONE, DONE]  # a reply after a refusal gets one more step


def shown_whole(screen: Terminal) -> None:
    """Until every page of the question has been on the screen: only then is a yes taken."""
    while not any("That was all of it." in row for row in screen.screen()):
        screen.wait_for("o once")
        page_printed = partial(_is_longer, screen, len(screen.scrolled()))
        screen.type("d")
        screen.wait(page_printed, "the next page")


def _is_longer(screen: Terminal, chars: int) -> bool:
    return len(screen.scrolled()) > chars
