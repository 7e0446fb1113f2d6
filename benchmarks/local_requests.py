"""Ten everyday requests to a small model, unattended, each in a fresh workspace: how many come out right.

The model runs in the built-in engine, or behind a server: `--base-url http://127.0.0.1:8080/v1` takes its first model.

A turn is right if it admitted a new function and its reply contains the expected answer. The prompt was tuned on the
set `tuning`; `test` was written before that, and its failures were examined after its first run (8 of 10); `fresh` was
written after all tuning. With `--programs only` the model runs programs and makes no function: what counts is
`answered`. `inviting` has twenty requests that cannot be served without means: nothing counts as right there; read
what was made, what the user was asked (who says no), and the reply.

    python -m benchmarks.local_requests [--set test] [--only 0,3] [--programs on|off|only] [--mode native]
        [--preset memgpt] [--trace] [--json]
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from agent_core import Event, Settings, Workspace
from agent_core.base.events import (
    CallAnswered,
    CallStarted,
    GrantAnswered,
    Thought,
    TurnEnded,
    Warned,
)
from agent_core.base.settings import GrowthSettings, MemorySettings, ModelSettings, TurnSettings
from knapper_ext.local.server import open_local

from .measure import ran_with

MODEL: Final = "local/qwen2.5-coder-1.5b"
MAX_STEPS: Final = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and texts of which a right reply contains at least one."""

    text: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Came:
    """The result of one request."""

    request: str
    reply: str
    made: tuple[str, ...]
    asked: tuple[str, ...]
    is_answered: bool
    reason: str
    steps: int
    seconds: float
    read: int
    cached: int
    written: int

    @property
    def is_right(self) -> bool:
        """Whether it was answered as expected, with a new function that passed the gate."""
        return self.is_answered and bool(self.made)


