"""No regular expression of the program grows: a text twice as long takes it about twice as long."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fnmatch import translate
from pathlib import Path
from typing import Any, Final

import pytest

from agent_core.access.packages.resolution import _MEANINGS
from agent_core.base import matching
from agent_core.base.matching import Mention
from agent_core.base.syntax import _WHY
from agent_core.context.history import AUTHOR
from agent_core.functions.gate.autofix import _description_of
from agent_core.functions.mcp.servers import _patterns
from agent_core.functions.service.call_records import _UNREPLAYABLE
from agent_core.interfaces.slash_catalog import ENTRIES
from agent_core.memory.classes import _begin_of
from agent_core.model import dialect, reading, tour
from agent_core.runtime.groups.floor import _forms
from agent_core.runtime.message_protocol import _call_of
from tests.kit.patterns import MOST_EXPONENT, ROOT, Assembled, attack, collect, modules


def _within(value: Any) -> Iterator[Any]:
    """Yield the patterns in data of the program."""
    if isinstance(value, re.Pattern):
        yield value
    elif is_dataclass(value):
        yield from _within([getattr(value, each.name) for each in fields(value)])
    elif isinstance(value, Mapping):
        yield from _within([*value.values()])
    elif isinstance(value, list | tuple | frozenset):
        for each in value:
            yield from _within(each)


_MENTIONS: Final = (Mention("Ann Bee"), Mention("fi-ss é", word=True), Mention("Ab", exact=True))
ASSEMBLED: Final[Assembled] = {
    "agent_core.access.packages.resolution.meaning": [lambda: [pattern for pattern, _, _ in _MEANINGS]],
    "agent_core.base.matching.__init__": [
        lambda: [translate("a*b?[c-e]*"), translate("*" * 90), translate("*a" * 90)],
        lambda: [mention._plain for mention in _MENTIONS],
        lambda: [mention._whole for mention in _MENTIONS],
        lambda: [mention._around for mention in _MENTIONS],
    ],
    "agent_core.base.syntax.flaw_of": [lambda: [f"[{kind}]" for kind, _ in _WHY if kind]],
    "agent_core.functions.gate.autofix._description_of": [lambda: [_description_of(["name_1", "x"])]],
    "agent_core.functions.mcp.servers._patterns": [lambda: [pattern for pattern, _ in _patterns()]],
    "agent_core.functions.service.call_records.note": [lambda: [r"\bname_1\b"]],
    "agent_core.functions.service.call_records.": [lambda: [pattern for _, pattern in _UNREPLAYABLE]],
    "agent_core.functions.service.library_files.defined_as": [
        lambda: [r"(\bdef\s+)name_1\b"],
        lambda: [r"(?<![\w.'\"])name_1(?=\s*\()"],
    ],
    "agent_core.functions.service.library_files._modules": [lambda: [r"\bname_1\b(?!\s+import)"]],
    "agent_core.interfaces.commands.verb.only_shows": [lambda: {entry.shows for entry in ENTRIES}],
    "agent_core.interfaces.slash_catalog.check_source": [lambda: {entry.needs_user for entry in ENTRIES}],
    "agent_core.memory.classes._begin_of": [lambda: [_begin_of({"persona", "notes"})]],
    "agent_core.memory.edits._find": [lambda: [r"(?<!\w)name_1(?!\w)", "name_1"]],
    "agent_core.model.dialect._compile": [lambda: _within([dialect.quirks(), reading.forms()])],
    "agent_core.model.dialect.call_id": [lambda: {each.id_pattern for each in dialect.dialects()}],
    "agent_core.model.dialect.dialect_of": [
        lambda: {each.address for each in dialect.dialects()},
        lambda: {each.path for each in dialect.dialects()},
    ],
    "agent_core.model.reading._call_pattern": [lambda: [reading._call_pattern()]],
    "agent_core.model.tour.play": [lambda: {step.expect for scene in tour.script().scenes for step in scene.steps}],
    "agent_core.model.tour._scene": [
        lambda: {scene.noticed for scene in tour.script().scenes},
        lambda: {pattern for scene in tour.script().scenes for pattern in scene.says},
    ],
    "agent_core.runtime.groups.floor._forms": [lambda: _within(_forms(("Ann", "Ben")))],
    "agent_core.runtime.message_protocol._call_of": [lambda: [_call_of(["name_1", "x"])]],
    "agent_core.workspace.portable.document._form": [lambda: [r"^[\w./-]{1,64}$(?!\n)", rf"^{AUTHOR.pattern}$(?!\n)"]],
}
