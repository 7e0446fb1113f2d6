"""Pins: what a person keeps from being changed by agents, and by programs that have a token of their own.

A pin names a function, a module or a pattern. What it protects is checked where a change is carried out, on the texts
before and after, so it does not matter by which way the change came.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.matching import LONGEST_PATTERN, did_you_mean
from agent_core.base.offload import aside
from agent_core.base.problem import Problem
from agent_core.base.records import dataclass
from agent_core.base.untrusted import one_line
from agent_core.registry.depends import ModuleParts
from agent_core.registry.function import fits
from agent_core.storage import FunctionStore, SavePin

from .plan import FileChange

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

HAS_OWN_TOKEN: Final = ContextVar("agent_core.functions.has_own_token", default=False)
"""Whether a program asks that has a token of its own, which is not the person's."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """What a pin names: a function, a module or a pattern, with the functions that it holds now."""

    pattern: str
    holds: bool
    functions: tuple[str, ...]


class PinnedFunction(WorkspaceError):
    """A change by an agent, or a program with its own token, that would change what a person pinned."""

    code = "pinned"

    def __init__(self, names: Sequence[str]) -> None:
        shown = ", ".join(f"`{name}`" for name in names)
        message = f"{shown} {'is' if len(names) == 1 else 'are'} pinned: only the user changes it."
        super().__init__(message, fix=PROPOSE)


PROPOSE: Final = (
    "Propose it: a new version that passes is kept, and the user joins it with `/join NAME`;"
    " for anything else tell them what should change and why."
)


class Pins:
    """The pins of a workspace."""

    def __init__(
        self,
        store: FunctionStore,
        snapshot: Callable[[], "Snapshot"],
        is_mine: Callable[["Function"], Awaitable[bool]] | None,
    ) -> None:
        """Create the pins; `is_mine` says whether a person wrote a function, if those are pinned from the start."""
        self._store = store
        self._snapshot = snapshot
        self._is_mine = is_mine

    async def holding(self, functions: Iterable["Function"]) -> frozenset[str]:
        """Return the names of those that are pinned. A pin of exactly one function decides before wider ones."""
        pins = await self._store.pins()
        wide = [pattern for pattern, holds in pins.items() if holds]
        names = set[str]()
        for function in functions:
            holds = pins.get(function.name)
            if holds is None:
                holds = any(_is_named(pattern, function) for pattern in wide)
                holds = holds or (self._is_mine is not None and await self._is_mine(function))
            if holds:
                names.add(function.name)
        return frozenset(names)

    async def holds(self, name: str) -> bool:
        """Return whether there is a function with this name that is pinned."""
        function = self._snapshot().functions.get(name)
        return function is not None and bool(await self.holding([function]))

    async def pin(self, pattern: str) -> Pinned:
        """Pin a function, a module or what fits a pattern.

        Raises:
            UsageError: there is no such function.
        """
        self.require_person()
        functions = self._named(pattern)
        await self._store.apply([SavePin(pattern, holds=True)])
        return Pinned(pattern, True, tuple(function.name for function in functions))

    async def unpin(self, pattern: str) -> Pinned:
        """Let go what was pinned by this name, module or pattern; or one function that a wider pin holds.

        Raises:
            UsageError: it is not pinned.
        """
        self.require_person()
        functions = await self._pinned_by(pattern)
        await self._store.apply([SavePin(pattern, holds=None)])
        if len(functions) == 1 and await self.holding(functions):
            await self._store.apply([SavePin(functions[0].name, holds=False)])
        held = await self.holding(functions)
        freed = tuple(function.name for function in functions if function.name not in held)
        return Pinned(pattern, False, freed)

    async def require_free(self, changes: Sequence[FileChange], snapshot: "Snapshot") -> None:
        """Check that a change leaves every pinned function as it is, with what of its module is its own.

        Raises:
            PinnedFunction: it does not.
        """
        texts = {change.module: change for change in changes}
        touched = [function for function in snapshot.functions.values() if function.module in texts]
        names = await self.holding(touched)
        lost = [
            function.name
            for function in touched
            if function.name in names
            and await aside(
                len(snapshot.modules[function.module].text),
                _is_changed,
                function,
                snapshot.modules[function.module].text,
                texts[function.module],
            )
        ]
        if lost:
            raise PinnedFunction(sorted(lost))

    def _fitting(self, pattern: str) -> Sequence["Function"]:
        functions = self._snapshot().functions
        return [
            functions[name] for name in sorted(functions) if _is_named(pattern, functions[name])
        ]

    def _named(self, pattern: str) -> Sequence["Function"]:
        """Return the functions that a pattern names.

        Raises:
            UsageError: there are none.
        """
        snapshot = self._snapshot()
        if named := self._fitting(pattern):
            return named
        why = "is longer than a pattern can be" if len(pattern) > LONGEST_PATTERN else "fits none"
        known = [*snapshot.functions, *snapshot.modules]
        raise UsageError(
            f"There is no function or module `{one_line(pattern, 80)}`, and as a pattern it {why}.",
            fix=did_you_mean(pattern, known, "Next: knapper functions list"),
        )

    async def _pinned_by(self, pattern: str) -> Sequence["Function"]:
        """Return the functions that a pin of this name holds, if it can be let go.

        Raises:
            UsageError: it is not pinned.
        """
        pins = await self._store.pins()
        if pins.get(pattern):  # what it named may be gone
            return self._fitting(pattern)
        functions = self._named(pattern)
        if len(functions) == 1 and await self.holding(functions):
            return functions
        listed = [f"`{one_line(name, 80)}`" for name, holds in pins.items() if holds]
        fix = f"Pinned are: {', '.join(listed)}." if listed else "Nothing is pinned."
        raise UsageError(f"`{one_line(pattern, 80)}` is not pinned.", fix=fix)

    def require_person(self) -> None:
        """Check that a person asks.

        Raises:
            UsageError: a program asks, with a token of its own.
        """
        if HAS_OWN_TOKEN.get():
            raise UsageError(
                "This is for the user to do, and this token is not theirs.",
                fix="Type it at the prompt, in a shell or on the page.",
            )


def _is_named(pattern: str, function: "Function") -> bool:
    """Return whether a pattern names a function, or a module that it is in."""
    return fits([pattern], function) or f"{function.module}.".startswith(f"{pattern}.")


def _is_changed(function: "Function", text: str, change: FileChange) -> bool:
    before = _own_lines(function.name, text, change.module)
    return change.text is None or before != _own_lines(function.name, change.text, change.module)


def _own_lines(name: str, text: str, module: str) -> Sequence[str]:
    """Return the lines of a function and of what it uses of its module, without the other functions there."""
    parts = ModuleParts.of(text, module=module)
    if isinstance(parts, Problem):
        return [text]
    others = {*parts.public} - {name}
    own = parts.lines(parts.needed({name}, others))
    return [line for at, line in enumerate(parts.text.lines, 1) if at in own]
