"""Cleanup after a call that could write: a repository or workspace it left behind is reported and has no effect."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final

from agent_core.base.untrusted import fence
from agent_core.registry import folder_access
from sandbox import Killed, Outcome, Refused

from .repositories import FAR, NEAR, WalkLimits, disarm, is_part, rename, repository_in

_LOG: Final = logging.getLogger("toolwright.grants")
_MOST_NAMED: Final = 5


async def without_repositories(running: Awaitable[Outcome], writable: Sequence[str]) -> Outcome:
    """Return how a call ended: as killed if it created a repository or a workspace, or too much to check."""
    if not writable:
        return await running
    before = await asyncio.to_thread(_too_large, writable)
    outcome: Outcome | None = None
    try:
        outcome = await running
    finally:  # where it was interrupted too
        reason = await asyncio.to_thread(_reason, writable, before)
        if reason and outcome is None:
            _LOG.warning(reason)
    return _with_reason(outcome, reason) if reason else outcome


def _reason(writable: Sequence[str], before: frozenset[str]) -> str:
    """Return the message about what a call left behind, or "" if that is neither a repository nor a workspace."""
    names: list[str] = []
    grown = _too_large(writable) - before
    for path in map(Path, writable):
        try:
            names += _unmade(path, FAR if str(path) in grown else NEAR)
        except OSError as error:
            where = f"{fence(str(path))}, which cannot be renamed: {error.strerror}"
            return f"It made a repository or a workspace in {where}. Remove it."
    if names:
        named = ", ".join(map(fence, names[:_MOST_NAMED])) + (" and more" if len(names) > _MOST_NAMED else "")
        why = "git, Toolwright and programs like them run as you what such a folder says"
        told = f"so its result is withheld, and {named} was renamed"
        return f"It made what is taken for a repository or a workspace, {told}: {why}."
    hidden = [path for path in sorted(grown) if not repository_in(Path(path), FAR).is_whole]
    return _grown(hidden[0]) if hidden else ""


def _grown(path: str) -> str:
    message = f"It wrote more into {fence(path)} than can be looked through for repositories and workspaces"
    return f"{message}, so its result is withheld. Look there yourself before you run git or Toolwright in it."


def _unmade(path: Path, reach: WalkLimits) -> list[str]:
    if path.is_dir() and not path.is_symlink():
        return [str(path / name) for name in disarm(path, reach)]
    if path.exists() and is_part(path):
        with folder_access.folder(path.parent, ()) as folder_fd:
            rename(path.name, folder_fd)
        return [str(path)]
    return []


def _too_large(writable: Sequence[str]) -> frozenset[str]:
    return frozenset(path for path in writable if not repository_in(Path(path)).is_whole)


def _with_reason(outcome: Outcome, reason: str) -> Outcome:
    if isinstance(outcome, Refused):
        return Refused(reason)
    return Killed(reason, outcome.output, outcome.seconds, outcome.memory, outcome.cpu_s)
