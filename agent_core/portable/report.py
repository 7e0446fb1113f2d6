"""What is told of an import: what became what, and what was left out and why."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Report:
    """What came of one agent of a file."""

    kind: str
    name: str
    mapped: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: Counter[tuple[str, str]] = field(default_factory=Counter)

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
        }
