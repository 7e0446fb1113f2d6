"""The forms in which models write calls: the data of `reading.toml`, read once."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from sandbox.wire.foreign import read_toml

MOST_PARTS: Final = 64
"""Longest row of tags or fences that is read: a reply beyond is noise, and must not cost time."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Marks around calls; `whole` accepts them only at the beginning of the text."""

    open: str
    close: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ReplyForms:
    """All data of `reading.toml`."""

    name_keys: tuple[str, ...]
    argument_keys: tuple[str, ...]
    several_keys: tuple[str, ...]
    idle_keys: frozenset[str]
    namespaces: frozenset[str]
    tags: tuple[Tag, ...]
    object_fences: frozenset[str]
    python_fences: frozenset[str]
    lead_in_chars: int
    explains: re.Pattern[str]
    announces: re.Pattern[str]


@cache
def forms() -> ReplyForms:
    """Return the forms that this version knows."""
    data = read_toml(resources.files("agent_core.model").joinpath("reading.toml").read_text(encoding="utf-8"))
    keys, lead_in = data["keys"], data["lead_in"]
    return ReplyForms(
        name_keys=tuple(keys["name"]),
        argument_keys=tuple(keys["arguments"]),
        several_keys=tuple(keys["several"]),
        idle_keys=frozenset(keys["beside"]),
        namespaces=frozenset(data["python"]["namespaces"]),
        tags=tuple(Tag(**tag) for tag in data["tags"]),
        object_fences=frozenset(data["fences"]["objects"]),
        python_fences=frozenset(data["fences"]["python"]),
        lead_in_chars=lead_in["most_chars"],
        explains=_pattern(lead_in["explains"]),
        announces=_pattern(lead_in["announces"]),
    )


def announces(lead_in: str) -> bool:
    """Check whether a fence after this lead-in may hold a call."""
    return not lead_in or bool(forms().announces.search(lead_in) and not forms().explains.search(lead_in))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("\\\n", ""), re.IGNORECASE)
