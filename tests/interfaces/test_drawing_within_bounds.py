"""No text from a model blocks the prompt: each drawing step ends within a tenth of a second."""

import time
from collections.abc import Callable, Iterable, Iterator

import pytest
from pygments.lexers import get_all_lexers, get_lexer_by_name  # type: ignore[import-untyped]

from agent_core.base import events
from agent_core.views.call_log import CallLog
from knapper.prompt import render
from knapper.prompt.live import Live
from knapper.prompt.prompt import Above
from knapper.prompt.render import TurnRenderer
from tests.kit.drawing import crossed, sampled
from tests.kit.pace import least_s, uncollected

LONGEST_S = 0.1
LINES = ["a b\n", "\n", " \n", "@a\n", "x = 1\n", "def f(\n", "\\\n", "#\n"]
DENSE = [
    "*a b* ",
    "*a* ",
    "**a",
    "[",
    "[a](",
    "[a](b) ",
    "<http://a> ",
    "~~a",
    "`a` ",
    "`" * 9 + "a",
    "> ",
    "- ",
    "漢",
]
WIDE_TABLE = "\n".join(["|a" * 40 + "|", "|-" * 40 + "|", *["|b*c*" * 40 + "|"] * 198])
REPLIES = {
    **{f"dense {text}": text * (20_000 // len(text)) for text in DENSE},
    **{f"rows {text}": f"{text * 8}\n" * 400 for text in DENSE},
    **{f"fence {text!r}": f"```python\n{text * 2_000}x\n```\ndone" for text in LINES},
    "table": WIDE_TABLE,
    "narrow table": "\n".join(["|a|", "|-|", *["|b|"] * 700]),
    "table of long rows": "\n".join(["|a|b|", "|-|-|", *["|" + "c*d*" * 400 + "|e|"] * 40]),
    "no fence": "```" + " a" * 50_000 + "`",
    "no rule": "a\n" + "-" * 100_000 + "x\n" + "a\n" * 60,
    "blank": "\n" * 100_000,
}


def longest(work: Callable[[], Iterable[object]]) -> float:
    """Return the longest CPU time of this thread for one step."""
    return least_s(LONGEST_S / 2, lambda: _longest(work))


def _longest(work: Callable[[], Iterable[object]]) -> float:
    with uncollected():
        took, began = 0.0, time.thread_time()
        for _ in work():
            took, began = max(took, time.thread_time() - began), time.thread_time()
        return max(took, time.thread_time() - began)


def hear(text: str, *, at_the_end: bool) -> Iterator[object]:
    """Yield the steps of a turn with this reply as the prompt receives and draws it."""
    made: list[str] = []
    above = Above(made.append, lambda: None)
    above.wake = lambda: None  # type: ignore[method-assign]  # no loop runs here: the test makes the steps itself
    live = Live()
    teller = TurnRenderer(CallLog(), live, lambda: 80, above.add, lambda: None)
    if not at_the_end:
        teller.hear(events.Text(turn="t", step=0, text=text))
        yield None
    teller.hear(
        events.TurnEnded(turn="t", reason="replied", reply=text, steps=1, usage={}, made={})
    )
    while above._waiting:
        yield None
        above._make()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "at_the_end"),
    crossed(
        sampled(REPLIES, 8), [pytest.param(False, id="streamed"), pytest.param(True, id="whole")]
    ),
)
def test_a_reply_is_drawn_in_pieces_that_hold_no_key_up(name: str, at_the_end: bool) -> None:
    assert longest(lambda: hear(REPLIES[name], at_the_end=at_the_end)) < LONGEST_S


@pytest.mark.sampled
def test_a_fence_of_every_language_is_drawn_in_pieces_that_hold_no_key_up() -> None:
    parts = [
        "a",
        " ",
        '"',
        "'",
        '"\\',
        "(",
        "{",
        "<",
        "a.",
        "a<",
        "a b ",
        "@",
        "0.",
        "a::",
        "{%a ",
        "-",
        "a,",
        "`a",
        "f'{",
    ]
    names = sampled((aliases[0] for _, aliases, _, _ in get_all_lexers() if aliases), 40)
    slow = []
    for name in names:
        for part in parts if get_lexer_by_name(name).name in render.MEASURED else parts[:1]:
            lines = f"{(part * 490)[:490]}\nx{(part * 490)[:480]}\x01\n"
            if longest(lambda: render.CodeStream(name).draw(lines, 80)) > LONGEST_S:  # noqa: B023
                slow.append((name, part))
    assert slow == []
