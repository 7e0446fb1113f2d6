"""The grants of one workspace: the file's entries, limited to the exact code that this user approved.

The file, `functions/grants.toml`, says what functions may reach, one entry per function. It is reviewable; only the
host writes it, and it only proposes. An invalid part grants nothing, is reported as a problem, and is never
overwritten. If an entry is removed or narrowed, so is its approval: an item that was removed from the file and
reappears is requested again. The file is checked before every call, which costs one `stat`.
"""

import asyncio
import getpass
import json
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agent_core.base import machine
from agent_core.base.errors import StorageError, WorkspaceError
from agent_core.base.gone import GONE, warn_of_gone
from agent_core.base.plain_files import read_plain, replace_text
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, replace
from agent_core.base.seal import ELSEWHERE, Sealer
from agent_core.base.syntax import name_shown
from agent_core.base.untrusted import fence, visible
from agent_core.registry.source import ModuleSource
from agent_core.storage import AGENT, ApprovalRow, ApprovalStore, DropApproval, SaveApproval, Write
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import Malformed, lines_of_keys, read_json, read_toml

from .approval import Question
from .content import (
    FunctionContent,
    codes_then,
    content_of,
    covered_code,
    examples_covered,
    misleading,
    since,
)
from .record import GrantRecord
from .repositories import looked_through
from .value import KINDS, NOTHING, Grants, joined, oddity, written

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

NAME = "grants.toml"
PATH = f"functions/{NAME}"
_LIMIT = 256 << 10
_MOST_PROBLEMS = 20
_HEAD = """\
# What the functions of this folder may reach. Knapper alone writes it, after your yes:
# `knapper functions grant` and `revoke` change it. An entry grants nothing by itself: each user is asked
# once, for exactly the code that is there. Comments above an entry are kept, all else is written anew.
"""
_KEPT_ANSWERS: Final = (
    "kept:"  # before the name of what they are about, in the record of what was revoked
)
OF_AGENT: Final = "agent:"
"""Before the name of an agent: the owner of what the user granted to all functions that it makes here."""
_HEADER = re.compile(r"\s*\[\s*\"?((?:agent:)?[A-Za-z0-9_-]+)\"?\s*\]")
_MOST_SECONDS = 86_400
_MEMORY_MIB = range(64, (1 << 20) + 1)
_FIX = "fix it manually, or remove the entry and grant it again"
Stamp: TypeAlias = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class GrantEntry:
    """The access of one function, who approved it, and when (ISO 8601, UTC)."""

    grants: Grants = NOTHING
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The contents of the file: `problems` are its invalid parts, `stamp` identifies this version."""

    entries: Mapping[str, GrantEntry] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    text: str = ""
    stamp: Stamp = None


class GrantsFile:
    """The grants file in the functions folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NAME
        self._known = Listing()

    def stamp(self) -> Stamp:
        """Return an identifier of the current file, or None if there is none."""
        try:
            status = os.stat(self._file, follow_symlinks=False)  # noqa: PTH116 - before every call
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def read(self) -> Listing:
        """Return the current contents of the file; if it is unchanged, this costs one `stat`."""
        stamp = self.stamp()
        if stamp is None:
            return Listing()
        if stamp != self._known.stamp:
            self._known = self._read(stamp)
        return self._known

    def _read(self, stamp: Stamp) -> Listing:
        try:
            text = read_plain(self._file, _LIMIT).decode("utf-8")
        except UnicodeDecodeError:
            return Listing(problems=(_problem("cannot be read (it is not UTF-8)"),), stamp=stamp)
        except OSError as error:
            reason = "it is a link" if error.errno == 40 else error.strerror or str(error)
            return Listing(problems=(_problem(f"cannot be read ({reason})"),), stamp=stamp)
        try:
            data = read_toml(text, most=_LIMIT)
        except Malformed as error:
            message = f"is not valid TOML ({fence(str(error), 120)})"
            return Listing(problems=(_problem(message),), text=text, stamp=stamp)
        for key in {key for table in data.values() if isinstance(table, dict) for key in table}:
            warn_of_gone(key, str(self._file))
        return _listing(data, text, stamp)

    def write(self, entries: Mapping[str, GrantEntry], listing: Listing) -> None:
        """Replace the entries that were read with these.

        Raises:
            WorkspaceError: the file changed meanwhile, has invalid parts, or cannot be written.
        """
        if listing.problems:
            raise WorkspaceError(
                f"{listing.problems[0].message}, so nothing is written there.",
                fix=f"{_FIX}.".capitalize(),
            )
        if self.stamp() != listing.stamp:
            raise WorkspaceError(
                f"`{PATH}` was changed meanwhile, so it was not written.", fix="Do it again."
            )
        text = text_of(entries, listing.text)
        if text != listing.text:
            try:
                replace_text(self._file, text)
            except OSError as error:
                message = f"`{PATH}` cannot be written: {error.strerror}."
                raise WorkspaceError(message, fix="Check its rights.") from error


