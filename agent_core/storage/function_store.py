"""Functions in the store: versions of modules, the manifest, verdicts, kept candidates, readings of files, pins."""

from collections.abc import Collection
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.errors import StorageError
from agent_core.base.records import dataclass, replace

from .subject import (
    ManifestConflict,
    Removal,
    StateConflict,
    Write,
    content_hash,
    dump,
    is_signed,
    parse_row,
    sign,
)
from .tables import SqlSession, Tables, check_text, keep_text, perform, query

Author: TypeAlias = Literal["human", "agent"]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A line of a module's history. A removal has an empty `version` and no text. `agent` is the agent of the turn.

    `kept_out` are functions in the text that are not in force, because another file or a built-in had the name when an
    earlier version of this program took the text; the line is not part of their history.
    """

    module: str
    version: str
    text: str
    by: str
    turn: str
    model: str
    reason: str
    at: float
    agent: str = ""
    kept_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenWrite:
    """A write to a file that was begun but not ended. None means "no file"."""

    path: str
    version: str | None
    text: str | None
    expected: str | None
    at: float
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """The stored reading of a file: `stamp` is (mtime_ns, size, inode), `reading` is JSON text."""

    path: str
    stamp: tuple[int, int, int]
    version: str
    reading: str


@dataclass(frozen=True, slots=True)
class SaveVersion(Write):
    """Store a module's source under its hash, and add a line to the module's history."""

    module: str
    version: str
    text: str
    by: Author = "human"
    turn: str = ""
    reason: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class SetManifest(Write):
    """Compare-and-set: `expected` None means that the module is new, `version` None removes it.

    A removal also adds a line to the module's history, with `by`, `turn` and `reason`.
    """

    module: str
    expected: str | None
    version: str | None
    by: Author = "human"
    turn: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SaveVerdict(Write):
    """The gate's verdict on one function of one version. A later verdict replaces an earlier one."""

    version: str
    function: str
    verdict: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class SavePending(Write):
    """Keep a rejected candidate for `edit_function` and `confirm_function`."""

    function: str
    candidate: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropPending(Write):
    """Delete a candidate that was admitted or given up."""

    function: str


@dataclass(frozen=True, slots=True)
class BeginWrite(Write):
    """Announce that a file will become `text` (None: be deleted) if it still matches `expected` (None: absent).

    A file that `is_part` of a change with more than this file is put back after a crash.
    """

    path: str
    version: str | None
    text: str | None
    expected: str | None
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class EndWrite(Write):
    """Record that the file matches the intent of this path and version, or that the intent was given up."""

    path: str
    version: str | None


@dataclass(frozen=True, slots=True)
class SaveReading(Write):
    """Store the reading of a file: `stamp` is (mtime_ns, size, inode), `reading` is JSON text."""

    path: str
    stamp: tuple[int, int, int]
    version: str
    reading: str


@dataclass(frozen=True, slots=True)
class DropReading(Write):
    """Delete the reading of a file that no longer exists."""

    path: str


@dataclass(frozen=True, slots=True)
class JoinOwnSet(Write):
    """Always show this function to this agent."""

    agent: str
    function: str


@dataclass(frozen=True, slots=True)
class LeaveOwnSet(Removal):
    """Show this function to this agent only when it is found."""

    agent: str
    function: str


@dataclass(frozen=True, slots=True)
class SavePin(Write):
    """Keep agents from changing what the pattern names; False lets that go in a wider pin, None forgets the pin."""

    pattern: str
    holds: bool | None


BEGUN, RESTORED = "begun", "restored"
"""Values of `turn` for the empty state of a new function, and for a state that a person restored."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state of a function after a turn; `n` changes with each change.

    The first row of a function is empty and `BEGUN`, so without one, earlier states are not kept any more. `turn` is
    empty for a call outside of turns, and may be `BEGUN` or `RESTORED`.
    """

    n: int
    function: str
    turn: str
    value: Any  # Any: JSON
    at: float


