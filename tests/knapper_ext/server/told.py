"""Shared by the tests of streams: a turn with all that a person may be told of, and what a journal tells of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from agent_core import Decision, Question
from agent_core.api.agent_host import JournalReader
from agent_core.storage import Store
from tests.kit import Ask, Fail, Say, Script, Wanted
from tests.kit.desk import VOWELS

Told: TypeAlias = list[dict[str, Any]]  # Any: JSON
PIECES = ("text", "thought", "writing", "reading", "waiting", "progress", "printed")
"""The types of events that may be told in pieces, or only while something goes on."""
READS = '''
def first_line(path: str) -> str:
    """Return the first line of a file.

    Args:
        path: The file to read.
    """
    with open(path, encoding="utf-8") as file:
        return file.readline()
'''
WORDS = "Some words on wind and clouds. " * 40
TOO_LONG = Fail(
    400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"
)
CODE = 'print(count_vowels(text="one"))\ncount_vowels(text="queueing")'
EARLIER = 4  # turns


def calling() -> Script:
    """Return a turn with all that a person may be told of, but for a summary."""
    return [
        Ask(
            Wanted("count_vowels", {"text": "aha"}, id="call_1"),
            Wanted("list_functions", {}, id="call_2"),
            Wanted("count_wovels", {"text": "aha"}, id="call_3"),
            Wanted("search_functions", {"need": "count"}, id="call_4"),
            Wanted("count_vowels", {"words": "aha"}, id="call_5"),
            text="I look.",
        ),
        Ask(Wanted("first_line", {"path": "notes.txt"}, id="call_6")),
        Ask(Wanted("first_line", {"path": "others.txt"}, id="call_7")),
        Ask(
            Wanted("create_function", {"function_name": "f", "function_code_with_docstring": "x ="})
        ),
        Ask(Wanted("core_memory_append", {"name": "human", "content": "Likes wind."}, id="call_9")),
        Ask(Wanted("run_program", {"code": CODE}, id="call_10")),
        Fail(503, "overloaded"),
        Ask(
            Wanted("call_function", {"name": "count_vowels", "arguments": {"text": "o"}}, id="c_11")
        ),
        Say("All of it."),
        Say("All but what was refused."),
    ]


def script() -> Script:
    """Return turns that fill the window, then that turn with a summary, and one more."""
    return [*[Say(WORDS)] * EARLIER, TOO_LONG, *calling(), Say("And again.")]


def prepare(root: Path) -> None:
    """Write the files of the workspace."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "functions" / "letters.py").write_text(VOWELS)
    (root / "functions" / "reading.py").write_text(READS)
    for name in ("notes", "others"):
        (root / f"{name}.txt").write_text("hello\nworld\n")


class Human:
    """A person who says yes once, and then no."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Decision:
        """Answer a question."""
        self.asked.append(question)
        return Decision("once" if len(self.asked) == 1 else "no", "Not that one.")


async def replayed(
    store: Store, agent: str = "main", after: int = 0
) -> list[tuple[int | None, dict[str, Any] | None]]:
    """Return what the journal tells after a number."""
    reader = JournalReader(store, agent, after)
    rows = []
    while not reader.is_done:
        rows += await reader.read()
    return [
        (row.seq, None if row.event is None else json.loads(json.dumps(row.event.to_json())))
        for row in rows
    ]


def without_pieces(told: Sequence[dict[str, Any] | None]) -> Told:
    """Return the events that no pieces are."""
    return [event for event in told if event is not None and event["type"] not in PIECES]
