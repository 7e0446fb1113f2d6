"""The common part of every subject of the store: writes as values, plans of them, errors, and the validation of rows.

Stored rows are untrusted, because a file may be tampered with even if its path and tables are right. So JSON must have
a known shape, and rows that the user relies on need a seal. `LostLease` is in `agent_core.base.errors` because it
passes through every room.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from agent_core.base.errors import KnapperError, StaleFile, StorageError, UsageError, WorkspaceError
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, field
from agent_core.base.seal import Sealer
from sandbox.wire.strict_json import (
    DEEPEST_ROW,
    LOOSE,
    Malformed,
    read_json,
    whole_characters,
    whole_value,
)

_LONGEST_ROW: Final = 1 << 30  # characters; a limit like SQLite's
_LONGEST_PAUSE_S: Final = 0.2
ANYTHING: Final = object
Shape: TypeAlias = Any  # Any: a type, a tuple of shapes, a list of one shape, or a dict of shapes; no type expresses it
"""The required shape of a value.

A type; a tuple of alternatives; a list with one shape for its items; a dict with these keys, where those with `?` are
optional, or with any keys if its only key is `*`.
"""


TEXTS: Final = (str, [str])
"""The shape of a block's value."""


SETTINGS: Final = {"preset?": str, "memory_class?": str, "paused_until?": (float, None)}
"""The shape of an agent's settings."""


class Misfit(StorageError):
    """A row does not have the shape that this program writes."""

    code = "misfit"


def parse_row(text: str, shape: Shape = ANYTHING) -> Any:  # Any: JSON
    """Return the parsed value of a row, which may be someone else's.

    Raises:
        Misfit: the row is not JSON, or has another shape.
    """
    try:
        value = read_json(text, LOOSE, most=_LONGEST_ROW, deepest=DEEPEST_ROW)
    except Malformed as error:
        raise Misfit(f"A row of the state file is not JSON: {error}.", fix=FIX) from error
    return fitting(value, shape)