@dataclass(frozen=True, slots=True)
class SaveState(Write):
    """A compare-and-set write of a function's state: the current one must be `expected` (0: none).

    Raises StateConflict if another call was first. Only the last value of each turn is kept, and only a function's
    newest states.
    """

    function: str
    value: Any  # Any: JSON
    expected: int
    turn: str = ""


@dataclass(frozen=True, slots=True)
class BeginState(Write):
    """A write that gives a new function an empty state, even if an earlier one of that name left a state."""

    function: str


@dataclass(frozen=True, slots=True)
class RenameFunction(Write):
    """Let a function with another name have the state of the old one, and its places in the agents' own sets."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SaveTended(Write):
    """A change that tending made: `changed`, `deleted` or `archived`, with the hashes of the text before and after."""

    run: str
    function: str
    kind: str
    before: str
    after: str
    note: str


@dataclass(frozen=True, slots=True)
class UndoTended(Write):
    """Record that a change of tending was undone."""

    n: int


@dataclass(frozen=True, slots=True)
class TendedRow:
    """One change that tending made."""

    n: int
    run: str
    function: str
    kind: str
    before: str
    after: str
    note: str
    at: float
    undone: bool


MOST_STATES = 20  # per function, one for each turn
_BAD = '"thumb":"bad"'  # in the form that `dump` writes
_PART: Final = "part"
_PENDING = "select function, candidate, seal from pending"
_CHANGES = (
    "select c.module, coalesce(c.version, ''), coalesce(x.text, ''), c.by, c.turn, c.model, c.reason, c.at,"
    " coalesce(t.agent, ''), c.kept_out"
    " from change c left join text x on x.hash = c.version left join turn t on t.id = c.turn"
)


class FunctionStore(Tables):
    """The versions of functions, and the facts about them. Sealed rows count only if this user's program wrote them."""

    @query
    def manifest(self, session: SqlSession) -> dict[str, str]:
        """Return the current version of each module."""
        return dict(session.all("select module, version from manifest order by module"))

    @query
    def kept_out(self, session: SqlSession) -> dict[str, frozenset[str]]:
        """Return the functions that an earlier version kept out of each current module, for modules with any."""
        sql = (
            "select module, kept_out from change c where kept_out <> ''"
            " and seq = (select max(seq) from change where module = c.module)"
        )
        return {module: frozenset(names.split()) for module, names in session.all(sql)}

    @query
    def version(self, session: SqlSession, name: str) -> VersionRow | None:
        """Return the source with that hash, with the line of history that introduced it."""
        row = session.one(f"{_CHANGES} where c.version = ? order by c.seq limit 1", name)
        return _version(row) if row else None

    @query
    def module_history(self, session: SqlSession, module: str) -> list[VersionRow]:
        """Return every version and removal of a module, oldest first."""
        return [
            _version(row)
            for row in session.all(f"{_CHANGES} where c.module = ? order by c.seq", module)
        ]

    @query
    def made_for(self, session: SqlSession, reason: str) -> list[VersionRow]:
        """Return every version and removal of a module that was made for this reason, oldest first."""
        rows = session.all(f"{_CHANGES} where c.reason = ? order by c.seq", reason)
        return list(map(_version, rows))

    @query
    def kept_modules(self, session: SqlSession, folder: str) -> list[str]:
        """Return the paths with a history below a folder, such as `helpers`; function modules are in no folder."""
        sql = "select distinct module from change where substr(module, 1, ?) = ? order by module"
        rows = session.all(sql, len(folder) + 1, f"{folder}/")
        return [module for (module,) in rows]

    @query
    def function_history(self, session: SqlSession, function: str) -> list[VersionRow]:
        """Return the merged histories of all modules that ever defined a function of this name, oldest first."""
        holders = (
            "select module from change join text on hash = version where instr(module, '/') = 0"  # others: no modules
            " and (instr(text, 'def ' || ?1 || '(') > 0 or instr(text, 'def ' || ?1 || '[') > 0)"
        )
        return [
            _version(row)
            for row in session.all(
                f"{_CHANGES} where c.module in ({holders}) order by c.seq", function
            )
        ]

    @query
    def verdict(
        self, session: SqlSession, name: str, function: str
    ) -> dict[str, Any] | None:  # Any: JSON
        """Return the gate's verdict on this function in this version, if this user's program wrote it."""
        row = session.one(
            "select verdict, seal from verdict where version = ? and function = ?", name, function
        )
        is_own = row is not None and is_signed(
            session.sealer, row[1], "verdict", name, function, row[0]
        )
        return parse_row(row[0], dict) if row and is_own else None

    @query
    def pending(self, session: SqlSession, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the rejected candidate that was kept under that name."""
        return _pending(session, session.all(f"{_PENDING} where function = ?", function)).get(
            function
        )

    @query
    def all_pending(self, session: SqlSession) -> dict[str, dict[str, Any]]:  # Any: JSON
        """Return every kept rejected candidate, by name."""
        return _pending(session, session.all(f"{_PENDING} order by function"))

    @query
    def open_writes(self, session: SqlSession) -> list[OpenWrite]:
        """Return writes to files that were begun but not ended, oldest first."""
        rows = session.all(
            "select path, version, text, expected, at, tended, seal from intent order by seq"
        )
        writes = []
        for path, name, text, expected, at, mark, seal in rows:
            is_own = is_signed(session.sealer, seal, "intent", path, name, mark)
            writes.append(OpenWrite(path, name or None, text, expected, at, bool(mark) and is_own))
        return writes

    @query
    def readings(
        self, session: SqlSession, paths: Collection[str] | None = None
    ) -> dict[str, ReadingRow]:
        """Return the stored reading of each file, or of the given paths, by path."""
        sql = "select path, mtime_ns, size, inode, version, reading, seal from reading"
        some = " where path in (select value from json_each(?))"
        rows = session.all(sql) if paths is None else session.all(sql + some, dump([*paths]))
        return {
            path: ReadingRow(path, (mtime_ns, size, int(inode)), version, reading)
            for path, mtime_ns, size, inode, version, reading, seal in rows
            if is_signed(session.sealer, seal, "reading", path, version, reading)
            and inode.isdecimal()
        }

    @query
    def judged_at(self, session: SqlSession) -> dict[tuple[str, str], float]:
        """Return the time of the last verdict on each version of each function, by (function, version)."""
        rows = session.all("select function, version, at from verdict")
        return {(function, version): at for function, version, at in rows}

    @query
    def complaints(self, session: SqlSession) -> dict[tuple[str, str], str]:
        """Return the users' notes on the functions that they rated bad, by (function, version)."""
        rows = session.all(
            "select version, function, verdict, seal from verdict where instr(verdict, ?) > 0", _BAD
        )
        verdicts = {
            (function, name): parse_row(verdict, dict)
            for name, function, verdict, seal in rows
            if is_signed(session.sealer, seal, "verdict", name, function, verdict)
        }
        bad = {pair: verdict for pair, verdict in verdicts.items() if verdict.get("thumb") == "bad"}
        return {pair: str(verdict.get("note", "")) for pair, verdict in bad.items()}

    @query
    def tended(self, session: SqlSession) -> list[TendedRow]:
        """Return the changes that tending made, oldest first."""
        sql = (
            "select n, run, function, kind, before, after, note, at, undone from tended order by n"
        )
        rows = [TendedRow(*row) for row in session.all(sql)]
        return [replace(row, undone=bool(row.undone)) for row in rows]

    @query
    def states(self, session: SqlSession, function: str = "") -> list[StateRow]:
        """Return the states of all functions, or of one, including replaced ones, oldest first."""
        sql = "select n, function, turn, value, at from state where ?1 = '' or function = ?1 order by n"
        return [
            StateRow(n, name, turn, parse_row(value), at)
            for n, name, turn, value, at in session.all(sql, function)
        ]

    @query
    def in_own_sets(self, session: SqlSession) -> set[str]:
        """Return the functions that are always shown to some agent."""
        return {row[0] for row in session.all("select distinct function from own_set")}

    @query
    def own_set(self, session: SqlSession, agent: str) -> set[str]:
        """Return the functions that are always shown to this agent."""
        sql = "select function from own_set where agent = ?"
        return {row[0] for row in session.all(sql, agent)}

    @query
    def pins(self, session: SqlSession) -> dict[str, bool]:
        """Return what a person pinned, and what they let go though a wider pin names it (False), by pattern."""
        return {
            pattern: bool(holds) for pattern, holds in session.all("select pattern, holds from pin")
        }


def _pending(
    session: SqlSession, rows: list[tuple[Any, ...]]
) -> dict[str, dict[str, Any]]:  # Any: columns; JSON
    return {
        name: parse_row(text, dict)
        for name, text, seal in rows
        if is_signed(session.sealer, seal, "pending", name, text)
    }


def _version(row: tuple[Any, ...]) -> VersionRow:  # Any: columns as SQLite types them
    *facts, kept_out = row
    version_row = replace(VersionRow(*facts), kept_out=tuple(kept_out.split()))
    if version_row.version:
        check_text(version_row.version, version_row.text)
    return version_row


@perform.register
def _save_version(save: SaveVersion, session: SqlSession) -> None:
    if content_hash(save.text) != save.version:
        raise StorageError(
            f"Version {save.version[:12]} of `{save.module}` is not the hash of its source."
        )
    keep_text(session, save.version, save.text)
    session.all(
        "insert into change (module, version, by, turn, model, reason, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(
            save.module,
            save.version,
            save.by,
            save.turn,
            save.model,
            save.reason,
            session.clock.now(),
        ),
    )


