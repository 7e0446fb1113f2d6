"""The candidate: one function's text, its target module, and the policy under which it is judged.

Plain values; nothing here reads files or runs code.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .verdict import ReaderAnswer

Way = Literal["absent", "none", "joining", "calling", "importing", "file"]
"""When the user is asked for a missing grant.

In this order: after a function was made, never, before a candidate is accepted, before a call (of a saved function, or
of an imported one), or by an edit of the file.
"""


@dataclass(frozen=True, slots=True)
class GivenExample:
    """An example that was sent with the code: `call` and `expected` are Python source. It has no line."""

    call: str
    expected: str
    approx: float | None = None
    setup: ClassVar[tuple[str, ...]] = ()
    raises: ClassVar[str] = ""
    line: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A submitted function in its original form; `replaces` allows it to replace one with the same name.

    `file` is the file that its text is from, if any; `exact` means that its text must not be fixed. `asked` are calls
    whose results its author was asked to predict. `helpers` are functions that it contains under their own names and
    that are not offered. `around` is the new text of its whole module, if more than the function changes: it is written
    with it, and the plan has to compute it again when it is planned again. `answer` is an earlier
    reader's answer about its description; an author who `insists` holds on to a promise of the description that the
    code does not fulfill. `apart` are functions from which the author distinguished the previous version.
    """

    name: str
    code: str
    module: str
    reason: str = ""
    examples: tuple[GivenExample, ...] = ()
    replaces: bool = False
    description: str = ""
    file: str = ""
    exact: bool = False
    asked: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    around: str | None = None
    answer: ReaderAnswer | None = None
    insists: bool = False
    apart: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The name that problems use for the text: its file, or its name if its lines are not those of a file."""
        return self.file or f"{self.name or 'candidate'}.py"
