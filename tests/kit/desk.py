"""A workspace in a temporary folder, one agent in it, and a scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from agent_core.base.events import CallAnswered, Event, TurnEnded
from agent_core.runtime.agent import Agent
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox
from tests.kit import ScriptedModel

E = TypeVar("E")

VOWELS = '''\
def count_vowels(text: str) -> int:
    """Count the vowels in a text.

    Args:
        text: The text to look at.

    Returns:
        How many of its letters are a, e, i, o or u.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("rhythm")
    0
    """
    return sum(letter in "aeiou" for letter in text.lower())
'''

SHIPPING = '''\
def shipping(weight: int, express: bool = False) -> int:
    """Charge a customer for a parcel: 5 up to 10 kg, 9 up to 20 kg, else 20; express costs 4 more.

    Args:
        weight: The weight in kg.
        express: Whether it has to be fast.

    >>> shipping(3)
    5
    >>> shipping(15)
    9
    """
    if weight <= 10:
        price = 5
    elif weight <= 20:
        price = 9
    else:
        price = 20
    return price + 4 if express else price
'''
"""A function whose two examples leave most of its behavior open."""
HOLLOW = '''\
def send_mail(to: str, subject: str) -> str:
    """Send a mail to somebody.

    Args:
        to: The address.
        subject: What it is about.

    >>> send_mail("ada@example.org", "Lunch")
    'Sent "Lunch" to ada@example.org'
    >>> send_mail("bob@example.org", "Late")
    'Sent "Late" to bob@example.org'
    """
    return f'Sent "{subject}" to {to}'
'''


def another(name: str) -> str:
    """Return the example function under another name; it also counts some consonants, so it is not a duplicate."""
    consonants = "".join(
        letter for at, letter in enumerate("bcdfjklpsvwxz") if crc32(name.encode()) >> at & 1
    )
    sentence = f"Count the vowels in a text, and of the other letters {consonants or 'none'}{name}."
    named = VOWELS.replace("count_vowels", name).replace("Count the vowels in a text.", sentence)
    return named.replace('"aeiou"', f'"aeiou{consonants}{name.upper()}"')


def right(call: str) -> str:
    """Return what the description of `shipping` promises for a call."""
    names: dict[str, Any] = {}
    exec(SHIPPING, names)
    return repr(eval(call, names))


@dataclass
class Desk:
    """The workspace, agent and model for a test of a turn."""

    workspace: Workspace
    agent: Agent
    model: ScriptedModel

    @property
    def functions(self) -> Path:
        """The functions folder."""
        return self.workspace.root / "functions"

    async def say(self, message: str) -> list[Event]:
        """Run one whole turn and return its events."""
        return [event async for event in self.agent.turn(message)]

    async def begin(self) -> None:
        """Go on in a new conversation of the agent."""
        left = self.agent
        self.agent = await self.workspace.agent(left.name, "new")
        await left.aclose()

    def put(self, path: str, text: str) -> Path:
        """Save a file in the functions folder the way an editor does: write a temporary file and rename it."""
        file = self.functions / path
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(file.name + ".tmp")
        beside.write_text(text, "utf-8")
        beside.replace(file)
        return file

    async def save(self, path: str, text: str) -> None:
        """Save a file in the functions folder and have it loaded."""
        self.put(path, text)
        await self.workspace.functions.reload()


def of(kind: type[E], events: list[Event]) -> list[E]:
    """Return the events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def answers(events: list[Event]) -> list[str]:
    """Return the results of its calls as the model read them."""
    return [event.text for event in of(CallAnswered, events)]


def outcomes(events: list[Event]) -> list[str]:
    """Return how each of its calls ended, as the published word."""
    return [call.outcome for call in of(CallAnswered, events)]


def standings(events: list[Event]) -> list[str]:
    """Return the standing of each function that it made or changed; empty if it was refused."""
    verdicts = [call.detail for call in of(CallAnswered, events) if "admitted" in call.detail]
    return [verdict.get("standing", "") for verdict in verdicts]


def ended(events: list[Event]) -> TurnEnded:
    """Return how the turn ended."""
    (last,) = of(TurnEnded, events)
    return last


@asynccontextmanager
async def desk(
    root: Path, model: ScriptedModel, sandbox: Sandbox | None = None, /, **flags: Any
) -> AsyncIterator[Desk]:
    """Open a workspace with the scripted model; `turn__max_steps=3` sets `turn.max_steps`.

    A shared `sandbox` is used unless a flag changes how the sandbox starts.
    """
    if flags.keys() & {"sandbox__packages", "sandbox__unsafe", "turn__parallel"}:
        sandbox = None
    given = {name.replace("__", "."): value for name, value in flags.items()}
    settings = {
        "model.base_url": model.base_url,
        "model.name": "scripted",
        "model.stream": False,
        "model.context_tokens": 8_192,
        **given,
    }
    async with Workspace.open(root, flags=settings, sandbox=sandbox) as workspace:
        yield Desk(workspace, await workspace.agent(), model)
