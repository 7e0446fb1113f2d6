"""A finding: what is wrong, where, and how to fix it. A value that many packages return.

Problems are expected and come in numbers, so they are data and not exceptions. The JSON form is a contract: fields may
be added, but never changed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["refuses", "warns"]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file, or in a text without one (`path` is empty). Lines and columns count from 1; 0 means all."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        return f"line {place}" if place and not self.path else place


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence that a reader of a finding can check: a `call` with its results, or a `fact`, such as the line at issue.

    `expected` is the result that was promised for the call; empty if none was.
    """

    fact: str = ""
    call: str = ""
    returned: str = ""
    expected: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the published form: the parts that are not empty."""
        return {key: text for key, text in asdict(self).items() if text}


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: `code` is stable; `message` and `fix` are sentences for the user and the model."""

    code: str
    message: str
    where: Place
    fix: str | None = None
    severity: Severity = "refuses"
    evidence: tuple[Evidence, ...] = ()

    def __str__(self) -> str:
        advice = f" — {self.fix}" if self.fix else ""
        return f"{f'{self.where} {self.code}'.lstrip()}: {self.message}{advice}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Problem":  # Any: JSON
        """Return the problem from its published form."""
        where = Place(data["path"], data.get("line") or 0, data.get("column") or 0)
        evidence = tuple(Evidence(**row) for row in data.get("evidence") or ())
        return cls(data["code"], data["message"], where, data.get("fix"), data.get("severity", "refuses"), evidence)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published form of the problem."""
        return {
            "code": self.code,
            "message": self.message,
            "fix": self.fix,
            "path": self.where.path,
            "line": self.where.line,
            "column": self.where.column,
            "severity": self.severity,
            **({"evidence": [row.to_json() for row in self.evidence]} if self.evidence else {}),
        }