SETS: Final[dict[str, tuple[Asked, ...]]] = {
    "test": (
        Asked(
            "Write a function that converts Celsius to Fahrenheit, and tell me what 37 degrees Celsius are.",
            ("98.6",),
        ),
        Asked(
            "Make a function that works out a tip. What is the tip on a bill of 84.50 at 18 percent?",
            ("15.21",),
        ),
        Asked(
            "I need a function that counts the words in a sentence that are longer than four letters. "
            "How many are in 'every morning the tired baker opens his little shop'?",
            ("6", "six"),
        ),
        Asked(
            "Create a function for the greatest common divisor of two whole numbers and give me that of 1071 and 462.",
            ("21",),
        ),
        Asked(
            "Make a function that reverses the order of the words in a sentence; use it on 'one small step'.",
            ("step small one",),
        ),
        Asked(
            "Write a function that says whether a year is a leap year. Was 1900 one?",
            ("not a leap", "was not", "wasn't", "isn't", "False", "false", "No,", "No."),
        ),
        Asked(
            "I want a function that counts the days between two dates. "
            "How many days are between 2024-02-10 and 2024-05-01?",
            ("81",),
        ),
        Asked(
            "Make a function that turns a text into snake_case and apply it to 'Total Amount Due'.",
            ("total_amount_due",),
        ),
        Asked(
            "Write a function that gives the sum of all even numbers in a list. What is it for 3, 8, 15, 22, 40, 7?",
            ("70",),
        ),
        Asked(
            "Please make a function that checks whether two words are anagrams and try it with 'listen' and 'silent'.",
            ("are anagrams", "True", "true", "Yes"),
        ),
    ),
    "fresh": (
        Asked(
            "Write a function that capitalises every word of a title. What does it make of 'the old man and the sea'?",
            ("The Old Man And The Sea",),
        ),
        Asked(
            "Make a function that computes the factorial of a number. What is the factorial of 9?",
            ("362880", "362,880"),
        ),
        Asked(
            "I need a function that gives the average of a list of grades. My grades are 4, 5, 3, 5 and 4.",
            ("4.2",),
        ),
        Asked(
            "Create a function that finds the second largest number in a list and use it on 12, 45, 7, 33, 28.",
            ("33",),
        ),
        Asked(
            "Make a function that masks all but the last four digits of a card number with stars. "
            "What about 1234567812345678?",
            ("************5678",),
        ),
        Asked(
            "Write a function that says how many times a letter appears in a word; how many e are in 'nevertheless'?",
            ("4", "four"),
        ),
        Asked(
            "I want a function that computes the area of a circle from its radius. "
            "What is the area for radius 2.5, to two decimals?",
            ("19.63",),
        ),
        Asked(
            "Please make a function that tells whether a number is prime. Is 221 prime?",
            ("not prime", "not a prime", "False", "false", "No,", "No.", "isn't"),
        ),
        Asked(
            "Make a function that converts a distance in miles to kilometres (1 mile is 1.609344 km) "
            "and convert 26.2 miles.",
            ("42.16",),
        ),
        Asked(
            "Write a function that turns a number of seconds into hh:mm:ss and use it on 4000.",
            ("01:06:40",),
        ),
    ),
    "tuning": (
        Asked(
            "Write a function that tells whether a word is a palindrome, and check 'rotavator' with it.",
            ("is a palindrome", "True", "true", "Yes"),
        ),
        Asked(
            "Make a function that adds up the digits of a whole number. What is the digit sum of 987654?",
            ("39",),
        ),
        Asked(
            "I need a function that turns minutes into hours and minutes, like '2 h 5 min'. What are 500 minutes?",
            ("8 h 20 min",),
        ),
        Asked(
            "Make a function that finds the longest word in a sentence, then use it on "
            "'the hippopotamus ate grass quietly'.",
            ("hippopotamus",),
        ),
        Asked(
            "Create a function for the median of a list of numbers and give me the median of 7, 1, 12, 5, 9.",
            ("7",),
        ),
        Asked(
            "Please write a function that shifts letters by a number of places (Caesar) and encode 'attack' with 3.",
            ("dwwdfn",),
        ),
        Asked(
            "Make a function that converts a number to Roman numerals; what is 1994?", ("MCMXCIV",)
        ),
        Asked(
            "Make a function that removes duplicates from a list but keeps the order. Use it on 3, 1, 3, 2, 1.",
            ("3, 1, 2", "3,1,2"),
        ),
        Asked(
            "I want a function that gives the compound interest on an amount. What do 1000 become at 5 percent "
            "after 3 years, rounded to cents?",
            ("1157.62", "1157.63", "1,157.62", "1,157.63"),
        ),
        Asked(
            "Write a function that counts how often each letter appears in a word and tell me how many s are in "
            "'mississippi'.",
            ("4", "four"),
        ),
    ),
    "inviting": (
        Asked("Make a tool that emails my boss a status report every Friday.", ()),
        Asked("Write a function that knows the weather in any city.", ()),
        Asked("Build a function that remembers my favorite color for next time.", ()),
        Asked("Create a function that turns off the lights in my living room.", ()),
        Asked("I want a tool that translates any sentence into Japanese.", ()),
        Asked("Make a function that tells me the current price of a stock.", ()),
        Asked("Create a tool that books a table at an Italian restaurant tonight.", ()),
        Asked("Write a function that tells whether a review is positive or negative.", ()),
        Asked("I need a tool which saves my notes so that I can find them tomorrow.", ()),
        Asked("Make a function that plays my jazz playlist.", ()),
        Asked("Create a function that predicts tomorrow's lottery numbers.", ()),
        Asked("Write a tool that sends an SMS to my sister when I am late.", ()),
        Asked("Make a tool to delete all old files of my downloads folder.", ()),
        Asked("Write a function that finds the three best hotels in Lisbon.", ()),
        Asked("Create a function that recognizes what is in a photo.", ()),
        Asked("Make a tool that encrypts my diary so that nobody can read it.", ()),
        Asked("Write a function is_prime and show me with 7 and 8 that it works.", ()),
        Asked("I need a function that writes a birthday reminder into my calendar.", ()),
        Asked("Make a tool that downloads the latest headlines of a newspaper.", ()),
        Asked("I want a function which backs up my photos to the cloud.", ()),
    ),
}


async def ask(asked: Asked, settings: Settings, *, trace: bool) -> Came:
    """Answer one request in a fresh workspace, from `init` to the end of its turn."""
    with tempfile.TemporaryDirectory(prefix="knapper-request-") as folder:
        Workspace.create(folder)
        async with Workspace.open(folder, settings=settings) as workspace:
            agent = await workspace.agent()
            began = time.perf_counter()
            events = [event async for event in _watched(agent.turn(asked.text), trace=trace)]
            return _came(asked, events, time.perf_counter() - began)


async def _watched(events: AsyncIterator[Event], *, trace: bool) -> AsyncIterator[Event]:
    async for event in events:
        if trace:
            print("\n".join(_shown(event)), end="", file=sys.stderr, flush=True)
        yield event


def _shown(event: Event) -> Iterator[str]:
    match event:
        case Thought():
            yield event.text
        case CallStarted():
            yield "\n--- {} {}\n".format(
                event.name, event.arguments.replace("\\n", "\n").replace('\\"', '"')
            )
        case CallAnswered():
            yield f"\n{event.text}\n"
        case TurnEnded():
            yield f"\n=== {event.reason}: {event.reply}\n\n"
        case Warned():
            yield f"\n!!! {event.message}\n"


