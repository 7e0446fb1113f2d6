"""The ground that a change stands on: the files as they are now, taken before anything is planned.

A save that nobody has seen yet is taken first; one that was rejected, or that changed the function itself, is not
written over.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from sandbox.lines import lines_of

from ..errors import StaleFile, WorkspaceError
from ..registry.registry import Registry
from ..registry.snapshot import Snapshot
from ..registry.source import Source, path_of, read_file
from ..registry.spans import Text
from .conflict import written_lines
from .plan import Plan

CatchUp = Callable[[str], Awaitable[None]]
"""Take what a file, named by its path, is now, whoever wrote it."""
Replan = Callable[[], Awaitable[Plan]]
Late = Callable[[WorkspaceError], Awaitable[Plan]]
"""What becomes of a plan that came too late."""


class Ground:
    """Sees to it that a plan is made on what the files are."""

    def __init__(self, root: Path, registry: Registry, module_bytes: int, catch_up: CatchUp) -> None:
        self.registry = registry
        self._folder = root / "functions"
        self._limit = module_bytes
        self._catch_up = catch_up

    async def settled(self, module: str, name: str, before: Snapshot) -> Snapshot:
        """The snapshot that has what the module's file is now: a save that nobody has seen yet is taken first.

        Raises:
            WorkspaceError: the save was rejected, or it changed the function itself: it is not written over.
        """
        held = before.modules.get(module)
        path = held.path if held else path_of(module)
        if not self._is_other(path, held):
            return before
        snapshot = await self._caught_up(path, name, before)
        if self._is_other(path, snapshot.modules.get(module)):
            raise WorkspaceError(
                f"{path} holds an edit that is not in use, because it was rejected.",
                mend="Mend or revert that edit first; reload the functions, and it is said what is wrong with it.",
            )
        return snapshot

    def repeatable(
        self, plan: Plan, verb: Replan, name: str = "", snapshot: Snapshot | None = None, late: Late | None = None
    ) -> Plan:
        """The plan, with the way to make it anew when its file is another by then; `name` must be as in `snapshot`."""
        change = plan.change
        if change is None:
            return plan

        async def again() -> Plan:
            try:
                await self._caught_up(change.path, name, snapshot or self.registry.snapshot())
            except WorkspaceError as error:
                if late is None:
                    raise
                return await late(error)
            return await verb()

        return replace(plan, again=again)

    def saved(self, module: str, name: str) -> str:
        """A function's text as it is on disk, also in a file that was rejected; nothing where it is not there."""
        snapshot = self.registry.snapshot()
        held = snapshot.modules.get(module)
        path = held.path if held else path_of(module)
        found = read_file(self._folder, Path(path).relative_to("functions"), self._limit)
        if not isinstance(found, Source):
            return ""
        is_taken = held is not None and found.version == held.version
        return own_text(name, snapshot) or "" if is_taken else written_lines(found.text, name)

    def _is_other(self, path: str, held: Source | None) -> bool:
        found = read_file(self._folder, Path(path).relative_to("functions"), self._limit)
        return isinstance(found, Source) and found.version != (held.version if held else None)

    async def _caught_up(self, path: str, name: str, before: Snapshot) -> Snapshot:
        await self._catch_up(path)
        snapshot = self.registry.snapshot()
        if name and own_text(name, snapshot) != own_text(name, before):
            what = f"`{name}` itself was changed by somebody meanwhile, so it was not overwritten."
            raise StaleFile(what, mend="Look at what it is now, then make the change.")
        return snapshot


def own_text(name: str, snapshot: Snapshot) -> str | None:
    """A function's own text with the comments above it; None if there is no such function."""
    function = snapshot.functions.get(name)
    if function is None:
        return None
    text = Text(tuple(lines_of(snapshot.modules[function.module].text)), ())
    return "".join(text.lines[text.with_comments(function.line) - 1 : function.end_line])
