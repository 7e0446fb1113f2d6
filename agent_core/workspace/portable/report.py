"""The report of an import (converted and omitted items, with reasons), and the errors of agent files."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import KnapperError
from agent_core.base.matching import did_you_mean
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import one_line

if TYPE_CHECKING:
    from agent_core.storage import WholeEvent

SHOWN: Final = 20
"""The number of inbox events that are shown."""
_LINES: Final = 300
_OTHERS: Final = ("more of other kinds", "they are too many to name")


@dataclass(slots=True)
class AgentReport:
    """The report for one agent of a file; `waiting` is the number of its events, `inbox` has the first of them."""

    kind: str
    name: str
    mapped: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: Counter[tuple[str, str]] = field(default_factory=Counter)
    inbox: list[dict[str, str]] = field(default_factory=list)
    waiting: int = 0

    def took(self, kind: str, became: str, count: int = 1) -> None:
        """Count items of the file that were converted."""
        _add(self.mapped, (kind, became), count)

    def leaves(self, kind: str, why: str, count: int = 1) -> None:
        """Count items of the file that were left out."""
        _add(self.left, (kind, why), count)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published document."""
        return {
            "kind": self.kind,
            "agent": self.name,
            "mapped": [
                {"what": kind, "as": became, "count": n}
                for (kind, became), n in self.mapped.items()
            ],
            "unmapped": [
                {"what": kind, "why": why, "count": n} for (kind, why), n in self.left.items()
            ],
            "waiting": self.waiting,
            "inbox": self.inbox,
        }


def _add(lines: Counter[tuple[str, str]], key: tuple[str, str], count: int) -> None:
    """Count under a separate line or, if there are too many lines, under one for all others."""
    if count:
        lines[key if key in lines or len(lines) < _LINES else _OTHERS] += count


def waiting_of(inbox: Sequence["WholeEvent"]) -> list[dict[str, str]]:
    """Return the first events of an inbox, each with its kind and its text on one line."""
    rows = []
    for event in inbox[:SHOWN]:
        said = event.payload if isinstance(event.payload, dict) else {}
        text = str(said.get("text") or said.get("reason") or "")
        rows.append({"kind": one_line(event.kind, 40), "text": one_line(text)})
    return rows


def agent_name(name: str) -> str:
    """Return a valid agent name that is similar to this one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:64] or "imported"


class AgentFileError(KnapperError):
    """An error in an agent file; the message says where."""

    code = "agent-file"

    def __init__(
        self, where: str, problem: str, fix: str = "The shape is described in docs/agent-files.md."
    ) -> None:
        self.where, self.what = where, problem
        super().__init__(f"{where or 'the file'}: {problem}.", fix=fix)


class AgentExists(KnapperError):
    """An error for a name that an agent already has; nothing is overwritten."""

    code = "agent-exists"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is an agent `{name}` already.",
            fix="Choose another name: --as NAME, or `name` from a program.",
        )


class NoAgent(KnapperError):
    """An error for a name that no agent has."""

    code = "no-agent"

    def __init__(self, name: str, known_names: list[str]) -> None:
        names = (
            f"There are: {', '.join(known_names[:20])}."
            if known_names
            else "No agent yet. Next: knapper run"
        )
        super().__init__(f"There is no agent `{name}`.", fix=did_you_mean(name, known_names, names))
