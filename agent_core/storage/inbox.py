"""What an event of the inbox holds, and the one way to read it.

The keys are named here for those who post events; `Inbound` has a field for each. What is missing, or of another type,
has its default: an earlier version wrote the event, or somebody else.
"""

from typing import Final

from agent_core.base.pictures import Picture
from agent_core.base.records import dataclass, field, replace

from .payload import Json, value_of

HEARD: Final = "heard"
"""The kind of an event that holds what another agent said."""
ONLY: Final = "only"
"""The key of an event for the agents that its sender may use; absent if the sender may use all."""
ALONE: Final = "alone"
"""The key of a message that gets a turn to itself, because its sender waits for the reply."""
HERE: Final = "here"
"""The key of a message whose sender runs its turn, with its own model, limits and answers, as long as it lives."""
CLIENT: Final = "client"
"""The key of an event for what came with it: functions of its sender, and how the reply is to be."""
ANSWERS: Final = "answers"
"""The key of a message for the answers to calls of such functions."""
CONTINUES: Final = "after"
"""The key of an event for the ID of the interrupted turn that it continues."""
POLICY: Final = "policy"
"""The key of an event for the policy of the turn that it begins."""
MODEL: Final = "model"
"""The key of a message for the model that its sender chose for it, by its name."""
MAX_STEPS: Final = "max_steps"
"""The key of a message for the limit of steps that its sender chose for its turn."""
EXPECTS: Final = "expects"
"""The key of an event for what the task that it begins will have to reach, as the user has seen it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventAnswer:
    """An answer in an event: by an agent to a question (`from_`, `state`), or by a client to a call (`id`)."""

    id: str = ""
    from_: str = ""
    state: str = ""
    text: str = ""
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Inbound:
    """An event taken from the inbox; `origin` says where it comes from, as JSON.

    A heartbeat has a `reason`, a login the time of the `last` one, and what another agent said its `speaker`. An event
    that an agent caused is `from_` it, in a `thread`, `hops` messages after the user's, and may need an answer to the
    question that it `owes`. One that begins an interrupted turn again counts its `cuts` and its `tries` in a row.
    """

    id: str
    kind: str
    origin: str = ""
    text: str = ""
    reason: str = ""
    last: float | None = None
    speaker: str = ""
    from_: str = ""
    thread: str = ""
    hops: int = 0
    owes: str = ""
    answers: tuple[EventAnswer, ...] = ()
    pictures: tuple[Picture, ...] = ()
    trace: str = ""
    only: tuple[str, ...] = ()
    alone: bool = False
    here: bool = False
    client: Json | None = None
    after: str = ""
    policy: Json | None = None
    expects: Json = field(default_factory=dict)
    model: str = ""
    max_steps: int = 0
    cuts: int = 0
    tries: int = 0

    @classmethod
    def of(cls, id: str, kind: str, payload: Json, origin: str = "") -> "Inbound":
        """Return the event with this payload."""
        own = {"id": id, "kind": kind, "origin": origin}
        inbound = value_of(cls, {**payload, **own}, is_lenient=True)
        assert inbound is not None, "what it needs is given"
        if payload.get(ONLY) and not inbound.only:  # it limits whoever sent it: then to nobody
            return replace(inbound, only=("",))
        return inbound
