"""A cache of compiled modules: code objects from a compile-only worker, reused for later workers.

The host never interprets these bytes. A compile-only worker runs no line of the code, so its result (the bytes and
the imported names) is as trustworthy as the compiler.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from weakref import WeakValueDictionary

from ..code import ApprovedCode, Modules, SourceText
from ..outcome import Failure, Frame, Killed, Outcome, Raised, TimedOut
from ..wire.caps import MOST_IMPORTS, MOST_MESSAGE
from ..wire.claims import SentText
from ..wire.protocol import Frame as Message
from ..wire.statements import Places

ROOT = "functions"
_MAX_KEPT = 10_000
_MAX_CLOSURE = 500


@dataclass(frozen=True, slots=True)
class Compiled:
    """A module's compiled code, opaque to the host, and the names in its import statements.

    `places` are those of its nodes in the text, if only some statements were compiled.
    """

    message: Message
    imports: tuple[str, ...]
    places: Places = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UncompilableModule:
    """A module that cannot be compiled. `error` is the class of the exception: of a mistake, or of a text too large."""

    path: str
    line: int
    reason: str
    text: str
    error: str = "SyntaxError"

    @property
    def message(self) -> Message:
        """The message to a worker that imports the module."""
        return {"kind": "broken", "path": self.path, "line": self.line, "message": self.reason}

    @property
    def outcome(self) -> Outcome:
        """The outcome of a call of the module."""
        frame = Frame(self.path, self.line, "<module>", SentText.of(self.text).line(self.line))
        return Raised(
            Failure(self.error, f"{self.reason} ({self.path}, line {self.line})", (frame,)), "", 0.0
        )


Compile: TypeAlias = Callable[
    [Message], Awaitable[Message | Killed | TimedOut]
]  # in a compile-only worker


class CompiledCache:
    """An LRU cache of compiled modules by the version of their text."""

    def __init__(self, compile_: Compile) -> None:
        self._compile = compile_
        self._kept: OrderedDict[tuple[str, str, str], Compiled | UncompilableModule] = OrderedDict()
        self._compiling: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def get(self, source: SourceText) -> Compiled | UncompilableModule | Killed | TimedOut:
        """Return the module's code, compiled if necessary: once, and those who wait for it go on in their order."""
        key = (source.version, source.path, source.module)
        async with self._compiling.setdefault(key, asyncio.Lock()):
            cached = self._kept.get(key)
            if cached is None:
                return await self._compiled(source, key)
            self._kept.move_to_end(key)
            return cached

    async def _compiled(
        self, source: SourceText, key: tuple[str, str, str]
    ) -> Compiled | UncompilableModule | Killed | TimedOut:
        module = f"{source.module}.__init__" if _is_package(source) else source.module
        job: Message = {
            "kind": "compile",
            "module": module,
            "path": source.path,
            "text": source.text,
        }
        if isinstance(source, ApprovedCode):
            job["statements"] = list(source.statements)
        compiled: Compiled | UncompilableModule
        match await self._compile(job):
            case Killed() | TimedOut() as outcome:
                return outcome
            case {
                "kind": "code",
                "code": str(code),
                "imports": list(imports),
                "places": list(places),
            } if len(imports) <= MOST_IMPORTS and all(map(_is_row, places)):
                message = {
                    "kind": "code",
                    "path": source.path,
                    "code": code,
                    "is_package": _is_package(source),
                }
                compiled = Compiled(
                    message, tuple(name for name in imports if isinstance(name, str)), places
                )
            case {
                "kind": "broken",
                "line": int(line),
                "message": str(reason),
                "is_deep": bool(is_deep),
            } if len(reason) <= MOST_MESSAGE:
                error = "RecursionError" if is_deep else "SyntaxError"
                compiled = UncompilableModule(source.path, line, reason, source.text, error)
            case {"kind": "raised", "type": str(kind)}:
                reason = f"too large to be compiled: {kind}"
                compiled = UncompilableModule(source.path, 0, reason, source.text, "MemoryError")
            case _:
                return Killed("the worker that compiled it gave no code", "", 0.0)
        self._kept[key] = compiled
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return compiled

    def places_of(self, source: SourceText) -> Places:
        """Return the places of a module that was compiled before; an empty list if its code has the text's lines."""
        compiled = self._kept.get((source.version, source.path, source.module))
        return compiled.places if isinstance(compiled, Compiled) else []

    async def closure(self, modules: Modules, module: str) -> dict[str, Compiled]:
        """Return the module and all workspace modules that it imports, directly or not, compiled.

        As always in Python, the packages that contain a module are imported with it.
        """
        closure: dict[str, Compiled] = {}
        waiting = [module, *(name for name in parents(module) if name in modules)]
        seen = set(waiting)
        while waiting and len(closure) < _MAX_CLOSURE:
            name = waiting.pop()
            source = modules.get(name)
            compiled = None if source is None else await self.get(source)
            if not isinstance(compiled, Compiled):
                continue
            closure[name] = compiled
            imports = [
                name.removeprefix(f"{ROOT}.")
                for name in compiled.imports
                if name.startswith(f"{ROOT}.")
            ]
            neighbors = [
                name for whole in imports for name in (*parents(whole), whole) if name in modules
            ]
            fresh = [name for name in neighbors if name not in seen]
            seen.update(fresh)
            waiting += fresh
        return closure


def imported_names(closure: Mapping[str, Compiled]) -> set[str]:
    """Return every name that an import statement of the closure mentions."""
    return {name for compiled in closure.values() for name in compiled.imports}


def parents(name: str) -> list[str]:
    """Return the folders that contain a module: `a` and `a.b` for `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _is_row(row: object) -> bool:
    """Return whether this has the shape of a row of `Places`."""
    return isinstance(row, list) and bool(row) and all(isinstance(line, int) for line in row)


def _is_package(source: SourceText) -> bool:
    return source.path.endswith("/__init__.py")
