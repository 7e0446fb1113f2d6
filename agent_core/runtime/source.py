"""Where the functions that a model can call come from, and what each kind of them adds to its agent.

A source has the functions of one kind for one agent: those of the workspace, of the program, of its memory, for its
colleagues, helpers, tools of MCP servers, functions of a client. Loop, session and turn know none of them by name, and
ask only those that something configures.
"""

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.limits import SpendingLimits
from agent_core.base.policy import DEFAULT, Policy
from agent_core.base.records import dataclass, field
from agent_core.registry.function import fits

from .allowed import withheld_by
from .turn import SplitCalls

if TYPE_CHECKING:
    from agent_core.base.messages import Call
    from agent_core.model.request import FunctionShown, Request
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from agent_core.storage import Entry, Inbound

    from .call_record import CallRecord, Done
    from .turn import Turn
    from .turn_end import Ended, GoOn


NOT_IN_A_PLAN: Final = (
    "`{name}` was not called: this turn is a plan, which only reads. Put it into your proposal."
)


@dataclass(frozen=True, slots=True)
class ModelFunction:
    """A function that the model can call: `call` takes the arguments and the record of a call, and closes the record.

    Calls are recorded with its `version`, if it has one. Functions that are not parallel run one after another.
    `snapshot` is the one from which a workspace function comes. `about` is the parameter that names the function which
    a call changes or makes, if it does that.
    """

    function: "Function"
    call: Callable[[dict[str, Any], "CallRecord"], Awaitable["Done"]]  # Any: JSON
    version: str | None
    is_parallel: bool = True
    snapshot: "Snapshot | None" = None
    about: str = ""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """What the file of an agent says: patterns of the functions, helpers and agents it may use, and how it works."""

    purpose: str = ""
    functions: tuple[str, ...] = ("*",)
    helpers: tuple[str, ...] = ("*",)
    talks_to: tuple[str, ...] = ("*",)
    persona: str = ""
    model: str = ""
    limits: SpendingLimits = field(default_factory=SpendingLimits)


NO_FILE: Final = AgentProfile()
"""The profile of an agent without a file: everything is allowed."""


class AgentFile:
    """What an agent's file says; during a turn, as it was at the start of the step."""

    def __init__(self, read: Callable[[], AgentProfile], place: Path | None = None) -> None:
        """Create the view; the file is read only while the folder `place` is there, if one is given."""
        self._read = read
        self._place = place
        self._seen: AgentProfile | None = None

    @property
    def profile(self) -> AgentProfile:
        """What the file says."""
        if self._seen is not None:
            return self._seen
        return self._read() if self._place is None or _is_there(self._place) else NO_FILE

    def function_patterns(self) -> Sequence[str]:
        """Return the patterns of the functions that the agent may call."""
        return self.profile.functions

    def helper_patterns(self) -> Sequence[str]:
        """Return the patterns of the helpers that the agent may call."""
        return self.profile.helpers

    def model(self) -> str:
        """Return the model that the file names, or an empty text."""
        return self.profile.model

    def refresh(self) -> None:
        """Read the file, and keep what it says until the next `refresh` or `release`."""
        self._seen = None
        self._seen = self.profile

    def release(self) -> None:
        """Forget what it said, because no turn is running."""
        self._seen = None


class ToolSource:
    """The functions of one kind that one agent's model can call, and what it adds to a turn of the agent."""

    place: Path | None = None
    """The file or folder that configures it: without that, it is not asked. None: it is always asked."""
    pinned: Collection[str] = ()
    """The names of its functions that belong to the program."""
    stays = False
    """Whether its functions are always shown, however many there are."""

    def only_reads(self, _name: str, /) -> bool:
        """Return whether a function keeps, makes and writes nothing, so that a plan may call it."""
        return False

    def names(self, _snapshot: "Snapshot", /) -> Iterable[str]:
        """Return the names of the functions that the model may call."""
        return ()

    def find(self, _name: str, _snapshot: "Snapshot", /) -> ModelFunction | None:
        """Return the function with this name, or None if it cannot be called."""
        return None

    async def refusal(self, _name: str, _snapshot: "Snapshot", /, *, grows: bool = True) -> str:
        """Return why a known function cannot be called, or an empty text, for a turn that `grows` functions or not."""
        return ""

    def offered(self, _snapshot: "Snapshot", /) -> Mapping[str, "Function"]:
        """Return what can be shown besides the snapshot; the same object until something changes."""
        return {}

    def withheld(self) -> Collection[str]:
        """Return its functions of the program that cannot be used now."""
        return ()

    @property
    def has_company(self) -> bool:
        """Whether calls may let other agents work on the turn's task, and spend what it may spend."""
        return False

    def section(self) -> str:
        """Return its part of the system message."""
        return ""

    def begin(self) -> Sequence["Entry"]:
        """Return what the user is told at the beginning of a turn."""
        return ()

    def look(self) -> None:
        """Take in what changed, before a turn and each of its further steps."""

    async def news(self, _turn: "Turn", /) -> Sequence["Entry"]:
        """Return what the model is told before a step of changes by others."""
        return ()

    def end(self) -> None:
        """The turn is over."""


