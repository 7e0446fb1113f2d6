"""The prompt: ordered sections of the system message, then the history; and each part's share of the window.

The most stable section comes first, because servers cache the longest unchanged prefix. The system message is rendered
at the start of a turn and after a compaction; in between it does not change, even if memory is edited. The whole
history is sent: the part that would not fit was summarized before, and stays in storage.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from agent_core.base.clock import shown_time
from agent_core.base.messages import Message, System
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import shorten
from agent_core.memory.classes import POSITIONS

if TYPE_CHECKING:
    from agent_core.base.settings import MemorySettings
    from agent_core.model.request import FunctionShown
    from agent_core.storage import Counts, SectionRow


PROGRAM_LIMIT: Final = "10 s"
ABOUT_PROGRAMS: Final = f"""\
- A program (run_program) has {PROGRAM_LIMIT} besides its calls, no hosts, secrets or packages, its own temporary \
files, and asks for others. Values up to 4 MB stay for the next.
"""
"""A part of the instructions, for a model that is offered programs, with the limit that the settings have at first."""

_MAKER_PHRASE: Final = " that makes its own functions"
ABOUT_GROWING: Final = """\
If no function does what the user needs, make one and call it in the same reply. A function is plain Python 3.11:

def count_vowels(text: str) -> int:
    \"\"\"Count the vowels in a text.

    Args:
        text: The text to look at.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("rhythm")
    0
    \"\"\"
    return sum(letter in "aeiou" for letter in text.lower())

- General: the user's case comes in as arguments. Two or more examples, different results.
- It calls other functions by plain name, without import: small ones that compute, one that reads and calls them.
- Files: take the path as an argument and open(path), also before a package gets it. Examples first write a file: \
`>>> import tempfile; path = tempfile.mkdtemp() + "/a.csv"; _ = open(path, "w").write("a;b\\\\n")`; a second one has a \
second name.
- With `self` first: self.fetch(url, headers={}) with .status, .text() and .json(), self.secret("NAME"), no examples \
then; self.call("name", argument=value) for a name known only at run time, self.progress(done, total), self.scratch, \
self.state.
- Write it as if it had its files, hosts (spelled out), secrets and packages: the user is asked.
"""
_MENDING_RULES: Final = """\
- A refusal names problems: fix all, by create_function or edit_function; if only an expected value was \
wrong, confirm_function.
- Never say a function exists or changed unless its answer said so.\
"""
_PRESET_PHRASE: Final = "You make your own functions.\n\n"
"""What the texts of presets say before the part about functions."""

INSTRUCTIONS: Final = f"""\
You are an assistant{_MAKER_PHRASE}. Answer in plain text; compute with functions instead of guessing.

{ABOUT_GROWING}\
- Functions pass each other up to 64 MB whole; you send 1 MB at most: pass paths.
{ABOUT_PROGRAMS}\
- Only the user can type =name(…) and /break name:line; in a shell `knapper functions call NAME` (cron), `functions \
export DIR`, `secrets set NAME`.
- What you learn of the user goes into memory; replace what became untrue.
{_MENDING_RULES}"""


# Measured on mixed text, code and JSON; corrected by the endpoint's reports.
BYTES_PER_TOKEN: Final = 3.4
_TAIL: Final = 1 / 3  # share of the conversation's room that a compaction keeps verbatim
_SUMMARY: Final = 1 / 4
_MOST_SUMMARY: Final = 8_000
_LEAST_SUMMARY: Final = 600
_PAGE: Final = 1 / 4  # of the window, for one message
MAX_PAGE_CHARS: Final = 12_000  # of a message or text that is shown at once
_LEAST_ROOM: Final = 1_000
_FOR_FUNCTIONS: Final = 0.45  # of the window, if more functions exist than fit
_FOR_CONVERSATION: Final = 0.3  # of the window, with memory: functions must leave this much
_LEAST_CONVERSATION: Final = 1_500  # tokens


def without_growing(instructions: str) -> str:
    """Return instructions for an agent that makes and changes no functions."""
    for part in (_PRESET_PHRASE, ABOUT_GROWING, _MENDING_RULES, _MAKER_PHRASE):
        instructions = instructions.replace(part, "")
    return instructions.rstrip()


@dataclass(frozen=True, slots=True)
class Budget:
    """The token budget of a request: the window, and the part of it that the reply needs.

    `fixed` is the size in bytes of everything before the conversation: the system message, and the model's additions,
    mainly the functions. `correction` is the ratio of reported to estimated tokens.
    """

    window: int
    reply: int
    fixed: int
    correction: float = 1.0

    def tokens(self, size: int) -> int:
        """Return the approximate number of tokens of a prompt with this many bytes, including the fixed prefix."""
        return int((self.fixed + size) / BYTES_PER_TOKEN * self.correction)

    def most(self, settings: "MemorySettings") -> int:
        """Return the prompt size in tokens at which the conversation is compacted, so that the reply still fits."""
        return int(
            min(self.window * settings.compact_at, max(self.window - self.reply, self.window // 4))
        )

    def warned_at(self, settings: "MemorySettings") -> int:
        """Return the prompt size in tokens at which the model is warned: before compaction, even for a long reply."""
        share = min(settings.warn_at / settings.compact_at, 1)
        return int(min(self.window * settings.warn_at, self.most(settings) * share))

    def room(self, settings: "MemorySettings") -> int:
        """Return the number of bytes that the conversation may take."""
        return max(
            int(self.most(settings) * BYTES_PER_TOKEN / self.correction) - self.fixed, _LEAST_ROOM
        )

    def page_chars(self, answer_chars: int) -> int:
        """Return the number of characters of one message that are shown."""
        return max(min(MAX_PAGE_CHARS, answer_chars, self._most_of_one), 200)

    def message_chars(self, settings: "MemorySettings") -> int:
        """Return the number of characters up to which a message of the user is shown whole."""
        return max(min(settings.message_chars, self._most_of_one), 200)

    @property
    def _most_of_one(self) -> int:
        return int(self.window * BYTES_PER_TOKEN * _PAGE)


def function_room(window: int, reply: int, instructions: str) -> int:
    """Return the number of bytes that functions may take.

    In a small window, the instructions, the reply and the conversation have to fit, too.
    """
    conversation = max(int(window * _FOR_CONVERSATION), _LEAST_CONVERSATION)
    left = window - conversation - min(reply, window // 4)
    fixed = len(instructions.encode("utf-8", "replace"))
    return min(int(window * _FOR_FUNCTIONS * BYTES_PER_TOKEN), int(left * BYTES_PER_TOKEN) - fixed)


def tail_bytes(room: int) -> int:
    """Return the number of bytes of the newest messages that a compaction leaves unchanged."""
    return int(room * _TAIL)


def summary_chars(room: int) -> int:
    """Return the maximum length of a summary in characters."""
    return min(max(int(room * _SUMMARY), _LEAST_SUMMARY), _MOST_SUMMARY)


@dataclass(frozen=True, slots=True)
class RequestPrompt:
    """The content of one request; `tokens` is an estimate."""

    messages: tuple[Message, ...]
    functions: tuple["FunctionShown", ...]
    tokens: int


_GROWN, _MORE = (
    1.5,
    10,
)  # the number of messages is updated after this growth, or when another part changed
_MOST: Final = 0.5  # of the window
_LEAST_CHARS: Final = 200


class Remembered(Protocol):
    """The part of memory that goes into the system message."""

    def render_blocks(self) -> str:
        """Return the blocks as the model reads them."""

    async def counts(self) -> "Counts":
        """Return the counts of the memory outside the blocks."""

    async def custom_sections(self) -> Sequence["SectionRow"]:
        """Return the sections that were added."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the system message; `leads` marks the program's instructions, which are first and never shortened."""

    name: str
    position: int
    text: str
    leads: bool = False


