"""Forgetting: removes a message, a turn, all mentions of a text, or everything before a date from a workspace.

Files next to the state file come first, each replaced atomically; then the store, in one transaction. So a crash in
between leaves the store unchanged, and repeating the command completes the work. Large values that only forgotten
entries named go last; after a crash there, they go when the workspace is opened later.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from agent_core.base import machine
from agent_core.base.errors import UsageError
from agent_core.base.matching import Mention
from agent_core.base.offload import one_at_a_time
from agent_core.base.plain_files import read_plain
from agent_core.base.records import dataclass, replace
from agent_core.context import rebuilt
from agent_core.context.folds import messages_of
from agent_core.memory import dates, words
from agent_core.registry.source import OF_THE_PROGRAM
from agent_core.runtime.taken_up import said_by
from agent_core.storage import Erasure, MessageGone, Store, TurnsGone, ValueFiles
from agent_core.storage.journal import text_of
from agent_core.storage.picture_files import PictureFiles
from sandbox.wire.lines import bare_lines

_REQUESTS: Final = ("requests.log", "requests.log.1", "access.log", "access.log.1")
_TYPED: Final = ("history", "debug_history")
_LOGS: Final = {
    **dict.fromkeys(_REQUESTS, "log of requests"),
    **dict.fromkeys(_TYPED, "input history"),
}
_VALUES: Final = "large values"
_PICTURES: Final = "pictures"
_CRASHES: Final = "crash-*.log"
_DEBUG: Final = "debug.log"  # deleted as a whole: each request in it has the whole conversation
_ASIDE: Final = ".knapper/state.db.*-*"
_MOST_BYTES: Final = 256 << 20
_OWN_BYTES: Final = 4 << 20  # largest file of the user that is searched
_MOST_FILES: Final = 5_000
_SKIPPED: Final = frozenset(("node_modules", "__pycache__"))
_SHIFT: Final = 20
_PLACE: Final = re.compile(r"(\d{1,12})(?:\.(\d{1,7}))?")
MOST_LINES: Final = 8
_NEAREST: Final = 3
_LINE_CHARS: Final = 64
_UNREAD: Final = "of an extension that is not here, so nobody looked into it; install or enable that, then forget again"
_ENTRY: Final = re.compile(r"(?m)^(?=\n?# \d{4}-\d\d-\d\d )")


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A user's request to forget; exactly one of `text`, `message`, `turn` and `before` is set."""

    text: str = ""
    message: str = ""
    turn: str = ""
    before: str = ""
    exact: bool = False
    word: bool = False