class GuestSource(ToolSource):
    """What came with the event that began a turn: functions that its sender runs, and terms for the reply.

    A step that calls one ends the turn, and its answer begins another one.
    """

    fault_of: Callable[[Mapping[str, Any]], str] | None = None  # Any: JSON
    """Returns what its sender finds wrong with a reply that has the shape, or an empty text."""

    @property
    def shown(self) -> tuple["FunctionShown", ...]:
        """The functions as the model is shown them, next to the agent's own."""
        return ()

    @property
    def reply_tokens(self) -> int | None:
        """The limit of each reply, if it has one."""
        return None

    def opening(
        self, _inbound: "Inbound", _open_calls: Sequence["Call"], opening: Sequence["Entry"], /
    ) -> list["Entry"]:
        """Return the first entries of the turn, in which calls of an earlier one may be answered."""
        return [*opening]

    def must_fit(self, _room: int, /) -> None:
        """Check that the functions fit into `room` bytes.

        Raises:
            ModelError: they take more.
        """

    def request(self, request: "Request", /) -> "Request":
        """Return a request to the model with the sender's terms."""
        return request

    def split(self, calls: Sequence["Call"], _most: int, /) -> SplitCalls:
        """Split the calls of a reply; `most` is the limit of calls per reply."""
        return SplitCalls(calls)

    async def follow(self, _turn: "Turn", ended: "Ended", /) -> "GoOn | Ended":
        """Decide what follows a reply that would end the turn."""
        return ended


