"""What wants to join: one function's text, where it should live, and the policy it is judged under.

Plain values; nothing here reads a file or runs a line.
"""

from dataclasses import dataclass
from typing import Literal

Policy = Literal["agent", "human", "import"]


@dataclass(frozen=True, slots=True)
class GivenExample:
    """An example that came beside the code: `call` and `expected` are Python in text."""

    call: str
    expected: str
    approx: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function that wants to join, as it was sent; `replaces` says that one of that name may go for it.

    `file` is where its text stands, if it was read from one; `exact` says that its text is not to be mended.
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

    @property
    def path(self) -> str:
        """What problems call the text: its file, or its name while its lines are not yet those of a file."""
        return self.file or f"{self.name or 'candidate'}.py"
