"""One module's source as the host knows it. The sandbox reads it and nothing else of a workspace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class SourceText(Protocol):
    """The facts that the sandbox needs about a module. Any object with these four attributes is accepted."""

    @property
    def module(self) -> str:
        """The dotted name without the `functions.` prefix."""

    @property
    def text(self) -> str:
        """The source itself."""

    @property
    def path(self) -> str:
        """The path that tracebacks show, such as `functions/web/pages.py`."""

    @property
    def version(self) -> str:
        """The SHA-256 of the text, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class Code:
    """One module's source: `module` is `web.pages`, `path` is `functions/web/pages.py`, `version` names the text."""

    module: str
    text: str
    path: str
    version: str


Modules: TypeAlias = Mapping[str, SourceText]  # what can be imported as functions.<module>; looked up, never walked
