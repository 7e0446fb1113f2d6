"""The approvers of a run, who answer grant questions: the user, nobody, or a file that lists what may be granted."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_core.access.grants import Approver, Decision, Grants, Question
from agent_core.access.grants.file import checked
from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.plain_files import read_named
from agent_core.base.untrusted import one_line
from sandbox.wire.foreign import Malformed, read_toml

ASK, DENY = "ask", "deny"
_NOTES = ("by", "at")  # what `functions/grants.toml` has besides grants: such a file is accepted, too


@dataclass(frozen=True, slots=True)
class Listed:
    """An approver that says yes, one call at a time and only in this run, to what a file lists for a function."""

    entries: Mapping[str, Grants]

    async def __call__(self, question: Question) -> Decision:
        """Answer "once" if the file lists everything that is asked for."""
        entry = self.entries.get(question.function)
        is_listed = entry is not None and entry.covers(question.missing)
        return Decision("once" if is_listed else "no", by="policy")


def chosen(approve: str | None, human: Approver | None) -> Approver | None:
    """Return the approver that `--approve` selects; `human` is the user, if there is one.

    Raises:
        UsageError: nobody can be asked, or the file cannot be taken.
    """
    if approve == ASK and human is None:
        fix = "Give --approve deny, or a file of what may be granted."
        raise UsageError("There is no terminal for the question.", fix=fix)
    if approve in (None, ASK):
        return human
    return None if approve == DENY else listed(Path(str(approve)))


def listed(file: Path) -> Listed:
    """Read what a file lists, in the format of `functions/grants.toml`.

    Raises:
        UsageError: it cannot be read, or lists what cannot be granted.
    """
    try:
        tables = read_toml(read_named(file))
        return Listed({name: _grants(name, table) for name, table in tables.items()})
    except (OSError, Malformed) as error:
        fix = "--approve takes ask, deny, or a file such as functions/grants.toml."
        raise UsageError(f"{file} cannot be read: {one_line(str(error), 200)}.", fix=fix) from error
    except WorkspaceError as error:
        raise UsageError(f"{file}: {error.message}", fix=error.fix) from error


def _grants(name: str, table: object) -> Grants:
    if not isinstance(table, dict):
        raise WorkspaceError(f"`{one_line(name, 60)}` is no entry.", fix="An entry is [FUNCTION] and lines below it.")
    return checked({key: value for key, value in table.items() if key not in _NOTES})
