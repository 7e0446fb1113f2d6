"""Grants as lines for the user: what was granted and revoked, and what is in force."""

from collections.abc import Mapping
from typing import Any

from agent_core.access.grants import Grants
from agent_core.base.untrusted import one_line

from ..spans import Line, Role, indented, line
from .verdicts import problem_lines


def given_lines(data: Mapping[str, Any]) -> list[Line]:  # Any: JSON
    """Return what a function may reach now."""
    return _grant_lines("ok", "✓ ", data["name"], " may", data["grants"])


def revoked_lines(data: Mapping[str, Any]) -> list[Line]:
    """Return what was revoked, and what remains."""
    lines = _grant_lines("ok", "✓ ", data["name"], " may no longer", data["revoked"])
    return [*lines, *(_grant_lines("dim", "", data["name"], " still may", data["grants"]) if data["grants"] else [])]


def grants_lines(data: Mapping[str, Any]) -> list[Line]:
    """Return each function's entry, and how much of it is in force."""
    lines = list[Line]()
    for row in data["grants"]:
        proposed, now = Grants.from_json(row["grants"]), Grants.from_json(row["in_force"])
        state = "" if now.covers(proposed) else " (not in force: you are asked when it is called)"
        state = state if row["exists"] else " (there is no such function)"
        lines.append(
            line(("name", row["name"]), ("dim", f"  {one_line(row['by'])}, {one_line(row['at'])}"), ("bad", state))
        )
        lines += indented([_sentence(sentence, now) for sentence in proposed.sentences()])
    return [*lines, *problem_lines(data["problems"])]


def _sentence(sentence: str, now: Grants) -> Line:
    return line(sentence) if sentence in now.sentences() else line(("dim", f"{sentence} (proposed)"))


def _grant_lines(style: Role, mark: str, name: str, verb: str, grants: Mapping[str, Any]) -> list[Line]:
    sentences = Grants.from_json(grants).sentences()
    return [line((style, mark), ("name", name), verb), *indented([line(sentence) for sentence in sentences])]