class ToolSources:
    """All sources of one agent, in the order in which a name is looked up, within what the agent's file allows."""

    def __init__(
        self,
        file: AgentFile,
        sources: Sequence[ToolSource] = (),
        welcome: "Callable[[Inbound], GuestSource] | None" = None,
        policy: Callable[[], Policy] = lambda: DEFAULT,
    ) -> None:
        """Create the sources; `welcome` makes one of what came with an event, and `policy` is that of the turn."""
        self._policy = policy
        self.guest: GuestSource | None = None
        """What came with the event that began the running turn."""
        self._welcome = welcome
        self._file = file
        self._sources = sources
        self._merged_from: list[object] = []
        self._merged: Mapping[str, Function] = {}

    def __iter__(self) -> Iterator[ToolSource]:
        """Yield the sources that are configured now."""
        for source in self._sources:
            if source.place is None or _is_there(source.place):
                yield source

    @property
    def profile(self) -> AgentProfile:
        """What the agent's file says; during a turn, as it was at the start of the step."""
        return self._file.profile

    @property
    def has_company(self) -> bool:
        """Whether other agents may work on a turn's task."""
        return any(source.has_company for source in self)

    def names(self, snapshot: "Snapshot") -> list[str]:
        """Return the names of all functions that can be called."""
        return [
            name for source in self for name in source.names(snapshot) if self._allows(source, name)
        ]

    def _allows(self, source: ToolSource, name: str) -> bool:
        """Return whether the policy of the turn lets the model call a function of a source."""
        policy = self._policy()
        if name in withheld_by(policy):
            return False
        return not policy.only_reads or source.only_reads(name)

    def find(self, name: str, snapshot: "Snapshot") -> ModelFunction | None:
        """Return the function with this name, or None if it cannot be called."""
        for source in self:
            if (function := source.find(name, snapshot)) is not None:
                return function if self._allows(source, name) else None
        return None

    async def refusal(self, name: str, snapshot: "Snapshot", *, grows: bool = True) -> str:
        """Return why a known function cannot be called, or an empty text, for a turn that `grows` functions or not."""
        for source in self:
            if why := await source.refusal(name, snapshot, grows=grows):
                return why
            if self._policy().only_reads and source.find(name, snapshot) is not None:
                return NOT_IN_A_PLAN.format(name=name)
        return ""

    def offered(self, snapshot: "Snapshot") -> Mapping[str, "Function"]:
        """Return what can be shown: the snapshot's functions, and those of other sources.

        The same object is returned until something changes. The snapshot's functions hide others of the same name.
        """
        others = [(source.stays, source.offered(snapshot)) for source in self]
        parts = [functions for stays, functions in others if functions and not stays]
        parts.append(snapshot.functions)
        parts += [functions for stays, functions in others if functions and stays]
        if len(parts) == 1:
            return snapshot.functions
        if [*map(id, parts)] != [*map(id, self._merged_from)]:
            self._merged_from = [*parts]
            self._merged = {name: part[name] for part in parts for name in part}
        return self._merged

    def staying(self, snapshot: "Snapshot") -> Collection[str]:
        """Return the names of the functions that are always shown."""
        kept = [source.offered(snapshot) for source in self if source.stays]
        return frozenset().union(*kept)

    def withheld(self) -> frozenset[str]:
        """Return the program's functions that cannot be used now."""
        configured = [*self]
        unusable = [source.pinned for source in self._sources if source not in configured]
        unusable += [source.withheld() for source in configured]
        return withheld_by(self._policy()).union(*unusable)

    def section(self) -> str:
        """Return what the sources add to the system message."""
        return "\n\n".join(filter(None, [source.section() for source in self]))

    def begin(
        self, inbound: "Inbound", open_calls: Sequence["Call"], opening: Sequence["Entry"]
    ) -> list["Entry"]:
        """Return the first entries of a turn: `opening`, with answers to open calls, and what the user is told."""
        self.guest = None
        if self._welcome and (open_calls or inbound.client is not None or inbound.answers):
            self.guest = self._welcome(inbound)
            opening = self.guest.opening(inbound, open_calls, opening)
        return [*opening, *(entry for source in self for entry in source.begin())]

    def split(self, calls: Sequence["Call"], most: int) -> SplitCalls:
        """Split the calls of a reply into those that run here and others; `most` is the limit of calls per reply."""
        return SplitCalls(calls) if self.guest is None else self.guest.split(calls, most)

    @property
    def has_short_replies(self) -> bool:
        """Whether who sent the message wants no more of a reply than was asked for."""
        return self.guest is not None and bool(self.guest.reply_tokens)

    async def follow(self, turn: "Turn", ended: "Ended") -> "GoOn | Ended":
        """Decide what follows a reply that would end the turn."""
        return ended if self.guest is None else await self.guest.follow(turn, ended)

    def look(self) -> None:
        """Take in what changed, before a turn and each of its further steps."""
        self._file.refresh()
        for source in self:
            source.look()

    async def news(self, turn: "Turn") -> list["Entry"]:
        """Return what the model is told before a step of changes by others."""
        return [entry for source in self for entry in await source.news(turn)]

    def end(self) -> None:
        """The turn is over: until the next one, what is asked is read anew."""
        self.guest = None
        self._file.release()
        for source in self:
            source.end()


class FunctionSight:
    """The workspace functions that an agent sees and may call: those that match its patterns, and its own set."""

    def __init__(
        self,
        patterns: Callable[[], Sequence[str]],
        own: Callable[[], Collection[str]] = frozenset,
        *,
        grows: bool = True,
    ) -> None:
        """Create the sight; `own` are always seen, and if it `grows`, so are the functions made in this turn."""
        self._patterns = patterns
        self._own = own
        self._grows = grows
        self._last: tuple[object, object, Snapshot | None] = (None, None, None)

    def of(self, snapshot: "Snapshot", made: frozenset[str] = frozenset()) -> "Snapshot":
        """Return the visible part of a snapshot; `made` are the functions that the agent made in this turn.

        The same snapshot gives the same object.
        """
        patterns = tuple(self._patterns())
        if "*" in patterns:
            return snapshot
        own = frozenset(self._own()) | (made if self._grows else frozenset())
        if (
            self._last[0] is not snapshot
            or self._last[1] != (patterns, own)
            or self._last[2] is None
        ):
            seen = snapshot.seen(lambda function: function.name in own or fits(patterns, function))
            self._last = (snapshot, (patterns, own), seen)
            return seen
        return self._last[2]


def _is_there(place: Path) -> bool:
    """Return whether a file or folder is there, even if it cannot be read: then its reader has to say so."""
    try:
        os.lstat(place)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True