def text_of(entries: Mapping[str, GrantEntry], before: str = "") -> str:
    """Return the whole text of the file, sorted, with the user's comments above entries."""
    head, comments = _comments(before)
    blocks = [
        [*comments.get(function, ()), *_lines(function, entries[function])]
        for function in sorted(entries)
    ]
    shown = (
        "\n".join([_HEAD, *head, *(f"{line}" for block in blocks for line in [*block, ""])]).rstrip(
            "\n"
        )
        + "\n"
    )
    meant = {function: entry.grants for function, entry in entries.items()}
    with suppress(Malformed):
        listing = _listing(read_toml(shown, most=_LIMIT), shown, None)
        if (
            not listing.problems
            and {function: entry.grants for function, entry in listing.entries.items()} == meant
        ):
            return shown
    return "\n".join(
        [
            _HEAD,
            *(
                line
                for function in sorted(entries)
                for line in [*_lines(function, entries[function]), ""]
            ),
        ]
    )


def _lines(function: str, entry: GrantEntry) -> Iterator[str]:
    yield f'["{function}"]' if function.startswith(OF_AGENT) else f"[{function}]"
    for key, value in entry.grants.to_json().items():
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    yield f"by = {json.dumps(visible(entry.by), ensure_ascii=False)}"
    yield f"at = {json.dumps(entry.at)}"


