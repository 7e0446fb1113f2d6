"""The helpers of a workspace: loaded from `helpers/`, reloaded when files change, with their versions in the store.

If a file is rejected, its last valid version stays in force, and its problems are reported. In the store's history, a
helper's module is the path of its file, and an empty text is a removal.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.base import events
from agent_core.base.errors import ConfigError, UnknownName, UsageError
from agent_core.base.late import LateModule
from agent_core.base.matching import Wildcard, did_you_mean
from agent_core.base.plain_files import read_plain
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import one_line
from agent_core.functions.service import Author, FunctionService
from agent_core.functions.service.history import Version
from agent_core.registry.folder_access import is_there
from agent_core.registry.module_edits import remove_text, save_text
from agent_core.registry.source import OF_THE_PROGRAM, hash_of
from agent_core.storage import SaveVersion, Store
from agent_core.storage.agent_store import HELPER_RUN
from sandbox.wire.lines import bare_lines

from .agent_files import MOST_PROBLEMS, Stamp, ValueCount, first_problems, stamps_of
from .helper_file import FOLDER, MOST_BYTES, NAME, Helper, path_of, read_helper
from .helper_gate import Surroundings, problems_around

if TYPE_CHECKING:
    from agent_core.registry import watch
    from agent_core.registry.registry import Snapshot
else:
    watch = LateModule("agent_core.registry.watch")

_SUFFIX: Final = ".toml"


@dataclass(frozen=True, slots=True)
class HelperVersion:
    """A version of a helper, with its author, time and reason. `text` is empty if the helper was deleted."""

    number: int
    version: str
    text: str
    by: str
    agent: str
    at: float
    reason: str


class HelperLibrary:
    """The helpers in force, the problems of rejected files, and the versions of all helpers."""

    def __init__(self, root: Path, store: Store, functions: "FunctionService") -> None:
        self._root = root
        self._store = store
        self._functions = functions
        self._helpers: Mapping[str, Helper] = {}
        self._problems: dict[str, tuple[Problem, ...]] = {}
        self._stamps: Mapping[str, Stamp] = {}
        self._judged_with: object = None
        self._offered: tuple[object, object, Mapping[str, Helper]] = (None, None, {})
        self._one_at_a_time = asyncio.Lock()
        self.since: events.FunctionsChanged | None = None
        """Changes made while no program ran, and rejected files; None if there are none."""

    @property
    def helpers(self) -> Mapping[str, Helper]:
        """The helpers in force, by name."""
        return self._helpers

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The first problems of the files, and the number of further files with problems."""
        return first_problems(FOLDER, self._problems)

    def offered(self, snapshot: "Snapshot") -> Mapping[str, Helper]:
        """Return the helpers that can be called, except those with the name of a function."""
        if self._offered[0] is not self._helpers or self._offered[1] is not snapshot.functions:
            taken = snapshot.functions.keys() & self._helpers.keys()
            free = {name: helper for name, helper in self._helpers.items() if name not in taken}
            self._offered = (self._helpers, snapshot.functions, free if taken else self._helpers)
        return self._offered[2]

    def refusal(self, name: str) -> str:
        """Return why a helper cannot be called if its file was rejected, else ""."""
        if name in self._helpers or name not in self._problems:
            return ""
        return f"The helper `{name}` cannot be called: {self._problems[name][0]}"

    def surroundings(self, without: str = "") -> Surroundings:
        """Return the context for checking a file; `without` is a helper to leave out."""
        others = {name: helper for name, helper in self._helpers.items() if name != without}
        return Surroundings(self._functions.registry.snapshot(), OF_THE_PROGRAM, others)

    def helper(self, name: str) -> Helper:
        """Return the helper with this name.

        Raises:
            UsageError: there is no such helper.
        """
        if name not in self._helpers:
            fix = did_you_mean(name, self._helpers, "Next: knapper helpers list")
            if name in self._problems:
                fix = f"Its file was rejected: {self._problems[name][0]}"
            raise UnknownName(f"There is no helper `{one_line(name, 80)}`.", fix=fix)
        return self._helpers[name]

    def text(self, name: str) -> str:
        """Return the current text of a helper's file, even if it was rejected.

        Raises:
            UsageError: there is no such helper, or its file cannot be read.
        """
        text = _text(self._root, f"{name}{_SUFFIX}") if name in self._problems else self.helper(name).text
        if isinstance(text, Problem):
            raise UsageError(str(text))
        return text

    async def reserve(self) -> None:
        """Reserve the names of all current and earlier helpers against new functions, without reading files."""
        names = {Path(path).stem for path in await self._store.kept_modules(FOLDER)}
        with suppress(ConfigError):  # reported when the files are read
            names |= (await asyncio.to_thread(stamps_of, self._root / FOLDER)).keys()
        self._functions.registry.keep_for_helpers(frozenset(names))

    async def load(self) -> None:
        """Read the files if they have not been read yet. Call this before using helpers."""
        if not self._is_read:
            await self.refresh(is_told=False)

    @property
    def _is_read(self) -> bool:
        return self._judged_with is not None

    async def refresh(self, *, is_told: bool = True) -> None:
        """Reload changed files. With `is_told`, notify listeners of the changes."""
        async with self._one_at_a_time:
            await self._refresh(None, "", is_told=is_told)

    async def _refresh(self, author: Author | None, reason: str, *, is_told: bool) -> None:
        functions, is_first = self._functions.registry.snapshot().functions, not self._is_read
        try:
            stamps = await asyncio.to_thread(stamps_of, self._root / FOLDER)
        except ConfigError as error:
            await self._keep_all(error, is_told=is_told)
            return
        if not is_first and stamps == self._stamps and (not stamps or functions is self._judged_with):
            return
        if is_first:
            self._helpers = await self._last_helpers()
        before, told = self._helpers, self._problems
        texts = await asyncio.to_thread(
            lambda: {name: _text(self._root, f"{name}{_SUFFIX}") for name in sorted(stamps)}
        )
        await self._load(texts, author, reason)
        self._stamps, self._judged_with = stamps, functions
        change = self._change(before, told, texts)
        if is_first:
            is_new = not await self._store.agent_names()  # no one has seen an earlier state
            self.since = replace(change, loaded=()) if change and is_new else change
        elif is_told and change is not None:
            self._functions.tell(change)

    async def _keep_all(self, error: ConfigError, *, is_told: bool) -> None:
        """Keep all helpers in force if the folder cannot be read, and report that once."""
        is_first = not self._is_read
        if is_first:
            self._helpers = await self._last_helpers()
            self._functions.registry.keep_for_helpers(frozenset(self._helpers))
        problem = Problem(error.code, error.message, Place(f"{FOLDER}/"), error.fix)
        is_news = problem not in self.problems
        self._problems = {**self._problems, "": (problem,)}
        self._stamps, self._judged_with = {"": (0, 0, 0)}, self._functions.registry.snapshot().functions
        news = events.FunctionsChanged(turn="", rejected=(str(problem),))
        if is_first:
            self.since = news
        elif is_news and is_told:
            self._functions.tell(news)

    async def _load(self, texts: Mapping[str, str | Problem], author: Author | None, reason: str) -> None:
        readings: dict[str, Helper | tuple[Problem, ...]] = {}
        left = MOST_PROBLEMS  # for all files together, but at least one per file
        values = ValueCount(FOLDER)
        for name, text in texts.items():
            if isinstance(text, Problem):
                reading: Helper | tuple[Problem, ...] = (text,)
            else:
                try:
                    values.add(name, text)
                except ConfigError as error:
                    reading = (Problem("too-many", error.message, Place(path_of(name), 1), error.fix),)
                else:
                    reading = read_helper(name, text, max(left, 1))
            left -= len(reading) if isinstance(reading, tuple) else 0
            readings[name] = reading
        helpers = {name: reading for name, reading in readings.items() if isinstance(reading, Helper)}
        problems = {name: reading for name, reading in readings.items() if not isinstance(reading, Helper)}
        around = Surroundings(self._functions.registry.snapshot(), OF_THE_PROGRAM, helpers)
        in_force: dict[str, Helper] = {}
        kept = {*await self._store.kept_modules(FOLDER)}
        for name in texts:
            last, helper = self._helpers.get(name), helpers.get(name)
            if last is None and path_of(name) in kept:
                last = await self._last_good(name)
            problems |= {name: wrong} if helper and (wrong := problems_around(helper, around)) else {}
            if helper is not None and (last is None or last.text != helper.text):
                if any(problem.severity == "refuses" for problem in problems.get(name, ())):
                    helper = None
                else:
                    await self._keep(name, helper.text, author, reason or "saved")
            # An unchanged helper stays the same object, and stays in force even if names in it no longer exist.
            same = last is not None and (helper is None or last.text == helper.text)
            if chosen := last if same else helper:
                in_force[name] = chosen
        for name in self._helpers.keys() - texts.keys():
            await self._keep(name, "", author, reason or "its file was removed")
        self._problems = problems
        self._helpers = in_force if in_force != self._helpers else self._helpers
        self._functions.registry.keep_for_helpers(frozenset(in_force))

    async def _last_helpers(self) -> dict[str, Helper]:
        """Return the helpers that were in force when the last program ended."""
        names = [Path(path).stem for path in await self._store.kept_modules(FOLDER)]
        return {name: helper for name in names if (helper := await self._last_good(name)) is not None}

    async def _last_good(self, name: str) -> Helper | None:
        rows = await self._store.module_history(path_of(name))
        if not rows or not rows[-1].text:
            return None
        helper = read_helper(name, rows[-1].text)
        return helper if isinstance(helper, Helper) else None

    async def _keep(self, name: str, text: str, author: Author | None, reason: str) -> None:
        author = author or Author()
        version = SaveVersion(path_of(name), hash_of(text), text, author.by, author.turn, reason, author.model)
        await self._store.apply([version])

    def _change(
        self,
        before: Mapping[str, Helper],
        told: Mapping[str, tuple[Problem, ...]],
        texts: Mapping[str, str | Problem],
    ) -> events.FunctionsChanged | None:
        """Return the differences from the earlier helpers and problems, or None."""
        now = self._helpers
        news: dict[str, str] = {}
        for name, problems in self._problems.items():
            lines = bare_lines(text) if isinstance(text := texts[name], str) else []
            for problem in problems:
                if problem not in told.get(name, ()):
                    at = problem.where.line
                    news[str(problem)] = lines[at - 1].rstrip()[:400] if 0 < at <= len(lines) else ""
        change = events.FunctionsChanged(
            turn="",
            loaded=tuple(sorted(now.keys() - before.keys())),
            changed=tuple(sorted(name for name in now.keys() & before.keys() if now[name].text != before[name].text)),
            removed=tuple(sorted(before.keys() - now.keys())),
            rejected=tuple(news),
            fixed=tuple(sorted(path_of(name) for name in told.keys() - self._problems.keys() if name in texts)),
            lines={problem: text for problem, text in news.items() if text},
        )
        is_news = change.loaded or change.changed or change.removed or change.rejected or change.fixed
        return change if is_news else None

    async def write(self, name: str, text: str, author: Author | None, reason: str) -> None:
        """Write a helper's file and load it. Only the version that was read before may be replaced."""
        async with self._one_at_a_time:  # otherwise a refresh could attribute the file to someone else
            old = self._helpers.get(name)
            expected = hash_of(old.text) if old is not None and is_there(self._root / path_of(name)) else None
            await asyncio.to_thread(save_text, self._root, path_of(name), text, expected)
            await self._refresh(author, reason, is_told=False)

    async def remove(self, name: str, author: Author | None, reason: str) -> None:
        """Delete a helper's file; its history stays."""
        async with self._one_at_a_time:
            await asyncio.to_thread(remove_text, self._root, path_of(name), hash_of(self.helper(name).text))
            await self._refresh(author, reason, is_told=False)

    async def versions(self, name: str) -> list[Version]:
        """Return the versions of a current or deleted helper, oldest first.

        Raises:
            UsageError: there was never a helper with that name.
        """
        rows = await self._store.module_history(path_of(name)) if NAME.fullmatch(name) else []
        if not rows:
            self.helper(name)
        return [Version(number, row.version if row.text else "", row.text, row) for number, row in enumerate(rows, 1)]

    async def history(self, name: str) -> list[HelperVersion]:
        """Return the versions of a helper in their published form, oldest first.

        Raises:
            UsageError: there was never a helper with that name.
        """
        rows = [(version.number, version.row) for version in await self.versions(name)]
        return [HelperVersion(n, row.version, row.text, row.by, row.agent, row.at, row.reason) for n, row in rows]

    async def runs(self) -> dict[str, list[str]]:
        """Return the agents of helper runs by helper name, oldest first."""
        runs: dict[str, list[str]] = {}
        rows = {row.name: row.last_at for row in await self._store.agents()}
        for name in sorted(rows, key=lambda name: rows[name]):
            if name.startswith(HELPER_RUN):
                runs.setdefault(name.removeprefix(HELPER_RUN).rpartition("-")[0], []).append(name)
        return runs

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Reload helpers when files or functions change, while the block runs."""
        news = asyncio.Event()
        async with watch.Watcher(self._root / FOLDER, suffix=_SUFFIX) as watcher:
            quiet = self._functions.registry.subscribe(lambda _: news.set())
            tasks = [asyncio.create_task(self._follow(watcher, news)), asyncio.create_task(self._renew(news))]
            try:
                yield
            finally:
                quiet()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    async def _follow(watcher: "watch.Watcher", news: asyncio.Event) -> None:
        async for _ in watcher:
            news.set()

    async def _renew(self, news: asyncio.Event) -> None:
        while await news.wait():
            news.clear()
            if self._is_read:
                await self.refresh()


class HelperSelection:
    """The helpers that one agent may call, selected by patterns that may change."""

    def __init__(self, library: HelperLibrary, patterns: Callable[[], Sequence[str]], without: str = "") -> None:
        """Create the selection; `without` is a helper to exclude, because no helper calls itself."""
        self._library = library
        self._patterns = patterns
        self._without = without
        self._selected: tuple[object, object, Mapping[str, Helper]] = (None, None, {})

    def offered(self, snapshot: "Snapshot") -> Mapping[str, Helper]:
        """Return the helpers that can be called now; the same object as long as nothing changes."""
        offered = self._library.offered(snapshot)
        if not offered:
            return offered
        patterns = self._patterns()
        if self._selected[0] is not offered or self._selected[1] != patterns:
            chosen = {name: helper for name, helper in offered.items() if self._has(name)}
            self._selected = (offered, patterns, chosen)
        return self._selected[2]

    def refusal(self, name: str) -> str:
        """Return why a selected helper cannot be called, or ""."""
        return self._library.refusal(name) if self._has(name) else ""

    def _has(self, name: str) -> bool:
        return name != self._without and any(Wildcard(pattern).fits(name) for pattern in self._patterns())


def _text(root: Path, name: str) -> str | Problem:
    where = Place(f"{FOLDER}/{one_line(name, 80)}", 1)
    try:
        if (root / FOLDER).is_symlink():
            return Problem(
                "unreadable", f"`{FOLDER}` is a link, which is not followed", where, "put the folder itself there"
            )
        return read_plain(root / FOLDER / name, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        return Problem("unreadable", "the file is not UTF-8", where, "save it as UTF-8")
    except OSError as error:
        return Problem("unreadable", f"the file cannot be read: {error}", where, "put a plain file in its place")
