"""Grants as lines for a human: what was given and taken, what is in force."""

from collections.abc import Mapping
from typing import Any

from agent_core.grants import Grants
from agent_core.untrusted import one_line

from .spans import Line, Role, indented, line
from .verdicts import problem_lines


def given_lines(found: Mapping[str, Any]) -> list[Line]:  # Any: JSON
    """What a function may reach now."""
    return _held("ok", "✓ ", found["name"], " may", found["grants"])


def revoked_lines(found: Mapping[str, Any]) -> list[Line]:
    """What was taken, and what is left."""
    taken = _held("ok", "✓ ", found["name"], " may no longer", found["revoked"])
    return [*taken, *(_held("dim", "", found["name"], " still may", found["grants"]) if found["grants"] else [])]


def grants_lines(found: Mapping[str, Any]) -> list[Line]:
    """Each function's entry, and how much of it is in force."""
    lines = list[Line]()
    for row in found["grants"]:
        proposed, now = Grants.from_json(row["grants"]), Grants.from_json(row["in_force"])
        state = "" if now.covers(proposed) else " (not in force: you are asked when it is called)"
        state = state if row["exists"] else " (there is no such function)"
        lines.append(
            line(("name", row["name"]), ("dim", f"  {one_line(row['by'])}, {one_line(row['at'])}"), ("bad", state))
        )
        lines += indented([_sentence(one, now) for one in proposed.sentences()])
    return [*lines, *problem_lines(found["problems"])]


def _sentence(sentence: str, now: Grants) -> Line:
    return line(sentence) if sentence in now.sentences() else line(("dim", f"{sentence} (proposed)"))


def _held(style: Role, mark: str, name: str, verb: str, grants: Mapping[str, Any]) -> list[Line]:
    sentences = Grants.from_json(grants).sentences()
    return [line((style, mark), ("name", name), verb), *indented([line(one) for one in sentences])]
