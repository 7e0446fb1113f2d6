"""Functions of other programs: what the core knows of them, by whatever protocol they are called.

An extension adds them at the hook `FOREIGN`, by the name of the file of a workspace that names the programs. Nothing of
it is opened in a workspace without that file.
"""

import ast
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from agent_core.base.extensions import FOREIGN, offers
from agent_core.base.records import dataclass

if TYPE_CHECKING:
    from agent_core.access.secrets import Secrets
    from agent_core.base.pictures import PictureFile
    from agent_core.registry.function import Function
    from sandbox import Outcome

OnProgress: TypeAlias = Callable[[float, float | None, str], None]
OnPicture: TypeAlias = "Callable[[PictureFile], None]"


class CallForeign(Protocol):
    """Calls a function of another program."""

    def __call__(
        self,
        arguments: dict[str, Any],  # Any: JSON
        on_progress: OnProgress,
        on_picture: OnPicture = ...,
        /,
    ) -> "Awaitable[Outcome]":
        """Call it with checked arguments; `on_picture` gets the pictures of its result."""


@dataclass(frozen=True, slots=True)
class ForeignFunction:
    """A function of another program, as this user approved it; `call` takes arguments that were checked.

    `program` is where a result comes from, in words for a model; `reached` is the same in the form of receipts.
    """

    function: "Function"
    program: str
    reached: str
    call: CallForeign


NO_FUNCTIONS: Final[Mapping[str, ForeignFunction]] = MappingProxyType({})


class ForeignLibrary(Protocol):
    """The functions of the programs that one file names."""

    def functions(self) -> Mapping[str, ForeignFunction]:
        """Return the callable functions, by name. The same object is returned until something changes."""

    async def aclose(self) -> None:
        """Close all connections."""


OpenForeign: TypeAlias = "Callable[[Path, Secrets], ForeignLibrary]"
"""What an extension adds, by the name of the file in a workspace: it gets the folder of that."""


class ForeignSource:
    """The functions that one extension adds to a workspace."""

    def __init__(self, place: Path, open_library: Callable[[], ForeignLibrary]) -> None:
        self.place = place
        """The file that names the programs: without it, none is looked for."""
        self._open = open_library

    @cached_property
    def library(self) -> ForeignLibrary:
        """The functions; its connections are open from here on."""
        return self._open()

    def functions(self) -> Mapping[str, ForeignFunction]:
        """Return the callable functions, by name. The same object is returned until something changes."""
        return self.library.functions() if self.place.exists() else NO_FUNCTIONS

    async def aclose(self) -> None:
        """Close all connections."""
        if "library" in vars(self):
            await self.library.aclose()


class ForeignSources:
    """The functions of other programs in a workspace, of all extensions that add some."""

    def __init__(self, root: Path, secrets: "Secrets") -> None:
        self._merged_from: list[Mapping[str, ForeignFunction]] = []
        self._merged = NO_FUNCTIONS
        self.by_file: Mapping[str, ForeignSource] = {
            file: ForeignSource(root / file, partial(open_library, root, secrets))
            for file, open_library in _openers().items()
        }

    def functions(self) -> Mapping[str, ForeignFunction]:
        """Return the callable functions, by name; the same object until something changes."""
        parts = [part for source in self.by_file.values() if (part := source.functions())]
        if [*map(id, parts)] != [*map(id, self._merged_from)]:
            self._merged_from = parts
            self._merged = {name: part[name] for part in reversed(parts) for name in part}
        return self._merged

    async def aclose(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(source.aclose() for source in self.by_file.values()))


def names_programs(root: Path) -> bool:
    """Return whether a file of a workspace names other programs."""
    return any((root / file).exists() for file in _openers())


def stub(function: "Function") -> str:
    """Return a stub in place of the source of a foreign function, which is not available."""
    arguments = ast.arguments([], [], None, [], [], ast.arg("arguments"), [])
    body: list[ast.stmt] = [ast.Expr(ast.Constant(function.description))]
    node = ast.FunctionDef(function.name, arguments, body, [], lineno=1, col_offset=0)
    return ast.unparse(node)


def _openers() -> Mapping[str, OpenForeign]:
    return offers(FOREIGN)