@perform.register
def _set_manifest(manifest: SetManifest, session: SqlSession) -> None:
    row = session.one("select version from manifest where module = ?", manifest.module)
    current = row[0] if row else None
    if current != manifest.expected:
        raise ManifestConflict(manifest.module, manifest.expected, current)
    if manifest.version is not None:
        if not session.one("select 1 from text where hash = ?", manifest.version):
            message = f"Version {manifest.version[:12]} of `{manifest.module}` was never saved."
            raise StorageError(message, fix="Save the version first.")
        session.all(
            "insert into manifest (module, version) values (?, ?)"
            " on conflict (module) do update set version = excluded.version",
            *(manifest.module, manifest.version),
        )
    elif current is not None:
        session.all("delete from manifest where module = ?", manifest.module)
        session.all(
            "insert into change (module, version, by, turn, model, reason, at) values (?, null, ?, ?, '', ?, ?)",
            *(manifest.module, manifest.by, manifest.turn, manifest.reason, session.clock.now()),
        )


@perform.register
def _save_verdict(save: SaveVerdict, session: SqlSession) -> None:
    row = (save.version, save.function, dump(save.verdict))
    session.all(
        "insert into verdict (version, function, verdict, at, seal) values (?, ?, ?, ?, ?)"
        " on conflict (version, function) do update set verdict = excluded.verdict, at = excluded.at,"
        " seal = excluded.seal",
        *(*row, session.clock.now(), sign(session.sealer, "verdict", *row)),
    )


