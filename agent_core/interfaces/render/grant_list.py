"""Grants as lines for the user: what was granted and revoked, and what is in force."""

from typing import TYPE_CHECKING

from agent_core.access.grants import Grants
from agent_core.base.untrusted import one_line

from ..spans import Line, Role, indented, line
from .verdicts import problem_lines

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.functions.service.grant_commands import GrantListing, Revoked
    from agent_core.functions.service.plan import Given


def given_lines(result: "Given") -> list[Line]:
    """Return what a function may reach now."""
    return _grant_lines("ok", "✓ ", result.name, " may", result.grants)


def revoked_lines(result: "Revoked") -> list[Line]:
    """Return what was revoked, and what remains."""
    lines = _grant_lines("ok", "✓ ", result.name, " may no longer", result.revoked)
    return [*lines, *(_grant_lines("dim", "", result.name, " still may", result.grants) if result.grants else [])]


def grants_lines(listing: "GrantListing") -> list[Line]:
    """Return each function's entry, and how much of it is in force."""
    lines = list[Line]()
    for row in listing.grants:
        state = "" if row.in_force.covers(row.grants) else " (not in force: you are asked when it is called)"
        state = state if row.exists else " (there is no such function)"
        lines.append(line(("name", row.name), ("dim", f"  {one_line(row.by)}, {one_line(row.at)}"), ("bad", state)))
        lines += indented([_sentence(sentence, row.in_force) for sentence in row.grants.sentences()])
    return [*lines, *problem_lines(listing.problems)]


def _sentence(sentence: str, now: Grants) -> Line:
    return line(sentence) if sentence in now.sentences() else line(("dim", f"{sentence} (proposed)"))


def _grant_lines(style: Role, mark: str, name: str, verb: str, grants: Grants) -> list[Line]:
    return [line((style, mark), ("name", name), verb), *indented([line(sentence) for sentence in grants.sentences()])]
