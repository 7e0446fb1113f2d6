"""What is told of an import: what became what, and what was left out and why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..storage.whole import WholeEvent
from ..untrusted import one_line

SHOWN: Final = 20
"""Events of an inbox that are shown."""


@dataclass(slots=True)
class Report:
    """What came of one agent of a file; so many events are `waiting`, the first of them are in `inbox`."""

    kind: str
    name: str
    mapped: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: Counter[tuple[str, str]] = field(default_factory=Counter)
    inbox: list[dict[str, str]] = field(default_factory=list)
    waiting: int = 0

    def took(self, what: str, became: str, count: int = 1) -> None:
        """So many of the file's became something here."""
        if count:
            self.mapped[what, became] += count

    def leaves(self, what: str, why: str, count: int = 1) -> None:
        """So many of the file's were left out."""
        if count:
            self.left[what, why] += count

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """The published shape."""
        return {
            "kind": self.kind,
            "agent": self.name,
            "mapped": [{"what": what, "as": became, "count": n} for (what, became), n in self.mapped.items()],
            "unmapped": [{"what": what, "why": why, "count": n} for (what, why), n in self.left.items()],
            "waiting": self.waiting,
            "inbox": self.inbox,
        }


def waiting_of(inbox: Sequence[WholeEvent]) -> list[dict[str, str]]:
    """The first events of an inbox, each with its kind and what it says, on one line."""
    return [
        {
            "kind": one_line(event.kind, 40),
            "text": one_line(str(event.payload.get("text") or event.payload.get("reason") or "")),
        }
        for event in inbox[:SHOWN]
    ]