@perform.register
def _save_pending(save: SavePending, session: SqlSession) -> None:
    row = (save.function, dump(save.candidate))
    session.all(
        "insert into pending (function, candidate, at, seal) values (?, ?, ?, ?)"
        " on conflict (function) do update set candidate = excluded.candidate, at = excluded.at, seal = excluded.seal",
        *(*row, session.clock.now(), sign(session.sealer, "pending", *row)),
    )


@perform.register
def _drop_pending(drop: DropPending, session: SqlSession) -> None:
    session.all("delete from pending where function = ?", drop.function)


@perform.register
def _begin_write(write: BeginWrite, session: SqlSession) -> None:
    _end_write(EndWrite(write.path, write.version), session)  # a repeated write moves to the end
    row = (write.path, write.version or "")
    mark = _PART if write.is_part else ""
    seal = sign(session.sealer, "intent", *row, mark) if mark else ""
    session.all(
        "insert into intent (path, version, text, expected, at, tended, seal) values (?, ?, ?, ?, ?, ?, ?)",
        *(*row, write.text, write.expected, session.clock.now(), mark, seal),
    )


@perform.register
def _end_write(write: EndWrite, session: SqlSession) -> None:
    session.all(
        "delete from intent where path = ? and version = ?", write.path, write.version or ""
    )


