"""The basis of a change: the current files, loaded before anything is planned.

An unseen save is loaded first. A save that was rejected, or that changed the function itself, is not overwritten: the
saved text stays, an agent's version is kept as pending, and both are shown.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.base.errors import StaleFile, WorkspaceError
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import block
from agent_core.registry.folder_access import is_there
from agent_core.registry.source import ModuleSource, ParsedText, path_of, read_file
from agent_core.storage import SavePending
from sandbox.wire.lines import lines_of

from .history import diff
from .judgment import Judgment, PendingCandidate
from .plan import Author, PlannedChange

if TYPE_CHECKING:
    from agent_core.registry.registry import Registry, Snapshot

    from ..gate import Candidate, Verdict

_LONGEST = 6_000
_WHY_REJECTED = "`/reload` or `knapper functions reload` says what is wrong with it."

CatchUp = Callable[[str], Awaitable[None]]
"""Loads the current content of the file at a path, no matter who wrote it."""
Replan = Callable[[], Awaitable[PlannedChange]]
Late = Callable[[WorkspaceError], Awaitable[PlannedChange]]
"""Returns the plan that replaces one that was too late."""


class FileSync:
    """The synchronization of plans with the current files."""

    def __init__(
        self, root: Path, registry: "Registry", module_bytes: int, catch_up: CatchUp
    ) -> None:
        self.registry = registry
        self._folder = root / "functions"
        self._limit = module_bytes
        self._catch_up = catch_up

    async def settled(self, module: str, name: str, old_snapshot: "Snapshot") -> "Snapshot":
        """Return a snapshot with the current file of the module. An unseen save is loaded first.

        Raises:
            WorkspaceError: the save was rejected, or it changed the function itself; it is not overwritten.
        """
        existing = old_snapshot.modules.get(module)
        path = existing.path if existing else path_of(module)
        if not self._is_other(path, existing):
            return old_snapshot
        snapshot = await self._caught_up(path, name, old_snapshot)
        if self._is_other(path, snapshot.modules.get(module)):
            problems = snapshot.rejections.get(path)
            why = f": {problems[0]}" if problems else f"; {_WHY_REJECTED}"
            raise WorkspaceError(
                f"{path} holds an edit that is not in use, because it was rejected.",
                fix=f"Fix or revert that edit first{why}",
            )
        return snapshot

    def repeatable(
        self,
        plan: PlannedChange,
        verb: Replan,
        name: str = "",
        snapshot: "Snapshot | None" = None,
        late: Late | None = None,
    ) -> PlannedChange:
        """Return the plan with a way to plan again if its file changes. The function must still be as in `snapshot`."""
        if plan.change is None:
            return plan

        async def replan() -> PlannedChange:
            try:
                for change in plan.changes:
                    await self._caught_up(change.path, name, snapshot or self.registry.snapshot())
            except WorkspaceError as error:
                if late is None:
                    raise
                return await late(error)
            return await verb()

        return replace(plan, replan=replan)

    def saved(self, module: str, name: str) -> str:
        """Return a function's text on disk, even in a rejected file; empty if the function is not in it."""
        snapshot = self.registry.snapshot()
        existing = snapshot.modules.get(module)
        path = existing.path if existing else path_of(module)
        source = read_file(self._folder, Path(path).relative_to("functions"), self._limit)
        if not isinstance(source, ModuleSource):
            return ""
        is_taken = existing is not None and source.version == existing.version
        return own_text(name, snapshot) or "" if is_taken else written_lines(source.text, name)

    def _is_other(self, path: str, existing: ModuleSource | None) -> bool:
        file = Path(path).relative_to("functions")
        source = read_file(self._folder, file, self._limit)
        if not isinstance(source, ModuleSource):  # what cannot be read is somebody's save, too
            return is_there(self._folder / file)
        return existing is None or source.version != existing.version

    async def _caught_up(self, path: str, name: str, old_snapshot: "Snapshot") -> "Snapshot":
        await self._catch_up(path)
        snapshot = self.registry.snapshot()
        if name and own_text(name, snapshot) != own_text(name, old_snapshot):
            raise changed(name)
        return snapshot


def own_text(name: str, snapshot: "Snapshot") -> str | None:
    """Return a function's own text with the comments above it, or None if there is no such function."""
    function = snapshot.functions.get(name)
    if function is None:
        return None
    text = ParsedText(tuple(lines_of(snapshot.modules[function.module].text)), ())
    return "".join(text.lines[text.with_comments(function.line) - 1 : function.end_line])


def written_lines(text: str, name: str) -> str:
    """Return a function's lines in a possibly invalid Python file, from its header to the next top-level line."""
    head = re.search(rf"^(?:async[ \t]+)?def[ \t]+{re.escape(name)}\b.*\n?", text, re.MULTILINE)
    if head is None:
        return ""
    end = re.search(r"^[^\s)#]", text[head.end() :], re.MULTILINE)
    return text[head.start() : head.end() + end.start() if end else len(text)].rstrip() + "\n"


def changed(name: str) -> StaleFile:
    """Return the error that someone else changed the function first."""
    message = f"`{name}` itself was changed by somebody meanwhile, so it was not overwritten."
    return StaleFile(message, fix="Look at what it is now, then make the change.")


def require_read(name: str, author: Author, source: str) -> None:
    """Raise if an agent would overwrite text by someone else that it has not seen.

    Raises:
        StaleFile: it would; the message has the text, so that the agent has then seen it.
    """
    if name in author.unread:
        author.unread.read(name)
        raise StaleFile(f"{changed(name).message} It reads now:\n{block(source, _LONGEST)}")


def kept(
    candidate: "Candidate", verdict: "Verdict", error: WorkspaceError, theirs: str, base: str
) -> PlannedChange:
    """Keep an agent's conflicting version as pending. `base` is the hash of the saved version if it is in use."""
    name, path, yours = candidate.name, candidate.path, verdict.source or candidate.code
    fix = f"keep what is on disk, or take the other with confirm_function or /confirm {name}"
    problem = Problem(error.code, error.message.rstrip("."), Place(path), fix)
    rejected = replace(
        verdict,
        admitted=False,
        standing="",
        problems=(*verdict.problems, problem),
        disagreements=(),
    )
    apart = diff(theirs, yours, (f"{name} on disk", f"{name} kept as pending"))
    pending = PendingCandidate.of(candidate, base, Judgment.of(rejected), apart).to_json()
    detail = Judgment.from_json({**rejected.to_json(), "conflict": apart})
    edit = f"edit_function(function_name={name!r}, changes=…)"
    text = (
        f"{error.message} What is on disk stays, and yours is kept as pending. The difference:\n"
        f"{block(apart, _LONGEST) if apart else 'none: both say the same.'}\n"
        f"Next: bring your change into what is on disk with {edit}. "
        f"Only if the user wants yours instead: confirm_function(function_name={name!r}, reason=…)."
    )
    return PlannedChange(text, "refused", detail, writes=(SavePending(name, pending),))


def require_same(name: str, asked_version: str, current_version: str) -> None:
    """Raise if the current version is not the one that the user was asked about, if one is given.

    Raises:
        StaleFile: it is another version.
    """
    if asked_version not in ("", current_version):
        message = f"`{name}` has changed since the question, so nothing was granted."
        raise StaleFile(message, fix=f"Look again: knapper functions grant {name}")