class SystemMessage:
    """The system message of one agent, as last rendered."""

    def __init__(self, remembered: Remembered | None = None) -> None:
        self.sections: tuple[Section, ...] = ()
        self.text = ""
        self._remembered = remembered
        self._counted: Counts | None = None
        self._statistics = ""

    @property
    def messages(self) -> tuple[System, ...]:
        """The system messages for a model: the instructions, equal in all conversations, and this one's additions."""
        first = [section for section in self.sections if section.leads]
        halves = (first, [section for section in self.sections if not section.leads])
        return tuple(
            System("\n\n".join(section.text for section in half)) for half in halves if half
        )

    async def render(self, instructions: str, notes: str, window_chars: int, day: str = "") -> None:
        """Render the message again; `notes` is about the other agents, and `day` is the date.

        Sections that leave no room for the conversation are shortened.
        """
        parts = [Section("instructions", POSITIONS["instructions"], instructions, leads=True)]
        parts.append(Section("functions", POSITIONS["functions"], notes))
        if day:
            parts.append(Section("date", max(POSITIONS.values()) + 1, f"Today is {day}."))
        if self._remembered is not None:
            parts.append(Section("memory", POSITIONS["memory"], self._remembered.render_blocks()))
            parts += [
                Section(row.name, row.position, row.text)
                for row in await self._remembered.custom_sections()
            ]
            counts = await self._remembered.counts()
            others = _in_order(parts)
            if self._is_news(counts, others, window_chars):
                self._counted, self._statistics = counts, statistics(counts)
            parts.append(Section("statistics", POSITIONS["statistics"], self._statistics))
        self.sections = fitting(_in_order(parts), int(window_chars * _MOST))
        self.text = "\n\n".join(section.text for section in self.sections)

    def _is_news(self, counts: "Counts", others: tuple[Section, ...], window_chars: int) -> bool:
        """Check whether to render the statistics again: after only a few new messages, the prefix stays unchanged."""
        before = self._counted
        if before is None or (before.passages, before.edited) != (counts.passages, counts.edited):
            return True
        if counts.messages < before.messages or counts.messages > before.messages * _GROWN + _MORE:
            return True
        shown_sections = tuple(section for section in self.sections if section.name != "statistics")
        return shown_sections != fitting(others, int(window_chars * _MOST))


def statistics(counts: "Counts") -> str:
    """Return the size of the memory that is not in the context."""
    edited = shown_time(counts.edited) if counts.edited else "never"
    return (
        f"Memory: {counts.messages:,} messages in recall, {counts.passages:,} passages in archival memory; blocks last"
        f" edited: {edited}."
    )


def _in_order(parts: Iterable[Section]) -> tuple[Section, ...]:
    return tuple(
        sorted(
            (part for part in parts if part.text.strip()),
            key=lambda part: (not part.leads, part.position, part.name),
        )
    )


def fitting(sections: tuple[Section, ...], most: int) -> tuple[Section, ...]:
    """Return the sections; all except the instructions are shortened equally if together they exceed `most` bytes."""
    sizes = [len(section.text.encode("utf-8", "replace")) for section in sections]
    extra = sum(sizes) - most
    movable = sum(size for section, size in zip(sections, sizes, strict=True) if not section.leads)
    if extra <= 0 or not movable:
        return sections
    share = max(1 - extra / movable, 0)
    return tuple(
        section
        if section.leads
        else replace(
            section, text=shorten(section.text, max(int(len(section.text) * share), _LEAST_CHARS))
        )
        for section in sections
    )
