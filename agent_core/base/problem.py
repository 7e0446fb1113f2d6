"""A finding: what is wrong, where, and how to fix it. A value that many packages return.

Problems are expected and come in numbers, so they are data and not exceptions. The JSON form is a contract: fields may
be added, but never changed. What pydantic finds is worded here, too.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from .records import dataclass
from .untrusted import one_line

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
        texts = {
            "fact": self.fact,
            "call": self.call,
            "returned": self.returned,
            "expected": self.expected,
        }
        return {key: text for key, text in texts.items() if text}


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
        return cls(
            data["code"],
            data["message"],
            where,
            data.get("fix"),
            data.get("severity", "refuses"),
            evidence,
        )

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


MORE: Final = "more-problems"
"""The code of the sentence about problems that are not listed."""
MAX_PROBLEMS: Final = 50
"""The problems of one function that are told."""


def first_problems(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the first problems, at least one of each code and severity, and a sentence about the rest."""
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    kinds = set[tuple[str, Severity]]()
    told: list[Problem] = []
    for at, problem in enumerate(problems):
        kind = problem.code, problem.severity
        if at < MAX_PROBLEMS or kind not in kinds:
            told.append(problem)
            kinds.add(kind)
    left = len(problems) - len(told)
    message, where = (
        f"there are {left:,} more problems like these, which are not listed",
        Place(problems[0].where.path),
    )
    rest = Problem(
        MORE, message, where, "fix these first", "warns", (Evidence(f"{len(problems):,} in all"),)
    )
    return (*told, rest) if left else tuple(told)


class ProblemsByLine:
    """The problems of a text, to be looked up for each of its functions."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._problems = sorted(
            problems, key=lambda problem: problem.where.line
        )  # in order within a line

    def between(self, first: int, last: int) -> tuple[Problem, ...]:
        """Return the problems from a line to another one, by line."""
        start = bisect_left(self._problems, first, key=lambda problem: problem.where.line)
        end = bisect_right(self._problems, last, key=lambda problem: problem.where.line)
        return tuple(self._problems[start:end])


# The value that a field expected, in our own words instead of pydantic's.

_KINDS: Final = {
    "string_type": "a text",
    "string_unicode": "a text of whole characters",
    "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} item",
}


def expected_value(error: Any) -> str:  # Any: one of pydantic's error details
    """Return the kind of value that the field accepts."""
    form = _KINDS.get(error["type"])
    return form.format(**error.get("ctx", {})) if form else str(error["msg"])


def misfit_sentence(error: Any) -> str:  # Any: one of pydantic's error details
    """Return a sentence with the expected and the actual value."""
    if error["type"] == "missing":
        return "expected it, and it is missing"
    if error["type"] == "extra_forbidden":
        return "expected no such field"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return f"expected {expected_value(error)}, got {_describe_value(error['input'])}"


def _describe_value(value: Any) -> str:  # Any: a value from a file
    if isinstance(value, str):
        return f"the text `{one_line(value, 40)}`" if value else "an empty text"
    if isinstance(value, list | tuple | dict):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return "a very large number"
    return one_line(str(value), 40)
