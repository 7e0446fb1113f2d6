"""The second guide's texts, keys and screens, for `guide_walk`; also the picture of docs/programs.md.

The scripted model that answers in both is here, too.
"""

import json
from typing import Final

from tests.kit import Ask, Say, Seen, Step, Wanted
from tests.kit.terminal import CTRL_D

from .guide_walk_script import Escape, File, Part, Picture, Prompt, Said, Shell

HEAD: Final = """\
# A guide: helpers, agents, and a group

This guide goes on where [the first one](guide.md) ended, with a helper, a second [agent](agents.md) and a
[group](groups.md). You need a [model](first-minutes.md); in these pictures, taken by `make guide`, it is a script, and
everything else is real.
"""
WORDS: Final = '''\
def unknown_words(text: str, known: list[str]) -> list[str]:
    """Find the words of a text that are not in a list.

    Args:
        text: The text.
        known: The words that are right.

    >>> unknown_words("teh cat", ["the", "cat"])
    ['teh']
    >>> unknown_words("the cat", ["the", "cat"])
    []
    """
    return [word for word in text.lower().split() if word not in known]
'''
PROOFREADER: Final = """\
purpose = "Find spelling errors in a text."
inputs = { text = "str" }
result = "list[str]"
functions = ["unknown_words"]
budget = { steps = 6, tokens = 20000, seconds = 60 }
"""
REVIEW: Final = """\
purpose = "Agree on a title."
members = ["editor", "critic"]
stop = { turns = 6, text = "AGREED" }
"""
PARTS: Final = (
    Part(
        "A helper",
        (
            Shell("knapper init ~/team && cd ~/team"),
            Said("A helper is an agent that is called like a function. This one has one function:"),
            File("team/functions/words.py", WORDS),
            File("team/helpers/proofreader.toml", PROOFREADER),
            Shell("knapper helpers check"),
            Shell("knapper run", until="/help lists"),
            Prompt("which words are wrong in: teh cat sat", until="∙ "),
            Picture(
                "helper",
                "The line of the call says what the helper took; its whole conversation stays out of this one.",
                "› which words",
            ),
        ),
    ),
    Part(
        "A second agent",
        (
            Said("This agent sees no function but the helper:"),
            File("team/agents/editor.toml", 'purpose = "Makes titles."\nfunctions = []\n'),
            Prompt("ask the editor for a title about cats", until="They say"),
            Picture(
                "asked",
                "The question ends the turn: nothing waits in memory. The answer goes on with it, after a restart too.",
                "› ask the editor",
            ),
            Prompt("/agents tree", until="idle"),
            Picture(
                "tree",
                "`/agents watch` shows the same live; `pause`, `stop`, `answer` and `route` steer.",
                "› /agents",
            ),
        ),
    ),
    Part(
        "A group",
        (
            Said("A group has a file with its members and the end of their talk:"),
            File("team/agents/critic.toml", 'purpose = "Criticizes titles."\n'),
            File("team/groups/review.toml", REVIEW),
            Prompt("/switch review", until="› /switch review"),
            Prompt("agree on a title about cats", until="critic said AGREED"),
            Picture(
                "group", "Each line says who speaks, and why this one was chosen.", "› agree on"
            ),
        ),
    ),
)
TAIL: Final = ""


SHOP: Final = '''\
import json


def order(number: int) -> dict[str, float | bool]:
    """Read an order: its amount, and whether it is late.

    Args:
        number: The number of the order.
    """
    with open("orders.json", encoding="utf-8") as file:
        return json.load(file)[number]


def with_tax(amount: float) -> float:
    """Add the tax of 20 percent to an amount.

    Args:
        amount: The amount.

    >>> with_tax(10)
    12.0
    >>> with_tax(2.5)
    3.0
    """
    return round(amount * 1.2, 2)
'''
ORDERS: Final = json.dumps(
    [{"amount": 9.5 * number, "is_late": number % 2 == 1} for number in range(4)]
)
PROGRAM: Final = """\
late = [row for row in each(order, range(4)) if row["is_late"]]
sum(with_tax(row["amount"]) for row in late)"""
COSTS: Final = "The late ones cost 45.60 with tax."
PROGRAMS: Final = Part(
    "A program",
    (
        Shell("knapper init ~/shop && cd ~/shop"),
        File("shop/functions/shop.py", SHOP),
        File("shop/orders.json", ORDERS),
        Shell("knapper run", until="/help lists"),
        Prompt("what do the late ones of orders 0 to 3 cost with tax?", until="y (yes)"),
        Prompt("y", until="∙ "),
        Escape(CTRL_D),
        Shell("knapper calls list"),
        Picture(
            "program",
            "One question for one program, before it runs; then each of its calls is on record, as any call is.",
            "› what do",
        ),
    ),
)


TITLE: Final = "“Nine lives, one sofa.”"
ANSWERS: Final = (
    ("You are critic, in the group", Say("Short and true. AGREED")),
    ("You are editor, in the group", Say(f"{TITLE} @critic, yours?")),
    ("asks you", Say(TITLE)),
    ("answers:", Say(f"They say: {TITLE}")),
    (
        "ask the editor",
        Ask(Wanted("ask_agent", {"agent": "editor", "question": "A title about cats?"})),
    ),
    ("the late ones", Ask(Wanted("run_program", {"code": PROGRAM}))),
    ("which words", Ask(Wanted("proofreader", {"text": "teh cat sat"}))),
)
"""Words of a message → the step that answers it."""


def play(seen: Seen) -> Step:
    """Answer as the scripted model."""
    last, is_called = str(seen.messages[-1]["content"]), seen.messages[-1]["role"] == "tool"
    if "give_result" in seen.functions and not is_called:
        return Ask(Wanted("unknown_words", {"text": "teh cat sat", "known": ["the", "cat", "sat"]}))
    if is_called:
        right = Say(
            COSTS if last.startswith("45.6") else "One word is wrong: `teh`, which should be `the`."
        )
        return (
            Ask(Wanted("give_result", {"result": ["teh"]}))
            if "give_result" in seen.functions
            else right
        )
    return next(step for words, step in ANSWERS if words in last)
