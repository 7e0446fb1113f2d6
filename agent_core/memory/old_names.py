"""Function names from MemGPT and argument names from Letta: accepted in calls, never shown."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Alias:
    """The current meaning of an old name, and the current names of its arguments."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)


_BLOCK = {"label": "name", "section": "name", "field": "name"}
_CONTENT = {**_BLOCK, "new_content": "content", "text": "content"}
_REPLACED = {**_BLOCK, "old_str": "old_content", "new_str": "new_content", "content": "new_content"}

ALIASES: Mapping[str, Alias] = {
    "edit_memory": Alias("core_memory_rewrite", _CONTENT),
    "edit_memory_append": Alias("core_memory_append", _CONTENT),
    "edit_memory_replace": Alias("core_memory_replace", _REPLACED),
    "core_memory_append": Alias("core_memory_append", _CONTENT),
    "core_memory_replace": Alias("core_memory_replace", _REPLACED),
    "core_memory_remove": Alias("core_memory_remove", {**_BLOCK, "old_content": "content"}),
    "core_memory_rewrite": Alias("core_memory_rewrite", _CONTENT),
    "recall_memory_search": Alias("conversation_search"),
    "recall_memory_search_date": Alias("conversation_search_date"),
}


def renamed(name: str, arguments: Mapping[str, Any], own: Container[str]) -> dict[str, Any]:  # Any: JSON
    """Return the arguments of a call of `name` under their current names. Those that the function itself has are
    kept.
    """
    names = {old: new for old, new in ALIASES.get(name, Alias(name)).arguments.items() if old not in own}
    renamed_arguments = {names[key]: value for key, value in arguments.items() if key in names}
    return {**renamed_arguments, **{key: value for key, value in arguments.items() if key not in names}}