@perform.register
def _save_reading(save: SaveReading, session: SqlSession) -> None:
    seal = sign(session.sealer, "reading", save.path, save.version, save.reading)
    session.all(
        "insert into reading (path, mtime_ns, size, inode, version, reading, seal) values (?, ?, ?, ?, ?, ?, ?)"
        " on conflict (path) do update set mtime_ns = excluded.mtime_ns, size = excluded.size, inode = excluded.inode,"
        " version = excluded.version, reading = excluded.reading, seal = excluded.seal",
        *(save.path, *save.stamp[:2], str(save.stamp[2]), save.version, save.reading, seal),
    )


@perform.register
def _drop_reading(drop: DropReading, session: SqlSession) -> None:
    session.all("delete from reading where path = ?", drop.path)


@perform.register
def _save_state(save: SaveState, session: SqlSession) -> None:
    if _newest_state(session, save.function) != save.expected:
        raise StateConflict(save.function)
    if save.turn:
        session.all("delete from state where function = ? and turn = ?", save.function, save.turn)
    if not save.expected:
        _add_state(session, save.function, BEGUN, {})
    _add_state(session, save.function, save.turn, save.value)
    session.all(
        "delete from state where function = ?1 and n <= (select n from state where function = ?1"
        " order by n desc limit 1 offset ?2)",
        *(save.function, MOST_STATES),
    )


@perform.register
def _begin_state(begin: BeginState, session: SqlSession) -> None:
    if _newest_state(session, begin.function):
        _add_state(session, begin.function, BEGUN, {})


@perform.register
def _rename_function(rename: RenameFunction, session: SqlSession) -> None:
    own = "insert into own_set select agent, ?2 from own_set where function = ?1 on conflict do nothing"
    session.all(own, rename.old, rename.new)
    session.all("delete from own_set where function = ?", rename.old)
    session.all("delete from pin where pattern = ?", rename.new)  # of an earlier function
    session.all("update pin set pattern = ?2 where pattern = ?1", rename.old, rename.new)
    if _newest_state(session, rename.new):  # of an earlier function with the new name
        _add_state(session, rename.new, BEGUN, {})
    states = (
        "insert into state (function, turn, value, at)"
        " select ?2, turn, value, at from state where function = ?1 order by n"
    )
    session.all(states, rename.old, rename.new)
    session.all("delete from state where function = ?", rename.old)


def _newest_state(session: SqlSession, function: str) -> int:
    return int(
        session.all("select coalesce(max(n), 0) from state where function = ?", function)[0][0]
    )


def _add_state(session: SqlSession, function: str, turn: str, value: object) -> None:
    now = session.clock.now()
    session.all(
        "insert into state (function, turn, value, at) values (?, ?, ?, ?)",
        function,
        turn,
        dump(value),
        now,
    )


@perform.register
def _save_tended(save: SaveTended, session: SqlSession) -> None:
    session.all(
        "insert into tended (run, function, kind, before, after, note, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(
            save.run,
            save.function,
            save.kind,
            save.before,
            save.after,
            save.note,
            session.clock.now(),
        ),
    )


@perform.register
def _undo_tended(undo: UndoTended, session: SqlSession) -> None:
    session.all("update tended set undone = true where n = ?", undo.n)


@perform.register
def _join_own_set(join: JoinOwnSet, session: SqlSession) -> None:
    sql = "insert into own_set values (?, ?) on conflict do nothing"
    session.all(sql, join.agent, join.function)


@perform.register
def _leave_own_set(leave: LeaveOwnSet, session: SqlSession) -> None:
    sql = "delete from own_set where agent = ? and function = ?"
    session.all(sql, leave.agent, leave.function)


@perform.register
def _save_pin(pin: SavePin, session: SqlSession) -> None:
    session.all("delete from pin where pattern = ?", pin.pattern)
    if pin.holds is not None:
        row = pin.pattern, int(pin.holds), session.clock.now()
        session.all("insert into pin (pattern, holds, at) values (?, ?, ?)", *row)