def _comments(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the comments of a text: the user's own at its head, and those of each entry."""
    head, comments = list[str](), dict[str, list[str]]()
    waiting: list[str] = []
    inside, own = "", frozenset(bare_lines(_HEAD))
    for line in bare_lines(text):
        if line.lstrip().startswith("#") and line not in own:
            waiting.append(line.strip())
        elif header := _HEADER.match(line):
            inside = header[1]
            comments[inside], waiting = waiting, []
        elif not line.strip() and not inside:
            head, waiting = [*head, *waiting, *([""] if waiting else [])], []
        elif line.strip() and inside:
            comments[inside], waiting = [*comments[inside], *waiting], []
    return head, comments


def _listing(data: Mapping[str, Any], text: str, stamp: Stamp) -> Listing:  # Any: TOML
    entries, problems = dict[str, GrantEntry](), list[Problem]()
    lines = lines_of_keys(text)
    for function, table in data.items():
        result = _entry(function, table)
        if isinstance(result, GrantEntry):
            entries[function] = result
        else:
            message = f"{result} in the entry {fence(function, 60)}, which therefore grants nothing"
            problems.append(_problem(message, lines.get(function, 1)))
            if len(problems) == _MOST_PROBLEMS:
                problems.append(
                    _problem("may have more problems: the entries that follow grant nothing either")
                )
                break
    return Listing(entries, tuple(problems), text, stamp)


def _entry(function: str, table: object) -> GrantEntry | str:
    """Return an entry, or a description of its fault."""
    agent = function.removeprefix(OF_AGENT) if function.startswith(OF_AGENT) else ""
    if agent and isinstance(table, dict) and not table.keys() <= {"read", "by", "at"}:
        return "has more than folders to read"
    if not AGENT.fullmatch(agent) and KINDS["functions"](function) != function:
        return f"has an invalid function name{_holding('functions', [function])}"
    if not isinstance(table, dict):
        return "has a value instead of a table"
    data: dict[str, Any] = {}
    for key, value in table.items():
        if key in GONE:
            continue
        data[key] = _value(key, value)
        if data[key] is None:
            return f"has something that cannot be granted ({_show_entry(key, value)}{_holding(key, value)})"
    return GrantEntry(Grants.from_json(data), data.get("by", ""), data.get("at", ""))


def _value(key: str, value: object) -> Any:  # Any: the stored form of the key's kind
    if key in KINDS and isinstance(value, list):
        items = [written(key, item) for item in value]
        return None if None in items else items
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match key:
        case "seconds" if number and 0 < value <= _MOST_SECONDS:  # type: ignore[operator]  # checked to be a number
            return value
        case "memory_mib" if number and isinstance(value, int) and value in _MEMORY_MIB:
            return value
        case "by" | "at" if isinstance(value, str):
            return visible(value[:200])
        case _:
            return None


def checked(grants: Mapping[str, object]) -> Grants:
    """Check and return the grants that the user requested.

    Raises:
        WorkspaceError: one of them cannot be granted; the message names it.
    """
    values = {key: _value(key, value) for key, value in grants.items()}
    for key, value in values.items():
        if value is None:
            message = (
                f"{_show_entry(key, grants[key])} cannot be granted{_holding(key, grants[key])}."
            )
            raise WorkspaceError(
                message, fix=_HOW.get(key, "Write it in letters, digits and underscores.")
            )
    return Grants.from_json(values)


def _show_entry(key: str, value: object) -> str:
    return fence(name_shown(f"{key} = {value}"), 120)


def _holding(key: str, value: object) -> str:
    """Return the character that makes an item invalid, and its position in the item."""
    odd = (
        next((odd for item in value if (odd := oddity(key, item))), "")
        if isinstance(value, list | tuple)
        else ""
    )
    return f": it holds {odd}" if odd else ""


_HOW = {
    "network": "A host is written as api.example.org, localhost:8000 or *.example.org, and beyond ASCII in punycode.",
    "read": "A path is written as data/ or data/file.csv, without `..`.",
    "write": "A path is written as data/ or data/file.csv, without `..`.",
    "packages": "A package is written as requests or requests>=2.31.",
    "seconds": f"Give seconds above 0, up to {_MOST_SECONDS}.",
    "memory_mib": "Give whole MiB from 64 on.",
}


def _problem(message: str, line: int = 0) -> Problem:
    return Problem("grants-file", f"`{PATH}` {message}", Place(PATH, line), _FIX)


_ANY_CONTENT: Final = FunctionContent("", ())
NEVER: Final = "never:"
"""Before the name of a function in a row that says what it is never to have."""
NeedsOf = Callable[["Function", "Snapshot"], Awaitable[Grants]]
ExclusiveLock = Callable[[], AbstractAsyncContextManager[None]]
"""The right to change the workspace's files, which one process has at a time."""


@dataclass(frozen=True, slots=True)
class Approval:
    """The grants that the user approved for one content."""

    digest: str
    versions: tuple[tuple[str, str], ...]
    grants: Grants


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A grant to be given for one content, in addition to `previous_grants` that are still in its entry.

    One for the next call only is for the `turn` in which it was asked for, or for no turn.
    """

    function: str
    grants: Grants
    content: FunctionContent
    by: str
    previous_grants: Grants = NOTHING
    turn: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """The grants of a function at one moment: in its entry, in force now, and in the newest approval of any content."""

    entry: Grants = NOTHING
    now: Grants = NOTHING
    last: Grants = NOTHING
    before: tuple[tuple[str, str], ...] = ()

    def wanted(self, grants: Grants, other_grants: Grants = NOTHING) -> Grants:
        """Return the entry's grants for these and the surrounding needs, and the needs that the entry does not
        cover.
        """
        return self.entry.serving(grants | other_grants) | grants.without(self.entry)


class GrantStore:
    """The grants of one workspace."""

    def __init__(
        self,
        root: Path,
        store: ApprovalStore,
        exclusive_lock: ExclusiveLock,
        sealer: Sealer | None = None,
    ) -> None:
        self._root = root
        self._file = GrantsFile(root / "functions")
        self._record = GrantRecord(root)
        self._store = store
        self._exclusive_lock = exclusive_lock
        self.sealer = sealer or Sealer(root)
        self._known: tuple[Listing, Mapping[str, tuple[Approval, ...]]] | None = None  # by function
        self.needs_of: NeedsOf | None = None
        """Returns what a function needs, if a version with no larger reach keeps its yes."""
        self._denied: Mapping[str, Grants] = {}
        self._elsewhere: frozenset[str] = (
            frozenset()
        )  # functions with a stored yes, but none that counts here
        self._once: dict[
            tuple[str, str, str], Grants
        ] = {}  # by function, digest of its content, and turn

    async def allowed(self, function: "Function", snapshot: "Snapshot") -> Grants:
        """Return the current grants of a function, in the version in this snapshot."""
        return (await self.held(function, snapshot)).now

    async def held(
        self, function: "Function", snapshot: "Snapshot", fresh_codes: Collection[str] = ()
    ) -> Held:
        """Return the current and previous grants of a function; `fresh_codes` are what its agent writes now."""
        listing, approved = await self._look()
        entry = listing.entries.get(function.name)
        if entry is None:
            return Held()
        approvals = approved.get(function.name, ())
        digest = content_of(function, snapshot).digest
        is_ours = not misleading(function, snapshot)
        last = approvals[-1] if approvals else Approval("", (), NOTHING)
        now = next(
            (approval.grants for approval in approvals if is_ours and approval.digest == digest),
            None,
        )
        if now is None and is_ours:
            now = await self._kept(function, snapshot, last, fresh_codes)
        now = now or NOTHING
        return Held(entry.grants, now & entry.grants, last.grants & entry.grants, last.versions)

    async def question(
        self,
        function: "Function",
        snapshot: "Snapshot",
        grants: Grants,
        other_grants: Grants = NOTHING,
        shared_grants: Grants = NOTHING,
        fresh_codes: Collection[str] = (),
    ) -> Question | None:
        """Return the question to ask before a function has all it needs, or None if it has.

        It also includes the entry's grants for the modules' needs, `other_grants`, and nothing that the function has
        as one of its maker's, `shared_grants`.
        """
        state = await self.held(function, snapshot, fresh_codes)
        missing = state.wanted(grants, other_grants).without(state.now | shared_grants).ahead()
        if not missing:
            return None
        changed, diff = await self._since(function, snapshot, state)
        is_again = bool(state.before) and state.last.covers(missing)
        question = Question.of(function, snapshot, missing, state.last)
        doubts = (f"{ELSEWHERE}.",) if await self.is_elsewhere(function.name) else ()
        return replace(question, diff=diff, is_again=is_again, changed=changed, doubts=doubts)

    async def is_elsewhere(self, name: str) -> bool:
        """Return whether a yes to a function is stored, but none that counts here: its folder may have been moved."""
        await self._look()
        return name in self._elsewhere

    async def covers_examples(self, function: "Function", snapshot: "Snapshot") -> bool:
        """Check whether the approval that is in force was given for the function with these examples."""
        approvals = (await self._look())[1].get(function.name, ())
        digest = content_of(function, snapshot).digest
        versions = next(
            (dict(each.versions) for each in reversed(approvals) if each.digest == digest), {}
        )
        text = await self._store.text(versions.get(function.module, ""))
        return text is not None and await asyncio.to_thread(
            examples_covered, function, snapshot, text
        )

    async def lapsed(self, function: "Function", snapshot: "Snapshot") -> str:
        """Return the change in a function since its newest approval, as a sentence."""
        return (await self._since(function, snapshot, await self.held(function, snapshot)))[0]

    async def _kept(
        self,
        function: "Function",
        snapshot: "Snapshot",
        last_approval: Approval,
        fresh_codes: Collection[str],
    ) -> Grants:
        """Return what a version that was not approved has: all that the last one had, if only its layout is another.

        Where a yes is kept for the same reach, what was written since must be of agents here, and it gets no more than
        its text shows.
        """
        if await self._is_only_laid_out_anew(function, snapshot, last_approval):
            return last_approval.grants
        texts = await self._texts_of(last_approval)
        if self.needs_of is None or function.module not in texts:
            return NOTHING
        then = codes_then((function.module, function.name), texts)
        new_codes = covered_code(function, snapshot).codes.difference(then, fresh_codes)
        makers = await self.makers(new_codes)
        if not all(makers.get(code) for code in new_codes):
            return NOTHING
        needs = await self.needs_of(function, snapshot)
        return (
            last_approval.grants.serving(needs) if last_approval.grants.covers(needs) else NOTHING
        )

    async def _texts_of(self, approval: Approval) -> Mapping[str, str]:
        """Return the texts of the modules of an approval; none if one of them is not what was approved."""
        texts = {module: await self._store.text(version) for module, version in approval.versions}
        agreed = {module: text for module, text in texts.items() if text is not None}
        versions = tuple(
            (module, ModuleSource.of(module, text).version) for module, text in agreed.items()
        )
        return agreed if versions == approval.versions else {}

    async def _is_only_laid_out_anew(
        self, function: "Function", snapshot: "Snapshot", last_approval: Approval
    ) -> bool:
        """Check whether only layout and comments changed since an approval, and the approved texts are intact."""
        agreed = await self._texts_of(last_approval)
        if function.module not in agreed:
            return False
        return not (await asyncio.to_thread(since, function, snapshot, agreed))[0]

    async def _since(
        self, function: "Function", snapshot: "Snapshot", held: Held
    ) -> tuple[str, str]:
        texts = {module: await self._store.text(version) or "" for module, version in held.before}
        return await asyncio.to_thread(since, function, snapshot, texts) if texts else ("", "")

    def allow_once(self, new_grant: NewGrant) -> None:
        """Give the next call of this content in its turn more grants, but no later call."""
        self._once[new_grant.function, new_grant.content.digest, new_grant.turn] = new_grant.grants

    def take_once(self, function: "Function", snapshot: "Snapshot", turn: str) -> Grants:
        """Return and remove the grants allowed for this call only, in this turn."""
        if not any((key[0], key[2]) == (function.name, turn) for key in self._once):
            return NOTHING
        return self._once.pop((function.name, content_of(function, snapshot).digest, turn), NOTHING)

    def take_back(self, name: str) -> Grants:
        """Remove the grants allowed for the next call of a function only, and return them."""
        mine = [key for key in self._once if key[0] == name]
        return joined(self._once.pop(key) for key in mine)

    async def folders_of_agents(self) -> Mapping[str, Grants]:
        """Return the folders that all functions of an agent may read, by agent."""
        agreed = (await self.agreed()).items()
        return {
            name.removeprefix(OF_AGENT): each
            for name, each in agreed
            if name.startswith(OF_AGENT) and each.read
        }

    async def give_folder(self, agent: str, folder: str, by: str) -> None:
        """Let all functions that an agent makes here read a folder, as the user approved.

        Raises:
            WorkspaceError: the file cannot be written, or the key of the seals cannot be used.
        """
        new_grant = await self.folder_grant(agent, folder, by)
        async with self._exclusive_lock():
            await self._store.apply(await self.put(new_grant))
        self.forget()

    async def folder_grant(self, agent: str, folder: str, by: str) -> NewGrant:
        """Return the grant of a folder to all functions that an agent makes here. It is for no content."""
        now = (await self.folders_of_agents()).get(agent, NOTHING)
        return NewGrant(f"{OF_AGENT}{agent}", Grants(read=(folder,)), _ANY_CONTENT, by, now)

    async def forget_agent(self, agent: str) -> None:
        """Revoke what was granted to all functions of an agent, because it is gone; another may get its name."""
        if f"{OF_AGENT}{agent}" in await self.entries():
            with suppress(WorkspaceError):  # the file is invalid, but the approval itself is gone
                await self.revoke(f"{OF_AGENT}{agent}")

    async def makers(self, codes: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Return the agents that wrote each of these statements here, by the hash of the statement."""
        return await self._store.makers(codes)

    async def needed_to_call(self, snapshot: "Snapshot") -> frozenset[str]:
        """Return the functions that need a call grant: all that have an entry or grants for one call."""
        named = {*await self.entries(), *(name for name, *_ in self._once)}
        return frozenset(named & snapshot.functions.keys())

    async def agreed(self) -> Mapping[str, Grants]:
        """Return the grants in each function's newest approval, for any content, limited to its entry."""
        listing, approvals = await self._look()
        entries = listing.entries
        return {
            name: approvals[name][-1].grants & entries[name].grants
            for name in approvals.keys() & entries
        }

    async def entries(self) -> Mapping[str, GrantEntry]:
        """Return the entries that the file proposes."""
        return (await self._look())[0].entries

    async def log(self) -> list[tuple[ApprovalRow, bool]]:
        """Return all stored approvals, the newest last, and whether this user gave each and has not taken it back."""
        await self._look()
        rows = await self._store.approvals()
        ours = self._ours(rows)
        return [(row, row in ours) for row in rows]

    async def problems(self) -> tuple["Problem", ...]:
        """Return the problems in the file: invalid entries, which grant nothing."""
        return (await self._look())[0].problems

    async def give(
        self, function: "Function", snapshot: "Snapshot", grants: Grants, by: str
    ) -> None:
        """Give a function more grants, in the version in this snapshot, as the user approved.

        Raises:
            WorkspaceError: the file cannot be written, or the key of the seals cannot be used.
        """
        now = await self.allowed(function, snapshot)
        new_grant = NewGrant(function.name, grants, content_of(function, snapshot), by, now)
        async with self._exclusive_lock():
            await self._store.apply(await self.put(new_grant))
        self.forget()

    async def put(self, new_grant: NewGrant) -> tuple[Write, ...]:
        """Write the entry, and return the writes of its approval to apply next; call `forget` after that.

        The caller holds the lock of the workspace.
        """
        before = self._file.read()
        old_entry = before.entries.get(new_grant.function, GrantEntry())
        text = _text(new_grant.grants | (new_grant.previous_grants & old_entry.grants))
        content = new_grant.content
        approval = self._sealed(
            new_grant.function, content.digest, content.to_text(), text, new_grant.by
        )
        self._record.look_through(
            *looked_through(self._root, new_grant.grants.read, new_grant.grants.write)
        )
        moment = datetime.fromtimestamp(await self._store.now(), UTC).isoformat(
            timespec="milliseconds"
        )
        entry = GrantEntry(
            old_entry.grants | new_grant.grants, new_grant.by, moment.replace("+00:00", "Z")
        )
        await asyncio.to_thread(
            self._file.write, {**before.entries, new_grant.function: entry}, before
        )
        return (approval,)

    async def revoke(self, name: str, grants: Grants | None = None) -> Grants:
        """Revoke these grants, or all, from a function, and return the rest of its entry.

        Raises:
            WorkspaceError: the file cannot be written; the approvals are removed anyway if nothing would remain, or if
                the file has invalid parts.
        """
        async with self._exclusive_lock():
            before = self._file.read()
            old_entry = before.entries.get(name, GrantEntry())
            remaining = NOTHING if grants is None else old_entry.grants.without(grants)
            if not remaining or before.problems:
                try:
                    self._record.take_back(name)
                finally:
                    await self._store.apply([DropApproval(name)])
                if any(row.function == name for row in await self._store.approvals()):
                    message = f"The yes to `{name}` is still in the state file, which did not let it be removed."
                    raise StorageError(
                        message,
                        fix="Move .knapper/state.db away: a new one is begun, without any yes.",
                    )
            self.forget()
            entries = {
                function_name: entry
                for function_name, entry in before.entries.items()
                if function_name != name
            }
            entries |= (
                {name: GrantEntry(remaining, old_entry.by, old_entry.at)} if remaining else {}
            )
            await asyncio.to_thread(self._file.write, entries, before)
        await self._look()
        return remaining

    async def drop_kept_answers(self, name: str) -> Grants:
        """Forget the answers to questions about a function that wait to be used, and return what they were about.

        They do not count again with an older state file, either.
        """
        questions = await self._store.drop_kept_answers(name)
        if questions:
            self._record.take_back(f"{_KEPT_ANSWERS}{name}")
        return joined(Grants.from_json(question["missing"]) for question in questions)

    def revocations(self, function: str, maker: str) -> tuple[str, ...]:
        """Return what differs after each revocation from a function, or from the agent that made it."""
        statements = self._record.read()
        of_one = (
            function,
            f"{OF_AGENT}{maker}",
            f"{_KEPT_ANSWERS}{function}",
            f"{_KEPT_ANSWERS}{OF_AGENT}{maker}",
        )
        return tuple(part for name in of_one for part in statements.since(name))

    def changed_at(self) -> float:
        """Return when the file was last changed, in seconds; 0 if there is none."""
        stamp = self._file.stamp()
        return stamp[0] / 1e9 if stamp else 0

    def forget(self) -> None:
        """Discard the cached state, so that the next answer reads it again."""
        self._known = None

    async def deny(self, name: str, grants: Grants) -> None:
        """Record that a function is never to have these, so that nobody is asked for them again."""
        whole = await self.denied(name) | grants
        async with self._exclusive_lock():
            row = self._sealed(f"{NEVER}{name}", NEVER, "[]", _text(whole), who())
            await self._store.apply([row])
        self.forget()

    async def denied(self, name: str) -> Grants:
        """Return what a function is never to have, by the user's word."""
        await self._look()
        return self._denied.get(name, NOTHING)

    async def all_denied(self) -> Mapping[str, Grants]:
        """Return what functions are never to have, by name."""
        await self._look()
        return self._denied

    async def lift(self, name: str) -> Grants:
        """Let a function be asked for again, and return what was denied to it for good."""
        denied = await self.denied(name)
        if denied:
            await self._store.apply([DropApproval(f"{NEVER}{name}")])
            self.forget()
        return denied

    async def _look(self) -> tuple[Listing, Mapping[str, tuple[Approval, ...]]]:
        """Return the file's contents, and the approvals in force by function."""
        known = self._known
        if known is None or known[0].stamp != self._file.stamp():
            listing, rows = self._file.read(), await self._store.approvals()
            found = self._known
            if found is not None and found is not known and found[0].stamp == self._file.stamp():
                return found  # of a thousand files that are saved at once, each asks before the first has its answer
            if listing.stamp is not None or rows:  # without either, no lock is necessary
                async with self._exclusive_lock():  # so that they are consistent
                    listing, rows = self._file.read(), await self._store.approvals()
                    kept = [row for row in rows if not row.function.startswith(NEVER)]
                    if writes := list(self._limit_approvals(kept, listing)):
                        await self._store.apply(writes)
                        rows = await self._store.approvals()
            approvals: dict[str, tuple[Approval, ...]] = {}
            denials = [row for row in rows if row.function.startswith(NEVER)]
            rows = [row for row in rows if not row.function.startswith(NEVER)]
            self._denied = {
                row.function.removeprefix(NEVER): Grants.from_json(read_json(row.grants))
                for row in self._ours(denials)
            }
            ours = self._ours(rows)
            self._elsewhere = frozenset(row.function for row in rows) - {
                row.function for row in ours
            }
            for row in ours:
                versions = tuple((module, version) for module, version in read_json(row.content))
                approval = Approval(row.digest, versions, Grants.from_json(read_json(row.grants)))
                approvals[row.function] = (*approvals.get(row.function, ()), approval)
            known = self._known = listing, approvals
        return known

    def _ours(self, rows: Iterable[ApprovalRow]) -> list[ApprovalRow]:
        """Return the rows that this user sealed here since the function's grants were last revoked."""
        statements = self._record.read()
        return [
            row
            for row in rows
            if statements.is_trusted
            and self.sealer.holds(
                row.seal,
                row.function,
                row.digest,
                row.content,
                row.grants,
                row.by,
                *statements.since(row.function),
            )
        ]

    def _sealed(
        self, function: str, digest: str, content: str, grants: str, by: str
    ) -> SaveApproval:
        seal = self.sealer.seal(
            function, digest, content, grants, by, *self._record.read().since(function)
        )
        return SaveApproval(function, digest, content, grants, by, seal)

    def _limit_approvals(self, rows: Iterable[ApprovalRow], listing: Listing) -> Iterable[Write]:
        """Yield the writes that limit our approvals to the entries. If the file is invalid, nothing changes."""
        if listing.problems:
            return
        ours = self._ours(rows)
        for name in dict.fromkeys(row.function for row in ours):
            own = [row for row in ours if row.function == name]
            if name not in listing.entries:
                self._record.take_back(name)
                yield DropApproval(name)
                continue
            entry = listing.entries[name].grants
            narrowed = [(row, Grants.from_json(read_json(row.grants)) & entry) for row in own]
            if any(_text(grants) != row.grants for row, grants in narrowed):
                self._record.take_back(name)
                for row, grants in narrowed:
                    yield self._sealed(row.function, row.digest, row.content, _text(grants), row.by)


def who() -> str:
    """Return the system's name of the user who approves."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"user {machine.user_id()}"


def _text(grants: Grants) -> str:
    return json.dumps(grants.to_json(), sort_keys=True)