@dataclass(frozen=True, slots=True)
class ForgetOrder:
    """A resolved request to forget: its description, the erasure for the store, and the agents that must be locked."""

    subject: str
    erasure: Erasure
    agents: Sequence[str]
    said: str = ""
    before: float | None = None


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A stored line of text, and its place."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """The number of removals per place, and the places where the text stays.

    `longer` are words that contain the text. `lines` are the first removed lines; `nearest` are lines of memory that
    stay and share the most words with the text.
    """

    subject: str
    places: dict[str, int]
    stays: dict[str, str]
    longer: Sequence[str] = ()
    lines: Sequence[RecordLine] = ()
    nearest: Sequence[RecordLine] = ()

    def to_json(
        self, outcome: Literal["previewed", "forgotten", "nothing"]
    ) -> dict[str, Any]:  # Any: JSON
        """Return the published document."""
        return {
            "outcome": outcome,
            "subject": self.subject,
            "places": [{"place": place, "count": count} for place, count in self.places.items()],
            "stays": [{"place": place, "why": why} for place, why in self.stays.items()],
            "longer_words": [*self.longer],
            "lines": [{"place": line.place, "text": line.text} for line in self.lines],
            "nearest": [{"place": line.place, "text": line.text} for line in self.nearest],
        }


class Forgetting:
    """Removes content from one workspace."""

    def __init__(self, root: Path, folder: Path, store: Store) -> None:
        self._root = root
        self._folder = folder
        self._store = store
        self._values = ValueFiles(folder)
        self._pictures = PictureFiles(folder)

    async def order(self, request: ForgetRequest, agent: str) -> ForgetOrder:
        """Resolve a request; turns and messages are those of the agent.

        Raises:
            UsageError: it names nothing, several things, or something that does not exist.
        """
        if sum(map(bool, (request.text, request.message, request.turn, request.before))) != 1:
            raise UsageError("Say what to forget: one of a text, a message, a turn or a date.")
        erasure = Erasure(
            MessageGone(agent, 0),
            words.indexed,
            lambda summary, entries: rebuilt(summary, messages_of(entries)),
            said_by,
            OF_THE_PROGRAM,
        )
        if request.text:
            mention = Mention(request.text, exact=request.exact, word=request.word)
            names = await self._store.agent_names()
            return ForgetOrder(f"“{request.text}”", replace(erasure, target=mention), names)
        if request.before:
            start, _ = await one_at_a_time(dates.read, request.before, datetime.now().timestamp())
            turns = await self._store.turns_before(agent, start)
            subject = f"all of {agent} before {datetime.fromtimestamp(start):%Y-%m-%d %H:%M}"
            gone = replace(erasure, target=TurnsGone(agent, turns, start))
            return ForgetOrder(subject, gone, [agent], before=start)
        typed = request.turn or request.message
        match, is_turn = _PLACE.fullmatch(typed), bool(request.turn)
        if typed != "last" and (match is None or (match[2] is None) != is_turn):
            form = "a number, such as 3" if is_turn else "numbers, such as 3.0"
            fix = f"/memory search and `knapper memory search` show {form}; or type `last`."
            raise UsageError(f"`{typed[:60]}` is no {'turn' if is_turn else 'message'}.", fix=fix)
        numbers = [int(part) for part in match.groups() if part] if match else []
        said = await self._store.last_said(agent, *numbers)
        if said is None:
            raise UsageError(f"{agent} has no such {'turn' if is_turn else 'message'}: {typed}.")
        begins = " ".join(said.text.split())[:60]
        if is_turn:
            gone = replace(erasure, target=TurnsGone(agent, [said.turn]))
            return ForgetOrder(
                f"turn {said.turn} of {agent} (“{begins}”)", gone, [agent], said.text
            )
        gone = replace(erasure, target=MessageGone(agent, said.seq))
        return ForgetOrder(
            f"message {place_of(said.seq)} of {agent} (“{begins}”)", gone, [agent], said.text
        )

    async def preview(self, order: ForgetOrder) -> ForgetReport:
        """Return the report of an order without changing anything."""
        files = await asyncio.to_thread(lambda: _counts(self._files(order)))
        report = await self._report(order, await self._store.rehearse(order.erasure), files)
        return replace(report, lines=await self._lines(order))

    async def carry_out(self, order: ForgetOrder) -> ForgetReport:
        """Execute an order and return the report. The agents of the order must be locked."""
        files = await asyncio.to_thread(self._rewrite, order)
        before = await self._store.named_values() if self._values.kept() else set()
        shown = await self._store.named_pictures() if self._pictures.kept() else set()
        places = await self._store.forget(order.erasure)
        if before and (gone := before - await self._store.named_values()):
            files[_VALUES] = files.get(_VALUES, 0) + self._values.drop(gone)
        if shown and (gone := shown - await self._store.named_pictures()):
            files[_PICTURES] = self._pictures.drop(gone)
        return await self._report(order, places, files)

    async def _report(
        self, order: ForgetOrder, places: dict[str, int], files: dict[str, int]
    ) -> ForgetReport:
        target = order.erasure.target
        unread = await self._store.unread_tables()
        unread_why = dict.fromkeys((f"the table {table}" for table in unread), _UNREAD)
        if not isinstance(target, Mention):
            return ForgetReport(order.subject, {**places, **files}, unread_why)
        stays = await asyncio.to_thread(lambda: dict(self._stays(target)))
        named = {place: why async for place, why in self._names(order.agents, target)}
        sought = frozenset(words.stems(words.content(target.text)))
        lines = [
            line for line in await self._block_lines(order.agents) if not target.within(line.text)
        ]
        shared = [len(sought.intersection(words.stems(words.content(line.text)))) for line in lines]
        most = max(shared, default=0)
        near = [line for line, count in zip(lines, shared, strict=True) if most and count == most][
            :_NEAREST
        ]
        return ForgetReport(
            order.subject,
            {**places, **files},
            {**stays, **named, **unread_why},
            [*target.longer],
            nearest=near,
        )

    async def _lines(self, order: ForgetOrder) -> list[RecordLine]:
        """Return the first removed lines: those of memory blocks and messages with the text, or of the turns."""
        target, lines = order.erasure.target, list[RecordLine]()
        if isinstance(target, MessageGone):
            return [RecordLine("message", text) for text in bare_lines(order.said)[:MOST_LINES]]
        if isinstance(target, Mention):
            blocks = await self._block_lines(order.agents)
            lines += [replace(line, text=target.around(line.text, _LINE_CHARS)) for line in blocks]
        conversations = list[str]()
        for agent in order.agents:
            conversations += (agent, *await self._store.lines(agent))
        for line in conversations:
            for entry in await self._store.history(
                line, since=await self._store.branched_at(line), with_removed=True
            ):
                texts = bare_lines(text_of(entry))
                if isinstance(target, Mention):
                    texts = [target.around(text, _LINE_CHARS) for text in texts]
                elif entry.seq >> _SHIFT not in target.turns:
                    continue
                lines += [RecordLine(entry.kind, text) for text in texts]
        return [line for line in lines if line.text][:MOST_LINES]

    async def _block_lines(self, agents: Sequence[str]) -> list[RecordLine]:
        blocks = {
            row.id: (row, agent) for agent in agents for row in await self._store.blocks(agent)
        }
        owners = {
            id: f" of {agent}" if len(agents) > 1 else "" for id, (_, agent) in blocks.items()
        }
        return [
            RecordLine(f"the block {row.label}{owners[row.id]}", line)
            for row, _ in blocks.values()
            for line in (bare_lines(row.value) if isinstance(row.value, str) else row.value)
        ]

    async def _names(
        self, agents: Sequence[str], mention: Mention
    ) -> AsyncIterator[tuple[str, str]]:
        """Yield the names of agents, blocks and sections that contain the text, and how to be rid of each."""
        for agent in agents:
            if mention.within(agent):
                yield f"the name of the agent {agent}", "rename it"
            labels = dict.fromkeys((await self._store.block_ids(agent)).values())
            for label in filter(mention.within, labels):
                yield (
                    f"the name of the block {label} of {agent}",
                    "use another block, and detach it; its history stays",
                )
            for section in await self._store.sections(agent):
                if mention.within(section.name):
                    yield (
                        f"the name of the section {section.name} of {agent}",
                        "save it under another name; empty it",
                    )

    def _stays(self, mention: Mention) -> Iterator[tuple[str, str]]:
        """Yield the user's files that contain the text, and such state files that were set aside."""
        for path in sorted(self._root.glob(_ASIDE)):
            if mention.within(_read(path, _MOST_BYTES)):
                yield (
                    str(path.relative_to(self._root)),
                    "a state file that was set aside; delete it",
                )
        word = Mention(
            mention.text, exact=mention.exact, word=True
        )  # in files, only whole words count
        for path in _own_files(self._root):
            if count := word.count(_read(path, _OWN_BYTES)):
                yield (
                    str(path.relative_to(self._root)),
                    f"your file, in {count} place{'' if count == 1 else 's'}; edit it, then forget again",
                )

    def _files(self, order: ForgetOrder) -> Iterator[tuple[Path, str, str, int]]:
        """Yield the changed files of the state folder with their remaining text, their place, and the removals."""
        is_gone = _is_gone(order)
        for name, place in _LOGS.items():
            text = _read(self._folder / name, _MOST_BYTES)
            entries = _ENTRY.split(text) if name in _TYPED else text.splitlines(keepends=True)
            left = [entry for entry in entries if not is_gone(entry)]
            if len(left) < len(entries):
                yield self._folder / name, "".join(left), place, len(entries) - len(left)
        for path in sorted(self._folder.glob(_CRASHES)):
            is_old = order.before is not None and path.lstat().st_mtime < order.before
            if is_old or is_gone(_read(path, _MOST_BYTES)):
                yield path, "", "crash logs", 1
        path, target = self._folder / _DEBUG, order.erasure.target
        if isinstance(target, Mention):
            for value in (self._values.folder / digest for digest in self._values.kept()):
                if target.within(_read(value, _MOST_BYTES)):
                    yield value, "", _VALUES, 1
        text = _read(path, _MOST_BYTES)
        if text and (not isinstance(target, Mention) or target.within(text)):
            yield path, "", "debug log", 1

    def _rewrite(self, order: ForgetOrder) -> dict[str, int]:
        changes = [*self._files(order)]
        for path, text, _, _ in changes:
            if not text:
                path.unlink(missing_ok=True)
                continue
            new = path.with_name(f"{path.name}.new")
            new.unlink(missing_ok=True)
            descriptor = os.open(new, machine.MAKING, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            new.replace(path)
        return _counts(changes)


def place_of(seq: int) -> str:
    """Return the number of a message as TURN.ENTRY."""
    return f"{seq >> _SHIFT}.{seq & (1 << _SHIFT) - 1}"


def _counts(
    changes: Sequence[tuple[Path, str, str, int]] | Iterator[tuple[Path, str, str, int]],
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for _, _, place, count in changes:
        counts[place] = counts.get(place, 0) + count
    return counts


def _is_gone(order: ForgetOrder) -> Callable[[str], bool]:
    """Return a test for whether to remove an entry of a file: it has the text, is the message, or is older."""
    target, before = order.erasure.target, order.before
    if isinstance(target, Mention):
        return target.within
    if before is None:
        typed = "".join(f"+{line}\n" for line in order.said.split("\n"))
        return lambda entry: bool(order.said) and entry.endswith((typed, f"{typed}\n"))
    return lambda entry: (at := _time(entry)) is not None and at < before


def _time(entry: str) -> float | None:
    match = re.match(r"\n?(?:# )?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?)", entry)
    try:
        return datetime.fromisoformat(match[1]).timestamp() if match else None
    except ValueError:
        return None


def _read(path: Path, most: int) -> str:
    try:
        return read_plain(path, most).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _own_files(root: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SKIPPED
        )
        for name in sorted(files):
            count += 1
            if count > _MOST_FILES:
                return
            yield Path(folder) / name
