"""Conflicts over one function: the saved text stays, the agent's version is kept as pending, and both are shown."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_core.base.errors import StaleFile, WorkspaceError
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import block
from agent_core.storage import SavePending

from .history import diff
from .judgment import Judgment, PendingCandidate
from .plan import Author, PlannedChange

if TYPE_CHECKING:
    from ..gate import Candidate, Verdict

_LONGEST = 6_000


def written_lines(text: str, name: str) -> str:
    """Return a function's lines in a possibly invalid Python file: from its header to the next line that begins one."""
    head = re.search(rf"^(?:async[ \t]+)?def[ \t]+{re.escape(name)}\b.*\n?", text, re.MULTILINE)
    if head is None:
        return ""
    end = re.search(r"^[^\s)#]", text[head.end() :], re.MULTILINE)
    return text[head.start() : head.end() + end.start() if end else len(text)].rstrip() + "\n"


def changed(name: str) -> StaleFile:
    """Return the error that someone else changed the function first."""
    return StaleFile(f"`{name}` itself was changed by somebody meanwhile, so it was not overwritten.")


def require_read(name: str, author: Author, source: str) -> None:
    """Raise StaleFile if an agent would remove text that someone else wrote and that it has not seen.

    Raises:
        StaleFile: it would; the text is shown, so that it knows it the next time.
    """
    if name in author.unread:
        author.unread.read(name)
        raise StaleFile(f"{changed(name).message} It reads now:\n{block(source, _LONGEST)}")


def kept(candidate: "Candidate", verdict: "Verdict", error: WorkspaceError, theirs: str, base: str) -> PlannedChange:
    """Keep an agent's conflicting version as pending. `base` is the hash of the saved version if that is in use."""
    name, path, yours = candidate.name, candidate.path, verdict.source or candidate.code
    fix = f"keep what is on disk, or take the other with confirm_function or /confirm {name}"
    problem = Problem(error.code, error.message.rstrip("."), Place(path), fix)
    rejected = replace(verdict, admitted=False, standing="", problems=(*verdict.problems, problem), disagreements=())
    apart = diff(theirs, yours, (f"{name} on disk", f"{name} kept as pending"))
    pending = PendingCandidate.of(candidate, base, Judgment.of(rejected), apart).to_json()
    detail = Judgment.from_json({**rejected.to_json(), "conflict": apart})
    return PlannedChange(_conflict_text(name, error, apart), "refused", detail, writes=(SavePending(name, pending),))


def _conflict_text(name: str, error: WorkspaceError, apart: str) -> str:
    edit = f"edit_function(function_name={name!r}, old_text=…, new_text=…)"
    return (
        f"{error.message} What is on disk stays, and yours is kept as pending. The difference:\n"
        f"{block(apart, _LONGEST) if apart else 'none: both say the same.'}\n"
        f"Next: bring your change into what is on disk with {edit}. "
        f"Only if the user wants yours instead: confirm_function(function_name={name!r}, reason=…)."
    )


def require_same(name: str, asked_version: str, current_version: str) -> None:
    """Raise WorkspaceError if the current version is not the one that the user was asked about, if it is given.

    Raises:
        WorkspaceError: it is another.
    """
    if asked_version not in ("", current_version):
        message = f"`{name}` has changed since the question, so nothing was granted."
        raise WorkspaceError(message, fix=f"Look again: knapper functions grant {name}")