def dump(value: object) -> str:
    """Return JSON as short as possible, in whole characters.

    Raises:
        StorageError: the value has no JSON form.
    """
    try:
        return whole_characters(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(
            f"A {type(value).__name__} cannot be stored as JSON: {error}."
        ) from error


def storable(value: object) -> object:
    """Return a value of a statement in whole characters, as every database needs them."""
    if isinstance(value, str):
        return whole_characters(value)
    return [*map(storable, value)] if isinstance(value, list) else value


def fitting(
    value: Any, shape: Shape, subject: str = "A row of the state file", fix: str = ""
) -> Any:  # Any: JSON
    """Return the value if it has this shape.

    Raises:
        Misfit: it has another.
    """
    if not _fits(value, shape):
        raise Misfit(f"{subject} is not what this program writes.", fix=fix or FIX)
    return value


FIX: Final = "Restore .knapper/state.db from a backup. This says what else does not fit: knapper storage check"


def fix_of(agent: str = "NAME") -> str:
    """Return what to do about an agent with a row that does not fit; nobody else's rows are touched by it."""
    return f"Keep what can be read: knapper agents export {agent}. Then remove it: knapper agents delete {agent}"


@contextmanager
def rows_of(agent: str) -> Iterator[None]:
    """Name the agent in the error about one of its rows: the others, and the file, are whole."""
    try:
        yield
    except Misfit as error:
        if error.fix != FIX:  # it names an agent already
            raise
        raise Misfit(
            f"The agent `{agent}` cannot be read: {error.message}", fix=fix_of(agent)
        ) from error


def _fits(value: Any, shape: Shape) -> bool:  # Any: JSON
    match shape:
        case tuple():
            fits = any(_fits(value, option) for option in shape)
        case list():
            fits = isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
        case {"*": inner}:
            fits = isinstance(value, dict) and all(_fits(item, inner) for item in value.values())
        case dict():
            fits = isinstance(value, dict) and all(
                _fits(value[name], inner)
                if (name := key.removesuffix("?")) in value
                else name != key
                for key, inner in shape.items()
            )
        case None:
            fits = value is None
        case _ if isinstance(value, bool):
            fits = shape in (bool, object)
        case _:
            fits = isinstance(value, (int, float) if shape is float else shape)
    return fits


def sign(sealer: Sealer, table: str, *values: str) -> str:
    """Return the seal of a row. Derived data and data that the user relies on are trusted only with their own seal."""
    return sealer.seal(f"row of {table}", *values[:-1], _digest(values[-1]))


def is_signed(sealer: Sealer, seal: str, table: str, *values: str) -> bool:
    """Return whether this user's program wrote the row."""
    return sealer.holds(seal, f"row of {table}", *values[:-1], _digest(values[-1]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Write:
    """A change of the store as a value: part of a journal append, or applied alone.

    All writes of one `append` or `apply` are one transaction: all of them happen, or none.
    """

    __slots__ = ()

    def stored_under(self) -> Iterable[str]:
        """Return the names of the agents under which it stores rows: those that an agent can have, or nothing is."""
        name = getattr(self, "agent", None)
        return () if name is None else (name,)


class Removal(Write):
    """A write that only takes away, also what an earlier version stored under a name that no agent can have."""

    __slots__ = ()

    def stored_under(self) -> Iterable[str]:
        """Return nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class SaveText(Write):
    """Store a text under its content hash (instructions, a list of functions shown, …)."""

    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a turn's journal. The caller sets `kind` and `payload`, the store the rest.

    `seq` rises through an agent's history; `n` counts from 0 within the turn. `is_imported`: it came from a file.
    """

    kind: str
    payload: dict[str, Any]  # Any: JSON
    n: int = -1
    turn: str = ""
    at: float = 0.0
    seq: int = 0
    is_imported: bool = False
    held: Any = field(init=False, repr=False, compare=False)
    """What `read_entry` made of the payload; None before. Any: this module does not know the classes."""

    def __post_init__(self) -> None:
        """Make all texts whole, so that the entry is in this process what it is in the store.

        Those of an entry from the store are: `parse_row` makes them so.
        """
        if not self.seq:
            object.__setattr__(self, "payload", whole_value(self.payload))
        object.__setattr__(self, "held", None)


def content_hash(text: str) -> str:
    """Return the content hash of a text: the SHA-256 of its UTF-8 form, in hex."""
    return hashlib.sha256(whole_characters(text).encode()).hexdigest()


class StoreClock(Protocol):
    """The part of `agent_core.base.clock.Clock` that the store needs, so that tests can pass a simpler one."""

    def now(self) -> float:
        """Return the seconds since the epoch."""

    def new_id(self) -> str:
        """Return a new UUIDv7."""


class ManifestConflict(StorageError):
    """Error raised when someone else changed this module meanwhile: nothing of the transaction was written."""

    code = "manifest-conflict"

    def __init__(self, module: str, expected: str | None, actual: str | None) -> None:
        message = (
            f"`{module}` changed meanwhile: expected {_name(expected)}, found {_name(actual)}."
        )
        super().__init__(
            message, fix="Read the module again and repeat the change on what is there now."
        )
        self.module, self.expected, self.found = module, expected, actual


class BlockConflict(ManifestConflict):
    """Error raised when someone else changed this block meanwhile: nothing was written. Version 0 means no block."""

    code = "block-conflict"

    def __init__(self, label: str, expected: int, actual: int) -> None:
        message = (
            f"The block `{label}` changed meanwhile: expected version {expected}, found {actual}."
        )
        StorageError.__init__(
            self, message, fix="Read the block again and repeat the change on what is there now."
        )
        self.module, self.expected, self.found = label, str(expected), str(actual)


class StateConflict(StorageError):
    """Error raised when another call of a function changed its state meanwhile: nothing was written."""

    code = "state-conflict"

    def __init__(self, function: str) -> None:
        message = f"Another call of `{function}` changed its state meanwhile, so nothing of this one was kept."
        super().__init__(message, fix="Call it again.")


class InboxFull(StorageError):
    """Error raised when too many events are waiting for the agent: this one was not accepted."""

    code = "inbox-full"

    def __init__(self, agent: str, limit: int) -> None:
        super().__init__(
            f"Agent `{agent}` already has {limit} events waiting.", fix="Send it again later."
        )
        self.agent, self.limit = agent, limit


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operation will do: its answer, and the writes and entries that are committed with the answer.

    `text` is for a model, `detail` for programs and people, `did` for the receipt of the turn. `replan` plans the same
    operation again, on what is stored then. `done` is called once the plan is on disk. `excluded` names functions that
    the next step should not offer.
    """

    text: str
    outcome: str = "returned"
    detail: object = field(default_factory=dict)
    writes: tuple[Write, ...] = ()
    entries: tuple[Entry, ...] = ()
    did: Receipt = field(default_factory=Receipt)
    excluded: frozenset[str] = frozenset()
    replan: Callable[[], Awaitable[Any]] | None = None  # Any: a plan of the same class
    done: Callable[[], None] = field(default=lambda: None, repr=False)


AnyPlan = TypeVar("AnyPlan", bound=Plan)


async def commit(
    plan: AnyPlan,
    record: Callable[[AnyPlan], Awaitable[object]],
    random: Random,
    refusal: Callable[[AnyPlan, KnapperError], AnyPlan],
    *,
    tries: int = 100,
) -> AnyPlan:
    """Commit a plan by `record`, in one transaction. Return the plan that is on disk.

    Where someone else was first, it is planned again, until `tries` failed. If it cannot be carried out, its `refusal`
    is recorded instead.
    """
    try:
        for tries_left in reversed(range(tries)):
            try:
                await record(plan)
                break
            except (ManifestConflict, StaleFile):
                if plan.replan is None or not tries_left:
                    raise
            # Wait for a random time; otherwise the other writer would win each time.
            await asyncio.sleep(
                random.uniform(0, min(0.002 * (tries - tries_left), _LONGEST_PAUSE_S))
            )
            plan = await plan.replan()
    except (ManifestConflict, WorkspaceError, UsageError, InboxFull) as error:
        plan = refusal(plan, error)
        await record(plan)
    plan.done()
    return plan


def _name(version: str | None) -> str:
    return f"version {version[:12]}" if version else "no such module"
