"""The source of one module; the only part of a workspace that the sandbox reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class SourceText(Protocol):
    """A protocol for a module's source; any object with these four attributes works."""

    @property
    def module(self) -> str:
        """The dotted name without the `functions.` prefix."""

    @property
    def text(self) -> str:
        """The source text."""

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


@dataclass(frozen=True, slots=True)
class ApprovedCode:
    """A module of which a worker gets only some top-level statements, or only some names that they import.

    Whatever code of the worker looks for, it finds nothing else of the module: no other statement, no docstring, no
    source text, and no line number that depends on them. `version` names the text and the choice.
    """

    module: str
    text: str
    path: str
    version: str
    statements: tuple[tuple[int, int], ...]  # as `wire.statements.StatementPart`


Modules: TypeAlias = Mapping[str, SourceText]  # importable as functions.<module>; looked up by name
