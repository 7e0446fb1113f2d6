"""No regular expression of the program grows: a text twice as long takes it about twice as long."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fnmatch import translate
from pathlib import Path
from typing import Any, Final

import pytest

from agent_core.access.packages.resolution import _MEANINGS
from agent_core.base.matching import Mention
from agent_core.base.syntax import _WHY
from agent_core.context.history import AUTHOR
from agent_core.functions.gate.autofix import _LONGEST
from agent_core.functions.service.call_records import _UNREPLAYABLE
from agent_core.memory.classes import _begin_of
from agent_core.model import dialect, reading, tour
from agent_core.operations.catalog import ENTRIES
from agent_core.runtime.groups.floor import _forms
from agent_core.runtime.message_protocol import _call_of
from knapper_ext.mcp.servers import _patterns
from tests.kit.patterns import (
    ROOT,
    Assembled,
    Unresolved,
    attack,
    collect,
    is_quick,
    module_name,
    modules,
)


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
    "agent_core.access.packages.resolution.meaning": [
        lambda: [pattern for pattern, _, _ in _MEANINGS]
    ],
    "agent_core.base.matching.__init__": [
        lambda: [translate("a*b?[c-e]*"), translate("*" * 90), translate("*a" * 90)],
        lambda: [mention._plain for mention in _MENTIONS],
        lambda: [mention._whole for mention in _MENTIONS],
        lambda: [mention._around for mention in _MENTIONS],
    ],
    "agent_core.base.syntax.flaw_of": [lambda: [f"[{kind}]" for kind, _ in _WHY if kind]],
    "knapper_ext.mcp.servers._patterns": [lambda: [pattern for pattern, _ in _patterns()]],
    "agent_core.functions.service.call_records.note": [lambda: [r"\bname_1\b"]],
    "agent_core.functions.service.call_records.": [
        lambda: [pattern for _, pattern in _UNREPLAYABLE]
    ],
    "knapper_ext.exchange.library_files.defined_as": [
        lambda: [r"(\bdef\s+)name_1\b"],
        lambda: [r"(?<![\w.'\"])name_1(?=\s*\()"],
    ],
    "knapper_ext.exchange.library_files._modules": [lambda: [r"\bname_1\b(?!\s+import)"]],
    "agent_core.operations.verb.only_shows": [lambda: {entry.shows for entry in ENTRIES}],
    "agent_core.operations.catalog.check_source": [lambda: {entry.needs_user for entry in ENTRIES}],
    "agent_core.memory.edits._find": [lambda: [r"(?<!\w)name_1(?!\w)", "name_1"]],
    "agent_core.memory.classes._begin_of": [lambda: [_begin_of({"persona", "notes"})]],
    "agent_core.model.dialect._compile": [lambda: _within([dialect.quirks(), reading.forms()])],
    "agent_core.model.dialect.call_id": [lambda: {each.id_pattern for each in dialect.dialects()}],
    "agent_core.model.dialect.dialect_of": [
        lambda: {each.address for each in dialect.dialects()},
        lambda: {each.path for each in dialect.dialects()},
    ],
    "agent_core.model.reading._call_pattern": [lambda: [reading._call_pattern()]],
    "agent_core.model.tour.play": [
        lambda: {step.expect for scene in tour.script().scenes for step in scene.steps}
    ],
    "agent_core.model.tour._scene": [
        lambda: {scene.noticed for scene in tour.script().scenes},
        lambda: {pattern for scene in tour.script().scenes for pattern in scene.says},
    ],
    "agent_core.runtime.groups.floor._forms": [lambda: _within(_forms(("Ann", "Ben")))],
    "agent_core.runtime.message_protocol._call_of": [lambda: [_call_of(["name_1", "x"])]],
    "agent_core.workspace.portable.document._form": [
        lambda: [r"^[\w./-]{1,64}$(?!\n)", rf"^{AUTHOR.pattern}$(?!\n)"]
    ],
}
HELD: Final[Mapping[str, Sequence[str]]] = {
    "knapper_ext.mcp.servers.": ["search"],
    "agent_core.model.dialect.": ["search"],
    "agent_core.runtime.groups.floor.": ["finditer"],
    "agent_core.functions.service.call_records._UNREPLAYABLE": ["match"],
    "knapper_ext.local.constrained._NEXT": ["match"],
}
"""The methods of patterns that are parts of a value, by its name, or that are returned."""
BOUNDED: Final[Mapping[str, int]] = {
    "agent_core.functions.gate.autofix.words": _LONGEST,  # `_hint` returns before
}
"""The most characters that a pattern is given, where the program measures first."""


@pytest.mark.parametrize("file", modules(), ids=module_name)
def test_no_pattern_of_a_module_grows(file: Path) -> None:
    growing = []
    for expression in collect(file, ASSEMBLED, HELD):
        trial = attack(expression.pattern, expression.methods)
        if not trial.is_linear and not is_quick(
            expression, BOUNDED.get(f"{expression.module}.{expression.name}", 0)
        ):
            growing.append(f"line {expression.line}, {expression.name}: {trial.worst}")
    assert not growing


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        pytest.param(r"^(\W*)(\[?\W*from\W*:.*)$", "sub", id="cubic-on-blank-lines"),
        pytest.param(r"[^.!?\n]*[?]", "search", id="search-without-the-end"),
        pytest.param(r"(\S+)==(\S+) --hash=(\S+)", "fullmatch", id="two-places-for-a-sign"),
        pytest.param(r"\s*#", "finditer", id="blanks-before-a-sign"),
        pytest.param(r"“[^”]*”", "sub", id="many-openings"),
        pytest.param(r"(a|a)*b", "match", id="exponential"),
        pytest.param(r"<m>(.*?)</m>", "findall", id="tags-that-stay-open"),
    ],
)
def test_a_pattern_that_grows_is_found(pattern: str, method: str) -> None:
    assert not attack(re.compile(pattern, re.MULTILINE), [method]).is_linear


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        pytest.param(r"^[^\w\n]*+from[^\w:]*+:.*$", "sub", id="a-line-at-a-time"),
        pytest.param(r"\b(\w+)\(", "findall", id="from-the-beginning-of-a-word"),
        pytest.param(r"\s*-?\d+,\d+\s*", "fullmatch", id="anchored"),
        pytest.param(r"“[^”]{0,300}”", "sub", id="bounded-repeat"),
    ],
)
def test_a_pattern_that_reads_a_text_once_passes(pattern: str, method: str) -> None:
    assert attack(re.compile(pattern, re.MULTILINE), [method]).is_linear


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("from re import search\n", id="imported-by-name"),
        pytest.param("import re as regular\n", id="under-another-name"),
        pytest.param("import re\nfind = re.search\n", id="passed-on"),
        pytest.param("import re\nfind = getattr(re, 'search')\n", id="looked-up"),
        pytest.param("from fnmatch import fnmatchcase\n", id="shell-pattern"),
        pytest.param(
            "import re\ndef f(text, form):\n    return re.search(form, text)\n",
            id="given-by-a-caller",
        ),
    ],
)
def test_no_pattern_escapes_the_collection(source: str) -> None:
    file = ROOT / "agent_core" / "base" / "clock.py"
    with pytest.raises(Unresolved):
        collect(file, {}, {}, source)
