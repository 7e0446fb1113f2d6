"""The candidate: one function's text, where it belongs, and the policy it is judged under.

Plain values; nothing here reads a file or runs a line.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:  # its module knows models, which a candidate does not
    from .verdict import ReaderAnswer

Policy = Literal["agent", "human", "import"]
Way = Literal["absent", "none", "joining", "calling", "importing", "file"]
"""The way the user is asked: when a function that is not there yet has been made, not at all, before a candidate is
accepted, before a call (of what was saved or is imported), or manually in the file."""


@dataclass(frozen=True, slots=True)
class GivenExample:
    """An example that was sent next to the code: `call` and `expected` are Python as text. It stands on no line."""

    call: str
    expected: str
    approx: float | None = None
    setup: ClassVar[tuple[str, ...]] = ()
    raises: ClassVar[str] = ""
    line: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A submitted function, as it was sent; `replaces` allows it to replace one of the same name.

    `file` is where its text stands, if it was read from one; `exact` says that its text is not to be fixed. `asked` are
    the calls whose results its author was asked to predict. `helpers` are functions that come along by their own name
    and are not offered. `around` is the text of its module if that is not the current one.
    `answer` is what a reader said of its description before; an author who `insists` stands by a promise beyond the
    code. `apart` are functions that an author told the version before it apart from.
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
    answer: "ReaderAnswer | None" = None
    insists: bool = False
    apart: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The name that problems use for the text: its file, or its name while its lines are not yet those of a
        file.
        """
        return self.file or f"{self.name or 'candidate'}.py"