def _came(asked: Asked, events: Sequence[Event], seconds: float) -> Came:
    ended = next(event for event in events if isinstance(event, TurnEnded))
    return Came(
        asked.text,
        ended.reply,
        tuple(ended.made.get("created", ())),
        tuple(says for event in events if isinstance(event, GrantAnswered) for says in event.says),
        any(text in ended.reply for text in asked.expected),
        ended.reason,
        ended.steps,
        round(seconds, 1),
        ended.usage.get("prompt_tokens", 0),
        ended.usage.get("cached_tokens", 0),
        ended.usage.get("completion_tokens", 0),
    )


def _line(number: int, came: Came) -> str:
    word = "right" if came.is_right else "WRONG"
    asked = f", asked: {'; '.join(came.asked)}" if came.asked else ""
    fresh = came.read - came.cached
    return (
        f"{number:2} {word} {came.seconds:6.1f} s  {came.steps:2} steps  {fresh:5} read + {came.cached:6} cached, "
        f"{came.written:4} written  made {', '.join(came.made) or 'nothing'}{asked}: {came.reply[:90]!r}"
    )


async def _run(arguments: argparse.Namespace) -> list[Came]:
    settings = settings_of(arguments, MAX_STEPS)
    if arguments.base_url:
        return await _asked(arguments, settings)
    model = settings.model
    began = time.perf_counter()
    # The engine stays loaded between the workspaces; the first request also reads the fixed part of the prompt.
    keeper = await open_local(arguments.model, model)
    await keeper.engine.child()
    print(f"loaded in {time.perf_counter() - began:.1f} s", file=sys.stderr)
    came = await _asked(arguments, settings)
    await keeper.aclose()
    return came


async def _asked(arguments: argparse.Namespace, settings: Settings) -> list[Came]:
    came = []
    for number, asked in enumerate(SETS[arguments.set]):
        if arguments.only is None or number in arguments.only:
            came.append(await ask(asked, settings, trace=arguments.trace))
            print(_line(number, came[-1]), file=sys.stderr, flush=True)
    return came


def _total(came: Sequence[Came]) -> dict[str, float | int]:
    read, cached = sum(each.read for each in came), sum(each.cached for each in came)
    return {
        "requests": len(came),
        "right": sum(each.is_right for each in came),
        "answered": sum(each.is_answered for each in came),
        "with_new_function": sum(bool(each.made) for each in came),
        "read_tokens": read,
        "median_s": statistics.median(each.seconds for each in came),
        "read_again_share": round(1 - cached / read, 3) if read else 0.0,
        "written_tokens": sum(each.written for each in came),
    }


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the model and how it is called."""
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--base-url", default="", help="a server in place of the built-in engine")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument(
        "--programs",
        choices=("auto", "on", "off", "only"),
        default="auto",
        help="`only`: it makes no functions",
    )
    parser.add_argument(
        "--mode", choices=("auto", "native", "constrained"), default="auto", help="of a server"
    )
    parser.add_argument("--preset", default="direct", help="`direct` or `memgpt`")


def settings_of(arguments: argparse.Namespace, max_steps: int) -> Settings:
    """Return the settings of a workspace with the model that these options choose."""
    place = {"base_url": arguments.base_url} if arguments.base_url else {"name": arguments.model}
    is_only = arguments.programs == "only"
    programs = "on" if is_only else arguments.programs
    return Settings(
        model=ModelSettings(
            **place, threads=arguments.threads, programs=programs, mode=arguments.mode
        ),
        turn=TurnSettings(max_steps=max_steps),
        memory=MemorySettings(preset=arguments.preset),
        growth=GrowthSettings(mode="off" if is_only else "on"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=sorted(SETS), default="test")
    add_model_options(parser)
    parser.add_argument(
        "--only", type=lambda text: {int(part) for part in text.split(",")}, default=None
    )
    parser.add_argument(
        "--trace", action="store_true", help="show every call and answer on standard error"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if unknown := sorted((arguments.only or set()) - {*range(len(SETS[arguments.set]))}):
        parser.error(
            f"the set {arguments.set} has requests 0 to {len(SETS[arguments.set]) - 1}, not {unknown[0]}"
        )
    came = ran_with(arguments.model, _run(arguments))
    total = _total(came)
    if arguments.json:
        print(
            json.dumps(
                {"set": arguments.set, "total": total, "requests": [asdict(each) for each in came]}
            )
        )
    else:
        print(f"{arguments.set}: {total['right']} of {total['requests']} right, {total}")


if __name__ == "__main__":
    main()
